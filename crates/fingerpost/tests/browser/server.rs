//! `fingerpost serve` over an archive of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use fingerpost_record::Run;
use fingerpost_sys::child;

use crate::common::Home;

/// Where a server's standard error goes, in its home.
const SAID: &str = "serve.err";

/// A server, ended with the value. No test may have it end by a panic, which would be served again.
pub struct Server {
    process: Child,
    /// Its home.
    pub home: Home,
    /// Its address, token included, with a slash at its end.
    pub address: String,
}

impl Server {
    /// Starts one that knows these runs.
    pub fn with(runs: &[Run]) -> Server {
        Server::over(Home::with(runs), &[])
    }

    /// Starts one over this home, with further words of its command.
    pub fn over(home: Home, more: &[&str]) -> Server {
        let mut command = home.command(&[&["serve", "--port", "0"], more].concat());
        command
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(home.path().join(SAID)).unwrap());
        let mut process = child::die_with_parent(&mut command).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        let address = address.trim().to_owned();
        assert!(
            address.starts_with("http://127.0.0.1:") && address.ends_with('/'),
            "{address}"
        );
        Server {
            process,
            home,
            address,
        }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn origin(&self) -> &str {
        &self.address[..self.address.match_indices('/').nth(2).unwrap().0]
    }

    /// `/TOKEN`.
    pub fn base(&self) -> &str {
        self.address[self.origin().len()..].trim_end_matches('/')
    }

    /// Sends bytes as they are and gives what comes back until the server closes, or has been silent for a second.
    pub fn raw(&self, bytes: &[u8]) -> String {
        self.answer(bytes, Duration::from_secs(1))
    }

    /// The same with another patience: an answer on a connection that is closed after it may take as long as it needs.
    fn answer(&self, bytes: &[u8], patience: Duration) -> String {
        let mut stream = TcpStream::connect(self.origin().trim_start_matches("http://"))
            .expect("the server listens");
        stream.set_read_timeout(Some(patience)).unwrap();
        // The server may close before it has read everything.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let mut buffer = [0; 16 << 10];
        while let Ok(n) = stream.read(&mut buffer) {
            if n == 0 {
                break;
            }
            answer.extend_from_slice(&buffer[..n]);
        }
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// A GET of a path behind the token, on a connection that is closed after it: the status and the whole answer.
    pub fn get(&self, path: &str) -> (u16, String) {
        let host = self.origin().trim_start_matches("http://");
        let request = format!(
            "GET {}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n",
            self.base()
        );
        let answer = self.answer(request.as_bytes(), Duration::from_secs(90));
        (status(&answer), answer)
    }

    /// A POST of a form from the server's own page.
    pub fn post(&self, path: &str, kind: &str, body: &[u8]) -> (u16, String) {
        let (host, origin) = (self.origin().trim_start_matches("http://"), self.origin());
        let head = format!(
            "POST {}{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nContent-Type: {kind}\r\nContent-Length: \
             {}\r\nConnection: close\r\n\r\n",
            self.base(),
            body.len()
        );
        let answer = self.raw(&[head.as_bytes(), body].concat());
        (status(&answer), answer)
    }

    /// A file sent as the import form sends it.
    pub fn import(&self, name: &str, content: &[u8]) -> (u16, String) {
        let head = format!(
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: \
             application/json\r\n\r\n"
        );
        self.post(
            "/import",
            "multipart/form-data; boundary=b",
            &[head.as_bytes(), content, b"\r\n--b--\r\n"].concat(),
        )
    }

    /// Whether it still runs, and has never been started again.
    pub fn alive(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none() && !self.said().contains("broke off")
    }

    /// What it said on standard error.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.home.path().join(SAID)).unwrap()
    }

    /// The process that serves now, which the one that was started looks after.
    pub fn inner(&self) -> Option<i32> {
        let pid = self.process.id();
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
            .ok()?
            .split_ascii_whitespace()
            .next()?
            .parse()
            .ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = child::signal_group(self.process.id() as i32, libc::SIGTERM);
        let _ = child::wait_deadline(
            &mut self.process,
            std::time::Instant::now() + Duration::from_secs(90),
        );
        let _ = self.process.kill();
        let _ = self.process.wait();
        assert!(
            std::thread::panicking() || !self.said().contains("this is a defect"),
            "{}",
            self.said()
        );
    }
}

/// The status of an answer; 0 for none.
pub fn status(answer: &str) -> u16 {
    answer
        .strip_prefix("HTTP/1.1 ")
        .and_then(|a| a.get(..3))
        .and_then(|s| s.parse().ok())
        .unwrap_or(0)
}
