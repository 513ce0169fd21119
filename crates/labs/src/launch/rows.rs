//! What the sequences of a run gave, as rows of the record.

use std::collections::BTreeMap;

use fingerpost_measure::estimate;
use fingerpost_record::descriptor::table;
use fingerpost_record::{Better, Measurement, Observation, Outcome, Params, Process};

use super::paging;
use super::sequence::Sequence;
use crate::Sink;
use crate::rows::Definition;

/// How long an application took until it was ready.
pub const OF_TIME: Definition = Definition {
    table: &table::LAUNCH,
    probe: "launch.time",
    ..Definition::LATENCY
};
/// How long all of a sequence took together.
pub const OF_SUM: Definition = Definition {
    probe: "launch.sum",
    ..OF_TIME
};
/// Sequences that a figure needs; the source made as many.
const ENOUGH: usize = 2;

/// The sequences of one placement.
#[derive(Debug, Default)]
struct Column {
    times: Vec<Vec<f64>>,
    reasons: Vec<Option<String>>,
    sums: Vec<f64>,
    totals: Vec<BTreeMap<String, f64>>,
    self_cost: f64,
    killed: bool,
}

/// All sequences so far.
#[derive(Debug)]
pub struct Sequences {
    apps: Vec<String>,
    placements: Vec<String>,
    stated: Params,
    enough: usize,
    columns: Vec<Column>,
}

impl Sequences {
    /// None yet. `stated` is written into every row. Of a machine that is taken `as_is` one sequence is all that there
    /// can be.
    pub fn new(
        apps: Vec<String>,
        placements: Vec<String>,
        stated: Params,
        as_is: bool,
    ) -> Sequences {
        let column = || Column {
            times: vec![vec![]; apps.len()],
            reasons: vec![None; apps.len()],
            ..Column::default()
        };
        let columns = placements.iter().map(|_| column()).collect();
        Sequences {
            apps,
            placements,
            stated,
            enough: if as_is { 1 } else { ENOUGH },
            columns,
        }
    }

    /// Takes a sequence in.
    pub fn enter(&mut self, placement: usize, sequence: &Sequence) {
        let column = &mut self.columns[placement];
        for (i, time) in sequence.times.iter().enumerate() {
            match time {
                Ok(elapsed) => column.times[i].push(elapsed.as_nanos() as f64),
                Err(sentence) => column.reasons[i] = Some(sentence.clone()),
            }
        }
        if sequence.times.len() == self.apps.len() && sequence.times.iter().all(Result::is_ok) {
            column.sums.push(
                sequence
                    .times
                    .iter()
                    .flatten()
                    .map(|t| t.as_nanos() as f64)
                    .sum(),
            );
        }
        column.killed |= sequence.killed > 0;
        column.totals.push(sequence.totals.clone());
        column.self_cost += sequence.self_cost;
    }

    /// Tells the rows of one placement as they stand.
    pub fn tell(&self, placement: usize, sink: &mut dyn Sink) {
        let column = &self.columns[placement];
        for (i, app) in self.apps.iter().enumerate() {
            sink.measurement(self.row(
                &OF_TIME,
                Some(app),
                placement,
                &column.times[i],
                column.reasons[i].clone(),
            ));
        }
        let reason = column
            .sums
            .is_empty()
            .then(|| column.reasons.iter().flatten().next().cloned())
            .flatten();
        sink.measurement(self.row(&OF_SUM, None, placement, &column.sums, reason));
    }

    /// Tells what observing one placement gave: the mean over its sequences.
    pub fn tell_paging(&self, placement: usize, sink: &mut dyn Sink) {
        let column = &self.columns[placement];
        if column.totals.is_empty() {
            return;
        }
        let mut totals = paging::mean(&column.totals);
        totals.insert("sequences".into(), column.totals.len() as f64);
        sink.observation(Observation {
            workload: "launch".into(),
            params: self.params(None, placement),
            observer: "paging".into(),
            source: "/proc/vmstat, /proc/meminfo, /proc/pressure/memory and the applications' memory.stat, over a \
                 sequence, the whole machine"
                .into(),
            totals,
            self_cost: column.self_cost,
            ..Observation::default()
        });
    }

    /// Tells that a placement cannot be had.
    pub fn skip(&self, placement: usize, reason: &str, sink: &mut dyn Sink) {
        if !self.columns[placement].totals.is_empty() {
            sink.warn(&format!(
                "no further sequence under {}: {reason}",
                self.placements[placement]
            ));
            return;
        }
        for of in [OF_TIME, OF_SUM] {
            sink.measurement(of.without_figure(
                self.params(None, placement),
                Outcome::Skipped,
                reason.to_owned(),
            ));
        }
    }

    /// Tells that an application cannot be launched, under no placement.
    pub fn skip_app(&self, app: &str, reason: &str, sink: &mut dyn Sink) {
        for placement in 0..self.placements.len() {
            let params = self.params(Some(app), placement);
            sink.measurement(OF_TIME.without_figure(params, Outcome::Skipped, reason.to_owned()));
        }
    }

    fn params(&self, app: Option<&str>, placement: usize) -> Params {
        let params = self
            .stated
            .clone()
            .with("placement", self.placements[placement].as_str());
        app.into_iter()
            .fold(params, |params, app| params.with("app", app))
    }

