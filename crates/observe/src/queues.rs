//! Where transactions wait between a server and its clients: in the sockets.
//!
//! Every sample classes each connection of the server: data that the server has not read, data that the client has not
//! read, data on its way, or none of these (then one of the two works on it). By Little's law the mean number of
//! connections in a class, times the elapsed time, divided by the transactions, is the time that a transaction spends
//! there. That holds for any arrival pattern, so that queueing is measured and not deduced.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use fingerpost_sys::bpf::closed::{Closed, Places};
use fingerpost_sys::listening::sockets_of;
use fingerpost_sys::network::namespace;
use fingerpost_sys::sockdiag::{self, SockDiag, Tcp, Unix};

/// How long the descriptors of a service may be looked at beside the first of each process.
const BEYOND: Duration = Duration::from_millis(150);

/// Sums over all samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queues {
    pub samples: u64,
    pub connections: u64,
    /// Connections whose request the server has not read, or that it has not accepted.
    pub at_server: u64,
    /// Connections whose answer the client has not read.
    pub at_client: u64,
    /// Connections with data that was written and has not arrived.
    pub on_the_way: u64,
    /// Clients on this machine whose connection was not made yet.
    pub connecting: u64,
    /// Connections that waited to be accepted, and the most in one sample.
    pub accept: u64,
    pub accept_max: u64,
    /// How many may wait to be accepted (the largest listener's backlog).
    pub backlog: u64,
    /// Sum of the smoothed round trips in microseconds, and how many were summed.
    pub rtt_us: f64,
    pub rtt_count: u64,
    /// What its connections received: see [`Received`].
    pub received: Option<Received>,
}

/// Bytes that a server's connections received, as the kernel counts them, in so many seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Received {
    pub bytes: u64,
    pub seconds: f64,
}

/// Adds up what a server's connections receive, those that close meanwhile included.
struct Receiving {
    closed: Closed,
    begun: Instant,
    before: u64,
}

impl Receiving {
    /// Begins; nothing where the kernel does not tell.
    fn begin(places: &Places, diag: &mut SockDiag, ports: &HashSet<u16>) -> Option<Receiving> {
        let ports_in_order: Vec<u16> = ports.iter().copied().collect();
        let closed = places.count(&ports_in_order, namespace().ok()?).ok()?;
        let begun = Instant::now();
        let before = received(&closed, diag, ports).ok()?;
        Some(Receiving {
            closed,
            begun,
            before,
        })
    }

    fn end(&self, diag: &mut SockDiag, ports: &HashSet<u16>) -> Option<Received> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let bytes = received(&self.closed, diag, ports)
            .ok()?
            .saturating_sub(self.before);
        Some(Received { bytes, seconds })
    }
}

/// What connections to these ports have received that have closed since counting began, and those that are there.
fn received(closed: &Closed, diag: &mut SockDiag, ports: &HashSet<u16>) -> io::Result<u64> {
    let closed = closed.counts()?.bytes;
    Ok(closed + diag.received(ports)?)
}

/// The server's listening sockets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listeners {
    ports: HashSet<u16>,
    names: HashSet<Vec<u8>>,
}

/// Inodes of the sockets that processes hold; of processes with very many descriptors, those that were opened first.
pub fn socket_inodes(pids: impl Iterator<Item = i32>) -> HashSet<u32> {
    let mut found = HashSet::new();
    let pids: Vec<i32> = pids.collect();
    sockets_of(&pids, BEYOND, |_, inode| _ = found.insert(inode));
    found
}

/// TCP ports of this process's network name space at which sockets with these inodes listen.
///
/// # Errors
/// What the kernel said.
pub fn ports_of(diag: &mut SockDiag, inodes: &HashSet<u32>) -> io::Result<HashSet<u16>> {
    let mut ports = HashSet::new();
    diag.listening(|s| _ = inodes.contains(&s.inode).then(|| ports.insert(s.port)))?;
    Ok(ports)
}

/// Samples the sockets of one server.
pub struct Sampler {
    diag: SockDiag,
    listeners: Listeners,
    sums: Queues,
    /// Where that is wanted.
    receiving: Option<Receiving>,
}

