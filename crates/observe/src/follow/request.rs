//! Requests of one window: found at the sockets, each made a path from its sending to the last bytes of its answer.
//!
//! A request is at every moment in one place, and the thread that has it there tells what it does: the client while it
//! sends; the server's thread from the arrival on (until it has read it, that thread was busy with others, or waited
//! for a CPU, or was being woken); between its two ends the wire; the client's thread from the answer's arrival on. A
//! turn that the server itself makes on a connection of its own while it has the request is a request within the
//! request, and the path goes on in the other server.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use super::leaf::{Chain, Kind, Leaf, Link, Piece, Side, Whom};
use super::served::{AllServed, Served, served};
use super::sockets::{Act, End, Entry};
use super::timeline::Doing;
use super::turns::{Turn, Turns, turns};
use super::walk::{Walker, put};

#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Nanoseconds on the monotonic clock.
    pub begin: u64,
    pub end: u64,
    /// Its time, in order, without a gap.
    pub pieces: Vec<Piece>,
}

impl Request {
    /// Lets it begin earlier, at a time of which no event tells more.
    pub fn since(&mut self, begun: u64) {
        if begun < self.begin {
            let leaf = Leaf {
                kind: Kind::NotFollowed,
                side: Side::Server,
                whom: Whom::Nobody,
                chain: Chain::default(),
            };
            let piece = Piece {
                start: begun,
                end: self.begin,
                leaf,
            };
            self.pieces.insert(0, piece);
            self.begin = begun;
        }
    }
}

/// Requests within requests that are followed: a proxy before a proxy before a server.
const MOST_NESTED: u32 = 4;

pub struct Requests<'a> {
    walker: &'a Walker<'a>,
    /// Turns that each thread made on connections of its own, in order.
    outgoing: HashMap<i32, Vec<Turn>>,
    /// What each thread read at sockets that answer, in order: when, and which.
    read: HashMap<i32, Vec<(u64, u64)>>,
    /// When the window ended.
    end: u64,
    /// Whether sockets are told apart by who speaks first, where nothing else tells: the client is not known.
    by_arrivals: bool,
    /// What requests asked of others themselves, by the thread that answered; 0 where that was not seen.
    asked: RefCell<HashMap<i32, Asked>>,
}

/// Turns that requests made at another service.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Asked {
    pub turns: u64,
    /// Their time in nanoseconds.
    pub time: u64,
}

/// What one step of a path belongs to.
#[derive(Clone, Copy, Default)]
struct Place {
    chain: Chain,
    nested: u32,
}

