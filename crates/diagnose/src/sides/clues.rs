//! What the two runs know about one workload step: totals of its observers, and facts of the hosts.
//!
//! Observers name their readings; [`Clues`] looks one up by the names below, over all
//! observers of the step, and tells it only where both sides have it and had it in the same way; with `fast` the side
//! on which a transaction takes less time and `slow` the other.
//!
//! # Vocabulary
//!
//! Readings that signs look for among a step's observations: the observers' names, over the whole step. Any may be
//! absent, and then its rule says so. Those of `cpu`, `others`, `disk`, `memory`, `network`, `pressure` and `limits`
//! speak of the machine and the server's control group, `server.*` and `client.*` of the threads on either side. Which a
//! cause needs, its row says.
//!
//! Where requests were followed on both sides, the places where they spent their time tell the causes of waiting for a
//! CPU, the disk, a lock, a peer and a timer apart, and the readings do so only in records without. What "server user
//! code" has more and ticks count as the kernel's is a part of the kernel's ([`crate::entering`]).

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};

use fingerpost_record::{
    Blocker, Budget, Component, Evidence, Experiment, Layer, Metric, Observation, Paths, Readings,
    reading::{Missing, Name, Way, name},
};

use super::growth::{Growth, Pair};
use super::older::{resolved, wall};
use super::sign::Sign;
use crate::entering::Entering;
use crate::facts::TICKS;
use crate::places::{Place, Places, places};
use crate::steps::KnownSide;
use crate::windows::{CALLS, all_calls, calls_per_transaction};
use fingerpost_record::paths::{Leaf, Share};

/// Something that whoever made the sides changed between them: a build or a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its name.
    pub what: String,
    /// How it was on the base side.
    pub base: String,
    /// How it is on the new side.
    pub new: String,
    /// Whether the program is another one: its compiler, flags or version.
    pub is_build: bool,
}

impl Changed {
    /// The same as a fact.
    pub fn fact(&self) -> Evidence {
        Evidence::of(Metric::Changed)
            .named(&self.what)
            .changing(&self.base, &self.new)
    }
}

/// What a cause is asked for its sign by.
pub(crate) struct Asked {
    /// What tells it from its neighbours.
    pub(crate) sign: fn(&Clues) -> Sign,
    /// The causes whose signs that may ask for.
    pub(crate) explained_by: &'static [&'static str],
}

/// What one side has on record of a step.
pub(super) struct OnRecord<'c, 'a> {
    pub(super) side: KnownSide<'a>,
    pub(super) budget: &'a Budget,
    pub(super) readings: &'c Readings,
    pub(super) paths: Option<&'a Paths>,
}

/// Both sides' knowledge of one workload step, that of the faster side first.
pub struct Clues<'a> {
    sides: [(KnownSide<'a>, &'a Budget); 2],
    /// What their observers read.
    readings: [Readings; 2],
    /// Their parts, queues resolved: seconds per transaction.
    parts: [Vec<(Layer, Component, f64)>; 2],
    /// Half the 95 % interval of each part of followed requests, in seconds per transaction.
    widths: [Vec<(Layer, Component, f64)>; 2],
    /// Whether both sides' requests were followed, and each in another way: then neither their places nor their budgets
    /// are compared.
    ways_differ: bool,
    /// The places of their followed requests, where both have them.
    places: Option<[Places; 2]>,
    /// The share of their requests' time that could not be followed, where both were followed.
    not_followed: Option<[f64; 2]>,
    /// Their requests' time on a CPU by trace and by ticks, where both know it.
    pub(crate) entering: Option<[Entering; 2]>,
    /// The transactions that their totals of system calls are of.
    of_calls: [f64; 2],
    /// What was changed between the sides.
    pub(crate) changed: Vec<Changed>,
    /// The sign of each cause, found when it is asked for first.
    signs: BTreeMap<&'static str, (Asked, OnceCell<Sign>)>,
    /// Whose sign is being found.
    finding: Cell<Option<&'static [&'static str]>>,
    new_is_slow: bool,
}

