//! Probes, pair by pair.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fingerpost_compare::ratio::paired;
use fingerpost_measure::pairs::{self, PairState};
use fingerpost_measure::rounds::{Effort, Executor, JobState, Listener};
use fingerpost_measure::{Center, Slice};
use fingerpost_record::{Better, Measurement, kept_values};
use fingerpost_undo::scratch::Scratch;

use super::setting::{Setting, Thp};
use super::thp::Switch;
use super::{NAMES, Options};
use crate::conduct::work_dir;
use crate::executor::{ProcessExecutor, Surroundings};
use crate::plan::Row;
use crate::progress::Progress;
use crate::{cpus, exit, profile, recorder};

/// Pairs before anybody looks whether they are enough.
const FIRST_LOOK: usize = 10;
/// Pairs after which a row rests.
const MOST_PAIRS: usize = 2000;
/// What the interval is widened by when it decides about stopping, because it is looked at several times.
const CAUTION: f64 = 1.4;

/// Measures rows on both sides: `rows[side]` are the same probes in the same order, with each side's parameters.
pub fn measure(
    rows: &[Vec<Row>; 2],
    settings: &[Setting; 2],
    options: &Options,
    scratch: &mut Scratch,
    stop: &AtomicBool,
    progress: &Progress,
) -> anyhow::Result<[Vec<Measurement>; 2]> {
    let mut switch = Switch::new(settings, options.allow_system_changes, scratch)?;
    let dirs = [
        work_dir(scratch, settings[0].dir.as_deref(), "work-a")?,
        work_dir(scratch, settings[1].dir.as_deref(), "work-b")?,
    ];
    let chosen = [
        cpus::choose(settings[0].cpus.as_deref())?,
        cpus::choose(settings[1].cpus.as_deref())?,
    ];
    enough_cpus(rows, &chosen)?;
    let executor = |side: usize| {
        let surroundings = Surroundings {
            env: settings[side].env.clone(),
            no_huge_pages: settings[side].thp == Some(Thp::Never),
        };
        ProcessExecutor::new(
            &rows[side],
            &chosen[side],
            profile::slice,
            &dirs[side],
            stop,
        )
        .within(surroundings)
    };
    let mut both = Both {
        sides: [executor(0), executor(1)],
        switch: &mut switch,
    };
    let centers: Vec<Center> = rows[0]
        .iter()
        .zip(&rows[1])
        .map(|(a, b)| a.probe.center(&a.params).common(b.probe.center(&b.params)))
        .collect();
    let effort = Effort {
        budget: options.budget,
        base_rounds: FIRST_LOOK,
        max_processes: MOST_PAIRS,
    };
    let decided = |row: usize, state: &PairState| {
        decided(state, rows[0][row].probe.better, options.threshold)
    };
    let mut shown = Shown { rows, progress };
    let states = pairs::run(
        &centers,
        effort,
        options.seed,
        &mut both,
        &mut shown,
        &decided,
    );
    switch.restore(scratch).map_err(anyhow::Error::msg)?;
    let of = |side: usize| {
        states
            .iter()
            .enumerate()
            .map(|(i, s)| recorder::measurement(&rows[side][i], &s[side]))
            .collect()
    };
    Ok([of(0), of(1)])
}

fn enough_cpus(rows: &[Vec<Row>; 2], chosen: &[Vec<usize>; 2]) -> anyhow::Result<()> {
    for (side, (rows, cpus)) in rows.iter().zip(chosen).enumerate() {
        if let Some(row) = rows
            .iter()
            .find(|row| row.probe.cpus_needed(&row.params) > cpus.len())
        {
            let need = row.probe.cpus_needed(&row.params);
            return exit::usage(format!(
                "{} {} needs {need} CPUs, and side {} has {}",
                row.probe.name,
                row.params,
                NAMES[side],
                cpus.len()
            ));
        }
    }
    Ok(())
}

/// Whether the ratio is known to lie on one side of the threshold.
fn decided(state: &PairState, better: Better, threshold: f64) -> bool {
    let [base, new] = state.each_ref().map(|side| kept_values(&side.processes));
    let Some(ratio) = paired(&base, &new, better == Better::Higher) else {
        return false;
    };
    let log = ratio.value.ln();
    let half = CAUTION * (ratio.high.ln() - ratio.low.ln()) / 2.0;
    let edge = (1.0 + threshold).ln();
    log.abs() - half > edge || log.abs() + half < edge
}

/// One executor a side, and the switch between them.
struct Both<'a> {
    sides: [ProcessExecutor<'a>; 2],
    switch: &'a mut Switch,
}

impl Executor for Both<'_> {
    fn slice(&mut self, job: usize) -> Slice {
        let (row, side) = (job / 2, job % 2);
        match self.switch.set(side) {
            Ok(()) => self.sides[side].slice(row),
            Err(sentence) => Slice::Hung(sentence),
        }
    }

    fn now(&self) -> Duration {
        self.sides[0].now()
    }

    fn interrupted(&self) -> bool {
        self.sides[0].interrupted()
    }
}

struct Shown<'a> {
    rows: &'a [Vec<Row>; 2],
    progress: &'a Progress,
}

impl Listener for Shown<'_> {
    fn starting(&mut self, job: usize, round: usize, done: f64) {
        let row = &self.rows[job % 2][job / 2];
        self.progress.show(
            &format!("pair {}: {} {}", round + 1, row.probe.name, row.params),
            done,
        );
    }

    fn finished(&mut self, _job: usize, _state: &JobState) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::Process;

    fn state(values: impl Iterator<Item = f64>) -> JobState {
        JobState {
            processes: values
                .map(|v| Process {
                    value: Some(v),
                    ..Process::default()
                })
                .collect(),
            ..JobState::default()
        }
    }

    #[test]
    fn a_row_is_decided_when_its_interval_lies_on_one_side() {
        let noise = |i: usize| 1.0 + 0.001 * ((i * 7 % 11) as f64 - 5.0);
        let pair = |ratio: f64, n: usize| {
            [
                state((0..n).map(|_| 100.0)),
                state((0..n).map(move |i| 100.0 * ratio * noise(i))),
            ]
        };
        assert!(decided(&pair(1.01, 80), Better::Lower, 0.005));
        assert!(decided(&pair(1.0, 80), Better::Lower, 0.005));
        assert!(!decided(&pair(1.005, 80), Better::Lower, 0.005));
        assert!(!decided(&pair(1.01, 2), Better::Lower, 0.005));
    }
}
