//! Turns results into the record as soon as they exist, and keeps its file up to date.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fingerpost_labs::{Lab, Sink};
use fingerpost_measure::estimate;
use fingerpost_measure::pace::Paces;
use fingerpost_measure::rounds::{JobState, Listener};
use fingerpost_probes::Nature;
use fingerpost_record::archive::Writer;
use fingerpost_record::progress::Event;
use fingerpost_record::{
    Budget, Experiment, Finding, Measurement, Observation, Outcome, Params, Paths, Run,
    too_few_processes,
};

use crate::exit::say;
use crate::plan::Row;
use crate::progress::{self, Progress, Progressing};
use crate::turns::Taker;

/// Processes that a trusted figure needs at least.
const MIN_PROCESSES: usize = 3;

/// The run in progress, its file, and the person who waits.
pub struct Recorder<'a> {
    /// The run as far as it is known.
    pub run: Run,
    /// Keeps the file up to date.
    pub writer: Writer,
    /// What the person is shown.
    pub progress: Progress,
    /// Which stretch of the whole run is under way: where it begins, and how long it is, as shares.
    pub stretch: (f64, f64),
    stop: &'a AtomicBool,
    /// Where this run takes turns with another one.
    turns: Option<Taker>,
}

impl<'a> Recorder<'a> {
    /// A recorder for a run that has just begun.
    pub fn new(
        run: Run,
        writer: Writer,
        progress: Progress,
        stop: &'a AtomicBool,
        turns: Option<Taker>,
    ) -> Self {
        Recorder {
            run,
            writer,
            progress,
            stretch: (0.0, 1.0),
            stop,
            turns,
        }
    }

    /// Puts a row in the place of the same row, or at the end.
    fn put(&mut self, row: Measurement) {
        self.progress.row(&row);
        match self.run.measurements.iter_mut().find(|m| m.same_row(&row)) {
            Some(old) => *old = row,
            None => self.run.measurements.push(row),
        }
        self.save();
    }

    /// A lab that gave nothing: a row of each kind that it makes, which says why.
    pub fn lab_without_figure(&mut self, lab: &Lab, outcome: Outcome, reason: &str) {
        let made = |probe: &str| self.run.measurements.iter().any(|m| m.probe == probe);
        for (of, _) in lab
            .rows
            .iter()
            .filter(|(of, _)| !made(of.probe))
            .collect::<Vec<_>>()
        {
            self.put(of.without_figure(Params::new(), outcome, reason.to_owned()));
        }
    }

    /// Shows what is being done, and which share of the stretch under way is done.
    fn doing(&self, doing: &str, done: f64) {
        let (begin, length) = self.stretch;
        self.progress
            .show(doing, begin + length * done.clamp(0.0, 1.0));
    }

    /// The run, which ends now and began then; the last of its file is written.
    pub fn finish(mut self, beginning: Instant) -> Ended {
        self.run.complete = !self.stop.load(Ordering::Relaxed);
        self.run.duration_s = beginning.elapsed().as_secs_f64();
        fingerpost_host::after(&mut self.run.host);
        let mut paces = Paces::default();
        self.run
            .measurements
            .iter()
            .flat_map(|m| &m.processes)
            .for_each(|p| paces.add(p));
        let (slow, all) = paces.slowed_of_all();
        fingerpost_host::doubt_the_pace(&mut self.run.host, slow, all);
        let kept = self.writer.finish(&self.run).map_err(|e| e.to_string());
        Ended {
            run: self.run,
            kept,
        }
    }

    fn save(&mut self) {
        if let Some(sentence) = self.writer.write(&self.run) {
            self.progress.say(&sentence);
        }
    }
}

/// A run that has ended.
pub struct Ended {
    /// The run.
    pub run: Run,
    /// Where it is kept, or why it is not.
    pub kept: Result<PathBuf, String>,
}

impl Ended {
    /// Tells a program or a person where the run is kept, and what is `next`, or that `what` it is is not kept. Whether
    /// it is.
    pub fn tell(&self, to: Progressing, what: &str, next: &str) -> bool {
        match &self.kept {
            Ok(_) if to == Progressing::Json => progress::tell(&Event::Kept {
                id: self.run.id.clone(),
            }),
            Ok(path) if to == Progressing::Person => say(&format!(
                "kept as {} in {}{next}",
                self.run.id,
                path.display()
            )),
            Ok(_) => {}
            Err(sentence) => say(&format!("{what} is not kept: {sentence}")),
        }
        self.kept.is_ok()
    }
}

