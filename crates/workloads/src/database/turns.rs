//! Round trips: a connection that counts them, and stamps each while that is asked for.

use fingerpost_sys::stamps::ThreadWriter;
use fingerpost_sys::trace::monotonic_ns;

use crate::database::connection::{Arg, Bound, Connection, QueryError};

/// A connection for the length of one transaction. Each of its statements is one round trip, its beginning and its end
/// included.
pub struct Turns<'a> {
    connection: &'a mut dyn Connection,
    thread_writer: Option<&'a ThreadWriter>,
    number: u32,
    taken: u64,
}

impl<'a> Turns<'a> {
    /// Over a connection with this number; stamped where there is a thread_writer, while its switch is on.
    #[inline]
    pub fn new(connection: &'a mut dyn Connection, thread_writer: Option<&'a ThreadWriter>, number: u32) -> Self {
        Turns { connection, thread_writer, number, taken: 0 }
    }

    /// Round trips until now.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The clock is read only while round trips are stamped: a transaction of several has no reading between them
    /// otherwise.
    #[inline]
    fn turn<T>(&mut self, ask: impl FnOnce(&mut dyn Connection) -> Result<T, QueryError>) -> Result<T, QueryError> {
        self.taken += 1;
        let Some(thread_writer) = self.thread_writer.filter(|thread_writer| thread_writer.on()) else {
            return ask(self.connection);
        };
        let start = monotonic_ns();
        let answer = ask(self.connection);
        // One that failed for good has no answer that the kernel could have seen.
        if !answer.as_ref().is_err_and(|e| e.fatal) {
            thread_writer.stamp(self.number, start, monotonic_ns());
        }
        answer
    }
}

impl Connection for Turns<'_> {
    fn query(&mut self, statement: usize, args: &[Arg]) -> Result<u64, QueryError> {
        self.turn(|on| on.query(statement, args))
    }

    fn bound(&mut self, bound: Bound) -> Result<(), QueryError> {
        self.turn(|on| on.bound(bound))
    }
}
