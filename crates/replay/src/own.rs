//! A figure of this machine beside published ones: the row that it is of, or the rows that it is made of, and its
//! interval.

use fingerpost_record::descriptor::FLOPS;
use fingerpost_record::params::named;
use fingerpost_record::{Estimate, Measurement, Outcome, Params, Run};
use serde::Serialize;

use crate::conclusions::best;
use fingerpost_compare::aliases;
use fingerpost_compare::counterparts::{self, Published};
use fingerpost_compare::figure::Figure;
use fingerpost_compare::ratio::{self, CONFIDENCE, QuantileWeights, Ratio};
use fingerpost_compare::references::Column;
use fingerpost_labs::site::analysis;

/// A figure of this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Here {
    /// The figure with its interval, in the table's unit. Where it has none both ends are the value.
    pub estimate: Estimate,
    /// Why it has no interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_interval: Option<&'static str>,
    /// Whether the run says that it is to be trusted.
    pub trusted: bool,
    /// What stands for what, and what the source leaves unsaid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What it is of, for what is derived from it.
    #[serde(skip)]
    origin: Option<Origin>,
}

/// One line of a replayed table: what it is a figure of, as printed, and as measured here.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The probe, with the parameters that the source states.
    pub what: String,
    /// What the source's table prints of the line itself, beside the figures; see [`super::Replayed::about`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Each system's figure as printed; nothing where the source has none.
    pub printed: Vec<Option<String>>,
    /// This machine's figure in the table's unit.
    pub here: Option<Here>,
}

/// Why a figure has no interval.
pub const MEASURED_ONCE: &str = "measured once";
/// The same of a figure that is divided by itself.
pub const BY_DEFINITION: &str = "100 % by definition";
/// The same of two figures of which each may have been measured when the other was not: what lies between is in the
/// interval of neither.
pub const NOT_SIDE_BY_SIDE: &str = "its two figures were not measured side by side";

/// Where a figure is from: its run among those of the table, the row, and its repetitions in the run's own unit.
#[derive(Clone, Debug, PartialEq)]
struct Origin {
    run: usize,
    params: Params,
    figure: Figure,
}

impl Here {
    /// A figure that is derived from others.
    pub(super) fn derived(estimate: Estimate, trusted: bool, note: Option<String>) -> Here {
        let without_interval = (estimate.low == estimate.high).then_some(MEASURED_ONCE);
        Here {
            estimate,
            without_interval,
            trusted,
            note,
            origin: None,
        }
    }

    /// What this one is in per cent of itself.
    pub(super) fn whole(&self) -> Here {
        let estimate = Estimate {
            value: 100.0,
            low: 100.0,
            high: 100.0,
            confidence: self.estimate.confidence,
        };
        Here {
            without_interval: Some(BY_DEFINITION),
            ..Here::derived(estimate, self.trusted, self.note.clone())
        }
    }

    /// This one divided by another, times a factor, with the interval of the ratio of two rows. Nothing where there is
    /// no ratio.
    pub(super) fn quotient(&self, by: &Here, times: f64) -> Option<Here> {
        let of_rows = |a: &Origin, b: &Origin| {
            let mut weights = QuantileWeights::default();
            let mut level =
                |of: &Origin| ratio::level(std::slice::from_ref(&of.figure), &mut weights);
            let Ratio {
                value, low, high, ..
            } = ratio::between(level(b)?, level(a)?, false);
            Some(Estimate {
                value,
                low,
                high,
                confidence: CONFIDENCE,
            })
        };
        self.divided(by, times, |a, b| a.run == b.run, of_rows)
    }

    /// This round divided by the same round of another row: each process's by that of the process beside it, as
    /// [`site`] has it.
    pub(super) fn quotient_of_rounds(&self, by: &Here) -> Option<Here> {
        let rest = |of: &Origin| (of.run, of.params.without(&["store"]));
        let processes = |a: &Origin, b: &Origin| {
            analysis::ratio_of_round(&a.figure.processes, &b.figure.processes)
        };
        self.divided(by, 1.0, |a, b| rest(a) == rest(b), processes)
    }

