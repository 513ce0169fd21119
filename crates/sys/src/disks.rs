//! Which disks a directory, a file or a block device lies on.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::procfs::Paths;
use crate::procfs::mounts::{Mount, mount_of, parse_mountinfo};

/// Whole disks by the kernel's names (`sda`, `nvme0n1`), several under a volume that is spread over them. Empty where
/// that cannot be told: a file system in memory, of a container or over the network.
pub type Disks = BTreeSet<String>;

/// Devices that lie over devices that lie over devices: no real stack is as deep, and a made-up one may go in a circle.
const DEEPEST: usize = 16;

/// The machine's file systems and what lies below them.
#[derive(Clone, Debug)]
pub struct Map {
    paths: Paths,
    /// Every mounted file system.
    pub mounts: Vec<Mount>,
}

impl Map {
    /// Reads what is mounted.
    pub fn read(paths: &Paths) -> Map {
        let mounts = parse_mountinfo(&paths.read("/proc/self/mountinfo").unwrap_or_default());
        Map {
            paths: paths.clone(),
            mounts,
        }
    }

    /// The disks that hold a file or directory, or that a block device is (a part of).
    pub fn disks_of(&self, path: &Path) -> Disks {
        self.below(path, DEEPEST).unwrap_or_default()
    }

    /// The device number of the file system that a file or directory is in; of a block device its own. `None` where it
    /// is on no block device.
    pub fn device_of(&self, path: &Path) -> Option<(u32, u32)> {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        block_number(&real).or_else(|| number(mount_of(&self.mounts, &real)?))
    }

    fn below(&self, path: &Path, left: usize) -> Option<Disks> {
        let (major, minor) = self.device_of(path)?;
        self.under(
            &fs::canonicalize(self.paths.path(format!("/sys/dev/block/{major}:{minor}"))).ok()?,
            left,
        )
    }

    /// The disks under a device, by its directory in sysfs: a partition's is below its disk's, and a volume names what
    /// it is made of.
    fn under(&self, dir: &Path, left: usize) -> Option<Disks> {
        let left = left.checked_sub(1)?;
        if dir.join("partition").exists() {
            return self.under(dir.parent()?, left);
        }
        if let Ok(backing) = fs::read_to_string(dir.join("loop/backing_file")) {
            return self.below(Path::new(backing.trim_end()), left);
        }
        let mut slaves = fs::read_dir(dir.join("slaves"))
            .into_iter()
            .flatten()
            .flatten()
            .peekable();
        if slaves.peek().is_none() {
            return Some([dir.file_name()?.to_string_lossy().into_owned()].into());
        }
        // One part that is not known could be any disk.
        let each = slaves.map(|slave| self.under(&fs::canonicalize(slave.path()).ok()?, left));
        Some(
            each.collect::<Option<Vec<Disks>>>()?
                .into_iter()
                .flatten()
                .collect(),
        )
    }
}

/// The number of a mount's device. Some file systems (btrfs) have a number of their own that is no device's, and name
/// the device.
fn number(mount: &Mount) -> Option<(u32, u32)> {
    match mount.device_number {
        (0, _) if mount.source.starts_with("/dev/") => block_number(Path::new(&mount.source)),
        (0, _) => None,
        number => Some(number),
    }
}

fn block_number(path: &Path) -> Option<(u32, u32)> {
    let meta = fs::metadata(path)
        .ok()
        .filter(|meta| meta.file_type().is_block_device())?;
    Some((libc::major(meta.rdev()), libc::minor(meta.rdev())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Two disks: `sda` with two partitions, `sdb`; a volume over `sda2` and `sdb`, a loop device over a file on `sdb`,
    /// one over itself.
    fn machine() -> (tempfile::TempDir, Map) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let make = |path: &str| fs::create_dir_all(root.join(path)).unwrap();
        let put = |path: &str, text: &str| fs::write(root.join(path), text).unwrap();
        for path in [
            "sys/dev/block",
            "proc/self",
            "sys/block/sda/sda1",
            "sys/block/sda/sda2",
            "sys/block/sdb/slaves",
        ] {
            make(path);
        }
        put("sys/block/sda/sda1/partition", "1");
        put("sys/block/sda/sda2/partition", "2");
        make("sys/block/dm-0/slaves");
        symlink("../../sda/sda2", root.join("sys/block/dm-0/slaves/sda2")).unwrap();
        symlink("../../sdb", root.join("sys/block/dm-0/slaves/sdb")).unwrap();
        for (name, backing) in [("loop0", "/second/swap\n"), ("loop1", "/circle/swap\n")] {
            make(&format!("sys/block/{name}/loop"));
            put(&format!("sys/block/{name}/loop/backing_file"), backing);
        }
        let numbers = [
            ("8:1", "sda/sda1"),
            ("8:2", "sda/sda2"),
            ("8:16", "sdb"),
            ("252:0", "dm-0"),
            ("7:0", "loop0"),
            ("7:1", "loop1"),
        ];
        for (number, name) in numbers {
            symlink(
                format!("../../block/{name}"),
                root.join("sys/dev/block").join(number),
            )
            .unwrap();
        }
        let mounts = [
            ("8:1", "/"),
            ("8:2", "/home"),
            ("8:16", "/second"),
            ("252:0", "/both"),
            ("7:0", "/looped"),
            ("7:1", "/circle"),
        ];
        let line =
            |(number, point): (&str, &str)| format!("1 0 {number} / {point} rw - ext4 /dev/x rw\n");
        put(
            "proc/self/mountinfo",
            &(mounts.map(line).concat() + "2 0 0:44 / /memory rw - tmpfs tmpfs rw\n"),
        );
        let map = Map::read(&Paths::under(root));
        (dir, map)
    }

    #[test]
    fn what_lies_on_which_disk() {
        let (_dir, map) = machine();
        let of = |path: &str| {
            map.disks_of(Path::new(path))
                .into_iter()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            (of("/no-such-name"), of("/home/x"), of("/second/x")),
            ("sda".into(), "sda".into(), "sdb".into())
        );
        assert_eq!(of("/both/x"), "sda sdb");
        assert_eq!(of("/looped/x"), "sdb");
        assert_eq!(
            (
                map.device_of(Path::new("/home/x")),
                map.device_of(Path::new("/no-such-name"))
            ),
            (Some((8, 2)), Some((8, 1)))
        );
    }

    #[test]
    fn what_cannot_be_told_is_no_disk() {
        let (_dir, map) = machine();
        assert!(map.disks_of(Path::new("/memory/x")).is_empty());
        assert_eq!(map.device_of(Path::new("/memory/x")), None);
        assert!(
            map.disks_of(Path::new("/circle/x")).is_empty(),
            "a circle ends"
        );
    }
}
