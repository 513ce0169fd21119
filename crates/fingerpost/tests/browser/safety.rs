//! What the page does with those who mean it ill: without a browser.

use std::time::{Duration, Instant};

use fingerpost_record::{Params, Run, fixture};
use fingerpost_sys::child;

use crate::server::{Server, status};

#[test]
fn without_the_token_the_host_and_the_origin_nobody_gets_in() {
    let server = Server::with(&[fixture::run()]);
    let host = server.origin().trim_start_matches("http://").to_owned();
    let base = server.base().to_owned();
    let ask = |line: &str, headers: &str| {
        status(
            &server
                .raw(format!("{line} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n").as_bytes()),
        )
    };
    let good = format!("Host: {host}\r\n");
    assert_eq!(ask(&format!("GET {base}/"), &good), 200);
    for path in [
        "/",
        "/run/x",
        "/static/page.js",
        "/00000000000000000000000000000000/",
        &base[..base.len() - 1],
    ] {
        assert_eq!(ask(&format!("GET {path}"), &good), 403, "{path}");
    }
    for wrong in ["evil.example", "127.0.0.1:1", "127.0.0.1.evil.example"] {
        assert_eq!(
            ask(&format!("GET {base}/"), &format!("Host: {wrong}\r\n")),
            421,
            "{wrong}"
        );
    }
    let from = |origin: &str| {
        ask(
            &format!("POST {base}/measure/stop"),
            &format!("{good}Origin: {origin}\r\nContent-Length: 0\r\n"),
        )
    };
    assert_eq!(from("http://evil.example"), 403);
    assert_eq!(from("null"), 403);
    assert_eq!(from(server.origin()), 303);
    assert_eq!(
        ask(
            &format!("POST {base}/measure/stop"),
            &format!("{good}Content-Length: 0\r\n")
        ),
        403
    );
    assert_eq!(ask(&format!("DELETE {base}/"), &good), 405);
}

#[test]
fn every_answer_has_the_strict_policy() {
    let server = Server::with(&[fixture::run()]);
    for path in [
        "/",
        "/zerofill",
        "/static/page.js",
        "/nothing",
        "/measure/state",
        "/compare",
    ] {
        let (_, answer) = server.get(path);
        let head = answer.split("\r\n\r\n").next().unwrap().to_lowercase();
        for header in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "nosniff",
            "no-store",
            "referrer-policy: same-origin",
        ] {
            assert!(head.contains(header), "{path}: {header} not in {head}");
        }
        assert!(!head.contains("unsafe-"), "{path}");
    }
    // What the policy forbids is not in the pages either.
    for path in [
        "/",
        "/zerofill",
        "/measure",
        "/services",
        "/sweeps",
        "/history?probe=syscall.null",
        &format!("/run/{}", fixture::run().id),
    ] {
        let (code, answer) = server.get(path);
        assert_eq!(code, 200, "{path}");
        assert!(
            !answer.contains(" style=\"")
                && !answer.contains(" onclick")
                && !answer.contains("<style"),
            "{path}"
        );
    }
}

fn hostile() -> Run {
    let mut run = fixture::loaded::collapsed();
    let evil =
        "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{202e}\u{1b}[2J";
    run.id = "20260106T030405Z-0000000e".into();
    run.host.hostname = evil.into();
    run.host.kernel = evil.into();
    run.host.cpu.model = evil.into();
    run.host.doubts = vec![evil.into()];
    run.command = vec!["fingerpost".into(), evil.into()];
    run.measurements[0].probe = evil.into();
    run.measurements[1].params = Params::new().with(evil, evil);
    for m in run
        .measurements
        .iter_mut()
        .filter(|m| m.probe == "database.throughput")
    {
        m.params = m.params.clone().with("server", evil);
    }
    run.findings[0].cause = evil.into();
    run.findings[0].evidence = vec![
        fingerpost_record::Evidence::of(fingerpost_record::Metric::Text).saying(evil),
        fingerpost_record::Evidence::of(fingerpost_record::Metric::HostDiffers)
            .named(evil)
            .changing(evil, evil)
            .among([evil, evil]),
    ];
    run.budgets[0].parts[0].component = evil.into();
    run
}

#[test]
fn hostile_strings_stay_text_on_every_page() {
    let run = hostile();
    let server = Server::with(&[run.clone(), fixture::loaded::healthy()]);
    let evil = "%3Cscript%3Ealert(1)%3C%2Fscript%3E%22%27";
    let pages = [
        "/".to_owned(),
        format!("/?q={evil}&host={evil}&lab={evil}&from={evil}"),
        format!("/run/{}", run.id),
        format!("/run/{}/report", run.id),
        format!(
            "/compare?run={}&run={}",
            run.id,
            fixture::loaded::healthy().id
        ),
        format!("/history?probe={evil}&params={evil}"),
        format!("/zerofill?alloc_1={evil}&touch_1={evil}"),
        format!("/run/{evil}"),
        format!("/{evil}"),
    ];
    for page in pages {
        let (code, answer) = server.get(&page);
        assert!((200..500).contains(&code), "{page}: {code}");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        assert!(
            !body.contains("<script>")
                && !body.contains("<img")
                && !body.contains('\u{1b}')
                && !body.contains('\u{202e}'),
            "{page}"
        );
    }
}

/// Bytes that vary from case to case, the same each time (SplitMix64).
struct Bytes(u64);

