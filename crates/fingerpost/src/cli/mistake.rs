//! What the parser says of a mistyped word: the one name that it is near to. (clap's own measure takes many names for
//! alike that are not, and misses letters that were exchanged.)

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use fingerpost_record::suggest::nearest;

use crate::plan;

/// More possible values than these are no help in one line.
const MOST_VALUES: usize = 12;

/// The error with our suggestion in the place of the parser's. `words` are those of the command line, without the
/// program's name; `command` is the whole of what the parser takes.
pub fn told(mut error: Error, words: &[String], command: impl FnOnce() -> Command) -> Error {
    match error.kind() {
        ErrorKind::InvalidSubcommand => subcommand(&mut error, words, command()),
        ErrorKind::InvalidValue => value(&mut error),
        _ => {}
    }
    error
}

fn subcommand(error: &mut Error, words: &[String], mut command: Command) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let word = word.clone();
    command.build();
    let parent = words
        .iter()
        .take_while(|w| **w != word)
        .filter(|w| *w != "help")
        .fold(&command, |at, w| at.find_subcommand(w).unwrap_or(at));
    let names = parent.get_subcommands().map(Command::get_name);
    error.remove(ContextKind::SuggestedSubcommand);
    if let Some(name) = nearest(&word, names) {
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(vec![name.to_owned()]),
        );
    } else if plan::resolve(std::slice::from_ref(&word), &plan::Settings::new()).is_ok() {
        let hint = format!("to measure it, write 'fingerpost run {word}'");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![hint.into()]),
        );
    }
}

fn value(error: &mut Error) {
    let (Some(ContextValue::String(word)), Some(ContextValue::Strings(known))) = (
        error.get(ContextKind::InvalidValue),
        error.get(ContextKind::ValidValue),
    ) else {
        return;
    };
    let found = nearest_value(word, known);
    let many = known.len() > MOST_VALUES;
    error.remove(ContextKind::SuggestedValue);
    if let Some(name) = found {
        if many {
            error.remove(ContextKind::ValidValue);
        }
        error.insert(ContextKind::SuggestedValue, ContextValue::String(name));
    }
}

/// The value that was meant. What all values begin with (`ref:`) makes none of them alike.
fn nearest_value(word: &str, known: &[String]) -> Option<String> {
    let bare = |value: &str| value.strip_prefix("ref:").unwrap_or(value).to_owned();
    let names: Vec<String> = known.iter().map(|value| bare(value)).collect();
    let meant = nearest(&bare(word), names.iter().map(String::as_str))?;
    known.iter().find(|value| bare(value) == meant).cloned()
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::cli::Cli;

    fn says(words: &[&str]) -> String {
        let owned: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let error = Cli::try_parse_from(std::iter::once("fingerpost").chain(words.iter().copied()))
            .unwrap_err();
        told(error, &owned, Cli::command).render().to_string()
    }

    #[test]
    fn a_mistyped_command_is_told_the_one_that_was_meant() {
        for (words, meant) in [
            (&["rnu"][..], "'run'"),
            (&["shwo"], "'show'"),
            (&["copmare"], "'compare'"),
            (&["archive", "lst"], "'list'"),
            (&["archive", "remvoe"], "'remove'"),
            (&["help", "rnu"], "'run'"),
            (&["syscall.null"], "fingerpost run syscall.null"),
        ] {
            let text = says(words);
            assert!(
                text.contains("tip: ") && text.contains(meant),
                "{words:?}: {text}"
            );
        }
        assert!(!says(&["qqqqqq"]).contains("tip: "));
    }

    #[test]
    fn a_value_that_is_near_to_none_proposes_none() {
        assert!(says(&["replay", "ref:lmbnch"]).contains("'ref:lmbench'"));
        assert!(says(&["replay", "g5-2.7-darwim"]).contains("'ref:g5-2.7-darwin'"));
        assert!(!says(&["replay", "ref:nothing"]).contains("tip: "));
        assert!(says(&["show", "--format", "jsno"]).contains("'json'"));
    }
}
