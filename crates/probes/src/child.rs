//! The probe process: dispatched before anything else runs.

use std::process::ExitCode;

/// Runs a probe when this process was started as one; `None` when it is an ordinary invocation.
pub fn dispatch() -> Option<ExitCode> {
    None
}
