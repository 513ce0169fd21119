//! The instrument itself: the clock and the empty loop. Both are reported; nothing is subtracted from other figures.

use std::hint::black_box;

use crate::probe::{Exercises, Probe, latency, table};
use crate::session::{Session, Stop, now_ns};

fn gettime(s: &mut Session) -> Result<(), Stop> {
    s.batches(|ops| {
        for _ in 0..ops {
            black_box(now_ns());
        }
        Ok(())
    })
}

fn empty_loop(s: &mut Session) -> Result<(), Stop> {
    s.batches(|ops| {
        for i in 0..ops {
            black_box(i);
        }
        Ok(())
    })
}

/// The probes of this file.
pub static PROBES: &[Probe] = &[
    Probe {
        name: "clock.gettime",
        bounds: [5.0, 3e3],
        summary: "one reading of the monotonic clock",
        timed: "clock_gettime(CLOCK_MONOTONIC) through the C library: the shared page where the clock source allows \
            it, else a system call.",
        pitfalls: "ten times slower where the clock source is not the CPU's counter (hpet, acpi_pm, some guests).",
        run: gettime,
        ..latency(&table::PROCESSOR, Exercises::Clock)
    },
    Probe {
        name: "clock.loop",
        bounds: [0.05, 20.0],
        summary: "one turn of the empty measuring loop",
        timed: "one turn of a counting loop whose counter is kept from the optimiser: what every batch contains \
            besides its operation.",
        run: empty_loop,
        // User-mode arithmetic.
        ..latency(&table::PROCESSOR, Exercises::Cpu)
    },
];
