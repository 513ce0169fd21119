//! Memory mappings and page faults.
//!
//! All anonymous mappings here are advised against huge pages (`MADV_NOHUGEPAGE`): whether the kernel has a huge page
//! to spare must not decide the figure. Kernels built without huge pages refuse the advice, which comes to the same.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::fd::AsRawFd;

use crate::call::{ANONYMOUS, READ_WRITE, check, in_chunks, map, page_size, table_reach, unmap};
use crate::probe::{Exercises, HostDependence, Probe, latency, rows, table};
use crate::session::{Session, Stop, now_ns};

/// Pages that are touched between two readings of the clock, where rows with few pages take several regions together:
/// enough to make the two readings a small share, few enough to stay a small process.
const TOUCHED_AT_ONCE: usize = 64;

/// The same for pages that are only unmapped, each of which takes far less time. No more than the kernel keeps at hand
/// for the next user of this CPU: what is beyond that goes back to a common store, so that larger bursts are slower per
/// page.
const UNMAPPED_AT_ONCE: usize = 256;

/// The length of a batch of unmapping: shorter than others, because mapping and touching, outside of it, take three
/// times as long.
const MORE_OUTSIDE_NS: u64 = 100_000;

/// The most pages that a row may ask for.
const MAX_PAGES: i64 = 1 << 18;

/// The most regions that exist at once.
const MAX_REGIONS: usize = 64;

/// Mappings between two readings of the clock, for the probe that touches none of them.
const MAPPINGS_AT_ONCE: usize = 32;

/// Single pages mapped above the holes: more than a node of the kernel's tree of mappings holds (16), so that the nodes
/// of the holes hold nothing else, whatever the process had mapped before.
const APART: usize = 17;

fn advise_small_pages(at: usize, bytes: usize) {
    // SAFETY: advice about a mapping of ours changes no content. Its refusal is as good (see the head of this file).
    unsafe { libc::madvise(at as *mut libc::c_void, bytes, libc::MADV_NOHUGEPAGE) };
}

/// The row's pages per region.
fn pages(s: &Session) -> Result<usize, Stop> {
    match s.int("pages", 1)? {
        n if n <= MAX_PAGES => Ok(n as usize),
        _ => Err(Stop::Fail(format!(
            "parameter pages must be at most {MAX_PAGES}"
        ))),
    }
}

/// Equal regions in a reserved range of addresses, each in page tables of its own, with unmapped space between them, so
/// that no two mappings merge and a fresh region starts without page tables, as a fresh mapping of a program does.
struct Regions {
    first: usize,
    stride: usize,
    count: usize,
    page: usize,
    pages: usize,
}

impl Regions {
    /// As many regions of the row's `pages` as come to `pages_at_once`, at least one.
    fn reserve(s: &Session, pages_at_once: usize) -> Result<Regions, Stop> {
        let (page, pages) = (page_size(), pages(s)?);
        let table = table_reach();
        // One page more than the region keeps a gap.
        let stride = (pages * page + page).next_multiple_of(table);
        let count = (pages_at_once / pages).clamp(1, MAX_REGIONS);
        let start = map(
            0,
            stride * count + table,
            libc::PROT_NONE,
            ANONYMOUS | libc::MAP_NORESERVE,
            -1,
        )?;
        Ok(Regions {
            first: start.next_multiple_of(table),
            stride,
            count,
            page,
            pages,
        })
    }

    fn bytes(&self) -> usize {
        self.page * self.pages
    }

    fn starts(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let (first, stride) = (self.first, self.stride);
        (0..count).map(move |i| first + i * stride)
    }

    /// Maps fresh anonymous regions in the place of the first `count`.
    fn map_anonymous(&self, count: usize) -> io::Result<()> {
        for start in self.starts(count) {
            map(
                start,
                self.bytes(),
                READ_WRITE,
                ANONYMOUS | libc::MAP_FIXED,
                -1,
            )?;
            advise_small_pages(start, self.bytes());
        }
        Ok(())
    }

    /// Maps the file in the place of the first `count` regions.
    fn map_file(&self, count: usize, file: &File, prot: i32) -> io::Result<()> {
        for start in self.starts(count) {
            map(
                start,
                self.bytes(),
                prot,
                libc::MAP_PRIVATE | libc::MAP_FIXED,
                file.as_raw_fd(),
            )?;
        }
        Ok(())
    }

    /// Takes everything out of the first `count` regions, page tables included, and keeps the addresses reserved.
    fn clear(&self, count: usize) -> io::Result<()> {
        map(
            self.first,
            self.stride * count,
            libc::PROT_NONE,
            ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
            -1,
        )
        .map(drop)
    }

    /// Writes one byte of every page of the first `count` regions.
    #[inline(always)]
    fn write(&self, count: usize) -> io::Result<()> {
        for start in self.starts(count) {
            for i in 0..self.pages {
                // SAFETY: callers have mapped these regions for writing.
                unsafe { ((start + i * self.page) as *mut u8).write_volatile(1) };
            }
        }
        Ok(())
    }

