//! Two sides of one workload step: the way from one budget to the other, and the causes of the difference.
//!
//! [`waterfall`] takes the difference apart; [`candidates`] holds each cause of the registry ([`crate::causes`]) against
//! what tells it from its neighbours.

pub mod alone;
pub mod candidates;
mod clearing;
pub(crate) mod client;
pub mod clues;
pub(crate) mod contention;
mod decided;
pub(crate) mod fitting;
pub(crate) mod flushes;
pub(crate) mod growth;
pub(crate) mod let_go;
pub mod limits;
pub(crate) mod losses;
mod older;
mod own;
pub mod own_findings;
mod roots;
pub mod settled;
pub(crate) mod shaped;
pub(crate) mod sign;
mod unread;
pub mod watched;
pub mod waterfall;
pub(crate) mod work;

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
