//! HTTP requests as a static server reads them.

use fingerpost_odb::percent;

/// The longest head of a request.
const MAX_HEAD: usize = 16 << 10;

/// What a request wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The path with percent signs resolved, without the query.
    pub path: Vec<u8>,
    /// Whether only the head of the answer is wanted.
    pub head_only: bool,
    /// Whether the connection stays open.
    pub keep_alive: bool,
    /// Bytes of the request.
    pub length: usize,
}

/// What bytes from a client are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The beginning of a request.
    Partial,
    /// A request.
    Whole(Wanted),
    /// Something that is answered with this status, after which the connection ends.
    Bad(u16),
}

/// Reads one request from the beginning of `bytes`.
pub fn parse(bytes: &[u8]) -> Parsed {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() <= MAX_HEAD => return Parsed::Partial,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Parsed::Bad(431);
        }
        Err(_) => return Parsed::Bad(400),
    };
    let mut keep_alive = request.version == Some(1);
    let has_host = request
        .headers
        .iter()
        .any(|f| f.name.eq_ignore_ascii_case("host"));
    for field in request.headers.iter() {
        if field.name.eq_ignore_ascii_case("connection") {
            for word in field.value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
                keep_alive = word.eq_ignore_ascii_case(b"keep-alive")
                    || keep_alive && !word.eq_ignore_ascii_case(b"close");
            }
        }
        // A body would have to be read past; nothing that is served here takes one.
        let body = field.name.eq_ignore_ascii_case("transfer-encoding")
            || field.name.eq_ignore_ascii_case("content-length") && field.value != b"0";
        if body {
            return Parsed::Bad(400);
        }
    }
    if request.version == Some(1) && !has_host {
        return Parsed::Bad(400);
    }
    let head_only = match request.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Parsed::Bad(405),
    };
    let path = request
        .path
        .and_then(|p| p.split(['?', '#']).next())
        .filter(|p| p.starts_with('/'));
    let Some(path) = path.and_then(|p| percent::decode(p.as_bytes())) else {
        return Parsed::Bad(400);
    };
    Parsed::Whole(Wanted {
        path,
        head_only,
        keep_alive,
        length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(text: &str) -> Wanted {
        match parse(text.as_bytes()) {
            Parsed::Whole(wanted) => wanted,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn a_request_says_what_it_wants_and_whether_to_stay() {
        let first = "GET /a%20b.html?x=1 HTTP/1.1\r\nHost: h\r\n\r\n";
        let w = whole(&format!("{first}GET /next"));
        assert_eq!(
            (w.path.as_slice(), w.head_only, w.keep_alive, w.length),
            (&b"/a b.html"[..], false, true, first.len())
        );
        assert!(whole("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n").head_only);
        assert!(!whole("GET / HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\n").keep_alive);
        assert!(!whole("GET / HTTP/1.0\r\n\r\n").keep_alive);
        assert!(whole("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
    }

    #[test]
    fn what_is_no_request_for_a_file_is_refused() {
        assert_eq!(parse(b"GET / HTTP/1.1\r\nHost"), Parsed::Partial);
        assert_eq!(
            parse(b"POST / HTTP/1.1\r\nHost: h\r\n\r\n"),
            Parsed::Bad(405)
        );
        assert_eq!(parse(b"GET / HTTP/1.1\r\n\r\n"), Parsed::Bad(400));
        assert_eq!(
            parse(b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"),
            Parsed::Bad(400)
        );
        assert_eq!(
            parse(b"GET /%4 HTTP/1.1\r\nHost: h\r\n\r\n"),
            Parsed::Bad(400)
        );
        assert_eq!(
            parse(b"GET x HTTP/1.1\r\nHost: h\r\n\r\n"),
            Parsed::Bad(400)
        );
        assert_eq!(parse(b"\x16\x03\x01"), Parsed::Bad(400));
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(MAX_HEAD));
        assert_eq!(parse(long.as_bytes()), Parsed::Bad(431));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = parse(&bytes);
            let _ = parse(&[b"GET /", bytes.as_slice(), b" HTTP/1.1\r\nHost: h\r\n\r\n"].concat());
        }
    }
}
