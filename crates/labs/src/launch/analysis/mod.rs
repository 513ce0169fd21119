//! The launch laboratory's table: applications by placements, ratios to the default, what paging there was, and the
//! answer.
//!
//! Made of a run alone, so the source's own tables (`ref:launch-10.1`) go through it as well.

mod cells;

use std::collections::{BTreeMap, BTreeSet};

use fingerpost_diagnose::mapped::mapped;
use fingerpost_record::{Estimate, Measurement, Readings, Run};

use fingerpost_compare::figure::Figure;
use fingerpost_compare::ratio::{QuantileWeights, Ratio};

pub use cells::Cell;
use cells::{Given, cells, given};

/// What makes figures of another placement.
const OTHER_PLACEMENT: &str = "name others with --set placements=…";
/// The same where the machine is taken as it is.
const OTHER_BOOT: &str =
    "boot with swap arranged in another way, record that, and compare the two runs";
/// A share of time that nobody notices.
const THRESHOLD: f64 = 0.03;

/// One line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The application.
    pub app: String,
    /// A cell for each placement, where there is one.
    pub cells: Vec<Option<Cell>>,
}

/// What the system did under one placement, on average over its sequences.
#[derive(Clone, Debug, PartialEq)]
pub struct Paging {
    /// The placement.
    pub placement: String,
    /// Totals by name, as the observation has them.
    pub totals: BTreeMap<String, f64>,
}

/// What the answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Another placement is faster than the default.
    Helps,
    /// Every other placement is slower.
    Hurts,
    /// No placement differs from the default by what anybody would notice.
    Same,
    /// The intervals are too wide to tell.
    Unresolved,
    /// Fewer than two placements have figures.
    NothingToCompare,
}

/// The whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The placements, the default first.
    pub placements: Vec<String>,
    /// The applications in the order launched.
    pub lines: Vec<Line>,
    /// The sum over the applications.
    pub sum: Vec<Option<Cell>>,
    /// Paging, where it was observed.
    pub paging: Vec<Paging>,
    /// How soon the applications touched the memory that they asked for, as a sentence; nothing where nobody looked.
    pub mapped: Option<String>,
    /// What was skipped or failed: its name and why.
    pub missing: Vec<(String, String)>,
    /// What makes figures of another placement.
    next: &'static str,
    /// The answer.
    pub answer: Answer,
    /// The answer in a sentence or two.
    pub sentence: String,
}

/// The table of a run; nothing where it has no row of the laboratory.
pub fn analyse(run: &Run) -> Option<Launch> {
    let rows: Vec<&Measurement> = run
        .measurements
        .iter()
        .filter(|m| matches!(m.probe.as_str(), "launch.time" | "launch.sum"))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let measured = |m: &&&Measurement| m.estimate.is_some();
    let mut placements = distinct(
        rows.iter()
            .filter(measured)
            .filter_map(|m| m.params.text("placement")),
    );
    // The run's own default was asked for first, but the rounds come in random order.
    let asked = asked_order(run);
    placements.sort_by_key(|p| asked.iter().position(|a| a == p).unwrap_or(usize::MAX));
    let apps = distinct(
        rows.iter()
            .filter(measured)
            .filter_map(|m| m.params.text("app")),
    );
    let find = |probe: &str, app: Option<&str>, placement: &str| {
        rows.iter()
            .find(|m| {
                m.probe == probe
                    && m.params.text("app") == app
                    && m.params.text("placement") == Some(placement)
            })
            .copied()
    };
    let mut weights = QuantileWeights::default();
    let line = |app: String| {
        let row = placements
            .iter()
            .map(|p| find("launch.time", Some(&app), p).and_then(given))
            .collect();
        Line {
            cells: cells(row, &mut weights),
            app,
        }
    };
    let lines: Vec<Line> = apps.into_iter().map(line).collect();
    let sums = placements.iter().enumerate().map(|(i, p)| {
        find("launch.sum", None, p)
            .and_then(given)
            .or_else(|| added(&lines, i))
    });
    let sum = cells(sums.collect(), &mut weights);
    let paging = paging(run, &placements);
    let missing = rows
        .iter()
        .filter(|m| m.estimate.is_none())
        .map(|m| (m.params.to_string(), m.reason.clone().unwrap_or_default()));
    let mapped =
        mapped(&Readings::of(run.observations.iter().filter(|o| {
            o.workload == "launch" && o.observer == "mappings"
        })));
    let mut launch = Launch {
        missing: missing.collect(),
        next: if rows
            .iter()
            .any(|m| m.params.text("state") == Some("after-boot"))
        {
            OTHER_BOOT
        } else {
            OTHER_PLACEMENT
        },
        answer: Answer::NothingToCompare,
        sentence: String::new(),
        mapped: mapped.map(|m| m.sentence),
        placements,
        lines,
        sum,
        paging,
    };
    launch.answer = answer(&launch.sum);
    launch.sentence = sentence(&launch);
    Some(launch)
}

