//! What is cheapest: ways to get memory, and ways to have it faulted in, per page count.
//!
//! A winner needs its whole interval below every other's. Where intervals overlap, all that may be the cheapest share
//! the lead.

use fingerpost_record::{Estimate, Run};
use serde::Serialize;

use super::points::{self, Point};

/// One contender at one page count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// Its name (`mmap`, `populate`).
    pub name: String,
    /// What it costs, in nanoseconds.
    pub cost: Estimate,
    /// How many times the cheapest's cost that is.
    pub times: f64,
}

/// The contenders at one page count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranking {
    /// Number of base pages.
    pub pages: i64,
    /// From the cheapest on.
    pub places: Vec<Place>,
    /// Those that may be the cheapest: one name is a winner.
    pub leaders: Vec<String>,
}

/// From how many pages on a contender beats plain touching.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Crossover {
    /// The contender.
    pub name: String,
    /// What it is compared with.
    pub against: String,
    /// The least page count at which its interval lies below the other's and from which on its value does, at every
    /// count measured; nothing where there is none.
    pub from_pages: Option<i64>,
    /// How many times cheaper it is at the largest page count measured.
    pub times_at_most: f64,
    /// That page count.
    pub most_pages: i64,
}

/// Whether a way of `zerofill.prefault` fills anonymous memory for writing: not a file's, and not the row that only
/// reads.
pub fn anonymous(how: &str) -> bool {
    !how.starts_with("file") && how != "thp_read"
}

/// Ranks a probe's rows by the words of a parameter, per page count at which two or more have figures.
pub fn rankings(run: &Run, probe: &str, key: &str, wanted: impl Fn(&str) -> bool) -> Vec<Ranking> {
    let curves: Vec<(&str, Vec<Point>)> = contenders(run, probe, key, wanted);
    let mut counts: Vec<i64> = curves
        .iter()
        .flat_map(|(_, points)| points.iter().map(|p| p.pages))
        .collect();
    counts.sort_unstable();
    counts.dedup();
    counts
        .into_iter()
        .filter_map(|pages| rank(pages, &curves))
        .collect()
}

fn contenders<'a>(
    run: &'a Run,
    probe: &str,
    key: &str,
    wanted: impl Fn(&str) -> bool,
) -> Vec<(&'a str, Vec<Point>)> {
    points::words(run, probe, key)
        .into_iter()
        .filter(|w| wanted(w))
        .map(|w| (w, points::curve(run, probe, key, w)))
        .collect()
}

fn rank(pages: i64, curves: &[(&str, Vec<Point>)]) -> Option<Ranking> {
    let mut costs: Vec<(&str, Estimate)> = curves
        .iter()
        .filter_map(|(name, points)| Some((*name, points::at(points, pages)?)))
        .collect();
    costs.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let best = costs.first().filter(|_| costs.len() > 1)?.1;
    let leaders = costs
        .iter()
        .filter(|(_, c)| c.low <= best.high)
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let place = |(name, cost): &(&str, Estimate)| Place {
        name: (*name).to_owned(),
        cost: *cost,
        times: cost.value / best.value,
    };
    Some(Ranking {
        pages,
        places: costs.iter().map(place).collect(),
        leaders,
    })
}

/// Each contender against `base`.
pub fn crossovers(
    run: &Run,
    probe: &str,
    key: &str,
    base: &str,
    wanted: impl Fn(&str) -> bool,
) -> Vec<Crossover> {
    let touching = points::curve(run, probe, key, base);
    contenders(run, probe, key, wanted)
        .into_iter()
        .filter(|(name, _)| *name != base)
        .filter_map(|(name, points)| {
            let pairs: Vec<(i64, Estimate, Estimate)> = points
                .iter()
                .filter_map(|p| Some((p.pages, p.figure, points::at(&touching, p.pages)?)))
                .collect();
            let (most_pages, ours, theirs) = *pairs.last()?;
            let winning = pairs
                .iter()
                .rev()
                .take_while(|(_, a, b)| a.value < b.value)
                .filter(|(_, a, b)| a.high < b.low)
                .last();
            Some(Crossover {
                name: name.to_owned(),
                against: base.to_owned(),
                from_pages: winning.map(|(pages, ..)| *pages),
                times_at_most: theirs.value / ours.value,
                most_pages,
            })
        })
        .collect()
}

/// Page counts in a row that have the same leaders: the first, the last, and who leads.
pub fn stretches(rankings: &[Ranking]) -> Vec<(i64, i64, Vec<String>)> {
    let mut list: Vec<(i64, i64, Vec<String>)> = Vec::new();
    for r in rankings {
        let mut leaders = r.leaders.clone();
        leaders.sort();
        match list.last_mut() {
            Some(last) if last.2 == leaders => last.1 = r.pages,
            _ => list.push((r.pages, r.pages, leaders)),
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{Machine, run_of};
    use super::*;

    #[test]
    fn known_costs_give_the_known_crossovers() {
        // populate: 300 + half the faults, so slower at 1 page and cheaper from 2 on (600 against 400 · 2 / 2 = 400
        // saved).
        let run = run_of(&Machine::default(), 0.005);
        let list = crossovers(&run, "zerofill.prefault", "how", "touch", anonymous);
        let from = |name: &str| list.iter().find(|c| c.name == name).unwrap().from_pages;
        assert_eq!(from("populate"), Some(2));
        // A huge page costs 51 200 ns however little of it is used: cheaper from 256 pages on (400 · 256 = 102 400),
        // not at 64.
        assert_eq!(from("thp"), Some(256));
        let files = crossovers(&run, "zerofill.prefault", "how", "file_touch", |n| {
            n.starts_with("file")
        });
        assert_eq!((files.len(), files[0].from_pages), (1, None));
    }

    #[test]
    fn a_winner_needs_its_interval_below_all_others() {
        let run = run_of(&Machine::default(), 0.005);
        let all = rankings(&run, "zerofill.prefault", "how", anonymous);
        assert_eq!(
            all.iter().find(|r| r.pages == 4096).unwrap().leaders,
            ["thp"]
        );
        assert_eq!(
            all.iter().find(|r| r.pages == 16).unwrap().leaders,
            ["populate"]
        );
        let noisy = rankings(
            &run_of(&Machine::default(), 0.8),
            "zerofill.prefault",
            "how",
            anonymous,
        );
        assert!(noisy.iter().find(|r| r.pages == 1).unwrap().leaders.len() > 1);
        let apis = rankings(&run, "zerofill.alloc", "api", |_| true);
        assert!(
            apis.iter()
                .all(|r| r.places[0].name == "mmap" && (r.places[1].times - 1.3).abs() < 0.05)
        );
    }

    #[test]
    fn stretches_join_neighbours_with_the_same_leaders() {
        let run = run_of(&Machine::default(), 0.002);
        let list = stretches(&rankings(&run, "zerofill.prefault", "how", anonymous));
        assert_eq!(list.first().unwrap().2, ["touch"]);
        // A huge page and half of 256 faults come to 54 151 and 53 051 ns, so populate leads there, and thp only
        // beyond.
        assert_eq!(list.last().unwrap(), &(512, 4096, vec!["thp".to_owned()]));
    }
}
