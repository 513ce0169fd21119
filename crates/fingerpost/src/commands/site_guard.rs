//! A database's file is read in a process of its own, with limits: whatever an engine makes of a damaged file (it
//! breaks off, it never ends, it wants all memory) is one sentence and exit status 2 here.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::exit::{Done, usage};
use crate::{conduct, defect, inner};

/// The name of the inner process.
const INSIDE: &str = "fingerpost-site-inside";
/// Memory that reading may take besides four times the file.
const MEMORY: u64 = 64 << 20;
/// Seconds of CPU time that reading may take, besides one for each [`BYTES_PER_SECOND`] of the file.
const SECONDS: u64 = 3;
const BYTES_PER_SECOND: u64 = 8 << 20;
/// What is told on standard error is kept up to this length.
const MAX_TOLD: u64 = 1 << 20;

/// What is done with the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// It is read once. The most CPU time and memory follow from its length.
    Read,
    /// The same within a time, too, because nobody else's pace matters.
    Verify,
    /// It is changed.
    Write,
    /// It is served until a signal comes.
    Serve,
}

/// Does something with a database's file in the inner process.
pub fn guarded(
    file: &Path,
    work: Work,
    job: impl FnOnce() -> anyhow::Result<Done>,
) -> anyhow::Result<Done> {
    let length = std::fs::metadata(file).map_or(0, |meta| meta.len());
    if inner::is(INSIDE) {
        // An engine's panic is told by the outer process, in a sentence.
        defect::ends_silently_with(defect::BROKE_OFF);
        limit(work, length)?;
        return job();
    }
    let mut command = inner::command(INSIDE);
    // In the group of this process, so that a terminal's signals and input reach both.
    command
        .stderr(Stdio::piped())
        .process_group(rustix::process::getpgrp().as_raw_nonzero().get());
    let stop = Arc::new(AtomicBool::new(false));
    if work == Work::Serve {
        conduct::stop_on_signals(&stop)?;
    }
    let mut child = command
        .spawn()
        .context("cannot start a process to read the database")?;
    let told = wait(
        &mut child,
        work,
        Duration::from_secs(20 * seconds(length)),
        &stop,
    )?;
    let status = child
        .wait()
        .context("cannot wait for the process that reads the database")?;
    if stop.load(Ordering::Relaxed) {
        return Ok(Done::Well);
    }
    match verdict(status, work) {
        Ok(done) => {
            // Each line was made fit for a terminal by the process that said it.
            use std::io::Write as _;
            let _ = std::io::stderr().write_all(&told);
            Ok(done)
        }
        Err(why) => usage(format!(
            "{} cannot be {}: {why}",
            file.display(),
            if work == Work::Write {
                "changed"
            } else {
                "read"
            }
        )),
    }
}

fn seconds(length: u64) -> u64 {
    SECONDS + length / BYTES_PER_SECOND
}

/// Waits until the process has nothing more to say, for as long as it may take.
fn wait(
    child: &mut Child,
    work: Work,
    time: Duration,
    stop: &AtomicBool,
) -> anyhow::Result<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let stderr = child.stderr.take();
    let reader = std::thread::Builder::new().spawn(move || {
        let mut told = Vec::new();
        if let Some(mut stderr) = stderr {
            let _ = (&mut stderr).take(MAX_TOLD).read_to_end(&mut told);
            // Its end is waited for, and nothing that it says blocks it.
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        }
        let _ = sender.send(told);
    });
    if reader.is_err() {
        child.kill()?;
        child.wait()?;
    }
    reader.context("cannot start a thread that reads what the process of the database says")?;
    let deadline = Instant::now() + time;
    let mut asked = false;
    loop {
        let turn = match work {
            Work::Serve => Duration::from_millis(50),
            Work::Verify => deadline.saturating_duration_since(Instant::now()),
            Work::Read | Work::Write => Duration::from_secs(3600),
        };
        match receiver.recv_timeout(turn) {
            Ok(told) => return Ok(told),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
            Err(mpsc::RecvTimeoutError::Timeout) if work == Work::Verify => child.kill()?,
            Err(mpsc::RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) && !asked => {
                asked = true;
                fingerpost_sys::child::signal(child.id() as i32, libc::SIGTERM)?;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
}

/// How the process ended: as a command does, or in a way that only a damaged file brings about.
fn verdict(status: ExitStatus, work: Work) -> Result<Done, String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(Done::Well),
        (Some(2), _) => Ok(Done::BadInput),
        (Some(3), _) => Ok(Done::MeasurementFailed),
        (_, Some(libc::SIGXCPU)) => Err("it is damaged, and reading it would not end".to_owned()),
        (_, Some(libc::SIGXFSZ)) => Err("it is damaged, and would grow without end".to_owned()),
        (_, Some(libc::SIGKILL)) if work == Work::Verify => {
            Err("reading it takes too long; it may be damaged".to_owned())
        }
        (_, Some(libc::SIGKILL)) => Err("the process that had it open was killed".to_owned()),
        _ => Err("it is damaged, and the database engine crashed".to_owned()),
    }
}

/// Takes the limits of the inner process.
fn limit(work: Work, length: u64) -> anyhow::Result<()> {
    let set = |resource, most: u64| {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit).context("cannot limit the process that reads the database")
    };
    set(Resource::Core, 0)?;
    match work {
        Work::Read | Work::Verify => {
            set(Resource::Cpu, seconds(length))?;
            // Memory of its own: the maps of files are not counted.
            set(
                Resource::Data,
                MEMORY.saturating_add(length.saturating_mul(4)),
            )
        }
        Work::Write | Work::Serve => Ok(()),
    }
}

/// Limits how far the file may grow when this much is put into it.
pub fn limit_growth(file: &Path, body: usize) -> anyhow::Result<()> {
    let length = std::fs::metadata(file).map_or(0, |meta| meta.len());
    // Standard output can be a file, too, to whose end a line is written.
    let out = rustix::fs::fstat(std::io::stdout()).map_or(0, |stat| stat.st_size.max(0) as u64);
    let most = (2 * (length + body as u64) + MEMORY).max(out + MEMORY);
    let limit = Rlimit {
        current: Some(most),
        maximum: rustix::process::getrlimit(Resource::Fsize).maximum,
    };
    setrlimit(Resource::Fsize, limit).context("cannot limit the size of the file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_the_process_is_a_sentence_or_a_status() {
        let exit = |code: i32| verdict(ExitStatus::from_raw(code << 8), Work::Read);
        assert_eq!(
            (exit(0), exit(2), exit(3)),
            (
                Ok(Done::Well),
                Ok(Done::BadInput),
                Ok(Done::MeasurementFailed)
            )
        );
        assert!(
            exit(defect::BROKE_OFF).unwrap_err().contains("crashed"),
            "a panic"
        );
        for signal in [libc::SIGABRT, libc::SIGSEGV, libc::SIGBUS] {
            assert!(
                verdict(ExitStatus::from_raw(signal), Work::Serve)
                    .unwrap_err()
                    .contains("crashed")
            );
        }
        assert!(
            verdict(ExitStatus::from_raw(libc::SIGXCPU), Work::Read)
                .unwrap_err()
                .contains("would not end")
        );
    }
}
