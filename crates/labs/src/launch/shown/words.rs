//! The launch laboratory: the source's table with ratios, and the block that it pasted from `top`. The run's answer is
//! above them.

use std::collections::BTreeMap;

use crate::launch::analysis::{Cell, Launch, Paging, seconds};
use fingerpost_record::text::clean;

use fingerpost_report::grid::{Align, Grid, Line};
use fingerpost_report::style::Tone;

/// The table, and the block below it.
pub fn grid(launch: &Launch) -> Grid {
    // The default has no ratio to itself.
    let figures = (launch.placements.len() * 2).saturating_sub(1);
    let sides = [Align::Left]
        .into_iter()
        .chain(std::iter::repeat_n(Align::Right, figures));
    let mut grid = Grid::untitled(sides.map(|align| (align, 0)));
    let mut titles = vec![String::new()];
    for (i, placement) in launch.placements.iter().enumerate() {
        titles.push(clean(placement).into_owned());
        titles.extend((i > 0).then(|| "ratio".to_owned()));
    }
    grid.lines.push(Line::Heading(
        "Launch times in seconds, and their ratio to the first placement's".into(),
    ));
    grid.lines.push(Line::Cells(titles, Tone::Faint));
    for line in &launch.lines {
        grid.lines
            .push(cells(&clean(&line.app), &line.cells, Tone::Plain));
    }
    grid.lines.push(cells("sum", &launch.sum, Tone::Strong));
    grid.lines
        .extend((!launch.paging.is_empty()).then_some(Line::Blank));
    for paging in &launch.paging {
        for (i, line) in block(paging).into_iter().enumerate() {
            let name = if i == 0 {
                clean(&paging.placement).into_owned()
            } else {
                String::new()
            };
            grid.lines.push(Line::Labelled(name, line, Tone::Plain));
        }
    }
    if let Some(mapped) = &launch.mapped {
        grid.lines.push(Line::Labelled(
            "Memory".into(),
            clean(mapped).into_owned(),
            Tone::Plain,
        ));
    }
    grid
}

fn cells(name: &str, row: &[Option<Cell>], tone: Tone) -> Line {
    let mut texts = vec![format!("  {name}")];
    for (i, cell) in row.iter().enumerate() {
        texts.push(cell.as_ref().map_or("–".into(), time));
        if i > 0 {
            texts.push(cell.as_ref().and_then(ratio).unwrap_or_default());
        }
    }
    Line::Cells(texts, tone)
}

/// Seconds, with a question mark where it was not ready in every sequence.
pub fn time(cell: &Cell) -> String {
    format!(
        "{}{}",
        seconds(cell.time.value),
        if cell.doubtful { "?" } else { "" }
    )
}

/// The ratio with its interval.
pub fn ratio(cell: &Cell) -> Option<String> {
    cell.ratio
        .map(|r| format!("{:.2} ({:.2}–{:.2})", r.value, r.low, r.high))
}

/// What was counted, and its words after a number.
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
    ("pressure_some.seconds", "s some task"),
    ("pressure_full.seconds", "s all tasks"),
];

/// Whether a counter is worth a place: where zswap is off its counters stand still, and nobody asks for them.
fn asked(name: &str, totals: &BTreeMap<String, f64>) -> bool {
    totals
        .get(name)
        .is_some_and(|n| *n > 0.0 || !name.starts_with("zswap"))
}

/// The source's block from `top`, in today's words; what was not observed is left out.
fn block(paging: &Paging) -> Vec<String> {
    let t = &paging.totals;
    let mut lines = Vec::new();
    let mut add = |name: &str, parts: Vec<String>| {
        if !parts.is_empty() {
            lines.push(format!("{name}: {}", parts.join(", ")));
        }
    };
    add(
        "VM",
        COUNTED
            .iter()
            .filter(|(key, _)| asked(key, t))
            .map(|(key, words)| format!("{:.0} {words}", t[*key]))
            .collect(),
    );
    add(
        "Waiting for memory",
        STALLED
            .iter()
            .filter_map(|(key, words)| Some(format!("{:.2} {words}", t.get(*key)?)))
            .collect(),
    );
    add(
        "PhysMem",
        ["before", "after"]
            .iter()
            .filter_map(|when| memory(t, when))
            .collect(),
    );
    lines
}

