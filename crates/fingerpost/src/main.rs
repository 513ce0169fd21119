//! Fingerpost measures a computer from one system call up to a loaded server, puts two systems side by side, and points
//! at the layer that makes one of them slow.
#![forbid(unsafe_code)]

mod ab;
mod cli;
mod commands;
mod completion;
mod conduct;
mod cpus;
mod defect;
mod definitions;
mod executor;
mod exit;
mod foreign;
mod inner;
mod next;
mod output;
mod plan;
mod profile;
mod progress;
mod recorder;
mod runs;
mod settle;
mod timings;
mod turns;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::CommandFactory;

fn main() -> ExitCode {
    defect::ends_with(defect::STATUS);
    // A probe process is this same binary. It must reach its loop with as little done, and as little memory touched, as
    // possible.
    if let Some(status) = fingerpost_probes::child::dispatch() {
        return status;
    }
    // So is a load generator.
    if let Some(status) = fingerpost_workloads::workers::dispatch() {
        return status;
    }
    // So are those that open and read what a watched service made.
    if let Some(status) = fingerpost_observe::stacks::dispatch() {
        return status;
    }
    // And so is the process that undoes what a killed run changed.
    if let Some(status) = fingerpost_undo::guardian::dispatch() {
        return status;
    }
    // A shell asks what the word at the cursor may be.
    completion::answer(cli::Cli::command);
    for place in fingerpost_sys::search::harden() {
        let shown = place.display().to_string();
        exit::say(&format!(
            "{shown} in PATH is not searched for programs: other users can change what lies there"
        ));
    }
    for name in fingerpost_sys::search::harden_libraries() {
        exit::say(&format!(
            "a part of {name} is left out for the programs that are started: it is relative, or other users can change \
             what lies there"
        ));
    }
    survive_file_size();
    let_nobody_write();
    let arguments = match cli::parse() {
        Ok(arguments) => arguments,
        Err(status) => return status,
    };
    let next = next::sentence(&arguments.command);
    let result = commands::dispatch(arguments);
    if let Some(sentence) = next.filter(|_| matches!(result, Ok(exit::Done::Well))) {
        next::tell(&sentence);
    }
    exit::report(result)
}

/// Has a write beyond the limit on file sizes fail with an error, which is told, instead of ending the process without
/// a word. A handler that does nothing, unlike an ignored signal, is not inherited by the programs that this process
/// starts.
fn survive_file_size() {
    // Without the handler all is as it was before.
    let _ = signal_hook::flag::register(libc::SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Has nothing that this process and those that it starts make be open to everybody for writing, whatever the umask
/// was: who is to measure works in directories whose names can be seen in the arguments of its workers.
fn let_nobody_write() {
    use rustix::fs::Mode;
    use rustix::process::umask;
    // It can only be told by setting it; there is no other thread yet.
    let given = umask(Mode::from_raw_mode(0o077));
    umask(given | Mode::WOTH);
}