impl<'a> Clues<'a> {
    /// The clues about a step that both sides have a budget of.
    pub fn new(
        base: KnownSide<'a>,
        new: KnownSide<'a>,
        base_budget: &'a Budget,
        new_budget: &'a Budget,
    ) -> Self {
        let mut sides = [(base, base_budget), (new, new_budget)];
        let mut readings = sides.map(|(side, budget)| Readings::of(of_step(side, budget)));
        let new_is_slow = longer(&readings, [base_budget, new_budget]);
        if !new_is_slow {
            sides.reverse();
            readings.reverse();
        }
        let of = |i: usize| (sides[i], &readings[i]);
        let both = paths_of(sides[0])
            .zip(paths_of(sides[1]))
            .map(|(b, n)| [b, n]);
        let paths = both.filter(|[b, n]| Way::of(&b.source) == Way::of(&n.source));
        let parts = [0, 1].map(|i| {
            let parts = resolved(of(i).1, sides[i].1);
            paths.map_or_else(|| parts.clone(), |p| by_who_had_it(parts.clone(), p[i]))
        });
        let widths = [0, 1].map(|i| paths.map_or(Vec::new(), |p| widths(p[i], turns(of(i).1))));
        let entering = paths.and_then(|p| {
            Some([
                entering_of(sides[0], of(0).1, p[0])?,
                entering_of(sides[1], of(1).1, p[1])?,
            ])
        });
        let of_calls = paths.and_then(|p| transactions_of_calls(&readings, p));
        let mut clues = Clues {
            sides,
            parts,
            widths,
            ways_differ: both.is_some() && paths.is_none(),
            places: paths.map(|p| p.map(places)),
            not_followed: paths.map(|p| p.map(|p| p.not_followed)),
            entering,
            of_calls: of_calls.unwrap_or([0, 1].map(|i| transactions(&readings[i], sides[i].1))),
            changed: Vec::new(),
            signs: BTreeMap::new(),
            finding: Cell::new(None),
            readings,
            new_is_slow,
        };
        clues.move_entering();
        clues
    }

    /// What the slower side's own code has more than the other's and ticks count as the kernel's is time of the
    /// kernel's outside of calls.
    fn move_entering(&mut self) {
        let Some([fast, slow]) = self.entering else {
            return;
        };
        let parts = &mut self.parts[1];
        let Some(user) = parts
            .iter_mut()
            .find(|p| p.1 == Component::UserCode)
            .filter(|_| slow.traced_user > 0.0)
        else {
            return;
        };
        // Requests behind others wait for the same code: the share of it holds for all of that part.
        let moved = user.2 * (slow.more_than(&fast) / slow.traced_user).min(1.0);
        if moved > 0.0 {
            user.2 -= moved;
            parts.push((Layer::Kernel, Component::OutsideOfCalls, moved));
        }
    }

    /// The share of requests' time that could not be followed, of the side that has more of it; nothing where not both
    /// were followed.
    pub fn not_followed(&self) -> Option<f64> {
        self.not_followed.map(|[fast, slow]| fast.max(slow))
    }

