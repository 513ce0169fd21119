//! The discriminators: for each cause of the registry that two sides are judged by, what tells it from its neighbours.
//!
//! # Vocabulary
//!
//! Readings that the discriminators look for among a step's observations: the observers' names, over the whole step. Any may be
//! absent, and then its rule says so. Those of `cpu`, `others`, `disk`, `memory`, `network`, `pressure` and `limits` speak of the
//! machine and the server's control group, `server.*` and `client.*` of the threads on either side.
//!
//! Where requests were followed on both sides, the places where they spent their time tell the causes of waiting for a CPU, the disk, a
//! lock, a peer and a timer apart, and the readings named here do so only in records without. What "server user code" has more and ticks
//! count as the kernel's is a part of the kernel's ([`crate::entering`]).
//!
//! | rule | readings |
//! | --- | --- |
//! | scheduler | `throttle.seconds` `cgroup.cpu_weight` `cgroup.cpu_weight.version` `server.cpus_allowed` `server.nice` `server.user.seconds` `server.kernel.seconds` `other.cpu.seconds` `other.cpu.NAME.seconds` `cpu.idle.seconds` `elapsed.seconds` `cpu.steal.seconds` |
//! | CPU and kernel | `server.call.NAME.count` `server.call.NAME.cpu_seconds` `server.cpu.seconds` `server.thread_user.seconds` `server.thread_kernel.seconds` `memory.thp_faults` `server.seccomp.mode` `server.seccomp.filters` `server.store_bypass.mitigated` `server.indirect_branch.mitigated` `server.traced` `audit.rules` `uprobes.count` |
//! | memory | `memory.swap_in.pages` `server.faults.major` `server.faults.minor` `memory.direct_reclaim.pages` `psi.memory.some.seconds` `thp.always` `server.thp_disabled` |
//! | storage | `disk.flushes` `disk.flush.seconds` `disk.busy.seconds` `other.disk.bytes` `cgroup.disk_limits` `server.call.fsync.count` |
//! | network | `net.drops` `tcp.retransmits` `tcp.listen_overflows` `tcp.delayed_acks` `queue.network.mean` |
//! | application | `server.blocked.lock.seconds` `step.query_cache` |
//! | client | `client.cpu.seconds` `step.client.cpus` `step.client.saturated` |

use fingerpost_record::Layer;
use fingerpost_record::cause::{Cause, cause};
use fingerpost_record::place::Kind;

use super::clues::Clues;
use super::{signs, signs_io};

/// What a discriminator found.
#[derive(Clone, Debug, PartialEq)]
pub enum Sign {
    /// What tells this cause from its neighbours is there.
    Fits(String),
    /// What would have to be there is not.
    Against(String),
    /// Nothing was observed on both sides that would tell.
    Unknown,
}

/// How two sides are judged by a cause.
pub struct Candidate {
    /// Its name in the registry.
    pub cause: &'static str,
    /// What tells it from its neighbours.
    pub sign: fn(&Clues) -> Sign,
}

impl Candidate {
    /// The registry's entry.
    ///
    /// # Panics
    /// When there is none; a test looks at every candidate.
    pub fn entry(&self) -> &'static Cause {
        cause(self.cause).expect("every candidate is in the registry")
    }

    /// Whether it moves a part of a budget.
    pub fn moves(&self, layer: Layer, part: &str) -> bool {
        self.entry().moves(layer, part)
    }
}

/// Causes that also take what no part of a budget has: a connection that is not admitted waits where no observer looks.
pub const TAKES_THE_REST: &[&str] = &["network.accept_queue"];

/// The server's own code.
pub(super) fn user(layer: Layer, part: &str) -> bool {
    Kind::of(layer, part) == Kind::UserCode
}

/// The kernel on the server's behalf.
pub(super) fn kernel(layer: Layer, part: &str) -> bool {
    matches!(Kind::of(layer, part), Kind::Kernel | Kind::Faults | Kind::Syncs)
}

/// All that a CPU does.
pub(super) fn on_cpu(layer: Layer, part: &str) -> bool {
    user(layer, part) || kernel(layer, part) || Kind::of(layer, part) == Kind::Host
}

/// Every cause that two sides are judged by. Where several of a layer fit, the first is the sharper one.
pub const CATALOGUE: &[Candidate] = &[
    Candidate { cause: "cpu.quota", sign: signs::quota },
    Candidate { cause: "cpu.affinity", sign: signs::affinity },
    Candidate { cause: "cpu.priority", sign: signs::priority },
    Candidate { cause: "cpu.contention", sign: signs::contention },
    Candidate { cause: "memory.limit", sign: signs::memory_limit },
    Candidate { cause: "memory.page_size", sign: signs::page_size },
    Candidate { cause: "host.steal", sign: signs::steal },
    Candidate { cause: "cpu.mitigation", sign: signs::mitigation },
    Candidate { cause: "kernel.trace", sign: signs::trace },
    Candidate { cause: "cpu.speed", sign: signs::speed },
    Candidate { cause: "app.calls", sign: signs::calls },
    Candidate { cause: "syscall.entry", sign: signs::entry },
    Candidate { cause: "storage.durability", sign: signs_io::durability },
    Candidate { cause: "storage.throttle", sign: signs_io::throttle },
    Candidate { cause: "storage.contention", sign: signs_io::disk_contention },
    Candidate { cause: "storage.latency", sign: signs_io::disk_latency },
    Candidate { cause: "network.accept_queue", sign: signs_io::accept_queue },
    Candidate { cause: "network.delay", sign: signs_io::delay },
    Candidate { cause: "peer.slow", sign: signs_io::peer },
    Candidate { cause: "network.shaping", sign: signs_io::shaping },
    Candidate { cause: "app.lock", sign: signs_io::app_lock },
    Candidate { cause: "app.wait", sign: signs::wait },
    Candidate { cause: "app.work", sign: signs::app_work },
    Candidate { cause: "cpu.saturated", sign: signs::saturated },
    Candidate { cause: "client.saturated", sign: signs_io::client_saturated },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_is_in_the_registry_and_moves_something() {
        for c in CATALOGUE {
            assert!(cause(c.cause).is_some_and(|entry| !entry.moves.is_empty()), "{}", c.cause);
        }
    }
}
