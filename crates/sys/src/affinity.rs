//! Which CPUs this process may use, and moving a thread to one of them.

use std::io;
use std::mem;

use crate::system::done;

/// The CPUs that the calling thread may run on, in ascending order.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    allowed_cpus_of(0)
}

/// The CPUs that a thread may run on, by its id, in ascending order.
///
/// # Errors
/// The thread has ended, or the machine has more CPUs than a `cpu_set_t` holds.
pub fn allowed_cpus_of(tid: i32) -> io::Result<Vec<usize>> {
    // SAFETY: a cpu_set_t is plain bits; zeroed is the empty set, and the kernel writes at most its size.
    let (rc, set) = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        (libc::sched_getaffinity(tid, mem::size_of::<libc::cpu_set_t>(), &mut set), set)
    };
    done(rc)?;
    // SAFETY: CPU_ISSET reads one bit of the set, and the index stays below CPU_SETSIZE.
    Ok((0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// Confines the calling thread, and what it creates from now on, to these CPUs.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    confine(0, &set_of(cpus))
}

/// Confines another thread, by its id, to these CPUs.
pub fn pin_task(tid: i32, cpus: &[usize]) -> io::Result<()> {
    // The calling thread is 0.
    if tid <= 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a thread of ours"));
    }
    confine(tid, &set_of(cpus))
}

/// These CPUs as the kernel takes them.
pub(crate) fn set_of(cpus: &[usize]) -> libc::cpu_set_t {
    // SAFETY: as above; CPU_SET writes one bit, and the filter keeps the index within the set.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize).for_each(|&cpu| libc::CPU_SET(cpu, &mut set));
        set
    }
}

/// Confines a thread to a set of CPUs. It may be called between fork and exec.
pub(crate) fn confine(tid: i32, set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: the set is as long as we say, and the kernel checks that we may change the thread.
    done(unsafe { libc::sched_setaffinity(tid, mem::size_of::<libc::cpu_set_t>(), set) }).map(drop)
}