    /// With these causes to hold against the sides.
    pub(crate) fn judged_by(mut self, signs: impl Iterator<Item = (&'static str, Asked)>) -> Self {
        let unasked = |(name, asked)| (name, (asked, OnceCell::new()));
        self.signs = signs.map(unasked).collect();
        self
    }

    /// What tells a cause from its neighbours here, found once for all that ask. A sign may ask for those that it is
    /// declared to be explained by.
    pub(crate) fn sign(&self, of: &str) -> &Sign {
        let Some((asked, found)) = self.signs.get(of) else {
            return &Sign::Unknown;
        };
        let finding = self.finding.get();
        debug_assert!(
            finding.is_none_or(|declared| declared.contains(&of)),
            "{of} is asked for, and only {finding:?} are declared"
        );
        self.finding.set(Some(asked.explained_by));
        let sign = found.get_or_init(|| (asked.sign)(self));
        self.finding.set(finding);
        sign
    }

    /// What the slower side has on record of the step, and the faster one.
    pub(super) fn on_record(&self) -> [OnRecord<'_, 'a>; 2] {
        [1, 0].map(|i| OnRecord {
            side: self.sides[i].0,
            budget: self.sides[i].1,
            readings: &self.readings[i],
            paths: paths_of(self.sides[i]),
        })
    }

    /// Experiments of this step, of the slower side and of the faster one.
    pub fn experiments(&self) -> [Vec<&'a Experiment>; 2] {
        [1, 0].map(|i| experiments_of(self.sides[i]).collect())
    }

    /// A quantity on both sides as a fact.
    pub fn told(&self, metric: Metric, pair: Pair) -> Evidence {
        Evidence::pair(metric, self.base_first(pair))
    }

    /// A quantity on both sides, base and new.
    pub fn base_first(&self, Pair { fast, slow }: Pair) -> [f64; 2] {
        if self.new_is_slow {
            [fast, slow]
        } else {
            [slow, fast]
        }
    }

    /// Half the 95 % interval of the difference of the parts that a rule picks, in seconds of a transaction: the two
    /// sides' errors are independent, those of one side's parts may go together.
    pub fn width(&self, pick: impl Fn(Layer, &Component) -> bool) -> f64 {
        let of = |i: usize| {
            self.widths[i]
                .iter()
                .filter(|p| pick(p.0, &p.1))
                .map(|p| p.2)
                .sum::<f64>()
        };
        of(0).hypot(of(1))
    }

    /// Whether both sides' requests were followed, in the same way.
    pub fn followed(&self) -> bool {
        self.places.is_some()
    }

    /// Why the requests of the two sides are not compared, where they were not followed on both in the same way.
    pub fn why_not_followed(&self) -> Option<Evidence> {
        let why = match (self.followed(), self.ways_differ) {
            (true, _) => return None,
            (false, true) => Metric::FollowedInTwoWays,
            (false, false) => Metric::NotFollowedOnBoth,
        };
        Some(Evidence::of(why))
    }

    /// Whether both budgets have parts that can be compared. Where requests could not be followed, how much a cause
    /// makes of the change is not known.
    pub fn have_parts(&self) -> bool {
        !self.ways_differ && self.parts.iter().all(|parts| !parts.is_empty())
    }

    /// Seconds of a request in these places, where both sides' requests were followed.
    pub fn places(&self, of: &[Place]) -> Option<Pair> {
        let seconds = |places: &Places| {
            of.iter()
                .filter_map(|place| places.get(place))
                .map(|sum| sum.share.seconds)
                .sum::<f64>()
        };
        Some(Pair::of(self.places.as_ref()?.each_ref().map(seconds)))
    }

    /// Seconds of a transaction by which these places grew at most, with the whole interval, where both sides' requests
    /// were followed.
    pub fn grew_at_most(&self, of: &[Place]) -> Option<f64> {
        let places = self.places.as_ref()?;
        let [fast, slow] = [0, 1].map(|i| {
            let (shares, turns) = (
                of.iter()
                    .filter_map(|place| places[i].get(place))
                    .map(|sum| sum.share),
                turns(&self.readings[i]),
            );
            shares.fold((0.0, 0.0), |(seconds, width), s| {
                (seconds + s.seconds * turns, width + half_width(&s) * turns)
            })
        });
        Some(slow.0 - fast.0 + fast.1.hypot(slow.1))
    }

    /// Who had most of a place on the slower side; nothing where that is not known.
    pub fn whom(&self, place: Place) -> Option<(Blocker, f64)> {
        let [_, places] = self.places.as_ref()?;
        places.get(&place)?.whom.first().cloned()
    }

    /// The side with the longer transactions.
    pub fn slow(&self) -> KnownSide<'a> {
        self.sides[1].0
    }

