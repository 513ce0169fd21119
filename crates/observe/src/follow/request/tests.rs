use super::super::disk::Disks;
use super::super::event::{Left, What};
use super::super::sockets::{Connections, Sockets};
use super::super::source::Window;
use super::super::tests::Story;
use super::super::timeline::timelines;
use super::*;
use std::collections::HashMap;

const READ: i64 = libc::SYS_read;
const WRITE: i64 = libc::SYS_write;
const POLL: i64 = libc::SYS_epoll_pwait;

/// What was found in a window.
#[derive(Debug)]
struct Found {
    requests: Vec<Request>,
    cut: u64,
}

fn found(window: &Window) -> Found {
    found_by(
        window,
        HashMap::from([(100, Side::Server), (200, Side::Client)]),
        Connections::default(),
        false,
    )
}

/// The same events as a service's own sockets show them.
fn arrivals(window: &Window, listening: &[u16]) -> Found {
    let mut connections = Connections::default();
    connections.service(listening.iter().copied().collect(), []);
    found_by(
        window,
        HashMap::from([(100, Side::Server), (200, Side::Client)]),
        connections,
        true,
    )
}

fn found_by(
    window: &Window,
    sides: HashMap<i32, Side>,
    mut connections: Connections,
    by_arrivals: bool,
) -> Found {
    let timelines = timelines(window);
    // Connections are learned over all windows; here, from this one before it is followed.
    Sockets::of(&window.events, &timelines, &mut connections);
    let sockets = Sockets::of(&window.events, &timelines, &mut connections);
    let disks = Disks::of(&window.events);
    let walker = Walker {
        timelines: &timelines,
        sockets: &sockets,
        connections: &connections,
        disks: &disks,
        sides: &sides,
        children: &HashMap::new(),
        cpus: &[],
    };
    let requests = Requests::new(&walker, window.end, by_arrivals);
    let mut all = Vec::new();
    let mut take = |r| all.push(r);
    let cut = if by_arrivals {
        requests.of_arrivals(&mut |_, r| take(r))
    } else {
        requests.of_clients(&mut take)
    };
    let found = Found { requests: all, cut };
    for r in &found.requests {
        let mut reached = r.begin;
        for p in &r.pieces {
            assert_eq!(p.start, reached, "no gap and no overlap: {:?}", r.pieces);
            reached = p.end;
        }
        assert_eq!(reached, r.end);
    }
    found
}

fn told(r: &Request) -> Vec<(u64, u64, Side, Kind, Vec<&'static str>)> {
    r.pieces
        .iter()
        .map(|p| {
            (
                p.start,
                p.end,
                p.leaf.side,
                p.leaf.kind,
                p.leaf.chain.links().map(Link::as_str).collect(),
            )
        })
        .collect()
}

/// Client 201 on CPU 0 asks server 101 on CPU 1, which was waiting, works, and answers.
fn simple() -> Story {
    Story::default()
        .on(1)
        .enter(2, 101, READ)
        .switch(3, 101, Left::Blocked, 0)
        .on(0)
        .enter(10, 201, WRITE)
        .arrived(12, 201, 0xb)
        .in_interrupt()
        .waking(13, 201, 101)
        .in_interrupt()
        .sent(14, 201, 0xa, 5)
        .exit(15, 201, WRITE)
        .enter(16, 201, READ)
        .switch(17, 201, Left::Blocked, 0)
        .on(1)
        .switch(20, 0, Left::Ready, 101)
        .received(22, 101, 0xb, 5)
        .exit(23, 101, READ)
        .enter(40, 101, WRITE)
        .arrived(42, 101, 0xa)
        .in_interrupt()
        .waking(43, 101, 201)
        .in_interrupt()
        .sent(45, 101, 0xb, 7)
        .exit(46, 101, WRITE)
        .on(0)
        .switch(50, 0, Left::Ready, 201)
        .received(52, 201, 0xa, 7)
        .exit(53, 201, READ)
}

