//! Logging in to MariaDB and MySQL.
//!
//! A private server takes its root user without a password. A user's own server may ask for `mysql_native_password` or,
//! MySQL 8, `caching_sha2_password`; the latter's full exchange sends the password itself and is done over a Unix
//! socket only.

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::database::connection::{Login, QueryError};
use crate::database::mysql_wire::Wire;

const LONG_PASSWORD: u32 = 1;
const CONNECT_WITH_DB: u32 = 1 << 3;
const PROTOCOL_41: u32 = 1 << 9;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const PLUGIN_AUTH: u32 = 1 << 19;
const MAX_PACKET: u32 = 16 << 20;
const UTF8MB4: u8 = 45;

const NATIVE: &str = "mysql_native_password";
const CACHING_SHA2: &str = "caching_sha2_password";

const SWITCH: u8 = 0xfe;
const MORE_DATA: u8 = 0x01;
const OK: u8 = 0x00;
const FAST_DONE: u8 = 3;
const SEND_PASSWORD: u8 = 4;

/// Answers the server's greeting until it lets us in.
pub fn log_in(wire: &mut Wire, login: &Login) -> Result<(), QueryError> {
    let (challenge, asked) = parse_greeting(wire.receive_ok()?)
        .ok_or_else(|| QueryError::protocol("this is not a MySQL or MariaDB server"))?;
    let password = login.password().unwrap_or_default();
    // A method that we do not know is answered as the old one; the server then asks for another.
    let mut plugin = if asked == CACHING_SHA2 {
        CACHING_SHA2
    } else {
        NATIVE
    };
    let response = respond(plugin, password, &challenge);
    let with_database = if login.database.is_empty() {
        0
    } else {
        CONNECT_WITH_DB
    };
    let flags = LONG_PASSWORD
        | PROTOCOL_41
        | TRANSACTIONS
        | SECURE_CONNECTION
        | PLUGIN_AUTH
        | with_database;
    let out = wire.packet();
    out.extend(flags.to_le_bytes());
    out.extend(MAX_PACKET.to_le_bytes());
    out.push(UTF8MB4);
    out.extend([0; 23]);
    out.extend(login.user.as_bytes());
    out.push(0);
    out.push(response.len() as u8);
    out.extend(&response);
    if with_database != 0 {
        out.extend(login.database.as_bytes());
        out.push(0);
    }
    out.extend(plugin.as_bytes());
    out.push(0);
    wire.send()?;
    loop {
        let answer = wire.receive_ok()?.to_vec();
        let reply = match (answer[0], answer.get(1)) {
            (OK, _) => return Ok(()),
            (SWITCH, Some(_)) => {
                let (name, challenge) = parse_switch(&answer[1..])
                    .ok_or_else(|| QueryError::protocol("a broken request to log in"))?;
                plugin = [NATIVE, CACHING_SHA2]
                    .into_iter()
                    .find(|known| *known == name)
                    .ok_or_else(|| unknown_method(&name))?;
                respond(plugin, password, challenge)
            }
            (MORE_DATA, Some(&FAST_DONE)) => continue,
            (MORE_DATA, Some(&SEND_PASSWORD)) if wire.stream.is_unix() => {
                [password.as_bytes(), &[0]].concat()
            }
            (MORE_DATA, Some(&SEND_PASSWORD)) => return Err(would_expose_password()),
            _ => return Err(QueryError::protocol("an unknown answer to the log-in")),
        };
        wire.packet().extend(reply);
        wire.send()?;
    }
}

fn unknown_method(name: &str) -> QueryError {
    QueryError::denied(format!(
        "the server asks for the log-in method “{name}”; give it a user with {NATIVE} or {CACHING_SHA2}"
    ))
}

fn would_expose_password() -> QueryError {
    QueryError::denied(
        "the server wants the password itself, which is not sent over TCP without encryption; connect through its Unix \
         socket \
                   (…?socket=PATH), or log in once with another client so that the server has it cached",
    )
}

/// What proves that we know the password without telling it.
fn respond(plugin: &str, password: &str, challenge: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let password = password.as_bytes();
    if plugin == CACHING_SHA2 {
        // SHA256(password) xor SHA256(SHA256(SHA256(password)) challenge)
        let once = Sha256::digest(password);
        let twice = Sha256::digest(once);
        let mask = Sha256::new()
            .chain_update(twice)
            .chain_update(challenge)
            .finalize();
        xor(&once, &mask)
    } else {
        // SHA1(password) xor SHA1(challenge SHA1(SHA1(password)))
        let once = Sha1::digest(password);
        let twice = Sha1::digest(once);
        let mask = Sha1::new()
            .chain_update(challenge)
            .chain_update(twice)
            .finalize();
        xor(&once, &mask)
    }
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// The challenge and the method of what the server says first. Version 10 of it: version text, connection id, challenge
/// in two parts, flags, method.
fn parse_greeting(packet: &[u8]) -> Option<(Vec<u8>, String)> {
    let (&10, rest) = packet.split_first()? else {
        return None;
    };
    let rest = &rest[rest.iter().position(|b| *b == 0)? + 1..];
    let mut challenge = rest.get(4..12)?.to_vec();
    let tail = rest.get(31..)?;
    // The second part is 12 bytes and a zero that does not count.
    challenge.extend(tail.get(..12)?);
    let plugin = tail.get(13..).unwrap_or_default();
    let plugin = plugin.split(|b| *b == 0).next().unwrap_or_default();
    Some((challenge, String::from_utf8_lossy(plugin).into_owned()))
}

/// The method and challenge of a request to log in otherwise.
fn parse_switch(rest: &[u8]) -> Option<(String, &[u8])> {
    let end = rest.iter().position(|b| *b == 0)?;
    let challenge = &rest[end + 1..];
    Some((
        String::from_utf8_lossy(&rest[..end]).into_owned(),
        challenge.strip_suffix(&[0]).unwrap_or(challenge),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting() -> Vec<u8> {
        let mut g = vec![10];
        g.extend(b"10.11.6-MariaDB\0");
        g.extend([7, 0, 0, 0]);
        g.extend(b"abcdefgh\0");
        g.extend([0xff, 0xf7, 45, 2, 0, 0xff, 0x81, 21]);
        g.extend([0; 10]);
        g.extend(b"ijklmnopqrst\0mysql_native_password\0");
        g
    }

    #[test]
    fn a_greeting_is_read_and_a_short_one_is_no_greeting() {
        let read = parse_greeting(&greeting()).unwrap();
        assert_eq!(read, (b"abcdefghijklmnopqrst".to_vec(), NATIVE.to_owned()));
        for length in 0..40 {
            assert_eq!(parse_greeting(&greeting()[..length]), None);
        }
        assert_eq!(parse_greeting(b"HTTP/1.1 400 Bad Request"), None);
    }

    #[test]
    fn responses_are_those_of_the_servers_own_check() {
        // The server keeps SHA1(SHA1(password)); it takes the mask off the response and hashes once more.
        let challenge = b"abcdefghijklmnopqrst";
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let mask = Sha1::new()
            .chain_update(challenge)
            .chain_update(stored)
            .finalize();
        let once = xor(&respond(NATIVE, "secret", challenge), &mask);
        assert_eq!(Sha1::digest(once), stored);
        let stored = Sha256::digest(Sha256::digest(b"secret"));
        let mask = Sha256::new()
            .chain_update(stored)
            .chain_update(challenge)
            .finalize();
        let once = xor(&respond(CACHING_SHA2, "secret", challenge), &mask);
        assert_eq!(Sha256::digest(once), stored);
        assert!(respond(NATIVE, "", challenge).is_empty());
    }
}
