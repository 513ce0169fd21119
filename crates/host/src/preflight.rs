//! What the live checks found, as doubts, and the one sentence that all doubts add up to.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fingerpost_sys::random::random_name;
use fingerpost_sys::system;
use serde::Serialize;

use crate::Doubt;
use crate::Severity::{Care, Note, Unfit};
use crate::background::Background;
use crate::fixed_work::FixedWork;
use crate::timer::Timer;

/// Everything that the live checks found.
#[derive(Clone, Debug, Serialize)]
pub struct Checks {
    /// The work of fixed size.
    #[serde(rename = "canary")]
    pub fixed_work: FixedWork,
    /// The clock.
    pub timer: Timer,
    /// What else ran.
    pub background: Background,
    /// CPUs that are online, over which the background is spread.
    pub cpus: u32,
    /// Periods in which a CPU quota stopped us meanwhile; `None` where nothing tells.
    pub throttled_periods: Option<u64>,
    /// The directories that we write to.
    pub places: Vec<Place>,
}

/// A directory that we write to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// `runs` or `temporary files`: what it is for.
    pub purpose: &'static str,
    /// The directory, or its nearest ancestor that exists.
    pub path: PathBuf,
    /// Bytes free for us.
    pub free_bytes: u64,
    /// Why it cannot be written, if so.
    pub refused: Option<String>,
    /// The setting that names another.
    pub variable: &'static str,
}

impl Place {
    /// Writes a small file there and removes it. A directory that is not there yet is not made: its nearest ancestor
    /// must be writable.
    pub fn look(purpose: &'static str, directory: &Path, variable: &'static str) -> Self {
        let path = directory
            .ancestors()
            .find(|path| path.is_dir())
            .unwrap_or(Path::new("/"))
            .to_owned();
        let refused = written(&path).err().map(|error| error.to_string());
        Self {
            purpose,
            free_bytes: system::free_bytes(&path).unwrap_or(0),
            path,
            refused,
            variable,
        }
    }
}

/// Writes a file there under a name that nobody can have foreseen, and removes it. Others may prepare names in a
/// directory that is everybody's: what they have there is neither written to nor removed.
fn written(directory: &Path) -> io::Result<()> {
    let file = directory.join(random_name(".fingerpost-doctor-")?);
    let mut open = File::create_new(&file)?;
    let written = open.write_all(&[0; 4096]);
    written.and(std::fs::remove_file(&file))
}

/// A quiet machine loses less of the fixed work's time than this; the tick and the kernel's own threads need a few
/// tenths of a percent.
const LOST: f64 = 0.01;
/// More than this, and most batches are disturbed: marking them leaves too few.
const LOST_UNFIT: f64 = 0.25;
/// Share of slow pieces that robust estimates pass over without trouble.
const SLOW_SHARE: f64 = 0.05;
/// A stall beyond the usual time slice: something held the CPU on purpose.
const LONG_STALL_NS: f64 = 10e6;
/// Share of all CPUs that others may use on a quiet machine, and on a machine that is still fit.
const OTHERS: f64 = 0.02;
const OTHERS_UNFIT: f64 = 0.5;
const STEAL: f64 = 0.005;
const STEAL_UNFIT: f64 = 0.1;
/// Difference in speed between CPUs that counts as one.
const SPREAD: f64 = 0.05;
/// Reading the clock in user space takes 15 to 60 ns; a system call for it takes more.
const SLOW_READING_NS: f64 = 150.0;
/// A sleeper that is usually so much too late sits on a machine without high-resolution timers, or with a deep idle
/// state.
const LATE_NS: f64 = 500_000.0;
/// Least free space for runs and temporary files.
const SPACE: u64 = 100 << 20;

/// The doubts that the live checks give rise to, the heaviest first.
pub fn doubts(checks: &Checks) -> Vec<Doubt> {
    let mut found = fixed_work(checks);
    background(checks, &mut found);
    timer(&checks.timer, &mut found);
    found.extend(checks.places.iter().filter_map(place));
    if let Some(periods) = checks.throttled_periods.filter(|periods| *periods > 0) {
        let what = format!("The CPU quota ran out in {periods} periods during the check");
        found.push(Doubt::new(
            Unfit,
            what,
            "lift the quota of the control group or the container (--cpus)",
        ));
    }
    found.sort_by_key(|doubt| std::cmp::Reverse(doubt.severity));
    found
}

