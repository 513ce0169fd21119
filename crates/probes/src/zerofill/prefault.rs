//! What the article asked for: several pages per fault, and mapping at once. Each against plain touching.

use std::hint::black_box;
use std::io;
use std::os::fd::AsRawFd;

use fingerpost_record::Params;

use super::pages::{FAMILY, base_pages_only, pages_of, per_pages, touch, with_faults};
use crate::call::{ANONYMOUS, READ_WRITE, check, map, page_size, table_reach, unmap};
use crate::probe::Probe;
use crate::session::{Session, Stop};
use crate::vm::cached_file;

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

/// A place for mappings at a multiple of `alignment`, and `offset` bytes behind it; the kernel is asked to map there
/// each time.
pub(super) fn place(bytes: usize, alignment: usize, offset: usize) -> io::Result<usize> {
    let room = bytes + offset + 2 * alignment;
    let start = map(
        0,
        room,
        libc::PROT_NONE,
        ANONYMOUS | libc::MAP_NORESERVE,
        -1,
    )?;
    unmap(start, room)?;
    Ok(start.next_multiple_of(alignment) + offset)
}

/// Gives advice about a mapping.
#[inline(always)]
fn advise(at: usize, bytes: usize, advice: i32) -> io::Result<()> {
    // SAFETY: the mapping is ours, and none of the advice used here changes its content.
    check(i64::from(unsafe {
        libc::madvise(at as *mut libc::c_void, bytes, advice)
    }))
    .map(drop)
}

/// A way to have pages mapped, as the loop needs it.
#[derive(Clone, Copy)]
pub(super) struct Way {
    /// Where to map.
    at: usize,
    /// How much to map.
    bytes: usize,
    /// Flags of mmap.
    flags: i32,
    /// Advice after mapping.
    advice: Option<i32>,
    /// Pages that the program writes afterwards: all of the row's, whatever the way, since a program wants to use them.
    pages: usize,
    /// Whether the program only reads, and so is given the shared page of zeroes.
    reads: bool,
}

impl Way {
    /// Whole huge pages for the row, at a place of their own.
    pub(super) fn huge(pages: usize, bytes: usize) -> Result<Way, Stop> {
        let size = transparent_huge_page().map_err(Stop::Skip)?;
        let whole = bytes.next_multiple_of(size);
        Ok(Way::in_large_pages(place(whole, size, 0)?, whole, pages))
    }

    /// Large pages for the row in so many bytes of this place.
    fn in_large_pages(at: usize, bytes: usize, pages: usize) -> Way {
        Way {
            at,
            bytes,
            flags: ANONYMOUS,
            advice: Some(libc::MADV_HUGEPAGE),
            pages,
            reads: false,
        }
    }

    /// Maps, has the pages faulted in, uses so many of them, and unmaps.
    #[inline(always)]
    pub(super) fn once(&self, page: usize) -> io::Result<()> {
        let at = map(self.at, self.bytes, READ_WRITE, self.flags, -1)?;
        if let Some(advice) = self.advice {
            advise(at, self.bytes, advice)?;
        }
        match self.reads {
            true => read(at, self.pages, page),
            false => touch(at, self.pages, page),
        }
        unmap(at, self.bytes)
    }
}

/// Reads one byte of every page.
#[inline(always)]
fn read(at: usize, pages: usize, page: usize) {
    for i in 0..pages {
        // SAFETY: callers pass memory of theirs that is at least so many pages long and may be read.
        black_box(unsafe { ((at + i * page) as *const u8).read_volatile() });
    }
}

