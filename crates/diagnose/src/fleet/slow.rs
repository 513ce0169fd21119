//! Which hosts of a group are slow, and in what.

use std::collections::BTreeMap;

use fingerpost_measure::special::t_two_sided;

use super::grid::{Grid, Unit, by_every_cpu};
use super::populations::{self, Populations};
use super::robust::{Place, chance, median};
use super::{FALSE_DISCOVERIES, FEWEST, reaches_least};

/// Chances above this are in no rejection that the control makes, and need not be computed exactly.
const WORTH_COMPUTING: f64 = 2.0;

/// One host beyond its peers in one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Excess {
    /// The host, by number.
    pub host: usize,
    /// In what.
    pub unit: Unit,
    /// How many times slower than the peers' middle, as a logarithm.
    pub effect: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The standard deviation that it was held against.
    pub scale: f64,
    /// The degrees of freedom of that.
    pub df: f64,
    /// The chance of so much by chance alone, for this one test.
    pub p: f64,
}

/// More hosts than this share of the group, and than [`FEW`], that are beyond it in one unit are no single hosts: the
/// group is of several kinds there, or its spread has a long tail, and the median absolute deviation knows neither.
const MANY: f64 = 0.1;
/// So many hosts may be beyond a group of any size.
const FEW: usize = 2;

/// What a group of peers says.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// The middle and spread of each row; nothing where fewer than two hosts have it.
    pub places: Vec<Option<Place>>,
    /// Whether there are peers enough to accuse anybody.
    pub resolved: bool,
    /// Who is beyond the peers, strongest first. Empty unless `resolved`.
    pub excesses: Vec<Excess>,
    /// Units in which the group is two populations; nobody is accused by those.
    pub populations: Vec<(Unit, Populations)>,
    /// How many tests the control went over.
    pub tests: usize,
}

impl Judged {
    /// The strongest excess of each accused host, strongest first.
    pub fn accused(&self) -> Vec<&Excess> {
        let mut seen = std::collections::BTreeSet::new();
        self.excesses
            .iter()
            .filter(|e| seen.insert(e.host))
            .collect()
    }
}

/// Judges a group of peers. The grid's rows are centred on the way.
pub fn judge(grid: &mut Grid) -> Judged {
    let places = grid.centre();
    let mut judged = Judged {
        places,
        resolved: grid.hosts() >= FEWEST,
        ..Judged::default()
    };
    if !judged.resolved {
        return judged;
    }
    let families = grid.families().into_iter().map(Unit::Family);
    let rows = (0..grid.rows() as u32).map(Unit::Row);
    // Each kind of unit is controlled by itself: a thousand rows would else ask more of the one figure that a host has
    // for all of them.
    let strata: [Vec<Unit>; 3] = [vec![Unit::All], families.collect(), rows.collect()];
    let mut stand = Vec::new();
    for units in &strata {
        let (mut candidates, mut tests) = (Vec::new(), 0);
        let seen = by_every_cpu(units, |unit| {
            let values = grid.unit(*unit);
            (of_unit(*unit, &values), populations::of(&values))
        });
        for (unit, ((of_unit, found), two)) in units.iter().zip(seen) {
            match two {
                Some(two) => judged.populations.push((*unit, two)),
                None => {
                    tests += of_unit;
                    candidates.extend(found);
                }
            }
        }
        judged.tests += tests;
        stand.extend(control(candidates, tests));
    }
    stand.sort_by(|a, b| a.p.total_cmp(&b.p).then(b.effect.total_cmp(&a.effect)));
    let most = FEW.max((MANY * grid.hosts() as f64) as usize);
    let mut by_unit: BTreeMap<Unit, Vec<usize>> = BTreeMap::new();
    stand
        .iter()
        .for_each(|e| by_unit.entry(e.unit).or_default().push(e.host));
    by_unit.retain(|_, hosts| hosts.len() > most);
    for (unit, slower) in &by_unit {
        let mut effects: Vec<f64> = stand
            .iter()
            .filter(|e| e.unit == *unit)
            .map(|e| e.effect)
            .collect();
        let faster = (0..grid.hosts())
            .filter(|host| !slower.contains(host))
            .collect();
        judged.populations.push((
            *unit,
            Populations {
                slower: slower.clone(),
                faster,
                apart: median(&mut effects),
            },
        ));
    }
    judged.excesses = stand
        .into_iter()
        .filter(|e| !by_unit.contains_key(&e.unit))
        .collect();
    judged
}

