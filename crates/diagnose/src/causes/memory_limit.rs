//! `memory.limit`: too little memory.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use crate::cause::Need::{Followed, Reading};
use crate::cause::{Cause, Fault, TwoSides, Words};
use crate::counts;
use crate::facts::{Facts, sum};
use crate::judging::{LIKELY, Verdict, doubted, judged, part, reaches, ruled_out};
use crate::one_side::pages::{pages_in, reads_again};
use crate::places::{Kind, Place};
use crate::sides::clues::Clues;
use crate::sides::fitting::grows;
use crate::sides::sign::Sign::{self, Fits, NotGrown, Perhaps};
use crate::thresholds::{MAJOR_FAULTS, MEMORY_PRESSURE, MORE_OF_A_COUNT, PAGES_SWAPPED};

pub(super) static CAUSE: Cause = Cause {
    name: id::MEMORY_LIMIT,
    layer: Layer::Memory,
    words: Words {
        label: "memory and paging",
        slower: "too little memory",
        takes: None,
        tells: "pages swapped in, reclaim, major faults, memory pressure",
        remedy: "raise the memory limit (memory.max), add memory, or hold less",
    },
    places: &[Place::Memory],
    moves: &[Kind::Memory, Kind::Faults],
    probes: &[],
    needs: &[Followed, Reading(name::MEMORY_SWAP_IN_PAGES)],
    follows: &[],
    told_from: &[],
    thresholds: &[
        MORE_OF_A_COUNT,
        PAGES_SWAPPED,
        MAJOR_FAULTS,
        MEMORY_PRESSURE,
    ],
    one_side: Some(one_side),
    two_sides: Some(TwoSides::of_parts(5, two_sides)),
    experiments: &[],
    fault: Some(Fault::LittleMemory),
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let swapped =
        sum([name::MEMORY_SWAP_IN_PAGES, name::MEMORY_SWAP_OUT_PAGES].map(|name| f.known(name)));
    let swapped = swapped.and_then(|n| f.per_second(n));
    let figure = |metric, value: Option<f64>| value.map(|value| Evidence::figure(metric, value));
    let limited = |(most, used): (f64, f64)| {
        [
            Evidence::figure(Metric::MemoryLimit, most),
            Evidence::figure(Metric::MemoryUsed, used / most.max(1.0)),
        ]
    };
    let limits = f
        .known(name::CGROUP_MEMORY_LIMIT_BYTES)
        .zip(f.known(name::CGROUP_MEMORY_USED_BYTES))
        .map(limited);
    let mut evidence: Vec<Evidence> = part(f, &[Place::Memory], Metric::MemoryWait)
        .into_iter()
        .chain(figure(Metric::PagesSwapped, swapped))
        .chain(figure(Metric::MajorFaults, f.major_per_s))
        .chain(figure(Metric::MemoryPressure, f.memory_pressure))
        .chain(limits.into_iter().flatten())
        .collect();
    if evidence.is_empty() {
        return None;
    }
    let pressure = f.memory_pressure.unwrap_or(0.0);
    let paging = swapped.is_some_and(|n| n > PAGES_SWAPPED.value) || pages_in(f);
    let share = if reads_again(f) {
        evidence.extend(part(f, &WITH_THE_DISK, Metric::MemoryAndDiskWait));
        f.share(&WITH_THE_DISK)
    } else {
        f.share(CAUSE.places)
    };
    // What was not read clears nobody.
    let read = swapped.is_some() && f.major_per_s.is_some();
    match judged(
        f,
        share,
        true,
        paging || pressure > LIKELY,
        evidence.clone(),
    ) {
        None if read => {
            // By the second: so many pages or faults of all of the time.
            let most = |rate: Option<f64>| {
                rate.map_or(0.0, |n| counts::interval_of_rate(n, f.elapsed_s)[1])
            };
            let doubt =
                reaches(Metric::PagesSwapped, most(swapped), PAGES_SWAPPED.value).or_else(|| {
                    let pressed = f
                        .memory_pressure
                        .is_some_and(|share| share > MEMORY_PRESSURE.value);
                    reaches(Metric::MajorFaults, most(f.major_per_s), MAJOR_FAULTS.value)
                        .filter(|_| pressed)
                });
            doubted(f, None, doubt, ruled_out(evidence))
        }
        verdict => verdict,
    }
}

/// Where the time of a request goes that lacks memory and waits for its pages.
const WITH_THE_DISK: [Place; 4] = [
    Place::Memory,
    Place::DiskOwn,
    Place::DiskBesideOthers,
    Place::DiskDevice,
];

fn two_sides(clues: &Clues) -> Sign {
    let mut signs = Vec::new();
    for (name, metric) in [
        (name::MEMORY_SWAP_IN_PAGES, Metric::PagesSwappedIn),
        (name::SERVER_FAULTS_MAJOR, Metric::MajorFaultsPerTransaction),
        (name::MEMORY_DIRECT_RECLAIM_PAGES, Metric::PagesReclaimed),
    ] {
        match grows(clues, name, MORE_OF_A_COUNT.value, metric) {
            fits @ Fits(_) => return fits,
            other => signs.push(other),
        }
    }
    match grows(
        clues,
        name::PSI_MEMORY_SOME_SECONDS,
        MORE_OF_A_COUNT.value,
        Metric::MemoryStalled,
    ) {
        fits @ Fits(_) => fits,
        // One that may have grown is not ruled out by another that did not.
        last => {
            let perhaps = signs.iter().position(|sign| matches!(sign, Perhaps(_)));
            let untold = signs.iter().position(|sign| matches!(sign, NotGrown(..)));
            perhaps
                .or(untold.filter(|_| !last.speaks()))
                .map_or(last, |at| signs.swap_remove(at))
        }
    }
}
