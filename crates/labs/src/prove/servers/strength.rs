//! Which trials there are: kinds, servers and strengths, all drawn by a seed.

use fingerpost_record::Layer;
use fingerpost_workloads::planted::servers::Engine;
use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::set::Set;

/// The effects that are drawn, as how many times slower: evenly on a logarithmic scale.
pub const EFFECTS: (f64, f64) = (1.1, 4.0);
/// The same for each of two plants, so that both together stay below four.
const EACH_OF_TWO: (f64, f64) = (1.3, 1.9);
/// Of so many trials …
const BLOCK: usize = 20;
/// … so many are controls …
const CONTROLS: usize = 5;
/// … and so many have two causes.
const DOUBLES: usize = 4;

/// One plant of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planted {
    /// The kind's name.
    pub kind: String,
    /// The cause; nothing for a control.
    pub cause: String,
    /// Its layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// How many times slower it is to make a transaction; where the kind cannot be adjusted, whatever its magnitude
    /// gives.
    pub target: f64,
    /// The magnitude that was drawn.
    pub magnitude: f64,
    /// Of two plants: how many times slower this one makes a transaction with the other there already, by a glance.
    /// Nothing where it cannot be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adds: Option<f64>,
}

/// One trial before it is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outline {
    /// Its number, from 1 on.
    pub number: usize,
    /// The list that its plants are from.
    pub set: Set,
    /// The server.
    pub engine: Engine,
    /// One plant, two, or a control.
    pub planted: Vec<Planted>,
}

impl Outline {
    /// Whether nothing was planted.
    pub fn is_control(&self) -> bool {
        self.planted.iter().all(|p| p.cause.is_empty())
    }

    /// The causes that are to be named.
    pub fn causes(&self) -> Vec<&str> {
        self.planted
            .iter()
            .map(|p| p.cause.as_str())
            .filter(|c| !c.is_empty())
            .collect()
    }

    /// The kinds' names with a plus between.
    pub fn name(&self) -> String {
        self.planted
            .iter()
            .map(|p| p.kind.as_str())
            .collect::<Vec<_>>()
            .join(" + ")
    }
}

/// One kind on one server.
#[derive(Clone, Copy)]
pub struct Candidate {
    /// The list.
    pub set: Set,
    /// The kind.
    pub kind: &'static Kind,
    /// The server.
    pub engine: Engine,
}

/// Everything that can be planted in these sets.
pub fn candidates(sets: &[Set]) -> Vec<Candidate> {
    let of = |&set: &Set| {
        set.kinds().iter().flat_map(move |kind| {
            kind.engines
                .iter()
                .map(move |&engine| Candidate { set, kind, engine })
        })
    };
    sets.iter().flat_map(of).collect()
}

/// Gives each kind in turn, in an order that is drawn anew each time round, on servers in turn.
struct Turn {
    kinds: Vec<(Set, &'static Kind, Vec<Engine>)>,
    order: Vec<usize>,
}

impl Turn {
    fn of(candidates: &[Candidate], wanted: impl Fn(&Candidate) -> bool) -> Turn {
        let mut kinds: Vec<(Set, &'static Kind, Vec<Engine>)> = Vec::new();
        for c in candidates.iter().filter(|c| wanted(c)) {
            match kinds
                .iter_mut()
                .find(|(_, kind, _)| kind.name == c.kind.name)
            {
                Some((_, _, engines)) => engines.push(c.engine),
                None => kinds.push((c.set, c.kind, vec![c.engine])),
            }
        }
        Turn {
            kinds,
            order: Vec::new(),
        }
    }

    fn next(&mut self, rng: &mut fastrand::Rng) -> Option<Candidate> {
        if self.order.is_empty() {
            self.order = (0..self.kinds.len()).collect();
            rng.shuffle(&mut self.order);
        }
        let (set, kind, engines) = self.kinds.get_mut(self.order.pop()?)?;
        let engine = engines[rng.usize(..engines.len())];
        Some(Candidate {
            set: *set,
            kind,
            engine,
        })
    }
}

/// Draws so many trials of these candidates: a quarter controls, a fifth with two causes, where the candidates allow
/// it.
pub fn draw(seed: u64, trials: usize, candidates: &[Candidate]) -> Vec<Outline> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut controls = Turn::of(candidates, |c| c.kind.is_control());
    let mut plants = Turn::of(candidates, |c| !c.kind.is_control());
    let mut block: Vec<usize> = Vec::new();
    let mut outlines = Vec::new();
    for number in 1..=trials {
        if block.is_empty() {
            block = (0..BLOCK).collect();
            rng.shuffle(&mut block);
        }
        let drawn = block.pop().unwrap_or(BLOCK);
        let first = if drawn < CONTROLS {
            controls.next(&mut rng)
        } else {
            None
        };
        let Some(first) = first
            .or_else(|| plants.next(&mut rng))
            .or_else(|| controls.next(&mut rng))
        else {
            break;
        };
        let two = (CONTROLS..CONTROLS + DOUBLES).contains(&drawn) && !first.kind.is_control();
        let second = two.then(|| partner(&first, candidates, &mut rng)).flatten();
        let range = if second.is_some() {
            EACH_OF_TWO
        } else {
            EFFECTS
        };
        let planted = std::iter::once(first.kind)
            .chain(second)
            .map(|kind| planted(kind, range, &mut rng))
            .collect();
        outlines.push(Outline {
            number,
            set: first.set,
            engine: first.engine,
            planted,
        });
    }
    outlines
}

/// What may come on top of a plant: of another layer, on the same server, from the same list.
fn partner(
    first: &Candidate,
    candidates: &[Candidate],
    rng: &mut fastrand::Rng,
) -> Option<&'static Kind> {
    let fits = |c: &&Candidate| {
        c.set == first.set
            && c.engine == first.engine
            && c.kind.joins
            && c.kind.layer() != first.kind.layer()
            && c.kind.pass <= first.kind.pass
    };
    let fitting: Vec<&Candidate> = candidates.iter().filter(fits).collect();
    (!fitting.is_empty()).then(|| fitting[rng.usize(..fitting.len())].kind)
}

