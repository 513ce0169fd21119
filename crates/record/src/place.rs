//! What the time of a leaf and of a part is to a judge.

use crate::component::{Blocker, Component, Link, Side, WaitClass};
use crate::layer::Layer;
use crate::paths::Leaf;

/// System calls that make a process or a thread.
const MAKING: [&str; 6] = ["clone", "clone3", "fork", "vfork", "execve", "execveat"];

/// What the time of a leaf is judged as. The end of the chain decides, but for a holder of a lock that works or sleeps:
/// what it does with the lock held is what the lock costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The server's own code.
    User,
    /// The kernel's, on the server's behalf, and interrupts.
    Kernel,
    /// The part of the kernel's in which processes and threads are made.
    Making,
    /// A lock: held by one that works or sleeps, or by one that could not be followed.
    Lock,
    /// Ready, while another process had the CPU.
    CpuOther,
    /// Ready, while the server itself had it.
    CpuServer,
    /// Ready, while the load generator had it.
    CpuClient,
    /// Ready, while a CPU idled.
    CpuIdle,
    /// Ready, and who had the CPU is not known.
    CpuUnknown,
    /// I/O held back before the queue.
    DiskHeld,
    /// I/O in the queue behind another process's.
    DiskBehindOthers,
    /// I/O in the queue behind the server's own, or in the file system.
    DiskOwn,
    /// I/O in the device, which had another process's besides.
    DiskBesideOthers,
    /// I/O in the device.
    DiskDevice,
    /// Another service, which could not be followed: it, or the way to it and back.
    Peer,
    /// Another service, of which it was seen what its process did: the way there is no part of it.
    PeerProcess,
    /// Between the ends of a connection.
    OnTheWay,
    /// A timer.
    Sleeping,
    /// Memory, and I/O that memory waits for.
    Memory,
    /// The load generator.
    Client,
    /// Anything else: a child, a pipe.
    Other,
    /// What could not be followed.
    NotFollowed,
}

impl Place {
    /// What a leaf is judged as.
    pub fn of(leaf: &Leaf) -> Place {
        let on_cpu = matches!(
            leaf.class,
            WaitClass::UserCode | WaitClass::SystemCall(_) | WaitClass::Interrupt
        );
        let others = leaf
            .blocker
            .as_ref()
            .is_some_and(|blocker| *blocker != Blocker::Server);
        match (&leaf.class, leaf.side) {
            (WaitClass::NotFollowed, _) => Place::NotFollowed,
            (WaitClass::Unknown(..) | WaitClass::TooSmall, side) => {
                match leaf.class.component(side).0 {
                    Layer::Client => Place::Client,
                    _ => Place::Other,
                }
            }
            (class, Side::Client) if class.component(Side::Client).0 == Layer::Client => {
                Place::Client
            }
            (WaitClass::Cpu, _) => Place::of_cpu(leaf.blocker.as_ref()),
            (
                WaitClass::DiskHeld
                | WaitClass::DiskQueue
                | WaitClass::DiskDevice
                | WaitClass::DiskFileSystem,
                _,
            ) if leaf.has(Link::Memory) => Place::Memory,
            (WaitClass::DiskHeld, _) => Place::DiskHeld,
            (WaitClass::DiskQueue, _) if others => Place::DiskBehindOthers,
            (WaitClass::DiskDevice, _) if others => Place::DiskBesideOthers,
            (WaitClass::DiskDevice, _) => Place::DiskDevice,
            (WaitClass::DiskQueue | WaitClass::DiskFileSystem, _) => Place::DiskOwn,
            (WaitClass::UserCode | WaitClass::Timer | WaitClass::Lock, Side::Other)
                if leaf.has(Link::Peer) =>
            {
                Place::PeerProcess
            }
            (WaitClass::Lock, _) => Place::Lock,
            (WaitClass::Timer, Side::Other) if leaf.has(Link::Lock) => Place::Lock,
            (WaitClass::Timer, Side::Other) => Place::Sleeping,
            (WaitClass::UserCode, Side::Other) => Place::Other,
            (WaitClass::Timer, _) if leaf.has(Link::Lock) => Place::Lock,
            _ if on_cpu && leaf.has(Link::Lock) => Place::Lock,
            // Whom another thread of the service ends the wait of, that slept meanwhile, waits for what that one has:
            // PostgreSQL's processes wait for rows and tables by a latch, an event to the kernel.
            (WaitClass::Timer, _) if leaf.has(Link::Pipe) => Place::Lock,
            (WaitClass::Timer, _) => Place::Sleeping,
            (WaitClass::Peer, _) => Place::Peer,
            (WaitClass::UserCode, _) => Place::User,
            (WaitClass::OnTheWay, _) => Place::OnTheWay,
            (WaitClass::Memory, _) => Place::Memory,
            (WaitClass::SystemCall(call), _) if MAKING.contains(&call.as_str()) => Place::Making,
            (WaitClass::SystemCall(_) | WaitClass::Interrupt, _) => Place::Kernel,
            (WaitClass::Child | WaitClass::Pipe, _) => Place::Other,
        }
    }

