//! The page is served in a process of its own, which is started again when a panic ended it: a defect ends the answers that are being made,
//! not the page.
//!
//! That process is this program again with the same arguments, told by the name that it is started under.

use std::collections::VecDeque;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fingerpost_page::{Options, Page};
use fingerpost_sys::child;

use crate::exit::{Done, say};
use crate::{conduct, defect};

/// The name of the inner process.
const INSIDE: &str = "fingerpost-page-inside";
/// The inner process is started again so often within [`WITHIN`].
const STARTS: usize = 10;
const WITHIN: Duration = Duration::from_secs(60);
/// Between two looks at the inner process and at what signals set.
const TURN: Duration = Duration::from_millis(50);

/// Whether this is the inner process.
pub fn is_inside() -> bool {
    std::env::args_os().next().is_some_and(|name| name == INSIDE)
}

/// Serves, as the inner process.
pub fn serve(options: Options) -> anyhow::Result<Done> {
    defect::ends_with(defect::BROKE_OFF);
    let stop = conduct::stopped_by_signals()?;
    Page::taken_over().and_then(|page| page.serve(options, stop)).context("cannot serve the page")?;
    Ok(Done::Well)
}

/// Has the page served until `stop` is set.
pub fn guarded(page: &Page, stop: &AtomicBool) -> anyhow::Result<Done> {
    let mut starts = VecDeque::new();
    loop {
        let status = one(page, !starts.is_empty(), stop)?;
        let broke_off = status.code().is_none_or(|code| code == defect::BROKE_OFF);
        match status.code() {
            _ if broke_off && !stop.load(Ordering::Relaxed) => {}
            // It was told to end before it could attend to that.
            None if status.signal() == Some(libc::SIGTERM) => return Ok(Done::Well),
            Some(2) => return Ok(Done::BadInput),
            Some(0) => return Ok(Done::Well),
            _ => return Ok(Done::MeasurementFailed),
        }
        // The last one is kept however long ago it was: what a process reads unasked may be what ended the one before.
        while starts.len() > 1 && starts.front().is_some_and(|at: &Instant| at.elapsed() >= WITHIN) {
            starts.pop_front();
        }
        if starts.len() == STARTS {
            anyhow::bail!("the page broke off {STARTS} times within a minute, and is not served any more");
        }
        starts.push_back(Instant::now());
        say("the page broke off, and is served again at the same address; a measurement that it had begun has ended");
    }
}

/// One inner process, until it ends. What signals ask for is passed on to it: it has a process group of its own, so that a terminal asks once.
fn one(page: &Page, again: bool, stop: &AtomicBool) -> anyhow::Result<ExitStatus> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(INSIDE).args(std::env::args_os().skip(1));
    let mut inner = page.start(child::die_with_parent(&mut command), again).context("cannot start the process that serves the page")?;
    let mut asked = false;
    loop {
        if let Some(status) = inner.try_wait().context("cannot wait for the process that serves the page")? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) && !asked {
            asked = true;
            child::signal(inner.id() as i32, libc::SIGTERM)?;
        }
        std::thread::sleep(TURN);
    }
}
