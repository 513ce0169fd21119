//! Why the slowest requests are slow: their budget beside that of the ones in the middle.

use fingerpost_record::paths::{Leaf, Paths, Share};
use fingerpost_record::{Component, Layer, WaitClass};
use serde::Serialize;

use super::doing::Doing;
use super::places::{Place, whole};

/// A part of the difference below this share is not worth a place in the sentence.
pub const WORTH_SAYING: f64 = 0.15;
/// Slowest requests that take less than this many times the median are no other requests.
const LIKE_THE_OTHERS: f64 = 1.3;

/// A component in the three classes of requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowPart {
    /// The layer.
    pub layer: Layer,
    /// The component, as a budget names it.
    pub component: Component,
    /// Seconds of a request, in the mean of all, and its share.
    pub all: Share,
    /// The same of the requests in the middle.
    pub middle: Share,
    /// The same of the slowest 1 %.
    pub slow: Share,
    /// Of the difference between slowest and middle, the share that this part makes up; negative where the slowest have
    /// less of it.
    pub of_difference: f64,
}

/// What the slowest requests take longer for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Longer {
    /// What it is, and who had what was waited for.
    pub doing: Doing,
    /// The share of the difference that it makes.
    pub of_difference: f64,
}

/// The slowest 1 % beside the middle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowOnes {
    /// Seconds of one of the slowest 1 %, in the mean.
    pub slow_seconds: f64,
    /// Seconds of one in the middle.
    pub middle_seconds: f64,
    /// Whether they are no other requests: they hardly take longer.
    pub like_the_others: bool,
    /// What makes most of the difference, the largest first; nothing where each part makes less than
    /// [`WORTH_SAYING`].
    pub longer: Vec<Longer>,
    /// The components, the largest difference first; what could not be followed is one of them.
    pub parts: Vec<SlowPart>,
}

/// The slowest requests beside those in the middle; nothing where none were followed.
pub fn slow_ones(paths: &Paths) -> Option<SlowOnes> {
    let (slow, middle, all) = (
        whole(paths, |l| &l.slow),
        whole(paths, |l| &l.middle),
        whole(paths, |l| &l.all),
    );
    if slow <= 0.0 || middle <= 0.0 {
        return None;
    }
    let mut parts: Vec<SlowPart> = Vec::new();
    for leaf in paths
        .leaves
        .iter()
        .filter(|l| l.class != WaitClass::NotFollowed)
    {
        let (layer, component) = Place::of(leaf).component(leaf);
        let at = parts
            .iter()
            .position(|p| p.layer == layer && p.component == component)
            .unwrap_or_else(|| {
                parts.push(SlowPart::none(layer, component));
                parts.len() - 1
            });
        parts[at].add(leaf);
    }
    parts.push(not_followed(&parts, [all, middle, slow]));
    let difference = slow - middle;
    for p in &mut parts {
        p.of_difference = if difference > 0.0 {
            (p.slow.seconds - p.middle.seconds) / difference
        } else {
            0.0
        };
    }
    parts.retain(|p| p.all.seconds + p.middle.seconds + p.slow.seconds > 0.0);
    parts.sort_by(|a, b| {
        (b.slow.seconds - b.middle.seconds).total_cmp(&(a.slow.seconds - a.middle.seconds))
    });
    Some(SlowOnes {
        slow_seconds: slow,
        middle_seconds: middle,
        like_the_others: slow / middle < LIKE_THE_OTHERS,
        longer: largest(paths, &parts),
        parts,
    })
}

impl SlowPart {
    fn none(layer: Layer, component: Component) -> SlowPart {
        let none = Share::default();
        SlowPart {
            layer,
            component,
            all: none,
            middle: none,
            slow: none,
            of_difference: 0.0,
        }
    }

    fn add(&mut self, leaf: &Leaf) {
        super::places::add(&mut self.all, &leaf.all);
        super::places::add(&mut self.middle, &leaf.middle);
        super::places::add(&mut self.slow, &leaf.slow);
    }
}

/// What is left of each class, which no leaf has.
fn not_followed(parts: &[SlowPart], wholes: [f64; 3]) -> SlowPart {
    let sums: [f64; 3] = parts.iter().fold([0.0; 3], |s, p| {
        [
            s[0] + p.all.share,
            s[1] + p.middle.share,
            s[2] + p.slow.share,
        ]
    });
    let rest = |i: usize| {
        // What adding floating-point numbers leaves is nothing that was measured.
        let share = Some(1.0 - sums[i])
            .filter(|rest: &f64| *rest > 1e-9)
            .unwrap_or(0.0);
        Share {
            seconds: share * wholes[i],
            share,
            low: share,
            high: share,
        }
    };
    SlowPart {
        all: rest(0),
        middle: rest(1),
        slow: rest(2),
        ..SlowPart::none(Layer::Application, Component::NotFollowed)
    }
}

/// What most of the difference goes to, largest first; nothing where the slowest are like the others, or where each
/// part is small.
fn largest(paths: &Paths, parts: &[SlowPart]) -> Vec<Longer> {
    parts
        .iter()
        .filter(|p| p.of_difference >= WORTH_SAYING)
        .take(2)
        .map(|p| Longer {
            doing: Doing::of_part(paths, p.layer, &p.component, |l| {
                l.slow.seconds - l.middle.seconds
            }),
            of_difference: p.of_difference,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Blocker;
    use fingerpost_record::fixture::followed;

    use super::*;

    #[test]
    fn the_slowest_are_told_with_what_they_wait_for() {
        let found = slow_ones(&followed::slow_locks().paths[0]).unwrap();
        let first = &found.longer[0];
        assert!(!found.like_the_others && first.of_difference >= WORTH_SAYING);
        assert_eq!(
            (&first.doing.component, &first.doing.whom[..]),
            (&Component::Lock, &[Blocker::thread("mariadbd")][..])
        );
        assert_eq!(found.parts[0].component, Component::Lock);
        for share in [
            |p: &SlowPart| p.all.share,
            |p: &SlowPart| p.middle.share,
            |p: &SlowPart| p.slow.share,
        ] {
            let sum: f64 = found.parts.iter().map(share).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        }
        let difference: f64 = found.parts.iter().map(|p| p.of_difference).sum();
        assert!((difference - 1.0).abs() < 1e-9, "{difference}");
    }

    #[test]
    fn requests_that_hardly_differ_are_not_blamed_on_anything() {
        let rows = [(
            Layer::Application,
            "server user code",
            "",
            &[][..],
            [100.0, 100.0, 120.0],
        )];
        let found = slow_ones(&followed::paths(&rows, 0.0)).unwrap();
        assert!(found.like_the_others);
        assert_eq!(slow_ones(&Paths::default()), None);
    }
}
