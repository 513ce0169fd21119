//! What records of schema 1 say in the words of a finding's evidence, as data: of which step it is, of which other cause
//! it is a consequence, and what came of which experiment. Leaves and statuses are converted where they are read; other
//! sentences stay as they are ([`Metric::Text`]).

use crate::evidence::{Evidence, Metric};
use crate::experiment::{Answer, Experiment};
use crate::findings::{Finding, Relation, StepName};
use crate::measurement::Estimate;
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
        experiments_of(finding, &run.experiments);
    }
}

/// Words that a fact is made of, where it is.
fn words(fact: &Evidence) -> Option<&str> {
    fact.text.as_deref().filter(|_| fact.metric == Metric::Text)
}

/// What came of an experiment stood among the rest in words.
fn experiments_of(finding: &mut Finding, experiments: &[Experiment]) {
    for fact in &mut finding.evidence {
        let said = words(fact).and_then(|text| experiments.iter().find(|e| sentence(e) == text));
        if let Some(experiment) = said {
            *fact = Evidence::of_experiment(experiment);
        }
    }
}

/// How schema 1 said what came of an experiment.
fn sentence(e: &Experiment) -> String {
    let what = &e.what;
    let times = |e: &Estimate| format!("{:.2} ({:.2}–{:.2})", e.value, e.low, e.high);
    match (e.answer, &e.effect) {
        (Answer::NotDone, _) => {
            let why = e.reason.as_deref().unwrap_or("for no stated reason");
            format!("with {what}: not tried, {why}")
        }
        (Answer::Faster, Some(e)) => format!("with {what} requests were {} times faster", times(e)),
        (Answer::Slower, Some(e)) if e.low > 0.0 => {
            let slower = Estimate {
                value: 1.0 / e.value,
                low: 1.0 / e.high,
                high: 1.0 / e.low,
                ..*e
            };
            format!("with {what} requests were {} times slower", times(&slower))
        }
        (Answer::Same, Some(e)) => format!(
            "with {what} requests were as fast as before: {} times",
            times(e)
        ),
        (_, Some(e)) => format!(
            "with {what} requests were {} times as fast, which decides nothing",
            times(e)
        ),
        (_, None) => format!("with {what}: too few requests were seen to say anything"),
    }
}

/// The first figure said of which step it was.
fn step_of(finding: &mut Finding, steps: &[StepName]) {
    let Some(first) = finding.evidence.first_mut() else {
        return;
    };
    let Some(text) = words(first).map(str::to_owned) else {
        return;
    };
    let begins = |step: &&StepName| text.starts_with(&format!("{step}: "));
    if let Some(step) = steps.iter().find(begins) {
        first.text = Some(text[step.to_string().len() + 2..].to_owned());
        finding.step = Some(step.clone());
    }
}

fn relation_of(finding: &mut Finding) {
    let root = |fact: &Evidence| {
        let rest = words(fact)?.strip_prefix(FOLLOWS)?;
        rest.split(" (").next().map(str::to_owned)
    };
    let found = finding.evidence.iter().find_map(root);
    finding.evidence.retain(|fact| root(fact).is_none());
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
                evidence.iter().cloned().map(Evidence::of_older).collect(),
            )
        };
        run.findings = vec![finding(&lines), finding(&["nothing of it".to_owned()])];
        convert(&mut run);
        let [of_step, other] = &run.findings[..] else {
            panic!("{:?}", run.findings)
        };
        assert!(of_step.is_of(&budget.workload, &budget.params));
        let text = |text: &str| [Evidence::of_older(text.to_owned())];
        assert_eq!(of_step.evidence, text("waiting is 20 % of a request"));
        assert_eq!(
            of_step.relation,
            Some(Relation::FollowsFrom("app.work".into()))
        );
        assert_eq!((&other.step, &other.relation), (&None, &None));
        assert_eq!(other.evidence, text("nothing of it"));
    }

    #[test]
    fn what_came_of_an_experiment_is_read_from_the_words() {
        let experiment = fixture::experiment();
        let told = Evidence::of_older(sentence(&experiment));
        let mut run = fixture::run();
        run.experiments = vec![experiment.clone()];
        run.findings = vec![Finding::new(
            "cpu.quota",
            Layer::Scheduler,
            Status::Confirmed,
            0.5,
            vec![told, Evidence::of_older("else".to_owned())],
        )];
        convert(&mut run);
        let [first, other] = &run.findings[0].evidence[..] else {
            panic!("{:?}", run.findings)
        };
        assert_eq!(*first, Evidence::of_experiment(&experiment));
        assert_eq!(other.text.as_deref(), Some("else"));
    }
}
