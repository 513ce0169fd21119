//! What the leaves of followed requests come to, place by place.

use std::collections::BTreeMap;

use fingerpost_record::paths::{Leaf, Share};
pub use fingerpost_record::place::{Kind, Place};
use fingerpost_record::{Blocker, Component, Link, Paths};

/// What all leaves of one place come to, of all requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sum {
    /// Their share. Its interval is as wide as all of theirs together: how they move together is not known.
    pub share: Share,
    /// Who had it, with the share of each, the largest first. Threads of one name are one.
    pub whom: Vec<(Blocker, f64)>,
    /// The chains by which requests came there, with the share of each, the largest first; those without a link are
    /// left out.
    pub chains: Vec<((Vec<Link>, Component), f64)>,
}

/// All places of followed requests.
pub type Places = BTreeMap<Place, Sum>;

/// Sums the leaves by place.
pub fn places(paths: &Paths) -> Places {
    let mut places = Places::new();
    for leaf in &paths.leaves {
        let sum = places.entry(Place::of(leaf)).or_default();
        add(&mut sum.share, &leaf.all);
        note(
            &mut sum.whom,
            leaf.blocker.as_ref().map(Blocker::by_name),
            leaf.all.share,
        );
        let chain = (!leaf.chain.is_empty()).then(|| (leaf.chain.clone(), leaf.component().1));
        note(&mut sum.chains, chain, leaf.all.share);
    }
    for sum in places.values_mut() {
        sum.whom.sort_by(|a, b| b.1.total_cmp(&a.1));
        sum.chains.sort_by(|a, b| b.1.total_cmp(&a.1));
    }
    places
}

/// Seconds of one request of a class: what the shares of its leaves are shares of. 0 where it has none.
pub(crate) fn whole(paths: &Paths, class: fn(&Leaf) -> &Share) -> f64 {
    let largest = paths
        .leaves
        .iter()
        .map(class)
        .max_by(|a, b| a.share.total_cmp(&b.share));
    largest
        .filter(|s| s.share > 0.0)
        .map_or(0.0, |s| s.seconds / s.share)
}

/// Adds a share to another; its ends are those of the two together.
pub fn add(to: &mut Share, share: &Share) {
    to.seconds += share.seconds;
    to.share += share.share;
    to.low += share.low;
    to.high = (to.high + share.high).min(1.0);
}

fn note<T: PartialEq>(list: &mut Vec<(T, f64)>, what: Option<T>, share: f64) {
    let Some(what) = what.filter(|_| share > 0.0) else {
        return;
    };
    match list.iter_mut().find(|known| known.0 == what) {
        Some(known) => known.1 += share,
        None => list.push((what, share)),
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Layer;
    use fingerpost_record::paths::older;

    use super::*;

    fn leaf(layer: Layer, component: &str, whom: &str, chain: &[&str]) -> Leaf {
        let share = Share {
            seconds: 1e-3,
            share: 0.1,
            low: 0.08,
            high: 0.12,
        };
        let (class, side, blocker, chain) = older::read(layer, component, whom, chain);
        Leaf {
            class,
            side,
            blocker,
            chain,
            all: share,
            middle: share,
            slow: share,
        }
    }

    #[test]
    fn places_are_summed_with_who_had_them_and_by_which_chain() {
        let leaves = vec![
            leaf(Layer::Scheduler, "waiting for a CPU", "stress", &[]),
            leaf(Layer::Scheduler, "waiting for a CPU", "stress", &["lock"]),
            leaf(Layer::Scheduler, "waiting for a CPU", "backup", &["lock"]),
        ];
        let found = places(&Paths {
            leaves,
            ..Paths::default()
        });
        let sum = &found[&Place::CpuOther];
        assert!((sum.share.share - 0.3).abs() < 1e-9 && (sum.share.low - 0.24).abs() < 1e-9);
        assert_eq!(
            (&sum.whom[0].0, &sum.chains[0].0),
            (
                &Blocker::thread("stress"),
                &(vec![Link::Lock], Component::Cpu)
            )
        );
    }
}
