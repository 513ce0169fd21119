//! Windows of events, what is asked of every source of them, and what the sources have in common.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fingerpost_sys::bpf::closed::Places;
use fingerpost_sys::trace::{monotonic_ns, online_cpus, thread_cpu_seconds};

use crate::follow::event::{Event, What};

/// Bytes of one CPU's ring, and of all rings together: a ring holds what one CPU does in [`SLICE`] several times over.
/// The kernel clears all of it before, a millisecond of CPU time for each MiB or two.
pub const RING_BYTES: usize = 4 << 20;
const ALL_RINGS_BYTES: usize = 32 << 20;
const LEAST_RING_BYTES: usize = 256 << 10;
/// How often an open window looks at its rings, and how full the fullest is when they are drained. Where it is already
/// fuller than `CLOSE_FROM`, draining does not keep up with what is written: the window ends while it is still whole.
const SLICE: Duration = Duration::from_millis(5);
const DRAIN_FROM: f64 = 0.25;
const CLOSE_FROM: f64 = 0.5;
/// Names of threads that are remembered; a machine that forks all day would fill the memory with them.
const MOST_NAMES: usize = 50_000;
/// Calls of one batch of the calibration, and batches; the cheapest counts, as others may be disturbed.
const CALIBRATION_CALLS: u32 = 500;
const CALIBRATION_BATCHES: u32 = 5;
/// The inode that the kernel gives the first PID namespace (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// A stretch of time in which every event was taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// When taking was on, in nanoseconds on the monotonic clock.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// The events, in the order of time.
    pub events: Vec<Event>,
    /// Events that were lost; such a window is not followed.
    pub lost: u64,
    /// Names of threads, as the kernel has them, that were seen so far: one map for all windows between which no thread
    /// got a name, as a machine has thousands.
    pub names: Arc<HashMap<i32, Arc<str>>>,
    /// Of a window that was opened because requests were under way for long: when those truly began whose arrivals are
    /// the first of its events.
    pub slow: Option<Vec<u64>>,
}

impl Window {
    /// How often a thread left a CPU, and how often it had one again.
    pub fn switches(&self, tid: i32) -> [usize; 2] {
        let by = |e: &Event| {
            if let What::Switch { next, .. } = e.what {
                Some([e.tid, next])
            } else {
                None
            }
        };
        [0, 1].map(|n| {
            self.events
                .iter()
                .filter_map(by)
                .filter(|by| by[n] == tid)
                .count()
        })
    }
}

/// What is known of a source as long as it is open.
#[derive(Clone, Debug)]
pub struct About {
    /// How the events are had, in words, for the record.
    pub described: String,
    /// Why programs in the kernel could not have them, where another way is taken in their place.
    pub no_programs: Option<String>,
    /// CPUs whose events it has.
    pub cpus: usize,
    /// CPU seconds that an event costs the thread that causes it: measured, or what is usual where nothing could be
    /// measured.
    pub event_cost: f64,
    /// What counts the connections that close, whether a window is open or not; nothing where the source has no
    /// programs in the kernel.
    pub closing: Option<Places>,
}

/// Something that has events.
pub trait Source {
    /// What is known of it.
    fn about(&self) -> &About;

    /// Takes events for so long, or until it has as many as it can keep. `wait` sleeps, and returns true when the end
    /// was asked for.
    ///
    /// # Errors
    /// What the kernel said.
    fn window(
        &mut self,
        length: Duration,
        wait: &mut dyn FnMut(Duration) -> bool,
    ) -> io::Result<Window>;

    /// The next windows follow each other without a gap: the first begins when it is asked for, and each other one where
    /// the one before it ended, until [`Source::rest`] or until a window could not be kept whole. A source that cannot do
    /// so leaves gaps.
    fn without_gaps(&mut self) {}

    /// No window comes for a while: what slows others between windows is taken away. Not done by [`Source::window`]
    /// itself, as it takes the kernel some milliseconds, after which a process that the window showed may be gone.
    fn rest(&mut self) {}
}

/// Rings that are written while a window is open.
pub trait Flow {
    /// The share, 0 to 1, of the fullest ring that waits to be drained.
    fn fullness(&self) -> f64;

