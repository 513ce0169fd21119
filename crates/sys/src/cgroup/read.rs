//! Which hierarchies there are, where in them we stand, and what they allow us.

use std::path::{Path, PathBuf};

use super::{Controller, Version};
use crate::procfs::memory::parse_counters;
use crate::procfs::mounts::parse_mountinfo;
use crate::procfs::{Paths, parse_list};

/// A limit of version 1 at or above this is "none": the kernel writes the largest page-aligned number.
const NO_LIMIT: u64 = 1 << 60;

/// One mounted hierarchy and our place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) version: Version,
    /// Names of the controllers in it.
    pub(super) controllers: Vec<String>,
    /// Where it is mounted.
    pub(super) mount: PathBuf,
    /// Our control group below the mount; empty at its root.
    pub(super) own: PathBuf,
}

impl Hierarchy {
    /// The directories from our own control group up to the root that we can see.
    pub(super) fn ancestry(&self) -> impl Iterator<Item = PathBuf> {
        self.own.ancestors().map(|group| self.mount.join(group))
    }
}

/// The control groups that a process is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hierarchies {
    pub(super) paths: Option<Paths>,
    pub(super) all: Vec<Hierarchy>,
}

/// What the control groups allow: of each limit the tightest from our own group to the root.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// CPUs' worth of time.
    pub cpu_quota: Option<f64>,
    /// Weight (version 2) or shares (version 1) of our own group.
    pub cpu_weight: Option<u64>,
    /// CPUs, as a list.
    pub cpuset: Option<String>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
}

/// How often its quota stopped a group, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttling {
    /// Periods in which it had work.
    pub periods: u64,
    /// Periods in which the quota ran out.
    pub throttled_periods: u64,
    /// Seconds that its CPUs stood still.
    pub throttled_seconds: f64,
}

impl Throttling {
    /// What was added since an earlier reading of the same group; never negative.
    pub fn since(&self, before: &Throttling) -> Throttling {
        Throttling {
            periods: self.periods.saturating_sub(before.periods),
            throttled_periods: self
                .throttled_periods
                .saturating_sub(before.throttled_periods),
            throttled_seconds: (self.throttled_seconds - before.throttled_seconds).max(0.0),
        }
    }
}

/// [`Throttling`] of each group from a process's own to the root that we can see, own first: the quota that stops a
/// process may be any ancestor's, and the kernel counts it there alone. A group of version 2 without the CPU controller
/// counts nothing, because it has no quota: it was never stopped, as far as all groups up to the real root are seen; in
/// a name space of its own a group that counts nothing is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Throttlings(Vec<Counted>);

/// What one group counts.
#[derive(Clone, Debug, PartialEq)]
struct Counted {
    group: PathBuf,
    /// How many levels above the process's own group.
    above: usize,
    throttling: Throttling,
}

impl Throttlings {
    /// What was added since an earlier reading by the group that was stopped longest, and how many levels above the
    /// process's own group that is (0: its own). A process whose group is stopped stands still whichever level it is,
    /// and levels overlap in time, so that their sum would count twice. `None` where no group counted both times: a
    /// process that was moved has other groups.
    pub fn since(&self, before: &Throttlings) -> Option<(Throttling, usize)> {
        let added = |now: &Counted| {
            let old = before.0.iter().find(|old| old.group == now.group)?;
            Some((now.throttling.since(&old.throttling), now.above))
        };
        // Of groups that were stopped alike (most often not at all) the nearest speaks.
        let longest = |a: &(Throttling, usize), b: &(Throttling, usize)| {
            a.0.throttled_seconds
                .total_cmp(&b.0.throttled_seconds)
                .then(b.1.cmp(&a.1))
        };
        self.0.iter().filter_map(added).max_by(longest)
    }
}

impl Hierarchies {
    /// Those of the calling process.
    pub fn of_self(paths: &Paths) -> Self {
        Self::of_process(paths, "self")
    }

