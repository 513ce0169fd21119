//! What the two finders of stalls say of the same completions.

use crate::database::stalls::find;
use crate::web::stall::StallWatch;

const MS: u64 = 1_000_000;
/// The step's length.
const END: u64 = 1500;

/// Completions, in milliseconds after the step's start: steadily, but for gaps at the start (30 ms), of 15, 20, 35, 45
/// and 400 ms, and at the end (50 ms).
fn completions() -> Vec<u64> {
    let gaps = [(0, 30), (100, 15), (200, 20), (300, 35), (400, 45), (600, 400), (1450, 50)];
    (0..END).filter(|at| !gaps.iter().any(|(from, length)| (*from..from + length).contains(at))).collect()
}

/// By each completion's time.
fn by_times(median: u64) -> Vec<(u64, u64)> {
    let mut watch = StallWatch::new(0);
    watch.begin(0);
    watch.renew(Some(median));
    completions().into_iter().for_each(|at| watch.completed(at * MS));
    watch.end(0, END * MS).iter().map(|s| (s.at / MS, s.length / MS)).collect()
}

/// By completions in slots of a millisecond.
fn by_slots(median: u64) -> Vec<(u64, u64)> {
    let mut slots = vec![0; END as usize];
    completions().into_iter().for_each(|at| slots[at as usize] += 1);
    let ms = |s: f64| (s * 1e3).round() as u64;
    find(&slots, 0.001, median as f64 / 1e9, 4, &[]).iter().map(|s| (ms(s.at_s), ms(s.length_s))).collect()
}

#[test]
fn what_both_finders_say() {
    // With 0.2 ms the shortest stall of either is 20 ms. A slot is whole; a time is the millisecond's beginning.
    let times = [(0, 30), (199, 21), (299, 36), (399, 46), (599, 401), (1449, 51)];
    let slots = [(0, 30), (200, 20), (300, 35), (400, 45), (600, 400), (1450, 50)];
    assert_eq!((by_times(MS / 5), by_slots(MS / 5)), (times.to_vec(), slots.to_vec()));
    // With 2 ms it is 20 ms for the one and 40 ms for the other.
    assert_eq!((by_times(2 * MS), by_slots(2 * MS)), (times.to_vec(), slots[3..].to_vec()));
    // With 3 ms 30 and 60, and what is 30 ms exactly is none of the one's.
    assert_eq!((by_times(3 * MS), by_slots(3 * MS)), (times[2..].to_vec(), slots[4..5].to_vec()));
    // With 20 ms 200 and 400, and what is 400 ms exactly is one of the other's.
    assert_eq!((by_times(20 * MS), by_slots(20 * MS)), (times[4..5].to_vec(), slots[4..5].to_vec()));
    assert_eq!((by_times(40 * MS), by_slots(40 * MS)), (times[4..5].to_vec(), Vec::new()));
}
