//! Every request of a service, counted in the kernel for as long as it is looked at (`bpf/count.bpf.c`): how many, how
//! long each took, what is under way. No window cuts these.
//!
//! A request is a turn at a connection, from the arrival of its first bytes to the last bytes of its answer that were
//! given to the socket before the next one began.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use fingerpost_record::{Latency, WholeLook};
use fingerpost_sys::bpf::btf::Btf;
use fingerpost_sys::bpf::{Attached, Point, Wanted};
use fingerpost_sys::trace::monotonic_ns;

use super::answering::Answering;
use super::source::bpf::{WAYS, at_functions};
use super::source::flow::first_pid_namespace;
use super::source::wanted::{Kind, WANTED};
use super::underway::{Table, UnderWay};

/// The programs, as a compiler made them of `bpf/`.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!("../../../../bpf/count.bpf.o"));

/// Connections that are kept account of at once, with 200 bytes each.
const MOST_CONNECTIONS: u32 = 32_768;
/// Bytes of a Unix socket's name that are compared, and one of 0 (`NAME_BYTES`).
const NAME: usize = 64;
/// The family of addresses of the Internet's version 4, and of Unix sockets.
const INET: u16 = 2;
const UNIX: u16 = 1;

/// Bytes of `struct connection`, and of what comes before the histogram in `struct sums`.
const CONNECTION: usize = 112;
const COUNTERS: usize = 10;
/// The histogram's steps to a doubling, its doublings, and the bits of its first step.
const STEP_BITS: u32 = 6;
const STEPS: usize = 1 << STEP_BITS;
const DOUBLINGS: usize = 32;
const LEAST_BITS: u32 = 9;
const BUCKETS: usize = DOUBLINGS * STEPS;
/// How often sums and connections are read until nothing changed between the two.
const READINGS: usize = 5;
/// Bytes of the ports' bits (`struct wanted`).
const PORTS: usize = 8192;

/// A connection at the end that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The kernel's address of the socket, by which its events name it.
    pub socket: u64,
    /// When the first bytes of its open request arrived; nothing where none is open.
    pub begun: Option<u64>,
    /// When a thread first read of it.
    pub read: Option<u64>,
    /// When bytes of its answer were last given to the socket.
    pub answered: Option<u64>,
    /// The kernel's cookie of it, 0 where it has none.
    pub cookie: u64,
    /// Requests that ended on it.
    pub requests: u64,
    /// Bytes that were read, and that were given to it, since the last of these.
    pub bytes: [u32; 2],
    /// Who read last.
    pub tid: i32,
    /// Its own end and the other one; nothing for a Unix socket.
    pub ends: Option<[SocketAddr; 2]>,
}

impl Connection {
    fn of(key: &[u8], value: &[u8]) -> Option<Connection> {
        let long = |at: usize| -> Option<u64> {
            Some(u64::from_ne_bytes(value.get(at..at + 8)?.try_into().ok()?))
        };
        let word = |at: usize| -> Option<u32> {
            Some(u32::from_ne_bytes(value.get(at..at + 4)?.try_into().ok()?))
        };
        let short = |at: usize| -> Option<u16> {
            Some(u16::from_ne_bytes(value.get(at..at + 2)?.try_into().ok()?))
        };
        let time = |at| Some(Some(long(at)?).filter(|&at| at > 0));
        if value.len() < CONNECTION {
            return None;
        }
        let family = short(68)?;
        let end = |at: usize, port| -> Option<SocketAddr> {
            let bytes: [u8; 16] = value.get(at..at + 16)?.try_into().ok()?;
            let address = if family == INET {
                IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))
            } else {
                IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
            };
            Some(SocketAddr::new(address, port))
        };
        let ends = if family == UNIX {
            None
        } else {
            Some([end(80, short(70)?)?, end(96, short(72)?)?])
        };
        Some(Connection {
            socket: u64::from_ne_bytes(key.try_into().ok()?),
            begun: time(0)?,
            read: time(8)?,
            answered: time(16)?,
            cookie: long(24)?,
            requests: long(40)?,
            bytes: [word(48)?, word(52)?],
            tid: word(56)? as i32,
            ends,
        })
    }

    /// Since when its request has no answer at all.
    pub fn waits_since(&self) -> Option<u64> {
        self.begun.filter(|_| self.answered.is_none())
    }
}

/// What all CPUs counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Requests that ended, the nanoseconds that they took together, and the longest of them.
    pub requests: u64,
    /// Nanoseconds that these took together.
    pub nanoseconds: u64,
    /// Nanoseconds that the longest took.
    pub longest: u64,
    /// Nanoseconds from their arrivals to the first reading.
    pub unread: u64,
    /// Bytes that were read at the connections.
    pub received: u64,
    /// Bytes that were given to them.
    pub sent: u64,
    /// Connections that began.
    pub opened: u64,
    /// Connections that ended.
    pub closed: u64,
    /// Requests that ended with their connection, without an answer.
    pub unanswered: u64,
    /// Connections that there was no room to keep account of.
    pub missed: u64,
    buckets: Vec<u64>,
}

