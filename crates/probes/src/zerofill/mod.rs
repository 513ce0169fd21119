//! The zero-fill laboratory's probes: what memory costs to get, to touch for the first time, and to give back.
//!
//! | file | question |
//! | --- | --- |
//! | [`api`] | every way to get memory that this system has, behind one small interface |
//! | [`alloc`] | the article's benchmark: allocate and free, with and without touching, per way and number of pages |
//! | [`phase`] | the same taken apart with the clock: which part is allocating, faulting, freeing |
//! | [`prefault`] | what the article asked for: several pages per fault, and mapping at once |
//! | [`clear`] | zeroing alone, from user space |
//! | [`zeroing`] | zeroing alone, inside the kernel's faults, by the clock |
//! | [`profile`] | zeroing and faulting as the kernel's own samples show them |
//!
//! Base pages are measured as base pages: [`base_pages_only`] switches transparent huge pages off for the probe's process, and costs
//! nothing in the loop, which advice per mapping would.

mod alloc;
mod api;
mod clear;
mod phase;
mod prefault;
mod profile;
mod zeroing;

use std::io;

use fingerpost_record::Params;

use crate::probe::Probe;
use crate::session::{Session, Stop};

/// Every probe of the laboratory.
pub static PROBES: &[&[Probe]] = &[alloc::PROBES, phase::PROBES, prefault::PROBES, clear::PROBES, zeroing::PROBES, profile::PROBES];

/// The name of the laboratory.
pub const LAB: &str = "zerofill";

/// The most pages that a row may ask for: 1 GiB of the smallest pages.
const MAX_PAGES: i64 = 1 << 18;

/// Bytes in a page.
fn page_size() -> usize {
    fingerpost_sys::system::page_bytes() as usize
}

/// The row's `pages`, checked, and their bytes.
fn pages_of(params: &Params) -> Result<(usize, usize), Stop> {
    match params.int("pages") {
        Some(n @ 1..=MAX_PAGES) => Ok((n as usize, n as usize * page_size())),
        _ => Err(Stop::Fail(format!("parameter pages must be a whole number from 1 to {MAX_PAGES}"))),
    }
}

/// Switches transparent huge pages off for this process, of every size and for shared memory too. Kernels without them refuse, which
/// comes to the same.
fn base_pages_only() {
    // SAFETY: prctl takes plain numbers.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}

/// Writes one byte of every page.
#[inline(always)]
fn touch(at: usize, pages: usize, page: usize) {
    for i in 0..pages {
        // SAFETY: callers pass memory of theirs that is at least so many pages long and may be written.
        unsafe { ((at + i * page) as *mut u8).write_volatile(1) };
    }
}

/// Minor faults of this thread so far.
fn minor_faults() -> i64 {
    // SAFETY: a rusage is plain numbers, and the kernel writes exactly one.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        #[cfg(target_os = "linux")]
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        #[cfg(not(target_os = "linux"))]
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage.ru_minflt as i64
    }
}

/// Counts the minor faults of one operation, outside of the timing, and reports them. Few operations where each is long.
fn count_faults(s: &mut Session, pages: usize, body: &mut impl FnMut(u64) -> io::Result<()>) -> Result<f64, Stop> {
    let operations = (256 / pages).clamp(1, 8);
    let before = minor_faults();
    body(operations as u64)?;
    let faults = (minor_faults() - before) as f64 / operations as f64;
    s.counter("faults", faults);
    Ok(faults)
}

/// One row per number of pages, each with the given parameters.
fn per_pages(base: &Params, pages: &[i64]) -> Vec<Params> {
    pages.iter().map(|n| base.clone().with("pages", *n)).collect()
}
