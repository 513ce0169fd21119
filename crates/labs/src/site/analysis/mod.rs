//! The site laboratory's analysis: the source's table of rounds, the ratio with its interval, and the size at which the
//! faster one changes.
//!
//! Everything here is computed from a run's rows. In a round all contestants read the same list, so the ratio is taken
//! round by round and its interval from the spread of the ratios over the groups of processes, not from two separate
//! figures.

mod crossing;
#[cfg(any(test, feature = "fixture"))]
#[path = "../../../tests/fixture/site.rs"]
pub mod fixture;

use fingerpost_measure::estimate;
use fingerpost_record::unit::significant;
use fingerpost_record::{Estimate, Measurement, Outcome, Params, Process, Profile, Run, Unit};
use serde::Serialize;

pub use crossing::{AtSize, Crossing, crossing_size, crossings};

/// The rounds that the source's table has.
pub const TABLE_ROUNDS: usize = 11;
/// The best ratio in the source's table.
pub const SOURCE_BEST: f64 = 7.07;
/// What a ratio is told against by default, in the order of preference: the usual way to read a file.
const FILES: [&str; 5] = [
    "files-open",
    "files-openat",
    "files-mmap",
    "files-uring",
    "files",
];

/// What a run's rows come to: made once, for sentences, tables, charts and figures.
pub struct Found {
    /// Each object database against files, the fastest first.
    pub store_ratios: Vec<StoreRatio>,
    /// Round by round from the start.
    pub warming: Vec<Warming>,
    /// What less memory makes of that.
    pub less: Vec<Less>,
    /// The sizes at which the faster one changes.
    pub crossings: Vec<Crossing>,
}

impl Found {
    /// Of a run.
    pub fn of(run: &Run) -> Found {
        let warming = warming(run);
        let less = less(&warming);
        Found {
            store_ratios: store_ratios(run),
            warming,
            less,
            crossings: crossings(run),
        }
    }

    /// The fastest object database of each kind of row, which comes first of it: that of the source's table.
    pub fn fastest(&self) -> impl Iterator<Item = &StoreRatio> {
        self.store_ratios
            .chunk_by(|a, b| a.params == b.params)
            .filter_map(|kind| kind.first())
    }
}

/// One round: nanoseconds of both, and their ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Round {
    /// The file system's time.
    pub files_ns: f64,
    /// The object database's.
    pub odb_ns: f64,
    /// The file system's time divided by the object database's.
    pub ratio: f64,
}

/// Files against one object database.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreRatio {
    /// How files were read.
    pub files: String,
    /// Which object database.
    pub odb: String,
    /// What else tells the rows: `state=warm`, `fs=xfs`.
    pub params: Params,
    /// Every round, in the order measured.
    pub rounds: Vec<Round>,
    /// The ratio over all rounds; nothing for too few.
    pub ratio: Option<Estimate>,
    /// Whether a row of the two is not to be trusted.
    #[serde(skip)]
    pub untrusted: bool,
}

/// A run's comparisons of stores: each object database against the usual way to read files, the fastest first. Those
/// with all of the machine's memory come before those with a limit, the larger before the smaller.
pub fn store_ratios(run: &Run) -> Vec<StoreRatio> {
    let rows: Vec<&Measurement> = measured(run, "site.round").collect();
    let mut store_ratios: Vec<StoreRatio> = Vec::new();
    for odb in rows.iter().filter(|m| !is_files(m)) {
        let rest = without_store(&odb.params);
        let opponent = FILES.iter().find_map(|name| {
            rows.iter()
                .find(|m| m.params.text("store") == Some(name) && without_store(&m.params) == rest)
        });
        store_ratios.extend(opponent.and_then(|files| store_ratio(files, odb, rest)));
    }
    let fastest = |d: &StoreRatio| d.ratio.map_or(0.0, |r| r.value);
    let least = |d: &StoreRatio| d.params.int("memory").map_or(i64::MIN, |bytes| -bytes);
    let by = |a: &StoreRatio, b: &StoreRatio| {
        (least(a), &a.params)
            .cmp(&(least(b), &b.params))
            .then(fastest(b).total_cmp(&fastest(a)))
    };
    store_ratios.sort_by(by);
    store_ratios
}

/// The ratio round by round from the start, as more and more has been loaded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Warming {
    /// How files were read.
    pub files: String,
    /// Which object database.
    pub odb: String,
    /// What else tells the rows: `state=warming memory=4194304`.
    pub params: Params,
    /// The ratio in the first round, the second …, each over all processes.
    pub rounds: Vec<Estimate>,
    /// What was counted of the memory of those that read files, and of the database's readers.
    pub memory: [Memory; 2],
}