    fn divided(
        &self,
        by: &Here,
        times: f64,
        side_by_side: impl Fn(&Origin, &Origin) -> bool,
        ratio: impl Fn(&Origin, &Origin) -> Option<Estimate>,
    ) -> Option<Here> {
        let (a, b) = (self.origin.as_ref()?, by.origin.as_ref()?);
        let beside = side_by_side(a, b);
        let value = self.estimate.value / by.estimate.value;
        let alone = Estimate {
            value,
            low: value,
            high: value,
            confidence: self.estimate.confidence,
        };
        let e = if beside {
            ratio(a, b)?
        } else {
            Some(alone).filter(|e| e.value.is_finite())?
        };
        let estimate = Estimate {
            value: times * e.value,
            low: times * e.low,
            high: times * e.high,
            confidence: e.confidence,
        };
        // What stands for what in either; what is said of both is said once.
        let parts = |here: &Here| {
            here.note
                .iter()
                .flat_map(|note| note.split("; "))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let of_other = parts(by)
            .into_iter()
            .filter(|part| !parts(self).contains(part));
        let notes: Vec<String> = parts(self).into_iter().chain(of_other).collect();
        let here = Here::derived(
            estimate,
            self.trusted && by.trusted,
            (!notes.is_empty()).then(|| notes.join("; ")),
        );
        Some(if beside {
            here
        } else {
            Here {
                without_interval: Some(NOT_SIDE_BY_SIDE),
                ..here
            }
        })
    }
}

/// A row of this machine that is a published one or stands for it.
pub(super) struct Ours {
    pub row: Measurement,
    note: Option<String>,
    run: usize,
}

impl Ours {
    fn new(row: Measurement, note: Option<String>) -> Ours {
        Ours { row, note, run: 0 }
    }

    /// The same, of the run of this number.
    pub fn of_run(self, run: usize) -> Ours {
        Ours { run, ..self }
    }

    /// With a further note.
    pub fn also(self, note: &str) -> Ours {
        let note = self
            .note
            .map_or_else(|| note.to_owned(), |first| format!("{first}; {note}"));
        Ours {
            note: Some(note),
            ..self
        }
    }

    /// The row's figure.
    pub fn here(&self, scale: f64) -> Option<Here> {
        let e = self.row.estimate?;
        Some(self.figure(e, self.row.process_values(), scale))
    }

    /// The figure of one round: over the processes that each had such a round; where none lived so long, the next that
    /// any had.
    pub fn in_round(&self, round: usize, scale: f64) -> Option<Here> {
        let values = analysis::in_round(&self.row, round);
        let next = || {
            self.row
                .processes
                .iter()
                .flat_map(|p| &p.samples)
                .nth(round)
                .copied()
        };
        let values = if values.is_empty() {
            next().into_iter().collect()
        } else {
            values
        };
        Some(self.figure(analysis::over_processes(&values)?, values, scale))
    }

