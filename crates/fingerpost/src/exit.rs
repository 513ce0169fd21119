//! Exit statuses, and the one place where an error becomes a line on standard error.

use std::process::ExitCode;

use fingerpost_record::secret;
use fingerpost_report::wrap;

use crate::output;

/// What a command ends with when nothing went wrong on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// All was done.
    Well = 0,
    /// `--fail-on` was met.
    FailOn = 1,
    /// Bad input, which has been told.
    BadInput = 2,
    /// A measurement failed; the rest was done.
    MeasurementFailed = 3,
}

/// An error that the user can mend: wrong words, a bad file. Exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// A usage error as the result of a command.
pub fn usage<T>(sentence: impl Into<String>) -> anyhow::Result<T> {
    Err(Usage(sentence.into()).into())
}

/// The words of the command line, as far as they are text.
pub fn words() -> impl Iterator<Item = String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned())
}

/// The command line as records keep it: without secrets.
pub fn command_line() -> Vec<String> {
    let words: Vec<String> = words().collect();
    secret::cut_words(words.iter().map(String::as_str))
}

/// Prints an error as one sentence and chooses the exit status: 0 done, 1 `--fail-on` met, 2 usage or bad input, 3 a
/// measurement failed.
pub fn report(result: anyhow::Result<Done>) -> ExitCode {
    match result {
        Ok(done) => ExitCode::from(done as u8),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say(&told(&error));
            ExitCode::from(if is_bad_input(&error) { 2 } else { 3 })
        }
    }
}

/// An error with what led to it, each once: many errors have what the system said in their own words. Its number is of
/// no use to a reader.
pub fn told(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(|part| without_number(&part.to_string()))
        .fold(String::new(), |told, part| match told.as_str() {
            "" => part,
            before if before.ends_with(&part) => told,
            _ => format!("{told}: {part}"),
        })
}

/// Without the system's number of an error, `(os error 2)`.
fn without_number(text: &str) -> String {
    const BEFORE: &str = " (os error ";
    let mut parts = text.split(BEFORE);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once(')') {
        Some((number, rest)) if number.chars().all(|c| c.is_ascii_digit()) => text + rest,
        _ => text + BEFORE + part,
    })
}

/// Says a sentence on standard error. What it quotes may come from a hostile file.
pub fn say(sentence: &str) {
    use std::io::Write;
    // A sentence may quote the command line. A closed standard error is no reason to stop.
    let told = format!(
        "fingerpost: {}",
        fingerpost_record::text::clean(&secret::cut(sentence))
    );
    let _ = writeln!(
        std::io::stderr(),
        "{}",
        wrap::indented(&told, 4, output::error_width())
    );
}

fn is_bad_input(error: &anyhow::Error) -> bool {
    use fingerpost_record::archive::ArchiveError;
    use fingerpost_record::load::LoadError;
    error
        .chain()
        .any(|e| e.is::<Usage>() || e.is::<LoadError>() || e.is::<ArchiveError>())
}

/// A reader that has seen enough (`| head`) is no error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|e| e.downcast_ref::<std::io::Error>())
        .any(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn what_the_system_said_is_told_once_and_without_its_number() {
        let missing = || std::fs::read("/no/such/file").unwrap_err();
        let error =
            fingerpost_record::archive::write_whole("/no/such/dir/x".as_ref(), b"").unwrap_err();
        assert_eq!(
            told(&error.into()),
            "cannot write /no/such/dir/x: No such file or directory"
        );
        let error = Err::<(), _>(missing())
            .context("cannot read it")
            .unwrap_err();
        assert_eq!(told(&error), "cannot read it: No such file or directory");
        assert_eq!(
            told(&anyhow::anyhow!("a (os error 2) b (os error x)")),
            "a b (os error x)"
        );
    }
}
