//! What became of trials, and the figures over them, each with what it was counted from and an interval.

use fingerpost_record::{Finding, Layer, Status};
use serde::{Deserialize, Serialize};

use super::set::Set;
use super::strength::{Outline, Planted};

/// A smaller effect, or one that is not resolved, need not be explained: nobody may be accused wrongly.
pub const LEAST_EFFECT: f64 = 1.2;
/// Of two plants, one that adds less than this to the other is not there to be named: the threshold of the comparison.
const LEAST_ADDED: f64 = 1.1;
/// The standard normal quantile of a 95 % interval.
const Z: f64 = 1.959_964;
/// Bins of the calibration table.
const BINS: usize = 5;

/// How many times slower the side with the plant was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The ratio.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Effect {
    /// Whether it is resolved and large enough to be explained.
    pub fn matters(&self) -> bool {
        self.low > 1.0 && self.value >= LEAST_EFFECT
    }
}

/// What became of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Result {
    /// The first named is what was planted; of a control or a small effect: nobody was accused.
    Right,
    /// The second named is.
    Second,
    /// The first named is of the right layer, and what was planted is not among the first two.
    Layer,
    /// Others are named; of a control or a small effect: somebody was accused.
    Wrong,
    /// Nobody is named.
    #[default]
    Missed,
    /// What it takes is not here.
    Skipped,
    /// It went wrong.
    Failed,
}

impl Result {
    /// Whether both sides were compared.
    pub fn tried(self) -> bool {
        !matches!(self, Result::Skipped | Result::Failed)
    }
}

/// One trial with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was planted where.
    #[serde(flatten)]
    pub outline: Outline,
    /// What became of it.
    pub result: Result,
    /// Why it was skipped or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The effect, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Whom the verdict accuses, first the one that explains most.
    #[serde(default)]
    pub accused: Vec<Finding>,
    /// The share of the difference that nobody is accused of.
    #[serde(default)]
    pub unexplained: f64,
    /// The comparison's own sentence.
    #[serde(default)]
    pub headline: String,
    /// How long it took, in seconds.
    #[serde(default)]
    pub seconds: f64,
}

impl Row {
    /// A trial that gave no runs.
    pub fn without(outline: Outline, result: Result, reason: String, seconds: f64) -> Row {
        Row {
            outline,
            result,
            reason: Some(reason),
            effect: None,
            accused: Vec::new(),
            unexplained: 0.0,
            headline: String::new(),
            seconds,
        }
    }

    /// A trial with its verdict, which may hold causes of any status.
    pub fn judged(outline: Outline, effect: Option<Effect>, causes: Vec<Finding>) -> Row {
        let accused: Vec<Finding> = causes
            .into_iter()
            .filter(|f| matches!(f.status, Status::Confirmed | Status::Likely))
            .collect();
        let mut row = Row {
            effect,
            accused,
            reason: None,
            ..Row::without(outline, Result::Missed, String::new(), 0.0)
        };
        row.result = row.verdict();
        row
    }

    /// Whether both sides were compared.
    pub fn tried(&self) -> bool {
        self.result.tried()
    }

    /// Whether somebody was to be named.
    pub fn scored(&self) -> bool {
        self.tried() && !self.outline.is_control() && self.effect.is_some_and(|e| e.matters())
    }

    /// Whether one of those that were planted is the one named in this place.
    fn names(&self, place: usize) -> bool {
        self.accused
            .get(place)
            .is_some_and(|f| self.outline.causes().contains(&f.cause.as_str()))
    }

    fn layer_first(&self) -> bool {
        let layers: Vec<Layer> = self
            .outline
            .planted
            .iter()
            .filter_map(|p| p.layer)
            .collect();
        self.accused
            .first()
            .is_some_and(|f| layers.contains(&f.layer))
    }

    /// Whether two were planted and neither made the other one void.
    fn two_act(&self) -> bool {
        let acts = |p: &Planted| p.adds.is_none_or(|adds| adds >= LEAST_ADDED);
        self.scored() && self.outline.planted.len() == 2 && self.outline.planted.iter().all(acts)
    }

    fn both(&self) -> bool {
        self.outline.planted.len() == 2
            && self.names(0)
            && self.names(1)
            && self.accused[0].cause != self.accused[1].cause
    }

    fn verdict(&self) -> Result {
        let explained = !self.outline.is_control() && self.effect.is_some_and(|e| e.matters());
        match (explained, self.accused.is_empty()) {
            (false, true) => Result::Right,
            // What is there although it is small is rightly named.
            (false, false) if self.names(0) => Result::Right,
            (false, false) => Result::Wrong,
            (true, true) => Result::Missed,
            (true, false) if self.names(0) => Result::Right,
            (true, false) if self.names(1) => Result::Second,
            (true, false) if self.layer_first() => Result::Layer,
            (true, false) => Result::Wrong,
        }
    }
}

