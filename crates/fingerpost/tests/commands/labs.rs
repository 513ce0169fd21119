//! Every lab in every format.

use fingerpost_record::{Estimate, Measurement, Params, Percentiles, Process, Run};
use fingerpost_report::{Format, Style, format, html};

use crate::common::lab;

/// What stands for a lab in its recorded run: words in a terminal and in Markdown, a derived figure in CSV, a section
/// of a page.
const PARTS: [(&str, &str, &str, &str); 7] = [
    (
        "database",
        "Scaling: database",
        "database.scaling",
        "database-scaling",
    ),
    ("web", "Scaling: web", "web.scaling", "web-scaling"),
    (
        "zerofill",
        "Zero-filling, taken apart",
        "zerofill.share",
        "zerofill-analysis",
    ),
    (
        "flops",
        "Floating point by instruction mix and compiler",
        "flops.average",
        "flops-compilers",
    ),
    (
        "memory",
        "Memory hierarchy",
        "memory.level_holds",
        "memory-hierarchy",
    ),
    (
        "launch",
        "Launch times by placement of swap",
        "launch.ratio",
        "launch-table",
    ),
    ("site", "fs/odb, all rounds", "site.ratio", "site-rounds"),
];

fn shown(run: &Run, format: Format) -> String {
    let mut out = Vec::new();
    format::write_run(
        &mut out,
        run,
        fingerpost_labs::views(),
        format,
        &Style::default(),
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

/// Whether a format has a part of a run.
#[track_caller]
fn has(run: &Run, words: &str, figure: &str, section: &str) {
    for format in [Format::TABLE, Format::MARKDOWN] {
        let text = shown(run, format);
        let heading = |line: &str| line.trim_start_matches('#').trim_start().starts_with(words);
        assert!(text.lines().any(heading), "{format:?}, {words}: {text}");
    }
    let csv = shown(run, Format::CSV);
    let derived = |line: &&str| line.contains(",derived,") && line.contains(&format!(",{figure},"));
    let lines = csv.lines().filter(derived).count();
    assert!(lines > 0, "{figure}: {csv}");
    let page = html::report(run, fingerpost_labs::views(), None);
    assert!(
        page.contains(&format!("<section id=\"{section}\"")),
        "{section}"
    );
}

#[test]
fn every_lab_is_in_every_format() {
    for listed in fingerpost_labs::REGISTRY {
        let name = listed.name;
        let Some((_, words, figure, section)) = PARTS.iter().find(|(lab, ..)| *lab == name) else {
            panic!("what stands for {name} in a format is not known here");
        };
        let run = lab(name);
        assert!(
            !fingerpost_report::View::of(&run, fingerpost_labs::views())
                .answers
                .is_empty(),
            "{name} has no answer"
        );
        has(&run, words, figure, section);
    }
}

/// A row of a desktop's task beside an idle server, or beside a loaded one.
fn desktop(load: &str, ns: f64) -> Measurement {
    let params = Params::new()
        .with("engine", "mariadb")
        .with("load", load)
        .with("task", "exec");
    let params = if load == "most" {
        params.with("clients", 50).with("mix", "read")
    } else {
        params
    };
    let row = lab("database")
        .measurements
        .into_iter()
        .find(|m| m.probe == "database.latency")
        .unwrap();
    let counters = [("max".to_owned(), 3.0 * ns), ("missed".to_owned(), 2.0)].into();
    Measurement {
        probe: "database.desktop".into(),
        params,
        estimate: Some(Estimate {
            value: ns,
            low: ns,
            high: ns,
            confidence: 0.95,
        }),
        percentiles: Some(Percentiles {
            p50: ns,
            p90: ns,
            p99: 2.0 * ns,
        }),
        processes: vec![Process {
            batch: 300,
            counters,
            ..Process::default()
        }],
        ..row
    }
}

#[test]
fn a_desktop_beside_a_loaded_server_is_in_every_format() {
    let mut run = lab("database");
    run.measurements
        .extend([desktop("idle", 1e5), desktop("most", 4e5)]);
    has(
        &run,
        "A desktop's tasks",
        "database.desktop_times",
        "desktop",
    );
    let csv = shown(&run, Format::CSV);
    let of = |figure: &str| {
        csv.lines()
            .filter(|line| line.contains(figure))
            .collect::<Vec<_>>()
    };
    assert!(
        of(",database.desktop_times,")[0].contains(",Database,"),
        "they stand in the table of their rows"
    );
    assert!(
        of(",database.desktop_times,")[0].contains(",ratio,,derived,4,4,4,,"),
        "{csv}"
    );
    assert_eq!(
        [
            of(",database.desktop_worst,").len(),
            of(",database.desktop_missed,").len()
        ],
        [2, 2]
    );
}

#[test]
fn derived_figures_are_lines_of_the_same_columns_and_inert() {
    for name in PARTS.map(|(name, ..)| name) {
        let mut run = lab(name);
        for row in &mut run.measurements {
            row.params = row.params.clone().with("aside", "=1+\u{1b}[2J");
        }
        let csv = shown(&run, Format::CSV);
        assert!(!csv.contains('\u{1b}'), "{name}");
        let mut commas = 0;
        let mut quoted = false;
        for c in csv
            .lines()
            .find(|line| line.contains(",derived,"))
            .unwrap_or_default()
            .chars()
        {
            quoted ^= c == '"';
            commas += usize::from(c == ',' && !quoted);
        }
        let columns = csv.lines().next().unwrap().matches(',').count();
        assert!(
            commas == 0 || commas == columns,
            "{name}: {commas} of {columns}"
        );
    }
}
