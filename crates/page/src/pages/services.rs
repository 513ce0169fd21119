//! Services that run on this machine: what listens, each explained on a click, and beside an earlier run of it.

use fingerpost_record::text::clean_short;
use fingerpost_report::html::parts::heads;
use fingerpost_sys::listening::{self, Listener};
use maud::{Markup, html};
use serde::Deserialize;

use super::measure::{progress, refused};
use super::{Body, Wrong, bad, of_job};
use crate::site::Site;

/// What the form says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Wanted {
    port: String,
    seconds: String,
    baseline: String,
}

/// The longest time that the page watches a service, in seconds.
const LONGEST: u32 = 3600;
/// Characters of a process's or group's name.
const NAME: usize = 80;

/// Begins to explain the service that the form names.
///
/// # Errors
/// What the reader is told.
pub fn start(site: &Site, wanted: &Wanted) -> Result<(), Wrong> {
    let words = words(wanted).map_err(bad)?;
    site.jobs
        .start(
            &format!("the service at port {}", wanted.port.trim()),
            &words,
            false,
        )
        .map(drop)
        .map_err(refused)
}

/// The command line. Nothing that comes from the form is let through but numbers and the id of a run.
fn words(wanted: &Wanted) -> Result<Vec<String>, String> {
    let number = |text: &str, most: u32| {
        text.trim()
            .parse::<u32>()
            .ok()
            .filter(|n| (1..=most).contains(n))
    };
    let port = number(&wanted.port, 65_535).ok_or("Choose a service.")?;
    let seconds = number(&wanted.seconds, LONGEST).ok_or(format!(
        "The time is a number of seconds from 1 to {LONGEST}."
    ))?;
    let mut words: Vec<String> = [
        "explain",
        "--live",
        "--progress",
        "json",
        "--port",
        &port.to_string(),
        "--seconds",
        &seconds.to_string(),
    ]
    .map(str::to_owned)
    .to_vec();
    let baseline = wanted.baseline.trim();
    if !baseline.is_empty() {
        let id = baseline.len() <= 100
            && baseline
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-');
        if !id || baseline.starts_with('-') {
            return Err("The earlier run is named by its id.".into());
        }
        // One word, so that it cannot be an option.
        words.push(format!("--baseline={baseline}"));
    }
    Ok(words)
}

/// The page: what listens, and the explanation that runs or was the last.
pub fn page(site: &Site, wrong: Option<Wrong>) -> Body {
    let found = listening::all();
    let main = html! {
        h1 { "Services" }
        p {
            "What listens on this machine. Explaining a service follows its requests through the kernel: nothing of it \
             is restarted, stopped or set differently. Where their time goes is shown while it is watched, renewed \
             each second; stopping keeps what was seen."
        }
        @if let Some(wrong) = &wrong { p class="error" role="alert" { (wrong.sentence) } }
        (progress(site, site.jobs.state().as_ref()))
        @match &found {
            Ok(found) if found.is_empty() => p { "Nothing listens on a TCP port of this machine." },
            Ok(found) => (table(site, found)),
            Err(e) => p class="error" role="alert" { "The kernel does not tell which sockets listen: " (e) },
        }
        p class="note" {
            "Each explanation is kept as a run: open it from the list of runs, or give its id as the earlier run to \
             see what changed. A service in a container, a unit or a control group is named to “fingerpost explain” in \
             a terminal."
        }
    };
    of_job(site, wrong.as_ref(), "Services", "/services", main)
}

fn table(site: &Site, found: &[Listener]) -> Markup {
    html! {
        form class="card measure listens" method="post" action={ (site.base) "/services" } {
            h2 { "What listens" }
            div class="scroll" role="region" aria-label="What listens, table" tabindex="0" {
                // On a phone a listener's cells stand below its name, so that its button is not out of sight.
                table class="stacked" {
                    thead { tr {
                        (heads(&[("Program", ""), ("Port", "number"), ("Process", "number")]))
                        (heads(&[("Unit or container", "")]))
                        th scope="col" { span class="unseen" { "Explain" } }
                    } }
                    tbody { @for l in found { (row(l)) } }
                }
            }
            p {
                label for="seconds" { "Watch for so many seconds" }
                input id="seconds" name="seconds" type="number" min="1" max=(LONGEST) value="10" inputmode="numeric";
            }
            p {
                label for="baseline" { "Beside the earlier run" }
                input id="baseline" name="baseline" placeholder="none" autocomplete="off"
                    aria-describedby="baseline-help";
                span class="note" id="baseline-help" { "The id of a run of the same service." }
            }
        }
    }
}

fn row(l: &Listener) -> Markup {
    let name = if l.name.is_empty() {
        "another user's".to_owned()
    } else {
        clean_short(&l.name, NAME)
    };
    html! {
        tr {
            th scope="row" { (name) }
            td class="number" data-of="port" { (l.port) }
            td class="number" data-of="process" { @if l.pid > 0 { (l.pid) } @else { "–" } }
            td class="wide" data-of=[l.group.as_ref().map(|_| "unit or container")] {
                (l.group.as_deref().map_or_else(String::new, |g| clean_short(g, NAME)))
            }
            td {
                @if l.pid > 0 {
                    button name="port" value=(l.port) {
                        "Explain"
                        span class="unseen" { " " (name) " at port " (l.port) }
                    }
                } @else {
                    "needs root"
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(port: &str, seconds: &str, baseline: &str) -> Result<String, String> {
        words(&Wanted {
            port: port.into(),
            seconds: seconds.into(),
            baseline: baseline.into(),
        })
        .map(|w| w.join(" "))
    }

    #[test]
    fn a_click_becomes_a_command() {
        assert_eq!(
            of("8080", " 5 ", "").unwrap(),
            "explain --live --progress json --port 8080 --seconds 5"
        );
        let with = of("8080", "5", "20260101T000000Z-00000001").unwrap();
        assert!(
            with.ends_with("--baseline=20260101T000000Z-00000001"),
            "{with}"
        );
    }

    #[test]
    fn what_is_no_port_no_time_and_no_id_is_refused() {
        for (port, seconds, baseline) in [
            ("", "5", ""),
            ("0", "5", ""),
            ("65536", "5", ""),
            ("80 --pid 1", "5", ""),
            ("80", "", ""),
            ("80", "0", ""),
            ("80", "999999", ""),
            ("80", "5", "../x"),
            ("80", "5", "/etc/passwd"),
            ("80", "5", "-o x"),
            ("80", "5", "--quiet"),
        ] {
            assert!(
                of(port, seconds, baseline).is_err(),
                "{port} {seconds} {baseline}"
            );
        }
    }
}
