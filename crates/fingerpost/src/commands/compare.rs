//! `fingerpost compare`: two sides, row by row, and the cause of the difference.

use std::ffi::{OsStr, OsString};
use std::sync::atomic::Ordering;

use clap::ValueEnum;
use fingerpost_compare::{Comparison, Options, Side, Verdict, compare_sides};
use fingerpost_report::Format;

use super::threshold::threshold;
use crate::exit::{Done, say, usage};
use crate::plan::family;
use crate::{conduct, output, runs, settle};

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "BASE and NEW are each a RUN or several with commas between, which adds the variation from run to run \
        to the \
    intervals: a path, a directory of run files, the start of a run's id, `latest`, `latest~1`, `ref:NAME` (a \
    reference system), \
    `-` (standard input, once). \
    RUN[KEY=VALUE] takes the rows with that parameter, so that two parts of one run can be compared: 'latest[api=mmap]'.

Examples:
  fingerpost compare latest~1                 the run before and the latest
  fingerpost compare A1,A2 B1,B2              two runs a side
  fingerpost compare ref:g5-2.5-linux latest
  fingerpost compare 'latest[api=mmap]' 'latest[api=brk]'
  fingerpost compare base.json new.json --fail-on slower --threshold 5%"
)]
pub struct Args {
    /// What to compare with
    #[arg(value_name = "BASE")]
    base: OsString,
    /// The run that is judged [default: latest]
    #[arg(value_name = "NEW")]
    new: Option<OsString>,
    /// The relative difference that does not matter: 0.03 or 3%
    #[arg(long, default_value = "0.03", value_parser = threshold)]
    threshold: f64,
    /// End with status 1 when a row has this verdict
    #[arg(long, value_name = "VERDICT")]
    fail_on: Option<FailOn>,
    /// The two sides of one `ab`: compare the n-th process of the one with the n-th of the other
    #[arg(long)]
    paired: bool,
    /// Where several settings or versions differ: measure each by itself on this machine, all else as on the base side,
    /// and say which one makes the difference
    #[arg(long, conflicts_with = "paired")]
    settle: bool,
    #[command(flatten)]
    settling: settle::Options,
    /// How to show it
    #[arg(long, default_value = "table", value_parser = output::format_parser())]
    format: Format,
    /// Show every column, even if the terminal is too narrow, and what rules suspects out
    #[arg(long)]
    wide: bool,
}

impl Args {
    /// The two sides as they were named; the new one is the latest run where it was not.
    pub fn sides(&self) -> (&OsStr, &OsStr) {
        (
            &self.base,
            self.new.as_deref().unwrap_or(OsStr::new("latest")),
        )
    }
}

/// A verdict that a script can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Any row got slower
    Slower,
    /// Any row got slower or faster
    Different,
}

/// Compares and prints.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let (base, new) = args.sides();
    let (base, new) = runs::sides(base, new)?;
    if args.new.is_none() && base.info.ids == new.info.ids {
        return usage(format!(
            "that would compare the latest run ({}) with itself; the run before it beside it: fingerpost compare \
             latest~1",
            base.info.ids.join(", ")
        ));
    }
    let mut comparison = compare_sides(
        &base,
        &new,
        &Options {
            threshold: args.threshold,
            paired: args.paired,
            ..Options::default()
        },
    );
    let interrupted = args.settle && settled(&args.settling, &base, &new, &mut comparison)?;
    output::show(&comparison, args.format, args.wide)?;
    // Rows, and parts of the system whose rows tell it together only.
    let mut verdicts = comparison
        .rows
        .iter()
        .map(|row| row.verdict)
        .chain(comparison.pooled.iter().map(|part| part.verdict));
    let met = verdicts.any(|verdict| match args.fail_on {
        None => false,
        Some(FailOn::Slower) => verdict == Verdict::Slower,
        Some(FailOn::Different) => matches!(verdict, Verdict::Slower | Verdict::Faster),
    });
    if comparison.rows.is_empty() {
        // Else a check by --fail-on would pass that compared nothing.
        say(&format!(
            "nothing was compared: the two have no row in common; {}",
            what_would(&base, &new)
        ));
        return Ok(Done::BadInput);
    }
    Ok(match (interrupted, met) {
        (true, _) => Done::MeasurementFailed,
        (_, true) => Done::FailOn,
        _ => Done::Well,
    })
}

/// What would have rows in common: of a published system the commands that measure what it has, those of the other
/// side's labs and probes.
fn what_would(base: &Side, new: &Side) -> String {
    let commands = |published: &Side, own: &Side| -> Vec<String> {
        let has = |name: &str| {
            own.rows
                .keys()
                .any(|(probe, _, _)| family(probe) == family(name))
        };
        let recipes = fingerpost_replay::tables_of(&published.info.name)
            .into_iter()
            .filter_map(fingerpost_replay::recipe_of);
        recipes
            .filter(|recipe| recipe.names.iter().any(|name| has(name)))
            .map(|recipe| format!("`{}`", recipe.command()))
            .collect()
    };
    let found = [commands(base, new), commands(new, base)].concat();
    match found.as_slice() {
        [] => "name runs of the same lab or probes (`fingerpost archive list`)".to_owned(),
        found => format!(
            "what the published system has is measured here by {}",
            found.join(", ")
        ),
    }
}

/// Measures what each change makes by itself; whether that was interrupted.
fn settled(
    options: &settle::Options,
    base: &Side,
    new: &Side,
    comparison: &mut Comparison,
) -> anyhow::Result<bool> {
    settle::refused(base, new, comparison)?;
    conduct::clean_up(options.quiet);
    let stop = conduct::stopped_by_signals()?;
    let settled = settle::settle(comparison, options, &stop);
    comparison.settle(settled);
    Ok(stop.load(Ordering::Relaxed))
}
