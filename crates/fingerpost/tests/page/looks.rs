//! How the pages look: pictures of each in light, dark and on a phone, and an accessibility checker over all of them.
//!
//! The pictures are kept under the target directory (`tmp/pictures`) for a person to look at.

use std::path::PathBuf;

use fingerpost_record::fixture::{self, loaded};

use crate::browser::Browser;
use crate::journeys::{clean, setting};

/// axe-core (MPL-2.0, see LICENSE beside it), an accessibility checker.
const AXE: &str = include_str!("axe/axe.min.js");

fn pictures() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pictures")
}

/// What the checker finds wrong, a line each.
fn violations(browser: &Browser) -> Vec<String> {
    browser.run(&format!("{AXE};"));
    let found = browser.run_async(
        "const done = arguments[arguments.length - 1];
         axe.run(document, { resultTypes: ['violations'] }).then(
           r => done(r.violations.map(v => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(' | ')}`)),
           e => done([String(e)]));",
    );
    found.as_array().expect("a list").iter().map(|v| v.as_str().unwrap_or("?").to_owned()).collect()
}

/// Each look of a page: no violation, nothing beyond its sides, a picture.
#[track_caller]
fn look_at(browser: &Browser, name: &str, address: &str) {
    for (look, scheme, width) in [("light", "light", 1200), ("dark", "dark", 1200), ("phone", "light", 390)] {
        browser.look(scheme, width);
        browser.open(address);
        browser.picture(&pictures().join(format!("{name}-{look}.png")));
        let wrong = violations(browser);
        assert!(wrong.is_empty(), "{name}, {look}: {wrong:#?}");
        let beyond = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth");
        assert!(beyond.as_i64().unwrap() <= 0, "{name}, {look}: {beyond} pixels wider than the screen");
    }
}

#[test]
fn every_page_is_fit_for_all_in_light_and_dark_and_on_a_phone() {
    let runs = [
        loaded::healthy(),
        loaded::collapsed(),
        fixture::run(),
        fixture::followed::slow_locks(),
        fixture::with_id("20260108T030405Z-0000000f"),
    ];
    let Some((_turn, server, browser)) = setting(&runs) else { return };
    let (healthy, collapsed) = (loaded::healthy().id, loaded::collapsed().id);
    for (name, path) in [
        ("list", String::new()),
        ("run", format!("run/{collapsed}")),
        ("followed", format!("run/{}", fixture::followed::slow_locks().id)),
        ("compare", format!("compare?run={healthy}&run={collapsed}")),
        ("history", "history?probe=syscall.null".to_owned()),
        ("measure", "measure".to_owned()),
        ("zerofill", "zerofill".to_owned()),
        ("import", "import".to_owned()),
        ("services", "services".to_owned()),
        ("references", "references".to_owned()),
        ("reference", "reference/g5-2.7-darwin".to_owned()),
        ("replay", "replay/all".to_owned()),
        ("docs", "docs".to_owned()),
        ("docs-glossary", "docs/glossary".to_owned()),
        ("docs-comparing", "docs/comparing".to_owned()),
        ("docs-observers", "docs/observers".to_owned()),
        ("docs-service", "docs/service".to_owned()),
    ] {
        look_at(&browser, name, &format!("{}{path}", server.address));
    }
    clean(&server, &browser);
    // Error pages, whose status the console notes.
    look_at(&browser, "missing", &format!("{}run/20260101T000000Z-ffffffff", server.address));
    look_at(&browser, "one-ticked", &format!("{}compare?run={healthy}", server.address));
}

#[test]
fn the_report_is_one_file_that_is_fit_for_all() {
    let Some((_turn, server, browser)) = setting(&[loaded::healthy(), loaded::collapsed(), fixture::followed::slow_locks()]) else {
        return;
    };
    let (healthy, collapsed) = (loaded::healthy().id, loaded::collapsed().id);
    let followed = fixture::followed::slow_locks().id;
    for (name, words) in
        [("report", vec![collapsed.as_str()]), ("report-followed", vec![followed.as_str()]), ("report-of-two", vec![&healthy, &collapsed])]
    {
        let file = server.home.path().join(format!("{name}.html"));
        let mut all = vec!["report"];
        all.extend(words);
        all.extend(["-o", file.to_str().unwrap()]);
        server.home.says(&all).well();
        assert!(std::fs::metadata(&file).unwrap().len() < 1 << 20);
        look_at(&browser, name, &format!("file://{}", file.display()));
    }
    let asked: Vec<String> = browser.requests().into_iter().filter(|url| url.starts_with("http")).collect();
    assert!(asked.is_empty(), "the report asked for {asked:?}");
    assert!(browser.console().is_empty());
}

/// The published systems: what a browser shows of each as a report, and of all replayed.
#[test]
fn every_reference_is_fit_for_all() {
    let Some((_turn, server, browser)) = setting(&[]) else { return };
    let names = server.home.says(&["show", "ref:"]).refused();
    let names = names.trim_end().split_once("there are ").expect("it says which there are").1.replace('\n', " ");
    let names: Vec<&str> = names.split(", ").map(str::trim).collect();
    assert!(names.len() >= 14, "{names:?}");
    let file = |name: &str| server.home.path().join(format!("{name}.html"));
    for name in &names {
        server.home.says(&["report", &format!("ref:{name}"), "-o", file(name).to_str().unwrap()]).well();
        look_at(&browser, &format!("ref-{name}"), &format!("file://{}", file(name).display()));
        let text = browser.text("main");
        assert!(text.contains(&format!("fingerpost show ref:{name}")), "{name}");
    }
    server.home.says(&["replay", "all", "-o", file("replay").to_str().unwrap()]).well();
    look_at(&browser, "replay-all", &format!("file://{}", file("replay").display()));
}
