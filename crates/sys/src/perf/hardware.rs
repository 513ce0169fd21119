//! Hardware counters of everything that runs, as samples: one each time that a counter has counted so many, with the
//! thread that had the CPU. Counts of a thread or a stretch of time are sums of samples.

use std::io;

use perf_event_open_sys::bindings::{PERF_SAMPLE_PERIOD, PERF_SAMPLE_TID, PERF_SAMPLE_TIME};

use super::Event;
use super::refusal::Refusal;
use crate::trace::{Ring, Words, attributes, online_cpus, switch, timed};

/// Bytes of one event's ring on one CPU.
const RING: usize = 64 << 10;

/// What is sampled, and after how many each: some thousand samples a second of a busy CPU for what happens in every
/// cycle. Not in step with anything that a program counts.
pub const SAMPLED: [(Event, u64); 4] = [
    (Event::Cycles, 1_000_003),
    (Event::Instructions, 1_000_003),
    (Event::CacheMisses, 10_007),
    (Event::DataTlbMisses, 10_007),
];

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// What was counted.
    pub event: Event,
    /// The process that had the CPU.
    pub pid: i32,
    /// Its thread.
    pub tid: i32,
    /// Nanoseconds on the monotonic clock.
    pub time: u64,
    /// How many since the sample before it on that CPU.
    pub count: u64,
}

/// Samples every CPU.
pub struct HardwareSampler {
    rings: Vec<(Event, Ring)>,
}

impl HardwareSampler {
    /// Opens these events, switched off; those that the CPU or the kernel lacks are left out, as long as one is there.
    ///
    /// # Errors
    /// Why none can be had.
    pub fn open(events: &[(Event, u64)]) -> Result<HardwareSampler, Refusal> {
        let (mut rings, mut refused) = (Vec::new(), None);
        for &(event, period) in events {
            match rings_of(event, period) {
                Ok(found) => rings.extend(found.into_iter().map(|ring| (event, ring))),
                Err(e) => refused = refused.or(Some(e)),
            }
        }
        match refused {
            Some(e) if rings.is_empty() => Err(Refusal::of(&e, true)),
            _ => Ok(HardwareSampler { rings }),
        }
    }

    /// The events that it has.
    pub fn events(&self) -> Vec<Event> {
        let mut found: Vec<Event> = self.rings.iter().map(|r| r.0).collect();
        found.dedup();
        found
    }

    /// Lets samples flow, or stops them; what the rings hold stays.
    pub fn switch(&self, on: bool) -> io::Result<()> {
        self.rings
            .iter()
            .flat_map(|(_, ring)| &ring.events)
            .try_for_each(|event| switch(event, on, 0))
    }

    /// Takes all samples out of the rings. Returns how many were lost for want of room.
    pub fn drain(&mut self, mut take: impl FnMut(Counted)) -> u64 {
        let of_one = |(event, ring): &mut (Event, Ring)| {
            ring.drain(|_, body| _ = sample(*event, body).map(&mut take))
        };
        self.rings.iter_mut().map(of_one).sum()
    }
}

fn rings_of(event: Event, period: u64) -> io::Result<Vec<Ring>> {
    let (kind, config) = event.kind_and_config();
    let mut attr = timed(attributes(
        kind,
        config,
        period,
        PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD,
    ));
    attr.set_disabled(1);
    attr.set_exclude_hv(1);
    attr.set_exclude_idle(1);
    online_cpus()?
        .into_iter()
        .map(|cpu| Ring::of_one(cpu, &attr, RING))
        .collect()
}

/// A sample: process and thread, time, period, in the kernel's order.
fn sample(event: Event, body: &[u8]) -> Option<Counted> {
    let mut words = Words(body);
    let ((pid, tid), time, count) = (words.who()?, words.next()?, words.next()?);
    Some(Counted {
        event,
        pid,
        tid,
        time,
        count,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;
    use crate::trace::each_sample;
    use perf_event_open_sys::bindings::{
        PERF_RECORD_LOST as RECORD_LOST, PERF_RECORD_SAMPLE as RECORD_SAMPLE,
    };

    fn recorded() -> Vec<u8> {
        let who = u64::from_ne_bytes([[7, 0, 0, 0], [8, 0, 0, 0]].concat().try_into().unwrap());
        [
            record(RECORD_SAMPLE, 0, &[who, 99, 1_000_003]),
            record(RECORD_LOST, 0, &[1, 5]),
            record(RECORD_SAMPLE, 0, &[who, 100]),
        ]
        .concat()
    }

    #[test]
    fn samples_have_thread_time_and_count_and_short_ones_are_none() {
        let mut seen = Vec::new();
        let lost = each_sample(&recorded(), |_, body| {
            seen.extend(sample(Event::Cycles, body))
        });
        assert_eq!(
            (lost, seen),
            (
                5,
                vec![Counted {
                    event: Event::Cycles,
                    pid: 7,
                    tid: 8,
                    time: 99,
                    count: 1_000_003
                }]
            )
        );
    }

    #[test]
    fn no_change_of_a_byte_makes_it_read_beyond_a_record() {
        let good = recorded();
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                let mut count = 0;
                each_sample(&bad, |_, body| {
                    count += usize::from(sample(Event::Cycles, body).is_some())
                });
                each_sample(&bad[..at], |_, body| _ = sample(Event::Cycles, body));
                assert!(count <= 3);
            }
        }
    }

    #[test]
    fn a_usual_counter_is_sampled_and_an_unknown_one_refused() {
        // Not the hardware's, but the way is the same.
        let mut sampler = match HardwareSampler::open(&[(Event::TaskClock, 1_000_000)]) {
            Ok(sampler) => sampler,
            Err(e) => {
                return fingerpost_testing::skipped(e);
            }
        };
        sampler.switch(true).unwrap();
        let (own, mut seen) = (std::process::id() as i32, 0);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while seen == 0 && std::time::Instant::now() < end {
            std::hint::black_box(
                (0..1_000_000u64).fold(1, |sum, n| std::hint::black_box(sum * 3 + n % 7) % 1_000),
            );
            sampler.drain(|c| seen += u64::from(c.pid == own) * c.count);
        }
        sampler.switch(false).unwrap();
        assert!(seen >= 1_000_000 && sampler.events() == [Event::TaskClock]);
    }
}
