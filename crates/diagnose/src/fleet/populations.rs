//! Whether a group is two populations: another firmware, another memory layout, which nobody recorded.

use super::LEAST;
use super::robust::{Place, median};

/// The smaller part must have this share of the hosts, and so many of them: what is fewer are single hosts that are
/// slow.
const SHARE: f64 = 0.3;
const MEMBERS: usize = 3;
/// How far apart the middles of the parts are, in standard deviations within them; a normal distribution cut in its
/// middle gives 2.6.
const APART: f64 = 6.0;
/// How wide the gap between the parts is, in the same.
const GAP: f64 = 2.5;

/// Two populations in one unit of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Populations {
    /// The hosts of the slower part, by number.
    pub slower: Vec<usize>,
    /// The hosts of the faster part.
    pub faster: Vec<usize>,
    /// How many times slower the one is than the other, as a logarithm.
    pub apart: f64,
}

/// Two populations, when these values, one a host, are two and at least 5 % apart.
pub fn of(values: &[Option<(f64, f64)>]) -> Option<Populations> {
    let mut sorted: Vec<(f64, f64, usize)> = values
        .iter()
        .enumerate()
        .filter_map(|(i, v)| v.map(|(x, own)| (x, own, i)))
        .collect();
    let least = ((sorted.len() as f64 * SHARE).ceil() as usize).max(MEMBERS);
    if sorted.len() < super::FEWEST || sorted.len() < 2 * least {
        return None;
    }
    // Each part's middle is that of at least so many hosts: where even these two are close together, nobody need be
    // sorted.
    let count = sorted.len();
    let outer = (least / 2).saturating_sub(1);
    let mut at = |rank: usize| {
        sorted
            .select_nth_unstable_by(rank, |a, b| a.0.total_cmp(&b.0))
            .1
            .0
    };
    let (low, high) = (at(outer), at(count - 1 - outer));
    if high - low <= LEAST.ln_1p() {
        return None;
    }
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let gap = |cut: &usize| sorted[*cut].0 - sorted[*cut - 1].0;
    let cut = (least..=sorted.len() - least).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let (fast, slow) = sorted.split_at(cut);
    let place = |part: &[(f64, f64, usize)]| {
        Place::of(&part.iter().map(|p| (p.0, p.1)).collect::<Vec<_>>())
    };
    let (below, above) = (place(fast)?, place(slow)?);
    let within = median(&mut [below.spread.max(below.own), above.spread.max(above.own)]);
    let apart = above.centre - below.centre;
    let two = apart > LEAST.ln_1p() && apart > APART * within && gap(&cut) > GAP * within;
    let members = |part: &[(f64, f64, usize)]| part.iter().map(|p| p.2).collect();
    two.then(|| Populations {
        slower: members(slow),
        faster: members(fast),
        apart,
    })
}

#[cfg(test)]
mod tests {
    use super::super::slow::tests::normal;
    use super::*;

    #[test]
    fn two_populations_are_told_apart_and_one_is_not() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut made = |slow: usize, by: f64| -> Vec<Option<(f64, f64)>> {
            (0..40)
                .map(|host| {
                    Some((
                        normal(&mut rng) * 0.01 + if host < slow { by } else { 0.0 },
                        0.01,
                    ))
                })
                .collect()
        };
        let found = of(&made(20, 0.2)).unwrap();
        assert_eq!((found.slower.len(), found.faster.len()), (20, 20));
        assert!(found.slower.iter().all(|host| *host < 20) && (found.apart - 0.2).abs() < 0.02);
        // Two slow hosts are no population, and neither are forty that are alike.
        assert_eq!(of(&made(2, 0.2)), None);
        assert!((0..200).all(|_| of(&made(0, 0.0)).is_none()));
    }

    #[test]
    fn eight_hosts_of_one_kind_are_hardly_ever_two() {
        let mut rng = fastrand::Rng::with_seed(6);
        let two = (0..500)
            .filter(|_| {
                of(&(0..8)
                    .map(|_| Some((normal(&mut rng) * 0.03, 0.02)))
                    .collect::<Vec<_>>())
                .is_some()
            })
            .count();
        assert!(two <= 5, "{two} of 500");
    }
}
