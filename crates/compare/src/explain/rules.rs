//! The suspects, one rule per cause: what accuses it, what tells it from its neighbours, and what clears it.

use fingerpost_record::{Layer, Status, unit::significant};

use super::facts::Facts;

/// What a rule found: the status, the share of the time that the cause is held responsible for, and the figures.
pub(super) struct Verdict {
    pub status: Status,
    pub share: f64,
    pub evidence: Vec<String>,
}

/// One suspect.
pub(super) struct Rule {
    /// The cause's name.
    pub cause: &'static str,
    /// Its layer.
    pub layer: Layer,
    /// What a person calls the suspect.
    pub label: &'static str,
    /// Judges it; nothing where the facts do not tell.
    pub judge: fn(&Facts) -> Option<Verdict>,
}

/// A share from which on a cause that its evidence singles out is guilty, and from which on it is suspected.
const GUILTY: f64 = 0.10;
const SUSPECTED: f64 = 0.05;

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 10.0 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

fn seconds(s: f64) -> String {
    fingerpost_record::Unit::Nanoseconds.format(s * 1e9)
}

fn others_cpu(f: &Facts) -> String {
    format!("other processes used {} CPUs{}", significant(f.other_cpus), mostly(&f.other_name))
}

fn mostly(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(", most of it “{name}”") }
}

fn bytes(b: f64) -> String {
    fingerpost_record::Unit::BytesPerSecond.format(b)
}

/// Guilty where `proof` holds and the share is large, suspected where the share alone speaks, else cleared.
fn by_share(share: f64, proof: bool, evidence: Vec<String>) -> Option<Verdict> {
    let status = match share {
        s if s >= GUILTY && proof => Status::Guilty,
        s if s >= SUSPECTED && proof => Status::Suspected,
        _ => Status::Cleared,
    };
    Some(Verdict { status, share, evidence })
}

fn cleared(evidence: Vec<String>) -> Option<Verdict> {
    Some(Verdict { status: Status::Cleared, share: 0.0, evidence })
}

fn waiting(f: &Facts) -> String {
    format!("waiting for a CPU is {} of a transaction, while {} of all CPU time was idle", percent(f.run_queue), percent(f.idle))
}

/// Whether threads waited for a CPU while one idled: by the trace where there is one, else by the machine's idle time.
fn cpu_idles_beside(f: &Facts) -> bool {
    match f.waiting_while_idle {
        Some(share) => share > 0.3 && f.idle > 0.1,
        None => f.idle > 0.25,
    }
}

fn quota(f: &Facts) -> Option<Verdict> {
    let limit = f.quota.map_or("no quota is set".to_owned(), |q| format!("a quota of {} CPUs is set", significant(q)));
    if f.throttled_s <= 0.0 || f.throttled_periods < 0.05 {
        return cleared(vec![format!("{limit}, and it stopped the server for {} s", significant(f.throttled_s))]);
    }
    let stopped = format!(
        "{limit}; it cut {} of its periods short and stopped CPUs for {} s",
        percent(f.throttled_periods),
        significant(f.throttled_s)
    );
    by_share(f.run_queue.max(SUSPECTED), true, vec![stopped, waiting(f)])
}

fn affinity(f: &Facts) -> Option<Verdict> {
    let allowed = format!("the server may use {} of {} CPUs", f.cpus_allowed, f.cpus);
    if f.cpus_allowed >= f.cpus {
        return cleared(vec![allowed]);
    }
    let busy = f.server_cpus > 0.7 * f.cpus_allowed;
    by_share(f.run_queue, cpu_idles_beside(f) && f.throttled_periods < 0.05 && busy, vec![allowed, waiting(f)])
}

fn lowered(f: &Facts) -> bool {
    f.nice > 0.0 || f.weight < 0.9
}

fn contention(f: &Facts) -> Option<Verdict> {
    let others = others_cpu(f);
    let busy = f.other_cpus > 0.1 * f.cpus && !cpu_idles_beside(f);
    by_share(f.run_queue, busy && !lowered(f) && f.throttled_periods < 0.05, vec![others, waiting(f)])
}

fn priority(f: &Facts) -> Option<Verdict> {
    let rank = format!("the server's nice value is {}, its weight {} of the usual", f.nice, percent(f.weight));
    if !lowered(f) {
        return cleared(vec![rank]);
    }
    let others = others_cpu(f);
    by_share(f.run_queue, f.other_cpus > 0.1 * f.cpus && f.throttled_periods < 0.05, vec![rank, others, waiting(f)])
}

