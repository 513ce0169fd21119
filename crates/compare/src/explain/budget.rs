//! The budget of one transaction: additive parts of its wall time, and the rest that no part explains.
//!
//! # The model
//!
//! In a closed loop of C clients that ran for T seconds, C·T client-seconds went by; divided by the transactions they are the wall
//! time of one. At every moment each client's transaction is in exactly one place:
//!
//! - **A program that is its own client** (an embedded database): a thread works on one transaction at a time, so its wall time is
//!   the transactions'. user + kernel + waiting for a CPU + blocked, by cause, of all threads that take part.
//! - **A server with separate clients**, either with a thread per connection or with a few threads that serve all of them:
//!   1. *in service at the server*: the time that the server's threads are not idle. A thread that waits for the next request is
//!      idle; its waiting for a CPU after such a wait belongs to (2), for it holds no transaction yet;
//!   2. *waiting at the server*: its request lies in the server's socket unread. This is measured by sampling the sockets: by
//!      Little's law the mean number of such connections × T is the client-seconds spent there, for any order of arrival. With a
//!      thread per connection it is the wake-up and the run queue; with an event loop it is queueing behind other requests;
//!      Where a transaction is over sooner than a sample, the samples are only the most that it can be, and the least is what the trace
//!      counts as sent by one side and not read by the other;
//!   3. *on the way*: written, not arrived. Measured in the same samples by comparing both ends' byte counts;
//!   4. *waiting at the client*: its answer lies in the client's socket unread;
//!   5. *in service at the client*: the client's threads' user, kernel and run-queue time but for what belongs to (4).
//!
//!   What a thread does between sending an answer and going to sleep is no part of a transaction, for that is the other side's already;
//!   nor, under (2), what it does between being woken and having read. The trace tells both.
//!
//!   Two corrections follow from the samples, where the server or the client serves many connections with few threads:
//!   - a thread that was preempted after its answer had been sent holds no transaction: what its connections wait for is in a queue
//!     already. Where the parts come to more than the whole, preempted time is taken back, as far as that goes;
//!   - transactions that are in no socket and that no thread works on are in a program's own queue: read, and not yet turned to. Only
//!     a program that is busy can have one, so that at most its busy share of the rest counts as such.
//!
//!   With a thread per connection the threads' own account is exact, but for preempted time as above, and the sockets are asked only for
//!   what is left, the time from sending to waking, and for no more than is left: a sample of many sockets takes as long as a fast
//!   transaction, and sees some of them in two places.
//!
//!   Where sockets cannot be sampled, (2) and (4) are the run-queue times of both sides after idling alone, and queueing shows as rest.
//!
//! The kernel's share is split by system call as the trace saw time on a CPU within each; what lies outside of any call is page
//! faults and interrupts. Tracing slows system calls, so that their sum may exceed the kernel's own account: it is then scaled to it.
//!
//! Parts are measured by independent means, so nothing makes them add up but their being right: the rest is the check. It is
//! positive for time that nobody saw and negative where parts overlap, such as a client that reads while the server's call returns.
//! A pass that is traced is slower; the parts are scaled to the measured pass's wall time.

use fingerpost_record::{Budget, Layer, Params, Part};

use super::{StepFigures, Totals};

/// A system call whose share is below this is put together with the others.
const SMALL: f64 = 0.005;

/// Below this many seconds of CPU, ticks (100 a second) split user from kernel worse than the trace does.
const FEW_TICKS: f64 = 0.3;

/// A rest of this share is what adding floating-point numbers leaves, nothing that was measured.
const ROUNDING: f64 = 1e-9;

/// What blocked time is called, and which layer it belongs to. `other` is in no part: it is unexplained.
pub(super) static BLOCKED: &[(&str, Layer, &str)] = &[
    ("lock", Layer::Application, "waiting for a lock"),
    ("disk", Layer::Storage, "waiting for the disk"),
    ("commit", Layer::Storage, "waiting for another's disk write (group commit)"),
    ("network", Layer::Network, "waiting for a peer"),
    ("timer", Layer::Application, "sleeping"),
    ("memory", Layer::Memory, "waiting for memory"),
    ("child", Layer::Application, "waiting for a child process"),
    ("pipe", Layer::Application, "waiting for a pipe"),
];

