//! What the conducting process and a load generator tell each other: one JSON object a line, over the generator's
//! standard input and output. Times are nanoseconds of the monotonic clock, which all processes of a host share.

use std::collections::BTreeMap;
use std::net::SocketAddr;

pub use fingerpost_sys::trace::monotonic_ns as now_ns;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::stalls::Stall;
use crate::worker::say;

/// The length of the stretches whose throughput is a sample.
pub const STRETCH_NS: u64 = 100_000_000;

/// The load that one generator makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The server.
    pub address: SocketAddr,
    /// What the Host field says.
    pub host: String,
    /// Paths with their queries, from the slash on, that are asked for in turn; one at the least.
    pub paths: Vec<String>,
    /// Connections at a time.
    pub connections: usize,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// Requests a second of this generator, for an open loop.
    pub rate: Option<f64>,
    /// Where this generator's first request lies between two of its requests, 0 to 1: several generators take turns.
    pub phase: f64,
    /// End when so many have completed.
    pub requests: Option<u64>,
    /// Whether to spread connections over the source addresses 127.0.0.1 to 127.0.0.100.
    pub spread: bool,
}

/// From the conducting process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Begin this load; go on until a window was measured.
    Load(Load),
    /// Measure from this time on for so long, then stop the load and report.
    Measure {
        /// When to begin.
        start_ns: u64,
        /// For how long.
        length_ns: u64,
    },
}

/// From the generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Every connection has had an answer, or waited for one for long enough.
    Ready,
    /// The window is over.
    Report(Box<Report>),
    /// The load cannot be made, and why.
    Cannot(String),
}

/// What one generator saw in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Answers completed within the window.
    pub completed: u64,
    /// The window's length.
    pub elapsed_ns: u64,
    /// Answers completed in each whole stretch of the window.
    pub stretches: Vec<u64>,
    /// Latencies from the sending, as (nanoseconds, count).
    pub latencies: Vec<(u64, u64)>,
    /// Latencies from the intended start.
    pub intended: Vec<(u64, u64)>,
    /// What went wrong, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Times without any completion.
    pub stalls: Vec<Stall>,
    /// CPU time of the generator within the window.
    pub cpu_ns: u64,
    /// Time that it waited for a CPU.
    pub wait_ns: u64,
    /// Requests of an open loop that were due in the window.
    pub due: u64,
    /// Sockets in TIME_WAIT at the end, on the whole host.
    pub time_wait: u64,
    /// Connections that a full accept queue of the host turned away within the window.
    pub listen_overflows: u64,
}

/// Writes a generator's reply to its standard output.
pub fn answer(reply: &Reply) {
    // When nobody reads any more the input has ended too, which ends the process.
    let _ = say(&serde_json::to_string(reply).expect("a reply is plain data"));
}

/// A generator's orders from its standard input, line by line.
#[derive(Debug, Default)]
pub struct Input {
    bytes: Vec<u8>,
    /// Whether no more orders will come.
    pub ended: bool,
}

impl Input {
    /// Reads once, which waits when nothing is there.
    pub fn read(&mut self) {
        let mut piece = [0; 4096];
        match rustix::io::read(rustix::stdio::stdin(), &mut piece) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) | Err(_) => self.ended = true,
            Ok(n) => self.bytes.extend_from_slice(&piece[..n]),
        }
    }

    /// The next order that has been read. What is no order ends the input: the other side is not what we think.
    pub fn take(&mut self) -> Option<Order> {
        let end = self.bytes.iter().position(|&b| b == b'\n')?;
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        let order = serde_json::from_slice(&line).ok();
        self.ended |= order.is_none();
        order
    }

    /// The next order, waited for; nothing when the input ended.
    pub fn wait(&mut self) -> Option<Order> {
        loop {
            let order = self.take();
            if order.is_some() || self.ended {
                return order;
            }
            self.read();
        }
    }
}
