//! What a person does on the page, in a browser.

use fingerpost_record::{Run, fixture};
use serde_json::json;

use crate::browser::{self, Browser, Taken};
use crate::looks::{look_at, looks, nothing_is_wrong};
use crate::server::Server;

/// The page of a run, whose title begins with what it measured.
pub const RUN_SHOWS: &str =
    "return location.pathname.includes('/run/') && document.querySelector('.keep') !== null";

/// A server and a browser; nothing where there is no browser.
pub fn setting(runs: &[Run]) -> Option<(Server, Taken)> {
    setting_of(|| Server::with(runs))
}

/// The same of a server that is started so.
pub fn setting_of(start: impl FnOnce() -> Server) -> Option<(Server, Taken)> {
    // Debian: apt-get install chromium chromium-driver
    for program in ["chromium", "chromedriver"] {
        if !fingerpost_testing::can(fingerpost_testing::is_installed(program), program) {
            return None;
        }
    }
    let browser = browser::take();
    Some((start(), browser))
}

/// Nothing was complained of in the console, and nothing asked of any other server.
#[track_caller]
pub fn clean(server: &Server, browser: &Browser) {
    let said = browser.console();
    assert!(said.is_empty(), "the console says {said:?}");
    let strangers: Vec<String> = browser
        .requests()
        .into_iter()
        .filter(|url| !url.starts_with(server.origin()) && !url.starts_with("data:") && !own(url))
        .collect();
    assert!(strangers.is_empty(), "asked for {strangers:?}");
}

/// Pages of the browser itself, and files that a test opens: no page of a server can ask for those.
fn own(url: &str) -> bool {
    [
        "chrome:",
        "chrome-extension:",
        "about:",
        "devtools:",
        "file:",
    ]
    .iter()
    .any(|scheme| url.starts_with(scheme))
}

fn many(n: u32) -> Vec<Run> {
    (0..n)
        .map(|i| {
            let mut run = if i % 5 == 4 {
                fixture::loaded::healthy()
            } else {
                fixture::run()
            };
            run.id = format!("2026010{}T0304{:02}Z-{i:08x}", 1 + i % 9, i / 9);
            run.started = format!("2026-01-0{}T03:04:{:02}Z", 1 + i % 9, i / 9);
            run.host.hostname = format!("host-{}", i % 3);
            run.host.kernel = format!("6.{}.0", i % 4);
            run
        })
        .collect()
}

#[test]
fn runs_are_found_and_opened() {
    let Some((server, browser)) = setting(&many(30)) else {
        return;
    };
    browser.open(&server.address);
    assert!(
        browser.text("#runs").contains("30 of 30 runs"),
        "{}",
        browser.text("#runs")
    );
    // The filter is one line on a screen of 1100 pixels.
    browser.look("screen", "light", 1100);
    let lines = "return new Set([...document.querySelectorAll('form.filter p')].map(p => \
        Math.round(p.getBoundingClientRect().bottom))).size";
    assert_eq!(browser.run(lines), json!(1));
    browser.type_into("#q", "HOST-1 6.1.0");
    browser.until(
        "the search shows",
        "return document.querySelector('#runs .count').innerText.startsWith('3 of 30')",
    );
    browser.type_into("#q", "nothing like it");
    browser.until(
        "nothing is found",
        "return document.querySelector('#runs .count').innerText.startsWith('0 of 30')",
    );
    browser.open(&format!("{}?lab=database&host=host-1", server.address));
    assert!(
        browser.text("#runs .count").starts_with("2 of 30"),
        "{}",
        browser.text("#runs .count")
    );
    browser.open(&format!("{}?from=2026-01-02&to=2026-01-02", server.address));
    assert!(
        browser.text("#runs .count").starts_with("4 of 30"),
        "{}",
        browser.text("#runs .count")
    );
    browser.click("#runs tbody a");
    browser.until("the run shows", RUN_SHOWS);
    // A figure, its unit and its interval.
    let row = browser.run(
        "return [...document.querySelectorAll('#syscalls tbody tr')].find(r => \
            r.innerText.includes('syscall.null')).innerText",
    );
    let row = row.as_str().unwrap();
    assert!(row.contains("41.30 ns") && row.contains("± 0.17"), "{row}");
    // Raw samples are one click away.
    assert_eq!(
        browser.run("return document.querySelector('#syscalls .strip').checkVisibility()"),
        json!(false)
    );
    browser.click("#syscalls details.samples summary");
    assert_eq!(
        browser.run("return document.querySelector('#syscalls .strip').checkVisibility()"),
        json!(true)
    );
    clean(&server, &browser);
}

