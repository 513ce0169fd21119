//! Which processes of a run were measured while the CPU kept its pace.
//!
//! Every process of a probe times a piece of fixed work beside its batches (`Process::pace`): user mode, no memory, the
//! same each time. It has no reason to take longer once than another time but the CPU itself: a neighbour on the same
//! core, a clock rate that went down. That a process is slow is thus known from something else than its value, so that
//! leaving it out takes no side: values that are high for a reason of the operation itself stay.

use fingerpost_record::Process;

use crate::estimate::median;

/// How much longer than at best the fixed work may take, relatively, where the CPU keeps its pace. One step of a clock
/// rate is 2.5 to 4 %.
pub const TOLERANCE: f64 = 0.02;

/// Processes that a figure is made of at least, where there are so many: the least slowed, if fewer kept the pace.
const LEAST: usize = 5;

/// The share of all readings that is taken for the best pace: a rate that a CPU reaches but once in a run is not its
/// own.
const BEST: f64 = 0.02;

/// The readings of a run so far, in ascending order.
///
/// Only those of processes that use one CPU: a partner on another CPU may share the core, so that readings beside it
/// are slow by nature. Processes with partners are set beside those of their own row.
#[derive(Clone, Debug, Default)]
pub struct Paces(Vec<f64>);

impl Paces {
    /// Adds a process's reading.
    pub fn add(&mut self, process: &Process) {
        if let [ns] = process.pace[..] {
            self.insert(ns);
        }
    }

    /// How many of the readings tell of a slowed CPU, and how many there are.
    pub fn slowed_of_all(&self) -> (usize, usize) {
        (
            self.0
                .iter()
                .filter(|ns| self.slowed(**ns) > TOLERANCE)
                .count(),
            self.0.len(),
        )
    }

    fn insert(&mut self, ns: f64) {
        let at = self.0.partition_point(|x| *x < ns);
        self.0.insert(at, ns);
    }

    /// How much longer than at best the fixed work took, relatively; 0 where there is nothing to compare with.
    fn slowed(&self, ns: f64) -> f64 {
        let best = self
            .0
            .get((BEST * self.0.len().saturating_sub(1) as f64) as usize);
        best.filter(|best| **best > 0.0)
            .map_or(0.0, |best| (ns / best - 1.0).max(0.0))
    }

    /// Marks the processes of one row that its figure is made without, and tells what is known of the others.
    pub fn exclude(&self, processes: &mut [Process]) -> Slowing {
        let slowed = self.of_each(processes);
        let valid: Vec<usize> = (0..processes.len())
            .filter(|&i| processes[i].value.is_some())
            .collect();
        let (kept, excluded) = part(valid.clone(), &slowed);
        kept.iter().for_each(|&i| processes[i].excluded = false);
        excluded.iter().for_each(|&i| processes[i].excluded = true);
        let of_kept: Vec<f64> = kept.iter().map(|&i| slowed[i]).collect();
        let any = of_kept.iter().any(|s| *s > TOLERANCE);
        // Within the tolerance readings differ by chance.
        let Some(typical) = Some(median(&of_kept)).filter(|s| *s > TOLERANCE) else {
            return Slowing { any, by: 0.0 };
        };
        let points: Vec<(f64, f64)> = valid
            .iter()
            .filter_map(|&i| Some((slowed[i].ln_1p(), processes[i].value?.abs().ln())))
            .collect();
        Slowing {
            any,
            by: typical.ln_1p() * sensitivity(&points),
        }
    }

    /// By how much each process of a row was slowed, on the CPU where it was worst.
    fn of_each(&self, processes: &[Process]) -> Vec<f64> {
        let cpus = processes.iter().map(|p| p.pace.len()).max().unwrap_or(0);
        let own: Vec<Paces> = (0..cpus).map(|cpu| Paces::on(cpu, processes)).collect();
        let by = |cpu: usize| if cpus > 1 { &own[cpu] } else { self };
        processes
            .iter()
            .map(|p| {
                p.pace
                    .iter()
                    .enumerate()
                    .map(|(cpu, ns)| by(cpu).slowed(*ns))
                    .fold(0.0, f64::max)
            })
            .collect()
    }

