//! What one side, of one run or several, knows of its workload steps.

use std::collections::BTreeMap;

use fingerpost_record::paths::MOST_PATHS;
use fingerpost_record::reading::{Way, is_met};
use fingerpost_record::{
    Budget, Evidence, Experiment, Finding, Host, Metric, Observation, Params, Part, Paths, Run,
};

use crate::followed;
use crate::hosts::{self, HostDifference};

/// Workload steps that a side keeps. No experiment has as many; a hostile file that does must not cost quadratic time.
const MOST_STEPS: usize = 2_000;

/// The facts of a side's hosts ([`hosts::facts`]), in which a fact that varies among its runs holds every value.
pub type Facts = BTreeMap<&'static str, Vec<String>>;

/// Workload steps of one or several runs.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// Budgets, averaged over the runs.
    pub budgets: Vec<Budget>,
    /// Followed requests, all runs' together.
    pub paths: Vec<Paths>,
    /// What observers saw, totals averaged over the runs; the series are left out.
    pub observations: Vec<Observation>,
    /// Every run's findings.
    pub findings: Vec<Finding>,
    /// Every run's experiments.
    pub experiments: Vec<Experiment>,
    budget_runs: Vec<u32>,
    observation_runs: Vec<u32>,
}

/// A side as the judge sees it.
#[derive(Clone, Copy, Debug)]
pub struct KnownSide<'a> {
    /// What a sentence calls it.
    pub name: &'a str,
    /// Its host.
    pub host: &'a Host,
    /// What is known of its hosts.
    pub facts: &'a Facts,
    /// Its workload steps.
    pub steps: &'a Steps,
}

impl KnownSide<'_> {
    /// Whether a finding is of one of this side's steps.
    pub fn has_step_of(&self, finding: &Finding) -> bool {
        self.steps
            .budgets
            .iter()
            .any(|b| finding.is_of(&b.workload, &b.params))
    }

    /// The differences of the hosts in these facts, this side first.
    pub fn host_clues(&self, other: &KnownSide, what: &[&str]) -> Vec<Evidence> {
        let differences = hosts::differences(self.facts, other.facts)
            .into_iter()
            .filter(|d| what.contains(&d.what.as_str()));
        let told = |d: HostDifference| {
            Evidence::of(Metric::HostDiffers)
                .named(d.what)
                .changing(d.base, d.new)
                .among([self.name, other.name])
        };
        differences.map(told).collect()
    }
}

impl Steps {
    /// The steps of these runs.
    pub fn of(runs: &[Run]) -> Steps {
        let mut steps = Steps::default();
        runs.iter().for_each(|run| steps.add(run));
        steps
    }

    /// Adds the steps of a run.
    pub fn add(&mut self, run: &Run) {
        run.budgets.iter().for_each(|b| self.add_budget(b));
        run.paths.iter().for_each(|p| self.add_paths(p));
        run.observations
            .iter()
            .for_each(|o| self.add_observation(o));
        self.findings.extend(run.findings.iter().cloned());
        self.experiments.extend(run.experiments.iter().cloned());
    }

    fn add_budget(&mut self, budget: &Budget) {
        match self
            .budgets
            .iter()
            .position(|b| b.workload == budget.workload && b.params == budget.params)
        {
            None if self.budgets.len() >= MOST_STEPS => {}
            None => {
                self.budgets.push(budget.clone());
                self.budget_runs.push(1);
            }
            Some(i) => {
                self.budget_runs[i] += 1;
                average_budget(&mut self.budgets[i], budget, f64::from(self.budget_runs[i]));
            }
        }
    }

    fn add_paths(&mut self, paths: &Paths) {
        match self
            .paths
            .iter()
            .position(|p| p.workload == paths.workload && p.params == paths.params)
        {
            Some(i) => followed::add(&mut self.paths[i], paths),
            None if self.paths.len() >= MOST_PATHS => {}
            None => self.paths.push(paths.clone()),
        }
    }

    /// Passes that the totals of a step are means of; at least 1.
    pub fn passes(&self, workload: &str, params: &Params) -> u32 {
        let of_step = self
            .observations
            .iter()
            .zip(&self.observation_runs)
            .filter(|(o, _)| o.workload == workload && o.params == *params);
        of_step.map(|(_, runs)| *runs).max().unwrap_or(1)
    }

