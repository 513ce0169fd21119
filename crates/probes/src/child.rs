//! The probe process: dispatched before anything else runs, so that fork, exec and fault figures are those of a small
//! process.

use std::io::Write;
use std::process::ExitCode;

use crate::protocol::{MARK, Request};
use crate::session::{Session, Stop};

/// Runs a probe when this process was started as one; `None` when it is an ordinary invocation.
pub fn dispatch() -> Option<ExitCode> {
    let mut args = std::env::args().skip(1);
    if args.next()? != MARK {
        return None;
    }
    // SAFETY: prctl takes plain numbers. A probe must not outlive the run that started it.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let answer = match Request::from_args(args) {
        Some(request) => run(request),
        None => "fail the request to the probe process is not well-formed\n".to_owned(),
    };
    let written = std::io::stdout().write_all(answer.as_bytes());
    Some(if written.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn run(request: Request) -> String {
    let Some(probe) = crate::find(&request.probe) else {
        return format!("fail there is no probe “{}”\n", request.probe);
    };
    let mut session = Session::new(request);
    let result = session.pin().and_then(|()| (probe.run)(&mut session));
    match result {
        Ok(()) => session.answer(),
        Err(Stop::Skip(sentence)) => format!("skip {}\n", one_line(&sentence)),
        Err(Stop::Fail(sentence)) => format!("fail {}\n", one_line(&sentence)),
    }
}

fn one_line(sentence: &str) -> String {
    sentence.replace(['\n', '\r'], " ")
}
