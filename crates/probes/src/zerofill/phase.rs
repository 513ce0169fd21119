//! The benchmark taken apart with the clock: allocating, touching, and freeing, each timed alone.
//!
//! The article had one clock around all three, and had to guess how the time divides. Several regions are taken through
//! each phase together, so that the two readings of the clock are a small share of the time between them.

use std::io;

use fingerpost_record::Params;

use super::pages::{FAMILY, base_pages_only, pages_of, per_pages, touch};
use super::prefault::place;
use crate::call::{ANONYMOUS, READ_WRITE, in_chunks, map, page_size, table_reach, unmap};
use crate::probe::Probe;
use crate::session::{Session, Stop, now_ns};

/// The phases: the name, whether pages are touched, and which of the three times it is.
const PHASES: [(&str, bool, usize); 4] = [
    ("allocate", false, 0),
    ("free_untouched", false, 2),
    ("touch", true, 1),
    ("free_touched", true, 2),
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
        let (page, table) = (page_size(), table_reach());
        let stride = (bytes + page).next_multiple_of(table);
        Ok(Places {
            first: place(stride * count, table, 0)?,
            stride,
            bytes,
            pages,
            page,
        })
    }

    fn starts(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let (first, stride) = (self.first, self.stride);
        (0..count).map(move |i| first + i * stride)
    }

    fn allocate(&self, count: usize) -> io::Result<()> {
        for start in self.starts(count) {
            if map(start, self.bytes, READ_WRITE, ANONYMOUS, -1)? != start {
                return Err(io::Error::other(
                    "the kernel did not map memory where there was room for it",
                ));
            }
        }
        Ok(())
    }

    /// Takes `count` regions through all phases, and gives the nanoseconds of allocating, touching and freeing.
    fn cycle(&self, touched: bool, count: usize) -> io::Result<[u64; 3]> {
        let begin = now_ns();
        self.allocate(count)?;
        let allocated = now_ns();
        if touched {
            self.starts(count)
                .for_each(|start| touch(start, self.pages, self.page));
        }
        let reached = now_ns();
        self.starts(count)
            .try_for_each(|start| unmap(start, self.bytes))?;
        Ok([allocated - begin, reached - allocated, now_ns() - reached])
    }
}

fn run(s: &mut Session) -> Result<(), Stop> {
    let (pages, bytes) = pages_of(s.params())?;
    let wanted = s.word("phase", &PHASES.map(|phase| phase.0))?;
    let (_, touched, part) = PHASES
        .into_iter()
        .find(|phase| phase.0 == wanted)
        .unwrap_or(PHASES[2]);
    let most = if touched {
        (TOUCHED / pages).clamp(1, REGIONS)
    } else {
        REGIONS
    };
    base_pages_only();
    let places = Places::find(pages, bytes, most)?;
    s.timed_batches(|ops| in_chunks(ops, most, |count| Ok(places.cycle(touched, count)?[part])))
}

fn variants() -> Vec<Params> {
    PHASES
        .iter()
        .flat_map(|(name, ..)| per_pages("phase", name, &[1, 2, 4, 16, 256]))
        .collect()
}

/// The probes of this file.
pub static PROBES: &[Probe] = &[Probe {
    name: "zerofill.phase",
    bounds: [10.0, 1e9],
    summary: "one part of getting, touching and giving back mapped memory",
    timed: "of mmap, a write to each of `pages` base pages, and munmap, the `phase` alone: allocate, touch, \
        free_touched, or free_untouched.",
    pitfalls: "up to 16 regions are held at once, each in page tables of its own; the first touch of each makes its \
        page table.",
    variants,
    run,
    ..FAMILY
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_leaves_the_places_as_it_found_them() {
        let places = Places::find(3, 3 * page_size(), 4).unwrap();
        for (name, touched, part) in PHASES {
            for count in [1, 4] {
                let ns = places.cycle(touched, count).unwrap()[part];
                assert!(ns > 0, "{name}");
            }
        }
        assert_eq!(places.starts(4).collect::<Vec<_>>().len(), 4);
        assert!(places.stride > places.bytes && places.first.is_multiple_of(places.page));
    }
}
