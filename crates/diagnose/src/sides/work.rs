//! What the server does for a transaction: whether it is more, and whether another program or setting does it.

use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Metric};

use super::clues::{Changed, Clues};
use super::fitting::set_now;
use super::growth::{Growth, Pair};
use super::sign::{Told, kernel, user};
use crate::entering::Entering;
use crate::places::Kind;
use crate::thresholds::{
    CLIENT_TOO, FEW_CALLS, FEW_FAULTS, IN_PROPORTION, MORE_ROUND_TRIPS, MORE_TO_DO, SLOWER_CODE,
    TOLD_BY_TICKS,
};

/// Whether user code and kernel take longer in proportion, and neither by nothing.
pub(crate) fn together(clues: &Clues) -> bool {
    let (on_user, on_kernel) = (clues.parts(user).ratio(), clues.parts(kernel).ratio());
    on_user > SLOWER_CODE.value
        && on_kernel > SLOWER_CODE.value
        && (on_user / on_kernel).ln().abs() < IN_PROPORTION.value
}

/// Another compiler or library on the same processor, or a parameter of the sides that names a build.
pub(crate) fn build(clues: &Clues) -> Option<Evidence> {
    let same_cpu = clues.fast().host.cpu.model == clues.slow().host.cpu.model;
    let differs = || {
        clues
            .fast()
            .host_clues(&clues.slow(), &["compilers", "C library"])
            .into_iter()
            .next()
    };
    let named = clues.changed.iter().find(|c| c.is_build).map(Changed::fact);
    named.or_else(|| differs().filter(|_| same_cpu))
}

/// A parameter or variable that differs between the sides and is no build.
pub(crate) fn setting(clues: &Clues) -> Option<Evidence> {
    clues
        .changed
        .iter()
        .find(|c| !c.is_build)
        .map(Changed::fact)
}

/// Page faults of the server per transaction.
pub(crate) fn faults(clues: &Clues) -> Option<Growth> {
    let minor = clues.per_transaction(name::SERVER_FAULTS_MINOR)?;
    let all = clues
        .per_transaction(name::SERVER_FAULTS_MAJOR)
        .map(|major| Pair::sum(minor, major));
    match all {
        Some(all) => clues.growth_of(all, &[name::SERVER_FAULTS_MINOR, name::SERVER_FAULTS_MAJOR]),
        None => clues.growth_of(minor, &[name::SERVER_FAULTS_MINOR]),
    }
}

/// Whether a count is so many times as large, and more than a few of a transaction: by its middle, and with its whole
/// interval.
pub(crate) fn more_than_few(count: &Growth, by: f64, few: f64) -> [bool; 2] {
    let middle = count.pair.ratio() > by && count.pair.slow > few;
    [
        middle,
        middle && count.ratio()[0] > by && count.slow()[0] > few,
    ]
}

/// What makes the CPU do more for a transaction, so that its longer time says nothing of its speed, and whether that is
/// so for sure.
pub(crate) fn more_to_do(clues: &Clues) -> Option<(Told, bool)> {
    if [
        name::SERVER_THP_DISABLED,
        name::SERVER_SECCOMP_FILTERS,
        name::SERVER_STORE_BYPASS_MITIGATED,
    ]
    .iter()
    .any(|name| set_now(clues, *name))
    {
        return Some((vec![Evidence::of(Metric::TaskSettingCosts)], true));
    }
    if let Some(more) = round_trips(clues) {
        return Some((vec![more], true));
    }
    let grew = |count: Option<Growth>, least: f64, metric: Metric| {
        let count = count?;
        let [middle, surely] = more_than_few(&count, MORE_TO_DO.value, least);
        middle.then(|| (vec![clues.told(metric, count.pair)], surely))
    };
    let (of_faults, of_calls) = (
        grew(faults(clues), FEW_FAULTS.value, Metric::Faults),
        grew(clues.growth_of_calls(), FEW_CALLS.value, Metric::Calls),
    );
    match (of_faults, of_calls) {
        (Some((_, false)), Some(calls @ (_, true))) => Some(calls),
        (of_faults, of_calls) => of_faults.or(of_calls),
    }
}

/// Round trips between client and server that a transaction makes more of on the slower side: each asks for the
/// server's work, its calls, and waits for CPUs and the network again.
pub(crate) fn round_trips(clues: &Clues) -> Option<Evidence> {
    let turns = clues
        .total(name::STEP_TURNS_PER_TRANSACTION)
        .filter(|t| t.fast >= 1.0 && t.ratio() > MORE_ROUND_TRIPS.value)?;
    Some(clues.told(Metric::RoundTrips, turns))
}

/// How many times as long user code takes, and the kernel.
pub(crate) fn code_times(user: Pair, kernel: Pair) -> Told {
    vec![
        Evidence::figure(Metric::UserCodeTimes, user.ratio()),
        Evidence::figure(Metric::KernelTimes, kernel.ratio()),
    ]
}

/// These facts and more of them.
pub(crate) fn and(told: Told, more: impl IntoIterator<Item = Evidence>) -> Told {
    told.into_iter().chain(more).collect()
}

/// The load generator does the same work for each transaction on both sides. Where it runs on the server's machine, a
/// slower CPU makes its work longer as well: where that grew by less than half as much (of the logarithms), the CPU is
/// not what the server's code suffers from. Its CPU time has interrupts and waking up in it, of which a server that
/// answers later makes more; what followed requests spend in its own code has neither, and tells as well where it is
/// known.
pub(crate) fn client_spared(clues: &Clues, server: f64) -> Option<Told> {
    let counted = clues.per_transaction(name::CLIENT_CPU_SECONDS);
    let followed = clues
        .followed()
        .then(|| clues.parts(|layer, part| Kind::of(layer, part) == Kind::Client));
    let known = [counted, followed]
        .into_iter()
        .flatten()
        .filter(|c| c.fast > 0.0 && c.slow > 0.0);
    let client = known.map(Pair::ratio).min_by(f64::total_cmp)?;
    let told = || {
        vec![
            Evidence::figure(Metric::ClientWorkTimes, client),
            Evidence::of(Metric::ClientNotSlowed),
        ]
    };
    (client.ln() < server.ln() * CLIENT_TOO.value).then(told)
}

/// Whether nothing tells filters that only the slower side has from the server's own code: they run before a call's
/// entry is traced, and ticks of user mode, which they are not, either are too few or did not grow with that code.
pub(crate) fn filters_are_untold(clues: &Clues) -> bool {
    let told = |[fast, slow]: [Entering; 2]| {
        slow.user - fast.user > TOLD_BY_TICKS.value * (slow.traced_user - fast.traced_user)
    };
    set_now(clues, name::SERVER_SECCOMP_FILTERS)
        && clues.followed()
        && !clues.entering.is_some_and(told)
}
