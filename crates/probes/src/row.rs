//! A probe's row as a record has it. Its place among the others is the registry's to say, which is above the probes'
//! own files.

use fingerpost_record::descriptor::{Descriptor, HostDependence, is_beyond_caches, lmbench};
use fingerpost_record::{Measurement, Outcome, Params};

use crate::probe::Probe;

impl Probe {
    /// What a record says of a row with these parameters.
    pub fn descriptor(&self, params: &Params) -> Descriptor {
        let int = |key: &str| params.int(key);
        Descriptor {
            place: crate::all()
                .filter(|probe| probe.table.key == self.table.key)
                .position(|p| p.name == self.name)
                .map(|n| n as u32),
            exercises: self.exercises,
            entries: self.entries,
            waits_for_device: self.waits_for_device,
            depends_on_host: self
                .depends_on_host
                .filter(|made| *made != HostDependence::Memory || is_beyond_caches(int)),
            lmbench: self.lmbench.and_then(|name| lmbench::name(name, int)),
            calls: self.calls.iter().map(|call| (*call).into()).collect(),
            ..Descriptor::of(self.table)
        }
    }

    /// A row of it without a figure, and why.
    pub fn without_figure(&self, params: Params, outcome: Outcome, reason: String) -> Measurement {
        let descriptor = self.descriptor(&params);
        Measurement::without_figure(self.name, self.version, params, self.unit, self.better, outcome, reason)
            .described(descriptor)
    }
}