    /// The side with the shorter transactions.
    pub fn fast(&self) -> KnownSide<'a> {
        self.sides[0].0
    }

    /// A total as it is (a share, a level, a count of CPUs).
    pub fn total(&self, name: Name) -> Option<Pair> {
        self.total_as(name.as_str())
    }

    fn total_as(&self, name: &str) -> Option<Pair> {
        let [fast, slow] = &self.readings;
        // Nothing where one had it in another way: what root traced is not what a user without its rights sampled.
        (fast.way(name)? == slow.way(name)?).then_some(Pair {
            fast: fast.known_as(name)?,
            slow: slow.known_as(name)?,
        })
    }

    /// A total of the slower side, of a second.
    pub fn a_second(&self, name: Name) -> Option<f64> {
        Some(self.total(name)?.slow / self.total(name::ELAPSED_SECONDS)?.slow.max(1e-9))
    }

    /// A total divided by the transactions.
    pub fn per_transaction(&self, name: Name) -> Option<Pair> {
        self.per_transaction_as(name.as_str())
    }

    /// The same of a name that is made as it is asked for.
    pub fn per_transaction_as(&self, name: &str) -> Option<Pair> {
        let total = self.total_as(name)?;
        let [of_fast, of_slow] = if name.starts_with(CALLS) {
            self.of_calls
        } else {
            self.transactions()
        };
        Some(Pair {
            fast: total.fast / of_fast,
            slow: total.slow / of_slow,
        })
    }

    /// Why a reading cannot be compared; nothing where it can.
    pub fn why_missing(&self, name: Name) -> Option<Missing> {
        if self.total(name).is_some() {
            return None;
        }
        let on = |i: usize| {
            let mut absent = self.readings[i].why_missing(name.as_str())?;
            absent.side = Some(self.sides[i].0.name.to_owned());
            Some(absent)
        };
        let base_first = if self.new_is_slow { [0, 1] } else { [1, 0] };
        Some(Missing {
            reading: name.into(),
            of: base_first.into_iter().filter_map(on).collect(),
            compared: true,
        })
    }

    /// Adds what is known to have been changed between the sides.
    pub fn with_changes(mut self, changed: Vec<Changed>) -> Self {
        let word = |on: f64| if on > 0.0 { "on" } else { "off" };
        let told = changed.iter().any(|c| c.what == "query_cache");
        let cache = self
            .total(name::STEP_QUERY_CACHE)
            .map(|pair| self.base_first(pair))
            .filter(|[b, n]| b != n && !told);
        self.changed = changed;
        self.changed.extend(cache.map(|[base, new]| Changed {
            what: "query_cache".into(),
            base: word(base).into(),
            new: word(new).into(),
            is_build: false,
        }));
        self
    }

    /// A total per transaction, with the number of independent events that it is the sum of: no more than the
    /// transactions.
    pub fn growth(&self, name: Name) -> Option<Growth> {
        self.growth_of(self.per_transaction(name)?, &[name])
    }

    /// The same of a sum of totals.
    pub fn growth_of(&self, pair: Pair, names: &[Name]) -> Option<Growth> {
        let counts = |i: usize| {
            names
                .iter()
                .filter_map(|name| self.readings[i].known(*name))
                .reduce(|sum, n| sum + n)
        };
        let calls = names.iter().any(|name| name.as_str().starts_with(CALLS));
        self.growth_by([counts(0)?, counts(1)?], pair, calls)
    }

    /// The same of all system calls of the server.
    pub fn growth_of_calls(&self) -> Option<Growth> {
        let count = |i: usize| all_calls(&self.readings[i], ".count");
        self.growth_by([count(0)?, count(1)?], self.calls_per_transaction()?, true)
    }

    /// The growth of a quantity that so many events make on the faster side and on the slower one.
    fn growth_by(&self, counts: [f64; 2], pair: Pair, calls: bool) -> Option<Growth> {
        let of = if calls {
            self.of_calls
        } else {
            self.transactions()
        };
        // Calls are counted in windows and scaled up: what was seen is less.
        let seen = [0, 1].map(|i| if calls { share_in_windows(&self.readings[i]) } else { 1.0 } * self.passes()[i]);
        let events = [0, 1].map(|i| counts[i].min(of[i]) * seen[i]);
        let each = [0, 1].map(|i| (of[i] * seen[i]).max(f64::MIN_POSITIVE));
        let amounts = [pair.fast, pair.slow];
        // What one event makes is the same on a side that has none as on the other.
        let one = [0, 1].map(|i| {
            let other = 1 - i;
            let worth = if events[other] > 0.0 {
                amounts[other] * each[other] / events[other]
            } else {
                1.0
            };
            worth / each[i]
        });
        let whole = seen
            .iter()
            .zip(self.passes())
            .all(|(seen, passes)| *seen >= passes);
        Some(Growth {
            pair,
            events: Pair::of(events),
            one: Pair::of(one),
            whole,
        })
    }

    /// Passes that the totals are means of.
    fn passes(&self) -> [f64; 2] {
        self.sides
            .map(|(side, budget)| f64::from(side.steps.passes(&budget.workload, &budget.params)))
    }

    /// CPU time as CPUs' worth over the time that elapsed, with the ticks that it is counted in.
    pub fn in_cpus(&self, used: Pair, elapsed: Pair) -> Growth {
        let (passes, elapsed) = (
            Pair::of(self.passes()),
            Pair {
                fast: elapsed.fast.max(1e-9),
                slow: elapsed.slow.max(1e-9),
            },
        );
        let of = |seconds: f64, passes: f64| seconds * TICKS * passes;
        Growth {
            pair: Pair {
                fast: used.fast / elapsed.fast,
                slow: used.slow / elapsed.slow,
            },
            events: Pair {
                fast: of(used.fast, passes.fast),
                slow: of(used.slow, passes.slow),
            },
            one: Pair {
                fast: 1.0 / of(elapsed.fast, passes.fast),
                slow: 1.0 / of(elapsed.slow, passes.slow),
            },
            whole: false,
        }
    }

    /// System calls of the server per transaction, all kinds together.
    pub fn calls_per_transaction(&self) -> Option<Pair> {
        // Any call will do: where it was counted, all were.
        self.total(name::SERVER_CALL_READ_COUNT)?;
        Some(Pair::of([0, 1].map(|i| {
            all_calls(&self.readings[i], ".count").unwrap_or(0.0) / self.of_calls[i]
        })))
    }

    fn transactions(&self) -> [f64; 2] {
        [0, 1].map(|i| transactions(&self.readings[i], self.sides[i].1))
    }

    /// What stands between prefix and suffix in the name of the slower side's largest such total.
    pub fn largest<'s>(&'s self, prefix: &'s str, suffix: &'s str) -> Option<&'s str> {
        self.readings[1].largest(prefix, suffix)
    }

    /// Sum over the parts of both budgets that a rule picks: seconds per transaction, fast and slow.
    pub fn parts(&self, pick: impl Fn(Layer, &Component) -> bool) -> Pair {
        Pair::of(
            self.parts
                .each_ref()
                .map(|parts| parts.iter().filter(|p| pick(p.0, &p.1)).map(|p| p.2).sum()),
        )
    }

    /// Seconds in each system call that both budgets tell of, by its name.
    pub fn kernel_parts(&self) -> Vec<(&str, Pair)> {
        let calls: BTreeSet<&str> = self
            .parts
            .iter()
            .flatten()
            .filter_map(|p| p.1.in_kernel())
            .collect();
        let seconds = |call: &str| self.parts(|_, part| part.in_kernel() == Some(call));
        calls
            .into_iter()
            .map(|call| (call, seconds(call)))
            .filter(|(_, pair)| pair.fast > 0.0 && pair.slow > 0.0)
            .collect()
    }

    /// Seconds of a transaction that no part explains.
    pub fn rest(&self) -> Pair {
        let (wall, parts) = (self.wall(), self.parts(|_, _| true));
        Pair {
            fast: wall.fast - parts.fast,
            slow: wall.slow - parts.slow,
        }
    }

    /// Seconds of a transaction that lie outside of followed requests, where both sides' load generators tell: by
    /// Little's law a closed loop's turn takes clients × time / transactions. It is what clients do between requests,
    /// and connections that were not let in.
    pub fn outside(&self) -> Option<Pair> {
        self.places.as_ref()?;
        let (turn, wall) = (self.turnaround()?, self.wall());
        Some(Pair {
            fast: (turn.fast - wall.fast).max(0.0),
            slow: (turn.slow - wall.slow).max(0.0),
        })
    }

    /// Seconds from one transaction of a client to its next, where both sides' load generators tell: what lies outside
    /// of followed requests is in it.
    pub fn turnaround(&self) -> Option<Pair> {
        let [fast, slow] = self.readings.each_ref().map(turnaround);
        Some(Pair {
            fast: fast?,
            slow: slow?,
        })
    }

    /// The same, or where it is not told the wall seconds of a transaction.
    pub fn turn(&self) -> Pair {
        self.turnaround().unwrap_or(self.wall())
    }

    /// Wall seconds per transaction.
    pub fn wall(&self) -> Pair {
        Pair::of(self.sides.map(|(_, budget)| wall(budget)))
    }
}

