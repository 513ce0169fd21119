//! Everything slower in proportion: the CPU's speed, its mitigations, or the host under a guest.

use crate::causes::cause;
use crate::thresholds::{MORE_STOLEN_SECONDS, MOST_OF_ROWS, PART_OF_WORK, SAME_COUNTERS};
use fingerpost_record::cause::id;
use fingerpost_record::{Evidence, Finding, Layer, Metric, Status};

use super::groups::Group;
use super::seen::Verdict;
use super::view::{Item, View};
use crate::hosts::TASK_MITIGATIONS;
use crate::steps::KnownSide;

/// Judges the proportional causes and accounts for their part of every row.
pub(super) fn judge(view: &mut View, total: f64) -> Vec<Finding> {
    let rows: Vec<&Item> = view
        .items
        .iter()
        .filter(|i| i.group == Group::CPU)
        .collect();
    // Another build of the arithmetic says nothing of who computes it.
    let built_anew = rows.iter().any(|i| !i.row.changes.is_empty());
    if rows.is_empty() || (built_anew && view.machines.same_processor != Some(false)) {
        return by_clock(view, total).into_iter().collect();
    }
    let slower: Vec<&Item> = rows.iter().copied().filter(|i| i.slower).collect();
    if 2 * slower.len() <= rows.len() {
        let by_work = view.machines.same_processor == Some(false)
            && slower.len() as f64 >= PART_OF_WORK.value * rows.len() as f64;
        if !by_work {
            return not_the_cpu(view, &rows, slower.len());
        }
        let evidence = by_the_work(view, &rows, &slower);
        let share = view.claim(|i| if i.group == Group::CPU { i.left } else { 0.0 }) / total;
        return vec![Finding::new(
            id::CPU_SPEED,
            Layer::Cpu,
            Status::Likely,
            share,
            evidence,
        )];
    }
    let mut logs: Vec<f64> = slower.iter().map(|i| i.log).collect();
    logs.sort_by(f64::total_cmp);
    let factor = logs[logs.len() / 2];
    let (name, reason) = which(view, &slower);
    let followers: Vec<&Item> = view
        .items
        .iter()
        .filter(|i| i.group != Group::CPU && !i.row.descriptor.waits_for_device)
        .collect();
    let following = followers.iter().filter(|i| i.log > factor / 2.0).count();
    let certain = following as f64 >= MOST_OF_ROWS.value * followers.len() as f64;
    let mut evidence = vec![
        view.figure(Metric::UserProbes, slower.len())
            .out_of(rows.len() as f64),
        Evidence::figure(Metric::UserProbesMedian, factor.exp_m1()),
        Evidence::figure(Metric::RowsMoveWith, following as f64).out_of(followers.len() as f64),
    ];
    evidence.extend(slower.iter().take(2).map(|i| i.row.fact()));
    evidence.extend(reason);
    let told = [
        "processor",
        "clock",
        "governor",
        "turbo",
        "microcode",
        "mitigations",
        TASK_MITIGATIONS,
        "virtualisation",
        "CPU quota",
    ];
    evidence.extend(view.host_clues(&told));
    let cpu_rows = view.claim(|i| if i.group == Group::CPU { i.left } else { 0.0 });
    let rest = view.claim(|i| {
        if i.row.descriptor.waits_for_device {
            0.0
        } else {
            factor
        }
    });
    let status = if certain && !built_anew {
        Status::Confirmed
    } else {
        Status::Likely
    };
    let layer = cause(name).map_or(Layer::Cpu, |entry| entry.layer);
    vec![Finding::new(
        name,
        layer,
        status,
        (cpu_rows + rest) / total,
        evidence,
    )]
}

fn not_the_cpu(view: &View, rows: &[&Item], slower: usize) -> Vec<Finding> {
    let resolved = rows
        .iter()
        .filter(|i| i.row.verdict != Verdict::Unresolved)
        .max_by(|a, b| a.log.total_cmp(&b.log));
    let Some(worst) = resolved else {
        return Vec::new();
    };
    let mut evidence = vec![match slower {
        0 => Evidence::of(Metric::ArithmeticSame),
        _ => view
            .figure(Metric::UserProbes, slower)
            .out_of(rows.len() as f64),
    }];
    evidence.push(worst.row.fact());
    vec![Finding::new(
        id::CPU_SPEED,
        Layer::Cpu,
        Status::RuledOut,
        0.0,
        evidence,
    )]
}

