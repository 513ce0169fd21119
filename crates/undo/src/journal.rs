//! Changes to the system, as what undoes them.
//!
//! An entry is written before its change is made, so each undo also succeeds when there is nothing to undo. The file is
//! [`log`]'s, and `permit` says what an entry may hold: a journal that this version cannot have written is not undone.

pub mod log;
mod permit;

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fingerpost_sys::autogroup::Autogroup;
use fingerpost_sys::cgroup::write_setting;
use fingerpost_sys::system::{there, unless};
use fingerpost_sys::{child, loopdev, swap, threads, zram};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::owned::{self, Dir, Identity, Removal, Trust};

pub use fingerpost_sys::child::boot_id;
pub use permit::PREFIXES;

/// A `postmaster.pid` has eight short lines.
const LONGEST_NOTE: u64 = 16 << 10;

/// How to undo one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "undo", rename_all = "snake_case")]
#[allow(missing_docs, reason = "what is said of each says what its fields are")]
pub enum Undo {
    /// Kill a process group that we started: the id is that of its first process, which started in this boot, so many
    /// clock ticks after it began.
    KillGroup { pgid: i32, start: u64, boot: String },
    /// Remove a directory that we made, with all that is in it. [`log::Entry::made`] says which one it is.
    RemoveDirectory { path: PathBuf },
    /// Remove a file or a directory with all that is in it, within a directory of ours.
    RemovePath { path: PathBuf },
    /// Write back what a file of `/proc` or `/sys` held.
    WriteFile { path: PathBuf, content: String },
    /// Remove one directory of a control group, as [`fingerpost_sys::cgroup::Group::places`] tells it; processes still in it go
    /// back to the group of its maker.
    RemoveGroup {
        place: fingerpost_sys::cgroup::Place,
    },
    /// Remove the segment of shared memory that a PostgreSQL server made. The note is the server's `postmaster.pid`,
    /// whose seventh line has the segment's key and number. A server that ended well removed both.
    RemoveSegment { note: PathBuf },
    /// Kill every process in the control group with this directory, whichever process group it went to.
    KillMembers { directory: PathBuf },
    /// Kill every process that carries the mark of this scratch directory (see [`child::mark`]).
    KillMarked { scratch: PathBuf },
    /// Switch off a swap area that we made, a file or device with this UUID in its header: an area with another one is
    /// somebody else's.
    SwapOff { path: PathBuf, uuid: [u8; 16] },
    /// Switch on again a swap area of the user's that was switched off at the user's request. A negative priority was
    /// the kernel's choice.
    SwapOn { path: PathBuf, priority: i32 },
    /// Take a file of ours away from a loop device (`/dev/loopN`), and remove the device where it was made for us.
    LoopDetach {
        device: PathBuf,
        backing: PathBuf,
        remove: bool,
    },
    /// Take the limits on a device of ours away again, by its major and minor number, such as `7:0`, in a control file.
    /// (Where the device has gone, so have its limits.)
    Unthrottle { file: PathBuf, device: String },
    /// Empty a zram device of ours by its N of `/dev/zramN`, and remove it where it was made for us. A device of
    /// another size than we gave it is somebody else's.
    ZramReset {
        number: u32,
        bytes: u64,
        remove: bool,
    },
    /// Unmount a file system that we mounted on a directory of ours.
    Unmount { path: PathBuf },
    /// Write back what a control file of a group held, for the time of an experiment.
    GroupSetting { file: PathBuf, content: String },
    /// Give threads back their nice values or CPUs, for the time of an experiment.
    Threads { before: threads::Before },
    /// Look once more for processes that inherited such a change, and take the marks off by which they are known.
    Inherited { left: threads::kin::Left },
    /// Give the scheduler's group of a session back its nice value, for the time of an experiment.
    Autogroup { before: Autogroup },
    /// Let processes of ours go on that were stopped for the time of an experiment, each with the time when it started,
    /// in clock ticks after this boot began.
    Continue {
        processes: Vec<(i32, u64)>,
        boot: String,
    },
}

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undo::KillGroup { pgid, .. } => write!(f, "killed process group {pgid}"),
            Undo::RemoveDirectory { path } | Undo::RemovePath { path } => {
                write!(f, "removed {}", path.display())
            }
            Undo::WriteFile { path, content } => {
                write!(f, "wrote “{}” back to {}", content.trim(), path.display())
            }
            Undo::RemoveGroup { place } => {
                write!(f, "removed the control group {}", place.directory.display())
            }
            Undo::RemoveSegment { note } => {
                write!(f, "removed the shared memory named in {}", note.display())
            }
            Undo::KillMembers { directory } => {
                write!(
                    f,
                    "killed what ran in the control group {}",
                    directory.display()
                )
            }
            Undo::KillMarked { scratch } => {
                write!(f, "killed what was started for {}", scratch.display())
            }
            Undo::SwapOff { path, .. } => {
                write!(f, "switched off the swap area {}", path.display())
            }
            Undo::SwapOn { path, .. } => {
                write!(f, "switched the swap area {} on again", path.display())
            }
            Undo::LoopDetach { device, .. } => write!(f, "freed {}", device.display()),
            Undo::Unthrottle { device, .. } => {
                write!(f, "took the limits on the block device {device} away")
            }
            Undo::ZramReset { number, .. } => write!(f, "emptied /dev/zram{number}"),
            Undo::Unmount { path } => write!(f, "unmounted {}", path.display()),
            Undo::GroupSetting { file, content } => {
                write!(f, "wrote “{content}” back to {}", file.display())
            }
            Undo::Threads { before } => {
                write!(f, "gave {} threads back what they had", before.threads())
            }
            Undo::Inherited { .. } => {
                f.write_str("looked for processes that were started while threads were changed")
            }
            Undo::Autogroup { .. } => {
                f.write_str("gave a session's scheduling group back its nice value")
            }
            Undo::Continue { processes, .. } => {
                write!(f, "let {} processes go on", processes.len())
            }
        }
    }
}

