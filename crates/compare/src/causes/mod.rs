//! From the difference to its cause.
//!
//! [`probes`] finds the common factor of probes alone; [`waterfall`] and [`candidates`] take two budgets apart and hold each cause
//! of the catalogue against its discriminator.

pub mod candidates;
pub mod catalogue;
pub mod clues;
mod cpu;
pub mod groups;
mod older;
pub mod probes;
mod signs;
mod signs_io;
mod watched;
pub mod waterfall;

use fingerpost_record::{Finding, Status};

use crate::hosts;
use crate::side::Side;

/// The differences of the hosts in these facts, a sentence each, base first.
pub(crate) fn host_clues(cheap: &Side, dear: &Side, what: &[&str]) -> Vec<String> {
    hosts::differences(&cheap.facts, &dear.facts)
        .into_iter()
        .filter(|d| what.contains(&d.what.as_str()))
        .map(|d| format!("{} differs: {} on {}, {} on {}", d.what, d.base, cheap.info.name, d.new, dear.info.name))
        .collect()
}

/// Guilty and suspected by share, the cleared last.
pub(crate) fn order(findings: &mut [Finding]) {
    let class = |f: &Finding| usize::from(f.status == Status::Cleared);
    findings.sort_by(|a, b| class(a).cmp(&class(b)).then(b.share.total_cmp(&a.share)).then(a.status.cmp(&b.status)));
}
