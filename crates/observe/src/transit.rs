//! How many transactions are between a server and its clients, from the trace: sent by one side and not yet read by the other.
//!
//! Sending counts from its entry, so that the number is never negative whoever is faster; how many were on the way when a window
//! opened follows from that: at its lowest it was none. For few connections that is so within any window; where many always wait, the
//! mean is too low, by what never went away. The time in the sending
//! calls is then taken off again, for the sender's own account has it. What is left, over the time, is the mean number of
//! transactions that wait for the other side, and by Little's law their time. Where the other side has read before the sender's call
//! has returned, that overlap comes off as well: the parts of a transaction add up.
//!
//! Sampling the sockets gives the same for any number of connections, but not for transactions that last no longer than a sample:
//! the sampler takes a CPU from one of the two, and sees what it has itself held up. There its mean is too high.

use crate::calls::Role;

const NS: f64 = 1e-9;
/// How far the numbers of messages sent and read may differ, relatively, beside the few that a window's ends cut off. Beyond that an
/// answer is sent in pieces, and counting them tells nothing.
const BALANCE: f64 = 0.05;
const CUT_OFF: f64 = 2.0;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Direction {
    /// Sent and not read since the window opened; negative where what was read had been sent before.
    between: i64,
    least: i64,
    since: u64,
    /// `between` × nanoseconds, of this window.
    area: f64,
    /// Seconds, of all windows.
    seconds: f64,
    sending: f64,
    sent: u64,
    read: u64,
}

impl Direction {
    fn at(&mut self, time: u64) {
        self.area += self.between as f64 * time.saturating_sub(self.since) as f64;
        self.since = self.since.max(time);
    }
}

/// Both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transit {
    to_server: Direction,
    to_client: Direction,
    start: u64,
}

impl Transit {
    /// Opens a window.
    pub fn open(&mut self, start: u64) {
        self.start = start;
        for d in [&mut self.to_server, &mut self.to_client] {
            (d.between, d.least, d.since, d.area) = (0, 0, start, 0.0);
        }
    }

    fn from(&mut self, sender: Role) -> Option<&mut Direction> {
        match sender {
            Role::Client => Some(&mut self.to_server),
            Role::Server => Some(&mut self.to_client),
            Role::Whole => None,
        }
    }

    /// A thread of this side began to send.
    pub fn sends(&mut self, side: Role, time: u64) {
        if let Some(d) = self.from(side) {
            d.at(time);
            d.between += 1;
        }
    }

    /// A thread of this side has sent; the call took so many nanoseconds of this window.
    pub fn sent(&mut self, side: Role, length: u64) {
        if let Some(d) = self.from(side) {
            d.sending += length as f64 * NS;
            d.sent += 1;
        }
    }

    /// A thread of this side has read.
    pub fn read(&mut self, side: Role, time: u64) {
        let other = match side {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
            Role::Whole => return,
        };
        if let Some(d) = self.from(other) {
            d.at(time);
            d.between -= 1;
            d.least = d.least.min(d.between);
            d.read += 1;
        }
    }

    /// Closes the window.
    pub fn close(&mut self, end: u64) {
        let length = end.saturating_sub(self.start) as f64;
        for d in [&mut self.to_server, &mut self.to_client] {
            d.at(end);
            d.seconds += (d.area - d.least as f64 * length) * NS;
        }
    }

    /// The mean numbers that waited for the server and for the client, over windows of so many seconds in all; `None` where messages
    /// and reads do not go together.
    pub fn means(&self, window_seconds: f64) -> Option<[f64; 2]> {
        let mean = |d: &Direction| {
            let most = d.sent.max(d.read);
            let together = most > 0 && d.sent.abs_diff(d.read) as f64 <= BALANCE * most as f64 + CUT_OFF;
            (together && window_seconds > 0.0).then(|| ((d.seconds - d.sending) / window_seconds).max(0.0))
        };
        Some([mean(&self.to_server)?, mean(&self.to_client)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One connection: the client sends in 2, the server reads 3 later, works 4, sends in 1, the client reads 5 later. Period 15.
    fn exchange(t: &mut Transit, start: u64) {
        t.sends(Role::Client, start);
        t.sent(Role::Client, 2);
        t.read(Role::Server, start + 5);
        t.sends(Role::Server, start + 9);
        t.sent(Role::Server, 1);
        t.read(Role::Client, start + 15);
    }

    #[test]
    fn what_was_sent_and_not_read_waits() {
        let mut t = Transit::default();
        t.open(0);
        (0..10).for_each(|i| exchange(&mut t, i * 15));
        t.close(150);
        let [server, client] = t.means(150.0 * NS).unwrap();
        assert!((server - 3.0 / 15.0).abs() < 1e-9, "{server}");
        assert!((client - 5.0 / 15.0).abs() < 1e-9, "{client}");
    }

    #[test]
    fn what_was_on_the_way_when_the_window_opened_counts() {
        let mut t = Transit::default();
        // The window opens when the client's request has been waiting already.
        t.open(1000);
        t.read(Role::Server, 1003);
        t.sends(Role::Server, 1007);
        t.sent(Role::Server, 1);
        t.read(Role::Client, 1013);
        exchange(&mut t, 1013);
        t.close(1028);
        let [server, client] = t.means(28.0 * NS).unwrap();
        assert!((server - 6.0 / 28.0).abs() < 1e-9, "{server}");
        assert!((client - 10.0 / 28.0).abs() < 1e-9, "{client}");
    }

    #[test]
    fn an_answer_in_pieces_tells_nothing() {
        let mut t = Transit::default();
        t.open(0);
        for i in 0..10 {
            exchange(&mut t, i * 15);
            t.sends(Role::Server, i * 15 + 11);
            t.sent(Role::Server, 1);
        }
        t.close(150);
        assert_eq!(t.means(1.0), None);
        assert_eq!(Transit::default().means(1.0), None);
    }
}
