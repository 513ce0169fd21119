//! What once failed, replayed.
//!
//! Files of `tests/attack/corpus` are named after their kind and the seed at which they were found; each goes through
//! every command.

use std::path::PathBuf;

use super::{imports, records};

#[test]
fn what_once_failed_stays_mended() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/attack/corpus");
    let mut faults = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let (text, name) = (
            std::fs::read(entry.path()).unwrap(),
            entry.file_name().into_string().unwrap(),
        );
        let judged = match name.rsplit_once('-').map(|(kind, _)| kind) {
            Some("records") => records::replay(&text),
            Some("imports-hyperfine") => imports::replay("hyperfine", &text),
            Some("imports-lmbench") => imports::replay("lmbench", &text),
            // What other tests replay.
            _ => continue,
        };
        count += 1;
        faults.extend(judged.err().map(|f| format!("{name}: {}", f.text)));
    }
    assert!(count > 5, "only {count} cases of the corpus were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
