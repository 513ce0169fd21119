//! fish: it quotes what it is offered.

use super::answers::write_lines;
use super::shell::Shell;
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

/// How it is asked and answered.
pub const FISH: Shell = Shell {
    name: "fish",
    script: SCRIPT,
    answer: |command, args, dir, buf| write_lines(command, args, Quotes::Fish, dir, buf),
};
