//! The binary with a home of its own.
// Every test program compiles this file and uses a part of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use fingerpost_record::Run;
use tempfile::TempDir;

/// How long anything may take that a test waits for.
pub const DEADLINE: Duration = Duration::from_secs(240);

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

/// The labs of which there is a record of a real run, made small, under `tests/labs`.
pub const LABS: [&str; 7] = [
    "zerofill", "flops", "memory", "database", "web", "site", "launch",
];

/// The record of a lab's real run.
pub fn lab(name: &str) -> Run {
    let file = format!("{}/tests/labs/{name}.json", env!("CARGO_MANIFEST_DIR"));
    fingerpost_record::load::from_path(Path::new(&file)).unwrap()
}

/// A directory with an archive in it, removed at the end.
pub struct Home {
    dir: TempDir,
}

impl Home {
    /// An archive that holds these runs.
    pub fn with(runs: &[Run]) -> Home {
        let home = Home {
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(home.runs()).unwrap();
        for run in runs {
            std::fs::write(
                home.runs().join(format!("{}.json", run.id)),
                serde_json::to_vec(run).unwrap(),
            )
            .unwrap();
        }
        home
    }

    /// The home itself.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The archive's directory.
    pub fn runs(&self) -> PathBuf {
        self.dir.path().join("runs")
    }

    /// The command with these words, started in the home.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fingerpost"));
        command
            .args(words)
            .env("FINGERPOST_HOME", self.path())
            .env_remove("NO_COLOR")
            .current_dir(self.path());
        command
    }

    /// What the command says, with its exit status.
    pub fn says(&self, words: &[&str]) -> Said {
        Said::of(&self.command(words).output().unwrap())
    }
}

impl Home {
    /// What bash is told that the last of these words may be.
    #[allow(dead_code, reason = "not every test completes words")]
    pub fn completes(&self, words: &[&str]) -> Vec<String> {
        let mut command = self.command(&[&["--", "fingerpost"], words].concat());
        command
            .env("FINGERPOST_COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", words.len().to_string());
        // The first line says whether bash has to quote the others.
        Said::of(&command.output().unwrap())
            .well()
            .lines()
            .skip(1)
            .map(str::to_owned)
            .collect()
    }
}

/// What a command said.
pub struct Said {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    /// The texts and the status of a finished command.
    pub fn of(output: &Output) -> Said {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Said {
            status: output.status.code().expect("it was not killed"),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// Standard output of a command that did all and complained of nothing.
    #[track_caller]
    pub fn well(self) -> String {
        assert_eq!((self.status, self.err.as_str()), (0, ""), "{}", self.out);
        self.out
    }

    /// The one sentence of a command that refused its input.
    #[track_caller]
    pub fn refused(self) -> String {
        assert_eq!(self.status, 2, "{} {}", self.out, self.err);
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
        assert!(
            self.err.starts_with("fingerpost: ")
                && !self
                    .err
                    .trim_end()
                    .contains(fingerpost_record::text::misleads),
            "{:?}",
            self.err
        );
        self.err
    }
}
