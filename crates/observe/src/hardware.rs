//! Hardware counters while windows of events are open: instructions, cycles, cache and TLB misses, by side and by class
//! of requests.

use std::collections::HashMap;

use fingerpost_sys::perf::Event;
use fingerpost_sys::perf::hardware::{Counted, HardwareSampler, SAMPLED};

use crate::follow::Side;
use crate::machine::Totals;
use crate::stacks::held::Holds;

/// Samples that are kept: some seconds of windows on a machine of many CPUs.
const MOST: usize = 200_000;

/// Samples counters while windows are open.
pub struct Counters {
    sampler: HardwareSampler,
    kept: Vec<Counted>,
}

impl Counters {
    /// Opens what the CPU has, switched off.
    ///
    /// # Errors
    /// Why there is none, in a sentence.
    pub fn open() -> Result<Counters, String> {
        let sampler = HardwareSampler::open(&SAMPLED).map_err(|refusal| refusal.to_string())?;
        Ok(Counters {
            sampler,
            kept: Vec::new(),
        })
    }

    /// A window opens. Where the kernel refuses, nothing is counted in it.
    pub fn begin(&self) {
        let _ = self.sampler.switch(true);
    }

    pub fn end(&mut self) {
        let _ = self.sampler.switch(false);
        self.drain();
    }

    /// Takes over what was sampled, as far as it can be kept.
    pub fn drain(&mut self) {
        let kept = &mut self.kept;
        self.sampler.drain(|c| {
            if kept.len() < MOST {
                kept.push(c);
            }
        });
    }

    pub fn finish(self) -> Recorded {
        Recorded {
            events: self.sampler.events(),
            samples: self.kept,
        }
    }
}

/// What was counted, sample by sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The events that the CPU has.
    pub events: Vec<Event>,
    pub samples: Vec<Counted>,
}

impl Recorded {
    /// How it was had, in words.
    pub fn source(&self) -> String {
        let names: Vec<&str> = self.events.iter().map(|e| name(*e)).collect();
        format!(
            "hardware counters, sampled while events were taken: {}",
            names.join(", ")
        )
    }

    /// Counts by side, of threads that had a request, and of those that had one of the slowest: `hardware.EVENT.WHOSE`.
    pub fn totals(&self, whose: impl Fn(i32) -> Side, all: &Holds, slow: &Holds) -> Totals {
        let mut found: HashMap<String, u64> = HashMap::new();
        // An event that the CPU has and that did not happen is zero; one that it lacks is not known.
        for event in &self.events {
            for class in ["server", "client", "other", "requests", "slow"] {
                found.insert(format!("hardware.{}.{class}", name(*event)), 0);
            }
        }
        for c in &self.samples {
            let mut add = |class: &str| {
                *found
                    .entry(format!("hardware.{}.{class}", name(c.event)))
                    .or_default() += c.count
            };
            match whose(c.pid) {
                Side::Server => {
                    add("server");
                    all.has(c.tid, c.time).then(|| add("requests"));
                    slow.has(c.tid, c.time).then(|| add("slow"));
                }
                Side::Client => add("client"),
                Side::Other => add("other"),
            }
        }
        found
            .into_iter()
            .map(|(name, count)| (name, count as f64))
            .collect()
    }
}

fn name(event: Event) -> &'static str {
    match event {
        Event::Cycles => "cycles",
        Event::Instructions => "instructions",
        Event::CacheMisses => "cache_misses",
        Event::DataTlbMisses => "dtlb_misses",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::held::Held;

    /// A recording: event, process, thread, time and count a line. Process 10 is the service, 20 its client.
    const RECORDING: &str = "\
        cycles 10 11 100 1000\n\
        instructions 10 11 110 2000\n\
        cycles 10 11 150 1000\n\
        cycles 10 12 150 1000\n\
        cache_misses 10 11 160 50\n\
        instructions 20 20 120 700\n\
        cycles 30 30 130 900\n";

    fn recorded() -> Recorded {
        let samples: Vec<Counted> = RECORDING
            .lines()
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let event = SAMPLED
                    .into_iter()
                    .map(|s| s.0)
                    .find(|e| name(*e) == words[0])
                    .unwrap();
                let number = |n: usize| words[n].parse::<u64>().unwrap();
                Counted {
                    event,
                    pid: number(1) as i32,
                    tid: number(2) as i32,
                    time: number(3),
                    count: number(4),
                }
            })
            .collect();
        let events = vec![Event::Cycles, Event::Instructions, Event::CacheMisses];
        Recorded { events, samples }
    }

    #[test]
    fn recorded_events_are_summed_by_side_and_class() {
        let held = |from, to, latency| Held {
            tid: 11,
            from,
            to,
            latency,
        };
        let held = [held(90, 120, 30), held(140, 170, 900)];
        let whose = |pid| match pid {
            10 => Side::Server,
            20 => Side::Client,
            _ => Side::Other,
        };
        let totals = recorded().totals(whose, &Holds::of(&held, 0), &Holds::of(&held, 500));
        let told = |name: &str| totals.get(&format!("hardware.{name}")).copied();
        assert_eq!(
            (
                told("cycles.server"),
                told("cycles.requests"),
                told("cycles.slow")
            ),
            (Some(3000.0), Some(2000.0), Some(1000.0))
        );
        assert_eq!(
            (told("instructions.requests"), told("instructions.slow")),
            (Some(2000.0), Some(0.0))
        );
        assert_eq!(
            (
                told("instructions.client"),
                told("cycles.other"),
                told("cache_misses.slow")
            ),
            (Some(700.0), Some(900.0), Some(50.0))
        );
        assert_eq!(
            told("dtlb_misses.server"),
            None,
            "a counter that the CPU lacks is not known"
        );
        assert!(
            recorded()
                .source()
                .ends_with("cycles, instructions, cache_misses")
        );
    }
}
