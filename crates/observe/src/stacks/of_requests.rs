//! Flame graphs of requests: the stacks of the threads that had one, on a CPU and while they were off it, of all
//! requests and of the slowest 1 %.
//!
//! Of threads on a CPU each sample counts once. Off the CPU a stack counts for as long as its thread was away while it
//! had a request, as many times as departures were passed over for the one that was sampled.

use std::collections::HashMap;

use fingerpost_record::stacks::{RequestStacks, StackClass, StackKind, Stacks};
use fingerpost_sys::trace::thread_cpu_seconds;

use super::held::{Holds, Span};
use super::windows::Taken;
use super::{Left, Taker, Timed, folded, naming};
use crate::Limits;
use crate::follow::event::What;
use crate::follow::source::Window;

/// A sample is taken a moment after the event that tells that its thread left: within this many nanoseconds.
const A_MOMENT: u64 = 100_000;

/// When each thread left a CPU and had one again, in order; until the window's end where it did not come back within
/// it.
#[derive(Debug, Default)]
pub struct Absences(HashMap<i32, Vec<Span>>);

impl Absences {
    /// Of windows in the order of time.
    pub fn of<'a>(windows: impl Iterator<Item = &'a Window>) -> Absences {
        let mut found: HashMap<i32, Vec<Span>> = HashMap::new();
        for window in windows.filter(|w| w.lost == 0) {
            let mut away: HashMap<i32, u64> = HashMap::new();
            for e in &window.events {
                let What::Switch { next, .. } = e.what else {
                    continue;
                };
                if let Some(left) = away.remove(&next) {
                    found.entry(next).or_default().push((left, e.time));
                }
                if e.tid != 0 {
                    away.insert(e.tid, e.time);
                }
            }
            away.into_iter()
                .for_each(|(tid, left)| found.entry(tid).or_default().push((left, window.end)));
        }
        found.values_mut().for_each(|spans| spans.sort_unstable());
        Absences(found)
    }

    /// The absence that a thread began at this moment, as a sample of its leaving tells.
    fn begun(&self, tid: i32, at: u64) -> Option<Span> {
        let spans = self.0.get(&tid)?;
        let after = spans.partition_point(|s| s.0 <= at);
        let last = after
            .checked_sub(1)
            .map(|n| spans[n])
            .filter(|s| at - s.0 <= A_MOMENT && at < s.1);
        last.or_else(|| spans.get(after).copied().filter(|s| s.0 - at <= A_MOMENT))
    }
}

/// The graphs: on and off the CPU, of each class. `classes` are the times in which threads had requests of a class;
/// without any, all of the service's time is meant. Samples are unwound and named within these limits; what was left out.
pub fn graphs(
    taken: Taken,
    absences: &Absences,
    classes: &[(StackClass, Option<&Holds>)],
    limits: Limits,
) -> (Vec<RequestStacks>, Left) {
    let before = thread_cpu_seconds();
    let Taken {
        on,
        off,
        taker: Taker {
            code, lost, spent, ..
        },
    } = taken;
    let all: Vec<&Timed> = on.iter().chain(&off).collect();
    let naming::Named {
        mut frames,
        names,
        left,
    } = naming::name(code, &all, limits);
    let off_frames = frames.split_off(on.len());
    let on_frames = frames;
    let self_cost = spent + thread_cpu_seconds() - before;
    let mut found = Vec::new();
    for (of, holds) in classes {
        let once = |s: &Timed| {
            holds
                .is_none_or(|h| h.has(s.tid, s.time))
                .then_some(s.one_in)
        };
        let away = |s: &Timed| {
            let span = absences.begun(s.tid, s.time)?;
            let ns = holds.map_or(span.1 - span.0, |h| h.within(s.tid, span));
            Some((ns / 1000).saturating_mul(s.one_in)).filter(|us| *us > 0)
        };
        let on_cpu = counted(&on, &on_frames, once);
        let off_cpu = counted(&off, &off_frames, away);
        for (kind, source, (samples, counts)) in [
            (StackKind::OnCpu, ON_CPU, on_cpu),
            (StackKind::OffCpu, OFF_CPU, off_cpu),
        ] {
            let Some(stacks) = folded(counts, &names) else {
                continue;
            };
            let source = source.to_owned();
            found.push(RequestStacks {
                kind,
                of: *of,
                stacks: Stacks {
                    source,
                    samples,
                    lost,
                    self_cost,
                    ..stacks
                },
            });
        }
    }
    (found, left)
}

