//! Putting a file behind a device, with the entry in the journal that undoes it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fingerpost_sys::loopdev::{find_free, put_behind};

use crate::journal::Undo;
use crate::scratch::{Scratch, Ticket};

/// Others may take the device that was free a moment ago.
const ATTEMPTS: usize = 16;

/// A file that is behind a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// `/dev/loopN`.
    pub device: PathBuf,
    /// Undoes it.
    pub ticket: Ticket,
}

/// Puts a file (or a device) behind a free loop device. Needs root.
///
/// # Errors
/// The kernel's, or the journal's. Nothing is attached then.
pub fn attach(scratch: &mut Scratch, backing: &Path) -> io::Result<Attached> {
    // The kernel names the real path.
    let backing = fs::canonicalize(backing)?;
    for _ in 0..ATTEMPTS {
        let (device, made) = find_free()?;
        let ticket = scratch.record(Undo::LoopDetach {
            device: device.clone(),
            backing: backing.clone(),
            remove: made,
        })?;
        match put_behind(&device, &backing) {
            Ok(()) => return Ok(Attached { device, ticket }),
            Err(e) => {
                scratch.undo(ticket).map_err(io::Error::other)?;
                if e.raw_os_error() != Some(libc::EBUSY) {
                    return Err(e);
                }
            }
        }
    }
    Err(io::Error::new(
        io::ErrorKind::ResourceBusy,
        "every free loop device was taken by another process",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The devices that have this file behind them.
    fn devices_of(image: &Path) -> Vec<PathBuf> {
        let all = fs::read_dir("/sys/block").unwrap().flatten();
        let behind = |at: PathBuf| fs::read_to_string(at.join("loop/backing_file")).ok();
        all.filter(|at| behind(at.path()).is_some_and(|text| Path::new(text.trim_end()) == image))
            .map(|at| Path::new("/dev").join(at.file_name()))
            .collect()
    }

    #[test]
    fn a_file_is_put_behind_a_device_and_taken_away_by_the_journal() {
        fingerpost_testing::require!(root);
        if !Path::new("/dev/loop-control").exists() {
            return fingerpost_testing::skipped("needs loop devices");
        }
        let dir = tempfile::tempdir().unwrap();
        let mut scratch = Scratch::create_in(&dir.path().join("root")).unwrap();
        let image = scratch.path().join("image");
        fs::write(&image, [0; 1 << 16]).unwrap();
        let attached = attach(&mut scratch, &image).unwrap();
        assert_eq!(devices_of(&image), [attached.device]);
        scratch.undo(attached.ticket).unwrap();
        assert_eq!(devices_of(&image).len(), 0);
        attach(&mut scratch, &image).unwrap();
        assert_eq!(devices_of(&image).len(), 1);
        assert!(attach(&mut scratch, Path::new("/nonexistent")).is_err());
        drop(scratch);
        assert_eq!(devices_of(&image).len(), 0);
    }
}