/// The counters of a process that begins with nothing of its store loaded: the bytes of memory that its control group
/// had after the last round, page cache included, without its program and what else it had when it entered the group;
/// and how often the group's limit was met.
pub const MEMORY: &str = "memory_bytes";
/// See [`MEMORY`].
pub const MET: &str = "memory_limit_met";

/// What was counted of the memory of one contestant's readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Memory {
    /// Bytes that they had after the last round, in the median over the processes; nothing where that was not counted.
    pub bytes: Option<f64>,
    /// How often they met their limit, in the median; nothing where there was none.
    pub met: Option<f64>,
}

/// The lead of a database when all has been loaded that is kept, with all memory and with the least that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Less {
    /// How files were read.
    pub files: String,
    /// Which object database.
    pub odb: String,
    /// The limit, in bytes.
    pub limit: i64,
    /// The ratio in the last third of the rounds with all memory: the means of what the rounds have.
    pub all: Estimate,
    /// The same with the limit.
    pub little: Estimate,
    /// What was counted of the database's readers with all memory and with the limit.
    pub memory: [Memory; 2],
    /// Whether any reader came to the limit; nothing where that was not counted.
    pub met: Option<bool>,
    /// The same as one sentence, without its full stop.
    pub sentence: String,
}

/// Fewer rounds than these show no course.
const LEAST_ROUNDS: usize = 6;

/// A run's rounds from the start, the fastest database first. A published table is one: its rounds began when nothing
/// was loaded.
pub fn warming(run: &Run) -> Vec<Warming> {
    let from_start = |params: &Params| {
        params
            .text("state")
            .map_or(run.profile == Profile::Imported, |state| state == "warming")
    };
    let rows: Vec<&Measurement> = measured(run, "site.round").collect();
    let row = |name: &str, params: &Params| {
        rows.iter()
            .find(|m| m.params.text("store") == Some(name) && without_store(&m.params) == *params)
            .copied()
    };
    let of = |store_ratio: StoreRatio| {
        let (files, odb) = (
            row(&store_ratio.files, &store_ratio.params)?,
            row(&store_ratio.odb, &store_ratio.params)?,
        );
        let rounds = by_round(files, odb);
        let memory = [files, odb].map(counted);
        (rounds.len() >= LEAST_ROUNDS).then_some(Warming {
            files: store_ratio.files,
            odb: store_ratio.odb,
            params: store_ratio.params,
            rounds,
            memory,
        })
    };
    store_ratios(run)
        .into_iter()
        .filter(|d| from_start(&d.params))
        .filter_map(of)
        .collect()
}

fn counted(row: &Measurement) -> Memory {
    let of = |name: &str| -> Option<f64> {
        let values: Vec<f64> = row
            .processes
            .iter()
            .filter_map(|p| p.counters.get(name).copied())
            .collect();
        (!values.is_empty()).then(|| estimate::median(&values))
    };
    Memory {
        bytes: of(MEMORY),
        met: of(MET),
    }
}

/// Each database that has rounds from the start with all memory and with less, that which keeps what it has
/// walked through first.
pub fn less(found: &[Warming]) -> Vec<Less> {
    let limit = |w: &Warming| w.params.int("memory");
    let without = |w: &Warming| w.params.without(&["memory"]);
    let of = |all: &Warming| -> Option<Less> {
        let limited = found.iter().filter(|w| {
            limit(w).is_some()
                && w.odb == all.odb
                && w.files == all.files
                && without(w) == all.params
        });
        let little = limited.min_by_key(|w| limit(w))?;
        let counted: Vec<f64> = little.memory.iter().filter_map(|m| m.met).collect();
        let mut less = Less {
            files: all.files.clone(),
            odb: all.odb.clone(),
            limit: limit(little)?,
            all: all.last(),
            little: little.last(),
            memory: [all.memory[1], little.memory[1]],
            met: (!counted.is_empty()).then(|| counted.iter().any(|met| *met > 0.0)),
            sentence: String::new(),
        };
        less.sentence = less.words();
        Some(less)
    };
    let mut pairs: Vec<Less> = found
        .iter()
        .filter(|w| limit(w).is_none())
        .filter_map(of)
        .collect();
    pairs.sort_by_key(|less| less.odb != LOADED);
    pairs
}

