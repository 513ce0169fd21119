//! `fingerpost ab`: two settings of this host, paired within rounds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fingerpost_compare::Comparison;
use fingerpost_labs::Lab;
use fingerpost_probes::flops::compilers::{self, Compile};
use fingerpost_record::archive::{new_id, rfc3339};
use fingerpost_record::{Profile, Run, SCHEMA, Tool};
use fingerpost_report::Format;
use fingerpost_undo::scratch::Scratch;

use crate::ab::setting::Setting;
use crate::ab::{self, Options, pair};
use crate::exit::{Done, say, usage};
use crate::plan::{self, Plan, Row};
use crate::progress::{Progress, Progressing};
use crate::{conduct, cpus, output};

/// Arguments of `ab`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "KEY is a parameter of the probe or a setting of the lab, or one of: env.NAME (a variable), cpu (a \
        list), \
    thp (always, madvise, never), dir (where files lie), and for the servers of labs preload (a library) and \
    server-prefix (words \
    before the command). Both sides run back to back in every round, in random order, in fresh processes. Both are \
    kept as runs.

Examples:
  fingerpost ab syscall.poll --a fds=100 --b fds=101
  sudo fingerpost ab memory.latency --a thp=never --b thp=always \\
      --allow-system-changes
  fingerpost ab database --a synchronous=full --b synchronous=off"
)]
pub struct Args {
    /// A probe, a glob or a lab
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// A setting of side A
    #[arg(long = "a", value_name = "KEY=VALUE", required_unless_present = "b")]
    pub(crate) a: Vec<String>,
    /// A setting of side B
    #[arg(long = "b", value_name = "KEY=VALUE")]
    pub(crate) b: Vec<String>,
    /// A setting of both sides
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// How much time to spend
    #[arg(long, default_value = "standard", value_parser = crate::profile::parser())]
    pub(crate) profile: Profile,
    /// Spend at most this many seconds instead of the profile's time
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(crate) budget: Option<f64>,
    /// The relative difference that does not matter: 0.005 or 0.5%. Measuring ends when it is known on which side of it
    /// a row lies
    #[arg(long, default_value = "0.005", value_parser = super::threshold::threshold)]
    pub(crate) threshold: f64,
    /// Seed of the random order, to repeat it
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Allow changes of the system (thp=always); every change is undone
    #[arg(long)]
    pub(crate) allow_system_changes: bool,
    /// How to show the comparison
    #[arg(long, default_value = "table", value_parser = output::format_parser())]
    pub(crate) format: Format,
    /// Turns of a lab that each side gets at the least.
    #[arg(skip = ab::labs::LEAST_TURNS)]
    pub(crate) least_turns: usize,
    /// No progress, no notes
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// What is measured on both sides.
enum Subject {
    /// The rows of both sides, and what is built for them where a side names a compiler or its flags.
    Probes([Vec<Row>; 2], Option<[Compile; 2]>),
    Lab(&'static Lab),
}

/// Measures both sides, keeps them, and prints the comparison.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let planned = plan_pair(&args)?;
    conduct::clean_up(args.quiet);
    let stop = conduct::stopped_by_signals()?;
    let (runs, comparison) = take_pair(&args, &planned, &stop)?;
    let interrupted = stop.load(Ordering::Relaxed);
    output::show(&comparison, args.format, false)?;
    let kept = pair::keep(&runs);
    match &kept {
        Ok(()) if !args.quiet => say(&format!("kept as {} and {}", runs[0].id, runs[1].id)),
        Ok(()) => {}
        Err(error) => say(&format!("the runs are not kept: {error}")),
    }
    if interrupted {
        say("interrupted; what was measured until then is compared");
    }
    Ok(if interrupted || kept.is_err() {
        Done::MeasurementFailed
    } else {
        Done::Well
    })
}

/// What a pair is made of, checked before anything is measured.
pub(crate) struct Planned {
    settings: [Setting; 2],
    subject: Subject,
    options: Options,
}

/// Checks what is asked for.
pub(crate) fn plan_pair(args: &Args) -> anyhow::Result<Planned> {
    let settings = [Setting::parse(&args.a)?, Setting::parse(&args.b)?];
    if settings[0] == settings[1] {
        return usage("both sides are the same: give --a and --b different settings");
    }
    let subject = subject(args, &settings)?;
    let options = Options {
        budget: super::run::budget_of(args.budget)?
            .unwrap_or_else(|| usual_budget(args.profile, &subject)),
        least_turns: args.least_turns,
        profile: args.profile,
        threshold: args.threshold,
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..1 << 53)),
        allow_system_changes: args.allow_system_changes,
    };
    Ok(Planned {
        settings,
        subject,
        options,
    })
}

