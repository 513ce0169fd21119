//! What stops the load generator itself.

use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Metric};

use super::clues::Clues;
use super::sign::Told;
use crate::thresholds::MOST_OF_CHANGE;

/// A quota of the load generator's own, whose stops make the most of what transactions take longer: while it is
/// stopped, all of its clients wait. The kernel adds the stops up over CPUs.
pub(crate) fn stopped(clues: &Clues) -> Option<Told> {
    let stopped = clues
        .total(name::CLIENT_THROTTLE_SECONDS)
        .filter(|p| p.slow > 0.0)?;
    let (elapsed, turn) = (clues.total(name::ELAPSED_SECONDS)?, clues.turn());
    let share = |stopped: f64, elapsed: f64| (stopped / elapsed.max(1e-9)).min(1.0);
    let (fast, slow) = (
        share(stopped.fast, elapsed.fast),
        share(stopped.slow, elapsed.slow),
    );
    let most = turn.more() > 0.0
        && slow * turn.slow - fast * turn.fast >= MOST_OF_CHANGE.value * turn.more();
    most.then(|| vec![Evidence::figure(Metric::ClientStopped, slow)])
}
