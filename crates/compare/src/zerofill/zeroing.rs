//! What zeroing one page costs, by routes that do not depend on each other.

use fingerpost_record::{Estimate, Run};
use serde::Serialize;

use super::points;

/// One way to learn what zeroing costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Route {
    /// A word for programs: `kernel_samples`, `huge_pages`, `user_warm`, `user_cold`.
    pub key: &'static str,
    /// What it is.
    pub name: &'static str,
    /// Pages at a time.
    pub pages: i64,
    /// Nanoseconds per base page.
    pub per_page: Estimate,
}

/// All routes that the run has rows for, the most trusted first: the kernel's own samples see the very zeroing in question; huge pages
/// are zeroed by the same code, nearly without faults; user space uses its own code on pages warmer or colder than the kernel's.
pub fn routes(run: &Run) -> Vec<Route> {
    let mut list = Vec::new();
    for p in points::curve(run, "zerofill.kernel_profile", "how", "touch") {
        list.push(Route {
            key: "kernel_samples",
            name: "the kernel's samples in its page-clearing, stores included",
            pages: p.pages,
            per_page: p.figure,
        });
    }
    list.extend(huge_pages(run));
    for (key, word, name) in
        [("user_warm", "warm", "cleared from user space, warm"), ("user_cold", "cold", "cleared from user space, flushed from the caches")]
    {
        let of = points::curve(run, "zerofill.clear", "state", word);
        list.extend(of.iter().map(|p| Route { key, name, pages: p.pages, per_page: p.figure }));
    }
    list
}

/// The best route's figure for about so many pages: the same route's nearest count.
pub fn best(routes: &[Route], pages: i64) -> Option<&Route> {
    let first = routes.first()?;
    // Distance as a ratio: 16 is nearer to 64 than 256 is to 1.
    let far = |r: &&Route| ((r.pages as f64).ln() - (pages as f64).ln()).abs();
    routes.iter().filter(|r| r.key == first.key).min_by(|a, b| far(a).total_cmp(&far(b)))
}

/// Base pages in a huge page of 2 MiB.
const HUGE_PAGES: i64 = 512;

/// Whole huge pages: what mapping, zeroing and freeing them costs, less what the same costs when they are only read, and so not zeroed
/// (the kernel then maps its shared huge page of zeroes); per base page. Where that row is missing, less mapping alone.
fn huge_pages(run: &Run) -> Option<Route> {
    let huge = points::curve(run, "zerofill.prefault", "how", "thp");
    let read = points::curve(run, "zerofill.prefault", "how", "thp_read");
    let bare = points::curve(run, "zerofill.alloc", "api", "mmap");
    // The least count that fills whole huge pages: the one most likely to stay within the last cache.
    let p = huge.iter().find(|p| p.pages % HUGE_PAGES == 0)?;
    let without = points::at(&read, p.pages).or(points::at(&bare, p.pages))?;
    let per_page = points::scale(points::subtract(p.figure, without), 1.0 / p.pages as f64);
    let name = "zeroed as huge pages: written, less only read";
    (per_page.value > 0.0).then_some(Route { key: "huge_pages", name, pages: p.pages, per_page })
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{Machine, run_of};
    use super::*;

    #[test]
    fn independent_routes_come_to_the_known_cost() {
        let routes = routes(&run_of(&Machine::default(), 0.005));
        let of = |key: &str| routes.iter().find(|r| r.key == key).unwrap().per_page;
        for key in ["kernel_samples", "huge_pages"] {
            assert!((of(key).value / 100.0 - 1.0).abs() < 0.02, "{key}: {:?}", of(key));
        }
        assert!((of("user_warm").value / 50.0 - 1.0).abs() < 0.02);
        assert_eq!((best(&routes, 1).unwrap().key, best(&routes, 1).unwrap().pages), ("kernel_samples", 16));
        assert_eq!(best(&routes, 4096).unwrap().pages, 256);
    }

    #[test]
    fn without_samples_the_next_route_is_taken() {
        let mut run = run_of(&Machine::default(), 0.005);
        run.measurements.retain(|m| m.probe != "zerofill.kernel_profile");
        assert_eq!(best(&routes(&run), 16).unwrap().key, "huge_pages");
        run.measurements.retain(|m| m.probe != "zerofill.prefault");
        assert_eq!(best(&routes(&run), 16).unwrap().key, "user_warm");
        assert!(routes(&Run::default()).is_empty());
    }
}
