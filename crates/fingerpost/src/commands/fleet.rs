//! `fingerpost fleet`: many hosts, through the engine that the site already runs.

mod against;
mod conducting;
mod engine;
mod export;
mod gather;
mod given;
mod kubernetes;
mod node;
mod pool;
mod run;
mod show;
mod sweeps;

use crate::exit::Done;

/// Arguments of `fleet`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fingerpost fleet run --slurm -w 'n[001-512]' -o monday -- --profile screen
  fingerpost fleet run --ssh -w 'web[01-40]' -o monday -- --profile quick
  fingerpost fleet show monday                which hosts are slow, and where
  fingerpost fleet show monday n017           everything about one of them
  fingerpost fleet show monday -o monday.html as a report, with a picture
  fingerpost fleet compare monday tuesday     before and after a roll-out
  fingerpost fleet drain monday               scontrol lines for the slow ones
  fingerpost fleet check --against monday     this host beside its peers")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

impl Args {
    /// The next step; `run` and `gather` say theirs themselves, the others are an end, or are read by a program.
    pub fn next(&self) -> Option<String> {
        if let Command::Show(args) = &self.command {
            args.next()
        } else {
            None
        }
    }
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Measure many hosts, confirm the suspects, and show which are slow
    Run(run::Args),
    /// Print the Slurm batch script or the Kubernetes manifest that would be submitted, to read and to change
    Script(sweeps::ScriptArgs),
    /// Make a sweep of the records in a directory: run files, other sweeps' records, what a script's jobs left
    Gather(gather::GatherArgs),
    /// Peer groups, slow hosts and their layer; with HOST, everything about that one
    Show(show::Args),
    /// Two sweeps: what changed on hosts that got a roll-out, compared with those that did not
    Compare(against::CompareArgs),
    /// One host in several sweeps: what each says of it, in the order of time
    History(against::HistoryArgs),
    /// Measure this host and compare it with its peers in a sweep: one line; status 0: like them, 1: slow, 3: not known
    Check(against::CheckArgs),
    /// All figures of a sweep as CSV or Parquet, a row each
    Export(export::Args),
    /// Print the `scontrol` lines that drain the slow nodes; only confirmed ones
    Drain(sweeps::DrainArgs),
    /// What a node runs: measures and prints its record in lines
    #[command(hide = true)]
    Node(node::Args),
}

/// Does what was asked for.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let well = |()| Done::Well;
    match args.command {
        Command::Run(args) => run::run(args),
        Command::Script(args) => sweeps::script(args).map(well),
        Command::Gather(args) => gather::gather(args),
        Command::Show(args) => show::run(args).map(well),
        Command::Compare(args) => against::compare(args).map(well),
        Command::History(args) => against::history(args).map(well),
        Command::Check(args) => against::check(args),
        Command::Export(args) => export::run(args),
        Command::Drain(args) => sweeps::drain(args),
        Command::Node(args) => node::run(args),
    }
}
