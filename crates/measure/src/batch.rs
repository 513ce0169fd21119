//! Calibration: how many operations make one batch.
//!
//! A batch must last far longer than the clock's resolution and far shorter than a scheduler tick, so that most batches
//! of a slice meet no interruption at all. Unlike lmbench's, this calibration does not wait for a quiet machine: it
//! ends after [`MAX_STEPS`] batches at the latest, and the caller's deadline ends it earlier.

/// Nanoseconds that a batch aims at: ten thousand readings of the clock, a quarter of the shortest usual tick.
pub const TARGET_NS: u64 = 250_000;

/// Batches after which calibration takes what it has.
pub const MAX_STEPS: u32 = 40;

/// The most operations in one batch, against an operation that the compiler removed.
pub const MAX_OPS: u64 = 1 << 32;

/// Finds the batch size, fed with the duration of one batch after the other.
#[derive(Clone, Debug)]
pub struct Calibrator {
    target_ns: u64,
    ops: u64,
    steps: u32,
    cold: bool,
    settled: bool,
}

impl Calibrator {
    /// Starts at `hint` operations (0: at one), aiming at batches of `target_ns`.
    pub fn new(target_ns: u64, hint: u64) -> Self {
        Calibrator {
            target_ns: target_ns.max(1),
            ops: hint.clamp(1, MAX_OPS),
            steps: 0,
            cold: hint == 0,
            settled: false,
        }
    }

    /// Operations that the next batch should hold.
    pub fn ops(&self) -> u64 {
        self.ops
    }

    /// Whether the size is found.
    pub fn settled(&self) -> bool {
        self.settled
    }

    /// Takes the duration of a batch of [`Calibrator::ops`] operations.
    ///
    /// The size grows at most sixteenfold at a time, because the first batches pay for cold caches and page faults; it
    /// settles once a batch of it came within a factor of two of the target, or one operation alone is longer than
    /// that. The very first operation settles nothing: a thread's first creation takes ten times as long as the next,
    /// and would stand alone for ever.
    pub fn feed(&mut self, ns: u64) {
        self.steps += 1;
        let close = ns >= self.target_ns / 2 && ns <= self.target_ns * 2;
        let single = self.ops == 1 && ns > self.target_ns / 2;
        let cold = std::mem::take(&mut self.cold);
        if (close || single) && !cold || self.steps >= MAX_STEPS || self.ops == MAX_OPS {
            self.settled = true;
            return;
        }
        let ideal = (self.ops as u128 * self.target_ns as u128 / ns.max(1) as u128)
            .min(MAX_OPS as u128) as u64;
        self.ops = ideal.clamp(1, self.ops.saturating_mul(16)).min(MAX_OPS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn calibrate(ns_per_op: f64, mut noise: impl FnMut(u32) -> f64) -> (u64, u32) {
        let mut c = Calibrator::new(TARGET_NS, 0);
        let mut steps = 0;
        while !c.settled() {
            c.feed((c.ops() as f64 * ns_per_op * noise(steps)) as u64);
            steps += 1;
            assert!(steps <= MAX_STEPS);
        }
        (c.ops(), steps)
    }

    #[test]
    fn a_cheap_operation_fills_the_target() {
        let (ops, steps) = calibrate(50.0, |_| 1.0);
        let ns = ops as f64 * 50.0;
        assert!(
            (TARGET_NS as f64 / 2.0..=TARGET_NS as f64 * 2.0).contains(&ns),
            "{ns}"
        );
        assert!(steps <= 5, "{steps}");
    }

    #[test]
    fn an_expensive_operation_stands_alone() {
        assert_eq!(calibrate(5e6, |_| 1.0), (1, 2));
    }

    #[test]
    fn a_cold_first_operation_does_not_stand_for_the_warm_ones() {
        let (ops, _) = calibrate(5_000.0, |step| if step == 0 { 30.0 } else { 1.0 });
        assert!(
            (TARGET_NS / 2..=TARGET_NS * 2).contains(&(ops * 5_000)),
            "{ops}"
        );
    }

    #[test]
    fn an_operation_that_takes_no_time_ends_the_calibration() {
        assert_eq!(calibrate(0.0, |_| 1.0).0, MAX_OPS);
    }

    #[test]
    fn a_hint_that_still_fits_is_taken_at_once() {
        let mut c = Calibrator::new(TARGET_NS, 2000);
        c.feed(TARGET_NS + 1000);
        assert!(c.settled());
        assert_eq!(c.ops(), 2000);
    }

    proptest! {
        #[test]
        fn it_always_ends_whatever_the_durations(
            durations in prop::collection::vec(any::<u64>(), 1..60),
            hint in any::<u64>()
        ) {
            let mut c = Calibrator::new(TARGET_NS, hint);
            for ns in durations.iter().cycle().take(MAX_STEPS as usize) {
                prop_assert!((1..=MAX_OPS).contains(&c.ops()));
                if !c.settled() { c.feed(*ns); }
            }
            prop_assert!(c.settled());
        }
    }
}
