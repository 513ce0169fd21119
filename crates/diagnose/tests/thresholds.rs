//! No verdict turns on a figure without a name: those of causes are in the registry (`fingerpost_diagnose::causes`), each
//! with its source.

use std::fs;
use std::path::{Path, PathBuf};

/// The files in which causes are judged.
fn rules() -> Vec<PathBuf> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let of = |folder: &str| {
        fs::read_dir(src.join(folder))
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
    };
    of("sides")
        .chain(of("probes"))
        .chain(of("causes"))
        .chain(of("one_side"))
        .chain([src.join("judging.rs")])
        .filter(|path| !path.ends_with("tests.rs"))
        .collect()
}

/// The figure that a word begins or ends with, brackets and commas left out.
fn figure(word: &str) -> Option<f64> {
    let digits = word.trim_matches(|c: char| !c.is_ascii_digit());
    let rest = word.replacen(digits, "", 1);
    let bare = rest.chars().all(|c| "(),;{}[]!-".contains(c));
    digits
        .replace('_', "")
        .parse()
        .ok()
        .filter(|_| bare && !digits.is_empty())
}

/// Comparisons with a figure, and figures that are handed to a sign as its threshold. Nothing and one mean themselves.
fn unnamed(code: &str) -> Vec<String> {
    let own = |figure: f64| figure != 0.0 && figure != 1.0;
    let compared = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let beside = |at: usize| {
            [at.checked_sub(1), Some(at + 1)]
                .into_iter()
                .flatten()
                .filter_map(|i| words.get(i))
        };
        let compares = |word: &str| ["<", ">", "<=", ">="].contains(&word);
        let of_comparison = (0..words.len())
            .filter(|at| compares(words[*at]))
            .flat_map(beside)
            .any(|w| figure(w).is_some_and(own));
        of_comparison || line.contains("grows(") && words.iter().any(|w| figure(w).is_some_and(own))
    };
    let lines = code
        .lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"));
    lines
        .filter(|line| !line.trim_start().starts_with("//"))
        .filter(compared)
        .map(|line| line.trim().to_owned())
        .collect()
}

#[test]
fn no_verdict_turns_on_a_figure_without_a_name() {
    let of = |path: &PathBuf| unnamed(&fs::read_to_string(path).unwrap());
    let files = rules();
    assert!(files.len() > 15, "{files:?}");
    for path in &files {
        assert_eq!(of(path), [""; 0], "{}", path.display());
    }
}

/// Constants of a rule's own that hold a figure: it would have a name and no source.
fn without_a_source(code: &str) -> Vec<String> {
    let lines = code
        .lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"));
    let of_figure = |line: &&str| {
        let value = line
            .split_once(": f64 = ")
            .filter(|(name, _)| name.contains("const "))
            .map(|(_, value)| value);
        value.is_some_and(|value| figure(value.trim_end_matches(';')).is_some())
    };
    lines
        .filter(of_figure)
        .map(|line| line.trim().to_owned())
        .collect()
}

#[test]
fn no_verdict_turns_on_a_figure_without_a_source() {
    // From so many per cent on, tenths are not told: that is how figures are printed, and no verdict.
    let printed = [
        "const WHOLE: f64 = 10.0;",
        "const WORTH_TELLING: f64 = 1e-9;",
        "const FAR_TOO_MANY: f64 = 10.0;",
    ];
    for path in rules() {
        let mut found = without_a_source(&fs::read_to_string(&path).unwrap());
        found.retain(|line| !printed.contains(&line.as_str()));
        assert_eq!(found, [""; 0], "{}", path.display());
    }
    assert_eq!(
        without_a_source(
            "const MORE: f64 = 0.2;\npub(super) const X: f64 = 5e-6;\nconst Y: f64 = Z.value;"
        )
        .len(),
        2
    );
}

#[test]
fn a_figure_without_a_name_is_found() {
    for line in [
        "if ratio > 1.5 { Fits } else { Against }",
        "f.idle.is_some_and(|idle| idle < 0.25)",
        "(0.3 < busy)",
        "others.slow > 65_536.0",
        "used > 0.7 * may",
        "grows(clues, \"net.drops\", 1.5, words)",
    ] {
        assert_eq!(unnamed(line), [line]);
    }
    let named = "if pair.slow > 0.0 && ratio >= MOST && n > 1.0 { x } // > 2.0";
    assert_eq!(
        unnamed(&format!(
            "// ratio > 1.5\n{}",
            named.split(" //").next().unwrap()
        )),
        [""; 0]
    );
}
