//! `cpu.mitigation`: a CPU mitigation.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric, Status};

use super::parts::ON_CPU;
use crate::cause::Need::Reading;
use crate::cause::{Cause, Fault, TwoSides, Words};
use crate::facts::{Facts, sum};
use crate::hosts::TASK_MITIGATIONS;
use crate::judging::{Verdict, judged, part, ruled_out};
use crate::places::Place;
use crate::sides::clues::Clues;
use crate::sides::fitting::{ends, set_now};
use crate::sides::growth;
use crate::sides::sign::Sign::{self, Against, Fits, Unknown};
use crate::sides::sign::user;
use crate::thresholds::SLOWER_CODE;

pub(super) static CAUSE: Cause = Cause {
    name: id::CPU_MITIGATION,
    layer: Layer::Cpu,
    words: Words {
        label: "speculation mitigations",
        slower: "a CPU mitigation",
        takes: None,
        tells: "user code takes longer too, and the speculation status of the tasks or the host differs",
        remedy: "weigh whether this task (prctl) or host (kernel parameters) needs the mitigation",
    },
    places: &[Place::User, Place::Kernel, Place::Making],
    moves: ON_CPU,
    probes: &[],
    needs: &[Reading(name::SERVER_STORE_BYPASS_MITIGATED)],
    follows: &[],
    told_from: &[],
    thresholds: &[SLOWER_CODE],
    one_side: Some(one_side),
    two_sides: Some(TwoSides::of_parts(8, two_sides)),
    experiments: &[],
    fault: Some(Fault::NoStoreBypass),
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let mitigated = [
        name::SERVER_STORE_BYPASS_MITIGATED,
        name::SERVER_INDIRECT_BRANCH_MITIGATED,
    ]
    .map(|name| f.known(name));
    let on = sum(mitigated)?;
    let mut evidence = vec![Evidence::figure(Metric::TaskMitigations, on)];
    if on <= 0.0 {
        return ruled_out(evidence);
    }
    let code = [Place::User, Place::Kernel, Place::Making];
    evidence.extend(part(f, &code, Metric::SlowedCode));
    let mut v = judged(f, f.share(CAUSE.places), true, true, evidence)?;
    if v.status == Status::Confirmed {
        v.status = Status::Likely;
    }
    // How much of the code's time it costs is not known.
    v.share = 0.0;
    Some(v)
}

fn two_sides(clues: &Clues) -> Sign {
    let mut differs = clues
        .fast()
        .host_clues(&clues.slow(), &["mitigations", TASK_MITIGATIONS]);
    let tasks = [
        (
            name::SERVER_STORE_BYPASS_MITIGATED,
            "speculative store bypass",
        ),
        (
            name::SERVER_INDIRECT_BRANCH_MITIGATED,
            "indirect branch speculation",
        ),
    ];
    for (name, words) in tasks {
        differs.extend(
            set_now(clues, name)
                .then(|| Evidence::of(Metric::TaskMitigationOnSlowerSide).named(words)),
        );
    }
    if differs.is_empty() && tasks.iter().all(|(name, _)| clues.total(*name).is_none()) {
        return Unknown;
    }
    let Some(fact) = differs.first() else {
        return Against(vec![Evidence::of(Metric::SameMitigations)]);
    };
    let on_user = clues.parts(user);
    let told = vec![
        Evidence::figure(Metric::UserCodeTimes, on_user.ratio()),
        fact.clone(),
    ];
    if on_user.ratio() > SLOWER_CODE.value {
        return Fits(told);
    }
    growth::against(
        told,
        ends(clues, user).map(|[_, high]| high <= SLOWER_CODE.value),
    )
}
