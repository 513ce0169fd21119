//! What tests need of the machine: [`require!`] ends one that cannot run here. With `CI=true`, where everything has to
//! be tested, that is a failure.
//!
//! What may be in it: what tests of several crates share, and nothing that needs another crate of ours.

use std::fmt::Display;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Whether everything has to be tested, so that a test that cannot run is a failure.
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|ci| ci == "true")
}

/// Says that this test cannot run here, and why.
///
/// # Panics
/// With `CI=true`.
#[track_caller]
pub fn skipped(why: impl Display) {
    assert!(!is_ci(), "with CI=true every test runs: {why}");
    eprintln!("skipped: {why}");
}

/// What was to be had for a test, or nothing, which is said as [`skipped`] does.
///
/// # Panics
/// With `CI=true`, where it was not to be had.
#[track_caller]
pub fn had<T, E: Display>(result: Result<T, E>) -> Option<T> {
    result.map_err(skipped).ok()
}

/// Whether a test can run here; where it cannot, that is said as [`skipped`] does.
///
/// # Panics
/// With `CI=true`, where it cannot.
#[track_caller]
pub fn can(holds: bool, needs: impl Display) -> bool {
    if !holds {
        skipped(format_args!("needs {needs}"));
    }
    holds
}

/// Whether this test has root's rights.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a program is installed: by its path, or by its name on `PATH` or where programs of the system lie.
pub fn is_installed(program: &str) -> bool {
    let runs = |path: &Path| {
        path.metadata()
            .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|dir| runs(&dir.join(program)))
}

/// Ends a test that needs more than there is: `require!(root, "nginx")`, with programs by name or path. It is *skipped*
/// then; with `CI=true` it fails.
#[macro_export]
macro_rules! require {
    ($($needed:tt),+ $(,)?) => {
        $(if !$crate::require!(@ $needed) {
            return;
        })+
    };
    (@ root) => {
        $crate::can($crate::is_root(), "root")
    };
    (@ $program:literal) => {
        $crate::can($crate::is_installed($program), $program)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        assert!(is_installed("sh") && is_installed("/bin/sh"));
        assert!(!is_installed("no-such-program") && !is_installed("/etc/passwd"));
    }

    #[test]
    fn what_is_there_lets_a_test_go_on() {
        let mut on = false;
        (|| {
            require!("sh", "/bin/sh");
            on = true;
        })();
        assert!(on);
    }

    #[test]
    fn what_is_not_there_ends_a_test_and_fails_where_all_is_tested() {
        let mut on = false;
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            require!("sh", "no-such-program");
            on = true;
        }));
        assert_eq!((on, run.is_err()), (false, is_ci()));
    }
}
