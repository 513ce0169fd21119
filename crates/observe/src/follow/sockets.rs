//! What went through each socket, which two are the ends of one connection, and which end asks.
//!
//! Sockets are known by the kernel's address. The two ends of a connection on this machine are found in two ways: by
//! their ports, when the connection was made within a window; and by the sender, who delivers the bytes to the other
//! end within its own call, so that the arrival at one end lies within the sending at the other. The latter is a vote,
//! since a call may deliver what others sent too.

mod generations;

use std::collections::HashSet;

use super::event::{Event, What};
use super::timeline::Timelines;
use foldhash::HashMap;

pub use generations::Generations;

/// Something that happened at a socket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// When: of sending and receiving, when the bytes were handed over.
    pub at: u64,
    /// When the system call began in which it happened; of an arrival, as `at`.
    pub begun: u64,
    /// The thread that did it; of an arrival, the one that was current.
    pub tid: i32,
    pub act: Act,
}

/// What can happen at a socket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    /// A thread began to connect it.
    Connect,
    /// The other end's answer to that arrived.
    Connected,
    /// A thread gave it so many bytes.
    Sent(u32),
    /// A thread took so many bytes from it; none at the end of the stream.
    Received(u32),
    Arrived,
    Closed,
}

/// The established, SYN-sent and closed states of TCP, as the kernel numbers them.
const ESTABLISHED: u8 = 1;
const SYN_SENT: u8 = 2;
const SYN_RECEIVED: u8 = 3;
const CLOSED: u8 = 7;

/// The bits of a socket's number that are the kernel's address.
const ADDRESS: u64 = (1 << 48) - 1;

/// The weight of an arrival that was the only one in a sender's call, and of one among several.
const SURE: u32 = 8;
const UNSURE: u32 = 1;

/// Which end of a connection asks, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It made the connection.
    Asks,
    /// It accepted it.
    Answers,
}

/// Votes for two sockets to be the ends of one connection.
#[derive(Clone, Debug, Default)]
struct Votes {
    counts: HashMap<(u64, u64), u32>,
    best: HashMap<u64, (u64, u32)>,
}

impl Votes {
    fn add(&mut self, a: u64, b: u64, weight: u32) {
        let count = self.counts.entry((a.min(b), a.max(b))).or_default();
        *count = count.saturating_add(weight);
        let count = *count;
        for (of, other) in [(a, b), (b, a)] {
            let best = self.best.entry(of).or_insert((other, count));
            if best.0 == other || best.1 < count {
                *best = (other, count);
            }
        }
    }

    /// The two are the ends of one connection, whatever was said before.
    fn decide(&mut self, a: u64, b: u64) {
        self.counts.insert((a.min(b), a.max(b)), u32::MAX);
        self.best.insert(a, (b, u32::MAX));
        self.best.insert(b, (a, u32::MAX));
    }

    /// The other end, where each takes the other for it.
    fn peer(&self, socket: u64) -> Option<u64> {
        let (other, _) = *self.best.get(&socket)?;
        (self.best.get(&other)?.0 == socket).then_some(other)
    }
}

/// Connections as they were found so far. What the window at hand says goes before what others said: between two
/// windows nobody sees that a connection ends and that the kernel uses its address again.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    here: Votes,
    ever: Votes,
    /// Sockets of these ports, with what tells the connections apart that have the same.
    ports: HashMap<(u16, u16), Vec<(u32, u64)>>,
    /// The other way round: a socket that is closed has no port of its own any more.
    ports_of: HashMap<u64, (u16, u16)>,
    ends: HashMap<u64, End>,
    /// Where a service listens, where that was asked for.
    listening: Option<HashSet<u16>>,
    /// The local port of each socket in that case, closed ones too.
    locals: HashMap<u64, u16>,
    /// Sockets that answer, by the kernel's address, as descriptors told where their making was not seen.
    told: foldhash::HashSet<u64>,
}

impl Connections {
    /// The other end of a connection on this machine.
    pub fn peer(&self, socket: u64) -> Option<u64> {
        let known_here = self.here.best.contains_key(&socket);
        if known_here {
            self.here.peer(socket)
        } else {
            self.ever.peer(socket)
        }
    }

    /// Which end a socket is: its making was seen, its descriptor told, or its port is one at which the service
    /// listens.
    pub fn end(&self, socket: u64) -> Option<End> {
        let answers = || self.told.contains(&(socket & ADDRESS)) || self.is_at_port(socket);
        self.ends
            .get(&socket)
            .copied()
            .or_else(|| answers().then_some(End::Answers))
    }

