//! Suspects measured again beside random controls of their group.
//!
//! A suspect was chosen because it was the furthest out, so that its first figure flatters the accusation. The second one was not
//! chosen by anything; the controls tell what these later minutes did to everybody.

use fingerpost_measure::special::t_two_sided;

use super::reaches_least;
use super::robust::{Place, chance};
use super::slow::Excess;

/// The chance at which a suspect that is not slow is confirmed all the same. One test a suspect, and suspects are few.
const CHANCE: f64 = 0.01;

/// What measuring again said.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmation {
    /// How many times slower than the controls, as a logarithm.
    pub effect: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Whether the host is slow.
    pub slow: bool,
    /// How many controls it was held against.
    pub controls: usize,
}

/// Holds a suspect's second figure in the unit that accused it against those of the controls. Nothing without a control.
pub fn confirm(first: &Excess, again: (f64, f64), controls: &[(f64, f64)]) -> Option<Confirmation> {
    let mut logs: Vec<f64> = controls.iter().map(|c| c.0).collect();
    let centre = (!logs.is_empty()).then(|| super::robust::median(&mut logs))?;
    // Few controls do not know their spread; the group's was measured. Where they differ by more than that, theirs counts.
    let spread = Place::of(controls).map_or(0.0, |place| place.spread);
    let scale = first.scale.max(again.1).max(if controls.len() >= 4 { spread } else { 0.0 });
    let scale = scale * (1.0 + std::f64::consts::FRAC_PI_2 / controls.len() as f64).sqrt();
    let effect = again.0 - centre;
    let half = t_two_sided(0.95, first.df.max(1.0)) * scale;
    let slow = chance(effect, scale, first.df) <= CHANCE && reaches_least(effect + half);
    Some(Confirmation { effect, low: effect - half, high: effect + half, slow, controls: controls.len() })
}

#[cfg(test)]
mod tests {
    use super::super::Unit;
    use super::*;

    const FIRST: Excess = Excess { host: 0, unit: Unit::All, effect: 0.2, low: 0.15, high: 0.25, scale: 0.02, df: 20.0, p: 1e-9 };

    #[test]
    fn what_is_slow_again_is_slow_and_what_is_not_was_chance() {
        let controls = [(1.0, 0.01), (1.01, 0.01), (0.99, 0.01)];
        let slow = confirm(&FIRST, (1.19, 0.01), &controls).unwrap();
        assert!(slow.slow && (slow.effect - 0.19).abs() < 1e-12 && slow.controls == 3);
        assert!(!confirm(&FIRST, (1.02, 0.01), &controls).unwrap().slow);
        // All are slow in these minutes: it is not the host.
        assert!(!confirm(&FIRST, (1.19, 0.01), &controls.map(|c| (c.0 + 0.18, c.1))).unwrap().slow);
        assert_eq!(confirm(&FIRST, (1.19, 0.01), &[]), None);
    }

    #[test]
    fn a_noisy_second_figure_confirms_nothing() {
        assert!(!confirm(&FIRST, (1.19, 0.2), &[(1.0, 0.01); 3]).unwrap().slow);
        let apart = [(0.7, 0.01), (0.9, 0.01), (1.1, 0.01), (1.3, 0.01)];
        assert!(!confirm(&FIRST, (1.19, 0.01), &apart).unwrap().slow);
    }
}
