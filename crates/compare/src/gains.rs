//! What a place of its own for swap gains on each of two systems: the question behind the source's two tables, side by
//! side.
//!
//! On each side the time of all applications under a placement is divided by theirs under that side's default; then the
//! two ratios are compared. Systems of different speed are compared by what the placement changes on each, not by their
//! seconds.

use fingerpost_record::{Outcome, Params};
use serde::Serialize;

use crate::aliases;
use crate::ratio::{self, Level, QuantileWeights, Ratio};
use crate::side::{Side, SideRow};

/// The rows of single applications, and of whole sequences.
const TIME: &str = "launch.time";
const SUM: &str = "launch.sum";
/// What is the default where a run has several: the source's word, the machine as it is, a file beside everything else.
const DEFAULTS: [&str; 3] = ["default", "none", "file"];

/// What one system gains by a placement.
#[derive(Clone, Debug, Serialize)]
pub struct OfSide {
    /// The placement by this side's own name.
    pub placement: String,
    /// What it is compared with.
    pub default: String,
    /// The time of all applications, in times of that under the default: below 1 is faster.
    pub ratio: Ratio,
    /// How many applications that is of.
    pub applications: usize,
    /// Whether one of the times is not to be trusted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

/// How the gains of two systems compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Less {
    /// The new side gains less, for certain.
    Less,
    /// The new side gains more, for certain.
    More,
    /// Both gain the same, within the threshold.
    Same,
    /// The intervals do not tell.
    Unresolved,
}

/// One placement on both sides.
#[derive(Clone, Debug, Serialize)]
pub struct Gain {
    /// On the base side.
    pub base: OfSide,
    /// On the new side.
    pub new: OfSide,
    /// The new side's ratio in times of the base's: above 1 it gains less.
    pub between: Ratio,
    /// What that says.
    pub verdict: Less,
}

impl Gain {
    /// In words: what it does on each side, and on which it does more.
    pub fn words(&self, base: &str, new: &str) -> String {
        let of = |side: &OfSide| {
            let r = side.ratio;
            let doubt = if side.untrusted { ", untrusted" } else { "" };
            format!(
                "{:.2} times the time ({:.2}–{:.2}{doubt})",
                r.value, r.low, r.high
            )
        };
        let name = match self.base.placement == self.new.placement {
            true => self.base.placement.clone(),
            false => format!("{} and {}", self.base.placement, self.new.placement),
        };
        let verdict = match self.verdict {
            Less::Less => format!("{new} gains less"),
            Less::More => format!("{new} gains more"),
            Less::Same => "both gain the same".to_owned(),
            Less::Unresolved => "which gains more is not resolved".to_owned(),
        };
        format!(
            "{name}: {} on {base}, {} on {new}; {verdict}",
            of(&self.base),
            of(&self.new)
        )
    }
}

/// The gain by every placement that both sides have beside their default.
pub fn gains(base: &Side, new: &Side, threshold: f64) -> Vec<Gain> {
    let (of_base, of_new) = (of_side(base), of_side(new));
    let one = |(b, base_level): &(OfSide, Level)| {
        let same = |(n, _): &&(OfSide, Level)| b.placement == n.placement;
        let kin = |(n, _): &&(OfSide, Level)| {
            stands_for(&b.placement, &n.placement) || stands_for(&n.placement, &b.placement)
        };
        let (n, new_level) = of_new
            .iter()
            .find(same)
            .or_else(|| of_new.iter().find(kin))?;
        let between = ratio::between(*base_level, *new_level, false);
        Some(Gain {
            base: b.clone(),
            new: n.clone(),
            between,
            verdict: verdict(&between, threshold),
        })
    };
    of_base.iter().filter_map(one).collect()
}

fn verdict(between: &Ratio, threshold: f64) -> Less {
    match between {
        r if r.low > 1.0 + threshold => Less::Less,
        r if r.high < 1.0 / (1.0 + threshold) => Less::More,
        r if r.low > 1.0 / (1.0 + threshold) && r.high < 1.0 + threshold => Less::Same,
        // A difference that is certain and may be smaller than what matters is still one.
        r if r.low > 1.0 => Less::Less,
        r if r.high < 1.0 => Less::More,
        _ => Less::Unresolved,
    }
}

/// Whether a placement of today stands for a published one.
fn stands_for(published: &str, ours: &str) -> bool {
    let one = |placement: &str| Params::new().with("placement", placement);
    aliases::matches(TIME, &one(published), &one(ours)).is_some()
}

