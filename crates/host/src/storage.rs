//! The file system of the work directory, and swap.

use std::path::Path;

use fingerpost_record::host::{Filesystem, Swap};
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::procfs::memory::{SwapArea, parse_swaps};
use fingerpost_sys::procfs::mounts::{mount_of, parse_mountinfo};
use fingerpost_sys::system;

/// The directory may not exist yet: then its nearest ancestor that does is described.
pub(crate) fn filesystem(paths: &Paths, work_dir: &Path) -> Filesystem {
    let absolute = std::path::absolute(work_dir).unwrap_or_else(|_| work_dir.to_owned());
    let existing = absolute.ancestors().find_map(|path| path.canonicalize().ok()).unwrap_or(absolute);
    let mounts = parse_mountinfo(&paths.read("proc/self/mountinfo").unwrap_or_default());
    let mount = mount_of(&mounts, &existing).cloned().unwrap_or_default();
    Filesystem {
        path: existing.display().to_string(),
        kind: mount.kind,
        device: mount.source,
        options: mount.options,
        free_bytes: system::free_bytes(&existing).unwrap_or(0),
    }
}

pub(crate) fn swap(paths: &Paths) -> Vec<Swap> {
    let swap = |SwapArea { path, kind, bytes, used, priority }| Swap { path, kind, bytes, used_bytes: used, priority };
    parse_swaps(&paths.read("proc/swaps").unwrap_or_default()).into_iter().map(swap).collect()
}
