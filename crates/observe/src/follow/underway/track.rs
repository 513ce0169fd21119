//! Which connections have a request, by what the kernel counts of each: bytes, and when the last came and went.
//!
//! The kernel tells times to its tick, some milliseconds. A client that sends its next request as soon as it has the
//! answer does so within one tick; what came last is then told by what was known before, by a later acknowledgement, or
//! by where the threads are (`place`).

use std::collections::{HashMap, HashSet};
use std::io;

use fingerpost_sys::sockdiag::{ESTABLISHED, SockDiag, Tcp};
use fingerpost_sys::trace::monotonic_ns;

use super::{Table, UnderWay};

/// Connections that received this often without anything being sent to them, and without being behind, are told
/// something rather than asked: an upload, a stream of reports.
const ONE_WAY: u32 = 3;

/// What is known of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing was asked, or the last that was has an answer, or part of one.
    Answered,
    /// Something was asked and has no answer.
    Pending,
    /// Bytes came and went within the same tick.
    Unclear,
    /// Something came last, and the service, which has read it, waits for more: nobody can tell whether it is a request.
    Quiet,
}

/// A connection as it was seen last.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// What the kernel told.
    pub socket: Tcp,
    /// What that says.
    pub standing: Standing,
    /// When the first bytes came that have no answer, as far as that was seen.
    pub since_ns: u64,
    /// How often more came without an answer, while nothing was left unread.
    pub arrivals: u32,
    /// Whether that was ever so: a replica acknowledges each second, and now and then something is sent to it, too.
    pub tells: bool,
}

/// The connections of a service.
pub struct Tracker {
    diag: SockDiag,
    ports: HashSet<u16>,
    /// By cookie.
    pub connections: HashMap<u64, Connection>,
    /// All sockets of the last time that the kernel was asked.
    pub sockets: Vec<Tcp>,
}

impl Tracker {
    /// Tracks the connections to these ports.
    pub fn new(diag: SockDiag, ports: HashSet<u16>) -> Tracker {
        Tracker {
            diag,
            ports,
            connections: HashMap::new(),
            sockets: Vec::new(),
        }
    }

    /// The socket diagnosis that it uses.
    pub fn diag(&mut self) -> &mut SockDiag {
        &mut self.diag
    }

    /// Asks the kernel.
    ///
    /// # Errors
    /// What it said.
    pub fn update(&mut self) -> io::Result<()> {
        let mut sockets = std::mem::take(&mut self.sockets);
        sockets.clear();
        let told = self.diag.tcp(|s| sockets.push(s));
        self.sockets = sockets;
        told?;
        self.learn(monotonic_ns());
        Ok(())
    }

    fn learn(&mut self, now: u64) {
        let mut old = std::mem::take(&mut self.connections);
        for s in &self.sockets {
            if s.state == ESTABLISHED && self.ports.contains(&s.port) {
                let known = old.remove(&s.cookie);
                self.connections.insert(s.cookie, seen(known, *s, now));
            }
        }
    }

    /// Says what has become clear of a connection otherwise; that holds until bytes come or go.
    pub fn settle(&mut self, cookie: u64, standing: Standing) {
        if let Some(c) = self.connections.get_mut(&cookie) {
            c.standing = standing;
        }
    }
}

/// A connection as the kernel tells it now, beside what was known of it.
fn seen(known: Option<Connection>, s: Tcp, now: u64) -> Connection {
    let arrived = now.saturating_sub(u64::from(s.since_received_ms) * 1_000_000);
    let unanswered = known.filter(|k| k.socket.sent == s.sent);
    let unmoved = unanswered.filter(|k| k.socket.received == s.received);
    if let Some(k) = unmoved.filter(|_| s.unread == 0) {
        return Connection { socket: s, ..k };
    }
    let later = s.since_received_ms < s.since_sent_ms;
    let standing = if s.received == 0 {
        Standing::Answered
    } else if s.unread > 0 || s.sent == 0 || later {
        Standing::Pending
    } else if s.since_received_ms > s.since_sent_ms || s.since_acknowledged_ms < s.since_received_ms
    {
        // What acknowledges after the last bytes came was sent after them.
        Standing::Answered
    } else {
        known
            .and_then(|k| after_one_of_each(k, &s))
            .unwrap_or(Standing::Unclear)
    };
    // The first bytes without an answer came before these, where there were such already.
    let since = unanswered.filter(|k| k.standing == Standing::Pending);
    let arrivals = unanswered.map_or(0, |k| {
        k.arrivals + u32::from(k.socket.received != s.received && s.unread == 0)
    });
    let standing = if standing == Standing::Pending && arrivals >= ONE_WAY && s.unread == 0 {
        Standing::Quiet
    } else {
        standing
    };
    Connection {
        socket: s,
        standing,
        since_ns: since.map_or(arrived, |k| k.since_ns.min(arrived)),
        arrivals,
        tells: arrivals > 0 || known.is_some_and(|k| k.tells),
    }
}

/// What a connection is after one segment came in and one went out: where a request was under way the first was its
/// answer and the second the next request, else it was a request and its answer.
fn after_one_of_each(known: Connection, s: &Tcp) -> Option<Standing> {
    let [came, went] = [0, 1].map(|i| {
        let before = known.socket.data_segments[i];
        s.data_segments[i].wrapping_sub(before)
    });
    match known.standing {
        _ if (came, went) != (1, 1) => None,
        Standing::Pending => Some(Standing::Pending),
        // A request that was under way before watching began is one of these.
        Standing::Quiet if !known.tells => Some(Standing::Pending),
        Standing::Answered => Some(Standing::Answered),
        Standing::Quiet | Standing::Unclear => None,
    }
}

