//! Where events come from: the kernel.

pub mod bpf;
pub(super) mod flow;
pub(crate) use flow::first_pid_namespace;
pub use flow::{About, Source, Window};
pub mod perf;
pub(super) mod wanted;

/// The kernel's events by programs in the kernel, or by perf's rings where those are not allowed. On Linux 6.18 perf
/// loses what happens while a CPU idles (interrupts, wake-ups, the switch to the thread that was woken), up to four in
/// five of it, and says nothing of it (docs/observers.md): the record says why it was taken ([`About::no_programs`]). A
/// program costs less than half an event, too. A window ends early when it has `most_events`, of 48 bytes each; what the rings hold at that moment comes on top.
///
/// # Errors
/// One sentence that says why neither way is possible.
pub fn open(most_events: usize) -> Result<Box<dyn Source + Send>, String> {
    match bpf::Bpf::open(most_events) {
        Ok(bpf) => Ok(Box::new(bpf)),
        Err(programs) => match perf::Perf::open(most_events) {
            Ok(perf) => Ok(Box::new(perf.instead_of_programs(programs))),
            Err(events) => Err(format!("{programs}; by perf: {events}")),
        },
    }
}

#[cfg(test)]
mod tests;
