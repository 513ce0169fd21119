//! Asking the kernel which of many idle TCP connections is ready: select, poll, epoll.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::call::check;
use crate::ipc::reset_on_close;
use crate::probe::{Probe, rows};
use crate::session::{Session, Stop};
use crate::syscall;

/// The most descriptors: all of them must fit below `FD_SETSIZE` (1024).
const MAX_FDS: usize = 1000;

/// Idle connections over loopback: the ends that are asked, on adjacent low descriptors, and their peers.
struct Idle {
    asked: Vec<TcpStream>,
    _peers: Vec<OwnedFd>,
}

impl Idle {
    fn connect(s: &Session) -> Result<Idle, Stop> {
        let count = s.int("fds", 1)? as usize;
        if count > MAX_FDS {
            return Err(Stop::Fail(format!(
                "parameter fds must be at most {MAX_FDS}"
            )));
        }
        // The peers go above the ends that are asked, so that those are adjacent, as a server's are.
        let above = count + 32;
        allow_descriptors(above + count)?;
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .map_err(|e| Stop::Fail(format!("cannot listen on 127.0.0.1: {e}")))?;
        let address = listener.local_addr()?;
        let mut idle = Idle {
            asked: Vec::with_capacity(count),
            _peers: Vec::with_capacity(count),
        };
        for _ in 0..count {
            let end = TcpStream::connect(address)?;
            let (peer, _) = listener.accept()?;
            reset_on_close(&end)?;
            reset_on_close(&peer)?;
            idle.asked.push(end);
            idle._peers.push(move_above(&peer, above)?);
        }
        Ok(idle)
    }

    fn fds(&self) -> impl Iterator<Item = RawFd> {
        self.asked.iter().map(AsRawFd::as_raw_fd)
    }
}

/// Raises the soft limit on descriptors as far as needed.
fn allow_descriptors(needed: usize) -> Result<(), Stop> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes one rlimit.
    check(i64::from(unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit)
    }))?;
    let needed = needed as libc::rlim_t;
    if limit.rlim_cur >= needed {
        return Ok(());
    }
    if limit.rlim_max < needed {
        return Err(Stop::Skip(format!(
            "needs {needed} descriptors, and the limit is {} (ulimit -n)",
            limit.rlim_max
        )));
    }
    limit.rlim_cur = needed;
    // SAFETY: the kernel reads one rlimit.
    check(i64::from(unsafe {
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit)
    }))?;
    Ok(())
}

fn move_above(peer: &TcpStream, least: usize) -> io::Result<OwnedFd> {
    // SAFETY: fcntl duplicates our own descriptor.
    let fd = check(i64::from(unsafe {
        libc::fcntl(peer.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least as i32)
    }))?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// No descriptor may be ready: an answer above zero is another, slower operation than the one described.
#[inline(always)]
fn none_ready(rc: i32) -> io::Result<()> {
    match rc {
        0 => Ok(()),
        n if n < 0 => Err(io::Error::last_os_error()),
        n => Err(io::Error::other(format!(
            "{n} idle connections were reported as ready"
        ))),
    }
}

fn select(s: &mut Session) -> Result<(), Stop> {
    let idle = Idle::connect(s)?;
    // SAFETY: an fd_set is plain bits, zeroed is the empty set, and every descriptor is below FD_SETSIZE (MAX_FDS and a
    // few more).
    let (set, end) = unsafe {
        let mut set: libc::fd_set = std::mem::zeroed();
        for fd in idle.fds() {
            if fd as usize >= libc::FD_SETSIZE {
                return Err(Stop::Skip(
                    "this process inherited so many descriptors that select cannot name the sockets".into(),
                ));
            }
            libc::FD_SET(fd, &mut set);
        }
        (set, idle.fds().max().unwrap_or(0) + 1)
    };
    s.repeat(|| {
        let mut read = set;
        let mut zero = libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        };
        let null = std::ptr::null_mut();
        // SAFETY: the set and the timeout are ours, and live through the call.
        none_ready(unsafe { libc::select(end, &mut read, null, null, &mut zero) })
    })
}

fn poll(s: &mut Session) -> Result<(), Stop> {
    let idle = Idle::connect(s)?;
    let mut list: Vec<libc::pollfd> = idle
        .fds()
        .map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    s.repeat(|| {
        // SAFETY: the list is as long as the count says.
        none_ready(unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, 0) })
    })
}

fn epoll(s: &mut Session) -> Result<(), Stop> {
    let idle = Idle::connect(s)?;
    // SAFETY: the descriptor is new and nobody else's.
    let set = unsafe {
        OwnedFd::from_raw_fd(check(i64::from(libc::epoll_create1(libc::EPOLL_CLOEXEC)))? as RawFd)
    };
    for fd in idle.fds() {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: fd as u64,
        };
        // SAFETY: both descriptors are open, and the kernel reads one event.
        check(i64::from(unsafe {
            libc::epoll_ctl(set.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event)
        }))?;
    }
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
    s.repeat(|| {
        // SAFETY: the kernel writes at most as many events as the array holds.
        none_ready(unsafe {
            libc::epoll_wait(set.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, 0)
        })
    })
}

/// What the probes of this file share.
const FAMILY: Probe = Probe {
    variants: || rows("fds", [10, 100, 250]),
    ..syscall::FAMILY
};

/// The probes of this file.
pub static PROBES: &[Probe] = &[
    Probe {
        name: "syscall.select",
        bounds: [100.0, 2e5],
        lmbench: Some("slct TCP"),
        summary: "select over idle TCP connections",
        timed: "select for reading over as many idle loopback TCP connections, on adjacent descriptors, with a zero \
            timeout, and the copy of the set before each call; none is ever ready.",
        pitfalls: "grows with the highest descriptor as well as with their number.",
        run: select,
        ..FAMILY
    },
    Probe {
        name: "syscall.poll",
        bounds: [100.0, 2e5],
        calls: &["poll"],
        summary: "poll over idle TCP connections",
        timed: "poll for reading over as many idle loopback TCP connections with a zero timeout; none is ever ready.",
        run: poll,
        ..FAMILY
    },
    Probe {
        name: "syscall.epoll",
        bounds: [30.0, 2e4],
        calls: &["epoll_wait"],
        summary: "epoll_wait over idle TCP connections",
        timed: "epoll_wait with a zero timeout on a set of as many idle loopback TCP connections; none is ever ready.",
        pitfalls: "does not depend on the number of idle connections; adding one to the set is not timed.",
        run: epoll,
        ..FAMILY
    },
];
