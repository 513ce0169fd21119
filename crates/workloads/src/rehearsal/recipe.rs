//! What the rehearsal's client and servers agree on: the recipe, and the size of a request.

use serde::{Deserialize, Serialize};

use super::truth::Mix;

/// Bytes of a request.
pub const REQUEST: usize = 16;

/// What one transaction costs, and how it comes to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// Clients in the closed loop.
    pub clients: usize,
    /// Turns of a loop of integer arithmetic.
    pub work: u32,
    /// Stores to an address that is known late, each before a load that need not wait for it.
    pub stores: u32,
    /// System calls that do next to nothing.
    pub calls: u32,
    /// KiB of fresh memory that are mapped, touched in every small page, and given back.
    pub fresh_kib: usize,
    /// MiB that the server holds, dirty, all its connections together.
    pub held_mib: usize,
    /// Pages of them that a transaction reads at random.
    pub touches: u32,
    /// Writes and syncs every so many transactions of a connection; 0 for never.
    pub sync_every: u32,
    /// Microseconds that the server sleeps, after the work.
    pub pause_us: u64,
    /// Whether work and sleep are done under one lock of the whole server.
    pub lock: bool,
    /// Whether the answer goes out in two small writes.
    pub split: bool,
    /// Bytes of the answer.
    pub answer: usize,
    /// Whether each transaction makes a connection of its own.
    pub connects: bool,
    /// The accept queue's length.
    pub backlog: i32,
    /// Microseconds that the client thinks before each transaction.
    pub think_us: u64,
    /// Turns of the loop that the client does with each answer.
    pub client_work: u32,
    /// What requests do at the server that stamps its own stages; the other server when there is none.
    #[serde(default)]
    pub mix: Option<Mix>,
}

impl Default for Recipe {
    fn default() -> Self {
        Recipe {
            clients: 4,
            work: 0,
            stores: 0,
            calls: 0,
            fresh_kib: 0,
            held_mib: 0,
            touches: 0,
            sync_every: 0,
            pause_us: 0,
            lock: false,
            split: false,
            answer: 64,
            connects: false,
            backlog: 128,
            think_us: 0,
            client_work: 0,
            mix: None,
        }
    }
}