/// What two processors are told apart by where neither is ahead in most of the work.
fn by_the_work(view: &View, rows: &[&Item], slower: &[&Item]) -> Vec<Evidence> {
    let apart = |i: &&&Item| matches!(i.row.verdict, Verdict::Slower | Verdict::Faster);
    let others = rows
        .iter()
        .filter(apart)
        .count()
        .saturating_sub(slower.len());
    let mut evidence = vec![
        view.figure(Metric::UserProbes, slower.len())
            .out_of(rows.len() as f64),
        Evidence::figure(Metric::ProbesTheOtherWay, others as f64),
    ];
    evidence.extend(slower.iter().take(2).map(|i| i.row.fact()));
    evidence.extend(view.host_clues(&["processor", "clock"]));
    evidence
}

/// With no probe of the CPU, its clock rate is the best that is known, and only beside that of a processor of the same
/// model.
fn by_clock(view: &mut View, total: f64) -> Option<Finding> {
    let (slow, fast) = (view.slow.host.cpu.mhz?, view.fast.host.cpu.mhz?);
    // A clock rate says how fast a processor is beside another of its own kind only.
    if view.machines.same_processor != Some(true) || !(slow > 0.0 && fast > 0.0) {
        return None;
    }
    let base_first = if view.new_is_slow {
        [fast, slow]
    } else {
        [slow, fast]
    };
    let clock = Evidence::pair(Metric::ClockRate, base_first);
    if slow >= fast * (1.0 - SAME_COUNTERS.value) {
        return Some(Finding::ruled_out(id::CPU_SPEED, Layer::Cpu, clock));
    }
    let factor = (fast / slow).ln();
    let share = view.claim(|i| {
        if i.row.descriptor.waits_for_device {
            0.0
        } else {
            factor
        }
    }) / total;
    let evidence = vec![clock, Evidence::of(Metric::NothingElseOfCpus)];
    Some(Finding::new(
        id::CPU_SPEED,
        Layer::Cpu,
        Status::Likely,
        share,
        evidence,
    ))
}

/// Which of the proportional causes the counters and the hosts speak for.
fn which(view: &View, rows: &[&Item]) -> (&'static str, Vec<Evidence>) {
    let median = |name: &str| {
        let mut v: Vec<f64> = rows
            .iter()
            .filter_map(|i| i.row.counter_ratio(name))
            .map(|r| if view.new_is_slow { r } else { 1.0 / r })
            .collect();
        v.sort_by(f64::total_cmp);
        (!v.is_empty()).then(|| v[v.len() / 2])
    };
    let steal = |side: KnownSide| {
        side.host
            .after
            .as_ref()
            .map_or(0.0, |a| a.steal_seconds - side.host.before.steal_seconds)
    };
    let (slow, fast) = (steal(view.slow), steal(view.fast));
    let differs = |what: &[&str]| !view.host_clues(what).is_empty();
    let mitigations_alone =
        || differs(&["mitigations", TASK_MITIGATIONS]) && !differs(&["processor", "clock"]);
    let fact = |metric| vec![Evidence::of(metric)];
    let figure = |metric, value| vec![Evidence::figure(metric, value)];
    match (median("instructions_user"), median("cycles_user")) {
        (Some(instructions), _) if instructions > 1.0 + SAME_COUNTERS.value => {
            (id::APP_WORK, figure(Metric::Instructions, instructions))
        }
        (Some(_), Some(cycles)) if cycles > 1.0 + SAME_COUNTERS.value => {
            (id::CPU_MITIGATION, figure(Metric::Cycles, cycles))
        }
        _ if slow > fast + MORE_STOLEN_SECONDS.value => {
            let base_first = if view.new_is_slow {
                [fast, slow]
            } else {
                [slow, fast]
            };
            let took = Evidence::pair(Metric::StolenSeconds, base_first);
            (id::HOST_STEAL, vec![took])
        }
        (Some(_), Some(_)) => (id::CPU_SPEED, fact(Metric::SameCounters)),
        _ if mitigations_alone() => (id::CPU_MITIGATION, fact(Metric::MitigationsDiffer)),
        _ => (id::CPU_SPEED, fact(Metric::NoCounters)),
    }
}
