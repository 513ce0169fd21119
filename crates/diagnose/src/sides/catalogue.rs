//! The catalogue of causes, each with the parts of a budget that it moves and with what tells it from its neighbours.
//!
//! # Vocabulary
//!
//! Totals that the discriminators look for among a step's observations: the observers' names, over the whole step. Any may be
//! absent, and then its rule says so. Those of `cpu`, `others`, `disk`, `memory`, `network`, `pressure` and `limits` speak of the
//! machine and the server's control group, `server.*` and `client.*` of the threads on either side.
//!
//! Where requests were followed on both sides, the places where they spent their time tell the causes of waiting for a CPU, the disk, a
//! lock, a peer and a timer apart, and the totals named here do so only in records without. What "server user code" has more and ticks
//! count as the kernel's is a part of the kernel's ([`crate::entering`]).
//!
//! | rule | totals |
//! | --- | --- |
//! | scheduler | `throttle.seconds` `cgroup.cpu_quota.cpus` `cgroup.cpu_weight` `server.cpus_allowed` `server.nice` `other.cpu.seconds` `other.cpu.NAME.seconds` `cpu.idle.seconds` `elapsed.seconds` `cpu.steal.seconds` |
//! | CPU and kernel | `server.instructions.user` `server.cycles.user` `server.tlb_misses` `server.call.NAME.count` `server.call.NAME.cpu_seconds` `server.cpu.seconds` `server.thread_user.seconds` `server.thread_kernel.seconds` `memory.thp_faults` `server.seccomp.mode` `server.seccomp.filters` `server.store_bypass.mitigated` `server.indirect_branch.mitigated` |
//! | memory | `memory.swap_in.pages` `server.faults.major` `server.faults.minor` `memory.direct_reclaim.pages` `psi.memory.some.seconds` `thp.always` `server.thp_disabled` |
//! | storage | `disk.flushes` `disk.flush.seconds` `disk.busy.seconds` `other.disk.bytes` `cgroup.disk_limits` `server.call.fsync.count` |
//! | network | `net.drops` `tcp.retransmits` `tcp.listen_overflows` `tcp.delayed_acks` `queue.network.mean` |
//! | application | `server.blocked.lock.seconds` |
//! | client | `client.cpu_share` (0 to 1, of the CPUs that it may use) `client.saturated` (1 when it found itself to be the limit) |

use fingerpost_record::Layer;

use super::clues::Clues;
use super::{signs, signs_io};

/// What a discriminator found.
#[derive(Clone, Debug, PartialEq)]
pub enum Sign {
    /// What tells this cause from its neighbours is there.
    Fits(String),
    /// What would have to be there is not.
    Against(String),
    /// Nothing was recorded that would tell.
    Unknown,
}

/// A cause that a workload can suffer from.
pub struct Candidate {
    /// The name.
    pub cause: &'static str,
    /// The layer.
    pub layer: Layer,
    /// What a headline calls it.
    pub words: &'static str,
    /// The parts of a budget that it moves.
    pub moves: fn(Layer, &str) -> bool,
    /// What tells it from its neighbours.
    pub sign: fn(&Clues) -> Sign,
}

/// Causes that also take what no part of a budget has: a connection that is not admitted waits where no observer looks.
pub const TAKES_THE_REST: &[&str] = &["network.accept_queue"];

/// The server's own code.
pub(super) fn user(layer: Layer, part: &str) -> bool {
    layer != Layer::Client && (part.contains("user") || (layer == Layer::Cpu && !part.contains("kernel")))
}

/// The kernel on the server's behalf.
pub(super) fn kernel(layer: Layer, part: &str) -> bool {
    layer == Layer::Kernel || (layer != Layer::Client && part.contains("kernel"))
}

/// All that a CPU does.
pub(super) fn on_cpu(layer: Layer, part: &str) -> bool {
    user(layer, part) || kernel(layer, part) || layer == Layer::Host
}

/// A request that lies unread at a server without a CPU waits for that CPU, and so does a client that shares the CPUs.
fn scheduler(layer: Layer, part: &str) -> bool {
    layer == Layer::Scheduler || part == "request waits for the server" || part == "client waiting for a CPU"
}

/// Waiting for pages, and the kernel's work to find, read and free them.
fn paging(layer: Layer, part: &str) -> bool {
    layer == Layer::Memory || part.contains("fault")
}

