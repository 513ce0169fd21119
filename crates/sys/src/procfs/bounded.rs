//! Files that the kernel makes of other processes, read within bounds.
//!
//! How long such a file is and how long the kernel takes for it can be in another user's hand: `environ` is as long as
//! a process says that its environment is (`PR_SET_MM_MAP`, which needs no privilege: 40 GB), a process can have
//! 100,000 threads and descriptors, and what is read from its memory can wait for a page that it provides itself.
//! Everything that reads below `/proc/PID` reads through here.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};

/// The most bytes of a file about one process or group. The longest that are whole are `status` of a process with
/// 65,536 groups and `cgroup.procs` of a group with 100,000 processes.
pub const MOST: usize = 1 << 20;
/// The most entries of a directory: as many as there can be processes (`pid_max`).
pub const MOST_ENTRIES: usize = 1 << 22;
/// How much is asked for at once: the clock is looked at between two such pieces.
const PIECE: usize = 64 << 10;
/// The longest that reading one file may take. The kernel makes a megabyte in a millisecond.
const LONGEST: Duration = Duration::from_millis(500);
/// Reads of other processes' memory that never came back. Each has a thread, which is not waited for.
const MOST_HUNG: usize = 16;

static HUNG: AtomicUsize = AtomicUsize::new(0);

/// The first `most` bytes of a file. No link is followed at its end, and nothing is waited for that is no file.
///
/// # Errors
/// The kernel's; `TimedOut` where it took longer than half a second.
pub fn bytes(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    pieces(
        File::from(open(path, flags | OFlags::CLOEXEC, Mode::empty())?),
        most,
        Instant::now() + LONGEST,
    )
}

/// The beginning of a file about one process or group as text, at most [`MOST`] bytes; what is no UTF-8 is replaced.
///
/// # Errors
/// As [`bytes`].
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = bytes(path.as_ref(), MOST)?;
    // Nearly always it is, and then nothing is copied.
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// As [`bytes`], of a file that is made of the memory of another process (`environ`, `cmdline`): that process can have
/// the kernel wait for its memory for ever, so that another thread reads.
///
/// # Errors
/// As [`bytes`]; also `TimedOut` where many such reads hang already.
pub fn of_memory(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let path = path.to_owned();
    within(2 * LONGEST, move || bytes(&path, most))
}

/// What a function gives in a thread of its own; `TimedOut` where it does not within this time, and then it goes on
/// unheard.
fn within<T: Send + 'static>(
    longest: Duration,
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    if HUNG.load(Ordering::Relaxed) >= MOST_HUNG {
        return Err(ErrorKind::TimedOut.into());
    }
    let (tell, told) = mpsc::sync_channel(1);
    std::thread::Builder::new()
        .stack_size(128 << 10)
        .spawn(move || tell.send(read()))?;
    told.recv_timeout(longest).unwrap_or_else(|_| {
        HUNG.fetch_add(1, Ordering::Relaxed);
        Err(ErrorKind::TimedOut.into())
    })
}

fn pieces(mut file: impl Read, most: usize, end: Instant) -> io::Result<Vec<u8>> {
    // Most files fit: without room to begin with, each is read in ever larger pieces.
    let mut bytes = vec![0; most.min(4 << 10)];
    let mut filled = 0;
    while filled < most {
        if filled == bytes.len() {
            bytes.resize((filled * 2).min(filled + PIECE).min(most), 0);
        }
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        if Instant::now() > end {
            return Err(ErrorKind::TimedOut.into());
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// The numbers that name entries of a directory, such as processes below `/proc` or threads below `/proc/PID/task`, at
/// most so many; none where it cannot be read.
pub fn numbers(dir: &Path, most: usize) -> Vec<i32> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .take(most)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_was_asked_for_and_not_for_ever() {
        let later = Instant::now() + Duration::from_secs(60);
        assert_eq!(
            pieces(io::repeat(7), 100_000, later).unwrap().len(),
            100_000
        );
        assert_eq!(pieces(&b"short"[..], 100_000, later).unwrap(), b"short");
        assert_eq!(
            pieces(io::repeat(7), usize::MAX, Instant::now())
                .unwrap_err()
                .kind(),
            ErrorKind::TimedOut
        );
        assert!(text("/proc/self/stat").unwrap().ends_with('\n'));
        // A link, which `/proc/PID/exe` is, and a device's link are not followed.
        assert!(bytes(Path::new("/proc/self/exe"), MOST).is_err());
    }

    #[test]
    fn a_read_that_never_ends_is_given_up_and_many_are_not_begun() {
        // Each waits until its sender is dropped.
        let (senders, waits): (Vec<_>, Vec<_>) =
            (0..MOST_HUNG).map(|_| mpsc::channel::<()>()).unzip();
        for wait in waits {
            let read = move || wait.recv().map_err(io::Error::other);
            let said = within(Duration::from_millis(1), read).unwrap_err();
            assert_eq!(said.kind(), ErrorKind::TimedOut);
        }
        assert!(within(LONGEST, || Ok(1)).is_err(), "all of them hang");
        drop(senders);
        HUNG.store(0, Ordering::Relaxed);
        assert_eq!(within(Duration::from_secs(60), || Ok(1)).unwrap(), 1);
        let own = of_memory(Path::new("/proc/self/environ"), 10).unwrap();
        assert!(own.len() <= 10);
    }

    #[test]
    fn directories_are_listed_as_far_as_asked() {
        let own = std::process::id() as i32;
        assert!(numbers(Path::new("/proc"), MOST_ENTRIES).contains(&own));
        assert_eq!(numbers(Path::new("/proc/self/fd"), 2).len(), 2);
        assert!(numbers(Path::new("/no/such/place"), 2).is_empty());
    }
}
