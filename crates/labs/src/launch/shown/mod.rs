//! What is shown of applications launched under placements of swap: the source's table with ratios, what paging there
//! was, and the answer.

mod answer;

use std::collections::BTreeMap;

use crate::launch::analysis::{Cell as Figure, Launch, Line, Paging, analyse, seconds};
use fingerpost_compare::ratio::CONFIDENCE;
use fingerpost_record::descriptor::table;
use fingerpost_record::{Run, Unit};

use fingerpost_report::document::chart::Lines;
use fingerpost_report::document::{Block, Cell, Column, Fact, Row, Section, Table, Text};
use fingerpost_report::lab::derived::{BYTES, COUNT, Derived, NS, Of, RATIO};
use fingerpost_report::lab::{Analysis, Labs, Shown};
use fingerpost_report::style::Tone;
use fingerpost_report::svg::lines::{Chart, Point, Series, Steps};
use fingerpost_report::words::clean;

/// The analysis.
pub static ANALYSIS: Analysis = Analysis {
    before_requests: false,
    rank: 4,
    of,
};

/// Placements of the picture, which has as many shapes.
const MOST: usize = 6;

fn of(run: &Run, _: Labs) -> Option<Shown> {
    run.measurements
        .iter()
        .find(|m| m.probe.starts_with("launch."))?;
    let table = analyse(run);
    let sentence = |several: bool| {
        let of = table
            .as_ref()
            .filter(|table| (table.placements.len() > 1) == several);
        of.map(|table| table.sentence.clone())
    };
    Some(Shown {
        answers: answer::since_boot(run)
            .into_iter()
            .chain(sentence(true))
            .collect(),
        // With one placement there is nothing to say but that, where something else was asked.
        alone: sentence(false),
        otherwise: answer::pageins(run),
        ..Shown::of(table.iter().map(|table| section(run, table)))
    })
}

fn section(run: &Run, launch: &Launch) -> Section {
    let chart = Lines {
        chart: chart(launch),
        has_table: true,
    };
    let mapped = launch.mapped.iter();
    // With several placements this is what is said first.
    let alone = launch.placements.len() < 2;
    Section::new("launch-table", "Launch times by placement of swap")
        .with(alone.then(|| Block::Sentence(Text::new(&launch.sentence, Tone::Strong))))
        .with([
            Block::Chart(Box::new(chart)),
            Block::Table(times(run, launch)),
        ])
        .under(
            "Paging during a sequence",
            [Block::Table(counters(&launch.paging))],
        )
        .with([Block::Figures(paged(&launch.paging))])
        .with([Block::Facts(
            mapped
                .map(|mapped| Fact::new("Memory that was asked for", mapped, Tone::Plain))
                .collect(),
        )])
}

/// Each application's time by placement.
fn chart(launch: &Launch) -> Chart {
    let point = |placement: usize| {
        move |(step, line): (usize, &Line)| {
            let e = line.cells.get(placement)?.as_ref()?.time;
            Some(Point {
                step,
                value: e.value,
                low: e.low.max(0.0),
                high: e.high,
            })
        }
    };
    let series = |(i, name): (usize, &String)| Series {
        name: clean(name),
        points: launch
            .lines
            .iter()
            .enumerate()
            .filter_map(point(i))
            .collect(),
    };
    Chart {
        title: "Launch times by placement of swap".into(),
        across: "applications, in the order of their launch".into(),
        steps: launch.lines.iter().map(|line| clean(&line.app)).collect(),
        up: "from start to ready".into(),
        unit: Unit::Nanoseconds,
        from_zero: true,
        kind: Steps::Things,
        series: launch
            .placements
            .iter()
            .enumerate()
            .take(MOST)
            .map(series)
            .collect(),
    }
}

