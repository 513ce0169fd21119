//! A valid run file may still hold texts and figures meant to hurt the one who looks at it.

use fingerpost_record::Layer;
use fingerpost_record::text::misleads;
use fingerpost_record::{
    Better, Blocker, Descriptor, Estimate, Measurement, Outcome, Params, Percentiles, Run, Table,
    Unit, WaitClass, fixture, load,
};
use fingerpost_report::format::write_run;
use fingerpost_report::{Format, Style, html};
use proptest::prelude::*;

const EVIL: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}=cmd()|<script>\"',;\r\n\u{7f}";

fn hostile() -> Run {
    let mut run = fixture::with_everything();
    let h = &mut run.host;
    for field in [
        &mut h.hostname,
        &mut h.os,
        &mut h.kernel,
        &mut h.arch,
        &mut h.cpu.model,
        &mut h.filesystem.kind,
        &mut h.filesystem.path,
    ] {
        *field = EVIL.into();
    }
    for field in [
        &mut h.cmdline,
        &mut h.cpu.smt,
        &mut h.cpu.turbo,
        &mut h.cpu.microcode,
        &mut h.virtualization,
        &mut h.container,
        &mut h.governor,
    ] {
        *field = Some(EVIL.into());
    }
    for field in [
        &mut h.thp,
        &mut h.clocksource,
        &mut h.preemption,
        &mut h.libc,
        &mut h.cgroup.cpuset,
        &mut run.source,
    ] {
        *field = Some(EVIL.into());
    }
    h.cpu.caches.insert(EVIL.into(), 1);
    h.mitigations.insert(EVIL.into(), EVIL.into());
    h.compilers = vec![EVIL.into()];
    h.doubts = vec![EVIL.into()];
    h.swap[0].path = EVIL.into();
    run.started = EVIL.into();
    run.tool.version = EVIL.into();
    run.tool.commit = EVIL.into();
    run.command = vec!["fingerpost".into(), "run".into(), EVIL.into()];
    for m in &mut run.measurements {
        m.probe.push_str(EVIL);
        m.params = m.params.clone().with(EVIL, EVIL);
        m.reason = Some(EVIL.into());
    }
    run
}

/// The same with followed requests whose names were not cleaned on loading.
fn hostile_paths() -> Run {
    let mut run = hostile();
    for p in &mut run.paths {
        p.source = EVIL.into();
        p.params = p.params.clone().with("mix", EVIL);
        for l in &mut p.leaves {
            l.class = WaitClass::SystemCall(EVIL.into());
            l.blocker = Some(Blocker::thread(EVIL));
        }
        for s in p.slowest.iter_mut().flat_map(|s| &mut s.spans) {
            s.class = WaitClass::Unknown(Layer::Kernel, EVIL.into());
            s.blocker = Some(Blocker::Peer(EVIL.into()));
        }
    }
    run
}

