//! What zeroing one page costs, by routes that do not depend on each other.

use fingerpost_record::{Estimate, Run};
use serde::Serialize;

use super::points;

/// One way to learn what zeroing costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Route {
    /// A word for programs: `fault_difference`, `kernel_samples`, `kernel_samples_seen`, `huge_pages`, `user_warm`,
    /// `user_cold`.
    pub key: &'static str,
    /// What it is.
    pub name: &'static str,
    /// Pages at a time.
    pub pages: i64,
    /// Nanoseconds per base page.
    pub per_page: Estimate,
}

/// A route that is a probe's rows: its key, its name, and the rows' probe, parameter and word.
type Rows = (&'static str, &'static str, [&'static str; 3]);

/// Those before the huge pages, the most trusted first, and those behind.
const FIRST: [Rows; 3] = [
    (
        "fault_difference",
        "timed in the kernel's faults: those that zero, less those that need not",
        ["zerofill.zeroing", "how", "memfd"],
    ),
    (
        "kernel_samples",
        "the kernel's samples of such faults: what zeroing makes more of them",
        ["zerofill.kernel_profile", "how", "memfd"],
    ),
    (
        "kernel_samples_seen",
        "the kernel's samples of anonymous faults, without what other work hides",
        ["zerofill.kernel_profile", "how", "touch"],
    ),
];
const LAST: [Rows; 2] = [
    (
        "user_warm",
        "cleared from user space, warm",
        ["zerofill.clear", "state", "warm"],
    ),
    (
        "user_cold",
        "cleared from user space, flushed from the caches",
        ["zerofill.clear", "state", "cold"],
    ),
];

/// All routes that the run has rows for, the most trusted first: the difference of two kinds of faults is the kernel's
/// own zeroing of base pages by the clock, and needs no rights; its samples see the same; huge pages are zeroed by the
/// same code, nearly without faults; user space uses its own code on pages warmer or colder than the kernel's.
pub fn routes(run: &Run) -> Vec<Route> {
    let of = |(key, name, [probe, parameter, word]): &Rows| {
        let rows = points::curve(run, probe, parameter, word).into_iter();
        rows.map(|p| Route {
            key,
            name,
            pages: p.pages,
            per_page: p.figure,
        })
        .collect::<Vec<_>>()
    };
    let mut list: Vec<Route> = FIRST.iter().flat_map(of).collect();
    list.extend(huge_pages(run));
    list.extend(LAST.iter().flat_map(of));
    list
}

/// The best route's figure for about so many pages: the same route's nearest count.
pub fn best(routes: &[Route], pages: i64) -> Option<&Route> {
    let first = routes.first()?;
    // Distance as a ratio: 16 is nearer to 64 than 256 is to 1.
    let far = |r: &&Route| ((r.pages as f64).ln() - (pages as f64).ln()).abs();
    routes
        .iter()
        .filter(|r| r.key == first.key)
        .min_by(|a, b| far(a).total_cmp(&far(b)))
}

/// Base pages in a huge page of 2 MiB.
const HUGE_PAGES: i64 = 512;

/// Whole huge pages: what mapping, zeroing and freeing them costs, less what the same costs when they are only read,
/// and so not zeroed (the kernel then maps its shared huge page of zeroes); per base page. Where that row is missing,
/// less mapping alone.
fn huge_pages(run: &Run) -> Option<Route> {
    let huge = points::curve(run, "zerofill.prefault", "how", "thp");
    let read = points::curve(run, "zerofill.prefault", "how", "thp_read");
    let bare = points::curve(run, "zerofill.alloc", "api", "mmap");
    // The least count that fills whole huge pages: the one most likely to stay within the last cache.
    let p = huge.iter().find(|p| p.pages % HUGE_PAGES == 0)?;
    let without = points::at(&read, p.pages).or(points::at(&bare, p.pages))?;
    let per_page = points::scale(points::subtract(p.figure, without), 1.0 / p.pages as f64);
    let name = "zeroed as huge pages: written, less only read";
    (per_page.value > 0.0).then_some(Route {
        key: "huge_pages",
        name,
        pages: p.pages,
        per_page,
    })
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{Machine, run_of};
    use super::*;

    #[test]
    fn independent_routes_come_to_the_known_cost() {
        let routes = routes(&run_of(&Machine::default(), 0.005));
        let of = |key: &str| routes.iter().find(|r| r.key == key).unwrap().per_page;
        for key in [
            "fault_difference",
            "kernel_samples",
            "kernel_samples_seen",
            "huge_pages",
        ] {
            assert!(
                (of(key).value / 100.0 - 1.0).abs() < 0.02,
                "{key}: {:?}",
                of(key)
            );
        }
        assert!((of("user_warm").value / 50.0 - 1.0).abs() < 0.02);
        assert_eq!(
            (
                best(&routes, 1).unwrap().key,
                best(&routes, 1).unwrap().pages
            ),
            ("fault_difference", 16)
        );
        assert_eq!(best(&routes, 4096).unwrap().pages, 4096);
    }

    #[test]
    fn without_a_route_the_next_is_taken() {
        let mut run = run_of(&Machine::default(), 0.005);
        run.measurements.retain(|m| m.probe != "zerofill.zeroing");
        assert_eq!(
            (
                best(&routes(&run), 4096).unwrap().key,
                best(&routes(&run), 4096).unwrap().pages
            ),
            ("kernel_samples", 256)
        );
        run.measurements
            .retain(|m| m.probe != "zerofill.kernel_profile");
        assert_eq!(best(&routes(&run), 16).unwrap().key, "huge_pages");
        run.measurements.retain(|m| m.probe != "zerofill.prefault");
        assert_eq!(best(&routes(&run), 16).unwrap().key, "user_warm");
        assert!(routes(&Run::default()).is_empty());
    }
}
