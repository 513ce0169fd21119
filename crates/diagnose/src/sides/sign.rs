//! What tells a cause from its neighbours, as it was found, and the kinds of parts that several causes move.

use fingerpost_record::place::Kind;
use fingerpost_record::{Component, Evidence, Layer};

/// What says so.
pub type Told = Vec<Evidence>;

/// What a discriminator found.
#[derive(Clone, Debug, PartialEq)]
pub enum Sign {
    /// What tells this cause from its neighbours is there.
    Fits(Told),
    /// It is there by the middle of a count's interval, and may not be by the whole: that makes likely, and nobody
    /// confirmed.
    Perhaps(Told),
    /// What would have to be there is not: a fact about the cause, which excludes it whatever its part of the change.
    Against(Told),
    /// What it takes did not grow, or too little, by the middle of an interval: that clears it with the whole interval
    /// alone. The seconds of a transaction by which the places where it acts grew at most, where they tell it.
    NotGrown(Told, Option<f64>),
    /// Nothing was observed on both sides that would tell.
    Unknown,
}

impl Sign {
    /// Whether what tells the cause from its neighbours is there, surely or by a middle value.
    pub fn speaks(&self) -> bool {
        matches!(self, Sign::Fits(_) | Sign::Perhaps(_))
    }

    /// The same with something more.
    pub(crate) fn and(mut self, more: impl IntoIterator<Item = Evidence>) -> Sign {
        if let Sign::Fits(told)
        | Sign::Perhaps(told)
        | Sign::Against(told)
        | Sign::NotGrown(told, _) = &mut self
        {
            told.extend(more);
        }
        self
    }
}

/// The server's own code.
pub(crate) fn user(layer: Layer, part: &Component) -> bool {
    Kind::of(layer, part) == Kind::UserCode
}

/// The kernel on the server's behalf.
pub(crate) fn kernel(layer: Layer, part: &Component) -> bool {
    matches!(
        Kind::of(layer, part),
        Kind::Kernel | Kind::Faults | Kind::Syncs
    )
}

/// All that a CPU does.
pub(crate) fn on_cpu(layer: Layer, part: &Component) -> bool {
    user(layer, part) || kernel(layer, part) || Kind::of(layer, part) == Kind::Host
}
