//! Changes to the system, as what undoes them: one JSON object a line.
//!
//! An entry is written before its change is made, so each undo also succeeds when there is nothing to undo.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{child, files, loopdev, swap, zram};

/// How to undo one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "undo", rename_all = "snake_case")]
pub enum Undo {
    /// Kill a process group that we started.
    KillGroup {
        /// The group, which is the id of its first process.
        pgid: i32,
        /// When the first process started, in clock ticks since boot.
        start: u64,
        /// The boot it was started in.
        boot: String,
    },
    /// Remove a file or a directory with all that is in it.
    RemovePath {
        /// What to remove.
        path: PathBuf,
    },
    /// Write back what a file of `/proc` or `/sys` held.
    WriteFile {
        /// The file.
        path: PathBuf,
        /// What it held.
        content: String,
    },
    /// Remove a control group; processes still in it go back to the group of its maker.
    RemoveGroup {
        /// One directory of the group, as [`crate::cgroup::Group::places`] tells it.
        place: crate::cgroup::Place,
    },
    /// Remove the segment of shared memory that a PostgreSQL server made.
    RemoveSegment {
        /// The server's `postmaster.pid`, whose seventh line has the segment's key and number. A server that ended well removed both.
        note: PathBuf,
    },
    /// Kill every process in a control group, whichever process group it went to.
    KillMembers {
        /// The control group's directory.
        directory: PathBuf,
    },
    /// Kill every process that carries `FINGERPOST_SCRATCH` with this directory in its environment.
    KillMarked {
        /// The scratch directory.
        scratch: PathBuf,
    },
    /// Switch off a swap area that we made.
    SwapOff {
        /// The file or device.
        path: PathBuf,
        /// The UUID in its header: an area with another one is somebody else's.
        uuid: [u8; 16],
    },
    /// Switch on again a swap area of the user's that was switched off at the user's request.
    SwapOn {
        /// The file or device.
        path: PathBuf,
        /// Its priority; a negative one was the kernel's choice.
        priority: i32,
    },
    /// Take a file of ours away from a loop device.
    LoopDetach {
        /// `/dev/loopN`.
        device: PathBuf,
        /// The file.
        backing: PathBuf,
        /// Whether the device was made for us.
        remove: bool,
    },
    /// Take the limits on a device of ours away again. (Where the device has gone, so have its limits.)
    Unthrottle {
        /// The control file.
        file: PathBuf,
        /// Major and minor number, such as `7:0`.
        device: String,
    },
    /// Empty a zram device of ours.
    ZramReset {
        /// N of `/dev/zramN`.
        number: u32,
        /// The size that we gave it: a device of another size is somebody else's.
        bytes: u64,
        /// Whether the device was made for us.
        remove: bool,
    },
    /// Unmount a file system that we mounted on a directory of ours.
    Unmount {
        /// The directory.
        path: PathBuf,
    },
}

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undo::KillGroup { pgid, .. } => write!(f, "killed process group {pgid}"),
            Undo::RemovePath { path } => write!(f, "removed {}", path.display()),
            Undo::WriteFile { path, content } => write!(f, "wrote “{}” back to {}", content.trim(), path.display()),
            Undo::RemoveGroup { place } => write!(f, "removed the control group {}", place.directory.display()),
            Undo::RemoveSegment { note } => write!(f, "removed the shared memory named in {}", note.display()),
            Undo::KillMembers { directory } => write!(f, "killed what ran in the control group {}", directory.display()),
            Undo::KillMarked { scratch } => write!(f, "killed what was started for {}", scratch.display()),
            Undo::SwapOff { path, .. } => write!(f, "switched off the swap area {}", path.display()),
            Undo::SwapOn { path, .. } => write!(f, "switched the swap area {} on again", path.display()),
            Undo::LoopDetach { device, .. } => write!(f, "freed {}", device.display()),
            Undo::Unthrottle { device, .. } => write!(f, "took the limits on the block device {device} away"),
            Undo::ZramReset { number, .. } => write!(f, "emptied /dev/zram{number}"),
            Undo::Unmount { path } => write!(f, "unmounted {}", path.display()),
        }
    }
}

