//! elvish: it quotes what it is offered, and gives words without their quotes.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;

use super::shell::Shell;

/// The function that elvish calls.
const SCRIPT: &str = r#"set edit:completion:arg-completer[BIN] = {|@words|
    e:env VAR=elvish COMPLETER -- $@words | from-lines
}
"#;

/// How it is asked and answered.
pub const ELVISH: Shell = Shell {
    name: "elvish",
    script: SCRIPT,
    answer,
};

fn answer(
    command: &mut Command,
    args: Vec<OsString>,
    dir: Option<&Path>,
    buf: &mut dyn Write,
) -> io::Result<()> {
    let last = args.len().saturating_sub(1);
    super::answers::offered(command, args, last, dir)?
        .iter()
        .try_for_each(|(value, _)| writeln!(buf, "{value}"))
}
