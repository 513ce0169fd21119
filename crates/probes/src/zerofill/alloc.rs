//! The article's benchmark: allocate and free, with and without touching.

use fingerpost_record::Params;

use super::api::{self, Brk, Malloc, Memory, Mmap};
use super::pages::{self, base_pages_only, pages_of, per_pages, touch, with_faults};
use crate::call::page_size;
use crate::probe::Probe;
use crate::session::{Session, Stop};

/// The page counts of the main way, and of the others.
const ALL_PAGES: [i64; 13] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
const SOME_PAGES: [i64; 6] = [1, 2, 4, 16, 256, 4096];

/// Chooses the way that the row names.
fn by_api(s: &mut Session, touched: bool) -> Result<(), Stop> {
    let (_, bytes) = pages_of(s.params())?;
    base_pages_only();
    match s.params().text("api").unwrap_or_default() {
        "mmap" => run(s, Mmap::plain(), touched),
        "brk" => run(s, Brk, touched),
        "malloc_small" => malloc(s, touched, bytes < api::MMAP_THRESHOLD),
        "malloc_large" => malloc(s, touched, bytes >= api::MMAP_THRESHOLD),
        "mremap" => {
            let memory = api::Mremap::new(bytes, page_size())?;
            run(s, memory, touched)
        }
        "memfd" => run(s, api::Memfd, touched),
        "hugetlb" => {
            let granule = huge_pages_for(
                bytes,
                &std::fs::read_to_string("/proc/meminfo").unwrap_or_default(),
            )
            .map_err(Stop::Skip)?;
            run(s, Mmap::huge(granule), touched)
        }
        other => Err(Stop::Fail(format!(
            "there is no way to get memory called “{other}” on this system"
        ))),
    }
}

fn malloc(s: &mut Session, touched: bool, on_its_side: bool) -> Result<(), Stop> {
    if !on_its_side {
        let kib = api::MMAP_THRESHOLD >> 10;
        return Err(Stop::Skip(format!(
            "so many pages are on the other side of malloc's threshold of {kib} KiB"
        )));
    }
    if !api::fix_malloc_threshold() {
        return Err(Stop::Skip(
            "needs a C library whose malloc has a threshold that can be set (glibc)".into(),
        ));
    }
    run(s, Malloc, touched)
}

/// The size of a reserved huge page when enough of them are free for `bytes`, else what to do.
fn huge_pages_for(bytes: usize, meminfo: &str) -> Result<usize, String> {
    let field = |name: &str| {
        let line = meminfo
            .lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_ascii_whitespace().next()?.parse::<usize>().ok()
    };
    let (Some(free), Some(kib)) = (
        field("HugePages_Free"),
        field("Hugepagesize").filter(|k| *k > 0),
    ) else {
        return Err("the kernel has no reserved huge pages (CONFIG_HUGETLBFS)".into());
    };
    let needed = bytes.div_ceil(kib << 10);
    if free < needed {
        let needed = needed.max(16);
        return Err(format!(
            "needs reserved huge pages, and {free} are free: as root, sysctl vm.nr_hugepages={needed}"
        ));
    }
    Ok(kib << 10)
}

/// The loop: get, touch every page or none, give back.
fn run(s: &mut Session, mut memory: impl Memory, touched: bool) -> Result<(), Stop> {
    let (pages, bytes) = pages_of(s.params())?;
    let (page, reached) = (page_size(), if touched { pages } else { 0 });
    let once = || {
        let at = memory.get(bytes)?;
        touch(at, reached, page);
        memory.give_back(at, bytes)
    };
    with_faults(s, pages, once).map(drop)
}

/// The rows: every page count for `mmap`, some for the others, those of each side of the threshold for malloc.
fn variants() -> Vec<Params> {
    let api = |name: &str, pages: &[i64]| per_pages("api", name, pages);
    let mut rows = api("mmap", &ALL_PAGES);
    rows.extend(api("brk", &SOME_PAGES));
    rows.extend(api("malloc_small", &[1, 2, 4, 16]));
    rows.extend(api("malloc_large", &[256, 4096]));
    rows.extend(api("mremap", &SOME_PAGES));
    rows.extend(api("memfd", &SOME_PAGES));
    rows.extend(api("hugetlb", &[256, 4096]));
    rows
}

/// What the probes of this file share.
const FAMILY: Probe = Probe {
    pitfalls: "malloc_small takes from the heap what it gave back before: after the first time its pages are neither \
        new nor zeroed. memfd makes and closes a file each time. hugetlb rounds up to huge pages.",
    variants,
    ..pages::FAMILY
};

/// The probes of this file.
pub static PROBES: &[Probe] = &[
    Probe {
        name: "zerofill.alloc",
        bounds: [1.0, 1e9],
        summary: "get memory and give it back untouched",
        timed: "getting `pages` base pages by `api` and giving them back; none is touched by the loop.",
        run: |s| by_api(s, false),
        ..FAMILY
    },
    Probe {
        name: "zerofill.touch",
        bounds: [1.0, 1e9],
        summary: "get memory, touch every page, give it back",
        timed: "getting `pages` base pages by `api`, a write to each in order, and giving them back: faults and \
            zero-filling included.",
        run: |s| by_api(s, true),
        ..FAMILY
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_huge_pages_are_used_only_where_enough_are_free() {
        let meminfo = |free: usize| {
            format!(
                "MemTotal: 100 kB\nHugePages_Total: 9\nHugePages_Free: {free}\nHugepagesize: 2048 kB\n"
            )
        };
        assert_eq!(huge_pages_for(4096, &meminfo(1)), Ok(2 << 20));
        assert_eq!(huge_pages_for(4096 * 4096, &meminfo(8)), Ok(2 << 20));
        assert!(
            huge_pages_for(4096 * 4096, &meminfo(7))
                .unwrap_err()
                .contains("vm.nr_hugepages=16")
        );
        assert!(
            huge_pages_for(4096, "MemTotal: 1 kB\n")
                .unwrap_err()
                .contains("CONFIG_HUGETLBFS")
        );
    }

    #[test]
    fn malloc_has_rows_only_on_its_side_of_the_threshold() {
        for row in variants() {
            let bytes = row.int("pages").unwrap() as usize * 4096;
            match row.text("api") {
                Some("malloc_small") => assert!(bytes < api::MMAP_THRESHOLD),
                Some("malloc_large") => assert!(bytes >= api::MMAP_THRESHOLD),
                _ => {}
            }
        }
    }
}