#[test]
fn a_request_is_the_client_the_server_and_the_client_again() {
    let found = found(&simple().window(0, 60));
    assert_eq!((found.requests.len(), found.cut), (1, 0));
    let (s, c) = (Side::Server, Side::Client);
    let queue = || vec!["queue"];
    assert_eq!((found.requests[0].begin, found.requests[0].end), (10, 52));
    assert_eq!(
        told(&found.requests[0]),
        [
            (10, 12, c, Kind::Call(WRITE), vec![]),
            (12, 13, s, Kind::Wire, queue()),
            (13, 17, s, Kind::Cpu, queue()),
            (17, 20, s, Kind::Cpu, queue()),
            (20, 22, s, Kind::Call(READ), queue()),
            (22, 23, s, Kind::Call(READ), vec![]),
            (23, 40, s, Kind::User, vec![]),
            (40, 42, s, Kind::Call(WRITE), vec![]),
            (42, 43, s, Kind::Call(WRITE), vec!["peer"]),
            (43, 50, c, Kind::Cpu, vec![]),
            (50, 52, c, Kind::Call(READ), vec![]),
        ]
    );
}

#[test]
fn a_request_that_the_window_cuts_is_in_no_sum() {
    let mut window = simple().window(0, 60);
    window.events.retain(|e| e.time < 50);
    let cut = found(&window);
    assert_eq!((cut.requests.len(), cut.cut), (0, 1));
}

#[test]
fn an_answer_in_pieces_is_over_when_there_was_long_nothing() {
    let pieces = |end| {
        let story = Story::default()
            .enter(10, 201, WRITE)
            .arrived(11, 201, 0xb)
            .sent(12, 201, 0xa, 5)
            .exit(13, 201, WRITE);
        let story = story
            .on(1)
            .enter(20, 101, READ)
            .received(21, 101, 0xb, 5)
            .exit(22, 101, READ);
        let story = story
            .enter(30, 101, WRITE)
            .arrived(31, 101, 0xa)
            .sent(32, 101, 0xb, 7)
            .exit(33, 101, WRITE);
        let story = story
            .enter(50, 101, WRITE)
            .arrived(51, 101, 0xa)
            .sent(52, 101, 0xb, 7)
            .exit(53, 101, WRITE);
        let story = story
            .on(0)
            .enter(60, 201, READ)
            .received(61, 201, 0xa, 14)
            .exit(62, 201, READ);
        let found = found(&story.window(0, end));
        (found.requests.len(), found.cut)
    };
    assert_eq!((pieces(80), pieces(100)), ((0, 1), (1, 0)));
}

#[test]
fn a_pieced_answer_shorter_than_any_whole_one_is_not_over() {
    let after = |first: i32| {
        let ask = |story: Story, at: u64| {
            let story = story
                .on(0)
                .enter(at, 201, WRITE)
                .arrived(at + 1, 201, 0xb)
                .sent(at + 2, 201, 0xa, 5)
                .exit(at + 3, 201, WRITE);
            story
                .on(1)
                .enter(at + 4, 101, READ)
                .received(at + 5, 101, 0xb, 5)
                .exit(at + 6, 101, READ)
        };
        let answer = |story: Story, at: u64, bytes: i32| {
            story
                .on(1)
                .enter(at, 101, WRITE)
                .arrived(at + 1, 101, 0xa)
                .sent(at + 2, 101, 0xb, bytes)
                .exit(at + 3, 101, WRITE)
        };
        let read = |story: Story, at: u64, bytes: i32| {
            story
                .on(0)
                .enter(at, 201, READ)
                .received(at + 1, 201, 0xa, bytes)
                .exit(at + 2, 201, READ)
        };
        let story = read(answer(ask(Story::default(), 10), 20, first), 30, first);
        let story = answer(answer(ask(story, 40), 50, 7), 60, 7);
        let found = found(&read(story, 70, 14).window(0, 900));
        (found.requests.len(), found.cut)
    };
    assert_eq!((after(14), after(15)), ((2, 0), (1, 1)));
}

