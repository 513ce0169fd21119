//! Middle and spread that a minority of strange hosts does not move.

use fingerpost_measure::special::{t_upper, z_two_sided};

/// What makes the median absolute deviation the standard deviation of a normal distribution: 1/Φ⁻¹(3/4).
const OF_NORMAL: f64 = 1.4826;
/// The efficiency of the median absolute deviation against the standard deviation (Rousseeuw and Croux, 1993,
/// “Alternatives to the Median Absolute Deviation”, table 1: 36.74 %). The spread of n hosts is known as well as that
/// of so many of them would be by the other.
const EFFICIENCY: f64 = 0.3674;
/// Degrees of freedom that the hosts' own intervals count for, as for the runs of a comparison
/// (`compare::spread::PRIOR_RUNS`).
const OWN_DF: f64 = 8.0;
/// Hosts further apart than so many times their own intervals contradict them: the F-distribution's 95 % at 3 and 8
/// degrees of freedom is 4.07, which is this squared.
pub(super) const CONTRADICTED: f64 = 2.0;

/// The middle and the spread of a unit over its peers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The median.
    pub centre: f64,
    /// 1.4826 times the median absolute deviation.
    pub spread: f64,
    /// The standard deviation that the faster tail shows ([`tail`]).
    pub tail: f64,
    /// The median of what the hosts' own intervals let expect, one standard deviation.
    pub own: f64,
    /// How many hosts it is made of.
    pub hosts: usize,
}

impl Place {
    /// The place of these values, each with its own standard deviation. Nothing for fewer than two.
    pub fn of(values: &[(f64, f64)]) -> Option<Place> {
        if values.len() < 2 {
            return None;
        }
        let (mut logs, mut own): (Vec<f64>, Vec<f64>) = values.iter().copied().unzip();
        let centre = median(&mut logs);
        let tail = tail(centre, &mut logs);
        logs.iter_mut().for_each(|log| *log = (*log - centre).abs());
        let (spread, own) = (OF_NORMAL * median(&mut logs), median(&mut own));
        Some(Place {
            centre,
            spread,
            tail,
            own,
            hosts: values.len(),
        })
    }

    /// The standard deviation to hold a host against, never below the host's own, with its degrees of freedom.
    pub fn scale(&self, own: f64) -> (f64, f64) {
        let df = EFFICIENCY * self.hosts as f64;
        let supported = self.spread <= CONTRADICTED * self.own;
        (
            self.spread.max(self.tail).max(own).max(self.own),
            if supported { df + OWN_DF } else { df },
        )
    }

    /// What the median itself is uncertain by: √(π/2)·s/√n, one standard deviation.
    pub fn error_of_centre(&self) -> f64 {
        (std::f64::consts::FRAC_PI_2 / self.hosts as f64).sqrt() * self.spread.max(self.own)
    }
}

/// The share of hosts, fastest first, of whose places the tail is made.
const OF_TAIL: f64 = 0.1;

/// The largest standard deviation of a normal distribution that one of the fastest hosts' places asks for (Blom's
/// plotting positions). Hosts that are slow are in the other tail: what is as far out on this side as on that is how
/// hosts differ, whatever the middle half says.
fn tail(centre: f64, values: &mut [f64]) -> f64 {
    let n = values.len();
    let fastest = ((n as f64 * OF_TAIL) as usize).max(1);
    let (below, at, _) = values.select_nth_unstable_by(fastest - 1, f64::total_cmp);
    let mut places: Vec<f64> = below.iter().copied().chain([*at]).collect();
    places.sort_by(f64::total_cmp);
    // The ranks 1, 2, 4 …: the tail's places are much alike, and a quantile takes long.
    let ranks =
        std::iter::successors(Some(1), |rank| Some(rank * 2)).take_while(|rank| *rank <= fastest);
    let asked = |rank: usize| {
        let share = (rank as f64 - 0.375) / (n as f64 + 0.25);
        (centre - places[rank - 1]) / z_two_sided(1.0 - 2.0 * share)
    };
    ranks.map(asked).fold(0.0, f64::max)
}

/// The chance of so much or more above none, where there is none.
pub fn chance(effect: f64, scale: f64, df: f64) -> f64 {
    match () {
        () if effect <= 0.0 => 1.0,
        () if scale > 0.0 => t_upper(effect / scale, df.max(1.0)),
        () => 0.0,
    }
}

/// The median; the mean of the middle two of an even number. The order is not kept. Zero for none.
pub fn median(values: &mut [f64]) -> f64 {
    let n = values.len();
    if n == 0 {
        return 0.0;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    if n % 2 == 1 {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (lower + upper) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_the_middle() {
        assert_eq!(
            [
                median(&mut [3.0, 1.0, 2.0]),
                median(&mut [4.0, 1.0, 2.0, 3.0]),
                median(&mut [])
            ],
            [2.0, 2.5, 0.0]
        );
    }

    #[test]
    fn a_place_is_that_of_the_majority() {
        let values = [1.0, 2.0, 3.0, 4.0, 1000.0].map(|v| (v, 0.1));
        let place = Place::of(&values).unwrap();
        assert_eq!((place.centre, place.spread), (3.0, 1.4826));
        assert_eq!(Place::of(&values[..1]), None);
    }

    #[test]
    fn the_faster_tail_says_how_far_hosts_can_be_apart() {
        // Of five the fastest is at share 0.625/5.25 = 0.119 of a normal distribution, 1.180 standard deviations out.
        assert!((tail(3.0, &mut [3.0, 1.0, 2.0, 4.0, 1000.0]) - 2.0 / 1.180).abs() < 2e-3);
        assert_eq!(tail(1.0, &mut [1.0; 9]), 0.0);
    }

    #[test]
    fn the_scale_is_never_below_the_hosts_own_interval() {
        let place = Place {
            centre: 0.0,
            spread: 0.01,
            tail: 0.0,
            own: 0.02,
            hosts: 100,
        };
        assert_eq!(place.scale(0.05), (0.05, 44.74));
        assert_eq!(place.scale(0.0), (0.02, 44.74));
        // Hosts that are far apart speak for themselves.
        let apart = Place {
            spread: 0.2,
            ..place
        };
        assert_eq!(apart.scale(0.0), (0.2, 36.74));
    }

    #[test]
    fn the_chance_is_students() {
        // t of 2.306 with 8 degrees of freedom leaves 2.5 % above it in every printed table.
        assert!((chance(2.306, 1.0, 8.0) - 0.025).abs() < 1e-4);
        assert_eq!([chance(-1.0, 1.0, 8.0), chance(1.0, 0.0, 8.0)], [1.0, 0.0]);
    }
}