/// A directory that the journal says is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Its path.
    pub path: PathBuf,
    /// Which directory it is; `None` when the journal's writer was killed between making it and saying so.
    pub made: Option<Identity>,
}

/// The directories of one journal: what lies elsewhere is none of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Areas(pub Vec<Area>);

impl Areas {
    /// The innermost directory of ours in which a path lies, and the rest of the path.
    fn find<'a>(&self, path: &'a Path) -> Option<(&Area, &'a Path)> {
        let all = self
            .0
            .iter()
            .filter_map(|area| Some((area, path.strip_prefix(&area.path).ok()?)));
        all.min_by_key(|(_, rest)| rest.as_os_str().len())
    }

    /// Opens the directory in which a path lies. `None` when it has gone, or something else has its name.
    fn open(&self, path: &Path) -> io::Result<Option<Dir>> {
        let outside = || {
            io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it is in no directory of ours",
            )
        };
        let (area, _) = self.find(path).ok_or_else(outside)?;
        let (Some(parent), Some(name)) = (area.path.parent(), area.path.file_name()) else {
            return Err(outside());
        };
        let opened = there(Dir::open(parent, Trust::Caller).and_then(|parent| parent.own(name)))?;
        let Some(dir) = opened else { return Ok(None) };
        Ok((Some(dir.identity()?) == area.made).then_some(dir))
    }
}

