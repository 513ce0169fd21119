//! What records of schema 1 say in the words of a finding's evidence, as data: of which step it is, and of which other
//! cause it is a consequence. Leaves and statuses are converted where they are read.

use crate::findings::{Finding, Relation, StepName};
use crate::run::Run;

/// How a sentence began that said what a finding is a consequence of; the cause's name follows, and its label in
/// brackets.
const FOLLOWS: &str = "it follows from ";

/// Converts what was read of schema 1.
pub(crate) fn convert(run: &mut Run) {
    let mut steps: Vec<StepName> = run
        .budgets
        .iter()
        .map(|b| (&b.workload, &b.params))
        .chain(run.paths.iter().map(|p| (&p.workload, &p.params)))
        .map(|(workload, params)| StepName {
            workload: workload.clone(),
            params: params.clone(),
        })
        .collect();
    // The name of one step may begin with another's.
    steps.sort_by_key(|step| std::cmp::Reverse(step.to_string().len()));
    for finding in &mut run.findings {
        step_of(finding, &steps);
        relation_of(finding);
    }
}

/// The first figure said of which step it was.
fn step_of(finding: &mut Finding, steps: &[StepName]) {
    let Some(first) = finding.evidence.first_mut() else {
        return;
    };
    let begins = |step: &&StepName| first.starts_with(&format!("{step}: "));
    if let Some(step) = steps.iter().find(begins) {
        *first = first[step.to_string().len() + 2..].to_owned();
        finding.step = Some(step.clone());
    }
}

fn relation_of(finding: &mut Finding) {
    let root = |line: &String| {
        let rest = line.strip_prefix(FOLLOWS)?;
        rest.split(" (").next().map(str::to_owned)
    };
    let found = finding.evidence.iter().find_map(root);
    finding.evidence.retain(|line| root(line).is_none());
    if finding.relation.is_none() {
        finding.relation = found.map(Relation::FollowsFrom);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Layer, Status};
    use crate::fixture;

    #[test]
    fn step_and_relation_are_read_from_the_words() {
        let mut run = fixture::followed::slow_locks();
        let budget = run.budgets[0].clone();
        let step = StepName {
            workload: budget.workload.clone(),
            params: budget.params.clone(),
        };
        let lines = [
            format!("{step}: waiting is 20 % of a request"),
            "it follows from app.work (more work), which comes first".to_owned(),
        ];
        let finding = |evidence: &[String]| {
            Finding::new(
                "cpu.saturated",
                Layer::Scheduler,
                Status::Likely,
                0.2,
                evidence.to_vec(),
            )
        };
        run.findings = vec![finding(&lines), finding(&["nothing of it".to_owned()])];
        convert(&mut run);
        let [of_step, other] = &run.findings[..] else {
            panic!("{:?}", run.findings)
        };
        assert!(of_step.is_of(&budget.workload, &budget.params));
        assert_eq!(of_step.evidence, ["waiting is 20 % of a request"]);
        assert_eq!(
            of_step.relation,
            Some(Relation::FollowsFrom("app.work".into()))
        );
        assert_eq!((&other.step, &other.relation), (&None, &None));
        assert_eq!(other.evidence, ["nothing of it"]);
    }
}
