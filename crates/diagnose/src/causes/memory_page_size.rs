//! `memory.page_size`: small pages.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Change, Evidence, Layer, Metric, Status};

use crate::cause::Need::Reading;
use crate::cause::{Cause, Fault, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::Verdict;
use crate::places::Kind;
use crate::sides::clues::Clues;
use crate::sides::fitting::{grows, set_now};
use crate::sides::sign::Sign::{self, Against, Unknown};
use crate::thresholds::MORE_OF_A_COUNT;

pub(super) static CAUSE: Cause = Cause {
    name: id::MEMORY_PAGE_SIZE,
    layer: Layer::Memory,
    words: Words {
        label: "page size",
        slower: "small pages",
        takes: None,
        tells: "huge pages on one side only, and more faults on the other",
        remedy: "switch transparent huge pages on for the server, or reserve huge pages",
    },
    places: &[],
    moves: &[Kind::Memory, Kind::UserCode, Kind::Faults],
    probes: &[],
    needs: &[Reading(name::SERVER_FAULTS_MINOR)],
    follows: &[],
    told_from: &[],
    thresholds: &[MORE_OF_A_COUNT],
    one_side: Some(one_side),
    two_sides: Some(TwoSides::of_parts(6, two_sides)),
    experiments: &[Change::HugePages],
    fault: Some(Fault::NoHugePages),
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let faults = Evidence::figure(Metric::MinorFaults, f.each(name::SERVER_FAULTS_MINOR)?);
    Some(Verdict {
        status: Status::NotObserved,
        share: 0.0,
        evidence: vec![faults, Evidence::of(Metric::PageSizeNeedsComparison)],
        told_of: None,
    })
}

fn two_sides(clues: &Clues) -> Sign {
    let mut facts = clues
        .fast()
        .host_clues(&clues.slow(), &["transparent huge pages"]);
    let off = set_now(clues, name::SERVER_THP_DISABLED)
        || clues
            .total(name::THP_ALWAYS)
            .is_some_and(|p| p.slow < p.fast);
    facts.extend((facts.is_empty() && off).then(|| Evidence::of(Metric::HugePagesOnFasterSide)));
    match (
        grows(
            clues,
            name::SERVER_FAULTS_MINOR,
            MORE_OF_A_COUNT.value,
            Metric::MinorFaults,
        ),
        facts.first(),
    ) {
        (sign, Some(fact)) if sign.speaks() => sign.and([fact.clone()]),
        // Misses of the TLB without more faults are what small pages cost a server that keeps its memory; nothing
        // counts them.
        (_, Some(_)) => Unknown,
        (_, None)
            if clues.total(name::SERVER_THP_DISABLED).is_none()
                && clues.total(name::THP_ALWAYS).is_none() =>
        {
            Unknown
        }
        (_, None) => Against(vec![Evidence::of(Metric::SameHugePages)]),
    }
}