    fn figure(&self, e: Estimate, processes: Vec<f64>, scale: f64) -> Here {
        let figure = Figure::of(e, processes);
        let estimate = Estimate {
            value: e.value / scale,
            low: e.low / scale,
            high: e.high / scale,
            confidence: e.confidence,
        };
        let here = Here::derived(
            estimate,
            self.row.outcome == Outcome::Measured,
            self.note.clone(),
        );
        Here {
            origin: Some(Origin {
                run: self.run,
                params: self.row.params.clone(),
                figure,
            }),
            ..here
        }
    }
}

/// What a run has for a published column.
pub(super) fn ours(run: &Run, column: &Column) -> Option<Ours> {
    if let Some(published) = counterparts::published(&column.probe)
        && run.measurements.iter().all(|m| m.probe != column.probe)
    {
        return mean(run, published);
    }
    if column.probe == FLOPS {
        return floating_point(run, column);
    }
    let row = best(run, &column.probe, &column.params)?;
    Some(Ours::new(row.clone(), note(column, row)?))
}

/// What stands for what in a row, and what the published one leaves unsaid.
fn note(column: &Column, row: &Measurement) -> Option<Option<String>> {
    let note = aliases::matches(&column.probe, &column.params, &row.params)?;
    let unsaid: Vec<String> = note
        .unstated
        .iter()
        .filter_map(|key| Some(named(key, row.params.get(key)?)))
        .collect();
    let aliased = note
        .aliased
        .iter()
        .map(|(key, published, ours)| format!("{key} {ours} stands for {published}"));
    let parts: Vec<String> = aliased
        .chain((!unsaid.is_empty()).then(|| unsaid.join(" ")))
        .collect();
    Some((!parts.is_empty()).then(|| parts.join("; ")))
}

/// A module, or the average of all eight, as one compiler makes them: each published column is one compiler's, and so
/// is this machine's.
fn floating_point(run: &Run, column: &Column) -> Option<Ours> {
    let modules = by_one_compiler(run)?;
    if let Some(number) = column.params.int("module") {
        let row = modules
            .iter()
            .find(|row| row.params.int("module") == Some(number))?;
        return Some(Ours::new((*row).clone(), note(column, row)?));
    }
    // The published average is the arithmetic mean.
    let all: Vec<Estimate> = modules.iter().filter_map(|row| row.estimate).collect();
    let estimate = mean_of(&all);
    let trusted = modules.iter().all(|row| row.outcome == Outcome::Measured);
    let outcome = if trusted {
        Outcome::Measured
    } else {
        Outcome::Untrusted
    };
    let params = modules[0].params.without(&["module"]);
    let by = params
        .iter()
        .map(|(key, value)| named(key, value))
        .collect::<Vec<_>>()
        .join(" ");
    let note = if by.is_empty() {
        String::new()
    } else {
        format!("{by}; ")
    } + "mean of the eight modules";
    let row = Measurement {
        estimate: Some(estimate),
        outcome,
        processes: Vec::new(),
        params,
        ..modules[0].clone()
    };
    (all.len() == 8).then(|| Ours::new(row, Some(note)))
}

/// The arithmetic mean of figures, and of the ends of their intervals.
fn mean_of(all: &[Estimate]) -> Estimate {
    let mean = |of: fn(&Estimate) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    let [value, low, high] = [mean(|e| e.value), mean(|e| e.low), mean(|e| e.high)];
    Estimate {
        value,
        low,
        high,
        confidence: all[0].confidence,
    }
}

/// The modules' rows of one compiler with its flags: of those with most modules the one whose average is highest, one
/// that is to be trusted before one that is not.
fn by_one_compiler(run: &Run) -> Option<Vec<&Measurement>> {
    let mut compilers: Vec<(Params, Vec<&Measurement>)> = Vec::new();
    let measured = |row: &&Measurement| {
        matches!(row.outcome, Outcome::Measured | Outcome::Untrusted) && row.estimate.is_some()
    };
    let modules = run.measurements.iter().filter(|row| {
        row.probe == FLOPS
            && row
                .params
                .int("module")
                .is_some_and(|n| (1..=8).contains(&n))
    });
    for row in modules.filter(measured) {
        let compiler = row.params.without(&["module"]);
        match compilers.iter_mut().find(|(known, _)| *known == compiler) {
            Some((_, modules)) => modules.push(row),
            None => compilers.push((compiler, vec![row])),
        }
    }
    let rank = |modules: &[&Measurement]| {
        let sum: f64 = modules
            .iter()
            .filter_map(|row| row.estimate)
            .map(|e| e.value)
            .sum();
        (
            modules.len(),
            modules.iter().all(|row| row.outcome == Outcome::Measured),
            sum,
        )
    };
    compilers
        .into_iter()
        .map(|(_, modules)| modules)
        .max_by(|a, b| {
            rank(a)
                .partial_cmp(&rank(b))
                .unwrap_or(std::cmp::Ordering::Equal)
        })
}

/// What stands beside a figure that no probe measures: the mean of two that probes do.
fn mean(run: &Run, published: &Published) -> Option<Ours> {
    let [one, other] = published.mean_of()[..] else {
        return None;
    };
    let none = Params::new();
    let (first, second) = (best(run, one, &none)?, best(run, other, &none)?);
    let estimate = mean_of(&[first.estimate?, second.estimate?]);
    let outcome = if second.outcome == Outcome::Measured {
        first.outcome
    } else {
        second.outcome
    };
    let row = Measurement {
        estimate: Some(estimate),
        outcome,
        processes: Vec::new(),
        descriptor: None,
        ..first.clone()
    };
    Some(Ours::new(row, Some(format!("mean of {one} and {other}"))))
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Better, Process, Unit};

    use super::*;
    use crate::{Replayed, replay};
    use fingerpost_compare::references;

    /// A run of ours with the rounds of MySQL's table: five starts of the server.
    fn scaling() -> Run {
        let mut run = references::load("opteron-850-linux").unwrap();
        run.measurements
            .retain(|m| m.params.text("query_cache") == Some("off"));
        for m in &mut run.measurements {
            let value = m.estimate.unwrap().value;
            m.processes = [0.97, 0.99, 1.0, 1.01, 1.03]
                .map(|share| Process::of_one(share * value, 1))
                .to_vec();
            m.estimate = fingerpost_measure::estimate::across_processes(&m.process_values());
        }
        run
    }

    fn table(name: &'static str, runs: &[Run]) -> Replayed {
        replay(name, &[name], runs).tables.remove(0)
    }

