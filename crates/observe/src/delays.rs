//! What the kernel's delay accounting says held the workload up: devices, swap, reclaim. Splits what a thread's state
//! only calls uninterruptible.

use std::collections::BTreeMap;

use fingerpost_sys::procfs::Paths;
use fingerpost_sys::taskstats::{self, Delays, Taskstats};

use crate::machine::Totals;

/// Delays since the beginning.
pub struct Delayed {
    stats: Taskstats,
    before: BTreeMap<i32, Delays>,
}

impl Delayed {
    /// Reads the processes' delays so far; or says why there is nothing to read.
    pub fn begin(paths: &Paths, processes: impl Iterator<Item = i32>) -> Result<Delayed, String> {
        if !taskstats::is_counting(paths) {
            return Err(
                "the kernel counts no delays; `sysctl kernel.task_delayacct=1` switches it on"
                    .to_owned(),
            );
        }
        let mut stats = Taskstats::open().map_err(|e| e.to_string())?;
        let mut before = BTreeMap::new();
        for pid in processes {
            match stats.delays(pid) {
                Ok(delays) => drop(before.insert(pid, delays)),
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(Delayed { stats, before })
    }

    /// Totals by side. A process that came meanwhile counts from its start; one that ended meanwhile is not known any
    /// more.
    pub fn finish(mut self, processes: impl Iterator<Item = (i32, &'static str)>) -> Totals {
        let mut totals = Totals::new();
        for (pid, side) in processes {
            let Ok(now) = self.stats.delays(pid) else {
                continue;
            };
            let before = self.before.get(&pid).copied().unwrap_or_default();
            for (name, seconds) in now.since(&before) {
                *totals
                    .entry(format!("{side}.delay.{name}.seconds"))
                    .or_default() += seconds;
            }
        }
        totals
    }
}
