//! A turn that only one process of a host (of a network namespace) has at a time: an abstract Unix socket's name, which
//! needs no file that others could put something in the place of, and which the kernel gives back when its holder ends,
//! however it does.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::{Duration, Instant};

use rustix::net;

/// Pause between two looks at a turn that another process has.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Held until dropped.
#[derive(Debug)]
pub struct Turn(Option<UnixListener>);

/// Why there is no turn.
#[derive(Debug, PartialEq, Eq)]
pub enum NoTurn {
    /// Another process of this user or of root kept it for all of the time.
    Kept,
    /// The caller had enough of waiting.
    Stopped,
}

impl Turn {
    /// Waits for the turn of this name, for so long at most. `enough` is asked again and again, and ends the waiting. A
    /// user other than root and oneself makes nobody wait: whoever it is, it may take the name and keep it.
    ///
    /// # Errors
    /// Another process kept it, or there was enough of waiting.
    pub fn take(
        name: &str,
        patience: Duration,
        enough: &mut dyn FnMut() -> bool,
    ) -> Result<Turn, NoTurn> {
        let Ok(address) = SocketAddr::from_abstract_name(name) else {
            return Ok(Turn(None));
        };
        let end = Instant::now() + patience;
        let mut asked = false;
        loop {
            match UnixListener::bind_addr(&address) {
                Ok(listener) => return Ok(Turn(Some(listener))),
                // Once: each question stays in the holder's queue of connections.
                Err(e) if e.kind() == io::ErrorKind::AddrInUse && (asked || heeded(name)) => {
                    asked = true
                }
                Err(_) => return Ok(Turn(None)),
            }
            if enough() {
                return Err(NoTurn::Stopped);
            }
            if Instant::now() >= end {
                return Err(NoTurn::Kept);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Whether nobody else who keeps to turns has it: the name could be taken.
    pub fn is_held(&self) -> bool {
        self.0.is_some()
    }
}

/// Whether the holder is one to wait for: root, or this user. Whose queue of connections is full, or who cannot be
/// asked, is not waited for.
fn heeded(name: &str) -> bool {
    let Ok(address) = net::SocketAddrUnix::new_abstract_name(name.as_bytes()) else {
        return false;
    };
    let flags = net::SocketFlags::NONBLOCK | net::SocketFlags::CLOEXEC;
    let Ok(socket) = net::socket_with(
        net::AddressFamily::UNIX,
        net::SocketType::STREAM,
        flags,
        None,
    ) else {
        return false;
    };
    match net::connect(&socket, &address) {
        Ok(()) => {}
        // It has just ended: the name is free at the next look.
        Err(rustix::io::Errno::CONNREFUSED) => return true,
        Err(_) => return false,
    }
    let own = rustix::process::geteuid();
    net::sockopt::socket_peercred(&socket)
        .is_ok_and(|other| other.uid.is_root() || other.uid == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_it_and_the_next_one_after_it_is_dropped() {
        let name = format!("fingerpost-test-turn-{}", std::process::id());
        let take =
            |patience: u64| Turn::take(&name, Duration::from_millis(patience), &mut || false);
        let first = take(0).unwrap();
        assert!(first.is_held());
        assert_eq!(take(30).unwrap_err(), NoTurn::Kept);
        assert_eq!(
            Turn::take(&name, Duration::from_secs(60), &mut || true).unwrap_err(),
            NoTurn::Stopped
        );
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| take(60_000).unwrap().is_held());
            drop(first);
            assert!(waiting.join().unwrap());
        });
        assert!(take(60_000).unwrap().is_held());
    }
}