    /// Reads one byte of every page of the first `count` regions.
    #[inline(always)]
    fn read(&self, count: usize) -> io::Result<()> {
        for start in self.starts(count) {
            for i in 0..self.pages {
                // SAFETY: callers have mapped these regions for reading.
                black_box(unsafe { ((start + i * self.page) as *const u8).read_volatile() });
            }
        }
        Ok(())
    }
}

/// The nanoseconds of one piece of work.
#[inline(always)]
fn timed(work: impl FnOnce() -> io::Result<()>) -> io::Result<u64> {
    let begin = now_ns();
    work()?;
    Ok(now_ns() - begin)
}

/// Leaves holes of this size between reserved ones, as earlier unmapping does in a program that has run for a while.
///
/// The kernel keeps mappings in a tree whose nodes split as they fill. Growing the tree would make the figure depend on
/// how many mappings the process happens to have (7 % between two programs here); filling a hole changes one entry of a
/// node in place.
fn make_holes(bytes: usize) -> io::Result<()> {
    // Neighbours with different rights do not merge into one mapping.
    (0..APART).try_for_each(|i| {
        map(
            0,
            page_size(),
            [libc::PROT_NONE, libc::PROT_READ][i % 2],
            ANONYMOUS,
            -1,
        )
        .map(drop)
    })?;
    let start = map(
        0,
        bytes * (2 * MAPPINGS_AT_ONCE + 1),
        libc::PROT_NONE,
        ANONYMOUS | libc::MAP_NORESERVE,
        -1,
    )?;
    (0..MAPPINGS_AT_ONCE).try_for_each(|i| unmap(start + bytes * (2 * i + 1), bytes))
}

fn mmap(s: &mut Session) -> Result<(), Stop> {
    let bytes = pages(s)? * page_size();
    make_holes(bytes)?;
    let mut mappings = [0usize; MAPPINGS_AT_ONCE];
    s.timed_batches(|ops| {
        in_chunks(ops, MAPPINGS_AT_ONCE, |count| {
            let ns = timed(|| {
                for mapping in &mut mappings[..count] {
                    *mapping = map(0, bytes, READ_WRITE, ANONYMOUS, -1)?;
                }
                Ok(())
            })?;
            mappings[..count]
                .iter()
                .try_for_each(|&mapping| unmap(mapping, bytes))?;
            Ok(ns)
        })
    })
}

/// Measures `work` on the regions, so many at a time, each time after `prepare`; then they are cleared.
fn in_regions(
    s: &mut Session,
    regions: &Regions,
    prepare: impl Fn(usize) -> io::Result<()>,
    work: impl Fn(usize) -> io::Result<()>,
) -> Result<(), Stop> {
    s.timed_batches(|ops| {
        in_chunks(ops, regions.count, |count| {
            prepare(count)?;
            let ns = timed(|| work(count))?;
            regions.clear(count)?;
            Ok(ns)
        })
    })
}

fn munmap(s: &mut Session) -> Result<(), Stop> {
    let regions = Regions::reserve(s, UNMAPPED_AT_ONCE)?;
    s.batch_target_ns(MORE_OUTSIDE_NS);
    let touched = |count| {
        regions
            .map_anonymous(count)
            .and_then(|()| regions.write(count))
    };
    in_regions(s, &regions, touched, |count| {
        regions
            .starts(count)
            .try_for_each(|start| unmap(start, regions.bytes()))
    })
}

fn mprotect(s: &mut Session) -> Result<(), Stop> {
    let bytes = pages(s)? * page_size();
    make_holes(bytes)?;
    // Small regions take turns, so that their places in the kernel's tree average out; for large ones that is a trifle.
    let count = (TOUCHED_AT_ONCE / pages(s)?).clamp(1, MAPPINGS_AT_ONCE);
    let mut regions = [0usize; MAPPINGS_AT_ONCE];
    for region in &mut regions[..count] {
        *region = map(0, bytes, READ_WRITE, ANONYMOUS, -1)?;
        advise_small_pages(*region, bytes);
        for page in (*region..*region + bytes).step_by(page_size()) {
            // SAFETY: the page is in the mapping just made.
            unsafe { (page as *mut u8).write_volatile(1) };
        }
    }
    let (mut next, mut prot) = (0, READ_WRITE);
    s.repeat(|| {
        if next == 0 {
            prot = if prot == READ_WRITE {
                libc::PROT_READ
            } else {
                READ_WRITE
            };
        }
        // SAFETY: the mapping is ours, and nothing writes to it from here on.
        check(i64::from(unsafe {
            libc::mprotect(regions[next] as *mut libc::c_void, bytes, prot)
        }))?;
        next = if next + 1 == count { 0 } else { next + 1 };
        Ok(())
    })
}

fn fault_anon(s: &mut Session) -> Result<(), Stop> {
    let regions = Regions::reserve(s, TOUCHED_AT_ONCE)?;
    s.work_per_op(regions.pages as u64);
    in_regions(
        s,
        &regions,
        |count| regions.map_anonymous(count),
        |count| regions.write(count),
    )
}