    fn on(cpu: usize, processes: &[Process]) -> Paces {
        let mut paces = Paces::default();
        processes
            .iter()
            .filter_map(|p| p.pace.get(cpu))
            .for_each(|ns| paces.insert(*ns));
        paces
    }
}

/// How the processes were slowed that a figure is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowing {
    /// Whether any of them was.
    pub any: bool,
    /// How far off the figure may be for it: as a logarithm, 0 where most kept the pace.
    pub by: f64,
}

/// Marks the pairs of processes of one row that its ratio is made without, because either of the two was slowed. Each
/// side has a best pace of its own: what the settings of the two sides make of the CPU is no disturbance.
pub fn exclude_pairs(paces: &[Paces; 2], sides: [&mut [Process]; 2]) {
    let [a, b] = sides;
    let slowed: Vec<f64> = paces[0]
        .of_each(a)
        .into_iter()
        .zip(paces[1].of_each(b))
        .map(|(a, b)| a.max(b))
        .collect();
    let (kept, excluded) = part((0..slowed.len()).collect(), &slowed);
    for (pairs, out) in [(kept, false), (excluded, true)] {
        pairs
            .into_iter()
            .for_each(|i| (a[i].excluded, b[i].excluded) = (out, out));
    }
}

/// Those that were not slowed, or the least slowed where there are too few; and the others.
fn part(mut some: Vec<usize>, slowed: &[f64]) -> (Vec<usize>, Vec<usize>) {
    some.sort_by(|&a, &b| slowed[a].total_cmp(&slowed[b]));
    let steady = some.iter().filter(|&&i| slowed[i] <= TOLERANCE).count();
    let excluded = some.split_off(steady.max(LEAST).min(some.len()));
    (some, excluded)
}