impl Bytes {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// Damages some bytes, or cuts the end off.
    fn damage(&mut self, text: &[u8]) -> Vec<u8> {
        let mut text = text.to_vec();
        for _ in 0..1 + self.below(6) {
            let at = self.below(text.len());
            match self.below(4) {
                0 => text.truncate(at),
                1 => text.insert(at.min(text.len()), self.next() as u8),
                2 if !text.is_empty() => drop(text.remove(at)),
                _ if !text.is_empty() => text[at] = self.next() as u8,
                _ => {}
            }
        }
        text
    }
}

#[test]
fn a_thousand_malformed_requests_are_answered_or_hung_up_on() {
    let mut server = Server::with(&[fixture::run()]);
    let mut bytes = Bytes(7);
    let (host, origin, base) = (
        server.origin().trim_start_matches("http://").to_owned(),
        server.origin().to_owned(),
        server.base().to_owned(),
    );
    let requests = [
        format!("GET {base}/?q=x&page=2 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
        format!(
            "GET {base}/zerofill?alloc_1=1&touch_1=2 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ),
        format!(
            "GET {base}/run/../../etc/passwd HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ),
        format!(
            "GET {base}/run/%2e%2e%2f%2e%2e HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ),
        format!(
            "POST {base}/zerofill/measure HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nContent-Length: 9\r\n\
             Connection: close\r\n\r\napi=%ff&x"
        ),
        format!(
            "POST {base}/import HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nTransfer-Encoding: chunked\r\n\
             Content-Type: multipart/form-data; boundary=b\r\nConnection: close\r\n\r\n5\r\n--b\r\n\r\n0\r\n\r\n"
        ),
        format!(
            "GET {base}/compare?run=a&run=b HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\
             Connection: close\r\n\r\nabcde"
        ),
    ];
    for i in 0..600 {
        let answer = server.raw(&bytes.damage(requests[i % requests.len()].as_bytes()));
        assert!(answer.is_empty() || status(&answer) > 0, "{answer}");
        assert!(status(&answer) != 500, "{answer}");
    }
    let file = serde_json::to_vec(&fixture::run()).unwrap();
    for i in 0..400 {
        let (code, answer) = server.import(&format!("damaged {i}.json"), &bytes.damage(&file));
        // A byte of a sample may be another digit: then it is a run, if not the one that is kept already.
        assert!(matches!(code, 400 | 303), "{code}: {answer}");
    }
    assert!(server.alive());
    let (code, page) = server.get("/");
    assert!(code == 200 && page.contains("small-guest"));
}

#[test]
fn a_page_that_broke_off_is_served_again_at_its_address() {
    let server = Server::with(&[fixture::run()]);
    let deadline = Instant::now() + Duration::from_secs(60);
    for _ in 0..3 {
        assert_eq!(server.get("/").0, 200);
        let inner = server.inner().unwrap();
        child::signal(inner, libc::SIGABRT).unwrap();
        while server.inner().is_none_or(|now| now == inner) {
            assert!(Instant::now() < deadline, "{}", server.said());
            std::thread::yield_now();
        }
    }
    assert_eq!(
        server.get("/").0,
        200,
        "a request waits for the next process to listen"
    );
    assert_eq!(
        server
            .said()
            .matches("the page broke off, and is served again at the same address")
            .count(),
        3,
        "{}",
        server.said()
    );
    let inner = server.inner().unwrap();
    drop(server);
    assert!(
        !std::path::Path::new(&format!("/proc/{inner}")).exists(),
        "nothing is left of it"
    );
}

#[test]
fn what_is_too_large_is_refused_while_it_comes() {
    let mut server = Server::with(&[]);
    let host = server.origin().trim_start_matches("http://").to_owned();
    let long = format!(
        "GET {}/?q={} HTTP/1.1\r\nHost: {host}\r\n\r\n",
        server.base(),
        "x".repeat(100_000)
    );
    let answer = status(&server.raw(long.as_bytes()));
    assert!(matches!(answer, 0 | 414 | 431), "{answer}");
    let (code, _) = server.post(
        "/measure",
        "application/x-www-form-urlencoded",
        &[b"names=".as_slice(), &vec![b'a'; 200_000]].concat(),
    );
    assert!(matches!(code, 0 | 400 | 413), "{code}");
    let (code, answer) = server.import("large.json", &vec![b' '; 65 << 20]);
    assert!(matches!(code, 0 | 400 | 413), "{code}: {answer}");
    assert!(server.alive() && server.get("/").0 == 200);
}

#[test]
fn unreadable_files_in_the_archive_are_named_and_harm_nothing() {
    let server = Server::with(&[fixture::run()]);
    let runs = server.home.runs();
    std::fs::write(runs.join("empty.json"), "").unwrap();
    std::fs::write(runs.join("<b>.json"), "{\"schema\":\"fingerpost/run/1\"").unwrap();
    std::fs::write(
        runs.join("20260101T000000Z-00000001.json"),
        vec![0xff; 4096],
    )
    .unwrap();
    std::os::unix::fs::symlink("/dev/zero", runs.join("20260101T000000Z-00000002.json")).unwrap();
    let (code, page) = server.get("/");
    assert!(
        code == 200 && page.contains("4 files that are no runs") && page.contains("&lt;b&gt;.json"),
        "{page}"
    );
    assert_eq!(server.get("/run/20260101T000000Z-00000001").0, 422);
    assert_eq!(server.get("/run/20260101T000000Z-00000002").0, 404);
}
