//! The command line as data. Parsing does no work; every command resolves its own arguments.

use clap::{Parser, Subcommand};

use crate::commands;

/// Measures a computer from one system call up to a loaded server, compares two systems, and names the layer that makes one slow.
#[derive(Debug, Parser)]
#[command(name = "fingerpost", version, propagate_version = true, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands. Each one's arguments are declared beside its code.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure this machine: labs, probes, or every primitive
    Run(commands::run::Args),
    /// What can run here, and what each missing need is
    List(commands::list::Args),
    /// Is this machine quiet and set up for measuring? Cleans up after a killed run, too
    Doctor(commands::doctor::Args),
    /// Two runs side by side: what differs, what it says, and the cause
    Compare(commands::compare::Args),
    /// Two settings of this host, paired within rounds: the sharpest comparison there is
    Ab(commands::ab::Args),
    /// Plants known causes on this machine and checks that the verdict names them
    Prove(commands::prove::Args),
    /// A run's figures as a table, JSON, CSV or Markdown
    Show(commands::show::Args),
    /// The object database: a web site in one file
    Site(commands::site::Args),
    /// The zero-fill calculator: four timings taken apart
    Zerofill(commands::zerofill::Args),
    /// A run, or two compared, as one HTML file
    Report(commands::report::Args),
    /// The web page, on this machine alone: look through the archive, compare, measure, calculate
    Serve(commands::serve::Args),
    /// The runs that are kept: list, import, export, remove, verify
    Archive(commands::archive::Args),
    /// Completions for a shell
    Completions(commands::completions::Args),
    /// Manual pages
    Man(commands::man::Args),
    /// Where the time of a workload, or of any command, went, and who is to blame
    Explain(commands::explain::Args),
}
