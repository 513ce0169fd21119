//! The rows of a run, in groups of one title, and what is told once of several of them.

use std::collections::{HashMap, HashSet};

use fingerpost_record::params::named;
use fingerpost_record::text::clean;
use fingerpost_record::{Better, Descriptor, Measurement, Outcome, Percentiles, Table, Unit};

use crate::figure::Figure;

/// Rows that are shown under one title.
#[derive(Clone, Debug)]
pub struct Group {
    /// Their table: a word for anchors, and the title.
    pub table: Table,
    /// The rows, skipped ones included.
    pub rows: Vec<Row>,
}

/// One measurement.
#[derive(Clone, Debug)]
pub struct Row {
    /// The probe's name.
    pub probe: String,
    /// The version of its definition.
    pub version: u32,
    /// The parameters as a person reads them: `fds=100 placement=same`.
    pub params: String,
    /// The same one by one.
    pub param_words: Vec<String>,
    /// Names and values, for data formats.
    pub param_list: Vec<(String, String)>,
    /// lmbench's name for such a row.
    pub lmbench: Option<String>,
    /// The unit of all values.
    pub unit: Unit,
    /// Which direction is the good one.
    pub better: Better,
    /// What became of it.
    pub outcome: Outcome,
    /// Why, when it is not measured.
    pub reason: Option<String>,
    /// The figure.
    pub figure: Option<Figure>,
    /// Where all samples lie.
    pub percentiles: Option<Percentiles>,
    /// Processes, samples, and disturbed ones among them.
    pub counts: [usize; 3],
    /// The median over the processes of each of [`COUNTERS`], per operation.
    pub counters: [Option<f64>; 4],
}

/// The hardware counters that a row shows where they could be read.
pub const COUNTERS: [&str; 4] = [
    "instructions_user",
    "instructions_kernel",
    "cycles_user",
    "cycles_kernel",
];

/// Skipped rows of a group that share a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The probes, each once, with the parameters where another variant was not skipped.
    pub names: Vec<String>,
    /// The reason.
    pub reason: String,
}

/// Rows that share an outcome and its reason: it is told once, with this many rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// What became of the rows.
    pub outcome: Outcome,
    /// Why.
    pub reason: String,
    /// How many rows.
    pub rows: usize,
}

impl Shared {
    /// As a sentence: `94 rows are untrusted: only 2 processes were measured; a figure needs 3`.
    pub fn sentence(&self) -> String {
        format!(
            "{} rows are {}: {}",
            self.rows,
            outcome_name(self.outcome),
            self.reason
        )
    }

    /// Whether a row is one of them.
    pub fn has(&self, row: &Row) -> bool {
        row.outcome == self.outcome && row.reason.as_deref() == Some(&self.reason)
    }
}

impl Group {
    /// The parameters that all of its rows have alike: they belong into the title, not into each row. None of a single
    /// row.
    pub fn shared_params(&self) -> Vec<String> {
        let mut rows = self.shown();
        let Some(first) = rows.next() else {
            return Vec::new();
        };
        let mut shared = first.param_words.clone();
        let mut count = 1;
        for row in rows {
            shared.retain(|param| row.param_words.contains(param));
            count += 1;
        }
        if count > 1 { shared } else { Vec::new() }
    }

    /// The rows that are shown one by one: all but the skipped ones.
    pub fn shown(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|r| r.outcome != Outcome::Skipped)
    }

    /// The skipped rows, those of one reason together.
    pub fn skipped(&self) -> Vec<Skipped> {
        let mut list: Vec<Skipped> = Vec::new();
        // Probes of which some variant was not skipped: their skipped variants are named with their parameters.
        let partly: HashSet<&str> = self.shown().map(|r| r.probe.as_str()).collect();
        let mut told: HashSet<(&str, String)> = HashSet::new();
        let mut place: HashMap<&str, usize> = HashMap::new();
        for row in self.rows.iter().filter(|r| r.outcome == Outcome::Skipped) {
            let reason = row.reason.as_deref().unwrap_or_default();
            let name = if partly.contains(row.probe.as_str()) {
                row.name()
            } else {
                row.probe.clone()
            };
            if !told.insert((reason, name.clone())) {
                continue;
            }
            let at = *place.entry(reason).or_insert(list.len());
            if at == list.len() {
                list.push(Skipped {
                    names: vec![],
                    reason: reason.to_owned(),
                });
            }
            list[at].names.push(name);
        }
        list
    }
}

