//! What the laboratory's probes share: the pages of a row, touching them, and counting the faults of that.

use std::io;

use fingerpost_record::Params;

use crate::call::{page_size, usage};
use crate::probe::{Exercises, Probe, latency, rows, table};
use crate::session::{Session, Stop};

/// What the laboratory's probes share.
pub(super) const FAMILY: Probe = Probe {
    lab: Some("zerofill"),
    ..latency(&table::ZEROFILL, Exercises::Fault)
};

/// The most pages that a row may ask for: 1 GiB of the smallest pages.
const MAX_PAGES: i64 = 1 << 18;

/// The row's `pages`, checked, and their bytes.
pub(super) fn pages_of(params: &Params) -> Result<(usize, usize), Stop> {
    match params.int("pages") {
        Some(n @ 1..=MAX_PAGES) => Ok((n as usize, n as usize * page_size())),
        _ => Err(Stop::Fail(format!(
            "parameter pages must be a whole number from 1 to {MAX_PAGES}"
        ))),
    }
}

/// Switches transparent huge pages off for this process, of every size and for shared memory too. Kernels without them
/// refuse, which comes to the same.
pub(super) fn base_pages_only() {
    // SAFETY: prctl takes plain numbers.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}

/// Writes one byte of every page.
#[inline(always)]
pub(super) fn touch(at: usize, pages: usize, page: usize) {
    for i in 0..pages {
        // SAFETY: callers pass memory of theirs that is at least so many pages long and may be written.
        unsafe { ((at + i * page) as *mut u8).write_volatile(1) };
    }
}

/// Minor faults of this thread so far.
pub(super) fn minor_faults() -> i64 {
    usage(libc::RUSAGE_THREAD).ru_minflt
}

/// Measures `once`, counts the minor faults of one operation, outside of the timing, and reports them. Few operations
/// where each is long.
pub(super) fn with_faults(
    s: &mut Session,
    pages: usize,
    mut once: impl FnMut() -> io::Result<()>,
) -> Result<f64, Stop> {
    s.repeat(&mut once)?;
    let operations = (256 / pages).clamp(1, 8);
    let before = minor_faults();
    (0..operations).try_for_each(|_| once())?;
    let faults = (minor_faults() - before) as f64 / operations as f64;
    s.counter("faults", faults);
    Ok(faults)
}

/// One row per number of pages, each with this parameter.
pub(super) fn per_pages(key: &str, value: &str, pages: &[i64]) -> Vec<Params> {
    rows("pages", pages.iter().copied())
        .into_iter()
        .map(|row| row.with(key, value))
        .collect()
}
