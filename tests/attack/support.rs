//! What the attacks share.
// Every file uses a part of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long anything may take that a test waits for.
pub const DEADLINE: Duration = Duration::from_secs(240);

/// What is attacked: the program as built, or another version that `FINGERPOST_ATTACKED` names, which is how a test is
/// seen to fail.
pub fn binary() -> PathBuf {
    std::env::var_os("FINGERPOST_ATTACKED").map_or_else(
        || Path::new(env!("CARGO_BIN_EXE_fingerpost")).to_owned(),
        PathBuf::from,
    )
}

/// Whether the tests that need a second user can run. Where everything has to be tested they must.
pub fn is_root() -> bool {
    fingerpost_testing::can(fingerpost_testing::is_root(), "root")
}

/// Waits for a condition, with a deadline. The sleep is the pause between two looks, not the wait.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < DEADLINE,
            "{what}: not within {DEADLINE:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A home with an archive of its own, removed at the end.
pub struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    /// An empty one.
    pub fn new() -> Home {
        let home = Home {
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(home.path("runs")).unwrap();
        home
    }

    /// A path within it.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file in it.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// A command of the binary, started in it.
    pub fn command(&self, words: &[impl AsRef<std::ffi::OsStr>]) -> std::process::Command {
        let mut command = std::process::Command::new(binary());
        command
            .args(words)
            .env("FINGERPOST_HOME", self.dir.path())
            .env_remove("NO_COLOR")
            .current_dir(self.dir.path());
        command.stdin(std::process::Stdio::null());
        command
    }

    /// What a command says; it is killed where it takes longer than [`DEADLINE`].
    pub fn says(&self, words: &[impl AsRef<std::ffi::OsStr>]) -> Said {
        Said::of(&mut self.command(words))
    }
}

/// How a command ended, and what it said.
pub struct Said {
    /// Its exit status; nothing when a signal ended it.
    pub status: Option<i32>,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: String,
    /// What it used.
    pub usage: crate::usage::Usage,
}

impl Said {
    /// Runs a command to its end.
    pub fn of(command: &mut std::process::Command) -> Said {
        use std::io::{Read, Seek};
        let read = |mut file: std::fs::File| {
            let mut bytes = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut bytes).unwrap();
            bytes
        };
        let (out, err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        command
            .stdout(out.try_clone().unwrap())
            .stderr(err.try_clone().unwrap());
        let mut child = command.spawn().unwrap();
        let Some((status, usage)) =
            crate::usage::wait_usage(&child, Instant::now() + DEADLINE).unwrap()
        else {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{command:?} did not end within {DEADLINE:?}");
        };
        Said {
            status: status.code(),
            out: read(out),
            err: String::from_utf8_lossy(&read(err)).into_owned(),
            usage,
        }
    }

    /// The one sentence of a command that refused its input.
    #[track_caller]
    pub fn refused(&self) -> &str {
        assert_eq!(self.status, Some(2), "{}", self.err);
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
        assert!(self.err.starts_with("fingerpost: "), "{}", self.err);
        &self.err
    }

    /// Asserts that the command ended by itself, and told of no defect.
    #[track_caller]
    pub fn lived(&self) {
        assert!(
            matches!(self.status, Some(0..=2)),
            "{:?}: {}",
            self.status,
            self.err
        );
        assert!(
            !self.err.contains("panicked") && !self.err.contains("defect"),
            "{}",
            self.err
        );
    }
}