/// Seconds as the source printed them, one decimal; below a second with more, where one would hide what the ratio
/// beside it says.
pub fn seconds(ns: f64) -> String {
    let s = ns / 1e9;
    match s {
        s if s >= 0.995 => format!("{s:.1}"),
        s if s >= 0.0995 => format!("{s:.2}"),
        s => format!("{s:.3}"),
    }
}

/// Placements in the order that the user asked for, or that the figures were printed in.
fn asked_order(run: &Run) -> Vec<String> {
    let setting = run.command.iter().find_map(|word| {
        word.strip_prefix("placements=")
            .or(word.strip_prefix("--set=placements="))
    });
    match setting {
        Some(list) => list.split(',').map(|p| p.trim().to_owned()).collect(),
        None => ["none", "default", "file", "loop", "zram"]
            .map(str::to_owned)
            .to_vec(),
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names
        .filter(|name| seen.insert(*name))
        .map(str::to_owned)
        .collect()
}

/// The sum of a column where no sequence summed it: of published figures, whose errors are independent roundings.
fn added(lines: &[Line], column: usize) -> Option<Given> {
    let cells: Option<Vec<&Cell>> = lines
        .iter()
        .map(|line| line.cells[column].as_ref())
        .collect();
    let cells = cells.filter(|cells| !cells.is_empty())?;
    let value: f64 = cells.iter().map(|c| c.time.value).sum();
    let half = cells
        .iter()
        .map(|c| ((c.time.high - c.time.low) / 2.0).powi(2))
        .sum::<f64>()
        .sqrt();
    let sum = Estimate {
        value,
        low: value - half,
        high: value + half,
        confidence: 0.95,
    };
    Some(Given {
        figure: Figure::of(sum, Vec::new()),
        doubtful: cells.iter().any(|c| c.doubtful),
    })
}

fn paging(run: &Run, placements: &[String]) -> Vec<Paging> {
    let of = |placement: &String| {
        let seen = |o: &&fingerpost_record::Observation| {
            o.workload == "launch"
                && o.observer == "paging"
                && o.params.text("placement") == Some(placement)
        };
        let found = run.observations.iter().find(seen)?;
        Some(Paging {
            placement: placement.clone(),
            totals: found.totals.clone(),
        })
    };
    placements.iter().filter_map(of).collect()
}

fn answer(sum: &[Option<Cell>]) -> Answer {
    let ratios: Vec<Ratio> = sum.iter().flatten().filter_map(|c| c.ratio).collect();
    if ratios.is_empty() {
        Answer::NothingToCompare
    } else if ratios.iter().any(|r| r.high < 1.0 - THRESHOLD) {
        Answer::Helps
    } else if ratios.iter().all(|r| r.low > 1.0 + THRESHOLD) {
        Answer::Hurts
    } else if ratios
        .iter()
        .all(|r| r.low > 1.0 - THRESHOLD && r.high < 1.0 + THRESHOLD)
    {
        Answer::Same
    } else {
        Answer::Unresolved
    }
}

/// What the sentence begins with where nothing is decided.
pub const OPEN: &str = "Whether a dedicated swap place helps here is not resolved: ";

fn sentence(launch: &Launch) -> String {
    let Some((best, cell)) = best(launch) else {
        if launch.placements.len() > 1 {
            return "No two placements have a whole sequence, so their sums cannot be compared; the applications' own \
                ratios can."
                .into();
        }
        return format!(
            "One placement has figures, so there is nothing to compare it with: {}.",
            launch.next
        );
    };
    let (Some(ratio), Some(Some(base))) = (cell.ratio, launch.sum.first()) else {
        return String::new();
    };
    let (default, name, count) = (
        &launch.placements[0],
        &launch.placements[best],
        launch.lines.len(),
    );
    let times = format!(
        "{} s against {} s under {default}",
        seconds(cell.time.value),
        seconds(base.time.value)
    );
    let range = format!(
        "{:.2} times ({:.2}–{:.2})",
        ratio.value, ratio.low, ratio.high
    );
    let said = match launch.answer {
        Answer::Helps => {
            let whom = for_whom(launch, best);
            format!(
                "A dedicated swap place helps here: under {name} the {count} applications take {times}, {range}{whom}."
            )
        }
        Answer::Hurts => format!(
            "A dedicated swap place does not help here: even under {name}, the best, the {count} applications take \
             {times}, {range}."
        ),
        Answer::Same => {
            format!(
                "A dedicated swap place changes nothing here: under {name} the {count} applications take {times}, \
                 {range}."
            )
        }
        _ => format!(
            "{OPEN}under {name} the {count} applications take {times}, {range}; more rounds would decide it."
        ),
    };
    let said = said + &untrusted(launch, best);
    if nothing_swapped(launch) {
        return format!(
            "{said} Nothing was swapped out, so the placements had nothing to differ by: set a lower `pressure`."
        );
    }
    said
}

/// The sum of times under the best of the other placements, in times of that under the default.
pub fn gain(launch: &Launch) -> Option<f64> {
    best(launch)?.1.ratio.map(|ratio| ratio.value)
}

/// What the sentence says of sums that are not to be trusted; nothing where they are.
pub fn doubt(launch: &Launch) -> String {
    best(launch).map_or_else(String::new, |(best, _)| untrusted(launch, best))
}

/// Which of the two sums that are told is not to be trusted.
fn untrusted(launch: &Launch, best: usize) -> String {
    let doubtful = |i: &usize| launch.sum[*i].as_ref().is_some_and(|cell| cell.doubtful);
    let names: Vec<&str> = [0, best]
        .iter()
        .filter(|i| doubtful(i))
        .map(|i| launch.placements[*i].as_str())
        .collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!(" The sum under {one} is untrusted."),
        all => format!(" The sums under {} are untrusted.", all.join(" and ")),
    }
}

