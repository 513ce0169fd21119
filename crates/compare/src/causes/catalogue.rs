//! The catalogue of causes, each with the parts of a budget that it moves and with what tells it from its neighbours.
//!
//! # Vocabulary
//!
//! Totals that the discriminators look for among a step's observations: the observers' names, over the whole step. Any may be
//! absent, and then its rule says so. Those of `cpu`, `others`, `disk`, `memory`, `network`, `pressure` and `limits` speak of the
//! machine and the server's control group, `server.*` and `client.*` of the threads on either side.
//!
//! | rule | totals |
//! | --- | --- |
//! | scheduler | `throttle.seconds` `cgroup.cpu_quota.cpus` `cgroup.cpu_weight` `server.cpus_allowed` `server.nice` `other.cpu.seconds` `other.cpu.NAME.seconds` `cpu.idle.seconds` `elapsed.seconds` `cpu.steal.seconds` |
//! | CPU and kernel | `server.instructions.user` `server.cycles.user` `server.tlb_misses` `server.call.NAME.count` `server.seccomp.mode` `server.seccomp.filters` `server.store_bypass.mitigated` `server.indirect_branch.mitigated` |
//! | memory | `memory.swap_in.pages` `server.faults.major` `server.faults.minor` `memory.direct_reclaim.pages` `psi.memory.some.seconds` `thp.always` `server.thp_disabled` |
//! | storage | `disk.flushes` `disk.flush.seconds` `disk.busy.seconds` `other.disk.bytes` `cgroup.disk_limits` `server.call.fsync.count` |
//! | network | `net.drops` `tcp.retransmits` `tcp.listen_overflows` `tcp.delayed_acks` `queue.network.mean` |
//! | application | `server.blocked.lock.seconds` |
//! | client | `client.cpu_share` (0 to 1, of the CPUs that it may use) `client.saturated` (1 when it found itself to be the limit) |

use fingerpost_record::Layer;

use super::clues::Clues;
use super::host_clues;

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

use Sign::{Against, Fits, Unknown};

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

fn user(layer: Layer, part: &str) -> bool {
    part.contains("user") || (layer == Layer::Cpu && !part.contains("kernel"))
}

fn kernel(layer: Layer, part: &str) -> bool {
    layer == Layer::Kernel || part.contains("kernel")
}

fn on_cpu(layer: Layer, part: &str) -> bool {
    user(layer, part) || kernel(layer, part) || layer == Layer::Host
}

/// A request that lies unread at a server without a CPU waits for that CPU, and so does a client that shares the CPUs.
fn scheduler(layer: Layer, part: &str) -> bool {
    layer == Layer::Scheduler || part == "request waits for the server" || part == "client waiting for a CPU"
}

fn memory(layer: Layer, _: &str) -> bool {
    layer == Layer::Memory
}

fn faulting(layer: Layer, part: &str) -> bool {
    layer == Layer::Memory || user(layer, part) || part.contains("fault")
}

fn storage(layer: Layer, _: &str) -> bool {
    layer == Layer::Storage
}

fn network(layer: Layer, _: &str) -> bool {
    layer == Layer::Network
}

fn lock(layer: Layer, part: &str) -> bool {
    layer == Layer::Application && (part.contains("lock") || part.contains("futex"))
}

fn client(layer: Layer, part: &str) -> bool {
    layer == Layer::Client || part.contains("idle")
}