/// The database that keeps the tables that it has walked through in memory, as the source's did.
pub const LOADED: &str = "lmdb-loaded";

impl Warming {
    /// The ratio in the last third of the rounds: the means of what they have.
    pub fn last(&self) -> Estimate {
        mean(&self.rounds[self.rounds.len() - self.rounds.len() / 3..])
    }
}

/// The means of what these rounds have.
pub fn mean(rounds: &[Estimate]) -> Estimate {
    let mean = |of: fn(&Estimate) -> f64| rounds.iter().map(of).sum::<f64>() / rounds.len() as f64;
    Estimate {
        value: mean(|r| r.value),
        low: mean(|r| r.low),
        high: mean(|r| r.high),
        confidence: estimate::CONFIDENCE,
    }
}

/// A ratio with its interval, in words.
pub(super) fn times(value: f64, low: f64, high: f64) -> String {
    format!(
        "{} times ({}–{})",
        significant(value),
        significant(low),
        significant(high)
    )
}

impl Less {
    /// Whether the two ratios have intervals apart, by which the one with less memory is the smaller one or the larger
    /// one; nothing where they overlap.
    pub fn smaller(&self) -> Option<bool> {
        match () {
            () if self.little.high < self.all.low => Some(true),
            () if self.little.low > self.all.high => Some(false),
            () => None,
        }
    }

    fn words(&self) -> String {
        let limit = Unit::Bytes.format(self.limit as f64);
        let held = |m: &Memory| {
            let met = m.met.filter(|met| *met > 0.0).map_or(String::new(), |met| {
                format!(", meeting the limit {met:.0} times")
            });
            m.bytes.map_or(String::new(), |bytes| {
                format!(", of which it had {}{met}", Unit::Bytes.format(bytes))
            })
        };
        let unmet = if self.met == Some(false) {
            "; no reader reached that limit, which changed nothing"
        } else {
            ""
        };
        format!(
            "{} is {} as fast as {} in the last rounds with all memory{}, and {} with {limit}{}{unmet}",
            self.odb,
            times(self.all.value, self.all.low, self.all.high),
            self.files,
            held(&self.memory[0]),
            times(self.little.value, self.little.low, self.little.high),
            held(&self.memory[1]),
        )
    }
}

/// The ratio of each round over the processes; a published row has a round where ours has a process.
fn by_round(files: &Measurement, odb: &Measurement) -> Vec<Estimate> {
    let of = |m: &Measurement| -> Vec<Vec<f64>> {
        m.processes.iter().map(|p| p.samples.clone()).collect()
    };
    let (mut files, mut odb) = (of(files), of(odb));
    if files.iter().chain(&odb).all(|samples| samples.len() == 1) {
        (files, odb) = (vec![files.concat()], vec![odb.concat()]);
    }
    let ratio = |(f, o): (&Vec<f64>, &Vec<f64>), i: usize| {
        Some(f.get(i)? / o.get(i).filter(|o| **o > 0.0)?)
    };
    let round = |i: usize| {
        over_processes(
            &files
                .iter()
                .zip(&odb)
                .filter_map(|pair| ratio(pair, i))
                .collect::<Vec<f64>>(),
        )
    };
    (0..).map_while(round).collect()
}

/// The figure of what each process has one of. What was measured, or printed, once has no interval.
pub fn over_processes(values: &[f64]) -> Option<Estimate> {
    match values {
        [one] => Some(Estimate {
            value: *one,
            low: *one,
            high: *one,
            confidence: estimate::CONFIDENCE,
        }),
        several => estimate::across_processes(several),
    }
}

/// What each process has of a round, from the first to the last that lived so long; a published row has a round where
/// ours has a process.
pub fn in_round(row: &Measurement, round: usize) -> Vec<f64> {
    if row.processes.iter().all(|p| p.samples.len() == 1) {
        return row
            .processes
            .get(round)
            .into_iter()
            .flat_map(|p| p.samples.clone())
            .collect();
    }
    row.processes
        .iter()
        .map_while(|p| p.samples.get(round).copied())
        .collect()
}

/// The ratio of what the processes of two contestants have of a round, process by process, which read the same list.
pub fn ratio_of_round(files: &[f64], odb: &[f64]) -> Option<Estimate> {
    over_processes(
        &files
            .iter()
            .zip(odb)
            .filter(|(_, o)| **o > 0.0)
            .map(|(f, o)| f / o)
            .collect::<Vec<f64>>(),
    )
}

