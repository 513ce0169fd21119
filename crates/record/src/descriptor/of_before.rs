//! What is known by name of rows that state no descriptor: those of records of before, of published tables and of other
//! tools' files.
//!
//! The list is closed. A probe or lab of today says in its descriptor what it is.

use super::table::{self, Table};
use super::{Descriptor, Exercises, HostDependence, is_beyond_caches, lmbench};
use crate::params::Params;

/// Probes by what their names begin with, their table, and those of them that have a place in it, after those of
/// families before.
static FAMILIES: &[(&str, &Table, &[&str])] = &[
    ("clock", &table::PROCESSOR, &[]),
    (
        "syscall",
        &table::SYSCALLS,
        &[
            "null",
            "read",
            "write",
            "stat",
            "fstat",
            "open_close",
            "select",
            "poll",
            "epoll",
        ],
    ),
    ("lmbench", &table::SYSCALLS, &[]),
    ("signal", &table::SIGNALS, &["install", "handle", "fault"]),
    (
        "process",
        &table::PROCESSES,
        &["fork", "vfork", "spawn", "exec", "exec_dynamic", "shell"],
    ),
    ("thread", &table::PROCESSES, &["create"]),
    ("switch", &table::SWITCHING, &[]),
    (
        "ipc",
        &table::LATENCIES,
        &[
            "pipe",
            "unix",
            "udp",
            "tcp",
            "tcp_connect",
            "eventfd",
            "futex",
            "shm",
        ],
    ),
    (
        "bandwidth",
        &table::BANDWIDTHS,
        &["pipe", "unix", "tcp", "file_reread", "mmap_reread"],
    ),
    (
        "sync",
        &table::SYNCHRONISATION,
        &["mutex", "mutex_contended", "rwlock", "condvar"],
    ),
    ("parallel", &table::PARALLEL, &[]),
    (
        "vm",
        &table::VM,
        &[
            "mmap",
            "munmap",
            "mprotect",
            "fault_anon",
            "fault_file",
            "fault_cow",
        ],
    ),
    (
        "fs",
        &table::FS,
        &["create", "delete", "rename", "append", "fsync", "fdatasync"],
    ),
    (
        "memory",
        &table::MEMORY,
        &["latency", "read", "write", "copy"],
    ),
    (
        "cpu",
        &table::ARITHMETIC,
        &["int", "div", "branch", "flops"],
    ),
    ("flops", &table::FLOPS, &[]),
    ("zerofill", &table::ZEROFILL, &[]),
    ("site", &table::SITE, &[]),
    ("launch", &table::LAUNCH, &[]),
    ("database", &table::DATABASE, &[]),
    ("web", &table::WEB, &[]),
    ("service", &table::SERVICE, &["latency", "rate"]),
    ("load", &table::LOAD, &["throughput", "turns", "turn"]),
];

/// The system calls that their operations stand for.
const CALLS: &[(&str, &[&str])] = &[
    ("syscall.null", &["futex", "fcntl", "lseek"]),
    ("syscall.read", &["read", "pread64", "recvfrom"]),
    ("syscall.write", &["write", "pwrite64", "sendto"]),
    ("syscall.stat", &["stat", "newfstatat"]),
    ("syscall.fstat", &["fstat"]),
    ("syscall.open_close", &["openat"]),
    ("syscall.poll", &["poll"]),
    ("syscall.epoll", &["epoll_wait"]),
    ("signal.install", &["rt_sigaction"]),
    ("process.fork", &["fork"]),
    ("process.vfork", &["vfork"]),
    ("process.exec", &["execve"]),
    ("thread.create", &["clone"]),
    ("vm.mmap", &["mmap"]),
    ("vm.munmap", &["munmap"]),
    ("vm.mprotect", &["mprotect"]),
    ("fs.fsync", &["fsync"]),
    ("fs.fdatasync", &["fdatasync"]),
];

/// The descriptor of a probe's row by its name and parameters, which may be in two places: those that it has, and those
/// that were taken out.
pub fn of_before(probe: &str, params: [&Params; 2]) -> Descriptor {
    let int = |key: &str| params.into_iter().find_map(|p| p.int(key));
    let (family, name) = probe.split_once('.').unwrap_or(("", ""));
    let known = FAMILIES.iter().find(|(of, ..)| *of == family);
    let table = known.map_or(&table::OTHER, |(_, table, _)| *table);
    let of_table = FAMILIES.iter().filter(|(_, of, _)| of.key == table.key);
    let calls = CALLS
        .iter()
        .find(|(of, _)| *of == probe)
        .map_or(&[][..], |(_, calls)| calls);
    Descriptor {
        place: of_table
            .flat_map(|(of, _, names)| names.iter().map(move |n| (*of, *n)))
            .position(|of| of == (family, name))
            .map(|n| n as u32),
        exercises: exercises(family, name),
        entries: entries(family, name),
        waits_for_device: matches!(probe, "fs.fsync" | "fs.fdatasync" | "fs.append"),
        depends_on_host: depends_on_host(probe, int),
        lmbench: lmbench::operation(probe).and_then(|operation| lmbench::name(operation.name, int)),
        calls: calls.iter().map(|call| (*call).into()).collect(),
        ..Descriptor::of(table)
    }
}

