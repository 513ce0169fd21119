//! `fingerpost completions`: what a shell needs to complete our words.

use crate::completion::{self, VARIABLE};
use crate::output;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "bash: fingerpost completions bash > ~/.local/share/bash-completion/completions/fingerpost
zsh:  fingerpost completions zsh > a directory of $fpath, as _fingerpost
fish: fingerpost completions fish > ~/.config/fish/completions/fingerpost.fish

Names of runs, labs, probes, causes and settings with their values are completed, too: the script asks fingerpost \
for them. Open a new shell after it was written."
)]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL", value_parser = completion::NAMES)]
    shell: String,
}

/// Prints the shell's script.
pub fn run(args: Args) -> anyhow::Result<()> {
    let (name, mut script) = (args.shell, Vec::new());
    let Some(shell) = completion::shell(&name) else {
        anyhow::bail!("there are no completions for {name}")
    };
    shell.write_registration(
        VARIABLE,
        "fingerpost",
        "fingerpost",
        "fingerpost",
        &mut script,
    )?;
    output::write(|out| out.write_all(&script))
}