/// Transactions of the pass that the totals are of. A budget of followed requests averages over fewer.
fn transactions(readings: &Readings, budget: &Budget) -> f64 {
    readings
        .known(name::STEP_TRANSACTIONS)
        .unwrap_or(budget.transactions as f64)
        .max(1.0)
}

/// The transactions that the totals of system calls are of, where both sides counted calls in the windows of their
/// requests: those that went with them there.
fn transactions_of_calls(readings: &[Readings; 2], paths: [&Paths; 2]) -> Option<[f64; 2]> {
    let of = |i: usize| {
        let each = calls_per_transaction(&readings[i], paths[i], turns(&readings[i]))?;
        Some(all_calls(&readings[i], ".count")? / each).filter(|of| of.is_finite() && *of > 0.0)
    };
    Some([of(0)?, of(1)?])
}

/// Whether a transaction takes longer on the new side: by the load generators' own account of all of them, where both
/// gave one.
fn longer(readings: &[Readings; 2], budgets: [&Budget; 2]) -> bool {
    match turnaround(&readings[0]).zip(turnaround(&readings[1])) {
        Some((base, new)) => new >= base,
        None => wall(budgets[1]) >= wall(budgets[0]),
    }
}

/// The share of the system calls that was counted in windows, and scaled up to all; all of them where it is not known
/// that they were.
fn share_in_windows(readings: &Readings) -> f64 {
    let counted = readings
        .known(name::SERVER_CALLS_IN_WINDOWS)
        .zip(all_calls(readings, ".count"));
    counted
        .filter(|(_, all)| *all > 0.0)
        .map_or(1.0, |(seen, all)| (seen / all).min(1.0))
}

