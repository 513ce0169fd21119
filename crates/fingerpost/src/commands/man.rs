//! `fingerpost man`: the manual pages, made from the same declarations as `--help`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;
use fingerpost_record::archive::write_public;
use fingerpost_record::suggest;

use crate::exit::usage;
use crate::output;

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fingerpost man explain | man -l -
  fingerpost man archive list | man -l -
  fingerpost man --dir ~/.local/share/man/man1")]
pub struct Args {
    /// Print this command's page instead of the whole tool's
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Prints one page, or writes all, of the whole command line.
pub fn run(args: Args, top: Command) -> anyhow::Result<()> {
    // `help` of every command, with one more below it for each of its own, would be most pages and say nothing.
    let mut top = top.disable_help_subcommand(true);
    top.build();
    if let Some(dir) = args.dir {
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        return write_all(&top, &dir);
    }
    let mut page = Vec::new();
    Man::new(find(&top, &args.command)?).render(&mut page)?;
    output::write(|out| out.write_all(&page))
}

/// Writes the page of a command and those below it. What lies under their names may be a link of another user's.
fn write_all(command: &Command, dir: &Path) -> anyhow::Result<()> {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        write_all(below, dir)?;
    }
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    Ok(write_public(&dir.join(man.get_filename()), &page)?)
}

/// The command that the words name, called as its page is (`fingerpost-archive-list`).
fn find(top: &Command, words: &[String]) -> anyhow::Result<Command> {
    let mut found = top;
    for word in words {
        let Some(sub) = found.find_subcommand(word) else {
            let near =
                suggest::or_else(word, found.get_subcommands().map(Command::get_name), || {
                    "--help lists them".to_owned()
                });
            return usage(format!(
                "“{}” has no command “{word}”; {near}",
                found.get_name()
            ));
        };
        found = sub;
    }
    let name = found
        .get_display_name()
        .unwrap_or(found.get_name())
        .to_owned();
    Ok(found.clone().name(name))
}
