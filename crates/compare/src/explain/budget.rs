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
//!   3. *on the way*: written, not arrived. Measured in the same samples by comparing both ends' byte counts;
//!   4. *waiting at the client*: its answer lies in the client's socket unread;
//!   5. *in service at the client*: the client's threads' user, kernel and run-queue time but for what belongs to (4).
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
pub(super) mod component {
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

/// Seconds of a side's threads in user code and in the kernel: the scheduler's exact CPU time, split as the ticks split it.
fn user_and_kernel(t: &Totals, side: &str) -> (f64, f64) {
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

/// Seconds that a side waited for a CPU after having waited for the other side: it held no transaction yet.
fn after_idle(t: &Totals, side: &str) -> f64 {
    t.get(&format!("{side}.runqueue_after_idle.seconds")).min(t.get(&format!("{side}.runqueue.seconds")))
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
        let held = |side: &str| (t.get(&format!("{side}.runqueue.seconds")) - after_idle(t, side)).max(0.0);
        let (server, client) = (held("server"), held("client"));
        let kept = if server + client > 0.0 { ((wall - self.sum()) / (server + client)).clamp(0.0, 1.0) } else { 1.0 };
        self.add(Layer::Scheduler, component::RUN_QUEUE, server * kept);
        self.add(Layer::Client, component::CLIENT_RUN_QUEUE, client * kept);
    }

    fn sum(&self) -> f64 {
        self.0.iter().map(|p| p.2).sum()
    }

    /// The kernel's seconds, by system call where the trace told.
    fn add_kernel(&mut self, t: &Totals, kernel: f64, wall: f64) {
        let calls: Vec<(&str, f64)> = t.between("server.call.", ".cpu_seconds").collect();
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

    fn add_blocked(&mut self, t: &Totals, side: &str) {
        for (what, layer, name) in BLOCKED {
            self.add(*layer, name, t.get(&format!("{side}.blocked.{what}.seconds")));
        }
    }

    /// Turns seconds of the whole pass into parts of one transaction.
    fn into_budget(mut self, wall: f64, transactions: u64, seconds_per_transaction: f64) -> Budget {
        self.0.sort_by(|a, b| b.2.total_cmp(&a.2));
        let share = |seconds: f64| if wall > 0.0 { seconds / wall } else { 0.0 };
        let unexplained = 1.0 - share(self.sum());
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

/// The budget of one transaction of a workload. The caller fills in the workload's name and parameters.
pub fn budget(step: &StepFigures, t: &Totals) -> Budget {
    let wall = step.clients * step.elapsed_s;
    let mut parts = Parts::default();
    let (user, kernel) = user_and_kernel(t, "server");
    parts.add(Layer::Application, component::USER, user);
    parts.add_kernel(t, kernel, wall);
    parts.add_blocked(t, "server");
    if t.get("client.threads") + t.get("client.threads.parked") > 0.0 {
        add_client_and_queues(&mut parts, step, t);
    } else {
        parts.add(Layer::Scheduler, component::RUN_QUEUE, t.get("server.runqueue.seconds"));
    }
    parts.into_budget(wall, step.measured.map_or(step.transactions, |m| m.0), step.seconds_per_transaction())
}

fn add_client_and_queues(parts: &mut Parts, step: &StepFigures, t: &Totals) {
    if t.get("server.threads") >= 0.8 * step.clients {
        return add_client_of_threads(parts, step, t);
    }
    let observed = t.get("elapsed.seconds");
    let sampled = t.get("sockets.samples") > 0.0 && t.get("connections.mean") > 0.0;
    // A client or server that waits before it reads shows in the sockets already: the run queue is taken out of the queue.
    let queue = |name: &str, after_idle: f64| {
        let seconds = if sampled { t.get(name) * observed } else { after_idle };
        (after_idle.min(seconds), (seconds - after_idle).max(0.0))
    };
    let (user, kernel) = user_and_kernel(t, "client");
    parts.add(Layer::Client, component::CLIENT, user + kernel);
    // With a thread per client its own waits hold its transaction up; a few threads' waits are not any one transaction's.
    if t.get("client.threads") >= 0.8 * step.clients {
        let own = ["lock", "disk", "commit", "timer", "memory"];
        parts.add(Layer::Client, component::CLIENT_WAITS, own.iter().map(|w| t.get(&format!("client.blocked.{w}.seconds"))).sum());
    }
    let (woken, behind) = queue("queue.server.mean", after_idle(t, "server"));
    parts.add(Layer::Scheduler, component::RUN_QUEUE, woken);
    parts.add(Layer::Application, component::AT_SERVER, behind);
    let (woken, behind) = queue("queue.client.mean", after_idle(t, "client"));
    parts.add(Layer::Client, component::CLIENT_RUN_QUEUE, woken);
    parts.add(Layer::Client, component::AT_CLIENT, behind);
    parts.add(Layer::Network, component::ON_THE_WAY, t.get("queue.network.mean") * observed);
    let wall = step.clients * step.elapsed_s;
    parts.add_preempted(t, wall);
    if sampled {
        let busy = busy_loop(t, "server", step).max(busy_loop(t, "client", step));
        parts.add(Layer::Application, component::OWN_QUEUE, (wall - parts.sum()) * busy);
    }
}

/// The rest of the budget of a server with a thread per connection.
fn add_client_of_threads(parts: &mut Parts, step: &StepFigures, t: &Totals) {
    let (user, kernel) = user_and_kernel(t, "client");
    parts.add(Layer::Scheduler, component::RUN_QUEUE, after_idle(t, "server"));
    parts.add(Layer::Client, component::CLIENT, user + kernel);
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
    if threads <= 0.0 || threads >= 0.8 * step.clients || wall <= 0.0 {
        return 0.0;
    }
    ((get("cpu.seconds") + get("runqueue.seconds")) / wall).min(1.0)
}

/// Where the wall time of any command went: the time of all its threads, but for waiting for its own children, as shares of the
/// wall time. Children that ended before they were looked at count with the CPU time that their parents waited for.
pub fn command_budget(elapsed_s: f64, t: &Totals) -> Budget {
    let mut parts = Parts::default();
    let (user, kernel) = (t.get("server.user.seconds"), t.get("server.kernel.seconds"));
    let (thread_user, thread_kernel) = user_and_kernel(t, "server");
    // Ticks are coarse for a short command, the scheduler's account misses threads that ended: the larger is nearer.
    let (user, kernel) = if user + kernel > thread_user + thread_kernel { (user, kernel) } else { (thread_user, thread_kernel) };
    let seen = t.get("server.wall.seconds") - t.get("server.blocked.child.seconds");
    let wall = seen.max(user + kernel + t.get("server.runqueue.seconds"));
    parts.add(Layer::Application, "user code", user);
    parts.add_kernel(t, kernel, wall);
    parts.add(Layer::Scheduler, component::RUN_QUEUE, t.get("server.runqueue.seconds"));
    for (what, layer, name) in BLOCKED.iter().filter(|b| b.0 != "child") {
        parts.add(*layer, name, t.get(&format!("server.blocked.{what}.seconds")));
    }
    parts.into_budget(wall, 1, elapsed_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn totals(list: &[(&str, f64)]) -> Totals {
        Totals(list.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect())
    }

    fn share(b: &Budget, component: &str) -> f64 {
        b.parts.iter().filter(|p| p.component == component).map(|p| p.share).sum()
    }

    fn adds_up(b: &Budget) {
        let sum: f64 = b.parts.iter().map(|p| p.share).sum();
        assert!((sum + b.unexplained - 1.0).abs() < 1e-9);
        let seconds: f64 = b.parts.iter().map(|p| p.seconds_per_transaction).sum();
        assert!((seconds + b.unexplained * b.seconds_per_transaction - b.seconds_per_transaction).abs() < 1e-12);
    }

    #[test]
    fn an_embedded_program_is_taken_apart_by_its_threads() {
        let step = StepFigures { transactions: 1000, elapsed_s: 10.0, clients: 2.0, ..StepFigures::default() };
        let t = totals(&[
            ("server.threads", 2.0),
            ("server.cpu.seconds", 8.0),
            ("server.thread_user.seconds", 3.0),
            ("server.thread_kernel.seconds", 1.0),
            ("server.runqueue.seconds", 2.0),
            ("server.blocked.lock.seconds", 4.0),
            ("server.blocked.disk.seconds", 5.0),
            ("server.blocked.other.seconds", 0.5),
            ("server.call.pread64.cpu_seconds", 1.5),
            ("server.call.fcntl.cpu_seconds", 0.01),
        ]);
        let b = budget(&step, &t);
        adds_up(&b);
        assert_eq!(b.seconds_per_transaction, 0.02);
        assert!((share(&b, "server user code") - 0.3).abs() < 1e-9);
        assert!((share(&b, "kernel: pread64") - 0.075).abs() < 1e-9);
        assert!((share(&b, "kernel: other calls") - 0.0005).abs() < 1e-9);
        assert!((share(&b, "kernel: faults and interrupts") - 0.0245).abs() < 1e-9);
        assert!((share(&b, "waiting for a lock") - 0.2).abs() < 1e-9);
        assert!((b.unexplained - 0.05).abs() < 1e-9, "{}", b.unexplained);
    }

    #[test]
    fn calls_that_tracing_made_dear_are_scaled_to_the_kernels_own_account() {
        let step = StepFigures { transactions: 1, elapsed_s: 1.0, clients: 1.0, ..StepFigures::default() };
        let t = totals(&[
            ("server.cpu.seconds", 1.0),
            ("server.thread_user.seconds", 0.5),
            ("server.thread_kernel.seconds", 0.5),
            ("server.call.read.cpu_seconds", 0.6),
            ("server.call.write.cpu_seconds", 0.4),
        ]);
        let b = budget(&step, &t);
        assert!((share(&b, "kernel: read") - 0.3).abs() < 1e-9);
        assert!((share(&b, "kernel: write") - 0.2).abs() < 1e-9);
        assert!(b.unexplained.abs() < 1e-9);
    }

    #[test]
    fn an_event_loop_server_is_taken_apart_by_where_connections_are() {
        let step = StepFigures { transactions: 10_000, elapsed_s: 10.0, clients: 100.0, ..StepFigures::default() };
        let t = totals(&[
            ("elapsed.seconds", 10.0),
            ("server.cpu.seconds", 8.0),
            ("server.thread_user.seconds", 2.0),
            ("server.thread_kernel.seconds", 6.0),
            ("server.runqueue.seconds", 3.0),
            ("server.runqueue_after_idle.seconds", 2.0),
            ("client.threads", 1.0),
            ("client.cpu.seconds", 9.0),
            ("client.runqueue.seconds", 1.0),
            ("client.runqueue_after_idle.seconds", 0.5),
            ("sockets.samples", 500.0),
            ("connections.mean", 100.0),
            ("queue.server.mean", 60.0),
            ("queue.client.mean", 37.0),
            ("queue.network.mean", 0.5),
        ]);
        let b = budget(&step, &t);
        adds_up(&b);
        assert!((share(&b, "request waits for the server") - 0.598).abs() < 1e-9, "the run queue is not counted twice");
        assert!((share(&b, "waiting for a CPU") - 0.003).abs() < 1e-9);
        assert!((share(&b, "answer waits for the client") - 0.3695).abs() < 1e-9);
        assert!((b.unexplained - (1.0 - 0.008 - 0.003 - 0.598 - 0.009 - 0.001 - 0.3695 - 0.005)).abs() < 1e-9);
    }

    #[test]
    fn a_thread_that_is_busy_while_every_transaction_is_queued_holds_none() {
        let step = StepFigures { transactions: 1, elapsed_s: 10.0, clients: 2.0, ..StepFigures::default() };
        let t = totals(&[
            ("elapsed.seconds", 10.0),
            ("server.cpu.seconds", 3.0),
            ("server.runqueue.seconds", 5.0),
            ("client.threads", 1.0),
            ("client.cpu.seconds", 2.0),
            ("sockets.samples", 500.0),
            ("connections.mean", 2.0),
            ("queue.server.mean", 0.5),
            ("queue.client.mean", 1.0),
        ]);
        let b = budget(&step, &t);
        adds_up(&b);
        assert!(b.unexplained.abs() < 1e-9, "{b:#?}");
        assert!((share(&b, "answer waits for the client") - 0.5).abs() < 1e-9);
        assert!((share(&b, "waiting for a CPU") - 0.0).abs() < 1e-9, "the preempted server held nothing: {b:#?}");
    }

    #[test]
    fn a_thread_per_connection_counts_by_its_own_account_and_sockets_explain_only_what_is_left() {
        let step = StepFigures { transactions: 1, elapsed_s: 10.0, clients: 2.0, ..StepFigures::default() };
        let mut t = totals(&[
            ("elapsed.seconds", 10.0),
            ("server.threads", 2.0),
            ("server.cpu.seconds", 6.0),
            ("server.runqueue.seconds", 2.0),
            ("server.runqueue_after_idle.seconds", 2.0),
            ("server.blocked.lock.seconds", 4.0),
            ("client.threads", 1.0),
            ("client.cpu.seconds", 4.0),
            ("sockets.samples", 500.0),
            ("connections.mean", 2.0),
            ("queue.server.mean", 0.6),
            ("queue.client.mean", 0.2),
        ]);
        let b = budget(&step, &t);
        adds_up(&b);
        assert!((share(&b, "waiting for a CPU") - 0.1).abs() < 1e-9);
        assert!((share(&b, "request waits for the server") - 0.15).abs() < 1e-9, "{b:#?}");
        assert!(b.unexplained.abs() < 1e-9);
        t.0.insert("queue.server.mean".into(), 0.1);
        t.0.insert("queue.client.mean".into(), 0.0);
        let b = budget(&step, &t);
        assert!((b.unexplained - 0.15).abs() < 1e-9, "what no socket shows stays unexplained: {b:#?}");
    }

    #[test]
    fn what_a_busy_event_loop_has_read_and_not_turned_to_is_in_its_own_queue() {
        let step = StepFigures { transactions: 1, elapsed_s: 10.0, clients: 10.0, ..StepFigures::default() };
        let t = totals(&[
            ("elapsed.seconds", 10.0),
            ("server.threads", 1.0),
            ("server.wall.seconds", 10.0),
            ("server.cpu.seconds", 5.0),
            ("client.threads", 1.0),
            ("client.wall.seconds", 10.0),
            ("client.cpu.seconds", 8.0),
            ("sockets.samples", 500.0),
            ("connections.mean", 10.0),
            ("queue.server.mean", 4.0),
        ]);
        let b = budget(&step, &t);
        adds_up(&b);
        assert!((share(&b, "in a program's own queue") - 0.8 * 0.47).abs() < 1e-9, "{b:#?}");
        assert!((b.unexplained - 0.2 * 0.47).abs() < 1e-9, "{b:#?}");
    }

    #[test]
    fn parts_are_scaled_to_the_measured_pass() {
        let step = StepFigures { transactions: 900, elapsed_s: 10.0, clients: 1.0, measured: Some((1000, 10.0)), ..StepFigures::default() };
        let t = totals(&[("server.cpu.seconds", 5.0)]);
        let b = budget(&step, &t);
        assert_eq!((b.transactions, b.seconds_per_transaction), (1000, 0.01));
        assert!((b.parts[0].seconds_per_transaction - 0.005).abs() < 1e-12);
    }

    #[test]
    fn a_command_that_waits_for_its_children_is_its_children() {
        let t = totals(&[
            ("server.wall.seconds", 20.0),
            ("server.blocked.child.seconds", 10.0),
            ("server.user.seconds", 6.0),
            ("server.kernel.seconds", 2.0),
            ("server.blocked.disk.seconds", 2.0),
        ]);
        let b = command_budget(10.0, &t);
        adds_up(&b);
        assert!((share(&b, "user code") - 0.6).abs() < 1e-9);
        assert!(b.unexplained.abs() < 1e-9);
    }

    #[test]
    fn nothing_observed_is_all_unexplained() {
        let b = budget(&StepFigures::default(), &Totals::default());
        assert_eq!((b.parts.len(), b.unexplained), (0, 1.0));
        assert_eq!(command_budget(1.0, &Totals::default()).unexplained, 1.0);
    }
}
