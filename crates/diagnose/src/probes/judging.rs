//! The common factor of a comparison of probes alone.
//!
//! Three models are fitted in turn to the logarithms of the ratios, each to what the ones before it left over:
//!
//! 1. **The CPU**: everything slower in proportion. Its factor is that of the user-mode probes, else that of the
//!    clocks.
//! 2. **Entry**: every system call slower by a like amount. The amount is that of the null call.
//! 3. **Groups**: what is left in the probes of one subsystem.
//!
//! Before them comes what was changed on purpose (`super::changed`), and what is the same on both sides is not blamed
//! (`super::machines`).
//!
//! A cause's share is the part of the slow-down, summed over the slower rows on the logarithmic scale, that it accounts
//! for; the rows of one probe weigh one together. Faster rows are judged by the same rules turned round.

use crate::thresholds::{LIKE_ENTRIES, MOST_OF_GROUP, MOST_OF_ROWS, WORTH_NAMING};
use fingerpost_record::cause::id;
use fingerpost_record::descriptor::NULL_CALL;
use fingerpost_record::{Evidence, Exercises, Finding, Layer, Metric, Observation, Status};

use super::groups::{Group, causes};
use super::seen::{Clients, Compared, Verdict};
use super::view::{Item, View};
use super::{changed, cpu, machines};
use crate::sides;

/// How many calls it takes to say that they pay alike.
const LEAST_CALLS: usize = 3;

/// The causes in order, those ruled out last, and the share that is left unexplained.
pub fn judge(compared: &Compared) -> (Vec<Finding>, f64) {
    let mut view = View::of(compared);
    let total = view.total();
    if total <= 0.0 {
        return (Vec::new(), 0.0);
    }
    let mut findings = cpu::judge(&mut view, total);
    let changed = changed::judge(&mut view, total);
    machines::other_processor(&mut view, total, &mut findings);
    let cpu_ruled_out = cpu_is_out(&findings, &view);
    findings.extend(entry(&mut view, total, cpu_ruled_out));
    for (group, _) in causes() {
        findings.extend(of_group(&mut view, group, total, cpu_ruled_out));
    }
    findings.extend(scaling(&mut view, compared.curves, total));
    findings.extend(paging(&view));
    let of_a_row = |o: &Observation| {
        view.items
            .iter()
            .any(|i| i.row.probe.split('.').next() == Some(&o.workload))
    };
    findings.extend(sides::watched::clear(view.slow, of_a_row));
    let left: f64 = view
        .items
        .iter()
        .filter(|i| i.slower)
        .map(|i| i.left.max(0.0) * i.weight)
        .sum();
    // Between two processors or two systems nobody knows how much of a change is the change's.
    let untold = changed.is_some() && view.machines.differ().is_some();
    let processors = changed.is_some() && view.machines.same_processor == Some(false);
    let of_both =
        |f: &Finding| processors && f.status == Status::Likely && f.cause == id::CPU_SPEED;
    findings.retain(|f| {
        f.status == Status::RuledOut
            || f.share >= WORTH_NAMING.value
            || f.cause == id::MEMORY_PAGING
    });
    findings
        .iter_mut()
        .filter(|f| of_both(f))
        .for_each(|f| f.share = 0.0);
    sides::order(&mut findings);
    // What was changed is named before any hardware, also where its share is not known.
    findings.splice(
        0..0,
        changed.filter(|f| f.share >= WORTH_NAMING.value || untold),
    );
    (findings, (left / total).clamp(0.0, 1.0))
}

/// Whether the CPU can be ruled out: it was looked at and ruled out, or both sides have the same one and no probe speaks
/// of it.
fn cpu_is_out(findings: &[Finding], view: &View) -> bool {
    let same = view.slow.host.cpu.model == view.fast.host.cpu.model;
    findings.iter().all(|f| f.status == Status::RuledOut) && (same || !findings.is_empty())
}

