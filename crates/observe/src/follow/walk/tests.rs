use super::super::event::{DiskStep, Io, Left, What};
use super::super::source::Window;
use super::super::tests::Story;
use super::super::timeline::timelines;
use super::*;

const FUTEX: i64 = libc::SYS_futex;
const FSYNC: i64 = libc::SYS_fsync;

/// Threads 101.. are the server's, 201.. the client's, others nobody's.
fn walked(
    window: &Window,
    tid: i32,
    from: u64,
    to: u64,
) -> Vec<(u64, u64, Kind, Whom, Vec<&'static str>)> {
    walked_on(&[], window, tid, from, to)
}

fn walked_on(
    cpus: &[u16],
    window: &Window,
    tid: i32,
    from: u64,
    to: u64,
) -> Vec<(u64, u64, Kind, Whom, Vec<&'static str>)> {
    let timelines = timelines(window);
    let mut connections = Connections::default();
    let sockets = Sockets::of(&window.events, &timelines, &mut connections);
    let disks = Disks::of(&window.events);
    let sides = HashMap::from([(100, Side::Server), (200, Side::Client)]);
    let walker = Walker {
        timelines: &timelines,
        sockets: &sockets,
        connections: &connections,
        disks: &disks,
        sides: &sides,
        children: &HashMap::from([(KTHREADD, vec![401])]),
        cpus,
    };
    let mut pieces = Vec::new();
    walker.walk(tid, from, to, Chain::default(), &mut pieces);
    let mut reached = from;
    for p in &pieces {
        assert_eq!(p.start, reached, "no gap and no overlap");
        reached = p.end;
    }
    assert_eq!(reached, to);
    pieces
        .iter()
        .map(|p| {
            (
                p.start,
                p.end,
                p.leaf.kind,
                p.leaf.whom,
                p.leaf.chain.links().map(Link::as_str).collect(),
            )
        })
        .collect()
}

#[test]
fn a_lock_is_what_its_holder_did_its_disk_included() {
    // 101 waits for a lock that 102 holds, which syncs meanwhile.
    let window = Story::default()
        .on(1)
        .enter(5, 102, FSYNC)
        .disk(6, 102, DiskStep::Submitted)
        .disk(8, 102, DiskStep::Issued)
        .switch(9, 102, Left::Uninterruptible, 0)
        .on(0)
        .enter(10, 101, FUTEX)
        .switch(11, 101, Left::Blocked, 0)
        .on(1)
        .disk(40, 0, DiskStep::Completed)
        .in_interrupt()
        .waking(41, 0, 102)
        .in_interrupt()
        .switch(43, 0, Left::Ready, 102)
        .exit(45, 102, FSYNC)
        .enter(50, 102, FUTEX)
        .waking(51, 102, 101)
        .on(0)
        .switch(55, 0, Left::Ready, 101)
        .exit(56, 101, FUTEX)
        .window(0, 60);
    let lock = || vec!["lock"];
    let none = Whom::Nobody;
    assert_eq!(
        walked(&window, 101, 0, 60),
        [
            (0, 10, Kind::User, none, vec![]),
            (10, 11, Kind::Call(FUTEX), none, vec![]),
            (11, 40, Kind::DiskDevice, none, lock()),
            (40, 41, Kind::DiskOther, none, lock()),
            (41, 43, Kind::Cpu, Whom::Idle, lock()),
            (43, 45, Kind::Call(FSYNC), none, lock()),
            (45, 50, Kind::User, none, lock()),
            (50, 51, Kind::Call(FUTEX), none, lock()),
            (51, 55, Kind::Cpu, Whom::Server, vec![]),
            (55, 56, Kind::Call(FUTEX), none, vec![]),
            (56, 60, Kind::User, none, vec![]),
        ]
    );
}

/// An interpreter's lock is waited for in turns of some milliseconds, each of which a timer ends.
#[test]
fn a_retried_wait_with_a_limit_is_for_who_has_the_lock() {
    let turn = |story: Story, from: u64| {
        story
            .on(0)
            .enter(from, 101, FUTEX)
            .switch(from + 1, 101, Left::Blocked, 0)
            .in_interrupt()
            .waking(from + 20, 0, 101)
            .in_interrupt()
            .switch(from + 22, 0, Left::Ready, 101)
            .exit(from + 23, 101, FUTEX)
    };
    let twice = turn(turn(Story::default(), 10), 40);
    let limits = turn(turn(Story::default(), 10), 40).window(0, 100);
    let window = twice
        .enter(70, 101, FUTEX)
        .switch(71, 101, Left::Blocked, 0)
        .on(1)
        .enter(80, 102, FUTEX)
        .waking(81, 102, 101)
        .on(0)
        .switch(82, 0, Left::Ready, 101)
        .exit(83, 101, FUTEX)
        .window(0, 100);
    let kinds = |window: &Window| {
        walked(window, 101, 0, 100)
            .into_iter()
            .filter(|(.., kind, _, _)| matches!(kind, Kind::Timer | Kind::Lock))
            .map(|(from, to, kind, ..)| (from, to, kind))
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&window), [], "the holder was on a CPU");
    let held: u64 = walked(&window, 101, 0, 100)
        .into_iter()
        .filter(|(.., chain)| *chain == ["lock"])
        .map(|(from, to, ..)| to - from)
        .sum();
    assert_eq!(held, 19 + 19 + 10);
    assert_eq!(
        kinds(&limits),
        [(11, 30, Kind::Timer), (41, 60, Kind::Timer)],
        "nobody ended them: a sleep, as far as is known"
    );
}

