use fingerpost_record::evidence::{Chain, Held};
use fingerpost_record::{Blocker, Component, Link, Params};

use super::*;

/// A fact of this kind with all that any of them may have.
fn full(metric: Metric) -> Evidence {
    Evidence {
        of: Some(4.0),
        threshold: Some(0.3),
        ratio: Some(Ratio {
            value: 1.5,
            low: 1.4,
            high: 1.6,
        }),
        who: vec![Held {
            by: Blocker::thread("stress"),
            share: 0.2,
        }],
        chains: vec![Chain {
            links: vec![Link::Queue, Link::Lock],
            end: Component::Cpu,
            share: 0.1,
        }],
        alone: Some(Alone::Part),
        answer: Some(Answer::Faster),
        missing: vec![Missing {
            reading: "server.nice".into(),
            of: Vec::new(),
            compared: false,
        }],
        ..Evidence::pair(metric, [0.1, 0.2])
            .named("name")
            .changing("off", "on")
            .among(["one", "other"])
            .about("cpu.quota")
            .saying("in their words")
    }
}

#[test]
fn every_metric_has_words_for_whatever_is_known_of_it() {
    let odd = ["NaN", "inf ", "  "];
    for metric in Metric::ALL {
        for whose in [Whose::Transactions, Whose::Requests, Whose::Program] {
            for fact in [Evidence::of(*metric), full(*metric)] {
                let said = words(&fact, whose);
                assert!(
                    (*metric == Metric::Text || *metric == Metric::ClientSaysLimit)
                        || said.len() > 3,
                    "{metric:?}"
                );
                for part in odd.iter().filter(|_| fact.value.is_some()) {
                    assert!(!said.contains(part), "{metric:?}: {said}");
                }
            }
        }
    }
}

/// Words that are no terms of the field, or that judge: users do not read them.
#[test]
fn no_sentence_has_a_word_of_before() {
    for metric in Metric::ALL {
        let said = words(&full(*metric), Whose::Transactions);
        for word in [
            "dearer",
            "convict",
            "guilt",
            "told of",
            "clears nobody",
            "planted",
            "suspected",
        ] {
            assert!(!said.contains(word), "{metric:?}: {said}");
        }
    }
}

#[test]
fn a_service_has_requests_and_a_program_its_own_time() {
    let shown = |fact: &Evidence| {
        [Whose::Transactions, Whose::Requests, Whose::Program].map(|whose| words(fact, whose))
    };
    assert_eq!(
        shown(&Evidence::figure(Metric::Calls, 12.0)),
        [
            "12 system calls per transaction",
            "12 system calls per request",
            "12 system calls in all"
        ]
    );
    let waits = Evidence::figure(Metric::CpuWait, 0.2).within([0.18, 0.22]);
    assert_eq!(
        shown(&waits),
        [
            "waiting for a CPU is 20 % (18 to 22 %) of a request",
            "waiting for a CPU is 20 % (18 to 22 %) of a request",
            "waiting for a CPU is 20 % (18 to 22 %) of the program's time"
        ]
    );
    assert!(
        words(&Evidence::of(Metric::ClientSharesCpus), Whose::Requests).contains("its clients")
    );
    // A name that has such a word in it stays as it is.
    let named = Evidence::figure(Metric::OtherCpus, 0.6).named("the server per transaction");
    assert!(words(&named, Whose::Program).contains("“the server per transaction”"));
}

#[test]
fn what_neither_rules_out_nor_accuses_says_both_figures() {
    let fact = Evidence {
        high: Some(1.2),
        ..Evidence::of(Metric::ServerCpus).beside(1.0).undecided()
    };
    assert_eq!(
        words(&fact, Whose::Transactions),
        "CPUs that the server used may be 1.200 CPUs with its interval, and 1 CPUs would accuse: that neither \
         rules it out nor accuses"
    );
}

#[test]
fn each_answer_is_told_in_the_direction_that_it_has() {
    let of = |answer, value: f64, low, high| {
        let fact = Evidence {
            ratio: Some(Ratio { value, low, high }),
            answer: Some(answer),
            ..Evidence::of(Metric::Experiment).named("the CPU quota lifted")
        };
        words(&fact, Whose::Transactions)
    };
    assert_eq!(
        of(Answer::Faster, 1.92, 1.85, 1.99),
        "with the CPU quota lifted requests were 1.92 (1.85–1.99) times faster"
    );
    assert_eq!(
        of(Answer::Slower, 0.5, 0.4, 0.8),
        "with the CPU quota lifted requests were 2.00 (1.25–2.50) times slower"
    );
    assert!(of(Answer::Same, 1.0, 0.99, 1.01).contains("as fast as before"));
    assert!(of(Answer::Unresolved, 1.1, 0.9, 1.4).contains("decides nothing"));
    assert!(of(Answer::NotDone, 1.0, 1.0, 1.0).contains("not tried"));
}

#[test]
fn a_row_and_what_differs_are_told_with_both_sides() {
    let row = Evidence {
        params: Params::new().with("clients", 8),
        row_unit: Some(Unit::Nanoseconds),
        ratio: Some(Ratio {
            value: 2.0,
            low: 1.9,
            high: 2.1,
        }),
        ..Evidence::pair(Metric::Row, [100.0, 200.0]).named("syscall.null")
    };
    assert_eq!(
        words(&row, Whose::Transactions),
        "syscall.null (clients=8): 100.0 ns → 200.0 ns, ratio 2.00 (1.90 to 2.10)"
    );
    let differs = Evidence::of(Metric::HostDiffers)
        .named("kernel")
        .changing("6.1", "6.12")
        .among(["old", "new"]);
    assert_eq!(
        words(&differs, Whose::Transactions),
        "kernel differs: 6.1 on old, 6.12 on new"
    );
}

#[test]
fn a_finding_says_its_step_and_what_it_follows_from() {
    let finding = Finding {
        step: Some(StepName {
            workload: "database".into(),
            params: Params::new().with("clients", 8),
        }),
        relation: Some(fingerpost_record::Relation::FollowsFrom("app.work".into())),
        ..Finding::new(
            "cpu.saturated",
            fingerpost_record::Layer::Scheduler,
            fingerpost_record::Status::Likely,
            0.2,
            vec![Evidence::figure(Metric::Calls, 3.5)],
        )
    };
    assert_eq!(
        evidence(&finding),
        [
            "database clients=8: 3.500 system calls per transaction",
            "it follows from app.work (CPU: the server's own code), which comes first"
        ]
    );
}