/// Every cause of the catalogue. Where several of a layer fit, the first is the sharper one.
pub const CATALOGUE: &[Candidate] = &[
    Candidate { cause: "cpu.quota", layer: Layer::Scheduler, words: "a CPU quota", moves: scheduler, sign: quota },
    Candidate { cause: "cpu.affinity", layer: Layer::Scheduler, words: "too few CPUs allowed", moves: scheduler, sign: affinity },
    Candidate { cause: "cpu.priority", layer: Layer::Scheduler, words: "a low priority", moves: scheduler, sign: priority },
    Candidate {
        cause: "cpu.contention",
        layer: Layer::Scheduler,
        words: "other processes on the CPUs",
        moves: scheduler,
        sign: contention,
    },
    Candidate { cause: "host.steal", layer: Layer::Host, words: "the host under this guest", moves: on_cpu, sign: steal },
    Candidate { cause: "cpu.mitigation", layer: Layer::Cpu, words: "a CPU mitigation", moves: on_cpu, sign: mitigation },
    Candidate { cause: "cpu.speed", layer: Layer::Cpu, words: "a slower CPU", moves: on_cpu, sign: speed },
    Candidate { cause: "syscall.entry", layer: Layer::Kernel, words: "the cost of entering the kernel", moves: kernel, sign: entry },
    Candidate { cause: "memory.limit", layer: Layer::Memory, words: "too little memory", moves: memory, sign: memory_limit },
    Candidate { cause: "memory.page_size", layer: Layer::Memory, words: "small pages", moves: faulting, sign: page_size },
    Candidate {
        cause: "storage.durability",
        layer: Layer::Application,
        words: "more flushes per transaction",
        moves: storage,
        sign: durability,
    },
    Candidate { cause: "storage.throttle", layer: Layer::Storage, words: "a throttled disk", moves: storage, sign: throttle },
    Candidate {
        cause: "storage.contention",
        layer: Layer::Storage,
        words: "other processes on the disk",
        moves: storage,
        sign: disk_contention,
    },
    Candidate { cause: "storage.latency", layer: Layer::Storage, words: "a slower disk", moves: storage, sign: disk_latency },
    Candidate { cause: "network.accept_queue", layer: Layer::Network, words: "a full listen queue", moves: network, sign: accept_queue },
    Candidate { cause: "network.delay", layer: Layer::Network, words: "delayed acknowledgements", moves: network, sign: delay },
    Candidate { cause: "network.shaping", layer: Layer::Network, words: "a shaped or full network", moves: network, sign: shaping },
    Candidate { cause: "app.lock", layer: Layer::Application, words: "a lock in the application", moves: lock, sign: app_lock },
    Candidate { cause: "app.work", layer: Layer::Application, words: "more work in the application", moves: user, sign: app_work },
    Candidate { cause: "client.saturated", layer: Layer::Client, words: "the load generator", moves: client, sign: client_saturated },
];

/// A total that must grow clearly for the cause to fit.
fn grows(clues: &Clues, name: &str, by: f64, words: &str) -> Sign {
    let Some(pair) = clues.per_transaction(name) else { return Unknown };
    let text = format!("{words}: {} → {} a transaction", quantity(pair.cheap, name), quantity(pair.dear, name));
    if pair.ratio() > by && pair.dear > 0.0 { Fits(text) } else { Against(text) }
}

fn quantity(value: f64, name: &str) -> String {
    if name.ends_with("seconds") {
        fingerpost_record::Unit::Nanoseconds.format(value * 1e9)
    } else {
        fingerpost_record::unit::significant(value)
    }
}

/// Whether a setting holds on the slower side only.
fn set_now(clues: &Clues, name: &str) -> bool {
    clues.total(name).is_some_and(|p| p.dear > p.cheap)
}

/// A level (not a sum over the step) that must be clearly higher for the cause to fit.
fn higher(clues: &Clues, name: &str, words: &str) -> Sign {
    let Some(level) = clues.total(name) else { return Unknown };
    let text =
        format!("{words}: {} → {}", fingerpost_record::unit::significant(level.cheap), fingerpost_record::unit::significant(level.dear));
    if level.ratio() > 2.0 && level.dear > 0.0 { Fits(text) } else { Against(text) }
}

/// CPUs of the machine that idled meanwhile, as CPUs' worth.
fn idle(clues: &Clues) -> Option<f64> {
    Some(clues.total("cpu.idle.seconds")?.dear / clues.total("elapsed.seconds")?.dear.max(1e-9))
}

