//! zsh: `compadd` quotes what it is given, as the word at the cursor needs it.

use super::answers::write_lines;
use super::shell::Shell;
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

/// How it is asked and answered.
pub const ZSH: Shell = Shell {
    name: "zsh",
    script: SCRIPT,
    answer: |command, args, dir, buf| write_lines(command, args, Quotes::Posix, dir, buf),
};