impl Sampler {
    /// Finds the server's listening sockets; `closing` to count what its connections receive, too. `None`, with the
    /// reason, where there are none or the kernel does not tell.
    pub fn find(
        servers: impl Iterator<Item = i32>,
        closing: Option<&Places>,
    ) -> Result<Sampler, String> {
        let inodes = socket_inodes(servers);
        let mut diag = SockDiag::open().map_err(|e| format!("sockets cannot be diagnosed: {e}"))?;
        let mut listeners = Listeners::default();
        let tcp = ports_of(&mut diag, &inodes).map(|ports| listeners.ports = ports);
        let unix = diag.unix(|s| {
            if s.state == sockdiag::LISTEN && inodes.contains(&s.inode) && !s.name.is_empty() {
                listeners.names.insert(s.name);
            }
        });
        if let (Err(e), Err(_)) = (&tcp, &unix) {
            return Err(format!("sockets cannot be diagnosed: {e}"));
        }
        if listeners == Listeners::default() {
            return Err("the server listens on no socket that could be seen".into());
        }
        let receiving =
            closing.and_then(|places| Receiving::begin(places, &mut diag, &listeners.ports));
        Ok(Sampler {
            diag,
            listeners,
            sums: Queues::default(),
            receiving,
        })
    }

    pub fn sample(&mut self) {
        self.sums.samples += 1;
        let (mut tcp, mut unix) = (Vec::new(), Vec::new());
        if !self.listeners.ports.is_empty() && self.diag.tcp(|s| tcp.push(s)).is_ok() {
            let doubtful = add_tcp(&mut self.sums, &self.listeners, &tcp);
            if !doubtful.is_empty() {
                let mut received = HashMap::new();
                let _ = self
                    .diag
                    .tcp(|s| _ = received.insert((s.port, s.peer), s.received));
                let missing = |d: &&Sent| received.get(&d.to).is_some_and(|r| *r < d.bytes);
                self.sums.on_the_way += doubtful.iter().filter(missing).count() as u64;
            }
        }
        if !self.listeners.names.is_empty() && self.diag.unix(|s| unix.push(s)).is_ok() {
            add_unix(&mut self.sums, &self.listeners, &unix);
        }
    }

    /// The sums. What connections received is counted to this moment.
    pub fn finish(mut self) -> Queues {
        let received = self
            .receiving
            .and_then(|receiving| receiving.end(&mut self.diag, &self.listeners.ports));
        Queues {
            received,
            ..self.sums
        }
    }
}

/// Bytes that one end had sent, and the end that is to receive them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sent {
    to: (u16, u16),
    bytes: u64,
}

/// Adds a dump of sockets. A dump is no snapshot: where more was sent than received, but the receiver was shown first,
/// the data may have arrived meanwhile. Those are returned, to be looked at again.
fn add_tcp(sums: &mut Queues, listeners: &Listeners, sockets: &[Tcp]) -> Vec<Sent> {
    let connected = |s: &Tcp| s.state == sockdiag::ESTABLISHED && listeners.ports.contains(&s.peer);
    let clients: HashMap<(u16, u16), (usize, &Tcp)> = sockets
        .iter()
        .enumerate()
        .filter(|(_, s)| connected(s))
        .map(|(i, s)| ((s.port, s.peer), (i, s)))
        .collect();
    let connecting =
        |s: &&Tcp| s.state == sockdiag::CONNECTING && listeners.ports.contains(&s.peer);
    sums.connecting += sockets.iter().filter(connecting).count() as u64;
    let mut doubtful = Vec::new();
    for (i, s) in sockets
        .iter()
        .enumerate()
        .filter(|(_, s)| listeners.ports.contains(&s.port))
    {
        if s.state == sockdiag::LISTEN {
            sums.accept += u64::from(s.unread);
            sums.accept_max = sums.accept_max.max(u64::from(s.unread));
            sums.backlog = sums.backlog.max(u64::from(s.backlog));
            continue;
        }
        sums.connections += 1;
        sums.rtt_us += f64::from(s.rtt_us);
        sums.rtt_count += 1;
        let client = clients.get(&(s.peer, s.port));
        if s.unread > 0 || s.inode == 0 {
            sums.at_server += 1;
        } else if client.is_some_and(|(_, c)| c.unread > 0) {
            sums.at_client += 1;
        } else if s.unsent > 0 || client.is_some_and(|(_, c)| c.unsent > 0) {
            sums.on_the_way += 1;
        } else if let Some(&(j, c)) = client {
            let (first, second) = if i < j { (s, c) } else { (c, s) };
            if first.sent > second.received {
                sums.on_the_way += 1;
            } else if second.sent > first.received {
                doubtful.push(Sent {
                    to: (first.port, first.peer),
                    bytes: second.sent,
                });
            }
        }
    }
    doubtful
}

