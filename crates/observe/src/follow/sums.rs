//! Many requests summed up: by leaf, for all, for the middle, and for the slowest 1 %, with intervals.
//!
//! The intervals are a bootstrap over stretches of requests that followed each other, so that what requests of one
//! moment have in common is not counted as agreement. (B. Efron and R. J. Tibshirani, *An Introduction to the
//! Bootstrap*, 1993, section 8.6: blocks.)

use std::collections::HashMap;
use std::ops::RangeInclusive;

use fingerpost_record::paths::{
    self, Hop, Latency, Leaf as Named, MOST_LEAVES, MOST_ROUTES, MOST_SLOWEST, MOST_SPANS, Route,
    Share, Slow, SlowSpan,
};

use super::leaf::{Chain, Kind, Leaf, Piece};
use super::request::Request;
use fingerpost_record::{Blocker, Link, Side, Task, WaitClass};

/// Requests whose leaves are kept for the classes: a sample of all, drawn as they come (reservoir).
const MOST_KEPT: usize = 100_000;
/// Stretches of requests that the bootstrap draws from, and how often.
const STRETCHES: usize = 40;
const DRAWS: usize = 300;
/// Leaves that get names and intervals: some times as many as a record keeps, as of those several may read the same.
const MOST_NAMED: usize = 4 * MOST_LEAVES;
/// The middle, as percentiles of latency.
const MIDDLE: (f64, f64) = (0.40, 0.60);
/// So many requests that are slow by what was counted make a class.
const LEAST_SLOW: usize = 5;
/// The slow ones begin here.
const SLOW: f64 = 0.99;

#[derive(Clone, Debug)]
struct Kept {
    end: u64,
    latency: u64,
    leaves: Box<[(u32, u64)]>,
}

#[derive(Debug, Default)]
pub struct Sums {
    /// Looked up for each piece: of a request behind a thousand others there are ten thousand.
    ids: foldhash::HashMap<Leaf, u32>,
    leaves: Vec<Leaf>,
    totals: Vec<u64>,
    /// Of the request that is being added, by leaf; all zero between two.
    adding: Vec<u64>,
    /// The leaves as a record names them, and the place there of each; made at the end.
    named: Vec<Named>,
    places: Vec<usize>,
    /// The way by which most of each leaf came there.
    routes: Vec<Vec<Hop>>,
    latencies: Vec<u64>,
    kept: Vec<Kept>,
    /// Requests of windows that were opened for slow ones: they count among the slowest alone.
    kept_slow: Vec<Kept>,
    /// What the slowest take at least, where every request was counted.
    slow_from: Option<u64>,
    slowest: Vec<Request>,
    /// A command's time, of which each window shows a part.
    command: Command,
    /// 0 before the first draw, and never after it.
    random: u64,
}

/// A command's parts, put one after the other: what lies between windows was not seen.
#[derive(Debug, Default)]
struct Command {
    /// Nanoseconds so far.
    length: u64,
    /// The same by leaf.
    leaves: HashMap<u32, u64>,
    /// The longest pieces: all that a record has of them, and at most twice as many.
    longest: Vec<Piece>,
}

/// Keeps the longest pieces, as many as a record has of a request, in their order.
fn keep_longest(pieces: &mut Vec<Piece>) {
    if pieces.len() > MOST_SPANS {
        pieces.sort_by_key(|p| (std::cmp::Reverse(p.end - p.start), p.start));
        pieces.truncate(MOST_SPANS);
        pieces.sort_by_key(|p| p.start);
    }
}