    fn row(
        &self,
        of: &Definition,
        app: Option<&str>,
        placement: usize,
        values: &[f64],
        reason: Option<String>,
    ) -> Measurement {
        let doubt = match &reason {
            Some(reason) => Some(format!(
                "not ready in every sequence; the last time: {reason}"
            )),
            None => (values.len() < self.enough)
                .then(|| format!("launched once; a figure needs {ENOUGH} sequences")),
        };
        let none = || {
            let reason =
                reason.unwrap_or_else(|| "no whole sequence was made before the run ended".into());
            if !self.columns[placement].killed {
                return (Outcome::Failed, reason);
            }
            let why = "the memory limit killed it: under this placement the applications do not fit; raise `pressure` \
                or give more swap";
            (Outcome::Skipped, format!("{why} ({reason})"))
        };
        let processes = values
            .iter()
            .map(|value| Process::of_one(*value, 1))
            .collect();
        of.row(
            self.params(app, placement),
            processes,
            estimate::percentiles(values, Better::Lower),
            doubt,
            none,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[derive(Default)]
    struct Kept {
        rows: Vec<Measurement>,
        observations: Vec<Observation>,
        warnings: Vec<String>,
    }

    impl Sink for Kept {
        fn measurement(&mut self, row: Measurement) {
            self.rows.push(row);
        }
        fn observation(&mut self, observation: Observation) {
            self.observations.push(observation);
        }
        fn warn(&mut self, sentence: &str) {
            self.warnings.push(sentence.to_owned());
        }
    }

    fn sequence(times: &[Result<u64, &str>]) -> Sequence {
        let times = times
            .iter()
            .map(|t| t.map(Duration::from_millis).map_err(str::to_owned))
            .collect();
        Sequence {
            times,
            totals: BTreeMap::from([("swap_in.pages".to_owned(), 4.0)]),
            ..Sequence::default()
        }
    }

    fn empty(apps: &[&str], placement: &str) -> Sequences {
        let apps = apps.iter().map(|app| (*app).to_owned()).collect();
        Sequences::new(
            apps,
            vec![placement.to_owned()],
            Params::new().with("state", "cold"),
            false,
        )
    }

    fn told(sequences: &Sequences) -> Kept {
        let mut kept = Kept::default();
        sequences.tell(0, &mut kept);
        sequences.tell_paging(0, &mut kept);
        kept
    }

    #[test]
    fn two_sequences_make_figures_and_a_sum() {
        let mut sequences = empty(&["a", "b"], "file");
        sequences.enter(0, &sequence(&[Ok(10), Ok(30)]));
        assert!(
            told(&sequences)
                .rows
                .iter()
                .all(|r| r.outcome == Outcome::Untrusted)
        );
        sequences.enter(0, &sequence(&[Ok(12), Ok(30)]));
        let kept = told(&sequences);
        assert!(
            kept.rows.iter().all(|r| r.outcome == Outcome::Measured),
            "{:?}",
            kept.rows
        );
        let of_all = || {
            Params::new()
                .with("placement", "file")
                .with("state", "cold")
        };
        assert_eq!(kept.rows[0].params, of_all().with("app", "a"));
        assert_eq!(
            (&kept.rows[2].params, &kept.observations[0].params),
            (&of_all(), &of_all())
        );
        assert_eq!(kept.rows[2].probe, "launch.sum");
        assert_eq!(kept.rows[2].process_values(), [40e6, 42e6]);
        assert_eq!(kept.observations[0].totals["sequences"], 2.0);
    }

    #[test]
    fn what_was_not_ready_has_its_reason_and_spoils_the_sum() {
        let mut sequences = empty(&["a", "b"], "file");
        sequences.enter(0, &sequence(&[Ok(10), Err("too late")]));
        sequences.enter(0, &sequence(&[Ok(10), Err("too late")]));
        let rows = told(&sequences).rows;
        assert_eq!(rows[0].outcome, Outcome::Measured);
        assert_eq!(
            (rows[1].outcome, rows[1].reason.as_deref()),
            (Outcome::Failed, Some("too late"))
        );
        assert_eq!(rows[2].outcome, Outcome::Failed);
        let mut killed = empty(&["a"], "none");
        killed.enter(
            0,
            &Sequence {
                killed: 1,
                ..sequence(&[Err("ended")])
            },
        );
        assert_eq!(told(&killed).rows[0].outcome, Outcome::Skipped);
    }

    #[test]
    fn one_sequence_after_a_boot_is_a_figure() {
        let mut sequences = Sequences::new(
            vec!["a".into()],
            vec!["none".into()],
            Params::new().with("state", "after-boot"),
            true,
        );
        sequences.enter(0, &sequence(&[Ok(10)]));
        let row = &told(&sequences).rows[0];
        assert_eq!(
            (row.outcome, row.params.text("state")),
            (Outcome::Measured, Some("after-boot"))
        );
    }

    #[test]
    fn a_placement_that_cannot_be_had_is_skipped_once() {
        let mut sequences = empty(&["a"], "zram");
        let mut kept = Kept::default();
        sequences.skip(0, "no zram here", &mut kept);
        assert_eq!(kept.rows.len(), 2);
        assert!(kept.rows.iter().all(|r| r.outcome == Outcome::Skipped));
        sequences.enter(0, &sequence(&[Ok(10)]));
        sequences.skip(0, "no zram here", &mut kept);
        assert_eq!((kept.rows.len(), kept.warnings.len()), (2, 1));
    }
}
