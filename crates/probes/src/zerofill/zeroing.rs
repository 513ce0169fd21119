//! The kernel's own zeroing of a page inside a fault, by the clock alone.
//!
//! `fallocate` gives a file in memory pages that are not zeroed yet: the kernel puts that off to the first fault. So
//! the first touch of such a page and the next one, after the page was taken out of the page tables but not out of the
//! file, are the same fault with and without the zeroing. Everything before the two is made alike: a page at either end
//! of the range is touched, and the whole range unmapped, so that the same translations are flushed.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::pages::{FAMILY, base_pages_only, pages_of, per_pages, touch};
use crate::call::{READ_WRITE, check, map, page_size};
use crate::probe::{Nature, Probe};
use crate::session::{Session, Stop, now_ns};

/// A file in memory, mapped until the process ends: one page that stays, so many that come and go, one page that stays.
pub(super) struct Zeroing {
    file: File,
    at: usize,
    pages: usize,
    page: usize,
}

impl Zeroing {
    /// Makes and maps the file.
    pub(super) fn new(pages: usize, page: usize) -> io::Result<Zeroing> {
        let bytes = (pages + 2) * page;
        let file = fingerpost_sys::memory::nameless_file()?;
        file.set_len(bytes as u64)?;
        let at = map(0, bytes, READ_WRITE, libc::MAP_SHARED, file.as_raw_fd())?;
        Ok(Zeroing {
            file,
            at,
            pages,
            page,
        })
    }

    /// Gives the pages between the two ends back, and gets new ones that are not zeroed yet.
    pub(super) fn renew(&self) -> io::Result<()> {
        for mode in [libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, 0] {
            let (begin, bytes) = (
                self.page as libc::off_t,
                (self.pages * self.page) as libc::off_t,
            );
            // SAFETY: numbers and a descriptor of ours; the mapping stays valid, with other content.
            check(i64::from(unsafe {
                libc::fallocate(self.file.as_raw_fd(), mode, begin, bytes)
            }))?;
        }
        Ok(())
    }

    /// Takes every page out of the page tables; the file keeps them.
    pub(super) fn forget(&self) -> io::Result<()> {
        touch(self.at, 2, (self.pages + 1) * self.page);
        let bytes = (self.pages + 2) * self.page;
        // SAFETY: the mapping is ours, shared, and so keeps its content.
        check(i64::from(unsafe {
            libc::madvise(self.at as *mut libc::c_void, bytes, libc::MADV_DONTNEED)
        }))
        .map(drop)
    }

    /// Writes to each of the pages between the ends: a fault each after [`Zeroing::forget`].
    pub(super) fn touch(&self) {
        touch(self.at + self.page, self.pages, self.page);
    }

    /// Nanoseconds that a fault which zeroes takes beyond one that does not, per page.
    pub(super) fn difference(&self) -> io::Result<f64> {
        self.renew()?;
        let mut touches = [0; 2];
        for ns in &mut touches {
            self.forget()?;
            let begin = now_ns();
            self.touch();
            *ns = now_ns() - begin;
        }
        Ok((touches[0] as f64 - touches[1] as f64) / self.pages as f64)
    }
}

fn run(s: &mut Session) -> Result<(), Stop> {
    let (pages, _) = pages_of(s.params())?;
    s.word("how", &["memfd"])?;
    base_pages_only();
    let zeroing = Zeroing::new(pages, page_size())?;
    // The first time the kernel makes page tables, and its own lists of pages fill.
    zeroing.difference()?;
    s.values(|| Ok(zeroing.difference()?))
}

/// The probes of this file.
pub static PROBES: &[Probe] = &[Probe {
    name: "zerofill.zeroing",
    bounds: [1.0, 1e6],
    summary: "the kernel's zeroing of a page inside a fault, timed",
    timed: "a write to each of `pages` base pages of a file in memory that are allocated but not zeroed yet, less a \
        write to each of the same \
            pages after they were taken out of the page tables: the same faults with and without zeroing; per page.",
    pitfalls: "the difference of two times, each several times as long. The pages were freed and allocated just \
        before, so they are as warm as their number allows.",
    // A difference of two times may be too short as well as too long.
    nature: Nature::Blocks,
    variants: || per_pages("how", "memfd", &[16, 64, 256, 1024, 4096]),
    run,
    ..FAMILY
}];

#[cfg(test)]
mod tests {
    use super::super::pages::minor_faults;
    use super::*;

    #[test]
    fn both_touches_fault_on_every_page_and_only_new_pages_are_zero() {
        let page = page_size();
        let zeroing = Zeroing::new(5, page).unwrap();
        let first = |i: usize| {
            // SAFETY: inside the mapping.
            unsafe { ((zeroing.at + (1 + i) * page) as *const u8).read_volatile() }
        };
        for _ in 0..2 {
            zeroing.renew().unwrap();
            assert!((0..5).all(|i| first(i) == 0));
            for _ in 0..2 {
                zeroing.forget().unwrap();
                let before = minor_faults();
                zeroing.touch();
                assert!(minor_faults() - before >= 5);
                assert!((0..5).all(|i| first(i) == 1));
            }
        }
        assert!(zeroing.difference().unwrap().is_finite());
    }
}
