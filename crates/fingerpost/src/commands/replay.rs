//! `fingerpost replay`: a published table with this machine's column, and its authors' conclusions judged here.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use fingerpost_record::archive::Archive;
use fingerpost_record::{Run, lean, load};
use fingerpost_replay::{self as replay, Recipe, shown};
use fingerpost_report::{Format, html};

use crate::exit::{Done, say, usage};
use crate::{output, runs};

/// Runs of the archive that are looked through, the latest first, for rows of the tables.
const MOST_RUNS: usize = 50;

/// Arguments of `replay`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "NAME is a published table (ref:mysql-scaling), the beginning that several share (ref:mysql), a \
        reference system (ref:g5-2.7-darwin: \
    all tables that it is in), or ref:all. The column of this machine is taken from RUN, else from the latest runs of \
    the archive that have the \
    table's rows. What stands for what (MariaDB for MySQL, an object database for Frontier's) is said beside each \
    figure.

Examples:
  fingerpost replay ref:mysql                 beside the runs of the archive
  fingerpost replay ref:lmbench --measure     measured now
  fingerpost replay -o published.html         all of them, as a page"
)]
pub struct Args {
    /// A published table, or several
    #[arg(value_name = "ref:NAME", default_value = "ref:all")]
    #[arg(value_parser = name_parser(), hide_possible_values = true)]
    name: String,
    #[arg(help = runs::HELP, value_name = "RUN", conflicts_with = "measure")]
    run: Option<OsString>,
    /// Measure the table's rows now, where that needs neither rights nor an installed server, and keep the runs
    #[arg(long)]
    measure: bool,
    /// How to print it
    #[arg(long, default_value = "table", value_parser = output::format_parser())]
    format: Format,
    /// Write it as a page, "The published tables, on your machine", into this file instead
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Show every column, even if the terminal is too narrow
    #[arg(long)]
    wide: bool,
}

/// Every name with `ref:`, for completions; without it they are taken, too.
fn name_parser() -> PossibleValuesParser {
    let values = replay::names()
        .into_iter()
        .map(|name| PossibleValue::new(format!("ref:{name}")).alias(name));
    PossibleValuesParser::new(values)
}

/// Replays the tables and prints them.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let tables = replay::tables_of(&args.name);
    if tables.is_empty() {
        return usage(format!("there is no published table “{}”", args.name));
    }
    let (own, done) = if args.measure {
        measured(&tables)?
    } else {
        (kept(args.run.as_ref(), &tables)?, Done::Well)
    };
    let found = replay::replay(&args.name, &tables, &own);
    match &args.output {
        Some(path) => output::page(
            path,
            &html::page(&shown::html::content(&found)),
            &format!("The replay of {}", args.name),
        )?,
        None => output::show(&found, args.format, args.wide)?,
    }
    Ok(done)
}

/// The run that was named; else those of the archive that have rows of the tables, the latest first.
fn kept(wanted: Option<&OsString>, tables: &[&'static str]) -> anyhow::Result<Vec<Run>> {
    if let Some(wanted) = wanted {
        return Ok(vec![runs::load(wanted)?]);
    }
    let entries = Archive::open(None)?.list()?;
    let paths = entries
        .into_iter()
        .filter(|e| e.head.is_ok())
        .map(|e| e.path)
        .take(MOST_RUNS);
    // A run that cannot be read is no reason to show no table; `archive verify` tells of it.
    Ok(replay::chosen(
        tables,
        paths,
        |path| lean::figures_from_path(path).ok(),
        |path| load::from_path(path).ok(),
    ))
}

/// The rows of the tables, measured now, as far as they need nothing special; each recipe once.
fn measured(tables: &[&'static str]) -> anyhow::Result<(Vec<Run>, Done)> {
    let mut recipes: Vec<&Recipe> = Vec::new();
    for recipe in tables.iter().filter_map(|t| replay::recipe_of(t)) {
        if !recipe.fits {
            say(&format!(
                "{} is not measured now: {}",
                recipe.table,
                recipe.command()
            ));
        } else if !recipes
            .iter()
            .any(|known| known.command() == recipe.command())
        {
            recipes.push(recipe);
        }
    }
    let (mut own, mut done) = (Vec::new(), Done::Well);
    for recipe in recipes {
        let (run, how) = super::run::measure(recipe.names, recipe.set, recipe.command())?;
        own.push(run);
        if how != Done::Well {
            done = how;
            break;
        }
    }
    Ok((own, done))
}