    fn of_cpu(blocker: Option<&Blocker>) -> Place {
        match blocker {
            None => Place::CpuUnknown,
            Some(Blocker::Server) => Place::CpuServer,
            Some(Blocker::Client) => Place::CpuClient,
            Some(Blocker::Idle) => Place::CpuIdle,
            Some(Blocker::Thread(_) | Blocker::Peer(_)) => Place::CpuOther,
        }
    }

    /// As [`Place::component`], with who had the CPU: a cause that takes CPUs away takes those that it had, and no
    /// others.
    pub fn fine(leaf: &Leaf) -> (Layer, Component) {
        let (layer, component) = Place::of(leaf).component(leaf);
        let had = Place::of_cpu(leaf.blocker.as_ref());
        let fine = match (&component, had) {
            (Component::Cpu, Place::CpuOther) => Component::CpuOthers,
            (Component::Cpu, Place::CpuServer) => Component::CpuServer,
            (Component::Cpu, Place::CpuClient) => Component::CpuClient,
            (Component::Cpu, Place::CpuIdle) => Component::CpuFree,
            (Component::ClientCpu, Place::CpuOther) => Component::ClientCpuOthers,
            (Component::ClientCpu, Place::CpuServer) => Component::ClientCpuServer,
            (Component::ClientCpu, Place::CpuClient) => Component::ClientCpuClient,
            (Component::ClientCpu, Place::CpuIdle) => Component::ClientCpuFree,
            _ => component,
        };
        (layer, fine)
    }

    /// Layer and component of a budget that a leaf of this place goes to.
    pub fn component(self, leaf: &Leaf) -> (Layer, Component) {
        match self {
            Place::CpuOther
            | Place::CpuServer
            | Place::CpuClient
            | Place::CpuIdle
            | Place::CpuUnknown => (Layer::Scheduler, Component::Cpu),
            Place::Lock => (Layer::Application, Component::Lock),
            Place::DiskHeld
            | Place::DiskBehindOthers
            | Place::DiskOwn
            | Place::DiskBesideOthers
            | Place::DiskDevice => (Layer::Storage, Component::Disk),
            Place::Memory => (Layer::Memory, Component::Memory),
            _ => leaf.component(),
        }
    }
}

/// What a part of a budget is, by its layer and its name: each part is exactly one. Budgets of records from before
/// requests were followed have parts of other names, and places are not known of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The server's own code.
    UserCode,
    /// The kernel on the server's behalf.
    Kernel,
    /// Of it, what page faults take.
    Faults,
    /// Of it, calls that flush to a disk.
    Syncs,
    /// Ready to run, without a CPU, and who had it is not known.
    Scheduler,
    /// Another process had it.
    CpuOthers,
    /// The server itself had it.
    CpuServer,
    /// The load generator had it.
    CpuClient,
    /// A CPU was free.
    CpuFree,
    /// A request that lies unread at a server.
    ServerQueue,
    /// A lock or condition.
    Lock,
    /// A timer.
    Sleeping,
    /// Anything else of the application.
    Application,
    /// Memory.
    Memory,
    /// Disks.
    Storage,
    /// Between the ends of a connection.
    Network,
    /// Another service.
    Peer,
    /// The load generator, ready to run without a CPU, and who had it is not known.
    ClientCpu,
    /// Another process had it.
    ClientCpuOthers,
    /// The server had it.
    ClientCpuServer,
    /// The load generator had it itself.
    ClientCpuClient,
    /// A CPU was free.
    ClientCpuFree,
    /// The load generator.
    Client,
    /// The host under a guest.
    Host,
}

