//! Suspects measured again beside random controls of their group.
//!
//! A suspect was chosen because it was the furthest out, so that its first figure flatters the accusation. The second
//! one was not chosen by anything; the controls tell what these later minutes did to everybody.

use std::collections::BTreeSet;

use fingerpost_measure::special::t_two_sided;

use super::reaches_least;
use super::robust::{CONTRADICTED, Place, chance};
use super::slow::Excess;

/// The share of false discoveries that is tolerated among what is confirmed.
const CHANCE: f64 = 0.01;

/// What measuring again said of a host in one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmation {
    /// How many times slower than the controls, as a logarithm.
    pub effect: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The chance of so much by chance alone, for this one test: the spread's, or the share of hosts that were as slow
    /// once without being so again, whichever is larger.
    pub p: f64,
    /// How many controls it was held against.
    pub controls: usize,
}

/// Holds a suspect's second figure in the unit that accused it against those of the controls. Nothing without a
/// control.
pub fn confirm(first: &Excess, again: (f64, f64), controls: &[(f64, f64)]) -> Option<Confirmation> {
    let mut logs: Vec<f64> = controls.iter().map(|c| c.0).collect();
    let centre = (!logs.is_empty()).then(|| super::robust::median(&mut logs))?;
    // Few controls do not know their spread; the group's was measured. Where they contradict it, theirs counts.
    let spread = Place::of(controls).map_or(0.0, |place| place.spread);
    let scale = first.scale.max(again.1);
    let scale = if controls.len() >= KNOW_SPREAD && spread > CONTRADICTED * scale {
        spread
    } else {
        scale
    };
    let scale = scale * (1.0 + std::f64::consts::FRAC_PI_2 / controls.len() as f64).sqrt();
    let effect = again.0 - centre;
    let half = t_two_sided(0.95, first.df.max(1.0)) * scale;
    let p = chance(effect, scale, first.df);
    Some(Confirmation {
        effect,
        low: effect - half,
        high: effect + half,
        p,
        controls: controls.len(),
    })
}

/// Controls that say something of their spread.
const KNOW_SPREAD: usize = 4;

/// A test of a confirmation: the host and what measuring it again said, beside the first figures of the group in the
/// same unit.
pub struct Tested<'a> {
    /// The host, by number.
    pub host: usize,
    /// What measuring again said.
    pub said: Confirmation,
    /// The first figures of the group's hosts in this unit, as differences from their middle.
    pub first: &'a [Option<(f64, f64)>],
}

/// Which of these tests stand, over all suspects of a group (Benjamini and Hochberg at `CHANCE`).
///
/// Where noise has a long tail, no spread tells how often a host is far out by chance. The sweep does: of hosts that
/// were far out once and were not so again it is known that it was chance. The share of such hosts among all is the
/// chance that one of them is out twice, and a test whose chance is smaller than that is taken to be that.
pub fn stand(tests: &mut [Tested]) -> Vec<bool> {
    let again: BTreeSet<usize> = tests
        .iter()
        .filter(|t| t.said.p <= CHANCE)
        .map(|t| t.host)
        .collect();
    for test in tests.iter_mut() {
        let seen = test.first.iter().flatten().count().max(1);
        let others = test
            .first
            .iter()
            .enumerate()
            .filter(|(host, _)| !again.contains(host));
        let beyond = others
            .filter(|(_, v)| v.is_some_and(|(value, _)| value >= test.said.effect))
            .count();
        test.said.p = test.said.p.max(beyond as f64 / seen as f64);
    }
    let mut order: Vec<usize> = (0..tests.len()).collect();
    order.sort_by(|a, b| tests[*a].said.p.total_cmp(&tests[*b].said.p));
    let within = |(rank, at): (usize, &usize)| {
        tests[*at].said.p <= CHANCE * (rank + 1) as f64 / tests.len() as f64
    };
    let last = order
        .iter()
        .enumerate()
        .filter(|c| within(*c))
        .map(|(rank, _)| rank + 1)
        .max()
        .unwrap_or(0);
    let mut stands = vec![false; tests.len()];
    order[..last]
        .iter()
        .for_each(|at| stands[*at] = reaches_least(tests[*at].said.high));
    stands
}

#[cfg(test)]
mod tests {
    use super::super::Unit;
    use super::*;

    const FIRST: Excess = Excess {
        host: 0,
        unit: Unit::All,
        effect: 0.2,
        low: 0.15,
        high: 0.25,
        scale: 0.02,
        df: 20.0,
        p: 1e-9,
    };

    fn stands(first: &Excess, again: (f64, f64), controls: &[(f64, f64)]) -> bool {
        let said = confirm(first, again, controls).unwrap();
        stand(&mut [Tested {
            host: 0,
            said,
            first: &[Some((0.2, 0.01)), Some((0.0, 0.01))],
        }])[0]
    }

    #[test]
    fn what_is_slow_again_is_slow_and_what_is_not_was_chance() {
        let controls = [(1.0, 0.01), (1.01, 0.01), (0.99, 0.01)];
        let slow = confirm(&FIRST, (1.19, 0.01), &controls).unwrap();
        assert!((slow.effect - 0.19).abs() < 1e-12 && slow.controls == 3);
        assert!(stands(&FIRST, (1.19, 0.01), &controls));
        assert!(!stands(&FIRST, (1.02, 0.01), &controls));
        // All are slow in these minutes: it is not the host.
        assert!(!stands(
            &FIRST,
            (1.19, 0.01),
            &controls.map(|c| (c.0 + 0.18, c.1))
        ));
        assert_eq!(confirm(&FIRST, (1.19, 0.01), &[]), None);
    }

    #[test]
    fn a_noisy_second_figure_confirms_nothing() {
        assert!(!stands(&FIRST, (1.19, 0.2), &[(1.0, 0.01); 3]));
        let apart = [(0.7, 0.01), (0.9, 0.01), (1.1, 0.01), (1.3, 0.01)];
        assert!(!stands(&FIRST, (1.19, 0.01), &apart));
    }

    #[test]
    fn where_many_are_out_once_by_chance_to_be_out_twice_is_chance_too() {
        let said = |p: f64| Confirmation {
            effect: 0.19,
            low: 0.15,
            high: 0.23,
            p,
            controls: 4,
        };
        // Of a hundred hosts twenty were as slow once; all were measured again, and one was so again.
        let first: Vec<Option<(f64, f64)>> = (0..100)
            .map(|host| Some((if host < 20 { 0.2 } else { 0.0 }, 0.01)))
            .collect();
        let mut tests: Vec<Tested> = (0..20)
            .map(|host| Tested {
                host,
                said: said(if host == 0 { 1e-6 } else { 0.5 }),
                first: &first,
            })
            .collect();
        assert!(stand(&mut tests).iter().all(|stands| !stands));
        // Where it alone was, it is slow.
        let first: Vec<Option<(f64, f64)>> = (0..100)
            .map(|host| Some((if host == 0 { 0.2 } else { 0.0 }, 0.01)))
            .collect();
        assert_eq!(
            stand(&mut [Tested {
                host: 0,
                said: said(1e-6),
                first: &first
            }]),
            [true]
        );
    }
}