/// Every system call slower by a like amount.
fn entry(view: &mut View, total: f64, cpu_ruled_out: bool) -> Option<Finding> {
    let null = view.items.iter().find(|i| i.row.probe == NULL_CALL)?;
    if !null.slower {
        let ruled_out = null.row.verdict != Verdict::Unresolved;
        return ruled_out
            .then(|| Finding::ruled_out(id::SYSCALL_ENTRY, Layer::Kernel, null.row.fact()));
    }
    if null.left <= view.threshold {
        return None;
    }
    let extra = null.slow - null.fast * (null.log - null.left).exp();
    let amounts = amounts(view, extra);
    let middle = amounts.get(amounts.len() / 2).copied()?;
    let like = amounts
        .iter()
        .filter(|a| **a > middle / LIKE_ENTRIES.value && **a < middle * LIKE_ENTRIES.value)
        .count();
    if amounts.len() < LEAST_CALLS
        || (like as f64) < MOST_OF_ROWS.value * amounts.len() as f64
        || middle <= 0.0
    {
        return None;
    }
    let mut evidence = vec![
        view.figure(Metric::CallsAlike, like)
            .out_of(amounts.len() as f64),
        Evidence::figure(Metric::EntryCost, middle),
        Evidence::figure(Metric::NullCallCost, extra),
        null.row.fact(),
    ];
    let settings = machines::KERNEL_SETTINGS[0];
    evidence.extend(
        view.host_clues(&[&["kernel", "operating system", "processor"], settings].concat()),
    );
    let claimed = view.claim(|item| {
        item.row.descriptor.entries.map_or(0.0, |n| {
            (n * extra / (item.fast * (item.log - item.left).exp())).ln_1p()
        })
    });
    let status = view.machines.most(if cpu_ruled_out {
        Status::Confirmed
    } else {
        Status::Likely
    });
    Some(Finding::new(
        id::SYSCALL_ENTRY,
        Layer::Kernel,
        status,
        claimed / total,
        evidence,
    ))
}

/// What each call that is fast enough to show this much costs more per entry, ascending; what the CPU explains is taken
/// out.
fn amounts(view: &View, extra: f64) -> Vec<f64> {
    let seen = 2.0 * view.threshold;
    let visible = |i: &&Item| {
        extra / i.fast > seen
            && matches!(i.group, Group::Part(Exercises::Syscall | Exercises::Signal))
    };
    let more = |i: &Item| {
        let explained = i.fast
            * if i.slower {
                (i.log - i.left).exp()
            } else {
                1.0
            };
        Some((i.slow - explained) / i.row.descriptor.entries?)
    };
    let mut amounts: Vec<f64> = view.items.iter().filter(visible).filter_map(more).collect();
    amounts.sort_by(f64::total_cmp);
    amounts
}

/// What is left in the probes of one subsystem.
fn of_group(view: &mut View, group: Group, total: f64, cpu_ruled_out: bool) -> Option<Finding> {
    let cause = group.cause()?;
    let all: Vec<&Item> = view.items.iter().filter(|i| i.group == group).collect();
    let slower = all.iter().filter(|i| i.slower).count();
    if slower == 0 {
        let worst = all
            .iter()
            .max_by(|a, b| a.log.total_cmp(&b.log))
            .filter(|i| i.row.verdict != Verdict::Unresolved)?;
        let none = view
            .figure(Metric::NoRowOfGroup, 0)
            .out_of(all.len() as f64);
        return Some(Finding::new(
            cause.name,
            cause.layer,
            Status::RuledOut,
            0.0,
            vec![none, worst.row.fact()],
        ));
    }
    let all_rows = all.len();
    let mut rows: Vec<&Item> = all
        .into_iter()
        .filter(|i| i.slower && i.left > view.threshold)
        .collect();
    rows.sort_by(|a, b| b.left.total_cmp(&a.left));
    if rows.is_empty() {
        return None;
    }
    let (name, fact) = named(view, group, cause.name);
    let mut evidence = vec![
        view.figure(Metric::RowsOfGroup, slower)
            .out_of(all_rows as f64)
            .named(group.words()?),
    ];
    evidence.extend(rows.iter().take(4).map(|i| i.row.fact()));
    evidence.extend(fact);
    // The same code of a kernel costs something else on another processor: a reader is to know that it may be that.
    evidence.extend(view.host_clues(&["processor"]));
    let threshold = view.threshold;
    let claimed = view.claim(|i| {
        if i.group == group && i.left > threshold {
            i.left
        } else {
            0.0
        }
    });
    // Most of the group, and no proportional factor that could be behind it.
    let most = slower as f64 >= MOST_OF_GROUP.value * all_rows as f64;
    let status = if cpu_ruled_out && most {
        Status::Confirmed
    } else {
        Status::Likely
    };
    let kernels = matches!(group, Group::Part(Exercises::Memory | Exercises::Storage));
    let status = if kernels {
        status
    } else {
        view.machines.most(status)
    };
    Some(Finding::new(
        name,
        cause.layer,
        status,
        claimed / total,
        evidence,
    ))
}

/// A fact of the hosts can give a group's cause its name.
fn named(view: &View, group: Group, cause: &'static str) -> (&'static str, Option<Evidence>) {
    let differs = |what: &[&str]| view.host_clues(what).into_iter().next();
    match group {
        Group::Part(Exercises::Fault) => match differs(&["transparent huge pages"]) {
            Some(fact) => (id::MEMORY_PAGE_SIZE, Some(fact)),
            None => (cause, None),
        },
        Group::Part(Exercises::Clock) => (cause, differs(&["clock source"])),
        Group::Part(Exercises::Storage) => (cause, differs(&["file system", "mount options"])),
        Group::Part(Exercises::Process) => (cause, differs(&["kernel", "C library"])),
        _ => (cause, differs(&["kernel"])),
    }
}

