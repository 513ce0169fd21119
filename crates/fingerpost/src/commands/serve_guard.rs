//! The page, or a site that is a directory, is served in a process of its own, which is started again when a panic
//! ended it: a defect ends the answers that are being made, not the page.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fingerpost_page::{Options, Page};
use fingerpost_sys::child;

use crate::exit::{Done, say};
use crate::{conduct, defect, inner};

/// The name of the inner process.
pub const INSIDE: &str = "fingerpost-serve-inside";
/// The inner process is started again so often within [`WITHIN`].
const STARTS: usize = 10;
const WITHIN: Duration = Duration::from_secs(60);
/// Between two looks at the inner process and at what signals set.
const TURN: Duration = Duration::from_millis(50);

/// Serves, as the inner process.
pub fn serve(options: Options) -> anyhow::Result<Done> {
    defect::ends_with(defect::BROKE_OFF);
    let stop = conduct::stopped_by_signals()?;
    Page::taken_over()
        .and_then(|page| page.serve(options, stop))
        .context("cannot serve the page")?;
    Ok(Done::Well)
}

/// What an inner process serves, in sentences, and what ends with it when it breaks off.
pub struct Served {
    /// The page, or the site.
    pub what: &'static str,
    /// Nothing, or a part of the sentence.
    pub lost: &'static str,
}

/// Has it served until `stop` is set, by processes that `start` starts by the command that it is given; it is told
/// whether one broke off before.
pub fn guarded(
    served: &Served,
    stop: &AtomicBool,
    start: impl Fn(&mut Command, bool) -> io::Result<Child>,
) -> anyhow::Result<Done> {
    let Served { what, lost } = served;
    let mut starts: Vec<Instant> = Vec::new();
    let mut again = false;
    loop {
        let inner = start(&mut inner::command(INSIDE), again)
            .with_context(|| format!("cannot start the process that serves the {what}"))?;
        let status = end_of(inner, stop)
            .with_context(|| format!("cannot wait for the process that serves the {what}"))?;
        let broke_off = status.code().is_none_or(|code| code == defect::BROKE_OFF);
        match status.code() {
            _ if broke_off && !stop.load(Ordering::Relaxed) => {}
            // It was told to end before it could attend to that.
            None if status.signal() == Some(libc::SIGTERM) => return Ok(Done::Well),
            Some(2) => return Ok(Done::BadInput),
            Some(0) => return Ok(Done::Well),
            _ => return Ok(Done::MeasurementFailed),
        }
        again = true;
        starts.retain(|at| at.elapsed() < WITHIN);
        if starts.len() == STARTS {
            anyhow::bail!(
                "the {what} broke off {STARTS} times within a minute, and is not served any more"
            );
        }
        starts.push(Instant::now());
        say(&format!(
            "the {what} broke off, and is served again at the same address{lost}"
        ));
    }
}

/// Waits until an inner process ends. What signals ask for is passed on to it: it has a process group of its own, so
/// that a terminal asks once.
fn end_of(mut inner: Child, stop: &AtomicBool) -> io::Result<ExitStatus> {
    let mut asked = false;
    loop {
        if let Some(status) = inner.try_wait()? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) && !asked {
            asked = true;
            child::signal(inner.id() as i32, libc::SIGTERM)?;
        }
        std::thread::sleep(TURN);
    }
}
