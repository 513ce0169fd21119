//! Windows of events, and what is asked of every source of them.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use fingerpost_sys::bpf::closed::Places;

use crate::follow::event::{Event, What};

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
    /// Names of threads, as the kernel has them, that were seen so far.
    pub names: HashMap<i32, String>,
}

impl Window {
    /// How often a thread left a CPU, and how often it had one again.
    pub fn switches(&self, tid: i32) -> [usize; 2] {
        let by = |e: &Event| if let What::Switch { next, .. } = e.what { Some([e.tid, next]) } else { None };
        [0, 1].map(|n| self.events.iter().filter_map(by).filter(|by| by[n] == tid).count())
    }
}

/// What is known of a source as long as it is open.
#[derive(Clone, Debug)]
pub struct About {
    /// How the events are had, in words, for the record.
    pub described: String,
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
    fn window(&mut self, length: Duration, wait: &mut dyn FnMut(Duration) -> bool) -> io::Result<Window>;

    /// No window comes for a while: what slows others between windows is taken away. Not done by [`Source::window`]
    /// itself, as it takes the kernel some milliseconds, after which a process that the window showed may be gone.
    fn rest(&mut self) {}
}
