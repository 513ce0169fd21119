//! `cpu.speed`: a slower CPU.

use fingerpost_record::Layer;
use fingerpost_record::cause::id;
use fingerpost_record::reading::name;

use super::parts::ON_CPU;
use crate::cause::Need::Followed;
use crate::cause::{Cause, TwoSides, Words};
use crate::places::Kind;
use crate::sides::clues::Clues;
use crate::sides::contention;
use crate::sides::fitting::{ends, told_of_another};
use crate::sides::growth::{self, Pair};
use crate::sides::sign::Sign::{self, Against, Fits};
use crate::sides::sign::{kernel, user};
use crate::sides::work::{and, build, client_spared, code_times, more_to_do, setting, together};
use crate::thresholds::{
    CLIENT_TOO, FEW_CALLS, FEW_FAULTS, IN_PROPORTION, MORE_TO_DO, MOST_OF_ROWS, PART_OF_WORK,
    SAME_COUNTERS, SLOWER_CODE,
};

pub(super) static CAUSE: Cause = Cause {
    name: id::CPU_SPEED,
    layer: Layer::Cpu,
    words: Words {
        label: "the CPU's speed",
        slower: "a slower CPU",
        takes: None,
        tells: "user code and the kernel take longer in proportion, with as much to do",
        remedy: "look at the frequency governor, power limits and temperature, or move to a faster processor",
    },
    places: &[],
    moves: ON_CPU,
    probes: &[],
    needs: &[Followed],
    follows: &[],
    told_from: &[],
    thresholds: &[
        SLOWER_CODE,
        IN_PROPORTION,
        CLIENT_TOO,
        MORE_TO_DO,
        FEW_CALLS,
        FEW_FAULTS,
        MOST_OF_ROWS,
        PART_OF_WORK,
        SAME_COUNTERS,
    ],
    one_side: None,
    two_sides: Some(TwoSides::of_parts(10, two_sides)),
    experiments: &[],
    fault: None,
};

fn two_sides(clues: &Clues) -> Sign {
    let (on_user, on_kernel) = (clues.parts(user), clues.parts(kernel));
    let proportion = (on_user.ratio(), on_kernel.ratio());
    let told = code_times(on_user, on_kernel);
    if let Some((more, surely)) = more_to_do(clues) {
        return growth::against(and(told, more), surely);
    }
    if !together(clues) {
        return growth::against(told, surely_apart(clues));
    }
    if let Some(others) = contention::slow_the_same_work(clues) {
        return told_of_another(others);
    }
    if let Some(spared) = client_spared(clues, proportion.0.min(proportion.1)) {
        return growth::against(and(told, spared), surely_spared(clues));
    }
    // Of one processor model only its clock could differ; another build or setting is named first.
    match build(clues).into_iter().chain(setting(clues)).next() {
        Some(changed) => Against(and(told, [changed])),
        None => Fits(told),
    }
}

/// Whether they do not, with their whole intervals; nothing where these are not known.
fn surely_apart(clues: &Clues) -> Option<bool> {
    let ([user_low, user_high], [kernel_low, kernel_high]) =
        (ends(clues, user)?, ends(clues, kernel)?);
    let out_of_proportion = IN_PROPORTION.value.exp();
    Some(
        user_high <= SLOWER_CODE.value
            || kernel_high <= SLOWER_CODE.value
            || user_low >= out_of_proportion * kernel_high
            || kernel_low >= out_of_proportion * user_high,
    )
}

/// Whether it is spared with whole intervals; nothing where these are not known. What it used of a CPU is counted over
/// all transactions.
fn surely_spared(clues: &Clues) -> Option<bool> {
    let server = ends(clues, user)?[0].min(ends(clues, kernel)?[0]);
    let counted = clues
        .per_transaction(name::CLIENT_CPU_SECONDS)
        .filter(|c| c.fast > 0.0)
        .map_or(f64::INFINITY, Pair::ratio);
    let client = counted.min(ends(clues, |layer, part| Kind::of(layer, part) == Kind::Client)?[1]);
    Some(client.ln() < server.ln() * CLIENT_TOO.value)
}
