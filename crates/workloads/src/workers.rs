//! Every worker process. [`dispatch`] stands at the beginning of `main`, before arguments are parsed.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::worker::{Ended, MARK, refusal, say};

/// What a worker does with the arguments that follow its name.
type Main = fn(Vec<OsString>) -> Ended;

/// Every worker that answers in lines, with its name. Why it ended early is such a line.
static WORKERS: &[(&str, Main)] = &[
    (crate::database::worker::NAME, crate::database::worker::main),
    (crate::database::guard::NAME, crate::database::guard::main),
    (crate::desktop::worker::NAME, crate::desktop::worker::main),
    (crate::planted::client::NAME, crate::planted::client::main),
    (crate::planted::backend::NAME, crate::planted::backend::main),
    (
        crate::rehearsal::server::NAME,
        crate::rehearsal::server::main,
    ),
    (
        crate::rehearsal::client::NAME,
        crate::rehearsal::client::main,
    ),
    (
        crate::rehearsal::truth::server::NAME,
        crate::rehearsal::truth::server::main,
    ),
    (
        crate::rehearsal::truth::peer::NAME,
        crate::rehearsal::truth::peer::main,
    ),
    (
        crate::rehearsal::neighbour::NAME,
        crate::rehearsal::neighbour::main,
    ),
    (crate::web::generator::NAME, crate::web::generator::main),
    (crate::site::making::NAME, crate::site::making::main),
    (crate::site::reader::NAME, crate::site::reader::main),
];

/// Every server, with its name and what it calls itself in its log, where it says why it ended early.
static SERVERS: &[(&str, Main, &str)] = &[
    (
        crate::web::static_server::NAME,
        crate::web::static_server::main,
        "the embedded web server",
    ),
    (
        crate::site::served::NAME,
        crate::site::served::main,
        "the site's server",
    ),
];

/// Runs a worker when this process was started as one; `None` when it is an ordinary invocation.
pub fn dispatch() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != MARK {
        return None;
    }
    let name = args.next().unwrap_or_default();
    let worker = WORKERS
        .iter()
        .find(|(known, _)| name == *known)
        .map(|(_, run)| (run, None));
    let server = SERVERS
        .iter()
        .find(|(known, ..)| name == *known)
        .map(|(_, run, called)| (run, Some(called)));
    let Some((run, log)) = worker.or(server) else {
        eprintln!("{} is not a worker of this program", name.display());
        return Some(ExitCode::from(2));
    };
    offer_to_kernel();
    let Err(why) = run(args.collect()) else {
        return Some(ExitCode::SUCCESS);
    };
    match log {
        Some(called) => eprintln!("{called}: {why}"),
        // Nobody who could be told is left when the output is closed.
        None => drop(say(&refusal(why))),
    }
    Some(ExitCode::FAILURE)
}

/// Where memory runs out, a worker costs one row and the conducting process all of them; other programs of the host
/// nothing of ours is worth. So the kernel is to kill a worker first.
fn offer_to_kernel() {
    // Without /proc the kernel chooses by size, as ever.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
}