fn faulting(layer: Layer, part: &str) -> bool {
    layer == Layer::Memory || user(layer, part) || part.contains("fault")
}

/// Waiting for the disk, and the kernel's work on the way to it.
fn storage(layer: Layer, part: &str) -> bool {
    layer == Layer::Storage || (layer == Layer::Kernel && part.contains("sync"))
}

fn network(layer: Layer, _: &str) -> bool {
    layer == Layer::Network
}

/// Another service, and its code where it is on this machine.
fn peer(_: Layer, part: &str) -> bool {
    part == "waiting for a peer" || part == "code of another process"
}

fn sleeping(layer: Layer, part: &str) -> bool {
    layer == Layer::Application && part == "sleeping"
}

fn lock(layer: Layer, part: &str) -> bool {
    layer == Layer::Application && (part.contains("lock") || part.contains("futex"))
}

fn client(layer: Layer, part: &str) -> bool {
    layer == Layer::Client || part.contains("idle")
}

/// Every cause of the catalogue. Where several of a layer fit, the first is the sharper one.
pub const CATALOGUE: &[Candidate] = &[
    Candidate { cause: "cpu.quota", layer: Layer::Scheduler, words: "a CPU quota", moves: scheduler, sign: signs::quota },
    Candidate { cause: "cpu.affinity", layer: Layer::Scheduler, words: "too few CPUs allowed", moves: scheduler, sign: signs::affinity },
    Candidate { cause: "cpu.priority", layer: Layer::Scheduler, words: "a low priority", moves: scheduler, sign: signs::priority },
    Candidate {
        cause: "cpu.contention",
        layer: Layer::Scheduler,
        words: "other processes on the CPUs",
        moves: scheduler,
        sign: signs::contention,
    },
    Candidate { cause: "memory.limit", layer: Layer::Memory, words: "too little memory", moves: paging, sign: signs::memory_limit },
    Candidate { cause: "memory.page_size", layer: Layer::Memory, words: "small pages", moves: faulting, sign: signs::page_size },
    Candidate { cause: "host.steal", layer: Layer::Host, words: "the host under this guest", moves: on_cpu, sign: signs::steal },
    Candidate { cause: "cpu.mitigation", layer: Layer::Cpu, words: "a CPU mitigation", moves: on_cpu, sign: signs::mitigation },
    Candidate { cause: "cpu.speed", layer: Layer::Cpu, words: "a slower CPU", moves: on_cpu, sign: signs::speed },
    Candidate { cause: "syscall.entry", layer: Layer::Kernel, words: "the cost of entering the kernel", moves: kernel, sign: signs::entry },
    Candidate {
        cause: "storage.durability",
        layer: Layer::Application,
        words: "more flushes per transaction",
        moves: storage,
        sign: signs_io::durability,
    },
    Candidate { cause: "storage.throttle", layer: Layer::Storage, words: "a throttled disk", moves: storage, sign: signs_io::throttle },
    Candidate {
        cause: "storage.contention",
        layer: Layer::Storage,
        words: "other processes on the disk",
        moves: storage,
        sign: signs_io::disk_contention,
    },
    Candidate { cause: "storage.latency", layer: Layer::Storage, words: "a slower disk", moves: storage, sign: signs_io::disk_latency },
    Candidate {
        cause: "network.accept_queue",
        layer: Layer::Network,
        words: "a full listen queue",
        moves: network,
        sign: signs_io::accept_queue,
    },
    Candidate { cause: "network.delay", layer: Layer::Network, words: "delayed acknowledgements", moves: network, sign: signs_io::delay },
    Candidate { cause: "peer.slow", layer: Layer::Network, words: "another service", moves: peer, sign: signs_io::peer },
    Candidate {
        cause: "network.shaping",
        layer: Layer::Network,
        words: "a shaped or full network",
        moves: network,
        sign: signs_io::shaping,
    },
    Candidate { cause: "app.lock", layer: Layer::Application, words: "a lock in the application", moves: lock, sign: signs_io::app_lock },
    Candidate { cause: "app.wait", layer: Layer::Application, words: "sleeps and timers", moves: sleeping, sign: signs::wait },
    Candidate { cause: "app.work", layer: Layer::Application, words: "more work in the application", moves: user, sign: signs::app_work },
    Candidate {
        cause: "client.saturated",
        layer: Layer::Client,
        words: "the load generator",
        moves: client,
        sign: signs_io::client_saturated,
    },
];
