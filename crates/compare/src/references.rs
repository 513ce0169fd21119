//! The reference systems: every table of the articles that this project grew from, as runs named `ref:NAME`.
//!
//! A printed figure is taken with its rounding as interval (0.14 is 0.135 to 0.145) and judged by the same rules as any other; a
//! figure without repetition also carries the run-to-run variation of [`crate::ratio::RUN_TO_RUN_PUBLISHED`].

use std::collections::BTreeMap;

use fingerpost_record::host::Host;
use fingerpost_record::run::Tool;
use fingerpost_record::{Better, Estimate, Measurement, Observation, Outcome, Params, Process, Profile, Run, SCHEMA, Unit};
use serde::Deserialize;

/// The tables, one file each.
const TABLES: &[&str] = &[
    include_str!("../data/lmbench-process.json"),
    include_str!("../data/lmbench-syscall-signal.json"),
    include_str!("../data/lmbench-ipc.json"),
    include_str!("../data/mysql-scaling.json"),
    include_str!("../data/apache.json"),
    include_str!("../data/flops.json"),
    include_str!("../data/zerofill-3.json"),
    include_str!("../data/zerofill-4.json"),
    include_str!("../data/launch.json"),
    include_str!("../data/launch-pageins.json"),
    include_str!("../data/site.json"),
];

/// What the articles tell besides, as observations.
const ASIDES: &[&str] =
    &[include_str!("../data/flops-mix.json"), include_str!("../data/bottleneck-search.json"), include_str!("../data/launch-top.json")];

const HOSTS: &str = include_str!("../data/hosts.json");

#[derive(Deserialize)]
struct Table {
    title: String,
    /// The article.
    source: String,
    unit: Unit,
    /// What a printed figure is multiplied with to be in `unit`.
    scale: f64,
    better: Better,
    columns: Vec<Column>,
    runs: BTreeMap<String, Vec<Printed>>,
}

#[derive(Deserialize)]
struct Column {
    probe: String,
    #[serde(default)]
    params: Params,
}

/// A figure as printed, so that its digits tell its rounding; or one for each repetition, in order.
#[derive(Deserialize)]
#[serde(untagged)]
enum Printed {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
struct Aside {
    source: String,
    workload: String,
    observer: String,
    totals: BTreeMap<String, BTreeMap<String, f64>>,
}

#[derive(Deserialize)]
struct System {
    started: String,
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
        tool: Tool { version: "published".into(), commit: "unknown".into() },
        host: system.host,
        ..Run::default()
    };
    let mut sources: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for table in TABLES.iter().map(|text| data::<Table>(text)) {
        let Some(figures) = table.runs.get(name) else { continue };
        let rows = table.columns.iter().zip(figures).map(|(column, printed)| table.row(column, printed));
        run.measurements.extend(rows);
        sources.entry(table.source).or_default().push(table.title);
    }
    for aside in ASIDES.iter().map(|text| data::<Aside>(text)) {
        let Some(totals) = aside.totals.get(name) else { continue };
        run.observations.push(Observation {
            workload: aside.workload,
            params: Params::new(),
            observer: aside.observer,
            source: aside.source,
            series: Vec::new(),
            totals: totals.clone(),
            self_cost: 0.0,
            lost: 0,
        });
    }
    let named: Vec<String> = sources.into_iter().map(|(article, tables)| format!("{article}: {}", tables.join("; "))).collect();
    run.source = Some(named.join("; "));
    Some(run)
}

/// The error for a name that is none, with those that are.
pub fn unknown(name: &str) -> String {
    format!("there is no reference system “{name}”; there are {}", names().join(", "))
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
        let (estimate, processes) = match printed {
            Printed::One(text) => (rounded(text, self.scale), Vec::new()),
            Printed::Many(texts) => {
                let values: Vec<f64> = texts.iter().map(|t| rounded(t, self.scale).value).collect();
                let process = |v: &f64| Process { value: Some(*v), samples: vec![*v], batch: 1, ..Process::default() };
                (median_interval(&values), values.iter().map(process).collect())
            }
        };
        Measurement {
            probe: column.probe.clone(),
            version: 1,
            params: column.params.clone(),
            unit: self.unit,
            better: self.better,
            outcome: Outcome::Measured,
            reason: None,
            estimate: Some(estimate),
            percentiles: None,
            processes,
        }
    }
}

/// A printed figure with its rounding as interval.
fn rounded(text: &str, scale: f64) -> Estimate {
    let value: f64 = text.parse().expect("committed figures are numbers");
    let decimals = text.split_once('.').map_or(0, |(_, d)| d.len() as i32);
    let half = 0.5 * 10_f64.powi(-decimals);
    Estimate { value: value * scale, low: (value - half) * scale, high: (value + half) * scale, confidence: 0.95 }
}

/// The median of repetitions with its order-statistic interval of at least 95 %.
pub(crate) fn median_interval(values: &[f64]) -> Estimate {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
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
    Estimate { value: median, low: v[rank], high: v[n - 1 - rank], confidence: 0.95 }
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
            assert!(!run.measurements.is_empty() && run.source.is_some_and(|s| !s.is_empty()), "{name}");
        }
        assert!(load("ref:nothing").is_none() && unknown("nothing").contains("g5-2.7-darwin"));
    }

    #[test]
    fn every_figure_of_every_table_has_its_column_and_its_system() {
        let known = systems();
        for table in TABLES.iter().map(|t| data::<Table>(t)) {
            for (name, figures) in &table.runs {
                assert!(known.contains_key(name), "{name}");
                assert_eq!(figures.len(), table.columns.len(), "{} of {name}", table.title);
            }
        }
        let run = load("g5-2.7-darwin").unwrap();
        assert_eq!(run.measurements.len(), 3 + 7 + 5 + 7 + 2);
    }

    #[test]
    fn a_printed_figure_is_as_sure_as_its_last_digit() {
        let e = rounded("0.14", 1000.0);
        assert!((e.value - 140.0).abs() < 1e-9 && (e.low - 135.0).abs() < 1e-9 && (e.high - 145.0).abs() < 1e-9);
        assert!((rounded("659", 1.0).high - 659.5).abs() < 1e-9);
        let e = median_interval(&[3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
        assert_eq!((e.value, e.low, e.high), (6.0, 2.0, 10.0));
        let e = median_interval(&[1.0, 2.0]);
        assert_eq!((e.value, e.low, e.high), (1.5, 1.0, 2.0));
    }
}