impl Sums {
    /// Adds a part of a command's time.
    pub fn add_part(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            let (id, length) = (self.id(piece.leaf), piece.end - piece.start);
            let command = &mut self.command;
            *command.leaves.entry(id).or_default() += length;
            command.longest.push(Piece {
                start: command.length,
                end: command.length + length,
                leaf: piece.leaf,
            });
            command.length += length;
            if command.longest.len() > 2 * MOST_SPANS {
                keep_longest(&mut command.longest);
            }
        }
    }

    /// Makes a command's time the one request that it is.
    fn end_command(&mut self) {
        let mut command = std::mem::take(&mut self.command);
        if command.length == 0 {
            return;
        }
        let mut leaves: Vec<(u32, u64)> = command.leaves.drain().collect();
        leaves.sort_unstable();
        let kept = Kept {
            end: command.length,
            latency: command.length,
            leaves: leaves.into(),
        };
        let request = Request {
            begin: 0,
            end: command.length,
            pieces: command.longest,
        };
        self.add_kept(kept, request);
    }

    pub fn add(&mut self, request: Request) {
        let kept = self.kept_of(&request);
        self.add_kept(kept, request);
    }

    fn add_kept(&mut self, kept: Kept, request: Request) {
        kept.leaves
            .iter()
            .for_each(|&(id, ns)| self.totals[id as usize] += ns);
        self.latencies.push(kept.latency);
        if self.kept.len() < MOST_KEPT {
            self.kept.push(kept);
        } else {
            let place = self.below(self.latencies.len() as u64) as usize;
            if let Some(slot) = self.kept.get_mut(place) {
                *slot = kept;
            }
        }
        self.keep_slow(request);
    }

    /// Adds a request of a window that was opened for slow ones, which is no sample of all.
    pub fn add_slow(&mut self, request: Request) {
        if self.kept_slow.len() < MOST_KEPT {
            let kept = self.kept_of(&request);
            self.kept_slow.push(kept);
        }
        self.keep_slow(request);
    }

    /// Learns what the slowest 1 % of all requests take at least, in nanoseconds.
    pub fn slow_from(&mut self, least: u64) {
        self.slow_from = Some(least);
    }

    fn kept_of(&mut self, request: &Request) -> Kept {
        let mut met: Vec<u32> = Vec::new();
        for piece in &request.pieces {
            let id = self.id(piece.leaf);
            let sum = &mut self.adding[id as usize];
            if *sum == 0 {
                met.push(id);
            }
            *sum += piece.end - piece.start;
        }
        let take = |id: u32| (id, std::mem::take(&mut self.adding[id as usize]));
        let leaves: Box<[(u32, u64)]> = met.into_iter().map(take).collect();
        Kept {
            end: request.end,
            latency: request.end - request.begin,
            leaves,
        }
    }

    fn keep_slow(&mut self, request: Request) {
        let latency = |r: &Request| r.end - r.begin;
        let place = self
            .slowest
            .partition_point(|r| latency(r) >= latency(&request));
        if place < MOST_SLOWEST {
            self.slowest.insert(place, request);
            self.slowest.truncate(MOST_SLOWEST);
        }
    }

    fn id(&mut self, leaf: Leaf) -> u32 {
        *self.ids.entry(leaf).or_insert_with(|| {
            self.leaves.push(leaf);
            self.totals.push(0);
            self.adding.push(0);
            (self.leaves.len() - 1) as u32
        })
    }

    /// A number below `n` (xorshift64*, Vigna 2016).
    fn below(&mut self, n: u64) -> u64 {
        if self.random == 0 {
            // Any other number; the draws need no secrecy, and the same requests give the same sums.
            self.random = 0x9E37_79B9_7F4A_7C15;
        }
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        ((u128::from(self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)) * u128::from(n)) >> 64) as u64
    }

    /// Fills in what a record keeps of the requests.
    pub fn fill(mut self, into: &mut paths::Paths, tasks: &HashMap<i32, Task>) {
        self.end_command();
        self.latencies.sort_unstable();
        into.followed = self.latencies.len() as u64;
        into.latency = latency(&self.latencies);
        let bounds = [MIDDLE.0, MIDDLE.1, SLOW].map(|q| quantile(&self.latencies, q).unwrap_or(0));
        self.kept.sort_by_key(|k| k.end);
        let slow_from = self.slow_bound(bounds[2]);
        self.name(tasks);
        let [all, middle] = [0..=u64::MAX, bounds[0]..=bounds[1]].map(|class| self.shares(&class));
        self.kept.append(&mut self.kept_slow);
        self.kept.sort_by_key(|k| k.end);
        let slow = self.shares(&(slow_from..=u64::MAX));
        let with_shares = |(id, leaf)| Named {
            all: all[id],
            middle: middle[id],
            slow: slow[id],
            ..leaf
        };
        let mut named: Vec<(Named, Vec<Hop>)> = std::mem::take(&mut self.named)
            .into_iter()
            .enumerate()
            .map(with_shares)
            .zip(std::mem::take(&mut self.routes))
            .collect();
        let small = |leaf: &Named| leaf.class == WaitClass::TooSmall;
        named.sort_by(|(a, _), (b, _)| {
            let by_time = b.all.seconds.total_cmp(&a.all.seconds);
            small(a).cmp(&small(b)).then(by_time)
        });
        into.routes = named
            .iter()
            .zip(0..)
            .take(MOST_ROUTES)
            .filter(|((_, route), _)| !route.is_empty())
            .map(|((_, route), leaf)| Route {
                leaf,
                hops: route.clone(),
            })
            .collect();
        let named: Vec<Named> = named.into_iter().map(|(leaf, _)| leaf).collect();
        let sum: u64 = self.totals.iter().sum();
        let by_leaf = self.leaves.iter().zip(&self.totals);
        let not_followed: u64 = by_leaf
            .filter(|(l, _)| l.kind == Kind::NotFollowed)
            .map(|(_, ns)| ns)
            .sum();
        into.not_followed = if sum > 0 {
            not_followed as f64 / sum as f64
        } else {
            1.0
        };
        into.leaves = bounded(named);
        into.slowest = self.slowest.iter().map(|r| slow_line(r, tasks)).collect();
    }

    /// What the slowest take at least: as it was counted, where enough of these were followed, else as it is among those
    /// that were.
    fn slow_bound(&self, among_followed: u64) -> u64 {
        let enough = |&least: &u64| {
            let all = self.kept.iter().chain(&self.kept_slow);
            all.filter(|k| k.latency >= least).take(LEAST_SLOW).count() == LEAST_SLOW
        };
        self.slow_from.filter(enough).unwrap_or(among_followed)
    }

    /// Which leaves are named: of very many the [`MOST_NAMED`] with most time, of all requests or of those in windows
    /// for slow ones.
    fn is_named(&self) -> Vec<bool> {
        let mut weights = self.totals.clone();
        for &(id, ns) in self.kept_slow.iter().flat_map(|k| k.leaves.iter()) {
            weights[id as usize] += ns;
        }
        let mut named = vec![weights.len() <= MOST_NAMED; weights.len()];
        if weights.len() > MOST_NAMED {
            let mut ids: Vec<usize> = (0..weights.len()).collect();
            ids.sort_unstable_by_key(|id| (std::cmp::Reverse(weights[*id]), *id));
            ids[..MOST_NAMED].iter().for_each(|id| named[*id] = true);
        }
        named
    }

    /// Gives the leaves their names. Those that read the same (two threads of one name) are one, before any interval is
    /// drawn; and so are the smallest, where there are very many.
    fn name(&mut self, tasks: &HashMap<i32, Task>) {
        let is_named = self.is_named();
        let mut routes: Vec<HashMap<Vec<Hop>, u64>> = Vec::new();
        let mut places: HashMap<(WaitClass, Side, Option<Blocker>, Chain), usize> = HashMap::new();
        self.places = Vec::with_capacity(self.leaves.len());
        for ((leaf, &total), is_named) in self.leaves.iter().zip(&self.totals).zip(is_named) {
            let (class, blocker, chain) = if is_named || leaf.kind == Kind::NotFollowed {
                (
                    leaf.class(),
                    leaf.blocker(tasks),
                    leaf.chain.without_route(),
                )
            } else {
                (WaitClass::TooSmall, None, Chain::default())
            };
            let by_name = blocker.as_ref().map(Blocker::by_name);
            let new = self.named.len();
            let place = *places
                .entry((class.clone(), leaf.side, by_name, chain))
                .or_insert(new);
            if place == new {
                let none = Share::default();
                self.named.push(Named {
                    class,
                    side: leaf.side,
                    blocker,
                    chain: chain.links().collect(),
                    all: none,
                    middle: none,
                    slow: none,
                });
                routes.push(HashMap::new());
            } else if self.named[place].blocker != blocker {
                let known = &mut self.named[place].blocker;
                *known = known.as_ref().map(Blocker::by_name);
            }
            self.places.push(place);
            let route = hops(&leaf.chain, tasks);
            if is_named && !route.is_empty() {
                *routes[place].entry(route).or_default() += total;
            }
        }
        self.routes = routes
            .into_iter()
            .map(|of| {
                let most = of
                    .into_iter()
                    .max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(&a.0)));
                most.map_or_else(Vec::new, |(route, _)| route)
            })
            .collect();
    }

    /// Stretches of these requests that followed each other: nanoseconds by leaf of each, and of all its leaves.
    fn stretches(&self, members: &[&Kept]) -> Vec<(Vec<u64>, u64)> {
        let each = members.len().div_ceil(STRETCHES).max(1);
        members
            .chunks(each)
            .map(|chunk| {
                let mut by_leaf = vec![0u64; self.named.len()];
                chunk
                    .iter()
                    .flat_map(|k| k.leaves.iter())
                    .for_each(|&(id, ns)| by_leaf[self.places[id as usize]] += ns);
                let sum = by_leaf.iter().sum();
                (by_leaf, sum)
            })
            .collect()
    }

    /// The shares of the requests of these latencies by leaf, with the interval that drawing their stretches again
    /// gives.
    fn shares(&mut self, latencies: &RangeInclusive<u64>) -> Vec<Share> {
        let members: Vec<&Kept> = self
            .kept
            .iter()
            .filter(|k| latencies.contains(&k.latency))
            .collect();
        let (requests, stretches) = (members.len() as f64, self.stretches(&members));
        let (leaves, n) = (self.named.len(), stretches.len());
        let sum: u64 = stretches.iter().map(|s| s.1).sum();
        if n == 0 || sum == 0 {
            return vec![Share::default(); leaves];
        }
        let mut drawn = vec![Vec::with_capacity(DRAWS); leaves];
        for _ in 0..DRAWS {
            let picks: Vec<usize> = (0..n).map(|_| self.below(n as u64) as usize).collect();
            let whole: u64 = picks.iter().map(|&p| stretches[p].1).sum();
            for (id, of) in drawn.iter_mut().enumerate() {
                let part: u64 = picks.iter().map(|&p| stretches[p].0[id]).sum();
                of.push(part as f64 / whole.max(1) as f64);
            }
        }
        drawn
            .into_iter()
            .enumerate()
            .map(|(id, mut of)| {
                of.sort_by(f64::total_cmp);
                let total: u64 = stretches.iter().map(|s| s.0[id]).sum();
                let share = total as f64 / sum as f64;
                let at = |q: f64| of[((of.len() - 1) as f64 * q).round() as usize];
                Share {
                    seconds: total as f64 * 1e-9 / requests,
                    share,
                    low: at(0.025).min(share),
                    high: at(0.975).max(share),
                }
            })
            .collect()
    }
}

