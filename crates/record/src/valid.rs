//! What a run may say, and what becomes of a run of our own that says otherwise.

use std::borrow::Cow;

use crate::bounds::{MAX_ROWS, MAX_TEXT};
use crate::descriptor::Descriptor;
use crate::evidence::{self, Evidence};
use crate::experiment::{Asked, Experiment, MOST_EXPERIMENTS, MOST_PAIRS};
use crate::findings::{Budget, Finding, Observation};
use crate::host::{Host, Load};
use crate::measurement::{Estimate, Measurement, Outcome, Process};
use crate::params::{Param, Params};
use crate::paths;
use crate::range::{
    MOST_BYTES, amounts, at_most, counts, each, finite, no_more, out_of_range, sizes,
};
use crate::run::Run;
use crate::text::clean_short;
use crate::under_way;

/// Says what in a run cannot be, if anything.
pub fn validate(run: &Run) -> Result<(), String> {
    valid_id(&run.id)?;
    if !(0.0..=MOST_SECONDS).contains(&run.duration_s) {
        return Err(format!("“duration_s” is {}", run.duration_s));
    }
    let i = &run.instrument;
    amounts("instrument", [i.clock_ns, i.resolution_ns, i.loop_ns])?;
    counts("instrument", [i.probe_resident_bytes])?;
    valid_host(&run.host)?;
    no_more("measurements", run.measurements.len(), MAX_ROWS)?;
    for (i, m) in run.measurements.iter().enumerate() {
        valid_row(m)
            .map_err(|what| format!("measurements[{i}] ({}): {what}", clean_short(&m.probe, 60)))?;
    }
    each("observations", &run.observations, valid_observation)?;
    each("budgets", &run.budgets, valid_budget)?;
    paths::valid::valid(&run.paths)?;
    no_more("under_way", run.under_way.len(), under_way::MOST_SERVICES)?;
    each("under_way", &run.under_way, under_way::valid)?;
    each("findings", &run.findings, valid_finding)?;
    no_more("experiments", run.experiments.len(), MOST_EXPERIMENTS)?;
    each("experiments", &run.experiments, valid_experiment)
}

/// An id becomes a file name, so it may hold letters, digits, `-`, `_`, `.` and `:` only and must start with a letter
/// or digit. It must not be `latest`, which names another run every day.
pub fn valid_id(id: &str) -> Result<(), String> {
    let ok = !id.is_empty()
        && id.len() <= 100
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id != "latest";
    if ok {
        Ok(())
    } else {
        Err(format!(
            "“{}” cannot be the id of a run",
            clean_short(id, 40)
        ))
    }
}

/// Seconds that a run can have taken: thirty years.
const MOST_SECONDS: f64 = 1e9;
/// Shares are of a time that other means measured: they can be beyond 1 and below 0, and not by this much.
const MOST_SHARE: f64 = 1e9;

/// Facts that a finding may have.
const MOST_FACTS: usize = 200;

/// A finding's share, and the numbers of its facts.
fn valid_finding(f: &Finding) -> Result<(), String> {
    shares([f.share])?;
    if f.evidence.len() > MOST_FACTS {
        return Err(format!("it has more than {MOST_FACTS} facts"));
    }
    for fact in &f.evidence {
        if let Some(n) = fact.numbers().find(|n| !evidence::is_number(*n)) {
            return Err(format!("a fact has the number {n}"));
        }
        valid_params(&fact.params)?;
    }
    Ok(())
}

/// Parameters: whole numbers in range.
fn valid_params(params: &Params) -> Result<(), String> {
    let numbers = params.iter().filter_map(|(_, value)| {
        if let Param::Int(n) = value {
            Some(n.unsigned_abs())
        } else {
            None
        }
    });
    at_most("a parameter", numbers, MOST_BYTES)
}

fn valid_host(host: &Host) -> Result<(), String> {
    let load = |l: &Load| {
        [
            l.average[0],
            l.average[1],
            l.average[2],
            l.steal,
            l.steal_seconds,
        ]
    };
    for l in [Some(&host.before), host.after.as_ref()]
        .into_iter()
        .flatten()
    {
        amounts("host", load(l))?;
        counts("host", [l.runnable])?;
    }
    amounts(
        "host",
        host.cpu.mhz.into_iter().chain(host.cgroup.cpu_quota),
    )?;
    let swap = host.swap.iter().flat_map(|s| [s.bytes, s.used_bytes]);
    sizes(
        "host",
        [host.memory_bytes, host.page_bytes]
            .into_iter()
            .chain(swap)
            .chain(host.cpu.caches.values().copied()),
    )
}

