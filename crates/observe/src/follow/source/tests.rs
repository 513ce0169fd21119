//! What both ways to the kernel's events must show of what really happens here.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use super::bpf::Bpf;
use super::flow::RING_BYTES;
use super::perf::Perf;
use super::{Source, Window};
use crate::follow::event::{Event, Left, What};

/// Runs a check with either way to the kernel's events, or says why one is skipped.
fn each(most_events: usize, check: impl Fn(&mut dyn Source)) {
    let perf = Perf::open(most_events).map(|s| Box::new(s) as Box<dyn Source>);
    let bpf = Bpf::open(most_events).map(|s| Box::new(s) as Box<dyn Source>);
    for source in [perf, bpf] {
        match source {
            Ok(mut source) => check(source.as_mut()),
            Err(sentence) => {
                fingerpost_testing::skipped(sentence);
            }
        }
    }
}

fn sleep(time: Duration) -> bool {
    std::thread::sleep(time);
    false
}

/// The calling thread's number.
fn own_tid() -> i32 {
    std::fs::read_link("/proc/thread-self")
        .ok()
        .and_then(|l| l.file_name()?.to_str()?.parse().ok())
        .unwrap()
}

/// Takes windows while `work` runs in a thread of its own, until one holds what `wanted` looks for.
fn until<T>(source: &mut dyn Source, wanted: impl Fn(&Window) -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let window = source
            .window(Duration::from_millis(100), &mut sleep)
            .unwrap();
        assert!(window.events.is_sorted_by_key(|e| e.time), "not in order");
        assert!(
            window
                .events
                .iter()
                .all(|e| e.time >= window.start && e.time <= window.end)
        );
        if let Some(found) = wanted(&window).filter(|_| window.lost == 0) {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "what was looked for did not come"
        );
    }
}

/// Whether events come in this order, others between them.
fn in_order(events: &[Event], steps: &[&dyn Fn(&Event) -> bool]) -> bool {
    let mut steps = steps.iter().peekable();
    for e in events {
        if steps.peek().is_some_and(|step| step(e)) {
            steps.next();
        }
    }
    steps.peek().is_none()
}

fn enters(e: &Event, call: i64) -> bool {
    matches!(e.what, What::Enter { call: c, .. } if i64::from(c) == call)
}

#[test]
fn a_round_trip_over_tcp_is_seen_from_send_to_read() {
    each(500_000, round_trip_of);
}

/// Whether a round trip of 70 bytes between two threads, each with its socket, is there whole and in its order.
fn round_trip_seen(events: &[Event], (client, c): (i32, u64), (server, s): (i32, u64)) -> bool {
    let pid = std::process::id() as i32;
    in_order(
        events,
        &[
            &|e| e.tid == client && e.pid == pid && enters(e, libc::SYS_sendto),
            &|e| e.what == What::Arrived { socket: s } && e.interrupt,
            &|e| matches!(e.what, What::Waking { who, .. } if who == server),
            &|e| {
                e.tid == client
                    && e.what
                        == What::Sent {
                            socket: c,
                            bytes: 70,
                        }
            },
            &|e| matches!(e.what, What::Switch { next, .. } if next == server),
            &|e| {
                e.tid == server
                    && e.what
                        == What::Received {
                            socket: s,
                            bytes: 70,
                        }
            },
            &|e| e.tid == server && matches!(e.what, What::Exit { result: 70, .. }),
            &|e| e.what == What::Arrived { socket: c },
            &|e| {
                e.tid == server
                    && e.what
                        == What::Sent {
                            socket: s,
                            bytes: 70,
                        }
            },
            &|e| {
                e.tid == client
                    && e.what
                        == What::Received {
                            socket: c,
                            bytes: 70,
                        }
            },
        ],
    )
}

