//! What the server is given of the CPUs, and what others have of them.

use fingerpost_record::paths::Share;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Metric};

use crate::facts::Facts;
use crate::judging::{mostly, part, told};
use crate::places::Place;
use crate::thresholds::{CPUS_IDLE, LOW_WEIGHT, MUCH_OF_CPUS, PERIODS_CUT};

/// Ready to run, whoever had the CPU.
pub(crate) const CPU: [Place; 5] = [
    Place::CpuOther,
    Place::CpuServer,
    Place::CpuClient,
    Place::CpuIdle,
    Place::CpuUnknown,
];

pub(crate) fn throttled(f: &Facts) -> bool {
    f.known(name::THROTTLE_SECONDS).is_some_and(|s| s > 0.0)
        && f.throttled_periods
            .is_none_or(|share| share >= PERIODS_CUT.value)
}

pub(crate) fn lowered(f: &Facts) -> bool {
    f.known(name::SERVER_NICE).is_some_and(|nice| nice > 0.0)
        || f.weight.is_some_and(|w| w < LOW_WEIGHT.value)
}

/// What speaks for other processes on the CPUs, whether by contention or by priority.
pub(crate) fn others(f: &Facts) -> (Option<Share>, bool, Vec<Evidence>) {
    let mut evidence: Vec<Evidence> = part(f, &[Place::CpuOther], Metric::CpuWaitOthers)
        .into_iter()
        .collect();
    evidence.extend(told(f.place(Place::CpuOther)));
    evidence.extend(f.other_cpus.map(|n| Evidence {
        name: mostly(f, "other.cpu.", ".seconds"),
        ..Evidence::figure(Metric::OtherCpus, n)
    }));
    let much = f
        .other_cpus
        .zip(f.cpus)
        .is_some_and(|(used, all)| used > MUCH_OF_CPUS.value * all);
    (
        f.share(&[Place::CpuOther]),
        much && f.idle.is_some_and(|idle| idle < CPUS_IDLE.value) && !throttled(f),
        evidence,
    )
}
