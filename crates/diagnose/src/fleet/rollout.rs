//! What a roll-out changed: the hosts that got it before and after, beside those that did not (difference in
//! differences).
//!
//! Both kinds lived through the same days. What moved them all (a season of the hall's temperature, a busier file
//! server) is in the controls too, and comes off. The estimate is the difference of the median changes, and its error
//! that of two medians.

use fingerpost_measure::special::t_two_sided;

use super::FEWEST;
use super::robust::{Place, chance};

/// What was changed for the treated hosts, as a logarithm: above zero is slower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The effect.
    pub log: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The chance of so much in either direction where nothing changed.
    pub p: f64,
    /// How many hosts got it.
    pub treated: usize,
    /// How many did not; with none, what happened to everybody meanwhile is in the effect.
    pub controls: usize,
}

/// The effect from each host's change (after less before, logarithms, with its own standard deviation). Nothing with
/// fewer than [`FEWEST`] hosts that got it, or with some controls but fewer.
pub fn rollout(treated: &[(f64, f64)], controls: &[(f64, f64)]) -> Option<Effect> {
    if treated.len() < FEWEST || (1..FEWEST).contains(&controls.len()) {
        return None;
    }
    let with = Place::of(treated)?;
    let without = Place::of(controls);
    let error = |place: Place| (place.error_of_centre().powi(2), place.scale(0.0).1.max(1.0));
    let parts: Vec<(f64, f64)> = std::iter::once(with).chain(without).map(error).collect();
    let variance: f64 = parts.iter().map(|p| p.0).sum();
    // Welch and Satterthwaite.
    let df = variance.powi(2)
        / parts
            .iter()
            .map(|(v, df)| v * v / df)
            .sum::<f64>()
            .max(f64::MIN_POSITIVE);
    let (log, scale, df) = (
        with.centre - without.map_or(0.0, |place| place.centre),
        variance.sqrt(),
        df.clamp(1.0, 1e6),
    );
    let half = t_two_sided(0.95, df) * scale;
    let p = (2.0 * chance(log.abs(), scale, df)).min(1.0);
    Some(Effect {
        log,
        low: log - half,
        high: log + half,
        p,
        treated: treated.len(),
        controls: controls.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::slow::tests::normal;
    use super::*;

    #[test]
    fn what_hit_everybody_comes_off() {
        let mut rng = fastrand::Rng::with_seed(9);
        let mut changes = |n: usize, by: f64| {
            (0..n)
                .map(|_| (by + 0.02 * normal(&mut rng), 0.02))
                .collect::<Vec<_>>()
        };
        let (treated, controls) = (changes(60, 0.08 + 0.05), changes(80, 0.05));
        let effect = rollout(&treated, &controls).unwrap();
        // Five standard errors.
        assert!(
            (effect.log - 0.08).abs() < 0.022
                && effect.p < 1e-6
                && (effect.treated, effect.controls) == (60, 80)
        );
        let alone = rollout(&treated, &[]).unwrap();
        assert!((alone.log - 0.13).abs() < 0.01 && alone.controls == 0);
        assert_eq!(
            (
                rollout(&treated[..7], &controls),
                rollout(&treated, &controls[..3])
            ),
            (None, None)
        );
    }

    #[test]
    fn the_interval_covers_as_often_as_it_says() {
        let mut rng = fastrand::Rng::with_seed(10);
        let mut covered = 0;
        for _ in 0..1000 {
            let mut changes = |n: usize, by: f64| {
                (0..n)
                    .map(|_| (by + 0.02 * normal(&mut rng), 0.0))
                    .collect::<Vec<_>>()
            };
            let effect = rollout(&changes(20, 0.1), &changes(30, 0.03)).unwrap();
            covered += i32::from((effect.low..=effect.high).contains(&0.07));
        }
        assert!((920..=990).contains(&covered), "{covered} of 1000");
    }
}
