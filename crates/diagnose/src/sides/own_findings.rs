//! What each side's own findings say of the causes of a difference.

use fingerpost_record::{Evidence, Finding, Metric, Status};

use super::waterfall::Waterfall;
use crate::steps::KnownSide;

/// Suspects that a run's own findings ruled out, and none accuses, stay ruled out, with the figure that clears them: those
/// of workloads that both sides have rows of (`probes` are the rows' names), for the others have no part in the
/// difference.
pub fn clear(causes: &mut Vec<Finding>, sides: [KnownSide; 2], probes: &[&str]) {
    if causes.is_empty() {
        return;
    }
    let of_a_row = |f: &&Finding| {
        let Some(workload) = f.step.as_ref().map(|step| &step.workload) else {
            return false;
        };
        probes.iter().any(|probe| {
            probe
                .strip_prefix(workload.as_str())
                .is_some_and(|rest| rest.starts_with('.'))
        })
    };
    let own = || sides.iter().flat_map(|side| &side.steps.findings);
    for finding in own()
        .filter(|f| f.status == Status::RuledOut)
        .filter(of_a_row)
    {
        let accused = own().any(|f| f.cause == finding.cause && f.status.accuses());
        if !accused && causes.iter().all(|c| c.cause != finding.cause) {
            causes.push(Finding {
                share: 0.0,
                ..finding.clone()
            });
        }
    }
}

/// What a run's own findings convict is not ruled out by other rows than theirs: probes of the disk that cost what they
/// did say nothing of a server that waits for it. The step that speaks for the difference was judged anew, with what
/// each side alone says of it.
pub fn never_clear_the_convicted(
    causes: &mut Vec<Finding>,
    sides: [KnownSide; 2],
    judged: Option<&Waterfall>,
) {
    let of_another = |side: &KnownSide, own: &Finding| {
        judged.is_none_or(|fall| side.has_step_of(own) && !own.is_of(&fall.workload, &fall.params))
    };
    let shown = |cause: &str, side: &KnownSide| {
        let convicts = |own: &&Finding| {
            own.cause == cause && own.status == Status::Confirmed && of_another(side, own)
        };
        let own = side.steps.findings.iter().find(convicts)?;
        Some(Evidence::figure(Metric::ShownBySide, own.share).named(side.name))
    };
    let (mut shown_alone, rest): (Vec<Finding>, Vec<Finding>) =
        std::mem::take(causes).into_iter().partition(|f| {
            f.status == Status::RuledOut && sides.iter().any(|side| shown(&f.cause, side).is_some())
        });
    for f in &mut shown_alone {
        f.status = Status::NotObserved;
        f.evidence
            .extend(sides.iter().filter_map(|side| shown(&f.cause, side)));
    }
    // What nothing tells of comes last.
    *causes = rest;
    causes.extend(shown_alone);
}
