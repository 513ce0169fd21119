//! What the word at the cursor may be: commands and options by clap, and names that only this machine knows.
//!
//! A shell's script (`fingerpost completions SHELL`) runs the program with [`VARIABLE`] set. Nothing is measured, kept
//! or changed then, and what cannot be read is not offered.

use std::ffi::OsStr;

use clap::{Arg, Command, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, EnvCompleter, Shells};
use fingerpost_compare::counterparts::PUBLISHED;
use fingerpost_compare::references;
use fingerpost_diagnose::causes;
use fingerpost_labs::prove;
use fingerpost_record::archive::Archive;

mod answers;
mod bash;
mod elvish;
mod fish;
mod paths;
mod shell;
mod values;
mod words;
mod zsh;

use answers::beginning;

/// The variable of the environment by which a shell asks.
pub const VARIABLE: &str = "FINGERPOST_COMPLETE";
/// Runs that are offered, the newest.
const MOST_RUNS: usize = 100;

/// Commands of `archive` that take runs of the archive alone: no published system, and no file.
const OF_THE_ARCHIVE: [&str; 4] = ["export", "label", "note", "remove"];

/// The shells that can ask. Their scripts are ours: no shell may evaluate a word of an answer, which can be a file's name
/// that somebody else chose.
const SHELLS: [&dyn EnvCompleter; 4] = [&bash::BASH, &elvish::ELVISH, &fish::FISH, &zsh::ZSH];

/// Their names.
pub const NAMES: [&str; 4] = ["bash", "elvish", "fish", "zsh"];

/// Answers a shell and ends, where one asks; `command` is the whole command line.
pub fn answer(command: impl Fn() -> Command) {
    CompleteEnv::with_factory(|| with_names(command()))
        .var(VARIABLE)
        .shells(Shells(&SHELLS))
        .complete();
}

/// The shell's adapter, by its name.
pub fn shell(name: &str) -> Option<&'static dyn EnvCompleter> {
    SHELLS.into_iter().find(|shell| shell.is(name))
}

/// The command with completers of the values that have names here.
fn with_names(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let subcommands: Vec<String> = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect();
    let command = command.mut_args(|arg| named(arg, &name));
    subcommands.into_iter().fold(command, |command, sub| {
        command.mut_subcommand(sub, with_names)
    })
}

/// An argument of this command with the completer of its values.
fn named(arg: Arg, command: &str) -> Arg {
    let value = arg
        .get_value_names()
        .and_then(|names| names.first())
        .map(ToString::to_string)
        .unwrap_or_default();
    let completer: fn(&OsStr) -> Vec<CompletionCandidate> = match value.as_str() {
        "RUN" if OF_THE_ARCHIVE.contains(&command) => {
            |word| beginning(word, latest().into_iter().chain(kept()))
        }
        "RUN" | "BASE" | "NEW" => runs,
        "NAME" if command == "list" => described,
        "NAME" if ["run", "ab"].contains(&command) => |word| beginning(word, measured()),
        "KEY=VALUE" => values::complete,
        // Causes that can be planted, and controls.
        "CAUSE" => |word| {
            beginning(
                word,
                prove::PLANTS
                    .iter()
                    .map(|plant| (plant.name, String::new())),
            )
        },
        _ => match arg.get_value_hint() {
            ValueHint::AnyPath => paths::any,
            ValueHint::FilePath => paths::files,
            ValueHint::DirPath => paths::dirs,
            _ => return arg,
        },
    };
    arg.add(ArgValueCompleter::new(completer))
}

/// Runs of the archive, the newest first, reference systems, and files.
fn runs(word: &OsStr) -> Vec<CompletionCandidate> {
    if word
        .to_str()
        .is_none_or(|w| w.starts_with('.') || w.contains('/'))
    {
        return paths::files(word);
    }
    let published = references::names().into_iter().map(|name| {
        (
            format!("ref:{}", name.trim_start_matches("ref:")),
            String::new(),
        )
    });
    beginning(word, latest().into_iter().chain(published).chain(kept()))
}

/// The words for the newest runs.
fn latest() -> [(String, String); 2] {
    [
        ("latest", "the newest run"),
        ("latest~1", "the one before it"),
    ]
    .map(|(a, b)| (a.to_owned(), b.to_owned()))
}

/// The ids of the archive's runs, the newest first.
fn kept() -> impl Iterator<Item = (String, String)> {
    let stems = || {
        let files = Archive::open(None).ok()?.files().ok()?;
        let mut stems: Vec<String> = files
            .iter()
            .filter_map(|f| Some(f.file_stem()?.to_str()?.to_owned()))
            .collect();
        stems.sort_unstable_by(|a, b| b.cmp(a));
        stems.truncate(MOST_RUNS);
        Some(stems)
    };
    stems()
        .unwrap_or_default()
        .into_iter()
        .map(|id| (id, String::new()))
}

/// Labs and probes, with what they are.
fn measured() -> impl Iterator<Item = (&'static str, String)> {
    let labs = fingerpost_labs::REGISTRY
        .iter()
        .map(|lab| (lab.name, lab.summary.to_owned()));
    let probes = fingerpost_probes::all().map(|probe| (probe.name, probe.summary.to_owned()));
    labs.chain(probes)
}

/// What `list` describes: causes, too, and figures that only others publish.
fn described(word: &OsStr) -> Vec<CompletionCandidate> {
    let causes = causes::all().map(|cause| (cause.name, cause.words.label.to_owned()));
    let published = PUBLISHED
        .iter()
        .map(|figure| (figure.name, figure.summary.to_owned()));
    beginning(word, measured().chain(causes).chain(published))
}