fn quota(clues: &Clues) -> Sign {
    let (cheap, dear) = clues.hosts();
    match grows(clues, "throttle.seconds", 2.0, "throttled time") {
        Unknown => match (cheap.cgroup.cpu_quota, dear.cgroup.cpu_quota) {
            (before, Some(now)) if before.is_none_or(|b| b > now) => Fits(format!("a quota of {now} CPUs holds on the slower side only")),
            (_, None) => Against("there is no quota".into()),
            _ => Against("the quota is no tighter".into()),
        },
        sign => sign,
    }
}

fn affinity(clues: &Clues) -> Sign {
    let (cheap, dear) = clues.hosts();
    let allowed = clues.total("server.cpus_allowed").map_or((f64::from(cheap.cpu.count), f64::from(dear.cpu.count)), |p| (p.cheap, p.dear));
    if allowed.1 < 1.0 {
        return Unknown;
    }
    let idling = idle(clues).map_or(String::new(), |i| format!(", while {i:.1} CPUs idled"));
    let text = format!("the server may use {} CPUs, {} on the faster side{idling}", allowed.1, allowed.0);
    if allowed.1 < allowed.0 { Fits(text) } else { Against(text) }
}

fn priority(clues: &Clues) -> Sign {
    if let Some(nice) = clues.total("server.nice") {
        let text = format!("the server's nice value is {:.0}, {:.0} on the faster side", nice.dear, nice.cheap);
        return if nice.dear > nice.cheap { Fits(text) } else { Against(text) };
    }
    match (clues.hosts().0.cgroup.cpu_weight, clues.hosts().1.cgroup.cpu_weight) {
        (Some(before), Some(now)) if now < before => Fits(format!("the CPU weight is {now}, {before} on the faster side")),
        (Some(before), Some(now)) => Against(format!("the CPU weight is {now}, {before} on the faster side")),
        _ => Unknown,
    }
}

fn contention(clues: &Clues) -> Sign {
    let (Some(others), Some(elapsed)) = (clues.total("other.cpu.seconds"), clues.total("elapsed.seconds")) else { return Unknown };
    let (cheap, dear) = (others.cheap / elapsed.cheap.max(1e-9), others.dear / elapsed.dear.max(1e-9));
    let most = clues.largest("other.cpu.", ".seconds").map_or(String::new(), |name| format!(", most of it {name}"));
    let text = format!("other processes used {dear:.2} CPUs{most}; {cheap:.2} on the faster side");
    if dear > cheap + 0.2 && dear > 1.5 * cheap { Fits(text) } else { Against(text) }
}

fn steal(clues: &Clues) -> Sign {
    let Some(stolen) = clues.per_transaction("cpu.steal.seconds") else { return Unknown };
    let text = format!("steal per transaction: {} → {}", quantity(stolen.cheap, "seconds"), quantity(stolen.dear, "seconds"));
    if stolen.more() > 0.05 * clues.wall().more().abs() { Fits(text) } else { Against(text) }
}

/// Instructions and cycles per transaction, user mode, dear to cheap.
fn user_counters(clues: &Clues) -> Option<(f64, f64)> {
    Some((clues.per_transaction("server.instructions.user")?.ratio(), clues.per_transaction("server.cycles.user")?.ratio()))
}

fn mitigation(clues: &Clues) -> Sign {
    let mut differs = host_clues(clues.cheap(), clues.dear(), &["mitigations"]);
    for (name, words) in
        [("server.store_bypass.mitigated", "speculative store bypass"), ("server.indirect_branch.mitigated", "indirect branch speculation")]
    {
        differs.extend(set_now(clues, name).then(|| format!("{words} is mitigated for the server on the slower side only")));
    }
    match (user_counters(clues), differs.first()) {
        (Some((instructions, cycles)), fact) => {
            let text = format!("instructions {instructions:.2} times, cycles {cycles:.2} times in user code");
            let dearer = cycles > 1.1 && cycles / instructions > 1.05;
            match (dearer, fact) {
                (true, Some(fact)) => Fits(format!("{text}; {fact}")),
                (true, None) => Unknown,
                (false, _) => Against(text),
            }
        }
        (None, Some(fact)) => Fits(fact.clone()),
        (None, None) => Against("the mitigations are the same".into()),
    }
}