/// The same as a table: a name, and a figure for each placement; what was observed under none of them is left out.
pub fn counters(paging: &[Paging]) -> Vec<(String, Vec<String>)> {
    let row = |name: &str, key: &str, show: fn(f64) -> String| {
        let figure = |p: &Paging| p.totals.get(key).map_or("–".to_owned(), |n| show(*n));
        let shown = paging.iter().any(|p| asked(key, &p.totals));
        shown.then(|| {
            (
                name.to_owned(),
                paging.iter().map(figure).collect::<Vec<_>>(),
            )
        })
    };
    let mut rows: Vec<_> = COUNTED
        .iter()
        .filter_map(|(key, words)| row(words, key, |n| format!("{n:.0}")))
        .collect();
    rows.extend(STALLED.iter().filter_map(|(key, words)| {
        row(&format!("waiting for memory, {words}"), key, |n| {
            format!("{n:.2}")
        })
    }));
    for when in ["before", "after"] {
        for (key, words) in [("used", "used"), ("free", "free"), ("swap_used", "in swap")] {
            let name = format!("MiB {words} {when}");
            rows.extend(row(&name, &format!("{key}_{when}.bytes"), |n| {
                format!("{:.0}", n / f64::from(1 << 20))
            }));
        }
    }
    rows
}

fn memory(totals: &BTreeMap<String, f64>, when: &str) -> Option<String> {
    let mib = |name: &str| {
        totals
            .get(&format!("{name}_{when}.bytes"))
            .map(|bytes| bytes / f64::from(1 << 20))
    };
    let swap = mib("swap_used").map_or(String::new(), |mib| format!(", {mib:.0}M in swap"));
    Some(format!(
        "{when} {:.0}M used, {:.0}M free{swap}",
        mib("used")?,
        mib("free")?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_report::style::Style;

    #[test]
    fn the_sources_table_is_printed_as_the_source_printed_it() {
        let run = fingerpost_compare::references::load("launch-10.1").unwrap();
        let text = grid(&crate::launch::analysis::analyse(&run).unwrap()).render(&Style::default());
        let line = text.lines().find(|l| l.contains("iTunes")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            (words[0], words[1], words[2], words[5], words[6]),
            ("iTunes", "3.8", "3.1", "2.4", "0.63")
        );
    }

    #[test]
    fn the_block_tells_what_was_observed_and_nothing_else() {
        let totals = BTreeMap::from([
            ("swap_in.pages".to_owned(), 12.4),
            ("zswap_in.pages".to_owned(), 0.0),
            ("zswap_out.pages".to_owned(), 3.0),
            ("free_before.bytes".to_owned(), f64::from(10 << 20)),
            ("used_before.bytes".to_owned(), f64::from(5 << 20)),
        ]);
        let lines = block(&Paging {
            placement: "file".into(),
            totals,
        });
        assert_eq!(
            lines,
            [
                "VM: 12 swap-ins, 3 into zswap",
                "PhysMem: before 5M used, 10M free"
            ]
        );
    }

    #[test]
    fn the_counters_of_all_placements_stand_side_by_side() {
        let paging = |placement: &str, name: &str, value: f64| Paging {
            placement: placement.into(),
            totals: BTreeMap::from([(name.to_owned(), value), ("zswap_in.pages".to_owned(), 0.0)]),
        };
        let rows = counters(&[
            paging("file", "swap_out.pages", 7.0),
            paging("zram", "free_after.bytes", f64::from(3 << 20)),
        ]);
        let expected = [("swap-outs", ["7", "–"]), ("MiB free after", ["–", "3"])];
        assert_eq!(
            rows,
            expected.map(|(name, figures)| (name.to_owned(), figures.map(str::to_owned).to_vec()))
        );
    }

    #[test]
    fn a_hostile_name_cannot_steer_the_terminal() {
        let mut run = fingerpost_compare::references::load("launch-10.1").unwrap();
        run.measurements[0].params = run.measurements[0].params.clone().with("app", "\x1b[2J");
        let text = grid(&crate::launch::analysis::analyse(&run).unwrap()).render(&Style::default());
        assert!(!text.contains('\x1b'));
    }
}
