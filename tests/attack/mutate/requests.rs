//! Mutated requests to the web page and to `site serve`: malformed, split, pipelined, broken off, slow and huge.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;

use fastrand::Rng;
use fingerpost_record::fixture;

use super::oracle::{Fault, binary, misleading};
use super::records::Bases;
use super::server::Server;
use super::{Plan, bytes, keep};

/// One request in its parts, so that each can be damaged.
#[derive(Clone)]
struct Request {
    method: Vec<u8>,
    target: Vec<u8>,
    version: Vec<u8>,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
    end: &'static [u8],
}

impl Request {
    fn get(host: &str, target: String) -> Request {
        let headers = vec![(b"Host".to_vec(), host.as_bytes().to_vec())];
        Request {
            method: b"GET".into(),
            target: target.into(),
            version: b"HTTP/1.1".into(),
            headers,
            body: vec![],
            end: b"\r\n",
        }
    }

    fn post(host: &str, target: String, kind: &str, body: Vec<u8>) -> Request {
        let mut request = Request {
            method: b"POST".into(),
            ..Request::get(host, target)
        };
        request
            .headers
            .push((b"Origin".into(), format!("http://{host}").into()));
        request.headers.push((b"Content-Type".into(), kind.into()));
        request
            .headers
            .push((b"Content-Length".into(), body.len().to_string().into()));
        Request { body, ..request }
    }

    fn text(&self) -> Vec<u8> {
        let mut text = [
            &self.method[..],
            b" ",
            &self.target,
            b" ",
            &self.version,
            self.end,
        ]
        .concat();
        for (name, value) in &self.headers {
            text.extend([name, &b": "[..], value, self.end].concat());
        }
        text.extend_from_slice(self.end);
        text.extend_from_slice(&self.body);
        text
    }
}

/// Header lines that servers are known to stumble over.
const HEADERS: &[(&str, &str)] = &[
    ("Transfer-Encoding", "chunked"),
    ("Transfer-Encoding", "chunked, identity"),
    ("Transfer-Encoding", "\tchunked"),
    ("Content-Length", "0"),
    ("Content-Length", "18446744073709551616"),
    ("Content-Length", "-1"),
    ("Content-Length", "+5"),
    ("Content-Length", "5, 5"),
    ("Content-Length", "99999999"),
    ("Host", "evil.example"),
    ("Host", ""),
    ("Origin", "null"),
    ("Connection", "close"),
    ("Connection", "keep-alive, Upgrade, HTTP2-Settings"),
    ("Upgrade", "h2c"),
    ("Upgrade", "websocket"),
    ("Expect", "100-continue"),
    ("Range", "bytes=0-0,-1,1-99999999999999999999"),
    ("Range", "bytes=18446744073709551615-"),
    ("If-None-Match", "*"),
    ("If-Modified-Since", "Sun, 99 Nov 99999 99:99:99 GMT"),
    ("Accept-Encoding", "gzip;q=99, *;q=-1"),
    ("Content-Type", "multipart/form-data; boundary="),
    (" folded", "x"),
    ("na me", "x"),
    ("", "x"),
    ("X", "a\r\n folded"),
    ("X-\u{1b}[2J", "\u{9b}2J"),
];

const TARGETS: &[&str] = &[
    "/..",
    "/../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/%00",
    "/%",
    "/%zz",
    "/%ff%fe",
    "//",
    "///etc/passwd",
    "/\\..\\",
    "*",
    "",
    "http://evil.example/",
    "http://127.0.0.1/",
    "/?%0d%0aX-Injected:%201",
    "/%0d%0aX-Injected:%201",
    "/a%1b%5b2Jb",
    "/%e2%80%ae",
    "/?q=%1b%5b2J%c2%9b",
    "/?page=99999999999999999999",
    "/?page=-1",
    "/run/%2e%2e%2f%2e%2e",
    "/?&&==&q=%",
    "/./.",
    "/;x",
    "/#x",
    "/%2f%2f",
];

