//! What a run's rows of the labs come to, in the sentences that a person reads first.

use fingerpost_compare::references;
use fingerpost_record::fixture::{self, loaded};
use fingerpost_record::{Outcome, Profile, Run};
use fingerpost_report::{View, html};

fn of(run: &Run) -> Vec<String> {
    View::of(run, fingerpost_labs::views()).answers
}

#[test]
fn a_collapse_is_told_first_and_a_run_without_conclusions_tells_nothing() {
    let mut run = loaded::collapsed();
    let scaling = |run: &Run| {
        of(run)
            .into_iter()
            .find(|a| a.contains("collapses from"))
            .unwrap()
    };
    assert!(!scaling(&run).contains("untrusted"), "{}", scaling(&run));
    run.measurements
        .iter_mut()
        .for_each(|m| m.outcome = Outcome::Untrusted);
    assert!(
        scaling(&run).ends_with(" (untrusted: all of its rows)."),
        "{}",
        scaling(&run)
    );
    assert!(of(&Run::default()).is_empty());
}

#[test]
fn who_asked_for_the_page_ins_since_boot_is_told_them_and_not_that_nothing_was_compared() {
    let mut run = references::load("launch-10.1").unwrap();
    run.profile = Profile::Quick;
    run.measurements
        .retain(|m| m.probe == "launch.pageins" || m.params.text("placement") == Some("default"));
    let told = of(&run);
    assert_eq!(told[0], "2304 page-ins since boot.", "{told:?}");
    let mut late = run.clone();
    late.measurements.iter_mut().for_each(|m| {
        (m.outcome, m.reason) = (Outcome::Untrusted, Some("up for 120 minutes".into()))
    });
    assert_eq!(
        of(&late)[0],
        "2304 page-ins since boot (untrusted: up for 120 minutes)."
    );
    assert!(
        told.iter()
            .all(|sentence| !sentence.contains("One placement")),
        "{told:?}"
    );
}

#[test]
fn an_answer_says_how_many_of_its_rows_are_untrusted() {
    let mut run = references::load("flops-g5-2.7-gcc-3.3").unwrap();
    let told = |run: &Run| of(run).join(" ");
    assert!(
        told(&run).contains("FLOPS") && !told(&run).contains("untrusted"),
        "{}",
        told(&run)
    );
    run.measurements[0].outcome = Outcome::Untrusted;
    assert!(
        told(&run).contains(&format!(
            " (1 of {} rows is untrusted).",
            run.measurements.len()
        )),
        "{}",
        told(&run)
    );
    run.measurements[1].outcome = Outcome::Untrusted;
    assert!(
        told(&run).contains(&format!(
            " (2 of {} rows are untrusted).",
            run.measurements.len()
        )),
        "{}",
        told(&run)
    );
}

#[test]
fn the_sites_own_table_stands_on_its_page_and_on_no_other() {
    let page = |run: &Run| html::report(run, fingerpost_labs::views(), None);
    let own = page(&references::load("site-powermac-9500").unwrap());
    assert!(own.contains("7.069") && own.contains("fs/odb") && own.contains("id=\"site-rounds\""));
    assert!(!own.contains("<script"));
    assert!(!page(&fixture::run()).contains("site-rounds"));
}
