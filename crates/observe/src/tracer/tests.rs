use super::*;

const MS: u64 = 1_000_000;

/// Events of process 10 (threads 10 and 11) on one CPU, times in milliseconds.
fn at(ms: u64, tid: i32, what: What) -> Event {
    Event {
        time: ms * MS,
        cpu: 0,
        pid: if tid == 0 { 0 } else { 10 },
        tid,
        what,
        interrupt: false,
    }
}

fn run(events: &[Event], end_ms: u64, role: Role) -> Tracer {
    let mut tracer = Tracer::default();
    tracer.watch(10, 10, role);
    tracer.watch(10, 11, role);
    tracer.open(0);
    for e in events {
        tracer.event(e, &mut |_, _| Fd::File);
    }
    tracer.close(end_ms * MS, &mut |_, _| Fd::File);
    tracer
}

fn enter(number: libc::c_long) -> What {
    What::Enter {
        call: number as i32,
        args: [0; 2],
    }
}

fn exit(number: libc::c_long) -> What {
    What::Exit {
        call: number as i32,
        result: 1,
    }
}

fn thread(tracer: Tracer, tid: i32) -> Traced {
    tracer.into_threads().remove(&tid).unwrap().2
}

fn near(a: f64, ms: f64) {
    assert!(
        (a * 1e3 - ms).abs() < 1e-6,
        "{} ms instead of {ms} ms",
        a * 1e3
    );
}

#[test]
fn a_read_that_waits_for_the_disk_is_cpu_blocked_and_ready() {
    let tracer = run(
        &[
            at(2, 10, enter(libc::SYS_read)),
            at(
                3,
                10,
                What::Switch {
                    left: Left::Blocked,
                    next: 0,
                },
            ),
            at(8, 0, What::Waking { who: 10, target: 0 }),
            at(
                9,
                0,
                What::Switch {
                    left: Left::Ready,
                    next: 10,
                },
            ),
            at(10, 10, exit(libc::SYS_read)),
        ],
        12,
        Role::Whole,
    );
    near(tracer.ready_while_idle, 1.0);
    let t = thread(tracer, 10);
    near(t.on_cpu, 2.0 + 1.0 + 1.0 + 2.0);
    near(t.blocked[Wait::Disk as usize], 5.0);
    near(t.ready, 1.0);
    let call = t.calls[&libc::SYS_read];
    assert_eq!(call.count, 1);
    near(call.seconds, 8.0);
    near(call.on_cpu, 2.0);
}

#[test]
fn a_call_that_began_before_the_window_is_named_by_its_exit() {
    let tracer = run(
        &[
            at(4, 0, What::Waking { who: 10, target: 0 }),
            at(
                5,
                0,
                What::Switch {
                    left: Left::Ready,
                    next: 10,
                },
            ),
            at(6, 10, exit(libc::SYS_futex)),
            at(
                7,
                10,
                What::Switch {
                    left: Left::Ready,
                    next: 11,
                },
            ),
        ],
        10,
        Role::Whole,
    );
    let t = thread(tracer, 10);
    near(t.blocked[Wait::Lock as usize], 4.0);
    near(t.on_cpu, 2.0);
    near(t.ready, 1.0 + 3.0);
}

#[test]
fn who_only_comes_was_ready_and_who_only_leaves_was_running() {
    let tracer = run(
        &[at(
            4,
            10,
            What::Switch {
                left: Left::Ready,
                next: 11,
            },
        )],
        10,
        Role::Whole,
    );
    let threads = tracer.into_threads();
    near(threads[&10].2.on_cpu, 4.0);
    near(threads[&10].2.ready, 6.0);
    near(threads[&11].2.ready, 4.0);
    near(threads[&11].2.on_cpu, 6.0);
}

