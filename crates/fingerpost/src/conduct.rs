//! Conducts a run: host, instrument, probes in rounds, labs, host again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fingerpost_labs::{LabError, Sink};
use fingerpost_measure::rounds::{self, Executor, Job};
use fingerpost_measure::{Slice, estimate};
use fingerpost_probes::flops::compilers;
use fingerpost_record::archive::{Archive, Writer, new_id, rfc3339};
use fingerpost_record::{Host, Instrument, Outcome, Profile, Run, SCHEMA, Tool};
use fingerpost_undo::scratch::{self, Scratch};

use crate::executor::ProcessExecutor;
use crate::exit::say;
use crate::plan::{LabRun, Plan, Row};
use crate::profile;
use crate::progress::{Progress, Progressing};
use crate::recorder::{Ended, Recorder, RowListener};
use crate::turns::Taker;

/// How a run is to be made.
pub struct Options {
    /// How much time to spend.
    pub profile: Profile,
    /// Another time than the profile's, for all of the run.
    pub budget: Option<Duration>,
    /// Seed of the order and the resampling.
    pub seed: u64,
    /// CPUs to measure on, in the order of use.
    pub cpus: Vec<usize>,
    /// Directory whose file system the probes use; nothing for the temporary directory.
    pub dir: Option<PathBuf>,
    /// Where to keep the run; nothing for the archive.
    pub output: Option<PathBuf>,
    /// What the user calls the run.
    pub label: Option<String>,
    /// Words put before a private server's command.
    pub server_prefix: Vec<String>,
    /// Whether the system may be changed (and restored).
    pub allow_system_changes: bool,
    /// To whom progress is told.
    pub progress: Progressing,
    /// The command line, for the record.
    pub command: Vec<String>,
}

/// Measures everything in the plan.
///
/// # Errors
/// Only what keeps a run from beginning at all. What goes wrong on the way is in the record.
pub fn conduct(plan: &Plan, options: &Options, stop: &AtomicBool) -> anyhow::Result<Ended> {
    for lab in &plan.labs {
        if let Err(LabError::Setting(sentence)) = (lab.lab.check)(&lab.settings, options.profile) {
            return crate::exit::usage(sentence);
        }
    }
    let beginning = Instant::now();
    // Plain probes change nothing, and die with this process.
    let labs = !plan.labs.is_empty() || plan.rows.iter().any(|row| row.probe.lab.is_some());
    let scratch = if labs {
        Scratch::create_guarded()
    } else {
        Scratch::create()
    };
    let mut scratch = scratch.context("cannot make a private directory for the run")?;
    let dir = work_dir(&mut scratch, options.dir.as_deref(), "work")?;
    let host = fingerpost_host::describe_for(&dir, &options.cpus);
    let run = Run {
        profile: options.profile,
        seed: options.seed,
        label: options.label.clone(),
        ..begun(options.command.clone(), host)
    };
    let (writer, trouble) = open_writer(options.output.as_deref(), &run)?;
    let times = times(plan, options);
    let expected: Duration = times.iter().sum();
    let progress = Progress::start(&describe(plan), expected, options.progress);
    if let Some(sentence) = trouble {
        progress.say(&sentence);
    }
    let mut recorder = Recorder::new(run, writer, progress, stop, Taker::from_environment());
    recorder.run.instrument = measure_instrument(options, &dir, stop);
    let rows = prepare(plan, &mut scratch, &mut recorder)?;
    // Which share of the run's time the rows take, and then each lab.
    let share =
        |time: &Duration| time.as_secs_f64() / expected.as_secs_f64().max(f64::MIN_POSITIVE);
    let stretches: Vec<f64> = times.iter().map(share).collect();
    if !rows.is_empty() {
        recorder.stretch = (0.0, stretches[0]);
        measure_rows(
            &rows,
            rows_budget(&rows, plan, options),
            options,
            &dir,
            stop,
            &mut recorder,
        );
    }
    for (lab, n) in plan.labs.iter().zip(1..) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        recorder.stretch = (stretches[..n].iter().sum(), stretches[n]);
        run_lab(lab, plan, options, &mut scratch, &dir, &mut recorder)?;
    }
    Ok(recorder.finish(beginning))
}

