//! `fingerpost explain`: where the time of a workload, of any command, or of a running service went, and who is to
//! blame.

mod client;
mod containers;
mod held;
mod live;
mod service;
mod target;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use fingerpost_compare::service::{LATENCY, RATE};
use fingerpost_compare::{Comparison, Options, Side, compare_sides};
use fingerpost_diagnose::StepFigures;
use fingerpost_observe::follow::Recorded;
use fingerpost_observe::session::{Told, label};
use fingerpost_observe::{Level, Session};
use fingerpost_record::archive::ArchiveError;
use fingerpost_record::{Params, Paths, Run, secret};
use fingerpost_report::Format;
use fingerpost_report::explain::{self as report, Explained, Explanation};
use fingerpost_report::view::View;
use fingerpost_sys::child::{Change, change, signal};
use fingerpost_workloads::Subjects;
use fingerpost_workloads::programs::is_program;

use crate::exit::{Done, say, usage};
use crate::progress::Progressing;
use crate::{output, runs};

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fingerpost explain latest                   the last run of a server
  fingerpost explain -- make -j4              a command
  fingerpost explain --port 8080              what listens there, for 10 s
  fingerpost explain --container shop-db      a container
  fingerpost explain --pid $(pgrep -d, gunicorn)
  fingerpost explain --port 8080 --seconds 600 --live     a line each second

Before and after a change, and what grew:
  fingerpost explain --unit mariadb --seconds 30 -o before.json
  fingerpost explain --unit mariadb --seconds 30 -o after.json
  fingerpost compare ./before.json ./after.json
  fingerpost explain --unit mariadb --baseline ./before.json     both at once

Would it be faster without the neighbour with this process number?
  fingerpost explain --port 8080 --experiment --hold 4711

With what `fingerpost load` saw on the client machine:
  fingerpost explain ./server.json --client client.json

A running service is not restarted or stopped, and without --experiment none of its settings is changed. Following its \
requests needs root.")]
pub struct Args {
    #[arg(help = runs::HELP, value_name = "RUN", conflicts_with_all = ["command", "service"])]
    pub(crate) run: Option<OsString>,
    #[command(flatten)]
    service: target::Args,
    /// A command of your own to run and explain
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "service")]
    pub(crate) command: Vec<String>,
    /// Watch the service for this many seconds (10 by default), or the command, which is then ended
    #[arg(long, value_name = "SECONDS", conflicts_with = "run")]
    seconds: Option<f64>,
    /// Keep what was seen of the service in this file instead of the archive; with RUN and --client, the joined run
    #[arg(short, long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) output: Option<PathBuf>,
    /// Join what a load generator on another machine saw (`fingerpost load -o FILE`): the run of the service then has
    /// both, and says how much of a round trip passed outside of the service. While a service is watched, the file is
    /// waited for
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    client: Option<PathBuf>,
    /// Compare the service with an earlier run of it: what takes longer, and whether its load grew
    #[arg(long, value_name = "RUN", requires = "service")]
    baseline: Option<OsString>,
    /// Change one thing of the service at a time, for tenths of a second, and measure whether its requests are faster
    /// with it: the highest CPU weight, all CPUs. Each change is printed before it is made, and undone
    #[arg(long, requires = "service")]
    experiment: bool,
    /// With --experiment: hold this neighbour, a process with its children or a control group, for a tenth of a second
    /// at a time
    #[arg(long, value_name = "PID|CGROUP", requires = "experiment")]
    hold: Vec<String>,
    /// Print each second what requests wait for, while the service is watched. Following them meanwhile takes a few per
    /// cent of a CPU
    #[arg(long, requires = "service")]
    live: bool,
    /// What to call the service in the record, in place of its program's name; two records of one name are compared
    #[arg(long, value_name = "NAME", requires = "service")]
    label: Option<String>,
    /// Sample /proc even where tracepoints are allowed
    #[arg(long, conflicts_with = "run")]
    sampling: bool,
    /// Also show what rules each suspect out
    #[arg(long)]
    wide: bool,
    /// No progress, no notes
    #[arg(short, long, requires = "service")]
    quiet: bool,
    /// How to show progress, on standard error
    #[arg(long, value_enum, default_value_t, requires = "service", hide = true)]
    progress: Progressing,
    /// How to print it; with any but `table` a command's own output goes to standard error
    #[arg(long, default_value = "table", value_parser = output::format_parser())]
    format: Format,
}

impl Args {
    fn level(&self) -> Level {
        if self.sampling {
            Level::Sampling
        } else {
            Level::Tracing
        }
    }

    fn progressing(&self) -> Progressing {
        if self.quiet {
            Progressing::None
        } else {
            self.progress
        }
    }
}

