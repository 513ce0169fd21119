//! Events from the kernel's tracepoints, through one ring per CPU.

mod layout;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use fingerpost_sys::trace::{Point, Raw, Rings, monotonic_ns, online_cpus, thread_cpu_seconds};
use fingerpost_sys::tracefs::{self, Tracepoint};

use self::layout::{Decoder, WANTED, Wanted};
use super::{Source, Window};

/// Bytes of one CPU's ring, and of all rings together: a ring holds what one CPU does in [`SLICE`] several times over.
const RING_BYTES: usize = 8 << 20;
const ALL_RINGS_BYTES: usize = 32 << 20;
const LEAST_RING_BYTES: usize = 256 << 10;
/// How often an open window looks at its rings, and how full the fullest is when they are drained. Where it is already fuller than
/// `CLOSE_FROM`, draining does not keep up with what is written: the window ends while it is still whole.
const SLICE: Duration = Duration::from_millis(5);
const DRAIN_FROM: f64 = 0.25;
const CLOSE_FROM: f64 = 0.5;
/// Bytes of the shortest record: what bounds the events that a ring may hold.
const LEAST_RECORD_BYTES: usize = 48;
/// Names of threads that are remembered; a machine that forks all day would fill the memory with them.
const MOST_NAMES: usize = 50_000;
/// Calls of one batch of the calibration, and batches; the cheapest counts, as others may be disturbed.
const CALIBRATION_CALLS: u32 = 2000;
const CALIBRATION_BATCHES: u32 = 5;
/// The inode that the kernel gives the first PID namespace (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Tracepoints of all CPUs.
pub struct Perf {
    rings: Rings,
    decoder: Decoder,
    names: HashMap<i32, String>,
    most_events: usize,
    missing: Vec<&'static str>,
    event_cost: f64,
}

impl Perf {
    /// Opens the tracepoints, switched off. A window ends early when it has `most_events`, of 48 bytes each; what the
    /// rings hold at that moment comes on top.
    ///
    /// # Errors
    /// One sentence that says why tracing is not possible here.
    pub fn open(most_events: usize) -> Result<Perf, String> {
        first_pid_namespace()?;
        let names: Vec<&str> = WANTED.iter().map(|w| w.name).collect();
        let found = tracefs::find(&names)?;
        let mut decoder = Decoder::new(partitions());
        let (points, missing) = resolve(&found, &mut decoder, &own_threads())?;
        let call_cost = calibrate(&found)?;
        let cpus = online_cpus().map_err(|e| format!("the online CPUs cannot be read: {e}"))?.len();
        let bytes = (ALL_RINGS_BYTES / cpus.max(1)).clamp(LEAST_RING_BYTES, RING_BYTES);
        let rings = Rings::open(&points, bytes).map_err(refused)?;
        Ok(Perf { rings, decoder, names: HashMap::new(), most_events, missing, event_cost: call_cost })
    }

    /// Takes what the rings hold into the window. Returns how many events were lost.
    fn drain(&mut self, window: &mut Window) -> u64 {
        let (decoder, names) = (&self.decoder, &mut self.names);
        let (start, events) = (window.start, &mut window.events);
        self.rings.drain(|raw| {
            learn_names(decoder, &raw, names);
            events.extend(decoder.event(&raw).filter(|e| e.time >= start));
        })
    }

    /// Keeps the window open for its time, until it holds enough, more comes than can be drained, or the end was asked for.
    fn let_flow(&mut self, window: &mut Window, length: Duration, wait: &mut dyn FnMut(Duration) -> bool) {
        loop {
            let left = length.saturating_sub(Duration::from_nanos(monotonic_ns().saturating_sub(window.start)));
            if left.is_zero() || wait(left.min(SLICE)) {
                return;
            }
            let fullness = self.rings.fullness();
            if fullness >= CLOSE_FROM {
                return;
            }
            if fullness >= DRAIN_FROM {
                window.lost += self.drain(window);
            }
            let waiting = self.rings.waiting() / LEAST_RECORD_BYTES;
            if window.lost > 0 || window.events.len() + waiting >= self.most_events {
                return;
            }
        }
    }
}

impl Source for Perf {
    fn describe(&self) -> String {
        let mut text = "perf tracepoints".to_owned();
        if !self.missing.is_empty() {
            text += &format!(" (this kernel lacks {})", self.missing.join(", "));
        }
        text
    }

    fn cpus(&self) -> usize {
        self.rings.cpus()
    }

    fn event_cost(&self) -> f64 {
        self.event_cost
    }

