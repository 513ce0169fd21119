//! Requests as the end that answers shows them, whoever the client is and wherever it runs.
//!
//! A request begins with the arrival of its first bytes in the socket and ends with the last bytes of its answer that
//! are given to the socket before the next request is read. A request that arrived while an earlier one was being
//! answered (pipelining) began with its own arrival; several that are read or answered in one go cannot be told apart,
//! and are one.

use super::sockets::{Act, Entry};

/// One request, seen from the end that answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    pub socket: u64,
    /// When its first bytes arrived.
    pub begin: u64,
    /// When they were first read.
    pub read: u64,
    pub reader: i32,
    /// When the call began that gave the last bytes of the answer to the socket.
    pub sending: u64,
    /// When they were given.
    pub end: u64,
    pub writer: i32,
    /// Pieces of the answer.
    pieces: u32,
    /// The longest time between two of them.
    widest: u64,
}

/// Requests of one socket in one window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllServed {
    /// Whole ones, in order.
    pub whole: Vec<Served>,
    /// Requests that the window's beginning or end cut.
    pub cut: u64,
}

/// The requests in the log of an end that answers. `fresh` says that the connection's making was seen: what it sends
/// unasked is a greeting then, and no answer to what came before the window.
pub fn served(socket: u64, log: &[Entry], window_end: u64, fresh: bool) -> AllServed {
    let mut found = AllServed::default();
    let mut open: Option<Served> = None;
    // The first arrival since the last reading, and the last of all.
    let (mut pending, mut last): (Option<u64>, Option<u64>) = (None, None);
    for (n, e) in log.iter().enumerate() {
        match e.act {
            Act::Arrived => {
                pending = pending.or(Some(e.at));
                last = Some(e.at);
            }
            Act::Received(1..) => {
                found.whole.extend(open.take_if(|s| s.pieces > 0));
                match pending.take().or(last) {
                    Some(begin) => _ = open.get_or_insert_with(|| Served::begun(socket, begin, e)),
                    // It arrived before the window did.
                    None if n == 0 => found.cut += 1,
                    None => {}
                }
            }
            Act::Sent(_) => match &mut open {
                Some(s) => s.give(e),
                None if n == 0 && !fresh => found.cut += 1,
                None => {}
            },
            // The end of the stream, which arrives too: a client may say so before it has its answer.
            Act::Received(0) => {
                pending = None;
                found.whole.extend(open.take_if(|s| s.pieces > 0));
            }
            Act::Closed => {
                pending = None;
                found.whole.extend(open.take().filter(|s| s.pieces > 0));
            }
            Act::Connect | Act::Connected => {}
        }
    }
    match open {
        Some(s) if s.pieces > 0 && (pending.is_some() || s.is_over(window_end)) => {
            found.whole.push(s)
        }
        Some(_) => found.cut += 1,
        None => {}
    }
    found.cut += u64::from(pending.is_some());
    found
}

impl Served {
    fn begun(socket: u64, begin: u64, read: &Entry) -> Served {
        let (at, tid) = (read.at, read.tid);
        Served {
            socket,
            begin: begin.min(at),
            read: at,
            reader: tid,
            sending: at,
            end: at,
            writer: tid,
            pieces: 0,
            widest: 0,
        }
    }

    fn give(&mut self, e: &Entry) {
        if self.pieces > 0 {
            self.widest = self.widest.max(e.at.saturating_sub(self.end));
        }
        (self.sending, self.end, self.writer) = (e.begun, e.at, e.tid);
        self.pieces += 1;
    }

    /// An answer in pieces is over when there was twice as long nothing as ever between its pieces.
    fn is_over(&self, window_end: u64) -> bool {
        self.pieces == 1 || window_end.saturating_sub(self.end) > 2 * self.widest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: u64, act: Act) -> Entry {
        Entry {
            at,
            begun: at - 1,
            tid: 7,
            act,
        }
    }

