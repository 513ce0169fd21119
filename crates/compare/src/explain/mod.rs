//! One run explained: where a transaction's time went, and who is to blame.
//!
//! Pure: from the totals that observers wrote into the record ([`Totals`]) and the figures of the step ([`StepFigures`]) to a
//! [`Budget`](fingerpost_record::Budget) and [`Finding`](fingerpost_record::Finding)s. The names of the totals are listed in
//! `docs/observers.md`.

pub mod budget;
pub mod facts;
mod rules;
pub mod suspects;

use std::collections::BTreeMap;

use fingerpost_record::Observation;

pub use budget::{budget, command_budget};
pub use facts::Facts;
pub use suspects::{label, suspects};

/// All totals of one step by name. Observers' names do not clash.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals(pub BTreeMap<String, f64>);

impl Totals {
    /// The totals of all observers of one step. Readings that are not numbers are left out.
    pub fn of<'a>(observations: impl IntoIterator<Item = &'a Observation>) -> Totals {
        let all = observations.into_iter().flat_map(|o| &o.totals).filter(|(_, v)| v.is_finite());
        Totals(all.map(|(k, v)| (k.clone(), *v)).collect())
    }

    /// A total; 0 where no observer had it.
    pub fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    /// A total where an observer had it.
    pub fn find(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// The totals between a prefix and a suffix: what `server.call.` and `.count` hold between them, with the value.
    pub fn between<'a>(&'a self, prefix: &'a str, suffix: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.iter().filter_map(move |(k, v)| Some((k.strip_prefix(prefix)?.strip_suffix(suffix)?, *v)))
    }
}

/// One step of a workload as the load generator saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepFigures {
    /// Transactions completed while the observers were attached.
    pub transactions: u64,
    /// How long that was, in seconds.
    pub elapsed_s: f64,
    /// Transactions that were under way at any time: the clients of a closed loop.
    pub clients: f64,
    /// Transactions and seconds of the pass that was measured without tracing, where there was one.
    pub measured: Option<(u64, f64)>,
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

impl StepFigures {
    /// Wall seconds of one transaction: clients × elapsed / transactions, in the measured pass where there was one.
    pub fn seconds_per_transaction(&self) -> f64 {
        let (transactions, elapsed) = self.measured.unwrap_or((self.transactions, self.elapsed_s));
        if transactions == 0 { 0.0 } else { self.clients * elapsed / transactions as f64 }
    }
}
