//! `memory.swap_place`: another placement of swap.

use fingerpost_record::Layer;
use fingerpost_record::cause::id;

use crate::cause::{Cause, Words};

pub(super) static CAUSE: Cause = Cause {
    name: id::MEMORY_SWAP_PLACE,
    layer: Layer::Memory,
    words: Words {
        label: "placement of swap",
        slower: "another placement of swap",
        takes: None,
        tells: "the same applications launched with swap in another place",
        remedy: "put swap on the device with which the launches were faster",
    },
    places: &[],
    moves: &[],
    probes: &[],
    needs: &[],
    follows: &[],
    told_from: &[],
    thresholds: &[],
    one_side: None,
    two_sides: None,
    experiments: &[],
    fault: None,
};
