//! `fingerpost doctor`: is this machine quiet and set up for measuring? Cleans up after a killed run as well.

use std::io::{self, Write};
use std::time::Duration;

use fingerpost_host::background::{self, Snapshot};
use fingerpost_host::preflight::{self, Checks, Place};
use fingerpost_host::{Doubt, canary, timer};
use fingerpost_record::archive::Archive;
use fingerpost_record::host::Host;
use fingerpost_sys::cgroup::Hierarchies;
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::{affinity, scratch};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::exit::Done;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How long to listen for noise
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
pub fn run(args: Args) -> anyhow::Result<Done> {
    let cleaned = scratch::sweep();
    let host = fingerpost_host::describe(&Paths::system(), &std::env::temp_dir());
    let checks = check(&host, Duration::from_secs(u64::from(args.seconds)))?;
    let mut doubts = [preflight::doubts(&checks), fingerpost_host::doubts(&host)].concat();
    // Stable: what was seen just now stands before what was read, within a severity.
    doubts.sort_by_key(|doubt| std::cmp::Reverse(doubt.severity));
    let (verdict, sentence) = preflight::verdict(&doubts);
    let answer = Answer { schema: "fingerpost/doctor/1", verdict, sentence, doubts, cleaned, checks, host };
    let mut out = io::stdout().lock();
    match args.format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &answer).map_err(io::Error::from)?;
            writeln!(out)?;
        }
        Format::Table => print(&mut out, &answer)?,
    }
    out.flush()?;
    Ok(Done::Well)
}

fn check(host: &Host, duration: Duration) -> anyhow::Result<Checks> {
    let paths = Paths::system();
    let cpus = affinity::allowed_cpus()?;
    let hierarchies = Hierarchies::of_self(&paths);
    let at_once = host.cgroup.cpu_quota.map_or(cpus.len(), |quota| quota as usize);
    let timer = timer::look();
    let bar = progress(duration);
    let (before, throttled_before) = (Snapshot::take(&paths), hierarchies.throttlings());
    let sung = canary::sing(&cpus, at_once, duration);
    let (after, throttled_after) = (Snapshot::take(&paths), hierarchies.throttlings());
    bar.finish_and_clear();
    Ok(Checks {
        canary: canary::evaluate(&sung),
        timer,
        background: background::between(&before, &after),
        cpus: host.cpu.online.max(1),
        throttled_periods: throttled_after.since(&throttled_before).map(|(stopped, _)| stopped.throttled_periods),
        places: places(),
    })
}

fn places() -> Vec<Place> {
    let runs = Archive::locate().ok().map(|directory| Place::look("runs", &directory, "FINGERPOST_HOME"));
    let temporary = Place::look("temporary files", &std::env::temp_dir(), "TMPDIR");
    runs.into_iter().chain([temporary]).collect()
}

/// On standard error, and only where that is a terminal. It moves four times a second, which the canary does not feel.
fn progress(duration: Duration) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(format!("listening for {} s", duration.as_secs()));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

fn print(out: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let (host, checks) = (&answer.host, &answer.checks);
    writeln!(out, "{}, {}, {}", host.hostname, host.kernel, host.cpu.model)?;
    for sentence in &answer.cleaned {
        writeln!(out, "cleaned up: {sentence}")?;
    }
    writeln!(out)?;
    print_canary(out, checks)?;
    let timer = &checks.timer;
    row(out, "clock", &format!("{:.0} ns a reading, steps of {:.0} ns", timer.reading_ns, timer.step_ns))?;
    let late = format!("1 ms takes {:.0} us more, at worst {:.0} us", timer.late_ns / 1e3, timer.latest_ns / 1e3);
    row(out, "sleep", &late)?;
    let background = &checks.background;
    let used = format!("{:.2} of {} CPUs, steal {:.1} %", background.others, checks.cpus, background.steal * 100.0);
    row(out, "others", &used)?;
    for user in &background.users {
        row(out, "", &format!("{:.2} {} ({})", user.cpus, printable(&user.name), user.pid))?;
    }
    row(out, "counters", if host.counters { "allowed" } else { "not allowed" })?;
    for place in &checks.places {
        let state = place.refused.as_deref().unwrap_or("writable");
        row(
            out,
            place.purpose,
            &format!("{}: {state}, {:.1} GiB free", place.path.display(), place.free_bytes as f64 / f64::from(1 << 30)),
        )?;
    }
    writeln!(out)?;
    for doubt in &answer.doubts {
        writeln!(out, "{:<6} {}", doubt.severity.name(), printable(&doubt.to_string()))?;
    }
    if !answer.doubts.is_empty() {
        writeln!(out)?;
    }
    writeln!(out, "{}", printable(&answer.sentence))
}

/// With many CPUs only the worst are worth a line.
fn print_canary(out: &mut impl Write, checks: &Checks) -> io::Result<()> {
    let mut cpus: Vec<_> = checks.canary.cpus.iter().collect();
    if cpus.len() > 8 {
        cpus.sort_by(|a, b| b.lost_share.total_cmp(&a.lost_share));
        cpus.truncate(7);
    }
    for steadiness in cpus.into_iter().chain(&checks.canary.all) {
        let name = steadiness.cpu.map_or("all CPUs".to_owned(), |cpu| format!("CPU {cpu}"));
        let text = format!(
            "{:.3} ms a piece, varies {:.1} %, {:.1} % slow, longest stall {:.2} ms, lost {:.1} %, {} involuntary switches",
            steadiness.undisturbed_ns / 1e6,
            steadiness.variation * 100.0,
            steadiness.slow_share * 100.0,
            steadiness.longest_stall_ns / 1e6,
            steadiness.lost_share * 100.0,
            steadiness.involuntary
        );
        row(out, &name, &text)?;
    }
    Ok(())
}

fn row(out: &mut impl Write, name: &str, text: &str) -> io::Result<()> {
    writeln!(out, "{name:<16} {text}")
}

/// A process may call itself anything: its name must not steer the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