impl Undo {
    /// Undoes the change, or says in a sentence why it could not be undone. `areas` are the directories of the same
    /// journal.
    pub fn apply(&self, areas: &Areas) -> Result<(), String> {
        let cannot = |what: fmt::Arguments, result: io::Result<()>| {
            result.map_err(|e| format!("cannot {what}: {e}"))
        };
        match self {
            Undo::KillGroup { pgid, start, boot } => kill_group(*pgid, *start, boot),
            Undo::RemoveDirectory { path } => remove_area(areas, path),
            Undo::RemovePath { path } => cannot(
                format_args!("remove {}", path.display()),
                remove_within(areas, path),
            ),
            Undo::RemoveSegment { note } => remove_segment(areas, note),
            Undo::WriteFile { path, content } => cannot(
                format_args!("restore {}", path.display()),
                fs::write(path, content),
            ),
            Undo::RemoveGroup { place } => {
                fingerpost_sys::cgroup::remove_directory(place).map_err(|e| e.to_string())
            }
            Undo::KillMembers { directory } => child::kill_all(|| child::members(directory))
                .map_err(|e| {
                    format!(
                        "cannot end what runs in the control group {}: {e}",
                        directory.display()
                    )
                }),
            Undo::KillMarked { scratch } => child::kill_marked(scratch)
                .map_err(|e| format!("cannot end what was started for {}: {e}", scratch.display())),
            Undo::SwapOff { path, uuid } => swap::off_if_ours(path, *uuid)
                .map_err(|e| format!("cannot switch off the swap area {}: {e}", path.display())),
            Undo::SwapOn { path, .. } if swap::is_on(path) || !path.exists() => Ok(()),
            Undo::SwapOn { path, priority } => swap::on(path, *priority).map_err(|e| {
                format!(
                    "cannot switch the swap area {} on again: {e}",
                    path.display()
                )
            }),
            Undo::LoopDetach {
                device,
                backing,
                remove,
            } => cannot(
                format_args!("free {}", device.display()),
                loopdev::detach(device, backing, *remove),
            ),
            Undo::Unthrottle { file, device } => unless(
                fs::write(file, format!("{device} 0")),
                &[libc::ENODEV, libc::ENOENT],
            )
            .map_err(|e| {
                format!(
                    "cannot take the limit on {device} away in {}: {e}",
                    file.display()
                )
            }),
            Undo::ZramReset {
                number,
                bytes,
                remove,
            } => zram::tear_down(
                zram::Choice {
                    number: *number,
                    make: *remove,
                },
                *bytes,
            )
            .map_err(|e| format!("cannot empty /dev/zram{number}: {e}")),
            Undo::Unmount { path } => cannot(
                format_args!("unmount {}", path.display()),
                unmount(areas, path),
            ),
            Undo::GroupSetting { file, content } => {
                unless(write_setting(file, content), &[libc::ENOENT])
                    .map_err(|e| format!("cannot restore {}: {e}", file.display()))
            }
            Undo::Threads { before } => cannot(
                format_args!("give threads back what they had"),
                before.restore(),
            ),
            Undo::Inherited { left } => cannot(
                format_args!("give threads that were made meanwhile back what they had"),
                left.restore(),
            ),
            Undo::Autogroup { before } => cannot(
                format_args!("give a session back its nice value"),
                before.restore(),
            ),
            Undo::Continue { processes, boot } => go_on(processes, boot),
        }
    }

    /// When it is undone: the lower, the earlier.
    pub fn turn(&self) -> u8 {
        use Undo::{
            Autogroup, Continue, GroupSetting, Inherited, KillGroup, KillMarked, KillMembers,
            SwapOn, Threads, Unthrottle, WriteFile,
        };
        match self {
            // Settings of the system are written without a look at any process: however many there are, and whatever
            // they do, that takes no time.
            WriteFile { .. } | GroupSetting { .. } | Unthrottle { .. } | SwapOn { .. } => 0,
            // Processes by their numbers, then those that have to be looked for.
            Continue { .. } | Autogroup { .. } => 1,
            Threads { .. } => 2,
            // What runs holds files, mounts and devices.
            KillGroup { .. } => 3,
            KillMembers { .. } | KillMarked { .. } => 4,
            // Once more when most is quiet: who began to fork before the change was undone is there now.
            Inherited { .. } => 5,
            _ => 6,
        }
    }

    /// Whether it is a change for the short time of an experiment, which the guardian undoes when that is over, though
    /// the run lives.
    pub fn is_brief(&self) -> bool {
        use Undo::{Autogroup, Continue, GroupSetting, Threads, WriteFile};
        matches!(
            self,
            GroupSetting { .. }
                | Threads { .. }
                | Autogroup { .. }
                | Continue { .. }
                | WriteFile { .. }
        )
    }

    /// Whether nothing but a file or directory of ours is changed.
    pub fn is_within(&self) -> bool {
        matches!(self, Undo::RemoveDirectory { .. } | Undo::RemovePath { .. })
    }
}