#[test]
fn waiting_for_a_cpu_names_who_had_it() {
    let story = Story::default()
        .enter(1, 101, FUTEX)
        .exit(2, 101, FUTEX)
        .switch(10, 101, Left::Ready, 301);
    let window = story
        .switch(20, 301, Left::Ready, 102)
        .switch(24, 102, Left::Ready, 101)
        .window(0, 30);
    let found = walked(&window, 101, 5, 30);
    assert_eq!(
        found[1..3],
        [
            (10, 20, Kind::Cpu, Whom::Thread(301), vec![]),
            (20, 24, Kind::Cpu, Whom::Server, vec![]),
        ]
    );
}

#[test]
fn a_neighbour_on_another_cpu_shares_in_the_clients_wait() {
    // 201 has CPU 0 while 101 waits for it; 301 has CPU 1 until it idles.
    let story = Story::default()
        .on(1)
        .switch(1, 0, Left::Ready, 301)
        .exit(2, 301, FUTEX)
        .switch(26, 301, Left::Blocked, 0)
        .on(0);
    let story = story
        .enter(1, 101, FUTEX)
        .exit(2, 101, FUTEX)
        .switch(10, 101, Left::Ready, 201);
    let window = story.switch(30, 201, Left::Ready, 101).window(0, 40);
    let waits = |cpus: &[u16]| {
        let pieces = walked_on(cpus, &window, 101, 5, 40);
        pieces
            .into_iter()
            .filter(|p| p.2 == Kind::Cpu)
            .map(|p| (p.0, p.1, p.3))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        waits(&[0, 1]),
        [
            (10, 18, Whom::Client),
            (18, 26, Whom::Thread(301)),
            (26, 30, Whom::Client)
        ]
    );
    let alone = [(10, 30, Whom::Client)];
    assert_eq!(waits(&[0]), alone, "it may use that CPU alone");
    assert_eq!(waits(&[0, 1, 2]), alone, "no event tells who has CPU 2");
}

#[test]
fn a_cpu_that_the_server_itself_has_is_no_neighbours() {
    // 101 waits for 102 on CPU 0; CPU 1 is the server's 103, CPUs 2 and 3 are two neighbours'.
    let others = [(1, 103), (2, 301), (3, 401)];
    let story = others
        .into_iter()
        .fold(Story::default(), |story, (cpu, tid)| {
            story
                .on(cpu)
                .switch(1, 0, Left::Ready, tid)
                .exit(2, tid, FUTEX)
        })
        .on(0);
    let window = story
        .enter(2, 101, FUTEX)
        .exit(3, 101, FUTEX)
        .switch(10, 101, Left::Ready, 102)
        .switch(30, 102, Left::Ready, 101)
        .window(0, 40);
    let waits: Vec<_> = walked_on(&[0, 1, 2, 3], &window, 101, 5, 40)
        .into_iter()
        .filter(|p| p.2 == Kind::Cpu)
        .map(|p| (p.0, p.1, p.3))
        .collect();
    assert_eq!(
        waits,
        [
            (10, 20, Whom::Server),
            (20, 25, Whom::Thread(301)),
            (25, 30, Whom::Thread(401))
        ]
    );
}

#[test]
fn of_many_cpus_their_holders_share_in_a_wait_unless_one_idles() {
    let has = |story: Story, cpu: u16, tid: i32| {
        story
            .on(cpu)
            .switch(1, 0, Left::Ready, tid)
            .exit(2, tid, FUTEX)
    };
    let waits = |idle: Option<u16>| {
        let story = (1..20)
            .filter(|cpu| Some(*cpu) != idle)
            .fold(Story::default(), |story, cpu| {
                has(story, cpu, 300 + i32::from(cpu))
            });
        let story = idle
            .into_iter()
            .fold(story, |story, cpu| {
                story.on(cpu).switch(2, 399, Left::Blocked, 0)
            })
            .on(1);
        let story = story
            .switch(20, 301, Left::Ready, 302)
            .on(0)
            .enter(3, 101, FUTEX)
            .exit(4, 101, FUTEX);
        let window = story
            .switch(10, 101, Left::Ready, 201)
            .switch(30, 201, Left::Ready, 101)
            .window(0, 40);
        let cpus: Vec<u16> = (0..20).collect();
        let pieces = walked_on(&cpus, &window, 101, 5, 40)
            .into_iter()
            .filter(|p| p.2 == Kind::Cpu);
        pieces.map(|p| (p.0, p.1, p.3)).collect::<Vec<_>>()
    };
    let shared = waits(None);
    assert_eq!(
        (shared.len(), shared[0], shared[1]),
        (20, (10, 11, Whom::Client), (11, 12, Whom::Thread(301)))
    );
    assert_eq!(
        waits(Some(19)),
        [(10, 30, Whom::Client)],
        "a CPU far from the queue's idles"
    );
}