/// The rows of the plan, and those of the programs that must be built first. A program that cannot be built is a failed
/// row.
fn prepare(
    plan: &Plan,
    scratch: &mut Scratch,
    recorder: &mut Recorder,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = plan.rows.clone();
    if let Some(compile) = &plan.compile {
        recorder.progress.show("building the C kernels", 0.0);
        let built = compilers::build(compile, &scratch.subdir("programs")?)?;
        rows.extend(built.rows.into_iter().map(Row::from));
        built
            .failed
            .into_iter()
            .for_each(|row| recorder.measurement(row));
        if let Some(note) = built.note {
            recorder.progress.say(&note);
        }
    }
    Ok(rows)
}

/// A record at its beginning, made by this command on this host.
pub fn begun(command: Vec<String>, host: Host) -> Run {
    let now = jiff::Timestamp::now();
    Run {
        schema: SCHEMA.to_owned(),
        id: new_id(now, fastrand::u32(..)),
        started: rfc3339(now),
        profile: Profile::Standard,
        command,
        tool: Tool {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("FINGERPOST_COMMIT").to_owned(),
        },
        host,
        ..Run::default()
    }
}

/// The directory for the probes' files: of this name in the scratch directory, or a new one in the directory that the
/// user named.
pub fn work_dir(scratch: &mut Scratch, base: Option<&Path>, name: &str) -> anyhow::Result<PathBuf> {
    let Some(base) = base else {
        return Ok(scratch.subdir(name)?);
    };
    let made = scratch.directory_in(base).map(|(dir, _)| dir);
    made.or_else(|e| {
        crate::exit::usage(format!("cannot use the directory {}: {e}", base.display()))
    })
}

/// Where the run is kept from its beginning on: a file of the user's choice, or the archive; and what is to be said
/// about that.
///
/// # Errors
/// The file cannot be written.
pub fn open_writer(output: Option<&Path>, run: &Run) -> anyhow::Result<(Writer, Option<String>)> {
    match output {
        Some(path) => {
            let mut writer = Writer::at(path.to_owned());
            writer.write(run).map_or(Ok(()), crate::exit::usage)?;
            Ok((writer, None))
        }
        None => Ok(Writer::in_archive(&Archive::open(None)?, run)),
    }
}

fn describe(plan: &Plan) -> String {
    let labs: Vec<&str> = plan.labs.iter().map(|l| l.lab.name).collect();
    match (plan.rows.len(), labs.is_empty()) {
        (0, _) => format!("running {}", labs.join(", ")),
        (n, true) => format!("measuring {n} rows"),
        (n, false) => format!("measuring {n} rows, then {}", labs.join(", ")),
    }
}

/// The time for the probes: all of it, or half when labs share it.
fn rows_budget(rows: &[Row], plan: &Plan, options: &Options) -> Duration {
    let whole = options
        .budget
        .unwrap_or_else(|| profile::rows_budget(options.profile, rows.iter().map(|row| row.probe)));
    if options.budget.is_some() && !plan.labs.is_empty() {
        whole / 2
    } else {
        whole
    }
}

fn lab_budget(plan: &Plan, options: &Options) -> Duration {
    match options.budget {
        Some(whole) if plan.rows.is_empty() => whole / plan.labs.len().max(1) as u32,
        Some(whole) => whole / 2 / plan.labs.len().max(1) as u32,
        None => profile::lab_budget(options.profile),
    }
}

/// What the rows take, and then each lab: by its settings, else its budget.
fn times(plan: &Plan, options: &Options) -> Vec<Duration> {
    let rows = if plan.rows.is_empty() {
        Duration::ZERO
    } else {
        rows_budget(&plan.rows, plan, options)
    };
    let labs = plan
        .labs
        .iter()
        .map(|lab| (lab.lab.takes)(&lab.settings).unwrap_or_else(|| lab_budget(plan, options)));
    std::iter::once(rows).chain(labs).collect()
}

/// Measures the clock and the empty loop, and how large a probe process is: one short slice each.
fn measure_instrument(options: &Options, dir: &Path, stop: &AtomicBool) -> Instrument {
    let row = |name| fingerpost_probes::find(name).map(|probe| Row::new(probe, Default::default()));
    let rows: Vec<Row> = ["clock.gettime", "clock.loop"]
        .into_iter()
        .filter_map(row)
        .collect();
    let mut executor = ProcessExecutor::new(
        &rows,
        &options.cpus,
        |_| Duration::from_millis(5),
        dir,
        stop,
    );
    let mut take = |job: usize| match executor.slice(job) {
        Slice::Samples(s) => (estimate::median(&s.process.samples), s.resident),
        _ => (0.0, 0),
    };
    let ((clock_ns, probe_resident_bytes), (loop_ns, _)) = (take(0), take(1));
    Instrument {
        clock_ns,
        resolution_ns: clock_resolution(),
        loop_ns,
        probe_resident_bytes,
    }
}

