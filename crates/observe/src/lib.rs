//! Observers of processes under load.
//!
//! [`Session::attach`] finds the processes of a workload, their descendants and all their threads, and watches them
//! until [`Session::finish`], which tells as [`Observation`](fingerpost_record::Observation)s what each observer saw,
//! what it cost and what it lost. The names of the totals are stable and listed in `docs/observers.md`; comparing and
//! explaining rest on them.
//!
//! At [`Level::Counting`] the kernel's own counters are read before and after, little more: for the pass that is
//! measured. At [`Level::Tracing`] threads' states and system calls are told apart too, in short windows of the
//! kernel's tracepoints where they may be opened, else by sampling `/proc`: for the pass that is attributed.

mod calls;
mod clients;
mod delays;
pub mod follow;
mod hardware;
mod limits;
mod machine;
mod mappings;
mod neighbours;
mod population;
mod queues;
mod series;
pub mod session;
pub mod stacks;
mod states;
mod summary;
#[cfg(test)]
mod tests;
mod tracer;
mod tracing;

pub use limits::Limits;
pub use queues::socket_inodes;
pub use session::{Level, Session};
