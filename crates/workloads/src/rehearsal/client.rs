//! The load generator of the rehearsal: a closed loop in each of its threads.

use std::ffi::OsString;
use std::io::{self, BufRead, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::server::REQUEST;
use super::{Recipe, work};
use crate::histogram::Histogram;
use crate::{ClientReport, Step, WorkloadError};

/// The worker's name.
pub const NAME: &str = "rehearsal-client";

/// Parts of a step whose throughput is told apart.
const PARTS: usize = 5;
/// From this share of its CPUs on the client is the limit.
const SATURATED: f64 = 0.9;
/// How long a transaction may take before it counts as an error.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a step gave, as a line between the processes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    elapsed_s: f64,
    parts: Vec<u64>,
    latencies: Vec<(u64, u64)>,
    cpu_s: f64,
    cpus: usize,
    errors: u64,
    why: Option<String>,
}

impl Report {
    /// The report as the step of a workload.
    pub fn into_step(self, clients: usize) -> Result<Step, WorkloadError> {
        let transactions: u64 = self.parts.iter().sum();
        if transactions == 0 {
            let why = self.why.unwrap_or_else(|| "the server answered nothing".into());
            return Err(WorkloadError::Failed(format!("no transaction was completed in {:.1} s: {why}", self.elapsed_s)));
        }
        let busy = self.cpu_s / (self.elapsed_s * self.cpus.max(1) as f64);
        let saturated = (busy > SATURATED).then(|| format!("the load generator used {:.0} % of the CPUs it may use", busy * 100.0));
        let seconds = self.elapsed_s / self.parts.len() as f64;
        let mut client =
            ClientReport { cpu_seconds: self.cpu_s, cpus: self.cpus, generators: clients, saturated, ..ClientReport::default() };
        if self.errors > 0 {
            client.errors.insert(self.why.unwrap_or_else(|| "failed".into()), self.errors);
        }
        Ok(Step {
            transactions,
            elapsed: Duration::from_secs_f64(self.elapsed_s),
            throughput: self.parts.iter().map(|n| *n as f64 / seconds).collect(),
            latencies: self.latencies,
            intended: Vec::new(),
            client,
        })
    }
}

/// Answers "go", then a report to each line with a number of milliseconds.
pub fn main(args: Vec<OsString>) -> ExitCode {
    match listen(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            println!("error {e}");
            ExitCode::FAILURE
        }
    }
}

fn listen(args: Vec<OsString>) -> io::Result<()> {
    let [recipe, port] = args.as_slice() else { return Err(io::Error::other("a recipe and a port are needed")) };
    let recipe: Recipe = serde_json::from_str(&recipe.to_string_lossy())?;
    let port: u16 = port.to_string_lossy().parse().map_err(io::Error::other)?;
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    for line in io::stdin().lock().lines() {
        match line?.parse::<u64>() {
            Ok(ms) => println!("{}", serde_json::to_string(&step(&recipe, server, Duration::from_millis(ms)))?),
            Err(_) => println!("ready"),
        }
    }
    Ok(())
}

fn step(recipe: &Recipe, server: SocketAddr, length: Duration) -> Report {
    let begun = Instant::now();
    let cpu = cpu_seconds();
    let parts: Vec<AtomicU64> = (0..PARTS).map(|_| AtomicU64::new(0)).collect();
    let results: Vec<(Histogram, Option<String>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..recipe.clients).map(|_| scope.spawn(|| one_client(recipe, server, begun, length, &parts))).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_default()).collect()
    });
    let mut latencies = Histogram::new();
    results.iter().for_each(|(h, _)| latencies.merge(h));
    Report {
        // Clients that wait for their last answer are past the end; what they get then is not counted.
        elapsed_s: length.as_secs_f64(),
        parts: parts.iter().map(|n| n.load(Ordering::Relaxed)).collect(),
        latencies: latencies.counted(),
        cpu_s: (cpu_seconds() - cpu) * (length.as_secs_f64() / begun.elapsed().as_secs_f64()).min(1.0),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        errors: results.iter().filter(|(_, why)| why.is_some()).count() as u64,
        why: results.into_iter().find_map(|(_, why)| why),
    }
}

fn one_client(recipe: &Recipe, server: SocketAddr, begun: Instant, length: Duration, parts: &[AtomicU64]) -> (Histogram, Option<String>) {
    let mut seen = Histogram::new();
    let mut stream = None;
    let mut answer = vec![0; recipe.answer.max(2)];
    while begun.elapsed() < length {
        let asked = Instant::now();
        match transaction(recipe, server, &mut stream, &mut answer) {
            Ok(()) => {
                let at = begun.elapsed();
                if at < length {
                    seen.record(asked.elapsed().as_nanos() as u64);
                    let part = (at.as_secs_f64() / length.as_secs_f64() * PARTS as f64) as usize;
                    parts[part.min(PARTS - 1)].fetch_add(1, Ordering::Relaxed);
                }
                work(recipe.client_work);
            }
            Err(e) => return (seen, Some(e.to_string())),
        }
    }
    (seen, None)
}

fn transaction(recipe: &Recipe, server: SocketAddr, stream: &mut Option<TcpStream>, answer: &mut [u8]) -> io::Result<()> {
    if stream.is_none() {
        let new = TcpStream::connect_timeout(&server, TIMEOUT)?;
        new.set_nodelay(true)?;
        new.set_read_timeout(Some(TIMEOUT))?;
        *stream = Some(new);
    }
    let Some(connection) = stream.as_mut() else { return Ok(()) };
    connection.write_all(&[b'?'; REQUEST])?;
    connection.read_exact(answer)?;
    if recipe.connects {
        *stream = None;
    }
    Ok(())
}

/// CPU seconds of this process, user and system.
fn cpu_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}
