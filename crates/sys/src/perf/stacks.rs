//! Samples of what runs on every CPU, with the kernel's call chain and a copy of the top of the user's stack, from
//! which it can be unwound without frame pointers. The kernel's own timer takes them: no hardware counter is needed.

use std::io;
use std::os::fd::OwnedFd;

use perf_event_open_sys::bindings;

use crate::trace::{Ring, Words, attributes, ioctl, online_cpus, switch, timed};

/// Entries of a call chain from here on are marks (`PERF_CONTEXT_…`), not addresses.
pub(super) const CONTEXT_MARKS: u64 = bindings::PERF_CONTEXT_MAX;

/// The registers that unwinding begins with, as `PERF_SAMPLE_REGS_USER` numbers them; the kernel writes them in the
/// order of their bits.
#[cfg(target_arch = "x86_64")]
mod registers {
    use super::bindings::{PERF_REG_X86_BP, PERF_REG_X86_IP, PERF_REG_X86_SP};
    pub const MASK: u64 = 1 << PERF_REG_X86_BP | 1 << PERF_REG_X86_SP | 1 << PERF_REG_X86_IP;
    pub const COUNT: usize = 3;
    pub fn named(r: [u64; COUNT]) -> super::Registers {
        super::Registers {
            frame: r[0],
            stack: r[1],
            instruction: r[2],
            link: 0,
        }
    }
}
#[cfg(target_arch = "aarch64")]
mod registers {
    use super::bindings::{
        PERF_REG_ARM64_LR, PERF_REG_ARM64_PC, PERF_REG_ARM64_SP, PERF_REG_ARM64_X29,
    };
    pub const MASK: u64 = 1 << PERF_REG_ARM64_X29
        | 1 << PERF_REG_ARM64_LR
        | 1 << PERF_REG_ARM64_SP
        | 1 << PERF_REG_ARM64_PC;
    pub const COUNT: usize = 4;
    pub fn named(r: [u64; COUNT]) -> super::Registers {
        super::Registers {
            frame: r[0],
            link: r[1],
            stack: r[2],
            instruction: r[3],
        }
    }
}

/// Bytes of the user's stack that are copied: frames further out are not seen. A record has at most 64 KiB.
pub const STACK_BYTES: u32 = 16 << 10;
/// The same where samples are many and taken while requests are followed.
pub const SHORT_STACK_BYTES: u32 = 8 << 10;
/// Bytes of all rings together, and of one at most.
const ALL_RINGS: usize = 64 << 20;
const RING: usize = 1 << 20;
const LEAST_RING: usize = 256 << 10;

/// User registers at the moment of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Instruction pointer.
    pub instruction: u64,
    /// Stack pointer.
    pub stack: u64,
    /// Frame pointer, where the code keeps one.
    pub frame: u64,
    /// Link register, where the processor has one.
    pub link: u64,
}

/// One sample.
#[derive(Clone, Debug, PartialEq)]
pub struct StackSample<'a> {
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// Nanoseconds on the monotonic clock.
    pub time: u64,
    /// The kernel's call chain, innermost first; empty where the CPU was in user code.
    pub kernel: Vec<u64>,
    /// The user's registers; nothing of a thread of the kernel's.
    pub user: Option<Registers>,
    /// The user's stack from the stack pointer on.
    pub stack: &'a [u8],
}

/// What makes a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "what is said of each says what its fields are")]
pub enum Trigger {
    /// So many times a second a CPU that is not idle, and no more than `most` times a second on all CPUs together.
    Timer { hertz: u64, most: u64 },
    /// One in so many times that a thread leaves its CPU, counted on each CPU: the stack is that of the thread that
    /// leaves.
    Leaving { one_in: u64 },
}

/// Samples every CPU.
pub struct StackSampler {
    rings: Vec<Ring>,
}

impl StackSampler {
    /// Opens it and begins to sample.
    ///
    /// # Errors
    /// What the kernel said: usually a lack of permission.
    pub fn begin(trigger: Trigger) -> io::Result<StackSampler> {
        let sampler = StackSampler::open(trigger, STACK_BYTES)?;
        sampler.switch(true)?;
        Ok(sampler)
    }

