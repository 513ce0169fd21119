//! The reference systems: every table of the articles that this project grew from, as runs named `ref:NAME`.
//!
//! A printed figure is taken with its rounding as interval (0.14 is 0.135 to 0.145) and judged by the same rules as any
//! other; a figure without repetition also carries the run-to-run variation of [`crate::ratio::RUN_TO_RUN_PUBLISHED`].

use std::collections::BTreeMap;

use fingerpost_measure::estimate::sorted;
use fingerpost_record::host::Host;
use fingerpost_record::run::Tool;
use fingerpost_record::{
    Better, Estimate, Measurement, Observation, Params, Profile, Run, SCHEMA, Unit, suggest,
};
use serde::Deserialize;

use crate::import;

/// The tables, one file each, by the name that `replay` takes.
const TABLES: &[(&str, &str)] = &[
    (
        "lmbench-process",
        include_str!("../data/lmbench-process.json"),
    ),
    (
        "lmbench-syscall-signal",
        include_str!("../data/lmbench-syscall-signal.json"),
    ),
    ("lmbench-ipc", include_str!("../data/lmbench-ipc.json")),
    ("mysql-scaling", include_str!("../data/mysql-scaling.json")),
    (
        "mysql-query-cache",
        include_str!("../data/mysql-query-cache.json"),
    ),
    ("apache", include_str!("../data/apache.json")),
    ("flops", include_str!("../data/flops.json")),
    ("zerofill-3", include_str!("../data/zerofill-3.json")),
    ("zerofill-4", include_str!("../data/zerofill-4.json")),
    ("launch", include_str!("../data/launch.json")),
    (
        "launch-pageins",
        include_str!("../data/launch-pageins.json"),
    ),
    ("site", include_str!("../data/site.json")),
];

/// What the articles tell besides, as observations.
const TOTALS: &[&str] = &[
    include_str!("../data/flops-mix.json"),
    include_str!("../data/bottleneck-search.json"),
    include_str!("../data/mysql-percent.json"),
    include_str!("../data/mysql-notes.json"),
    include_str!("../data/launch-top.json"),
    include_str!("../data/launch-notes.json"),
];

const HOSTS: &str = include_str!("../data/hosts.json");

/// A published table: its columns, and a line for each system that is in it.
#[derive(Debug, Deserialize)]
pub struct Table {
    /// What it is about.
    pub title: String,
    /// The article.
    pub source: String,
    /// Where in the article it stands.
    pub place: String,
    /// The unit of every figure in a run.
    pub unit: Unit,
    /// What a printed figure is multiplied with to be in `unit`.
    pub scale: f64,
    /// Which direction is the good one.
    pub better: Better,
    /// What each column is a figure of.
    pub columns: Vec<Column>,
    /// Each system's figures by its name; nothing where the source has none.
    pub runs: BTreeMap<String, Vec<Option<Printed>>>,
}

/// The reference systems in the order in which their documents print them.
const ORDER: [&str; 14] = [
    "g5-2.7-darwin",
    "g5-2.5-linux",
    "xeon-3.6-linux",
    "opteron-850-linux",
    "flops-g5-2.7-gcc-4.0",
    "flops-g5-2.7-gcc-3.3",
    "flops-g5-2.5-gcc-3.3",
    "flops-opteron-2.4-gcc-3.3.3",
    "flops-opteron-2.4-gcc-4.0",
    "zerofill-g4-1ghz",
    "zerofill-cube-450",
    "launch-10.0.4",
    "launch-10.1",
    "site-powermac-9500",
];

impl Table {
    /// The systems of the table in the order in which the document prints them.
    pub fn systems(&self) -> Vec<&'static str> {
        ORDER
            .into_iter()
            .filter(|system| self.runs.contains_key(*system))
            .collect()
    }
}

/// What a published figure is a figure of.
#[derive(Debug, Deserialize)]
pub struct Column {
    /// The probe that measures the same.
    pub probe: String,
    /// Its parameters, as far as the source states them.
    #[serde(default)]
    pub params: Params,
    /// The version of the probe's definition that is the source's.
    #[serde(default = "first_version")]
    pub version: u32,
}

fn first_version() -> u32 {
    1
}