/// A server that collapses with clients on one system and not on the other: nothing that one transaction costs explains
/// it. On one and the same kernel it is nothing below the program.
fn scaling(view: &mut View, curves: &[Clients], total: f64) -> Option<Finding> {
    if view.machines.same_kernel {
        return None;
    }
    let mut evidence = Vec::new();
    let mut probes = Vec::new();
    for curve in curves {
        let [Some(from), None] =
            view.slow_first(curve.base_collapses_from, curve.new_collapses_from)
        else {
            continue;
        };
        let (first, last) = (curve.points.first()?, curve.points.last()?);
        let (one, many, clients) = (
            view.slow_first(first.1, first.2),
            view.slow_first(last.1, last.2),
            last.0,
        );
        let (probe, [slow, fast]) = (curve.probe, [view.slow.name, view.fast.name]);
        let collapses = Evidence::figure(Metric::CollapsesFrom, from as f64);
        evidence.push(collapses.named(probe).among([slow]));
        for (side, [one, many]) in [(slow, [one[0], many[0]]), (fast, [one[1], many[1]])] {
            evidence.push(
                Evidence::pair(Metric::ThroughputByClients, [one, many])
                    .out_of(clients as f64)
                    .named(probe)
                    .among([side]),
            );
        }
        evidence.extend(
            entries_needed(view, one, many, clients)
                .into_iter()
                .flatten(),
        );
        probes.push((probe, one[0] / one[1]));
    }
    if probes.is_empty() {
        return None;
    }
    evidence.push(Evidence::of(Metric::ScalesElsewhere));
    // What one client costs more is not the collapse's; only what comes on top of it is.
    let claimed = view.claim(|i| {
        let one = probes.iter().find(|(probe, _)| *probe == i.row.probe);
        one.map_or(0.0, |(_, at_one)| i.log + at_one.ln().min(0.0))
    });
    Some(Finding::new(
        id::KERNEL_SCALING,
        Layer::Kernel,
        Status::Likely,
        claimed / total,
        evidence,
    ))
}

/// The test by unit costs: how many entries into the kernel would make a transaction as much longer as it is, given
/// what each costs more. What a transaction does is the same however many clients there are; so the entries that one
/// client's difference leaves room for are the most that it can make, and what they cost is the most that slower
/// entries explain of the difference under many clients. Throughput is told as the slow and the fast side's; with it a
/// transaction's share of one CPU's time, which on more CPUs is more and needs more entries.
fn entries_needed(
    view: &View,
    one: [f64; 2],
    last: [f64; 2],
    clients: i64,
) -> Option<[Evidence; 4]> {
    let null = view.items.iter().find(|i| i.row.probe == NULL_CALL)?;
    let each = (null.slow - null.fast) * 1e-9;
    let longer = |[slow, fast]: [f64; 2]| 1.0 / slow - 1.0 / fast;
    let (alone, under_load) = (longer(one).max(0.0), longer(last));
    if each <= 0.0 || !under_load.is_finite() || under_load <= alone {
        return None;
    }
    let clients = clients as f64;
    let each_ns = each * 1e9;
    Some([
        Evidence::pair(Metric::LongerByClients, [alone, under_load]).out_of(clients),
        Evidence::figure(Metric::NullCallCost, each_ns),
        Evidence::pair(
            Metric::EntriesNeeded,
            [alone, under_load].map(|seconds| seconds / each),
        )
        .out_of(clients),
        Evidence::figure(Metric::ExplainedByEntries, alone / under_load).out_of(clients),
    ])
}

/// A program whose time changes together with its page-ins.
fn paging(view: &View) -> Option<Finding> {
    let paged = view
        .items
        .iter()
        .find(|i| i.slower && i.row.probe.ends_with(".pageins"))?;
    let family = paged.row.probe.split('.').next()?.to_owned();
    let others = view
        .items
        .iter()
        .filter(|i| i.row.probe.starts_with(&family) && i.row.probe != paged.row.probe);
    let (all, slower) = others.fold((0, 0), |(all, slower), i| {
        (all + 1, slower + u32::from(i.slower))
    });
    if 2 * slower <= all {
        return None;
    }
    let evidence = vec![
        paged.row.fact(),
        Evidence::figure(Metric::RowsMoveWith, f64::from(slower))
            .out_of(f64::from(all))
            .named(family),
        Evidence::of(Metric::ShareNotKnown),
    ];
    Some(Finding::new(
        id::MEMORY_PAGING,
        Layer::Memory,
        Status::Likely,
        0.0,
        evidence,
    ))
}
