//! `app.build`: another build.

use fingerpost_record::Layer;
use fingerpost_record::cause::id;

use crate::cause::{Cause, Words};
use crate::places::Kind;

pub(super) static CAUSE: Cause = Cause {
    name: id::APP_BUILD,
    layer: Layer::Application,
    words: Words {
        label: "compiler, flags or version",
        slower: "another build",
        takes: None,
        tells: "the same machine, and a program of another compiler, flag or version",
        remedy: "build both sides alike, or keep the build that is faster",
    },
    places: &[],
    moves: &[Kind::UserCode],
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