/// The gain by each placement on one side, with its level as a logarithm.
fn of_side(side: &Side) -> Vec<(OfSide, Level)> {
    let mut placements: Vec<&str> = Vec::new();
    for (_, _, params) in side.rows.keys().filter(|(probe, _, _)| probe == TIME) {
        placements.extend(params.text("placement").filter(|p| !placements.contains(p)));
    }
    let is_default = |word: &&str, placement: &&&str| {
        *placement == word || placement.split(':').next() == Some(*word)
    };
    let Some(default) = DEFAULTS
        .iter()
        .find_map(|word| placements.iter().find(|p| is_default(word, p)).copied())
    else {
        return Vec::new();
    };
    let mut weights = QuantileWeights::default();
    let gain = |placement: &&str| {
        let (level, applications) = against(side, default, placement, &mut weights)?;
        let ratio = Ratio::from_log(level.log, level.variance, level.df);
        let untrusted = untrusted(side, [default, placement]);
        Some((
            OfSide {
                placement: (*placement).to_owned(),
                default: default.to_owned(),
                ratio,
                applications,
                untrusted,
            },
            level,
        ))
    };
    placements
        .iter()
        .filter(|p| **p != default)
        .filter_map(gain)
        .collect()
}

/// Whether a time of these placements is not to be trusted: of whole sequences where they were timed, else of an
/// application.
fn untrusted(side: &Side, placements: [&str; 2]) -> bool {
    let of = |probe: &'static str| {
        let there = |params: &Params| {
            params
                .text("placement")
                .is_some_and(|p| placements.contains(&p))
        };
        side.rows
            .iter()
            .filter(move |((p, _, params), _)| p == probe && there(params))
            .map(|(_, row)| row.outcome)
    };
    let probe = if of(SUM).next().is_some() { SUM } else { TIME };
    of(probe).any(|outcome| outcome != Outcome::Measured)
}

/// ln of the time under a placement in times of that under the default, and of how many applications.
fn against(
    side: &Side,
    default: &str,
    placement: &str,
    weights: &mut QuantileWeights,
) -> Option<(Level, usize)> {
    let rows = |probe: &'static str, placement: &str| -> Vec<(Params, &SideRow)> {
        let of = |params: &Params| params.text("placement") == Some(placement);
        let all = side
            .rows
            .iter()
            .filter(|((p, _, params), row)| p == probe && of(params) && !row.figures.is_empty());
        all.map(|((_, _, params), row)| (params.without(&["placement"]), row))
            .collect()
    };
    let pairs = |probe: &'static str| -> Vec<(&SideRow, &SideRow)> {
        let new = rows(probe, placement);
        let partner = |(params, row)| Some((row, new.iter().find(|(p, _)| *p == params)?.1));
        rows(probe, default)
            .into_iter()
            .filter_map(partner)
            .collect()
    };
    let apps = pairs(TIME);
    // A sequence that was timed as a whole: round by round, where each round had both.
    if let [(base, new)] = pairs(SUM).as_slice() {
        if let ([b], [n]) = (base.figures.as_slice(), new.figures.as_slice())
            && b.processes.len() == n.processes.len()
            && let Some(r) = ratio::paired(&b.processes, &n.processes, false)
        {
            return Some((level_of(&r), apps.len()));
        }
        let r = ratio::between(
            ratio::level(&base.figures, weights)?,
            ratio::level(&new.figures, weights)?,
            false,
        );
        return Some((level_of(&r), apps.len()));
    }
    let (base, new): (Vec<&SideRow>, Vec<&SideRow>) = apps.iter().copied().unzip();
    let mut sum = |rows: &[&SideRow]| {
        added(
            &rows
                .iter()
                .map(|row| ratio::level(&row.figures, weights))
                .collect::<Option<Vec<_>>>()?,
        )
    };
    Some((
        level_of(&ratio::between(sum(&base)?, sum(&new)?, false)),
        apps.len(),
    ))
}

/// The sum of figures that were measured one by one: their errors are independent.
fn added(levels: &[Level]) -> Option<Level> {
    let sum: f64 = levels.iter().map(|l| l.log.exp()).sum();
    let variance: f64 = levels
        .iter()
        .map(|l| l.variance * (l.log.exp() / sum).powi(2))
        .sum();
    let df = levels.iter().map(|l| l.df).fold(f64::INFINITY, f64::min);
    (sum > 0.0).then(|| Level {
        log: sum.ln(),
        variance,
        df,
        common: 0.0,
        contradicted: false,
    })
}

