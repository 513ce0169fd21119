//! Measuring from the page: a process of its own that says how far it is, one at a time.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fingerpost_record::progress::{Event, Live, LivePart};
use fingerpost_record::text::clean_short;
use fingerpost_record::unit::significant;
use fingerpost_record::{Estimate, Measurement};
use fingerpost_sys::child;
use serde::Serialize;

/// The longest line that is read, and the most sentences that are kept.
const LINE: u64 = 64 << 10;
const NOTES: usize = 30;
/// The most rows that are kept of a measurement that runs; all are in its run.
const ROWS: usize = 1000;
/// How long a measurement may take to end when the page itself ends.
const PATIENCE: Duration = Duration::from_secs(20);
/// What goes on until it is stopped ends when nobody has asked how far it is for so long: its tab is gone. A browser
/// lets a tab that is not seen ask once a minute only.
const UNSEEN: Duration = Duration::from_secs(90);

/// How far a measurement is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It measures.
    #[default]
    Running,
    /// It was asked to stop and finishes what it is at.
    Stopping,
    /// It is over.
    Ended,
}

/// What is known of a measurement, as the script polls it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct State {
    /// Its number, to tell it from the next one.
    pub job: u64,
    /// What is measured.
    pub what: String,
    /// How far it is.
    pub phase: Phase,
    /// What is done now.
    pub doing: String,
    /// The share done, 0 to 1.
    pub done: f64,
    /// Seconds since it began.
    pub seconds: f64,
    /// What it said.
    pub notes: Vec<String>,
    /// The run that it made.
    pub run: Option<String>,
    /// Rounds of the calculator's timings.
    pub round: usize,
    /// The calculator's timings, in nanoseconds.
    pub timings: Vec<Estimate>,
    /// The same as texts for the calculator's fields.
    pub figures: Vec<String>,
    /// How often there was something new of what the two fields below hold.
    pub told: u64,
    /// What the requests of a service that is explained did lately.
    #[serde(skip)]
    pub live: Option<Live>,
    /// The rows that have figures so far, in the order in which each was measured first.
    #[serde(skip)]
    pub rows: Vec<Measurement>,
    /// Whether it ended well.
    pub well: bool,
    /// When somebody last asked, of a measurement that goes on for as long as somebody watches.
    #[serde(skip)]
    seen: Option<Instant>,
    #[serde(skip)]
    begun: Option<Instant>,
    #[serde(skip)]
    group: i32,
}

/// The measurement that runs, or the last one.
pub struct Jobs {
    program: PathBuf,
    unseen: Duration,
    current: Arc<(Mutex<Option<State>>, Condvar)>,
}

/// Why a measurement did not begin.
#[derive(Debug)]
pub enum Refused {
    /// Another one runs.
    Busy(String),
    /// The process could not be started.
    Failed(String),
}

