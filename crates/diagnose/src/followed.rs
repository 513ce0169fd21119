//! The followed requests of one step in several runs, put together.

use fingerpost_record::paths::{Latency, Leaf, MOST_LEAVES, MOST_SLOWEST, Share};
use fingerpost_record::{Blocker, Paths};

use crate::places::whole;

/// Adds the followed requests of another pass of the same step. Every request counts the same: means and shares are of
/// all requests of both, and an interval is as wide as theirs are in the mean, which is never narrower than that of the
/// requests of both.
///
/// The percentiles of a latency cannot be had from those of its parts; they become the requests' mean of both.
pub fn add(into: &mut Paths, next: &Paths) {
    // The middle and the slow are the same share of the requests of each pass, so that one weight holds for all
    // classes.
    let (a, b) = (into.followed as f64, next.followed as f64);
    let weight = if a + b > 0.0 { b / (a + b) } else { 0.0 };
    let classes: [fn(&Leaf) -> &Share; 3] = [|l| &l.all, |l| &l.middle, |l| &l.slow];
    let wholes = classes.map(|class| [whole(into, class), whole(next, class)]);
    let mut later = next.leaves.clone();
    for leaf in &mut into.leaves {
        let same = later
            .iter()
            .position(|l| same(l, leaf))
            .map(|i| later.swap_remove(i));
        mix(leaf, same, weight, &wholes);
    }
    for leaf in later {
        let mut new = Leaf {
            all: Share::default(),
            middle: Share::default(),
            slow: Share::default(),
            ..leaf.clone()
        };
        mix(&mut new, Some(leaf), weight, &wholes);
        into.leaves.push(new);
    }
    into.leaves
        .sort_by(|a, b| b.all.seconds.total_cmp(&a.all.seconds));
    into.leaves.truncate(MOST_LEAVES);
    // They name leaves by their places, of one look.
    into.routes.clear();
    into.asked.clear();
    let time = by_time([into.latency.mean, next.latency.mean], weight);
    into.not_followed += (next.not_followed - into.not_followed) * time;
    into.latency = both(&into.latency, &next.latency);
    into.generator = into
        .generator
        .zip(next.generator)
        .map(|(a, b)| both(&a, &b));
    into.windows += next.windows;
    into.seconds += next.seconds;
    into.events += next.events;
    into.lost += next.lost;
    into.self_cost += next.self_cost;
    into.event_cost = into.event_cost.max(next.event_cost);
    into.followed += next.followed;
    into.cut += next.cut;
    into.slowest.extend(next.slowest.iter().cloned());
    into.slowest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    into.slowest.truncate(MOST_SLOWEST);
}

fn same(a: &Leaf, b: &Leaf) -> bool {
    (&a.class, a.side, &a.chain) == (&b.class, b.side, &b.chain) && same_blocker(a, b)
}

/// Threads of one name are one: the processes of two runs have other numbers.
fn same_blocker(a: &Leaf, b: &Leaf) -> bool {
    a.blocker.as_ref().map(Blocker::by_name) == b.blocker.as_ref().map(Blocker::by_name)
}

/// The share of the second in the time of both, where it has this share of the requests.
fn by_time(wholes: [f64; 2], weight: f64) -> f64 {
    let sum = wholes[0] * (1.0 - weight) + wholes[1] * weight;
    if sum > 0.0 {
        wholes[1] * weight / sum
    } else {
        weight
    }
}

/// Mixes a leaf with the same one of the other pass; one that the other does not have took no time there.
fn mix(leaf: &mut Leaf, next: Option<Leaf>, weight: f64, wholes: &[[f64; 2]; 3]) {
    let next = next.map_or([Share::default(); 3], |l| [l.all, l.middle, l.slow]);
    for ((s, n), wholes) in [&mut leaf.all, &mut leaf.middle, &mut leaf.slow]
        .into_iter()
        .zip(next)
        .zip(wholes)
    {
        let time = by_time(*wholes, weight);
        s.seconds += (n.seconds - s.seconds) * weight;
        s.share += (n.share - s.share) * time;
        s.low += (n.low - s.low) * time;
        s.high += (n.high - s.high) * time;
    }
}

fn both(a: &Latency, b: &Latency) -> Latency {
    let count = a.count + b.count;
    let weight = if count > 0 {
        b.count as f64 / count as f64
    } else {
        0.0
    };
    let mean = |a: f64, b: f64| a + (b - a) * weight;
    Latency {
        count,
        mean: mean(a.mean, b.mean),
        p50: mean(a.p50, b.p50),
        p90: mean(a.p90, b.p90),
        p99: mean(a.p99, b.p99),
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::fixture::followed;

    use super::*;

    #[test]
    fn a_pass_with_itself_is_the_same_with_twice_the_requests() {
        let one = followed::slow_locks().paths.remove(0);
        let mut both = one.clone();
        add(&mut both, &one);
        assert_eq!(
            (both.followed, both.events, both.latency.count),
            (2 * one.followed, 2 * one.events, 2 * one.latency.count)
        );
        assert!(
            (both.latency.mean - one.latency.mean).abs() < 1e-12
                && (both.not_followed - one.not_followed).abs() < 1e-12
        );
        for (b, o) in both.leaves.iter().zip(&one.leaves) {
            assert!(
                (b.slow.share - o.slow.share).abs() < 1e-9
                    && (b.all.seconds - o.all.seconds).abs() < 1e-12,
                "{b:?} {o:?}"
            );
        }
        assert_eq!(both.slowest[0], both.slowest[1]);
    }

    #[test]
    fn each_request_counts_the_same_and_shares_add_up() {
        let mut both = followed::healthy().paths.remove(0);
        let mut slow = followed::slow_locks().paths.remove(0);
        slow.followed *= 3;
        slow.latency.count *= 3;
        let (a, b) = (both.latency.mean, slow.latency.mean);
        add(&mut both, &slow);
        assert!((both.latency.mean - (a + 3.0 * b) / 4.0).abs() < 1e-9);
        let all: f64 = both.leaves.iter().map(|l| l.all.share).sum();
        assert!(
            (all + both.not_followed - 1.0).abs() < 1e-6,
            "{all} and {}",
            both.not_followed
        );
        let seconds: f64 = both.leaves.iter().map(|l| l.all.seconds).sum();
        assert!((seconds / all - both.latency.mean).abs() < 1e-9);
        let locked = both
            .leaves
            .iter()
            .find(|l| l.blocker == Some(Blocker::thread("stress")))
            .unwrap();
        assert!(
            (locked.slow.seconds - 0.75 * 520e-6).abs() < 1e-9 && locked.all.low <= locked.all.high
        );
    }
}
