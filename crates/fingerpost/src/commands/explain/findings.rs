//! The findings of an explanation as a run keeps them.

use fingerpost_labs::service::WORKLOAD;
use fingerpost_record::Finding;
use fingerpost_report::explain::Explanation;

/// The findings as a run has them: the first figure says of which step it is.
pub fn findings(explanation: &Explanation) -> Vec<Finding> {
    let mut found = explanation.findings.clone();
    for first in found.iter_mut().filter_map(|f| f.evidence.first_mut()) {
        *first = format!("{WORKLOAD} {}: {first}", explanation.params);
    }
    found
}
