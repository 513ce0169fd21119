//! What the conductor and the load generator's process say to each other: one JSON object a line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::database::connection::Target;
use crate::database::mix::Mix;

/// What the conductor asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Fill the database, or take it as it is. Comes first.
    Load(Load),
    /// Put clients on it for a while.
    Step(StepOrder),
    /// Import a dump of the same data beside it, and take it away again.
    Import,
}

/// What to load, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The database.
    pub target: Target,
    /// The size of the data set.
    pub scale: u32,
    /// What it is made from.
    pub seed: u64,
    /// What users are going to do.
    pub mix: Mix,
    /// How many load generators were at the data before; with none it is still to be put there.
    pub before: u32,
    /// The server's processes, whose state tells why nothing completes. Empty when the server is elsewhere.
    pub servers: Vec<i32>,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepOrder {
    /// Clients at the same time.
    pub clients: usize,
    /// Load that is not measured.
    pub warm_up_ns: u64,
    /// Load that is.
    pub length_ns: u64,
    /// What the clients' choices are made from.
    pub seed: u64,
}

/// What the load generator answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The data is there. Version and settings of the server, in words.
    Loaded {
        /// In words.
        server: String,
    },
    /// All clients of a step are connected, and its load begins; [`Reply::Step`] follows.
    Begun,
    /// A dump was imported.
    Imported {
        /// Nanoseconds until the last statement was done.
        took_ns: u64,
        /// Bytes of the dump.
        bytes: u64,
        /// Rows in it.
        rows: u64,
        /// Statements in it.
        statements: u64,
    },
    /// A step was done.
    Step(StepReply),
    /// What was asked for could not be done: a sentence.
    Failed(String),
}

/// What a step gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepReply {
    /// Transactions completed within the step.
    pub transactions: u64,
    /// Round trips that they took.
    pub turns: u64,
    /// The step's length in nanoseconds.
    pub elapsed_ns: u64,
    /// Transactions a second in equal stretches.
    pub throughput: Vec<f64>,
    /// Latencies in nanoseconds, counted.
    pub latencies: Vec<(u64, u64)>,
    /// CPU seconds of the generator.
    pub cpu_seconds: f64,
    /// CPUs it could use.
    pub cpus: usize,
    /// Times without any completion: start and length in seconds, and why.
    pub stalls: Vec<(f64, f64, String)>,
    /// Errors by kind.
    pub errors: BTreeMap<String, u64>,
    /// Why the generator was the limit.
    pub saturated: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let request = Request::Load(Load {
            target: Target::Sqlite { file: "/tmp/x y".into(), synchronous: "full".into() },
            scale: 2,
            seed: u64::MAX,
            mix: Mix::Write,
            before: 0,
            servers: vec![7],
        });
        let line = serde_json::to_string(&request).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Request>(&line).unwrap(), request);
        let reply = Reply::Step(StepReply { throughput: vec![0.1 + 0.2], latencies: vec![(u64::MAX, 1)], ..StepReply::default() });
        assert_eq!(serde_json::from_str::<Reply>(&serde_json::to_string(&reply).unwrap()).unwrap(), reply);
    }
}