fn run_queue(f: &Facts) -> Option<Verdict> {
    let own = f.other_cpus <= 0.1 * f.cpus && f.idle < 0.15 && f.throttled_periods < 0.05 && f.cpus_allowed >= f.cpus;
    let used = format!(
        "the server used {} % of {} %, other processes {} %",
        percent_of_cpus(f.server_cpus),
        percent_of_cpus(f.cpus),
        percent_of_cpus(f.other_cpus)
    );
    let mut v = by_share(f.run_queue, own, vec![waiting(f), used])?;
    // More runnable threads than CPUs: a fact about the load, not yet a fault.
    if v.status == Status::Guilty {
        v.status = Status::Suspected;
    }
    Some(v)
}

fn percent_of_cpus(cpus: f64) -> f64 {
    (cpus * 100.0).round()
}

fn work(f: &Facts) -> Option<Verdict> {
    let figures =
        format!("the server's own code is {} of a transaction, on {} CPUs of {}", percent(f.user), significant(f.server_cpus), f.cpus);
    let mut v = by_share(f.user, f.user >= 0.25, vec![figures])?;
    // Work is what a server is for: only a comparison can tell whether it is too much.
    if v.status == Status::Guilty {
        v.status = Status::Suspected;
        v.evidence.push("whether that is more than it should be shows in a comparison of two runs".into());
    }
    Some(v)
}

fn system_calls(f: &Facts) -> Option<Verdict> {
    let calls = f.calls.map_or("without a trace, calls are not counted".to_owned(), |n| {
        format!("{} system calls per transaction at {} of CPU each", significant(n), seconds(f.call_s))
    });
    let filters = format!("{} seccomp filters on the server", f.seccomp_filters);
    let share = format!("the kernel is {} of a transaction", percent(f.kernel));
    let mut v = by_share(f.kernel, f.seccomp_filters > 0.0 || f.kernel >= 0.25, vec![share, calls, filters])?;
    if v.status == Status::Guilty {
        v.status = Status::Suspected;
        v.evidence.push("whether a call is dearer than it should be shows in a comparison of two runs".into());
    }
    Some(v)
}

fn mitigation(f: &Facts) -> Option<Verdict> {
    if !f.speculation_mitigated {
        return cleared(vec!["no optional speculation mitigation is on for the server's tasks".into()]);
    }
    let status = if f.user + f.kernel >= SUSPECTED { Status::Suspected } else { Status::Cleared };
    let evidence = vec![
        "an optional speculation mitigation is on for the server's tasks".into(),
        format!("code, which it slows, is {} of a transaction", percent(f.user + f.kernel)),
    ];
    Some(Verdict { status, share: 0.0, evidence })
}

fn creation(f: &Facts) -> Option<Verdict> {
    let made = format!("{} processes or threads made per transaction, {} of its time", significant(f.creations), percent(f.creation_share));
    f.calls.and_then(|_| by_share(f.creation_share, true, vec![made]))
}

fn lock(f: &Facts) -> Option<Verdict> {
    let mut evidence = vec![format!(
        "waiting for locks is {} of a transaction; siblings wake {} such futex waits per transaction, among {} threads",
        percent(f.lock),
        significant(f.sibling_wakes),
        f.server_threads
    )];
    if let Some(s) = f.scaling {
        evidence.push(format!(
            "throughput is best with {} clients ({}/s); with {} it is {} of that",
            s.best_clients,
            significant(s.best),
            s.most_clients,
            percent(s.kept)
        ));
    }
    evidence.push(format!("{} context switches of the server per transaction", significant(f.switches)));
    // Without a trace, who ended a wait is not known; that there are several threads must do.
    let proof = if f.calls.is_some() { f.sibling_wakes > 0.01 } else { f.server_threads > 1.0 };
    by_share(f.lock, proof, evidence)
}

fn query_cache(f: &Facts) -> Option<Verdict> {
    let on = f.query_cache?;
    if !on {
        return cleared(vec!["the query cache is off".into()]);
    }
    let figures =
        format!("the query cache is on: one lock that every query passes; waiting for locks is {} of a transaction", percent(f.lock));
    let mut v = by_share(f.lock, f.sibling_wakes > 0.01, vec![figures])?;
    if v.status == Status::Guilty {
        v.status = Status::Suspected;
        v.evidence.push("run it with the query cache off: if the lock goes, it was the cache's".into());
    }
    Some(v)
}

fn disk_figures(f: &Facts) -> Vec<String> {
    vec![
        format!(
            "waiting for disks is {} of a transaction; the busiest device was busy {} of the time",
            percent(f.disk),
            percent(f.disk_busy)
        ),
        format!(
            "the server wrote {} and read {}; {} fsyncs per transaction at {}",
            bytes(f.written_per_s),
            bytes(f.read_per_s),
            significant(f.syncs),
            seconds(f.sync_s)
        ),
    ]
}

