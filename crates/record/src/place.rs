//! What time is called, and what it is to a budget and to a judge: the vocabulary of leaves and parts.

use crate::findings::Layer;
use crate::paths::Leaf;

/// Names of components and of who had something, as the record has them.
#[allow(missing_docs)]
pub mod name {
    pub const USER: &str = "server user code";
    pub const OTHER_CODE: &str = "code of another process";
    pub const OTHER_SLEEPING: &str = "sleeping of another process";
    pub const OTHER_LOCK: &str = "lock wait of another process";
    pub const KERNEL: &str = "kernel: ";
    pub const INTERRUPTS: &str = "interrupts";
    pub const CPU: &str = "waiting for a CPU";
    pub const CPU_OTHERS: &str = "waiting for a CPU that another process had";
    pub const CPU_SERVER: &str = "waiting for a CPU that the server itself had";
    pub const CPU_CLIENT: &str = "waiting for a CPU that the client had";
    pub const CPU_FREE: &str = "waiting for a CPU while one was free";
    pub const CLIENT_CPU: &str = "client waiting for a CPU";
    pub const CLIENT_CPU_OTHERS: &str = "client waiting for a CPU that another process had";
    pub const CLIENT_CPU_SERVER: &str = "client waiting for a CPU that the server had";
    pub const CLIENT_CPU_CLIENT: &str = "client waiting for a CPU that it had itself";
    pub const CLIENT_CPU_FREE: &str = "client waiting for a CPU while one was free";
    pub const LOCK: &str = "waiting for a lock";
    pub const DISK: &str = "waiting for the disk";
    pub const DISK_HELD: &str = "disk: held back before the queue";
    pub const DISK_QUEUE: &str = "disk: in the queue";
    pub const DISK_DEVICE: &str = "disk: in the device";
    pub const PEER: &str = "waiting for a peer";
    pub const ON_THE_WAY: &str = "on the way between server and client";
    pub const SLEEPING: &str = "sleeping";
    pub const MEMORY: &str = "waiting for memory";
    pub const NOT_FOLLOWED: &str = "not followed";
    pub const SERVER_ITSELF: &str = "the server itself";
    pub const THE_CLIENT: &str = "the client";
    pub const IDLE_CPU: &str = "idle CPU";
}

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
    /// Another service.
    Peer,
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
        let (component, whom) = (leaf.component.as_str(), leaf.whom.as_str());
        let has = |link: &str| {
            leaf.chain
                .iter()
                .any(|l| l == link || l.starts_with(link) && l[link.len()..].starts_with(' '))
        };
        let works = component == name::USER
            || component == name::INTERRUPTS
            || component.starts_with(name::KERNEL);
        match component {
            name::NOT_FOLLOWED => Place::NotFollowed,
            _ if leaf.layer == Layer::Client => Place::Client,
            name::CPU => Place::of_cpu(whom),
            c if c.starts_with("disk: ") && has("memory") => Place::Memory,
            name::DISK_HELD => Place::DiskHeld,
            name::DISK_QUEUE if !matches!(whom, "" | name::SERVER_ITSELF) => {
                Place::DiskBehindOthers
            }
            name::DISK_DEVICE if !matches!(whom, "" | name::SERVER_ITSELF) => {
                Place::DiskBesideOthers
            }
            name::DISK_DEVICE => Place::DiskDevice,
            c if c.starts_with("disk: ") => Place::DiskOwn,
            name::LOCK => Place::Lock,
            c if (works || c == name::SLEEPING) && has("lock") => Place::Lock,
            // Whom another thread of the service ends the wait of, that slept meanwhile, waits for what that one has:
            // PostgreSQL's processes wait for rows and tables by a latch, an event to the kernel.
            name::SLEEPING if has("pipe") => Place::Lock,
            name::OTHER_CODE | name::OTHER_SLEEPING | name::OTHER_LOCK if has("peer") => {
                Place::Peer
            }
            name::OTHER_LOCK => Place::Lock,
            name::OTHER_SLEEPING if has("lock") => Place::Lock,
            name::OTHER_SLEEPING => Place::Sleeping,
            name::PEER => Place::Peer,
            name::USER => Place::User,
            name::ON_THE_WAY => Place::OnTheWay,
            name::SLEEPING => Place::Sleeping,
            name::MEMORY => Place::Memory,
            c if c
                .strip_prefix(name::KERNEL)
                .is_some_and(|call| MAKING.contains(&call)) =>
            {
                Place::Making
            }
            _ if works => Place::Kernel,
            _ => Place::Other,
        }
    }

    fn of_cpu(whom: &str) -> Place {
        match whom {
            "" => Place::CpuUnknown,
            name::SERVER_ITSELF => Place::CpuServer,
            name::THE_CLIENT => Place::CpuClient,
            name::IDLE_CPU => Place::CpuIdle,
            _ => Place::CpuOther,
        }
    }

    /// As [`Place::component`], with who had the CPU: a cause that takes CPUs away takes those that it had, and no
    /// others.
    pub fn fine(leaf: &Leaf) -> (Layer, &str) {
        let (layer, component) = Place::of(leaf).component(leaf);
        let [others, server, client, free] = match component {
            name::CPU => [
                name::CPU_OTHERS,
                name::CPU_SERVER,
                name::CPU_CLIENT,
                name::CPU_FREE,
            ],
            name::CLIENT_CPU => [
                name::CLIENT_CPU_OTHERS,
                name::CLIENT_CPU_SERVER,
                name::CLIENT_CPU_CLIENT,
                name::CLIENT_CPU_FREE,
            ],
            _ => return (layer, component),
        };
        let fine = match Place::of_cpu(&leaf.whom) {
            Place::CpuOther => others,
            Place::CpuServer => server,
            Place::CpuClient => client,
            Place::CpuIdle => free,
            _ => component,
        };
        (layer, fine)
    }

    /// Layer and component of a budget that a leaf of this place goes to.
    pub fn component(self, leaf: &Leaf) -> (Layer, &str) {
        match self {
            Place::CpuOther
            | Place::CpuServer
            | Place::CpuClient
            | Place::CpuIdle
            | Place::CpuUnknown => (Layer::Scheduler, name::CPU),
            Place::Lock => (Layer::Application, name::LOCK),
            Place::DiskHeld
            | Place::DiskBehindOthers
            | Place::DiskOwn
            | Place::DiskBesideOthers
            | Place::DiskDevice => (Layer::Storage, name::DISK),
            Place::Memory => (Layer::Memory, name::MEMORY),
            _ => (leaf.layer, &leaf.component),
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

impl Kind {
    /// What a part of a budget is.
    pub fn of(layer: Layer, component: &str) -> Kind {
        let has = |word: &str| component.contains(word);
        match (layer, component) {
            (_, name::CPU_OTHERS) => Kind::CpuOthers,
            (_, name::CPU_SERVER) => Kind::CpuServer,
            (_, name::CPU_CLIENT) => Kind::CpuClient,
            (_, name::CPU_FREE) => Kind::CpuFree,
            (_, name::CLIENT_CPU_OTHERS) => Kind::ClientCpuOthers,
            (_, name::CLIENT_CPU_SERVER) => Kind::ClientCpuServer,
            (_, name::CLIENT_CPU_CLIENT) => Kind::ClientCpuClient,
            (_, name::CLIENT_CPU_FREE) => Kind::ClientCpuFree,
            (Layer::Client, name::CLIENT_CPU) => Kind::ClientCpu,
            (Layer::Client, _) => Kind::Client,
            _ if has("idle") => Kind::Client,
            (_, name::PEER | name::OTHER_CODE | name::OTHER_SLEEPING | name::OTHER_LOCK) => {
                Kind::Peer
            }
            (_, "request waits for the server") => Kind::ServerQueue,
            (Layer::Memory, _) => Kind::Memory,
            _ if has("fault") => Kind::Faults,
            (Layer::Kernel, _) if has("sync") => Kind::Syncs,
            (Layer::Kernel, _) => Kind::Kernel,
            _ if has("user") => Kind::UserCode,
            _ if has("kernel") => Kind::Kernel,
            (Layer::Cpu, _) => Kind::UserCode,
            (Layer::Scheduler, _) => Kind::Scheduler,
            (Layer::Storage, _) => Kind::Storage,
            (Layer::Network, _) => Kind::Network,
            (Layer::Host, _) => Kind::Host,
            (Layer::Application, _) if has("lock") || has("futex") => Kind::Lock,
            (Layer::Application, name::SLEEPING) => Kind::Sleeping,
            (Layer::Application, _) => Kind::Application,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Share;

    fn leaf(layer: Layer, component: &str, whom: &str, chain: &[&str]) -> Leaf {
        let share = Share {
            seconds: 1e-3,
            share: 0.1,
            low: 0.08,
            high: 0.12,
        };
        let chain = chain.iter().map(|&l| l.to_owned()).collect();
        Leaf {
            layer,
            component: component.into(),
            whom: whom.into(),
            chain,
            all: share,
            middle: share,
            slow: share,
        }
    }

    #[test]
    fn the_end_of_the_chain_decides_but_for_a_lock_whose_holder_works_or_sleeps() {
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
                Place::Peer,
                "code of another process",
            ),
            (
                Application,
                "sleeping of another process",
                "",
                &["peer"],
                Place::Peer,
                "sleeping of another process",
            ),
            (
                Application,
                "lock wait of another process",
                "",
                &["lock", "peer"],
                Place::Peer,
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
                (place, part),
                "{component} of {whom} by {chain:?}"
            );
        }
    }
}