    /// Those of another process (its id, or `self`), below the mounts that the calling process sees.
    pub fn of_process(paths: &Paths, pid: &str) -> Self {
        let read = |name: &str| paths.read(name).unwrap_or_default();
        let mut found = Self::parse(
            &read(&format!("proc/{pid}/cgroup")),
            &read("proc/self/mountinfo"),
        );
        for hierarchy in found.all.iter_mut().filter(|h| h.version == Version::V2) {
            let controllers = paths
                .read(hierarchy.mount.join("cgroup.controllers"))
                .unwrap_or_default();
            hierarchy.controllers = controllers
                .split_ascii_whitespace()
                .map(str::to_owned)
                .collect();
        }
        found.paths = Some(paths.clone());
        found
    }

    /// From the text of `/proc/PID/cgroup` and `/proc/PID/mountinfo`; the controllers of version 2 stand in neither.
    fn parse(cgroup: &str, mountinfo: &str) -> Self {
        let mounts = parse_mountinfo(mountinfo);
        let hierarchy = |line: &str| {
            // `4:memory:/path`, `9:name=systemd:/`, `0::/path`: the path may hold colons.
            let mut fields = line.splitn(3, ':');
            let (id, names, path) = (fields.next()?, fields.next()?, fields.next()?);
            let version = if id == "0" && names.is_empty() {
                Version::V2
            } else {
                Version::V1
            };
            let controllers: Vec<String> = names
                .split(',')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect();
            let mount = mounts.iter().rfind(|mount| match version {
                Version::V1 => {
                    mount.kind == "cgroup" && controllers.iter().any(|name| mount.has_option(name))
                }
                Version::V2 => mount.kind == "cgroup2",
            })?;
            // A bind mount or a name space shows only the part of the tree below the mount's root: a group outside of
            // it is taken for that root, the nearest that we can read.
            let own = mount.below(path).unwrap_or_default();
            Some(Hierarchy {
                version,
                own,
                controllers,
                mount: mount.point.clone(),
            })
        };
        Self {
            paths: None,
            all: cgroup.lines().filter_map(hierarchy).collect(),
        }
    }

    /// The version that limits us: 1 where any controller that we know is in a version 1 hierarchy.
    pub fn version(&self) -> Option<Version> {
        let known = |h: &&Hierarchy| {
            h.controllers
                .iter()
                .any(|name| Controller::ALL.iter().any(|c| c.name(h.version) == name))
        };
        let first = self
            .all
            .iter()
            .find(|h| h.version == Version::V1 && known(h));
        first
            .or_else(|| self.all.iter().find(|h| h.version == Version::V2))
            .map(|h| h.version)
    }

    /// The hierarchy that a controller is in.
    pub(super) fn of(&self, controller: Controller) -> Option<&Hierarchy> {
        let holds = |h: &&Hierarchy| match (controller, h.version) {
            (Controller::Freezer, Version::V2) => true,
            (_, version) => h
                .controllers
                .iter()
                .any(|name| name == controller.name(version)),
        };
        // A freezer of version 1 is preferred where both are mounted: the other controllers are likely there, too.
        self.all
            .iter()
            .filter(holds)
            .min_by_key(|h| h.version.number())
    }

    /// Our own control group's path per hierarchy, as `/proc/self/cgroup` tells it below the mount; for markers of
    /// containers.
    pub fn own_groups(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().map(|h| h.own.as_path())
    }

    /// Version 1: the root of the hierarchy that limits block devices. There the kernel charges what belongs to no
    /// group of that hierarchy, such as writing pages to swap. `None` under version 2, which charges the group that
    /// owns the page.
    pub fn block_root_v1(&self) -> Option<PathBuf> {
        self.of(Controller::Io)
            .filter(|h| h.version == Version::V1)
            .map(|h| h.mount.clone())
    }

    /// The limits in force. Our own group's name space may hide tighter ones above.
    pub fn limits(&self) -> Limits {
        Limits {
            cpu_quota: self.tightest(Controller::Cpu, cpu_quota),
            cpu_weight: self.own_weight(),
            cpuset: self.own_cpuset(),
            memory: self.tightest(Controller::Memory, memory_limit),
            pids: self.tightest(Controller::Pids, |paths, dir, _| {
                limit(paths, &dir.join("pids.max"))
            }),
        }
    }

