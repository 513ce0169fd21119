//! Each conclusion of the five documents beside the verdict that the tool gives from their own figures: none contradicts, none is missing.

use std::collections::BTreeSet;

use fingerpost_compare::conclusions::{Answer, Document, all};
use fingerpost_compare::references;
use fingerpost_record::{Run, fixture};

/// Conclusions for which a document gives no figure, or whose figures are those of another document. Everything else must be true.
const WITHOUT_FIGURE: [&str; 23] = [
    "stalls_with_many_connections_only",
    "sluggish_desktop",
    "integer_three_quarters",
    "libraries_or_allocation",
    "touched_at_once",
    "faster_even_with_a_message",
    "import_slower",
    "innodb_alike",
    "like_a_xeon",
    "apache_other_cause",
    "switches_as_fast",
    "locks_as_coarse_as_before",
    "memory_avoids_pageouts",
    "freeing_costs_as_allocating",
    "object_shared_evenly",
    "fault_a_quarter_of_allocating",
    "zeroing_the_bottleneck_later",
    "faulting_ahead_helps",
    "less_with_less_cache",
    "native_and_no_legacy",
    "script_costs_the_database",
    "folders_favour_files",
    "load_affects_both",
];

#[test]
fn no_verdict_contradicts_its_document() {
    let silent: BTreeSet<&str> = WITHOUT_FIGURE.into();
    let mut table = String::new();
    let mut wrong = Vec::new();
    for c in all() {
        let judged = c.by_source();
        table.push_str(&format!("{} | {} | {} | {} | {}\n", c.document.title(), c.place, c.says, judged.answer.as_str(), judged.figure));
        let expected = if silent.contains(c.key) { Answer::NotMeasured } else { Answer::True };
        if judged.answer != expected || judged.figure.is_empty() || judged.figure.contains("NaN") {
            wrong.push(format!("{}: {} ({})", c.key, judged.answer.as_str(), judged.figure));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}\n{table}");
    println!("{table}");
}

#[test]
fn no_document_and_no_table_is_missing() {
    let of = |document: Document| all().filter(|c| c.document == document).count();
    let counts =
        [Document::Mysteries, Document::Swapfile, Document::ZerofillThree, Document::ZerofillFour, Document::ObjectDatabase].map(of);
    assert_eq!(counts, [42, 10, 11, 4, 8]);
    for table in references::table_names() {
        assert!(all().any(|c| c.tables.contains(&table)), "{table} has no conclusion");
    }
    let keys: BTreeSet<&str> = all().map(|c| c.key).collect();
    assert_eq!(keys.len(), all().count(), "each key once");
    assert!(WITHOUT_FIGURE.iter().all(|key| keys.contains(key)));
    for c in all() {
        assert!(c.tables.iter().all(|t| references::table(t).is_some()), "{}", c.key);
        assert!(!c.place.is_empty() && c.says.ends_with('.') && c.says.len() > 30, "{}", c.key);
    }
}

/// A run without the rows decides nothing, and says what would.
#[test]
fn a_run_without_rows_decides_nothing() {
    for c in all() {
        let judged = c.by_run(&Run::default());
        assert_eq!(judged.answer, Answer::NotMeasured, "{}: {}", c.key, judged.figure);
        assert!(!judged.figure.is_empty(), "{}", c.key);
    }
}

/// Linux of today against Mac OS X of 2005: what can be judged from primitives is.
#[test]
fn a_run_of_today_is_judged_where_it_has_rows() {
    let run = fixture::run();
    let judged = |key: &str| all().find(|c| c.key == key).unwrap().by_run(&run);
    let null = judged("every_call_dear_on_mac");
    assert_eq!(null.answer, Answer::True, "{}", null.figure);
    assert!(null.figure.contains("1.130 µs there"), "{}", null.figure);
    assert_eq!(judged("mysql_collapses").answer, Answer::NotMeasured);
    // The published systems judged as if they were this machine: Mac OS X collapses, Linux does not.
    let of = |system: &str, key: &str| all().find(|c| c.key == key).unwrap().by_run(&references::load(system).unwrap()).answer;
    assert_eq!([of("g5-2.7-darwin", "mysql_collapses"), of("g5-2.5-linux", "mysql_collapses")], [Answer::True, Answer::False]);
    assert_eq!(
        [of("g5-2.7-darwin", "linux_does_not_collapse"), of("g5-2.5-linux", "linux_does_not_collapse")],
        [Answer::False, Answer::True]
    );
    assert_eq!(of("opteron-850-linux", "tcp_latency_doubled"), Answer::True);
    assert_eq!(of("g5-2.7-darwin", "tcp_latency_doubled"), Answer::False, "it is not twice as fast as itself");
    assert_eq!(of("site-powermac-9500", "up_to_seven_times"), Answer::True);
}