#[test]
fn an_answer_in_pieces_is_not_over_at_the_first_longer_pause() {
    let many = |end| {
        let story = Story::default()
            .enter(10, 201, WRITE)
            .arrived(11, 201, 0xb)
            .sent(12, 201, 0xa, 5)
            .exit(13, 201, WRITE);
        let mut story = story
            .on(1)
            .enter(20, 101, READ)
            .received(21, 101, 0xb, 5)
            .exit(22, 101, READ);
        for at in (30..130).step_by(10) {
            story = story
                .on(1)
                .enter(at, 101, WRITE)
                .arrived(at + 1, 101, 0xa)
                .sent(at + 2, 101, 0xb, 7)
                .exit(at + 3, 101, WRITE);
            story = story
                .on(0)
                .enter(at + 4, 201, READ)
                .received(at + 5, 201, 0xa, 7)
                .exit(at + 6, 201, READ);
        }
        found(&story.window(0, end)).requests.len()
    };
    assert_eq!((many(150), many(180)), (0, 1));
}

#[test]
fn a_service_alone_shows_requests_from_arrival_to_answer() {
    let s = Side::Server;
    let here = arrivals(&simple().window(0, 60), &[]);
    assert_eq!((here.requests.len(), here.cut), (1, 0));
    assert_eq!(
        (here.requests[0].begin, here.requests[0].end),
        (12, 42),
        "it is given when it has arrived at the other end"
    );
    let queue = || vec!["queue"];
    let after_the_arrival = [
        (12, 13, s, Kind::Wire, queue()),
        (13, 17, s, Kind::Cpu, queue()),
        (17, 20, s, Kind::Cpu, queue()),
        (20, 22, s, Kind::Call(READ), queue()),
        (22, 23, s, Kind::Call(READ), vec![]),
        (23, 40, s, Kind::User, vec![]),
        (40, 42, s, Kind::Call(WRITE), vec![]),
    ];
    assert_eq!(told(&here.requests[0]), after_the_arrival);
    // The client is on another machine: its packet comes in an interrupt on an idle CPU, and nothing of its own is
    // seen.
    let story = Story::default()
        .on(1)
        .enter(2, 101, READ)
        .switch(3, 101, Left::Blocked, 0);
    let story = story
        .then(
            11,
            0,
            What::Ports {
                socket: 0xb,
                local: 80,
                remote: 4000,
                pair: 0,
            },
        )
        .arrived(12, 0, 0xb)
        .in_interrupt();
    let story = story
        .waking(13, 0, 101)
        .in_interrupt()
        .switch(20, 0, Left::Ready, 101)
        .received(22, 101, 0xb, 5)
        .exit(23, 101, READ);
    let story = story
        .enter(40, 101, WRITE)
        .sent(45, 101, 0xb, 7)
        .exit(46, 101, WRITE);
    let far = arrivals(&story.window(0, 60), &[80]);
    assert_eq!(
        (
            far.requests.len(),
            far.requests[0].begin,
            far.requests[0].end
        ),
        (1, 12, 45)
    );
    assert_eq!(told(&far.requests[0])[0], (12, 13, s, Kind::Wire, queue()));
}