#[test]
fn a_throttled_io_is_told_from_one_in_the_queue() {
    let window = Story::default()
        .enter(1, 101, FSYNC)
        .switch(2, 101, Left::Uninterruptible, 301)
        .disk(20, 301, DiskStep::Submitted)
        .disk(25, 301, DiskStep::Issued)
        .disk(30, 301, DiskStep::Completed)
        .in_interrupt()
        .waking(31, 301, 101)
        .in_interrupt()
        .switch(32, 301, Left::Ready, 101)
        .window(0, 40);
    let kinds: Vec<_> = walked(&window, 101, 2, 32)
        .into_iter()
        .map(|p| (p.0, p.1, p.2))
        .collect();
    assert_eq!(
        kinds,
        [
            (2, 20, Kind::DiskHeld),
            (20, 25, Kind::DiskQueue),
            (25, 30, Kind::DiskDevice),
            (30, 31, Kind::DiskOther),
            (31, 32, Kind::Cpu),
        ]
    );
}

#[test]
fn a_worker_idle_at_the_beginning_did_nothing_until_the_ios_end() {
    // 101's I/O is held back. 401, a worker of the kernel, serves others meanwhile, and is then given the end of the
    // I/O.
    let told = |wake_up_is_told: bool| {
        let story = Story::default()
            .enter(1, 101, FSYNC)
            .switch(2, 101, Left::Uninterruptible, 0)
            .on(1)
            .waking(4, 301, 401)
            .switch(5, 0, Left::Ready, 401)
            .switch(7, 401, Left::Blocked, 0)
            .disk(50, 402, DiskStep::Submitted)
            .disk(52, 402, DiskStep::Issued)
            .disk(60, 0, DiskStep::Completed)
            .in_interrupt();
        let story = if wake_up_is_told {
            story.waking(61, 0, 401).in_interrupt()
        } else {
            story
        };
        let window = story
            .switch(62, 0, Left::Ready, 401)
            .waking(65, 401, 101)
            .on(0)
            .switch(70, 0, Left::Ready, 101)
            .exit(71, 101, FSYNC)
            .window(0, 80);
        walked(&window, 101, 2, 70)
            .into_iter()
            .map(|p| (p.0, p.1, p.2))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        told(true),
        [
            (2, 50, Kind::DiskHeld),
            (50, 52, Kind::DiskQueue),
            (52, 60, Kind::DiskDevice),
            (60, 61, Kind::DiskOther),
            (61, 62, Kind::Cpu),
            (62, 65, Kind::User),
            (65, 70, Kind::Cpu),
        ]
    );
    // The kernel may give it work without a wake-up that is told.
    assert_eq!(
        told(false)[..3],
        [
            (2, 50, Kind::DiskHeld),
            (50, 52, Kind::DiskQueue),
            (52, 60, Kind::DiskDevice)
        ]
    );
}

#[test]
fn device_time_beside_others_io_names_them_but_no_kernel_thread() {
    let other = |tid: u64, step| What::Disk {
        step,
        io: Io {
            device: 1,
            sector: 100 * tid,
            sectors: 64,
            write: true,
        },
    };
    let window = Story::default()
        .then(1, 301, other(301, DiskStep::Issued))
        .then(2, 401, other(401, DiskStep::Issued))
        .enter(3, 101, FSYNC)
        .disk(4, 101, DiskStep::Submitted)
        .disk(5, 101, DiskStep::Issued)
        .switch(6, 101, Left::Uninterruptible, 0)
        .then(30, 0, other(301, DiskStep::Completed))
        .disk(50, 0, DiskStep::Completed)
        .in_interrupt()
        .waking(51, 0, 101)
        .in_interrupt()
        .then(60, 0, other(401, DiskStep::Completed))
        .window(0, 80);
    let found: Vec<_> = walked(&window, 101, 6, 51)
        .into_iter()
        .map(|p| (p.0, p.1, p.2, p.3))
        .collect();
    let nobody = Whom::Nobody;
    assert_eq!(
        found,
        [
            (6, 30, Kind::DiskDevice, Whom::Thread(301)),
            (30, 50, Kind::DiskDevice, nobody),
            (50, 51, Kind::DiskOther, nobody)
        ]
    );
}

#[test]
fn what_no_event_tells_is_not_followed() {
    let window = Story::default()
        .enter(10, 101, FUTEX)
        .switch(11, 101, Left::Blocked, 0)
        .window(0, 50);
    assert_eq!(
        walked(&window, 101, 11, 50),
        [(11, 50, Kind::Lock, Whom::Nobody, vec![])],
        "the window ended first"
    );
    assert_eq!(
        walked(&window, 999, 0, 50),
        [(0, 50, Kind::NotFollowed, Whom::Nobody, vec![])]
    );
}
