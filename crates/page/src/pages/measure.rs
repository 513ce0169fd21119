//! Measuring from the page.

use axum::http::StatusCode;
use fingerpost_record::progress::Live;
use fingerpost_record::suggest;
use fingerpost_record::unit::significant;
use fingerpost_report::html as report;
use fingerpost_report::words::{percent, time};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Body, Wrong, bad, of_job};
use crate::jobs::{Phase, Refused, State};
use crate::site::{Choice, Site};

/// What the form says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Wanted {
    names: String,
    profile: String,
    seconds: String,
    settings: String,
}

const PROFILES: [(&str, &str); 3] = [
    ("quick", "quick: a minute for all primitives"),
    ("standard", "standard: three minutes"),
    ("thorough", "thorough: ten minutes"),
];
/// The most names, and the most settings, that one measurement takes.
const NAMES: usize = 100;
const SETTINGS: usize = 30;

/// Begins to measure what the form asks for.
///
/// # Errors
/// What the reader is told.
pub fn start(site: &Site, wanted: &Wanted) -> Result<(), Wrong> {
    let words = words(&site.options.choices, site.options.takes, wanted).map_err(bad)?;
    let named = if wanted.names.trim().is_empty() {
        "every primitive"
    } else {
        wanted.names.trim()
    };
    let what = std::iter::once(named)
        .chain(wanted.settings.split_whitespace())
        .collect::<Vec<_>>()
        .join(", ");
    site.jobs
        .start(&what, &words, false)
        .map(drop)
        .map_err(refused)
}

/// A refusal as the reader gets it.
pub fn refused(refused: Refused) -> Wrong {
    match refused {
        Refused::Busy(sentence) => Wrong::new(StatusCode::CONFLICT, sentence),
        Refused::Failed(sentence) => Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, sentence),
    }
}

/// Says why a setting may not have a value here.
type Takes = fn(&str, &str) -> Result<(), String>;

/// The command line of a measurement. Names come from a form, so nothing that could be an option is let through.
fn words(choices: &[Choice], takes: Takes, wanted: &Wanted) -> Result<Vec<String>, String> {
    let profile = PROFILES
        .iter()
        .map(|p| p.0)
        .find(|p| *p == wanted.profile)
        .ok_or("Choose a profile.")?;
    let mut words: Vec<String> = ["run", "--progress", "json", "--profile", profile]
        .map(str::to_owned)
        .to_vec();
    if !wanted.seconds.trim().is_empty() {
        let seconds = wanted
            .seconds
            .trim()
            .parse::<u32>()
            .ok()
            .filter(|s| (1..=86_400).contains(s));
        words.extend([
            "--budget".to_owned(),
            seconds
                .ok_or("The time is a number of seconds from 1 to 86400, or empty.")?
                .to_string(),
        ]);
    }
    for setting in settings(choices, takes, &wanted.settings)? {
        words.extend(["--set".to_owned(), setting]);
    }
    words.push("--".to_owned());
    let names: Vec<&str> = wanted
        .names
        .split([' ', ',', '\n', '\r', '\t'])
        .filter(|n| !n.is_empty())
        .collect();
    let plain = |name: &str| {
        name.len() <= 100
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._*?-".contains(c))
    };
    match names.iter().find(|n| !plain(n)) {
        Some(_) => Err(
            "A name has letters, digits, dots, and * for a glob, such as syscall.* or database."
                .to_owned(),
        ),
        None if names.len() > NAMES => Err(format!("At most {NAMES} names at a time.")),
        None => {
            words.extend(names.into_iter().map(str::to_owned));
            Ok(words)
        }
    }
}

