//! `app.calls`: more system calls per transaction.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use super::parts::KERNEL;
use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, TwoSides, Words};
use crate::places::Place;
use crate::sides::clues::Clues;
use crate::sides::fitting::told_of_another;
use crate::sides::flushes;
use crate::sides::growth::{self, Pair};
use crate::sides::sign::Sign::{self, Fits, NotGrown, Unknown};
use crate::sides::sign::kernel;
use crate::sides::work::round_trips;
use crate::thresholds::{MORE_CALLS, MORE_ROUND_TRIPS, MOST_BY_NUMBER};

pub(super) static CAUSE: Cause = Cause {
    name: id::APP_CALLS,
    layer: Layer::Application,
    words: Words {
        label: "how many system calls it makes",
        slower: "more system calls per transaction",
        takes: None,
        tells: "more system calls per request at the same cost each",
        remedy: "make fewer calls: larger buffers, several requests in one, files that are kept open",
    },
    places: &[Place::Kernel, Place::Making],
    moves: KERNEL,
    probes: &[],
    needs: &[Followed, Reading(name::SERVER_CALL_READ_COUNT)],
    // A socket that takes little at a time is written to more often.
    follows: &[id::APP_BUILD, id::APP_SETTING, id::NETWORK_SHAPING],
    told_from: &[],
    thresholds: &[MORE_CALLS, MORE_ROUND_TRIPS, MOST_BY_NUMBER],
    one_side: None,
    two_sides: Some(TwoSides {
        explained_by: &[id::STORAGE_DURABILITY],
        // A transaction of more round trips has more of everything.
        also: |c, _, _| round_trips(c).is_some(),
        ..TwoSides::of_parts(11, two_sides)
    }),
    experiments: &[],
    fault: None,
};

/// More calls at about the cost of each.
fn two_sides(clues: &Clues) -> Sign {
    if let Some(more) = round_trips(clues) {
        return Fits(vec![more]);
    }
    let (Some(calls), Some(count)) = (clues.calls_per_transaction(), clues.growth_of_calls())
    else {
        return Unknown;
    };
    if let Some(other) = flushes::journals(clues) {
        return told_of_another(other);
    }
    let on_kernel = clues.parts(kernel);
    let told = vec![
        clues.told(Metric::Calls, calls),
        Evidence::figure(Metric::KernelTimes, on_kernel.ratio()),
    ];
    let often = MORE_CALLS.value;
    // Slower calls besides are another's doing; a call's cost grows with what it moves, and so may a part of it.
    let at_same_cost = on_kernel.ratio() < calls.ratio() * often
        || by_number(clues).is_some_and(|part| part >= MOST_BY_NUMBER.value);
    match calls.ratio() > often && calls.slow > 1.0 {
        true if at_same_cost => {
            growth::fits(told, count.ratio()[0] > often && count.slow()[0] > 1.0)
        }
        // What each costs has an interval that the ratio of the kernel's time does not tell.
        true => NotGrown(told, None),
        false => growth::against(told, count.ratio()[1] <= often || count.slow()[1] <= 1.0),
    }
}

/// What part of the growth in the calls that both sides made their greater number makes, at what each cost on the
/// faster side.
fn by_number(clues: &Clues) -> Option<f64> {
    let of = |(call, seconds): (&str, Pair)| {
        let count = clues
            .per_transaction_as(&format!("server.call.{call}.count"))
            .filter(|c| c.fast > 0.0)?;
        Some((
            seconds.more(),
            (count.more() * seconds.fast / count.fast).clamp(0.0, seconds.more().max(0.0)),
        ))
    };
    let (grew, by_number) = clues
        .kernel_parts()
        .into_iter()
        .filter_map(of)
        .fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    (grew > 0.0).then(|| by_number / grew)
}
