//! The threads of a session that watch while the load runs, and what they bring back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fingerpost_record::Series;
use fingerpost_sys::bpf::closed::Places;
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::trace::{monotonic_ns, thread_cpu_seconds};

use super::{Events, Level};
use crate::follow::taking::{Recorded, Taking};
use crate::machine::Totals;
use crate::population::{Descriptors, Population};
use crate::queues::{Queues, Sampler};
use crate::series::{Recorder, SERIES_EVERY};
use crate::states::States;
use crate::summary::Seen;

/// How often new processes and threads are looked for.
const LOOK_EVERY: f64 = 0.5;
/// The share of one CPU that this may take: of hundreds of threads, a look takes ten milliseconds.
const LOOK_SHARE: f64 = 0.002;
/// How often states are sampled, at most; and the share of one CPU that sampling may take.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_millis(10);
pub(super) const SAMPLE_SHARE: f64 = 0.02;

/// How sockets are sampled.
pub(super) struct SocketSampling {
    /// How often, at most.
    pub(super) every: Duration,
    /// The share of one CPU that it may take.
    pub(super) share: f64,
    /// To count what connections received, too.
    pub(super) closing: Option<Places>,
    /// Dropped when the first sample was taken, which costs the most.
    pub(super) begins: Sender<()>,
    /// To take samples outside of windows.
    pub(super) between_windows: bool,
}

