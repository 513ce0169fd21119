//! Who is let in.
//!
//! The server listens on 127.0.0.1 only. Another user of the machine, a page of another site in the same browser, and a
//! name that was made to point at 127.0.0.1 (DNS rebinding) can all reach that port, so that every request must
//!
//! - carry the token in its path. A cookie would be sent to every other local server too, because cookies are not kept
//!   apart by port;
//! - name this server as its host;
//! - come from a page of this server where it says where it comes from (`Origin`), and say so where it changes
//!   anything.
//!
//! Answers carry a policy that lets a page load its own style and script and nothing else, so that a string of a
//! hostile run that escaped the escaping could still do nothing.

use std::io::{self, Read};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

/// The secret part of the address.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// 128 random bits.
    ///
    /// # Errors
    /// When `/dev/urandom` cannot be read.
    pub fn random() -> io::Result<Token> {
        let mut bytes = [0u8; 16];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Token(format!("{:032x}", u128::from_be_bytes(bytes))))
    }

    /// A token that another process made: 32 hexadecimal digits.
    pub fn of(digits: &str) -> Option<Token> {
        (digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .then(|| Token(digits.to_owned()))
    }

    /// Its digits.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The path that every address begins with: `/` and the token.
    pub fn base(&self) -> String {
        format!("/{}", self.0)
    }

    /// The path behind the token, when it begins with the token. Takes the same time wherever a wrong token differs.
    pub fn strip<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rest = path.strip_prefix('/')?;
        let (given, behind) = rest.as_bytes().split_at_checked(self.0.len())?;
        let differ = given
            .iter()
            .zip(self.0.as_bytes())
            .fold(0u8, |d, (a, b)| d | (a ^ b));
        // All of the token is ASCII, so the cut is at a character when they are equal.
        (differ == 0 && behind.first().is_none_or(|b| *b == b'/')).then(|| &rest[self.0.len()..])
    }
}

/// Why a request is turned away, and with which status.
pub type Refusal = (StatusCode, &'static str);

/// Checks who asks. `port` is ours.
///
/// # Errors
/// The refusal.
pub fn check(method: &Method, headers: &HeaderMap, port: u16) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts
        .next()
        .and_then(|h| h.to_str().ok())
        .unwrap_or_default();
    if hosts.next().is_some() || !ours(host, port) {
        return Err((
            StatusCode::MISDIRECTED_REQUEST,
            "This server answers to 127.0.0.1 and localhost only.",
        ));
    }
    if !matches!(*method, Method::GET | Method::HEAD | Method::POST) {
        return Err((
            StatusCode::METHOD_NOT_ALLOWED,
            "Only GET, HEAD and POST are answered.",
        ));
    }
    match headers.get(header::ORIGIN) {
        Some(origin)
            if origin.to_str().ok().and_then(|o| o.strip_prefix("http://")) != Some(host) =>
        {
            Err((
                StatusCode::FORBIDDEN,
                "The request comes from a page of another server.",
            ))
        }
        None if *method == Method::POST => Err((
            StatusCode::FORBIDDEN,
            "A request that changes something must say which page it comes from.",
        )),
        _ => Ok(()),
    }
}

fn ours(host: &str, port: u16) -> bool {
    // A browser leaves the port out when it is 80.
    let (name, given) = host
        .rsplit_once(':')
        .map_or((host, Some(80)), |(name, p)| (name, p.parse().ok()));
    matches!(name, "127.0.0.1" | "localhost") && given == Some(port)
}

/// What every answer says.
pub const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
             form-action 'self'; \
             base-uri 'none'; frame-ancestors 'none'",
        ),
    ),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    // The address holds the token. Within this server the referrer is needed: without it a browser sends the origin
    // “null”.
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("same-origin"),
    ),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(method: Method, headers: &[(&'static str, &'static str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        check(&method, &map, 8042).map_or_else(|r| r.0.as_u16(), |()| 200)
    }

    #[test]
    fn only_this_host_and_this_origin_are_let_in() {
        let host = ("host", "127.0.0.1:8042");
        assert_eq!(asks(Method::GET, &[host]), 200);
        assert_eq!(asks(Method::GET, &[("host", "localhost:8042")]), 200);
        for wrong in [
            "",
            "evil.example",
            "evil.example:8042",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1.evil.example:8042",
            "[::1]:8042",
        ] {
            assert_eq!(asks(Method::GET, &[("host", wrong)]), 421, "{wrong}");
        }
        assert_eq!(asks(Method::GET, &[]), 421);
        assert_eq!(asks(Method::GET, &[host, host]), 421);
        assert_eq!(
            asks(Method::GET, &[host, ("origin", "http://127.0.0.1:8042")]),
            200
        );
        for wrong in [
            "null",
            "http://localhost:8042",
            "https://127.0.0.1:8042",
            "http://evil.example",
            "http://127.0.0.1:8042.evil.example",
        ] {
            assert_eq!(
                asks(Method::GET, &[host, ("origin", wrong)]),
                403,
                "{wrong}"
            );
        }
        assert_eq!(asks(Method::POST, &[host]), 403);
        assert_eq!(
            asks(Method::POST, &[host, ("origin", "http://127.0.0.1:8042")]),
            200
        );
        assert_eq!(asks(Method::DELETE, &[host]), 405);
    }

    #[test]
    fn the_token_is_random_and_must_be_whole() {
        let (a, b) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(a.0, b.0);
        assert_eq!(a.strip(&format!("{}/run/x", a.base())), Some("/run/x"));
        assert_eq!(a.strip(&a.base()), Some(""));
        for wrong in [
            "",
            "/",
            "//",
            &b.base(),
            &a.base()[..20],
            &format!("{}x", a.base()),
            &a.base()[1..],
            "/ééééééééééééééééé",
        ] {
            assert_eq!(a.strip(wrong), None, "{wrong}");
        }
    }
}