/// The settings of a form, `KEY=VALUE` each: of labs, and those of a probe's parameters. What names files, other
/// servers or what a server loads is left to the command line.
fn settings(choices: &[Choice], takes: Takes, text: &str) -> Result<Vec<String>, String> {
    let all: Vec<&str> = text.split_whitespace().collect();
    if all.len() > SETTINGS {
        return Err(format!("At most {SETTINGS} settings at a time."));
    }
    let known = || {
        choices
            .iter()
            .flat_map(|c| &c.settings)
            .map(|s| s.key.as_str())
    };
    let plain = |value: &str| {
        value.len() <= 200
            && value
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._,:+%-".contains(c))
    };
    for setting in &all {
        let Some((key, value)) = setting
            .split_once('=')
            .filter(|(key, value)| !key.is_empty() && !value.is_empty())
        else {
            return Err(format!(
                "“{setting}” is no setting: write KEY=VALUE, such as engine=mariadb, one per line."
            ));
        };
        if !known().any(|one| one == key) {
            let listed = || {
                "what can be is listed under “What can be measured”, and `fingerpost run --set` takes the rest."
                    .to_owned()
            };
            return Err(format!(
                "“{key}” cannot be set from this page; {}",
                suggest::or_else(key, known(), listed)
            ));
        }
        if !plain(value) {
            return Err(format!(
                "The value of “{key}” has letters, digits, dots, commas, colons, and the signs + - _ %."
            ));
        }
        if let Err(why) = takes(key, value) {
            return Err(format!(
                "“{setting}” cannot be set from this page: {why}; `fingerpost run --set` takes the rest."
            ));
        }
    }
    Ok(all.into_iter().map(str::to_owned).collect())
}

/// The page: the measurement that runs, or the last one, and the form for the next, with what was `wanted` in it.
pub fn page(site: &Site, wrong: Option<Wrong>, wanted: &Wanted) -> Body {
    let main = html! {
        h1 { "Measure" }
        @if let Some(wrong) = &wrong { p class="error" role="alert" { (wrong.sentence) } }
        (progress(site, site.jobs.state().as_ref()))
        (form(site, wanted))
        p class="note" {
            "While it measures, leave the machine alone: whatever else runs, this page's own browser included, is \
             measured with it."
        }
    };
    of_job(site, wrong.as_ref(), "Measure", "/measure", main)
}

/// How far it is. The script keeps this part up to date; without it the page is loaded again.
pub(super) fn progress(site: &Site, state: Option<&State>) -> Markup {
    let s = state;
    let phase = s.map_or("none", |s| match s.phase {
        Phase::Running => "running",
        Phase::Stopping => "stopping",
        Phase::Ended => "ended",
    });
    html! {
        section class="card job" id="job" aria-label="Measurement" data-phase=(phase) hidden[s.is_none()] {
            h2 id="job-what" { (s.map_or("", |s| s.what.as_str())) }
            p role="status" id="job-phase" { (s.map_or("", sentence)) }
            p {
                label for="job-done" class="unseen" { "Done" }
                progress id="job-done" max="1" value=(s.map_or(0.0, |s| s.done)) {}
                " "
                span id="job-doing" class="note" { (s.map_or("", |s| s.doing.as_str())) }
            }
            p { span id="job-seconds" class="note" { @if let Some(s) = s { (times(s)) } } }
            div id="job-live" { @if let Some(s) = s { (so_far(s)) } }
            ul id="job-notes" { @for note in s.iter().flat_map(|s| &s.notes) { li { (note) } } }
            p id="job-run" {
                @if let Some(id) = s.and_then(|s| s.run.as_ref()) {
                    a href={ (site.base) "/run/" (id) } { "To the run" }
                }
            }
            form method="post" action={ (site.base) "/measure/stop" } data-stop="" {
                button id="job-stop" hidden[phase == "ended"] disabled[phase != "running" && phase != "stopping"] {
                    "Stop"
                }
            }
        }
    }
}

