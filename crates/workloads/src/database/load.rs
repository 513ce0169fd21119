//! One step within the load generator's process: clients in a closed loop, each a thread with a connection of its own.
//!
//! A client sends its next transaction when the one before is done. Its clock is read once for each transaction: what
//! it takes to think up the next one (about 0.1 µs) is part of that one's latency.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use fingerpost_sys::affinity;
use fingerpost_sys::stamps::{ThreadWriter, Writer};
use fingerpost_sys::subjects::WATCHER;
use fingerpost_sys::trace::monotonic_ns;

use crate::database::connection::{Connection, QueryError, Target, Turns};
use crate::database::messages::{Load, StepOrder};
use crate::database::mix::{Nowhere, Site, User};
use crate::database::open::open;
use crate::database::stalls;
use crate::database::watch::{Progress, Watched, watch};
use crate::histogram::Histogram;
use crate::{ClientReport, Step, quantile};

/// Throughput is told in stretches of this length …
const STRETCH: Duration = Duration::from_millis(100);
/// … and stalls are looked for in slots of this length, or a 100,000th of a long step.
const SLOT: Duration = Duration::from_millis(1);
const MOST_SLOTS: u32 = 100_000;
/// A client whose connection broke tries again this often before it gives up.
const RECONNECTS: u32 = 3;
/// The client is the limit when its CPUs were this busy …
const BUSY: f64 = 0.9;
/// … or the whole machine was, and the client used this share of what was used.
const CLIENT_SHARE: f64 = 0.5;

/// When a step begins and ends to be measured.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: Instant,
    end: Instant,
    slot: Duration,
}

impl Span {
    fn slots(&self) -> usize {
        ((self.end - self.start)
            .as_nanos()
            .div_ceil(self.slot.as_nanos())) as usize
    }
}

/// What one client counted.
#[derive(Default)]
struct Counted {
    completed: u64,
    /// Round trips of these.
    turns: u64,
    latencies: Histogram,
    slots: Vec<u32>,
    errors: BTreeMap<String, u64>,
    /// The first error of all, in full.
    first_error: Option<QueryError>,
}

/// Everything that steps share.
pub struct Generator {
    /// What was loaded.
    pub load: Load,
    site: Site,
    /// CPU time that the generator itself needs for one transaction.
    own_cost: Duration,
    /// Where round trips are stamped, when this process was given a place for that.
    stamps: Option<Writer>,
}

impl Generator {
    /// For a database that has been loaded.
    pub fn new(load: Load) -> Generator {
        let site = Site::new(load.scale, load.seed).after(load.before);
        let own_cost = own_cost(&site, &load);
        Generator {
            load,
            site,
            own_cost,
            stamps: Writer::find(),
        }
    }

    /// Runs a step; calls `begun` when all clients are connected and the load begins.
    pub fn step(&self, order: StepOrder, begun: impl FnOnce()) -> Result<Step, String> {
        let connections = self.connect_all(order.clients)?;
        let progress: Arc<[Progress]> = (0..order.clients).map(|_| Progress::default()).collect();
        let gate = Arc::new(Barrier::new(order.clients + 1));
        let span = Arc::new(OnceLock::new());
        let clients: Vec<_> = connections
            .into_iter()
            .enumerate()
            .map(|(i, connection)| {
                let user = User::new(
                    &self.site,
                    self.load.mix,
                    order
                        .seed
                        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                        .wrapping_add(i as u64),
                );
                let client = Client {
                    user,
                    connection: Some(connection),
                    target: self.load.target.clone(),
                    progress: progress.clone(),
                    number: i,
                };
                let (gate, span, stamps) = (gate.clone(), span.clone(), self.stamps.clone());
                thread::Builder::new().stack_size(256 << 10).spawn(move || {
                    gate.wait();
                    client.run(*span.wait(), stamps.as_ref().map(Writer::of_thread))
                })
            })
            .collect::<Result<_, _>>()
            .map_err(|e| format!("cannot start {} client threads: {e}", order.clients))?;
        gate.wait();
        let start = Instant::now() + Duration::from_nanos(order.warm_up_ns);
        let end = start + Duration::from_nanos(order.length_ns);
        let step = *span.get_or_init(|| Span {
            start,
            end,
            slot: SLOT.max((end - start) / MOST_SLOTS),
        });
        begun();
        let watched = thread::scope(|scope| {
            let watcher = thread::Builder::new()
                .name(WATCHER.to_owned())
                .spawn_scoped(scope, || {
                    watch(&self.load.servers, &progress, step.start, step.end)
                });
            watcher.ok().and_then(|w| w.join().ok())
        })
        .ok_or("the thread that watches the clients could not be started")?;
        let counted: Vec<Counted> = clients
            .into_iter()
            .map(|c| c.join().map_err(|_| "a client thread failed".to_owned()))
            .collect::<Result<_, _>>()?;
        self.sum_up(order, step, &counted, &watched)
    }