fn speed(clues: &Clues) -> Sign {
    let (on_user, on_kernel) = (clues.parts(user), clues.parts(kernel));
    let proportion = (on_user.ratio(), on_kernel.ratio());
    let text = format!("user code takes {:.2} times, the kernel {:.2} times as long", proportion.0, proportion.1);
    if let Some((instructions, cycles)) = user_counters(clues)
        && (instructions > 1.05 || cycles > 1.05)
    {
        return Against(format!("{text}, with {instructions:.2} times the instructions and {cycles:.2} times the cycles"));
    }
    // Both modes move together, and neither by nothing.
    let together = proportion.0 > 1.05 && proportion.1 > 1.05 && (proportion.0 / proportion.1).ln().abs() < 0.25;
    if together { Fits(text) } else { Against(text) }
}

fn entry(clues: &Clues) -> Sign {
    let (on_user, on_kernel) = (clues.parts(user), clues.parts(kernel));
    let text = format!("the kernel takes {:.2} times as long, user code {:.2} times", on_kernel.ratio(), on_user.ratio());
    let calls = clues.calls_per_transaction();
    let mut facts = host_clues(clues.cheap(), clues.dear(), &["seccomp", "seccomp filters"]);
    let filtered = ["server.seccomp.mode", "server.seccomp.filters"].iter().any(|name| set_now(clues, name));
    facts.extend(filtered.then(|| "system calls pass a seccomp filter on the slower side only".to_owned()));
    facts.extend(calls.map(|c| format!("{:.1} → {:.1} calls a transaction", c.cheap, c.dear)));
    let text = facts.into_iter().fold(text, |t, fact| format!("{t}; {fact}"));
    // Calls that map and unmap memory get dearer with the number of its pages, which is no matter of entering.
    let more_pages = !filtered && clues.per_transaction("server.faults.minor").is_some_and(|p| p.ratio() > 1.5 && p.dear > 10.0);
    if more_pages {
        return Against(format!("{text}; the pages that it handles grew in number"));
    }
    let dearer = on_kernel.ratio() > 1.05 && on_kernel.ratio() > on_user.ratio() * 1.05;
    // A filter that only the slower side has is a fact; counts of very many calls come from samples of the trace.
    if dearer && (filtered || calls.is_none_or(|c| c.ratio() < 1.2)) { Fits(text) } else { Against(text) }
}

fn memory_limit(clues: &Clues) -> Sign {
    for (name, words) in [
        ("memory.swap_in.pages", "pages swapped in"),
        ("server.faults.major", "major faults"),
        ("memory.direct_reclaim.pages", "pages reclaimed directly"),
    ] {
        if let fits @ Fits(_) = grows(clues, name, 1.5, words) {
            return fits;
        }
    }
    grows(clues, "psi.memory.some.seconds", 1.5, "stalled for memory")
}

fn page_size(clues: &Clues) -> Sign {
    let mut facts = host_clues(clues.cheap(), clues.dear(), &["transparent huge pages"]);
    let off = set_now(clues, "server.thp_disabled") || clues.total("thp.always").is_some_and(|p| p.dear < p.cheap);
    facts.extend((facts.is_empty() && off).then(|| "the server may use huge pages on the faster side only".to_owned()));
    let misses = [("server.tlb_misses", "TLB misses"), ("server.faults.minor", "minor faults")];
    let sign = misses.iter().map(|(name, words)| grows(clues, name, 1.5, words)).find(|s| matches!(s, Fits(_)));
    match (sign, facts.first()) {
        (Some(Fits(text)), Some(fact)) => Fits(format!("{text}; {fact}")),
        (_, Some(fact)) => Fits(fact.clone()),
        (_, None) => Against("huge pages are set alike".into()),
    }
}