fn damage(rng: &mut Rng, request: &mut Request, base: &str) {
    for _ in 0..rng.usize(1..4) {
        match rng.u8(..14) {
            0 => {
                request.method = [
                    &b"HEAD"[..],
                    b"DELETE",
                    b"CONNECT",
                    b"PRI",
                    b"get",
                    b"",
                    b"\x16\x03\x01",
                    b"OPTIONS",
                    b"G\0T",
                ][rng.usize(..9)]
                .into()
            }
            1..=3 => request.target = [base, TARGETS[rng.usize(..TARGETS.len())]].concat().into(),
            4 => request.target = bytes::damage(rng, &request.target),
            5 => request.target.extend(
                "x".repeat([4_000, 16_384, 65_536, 300_000][rng.usize(..4)])
                    .bytes(),
            ),
            6 => {
                request.version = [
                    &b"HTTP/1.0"[..],
                    b"HTTP/0.9",
                    b"HTTP/2.0",
                    b"HTTP/9.9",
                    b"HTTP/1.1x",
                    b"",
                    b"HTTP/1.1 ",
                ][rng.usize(..7)]
                .into()
            }
            7..=9 => {
                let (name, value) = HEADERS[rng.usize(..HEADERS.len())];
                request.headers.insert(
                    rng.usize(..=request.headers.len()),
                    (name.into(), value.into()),
                );
            }
            10 => {
                let n = [90, 101, 1_000, 20_000][rng.usize(..4)];
                request
                    .headers
                    .extend((0..n).map(|i| (format!("x{i}").into(), b"y".to_vec())));
            }
            11 => request.end = [&b"\n"[..], b"\r", b"\r\r\n", b""][rng.usize(..4)],
            12 => {
                let chunks: [&[u8]; 7] = [
                    b"5\r\nhello\r\n0\r\n\r\n",
                    b"ffffffffffffffff\r\n",
                    b"-1\r\n",
                    b"5;x=\"\r\n\"\r\nhello\r\n0\r\n",
                    b"0\r\nTrailer: x\r\n\r\n",
                    b"5\nhello\n0\n\n",
                    b"zz\r\n",
                ];
                request
                    .headers
                    .push((b"Transfer-Encoding".into(), b"chunked".into()));
                request.body = chunks[rng.usize(..7)].into();
            }
            _ => {
                let i = rng.usize(..request.headers.len());
                request.headers[i].1 = bytes::damage(rng, &request.headers[i].1);
            }
        }
    }
}

/// A conversation: one to twelve requests, some of them damaged.
fn conversation(rng: &mut Rng, server: &Server, good: &[Request]) -> Vec<Vec<u8>> {
    let count = if rng.u8(..3) == 0 {
        rng.usize(2..13)
    } else {
        1
    };
    let request = |_| {
        let mut request = good[rng.usize(..good.len())].clone();
        if rng.u8(..6) > 0 {
            damage(rng, &mut request, &server.base);
        }
        let text = request.text();
        if rng.u8(..5) == 0 {
            bytes::damage(rng, &text)
        } else {
            text
        }
    };
    (0..count).map(request).collect()
}

/// Holds the conversation in one of several ways and judges the answer.
fn attack(rng: &mut Rng, server: &Server, texts: &[Vec<u8>]) -> Result<bool, Fault> {
    let all = texts.concat();
    match rng.u8(..12) {
        // Hung up on without reading the answer.
        0 => {
            let mut stream = server
                .connect()
                .map_err(|e| Fault::new("abort", format!("no connection: {e}")))?;
            let _ = stream.write_all(&all[..rng.usize(..=all.len())]);
            Ok(false)
        }
        1 => judge(&server.converse(&all.chunks(1).take(2_000).collect::<Vec<_>>())?),
        2 | 3 => judge(
            &server.converse(
                &all.chunks(rng.usize(1..200))
                    .take(2_000)
                    .collect::<Vec<_>>(),
            )?,
        ),
        _ => judge(&server.converse(&[&all])?),
    }
}

/// Judges every answer of a conversation. True when something was found, false when all was refused.
fn judge(answers: &[u8]) -> Result<bool, Fault> {
    let begins = |at: &usize| {
        let rest = &answers[*at..];
        let version = rest.starts_with(b"HTTP/1.1 ") || rest.starts_with(b"HTTP/1.0 ");
        version
            && rest
                .get(9..12)
                .is_some_and(|code| code.iter().all(u8::is_ascii_digit))
    };
    let mut starts: Vec<usize> = (1..answers.len()).filter(begins).collect();
    starts.push(answers.len());
    let (mut from, mut found) = (0, false);
    for end in starts {
        found |= judge_one(&answers[from..end])?;
        from = end;
    }
    Ok(found)
}

