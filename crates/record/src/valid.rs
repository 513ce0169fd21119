//! What a run may say, and what becomes of a run of our own that says otherwise.

use std::borrow::Cow;

use crate::findings::{Budget, Finding, Observation};
use crate::host::{Host, Load};
use crate::load::{MAX_ROWS, MAX_TEXT};
use crate::measurement::{Measurement, Outcome, Process};
use crate::paths;
use crate::run::Run;
use crate::text::clean_short;

/// Says what in a run cannot be, if anything.
pub fn validate(run: &Run) -> Result<(), String> {
    valid_id(&run.id)?;
    if !run.duration_s.is_finite() || run.duration_s < 0.0 {
        return Err(format!("“duration_s” is {}", run.duration_s));
    }
    let i = &run.instrument;
    finite("instrument", [i.clock_ns, i.resolution_ns, i.loop_ns])?;
    valid_host(&run.host)?;
    if run.measurements.len() > MAX_ROWS {
        return Err(format!("it has {} measurements, more than {MAX_ROWS}", run.measurements.len()));
    }
    for (i, m) in run.measurements.iter().enumerate() {
        valid_row(m).map_err(|what| format!("measurements[{i}] ({}): {what}", clean_short(&m.probe, 60)))?;
    }
    for (i, o) in run.observations.iter().enumerate() {
        valid_observation(o).map_err(|what| format!("observations[{i}]: {what}"))?;
    }
    for (i, b) in run.budgets.iter().enumerate() {
        valid_budget(b).map_err(|what| format!("budgets[{i}]: {what}"))?;
    }
    paths::valid::valid(&run.paths)?;
    for (i, f) in run.findings.iter().enumerate() {
        valid_finding(f).map_err(|what| format!("findings[{i}]: {what}"))?;
    }
    Ok(())
}

/// An id becomes a file name, so it may hold letters, digits, `-`, `_`, `.` and `:` only and must start with a letter or digit.
/// It must not be `latest`, which names another run every day.
pub fn valid_id(id: &str) -> Result<(), String> {
    let ok = !id.is_empty()
        && id.len() <= 100
        && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id != "latest";
    if ok { Ok(()) } else { Err(format!("“{}” cannot be the id of a run", clean_short(id, 40))) }
}

fn finite(what: &str, values: impl IntoIterator<Item = f64>) -> Result<(), String> {
    if values.into_iter().all(f64::is_finite) { Ok(()) } else { Err(format!("{what} has a value that is not a number")) }
}

fn valid_host(host: &Host) -> Result<(), String> {
    let load = |l: &Load| [l.average[0], l.average[1], l.average[2], l.steal, l.steal_seconds];
    finite("host", load(&host.before))?;
    finite("host", host.after.iter().flat_map(load))?;
    finite("host", host.cpu.mhz.into_iter().chain(host.cgroup.cpu_quota))
}

fn valid_row(m: &Measurement) -> Result<(), String> {
    if m.probe.is_empty() || m.probe.len() > 200 {
        return Err("the probe's name is empty or too long".into());
    }
    if m.reason.as_ref().is_some_and(|r| r.len() > MAX_TEXT) {
        return Err("the reason is too long".into());
    }
    if let Some(e) = &m.estimate {
        finite("the estimate", [e.value, e.low, e.high, e.confidence])?;
        if e.low > e.value || e.value > e.high {
            return Err(format!("the estimate {} lies outside its interval {} to {}", e.value, e.low, e.high));
        }
        if !(e.confidence > 0.0 && e.confidence < 1.0) {
            return Err(format!("a confidence of {} is not between 0 and 1", e.confidence));
        }
    }
    if let Some(p) = &m.percentiles {
        finite("a percentile", [p.p50, p.p90, p.p99])?;
    }
    match m.outcome {
        Outcome::Measured if m.estimate.is_none() => return Err("it is “measured” and has no estimate".into()),
        Outcome::Untrusted | Outcome::Skipped | Outcome::Failed if m.reason.is_none() => {
            return Err("it is not “measured” and gives no reason".into());
        }
        _ => {}
    }
    m.processes.iter().try_for_each(valid_process)
}

fn valid_process(p: &Process) -> Result<(), String> {
    finite("a process", p.samples.iter().chain(p.value.iter()).chain(p.counters.values()).copied())?;
    if p.disturbed.iter().any(|i| *i as usize >= p.samples.len()) {
        return Err("a disturbed sample does not exist".into());
    }
    Ok(())
}