fn flushes(clues: &Clues) -> Option<(super::clues::Pair, super::clues::Pair)> {
    Some((clues.per_transaction("disk.flushes")?, clues.per_transaction("disk.flush.seconds")?))
}

fn durability(clues: &Clues) -> Sign {
    let calls = ["server.call.fsync.count", "server.call.fdatasync.count"].iter().find_map(|name| clues.per_transaction(name));
    let Some(count) = calls.or(flushes(clues).map(|f| f.0)) else { return Unknown };
    let text = format!("flushes a transaction: {:.2} → {:.2}", count.cheap, count.dear);
    // More flushes at the same cost each are the application's doing; where the cost grew more than the count, the disk's.
    if let Some(cost) = flush_cost(clues)
        && cost > count.ratio()
    {
        return Against(format!("{text}, at {cost:.2} times the cost each"));
    }
    if count.ratio() > 1.5 && count.dear > 0.01 { Fits(text) } else { Against(text) }
}

/// How many times as dear one sync became: the server's own calls where they were traced, else the device's flushes.
fn flush_cost(clues: &Clues) -> Option<f64> {
    let calls = |what: &str| -> Option<super::clues::Pair> {
        let of = |name: &str| clues.per_transaction(&format!("server.call.{name}.{what}"));
        let zero = super::clues::Pair { cheap: 0.0, dear: 0.0 };
        let (a, b) = (of("fsync"), of("fdatasync"));
        if a.is_none() && b.is_none() {
            return None;
        }
        let (a, b) = (a.unwrap_or(zero), b.unwrap_or(zero));
        Some(super::clues::Pair { cheap: a.cheap + b.cheap, dear: a.dear + b.dear })
    };
    if let (Some(count), Some(seconds)) = (calls("count"), calls("seconds"))
        && count.cheap > 0.0
        && count.dear > 0.0
        && seconds.cheap > 0.0
    {
        return Some((seconds.dear / count.dear) / (seconds.cheap / count.cheap));
    }
    let (count, seconds) = flushes(clues)?;
    let each = |seconds: f64, count: f64| (count > 0.0).then(|| seconds / count);
    Some(each(seconds.dear, count.dear)? / each(seconds.cheap, count.cheap)?.max(1e-12))
}

fn disk_contention(clues: &Clues) -> Sign {
    let Some(others) = clues.total("other.disk.bytes") else { return Unknown };
    let text = format!("others moved {} on the disk, {} on the faster side", bytes(others.dear), bytes(others.cheap));
    let dearer = flush_cost(clues).is_none_or(|cost| cost > 1.2);
    if others.ratio() > 2.0 && others.dear > 65_536.0 && dearer { Fits(text) } else { Against(text) }
}

fn bytes(n: f64) -> String {
    fingerpost_record::Unit::Bytes.format(n)
}

/// The share of the step in which the disk was busy, on the slower side.
fn busy(clues: &Clues) -> Option<f64> {
    Some(clues.total("disk.busy.seconds")?.dear / clues.total("elapsed.seconds")?.dear.max(1e-9))
}

fn throttle(clues: &Clues) -> Sign {
    if set_now(clues, "cgroup.disk_limits") {
        return Fits("the server's group has a limit on the disk on the slower side only".into());
    }
    if let Some(cost) = flush_cost(clues)
        && cost < 1.5
    {
        return Against(format!("a sync took {cost:.2} times as long, and no limit is set on the slower side alone"));
    }
    let Some(busy) = busy(clues) else { return Unknown };
    let text = format!("the disk was busy {:.0} % of the time", busy * 100.0);
    if busy < 0.5 && !matches!(disk_contention(clues), Fits(_)) { Fits(text + " while the server waited for it") } else { Against(text) }
}

