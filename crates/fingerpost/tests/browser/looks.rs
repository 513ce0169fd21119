//! How the pages look: pictures of each in light and dark, on a phone and in print, and an accessibility checker over
//! all of them.
//!
//! The pictures are kept under the target directory (`tmp/pictures`) for a person to look at; in CI none are taken.

use std::path::PathBuf;

use fingerpost_record::fixture::{self, loaded};
use fingerpost_record::{Better, Estimate, Run};

use crate::browser::Browser;
use crate::common::{Home, LABS, lab};
use crate::journeys::{clean, setting, setting_of};
use crate::server::Server;

/// axe-core (MPL-2.0, see LICENSE beside it), an accessibility checker.
const AXE: &str = include_str!("axe/axe.min.js");

fn pictures() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pictures")
}

/// The checker's rules that a style sheet can break: colours, and what scrolls. All others are about the document,
/// which is the same in every look.
const OF_STYLE: &[&str] = &[
    "color-contrast",
    "link-in-text-block",
    "scrollable-region-focusable",
];

/// Has the checker look for contrast at the first text of each kind alone: in the first look it has looked at all of
/// them. Contrast comes from a text's colour, size and weight, from what its ancestors paint, and from what lies above
/// or below it; what is placed by itself may, so that every text is looked at which that meets. Returns how many texts
/// there are, and how many are looked at.
const ONE_OF_A_KIND: &str = "
    const kinds = new Set(), painted = new Map(), placed = [];
    const paint = (e) => {
      if (!e) return '';
      if (!painted.has(e)) {
        const s = getComputedStyle(e);
        if (/absolute|fixed|sticky/.test(s.position)) placed.push(e.getBoundingClientRect());
        const own = [s.backgroundColor, s.backgroundImage, s.opacity, s.filter, s.mixBlendMode, s.visibility, \
        s.display === 'none'].join();
        const above = paint(e.parentElement);
        painted.set(e, above.endsWith(own) ? above : `${above}|${own}`);
      }
      return painted.get(e);
    };
    const meet = (a, b) => a.left <= b.right && b.left <= a.right && a.top <= b.bottom && b.top <= a.bottom;
    const all = [...document.body.querySelectorAll('*')];
    all.forEach(paint);
    const texts = all.filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
    const looked_at = texts.filter((e) => {
      const s = getComputedStyle(e), place = e.getBoundingClientRect();
      const kind = [paint(e), e.namespaceURI, s.color, s.fill, s.fontSize, s.fontWeight, s.textShadow].join();
      return kinds.size < kinds.add(kind).size || placed.some((p) => meet(p, place));
    });
    texts.forEach((e) => e.toggleAttribute('data-looked-at', looked_at.includes(e)));
    axe.configure({ rules: [{ id: 'color-contrast', selector: '[data-looked-at]' }] });
    return [texts.length, looked_at.length]";

/// What the checker, which the page has been given, finds wrong by all of its rules or by some, a line each.
fn violations(browser: &Browser, rules: Option<&[&str]>) -> Vec<String> {
    let only = rules.map_or_else(
        || "undefined".to_owned(),
        |rules| serde_json::json!({ "type": "rule", "values": rules }).to_string(),
    );
    let found = browser.run_async(&format!(
        "const done = arguments[arguments.length - 1];
         axe.run(document, {{ resultTypes: ['violations'], runOnly: {only} }}).then(
           r => done(r.violations.map(v => `${{v.id}}: ${{v.help}}: \
         ${{v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(' | ')}}`)),
           e => done([String(e)]));",
    ));
    found
        .as_array()
        .expect("a list")
        .iter()
        .map(|v| v.as_str().unwrap_or("?").to_owned())
        .collect()
}

/// The narrowest telephone, in the style sheet's pixels.
const PHONE: u32 = 360;

/// The looks of a page: name, medium, colours, width. Paper of A4 less its margins has so many pixels.
const LOOKS: [(&str, &str, &str, u32); 4] = [
    ("light", "screen", "light", 1200),
    ("dark", "screen", "dark", 1200),
    ("phone", "screen", "light", PHONE),
    ("print", "print", "light", 718),
];

