//! What a node runs: `fingerpost run` in a process of its own, and its record in short lines on standard output.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fingerpost_fleet::{nodes, slim, wire};
use fingerpost_record::{Run, archive::write_whole, lean, text::clean_short};
use fingerpost_sys::child;
use fingerpost_undo::scratch::Scratch;

use super::pool;
use crate::exit::{self, Done, say, usage};

/// Arguments of `fleet node`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The node's name in the sweep
    #[arg(long, conflicts_with = "name_from")]
    name: Option<String>,
    /// The variable that holds it, as SLURMD_NODENAME
    #[arg(long)]
    name_from: Option<String>,
    /// End when standard input does: the other end has gone
    #[arg(long)]
    while_stdin: bool,
    /// Remove this program's file at once: it is a copy that was made for this run
    #[arg(long)]
    remove_self: bool,
    /// Put the record into this directory, as NODE.json.gz, instead of printing it; a node whose record is there is not
    /// measured again
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// The most seconds that the run may take
    #[arg(long, default_value_t = 900)]
    timeout: u64,
    /// Words after `run`
    #[arg(last = true)]
    words: Vec<String>,
}

/// Measures, and prints the record or why there is none.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let of_variable = || {
        args.name_from
            .as_ref()
            .and_then(|variable| std::env::var(variable).ok())
    };
    let name = args.name.clone().or_else(of_variable).unwrap_or_default();
    if !nodes::is_name(&name) {
        return usage("a node needs its name: --name NODE or --name-from VARIABLE");
    }
    if args.remove_self {
        // The running program keeps its file through /proc/self/exe, and so do its probes.
        std::fs::remove_file(std::env::current_exe()?)
            .context("cannot remove the copy of this program")?;
    }
    if let Some(dir) = &args.into {
        return into(dir, &name, || {
            measure(&args.words, args.timeout, args.while_stdin)
        });
    }
    crate::output::write(|out| writeln!(out, "{}", wire::began(&name)))?;
    let told =
        measure(&args.words, args.timeout, args.while_stdin).and_then(|run| Ok(slim::pack(&run)?));
    let lines = match &told {
        Ok(packed) => wire::lines(&name, packed),
        Err(e) => vec![wire::failure(&name, &exit::told(e))],
    };
    crate::output::write(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
    Ok(if told.is_ok() {
        Done::Well
    } else {
        Done::MeasurementFailed
    })
}

/// Measures, and puts the record into a directory, or the reason why there is none as `fleet gather` reads it. A job
/// that is requeued starts all its tasks again: a node that has its record keeps it, and what an attempt left in part
/// was never put in place.
fn into(
    dir: &Path,
    name: &str,
    measure: impl FnOnce() -> anyhow::Result<Run>,
) -> anyhow::Result<Done> {
    let (record, reason) = (
        dir.join(format!("{name}.json.gz")),
        dir.join(format!("{name}.out")),
    );
    if slim::from_path(&record).is_ok() {
        say(&format!("{name} has its record and is not measured again"));
        return Ok(Done::Well);
    }
    match measure() {
        Ok(run) => {
            write_whole(&record, &slim::pack(&run)?)?;
            // Of an earlier attempt.
            let _ = std::fs::remove_file(reason);
            Ok(Done::Well)
        }
        Err(e) => {
            let why = exit::told(&e);
            say(&format!("{name}: {}", clean_short(&why, 300)));
            write_whole(
                &reason,
                format!("{}\n", wire::failure(name, &why)).as_bytes(),
            )?;
            Ok(Done::MeasurementFailed)
        }
    }
}

/// Measures this host in a process of its own, and gives the run without its samples; with `while_stdin` for as long as
/// standard input lasts.
///
/// # Errors
/// Why there is none, in words.
pub fn measure(words: &[String], timeout: u64, while_stdin: bool) -> anyhow::Result<Run> {
    let scratch = Scratch::create().context("cannot make a private directory for the run")?;
    let file = scratch.subdir("fleet")?.join("run.json");
    let mut command = Command::new("/proc/self/exe");
    command
        .arg("run")
        .args(words)
        .arg("--quiet")
        .arg("-o")
        .arg(&file);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut running = child::die_with_parent(&mut command)
        .spawn()
        .context("cannot start the run")?;
    let group = running.id() as i32;
    if while_stdin {
        // That the input ends is the only sign of a connection that broke. The thread ends with the process.
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let _ = child::signal_group(group, libc::SIGTERM);
        });
    }
    let stderr = running.stderr.take();
    let complaints = std::thread::spawn(move || pool::complaint(stderr, "it said nothing"));
    let status = pool::ended_by(&mut running, Instant::now() + Duration::from_secs(timeout))?;
    let complaint = complaints.join().unwrap_or_default();
    match status {
        None => anyhow::bail!("the run took more than {timeout} seconds"),
        // 3: some measurement failed, and the record says which.
        Some(status) if matches!(status.code(), Some(0 | 3)) && file.exists() => {
            let run = lean::figures_from_path(&file)?;
            anyhow::ensure!(run.complete, "the run was stopped before its end");
            Ok(slim::slim(run))
        }
        Some(status) => anyhow::bail!("the run ended with {status}: {complaint}"),
    }
}

/// The file of this program, to be copied to a node.
pub fn own_file() -> anyhow::Result<(File, u64)> {
    let file = File::open("/proc/self/exe").context("cannot read this program's file")?;
    let bytes = file.metadata()?.len();
    Ok((file, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::fixture;

    #[test]
    fn a_restarted_node_keeps_its_record_and_replaces_what_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let (record, reason) = (dir.path().join("n1.json.gz"), dir.path().join("n1.out"));
        let failed = into(dir.path(), "n1", || anyhow::bail!("no space"));
        assert!(matches!(failed, Ok(Done::MeasurementFailed)));
        assert_eq!(
            std::fs::read_to_string(&reason).unwrap(),
            "FINGERPOST n1 failed no space\n"
        );
        let packed = slim::pack(&fixture::run()).unwrap();
        std::fs::write(&record, &packed[..packed.len() / 2]).unwrap();
        assert!(matches!(
            into(dir.path(), "n1", || Ok(slim::slim(fixture::run()))),
            Ok(Done::Well)
        ));
        assert_eq!(slim::from_path(&record).unwrap().id, fixture::run().id);
        assert!(!reason.exists(), "the reason of the attempt before");
        let kept = std::fs::read(&record).unwrap();
        assert!(matches!(
            into(dir.path(), "n1", || panic!("it is measured again")),
            Ok(Done::Well)
        ));
        assert_eq!(std::fs::read(&record).unwrap(), kept);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