fn measured<'r>(run: &'r Run, probe: &'static str) -> impl Iterator<Item = &'r Measurement> {
    let has_figure = |m: &&Measurement| matches!(m.outcome, Outcome::Measured | Outcome::Untrusted);
    run.measurements
        .iter()
        .filter(move |m| m.probe == probe)
        .filter(has_figure)
}

fn is_files(m: &Measurement) -> bool {
    m.params
        .text("store")
        .is_none_or(|s| s.starts_with("files"))
}

fn without_store(params: &Params) -> Params {
    params.without(&["store"])
}

/// Pairs the rounds of two rows: the same process group, the same round, hence the same list.
fn store_ratio(files: &Measurement, odb: &Measurement, params: Params) -> Option<StoreRatio> {
    let pairs = || files.processes.iter().zip(&odb.processes);
    let round = |(f, o): (&f64, &f64)| {
        (*f > 0.0 && *o > 0.0).then(|| Round {
            files_ns: *f,
            odb_ns: *o,
            ratio: f / o,
        })
    };
    let rounds: Vec<Round> = pairs()
        .flat_map(|(f, o)| f.samples.iter().zip(&o.samples).filter_map(round))
        .collect();
    if rounds.is_empty() {
        return None;
    }
    // A group of processes has one state of memory; rounds within it repeat that, groups do not.
    let group = |(f, o): (&Process, &Process)| {
        let ratios: Vec<f64> = f
            .samples
            .iter()
            .zip(&o.samples)
            .filter_map(round)
            .map(|r| r.ratio)
            .collect();
        (!ratios.is_empty()).then(|| estimate::median(&ratios))
    };
    let groups: Vec<f64> = pairs().filter_map(group).collect();
    let name = |m: &Measurement| m.params.text("store").unwrap_or_default().to_owned();
    let untrusted = [files, odb]
        .iter()
        .any(|row| row.outcome == Outcome::Untrusted);
    Some(StoreRatio {
        files: name(files),
        odb: name(odb),
        params,
        rounds,
        ratio: estimate::across_processes(&groups),
        untrusted,
    })
}

#[cfg(test)]
mod tests {
    use super::fixture::{loaded, row};
    use super::*;

    fn round(store: &str, groups: &[&[f64]]) -> Measurement {
        row(
            "site.round",
            Params::new().with("store", store).with("state", "warm"),
            groups,
        )
    }

    #[test]
    fn the_sources_own_table() {
        let files: &[f64] = &[
            417.0, 472.0, 459.0, 389.0, 358.0, 293.0, 363.0, 334.0, 509.0, 485.0, 403.0,
        ];
        let odb: &[f64] = &[
            220.0, 144.0, 103.0, 75.0, 68.0, 69.0, 66.0, 66.0, 72.0, 69.0, 65.0,
        ];
        let run = Run {
            measurements: vec![round("files-open", &[files]), round("lmdb", &[odb])],
            ..Run::default()
        };
        let store_ratios = store_ratios(&run);
        assert_eq!(
            (store_ratios.len(), store_ratios[0].rounds.len()),
            (1, TABLE_ROUNDS)
        );
        assert!(
            (store_ratios[0].rounds[0].ratio - 1.895_454_55).abs() < 1e-8
                && (store_ratios[0].rounds[8].ratio - 7.069_444_44).abs() < 1e-8
        );
        let best = store_ratios[0]
            .rounds
            .iter()
            .map(|r| r.ratio)
            .fold(0.0, f64::max);
        assert!((best - SOURCE_BEST).abs() < 0.005);
        assert!(
            (store_ratios[0].ratio.unwrap().value - 5.186_666_67).abs() < 1e-6,
            "the median of the source's ratios"
        );
    }