/// Names of components that the suspects refer to.
pub(crate) mod component {
    pub const USER: &str = "server user code";
    pub const RUN_QUEUE: &str = "waiting for a CPU";
    pub const AT_SERVER: &str = "request waits for the server";
    pub const ON_THE_WAY: &str = "on the way between server and client";
    pub const AT_CLIENT: &str = "answer waits for the client";
    pub const CLIENT: &str = "client user and kernel";
    pub const CLIENT_RUN_QUEUE: &str = "client waiting for a CPU";
    pub const OWN_QUEUE: &str = "in a program's own queue";
    pub const CLIENT_WAITS: &str = "client waiting for itself";
    pub const KERNEL: &str = "kernel";
}

/// Which work of a side's threads is for no transaction: what follows the sending of an answer is in any case; what precedes the reading
/// of the next request, where the sockets' samples count that request as waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idle {
    AfterSend,
    AfterSendAndBeforeRead,
}

impl Idle {
    /// Its names in the totals.
    fn names(self) -> &'static [&'static str] {
        match self {
            Idle::AfterSend => &["after_send"],
            Idle::AfterSendAndBeforeRead => &["after_send", "before_read"],
        }
    }

    /// Seconds of it, of a side or a system call.
    fn seconds(self, t: &Totals, of: &str, unit: &str) -> f64 {
        self.names().iter().map(|n| t.get(&format!("{of}.{n}{unit}"))).sum()
    }

    /// Seconds of it in a system call.
    fn in_call(self, t: &Totals, side: &str, call: &str) -> f64 {
        self.seconds(t, &format!("{side}.call.{call}"), "_seconds")
    }
}

/// Seconds of a side's threads in user code and in the kernel, but for what they did on no transaction's behalf.
fn user_and_kernel(t: &Totals, side: &str, idle: Idle) -> (f64, f64) {
    let (user, kernel) = all_user_and_kernel(t, side);
    let prefix = format!("{side}.call.");
    let calls = || t.between(&prefix, ".cpu_seconds");
    let traced: f64 = calls().map(|c| c.1).sum();
    let scale = if traced > 0.0 { (kernel / traced).min(1.0) } else { 0.0 };
    let idle_kernel = scale * calls().map(|(call, _)| idle.in_call(t, side, call)).sum::<f64>();
    let idle_user = (idle.seconds(t, side, ".seconds") - idle_kernel).clamp(0.0, user);
    (user - idle_user, (kernel - idle_kernel).max(0.0))
}

/// Seconds of a side's threads in user code and in the kernel: the scheduler's exact CPU time, split as the ticks split it.
fn all_user_and_kernel(t: &Totals, side: &str) -> (f64, f64) {
    let get = |what: &str| t.get(&format!("{side}.{what}"));
    let (user, kernel) = (get("thread_user.seconds"), get("thread_kernel.seconds"));
    let (user, kernel) = if user + kernel > 0.0 { (user, kernel) } else { (get("user.seconds"), get("kernel.seconds")) };
    let cpu = get("cpu.seconds");
    let traced: f64 = t.between(&format!("{side}.call."), ".cpu_seconds").map(|c| c.1).sum();
    if user + kernel < FEW_TICKS && traced > 0.0 {
        let kernel = traced.max(kernel).min(cpu);
        return (cpu - kernel, kernel);
    }
    if user + kernel <= 0.0 {
        return (cpu, 0.0);
    }
    (cpu * user / (user + kernel), cpu * kernel / (user + kernel))
}

/// Seconds in which a side's threads waited for memory, by the kernel's delay accounting; 0 where it is off.
fn paging_delay(t: &Totals, side: &str) -> f64 {
    ["swap_in", "reclaim", "thrashing", "compaction"].iter().map(|d| t.get(&format!("{side}.delay.{d}.seconds"))).sum()
}

/// Seconds that a side waited for a CPU after having waited for the other side: it held no transaction yet.
fn after_idle(t: &Totals, side: &str) -> f64 {
    t.get(&format!("{side}.runqueue_after_idle.seconds")).min(t.get(&format!("{side}.runqueue.seconds")))
}

