//! Two records of a running service: its load apart from its speed.
//!
//! How many requests came is the load, and no measure of how fast the service is. Where the load differs, what a
//! request takes differs too, by queueing: requests wait behind each other. So the growth of a request's time is split:
//! waiting behind other requests of the same service, which more load by itself makes longer, and everything else,
//! which it does not.

use fingerpost_diagnose::doing::Doing;
use fingerpost_diagnose::places::Place;
use fingerpost_record::paths::Leaf;
use fingerpost_record::{Blocker, Link, Params, Paths, Unit, WaitClass};
use serde::Serialize;

use crate::row::Row;
use crate::side::Side;
use crate::verdict::Verdict;

/// The workload under which a record has a service.
pub const WORKLOAD: &str = "service";
/// The rows of its load, and of how long a request takes.
pub const RATE: &str = "service.rate";
/// See [`RATE`].
pub const LATENCY: &str = "service.latency";
/// The parameter of [`LATENCY`] that says of which percentile it is.
pub const PERCENTILE: &str = "percentile";
/// From this difference on the load is another one. Queueing makes latency grow faster than load.
const SAME_LOAD: f64 = 0.05;
/// A part whose time changed by less than this share of a request's is not worth naming.
const WORTH_NAMING: f64 = 0.02;
/// Parts that are named.
const NAMED: usize = 5;

/// What the load of two records says about the difference in latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// As many requests came.
    Same,
    /// More came and each took longer, or fewer and each took less: queueing may make a part of the difference.
    MayExplain,
    /// Fewer came and each took longer, or more and each took less: no queueing makes that.
    CannotExplain,
}

/// The load of a service on two sides, and what of the difference in its requests' time it may explain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Load {
    /// Which service.
    pub params: Params,
    /// Requests a second, base and new.
    pub rate: [f64; 2],
    /// Requests under way at a time, base and new: rate times mean latency (Little's law).
    pub under_way: [f64; 2],
    /// What follows.
    pub kind: Kind,
    /// Seconds of a request, in the mean, waiting behind other requests of the same service, base and new.
    pub behind_others: [f64; 2],
    /// Seconds of everything else, base and new.
    pub otherwise: [f64; 2],
    /// What changed most, with seconds of a request on both sides.
    pub parts: Vec<Part>,
    /// All that in words.
    pub sentence: String,
}

/// A part of a request's time on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// What it goes to, and who had what was waited for.
    pub what: Doing,
    /// Seconds of a request, in the mean, base and new.
    pub seconds: [f64; 2],
}

/// Takes the rows of the load out of judging, and tells the load of each service that both sides have.
pub fn loads(rows: &mut [Row], base: &Side, new: &Side) -> Vec<Load> {
    let mut found = Vec::new();
    for at in (0..rows.len())
        .filter(|&at| rows[at].probe == RATE)
        .collect::<Vec<_>>()
    {
        let rate = [rows[at].base.value, rows[at].new.value];
        let params = rows[at].params.clone();
        let of = |side: &'_ Side| {
            side.steps
                .paths
                .iter()
                .find(|p| p.workload == WORKLOAD && p.params == params)
                .cloned()
        };
        let load = Load::of(params.clone(), rate, of(base).zip(of(new)));
        let same = load.kind == Kind::Same;
        rows[at].verdict = if same {
            Verdict::Same
        } else {
            Verdict::Unresolved
        };
        let note = if same {
            "the load, which is the same on both sides"
        } else {
            "the load: what clients asked, not how fast the service is"
        };
        rows[at].note = Some(note.into());
        if load.kind == Kind::MayExplain {
            let of_it = |row: &&mut Row| {
                row.probe == LATENCY
                    && params
                        .iter()
                        .all(|(key, value)| row.params.get(key) == Some(value))
            };
            let with = if load.rate[1] > load.rate[0] {
                "with more load"
            } else {
                "with less load"
            };
            rows.iter_mut()
                .filter(of_it)
                .for_each(|row| row.note = Some(with.into()));
        }
        found.push(load);
    }
    found
}

impl Load {
    /// How many times as long requests take on the new side, by what was followed; nothing where that is not known.
    pub(crate) fn slower(&self) -> Option<f64> {
        let mean = |side: usize| self.under_way[side] / self.rate[side];
        Some(mean(1) / mean(0)).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
    }

