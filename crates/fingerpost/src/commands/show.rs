//! `fingerpost show`: a run's figures.

use fingerpost_record::Run;
use fingerpost_report::{Format, format};

use crate::exit::Done;
use crate::{output, runs};

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(help = runs::HELP, value_name = "RUN", default_value = "latest")]
    run: String,
    /// How to show it; json is the record itself
    #[arg(long, default_value = "table", value_parser = output::format_parser())]
    format: Format,
    /// Every column, also where the terminal is too narrow for it
    #[arg(long)]
    wide: bool,
}

/// Shows the run that was asked for.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let run = runs::load(&args.run)?;
    print(&run, args.format, args.wide)?;
    Ok(Done::Well)
}

/// Prints a run on standard output: what `show` does, and `run` at its end.
pub fn print(run: &Run, format: Format, wide: bool) -> anyhow::Result<()> {
    output::write(|out| format::write_run(out, run, format, &output::style(wide)))
}
