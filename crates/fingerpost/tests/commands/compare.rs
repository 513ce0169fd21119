//! `compare`, `show` in other tools' formats, and imports, from the outside.

use std::fs;

use crate::common::Home;
use fingerpost_record::fixture;

fn two_runs() -> Home {
    Home::with(&[fixture::run(), fixture::later_run()])
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn a_run_is_like_itself_and_the_headline_says_so() {
    let text = two_runs().says(&["compare", "latest", "latest"]).well();
    assert!(
        text.lines().next().unwrap().contains("performs like")
            || text.lines().next().unwrap().contains("No difference"),
        "{text}"
    );
    assert!(!text.contains("slower\n"), "{text}");
}

#[test]
fn the_latest_run_is_not_compared_with_itself_by_default() {
    let home = two_runs();
    let said = home.says(&["compare", "latest"]).refused();
    assert!(
        said.contains("latest~1") && said.lines().count() == 1,
        "{said}"
    );
    assert_eq!(
        home.says(&["compare", "latest~1"]).well(),
        home.says(&["compare", "latest~1", "latest"]).well()
    );
}

#[test]
fn json_is_one_document_with_the_fields_of_the_design() {
    let home = two_runs();
    let v = json(
        &home
            .says(&["compare", "latest~1", "latest", "--format", "json"])
            .well(),
    );
    assert_eq!(v["base"]["ids"][0], fixture::run().id);
    let rows = v["rows"].as_array().unwrap();
    assert!(!rows.is_empty() && v["headline"].is_string() && v["causes"].is_array());
    let verdicts = ["slower", "faster", "same", "unresolved"];
    assert!(
        rows.iter()
            .all(|r| verdicts.contains(&r["verdict"].as_str().unwrap()) && r["params"].is_object())
    );
    let row = rows.iter().find(|r| r["probe"] == "syscall.null").unwrap();
    assert!((row["ratio"]["value"].as_f64().unwrap() - 1.02).abs() < 1e-9);
}

#[test]
fn the_reference_systems_lead_to_the_authors_conclusion() {
    let home = Home::with(&[]);
    let text = home
        .says(&["compare", "ref:g5-2.5-linux", "ref:g5-2.7-darwin"])
        .well();
    assert!(
        text.lines()
            .next()
            .unwrap()
            .contains("the operating system, not the CPU"),
        "{text}"
    );
    assert!(text.contains("collapses on g5-2.7-darwin from 5 clients on"));
    let shown = home.says(&["show", "ref:g5-2.7-darwin"]).well();
    assert!(
        shown.contains("process.fork") && shown.contains("659"),
        "{shown}"
    );
}

#[test]
fn fail_on_sets_the_status_and_still_prints() {
    let home = Home::with(&[]);
    let words = [
        "compare",
        "ref:g5-2.5-linux",
        "ref:g5-2.7-darwin",
        "--fail-on",
        "slower",
    ];
    let said = home.says(&words);
    assert_eq!((said.status, said.err.as_str()), (1, ""));
    assert!(said.out.contains("syscall.null"));
    home.says(&[
        "compare",
        "ref:g5-2.5-linux",
        "ref:g5-2.5-linux",
        "--fail-on",
        "slower",
    ])
    .well();
}

#[test]
fn several_runs_a_side_directories_and_parts_of_runs() {
    let home = two_runs();
    let v = json(
        &home
            .says(&["compare", "latest,latest~1", "./runs", "--format", "json"])
            .well(),
    );
    assert_eq!(
        (
            v["base"]["ids"].as_array().unwrap().len(),
            v["new"]["ids"].as_array().unwrap().len()
        ),
        (2, 2)
    );
    let (base, new) = (
        "ref:zerofill-cube-450[api=vm_allocate]",
        "ref:zerofill-cube-450[api=mmap]",
    );
    let v = json(
        &home
            .says(&["compare", base, new, "--format", "json"])
            .well(),
    );
    assert!(
        v["rows"]
            .as_array()
            .unwrap()
            .iter()
            .all(|r| r["verdict"] == "faster")
    );
    assert_eq!(v["not_compared"].as_array().unwrap().len(), 0);
}

#[test]
fn csv_and_markdown_come_out_too() {
    let home = two_runs();
    assert!(
        home.says(&["compare", "latest~1", "latest", "--format", "csv"])
            .well()
            .starts_with("probe,params,unit")
    );
    assert!(
        home.says(&["compare", "latest~1", "latest", "--format", "markdown"])
            .well()
            .contains("\n| syscall.null |")
    );
}

#[test]
fn what_cannot_be_compared_is_refused_in_a_sentence() {
    let home = two_runs();
    for (words, expected) in [
        (
            ["compare", "nothing", "latest"],
            "there is no run “nothing”",
        ),
        (
            ["compare", "latest", "ref:nothing"],
            "there is no reference system “nothing”",
        ),
        (["compare", "latest[", "latest"], "closing bracket"),
        (
            ["compare", "latest", "latest[api=nothing]"],
            "has no row with api=nothing",
        ),
        (["compare", ",", "latest"], "names no run"),
        (["compare", "latest,-", "-"], "can be one run only"),
        (["compare", "./nothing.json", "latest"], "No such file"),
    ] {
        let sentence = home.says(&words).refused();
        assert!(sentence.contains(expected), "{sentence}");
    }
    fs::write(
        home.path().join("cut.json"),
        r#"{"schema":"fingerpost/run/1","id":"x","measurements":[{"samples":[1,2"#,
    )
    .unwrap();
    assert!(
        home.says(&["compare", "./cut.json", "latest"])
            .refused()
            .contains("is not a complete run")
    );
    assert_eq!(
        home.says(&["compare", "latest", "latest", "--threshold", "-1"])
            .status,
        2
    );
}

#[test]
fn other_tools_read_our_runs() {
    let home = two_runs();
    let bench = home.says(&["show", "--format", "go-bench"]).well();
    assert!(
        bench
            .lines()
            .any(|l| l.starts_with("BenchmarkSyscallNull-1 ") && l.ends_with(" ns/op")),
        "{bench}"
    );
    let metrics = home.says(&["show", "--format", "openmetrics"]).well();
    assert!(
        metrics.contains("fingerpost_operation_seconds{probe=\"syscall.null\"")
            && metrics.ends_with("# EOF\n")
    );
}

#[test]
fn other_tools_results_become_runs_that_compare() {
    let home = Home::with(&[]);
    let export = |name: &str, factor: f64| {
        let times: Vec<String> = (0..10)
            .map(|i| (factor * (0.1 + 0.0002 * f64::from(i))).to_string())
            .collect();
        let text = format!(
            r#"{{"results":[{{"command":"make","mean":{},"times":[{}]}}]}}"#,
            0.1 * factor,
            times.join(",")
        );
        fs::write(home.path().join(name), text).unwrap();
        let said = home
            .says(&["archive", "import", "--from", "hyperfine", name])
            .well();
        said.split_whitespace().next().unwrap().to_owned()
    };
    let (fast, slow) = (export("fast.json", 1.0), export("slow.json", 1.5));
    assert!(
        home.says(&["archive", "import", "--from", "hyperfine", "fast.json"])
            .well()
            .contains("was there already")
    );
    let unnamed = home.says(&["archive", "import", "fast.json"]);
    assert!(
        unnamed.status == 2 && unnamed.err.contains("add `--from hyperfine`"),
        "{}",
        unnamed.err
    );
    let v = json(
        &home
            .says(&["compare", &fast, &slow, "--format", "json"])
            .well(),
    );
    assert_eq!(
        (
            v["rows"][0]["probe"].as_str(),
            v["rows"][0]["verdict"].as_str()
        ),
        (Some("command.time"), Some("slower"))
    );
    fs::write(
        home.path().join("host.0"),
        "[lmbench3.0 results for Linux tiger 5.4]\nSimple syscall: 0.05 microseconds\n",
    )
    .unwrap();
    let id = home
        .says(&["archive", "import", "--from", "lmbench", "host.0"])
        .well();
    let v = json(
        &home
            .says(&[
                "compare",
                "ref:g5-2.7-darwin",
                id.split_whitespace().next().unwrap(),
                "--format",
                "json",
            ])
            .well(),
    );
    assert_eq!(v["rows"][0]["verdict"], "faster");
    let refused = home.says(&["archive", "import", "--from", "lmbench", "fast.json"]);
    assert!(
        refused.status == 2 && refused.err.contains("is not a lmbench result"),
        "{}",
        refused.err
    );
}

#[test]
fn a_published_table_is_replayed_beside_a_run_of_ones_own() {
    let home = two_runs();
    let text = home.says(&["replay", "ref:lmbench-syscall-signal"]).well();
    let line = text
        .lines()
        .find(|l| l.starts_with("syscall.null"))
        .unwrap_or_else(|| panic!("{text}"));
    // As printed, in microseconds, and the later run's own.
    assert!(
        ["0.14", "1.13", "0.08", "0.19"]
            .iter()
            .all(|cell| line.split_whitespace().any(|w| w == *cell)),
        "{line}"
    );
    assert!(
        text.contains(&fixture::later_run().id) && text.contains("Here: true: the null call"),
        "{text}"
    );
    let v = json(
        &home
            .says(&[
                "replay",
                "ref:lmbench-syscall-signal",
                "latest~1",
                "--format",
                "json",
            ])
            .well(),
    );
    let null = &v["tables"][0]["lines"][0]["here"]["estimate"];
    let own = fixture::run()
        .measurements
        .iter()
        .find(|m| m.probe == "syscall.null")
        .unwrap()
        .estimate
        .unwrap();
    for (key, expected) in [("value", own.value), ("low", own.low), ("high", own.high)] {
        assert!(
            (null[key].as_f64().unwrap() * 1000.0 / expected - 1.0).abs() < 1e-9,
            "{key}: {null}"
        );
    }
    assert!(
        own.low < own.high && (line.contains('±') || line.contains('–')),
        "the interval is shown: {line}"
    );
    assert!(v["conclusions"].as_array().unwrap().iter().all(|c| {
        ["true", "false", "not resolved", "not measured"]
            .contains(&c["here"]["answer"].as_str().unwrap())
    }));
    assert!(
        home.says(&["replay", "mysql", "--format", "markdown"])
            .well()
            .contains("# The published tables, on your machine")
    );
    assert_eq!(home.says(&["replay", "ref:nothing"]).status, 2);
}

#[test]
fn every_published_name_is_replayed_and_the_page_holds_all() {
    let home = two_runs();
    let completed = home.completes(&["replay", "ref:"]);
    for name in [
        "all",
        "mysql",
        "mysql-scaling",
        "site",
        "g5-2.7-darwin",
        "zerofill-4",
    ] {
        let name = format!("ref:{name}");
        assert!(
            home.says(&["replay", &name])
                .well()
                .contains(" conclusions "),
            "{name}"
        );
        assert!(
            completed.contains(&name),
            "{name} is completed: {completed:?}"
        );
    }
    home.says(&["replay", "-o", "replay.html"]).well();
    let page = fs::read_to_string(home.path().join("replay.html")).unwrap();
    for part in [
        "The published tables, on your machine",
        "id=\"mysql-scaling\"",
        "id=\"conclusions-5\"",
        "Dave Winer",
        "105 conclusions",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn comparing_without_common_rows_is_told_by_the_status_too() {
    let home = Home::with(&[]);
    let said = home.says(&[
        "compare",
        "ref:launch-10.1",
        "ref:flops-g5-2.7-gcc-4.0",
        "--fail-on",
        "slower",
    ]);
    assert_eq!(said.status, 2, "{}", said.err);
    assert!(
        said.out.contains("no row in common") && said.err.contains("nothing was compared"),
        "{}{}",
        said.out,
        said.err
    );
    // A database with other settings than the article's: it is said with which ones there would be rows.
    let home = Home::with(&[crate::common::lab("database")]);
    let said = home.says(&["compare", "ref:g5-2.5-linux", "latest"]);
    assert_eq!(said.status, 2, "{}{}", said.out, said.err);
    assert!(
        said.err
            .contains("--set engine=mariadb --set storage=myisam")
            && !said.err.contains("run web"),
        "{}",
        said.err
    );
}

/// A server of today stands for the published one, and the comparison says so.
#[test]
fn an_own_run_of_mariadb_has_rows_in_common_with_the_article() {
    let mut run = fingerpost_compare::references::load("opteron-850-linux").unwrap();
    run.id = "20260203T040506Z-00000001".into();
    run.profile = fingerpost_record::Profile::Standard;
    run.measurements
        .retain(|m| m.probe == "database.throughput");
    for m in &mut run.measurements {
        m.params = m.params.clone().with("engine", "mariadb");
    }
    let mut default = run.clone();
    default.id = "20260203T040506Z-00000002".into();
    default
        .measurements
        .iter_mut()
        .for_each(|m| m.params = m.params.clone().with("storage", "innodb"));
    let compared = |runs: &[fingerpost_record::Run], new: &str| {
        Home::with(runs)
            .says(&["compare", "ref:g5-2.7-darwin", new])
            .well()
    };
    let text = compared(std::slice::from_ref(&run), "latest");
    assert!(
        text.contains("engine mariadb stands for the published mysql"),
        "{text}"
    );
    assert!(
        !text.contains("no row in common") && !text.contains("storage innodb"),
        "{text}"
    );
    // A default run has another storage engine: it is compared by the same questions, and each row says so.
    let text = compared(std::slice::from_ref(&default), "latest");
    let told = "engine mariadb stands for the published mysql; storage innodb stands for the published myisam";
    // Seven numbers of clients, and the peak with the query cache.
    assert_eq!(text.matches(told).count(), 8, "{text}");
    // Where the published engine was measured, too, that one alone is beside it.
    run.measurements.extend(default.measurements);
    let text = compared(&[run], "latest");
    assert!(
        !text.contains("storage innodb stands for")
            && text.contains("only the new side has it: database.throughput"),
        "{text}"
    );
}
