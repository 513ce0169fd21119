//! Runs of a machine whose costs are known: what the analysis is tested on.

use fingerpost_measure::estimate::across_processes;
use fingerpost_record::{Better, Measurement, Params, Process, Run, Unit};

/// Known costs, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub alloc_base: f64,
    pub alloc_page: f64,
    pub object: f64,
    pub fault_page: f64,
    pub zero_page: f64,
    /// Pages from which each further page costs `knee_factor` times as much.
    pub knee_pages: f64,
    pub knee_factor: f64,
}

impl Default for Machine {
    fn default() -> Self {
        Machine {
            alloc_base: 900.0,
            alloc_page: 0.2,
            object: 600.0,
            fault_page: 400.0,
            zero_page: 100.0,
            knee_pages: 1e9,
            knee_factor: 1.0,
        }
    }
}

impl Machine {
    fn touching(&self, n: f64) -> f64 {
        let beyond = (n - self.knee_pages).max(0.0);
        self.object + self.fault_page * (n - beyond) + self.fault_page * self.knee_factor * beyond
    }

    /// The truth of a row.
    fn value(&self, probe: &str, word: &str, n: f64) -> f64 {
        let alloc = self.alloc_base + self.alloc_page * n;
        match (probe, word) {
            ("zerofill.alloc", "mmap") => alloc,
            ("zerofill.alloc", _) => alloc * 1.3,
            ("zerofill.touch", "mmap") => alloc + self.touching(n),
            ("zerofill.touch", _) => alloc * 1.3 + self.touching(n),
            // Four fifths of the touching are the fault's, one fifth the slower freeing's; of the object a quarter is
            // the fault's.
            ("zerofill.phase", "allocate") => alloc * 0.6,
            ("zerofill.phase", "free_untouched") => alloc * 0.4,
            ("zerofill.phase", "touch") => 0.25 * self.object + 0.8 * self.fault_page * n,
            ("zerofill.phase", "free_touched") => {
                alloc * 0.4 + 0.75 * self.object + 0.2 * self.fault_page * n
            }
            ("zerofill.prefault", "touch" | "file_touch") => alloc + self.touching(n),
            ("zerofill.prefault", "populate") => {
                alloc + 300.0 + self.object + 0.5 * self.fault_page * n
            }
            ("zerofill.prefault", "file_populate") => alloc + self.touching(n) * 2.0,
            ("zerofill.prefault", "thp_read") => alloc + 2_000.0,
            ("zerofill.prefault", _) => {
                alloc + 2_000.0 + 512.0 * self.zero_page * (n / 512.0).ceil()
            }
            ("zerofill.clear", "warm") => 0.5 * self.zero_page,
            ("zerofill.clear", _) => 3.0 * self.zero_page,
            _ => self.zero_page,
        }
    }
}

/// A run of the whole laboratory on a machine, with so much spread between processes.
pub fn run_of(machine: &Machine, spread: f64) -> Run {
    let mut run = Run {
        seed: 7,
        ..Run::default()
    };
    let mut rng = fastrand::Rng::with_seed(11);
    let all = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
    let rows: [(&str, &str, &[&str], &[i64]); 10] = [
        ("zerofill.alloc", "api", &["mmap", "brk"], &all),
        ("zerofill.touch", "api", &["mmap", "brk"], &all),
        (
            "zerofill.phase",
            "phase",
            &["allocate", "free_untouched", "touch", "free_touched"],
            &[1, 2, 4, 16, 256],
        ),
        (
            "zerofill.prefault",
            "how",
            &["touch", "populate", "thp", "file_touch", "file_populate"],
            &[1, 2, 4, 16, 64, 256, 512, 1024, 4096],
        ),
        ("zerofill.prefault", "how", &["thp_read"], &[512]),
        ("zerofill.clear", "state", &["warm", "cold"], &[16, 64, 256]),
        (
            "zerofill.zeroing",
            "how",
            &["memfd"],
            &[16, 64, 256, 1024, 4096],
        ),
        ("zerofill.kernel_profile", "how", &["touch"], &[16, 256]),
        ("zerofill.kernel_profile", "how", &["memfd"], &[64, 256]),
        ("zerofill.kernel_profile", "how", &["thp"], &[512]),
    ];
    for (probe, key, words, pages) in rows {
        for word in words {
            for n in pages {
                let params = Params::new().with(key, *word).with("pages", *n);
                run.measurements
                    .push(row(machine, probe, word, *n, params, spread, &mut rng));
            }
        }
    }
    run
}

fn row(
    machine: &Machine,
    probe: &str,
    word: &str,
    pages: i64,
    params: Params,
    spread: f64,
    rng: &mut fastrand::Rng,
) -> Measurement {
    let truth = machine.value(probe, word, pages as f64);
    let values: Vec<f64> = (0..9)
        .map(|_| truth * (1.0 + spread * (rng.f64() + rng.f64() - 1.0)))
        .collect();
    let counters: Vec<(&str, f64)> = if probe == "zerofill.kernel_profile" {
        let (part, zero) = (machine.fault_page, machine.zero_page);
        let faults = [
            ("fault_ns", 0.7 * part),
            ("user_ns", 0.1 * part),
            ("unmap_ns", 0.25 * part),
            ("unmap_untouched_ns", 0.05 * part),
        ];
        let zeroing = [
            ("clock_ns", 1.01 * zero),
            ("clear_ns", 0.3 * zero),
            ("store_wait_ns", 0.5 * zero),
        ];
        if word == "memfd" {
            zeroing.to_vec()
        } else {
            faults.to_vec()
        }
    } else {
        Vec::new()
    };
    let process = |v: &f64| Process {
        value: Some(*v),
        counters: counters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        ..Process::default()
    };
    let mut m = fingerpost_record::fixture::row(probe, params, Unit::Nanoseconds, Better::Lower);
    m.estimate = across_processes(&values);
    m.processes = values.iter().map(process).collect();
    m
}