/// System calls that flush to a disk.
const SYNCS: [&str; 6] = [
    "fsync",
    "fdatasync",
    "msync",
    "sync",
    "syncfs",
    "sync_file_range",
];

impl Kind {
    /// What a part of a budget is.
    pub fn of(layer: Layer, component: &Component) -> Kind {
        match component {
            Component::CpuOthers => Kind::CpuOthers,
            Component::CpuServer => Kind::CpuServer,
            Component::CpuClient => Kind::CpuClient,
            Component::CpuFree => Kind::CpuFree,
            Component::ClientCpuOthers => Kind::ClientCpuOthers,
            Component::ClientCpuServer => Kind::ClientCpuServer,
            Component::ClientCpuClient => Kind::ClientCpuClient,
            Component::ClientCpuFree => Kind::ClientCpuFree,
            Component::ClientCpu => Kind::ClientCpu,
            Component::ClientWork | Component::ClientWait => Kind::Client,
            _ if layer == Layer::Client => Kind::Client,
            Component::Other(name) => Kind::of_older(layer, name),
            Component::Peer
            | Component::OtherCode
            | Component::OtherSleeping
            | Component::OtherLock => Kind::Peer,
            Component::ServerQueue => Kind::ServerQueue,
            Component::Memory => Kind::Memory,
            Component::FaultsAndInterrupts => Kind::Faults,
            Component::SystemCall(call) if SYNCS.contains(&call.as_str()) => Kind::Syncs,
            Component::SystemCall(_)
            | Component::OtherCalls
            | Component::OutsideOfCalls
            | Component::Interrupts => Kind::Kernel,
            Component::UserCode => Kind::UserCode,
            Component::Cpu => Kind::Scheduler,
            Component::Disk
            | Component::DiskHeld
            | Component::DiskQueue
            | Component::DiskDevice
            | Component::DiskFileSystem => Kind::Storage,
            Component::OnTheWay => Kind::Network,
            Component::Lock => Kind::Lock,
            Component::Sleeping => Kind::Sleeping,
            Component::Child | Component::Pipe | Component::NotFollowed | Component::TooSmall => {
                Kind::Application
            }
        }
    }