/// Measures both sides and puts them side by side.
pub(crate) fn take_pair(
    args: &Args,
    planned: &Planned,
    stop: &AtomicBool,
) -> anyhow::Result<([Run; 2], Comparison)> {
    let runs = measure(args, planned, stop)?;
    if let Some(why) = nothing_to_compare(&args.name, &runs, &planned.settings) {
        anyhow::bail!("there is nothing to compare: {why}");
    }
    let comparison = pair::compare(&runs, &planned.settings, args.threshold);
    Ok((runs, comparison))
}

/// Why runs cannot be put side by side that have no figure on both sides, or on one of them when all was measured.
fn nothing_to_compare(name: &str, runs: &[Run; 2], settings: &[Setting; 2]) -> Option<String> {
    let why = |runs: &[Run]| {
        runs.iter()
            .flat_map(|r| &r.measurements)
            .find_map(|m| m.reason.clone())
    };
    let without = runs
        .each_ref()
        .map(|run| ab::labs::without_figures(std::slice::from_ref(run)));
    let side = match without {
        [false, false] => return None,
        [true, true] => return Some(why(runs).unwrap_or("no pair was finished".into())),
        // What was measured until it was interrupted is told as ever.
        _ if runs.iter().any(|run| !run.complete) => return None,
        [true, false] => 0,
        [false, true] => 1,
    };
    Some(format!(
        "side {} ({}) gives no figure; see that `fingerpost run {name}` gives one with these settings, then compare \
         again: {}",
        ab::NAMES[side],
        settings[side].title(),
        why(&runs[side..=side]).unwrap_or("it was not measured".into())
    ))
}

/// The rows of both sides, or the lab.
fn subject(args: &Args, settings: &[Setting; 2]) -> anyhow::Result<Subject> {
    let plan_of = |setting: &Setting| -> anyhow::Result<Plan> {
        let mut both = Setting::parse(&args.set)?.plan_settings();
        both.extend(setting.plan_settings());
        plan::resolve_beside(std::slice::from_ref(&args.name), &both, &ab::setting::KEYS)
    };
    let [a, b] = [plan_of(&settings[0])?, plan_of(&settings[1])?];
    if let Some(lab) = a.labs.first() {
        return Ok(Subject::Lab(lab.lab));
    }
    if let Some(why) = settings.iter().find_map(Setting::lost_on_probes) {
        return usage(why);
    }
    let alike = a.rows.len() == b.rows.len()
        && a.rows
            .iter()
            .zip(&b.rows)
            .all(|(x, y)| x.probe.name == y.probe.name);
    if !alike {
        return usage(format!(
            "the sides would not measure the same rows of {}: set the parameter on both sides",
            args.name
        ));
    }
    let takes: Vec<&str> = a
        .rows
        .iter()
        .flat_map(|row| row.probe.settings)
        .map(|[key, ..]| *key)
        .collect();
    let named = |setting: &Setting| setting.params.iter().any(|(key, _)| takes.contains(&key));
    let compile = a.compile.zip(b.compile).filter(|_| {
        settings.iter().any(named) || named(&Setting::parse(&args.set).unwrap_or_default())
    });
    Ok(Subject::Probes(
        [a.rows, b.rows],
        compile.map(|(a, b)| [a, b]),
    ))
}

