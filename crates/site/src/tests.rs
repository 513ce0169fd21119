use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;

use fingerpost_odb::transfer::import;
use fingerpost_odb::{Database, Store};
use fingerpost_sys::beneath::Links;

use super::*;

/// Status, head and body.
type Answered = (u16, String, Vec<u8>);
type Send<'a> = dyn Fn(&str) -> Answered + 'a;

/// Sends requests over one connection each to a served directory and to the same site in a database, and checks each
/// answer.
fn with_servers(check: impl Fn(&Send)) {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    fs::create_dir_all(dir.join("sub dir")).unwrap();
    fs::create_dir_all(dir.join("noindex")).unwrap();
    fs::write(dir.join("index.html"), "<p>home").unwrap();
    fs::write(dir.join("sub dir/index.html"), "<p>sub").unwrap();
    fs::write(dir.join("digits.txt"), "0123456789").unwrap();
    fs::write(base.path().join("secret"), "secret").unwrap();
    let file = base.path().join("odb");
    import(&dir, &file, Store::ALL[0], false, &|| false).unwrap();
    for source in [
        Source::directory(&dir, Links::None).unwrap(),
        Source::Odb(Database::open(&file).unwrap()),
    ] {
        let (source, listener) = (Arc::new(source), listen(0).unwrap());
        let address = listener.local_addr().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener, &source, &|| stop.load(Ordering::Relaxed)).unwrap());
            check(&|request| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream
                    .write_all(request.replace('\n', "\r\n").as_bytes())
                    .unwrap();
                let mut all = Vec::new();
                stream.read_to_end(&mut all).unwrap();
                let end = all.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
                let head = String::from_utf8(all[..end].to_vec()).unwrap();
                (head[9..12].parse().unwrap(), head, all[end + 4..].to_vec())
            });
            stop.store(true, Ordering::Relaxed);
        });
    }
}

fn ask(send: &Send, path: &str, fields: &str) -> Answered {
    send(&format!(
        "GET {path} HTTP/1.1\nHost: 127.0.0.1:1\nConnection: close\n{fields}\n"
    ))
}

#[test]
fn pages_indexes_and_types() {
    with_servers(|send| {
        let (status, head, body) = ask(send, "/", "");
        assert_eq!((status, body.as_slice()), (200, &b"<p>home"[..]));
        assert!(
            head.contains("Content-Type: text/html; charset=utf-8")
                && head.contains("Etag: ")
                && head.contains("Last-Modified: ")
        );
        assert_eq!(ask(send, "/sub%20dir/", "").2, b"<p>sub");
        let (status, head, _) = ask(send, "/sub%20dir?x=1", "");
        assert!(
            status == 301 && head.contains("Location: /sub%20dir/?x=1"),
            "{head}"
        );
        assert!(ask(send, "/digits.txt", "").1.contains("text/plain"));
        let (status, head, body) =
            send("HEAD /digits.txt HTTP/1.1\nHost: localhost\nConnection: close\n\n");
        assert!(status == 200 && head.contains("Content-Length: 10") && body.is_empty());
    });
}

#[test]
fn no_path_leads_out_of_the_site() {
    with_servers(|send| {
        for path in [
            "/../secret",
            "/%2e%2e/secret",
            "/sub%20dir/../../secret",
            "//etc/passwd",
            "/a%00b",
            "/none",
            "/noindex/",
            "/index.html/x",
        ] {
            assert_eq!(ask(send, path, "").0, 404, "{path}");
        }
        assert_eq!(
            send("GET / HTTP/1.1\nHost: evil.example\nConnection: close\n\n").0,
            421
        );
        assert_eq!(send("POST / HTTP/1.1\nHost: localhost\n\n").0, 405);
        assert_eq!(send("nonsense\n\n").0, 400);
    });
}

#[test]
fn ranges() {
    with_servers(|send| {
        let of = |range: &str| ask(send, "/digits.txt", &format!("Range: {range}\n"));
        for (range, body, content) in [
            ("bytes=2-4", "234", "bytes 2-4/10"),
            ("bytes=7-", "789", "bytes 7-9/10"),
            ("bytes=-3", "789", "bytes 7-9/10"),
            ("bytes=8-99", "89", "bytes 8-9/10"),
        ] {
            let (status, head, got) = of(range);
            assert_eq!((status, got.as_slice()), (206, body.as_bytes()), "{range}");
            assert!(
                head.contains(&format!("Content-Range: {content}")),
                "{head}"
            );
        }
        for none in ["bytes=10-", "bytes=-0"] {
            let (status, head, _) = of(none);
            assert!(
                status == 416 && head.contains("Content-Range: bytes */10"),
                "{none}"
            );
        }
        for ignored in ["bytes=4-2", "bytes=0-1,3-4", "lines=1-2", "bytes=x"] {
            assert_eq!(of(ignored).0, 200, "{ignored}");
        }
        let (_, head, _) = ask(send, "/digits.txt", "");
        let tag = head
            .lines()
            .find_map(|l| l.strip_prefix("Etag: "))
            .unwrap()
            .to_owned();
        assert_eq!(
            ask(
                send,
                "/digits.txt",
                &format!("Range: bytes=0-0\nIf-Range: {tag}\n")
            )
            .0,
            206
        );
        assert_eq!(
            ask(
                send,
                "/digits.txt",
                "Range: bytes=0-0\nIf-Range: \"other\"\n"
            )
            .0,
            200
        );
    });
}

#[test]
fn what_the_client_has_is_not_sent_again() {
    with_servers(|send| {
        let (_, head, _) = ask(send, "/digits.txt", "");
        let field = |name: &str| {
            head.lines()
                .find_map(|l| l.strip_prefix(name))
                .unwrap()
                .to_owned()
        };
        let (tag, modified) = (field("Etag: "), field("Last-Modified: "));
        let (status, _, body) = ask(
            send,
            "/digits.txt",
            &format!("If-None-Match: \"x\", {tag}\n"),
        );
        assert_eq!((status, body.len()), (304, 0));
        assert_eq!(
            ask(
                send,
                "/digits.txt",
                &format!("If-Modified-Since: {modified}\n")
            )
            .0,
            304
        );
        assert_eq!(
            ask(
                send,
                "/digits.txt",
                "If-Modified-Since: Thu, 01 Jan 1970 00:00:01 GMT\n"
            )
            .0,
            200
        );
        assert_eq!(
            ask(
                send,
                "/digits.txt",
                &format!("If-None-Match: \"x\"\nIf-Modified-Since: {modified}\n")
            )
            .0,
            200,
            "a tag counts more"
        );
    });
}
