//! What time goes to, as facts: what it is, and who had what was waited for. Its words are the report's.

use fingerpost_record::paths::Leaf;
use fingerpost_record::{Blocker, Component, Layer, Paths};
use serde::Serialize;

use super::places::Place;

/// What time goes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Doing {
    /// The part of a budget.
    pub component: Component,
    /// Of a wait for a disk, whose I/O was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
    /// Who had what was waited for, the one with most of it first; nobody where that is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub whom: Vec<Blocker>,
    /// Whether others than these had it, too.
    pub others: bool,
}

/// Whose I/O a wait for a disk was for, or what held it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behind {
    /// It was held back before the queue.
    Held,
    /// Others' in the queue before it.
    Queue,
    /// Others' in the device beside it.
    Beside,
}

impl Behind {
    fn of(leaf: &Leaf) -> Option<Behind> {
        match Place::of(leaf) {
            Place::DiskHeld => Some(Behind::Held),
            Place::DiskBehindOthers => Some(Behind::Queue),
            Place::DiskBesideOthers => Some(Behind::Beside),
            _ => None,
        }
    }
}

impl Doing {
    /// Of a part, with who had what was waited for in the leaf that has most of it.
    pub fn of(component: &Component, leaf: Option<&Leaf>) -> Doing {
        let blocker = leaf.and_then(|l| l.blocker.as_ref());
        Doing {
            component: component.clone(),
            behind: leaf
                .filter(|_| *component == Component::Disk)
                .and_then(Behind::of),
            whom: blocker.map(Blocker::by_name).into_iter().collect(),
            others: false,
        }
    }

    /// Of a leaf.
    pub fn of_leaf(leaf: &Leaf) -> Doing {
        Doing::of(&Place::of(leaf).component(leaf).1, Some(leaf))
    }

    /// Of a part of followed requests. Where several processes had what was waited for, it is not put down to the first
    /// of them alone: the two with the largest weight are named, and that there are others.
    pub fn of_part(
        paths: &Paths,
        layer: Layer,
        component: &Component,
        weight: impl Fn(&Leaf) -> f64,
    ) -> Doing {
        let of_part: Vec<&Leaf> = paths
            .leaves
            .iter()
            .filter(|l| Place::of(l).component(l) == (layer, component.clone()))
            .collect();
        let mut sums: Vec<(Option<Blocker>, f64)> = Vec::new();
        for leaf in &of_part {
            let blocker = leaf.blocker.as_ref().map(Blocker::by_name);
            match sums.iter_mut().find(|(known, _)| *known == blocker) {
                Some((_, sum)) => *sum += weight(leaf),
                None => sums.push((blocker, weight(leaf))),
            }
        }
        sums.sort_by(|a, b| b.1.total_cmp(&a.1));
        let Some((first, sum)) = sums.first() else {
            return Doing::of(component, None);
        };
        let largest = of_part
            .iter()
            .copied()
            .filter(|l| l.blocker.as_ref().map(Blocker::by_name) == *first)
            .max_by(|a, b| weight(a).total_cmp(&weight(b)));
        let all: f64 = sums.iter().map(|(_, sum)| sum.max(0.0)).sum();
        if *sum >= NEARLY_ALL * all || first.is_none() {
            return Doing::of(component, largest);
        }
        let named: Vec<(&Blocker, f64)> = sums
            .iter()
            .filter(|(_, sum)| *sum > (1.0 - NEARLY_ALL) * all)
            .filter_map(|(blocker, sum)| Some((blocker.as_ref()?, *sum)))
            .filter(|(blocker, _)| **blocker != Blocker::Idle)
            .take(2)
            .collect();
        let rest = all - named.iter().map(|(_, sum)| sum).sum::<f64>();
        let others = rest > (1.0 - NEARLY_ALL) * all;
        if others && named.is_empty() {
            return Doing::of(component, None);
        }
        // Some CPU that idled is not what all of them had.
        let largest = largest.filter(|l| l.blocker != Some(Blocker::Idle));
        Doing {
            whom: named
                .iter()
                .map(|(blocker, _)| (*blocker).clone())
                .collect(),
            others,
            ..Doing::of(component, largest)
        }
    }
}

/// From this share on, one process is told as having had all that was waited for.
const NEARLY_ALL: f64 = 0.9;
