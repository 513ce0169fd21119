//! How closely a session looks, and the kernel's events, which the closest look opens.

use crate::follow::pace::{COST_SHARE, Pace};
use crate::follow::source::{self, Source};
use crate::follow::taking::{MOST_EVENTS, Taking};

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The kernel's counters before and after, and a light look twice a second: for the pass that is measured.
    Counting,
    /// Threads' states, system calls and socket queues too: for the pass that is attributed.
    Tracing,
    /// As `Tracing`, by sampling `/proc` even where tracepoints could be opened.
    Sampling,
}

/// The kernel's events, open and switched off. Who watches one pass after the other hands them on: closing them takes the kernel a
/// good part of a second, in which it waits for every CPU once for each kind of event.
pub struct Events(pub(super) Box<dyn Source + Send>);

/// Opens the kernel's events, unless they are open already.
pub(super) fn open(events: Option<Events>) -> Result<Taking, String> {
    let source = match events {
        Some(Events(source)) => source,
        None => source::open(MOST_EVENTS)?,
    };
    let pace = Pace::new(COST_SHARE, source.cpus(), source.event_cost());
    Ok(Taking::new(source, pace))
}
