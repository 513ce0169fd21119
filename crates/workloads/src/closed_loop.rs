//! What the load generators whose clients are threads in closed loops have in common: a report, and work between
//! requests.

use std::io;
use std::time::{Duration, Instant};

use fingerpost_sys::stamps::ThreadWriter;
use fingerpost_sys::system::own_cpu_time;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::{
    ClientReport, Step,
    WorkloadError::{self, Failed},
};

/// Parts of a step whose throughput is told apart.
pub(crate) const PARTS: usize = 5;
/// A step of this length that let nothing through is not repeated.
const LONGEST: Duration = Duration::from_secs(4);
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
    /// Of a step of this length that began then, when the process had used so much CPU time. Clients that wait for
    /// their last answer are past its end; what they get then is not counted. Of each client, what it saw and why it
    /// failed.
    pub fn of(
        length: Duration,
        begun: Instant,
        cpu: Duration,
        parts: Vec<u64>,
        turns: u64,
        clients: Vec<(Histogram, Option<String>)>,
    ) -> Report {
        let mut latencies = Histogram::default();
        clients.iter().for_each(|(seen, _)| latencies.merge(seen));
        Report {
            elapsed_s: length.as_secs_f64(),
            parts,
            turns,
            latencies: latencies.counted(),
            cpu_s: (own_cpu_time() - cpu).as_secs_f64()
                * (length.as_secs_f64() / begun.elapsed().as_secs_f64()).min(1.0),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            errors: clients.iter().filter(|(_, why)| why.is_some()).count() as u64,
            why: clients.into_iter().find_map(|(_, why)| why),
        }
    }

    /// Reads what a load generator told.
    pub fn read(line: &str) -> Result<Report, WorkloadError> {
        serde_json::from_str(line)
            .map_err(|e| Failed(format!("the client's report cannot be read: {e}")))
    }

    /// The report as the step of a workload, whose clients can use so many CPUs at most.
    pub fn into_step(
        self,
        clients: usize,
        most_cpus: usize,
        embedded: bool,
    ) -> Result<Step, WorkloadError> {
        let transactions: u64 = self.parts.iter().sum();
        if transactions == 0 {
            let why = self
                .why
                .unwrap_or_else(|| "the server answered nothing".into());
            return Err(Failed(format!(
                "no transaction was completed in {:.1} s: {why}",
                self.elapsed_s
            )));
        }
        let busy = self.cpu_s / (self.elapsed_s * self.cpus.min(most_cpus).max(1) as f64);
        // Where the database is within the client, its CPU time is the server's.
        let saturated = (busy > SATURATED && !embedded).then(|| {
            format!(
                "the load generator used {:.0} % of the CPUs it may use",
                busy * 100.0
            )
        });
        let seconds = self.elapsed_s / self.parts.len() as f64;
        let mut client = ClientReport {
            cpu_seconds: if embedded { 0.0 } else { self.cpu_s },
            cpus: self.cpus,
            generators: clients,
            saturated,
            ..ClientReport::default()
        };
        if self.errors > 0 {
            client
                .errors
                .insert(self.why.unwrap_or_else(|| "failed".into()), self.errors);
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

/// Stamps a round trip, while that is asked for.
pub(crate) fn stamp(writer: Option<&ThreadWriter>, connection: u32, asked: u64, answered: u64) {
    if let Some(writer) = writer.filter(|writer| writer.on()) {
        writer.stamp(connection, asked, answered);
    }
}

/// Makes a step by `ask`. A plant that bites hard on a busy machine may let nothing through in a short step: it gets a
/// longer one.
pub(crate) fn until_something(
    length: Duration,
    mut ask: impl FnMut(Duration) -> Result<Result<Step, WorkloadError>, WorkloadError>,
) -> Result<Step, WorkloadError> {
    let mut length = length;
    loop {
        let step = ask(length)?;
        if step.is_ok() || length > LONGEST {
            return step;
        }
        length *= 3;
    }
}

/// Runs something in each of so many threads of a worker of this name, without end.
pub(crate) fn in_threads(name: &str, count: usize, each: impl Fn() + Sync) -> io::Result<()> {
    std::thread::scope(|scope| {
        for _ in 0..count {
            if let Err(e) = std::thread::Builder::new().spawn_scoped(scope, &each) {
                // The others work without end, so that this scope would never be left.
                eprintln!("{name}: cannot start a thread: {e}");
                std::process::exit(1);
            }
        }
    });
    Ok(())
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