    /// What a part is that a record of before requests were followed, or another tool, gave a name of its own: by the
    /// words that such names have.
    fn of_older(layer: Layer, name: &str) -> Kind {
        let has = |word: &str| name.contains(word);
        match layer {
            _ if has("idle") => Kind::Client,
            Layer::Memory => Kind::Memory,
            _ if has("fault") => Kind::Faults,
            Layer::Kernel if has("sync") => Kind::Syncs,
            Layer::Kernel => Kind::Kernel,
            _ if has("user") => Kind::UserCode,
            _ if has("kernel") => Kind::Kernel,
            Layer::Cpu => Kind::UserCode,
            Layer::Scheduler => Kind::Scheduler,
            Layer::Storage => Kind::Storage,
            Layer::Network => Kind::Network,
            Layer::Host => Kind::Host,
            Layer::Application if has("lock") || has("futex") => Kind::Lock,
            Layer::Application => Kind::Application,
            Layer::Client => Kind::Client,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::{Share, older};

    fn leaf(layer: Layer, component: &str, whom: &str, chain: &[&str]) -> Leaf {
        let share = Share {
            seconds: 1e-3,
            share: 0.1,
            low: 0.08,
            high: 0.12,
        };
        let (class, side, blocker, chain) = older::read(layer, component, whom, chain);
        Leaf {
            class,
            side,
            blocker,
            chain,
            all: share,
            middle: share,
            slow: share,
        }
    }

    #[test]
    fn a_chains_end_decides_but_for_a_lock_whose_holder_is_busy() {
        use Layer::{Application, Client, Kernel, Memory, Network, Scheduler, Storage};
        for (layer, component, whom, chain, place, part) in [
            (
                Application,
                "server user code",
                "",
                &[][..],
                Place::User,
                "server user code",
            ),
            (
                Application,
                "server user code",
                "db",
                &["queue", "lock"],
                Place::Lock,
                "waiting for a lock",
            ),
            (
                Kernel,
                "kernel: write",
                "",
                &["lock"],
                Place::Lock,
                "waiting for a lock",
            ),
            (
                Application,
                "sleeping",
                "",
                &["lock"],
                Place::Lock,
                "waiting for a lock",
            ),
            (
                Application,
                "sleeping",
                "",
                &["pipe"],
                Place::Lock,
                "waiting for a lock",
            ),
            (
                Application,
                "sleeping",
                "",
                &["queue"],
                Place::Sleeping,
                "sleeping",
            ),
            (
                Application,
                "sleeping",
                "",
                &[],
                Place::Sleeping,
                "sleeping",
            ),
            (
                Application,
                "waiting for a lock",
                "",
                &[],
                Place::Lock,
                "waiting for a lock",
            ),
            (
                Storage,
                "disk: in the device",
                "",
                &["lock", "disk"],
                Place::DiskDevice,
                "waiting for the disk",
            ),
            (
                Storage,
                "disk: in the device",
                "backup",
                &["disk"],
                Place::DiskBesideOthers,
                "waiting for the disk",
            ),
            (
                Storage,
                "disk: in the queue",
                "backup",
                &["disk"],
                Place::DiskBehindOthers,
                "waiting for the disk",
            ),
            (
                Storage,
                "disk: in the queue",
                "the server itself",
                &["disk"],
                Place::DiskOwn,
                "waiting for the disk",
            ),
            (
                Storage,
                "disk: file system",
                "",
                &[],
                Place::DiskOwn,
                "waiting for the disk",
            ),
            (
                Storage,
                "disk: held back before the queue",
                "",
                &[],
                Place::DiskHeld,
                "waiting for the disk",
            ),
            (
                Storage,
                "disk: in the device",
                "",
                &["memory"],
                Place::Memory,
                "waiting for memory",
            ),
            (
                Memory,
                "waiting for memory",
                "",
                &[],
                Place::Memory,
                "waiting for memory",
            ),
            (
                Scheduler,
                "waiting for a CPU",
                "stress",
                &["lock"],
                Place::CpuOther,
                "waiting for a CPU",
            ),
            (
                Scheduler,
                "waiting for a CPU",
                "idle CPU",
                &[],
                Place::CpuIdle,
                "waiting for a CPU",
            ),
            (
                Scheduler,
                "waiting for a CPU",
                "the server itself",
                &[],
                Place::CpuServer,
                "waiting for a CPU",
            ),
            (
                Scheduler,
                "waiting for a CPU",
                "the client",
                &[],
                Place::CpuClient,
                "waiting for a CPU",
            ),
            (
                Scheduler,
                "waiting for a CPU",
                "",
                &[],
                Place::CpuUnknown,
                "waiting for a CPU",
            ),
            (
                Client,
                "client waiting for a CPU",
                "stress",
                &[],
                Place::Client,
                "client waiting for a CPU",
            ),
            (
                Network,
                "waiting for a peer",
                "billing",
                &[],
                Place::Peer,
                "waiting for a peer",
            ),
            (
                Application,
                "code of another process",
                "",
                &["peer billing"],
                Place::PeerProcess,
                "code of another process",
            ),
            (
                Application,
                "sleeping of another process",
                "",
                &["peer"],
                Place::PeerProcess,
                "sleeping of another process",
            ),
            (
                Application,
                "lock wait of another process",
                "",
                &["lock", "peer"],
                Place::PeerProcess,
                "lock wait of another process",
            ),
            (
                Application,
                "sleeping of another process",
                "",
                &["lock"],
                Place::Lock,
                "waiting for a lock",
            ),
            (
                Network,
                "on the way between server and client",
                "",
                &[],
                Place::OnTheWay,
                "on the way between server and client",
            ),
            (
                Kernel,
                "kernel: clone3",
                "",
                &[],
                Place::Making,
                "kernel: clone3",
            ),
            (Kernel, "interrupts", "", &[], Place::Kernel, "interrupts"),
            (
                Application,
                "waiting for a pipe",
                "",
                &[],
                Place::Other,
                "waiting for a pipe",
            ),
        ] {
            let leaf = leaf(layer, component, whom, chain);
            let found = Place::of(&leaf);
            assert_eq!(
                (found, found.component(&leaf).1),
                (place, Component::of_name(part)),
                "{component} of {whom} by {chain:?}"
            );
        }
    }
}
