//! Which CPUs this process may use, and moving a thread to one of them.

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that the calling thread may run on, in ascending order.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    allowed_cpus_of(0)
}

/// The CPUs that a thread may run on, by its id, in ascending order.
///
/// # Errors
/// The thread has ended, or the machine has more CPUs than a `cpu_set_t` holds.
pub fn allowed_cpus_of(tid: i32) -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(tid))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect())
}

/// Confines the calling thread, and what it creates from now on, to these CPUs.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    confine(0, &set_of(cpus))
}

/// Confines another thread, by its id, to these CPUs.
pub fn pin_task(tid: i32, cpus: &[usize]) -> io::Result<()> {
    // The calling thread is 0.
    if tid <= 1 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a thread of ours",
        ));
    }
    confine(tid, &set_of(cpus))
}

/// These CPUs as the kernel takes them.
pub(crate) fn set_of(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cpus.iter()
        .filter(|&&cpu| cpu < CpuSet::MAX_CPU)
        .for_each(|&cpu| set.set(cpu));
    set
}

/// Confines a thread to a set of CPUs. It may be called between fork and exec.
pub(crate) fn confine(tid: i32, set: &CpuSet) -> io::Result<()> {
    Ok(sched_setaffinity(Pid::from_raw(tid), set)?)
}
