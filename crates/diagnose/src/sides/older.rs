//! Budgets of records from before requests were followed: they have parts for queues.

use crate::thresholds::FEW_THREADS;
use fingerpost_record::reading::name;
use fingerpost_record::{Budget, Component, Layer, Part, Readings};

/// What such a budget calls the second of its queues.
const OWN_QUEUE: &str = "in a program's own queue";

fn queue(part: &Component) -> bool {
    matches!(part, Component::ServerQueue)
        || matches!(part, Component::Other(name) if name == OWN_QUEUE)
}

/// The parts of a budget: layer, component, seconds per transaction. Where few threads serve many clients, a request
/// that waits behind others waits for what those do: the time in the server's queue is spread over the server's own
/// parts, in proportion. A budget of followed requests has no such queue, and stays as it is.
pub(super) fn resolved(readings: &Readings, budget: &Budget) -> Vec<(Layer, Component, f64)> {
    let own = |layer: Layer, part: &Component| {
        layer != Layer::Client && *part != Component::OnTheWay && !queue(part)
    };
    let sum = |pick: &dyn Fn(Layer, &Component) -> bool| -> f64 {
        budget
            .parts
            .iter()
            .filter(|p| pick(p.layer, &p.component))
            .map(|p| p.seconds_per_transaction)
            .sum()
    };
    let (served, queued) = (sum(&own), sum(&|_, part| queue(part)));
    let threads = readings
        .known(name::SERVER_THREADS)
        .zip(readings.known(name::STEP_CLIENTS));
    // With a thread per connection the threads' own account was exact already.
    let few = threads.is_some_and(|(threads, clients)| threads < FEW_THREADS.value * clients);
    let factor = if few && served > 0.0 {
        1.0 + queued / served
    } else {
        1.0
    };
    let part = |p: &Part| {
        let seconds = match () {
            () if own(p.layer, &p.component) => p.seconds_per_transaction * factor,
            () if factor > 1.0 && queue(&p.component) => 0.0,
            () => p.seconds_per_transaction,
        };
        (p.layer, p.component.clone(), seconds)
    };
    budget.parts.iter().map(part).collect()
}

/// Wall seconds per transaction; the parts' sum where an older record does not tell it.
pub(super) fn wall(budget: &Budget) -> f64 {
    if budget.seconds_per_transaction > 0.0 {
        return budget.seconds_per_transaction;
    }
    let parts: f64 = budget.parts.iter().map(|p| p.seconds_per_transaction).sum();
    parts / (1.0 - budget.unexplained).max(0.01)
}
