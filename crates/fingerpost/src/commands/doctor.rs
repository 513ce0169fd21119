//! `fingerpost doctor`: is this machine quiet and set up for measuring? Cleans up after a killed run as well.

use std::time::Duration;

use fingerpost_host::background::{self, Snapshot};
use fingerpost_host::fixed_work::Steadiness;
use fingerpost_host::preflight::{self, Checks, Place};
use fingerpost_host::{Doubt, Severity, fixed_work, timer};
use fingerpost_record::Unit;
use fingerpost_record::archive::Archive;
use fingerpost_record::host::Host;
use fingerpost_record::text::{clean, counted};
use fingerpost_report::grid::{Grid, Line};
use fingerpost_report::style::Tone;
use fingerpost_report::{Style, wrap};
use fingerpost_sys::affinity;
use fingerpost_sys::cgroup::Hierarchies;
use fingerpost_sys::procfs::Paths;
use fingerpost_undo::scratch;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::output;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fingerpost doctor
  fingerpost doctor --seconds 60 --format json")]
pub struct Args {
    /// How many seconds to look for other activity
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// How to print the answer
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Table,
    /// One JSON document
    Json,
}

/// All that `doctor` found; with `--format json` it is printed as it is.
#[derive(Serialize)]
struct Answer {
    schema: &'static str,
    /// `quiet`, `care` or `unfit`.
    verdict: &'static str,
    sentence: String,
    doubts: Vec<Doubt>,
    /// What was undone that a killed run had left.
    cleaned: Vec<String>,
    #[serde(flatten)]
    checks: Checks,
    host: Host,
}

/// Looks, listens and says what it thinks.
pub fn run(args: Args) -> anyhow::Result<()> {
    let cleaned = scratch::sweep();
    let host = fingerpost_host::describe(&Paths::system(), &std::env::temp_dir());
    let checks = check(&host, Duration::from_secs(u64::from(args.seconds)))?;
    let mut doubts = [preflight::doubts(&checks), fingerpost_host::doubts(&host)].concat();
    // Stable: what was seen just now stands before what was read, within a severity.
    doubts.sort_by_key(|doubt| std::cmp::Reverse(doubt.severity));
    let (verdict, sentence) = preflight::verdict(&doubts);
    let answer = Answer {
        schema: "fingerpost/doctor/1",
        verdict,
        sentence,
        doubts,
        cleaned,
        checks,
        host,
    };
    if args.format == Format::Table {
        return output::write(|out| {
            out.write_all(table(&answer, &output::style(false)).as_bytes())
        });
    }
    output::json(&answer)
}

fn check(host: &Host, duration: Duration) -> anyhow::Result<Checks> {
    let paths = Paths::system();
    let cpus = affinity::allowed_cpus()?;
    let hierarchies = Hierarchies::of_self(&paths);
    let at_once = host
        .cgroup
        .cpu_quota
        .map_or(cpus.len(), |quota| quota as usize);
    let timer = timer::look();
    let bar = progress(duration);
    let (before, throttled_before) = (Snapshot::take(&paths), hierarchies.throttlings());
    let measured = fixed_work::run(&cpus, at_once, duration);
    let (after, throttled_after) = (Snapshot::take(&paths), hierarchies.throttlings());
    bar.finish_and_clear();
    Ok(Checks {
        fixed_work: fixed_work::evaluate(&measured),
        timer,
        background: background::between(&before, &after),
        cpus: host.cpu.online.max(1),
        throttled_periods: throttled_after
            .since(&throttled_before)
            .map(|(stopped, _)| stopped.throttled_periods),
        places: places(),
    })
}

fn places() -> Vec<Place> {
    let runs = Archive::locate()
        .ok()
        .map(|directory| Place::look("runs", &directory, "FINGERPOST_HOME"));
    let temporary = Place::look("temporary files", &std::env::temp_dir(), "TMPDIR");
    runs.into_iter().chain([temporary]).collect()
}