fn fixed_work(checks: &Checks) -> Vec<Doubt> {
    let Some(all) = &checks.fixed_work.all else {
        let remedy = "allow CPUs to this process (taskset, cpuset), or free them";
        return vec![Doubt::new(Unfit, "The test work got no CPU at all", remedy)];
    };
    let mut found = Vec::new();
    if all.lost_share > LOST || all.slow_share > SLOW_SHARE || all.longest_stall_ns > LONG_STALL_NS
    {
        let severity = if all.lost_share > LOST_UNFIT {
            Unfit
        } else {
            Care
        };
        let (lost, slow, stall) = (
            all.lost_share * 100.0,
            all.slow_share * 100.0,
            all.longest_stall_ns / 1e6,
        );
        let of_pieces = format!(
            "{slow:.1} % of its equal pieces took over 5 % longer, the longest stall was {stall:.1} ms"
        );
        let what = format!("Test work lost {lost:.1} % of its time: {of_pieces}");
        let remedy =
            "stop what competes, or measure longer (--profile thorough) and at a quieter hour";
        found.push(Doubt::new(severity, what, remedy));
    }
    let spread = checks.fixed_work.spread_between_cpus;
    if spread > SPREAD {
        let what = format!(
            "The slowest CPU is {:.0} % slower than the fastest",
            spread * 100.0
        );
        found.push(Doubt::new(
            Care,
            what,
            "measure on like CPUs (--cpu LIST), or find out what slows that one",
        ));
    }
    found
}

fn background(checks: &Checks, found: &mut Vec<Doubt>) {
    let share = checks.background.others / f64::from(checks.cpus.max(1));
    if share > OTHERS {
        let severity = if share > OTHERS_UNFIT { Unfit } else { Care };
        let users = checks
            .background
            .users
            .iter()
            .take(3)
            .map(|user| format!("{} ({}) {:.2}", user.name, user.pid, user.cpus));
        let small = || "small or short-lived processes, none above 0.5 % of a CPU".to_owned();
        let named = users
            .reduce(|all, user| format!("{all}, {user}"))
            .unwrap_or_else(small);
        let what = format!(
            "Others use {:.2} of {} CPUs: {named}",
            checks.background.others, checks.cpus
        );
        found.push(Doubt::new(
            severity,
            what,
            "stop them, or wait until they are done",
        ));
    }
    if checks.background.steal > STEAL {
        let severity = if checks.background.steal > STEAL_UNFIT {
            Unfit
        } else {
            Care
        };
        let what = format!(
            "The hypervisor took {:.1} % of the CPUs' time meanwhile",
            checks.background.steal * 100.0
        );
        found.push(Doubt::new(
            severity,
            what,
            "use dedicated CPUs, or measure at a quieter hour",
        ));
    }
}

fn timer(timer: &Timer, found: &mut Vec<Doubt>) {
    if timer.stated_ns > 1_000 || timer.step_ns > 1_000.0 {
        let what = format!(
            "The clock moves in steps of {:.1} µs",
            (timer.stated_ns as f64).max(timer.step_ns) / 1e3
        );
        found.push(Doubt::new(
            Care,
            what,
            "boot with high-resolution timers (highres=on) and the tsc clock source",
        ));
    }
    if timer.reading_ns > SLOW_READING_NS {
        let what = format!(
            "Reading the clock takes {:.0} ns, which suggests a system call for each",
            timer.reading_ns
        );
        found.push(Doubt::new(
            Care,
            what,
            "choose a clock source that user space can read (tsc)",
        ));
    }
    if timer.late_ns > LATE_NS {
        let what = format!(
            "Sleepers usually wake {:.2} ms too late",
            timer.late_ns / 1e6
        );
        let remedy = "free the CPUs; keep them out of deep idle states (cpupower idle-set -D 10)";
        found.push(Doubt::new(Care, what, remedy));
    }
}

fn place(place: &Place) -> Option<Doubt> {
    let path = place.path.display();
    let remedy = format!("name another directory with {}", place.variable);
    if let Some(reason) = &place.refused {
        let what = format!("{path}, for {}, cannot be written: {reason}", place.purpose);
        return Some(Doubt::new(Care, what, remedy));
    }
    let what = format!(
        "{path}, for {}, has {} MiB left",
        place.purpose,
        place.free_bytes >> 20
    );
    (place.free_bytes < SPACE).then(|| Doubt::new(Care, what, format!("free some, or {remedy}")))
}

/// The one sentence at the end: quiet, usable with care, or not fit, and why.
pub fn verdict(doubts: &[Doubt]) -> (&'static str, String) {
    let heaviest = doubts
        .iter()
        .map(|doubt| doubt.severity)
        .max()
        .unwrap_or(Note);
    let heavy = doubts.iter().filter(|d| d.severity == heaviest).take(3);
    let reasons = heavy
        .map(|d| lower_first(&d.what))
        .collect::<Vec<_>>()
        .join("; ");
    match heaviest {
        Note => (
            "quiet",
            "This machine is quiet: nothing found would disturb figures.".to_owned(),
        ),
        Care => (
            "care",
            format!("This machine is usable with care: {reasons}."),
        ),
        Unfit => (
            "unfit",
            format!("This machine is not fit for measuring now: {reasons}."),
        ),
    }
}