    #[test]
    fn ratios_are_paired_round_by_round_and_the_fastest_comes_first() {
        // The machine slows threefold between rounds: separate figures would hide what every pair shows.
        let files: &[&[f64]] = &[
            &[100.0, 300.0],
            &[110.0, 290.0],
            &[105.0, 310.0],
            &[300.0, 100.0],
        ];
        let halves: Vec<Vec<f64>> = files
            .iter()
            .map(|g| g.iter().map(|v| v / 2.0).collect())
            .collect();
        let fifths: Vec<Vec<f64>> = files
            .iter()
            .map(|g| g.iter().map(|v| v / 5.0).collect())
            .collect();
        let of = |g: &'static str, v: &[Vec<f64>]| {
            round(g, &v.iter().map(Vec::as_slice).collect::<Vec<_>>())
        };
        let run = Run {
            measurements: vec![
                round("files-open", files),
                of("sqlite", &halves),
                of("lmdb", &fifths),
                round("files-mmap", files),
            ],
            ..Run::default()
        };
        let store_ratios = store_ratios(&run);
        assert_eq!(
            store_ratios
                .iter()
                .map(|d| d.odb.as_str())
                .collect::<Vec<_>>(),
            ["lmdb", "sqlite"]
        );
        let ratio = store_ratios[0].ratio.unwrap();
        assert!((ratio.value - 5.0).abs() < 1e-9 && ratio.high < 5.1 && ratio.low > 4.9);
        assert_eq!(store_ratios[0].files, "files-open");
    }

    #[test]
    fn the_ratio_by_round_is_over_the_processes() {
        let of = |store: &str, state: &str, groups: &[&[f64]]| {
            row(
                "site.round",
                Params::new().with("store", store).with("state", state),
                groups,
            )
        };
        let files: &[f64] = &[80.0, 80.0, 80.0, 80.0, 80.0, 80.0];
        let odb: &[f64] = &[80.0, 40.0, 20.0, 20.0, 10.0, 10.0];
        let run = Run {
            measurements: vec![
                of("files-open", "warming", &[files; 3]),
                of("lmdb-loaded", "warming", &[odb; 3]),
                of("files-open", "warm", &[files; 3]),
                of("lmdb-loaded", "warm", &[odb; 3]),
            ],
            ..Run::default()
        };
        let found = warming(&run);
        assert_eq!(
            (found.len(), found[0].odb.as_str()),
            (1, "lmdb-loaded"),
            "rows of another state are no warming"
        );
        let ratios: Vec<f64> = found[0]
            .rounds
            .iter()
            .map(|r| (r.value * 1e6).round() / 1e6)
            .collect();
        assert_eq!(ratios, [1.0, 2.0, 4.0, 4.0, 8.0, 8.0]);
        // The source's own rounds began with nothing loaded.
        let source = warming(&fingerpost_compare::references::load("site-powermac-9500").unwrap());
        assert_eq!(source[0].rounds.len(), TABLE_ROUNDS);
        assert!(
            (source[0].rounds[0].value - 1.895).abs() < 0.001
                && (source[0].rounds[8].value - SOURCE_BEST).abs() < 0.005
        );
    }

    #[test]
    fn the_lead_with_less_memory_stands_beside_that_with_all() {
        let found = less(&warming(&loaded(1.5, 15.0, 2 << 20, 900.0)));
        assert_eq!(
            (
                found.len(),
                found[0].odb.as_str(),
                found[0].limit,
                found[0].met
            ),
            (1, "lmdb-loaded", 2 << 20, Some(true))
        );
        let told = |e: &Estimate| (e.value * 1e6).round() / 1e6;
        assert_eq!(
            (
                told(&found[0].all),
                told(&found[0].little),
                found[0].smaller()
            ),
            (40.0, 4.0, Some(true))
        );
        assert_eq!(
            found[0].memory[1],
            Memory {
                bytes: Some(2097152.0),
                met: Some(900.0)
            }
        );
        let told = "with 2.000 MiB, of which it had 2.000 MiB, meeting the limit 900 times";
        assert!(found[0].sentence.ends_with(told), "{}", found[0].sentence);
        // All of the memory stands first, whatever the names of the parameters.
        let order: Vec<bool> = store_ratios(&loaded(1.5, 15.0, 2 << 20, 900.0))
            .iter()
            .map(|d| d.params.get("memory").is_some())
            .collect();
        assert_eq!(order, [false, true]);
        // A limit that no reader came to is told to be one.
        let unmet = less(&warming(&loaded(1.5, 1.5, 64 << 20, 0.0)));
        assert_eq!((unmet[0].met, unmet[0].smaller()), (Some(false), None));
        assert!(
            unmet[0]
                .sentence
                .ends_with("no reader reached that limit, which changed nothing"),
            "{}",
            unmet[0].sentence
        );
        let mut alone = loaded(1.5, 15.0, 2 << 20, 900.0);
        alone
            .measurements
            .retain(|m| m.params.get("memory").is_some());
        assert!(
            less(&warming(&alone)).is_empty(),
            "there is nothing to be less than"
        );
        alone
            .measurements
            .iter_mut()
            .for_each(|m| m.processes.iter_mut().for_each(|p| p.counters.clear()));
        assert_eq!(
            warming(&alone)[0].memory,
            [Memory::default(); 2],
            "a record of before has no such counts"
        );
    }
}
