//! elvish: it quotes what it is offered, and gives words without their quotes.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::env::EnvCompleter;

/// The function that elvish calls.
const SCRIPT: &str = r#"set edit:completion:arg-completer[BIN] = {|@words|
    e:env VAR=elvish COMPLETER -- $@words | from-lines
}
"#;

/// The adapter.
pub struct Elvish;

impl EnvCompleter for Elvish {
    fn name(&self) -> &'static str {
        "elvish"
    }

    fn is(&self, name: &str) -> bool {
        name == "elvish"
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
        let last = args.len().saturating_sub(1);
        super::answers::offered(command, args, last, dir)?
            .iter()
            .try_for_each(|(value, _)| writeln!(buf, "{value}"))
    }
}
