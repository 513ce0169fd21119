//! `/proc/self/mountinfo`.

use std::path::{Component, Path, PathBuf};

use super::Paths;

/// One mounted file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// The directory of the file system that is mounted, `/` unless it is a bind mount or a name space hides the rest.
    pub root: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Major and minor number of the device.
    pub device_number: (u32, u32),
    /// Options of the mount.
    pub options: String,
    /// The file system's type.
    pub kind: String,
    /// Device, or whatever else the file system calls its source.
    pub source: String,
    /// Options of the file system.
    pub super_options: String,
}

impl Mount {
    /// Whether an option is among those of the file system or the mount.
    pub fn has_option(&self, name: &str) -> bool {
        self.super_options
            .split(',')
            .chain(self.options.split(','))
            .any(|option| option == name)
    }

    /// Where a directory of the file system is seen below the mount point; `None` where it is not.
    pub fn below(&self, path: &str) -> Option<PathBuf> {
        let below = Path::new(path).strip_prefix(&self.root).ok()?;
        (!below.components().any(|part| part == Component::ParentDir)).then(|| below.to_owned())
    }
}

/// Parses the file. Lines that are not mounts are left out.
pub fn parse_mountinfo(text: &str) -> Vec<Mount> {
    text.lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<Mount> {
    // `36 35 98:0 /root /point rw,noatime optional… - ext3 /dev/root rw,errors=continue`: any number of optional
    // fields, then a dash.
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(2);
    let (major, minor) = left.next()?.split_once(':')?;
    let mut right = right.split(' ');
    Some(Mount {
        device_number: (major.parse().ok()?, minor.parse().ok()?),
        root: unescape(left.next()?),
        point: unescape(left.next()?).into(),
        options: left.next()?.to_owned(),
        kind: right.next()?.to_owned(),
        source: unescape(right.next()?),
        super_options: right.next().unwrap_or("").trim_end().to_owned(),
    })
}

/// The mount that a path lies in: of the longest mount points the last one, which covers those before it.
pub fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    // `max_by_key` answers the last of equals.
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}

/// The kind of file system that a path lies on; nothing where there is no such path, or the kernel does not tell.
pub fn kind_of(paths: &Paths, path: &Path) -> Option<String> {
    let mounts = parse_mountinfo(&paths.read("proc/self/mountinfo").ok()?);
    let mount = mount_of(&mounts, &path.canonicalize().ok()?)?;
    Some(mount.kind.clone()).filter(|kind| !kind.is_empty())
}

/// Undoes the kernel's octal escapes (`\040` for a space).
pub fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .filter(|digits| byte == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        let value = octal.and_then(|digits| {
            digits
                .iter()
                .try_fold(0u8, |n, d| n.checked_mul(8)?.checked_add(d - b'0'))
        });
        let (byte, digits) = value.map_or((byte, 0), |value| (value, 3));
        bytes.push(byte);
        rest = &tail[digits..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::tests::MOUNTINFO;
    use super::*;

    #[test]
    fn mountinfo() {
        let mounts = parse_mountinfo(MOUNTINFO);
        assert_eq!(mounts.len(), 5);
        assert_eq!(mounts[1].kind, "proc");
        assert_eq!(
            (mounts[2].root.as_str(), mounts[2].point.as_path()),
            ("/data", Path::new("/mnt/my disk"))
        );
        assert!(mounts[3].has_option("cpu") && !mounts[3].has_option("cpuset"));
        assert_eq!(mounts[2].device_number, (254, 16));
        assert_eq!(parse_mountinfo("36 35 98:0 /root /point rw\nx - y\n"), []);
    }

    #[test]
    fn a_path_lies_in_the_last_of_the_longest_mounts() {
        let mounts = parse_mountinfo(MOUNTINFO);
        assert_eq!(
            mount_of(&mounts, Path::new("/mnt/my disk/file"))
                .unwrap()
                .kind,
            "tmpfs"
        );
        assert_eq!(
            mount_of(&mounts, Path::new("/mnt/my diskette"))
                .unwrap()
                .kind,
            "ext4"
        );
        assert_eq!(mount_of(&[], Path::new("/")), None);
    }

    #[test]
    fn a_path_has_the_kind_of_its_mount_and_a_missing_one_none() {
        let (dir, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let point = at.path().canonicalize().unwrap();
        let told = format!(
            "1 0 254:0 / / rw - ext4 /dev/vda rw\n30 1 0:44 / {} rw - tmpfs tmpfs rw\n",
            point.display()
        );
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::write(dir.path().join("proc/self/mountinfo"), told).unwrap();
        let of = |path: &Path| kind_of(&Paths::under(dir.path()), path);
        assert_eq!(
            (of(&point).as_deref(), of(Path::new("/")).as_deref()),
            (Some("tmpfs"), Some("ext4"))
        );
        assert_eq!(of(&point.join("nothing")), None);
        assert_eq!(
            kind_of(&Paths::under(&point), &point),
            None,
            "nothing is told"
        );
    }

    #[test]
    fn escapes() {
        assert_eq!(unescape("a\\040b\\134c"), "a b\\c");
        assert_eq!(unescape("\\04"), "\\04");
        assert_eq!(unescape("\\777"), "\\777");
    }
}
