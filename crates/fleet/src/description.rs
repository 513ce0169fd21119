//! What is kept of a host and of its rows without a figure, to be held against its peers'.

use std::collections::BTreeMap;

use fingerpost_record::{Host, Measurement, Outcome};
use serde::{Deserialize, Serialize};

/// Reasons of rows that could not be measured are kept up to this length.
const REASON: usize = 120;

/// What is kept of a host's description, to be held against its peers'.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// CPUs' worth of time that a quota allows.
    pub quota: Option<f64>,
    /// CPUs that the run was allowed.
    pub cpus: u32,
    /// Processes that were runnable both before the run and after it.
    pub runnable: u64,
    /// Seccomp filters in force.
    pub filters: Option<u32>,
    /// Transparent huge pages.
    pub thp: Option<String>,
    /// Frequency governor.
    pub governor: Option<String>,
    /// Mitigations, of the kernel and of the run's own processes.
    pub mitigations: BTreeMap<String, String>,
}

impl Description {
    /// Of a host.
    pub fn of(host: &Host) -> Description {
        Description {
            quota: host.cgroup.cpu_quota,
            cpus: host.cpu.count,
            runnable: host
                .after
                .as_ref()
                .map_or(0, |after| after.runnable.min(host.before.runnable)),
            filters: host.seccomp_filters,
            thp: host.thp.clone(),
            governor: host.governor.clone(),
            mitigations: mitigations(host),
        }
    }
}

/// Those of the kernel, by their file's name, and those of the run's own processes in words.
fn mitigations(host: &Host) -> BTreeMap<String, String> {
    let of_processes = host
        .task_mitigations
        .iter()
        .map(|(what, state)| (format!("{what} of its processes"), state.clone()));
    host.mitigations
        .clone()
        .into_iter()
        .chain(of_processes)
        .collect()
}

/// Why a row of a host that was tried has no figure.
pub fn failure(m: &Measurement) -> Option<String> {
    (m.outcome == Outcome::Failed).then(|| {
        fingerpost_record::text::clean_short(
            m.reason.as_deref().unwrap_or("no reason given"),
            REASON,
        )
    })
}