    fn of(params: Params, rate: [f64; 2], paths: Option<(Paths, Paths)>) -> Load {
        let sides = paths.as_ref().map(|(base, new)| [base, new]);
        let mean = sides.map(|sides| sides.map(|p| p.latency.mean));
        // What was followed tells both the rate and the latency; of the rows only the rate is known.
        let followed = |p: &Paths| p.requests() / p.seconds;
        let rate = sides
            .map(|sides| sides.map(followed))
            .filter(|r| r.iter().all(|r| r.is_finite() && *r > 0.0))
            .unwrap_or(rate);
        let sum = |of: fn(&Leaf) -> bool| {
            sides.map_or([0.0; 2], |sides| {
                sides.map(|p| {
                    p.leaves
                        .iter()
                        .filter(|l| of(l))
                        .map(|l| l.all.seconds)
                        .sum()
                })
            })
        };
        let behind_others = sum(is_behind_others);
        let otherwise = mean.map_or([0.0; 2], |mean| {
            [mean[0] - behind_others[0], mean[1] - behind_others[1]]
        });
        let change = rate[1] / rate[0] - 1.0;
        let kind = match mean {
            _ if change.abs() <= SAME_LOAD => Kind::Same,
            Some([base, new]) if (new > base) != (change > 0.0) => Kind::CannotExplain,
            _ => Kind::MayExplain,
        };
        let under_way = mean.map_or([0.0; 2], |mean| [rate[0] * mean[0], rate[1] * mean[1]]);
        let parts = sides.map_or_else(Vec::new, changed_parts);
        let mut load = Load {
            params,
            rate,
            under_way,
            kind,
            behind_others,
            otherwise,
            parts,
            sentence: String::new(),
        };
        load.sentence = load.words(mean);
        load
    }

    fn words(&self, mean: Option<[f64; 2]>) -> String {
        let [from, to] = self.rate.map(|rate| Unit::PerSecond.format(rate));
        let change = self.rate[1] / self.rate[0] - 1.0;
        let [base, new] = self.under_way;
        let at_a_time = mean.map_or(String::new(), |_| {
            format!("; {base:.1} and {new:.1} requests were under way at a time")
        });
        let differed = |way: &str| {
            format!(
                "The load differed: {from} and {to}, {:.0} % {way}{at_a_time}.",
                change.abs() * 100.0
            )
        };
        let way = if change > 0.0 { "more" } else { "less" };
        match (self.kind, mean) {
            (Kind::Same, _) => format!("The load was the same ({from} and {to}{at_a_time})."),
            (_, None) => format!(
                "{} What a request takes depends on it: compare records of the same load where you can.",
                differed(way)
            ),
            (Kind::CannotExplain, Some(_)) => {
                let reason = if change < 0.0 {
                    "Fewer requests make no request wait longer: the service is slower, and clients that wait for each \
                     answer ask less often for it."
                } else {
                    "More requests make no request faster: the service is faster, and clients that wait for each \
                     answer ask more often for it."
                };
                format!("{} {reason}", differed(way))
            }
            (Kind::MayExplain, Some(mean)) => format!("{} {}", differed(way), self.split(mean)),
        }
    }

    /// How much of the change more or less load may make.
    fn split(&self, mean: [f64; 2]) -> String {
        let difference = |of: [f64; 2]| of[1] - of[0];
        let time = |seconds: f64| Unit::Nanoseconds.format(seconds.abs() * 1e9);
        let (whole, behind, rest) = (
            difference(mean),
            difference(self.behind_others),
            difference(self.otherwise),
        );
        let (more, much, slower) = if whole > 0.0 {
            ("longer", "more", "slower")
        } else {
            ("less", "less", "faster")
        };
        let head = format!("Of the {} that a request takes {more}", time(whole));
        let by_load = format!(
            "waiting behind other requests of the service, which {much} load by itself may make"
        );
        // A part that went the other way makes nothing of the change.
        match (behind * whole > 0.0, rest * whole > 0.0) {
            (true, true) => format!(
                "{head}, {} is {by_load}; {} is not, and by that the service itself, or what it depends on, is \
                 {slower}.",
                time(behind),
                time(rest)
            ),
            (true, false) => {
                format!(
                    "{head}, all is {by_load}: nothing shows a service that is {slower} at the same load."
                )
            }
            _ => format!(
                "{head}, none is {by_load}: the service itself, or what it depends on, is {slower}."
            ),
        }
    }
}

/// Whether this is waiting behind other requests of the same service, which becomes longer with more of them: for its
/// own thread, for a CPU that it or its clients have, for a lock, for its own I/O.
fn is_behind_others(leaf: &Leaf) -> bool {
    let queued = leaf.has(Link::Queue);
    let own_disk = leaf.class == WaitClass::DiskQueue && leaf.blocker == Some(Blocker::Server);
    queued
        || own_disk
        || matches!(
            Place::of(leaf),
            Place::Lock | Place::CpuServer | Place::CpuClient
        )
}

/// What changed most, by what it is and who had it.
fn changed_parts(sides: [&Paths; 2]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (side, paths) in sides.into_iter().enumerate() {
        for leaf in &paths.leaves {
            let what = Doing::of_leaf(leaf);
            let at = parts
                .iter()
                .position(|p| p.what == what)
                .unwrap_or_else(|| {
                    parts.push(Part {
                        what,
                        seconds: [0.0; 2],
                    });
                    parts.len() - 1
                });
            parts[at].seconds[side] += leaf.all.seconds;
        }
    }
    let change = |p: &Part| (p.seconds[1] - p.seconds[0]).abs();
    let least = WORTH_NAMING * sides[0].latency.mean.min(sides[1].latency.mean);
    parts.retain(|p| change(p) > least);
    parts.sort_by(|a, b| change(b).total_cmp(&change(a)));
    parts.truncate(NAMED);
    parts
}