/// How much of a slower pace goes into the values: 1 where they grow in proportion, 0 where they do not depend on it.
/// The median slope between points (Theil 1950, Sen 1968) of the logarithms of slowing and value; 1 where too few
/// differ in pace to tell.
fn sensitivity(points: &[(f64, f64)]) -> f64 {
    let pairs = points
        .iter()
        .enumerate()
        .flat_map(|(i, a)| points[..i].iter().map(move |b| (a, b)));
    let slopes: Vec<f64> = pairs
        .filter(|(a, b)| (a.0 - b.0).abs() > TOLERANCE)
        .map(|(a, b)| ((a.1 - b.1) / (a.0 - b.0)).abs())
        .collect();
    if slopes.len() < LEAST * LEAST {
        1.0
    } else {
        median(&slopes).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::kept_values;

    use super::*;

    const STEADY: Slowing = Slowing {
        any: false,
        by: 0.0,
    };

    fn process(value: f64, pace: &[f64]) -> Process {
        Process {
            value: Some(value),
            pace: pace.to_vec(),
            ..Process::default()
        }
    }

    fn paces_of(processes: &[Process]) -> Paces {
        let mut paces = Paces::default();
        processes.iter().for_each(|p| paces.add(p));
        paces
    }

    #[test]
    fn those_that_kept_the_pace_are_taken_whatever_their_values() {
        let mut all: Vec<Process> = (0..10)
            .map(|i| process(f64::from(i) * 100.0, &[4000.0 + f64::from(i)]))
            .collect();
        all.extend((0..10).map(|_| process(50.0, &[8400.0])));
        let paces = paces_of(&all);
        assert_eq!(paces.exclude(&mut all), STEADY);
        assert_eq!(
            kept_values(&all),
            (0..10).map(|i| f64::from(i) * 100.0).collect::<Vec<_>>()
        );
    }

    #[test]
    fn where_few_kept_it_the_least_slowed_are_taken_and_told() {
        let mut all = vec![process(1.0, &[4000.0]), process(1.1, &[4000.0])];
        all.extend((0..20).map(|i| process(1.2, &[4200.0 + 10.0 * f64::from(i)])));
        let paces = paces_of(&all);
        let slowing = paces.exclude(&mut all);
        assert_eq!(kept_values(&all).len(), LEAST);
        assert_eq!(
            slowing,
            Slowing { any: true, by: 0.0 },
            "their values do not depend on it"
        );
        all.iter_mut()
            .for_each(|p| p.value = Some(p.pace[0] / 10.0));
        let slowed = paces.exclude(&mut all).by;
        assert!((slowed - 1.05_f64.ln()).abs() < 1e-9, "{slowed}");
    }

    #[test]
    fn a_pair_with_a_slowed_half_is_left_out_on_both_sides() {
        let side = |slow: usize, ns: f64| {
            (0..8)
                .map(|i| process(1.0, &[if i == slow { 2.0 * ns } else { ns }]))
                .collect::<Vec<_>>()
        };
        // The second side's CPU is slower by its setting.
        let (mut a, mut b) = (side(1, 4000.0), side(6, 7000.0));
        exclude_pairs(&[paces_of(&a), paces_of(&b)], [&mut a, &mut b]);
        let out = |side: &[Process]| (0..8).filter(|i| side[*i].excluded).collect::<Vec<_>>();
        assert_eq!((out(&a), out(&b)), (vec![1, 6], vec![1, 6]));
    }

    #[test]
    fn what_depends_on_the_pace_in_part_may_be_off_by_that_part() {
        let points = |power: f64| {
            (0..10)
                .map(|i| f64::from(i) * 0.05)
                .map(|x| (x, 3.0 + power * x))
                .collect::<Vec<_>>()
        };
        assert!((sensitivity(&points(0.4)) - 0.4).abs() < 1e-9);
        assert!(
            (sensitivity(&points(-0.4)) - 0.4).abs() < 1e-9,
            "a rate goes down"
        );
        assert_eq!(sensitivity(&points(3.0)), 1.0);
        assert_eq!(sensitivity(&points(0.0)[..3]), 1.0, "too few to tell");
    }

    #[test]
    fn without_readings_or_with_few_processes_all_are_taken() {
        let mut plain: Vec<Process> = (0..8).map(|i| process(f64::from(i), &[])).collect();
        assert_eq!(paces_of(&plain).exclude(&mut plain), STEADY);
        assert_eq!(kept_values(&plain).len(), 8);
        let mut few = vec![process(1.0, &[4000.0]), process(2.0, &[8000.0])];
        assert_eq!(
            paces_of(&few).exclude(&mut few),
            Slowing {
                any: true,
                by: 1.5_f64.ln()
            },
            "the middle of 0 and 1"
        );
        assert_eq!(kept_values(&few).len(), 2);
        let mut failed = vec![Process::default(); 3];
        assert_eq!(Paces::default().exclude(&mut failed), STEADY);
    }

    #[test]
    fn a_slowed_process_among_few_is_told_though_most_kept_pace() {
        let mut few: Vec<Process> = [4000.0, 4000.0, 4000.0, 4000.0, 4400.0]
            .iter()
            .map(|ns| process(1.0, &[*ns]))
            .collect();
        assert_eq!(
            paces_of(&few).exclude(&mut few),
            Slowing { any: true, by: 0.0 }
        );
        assert_eq!(paces_of(&few).slowed_of_all(), (1, 5));
        assert_eq!(Paces::default().slowed_of_all(), (0, 0));
    }

    #[test]
    fn a_process_with_a_partner_is_beside_its_own_row() {
        let run = paces_of(&[
            process(1.0, &[4000.0]),
            process(1.0, &[4000.0]),
            process(1.0, &[9000.0, 1.0]),
        ]);
        // The partner on the same core makes 6000 of 4000 in every process, and that is no reason to exclude any.
        let mut all: Vec<Process> = (0..6)
            .map(|i| process(f64::from(i), &[6000.0, 4000.0]))
            .collect();
        all.push(process(9.0, &[6000.0, 8000.0]));
        assert_eq!(run.exclude(&mut all), STEADY);
        assert_eq!(kept_values(&all), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }
}