fn valid_row(m: &Measurement) -> Result<(), String> {
    if m.probe.is_empty() || m.probe.len() > 200 {
        return Err("the probe's name is empty or too long".into());
    }
    if m.reason.as_ref().is_some_and(|r| r.len() > MAX_TEXT) {
        return Err("the reason is too long".into());
    }
    m.descriptor.as_ref().map_or(Ok(()), Descriptor::validate)?;
    m.estimate.as_ref().map_or(Ok(()), valid_estimate)?;
    valid_params(&m.params)?;
    if let Some(p) = &m.percentiles {
        finite("a percentile", [p.p50, p.p90, p.p99])?;
    }
    match m.outcome {
        Outcome::Measured if m.estimate.is_none() => {
            return Err("it is “measured” and has no estimate".into());
        }
        Outcome::Untrusted | Outcome::Skipped | Outcome::Failed if m.reason.is_none() => {
            return Err("it is not “measured” and gives no reason".into());
        }
        _ => {}
    }
    m.processes.iter().try_for_each(valid_process)
}

fn valid_estimate(e: &Estimate) -> Result<(), String> {
    finite("the estimate", [e.value, e.low, e.high, e.confidence])?;
    if e.low > e.value || e.value > e.high {
        return Err(format!(
            "the estimate {} lies outside its interval {} to {}",
            e.value, e.low, e.high
        ));
    }
    if !(e.confidence > 0.0 && e.confidence < 1.0) {
        return Err(format!(
            "a confidence of {} is not between 0 and 1",
            e.confidence
        ));
    }
    Ok(())
}

fn valid_process(p: &Process) -> Result<(), String> {
    finite("a process", p.samples.iter().chain(p.value.iter()).copied())?;
    amounts("a process", p.counters.values().chain(&p.pace).copied())?;
    counts("a process", [p.batch])?;
    if p.disturbed.iter().any(|i| *i as usize >= p.samples.len()) {
        return Err("a disturbed sample does not exist".into());
    }
    Ok(())
}

fn valid_observation(o: &Observation) -> Result<(), String> {
    valid_params(&o.params)?;
    let points = o
        .series
        .iter()
        .flat_map(|s| s.points.iter().flat_map(|p| [p.0, p.1]));
    finite("a series", points)?;
    amounts("it", [o.self_cost])?;
    counts("it", [o.lost])?;
    o.totals
        .iter()
        .try_for_each(|(name, value)| valid_total(name, *value))
}

/// How the names of those totals end that are of either sign: differences and gaps are.
const SIGNED: [&str; 3] = ["gap", "change", "difference"];

fn valid_total(name: &str, value: f64) -> Result<(), String> {
    if out_of_range(value) || (value < 0.0 && !SIGNED.iter().any(|end| name.ends_with(end))) {
        return Err(format!("the total “{}” is {value}", clean_short(name, 60)));
    }
    Ok(())
}

fn valid_budget(b: &Budget) -> Result<(), String> {
    valid_params(&b.params)?;
    counts("it", [b.transactions])?;
    amounts("it", [b.seconds_per_transaction])?;
    amounts("a part", b.parts.iter().map(|p| p.seconds_per_transaction))?;
    shares(b.parts.iter().map(|p| p.share).chain([b.unexplained]))
}

fn valid_experiment(e: &Experiment) -> Result<(), String> {
    valid_params(&e.params)?;
    no_more("pairs of stretches", e.pairs.len(), MOST_PAIRS)?;
    if [&e.what, &e.workload]
        .into_iter()
        .chain(&e.tests)
        .chain(&e.reason)
        .any(|text| text.len() > MAX_TEXT)
    {
        return Err("a text is too long".into());
    }
    e.effect.as_ref().map_or(Ok(()), |effect| {
        valid_estimate(effect)?;
        amounts("the effect", [effect.low])
    })?;
    let stretch = |a: &Asked| {
        counts("a stretch", [a.requests])?;
        amounts("a stretch", [a.seconds].into_iter().chain(a.latency_ns))
    };
    e.pairs
        .iter()
        .try_for_each(|pair| stretch(&pair.base).and_then(|()| stretch(&pair.changed)))
}

fn shares(values: impl IntoIterator<Item = f64> + Clone) -> Result<(), String> {
    finite("it", values.clone())?;
    match values.into_iter().find(|v| v.abs() > MOST_SHARE) {
        Some(v) => Err(format!("a share of {v} is none")),
        None => Ok(()),
    }
}

