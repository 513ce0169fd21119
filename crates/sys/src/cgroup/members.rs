//! Which processes a control group has, and which control group a process is in: for services that somebody else
//! started.
//!
//! Groups are found by the paths of living processes in `/proc/PID/cgroup`, so that neither systemd nor a container
//! engine is asked, and both versions are read alike.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use crate::procfs::bounded;
use crate::procfs::mounts::parse_mountinfo;
use crate::sample;

/// Groups within groups that are looked through.
const DEEPEST: usize = 32;
/// Hexadecimal digits of a container's number, and how many of them are shown.
pub const CONTAINER: usize = 64;
const SHOWN: usize = 12;

/// The control group of a process: of its paths the one that says most. `None` where it is in none but the root's, or
/// has ended.
pub fn group_of(pid: i32) -> Option<String> {
    most(&text_of(pid)?)
}

/// The paths of a process's groups in all hierarchies.
pub fn groups_of(pid: i32) -> Vec<String> {
    let text = text_of(pid).unwrap_or_default();
    paths(&text).map(|(_, path)| path.to_owned()).collect()
}

/// The groups of a process as the kernel tells them. A name may be any bytes: one that is no text hides nobody.
fn text_of(pid: i32) -> Option<String> {
    bounded::text(format!("/proc/{pid}/cgroup")).ok()
}

/// The path that says most: that of systemd or of version 2, else the longest of the others.
pub(super) fn most(text: &str) -> Option<String> {
    let lines = || paths(text).filter(|(_, path)| *path != "/");
    let named = lines().find(|(names, _)| names.is_empty() || *names == "name=systemd");
    named
        .or_else(|| lines().max_by_key(|(_, path)| path.len()))
        .map(|(_, path)| path.to_owned())
}

/// Controllers and path of each line of `/proc/PID/cgroup`.
fn paths(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .filter_map(|line| line.split_once(':')?.1.split_once(':'))
}

/// What a person calls a group: a container by the beginning of its number, else the last part of its path; below a
/// user's manager with that user, who makes groups there under the names of the system's services, too.
pub fn short(path: &str) -> String {
    let last = path
        .rsplit('/')
        .find(|part| !part.is_empty())
        .unwrap_or("/");
    let name = match path.rsplit('/').find_map(container) {
        Some(id) => format!("container {}", &id[..SHOWN]),
        None => last.to_owned(),
    };
    match user_above(path).filter(|_| user_above(last).is_none()) {
        Some(uid) => format!("{name} of user {uid}"),
        None => name,
    }
}

/// The number of the container that a part of a path is named after: `docker-ID.scope`, `libpod-ID.scope`,
/// `cri-containerd-ID.scope`, `ID`.
pub fn container(part: &str) -> Option<&str> {
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let id = name.get(name.len().checked_sub(CONTAINER)?..)?;
    let alone = name.len() == CONTAINER || name[..name.len() - CONTAINER].ends_with(['-', ':']);
    (alone && id.bytes().all(|b| b.is_ascii_hexdigit())).then_some(id)
}

/// The user of the manager that a part of a path is.
pub(super) fn user_of(part: &str) -> Option<u32> {
    let uid = part.strip_prefix("user@")?.strip_suffix(".service")?;
    uid.parse().ok()
}

/// The user below whose manager a group lies.
fn user_above(path: &str) -> Option<u32> {
    path.split('/').find_map(user_of)
}

/// A group that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its path in the hierarchy.
    pub path: String,
    /// The processes in it and in the groups below it.
    pub pids: Vec<i32>,
}

