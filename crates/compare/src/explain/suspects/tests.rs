//! Every cause on made-up facts: it must be named first, and its neighbours must not be guilty.

use super::super::facts::Scaling;
use super::*;

/// A server on two CPUs that does its work, with nothing wrong.
fn healthy() -> Facts {
    Facts {
        elapsed_s: 10.0,
        transactions: 10_000.0,
        cpus: 2.0,
        cpus_allowed: 2.0,
        idle: 0.5,
        server_cpus: 0.6,
        user: 0.2,
        kernel: 0.2,
        client: 0.1,
        weight: 1.0,
        connections: 4.0,
        server_threads: 4.0,
        calls: Some(6.0),
        call_s: 1e-6,
        waiting_while_idle: Some(0.1),
        client_busy: 0.2,
        ..Facts::default()
    }
}

/// The cause must be named first and guilty; returns all findings.
fn first(facts: &Facts, cause: &str) -> Vec<Finding> {
    let found = suspects(facts);
    assert_eq!((found[0].cause.as_str(), found[0].status), (cause, Status::Guilty), "{found:#?}");
    let guilty: Vec<&str> = found.iter().filter(|f| f.status == Status::Guilty).map(|f| f.cause.as_str()).collect();
    assert_eq!(guilty, [cause], "its neighbours are not guilty");
    found
}

fn status(found: &[Finding], cause: &str) -> Status {
    found.iter().find(|f| f.cause == cause).unwrap_or_else(|| panic!("{cause} was not looked at")).status
}

#[test]
fn nobody_is_guilty_of_a_healthy_server_and_everybody_has_a_figure() {
    let found = suspects(&healthy());
    assert!(found.iter().all(|f| f.status == Status::Cleared), "{found:#?}");
    assert!(
        found
            .iter()
            .all(|f| !f.evidence.is_empty() && f.evidence.iter().all(|e| e.contains(|c: char| c.is_ascii_digit()) || e.contains("no ")))
    );
    assert!(found.len() >= 20);
}

#[test]
fn a_quota_waits_while_a_cpu_idles_and_is_throttled() {
    let f =
        Facts { run_queue: 0.5, throttled_s: 5.0, throttled_periods: 0.9, quota: Some(0.5), waiting_while_idle: Some(0.9), ..healthy() };
    first(&f, "cpu.quota");
}

#[test]
fn affinity_waits_while_a_cpu_idles_and_is_not_throttled() {
    let f = Facts { run_queue: 0.5, cpus_allowed: 1.0, server_cpus: 1.0, waiting_while_idle: Some(0.9), ..healthy() };
    first(&f, "cpu.affinity");
}

#[test]
fn contention_waits_for_a_cpu_that_another_process_uses() {
    let f = Facts { run_queue: 0.4, idle: 0.0, other_cpus: 1.2, other_name: "stress".into(), ..healthy() };
    let found = first(&f, "cpu.contention");
    assert!(found[0].evidence[0].contains("stress"));
}

#[test]
fn a_low_priority_is_told_from_contention_by_the_nice_value() {
    let f = Facts { run_queue: 0.4, idle: 0.0, other_cpus: 1.2, nice: 19.0, ..healthy() };
    first(&f, "cpu.priority");
    first(&Facts { nice: 0.0, weight: 0.02, ..f }, "cpu.priority");
}

#[test]
fn a_lock_that_siblings_hand_over_while_throughput_collapses() {
    let scaling = Some(Scaling { best_clients: 2.0, best: 20_000.0, most_clients: 50.0, kept: 0.4 });
    let f = Facts { lock: 0.6, sibling_wakes: 3.0, scaling, query_cache: Some(true), ..healthy() };
    let found = first(&f, "app.lock");
    assert_eq!(status(&found, "storage.latency"), Status::Cleared);
    assert_eq!(status(&found, "network.shaping"), Status::Cleared);
    assert_eq!(status(&found, "app.query_cache"), Status::Suspected);
    let nobody = suspects(&Facts { sibling_wakes: 0.0, query_cache: None, ..f });
    assert!(nobody.iter().all(|f| f.status != Status::Guilty), "a wait that no sibling ends is no contended lock");
}

#[test]
fn storage_is_told_apart_by_limits_others_and_the_devices_own_business() {
    let disk = Facts { disk: 0.6, syncs: 1.0, sync_s: 0.02, disk_busy: 0.8, device_write_s: 0.004, device_flush_s: 0.01, ..healthy() };
    first(&disk, "storage.latency");
    first(&Facts { disk_busy: 0.1, disk_limits: 1.0, device_flush_s: 0.0005, device_write_s: 0.0005, ..disk.clone() }, "storage.throttle");
    let found =
        first(&Facts { other_disk_per_s: 50e6, other_disk_name: "dd".into(), written_per_s: 1e6, ..disk.clone() }, "storage.contention");
    assert!(found[0].evidence.iter().any(|e| e.contains("dd")));
    let twice = suspects(&Facts { syncs: 4.0, ..disk });
    assert_eq!(status(&twice, "storage.durability"), Status::Suspected);
}

#[test]
fn the_network_is_told_apart_by_drops_overflows_and_delayed_acknowledgements() {
    let net = Facts { network: 0.6, idle: 0.9, on_the_way: 3.0, ..healthy() };
    first(&Facts { drops: 500.0, ..net.clone() }, "network.shaping");
    let slow = Facts { transactions: 900.0, delayed_acks: 1.0, ..net.clone() };
    first(&slow, "network.delay");
    first(&Facts { network: 0.0, on_the_way: 0.0, listen_overflows: 200.0, unexplained: 0.3, ..net }, "network.accept_queue");
}

#[test]
fn paging_is_the_memorys_even_when_the_disk_waits() {
    let f = Facts {
        memory: 0.3,
        swap_per_s: 2000.0,
        major_per_s: 900.0,
        memory_pressure: 0.4,
        memory_limit: Some(1e8),
        memory_used: 0.99,
        ..healthy()
    };
    first(&f, "memory.limit");
}

#[test]
fn a_client_that_is_the_limit_says_why() {
    let f = Facts { client: 0.5, client_saturated: Some("its 1 CPU was 99 % busy".into()), ..healthy() };
    let found = first(&f, "client.saturated");
    assert!(found[0].evidence[0].contains("99 %"));
    first(&Facts { client: 0.5, client_busy: 0.97, ..healthy() }, "client.saturated");
}

#[test]
fn steal_is_the_hosts() {
    first(&Facts { steal: 0.3, ..healthy() }, "host.steal");
}

#[test]
fn what_only_a_comparison_can_prove_is_suspected_at_most() {
    let found = suspects(&Facts { kernel: 0.7, seccomp_filters: 3.0, speculation_mitigated: true, user: 0.3, ..healthy() });
    assert_eq!(status(&found, "syscall.entry"), Status::Suspected);
    assert_eq!(status(&found, "cpu.mitigation"), Status::Suspected);
    assert_eq!(status(&found, "app.work"), Status::Suspected);
}

#[test]
fn every_cause_has_a_label() {
    assert_eq!(label("app.lock"), "locks");
    assert_eq!(label("no.such"), "no.such");
}