    /// Whether a socket has a port at which the service listens.
    pub fn is_at_port(&self, socket: u64) -> bool {
        self.listens_at(socket) == Some(true)
    }

    /// Whether a socket of the service has a port at which the service does not listen: one that it asks others by.
    pub fn has_other_port(&self, socket: u64) -> bool {
        self.listens_at(socket) == Some(false)
    }

    /// Whether the service listens at a socket's port; nothing where either is not known.
    fn listens_at(&self, socket: u64) -> Option<bool> {
        Some(self.listening.as_ref()?.contains(self.locals.get(&socket)?))
    }

    /// Says at which ports a service listens, and which sockets answer, by the kernel's address: what is known of
    /// connections whose making is not seen.
    pub fn service(&mut self, listening: HashSet<u16>, answer: impl IntoIterator<Item = u64>) {
        self.listening = Some(listening);
        self.told
            .extend(answer.into_iter().map(|socket| socket & ADDRESS));
    }

    fn vote(&mut self, a: u64, b: u64, weight: u32) {
        self.here.add(a, b, weight);
        self.ever.add(a, b, weight);
    }

    /// The ports of a socket. Where both ends are on this machine each has the other's.
    fn ports(&mut self, socket: u64, (local, remote): (u16, u16), pair: u32) {
        let own = self.ports.entry((local, remote)).or_default();
        own.retain(|&(of, known)| of != pair && known != socket);
        own.push((pair, socket));
        self.ports_of.insert(socket, (local, remote));
        if self.listening.is_some() {
            self.locals.insert(socket, local);
        }
        let others = self.ports.get(&(remote, local));
        let others = others.map_or(&[][..], Vec::as_slice);
        // On the way addresses may be translated: then the only one of these ports is the other end, unless it is another's.
        let own = self.ports.get(&(local, remote));
        let has_own = |pair| own.is_some_and(|own| own.iter().any(|(of, _)| *of == pair));
        let only = || match others {
            &[(of, other)] if !has_own(of) => Some(other),
            _ => None,
        };
        let same = others.iter().find(|(of, _)| *of == pair);
        if let Some(other) = same
            .map(|(_, other)| *other)
            .or_else(only)
            .filter(|&other| other != socket)
        {
            self.here.decide(socket, other);
            self.ever.decide(socket, other);
        }
    }

