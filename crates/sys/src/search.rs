//! Where programs are looked for.
//!
//! Root starts servers, compilers and tools by name. A directory of `PATH` that others may write to would be theirs to
//! say what root runs, and so would `.` in a directory of theirs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::owned;

/// Leaves out of `PATH`, for this process and what it starts, what is relative, and for root also directories that
/// others can change. Gives those of them that are there, to be told.
///
/// To be called once, at the start of the program, before it has a second thread.
pub fn harden() -> Vec<PathBuf> {
    let Some(path) = env::var_os("PATH") else {
        return Vec::new();
    };
    let (kept, left_out) = parted(&path, owned::uid() == 0);
    if !left_out.is_empty() {
        // SAFETY: the caller has started no other thread that could read the environment meanwhile.
        unsafe { env::set_var("PATH", kept) };
    }
    left_out
        .into_iter()
        .filter(|dir| dir.is_absolute() && dir.exists())
        .collect()
}

/// The directories that are kept, as a value of `PATH`, and the others.
fn parted(path: &OsStr, root: bool) -> (OsString, Vec<PathBuf>) {
    let (kept, left_out): (Vec<_>, Vec<_>) =
        env::split_paths(path).partition(|dir| dir.is_absolute() && (!root || is_trusted(dir)));
    // What comes out of one list can be put into another.
    (env::join_paths(kept).unwrap_or_default(), left_out)
}

/// Whether nobody but root, and who became root by `sudo`, can put a program there or replace a directory on the way.
///
/// A group may write: `/usr/local/bin` is open to the group `staff` on many hosts, and who is in it is for the
/// administrator to say.
fn is_trusted(dir: &Path) -> bool {
    let caller = env::var("SUDO_UID")
        .ok()
        .and_then(|text| text.parse::<u32>().ok());
    let safe = |place: &Path, last: bool| {
        place.metadata().is_ok_and(|meta| {
            let owner = meta.uid() == 0 || meta.uid() == owned::uid() || Some(meta.uid()) == caller;
            // In a sticky directory others cannot replace what is ours: it may lie on the way. But they can add, so it
            // may not be the last.
            let harmless = meta.mode() & 0o1000 != 0 && !last;
            owner && (meta.mode() & 0o002 == 0 || harmless)
        })
    };
    dir.canonicalize().is_ok_and(|real| {
        real.ancestors()
            .enumerate()
            .all(|(step, place)| safe(place, step == 0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_others_can_change_is_not_searched_by_root() {
        let base = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32| {
            let dir = base.path().join(name);
            fs::create_dir(&dir).unwrap();
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            dir
        };
        let (own, group, open, sticky) = (
            make("own", 0o755),
            make("group", 0o2775),
            make("open", 0o777),
            make("sticky", 0o1777),
        );
        let below = open.join("below");
        fs::create_dir(&below).unwrap();
        let none = base.path().join("none");
        let all = [
            &own,
            &group,
            &open,
            &sticky,
            &below,
            &none,
            Path::new("."),
            Path::new("bin"),
            Path::new(""),
        ];
        let path = env::join_paths(all).unwrap();
        let (kept, left_out) = parted(&path, true);
        assert_eq!(
            env::split_paths(&kept).collect::<Vec<_>>(),
            [own.clone(), group.clone()]
        );
        assert_eq!(left_out.len(), 7);
        let (kept, left_out) = parted(&path, false);
        assert_eq!(
            (env::split_paths(&kept).count(), left_out.len()),
            (6, 3),
            "a user may choose, but not what is relative"
        );
        assert_eq!(parted(OsStr::new(""), true).1.len(), 1);
    }
}