/// What is said where nothing to explain is named.
const WHAT: &str = "name what to explain: a run (fingerpost explain latest), a running service (--pid PID, --port \
    PORT, --unit NAME, \
    --cgroup PATH or --container NAME), or a command (fingerpost explain -- COMMAND)";

/// How long a command that was asked to end may take before it is made to.
const GRACE: Duration = Duration::from_secs(5);

/// Explains a run or a command.
pub fn run(args: Args) -> anyhow::Result<Done> {
    if args.seconds.is_some_and(|s| !s.is_finite() || s <= 0.0) {
        return usage("--seconds needs a number above 0");
    }
    if args.service.is_given() {
        return of_service(&args);
    }
    if args.output.is_some() && args.client.is_none() {
        return usage(
            "-o is for a service that is watched, or for a run that is joined with --client",
        );
    }
    let mut found = Vec::new();
    let explanations = match (&args.run, &args.client) {
        (Some(name), Some(path)) => {
            let run = client::join_kept(name, path, args.output.as_deref())?;
            client::service_of(&run).into_iter().collect()
        }
        (Some(name), None) => {
            let (explanations, answers) = of_run(name)?;
            found = answers;
            explanations
        }
        (None, _) => vec![of_command(&args)?],
    };
    let explained = Explained {
        answers: found,
        explanations: &explanations,
        comparison: None,
    };
    output::show(&explained, args.format, args.wide)?;
    Ok(Done::Well)
}

/// Watches a service, prints what was seen, beside its baseline where one is named, and keeps it.
fn of_service(args: &Args) -> anyhow::Result<Done> {
    let begun = Instant::now();
    let baseline = args.baseline.as_deref().map(baseline).transpose()?;
    let target = args.service.find(args.label.as_deref())?;
    let pids = target.pids();
    let hold = held::find(&args.hold, &pids)?;
    let explained = service::explain(target, args, begun, args.experiment.then_some(&hold))?;
    let comparison = baseline.map(|side| beside(side, &explained.ended.run));
    let screen = Explained {
        answers: Vec::new(),
        explanations: std::slice::from_ref(&explained.explanation),
        comparison: comparison.as_ref(),
    };
    output::show(&screen, args.format, args.wide)?;
    if args.format == Format::TABLE {
        let lines = service::closer(&explained, &pids);
        output::write(|out| {
            out.write_all(report::service::closer(&lines, &output::style(false)).as_bytes())
        })?;
    }
    let kept = explained
        .ended
        .tell(args.progressing(), "what was seen", "");
    if let Err(sentence) = &explained.joined {
        say(&format!(
            "the load generator's run is not joined: {sentence}"
        ));
        return Ok(Done::BadInput);
    }
    Ok(if kept {
        Done::Well
    } else {
        Done::MeasurementFailed
    })
}

/// The run that the service is judged beside; read before anything is watched, so that a mistake costs no time.
///
/// # Errors
/// It is not there, or is no run of a service.
fn baseline(wanted: &OsStr) -> anyhow::Result<Side> {
    let side = runs::side(wanted)?;
    if side
        .rows
        .keys()
        .any(|(probe, _, _)| [LATENCY, RATE].contains(&probe.as_str()))
    {
        return Ok(side);
    }
    usage(format!(
        "{} holds no requests of a running service to judge by; keep one with “fingerpost explain --port N -o FILE”",
        wanted.to_string_lossy()
    ))
}

/// The two beside each other.
fn beside(mut base: Side, run: &Run) -> Comparison {
    let mut new = Side::of(std::slice::from_ref(run));
    // Both are of one host: a sentence is clearer with what they are.
    (base.info.name, new.info.name) = ("the baseline".to_owned(), "the service now".to_owned());
    compare_sides(&base, &new, &Options::default())
}

/// Every step of a run that observers watched.
fn of_run(name: &OsStr) -> anyhow::Result<(Vec<Explanation>, Vec<String>)> {
    let run = runs::load(name).or_else(|error| meant_as_command(name, error))?;
    let explanations = report::of_run(&run);
    if explanations.is_empty() {
        return usage(format!(
            "the run {} holds nothing to explain; make one of a workload, such as “fingerpost run database”",
            run.id
        ));
    }
    // The screen of a service begins with its own.
    let service = explanations
        .iter()
        .any(|e| e.workload == report::service::WORKLOAD);
    let answers = if service {
        Vec::new()
    } else {
        View::of(&run, fingerpost_labs::views()).answers
    };
    Ok((explanations, answers))
}