fn judge_one(answer: &[u8]) -> Result<bool, Fault> {
    if answer.is_empty() {
        return Ok(false);
    }
    let end = answer
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .unwrap_or(answer.len());
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let status = head
        .strip_prefix("http/1.1 ")
        .or(head.strip_prefix("http/1.0 "))
        .and_then(|rest| rest.get(..3)?.parse::<u16>().ok());
    match status {
        None => {
            return Err(Fault::new(
                "sentence",
                format!(
                    "no answer of HTTP: {:?}",
                    head.chars().take(100).collect::<String>()
                ),
            ));
        }
        Some(500) => {
            return Err(Fault::new(
                "abort",
                format!(
                    "answered 500: {}",
                    String::from_utf8_lossy(answer)
                        .chars()
                        .take(600)
                        .collect::<String>()
                ),
            ));
        }
        _ => {}
    }
    if head.contains("\r\nx-injected") {
        return Err(Fault::new(
            "control",
            "a header from the request's path is in the answer",
        ));
    }
    let shown =
        if head.contains("\r\ncontent-type: text/html") && !head.contains("content-encoding") {
            answer
        } else {
            &answer[..end]
        };
    let shown: Vec<u8> = String::from_utf8_lossy(shown)
        .replace("\r\n", "\n")
        .into_bytes();
    match misleading(&shown) {
        Some(what) => Err(Fault::new("control", format!("the answer has {what}"))),
        None => Ok(status.is_some_and(|s| s < 400)),
    }
}

/// Connections that say nothing, or very slowly something, for as long as the value lives.
struct Slow(Mutex<Vec<TcpStream>>);

impl Slow {
    fn new(server: &Server, count: usize) -> Slow {
        let begun = |i: usize| {
            let mut stream = server.connect().ok()?;
            let _ = stream.write_all(&b"GET / HTTP/1.1\r\nHost: "[..i % 20]);
            Some(stream)
        };
        Slow(Mutex::new((0..count).filter_map(begun).collect()))
    }

    /// One more byte from one of them; a connection that was closed is made anew.
    fn drip(&self, rng: &mut Rng, server: &Server) {
        let mut streams = self.0.lock().unwrap();
        let i = rng.usize(..streams.len());
        if streams[i].write_all(b"x").is_err() {
            streams.extend(server.connect().ok());
            streams.swap_remove(i);
        }
    }
}

/// All of one kind against one server; `prepare` is called now and then.
fn volume(kind: &str, server: &Server, good: &[Request], prepare: impl Fn(&mut Rng) + Sync) {
    let slow = Slow::new(server, 40);
    Plan::from_environment().run(kind, |_, seed| {
        let mut rng = Rng::with_seed(seed);
        if seed % 50 == 0 {
            prepare(&mut rng);
            slow.drip(&mut rng, server);
        }
        let texts = conversation(&mut rng, server, good);
        let keep_it = |_: &Fault| drop(keep(kind, seed, "txt", &texts.concat()));
        let accepted = attack(&mut rng, server, &texts).inspect_err(keep_it)?;
        if seed % 100 == 0 {
            server.honest("/")?;
            server.well(1 << 20)?;
        }
        Ok(accepted)
    });
    server
        .honest("/")
        .and_then(|_| server.well(1 << 20))
        .unwrap_or_else(|f| panic!("{}", f.text));
}

/// The id of the run that is damaged again and again under the server's eyes.
const DAMAGED: &str = "20260106T030405Z-0000000e";

#[test]
fn mutated_requests_to_the_page() {
    let home = tempfile::tempdir().unwrap();
    let runs = home.path().join("runs");
    std::fs::create_dir(&runs).unwrap();
    let run = fixture::run();
    std::fs::write(
        runs.join(format!("{}.json", run.id)),
        serde_json::to_vec(&run).unwrap(),
    )
    .unwrap();
    let server = Server::start(home, &["serve", "--port", "0"]);
    let (host, bases) = (server.host.clone(), Bases::new());
    let base = server.base.clone();
    let paths = [
        "/".to_owned(),
        "/?q=x&page=2&host=small-guest&lab=database&from=2026-01-01".into(),
        format!("/run/{}", run.id),
        format!("/run/{DAMAGED}"),
        format!("/run/{DAMAGED}/report"),
        format!("/run/{DAMAGED}/record"),
        format!("/compare?run={}&run={DAMAGED}&threshold=3", run.id),
        "/history?probe=syscall.null&params=".into(),
        "/measure".into(),
        "/measure/state".into(),
        "/zerofill?alloc_1=1&touch_1=2&alloc_2=3&touch_2=4&api=mmap".into(),
        "/import".into(),
        "/static/page.js".into(),
        "/static/page.css".into(),
    ];
    let mut good: Vec<Request> = paths
        .iter()
        .map(|path| Request::get(&host, format!("{base}{path}")))
        .collect();
    let form = "application/x-www-form-urlencoded";
    good.push(Request::post(
        &host,
        format!("{base}/measure/stop"),
        form,
        vec![],
    ));
    good.push(Request::post(
        &host,
        format!("{base}/zerofill/measure"),
        form,
        b"api=%ff&x".to_vec(),
    ));
    let file = b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.json\"\r\n\r\n\
            {\"schema\":\"fingerpost/run/1\"}\r\n--b--\r\n";
    good.push(Request::post(
        &host,
        format!("{base}/import"),
        "multipart/form-data; boundary=b",
        file.to_vec(),
    ));
    volume("page", &server, &good, |rng| {
        std::fs::write(runs.join(format!("{DAMAGED}.json")), bases.mutated(rng)).unwrap()
    });
}