fn run(s: &mut Session) -> Result<(), Stop> {
    let (pages, bytes) = pages_of(s.params())?;
    let how = s.word(
        "how",
        &[
            "touch",
            "populate",
            "madvise",
            "thp",
            "thp_read",
            "mthp",
            "file_touch",
            "file_populate",
        ],
    )?;
    let huge = table_reach();
    let plain = |flags, advice| -> io::Result<Way> {
        Ok(Way {
            at: place(bytes, huge, 0)?,
            bytes,
            flags: ANONYMOUS | flags,
            advice,
            pages,
            reads: false,
        })
    };
    if !how.contains("thp") {
        base_pages_only();
    }
    match how {
        "touch" => anonymous(s, plain(0, None)?, None),
        "populate" => anonymous(s, plain(libc::MAP_POPULATE, None)?, None),
        "madvise" => {
            let way = plain(0, Some(libc::MADV_POPULATE_WRITE))?;
            way.once(page_size()).map_err(|e| match e.raw_os_error() {
                Some(libc::EINVAL) => {
                    Stop::Skip("needs MADV_POPULATE_WRITE: Linux 5.14 or later".into())
                }
                _ => e.into(),
            })?;
            anonymous(s, way, None)
        }
        "thp" => {
            let way = Way::huge(pages, bytes)?;
            anonymous(s, way, Some(way.bytes / huge))
        }
        "thp_read" => {
            let zero_page = std::fs::read_to_string(format!("{THP}/use_zero_page"))
                .is_ok_and(|text| text.trim() == "1");
            if !zero_page {
                return Err(Stop::Skip(format!(
                    "the kernel gives readers no shared huge page of zeroes: as root, echo 1 > {THP}/use_zero_page"
                )));
            }
            let way = Way {
                reads: true,
                ..Way::huge(pages, bytes)?
            };
            anonymous(s, way, Some(way.bytes / huge))
        }
        "mthp" => multi_size(s, pages, bytes, huge),
        _ => file(s, pages, bytes, how == "file_populate"),
    }
}

/// Measures a way over anonymous memory. `most_faults`: more than these show that the kernel did not do as it was
/// asked.
fn anonymous(s: &mut Session, way: Way, most_faults: Option<usize>) -> Result<(), Stop> {
    let page = page_size();
    let faults = with_faults(s, way.pages, || way.once(page))?;
    match most_faults {
        Some(most) if faults > most as f64 + 0.5 => Err(Stop::Fail(format!(
            "asked for large pages, and {} pages took {faults} faults instead of {most}: no large page was free",
            way.pages
        ))),
        _ => Ok(()),
    }
}

/// Multi-size huge pages: the largest size below the huge page that is switched on. The region lies across no whole
/// huge page, so that none can take the place of the size asked for.
fn multi_size(s: &mut Session, pages: usize, bytes: usize, huge: usize) -> Result<(), Stop> {
    let size = multi_size_page(huge).map_err(Stop::Skip)?;
    let whole = bytes.next_multiple_of(size);
    if whole >= huge {
        return Err(Stop::Skip(format!(
            "a region of {} KiB would be given whole huge pages",
            whole >> 10
        )));
    }
    let way = Way::in_large_pages(place(whole, huge, size)?, whole, pages);
    anonymous(s, way, Some(bytes.div_ceil(size)))
}

/// The chosen word of a setting such as `always [madvise] never`.
fn chosen(text: &str) -> &str {
    text.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or("", |(word, _)| word)
}

/// The size of a transparent huge page where a program may ask for them, else what to do.
fn transparent_huge_page() -> Result<usize, String> {
    let read = |name: &str| std::fs::read_to_string(format!("{THP}/{name}")).unwrap_or_default();
    let size = read("hpage_pmd_size")
        .trim()
        .parse()
        .ok()
        .filter(|n: &usize| n.is_power_of_two());
    match (size, chosen(&read("enabled"))) {
        (None, _) => {
            Err("the kernel has no transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE)".into())
        }
        (Some(size), "always" | "madvise") => Ok(size),
        _ => Err(format!(
            "transparent huge pages are switched off: as root, echo madvise > {THP}/enabled"
        )),
    }
}

