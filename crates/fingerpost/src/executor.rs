//! Runs one slice of one probe in a fresh process.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fingerpost_measure::Slice;
use fingerpost_measure::rounds::Executor;
use fingerpost_probes::Probe;
use fingerpost_probes::protocol::{self, Request};
use fingerpost_sys::{child, task};

use crate::foreign;
use crate::plan::Row;

/// What a slice may take beyond its own length, for setup, calibration, counting and teardown, before it counts as
/// hung.
const GRACE: Duration = Duration::from_secs(4);

/// Starts probe processes, each for one slice of one row.
pub struct ProcessExecutor<'a> {
    rows: &'a [Row],
    /// This program. The link keeps working when the file is replaced during the run.
    program: PathBuf,
    cpus: &'a [usize],
    /// The measuring time of each row's processes.
    slices: Vec<Duration>,
    /// What a slice may take beyond its own length.
    grace: Duration,
    dir: &'a Path,
    stop: &'a AtomicBool,
    start: Instant,
    /// The batch size that the last process of each row found.
    hints: Vec<u64>,
    serial: u64,
    surroundings: Surroundings,
}

/// What a probe process is given besides its row.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Variables of its environment, on top of ours.
    pub env: Vec<(String, String)>,
    /// Whether it must do without transparent huge pages.
    pub no_huge_pages: bool,
}

impl<'a> ProcessExecutor<'a> {
    /// An executor for these rows, with `slice` the measuring time of a probe's processes; each gets an empty directory
    /// of its own below `dir`.
    pub fn new(
        rows: &'a [Row],
        cpus: &'a [usize],
        slice: fn(&Probe) -> Duration,
        dir: &'a Path,
        stop: &'a AtomicBool,
    ) -> Self {
        let slices = rows.iter().map(|row| slice(row.probe)).collect();
        let (program, surroundings) = (PathBuf::from("/proc/self/exe"), Surroundings::default());
        let (start, hints, serial) = (Instant::now(), vec![0; rows.len()], 0);
        ProcessExecutor {
            rows,
            program,
            cpus,
            slices,
            grace: GRACE,
            dir,
            stop,
            start,
            hints,
            serial,
            surroundings,
        }
    }

    /// The same with other surroundings for its processes.
    #[must_use]
    pub fn within(self, surroundings: Surroundings) -> Self {
        ProcessExecutor {
            surroundings,
            ..self
        }
    }

    fn run(&mut self, row: usize, dir: PathBuf) -> Slice {
        let request = Request {
            probe: self.rows[row].probe.name.to_owned(),
            slice_ns: self.slices[row].as_nanos() as u64,
            batch: self.hints[row],
            cpus: self.cpus.to_vec(),
            counters: true,
            dir,
            params: self.rows[row].params.clone(),
        };
        let killed_before = oom_kills();
        let allowed = self.slices[row] * 3 + self.grace;
        let mut command = Command::new(self.rows[row].program.as_ref().unwrap_or(&self.program));
        command
            .args(request.to_args())
            .envs(self.surroundings.env.iter().map(|(k, v)| (k, v)));
        if self.surroundings.no_huge_pages {
            task::no_huge_pages(&mut command);
        }
        let output = match child::run_bounded(&mut command, Instant::now() + allowed) {
            Ok(output) => output,
            Err(e) => return Slice::Failed(format!("cannot start the probe process: {e}")),
        };
        let Some(status) = output.status else {
            return Slice::Hung(format!(
                "did not end within {:.1} s and was killed",
                allowed.as_secs_f64()
            ));
        };
        if let Some(signal) = status.signal() {
            return Slice::Failed(death(signal, oom_kills() > killed_before, &output.stderr));
        }
        let slice = protocol::parse_answer(
            &String::from_utf8_lossy(&output.stdout),
            self.rows[row].probe.unit,
        );
        let slice = match self.rows[row].program {
            Some(_) => foreign::bounded(slice),
            None => slice,
        };
        match slice {
            Slice::Failed(_) if !status.success() => {
                Slice::Failed(format!("ended with {status}{}", first_line(&output.stderr)))
            }
            other => other,
        }
    }
}

