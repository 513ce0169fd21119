//! One side of a comparison: one or many runs, reduced to what comparing needs.
//!
//! Runs are added one at a time and can then be dropped, so that a thousand runs a side need the memory of their
//! figures only.

use std::collections::BTreeMap;

use fingerpost_diagnose::hosts;
use fingerpost_diagnose::steps::{KnownSide, Steps};
use fingerpost_record::{
    Better, Descriptor, Host, Measurement, Outcome, Params, Profile, Run, Unit,
};
use serde::Serialize;

use crate::figure::{Figure, HostMade, made_by_the_host};
use crate::select;

/// Doubts that a side keeps: no host has as many, and a hostile file that does must not cost quadratic time.
const MOST_DOUBTS: usize = 200;

/// A row of one side, over all its runs.
#[derive(Clone, Debug)]
pub struct SideRow {
    /// What a run states of it besides its figures.
    pub descriptor: Option<Descriptor>,
    /// Version of the probe's definition.
    pub version: u32,
    /// Unit of every figure.
    pub unit: Unit,
    /// The good direction.
    pub better: Better,
    /// The worst outcome among the runs that have the row.
    pub outcome: Outcome,
    /// Why, when the outcome is not `measured`.
    pub reason: Option<String>,
    /// A figure per run that has one.
    pub figures: Vec<Figure>,
    /// Counters per operation, one median per run.
    pub counters: BTreeMap<String, Vec<f64>>,
}

/// Who is compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SideInfo {
    /// The runs' ids.
    pub ids: Vec<String>,
    /// What a sentence calls this side: a reference's name, else the host's, else the first id.
    pub name: String,
    /// What the first run measured, in the words of [`fingerpost_record::name`]; nothing of a published system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
    /// When the first run started.
    pub started: String,
    /// Where the data comes from, when this tool did not measure it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What speaks against figures from this side.
    pub doubts: Vec<String>,
}

/// One side of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Who this is.
    pub info: SideInfo,
    /// The host of the first run.
    pub host: Host,
    /// The facts of all runs' hosts; a fact that varies among the runs holds every value.
    pub facts: BTreeMap<&'static str, Vec<String>>,
    /// Whether every run is imported or published: such rows may leave parameters unstated.
    pub imported: bool,
    /// The rows by probe, version and parameters.
    pub rows: BTreeMap<(String, u32, Params), SideRow>,
    /// Its workload steps.
    pub steps: Steps,
    /// The parameters that were taken out of every row, the same in all runs, because a part of a run was asked for
    /// ([`crate::select`]).
    pub taken_out: Params,
}

impl Side {
    /// A side of these runs.
    pub fn of(runs: &[Run]) -> Side {
        let mut side = Side::default();
        runs.iter().for_each(|run| side.add(run));
        side
    }

    /// The side as a judge of workloads sees it.
    pub fn evidence(&self) -> KnownSide<'_> {
        KnownSide {
            name: &self.info.name,
            host: &self.host,
            facts: &self.facts,
            steps: &self.steps,
        }
    }

    /// Adds a run.
    pub fn add(&mut self, run: &Run) {
        self.add_part(run, &Params::new());
    }

    /// Adds a part of a run, of whose rows these parameters were taken out ([`crate::select`]).
    pub fn add_part(&mut self, run: &Run, taken_out: &Params) {
        if self.info.ids.is_empty() {
            self.host = run.host.clone();
            self.imported = true;
            self.info.started.clone_from(&run.started);
            self.info.source.clone_from(&run.source);
            self.info.name = name_of(run);
            let own = run.profile != Profile::Imported;
            self.info.measured = own
                .then(|| fingerpost_record::name::of(run.label.as_deref(), &run.command))
                .flatten();
            self.taken_out = select::taken_out_of(&run.id, taken_out);
        }
        // Of several parts, what all of them are parts by.
        let of_this = select::taken_out_of(&run.id, taken_out);
        self.taken_out
            .0
            .retain(|key, value| of_this.get(key) == Some(value));
        self.imported &= run.profile == Profile::Imported;
        self.info.ids.push(run.id.clone());
        for doubt in &run.host.doubts {
            if self.info.doubts.len() < MOST_DOUBTS && !self.info.doubts.contains(doubt) {
                self.info.doubts.push(doubt.clone());
            }
        }
        // A published table does not say that there was no quota or swap; a description that was measured does.
        let told = |value: &str| run.profile != Profile::Imported || value != hosts::NONE;
        for (what, value) in hosts::facts(&run.host).into_iter().filter(|(_, v)| told(v)) {
            let values = self.facts.entry(what).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let guest = run
            .host
            .virtualization
            .as_deref()
            .is_some_and(|v| v != "none");
        for m in &run.measurements {
            let dependence = m
                .descriptor_without(taken_out)
                .depends_on_host
                .filter(|_| guest);
            let host_made = dependence.map(made_by_the_host);
            self.add_row(m, host_made);
        }
        self.steps.add(run);
    }

    /// Two parts of one run were measured in the same minutes: what the host decided there it decided for both.
    pub fn share_a_run(one: &mut Side, other: &mut Side) {
        let of_one_run = match (&one.info.ids[..], &other.info.ids[..]) {
            ([a], [b]) => select::whole(a)
                .zip(select::whole(b))
                .is_some_and(|(a, b)| a == b),
            _ => false,
        };
        if of_one_run {
            let figures = [one, other]
                .into_iter()
                .flat_map(|side| side.rows.values_mut())
                .flat_map(|row| &mut row.figures);
            figures.for_each(|figure| figure.host_made = None);
        }
    }

    /// The same side with other parameters of its rows and of what was seen of its workloads; rows that `keep` holds
    /// stay as they are.
    pub(crate) fn with_params(
        &self,
        keep: impl Fn(&(String, u32, Params)) -> bool,
        other: impl Fn(&str, &Params) -> Params,
    ) -> Side {
        let mut side = self.clone();
        side.rows.retain(|key, _| keep(key));
        for (key, row) in self.rows.iter().filter(|(key, _)| !keep(key)) {
            let changed = (key.0.clone(), key.1, other(&key.0, &key.2));
            let place = if side.rows.contains_key(&changed) {
                key.clone()
            } else {
                changed
            };
            side.rows.insert(place, row.clone());
        }
        side.steps
            .budgets
            .iter_mut()
            .for_each(|b| b.params = other(&b.workload, &b.params));
        side.steps
            .paths
            .iter_mut()
            .for_each(|p| p.params = other(&p.workload, &p.params));
        side.steps
            .observations
            .iter_mut()
            .for_each(|o| o.params = other(&o.workload, &o.params));
        side
    }

    /// The same side as a part by these parameters, which all of its rows have.
    pub(crate) fn part_by(&self, params: &Params) -> Side {
        let mut side = self.with_params(
            |_| false,
            |_, of| of.only(|key, _| params.get(key).is_none()),
        );
        side.taken_out.0.extend(params.0.clone());
        side
    }

    fn add_row(&mut self, m: &Measurement, host_made: Option<HostMade>) {
        let row = self
            .rows
            .entry((m.probe.clone(), m.version, m.params.clone()))
            .or_insert_with(|| SideRow {
                descriptor: m.descriptor.clone(),
                version: m.version,
                unit: m.unit,
                better: m.better,
                outcome: m.outcome,
                reason: m.reason.clone(),
                figures: Vec::new(),
                counters: BTreeMap::new(),
            });
        // Outcomes are declared from the best to the worst.
        if m.outcome as u8 > row.outcome as u8 {
            row.outcome = m.outcome;
            row.reason.clone_from(&m.reason);
        }
        // Runs that disagree about a row's unit cannot be averaged; the first one's counts.
        if let (Some(e), true) = (&m.estimate, m.unit == row.unit && m.better == row.better) {
            row.figures.push(Figure {
                host_made,
                ..Figure::of(*e, m.process_values())
            });
        }
        let names: std::collections::BTreeSet<&String> =
            m.processes.iter().flat_map(|p| p.counters.keys()).collect();
        for name in names {
            if let Some(value) = m.counter(name) {
                row.counters.entry(name.clone()).or_default().push(value);
            }
        }
    }
}

