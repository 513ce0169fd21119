//! The leaves of paths: what time can go to, by whom, and by which chain of waits a path came there.

use std::collections::HashMap;

use fingerpost_record::Layer;
use fingerpost_record::place::name;

use super::event::InterruptKind;
use crate::calls;

/// Which side of a workload a thread is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The service that is explained.
    Server,
    /// Its load generator.
    Client,
    /// Anybody else: another service, a neighbour, a thread of the kernel.
    Other,
}

/// What a thread did at the end of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    User,
    /// A system call, on a CPU.
    Call(i64),
    /// An interrupt that came while it was on a CPU.
    Interrupt(InterruptKind),
    /// Ready, waiting for a CPU.
    Cpu,
    /// A lock or condition whose holder could not be followed.
    Lock,
    /// A block request that was held back before it reached the queue.
    DiskHeld,
    DiskQueue,
    DiskDevice,
    /// The file system, or a device whose request was not seen.
    DiskOther,
    /// Another service, which could not be followed further.
    Peer,
    /// Sent by one end of a connection and not arrived at the other.
    Wire,
    /// Asleep until a time.
    Timer,
    /// Freeing or moving memory, or waiting for a page.
    Memory,
    Child,
    /// The other end of a pipe, an event.
    Pipe,
    NotFollowed,
}

/// A step of the chain by which a path came to a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Link {
    /// Behind other requests of the same thread.
    Queue,
    /// An idle thread was given the request by this one.
    Handover,
    /// A lock or condition that another thread ended.
    Lock,
    /// A file system's or device's thread.
    Disk,
    /// Another end of a pipe or event.
    Pipe,
    /// The other end of a connection.
    Peer,
    Child,
    /// Another thread of the program, while its first one waits for the whole of a window.
    Thread,
    /// A page, or the address space's lock.
    Memory,
}

impl Link {
    /// Its name in a record.
    pub fn as_str(self) -> &'static str {
        match self {
            Link::Queue => "queue",
            Link::Handover => "hand-over",
            Link::Lock => "lock",
            Link::Disk => "disk",
            Link::Pipe => "pipe",
            Link::Peer => "peer",
            Link::Child => "child",
            Link::Thread => "thread",
            Link::Memory => "memory",
        }
    }
}

/// The links that a chain keeps: a longer one keeps its beginning, which is what names it.
const LONGEST: usize = 6;

/// A chain of waits, from the request's own thread on. The same link twice in a row is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Chain {
    links: [Option<Link>; LONGEST],
}

impl Chain {
    /// The chain with one more link.
    #[must_use]
    pub fn with(mut self, link: Link) -> Chain {
        let length = self.links().count();
        if length < LONGEST && (length == 0 || self.links[length - 1] != Some(link)) {
            self.links[length] = Some(link);
        }
        self
    }

    pub fn links(&self) -> impl Iterator<Item = Link> + '_ {
        self.links.iter().map_while(|l| *l)
    }

    pub fn has(&self, link: Link) -> bool {
        self.links().any(|l| l == link)
    }
}

/// Who had meanwhile what was waited for, or whose work it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Whom {
    /// Nobody in particular, or not known.
    #[default]
    Nobody,
    Server,
    Client,
    /// Nobody: a CPU idled.
    Idle,
    Thread(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Leaf {
    pub kind: Kind,
    /// Of the thread that did it.
    pub side: Side,
    pub whom: Whom,
    /// How the path came there.
    pub chain: Chain,
}

/// A stretch of a request's path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Nanoseconds on the monotonic clock.
    pub start: u64,
    pub end: u64,
    pub leaf: Leaf,
}