/// The run as it can be written and read again.
///
/// JSON has no word for a value that is not a number: a run that holds one would be written and could never be read.
/// Measuring should not make one; where it does, the row becomes `failed` with that reason (other parts are left out,
/// and a doubt says so), and everything else is kept.
pub(crate) fn storable(run: &Run) -> Cow<'_, Run> {
    if validate(run).is_ok() {
        return Cow::Borrowed(run);
    }
    let mut run = run.clone();
    for m in &mut run.measurements {
        if let Err(what) = valid_row(m) {
            m.descriptor = m.descriptor.take().filter(|d| d.validate().is_ok());
            (m.outcome, m.reason) = (
                Outcome::Failed,
                Some(format!("the figure was dropped: {what}")),
            );
            (m.estimate, m.percentiles, m.processes) = (None, None, Vec::new());
        }
    }
    let mut dropped = Vec::new();
    for o in &mut run.observations {
        o.totals.retain(|name, value| {
            valid_total(name, *value)
                .map_err(|why| dropped.push(format!("a total was left out of the record: {why}")))
                .is_ok()
        });
    }
    keep(
        "an observation",
        &mut run.observations,
        valid_observation,
        &mut dropped,
    );
    keep("a budget", &mut run.budgets, valid_budget, &mut dropped);
    keep(
        "what was followed of a step",
        &mut run.paths,
        paths::valid::one,
        &mut dropped,
    );
    run.paths.truncate(paths::MOST_PATHS);
    keep(
        "what was under way",
        &mut run.under_way,
        under_way::valid,
        &mut dropped,
    );
    run.under_way.truncate(under_way::MOST_SERVICES);
    // What is no number of a fact is not known: the fact stays, and so does the finding.
    for f in &mut run.findings {
        f.evidence.iter_mut().for_each(Evidence::keep_numbers);
    }
    keep("a finding", &mut run.findings, valid_finding, &mut dropped);
    keep(
        "an experiment",
        &mut run.experiments,
        valid_experiment,
        &mut dropped,
    );
    run.experiments.truncate(MOST_EXPERIMENTS);
    run.host.doubts.extend(dropped);
    Cow::Owned(run)
}

