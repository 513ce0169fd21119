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
    group("processor", "Processor & clock", &["clock."], &[]),
    group(
        "syscalls",
        "System calls",
        &["syscall.", "lmbench."],
        &["null", "read", "write", "stat", "fstat", "open_close", "select", "poll", "epoll"],
    ),
    group("signals", "Signals", &["signal."], &["install", "handle", "fault"]),
    group(
        "processes",
        "Processes & threads",
        &["process.", "thread."],
        &["fork", "vfork", "spawn", "exec", "exec_dynamic", "shell", "create"],
    ),
    group("switching", "Context switching", &["switch."], &[]),
    group(
        "latencies",
        "Local communication latencies",
        &["ipc."],
        &["pipe", "unix", "udp", "tcp", "tcp_connect", "eventfd", "futex", "shm"],
    ),
    group("bandwidths", "Local communication bandwidths", &["bandwidth."], &["pipe", "unix", "tcp", "file_reread", "mmap_reread"]),
    group("synchronisation", "Synchronisation", &["sync."], &["mutex", "mutex_contended", "rwlock", "condvar"]),
    group("parallel", "Parallel kernel", &["parallel."], &[]),
    group("vm", "Virtual memory", &["vm."], &["mmap", "munmap", "mprotect", "fault_anon", "fault_file", "fault_cow"]),
    group("fs", "File system", &["fs."], &["create", "delete", "rename", "append", "fsync", "fdatasync"]),
    group("memory", "Memory", &["memory."], &["latency", "read", "write", "copy"]),
    group("arithmetic", "CPU arithmetic", &["cpu."], &["int", "div", "branch", "flops"]),
    group("flops", "Floating point by compiler", &["flops."], &[]),
    group("zerofill", "Zero-filling", &["zerofill."], &[]),
    group("site", "Site: files against an object database", &["site."], &[]),
    group("launch", "Launching applications", &["launch."], &[]),
    group("database", "Database", &["database."], &[]),
    group("web", "Web server", &["web."], &[]),
    group("service", "Running service", &["service."], &["latency", "rate"]),
    group("load", "Load from a client machine", &["load."], &["throughput", "turns", "turn"]),
];

/// Where the rest goes.
pub static OTHER: GroupOf = group("other", "Other", &[], &[]);

const fn group(key: &'static str, title: &'static str, prefixes: &'static [&'static str], order: &'static [&'static str]) -> GroupOf {
    GroupOf { key, title, prefixes, order }
}

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