/// How many hosts were tested in a unit, and those above the middle.
fn of_unit(unit: Unit, values: &[Option<(f64, f64)>]) -> (usize, Vec<Excess>) {
    let seen: Vec<(f64, f64)> = values.iter().copied().flatten().collect();
    let Some(place) = Place::of(&seen).filter(|place| place.hosts >= FEWEST) else {
        return (0, Vec::new());
    };
    // Of ten thousand hosts some hundred are looked at, and their degrees of freedom are those of the unit.
    let half_of = t_two_sided(0.95, place.scale(0.0).1.max(1.0));
    let beyond = |(host, value): (usize, &Option<(f64, f64)>)| {
        let (value, own) = (*value)?;
        let effect = value - place.centre;
        let (scale, df) = place.scale(own);
        let scale = scale.hypot(place.error_of_centre());
        (effect > WORTH_COMPUTING * scale).then(|| {
            let half = half_of * scale;
            Excess {
                host,
                unit,
                effect,
                low: effect - half,
                high: effect + half,
                scale,
                df,
                p: chance(effect, scale, df),
            }
        })
    };
    (
        seen.len(),
        values.iter().enumerate().filter_map(beyond).collect(),
    )
}

/// Benjamini and Hochberg (1995) over all tests, of which only the smallest chances are at hand; then those that reach
/// 5 %.
fn control(mut candidates: Vec<Excess>, tests: usize) -> Vec<Excess> {
    candidates.sort_by(|a, b| a.p.total_cmp(&b.p).then(b.effect.total_cmp(&a.effect)));
    let stands =
        |(rank, e): (usize, &Excess)| e.p <= FALSE_DISCOVERIES * (rank + 1) as f64 / tests as f64;
    let last = candidates
        .iter()
        .enumerate()
        .filter(|c| stands(*c))
        .map(|(rank, _)| rank + 1)
        .max()
        .unwrap_or(0);
    candidates.truncate(last);
    candidates.retain(|e| reaches_least(e.high));
    candidates
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A standard normal number (Box and Muller).
    pub(crate) fn normal(rng: &mut fastrand::Rng) -> f64 {
        let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * rng.f64()).cos()
    }

    /// Hosts that differ by 1 %, measured to 1.5 %, in 30 rows of 3 families; `slow` says by how much a host is slow in
    /// a row.
    fn made(hosts: usize, seed: u64, slow: impl Fn(usize, usize) -> f64) -> Grid {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut grid = Grid::new(hosts, (0..30).map(|row| (row / 10) as u8).collect());
        for host in 0..hosts {
            for row in 0..30 {
                let noise = 0.018 * normal(&mut rng);
                grid.set(
                    host,
                    row,
                    row as f64 + noise + (1.0 + slow(host, row)).ln(),
                    0.015,
                );
            }
        }
        grid
    }

    #[test]
    fn a_slow_host_is_found_with_its_family() {
        for hosts in [8, 100] {
            let judged = judge(&mut made(hosts, 1, |host, row| {
                if host == 3 && row / 10 == 1 {
                    0.15
                } else {
                    0.0
                }
            }));
            assert!(judged.resolved && judged.populations.is_empty());
            let accused = judged.accused();
            assert_eq!(
                accused.iter().map(|e| (e.host, e.unit)).collect::<Vec<_>>(),
                [(3, Unit::Family(1))],
                "{hosts} hosts"
            );
            assert!((accused[0].effect - 1.15_f64.ln()).abs() < 0.02 && accused[0].low > 0.1);
        }
    }

    #[test]
    fn equal_hosts_are_hardly_ever_accused() {
        let accused = (0..100)
            .filter(|seed| {
                !judge(&mut made(8 + *seed as usize % 40, *seed, |_, _| 0.0))
                    .excesses
                    .is_empty()
            })
            .count();
        assert!(accused <= 3, "{accused} of 100 sweeps");
    }

    #[test]
    fn a_host_that_is_slow_by_little_is_left_alone() {
        let judged = judge(&mut made(
            400,
            2,
            |host, _| if host == 3 { 0.025 } else { 0.0 },
        ));
        assert!(judged.excesses.is_empty(), "{:?}", judged.accused());
    }

    #[test]
    fn hosts_slow_by_five_per_cent_are_found_among_a_thousand() {
        let planted = [17, 300, 600, 999];
        let judged = judge(&mut made(1000, 3, |host, _| {
            if planted.contains(&host) { 0.05 } else { 0.0 }
        }));
        let mut found: Vec<usize> = judged.accused().iter().map(|e| e.host).collect();
        found.sort_unstable();
        assert_eq!(found, planted);
    }

    #[test]
    fn two_populations_accuse_nobody() {
        let judged = judge(&mut made(
            20,
            4,
            |host, _| if host % 2 == 0 { 0.3 } else { 0.0 },
        ));
        assert!(
            judged.excesses.is_empty()
                && judged
                    .populations
                    .iter()
                    .any(|(unit, _)| *unit == Unit::All)
        );
    }

    #[test]
    fn a_tenth_of_the_hosts_and_more_are_told_together_and_not_accused() {
        let judged = judge(&mut made(40, 6, |host, row| {
            if host < 7 && row == 4 {
                0.4 + 0.1 * host as f64
            } else {
                0.0
            }
        }));
        assert!(judged.excesses.is_empty(), "{:?}", judged.accused());
        let (unit, many) = &judged.populations[0];
        assert_eq!(
            (*unit, many.slower.len(), many.faster.len()),
            (Unit::Row(4), 7, 33)
        );
    }

    #[test]
    fn a_long_tail_on_both_sides_accuses_nobody() {
        let mut rng = fastrand::Rng::with_seed(7);
        // In each row one host of three is ten times as far from the middle as the others.
        let mut drawn = || {
            if rng.f64() < 1.0 / 3.0 {
                0.1 * normal(&mut rng)
            } else {
                0.0
            }
        };
        let tails: Vec<f64> = (0..300 * 30).map(|_| drawn()).collect();
        let judged = judge(&mut made(300, 8, |host, row| {
            tails[host * 30 + row].exp() - 1.0
        }));
        assert!(judged.accused().len() <= 3, "{:?}", judged.accused());
    }

    #[test]
    fn seven_peers_are_too_few() {
        let judged = judge(&mut made(7, 5, |host, _| if host == 0 { 1.0 } else { 0.0 }));
        assert!(!judged.resolved && judged.excesses.is_empty());
    }

    #[test]
    fn the_control_is_that_of_the_1995_paper() {
        let excess = |p: f64| Excess {
            host: 0,
            unit: Unit::All,
            effect: 1.0,
            low: 0.9,
            high: 1.1,
            scale: 0.1,
            df: 9.0,
            p,
        };
        // At 0.01 over four tests the limits are 0.0025, 0.005, 0.0075, 0.01: the third carries the second.
        let kept = control([0.001, 0.006, 0.007, 0.5].map(excess).to_vec(), 4);
        assert_eq!(
            kept.iter().map(|e| e.p).collect::<Vec<_>>(),
            [0.001, 0.006, 0.007]
        );
        assert!(control(vec![excess(0.004)], 4).is_empty());
        assert!(
            control(
                vec![Excess {
                    high: 0.04,
                    ..excess(0.0)
                }],
                4
            )
            .is_empty()
        );
    }
}