/// A small site, as a directory and imported into each engine.
fn site(store: Option<&str>) -> Server {
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().join("tree");
    std::fs::create_dir_all(tree.join("part")).unwrap();
    for (name, content) in [
        ("index.html", "<p>start"),
        ("part/index.html", "<p>part"),
        ("part/a b.html", "<p>a"),
        ("style.css", "p{}"),
    ] {
        std::fs::write(tree.join(name), content.repeat(300)).unwrap();
    }
    let Some(store) = store else {
        return Server::start(home, &["site", "serve", "--from", "tree"]);
    };
    let words = ["site", "import", "tree", "site.odb", "--store", store];
    let made = binary()
        .args(words)
        .env("FINGERPOST_HOME", home.path())
        .current_dir(home.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    Server::start(home, &["site", "serve", "--from", "site.odb"])
}

fn attack_site(kind: &str, store: Option<&str>) {
    let server = site(store);
    let paths = [
        "/",
        "/part/",
        "/part",
        "/part/a%20b.html",
        "/style.css",
        "/none",
    ];
    let good: Vec<Request> = paths
        .iter()
        .map(|path| Request::get(&server.host, (*path).to_owned()))
        .collect();
    volume(kind, &server, &good, |_| ());
}

#[test]
fn mutated_requests_to_a_site_in_a_directory() {
    attack_site("site-directory", None);
}

#[test]
fn mutated_requests_to_a_site_in_a_database() {
    attack_site("site-database", Some("lmdb"));
}

/// Requests of which two servers could disagree where they end, each with a second one behind it, and requests from
/// where none may come.
#[test]
fn requests_with_two_meanings_are_answered_once() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("runs")).unwrap();
    let page = Server::start(home, &["serve", "--port", "0"]);
    for server in [&page, &site(None)] {
        let (host, base) = (&server.host, &server.base);
        let second = format!("GET {base}/second HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let fields = [
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
            "Content-Length: 0\r\nContent-Length: 60\r\n\r\n",
            "Content-Length: +5\r\n\r\nabcde",
            "Content-Length: 5, 6\r\n\r\nabcde",
            "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        ];
        for fields in fields {
            let text = format!("GET {base}/ HTTP/1.1\r\nHost: {host}\r\n{fields}{second}");
            let answer = String::from_utf8(
                server
                    .converse(&[text.as_bytes()])
                    .unwrap_or_else(|f| panic!("{fields:?}: {}", f.text)),
            )
            .unwrap();
            assert_eq!(
                answer.matches("HTTP/1.1 ").count(),
                1,
                "{fields:?}: {answer}"
            );
        }
        let asked = |head: &str| {
            String::from_utf8_lossy(
                &server
                    .converse(&[head.as_bytes()])
                    .unwrap_or_else(|f| panic!("{}", f.text)),
            )
            .to_lowercase()
        };
        let foreign = asked(&format!(
            "GET {base}/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        ));
        assert!(
            foreign.starts_with("http/1.1 421 "),
            "another name that was made to point here (DNS rebinding): {foreign}"
        );
        let shared = asked(&format!(
            "GET {base}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ));
        assert!(
            shared.contains("cross-origin-resource-policy: same-origin")
                && shared.contains("x-content-type-options: nosniff"),
            "{shared}"
        );
        assert!(!shared.contains("access-control-allow"), "{shared}");
    }
}