    fn add_observation(&mut self, observation: &Observation) {
        let same = |o: &Observation| {
            o.workload == observation.workload
                && o.params == observation.params
                && o.observer == observation.observer
        };
        match self.observations.iter().position(same) {
            None if self.observations.len() >= 10 * MOST_STEPS => {}
            None => {
                self.observations.push(Observation {
                    series: Vec::new(),
                    ..observation.clone()
                });
                self.observation_runs.push(1);
            }
            Some(i) => {
                self.observation_runs[i] += 1;
                add_totals(
                    &mut self.observations[i],
                    observation,
                    f64::from(self.observation_runs[i]),
                );
            }
        }
    }
}

/// Takes the totals of another pass into the mean of those before. What an observer writes down only when it meets it
/// did not happen in a pass that lacks it. Of other readings that not all passes have, or had in the same way, nothing
/// is known: a mean would be of neither.
fn add_totals(into: &mut Observation, next: &Observation, n: f64) {
    let same_way = Way::of(&into.source) == Way::of(&next.source);
    if !same_way && Way::of(&next.source) != Way::Nothing {
        into.source = format!(
            "none: it was {} in one pass and {} in another",
            into.source, next.source
        );
    }
    for name in next.totals.keys().filter(|name| is_met(name)) {
        into.totals.entry(name.clone()).or_insert(0.0);
    }
    into.totals
        .retain(|name, _| same_way && (is_met(name) || next.totals.contains_key(name)));
    for (name, mean) in &mut into.totals {
        *mean += (next.totals.get(name).copied().unwrap_or(0.0) - *mean) / n;
    }
}

/// Takes the budget of another pass into the mean of those before. Each transaction counts the same, as in what is
/// followed of them ([`followed::add`]) and in the load generator's account: a pass of which few were seen, at a bad
/// moment, has no more to say than those few.
fn average_budget(into: &mut Budget, next: &Budget, n: f64) {
    let (before, more) = (
        into.transactions as f64 * (n - 1.0),
        next.transactions as f64,
    );
    let weight = if before + more > 0.0 {
        more / (before + more)
    } else {
        1.0 / n
    };
    let (old, new) = (
        into.seconds_per_transaction * (1.0 - weight),
        next.seconds_per_transaction * weight,
    );
    let time = if old + new > 0.0 {
        new / (old + new)
    } else {
        weight
    };
    // A mean, as the totals of the observers are: a total divided by the transactions must not depend on the number of
    // runs.
    into.transactions = (into.transactions as f64
        + (next.transactions as f64 - into.transactions as f64) / n)
        .round() as u64;
    into.seconds_per_transaction = old + new;
    into.unexplained += (next.unexplained - into.unexplained) * time;
    for part in &next.parts {
        if !into
            .parts
            .iter()
            .any(|p| p.layer == part.layer && p.component == part.component)
        {
            into.parts.push(Part {
                seconds_per_transaction: 0.0,
                share: 0.0,
                ..part.clone()
            });
        }
    }
    for part in &mut into.parts {
        let seen = next
            .parts
            .iter()
            .find(|p| p.layer == part.layer && p.component == part.component);
        part.seconds_per_transaction += (seen.map_or(0.0, |p| p.seconds_per_transaction)
            - part.seconds_per_transaction)
            * weight;
        part.share += (seen.map_or(0.0, |p| p.share) - part.share) * time;
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Layer;

    use super::*;

    #[test]
    fn each_transaction_of_several_passes_counts_the_same() {
        let of = |transactions: u64, waits: f64| Budget {
            transactions,
            seconds_per_transaction: 1e-3 + waits,
            parts: [
                (Layer::Application, "server user code", 1e-3),
                (Layer::Scheduler, "waiting for a CPU", waits),
            ]
            .map(|(layer, component, seconds)| Part {
                layer,
                component: component.into(),
                seconds_per_transaction: seconds,
                share: seconds / (1e-3 + waits),
            })
            .into(),
            workload: "database".into(),
            params: Params::new(),
            unexplained: 0.0,
        };
        // Ten that were seen while the machine stood still, and 990 on either side of it.
        let (mut mean, passes) = (of(990, 0.0), [of(10, 99e-3), of(1000, 0.0)]);
        passes
            .iter()
            .zip([2.0, 3.0])
            .for_each(|(next, n)| average_budget(&mut mean, next, n));
        assert!(
            (mean.seconds_per_transaction - (2000.0 * 1e-3 + 10.0 * 99e-3) / 2000.0).abs() < 1e-9,
            "{mean:?}"
        );
        let shares: f64 = mean.parts.iter().map(|p| p.share).sum();
        assert!(
            (shares - 1.0).abs() < 1e-9 && (mean.parts[1].share - 0.99 / 2.99).abs() < 1e-9,
            "{mean:?}"
        );
        assert_eq!(mean.transactions, 667);
    }
}
