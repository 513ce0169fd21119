//! Removing what processes of ours may still be writing to.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long writers that were killed, or that have just lost their server, may take to end.
const WRITERS_END: Duration = Duration::from_secs(10);

/// Removes a directory with all that is in it; one that is not there is no error.
///
/// A process that was killed is not gone when the signal is sent, and what PostgreSQL's server leaves when it is killed ends by itself
/// a little later, in sessions of its own: files can appear behind the removal. It begins again then, for ten seconds at most.
pub fn remove_tree(dir: &Path) -> io::Result<()> {
    let deadline = Instant::now() + WRITERS_END;
    loop {
        match fs::remove_dir_all(dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_tree_goes_even_while_files_still_appear_in_it() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("data");
        fs::create_dir(&dir).unwrap();
        let tries = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Thousands of files, as fast as they can be made: some land between the reading of the directory and its removal.
                for n in 0..20_000 {
                    let _ = fs::write(dir.join(n.to_string()), "x");
                }
                tries.store(false, Ordering::Relaxed);
            });
            scope.spawn(|| {
                while tries.load(Ordering::Relaxed) {
                    remove_tree(&dir).unwrap();
                    let _ = fs::create_dir(&dir);
                }
            });
        });
        remove_tree(&dir).unwrap();
        assert!(!dir.exists());
        remove_tree(&dir).unwrap();
    }
}