    /// Events that wait in all rings, at most.
    fn most_waiting(&self) -> usize;

    /// Takes what the rings hold into the window, and counts what was lost.
    fn drain(&mut self, window: &mut Window) -> io::Result<()>;
}

/// Keeps a window open for its time, until it holds enough, more comes than can be drained, or the end was asked for.
pub fn let_flow(
    flow: &mut impl Flow,
    window: &mut Window,
    length: Duration,
    most: usize,
    wait: &mut dyn FnMut(Duration) -> bool,
) -> io::Result<()> {
    loop {
        let left = length.saturating_sub(Duration::from_nanos(
            monotonic_ns().saturating_sub(window.start),
        ));
        if left.is_zero() || wait(left.min(SLICE)) {
            return Ok(());
        }
        let fullness = flow.fullness();
        if fullness >= CLOSE_FROM {
            return Ok(());
        }
        if fullness >= DRAIN_FROM {
            flow.drain(window)?;
        }
        if window.lost > 0 || window.events.len() + flow.most_waiting() >= most {
            return Ok(());
        }
    }
}

/// Puts a window in order when everything was taken.
pub fn close(window: &mut Window, names: &mut Names) {
    let end = window.end;
    window.events.retain(|e| e.time <= end);
    // Each CPU's events are in order, and those of equal times must stay so.
    window.events.sort_by_key(|e| e.time);
    window.names = names.0.clone();
    if names.0.len() > MOST_NAMES {
        *names = Names::default();
    }
}

/// Names of threads that were seen so far.
#[derive(Default)]
pub struct Names(Arc<HashMap<i32, Arc<str>>>);

impl Names {
    /// Keeps a name, which ends at its first zero byte.
    pub fn learn(&mut self, tid: i32, name: &[u8]) {
        let name = name.split(|&b| b == 0).next().unwrap_or_default();
        // Each CPU has an idle thread of number 0.
        if tid != 0
            && self
                .0
                .get(&tid)
                .is_none_or(|known| known.as_bytes() != name)
        {
            // A map that a window has stays as it is.
            Arc::make_mut(&mut self.0).insert(tid, String::from_utf8_lossy(name).into());
        }
    }
}

/// The number at a place of a record.
pub fn int(record: &[u8], at: usize) -> Option<i32> {
    record
        .get(at..at + 4)?
        .try_into()
        .ok()
        .map(i32::from_ne_bytes)
}

/// The same of twice the size.
pub fn long(record: &[u8], at: usize) -> Option<u64> {
    record
        .get(at..at + 8)?
        .try_into()
        .ok()
        .map(u64::from_ne_bytes)
}

/// Bytes of each of so many CPUs' rings.
pub fn ring_bytes(cpus: usize) -> usize {
    (ALL_RINGS_BYTES / cpus.max(1)).clamp(LEAST_RING_BYTES, RING_BYTES)
}

/// The CPUs that are online.
pub fn cpus() -> Result<Vec<usize>, String> {
    online_cpus().map_err(|e| format!("the online CPUs cannot be read: {e}"))
}

/// The kernel's tracepoints name threads as the first PID namespace does.
pub fn first_pid_namespace() -> Result<(), String> {
    match std::fs::read_link("/proc/self/ns/pid") {
        Ok(link) if link.as_os_str() != FIRST_PID_NAMESPACE => Err(
            "requests cannot be followed from inside a PID namespace, as the kernel's events name threads by their \
                outer numbers"
                .into(),
        ),
        _ => Ok(()),
    }
}

/// The whole device of each partition, by the kernel's numbers of both.
pub fn partitions() -> HashMap<u32, u32> {
    let entries = std::fs::read_dir("/sys/class/block")
        .into_iter()
        .flatten()
        .flatten();
    let partition = |dir: &Path| {
        Some((
            device(&dir.join("dev"))?,
            device(&dir.parent()?.join("dev"))?,
        ))
    };
    entries
        .filter_map(|e| std::fs::canonicalize(e.path()).ok())
        .filter(|dir| dir.join("partition").exists())
        .filter_map(|dir| partition(&dir))
        .collect()
}

/// A device's number from its `dev` file, as the kernel packs it.
fn device(file: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(file).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?)
}

