//! One step or command explained: what is known of it, whatever form it is shown in.

pub(crate) mod document;
pub(crate) mod experiments;
mod explanation;
pub(crate) mod followed;
mod functions;
mod hardware;
mod involved;
mod neighbours;
pub(crate) mod pieces;
pub mod service;
pub(crate) mod under_way;

use fingerpost_diagnose::StepFigures;
use fingerpost_diagnose::client::beside;
use fingerpost_record::{Finding, Observation, Readings, Run};

pub use document::Explained;
pub use explanation::{Explanation, source};
pub(crate) use explanation::{OWN_CODE, WORKLOAD, mapped_line, programs, steps};

/// Every step of a run that observers watched, explained again from what they wrote into it. A record of before
/// requests were followed has budgets of another making: they are shown as they are stored.
pub fn of_run(run: &Run) -> Vec<Explanation> {
    let mut steps: Vec<Vec<&Observation>> = Vec::new();
    for o in &run.observations {
        match steps
            .iter_mut()
            .find(|s| s[0].workload == o.workload && s[0].params == o.params)
        {
            Some(step) => step.push(o),
            None => steps.push(vec![o]),
        }
    }
    let mut found: Vec<Explanation> = steps
        .into_iter()
        .filter_map(|step| of_step(run, &step))
        .collect();
    for p in &run.paths {
        // Requests may have been followed of a step that nobody else watched.
        if !found
            .iter()
            .any(|e| e.workload == p.workload && e.params == p.params)
        {
            found.push(Explanation::new(
                &p.workload,
                &p.params,
                &StepFigures::default(),
                Some(p),
                Vec::new(),
            ));
        }
    }
    let whole = |e: Explanation| {
        let own = run
            .experiments
            .iter()
            .filter(|x| x.workload == e.workload && x.params == e.params)
            .cloned()
            .collect();
        let client = if e.workload == service::WORKLOAD {
            beside(run)
        } else {
            None
        };
        let under_way = run
            .under_way
            .iter()
            .find(|u| u.workload == e.workload && u.params == e.params)
            .cloned();
        Explanation {
            client,
            under_way,
            ..e.with_experiments(own)
        }
    };
    found.into_iter().map(whole).collect()
}

fn of_step(run: &Run, observations: &[&Observation]) -> Option<Explanation> {
    let figures = StepFigures::from_totals(&Readings::of(observations.iter().copied()))?;
    let Observation {
        workload, params, ..
    } = observations.first()?;
    let paths = run
        .paths
        .iter()
        .find(|p| p.workload == *workload && p.params == *params);
    let mut found = Explanation::new(
        workload,
        params,
        &figures,
        paths,
        observations.iter().map(|&o| o.clone()).collect(),
    );
    let stored = run
        .budgets
        .iter()
        .find(|b| b.workload == *workload && b.params == *params && !b.parts.is_empty());
    if let (None, Some(stored)) = (paths, stored) {
        let own = |f: &&Finding| f.is_of(workload, params);
        found.findings = run.findings.iter().filter(own).cloned().collect();
        found.budget = stored.clone();
        found.threads.clear();
    }
    Some(found)
}

