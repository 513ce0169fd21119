//! Where a service answers: what the system tells of its sockets before it is watched, and of sockets that windows
//! show.
//!
//! A connection that is made within a window shows which end asks. Of one that was there before, its port tells (TCP),
//! or the descriptor by which it is used: an accepted Unix socket has the name of the one that listened. Text of
//! `/proc/PID/net` is of that process's network name space, so that a container's service is known as well.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fingerpost_sys::listening::socket_at;
use fingerpost_sys::sockdiag::SockDiag;
use foldhash::HashMap;

use super::event::{Event, What};
use super::source::Window;
use crate::queues::{ports_of, socket_inodes};

/// Descriptors that are looked up after one window at most.
const MOST_LOOKED_UP: usize = 500;

/// The sockets at which a service answers.
#[derive(Clone, Debug, Default)]
pub struct Answering {
    /// A process of each network name space that the service is in.
    spaces: Vec<i32>,
    /// TCP ports at which it listens.
    pub ports: HashSet<u16>,
    /// Names of Unix sockets at which it listens, as `/proc/net/unix` writes them.
    pub names: HashSet<String>,
    /// Unix sockets that were accepted at these names.
    accepted: HashSet<u32>,
}

impl Answering {
    /// Looks at the sockets of a service's processes. Those of other users are seen with root's rights only.
    pub fn of(pids: impl IntoIterator<Item = i32>) -> Answering {
        let mut spaces: BTreeMap<PathBuf, i32> = BTreeMap::new();
        let pids: Vec<i32> = pids.into_iter().collect();
        for &pid in &pids {
            if let Ok(space) = std::fs::read_link(format!("/proc/{pid}/ns/net")) {
                spaces.entry(space).or_insert(pid);
            }
        }
        let mut found = Answering {
            spaces: spaces.values().copied().collect(),
            ..Answering::default()
        };
        let inodes = socket_inodes(pids.into_iter());
        let own = std::fs::read_link("/proc/thread-self/ns/net").ok();
        for (space, pid) in spaces {
            // Asked by text, the kernel walks through its table of connections, which takes milliseconds.
            let here = || {
                SockDiag::open()
                    .and_then(|mut diag| ports_of(&mut diag, &inodes))
                    .ok()
            };
            match (own.as_ref() == Some(&space)).then(here).flatten() {
                Some(ports) => found.ports.extend(ports),
                None => found.ports.extend(
                    ["tcp", "tcp6"]
                        .iter()
                        .flat_map(|file| listening_ports(lines(pid, file), &inodes)),
                ),
            }
            found
                .names
                .extend(listening_names(lines(pid, "unix"), &inodes));
        }
        found.look_for_accepted();
        found
    }

    /// The numbers of the network name spaces that it is in.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = u32> + '_ {
        let number = |pid: &i32| std::fs::metadata(format!("/proc/{pid}/ns/net")).ok();
        self.spaces
            .iter()
            .filter_map(move |pid| Some(number(pid)?.ino() as u32))
    }

    /// Whether it listens anywhere.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty() && self.names.is_empty()
    }

    fn look_for_accepted(&mut self) {
        if self.names.is_empty() {
            return;
        }
        self.accepted = self
            .spaces
            .iter()
            .flat_map(|&pid| accepted_inodes(lines(pid, "unix"), &self.names))
            .collect();
    }
}

/// The most bytes of a table of sockets that are read: 100,000 connections, which the kernel takes half a second for.
const LONGEST_TABLE: u64 = 16 << 20;

/// The lines of a table of sockets without its head.
fn lines(pid: i32, file: &str) -> impl Iterator<Item = String> {
    let table = File::open(format!("/proc/{pid}/net/{file}")).ok();
    table.into_iter().flat_map(|f| {
        BufReader::new(f.take(LONGEST_TABLE))
            .lines()
            .map_while(Result::ok)
            .skip(1)
    })
}

/// Local ports of listening sockets with these inodes. The kernel tells listening sockets before all others, of which
/// there may be many.
fn listening_ports(lines: impl Iterator<Item = String>, inodes: &HashSet<u32>) -> HashSet<u16> {
    let port = |line: String| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let inode: u32 = fields.get(9)?.parse().ok()?;
        let port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
        inodes.contains(&inode).then_some(port)
    };
    lines
        .take_while(|line| line.split_ascii_whitespace().nth(3) == Some("0A"))
        .filter_map(port)
        .collect()
}