/// The error of a run that there is not; where a program has its name, with how that is explained.
fn meant_as_command<T>(name: &OsStr, error: anyhow::Error) -> anyhow::Result<T> {
    match (name.to_str(), error.downcast_ref::<ArchiveError>()) {
        (Some(word), Some(ArchiveError::NotFound { dir, .. })) if can_execute(word) => {
            usage(format!(
                "there is no run “{word}” in {dir}; to explain the command of that name: fingerpost explain -- {word}"
            ))
        }
        _ => Err(error),
    }
}

/// Runs a command of the user's under observers.
fn of_command(args: &Args) -> anyhow::Result<Explanation> {
    let Some(program) = args.command.first() else {
        return usage(WHAT);
    };
    if !can_execute(program) {
        return usage(format!("there is no command “{program}” that can be run"));
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    for s in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(s, Arc::clone(&interrupted)).context("cannot catch signals")?;
    }
    let mut child = start_held(&args.command, args.format)?;
    let pid = child.id() as i32;
    let session = Session::attach(
        &Subjects {
            servers: vec![pid],
            clients: Vec::new(),
        },
        args.level(),
    );
    let begun = Instant::now();
    signal(pid, libc::SIGCONT).context("cannot start the command")?;
    let deadline = args
        .seconds
        .map(|s| begun + Duration::from_secs_f64(s.min(1e9)));
    wait_for_end(pid, deadline, &interrupted)?;
    let elapsed = begun.elapsed().as_secs_f64();
    // The command is not reaped yet: what the kernel counted for it can still be read.
    let Told {
        mut observations,
        recorded,
        refused,
        ..
    } = session.finish();
    end(&mut child)?;
    if let Some(why) = refused {
        anyhow::bail!(why);
    }
    let words = secret::cut_words(args.command.iter().map(String::as_str)).join(" ");
    label(&mut observations, &words, &Params::new());
    let paths = recorded.map(Recorded::follow).map(|paths| Paths {
        workload: words.clone(),
        ..paths
    });
    // A command is one request, of which windows show a part: all of its time is as many times that part.
    let seen = paths
        .as_ref()
        .map(|p| p.latency.mean)
        .filter(|seen| *seen > 0.0);
    let turns_per_transaction = seen.map_or(1.0, |seen| elapsed / seen);
    let figures = StepFigures {
        transactions: 1,
        elapsed_s: elapsed,
        clients: 1.0,
        turns_per_transaction,
        ..StepFigures::default()
    };
    Ok(Explanation::new(
        &words,
        &Params::new(),
        &figures,
        paths.as_ref(),
        observations,
    ))
}

/// Whether the shell would find this program.
fn can_execute(program: &str) -> bool {
    if program.contains('/') {
        return is_program(Path::new(program));
    }
    std::env::var_os("PATH")
        .is_some_and(|dirs| std::env::split_paths(&dirs).any(|dir| is_program(&dir.join(program))))
}

/// Starts the command, stopped just before it becomes the user's program, so that observers see it from its first
/// instruction.
fn start_held(words: &[String], format: Format) -> anyhow::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "kill -STOP $$; exec \"$@\"", "sh"])
        .args(words);
    if format != Format::TABLE {
        command.stdout(Stdio::from(std::io::stderr()));
    }
    let mut child = command
        .spawn()
        .context("cannot start /bin/sh, which starts the command")?;
    let deadline = Instant::now() + GRACE;
    loop {
        match change(child.id() as i32)? {
            Some(Change::Stopped) => return Ok(child),
            Some(Change::Ended) => {
                anyhow::bail!("the shell that starts the command ended before it did")
            }
            None if Instant::now() > deadline => {
                end(&mut child)?;
                anyhow::bail!("the shell that starts the command did not start it in time");
            }
            None => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}

/// Waits until the command ends, its time is up, or the user has had enough.
fn wait_for_end(
    pid: i32,
    deadline: Option<Instant>,
    interrupted: &AtomicBool,
) -> anyhow::Result<()> {
    let mut pause = Duration::from_micros(200);
    while change(pid)? != Some(Change::Ended) {
        if interrupted.load(Ordering::Relaxed) || deadline.is_some_and(|d| Instant::now() >= d) {
            return Ok(());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(2));
    }
    Ok(())
}

/// Ends the command where it still runs, and says how it ended when that was not well.
fn end(child: &mut Child) -> anyhow::Result<()> {
    let ended_by_us = child.try_wait()?.is_none();
    if ended_by_us {
        signal(child.id() as i32, libc::SIGTERM)?;
        signal(child.id() as i32, libc::SIGCONT)?;
        if fingerpost_sys::child::wait_deadline(child, Instant::now() + GRACE)?.is_none() {
            child.kill()?;
        }
    }
    let status = child.wait()?;
    if !status.success() && !ended_by_us {
        say(&format!(
            "the command ended with {status}; its time is explained nevertheless"
        ));
    }
    Ok(())
}
