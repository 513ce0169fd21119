//! What one side of a trial gave, and the run that is made of it.

use std::time::Duration;

use fingerpost_measure::estimate;
use fingerpost_observe::Level;
use fingerpost_record::{
    Better, Budget, Experiment, Host, Measurement, Observation, Outcome, Params, Paths, Process,
    Run, SCHEMA,
};
use fingerpost_workloads::{Step, Workload, WorkloadError};

use crate::Sink;
use crate::attribute::{KeptOpen, Request, attribute_traced};
use crate::rows::Definition;

/// How long nearly all requests of a pass took. Those that did not end in it took none of its transactions, but of its
/// time: by Little's law the mean tells them.
fn nearly_all(step: &Step, clients: f64) -> Duration {
    let mean = clients * step.elapsed.as_secs_f64() / step.transactions.max(1) as f64;
    Duration::from_nanos(step.latency(0.99).unwrap_or(0)).max(Duration::from_secs_f64(mean))
}

/// Of the slowest requests of a pass, so many are kept.
const MOST_SLOWEST: usize = 2;

/// What one side gave.
#[derive(Clone, Default)]
pub(super) struct Kept {
    pub(super) throughput: Vec<Process>,
    /// What was seen of its passes, whom they accuse, and what experiments said: the run without its row.
    pub(super) run: Run,
    /// How long nearly all requests took in the passes so far.
    pub(super) latency: Option<Duration>,
}

impl Kept {
    /// One more pass of this side, which tells how long the next one's windows are to be.
    pub(super) fn pass(
        &mut self,
        workload: &mut dyn Workload,
        params: &Params,
        length: Duration,
        clients: f64,
        events: &KeptOpen,
    ) -> Result<(), WorkloadError> {
        let request = Request {
            params,
            length,
            clients,
            sweep: &[],
            query_cache: None,
            level: Level::Tracing,
            measured: None,
            latency: self.latency,
            events: Some(events),
        };
        let attributed = attribute_traced(workload, &request, self)?;
        // Every pass is traced: what tracing costs, it costs both sides.
        if let Some(step) = attributed.step {
            let value = step.rate();
            // Windows that lost events were too long for what the machine keeps up with: the next begin short again.
            let torn = self.run.paths.last().is_some_and(|paths| paths.lost > 0);
            self.latency = if torn {
                None
            } else {
                self.latency.max(Some(nearly_all(&step, clients)))
            };
            self.throughput.push(Process {
                value: Some(value),
                samples: step.throughput,
                batch: 1,
                ..Process::default()
            });
        }
        self.run.findings = attributed.findings;
        Ok(())
    }

    /// As the run of a workload of this name, one row with these parameters.
    pub(super) fn into_run(self, name: &str, params: &Params, host: &Host) -> Run {
        let samples: Vec<f64> = self
            .throughput
            .iter()
            .flat_map(|p| p.samples.iter().copied())
            .collect();
        let percentiles = estimate::percentiles(&samples, Better::Higher);
        let none = || (Outcome::Failed, "no pass was made".to_owned());
        let row = Definition::RATE.row(params.clone(), self.throughput, percentiles, None, none);
        let row = Measurement {
            probe: format!("{name}.throughput"),
            descriptor: None,
            ..row
        };
        Run {
            schema: SCHEMA.to_owned(),
            host: host.clone(),
            measurements: vec![row],
            complete: true,
            ..self.run
        }
    }
}

impl Sink for Kept {
    fn measurement(&mut self, _: Measurement) {}
    fn observation(&mut self, observation: Observation) {
        self.run.observations.push(Observation {
            series: Vec::new(),
            ..observation
        });
    }
    fn budget(&mut self, budget: Budget) {
        self.run.budgets.push(budget);
    }
    fn paths(&mut self, mut paths: Paths) {
        // Nothing is judged by them, and those of ten passes are more than a record that is read again may hold.
        paths.slowest.truncate(MOST_SLOWEST);
        self.run.paths.push(paths);
    }
    fn experiment(&mut self, experiment: Experiment) {
        self.run.experiments.push(experiment);
    }
}