/// The smallest step between two readings of the clock that differ.
fn clock_resolution() -> f64 {
    let mut last = Instant::now();
    let mut least = Duration::MAX;
    for _ in 0..10_000 {
        let now = Instant::now();
        if now > last {
            least = least.min(now - last);
            last = now;
        }
    }
    least.as_nanos() as f64
}

fn measure_rows(
    rows: &[Row],
    budget: Duration,
    options: &Options,
    dir: &Path,
    stop: &AtomicBool,
    recorder: &mut Recorder,
) {
    let (able, unable): (Vec<&Row>, Vec<&Row>) = rows
        .iter()
        .partition(|row| row.probe.cpus_needed(&row.params) <= options.cpus.len());
    for row in unable {
        let (need, have) = (row.probe.cpus_needed(&row.params), options.cpus.len());
        let reason = format!("needs {need} CPUs, and this process may use {have}");
        recorder.measurement(row.probe.without_figure(
            row.params.clone(),
            Outcome::Skipped,
            reason,
        ));
    }
    let able: Vec<Row> = able.into_iter().cloned().collect();
    let jobs: Vec<Job> = able
        .iter()
        .map(|row| Job {
            center: row.probe.center(&row.params),
            target: profile::target(options.profile, row),
        })
        .collect();
    let mut executor = ProcessExecutor::new(&able, &options.cpus, profile::slice, dir, stop);
    let effort = profile::effort(options.profile, budget);
    rounds::run(
        &jobs,
        effort,
        options.seed,
        &mut executor,
        &mut RowListener {
            recorder,
            rows: &able,
        },
    );
}

/// Runs one lab. What it lacks is a skipped lab, said on standard error; a wrong setting ends the run.
fn run_lab(
    lab: &LabRun,
    plan: &Plan,
    options: &Options,
    scratch: &mut Scratch,
    dir: &Path,
    recorder: &mut Recorder,
) -> anyhow::Result<()> {
    let budget = lab_budget(plan, options);
    let result = (lab.lab.run)(&mut fingerpost_labs::Context {
        settings: &lab.settings,
        profile: options.profile,
        budget,
        seed: options.seed,
        scratch,
        cpus: &options.cpus,
        server_prefix: &options.server_prefix,
        allow_system_changes: options.allow_system_changes,
        work_dir: dir,
        sink: recorder,
    });
    let (became, outcome, sentence) = match result {
        Ok(()) => return Ok(()),
        Err(LabError::Setting(sentence)) => {
            // Nothing was measured: a run without figures would only stand in the way as the latest.
            if recorder.run.measurements.is_empty() {
                recorder.writer.withdraw();
            }
            return crate::exit::usage(sentence);
        }
        Err(LabError::Missing(sentence)) => ("was skipped", Outcome::Skipped, sentence),
        Err(LabError::Failed(sentence)) => ("failed", Outcome::Failed, sentence),
    };
    recorder
        .progress
        .say(&format!("{} {became}: {sentence}", lab.lab.name));
    recorder.lab_without_figure(lab.lab, outcome, &sentence);
    Ok(())
}

/// Cleans up after runs that were killed, and says so.
pub fn clean_up(quiet: bool) {
    let told = scratch::sweep();
    if !quiet {
        told.iter().for_each(|sentence| say(sentence));
    }
}

/// Sets the flag on SIGINT, SIGTERM and SIGHUP. A second signal ends the program at once.
///
/// One that comes with the first does not count as the second: `timeout` signals its command and then the command's
/// group, which is the same process once more.
pub fn stop_on_signals(stop: &Arc<AtomicBool>) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let stop = Arc::clone(stop);
    let attend = move || {
        let mut first = None;
        for signal in signals.forever() {
            stop.store(true, Ordering::SeqCst);
            if *first.get_or_insert_with(Instant::now) + ONE_SIGNAL < Instant::now() {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(attend)
        .map(drop)
}

/// The flag of [`stop_on_signals`], which those that come from now on set.
pub fn stopped_by_signals() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signals(&stop)?;
    Ok(stop)
}

/// Signals that come within this time are one.
const ONE_SIGNAL: Duration = Duration::from_millis(50);