fn valid_observation(o: &Observation) -> Result<(), String> {
    let points = o.series.iter().flat_map(|s| s.points.iter().flat_map(|p| [p.0, p.1]));
    finite("it", points.chain(o.totals.values().copied()).chain([o.self_cost]))
}

fn valid_budget(b: &Budget) -> Result<(), String> {
    let parts = b.parts.iter().flat_map(|p| [p.seconds_per_transaction, p.share]);
    finite("it", parts.chain([b.unexplained, b.seconds_per_transaction]))
}

fn valid_finding(f: &Finding) -> Result<(), String> {
    finite("it", [f.share])
}

/// The run as it can be written and read again.
///
/// JSON has no word for a value that is not a number: a run that holds one would be written and could never be read. Measuring
/// should not make one; where it does, the row becomes `failed` with that reason (other parts are left out, and a doubt says
/// so), and everything else is kept.
pub(crate) fn storable(run: &Run) -> Cow<'_, Run> {
    if validate(run).is_ok() {
        return Cow::Borrowed(run);
    }
    let mut run = run.clone();
    for m in &mut run.measurements {
        if let Err(what) = valid_row(m) {
            let reason = format!("the figure was dropped: {what}");
            *m = Measurement::without_figure(&m.probe, m.version, m.params.clone(), m.unit, m.better, Outcome::Failed, reason);
        }
    }
    let mut dropped = Vec::new();
    keep("an observation", &mut run.observations, valid_observation, &mut dropped);
    keep("a budget", &mut run.budgets, valid_budget, &mut dropped);
    keep("what was followed of a step", &mut run.paths, paths::valid::one, &mut dropped);
    run.paths.truncate(paths::MOST_PATHS);
    keep("a finding", &mut run.findings, valid_finding, &mut dropped);
    run.host.doubts.extend(dropped);
    Cow::Owned(run)
}

fn keep<T>(what: &str, items: &mut Vec<T>, valid: impl Fn(&T) -> Result<(), String>, dropped: &mut Vec<String>) {
    items.retain(|item| match valid(item) {
        Ok(()) => true,
        Err(why) => {
            dropped.push(format!("{what} was left out of the record: {why}"));
            false
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_realistic_run_is_valid() {
        assert_eq!(validate(&fixture::run()), Ok(()));
    }

    #[test]
    fn each_impossible_statement_is_named_with_its_place() {
        type Spoil = fn(&mut Run);
        let cases: Vec<(&str, Spoil)> = vec![
            ("cannot be the id", |r| r.id = "../../etc/passwd".into()),
            ("cannot be the id", |r| r.id = "latest".into()),
            ("duration_s", |r| r.duration_s = -1.0),
            ("host", |r| r.host.before.steal = f64::NAN),
            ("instrument", |r| r.instrument.loop_ns = f64::INFINITY),
            ("measurements[0]", |r| r.measurements[0].estimate.as_mut().unwrap().low = 1e9),
            ("measurements[0]", |r| r.measurements[0].estimate = None),
            ("measurements[0]", |r| r.measurements[0].outcome = Outcome::Skipped),
            ("measurements[1]", |r| r.measurements[1].processes[0].disturbed = vec![9_999]),
            ("measurements[1]", |r| r.measurements[1].processes[0].samples[0] = f64::NAN),
            ("measurements[1]", |r| r.measurements[1].percentiles.as_mut().unwrap().p99 = f64::NAN),
            ("the probe's name", |r| r.measurements[1].probe.clear()),
        ];
        for (expected, spoil) in cases {
            let mut run = fixture::run();
            spoil(&mut run);
            let message = validate(&run).expect_err(expected);
            assert!(message.contains(expected), "{message} should name {expected}");
        }
    }

    #[test]
    fn a_value_that_is_not_a_number_costs_its_row_and_not_the_run() {
        let mut run = fixture::run();
        run.measurements[1].processes[0].samples[0] = f64::NAN;
        run.findings.push(Finding {
            cause: "cpu.quota".into(),
            layer: crate::Layer::Scheduler,
            status: crate::Status::Suspected,
            share: f64::INFINITY,
            evidence: vec![],
        });
        let stored = storable(&run);
        assert_eq!(validate(&stored), Ok(()));
        assert_eq!(stored.measurements[1].outcome, Outcome::Failed);
        assert!(stored.measurements[1].reason.as_ref().unwrap().contains("not a number"));
        assert_eq!(stored.measurements[2], run.measurements[2]);
        assert!(stored.findings.is_empty());
        assert!(stored.host.doubts.iter().any(|d| d.contains("a finding was left out")));
    }
}