/// The rows that each side's compiler builds, in place of those that are built in.
fn built(compile: &[Compile; 2], scratch: &mut Scratch) -> anyhow::Result<[Vec<Row>; 2]> {
    let side = |n: usize| -> anyhow::Result<Vec<Row>> {
        let dir = scratch.subdir(&format!("programs-{}", ab::NAMES[n].to_lowercase()))?;
        let built = compilers::build(&compile[n], &dir)?;
        match built.failed.first() {
            Some(failed) => anyhow::bail!(
                "side {}: {}",
                ab::NAMES[n],
                failed.reason.clone().unwrap_or_default()
            ),
            None => Ok(built.rows.into_iter().map(Row::from).collect()),
        }
    };
    let rows = [side(0)?, side(1)?];
    if rows[0].is_empty() || rows[0].len() != rows[1].len() {
        return usage(
            "the sides would not measure the same rows: name one compiler on both sides, such as --a cc=gcc --b \
             cc=clang",
        );
    }
    Ok(rows)
}

/// Half a minute resolves one percent of one CPU-bound row; several rows share at most six times as much. A lab gets
/// its time on both sides.
fn usual_budget(profile: Profile, subject: &Subject) -> Duration {
    let one = match profile {
        Profile::Screen | Profile::Quick => 10,
        Profile::Standard | Profile::Imported => 30,
        Profile::Thorough => 120,
    };
    match subject {
        Subject::Probes(rows, _) => Duration::from_secs(one) * rows[0].len().min(6) as u32,
        Subject::Lab(_) => crate::profile::lab_budget(profile) * 2,
    }
}

fn measure(args: &Args, planned: &Planned, stop: &AtomicBool) -> anyhow::Result<[Run; 2]> {
    let Planned {
        settings,
        subject,
        options,
    } = planned;
    let begun = Instant::now();
    let now = jiff::Timestamp::now();
    // From the beginning where the system is changed: a run that is killed before it does so leaves no directory either.
    let scratch = if options.allow_system_changes {
        Scratch::create_guarded()
    } else {
        Scratch::create()
    };
    let mut scratch = scratch.context("cannot make a private directory for the run")?;
    let progress = Progress::start(
        &format!("comparing two settings of {}", args.name),
        options.budget,
        Progressing::unless(args.quiet),
    );
    let ids = pair::ids(&new_id(now, fastrand::u32(..)));
    let mut runs = match subject {
        Subject::Probes(rows, compile) => {
            let built = compile
                .as_ref()
                .map(|compile| built(compile, &mut scratch))
                .transpose()?;
            let rows = built.as_ref().unwrap_or(rows);
            let mut runs = [
                describe(&settings[0], &scratch)?,
                describe(&settings[1], &scratch)?,
            ];
            let measured =
                ab::probes::measure(rows, settings, options, &mut scratch, stop, &progress)?;
            runs.iter_mut()
                .zip(measured)
                .for_each(|(run, rows)| run.measurements = rows);
            runs.iter_mut()
                .for_each(|run| fingerpost_host::after(&mut run.host));
            runs
        }
        Subject::Lab(lab) => {
            let common = &Setting::parse(&args.set)?.params;
            let subject = ab::labs::Subject {
                lab,
                common,
                settings,
                options,
                stop,
                progress: &progress,
            };
            ab::labs::measure(&subject, &mut scratch)?
        }
    };
    for (run, id) in runs.iter_mut().zip(ids) {
        SCHEMA.clone_into(&mut run.schema);
        run.id = id;
        run.started = rfc3339(now);
        run.profile = options.profile;
        run.seed = options.seed;
        run.command = crate::exit::command_line();
        run.tool = Tool {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("FINGERPOST_COMMIT").to_owned(),
        };
        run.complete = !stop.load(Ordering::Relaxed);
        run.duration_s = begun.elapsed().as_secs_f64();
    }
    Ok(runs)
}

/// The host as one side uses it.
fn describe(setting: &Setting, scratch: &Scratch) -> anyhow::Result<Run> {
    let cpus = cpus::choose(setting.cpus.as_deref())?;
    // Where a probe's files lie.
    let mut host =
        fingerpost_host::describe_for(setting.dir.as_deref().unwrap_or(scratch.path()), &cpus);
    if let Some(thp) = setting.thp {
        host.thp = Some(thp.as_str().to_owned());
    }
    Ok(Run {
        host,
        ..Run::default()
    })
}