    /// Opens it, switched off, with so many bytes of each user's stack.
    ///
    /// # Errors
    /// What the kernel said: usually a lack of permission.
    pub fn open(trigger: Trigger, stack_bytes: u32) -> io::Result<StackSampler> {
        let cpus = online_cpus()?;
        let (config, period) = match trigger {
            Trigger::Timer { hertz, most } => (
                bindings::PERF_COUNT_SW_CPU_CLOCK,
                1_000_000_000 / hertz.min(most / cpus.len().max(1) as u64).max(1),
            ),
            Trigger::Leaving { one_in } => {
                (bindings::PERF_COUNT_SW_CONTEXT_SWITCHES, one_in.max(1))
            }
        };
        let sample = bindings::PERF_SAMPLE_TID
            | bindings::PERF_SAMPLE_TIME
            | bindings::PERF_SAMPLE_CALLCHAIN
            | bindings::PERF_SAMPLE_REGS_USER
            | bindings::PERF_SAMPLE_STACK_USER;
        let mut attr = timed(attributes(
            bindings::PERF_TYPE_SOFTWARE,
            config.into(),
            period,
            sample,
        ));
        attr.set_disabled(1);
        attr.set_exclude_hv(1);
        attr.set_exclude_idle(1);
        attr.set_exclude_callchain_user(1);
        attr.sample_regs_user = registers::MASK;
        attr.sample_stack_user = stack_bytes;
        let bytes = (ALL_RINGS / cpus.len().max(1)).clamp(LEAST_RING, RING);
        let rings = cpus
            .into_iter()
            .map(|cpu| Ring::of_one(cpu, &attr, bytes))
            .collect::<io::Result<Vec<_>>>()?;
        Ok(StackSampler { rings })
    }

    /// Lets samples flow, or stops them; what the rings hold stays.
    pub fn switch(&self, on: bool) -> io::Result<()> {
        self.each(|event| switch(event, on, 0))
    }

    /// Samples one in so many times from now on.
    pub fn one_in(&self, n: u64) -> io::Result<()> {
        let period = n.max(1);
        self.each(|event| {
            ioctl(
                event,
                bindings::PERIOD,
                std::ptr::from_ref(&period) as usize,
            )
        })
    }

    fn each(&self, ask: impl FnMut(&OwnedFd) -> io::Result<()>) -> io::Result<()> {
        self.rings
            .iter()
            .flat_map(|ring| &ring.events)
            .try_for_each(ask)
    }

    /// Takes all samples out of the rings. Returns how many were lost for want of room.
    pub fn drain(&mut self, mut take: impl FnMut(StackSample)) -> u64 {
        self.rings
            .iter_mut()
            .map(|ring| ring.drain(|_, body| _ = sample(body).map(&mut take)))
            .sum()
    }
}