#[test]
fn what_a_service_asks_others_is_no_request_of_its_clients() {
    // 101 answers at 0xb and asks a database on another machine by 0xc, both by connections that were there before.
    let story = Story::default()
        .on(1)
        .arrived(10, 0, 0xb)
        .enter(11, 101, READ)
        .received(12, 101, 0xb, 5)
        .exit(13, 101, READ);
    let story = story
        .enter(20, 101, WRITE)
        .sent(21, 101, 0xc, 5)
        .exit(22, 101, WRITE)
        .enter(23, 101, READ)
        .switch(24, 101, Left::Blocked, 0);
    let story = story
        .arrived(70, 0, 0xc)
        .in_interrupt()
        .waking(71, 0, 101)
        .in_interrupt()
        .switch(72, 0, Left::Ready, 101);
    let story = story
        .received(73, 101, 0xc, 9)
        .exit(74, 101, READ)
        .enter(80, 101, WRITE)
        .sent(81, 101, 0xb, 9)
        .exit(82, 101, WRITE);
    let found = arrivals(&story.window(0, 200), &[]);
    assert_eq!((found.requests.len(), found.cut), (1, 0), "{found:?}");
    assert_eq!((found.requests[0].begin, found.requests[0].end), (10, 81));
    let peer: u64 = found.requests[0]
        .pieces
        .iter()
        .filter(|p| p.leaf.kind == Kind::Peer)
        .map(|p| p.end - p.start)
        .sum();
    assert_eq!(peer, 71 - 21, "{:?}", told(&found.requests[0]));
}

#[test]
fn ports_tell_a_sockets_end_when_a_window_begins_in_an_answer() {
    // The first that is seen of 0xb is what it sends; its port says that it answers all the same. 0xc has another port.
    let ports = |socket, local| What::Ports {
        socket,
        local,
        remote: 4000,
        pair: 0,
    };
    let story = Story::default()
        .on(1)
        .enter(1, 101, WRITE)
        .sent(2, 101, 0xb, 5)
        .exit(3, 101, WRITE)
        .arrived(4, 0, 0xc);
    let story = story
        .then(10, 0, ports(0xb, 80))
        .arrived(10, 0, 0xb)
        .enter(11, 101, READ)
        .received(12, 101, 0xb, 5)
        .exit(13, 101, READ);
    let story = story
        .enter(20, 101, WRITE)
        .sent(21, 101, 0xb, 5)
        .exit(22, 101, WRITE)
        .then(30, 0, ports(0xc, 5000))
        .arrived(31, 0, 0xc);
    let story = story
        .enter(32, 101, READ)
        .received(33, 101, 0xc, 5)
        .exit(34, 101, READ)
        .enter(40, 101, WRITE)
        .sent(41, 101, 0xc, 5);
    let window = story.window(0, 100);
    let found = arrivals(&window, &[80]);
    assert_eq!(
        (
            found
                .requests
                .iter()
                .map(|r| (r.begin, r.end))
                .collect::<Vec<_>>(),
            found.cut
        ),
        (vec![(10, 21)], 1)
    );
}

#[test]
fn a_proxys_own_turn_goes_on_in_the_backend() {
    // 101 is an event loop that asks backend 301 for each request of client 201. All run on CPUs of their own.
    let story = Story::default()
        .on(2)
        .enter(1, 301, READ)
        .switch(2, 301, Left::Blocked, 0)
        .on(1)
        .enter(3, 101, POLL);
    let story = story
        .switch(4, 101, Left::Blocked, 0)
        .on(0)
        .enter(10, 201, WRITE)
        .arrived(11, 201, 0xb)
        .in_interrupt();
    let story = story
        .waking(12, 201, 101)
        .in_interrupt()
        .sent(13, 201, 0xa, 5)
        .exit(14, 201, WRITE)
        .enter(15, 201, READ);
    let story = story
        .switch(16, 201, Left::Blocked, 0)
        .on(1)
        .switch(18, 0, Left::Ready, 101)
        .exit(19, 101, POLL);
    let story = story
        .enter(20, 101, READ)
        .received(21, 101, 0xb, 5)
        .exit(22, 101, READ)
        .enter(30, 101, WRITE);
    let story = story
        .arrived(31, 101, 0xd)
        .in_interrupt()
        .waking(32, 101, 301)
        .in_interrupt()
        .sent(33, 101, 0xc, 5)
        .exit(34, 101, WRITE);
    let story = story
        .enter(35, 101, POLL)
        .switch(36, 101, Left::Blocked, 0)
        .on(2)
        .switch(40, 0, Left::Ready, 301);
    let story = story
        .received(41, 301, 0xd, 5)
        .exit(42, 301, READ)
        .enter(80, 301, WRITE)
        .arrived(81, 301, 0xc)
        .in_interrupt();
    let story = story
        .waking(82, 301, 101)
        .in_interrupt()
        .sent(83, 301, 0xd, 9)
        .exit(84, 301, WRITE);
    let story = story
        .on(1)
        .switch(85, 0, Left::Ready, 101)
        .exit(86, 101, POLL)
        .enter(87, 101, READ)
        .received(88, 101, 0xc, 9);
    let story = story
        .exit(89, 101, READ)
        .enter(95, 101, WRITE)
        .arrived(96, 101, 0xa)
        .in_interrupt()
        .waking(97, 101, 201)
        .in_interrupt();
    let story = story
        .sent(98, 101, 0xb, 9)
        .exit(99, 101, WRITE)
        .on(0)
        .switch(100, 0, Left::Ready, 201)
        .received(101, 201, 0xa, 9);
    let found = found(&story.exit(102, 201, READ).window(0, 110));
    assert_eq!(
        found.requests.len(),
        1,
        "the proxy's own turn is no request of a client"
    );
    let backend: Vec<_> = told(&found.requests[0])
        .into_iter()
        .filter(|p| p.2 == Side::Other)
        .collect();
    assert!(
        backend.contains(&(42, 80, Side::Other, Kind::User, vec!["peer"])),
        "{backend:?}"
    );
    assert!(
        backend.contains(&(40, 41, Side::Other, Kind::Call(READ), vec!["peer", "queue"])),
        "{backend:?}"
    );
}

