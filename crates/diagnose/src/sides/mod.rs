//! Two sides of one workload step: the way from one budget to the other, and the causes of the difference.
//!
//! [`waterfall`] takes the difference apart; [`candidates`] holds each cause of the [`catalogue`] against what tells it
//! from its neighbours.

pub mod alone;
pub mod candidates;
pub mod catalogue;
mod clearing;
pub mod clues;
mod contention;
mod decided;
mod fitting;
mod flushes;
mod given;
mod growth;
mod let_go;
pub mod limits;
mod older;
pub mod own_findings;
mod roots;
pub mod settled;
mod sign;
mod signs;
mod signs_io;
mod unread;
pub mod watched;
pub mod waterfall;
mod work;

use fingerpost_record::{Finding, Status};

/// Confirmed and likely by share, then those ruled out, those not observed last.
pub fn order(findings: &mut [Finding]) {
    let class = |f: &Finding| {
        if f.status.accuses() {
            Status::Confirmed
        } else {
            f.status
        }
    };
    findings.sort_by(|a, b| {
        class(a)
            .cmp(&class(b))
            .then(b.share.total_cmp(&a.share))
            .then(a.status.cmp(&b.status))
    });
}