/// Of each server's steps the one with the most transactions under way, which speaks for it.
pub fn speaking(explanations: Vec<Explanation>) -> Vec<Explanation> {
    let key = |e: &Explanation| (e.workload.clone(), e.params.whoever_asks());
    let asking = |e: &Explanation| e.params.asking().map_or(0, |(n, _)| n);
    let mut found: Vec<Explanation> = Vec::new();
    for e in explanations {
        match found.iter_mut().find(|known| key(known) == key(&e)) {
            Some(known) if asking(known) < asking(&e) => *known = e,
            Some(_) => {}
            None => found.push(e),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Budget, Layer, Params, Part, Paths, Status, StepName};

    use super::*;
    use crate::document::format::Screen;
    use crate::document::{markdown as in_markdown, terminal};
    use crate::style::Style;

    fn explanation() -> Explanation {
        let part = |component: &str, share| Part {
            layer: Layer::Kernel,
            component: component.into(),
            seconds_per_transaction: share * 1e-3,
            share,
        };
        let finding = |cause: &str, status| Finding {
            cause: cause.into(),
            layer: Layer::Application,
            status,
            share: 0.6,
            evidence: vec![
                fingerpost_record::Evidence::of(fingerpost_record::Metric::Text)
                    .saying("60 % of | it"),
            ],
            step: None,
            relation: None,
        };
        Explanation {
            workload: "database".into(),
            params: Params::new().with("clients", 50),
            source: "perf tracepoints".into(),
            gap: Some(0.02),
            budget: Budget {
                workload: "database".into(),
                params: Params::new(),
                transactions: 1000,
                seconds_per_transaction: 1e-3,
                parts: vec![
                    part("waiting for a lock", 0.6),
                    part("kernel: \x1b[31mread", 0.3),
                    part("tiny", 0.0004),
                ],
                unexplained: 0.0996,
            },
            paths: None,
            slow: None,
            check: None,
            client: None,
            mapped: None,
            threads: Vec::new(),
            findings: vec![
                finding("app.lock", Status::Confirmed),
                finding("host.steal", Status::RuledOut),
            ],
            under_way: None,
            experiments: Vec::new(),
            observations: Vec::new(),
        }
    }

    fn shown(explanations: &[Explanation]) -> crate::document::Document {
        let explained = Explained {
            answers: Vec::new(),
            explanations,
            comparison: None,
        };
        explained.document()
    }

    fn render(explanations: &[Explanation], style: &Style) -> String {
        terminal::document(&shown(explanations), style)
    }

    fn markdown(explanations: &[Explanation]) -> String {
        in_markdown::document(&shown(explanations))
    }

    #[test]
    fn the_picture_shows_every_part_and_the_rest() {
        let text = render(&[explanation()], &Style::default());
        assert!(
            text.contains("1.000 ms per transaction over 1000 transactions"),
            "{text}"
        );
        assert!(
            text.contains("waiting for a lock")
                && text.contains("60.0 %")
                && text.contains("tracing cost 2.0 %")
        );
        assert!(text.contains("unexplained") && text.contains("10.0 %"));
        assert!(text.contains("locks") && text.contains("confirmed") && text.contains("ruled out"));
        assert!(
            !text.contains('\x1b'),
            "a run file cannot steer the terminal"
        );
    }

    #[test]
    fn a_traced_pass_that_was_faster_has_no_negative_cost() {
        let text = render(
            &[Explanation {
                gap: Some(-0.572),
                ..explanation()
            }],
            &Style::default(),
        );
        assert!(
            text.contains("the traced pass was 57.2 % faster")
                && text.contains("its cost is not known"),
            "{text}"
        );
        assert!(!text.contains("cost -"), "{text}");
    }

    #[test]
    fn in_short_only_the_accused_have_figures() {
        let text = render(&[explanation()], &Style::default());
        assert!(
            text.contains("confirmed")
                && text.contains("60 % of | it")
                && text.contains("ruled out  host steal"),
            "{text}"
        );
        assert_eq!(
            text.matches("60 % of | it").count(),
            1,
            "those ruled out are names"
        );
    }

    #[test]
    fn the_step_with_the_most_clients_speaks_for_its_server() {
        let step = |workload: &str, mix: &str, clients: i64| Explanation {
            workload: workload.into(),
            params: Params::new().with("mix", mix).with("clients", clients),
            ..explanation()
        };
        let all = vec![
            step("database", "read", 1),
            step("database", "read", 50),
            step("database", "read", 2),
            step("database", "write", 5),
        ];
        let found: Vec<String> = speaking(all).iter().map(|e| e.params.to_string()).collect();
        assert_eq!(found, ["clients=50 mix=read", "clients=5 mix=write"]);
    }

    fn observation(clients: i64, observer: &str, totals: &[(&str, f64)]) -> Observation {
        Observation {
            workload: "database".into(),
            params: Params::new().with("clients", clients),
            observer: observer.into(),
            source: "made up".into(),
            totals: totals.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
            ..Observation::default()
        }
    }

    fn watched() -> Run {
        let step = [
            ("step.transactions", 10.0),
            ("step.elapsed.seconds", 1.0),
            ("step.clients", 1.0),
        ];
        let threads = [
            ("server.wall.seconds", 4.0),
            ("server.thread_user.seconds", 0.75),
            ("server.thread_kernel.seconds", 0.25),
            ("server.blocked.lock.seconds", 3.0),
        ];
        let observations = vec![
            observation(1, "client", &[]),
            observation(1, "step", &step),
            observation(5, "client", &[]),
            observation(1, "threads", &threads),
        ];
        Run {
            observations,
            ..Run::default()
        }
    }

    #[test]
    fn a_run_is_taken_apart_by_step_and_what_was_not_watched_is_left_out() {
        let found = of_run(&watched());
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].source.as_str(), found[0].observations.len()),
            ("made up", 3)
        );
        assert!(of_run(&Run::default()).is_empty());
    }

    #[test]
    fn without_followed_requests_there_is_the_threads_time_and_no_budget() {
        let found = of_run(&watched());
        assert_eq!(
            (found[0].budget.parts.len(), found[0].budget.unexplained),
            (0, 1.0)
        );
        assert_eq!(found[0].threads[0].state, "blocked: a lock or condition");
        assert!(
            found[0]
                .findings
                .iter()
                .all(|f| f.status != Status::Confirmed)
        );
        let text = render(&found[..1], &Style::default());
        assert!(
            text.contains("what the threads did")
                && text.contains("requests could not be followed"),
            "{text}"
        );
        assert!(
            markdown(&found[..1])
                .contains("| blocked: a lock or condition | application | 3.000 s | 75.0 % |")
        );
    }

    #[test]
    fn a_budget_of_before_is_shown_as_it_is_stored() {
        let stored = Budget {
            params: Params::new().with("clients", 1),
            ..explanation().budget
        };
        let finding = |workload: &str| Finding {
            step: Some(StepName {
                workload: workload.into(),
                params: stored.params.clone(),
            }),
            ..explanation().findings[0].clone()
        };
        let findings = vec![finding("database"), finding("web")];
        let found = of_run(&Run {
            budgets: vec![stored.clone()],
            findings,
            ..watched()
        });
        assert_eq!(
            (
                &found[0].budget,
                found[0].threads.len(),
                found[0].findings.len()
            ),
            (&stored, 0, 1)
        );
        assert_eq!(
            found[0].findings[0].status,
            Status::Confirmed,
            "what it found then it found"
        );
    }

    #[test]
    fn followed_requests_are_shown_by_class_chain_and_one_by_one() {
        let run = fingerpost_record::fixture::followed::slow_locks();
        let found = of_run(&run);
        let text = render(&found[..1], &Style::default());
        for words in [
            "slowest 1 %",
            "take longer waiting for a lock held by mariadbd",
            "load generator:",
            "queue → lock → waiting for a CPU",
            "not followed",
            "slowest requests",
            "11940 requests followed",
            "per request over 11940 requests",
        ] {
            assert!(text.contains(words), "no “{words}” in {text}");
        }
        let text = markdown(&found[..1]);
        assert!(
            text.contains("| waiting for a lock | application |")
                && text.contains("| lock → server user code | mariadbd |"),
            "{text}"
        );
        assert_eq!(
            serde_json::to_value(&found[0]).unwrap()["slow"]["parts"][0]["component"],
            "waiting for a lock"
        );
    }

    /// Two steps of one database, whose engine is the same.
    fn two_steps() -> Run {
        let mut run = fingerpost_record::fixture::followed::slow_locks();
        let paths = run.paths.remove(0);
        let step = |clients| Paths {
            params: Params::new()
                .with("clients", clients)
                .with("engine", "mariadb"),
            ..paths.clone()
        };
        Run {
            paths: vec![step(5), step(50)],
            ..Run::default()
        }
    }

    #[test]
    fn what_all_steps_share_is_told_once_in_every_form() {
        let found = of_run(&two_steps());
        let page = crate::html::report(&two_steps(), &[], None);
        for text in [render(&found, &Style::default()), markdown(&found), page] {
            let (all, fives) = (
                text.matches("database engine=mariadb").count(),
                text.matches("clients=50").count(),
            );
            assert!(all == 1 && fives > 0, "{all} and {fives}: {text}");
            assert!(
                !text.contains("clients=50 engine") && !text.contains("database clients"),
                "{text}"
            );
        }
        let alone = [
            render(&found[..1], &Style::default()),
            markdown(&found[..1]),
        ];
        assert!(
            alone
                .iter()
                .all(|text| text.contains("database clients=5 engine=mariadb")),
            "{alone:?}"
        );
    }

    #[test]
    fn what_disagrees_with_the_load_generator_is_a_warning() {
        let mut run = fingerpost_record::fixture::followed::healthy();
        run.paths[0].latency.p50 /= 2.0;
        let found = of_run(&run);
        let text = render(&found[..1], &Style::default());
        assert!(
            text.contains("the median latency of the followed requests")
                && text.contains("doubt this budget"),
            "{text}"
        );
    }

    #[test]
    fn markdown_cells_cannot_break_out_of_the_table() {
        let text = markdown(&[explanation()]);
        assert!(text.contains("60 % of \\| it"), "{text}");
        assert!(
            text.contains("| unexplained |  | 99.60 µs | 10.0 % |"),
            "{text}"
        );
    }
}