    #[test]
    fn a_row_keeps_its_interval_and_a_ratio_of_two_has_that_of_the_comparison() {
        let run = scaling();
        let lines = table("mysql-scaling", std::slice::from_ref(&run)).lines;
        let here = |at: usize| lines[at].here.clone().unwrap();
        let (one, ten) = (
            run.measurements[0].estimate.unwrap(),
            run.measurements[3].estimate.unwrap(),
        );
        assert_eq!((here(0).estimate, here(3).estimate), (one, ten));
        assert!(ten.high > ten.low && here(3).without_interval.is_none());
        let percent = here(10).estimate;
        assert!(
            (percent.value - 100.0 * ten.value / one.value).abs() < 1e-9,
            "what a reader divides: {percent:?}"
        );
        let figure = |at: usize| {
            let (e, processes) = (
                run.measurements[at].estimate.unwrap(),
                run.measurements[at].process_values(),
            );
            Figure {
                value: e.value,
                low: e.low,
                high: e.high,
                confidence: e.confidence,
                processes,
                host_made: None,
            }
        };
        let level =
            |at: usize| ratio::level(&[figure(at)], &mut QuantileWeights::default()).unwrap();
        let expected = ratio::between(level(0), level(3), false);
        assert!(
            (percent.low - 100.0 * expected.low).abs() < 1e-9
                && (percent.high - 100.0 * expected.high).abs() < 1e-9
        );
        // Narrower than from end to end of both, wider than what one alone has.
        assert!(
            percent.low > 100.0 * ten.low / one.high && percent.high < 100.0 * ten.high / one.low,
            "{percent:?}"
        );
        assert_eq!(
            (here(7).estimate.value, here(7).without_interval),
            (100.0, Some(BY_DEFINITION))
        );
    }

    #[test]
    fn figures_of_two_runs_have_a_ratio_without_interval() {
        let (mut most, mut rest) = (scaling(), scaling());
        most.measurements.remove(3);
        rest.measurements = vec![rest.measurements.remove(3)];
        rest.id = "rest".into();
        let lines = table("mysql-scaling", &[most, rest]).lines;
        let here = lines[10].here.as_ref().unwrap();
        assert_eq!(
            (here.estimate.low, here.estimate.high),
            (here.estimate.value, here.estimate.value)
        );
        assert_eq!(here.without_interval, Some(NOT_SIDE_BY_SIDE));
        assert!(lines[9].here.as_ref().unwrap().without_interval.is_none());
    }

    /// Four processes of a contestant with eleven rounds each.
    fn rounds(store: &str, scale: f64, state: &str) -> Measurement {
        let params = Params::new().with("store", store).with("state", state);
        let of = |process: usize| {
            let samples = (0..11)
                .map(|round| {
                    scale * (1.0 + 0.02 * process as f64) * (100.0 - 5.0 * f64::from(round))
                })
                .collect();
            Process {
                samples,
                value: Some(scale * 75.0),
                batch: 1,
                ..Process::default()
            }
        };
        let none = Measurement {
            version: 2,
            ..fingerpost_record::fixture::row(
                "site.round",
                params,
                Unit::Nanoseconds,
                Better::Lower,
            )
        };
        let e = fingerpost_measure::estimate::across_processes(&[scale * 75.0; 4]);
        Measurement {
            estimate: e,
            processes: (0..4).map(of).collect(),
            ..none
        }
    }

    #[test]
    fn a_round_is_that_of_all_processes_and_its_ratio_is_taken_process_by_process() {
        let run = |odb: &str| Run {
            measurements: vec![rounds("files-open", 5e8, "warm"), rounds("lmdb", 1e8, odb)],
            ..Run::default()
        };
        let found = table("site", &[run("warm")]);
        let here = |at: usize| found.lines[at].here.clone().unwrap();
        let scale = references::table("site").unwrap().scale;
        let expected = fingerpost_measure::estimate::across_processes(
            &[90.0, 91.8, 93.6, 95.4].map(|v| v * 5e8),
        )
        .unwrap();
        assert!(
            (here(2).estimate.value - expected.value / scale).abs() < 1e-6,
            "the third round: {:?}",
            here(2)
        );
        assert!(
            here(2).estimate.low < here(2).estimate.value && here(2).without_interval.is_none()
        );
        let ratio = here(24).estimate;
        let both =
            "store files-open stands for files; state=warm; store lmdb stands for object-database";
        assert_eq!(here(24).note.as_deref(), Some(both));
        assert!(
            (ratio.value - 5.0).abs() < 1e-9
                && ratio.low < 5.0
                && ratio.high > 5.0
                && ratio.high < 5.1,
            "{ratio:?}"
        );
        // Of another state nothing was read beside it.
        let apart = table("site", &[run("cold")]).lines[24]
            .here
            .clone()
            .unwrap();
        assert_eq!(apart.without_interval, Some(NOT_SIDE_BY_SIDE));
    }

