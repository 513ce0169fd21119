//! The address of a user's own server: `mysql://USER:PASSWORD@HOST:PORT/NAME?socket=PATH`, `postgres://…`, `redis://…`.

use fingerpost_odb::percent;
use fingerpost_record::{Secret, secret, suggest};

use crate::WorkloadError;
use crate::database::connection::{Login, Protocol};
use crate::database::redis;
use crate::database::stream::Address;

/// The database that is made when the address names none.
const DEFAULT_NAME: &str = "fingerpost";

/// Reads an address. The login's database is the one to be made and dropped.
pub fn parse(url: &str) -> Result<(Protocol, Login), WorkloadError> {
    let wrong = |what: &str| {
        let safe = secret::cut(url);
        Err(WorkloadError::Setting(format!(
            "url={safe}: {what}; write mysql://USER@HOST:PORT/NAME, postgres://… or redis://…"
        )))
    };
    let Some((scheme, rest)) = url.split_once("://") else {
        return wrong("it has no scheme");
    };
    // With the user and the port where an address names none.
    let (protocol, default_user, default_port) = match scheme {
        "mysql" | "mariadb" => (Protocol::MySql, "root", 3306),
        "postgres" | "postgresql" => (Protocol::Postgres, "postgres", 5432),
        "redis" => (Protocol::Redis, redis::DEFAULT_USER, 6379),
        other => {
            let near = suggest::nearest(
                other,
                ["mysql", "mariadb", "postgres", "postgresql", "redis"],
            );
            let meant = near.map_or(String::new(), |near| format!(" (did you mean “{near}”?)"));
            return wrong(&format!(
                "the scheme is none of mysql, postgres and redis{meant}"
            ));
        }
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
    let (credentials, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = credentials
        .split_once(':')
        .map_or((credentials, None), |(u, p)| (u, Some(p)));
    let (Some(user), Some(password)) = (
        decode(user),
        password.map_or(Some(None), |p| decode(p).map(Some)),
    ) else {
        return wrong("user or password has a % that is not followed by two hexadecimal digits");
    };
    let (host, port) = match split_port(host) {
        Some((host, None)) => (host, default_port),
        Some((host, Some(port))) => match port.parse() {
            Ok(port) if port > 0 => (host, port),
            _ => return wrong("the port is not a number from 1 to 65535"),
        },
        None => return wrong("the host has a [ without ]"),
    };
    let mut address = Address::Tcp(
        if host.is_empty() {
            "127.0.0.1".to_owned()
        } else {
            host.to_owned()
        },
        port,
    );
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("socket", path)) if !path.is_empty() => match decode(path) {
                Some(path) => address = Address::Unix(path.into()),
                None => return wrong("the socket's path has a broken %"),
            },
            _ => return wrong("the only option that it takes is socket=PATH"),
        }
    }
    let name = if name.is_empty() { DEFAULT_NAME } else { name };
    if !is_plain_name(name) {
        return wrong(
            "the database's name may have letters, digits and _ only, and begins with a letter",
        );
    }
    let user = if user.is_empty() {
        default_user.to_owned()
    } else {
        user
    };
    let password = password.map(Secret::new);
    Ok((
        protocol,
        Login {
            address,
            user,
            password,
            database: name.to_owned(),
        },
    ))
}

/// A name that can stand in SQL as it is.
pub fn is_plain_name(name: &str) -> bool {
    name.len() <= 60
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Host and port of `host`, `host:port`, `[v6]` or `[v6]:port`.
fn split_port(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, tail) = rest.split_once(']')?;
        return Some((host, tail.strip_prefix(':')));
    }
    Some(
        text.split_once(':')
            .map_or((text, None), |(host, port)| (host, Some(port))),
    )
}

/// `%40` becomes `@`.
fn decode(text: &str) -> Option<String> {
    String::from_utf8(percent::decode(text.as_bytes())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(url: &str) -> (Protocol, Login) {
        parse(url).unwrap()
    }

    #[test]
    fn an_address_has_everything_or_defaults() {
        let (protocol, full) = login("mysql://bob:p%40ss@db.example:3307/bench_1");
        assert_eq!(protocol, Protocol::MySql);
        assert_eq!(
            (full.user.as_str(), full.password(), full.database.as_str()),
            ("bob", Some("p@ss"), "bench_1")
        );
        assert_eq!(full.address, Address::Tcp("db.example".into(), 3307));
        let (protocol, short) = login("postgresql://");
        assert_eq!(protocol, Protocol::Postgres);
        assert_eq!(
            (
                short.user.as_str(),
                short.password(),
                short.database.as_str()
            ),
            ("postgres", None, "fingerpost")
        );
        assert_eq!(short.address, Address::Tcp("127.0.0.1".into(), 5432));
        assert_eq!(
            login("mysql://root@localhost/x?socket=/run/a%20b.sock")
                .1
                .address,
            Address::Unix("/run/a b.sock".into())
        );
        assert_eq!(
            login("mysql://[::1]:99/x").1.address,
            Address::Tcp("::1".into(), 99)
        );
        let (protocol, redis) = login("redis://cache.example");
        assert_eq!(
            (protocol, redis.user.as_str()),
            (Protocol::Redis, "default")
        );
        assert_eq!(redis.address, Address::Tcp("cache.example".into(), 6379));
    }

    #[test]
    fn a_bad_address_is_told_in_a_sentence_without_its_password() {
        for (url, what) in [
            ("nonsense", "no scheme"),
            ("oracle://x", "none of mysql, postgres and redis"),
            ("mysql://u:secret@h:0/x", "port"),
            ("mysql://u:secret@h:99999/x", "port"),
            ("mysql://u:secret@h/x;drop", "letters, digits"),
            ("mysql://u:secret@h/X", "letters, digits"),
            ("mysql://u:%zz@h/x", "hexadecimal"),
            ("mysql://[::1/x", "without ]"),
            ("postgres://u:secret@h/x?ssl=1", "socket=PATH"),
        ] {
            let sentence = parse(url).unwrap_err().to_string();
            assert!(sentence.contains(what), "{url}: {sentence}");
            assert!(!sentence.contains("secret"), "{sentence}");
        }
    }
}
