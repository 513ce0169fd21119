//! `kernel.trace`: somebody who traces or audits the server.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use super::parts::KERNEL;
use crate::cause::Need::Reading;
use crate::cause::{Cause, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, at_most_likely, judged, part, ruled_out};
use crate::places::Place;
use crate::sides::clues::Clues;
use crate::sides::growth::Pair;
use crate::sides::sign::Sign::{self, Against, Fits, Unknown};

pub(super) static CAUSE: Cause = Cause {
    name: id::KERNEL_TRACE,
    layer: Layer::Kernel,
    words: Words {
        label: "tracing and auditing",
        slower: "somebody who traces or audits the server",
        takes: None,
        tells: "a tracer is attached to the server, audit rules are loaded, trace events or tracers are on, or others' programs trace",
        remedy: "end the tracer, unload the audit rules, or switch the trace events off",
    },
    places: &[Place::Kernel, Place::Making],
    moves: KERNEL,
    probes: &[],
    needs: &[
        Reading(name::SERVER_TRACED),
        Reading(name::AUDIT_RULES),
        Reading(name::TRACING_EVENTS),
        Reading(name::TRACING_PROGRAMS),
    ],
    follows: &[],
    told_from: &[],
    thresholds: &[],
    one_side: Some(one_side),
    two_sides: Some(TwoSides::of_parts(9, two_sides)),
    experiments: &[],
    fault: None,
};

/// Somebody who traces or audits the server, or all of the machine: each of its calls, switches or functions then does
/// work for them.
fn one_side(f: &Facts) -> Option<Verdict> {
    let events = f
        .known(name::TRACING_EVENTS)
        .zip(f.known(name::TRACING_TRACERS));
    let watched = [
        (f.known(name::SERVER_TRACED), Metric::TracedProcesses),
        (f.known(name::AUDIT_RULES), Metric::AuditRules),
        (events.map(|on| on.0), Metric::TraceEvents),
        (events.map(|on| on.1), Metric::Tracers),
        (f.known(name::TRACING_PROGRAMS), Metric::TracingPrograms),
    ];
    let on = watched.iter().any(|(n, _)| n.is_some_and(|n| n > 0.0));
    // Where some of it could not be seen, nothing clears it.
    if !on && watched.iter().any(|(n, _)| n.is_none()) {
        return None;
    }
    let mut evidence: Vec<Evidence> = watched
        .iter()
        .filter_map(|(n, metric)| Some(Evidence::figure(*metric, (*n)?)))
        .collect();
    if !on {
        return ruled_out(evidence);
    }
    evidence.extend(part(
        f,
        &[Place::Kernel, Place::Making],
        Metric::TracedKernel,
    ));
    at_most_likely(
        judged(f, f.share(CAUSE.places), true, true, evidence),
        Metric::TracingNeedsComparison,
    )
}

/// What traces or audits on the slower side only. Where some of it is not known of both, nothing speaks against it.
fn two_sides(clues: &Clues) -> Sign {
    let watched = [
        (name::SERVER_TRACED, Metric::TracedProcesses),
        (name::AUDIT_RULES, Metric::AuditRules),
        (name::TRACING_EVENTS, Metric::TraceEvents),
        (name::TRACING_TRACERS, Metric::Tracers),
        (name::TRACING_PROGRAMS, Metric::TracingPrograms),
    ];
    let known: Vec<(Pair, Metric)> = watched
        .iter()
        .filter_map(|(name, metric)| Some((clues.total(*name)?, *metric)))
        .collect();
    match known.iter().find(|(pair, _)| pair.slow > pair.fast) {
        Some((pair, metric)) => Fits(vec![clues.told(*metric, *pair)]),
        None if known.len() < watched.len() => Unknown,
        None => Against(vec![Evidence::of(Metric::NoTracing)]),
    }
}
