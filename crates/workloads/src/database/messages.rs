//! What the conductor and the load generator's process say to each other: one JSON object a line.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Step;
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

/// An import of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// From the first statement sent until the last was done.
    pub took: Duration,
    /// Bytes of the dump.
    pub bytes: u64,
    /// Rows in it.
    pub rows: u64,
    /// Statements in it.
    pub statements: u64,
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
    Loaded(String),
    /// All clients of a step are connected, and its load begins; [`Reply::Step`] follows.
    Begun,
    /// A dump was imported.
    Imported(Imported),
    /// A step was done.
    Step(Step),
    /// What was asked for could not be done: a sentence.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let request = Request::Load(Load {
            target: Target::Sqlite {
                file: "/tmp/x y".into(),
                synchronous: "full".into(),
            },
            scale: 2,
            seed: u64::MAX,
            mix: Mix::Write,
            before: 0,
            servers: vec![7],
        });
        let line = serde_json::to_string(&request).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Request>(&line).unwrap(), request);
        let reply = Reply::Step(Step {
            throughput: vec![0.1 + 0.2],
            latencies: vec![(u64::MAX, 1)],
            ..Step::default()
        });
        assert_eq!(
            serde_json::from_str::<Reply>(&serde_json::to_string(&reply).unwrap()).unwrap(),
            reply
        );
    }
}
