//! zsh: `compadd` quotes what it is given, as the word at the cursor needs it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::env::EnvCompleter;

use super::words::Quotes;

/// The function that zsh calls. Words are passed as they were typed, and nothing of an answer is evaluated: `compadd`
/// without `-Q` quotes the words, and shows those of `-d` as they are. Where nothing is offered for a word that begins
/// with `~`, zsh completes files.
const SCRIPT: &str = r#"#compdef BIN
_NAME() {
    emulate -L zsh
    local typed="${QIPREFIX}${PREFIX}" line value
    local -a lines final finals open opens
    lines=("${(@f)$(VAR=zsh COMPLETER -- "${(@)words[1,CURRENT-1]}" "$typed" 2> /dev/null)}")
    for line in "${lines[@]}"; do
        value="${line%%$'\t'*}"
        [[ -n $value ]] || continue
        [[ $line == *$'\t'* ]] && line="$value  -- ${line#*$'\t'}"
        if [[ $value == *[=/:.] ]]; then
            open+=("$value") opens+=("$line")
        else
            final+=("$value") finals+=("$line")
        fi
    done
    if (( $#final + $#open == 0 )); then
        [[ $typed == \~* ]] && _files
        return
    fi
    (( $#open )) && compadd -V values -l -d opens -S '' -a -- open
    (( $#final )) && compadd -V values -l -d finals -a -- final
    return 0
}

compdef _NAME BIN
"#;

/// The adapter.
pub struct Zsh;

impl EnvCompleter for Zsh {
    fn name(&self) -> &'static str {
        "zsh"
    }

    fn is(&self, name: &str) -> bool {
        name == "zsh"
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
        super::answers::write_lines(command, args, Quotes::Posix, dir, buf)
    }
}