/// How samples of either kind were had.
const ON_CPU: &str = "the kernel's timer while events were taken; unwound by .eh_frame";
const OFF_CPU: &str = "one in so many departures from a CPU while events were taken, for as long as it lasted; unwound by .eh_frame";

/// How many samples count, and what each stack counts.
fn counted(
    samples: &[Timed],
    frames: &[Vec<u32>],
    weight: impl Fn(&Timed) -> Option<u64>,
) -> (u64, HashMap<Vec<u32>, u64>) {
    let (mut count, mut counts) = (0, HashMap::new());
    for (sample, frames) in samples.iter().zip(frames) {
        if let Some(weight) = weight(sample) {
            count += 1;
            *counts.entry(frames.clone()).or_default() += weight;
        }
    }
    (count, counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::event::{Event, Left};
    use crate::stacks::held::Held;

    fn switch(time: u64, tid: i32, next: i32) -> Event {
        Event {
            time,
            cpu: 0,
            interrupt: false,
            pid: tid,
            tid,
            what: What::Switch {
                left: Left::Blocked,
                next,
            },
        }
    }

    fn window() -> Window {
        // Thread 7 is away from 1 ms to 3 ms, and again from 4 ms on.
        let events = vec![
            switch(1_000_000, 7, 0),
            switch(3_000_000, 0, 7),
            switch(4_000_000, 7, 8),
        ];
        Window {
            start: 0,
            end: 6_000_000,
            events,
            ..Window::default()
        }
    }

    #[test]
    fn an_absence_lasts_until_a_cpu_is_had_or_the_window_ends() {
        let found = Absences::of([window()].iter());
        assert_eq!(found.begun(7, 1_000_800), Some((1_000_000, 3_000_000)));
        assert_eq!(
            found.begun(7, 3_999_900),
            Some((4_000_000, 6_000_000)),
            "a clock may read a little earlier"
        );
        assert_eq!(
            (
                found.begun(7, 2_000_000),
                found.begun(7, 500_000),
                found.begun(9, 1_000_000)
            ),
            (None, None, None)
        );
    }

    #[test]
    fn a_stack_counts_off_cpu_while_its_thread_had_a_request() {
        let sample = |time, one_in| Timed {
            pid: 7,
            tid: 7,
            time,
            one_in,
            ..Timed::default()
        };
        let held = [
            Held {
                tid: 7,
                from: 500_000,
                to: 2_500_000,
                latency: 2_000_000,
            },
            Held {
                tid: 7,
                from: 3_500_000,
                to: 6_000_000,
                latency: 9_000_000,
            },
        ];
        let absences = Absences::of([window()].iter());
        let weigh = |holds: &Holds, s: &Timed| {
            absences
                .begun(7, s.time)
                .map(|span| holds.within(7, span) / 1000 * s.one_in)
        };
        let (all, slow) = (Holds::of(&held, 0), Holds::of(&held, 5_000_000));
        assert_eq!(
            weigh(&all, &sample(1_000_100, 3)),
            Some(4_500),
            "1.5 of its 2 ms, and three departures"
        );
        assert_eq!(weigh(&slow, &sample(1_000_100, 3)), Some(0));
        assert_eq!(weigh(&slow, &sample(4_000_100, 1)), Some(2_000));
        let frames = vec![vec![1], vec![1], vec![2]];
        let samples = [
            sample(1_000_100, 3),
            sample(4_000_100, 1),
            sample(2_000_000, 1),
        ];
        let (count, counts) = counted(&samples, &frames, |s| weigh(&all, s));
        assert_eq!(
            (count, counts.get(&vec![1]).copied(), counts.get(&vec![2])),
            (2, Some(6_500), None)
        );
    }
}
