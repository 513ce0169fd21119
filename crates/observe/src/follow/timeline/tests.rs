use super::super::tests::Story;
use super::*;

const READ: i64 = libc::SYS_read;
const FUTEX: i64 = libc::SYS_futex;

fn doing(t: &Timelines, tid: i32) -> Vec<(u64, u64, Doing)> {
    t.threads[&tid]
        .iter()
        .map(|s| (s.start, s.end, s.doing))
        .collect()
}

#[test]
fn spans_cover_the_window_and_a_wake_up_says_how_a_wait_ended() {
    let window = Story::default()
        .enter(10, 1, FUTEX)
        .switch(12, 1, Left::Blocked, 2)
        .waking(30, 2, 1)
        .switch(40, 2, Left::Ready, 1)
        .exit(42, 1, FUTEX)
        .window(0, 50);
    let t = timelines(&window);
    let blocked = Blocked {
        call: Some(FUTEX),
        fault: false,
        uninterruptible: false,
        memory: None,
        woken: Some(Woken {
            at: 30,
            by: 2,
            cause: Cause::Thread,
        }),
    };
    let expected = [
        (0, 10, Doing::User),
        (10, 12, Doing::Call(FUTEX)),
        (12, 30, Doing::Blocked(blocked)),
        (30, 40, Doing::Ready(0)),
        (40, 42, Doing::Call(FUTEX)),
        (42, 50, Doing::User),
    ];
    assert_eq!(doing(&t, 1), expected);
    assert_eq!(
        doing(&t, 2),
        [
            (0, 12, Doing::Ready(0)),
            (12, 40, Doing::User),
            (40, 50, Doing::Ready(0))
        ]
    );
    assert_eq!(
        t.running(0, 11, 41).collect::<Vec<_>>(),
        [(1, 11, 12), (2, 12, 40), (1, 40, 41)]
    );
}

#[test]
fn what_a_thread_was_in_at_opening_is_told_by_its_next_exit() {
    let window = Story::default()
        .waking(10, 2, 1)
        .switch(12, 2, Left::Ready, 1)
        .exit(15, 1, READ)
        .window(0, 20);
    let found = doing(&timelines(&window), 1);
    assert!(
        matches!(
            found[0],
            (
                0,
                10,
                Doing::Blocked(Blocked {
                    call: Some(READ),
                    ..
                })
            )
        ),
        "{found:?}"
    );
    assert_eq!(
        found[1..],
        [
            (10, 12, Doing::Ready(0)),
            (12, 15, Doing::Call(READ)),
            (15, 20, Doing::User)
        ]
    );
}

#[test]
fn a_wait_in_user_code_is_a_fault_and_a_kernel_threads_not() {
    let story =
        Story::default()
            .enter(1, 1, READ)
            .exit(2, 1, READ)
            .switch(5, 1, Left::Uninterruptible, 2);
    let window = story
        .switch(6, 2, Left::Uninterruptible, 0)
        .waking(8, 0, 1)
        .waking(9, 0, 2)
        .window(0, 10);
    let t = timelines(&window);
    let fault = |tid| {
        doing(&t, tid).iter().find_map(|s| {
            if let Doing::Blocked(b) = s.2 {
                Some(b.fault)
            } else {
                None
            }
        })
    };
    assert_eq!((fault(1), fault(2)), (Some(true), Some(false)));
}

#[test]
fn a_thread_that_acts_without_a_cpu_waited_for_nobody_knows() {
    let story = Story::default()
        .enter(1, 1, READ)
        .switch(5, 1, Left::Uninterruptible, 0);
    let blocked = doing(
        &timelines(&story.switch(30, 1, Left::Uninterruptible, 0).window(0, 40)),
        1,
    );
    assert_eq!(blocked[2], (5, 30, Doing::Unknown), "{blocked:?}");
    let story = Story::default()
        .enter(1, 1, READ)
        .switch(5, 1, Left::Blocked, 2)
        .waking(20, 2, 1);
    let ready = doing(&timelines(&story.exit(30, 1, READ).window(0, 40)), 1);
    assert!(
        matches!(ready[2].2, Doing::Blocked(_)) && ready[3] == (20, 30, Doing::Unknown),
        "{ready:?}"
    );
}

#[test]
fn a_wake_up_before_its_thread_left_is_one_that_never_waits() {
    let window = Story::default()
        .enter(10, 1, FUTEX)
        .on(1)
        .waking(11, 2, 1)
        .on(0)
        .switch(12, 1, Left::Blocked, 3)
        .window(0, 20);
    let found = doing(&timelines(&window), 1);
    assert_eq!(found.last(), Some(&(12, 20, Doing::Ready(0))));
}

#[test]
fn the_cause_of_a_wake_up_lies_before_it_in_the_interrupt() {
    let cause = |story: Story| {
        let t = timelines(&story.window(0, 100));
        t.threads[&1]
            .iter()
            .find_map(|s| {
                if let Doing::Blocked(b) = s.doing {
                    b.woken
                } else {
                    None
                }
            })
            .unwrap()
            .cause
    };
    let blocked = || {
        Story::default()
            .enter(1, 1, READ)
            .switch(2, 1, Left::Blocked, 2)
    };
    let io = Io {
        device: 1,
        sector: 8,
        sectors: 8,
        write: true,
    };
    assert_eq!(
        cause(
            blocked()
                .arrived(10, 2, 0xa)
                .in_interrupt()
                .waking(11, 2, 1)
                .in_interrupt()
        ),
        Cause::Arrival(0xa)
    );
    assert_eq!(
        cause(
            blocked()
                .disk(10, 2, super::super::event::DiskStep::Completed)
                .in_interrupt()
                .waking(11, 2, 1)
                .in_interrupt()
        ),
        Cause::Disk(io)
    );
    assert_eq!(
        cause(blocked().waking(11, 2, 1).in_interrupt()),
        Cause::Interrupt
    );
    assert_eq!(cause(blocked().waking(11, 2, 1)), Cause::Thread);
    assert_eq!(
        cause(
            blocked()
                .arrived(10, 2, 0xa)
                .enter(11, 2, FUTEX)
                .waking(12, 2, 1)
        ),
        Cause::Thread,
        "another call"
    );
}

#[test]
fn interrupts_and_memory_work_are_told_from_what_they_cut() {
    let story = Story::default().enter(1, 1, READ).exit(2, 1, READ);
    let kind = InterruptKind::Timer;
    let story = story
        .then(5, 1, What::Interrupt { kind, begin: true })
        .then(6, 1, What::Interrupt { kind, begin: false });
    let work = MemoryWork::Reclaim;
    let story = story.then(8, 1, What::Memory { work, begin: true }).then(
        9,
        1,
        What::Memory { work, begin: false },
    );
    let found = doing(&timelines(&story.window(0, 10)), 1);
    assert_eq!(
        found[2..],
        [
            (2, 5, Doing::User),
            (5, 6, Doing::Interrupt(kind)),
            (6, 8, Doing::User),
            (8, 9, Doing::Memory(work)),
            (9, 10, Doing::User),
        ]
    );
}
