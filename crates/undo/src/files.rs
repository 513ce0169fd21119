//! Removing what processes of ours may still be writing to.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use fingerpost_sys::system::there;

use crate::owned;

/// Removes a directory of ours, in a directory that nobody else can write to, with all that is in it; one that is not
/// there is no error. Links in it are removed and not followed. Writers that were killed get ten seconds to end.
pub fn remove_tree(dir: &Path) -> io::Result<()> {
    let parent = dir
        .parent()
        .filter(|p| *p != Path::new(""))
        .unwrap_or(Path::new("."));
    let (Some(name), parent) = (dir.file_name(), File::open(parent)) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    there(parent)?.map_or(Ok(()), |parent| {
        owned::remove_in(parent.as_fd(), name, None).map(drop)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_tree_goes_even_while_files_still_appear_in_it() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("data");
        fs::create_dir(&dir).unwrap();
        let tries = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Thousands of files, as fast as they can be made: some land between the reading of the directory and
                // its removal.
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