/// The placement other than the default that is fastest for certain: whose ratio's interval ends lowest. A lower ratio
/// that may as well be above 1 proves nothing.
fn best(launch: &Launch) -> Option<(usize, &Cell)> {
    let cells = launch
        .sum
        .iter()
        .enumerate()
        .filter_map(|(i, cell)| cell.as_ref().map(|cell| (i, cell)));
    let others = cells.filter_map(|(i, cell)| Some((i, cell, cell.ratio?.high)));
    others
        .min_by(|a, b| a.2.total_cmp(&b.2))
        .map(|(i, cell, _)| (i, cell))
}

fn for_whom(launch: &Launch, placement: usize) -> String {
    let ratios: Vec<(&str, Ratio)> = launch
        .lines
        .iter()
        .filter_map(|l| Some((l.app.as_str(), l.cells[placement].as_ref()?.ratio?)))
        .collect();
    let helped: Vec<&(&str, Ratio)> = ratios.iter().filter(|(_, r)| r.high < 1.0).collect();
    match helped.iter().min_by(|a, b| a.1.value.total_cmp(&b.1.value)) {
        Some((app, ratio)) => format!(
            "; it helps {} of {} for certain, {app} most ({:.2} times)",
            helped.len(),
            ratios.len(),
            ratio.value
        ),
        None => "; for none of them alone is it certain".into(),
    }
}