/// The source's table, with the ratios to the first placement, and the sums where no row has them.
fn times(run: &Run, launch: &Launch) -> Table {
    let summed = run.measurements.iter().any(|m| m.probe == "launch.sum");
    let placement = |(i, name): (usize, &String)| match i {
        // The default has no ratio to itself.
        0 => Column::figures(name),
        _ => Column::figures(name).beside(Column::figures("ratio")),
    };
    let columns = [Column::words("application")]
        .into_iter()
        .chain(launch.placements.iter().enumerate().map(placement));
    let of = Of(&table::LAUNCH);
    let cell = |name: &'static str, app: Option<&str>, i: usize, figure: &Option<Figure>| {
        let Some(figure) = figure else {
            return Cell::new("–");
        };
        let placement = || ("placement", launch.placements[i].clone());
        let ratio = figure.ratio.map(|ratio| {
            let app = app.map(|app| ("app", app.to_owned()));
            Derived {
                interval: Some([ratio.low, ratio.high]),
                confidence: Some(CONFIDENCE),
                ..of.exact(
                    name,
                    app.into_iter().chain([placement()]),
                    RATIO,
                    ratio.value,
                )
            }
        });
        let sum = (app.is_none() && !summed)
            .then(|| of.estimated("launch.sum", [placement()], NS, figure.time));
        Cell::new(time(figure))
            .beside(told_ratio(figure).unwrap_or_default())
            .with(sum.into_iter().chain(ratio))
    };
    let row = |app: Option<&str>, cells: &[Option<Figure>]| {
        let (name, shown, tone) = match app {
            Some(app) => ("launch.ratio", app, Tone::Plain),
            None => ("launch.sum_ratio", "sum", Tone::Strong),
        };
        let figures = cells.iter().enumerate();
        let figures = figures.map(|(i, figure)| cell(name, app, i, figure));
        Row::new([Cell::new(shown)].into_iter().chain(figures), tone)
    };
    Table::new(columns)
        .caption(
            "Seconds from start to ready, and the ratio to the first placement with its interval; above 1 is slower.",
        )
        .with(launch.lines.iter().map(|line| row(Some(&line.app), &line.cells)))
        .with([row(None, &launch.sum)])
}

/// Seconds, with a question mark where it was not ready in every sequence.
fn time(cell: &Figure) -> String {
    format!(
        "{}{}",
        seconds(cell.time.value),
        if cell.doubtful { "?" } else { "" }
    )
}

/// The ratio with its interval.
fn told_ratio(cell: &Figure) -> Option<String> {
    cell.ratio
        .map(|r| format!("{:.2} ({:.2}–{:.2})", r.value, r.low, r.high))
}

/// What was counted, and how it is called.
const COUNTED: [(&str, &str); 8] = [
    ("page_in.kib", "KiB paged in"),
    ("page_out.kib", "KiB paged out"),
    ("swap_in.pages", "swap-ins"),
    ("swap_out.pages", "swap-outs"),
    ("zswap_in.pages", "out of zswap"),
    ("zswap_out.pages", "into zswap"),
    ("major_faults", "major faults"),
    ("applications.major_faults", "of them the applications'"),
];
/// Seconds for which somebody waited for memory.
const STALLED: [(&str, &str); 2] = [
    ("pressure_some.seconds", "waiting for memory, s some task"),
    ("pressure_full.seconds", "waiting for memory, s all tasks"),
];
/// What memory was used for before and after.
const MEMORY: [(&str, &str); 6] = [
    ("used_before.bytes", "MiB used before"),
    ("free_before.bytes", "MiB free before"),
    ("swap_used_before.bytes", "MiB in swap before"),
    ("used_after.bytes", "MiB used after"),
    ("free_after.bytes", "MiB free after"),
    ("swap_used_after.bytes", "MiB in swap after"),
];

/// Whether a counter is worth a place: where zswap is off its counters stand still, and nobody asks for them.
fn asked(name: &str, totals: &BTreeMap<String, f64>) -> bool {
    totals
        .get(name)
        .is_some_and(|n| *n > 0.0 || !name.starts_with("zswap"))
}

/// The block that the source pasted from `top`, in today's words: a row for each counter, a column for each placement.
/// What was observed under none of them is left out.
fn counters(paging: &[Paging]) -> Table {
    type Show = fn(f64) -> String;
    let show: [Show; 3] = [
        |n| format!("{n:.0}"),
        |n| format!("{n:.2}"),
        |n| format!("{:.0}", n / f64::from(1 << 20)),
    ];
    let all = COUNTED
        .map(|row| (row, show[0]))
        .into_iter()
        .chain(STALLED.map(|row| (row, show[1])))
        .chain(MEMORY.map(|row| (row, show[2])));
    let row = |((key, name), show): ((&str, &str), Show)| {
        let cell = |of: &Paging| {
            let total = of.totals.get(key);
            Cell::new(total.map_or("–".to_owned(), |n| show(*n)))
        };
        let shown = paging.iter().any(|p| asked(key, &p.totals));
        let cells = [Cell::new(name)].into_iter().chain(paging.iter().map(cell));
        shown.then(|| Row::new(cells, Tone::Plain))
    };
    let columns = paging.iter().map(|p| Column::figures(&p.placement));
    Table::new([Column::words("counter")].into_iter().chain(columns))
        .caption(
            "The whole machine's counters over a sequence, and its memory before and after; the mean over the \
             sequences.",
        )
        .with(all.filter_map(row))
}

