//! What the attacks share.
// Every file uses a part of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long anything may take that a test waits for.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// What is attacked: the program as built, or another version that `FINGERPOST_ATTACKED` names, which is how a test is seen to fail.
pub fn binary() -> PathBuf {
    std::env::var_os("FINGERPOST_ATTACKED").map_or_else(|| Path::new(env!("CARGO_BIN_EXE_fingerpost")).to_owned(), PathBuf::from)
}

/// Whether the tests that need a second user can run. Where everything has to be tested they must.
pub fn is_root() -> bool {
    let root = fingerpost_sys::system::is_root();
    assert!(root || std::env::var("CI").as_deref() != Ok("true"), "with CI set, these tests run as root");
    root
}

/// Waits for a condition, with a deadline. The sleep is the pause between two looks, not the wait.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
