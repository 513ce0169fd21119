//! Lines that an explanation has in every form.

use super::explanation::Explanation;
use crate::steps::Steps;
use crate::words::{clean, percent, time};

/// What the steps have alike, which is told once where they are shown below each other.
pub(crate) fn steps(explanations: &[Explanation]) -> Steps {
    Steps::of(explanations.iter().map(|e| (e.workload.as_str(), &e.params)))
}

/// The sentence about memory as a line of its own.
pub(crate) fn mapped_line(sentence: &str) -> String {
    format!("Memory that was asked for: {}.", clean(sentence))
}

/// How long what took, seen by whom, and what looking cost.
pub(crate) fn headline(e: &Explanation) -> String {
    let what = if e.paths.is_some() && e.budget.transactions == e.paths.as_ref().map_or(0, |p| p.followed) {
        "request"
    } else {
        "transaction"
    };
    let whole = if e.budget.transactions == 1 {
        format!("{} of wall time", time(e.budget.seconds_per_transaction))
    } else {
        format!("{} per {what} over {} {what}s", time(e.budget.seconds_per_transaction), e.budget.transactions)
    };
    let unfollowed = if e.paths.is_none() && e.budget.parts.is_empty() {
        "; requests could not be followed: this is the threads' time"
    } else {
        ""
    };
    let gap = match e.gap {
        Some(gap) if gap < 0.0 => {
            format!(
                "; the traced pass was {} faster than the one without tracing: its cost is not known",
                percent(-gap)
            )
        }
        Some(gap) => format!("; tracing cost {}", percent(gap)),
        None => String::new(),
    };
    let cost: f64 =
        e.observations.iter().map(|o| o.self_cost).sum::<f64>() + e.paths.as_ref().map_or(0.0, |p| p.self_cost);
    let lost: u64 = e.observations.iter().map(|o| o.lost).sum();
    let lost = if lost > 0 { format!(", {lost} events lost") } else { String::new() };
    format!("{whole}{unfollowed}; seen by {}{gap}; observing took {} of CPU{lost}", clean(&e.source), time(cost))
}
