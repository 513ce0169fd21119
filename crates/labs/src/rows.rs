//! How repetitions become a row, and what the rows of labs mean, for `list NAME` and for whoever hovers over a name on a page.

use std::collections::BTreeMap;

use fingerpost_measure::estimate::across_processes;
use fingerpost_record::{Better, Measurement, Outcome, Params, Percentiles, Process, Unit};
use fingerpost_workloads::Step;

/// What all rows of a name have in common.
pub struct Definition {
    /// The name.
    pub probe: &'static str,
    /// Raised when it means something else, so that rows of before are not compared.
    pub version: u32,
    /// The figure's unit.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
}

impl Definition {
    /// The row of these repetitions, untrusted where something speaks against it; without any, a row that says why there is `none`.
    pub fn row(
        &self,
        params: Params,
        processes: Vec<Process>,
        percentiles: Option<Percentiles>,
        doubt: Option<String>,
        none: impl FnOnce() -> (Outcome, String),
    ) -> Measurement {
        let values: Vec<f64> = processes.iter().filter_map(|p| p.value).collect();
        let Some(estimate) = across_processes(&values) else {
            let (outcome, reason) = none();
            return self.without_figure(params, outcome, reason);
        };
        let outcome = if doubt.is_some() { Outcome::Untrusted } else { Outcome::Measured };
        let row = self.without_figure(params, outcome, String::new());
        Measurement { reason: doubt, estimate: Some(estimate), percentiles, processes, ..row }
    }

    /// A row without a figure, and why.
    pub fn without_figure(&self, params: Params, outcome: Outcome, reason: String) -> Measurement {
        Measurement::without_figure(self.probe, self.version, params, self.unit, self.better, outcome, reason)
    }
}

/// What went wrong in these steps, and how often.
pub fn errors(steps: &[Step]) -> BTreeMap<&str, u64> {
    let mut errors = BTreeMap::new();
    for (kind, n) in steps.iter().flat_map(|s| &s.client.errors) {
        *errors.entry(kind.as_str()).or_default() += n;
    }
    errors
}

/// What the rows of a desktop's tasks are, beside whichever server.
const OF_A_DESKTOP: &str = "how long a small task takes from when it is due, beside an idle and beside a loaded server";

/// Name of a row's probe, and what its figure is.
pub static ROWS: &[(&str, &str)] = &[
    ("database.throughput", "queries or transactions that all clients together finish in a second, in a closed loop"),
    ("database.latency", "from the sending of a query or transaction to the last byte of its answer"),
    ("database.import", "loading a dump of the data through a client, statement by statement"),
    ("database.desktop", OF_A_DESKTOP),
    ("web.throughput", "answers that all connections together receive completely in a second"),
    ("web.latency", "from the sending of a request, or from when it was due, to the last byte of its answer"),
    ("web.desktop", OF_A_DESKTOP),
    ("site.round", "reading 100 random pages of the site whole, from files or from an object database"),
    ("site.depth", "reading one page that lies so many folders deep"),
    ("site.size", "reading one page of this size, of a store that holds pages of this size only"),
    ("site.folder", "reading one page of a folder that holds so many entries"),
    ("site.readers", "pages that so many readers at once read in a second"),
    ("site.import", "the time until all pages of the site are in the store and on the disk; for files, a copy of them"),
    ("site.space", "bytes on the disk that the store needs for the site"),
    ("site.served", "requests that this program's web server answers in a second from the store"),
    ("launch.time", "from the start of an application until it is ready, while those launched before it stay"),
    ("launch.sum", "the launch times of all applications of one sequence together"),
    ("launch.pageins", "page-ins since the machine was booted: faults that waited for a page of a file or of swap"),
];

/// What a row is; nothing where no lab makes it.
pub fn meaning(probe: &str) -> Option<&'static str> {
    ROWS.iter().find(|(name, _)| *name == probe).map(|(_, meaning)| *meaning)
}
