//! A directory whose files others may have arranged: what is opened below it lies below it.
//!
//! The directory is opened once. No symbolic link leads anywhere, or, where that is asked for, none leads out; nothing
//! but regular files and directories is opened at all: opening a FIFO or a device can wait, or do something.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

pub use rustix::fs::FileType;
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, fstat, open, openat, openat2, statat};
use rustix::io::Errno;

/// Which symbolic links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// None.
    None,
    /// Those that lead to a place below the directory. Needs Linux 5.6.
    Inside,
}

/// Names in a directory with what they stand for.
pub type Names = Vec<(Vec<u8>, FileType)>;

/// An open directory.
#[derive(Debug)]
pub struct Root {
    dir: OwnedFd,
    links: Links,
}

impl Root {
    /// Opens a directory. It may itself be named by way of links: the user named it.
    pub fn open(path: &Path, links: Links) -> io::Result<Root> {
        let root = Root {
            dir: open(
                path,
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )?,
            links,
        };
        if links == Links::Inside && matches!(root.resolve(b"."), Err(Errno::NOSYS | Errno::PERM)) {
            let why = "following links safely needs openat2, which this kernel does not allow";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        Ok(root)
    }

    /// A regular file, given by its path from here. `None` when there is none, or nothing that may be opened.
    pub fn file(&self, path: &[u8]) -> io::Result<Option<File>> {
        self.opened(path, FileType::RegularFile, OFlags::RDONLY)
            .map(|fd| fd.map(File::from))
    }

    /// The names in a directory with what they stand for, in no order; the empty path is the directory itself. `None`
    /// when there is none.
    pub fn list(&self, path: &[u8]) -> io::Result<Option<Names>> {
        let path = if path.is_empty() { b"." } else { path };
        let Some(dir) = self.opened(
            path,
            FileType::Directory,
            OFlags::RDONLY | OFlags::DIRECTORY,
        )?
        else {
            return Ok(None);
        };
        let mut names = entries(dir.as_fd())?;
        for (name, kind) in names
            .iter_mut()
            .filter(|(_, kind)| *kind == FileType::Unknown)
        {
            *kind = FileType::from_raw_mode(
                statat(&dir, &name[..], AtFlags::SYMLINK_NOFOLLOW)?.st_mode,
            );
        }
        Ok(Some(names))
    }

    /// Whether the path leads to a directory.
    pub fn is_directory(&self, path: &[u8]) -> io::Result<bool> {
        let Some(fd) = known(self.resolve(path))? else {
            return Ok(false);
        };
        Ok(FileType::from_raw_mode(fstat(&fd)?.st_mode) == FileType::Directory)
    }

    /// What it is, is asked of a descriptor that can do nothing else; only then is that very thing opened.
    fn opened(&self, path: &[u8], wanted: FileType, flags: OFlags) -> io::Result<Option<OwnedFd>> {
        let Some(fd) = known(self.resolve(path))? else {
            return Ok(None);
        };
        if FileType::from_raw_mode(fstat(&fd)?.st_mode) != wanted {
            return Ok(None);
        }
        known(open(
            format!("/proc/self/fd/{}", fd.as_raw_fd()),
            flags | OFlags::CLOEXEC,
            Mode::empty(),
        ))
    }

    fn resolve(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        if path.is_empty() || path.contains(&0) || path[0] == b'/' {
            return Err(Errno::NOENT);
        }
        match open_below(
            self.dir.as_fd(),
            Path::new(OsStr::from_bytes(path)),
            OFlags::PATH,
            self.links,
        ) {
            // The kernel saw the tree being changed, or cannot tell that the path stays inside.
            Err(Errno::AGAIN | Errno::XDEV) => Err(Errno::NOENT),
            other => other,
        }
    }
}

/// What is in an open directory. Some file systems do not tell what a name stands for.
pub fn entries(dir: BorrowedFd) -> io::Result<Names> {
    let entries = rustix::fs::Dir::read_from(dir)?
        .map(|e| e.map(|e| (e.file_name().to_bytes().to_vec(), e.file_type())));
    let mut names = entries.collect::<Result<Names, Errno>>()?;
    names.retain(|(name, _)| !matches!(&name[..], b"." | b".."));
    Ok(names)
}

/// Opens what lies below a directory, whoever owns the steps of the path: none leads out, and links are followed only
/// where asked for.
pub fn open_below(
    dir: BorrowedFd,
    path: &Path,
    flags: OFlags,
    links: Links,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    let mut how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    how.set(ResolveFlags::NO_SYMLINKS, links == Links::None);
    match openat2(dir, path, flags, Mode::empty(), how) {
        // Linux before 5.6; PERM: a filter of system calls that does not know openat2.
        Err(Errno::NOSYS | Errno::PERM) if links == Links::None => step_by_step(dir, path, flags),
        other => other,
    }
}

/// The same without `openat2`: name by name, none of them a link.
fn step_by_step(dir: BorrowedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT);
    }
    let steps = path.components().filter(|step| *step != Component::CurDir);
    let named = |step| {
        if let Component::Normal(name) = step {
            Ok(name)
        } else {
            Err(Errno::XDEV)
        }
    };
    let mut names = steps.map(named).collect::<Result<Vec<&OsStr>, Errno>>()?;
    let last = names.pop().unwrap_or(OsStr::new("."));
    let mut at: Option<OwnedFd> = None;
    for name in names {
        at = Some(openat(
            at.as_ref().map_or(dir, AsFd::as_fd),
            name,
            step,
            Mode::empty(),
        )?);
    }
    let opened = openat(
        at.as_ref().map_or(dir, AsFd::as_fd),
        last,
        flags | OFlags::NOFOLLOW,
        Mode::empty(),
    )?;
    // With O_PATH, which opens a link itself, and only then.
    if flags.contains(OFlags::PATH) && FileType::from_raw_mode(fstat(&opened)?.st_mode).is_symlink()
    {
        return Err(Errno::LOOP);
    }
    Ok(opened)
}

