//! Limits that the system sets to this process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Has a write beyond the limit on file sizes fail with an error, which is told, instead of ending the process without
/// a word. A handler that does nothing, unlike an ignored signal, is not inherited by the programs that this process
/// starts.
pub fn survive_file_size() {
    // Without the handler all is as it was before.
    let _ = signal_hook::flag::register(libc::SIGXFSZ, Arc::new(AtomicBool::new(false)));
}
