//! `fingerpost show`: a run's figures.

use std::ffi::OsString;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use fingerpost_compare::export;
use fingerpost_record::Run;
use fingerpost_report::{Format, run};

use crate::{output, runs};

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fingerpost show                             the latest run
  fingerpost show latest~1 --format csv
  fingerpost show ref:g5-2.7-darwin           published figures")]
pub struct Args {
    #[arg(help = runs::HELP, value_name = "RUN", default_value = "latest")]
    pub(crate) run: OsString,
    /// How to show it
    #[arg(long, default_value = "table", value_parser = format_parser())]
    format: Shown,
    /// Show every column, even if the terminal is too narrow
    #[arg(long)]
    wide: bool,
}

/// A format of our own, or another tool's.
#[derive(Clone, Copy, Debug)]
enum Shown {
    Own(Format),
    GoBench,
    OpenMetrics,
}

fn format_parser() -> impl TypedValueParser<Value = Shown> {
    let of_others = [
        ("go-bench", "For benchstat"),
        ("openmetrics", "For a textfile collector"),
    ]
    .map(|(name, purpose)| PossibleValue::new(name).help(purpose));
    PossibleValuesParser::new(output::formats().chain(of_others)).try_map(|name| {
        match name.as_str() {
            "go-bench" => Ok(Shown::GoBench),
            "openmetrics" => Ok(Shown::OpenMetrics),
            own => own.parse().map(Shown::Own),
        }
    })
}

/// Shows the run that was asked for.
pub fn run(args: Args) -> anyhow::Result<()> {
    let run = runs::load(&args.run)?;
    match args.format {
        Shown::Own(format) => print(&run, format, args.wide),
        Shown::GoBench => output::write(|out| out.write_all(export::go_bench(&run).as_bytes())),
        Shown::OpenMetrics => {
            output::write(|out| out.write_all(export::openmetrics(&run).as_bytes()))
        }
    }
}

/// Prints a run on standard output: what `show` does, and `run` at its end.
pub fn print(run: &Run, format: Format, wide: bool) -> anyhow::Result<()> {
    let labs = fingerpost_labs::views();
    output::show(&run::Shown { run, labs }, format, wide)
}