fn level_of(r: &Ratio) -> Level {
    Level {
        log: r.value.ln(),
        variance: r.error * r.error,
        df: r.df,
        common: 0.0,
        contradicted: false,
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Better, Estimate, Measurement, Process, Run, Unit};

    use super::*;

    fn reference(name: &str) -> Side {
        Side::of(&[crate::references::load(name).unwrap()])
    }

    fn run(placements: &[(&str, f64)]) -> Run {
        let row = |probe: &str, params: Params, value: f64| Measurement {
            outcome: Outcome::Measured,
            estimate: Some(Estimate {
                value,
                low: value * 0.99,
                high: value * 1.01,
                confidence: 0.95,
            }),
            processes: (0..6)
                .map(|i| Process {
                    value: Some(value * (1.0 + 0.001 * f64::from(i))),
                    ..Process::default()
                })
                .collect(),
            reason: None,
            ..Measurement::without_figure(
                probe,
                1,
                params,
                Unit::Nanoseconds,
                Better::Lower,
                Outcome::Skipped,
                String::new(),
            )
        };
        let of = |(placement, value): &(&str, f64)| {
            let params = Params::new().with("placement", *placement);
            [
                row(TIME, params.clone().with("app", "a"), *value),
                row(SUM, params, *value),
            ]
        };
        Run {
            measurements: placements.iter().flat_map(of).collect(),
            ..Run::default()
        }
    }

    #[test]
    fn the_source_gains_less_under_ten_one() {
        let found = gains(&reference("launch-10.0.4"), &reference("launch-10.1"), 0.03);
        let told: Vec<_> = found
            .iter()
            .map(|g| {
                (
                    g.base.placement.as_str(),
                    g.base.applications,
                    g.new.applications,
                )
            })
            .collect();
        assert_eq!(told, [("dual", 10, 10), ("single", 10, 10)]);
        // The sums of the printed table: 68.1, 54.1 and 44.2 s against 39.3, 33.2 and 27.0 s.
        for (gain, [base, new]) in found
            .iter()
            .zip([[44.2 / 68.1, 27.0 / 39.3], [54.1 / 68.1, 33.2 / 39.3]])
        {
            assert!(
                (gain.base.ratio.value - base).abs() < 1e-9
                    && (gain.new.ratio.value - new).abs() < 1e-9,
                "{gain:?}"
            );
            assert!(
                gain.between.value > 1.0 && gain.verdict == Less::Less,
                "{gain:?}"
            );
        }
        assert!(
            found[0]
                .words("old", "new")
                .starts_with("dual: 0.65 times the time ("),
            "{}",
            found[0].words("old", "new")
        );
    }

    #[test]
    fn which_side_gains_more_is_told_where_it_is_certain() {
        let side = |value: f64| Side::of(&[run(&[("file", 10e9), ("dual:/mnt", value)])]);
        let verdict = |base: f64, new: f64| gains(&side(base), &side(new), 0.03)[0].verdict;
        assert_eq!(verdict(5e9, 8e9), Less::Less);
        assert_eq!(verdict(8e9, 5e9), Less::More);
        assert_eq!(verdict(8e9, 8e9), Less::Same);
    }

    #[test]
    fn a_gain_by_an_untrusted_sum_says_so() {
        let side = |outcome: Outcome| {
            let mut run = run(&[("file", 10e9), ("dual", 5e9)]);
            run.measurements[3].outcome = outcome;
            Side::of(&[run])
        };
        let words = |outcome: Outcome| {
            gains(&side(Outcome::Measured), &side(outcome), 0.03)[0].words("a", "b")
        };
        assert!(!words(Outcome::Measured).contains("untrusted"));
        assert!(
            words(Outcome::Untrusted).contains("0.50 times the time (")
                && words(Outcome::Untrusted).contains(", untrusted) on b;")
        );
    }

    #[test]
    fn ours_stands_beside_the_published_placement_and_one_placement_has_no_gain() {
        let ours = Side::of(&[run(&[("file", 10e9), ("dual:/mnt", 8e9), ("zram", 7e9)])]);
        let found = gains(&reference("launch-10.1"), &ours, 0.03);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (
                found[0].base.placement.as_str(),
                found[0].new.placement.as_str()
            ),
            ("dual", "dual:/mnt")
        );
        assert_eq!(
            (
                found[0].base.default.as_str(),
                found[0].new.default.as_str()
            ),
            ("default", "file")
        );
        // What an earlier version called `dual:A+B` is filled in turns, and is not the source's.
        let in_turns = Side::of(&[run(&[("file", 10e9), ("dual:/a+/b", 8e9)])]);
        assert!(gains(&reference("launch-10.1"), &in_turns, 0.03).is_empty());
        assert!(
            gains(
                &reference("launch-10.1"),
                &Side::of(&[run(&[("dual", 8e9)])]),
                0.03
            )
            .is_empty()
        );
        assert!(gains(&Side::default(), &ours, 0.03).is_empty());
    }
}
