//! Which functions have the CPU: samples of a service's threads with their stacks, taken by the kernel's timer while it
//! is watched, unwound and named when that is over.
//!
//! Nothing of the service is stopped for it. Files of its code, and the lists that it keeps of functions that it made
//! at run time, are foreign input: they are opened by a process that can be given up (`opener`), and read by one without
//! rights (`reader`), which unwinds the samples and finds the names, too (`naming`).

pub(crate) mod blocked;
mod code;
pub(crate) mod held;
mod helper;
mod image;
mod jit;
mod left;
mod maps;
#[cfg(test)]
mod mutated;
mod naming;
mod nearest;
pub(crate) mod of_requests;
mod opener;
mod reader;
mod unwind;
pub(crate) mod windows;
mod wire;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use fingerpost_record::stacks::{MOST_FUNCTIONS, MOST_STACKS, Stack, Stacks};
use fingerpost_sys::perf::stacks::{StackSample, StackSampler, Trigger};
use fingerpost_sys::sample;
use fingerpost_sys::trace::thread_cpu_seconds;

use crate::Limits;
use code::Code;
pub use helper::dispatch;
pub use left::Left;
use unwind::Timed;

/// Samples a second of a CPU that is not idle, not in step with timers of whole milliseconds; and of all CPUs together.
const HERTZ: u64 = 99;
const MOST_HERTZ: u64 = 2_000;
/// How often samples are taken over.
const EVERY: Duration = Duration::from_millis(200);
/// Bytes of stacks that are kept to be unwound.
const MOST_BYTES: usize = 48 << 20;

/// Samples of one kind, bounded.
#[derive(Default)]
struct Kept {
    samples: Vec<Timed>,
    bytes: usize,
    /// Of so many one is kept.
    one_in: u64,
    seen: u64,
}

impl Kept {
    /// Keeps a sample, and learns what code its process has. When so many bytes of stacks are full, every other sample
    /// is dropped, and half of what comes.
    fn add(&mut self, sample: Timed, most_bytes: usize, code: &mut Code) {
        sample
            .user
            .iter()
            .for_each(|r| code.learn(sample.pid, r.instruction));
        self.one_in = self.one_in.max(1);
        self.seen += 1;
        if !self.seen.is_multiple_of(self.one_in) {
            return;
        }
        self.bytes += sample.stack.len();
        self.samples.push(Timed {
            one_in: sample.one_in * self.one_in,
            ..sample
        });
        if self.bytes > most_bytes {
            self.one_in *= 2;
            let mut nth = 0;
            self.samples.retain_mut(|s| {
                nth += 1;
                s.one_in *= 2;
                nth % 2 == 0
            });
            self.bytes = self.samples.iter().map(|s| s.stack.len()).sum();
        }
    }
}

/// Takes over what was sampled of a service.
#[derive(Default)]
struct Taker {
    /// Its processes, and those that are not.
    ours: HashSet<i32>,
    others: HashSet<i32>,
    code: Code,
    /// Samples that the kernel could not deliver.
    lost: u64,
    /// CPU seconds that taking over took.
    spent: f64,
}

impl Taker {
    /// Takes over what came since the last time, as far as it is wanted; each sample is one of so many.
    fn take(
        &mut self,
        from: &mut StackSampler,
        one_in: u64,
        wanted: fn(&StackSample) -> bool,
        kept: &mut Kept,
        most_bytes: usize,
    ) {
        let before = thread_cpu_seconds();
        let mut new = Vec::new();
        self.lost += from.drain(|s: StackSample| {
            if wanted(&s) && is_ours(s.pid, &mut self.ours, &mut self.others) {
                let StackSample {
                    pid,
                    tid,
                    time,
                    kernel,
                    user,
                    stack,
                } = s;
                new.push(Timed {
                    pid,
                    tid,
                    time,
                    one_in,
                    kernel,
                    user,
                    stack: stack.to_vec(),
                });
            }
        });
        new.into_iter()
            .for_each(|sample| kept.add(sample, most_bytes, &mut self.code));
        self.code.turn();
        self.spent += thread_cpu_seconds() - before;
    }
}