/// One line of `/proc/net/unix`: flags, state, inode and name.
fn unix(line: &str) -> Option<(u32, u8, u32, &str)> {
    let mut rest = line.trim_start();
    let mut field = || {
        let (field, after) = rest.split_once(' ')?;
        rest = after.trim_start();
        Some(field)
    };
    let (_, _, _, flags, _, state, inode) = (
        field()?,
        field()?,
        field()?,
        field()?,
        field()?,
        field()?,
        field()?,
    );
    Some((
        u32::from_str_radix(flags, 16).ok()?,
        u8::from_str_radix(state, 16).ok()?,
        inode.parse().ok()?,
        rest,
    ))
}

/// The flag of a Unix socket that listens, and the state of one that is connected.
const LISTENS: u32 = 0x10000;
const CONNECTED: u8 = 3;

fn listening_names(lines: impl Iterator<Item = String>, inodes: &HashSet<u32>) -> HashSet<String> {
    let name = |line: String| {
        let (flags, _, inode, name) = unix(&line)?;
        (flags & LISTENS != 0 && inodes.contains(&inode) && !name.is_empty())
            .then(|| name.to_owned())
    };
    lines.filter_map(name).collect()
}

fn accepted_inodes(lines: impl Iterator<Item = String>, names: &HashSet<String>) -> HashSet<u32> {
    let inode = |line: String| {
        let (flags, state, inode, name) = unix(&line)?;
        (flags & LISTENS == 0 && state == CONNECTED && names.contains(name)).then_some(inode)
    };
    lines.filter_map(inode).collect()
}

/// The ports at which a service listens, and sockets that answer, by the kernel's address.
pub type Ends = (HashSet<u16>, Vec<u64>);

/// What a window tells of its requests at once, for the length of the next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AtOnce {
    /// Latency of the requests that it held, roughly.
    pub latencies: Vec<Duration>,
    /// Requests that its ends cut, roughly.
    pub cut: u64,
    /// The longest that one of these was under way within it: it takes that long at least.
    pub cut_after: Duration,
}

/// Looks through windows while the service is watched: which sockets answer, by the descriptors that are open then.
#[derive(Debug, Default)]
pub struct Answerers {
    answering: Answering,
    /// Whether a descriptor told that a socket answers, by the kernel's address; kept where not, too, so that it is not
    /// looked up again.
    known: HashMap<u64, bool>,
}

impl Answerers {
    /// For a service that answers there.
    pub fn new(answering: Answering) -> Answerers {
        Answerers {
            answering,
            known: HashMap::default(),
        }
    }

    /// Where the service listens, and what was learned so far.
    pub fn ends(&self) -> Ends {
        let answer = self
            .known
            .iter()
            .filter(|(_, answers)| **answers)
            .map(|(&socket, _)| socket);
        (self.answering.ports.clone(), answer.collect())
    }

    /// Looks through a window that has just ended. `ours` says whether a process is the service's.
    pub fn look(&mut self, window: &Window, ours: impl Fn(i32) -> bool) -> AtOnce {
        // Without a Unix socket that listens, ports tell all there is to know.
        if !self.answering.names.is_empty() {
            self.look_up(&window.events, &ours);
        }
        at_once(window, ours)
    }

    fn look_up(&mut self, events: &[Event], ours: &impl Fn(i32) -> bool) {
        let mut calls: HashMap<i32, u64> = HashMap::default();
        let mut unknown: HashMap<u64, (i32, u64)> = HashMap::default();
        for e in events.iter().filter(|e| ours(e.pid)) {
            match e.what {
                What::Enter { args, .. } => _ = calls.insert(e.tid, args[0]),
                What::Sent { socket, .. } | What::Received { socket, .. }
                    if !self.known.contains_key(&socket) =>
                {
                    if let (Some(&fd), true) = (calls.get(&e.tid), unknown.len() < MOST_LOOKED_UP) {
                        unknown.insert(socket, (e.pid, fd));
                    }
                }
                _ => {}
            }
        }
        let inode = |pid: i32, fd: u64| socket_at(Path::new(&format!("/proc/{pid}/fd/{fd}")));
        let inodes: Vec<(u64, Option<u32>)> = unknown
            .into_iter()
            .map(|(socket, (pid, fd))| (socket, inode(pid, fd)))
            .collect();
        if inodes
            .iter()
            .any(|(_, inode)| inode.is_some_and(|i| !self.answering.accepted.contains(&i)))
        {
            self.answering.look_for_accepted();
        }
        for (socket, inode) in inodes {
            // An accepted Unix socket answers. Any other may be of TCP, of which its port tells.
            self.known.insert(
                socket,
                inode.is_some_and(|inode| self.answering.accepted.contains(&inode)),
            );
        }
    }
}

/// What is open at a socket.
#[derive(Default)]
struct Open {
    arrived: Option<u64>,
    answered: Option<u64>,
    /// Whether a thread of the service has used it.
    ours: bool,
}

