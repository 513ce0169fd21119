//! What a conclusion says of the rows that it rests on and that are not to be trusted.
//!
//! Which rows those are is asked of the judge itself: it rests on a row if it judges otherwise, or not at all, where
//! the row is missing. So no judge need tell, and none can forget.

use fingerpost_record::{Measurement, Outcome, Params, Run};

use super::judged::{Answer, Judged};

/// How a conclusion is judged from a run.
pub type Judge = fn(&Run) -> Option<Judged>;

/// What a judge says of a run, and which of the rows that it rests on are not to be trusted, and why.
pub fn judged(judge: Judge, run: &Run) -> Option<Judged> {
    let judged = judge(run)?;
    // Figures that are not to be trusted.
    let is_doubted = |row: &Measurement| row.estimate.is_some() && row.outcome != Outcome::Measured;
    let all: Vec<usize> = (0..run.measurements.len())
        .filter(|i| is_doubted(&run.measurements[*i]))
        .collect();
    if judged.answer == Answer::NotMeasured || all.is_empty() {
        return Some(judged);
    }
    let mut lacking = run.clone();
    let rests_on = |rows: &[usize]| {
        leave_out(&mut lacking, run, rows);
        judge(&lacking).as_ref() != Some(&judged)
    };
    let rows = those(&all, rests_on);
    let figure = match words(
        &rows
            .iter()
            .map(|i| &run.measurements[*i])
            .collect::<Vec<_>>(),
    ) {
        Some(words) => format!("{}; {words}", judged.figure),
        None => judged.figure.clone(),
    };
    Some(Judged { figure, ..judged })
}

/// Makes a run the whole one without these rows, and without what was observed of their steps and where those steps'
/// time went.
fn leave_out(lacking: &mut Run, whole: &Run, rows: &[usize]) {
    let of_them = |workload: &str, params: &Params| {
        rows.iter()
            .map(|i| &whole.measurements[*i])
            .any(|row| row.probe.split('.').next() == Some(workload) && row.params == *params)
    };
    let kept = whole
        .measurements
        .iter()
        .enumerate()
        .filter(|(i, _)| !rows.contains(i));
    lacking.measurements = kept.map(|(_, row)| row.clone()).collect();
    lacking.observations = whole
        .observations
        .iter()
        .filter(|o| !of_them(&o.workload, &o.params))
        .cloned()
        .collect();
    lacking.budgets = whole
        .budgets
        .iter()
        .filter(|b| !of_them(&b.workload, &b.params))
        .cloned()
        .collect();
}

/// Those of some rows that matter, by halves: most conclusions rest on few rows of a run. Of rows that matter only
/// together, because one would do, as few are told as matter.
fn those(rows: &[usize], mut matter: impl FnMut(&[usize]) -> bool) -> Vec<usize> {
    let mut found = Vec::new();
    let mut groups = if matter(rows) { vec![rows] } else { Vec::new() };
    while let Some(group) = groups.pop() {
        let (first, second) = group.split_at(group.len() / 2);
        let halves: Vec<&[usize]> = [first, second]
            .into_iter()
            .filter(|half| !half.is_empty() && half.len() < group.len())
            .collect();
        let before = groups.len();
        groups.extend(halves.into_iter().filter(|half| matter(half)));
        if groups.len() > before {
            continue;
        }
        let mut together = group.to_vec();
        for row in group.iter().filter(|_| group.len() > 1) {
            let others: Vec<usize> = together
                .iter()
                .copied()
                .filter(|other| other != row)
                .collect();
            if matter(&others) {
                together = others;
            }
        }
        found.extend(together);
    }
    found.sort_unstable();
    found
}