/// The largest multi-size huge page below a huge page that is switched on, else what to do.
fn multi_size_page(huge: usize) -> Result<usize, String> {
    let whole =
        chosen(&std::fs::read_to_string(format!("{THP}/enabled")).unwrap_or_default()).to_owned();
    let entries = std::fs::read_dir(THP).into_iter().flatten().flatten();
    let mut sizes: Vec<(usize, bool)> = entries
        .filter_map(|e| {
            let kib: usize = e
                .file_name()
                .to_str()?
                .strip_prefix("hugepages-")?
                .strip_suffix("kB")?
                .parse()
                .ok()?;
            let state = std::fs::read_to_string(e.path().join("enabled")).ok()?;
            Some((kib << 10, allows(chosen(&state), &whole)))
        })
        .filter(|(size, _)| *size < huge)
        .collect();
    sizes.sort_unstable();
    match (sizes.is_empty(), sizes.iter().rev().find(|(_, on)| *on)) {
        (true, _) => Err("needs multi-size huge pages: Linux 6.8 or later".into()),
        (false, Some((size, _))) => Ok(*size),
        (false, None) => Err(format!(
            "no multi-size huge page is switched on: as root, echo madvise > {THP}/hugepages-64kB/enabled"
        )),
    }
}

/// Whether a size's own setting, or the one that it inherits, lets a program ask for it.
fn allows(own: &str, whole: &str) -> bool {
    matches!(
        if own == "inherit" { whole } else { own },
        "always" | "madvise"
    )
}

/// A file in the page cache, mapped and read. A fault maps the pages around it too (fault-around), which the counter of
/// faults shows.
fn file(s: &mut Session, pages: usize, bytes: usize, populate: bool) -> Result<(), Stop> {
    let file = cached_file(s, bytes)?;
    let flags = libc::MAP_PRIVATE | if populate { libc::MAP_POPULATE } else { 0 };
    let (page, at) = (page_size(), place(bytes, table_reach(), 0)?);
    let once = || {
        let start = map(at, bytes, libc::PROT_READ, flags, file.as_raw_fd())?;
        // Nobody else has the file, so it is not cut short.
        read(start, pages, page);
        unmap(start, bytes)
    };
    with_faults(s, pages, once).map(drop)
}

fn variants() -> Vec<Params> {
    let how = |name: &&str, pages: &[i64]| per_pages("how", name, pages);
    let all = [1, 2, 4, 16, 64, 256, 512, 1024, 4096];
    let mut rows: Vec<Params> = ["touch", "populate", "madvise", "thp"]
        .iter()
        .flat_map(|name| how(name, &all))
        .collect();
    rows.extend(how(&"thp_read", &[512]));
    rows.extend(how(&"mthp", &[4, 16, 64, 256]));
    rows.extend(
        ["file_touch", "file_populate"]
            .iter()
            .flat_map(|name| how(name, &[1, 16, 256, 4096])),
    );
    rows
}

/// The probes of this file.
pub static PROBES: &[Probe] = &[Probe {
    name: "zerofill.prefault",
    bounds: [10.0, 1e9],
    summary: "map memory, have its pages faulted in one way or another, use them, unmap it",
    timed: "mmap of `pages` base pages, their faulting in by `how` (touch; MAP_POPULATE; MADV_POPULATE_WRITE; \
        MADV_HUGEPAGE with huge or \
            multi-size pages; for a cached file fault-around or MAP_POPULATE), one access to each page, munmap.",
    pitfalls: "thp maps whole huge pages also for fewer pages than one holds, as a program that asks for them must. \
        Whether a huge page is free when it is asked for depends on how fragmented memory is. thp_read only reads, and \
        is given a shared huge page of zeroes: what a huge page costs without its zeroing.",
    variants,
    run,
    ..FAMILY
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_word_of_a_setting_decides_also_by_inheritance() {
        assert_eq!(chosen("always inherit [madvise] never\n"), "madvise");
        assert_eq!(chosen("nothing chosen"), "");
        assert!(
            allows("madvise", "never")
                && allows("inherit", "always")
                && !allows("inherit", "never")
                && !allows("never", "always")
        );
    }

    #[test]
    fn a_place_is_aligned_and_free() {
        let page = page_size();
        let at = place(5 * page, 64 * page, page).unwrap();
        assert_eq!((at - page) % (64 * page), 0);
        assert_eq!(map(at, 5 * page, READ_WRITE, ANONYMOUS, -1).unwrap(), at);
        unmap(at, 5 * page).unwrap();
    }
}
