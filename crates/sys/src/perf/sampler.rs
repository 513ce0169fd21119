//! Samples of where the CPU is, by the kernel's own timer: they need no hardware counter.

use std::io;

use perf_event_open_sys::bindings;

use super::refusal::Refusal;
use super::stacks::CONTEXT_MARKS;
use crate::trace::{ANY, Ring, Words, attributes, perf_event_open, switch};

/// The ring's size: what a user without privileges may lock by default is a little above.
const RING_BYTES: usize = 256 << 10;

/// One sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// Whether the CPU was in the kernel.
    pub kernel: bool,
    /// Where it was.
    pub ip: u64,
    /// The kernel's call chain as raw 64-bit words, marks included.
    words: &'a [u8],
}

impl Sample<'_> {
    /// The addresses of the kernel's call chain, innermost first. The interrupted address itself where there is no
    /// chain.
    pub fn chain(&self) -> Vec<u64> {
        let chain: Vec<u64> = Words(self.words).filter(|a| *a < CONTEXT_MARKS).collect();
        if chain.is_empty() {
            vec![self.ip]
        } else {
            chain
        }
    }
}

/// Samples the calling thread, wherever it runs.
pub struct Sampler {
    ring: Ring,
}

impl Sampler {
    /// Opens the sampler, switched off, with one sample per `period_ns` of CPU time.
    pub fn of_this_thread(period_ns: u64) -> Result<Sampler, Refusal> {
        let (kind, config) = (
            bindings::PERF_TYPE_SOFTWARE,
            bindings::PERF_COUNT_SW_CPU_CLOCK.into(),
        );
        let sample = bindings::PERF_SAMPLE_IP | bindings::PERF_SAMPLE_CALLCHAIN;
        let mut attr = attributes(kind, config, period_ns, sample);
        attr.set_disabled(1);
        attr.set_exclude_hv(1);
        attr.set_exclude_callchain_user(1);
        let ring = perf_event_open(&attr, 0, ANY, ANY)
            .and_then(|event| Ring::of_event(event, 0, RING_BYTES));
        ring.map(|ring| Sampler { ring })
            .map_err(|error| Refusal::of(&error, true))
    }

    /// Starts sampling, or stops it; what the ring holds stays.
    pub fn switch(&self, on: bool) -> io::Result<()> {
        switch(&self.ring.events[0], on, 0)
    }

    /// Takes all samples out of the ring, in order. Returns how many were lost for want of room.
    pub fn drain(&mut self, mut take: impl FnMut(Sample)) -> u64 {
        self.ring
            .drain(|flags, body| _ = sample(flags, body).map(&mut take))
    }
}

/// A sample: where the CPU was, and the call chain, in the kernel's order.
fn sample(flags: u16, body: &[u8]) -> Option<Sample<'_>> {
    let mut words = Words(body);
    let (ip, entries) = (words.next()?, words.next()?);
    let words = words
        .0
        .get(..usize::try_from(entries).ok()?.checked_mul(8)?)?;
    let mode = u32::from(flags) & bindings::PERF_RECORD_MISC_CPUMODE_MASK;
    Some(Sample {
        kernel: mode == bindings::PERF_RECORD_MISC_KERNEL,
        ip,
        words,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;
    use crate::trace::each_sample;
    use bindings::{PERF_RECORD_LOST as RECORD_LOST, PERF_RECORD_SAMPLE as RECORD_SAMPLE};

    #[test]
    fn records_are_walked_and_marks_are_no_addresses() {
        let kernel_mark = -128i64 as u64;
        let mut bytes = record(
            RECORD_SAMPLE,
            1,
            &[0xffff10, 3, kernel_mark, 0xffff10, 0xffff20],
        );
        bytes.extend(record(RECORD_LOST, 0, &[1, 7]));
        bytes.extend(record(RECORD_SAMPLE, 2, &[0x4000, 0]));
        // A chain that says it is longer than its record is left out.
        bytes.extend(record(RECORD_SAMPLE, 1, &[0xffff10, u64::MAX / 4]));
        bytes.extend(&record(RECORD_SAMPLE, 1, &[1, 0])[..12]);
        let mut seen = Vec::new();
        let lost = each_sample(&bytes, |flags, body| {
            seen.extend(sample(flags, body).map(|s| (s.kernel, s.chain())))
        });
        assert_eq!(lost, 7);
        assert_eq!(
            seen,
            [(true, vec![0xffff10, 0xffff20]), (false, vec![0x4000])]
        );
    }

    #[test]
    fn a_busy_thread_is_sampled_where_the_kernel_allows_it() {
        let Some(mut sampler) = fingerpost_testing::had(Sampler::of_this_thread(100_000)) else {
            return;
        };
        sampler.switch(true).unwrap();
        let (before, mut sum) = (crate::system::own_cpu_time(), 0u64);
        while crate::system::own_cpu_time() < before + std::time::Duration::from_millis(20) {
            sum = (0..1000u64).fold(sum, |sum, n| std::hint::black_box(sum * 3 + n) % 1_000_003);
        }
        sampler.switch(false).unwrap();
        let (mut count, mut kernel) = (0, 0);
        sampler.drain(|s| {
            count += 1;
            kernel += usize::from(s.kernel && !s.chain().is_empty());
        });
        assert!(count > 10, "{count} samples");
        assert!(kernel <= count);
    }
}