    /// Connects all clients before any sends a query: a server that starts a process for each takes a while.
    fn connect_all(&self, clients: usize) -> Result<Vec<Box<dyn Connection>>, String> {
        (0..clients)
            .map(|i| {
                connect(&self.load.target)
                    .map_err(|e| format!("client {} of {clients} could not connect: {e}", i + 1))
            })
            .collect()
    }

    fn sum_up(
        &self,
        order: StepOrder,
        step: Span,
        counted: &[Counted],
        watched: &Watched,
    ) -> Result<Step, String> {
        let mut latencies = Histogram::default();
        let mut slots = vec![0u32; step.slots()];
        let mut errors = BTreeMap::new();
        for client in counted {
            latencies.merge(&client.latencies);
            slots
                .iter_mut()
                .zip(&client.slots)
                .for_each(|(sum, n)| *sum += n);
            client
                .errors
                .iter()
                .for_each(|(kind, n)| *errors.entry(kind.clone()).or_default() += n);
        }
        let transactions: u64 = counted.iter().map(|c| c.completed).sum();
        if transactions == 0 {
            let error = counted.iter().find_map(|c| c.first_error.as_ref());
            return Err(
                error.map_or("no transaction completed within the step".to_owned(), |e| {
                    format!("no transaction succeeded: {e}")
                }),
            );
        }
        let elapsed = step.end - step.start;
        let latencies = latencies.counted();
        let median = quantile(&latencies, 0.5).unwrap_or(0);
        let stalls = stalls::find(
            &slots,
            step.slot.as_nanos() as u64,
            median,
            order.clients,
            &watched.samples,
        );
        let cpus = affinity::allowed_cpus().map_or(1, |cpus| cpus.len());
        let cpu_seconds = match self.load.target {
            // Client and server are one process: what the server needs is not the client's.
            Target::Sqlite { .. } => self.own_cost.as_secs_f64() * transactions as f64,
            _ => watched.cpu_seconds,
        };
        let fullness = Fullness {
            clients: order.clients,
            cpus,
            elapsed: elapsed.as_secs_f64(),
            cpu: cpu_seconds,
            busy: watched.busy,
        };
        let client = ClientReport {
            cpu_seconds,
            cpus,
            generators: order.clients,
            stalls,
            errors,
            saturated: fullness.verdict(),
            ..ClientReport::default()
        };
        Ok(Step {
            transactions,
            turns: counted.iter().map(|c| c.turns).sum(),
            elapsed,
            throughput: stretches(&slots, step.slot, elapsed),
            latencies,
            intended: Vec::new(),
            client,
        })
    }
}

/// Connects and prepares every statement.
fn connect(target: &Target) -> Result<Box<dyn Connection>, QueryError> {
    let mut session = open(target)?;
    session.prepare()?;
    Ok(session)
}

/// One client.
struct Client {
    user: User,
    connection: Option<Box<dyn Connection>>,
    target: Target,
    progress: Arc<[Progress]>,
    number: usize,
}

