//! One file per command: its arguments, and what it does.

pub mod ab;
pub mod archive;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod explain;
pub mod fleet;
pub mod list;
pub mod load;
pub mod man;
pub mod prove;
pub mod replay;
pub mod report;
pub mod run;
pub mod serve;
mod serve_guard;
pub mod show;
pub mod site;
mod site_guard;
mod threshold;
pub mod zerofill;

use clap::CommandFactory;

use crate::cli::{Cli, Command};
use crate::exit::Done;

/// Runs the command that was asked for.
pub fn dispatch(cli: Cli) -> anyhow::Result<Done> {
    let well = |()| Done::Well;
    match cli.command {
        Command::Run(args) => run::run(args),
        Command::List(args) => list::run(args).map(well),
        Command::Doctor(args) => doctor::run(args).map(well),
        Command::Show(args) => show::run(args).map(well),
        Command::Compare(args) => compare::run(args),
        Command::Site(args) => site::run(args),
        Command::Ab(args) => ab::run(args),
        Command::Prove(args) => prove::run(args),
        Command::Zerofill(args) => zerofill::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Report(args) => report::run(args).map(well),
        Command::Serve(args) => serve::run(args),
        Command::Archive(args) => archive::run(args).map(well),
        Command::Completions(args) => completions::run(args).map(well),
        Command::Man(args) => man::run(args, Cli::command()).map(well),
        Command::Explain(args) => explain::run(args),
        Command::Load(args) => load::run(args),
        Command::Fleet(args) => fleet::run(args),
    }
}
