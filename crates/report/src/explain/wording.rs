//! A service's workload, and findings in the words of a service.

use fingerpost_diagnose::PROGRAMS;
use fingerpost_diagnose::service::without_a_baseline;
use fingerpost_record::{Finding, Readings};

/// The workload under which a record has a service.
pub const WORKLOAD: &str = "service";
/// What a record calls “server user code”.
pub(super) const OWN_CODE: &str = "the program's own code";

/// A finding in the words of a service: it has requests, or is a program, and never transactions.
pub(super) fn worded(finding: Finding, workload: &str, totals: &Readings) -> Finding {
    if workload != WORKLOAD {
        return finding;
    }
    let mut finding = without_a_baseline(finding, totals);
    let programs = totals.known(PROGRAMS).is_some();
    for text in &mut finding.evidence {
        *text = text.replace("server user code", OWN_CODE);
        *text = if programs {
            text.replace("per transaction", "in all").replace("of a request", "of the program's time").replace("the server", "the program")
        } else {
            text.replace("transaction", "request").replace(
                "the client shares the server's CPUs; it did not find itself to be the limit",
                "its clients run on this machine and use the same CPUs",
            )
        };
    }
    finding
}