fn exercises(family: &str, name: &str) -> Option<Exercises> {
    Some(match family {
        "cpu" => Exercises::Cpu,
        // The instrument's empty loop is user-mode arithmetic.
        "clock" if name == "loop" => Exercises::Cpu,
        "clock" => Exercises::Clock,
        "syscall" | "lmbench" => Exercises::Syscall,
        "signal" if name == "fault" => Exercises::Fault,
        "signal" => Exercises::Signal,
        "process" => Exercises::Process,
        "thread" => Exercises::Thread,
        "switch" => Exercises::Switch,
        "ipc" | "bandwidth" if name.starts_with("tcp") || name.starts_with("udp") => {
            Exercises::Network
        }
        "bandwidth" if name.ends_with("reread") => Exercises::Memory,
        "ipc" | "bandwidth" => Exercises::LocalIpc,
        "vm" | "zerofill" => Exercises::Fault,
        "memory" => Exercises::Memory,
        "fs" => Exercises::Storage,
        _ => return None,
    })
}

fn entries(family: &str, name: &str) -> Option<f64> {
    match (family, name) {
        ("syscall", "open_close") | ("signal", "handle") => Some(2.0),
        ("syscall", _) | ("lmbench", "null_io") | ("signal", "install") | ("vm", "mprotect") => {
            Some(1.0)
        }
        ("ipc", "pipe" | "unix" | "udp" | "tcp" | "eventfd" | "futex") => Some(4.0),
        _ => None,
    }
}

fn depends_on_host(probe: &str, int: impl Fn(&str) -> Option<i64>) -> Option<HostDependence> {
    // The primitives' bandwidth is that of the good tenth of all processes, which repeats as their spread lets expect.
    let good_tenth = || {
        matches!(probe, "memory.read" | "memory.write" | "memory.copy") && int("threads").is_none()
    };
    match probe {
        "vm.fault_anon" | "vm.fault_file" | "vm.munmap" | "fs.append" => {
            Some(HostDependence::Pages)
        }
        "fs.fsync" | "fs.fdatasync" => Some(HostDependence::Disk),
        "database.throughput" | "database.latency" | "web.throughput" | "web.latency" => {
            Some(HostDependence::Server)
        }
        _ if !probe.starts_with("memory.") && !probe.starts_with("process.") => None,
        _ => (is_beyond_caches(&int) && !good_tenth()).then_some(HostDependence::Memory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(probe: &str, params: Params) -> Descriptor {
        of_before(probe, [&params, &Params::new()])
    }

    #[test]
    fn a_row_is_known_by_its_name_and_a_stranger_is_other() {
        for (probe, exercises) in [
            ("syscall.null", Some(Exercises::Syscall)),
            ("signal.fault", Some(Exercises::Fault)),
            ("signal.handle", Some(Exercises::Signal)),
            ("ipc.tcp_connect", Some(Exercises::Network)),
            ("bandwidth.tcp", Some(Exercises::Network)),
            ("bandwidth.pipe", Some(Exercises::LocalIpc)),
            ("bandwidth.mmap_reread", Some(Exercises::Memory)),
            ("clock.loop", Some(Exercises::Cpu)),
            ("clock.gettime", Some(Exercises::Clock)),
            ("database.throughput", None),
            ("nonsense", None),
        ] {
            assert_eq!(row(probe, Params::new()).exercises, exercises, "{probe}");
        }
        let of = |probe: &str| row(probe, Params::new());
        assert_eq!(
            (of("thread.create").table, of("lmbench.null_io").table),
            (table::PROCESSES.clone(), table::SYSCALLS.clone())
        );
        assert_eq!(
            ["syscallx", "syscall", ""].map(|probe| of(probe).table),
            [const { &table::OTHER }; 3].map(Table::clone)
        );
        assert!(
            of("syscall.null").place < of("syscall.stat").place
                && of("syscall.new").place.is_none()
        );
    }

    #[test]
    fn lmbench_names_carry_its_parameters() {
        let name = |probe: &str, params: Params| row(probe, params).lmbench;
        assert_eq!(
            name(
                "switch.ring",
                Params::new().with("tasks", 16).with("footprint", 65_536)
            )
            .unwrap(),
            "16p/64K ctxsw"
        );
        assert_eq!(name("switch.ring", Params::new().with("tasks", 16)), None);
        assert_eq!(
            name("fs.create", Params::new().with("size", 10_240)).unwrap(),
            "10K File Create"
        );
        assert_eq!(name("fs.create", Params::new().with("size", 1)), None);
        assert_eq!(name("thread.create", Params::new()), None);
    }

    #[test]
    fn what_a_guest_cannot_keep_steady_is_told_by_probe() {
        let depends = |probe: &str, params: Params| row(probe, params).depends_on_host.is_some();
        let with = |key: &str, value: i64| Params::new().with(key, value);
        assert!(
            depends("memory.latency", with("size", 64 << 20))
                && !depends("memory.latency", with("size", 512 << 10))
        );
        assert!(
            depends("process.fork", with("resident", 64 << 20))
                && !depends("process.fork", with("resident", 0))
        );
        assert!(
            !depends("memory.read", with("size", 64 << 20)),
            "the good tenth"
        );
        assert!(
            depends("memory.read", with("size", 64 << 20).with("threads", 1)),
            "a laboratory's median"
        );
        assert!(
            of_before("memory.latency", [&Params::new(), &with("size", 64 << 20)])
                .depends_on_host
                .is_some(),
            "taken out"
        );
        assert!(
            depends("vm.fault_anon", with("pages", 1)) && depends("fs.append", with("size", 4096))
        );
        assert!(depends("fs.fsync", with("size", 4096)));
        assert!(
            depends("database.throughput", with("clients", 10))
                && depends("web.latency", with("connections", 1))
        );
        assert!(
            !depends("sync.rwlock", with("threads", 2)) && !depends("syscall.null", Params::new())
        );
    }
}
