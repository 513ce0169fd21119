//! `fingerpost report`: a run, or two side by side, as one HTML file that needs nothing else.

use std::ffi::OsString;
use std::path::PathBuf;

use fingerpost_compare::{Options, compare_sides};
use fingerpost_report::html;

use crate::{definitions, output, runs};

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fingerpost report latest -o run.html
  fingerpost report latest~1 latest -o comparison.html")]
pub struct Args {
    #[arg(help = runs::HELP, value_name = "RUN")]
    run: OsString,
    /// Another run: the report is then of the comparison, with RUN as the base
    #[arg(value_name = "OTHER")]
    other: Option<OsString>,
    /// The file to write
    #[arg(short, long, value_name = "FILE.html")]
    output: PathBuf,
}

/// Writes the report.
pub fn run(args: Args) -> anyhow::Result<()> {
    let (subject, page) = match &args.other {
        None => {
            let run = runs::load(&args.run)?;
            (
                run.id.clone(),
                html::report(&run, fingerpost_labs::views(), Some(definitions::of)),
            )
        }
        Some(other) => {
            let (base, new) = runs::sides(&args.run, other)?;
            let comparison = compare_sides(&base, &new, &Options::default());
            let content = html::of_comparison(&comparison, Some(definitions::of));
            (content.title.clone(), html::page(&content))
        }
    };
    output::page(&args.output, &page, &format!("The report on {subject}"))
}
