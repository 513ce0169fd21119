//! The web workload end to end: real servers, servers that misbehave, and what is left after a kill.

mod after_kill;
mod misbehaving;
mod servers;
mod support;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    // Our own workers are this program started again, as they are the shipped binary.
    if let Some(status) = fingerpost_workloads::workers::dispatch() {
        return status;
    }
    if std::env::args().nth(1).as_deref() == Some(after_kill::HOLD) {
        return after_kill::hold();
    }
    let mut arguments = Arguments::from_args();
    // They wait more than they load, and none asks for a speed.
    arguments.test_threads = Some(4);
    let tests: Vec<Trial> = [servers::tests(), misbehaving::tests(), after_kill::tests()]
        .into_iter()
        .flatten()
        .collect();
    libtest_mimic::run(&arguments, tests).exit_code()
}