/// What is known while it is measured: a service's budget, or the rows that have figures. The script asks for it anew
/// when there is more.
pub fn so_far(s: &State) -> Markup {
    html! {
        @if let Some(live) = &s.live { (lately(live)) }
        @if !s.rows.is_empty() {
            (report::scaling_of(&s.rows, fingerpost_labs::views()))
            h3 { "Measured so far: " (s.rows.len()) @if s.rows.len() == 1 { " row" } @else { " rows" } }
            div class="so-far" { (report::so_far(&s.rows)) }
            p class="note" { "Each row is measured several times: its value may still change." }
        }
    }
}

/// The budget of a service's requests lately.
fn lately(live: &Live) -> Markup {
    html! {
        p { strong { (live.sentence) } }
        p class="note" {
            (significant(live.rate))
            " requests/s, median "
            (time(live.p50))
            ", 99 % within "
            (time(live.p99))
            ": "
            (live.requests)
            " requests followed lately"
        }
        table class="narrow" {
            thead {
                tr {
                    th scope="col" { "Where a request’s time went" }
                    th scope="col" class="number" { "all" }
                    th scope="col" class="number" { "slowest 1 %" }
                }
            }
            tbody {
                @for p in &live.parts {
                    tr {
                        th scope="row" { (p.name) }
                        td class="number" { (percent(p.all)) }
                        td class="number" { (percent(p.slow)) }
                    }
                }
            }
        }
    }
}

/// How long it has taken, and how long it will.
fn times(s: &State) -> String {
    match s.left() {
        Some(left) => format!("{:.0} s, about {left:.0} s left", s.seconds),
        None => format!("{:.0} s", s.seconds),
    }
}

fn sentence(s: &State) -> &'static str {
    match (s.phase, s.well) {
        (Phase::Running, _) => "Measuring.",
        (Phase::Stopping, _) => "Stopping: what was measured is kept.",
        (Phase::Ended, true) => "Done.",
        (Phase::Ended, false) if s.run.is_some() => {
            "Ended before all was measured, or something failed; the run says what."
        }
        (Phase::Ended, false) => "Nothing was measured.",
    }
}

fn form(site: &Site, wanted: &Wanted) -> Markup {
    html! {
        form class="card measure" method="post" action={ (site.base) "/measure" } {
            h2 { "Begin" }
            p {
                label for="names" { "What" }
                input id="names" name="names" value=(wanted.names) list="choices" placeholder="every primitive"
                    aria-describedby="names-help" autocomplete="off";
                span class="note" id="names-help" {
                    "Labs, probes or globs with spaces between: “syscall.* ipc.pipe”, “database”. Empty measures every \
                     primitive."
                }
            }
            datalist id="choices" { @for c in &site.options.choices { option value=(c.name) { (c.summary) } } }
            p {
                label for="settings" { "Settings" }
                textarea id="settings" name="settings" rows="2" placeholder="engine=mariadb"
                    aria-describedby="settings-help" {
                    (wanted.settings)
                }
                span class="note" id="settings-help" {
                    "KEY=VALUE, one per line; several values, several rows: “clients=1,8,50”. Below is what each lab \
                     takes."
                }
            }
            p {
                label for="profile" { "How long" }
                select id="profile" name="profile" {
                    @for (name, text) in PROFILES { option value=(name) selected[name == wanted.profile] { (text) } }
                }
            }
            p {
                label for="seconds" { "Or this many seconds" }
                input id="seconds" name="seconds" value=(wanted.seconds) type="number" min="1" max="86400"
                    inputmode="numeric";
            }
            p class="buttons" { button { "Measure this machine" } }
            details {
                summary { "What can be measured" }
                dl class="facts" {
                    @for c in &site.options.choices { div { dt { code { (c.name) } } dd { (c.summary) (keys(c)) } } }
                }
            }
        }
    }
}

