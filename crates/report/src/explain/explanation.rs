//! What is known of one step or command.

use fingerpost_diagnose::check::{Check, check};
use fingerpost_diagnose::client::Beside;
use fingerpost_diagnose::mapped::mapped;
use fingerpost_diagnose::service::without_a_baseline;
use fingerpost_diagnose::slow::{SlowOnes, slow_ones};
use fingerpost_diagnose::threads::{State, threads};
use fingerpost_diagnose::{PROGRAMS, StepFigures, TOO_LITTLE_FOLLOWED, explain};
use fingerpost_record::under_way::UnderWay;
use fingerpost_record::{Budget, Experiment, Finding, Observation, Params, Paths, Readings};
use serde::Serialize;

use crate::evidence::Whose;
use crate::steps::Steps;
use crate::words::{clean, percent, time};

/// Everything that explains one step of a workload, or one command. Serialised as it stands, it is the JSON form.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The workload, or the command as it was given.
    pub workload: String,
    /// The step's parameters.
    pub params: Params,
    /// How it was seen, in a sentence.
    pub source: String,
    /// By how much tracing slowed the traced pass, where there was an untraced one, 0 to 1.
    pub gap: Option<f64>,
    /// Where the time went.
    pub budget: Budget,
    /// Requests that were followed, where they could be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Paths>,
    /// Requests of a service that had no answer yet, where that was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under_way: Option<UnderWay>,
    /// The slowest of them beside those in the middle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<SlowOnes>,
    /// They and the load generator's own account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    /// What a load generator on another machine saw of the service, where that was joined to the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Beside>,
    /// How soon the memory that it asked for was touched, as a sentence, where that was seen of enough mappings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapped: Option<String>,
    /// What the server's threads did, where no request could be followed, or too little of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<State>,
    /// Confirmed, likely, ruled out and not observed.
    pub findings: Vec<Finding>,
    /// What was changed to decide between causes, and what the requests said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<Experiment>,
    /// What observers saw.
    pub observations: Vec<Observation>,
}

impl Explanation {
    /// What the time that is explained is called.
    pub(crate) fn whose(&self) -> Whose {
        Whose::of_workload(&self.workload, programs(&self.observations))
    }

    /// What is known of a step or command, explained.
    pub fn new(
        workload: &str,
        params: &Params,
        figures: &StepFigures,
        paths: Option<&Paths>,
        observations: Vec<Observation>,
    ) -> Explanation {
        let totals = Readings::of(&observations);
        let (mut budget, findings) = explain(figures, &totals, paths);
        workload.clone_into(&mut budget.workload);
        budget.params = params.clone();
        let paths = paths.filter(|p| p.followed > 0);
        let findings = findings
            .into_iter()
            .map(|f| worded(f, workload, &totals))
            .collect();
        Explanation {
            workload: workload.to_owned(),
            params: params.clone(),
            source: paths.map_or_else(|| source(&observations), |p| p.source.clone()),
            gap: figures.gap(),
            budget,
            under_way: None,
            slow: paths.and_then(slow_ones),
            check: paths.and_then(check),
            client: None,
            mapped: mapped(&totals).map(|m| m.sentence),
            threads: if paths.is_some_and(|p| p.not_followed <= TOO_LITTLE_FOLLOWED) {
                Vec::new()
            } else {
                threads(&totals)
            },
            paths: paths.cloned(),
            findings,
            experiments: Vec::new(),
            observations,
        }
    }
}

/// Whether nothing was asked of a service: its time is that of its programs.
pub(crate) fn programs(observations: &[Observation]) -> bool {
    observations
        .iter()
        .any(|o| o.workload == WORKLOAD && o.totals.contains_key(PROGRAMS.as_str()))
}

/// How threads were seen.
pub fn source(observations: &[Observation]) -> String {
    observations
        .iter()
        .find(|o| o.observer == "threads")
        .map_or("no observer of threads".to_owned(), |o| o.source.clone())
}

/// The workload under which a record has a service.
pub const WORKLOAD: &str = "service";
/// What a record calls “server user code”.
pub(crate) const OWN_CODE: &str = "the program's own code";

/// A finding of a service: what only an earlier run of it could tell is not judged.
pub(super) fn worded(finding: Finding, workload: &str, totals: &Readings) -> Finding {
    if workload == WORKLOAD {
        without_a_baseline(finding, totals)
    } else {
        finding
    }
}

/// What the steps have alike, which is told once where they are shown below each other.
pub(crate) fn steps(explanations: &[Explanation]) -> Steps {
    Steps::of(
        explanations
            .iter()
            .map(|e| (e.workload.as_str(), &e.params)),
    )
}

/// The sentence about memory as a line of its own.
pub(crate) fn mapped_line(sentence: &str) -> String {
    format!("Memory that was asked for: {}.", clean(sentence))
}

/// How long what took, seen by whom, and what looking cost.
pub(crate) fn headline(e: &Explanation) -> String {
    let what = if e.paths.is_some()
        && e.budget.transactions == e.paths.as_ref().map_or(0, |p| p.followed)
    {
        "request"
    } else {
        "transaction"
    };
    let whole = if e.budget.transactions == 1 {
        format!("{} of wall time", time(e.budget.seconds_per_transaction))
    } else {
        format!(
            "{} per {what} over {} {what}s",
            time(e.budget.seconds_per_transaction),
            e.budget.transactions
        )
    };
    let unfollowed = if e.paths.is_none() && e.budget.parts.is_empty() {
        "; requests could not be followed: this is the threads' time"
    } else {
        ""
    };
    let gap = match e.gap {
        Some(gap) if gap < 0.0 => {
            format!(
                "; the traced pass was {} faster than the one without tracing: its cost is not known",
                percent(-gap)
            )
        }
        Some(gap) => format!("; tracing cost {}", percent(gap)),
        None => String::new(),
    };
    let cost: f64 = e.observations.iter().map(|o| o.self_cost).sum::<f64>()
        + e.paths.as_ref().map_or(0.0, |p| p.self_cost);
    let lost: u64 = e.observations.iter().map(|o| o.lost).sum();
    let lost = if lost > 0 {
        format!(", {lost} events lost")
    } else {
        String::new()
    };
    format!(
        "{whole}{unfollowed}; seen by {}{gap}; observing took {} of CPU{lost}",
        clean(&e.source),
        time(cost)
    )
}