/// A published figure.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Printed {
    /// As printed, so that its digits tell its rounding.
    One(String),
    /// One for each repetition, in order.
    Many(Vec<String>),
    /// A figure that the text calls approximate.
    About {
        /// As printed.
        about: String,
        /// How far off it may be, for want of anything better: half of the last digit that the text gives.
        by: String,
    },
}

impl Printed {
    /// As the source prints it; repetitions with spaces between.
    pub fn text(&self) -> String {
        match self {
            Printed::One(text) => text.clone(),
            Printed::Many(texts) => texts.join(" "),
            Printed::About { about, .. } => format!("about {about}"),
        }
    }
}

/// The names of the published tables, in the order of their documents.
pub fn table_names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(name, _)| *name)
}

/// The published table of this name; `name` may begin with `ref:`. Nothing when there is no such table.
pub fn table(name: &str) -> Option<Table> {
    let name = name.strip_prefix("ref:").unwrap_or(name);
    TABLES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| data(text))
}

/// When the source of a reference system was published, in its own words where it says so; nothing for a run that is
/// none. `id` may be that of a part of such a run.
pub fn published(id: &str) -> Option<String> {
    systems()
        .remove(crate::select::whole(id).unwrap_or(id))
        .map(|system| system.published)
}

#[derive(Deserialize)]
struct Totals {
    source: String,
    workload: String,
    observer: String,
    totals: BTreeMap<String, BTreeMap<String, f64>>,
}

#[derive(Deserialize)]
struct System {
    /// A time for programs; where the source has none, the beginning of the guessed year.
    started: String,
    published: String,
    host: Host,
}

/// The names of the reference systems, without `ref:`, in alphabetical order.
pub fn names() -> Vec<String> {
    systems().into_keys().collect()
}

/// The run of a reference system; `name` may begin with `ref:`. Nothing when there is no such system.
pub fn load(name: &str) -> Option<Run> {
    let name = name.strip_prefix("ref:").unwrap_or(name);
    let system = systems().remove(name)?;
    let mut run = Run {
        schema: SCHEMA.into(),
        id: name.into(),
        started: system.started,
        profile: Profile::Imported,
        complete: true,
        tool: Tool {
            version: "published".into(),
            commit: "unknown".into(),
        },
        host: system.host,
        ..Run::default()
    };
    let mut sources: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for table in TABLES.iter().map(|(_, text)| data::<Table>(text)) {
        let Some(figures) = table.runs.get(name) else {
            continue;
        };
        let rows = table
            .columns
            .iter()
            .zip(figures)
            .filter_map(|(column, printed)| Some(table.row(column, printed.as_ref()?)));
        run.measurements.extend(rows);
        sources.entry(table.source).or_default().push(table.title);
    }
    for observed in TOTALS.iter().map(|text| data::<Totals>(text)) {
        let Some(totals) = observed.totals.get(name) else {
            continue;
        };
        run.observations.push(Observation {
            workload: observed.workload,
            observer: observed.observer,
            source: observed.source,
            totals: totals.clone(),
            ..Observation::default()
        });
    }
    let named: Vec<String> = sources
        .into_iter()
        .map(|(article, tables)| format!("{article}: {}", tables.join("; ")))
        .collect();
    run.source = Some(named.join("; "));
    Some(run)
}

/// The error for a name that is none, with the one that it is near to, else those that there are.
pub fn unknown(name: &str) -> String {
    let names = names();
    let known = names.iter().map(String::as_str);
    format!(
        "there is no reference system “{name}”; {}",
        suggest::or_else(name, known, || format!("there are {}", names.join(", ")))
    )
}

fn systems() -> BTreeMap<String, System> {
    data(HOSTS)
}

/// Reads a committed table. A test loads every one of them.
fn data<T: serde::de::DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).expect("committed reference data is well-formed")
}

impl Table {
    fn row(&self, column: &Column, printed: &Printed) -> Measurement {
        let (estimate, repetitions) = match printed {
            Printed::One(text) => (rounded(text, self.scale), Vec::new()),
            Printed::About { about, by } => {
                (around(number(about), number(by), self.scale), Vec::new())
            }
            Printed::Many(texts) => {
                let values: Vec<f64> = texts.iter().map(|t| rounded(t, self.scale).value).collect();
                (median_interval(&values), values)
            }
        };
        let row = import::row(
            &column.probe,
            column.params.clone(),
            self.unit,
            self.better,
            estimate,
            &repetitions,
        );
        Measurement {
            version: column.version,
            ..row
        }
    }
}

