//! The figures of one step of a workload, as its load generator has them.

use fingerpost_record::reading::name;
use std::collections::BTreeMap;

use fingerpost_record::Readings;

/// One step of a workload as the load generator saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepFigures {
    /// Transactions completed while the observers were attached.
    pub transactions: u64,
    /// How long that was, in seconds.
    pub elapsed_s: f64,
    /// Transactions that were under way at any time: the clients of a closed loop.
    pub clients: f64,
    /// Transactions and seconds of the pass that was measured without tracing, where there was one.
    pub measured: Option<(u64, f64)>,
    /// Round trips on a connection that make one transaction: a request that is followed is one of them.
    pub turns_per_transaction: f64,
    /// Why the client was the limit, when it said so.
    pub client_saturated: Option<String>,
    /// CPUs that the client could use.
    pub client_cpus: usize,
    /// Failed connects, timeouts and other errors of the client.
    pub client_errors: u64,
    /// Seconds in which no transaction completed.
    pub stalled_s: f64,
    /// Clients and transactions a second of every step of the same workload, for its scaling.
    pub sweep: Vec<(f64, f64)>,
    /// Whether a query cache was on; nothing where the workload has none.
    pub query_cache: Option<bool>,
}

impl Default for StepFigures {
    /// No transactions; one turn makes one.
    fn default() -> StepFigures {
        StepFigures {
            transactions: 0,
            elapsed_s: 0.0,
            clients: 0.0,
            measured: None,
            turns_per_transaction: 1.0,
            client_saturated: None,
            client_cpus: 0,
            client_errors: 0,
            stalled_s: 0.0,
            sweep: Vec::new(),
            query_cache: None,
        }
    }
}

/// The observer whose totals hold a step's figures, so that a run file can be explained again.
pub const STEP: &str = "step";

impl StepFigures {
    /// The figures as totals of the observer [`STEP`]; what the client said in words is not among them.
    pub fn to_totals(&self) -> BTreeMap<String, f64> {
        let mut t = BTreeMap::from([
            (name::STEP_TRANSACTIONS.into(), self.transactions as f64),
            (name::STEP_ELAPSED_SECONDS.into(), self.elapsed_s),
            (name::STEP_CLIENTS.into(), self.clients),
            (
                name::STEP_TURNS_PER_TRANSACTION.into(),
                self.turns_per_transaction,
            ),
            (name::STEP_CLIENT_CPUS.into(), self.client_cpus as f64),
            (name::STEP_CLIENT_ERRORS.into(), self.client_errors as f64),
            (
                name::STEP_CLIENT_SATURATED.into(),
                f64::from(u8::from(self.client_saturated.is_some())),
            ),
            (name::STEP_STALLED_SECONDS.into(), self.stalled_s),
        ]);
        if let Some((transactions, elapsed)) = self.measured {
            t.insert(name::STEP_MEASURED_TRANSACTIONS.into(), transactions as f64);
            t.insert(name::STEP_MEASURED_SECONDS.into(), elapsed);
            t.insert(name::STEP_GAP.into(), self.gap().unwrap_or(0.0));
        }
        if let Some(on) = self.query_cache {
            t.insert(name::STEP_QUERY_CACHE.into(), f64::from(u8::from(on)));
        }
        for (clients, throughput) in &self.sweep {
            t.insert(format!("step.sweep.{clients}"), *throughput);
        }
        t
    }

    /// The figures from the totals of the observer [`STEP`]; `None` when it is not among them.
    pub fn from_totals(t: &Readings) -> Option<StepFigures> {
        let saturated = t
            .known(name::STEP_CLIENT_SATURATED)
            .is_some_and(|told| told > 0.0);
        let measured = t
            .known(name::STEP_MEASURED_TRANSACTIONS)
            .zip(t.known(name::STEP_MEASURED_SECONDS));
        Some(StepFigures {
            transactions: t.known(name::STEP_TRANSACTIONS)? as u64,
            elapsed_s: t.known(name::STEP_ELAPSED_SECONDS)?,
            clients: t.known(name::STEP_CLIENTS)?,
            measured: measured.map(|(n, s)| (n as u64, s)),
            turns_per_transaction: t
                .known(name::STEP_TURNS_PER_TRANSACTION)
                .filter(|turns| *turns > 0.0)
                .unwrap_or(1.0),
            client_saturated: saturated.then(|| {
                "the client said that it was the limit: see the row's reason (1 of 1 passes)"
                    .to_owned()
            }),
            client_cpus: t.known(name::STEP_CLIENT_CPUS).unwrap_or(1.0) as usize,
            client_errors: t.known(name::STEP_CLIENT_ERRORS).unwrap_or(0.0) as u64,
            stalled_s: t.known(name::STEP_STALLED_SECONDS).unwrap_or(0.0),
            sweep: t
                .between("step.sweep.", "")
                .filter_map(|(clients, throughput)| Some((clients.parse().ok()?, throughput)))
                .collect(),
            query_cache: t.known(name::STEP_QUERY_CACHE).map(|on| on > 0.0),
        })
    }

    /// By how much, as a share, the traced pass was slower than the measured one; negative when noise made it faster.
    pub fn gap(&self) -> Option<f64> {
        let (transactions, elapsed) = self.measured?;
        let (measured, traced) = (
            transactions as f64 / elapsed,
            self.transactions as f64 / self.elapsed_s,
        );
        (measured.is_finite() && traced.is_finite() && measured > 0.0)
            .then(|| 1.0 - traced / measured)
    }

    /// Wall seconds of one transaction: clients × elapsed / transactions, in the measured pass where there was one.
    pub fn seconds_per_transaction(&self) -> f64 {
        let (transactions, elapsed) = self.measured.unwrap_or((self.transactions, self.elapsed_s));
        if transactions == 0 {
            0.0
        } else {
            self.clients * elapsed / transactions as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steps_figures_survive_the_record() {
        let step = StepFigures {
            transactions: 900,
            elapsed_s: 9.5,
            clients: 50.0,
            measured: Some((1000, 10.0)),
            turns_per_transaction: 3.0,
            client_saturated: None,
            client_cpus: 2,
            client_errors: 3,
            stalled_s: 0.5,
            sweep: vec![(1.0, 100.0), (2.0, 180.0)],
            query_cache: Some(true),
        };
        assert_eq!(
            StepFigures::from_totals(&Readings::by(STEP, "made up", step.to_totals())),
            Some(step.clone())
        );
        assert!((step.gap().unwrap() - (1.0 - 900.0 / 9.5 / 100.0)).abs() < 1e-12);
        assert_eq!(StepFigures::from_totals(&Readings::default()), None);
        assert_eq!(StepFigures::default().gap(), None);
    }
}
