//! Talking between two processes: one byte there and back.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::Ordering;

use crate::call::set_option;
use crate::peer::Peer;
use crate::probe::{Exercises, Nature, Probe, latency, placements, table};
use crate::session::{Session, Stop};
use crate::share::{PLACES, Place, Shared, Word, as_file, give_byte, pipe, socket_pair, take_byte};

/// The token. Both sides check it, so that a stray byte cannot pass for a round trip.
const TOKEN: u8 = 0x5a;

fn expect_token(byte: u8) -> io::Result<()> {
    if byte == TOKEN {
        Ok(())
    } else {
        Err(io::Error::other("the partner answered with another byte"))
    }
}

/// A partner that sends back each byte; this process sends one and waits for it.
fn byte_round_trips(
    s: &mut Session,
    ours: (&File, &File),
    theirs: (&File, &File),
) -> Result<(), Stop> {
    let _partner = Peer::fork(s.partner_cpu()?, || {
        loop {
            give_byte(theirs.1, take_byte(theirs.0)?)?;
        }
    })?;
    s.repeat(|| {
        give_byte(ours.1, TOKEN)?;
        expect_token(take_byte(ours.0)?)
    })
}

fn over_pipe(s: &mut Session) -> Result<(), Stop> {
    let (there, back) = (pipe()?, pipe()?);
    byte_round_trips(s, (&back.0, &there.1), (&there.0, &back.1))
}

fn over_unix(s: &mut Session) -> Result<(), Stop> {
    let (ours, theirs) = socket_pair()?;
    byte_round_trips(s, (&ours, &ours), (&theirs, &theirs))
}

fn over_udp(s: &mut Session) -> Result<(), Stop> {
    let ours = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let theirs = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    ours.connect(theirs.local_addr()?)?;
    theirs.connect(ours.local_addr()?)?;
    let (ours, theirs) = (as_file(ours), as_file(theirs));
    byte_round_trips(s, (&ours, &ours), (&theirs, &theirs))
}

fn over_tcp(s: &mut Session) -> Result<(), Stop> {
    let (ours, theirs) = tcp_pair()?;
    let (ours, theirs) = (as_file(ours), as_file(theirs));
    byte_round_trips(s, (&ours, &ours), (&theirs, &theirs))
}

/// Two ends of a connection over loopback that sends small segments at once.
pub fn tcp_pair() -> Result<(TcpStream, TcpStream), Stop> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    let (theirs, _) = listener.accept()?;
    ours.set_nodelay(true)?;
    theirs.set_nodelay(true)?;
    Ok((ours, theirs))
}

fn over_tcp_connect(s: &mut Session) -> Result<(), Stop> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let _partner = Peer::fork(s.partner_cpu()?, || {
        loop {
            drop(listener.accept()?);
        }
    })?;
    s.repeat(|| {
        let socket = as_file(TcpStream::connect(address)?);
        reset_on_close(&socket)?;
        match (&socket).read(&mut [0])? {
            0 => Ok(()),
            _ => Err(io::Error::other(
                "the partner sent a byte instead of closing",
            )),
        }
    })
}

/// Makes close reset the connection, so that no port is left waiting (TIME_WAIT) and a run cannot use them all up.
pub fn reset_on_close(socket: &impl AsRawFd) -> io::Result<()> {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    set_option(socket, libc::SO_LINGER, &linger)
}

fn event_counter() -> Result<File, Stop> {
    // SAFETY: eventfd takes plain numbers; the descriptor is nobody else's.
    match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) } {
        -1 => Err(Stop::call("eventfd")),
        // SAFETY: as above.
        fd => Ok(unsafe { File::from_raw_fd(fd) }),
    }
}

/// An event counter takes eight bytes or none.
#[inline(always)]
fn raise(mut counter: &File) -> io::Result<()> {
    counter.write(&1u64.to_ne_bytes()).map(drop)
}

#[inline(always)]
fn take(mut counter: &File) -> io::Result<()> {
    let mut value = [0; 8];
    let once = counter.read(&mut value)? == 8 && u64::from_ne_bytes(value) == 1;
    if once {
        Ok(())
    } else {
        Err(io::Error::other("an event was counted twice"))
    }
}

fn over_eventfd(s: &mut Session) -> Result<(), Stop> {
    let (there, back) = (event_counter()?, event_counter()?);
    let _partner = Peer::fork(s.partner_cpu()?, || {
        loop {
            take(&there)?;
            raise(&back)?;
        }
    })?;
    s.repeat(|| {
        raise(&there)?;
        take(&back)
    })
}

fn over_futex(s: &mut Session) -> Result<(), Stop> {
    let turn = Shared::<Word>::new()?;
    let _partner = Peer::fork(s.partner_cpu()?, || {
        loop {
            turn.wait_while(0, 0)?;
            turn.set_and_wake(0, 0)?;
        }
    })?;
    s.repeat(|| {
        turn.set_and_wake(1, 0)?;
        turn.wait_while(1, 0)
    })
}