impl Undo {
    /// Undoes the change, or says in a sentence why it could not be undone.
    pub fn apply(&self) -> Result<(), String> {
        match self {
            Undo::KillGroup { pgid, start, boot } => {
                if group_is_ours(*pgid, *start, boot) {
                    child::signal_group(*pgid, libc::SIGKILL).map_err(|e| format!("cannot kill process group {pgid}: {e}"))?;
                }
                Ok(())
            }
            Undo::RemovePath { path } => gone(match fs::symlink_metadata(path) {
                Ok(meta) if meta.is_dir() => files::remove_tree(path),
                Ok(_) => fs::remove_file(path),
                Err(e) => Err(e),
            })
            .map_err(|e| format!("cannot remove {}: {e}", path.display())),
            Undo::RemoveSegment { note } => {
                let Some((key, id)) = fs::read_to_string(note).ok().and_then(|text| parse_postmaster_note(&text)) else { return Ok(()) };
                crate::shm::remove_segment(key, id).map_err(|e| format!("cannot remove segment {id} of shared memory: {e}"))
            }
            Undo::WriteFile { path, content } => fs::write(path, content).map_err(|e| format!("cannot restore {}: {e}", path.display())),
            Undo::RemoveGroup { place } => crate::cgroup::remove_directory(place).map_err(|e| e.to_string()),
            Undo::KillMembers { directory } => child::kill_all(|| child::members(directory))
                .map_err(|e| format!("cannot end what runs in the control group {}: {e}", directory.display())),
            Undo::KillMarked { scratch } => child::kill_all(|| child::marked(scratch))
                .map_err(|e| format!("cannot end what was started for {}: {e}", scratch.display())),
            Undo::SwapOff { path, uuid } => {
                swap::off_if_ours(path, *uuid).map_err(|e| format!("cannot switch off the swap area {}: {e}", path.display()))
            }
            Undo::SwapOn { path, .. } if swap::is_on(path) || !path.exists() => Ok(()),
            Undo::SwapOn { path, priority } => {
                swap::on(path, *priority).map_err(|e| format!("cannot switch the swap area {} on again: {e}", path.display()))
            }
            Undo::LoopDetach { device, backing, remove } => {
                loopdev::detach(device, backing, *remove).map_err(|e| format!("cannot free {}: {e}", device.display()))
            }
            Undo::Unthrottle { file, device } => match fs::write(file, format!("{device} 0")) {
                Err(e) if e.raw_os_error() == Some(libc::ENODEV) => Ok(()),
                other => gone(other).map_err(|e| format!("cannot take the limit on {device} away in {}: {e}", file.display())),
            },
            Undo::ZramReset { number, bytes, remove } => zram::tear_down(zram::Choice { number: *number, make: *remove }, *bytes)
                .map_err(|e| format!("cannot empty /dev/zram{number}: {e}")),
            Undo::Unmount { path } => crate::mount::unmount(path).map_err(|e| format!("cannot unmount {}: {e}", path.display())),
        }
    }
}

/// Key and number of the segment in a `postmaster.pid`. The key is written unsigned.
fn parse_postmaster_note(text: &str) -> Option<(i32, i32)> {
    let mut numbers = text.lines().nth(6)?.split_ascii_whitespace();
    let key: u32 = numbers.next()?.parse().ok()?;
    Some((key as i32, numbers.next()?.parse().ok()?))
}

/// What is gone already needs no undoing.
fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Whether a group with this number is the one that we started. While any member lives the kernel gives the number to nobody else,
/// so a first process with another start time means that the whole group has gone and the number is a stranger's.
fn group_is_ours(pgid: i32, start: u64, boot: &str) -> bool {
    boot == boot_id() && child::start_time(pgid).is_none_or(|now| start == 0 || now == start)
}

/// The random id of this boot.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|s| s.trim().to_owned()).unwrap_or_default()
}

/// An entry as a line of the journal.
pub fn to_line(undo: &Undo) -> String {
    serde_json::to_string(undo).expect("an entry is plain data") + "\n"
}

/// The entries of a journal. A last line that a kill cut short was written for a change that was not made yet, so it is left out.
pub fn from_text(text: &str) -> Vec<Undo> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_survives_being_cut_short() {
        let one = Undo::RemovePath { path: "/tmp/a b".into() };
        let two = Undo::WriteFile { path: "/sys/x".into(), content: "always\n".into() };
        let text = to_line(&one) + &to_line(&two);
        assert_eq!(from_text(&text), [one.clone(), two]);
        assert_eq!(from_text(&text[..text.len() - 5]), [one]);
    }

    #[test]
    fn a_group_of_another_boot_or_start_is_a_strangers() {
        let me = std::process::id() as i32;
        let start = child::start_time(me).unwrap();
        assert!(group_is_ours(me, start, &boot_id()));
        assert!(!group_is_ours(me, start + 1, &boot_id()));
        assert!(!group_is_ours(me, start, "another boot"));
    }

    #[test]
    fn the_note_of_a_postgresql_server_names_its_segment() {
        let note = "4711\n/data\n1700000000\n5432\n/run\n\n   5432001        29\nready   \n";
        assert_eq!(parse_postmaster_note(note), Some((5_432_001, 29)));
        assert_eq!(parse_postmaster_note("4711\n/data\n"), None);
        assert_eq!(Undo::RemoveSegment { note: "/nonexistent/postmaster.pid".into() }.apply(), Ok(()));
    }

    #[test]
    fn removing_what_is_gone_is_no_error() {
        assert_eq!(Undo::RemovePath { path: "/nonexistent/x".into() }.apply(), Ok(()));
    }
}