/// Hears about the slices of some rows.
pub struct RowListener<'r, 'a> {
    /// Where results go.
    pub recorder: &'r mut Recorder<'a>,
    /// The rows that the scheduler's jobs stand for.
    pub rows: &'r [Row],
}

impl Listener for RowListener<'_, '_> {
    fn starting(&mut self, job: usize, round: usize, done: f64) {
        let row = &self.rows[job];
        self.recorder.doing(
            &format!("round {}: {} {}", round + 1, row.probe.name, row.params),
            done,
        );
    }

    fn finished(&mut self, job: usize, state: &JobState) {
        self.recorder.put(measurement(&self.rows[job], state));
    }
}

impl Sink for Recorder<'_> {
    fn measurement(&mut self, row: Measurement) {
        self.put(row);
    }

    fn observation(&mut self, observation: Observation) {
        self.run.observations.push(observation);
        self.save();
    }

    fn budget(&mut self, budget: Budget) {
        self.run.budgets.push(budget);
        self.save();
    }

    fn paths(&mut self, paths: Paths) {
        self.run.paths.push(paths);
        self.save();
    }

    fn finding(&mut self, finding: Finding) {
        self.run.findings.push(finding);
        self.save();
    }

    fn experiment(&mut self, experiment: Experiment) {
        self.run.experiments.push(experiment);
        self.save();
    }

    fn warn(&mut self, sentence: &str) {
        self.progress.say(sentence);
    }

    fn progress(&mut self, doing: &str, done: f64) {
        self.doing(doing, done);
    }

    fn takes_turns(&self) -> bool {
        self.turns.is_some()
    }

    fn wait_for_turn(&mut self) {
        self.turns
            .iter_mut()
            .for_each(|turns| turns.wait(self.stop));
    }

    fn turn_over(&mut self) {
        self.turns
            .iter_mut()
            .for_each(|turns| turns.over(self.stop));
    }

    fn waited(&self) -> Duration {
        self.turns
            .as_ref()
            .map_or(Duration::ZERO, |turns| turns.waited)
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A row of the record from what is known of a job.
pub fn measurement(row: &Row, state: &JobState) -> Measurement {
    let (outcome, reason) = outcome(row, state);
    let probe = row.probe;
    let all: Vec<f64> = state
        .processes
        .iter()
        .flat_map(|p| p.samples.iter().copied())
        .collect();
    Measurement {
        reason,
        estimate: state.estimate,
        percentiles: estimate::percentiles(&all, probe.better),
        processes: state.processes.clone(),
        ..probe.without_figure(row.params.clone(), outcome, String::new())
    }
}

fn outcome(row: &Row, state: &JobState) -> (Outcome, Option<String>) {
    let processes = state.processes.len();
    match (&state.skipped, state.failures.last(), state.estimate) {
        (Some(reason), ..) => (Outcome::Skipped, Some(reason.clone())),
        (None, Some(reason), None) => (Outcome::Failed, Some(reason.clone())),
        (None, Some(reason), Some(_)) => {
            let tried = processes + state.failures.len();
            (
                Outcome::Untrusted,
                Some(format!("{} of {tried} processes failed, the last one so: {reason}", state.failures.len())),
            )
        }
        (None, None, None) => (Outcome::Failed, Some("not measured before the run ended".to_owned())),
        (None, None, Some(_)) if processes < MIN_PROCESSES => {
            (Outcome::Untrusted, Some(too_few_processes(processes, MIN_PROCESSES)))
        }
        (None, None, Some(_)) if mostly_disturbed(row, state) => (
            Outcome::Untrusted,
            Some("most of its processes were interrupted in nearly every batch; is the machine busy?".to_owned()),
        ),
        (None, None, Some(_)) => (Outcome::Measured, None),
    }
}

/// Whether a probe that should only compute had hardly a batch undisturbed in most of its processes, so that their
/// values are made of disturbed ones. (One that blocks is switched by its nature, and where all processes count, a few
/// undisturbed ones are enough.)
fn mostly_disturbed(row: &Row, state: &JobState) -> bool {
    let computes = matches!(
        row.probe.nature_of(&row.params),
        Nature::Computes | Nature::Streams
    ) && row.probe.center(&row.params).across_slowed.is_some();
    // A slice with few long batches meets an interruption in most of them on the quietest machine.
    let judged = || {
        state
            .processes
            .iter()
            .filter(|p| !p.excluded && p.samples.len() >= 50)
    };
    let hit = judged()
        .filter(|p| p.samples.len() - p.disturbed.len() < estimate::MIN_UNDISTURBED)
        .count();
    computes && hit * 2 > judged().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Progressing;
    use fingerpost_record::{Better, Process, Unit};

    fn row() -> Row {
        Row::new(
            fingerpost_probes::find("syscall.null").unwrap(),
            Params::new(),
        )
    }

    fn state(processes: usize, disturbed: usize) -> JobState {
        let one = Process {
            value: Some(50.0),
            samples: vec![50.0; 100],
            disturbed: (0..disturbed as u32).collect(),
            ..Process::default()
        };
        let values = vec![50.0; processes];
        JobState {
            processes: vec![one; processes],
            estimate: estimate::across_processes(&values),
            ..JobState::default()
        }
    }

    #[test]
    fn each_way_to_end_has_its_outcome_and_reason() {
        assert_eq!(measurement(&row(), &state(8, 0)).outcome, Outcome::Measured);
        let few = measurement(&row(), &state(2, 0));
        assert_eq!(
            (few.outcome, few.reason.unwrap().contains("only 2")),
            (Outcome::Untrusted, true)
        );
        assert_eq!(
            measurement(&row(), &state(8, 60)).outcome,
            Outcome::Measured,
            "forty are left"
        );
        assert_eq!(
            measurement(&row(), &state(8, 97)).outcome,
            Outcome::Untrusted
        );
        let read = |size: i64| {
            Row::new(
                fingerpost_probes::find("memory.read").unwrap(),
                Params::new().with("size", size),
            )
        };
        assert_eq!(
            measurement(&read(16 << 10), &state(8, 97)).outcome,
            Outcome::Untrusted
        );
        assert_eq!(
            measurement(&read(64 << 20), &state(8, 97)).outcome,
            Outcome::Measured,
            "all processes count"
        );
        let failed = JobState {
            failures: vec!["crashed".into()],
            ..JobState::default()
        };
        assert_eq!(measurement(&row(), &failed).outcome, Outcome::Failed);
        let half = JobState {
            failures: vec!["crashed".into()],
            ..state(8, 0)
        };
        assert_eq!(measurement(&row(), &half).outcome, Outcome::Untrusted);
        let skipped = JobState {
            skipped: Some("needs two CPUs".into()),
            ..JobState::default()
        };
        assert_eq!(measurement(&row(), &skipped).outcome, Outcome::Skipped);
        assert!(measurement(&row(), &JobState::default()).reason.is_some());
    }

    #[test]
    fn a_lab_that_gave_nothing_has_a_row_of_each_kind_in_its_unit() {
        let dir = tempfile::tempdir().unwrap();
        let (stop, progress) = (
            AtomicBool::new(false),
            Progress::start("a test", Duration::ZERO, Progressing::unless(true)),
        );
        let mut recorder = Recorder::new(
            Run::default(),
            Writer::at(dir.path().join("run.json")),
            progress,
            &stop,
            None,
        );
        let lab = &fingerpost_labs::site::LAB;
        let (space, _) = lab
            .rows
            .iter()
            .find(|(of, _)| of.probe == "site.space")
            .unwrap();
        recorder.put(space.without_figure(
            Params::new(),
            Outcome::Failed,
            "the disk is full".into(),
        ));
        recorder.lab_without_figure(lab, Outcome::Skipped, "no room");
        let rows = &recorder.run.measurements;
        assert_eq!(
            rows.len(),
            lab.rows.len(),
            "what it had given stays the only row of its kind"
        );
        let unit = |name: &str| {
            rows.iter()
                .find(|row| row.probe == name)
                .map(|row| (row.unit, row.better, row.outcome))
                .unwrap()
        };
        assert_eq!(
            unit("site.space"),
            (Unit::Bytes, Better::Lower, Outcome::Failed)
        );
        assert_eq!(
            unit("site.readers"),
            (Unit::PerSecond, Better::Higher, Outcome::Skipped)
        );
        assert_eq!(
            unit("site.import"),
            (Unit::Nanoseconds, Better::Lower, Outcome::Skipped)
        );
        assert!(
            rows.iter()
                .all(|row| row.reason.is_some() && row.version == 2),
            "a site's rows are of the second version"
        );
    }
}