    /// The files of this name in the process's own group and its ancestors, with their text.
    pub fn files(&self, controller: Controller, name: &str) -> Vec<(PathBuf, String)> {
        let (Some(paths), Some(hierarchy)) = (self.paths.as_ref(), self.of(controller)) else {
            return Vec::new();
        };
        let read = |dir: PathBuf| Some((dir.join(name), paths.read(dir.join(name)).ok()?));
        hierarchy.ancestry().filter_map(read).collect()
    }

    /// How often the quotas of our own group and of its ancestors ran out; nothing without the controller.
    pub fn throttlings(&self) -> Throttlings {
        let (Some(paths), Some(hierarchy)) = (self.paths.as_ref(), self.of(Controller::Cpu)) else {
            return Throttlings::default();
        };
        // Only groups below the real root have a type.
        let all_seen = hierarchy.version == Version::V2
            && paths.read(hierarchy.mount.join("cgroup.type")).is_err();
        let of = |group: &Path| {
            let text = paths.read(group.join("cpu.stat")).ok()?;
            stops(&text).or_else(|| (all_seen && has_no_quota(&text)).then(Throttling::default))
        };
        let counted = |(above, group): (usize, PathBuf)| {
            Some(Counted {
                throttling: of(&group)?,
                above,
                group,
            })
        };
        Throttlings(
            hierarchy
                .ancestry()
                .enumerate()
                .filter_map(counted)
                .collect(),
        )
    }

    /// The smallest of what each group from our own to the root says.
    fn tightest<T: PartialOrd>(
        &self,
        of: Controller,
        read: fn(&Paths, &Path, Version) -> Option<T>,
    ) -> Option<T> {
        let (paths, hierarchy) = (self.paths.as_ref()?, self.of(of)?);
        let limits = hierarchy
            .ancestry()
            .filter_map(|dir| read(paths, &dir, hierarchy.version));
        limits.reduce(|least, limit| if limit < least { limit } else { least })
    }

    fn own_weight(&self) -> Option<u64> {
        let hierarchy = self.of(Controller::Cpu)?;
        let file = hierarchy.version.either("cpu.shares", "cpu.weight");
        self.paths
            .as_ref()?
            .number(hierarchy.mount.join(&hierarchy.own).join(file))
    }

    /// The kernel writes the set that is in force into each group: no walk is needed.
    fn own_cpuset(&self) -> Option<String> {
        let (paths, hierarchy) = (self.paths.as_ref()?, self.of(Controller::Cpuset)?);
        let own = hierarchy.mount.join(&hierarchy.own);
        let files = [
            "cpuset.cpus.effective",
            "cpuset.effective_cpus",
            "cpuset.cpus",
        ];
        files
            .iter()
            .find_map(|file| paths.value(own.join(file)))
            .filter(|list| parse_list(list).is_some())
    }
}

pub(super) fn cpu_quota(paths: &Paths, dir: &Path, version: Version) -> Option<f64> {
    let (quota, period) = match version {
        Version::V1 => (
            paths.value(dir.join("cpu.cfs_quota_us"))?,
            paths.value(dir.join("cpu.cfs_period_us"))?,
        ),
        Version::V2 => paths
            .value(dir.join("cpu.max"))?
            .split_once(' ')
            .map(|(quota, period)| (quota.into(), period.into()))?,
    };
    // Version 1 writes -1 and version 2 `max` for none: neither is a positive number.
    let positive = |text: String| {
        text.parse::<f64>()
            .ok()
            .filter(|n| n.is_finite() && *n > 0.0)
    };
    Some(positive(quota)? / positive(period)?)
}

fn memory_limit(paths: &Paths, dir: &Path, version: Version) -> Option<u64> {
    limit(
        paths,
        &dir.join(version.either("memory.limit_in_bytes", "memory.max")),
    )
}

