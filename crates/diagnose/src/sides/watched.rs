//! Resources that somebody watched under load and that were far from their limit: ruled out, with the figure that clears
//! them.

use fingerpost_record::cause::thresholds::{CPUS_BUSY, LINK_FREE, WRITES_FREE};
use fingerpost_record::{Finding, Layer, Observation};

use crate::steps::Evidence;

/// What the observations of the slower side clear, of the workloads that are compared: where none of its rows is,
/// nothing.
pub fn clear(slow: Evidence, compared: impl Fn(&Observation) -> bool) -> Vec<Finding> {
    let observed = || slow.steps.observations.iter().filter(|o| compared(o));
    [link, writes, busy]
        .into_iter()
        .filter_map(|one| observed().find_map(one))
        .collect()
}

fn link(o: &Observation) -> Option<Finding> {
    let get = |name: &str| o.totals.get(name).copied();
    let rate = get("net.link.mbit_s").filter(|r| *r > 0.0)?;
    let (bound, own) = (get("net.out.peak.below.mbit_s"), get("net.out.peak.mbit_s"));
    let peak = own.or(bound)?;
    let at_most = if own.is_some() {
        "at most"
    } else {
        "less than"
    };
    let text = format!(
        "under {} the network carried {at_most} {peak:.0} of {rate:.0} Mbit/s",
        o.workload
    );
    (peak / rate < LINK_FREE.value)
        .then(|| Finding::ruled_out("network.shaping", Layer::Network, text))
}

/// CPUs that were busy for most of the time had enough to do: neither the load generator nor a wait held the server
/// back.
fn busy(o: &Observation) -> Option<Finding> {
    let get = |name: &str| o.totals.get(name).copied();
    let (low, high, all) = (
        get("cpu.used.low")?,
        get("cpu.used.high")?,
        get("cpu.count").filter(|n| *n > 0.0)?,
    );
    let of = &o.workload;
    let text = format!(
        "under {of} {low:.2} to {high:.2} of {all:.0} CPUs were busy: the load was enough for the server"
    );
    (low / all >= CPUS_BUSY.value)
        .then(|| Finding::ruled_out("client.saturated", Layer::Client, text))
}

fn writes(o: &Observation) -> Option<Finding> {
    let written = o.totals.get("disk.written.bytes_s").copied()?;
    let (of, rate) = (&o.workload, written / 1e3);
    let text = format!(
        "under {of} at most {rate:.0} kB/s were written: neither writing nor flushing holds it back"
    );
    (written < WRITES_FREE.value)
        .then(|| Finding::ruled_out("storage.durability", Layer::Storage, text))
}