impl Client {
    fn run(mut self, span: Span, thread_writer: Option<ThreadWriter>) -> Counted {
        let mut counted = Counted::new(span);
        // What the kernel shows of the embedded database is where its thread is: its transactions are stamped as
        // wholes.
        let embedded = matches!(self.target, Target::Sqlite { .. });
        let (number, writer) = (self.number as u32, thread_writer.as_ref());
        let mut began = Instant::now();
        let mut done = 0;
        let mut stamped = None;
        while began < span.end {
            let Some(connection) = self.connection.as_mut() else {
                break;
            };
            let mut turns = Turns::new(connection.as_mut(), writer.filter(|_| !embedded), number);
            let result = self.user.act(&mut turns);
            let now = Instant::now();
            let taken = turns.taken();
            stamped = writer
                .filter(|writer| embedded && writer.on())
                .map(|writer| {
                    let end = monotonic_ns();
                    // The loop is closed: a transaction begins where the one before ended.
                    let start =
                        stamped.unwrap_or(end.saturating_sub((now - began).as_nanos() as u64));
                    writer.stamp(number, start, end);
                    end
                });
            match result {
                Ok(()) => {
                    done += 1;
                    self.progress[self.number].0.store(done, Ordering::Relaxed);
                    counted.record(span, began, now, taken);
                }
                Err(error) => self.recover(error, &mut counted),
            }
            began = now;
        }
        counted
    }

    /// Counts an error, and replaces a connection that broke.
    fn recover(&mut self, error: QueryError, counted: &mut Counted) {
        let broken = error.fatal;
        counted.count_error(error);
        if broken {
            self.connection = None;
            self.connection = (0..RECONNECTS).find_map(|_| {
                connect(&self.target)
                    .map_err(|e| counted.count_error(e))
                    .ok()
            });
        }
    }
}

impl Counted {
    fn new(span: Span) -> Counted {
        Counted {
            slots: vec![0; span.slots()],
            ..Counted::default()
        }
    }

    /// Throughput has what completed within the step; latencies have what began within it, so that one that lasts
    /// beyond its end, which is likely to be a long one, is not left out.
    #[inline]
    fn record(&mut self, span: Span, began: Instant, now: Instant, turns: u64) {
        if now < span.start {
            return;
        }
        if began >= span.start {
            self.latencies.record((now - began).as_nanos() as u64);
        }
        if now < span.end {
            self.completed += 1;
            self.turns += turns;
            self.slots
                [((now - span.start).as_nanos() as u64 / span.slot.as_nanos() as u64) as usize] +=
                1;
        }
    }

    fn count_error(&mut self, error: QueryError) {
        *self.errors.entry(error.kind.clone()).or_default() += 1;
        self.first_error.get_or_insert(error);
    }
}

/// What tells whether the client was the limit.
#[derive(Clone, Copy, Debug)]
struct Fullness {
    clients: usize,
    cpus: usize,
    elapsed: f64,
    /// CPU seconds of the client.
    cpu: f64,
    /// Share of all CPU time of the machine that was not idle.
    busy: f64,
}

impl Fullness {
    /// Why the client was the limit; nothing when it was not. More generators would not help: each client is a thread
    /// already, and the CPUs are what is short.
    fn verdict(&self) -> Option<String> {
        let could = self.elapsed * self.clients.min(self.cpus) as f64;
        if self.cpu >= BUSY * could {
            return Some(format!(
                "the load generator's own CPU was the limit: it used {:.2} s of the {could:.2} s that it could",
                self.cpu
            ));
        }
        let used = self.busy * self.elapsed * self.cpus as f64;
        if self.busy >= BUSY && self.cpu > CLIENT_SHARE * used {
            let share = 100.0 * self.cpu / used;
            return Some(format!(
                "all CPUs were busy, {share:.0} % of that with the load generator: give the server a machine of its own"
            ));
        }
        None
    }
}

