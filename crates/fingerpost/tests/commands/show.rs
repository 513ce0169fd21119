//! `show`, `report`, `archive`, `completions` and `man`, from the outside.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::{Home, Said};
use fingerpost_record::{Run, fixture, load};

fn two_runs() -> Home {
    Home::with(&[fixture::run(), fixture::later_run()])
}

/// The id of the run that a table shows. What was measured comes first.
#[track_caller]
fn id_of(table: &str) -> &str {
    assert!(table.starts_with("all primitives\n"), "{table}");
    table
        .lines()
        .find_map(|line| line.strip_prefix("Run "))
        .map_or("", str::trim)
}

#[test]
fn show_finds_a_run_by_every_name_it_has() {
    let home = two_runs();
    let (first, second) = (fixture::run().id, fixture::later_run().id);
    let path = home.runs().join(format!("{first}.json"));
    let names = [
        ("latest", &second),
        ("latest~1", &first),
        (first.as_str(), &first),
        ("20260103", &second),
        (path.to_str().unwrap(), &first),
    ];
    for (name, id) in names {
        assert_eq!(id_of(&home.says(&["show", name]).well()), id, "{name}");
    }
    assert_eq!(id_of(&home.says(&["show"]).well()), second);
    assert!(
        home.says(&["show", "2026010"])
            .refused()
            .contains("could be any of 2 runs")
    );
    assert!(
        home.says(&["show", "nothing"])
            .refused()
            .contains("there is no run “nothing”")
    );
    assert!(
        home.says(&["show", "latest~2"])
            .refused()
            .contains("holds 2 runs")
    );
    assert!(
        home.says(&["show", "./nothing.json"])
            .refused()
            .contains("No such file")
    );
    assert!(
        home.says(&["show", "ref:nothing-like-it"])
            .refused()
            .contains("nothing-like-it")
    );
}

#[test]
fn a_run_comes_in_on_standard_input_too() {
    let home = two_runs();
    let file = fs::File::open(home.runs().join(format!("{}.json", fixture::run().id))).unwrap();
    let said = Said::of(&home.command(&["show", "-"]).stdin(file).output().unwrap());
    assert!(said.well().contains(&fixture::run().id));
    assert!(
        Said::of(
            &home
                .command(&["show", "-"])
                .stdin(Stdio::null())
                .output()
                .unwrap()
        )
        .refused()
        .contains("standard input is not a complete run")
    );
}