/// Whether paging was observed, and no page went to swap.
fn nothing_swapped(launch: &Launch) -> bool {
    let outs = ["swap_out.pages", "zswap_out.pages"];
    let outs: Vec<f64> = launch
        .paging
        .iter()
        .flat_map(|p| outs.iter().filter_map(|name| p.totals.get(*name).copied()))
        .collect();
    !outs.is_empty() && outs.iter().all(|pages| *pages == 0.0)
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Better, Observation, Outcome, Params, Process, Unit};

    use super::*;

    fn row(probe: &str, app: Option<&str>, placement: &str, values: &[f64]) -> Measurement {
        let mut params = Params::new().with("placement", placement);
        if let Some(app) = app {
            params = params.with("app", app);
        }
        let none = Measurement::without_figure(
            probe,
            1,
            params,
            Unit::Nanoseconds,
            Better::Lower,
            Outcome::Skipped,
            "why".into(),
        );
        if values.is_empty() {
            return none;
        }
        let process = |v: &f64| Process {
            value: Some(*v),
            samples: vec![*v],
            ..Process::default()
        };
        let value = fingerpost_compare::references::median_interval(values);
        Measurement {
            outcome: Outcome::Measured,
            reason: None,
            estimate: Some(value),
            processes: values.iter().map(process).collect(),
            ..none
        }
    }

    fn run(rows: Vec<Measurement>) -> Run {
        Run {
            measurements: rows,
            ..Run::default()
        }
    }

    fn two(default: &[f64], other: &[f64]) -> Run {
        run(vec![
            row("launch.time", Some("a"), "file", default),
            row("launch.sum", None, "file", default),
            row("launch.time", Some("a"), "loop", other),
            row("launch.sum", None, "loop", other),
        ])
    }

    #[test]
    fn the_sources_own_table_says_what_its_author_said() {
        let old = analyse(&fingerpost_compare::references::load("launch-10.0.4").unwrap()).unwrap();
        assert_eq!(old.placements, ["default", "single", "dual"]);
        assert_eq!(
            (old.lines.len(), old.lines[0].app.as_str()),
            (10, "Internet Connect")
        );
        assert_eq!(old.answer, Answer::Helps);
        // 44.2 s against 68.1 s.
        assert!(
            old.sentence
                .contains("under dual the 10 applications take 44.2 s against 68.1 s under default, 0.65 times"),
            "{}",
            old.sentence
        );
        assert!(
            old.sentence
                .contains("GraphicConverter 4.08 most (0.52 times)"),
            "{}",
            old.sentence
        );
        let new = analyse(&fingerpost_compare::references::load("launch-10.1").unwrap()).unwrap();
        assert_eq!(new.answer, Answer::Helps);
        assert!(
            new.sentence.contains("27.0 s against 39.3 s"),
            "{}",
            new.sentence
        );
    }

    #[test]
    fn each_answer_is_given_where_it_is_due() {
        let base = [10e9, 10.1e9, 9.9e9, 10e9, 10.05e9, 9.95e9];
        let times = |f: f64| base.map(|v| v * f);
        let answer = |run: &Run| analyse(run).unwrap().answer;
        assert_eq!(answer(&two(&base, &times(0.8))), Answer::Helps);
        assert_eq!(answer(&two(&base, &times(1.3))), Answer::Hurts);
        assert_eq!(answer(&two(&base, &times(1.001))), Answer::Same);
        assert_eq!(
            answer(&two(&base, &[5e9, 20e9, 9e9, 14e9, 8e9, 11e9])),
            Answer::Unresolved
        );
        assert_eq!(answer(&two(&base, &[])), Answer::NothingToCompare);
        assert_eq!(analyse(&Run::default()), None);
    }

    #[test]
    fn the_placement_that_is_named_helps_for_certain() {
        let base = [10e9, 10.1e9, 9.9e9, 10e9, 10.05e9, 9.95e9];
        let mut run = two(&base, &base.map(|v| v * 0.86));
        let wide = [5e9, 13e9, 6e9, 12e9, 7e9, 8e9];
        run.measurements.extend([
            row("launch.time", Some("a"), "zram", &wide),
            row("launch.sum", None, "zram", &wide),
        ]);
        let launch = analyse(&run).unwrap();
        assert_eq!(launch.answer, Answer::Helps);
        assert!(
            launch.sentence.contains("under loop"),
            "zram is faster by the median, and may be slower: {}",
            launch.sentence
        );
    }

    #[test]
    fn who_has_one_placement_is_told_how_to_get_another() {
        let mut run = run(vec![row("launch.time", Some("a"), "file", &[1e9, 1e9])]);
        assert!(
            analyse(&run)
                .unwrap()
                .sentence
                .ends_with("name others with --set placements=….")
        );
        run.measurements[0].params = run.measurements[0]
            .params
            .clone()
            .with("state", "after-boot");
        assert!(
            analyse(&run)
                .unwrap()
                .sentence
                .contains(": boot with swap arranged in another way")
        );
    }

    #[test]
    fn a_sum_that_is_not_to_be_trusted_is_told_with_the_answer() {
        let base = [10e9, 10.1e9, 9.9e9, 10e9, 10.05e9, 9.95e9];
        let mut run = two(&base, &base.map(|v| v * 0.8));
        assert!(!analyse(&run).unwrap().sentence.contains("untrusted"));
        run.measurements[3].outcome = Outcome::Untrusted;
        assert!(
            analyse(&run)
                .unwrap()
                .sentence
                .ends_with(" The sum under loop is untrusted."),
            "{}",
            analyse(&run).unwrap().sentence
        );
        run.measurements[1].outcome = Outcome::Untrusted;
        assert!(
            analyse(&run)
                .unwrap()
                .sentence
                .ends_with(" The sums under file and loop are untrusted.")
        );
    }

    #[test]
    fn the_default_is_the_placement_that_was_asked_for_first() {
        let mut run = two(&[1e9, 1e9], &[2e9, 2e9]);
        run.command = [
            "fingerpost",
            "run",
            "launch",
            "--set",
            "placements=loop,file",
        ]
        .map(str::to_owned)
        .to_vec();
        assert_eq!(analyse(&run).unwrap().placements, ["loop", "file"]);
        run.command.clear();
        run.measurements.reverse();
        assert_eq!(analyse(&run).unwrap().placements, ["file", "loop"]);
    }

    #[test]
    fn without_swapping_the_reader_is_told() {
        let mut run = two(&[1e9, 1e9, 1e9], &[1e9, 1e9, 1e9]);
        let observation = |pages: f64| Observation {
            workload: "launch".into(),
            params: Params::new().with("placement", "file"),
            observer: "paging".into(),
            source: String::new(),
            series: vec![],
            totals: BTreeMap::from([("swap_out.pages".into(), pages)]),
            self_cost: 0.0,
            lost: 0,
        };
        run.observations = vec![observation(0.0)];
        assert!(
            analyse(&run)
                .unwrap()
                .sentence
                .contains("Nothing was swapped out")
        );
        run.observations = vec![observation(5.0)];
        assert!(
            !analyse(&run)
                .unwrap()
                .sentence
                .contains("Nothing was swapped out")
        );
        // zswap took it all.
        run.observations = vec![observation(0.0)];
        run.observations[0]
            .totals
            .insert("zswap_out.pages".into(), 5.0);
        assert!(
            !analyse(&run)
                .unwrap()
                .sentence
                .contains("Nothing was swapped out")
        );
    }

    #[test]
    fn seconds_have_one_decimal_where_that_shows_something() {
        let shown = [4.34e9, 0.1e9, 0.0426e9, 0.0007e9].map(seconds);
        assert_eq!(shown, ["4.3", "0.10", "0.043", "0.001"]);
    }

    #[test]
    fn a_missing_cell_leaves_a_gap_and_is_named() {
        let run = run(vec![
            row("launch.time", Some("a"), "file", &[1e9, 1e9]),
            row("launch.time", Some("b"), "file", &[1e9, 1e9]),
            row("launch.time", Some("a"), "loop", &[1e9, 1e9]),
            row("launch.time", Some("b"), "loop", &[]),
        ]);
        let launch = analyse(&run).unwrap();
        assert!(
            launch.lines[1].cells[1].is_none()
                && launch.sum[0].is_some()
                && launch.sum[1].is_none()
        );
        assert_eq!(
            launch.missing,
            [("app=b placement=loop".to_owned(), "why".to_owned())]
        );
    }
}