fn planted(kind: &Kind, effects: (f64, f64), rng: &mut fastrand::Rng) -> Planted {
    let target = if kind.is_control() {
        1.0
    } else {
        between(effects, rng.f64())
    };
    Planted {
        kind: kind.name.to_owned(),
        cause: kind.cause().to_owned(),
        layer: kind.layer(),
        target,
        magnitude: between(kind.range, rng.f64()),
        adds: None,
    }
}

/// A value of a range, evenly on a logarithmic scale.
fn between((low, high): (f64, f64), part: f64) -> f64 {
    low * (high / low).powf(part)
}

/// The magnitude that should give the effect wanted, from one that gave another: what a plant adds grows about as its
/// magnitude.
pub fn corrected(magnitude: f64, gave: f64, wanted: f64, range: (f64, f64)) -> f64 {
    // What shows next to nothing tells only that it is too little.
    let ratio = (wanted - 1.0) / (gave - 1.0).max(0.02);
    (magnitude * ratio.clamp(0.2, 6.0)).clamp(range.0, range.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn both() -> Vec<Candidate> {
        candidates(&[Set::Plants, Set::Apart])
    }

    #[test]
    fn the_same_seed_draws_the_same_trials_and_another_one_others() {
        let outlines = draw(7, 200, &both());
        assert_eq!(outlines.len(), 200);
        assert_eq!(outlines, draw(7, 200, &both()));
        assert_ne!(outlines, draw(8, 200, &both()));
        assert_eq!(
            outlines[..50],
            draw(7, 50, &both()),
            "more trials do not change the first ones"
        );
    }

    #[test]
    fn a_quarter_are_controls_and_a_fifth_of_the_rest_of_the_block_may_be_double() {
        let outlines = draw(3, 400, &both());
        assert_eq!(outlines.iter().filter(|o| o.is_control()).count(), 100);
        let doubles = outlines.iter().filter(|o| o.planted.len() == 2).count();
        assert!((40..=80).contains(&doubles), "{doubles}");
        let kinds: BTreeSet<String> = draw(3, 1200, &both())
            .iter()
            .flat_map(|o| o.planted.iter().map(|p| p.kind.clone()))
            .collect();
        let all: BTreeSet<String> = both().iter().map(|c| c.kind.name.to_owned()).collect();
        assert_eq!(kinds, all, "every kind comes up");
    }

    #[test]
    fn strengths_are_within_what_was_promised() {
        for outline in draw(5, 400, &both()) {
            let effect: f64 = outline.planted.iter().map(|p| p.target).product();
            assert!(
                outline.is_control() || (1.1..=4.0).contains(&effect),
                "{outline:?}"
            );
            for p in &outline.planted {
                let range = Set::find(&p.kind).unwrap().range;
                assert!(
                    (range.0..=range.1 * 1.000_001).contains(&p.magnitude),
                    "{p:?}"
                );
            }
            if let [first, second] = &outline.planted[..] {
                assert_ne!(first.layer, second.layer);
            }
        }
    }

    #[test]
    fn without_controls_all_are_plants() {
        let only: Vec<Candidate> = both()
            .into_iter()
            .filter(|c| c.kind.cause() == "app.wait")
            .collect();
        let outlines = draw(1, 30, &only);
        assert!(outlines.len() == 30 && outlines.iter().all(|o| !o.is_control()));
        assert!(draw(1, 30, &[]).is_empty());
    }

    #[test]
    fn a_correction_goes_to_the_effect_wanted_and_stays_in_range() {
        assert!((corrected(0.1, 1.5, 2.0, (0.01, 1.0)) - 0.2).abs() < 1e-9);
        assert!((corrected(0.1, 3.0, 2.0, (0.01, 1.0)) - 0.05).abs() < 1e-9);
        assert_eq!(corrected(0.1, 0.9, 2.0, (0.01, 0.3)), 0.3);
        assert_eq!(corrected(0.1, 90.0, 1.2, (0.05, 0.3)), 0.05);
    }
}