#[test]
fn two_ticked_runs_are_compared_and_a_probe_has_a_history() {
    let Some((server, browser)) = setting(&[
        fixture::loaded::healthy(),
        fixture::loaded::collapsed(),
        fixture::run(),
    ]) else {
        return;
    };
    browser.open(&server.address);
    assert_eq!(
        browser.run("return document.querySelector('form[data-pick] .buttons button').disabled"),
        json!(true)
    );
    browser.click(&format!(
        "input[value='{}']",
        fixture::loaded::collapsed().id
    ));
    browser.click(&format!("input[value='{}']", fixture::loaded::healthy().id));
    browser.click("form[data-pick] .buttons button");
    browser.until(
        "the comparison shows",
        "return document.querySelector('.headline') !== null",
    );
    // The older run is the base, in whichever order they were ticked.
    assert_eq!(browser.text("h1"), "slow-guest against small-guest");
    assert!(
        browser
            .text(".headline")
            .contains("a lock in the application"),
        "{}",
        browser.text(".headline")
    );
    // Records of an older version, whose requests were not followed, make a cause likely at most: no part of the
    // change is marked as its.
    assert!(
        browser.text("#waterfall").contains("lock wait (futex)"),
        "{}",
        browser.text("#waterfall")
    );
    assert_eq!(
        browser.run("return document.querySelector('#waterfall tr.confirmed') === null"),
        json!(true)
    );
    let first = browser.text("#rows tbody tr");
    assert!(
        first.contains("database.throughput") && first.contains("slower"),
        "sorted by effect: {first}"
    );
    browser.open(&format!("{}run/{}", server.address, fixture::run().id));
    browser.click("#syscalls tbody a");
    browser.until(
        "the history shows",
        "return document.querySelector('h1').innerText === 'History'",
    );
    assert!(
        browser.text("main").contains("over 3 runs"),
        "{}",
        browser.text("main")
    );
    assert_eq!(
        browser.run("return document.querySelectorAll('svg.chart .series svg').length"),
        json!(3)
    );
    // The run before is one that has rows in common, and published systems that have some are offered.
    browser.open(&format!(
        "{}compare?run={}&run=previous",
        server.address,
        fixture::loaded::healthy().id
    ));
    assert!(
        browser.text("h1").contains(" against "),
        "{}",
        browser.text("main")
    );
    browser.open(&format!("{}run/{}", server.address, fixture::run().id));
    browser.run("document.getElementById('beside').value = 'ref:g5-2.7-darwin'");
    browser.click("form.beside button");
    browser.until(
        "the comparison shows",
        "return document.querySelector('h1').innerText.includes(' against ')",
    );
    assert!(
        browser.address().contains("run=ref%3A"),
        "{}",
        browser.address()
    );
    assert!(
        !browser.text("#rows").is_empty(),
        "{}",
        browser.text("main")
    );
    // Where nothing is asked for, a row that the runs have in common is drawn.
    browser.open(&format!("{}history", server.address));
    assert!(
        browser.run("return document.querySelector('svg.chart') !== null") == json!(true),
        "{}",
        browser.text("main")
    );
    assert!(
        browser.text("main").contains("over 3 runs"),
        "{}",
        browser.text("main")
    );
    clean(&server, &browser);
}

