//! What the kernel tells in `/proc` and `/sys`.
//!
//! Parsers take text and answer `None` (or leave a field empty) when it is not what they expect: a kernel that writes
//! less than we know of, a truncated read, a hostile file all end the same way, without a panic. [`Paths`] reads the
//! files, below a root that tests set to a made-up tree.

pub mod bounded;
pub mod memory;
pub mod mounts;
pub mod process;
pub mod system;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// More than any file that we read holds on the largest machines; what lies beyond is not read.
const LARGEST_FILE: u64 = 8 << 20;

/// Where `/proc`, `/sys` and the rest of the system are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    root: PathBuf,
}

impl Paths {
    /// The machine that we run on.
    pub fn system() -> Self {
        Self::under("/")
    }

    /// A tree that looks like the root of a machine.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Whether this is the machine that we run on, so that asking the kernel by other means than text makes sense.
    pub fn is_system(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The full path of a file that is named from the root, with or without the leading slash.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        let name = name.as_ref();
        self.root.join(name.strip_prefix("/").unwrap_or(name))
    }

    /// Whether the file or directory exists.
    pub fn exists(&self, name: impl AsRef<Path>) -> bool {
        self.path(name).exists()
    }

    /// The text of a file, bytes that are not UTF-8 replaced.
    pub fn read(&self, name: impl AsRef<Path>) -> io::Result<String> {
        self.bytes(name)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The bytes of a file.
    pub fn bytes(&self, name: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        // Most files fit: without room to begin with, each is read in ever larger pieces from 32 bytes on.
        let mut bytes = Vec::with_capacity(4 << 10);
        File::open(self.path(name))?
            .take(LARGEST_FILE)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// A file of one value, without the white space around it; `None` when it is absent, unreadable or empty.
    pub fn value(&self, name: impl AsRef<Path>) -> Option<String> {
        let text = self.read(name).ok()?;
        let value = text.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// A file of one number.
    pub fn number<T: std::str::FromStr>(&self, name: impl AsRef<Path>) -> Option<T> {
        self.value(name)?.parse().ok()
    }

    /// The names in a directory, sorted; none when there is no such directory.
    pub fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(directory))
            .into_iter()
            .flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }
}

/// The numbers of a list such as `0-3,8,10-11`, ascending; `None` when it is no such list or claims more than 65 536
/// numbers.
pub fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (
                first.trim().parse::<usize>().ok()?,
                last.trim().parse::<usize>().ok()?,
            ),
            None => part.trim().parse().map(|n| (n, n)).ok()?,
        };
        if first > last || last - first > 65_536 - numbers.len() {
            return None;
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(super) const SYSTEM_STAT: &str = "cpu  100 5 40 800 10 1 2 42 7 0\ncpu0 60 5 20 400 5 1 1 30 7 0\ncpu1 40 0 20 \
        400 5 0 1 12 0 0\n\
        intr 1 2 3\nctxt 999\nbtime 1700000000\nprocesses 77\nprocs_running 3\nprocs_blocked 1\nsoftirq 1 2\n";
    pub(super) const STAT: &str = "4242 (a) b (c) R 1 4242 4000 34816 4242 4194304 120 0 3 0 55 66 0 0 20 -5 7 0 \
        123456 9999 321 \
        18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 8 0 0 0 0 0 0 0 0 0 0\n";
    pub(super) const STATUS: &str = "Name:\tcat\nUid:\t1000\t1001\t1000\t1000\nNSpid:\t777\t5\nVmHWM:\t    1024 kB\n\
        VmRSS:\t  512 kB\nThreads:\t3\n\
        CapEff:\t000001ffffffffff\nSeccomp:\t2\nSeccomp_filters:\t4\nCpus_allowed_list:\t0-1,4\n\
        voluntary_ctxt_switches:\t7\n\
        nonvoluntary_ctxt_switches:\t9\n";
    pub(super) const MOUNTINFO: &str = "1 0 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
        22 1 0:20 / /proc rw shared:5 master:3 - proc proc rw\n\
        30 1 254:16 /data /mnt/my\\040disk rw,noatime - xfs /dev/vdb rw\n\
        32 1 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
        33 1 0:44 / /mnt/my\\040disk rw - tmpfs tmpfs rw,size=4k\n";
    pub(super) const MEMINFO: &str = "MemTotal:        2048 kB\nMemFree:  1024 kB\nMemAvailable: 1500 kB\n\
        HugePages_Total:   0\nSwapTotal: 10 kB\nSwapFree: 4 kB\n";
    pub(super) const SWAPS: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2 partition 4194300 16 \
        -2\n\
        /my\\040swap\\040(deleted) file 1024 0 5\n";

    #[test]
    fn lists_of_cpus() {
        assert_eq!(
            parse_list("0-3,8,10-11\n"),
            Some(vec![0, 1, 2, 3, 8, 10, 11])
        );
        assert_eq!(parse_list(""), Some(vec![]));
        assert_eq!(parse_list("3-1"), None);
        assert_eq!(parse_list("0-18446744073709551615"), None);
        assert_eq!(parse_list("0-60000,0-60000"), None);
        assert_eq!(parse_list("a"), None);
    }

    #[test]
    fn a_path_stays_below_its_root() {
        let paths = Paths::under("/tree");
        assert_eq!(paths.path("/proc/stat"), Path::new("/tree/proc/stat"));
        assert_eq!(paths.path("proc/stat"), Path::new("/tree/proc/stat"));
        assert!(!paths.is_system());
    }

    /// Text that resembles `/proc` more than arbitrary characters do, so that the parsers get past their first test.
    fn proc_like() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            "[0-9]{1,22}",
            "[a-z]{1,8}",
            Just("cpu".to_owned()),
            Just("cpu0".to_owned()),
            Just("(a) b)".to_owned()),
            Just("some".to_owned()),
            Just("avg10=".to_owned()),
            Just("total=1".to_owned()),
            Just("-".to_owned()),
            Just("MemTotal:".to_owned()),
            Just("Uid:".to_owned()),
            Just("\\040\\0".to_owned()),
            Just("\n".to_owned()),
            Just("\t".to_owned()),
            "\\PC{0,4}",
        ];
        prop::collection::vec(word, 0..60).prop_map(|words| words.join(" "))
    }

    proptest! {
        #[test]
        fn no_parser_panics(text in prop_oneof![proc_like(), any::<String>()]) {
            let _ = parse_list(&text);
            let _ = system::Stat::parse(&text);
            let _ = system::LoadAverage::parse(&text);
            let _ = system::Pressure::parse(&text);
            let _ = memory::Meminfo::parse(&text);
            let _ = memory::parse_swaps(&text);
            let _ = memory::parse_counters(&text);
            let _ = mounts::parse_mountinfo(&text);
            let _ = process::Stat::parse(&text);
            let _ = process::Status::parse(&text);
            let _ = process::Schedstat::parse(&text);
        }

        #[test]
        fn a_truncated_file_does_not_panic(cut in 0usize..400) {
            for text in [SYSTEM_STAT, STAT, STATUS, MOUNTINFO, SWAPS, MEMINFO] {
                let cut = text.get(..cut.min(text.len())).unwrap_or(text);
                let _ = (system::Stat::parse(cut), process::Stat::parse(cut), process::Status::parse(cut));
                let _ = (mounts::parse_mountinfo(cut), memory::parse_swaps(cut), memory::Meminfo::parse(cut));
            }
        }
    }
}
