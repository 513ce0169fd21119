//! What the load generators whose clients are threads in closed loops have in common: a report, and work between requests.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{ClientReport, Step, WorkloadError};

/// Parts of a step whose throughput is told apart.
pub(crate) const PARTS: usize = 5;
/// From this share of its CPUs on the client is the limit.
const SATURATED: f64 = 0.9;

/// What a step gave, as a line between the processes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub(crate) elapsed_s: f64,
    pub(crate) parts: Vec<u64>,
    pub(crate) turns: u64,
    pub(crate) latencies: Vec<(u64, u64)>,
    pub(crate) cpu_s: f64,
    pub(crate) cpus: usize,
    pub(crate) errors: u64,
    pub(crate) why: Option<String>,
}

impl Report {
    /// The report as the step of a workload, whose clients can use so many CPUs at most.
    pub fn into_step(self, clients: usize, most_cpus: usize, embedded: bool) -> Result<Step, WorkloadError> {
        let transactions: u64 = self.parts.iter().sum();
        if transactions == 0 {
            let why = self.why.unwrap_or_else(|| "the server answered nothing".into());
            return Err(WorkloadError::Failed(format!("no transaction was completed in {:.1} s: {why}", self.elapsed_s)));
        }
        let busy = self.cpu_s / (self.elapsed_s * self.cpus.min(most_cpus).max(1) as f64);
        // Where the database is within the client, its CPU time is the server's.
        let saturated =
            (busy > SATURATED && !embedded).then(|| format!("the load generator used {:.0} % of the CPUs it may use", busy * 100.0));
        let seconds = self.elapsed_s / self.parts.len() as f64;
        let mut client = ClientReport {
            cpu_seconds: if embedded { 0.0 } else { self.cpu_s },
            cpus: self.cpus,
            generators: clients,
            saturated,
            ..ClientReport::default()
        };
        if self.errors > 0 {
            client.errors.insert(self.why.unwrap_or_else(|| "failed".into()), self.errors);
        }
        Ok(Step {
            transactions,
            turns: self.turns,
            elapsed: Duration::from_secs_f64(self.elapsed_s),
            throughput: self.parts.iter().map(|n| *n as f64 / seconds).collect(),
            latencies: self.latencies,
            intended: Vec::new(),
            client,
        })
    }
}

/// The end of a load generator, which is told to whoever listens.
pub(crate) fn told(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            println!("error {e}");
            ExitCode::FAILURE
        }
    }
}

/// CPU seconds of this process, user and system.
pub(crate) fn cpu_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// Integer arithmetic that no compiler can leave out: about a nanosecond a turn.
pub(crate) fn work(turns: u32) -> u64 {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64 ^ u64::from(turns);
    for _ in 0..turns {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    std::hint::black_box(x)
}
