//! Names under which a record has what a load generator on a machine of its own saw (`fingerpost load`).

/// The workload.
pub const WORKLOAD: &str = "load";
/// The observer: the load generator itself.
pub const CLIENT: &str = "client";
/// Transactions completed a second: queries, HTTP requests, committed transactions.
pub const THROUGHPUT: &str = "load.throughput";
/// Round trips on connections a second: a transaction is one or more of them.
pub const TURNS: &str = "load.turns";
/// How long a round trip took for the client, from before it sent until it had read the whole answer.
pub const TURN: &str = "load.turn";