/// Tells the observers' threads to end, and lets them sleep until then.
#[derive(Default)]
pub(super) struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Sleeps, or returns at once when the end was asked for; true then.
    pub(super) fn sleep(&self, length: Duration) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, _) = self
            .changed
            .wait_timeout_while(asked, length, |asked| !*asked)
            .unwrap_or_else(PoisonError::into_inner);
        *asked
    }

    pub(super) fn ask(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

/// Whether a window of events is open. What samples a service besides waits for its end: the requests of the window
/// would wait for the CPU that it has.
#[derive(Default)]
pub(super) struct OpenWindow(AtomicBool);

impl OpenWindow {
    /// As long as the rings of samples hold, with what comes between two samples; windows may follow each other.
    const LONGEST: Duration = Duration::from_millis(500);
    const EVERY: Duration = Duration::from_millis(10);

    /// A window opens, or has ended and was read.
    fn set(&self, open: bool) {
        self.0.store(open, Ordering::Relaxed);
    }

    /// Sleeps until none is open, or for so long at most; returns at once when the end was asked for.
    pub(super) fn wait(&self, stop: &Stop) {
        let begun = Instant::now();
        while self.0.load(Ordering::Relaxed) && begun.elapsed() < Self::LONGEST {
            if stop.sleep(Self::EVERY) {
                return;
            }
        }
    }
}

/// What the socket thread brings back: the sums, the CPU seconds that they cost, or why there are none.
pub(crate) type Sockets = Result<(Queues, f64), String>;

/// What the watching thread brings back.
pub(super) struct Watched {
    pub(super) population: Population,
    pub(super) seen: Seen,
    pub(super) source: String,
    pub(super) series: Vec<Series>,
    pub(super) cost: f64,
    pub(super) lost: u64,
    pub(super) notes: Totals,
    pub(super) recorded: Option<Recorded>,
    /// How soon memory was touched; empty where no event told.
    pub(super) mappings: Totals,
    pub(super) events: Option<Events>,
}

/// Watches processes, threads and the machine until it is told to stop.
pub(super) fn watch(
    mut population: Population,
    level: Level,
    taking: Option<Result<Taking, String>>,
    begun: Instant,
    stop: &Stop,
    window: &OpenWindow,
) -> Watched {
    let paths = Paths::system();
    let mut series = Recorder::new(&paths, begun);
    let mut descriptors = Descriptors::default();
    let (mut taking, mut source) = match taking {
        Some(Ok(taking)) => {
            let source = taking.about().described.clone();
            (Some(taking), source)
        }
        Some(Err(why)) => (None, format!("/proc sampling ({why})")),
        None => (
            None,
            if level == Level::Counting {
                "/proc counters"
            } else {
                "/proc sampling"
            }
            .to_owned(),
        ),
    };
    let mut states = States::default();
    let (mut looked, mut look_every) = (begun.elapsed().as_secs_f64(), LOOK_EVERY);
    loop {
        let pause = match (&mut taking, level) {
            (_, Level::Counting) => SERIES_EVERY,
            (Some(taking), _) => {
                window.set(true);
                let taken = taking.take(&population, &mut descriptors, &mut |length| {
                    stop.sleep(length)
                });
                window.set(false);
                taken.unwrap_or_else(|e| {
                    source = format!("{source}, ended early: {e}");
                    Duration::from_millis(100)
                })
            }
            (None, _) => {
                let cost = thread_cpu_seconds();
                states.look(&population, &mut descriptors);
                SAMPLE_EVERY.max(Duration::from_secs_f64(
                    (thread_cpu_seconds() - cost) / SAMPLE_SHARE,
                ))
            }
        };
        series.tick(&paths);
        let ended = match &mut taking {
            Some(taking) => taking
                .pause(pause, &population, &mut |length| stop.sleep(length))
                .unwrap_or_else(|e| {
                    source = format!("{source}, ended early: {e}");
                    stop.sleep(pause)
                }),
            None => stop.sleep(jittered(pause)),
        };
        if ended {
            break;
        }
        let now = begun.elapsed().as_secs_f64();
        if now - looked >= look_every {
            let cost = thread_cpu_seconds();
            population.look(now, false);
            descriptors.forget();
            (looked, look_every) = (
                now,
                LOOK_EVERY.max((thread_cpu_seconds() - cost) / LOOK_SHARE),
            );
        }
    }
    let windows = taking.as_ref().map(|taking| opened(&taking.opened, begun));
    finish_watch(
        population,
        level,
        taking,
        states,
        source,
        series.finish().into_iter().chain(windows).collect(),
    )
}

/// When windows were open: what a service lost by being watched it lost then.
fn opened(windows: &[(u64, u64)], begun: Instant) -> Series {
    let begun = monotonic_ns().saturating_sub(begun.elapsed().as_nanos() as u64);
    let point =
        |&(at, length): &(u64, u64)| (at.saturating_sub(begun) as f64 * 1e-9, length as f64 * 1e-9);
    Series {
        name: "trace.window".to_owned(),
        unit: "s".to_owned(),
        points: windows.iter().map(point).collect(),
    }
}

/// What a trace rests on: windows, those of which events were lost, events, and the seconds that windows were open.
pub(crate) fn of_windows([windows, torn, events]: [f64; 3], open: f64) -> Totals {
    [
        ("trace.windows", windows),
        ("trace.windows.torn", torn),
        ("trace.events", events),
        ("trace.window.seconds", open),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn finish_watch(
    population: Population,
    level: Level,
    taking: Option<Taking>,
    states: States,
    source: String,
    series: Vec<Series>,
) -> Watched {
    let mut notes = Totals::new();
    let (mut lost, mut recorded, mut events, mut mappings) = (0, None, None, Totals::new());
    let seen = match (taking, level) {
        (_, Level::Counting) => Seen::Counters,
        (Some(taking), _) => {
            lost = taking.lost;
            let counts = [taking.opened.len() as u64, taking.torn, taking.events].map(|n| n as f64);
            mappings = taking.mappings(&population);
            let (tracer, to_follow, source) = taking.finish(&population);
            (recorded, events) = (Some(to_follow), Some(Events(source)));
            let (open, idle) = (tracer.window_seconds, tracer.ready_while_idle);
            notes.extend(of_windows(counts, open));
            Seen::Traced(tracer.into_threads(), open, idle)
        }
        (None, _) => {
            notes.insert("samples.unreadable".into(), states.unreadable as f64);
            notes.insert(
                "samples".into(),
                states.threads.values().map(|l| l.all).max().unwrap_or(0) as f64,
            );
            Seen::Sampled(states.threads)
        }
    };
    Watched {
        population,
        seen,
        source,
        series,
        cost: thread_cpu_seconds(),
        lost,
        notes,
        recorded,
        mappings,
        events,
    }
}

/// A pause between half and one and a half of what was asked, so that sampling does not beat with anything periodic.
fn jittered(pause: Duration) -> Duration {
    let n = fingerpost_sys::trace::monotonic_ns().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
    pause.mul_f64(0.5 + n as f64 / 1024.0)
}

/// Samples the queues of the servers' sockets until it is told to stop: so often, or as seldom as keeps within its
/// share of a CPU.
pub(super) fn sample_sockets(
    servers: &[i32],
    how: SocketSampling,
    stop: &Stop,
    window: &OpenWindow,
) -> Sockets {
    let SocketSampling {
        every,
        share,
        closing,
        begins,
        between_windows,
    } = how;
    let mut sampler = Sampler::find(servers.iter().copied(), closing.as_ref())?;
    let mut sample = || {
        let cost = thread_cpu_seconds();
        sampler.sample();
        jittered(every.max(Duration::from_secs_f64(
            (thread_cpu_seconds() - cost) / share,
        )))
    };
    let mut pause = sample();
    drop(begins);
    while !stop.sleep(pause) {
        if between_windows {
            window.wait(stop);
        }
        pause = sample();
    }
    Ok((sampler.finish(), thread_cpu_seconds()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_samples_waits_for_the_end_of_a_window_and_not_for_ever() {
        let (window, stop) = (OpenWindow::default(), Stop::default());
        let waited = |window: &OpenWindow| {
            let begun = Instant::now();
            window.wait(&stop);
            begun.elapsed()
        };
        window.set(true);
        assert!(
            waited(&window) >= OpenWindow::LONGEST,
            "windows that follow each other are sampled beside"
        );
        std::thread::scope(|threads| {
            let waits = threads.spawn(|| window.wait(&stop));
            window.set(false);
            waits.join().unwrap();
        });
        window.set(true);
        stop.ask();
        window.wait(&stop);
        assert!(
            window.0.load(Ordering::Relaxed),
            "it returned although the window is open: the end was asked for"
        );
    }
}
