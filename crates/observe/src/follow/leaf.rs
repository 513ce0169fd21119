//! The leaves of paths: what time can go to, by whom, and by which chain of waits a path came there.

use std::collections::HashMap;

use fingerpost_record::{Blocker, Task, WaitClass};
pub use fingerpost_record::{Link, Side};

use super::event::InterruptKind;
use crate::calls;

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

/// The links that a chain keeps: a longer one keeps its beginning, which is what names it.
const LONGEST: usize = 6;

/// A chain of waits, from the request's own thread on. The same link twice in a row is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Chain {
    links: [Option<Link>; LONGEST],
    /// The threads that it came to, in order, each by which link; 0 where there is none.
    route: [(Option<Link>, i32); LONGEST],
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

    /// The chain that comes to a thread by this link.
    #[must_use]
    pub fn to(self, link: Link, tid: i32) -> Chain {
        let mut chain = self.with(link);
        if let Some(free) = chain.route.iter_mut().find(|(_, tid)| *tid == 0) {
            *free = (Some(link), tid);
        }
        chain
    }

    /// The chain without the threads: what it has in common with others.
    #[must_use]
    pub fn without_route(self) -> Chain {
        Chain {
            links: self.links,
            ..Chain::default()
        }
    }

    /// The threads that it came to, each by which link.
    pub fn route(&self) -> impl Iterator<Item = (Link, i32)> + '_ {
        self.route
            .iter()
            .map_while(|&(link, tid)| Some((link?, tid)))
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
    /// What the thread did or waited for, as a record has it.
    pub fn class(&self) -> WaitClass {
        match self.kind {
            Kind::User => WaitClass::UserCode,
            Kind::Call(number) => WaitClass::SystemCall(calls::name(number)),
            Kind::Interrupt(_) => WaitClass::Interrupt,
            Kind::Cpu => WaitClass::Cpu,
            Kind::Lock => WaitClass::Lock,
            Kind::DiskHeld => WaitClass::DiskHeld,
            Kind::DiskQueue => WaitClass::DiskQueue,
            Kind::DiskDevice => WaitClass::DiskDevice,
            Kind::DiskOther => WaitClass::DiskFileSystem,
            Kind::Peer => WaitClass::Peer,
            Kind::Wire => WaitClass::OnTheWay,
            Kind::Timer => WaitClass::Timer,
            Kind::Memory => WaitClass::Memory,
            Kind::Child => WaitClass::Child,
            Kind::Pipe => WaitClass::Pipe,
            Kind::NotFollowed => WaitClass::NotFollowed,
        }
    }

    /// Who had what was waited for, as a record has it; `tasks` are the threads that are known, by number.
    pub fn blocker(&self, tasks: &HashMap<i32, Task>) -> Option<Blocker> {
        match self.whom {
            Whom::Nobody => None,
            Whom::Server => Some(Blocker::Server),
            Whom::Client => Some(Blocker::Client),
            Whom::Idle => Some(Blocker::Idle),
            Whom::Thread(tid) => Some(Blocker::Thread(tasks.get(&tid).cloned().unwrap_or_else(
                || Task {
                    comm: format!("thread {tid}"),
                    ..Task::default()
                },
            ))),
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
    fn a_thread_that_calls_itself_what_is_no_thread_stays_one() {
        let leaf = |whom| Leaf {
            kind: Kind::Cpu,
            side: Side::Server,
            whom,
            chain: Chain::default(),
        };
        for name in ["idle CPU", "the client", "the server itself", "", "server"] {
            let task = Task {
                comm: name.into(),
                ..Task::default()
            };
            let tasks = HashMap::from([(7, task.clone())]);
            assert_eq!(
                leaf(Whom::Thread(7)).blocker(&tasks),
                Some(Blocker::Thread(task))
            );
        }
        let none = HashMap::new();
        assert_eq!(leaf(Whom::Idle).blocker(&none), Some(Blocker::Idle));
        assert_eq!(leaf(Whom::Nobody).blocker(&none), None);
        assert_eq!(
            leaf(Whom::Thread(9)).blocker(&none),
            Some(Blocker::thread("thread 9"))
        );
    }
}