/// The value of a sorted list that a share `q` does not exceed.
fn quantile(sorted: &[u64], q: f64) -> Option<u64> {
    let rank = ((sorted.len() as f64 * q).ceil() as usize).max(1);
    sorted.get(rank - 1).copied()
}

/// Count, mean and percentiles of sorted latencies in nanoseconds.
pub fn latency(sorted: &[u64]) -> Latency {
    let at = |q| quantile(sorted, q).unwrap_or(0) as f64 * 1e-9;
    let mean = sorted.iter().map(|&l| l as f64).sum::<f64>() / sorted.len().max(1) as f64 * 1e-9;
    Latency {
        count: sorted.len() as u64,
        mean,
        p50: at(0.50),
        p90: at(0.90),
        p99: at(0.99),
    }
}

fn add(to: &mut Named, leaf: &Named) {
    for (to, from) in [
        (&mut to.all, leaf.all),
        (&mut to.middle, leaf.middle),
        (&mut to.slow, leaf.slow),
    ] {
        to.seconds += from.seconds;
        to.share += from.share;
        to.low += from.low;
        to.high += from.high;
    }
}

/// As many leaves as a record keeps; what is left is one leaf, so that they still add up.
fn bounded(leaves: Vec<Named>) -> Vec<Named> {
    if leaves.len() <= MOST_LEAVES {
        return leaves;
    }
    // Those that are kept stay where they are: routes name them by their places.
    let (mut rest, mut leaves): (Vec<Named>, Vec<Named>) = leaves
        .into_iter()
        .partition(|leaf| leaf.class == WaitClass::TooSmall);
    rest.append(&mut leaves.split_off(leaves.len().min(MOST_LEAVES - 1)));
    let mut small = Named {
        class: WaitClass::TooSmall,
        side: Side::Server,
        blocker: None,
        chain: Vec::new(),
        ..rest[0].clone()
    };
    rest[1..].iter().for_each(|leaf| add(&mut small, leaf));
    leaves.push(small);
    leaves
}