fn derived(browser: &Browser) -> Vec<String> {
    let keys = [
        "page_extra",
        "allocation",
        "page_fault_extra",
        "object",
        "fault_and_zerofill",
        "deallocation",
        "zerofill",
    ];
    keys.iter()
        .map(|key| browser.text(&format!("#{key}")))
        .collect()
}

/// Waits until the server has calculated this zero-filling from what the fields say.
fn solved(browser: &Browser, zerofill: &str) {
    let shown = format!("return document.getElementById('zerofill').innerText === '{zerofill}'");
    browser.until("what was typed is calculated", &shown);
}

#[test]
fn the_calculator_knows_the_articles_answers_while_one_types() {
    let Some((server, browser)) = setting(&[]) else {
        return;
    };
    browser.open(&format!("{}zerofill", server.address));
    assert_eq!(
        derived(&browser),
        [
            "0.3000", "5.450", "12.80", "3.500", "9.300", "7.350", "6.188"
        ]
    );
    for (key, value) in [
        ("alloc_1", "9.7"),
        ("touch_1", "41.0"),
        ("alloc_2", "11.1"),
        ("touch_2", "65.9"),
    ] {
        browser.type_into(&format!("#{key}"), value);
    }
    solved(&browser, "18.56");
    assert_eq!(
        derived(&browser),
        [
            "1.400", "4.150", "31.30", "7.800", "23.50", "8.750", "18.56"
        ]
    );
    browser.run("document.querySelectorAll('[data-preset]')[2].click()");
    solved(&browser, "17.76");
    let by_script = derived(&browser);
    assert_eq!(
        by_script,
        [
            "1.300", "8.150", "33.90", "9.400", "24.50", "13.50", "17.76"
        ]
    );
    let shares =
        "return [...document.querySelectorAll('.shares output')].map(o => o.innerText).join()";
    let shares_by_script = browser.run(shares);
    // What cannot be is said, and the derived fields say nothing.
    browser.type_into("#touch_1", "3");
    browser.until(
        "it is said",
        "return document.getElementById('impossible').innerText.includes('1p touch (3)')",
    );
    assert!(
        browser
            .text("#impossible")
            .contains("1p touch (3) is below 1p alloc (17.6)"),
        "{}",
        browser.text("#impossible")
    );
    assert_eq!(derived(&browser)[6], "–");
    // The server calculates the same, for a browser without script.
    browser.open(&format!(
        "{}zerofill?alloc_1=17.6&touch_1=51.5&alloc_2=18.9&touch_2=77.3",
        server.address
    ));
    assert_eq!(derived(&browser), by_script);
    assert_eq!(browser.run(shares), shares_by_script);
    let (_, plain) = server.get("/zerofill?alloc_1=17.6&touch_1=51.5&alloc_2=18.9&touch_2=77.3");
    assert!(
        by_script
            .iter()
            .all(|value| plain.contains(&format!(">{value}</output>")))
    );
    // Only four fields can be edited, and the keyboard reaches them in order.
    assert_eq!(
        browser.run(
            "return document.querySelectorAll('.given input').length + '/' + \
            document.querySelectorAll('.derived input').length"
        ),
        json!("4/0")
    );
    browser.run("document.getElementById('alloc_1').focus()");
    browser.keys("\u{e004}\u{e004}");
    assert_eq!(
        browser.run("return document.activeElement.id"),
        json!("alloc_2")
    );
    clean(&server, &browser);
}

