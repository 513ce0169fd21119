//! Requests to the web page.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fingerpost_record::{fixture, text::misleads};
use fingerpost_sys::child;

use crate::support::Home;

/// The web page, ended with the value.
struct Page {
    process: Child,
    _home: Home,
    host: String,
    base: String,
}

impl Page {
    fn start(home: Home) -> Page {
        let mut command = home.command(&["serve"]);
        let mut process =
            child::die_with_parent(command.stdout(Stdio::piped()).stderr(Stdio::null()))
                .spawn()
                .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("http://")
            .expect("the address is the first line")
            .trim_end_matches('/');
        let (host, token) = address.split_once('/').unwrap();
        Page {
            process,
            _home: home,
            host: host.to_owned(),
            base: format!("/{token}"),
        }
    }

    /// What a GET gives: everything, as it came.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(90)))
            .unwrap();
        write!(
            stream,
            "GET {}{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.base, self.host
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How long an honest request may take beside silent ones. The silent ones were once waited for during ten seconds.
const HONEST: Duration = Duration::from_secs(4);

#[test]
fn silent_connections_delay_nobody() {
    let page = Page::start(Home::new());
    for count in [64, 128, 512] {
        let silent: Vec<TcpStream> = (0..count)
            .map(|_| TcpStream::connect(&page.host).unwrap())
            .collect();
        let began = Instant::now();
        let answer = page.get("/");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(
            began.elapsed() < HONEST,
            "{count} silent connections: {:?}",
            began.elapsed()
        );
        drop(silent);
    }
}

#[test]
fn slow_heads_delay_nobody() {
    let page = Page::start(Home::new());
    let slow: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(&page.host).unwrap();
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: ");
            stream
        })
        .collect();
    let began = Instant::now();
    assert!(page.get("/").starts_with("HTTP/1.1 200"));
    assert!(began.elapsed() < HONEST, "{:?}", began.elapsed());
    drop(slow);
}

#[test]
fn no_answer_has_a_character_that_acts() {
    let home = Home::new();
    let mut run = fixture::with_everything();
    run.host.hostname = "x\u{1b}[2J\u{202e}\u{2028}\u{feff}\u{9b}y".into();
    run.command = vec!["\u{200b}\u{e0041}".into()];
    home.write(
        &format!("runs/{}.json", run.id),
        serde_json::to_vec(&run).unwrap(),
    );
    let page = Page::start(home);
    let id = &run.id;
    for path in [
        "/".to_owned(),
        "/?q=%1b%5b2J%e2%80%ae".into(),
        "/history?probe=%1b%5b2J&params=%c2%9b".into(),
        format!("/run/{id}"),
        format!("/run/{id}/record"),
        format!("/run/{id}/report"),
        format!("/compare?run={id}&run={id}"),
        "/run/%1b".into(),
    ] {
        let answer = page.get(&path);
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        assert!(!body.is_empty(), "{path}: {answer}");
        let acts = body
            .chars()
            .find(|c| misleads(*c) && !matches!(c, '\n' | '\t' | '\r'));
        assert_eq!(acts, None, "{path}");
    }
    let answer = page.get(&format!("/run/{id}/record"));
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let same = fingerpost_record::load::from_slice(body.as_bytes(), "x").unwrap();
    assert!(same == run, "what is escaped says the same");
}