    fn state(&mut self, socket: u64, state: u8, ports: (u16, u16), pair: u32) {
        match state {
            SYN_SENT => _ = self.ends.insert(socket, End::Asks),
            ESTABLISHED => {
                self.ends.entry(socket).or_insert(End::Answers);
                self.ports(socket, ports, pair);
            }
            CLOSED => {
                if let Some(ports) = self.ports_of.remove(&socket)
                    && let Some(known) = self.ports.get_mut(&ports)
                {
                    known.retain(|(_, of)| *of != socket);
                    if known.is_empty() {
                        self.ports.remove(&ports);
                    }
                }
            }
            _ => {}
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Sockets {
    logs: HashMap<u64, Vec<Entry>>,
}

impl Sockets {
    /// Takes what happened at sockets out of a window's events, and learns of connections.
    pub fn of(events: &[Event], timelines: &Timelines, connections: &mut Connections) -> Sockets {
        let mut sockets = Sockets::default();
        connections.here = Votes::default();
        // Arrivals that each thread has delivered since it last sent.
        let mut delivered: HashMap<i32, Vec<(u64, u64)>> = HashMap::default();
        for e in events {
            let begun = || timelines.entered(e.tid, e.time).unwrap_or(e.time);
            match e.what {
                What::Arrived { socket } => {
                    sockets.put(socket, e, e.time, Act::Arrived);
                    delivered.entry(e.tid).or_default().push((e.time, socket));
                }
                What::Sent { socket, bytes } if bytes > 0 => {
                    let begun = begun();
                    sockets.put(socket, e, begun, Act::Sent(bytes as u32));
                    let mut within = delivered.remove(&e.tid).unwrap_or_default();
                    within.retain(|&(at, to)| at >= begun && to != socket);
                    within.dedup_by_key(|w| w.1);
                    let weight = if within.len() == 1 { SURE } else { UNSURE };
                    within
                        .iter()
                        .for_each(|&(_, to)| connections.vote(socket, to, weight));
                }
                What::Received { socket, bytes } if bytes >= 0 => {
                    sockets.put(socket, e, begun(), Act::Received(bytes as u32))
                }
                What::Ports {
                    socket,
                    local,
                    remote,
                    pair,
                } => connections.ports(socket, (local, remote), pair),
                What::State {
                    socket,
                    state,
                    local,
                    remote,
                    pair,
                } => {
                    connections.state(socket, state, (local, remote), pair);
                    match state {
                        SYN_SENT => sockets.put(socket, e, begun(), Act::Connect),
                        ESTABLISHED if connections.end(socket) == Some(End::Asks) => {
                            sockets.put(socket, e, e.time, Act::Connected)
                        }
                        CLOSED => sockets.put(socket, e, e.time, Act::Closed),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        sockets
    }

    fn put(&mut self, socket: u64, e: &Event, begun: u64, act: Act) {
        self.logs.entry(socket).or_default().push(Entry {
            at: e.time,
            begun,
            tid: e.tid,
            act,
        });
    }

    /// Every socket with what happened at it, in the order of time.
    pub fn all(&self) -> impl Iterator<Item = (u64, &[Entry])> {
        self.logs
            .iter()
            .map(|(&socket, log)| (socket, log.as_slice()))
    }

    /// Bytes that were taken from the sockets at the service's ports.
    pub fn received(&self, connections: &Connections) -> u64 {
        let at_ports = self
            .logs
            .iter()
            .filter(|(socket, _)| connections.is_at_port(**socket));
        let bytes = |e: &Entry| {
            if let Act::Received(n) = e.act {
                u64::from(n)
            } else {
                0
            }
        };
        at_ports.flat_map(|(_, log)| log).map(bytes).sum()
    }

    /// What happened at a socket between two times, both included.
    pub fn between(&self, socket: u64, from: u64, to: u64) -> &[Entry] {
        let log = self.logs.get(&socket).map_or(&[][..], Vec::as_slice);
        let first = log.partition_point(|e| e.at < from);
        let last = log.partition_point(|e| e.at <= to);
        &log[first..last.max(first)]
    }

    /// The sending at a socket that delivered what arrived at the other end at a time: the one whose call was under way
    /// then, else the last one before.
    pub fn sending(&self, socket: u64, arrived: u64) -> Option<Entry> {
        let log = self.logs.get(&socket)?;
        let sent = |e: &&Entry| matches!(e.act, Act::Sent(_));
        let after = log.partition_point(|e| e.at < arrived);
        let under_way = log[after..]
            .iter()
            .find(sent)
            .filter(|e| e.begun <= arrived);
        under_way
            .or_else(|| log[..after].iter().rev().find(sent))
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::source::Window;
    use crate::follow::timeline::timelines;

    fn event(time: u64, tid: i32, what: What) -> Event {
        Event {
            time,
            cpu: 0,
            interrupt: false,
            pid: tid,
            tid,
            what,
        }
    }

    fn enter(time: u64, tid: i32) -> Event {
        event(
            time,
            tid,
            What::Enter {
                call: 1,
                args: [0; 2],
            },
        )
    }

    fn of(events: Vec<Event>, connections: &mut Connections) -> Sockets {
        let window = Window {
            start: 0,
            end: 1000,
            events,
            ..Window::default()
        };
        Sockets::of(&window.events, &timelines(&window), connections)
    }

    #[test]
    fn connections_of_like_ports_are_told_by_what_ends_share() {
        let ports = |socket, local, remote, pair| {
            event(
                10,
                1,
                What::Ports {
                    socket,
                    local,
                    remote,
                    pair,
                },
            )
        };
        // Two containers, each with a client of the same port at a server of the same port.
        let mut c = Connections::default();
        let all = vec![
            ports(0xa, 5432, 4000, 1),
            ports(0x1a, 4000, 5432, 1),
            ports(0xb, 5432, 4000, 2),
            ports(0x1b, 4000, 5432, 2),
        ];
        of(all, &mut c);
        let peers = [0xa, 0x1a, 0xb, 0x1b].map(|socket| c.peer(socket));
        assert_eq!(peers, [Some(0x1a), Some(0xa), Some(0x1b), Some(0xb)]);
        // Addresses that are translated on the way leave the ports.
        let mut c = Connections::default();
        of(
            vec![ports(0xa, 5432, 4000, 1), ports(0x1a, 4000, 5432, 7)],
            &mut c,
        );
        assert_eq!(c.peer(0xa), Some(0x1a));
    }

    #[test]
    fn what_arrives_within_a_sending_is_at_the_other_end() {
        let mut c = Connections::default();
        let sockets = of(
            vec![
                enter(10, 1),
                event(12, 1, What::Arrived { socket: 0xb }),
                event(
                    14,
                    1,
                    What::Sent {
                        socket: 0xa,
                        bytes: 5,
                    },
                ),
                enter(30, 2),
                event(31, 2, What::Arrived { socket: 0xa }),
                event(
                    33,
                    2,
                    What::Sent {
                        socket: 0xb,
                        bytes: 9,
                    },
                ),
            ],
            &mut c,
        );
        assert_eq!(
            (c.peer(0xa), c.peer(0xb), c.peer(0xc)),
            (Some(0xb), Some(0xa), None)
        );
        assert_eq!(
            sockets.sending(0xa, 12).map(|e| (e.begun, e.at, e.tid)),
            Some((10, 14, 1))
        );
        assert_eq!(
            sockets.sending(0xa, 20).map(|e| e.at),
            Some(14),
            "delivered later than it was sent"
        );
        assert_eq!(sockets.sending(0xa, 5), None);
    }

    #[test]
    fn what_was_taken_at_the_services_ports_is_told_from_the_rest() {
        let mut c = Connections::default();
        c.service([80].into(), [0xd]);
        let received = |time, socket, bytes| event(time, 1, What::Received { socket, bytes });
        let ports = |socket, local, remote| {
            event(
                1,
                1,
                What::Ports {
                    socket,
                    local,
                    remote,
                    pair: 0,
                },
            )
        };
        let events = vec![
            ports(0xa, 80, 4000),
            ports(0xb, 4000, 80),
            ports(0xc, 4001, 5432),
            received(2, 0xa, 70),
            received(3, 0xb, 900),
            received(4, 0xc, 900),
            received(5, 0xd, 900),
            received(7, 0xa, 30),
        ];
        let sockets = of(events, &mut c);
        assert_eq!(sockets.received(&c), 100);
        assert_eq!(
            [0xa, 0xb, 0xc, 0xd].map(|socket| c.is_at_port(socket)),
            [true, false, false, false]
        );
    }

    #[test]
    fn a_call_that_delivers_for_others_too_is_outvoted() {
        let mut c = Connections::default();
        let mut events = vec![
            enter(10, 1),
            event(11, 1, What::Arrived { socket: 0xd }),
            event(12, 1, What::Arrived { socket: 0xb }),
        ];
        events.push(event(
            14,
            1,
            What::Sent {
                socket: 0xa,
                bytes: 5,
            },
        ));
        events.extend([
            enter(20, 1),
            event(21, 1, What::Arrived { socket: 0xb }),
            event(
                24,
                1,
                What::Sent {
                    socket: 0xa,
                    bytes: 5,
                },
            ),
        ]);
        of(events, &mut c);
        assert_eq!((c.peer(0xa), c.peer(0xd)), (Some(0xb), None));
    }

    #[test]
    fn what_this_window_says_goes_before_what_others_said() {
        let mut c = Connections::default();
        let sent = |to, from| {
            vec![
                enter(10, 1),
                event(12, 1, What::Arrived { socket: to }),
                event(
                    14,
                    1,
                    What::Sent {
                        socket: from,
                        bytes: 5,
                    },
                ),
            ]
        };
        (0..5).for_each(|_| _ = of(sent(0xb, 0xa), &mut c));
        of(sent(0xc, 0xa), &mut c);
        assert_eq!((c.peer(0xa), c.peer(0xc)), (Some(0xc), Some(0xa)));
        of(vec![], &mut c);
        assert_eq!(c.peer(0xa), Some(0xb), "a window that says nothing");
    }

    #[test]
    fn ports_that_are_used_again_belong_to_the_new_connection() {
        let mut c = Connections::default();
        let state = |time, socket, state, local, remote| {
            event(
                time,
                1,
                What::State {
                    socket,
                    state,
                    local,
                    remote,
                    pair: 0,
                },
            )
        };
        let events = vec![
            state(1, 0xa, ESTABLISHED, 4000, 80),
            state(2, 0xb, ESTABLISHED, 80, 4000),
            // A program in the kernel sees a closed socket without its port.
            state(3, 0xa, CLOSED, 0, 80),
            state(4, 0xb, CLOSED, 0, 4000),
            state(5, 0xc, ESTABLISHED, 4000, 80),
        ];
        of(events, &mut c);
        assert_eq!(
            (c.peer(0xa), c.peer(0xb), c.peer(0xc)),
            (Some(0xb), Some(0xa), None)
        );
        of(vec![state(6, 0xd, ESTABLISHED, 80, 4000)], &mut c);
        assert_eq!((c.peer(0xc), c.peer(0xd)), (Some(0xd), Some(0xc)));
        // The ends of a connection that was taken for another's are told by their ports.
        of(vec![state(7, 0xe, ESTABLISHED, 80, 4000)], &mut c);
        assert_eq!((c.peer(0xc), c.peer(0xe)), (Some(0xe), Some(0xc)));
    }

    #[test]
    fn ports_decide_and_a_reused_address_is_a_new_socket() {
        let mut c = Connections::default();
        let mut generations = Generations::default();
        let state = |time, socket, state, local, remote| {
            event(
                time,
                1,
                What::State {
                    socket,
                    state,
                    local,
                    remote,
                    pair: 0,
                },
            )
        };
        let mut events = vec![
            state(1, 0xa, SYN_SENT, 0, 80),
            state(1, 0xb, SYN_RECEIVED, 80, 4000),
            state(2, 0xb, ESTABLISHED, 80, 4000),
            state(3, 0xa, ESTABLISHED, 4000, 80),
            state(9, 0xa, CLOSED, 4000, 80),
            state(20, 0xa, SYN_SENT, 0, 80),
        ];
        generations.number(&mut events);
        let socket = |n: usize| {
            if let What::State { socket, .. } = events[n].what {
                socket
            } else {
                0
            }
        };
        let (a, b, again) = (socket(0), socket(1), socket(5));
        assert_ne!(a, again);
        of(events.clone(), &mut c);
        assert_eq!(
            (c.peer(a), c.peer(b), c.peer(again)),
            (Some(b), Some(a), None)
        );
        assert_eq!(
            (c.end(a), c.end(b), c.end(again)),
            (Some(End::Asks), Some(End::Answers), Some(End::Asks))
        );
    }

    #[test]
    fn a_socket_with_other_ports_is_another_from_the_beginning() {
        let (mut c, mut generations) = (Connections::default(), Generations::default());
        c.service([80].into(), []);
        let ports = |time, local, remote| {
            event(
                time,
                1,
                What::Ports {
                    socket: 0xa,
                    local,
                    remote,
                    pair: 0,
                },
            )
        };
        let sent = |time| {
            event(
                time,
                1,
                What::Sent {
                    socket: 0xa,
                    bytes: 5,
                },
            )
        };
        let socket = |e: &Event| match e.what {
            What::Sent { socket, .. } | What::State { socket, .. } | What::Ports { socket, .. } => {
                socket
            }
            _ => 0,
        };
        let made = |time| {
            event(
                time,
                1,
                What::State {
                    socket: 0xa,
                    state: SYN_SENT,
                    local: 0,
                    remote: 80,
                    pair: 0,
                },
            )
        };
        let mut window = |mut events: Vec<Event>| -> Vec<u64> {
            generations.number(&mut events);
            of(events.clone(), &mut c);
            events.iter().map(socket).collect()
        };
        let asking = window(vec![made(1), sent(5), ports(7, 4000, 80), sent(9)]);
        let same = window(vec![sent(21), ports(22, 4000, 80)]);
        // The kernel has put a connection there that the service accepted, between the windows.
        let answering = window(vec![
            sent(31),
            ports(32, 80, 4007),
            sent(33),
            made(40),
            sent(41),
            ports(42, 4009, 80),
        ]);
        assert!(
            asking.iter().chain(&same).all(|s| *s == asking[0]),
            "{asking:x?} {same:x?}"
        );
        assert!(
            answering[..3].iter().all(|s| *s == answering[0])
                && answering[3..].iter().all(|s| *s == answering[3]),
            "{answering:x?}"
        );
        assert!(answering[0] != asking[0] && answering[3] != answering[0]);
        let end = |socket| c.end(socket);
        assert_eq!(
            [asking[0], answering[0], answering[3]].map(end),
            [Some(End::Asks), Some(End::Answers), Some(End::Asks)]
        );
    }
}
