//! What a load generator on another machine saw (`fingerpost load`), joined with what was seen of the service here.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fingerpost_diagnose::client;
use fingerpost_labs::service::WORKLOAD;
use fingerpost_record::archive::Writer;
use fingerpost_record::{Finding, Run, StepName, load};
use fingerpost_report::explain::{Explanation, of_run};

use crate::exit::usage;
use crate::progress::Progress;
use crate::runs;

/// How long the load generator's file is waited for after the service was watched: a load may go on a little longer.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Joins a kept run of a service with the load generator's, and keeps it in its file, or in `output`.
///
/// # Errors
/// One of the runs is something else, they are not of the same time, or the file cannot be written.
pub fn join_kept(wanted: &OsStr, path: &Path, output: Option<&Path>) -> anyhow::Result<Run> {
    let mut run = runs::load(wanted)?;
    let target = output.map_or_else(|| runs::file(wanted), |path| Ok(path.to_owned()))?;
    join(&mut run, &load::from_path(path)?)?;
    Writer::at(target).finish(&run)?;
    Ok(run)
}

/// Joins a run that has just been made with the load generator's, when that has come to its end.
///
/// # Errors
/// As [`join_kept`]; the file does not come.
pub fn join_fresh(
    run: &mut Run,
    path: &Path,
    stop: &AtomicBool,
    progress: &Progress,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let client = loop {
        progress.show(&format!("waiting for {}", path.display()), 1.0);
        let last = Instant::now() >= deadline || stop.load(Ordering::Relaxed);
        match load::from_path(path) {
            Ok(client) if client.complete => break client,
            Ok(_) if last => {
                return usage(format!(
                    "the load in {} has not ended; join it when it has",
                    path.display()
                ));
            }
            Err(error) if last => return Err(error.into()),
            _ => std::thread::sleep(LOOK_EVERY),
        }
    };
    join(run, &client)
}

fn join(run: &mut Run, client: &Run) -> anyhow::Result<()> {
    let Ok(begun) = run.started.parse::<jiff::Timestamp>() else {
        return usage(format!("the run {} does not say when it was made", run.id));
    };
    client::join(run, begun.as_second() as f64, client).or_else(usage)?;
    if let Some(explanation) = service_of(run) {
        run.findings = findings(&explanation);
    }
    Ok(())
}

/// The findings of an explanation as a run has them: with the step that they are of.
pub fn findings(explanation: &Explanation) -> Vec<Finding> {
    let mut found = explanation.findings.clone();
    for finding in &mut found {
        finding.step = Some(StepName {
            workload: WORKLOAD.to_owned(),
            params: explanation.params.clone(),
        });
    }
    found
}

/// The service of a run, explained.
pub fn service_of(run: &Run) -> Option<Explanation> {
    of_run(run).into_iter().find(|e| e.workload == WORKLOAD)
}
