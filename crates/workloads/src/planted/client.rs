//! The load generator of a private server: a thread and a connection for each client, each in a closed loop.
//!
//! It takes orders on standard input, an object of JSON a line: statements to be run once, or a step, which is answered
//! with "begun" when every client is connected, and with a report when it is over.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, BufRead};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use fingerpost_sys::stamps::{ThreadWriter, Writer};
use fingerpost_sys::system::own_cpu_time;
use fingerpost_sys::trace::monotonic_ns;
use serde::{Deserialize, Serialize};

use super::script::{Script, fill};
use super::talk::{Talk, Target};
use crate::closed_loop::{PARTS, Report, stamp, work};
use crate::histogram::Histogram;
use crate::worker::{Ended, refusal, say};

/// The worker's name.
pub const NAME: &str = "planted-client";
/// What is said when every client is connected.
pub const BEGUN: &str = "begun";

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);

/// An order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Run these once, in turn.
    Prepare(Vec<String>),
    /// Load the server for so many milliseconds.
    Step(Script, u64),
}

/// Answers orders until there are no more.
pub fn main(args: Vec<OsString>) -> Ended {
    let target: Target = serde_json::from_str(
        &args
            .first()
            .map(|t| t.to_string_lossy())
            .unwrap_or_default(),
    )?;
    let writers = Writer::find();
    for line in io::stdin().lock().lines() {
        let answer = match serde_json::from_str(&line?)? {
            Order::Prepare(asks) => prepare(&target, &asks).map(|()| "ready".to_owned()),
            Order::Step(script, ms) => step(
                &target,
                &script,
                Duration::from_millis(ms),
                writers.as_ref(),
            )
            .and_then(|r| Ok(serde_json::to_string(&r)?)),
        };
        println!("{}", answer.unwrap_or_else(refusal));
    }
    Ok(())
}

fn prepare(target: &Target, asks: &[String]) -> Result<(), Box<dyn Error>> {
    let mut talk = target.connect(false, "prepare", CONNECT)?;
    // A pattern with a number is run for each from one on: "@1000 SET k{r} x".
    for ask in asks {
        match ask.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            Some((count, pattern)) => {
                let count: u32 = count.parse().map_err(|_| format!("{count} is no number"))?;
                let payload = "x".repeat(4096);
                (1..=count).try_for_each(|n| talk.ask(&fill(pattern, [n, n], 0, &payload)))?;
            }
            None => talk.ask(ask)?,
        }
    }
    Ok(())
}

/// What all threads of a step share.
struct Shared {
    target: Target,
    script: Script,
    payload: String,
    length: Duration,
    gate: Barrier,
    parts: [AtomicU64; PARTS],
    turns: AtomicU64,
    begun: std::sync::OnceLock<Instant>,
}

fn step(
    target: &Target,
    script: &Script,
    length: Duration,
    writers: Option<&Writer>,
) -> Result<Report, Box<dyn Error>> {
    let clients = script.clients.max(1);
    let mut connections = Vec::new();
    for _ in 0..clients {
        let one = (!script.connects)
            .then(|| target.connect(script.split, &script.name, CONNECT))
            .transpose();
        connections.push(one.map_err(|e| format!("a client cannot connect: {e}"))?);
    }
    let shared = Arc::new(Shared {
        target: target.clone(),
        script: script.clone(),
        payload: "x".repeat(script.payload),
        length,
        gate: Barrier::new(clients + 1),
        parts: Default::default(),
        turns: AtomicU64::new(0),
        begun: std::sync::OnceLock::new(),
    });
    let mut threads = Vec::new();
    for (number, talk) in connections.into_iter().enumerate() {
        let (shared, writers) = (shared.clone(), writers.cloned());
        let client = Client {
            shared,
            talk,
            number,
            thread_writer: None,
            rng: fastrand::Rng::with_seed(number as u64 + 1),
            seen: Histogram::default(),
            why: None,
        };
        // A stamp tells the thread that the thread_writer was made in, and that is the one whose time is followed.
        let with_writer = move || {
            Client {
                thread_writer: writers.as_ref().map(Writer::of_thread),
                ..client
            }
            .run()
        };
        let thread = std::thread::Builder::new()
            .stack_size(512 << 10)
            .spawn(with_writer);
        // Those that wait at the gate for one that cannot come end with this process.
        threads.push(thread.map_err(|e| format!("cannot start {clients} client threads: {e}"))?);
    }
    let (cpu, begun) = (own_cpu_time(), *shared.begun.get_or_init(Instant::now));
    shared.gate.wait();
    // Should the conductor be gone, the report finds out.
    let _ = say(BEGUN);
    let done = threads
        .into_iter()
        .filter_map(|t| t.join().ok())
        .map(|c| (c.seen, c.why))
        .collect();
    let parts = shared
        .parts
        .iter()
        .map(|n| n.load(Ordering::Relaxed))
        .collect();
    Ok(Report::of(
        length,
        begun,
        cpu,
        parts,
        shared.turns.load(Ordering::Relaxed),
        done,
    ))
}