/// The group with this path, and all processes in it and below; nothing for the root, which is the whole machine.
pub fn at(wanted: &str) -> Option<Found> {
    let wanted = wanted.trim_end_matches('/');
    if wanted.is_empty() {
        return None;
    }
    let below = |path: &str| {
        path == wanted
            || path
                .strip_prefix(wanted)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    find_in(texts(), |path| below(path).then(|| wanted.to_owned())).pop()
}

pub(super) fn texts() -> impl Iterator<Item = (i32, String)> {
    let text = |pid: i32| Some((pid, text_of(pid)?));
    sample::numbers(Path::new("/proc"))
        .into_iter()
        .filter_map(text)
}

pub(super) fn find_in(
    texts: impl Iterator<Item = (i32, String)>,
    group: impl Fn(&str) -> Option<String>,
) -> Vec<Found> {
    let mut found: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
    for (pid, text) in texts {
        for path in paths(&text).filter_map(|(_, path)| group(path)) {
            found.entry(path).or_default().insert(pid);
        }
    }
    found
        .into_iter()
        .map(|(path, pids)| Found {
            path,
            pids: pids.into_iter().collect(),
        })
        .collect()
}

/// The directory of a group, among the mounts that this process sees: the one with most of its processes. `None` where
/// it has none of them.
pub fn directory(group: &Found) -> Option<PathBuf> {
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mounts = parse_mountinfo(&mountinfo)
        .into_iter()
        .filter(|m| m.kind.starts_with("cgroup"));
    let places = mounts.filter_map(|mount| Some(mount.point.join(mount.below(&group.path)?)));
    let known = |dir: &PathBuf| {
        of_directory(dir)
            .iter()
            .filter(|pid| group.pids.contains(pid))
            .count()
    };
    let counted = places
        .map(|dir| (known(&dir), dir))
        .filter(|(known, _)| *known > 0);
    counted.max_by_key(|(known, _)| *known).map(|(_, dir)| dir)
}

/// Whether this is a directory of a control group: one of the kernel's own file systems of groups. Elsewhere anybody can
/// make a directory with a file `cgroup.procs` that names whom they like.
pub fn is_directory(dir: &Path) -> bool {
    const KINDS: [libc::c_long; 2] = [libc::CGROUP_SUPER_MAGIC, libc::CGROUP2_SUPER_MAGIC];
    // The file, because version 1 has a directory with the mounts beside each other that is none.
    rustix::fs::statfs(dir.join("cgroup.procs"))
        .is_ok_and(|of| KINDS.contains(&(of.f_type as libc::c_long)))
}

/// The processes of a group's directory and of those below it, by `cgroup.procs`. Threads of a process that are in
/// several groups count where their process is.
pub fn of_directory(dir: &Path) -> Vec<i32> {
    let mut pids = BTreeSet::new();
    for (dir, _) in tree(dir.to_owned()) {
        let text = bounded::text(dir.join("cgroup.procs")).unwrap_or_default();
        // A process of another name space is written as 0.
        pids.extend(
            text.lines()
                .filter_map(|line| line.trim().parse::<i32>().ok())
                .filter(|pid| *pid > 0),
        );
    }
    pids.into_iter().collect()
}

/// A group's directory and those of the groups below it, with their paths from there on: its own is empty. What is
/// below a group is listed when the next one is asked for: whoever moves down from a group after that was read is met
/// below it. Level by level: who makes thousands of groups far below hides no other above them.
pub(super) fn tree(root: PathBuf) -> impl Iterator<Item = (PathBuf, String)> {
    let mut todo = VecDeque::from([(root, String::new(), 0)]);
    let mut last: Option<(PathBuf, String, usize)> = None;
    std::iter::from_fn(move || {
        if let Some((dir, path, depth)) = last.take().filter(|(.., depth)| *depth < DEEPEST) {
            let below = fs::read_dir::<&PathBuf>(&dir)
                .into_iter()
                .flatten()
                .flatten();
            let below = below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
            todo.extend(below.map(|e| {
                (
                    e.path(),
                    format!("{path}/{}", e.file_name().to_string_lossy()),
                    depth + 1,
                )
            }));
        }
        last = todo.pop_front();
        last.clone().map(|(dir, path, _)| (dir, path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f2a1b4c5d6e3f2a1b4c5d6e3f2a1b4c5d6e3f2a1b4c5d6e3f2a1b4c5d6e0123";

    #[test]
    fn the_path_that_says_most_is_the_group() {
        let v1 = "9:name=systemd:/system.slice/db.service\n4:memory:/limits/of/something/long/that/is/not/it\n0::/\n";
        assert_eq!(most(v1).as_deref(), Some("/system.slice/db.service"));
        assert_eq!(
            most("4:memory:/a/b\n1:cpu:/a\n0::/\n").as_deref(),
            Some("/a/b")
        );
        assert_eq!(
            most("0::/a:b\n").as_deref(),
            Some("/a:b"),
            "a path may hold colons"
        );
        assert_eq!(most("0::/\n"), None);
    }

    #[test]
    fn containers_are_known_by_their_numbers() {
        for part in [
            format!("docker-{ID}.scope"),
            format!("libpod-{ID}.scope"),
            format!("cri-containerd-{ID}.scope"),
            ID.to_owned(),
        ] {
            assert_eq!(container(&part), Some(ID), "{part}");
        }
        assert_eq!(container("system.slice"), None);
        assert_eq!(
            short(&format!("/kubepods/pod7/{ID}")),
            "container 3f2a1b4c5d6e"
        );
        assert_eq!(
            (short("/system.slice/db.service"), short("/")),
            ("db.service".to_owned(), "/".to_owned())
        );
        let user = "/user.slice/user-1000.slice/user@1000.service";
        assert_eq!(
            (short(&format!("{user}/db.service")), short(user)),
            (
                "db.service of user 1000".to_owned(),
                "user@1000.service".to_owned()
            ),
            "what a user made is not taken for the system's"
        );
    }

    #[test]
    fn a_group_has_the_processes_below_it_in_either_version() {
        let texts = || {
            [
                (1, "0::/system.slice/db.service\n"),
                (2, "0::/system.slice/db.service/workers\n"),
                (3, "0::/system.slice/db.service-other\n"),
                (4, "9:name=systemd:/system.slice/db.service\n4:memory:/\n"),
            ]
            .map(|(pid, text)| (pid, text.to_owned()))
            .into_iter()
        };
        let unit = |path: &str| {
            let at = path.find("/db.service")?;
            Some(path[..at + 11].to_owned())
                .filter(|_| path[at + 11..].is_empty() || path[at + 11..].starts_with('/'))
        };
        let found = find_in(texts(), unit);
        assert_eq!(
            found,
            [Found {
                path: "/system.slice/db.service".into(),
                pids: vec![1, 2, 4]
            }]
        );
        assert!(at("/no/such/group").is_none());
        assert_eq!(
            [at("//"), at("/")],
            [None, None],
            "the whole machine is no group"
        );
    }

    #[test]
    fn directories_are_read_with_those_below_them() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("below")).unwrap();
        fs::write(dir.path().join("cgroup.procs"), "7\n0\n").unwrap();
        fs::write(dir.path().join("below/cgroup.procs"), "9\n").unwrap();
        assert_eq!(of_directory(dir.path()), [7, 9]);
        assert!(of_directory(Path::new("/no/such/group")).is_empty());
    }
}