#[test]
fn a_handshake_that_was_not_let_in_at_once_is_on_the_way() {
    // 201 connects, and waits for an answer that a timer's second try brings; 101 then reads, works and answers.
    let state = |socket, state, local, remote| What::State {
        socket,
        state,
        local,
        remote,
        pair: 0,
    };
    let story = Story::default()
        .enter(10, 201, libc::SYS_connect)
        .then(11, 201, state(0xa, 2, 4000, 80))
        .exit(12, 201, libc::SYS_connect);
    let story = story
        .enter(13, 201, libc::SYS_ppoll)
        .switch(14, 201, Left::Blocked, 0);
    let story = story
        .then(900, 0, state(0xb, 3, 80, 4000))
        .in_interrupt()
        .then(901, 0, state(0xa, 1, 4000, 80))
        .in_interrupt();
    let story = story
        .waking(902, 0, 201)
        .in_interrupt()
        .switch(903, 0, Left::Ready, 201)
        .exit(904, 201, libc::SYS_ppoll);
    let story = story.then(905, 201, state(0xb, 1, 80, 4000)).in_interrupt();
    let story = story
        .enter(910, 201, WRITE)
        .arrived(911, 201, 0xb)
        .in_interrupt()
        .sent(912, 201, 0xa, 5)
        .exit(913, 201, WRITE);
    let story = story
        .on(1)
        .enter(914, 101, READ)
        .received(915, 101, 0xb, 5)
        .exit(916, 101, READ);
    let story = story
        .enter(930, 101, WRITE)
        .arrived(931, 101, 0xa)
        .in_interrupt()
        .sent(932, 101, 0xb, 7)
        .exit(933, 101, WRITE);
    let story = story
        .on(0)
        .enter(940, 201, READ)
        .received(941, 201, 0xa, 7)
        .exit(942, 201, READ)
        .enter(943, 201, WRITE);
    let found = found(
        &story
            .then(944, 201, state(0xa, 7, 4000, 80))
            .window(0, 1000),
    );
    assert_eq!(found.requests.len(), 1, "{found:?}");
    let told = told(&found.requests[0]);
    assert!(
        told[..3].iter().all(|p| p.1 <= 14 && p.3 != Kind::Wire),
        "the client's own work: {told:?}"
    );
    assert!(
        told.contains(&(14, 901, Side::Client, Kind::Wire, vec![])),
        "{told:?}"
    );
}