/// What a lab's settings are.
fn keys(choice: &Choice) -> Markup {
    html! {
        @if !choice.settings.is_empty() {
            ul { @for s in &choice.settings { li { code { (s.key) "=" } " " (s.help) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::progress::LivePart;

    use super::*;
    use crate::Setting;

    fn takes(key: &str, value: &str) -> Result<(), String> {
        match (key, value) {
            ("engine", "other") => Err("known are these".to_owned()),
            _ => Ok(()),
        }
    }

    fn choices() -> Vec<Choice> {
        let settings = ["engine", "clients"]
            .map(|key| Setting {
                key: key.into(),
                help: String::new(),
            })
            .into();
        vec![Choice {
            name: "database".into(),
            summary: String::new(),
            settings,
        }]
    }

    fn wanted(names: &str, profile: &str, seconds: &str) -> Result<Vec<String>, String> {
        words(
            &choices(),
            takes,
            &Wanted {
                names: names.into(),
                profile: profile.into(),
                seconds: seconds.into(),
                ..Wanted::default()
            },
        )
    }

    #[test]
    fn settings_become_options_and_what_names_files_does_not() {
        let with = |settings: &str| {
            words(
                &choices(),
                takes,
                &Wanted {
                    names: "database".into(),
                    profile: "quick".into(),
                    settings: settings.into(),
                    ..Wanted::default()
                },
            )
        };
        let words = with("engine=mariadb\r\nclients=1,8").unwrap();
        assert_eq!(
            words.join(" "),
            "run --progress json --profile quick --set engine=mariadb --set clients=1,8 -- database"
        );
        for (settings, says) in [
            ("engine", "KEY=VALUE"),
            ("=x", "KEY=VALUE"),
            ("engine=", "KEY=VALUE"),
            ("dir=/etc", "cannot be set"),
            ("engin=mariadb", "did you mean “engine”?"),
            ("password_file=/etc/shadow", "cannot be set"),
            ("engine=../../x", "has letters"),
            ("engine=other", "from this page: known are these;"),
            ("engine=a;b", "has letters"),
            (&"clients=1 ".repeat(31), "At most 30"),
        ] {
            let sentence = with(settings).unwrap_err();
            assert!(sentence.contains(says), "{settings}: {sentence}");
        }
    }

    #[test]
    fn a_budget_is_a_table_with_its_sentence() {
        let part = LivePart {
            name: "waiting for <a> CPU".into(),
            all: 0.5,
            slow: 0.913,
        };
        let live = Live {
            sentence: "Requests wait.".into(),
            rate: 1234.0,
            p50: 1e-3,
            p99: 0.02,
            requests: 55,
            parts: vec![part],
        };
        let text = lately(&live).into_string();
        for words in [
            "Requests wait.",
            "1234 requests/s, median 1.000 ms, 99 % within 20.00 ms",
            "waiting for &lt;a&gt; CPU",
            "50.0 %",
            "91.3 %",
        ] {
            assert!(text.contains(words), "no “{words}” in {text}");
        }
    }

    #[test]
    fn names_become_words_after_the_options() {
        let words = wanted("syscall.*, ipc.pipe", "quick", "3").unwrap();
        assert_eq!(
            words.join(" "),
            "run --progress json --profile quick --budget 3 -- syscall.* ipc.pipe"
        );
        // A name that looks like an option stands behind the two dashes.
        assert_eq!(
            wanted("--output", "quick", "")
                .unwrap()
                .iter()
                .rev()
                .take(2)
                .cloned()
                .collect::<Vec<_>>(),
            ["--output", "--"]
        );
    }

    #[test]
    fn what_is_no_name_no_profile_and_no_time_is_refused() {
        for (names, profile, seconds) in [
            ("a;b", "quick", ""),
            ("$(x)", "quick", ""),
            ("../x", "quick", ""),
            ("a", "all", ""),
            ("a", "quick", "0"),
            ("a", "quick", "-1"),
            ("a", "quick", "x"),
        ] {
            assert!(
                wanted(names, profile, seconds).is_err(),
                "{names} {profile} {seconds}"
            );
        }
    }
}