/// Waits by looking. On one CPU the other side can only move when this one lets it, so a look that fails yields.
#[inline(always)]
fn look_until(turn: &Word, value: u32, yielding: bool) {
    while turn.0.load(Ordering::Acquire) != value {
        if yielding {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Round trips at one place before both sides go on to the next. The first at each is slower, since the line was left
/// to both caches.
const STAY: usize = 128;

/// The places in the order in which both sides use them, without an end.
fn visits(places: &[Place<Word>]) -> impl Iterator<Item = &Place<Word>> {
    places
        .iter()
        .cycle()
        .flat_map(|place| std::iter::repeat_n(place, STAY))
}

fn over_shm(s: &mut Session) -> Result<(), Stop> {
    let yielding = s.word("placement", &["same", "cross"])? == "same";
    let turns = Shared::<[Place<Word>; PLACES]>::new()?;
    let _partner = Peer::fork(s.partner_cpu()?, || {
        for turn in visits(&*turns) {
            look_until(turn, 1, yielding);
            turn.0.store(0, Ordering::Release);
        }
        Ok(())
    })?;
    let mut ours = visits(&*turns);
    s.batches(|ops| {
        for turn in ours.by_ref().take(ops as usize) {
            turn.0.store(1, Ordering::Release);
            look_until(turn, 0, yielding);
        }
        Ok(())
    })
}

/// What the probes of this file share.
const FAMILY: Probe = Probe {
    nature: Nature::Blocks,
    variants: placements,
    ..latency(&table::LATENCIES, Exercises::LocalIpc)
};

/// A round trip, in which each side writes and reads.
const ROUND_TRIP: Probe = Probe {
    entries: Some(4.0),
    ..FAMILY
};

/// What placement means for every probe that wakes a partner.
const WAKES: &str = "across CPUs the wake-up of an idle CPU is most of the figure: idle states and, in a guest, the \
    interrupt between virtual CPUs show here first.";

/// The probes of this file.
pub static PROBES: &[Probe] = &[
    Probe {
        name: "ipc.pipe",
        bounds: [300.0, 1e7],
        lmbench: Some("Pipe"),
        summary: "one byte to another process and back through two pipes",
        timed: "write of one byte into a pipe, and read of the byte that the partner process sends back through \
            another: two wake-ups, two switches.",
        pitfalls: WAKES,
        run: over_pipe,
        ..ROUND_TRIP
    },
    Probe {
        name: "ipc.unix",
        bounds: [300.0, 1e7],
        lmbench: Some("AF UNIX"),
        summary: "one byte to another process and back through a Unix socket",
        timed: "write of one byte to a Unix stream socket pair, and read of the byte that the partner process sends \
            back.",
        pitfalls: WAKES,
        run: over_unix,
        ..ROUND_TRIP
    },
    Probe {
        name: "ipc.udp",
        bounds: [500.0, 1e7],
        exercises: Some(Exercises::Network),
        lmbench: Some("UDP"),
        summary: "one byte to another process and back by UDP over loopback",
        timed: "write of one byte to a connected UDP socket on 127.0.0.1, and read of the datagram that the partner \
            process sends back.",
        pitfalls: "firewall rules and packet filters on loopback are part of the figure.",
        run: over_udp,
        ..ROUND_TRIP
    },
    Probe {
        name: "ipc.tcp",
        bounds: [500.0, 1e7],
        exercises: Some(Exercises::Network),
        lmbench: Some("TCP"),
        summary: "one byte to another process and back by TCP over loopback",
        timed: "write of one byte to a TCP connection on 127.0.0.1 with TCP_NODELAY, and read of the byte that the \
            partner process sends back.",
        pitfalls: "firewall rules and packet filters on loopback are part of the figure.",
        run: over_tcp,
        ..ROUND_TRIP
    },
    Probe {
        name: "ipc.tcp_connect",
        bounds: [2e3, 2e7],
        exercises: Some(Exercises::Network),
        lmbench: Some("TCP conn"),
        summary: "connect by TCP over loopback, be accepted and closed, close",
        timed: "socket, connect to a listening partner process on 127.0.0.1, read until that has accepted and closed, \
            and close with a reset.",
        pitfalls: "lmbench does not wait until the partner has accepted, so its figure has fewer wake-ups on one CPU; \
            the reset keeps ports from running out (TIME_WAIT).",
        run: over_tcp_connect,
        ..FAMILY
    },
    Probe {
        name: "ipc.eventfd",
        bounds: [300.0, 1e7],
        summary: "wake another process and be woken through two event counters",
        timed: "write to an eventfd, and read of another that the partner process raises in answer.",
        pitfalls: WAKES,
        run: over_eventfd,
        ..ROUND_TRIP
    },
    Probe {
        name: "ipc.futex",
        bounds: [200.0, 1e7],
        summary: "wake another process and be woken by futex",
        timed: "store to a shared word and FUTEX_WAKE, then FUTEX_WAIT until the partner process has stored and woken \
            in answer.",
        pitfalls: "across CPUs an answer that arrives before the wait saves the sleep.",
        run: over_futex,
        ..ROUND_TRIP
    },
    Probe {
        name: "ipc.shm",
        bounds: [20.0, 1e7],
        version: 2,
        summary: "a shared word there and back, by looking",
        timed: "store to a shared word and a look at it, again and again, until the partner process has stored in \
            answer; across CPUs both spin (a cache line travels twice), on one CPU each look that fails calls \
            sched_yield. 32 words, each in a page of its own, are used by turns, for 128 round trips each.",
        pitfalls: "on one CPU this is the cost of two yields that switch; across CPUs it is the distance of the two \
            caches, by way of the line's home: on a guest whose memory is on two nodes, some pages' lines took 1.4 \
            times as long as others'.",
        nature: Nature::Contends,
        run: over_shm,
        ..FAMILY
    },
];
