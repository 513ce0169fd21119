//! Records of hosts that are told from each other by what their rows cost.

use std::path::Path;

use fingerpost_record::{Better, Estimate, Param, Params, Run, Unit, fixture};

/// A run of 20 rows; `factor` says how much more each costs than usual.
pub fn made(number: u64, factor: impl Fn(&str) -> f64) -> Run {
    let mut run = fixture::run();
    run.id = format!("20260101T000000Z-{number:08x}");
    run.measurements.clear();
    for (n, probe) in [
        "memory.read",
        "memory.write",
        "memory.copy",
        "memory.latency",
        "cpu.int",
        "cpu.div",
        "cpu.branch",
    ]
    .iter()
    .enumerate()
    {
        for size in [1, 2, 3] {
            let params = Params::new().with("size", Param::Int(size));
            let mut m = fixture::row(probe, params, Unit::Nanoseconds, Better::Lower);
            // Hosts differ by up to a per cent, each row in its own way.
            let noise = 1.0
                + 0.01
                    * (((number * 7919 + n as u64 * 104_729 + size as u64 * 15_485_863) % 1000)
                        as f64
                        / 500.0
                        - 1.0);
            let value = 100.0 * noise * factor(probe);
            m.estimate = Some(Estimate {
                value,
                low: value * 0.99,
                high: value * 1.01,
                confidence: 0.95,
            });
            run.measurements.push(m);
        }
    }
    run
}

/// Puts the record of a node where it is gathered from.
pub fn keep(dir: &Path, node: &str, run: &Run) {
    std::fs::write(
        dir.join(format!("{node}.json")),
        serde_json::to_vec(run).unwrap(),
    )
    .unwrap();
}
