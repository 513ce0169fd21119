//! Figures that published tables and imported results have and no probe of ours measures, and what is made for them
//! from the rows that measure their parts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fingerpost_record::descriptor::lmbench;
use fingerpost_record::{Outcome, Params};

use crate::figure::Figure;
use crate::side::{Side, SideRow};

/// A figure that published and imported results have and no probe of ours measures.
#[derive(Debug)]
pub struct Published {
    /// The name of its rows.
    pub name: &'static str,
    /// What it is.
    pub summary: &'static str,
    /// What of ours is set beside it, or why nothing is.
    pub beside: &'static str,
}

impl Published {
    /// What lmbench calls it.
    pub fn lmbench(&self) -> Option<&'static str> {
        lmbench::operation(self.name).map(|operation| operation.name)
    }

    /// The probes whose mean is set beside it: those that lmbench calls the same, which its summary gives as one
    /// figure.
    pub fn mean_of(&self) -> Vec<&'static str> {
        let alike =
            |of: &&lmbench::Operation| Some(of.name) == self.lmbench() && of.probe != self.name;
        lmbench::OPERATIONS
            .iter()
            .filter(alike)
            .map(|operation| operation.probe)
            .collect()
    }
}

/// All of them.
pub static PUBLISHED: [Published; 2] = [
    Published {
        name: "lmbench.null_io",
        summary: "the mean of reading one byte from /dev/zero and writing one to /dev/null, which lmbench's summary \
            prints as one figure",
        beside: "the mean of syscall.read and syscall.write of the same run, in `compare` and `replay`; neither of the \
            two alone is equal to it, and \
                 no probe measures it by this name",
    },
    Published {
        name: "lmbench.select_files",
        summary: "select on so many descriptors of files, of an imported result",
        beside: "nothing: syscall.select waits for TCP connections, which lmbench measures as another figure",
    },
];

/// The figure of this name, where it is one that no probe of ours measures.
pub fn published(name: &str) -> Option<&'static Published> {
    PUBLISHED.iter().find(|published| published.name == name)
}

/// The side with what the other side's published rows ask for; itself where they ask for nothing.
pub fn with<'a>(side: &'a Side, other: &Side) -> Cow<'a, Side> {
    let key = |probe: &str| (probe.to_owned(), 1, Params::new());
    let has = |side: &Side, probe: &str| side.rows.contains_key(&key(probe));
    let mut full = Cow::Borrowed(side);
    for published in PUBLISHED
        .iter()
        .filter(|p| has(other, p.name) && !has(side, p.name))
    {
        let [a, b] = published.mean_of()[..] else {
            continue;
        };
        let parts = side.rows.get(&key(a)).zip(side.rows.get(&key(b)));
        if let Some(row) = parts.and_then(|(a, b)| mean(a, b)) {
            full.to_mut().rows.insert(key(published.name), row);
        }
    }
    full
}

/// The mean of two rows of the same runs; nothing where either was not measured in one of them.
fn mean(a: &SideRow, b: &SideRow) -> Option<SideRow> {
    let alike = a.unit == b.unit && a.figures.len() == b.figures.len() && !a.figures.is_empty();
    let measured = [a, b].iter().all(|row| row.outcome == Outcome::Measured);
    (alike && measured).then(|| SideRow {
        figures: a
            .figures
            .iter()
            .zip(&b.figures)
            .map(|(a, b)| mean_of(a, b))
            .collect(),
        counters: BTreeMap::new(),
        descriptor: None,
        ..a.clone()
    })
}

fn mean_of(a: &Figure, b: &Figure) -> Figure {
    let mid = |a: f64, b: f64| (a + b) / 2.0;
    let same_number = a.processes.len() == b.processes.len();
    let processes = if same_number {
        a.processes
            .iter()
            .zip(&b.processes)
            .map(|(a, b)| mid(*a, *b))
            .collect()
    } else {
        Vec::new()
    };
    Figure {
        value: mid(a.value, b.value),
        low: mid(a.low, b.low),
        high: mid(a.high, b.high),
        confidence: a.confidence.min(b.confidence),
        processes,
        host_made: a.host_made.or(b.host_made),
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Better, Estimate, Run, Unit};

    use super::*;
    use crate::{Options, compare, import, references};

    fn own() -> Run {
        let row = |probe: &str, value: f64| {
            let mut row = fingerpost_record::fixture::row(
                probe,
                Params::new(),
                Unit::Nanoseconds,
                Better::Lower,
            );
            row.estimate = Some(Estimate {
                value,
                low: value * 0.99,
                high: value * 1.01,
                confidence: 0.95,
            });
            row
        };
        Run {
            measurements: vec![row("syscall.read", 200.0), row("syscall.write", 100.0)],
            ..Run::default()
        }
    }

    #[test]
    fn reading_and_writing_are_put_beside_null_io_and_nothing_is_made_up_without_it() {
        let reference = references::load("g5-2.5-linux").unwrap();
        let c = compare(
            std::slice::from_ref(&reference),
            &[own()],
            &Options::default(),
        );
        let row = c
            .rows
            .iter()
            .find(|r| r.probe == "lmbench.null_io")
            .unwrap();
        assert!((row.new.value - 150.0).abs() < 1e-9 && (row.base.value - 260.0).abs() < 1e-9);
        let mut half = own();
        half.measurements.pop();
        let c = compare(&[reference], &[half], &Options::default());
        assert!(c.rows.iter().all(|r| r.probe != "lmbench.null_io"));
        let c = compare(&[own()], &[own()], &Options::default());
        assert!(c.rows.iter().all(|r| r.probe != "lmbench.null_io"));
    }
    #[test]
    fn each_figure_without_a_probe_is_one_that_results_have_and_names_probes_that_there_are() {
        let measured = |name: &str| fingerpost_probes::all().any(|probe| probe.name == name);
        let imported = import::lmbench(b"Select on 10 fd's: 0.9 microseconds\n").unwrap();
        let tables = references::table_names().filter_map(references::table);
        let published: Vec<String> = tables
            .flat_map(|table| table.columns)
            .map(|column| column.probe)
            .collect();
        for figure in &PUBLISHED {
            assert!(
                !measured(figure.name) && figure.mean_of().iter().all(|name| measured(name)),
                "{}",
                figure.name
            );
            let has = published
                .iter()
                .chain(imported.measurements.iter().map(|m| &m.probe))
                .any(|probe| probe == figure.name);
            assert!(has, "{}", figure.name);
            assert!(
                figure
                    .mean_of()
                    .iter()
                    .all(|name| figure.beside.contains(name)),
                "{}",
                figure.beside
            );
        }
        // A published row that no probe and no lab has would be another one to tell of.
        let of_a_lab = |name: &str| {
            ["database.", "web.", "site.", "launch."]
                .iter()
                .any(|lab| name.starts_with(lab))
        };
        for name in &published {
            assert!(
                measured(name) || of_a_lab(name) || self::published(name).is_some(),
                "{name}"
            );
        }
    }
}
