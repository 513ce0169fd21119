//! What a static server serves: something that finds a body by its path.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use rustix::io::Errno;

/// Finds what is served.
pub trait Content: Sync {
    /// The body for a path that begins with a slash, percent signs resolved, the query left out; `None` when there is
    /// no such thing.
    fn find(&self, path: &[u8]) -> io::Result<Option<Body>>;
}

/// Something to be sent.
#[derive(Debug)]
pub enum Body {
    /// Bytes in memory.
    Bytes(Arc<[u8]>),
    /// A file with its length.
    File(OwnedFd, u64),
}

impl Body {
    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::File(_, length) => *length,
        }
    }
}

/// A directory with all that is below it; `index.html` for a directory. A path that would lead out of it finds nothing.
#[derive(Debug)]
pub struct Directory {
    root: OwnedFd,
}

impl Directory {
    /// Opens the directory, which must exist.
    pub fn open(root: &Path) -> io::Result<Directory> {
        Ok(Directory {
            root: open(
                root,
                OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )?,
        })
    }
}

impl Content for Directory {
    fn find(&self, path: &[u8]) -> io::Result<Option<Body>> {
        let relative = path.strip_prefix(b"/").unwrap_or(path);
        if relative.split(|&b| b == b'/').any(|part| part == b"..")
            || relative.first() == Some(&b'/')
            || relative.contains(&0)
        {
            return Ok(None);
        }
        let index;
        let relative = if relative.is_empty() || relative.ends_with(b"/") {
            index = [relative, b"index.html"].concat();
            &index
        } else {
            relative
        };
        // A FIFO must not be waited for, and a link that is the last part must not lead elsewhere.
        let file = match openat(
            &self.root,
            relative,
            OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK,
            Mode::empty(),
        ) {
            Ok(file) => file,
            Err(
                Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::ACCESS,
            ) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        let stat = fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        Ok(Some(Body::File(file, stat.st_size as u64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_below_the_directory_are_found() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(root.join("sub/index.html"), "hello").unwrap();
        std::fs::write(base.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        let content = Directory::open(&root).unwrap();
        let length = |path: &str| content.find(path.as_bytes()).unwrap().map(|b| b.length());
        assert_eq!(length("/sub/index.html"), Some(5));
        assert_eq!(length("/sub/"), Some(5));
        for nothing in [
            "/",
            "/sub",
            "/nothing",
            "/../secret",
            "/sub/../../secret",
            "//etc/passwd",
            "/link",
            "/sub/index.html/x",
            "/a\0b",
        ] {
            assert_eq!(length(nothing), None, "{nothing}");
        }
    }
}
