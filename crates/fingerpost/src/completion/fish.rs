//! fish: it quotes what it is offered.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::env::EnvCompleter;

use super::words::Quotes;

/// The function that fish calls: the words before the cursor without their quotes, the one at the cursor as it was
/// typed. Where nothing is offered for a word that begins with `~`, fish completes files.
const SCRIPT: &str = r#"function __NAME_complete
    set -l typed (commandline --current-token --cut-at-cursor)
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    if string match --quiet '~*' -- "$typed"
        __fish_complete_path "$typed"
    else
        VAR=fish COMPLETER -- $words "$typed" 2> /dev/null
    end
end
complete --keep-order --exclusive --command BIN --arguments '(__NAME_complete)'
"#;

/// The adapter.
pub struct Fish;

impl EnvCompleter for Fish {
    fn name(&self) -> &'static str {
        "fish"
    }

    fn is(&self, name: &str) -> bool {
        name == "fish"
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        buf.write_all(super::answers::filled(SCRIPT, var, name, bin, completer).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        args: Vec<OsString>,
        dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        super::answers::write_lines(command, args, Quotes::Fish, dir, buf)
    }
}
