//! What waiting together leads to: threads that sleep in a flush, or for a lock, are let go at once, and wait for each other for a CPU; a CPU that
//! they left free has to wake first.

use fingerpost_record::Layer;
use fingerpost_record::place::Kind;

use super::catalogue::Sign::{self, Fits};
use super::clues::Clues;
use super::{crowded, signs, signs_io};

/// Why waits for a CPU belong to how the server commits: it flushes more often, and threads sleep in flushes.
pub(super) fn by_flushes(clues: &Clues) -> Option<String> {
    after(clues, signs_io::durability, |kind| matches!(kind, Kind::Storage | Kind::Syncs), 0.0)
}

/// Why they belong to a lock: what threads wait longer for it is more than what they wait longer for a CPU.
pub(super) fn by_a_lock(clues: &Clues) -> Option<String> {
    after(clues, signs_io::app_lock, |kind| kind == Kind::Lock, 1.0)
}

/// Where `sign` fits, and what is slept longer in these parts is a good part of the change and at least so many times what is waited longer for a
/// CPU that no other process has. Nothing where others came, or where the server was given less of the CPUs: waits for a CPU have causes of their
/// own then.
fn after(clues: &Clues, sign: fn(&Clues) -> Sign, sleeps: fn(Kind) -> bool, times: f64) -> Option<String> {
    let Fits(text) = sign(clues) else { return None };
    let own = [signs::affinity, signs::quota, signs::priority].iter().any(|sign| matches!(sign(clues), Fits(_)));
    let slept = clues.parts(|layer, part| sleeps(Kind::of(layer, part)));
    let waited = clues.parts(behind_each_other);
    let led = signs::grew(clues, slept) && signs::grew(clues, waited) && slept.more() >= times * waited.more();
    (led && !own && crowded::came(clues).is_none()).then(|| {
        let (slept, waited) = (clues.arrow(slept, "seconds"), clues.arrow(waited, "seconds"));
        format!("{text}; asleep there for {slept} of a request, and then waiting for a CPU behind each other: {waited}")
    })
}

/// Waiting for a CPU that no other process has.
fn behind_each_other(layer: Layer, part: &str) -> bool {
    use Kind::{ClientCpuClient, ClientCpuFree, ClientCpuServer, CpuClient, CpuFree, CpuServer};
    matches!(Kind::of(layer, part), CpuServer | CpuClient | CpuFree | ClientCpuServer | ClientCpuClient | ClientCpuFree)
}

/// Whether a part of a budget is longer because of how the server commits.
pub(super) fn with_flushes(clues: &Clues, layer: Layer, part: &str) -> bool {
    behind_each_other(layer, part) && by_flushes(clues).is_some()
}

/// Whether a part of a budget is longer because of a lock.
pub(super) fn with_a_lock(clues: &Clues, layer: Layer, part: &str) -> bool {
    behind_each_other(layer, part) && by_a_lock(clues).is_some()
}