/// How much of a sync the device itself accounts for: a write and a flush. A throttle holds requests back before they reach it.
fn held_back(f: &Facts) -> bool {
    let device = f.device_write_s + f.device_flush_s;
    f.disk_busy < 0.3 && (f.sync_s == 0.0 || f.sync_s > 4.0 * device)
}

fn throttle(f: &Facts) -> Option<Verdict> {
    let mut evidence = disk_figures(f);
    evidence.push(format!(
        "{} limits on block I/O are set on the server's control groups; a write takes the device {}",
        f.disk_limits,
        seconds(f.device_write_s)
    ));
    by_share(f.disk, f.disk_limits > 0.0 && held_back(f), evidence)
}

/// Others' I/O that competes: at least as much as our own, or a stream in its own right.
fn others_io(f: &Facts) -> bool {
    f.other_disk_per_s > 1e6 && f.other_disk_per_s > 0.5 * (f.written_per_s + f.read_per_s)
}

fn storage_contention(f: &Facts) -> Option<Verdict> {
    let mut evidence = disk_figures(f);
    evidence.push(format!("other processes moved {}{}", bytes(f.other_disk_per_s), mostly(&f.other_disk_name)));
    by_share(f.disk, others_io(f) && f.disk_busy > 0.3, evidence)
}

fn storage_latency(f: &Facts) -> Option<Verdict> {
    let throttled = f.disk_limits > 0.0 && held_back(f);
    by_share(f.disk, !(throttled || others_io(f) && f.disk_busy > 0.3), disk_figures(f))
}

fn durability(f: &Facts) -> Option<Verdict> {
    f.calls?;
    let share = if f.disk > 0.0 { f.disk } else { 0.0 };
    let figures = format!("{} fsyncs per transaction, {} each", significant(f.syncs), seconds(f.sync_s));
    let mut v = by_share(share, f.syncs > 1.5, vec![figures])?;
    if v.status == Status::Guilty {
        v.status = Status::Suspected;
        v.evidence.push("whether they are more than before shows in a comparison of two runs".into());
    }
    Some(v)
}

fn bandwidth_figures(f: &Facts) -> String {
    format!("{} Mbit/s in and {} out, peak {}", significant(f.mbit_in), significant(f.mbit_out), significant(f.mbit_peak))
}

fn transit(f: &Facts) -> String {
    format!(
        "waiting for peers and on the way is {} of a transaction; data was on the way on {} of {} connections",
        percent(f.network),
        significant(f.on_the_way),
        significant(f.connections)
    )
}

fn drops(f: &Facts) -> bool {
    f.drops > 0.0 || f.retransmits > 0.01 * f.transactions.max(100.0)
}

fn shaping(f: &Facts) -> Option<Verdict> {
    let lost = format!("{} packets dropped, {} segments sent again", f.drops, f.retransmits);
    // Each data segment that waits holds a queue: shaping shows as data on the way without delayed acknowledgements.
    let queued = f.on_the_way > 0.2 * f.connections.max(1.0) && f.delayed_acks < 0.3;
    by_share(f.network, f.idle > 0.2 && (drops(f) || queued), vec![bandwidth_figures(f), transit(f), lost])
}

fn accept_queue(f: &Facts) -> Option<Verdict> {
    let figures = format!(
        "{} connections found the accept queue full; at most {} of {} waited in it",
        f.listen_overflows, f.accept_max, f.accept_backlog
    );
    // The kernel counts overflows for all of the host.
    if f.listen_overflows < 1.0 || f.connections <= 0.0 && f.accept_backlog <= 0.0 {
        return cleared(vec![figures]);
    }
    // A refused handshake is repeated after a second: what that costs shows as time that nobody sees.
    by_share(
        (f.network + f.unexplained.max(0.0) + f.stalled).min(1.0),
        true,
        vec![figures, format!("{} of the time no transaction completed", percent(f.stalled))],
    )
}

fn delay(f: &Facts) -> Option<Verdict> {
    let acks = format!(
        "{} delayed acknowledgements per transaction, {} drops; the round trip is {} µs",
        significant(f.delayed_acks),
        f.drops,
        significant(f.rtt_us)
    );
    let latency = if f.transactions > 0.0 && f.elapsed_s > 0.0 { f.connections.max(1.0) * f.elapsed_s / f.transactions } else { 0.0 };
    let stepped = f.delayed_acks > 0.3 && latency > 0.02;
    by_share(
        f.network + if stepped { f.unexplained.max(0.0) } else { 0.0 },
        f.idle > 0.3 && !drops(f) && f.delayed_acks > 0.3,
        vec![transit(f), acks],
    )
}