#[cfg(test)]
mod tests {
    use fingerpost_record::descriptor::{Descriptor, table};
    use fingerpost_record::fixture::followed;
    use fingerpost_record::{Better, Estimate, Layer, Run};

    use super::*;

    fn row(base: f64, new: f64) -> Row {
        let estimate = |value: f64| Estimate {
            value,
            low: value,
            high: value,
            confidence: 0.95,
        };
        Row {
            probe: RATE.into(),
            descriptor: Descriptor::of(&table::OTHER),
            params: Params::new().with("name", "shop"),
            unit: Unit::PerSecond,
            better: Better::Higher,
            base: estimate(base),
            new: estimate(new),
            ratio: None,
            pairs: Vec::new(),
            verdict: Verdict::Slower,
            real: true,
            untrusted: false,
            note: None,
            counters: Vec::new(),
        }
    }

    /// A side of which a request works, waits behind others, and waits for a CPU that a neighbour has, in microseconds.
    fn side(work: f64, behind: f64, neighbour: f64) -> Side {
        let rows = [
            (
                Layer::Application,
                "server user code",
                "",
                &[][..],
                [work; 3],
            ),
            (
                Layer::Scheduler,
                "waiting for a CPU",
                "the server itself",
                &[][..],
                [behind; 3],
            ),
            (
                Layer::Scheduler,
                "waiting for a CPU",
                "stress",
                &[][..],
                [neighbour; 3],
            ),
        ];
        let mut paths = followed::paths(&rows, 0.0);
        (paths.workload, paths.params) = (WORKLOAD.into(), Params::new().with("name", "shop"));
        Side::of(&[Run {
            paths: vec![paths],
            ..Run::default()
        }])
    }

    fn load(rate: [f64; 2], base: &Side, new: &Side) -> Load {
        let at = |side: &Side, rate: f64| {
            let mut side = side.clone();
            let paths = &mut side.steps.paths[0];
            (paths.followed, paths.cut, paths.seconds) = (rate as u64, 0, 1.0);
            side
        };
        loads(
            &mut [row(rate[0], rate[1])],
            &at(base, rate[0]),
            &at(new, rate[1]),
        )
        .remove(0)
    }

    #[test]
    fn another_load_is_no_slower_service() {
        let nothing = Side::default();
        let mut rows = [row(1000.0, 700.0)];
        assert!(
            loads(&mut rows, &nothing, &nothing)[0]
                .sentence
                .contains("30 % less")
        );
        assert_eq!(rows[0].verdict, Verdict::Unresolved);
        let mut rows = [row(1000.0, 990.0)];
        assert!(
            loads(&mut rows, &nothing, &nothing)[0]
                .sentence
                .contains("the same")
        );
        assert_eq!(rows[0].verdict, Verdict::Same);
        assert!(
            loads(
                &mut [Row {
                    probe: "web.throughput".into(),
                    ..row(1.0, 2.0)
                }],
                &nothing,
                &nothing
            )
            .is_empty()
        );
    }

    #[test]
    fn more_load_and_a_slower_service_are_told_apart() {
        let found = load(
            [1000.0, 1500.0],
            &side(100.0, 10.0, 0.0),
            &side(100.0, 210.0, 50.0),
        );
        assert_eq!(found.kind, Kind::MayExplain);
        let change = |of: [f64; 2]| ((of[1] - of[0]) * 1e6).round();
        assert_eq!(
            (change(found.behind_others), change(found.otherwise)),
            (200.0, 50.0)
        );
        assert!(
            found.sentence.contains("50 % more") && found.sentence.contains("50.00 µs is not"),
            "{}",
            found.sentence
        );
        let whom = |at: usize| &found.parts[at].what.whom[..];
        assert_eq!(
            (whom(0), whom(1)),
            (&[Blocker::Server][..], &[Blocker::thread("stress")][..])
        );
        assert!(
            (found.under_way[0] - 0.11).abs() < 1e-9,
            "{:?}",
            found.under_way
        );
    }

    #[test]
    fn fewer_requests_that_take_longer_are_the_services() {
        let found = load(
            [1000.0, 500.0],
            &side(100.0, 0.0, 0.0),
            &side(200.0, 0.0, 0.0),
        );
        assert_eq!(found.kind, Kind::CannotExplain);
        assert!(
            found.sentence.contains("the service is slower"),
            "{}",
            found.sentence
        );
        let found = load(
            [500.0, 1000.0],
            &side(200.0, 0.0, 0.0),
            &side(100.0, 0.0, 0.0),
        );
        assert!(
            found.sentence.contains("the service is faster"),
            "{}",
            found.sentence
        );
    }

    #[test]
    fn less_load_is_no_faster_service() {
        let found = load(
            [1000.0, 500.0],
            &side(100.0, 100.0, 0.0),
            &side(100.0, 0.0, 0.0),
        );
        assert_eq!(found.kind, Kind::MayExplain);
        assert!(
            found.sentence.contains("all is waiting behind")
                && found.sentence.contains("nothing shows"),
            "{}",
            found.sentence
        );
    }
}
