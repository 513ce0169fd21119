//! Which table a probe's rows stand in, in which order, and what lmbench calls them.

use fingerpost_record::Params;

/// A group of probes, as lmbench's summary has one table per group.
#[derive(Debug)]
pub struct GroupOf {
    /// A word for anchors.
    pub key: &'static str,
    /// The title.
    pub title: &'static str,
    /// A probe belongs to the group when its name begins with one of these.
    prefixes: &'static [&'static str],
    /// The order of the rows: the probes' names after the prefix. Others follow in the order measured.
    order: &'static [&'static str],
}

/// The groups in the order shown. Add a lab's group before the last line.
pub static GROUPS: &[GroupOf] = &[
    GroupOf { key: "processor", title: "Processor & clock", prefixes: &["clock."], order: &[] },
    GroupOf {
        key: "syscalls",
        title: "System calls",
        prefixes: &["syscall.", "lmbench."],
        order: &["null", "read", "write", "stat", "fstat", "open_close", "select", "poll", "epoll"],
    },
    GroupOf { key: "signals", title: "Signals", prefixes: &["signal."], order: &["install", "handle", "fault"] },
    GroupOf {
        key: "processes",
        title: "Processes & threads",
        prefixes: &["process.", "thread."],
        order: &["fork", "vfork", "spawn", "exec", "exec_dynamic", "shell", "create"],
    },
    GroupOf { key: "switching", title: "Context switching", prefixes: &["switch."], order: &[] },
    GroupOf {
        key: "latencies",
        title: "Local communication latencies",
        prefixes: &["ipc."],
        order: &["pipe", "unix", "udp", "tcp", "tcp_connect", "eventfd", "futex", "shm"],
    },
    GroupOf {
        key: "bandwidths",
        title: "Local communication bandwidths",
        prefixes: &["bandwidth."],
        order: &["pipe", "unix", "tcp", "file_reread", "mmap_reread"],
    },
    GroupOf {
        key: "synchronisation",
        title: "Synchronisation",
        prefixes: &["sync."],
        order: &["mutex", "mutex_contended", "rwlock", "condvar"],
    },
    GroupOf { key: "parallel", title: "Parallel kernel", prefixes: &["parallel."], order: &[] },
    GroupOf {
        key: "vm",
        title: "Virtual memory",
        prefixes: &["vm."],
        order: &["mmap", "munmap", "mprotect", "fault_anon", "fault_file", "fault_cow"],
    },
    GroupOf { key: "fs", title: "File system", prefixes: &["fs."], order: &["create", "delete", "rename", "append", "fsync", "fdatasync"] },
    GroupOf { key: "memory", title: "Memory", prefixes: &["memory."], order: &["latency", "read", "write", "copy"] },
    GroupOf { key: "arithmetic", title: "CPU arithmetic", prefixes: &["cpu."], order: &["int", "div", "branch", "flops"] },
    GroupOf { key: "flops", title: "Floating point by compiler", prefixes: &["flops."], order: &[] },
    GroupOf { key: "zerofill", title: "Zero-filling", prefixes: &["zerofill."], order: &[] },
    GroupOf { key: "site", title: "Site: files against an object database", prefixes: &["site."], order: &[] },
    GroupOf { key: "launch", title: "Launching applications", prefixes: &["launch."], order: &[] },
    GroupOf { key: "database", title: "Database", prefixes: &["database."], order: &[] },
    GroupOf { key: "web", title: "Web server", prefixes: &["web."], order: &[] },
    GroupOf { key: "service", title: "Running service", prefixes: &["service."], order: &["latency", "rate"] },
    GroupOf { key: "load", title: "Load from a client machine", prefixes: &["load."], order: &["throughput", "turns", "turn"] },
];

/// Where the rest goes.
pub static OTHER: GroupOf = GroupOf { key: "other", title: "Other", prefixes: &[], order: &[] };

/// The group of a probe, and its place among the groups.
pub fn group_of(probe: &str) -> (usize, &'static GroupOf) {
    let found = GROUPS.iter().enumerate().find(|(_, g)| g.prefixes.iter().any(|p| probe.starts_with(p)));
    found.unwrap_or((GROUPS.len(), &OTHER))
}