fn disk_latency(clues: &Clues) -> Sign {
    match (busy(clues), flush_cost(clues)) {
        (Some(busy), cost) if busy >= 0.5 => Fits(format!(
            "the disk was busy {:.0} % of the time{}",
            busy * 100.0,
            cost.map_or(String::new(), |c| format!(", a flush took {c:.2} times as long"))
        )),
        (_, Some(cost)) if cost > 1.2 => Fits(format!("a flush took {cost:.2} times as long")),
        (_, Some(cost)) => Against(format!("a flush took {cost:.2} times as long")),
        (Some(busy), None) => Against(format!("the disk was busy {:.0} % of the time only", busy * 100.0)),
        (None, None) => Unknown,
    }
}

fn accept_queue(clues: &Clues) -> Sign {
    match clues.per_transaction("tcp.listen_overflows") {
        // Few connections that others make elsewhere are no matter of ours.
        Some(pair) if pair.dear < 0.001 => Against(format!("listen overflows: {} a transaction", quantity(pair.dear, ""))),
        _ => grows(clues, "tcp.listen_overflows", 1.5, "listen overflows"),
    }
}

fn delay(clues: &Clues) -> Sign {
    match clues.per_transaction("tcp.delayed_acks") {
        // An acknowledgement that is late now and then is usual; one in three transactions is a pattern.
        Some(pair) if pair.dear < 0.3 => Against(format!("delayed acknowledgements: {} a transaction", quantity(pair.dear, ""))),
        _ => grows(clues, "tcp.delayed_acks", 2.0, "delayed acknowledgements"),
    }
}

fn shaping(clues: &Clues) -> Sign {
    for (name, words) in [("net.drops", "drops"), ("tcp.retransmits", "retransmits")] {
        if let fits @ Fits(_) = grows(clues, name, 1.5, words) {
            return fits;
        }
    }
    higher(clues, "queue.network.mean", "bytes on the way between the sockets")
}

fn app_lock(clues: &Clues) -> Sign {
    grows(clues, "server.blocked.lock.seconds", 1.2, "waiting for locks")
}

fn app_work(clues: &Clues) -> Sign {
    match user_counters(clues) {
        Some((instructions, _)) => {
            let text = format!("{instructions:.2} times the user instructions");
            if instructions > 1.05 { Fits(text) } else { Against(text) }
        }
        None => {
            let (on_user, on_kernel) = (clues.parts(user), clues.parts(kernel));
            let text = format!("user code takes {:.2} times as long, the kernel {:.2} times", on_user.ratio(), on_kernel.ratio());
            if on_user.ratio() > 1.05 && on_user.ratio() > 1.2 * on_kernel.ratio() { Fits(text) } else { Against(text) }
        }
    }
}

fn client_saturated(clues: &Clues) -> Sign {
    // Over several passes, the share of those in which it said so.
    let told =
        ["client.saturated", "step.client.saturated"].iter().filter_map(|name| clues.total(name)).any(|p| p.dear > 0.5 && p.cheap < 0.5);
    match client_share(clues) {
        _ if told => Fits("the load generator found itself to be the limit".into()),
        Some(share) => {
            let text = format!("the load generator used {:.0} % of its CPUs", share.dear * 100.0);
            if share.dear > 0.9 && share.cheap < 0.9 { Fits(text) } else { Against(text) }
        }
        None => Unknown,
    }
}

/// The share of its CPUs that the load generator used.
fn client_share(clues: &Clues) -> Option<super::clues::Pair> {
    if let Some(told) = clues.total("client.cpu_share") {
        return Some(told);
    }
    let (cpu, elapsed, cpus) = (clues.total("client.cpu.seconds")?, clues.total("elapsed.seconds")?, clues.total("step.client.cpus")?);
    let share = |cpu: f64, elapsed: f64, cpus: f64| cpu / (elapsed * cpus.max(1.0)).max(1e-9);
    Some(super::clues::Pair { cheap: share(cpu.cheap, elapsed.cheap, cpus.cheap), dear: share(cpu.dear, elapsed.dear, cpus.dear) })
}
