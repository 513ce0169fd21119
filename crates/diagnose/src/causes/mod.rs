//! The registry of causes: one file for each, and one line here.

mod app_build;
mod app_calls;
mod app_lock;
mod app_query_cache;
mod app_setting;
mod app_wait;
mod app_work;
mod client_saturated;
mod cpu_affinity;
mod cpu_contention;
mod cpu_mitigation;
mod cpu_priority;
mod cpu_quota;
mod cpu_saturated;
mod cpu_speed;
mod host_steal;
mod kernel_trace;
mod memory_limit;
mod memory_page_size;
mod memory_swap_place;
mod network_accept_queue;
mod network_delay;
mod network_shaping;
mod of_probes;
mod parts;
mod peer_slow;
mod process_creation;
mod storage_contention;
mod storage_durability;
mod storage_latency;
mod storage_throttle;
mod syscall_entry;

use fingerpost_record::Change;

use crate::cause::{Cause, Fault};

/// The causes of loaded servers, in the order of the article's search: network, disks, code, run queue, locks, calls,
/// memory, client, host. Those that one side is judged by are looked at in this order.
static OF_SERVERS: &[&Cause] = &[
    &network_shaping::CAUSE,
    &peer_slow::CAUSE,
    &storage_latency::CAUSE,
    &storage_throttle::CAUSE,
    &storage_contention::CAUSE,
    &storage_durability::CAUSE,
    &app_work::CAUSE,
    &app_calls::CAUSE,
    &app_build::CAUSE,
    &app_setting::CAUSE,
    &cpu_saturated::CAUSE,
    &cpu_contention::CAUSE,
    &cpu_priority::CAUSE,
    &cpu_quota::CAUSE,
    &cpu_affinity::CAUSE,
    &app_lock::CAUSE,
    &app_wait::CAUSE,
    &app_query_cache::CAUSE,
    &syscall_entry::CAUSE,
    &kernel_trace::CAUSE,
    &process_creation::CAUSE,
    &cpu_mitigation::CAUSE,
    &cpu_speed::CAUSE,
    &network_delay::CAUSE,
    &network_accept_queue::CAUSE,
    &memory_limit::CAUSE,
    &memory_page_size::CAUSE,
    &client_saturated::CAUSE,
    &host_steal::CAUSE,
    &memory_swap_place::CAUSE,
];

/// Every cause.
pub fn all() -> impl Iterator<Item = &'static Cause> {
    OF_SERVERS.iter().copied().chain(of_probes::CAUSES)
}

/// The cause of this name.
pub fn cause(name: &str) -> Option<&'static Cause> {
    all().find(|c| c.name == name)
}

/// The cause that says of itself that this probe points to it.
pub fn of_probe(probe: &str) -> Option<&'static Cause> {
    let names = |name: &&str| {
        name.strip_suffix('*')
            .map_or(*name == probe, |family| probe.starts_with(family))
    };
    all().find(|c| c.probes.iter().any(names))
}

/// The causes that a change takes away.
pub fn taken_away_by(change: Change) -> impl Iterator<Item = &'static Cause> {
    all().filter(move |c| c.experiments.contains(&change))
}

/// The cause that is validated by this fault.
pub fn of_fault(fault: Fault) -> Option<&'static Cause> {
    all().find(|c| c.fault == Some(fault))
}

/// What is said of a layer whose time grew where no cause was singled out (`LAYER.unknown`).
const UNKNOWN: &[(&str, &str)] = &[
    ("application.unknown", "unexplained time in the application"),
    ("kernel.unknown", "unexplained time in the kernel"),
    ("scheduler.unknown", "unexplained waiting for a CPU"),
    ("cpu.unknown", "unexplained time on the CPU"),
    ("memory.unknown", "unexplained waiting for memory"),
    ("storage.unknown", "unexplained waiting for the disk"),
    ("network.unknown", "unexplained waiting for the network"),
    ("client.unknown", "unexplained time in the load generator"),
    ("host.unknown", "unexplained time of the host"),
];

fn unknown(name: &str) -> Option<&'static str> {
    UNKNOWN
        .iter()
        .find(|(unknown, _)| *unknown == name)
        .map(|(_, words)| *words)
}

/// What a table of suspects calls a cause; its own name where it is none of the registry.
pub fn label(name: &str) -> &str {
    cause(name)
        .map(|c| c.words.label)
        .or_else(|| unknown(name))
        .unwrap_or(name)
}

/// What a headline calls a cause; its own name where it is none of the registry.
pub fn words(name: &str) -> &str {
    cause(name)
        .map(|c| c.words.slower)
        .or_else(|| unknown(name))
        .unwrap_or(name)
}

#[cfg(test)]
mod tests;