/// A probe's place within its group; those that the group does not know come last, in the order measured.
pub fn place_in(group: &GroupOf, probe: &str) -> usize {
    let rest = group.prefixes.iter().find_map(|p| probe.strip_prefix(p)).unwrap_or(probe);
    group.order.iter().position(|name| *name == rest).unwrap_or(group.order.len())
}

/// What lmbench's summary calls a row, where it has one like it.
pub fn lmbench_name(probe: &str, params: &Params) -> Option<String> {
    let name = match probe {
        "syscall.null" => "null call",
        "syscall.read" | "syscall.write" | "lmbench.null_io" => "null I/O",
        "syscall.stat" => "stat",
        "syscall.open_close" => "open clos",
        "syscall.select" => "slct TCP",
        "signal.install" => "sig inst",
        "signal.handle" => "sig hndl",
        "signal.fault" => "Prot Fault",
        "process.fork" => "fork proc",
        // lmbench's own program is linked dynamically.
        "process.exec_dynamic" => "exec proc",
        "process.shell" => "sh proc",
        "ipc.pipe" => "Pipe",
        "ipc.unix" => "AF UNIX",
        "ipc.udp" => "UDP",
        "ipc.tcp" => "TCP",
        "ipc.tcp_connect" => "TCP conn",
        "bandwidth.pipe" => "Pipe (bw)",
        "bandwidth.unix" => "AF UNIX (bw)",
        "bandwidth.tcp" => "TCP (bw)",
        "bandwidth.file_reread" => "File reread",
        "bandwidth.mmap_reread" => "Mmap reread",
        "vm.mmap" => "Mmap Latency",
        "vm.fault_file" => "Page Fault",
        "memory.latency" => "lat_mem_rd",
        "memory.read" => "Mem read",
        "memory.write" => "Mem write",
        "memory.copy" => "Bcopy",
        "switch.ring" => return ring_name(params),
        "fs.create" | "fs.delete" => return file_name(probe, params),
        _ => return None,
    };
    Some(name.to_owned())
}

/// `2p/16K ctxsw`: tasks in the ring, and the memory that each touches.
fn ring_name(params: &Params) -> Option<String> {
    Some(format!("{}p/{}K ctxsw", params.int("tasks")?, params.int("footprint")? / 1024))
}

/// lmbench creates and deletes files of 0 and 10 KiB.
fn file_name(probe: &str, params: &Params) -> Option<String> {
    let what = if probe == "fs.create" { "Create" } else { "Delete" };
    match params.int("size")? {
        0 => Some(format!("0K File {what}")),
        10_240 => Some(format!("10K File {what}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prefix_belongs_to_one_group_and_each_key_is_used_once() {
        let prefixes: Vec<&str> = GROUPS.iter().flat_map(|g| g.prefixes).copied().collect();
        for (i, p) in prefixes.iter().enumerate() {
            assert!(p.ends_with('.') && !prefixes[..i].contains(p), "{p}");
        }
        let mut keys: Vec<&str> = GROUPS.iter().chain([&OTHER]).map(|g| g.key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), GROUPS.len() + 1);
    }

    #[test]
    fn probes_find_their_group_and_strangers_the_last() {
        assert_eq!(group_of("thread.create").1.title, "Processes & threads");
        assert_eq!(group_of("syscall.null").0, 1);
        assert_eq!(group_of("syscallx").1.key, "other");
        assert_eq!(group_of("").0, GROUPS.len());
        let syscalls = group_of("syscall.null").1;
        assert!(place_in(syscalls, "syscall.null") < place_in(syscalls, "syscall.stat"));
        assert!(place_in(syscalls, "syscall.epoll") < place_in(syscalls, "syscall.new"));
    }

    #[test]
    fn lmbench_names_carry_its_parameters() {
        let ring = Params::new().with("tasks", 16).with("footprint", 65_536);
        assert_eq!(lmbench_name("switch.ring", &ring).unwrap(), "16p/64K ctxsw");
        assert_eq!(lmbench_name("fs.create", &Params::new().with("size", 10_240)).unwrap(), "10K File Create");
        assert_eq!(lmbench_name("fs.create", &Params::new().with("size", 1)), None);
        assert_eq!(lmbench_name("thread.create", &Params::new()), None);
    }
}
