//! What an entry of a journal may say: no more than what this version can have written.
//!
//! A journal lies where only its owner can write, so this is a second line: an entry that a fault or another version
//! wrote must not make root write or remove what is not ours.

use std::ffi::OsStr;
use std::path::{Component, Path};

use fingerpost_sys::cgroup::{Place, is_of_groups, is_setting};
use fingerpost_sys::random::is_random_name;
use rustix::fs::statfs;

use super::{Areas, Undo};

/// The switches that a lab turns, and turns back.
const SWITCHES: [&str; 2] = [
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/module/zswap/parameters/enabled",
];
/// What the names of our control groups begin with.
const GROUPS: &str = "fingerpost-";
const CONTROLLERS: [&str; 6] = ["cpu", "cpuset", "io", "memory", "pids", "hugetlb"];
/// Processes that are stopped together at most.
const MOST: usize = 1000;

/// What the names of directories of ours begin with: in the temporary directory, and in one that the user named.
pub const PREFIXES: [&str; 2] = ["fingerpost-", ".fingerpost-"];

/// Refuses, with a reason, an entry that this version cannot have written.
pub fn check(undo: &Undo, areas: &Areas) -> Result<(), &'static str> {
    let within = |path: &Path| {
        areas
            .find(path)
            .is_some_and(|(_, rest)| rest != Path::new(""))
    };
    let permitted = match undo {
        Undo::KillGroup { pgid, boot, .. } => *pgid > 1 && boot.len() <= 64,
        Undo::RemoveDirectory { path } => plain(path) && is_area_name(path.file_name()),
        Undo::RemovePath { path } | Undo::RemoveSegment { note: path } => {
            plain(path) && within(path)
        }
        Undo::Unmount { path } => {
            plain(path) && areas.0.iter().any(|area| path.parent() == Some(&area.path))
        }
        Undo::WriteFile { path, content } => {
            SWITCHES.iter().any(|s| Path::new(s) == path) && is_switch_value(content)
        }
        Undo::RemoveGroup { place } => is_group_place(place),
        Undo::KillMembers { directory } => is_group(directory),
        Undo::KillMarked { scratch } => areas.0.iter().any(|area| area.path == *scratch),
        // The UUID in the header says whether the area is ours.
        Undo::SwapOff { path, .. } => plain(path) && (path.starts_with("/dev") || within(path)),
        Undo::SwapOn { path, priority } => {
            plain(path) && (i32::from(i16::MIN)..=i32::from(i16::MAX)).contains(priority)
        }
        Undo::LoopDetach {
            device, backing, ..
        } => {
            is_numbered(device, "/dev/loop")
                && (is_numbered(backing, "/dev/loop") || within(backing))
        }
        Undo::Unthrottle { file, device } => {
            is_named_in_group(file, |n| {
                n.starts_with("blkio.throttle.") && n.ends_with("_device")
            }) && is_device_number(device)
        }
        Undo::ZramReset { number, .. } => *number <= 1 << 20,
        Undo::GroupSetting { file, content } => {
            is_named_in_group(file, |name| is_setting(name, content))
        }
        Undo::Threads { before } => before.is_plausible(),
        Undo::Inherited { left } => left.is_plausible(),
        Undo::Autogroup { before } => before.is_plausible(),
        Undo::Continue { processes, boot } => {
            boot.len() <= 64 && processes.len() <= MOST && processes.iter().all(|(pid, _)| *pid > 1)
        }
    };
    if permitted {
        Ok(())
    } else {
        Err("an entry is not one that this version writes")
    }
}

/// From `/` on, without `.` and `..`.
fn plain(path: &Path) -> bool {
    let mut steps = path.components();
    let plain = steps.next() == Some(Component::RootDir)
        && steps.all(|step| matches!(step, Component::Normal(_)));
    plain
        && path.as_os_str().len() < 4096
        && path
            .components()
            .collect::<std::path::PathBuf>()
            .as_os_str()
            == path.as_os_str()
}

fn is_area_name(name: Option<&OsStr>) -> bool {
    name.is_some_and(|name| PREFIXES.iter().any(|prefix| is_random_name(name, prefix)))
}

fn is_switch_value(content: &str) -> bool {
    let word = content.trim_end_matches('\n');
    !word.is_empty() && word.len() <= 16 && word.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn is_group_place(place: &Place) -> bool {
    is_group(&place.directory)
        && plain(&place.home)
        && in_groups(&place.home)
        && place
            .enabled
            .iter()
            .all(|c| CONTROLLERS.contains(&c.as_str()))
}

fn is_group(directory: &Path) -> bool {
    is_named_in_group(directory, |name| name.starts_with(GROUPS))
}

/// Whether it is a file or group of such a name in a control group.
fn is_named_in_group(path: &Path, named: impl Fn(&str) -> bool) -> bool {
    plain(path)
        && path.file_name().and_then(OsStr::to_str).is_some_and(named)
        && path.parent().is_some_and(in_groups)
}

/// Whether a directory is of the file system of control groups. One that has gone needs no undoing, and harms nobody.
fn in_groups(directory: &Path) -> bool {
    statfs(directory).map_or_else(
        |e| e == rustix::io::Errno::NOENT,
        |found| is_of_groups(&found),
    )
}

fn is_numbered(path: &Path, prefix: &str) -> bool {
    let digits = path.to_str().and_then(|text| text.strip_prefix(prefix));
    digits.is_some_and(|digits| {
        (1..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    })
}

fn is_device_number(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(major, minor)| major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok())
}
