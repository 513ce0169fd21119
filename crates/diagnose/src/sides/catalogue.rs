//! The discriminators: for each cause of the registry that two sides are judged by, what tells it from its neighbours.
//!
//! # Vocabulary
//!
//! Readings that the discriminators look for among a step's observations: the observers' names, over the whole step.
//! Any may be absent, and then its rule says so. Those of `cpu`, `others`, `disk`, `memory`, `network`, `pressure` and
//! `limits` speak of the machine and the server's control group, `server.*` and `client.*` of the threads on either
//! side.
//!
//! Where requests were followed on both sides, the places where they spent their time tell the causes of waiting for a
//! CPU, the disk, a lock, a peer and a timer apart, and the readings named here do so only in records without. What
//! "server user code" has more and ticks count as the kernel's is a part of the kernel's ([`crate::entering`]).
//!
//! The readings of each rule:
//!
//! - scheduler: `throttle.seconds` `cgroup.cpu_weight` `cgroup.cpu_weight.version` `server.cpus_allowed`
//!   `server.nice` `server.user.seconds` `server.kernel.seconds` `other.cpu.seconds` `other.cpu.NAME.seconds`
//!   `cpu.idle.seconds` `elapsed.seconds` `cpu.steal.seconds`
//! - CPU and kernel: `server.call.NAME.count` `server.call.NAME.cpu_seconds` `server.cpu.seconds`
//!   `server.thread_user.seconds` `server.thread_kernel.seconds` `memory.thp_faults` `server.seccomp.mode`
//!   `server.seccomp.filters` `server.store_bypass.mitigated` `server.indirect_branch.mitigated` `server.traced`
//!   `audit.rules` `tracing.events` `tracing.tracers` `tracing.programs`
//! - memory: `memory.swap_in.pages` `server.faults.major` `server.faults.minor` `memory.direct_reclaim.pages`
//!   `psi.memory.some.seconds` `thp.always` `server.thp_disabled`
//! - storage: `disk.flushes` `disk.flush.seconds` `disk.busy.seconds` `other.disk.bytes` `cgroup.disk_limits`
//!   `server.call.fsync.count`
//! - network: `net.drops` `net.shapers` `tcp.retransmits` `tcp.listen_overflows` `tcp.delayed_acks`
//!   `queue.network.mean` `connecting.mean` `accept.queue.max` `accept.backlog`
//! - application: `server.blocked.lock.seconds` `step.query_cache`
//! - client: `client.cpu.seconds` `client.throttle.seconds` `step.client.cpus` `step.client.saturated`

use fingerpost_record::cause::id;
use fingerpost_record::cause::{Cause, cause};
use fingerpost_record::reading::name;
use fingerpost_record::{Component, Layer};

use super::clues::Clues;
use super::sign::Sign;
use super::{contention, fitting, flushes, given, let_go, signs, signs_io, work};

/// How two sides are judged by a cause.
pub struct Candidate {
    /// Its name in the registry.
    pub cause: &'static str,
    /// What tells it from its neighbours.
    pub sign: fn(&Clues) -> Sign,
    /// What it takes here of what no part of a budget has.
    pub rest: fn(&Clues) -> Rest,
    /// What it moves here besides what it always does.
    pub also: fn(&Clues, Layer, &Component) -> bool,
}

impl Candidate {
    /// The registry's entry.
    ///
    /// # Panics
    /// When there is none; a test looks at every candidate.
    pub fn entry(&self) -> &'static Cause {
        cause(self.cause).expect("every candidate is in the registry")
    }

    /// Whether it moves a part of a budget here.
    pub fn moves(&self, clues: &Clues, layer: Layer, part: &Component) -> bool {
        self.entry().moves(layer, part) || (self.also)(clues, layer, part)
    }
}

/// Whether a cause also takes what no part of a budget has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It does not.
    No,
    /// What it holds up may outlast a window of events, and so may other things: it is a likely cause of the rest, not
    /// confirmed.
    Perhaps,
    /// It does: a server that a quota stops is stopped for longer than a window is open, a connection that is not
    /// admitted waits where no observer looks, 40 ms for an acknowledgement outlast a window, 200 ms until a segment is
    /// sent again as well, and what a load generator does between requests is in none of them.
    Surely,
}

