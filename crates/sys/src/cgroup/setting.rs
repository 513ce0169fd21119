//! Settings of groups that somebody else made: read, changed for a while, and written back.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, StatFs, fstatfs, open};

use super::read::Hierarchy;
use super::{Controller, Hierarchies};
use crate::procfs::{Paths, parse_list};

/// linux/magic.h
const CGROUP: u64 = 0x0027_e0eb;
const CGROUP2: u64 = 0x6367_7270;

/// A setting of a group, with what it was and what it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The control file.
    pub file: PathBuf,
    /// The group, as `/proc/PID/cgroup` names it.
    pub group: PathBuf,
    /// What it holds.
    pub was: String,
    /// What it is to hold.
    pub to: String,
}

/// Which weights are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// Lowered ones, to be the usual one.
    Lowered,
    /// All that are not the highest, to be that.
    All,
}

impl Hierarchies {
    /// The CPU quotas that hold for the process, to be lifted, its own group's first; with the CPUs' worth of time of
    /// each.
    pub fn quotas(&self) -> Vec<(Setting, f64)> {
        let quota = |paths: &Paths, h: &Hierarchy, group: &Path| {
            let dir = h.mount.join(group);
            let cpus = super::read::cpu_quota(paths, &dir, h.version)?;
            let (file, to) = h
                .version
                .either(("cpu.cfs_quota_us", "-1"), ("cpu.max", "max"));
            let was = paths.value(dir.join(file))?;
            Some((setting(dir.join(file), group, was, to.to_owned()), cpus))
        };
        self.groups(Controller::Cpu, quota)
    }

    /// The CPU weights of the process's groups below the root, to be higher, its own group's first.
    pub fn weights(&self, which: Weights) -> Vec<Setting> {
        self.groups(Controller::Cpu, |paths, h, group| {
            // The usual weight, and the highest one.
            let (file, usual, most) = h
                .version
                .either(("cpu.shares", 1024, 262_144), ("cpu.weight", 100, 10_000));
            let file = h.mount.join(group).join(file);
            let was: u64 = (group != Path::new(""))
                .then(|| paths.number(&file))
                .flatten()?;
            let to = if which == Weights::Lowered {
                usual
            } else {
                most
            };
            (was < to).then(|| setting(file, group, was.to_string(), to.to_string()))
        })
    }

    /// The groups' lists of CPUs that are shorter than the root's, to be as long, the outermost first: a group may have
    /// no CPU that the one above it has not.
    pub fn cpusets(&self) -> Vec<Setting> {
        let whole = self.of(Controller::Cpuset).and_then(|h| {
            let paths = self.paths.as_ref()?;
            ["cpuset.cpus.effective", "cpuset.cpus"]
                .iter()
                .find_map(|file| paths.value(h.mount.join(file)))
        });
        let Some(whole) = whole else {
            return Vec::new();
        };
        let mut found = self.groups(Controller::Cpuset, |paths, h, group| {
            let file = h.mount.join(group).join("cpuset.cpus");
            let was = (group != Path::new(""))
                .then(|| paths.value(&file))
                .flatten()?;
            let shorter = parse_list(&was)?.len() < parse_list(&whole)?.len();
            shorter.then(|| setting(file, group, was, whole.clone()))
        });
        found.reverse();
        found
    }

    /// What a closure finds in each group from the process's own to the root.
    fn groups<T>(
        &self,
        controller: Controller,
        find: impl Fn(&Paths, &Hierarchy, &Path) -> Option<T>,
    ) -> Vec<T> {
        let (Some(paths), Some(h)) = (self.paths.as_ref(), self.of(controller)) else {
            return Vec::new();
        };
        h.own
            .ancestors()
            .filter_map(|group| find(paths, h, group))
            .collect()
    }
}

fn setting(file: PathBuf, group: &Path, was: String, to: String) -> Setting {
    Setting {
        file,
        group: Path::new("/").join(group),
        was,
        to,
    }
}

/// Writes to a control file of a group that is there. The file system is asked of the open descriptor, and no link is
/// followed.
///
/// # Errors
/// The kernel's; `PermissionDenied` where it is no control file.
pub fn write_setting(file: &Path, value: &str) -> io::Result<()> {
    let fd = open(
        file,
        OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    if !is_of_groups(&fstatfs(fd.as_fd())?) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is no file of a control group",
        ));
    }
    File::from(fd).write_all(value.as_bytes())
}

/// Whether a file system is one of control groups.
pub fn is_of_groups(found: &StatFs) -> bool {
    // The type's width and sign differ between architectures.
    #[allow(clippy::unnecessary_cast)]
    let kind = found.f_type as u64;
    matches!(kind, CGROUP | CGROUP2)
}

