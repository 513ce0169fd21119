//! Pages that lack of memory takes away.

use crate::facts::Facts;
use crate::thresholds::{MAJOR_FAULTS, MEMORY_PRESSURE};

/// Major faults under memory pressure. A major fault is also how a program's own code is first read: only many of them,
/// under pressure, are paging.
pub(crate) fn pages_in(f: &Facts) -> bool {
    f.major_per_s.is_some_and(|n| n > MAJOR_FAULTS.value)
        && f.memory_pressure
            .is_some_and(|share| share > MEMORY_PRESSURE.value)
}

/// Whether what a server that flushes nothing waits for the disk for is pages that lack of memory took away: the kernel
/// counts a wait as memory pressure where it is for a page that was there before.
pub(crate) fn reads_again(f: &Facts) -> bool {
    pages_in(f) && f.syncs == Some(0.0)
}