fn go_on(processes: &[(i32, u64)], boot: &str) -> Result<(), String> {
    if boot != boot_id() {
        return Ok(());
    }
    let same = processes
        .iter()
        .filter(|(pid, start)| child::start_time(*pid) == Some(*start));
    let go_on = |pid| {
        child::signal(pid, libc::SIGCONT)
            .map_err(|e| format!("cannot let process {pid} go on: {e}"))
    };
    same.map(|(pid, _)| go_on(*pid)).fold(Ok(()), Result::and)
}

/// Kills a group while its first process lives. Without it the number may be a stranger's; what is left of ours then
/// carries our mark.
fn kill_group(pgid: i32, start: u64, boot: &str) -> Result<(), String> {
    if boot != boot_id() || child::start_time(pgid) != Some(start) {
        return Ok(());
    }
    child::signal_group(pgid, libc::SIGKILL)
        .map_err(|e| format!("cannot kill process group {pgid}: {e}"))
}

fn remove_area(areas: &Areas, path: &Path) -> Result<(), String> {
    let trouble = |e: io::Error| format!("cannot remove {}: {e}", path.display());
    let (Some((area, _)), Some(parent), Some(name)) =
        (areas.find(path), path.parent(), path.file_name())
    else {
        return Err(format!("{} is no directory of ours", path.display()));
    };
    let parent = there(Dir::open(parent, Trust::Caller)).map_err(trouble)?;
    let Some(parent) = parent else { return Ok(()) };
    match area.made {
        // It was not yet used: what is not empty is not ours.
        None => parent.remove_empty(name).map_err(trouble),
        Some(made) => match parent.remove(name, Some(made)).map_err(trouble)? {
            Removal::Gone => Ok(()),
            Removal::Replaced => {
                let path = path.display();
                Err(format!(
                    "{path} has become another directory than the one that we made, and is left alone"
                ))
            }
        },
    }
}

fn remove_within(areas: &Areas, path: &Path) -> io::Result<()> {
    let Some(area) = areas.open(path)? else {
        return Ok(());
    };
    let (Some((_, rest)), Some(name)) = (areas.find(path), path.file_name()) else {
        return Ok(());
    };
    let removed = match rest.parent() {
        Some(parent) if parent != Path::new("") => {
            let parent = area.below(parent, OFlags::PATH | OFlags::DIRECTORY);
            parent.and_then(|parent| owned::remove_in(parent.as_fd(), name, None))
        }
        _ => area.remove(name, None),
    };
    unless(removed.map(drop), &[libc::ENOENT])
}

fn unmount(areas: &Areas, path: &Path) -> io::Result<()> {
    let (Some(area), Some(name)) = (areas.open(path)?, path.file_name()) else {
        return Ok(());
    };
    fingerpost_sys::mount::unmount(
        &PathBuf::from(format!("/proc/self/fd/{}", area.as_fd().as_raw_fd())).join(name),
    )
}

fn remove_segment(areas: &Areas, note: &Path) -> Result<(), String> {
    // The server writes the note, and could write anything: it must be a plain file, and the segment must be of the
    // same user.
    let read = || -> io::Result<(u32, String)> {
        let none = || io::Error::from(io::ErrorKind::NotFound);
        let area = areas.open(note)?.ok_or_else(none)?;
        let (_, rest) = areas.find(note).ok_or_else(none)?;
        let file = fs::File::from(area.below(rest, OFlags::RDONLY | OFlags::NONBLOCK)?);
        let meta = file.metadata()?;
        // A second name could be that of somebody else's file, and then its owner is not who wrote the note.
        if !meta.is_file() || meta.nlink() != 1 {
            return Err(none());
        }
        Ok((meta.uid(), owned::read_bounded(file, LONGEST_NOTE)?))
    };
    let Some((owner, (key, id))) = read()
        .ok()
        .and_then(|(owner, text)| Some((owner, parse_postmaster_note(&text)?)))
    else {
        return Ok(());
    };
    fingerpost_sys::shm::remove_segment(key, id, owner)
        .map_err(|e| format!("cannot remove segment {id} of shared memory: {e}"))
}

/// Key and number of the segment in a `postmaster.pid`. The key is written unsigned.
fn parse_postmaster_note(text: &str) -> Option<(i32, i32)> {
    let mut numbers = text.lines().nth(6)?.split_ascii_whitespace();
    let key: u32 = numbers.next()?.parse().ok()?;
    Some((key as i32, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests;
