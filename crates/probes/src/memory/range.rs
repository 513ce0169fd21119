//! Memory to measure on, in pages of a known size.

use crate::call::{ANONYMOUS, READ_WRITE, new_mapping};
use crate::session::Stop;

/// The huge page of most architectures; where it is another, the alignment is merely not needed.
const HUGE: usize = 2 << 20;

/// Which pages a range is to be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Huge ones where the range is large enough and the system gives them.
    HugeIfAllowed,
    /// Huge ones, or none of it.
    Huge,
    /// Base pages.
    Small,
}

/// Fresh memory of a given size. Unmapped when dropped.
pub struct Range {
    at: *mut u64,
    mapped: usize,
    bytes: usize,
}

impl Range {
    /// Maps it; reading gives zeros. Whether the huge pages came can be asked once it is written:
    /// [`Range::require_huge`].
    pub fn map(bytes: usize, pages: Pages) -> Result<Range, Stop> {
        let bytes = bytes.next_multiple_of(4096);
        let mapped = if pages == Pages::Huge {
            bytes.next_multiple_of(HUGE)
        } else {
            bytes
        };
        let whole = if mapped >= HUGE {
            mapped.next_multiple_of(HUGE) + HUGE
        } else {
            mapped
        };
        let advice = if pages == Pages::Small {
            libc::MADV_NOHUGEPAGE
        } else {
            libc::MADV_HUGEPAGE
        };
        let begin = new_mapping(whole, READ_WRITE, ANONYMOUS | libc::MAP_NORESERVE, -1)?
            as *mut libc::c_void;
        // SAFETY: the mapping is new; the advice and the cutting off of the ends stay inside it.
        unsafe {
            let skipped = if whole > mapped {
                begin.cast::<u8>().align_offset(HUGE)
            } else {
                0
            };
            let at = begin.cast::<u8>().add(skipped);
            if skipped > 0 {
                libc::munmap(begin, skipped);
            }
            if whole > skipped + mapped {
                libc::munmap(at.add(mapped).cast(), whole - skipped - mapped);
            }
            // Refused only by kernels that have no huge pages at all.
            libc::madvise(at.cast(), mapped, advice);
            Ok(Range {
                at: at.cast(),
                mapped,
                bytes,
            })
        }
    }

    /// The memory.
    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: mapped for reading and writing and filled with zeros by the kernel, borrowed from `self` alone.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.bytes / size_of::<u64>()) }
    }

    /// Checks that the range, which must have been written, is in huge pages.
    pub fn require_huge(&self) -> Result<(), Stop> {
        let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")
            .or_else(|_| std::fs::read_to_string("/proc/self/smaps"));
        if huge_bytes(&rollup?) >= self.bytes {
            return Ok(());
        }
        let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
            .unwrap_or_default();
        Err(Stop::Skip(match setting.contains("[never]") {
            true => {
                "huge pages are turned off: /sys/kernel/mm/transparent_hugepage/enabled is never"
                    .to_owned()
            }
            false => "the kernel gave base pages where huge ones were asked for".to_owned(),
        }))
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no slice of it is left.
        unsafe { libc::munmap(self.at.cast(), self.mapped) };
    }
}

/// Bytes of a process's own memory that are in huge pages, from `smaps` or `smaps_rollup`.
fn huge_bytes(smaps: &str) -> usize {
    let kilobytes = |line: &str| {
        line.strip_prefix("AnonHugePages:")?
            .trim()
            .strip_suffix(" kB")?
            .parse::<usize>()
            .ok()
    };
    smaps.lines().filter_map(kilobytes).sum::<usize>() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(bytes: usize, pages: Pages) -> Range {
        Range::map(bytes, pages).unwrap_or_else(|stop| panic!("{stop:?}"))
    }

    #[test]
    fn a_large_range_begins_at_a_huge_page() {
        let mut range = map(4 << 20, Pages::HugeIfAllowed);
        assert_eq!(range.words().as_ptr() as usize % HUGE, 0);
        assert_eq!(range.words().len() * 8, 4 << 20);
    }

    #[test]
    fn a_range_in_huge_pages_lies_in_whole_ones_or_says_why_not() {
        let mut range = map(64 << 10, Pages::Huge);
        assert_eq!(
            (
                range.words().as_ptr() as usize % HUGE,
                range.words().len() * 8
            ),
            (0, 64 << 10)
        );
        range.words().fill(1);
        match range.require_huge() {
            Ok(()) => {}
            Err(Stop::Skip(sentence)) => assert!(sentence.contains("huge"), "{sentence}"),
            Err(stop) => panic!("{stop:?}"),
        }
    }

    #[test]
    fn huge_pages_are_summed_over_mappings() {
        assert_eq!(
            huge_bytes(
                "Rss: 9 kB\nAnonHugePages:      2048 kB\nx\nAnonHugePages:         0 kB\nAnonHugePages: 4096 kB\n"
            ),
            6 << 20
        );
        assert_eq!(huge_bytes("AnonHugePages: many kB\n"), 0);
    }
}