/// One client.
struct Client {
    shared: Arc<Shared>,
    talk: Option<Talk>,
    number: usize,
    thread_writer: Option<ThreadWriter>,
    rng: fastrand::Rng,
    seen: Histogram,
    why: Option<String>,
}

impl Client {
    fn run(mut self) -> Client {
        let shared = self.shared.clone();
        shared.gate.wait();
        let begun = *shared.begun.get_or_init(Instant::now);
        while begun.elapsed() < shared.length {
            if shared.script.think_us > 0 {
                std::thread::sleep(Duration::from_micros(shared.script.think_us));
            }
            let asked = monotonic_ns();
            let result = self.transaction(&shared, shared.length.saturating_sub(begun.elapsed()));
            let now = monotonic_ns();
            let at = begun.elapsed();
            match result {
                Ok(turns) => {
                    if shared.target.is_embedded() {
                        self.stamp(asked, now);
                    }
                    if at < shared.length {
                        self.seen.record(now - asked);
                        shared.turns.fetch_add(turns, Ordering::Relaxed);
                        let part = (at.as_secs_f64() / shared.length.as_secs_f64() * PARTS as f64)
                            as usize;
                        shared.parts[part.min(PARTS - 1)].fetch_add(1, Ordering::Relaxed);
                    }
                    work(shared.script.client_work);
                }
                Err(why) => {
                    self.talk = None;
                    // A connection that is given up at the end of the step is no error: its next try may be seconds
                    // away.
                    if at < shared.length {
                        self.why.get_or_insert_with(|| why.to_string());
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
            }
        }
        self
    }

    fn transaction(&mut self, shared: &Shared, left: Duration) -> Result<u64, Box<dyn Error>> {
        let began = monotonic_ns();
        let new = self.talk.is_none() || shared.script.connects;
        if new {
            self.talk = Some(shared.target.connect(
                shared.script.split,
                &shared.script.name,
                left.max(Duration::from_millis(1)),
            )?);
        }
        let share = shared
            .script
            .pick(self.rng.f64())
            .ok_or("the script asks nothing")?;
        let numbers = [
            self.rng.u32(1..=shared.script.keys.max(1)),
            self.rng.u32(1..=shared.script.keys.max(1)),
        ];
        for (i, pattern) in share.asks.iter().enumerate() {
            let text = fill(pattern, numbers, self.number, &shared.payload);
            let asked = if i == 0 && new { began } else { monotonic_ns() };
            self.talk
                .as_mut()
                .ok_or("the connection is gone")?
                .ask(&text)?;
            if !shared.target.is_embedded() {
                self.stamp(asked, monotonic_ns());
            }
        }
        if shared.script.connects {
            self.talk = None;
        }
        Ok(share.asks.len() as u64)
    }

    /// Stamps a round trip, or the whole transaction of a database within this process, while that is asked for.
    fn stamp(&self, asked: u64, answered: u64) {
        stamp(
            self.thread_writer.as_ref(),
            self.number as u32,
            asked,
            answered,
        );
    }
}
