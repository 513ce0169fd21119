//! `fingerpost report`: a run as one HTML file that needs nothing else.

use std::path::PathBuf;

use fingerpost_record::archive;
use fingerpost_report::html;

use crate::exit::Done;
use crate::{output, runs};

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(help = runs::HELP, value_name = "RUN")]
    run: String,
    /// The file to write
    #[arg(short, long, value_name = "FILE.html")]
    output: PathBuf,
}

/// Writes the report.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let run = runs::load(&args.run)?;
    archive::write_whole(&args.output, html::report(&run).as_bytes())?;
    // The page may have gone to standard output itself.
    if args.output.is_file() {
        output::write(|out| writeln!(out, "The report on {} is in {}.", run.id, args.output.display()))?;
    }
    Ok(Done::Well)
}