/// A share with what it was counted from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// So many …
    pub of: usize,
    /// … of so many.
    pub all: usize,
    /// The lower end of the interval (Wilson, 95 %); 0 where nothing was counted.
    pub low: f64,
    /// The upper end; 1 where nothing was counted.
    pub high: f64,
}

impl Share {
    /// A share with its interval.
    pub fn new(of: usize, all: usize) -> Share {
        let (low, high) = wilson(of, all);
        Share { of, all, low, high }
    }
}

/// Wilson's interval of a share (JASA 22, 1927), which keeps its meaning at 0 and at 1.
pub fn wilson(of: usize, all: usize) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let (n, p, z2) = (all as f64, of as f64 / all as f64, Z * Z);
    let (middle, half) = (
        p + z2 / (2.0 * n),
        Z * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt(),
    );
    let scale = 1.0 + z2 / n;
    (
        ((middle - half) / scale).max(0.0),
        ((middle + half) / scale).min(1.0),
    )
}

/// Verdicts that claimed alike, and how many of them were right.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// The share that the first named was said to explain: from …
    pub from: f64,
    /// … to.
    pub to: f64,
    /// Those in which it was planted.
    pub right: Share,
}

/// The figures over trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Effects that matter whose first named is planted.
    pub first: Share,
    /// The same for one of the first two.
    pub first_two: Share,
    /// The same for the layer.
    pub layer: Share,
    /// Trials with two causes that both act, whose first two named are both.
    pub both: Share,
    /// Controls in which somebody was accused.
    pub false_accusations: Share,
    /// Effects that do not matter in which nobody was accused.
    pub nobody: Share,
    /// Of the verdicts with a first named, how many were right, by the share that it was said to explain.
    pub calibration: Vec<Bin>,
    /// Trials that were skipped, and that failed.
    pub not_tried: [usize; 2],
}

/// The figures over rows.
pub fn score<'a>(rows: impl Iterator<Item = &'a Row>) -> Score {
    let rows: Vec<&Row> = rows.collect();
    let share = |of: &dyn Fn(&Row) -> bool, all: &dyn Fn(&Row) -> bool| {
        let all: Vec<&&Row> = rows.iter().filter(|r| all(r)).collect();
        Share::new(all.iter().filter(|r| of(r)).count(), all.len())
    };
    let small = |r: &Row| r.tried() && !r.outline.is_control() && !r.scored();
    let bins = (0..BINS).map(|i| {
        let (from, to) = (i as f64 / BINS as f64, (i + 1) as f64 / BINS as f64);
        let within = |r: &Row| {
            let claimed = r.accused.first().map(|f| f.share.clamp(0.0, 1.0));
            r.tried() && claimed.is_some_and(|c| c >= from && (c < to || i + 1 == BINS))
        };
        Bin {
            from,
            to,
            right: share(&|r| r.names(0), &within),
        }
    });
    Score {
        first: share(&|r| r.names(0), &Row::scored),
        first_two: share(&|r| r.names(0) || r.names(1), &Row::scored),
        layer: share(&Row::layer_first, &Row::scored),
        both: share(&Row::both, &Row::two_act),
        false_accusations: share(&|r| !r.accused.is_empty(), &|r| {
            r.tried() && r.outline.is_control()
        }),
        nobody: share(&|r| r.accused.is_empty(), &small),
        calibration: bins.collect(),
        not_tried: [Result::Skipped, Result::Failed]
            .map(|w| rows.iter().filter(|r| r.result == w).count()),
    }
}