fn limit(paths: &Paths, file: &Path) -> Option<u64> {
    paths.number(file).filter(|&n| n < NO_LIMIT)
}

/// What a group's `cpu.stat` counts of stops: version 1 has `throttled_time` in nanoseconds, version 2
/// `throttled_usec`.
pub(super) fn stops(text: &str) -> Option<Throttling> {
    let stat = parse_counters(text);
    let nanoseconds = stat.get("throttled_time").map(|&ns| ns as f64 / 1e9);
    let microseconds = stat.get("throttled_usec").map(|&us| us as f64 / 1e6);
    Some(Throttling {
        periods: *stat.get("nr_periods")?,
        throttled_periods: *stat.get("nr_throttled")?,
        throttled_seconds: nanoseconds.or(microseconds)?,
    })
}

/// Whether this is the `cpu.stat` of a group of version 2 that counts no stops: it has no CPU controller, and so no
/// quota.
fn has_no_quota(text: &str) -> bool {
    text.contains("usage_usec") && !text.contains("nr_throttled")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Paths) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let paths = Paths::under(dir.path());
        (dir, paths)
    }

    #[test]
    fn version_1_takes_the_tightest_of_the_ancestors() {
        let (_dir, paths) = tree(&[
            (
                "proc/self/cgroup",
                "4:memory:/a/b\n2:cpu,cpuacct:/a\n3:cpuset:/\n8:pids:/\n",
            ),
            (
                "proc/self/mountinfo",
                "1 0 0:1 / /cg/mem rw - cgroup cgroup rw,memory\n2 0 0:2 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                 3 0 0:3 / /cg/set rw - cgroup cgroup rw,cpuset\n4 0 0:4 / /cg/pids rw - cgroup cgroup rw,pids\n",
            ),
            ("cg/mem/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cg/mem/a/memory.limit_in_bytes", "67108864\n"),
            ("cg/mem/a/b/memory.limit_in_bytes", "134217728\n"),
            ("cg/cpu/cpu.cfs_quota_us", "-1\n"),
            ("cg/cpu/cpu.cfs_period_us", "100000\n"),
            ("cg/cpu/a/cpu.cfs_quota_us", "50000\n"),
            ("cg/cpu/a/cpu.cfs_period_us", "100000\n"),
            ("cg/cpu/a/cpu.shares", "512\n"),
            (
                "cg/cpu/a/cpu.stat",
                "nr_periods 10\nnr_throttled 4\nthrottled_time 2500000000\n",
            ),
            ("cg/set/cpuset.cpus", "0-1\n"),
        ]);
        let groups = Hierarchies::of_self(&paths);
        assert_eq!(groups.version(), Some(Version::V1));
        let expected = Limits {
            cpu_quota: Some(0.5),
            cpu_weight: Some(512),
            cpuset: Some("0-1".into()),
            memory: Some(64 << 20),
            pids: None,
        };
        assert_eq!(groups.limits(), expected);
        let stopped = Throttling {
            periods: 10,
            throttled_periods: 4,
            throttled_seconds: 2.5,
        };
        assert_eq!(
            groups.throttlings().since(&zeroed(&groups)),
            Some((stopped, 0))
        );
    }

    #[test]
    fn version_2_takes_the_tightest_of_the_ancestors() {
        let (_dir, paths) = tree(&[
            ("proc/self/cgroup", "0::/user.slice/me\n"),
            (
                "proc/self/mountinfo",
                "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
            ),
            (
                "sys/fs/cgroup/cgroup.controllers",
                "cpuset cpu io memory pids\n",
            ),
            ("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/user.slice/me/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/user.slice/me/memory.max", "max\n"),
            ("sys/fs/cgroup/user.slice/memory.max", "1073741824\n"),
            ("sys/fs/cgroup/user.slice/me/cpu.weight", "50\n"),
            ("sys/fs/cgroup/user.slice/me/pids.max", "100\n"),
            (
                "sys/fs/cgroup/user.slice/me/cpu.stat",
                "usage_usec 1\nnr_periods 1\nnr_throttled 1\nthrottled_usec 500000\n",
            ),
        ]);
        let groups = Hierarchies::of_self(&paths);
        assert_eq!(groups.version(), Some(Version::V2));
        let expected = Limits {
            cpu_quota: Some(1.5),
            cpu_weight: Some(50),
            cpuset: None,
            memory: Some(1 << 30),
            pids: Some(100),
        };
        assert_eq!(groups.limits(), expected);
        assert_eq!(
            groups
                .throttlings()
                .since(&zeroed(&groups))
                .unwrap()
                .0
                .throttled_seconds,
            0.5
        );
    }

    /// The same groups as if nothing had stopped them yet.
    fn zeroed(groups: &Hierarchies) -> Throttlings {
        let zero = |c: Counted| Counted {
            throttling: Throttling::default(),
            ..c
        };
        Throttlings(groups.throttlings().0.into_iter().map(zero).collect())
    }

    /// What `cpu.stat` of a version says of so many periods and seconds.
    fn cpu_stat(version: Version, periods: u64, throttled: u64, seconds: u64) -> String {
        let time = match version {
            Version::V1 => format!("throttled_time {}", seconds * 1_000_000_000),
            Version::V2 => format!("throttled_usec {}\nnr_bursts 0", seconds * 1_000_000),
        };
        format!("nr_periods {periods}\nnr_throttled {throttled}\n{time}\n")
    }

    /// A process in `/a/b/c` below a mount.
    fn nested(version: Version, stats: &[(&str, String)]) -> (tempfile::TempDir, Paths) {
        let (line, mount) = match version {
            Version::V1 => (
                "3:cpu,cpuacct:/a/b/c\n",
                "1 0 0:1 / /cg rw - cgroup cgroup rw,cpu,cpuacct\n",
            ),
            Version::V2 => ("0::/a/b/c\n", "1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n"),
        };
        let mut files = vec![
            ("proc/self/cgroup", line),
            ("proc/self/mountinfo", mount),
            ("cg/cgroup.controllers", "cpu\n"),
        ];
        files.extend(stats.iter().map(|(name, text)| (*name, text.as_str())));
        tree(&files)
    }

    #[test]
    fn a_quota_of_an_ancestor_stops_the_process_and_is_counted() {
        for version in [Version::V1, Version::V2] {
            let own = ("cg/a/b/c/cpu.stat", cpu_stat(version, 0, 0, 0));
            let parent = ("cg/a/b/cpu.stat", cpu_stat(version, 100, 10, 1));
            let (dir, paths) = nested(
                version,
                &[
                    own,
                    parent,
                    ("cg/a/cpu.stat", cpu_stat(version, 500, 20, 7)),
                ],
            );
            let groups = Hierarchies::of_self(&paths);
            let before = groups.throttlings();
            assert_eq!(
                groups.throttlings().since(&before),
                Some((Throttling::default(), 0)),
                "{version:?}: nothing happened meanwhile"
            );
            fs::write(
                dir.path().join("cg/a/b/cpu.stat"),
                cpu_stat(version, 110, 15, 2),
            )
            .unwrap();
            fs::write(
                dir.path().join("cg/a/cpu.stat"),
                cpu_stat(version, 600, 90, 12),
            )
            .unwrap();
            let longest = Throttling {
                periods: 100,
                throttled_periods: 70,
                throttled_seconds: 5.0,
            };
            assert_eq!(
                groups.throttlings().since(&before),
                Some((longest, 2)),
                "{version:?}: the grandparent's stopped it longest"
            );
        }
    }

    #[test]
    fn groups_that_count_nothing_were_not_stopped() {
        // Version 2: the controller is not delegated to the process's own group, and the root has no quota.
        let usage = "usage_usec 5\nuser_usec 5\nsystem_usec 0\n".to_owned();
        let stats = [
            ("cg/a/b/c/cpu.stat", usage.clone()),
            ("cg/a/b/cpu.stat", cpu_stat(Version::V2, 9, 3, 1)),
            ("cg/cpu.stat", usage),
        ];
        let (_dir, paths) = nested(Version::V2, &stats);
        let groups = Hierarchies::of_self(&paths);
        let stopped = Throttling {
            periods: 9,
            throttled_periods: 3,
            throttled_seconds: 1.0,
        };
        assert_eq!(
            groups.throttlings().since(&zeroed(&groups)),
            Some((stopped, 1))
        );
        assert_eq!(
            groups.throttlings().since(&Throttlings::default()),
            None,
            "a reading of other groups says nothing"
        );
        // Without the controller nothing is counted, and nothing can stop: unless there are groups above that are not
        // seen.
        let alone = [
            ("proc/self/cgroup", "0::/\n"),
            (
                "proc/self/mountinfo",
                "1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n",
            ),
            ("cg/cgroup.controllers", "cpu memory\n"),
            ("cg/cpu.stat", "usage_usec 5\nuser_usec 3\nsystem_usec 2\n"),
        ];
        let (_dir, paths) = tree(&alone);
        let groups = Hierarchies::of_self(&paths);
        assert_eq!(
            groups.throttlings().since(&groups.throttlings()),
            Some((Throttling::default(), 0))
        );
        let (_dir, paths) = tree(&[alone.as_slice(), &[("cg/cgroup.type", "domain\n")]].concat());
        assert_eq!(
            Hierarchies::of_self(&paths).throttlings(),
            Throttlings::default()
        );
        let (_dir, paths) = nested(Version::V2, &[]);
        assert_eq!(
            Hierarchies::of_self(&paths).throttlings(),
            Throttlings::default()
        );
    }

    #[test]
    fn a_container_sees_its_part_of_the_tree() {
        let mount = |root: &str| crate::procfs::mounts::Mount {
            root: root.into(),
            point: "/cg".into(),
            ..Default::default()
        };
        assert_eq!(mount("/docker/abc").below("/docker/abc"), Some("".into()));
        assert_eq!(
            mount("/docker/abc").below("/docker/abc/x"),
            Some("x".into())
        );
        assert_eq!(mount("/docker/abc").below("/elsewhere"), None);
        assert_eq!(mount("/").below("/../../etc"), None);
        let elsewhere = Hierarchies::parse(
            "0::/elsewhere",
            "1 0 0:1 /docker/abc /cg rw - cgroup2 cgroup2 rw",
        );
        assert_eq!(
            (
                elsewhere.all[0].mount.as_path(),
                elsewhere.all[0].own.as_path()
            ),
            (Path::new("/cg"), Path::new(""))
        );
    }

    #[test]
    fn a_mixed_machine_has_each_controller_in_one_hierarchy() {
        let groups = Hierarchies::parse(
            "2:name=systemd:/\n1:cpu:/x\n0::/\n",
            "1 0 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu\n2 0 0:2 / /cg/u rw - cgroup2 cgroup2 rw\n3 0 0:3 / /cg/s rw \
             - cgroup c rw,name=systemd\n",
        );
        assert_eq!(groups.version(), Some(Version::V1));
        assert_eq!(
            groups.of(Controller::Cpu).unwrap().mount,
            Path::new("/cg/cpu")
        );
        assert_eq!(groups.of(Controller::Freezer).unwrap().version, Version::V2);
        assert_eq!(groups.of(Controller::Memory), None);
    }

    #[test]
    fn no_cgroups_no_limits() {
        let (_dir, paths) = tree(&[]);
        let groups = Hierarchies::of_self(&paths);
        assert_eq!(
            (groups.version(), groups.limits()),
            (None, Limits::default())
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(cgroup in "([0-9]:[a-z,]{0,6}:[/.a-z:]{0,12}\n?){0,4}|\\PC*", mounts in "(1 0 0:1 /[a-z.]* \
            /c rw - cgroup2? c rw,cpu\n?){0,3}|\\PC*") {
            let groups = Hierarchies::parse(&cgroup, &mounts);
            let _ = (groups.version(), groups.limits());
        }
    }
}