/// Every total, also of what has no row above.
fn paged(paging: &[Paging]) -> Vec<Derived> {
    let of = Of(&table::LAUNCH);
    let figure = |p: &Paging, what: &str, total: f64| {
        let (what, unit, value) = in_unit(what, total);
        let params = [
            ("placement", p.placement.clone()),
            ("what", what.to_owned()),
        ];
        of.exact("launch.paging", params, unit, value)
    };
    let mut all = Vec::new();
    for p in paging {
        let totals = p.totals.iter();
        all.extend(totals.map(|(what, total)| figure(p, what, *total)));
    }
    all
}

/// A total in a unit of figures. Its name ends with the unit that it was counted in.
fn in_unit(what: &str, total: f64) -> (&str, &'static str, f64) {
    match what.rsplit_once('.') {
        Some((what, "kib")) => (what, BYTES, total * 1024.0),
        Some((what, "bytes")) => (what, BYTES, total),
        Some((what, "seconds")) => (what, NS, total * 1e9),
        _ => (what, COUNT, total),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_compare::references::load;
    use fingerpost_report::document::{html, terminal};
    use fingerpost_report::style::Style;

    fn shown(run: &Run) -> [String; 2] {
        let all = [section(run, &analyse(run).unwrap())];
        [
            terminal::render(&all, &Style::default()),
            html::section(&all[0]).body.into_string(),
        ]
    }

    #[test]
    fn the_sources_table_is_printed_as_the_source_printed_it() {
        let [text, _] = shown(&load("launch-10.1").unwrap());
        let line = text.lines().find(|l| l.contains("iTunes")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            (words[0], words[1], words[2], words[5], words[6]),
            ("iTunes", "3.8", "3.1", "2.4", "0.63")
        );
    }

    #[test]
    fn the_counters_of_all_placements_stand_side_by_side() {
        let paging = |placement: &str, name: &str, value: f64| Paging {
            placement: placement.into(),
            totals: BTreeMap::from([(name.to_owned(), value), ("zswap_in.pages".to_owned(), 0.0)]),
        };
        let found = counters(&[
            paging("file", "swap_out.pages", 7.0),
            paging("zram", "free_after.bytes", f64::from(3 << 20)),
        ]);
        assert_eq!(
            found.plain().groups[0],
            [["swap-outs", "7", "–"], ["MiB free after", "–", "3"]]
        );
    }

    #[test]
    fn names_are_escaped_and_steer_no_terminal() {
        let mut run = load("launch-10.1").unwrap();
        for row in &mut run.measurements[..3] {
            row.params = row.params.clone().with("app", "<script>\x1b[2J");
        }
        let [text, page] = shown(&run);
        assert!(!text.contains('\x1b') && page.contains("OmniWeb"));
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script"));
        assert!(analyse(&Run::default()).is_none());
        let first = run.measurements[0]
            .params
            .text("placement")
            .map(str::to_owned);
        run.measurements
            .retain(|m| m.params.text("placement") == first.as_deref());
        assert!(shown(&run)[1].contains("nothing to compare it with"));
    }

    #[test]
    fn what_paging_there_was_is_a_table() {
        let mut run = load("launch-10.1").unwrap();
        let placement = run.measurements[0]
            .params
            .text("placement")
            .unwrap()
            .to_owned();
        run.observations = vec![fingerpost_record::Observation {
            workload: "launch".into(),
            params: fingerpost_record::Params::new().with("placement", placement.as_str()),
            observer: "paging".into(),
            source: String::new(),
            totals: std::collections::BTreeMap::from([("swap_in.pages".to_owned(), 4321.0)]),
            ..fingerpost_record::Observation::default()
        }];
        for text in shown(&run) {
            assert!(text.contains("swap-ins") && text.contains("4321"), "{text}");
        }
    }
}
