//! A shell that can ask: its script, and how its questions are answered.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::env::EnvCompleter;

use super::answers::filled;

/// Writes what may come next, given the command, the words as the shell passes them, and the directory that it is in.
type Answer = fn(&mut Command, Vec<OsString>, Option<&Path>, &mut dyn Write) -> io::Result<()>;

/// A shell.
pub struct Shell {
    /// Its name.
    pub name: &'static str,
    /// What it evaluates; `NAME`, `BIN`, `COMPLETER` and `VAR` stand for words that are put in.
    pub script: &'static str,
    /// How it is answered.
    pub answer: Answer,
}

impl EnvCompleter for Shell {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is(&self, name: &str) -> bool {
        name == self.name
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        buf.write_all(filled(self.script, var, name, bin, completer).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        args: Vec<OsString>,
        dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        (self.answer)(command, args, dir, buf)
    }
}