fn round_trip_of(source: &mut dyn Source) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    static SERVER: AtomicI32 = AtomicI32::new(0);
    static CLIENT: AtomicI32 = AtomicI32::new(0);
    SERVER.store(0, Ordering::Relaxed);
    CLIENT.store(0, Ordering::Relaxed);
    let server = std::thread::Builder::new()
        .name("echo-server".into())
        .spawn(move || {
            SERVER.store(own_tid(), Ordering::Relaxed);
            let (mut s, _) = listener.accept().unwrap();
            let mut b = [0; 100];
            while let Ok(n @ 1..) = s.read(&mut b) {
                s.write_all(&b[..n]).unwrap();
            }
        });
    let mut stream = TcpStream::connect(address).unwrap();
    let end = stream.try_clone().unwrap();
    let client = std::thread::spawn(move || {
        CLIENT.store(own_tid(), Ordering::Relaxed);
        let mut b = [0; 70];
        while stream.write_all(&b).is_ok() && stream.read_exact(&mut b).is_ok() {
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    // A thread has its name when it runs its own code, and that of the one that made it before.
    while SERVER.load(Ordering::Relaxed) == 0 || CLIENT.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    let names = until(source, |w| {
        let (server, client) = (
            SERVER.load(Ordering::Relaxed),
            CLIENT.load(Ordering::Relaxed),
        );
        let sockets = |tid| {
            let of = |e: &Event| match e.what {
                What::Received { socket, bytes: 70 } if e.tid == tid => Some(socket),
                _ => None,
            };
            w.events.iter().filter_map(of).collect::<HashSet<_>>()
        };
        let &[s] = sockets(server).into_iter().collect::<Vec<_>>().as_slice() else {
            return None;
        };
        let &[c] = sockets(client).into_iter().collect::<Vec<_>>().as_slice() else {
            return None;
        };
        (s != c && round_trip_seen(&w.events, (client, c), (server, s)))
            .then(|| w.names.get(&server).cloned())
    });
    assert_eq!(names.as_deref(), Some("echo-server"));
    end.shutdown(std::net::Shutdown::Both).unwrap();
    client.join().unwrap();
    server.unwrap().join().unwrap();
}

#[test]
fn a_ping_pong_over_pipes_is_seen_blocking_and_waking() {
    each(500_000, ping_pong_of);
}

fn ping_pong_of(source: &mut dyn Source) {
    let (mut in_a, mut out_a) = std::io::pipe().unwrap();
    let (mut in_b, mut out_b) = std::io::pipe().unwrap();
    static ECHO: AtomicI32 = AtomicI32::new(0);
    static FIRST: AtomicI32 = AtomicI32::new(0);
    static OVER: AtomicI32 = AtomicI32::new(0);
    OVER.store(0, Ordering::Relaxed);
    let echo = std::thread::spawn(move || {
        ECHO.store(own_tid(), Ordering::Relaxed);
        let mut b = [0; 1];
        while in_a.read_exact(&mut b).is_ok() && out_b.write_all(&b).is_ok() {}
    });
    let first = std::thread::spawn(move || {
        FIRST.store(own_tid(), Ordering::Relaxed);
        let mut b = [0; 1];
        while OVER.load(Ordering::Relaxed) == 0
            && out_a.write_all(&b).is_ok()
            && in_b.read_exact(&mut b).is_ok()
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    until(source, |w| {
        let (echo, first) = (ECHO.load(Ordering::Relaxed), FIRST.load(Ordering::Relaxed));
        in_order(
            &w.events,
            &[
                &|e| e.tid == echo && enters(e, libc::SYS_read),
                &|e| {
                    e.tid == echo
                        && matches!(
                            e.what,
                            What::Switch {
                                left: Left::Blocked,
                                ..
                            }
                        )
                },
                &|e| e.tid == first && enters(e, libc::SYS_write),
                &|e| {
                    e.tid == first
                        && !e.interrupt
                        && matches!(e.what, What::Waking { who, .. } if who == echo)
                },
                &|e| matches!(e.what, What::Switch { next, .. } if next == echo),
                &|e| e.tid == echo && matches!(e.what, What::Exit { result: 1, .. }),
            ],
        )
        .then_some(())
    });
    OVER.store(1, Ordering::Relaxed);
    first.join().unwrap();
    echo.join().unwrap();
}

/// Makes calls until told to stop.
fn busy<T>(calls: impl Fn() + Send + Sync, meanwhile: impl FnOnce() -> T) -> T {
    let over = AtomicI32::new(0);
    std::thread::scope(|s| {
        s.spawn(|| {
            while over.load(Ordering::Relaxed) == 0 {
                calls();
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(meanwhile));
        over.store(1, Ordering::Relaxed);
        result.unwrap_or_else(|e| std::panic::resume_unwind(e))
    })
}

/// Calls in a moderate stream, which a debug build can drain too.
fn some_calls() {
    (0..50).for_each(|_| _ = std::os::unix::process::parent_id());
    std::thread::sleep(Duration::from_micros(300));
}

#[test]
fn a_window_outlives_its_rings_and_ends_early_when_it_is_full() {
    each(700_000, full_window_of);
}

fn full_window_of(source: &mut dyn Source) {
    busy(some_calls, || {
        let deadline = Instant::now() + Duration::from_secs(40);
        loop {
            let w = source.window(Duration::from_secs(30), &mut sleep).unwrap();
            // More than the rings hold: an event is at least 40 bytes there.
            if w.lost == 0 && w.events.len() * 40 > source.about().cpus * RING_BYTES {
                // Enough, and what the rings may have held besides: others are busy too.
                let most = 700_000 + source.about().cpus * RING_BYTES / 32;
                assert!(
                    w.events.len() < most && w.end - w.start < 30_000_000_000,
                    "{} events",
                    w.events.len()
                );
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{} events in {} ns, {} lost",
                w.events.len(),
                w.end - w.start,
                w.lost
            );
        }
    });
}

#[test]
fn a_window_that_cannot_be_drained_in_time_ends_whole() {
    each(10_000_000, fast_window_of);
}

fn fast_window_of(source: &mut dyn Source) {
    busy(
        || _ = std::os::unix::process::parent_id(),
        || {
            let deadline = Instant::now() + Duration::from_secs(20);
            loop {
                let w = source.window(Duration::from_secs(15), &mut sleep).unwrap();
                if w.lost == 0 && w.events.len() > 1000 {
                    return;
                }
                assert!(
                    Instant::now() < deadline,
                    "{} events, {} lost",
                    w.events.len(),
                    w.lost
                );
            }
        },
    );
}

#[test]
fn own_calls_are_not_recorded_and_an_events_cost_is_measured() {
    each(500_000, own_calls_of);
}

fn own_calls_of(source: &mut dyn Source) {
    let own = own_tid();
    let window = source
        .window(Duration::from_millis(50), &mut sleep)
        .unwrap();
    assert!(
        !window
            .events
            .iter()
            .any(|e| e.tid == own && matches!(e.what, What::Enter { .. } | What::Exit { .. }))
    );
    assert!(
        window
            .events
            .iter()
            .any(|e| e.tid == own && matches!(e.what, What::Switch { .. })),
        "its switches tell who had the CPU"
    );
    let cost = source.about().event_cost;
    assert!(cost > 10e-9 && cost < 20e-6, "{cost}");
    assert!(source.about().described.contains("perf") || source.about().described.contains("eBPF"));
}

#[test]
fn both_ways_tell_the_same_kinds_of_events_of_the_same_work() {
    let seen = std::sync::Mutex::new(Vec::new());
    each(500_000, |source| {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut kinds = HashSet::new();
        // A process that ends, a connection, a timer tick and a switch come in any half second of this.
        while kinds.len() < 8 && Instant::now() < deadline {
            busy(
                || {
                    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                    drop(TcpStream::connect(listener.local_addr().unwrap()));
                    some_calls();
                    std::thread::spawn(|| ()).join().unwrap();
                },
                || {
                    let w = source
                        .window(Duration::from_millis(500), &mut sleep)
                        .unwrap();
                    kinds.extend(w.events.iter().filter_map(|e| match e.what {
                        What::Switch {
                            left: Left::Ended, ..
                        } => Some("ended"),
                        What::Switch {
                            left: Left::Ready, ..
                        } => Some("ready"),
                        What::Switch {
                            left: Left::Blocked,
                            ..
                        } => Some("blocked"),
                        What::Fork { .. } => Some("fork"),
                        What::State {
                            state: 1,
                            remote: 1..,
                            local: 1..,
                            ..
                        } => Some("established"),
                        What::State { state: 7, .. } => Some("closed"),
                        What::Interrupt { begin: true, .. } => Some("interrupt"),
                        What::Waking { .. } if e.interrupt => Some("waking in an interrupt"),
                        _ => None,
                    }));
                },
            );
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_unstable();
        seen.lock().unwrap().push(kinds);
    });
    let seen = seen.into_inner().unwrap();
    assert!(seen.iter().all(|s| s.len() == 8), "{seen:?}");
}