/// A file of so many bytes, in the page cache.
pub fn cached_file(s: &Session, bytes: usize) -> Result<File, Stop> {
    let path = s.dir().join("mapped");
    let written = std::fs::write(&path, vec![1u8; bytes]).and_then(|()| File::open(&path));
    written.map_err(|e| Stop::Fail(format!("cannot write {}: {e}", path.display())))
}

fn fault_file(s: &mut Session) -> Result<(), Stop> {
    let regions = Regions::reserve(s, TOUCHED_AT_ONCE)?;
    let file = cached_file(s, regions.bytes())?;
    s.work_per_op(regions.pages as u64);
    in_regions(
        s,
        &regions,
        |count| regions.map_file(count, &file, libc::PROT_READ),
        |count| regions.read(count),
    )
}

fn fault_cow(s: &mut Session) -> Result<(), Stop> {
    let regions = Regions::reserve(s, TOUCHED_AT_ONCE)?;
    let file = cached_file(s, regions.bytes())?;
    s.work_per_op(regions.pages as u64);
    let read = |count| {
        regions
            .map_file(count, &file, READ_WRITE)
            .and_then(|()| regions.read(count))
    };
    in_regions(s, &regions, read, |count| regions.write(count))
}

const FAMILY: Probe = Probe {
    variants: || rows("pages", [1, 256]),
    ..latency(&table::VM, Exercises::Fault)
};

/// The probes of this file.
pub static PROBES: &[Probe] = &[
    Probe {
        lmbench: Some("Mmap Latency"),
        name: "vm.mmap",
        bounds: [100.0, 1e6],
        calls: &["mmap"],
        summary: "map anonymous memory",
        timed: "mmap of `pages` private anonymous pages, none touched, where the kernel finds room: in holes of that \
            size; unmapping is outside.",
        pitfalls: "in a process without holes the kernel's tree of mappings grows, which costs a third more; lmbench \
            maps a file, touches and unmaps it.",
        variants: || rows("pages", [256]),
        run: mmap,
        ..FAMILY
    },
    Probe {
        name: "vm.munmap",
        bounds: [200.0, 1e7],
        depends_on_host: Some(HostDependence::Pages),
        calls: &["munmap"],
        summary: "unmap touched memory",
        timed: "munmap of one private anonymous mapping of `pages` small pages, all touched: the mapping, its pages \
            and its page table are freed.",
        run: munmap,
        ..FAMILY
    },
    Probe {
        name: "vm.mprotect",
        bounds: [100.0, 1e6],
        entries: Some(1.0),
        calls: &["mprotect"],
        summary: "change the rights of touched memory",
        timed: "mprotect of one mapping of `pages` touched small pages, to read-only and back in turn: the figure is \
            the mean of both ways.",
        pitfalls: "with one thread no other CPU's address cache is to be cleared; programs with many threads pay for \
            that as well.",
        run: mprotect,
        ..FAMILY
    },
    Probe {
        name: "vm.fault_anon",
        bounds: [20.0, 1e5],
        depends_on_host: Some(HostDependence::Pages),
        summary: "first touch of anonymous memory, per page",
        timed: "a write to each page, in order, of a fresh private anonymous region of `pages` small pages; per page, \
            zero-filling included.",
        pitfalls: "with one page per region each fault also makes a page table. The region asks for no huge pages \
            (MADV_NOHUGEPAGE): a program that has them faults less often and longer.",
        run: fault_anon,
        ..FAMILY
    },
    Probe {
        lmbench: Some("Page Fault"),
        name: "vm.fault_file",
        bounds: [3.0, 1e5],
        depends_on_host: Some(HostDependence::Pages),
        summary: "first touch of a mapped file, per page",
        timed: "a read of each page, in order, of a fresh private mapping of a file of `pages` pages in the page \
            cache; per page.",
        pitfalls: "the kernel maps up to 16 pages around each fault (fault_around_bytes), so that only one in 16 pages \
            of the large region faults; with one page per region each fault also makes a page table.",
        run: fault_file,
        ..FAMILY
    },
    Probe {
        name: "vm.fault_cow",
        bounds: [30.0, 1e5],
        summary: "first write to a shared page, per page",
        timed: "a write to each page, in order, of a private mapping of a cached file whose pages have been read: \
            fault, new page, copy; per page.",
        pitfalls: "a write after fork takes the same path through the kernel.",
        variants: || rows("pages", [256]),
        run: fault_cow,
        ..FAMILY
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_add_up_to_all_operations_and_their_times_to_the_whole() {
        for (ops, most) in [(1, 64), (64, 64), (65, 64), (1000, 7)] {
            let mut done = 0;
            let ns = in_chunks(ops, most, |count| {
                assert!(count >= 1 && count <= most);
                done += count as u64;
                Ok(10 * count as u64)
            });
            assert_eq!((done, ns.unwrap()), (ops, 10 * ops));
        }
        assert!(in_chunks(5, 2, |_| Err(io::Error::other("no"))).is_err());
    }
}
