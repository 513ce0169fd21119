//! A made-up run of one step of a database whose requests were followed.
// Every file uses a part of it.
#![allow(dead_code)]

use fingerpost_diagnose::{StepFigures, explain};
use fingerpost_record::fixture::followed::{Row, paths};
use fingerpost_record::{
    Better, Estimate, Layer, Measurement, Observation, Outcome, Params, Process, Readings, Run,
    Unit,
};

/// Microseconds of a request of a server with nothing wrong.
pub const QUIET: [Row; 7] = [
    (Layer::Application, "server user code", "", &[], [400.0; 3]),
    (Layer::Kernel, "kernel: read", "", &[], [150.0; 3]),
    (
        Layer::Scheduler,
        "waiting for a CPU",
        "the server itself",
        &[],
        [50.0; 3],
    ),
    (Layer::Application, "waiting for a lock", "", &[], [20.0; 3]),
    (
        Layer::Storage,
        "disk: in the device",
        "",
        &["disk"],
        [100.0; 3],
    ),
    (
        Layer::Network,
        "on the way between server and client",
        "",
        &[],
        [30.0; 3],
    ),
    (Layer::Client, "client user and kernel", "", &[], [20.0; 3]),
];

/// What observers read of it, by the names that they write.
const READINGS: &[(&str, f64)] = &[
    ("step.transactions", 10_000.0),
    ("step.clients", 10.0),
    ("step.client.cpus", 1.0),
    ("step.client.saturated", 0.0),
    ("elapsed.seconds", 10.0),
    ("machine.cpus", 2.0),
    ("cpu.user.seconds", 8.0),
    ("cpu.system.seconds", 2.0),
    ("cpu.interrupts.seconds", 0.1),
    ("cpu.idle.seconds", 10.0),
    ("cpu.steal.seconds", 0.0),
    ("throttle.seconds", 0.0),
    ("throttle.periods", 100.0),
    ("throttle.throttled_periods", 0.0),
    ("server.cpus_allowed", 2.0),
    ("server.nice", 0.0),
    ("cgroup.cpu_weight", 100.0),
    ("cgroup.cpu_weight.version", 2.0),
    ("server.user.seconds", 4.0),
    ("server.kernel.seconds", 1.5),
    ("other.cpu.seconds", 0.2),
    ("server.seccomp.filters", 0.0),
    ("server.traced", 0.0),
    ("audit.rules", 0.0),
    ("tracing.events", 0.0),
    ("tracing.tracers", 0.0),
    ("tracing.programs", 0.0),
    ("server.store_bypass.mitigated", 0.0),
    ("server.indirect_branch.mitigated", 0.0),
    ("server.thp_disabled", 0.0),
    ("thp.always", 1.0),
    ("server.faults.minor", 1000.0),
    ("server.faults.major", 0.0),
    ("memory.swap_in.pages", 0.0),
    ("memory.thp_faults", 0.0),
    ("disk.flushes", 1000.0),
    ("disk.flush.seconds", 1.0),
    ("disk.busy.seconds", 1.0),
    ("server.disk.write.bytes", 1e6),
    ("other.disk.bytes", 1000.0),
    ("cgroup.disk_limits", 0.0),
    ("net.drops", 0.0),
    ("tcp.retransmits", 0.0),
    ("tcp.listen_overflows", 0.0),
    ("tcp.delayed_acks", 0.0),
    ("client.cpu.seconds", 3.0),
    ("server.call.read.count", 40_000.0),
    ("server.call.read.seconds", 1.5),
    ("server.call.fsync.count", 10_000.0),
    ("server.call.fsync.seconds", 1.0),
];

/// A quiet run with these leaves and readings on top.
pub fn run(extra: &[Row], readings: &[(&str, f64)]) -> Run {
    with_rows(&[&QUIET[..], extra].concat(), readings, 0.01)
}

/// A run with these leaves, of which this share could not be followed.
pub fn with_rows(rows: &[Row], readings: &[(&str, f64)], not_followed: f64) -> Run {
    let params = Params::new().with("clients", 10);
    let mut paths = paths(rows, not_followed);
    paths.params = params.clone();
    paths.workload = "database".into();
    let (mut budget, _) = explain(&StepFigures::default(), &Readings::default(), Some(&paths));
    budget.params = params.clone();
    let throughput = 10.0 / budget.seconds_per_transaction;
    // As Little's law has it, for as many transactions.
    let elapsed = [("step.elapsed.seconds", 10_000.0 / throughput)];
    let processes = [0.992, 0.995, 1.0, 1.005, 1.008].map(|f| Process {
        value: Some(f * throughput),
        ..Process::default()
    });
    Run {
        id: "made-up".into(),
        measurements: vec![Measurement {
            probe: "database.throughput".into(),
            descriptor: None,
            version: 1,
            params: params.clone(),
            unit: Unit::PerSecond,
            better: Better::Higher,
            outcome: Outcome::Measured,
            reason: None,
            estimate: Some(Estimate {
                value: throughput,
                low: throughput * 0.99,
                high: throughput * 1.01,
                confidence: 0.95,
            }),
            percentiles: None,
            processes: processes.into(),
        }],
        observations: vec![Observation {
            workload: "database".into(),
            params,
            observer: "everything".into(),
            source: "made up".into(),
            totals: READINGS
                .iter()
                .chain(&elapsed)
                .chain(readings)
                .map(|(k, v)| ((*k).to_owned(), *v))
                .collect(),
            ..Observation::default()
        }],
        budgets: vec![budget],
        paths: vec![paths],
        ..Run::default()
    }
}

/// The throughput of its row, times a factor: what was followed does not show all that the load generator saw.
pub fn slower(mut run: Run, by: f64) -> Run {
    let row = &mut run.measurements[0];
    let scale = |x: &mut f64| *x *= by;
    row.estimate.iter_mut().for_each(|e| {
        [&mut e.value, &mut e.low, &mut e.high]
            .into_iter()
            .for_each(scale)
    });
    row.processes
        .iter_mut()
        .filter_map(|p| p.value.as_mut())
        .for_each(scale);
    run
}