fn shown(run: &Run, format: Format, style: &Style) -> String {
    let mut out = Vec::new();
    write_run(&mut out, run, fingerpost_labs::views(), format, style).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn nothing_of_a_hostile_run_acts_on_the_terminal_in_any_format() {
    let run = hostile_paths();
    load::validate(&run).expect("the run is hostile, and valid");
    for format in Format::all() {
        let text = shown(
            &run,
            format,
            &Style {
                width: Some(80),
                ..Style::default()
            },
        );
        let bad: Vec<char> = text
            .chars()
            .filter(|c| misleads(*c) && !matches!(c, '\n' | '\r'))
            .collect();
        assert!(bad.is_empty(), "{format:?} passes on {bad:?}");
    }
    let page = html::report(&run, fingerpost_labs::views(), None);
    assert!(!page.chars().any(|c| misleads(c) && c != '\n') && !page.contains("<script"));
    assert!(
        shown(&run, Format::MARKDOWN, &Style::default())
            .matches("<script")
            .count()
            == 1,
        "once: in the indented code of the command"
    );
}

#[test]
fn json_says_exactly_what_the_record_says() {
    let run = hostile();
    let text = shown(&run, Format::JSON, &Style::default());
    assert_eq!(text.lines().count(), 1);
    assert!(load::from_slice(text.as_bytes(), "shown").unwrap() == run);
}

#[test]
fn csv_can_be_read_back_whatever_the_texts() {
    let run = hostile_paths();
    let text = shown(&run, Format::CSV, &Style::default());
    let lines = parse_csv(&text);
    let outcome = lines[0].iter().position(|h| h == "outcome").unwrap();
    let (derived, measured): (Vec<&Vec<String>>, Vec<_>) = lines[1..]
        .iter()
        .partition(|l| l.get(outcome).is_some_and(|o| o == "derived"));
    assert_eq!(measured.len(), run.measurements.len());
    assert!(
        derived.len() > run.paths[0].leaves.len(),
        "followed requests are there"
    );
    assert!(lines.iter().all(|l| l.len() == lines[0].len()));
    assert!(
        lines
            .iter()
            .flatten()
            .all(|cell| !cell.starts_with(['=', '@']))
    );
}

#[test]
fn csv_keeps_the_figures_to_the_last_bit() {
    let run = fixture::run();
    let lines = parse_csv(&shown(&run, Format::CSV, &Style::default()));
    let column = |name: &str| lines[0].iter().position(|h| h == name).unwrap();
    let null = lines
        .iter()
        .find(|l| l[column("probe")] == "syscall.null")
        .unwrap();
    let estimate = run
        .row("syscall.null", &Params::new())
        .unwrap()
        .estimate
        .unwrap();
    for (name, value) in [
        ("value", estimate.value),
        ("low", estimate.low),
        ("high", estimate.high),
    ] {
        assert_eq!(null[column(name)].parse::<f64>().unwrap(), value);
    }
    let select = lines
        .iter()
        .find(|l| l[column("params")] == "fds=100")
        .unwrap();
    assert_eq!(
        (
            select[column("unit")].as_str(),
            select[column("processes")].as_str()
        ),
        ("ns", "8")
    );
}

/// RFC 4180, written apart from the code under test.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let mut lines = vec![vec![String::new()]];
    let mut quoted = false;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let line = lines.last_mut().unwrap();
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => {
                line.last_mut().unwrap().push(rest.next().unwrap())
            }
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(String::new()),
            '\r' if !quoted && rest.peek() == Some(&'\n') => {
                rest.next();
                lines.push(vec![String::new()]);
            }
            c => line.last_mut().unwrap().push(c),
        }
    }
    assert_eq!(
        lines.pop(),
        Some(vec![String::new()]),
        "the last line is ended"
    );
    lines
}

fn row() -> impl Strategy<Value = Measurement> {
    // To the ends of what a record may hold.
    let value = prop_oneof![
        Just(0.0),
        Just(1e30),
        Just(-1e30),
        Just(1e-100),
        Just(-1e-100),
        -1e30..1e30,
        0.0..1e9
    ];
    let unit = prop::sample::select(vec![
        Unit::Nanoseconds,
        Unit::PerSecond,
        Unit::BytesPerSecond,
        Unit::FlopPerSecond,
        Unit::Bytes,
        Unit::Percent,
        Unit::Count,
    ]);
    let outcome = prop::sample::select(vec![
        Outcome::Measured,
        Outcome::Untrusted,
        Outcome::Skipped,
        Outcome::Failed,
    ]);
    (
        prop::array::uniform3(value),
        unit,
        outcome,
        "\\PC{1,20}",
        any::<String>(),
        any::<bool>(),
        -1_000_000_000_000_000_i64..=1_000_000_000_000_000,
    )
        .prop_map(|(mut v, unit, outcome, probe, text, figure, size)| {
            v.sort_by(f64::total_cmp);
            let estimate = Estimate {
                low: v[0],
                value: v[1],
                high: v[2],
                confidence: 0.95,
            };
            Measurement {
                probe,
                descriptor: (!text.is_empty()).then(|| Descriptor {
                    lmbench: Some(text.clone().into()),
                    ..Descriptor::of(&Table {
                        key: if figure { "host" } else { "queues" }.into(),
                        title: text.clone().into(),
                    })
                }),
                version: 1,
                params: Params::new().with("size", size).with(&text, text.as_str()),
                unit,
                better: Better::Lower,
                outcome,
                reason: (outcome != Outcome::Measured).then_some(text),
                estimate: (figure || outcome == Outcome::Measured).then_some(estimate),
                percentiles: figure.then_some(Percentiles {
                    p50: v[2],
                    p90: v[0],
                    p99: v[1],
                }),
                processes: vec![],
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a valid run says, every format shows it, within the terminal's width where that is possible, and
    /// without a panic.
    #[test]
    fn any_valid_run_can_be_shown(rows in prop::collection::vec(row(), 0..12), width in 0usize..200) {
        let run = Run { measurements: rows, ..fixture::run() };
        prop_assert_eq!(load::validate(&run), Ok(()));
        for format in [Format::TABLE, Format::CSV, Format::MARKDOWN] {
            let text = shown(&run, format, &Style { width: Some(width), ..Style::default() });
            prop_assert!(!text.chars().any(|c| misleads(c) && !matches!(c, '\n' | '\r')));
        }
        let page = html::report(&run, fingerpost_labs::views(), None);
        prop_assert!(!page.contains("NaN") && !page.contains("inf%"));
    }
}
