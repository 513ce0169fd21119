//! Opening files whose names others may have chosen or filled.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A file that is open for reading.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub file: File,
    /// Its size in bytes as the system tells it; 0 for a pipe that the caller was given.
    pub bytes: u64,
}

/// Opens a regular file for reading. A pipe, a socket, a device or a directory is refused and never waited for: opening
/// a pipe hangs until somebody writes to it, and opening some devices acts. What was handed to this process as an open
/// descriptor (`/dev/stdin`, and `/dev/fd/63` as a shell's `<(…)` names it) is the caller's own choice and may be a
/// pipe.
///
/// # Errors
/// The system's, or that it is no regular file.
pub fn regular(path: &Path) -> io::Result<Opened> {
    if is_own_descriptor(path) {
        let file = File::open(path)?;
        let meta = file.metadata()?;
        return if meta.is_dir() {
            Err(not_regular(&meta))
        } else {
            Ok(Opened {
                bytes: meta.len(),
                file,
            })
        };
    }
    // Asked before opening, since opening alone can act on a device; asked again of what was opened, which may be
    // another file.
    let meta = fs::metadata(path)?;
    if !meta.is_file() {
        return Err(not_regular(&meta));
    }
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() {
        Ok(Opened {
            bytes: meta.len(),
            file,
        })
    } else {
        Err(not_regular(&meta))
    }
}

/// So many bytes of a regular file at most, from its beginning.
///
/// # Errors
/// As [`regular`].
pub fn beginning(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular(path)?.file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_own_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
        || path
            .parent()
            .is_some_and(|dir| dir == Path::new("/dev/fd") || dir == Path::new("/proc/self/fd"))
}

/// What it is instead.
fn not_regular(meta: &fs::Metadata) -> io::Error {
    use std::os::unix::fs::FileTypeExt;
    let kind = meta.file_type();
    let what = match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("it is {what}, not a regular file"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "abc").unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink("loop", at("loop")).unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(at("pipe"))
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(regular(&at("file")).unwrap().bytes, 3);
        assert_eq!(regular(&at("link")).unwrap().bytes, 3);
        for (name, why) in [
            ("", "a directory"),
            ("pipe", "a pipe"),
            ("socket", "a socket"),
            ("loop", "symbolic link"),
            ("none", "No such"),
        ] {
            let said = regular(&at(name)).unwrap_err().to_string();
            assert!(said.contains(why), "{name}: {said}");
        }
        assert!(
            regular(Path::new("/dev/zero"))
                .unwrap_err()
                .to_string()
                .contains("a device")
        );
    }
}
