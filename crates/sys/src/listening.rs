//! What listens on this machine: TCP ports of this network name space, with the processes that hold their sockets.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::cgroup::members;
use crate::sample;
use crate::sockdiag::SockDiag;

/// Processes whose descriptors are looked through.
const MOST_PROCESSES: usize = 20_000;
/// Descriptors of each that are looked at before any others of any, how long that may take, and all of the others.
const FIRST: usize = 64;
const MOST_TIME: Duration = Duration::from_secs(2);
const BEYOND: Duration = Duration::from_millis(500);

/// Somebody that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The port.
    pub port: u16,
    /// The process: of several that hold the socket the one that the others come from. 0 where only root can see who it
    /// is.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Its control group, as a person calls it: a unit, a container; nothing where it is in none.
    pub group: Option<String>,
}

/// All listeners, by port.
///
/// # Errors
/// The kernel does not tell which sockets listen.
pub fn all() -> io::Result<Vec<Listener>> {
    let mut ports: HashMap<u32, u16> = HashMap::new();
    SockDiag::open()?.listening(|s| {
        ports.insert(s.inode, s.port);
    })?;
    let mut holders: BTreeMap<u16, Vec<i32>> =
        ports.values().map(|port| (*port, Vec::new())).collect();
    let mut all = sample::numbers(Path::new("/proc"));
    all.truncate(MOST_PROCESSES);
    sockets_of(&all, BEYOND, |pid, inode| {
        if let Some(pids) = ports.get(&inode).and_then(|port| holders.get_mut(port))
            && !pids.contains(&pid)
        {
            pids.push(pid);
        }
    });
    Ok(holders
        .into_iter()
        .map(|(port, pids)| listener(port, &pids))
        .collect())
}

/// Gives the processes with the inodes of the sockets that they hold; whether all of their descriptors were looked at.
///
/// The first descriptors of each are looked at before any others: what listens was opened early, and another user's
/// processes may have some ten thousand each. For the others there is so much time.
pub fn sockets_of(pids: &[i32], beyond: Duration, mut found: impl FnMut(i32, u32)) -> bool {
    let mut look = |pid: i32, places: (usize, usize), end: Instant| {
        let entries = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten();
        let mut seen = 0;
        for entry in entries.flatten().skip(places.0).take(places.1) {
            seen += 1;
            if seen % 32 == 0 && Instant::now() > end {
                return Look::Cut;
            }
            socket_at(&entry.path())
                .into_iter()
                .for_each(|inode| found(pid, inode));
        }
        if seen < places.1 {
            Look::Whole
        } else {
            Look::More
        }
    };
    let (end, mut whole) = (Instant::now() + MOST_TIME, true);
    let mut more = Vec::new();
    for &pid in pids {
        match look(pid, (0, FIRST), end) {
            Look::Whole => {}
            Look::More => more.push(pid),
            Look::Cut => whole = false,
        }
    }
    let end = Instant::now() + beyond;
    for pid in more {
        whole &= Instant::now() < end && look(pid, (FIRST, usize::MAX), end) != Look::Cut;
    }
    whole
}

/// How far the descriptors of a process were looked at.
#[derive(Clone, Copy, PartialEq)]
enum Look {
    Whole,
    More,
    Cut,
}

/// The inode of the socket that a link in `/proc/PID/fd` leads to.
pub fn socket_at(link: &Path) -> Option<u32> {
    fs::read_link(link)
        .ok()?
        .to_str()?
        .strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

fn listener(port: u16, pids: &[i32]) -> Listener {
    // What systemd listens for it gives to the service, and keeps too.
    let held: Vec<i32> = pids
        .iter()
        .copied()
        .filter(|pid| pids.len() == 1 || *pid != 1)
        .collect();
    let first = held
        .iter()
        .copied()
        .find(|pid| sample::process(*pid).is_some_and(|s| !held.contains(&s.parent)));
    let pid = first.or(held.first().copied()).unwrap_or(0);
    let name = sample::process(pid).map_or_else(String::new, |s| s.name);
    Listener {
        port,
        pid,
        name,
        group: members::group_of(pid).map(|path| members::short(&path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_socket_of_this_process_is_found_with_its_holder() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let found = match all() {
            Ok(found) => found,
            Err(e) => {
                return fingerpost_testing::skipped(e);
            }
        };
        let ours = found.iter().find(|l| l.port == port).expect("it listens");
        assert_eq!(ours.pid, std::process::id() as i32);
        assert!(!ours.name.is_empty() && found.is_sorted_by_key(|l| l.port));
        assert_eq!(listener(7, &[]).pid, 0, "who holds it is not seen");
    }

    #[test]
    fn more_descriptors_are_looked_at_as_long_as_there_is_time() {
        let files: Vec<fs::File> = (0..2 * FIRST)
            .map(|_| fs::File::open("/dev/null").unwrap())
            .collect();
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let own = std::process::id() as i32;
        let fd = rustix::io::fcntl_dupfd_cloexec(&socket, 3 * FIRST as i32).unwrap();
        drop(socket);
        let fd = std::os::fd::AsRawFd::as_raw_fd(&fd);
        let inode = socket_at(Path::new(&format!("/proc/{own}/fd/{fd}"))).unwrap();
        let held = |beyond| {
            let mut held = Vec::new();
            let whole = sockets_of(&[own], beyond, |_, inode| held.push(inode));
            (whole, held.contains(&inode))
        };
        assert_eq!(held(Duration::from_secs(60)), (true, true));
        assert_eq!(held(Duration::ZERO), (false, false));
        drop(files);
    }
}
