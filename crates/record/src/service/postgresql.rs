//! PostgreSQL.

use super::adapter::{Adapter, UNKNOWN};
use crate::under_way::{Session, SessionState};

/// PostgreSQL.
pub const POSTGRESQL: Adapter = Adapter {
    name: "postgresql",
    product: "PostgreSQL",
    loaded_as: Some("postgres"),
    ports: &[5432],
    logins: &["postgres", "postgresql"],
    session: parse_title,
    // A standby tells how far it is, and expects no answer.
    unasked: &["postgres: walsender "],
    waits: &["PGSemaphore", "LWLockAcquire"],
    ..UNKNOWN
};

/// What the title of a process says of its session: backends write it over their arguments, as `postgres: user database
/// 127.0.0.1(5123) UPDATE waiting`. The name of the cluster stands before the user where it has one (`postgres: main:
/// user …`).
fn parse_title(text: &str) -> Option<Session> {
    let text = text.trim_end_matches(['\0', ' ']);
    let rest = text.strip_prefix("postgres: ")?;
    let mut words: Vec<&str> = rest.split(' ').filter(|w| !w.is_empty()).collect();
    if words.first().is_some_and(|w| w.ends_with(':')) {
        words.remove(0);
    }
    let [user, database, client, what @ ..] = words.as_slice() else {
        return None;
    };
    let of_client = *client == "[local]" || (client.ends_with(')') && client.contains('('));
    if !of_client {
        return None;
    }
    let all = what.join(" ");
    let (command, state) = if all == "idle" {
        ("", SessionState::Idle)
    } else if all.starts_with("idle in transaction") {
        ("", SessionState::IdleInTransaction)
    } else if let Some((command, _)) = all.split_once(" waiting for ") {
        (command, SessionState::WaitingForStandby)
    } else if let Some(command) = all.strip_suffix(" waiting") {
        (command, SessionState::Waiting)
    } else {
        (all.as_str(), SessionState::Active)
    };
    Some(Session {
        user: (*user).to_owned(),
        database: (*database).to_owned(),
        client: address(client),
        command: command.to_owned(),
        state,
    })
}

/// `127.0.0.1(5123)` as an address is written.
fn address(client: &str) -> String {
    match client.strip_suffix(')').and_then(|c| c.split_once('(')) {
        Some((host, port)) if host.contains(':') => format!("[{host}]:{port}"),
        Some((host, port)) => format!("{host}:{port}"),
        None => client.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITING: &str = "postgres: bob shop 127.0.0.1(51234) UPDATE waiting\0\0\0";

    fn state(text: &str) -> Option<(String, SessionState)> {
        parse_title(text).map(|s| (s.command, s.state))
    }

    #[test]
    fn titles_of_backends() {
        let session = parse_title(WAITING).unwrap();
        assert_eq!(
            (session.user.as_str(), session.database.as_str()),
            ("bob", "shop")
        );
        assert_eq!(session.client, "127.0.0.1:51234");
        assert_eq!(
            state(WAITING),
            Some(("UPDATE".into(), SessionState::Waiting))
        );
        assert_eq!(
            state("postgres: 15/main: bob shop [local] idle in transaction"),
            Some((String::new(), SessionState::IdleInTransaction))
        );
        assert_eq!(
            state("postgres: bob shop ::1(5) COMMIT waiting for 0/3000060"),
            Some(("COMMIT".into(), SessionState::WaitingForStandby))
        );
        assert_eq!(
            parse_title("postgres: bob shop ::1(5) SELECT")
                .unwrap()
                .client,
            "[::1]:5"
        );
        assert_eq!(
            state("postgres: bob shop [local] idle"),
            Some((String::new(), SessionState::Idle))
        );
        for other in [
            "postgres: checkpointer ",
            "postgres: walwriter",
            "postgres: logical replication launcher",
            "/usr/bin/postgres -D /var",
            "nginx: worker process",
            "",
        ] {
            assert_eq!(parse_title(other), None, "{other}");
        }
    }

    #[test]
    fn no_changed_byte_makes_it_panic_or_lengthens_its_answer() {
        for at in 0..WAITING.len() {
            for value in [0, b' ', b'(', b')', b':', 0x7f, 0xff] {
                let mut bad = WAITING.as_bytes().to_vec();
                bad[at] = value;
                for bytes in [&bad[..], &bad[..at]] {
                    if let Some(s) = parse_title(&String::from_utf8_lossy(bytes)) {
                        let told = s.user.len() + s.database.len() + s.client.len();
                        assert!(told + s.command.len() <= WAITING.len() + 4);
                    }
                }
            }
        }
    }
}