/// On standard error, and only where that is a terminal. It moves four times a second, which does not slow the fixed
/// work.
fn progress(duration: Duration) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(format!("checking for {} s", duration.as_secs()));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// The verdict, what was measured, and each doubt with what to do about it.
fn table(answer: &Answer, style: &Style) -> String {
    let host = &answer.host;
    let verdict = style.paint(
        tone_of(answer.verdict),
        &wrap::indented(&clean(&answer.sentence), 0, style.width),
    );
    let machine = clean(&format!(
        "{}, {}, {}",
        host.hostname, host.kernel, host.cpu.model
    ))
    .into_owned();
    let mut first = vec![Line::Blank, Line::Heading(machine)];
    first.extend(
        answer
            .cleaned
            .iter()
            .map(|sentence| row("cleaned up", sentence)),
    );
    let mut measured = steadiness(&answer.checks);
    measured.extend(surroundings(answer));
    let doubts = answer.doubts.iter().map(|d| {
        Line::Labelled(
            d.severity.name().into(),
            clean(&d.to_string()).into_owned(),
            tone(d.severity),
        )
    });
    let mut doubts: Vec<Line> = doubts.collect();
    if !doubts.is_empty() {
        doubts.insert(0, Line::Blank);
    }
    let grids = [first, measured, doubts].into_iter().map(|lines| {
        Grid {
            lines,
            ..Grid::default()
        }
        .render(style)
    });
    std::iter::once(verdict + "\n").chain(grids).collect()
}

fn tone_of(verdict: &str) -> Tone {
    match verdict {
        "unfit" => Tone::Bad,
        "care" => Tone::Doubtful,
        _ => Tone::Good,
    }
}

fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Unfit => Tone::Bad,
        Severity::Care => Tone::Doubtful,
        Severity::Note => Tone::Plain,
    }
}

/// The clock, other processes, counters and places.
fn surroundings(answer: &Answer) -> Vec<Line> {
    let (checks, us) = (&answer.checks, |ns: f64| Unit::Nanoseconds.format(ns));
    let (timer, background) = (&checks.timer, &checks.background);
    let mut lines = vec![
        row(
            "clock",
            &format!(
                "{:.0} ns a reading, steps of {:.0} ns",
                timer.reading_ns, timer.step_ns
            ),
        ),
        row(
            "sleep",
            &format!(
                "1 ms takes {} more, at worst {}",
                us(timer.late_ns),
                us(timer.latest_ns)
            ),
        ),
        row(
            "others",
            &format!(
                "{:.2} of {}, steal {:.1} %",
                background.others,
                counted(checks.cpus as u64, "CPU"),
                background.steal * 100.0
            ),
        ),
    ];
    lines.extend(background.users.iter().map(|user| {
        row(
            "",
            &format!("{:.2} {} ({})", user.cpus, user.name, user.pid),
        )
    }));
    lines.push(row(
        "counters",
        if answer.host.counters {
            "allowed"
        } else {
            "not allowed"
        },
    ));
    lines.extend(checks.places.iter().map(|place| {
        let state = place.refused.as_deref().unwrap_or("writable");
        row(
            place.purpose,
            &format!(
                "{}: {state}, {} free",
                place.path.display(),
                Unit::Bytes.format(place.free_bytes as f64)
            ),
        )
    }));
    lines
}

/// With many CPUs only the worst are worth a line.
fn steadiness(checks: &Checks) -> Vec<Line> {
    let mut cpus: Vec<_> = checks.fixed_work.cpus.iter().collect();
    if cpus.len() > 8 {
        cpus.sort_by(|a, b| b.lost_share.total_cmp(&a.lost_share));
        cpus.truncate(7);
    }
    let one = |steadiness: &Steadiness| {
        let name = steadiness
            .cpu
            .map_or("all CPUs".to_owned(), |cpu| format!("CPU {cpu}"));
        let text = format!(
            "{:.3} ms a piece, varies {:.1} %, {:.1} % slow, longest stall {:.2} ms, lost {:.1} %, {}",
            steadiness.undisturbed_ns / 1e6,
            steadiness.variation * 100.0,
            steadiness.slow_share * 100.0,
            steadiness.longest_stall_ns / 1e6,
            steadiness.lost_share * 100.0,
            counted(steadiness.involuntary, "involuntary switch")
        );
        row(&name, &text)
    };
    cpus.into_iter()
        .chain(&checks.fixed_work.all)
        .map(one)
        .collect()
}

/// A line of the table. A process may call itself anything: its name must not steer the terminal.
fn row(name: &str, text: &str) -> Line {
    Line::Labelled(name.to_owned(), clean(text).into_owned(), Tone::Plain)
}