/// `on a row of ipc.tcp that is not to be trusted: why`.
fn words(rows: &[&Measurement]) -> Option<String> {
    let (mut probes, mut reasons): (Vec<&str>, Vec<&str>) = Default::default();
    for row in rows {
        let reason = row.reason.as_deref().unwrap_or("no reason given");
        [(&mut probes, row.probe.as_str()), (&mut reasons, reason)]
            .into_iter()
            .filter(|(list, word)| !list.contains(word))
            .for_each(|(list, word)| list.push(word));
    }
    let (first, others) = reasons.split_first()?;
    let [number, are] = if rows.len() == 1 {
        ["a row".to_owned(), "is".into()]
    } else {
        [format!("{} rows", rows.len()), "are".into()]
    };
    let of = match probes.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => probes.concat(),
    };
    let more = match others.len() {
        0 => String::new(),
        1 => "; and for another reason".to_owned(),
        more => format!("; and for {more} other reasons"),
    };
    Some(format!(
        "on {number} of {of} that {are} not to be trusted: {first}{more}"
    ))
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Better, Estimate, Observation, Unit};

    use super::*;

    fn row(probe: &str, value: f64, doubt: Option<&str>) -> Measurement {
        let outcome = if doubt.is_some() {
            Outcome::Untrusted
        } else {
            Outcome::Measured
        };
        let none = Measurement::without_figure(
            probe,
            1,
            Params::new(),
            Unit::Nanoseconds,
            Better::Lower,
            outcome,
            String::new(),
        );
        let estimate = Some(Estimate {
            value,
            low: value,
            high: value,
            confidence: 0.95,
        });
        Measurement {
            estimate,
            reason: doubt.map(str::to_owned),
            ..none
        }
    }

    fn value(run: &Run, probe: &str) -> Option<f64> {
        run.measurements
            .iter()
            .find(|m| m.probe == probe)?
            .estimate
            .map(|e| e.value)
    }

    fn sum(run: &Run) -> Option<Judged> {
        let sum = value(run, "a.one")? + value(run, "b.two").unwrap_or(0.0);
        Some(Judged::by(sum > 1.0, format!("{sum:.0} in all")))
    }

    fn figure(judge: Judge, rows: Vec<Measurement>) -> String {
        judged(
            judge,
            &Run {
                measurements: rows,
                ..Run::default()
            },
        )
        .unwrap()
        .figure
    }

    #[test]
    fn a_conclusion_tells_of_the_rows_that_it_rests_on_and_of_no_others() {
        let other = row("c.three", 7.0, Some("slow"));
        assert_eq!(
            figure(
                sum,
                vec![
                    row("a.one", 1.0, None),
                    row("b.two", 2.0, None),
                    other.clone()
                ]
            ),
            "3 in all"
        );
        let one = vec![
            row("a.one", 1.0, None),
            other.clone(),
            row("b.two", 2.0, Some("noisy")),
        ];
        assert_eq!(
            figure(sum, one),
            "3 in all; on a row of b.two that is not to be trusted: noisy"
        );
        let both = vec![
            row("a.one", 1.0, Some("noisy")),
            other.clone(),
            row("b.two", 2.0, Some("noisy")),
        ];
        assert_eq!(
            figure(sum, both),
            "3 in all; on 2 rows of a.one and b.two that are not to be trusted: noisy"
        );
        let two = vec![
            row("a.one", 1.0, Some("noisy")),
            other,
            row("b.two", 2.0, Some("hot")),
        ];
        assert!(figure(sum, two).ends_with("are not to be trusted: noisy; and for another reason"));
    }

    #[test]
    fn where_either_of_two_rows_would_do_both_are_told() {
        let least = |run: &Run| {
            let least = run
                .measurements
                .iter()
                .filter_map(|m| m.estimate)
                .map(|e| e.value)
                .reduce(f64::min)?;
            Some(Judged::by(true, format!("{least:.0} at least")))
        };
        let rows = vec![
            row("a.one", 1.0, Some("noisy")),
            row("a.one", 1.0, Some("noisy")),
            row("a.one", 5.0, Some("noisy")),
        ];
        assert_eq!(
            figure(least, rows),
            "1 at least; on 2 rows of a.one that are not to be trusted: noisy"
        );
    }

    #[test]
    fn what_was_observed_of_a_step_is_as_doubtful_as_its_figure() {
        let busy = |run: &Run| {
            Some(Judged::by(
                true,
                format!("{:.0} s", run.observations.first()?.totals["seconds"]),
            ))
        };
        let observation = Observation {
            workload: "a".into(),
            totals: [("seconds".to_owned(), 3.0)].into(),
            ..Observation::default()
        };
        let run = |doubt| Run {
            measurements: vec![row("a.one", 1.0, doubt)],
            observations: vec![observation.clone()],
            ..Run::default()
        };
        assert_eq!(judged(busy, &run(None)).unwrap().figure, "3 s");
        assert_eq!(
            judged(busy, &run(Some("few"))).unwrap().figure,
            "3 s; on a row of a.one that is not to be trusted: few"
        );
        let mut apart = run(Some("few"));
        apart.observations[0].params = Params::new().with("clients", 5);
        assert_eq!(judged(busy, &apart).unwrap().figure, "3 s");
    }

    #[test]
    fn what_was_not_judged_has_no_doubt() {
        let none = |run: &Run| {
            run.measurements
                .first()
                .map(|_| Judged::not("it is a belief"))
        };
        assert_eq!(
            figure(none, vec![row("a.one", 1.0, Some("noisy"))]),
            "it is a belief"
        );
    }
}
