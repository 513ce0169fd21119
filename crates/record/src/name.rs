//! What a run measured, in a few words: how lists and titles tell runs apart.
//!
//! The words come from the command that made the run, which the head of its file has: a list needs not read what was
//! measured.

use crate::said::Said;
use crate::service;
use crate::text::clean_short;

/// A name longer than this is cut.
const MOST: usize = 80;

/// Settings that say nothing of what was measured.
const UNTOLD: [&str; 3] = ["password_file", "engine", "server"];

/// The name of a run: its label, where its user gave one, before what was measured by [`of_command`]. Cleaned.
pub fn of(label: Option<&str>, command: &[String]) -> Option<String> {
    let label = label
        .map(|l| clean_short(l, crate::run::LONGEST_LABEL))
        .filter(|l| !l.is_empty());
    match (label, of_command(command)) {
        (Some(label), Some(measured)) => Some(format!("{label}: {measured}")),
        (label, measured) => label.or(measured),
    }
}

/// The name of a run by its command: `MariaDB, query cache on, 1–50 clients`. Nothing where the command says nothing of
/// it. What a hostile file has as its command is cleaned.
pub fn of_command(command: &[String]) -> Option<String> {
    let (what, words) = command.get(1..)?.split_first()?;
    let name = match what.as_str() {
        "run" => of_run(words),
        "ab" => of_ab(words),
        "explain" => of_service(words),
        "load" => of_load(words),
        "prove" => Some("planted causes".to_owned()),
        "compare" if words.iter().any(|word| word == "--settle") => {
            Some("a change by itself".to_owned())
        }
        _ => None,
    }?;
    Some(clean_short(&name, MOST))
}

/// What users call a server that settings name in small letters.
pub fn product(word: &str) -> &str {
    match word {
        "sqlite" => "SQLite",
        "embedded" => "the embedded web server",
        other => service::product(other).unwrap_or(other),
    }
}

fn of_run(words: &[String]) -> Option<String> {
    let said = Said::of(words);
    let value = |key: &str| said.value(key);
    let names = &said.names;
    let mut settings = said.settings.clone();
    let mut measured = match names.as_slice() {
        [] => "all primitives".to_owned(),
        [first, second, rest @ ..] if rest.len() > 1 => {
            format!(
                "{}, {} and {} more",
                subject(first, value),
                subject(second, value),
                rest.len()
            )
        }
        few => listed(
            &few.iter()
                .map(|name| subject(name, value))
                .collect::<Vec<_>>(),
        ),
    };
    let watches = said.option("--watch").is_some();
    let after_boot = watches || (*names == ["launch"] && value("state") == Some("after-boot"));
    if after_boot {
        settings.retain(|(key, _)| *key != "state");
        measured = "page-ins since boot".to_owned();
    }
    let told = settings
        .iter()
        .filter(|(key, _)| !UNTOLD.contains(key))
        .map(|(key, value)| setting(key, value));
    Some(
        std::iter::once(measured)
            .chain(told)
            .collect::<Vec<_>>()
            .join(", "),
    )
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [first @ .., before, last] => {
            let first: String = first.iter().map(|name| format!("{name}, ")).collect();
            format!("{first}{before} and {last}")
        }
        few => few.concat(),
    }
}

/// A lab by what it loads, a probe by its name.
fn subject<'a>(name: &'a str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let server = match name {
        "database" => value("engine").or(Some("sqlite")),
        "web" => value("server").or(Some("embedded")),
        _ => None,
    };
    match (name, server) {
        (_, Some(server)) => product(server).to_owned(),
        ("zerofill", _) => "zero-filling".to_owned(),
        ("site", _) => "site: files against databases".to_owned(),
        ("launch", _) => "launching applications".to_owned(),
        ("flops", _) => "floating point".to_owned(),
        _ => name.to_owned(),
    }
}

/// `query cache on`, `1–50 clients`, `fds 10,500`.
fn setting(key: &str, value: &str) -> String {
    let words = key.replace('_', " ");
    if matches!(key, "clients" | "connections") {
        let mut numbers: Vec<u64> = value.split(',').filter_map(|n| n.parse().ok()).collect();
        numbers.sort_unstable();
        match numbers.as_slice() {
            [one] => return crate::text::counted(*one, key.trim_end_matches('s')),
            [first, .., last] => return format!("{first}–{last} {key}"),
            [] => {}
        }
    }
    // A server's variable is called what its manual calls it.
    key.strip_prefix("server.").map_or_else(
        || format!("{words} {value}"),
        |variable| format!("{variable}={value}"),
    )
}