#[test]
fn a_lock_handed_over_by_a_sibling_is_counted_as_such() {
    let futex = libc::SYS_futex;
    let tracer = run(
        &[
            at(1, 10, enter(futex)),
            at(
                2,
                10,
                What::Switch {
                    left: Left::Blocked,
                    next: 11,
                },
            ),
            at(6, 11, What::Waking { who: 10, target: 0 }),
            at(
                7,
                11,
                What::Switch {
                    left: Left::Blocked,
                    next: 10,
                },
            ),
            at(8, 10, exit(futex)),
        ],
        10,
        Role::Whole,
    );
    let t = thread(tracer, 10);
    near(t.blocked[Wait::Lock as usize], 4.0);
    assert_eq!((t.woken_by_sibling, t.woken_otherwise), (1, 0));
}

#[test]
fn waiting_for_a_sibling_at_the_disk_is_a_group_commit() {
    let tracer = run(
        &[
            at(1, 10, enter(libc::SYS_futex)),
            at(
                2,
                10,
                What::Switch {
                    left: Left::Blocked,
                    next: 11,
                },
            ),
            at(2, 11, enter(libc::SYS_fsync)),
            at(
                3,
                11,
                What::Switch {
                    left: Left::Blocked,
                    next: 0,
                },
            ),
            at(9, 0, What::Waking { who: 11, target: 0 }),
            at(
                9,
                0,
                What::Switch {
                    left: Left::Ready,
                    next: 11,
                },
            ),
            at(9, 11, exit(libc::SYS_fsync)),
            at(10, 11, What::Waking { who: 10, target: 0 }),
        ],
        10,
        Role::Whole,
    );
    let threads = tracer.into_threads();
    near(threads[&10].2.blocked[Wait::Commit as usize], 8.0);
    near(threads[&10].2.blocked[Wait::Lock as usize], 0.0);
    near(threads[&11].2.blocked[Wait::Disk as usize], 6.0);
}

#[test]
fn readiness_after_a_request_is_told_from_preemption() {
    let tracer = run(
        &[
            at(0, 10, enter(libc::SYS_epoll_pwait)),
            at(
                1,
                10,
                What::Switch {
                    left: Left::Blocked,
                    next: 77,
                },
            ),
            at(5, 77, What::Waking { who: 10, target: 0 }),
            at(
                8,
                77,
                What::Switch {
                    left: Left::Ready,
                    next: 10,
                },
            ),
            at(8, 10, exit(libc::SYS_epoll_pwait)),
            at(
                9,
                10,
                What::Switch {
                    left: Left::Ready,
                    next: 77,
                },
            ),
        ],
        10,
        Role::Server,
    );
    assert_eq!(
        tracer.ready_while_idle, 0.0,
        "the CPU was busy with another thread"
    );
    let t = thread(tracer, 10);
    near(t.blocked[Wait::Idle as usize], 4.0);
    near(t.ready, 4.0);
    near(t.ready_after_idle, 3.0);
}

#[test]
fn a_poll_that_times_out_waited_for_time() {
    let tracer = run(
        &[
            at(3, 0, What::Waking { who: 10, target: 0 }),
            at(
                3,
                0,
                What::Switch {
                    left: Left::Ready,
                    next: 10,
                },
            ),
            at(
                3,
                10,
                What::Exit {
                    call: libc::SYS_ppoll as i32,
                    result: 0,
                },
            ),
        ],
        5,
        Role::Whole,
    );
    near(thread(tracer, 10).blocked[Wait::Timer as usize], 3.0);
}

#[test]
fn blocked_outside_a_call_is_a_page_fault() {
    let tracer = run(
        &[
            at(0, 10, exit(libc::SYS_getppid)),
            at(
                1,
                10,
                What::Switch {
                    left: Left::Blocked,
                    next: 0,
                },
            ),
            at(6, 0, What::Waking { who: 10, target: 0 }),
        ],
        6,
        Role::Whole,
    );
    near(thread(tracer, 10).blocked[Wait::Memory as usize], 5.0);
}

