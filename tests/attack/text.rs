//! Control characters and direction marks in what is printed.

use std::path::Path;

use fingerpost_record::{Component, Evidence, Metric, Param, Run, fixture, text::misleads};

use crate::support::Home;

const HOSTILE: &str =
    "x\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{feff}\u{200b}\u{e0041}\u{7f}\r\u{0}\u{61c}";

/// A run with hostile text wherever a run has text of its own.
fn hostile() -> Run {
    let mut run = fixture::with_everything();
    let h = || HOSTILE.to_owned();
    run.command = vec![h(); 3];
    run.source = Some(h());
    run.tool.version = h();
    let host = &mut run.host;
    for text in [
        &mut host.hostname,
        &mut host.os,
        &mut host.kernel,
        &mut host.arch,
        &mut host.cpu.model,
        &mut host.filesystem.kind,
    ] {
        *text = h();
    }
    host.doubts = vec![h()];
    host.mitigations.insert(h(), h());
    for m in &mut run.measurements {
        m.params.0.insert(h(), Param::Text(h()));
        m.reason = m.reason.as_ref().map(|_| h());
    }
    run.measurements[0].probe.push_str(HOSTILE);
    for o in &mut run.observations {
        o.workload.push_str(HOSTILE);
        o.observer.push_str(HOSTILE);
        o.source = h();
        o.totals.insert(h(), 1.0);
    }
    for b in &mut run.budgets {
        b.workload.push_str(HOSTILE);
        b.parts
            .iter_mut()
            .for_each(|p| p.component = Component::Other(h()));
    }
    for f in &mut run.findings {
        f.cause.push_str(HOSTILE);
        f.evidence = vec![Evidence::of(Metric::Text).saying(h()).named(h())];
    }
    run
}

/// Asserts that nothing in an output could act on a terminal.
#[track_caller]
fn harmless(what: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|e| panic!("{what}: {e}"));
    let acts = |(i, c): &(usize, char)| match c {
        '\n' | '\t' => false,
        '\r' => text.as_bytes().get(i + 1) != Some(&b'\n'),
        c => misleads(*c),
    };
    if let Some((at, c)) = text.char_indices().find(acts) {
        panic!(
            "{what}: {c:?} in {:?}",
            text[..at]
                .chars()
                .rev()
                .take(60)
                .collect::<String>()
                .chars()
                .rev()
                .collect::<String>()
        );
    }
}

#[test]
fn nothing_of_a_run_acts_on_a_terminal_in_any_format() {
    let home = Home::new();
    let file = home.write("x.json", serde_json::to_vec(&hostile()).unwrap());
    let file = file.to_str().unwrap();
    let other = home.write(
        "y.json",
        serde_json::to_vec(&Run {
            id: "20270102T030405Z-00000001".into(),
            ..hostile()
        })
        .unwrap(),
    );
    let other = other.to_str().unwrap();
    let formats = [
        "table",
        "json",
        "csv",
        "markdown",
        "go-bench",
        "openmetrics",
    ];
    let mut commands: Vec<Vec<&str>> = formats
        .iter()
        .map(|f| vec!["show", file, "--format", f])
        .collect();
    commands.extend(
        formats[..4]
            .iter()
            .map(|f| vec!["compare", file, other, "--format", f]),
    );
    commands.extend(
        ["table", "json", "markdown"]
            .iter()
            .map(|f| vec!["explain", file, "--format", f]),
    );
    commands.push(vec!["archive", "import", file]);
    commands.push(vec!["archive", "list"]);
    commands.push(vec!["archive", "list", "--format", "json"]);
    for words in commands {
        let said = home.says(&words);
        said.lived();
        harmless(&format!("{words:?}"), &said.out);
        harmless(&format!("{words:?}, standard error"), said.err.as_bytes());
    }
    for words in [
        vec!["report", file, "-o", "r.html"],
        vec!["report", file, other, "-o", "r.html"],
    ] {
        home.says(&words).lived();
        harmless("a report", &std::fs::read(home.path("r.html")).unwrap());
    }
}

#[test]
fn names_of_files_and_wrong_arguments_do_not_act_either() {
    let home = Home::new();
    for words in [
        vec!["show", "./no\u{1b}[31mfile\u{202e}.json"],
        vec!["show", "\u{1b}]0;x\u{7}"],
        vec!["show", "--form\u{1b}[2Jat"],
        vec!["run", "\u{9b}31mprobe"],
        vec!["compare", "a[\u{202e}=1]", "b"],
        vec!["\u{1b}c"],
    ] {
        let said = home.says(&words);
        assert_eq!(said.status, Some(2), "{words:?}: {}", said.err);
        harmless(&format!("{words:?}"), said.err.as_bytes());
    }
}

#[test]
fn a_formula_in_a_run_is_text_in_a_spreadsheet() {
    let home = Home::new();
    let mut run = fixture::with_everything();
    run.host.hostname = "=cmd|'/c calc'!A0".into();
    run.measurements[0].probe = "@SUM(1)".into();
    run.measurements[1].params = fingerpost_record::Params::new().with("+a", "-2+3");
    let file = home.write("x.json", serde_json::to_vec(&run).unwrap());
    let said = home.says(&[
        "show".as_ref(),
        file.as_os_str(),
        "--format".as_ref(),
        "csv".as_ref(),
    ]);
    said.lived();
    let text = String::from_utf8(said.out).unwrap();
    assert!(text.contains("cmd|"), "{text}");
    let cells = text
        .lines()
        .flat_map(|line| line.split(','))
        .map(|cell| cell.trim_start_matches('"'));
    let formula = |cell: &&str| {
        cell.starts_with(['=', '@', '\t'])
            || (cell.starts_with(['+', '-']) && cell.parse::<f64>().is_err())
    };
    assert_eq!(
        cells.filter(formula).collect::<Vec<_>>(),
        Vec::<&str>::new()
    );
}

#[test]
fn openmetrics_has_no_label_twice() {
    let home = Home::new();
    let mut run = fixture::run();
    run.measurements[0].params = fingerpost_record::Params::new()
        .with("a b", 1)
        .with("a.b", 2)
        .with("a\u{1b}b", 3);
    let file = home.write("x.json", serde_json::to_vec(&run).unwrap());
    let said = home.says(&[
        Path::new("show"),
        &file,
        Path::new("--format"),
        Path::new("openmetrics"),
    ]);
    let text = String::from_utf8(said.out).unwrap();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        assert_eq!(
            line.matches("param_a_b=").count(),
            usize::from(line.contains("param_a_b=")),
            "{line}"
        );
    }
}
