//! The latency of a load: a chase through a range, one load per line in random order, each load giving the address of
//! the next.

use std::hint::black_box;

use fingerpost_record::Params;

use super::range::{Pages, Range};
use crate::probe::Probe;
use crate::session::{Session, Stop};

/// Loads in one turn of the loop.
const UNROLLED: usize = 32;

/// The page that a stride may step over without coming back to the same lines of a cache.
const PAGE: usize = 4096;

/// The cache line of most processors.
const LINE: usize = 64;

/// The largest range of a sweep, where there is memory enough.
const LARGEST: i64 = 1 << 30;

/// The most lines that are linked in the order of the chain: 16 MiB of them.
const IN_ORDER: usize = 1 << 18;

/// The lines that are read before a chase where there are more, and the share of all that are read where there are
/// many: four to a page of 64.
const WARM_LINES: usize = 1 << 20;
const WARM_SHARE: usize = 16;

/// Where the loads of a range lie: line `i` at `i` strides.
///
/// Lines one page apart would all fall into the same few sets of the first-level cache, and what would be measured is
/// its associativity. So with a stride of a page or more each line lies one line further into its page than the one
/// before.
#[derive(Clone, Copy)]
struct Lines {
    stride: usize,
    count: usize,
}

impl Lines {
    fn offset(&self, line: usize) -> usize {
        line * self.stride
            + if self.stride >= PAGE {
                line * LINE % PAGE
            } else {
                0
            }
    }
}