/// A sentence's start as the middle of another. Names that are written large or are paths stay.
fn lower_first(sentence: &str) -> String {
    let mut letters = sentence.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => sentence.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;
    use crate::background::User;
    use crate::fixed_work::{Piece, Samples, evaluate};

    fn of_pieces(times: &[u64]) -> FixedWork {
        let pieces = times.iter().map(|&ns| Piece { start_ns: 0, ns }).collect();
        evaluate(&[Samples {
            cpu: 0,
            pieces,
            involuntary: 0,
        }])
    }

    fn quiet() -> Checks {
        Checks {
            fixed_work: of_pieces(&[1_000_000; 1000]),
            timer: Timer {
                stated_ns: 1,
                step_ns: 20.0,
                reading_ns: 25.0,
                late_ns: 60_000.0,
                latest_ns: 90_000.0,
            },
            background: Background {
                seconds: 10.0,
                ..Default::default()
            },
            cpus: 2,
            throttled_periods: Some(0),
            places: vec![Place {
                purpose: "runs",
                path: "/x".into(),
                free_bytes: 1 << 30,
                refused: None,
                variable: "FINGERPOST_HOME",
            }],
        }
    }

    #[test]
    fn a_quiet_machine_has_no_doubts() {
        assert_eq!(doubts(&quiet()), []);
        assert_eq!(verdict(&[]).0, "quiet");
    }

    #[test]
    fn each_disturbance_has_its_doubt() {
        type Spoil = fn(&mut Checks);
        let noisy = |c: &mut Checks| {
            c.fixed_work = of_pieces(&[&[1_000_000; 90][..], &[1_500_000; 10]].concat())
        };
        let stalled = |c: &mut Checks| {
            c.fixed_work = of_pieces(&[&[1_000_000; 100_000][..], &[30_000_000]].concat())
        };
        let cases: [(Spoil, Severity, &str); 13] = [
            (noisy, Severity::Care, "10.0 % of its equal pieces"),
            (stalled, Severity::Care, "29.0 ms"),
            (
                |c| c.fixed_work = of_pieces(&[&[1_000_000; 50][..], &[3_000_000; 50]].concat()),
                Severity::Unfit,
                "lost 50.0 %",
            ),
            (|c| c.fixed_work = evaluate(&[]), Severity::Unfit, "no CPU"),
            (
                |c| c.fixed_work.spread_between_cpus = 0.3,
                Severity::Care,
                "30 % slower",
            ),
            (|c| c.background.others = 0.5, Severity::Care, "0.50 of 2"),
            (|c| c.background.others = 1.5, Severity::Unfit, "1.50 of 2"),
            (|c| c.background.steal = 0.02, Severity::Care, "2.0 %"),
            (
                |c| c.timer.stated_ns = 4_000_000,
                Severity::Care,
                "4000.0 µs",
            ),
            (|c| c.timer.reading_ns = 900.0, Severity::Care, "900 ns"),
            (
                |c| c.throttled_periods = Some(3),
                Severity::Unfit,
                "3 periods",
            ),
            (
                |c| c.places[0].refused = Some("read-only".into()),
                Severity::Care,
                "read-only",
            ),
            (
                |c| c.places[0].free_bytes = 1 << 20,
                Severity::Care,
                "1 MiB left",
            ),
        ];
        for (spoil, severity, what) in cases {
            let mut checks = quiet();
            spoil(&mut checks);
            let found = doubts(&checks);
            let [doubt] = &found[..] else {
                panic!("{what}: {found:?}")
            };
            assert!(
                doubt.severity == severity && doubt.what.contains(what) && !doubt.remedy.is_empty(),
                "{doubt:?}"
            );
        }
    }

    #[test]
    fn competitors_are_named() {
        let mut checks = quiet();
        checks.background.others = 0.9;
        checks.background.users = vec![User {
            pid: 77,
            name: "rustc".into(),
            cpus: 0.9,
        }];
        assert!(doubts(&checks)[0].what.contains("rustc (77) 0.90"));
    }

    #[test]
    fn the_sentence_names_the_heaviest() {
        let note = Doubt::new(Severity::Note, "Turbo is on", "x");
        let care = Doubt::new(Severity::Care, "A CPU quota", "x");
        let unfit = Doubt::new(Severity::Unfit, "/sys is not readable", "x");
        assert_eq!(verdict(std::slice::from_ref(&note)).0, "quiet");
        assert_eq!(
            verdict(&[note.clone(), care.clone()]).1,
            "This machine is usable with care: a CPU quota."
        );
        assert_eq!(
            verdict(&[care, unfit, note]).1,
            "This machine is not fit for measuring now: /sys is not readable."
        );
    }

    #[test]
    fn a_place_is_tried_and_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::look("runs", &dir.path().join("not/there/yet"), "FINGERPOST_HOME");
        assert_eq!((place.path.as_path(), &place.refused), (dir.path(), &None));
        assert!(place.free_bytes > 0);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(
            Place::look("runs", Path::new("/proc"), "X")
                .refused
                .is_some()
        );
    }
}
