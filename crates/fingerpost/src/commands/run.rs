//! `fingerpost run`: measures, shows, keeps.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Parser as _;
use fingerpost_record::archive::checked_label;
use fingerpost_record::text::clean_short;
use fingerpost_record::{Outcome, Profile, Run, secret};
use fingerpost_report::Format;

use crate::conduct::{self, Options};
use crate::cpus;
use crate::exit::{Done, say, usage};
use crate::progress::Progressing;
use crate::recorder::Ended;
use crate::{output, plan, profile};

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fingerpost run                              every primitive, three minutes
  fingerpost run syscall 'ipc.*' --profile quick   families and globs
  fingerpost run syscall.poll --set fds=10,500    a parameter's values
  fingerpost run memory -o before.json        into a file
  fingerpost run database --set engine=mariadb --label before
  sudo fingerpost run launch --allow-system-changes
  fingerpost run launch --watch 4d            page-ins over four days")]
pub struct Args {
    /// Labs, probes or globs (`syscall.*`); with none, every primitive
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// How much time to spend: a minute, three, or ten for all primitives; 20 s, 90 s, or 5 minutes for a lab that
    /// loads a server
    #[arg(long, default_value = "standard", value_parser = profile::parser())]
    profile: Profile,
    /// Spend this many seconds instead of the profile's time
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    budget: Option<f64>,
    /// Keep the run in this file instead of the archive
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// What to call the run in lists and titles; `archive label` changes it
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Set a parameter of what is measured; several values, several rows (`--set fds=10,500`). `dir` is the directory
    /// for files. Keep passwords out of the command line, which every user of this host can list:
    /// `--set password_file=PATH`, MYSQL_PWD or PGPASSWORD
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// With `launch`: launch nothing, and watch the page-ins since boot for so long (4d, 12h, 30m); each day of uptime
    /// becomes a row
    #[arg(long, value_name = "LENGTH")]
    watch: Option<String>,
    /// CPUs to measure on, in the order of use (`1,0` or `2-5`). First CPU: the measuring process; second: its partner
    #[arg(long, value_name = "LIST")]
    cpu: Option<String>,
    /// Words to put before the command of a private server, such as 'taskset -c 0'
    #[arg(
        long,
        value_name = "CMD ARGS",
        default_value = "",
        hide_default_value = true
    )]
    server_prefix: String,
    /// Seed of the random order, to repeat it
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Allow labs that change the system (swap, caches, control groups); every change is undone
    #[arg(long)]
    allow_system_changes: bool,
    /// How to print the run
    #[arg(long, default_value = "table", value_parser = output::format_parser())]
    format: Format,
    /// No progress, no notes
    #[arg(short, long)]
    quiet: bool,
    /// How to show progress, on standard error
    #[arg(long, value_enum, default_value_t, hide = true)]
    progress: Progressing,
}

/// Measures these names in the quick profile, keeps the run under `command` and prints nothing on standard output.
pub fn measure(names: &[&str], set: &[&str], command: String) -> anyhow::Result<(Run, Done)> {
    let set = set.iter().flat_map(|setting| ["--set", setting]);
    let args = parsed(
        ["--profile", "quick"]
            .into_iter()
            .chain(set)
            .chain(names.iter().copied()),
    )?;
    let (conducted, stopped) = conducted(&args, Some(command))?;
    let done = conclude(&conducted, args.progress, stopped);
    Ok((conducted.run, done))
}

/// What these words after `run` stand for.
fn parsed<'a>(words: impl Iterator<Item = &'a str>) -> Result<Args, clap::Error> {
    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        args: Args,
    }
    Words::try_parse_from(std::iter::once("run").chain(words)).map(|words| words.args)
}

/// Measures, prints the result, and says where it is kept.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let (conducted, stopped) = conducted(&args, None)?;
    super::show::print(&conducted.run, args.format, false)?;
    let progress = if args.quiet {
        Progressing::None
    } else {
        args.progress
    };
    Ok(conclude(&conducted, progress, stopped))
}

/// Refuses words after `run` that the user did not write, but a sweep that may be anybody's, where they do more than to
/// choose what is measured and for how long: where files go, what a server is started by, changes of the system, and
/// settings that are not known to be harmless.
pub fn only_measures(words: &[String]) -> Result<(), String> {
    let args = parsed(words.iter().map(String::as_str))
        .map_err(|_| "`run` does not take them".to_owned())?;
    let more = [
        (args.output.is_some(), "--output"),
        (!args.server_prefix.is_empty(), "--server-prefix"),
        (args.allow_system_changes, "--allow-system-changes"),
        (args.watch.is_some(), "--watch"),
        (args.label.is_some(), "--label"),
    ];
    if let Some((_, option)) = more.iter().find(|(given, _)| *given) {
        return Err(format!("{option} is for the user to give"));
    }
    for setting in &args.set {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        fingerpost_labs::elsewhere::of_any(key, value)
            .map_err(|why| format!("--set {}: {why}", clean_short(setting, 60)))?;
    }
    Ok(())
}