fn of_ab(words: &[String]) -> Option<String> {
    let after = |option: &str| {
        words
            .iter()
            .position(|w| w == option)
            .and_then(|at| words.get(at + 1))
    };
    let (what, a, b) = (
        words.first().filter(|w| !w.starts_with('-'))?,
        after("--a")?,
        after("--b")?,
    );
    let side = |word: &str| {
        word.split_once('=')
            .map_or(word.to_owned(), |(key, value)| setting(key, value))
    };
    Some(format!(
        "{}, {} beside {}",
        subject(what, |_| None),
        side(a),
        side(b)
    ))
}

fn of_service(words: &[String]) -> Option<String> {
    let after = |option: &str| {
        words
            .iter()
            .position(|w| w == option)
            .and_then(|at| words.get(at + 1))
    };
    let named = ["--label", "--unit", "--container", "--cgroup"]
        .iter()
        .find_map(|option| after(option))
        .map(|name| format!("service {name}"));
    let numbered = || {
        after("--port")
            .map(|port| format!("service at port {port}"))
            .or(after("--pid").map(|pid| format!("service of pid {pid}")))
    };
    named.or_else(numbered)
}

/// Whom a client machine loaded: the server without the user's name before it.
fn of_load(words: &[String]) -> Option<String> {
    let server = *Said::of(words).names.first()?;
    let place = server.split_once("://").map_or(server, |(_, place)| place);
    Some(format!(
        "load on {}",
        place.rsplit_once('@').map_or(place, |(_, host)| host)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(command: &str) -> Option<String> {
        of_command(&command.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn runs_are_called_what_they_measured() {
        for (command, called) in [
            ("fingerpost run", "all primitives"),
            (
                "/usr/bin/fingerpost run --profile quick --seed 42",
                "all primitives",
            ),
            (
                "fingerpost run database --profile quick --set engine=mariadb --set query_cache=on --set \
                 clients=1,50,10",
                "MariaDB, query cache on, 1–50 clients",
            ),
            ("fingerpost run database", "SQLite"),
            (
                "fingerpost run database ipc.tcp --set engine=mariadb --set server.external_locking=1",
                "MariaDB and ipc.tcp, external_locking=1",
            ),
            ("fingerpost run launch --watch 2s", "page-ins since boot"),
            (
                "fingerpost run launch --set state=after-boot",
                "page-ins since boot",
            ),
            (
                "fingerpost run launch --set placements=file,dual",
                "launching applications, placements file,dual",
            ),
            (
                "fingerpost run --set=server=nginx web --set connections=10",
                "nginx, 10 connections",
            ),
            ("fingerpost run zerofill -o a.json", "zero-filling"),
            (
                "fingerpost run syscall.null clock",
                "syscall.null and clock",
            ),
            ("fingerpost run a b c --budget 6", "a, b and c"),
            (
                "fingerpost run a b c d e --set fds=10,500",
                "a, b and 3 more, fds 10,500",
            ),
            (
                "fingerpost ab syscall.poll --a fds=50 --b fds=200 --budget 3",
                "syscall.poll, fds 50 beside fds 200",
            ),
            (
                "fingerpost explain --unit mariadb --seconds 30",
                "service mariadb",
            ),
            (
                "fingerpost compare latest~1 latest --settle --budget 60",
                "a change by itself",
            ),
            ("fingerpost explain --port 8080", "service at port 8080"),
            (
                "fingerpost load -c 4 mysql://bench:x@db-1:3306/shop --seconds 20",
                "load on db-1:3306/shop",
            ),
            ("fingerpost load --label a db-1:6379", "load on db-1:6379"),
        ] {
            assert_eq!(name(command).as_deref(), Some(called), "{command}");
        }
    }

    #[test]
    fn what_says_nothing_has_no_name_and_hostile_ones_are_harmless() {
        assert_eq!(
            (
                name(""),
                name("fingerpost"),
                name("hyperfine x"),
                of_command(&[])
            ),
            (None, None, None, None)
        );
        let hostile =
            of_command(&["f", "run", "\u{1b}[2J", &"x".repeat(5000)].map(str::to_owned)).unwrap();
        assert!(!hostile.contains('\u{1b}') && hostile.chars().count() <= MOST + 1);
        assert_eq!(name("fingerpost run --set"), Some("all primitives".into()));
    }
}