impl Executor for ProcessExecutor<'_> {
    fn slice(&mut self, job: usize) -> Slice {
        self.serial += 1;
        let dir = self.dir.join(format!("p{}", self.serial));
        if let Err(e) = fs::create_dir(&dir) {
            return Slice::Failed(format!("cannot make the directory {}: {e}", dir.display()));
        }
        let slice = self.run(job, dir.clone());
        // What is not removed now goes with the scratch directory.
        let _ = fs::remove_dir_all(&dir);
        if let Slice::Samples(samples) = &slice {
            self.hints[job] = samples.process.batch;
        }
        slice
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Why a process was killed, as far as can be told.
fn death(signal: i32, out_of_memory: bool, stderr: &[u8]) -> String {
    match signal {
        libc::SIGKILL if out_of_memory => "killed by the system because memory ran out".to_owned(),
        libc::SIGKILL => "killed by signal 9 from outside".to_owned(),
        _ => format!("crashed with signal {signal}{}", first_line(stderr)),
    }
}

fn first_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().find(|l| !l.trim().is_empty()).unwrap_or("");
    if line.is_empty() {
        String::new()
    } else {
        format!(": {}", line.chars().take(200).collect::<String>())
    }
}

/// How often the system killed a process for want of memory since boot, in all control groups.
fn oom_kills() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    text.lines()
        .find_map(|l| l.strip_prefix("oom_kill ")?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    use fingerpost_record::Params;

    /// What becomes of a slice when the probe process is this shell script.
    fn slice_of(script: &str) -> Slice {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        // Written by another process: a descriptor of ours, open for writing, could slip into a child that another test
        // is just forking, and the program would be “text file busy”.
        let write = "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod 755 \"$1\"";
        assert!(
            Command::new("sh")
                .args(["-c", write, "sh"])
                .arg(&program)
                .arg(script)
                .status()
                .unwrap()
                .success()
        );
        let rows = [Row::new(
            fingerpost_probes::find("syscall.null").unwrap(),
            Params::new(),
        )];
        let stop = AtomicBool::new(false);
        let mut executor =
            ProcessExecutor::new(&rows, &[0], |_| Duration::from_millis(1), dir.path(), &stop);
        executor.program = program;
        if script.contains("hang") {
            executor.grace = Duration::from_millis(200);
        }
        executor.slice(0)
    }

    #[test]
    fn an_answer_is_read_and_its_batch_size_remembered() {
        let Slice::Samples(samples) =
            slice_of("echo resident 1000; echo batch 7; echo s 10 500 0; echo end")
        else {
            panic!()
        };
        assert_eq!(
            (samples.process.samples, samples.process.batch),
            (vec![50.0], 7)
        );
    }

    #[test]
    fn a_probe_that_hangs_is_killed_and_named() {
        let Slice::Hung(sentence) = slice_of(": hang; echo batch 7; sleep 600 & wait") else {
            panic!()
        };
        assert!(sentence.contains("did not end within"), "{sentence}");
    }

    #[test]
    fn a_probe_that_crashes_is_told_from_one_that_was_killed() {
        let reason = |script| match slice_of(script) {
            Slice::Failed(reason) => reason,
            other => panic!("{other:?}"),
        };
        assert!(reason("kill -SEGV $$").contains("crashed with signal 11"));
        assert!(reason("kill -KILL $$").contains("signal 9"));
        assert!(reason("echo no such thing >&2; exit 4").contains("no such thing"));
        assert!(reason("echo s 10 500 0").contains("before its answer was whole"));
    }

    #[test]
    fn a_program_that_cannot_be_started_is_a_failure() {
        let rows = [Row::new(
            fingerpost_probes::find("syscall.null").unwrap(),
            Params::new(),
        )];
        let (dir, stop) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let mut executor =
            ProcessExecutor::new(&rows, &[0], |_| Duration::from_millis(1), dir.path(), &stop);
        executor.program = dir.path().join("absent");
        assert!(
            matches!(executor.slice(0), Slice::Failed(reason) if reason.contains("cannot start"))
        );
    }
}