/// How long measuring takes by these words after `run`, about; or what is wrong with them, names and settings included.
/// Nothing is asked of this host: they are for others.
pub fn time_of(words: &[String]) -> anyhow::Result<Duration> {
    let args = match parsed(words.iter().map(String::as_str)) {
        Ok(args) => args,
        Err(e) => {
            let text = e.render().to_string();
            let said: Vec<&str> = text
                .lines()
                .map(str::trim)
                .take_while(|line| !line.starts_with("Usage:"))
                .filter(|l| !l.is_empty())
                .collect();
            return usage(format!(
                "`run` does not take the words after --: {}",
                said.join("; ").trim_start_matches("error: ")
            ));
        }
    };
    plan::resolve(&args.names, &plan::parse_settings(&args.set)?)?;
    Ok(budget_of(args.budget)?.unwrap_or_else(|| profile::budget(args.profile)))
}

/// The seconds that the user gives, checked.
pub fn budget_of(given: Option<f64>) -> anyhow::Result<Option<Duration>> {
    match given {
        Some(s) if !(s.is_finite() && s > 0.0 && s < 1e6) => {
            usage(format!("--budget {s}: give 1 to 999999 seconds"))
        }
        other => Ok(other.map(Duration::from_secs_f64)),
    }
}

/// What `--watch` stands for.
fn watching(args: &Args) -> anyhow::Result<Vec<String>> {
    let Some(length) = &args.watch else {
        return Ok(Vec::new());
    };
    if args.names != ["launch"] {
        return usage(
            "--watch watches the page-ins since boot, which belongs to `launch` alone: fingerpost run launch --watch \
             4d",
        );
    }
    Ok(vec!["state=uptime".to_owned(), format!("watch={length}")])
}

/// Measures, and says whether it was stopped. The record has `command`, or this process's own.
fn conducted(args: &Args, command: Option<String>) -> anyhow::Result<(Ended, bool)> {
    let set = [args.set.clone(), watching(args)?].concat();
    let settings = plan::parse_settings(&plan::all_settings(&set))?;
    let mut options = resolve(args, &settings)?;
    let named = !args.names.is_empty();
    let names = if named {
        args.names.clone()
    } else {
        profile::names(options.profile)
    };
    let mut plan = plan::resolve(&names, &settings)?;
    if let Some(command) = command {
        options.command = command.split(' ').map(str::to_owned).collect();
    }
    plan.rows
        .retain(|row| profile::includes(options.profile, row, &settings, named));
    let progress = options.progress;
    conduct::clean_up(progress == Progressing::None);
    let stop = conduct::stopped_by_signals()?;
    let conducted = conduct::conduct(&plan, &options, &stop)?;
    Ok((conducted, stop.load(Ordering::Relaxed)))
}

/// Turns arguments into options, or says which of them cannot be.
fn resolve(args: &Args, settings: &plan::Settings) -> anyhow::Result<Options> {
    let budget = budget_of(args.budget)?;
    let label = args
        .label
        .as_deref()
        .map(checked_label)
        .transpose()
        .or_else(usage)?
        .filter(|label| !label.is_empty());
    Ok(Options {
        profile: args.profile,
        budget,
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..1 << 53)),
        cpus: cpus::choose(args.cpu.as_deref())?,
        dir: settings
            .get("dir")
            .and_then(|values| values.first())
            .map(|dir| PathBuf::from(dir.to_string())),
        output: args.output.clone(),
        label,
        server_prefix: args
            .server_prefix
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        allow_system_changes: args.allow_system_changes,
        progress: if args.quiet {
            Progressing::None
        } else {
            args.progress
        },
        command: secret::cut_words(command(crate::exit::words()).iter().map(String::as_str)),
    })
}

/// The command line for the record, without how its progress was told: that is no part of what was measured.
pub fn command(mut words: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--progress" => drop(words.next()),
            "--live" => {}
            w if w.starts_with("--progress=") => {}
            // What follows are names, which nothing is taken from.
            "--" => kept.extend(words.by_ref()),
            _ => kept.push(word),
        }
    }
    kept
}

/// Says where the run is kept, what went wrong, and chooses the exit status.
fn conclude(conducted: &Ended, progress: Progressing, interrupted: bool) -> Done {
    if interrupted {
        say("interrupted; the run holds what was measured until then");
    }
    let kept = conducted.tell(progress, "the run", "");
    let failed = conducted
        .run
        .measurements
        .iter()
        .any(|m| m.outcome == Outcome::Failed);
    if failed || interrupted || !kept {
        Done::MeasurementFailed
    } else {
        Done::Well
    }
}
