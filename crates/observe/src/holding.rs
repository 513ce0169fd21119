//! When a thread of a server or client works, but on no transaction.
//!
//! Between two programs on a socket a transaction is in one place at a time. Who has sent an answer goes on for a while: it leaves the
//! call, writes a log line, asks what there is to do next; meanwhile the transaction is the other side's already. And who is
//! woken because something has come runs for a while before it has read it, during which the sockets' queues count the transaction.
//! Both are work on a CPU, and neither is a part of a transaction's time beside those.

/// Seconds on a CPU without a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Unheld {
    /// From sending until blocking, or reading on without having blocked.
    pub after_send: f64,
    /// From being woken until having read.
    pub before_read: f64,
}

impl Unheld {
    /// Adds another's seconds.
    pub fn add(&mut self, other: Unheld) {
        self.after_send += other.after_send;
        self.before_read += other.before_read;
    }

    /// As many times as much.
    pub fn scaled(self, factor: f64) -> Unheld {
        Unheld { after_send: self.after_send * factor, before_read: self.before_read * factor }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    /// It may hold a transaction; so also at the beginning, when nothing is known.
    #[default]
    Holds,
    /// It has sent, and has not blocked since.
    Sent,
    /// It has blocked since it sent.
    Woken,
}

/// Follows one thread. What it did without a transaction is known when it reads the next: had it sent once more before that, it would
/// have been at work on the last one still.
#[derive(Clone, Debug, Default)]
pub struct Holding {
    state: State,
    /// By system call, `None` for user code; few, so that a list serves best.
    pending: Vec<(Option<i64>, Unheld)>,
}

impl Holding {
    /// It ran, in this call or in user code.
    pub fn ran(&mut self, call: Option<i64>, seconds: f64) {
        let unheld = match self.state {
            State::Holds => return,
            State::Sent => Unheld { after_send: seconds, before_read: 0.0 },
            State::Woken => Unheld { after_send: 0.0, before_read: seconds },
        };
        match self.pending.iter_mut().find(|p| p.0 == call) {
            Some(p) => p.1.add(unheld),
            None => self.pending.push((call, unheld)),
        }
    }

    /// It gave data to a peer.
    pub fn sent(&mut self) {
        self.state = State::Sent;
        self.pending.clear();
    }

    /// It blocked, in whatever.
    pub fn blocked(&mut self) {
        if self.state == State::Sent {
            self.state = State::Woken;
        }
    }

    /// It has read data of a peer: tells, by call, what it did on no transaction's behalf since it sent.
    pub fn received(&mut self) -> std::vec::Drain<'_, (Option<i64>, Unheld)> {
        self.state = State::Holds;
        self.pending.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_between_sending_and_reading_is_for_no_transaction() {
        let mut h = Holding::default();
        h.ran(None, 5.0);
        assert_eq!(h.received().count(), 0, "before anything was sent it may hold one");
        h.ran(Some(1), 2.0);
        h.sent();
        h.ran(None, 1.0);
        h.ran(Some(7), 0.5);
        h.blocked();
        h.ran(Some(7), 0.25);
        h.ran(None, 0.125);
        let mut told: Vec<_> = h.received().collect();
        told.sort_by_key(|t| t.0);
        let unheld = |after_send, before_read| Unheld { after_send, before_read };
        assert_eq!(told, [(None, unheld(1.0, 0.125)), (Some(7), unheld(0.5, 0.25))]);
        h.ran(None, 9.0);
        assert_eq!(h.received().count(), 0);
    }

    #[test]
    fn who_sends_again_before_it_reads_was_still_at_work() {
        let mut h = Holding::default();
        h.sent();
        h.ran(None, 1.0);
        h.sent();
        h.ran(None, 0.5);
        assert_eq!(h.received().collect::<Vec<_>>(), [(None, Unheld { after_send: 0.5, before_read: 0.0 })]);
    }
}