    fn times(log: &[Entry], end: u64) -> (Vec<(u64, u64, u64)>, u64) {
        let found = served(1, log, end, false);
        (
            found
                .whole
                .iter()
                .map(|s| (s.begin, s.read, s.end))
                .collect(),
            found.cut,
        )
    }

    #[test]
    fn a_request_lasts_from_arrival_to_its_answers_last_bytes() {
        use Act::{Arrived, Received, Sent};
        let log = [
            entry(10, Arrived),
            entry(12, Received(5)),
            entry(20, Sent(3)),
            entry(25, Sent(90)),
            entry(40, Arrived),
            entry(41, Arrived),
            entry(42, Received(5)),
            entry(43, Received(900)),
            entry(60, Sent(3)),
        ];
        assert_eq!(times(&log, 100), (vec![(10, 12, 25), (40, 42, 60)], 0));
    }

    #[test]
    fn what_the_windows_ends_cut_is_counted_and_in_no_sum() {
        use Act::{Arrived, Received, Sent};
        assert_eq!(
            times(&[entry(5, Sent(9)), entry(10, Arrived)], 100),
            (vec![], 2),
            "answered, and arrived and not read"
        );
        assert_eq!(
            times(&[entry(5, Received(9)), entry(10, Sent(9))], 100),
            (vec![], 1),
            "arrived before the window"
        );
        assert_eq!(
            times(&[entry(10, Arrived), entry(12, Received(5))], 100),
            (vec![], 1),
            "not answered"
        );
        let pieces = [
            entry(10, Arrived),
            entry(12, Received(5)),
            entry(20, Sent(3)),
            entry(40, Sent(3)),
        ];
        assert_eq!(
            (times(&pieces, 70).1, times(&pieces, 90).0.len()),
            (1, 1),
            "an answer in pieces, of which more may come"
        );
    }

    #[test]
    fn a_pipelined_request_began_with_its_own_arrival() {
        use Act::{Arrived, Received, Sent};
        let log = [
            entry(10, Arrived),
            entry(12, Received(5)),
            entry(15, Arrived),
            entry(20, Sent(3)),
            entry(22, Received(5)),
            entry(30, Sent(3)),
        ];
        assert_eq!(times(&log, 100), (vec![(10, 12, 20), (15, 22, 30)], 0));
    }

    #[test]
    fn the_next_request_may_arrive_before_the_sending_returns() {
        use Act::{Arrived, Received, Sent};
        let mut log = vec![
            entry(10, Arrived),
            entry(12, Received(5)),
            entry(19, Arrived),
            entry(20, Sent(3)),
        ];
        log.extend([entry(25, Received(5)), entry(30, Sent(3))]);
        assert_eq!(times(&log, 100).0, [(10, 12, 20), (19, 25, 30)]);
    }

    #[test]
    fn a_connection_a_request_ends_with_the_stream() {
        use Act::{Arrived, Closed, Received, Sent};
        let log = [
            entry(5, Sent(30)),
            entry(10, Arrived),
            entry(12, Received(5)),
            entry(20, Sent(3)),
            entry(24, Arrived),
            entry(25, Received(0)),
            entry(26, Closed),
        ];
        let found = served(1, &log, 100, true);
        assert_eq!(
            (
                found.whole.len(),
                found.cut,
                found.whole[0].begin,
                found.whole[0].end
            ),
            (1, 0, 10, 20)
        );
        let early = [
            entry(10, Arrived),
            entry(11, Arrived),
            entry(12, Received(5)),
            entry(13, Received(0)),
            entry(20, Sent(3)),
            entry(21, Closed),
        ];
        assert_eq!(
            times(&early, 100),
            (vec![(10, 12, 20)], 0),
            "a client that ends its stream before it has the answer"
        );
        assert_eq!(
            times(
                &[
                    entry(10, Arrived),
                    entry(12, Received(5)),
                    entry(13, Closed)
                ],
                100
            ),
            (vec![], 0),
            "never answered"
        );
    }
}