/// Whether a journal may say that a file of a group held this.
pub fn is_setting(file: &str, content: &str) -> bool {
    let number = |text: &str| {
        !text.is_empty() && text.len() <= 19 && text.bytes().all(|b| b.is_ascii_digit())
    };
    match file {
        "cpu.max" => content
            .split_once(' ')
            .is_some_and(|(quota, period)| number(quota) && number(period)),
        "cpu.cfs_quota_us" | "cpu.shares" | "cpu.weight" => number(content),
        "cpuset.cpus" => content.len() <= 4096 && parse_list(content).is_some(),
        "freezer.state" => content == "THAWED",
        "cgroup.freeze" => content == "0",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Hierarchies) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let groups = Hierarchies::of_process(&Paths::under(dir.path()), "7");
        (dir, groups)
    }

    fn told(s: &Setting) -> (&str, &str, &str, &str) {
        (
            s.file.to_str().unwrap(),
            s.group.to_str().unwrap(),
            s.was.as_str(),
            s.to.as_str(),
        )
    }

    #[test]
    fn version_1_has_its_settings_in_several_trees() {
        let (_dir, groups) = tree(&[
            ("proc/7/cgroup", "3:cpuset:/a/b\n2:cpu,cpuacct:/a/b\n"),
            (
                "proc/self/mountinfo",
                "1 0 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n2 0 0:2 / /cg/set rw - cgroup cgroup rw,cpuset\n",
            ),
            ("cg/cpu/a/cpu.cfs_quota_us", "50000\n"),
            ("cg/cpu/a/cpu.cfs_period_us", "100000\n"),
            ("cg/cpu/a/b/cpu.cfs_quota_us", "-1\n"),
            ("cg/cpu/a/b/cpu.cfs_period_us", "100000\n"),
            ("cg/cpu/cpu.shares", "1024\n"),
            ("cg/cpu/a/cpu.shares", "262144\n"),
            ("cg/cpu/a/b/cpu.shares", "100\n"),
            ("cg/set/cpuset.cpus", "0-3\n"),
            ("cg/set/a/cpuset.cpus", "0-1\n"),
            ("cg/set/a/b/cpuset.cpus", "0\n"),
        ]);
        let quotas = groups.quotas();
        assert_eq!(
            quotas
                .iter()
                .map(|(s, cpus)| (told(s), *cpus))
                .collect::<Vec<_>>(),
            [(("/cg/cpu/a/cpu.cfs_quota_us", "/a", "50000", "-1"), 0.5)]
        );
        let weights = |which| groups.weights(which);
        assert_eq!(
            weights(Weights::All).iter().map(told).collect::<Vec<_>>(),
            [("/cg/cpu/a/b/cpu.shares", "/a/b", "100", "262144")]
        );
        assert_eq!(weights(Weights::Lowered)[0].to, "1024");
        let sets = groups.cpusets();
        let expected = [
            ("/cg/set/a/cpuset.cpus", "/a", "0-1", "0-3"),
            ("/cg/set/a/b/cpuset.cpus", "/a/b", "0", "0-3"),
        ];
        assert_eq!(
            sets.iter().map(told).collect::<Vec<_>>(),
            expected,
            "the outermost first"
        );
    }

    #[test]
    fn version_2_has_them_in_one() {
        let (_dir, groups) = tree(&[
            ("proc/7/cgroup", "0::/slice/db\n"),
            (
                "proc/self/mountinfo",
                "1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n",
            ),
            ("cg/cgroup.controllers", "cpuset cpu\n"),
            ("cg/slice/cpu.max", "150000 100000\n"),
            ("cg/slice/db/cpu.max", "max 100000\n"),
            ("cg/slice/cpu.weight", "100\n"),
            ("cg/slice/db/cpu.weight", "20\n"),
            ("cg/cpuset.cpus.effective", "0-1\n"),
            ("cg/slice/cpuset.cpus", "\n"),
            ("cg/slice/db/cpuset.cpus", "1\n"),
        ]);
        assert_eq!(
            groups
                .quotas()
                .iter()
                .map(|(s, _)| told(s))
                .collect::<Vec<_>>(),
            [("/cg/slice/cpu.max", "/slice", "150000 100000", "max")]
        );
        let lowered = groups.weights(Weights::Lowered);
        assert_eq!(
            lowered.iter().map(told).collect::<Vec<_>>(),
            [("/cg/slice/db/cpu.weight", "/slice/db", "20", "100")]
        );
        assert_eq!(groups.weights(Weights::All).len(), 2);
        assert_eq!(
            groups.cpusets().iter().map(told).collect::<Vec<_>>(),
            [("/cg/slice/db/cpuset.cpus", "/slice/db", "1", "0-1")]
        );
    }

    #[test]
    fn only_a_kernels_control_files_and_contents_are_settings() {
        for (file, content) in [
            ("cpu.max", "150000 100000"),
            ("cpu.shares", "2"),
            ("cpuset.cpus", "0-1,4"),
            ("freezer.state", "THAWED"),
        ] {
            assert!(is_setting(file, content), "{file}");
        }
        for (file, content) in [
            ("cpu.max", "max\n1 1"),
            ("freezer.state", "FROZEN"),
            ("cgroup.freeze", "1"),
            ("cgroup.procs", "1"),
            ("cpu.shares", "-1"),
        ] {
            assert!(!is_setting(file, content), "{file} {content}");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cpu.shares");
        fs::write(&file, "1024").unwrap();
        assert_eq!(
            write_setting(&file, "5").unwrap_err().kind(),
            io::ErrorKind::PermissionDenied
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "1024");
    }
}
