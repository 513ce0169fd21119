//! What the kernel counts about sockets, ports and waiting for a CPU, read from `/proc`.

use std::fs;
use std::path::{Path, PathBuf};

use fingerpost_sys::procfs::bounded;
use fingerpost_sys::procfs::process::Schedstat;

/// Counters of the whole host (of its network namespace) at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// Sockets in TIME_WAIT, each of which holds a local port.
    pub time_wait: u64,
    /// Connections turned away because a listener's accept queue was full.
    pub listen_overflows: u64,
}

impl Sockets {
    /// Reads the counters; what cannot be read is zero.
    pub fn read() -> Sockets {
        let sockstat = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
        let netstat = fs::read_to_string("/proc/net/netstat").unwrap_or_default();
        Sockets {
            time_wait: time_wait(&sockstat).unwrap_or(0),
            listen_overflows: netstat_counter(&netstat, "TcpExt", "ListenOverflows").unwrap_or(0),
        }
    }
}

/// The `tw` of the TCP line of `/proc/net/sockstat`.
fn time_wait(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("TCP:"))?;
    let mut words = line.split_ascii_whitespace();
    words.find(|w| *w == "tw")?;
    words.next()?.parse().ok()
}

/// A counter of `/proc/net/netstat`: a line of names, then a line of values with the same prefix.
fn netstat_counter(text: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut lines = text
        .lines()
        .filter_map(|l| l.strip_prefix(prefix)?.strip_prefix(':'));
    let column = lines
        .next()?
        .split_ascii_whitespace()
        .position(|w| w == name)?;
    lines
        .next()?
        .split_ascii_whitespace()
        .nth(column)?
        .parse()
        .ok()
}

/// How many local ports the kernel may choose from for a connection to one address.
pub fn local_ports() -> u64 {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    port_range(&text).unwrap_or(28_232)
}

fn port_range(text: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (low, high) = (words.next()?.ok()?, words.next()?.ok()?);
    (high + 1).checked_sub(low)
}

/// Time on a CPU, and time waiting for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// Nanoseconds on a CPU.
    pub run_ns: u64,
    /// Nanoseconds ready to run without a CPU.
    pub wait_ns: u64,
}

impl Scheduled {
    /// This, less what it was before.
    pub fn since(self, before: Scheduled) -> Scheduled {
        Scheduled {
            run_ns: self.run_ns.saturating_sub(before.run_ns),
            wait_ns: self.wait_ns.saturating_sub(before.wait_ns),
        }
    }
}

/// The main thread of this process.
pub fn scheduled_self() -> Scheduled {
    scheduled("/proc/self/schedstat".as_ref())
}

/// What a `schedstat` says; nothing where it cannot be read.
fn scheduled(file: &Path) -> Scheduled {
    let read = bounded::text(file)
        .ok()
        .and_then(|text| Schedstat::parse(&text));
    read.map_or_else(Scheduled::default, |s| Scheduled {
        run_ns: s.running_ns,
        wait_ns: s.waiting_ns,
    })
}

/// These processes and their descendants, each before its children.
pub fn tree(pids: &[i32]) -> Vec<i32> {
    let mut all = pids.to_vec();
    let mut at = 0;
    while let Some(&parent) = all.get(at) {
        at += 1;
        for task in tasks(parent) {
            let children = bounded::text(task.join("children")).unwrap_or_default();
            all.extend(
                children
                    .split_ascii_whitespace()
                    .filter_map(|p| p.parse::<i32>().ok()),
            );
        }
    }
    all
}

/// The directories of a process' threads.
fn tasks(pid: i32) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|task| task.path())
}

/// All threads of these processes and of their descendants. A process that ended in between takes its time with it.
pub fn scheduled_tree(pids: &[i32]) -> Scheduled {
    let mut sum = Scheduled::default();
    for task in tree(pids).into_iter().flat_map(tasks) {
        let s = scheduled(&task.join("schedstat"));
        sum.run_ns += s.run_ns;
        sum.wait_ns += s.wait_ns;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read_by_name() {
        let sockstat =
            "sockets: used 15\nTCP: inuse 1 orphan 0 tw 27 alloc 1 mem 279\nUDP: inuse 0 mem 0\n";
        assert_eq!(time_wait(sockstat), Some(27));
        assert_eq!(time_wait("TCP6: inuse 1 tw 3\n"), None);
        let netstat = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 22 33\nIpExt: InNoRoutes\nIpExt: 5\n";
        assert_eq!(
            netstat_counter(netstat, "TcpExt", "ListenOverflows"),
            Some(22)
        );
        assert_eq!(netstat_counter(netstat, "TcpExt", "ListenDrops"), Some(33));
        assert_eq!(netstat_counter(netstat, "IpExt", "InNoRoutes"), Some(5));
        assert_eq!(netstat_counter(netstat, "TcpExt", "Nothing"), None);
        assert_eq!(port_range("32768\t60999\n"), Some(28_232));
        assert_eq!(port_range("9 1"), None);
    }

    #[test]
    fn this_process_is_found_in_its_own_tree() {
        let tree = scheduled_tree(&[std::process::id() as i32]);
        assert!(tree.run_ns > 0);
        assert_eq!(scheduled_tree(&[-5]), Scheduled::default());
    }
}
