//! The load generators as the conducting process sees them: started when needed, given orders, asked for reports.

use std::process::Stdio;
use std::time::{Duration, Instant};

use fingerpost_sys::stamps::Stamps;
use fingerpost_undo::scratch::Scratch;

use super::generator;
use super::protocol::{Load, Order, Reply, Report, now_ns};
use crate::WorkloadError::{self, Failed};
use crate::worker::{self, Link, NoAnswer};

/// How long a generator may take to say that it is ready: longer than it waits for its connections.
const READY: Duration = Duration::from_secs(20);
/// How long a report may take after the window's end: longer than answers under way are waited for.
const REPORT: Duration = Duration::from_secs(20);
/// Between the order and the beginning of the window, so that every generator has read the order by then.
const LEAD_NS: u64 = 20_000_000;

/// Generator processes that run or wait for orders.
#[derive(Debug, Default)]
pub struct Pool {
    generators: Vec<Generator>,
    /// Where all of them stamp their round trips.
    pub stamps: Option<Stamps>,
}

#[derive(Debug)]
struct Generator(Link);

impl Pool {
    /// None yet; those to come stamp their round trips where there is something to stamp them into.
    pub fn new(stamps: Option<Stamps>) -> Pool {
        Pool {
            generators: Vec::new(),
            stamps,
        }
    }

    /// The ids of the processes.
    pub fn pids(&self) -> Vec<i32> {
        self.generators.iter().map(|g| g.0.process.pid()).collect()
    }

    /// Sees to it that there are this many.
    pub fn grow(&mut self, count: usize, scratch: &mut Scratch) -> Result<(), WorkloadError> {
        while self.generators.len() < count {
            let mut command = worker::command(generator::NAME);
            command.stderr(Stdio::null());
            self.stamps
                .iter()
                .for_each(|stamps| stamps.give(&mut command));
            let link = Link::within(&mut command, scratch)
                .map_err(|e| Failed(format!("a load generator could not be started: {e}")))?;
            self.generators.push(Generator(link));
        }
        Ok(())
    }

    /// Makes the loads, one per generator, for a warm-up and then a window; a report each. Calls `begun` when all are
    /// connected.
    pub fn run(
        &mut self,
        loads: &[Load],
        warm_up: Duration,
        length: Duration,
        begun: &mut dyn FnMut(),
    ) -> Result<Vec<Report>, WorkloadError> {
        let generators = &mut self.generators[..loads.len()];
        for (generator, load) in generators.iter_mut().zip(loads) {
            generator.order(&Order::Load(load.clone()))?;
        }
        let deadline = Instant::now() + READY;
        for generator in generators.iter_mut() {
            let Reply::Ready = generator.reply(deadline)? else {
                return Err(confused());
            };
        }
        let order = Order::Measure {
            start_ns: now_ns() + LEAD_NS + warm_up.as_nanos() as u64,
            length_ns: length.as_nanos() as u64,
        };
        for generator in generators.iter_mut() {
            generator.order(&order)?;
        }
        begun();
        let deadline = Instant::now() + warm_up + length + REPORT;
        generators.iter_mut().map(|g| g.report(deadline)).collect()
    }

    /// Ends all of them.
    pub fn stop(&mut self, scratch: &mut Scratch) {
        for generator in self.generators.drain(..) {
            // What cannot be ended here is ended with the scratch directory.
            let _ = scratch.stop(generator.0.process);
        }
    }
}

fn confused() -> WorkloadError {
    Failed("a load generator gave an answer that does not fit the order".to_owned())
}

impl Generator {
    fn order(&mut self, order: &Order) -> Result<(), WorkloadError> {
        self.0.order(order).map_err(|e| self.lost(e.into()))
    }

    fn report(&mut self, deadline: Instant) -> Result<Report, WorkloadError> {
        match self.reply(deadline)? {
            Reply::Report(report) => Ok(*report),
            _ => Err(confused()),
        }
    }

    /// The next reply, which must come before the deadline, and not be that it cannot.
    fn reply(&mut self, deadline: Instant) -> Result<Reply, WorkloadError> {
        match self
            .0
            .answer(deadline.saturating_duration_since(Instant::now()))
            .map_err(|why| self.lost(why))?
        {
            Reply::Cannot(why) => Err(Failed(why)),
            reply => Ok(reply),
        }
    }

    fn lost(&mut self, why: NoAnswer) -> WorkloadError {
        match why {
            NoAnswer::Other(_) => confused(),
            NoAnswer::Late(_) => Failed(
                "a load generator did not answer in time; it may have been stopped".to_owned(),
            ),
            _ => Failed(format!("a load generator {}", self.0.end())),
        }
    }
}
