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
fn what_is_done_after_the_answer_was_sent_is_no_part_of_a_transaction() {
    let step = StepFigures { transactions: 1, elapsed_s: 10.0, clients: 1.0, ..StepFigures::default() };
    let mut t = totals(&[
        ("elapsed.seconds", 10.0),
        ("server.threads", 1.0),
        ("server.cpu.seconds", 6.0),
        ("server.thread_user.seconds", 2.0),
        ("server.thread_kernel.seconds", 4.0),
        ("server.after_send.seconds", 2.0),
        ("server.before_read.seconds", 1.0),
        ("server.call.sendto.cpu_seconds", 2.5),
        ("server.call.epoll_wait.cpu_seconds", 1.5),
        ("server.call.epoll_wait.after_send_seconds", 1.5),
        ("client.threads", 1.0),
        ("client.cpu.seconds", 7.0),
        ("client.after_send.seconds", 1.0),
    ]);
    let b = budget(&step, &t);
    adds_up(&b);
    assert!((share(&b, "server user code") - 0.15).abs() < 1e-9, "{b:#?}");
    assert!((share(&b, "kernel: sendto") - 0.25).abs() < 1e-9);
    assert_eq!(share(&b, "kernel: epoll_wait"), 0.0);
    assert!((share(&b, "client user and kernel") - 0.6).abs() < 1e-9);
    assert!(b.unexplained.abs() < 1e-9, "{b:#?}");
    // Where the sockets say what waits, being woken and not having read is waiting.
    t.0.insert("server.threads".into(), 0.5);
    assert!((share(&budget(&step, &t), "server user code") - 0.05).abs() < 1e-9);
}

#[test]
fn delay_accounting_tells_swap_from_the_disk() {
    let step = StepFigures { transactions: 1, elapsed_s: 10.0, clients: 1.0, ..StepFigures::default() };
    let mut t = totals(&[("server.blocked.disk.seconds", 6.0), ("server.blocked.memory.seconds", 1.0)]);
    t.0.insert("server.delay.swap_in.seconds".into(), 3.0);
    t.0.insert("server.delay.reclaim.seconds".into(), 0.5);
    let b = budget(&step, &t);
    adds_up(&b);
    assert!((share(&b, "waiting for memory") - 0.35).abs() < 1e-9, "{b:#?}");
    assert!((share(&b, "waiting for the disk") - 0.35).abs() < 1e-9);
    t.0.insert("server.delay.swap_in.seconds".into(), 0.1);
    let b = budget(&step, &t);
    assert!((share(&b, "waiting for memory") - 0.1).abs() < 1e-9, "the states' own account is never made smaller");
    t.0.insert("server.delay.swap_in.seconds".into(), 100.0);
    let b = budget(&step, &t);
    assert!((share(&b, "waiting for memory") - 0.7).abs() < 1e-9, "no more is moved than the disk has");
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
fn where_a_transaction_is_over_before_a_sample_the_trace_tells_what_waits() {
    let mut step = StepFigures { transactions: 1_000_000, elapsed_s: 10.0, clients: 2.0, ..StepFigures::default() };
    let t = totals(&[
        ("elapsed.seconds", 10.0),
        ("server.threads", 1.0),
        ("server.cpu.seconds", 8.0),
        ("client.threads", 1.0),
        ("client.cpu.seconds", 6.0),
        ("sockets.samples", 500.0),
        ("sockets.sample.seconds", 40e-6),
        ("connections.mean", 2.0),
        ("queue.server.mean", 0.9),
        ("queue.client.mean", 1.0),
        ("trace.queue.server.mean", 0.4),
        ("trace.queue.client.mean", 0.1),
    ]);
    let b = budget(&step, &t);
    adds_up(&b);
    // On CPUs: 14 of 20 s. The trace saw 5 s of waiting at least, the samples 19 at most; there is room for 6.
    assert!((share(&b, "request waits for the server") - (4.0 + 5.0 / 14.0) / 20.0).abs() < 1e-9, "{b:#?}");
    assert!((share(&b, "answer waits for the client") - (1.0 + 9.0 / 14.0) / 20.0).abs() < 1e-9);
    assert!(b.unexplained.abs() < 1e-9);
    let mut more = Totals(t.0.clone());
    more.0.insert("trace.queue.server.mean".into(), 0.8);
    let b = budget(&step, &more);
    assert!((b.unexplained - (6.0 - 9.0) / 20.0).abs() < 1e-9, "the least does not fit: {b:#?}");
    step.transactions = 10_000;
    assert!((share(&budget(&step, &t), "request waits for the server") - 0.45).abs() < 1e-9, "a sample is quick beside 2 ms");
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
fn what_adding_up_leaves_is_no_rest() {
    let t = totals(&[
        ("server.wall.seconds", 1.0),
        ("server.user.seconds", 0.3),
        ("server.blocked.timer.seconds", 0.6),
        ("server.blocked.disk.seconds", 0.1),
    ]);
    let b = command_budget(1.0, &t);
    let sum: f64 = b.parts.iter().map(|p| p.share).sum();
    assert_ne!(sum, 1.0, "these do not add up to 1 in floating point: {b:#?}");
    assert_eq!(b.unexplained, 0.0);
}

#[test]
fn nothing_observed_is_all_unexplained() {
    let b = budget(&StepFigures::default(), &Totals::default());
    assert_eq!((b.parts.len(), b.unexplained), (0, 1.0));
    assert_eq!(command_budget(1.0, &Totals::default()).unexplained, 1.0);
}