impl Jobs {
    /// No measurement yet; `program` is what measures.
    pub fn new(program: PathBuf) -> Jobs {
        Jobs {
            program,
            unseen: UNSEEN,
            current: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.current
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The measurement that runs, or the last one.
    pub fn state(&self) -> Option<State> {
        let mut current = self.lock();
        if let Some(seen) = current.as_mut().and_then(|s| s.seen.as_mut()) {
            *seen = Instant::now();
        }
        current.clone().map(|mut s| {
            if s.phase != Phase::Ended {
                s.seconds = s.elapsed();
            }
            s
        })
    }

    /// Begins a measurement: the program with these words. Returns its number. One that goes on until it is stopped is
    /// `watched`: it ends when nobody watches it any more.
    ///
    /// # Errors
    /// When one runs already, or the program cannot be started.
    pub fn start(&self, what: &str, words: &[String], watched: bool) -> Result<u64, Refused> {
        let mut current = self.lock();
        if let Some(s) = current.as_ref().filter(|s| s.phase != Phase::Ended) {
            return Err(Refused::Busy(format!(
                "A measurement is running already ({}), and a second one beside it would spoil both. Wait for it, or \
                 stop it first.",
                s.what
            )));
        }
        let number = current.as_ref().map_or_else(first_number, |s| s.job + 1);
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let (sender, started) = mpsc::channel();
        let (shared, unseen) = (self.current.clone(), self.unseen);
        // The kernel ends the child with the thread that started it, so this thread stays until the child is gone.
        let thread =
            std::thread::Builder::new().spawn(move || watch(command, &sender, &shared, unseen));
        thread.map_err(|e| Refused::Failed(format!("cannot start measuring: {e}")))?;
        let group = match started.recv() {
            Ok(Ok(group)) => group,
            Ok(Err(e)) => return Err(Refused::Failed(format!("cannot start measuring: {e}"))),
            Err(_) => return Err(Refused::Failed("cannot start measuring".into())),
        };
        *current = Some(State {
            job: number,
            what: what.to_owned(),
            doing: "starting".into(),
            seen: watched.then(Instant::now),
            begun: Some(Instant::now()),
            group,
            ..State::default()
        });
        Ok(number)
    }

    /// Asks the measurement to stop, where a number is given only the one of this number; it keeps what it has. Asked
    /// again, it ends at once.
    pub fn stop(&self, number: Option<u64>) {
        if let Some(s) = self
            .lock()
            .as_mut()
            .filter(|s| number.is_none_or(|number| s.job == number))
        {
            s.stop();
        }
    }

    /// Stops the measurement and waits until it is over.
    pub fn end(&self) {
        self.stop(None);
        let over = |s: &mut Option<State>| s.as_ref().is_some_and(|s| s.phase != Phase::Ended);
        let waited = self
            .current
            .1
            .wait_timeout_while(self.lock(), PATIENCE, over);
        let (mut state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(s) = state.as_mut().filter(|_| timeout.timed_out()) {
            let _ = child::signal_group(s.group, libc::SIGKILL);
        }
    }
}

/// The first measurement's number: none that a page has which was made before this process began.
fn first_number() -> u64 {
    std::time::UNIX_EPOCH
        .elapsed()
        .map_or(1, |since| since.as_millis() as u64)
}

type Shared = (Mutex<Option<State>>, Condvar);

fn watch(
    mut command: Command,
    started: &mpsc::Sender<std::io::Result<i32>>,
    shared: &Shared,
    unseen: Duration,
) {
    let mut process = match child::die_with_parent(&mut command).spawn() {
        Ok(process) => process,
        Err(e) => {
            let _ = started.send(Err(e));
            return;
        }
    };
    let _ = started.send(Ok(process.id() as i32));
    if let Some(err) = process.stderr.take() {
        listen(err, shared, unseen);
    }
    let status = process.wait();
    let mut current = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(s) = current.as_mut() {
        s.seconds = s.elapsed();
        s.phase = Phase::Ended;
        s.well = status.is_ok_and(|s| s.success());
        s.doing = String::new();
    }
    shared.1.notify_all();
}

/// Takes in what the process says until it says no more.
fn listen(err: impl Read, shared: &Shared, unseen: Duration) {
    let mut reader = BufReader::new(err);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let event = Event::of_line(&String::from_utf8_lossy(&line));
        if let Some(s) = shared
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()
        {
            s.take(event);
            // A measurement that goes on until it is stopped tells each of its rounds: it is asked here whether
            // somebody looks.
            if s.phase == Phase::Running && s.seen.is_some_and(|seen| seen.elapsed() >= unseen) {
                s.stop();
            }
        }
    }
}

/// The share that must be done before the time that is left is told: the beginning says little of the rest.
const TELLING: f64 = 0.05;

impl State {
    /// Seconds until it is done, by the share done so far; nothing while that says little.
    pub fn left(&self) -> Option<f64> {
        let tells = self.phase == Phase::Running && self.done >= TELLING && self.done <= 1.0;
        tells.then(|| self.seconds * (1.0 - self.done) / self.done)
    }

    fn elapsed(&self) -> f64 {
        self.begun
            .map_or(0.0, |begun| begun.elapsed().as_secs_f64())
    }

    fn stop(&mut self) {
        if self.phase != Phase::Ended {
            self.phase = Phase::Stopping;
            let _ = child::signal_group(self.group, libc::SIGTERM);
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Started { what, .. } => self.doing = clean_short(&what, 200),
            Event::Progress { doing, done } => {
                self.doing = clean_short(&doing, 200);
                self.done = done.clamp(0.0, 1.0);
            }
            Event::Note { sentence } if sentence.is_empty() || self.notes.len() >= NOTES => {}
            Event::Note { sentence } => self.notes.push(clean_short(&sentence, 500)),
            Event::Timings { round, figures } => {
                self.round = round;
                self.doing = format!("round {round}");
                self.timings = figures.into_iter().take(4).collect();
                self.figures = self
                    .timings
                    .iter()
                    .map(|timing| significant(timing.value))
                    .collect();
            }
            Event::Live(live) => {
                self.told += 1;
                self.live = Some(cleaned(live));
            }
            Event::Row(row) => self.row(*row),
            Event::Kept { id } => self.run = Some(id),
        }
    }

    /// A row in the place of the same row, or at the end.
    fn row(&mut self, row: Measurement) {
        if row.estimate.is_none() {
            return;
        }
        self.told += 1;
        match self.rows.iter().position(|old| old.same_row(&row)) {
            Some(at) => self.rows[at] = row,
            None if self.rows.len() < ROWS => self.rows.push(row),
            None => {}
        }
    }
}

/// Parts of a budget that are shown.
const PARTS: usize = 8;

/// Names of processes and files are anybody's, and what is no number is none here.
fn cleaned(live: Live) -> Live {
    let number = |n: f64| if n.is_finite() { n.max(0.0) } else { 0.0 };
    let part = |p: LivePart| LivePart {
        name: clean_short(&p.name, 200),
        all: number(p.all).min(1.0),
        slow: number(p.slow).min(1.0),
    };
    Live {
        sentence: clean_short(&live.sentence, 500),
        rate: number(live.rate),
        p50: number(live.p50),
        p99: number(live.p99),
        requests: live.requests,
        parts: live.parts.into_iter().take(PARTS).map(part).collect(),
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::fixture;

    use super::*;

    fn shell(script: &str) -> (Jobs, Vec<String>) {
        (
            Jobs::new("/bin/sh".into()),
            vec!["-c".into(), script.into()],
        )
    }

    fn wait_for(jobs: &Jobs, until: impl Fn(&State) -> bool) -> State {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let state = jobs.state().unwrap();
            if until(&state) {
                return state;
            }
            assert!(Instant::now() < deadline, "{state:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_the_process_says_becomes_the_state() {
        let (jobs, words) = shell(
            r#"exec >&2; echo '{"event":"progress","doing":"x","done":0.5}'; echo careful
            echo '{"event":"kept","id":"20260101T000000Z-00000001"}'"#,
        );
        let first = jobs.start("a test", &words, false).unwrap();
        let state = wait_for(&jobs, |s| s.phase == Phase::Ended);
        assert_eq!(
            (state.done, state.notes.as_slice(), state.well),
            (0.5, &["careful".to_owned()][..], true)
        );
        assert_eq!(state.run.as_deref(), Some("20260101T000000Z-00000001"));
        assert_eq!(jobs.start("another", &words, false).unwrap(), first + 1);
        jobs.end();
    }

    #[test]
    fn rows_keep_their_place_with_their_latest_values_up_to_a_most() {
        let (jobs, words) = shell("exit 0");
        jobs.start("a test", &words, false).unwrap();
        let mut state = wait_for(&jobs, |s| s.phase == Phase::Ended);
        let row = |n: i64, value: f64| {
            let all = fixture::run().measurements;
            let mut row = all
                .into_iter()
                .find(|m| m.estimate.is_some())
                .unwrap()
                .without_samples();
            row.params = row.params.with("n", n);
            row.estimate.as_mut().unwrap().value = value;
            Event::Row(Box::new(row))
        };
        [row(1, 1.0), row(2, 2.0), row(1, 3.0)]
            .into_iter()
            .for_each(|event| state.take(event));
        let values: Vec<f64> = state
            .rows
            .iter()
            .map(|r| r.estimate.unwrap().value)
            .collect();
        assert_eq!((values, state.told), (vec![3.0, 2.0], 3));
        (0..ROWS as i64 + 5).for_each(|n| state.take(row(n, 0.0)));
        assert_eq!(state.rows.len(), ROWS);
        let mut skipped = fixture::run().measurements[0].without_samples();
        (skipped.estimate, skipped.probe) = (None, "skipped".into());
        state.take(Event::Row(Box::new(skipped)));
        assert!(
            state.rows.iter().all(|row| row.probe != "skipped"),
            "what has no figure is in the run alone"
        );
    }

    #[test]
    fn a_second_measurement_is_told_of_the_first_until_it_stops() {
        let (jobs, words) = shell(
            "trap 'echo stopped >&2; exit 3' TERM; echo ready >&2; while :; do sleep 0.05; done",
        );
        jobs.start("the first", &words, false).unwrap();
        wait_for(&jobs, |s| !s.notes.is_empty());
        match jobs.start("the second", &words, false) {
            Err(Refused::Busy(sentence)) => assert!(sentence.contains("the first"), "{sentence}"),
            other => panic!("{other:?}"),
        }
        jobs.stop(None);
        let state = wait_for(&jobs, |s| s.phase == Phase::Ended);
        assert!(
            !state.well && state.notes.contains(&"stopped".to_owned()),
            "{state:?}"
        );
    }

    #[test]
    fn a_budget_is_kept_with_cleaned_names_and_bounded_numbers() {
        let part = LivePart {
            name: "with \u{1b}[2Jx".into(),
            all: 7.0,
            slow: -1.0,
        };
        let live = cleaned(Live {
            sentence: "a\u{1b}b".into(),
            rate: f64::NAN,
            parts: vec![part; 20],
            ..Live::default()
        });
        assert!(!live.sentence.contains('\u{1b}') && live.rate == 0.0 && live.parts.len() == PARTS);
        assert!(
            (live.parts[0].all, live.parts[0].slow) == (1.0, 0.0)
                && !live.parts[0].name.contains('\u{1b}'),
            "{live:?}"
        );
    }

    #[test]
    fn what_goes_on_ends_unwatched_and_only_its_tab_stops_it() {
        let (mut jobs, words) =
            shell("trap 'exit 3' TERM; while :; do echo round >&2; sleep 0.05; done");
        let number = jobs.start("a loop", &words, true).unwrap();
        wait_for(&jobs, |s| s.notes.len() > 2);
        assert_eq!(jobs.state().unwrap().phase, Phase::Running, "it is watched");
        jobs.stop(Some(number + 1));
        assert_eq!(
            jobs.state().unwrap().phase,
            Phase::Running,
            "another one was meant"
        );
        jobs.stop(Some(number));
        wait_for(&jobs, |s| s.phase == Phase::Ended);
        jobs.unseen = Duration::ZERO;
        jobs.start("a loop that nobody sees", &words, true).unwrap();
        wait_for(&jobs, |s| s.phase == Phase::Ended);
        jobs.start("what ends by itself", &words, false).unwrap();
        assert_eq!(wait_for(&jobs, |s| s.notes.len() > 2).phase, Phase::Running);
        jobs.end();
    }

    #[test]
    fn a_program_that_is_not_there_is_said() {
        assert!(matches!(
            Jobs::new("/nonexistent".into()).start("x", &[], false),
            Err(Refused::Failed(_))
        ));
    }
}
