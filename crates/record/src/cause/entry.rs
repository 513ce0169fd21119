//! An entry of the registry: a cause and what its verdict needs.

use super::thresholds::{MOST_OF_GROUP, Threshold, WORTH_NAMING};
use crate::findings::Layer;
use crate::place::{Kind, Place};

/// A cause.
#[derive(Debug)]
pub struct Cause {
    /// Its name, as findings have it.
    pub name: &'static str,
    /// The layer.
    pub layer: Layer,
    /// What a table of suspects calls it.
    pub label: &'static str,
    /// What a headline calls it on the slower side.
    pub words: &'static str,
    /// The places of followed requests where it acts.
    pub places: &'static [Place],
    /// The probes whose rows point to it and to nothing else, by name; `random.*` is all of a family.
    pub probes: &'static [&'static str],
    /// The parts of a budget that it moves.
    pub moves: &'static [Kind],
    /// What tells it from its neighbours, in words.
    pub tells: &'static str,
    /// What a verdict needs.
    pub needs: &'static [Need],
    /// The causes that this one may be no more than a consequence of: more work for the same CPUs makes threads wait
    /// for them.
    pub follows: &'static [&'static str],
    /// The figures that its verdict turns on.
    pub thresholds: &'static [Threshold],
}

/// What a verdict cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Followed requests.
    Followed,
    /// A reading.
    Reading(&'static str),
}

/// A cause by its name, its layer, what a table of suspects calls it and what a headline does, with what is said of
/// most.
pub(super) const fn named(name: &'static str, layer: Layer, label: &'static str, words: &'static str) -> Cause {
    let needs = &[Need::Followed];
    Cause {
        name,
        layer,
        label,
        words,
        places: &[],
        probes: &[],
        moves: &[],
        tells: "",
        needs,
        follows: &[],
        thresholds: &[],
    }
}

/// A cause that the rows of a family of probes point to: its `probes`, or a group that `fingerpost-diagnose` has a rule
/// for.
pub(super) const fn of_probes(name: &'static str, layer: Layer, words: &'static str) -> Cause {
    Cause {
        tells: "the rows of its probes change, and others do not",
        needs: &[],
        thresholds: &[WORTH_NAMING, MOST_OF_GROUP],
        ..named(name, layer, words, words)
    }
}

impl Cause {
    /// Whether it moves a part of a budget.
    pub fn moves(&self, layer: Layer, component: &str) -> bool {
        self.moves.contains(&Kind::of(layer, component))
    }
}