    fn window(&mut self, length: Duration, wait: &mut dyn FnMut(Duration) -> bool) -> io::Result<Option<Window>> {
        if self.names.len() > MOST_NAMES {
            self.names.clear();
        }
        self.rings.enable()?;
        let mut window = Window { start: monotonic_ns(), ..Window::default() };
        self.let_flow(&mut window, length, wait);
        window.end = monotonic_ns();
        self.rings.disable()?;
        // What the kernel could not write it reports with the next record that it can write: into the next window, if a ring is full.
        window.lost += u64::from(self.rings.full());
        window.lost += self.drain(&mut window);
        let end = window.end;
        window.events.retain(|e| e.time <= end);
        // Each CPU's events are in order, and those of equal times must stay so.
        window.events.sort_by_key(|e| e.time);
        window.names.clone_from(&self.names);
        Ok(Some(window))
    }
}

/// What the kernel said when it did not open them, as a sentence.
fn refused(e: io::Error) -> String {
    format!("tracepoints cannot be opened: {e}")
}

/// The kernel's tracepoints name threads as the first PID namespace does.
fn first_pid_namespace() -> Result<(), String> {
    match std::fs::read_link("/proc/self/ns/pid") {
        Ok(link) if link.as_os_str() != FIRST_PID_NAMESPACE => {
            Err("requests cannot be followed from inside a PID namespace, as the kernel's events name threads by their outer numbers"
                .into())
        }
        _ => Ok(()),
    }
}

/// What is to be opened, in the order of [`WANTED`], and the names of what this kernel lacks.
fn resolve(found: &[Option<Tracepoint>], decoder: &mut Decoder, own: &[i32]) -> Result<(Vec<Point>, Vec<&'static str>), String> {
    let (mut points, mut missing) = (Vec::new(), Vec::new());
    for (wanted, found) in WANTED.iter().zip(found) {
        match found {
            Some(point) if decoder.learn(wanted, point) => points.push(Point { id: point.id, filter: filter(wanted, own) }),
            _ if wanted.optional => missing.push(wanted.name),
            Some(_) => return Err(format!("requests cannot be followed: the tracepoint {} lacks fields that are needed", wanted.name)),
            None => {
                return Err(format!("requests cannot be followed: this kernel has no tracepoint {} (sock: since Linux 6.3)", wanted.name));
            }
        }
    }
    Ok((points, missing))
}

fn filter(wanted: &Wanted, own: &[i32]) -> Option<String> {
    let own = own.iter().filter(|_| wanted.others_only).map(|tid| format!("common_pid != {tid}"));
    let parts: Vec<String> = wanted.filter.map(str::to_owned).into_iter().chain(own).collect();
    (!parts.is_empty()).then(|| parts.join(" && "))
}

/// The threads of this process.
fn own_threads() -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    // The kernel takes filters of some kilobytes.
    tasks.filter_map(|t| t.ok()?.file_name().to_str()?.parse().ok()).take(64).collect()
}

/// The whole device of each partition, by the kernel's numbers of both.
fn partitions() -> HashMap<u32, u32> {
    let entries = std::fs::read_dir("/sys/class/block").into_iter().flatten().flatten();
    let partition = |dir: &Path| Some((device(&dir.join("dev"))?, device(&dir.parent()?.join("dev"))?));
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

/// What an event costs the thread that causes it, in CPU seconds: calls that do nothing, made with and without being recorded.
fn calibrate(found: &[Option<Tracepoint>]) -> Result<f64, String> {
    let bare = cheapest_call(|| ());
    let points: Vec<Point> = found[..2].iter().flatten().map(|t| Point::from(t.id)).collect();
    let mut rings = Rings::open(&points, 1 << 20).map_err(refused)?;
    rings.enable().map_err(refused)?;
    let recorded = cheapest_call(|| _ = rings.drain(|_| ()));
    Ok(((recorded - bare) / points.len().max(1) as f64).max(0.0))
}

/// CPU seconds of a call, in the cheapest of some batches. `after` is not counted.
fn cheapest_call(mut after: impl FnMut()) -> f64 {
    let batch = |_| {
        let before = thread_cpu_seconds();
        (0..CALIBRATION_CALLS).for_each(|_| _ = std::os::unix::process::parent_id());
        let spent = thread_cpu_seconds() - before;
        after();
        spent / f64::from(CALIBRATION_CALLS)
    };
    (0..CALIBRATION_BATCHES).map(batch).fold(f64::INFINITY, f64::min)
}

/// Keeps the names that a switch tells.
fn learn_names(decoder: &Decoder, raw: &Raw, names: &mut HashMap<i32, String>) {
    for (tid, name) in decoder.names(raw).into_iter().flatten() {
        let name = name.split(|&b| b == 0).next().unwrap_or_default();
        // Each CPU has an idle thread of number 0.
        if tid != 0 && names.get(&tid).is_none_or(|known| known.as_bytes() != name) {
            names.insert(tid, String::from_utf8_lossy(name).into_owned());
        }
    }
}

#[cfg(test)]
mod tests;