fn keep<T>(
    what: &str,
    items: &mut Vec<T>,
    valid: impl Fn(&T) -> Result<(), String>,
    dropped: &mut Vec<String>,
) {
    items.retain(|item| {
        valid(item)
            .map_err(|why| dropped.push(format!("{what} was left out of the record: {why}")))
            .is_ok()
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

    fn described(key: &'static str, title: &'static str) -> Option<Descriptor> {
        Some(Descriptor::of(&crate::Table::new(key, title)))
    }

    fn with_experiment(spoil: fn(&mut Experiment)) -> Experiment {
        let mut experiment = fixture::experiment();
        spoil(&mut experiment);
        experiment
    }

    fn with_fact(fact: Evidence) -> Finding {
        let (layer, status) = (crate::Layer::Storage, crate::Status::Likely);
        Finding::new("storage.latency", layer, status, 0.2, vec![fact])
    }

    #[test]
    fn a_fact_that_is_no_number_costs_that_number_alone() {
        let mut run = fixture::run();
        run.findings = vec![with_fact(
            Evidence::figure(crate::Metric::ServerCpus, 1.0).within([0.0, f64::INFINITY]),
        )];
        let stored = storable(&run);
        assert_eq!(validate(&stored), Ok(()));
        let fact = &stored.findings[0].evidence[0];
        assert_eq!(
            (fact.value, fact.low, fact.high),
            (Some(1.0), Some(0.0), None)
        );
    }

    #[test]
    fn each_impossible_statement_is_named_with_its_place() {
        type Spoil = fn(&mut Run);
        let cases: Vec<(&str, Spoil)> = vec![
            ("cannot be the id", |r| r.id = "../../etc/passwd".into()),
            ("cannot be the id", |r| r.id = "latest".into()),
            ("duration_s", |r| r.duration_s = -1.0),
            ("duration_s", |r| r.duration_s = 1e300),
            ("instrument", |r| r.instrument.clock_ns = -1.0),
            ("host", |r| r.host.memory_bytes = u64::MAX),
            ("measurements[0]", |r| {
                r.measurements[0].params = Params::new().with("n", i64::MIN)
            }),
            ("so large", |r| {
                r.measurements[1].processes[0].samples[0] = 1e200
            }),
            ("so small", |r| {
                r.measurements[1].processes[0].samples[0] = -1e-200
            }),
            ("amount", |r| {
                r.measurements[1].processes[0].counters = [("x".into(), -1.0)].into()
            }),
            ("more than", |r| {
                r.measurements[1].processes[0].batch = u64::MAX
            }),
            ("the total “x.seconds” is -1", |r| {
                let mut o = fixture::with_everything().observations.remove(0);
                o.totals.insert("x.seconds".into(), -1.0);
                r.observations = vec![o];
            }),
            ("host", |r| r.host.before.steal = f64::NAN),
            ("instrument", |r| r.instrument.loop_ns = f64::INFINITY),
            ("measurements[0]", |r| {
                r.measurements[0].estimate.as_mut().unwrap().low = 1e9
            }),
            ("measurements[0]", |r| r.measurements[0].estimate = None),
            ("measurements[0]", |r| {
                r.measurements[0].outcome = Outcome::Skipped
            }),
            ("measurements[1]", |r| {
                r.measurements[1].processes[0].disturbed = vec![9_999]
            }),
            ("measurements[1]", |r| {
                r.measurements[1].processes[0].samples[0] = f64::NAN
            }),
            ("measurements[1]", |r| {
                r.measurements[1].percentiles.as_mut().unwrap().p99 = f64::NAN
            }),
            ("the probe's name", |r| r.measurements[1].probe.clear()),
            ("the key of its table", |r| {
                r.measurements[1].descriptor = described("a b", "A")
            }),
            ("the title of its table", |r| {
                r.measurements[1].descriptor = described("a", "")
            }),
            ("-1 times", |r| {
                r.measurements[1].descriptor = described("a", "A").map(|d| Descriptor {
                    entries: Some(-1.0),
                    ..d
                });
            }),
            ("system calls", |r| {
                r.measurements[1].descriptor = described("a", "A").map(|d| Descriptor {
                    calls: vec!["re ad".into()],
                    ..d
                });
            }),
            ("more than 32", |r| {
                r.experiments = vec![fixture::experiment(); 33]
            }),
            ("pairs of stretches", |r| {
                r.experiments = vec![with_experiment(|e| e.pairs = vec![e.pairs[0]; 101])]
            }),
            ("experiments[0]: the estimate", |r| {
                r.experiments = vec![with_experiment(|e| e.effect.as_mut().unwrap().low = 9.0)]
            }),
            ("amount", |r| {
                r.experiments = vec![with_experiment(|e| e.pairs[0].base.seconds = -1.0)]
            }),
            ("a fact has the number", |r| {
                let fact = Evidence::figure(crate::Metric::DiskBusy, 1e300);
                r.findings = vec![with_fact(fact)];
            }),
            ("more than 200 facts", |r| {
                let mut finding = with_fact(Evidence::of(crate::Metric::NotFollowed));
                finding.evidence = vec![finding.evidence[0].clone(); 201];
                r.findings = vec![finding];
            }),
            ("too long", |r| {
                r.experiments = vec![with_experiment(|e| e.what = "x".repeat(MAX_TEXT + 1))]
            }),
        ];
        for (expected, spoil) in cases {
            let mut run = fixture::run();
            spoil(&mut run);
            let message = validate(&run).expect_err(expected);
            assert!(
                message.contains(expected),
                "{message} should name {expected}"
            );
        }
    }

    #[test]
    fn a_value_that_is_not_a_number_costs_its_row_and_not_the_run() {
        let mut run = fixture::run();
        run.measurements[1].processes[0].samples[0] = f64::NAN;
        run.findings.push(Finding {
            cause: "cpu.quota".into(),
            layer: crate::Layer::Scheduler,
            status: crate::Status::Likely,
            share: f64::INFINITY,
            evidence: vec![],
            step: None,
            relation: None,
        });
        let stored = storable(&run);
        assert_eq!(validate(&stored), Ok(()));
        assert_eq!(stored.measurements[1].outcome, Outcome::Failed);
        assert!(
            stored.measurements[1]
                .reason
                .as_ref()
                .unwrap()
                .contains("not a number")
        );
        assert_eq!(stored.measurements[2], run.measurements[2]);
        assert!(stored.findings.is_empty());
        assert!(
            stored
                .host
                .doubts
                .iter()
                .any(|d| d.contains("a finding was left out"))
        );
    }
}