/// Seconds that a side waited for a CPU after having been preempted.
fn preempted(t: &Totals, side: &str) -> f64 {
    (t.get(&format!("{side}.runqueue.seconds")) - after_idle(t, side)).max(0.0)
}

/// A list of parts in seconds of the whole pass.
#[derive(Default)]
struct Parts(Vec<(Layer, String, f64)>);

impl Parts {
    fn add(&mut self, layer: Layer, component: &str, seconds: f64) {
        if seconds <= 0.0 {
            return;
        }
        match self.0.iter_mut().find(|p| p.0 == layer && p.1 == component) {
            Some(part) => part.2 += seconds,
            None => self.0.push((layer, component.to_owned(), seconds)),
        }
    }

    /// Waiting for a CPU after having been preempted, of both sides, as far as it fits into what is left of `wall`: who was preempted
    /// when its answer had been sent holds no transaction.
    fn add_preempted(&mut self, t: &Totals, wall: f64) {
        let (server, client) = (preempted(t, "server"), preempted(t, "client"));
        let kept = if server + client > 0.0 { ((wall - self.sum()) / (server + client)).clamp(0.0, 1.0) } else { 1.0 };
        self.add(Layer::Scheduler, component::RUN_QUEUE, server * kept);
        self.add(Layer::Client, component::CLIENT_RUN_QUEUE, client * kept);
    }

    fn sum(&self) -> f64 {
        self.0.iter().map(|p| p.2).sum()
    }

    /// The kernel's seconds, by system call where the trace told.
    fn add_kernel(&mut self, t: &Totals, kernel: f64, wall: f64, idle: Idle) {
        let calls: Vec<(&str, f64)> =
            t.between("server.call.", ".cpu_seconds").map(|(call, s)| (call, (s - idle.in_call(t, "server", call)).max(0.0))).collect();
        let traced: f64 = calls.iter().map(|c| c.1).sum();
        if traced <= 0.0 {
            return self.add(Layer::Kernel, component::KERNEL, kernel);
        }
        let scale = (kernel / traced).min(1.0);
        let mut small = 0.0;
        for (name, seconds) in calls {
            let seconds = seconds * scale;
            if seconds < SMALL * wall {
                small += seconds;
            } else {
                self.add(Layer::Kernel, &format!("{}: {name}", component::KERNEL), seconds);
            }
        }
        self.add(Layer::Kernel, &format!("{}: other calls", component::KERNEL), small);
        self.add(Layer::Kernel, &format!("{}: faults and interrupts", component::KERNEL), kernel - traced * scale);
    }

    /// Blocked time by cause. Where the kernel accounts for delays, what waited for memory is known better than by the thread's state,
    /// which is that of a wait for any device: what is more than the states say is taken from the wait for the disk.
    fn add_blocked(&mut self, t: &Totals, side: &str) {
        let blocked = |what: &str| t.get(&format!("{side}.blocked.{what}.seconds"));
        let paging = (paging_delay(t, side) - blocked("memory")).clamp(0.0, blocked("disk"));
        for (what, layer, name) in BLOCKED {
            let moved = match *what {
                "memory" => paging,
                "disk" => -paging,
                _ => 0.0,
            };
            self.add(*layer, name, blocked(what) + moved);
        }
    }

    /// Turns seconds of the whole pass into parts of one transaction.
    fn into_budget(mut self, wall: f64, transactions: u64, seconds_per_transaction: f64) -> Budget {
        self.0.sort_by(|a, b| b.2.total_cmp(&a.2));
        let share = |seconds: f64| if wall > 0.0 { seconds / wall } else { 0.0 };
        let unexplained = Some(1.0 - share(self.sum())).filter(|rest| rest.abs() > ROUNDING).unwrap_or(0.0);
        let part = |(layer, component, seconds): (Layer, String, f64)| Part {
            layer,
            component,
            seconds_per_transaction: share(seconds) * seconds_per_transaction,
            share: share(seconds),
        };
        Budget {
            workload: String::new(),
            params: Params::new(),
            transactions,
            seconds_per_transaction,
            parts: self.0.into_iter().map(part).collect(),
            unexplained: if wall > 0.0 { unexplained } else { 1.0 },
        }
    }
}

