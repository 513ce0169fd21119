//! What each control group of the machine uses: CPU, block I/O and memory, of both versions.
//!
//! Counters of a group hold those of the groups below it; what is told is each group's own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::members::tree;
use crate::procfs::mounts::parse_mountinfo;
use crate::procfs::{Paths, bounded};

/// Groups that are read of one hierarchy: no machine has as many services, and each costs some reads. What further ones
/// use is in the counters of those above them, which are read first.
const MOST_GROUPS: usize = 2_000;

/// What a group uses by itself; nothing where its controllers do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// CPU seconds since it was made.
    pub cpu_s: Option<f64>,
    /// Bytes that it had block devices read and write.
    pub disk_bytes: Option<f64>,
    /// Bytes of memory that are charged to it now.
    pub memory_bytes: Option<f64>,
}

/// All groups that can be seen, by path. The root's is what is in no group.
pub fn all(paths: &Paths) -> BTreeMap<String, Usage> {
    let mut found: BTreeMap<String, Usage> = BTreeMap::new();
    for mount in parse_mountinfo(&paths.read("proc/self/mountinfo").unwrap_or_default()) {
        if mount.kind == "cgroup" || mount.kind == "cgroup2" {
            hierarchy(paths.path(mount.point), &mut found);
        }
    }
    found
}

/// Reads one hierarchy, and leaves of each group's counters what is its own.
fn hierarchy(root: PathBuf, found: &mut BTreeMap<String, Usage>) {
    let mut whole: BTreeMap<String, Usage> = BTreeMap::new();
    for (dir, path) in tree(root).take(MOST_GROUPS) {
        let usage = read(&dir);
        if usage == Usage::default() && path.is_empty() && !dir.join("cgroup.procs").exists() {
            return;
        }
        whole.insert(path, usage);
    }
    let mut below: BTreeMap<String, Usage> = BTreeMap::new();
    for (path, usage) in &whole {
        if let Some((parent, _)) = path.rsplit_once('/') {
            let sum = below.entry(parent.to_owned()).or_default();
            *sum = combined(*sum, *usage, |a, b| {
                a.zip(b).map(|(a, b)| a + b).or(a).or(b)
            });
        }
    }
    for (path, usage) in whole {
        let of_children = below.get(&path).copied().unwrap_or_default();
        let own = combined(usage, of_children, |all, part| {
            all.map(|all| (all - part.unwrap_or(0.0)).max(0.0))
        });
        let known = found
            .entry(if path.is_empty() {
                "/".to_owned()
            } else {
                path
            })
            .or_default();
        *known = combined(*known, own, |old, new| new.or(old));
    }
}

/// Two usages field by field.
fn combined(a: Usage, b: Usage, field: fn(Option<f64>, Option<f64>) -> Option<f64>) -> Usage {
    Usage {
        cpu_s: field(a.cpu_s, b.cpu_s),
        disk_bytes: field(a.disk_bytes, b.disk_bytes),
        memory_bytes: field(a.memory_bytes, b.memory_bytes),
    }
}

fn read(dir: &std::path::Path) -> Usage {
    let text = |name: &str| bounded::text(dir.join(name)).ok();
    let number = |name: &str| text(name).and_then(|t| t.trim().parse::<f64>().ok());
    // Version 2 tells microseconds, version 1 nanoseconds.
    let stat = text("cpu.stat").and_then(|t| {
        t.lines()
            .find_map(|l| l.strip_prefix("usage_usec ")?.trim().parse::<f64>().ok())
    });
    Usage {
        cpu_s: stat
            .map(|us| us * 1e-6)
            .or_else(|| number("cpuacct.usage").map(|ns| ns * 1e-9)),
        disk_bytes: text("io.stat").map(|t| io_stat(&t)).or_else(|| {
            text("blkio.throttle.io_service_bytes_recursive").map(|t| service_bytes(&t))
        }),
        memory_bytes: number("memory.current").or_else(|| number("memory.usage_in_bytes")),
    }
}

/// `254:0 rbytes=4096 wbytes=8192 rios=1 …`
fn io_stat(text: &str) -> f64 {
    let bytes = |word: &str| {
        word.strip_prefix("rbytes=")
            .or_else(|| word.strip_prefix("wbytes="))?
            .parse::<f64>()
            .ok()
    };
    text.split_ascii_whitespace().filter_map(bytes).sum()
}

/// `254:0 Read 4096` and `254:0 Write 8192`, among other lines.
fn service_bytes(text: &str) -> f64 {
    let bytes = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        matches!(words.next()?, "Read" | "Write").then(|| words.next()?.parse::<f64>().ok())?
    };
    text.lines().filter_map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn who_makes_thousands_of_groups_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "proc/self/mountinfo",
            "1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n",
        );
        write("cg/cgroup.procs", "");
        for honest in ["a.slice", "z.slice"] {
            write(
                &format!("cg/{honest}/db.service/cpu.stat"),
                "usage_usec 5000000\n",
            );
            write(&format!("cg/{honest}/cpu.stat"), "usage_usec 5000000\n");
        }
        let own = "cg/m.slice/user.slice/user@7.service";
        for group in ["cg/m.slice", "cg/m.slice/user.slice", own] {
            write(&format!("{group}/cpu.stat"), "usage_usec 2600000\n");
        }
        for n in 0..MOST_GROUPS + 600 {
            write(&format!("{own}/{n}/cpu.stat"), "usage_usec 1000\n");
        }
        let found = all(&Paths::under(dir.path()));
        assert_eq!(found["/a.slice/db.service"].cpu_s, Some(5.0));
        assert_eq!(found["/z.slice/db.service"].cpu_s, Some(5.0));
        let sum: f64 = found.values().filter_map(|usage| usage.cpu_s).sum();
        assert!(
            (sum - 12.6).abs() < 1e-6,
            "{sum}: what is not read is in the group above"
        );
    }

    #[test]
    fn a_groups_own_usage_is_without_that_of_the_groups_below() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "proc/self/mountinfo",
            "1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n2 0 0:2 / /old rw - cgroup cgroup rw,memory\n",
        );
        write("cg/cgroup.procs", "");
        write("cg/a/cpu.stat", "usage_usec 5000000\nuser_usec 1\n");
        write("cg/a/io.stat", "254:0 rbytes=100 wbytes=50 rios=3\n");
        write("cg/a/b/cpu.stat", "usage_usec 3000000\n");
        write(
            "cg/a/b/io.stat",
            "254:0 rbytes=100 wbytes=0\n254:1 wbytes=20\n",
        );
        write("old/cgroup.procs", "");
        write("old/a/memory.usage_in_bytes", "4096\n");
        write(
            "old/c/blkio.throttle.io_service_bytes_recursive",
            "8:0 Read 10\n8:0 Write 20\n8:0 Sync 30\nTotal 30\n",
        );
        let found = all(&Paths::under(dir.path()));
        let usage = |cpu_s, disk_bytes, memory_bytes| Usage {
            cpu_s,
            disk_bytes,
            memory_bytes,
        };
        assert_eq!(found["/a"], usage(Some(2.0), Some(30.0), Some(4096.0)));
        assert_eq!(found["/a/b"], usage(Some(3.0), Some(120.0), None));
        assert_eq!(found["/c"], usage(None, Some(30.0), None));
    }
}