#[test]
fn new_threads_and_processes_of_a_watched_one_are_watched() {
    let child = Event {
        interrupt: false,
        time: 3 * MS,
        cpu: 0,
        pid: 12,
        tid: 12,
        what: enter(libc::SYS_getpid),
    };
    let tracer = run(
        &[
            at(1, 10, What::Fork { child: 12 }),
            at(
                2,
                10,
                What::Switch {
                    left: Left::Blocked,
                    next: 12,
                },
            ),
            child,
        ],
        5,
        Role::Server,
    );
    let threads = tracer.into_threads();
    assert_eq!((threads[&12].0, threads[&12].1), (12, Role::Server));
    near(threads[&12].2.on_cpu, 3.0);
    near(threads[&12].2.ready, 1.0);
}

#[test]
fn silent_threads_are_asked_for_and_then_told() {
    let mut tracer = Tracer::default();
    tracer.watch(10, 10, Role::Whole);
    tracer.open(0);
    assert_eq!(tracer.close(10 * MS, &mut |_, _| Fd::File), [(10, 10)]);
    tracer.whole_window(10, 0.010, Some(Wait::Child));
    near(thread(tracer, 10).blocked[Wait::Child as usize], 10.0);
}

#[test]
fn strangers_are_left_out() {
    let tracer = run(
        &[Event {
            interrupt: false,
            time: MS,
            cpu: 0,
            pid: 99,
            tid: 99,
            what: enter(libc::SYS_read),
        }],
        5,
        Role::Whole,
    );
    assert!(!tracer.into_threads().contains_key(&99));
}

#[test]
fn an_uninterruptible_wait_is_a_devices_whatever_descriptor() {
    let mut tracer = Tracer::default();
    tracer.watch(10, 10, Role::Whole);
    tracer.open(0);
    let events = [
        at(0, 10, enter(libc::SYS_read)),
        at(
            1,
            10,
            What::Switch {
                left: Left::Uninterruptible,
                next: 0,
            },
        ),
        at(5, 0, What::Waking { who: 10, target: 0 }),
    ];
    for e in &events {
        tracer.event(e, &mut |_, _| Fd::Pipe);
    }
    near(thread(tracer, 10).blocked[Wait::Disk as usize], 4.0);
}

#[test]
fn a_wait_whose_end_an_idle_cpu_hid_is_booked_all_the_same() {
    let recv = libc::SYS_recvfrom;
    let tracer = run(
        &[
            at(0, 10, exit(recv)),
            // A fault that is read in; the next event is the thread's own.
            at(
                1,
                10,
                What::Switch {
                    left: Left::Uninterruptible,
                    next: 0,
                },
            ),
            at(6, 10, enter(recv)),
            at(
                7,
                10,
                What::Switch {
                    left: Left::Blocked,
                    next: 0,
                },
            ),
            // Here the switch from the idle task is shown, and the waking is not.
            at(
                9,
                0,
                What::Switch {
                    left: Left::Ready,
                    next: 10,
                },
            ),
            at(10, 10, exit(recv)),
        ],
        10,
        Role::Server,
    );
    assert_eq!(tracer.ready_while_idle, 0.0);
    let t = thread(tracer, 10);
    near(t.blocked[Wait::Memory as usize], 5.0);
    near(t.blocked[Wait::Idle as usize], 2.0);
    near(t.ready, 0.0);
    assert!(t.asked);
}

#[test]
fn what_comes_to_an_idle_cpu_unwoken_was_not_ready_before() {
    let tracer = run(
        &[
            at(
                4,
                0,
                What::Switch {
                    left: Left::Ready,
                    next: 10,
                },
            ),
            at(5, 10, exit(libc::SYS_fsync)),
        ],
        5,
        Role::Server,
    );
    let t = thread(tracer, 10);
    near(t.blocked[Wait::Disk as usize], 4.0);
    near(t.ready, 0.0);
    assert!(!t.asked);
}