/// Whether so many threads serve so many clients one to one, some of them seen too late or too early: then what a thread waits for
/// is what its client waits for.
pub(crate) fn own_threads(threads: f64, clients: f64) -> bool {
    threads >= 0.8 * clients
}

/// The budget of one transaction of a workload. The caller fills in the workload's name and parameters.
pub fn budget(step: &StepFigures, t: &Totals) -> Budget {
    let wall = step.clients * step.elapsed_s;
    let mut parts = Parts::default();
    // Where few threads serve many connections, the sockets tell what waits; else the threads do.
    let threads = own_threads(t.get("server.threads"), step.clients);
    let idle = if threads { Idle::AfterSend } else { Idle::AfterSendAndBeforeRead };
    let (user, kernel) = user_and_kernel(t, "server", idle);
    parts.add(Layer::Application, component::USER, user);
    parts.add_kernel(t, kernel, wall, idle);
    parts.add_blocked(t, "server");
    if t.get("client.threads") + t.get("client.threads.parked") > 0.0 {
        let (user, kernel) = user_and_kernel(t, "client", idle);
        parts.add(Layer::Client, component::CLIENT, user + kernel);
        if threads {
            add_client_of_threads(&mut parts, step, t);
        } else {
            add_client_and_queues(&mut parts, step, t);
        }
    } else {
        parts.add(Layer::Scheduler, component::RUN_QUEUE, t.get("server.runqueue.seconds"));
    }
    parts.into_budget(wall, step.measured.map_or(step.transactions, |m| m.0), step.seconds_per_transaction())
}

fn add_client_and_queues(parts: &mut Parts, step: &StepFigures, t: &Totals) {
    // With a thread per client its own waits hold its transaction up; a few threads' waits are not any one transaction's.
    if own_threads(t.get("client.threads"), step.clients) {
        let own = ["lock", "disk", "commit", "timer", "memory"];
        parts.add(Layer::Client, component::CLIENT_WAITS, own.iter().map(|w| t.get(&format!("client.blocked.{w}.seconds"))).sum());
    }
    let wall = step.clients * step.elapsed_s;
    let sampled = t.get("sockets.samples") > 0.0 && t.get("connections.mean") > 0.0;
    let [server, client, on_the_way] = if !sampled {
        [after_idle(t, "server"), after_idle(t, "client"), 0.0]
    } else if samples_are_slow(step, t) {
        bracketed(t, (wall - parts.sum() - preempted(t, "server") - preempted(t, "client")).max(0.0))
    } else {
        ["queue.server.mean", "queue.client.mean", "queue.network.mean"].map(|q| t.get(q) * t.get("elapsed.seconds"))
    };
    // A client or server that waits for a CPU before it reads shows in the queue already: the run queue is taken out of it.
    let woken = [after_idle(t, "server").min(server), after_idle(t, "client").min(client)];
    parts.add(Layer::Scheduler, component::RUN_QUEUE, woken[0]);
    parts.add(Layer::Application, component::AT_SERVER, server - woken[0]);
    parts.add(Layer::Client, component::CLIENT_RUN_QUEUE, woken[1]);
    parts.add(Layer::Client, component::AT_CLIENT, client - woken[1]);
    parts.add(Layer::Network, component::ON_THE_WAY, on_the_way);
    parts.add_preempted(t, wall);
    if sampled {
        let busy = busy_loop(t, "server", step).max(busy_loop(t, "client", step));
        parts.add(Layer::Application, component::OWN_QUEUE, (wall - parts.sum()) * busy);
    }
}

/// Whether a transaction is over before a sample of the sockets is. A sampler that takes a CPU for as long as a transaction lasts finds
/// all of them waiting, for what it took.
fn samples_are_slow(step: &StepFigures, t: &Totals) -> bool {
    let wall = step.clients * step.elapsed_s / (step.transactions.max(1) as f64);
    t.get("sockets.sample.seconds") > 0.5 * wall && t.find("trace.queue.server.mean").is_some()
}

