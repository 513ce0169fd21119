//! The drive that the system is on, and the places for swap beside it: the source's “single drive” and “dual drive”.
//!
//! The source has the system on a partition of one drive and swap on another partition of it (single), or on a second
//! drive (dual).

use std::path::{Path, PathBuf};

use fingerpost_sys::disks::{Disks, Map};
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::procfs::memory::{SwapArea, parse_swaps};
use fingerpost_sys::procfs::mounts::Mount;
use fingerpost_sys::system;

/// Where programs lie: the drive that the system is on is this directory's.
const SYSTEM: &str = "/usr";
/// File systems on which a loop device over a file works well enough to swap to.
const CARRY_SWAP: [&str; 6] = ["ext4", "xfs", "btrfs", "ext3", "ext2", "f2fs"];
const ZSWAP: &str = "/sys/module/zswap/parameters/enabled";

/// Which drive swap is to be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// The one that the system is on, on another partition: the source's “single drive”.
    Same,
    /// Another one than the system's: the source's “dual drive”.
    Other,
}

impl Drive {
    /// The placement's name.
    pub fn word(self) -> &'static str {
        match self {
            Drive::Same => "single",
            Drive::Other => "dual",
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Drive::Same => "another partition of the drive that the system is on",
            Drive::Other => "another drive than the system's",
        }
    }
}

/// What is known of a place, or of the system's.
struct Place {
    device: Option<(u32, u32)>,
    disks: Disks,
}

/// The drives of a machine.
pub struct Drives {
    map: Map,
    system: Place,
}

impl Drives {
    /// Looks at what is mounted and on which drives.
    pub fn read(paths: &Paths) -> Drives {
        let map = Map::read(paths);
        let system = place(&map, Path::new(SYSTEM));
        Drives { map, system }
    }

    /// Whether a place is on the drive that was asked for.
    ///
    /// # Errors
    /// A sentence that says where it is instead, or that it cannot be told.
    pub fn check(&self, drive: Drive, at: &Path) -> Result<(), String> {
        self.check_place(drive, &at.display().to_string(), &place(&self.map, at))
    }

    fn check_place(&self, drive: Drive, name: &str, place: &Place) -> Result<(), String> {
        self.system_known()?;
        let system = list(&self.system.disks);
        if place.disks.is_empty() {
            return Err(format!(
                "it cannot be told which drive {name} is on, and `{}` needs {}",
                drive.word(),
                drive.wanted()
            ));
        }
        let shared = !place.disks.is_disjoint(&self.system.disks);
        match drive {
            Drive::Other if shared => Err(format!(
                "{name} is on {system}, as the system is, and `dual` needs another drive: that would be `single`"
            )),
            Drive::Same if place.disks != self.system.disks => {
                let other = list(&place.disks);
                Err(format!(
                    "{name} is on {other} and the system on {system}, and `single` needs the same drive: that would be \
                     `dual`"
                ))
            }
            Drive::Same if place.device == self.system.device => Err(format!(
                "{name} is on the system's own file system, and `single` needs another partition: that would be `file` \
                 or `loop`"
            )),
            _ => Ok(()),
        }
    }

    /// The mounted file system with most free space that is where it was asked for.
    ///
    /// # Errors
    /// A sentence where there is none.
    pub fn find(&self, drive: Drive) -> Result<PathBuf, String> {
        self.system_known()?;
        let able = self.map.mounts.iter().filter(|m| self.able(drive, m));
        let with_room = able.filter_map(|m| Some((system::free_bytes(&m.point).ok()?, &m.point)));
        let found = with_room
            .max_by_key(|(free, _)| *free)
            .map(|(_, point)| point.clone());
        found.ok_or_else(|| {
            let word = drive.word();
            format!(
                "nothing is mounted here on {}: name a directory or a partition there with {word}:PLACE",
                drive.wanted()
            )
        })
    }

    fn able(&self, drive: Drive, mount: &Mount) -> bool {
        CARRY_SWAP.contains(&mount.kind.as_str())
            && !mount.has_option("ro")
            && mount.point.is_dir()
            && self.check(drive, &mount.point).is_ok()
    }

    fn system_known(&self) -> Result<(), String> {
        match self.system.disks.is_empty() {
            true => Err(format!(
                "it cannot be told which drive the system is on ({SYSTEM} lies on no disk that the kernel names here)"
            )),
            false => Ok(()),
        }
    }

    /// Where the machine's own swap is, in the words of placements: `file`, `single`, `dual`, `zram`; several in the
    /// order in which they are filled, with a plus between them; `zswap` before them where that is on; `unknown` where
    /// the drive cannot be told; `no-swap`.
    pub fn found(&self, paths: &Paths) -> String {
        let mut areas = parse_swaps(&paths.read("/proc/swaps").unwrap_or_default());
        if areas.is_empty() {
            return "no-swap".into();
        }
        areas.sort_by_key(|area| std::cmp::Reverse(area.priority));
        let zswap = paths
            .value(ZSWAP)
            .is_some_and(|value| value == "Y")
            .then_some("zswap");
        let mut words: Vec<&str> = zswap.into_iter().collect();
        for word in areas.iter().map(|area| self.word_of(area)) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        words.join("+")
    }