/// A sample: process and thread, time, call chain, user registers, user stack, in the kernel's order.
fn sample(body: &[u8]) -> Option<StackSample<'_>> {
    let mut words = Words(body);
    let ((pid, tid), time) = (words.who()?, words.next()?);
    let entries = usize::try_from(words.next()?)
        .ok()
        .filter(|n| *n <= body.len() / 8)?;
    let chain: Vec<u64> = words.by_ref().take(entries).collect();
    let kernel = chain
        .into_iter()
        .filter(|address| *address < CONTEXT_MARKS)
        .collect();
    let abi = words.next()?;
    let user = if abi == 0 {
        None
    } else {
        let mut values = [0; registers::COUNT];
        for value in &mut values {
            *value = words.next()?;
        }
        Some(registers::named(values))
    };
    let size = usize::try_from(words.next()?).ok()?;
    let rest = words.0;
    // Of what was set aside for the copy the kernel filled the first `used` bytes.
    let used = if size == 0 {
        0
    } else {
        usize::try_from(Words(rest.get(size..)?).next()?).ok()?
    };
    let stack = rest.get(..used.min(size))?;
    Some(StackSample {
        pid,
        tid,
        time,
        kernel,
        user,
        stack,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;
    use crate::trace::each_sample;
    use bindings::{PERF_RECORD_LOST as RECORD_LOST, PERF_RECORD_SAMPLE as RECORD_SAMPLE};

    /// A sample of a thread in the kernel with two words of stack, of which one was filled.
    fn of_a_thread() -> Vec<u8> {
        let who = u64::from_ne_bytes([[7, 0, 0, 0], [8, 0, 0, 0]].concat().try_into().unwrap());
        let mut words = vec![who, 99, 3, -128i64 as u64, 0x00ff_ff10, 0x00ff_ff20, 2];
        words.extend((0..registers::COUNT as u64).map(|i| 0x100 + i));
        words.extend([16, 0xabcd, 0, 8]);
        record(RECORD_SAMPLE, 0, &words)
    }

    #[test]
    fn samples_are_taken_apart_and_lost_ones_counted() {
        let mut bytes = of_a_thread();
        bytes.extend(record(RECORD_LOST, 0, &[1, 7]));
        // A thread of the kernel has neither registers nor a stack.
        bytes.extend(record(RECORD_SAMPLE, 0, &[5, 100, 1, 0x00ff_ff30, 0, 0]));
        let mut seen = Vec::new();
        let told = |s: StackSample| (s.pid, s.tid, s.time, s.kernel, s.user, s.stack.len());
        let lost = each_sample(&bytes, |_, body| seen.extend(sample(body).map(told)));
        assert_eq!(lost, 7);
        assert_eq!(seen[0].3, [0x00ff_ff10, 0x00ff_ff20]);
        assert_eq!((seen[0].0, seen[0].1, seen[0].2, seen[0].5), (7, 8, 99, 8));
        assert!(seen[0].4.is_some());
        assert_eq!((seen[1].0, seen[1].4, seen[1].5), (5, None, 0));
    }

    #[test]
    fn no_change_of_a_byte_makes_it_read_beyond_a_record() {
        let good = of_a_thread();
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                each_sample(&bad, |_, body| {
                    assert!(sample(body).is_none_or(|s| s.stack.len() <= good.len()))
                });
                each_sample(&bad[..at], |_, body| _ = sample(body));
            }
        }
    }

    #[test]
    fn a_busy_thread_is_sampled_where_the_kernel_allows_it() {
        let mut sampler = match StackSampler::begin(Trigger::Timer {
            hertz: 1000,
            most: 100_000,
        }) {
            Ok(sampler) => sampler,
            Err(e) => {
                return fingerpost_testing::skipped(e);
            }
        };
        let (own, mut seen) = (std::process::id() as i32, 0);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while seen == 0 && std::time::Instant::now() < end {
            std::hint::black_box(
                (0..1_000_000u64).fold(1, |sum, n| std::hint::black_box(sum * 3 + n % 7) % 1_000),
            );
            sampler.drain(|s| {
                let with_a_stack =
                    s.user.is_some_and(|r| r.instruction > 0 && r.stack > 0) && !s.stack.is_empty();
                seen += u32::from(s.pid == own && with_a_stack);
            });
        }
        assert!(seen > 0);
    }

    #[test]
    fn a_thread_that_waits_is_sampled_as_it_leaves_its_cpu() {
        let sampler = StackSampler::open(Trigger::Leaving { one_in: 1 }, SHORT_STACK_BYTES)
            .and_then(|s| s.one_in(1).and_then(|()| s.switch(true)).map(|()| s));
        let mut sampler = match sampler {
            Ok(sampler) => sampler,
            Err(e) => {
                return fingerpost_testing::skipped(e);
            }
        };
        let (own, mut seen) = (std::process::id() as i32, 0);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while seen == 0 && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(1));
            sampler.drain(|s| {
                seen += u32::from(
                    s.pid == own && s.user.is_some_and(|r| r.stack > 0) && !s.kernel.is_empty(),
                )
            });
        }
        assert!(seen > 0);
        sampler.switch(false).unwrap();
    }
}
