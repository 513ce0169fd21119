//! Samples that are taken while a window of events is open, of threads on a CPU and of threads that leave theirs: the
//! window tells which requests they had, and how long they were away.
//!
//! One in so many departures is sampled, by how many there were in the window before, so that a busy machine's windows
//! cost no more than a quiet one's. These numbers are primes: a server and its client leave a CPU in turns, and every
//! second departure would be one's alone.

use std::time::Duration;

use fingerpost_sys::perf::stacks::{SHORT_STACK_BYTES, StackSampler, Trigger};

use super::{Kept, Taker, Timed};
use crate::follow::event::What;
use crate::follow::source::Window;

/// Samples a second of a CPU that is not idle, and of all CPUs together; departures that are sampled a second, about.
/// With three times as many of the first, five times as many of the second and stacks of 16 KiB a window's requests
/// were 7 to 14 % fewer (`bench/attach recognise`).
const HERTZ: u64 = 299;
const MOST_HERTZ: u64 = 2_000;
const DEPARTURES: f64 = 400.0;
/// Of how many departures one is sampled; the first until a window has told how many there are.
const ONE_IN: [u64; 9] = [1, 3, 7, 17, 37, 79, 163, 331, 673];
const FIRST: u64 = 37;
/// Bytes of stacks that are kept of either kind.
const MOST_BYTES: usize = 20 << 20;

/// Samples while windows are open.
pub struct InWindows {
    on: StackSampler,
    off: StackSampler,
    one_in: u64,
    kept: [Kept; 2],
    taker: Taker,
}

impl InWindows {
    /// Opens both kinds, switched off.
    ///
    /// # Errors
    /// Why samples cannot be had, in a sentence.
    pub fn open() -> Result<InWindows, String> {
        let open = |trigger| {
            StackSampler::open(trigger, SHORT_STACK_BYTES)
                .map_err(|e| format!("stacks cannot be sampled here: {e}"))
        };
        let mut taker = Taker::default();
        taker.code.begin();
        Ok(InWindows {
            on: open(Trigger::Timer {
                hertz: HERTZ,
                most: MOST_HERTZ,
            })?,
            off: open(Trigger::Leaving { one_in: FIRST })?,
            one_in: FIRST,
            kept: Default::default(),
            taker,
        })
    }

    /// A window opens. Where the kernel refuses there are no samples of it.
    pub fn begin(&mut self, ours: impl Iterator<Item = i32>) {
        self.taker.ours.extend(ours);
        for sampler in [&self.on, &self.off] {
            // What a sampler cannot is missing in the pictures, and no reason to end the watching.
            let _ = sampler.switch(true);
        }
    }

    /// Takes over what was sampled.
    pub fn drain(&mut self) {
        let InWindows {
            on,
            off,
            kept: [kept_on, kept_off],
            taker,
            one_in,
        } = self;
        for (sampler, kept, one_in) in [(on, kept_on, 1), (off, kept_off, *one_in)] {
            // A thread of the kernel's has no functions that anybody could change.
            taker.take(sampler, one_in, |s| s.user.is_some(), kept, MOST_BYTES);
        }
    }

    /// The window has ended.
    pub fn end(&mut self, window: Option<&Window>) {
        for sampler in [&self.on, &self.off] {
            let _ = sampler.switch(false);
        }
        self.drain();
        let Some(window) = window else { return };
        let departures = window
            .events
            .iter()
            .filter(|e| matches!(e.what, What::Switch { .. }) && e.tid != 0)
            .count();
        let seconds = Duration::from_nanos(window.end.saturating_sub(window.start)).as_secs_f64();
        self.one_in = one_in(departures as f64 / seconds.max(1e-3));
        let _ = self.off.one_in(self.one_in);
    }

    /// Ends sampling.
    pub fn finish(mut self) -> Taken {
        self.taker.code.finish();
        let [on, off] = self.kept;
        Taken {
            on: on.samples,
            off: off.samples,
            taker: self.taker,
        }
    }
}

/// Of how many departures one is sampled where there are so many a second.
fn one_in(rate: f64) -> u64 {
    ONE_IN
        .into_iter()
        .find(|n| rate / *n as f64 <= DEPARTURES)
        .unwrap_or(ONE_IN[ONE_IN.len() - 1])
}

/// Samples of all windows, still to be unwound and named.
#[derive(Default)]
pub struct Taken {
    /// Of threads on a CPU.
    pub on: Vec<Timed>,
    /// Of threads that left theirs.
    pub off: Vec<Timed>,
    pub(super) taker: Taker,
}

#[cfg(test)]
mod tests {
    use super::super::code::Code;
    use super::*;

    #[test]
    fn departures_are_sampled_often_enough_and_not_too_often() {
        assert_eq!(
            (
                one_in(0.0),
                one_in(399.0),
                one_in(1_000.0),
                one_in(12_000.0),
                one_in(1e9)
            ),
            (1, 1, 3, 37, 673)
        );
        let prime = |n: u64| (2..n).all(|d| !n.is_multiple_of(d));
        assert!(ONE_IN.into_iter().skip(1).all(prime) && ONE_IN.is_sorted());
    }

    #[test]
    fn of_too_many_samples_half_are_kept_and_count_twice() {
        let mut kept = Kept::default();
        let each = MOST_BYTES / 100;
        for _ in 0..1_000 {
            kept.add(
                Timed {
                    one_in: 3,
                    stack: vec![0; each],
                    ..Timed::default()
                },
                MOST_BYTES,
                &mut Code::default(),
            );
        }
        let stand_for: u64 = kept.samples.iter().map(|s| s.one_in).sum();
        assert!(
            kept.bytes <= MOST_BYTES && kept.samples.len() >= 25,
            "{}",
            kept.samples.len()
        );
        assert!((2_500..=3_500).contains(&stand_for), "{stand_for}");
    }
}
