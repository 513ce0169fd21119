//! The benchmark taken apart with the clock: allocating, touching, and freeing, each timed alone.
//!
//! The article had one clock around all three, and had to guess how the time divides. Several regions are taken through
//! each phase together, so that the two readings of the clock are a small share of the time between them.

use std::io;

use fingerpost_record::Params;

use super::pages::{LAB, base_pages_only, pages_of, per_pages, touch};
use crate::call::{ANONYMOUS, READ_WRITE, in_chunks, map, page_size, unmap};
use crate::probe::{Exercises, Probe, latency, table};
use crate::session::{Session, Stop, now_ns};

/// What is timed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Allocate,
    FreeUntouched,
    Touch,
    FreeTouched,
}

const NAMES: [(&str, Phase); 4] = [
    ("allocate", Phase::Allocate),
    ("free_untouched", Phase::FreeUntouched),
    ("touch", Phase::Touch),
    ("free_touched", Phase::FreeTouched),
];

/// Regions that exist at once, and the most pages that are touched in them together.
const REGIONS: usize = 16;
const TOUCHED: usize = 256;

/// Places for regions: far enough apart that each has page tables of its own and no two mappings merge, as for a
/// program that holds one region at a time.
struct Places {
    first: usize,
    stride: usize,
    bytes: usize,
    pages: usize,
    page: usize,
}

impl Places {
    fn find(pages: usize, bytes: usize, count: usize) -> io::Result<Places> {
        let page = page_size();
        // What one page of the lowest table maps: 2 MiB for pages of 4 KiB.
        let table = page * page / size_of::<usize>();
        let stride = (bytes + page).next_multiple_of(table);
        let room = stride * count + table;
        let start = map(0, room, libc::PROT_NONE, ANONYMOUS | libc::MAP_NORESERVE, -1)?;
        unmap(start, room)?;
        Ok(Places { first: start.next_multiple_of(table), stride, bytes, pages, page })
    }

    fn starts(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let (first, stride) = (self.first, self.stride);
        (0..count).map(move |i| first + i * stride)
    }

    fn allocate(&self, count: usize) -> io::Result<()> {
        for start in self.starts(count) {
            if map(start, self.bytes, READ_WRITE, ANONYMOUS, -1)? != start {
                return Err(io::Error::other("the kernel did not map memory where there was room for it"));
            }
        }
        Ok(())
    }

    fn touch(&self, count: usize) {
        self.starts(count).for_each(|start| touch(start, self.pages, self.page));
    }

    fn free(&self, count: usize) -> io::Result<()> {
        self.starts(count).try_for_each(|start| unmap(start, self.bytes))
    }

    /// Takes `count` regions through all phases, and gives the nanoseconds of one.
    fn cycle(&self, phase: Phase, count: usize) -> io::Result<u64> {
        let touched = matches!(phase, Phase::Touch | Phase::FreeTouched);
        let begin = now_ns();
        self.allocate(count)?;
        let allocated = now_ns();
        if touched {
            self.touch(count);
        }
        let reached = now_ns();
        self.free(count)?;
        let freed = now_ns();
        Ok(match phase {
            Phase::Allocate => allocated - begin,
            Phase::Touch => reached - allocated,
            Phase::FreeUntouched | Phase::FreeTouched => freed - reached,
        })
    }
}

fn run(s: &mut Session) -> Result<(), Stop> {
    let (pages, bytes) = pages_of(s.params())?;
    let wanted = s.word("phase", &NAMES.map(|(name, _)| name))?;
    let phase = NAMES.iter().find(|(name, _)| *name == wanted).map_or(Phase::Touch, |(_, phase)| *phase);
    let most =
        if matches!(phase, Phase::Touch | Phase::FreeTouched) { (TOUCHED / pages).clamp(1, REGIONS) } else { REGIONS };
    base_pages_only();
    let places = Places::find(pages, bytes, most)?;
    s.timed_batches(|ops| in_chunks(ops, most, |count| places.cycle(phase, count)))
}

fn variants() -> Vec<Params> {
    NAMES.iter().flat_map(|(name, _)| per_pages("phase", name, &[1, 2, 4, 16, 256])).collect()
}

/// The probes of this file.
pub static PROBES: &[Probe] = &[Probe {
    name: "zerofill.phase",
    summary: "one part of getting, touching and giving back mapped memory",
    timed: "of mmap, a write to each of `pages` base pages, and munmap, the `phase` alone: allocate, touch, \
        free_touched, or free_untouched.",
    pitfalls: "up to 16 regions are held at once, each in page tables of its own; the first touch of each makes its \
        page table.",
    lab: Some(LAB),
    variants,
    run,
    ..latency(&table::ZEROFILL, Exercises::Fault)
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_leaves_the_places_as_it_found_them() {
        let places = Places::find(3, 3 * page_size(), 4).unwrap();
        for (name, phase) in NAMES {
            for count in [1, 4] {
                let ns = places.cycle(phase, count).unwrap();
                assert!(ns > 0, "{name}");
            }
        }
        assert_eq!(places.starts(4).collect::<Vec<_>>().len(), 4);
        assert!(places.stride > places.bytes && places.first.is_multiple_of(places.page));
    }
}
