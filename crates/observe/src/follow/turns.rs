//! Turns on a connection: what the asking end sends, and the answer that it reads.
//!
//! A turn begins with the first bytes that are sent after an answer (or with the connecting) and ends with the last
//! bytes of the answer that are read before the next sending. What a client sends before it has read the whole answer
//! (pipelining) belongs to the turn that is open, so that a turn is what the connection was busy with without a pause.

use super::sockets::{Act, Entry};

/// One turn, seen from the end that asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    pub socket: u64,
    /// When the sending (or connecting) call began.
    pub begin: u64,
    pub sender: i32,
    /// When the last bytes of the answer were taken.
    pub end: u64,
    pub receiver: i32,
    pub received: u64,
}

/// Turns of one socket in one window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turns {
    /// Whole ones, in order.
    pub whole: Vec<Turn>,
    /// The one that was open when the window ended, if any; its end is what was read last. Whether it is whole, the
    /// other end tells.
    pub last: Option<Turn>,
    /// Turns whose beginning was before the window.
    pub cut: u64,
}

/// The turns in the log of the end that asks.
pub fn turns(socket: u64, log: &[Entry]) -> Turns {
    let mut found = Turns::default();
    let mut open: Option<Turn> = None;
    let mut before = false;
    for e in log {
        match e.act {
            Act::Connect => {
                found
                    .whole
                    .extend(open.replace(begun(socket, e)).filter(|t| t.received > 0));
            }
            Act::Sent(_) => {
                found.whole.extend(open.take_if(|t| t.received > 0));
                before = false;
                open.get_or_insert_with(|| begun(socket, e));
            }
            Act::Received(0) | Act::Closed => {
                found.whole.extend(open.take().filter(|t| t.received > 0))
            }
            Act::Received(bytes) => match &mut open {
                Some(turn) => {
                    (turn.end, turn.receiver) = (e.at, e.tid);
                    turn.received += u64::from(bytes);
                }
                None if !before => {
                    before = true;
                    found.cut += 1;
                }
                None => {}
            },
            Act::Arrived | Act::Connected => {}
        }
    }
    found.last = open;
    found
}

fn begun(socket: u64, e: &Entry) -> Turn {
    Turn {
        socket,
        begin: e.begun,
        sender: e.tid,
        end: 0,
        receiver: 0,
        received: 0,
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

    #[test]
    fn a_turn_lasts_from_sending_to_the_last_bytes_before_the_next() {
        let log = [
            entry(5, Act::Received(9)),
            entry(10, Act::Sent(3)),
            entry(11, Act::Sent(3)),
            entry(20, Act::Received(5)),
            entry(30, Act::Received(6)),
            entry(40, Act::Sent(3)),
            entry(50, Act::Received(1)),
        ];
        let found = turns(1, &log);
        assert_eq!(found.cut, 1);
        assert_eq!(
            found.whole,
            [Turn {
                socket: 1,
                begin: 9,
                sender: 7,
                end: 30,
                receiver: 7,
                received: 11
            }]
        );
        assert_eq!(
            found.last.map(|t| (t.begin, t.end, t.received)),
            Some((39, 50, 1))
        );
    }

    #[test]
    fn a_connection_a_request_begins_with_connecting() {
        let log = [
            entry(10, Act::Connect),
            entry(12, Act::Sent(3)),
            entry(20, Act::Received(5)),
            entry(21, Act::Received(0)),
        ];
        let found = turns(1, &log);
        assert_eq!(
            found
                .whole
                .iter()
                .map(|t| (t.begin, t.end))
                .collect::<Vec<_>>(),
            [(9, 20)]
        );
        assert_eq!((found.last, found.cut), (None, 0));
    }

    #[test]
    fn what_was_never_answered_is_no_turn() {
        let found = turns(1, &[entry(10, Act::Sent(3)), entry(12, Act::Closed)]);
        assert_eq!(found, Turns::default());
    }
}
