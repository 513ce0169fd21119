//! The name that a mistyped word was most likely meant to be.

use strsim::damerau_levenshtein;

/// The nearest of the known names: one that differs by a slip or two of the finger, else the only one that begins with
/// the word, else one with a part (between dots) that is the word. Nothing where none is near: a far name would
/// mislead.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    if !(2..=60).contains(&length) {
        return None;
    }
    let known: Vec<&str> = known.into_iter().collect();
    let near = |name: &str| damerau_levenshtein(&word, &name.to_lowercase());
    let slip = known
        .iter()
        .map(|name| (near(name), *name))
        .filter(|(far, _)| *far <= slips(length))
        .min_by_key(|(far, _)| *far);
    let begun = || {
        let mut those = known
            .iter()
            .filter(|name| length >= 3 && name.to_lowercase().starts_with(&word));
        those.next().filter(|_| those.next().is_none()).copied()
    };
    let part = || {
        known
            .iter()
            .find(|name| {
                name.split('.')
                    .any(|part| length >= 3 && damerau_levenshtein(&word, part) < slips(length))
            })
            .copied()
    };
    slip.map(|(_, name)| name).or_else(begun).or_else(part)
}

/// How many letters may be wrong, missing, too many or exchanged in a word of this length.
fn slips(length: usize) -> usize {
    match length {
        0..=4 => 1,
        5..=8 => 2,
        _ => 3,
    }
}

/// `did you mean “NAME”?`, or what else is to be said.
pub fn or_else<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: impl FnOnce() -> String,
) -> String {
    match nearest(word, known) {
        Some(name) => format!("did you mean “{name}”?"),
        None => otherwise(),
    }
}

/// `; did you mean “NAME”?`, of the words that a setting takes as they are listed (`on, off or both`); nothing where
/// none is near.
pub fn of_listed(word: &str, listed: &str) -> String {
    let words = listed
        .split(|c: char| !(c.is_alphanumeric() || "_-.".contains(c)))
        .filter(|w| !w.is_empty() && *w != "or");
    nearest(word, words).map_or(String::new(), |name| format!("; did you mean “{name}”?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 7] = [
        "run",
        "show",
        "syscall.null",
        "syscall.read",
        "database",
        "cpu.quota",
        "g5-2.7-darwin",
    ];

    #[test]
    fn slips_of_the_finger_find_the_name() {
        for (word, meant) in [
            ("rnu", "run"),
            ("RUN", "run"),
            ("shwo", "show"),
            ("syscal.nul", "syscall.null"),
            ("datbase", "database"),
            ("data", "database"),
            ("cpu.quot", "cpu.quota"),
            ("null", "syscall.null"),
            ("g5-2.7-darwim", "g5-2.7-darwin"),
        ] {
            assert_eq!(nearest(word, KNOWN), Some(meant), "{word}");
        }
    }

    #[test]
    fn a_value_is_held_against_those_that_are_listed() {
        assert_eq!(
            of_listed("ngnix", "embedded, nginx or apache"),
            "; did you mean “nginx”?"
        );
        assert_eq!(of_listed("no", "on, off or both"), "; did you mean “on”?");
        assert_eq!(of_listed("lighttpd", "embedded, nginx or apache"), "");
    }

    #[test]
    fn what_is_like_nothing_is_told_nothing() {
        for word in [
            "",
            "x",
            "nginx",
            "sys",
            "g4",
            "opteron",
            "ref:",
            &"a".repeat(1000),
        ] {
            assert_eq!(nearest(word, KNOWN), None, "{word}");
        }
        assert_eq!(
            or_else("nginx", KNOWN, || "look there".into()),
            "look there"
        );
        assert_eq!(or_else("rnu", KNOWN, String::new), "did you mean “run”?");
    }
}