#[test]
fn the_table_tells_figures_doubts_and_what_is_missing() {
    let table = two_runs().says(&["show", "latest~1"]).well();
    for expected in [
        "small-guest",
        "System calls",
        "syscall.null",
        "41.30",
        "± 0.17",
        "fds=100",
        "untrusted: the samples drifted by 12 %",
        "failed: the probe process was killed by signal 9",
        "skipped: parallel.fs, parallel.net, parallel.vm (it needs two CPUs",
        "Hardware counters are not allowed",
        "34 measured, 1 untrusted, 3 skipped, 1 failed",
    ] {
        assert!(
            table.contains(expected),
            "{expected} is missing in\n{table}"
        );
    }
    assert!(!table.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn json_is_the_record_and_nothing_else() {
    let out = two_runs()
        .says(&["show", "latest~1", "--format", "json"])
        .well();
    assert_eq!(out.lines().count(), 1);
    assert!(load::from_slice(out.as_bytes(), "out").unwrap() == fixture::run());
}

#[test]
fn csv_and_markdown_have_a_line_per_measurement() {
    let home = two_runs();
    let csv = home.says(&["show", "latest", "--format", "csv"]).well();
    assert_eq!(csv.lines().count(), 1 + fixture::run().measurements.len());
    assert!(csv.lines().all(|l| l.split(',').count() >= 24));
    let markdown = home
        .says(&["show", "latest", "--format", "markdown"])
        .well();
    assert!(markdown.contains("| syscall.null |") && markdown.contains("## Context switching"));
    assert_eq!(home.says(&["show", "latest", "--format", "xml"]).status, 2);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut long = fixture::run();
    let row = long.measurements[0].clone();
    long.measurements = vec![row; 1_500];
    let home = Home::with(&[long]);
    for format in ["table", "json", "csv", "markdown"] {
        let mut child = home
            .command(&["show", "latest", "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = vec![];
        BufReader::with_capacity(64, child.stdout.take().unwrap())
            .read_until(b'a', &mut first)
            .unwrap();
        let said = Said::of(&child.wait_with_output().unwrap());
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{format}");
    }
}

#[test]
fn a_hostile_file_gives_one_sentence_with_its_path() {
    let home = two_runs();
    let good = fs::read_to_string(home.runs().join(format!("{}.json", fixture::run().id))).unwrap();
    let cases: [(&str, Vec<u8>, &str); 6] = [
        (
            "cut",
            good.as_bytes()[..good.len() / 2].to_vec(),
            "not a complete run",
        ),
        ("empty", vec![], "it is empty"),
        ("deep", "[".repeat(1 << 20).into_bytes(), "nested deeper"),
        (
            "later",
            good.replace("fingerpost/run/2", "fingerpost/run/3").into(),
            "use a newer fingerpost",
        ),
        (
            "typed",
            good.replacen("\"better\":\"lower\"", "\"better\":\"\\u001b[31mlow\"", 1)
                .into(),
            "unknown variant",
        ),
        (
            "nan",
            good.replacen("\"value\":", "\"value\":NaN,\"x\":", 1)
                .into(),
            "line 1 column",
        ),
    ];
    for (name, bytes, expected) in cases {
        let path = home.path().join(format!("{name}.json"));
        fs::write(&path, bytes).unwrap();
        for words in [&["show"][..], &["archive", "import"]] {
            let said = home.says(&[words, &[path.to_str().unwrap()]].concat());
            assert_eq!(said.status, 2, "{name}");
            let first = said.err.lines().next().unwrap();
            assert!(
                first.contains(&format!("{name}.json")) && first.contains(expected),
                "{name}: {first}"
            );
            assert!(!said.err.contains('\u{1b}'));
        }
    }
    assert!(home.says(&["show", "."]).refused().contains("directory"));
    let huge = home.path().join("huge.json");
    fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    assert!(
        home.says(&["show", huge.to_str().unwrap()])
            .refused()
            .contains("is 1099511627776 bytes, more than")
    );
}

#[test]
fn a_run_has_a_label_and_a_note() {
    let (home, id) = (Home::with(&[fixture::run()]), fixture::run().id);
    assert_eq!(
        home.says(&["archive", "label", "latest", "before"]).well(),
        format!("{id}: label “before”\n")
    );
    home.says(&["archive", "note", &id, "the old kernel"])
        .well();
    let table = home.says(&["show", "latest"]).well();
    assert!(
        table.contains("Label") && table.contains("before") && table.contains("the old kernel"),
        "{table}"
    );
    assert!(
        home.says(&["archive", "list"])
            .well()
            .contains("before: all primitives")
    );
    assert!(
        home.says(&["archive", "label", &id, "a\u{1b}[31m"])
            .refused()
            .contains("U+001B")
    );
    assert!(
        home.says(&["archive", "label", &id[..8], "x"])
            .refused()
            .contains("whole id")
    );
    assert_eq!(
        home.says(&["archive", "label", &id, ""]).well(),
        format!("{id}: no label\n")
    );
    assert!(
        home.says(&["run", "syscall.null", "--label", &"x".repeat(61)])
            .refused()
            .contains("at most 60")
    );
}

#[test]
fn the_archive_lists_takes_gives_and_removes() {
    let home = Home::with(&[fixture::run()]);
    let (first, second) = (fixture::run().id, fixture::later_run().id);
    let file = home.path().join("other.json");
    fs::write(&file, serde_json::to_vec(&fixture::later_run()).unwrap()).unwrap();

    assert_eq!(
        home.says(&["archive", "import", "other.json"]).well(),
        format!("{second} added\n")
    );
    assert_eq!(
        home.says(&["archive", "import", "other.json"]).well(),
        format!("{second} was there already\n")
    );
    let different = Run {
        seed: 1,
        ..fixture::later_run()
    };
    fs::write(&file, serde_json::to_vec(&different).unwrap()).unwrap();
    let said = home.says(&["archive", "import", "other.json"]);
    assert!(
        said.status == 2 && said.err.contains("keeps a different run"),
        "{}",
        said.err
    );

    let list = home.says(&["archive", "list"]).well();
    let lines: Vec<&str> = list.lines().collect();
    assert!(
        lines.len() == 3 && lines[1].starts_with(&second) && lines[2].starts_with(&first),
        "{list}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&home.says(&["archive", "list", "--format", "json"]).well()).unwrap();
    assert_eq!(json[0]["id"], second.as_str());
    assert_eq!(json[1]["hostname"], "small-guest");

    home.says(&["archive", "export", "latest", "out.json"])
        .well();
    assert!(load::from_path(&home.path().join("out.json")).unwrap() == fixture::later_run());

    assert!(
        home.says(&["archive", "remove", &first, "20260103"])
            .refused()
            .contains(&second)
    );
    assert!(
        home.says(&["archive", "remove", &first])
            .well()
            .contains(&format!("{first}.json removed"))
    );
    assert_eq!(home.says(&["archive", "list"]).well().lines().count(), 2);
}

#[test]
fn verify_names_each_bad_file() {
    let home = two_runs();
    assert_eq!(
        home.says(&["archive", "verify"]).well(),
        "2 of 2 runs are whole\n"
    );
    fs::write(home.runs().join("broken\u{1b}[2J.json"), "{").unwrap();
    let said = home.says(&["archive", "verify"]);
    assert_eq!(
        (said.status, said.out.as_str()),
        (2, "2 of 3 runs are whole\n")
    );
    assert!(
        said.err
            .contains("broken\u{fffd}[2J.json is not a complete run")
            && !said.err.contains('\u{1b}'),
        "{:?}",
        said.err
    );
    let list = home.says(&["archive", "list"]).well();
    assert!(list.contains("broken") && !list.contains('\u{1b}'));
    assert!(
        id_of(&home.says(&["show", "latest"]).well()).starts_with("20260103"),
        "a broken file is no run"
    );
}

#[test]
fn without_a_home_or_runs_there_is_a_sentence() {
    let home = Home::with(&[]);
    assert!(
        home.says(&["archive", "list"])
            .well()
            .starts_with("No run is kept in ")
    );
    assert_eq!(
        home.says(&["archive", "list", "--format", "json"]).well(),
        "[]\n"
    );
    assert!(home.says(&["show"]).refused().contains("holds 0 runs"));
    let mut lost = home.command(&["show", "latest"]);
    lost.env_remove("FINGERPOST_HOME")
        .env_remove("XDG_DATA_HOME")
        .env_remove("HOME");
    assert!(
        Said::of(&lost.output().unwrap())
            .refused()
            .contains("set FINGERPOST_HOME")
    );
}

#[test]
fn the_report_is_one_file_and_replaces_none_that_it_cannot() {
    let home = two_runs();
    assert!(
        home.says(&["report", "latest", "-o", "r.html"])
            .well()
            .contains("r.html")
    );
    let page = fs::read_to_string(home.path().join("r.html")).unwrap();
    assert!(
        page.starts_with("<!DOCTYPE html>")
            && page.contains("<svg")
            && page.contains(&fixture::later_run().id)
    );
    let streamed = home.says(&["report", "latest", "-o", "/dev/stdout"]).well();
    assert_eq!(streamed, page);
    assert!(
        home.says(&["report", "latest", "-o", "no/such/dir/r.html"])
            .refused()
            .contains("cannot write no/such/dir/r.html")
    );
    assert!(
        home.says(&["report", "latest", "-o", "."])
            .refused()
            .contains("cannot write")
    );
}

#[test]
fn every_command_has_a_page_and_completions() {
    let home = Home::with(&[]);
    home.says(&["man", "--dir", "man"]).well();
    for page in [
        "fingerpost.1",
        "fingerpost-show.1",
        "fingerpost-archive.1",
        "fingerpost-archive-import.1",
    ] {
        let text = fs::read_to_string(home.path().join("man").join(page)).unwrap();
        assert!(
            text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"),
            "{page}"
        );
    }
    let mut pages = fs::read_dir(home.path().join("man"))
        .unwrap()
        .map(|page| page.unwrap().file_name());
    assert!(
        pages.all(|page| !page.to_string_lossy().contains("help")),
        "a page of `help`"
    );
    assert!(home.says(&["man"]).well().contains(".TH fingerpost 1"));
    assert!(
        home.says(&["man", "archive", "list"])
            .well()
            .contains(".TH fingerpost-archive-list 1")
    );
    assert!(
        home.says(&["man", "nothing"])
            .refused()
            .contains("no command “nothing”")
    );
    for shell in ["bash", "zsh", "fish", "elvish"] {
        assert!(
            home.says(&["completions", shell])
                .well()
                .contains("FINGERPOST_COMPLETE"),
            "{shell}"
        );
    }
    // Its script evaluated the line, and put names into it unquoted.
    assert!(home.says(&["completions", "powershell"]).status == 2);
}

#[test]
fn names_of_this_machine_are_completed_and_hostile_ones_not() {
    let home = Home::with(&[fixture::run()]);
    let id = fixture::run().id;
    fs::write(home.runs().join("2026 evil $(touch x).json"), "{}").unwrap();
    fs::write(home.runs().join("2026\u{1b}[2J.json"), "{}").unwrap();
    for (words, wanted) in [
        (&["sho"][..], "show"),
        (&["show", "20"], id.as_str()),
        (&["show", "la"], "latest"),
        (&["compare", "latest", "ref:g5-2.5"], "ref:g5-2.5-linux"),
        (&["archive", "export", ""], id.as_str()),
        (&["run", "syscall.p"], "syscall.poll"),
        (&["run", "datab"], "database"),
        (&["ab", "web"], "web"),
        (&["run", "zerof"], "zerofill"),
        (&["list", "app.lo"], "app.lock"),
        (&["run", "database", "--set", "engi"], "engine="),
        (&["run", "syscall.poll", "--set", "fd"], "fds="),
        (&["run", "database", "--set", "engine=m"], "engine=mariadb"),
        (&["run", "web", "--set=server="], "--set=server=nginx"),
        (&["ab", "web", "--a", "keepalive=o"], "keepalive=off"),
        (
            &["run", "site", "--set", "store=lmdb,fi"],
            "store=lmdb,files-mmap",
        ),
        (
            &["run", "ipc.pipe", "--set", "placement="],
            "placement=cross",
        ),
        (&["prove", "cpu.q"], "cpu.quota"),
        (&["explain", "--exp"], "--experiment"),
    ] {
        let found = home.completes(words);
        assert!(found.iter().any(|f| f == wanted), "{words:?}: {found:?}");
        assert!(
            found.iter().all(|f| f.starts_with(words[words.len() - 1]) && !f.contains(['$', '\u{1b}', ' '])),
            "{words:?}: {found:?}"
        );
    }
    assert_eq!(home.completes(&["show", "no-such-run"]), [""; 0]);
    // What is labelled or removed lies in the archive: no published system does.
    for verb in ["export", "label", "note", "remove"] {
        let found = home.completes(&["archive", verb, ""]);
        assert!(
            found.contains(&"latest".to_owned())
                && !found.iter().any(|run| run.starts_with("ref:")),
            "{verb}: {found:?}"
        );
    }
}

#[test]
fn bash_is_told_what_stands_behind_the_sign_that_cuts_words() {
    let home = Home::with(&[]);
    let script = home.says(&["completions", "bash"]).well();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_fingerpost"))
        .parent()
        .unwrap();
    let path = std::env::join_paths(
        [bin.to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    // As bash sets them where its COMP_WORDBREAKS are those that it begins with.
    for (line, words, wanted) in [
        (
            "fingerpost run database --set engine=m",
            &["fingerpost", "run", "database", "--set", "engine", "=", "m"][..],
            &["mariadb"][..],
        ),
        (
            "fingerpost run database --set engine=",
            &["fingerpost", "run", "database", "--set", "engine", "="],
            &["mariadb", "postgresql", "sqlite"],
        ),
        (
            "fingerpost show ref:g5-2.5",
            &["fingerpost", "show", "ref", ":", "g5-2.5"],
            &["g5-2.5-linux"],
        ),
        (
            "fingerpost run datab",
            &["fingerpost", "run", "datab"],
            &["database"],
        ),
    ] {
        let last = words.last().filter(|word| **word != "=").unwrap_or(&"");
        let ask = format!(
            "{script}\nCOMP_LINE=$1 COMP_POINT=${{#1}} COMP_CWORD=$(($# - 3)) COMP_WORDS=(\"${{@:3}}\")\n\
             _fingerpost_complete fingerpost \"$2\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let mut bash = std::process::Command::new("bash");
        bash.args(["--norc", "-c", &ask, "bash", line, last])
            .args(words);
        let said = bash
            .env("FINGERPOST_HOME", home.path())
            .env("PATH", &path)
            .output()
            .unwrap();
        let told = Said::of(&said).well();
        assert_eq!(told.lines().collect::<Vec<_>>(), wanted, "{line}");
    }
}

#[test]
fn what_run_really_writes_conforms_to_the_committed_schema() {
    let home = Home::with(&[]);
    let said = home.says(&[
        "run",
        "syscall.null",
        "clock.gettime",
        "--profile",
        "quick",
        "--budget",
        "1",
        "--format",
        "json",
        "--quiet",
    ]);
    assert!(matches!(said.status, 0 | 3), "{}", said.err);
    let schema = fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/run.schema.json"
    ))
    .unwrap();
    let schema: serde_json::Value = serde_json::from_slice(&schema).unwrap();
    let run: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(fixture::conform::conforms(&schema, &run), Ok(()));
    let kept = home.says(&["show", "latest", "--format", "json"]).well();
    assert_eq!(kept, said.out, "what is kept is what was printed");
    assert!(
        home.says(&["archive", "verify"])
            .well()
            .starts_with("1 of 1")
    );
}

#[test]
fn a_reference_shows_all_that_its_source_tells_and_no_more() {
    let home = Home::with(&[]);
    let site = home.says(&["show", "ref:site-powermac-9500"]).well();
    // Eleven rounds; 509 and 72 ticks are 8.483 s and 1.200 s.
    assert!(
        site.contains("8.483 s") && site.contains("7.069") && site.contains("15 June 1996"),
        "{site}"
    );
    let launch = home.says(&["show", "ref:launch-10.1"]).well();
    let tells = |text: &str, what: &str, figure: &str| {
        text.lines().any(|line| {
            line.trim()
                .strip_prefix(what)
                .is_some_and(|rest| rest.trim() == figure)
        })
    };
    assert!(
        tells(&launch, "cpu user", "47.7 %")
            && tells(&launch, "pageins", "2304")
            && launch.contains("our guess"),
        "{launch}"
    );
    let mysql = home.says(&["show", "ref:g5-2.7-darwin"]).well();
    assert!(
        tells(&mysql, "CPU use, at least", "1.65 CPUs")
            && mysql.contains("prints 25 % for 50 clients"),
        "{mysql}"
    );
    let report = home.path().join("site.html");
    home.says(&[
        "report",
        "ref:site-powermac-9500",
        "-o",
        report.to_str().unwrap(),
    ])
    .well();
    let report = fs::read_to_string(report).unwrap();
    for invented in ["an ordinary user", "steal 0.00", "Load before"] {
        assert!(!report.contains(invented), "{invented}");
    }
}