/// A random cyclic permutation of so many elements (Sattolo, 1986): each element's successor, all on one cycle.
fn cycle(count: usize, mut random: impl FnMut() -> u64) -> Vec<u32> {
    let mut next: Vec<u32> = (0..count as u32).collect();
    for i in (1..count).rev() {
        // The upper half of a product is uniform enough below 2³² elements, and cheaper than a division.
        let j = ((u128::from(random()) * i as u128) >> 64) as usize;
        next.swap(i, j);
    }
    next
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
fn generator(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Writes into each line the address of its successor, and leaves caches and page tables as warm as a walk along the
/// chain does.
///
/// Up to [`IN_ORDER`] lines are written in the order of the chain, which is such a walk. For more that would take as
/// long as all the rest: they are written in the order of addresses, which leaves the page tables cold, since each of
/// their lines was needed once and long ago, and the last part of the range alone in the caches. A chase of some
/// milliseconds would spend itself on warming them: 256 MiB in base pages cost a tenth more a load in the first 20 ms
/// than ever after. So all lines, or where there are many enough to meet nearly every page, are then read in a random
/// order, each load independent of the others and so ten times as fast as following the chain.
fn link(words: &mut [u64], lines: Lines, next: &[u32]) {
    let base = words.as_mut_ptr() as u64;
    let mut write = |line: usize| {
        words[lines.offset(line) / 8] = base + lines.offset(next[line] as usize) as u64
    };
    if lines.count <= IN_ORDER {
        let mut line = 0;
        for _ in 0..lines.count {
            write(line);
            line = next[line] as usize;
        }
    } else {
        (0..lines.count).for_each(write);
        let order = next.iter().take(WARM_LINES.max(lines.count / WARM_SHARE));
        black_box(order.fold(0, |all, line| all ^ words[lines.offset(*line as usize) / 8]));
    }
}

/// Follows the chain for `turns` times [`UNROLLED`] loads.
///
/// # Safety
/// `at` must be a line of a chain made by [`link`] whose range is still mapped.
#[inline(never)]
unsafe fn chase(mut at: *const u64, turns: u64) -> *const u64 {
    for _ in 0..turns {
        // The compiler unrolls the inner loop, and can leave out no load: each gives the address of the next.
        for _ in 0..UNROLLED {
            // SAFETY: every line holds the address of a line.
            at = unsafe { *at } as *const u64;
        }
    }
    at
}

fn latency(s: &mut Session) -> Result<(), Stop> {
    let size = s.int("size", PAGE as i64)? as usize;
    let stride = s.int("stride", 8)? as usize;
    let pages = match s.word("pages", &["small", "huge"])? {
        "huge" => Pages::Huge,
        _ => Pages::Small,
    };
    let lines = Lines {
        stride,
        count: size / stride,
    };
    if size as u64 > memory_limit() / 2 {
        let mib = size >> 20;
        return Err(Stop::Skip(format!(
            "needs {mib} MiB of memory, which is more than half of what there is"
        )));
    }
    if !stride.is_multiple_of(8) || lines.count < 2 || lines.count > u32::MAX as usize {
        return Err(Stop::Fail(format!(
            "a range of {size} bytes cannot be walked in strides of {stride}: take a multiple of 8, two or more"
        )));
    }
    let mut range = Range::map(size, pages)?;
    let next = cycle(lines.count, generator(u64::from(std::process::id())));
    link(range.words(), lines, &next);
    if pages == Pages::Huge {
        range.require_huge()?;
    }
    drop(next);
    let mut at = range.words().as_ptr();
    s.work_per_op(UNROLLED as u64);
    s.batches(|turns| {
        // SAFETY: the chain is linked, and its range lives until the end of this function.
        at = black_box(unsafe { chase(at, turns) });
        Ok(())
    })
}

/// Memory that this process may use: the machine's, or the control group's limit.
fn memory_limit() -> u64 {
    use fingerpost_sys::{cgroup::Hierarchies, procfs::Paths, procfs::memory::Meminfo};
    let paths = Paths::system();
    let total = Meminfo::parse(&paths.read("proc/meminfo").unwrap_or_default())
        .map_or(u64::MAX, |info| info.total);
    Hierarchies::of_self(&paths)
        .limits()
        .memory
        .map_or(total, |limit| limit.min(total))
}

fn row(size: i64, stride: i64, pages: &str) -> Params {
    Params::new()
        .with("size", size)
        .with("stride", stride)
        .with("pages", pages)
}

fn primitives() -> Vec<Params> {
    [16 << 10, 512 << 10, 64 << 20]
        .into_iter()
        .map(|size| row(size, LINE as i64, "small"))
        .collect()
}

/// The laboratory's rows: the caches by a chase over lines, the translation buffers by one line per page, each in both
/// kinds of pages.
pub fn sweep() -> Vec<Params> {
    let most = LARGEST.min((memory_limit() / 8) as i64);
    let lines = LINE as i64;
    // Finer where the first two caches of any processor end.
    let steps = |k: i64| {
        if (14..22).contains(&k) {
            vec![4, 5, 6, 7]
        } else {
            vec![4, 6]
        }
    };
    let curve = (12..=30)
        .flat_map(|k| steps(k).into_iter().map(move |part: i64| part << (k - 2)))
        .filter(|size| *size <= most);
    let every_other = (12..=30)
        .step_by(2)
        .map(|k| 1i64 << k)
        .filter(|size| *size <= most);
    let pages = [
        16, 32, 48, 64, 96, 128, 256, 512, 1024, 1536, 2048, 3072, 4096, 8192, 16384,
    ]
    .map(|count: i64| count * PAGE as i64);
    let mut rows: Vec<Params> = curve.map(|size| row(size, lines, "huge")).collect();
    rows.extend(
        every_other
            .map(|size| row(size, lines, "small"))
            .filter(|row| !primitives().contains(row)),
    );
    for kind in ["small", "huge"] {
        rows.extend(
            pages
                .iter()
                .filter(|size| **size <= most)
                .map(|size| row(*size, PAGE as i64, kind)),
        );
    }
    rows
}

/// The probe.
pub const LATENCY: Probe = Probe {
    name: "memory.latency",
    bounds: [0.2, 5e3],
    lmbench: Some("lat_mem_rd"),
    summary: "one load that waits for the one before",
    timed: "a load whose address the load before it gave, along a random cycle through one word of each `stride` bytes \
        of a range of `size` bytes; with a stride of a page or more, each word one line further into its page. Before \
        it, caches and page tables are made as warm as such a walk leaves them.",
    pitfalls: "which physical pages a process is given decides how its lines share a cache: beyond the first-level \
        caches processes differ by \
               some percent, in base pages by ten and more, which the interval over processes holds. In base pages \
               (`pages=small`) a large range costs address translation too; the difference to huge pages is that cost.",
    variants: primitives,
    run: latency,
    ..super::MEMORY
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_permutation_is_one_cycle_through_all() {
        for count in [2, 3, 64, 1000] {
            let next = cycle(count, generator(7));
            let mut at = 0;
            let steps = (1..=count).find(|_| {
                at = next[at] as usize;
                at == 0
            });
            assert_eq!(steps, Some(count));
        }
    }

    #[test]
    fn the_chain_meets_every_line_once_and_comes_back() {
        for (size, stride) in [(4096, 64), (1 << 20, 64), (1 << 20, 4096), (3 << 18, 4096)] {
            let lines = Lines {
                stride,
                count: size / stride,
            };
            let mut words = vec![0u64; size / 8];
            link(&mut words, lines, &cycle(lines.count, generator(1)));
            assert_eq!(words.iter().filter(|w| **w != 0).count(), lines.count);
            let begin = words.as_ptr();
            // SAFETY: the chain is linked in `words`, which lives.
            let end = unsafe { chase(begin, lines.count as u64) };
            // So many turns are a whole number of cycles.
            assert_eq!(begin, end);
        }
    }

    #[test]
    fn lines_a_page_apart_do_not_share_a_cache_set() {
        let lines = Lines {
            stride: PAGE,
            count: 64,
        };
        let sets: std::collections::BTreeSet<usize> =
            (0..64).map(|i| lines.offset(i) / LINE % 64).collect();
        assert_eq!(sets.len(), 64);
        assert!((0..64).all(|i| lines.offset(i) / PAGE == i));
    }

    #[test]
    fn the_sweep_goes_from_a_page_to_what_memory_allows() {
        let rows = sweep();
        let sizes = |stride: i64, pages: &str| -> Vec<i64> {
            rows.iter()
                .filter(|r| r.int("stride") == Some(stride) && r.text("pages") == Some(pages))
                .filter_map(|r| r.int("size"))
                .collect()
        };
        assert_eq!(sizes(64, "huge")[..3], [4096, 6144, 8192]);
        assert!(
            sizes(64, "huge")
                .iter()
                .all(|s| *s as u64 <= memory_limit() / 8)
        );
        assert_eq!(sizes(4096, "small"), sizes(4096, "huge"));
        assert!(primitives().iter().all(|row| !rows.contains(row)));
    }
}