impl Table for Tracker {
    fn under_way(&mut self) -> io::Result<Vec<UnderWay>> {
        self.update()?;
        let pending = self
            .connections
            .values()
            .filter(|c| c.standing == Standing::Pending);
        Ok(pending.filter_map(under_way).collect())
    }
}

fn under_way(c: &Connection) -> Option<UnderWay> {
    Some(UnderWay {
        socket: c.socket.cookie,
        local: c.socket.local_end()?,
        peer: c.socket.remote_end()?,
        since_ns: c.since_ns,
        read_ns: None,
        tid: None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn tcp(received: u64, sent: u64, since_received_ms: u32, since_sent_ms: u32) -> Tcp {
        Tcp {
            state: ESTABLISHED,
            received,
            sent,
            since_received_ms,
            since_sent_ms,
            since_acknowledged_ms: since_received_ms,
            ..Tcp::default()
        }
    }

    fn standing(s: Tcp) -> Standing {
        seen(None, s, 100 * SECOND).standing
    }

    #[test]
    fn a_request_is_under_way_where_the_last_bytes_came_in() {
        assert_eq!(standing(tcp(0, 0, 500, 500)), Standing::Answered, "silent");
        assert_eq!(standing(tcp(9, 0, 500, 500)), Standing::Pending);
        assert_eq!(standing(tcp(9, 90, 500, 504)), Standing::Pending);
        assert_eq!(standing(tcp(9, 90, 504, 500)), Standing::Answered);
        assert_eq!(standing(tcp(9, 90, 500, 500)), Standing::Unclear);
        let acknowledged = Tcp {
            since_acknowledged_ms: 460,
            ..tcp(9, 90, 500, 500)
        };
        assert_eq!(standing(acknowledged), Standing::Answered);
        let unread = Tcp {
            unread: 4,
            ..tcp(9, 90, 504, 500)
        };
        assert_eq!(standing(unread), Standing::Pending);
    }

    #[test]
    fn a_segment_each_way_within_a_tick_is_told_by_what_was_before() {
        let with = |s: Tcp, data_segments| Tcp { data_segments, ..s };
        let asked = seen(None, with(tcp(9, 0, 500, 800), [1, 0]), 10 * SECOND);
        let next = with(tcp(18, 90, 50, 50), [2, 1]);
        assert_eq!(
            seen(Some(asked), next, 11 * SECOND).standing,
            Standing::Pending
        );
        let more = with(tcp(27, 180, 50, 50), [3, 2]);
        assert_eq!(
            seen(Some(asked), more, 11 * SECOND).standing,
            Standing::Unclear
        );
        let idle = seen(None, with(tcp(9, 90, 504, 500), [1, 1]), 10 * SECOND);
        let again = with(tcp(18, 180, 50, 50), [2, 2]);
        assert_eq!(
            seen(Some(idle), again, 11 * SECOND).standing,
            Standing::Answered
        );
    }

    #[test]
    fn its_age_counts_from_the_first_bytes_without_an_answer() {
        let first = seen(None, tcp(9, 0, 500, 800), 100 * SECOND);
        assert_eq!(first.since_ns, 100 * SECOND - 500_000_000);
        let more = Tcp {
            unread: 5,
            ..tcp(14, 0, 100, 1_800)
        };
        let more = seen(Some(first), more, 101 * SECOND);
        assert_eq!(
            (more.since_ns, more.standing),
            (first.since_ns, Standing::Pending)
        );
        let answered = seen(Some(more), tcp(14, 70, 1_100, 10), 102 * SECOND);
        assert_eq!(answered.standing, Standing::Answered);
        let next = seen(Some(answered), tcp(20, 70, 10, 1_010), 103 * SECOND);
        assert_eq!(next.since_ns, 103 * SECOND - 10_000_000);
    }

    #[test]
    fn what_is_told_again_and_again_is_no_request() {
        let mut known = None;
        for n in 1..=5_u64 {
            known = Some(seen(known, tcp(9 * n, 0, 10, 900), n * SECOND));
        }
        assert_eq!(known.unwrap().standing, Standing::Quiet);
        let sent = seen(known, tcp(50, 14, 10, 500), 6 * SECOND);
        assert!(
            sent.arrivals == 0 && sent.tells,
            "a replica is pinged: {sent:?}"
        );
        let mut unread = None;
        for n in 1..=5_u64 {
            let s = Tcp {
                unread: 9,
                ..tcp(9 * n, 0, 10, 900)
            };
            unread = Some(seen(unread, s, n * SECOND));
        }
        assert_eq!(
            unread.unwrap().standing,
            Standing::Pending,
            "nobody reads it"
        );
    }

    #[test]
    fn a_real_connection_has_requests_from_arrival_to_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let Ok(diag) = SockDiag::open() else {
            return fingerpost_testing::skipped("no socket diagnosis");
        };
        let mut tracker = Tracker::new(diag, [port].into());
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert_eq!(tracker.under_way().unwrap(), []);
        client.write_all(b"question").unwrap();
        let found = tracker.under_way().unwrap();
        assert_eq!(found.len(), 1, "it was not even accepted");
        assert_eq!(Some(found[0].peer), client.local_addr().ok());
        let (mut server, _) = listener.accept().unwrap();
        server.read_exact(&mut [0; 8]).unwrap();
        assert_eq!(
            tracker.under_way().unwrap(),
            found,
            "read, and not answered"
        );
        server.write_all(b"answer").unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while !tracker.under_way().unwrap().is_empty() {
            assert!(Instant::now() < deadline, "{:?}", tracker.connections);
        }
    }
}