impl Open {
    fn latency(&self) -> Option<Duration> {
        let (arrived, answered) = (self.arrived?, self.answered?);
        self.ours
            .then(|| Duration::from_nanos(answered.saturating_sub(arrived)))
    }
}

/// Times from an arrival to the last sending before the next, at every socket of the service.
fn at_once(window: &Window, ours: impl Fn(i32) -> bool) -> AtOnce {
    let mut open: HashMap<u64, Open> = HashMap::default();
    let mut found = AtOnce::default();
    for e in &window.events {
        match e.what {
            What::Arrived { socket } => {
                let state = open.entry(socket).or_default();
                if state.answered.is_some() {
                    found.latencies.extend(state.latency());
                    (state.arrived, state.answered) = (None, None);
                }
                state.arrived.get_or_insert(e.time);
            }
            What::Received { socket, bytes: 1.. } if ours(e.pid) => {
                open.entry(socket).or_default().ours = true
            }
            What::Sent { socket, bytes: 1.. } if ours(e.pid) => {
                let state = open.entry(socket).or_default();
                (state.ours, state.answered) = (true, Some(e.time));
            }
            _ => {}
        }
    }
    for state in open.values().filter(|state| state.ours) {
        match state.latency() {
            Some(latency) => found.latencies.push(latency),
            None => {
                let (from, to) = (
                    state.arrived.unwrap_or(window.start),
                    state.answered.unwrap_or(window.end),
                );
                found.cut += 1;
                found.cut_after = found
                    .cut_after
                    .max(Duration::from_nanos(to.saturating_sub(from)));
            }
        }
    }
    found.latencies.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

    use super::*;
    use crate::follow::tests::Story;

    #[test]
    fn ports_and_names_are_those_of_sockets_that_the_service_has() {
        let tcp = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 501 1 \
            0000\n\
                   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 502 1 0000\n\
                   2: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 503 1 0000\n\
                   3: 0100007F:9C41 0100007F:1F90 0A 00000000:00000000 00:00000000 00000000     0        0 501 1 \
                   0000\n";
        let inodes = HashSet::from([501, 601]);
        assert_eq!(
            listening_ports(tcp.lines().map(str::to_owned), &inodes),
            HashSet::from([8080]),
            "what listens comes first"
        );
        let unix = "0000000000000000: 00000002 00000000 00010000 0001 01 601 /run/my sql.sock\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 602 /run/my sql.sock\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 603\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 604 @other\n";
        let names = listening_names(unix.lines().map(str::to_owned), &inodes);
        assert_eq!(names, HashSet::from(["/run/my sql.sock".to_owned()]));
        assert_eq!(
            accepted_inodes(unix.lines().map(str::to_owned), &names),
            HashSet::from([602])
        );
    }

    #[test]
    fn our_own_listening_sockets_are_found() {
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let name = format!("fingerpost answering {}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let unix = UnixListener::bind_addr(&address).unwrap();
        let _client = UnixStream::connect_addr(&address).unwrap();
        let (accepted, _) = unix.accept().unwrap();
        let found = Answering::of([std::process::id() as i32]);
        assert!(
            found.ports.contains(&tcp.local_addr().unwrap().port()),
            "{found:?}"
        );
        assert!(found.names.contains(&format!("@{name}")), "{found:?}");
        let inode = socket_at(Path::new(&format!(
            "/proc/self/fd/{}",
            accepted.as_raw_fd()
        )))
        .unwrap();
        assert!(found.accepted.contains(&inode));
    }

    #[test]
    fn latencies_are_told_at_once() {
        let story = Story::default()
            .arrived(10, 101, 0xb)
            .received(12, 101, 0xb, 5)
            .sent(20, 101, 0xb, 5)
            .sent(25, 101, 0xb, 5);
        let story = story
            .arrived(40, 101, 0xb)
            .sent(45, 101, 0xb, 5)
            .arrived(50, 301, 0xe)
            .sent(60, 301, 0xe, 1);
        let story = story.arrived(70, 101, 0xc).received(72, 101, 0xc, 5);
        let found = at_once(&story.window(0, 100), |pid| pid == 100);
        let ns = Duration::from_nanos;
        assert_eq!(
            found,
            AtOnce {
                latencies: vec![ns(5), ns(15)],
                cut: 1,
                cut_after: ns(30)
            }
        );
    }

    #[test]
    fn a_request_cut_at_its_beginning_takes_what_is_seen_at_least() {
        // Bytes that are read without having arrived came before.
        let story = Story::default()
            .received(12, 101, 0xb, 5)
            .sent(55, 101, 0xb, 5);
        let found = at_once(&story.window(10, 100), |pid| pid == 100);
        assert_eq!((found.cut, found.cut_after), (1, Duration::from_nanos(45)));
    }
}