fn memory_limit(f: &Facts) -> Option<Verdict> {
    let mut evidence = vec![format!(
        "{} pages swapped a second, {} major faults a second, memory pressure {} of the time",
        significant(f.swap_per_s),
        significant(f.major_per_s),
        percent(f.memory_pressure)
    )];
    if let Some(limit) = f.memory_limit {
        evidence.push(format!(
            "the limit is {}, of which {} was in use",
            fingerpost_record::Unit::Bytes.format(limit),
            percent(f.memory_used)
        ));
    }
    // A major fault is also how a program's own code is first read: only many of them, under pressure, are paging.
    let swapping = f.swap_per_s > 10.0;
    let paging = swapping || (f.major_per_s > 20.0 && f.memory_pressure > 0.02);
    let share = (f.memory + if swapping { f.disk } else { 0.0 }).max(if paging { f.memory_pressure } else { 0.0 });
    by_share(share, paging || f.memory_pressure > 0.05, evidence)
}

fn page_size(f: &Facts) -> Option<Verdict> {
    cleared(vec![format!(
        "{} minor faults per transaction; what the page size costs shows in a comparison of two runs",
        significant(f.minor_faults)
    )])
}

fn client(f: &Facts) -> Option<Verdict> {
    let mut evidence = vec![format!(
        "the client has a transaction for {} of its time, and used {} of its CPUs",
        percent(f.client),
        percent(f.client_busy)
    )];
    if f.client_errors > 0.0 {
        evidence.push(format!("{} errors in the client", f.client_errors));
    }
    if let Some(why) = &f.client_saturated {
        evidence.insert(0, why.clone());
        return by_share(f.client.max(SUSPECTED), true, evidence);
    }
    by_share(f.client, f.client_busy > 0.8 && f.client > 0.25, evidence)
}

fn steal(f: &Facts) -> Option<Verdict> {
    by_share(f.steal, true, vec![format!("the hypervisor took {} of all CPU time", percent(f.steal))])
}

/// Every suspect, in the order of the article's search.
pub(super) static RULES: &[Rule] = &[
    Rule { cause: "network.shaping", layer: Layer::Network, label: "network bandwidth", judge: shaping },
    Rule { cause: "storage.latency", layer: Layer::Storage, label: "disk writes and fsync", judge: storage_latency },
    Rule { cause: "storage.throttle", layer: Layer::Storage, label: "a limit on disk I/O", judge: throttle },
    Rule { cause: "storage.contention", layer: Layer::Storage, label: "others' disk I/O", judge: storage_contention },
    Rule { cause: "storage.durability", layer: Layer::Application, label: "how often it syncs", judge: durability },
    Rule { cause: "app.work", layer: Layer::Application, label: "CPU: the server's own code", judge: work },
    Rule { cause: "cpu.saturated", layer: Layer::Scheduler, label: "run queue: more threads than CPUs", judge: run_queue },
    Rule { cause: "cpu.contention", layer: Layer::Scheduler, label: "run queue: other processes", judge: contention },
    Rule { cause: "cpu.priority", layer: Layer::Scheduler, label: "priority", judge: priority },
    Rule { cause: "cpu.quota", layer: Layer::Scheduler, label: "CPU quota", judge: quota },
    Rule { cause: "cpu.affinity", layer: Layer::Scheduler, label: "CPU affinity", judge: affinity },
    Rule { cause: "app.lock", layer: Layer::Application, label: "locks", judge: lock },
    Rule { cause: "app.query_cache", layer: Layer::Application, label: "query cache", judge: query_cache },
    Rule { cause: "syscall.entry", layer: Layer::Kernel, label: "system call and signal cost", judge: system_calls },
    Rule { cause: "process.creation", layer: Layer::Kernel, label: "process and thread creation", judge: creation },
    Rule { cause: "cpu.mitigation", layer: Layer::Cpu, label: "speculation mitigations", judge: mitigation },
    Rule { cause: "network.delay", layer: Layer::Network, label: "TCP latency", judge: delay },
    Rule { cause: "network.accept_queue", layer: Layer::Network, label: "accept queue", judge: accept_queue },
    Rule { cause: "memory.limit", layer: Layer::Memory, label: "memory and paging", judge: memory_limit },
    Rule { cause: "memory.page_size", layer: Layer::Memory, label: "page size", judge: page_size },
    Rule { cause: "client.saturated", layer: Layer::Client, label: "the client itself", judge: client },
    Rule { cause: "host.steal", layer: Layer::Host, label: "host steal", judge: steal },
];