/// An event costs no less than this, in CPU seconds: what is measured below it is others' work on the calls without
/// recording.
const LEAST_EVENT_COST: f64 = 10e-9;
/// Attempts at measuring it.
const ATTEMPTS: usize = 3;

/// What each of the events of a call costs the thread that makes it, in CPU seconds: calls that do nothing, made with
/// and without being recorded. Others who begin or end to trace meanwhile, and a host that is slow for a moment, change
/// what either takes: it is measured again where it comes out as next to nothing, and `usual` is the answer where it
/// always does. `measure` gives the CPU seconds of a call, without and with being recorded.
///
/// # Errors
/// What `measure` said.
pub fn event_cost(
    events: usize,
    usual: f64,
    mut measure: impl FnMut() -> Result<[f64; 2], String>,
) -> Result<f64, String> {
    for _ in 0..ATTEMPTS {
        let [bare, recorded] = measure()?;
        let cost = (recorded - bare) / events.max(1) as f64;
        if cost >= LEAST_EVENT_COST {
            return Ok(cost);
        }
    }
    Ok(usual)
}

/// CPU seconds of a call, in the cheapest of some batches. `after` is not counted.
pub fn cheapest_call(mut after: impl FnMut()) -> f64 {
    let batch = |_| {
        let before = thread_cpu_seconds();
        (0..CALIBRATION_CALLS).for_each(|_| _ = std::os::unix::process::parent_id());
        let spent = thread_cpu_seconds() - before;
        after();
        spent / f64::from(CALIBRATION_CALLS)
    };
    (0..CALIBRATION_BATCHES)
        .map(batch)
        .fold(f64::INFINITY, f64::min)
}

/// The threads of this process.
pub fn own_threads() -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    // The kernel takes filters of some kilobytes, and programs compare with one after the other.
    tasks
        .filter_map(|t| t.ok()?.file_name().to_str()?.parse().ok())
        .take(64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures these pairs of CPU nanoseconds, one after the other, of calls with two events.
    fn measured(pairs: &[(f64, f64)]) -> (f64, usize) {
        let mut left = pairs.iter();
        let cost = event_cost(2, 50e-9, || {
            let (bare, recorded) = *left.next().expect("measured no more often than that");
            Ok([bare * 1e-9, recorded * 1e-9])
        });
        (cost.unwrap(), left.len())
    }

    #[test]
    fn windows_share_the_names_until_a_thread_gets_another() {
        let (mut names, mut windows) = (Names::default(), [(); 3].map(|()| Window::default()));
        (1..4000).for_each(|tid| names.learn(tid, b"worker\0"));
        close(&mut windows[0], &mut names);
        (1..4000).for_each(|tid| names.learn(tid, b"worker\0"));
        close(&mut windows[1], &mut names);
        names.learn(7, b"renamed");
        close(&mut windows[2], &mut names);
        let [a, b, c] = windows.map(|w| w.names);
        assert!(Arc::ptr_eq(&a, &b) && !Arc::ptr_eq(&b, &c));
        assert_eq!((&*a[&7], &*c[&7], c.len()), ("worker", "renamed", 3999));
        assert!(Arc::ptr_eq(&a[&8], &c[&8]), "and a name is kept once");
    }

    #[test]
    fn an_events_cost_is_half_a_calls_excess_or_measured_again() {
        let (cost, left) = measured(&[(100.0, 220.0), (0.0, 0.0)]);
        assert!(
            (cost - 60e-9).abs() < 1e-12 && left == 1,
            "{cost}, {left} left"
        );
        // Others slowed the calls that were not recorded.
        let (cost, left) = measured(&[(300.0, 220.0), (100.0, 101.0), (100.0, 180.0)]);
        assert!(
            (cost - 40e-9).abs() < 1e-12 && left == 0,
            "{cost}, {left} left"
        );
        let (cost, _) = measured(&[(300.0, 220.0), (300.0, 220.0), (300.0, 300.0)]);
        assert_eq!(cost, 50e-9, "what was not observed is not zero");
        assert!(event_cost(1, 1.0, || Err("not possible".to_owned())).is_err());
    }
}