impl<'a> Requests<'a> {
    /// Finds what server threads read, and which turns they made themselves.
    pub fn new(walker: &'a Walker<'a>, end: u64, by_arrivals: bool) -> Requests<'a> {
        let mut requests = Requests {
            walker,
            outgoing: HashMap::new(),
            read: HashMap::new(),
            end,
            by_arrivals,
            asked: RefCell::default(),
        };
        for (socket, log) in walker.sockets.all() {
            let Some(user) = user(log) else { continue };
            if walker.side(user) == Side::Client {
                continue;
            }
            if requests.asks(socket) {
                let Turns { whole, last, .. } = turns(socket, log);
                for turn in whole.into_iter().chain(last.filter(|t| t.received > 0)) {
                    requests.outgoing.entry(turn.sender).or_default().push(turn);
                }
            } else {
                for e in log.iter().filter(|e| matches!(e.act, Act::Received(1..))) {
                    requests.read.entry(e.tid).or_default().push((e.at, socket));
                }
            }
        }
        requests
            .outgoing
            .values_mut()
            .for_each(|t| t.sort_by_key(|t| t.begin));
        requests.read.values_mut().for_each(|r| r.sort_unstable());
        requests
    }

    /// Whether a socket of anybody but the client is the end that asks. Where its making was not seen, it asks if its
    /// other end is neither the client's nor of the same service.
    fn asks(&self, socket: u64) -> bool {
        let connections = self.walker.connections;
        match (connections.end(socket), connections.peer(socket)) {
            (Some(end), _) => end == End::Asks,
            (None, Some(other)) if connections.end(other).is_some() => {
                connections.end(other) == Some(End::Answers)
            }
            _ if self.by_arrivals && self.side_of(socket) == Some(Side::Server) => {
                self.has_other_port_or_speaks_first(socket)
            }
            (None, None) => false,
            (None, Some(other)) => {
                self.side_of(socket) == Some(Side::Server)
                    && self.side_of(other) == Some(Side::Other)
            }
        }
    }

    /// All that happened at a socket.
    fn log(&self, socket: u64) -> &[Entry] {
        self.walker.sockets.between(socket, 0, u64::MAX)
    }

    /// The side of who uses a socket.
    fn side_of(&self, socket: u64) -> Option<Side> {
        user(self.log(socket)).map(|tid| self.walker.side(tid))
    }

    /// Of a socket of the service whose making was not seen: whether it has another port than those at which the
    /// service listens, or sent something before anything arrived.
    fn has_other_port_or_speaks_first(&self, socket: u64) -> bool {
        let mut acts = self
            .log(socket)
            .iter()
            .map(|e| e.act)
            .filter(|act| matches!(act, Act::Arrived | Act::Sent(_)));
        self.walker.connections.has_other_port(socket) || matches!(acts.next(), Some(Act::Sent(_)))
    }

    /// The requests that anybody made at the service, as its own sockets show them, one after the other in the order of
    /// their ends. What one process of it asks another is a request within a request. Returns how many the window's
    /// beginning or end cut.
    pub fn of_arrivals(&self, take: &mut dyn FnMut(&Served, Request)) -> u64 {
        let (mut found, mut cut_here) = (Vec::new(), 0);
        for (socket, log) in self.walker.sockets.all() {
            let inside = || {
                self.walker
                    .connections
                    .peer(socket)
                    .and_then(|other| self.side_of(other))
                    == Some(Side::Server)
            };
            if self.side_of(socket) != Some(Side::Server) || self.asks(socket) || inside() {
                continue;
            }
            // A number above the address counts the sockets that were seen being made there.
            let AllServed { whole, cut } = served(socket, log, self.end, socket >> 48 != 0);
            cut_here += cut;
            found.extend(whole.into_iter().map(|s| (self.answered(&s), s)));
        }
        found.sort_by_key(|(end, s)| (*end, s.begin));
        // One by one: the pieces of a request behind hundreds of others are some kilobytes.
        found
            .iter()
            .for_each(|(end, s)| take(s, self.served(s, *end)));
        cut_here
    }

    /// When the last bytes of an answer were given: on this machine it arrives within the call that sends it, which may
    /// take longer.
    fn answered(&self, s: &Served) -> u64 {
        let w = self.walker;
        let other = w.connections.peer(s.socket);
        let arrivals = other.map_or(&[][..], |other| w.sockets.between(other, s.sending, s.end));
        arrivals
            .iter()
            .rfind(|e| e.act == Act::Arrived)
            .map_or(s.end, |e| e.at)
            .max(s.read)
    }

    /// The path of a request from its arrival: behind others until it is read, then at work until its answer is given.
    fn served(&self, s: &Served, end: u64) -> Request {
        let mut pieces = Vec::new();
        self.walker.walk(
            s.reader,
            s.begin,
            s.read,
            Chain::default().with(Link::Queue),
            &mut pieces,
        );
        self.at_work(
            Some(s.socket),
            (s.read, end),
            s.writer,
            Place::default(),
            &mut pieces,
        );
        Request {
            begin: s.begin,
            end,
            pieces,
        }
    }

    /// The requests that the load generator made at the service, one after the other in the order of their ends.
    /// Returns how many the window's beginning or end cut.
    pub fn of_clients(&self, take: &mut dyn FnMut(Request)) -> u64 {
        let (mut found, mut last_ones, mut cut_here): (Vec<Turn>, Vec<Turn>, u64) =
            (Vec::new(), Vec::new(), 0);
        for (socket, log) in self.walker.sockets.all() {
            if user(log).is_none_or(|tid| self.walker.side(tid) != Side::Client)
                || self.walker.connections.end(socket) == Some(End::Answers)
            {
                continue;
            }
            let Turns { whole, last, cut } = turns(socket, log);
            cut_here += cut;
            found.extend(whole);
            last_ones.extend(last);
        }
        let least = found.iter().map(|turn| turn.received).min().unwrap_or(0);
        let (ended, open): (Vec<Turn>, Vec<Turn>) = last_ones
            .into_iter()
            .partition(|turn| self.is_whole(turn, least));
        cut_here += open.len() as u64;
        found.extend(ended);
        found.sort_by_key(|t| (t.end, t.begin));
        for turn in &found {
            let mut pieces = Vec::new();
            self.turn(turn, Place::default(), &mut pieces);
            take(Request {
                begin: turn.begin,
                end: turn.end,
                pieces,
            });
        }
        cut_here
    }

    /// Whether all that the server has sent of the answer was read when the window ended, and no more was to come: an
    /// answer in pieces is over when there was nothing for twice as long as ever between its pieces, and for half as
    /// long as all of them took (a proxy of many connections comes round to each of them in its turn), and had as many
    /// bytes as the least of those that are known to be whole: on a machine that is too busy the next piece may come
    /// late.
    fn is_whole(&self, turn: &Turn, least: u64) -> bool {
        let Some(server) = self.walker.connections.peer(turn.socket) else {
            return false;
        };
        let entries = self.walker.sockets.between(server, turn.begin, u64::MAX);
        let sent: Vec<(u64, u64)> = entries
            .iter()
            .filter_map(|e| {
                if let Act::Sent(n) = e.act {
                    Some((e.at, u64::from(n)))
                } else {
                    None
                }
            })
            .collect();
        let (Some(first), Some(last)) = (sent.first(), sent.last()) else {
            return false;
        };
        let widest = sent
            .windows(2)
            .map(|pair| pair[1].0 - pair[0].0)
            .max()
            .unwrap_or(0);
        let quiet = self.end.saturating_sub(last.0);
        let whole = sent.iter().map(|s| s.1).sum::<u64>() == turn.received;
        let over = quiet > 2 * widest && 2 * quiet > last.0 - first.0;
        turn.received > 0 && whole && (first == last || over && turn.received >= least)
    }

    /// The path of one turn: from its sending to the last bytes of its answer.
    fn turn(&self, turn: &Turn, place: Place, out: &mut Vec<Piece>) {
        let w = self.walker;
        let Some((arrived, read, sent)) = self.at_server(turn) else {
            return self.unknown_server(turn, place, out);
        };
        let after = if place.nested > 0 {
            place.chain.to(Link::Peer, read.tid)
        } else {
            place.chain
        };
        let reached = self.sending(turn, arrived, place.chain, out);
        w.walk(
            read.tid,
            reached,
            read.at.max(reached),
            after.with(Link::Queue),
            out,
        );
        let entries = w.sockets.between(turn.socket, read.at, turn.end);
        let answered = entries
            .iter()
            .rfind(|e| e.act == Act::Arrived)
            .map(|e| e.at);
        // On this machine the answer arrives within the call that sends it.
        let given = answered
            .filter(|&at| at >= sent.begun && at <= sent.at)
            .unwrap_or(sent.at)
            .min(turn.end);
        let from = read.at.max(reached);
        let server = w.connections.peer(turn.socket);
        self.at_work(
            server,
            (from, given.max(from)),
            sent.tid,
            Place {
                chain: after,
                ..place
            },
            out,
        );
        let given = given.max(from);
        let answered = answered.unwrap_or(given).clamp(given, turn.end.max(given));
        w.put(sent.tid, Kind::Wire, place.chain, (given, answered), out);
        // A program that asks on behalf of another request reads the answer when it comes round to it.
        let reading = if place.nested > 0 {
            place.chain.with(Link::Queue)
        } else {
            place.chain
        };
        w.walk(turn.receiver, answered, turn.end, reading, out);
    }

    /// At the server's end: when the request arrived, its first reading, and the last sending of the answer.
    fn at_server(&self, turn: &Turn) -> Option<(u64, Entry, Entry)> {
        let server = self.walker.connections.peer(turn.socket)?;
        let entries = self.walker.sockets.between(server, turn.begin, turn.end);
        let read = *entries
            .iter()
            .find(|e| matches!(e.act, Act::Received(1..)))?;
        let sent = *entries
            .iter()
            .rev()
            .find(|e| matches!(e.act, Act::Sent(_)) && e.at >= read.at)?;
        let arrived = entries
            .iter()
            .find(|e| e.act == Act::Arrived && e.at <= read.at)
            .map_or(read.at, |e| e.at);
        Some((arrived, read, sent))
    }

    /// The client sends: until the request has arrived. Returns until when that is told.
    fn sending(&self, turn: &Turn, arrived: u64, chain: Chain, out: &mut Vec<Piece>) -> u64 {
        let w = self.walker;
        let mut entries = w.sockets.between(turn.socket, turn.begin, turn.end).iter();
        let handed = match entries.find(|e| matches!(e.act, Act::Sent(_))) {
            Some(s) if s.begun <= arrived && arrived <= s.at => arrived,
            Some(s) => s.at.min(arrived),
            None => arrived,
        };
        let from = self.connecting(turn, handed, chain, out);
        w.walk(turn.sender, from, handed, chain, out);
        w.put(turn.sender, Kind::Wire, chain, (handed, arrived), out);
        arrived.max(turn.begin)
    }

    /// The client connects, if it does in this turn: what is not its own work then is the handshake on its way, again
    /// after a second where the server had no room for it. Returns until when that is told.
    fn connecting(&self, turn: &Turn, until: u64, chain: Chain, out: &mut Vec<Piece>) -> u64 {
        let w = self.walker;
        let entries = w.sockets.between(turn.socket, turn.begin, until);
        let Some(connected) = entries
            .iter()
            .find(|e| e.act == Act::Connected)
            .map(|e| e.at)
        else {
            return turn.begin;
        };
        let mut pieces = Vec::new();
        w.walk(turn.sender, turn.begin, connected, chain, &mut pieces);
        for Piece { start, end, leaf } in pieces {
            let works = matches!(
                leaf.kind,
                Kind::User | Kind::Call(_) | Kind::Interrupt(_) | Kind::Cpu | Kind::Memory
            );
            let wire = Leaf {
                kind: Kind::Wire,
                whom: Whom::Nobody,
                chain,
                ..leaf
            };
            put(
                if works && leaf.chain == chain {
                    leaf
                } else {
                    wire
                },
                (start, end),
                out,
            );
        }
        connected
    }

    /// A turn with a server that is not on this machine, or was not seen.
    fn unknown_server(&self, turn: &Turn, place: Place, out: &mut Vec<Piece>) {
        let w = self.walker;
        let entries = w.sockets.between(turn.socket, turn.begin, turn.end);
        let sent = entries
            .iter()
            .find(|e| matches!(e.act, Act::Sent(_)))
            .map_or(turn.begin, |e| e.at);
        let answered = entries
            .iter()
            .rfind(|e| e.act == Act::Arrived)
            .map_or(turn.end, |e| e.at);
        let answered = answered.clamp(sent, turn.end.max(sent));
        let kind = if place.nested > 0 {
            Kind::Peer
        } else {
            Kind::NotFollowed
        };
        w.walk(turn.sender, turn.begin, sent, place.chain, out);
        w.put(turn.sender, kind, place.chain, (sent, answered), out);
        w.walk(
            turn.receiver,
            answered,
            turn.end,
            place.chain.with(Link::Queue),
            out,
        );
    }

    /// Counts a turn that a request made itself.
    fn count(&self, inner: &Turn) {
        let answered = self.at_server(inner).map_or(0, |(_, read, _)| read.tid);
        let mut asked = self.asked.borrow_mut();
        let one = asked.entry(answered).or_default();
        one.turns += 1;
        one.time += inner.end - inner.begin;
    }

    /// What was asked of others, by the thread that answered.
    pub fn asked(&self) -> HashMap<i32, Asked> {
        self.asked.take()
    }

    /// The server has the request: its thread's time, but for the turns that it makes itself for this request.
    fn at_work(
        &self,
        server: Option<u64>,
        span: (u64, u64),
        tid: i32,
        place: Place,
        out: &mut Vec<Piece>,
    ) {
        let mut reached = span.0;
        let own = self
            .outgoing
            .get(&tid)
            .filter(|_| place.nested < MOST_NESTED)
            .map_or(&[][..], Vec::as_slice);
        let first = own.partition_point(|t| t.begin < span.0);
        for inner in own[first..].iter().take_while(|t| t.begin < span.1) {
            if inner.begin < reached || inner.end > span.1 || !self.is_for(server, inner, tid) {
                continue;
            }
            self.walker
                .walk(tid, reached, inner.begin, place.chain, out);
            if place.nested == 0 {
                self.count(inner);
            }
            self.turn(
                inner,
                Place {
                    chain: place.chain,
                    nested: place.nested + 1,
                },
                out,
            );
            reached = inner.end;
        }
        self.walker.walk(tid, reached, span.1, place.chain, out);
    }

    /// Whether a thread made a turn of its own for the request at this socket: the last that it had read from any
    /// client was this one's.
    fn is_for(&self, server: Option<u64>, inner: &Turn, tid: i32) -> bool {
        let Some(read) = self.read.get(&tid) else {
            return false;
        };
        let last = read[..read.partition_point(|r| r.0 <= inner.begin)].last();
        last.is_some_and(|last| Some(last.1) == server)
    }

    /// A command's time within a window, as one request.
    pub fn of_program(&self, pid: i32, begin: u64, end: u64) -> Request {
        let mut pieces = Vec::new();
        self.walker.walk_program(pid, begin, end, &mut pieces);
        Request { begin, end, pieces }
    }

    /// The time of all processes of the service that did something in the window, each as if it were a command; where
    /// none did, of all.
    pub fn of_programs(&self, begin: u64, end: u64) -> Vec<Request> {
        let timelines = self.walker.timelines;
        let busy = |tid: i32| {
            timelines
                .between(tid, begin, end)
                .iter()
                .any(|s| !matches!(s.doing, Doing::Silent(_) | Doing::Unknown))
        };
        let pids = |wanted: &dyn Fn(i32) -> bool| {
            let of_service = timelines
                .threads
                .keys()
                .copied()
                .filter(|&tid| self.walker.side(tid) == Side::Server && wanted(tid));
            of_service
                .filter_map(|tid| timelines.processes.get(&tid).copied())
                .collect::<BTreeSet<i32>>()
        };
        let mut found = pids(&busy);
        if found.is_empty() {
            found = pids(&|_| true);
        }
        found
            .into_iter()
            .map(|pid| self.of_program(pid, begin, end))
            .collect()
    }

    /// A request whose program tells itself when it began and ended, by thread (an embedded database).
    pub fn of_thread(&self, (tid, begin, end): (i32, u64, u64)) -> Request {
        let mut pieces = Vec::new();
        self.walker
            .walk(tid, begin, end, Chain::default(), &mut pieces);
        Request { begin, end, pieces }
    }
}

/// The thread that uses a socket: who sent or read there first.
pub(super) fn user(log: &[Entry]) -> Option<i32> {
    log.iter()
        .find(|e| matches!(e.act, Act::Sent(_) | Act::Received(_) | Act::Connect))
        .map(|e| e.tid)
}

#[cfg(test)]
mod tests;
