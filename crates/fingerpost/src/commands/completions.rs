//! `fingerpost completions`: what a shell needs to complete our words.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Done;
use crate::output;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the shell's script.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "fingerpost", &mut script);
    output::write(|out| out.write_all(&script))?;
    Ok(Done::Well)
}
