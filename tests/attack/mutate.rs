//! Mutated input in volume: records, imports and requests, each case made from a seed so that it can be repeated.
//!
//! `make test` runs some seconds of each kind. More, with another seed: see `bench/attack`, which sets these variables.
//!
//! - `FINGERPOST_ATTACK_CASES`: cases of each kind (instead of as many as fit into the seconds);
//! - `FINGERPOST_ATTACK_SECONDS`: how long each kind may take;
//! - `FINGERPOST_ATTACK_SEED`: the first case's seed, the next has the next;
//! - `FINGERPOST_ATTACK_WORKERS`: how many cases run at a time;
//! - `FINGERPOST_ATTACKED`: another build of the binary, such as the release's;
//! - `FINGERPOST_ATTACK_KEEP`: the directory for the cases that fail.

mod bytes;
mod corpus;
mod databases;
mod imports;
mod json;
mod library;
mod oracle;
mod records;
mod requests;
mod server;
mod unwinding;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use oracle::Fault;
pub use oracle::misleading;

/// How many cases, and from which seed.
struct Plan {
    cases: u64,
    until: Instant,
    seed: u64,
    workers: u64,
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(format!("FINGERPOST_ATTACK_{name}"))
        .ok()
        .map(|v| v.parse().expect("a whole number"))
}

impl Plan {
    fn from_environment() -> Plan {
        let cases = variable("CASES");
        let seconds = variable("SECONDS").unwrap_or(if cases.is_some() { 24 * 3600 } else { 6 });
        Plan {
            cases: cases.unwrap_or(u64::MAX),
            until: Instant::now() + Duration::from_secs(seconds),
            seed: variable("SEED").unwrap_or(1),
            workers: variable("WORKERS").unwrap_or(1),
        }
    }

    /// One of so many parts of a kind, which in `make test` share its seconds.
    fn share(mut self, parts: u32) -> Plan {
        if variable("CASES").is_none() && variable("SECONDS").is_none() {
            let now = Instant::now();
            self.until = now + self.until.saturating_duration_since(now) / parts;
        }
        self
    }

    /// Runs `case(worker, seed)` for each seed, prints one line of figures, and fails when a case did. A case says
    /// whether the damage was accepted: were all refused by a parser, then nothing behind it was tried.
    fn run(&self, kind: &str, case: impl Fn(u64, u64) -> Result<bool, Fault> + Sync) {
        let (done, accepted, faults) =
            (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for worker in 0..self.workers {
                let (done, accepted, faults, case) = (&done, &accepted, &faults, &case);
                scope.spawn(move || {
                    let mut seed = self.seed + worker;
                    while seed - self.seed < self.cases && Instant::now() < self.until {
                        match case(worker, seed) {
                            Ok(yes) => drop(accepted.fetch_add(u64::from(yes), Ordering::Relaxed)),
                            Err(fault) => {
                                println!("attack {kind} seed {seed}: {}", fault.text);
                                faults.lock().unwrap().push((seed, fault));
                            }
                        }
                        done.fetch_add(1, Ordering::Relaxed);
                        seed += self.workers;
                    }
                });
            }
        });
        let (cases, accepted) = (done.into_inner(), accepted.into_inner());
        summary(
            &format!(
                "kind={kind} seed={} cases={cases} accepted={accepted}",
                self.seed
            ),
            &faults.into_inner().unwrap(),
        );
        assert!(
            cases > 0 && (cases < 100 || accepted > cases / 20),
            "{accepted} of {cases} cases got past the parser"
        );
    }
}

/// The line that `bench/attack` reads, and the failure.
fn summary(head: &str, faults: &[(u64, Fault)]) {
    use std::fmt::Write as _;
    let mut line = format!("attack-result {head}");
    for name in oracle::KINDS {
        let _ = write!(
            line,
            " {name}={}",
            faults.iter().filter(|(_, f)| f.kind == *name).count()
        );
    }
    println!("{line}");
    let first: Vec<String> = faults
        .iter()
        .take(10)
        .map(|(seed, f)| format!("seed {seed}: {}", f.text))
        .collect();
    assert!(
        faults.is_empty(),
        "{head}: {} cases failed:\n{}",
        faults.len(),
        first.join("\n")
    );
}

/// Where the input of a case that failed is kept.
fn keep(kind: &str, seed: u64, extension: &str, bytes: &[u8]) -> PathBuf {
    let directory = std::env::var_os("FINGERPOST_ATTACK_KEEP").map_or_else(
        || PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("attack"),
        PathBuf::from,
    );
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join(format!("{kind}-{seed}.{extension}"));
    std::fs::write(&path, bytes).unwrap();
    path
}