#[test]
fn the_calculator_measures_here_and_loops_until_it_is_stopped() {
    let Some((server, browser)) = setting(&[]) else {
        return;
    };
    browser.open(&format!("{}zerofill", server.address));
    browser.click("#repeat");
    browser.click("#take");
    browser.until(
        "three rounds",
        "return Number(/Round (\\d+)/.exec(document.getElementById('timing-status').innerText)?.[1]) >= 3",
    );
    assert_ne!(
        browser.run("return document.getElementById('alloc_1').value"),
        json!("11.2")
    );
    // A second measurement is told of the first.
    let (code, answer) = server.post(
        "/measure",
        "application/x-www-form-urlencoded",
        b"names=syscall.null&profile=quick",
    );
    assert!(
        code == 409 && answer.contains("A measurement is running already (the four timings of"),
        "{code} {answer}"
    );
    browser.click("#take-stop");
    browser.until(
        "it ended",
        "return document.getElementById('take-stop').disabled",
    );
    // Who leaves the page ends the loop, and another measurement can begin.
    browser.run("document.getElementById('timing-status').textContent = ''");
    browser.click("#take");
    browser.until(
        "another round",
        "return document.getElementById('timing-status').innerText.startsWith('Round')",
    );
    browser.open(&format!("{}docs", server.address));
    let ended = "return fetch(document.body.dataset.base + '/measure/state').then(a => a.json()).then(s => s.phase === \
        'ended')";
    browser.until("the loop ended with its page", ended);
    clean(&server, &browser);
}

#[test]
fn measuring_shows_its_progress_and_leads_to_the_run() {
    let Some((server, browser)) = setting(&[]) else {
        return;
    };
    browser.open(&format!("{}measure", server.address));
    browser.type_into("#names", "syscall.null, syscall.read");
    browser.type_into("#seconds", "3");
    browser.click("form.measure button");
    browser.until(
        "it begins",
        "return document.getElementById('job').dataset.phase === 'running'",
    );
    browser.until(
        "a probe is named",
        "return document.getElementById('job-doing').innerText.includes('syscall.')",
    );
    browser.until(
        "the bar moves",
        "return document.getElementById('job-done').value > 0.05",
    );
    // Who watches it to its end is shown the run.
    browser.until("the run shows", RUN_SHOWS);
    assert!(browser.text("#syscalls").contains("syscall.read"));
    // How it was shown is no part of the command.
    let command = browser.text("#reproduce");
    assert!(
        command
            .contains("fingerpost run --profile quick --budget 3 syscall.null syscall.read --seed"),
        "{command}"
    );
    clean(&server, &browser);
}

#[test]
fn a_lab_shows_its_values_and_its_curve_while_it_measures() {
    let Some((server, browser)) = setting(&[]) else {
        return;
    };
    browser.open(&format!("{}measure", server.address));
    browser.type_into("#names", "database");
    browser.type_into("#settings", "engine=sqlite\nclients=1,2,5");
    browser.type_into("#seconds", "600");
    browser.click("form.measure button");
    browser.until(
        "all steps have values",
        "return [1, 2, 5].every(n => [...document.querySelectorAll('#job-live tbody tr')].some(r => \
         r.innerText.includes('clients=' + n)))",
    );
    let phase = || browser.run("return document.getElementById('job').dataset.phase");
    assert_eq!(phase(), json!("running"));
    let live = browser.text("#job-live");
    assert!(
        live.contains("Measured so far: ")
            && live.contains("database.throughput")
            && live.contains("/s"),
        "{live}"
    );
    assert!(live.contains("scaling with clients"), "{live}");
    assert_eq!(
        browser.run("return document.querySelector('#job-live svg.chart') !== null"),
        json!(true)
    );
    // Steps are measured in a random order, and shown in that of the run's page.
    let throughput = "return [...document.querySelectorAll('.so-far tbody tr')].map(r => r.innerText).filter(t => \
        t.includes('throughput'))";
    let rows: Vec<String> = serde_json::from_value(browser.run(throughput)).unwrap();
    let in_order = [1, 2, 5].map(|n| format!("clients={n}"));
    assert!(
        rows.len() == 3
            && rows
                .iter()
                .zip(&in_order)
                .all(|(row, step)| row.contains(step)),
        "{rows:?}"
    );
    // This is the screen of the README's tour that no kept run can give. It says what that one shows.
    let headings = browser.run(
        "return [...document.querySelectorAll('#job h2, #job h3')].map(e => e.innerText.trim())",
    );
    let headings: Vec<String> = serde_json::from_value(headings).unwrap();
    let shown = of_the_tour("while it measures");
    assert!(
        headings.len() > 2
            && headings
                .iter()
                .all(|words| shown.contains(&without_digits(words))),
        "{headings:?}; the tour: {shown:?}"
    );
    // What the script has put there is fit for all, and so is a page that is loaded meanwhile.
    let mut wrong = looks(&browser, "measuring");
    wrong.extend(look_at(
        &browser,
        "measuring-loaded",
        &format!("{}measure", server.address),
    ));
    nothing_is_wrong(&wrong);
    assert_eq!(
        phase(),
        json!("running"),
        "it was looked at while it measured"
    );
    assert!(
        browser
            .run("return document.querySelectorAll('#job-live tbody tr').length")
            .as_u64()
            .unwrap()
            > 3
    );
    browser.look("screen", "light", 1200);
    browser.click("#job-stop");
    browser.until(
        "what was measured is kept",
        "return document.querySelector('#job-run a') !== null || location.pathname.includes('/run/')",
    );
    clean(&server, &browser);
}