/// Headings of columns that are names of this run, and so have no meaning in the glossary: compilers, placements,
/// systems, sides.
const NAMED: &str = concat!(
    r"^$|^(base|new)(:|$)|^[0-9]+ CPUs?$|^share$|[0-9]\.[0-9]|^built-in$|^MFLOPS$|",
    r"^(file|loop|zram|none|default|single|dual)$|^in .+|^per second$|^here( |$)|^[a-z0-9.]+(-[a-z0-9.]+)+$|^vm$"
);

/// Headings of columns without a definition on hover.
fn undefined(browser: &Browser) -> Vec<String> {
    let found = browser.run(&format!(
        "const named = new RegExp(String.raw`{NAMED}`);
         return [...document.querySelectorAll('main th[scope=col]:not(.graphic)')]
           .filter(th => !th.closest('article.document') && !th.querySelector('.term, input, a, .unseen'))
           .map(th => th.textContent.trim()).filter(words => !named.test(words));"
    ));
    found
        .as_array()
        .expect("a list")
        .iter()
        .map(|v| v.as_str().unwrap_or("?").to_owned())
        .collect()
}

/// What is wrong with a page in any of its looks: what the checker finds, what reaches beyond its sides, columns
/// without a definition. Leaves a picture of each.
pub fn look_at(browser: &Browser, name: &str, address: &str) -> Vec<String> {
    browser.open(address);
    looks(browser, name)
}

