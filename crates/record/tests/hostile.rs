//! Run files that are truncated, edited by hand, or made to hurt: one clear sentence each, and never a panic.

use fingerpost_record::Blocker;
use fingerpost_record::load::{self, LoadError, MAX_TEXT};
use fingerpost_record::{Run, fixture, text};
use proptest::prelude::*;

fn small_run() -> Run {
    let mut run = fixture::run();
    run.measurements.truncate(4);
    run.measurements
        .iter_mut()
        .for_each(|m| m.processes.truncate(2));
    run.measurements[0].descriptor = Some(run.measurements[0].descriptor().into_owned());
    run
}

fn refused(text: &[u8]) -> String {
    let error = load::from_slice(text, "x.json")
        .map(|run| run.id)
        .expect_err("it should be refused");
    let sentence = error.to_string();
    assert!(sentence.contains("x.json"), "{sentence}");
    assert!(
        sentence.len() < 1000 && !sentence.chars().any(text::misleads),
        "{sentence:?}"
    );
    sentence
}

#[test]
fn every_truncation_is_refused() {
    let text = serde_json::to_vec(&small_run()).unwrap();
    for end in (0..text.len()).step_by(7).chain([text.len() - 1]) {
        refused(&text[..end]);
    }
}

#[test]
fn hand_edits_are_named() {
    let text = serde_json::to_string(&small_run()).unwrap();
    let cases = [
        ("\"version\":1,", "\"version\":\"one\",", "invalid type"),
        (
            "\"outcome\":\"measured\"",
            "\"outcome\":\"\u{1b}[31mgreat\"",
            "control character",
        ),
        (
            "\"outcome\":\"measured\"",
            "\"outcome\":\"\\u001b[31mgreat\"",
            "unknown variant `\u{fffd}[31mgreat`",
        ),
        ("\"duration_s\":58.25", "\"duration_s\":NaN", "expected"),
        (
            "\"duration_s\":58.25",
            "\"duration_s\":1e999",
            "number out of range",
        ),
        (
            "\"duration_s\":58.25",
            "\"duration_s\":null",
            "invalid type",
        ),
        ("\"duration_s\":58.25", "\"duration_s\":-3", "duration_s"),
        (
            "fingerpost/run/2",
            "fingerpost/run/3\\u001b[2J",
            "use a newer fingerpost",
        ),
        ("\"schema\":", "\"scheme\":", "no “schema”"),
        ("\"id\":\"2026", "\"id\":\"/etc/2026", "cannot be the id"),
        (
            "\"confidence\":0.95",
            "\"confidence\":95",
            "confidence of 95",
        ),
        (
            "\"disturbed\":[3]",
            "\"disturbed\":[4000000000]",
            "disturbed sample does not exist",
        ),
        ("\"hostname\":", "\"host\":", "missing field `hostname`"),
    ];
    for (from, to, expected) in cases {
        let edited = text.replacen(from, to, 1);
        assert_ne!(edited, text, "{from} is not in the run");
        let sentence = refused(edited.as_bytes());
        assert!(sentence.contains(expected), "{to}: {sentence}");
    }
}

#[test]
fn what_was_followed_is_bounded_and_cannot_steer_a_terminal() {
    let run = fixture::followed::slow_locks();
    let text = serde_json::to_string(&run).unwrap();
    let evil = text.replacen("\"comm\":\"stress\"", "\"comm\":\"\\u001b[31mstress\"", 1);
    assert_ne!(evil, text);
    let loaded = load::from_slice(evil.as_bytes(), "x.json").unwrap();
    assert!(
        loaded.paths[0]
            .leaves
            .iter()
            .any(|l| l.blocker == Some(Blocker::thread("\u{fffd}[31mstress")))
    );
    let many = Run {
        paths: vec![run.paths[0].clone(); 201],
        ..run
    };
    let sentence = refused(&serde_json::to_vec(&many).unwrap());
    assert!(sentence.contains("200"), "{sentence}");
    let older = text.replacen("\"paths\":[", "\"other\":[", 1);
    assert!(
        load::from_slice(older.as_bytes(), "x.json")
            .unwrap()
            .paths
            .is_empty(),
        "a run of before there were paths"
    );
}

#[test]
fn what_is_no_run_at_all_is_refused() {
    for text in [
        "",
        " \n",
        "null",
        "[]",
        "42",
        "\"run\"",
        "{}",
        "{} {}",
        "\u{feff}{}",
        "<html>",
    ] {
        refused(text.as_bytes());
    }
    refused(&[0xff, 0xfe, 0x00]);
    refused(&[0; 4096]);
}

