//! One file per command: its arguments, and what it does.

pub mod doctor;
pub mod list;
pub mod run;
pub mod show;

use crate::cli::{Cli, Command};
use crate::exit::Done;

/// Runs the command that was asked for.
pub fn dispatch(cli: Cli) -> anyhow::Result<Done> {
    match cli.command {
        Command::Run(args) => run::run(args),
        Command::List(args) => list::run(args),
        Command::Doctor(args) => doctor::run(args),
    }
}
