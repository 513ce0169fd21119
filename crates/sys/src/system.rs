//! Small questions to the kernel that no file in `/proc` answers.

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Clock ticks a second, the unit of `/proc/stat` and `/proc/PID/stat` (100 on every common system).
pub fn ticks_per_second() -> u64 {
    constant(libc::_SC_CLK_TCK, 100)
}

/// The user as whom we work.
pub fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether this process has root's rights.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether the kernel gave this process more rights than its caller has, and the caller is not root: the binary has file
/// capabilities (`setcap`), or belongs to another user with the set-user-ID bit.
pub fn is_elevated() -> bool {
    // SAFETY: getauxval takes a number and reads what the kernel put on the stack at the start.
    let elevated = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    elevated && !rustix::process::getuid().is_root()
}

/// What a call gave, or the error that it left in `errno` where that is negative. It may be called between fork and
/// exec.
pub(crate) fn done<T: Default + PartialOrd>(result: T) -> io::Result<T> {
    if result < T::default() {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The result of a call, of which these errors say that there was nothing to do.
pub fn unless<T: Default>(result: io::Result<T>, well: &[i32]) -> io::Result<T> {
    match result {
        Err(e) if e.raw_os_error().is_some_and(|code| well.contains(&code)) => Ok(T::default()),
        other => other,
    }
}

/// What was found, if it is there.
pub fn there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    unless(result.map(Some), &[libc::ENOENT])
}

/// A new descriptor that such a call gave.
///
/// # Safety
/// The call makes a descriptor that nobody else owns.
pub(crate) unsafe fn made(descriptor: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: as the caller says.
    done(descriptor).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The size of a page in bytes.
pub fn page_bytes() -> u64 {
    constant(libc::_SC_PAGESIZE, 4096)
}

/// A number that the system has been built with, or the usual one where it does not tell.
fn constant(name: libc::c_int, usual: u64) -> u64 {
    // SAFETY: sysconf takes a constant and touches no memory of ours.
    u64::try_from(unsafe { libc::sysconf(name) })
        .ok()
        .filter(|&n| n > 0)
        .unwrap_or(usual)
}

/// Bytes that this user may still write to the file system of a path.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let answer = rustix::fs::statvfs(path)?;
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

/// The resolution that the kernel states for the monotonic clock.
pub fn clock_resolution() -> Duration {
    let answer = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
    Duration::new(answer.tv_sec as u64, answer.tv_nsec as u32)
}

/// CPU time that the calling process has used, all threads, user and kernel.
pub fn own_cpu_time() -> Duration {
    let answer = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(answer.tv_sec as u64, answer.tv_nsec as u32)
}

/// What the scheduler did to the calling thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSwitches {
    /// Switches because it waited.
    pub voluntary: u64,
    /// Switches because its time was up or another task came first.
    pub involuntary: u64,
}

/// Context switches of the calling thread.
pub fn thread_switches() -> io::Result<ThreadSwitches> {
    // SAFETY: rusage is plain numbers; zeroed is valid, and the kernel fills it when the call succeeds.
    let (rc, usage) = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        (libc::getrusage(libc::RUSAGE_THREAD, &mut usage), usage)
    };
    done(rc)?;
    Ok(ThreadSwitches {
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
    })
}

/// The name that the hypervisor gives itself to the CPU's `cpuid` instruction (`KVMKVMKVM`), where there is one.
#[cfg(target_arch = "x86_64")]
pub fn hypervisor_signature() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    // Leaf 1, ECX bit 31 is set under a hypervisor, which then answers leaf 0x4000_0000 with its name in EBX, ECX, EDX.
    #[allow(
        unused_unsafe,
        reason = "__cpuid became a safe function in later compilers"
    )]
    // SAFETY: every x86-64 CPU has the instruction and leaf 1.
    let present = unsafe { __cpuid(1) }.ecx >> 31 == 1;
    if !present {
        return None;
    }
    #[allow(unused_unsafe, reason = "as above")]
    // SAFETY: as above; a leaf that is not there answers with other leaves' numbers, never with a fault.
    let leaf = unsafe { __cpuid(0x4000_0000) };
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .filter(u8::is_ascii_graphic)
        .collect();
    String::from_utf8(bytes)
        .ok()
        .filter(|name| !name.is_empty())
}

/// Other architectures have no such instruction.
#[cfg(not(target_arch = "x86_64"))]
pub fn hypervisor_signature() -> Option<String> {
    None
}

/// A path as the kernel takes it.
pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the path holds a zero byte"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers() {
        assert!(ticks_per_second() >= 1);
        assert!(page_bytes().is_power_of_two());
        assert!(free_bytes(Path::new("/")).is_ok());
        assert!(free_bytes(Path::new("/no/such/place")).is_err());
        assert!(free_bytes(Path::new("/\0")).is_err());
        assert!(clock_resolution() > Duration::ZERO);
        assert!(thread_switches().is_ok());
    }

    #[test]
    fn own_cpu_time_grows_with_work() {
        let before = own_cpu_time();
        let mut n = 0u64;
        while own_cpu_time() == before && n < 100_000_000 {
            n = std::hint::black_box(n + 1);
        }
        assert!(own_cpu_time() > before);
    }
}