/// Seconds from one transaction of a client to its next: clients × time / transactions, by Little's law.
fn turnaround(readings: &Readings) -> Option<f64> {
    let turn = readings.known(name::STEP_CLIENTS)? * readings.known(name::STEP_ELAPSED_SECONDS)?
        / readings.known(name::STEP_TRANSACTIONS)?;
    (turn.is_finite() && turn > 0.0).then_some(turn)
}

fn turns(readings: &Readings) -> f64 {
    readings
        .known(name::STEP_TURNS_PER_TRANSACTION)
        .filter(|turns| *turns > 0.0)
        .unwrap_or(1.0)
}

/// The followed requests of a budget's step.
fn paths_of<'a>((side, budget): (KnownSide<'a>, &Budget)) -> Option<&'a Paths> {
    side.steps
        .paths
        .iter()
        .find(|p| p.workload == budget.workload && p.params == budget.params)
        .filter(|paths| paths.followed > 0)
}

/// The parts of a budget with those of waiting for a CPU told apart by who had it, in the proportions of the followed
/// requests.
fn by_who_had_it(
    parts: Vec<(Layer, Component, f64)>,
    paths: &Paths,
) -> Vec<(Layer, Component, f64)> {
    let mut fine = Vec::new();
    for (layer, part, seconds) in parts {
        let leaves: Vec<&Leaf> = match part {
            Component::Cpu | Component::ClientCpu => paths
                .leaves
                .iter()
                .filter(|l| Place::of(l).component(l) == (layer, part.clone()))
                .collect(),
            _ => Vec::new(),
        };
        let all: f64 = leaves.iter().map(|l| l.all.seconds).sum();
        if all > 0.0 {
            let share = |l: &&Leaf| (layer, Place::fine(l).1, seconds * l.all.seconds / all);
            fine.extend(leaves.iter().map(share));
        } else {
            fine.push((layer, part, seconds));
        }
    }
    fine
}

/// Half the interval of a share, in seconds of a request.
fn half_width(of: &Share) -> f64 {
    if of.share > 0.0 {
        (of.high - of.low).max(0.0) / 2.0 * of.seconds / of.share
    } else {
        0.0
    }
}

/// Half the interval of each leaf, in seconds of a transaction, under the name of its part.
fn widths(paths: &Paths, turns: f64) -> Vec<(Layer, Component, f64)> {
    let width = |leaf| {
        let (layer, component) = Place::fine(leaf);
        (layer, component, half_width(&leaf.all) * turns)
    };
    paths.leaves.iter().map(width).collect()
}

fn entering_of(
    (side, budget): (KnownSide, &Budget),
    readings: &Readings,
    paths: &Paths,
) -> Option<Entering> {
    let passes = side.steps.passes(&budget.workload, &budget.params);
    Entering::of(
        readings.known(name::STEP_TRANSACTIONS)? * turns(readings),
        passes,
        readings,
        paths,
    )
}

/// The experiments of a budget's step.
fn experiments_of<'a>(
    (side, budget): (KnownSide<'a>, &'a Budget),
) -> impl Iterator<Item = &'a Experiment> {
    side.steps
        .experiments
        .iter()
        .filter(|e| e.workload == budget.workload && e.params == budget.params)
}

/// The observations of a budget's step.
fn of_step<'a>(side: KnownSide<'a>, budget: &'a Budget) -> impl Iterator<Item = &'a Observation> {
    side.steps
        .observations
        .iter()
        .filter(|o| o.workload == budget.workload && o.params == budget.params)
}
