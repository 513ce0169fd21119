//! What explaining a look may take when watching is over.

use std::time::{Duration, Instant};

/// What following requests, or naming functions, may take: a watched service decides how much there is to do.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// CPU time of what does it.
    pub cpu: Duration,
    /// When it is over on a machine that has no CPU for it.
    pub until: Instant,
}