/// Tells what is not there, or may not be had, from what went wrong.
fn known(result: Result<OwnedFd, Errno>) -> io::Result<Option<OwnedFd>> {
    match result {
        Ok(fd) => Ok(Some(fd)),
        Err(
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::ACCESS
            | Errno::NXIO,
        ) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/page"), "page").unwrap();
        fs::write(base.path().join("secret"), "secret").unwrap();
        symlink("/", root.join("up")).unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink(base.path().join("secret"), root.join("absolute")).unwrap();
        symlink("sub/page", root.join("inside")).unwrap();
        symlink("sub", root.join("insidedir")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("fifo"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        base
    }

    #[test]
    fn nothing_leads_out_and_nothing_waits() {
        let base = tree();
        let outside = base.path().join("secret");
        for links in [Links::None, Links::Inside] {
            let root = Root::open(&base.path().join("root"), links).unwrap();
            let read = |path: &str| {
                let mut text = String::new();
                root.file(path.as_bytes())
                    .unwrap()
                    .map(|mut f| f.read_to_string(&mut text).map(|_| text).unwrap())
            };
            assert_eq!(read("sub/page").as_deref(), Some("page"));
            assert_eq!(read("inside").is_some(), links == Links::Inside);
            assert_eq!(read("insidedir/page").is_some(), links == Links::Inside);
            let absolute = outside.to_str().unwrap();
            let from_root = format!("up{absolute}");
            for none in [
                "out",
                "absolute",
                "loop",
                "fifo",
                "sub",
                "../secret",
                "sub/../../secret",
                absolute,
                &from_root,
                "a\0b",
                "",
            ] {
                assert_eq!(read(none), None, "{none}");
            }
            assert_eq!(root.file(&[b'x'; 9000]).unwrap().map(|_| ()), None);
            assert!(root.is_directory(b"sub").unwrap() && !root.is_directory(b"up").unwrap());
            let mut names = root.list(b"").unwrap().unwrap();
            names.sort_by(|a, b| a.0.cmp(&b.0));
            assert!(
                names.contains(&(b"fifo".to_vec(), FileType::Fifo))
                    && names.contains(&(b"up".to_vec(), FileType::Symlink))
            );
            assert_eq!(root.list(b"up").unwrap(), None);
        }
    }

    #[test]
    fn the_way_without_openat2_is_as_strict() {
        let base = tree();
        let root = File::open(base.path().join("root")).unwrap();
        let within = File::open(base.path().join("root/sub")).unwrap();
        type Way = fn(BorrowedFd, &Path, OFlags) -> Result<OwnedFd, Errno>;
        let ways: [Way; 2] = [
            |dir, path, flags| open_below(dir, path, flags, Links::None),
            step_by_step,
        ];
        for (way, flags) in ways
            .iter()
            .flat_map(|way| [OFlags::PATH, OFlags::RDONLY].map(|flags| (way, flags)))
        {
            let opens = |path: &str| way(root.as_fd(), Path::new(path), flags).is_ok();
            assert!(opens("sub/page") && opens("sub//./page") && opens("."));
            for none in [
                "out",
                "inside",
                "insidedir/page",
                "up/etc",
                "up",
                "sub/../../secret",
                "..",
                "/etc/passwd",
                "sub/page/x",
                "none",
                "",
            ] {
                assert!(!opens(none), "{none:?} with {flags:?}");
            }
            assert!(way(within.as_fd(), Path::new("../inside"), flags).is_err());
        }
    }
}