/// The figures of each list alone.
pub fn of_set(rows: &[Row], set: Set) -> Score {
    score(rows.iter().filter(|r| r.outline.set == set))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::servers::strength::Planted;
    use fingerpost_workloads::planted::servers::Engine;

    fn outline(causes: &[&str]) -> Outline {
        let layer = |cause: &str| {
            (!cause.is_empty()).then_some(if cause.starts_with("cpu") {
                Layer::Scheduler
            } else {
                Layer::Application
            })
        };
        let planted = |cause: &&str| Planted {
            kind: format!("{cause}/x"),
            cause: (*cause).to_owned(),
            layer: layer(cause),
            target: 2.0,
            magnitude: 1.0,
            adds: None,
        };
        Outline {
            number: 1,
            set: Set::Plants,
            engine: Engine::Redis,
            planted: causes.iter().map(planted).collect(),
        }
    }

    fn finding(cause: &str, status: Status, share: f64) -> Finding {
        let layer = if cause.starts_with("cpu") {
            Layer::Scheduler
        } else {
            Layer::Application
        };
        Finding {
            cause: cause.into(),
            layer,
            status,
            share,
            evidence: Vec::new(),
            step: None,
            relation: None,
        }
    }

    fn row(planted: &[&str], effect: f64, named: &[&str]) -> Row {
        let effect = Some(Effect {
            value: effect,
            low: effect * 0.95,
            high: effect * 1.05,
        });
        Row::judged(
            outline(planted),
            effect,
            named
                .iter()
                .map(|c| finding(c, Status::Confirmed, 0.85))
                .collect(),
        )
    }

    #[test]
    fn intervals_are_wilsons() {
        // Wilson's interval of 8 of 10 and of 0 of 20, as R's prop.test(correct = FALSE) gives them.
        let (low, high) = wilson(8, 10);
        assert!(
            (low - 0.490_16).abs() < 1e-4 && (high - 0.943_32).abs() < 1e-4,
            "{low} {high}"
        );
        let (low, high) = wilson(0, 20);
        assert!(low == 0.0 && (high - 0.161_13).abs() < 1e-4, "{high}");
        assert_eq!(wilson(0, 0), (0.0, 1.0));
        assert!((wilson(20, 20).1 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn each_trial_gets_what_it_deserves() {
        assert_eq!(
            row(&["cpu.quota"], 2.0, &["cpu.quota", "app.lock"]).result,
            Result::Right
        );
        assert_eq!(
            row(&["cpu.quota"], 2.0, &["app.lock", "cpu.quota"]).result,
            Result::Second
        );
        assert_eq!(
            row(&["cpu.quota"], 2.0, &["cpu.affinity", "app.lock"]).result,
            Result::Layer
        );
        assert_eq!(
            row(&["cpu.quota"], 2.0, &["app.lock"]).result,
            Result::Wrong
        );
        assert_eq!(row(&["cpu.quota"], 2.0, &[]).result, Result::Missed);
        assert_eq!(
            row(&["cpu.quota"], 1.15, &[]).result,
            Result::Right,
            "too small to be explained"
        );
        assert_eq!(
            row(&["cpu.quota"], 1.15, &["app.lock"]).result,
            Result::Wrong
        );
        assert_eq!(row(&[""], 1.5, &[]).result, Result::Right);
        assert_eq!(row(&[""], 1.5, &["app.lock"]).result, Result::Wrong);
        let ruled_out = Row::judged(
            outline(&[""]),
            None,
            vec![finding("app.lock", Status::RuledOut, 0.9)],
        );
        assert_eq!(
            (ruled_out.result, ruled_out.accused.len()),
            (Result::Right, 0)
        );
    }

    #[test]
    fn a_plant_that_the_other_makes_void_is_not_missed() {
        let with = |adds: [Option<f64>; 2]| {
            let mut row = row(&["cpu.quota", "app.wait"], 2.0, &["app.wait"]);
            row.outline
                .planted
                .iter_mut()
                .zip(adds)
                .for_each(|(p, adds)| p.adds = adds);
            let both = score(std::iter::once(&row)).both;
            (both.of, both.all)
        };
        assert_eq!(with([Some(1.02), Some(1.9)]), (0, 0));
        assert_eq!(
            with([Some(1.3), None]),
            (0, 1),
            "one that cannot be left out is taken to act"
        );
    }

    #[test]
    fn figures_count_what_they_say() {
        let rows = [
            row(&["cpu.quota"], 2.0, &["cpu.quota"]),
            row(&["cpu.quota"], 2.0, &["app.lock", "cpu.quota"]),
            row(&["cpu.quota"], 2.0, &["cpu.affinity"]),
            row(&["cpu.quota", "app.wait"], 2.0, &["app.wait", "cpu.quota"]),
            row(&["cpu.quota", "app.wait"], 2.0, &["app.wait"]),
            row(&["cpu.quota"], 1.1, &[]),
            row(&["cpu.quota"], 1.1, &["app.lock"]),
            row(&[""], 1.0, &[]),
            row(&[""], 1.0, &["app.lock"]),
            Row::without(
                outline(&["cpu.quota"]),
                Result::Skipped,
                "not here".into(),
                0.0,
            ),
        ];
        let score = score(rows.iter());
        let counts = |s: &Share| (s.of, s.all);
        assert_eq!(counts(&score.first), (3, 5));
        assert_eq!(counts(&score.first_two), (4, 5));
        // In the second one the first named is of another layer.
        assert_eq!(counts(&score.layer), (4, 5));
        assert_eq!(counts(&score.both), (1, 2));
        assert_eq!(counts(&score.false_accusations), (1, 2));
        assert_eq!(counts(&score.nobody), (1, 2));
        assert_eq!(score.not_tried, [1, 0]);
        assert_eq!(counts(&score.calibration[4].right), (3, 7));
        assert_eq!(
            score.calibration[..4]
                .iter()
                .map(|b| b.right.all)
                .sum::<usize>(),
            0
        );
    }
}