/// Samples these processes, and what they make meanwhile, until `sleep` says that the end was asked for.
///
/// # Errors
/// Why samples cannot be had, in a sentence.
pub fn watch(
    servers: Vec<i32>,
    mut sleep: impl FnMut(Duration) -> bool,
) -> Result<Sampled, String> {
    let mut sampler = StackSampler::begin(Trigger::Timer {
        hertz: HERTZ,
        most: MOST_HERTZ,
    })
    .map_err(|e| format!("the kernel's timer may not sample here: {e}"))?;
    let (mut taker, mut kept) = (
        Taker {
            ours: servers.into_iter().collect(),
            ..Taker::default()
        },
        Kept::default(),
    );
    taker.code.begin();
    loop {
        let ends = sleep(EVERY);
        taker.take(&mut sampler, 1, |_| true, &mut kept, MOST_BYTES);
        if ends {
            break;
        }
    }
    let before = thread_cpu_seconds();
    taker.code.finish();
    taker.spent += thread_cpu_seconds() - before;
    Ok(Sampled { taker, kept })
}

/// Whether a process is the service's: known as such, or made by one that is.
fn is_ours(pid: i32, ours: &mut HashSet<i32>, others: &mut HashSet<i32>) -> bool {
    if pid <= 0 || others.contains(&pid) {
        return false;
    }
    if ours.contains(&pid) {
        return true;
    }
    let child = sample::process(pid).is_some_and(|stat| ours.contains(&stat.parent));
    let known = if child { ours } else { others };
    known.insert(pid);
    child
}

/// Samples that are still to be unwound.
pub struct Sampled {
    taker: Taker,
    kept: Kept,
}

impl Sampled {
    /// Unwinds and names all samples, within these limits, and adds up those with the same stack; nothing where the
    /// service had no CPU. What was left out for want of time, or because it must not be read.
    pub fn name(self, limits: Limits) -> (Option<Stacks>, Left) {
        let before = thread_cpu_seconds();
        let Sampled {
            taker: Taker {
                code, lost, spent, ..
            },
            kept: Kept { samples, seen, .. },
        } = self;
        let naming::Named {
            frames,
            names,
            left,
        } = naming::name(code, &samples.iter().collect::<Vec<_>>(), limits);
        let mut counts: HashMap<Vec<u32>, u64> = HashMap::new();
        frames
            .into_iter()
            .for_each(|frames| *counts.entry(frames).or_default() += 1);
        let Some(stacks) = folded(counts, &names) else {
            return (None, left);
        };
        let self_cost = spent + thread_cpu_seconds() - before;
        let source = format!(
            "the kernel's timer, at most {HERTZ} times a second and CPU; unwound by .eh_frame"
        );
        let stacks = Stacks {
            source,
            samples: seen,
            lost,
            self_cost,
            ..stacks
        };
        (Some(stacks), left)
    }
}

/// The most frequent stacks, and the names that they need.
fn folded(counts: HashMap<Vec<u32>, u64>, names: &[String]) -> Option<Stacks> {
    let mut all: Vec<(Vec<u32>, u64)> = counts
        .into_iter()
        .filter(|(frames, _)| !frames.is_empty())
        .collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let rest = all.split_off(all.len().min(MOST_STACKS));
    let mut stacks = Stacks {
        others: rest.iter().map(|s| s.1).sum(),
        ..Stacks::default()
    };
    let mut numbers: HashMap<u32, u32> = HashMap::new();
    for (frames, samples) in all {
        // A record holds so many functions and no more.
        let new = frames.iter().filter(|f| !numbers.contains_key(f)).count();
        if stacks.functions.len() + new > MOST_FUNCTIONS {
            stacks.others = stacks.others.saturating_add(samples);
            continue;
        }
        let mut number = |old: u32| {
            *numbers.entry(old).or_insert_with(|| {
                stacks.functions.push(names[old as usize].clone());
                stacks.functions.len() as u32 - 1
            })
        };
        let frames = frames.into_iter().map(&mut number).collect();
        stacks.stacks.push(Stack { frames, samples });
    }
    (!stacks.stacks.is_empty()).then_some(stacks)
}

#[cfg(test)]
mod tests;