    #[test]
    fn what_was_printed_once_has_no_interval_and_says_why() {
        let run = references::load("site-powermac-9500").unwrap();
        let found = table("site", std::slice::from_ref(&run));
        assert!(found.own_is_published);
        for line in &found.lines {
            let here = line.here.as_ref().unwrap();
            assert_eq!(
                (here.estimate.low, here.without_interval),
                (here.estimate.value, Some(MEASURED_ONCE)),
                "{}",
                line.what
            );
        }
        let json = serde_json::to_value(&found.lines[0]).unwrap();
        assert_eq!(json["here"]["without_interval"], MEASURED_ONCE);
        assert!(json["here"].get("origin").is_none());
    }

    #[test]
    fn the_column_of_floating_point_is_one_compilers() {
        let module = |compiler: &str, number: i64, value: f64, outcome: Outcome| {
            let params = Params::new()
                .with("compiler", compiler)
                .with("module", number);
            let none = Measurement::without_figure(
                FLOPS,
                1,
                params,
                Unit::FlopPerSecond,
                Better::Higher,
                outcome,
                String::new(),
            );
            let half = 0.1 * value;
            Measurement {
                estimate: Some(Estimate {
                    value,
                    low: value - half,
                    high: value + half,
                    confidence: 0.95,
                }),
                ..none
            }
        };
        let of = |compiler: &str, fast: i64, outcome: Outcome| {
            (1..=8)
                .map(|n| {
                    module(
                        compiler,
                        n,
                        if n == fast {
                            9e9
                        } else {
                            1e9 * n as f64 / fast as f64
                        },
                        outcome,
                    )
                })
                .collect::<Vec<_>>()
        };
        // Each is the faster one in a module; one that was doubted is faster in all.
        let mut run = Run {
            measurements: [
                of("gcc 12", 1, Outcome::Measured),
                of("clang 14", 2, Outcome::Measured),
            ]
            .concat(),
            ..Run::default()
        };
        run.measurements
            .extend((1..=8).map(|n| module("icc", n, 9e10, Outcome::Untrusted)));
        run.measurements
            .push(module("tcc", 3, 9e11, Outcome::Measured));
        let lines = table("flops", std::slice::from_ref(&run)).lines;
        let here: Vec<f64> = lines
            .iter()
            .map(|line| line.here.as_ref().unwrap().estimate.value)
            .collect();
        assert_eq!(here, [9e3, 2e3, 3e3, 4e3, 5e3, 6e3, 7e3, 8e3, 5.5e3]);
        let notes: Vec<&str> = lines
            .iter()
            .map(|line| line.here.as_ref().unwrap().note.as_deref().unwrap())
            .collect();
        assert_eq!(
            (notes[1], notes[8]),
            (
                "compiler=gcc 12",
                "compiler=gcc 12; mean of the eight modules"
            )
        );
        assert!((lines[8].here.as_ref().unwrap().estimate.low / 4.95e3 - 1.0).abs() < 1e-9);
        // Of fewer modules there is no average.
        run.measurements
            .retain(|m| m.params.int("module") != Some(4));
        let fewer = table("flops", std::slice::from_ref(&run)).lines;
        assert_eq!(fewer.iter().filter(|line| line.here.is_some()).count(), 7);
        assert!(fewer[3].here.is_none() && fewer[8].here.is_none());
    }

    #[test]
    fn processes_that_did_not_live_so_long_leave_the_next_that_did_without_an_interval() {
        let mut short = rounds("files-open", 5e8, "cold");
        short
            .processes
            .iter_mut()
            .for_each(|p| p.samples.truncate(4));
        let ours = Ours::new(short, None);
        assert!(ours.in_round(3, 1.0).unwrap().without_interval.is_none());
        let fifth = ours.in_round(4, 1.0).unwrap();
        assert!(
            (fifth.estimate.value - 5.1e10).abs() < 1.0,
            "the first of the second process: {fifth:?}"
        );
        assert_eq!(fifth.without_interval, Some(MEASURED_ONCE));
        assert_eq!(ours.in_round(16, 1.0), None);
    }
}
