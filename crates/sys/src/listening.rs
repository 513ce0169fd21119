//! What listens on this machine: TCP ports of this network name space, with the processes that hold their sockets.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;

use crate::cgroup::members;
use crate::sample;
use crate::sockdiag::SockDiag;

/// Processes whose descriptors are looked through.
const MOST_PROCESSES: usize = 20_000;
/// Descriptors of one process that are looked through.
const MOST_DESCRIPTORS: usize = 1 << 17;

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
    for pid in sample::numbers(Path::new("/proc"))
        .into_iter()
        .take(MOST_PROCESSES)
    {
        for inode in sockets_of(pid) {
            if let Some(pids) = ports.get(&inode).and_then(|port| holders.get_mut(port)) {
                pids.push(pid);
            }
        }
    }
    Ok(holders
        .into_iter()
        .map(|(port, pids)| listener(port, &pids))
        .collect())
}

/// Inodes of the sockets that a process holds.
pub fn sockets_of(pid: i32) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .take(MOST_DESCRIPTORS)
        .filter_map(|entry| socket_at(&entry.path()))
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
    fn a_socket_of_this_process_that_listens_is_found_with_its_holder() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let found = match all() {
            Ok(found) => found,
            Err(e) => {
                assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{e}");
                return eprintln!("skipped: {e}");
            }
        };
        let ours = found.iter().find(|l| l.port == port).expect("it listens");
        assert_eq!(ours.pid, std::process::id() as i32);
        assert!(!ours.name.is_empty() && found.is_sorted_by_key(|l| l.port));
        assert_eq!(listener(7, &[]).pid, 0, "who holds it is not seen");
    }
}
