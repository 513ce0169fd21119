//! Requests under way: connections whose last bytes came in and have no answer yet, which thread has each, and what
//! that thread waits for.
//!
//! Nothing of the service is changed or stopped for it. The kernel's account of each connection (`track`) says which have
//! a request; `/proc` says where threads are (`scene`); `place` joins both; `watch` does so each second and keeps one
//! look for the record.

mod place;
mod scene;
#[cfg(test)]
mod tests;
mod track;
mod watch;

use std::io;
use std::net::SocketAddr;

pub(crate) use scene::{interprets, program as program_of};
pub(crate) use watch::watch;

/// A request that has no answer yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnderWay {
    /// The kernel's number of the socket (its cookie).
    pub socket: u64,
    /// The service's end.
    pub local: SocketAddr,
    /// The client's end.
    pub peer: SocketAddr,
    /// When the first byte arrived that was not read or not answered: nanoseconds of the monotonic clock.
    pub since_ns: u64,
    /// When it was read, where that is known.
    pub read_ns: Option<u64>,
    /// The thread that read it last, where that is known.
    pub tid: Option<i32>,
}

/// What knows which requests are under way.
pub trait Table {
    /// The requests that are under way now.
    ///
    /// # Errors
    /// What the kernel said.
    fn under_way(&mut self) -> io::Result<Vec<UnderWay>>;
}
