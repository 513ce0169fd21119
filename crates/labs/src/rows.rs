//! How repetitions become a row.

use fingerpost_measure::estimate::across_processes;
use fingerpost_record::descriptor::{Descriptor, HostDependence, Table, table};
use fingerpost_record::{Better, Measurement, Outcome, Params, Percentiles, Process, Unit};

/// What all rows of a name have in common.
pub struct Definition {
    /// The table that they are shown in.
    pub table: &'static Table,
    /// Their place in it; nothing where it is that of their measuring.
    pub place: Option<u32>,
    /// What of them a virtual machine's host decides.
    pub depends_on_host: Option<HostDependence>,
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
    /// What most rows share: nanoseconds, the fewer the better, in the order measured. A definition fills in the rest.
    pub const LATENCY: Definition = Definition {
        table: &table::OTHER,
        place: None,
        depends_on_host: None,
        probe: "",
        version: 1,
        unit: Unit::Nanoseconds,
        better: Better::Lower,
    };

    /// The same of a rate, the more the better.
    pub const RATE: Definition = Definition {
        unit: Unit::PerSecond,
        better: Better::Higher,
        ..Definition::LATENCY
    };

    /// What a record says of them.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor {
            place: self.place,
            depends_on_host: self.depends_on_host,
            ..Descriptor::of(self.table)
        }
    }

    /// The row of these repetitions, untrusted where something speaks against it; without any, a row that says why
    /// there is `none`.
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
        let outcome = if doubt.is_some() {
            Outcome::Untrusted
        } else {
            Outcome::Measured
        };
        let row = self.without_figure(params, outcome, String::new());
        Measurement {
            reason: doubt,
            estimate: Some(estimate),
            percentiles,
            processes,
            ..row
        }
    }

    /// A row without a figure, and why.
    pub fn without_figure(&self, params: Params, outcome: Outcome, reason: String) -> Measurement {
        Measurement::without_figure(
            self.probe,
            self.version,
            params,
            self.unit,
            self.better,
            outcome,
            reason,
        )
        .described(self.descriptor())
    }
}
