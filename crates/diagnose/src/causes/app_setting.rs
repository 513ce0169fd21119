//! `app.setting`: another setting.

use fingerpost_record::Layer;
use fingerpost_record::cause::id;

use crate::cause::{Cause, Words};

pub(super) static CAUSE: Cause = Cause {
    name: id::APP_SETTING,
    layer: Layer::Application,
    words: Words {
        label: "a setting",
        slower: "another setting",
        takes: None,
        tells: "a parameter or variable that differs between the sides and moves the part that grew",
        remedy: "set it back; `compare --settle` measures what each makes alone",
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
