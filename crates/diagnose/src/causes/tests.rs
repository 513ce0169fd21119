use std::collections::BTreeSet;
use std::path::Path;

use fingerpost_record::cause::id;

use super::*;

#[test]
fn what_no_cause_explains_has_words_in_every_layer() {
    for (name, words) in UNKNOWN {
        let layer = name.strip_suffix(".unknown").unwrap();
        assert!(
            all().any(|c| c.layer.as_str() == layer),
            "{layer} is no layer"
        );
        assert_eq!((label(name), super::words(name)), (*words, *words));
    }
    assert!(
        all().all(|c| label(&format!("{}.unknown", c.layer.as_str())).starts_with("unexplained"))
    );
    assert_eq!(label("else.unknown"), "else.unknown");
}

/// Why a row is no whole one; nothing where it is.
fn lacks(c: &Cause) -> Option<&'static str> {
    let words = &c.words;
    let said = [words.label, words.slower, words.tells, words.remedy];
    let takes = words.takes.is_none_or(|takes| !takes.is_empty());
    let cited = |t: &crate::thresholds::Threshold| t.value.is_finite() && t.source.len() > 10;
    let told_apart = c
        .told_from
        .iter()
        .all(|from| cause(from.other).is_some() && !from.by.is_empty());
    let known = |name: &&&str| cause(name).is_some() && **name != c.name;
    match () {
        () if said.contains(&"") || !takes => Some("words"),
        () if !c.thresholds.iter().all(cited) => Some("the source of a threshold"),
        () if !c.follows.iter().all(|name| known(&name)) => Some("what it follows from"),
        () if !told_apart => Some("what tells it from another"),
        () if c.two_sides.is_some() && c.moves.is_empty() => Some("parts that it moves"),
        () if c.one_side.is_none() && c.fault.is_some() && c.two_sides.is_none() => {
            Some("a rule that its fault could try")
        }
        () => None,
    }
}

#[test]
fn every_cause_is_there_once_and_is_whole() {
    let names: BTreeSet<&str> = all().map(|c| c.name).collect();
    assert_eq!(names.len(), all().count(), "one is there twice");
    for c in all() {
        assert_eq!(lacks(c), None, "{}", c.name);
    }
    assert_eq!(
        (label("cpu.quota"), words("nobody")),
        ("CPU quota", "nobody")
    );
}

#[test]
fn a_row_without_a_part_is_not_whole() {
    let whole = || Cause {
        name: "example",
        words: crate::cause::Words {
            label: "a",
            slower: "b",
            takes: None,
            tells: "c",
            remedy: "d",
        },
        thresholds: &[],
        one_side: Some(|_| None),
        ..of_probes::row("", fingerpost_record::Layer::Kernel, "")
    };
    assert_eq!(lacks(&whole()), None);
    let mut row = whole();
    row.words.remedy = "";
    assert_eq!(lacks(&row), Some("words"));
    row = whole();
    row.follows = &["nobody"];
    assert_eq!(lacks(&row), Some("what it follows from"));
    row = whole();
    row.two_sides = Some(crate::cause::TwoSides::of_parts(99, |_| {
        crate::sides::sign::Sign::Unknown
    }));
    assert_eq!(lacks(&row), Some("parts that it moves"));
}

#[test]
fn every_file_of_a_cause_is_registered_and_named_after_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/causes");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|file| {
            file.path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| !["mod", "of_probes", "parts", "tests"].contains(&name.as_str()))
        .collect();
    let named = OF_SERVERS.iter().map(|c| c.name.replace('.', "_"));
    assert_eq!(named.collect::<BTreeSet<String>>(), files);
}

#[test]
fn every_constant_is_a_cause() {
    assert!(id::ALL.iter().all(|name| cause(name).is_some()));
}

#[test]
fn two_sides_are_held_against_causes_one_at_a_time() {
    let ranks: Vec<u8> = all()
        .filter_map(|c| c.two_sides.as_ref())
        .map(|two| two.rank)
        .collect();
    let once: BTreeSet<u8> = ranks.iter().copied().collect();
    assert_eq!(once.len(), ranks.len(), "{ranks:?}");
}

/// How many steps one may go from a cause by what it names; fails where that is without end.
fn depth(of: &'static Cause, names: fn(&Cause) -> &'static [&'static str], left: u32) -> u32 {
    assert!(left > 0, "{} comes back to itself", of.name);
    let next = names(of).iter().filter_map(|name| cause(name));
    next.map(|c| 1 + depth(c, names, left - 1))
        .max()
        .unwrap_or(0)
}

#[test]
fn no_chain_of_consequences_goes_in_a_circle() {
    all().for_each(|c| _ = depth(c, |c| c.follows, 6));
}

#[test]
fn no_cause_is_explained_by_way_of_itself() {
    let by = |c: &Cause| c.two_sides.as_ref().map_or(&[][..], |two| two.explained_by);
    all().for_each(|c| _ = depth(c, by, 6));
    let judged = |name: &&str| cause(name).is_some_and(|c| c.two_sides.is_some());
    assert!(all().flat_map(by).all(judged));
}

#[test]
fn the_designs_causes_are_all_there() {
    for name in [
        "cpu.quota",
        "cpu.affinity",
        "cpu.contention",
        "cpu.priority",
        "syscall.entry",
        "cpu.mitigation",
        "cpu.speed",
        "memory.limit",
        "memory.page_size",
        "storage.throttle",
        "storage.latency",
        "storage.contention",
        "storage.durability",
        "network.shaping",
        "network.accept_queue",
        "network.delay",
        "app.lock",
        "app.work",
        "app.calls",
        "app.wait",
        "app.build",
        "app.setting",
        "peer.slow",
        "kernel.trace",
        "client.saturated",
        "host.steal",
    ] {
        assert!(cause(name).is_some(), "{name}");
    }
}
