//! How much time each profile spends, and on what.

mod screen;

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use fingerpost_measure::rounds::Effort;
use fingerpost_probes::{Nature, Probe};
use fingerpost_record::Profile;

use crate::plan::{Row, Settings};

/// What `--profile` takes, and what each is.
const CHOICES: [(Profile, &str); 4] = [
    (
        Profile::Screen,
        "15 seconds for the rows that tell most per second",
    ),
    (Profile::Quick, "A minute for all primitives"),
    (Profile::Standard, "Three minutes"),
    (Profile::Thorough, "Ten minutes"),
];

/// Reads `--profile`.
pub fn parser() -> impl TypedValueParser<Value = Profile> {
    let chosen = |name: &str| {
        CHOICES
            .into_iter()
            .map(|(profile, _)| profile)
            .find(|profile| profile.as_str() == name)
    };
    let values = CHOICES.map(|(profile, help)| PossibleValue::new(profile.as_str()).help(help));
    PossibleValuesParser::new(values)
        .try_map(move |name| chosen(&name).ok_or("there is no such profile"))
}

/// Measuring time of one process, not counting its setup. See `docs/measuring.md` for why 40 ms.
pub const SLICE: Duration = Duration::from_millis(40);

/// Measuring time of one process of a laboratory's row: a laboratory has a hundred rows where a primitive has one, and
/// its analysis draws on all of them together.
pub const LAB_SLICE: Duration = Duration::from_millis(6);

/// Measuring time of one process of this probe.
pub fn slice(probe: &Probe) -> Duration {
    if probe.lab.is_some() {
        LAB_SLICE
    } else {
        SLICE
    }
}

/// The largest range that a laboratory walks at the quick profile: setting up larger ones would take longer than all
/// other rows.
const QUICK_SIZE: i64 = 256 << 20;

/// What is measured where nothing is named: nothing stands for every probe that is no lab's.
pub fn names(profile: Profile) -> Vec<String> {
    if profile == Profile::Screen {
        screen::probes()
    } else {
        Vec::new()
    }
}

/// Whether a row belongs to the profile. What the user set or named is measured in any case.
pub fn includes(profile: Profile, row: &Row, settings: &Settings, named: bool) -> bool {
    if profile == Profile::Screen && !named && !screen::has(row) {
        return false;
    }
    let large =
        row.probe.lab.is_some() && row.params.int("size").is_some_and(|size| size > QUICK_SIZE);
    !matches!(profile, Profile::Screen | Profile::Quick) || !large || settings.contains_key("size")
}

/// What a profile spends.
struct Spends {
    /// Seconds for all probes.
    probes: u64,
    /// Seconds for a lab that loads a server.
    lab: u64,
    /// Milliseconds for a laboratory's row: its share of a second, process starts included, for every base round and
    /// some more.
    lab_row: u64,
    /// Rounds of each row, and processes at most.
    rounds: (usize, usize),
    /// The relative half width of its interval at which a row rests: of one that computes, and of others.
    targets: (f64, f64),
}

const fn of(profile: Profile) -> Spends {
    let (probes, lab, lab_row, rounds, targets) = match profile {
        Profile::Screen => (screen::SECONDS, 32, 95, (5, 60), (0.012, 0.03)),
        Profile::Quick => (55, 32, 95, (8, 60), (0.012, 0.03)),
        Profile::Standard | Profile::Imported => (180, 90, 360, (16, 200), (0.009, 0.015)),
        Profile::Thorough => (600, 300, 1200, (40, 1000), (0.0075, 0.01)),
    };
    Spends {
        probes,
        lab,
        lab_row,
        rounds,
        targets,
    }
}

/// The time that a profile allows these probes, one per row. Time for some primitives only need not be the time for all
/// of them.
pub fn rows_budget<'a>(profile: Profile, rows: impl Iterator<Item = &'a Probe>) -> Duration {
    // Its rows are few because each tells much, not because little was asked for.
    if profile == Profile::Screen {
        return budget(profile);
    }
    let (labs, primitives): (Vec<&Probe>, Vec<&Probe>) = rows.partition(|p| p.lab.is_some());
    let all: usize = fingerpost_probes::all()
        .filter(|p| p.lab.is_none())
        .map(|p| (p.variants)().len())
        .sum();
    let share = if primitives.is_empty() {
        0.0
    } else {
        (primitives.len() as f64 / all as f64).clamp(0.05, 1.0)
    };
    budget(profile).mul_f64(share) + Duration::from_millis(of(profile).lab_row) * labs.len() as u32
}

/// The time that a profile allows the probes.
pub fn budget(profile: Profile) -> Duration {
    Duration::from_secs(of(profile).probes)
}

/// The time that a profile allows one lab that loads a server, its start and the explaining included. What such a lab
/// is told, it keeps to.
pub fn lab_budget(profile: Profile) -> Duration {
    Duration::from_secs(of(profile).lab)
}

/// Rounds and their limits.
pub fn effort(profile: Profile, budget: Duration) -> Effort {
    let (base_rounds, max_processes) = of(profile).rounds;
    Effort {
        budget,
        base_rounds,
        max_processes,
    }
}

/// The relative half width of its interval at which a row rests.
pub fn target(profile: Profile, row: &Row) -> f64 {
    // One row of a laboratory is one point of a curve.
    let points = if row.probe.lab.is_some() { 2.0 } else { 1.0 };
    let (of_computing, of_others) = of(profile).targets;
    points
        * if matches!(
            row.probe.nature_of(&row.params),
            Nature::Computes | Nature::Streams
        ) {
            of_computing
        } else {
            of_others
        }
}