impl Default for Counted {
    fn default() -> Counted {
        Counted {
            requests: 0,
            nanoseconds: 0,
            longest: 0,
            unread: 0,
            received: 0,
            sent: 0,
            opened: 0,
            closed: 0,
            unanswered: 0,
            missed: 0,
            buckets: vec![0; BUCKETS],
        }
    }
}

/// The step of the histogram that a time in nanoseconds is in, as the programs find it.
fn bucket(time: u64) -> usize {
    let rest = time >> LEAST_BITS;
    if rest == 0 {
        return 0;
    }
    let bits = rest.ilog2();
    if bits as usize >= DOUBLINGS {
        return BUCKETS - 1;
    }
    let step = time >> (bits + LEAST_BITS - STEP_BITS) & (STEPS as u64 - 1);
    bits as usize * STEPS + step as usize
}

/// The middle of a step, in nanoseconds.
fn middle(bucket: usize) -> f64 {
    let (bits, step) = ((bucket / STEPS) as i32, (bucket % STEPS) as f64);
    let from = 2f64.powi(bits + LEAST_BITS as i32);
    from * (1.0 + (step + 0.5) / STEPS as f64)
}

impl Counted {
    /// Adds one CPU's.
    fn add(&mut self, sums: &[u8]) {
        let word = |n: usize| {
            let bytes = sums.get(8 * n..8 * n + 8).and_then(|b| b.try_into().ok());
            bytes.map_or(0, u64::from_ne_bytes)
        };
        self.longest = self.longest.max(word(2));
        let [
            requests,
            nanoseconds,
            unread,
            received,
            sent,
            opened,
            closed,
            unanswered,
            missed,
        ] = [0, 1, 3, 4, 5, 6, 7, 8, 9].map(word);
        self.requests += requests;
        self.nanoseconds += nanoseconds;
        self.unread += unread;
        self.received += received;
        self.sent += sent;
        self.opened += opened;
        self.closed += closed;
        self.unanswered += unanswered;
        self.missed += missed;
        for (n, count) in self.buckets.iter_mut().enumerate() {
            *count += word(COUNTERS + n);
        }
    }

    /// Adds a request that ended.
    fn end(&mut self, nanoseconds: u64) {
        self.requests += 1;
        self.nanoseconds += nanoseconds;
        self.longest = self.longest.max(nanoseconds);
        self.buckets[bucket(nanoseconds)] += 1;
    }

    /// How long this share of the requests took at most, in nanoseconds; nothing where there were none.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let all: u64 = self.buckets.iter().sum();
        let rank = ((share * all as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (n, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(middle(n).min(self.longest as f64));
            }
        }
        None
    }

    /// Latency in seconds.
    pub fn latency(&self) -> Latency {
        let quantile = |share| self.quantile(share).unwrap_or(0.0) * 1e-9;
        Latency {
            count: self.requests,
            mean: self.nanoseconds as f64 * 1e-9 / self.requests.max(1) as f64,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
        }
    }
}

/// Counts, until it is dropped.
pub struct Whole {
    attached: Attached,
    described: String,
    begun: u64,
}

impl Whole {
    /// Begins to count the requests of a service that answers there.
    ///
    /// # Errors
    /// One sentence that says why this is not possible here.
    pub fn open(answering: &Answering) -> Result<Whole, String> {
        Whole::by(answering, true, &[false, true])
    }

    /// The same by tracepoints, where they are to be used, and by these ways for what is left: at functions by the
    /// kernel's trampolines (false) or by probes (true).
    fn by(answering: &Answering, tracepoints: bool, probes: &[bool]) -> Result<Whole, String> {
        first_pid_namespace()?;
        let btf = Btf::read().map_err(|e| e.to_string())?;
        let (mut always, mut lacking) = (Vec::new(), Vec::new());
        for w in WANTED.iter().filter(|w| counts(w.kind)) {
            let used = tracepoints || w.kind == Kind::State;
            match btf.tracepoint(w.point()).filter(|_| used) {
                Some(_) => always.push(Point::Tracepoint(w.point())),
                None => lacking.push(w.kind),
            }
        }
        let ways = if lacking.is_empty() {
            Vec::new()
        } else {
            probes
                .iter()
                .map(|&probes| at_functions(&lacking, probes))
                .collect()
        };
        let wanted = Wanted {
            always,
            ways,
            entries: vec![("connections", MOST_CONNECTIONS)],
            tables: vec!["connections", "before", "sums", "places", "names", "wanted"],
            ..Wanted::default()
        };
        let attached = Attached::new(&btf, &OBJECT.0, &wanted).map_err(|e| e.to_string())?;
        let mut described = "every request counted in the kernel".to_owned();
        if let Some(way) = attached.way().and_then(|way| WAYS.get(way)) {
            described += &format!(", by {way}");
        }
        let mut whole = Whole {
            attached,
            described,
            begun: 0,
        };
        whole
            .answers(answering)
            .map_err(|e| format!("requests cannot be counted: {e}"))?;
        whole.begun = monotonic_ns();
        Ok(whole)
    }