/// One that makes nothing but parts of a budget.
const fn of_parts(cause: &'static str, sign: fn(&Clues) -> Sign) -> Candidate {
    Candidate {
        cause,
        sign,
        rest: |_| Rest::No,
        also: |_, _, _| false,
    }
}

/// Surely where it holds, else nothing.
fn surely(holds: bool) -> Rest {
    if holds { Rest::Surely } else { Rest::No }
}

/// A throttle that may hold requests up for longer than windows are open has to be set.
fn rest_of_throttle(clues: &Clues) -> Rest {
    if fitting::set_now(clues, name::CGROUP_DISK_LIMITS) {
        Rest::Perhaps
    } else {
        Rest::No
    }
}

/// A server or a client that a quota or a limit on its disk stops acknowledges late as well, and is not waited for
/// because of that.
fn rest_of_delay(clues: &Clues) -> Rest {
    let stopped = given::quota(clues).speaks() || fitting::set_now(clues, name::CGROUP_DISK_LIMITS);
    surely(!stopped && signs_io::client_stopped(clues).is_none())
}

/// Every cause that two sides are judged by. Where several of a layer fit, the first is the sharper one.
pub const CATALOGUE: &[Candidate] = &[
    Candidate {
        rest: |c| surely(given::stops_outlast_windows(c)),
        ..of_parts(id::CPU_QUOTA, given::quota)
    },
    of_parts(id::CPU_AFFINITY, given::affinity),
    of_parts(id::CPU_PRIORITY, given::priority),
    Candidate {
        also: contention::moves,
        ..of_parts(id::CPU_CONTENTION, signs::contention)
    },
    of_parts(id::MEMORY_LIMIT, signs::memory_limit),
    of_parts(id::MEMORY_PAGE_SIZE, signs::page_size),
    of_parts(id::HOST_STEAL, signs::steal),
    of_parts(id::CPU_MITIGATION, signs::mitigation),
    of_parts(id::KERNEL_TRACE, signs::trace),
    of_parts(id::CPU_SPEED, signs::speed),
    // A transaction of more round trips has more of everything.
    Candidate {
        also: |c, _, _| work::round_trips(c).is_some(),
        ..of_parts(id::APP_CALLS, signs::calls)
    },
    of_parts(id::SYSCALL_ENTRY, signs::entry),
    Candidate {
        also: |c, layer, part| {
            flushes::with_journals(c, layer, part) || let_go::with_flushes(c, layer, part)
        },
        ..of_parts(id::STORAGE_DURABILITY, flushes::durability)
    },
    Candidate {
        rest: rest_of_throttle,
        ..of_parts(id::STORAGE_THROTTLE, signs_io::throttle)
    },
    of_parts(id::STORAGE_CONTENTION, signs_io::disk_contention),
    of_parts(id::STORAGE_LATENCY, signs_io::disk_latency),
    Candidate {
        rest: |_| Rest::Surely,
        ..of_parts(id::NETWORK_ACCEPT_QUEUE, signs_io::accept_queue)
    },
    Candidate {
        rest: rest_of_delay,
        ..of_parts(id::NETWORK_DELAY, signs_io::delay)
    },
    of_parts(id::PEER_SLOW, signs_io::peer),
    Candidate {
        also: |c, layer, part| {
            signs_io::of_sending(layer, part) && signs_io::shaped(c).is_some()
                || let_go::with_a_shaper(c, layer, part)
        },
        rest: |c| surely(signs_io::outlast_windows(c)),
        ..of_parts(id::NETWORK_SHAPING, signs_io::shaping)
    },
    Candidate {
        also: let_go::with_a_lock,
        ..of_parts(id::APP_LOCK, let_go::app_lock)
    },
    of_parts(id::APP_WAIT, signs::wait),
    of_parts(id::APP_WORK, signs::app_work),
    of_parts(id::CPU_SATURATED, signs::saturated),
    Candidate {
        rest: |_| Rest::Surely,
        ..of_parts(id::CLIENT_SATURATED, signs_io::client_saturated)
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_is_in_the_registry_and_moves_something() {
        for c in CATALOGUE {
            assert!(
                cause(c.cause).is_some_and(|entry| !entry.moves.is_empty()),
                "{}",
                c.cause
            );
        }
    }
}