/// The processes that a chain came to, by their names; the same one after itself is one, unless it is by a lock.
fn hops(chain: &Chain, tasks: &HashMap<i32, Task>) -> Vec<Hop> {
    let mut found: Vec<Hop> = Vec::new();
    for (link, tid) in chain.route() {
        let name = tasks
            .get(&tid)
            .map_or_else(String::new, |task| task.name().into_owned());
        let again = found.last().is_some_and(|last| last.name == name);
        if !again || link == Link::Lock {
            found.push(Hop { link, name });
        }
    }
    found
}

fn slow_line(request: &Request, tasks: &HashMap<i32, Task>) -> Slow {
    let span = |p: &Piece| SlowSpan {
        at: (p.start - request.begin) as f64 * 1e-9,
        seconds: (p.end - p.start) as f64 * 1e-9,
        class: p.leaf.class(),
        side: p.leaf.side,
        blocker: p.leaf.blocker(tasks),
        chain: p.leaf.chain.links().collect(),
    };
    let mut pieces = request.pieces.clone();
    keep_longest(&mut pieces);
    Slow {
        seconds: (request.end - request.begin) as f64 * 1e-9,
        spans: pieces.iter().map(span).collect(),
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Component;

    use super::super::leaf::{Side, Whom};
    use super::*;

    fn leaf(kind: Kind) -> Leaf {
        Leaf {
            kind,
            side: Side::Server,
            whom: Whom::Nobody,
            chain: Chain::default(),
        }
    }

    fn request(begin: u64, parts: &[(Kind, u64)]) -> Request {
        let mut at = begin;
        let pieces = parts
            .iter()
            .map(|&(kind, ns)| {
                at += ns;
                Piece {
                    start: at - ns,
                    end: at,
                    leaf: leaf(kind),
                }
            })
            .collect();
        Request {
            begin,
            end: at,
            pieces,
        }
    }

    fn filled(requests: impl IntoIterator<Item = Request>) -> paths::Paths {
        let mut sums = Sums::default();
        requests.into_iter().for_each(|r| sums.add(r));
        let mut paths = paths::Paths::default();
        sums.fill(&mut paths, &HashMap::new());
        paths
    }

    #[test]
    fn very_many_leaves_are_summed_and_a_command_is_one_request() {
        let mut sums = Sums::default();
        let piece = |n: u64, whom| Piece {
            start: 1_000 * n,
            end: 1_000 * n + n + 1,
            leaf: Leaf {
                whom,
                ..leaf(Kind::Cpu)
            },
        };
        let threads = 3 * MOST_NAMED as u64;
        for part in 0..4 {
            let pieces: Vec<Piece> = (0..threads)
                .map(|n| piece(n, Whom::Thread((n + 1) as i32)))
                .collect();
            sums.add_part(&pieces[..pieces.len() - part]);
        }
        let tasks = (1..=threads as i32)
            .map(|tid| {
                let comm = format!("t{tid}");
                (
                    tid,
                    Task {
                        comm,
                        ..Task::default()
                    },
                )
            })
            .collect();
        let mut paths = paths::Paths::default();
        sums.fill(&mut paths, &tasks);
        assert_eq!(paths.followed, 1);
        assert_eq!(paths.leaves.len(), MOST_LEAVES);
        let sum: f64 = paths.leaves.iter().map(|l| l.all.share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        let longest = &paths.slowest[0];
        assert_eq!(longest.spans.len(), MOST_SPANS);
        let least = longest.spans.iter().map(|s| s.seconds).fold(1.0, f64::min);
        assert!(
            (least * 1e9 - (threads - 50) as f64).abs() < 60.0,
            "{least}"
        );
        assert!(longest.spans.is_sorted_by(|a, b| a.at < b.at));
    }

    #[test]
    fn shares_add_up_and_the_slow_ones_are_told_from_the_middle() {
        let requests = (0..1000).map(|i| {
            let lock = if i % 100 == 7 { 900_000 } else { 0 };
            request(
                i * 2_000_000,
                &[
                    (Kind::User, 100_000 + i),
                    (Kind::Lock, lock),
                    (Kind::NotFollowed, 1000),
                ],
            )
        });
        let paths = filled(requests);
        assert_eq!((paths.followed, paths.latency.count), (1000, 1000));
        let sum: f64 = paths.leaves.iter().map(|l| l.all.share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        let by = |name: Component| {
            paths
                .leaves
                .iter()
                .find(|l| l.component().1 == name)
                .unwrap()
                .clone()
        };
        let (user, lock) = (by(Component::UserCode), by(Component::Lock));
        assert!(
            lock.slow.share > 0.85 && lock.middle.share == 0.0,
            "{lock:?}"
        );
        assert!((lock.all.seconds - 9e-6).abs() < 1e-9, "{lock:?}");
        assert!(user.all.low <= user.all.share && user.all.share <= user.all.high);
        assert!((paths.not_followed - 1000.0 / (100_000.0 + 499.5 + 9000.0 + 1000.0)).abs() < 1e-4);
        assert_eq!(paths.slowest.len(), MOST_SLOWEST);
        assert!(
            paths.slowest[0].seconds >= paths.slowest[19].seconds
                && paths.slowest[0].spans.len() == 3
        );
    }

    #[test]
    fn percentiles_are_of_known_values() {
        let latencies: Vec<u64> = (1..=1000).map(|ms| ms * 1_000_000).collect();
        let l = latency(&latencies);
        assert_eq!(l.count, 1000);
        for (found, expected) in [(l.p50, 0.5), (l.p90, 0.9), (l.p99, 0.99)] {
            assert!((found - expected).abs() < 1e-12, "{l:?}");
        }
        assert!((l.mean - 0.5005).abs() < 1e-12);
        assert_eq!(latency(&[]).count, 0);
    }

    #[test]
    fn no_request_explains_nothing() {
        let paths = filled([]);
        assert_eq!(
            (paths.followed, paths.not_followed, paths.leaves.len()),
            (0, 1.0, 0)
        );
    }
}