fn add_unix(sums: &mut Queues, listeners: &Listeners, sockets: &[Unix]) {
    let by_inode: HashMap<u32, &Unix> = sockets.iter().map(|s| (s.inode, s)).collect();
    for s in sockets.iter().filter(|s| listeners.names.contains(&s.name)) {
        if s.state == sockdiag::LISTEN {
            sums.accept += u64::from(s.unread);
            sums.accept_max = sums.accept_max.max(u64::from(s.unread));
            continue;
        }
        sums.connections += 1;
        if s.unread > 0 || s.inode == 0 {
            sums.at_server += 1;
        } else if by_inode.get(&s.peer).is_some_and(|c| c.unread > 0) {
            sums.at_client += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_sys::bpf::btf::Btf;

    use super::*;

    fn tcp(port: u16, peer: u16) -> Tcp {
        Tcp {
            state: sockdiag::ESTABLISHED,
            port,
            peer,
            inode: 1,
            ..Tcp::default()
        }
    }

    #[test]
    fn every_connection_is_in_one_place() {
        let listeners = Listeners {
            ports: [80].into(),
            ..Listeners::default()
        };
        let sockets = [
            Tcp {
                state: sockdiag::LISTEN,
                port: 80,
                unread: 3,
                backlog: 128,
                ..Tcp::default()
            },
            Tcp {
                unread: 10,
                ..tcp(80, 1001)
            },
            tcp(1001, 80),
            tcp(80, 1002),
            Tcp {
                unread: 10,
                ..tcp(1002, 80)
            },
            Tcp {
                sent: 500,
                ..tcp(80, 1003)
            },
            Tcp {
                received: 400,
                ..tcp(1003, 80)
            },
            Tcp {
                sent: 500,
                ..tcp(80, 1004)
            },
            Tcp {
                received: 500,
                ..tcp(1004, 80)
            },
            Tcp {
                inode: 0,
                ..tcp(80, 1005)
            },
            Tcp {
                unsent: 7,
                ..tcp(80, 1006)
            },
            tcp(80, 1007),
            Tcp {
                sent: 9,
                ..tcp(1007, 80)
            },
            tcp(22, 5000),
            Tcp {
                state: sockdiag::CONNECTING,
                ..tcp(1008, 80)
            },
            Tcp {
                state: sockdiag::CONNECTING,
                ..tcp(1009, 22)
            },
        ];
        let mut q = Queues::default();
        let doubtful = add_tcp(&mut q, &listeners, &sockets);
        assert_eq!(
            (q.connections, q.at_server, q.at_client, q.on_the_way),
            (7, 2, 1, 2)
        );
        assert_eq!(
            doubtful,
            [Sent {
                to: (80, 1007),
                bytes: 9
            }],
            "the receiver was shown first: it must be asked again"
        );
        assert_eq!(
            (q.accept, q.accept_max, q.backlog, q.connecting),
            (3, 3, 128, 1)
        );
    }

    #[test]
    fn received_bytes_are_counted_of_staying_and_closing_alike() {
        use std::io::{Read, Write};
        use std::net::{TcpListener, TcpStream};
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            (
                TcpStream::connect(listener.local_addr().unwrap()).unwrap(),
                listener.accept().unwrap().0,
            )
        };
        let send = |(client, server): &mut (TcpStream, TcpStream), bytes: usize| {
            client.write_all(&vec![1; bytes]).unwrap();
            server.read_exact(&mut vec![0; bytes]).unwrap();
        };
        let (mut stays, mut closes) = (connect(), connect());
        send(&mut stays, 1000);
        send(&mut closes, 300);
        let (mut diag, ports) = (
            SockDiag::open().unwrap(),
            [listener.local_addr().unwrap().port()].into(),
        );
        let places = Btf::read().ok().and_then(|btf| Places::of(&btf));
        let Some(receiving) =
            places.and_then(|places| Receiving::begin(&places, &mut diag, &ports))
        else {
            return fingerpost_testing::skipped("programs in the kernel must be possible here");
        };
        send(&mut stays, 20);
        send(&mut closes, 7);
        let mut comes = connect();
        send(&mut comes, 500);
        drop(closes);
        drop(comes.0);
        let received = receiving.end(&mut diag, &ports).unwrap();
        assert_eq!(received.bytes, 527, "what came before does not count");
        assert!(received.seconds > 0.0);
    }

    #[test]
    fn unix_connections_are_known_by_their_listeners_name() {
        let listeners = Listeners {
            names: [b"/run/db.sock\0".to_vec()].into(),
            ..Listeners::default()
        };
        let end = |inode, peer, name: &[u8], unread| Unix {
            state: sockdiag::ESTABLISHED,
            inode,
            peer,
            name: name.to_vec(),
            unread,
        };
        let sockets = [
            end(1, 2, b"/run/db.sock\0", 9),
            end(2, 1, b"", 0),
            end(3, 4, b"/run/db.sock\0", 0),
            end(4, 3, b"", 5),
            end(5, 6, b"/run/db.sock\0", 0),
            end(6, 5, b"", 0),
            end(7, 8, b"/run/other.sock\0", 1),
        ];
        let mut q = Queues::default();
        add_unix(&mut q, &listeners, &sockets);
        assert_eq!((q.connections, q.at_server, q.at_client), (3, 1, 1));
    }
}