/// Transactions a second in stretches of [`STRETCH`]; what remains at the end is left out unless there is nothing else.
fn stretches(slots: &[u32], slot: Duration, elapsed: Duration) -> Vec<f64> {
    let per_stretch = ((STRETCH.as_nanos() / slot.as_nanos()) as usize).max(1);
    let whole: Vec<f64> = slots
        .chunks_exact(per_stretch)
        .map(|stretch| {
            f64::from(stretch.iter().sum::<u32>()) / (slot.as_secs_f64() * per_stretch as f64)
        })
        .collect();
    if whole.is_empty() {
        vec![f64::from(slots.iter().sum::<u32>()) / elapsed.as_secs_f64()]
    } else {
        whole
    }
}

/// CPU time that a user needs for one transaction when every answer comes at once.
fn own_cost(site: &Site, load: &Load) -> Duration {
    const TURNS: u32 = 20_000;
    // A site of its own, so that the numbers of new rows are not used up.
    let mut user = User::new(&Site::new(load.scale, load.seed), load.mix, 1);
    let start = Instant::now();
    let far = Duration::from_secs(3600);
    let span = Span {
        start,
        end: start + far,
        slot: far,
    };
    let mut counted = Counted::new(span);
    let mut began = start;
    for _ in 0..TURNS {
        let mut nowhere = Nowhere;
        let mut turns = Turns::new(&mut nowhere, None, 0);
        let _ = user.act(&mut turns);
        let now = Instant::now();
        counted.record(span, began, now, turns.taken());
        began = now;
    }
    std::hint::black_box((site, &counted.latencies));
    // The median, so that a switch in between does not count.
    Duration::from_nanos(quantile(&counted.latencies.counted(), 0.5).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_has_what_completed_latency_what_began_within() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let span = Span {
            start: at(100),
            end: at(200),
            slot: SLOT,
        };
        let mut counted = Counted::new(span);
        counted.record(span, at(10), at(99), 1);
        counted.record(span, at(99), at(101), 5);
        counted.record(span, at(101), at(151), 7);
        counted.record(span, at(151), at(350), 1);
        assert_eq!((counted.completed, counted.turns), (2, 12));
        assert_eq!(counted.latencies.total(), 2);
        assert!(counted.latencies.quantile(1.0).unwrap() > 198_000_000);
        assert_eq!(
            (
                counted.slots[1],
                counted.slots[51],
                counted.slots.iter().sum::<u32>()
            ),
            (1, 1, 2)
        );
    }

    #[test]
    fn stretches_are_rates() {
        let slots = vec![2; 250];
        assert_eq!(
            stretches(&slots, SLOT, Duration::from_millis(250)),
            [2000.0, 2000.0]
        );
        assert_eq!(
            stretches(&slots[..50], SLOT, Duration::from_millis(50)),
            [2000.0]
        );
    }

    #[test]
    fn a_client_is_the_limit_when_it_uses_the_cpus_it_can() {
        let idle = Fullness {
            clients: 1,
            cpus: 2,
            elapsed: 10.0,
            cpu: 3.0,
            busy: 0.4,
        };
        assert_eq!(idle.verdict(), None);
        assert!(
            Fullness { cpu: 9.5, ..idle }
                .verdict()
                .unwrap()
                .contains("9.50 s of the 10.00 s")
        );
        assert_eq!(
            Fullness {
                clients: 5,
                cpu: 9.5,
                busy: 1.0,
                ..idle
            }
            .verdict(),
            None
        );
        assert!(
            Fullness {
                clients: 5,
                cpu: 11.0,
                busy: 0.95,
                ..idle
            }
            .verdict()
            .unwrap()
            .contains("58 %")
        );
        assert_eq!(
            Fullness {
                clients: 5,
                cpu: 11.0,
                busy: 0.7,
                ..idle
            }
            .verdict(),
            None
        );
    }
}