/// The same of the page that is open, as it is.
pub fn looks(browser: &Browser, name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    browser.run(&format!("{AXE};"));
    // Nobody looks at pictures where nobody is.
    let watched = !fingerpost_testing::is_ci();
    for (n, (look, medium, scheme, width)) in LOOKS.into_iter().enumerate() {
        // Styles alone make the difference: nothing is loaded again.
        browser.look(medium, scheme, width);
        if watched {
            browser.picture(&pictures().join(format!("{name}-{look}.png")));
        }
        if n > 0 {
            let looked_at = browser.run(ONE_OF_A_KIND);
            assert!(
                looked_at[1].as_u64().is_some_and(|texts| texts > 0),
                "{name}, {look}: {looked_at}"
            );
        }
        wrong.extend(
            violations(browser, (n > 0).then_some(OF_STYLE))
                .into_iter()
                .map(|one| format!("{name}, {look}: {one}")),
        );
        let beyond = browser.run(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        if beyond.as_i64().unwrap() > 0 {
            wrong.push(format!(
                "{name}, {look}: {beyond} pixels wider than the screen"
            ));
        }
        // Tables stand below their names on a phone where they have no room beside each other: nothing is to be
        // scrolled to, on any screen.
        let hidden = browser.run(
            "return [...document.querySelectorAll('.scroll')]
               .filter(frame => frame.scrollWidth > frame.clientWidth && !frame.closest('article.document, \
             .so-far')).map(frame => frame.getAttribute('aria-label'))",
        );
        for table in hidden.as_array().expect("a list") {
            wrong.push(format!("{name}, {look}: wider than its frame: {table}"));
        }
    }
    wrong.extend(
        undefined(browser)
            .into_iter()
            .map(|column| format!("{name}: no definition of the column “{column}”")),
    );
    wrong
}

#[track_caller]
pub fn nothing_is_wrong(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same run a day later, a fifth slower.
fn later(run: &Run) -> Run {
    let mut later = Run {
        id: run.id.replacen("20261124", "20261125", 1),
        started: run.started.replacen("11-24", "11-25", 1),
        ..run.clone()
    };
    for row in &mut later.measurements {
        let factor = if row.better == Better::Lower {
            1.2
        } else {
            1.0 / 1.2
        };
        if let Some(e) = &mut row.estimate {
            *e = Estimate {
                value: e.value * factor,
                low: e.low * factor,
                high: e.high * factor,
                ..*e
            };
        }
    }
    later
}

#[test]
fn half_of_the_labs_rows_are_fit_for_all_in_every_look() {
    of_labs(&LABS[..LABS.len() / 2]);
}

#[test]
fn other_labs_rows_are_fit_for_all_in_every_look() {
    of_labs(&LABS[LABS.len() / 2..]);
}

/// The kinds of pages that a run of a lab has: its own, its report, beside another of its lab.
fn of_labs(labs: &[&str]) {
    let runs: Vec<Run> = labs.iter().map(|name| lab(name)).collect();
    let all: Vec<Run> = runs.iter().cloned().chain(runs.iter().map(later)).collect();
    let Some((server, browser)) = setting(&all) else {
        return;
    };
    let mut wrong = Vec::new();
    wrong.extend(look_at(
        &browser,
        &format!("labs-from-{}", labs[0]),
        &server.address,
    ));
    for (name, run) in labs.iter().zip(&runs) {
        wrong.extend(look_at(
            &browser,
            &format!("lab-{name}"),
            &format!("{}run/{}", server.address, run.id),
        ));
        // The answer stands before any figure, and any doubt behind it.
        let order = "return [...document.querySelectorAll('main > .headline, main > .doubts, main > section')].map(e \
            => e.className || e.tagName)";
        let order = browser.run(order);
        assert_eq!(order[0], "headline", "{name}: {order}");
        let file = server.home.path().join(format!("{name}.html"));
        server
            .home
            .says(&["report", &run.id, "-o", file.to_str().unwrap()])
            .well();
        assert!(std::fs::metadata(&file).unwrap().len() < 1 << 20, "{name}");
        wrong.extend(look_at(
            &browser,
            &format!("lab-{name}-report"),
            &format!("file://{}", file.display()),
        ));
        let probe = &run
            .measurements
            .iter()
            .find(|m| m.estimate.is_some())
            .unwrap()
            .probe;
        wrong.extend(look_at(
            &browser,
            &format!("lab-{name}-history"),
            &format!("{}history?probe={probe}", server.address),
        ));
        let beside = format!(
            "{}compare?run={}&run={}",
            server.address,
            run.id,
            later(run).id
        );
        wrong.extend(look_at(&browser, &format!("lab-{name}-compare"), &beside));
    }
    let nothing_in_common = format!(
        "{}compare?run={}&run={}",
        server.address, runs[0].id, runs[1].id
    );
    wrong.extend(look_at(
        &browser,
        &format!("labs-{}-{}", labs[0], labs[1]),
        &nothing_in_common,
    ));
    nothing_is_wrong(&wrong);
    clean(&server, &browser);
}

#[test]
fn every_table_and_chart_is_saved_as_a_picture_and_as_figures() {
    let runs: Vec<Run> = LABS.map(lab).into();
    let Some((server, browser)) = setting(&runs) else {
        return;
    };
    for (name, run) in LABS.iter().zip(&runs) {
        browser.look("screen", "light", 1200);
        browser.open(&format!("{}run/{}", server.address, run.id));
        let all = browser.run(
            "return [...document.querySelectorAll('main table, main svg.chart, main svg.icicle')].filter(e => \
             e.checkVisibility())
               .filter(e => !e.closest('[data-saves]')).length",
        );
        assert_eq!(all, 0, "{name}: tables and charts that cannot be saved");
        let made = browser.run_async(SAVED);
        let made = made.as_array().expect("a list");
        assert!(made.len() > 1, "{name}: {made:?}");
        for one in made {
            let (title, width, ink) = (
                &one["title"],
                one["width"].as_f64().unwrap_or(0.0),
                one["ink"].as_f64().unwrap_or(0.0),
            );
            assert!(
                width > 100.0 && ink > 0.001,
                "{name}: the picture of {title} is empty: {one}"
            );
            let csv = one["csv"].as_str().unwrap_or_default();
            assert!(
                csv.lines().count() > 1 && !csv.contains("NaN"),
                "{name}: the figures of {title}: {csv}"
            );
        }
        // The rows' table has a line for each row that it shows, with its figure.
        let rows = made
            .iter()
            .filter_map(|one| one["csv"].as_str())
            .any(|csv| csv.contains("Probe") && csv.contains("Value"));
        assert!(rows, "{name}");
    }
    clean(&server, &browser);
    // A picture is a file that the browser was given.
    let saved = browser.run_async(
        "const done = arguments[arguments.length - 1]; const make = URL.createObjectURL;
         URL.createObjectURL = (blob) => { done(blob.type); return make.call(URL, blob); };
         document.querySelector('.save button').click();",
    );
    assert_eq!(saved, "image/png");
}

/// Draws everything that can be saved: its title, how wide the picture is, the share of its pixels that differ from its
/// first, its CSV.
const SAVED: &str = "
    const done = arguments[arguments.length - 1];
    (async () => {
      const made = [];
      for (const element of document.querySelectorAll('[data-saves]')) {
        if (!element.checkVisibility()) continue;
        const title = titleOf(element);
        const image = await createImageBitmap(await pictureOf(element, title));
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [image.width, image.height];
        const context = canvas.getContext('2d');
        context.drawImage(image, 0, 0);
        const pixels = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        const ink = pixels.reduce((n, p) => n + (p !== pixels[0]), 0) / pixels.length;
        made.push({ title, width: image.width, ink, csv: await csvOf(element).text() });
      }
      return made;
    })().then(done, (e) => done([{ title: String(e) }]));";

/// A host's run of all primitives: the recorded one, each row off by up to a per cent, and some slower.
fn of_host(number: u64, node: &str, slower: impl Fn(&str) -> f64) -> Run {
    let mut run: Run =
        serde_json::from_str(include_str!("../shown/primitives.json")).expect("a run");
    run.id = format!("20260101T000000Z-{number:08x}");
    run.host.hostname = node.to_owned();
    for (n, row) in run.measurements.iter_mut().enumerate() {
        let Some(e) = row.estimate else { continue };
        // Hosts differ, each row in its own way.
        let noise =
            1.0 + 0.01 * (((number * 7919 + n as u64 * 104_729) % 1000) as f64 / 500.0 - 1.0);
        let cost = noise * slower(&row.probe);
        let factor = if row.better == Better::Lower {
            cost
        } else {
            1.0 / cost
        };
        let value = e.value * factor;
        row.estimate = Some(Estimate {
            value,
            low: value * 0.985,
            high: value * 1.015,
            ..e
        });
        for process in &mut row.processes {
            (process.value, process.disturbed) = (Some(value), Vec::new());
            process
                .samples
                .iter_mut()
                .for_each(|sample| *sample = value);
        }
    }
    run
}

/// An archive with a sweep of hosts with long names: one is slow twice, of one only what its task said came, and in
/// system calls they are two populations.
fn with_a_sweep() -> Home {
    let home = Home::with(&[]);
    let node = |n: u64| format!("ip-10-128-204-{n}.eu-central-1.compute.internal");
    for (dir, nodes, turn) in [
        ("came", (0..24).collect::<Vec<u64>>(), 0),
        ("again", vec![1, 2, 3, 5, 8, 9], 100),
    ] {
        let dir = home.path().join(dir);
        std::fs::create_dir(&dir).unwrap();
        for n in nodes {
            let slower = |probe: &str| match probe.split('.').next() {
                Some("memory") if n == 5 => 1.3,
                Some("syscall") if n % 2 == 1 => 1.2,
                _ => 1.0,
            };
            let file = dir.join(format!("{}.json", node(n)));
            std::fs::write(
                file,
                serde_json::to_vec(&of_host(n + turn, &node(n), slower)).unwrap(),
            )
            .unwrap();
        }
    }
    std::fs::write(
        home.path().join(format!("came/{}.out", node(99))),
        "ssh: connect to host port 22: Connection timed out\n",
    )
    .unwrap();
    assert_eq!(
        home.says(&["fleet", "gather", "came", "-o", "monday"])
            .status,
        3
    );
    assert_eq!(
        home.says(&["fleet", "gather", "again", "--again", "monday"])
            .status,
        0
    );
    home
}

#[test]
fn a_sweep_and_its_hosts_are_fit_for_all() {
    let Some((server, browser)) =
        setting_of(|| Server::over(with_a_sweep(), &["--sweep", "monday"]))
    else {
        return;
    };
    let mut wrong = look_at(&browser, "sweeps", &format!("{}sweeps", server.address));
    let listed = browser.text("main li");
    assert!(
        listed.starts_with(
            "monday: 25 hosts, ip-10-128-204-[0-23,99].eu-central-1.compute.internal, 20"
        ),
        "{listed}"
    );
    wrong.extend(look_at(
        &browser,
        "sweep",
        &format!("{}sweep/0", server.address),
    ));
    assert!(
        browser.text("h1").starts_with("Sweep of 25 hosts, 20"),
        "{}",
        browser.text("h1")
    );
    assert!(
        browser
            .text(".headline")
            .contains("1 slow: ip-10-128-204-5.eu"),
        "{}",
        browser.text(".headline")
    );
    let peers = browser.text("#peers");
    // One sentence for all rows in which the same hosts are slower.
    assert_eq!(peers.matches("two populations in").count(), 1, "{peers}");
    assert!(
        peers.contains("12 hosts are 20 % slower")
            && peers.contains("the same hosts in")
            && peers.contains("more"),
        "{peers}"
    );
    // The picture names the host that stands out, and the wide ones of the parts by the letters of the table below it.
    assert_eq!(
        browser.run("return document.querySelector('#picture svg.names').textContent"),
        "ip-10-128-204-5"
    );
    let letters =
        "const said = (all) => [...document.querySelectorAll(all)].map(e => e.textContent);
        return [said('#picture svg[role=img] text'), said('#parts thead abbr')]";
    let letters = browser.run(letters);
    let of = |which: usize| letters[which].as_array().expect("a list").clone();
    assert!(
        of(1).len() > 9 && of(0).len() > 5 && of(0).iter().all(|letter| of(1).contains(letter)),
        "{letters}"
    );
    // It is saved with its cells, which are a picture of their own.
    let made = browser.run_async(SAVED);
    let ink = made
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| {
            one["title"]
                .as_str()
                .is_some_and(|t| t.starts_with("A line a host"))
        })
        .map(|one| one["ink"].clone());
    assert!(
        ink.as_ref()
            .and_then(|ink| ink.as_f64())
            .is_some_and(|ink| ink > 0.2),
        "{ink:?} of {made}"
    );
    wrong.extend(look_at(
        &browser,
        "sweep-host",
        &format!(
            "{}sweep/0/host/ip-10-128-204-5.eu-central-1.compute.internal",
            server.address
        ),
    ));
    let first = browser.text("main > .headline");
    assert!(
        first.contains("is slow, confirmed by measuring again: layer memory"),
        "{first}"
    );
    assert!(
        browser
            .text("main")
            .contains("memory latency and bandwidth: +"),
        "{}",
        browser.text("main")
    );
    let file = server.home.path().join("monday.html");
    server
        .home
        .says(&["fleet", "show", "monday", "-o", file.to_str().unwrap()])
        .well();
    wrong.extend(look_at(
        &browser,
        "sweep-report",
        &format!("file://{}", file.display()),
    ));
    nothing_is_wrong(&wrong);
    clean(&server, &browser);
}

/// A run whose host and label have no place to break, as hosts of clouds have none.
fn of_long_names() -> Run {
    let mut run = fixture::with_id("20260108T030405Z-0000000f");
    run.host.hostname = "ip-10-128-204-117.eu-central-1.compute.internal".into();
    run.label = Some("kernel-6.18.0-rc3-with-the-scheduler-patch-series-v7".into());
    run
}

#[test]
fn every_page_is_fit_for_all_in_light_and_dark_and_on_a_phone() {
    let runs = [
        loaded::healthy(),
        loaded::collapsed(),
        fixture::run(),
        fixture::followed::slow_locks(),
        of_long_names(),
    ];
    let Some((server, browser)) = setting(&runs) else {
        return;
    };
    let (healthy, collapsed) = (loaded::healthy().id, loaded::collapsed().id);
    let mut wrong = Vec::new();
    for (name, path) in [
        ("list", String::new()),
        ("run", format!("run/{collapsed}")),
        (
            "followed",
            format!("run/{}", fixture::followed::slow_locks().id),
        ),
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
        wrong.extend(look_at(
            &browser,
            name,
            &format!("{}{path}", server.address),
        ));
    }
    nothing_is_wrong(&wrong);
    clean(&server, &browser);
    // Error pages, whose status the console notes.
    let mut wrong = look_at(
        &browser,
        "missing",
        &format!("{}run/20260101T000000Z-ffffffff", server.address),
    );
    wrong.extend(look_at(
        &browser,
        "one-ticked",
        &format!("{}compare?run={healthy}", server.address),
    ));
    nothing_is_wrong(&wrong);
}

#[test]
fn the_report_is_one_file_that_is_fit_for_all() {
    let Some((server, browser)) = setting(&[
        loaded::healthy(),
        loaded::collapsed(),
        fixture::followed::slow_locks(),
    ]) else {
        return;
    };
    let (healthy, collapsed) = (loaded::healthy().id, loaded::collapsed().id);
    let followed = fixture::followed::slow_locks().id;
    let mut wrong = Vec::new();
    for (name, words) in [
        ("report", vec![collapsed.as_str()]),
        ("report-followed", vec![followed.as_str()]),
        ("report-of-two", vec![&healthy, &collapsed]),
    ] {
        let file = server.home.path().join(format!("{name}.html"));
        let mut all = vec!["report"];
        all.extend(words);
        all.extend(["-o", file.to_str().unwrap()]);
        server.home.says(&all).well();
        assert!(std::fs::metadata(&file).unwrap().len() < 1 << 20);
        wrong.extend(look_at(
            &browser,
            name,
            &format!("file://{}", file.display()),
        ));
    }
    nothing_is_wrong(&wrong);
    let asked: Vec<String> = browser
        .requests()
        .into_iter()
        .filter(|url| url.starts_with("http"))
        .collect();
    assert!(asked.is_empty(), "the report asked for {asked:?}");
    assert!(browser.console().is_empty());
}

/// The published systems: what a browser shows of each as a report, and of all replayed.
#[test]
fn every_reference_is_fit_for_all() {
    let Some((server, browser)) = setting(&[]) else {
        return;
    };
    let names = server.home.says(&["show", "ref:"]).refused();
    let names = names
        .trim_end()
        .split_once("there are ")
        .expect("it says which there are")
        .1
        .replace('\n', " ");
    let names: Vec<&str> = names.split(", ").map(str::trim).collect();
    assert!(names.len() >= 14, "{names:?}");
    let file = |name: &str| server.home.path().join(format!("{name}.html"));
    let mut wrong = Vec::new();
    for name in &names {
        server
            .home
            .says(&[
                "report",
                &format!("ref:{name}"),
                "-o",
                file(name).to_str().unwrap(),
            ])
            .well();
        wrong.extend(look_at(
            &browser,
            &format!("ref-{name}"),
            &format!("file://{}", file(name).display()),
        ));
        let text = browser.text("main");
        assert!(
            text.contains(&format!("fingerpost show ref:{name}")),
            "{name}"
        );
    }
    server
        .home
        .says(&["replay", "all", "-o", file("replay").to_str().unwrap()])
        .well();
    wrong.extend(look_at(
        &browser,
        "replay-all",
        &format!("file://{}", file("replay").display()),
    ));
    nothing_is_wrong(&wrong);
}