impl SideRow {
    /// The geometric mean of the runs' estimates, when there are any.
    pub fn value(&self) -> Option<f64> {
        match self.figures.as_slice() {
            [] => None,
            [one] => Some(one.value),
            many if many.iter().all(|f| f.value > 0.0) => {
                Some((many.iter().map(|f| f.value.ln()).sum::<f64>() / many.len() as f64).exp())
            }
            many => Some(many.iter().map(|f| f.value).sum::<f64>() / many.len() as f64),
        }
    }

    /// A counter's mean over the runs, per operation.
    pub fn counter(&self, name: &str) -> Option<f64> {
        let values = self.counters.get(name)?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }
}

fn name_of(run: &Run) -> String {
    if run.profile == Profile::Imported || run.host.hostname.is_empty() {
        run.id.clone()
    } else {
        run.host.hostname.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_run_is_judged_by_what_it_was_a_part_of() {
        let mut run = fingerpost_record::fixture::run();
        run.host.virtualization = Some("kvm".into());
        let params = Params::new().with("stride", 64);
        let mut row = fingerpost_record::fixture::row(
            "memory.latency",
            params,
            Unit::Nanoseconds,
            Better::Lower,
        );
        row.estimate = Some(fingerpost_record::Estimate {
            value: 100.0,
            low: 99.0,
            high: 101.0,
            confidence: 0.95,
        });
        run.measurements = vec![row];
        let host_made = |taken_out: Params| {
            let mut side = Side::default();
            side.add_part(&run, &taken_out);
            side.rows.values().next().unwrap().figures[0]
                .host_made
                .is_some()
        };
        assert!(host_made(Params::new().with("size", 64 << 20)));
        assert!(!host_made(Params::new().with("size", 16 << 10)));
    }

    #[test]
    fn parts_of_one_run_have_their_host_in_common() {
        let side = |id: &str| {
            let figure = Figure {
                value: 1.0,
                low: 1.0,
                high: 1.0,
                confidence: 0.95,
                processes: Vec::new(),
                host_made: Some(HostMade {
                    least: 0.07,
                    in_parts: true,
                }),
            };
            let mut side = Side::default();
            side.info.ids.push(id.to_owned());
            let row = SideRow {
                descriptor: None,
                version: 1,
                unit: Unit::Nanoseconds,
                better: Better::Lower,
                outcome: Outcome::Measured,
                reason: None,
                figures: vec![figure],
                counters: BTreeMap::new(),
            };
            side.rows.insert(("p".into(), 1, Params::new()), row);
            side
        };
        let kept = |a: &str, b: &str| {
            let (mut a, mut b) = (side(a), side(b));
            Side::share_a_run(&mut a, &mut b);
            [a, b].map(|side| {
                side.rows.values().next().unwrap().figures[0]
                    .host_made
                    .is_some()
            })
        };
        assert_eq!(kept("x[api=mmap]", "x[api=brk]"), [false, false]);
        assert_eq!(kept("x[api=mmap]", "y[api=brk]"), [true, true]);
        assert_eq!(
            kept("x", "x"),
            [true, true],
            "a run beside itself is judged like two"
        );
    }
}
