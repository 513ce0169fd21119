//! Exit statuses, and the one place where an error becomes a line on standard error.

use std::process::ExitCode;

use fingerpost_record::secret;
use fingerpost_report::wrap;

use crate::output;

/// What a command ends with when nothing went wrong on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// All was done.
    Well,
    /// `--fail-on` was met.
    FailOn,
    /// Bad input, which has been told.
    BadInput,
    /// A measurement failed; the rest was done.
    MeasurementFailed,
}

/// An error that the user can mend: wrong words, a bad file. Exit status 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

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

/// Prints an error as one sentence and chooses the exit status: 0 done, 1 `--fail-on` met, 2 usage or bad input, 3 a measurement failed.
pub fn report(result: anyhow::Result<Done>) -> ExitCode {
    match result {
        Ok(Done::Well) => ExitCode::SUCCESS,
        Ok(Done::FailOn) => ExitCode::from(1),
        Ok(Done::BadInput) => ExitCode::from(2),
        Ok(Done::MeasurementFailed) => ExitCode::from(3),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{error:#}"));
            ExitCode::from(if is_bad_input(&error) { 2 } else { 3 })
        }
    }
}

/// Says a sentence on standard error. What it quotes may come from a hostile file.
pub fn say(sentence: &str) {
    use std::io::Write;
    // A sentence may quote the command line. A closed standard error is no reason to stop.
    let told = format!("fingerpost: {}", fingerpost_record::text::clean(&secret::cut(sentence)));
    let _ = writeln!(std::io::stderr(), "{}", wrap::indented(&told, 4, output::error_width()));
}

fn is_bad_input(error: &anyhow::Error) -> bool {
    use fingerpost_record::archive::ArchiveError;
    use fingerpost_record::load::LoadError;
    error.chain().any(|e| e.is::<Usage>() || e.is::<LoadError>() || e.is::<ArchiveError>())
}

/// A reader that has seen enough (`| head`) is no error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|e| e.downcast_ref::<std::io::Error>()).any(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
