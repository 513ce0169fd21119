//! Resources that somebody watched under load and that were far from their limit: cleared, with the figure that clears them.

use fingerpost_record::{Finding, Layer, Observation, Status};

use crate::steps::Evidence;

/// Below this share of a link's rate at its peak, bandwidth holds nothing back.
const LINK_FREE: f64 = 0.5;
/// Below this many bytes a second, writing holds back no disk that this project knows of: the slowest does fifty times as much.
const WRITES_FREE: f64 = 1e6;

/// What the observations of the slower side clear, of the workloads that are compared: where none of its rows is, nothing.
pub fn clear(dear: Evidence, compared: impl Fn(&Observation) -> bool) -> Vec<Finding> {
    let observed = || dear.steps.observations.iter().filter(|o| compared(o));
    let network = observed().find_map(link);
    let disk = observed().find_map(writes);
    network.into_iter().chain(disk).collect()
}

fn link(o: &Observation) -> Option<Finding> {
    let get = |name: &str| o.totals.get(name).copied();
    let (peak, rate) = (get("net.out.peak.mbit_s")?, get("net.link.mbit_s").filter(|r| *r > 0.0)?);
    let text = format!("under {} the network carried at most {peak:.0} of {rate:.0} Mbit/s", o.workload);
    (peak / rate < LINK_FREE).then(|| cleared("network.shaping", Layer::Network, text))
}

fn writes(o: &Observation) -> Option<Finding> {
    let written = o.totals.get("disk.written.bytes_s").copied()?;
    let text = format!("under {} at most {:.0} kB/s were written: neither writing nor flushing holds it back", o.workload, written / 1e3);
    (written < WRITES_FREE).then(|| cleared("storage.durability", Layer::Storage, text))
}

fn cleared(cause: &str, layer: Layer, evidence: String) -> Finding {
    Finding { cause: cause.into(), layer, status: Status::Cleared, share: 0.0, evidence: vec![evidence] }
}