    fn word_of(&self, area: &SwapArea) -> &'static str {
        let place = place(&self.map, Path::new(&area.path));
        if place.disks.iter().any(|disk| disk.starts_with("zram")) {
            return "zram";
        }
        // A file is where its file system is; a partition is a device of its own.
        let place = if area.kind == "file" {
            place
        } else {
            Place {
                device: None,
                ..place
            }
        };
        if place.device.is_some() && place.device == self.system.device {
            return "file";
        }
        let is = |drive| self.check_place(drive, &area.path, &place).is_ok();
        match () {
            () if is(Drive::Other) => Drive::Other.word(),
            () if is(Drive::Same) => Drive::Same.word(),
            () => "unknown",
        }
    }
}

fn place(map: &Map, at: &Path) -> Place {
    Place {
        device: map.device_of(at),
        disks: map.disks_of(at),
    }
}

fn list(disks: &Disks) -> String {
    disks
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(" and ")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// `sda1` is the system's, `sda2` is mounted at a directory of its own, `sdb` at another; swap as told.
    fn machine(swaps: &str) -> (tempfile::TempDir, Paths) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for path in [
            "sys/dev/block",
            "proc/self",
            "sys/block/sda/sda1",
            "sys/block/sda/sda2",
            "sys/block/sdb",
            "home",
            "second",
        ] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for n in [1, 2] {
            fs::write(
                root.join(format!("sys/block/sda/sda{n}/partition")),
                n.to_string(),
            )
            .unwrap();
        }
        for (number, name) in [("8:1", "sda/sda1"), ("8:2", "sda/sda2"), ("8:16", "sdb")] {
            symlink(
                format!("../../block/{name}"),
                root.join("sys/dev/block").join(number),
            )
            .unwrap();
        }
        let (home, second) = (root.join("home"), root.join("second"));
        let mounts = [("8:1", Path::new("/")), ("8:2", &home), ("8:16", &second)];
        let line = |(number, point): (&str, &Path)| {
            format!("1 0 {number} / {} rw - ext4 /dev/x rw\n", point.display())
        };
        fs::write(root.join("proc/self/mountinfo"), mounts.map(line).concat()).unwrap();
        fs::write(
            root.join("proc/swaps"),
            format!(
                "Filename Type Size Used Priority\n{}",
                swaps.replace('@', &root.display().to_string())
            ),
        )
        .unwrap();
        let paths = Paths::under(root);
        (dir, paths)
    }

    #[test]
    fn the_sources_placements_are_where_it_had_them() {
        let (dir, paths) = machine("");
        let drives = Drives::read(&paths);
        assert_eq!(drives.find(Drive::Same), Ok(dir.path().join("home")));
        assert_eq!(drives.find(Drive::Other), Ok(dir.path().join("second")));
        assert_eq!(
            drives.check(Drive::Other, &dir.path().join("second")),
            Ok(())
        );
        assert_eq!(drives.check(Drive::Same, &dir.path().join("home")), Ok(()));
        for (drive, place, words) in [
            (Drive::Other, "home", "would be `single`"),
            (Drive::Same, "second", "would be `dual`"),
            (Drive::Same, "", "would be `file`"),
        ] {
            let sentence = drives.check(drive, &dir.path().join(place)).unwrap_err();
            assert!(sentence.contains(words), "{sentence}");
        }
    }

    #[test]
    fn a_machine_of_one_drive_has_no_second_and_what_is_not_known_is_neither() {
        let (dir, paths) = machine("");
        let text = fs::read_to_string(dir.path().join("proc/self/mountinfo")).unwrap();
        fs::write(
            dir.path().join("proc/self/mountinfo"),
            text.lines().next().unwrap(),
        )
        .unwrap();
        assert!(
            Drives::read(&paths)
                .find(Drive::Other)
                .unwrap_err()
                .contains("dual:PLACE")
        );
        fs::write(
            dir.path().join("proc/self/mountinfo"),
            "1 0 0:33 / / rw - overlay overlay rw\n",
        )
        .unwrap();
        let drives = Drives::read(&paths);
        for drive in [Drive::Same, Drive::Other] {
            assert!(
                drives
                    .check(drive, &dir.path().join("second"))
                    .unwrap_err()
                    .contains("cannot be told")
            );
            assert!(drives.find(drive).is_err());
        }
    }

    #[test]
    fn the_machines_own_swap_is_told_in_the_words_of_placements() {
        for (swaps, word) in [
            ("", "no-swap"),
            ("/swapfile file 1024 0 -2\n", "file"),
            ("@/home/swap file 1024 0 -2\n", "single"),
            ("@/second/swap file 1024 0 -2\n", "dual"),
            (
                "@/second/swap file 1024 0 -3\n/swapfile file 1024 0 -2\n",
                "file+dual",
            ),
        ] {
            let (_dir, paths) = machine(swaps);
            assert_eq!(Drives::read(&paths).found(&paths), word);
        }
        let (dir, paths) = machine("/swapfile file 1024 0 -2\n");
        fs::create_dir_all(dir.path().join("sys/module/zswap/parameters")).unwrap();
        fs::write(dir.path().join(&ZSWAP[1..]), "Y\n").unwrap();
        assert_eq!(Drives::read(&paths).found(&paths), "zswap+file");
    }
}