#[test]
fn deep_nesting_does_not_exhaust_the_stack() {
    let deep = "[".repeat(1 << 20);
    refused(deep.as_bytes());
    let run = serde_json::to_string(&small_run()).unwrap();
    refused(
        run.replacen(
            "\"measurements\":",
            &format!("\"x\":{deep},\"measurements\":"),
            1,
        )
        .as_bytes(),
    );
    refused(
        run.replacen("\"params\":{}", &format!("\"params\":{deep}"), 1)
            .as_bytes(),
    );
}

#[test]
fn a_huge_text_is_refused_wherever_it_stands() {
    let run = serde_json::to_string(&small_run()).unwrap();
    let huge = "a".repeat(MAX_TEXT + 1);
    for (from, to) in [
        ("\"hostname\":\"", format!("\"hostname\":\"{huge}")),
        ("\"seed\":", format!("\"{huge}\":1,\"seed\":")),
        ("\"seed\":", format!("\"unknown\":[\"{huge}\"],\"seed\":")),
    ] {
        assert!(refused(run.replacen(from, &to, 1).as_bytes()).contains("a text of more than"));
    }
}

#[test]
fn a_huge_file_is_not_read_to_its_end() {
    let endless = std::io::repeat(b' ');
    assert!(matches!(
        load::from_reader(endless, "x.json"),
        Err(LoadError::TooLarge(..))
    ));
}

#[test]
fn fields_of_a_later_version_are_passed_over() {
    let text = serde_json::to_string(&small_run()).unwrap().replacen(
        '{',
        "{\"later\":{\"a\":[1,null,\"\\u001b\"]},",
        1,
    );
    assert!(load::from_slice(text.as_bytes(), "x.json").unwrap() == small_run());
}

/// One spoilt byte, piece or token.
#[derive(Clone, Debug)]
enum Mutation {
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index, usize),
    Double(prop::sample::Index, usize),
    Insert(prop::sample::Index, &'static str),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let place = any::<prop::sample::Index>;
    let token = prop::sample::select(vec![
        "NaN",
        "null",
        "-1",
        "1e400",
        "{}",
        "[]",
        "\"",
        "\\u0000",
        "\\ud800",
        ",",
        "}",
        "]",
        "18446744073709551616",
        "true",
        "\"\u{1b}]0;x\u{7}\"",
        ":\"\u{202e}\"",
    ]);
    prop_oneof![
        (place(), any::<u8>()).prop_map(|(i, b)| Mutation::Set(i, b)),
        (place(), 1..200usize).prop_map(|(i, n)| Mutation::Cut(i, n)),
        (place(), 1..200usize).prop_map(|(i, n)| Mutation::Double(i, n)),
        (place(), token).prop_map(|(i, t)| Mutation::Insert(i, t)),
    ]
}

fn apply(text: &mut Vec<u8>, mutation: &Mutation) {
    if text.is_empty() {
        return;
    }
    let piece = |at: usize, n: usize, len: usize| at..(at + n).min(len);
    match mutation {
        Mutation::Set(i, byte) => {
            let at = i.index(text.len());
            text[at] = *byte;
        }
        Mutation::Cut(i, n) => {
            text.drain(piece(i.index(text.len()), *n, text.len()));
        }
        Mutation::Double(i, n) => {
            let at = i.index(text.len());
            let copy = text[piece(at, *n, text.len())].to_vec();
            text.splice(at..at, copy);
        }
        Mutation::Insert(i, token) => {
            let at = i.index(text.len());
            text.splice(at..at, token.bytes());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// A spoilt file is refused in one clean sentence, or is still a valid run: written and read again, it is the same.
    #[test]
    fn a_spoilt_file_is_refused_or_still_a_run(mutations in prop::collection::vec(mutation(), 1..6)) {
        let mut text = serde_json::to_vec(&small_run()).unwrap();
        mutations.iter().for_each(|m| apply(&mut text, m));
        match load::from_slice(&text, "x.json") {
            Err(e) => {
                let sentence = e.to_string();
                prop_assert!(sentence.contains("x.json") && sentence.len() < 1000);
                prop_assert!(!sentence.chars().any(text::misleads), "{sentence:?}");
            }
            Ok(run) => {
                let again = serde_json::to_vec(&run).unwrap();
                prop_assert!(load::from_slice(&again, "again").unwrap() == run);
            }
        }
    }
}