impl Leaf {
    /// Layer and component, as a record names them.
    pub fn named(&self) -> (Layer, String) {
        let (layer, component) = match (self.side, self.kind) {
            (_, Kind::NotFollowed) => (Layer::Application, "not followed"),
            (Side::Client, Kind::Cpu) => (Layer::Client, "client waiting for a CPU"),
            (Side::Client, Kind::User | Kind::Call(_) | Kind::Interrupt(_)) => {
                (Layer::Client, "client user and kernel")
            }
            (Side::Client, Kind::Lock | Kind::Timer | Kind::Child | Kind::Pipe | Kind::Memory) => {
                (Layer::Client, "client waiting for itself")
            }
            (Side::Server, Kind::User) => (Layer::Application, "server user code"),
            (Side::Other, Kind::User) => (Layer::Application, "code of another process"),
            (Side::Other, Kind::Timer) => (Layer::Application, name::OTHER_SLEEPING),
            (Side::Other, Kind::Lock) => (Layer::Application, name::OTHER_LOCK),
            (_, Kind::Call(number)) => {
                return (Layer::Kernel, format!("kernel: {}", calls::name(number)));
            }
            (_, Kind::Interrupt(_)) => (Layer::Kernel, "interrupts"),
            (_, Kind::Cpu) => (Layer::Scheduler, "waiting for a CPU"),
            (_, Kind::Lock) => (Layer::Application, "waiting for a lock"),
            (_, Kind::DiskHeld) => (Layer::Storage, "disk: held back before the queue"),
            (_, Kind::DiskQueue) => (Layer::Storage, "disk: in the queue"),
            (_, Kind::DiskDevice) => (Layer::Storage, "disk: in the device"),
            (_, Kind::DiskOther) => (Layer::Storage, "disk: file system"),
            (_, Kind::Peer) => (Layer::Network, "waiting for a peer"),
            (_, Kind::Wire) => (Layer::Network, "on the way between server and client"),
            (_, Kind::Timer) => (Layer::Application, "sleeping"),
            (_, Kind::Memory) => (Layer::Memory, "waiting for memory"),
            (_, Kind::Child) => (Layer::Application, "waiting for a child process"),
            (_, Kind::Pipe) => (Layer::Application, "waiting for a pipe"),
        };
        (layer, component.to_owned())
    }

    /// Who, in words.
    pub fn whom(&self, names: &HashMap<i32, String>) -> String {
        match self.whom {
            Whom::Nobody => String::new(),
            Whom::Server => "the server itself".to_owned(),
            Whom::Client => "the client".to_owned(),
            Whom::Idle => "idle CPU".to_owned(),
            Whom::Thread(tid) => names
                .get(&tid)
                .cloned()
                .unwrap_or_else(|| format!("thread {tid}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_keeps_its_beginning_and_no_link_twice_in_a_row() {
        let chain = Chain::default()
            .with(Link::Lock)
            .with(Link::Lock)
            .with(Link::Disk)
            .with(Link::Lock);
        assert_eq!(
            chain.links().collect::<Vec<_>>(),
            [Link::Lock, Link::Disk, Link::Lock]
        );
        let long = (0..9).fold(Chain::default(), |c, i| {
            c.with(if i % 2 == 0 { Link::Queue } else { Link::Peer })
        });
        assert_eq!(long.links().count(), LONGEST);
        assert!(chain.has(Link::Disk) && !chain.has(Link::Peer));
    }

    #[test]
    fn the_side_decides_about_the_name() {
        let leaf = |side, kind| {
            Leaf {
                kind,
                side,
                whom: Whom::Nobody,
                chain: Chain::default(),
            }
            .named()
        };
        assert_eq!(
            leaf(Side::Server, Kind::User),
            (Layer::Application, "server user code".to_owned())
        );
        assert_eq!(
            leaf(Side::Client, Kind::User),
            (Layer::Client, "client user and kernel".to_owned())
        );
        assert_eq!(
            leaf(Side::Server, Kind::Call(libc::SYS_futex)),
            (Layer::Kernel, "kernel: futex".to_owned())
        );
        assert_eq!(leaf(Side::Client, Kind::Cpu).0, Layer::Client);
        assert_eq!(
            leaf(Side::Server, Kind::Timer),
            (Layer::Application, "sleeping".to_owned())
        );
        assert_eq!(
            leaf(Side::Other, Kind::Timer),
            (Layer::Application, "sleeping of another process".to_owned())
        );
    }
}