    /// How it is had, in words.
    pub fn described(&self) -> &str {
        &self.described
    }

    fn table(&self, name: &str) -> io::Result<&fingerpost_sys::bpf::table::Table> {
        let missing = || io::Error::other(format!("the programs have no {name}"));
        self.attached.table(name).ok_or_else(missing)
    }

    /// Tells the programs where the service answers.
    fn answers(&self, answering: &Answering) -> io::Result<()> {
        let mut wanted = vec![0u8; PORTS + 8];
        for &port in &answering.ports {
            wanted[usize::from(port) >> 3] |= 1 << (port & 7);
            for space in answering.namespaces() {
                let key = [space.to_ne_bytes(), u32::from(port).to_ne_bytes()].concat();
                self.table("places")?.set(&key, &1u32.to_ne_bytes())?;
            }
        }
        for name in &answering.names {
            self.table("names")?
                .set(&unix_name(name), &1u32.to_ne_bytes())?;
        }
        let names = u32::from(!answering.names.is_empty());
        wanted[PORTS..PORTS + 4].copy_from_slice(&names.to_ne_bytes());
        self.table("wanted")?.set(&0u32.to_ne_bytes(), &wanted)
    }

    /// What was counted since it began.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn counted(&self) -> io::Result<Counted> {
        let sums = self.table("sums")?.get(&0u32.to_ne_bytes())?;
        let mut counted = Counted::default();
        sums.unwrap_or_default()
            .iter()
            .for_each(|cpu| counted.add(cpu));
        Ok(counted)
    }

    /// The connections that have had anything to do.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn connections(&self) -> io::Result<Vec<Connection>> {
        let all = self.table("connections")?.all()?;
        Ok(all
            .iter()
            .filter_map(|(key, value)| Connection::of(key, value))
            .collect())
    }

    /// What was counted, with the requests that are answered and have no next one yet that would end them, and the
    /// connections. Of a service that is busy a request that ends meanwhile may count twice or not at all.
    fn all(&self) -> io::Result<(Counted, Vec<Connection>)> {
        let mut before = self.counted()?;
        let mut connections = self.connections()?;
        for _ in 0..READINGS {
            let after = self.counted()?;
            if after == before {
                break;
            }
            before = after;
            connections = self.connections()?;
        }
        for c in &connections {
            before.received += u64::from(c.bytes[0]);
            before.sent += u64::from(c.bytes[1]);
            if let (Some(begun), Some(answered)) = (c.begun, c.answered) {
                before.end(answered.saturating_sub(begun));
            }
        }
        Ok((before, connections))
    }

    /// What the whole look comes to, for the record.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn look(&self) -> io::Result<WholeLook> {
        let (counted, connections) = self.all()?;
        let now = monotonic_ns();
        let seconds = |ns: u64| ns as f64 * 1e-9;
        let waiting: Vec<u64> = connections
            .iter()
            .filter_map(Connection::waits_since)
            .collect();
        let unread = connections
            .iter()
            .filter(|c| c.waits_since().is_some() && c.read.is_none());
        Ok(WholeLook {
            source: self.described.clone(),
            seconds: seconds(now.saturating_sub(self.begun)),
            latency: counted.latency(),
            longest: seconds(counted.longest),
            unread: seconds(counted.unread) / counted.requests.max(1) as f64,
            received: counted.received,
            sent: counted.sent,
            opened: counted.opened,
            closed: counted.closed,
            unanswered: counted.unanswered,
            missed: counted.missed,
            under_way: waiting.len() as u64,
            under_way_unread: unread.count() as u64,
            oldest: waiting
                .iter()
                .min()
                .map_or(0.0, |&since| seconds(now.saturating_sub(since))),
        })
    }
}

impl Table for Whole {
    fn under_way(&mut self) -> io::Result<Vec<UnderWay>> {
        let under_way = |c: Connection| {
            let [local, peer] = c.ends?;
            Some(UnderWay {
                socket: c.cookie,
                local,
                peer,
                since_ns: c.waits_since()?,
                read_ns: c.read,
                tid: (c.tid > 0 && c.read.is_some()).then_some(c.tid),
            })
        };
        Ok(self
            .connections()?
            .into_iter()
            .filter_map(under_way)
            .collect())
    }
}

fn counts(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Sent | Kind::Received | Kind::Arrived | Kind::State
    )
}

/// A Unix socket's name as the kernel has it: an abstract one begins with a zero byte, which `/proc` shows as `@`; any
/// other ends with one.
fn unix_name(shown: &str) -> Vec<u8> {
    let mut name = shown.as_bytes().to_vec();
    if let Some(first @ b'@') = name.first_mut() {
        *first = 0;
    }
    name.truncate(NAME - 1);
    name.resize(NAME, 0);
    name
}

#[cfg(test)]
mod tests;
