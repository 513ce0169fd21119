//! Where events come from: the kernel.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use super::event::Event;

pub mod bpf;
mod flow;
pub(crate) use flow::first_pid_namespace;
pub mod perf;
mod wanted;

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

/// Something that has events.
pub trait Source {
    /// How the events are had, in words, for the record.
    fn describe(&self) -> String;

    /// CPUs whose events it has.
    fn cpus(&self) -> usize;

    /// CPU seconds that an event costs the thread that causes it: measured, or what is usual where nothing could be measured.
    fn event_cost(&self) -> f64;

    /// Takes events for so long, or until it has as many as it can keep. `wait` sleeps, and returns true when the end was asked for.
    ///
    /// # Errors
    /// What the kernel said.
    fn window(&mut self, length: Duration, wait: &mut dyn FnMut(Duration) -> bool) -> io::Result<Window>;

    /// No window comes for a while: what slows others between windows is taken away. Not done by [`Source::window`] itself, as it takes
    /// the kernel some milliseconds, after which a process that the window showed may be gone.
    fn rest(&mut self) {}
}

/// The kernel's events by programs in the kernel, or by perf's rings where those are not allowed. On Linux 6.18 perf loses what happens
/// while a CPU idles (interrupts, wake-ups, the switch to the thread that was woken), up to four in five of it, and says nothing of it
/// (docs/observers.md); a program costs less than half an event, too.
/// A window ends early when it has `most_events`, of 48 bytes each.
///
/// # Errors
/// One sentence that says why perf's rings are not possible, where neither way is.
pub fn open(most_events: usize) -> Result<Box<dyn Source + Send>, String> {
    match bpf::Bpf::open(most_events) {
        Ok(bpf) => Ok(Box::new(bpf)),
        Err(_) => perf::Perf::open(most_events).map(|perf| Box::new(perf) as Box<dyn Source + Send>),
    }
}

#[cfg(test)]
mod tests;