impl Row {
    /// Its parameters without those that the title has.
    pub fn params_without(&self, shared: &[String]) -> String {
        self.param_words
            .iter()
            .filter(|word| !shared.contains(word))
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The row of a measurement.
    pub fn of(m: &Measurement) -> Row {
        Row {
            probe: text(&m.probe),
            version: m.version,
            params: text(&m.params.to_string()),
            param_words: m.params.iter().map(|(k, v)| text(&named(k, v))).collect(),
            param_list: m
                .params
                .iter()
                .map(|(k, v)| (text(k), text(&v.to_string())))
                .collect(),
            lmbench: m.descriptor().lmbench.as_deref().map(text),
            unit: m.unit,
            better: m.better,
            outcome: m.outcome,
            reason: m.reason.as_deref().map(text),
            figure: m.estimate.map(|e| Figure::new(e, m.unit)),
            percentiles: m.percentiles,
            counts: [
                m.processes.len(),
                m.processes.iter().map(|p| p.samples.len()).sum(),
                m.processes.iter().map(|p| p.disturbed.len()).sum(),
            ],
            counters: COUNTERS.map(|name| m.counter(name)),
        }
    }

    /// The percentiles in the digits of its figure; nothing of those that it has not.
    pub(crate) fn percentile_words(&self, figure: &Figure) -> [String; 3] {
        self.percentiles.map_or([const { String::new() }; 3], |p| {
            [p.p50, p.p90, p.p99].map(|v| figure.number(v))
        })
    }

    /// The probe with its parameters.
    pub fn name(&self) -> String {
        if self.params.is_empty() {
            self.probe.clone()
        } else {
            format!("{} {}", self.probe, self.params)
        }
    }
}

/// The outcome's name as the record writes it.
pub fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Measured => "measured",
        Outcome::Untrusted => "untrusted",
        Outcome::Skipped => "skipped",
        Outcome::Failed => "failed",
    }
}

/// A text of a run without what is not to be shown, and without space around it.
pub(super) fn text(hostile: &str) -> String {
    clean(hostile).trim().to_owned()
}

/// A table as it can be shown: its title may be of a hostile run.
fn shown(table: &Table) -> Table {
    Table {
        key: table.key.clone(),
        title: text(&table.title).into(),
    }
}

/// A row's place: that of its table, the table's key where tables have one place, and its own, those without one last.
pub(crate) fn place(descriptor: &Descriptor) -> (usize, String, u32) {
    let (table, key) = descriptor.table.order();
    (table, key.to_owned(), descriptor.place.unwrap_or(u32::MAX))
}

/// The rows in the order shown: that of the groups and their probes, then of the parameters. They are measured in a
/// random order, which decides only where neither group, probe nor parameters do.
pub fn in_order(measurements: &[Measurement]) -> Vec<&Measurement> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut rows: Vec<_> = measurements
        .iter()
        .map(|m| {
            let next = first.len();
            (
                place(&m.descriptor()),
                *first.entry(m.probe.as_str()).or_insert(next),
                m,
            )
        })
        .collect();
    rows.sort_by(|a, b| (&a.0, a.1, &a.2.params).cmp(&(&b.0, b.1, &b.2.params)));
    rows.into_iter().map(|(_, _, m)| m).collect()
}

/// Rows in the order shown, those of one group together.
pub(super) fn group_rows(measurements: &[Measurement]) -> Vec<Group> {
    let mut list: Vec<Group> = Vec::new();
    for m in in_order(measurements) {
        let descriptor = m.descriptor();
        match list.last_mut() {
            Some(last) if last.table.key == descriptor.table.key => last.rows.push(Row::of(m)),
            _ => list.push(Group {
                table: shown(&descriptor.table),
                rows: vec![Row::of(m)],
            }),
        }
    }
    list
}
