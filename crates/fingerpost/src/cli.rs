//! The command line as data. Parsing does no work; every command resolves its own arguments.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use fingerpost_record::guard::{Guard, Kind};
use fingerpost_record::secret;
use fingerpost_report::wrap;

use crate::exit::words;
use crate::{commands, output};

mod mistake;

/// Measures a computer from one system call up to a loaded server, compares two systems, and names the layer that makes
/// one slow.
#[derive(Debug, Parser)]
#[command(
    name = "fingerpost",
    version,
    propagate_version = true,
    after_help = "\
Examples:
  fingerpost run --profile quick              measure this machine: a minute
  fingerpost compare latest~1                 the run before and the latest
  fingerpost explain --port 3306              what a running service waits for
  fingerpost serve                            look at all of it in a browser"
)]
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
    /// List what can run here, and what is missing for the rest
    List(commands::list::Args),
    /// Compare two runs: what is slower, what is faster, and the cause
    Compare(commands::compare::Args),
    /// Show where the time of a server or of a command went, and the causes
    Explain(commands::explain::Args),
    /// A run's figures as a table, JSON, CSV or Markdown
    Show(commands::show::Args),
    /// A run, or two compared, as one HTML file
    Report(commands::report::Args),
    /// The web page, on this machine alone: look through the archive, compare, measure, calculate
    Serve(commands::serve::Args),
    /// Compare two settings of this host, measured in turns: the most precise comparison
    Ab(commands::ab::Args),
    /// Check whether this machine is quiet and set up for measuring; clean up after a killed run
    Doctor(commands::doctor::Args),
    /// Plant known causes on this machine and check that the verdict names them
    Prove(commands::prove::Args),
    /// The zero-fill calculator: four timings taken apart
    Zerofill(commands::zerofill::Args),
    /// Compare this machine with a published table, and check whether its author's conclusions hold here
    Replay(commands::replay::Args),
    /// The runs that are kept: list, label, annotate, import, export, remove, verify
    Archive(commands::archive::Args),
    /// Load a server from a client machine; `explain --client` joins its record with the server's
    Load(commands::load::Args),
    /// Many hosts, by Slurm, ssh or Kubernetes: which are slower than others of their kind, and in which layer
    Fleet(commands::fleet::Args),
    /// The object database: a web site in one file
    Site(commands::site::Args),
    /// Completions for a shell
    Completions(commands::completions::Args),
    /// Manual pages
    Man(commands::man::Args),
}

/// The arguments of this process, or the status with which it ends: help and version are shown and done, and what is
/// wrong with the arguments is said, without a secret of theirs and with nothing that could act on the terminal.
pub fn parse() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| {
        let error = mistake::told(error, &words().skip(1).collect::<Vec<_>>(), Cli::command);
        let wrong = error.use_stderr();
        let colored = if wrong {
            io::stderr().is_terminal()
        } else {
            io::stdout().is_terminal()
        };
        let plain = error.render().to_string();
        let (text, kind) = match secret::cut(&plain) {
            Cow::Borrowed(_) if colored => (error.render().ansi().to_string(), Kind::Colored),
            without_secrets => (without_secrets.into_owned(), Kind::Text),
        };
        let mut out = Guard::new(
            if wrong {
                Box::new(io::stderr()) as Box<dyn Write>
            } else {
                Box::new(io::stdout())
            },
            kind,
        );
        // clap wraps its help, and not its errors.
        let help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        let width = if wrong && !help {
            output::error_width()
        } else {
            None
        };
        // Colours take no room: whether a line fits is asked of it without them.
        let line = |(line, plain): (&str, &str)| {
            let shown = if wrap::fits(plain, width) {
                line.to_owned()
            } else {
                wrap::indented(line, 4, width)
            };
            shown + "\n"
        };
        let text: String = text.lines().zip(plain.lines()).map(line).collect();
        // That nobody reads it changes nothing.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_examples_that_fit_a_line() {
        let cli = Cli::command();
        for command in cli.get_subcommands().chain([&cli]) {
            let name = command.get_name();
            let text = command
                .get_after_long_help()
                .or(command.get_after_help())
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(text.contains("fingerpost "), "{name} has no example");
            let long: Vec<&str> = text
                .lines()
                .filter(|line| line.starts_with("  ") && line.chars().count() > 78)
                .collect();
            assert!(long.is_empty(), "{name}: {long:?}");
        }
    }
}
