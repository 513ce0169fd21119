//! Resources that somebody watched under load and that were far from their limit: ruled out, with the figure that clears
//! them.

use crate::thresholds::{CPUS_BUSY, LINK_FREE, WRITES_FREE};
use fingerpost_record::cause::id;
use fingerpost_record::reading::{Name, name};
use fingerpost_record::{Evidence, Finding, Layer, Metric, Observation};

use crate::steps::KnownSide;

/// What the observations of the slower side clear, of the workloads that are compared: where none of its rows is,
/// nothing.
pub fn clear(slow: KnownSide, compared: impl Fn(&Observation) -> bool) -> Vec<Finding> {
    let observed = || slow.steps.observations.iter().filter(|o| compared(o));
    [link, writes, busy]
        .into_iter()
        .filter_map(|one| observed().find_map(one))
        .collect()
}

fn link(o: &Observation) -> Option<Finding> {
    let get = |name: Name| o.totals.get(name.as_str()).copied();
    let rate = get(name::NET_LINK_MBIT_S).filter(|r| *r > 0.0)?;
    let (bound, own) = (
        get(name::NET_OUT_PEAK_BELOW_MBIT_S),
        get(name::NET_OUT_PEAK_MBIT_S),
    );
    let peak = own.or(bound)?;
    let fact = Evidence {
        undecided: own.is_none(),
        ..Evidence::figure(Metric::LinkPeak, peak).out_of(rate)
    };
    (peak / rate < LINK_FREE.value)
        .then(|| Finding::ruled_out(id::NETWORK_SHAPING, Layer::Network, fact.named(&o.workload)))
}

/// CPUs that were busy for most of the time had enough to do: neither the load generator nor a wait held the server
/// back.
fn busy(o: &Observation) -> Option<Finding> {
    let get = |name: Name| o.totals.get(name.as_str()).copied();
    let (low, high, all) = (
        get(name::CPU_USED_LOW)?,
        get(name::CPU_USED_HIGH)?,
        get(name::CPU_COUNT).filter(|n| *n > 0.0)?,
    );
    let fact = Evidence::figure(Metric::CpusBusy, low)
        .within([low, high])
        .out_of(all);
    (low / all >= CPUS_BUSY.value)
        .then(|| Finding::ruled_out(id::CLIENT_SATURATED, Layer::Client, fact.named(&o.workload)))
}

fn writes(o: &Observation) -> Option<Finding> {
    let written = o.totals.get(name::DISK_WRITTEN_BYTES_S.as_str()).copied()?;
    let fact = Evidence::figure(Metric::WrittenAtMost, written).named(&o.workload);
    (written < WRITES_FREE.value)
        .then(|| Finding::ruled_out(id::STORAGE_DURABILITY, Layer::Storage, fact))
}