/// What the page said at a screen of the tour (docs/pictures/page-tour.svg), part by part without their digits; its
/// title has these words.
fn of_the_tour(title: &str) -> Vec<String> {
    let tour = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/pictures/page-tour.svg"
    ))
    .unwrap();
    let screens = tour
        .split("<desc>")
        .skip(1)
        .filter_map(|rest| rest.split_once("</desc>"));
    let of_title = |rest: &str| {
        rest.split_once("<image")
            .is_some_and(|(before, _)| before.contains(title))
    };
    let mut found = screens
        .filter(|(_, rest)| of_title(rest))
        .map(|(said, _)| said);
    let said = found
        .next()
        .unwrap_or_else(|| panic!("the tour has no screen “{title}”"));
    said.split(" | ").map(without_digits).collect()
}

fn without_digits(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[test]
fn a_stopped_measurement_keeps_what_it_has() {
    let Some((server, browser)) = setting(&[]) else {
        return;
    };
    browser.open(&format!("{}measure", server.address));
    // Every primitive: far from done when the button is pressed.
    browser.type_into("#seconds", "600");
    browser.click("form.measure button");
    browser.until(
        "it measures",
        "return document.getElementById('job-done').value > 0.005",
    );
    // The form again: the page says that one runs.
    browser.click("form.measure button");
    browser.until(
        "the second is refused",
        "return document.querySelector('.error')?.innerText.includes('running already')",
    );
    browser.click("#job-stop");
    browser.until(
        "it ends",
        "return document.getElementById('job').dataset.phase === 'ended' || \
        document.getElementById('job-phase').innerText.startsWith('Ended')",
    );
    browser.click("#job-run a");
    browser.until("the run shows", RUN_SHOWS);
    assert!(
        browser.text(".doubts").contains("partial"),
        "{}",
        browser.text(".doubts")
    );
    // The refusal has the status 409, which the console notes.
    let said: Vec<String> = browser
        .console()
        .into_iter()
        .filter(|line| !line.contains("409"))
        .collect();
    assert!(said.is_empty(), "{said:?}");
}

#[test]
fn a_bad_file_is_refused_in_words_and_a_good_one_is_shown() {
    let Some((server, browser)) = setting(&[]) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (bad, good) = (dir.path().join("<b>bad.json"), dir.path().join("good.json"));
    std::fs::write(&bad, "{\"schema\":\"fingerpost/run/1\",").unwrap();
    std::fs::write(&good, serde_json::to_vec(&fixture::run()).unwrap()).unwrap();
    browser.open(&format!("{}import", server.address));
    browser.choose_file("#file", &bad);
    browser.click("main form button");
    browser.until(
        "it is refused",
        "return document.querySelector('.error') !== null",
    );
    assert!(
        browser.text(".error").contains("is not a complete run"),
        "{}",
        browser.text(".error")
    );
    let said: Vec<String> = browser
        .console()
        .into_iter()
        .filter(|line| !line.contains("400"))
        .collect();
    assert!(said.is_empty(), "{said:?}");
    browser.choose_file("#file", &good);
    browser.click("main form button");
    browser.until("the run shows", RUN_SHOWS);
    assert!(browser.address().ends_with(&fixture::run().id));
    clean(&server, &browser);
}

#[test]
fn a_run_is_labelled_sorted_by_and_removed() {
    let Some((server, browser)) = setting(&many(12)) else {
        return;
    };
    let listed = "return [...document.querySelectorAll('#runs tbody tr')].map(r => r.querySelector('input').value)";
    browser.open(&format!("{}?sort=host", server.address));
    let hosts = browser.run(
        "const host = [...document.querySelectorAll('#runs thead th')].findIndex(th => th.innerText.startsWith('Host'));
         return [...document.querySelectorAll('#runs tbody tr')].map(r => r.cells[host].innerText).join()",
    );
    let hosts: Vec<&str> = hosts.as_str().unwrap().split(',').collect();
    assert!(hosts.len() == 12 && hosts.is_sorted(), "{hosts:?}");
    assert_eq!(
        browser.run("return document.querySelector('th[aria-sort]').innerText"),
        json!("Host")
    );
    browser.click("#runs tbody tr:first-child a");
    browser.until("the run shows", RUN_SHOWS);
    browser.click(".keep > summary");
    browser.type_into("#label", "<b>before</b>");
    browser.type_into("#note", "roll-out of Tuesday");
    browser.click(".keep form button");
    browser.until(
        "the label shows",
        "return document.querySelector('h1').innerText.includes('<b>before</b>: ')",
    );
    assert!(browser.text("main").contains("roll-out of Tuesday"));
    browser.open(&format!("{}?q=before", server.address));
    let found = browser.run(listed);
    assert_eq!(found.as_array().unwrap().len(), 1);
    let id = found[0].as_str().unwrap().to_owned();
    let (status, rows) = server.get(&format!("/run/{id}/rows"));
    assert!(
        status == 200 && rows.contains("text/csv") && rows.contains("syscall.null"),
        "{status}"
    );
    browser.click("#runs tbody a");
    browser.until(
        "the run shows",
        "return document.querySelector('.keep') !== null",
    );
    browser.click(".keep > summary");
    browser.click(".keep details summary");
    browser.click(".keep details button");
    browser.until(
        "the list shows",
        "return document.querySelector('#runs .count')?.innerText.startsWith('11 of 11')",
    );
    clean(&server, &browser);
    let form = "application/x-www-form-urlencoded";
    assert_eq!(server.post(&format!("/run/{id}/remove"), form, b"").0, 404);
    let other = fixture::with_id("20260101T030400Z-00000000").id;
    let (status, said) = server.post(
        &format!("/run/{other}/words"),
        form,
        b"label=two%0Alines&note=",
    );
    assert!(status == 400 && said.contains("U+000A"), "{status} {said}");
}

#[test]
fn a_published_system_leads_to_its_tables_on_this_machine() {
    let server = Server::with(&[fixture::run()]);
    let page = |path: &str, wanted: u16| {
        let (code, text) = server.get(path);
        assert_eq!(code, wanted, "{path}: {text}");
        text
    };
    assert!(page("/references", 200).contains("/reference/g5-2.7-darwin\""));
    assert!(page("/reference/g5-2.7-darwin", 200).contains("/replay/g5-2.7-darwin\""));
    let replay = page("/replay/g5-2.7-darwin", 200);
    assert!(
        replay.contains("/reference/g5-2.7-darwin\"") && replay.contains(&fixture::run().id),
        "the table has this machine's run"
    );
    assert!(page("/reference/g5-2.7-darwim", 404).contains("did you mean “g5-2.7-darwin”?"));
    assert!(page("/replay/lmbnch", 404).contains("did you mean “lmbench”?"));
    assert!(!page("/replay/%3Cb%3Ex", 404).contains("<b>x"));
}