/// A printed figure with its rounding as interval.
fn rounded(text: &str, scale: f64) -> Estimate {
    let decimals = text.split_once('.').map_or(0, |(_, d)| d.len() as i32);
    around(number(text), 0.5 * 10_f64.powi(-decimals), scale)
}

fn number(text: &str) -> f64 {
    text.parse().expect("committed figures are numbers")
}

fn around(value: f64, half: f64, scale: f64) -> Estimate {
    Estimate {
        value: value * scale,
        low: (value - half) * scale,
        high: (value + half) * scale,
        confidence: 0.95,
    }
}

/// The median of repetitions with its order-statistic interval of at least 95 %.
pub fn median_interval(values: &[f64]) -> Estimate {
    let v = sorted(values);
    let n = v.len();
    let median = (v[(n - 1) / 2] + v[n / 2]) / 2.0;
    // The widest pair of ranks whose two tails of the binomial together stay below 5 %.
    let (mut below, mut term, mut rank) = (0.0, 0.5_f64.powi(n as i32), 0);
    while rank < n / 2 && 2.0 * (below + term) <= 0.05 {
        below += term;
        rank += 1;
        term *= (n + 1 - rank) as f64 / rank as f64;
    }
    let rank = rank.saturating_sub(1);
    Estimate {
        value: median,
        low: v[rank],
        high: v[n - 1 - rank],
        confidence: 0.95,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_system_is_a_valid_run_with_its_source() {
        assert_eq!(names().len(), 4 + 5 + 2 + 2 + 1);
        for name in names() {
            let run = load(&format!("ref:{name}")).unwrap();
            fingerpost_record::load::validate(&run).unwrap();
            assert!(
                !run.measurements.is_empty() && run.source.is_some_and(|s| !s.is_empty()),
                "{name}"
            );
        }
        assert!(load("ref:nothing").is_none() && unknown("nothing").contains("there are flops-"));
        assert!(
            unknown("g5-2.7-darwim").ends_with("; did you mean “g5-2.7-darwin”?"),
            "{}",
            unknown("g5-2.7-darwim")
        );
    }

    #[test]
    fn every_figure_of_every_table_has_its_column_and_its_system() {
        let known = systems();
        assert!(
            known.len() == ORDER.len() && ORDER.iter().all(|system| known.contains_key(*system))
        );
        for table in TABLES.iter().map(|(_, t)| data::<Table>(t)) {
            for (name, figures) in &table.runs {
                assert!(known.contains_key(name), "{name}");
                assert_eq!(
                    figures.len(),
                    table.columns.len(),
                    "{} of {name}",
                    table.title
                );
            }
        }
        let run = load("g5-2.7-darwin").unwrap();
        assert_eq!(run.measurements.len(), 3 + 7 + 5 + 7 + 1 + 2);
        assert!(
            table_names().all(|name| table(name).is_some_and(|t| !t.place.is_empty()))
                && table("nothing").is_none()
        );
        assert_eq!(
            published("site-powermac-9500[store=files]").unwrap(),
            "Saturday, 15 June 1996, 5:14:20 PM (when the page was last built)"
        );
        assert_eq!(published("20260102T030405Z-12345678"), None);
    }

    #[test]
    fn published_rows_are_of_the_definitions_that_are_measured_today() {
        for column in TABLES.iter().flat_map(|(_, t)| data::<Table>(t).columns) {
            let Some(probe) = fingerpost_probes::all().find(|p| p.name == column.probe) else {
                continue;
            };
            assert_eq!(probe.version, column.version, "{}", column.probe);
        }
    }

    #[test]
    fn a_printed_figure_is_as_sure_as_its_last_digit() {
        let e = rounded("0.14", 1000.0);
        assert!(
            (e.value - 140.0).abs() < 1e-9
                && (e.low - 135.0).abs() < 1e-9
                && (e.high - 145.0).abs() < 1e-9
        );
        assert!((rounded("659", 1.0).high - 659.5).abs() < 1e-9);
        let e = median_interval(&[3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
        assert_eq!((e.value, e.low, e.high), (6.0, 2.0, 10.0));
        let e = median_interval(&[1.0, 2.0]);
        assert_eq!((e.value, e.low, e.high), (1.5, 1.0, 2.0));
    }
}