/// Seconds of waiting at the server, at the client and on the way, of which there is room for so many. What the trace counts is the least
/// that they can be, for it misses what never goes away; what slow samples see is the most. Between the two, the room decides; where
/// even the least does not fit, or the most does not fill it, the rest of the budget says so.
fn bracketed(t: &Totals, room: f64) -> [f64; 3] {
    let observed = t.get("elapsed.seconds");
    let least = [t.get("trace.queue.server.mean") * observed, t.get("trace.queue.client.mean") * observed, 0.0];
    let seen = ["queue.server.mean", "queue.client.mean", "queue.network.mean"].map(|q| t.get(q) * observed);
    let span: f64 = least.iter().zip(seen).map(|(l, s)| (s - l).max(0.0)).sum();
    let share = if span > 0.0 { ((room - least.iter().sum::<f64>()) / span).clamp(0.0, 1.0) } else { 0.0 };
    [0, 1, 2].map(|i| least[i] + share * (seen[i] - least[i]).max(0.0))
}

/// The rest of the budget of a server with a thread per connection.
fn add_client_of_threads(parts: &mut Parts, step: &StepFigures, t: &Totals) {
    parts.add(Layer::Scheduler, component::RUN_QUEUE, after_idle(t, "server"));
    parts.add(Layer::Client, component::CLIENT_RUN_QUEUE, after_idle(t, "client"));
    parts.add_preempted(t, step.clients * step.elapsed_s);
    let queues = [
        (Layer::Application, component::AT_SERVER, "queue.server.mean"),
        (Layer::Client, component::AT_CLIENT, "queue.client.mean"),
        (Layer::Network, component::ON_THE_WAY, "queue.network.mean"),
    ]
    .map(|(layer, name, total)| (layer, name, t.get(total) * t.get("elapsed.seconds")));
    let queued: f64 = queues.iter().map(|q| q.2).sum();
    let left = (step.clients * step.elapsed_s - parts.sum()).max(0.0);
    let kept = if queued > 0.0 { (left / queued).min(1.0) } else { 0.0 };
    for (layer, name, seconds) in queues {
        parts.add(layer, name, seconds * kept);
    }
}

/// The share of the time, 0 to 1, in which a side's threads were not idle, where it has fewer threads than connections.
fn busy_loop(t: &Totals, side: &str, step: &StepFigures) -> f64 {
    let get = |what: &str| t.get(&format!("{side}.{what}"));
    let (threads, wall) = (get("threads"), get("wall.seconds"));
    if threads <= 0.0 || own_threads(threads, step.clients) || wall <= 0.0 {
        return 0.0;
    }
    ((get("cpu.seconds") + get("runqueue.seconds")) / wall).min(1.0)
}

/// Where the wall time of any command went: the time of all its threads, but for waiting for its own children, as shares of the
/// wall time. Children that ended before they were looked at count with the CPU time that their parents waited for.
pub fn command_budget(elapsed_s: f64, t: &Totals) -> Budget {
    let mut parts = Parts::default();
    let (user, kernel) = (t.get("server.user.seconds"), t.get("server.kernel.seconds"));
    let (thread_user, thread_kernel) = all_user_and_kernel(t, "server");
    // Ticks are coarse for a short command, the scheduler's account misses threads that ended: the larger is nearer.
    let (user, kernel) = if user + kernel > thread_user + thread_kernel { (user, kernel) } else { (thread_user, thread_kernel) };
    let seen = t.get("server.wall.seconds") - t.get("server.blocked.child.seconds");
    let wall = seen.max(user + kernel + t.get("server.runqueue.seconds"));
    parts.add(Layer::Application, "user code", user);
    parts.add_kernel(t, kernel, wall, Idle::AfterSend);
    parts.add(Layer::Scheduler, component::RUN_QUEUE, t.get("server.runqueue.seconds"));
    for (what, layer, name) in BLOCKED.iter().filter(|b| b.0 != "child") {
        parts.add(*layer, name, t.get(&format!("server.blocked.{what}.seconds")));
    }
    parts.into_budget(wall, 1, elapsed_s)
}

#[cfg(test)]
mod tests;
