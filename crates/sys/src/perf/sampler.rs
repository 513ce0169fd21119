//! Samples of where the CPU is, by the kernel's own timer: they need no hardware counter.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::refusal::{Circumstances, Refusal};
use super::{Attributes, FLAG_DISABLED, FLAG_EXCLUDE_HYPERVISOR, IOC_DISABLE, IOC_ENABLE, OPEN_CLOEXEC, TYPE_SOFTWARE};
use crate::procfs::Paths;
use crate::system::page_bytes;

// Numbers of linux/perf_event.h.
const CONFIG_CPU_CLOCK: u64 = 0;
const SAMPLE_IP: u64 = 1 << 0;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const FLAG_EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
const CPUMODE_MASK: u16 = 7;
const CPUMODE_KERNEL: u16 = 1;
/// Entries of a call chain from here on are marks (`PERF_CONTEXT_…`), not addresses.
const CONTEXT_MARKS: u64 = -4095i64 as u64;
/// Places of `data_head`, `data_tail`, `data_offset` and `data_size` in the ring's first page.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
const DATA_OFFSET: usize = 1040;
const DATA_SIZE: usize = 1048;

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
    /// The addresses of the kernel's call chain, innermost first. The interrupted address itself where there is no chain.
    pub fn chain(&self) -> Vec<u64> {
        let addresses = self.words.chunks_exact(8).filter_map(|w| Some(u64::from_ne_bytes(w.try_into().ok()?)));
        let chain: Vec<u64> = addresses.filter(|a| *a < CONTEXT_MARKS).collect();
        if chain.is_empty() { vec![self.ip] } else { chain }
    }
}

/// Samples the calling thread, wherever it runs.
#[derive(Debug)]
pub struct Sampler {
    event: File,
    map: *mut u8,
    length: usize,
}

impl Sampler {
    /// Opens the sampler, switched off, with one sample per `period_ns` of CPU time.
    pub fn of_this_thread(period_ns: u64) -> Result<Sampler, Refusal> {
        Self::try_open(period_ns)
            .map_err(|error| Refusal::explain(error.raw_os_error().unwrap_or(0), true, &Circumstances::read(&Paths::system())))
    }

    fn try_open(period_ns: u64) -> io::Result<Sampler> {
        let attributes = Attributes {
            kind: TYPE_SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: CONFIG_CPU_CLOCK,
            sample_period: period_ns,
            sample_type: SAMPLE_IP | SAMPLE_CALLCHAIN,
            flags: FLAG_DISABLED | FLAG_EXCLUDE_HYPERVISOR | FLAG_EXCLUDE_CALLCHAIN_USER,
            ..Default::default()
        };
        let (this_thread, any_cpu, no_group): (libc::c_int, libc::c_int, libc::c_int) = (0, -1, -1);
        // SAFETY: the attributes live through the call and say their own size; the other arguments are numbers.
        let descriptor = unsafe { libc::syscall(libc::SYS_perf_event_open, &attributes, this_thread, any_cpu, no_group, OPEN_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave us this descriptor, and nobody else owns it.
        let event = unsafe { File::from_raw_fd(descriptor as i32) };
        let length = page_bytes() as usize + RING_BYTES;
        // SAFETY: a new shared mapping of the event, at an address of the kernel's choice.
        let map =
            unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, event.as_raw_fd(), 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Sampler { event, map: map.cast(), length })
    }

    /// Starts sampling.
    pub fn enable(&self) -> io::Result<()> {
        self.control(IOC_ENABLE)
    }

    /// Stops sampling; what the ring holds stays.
    pub fn disable(&self) -> io::Result<()> {
        self.control(IOC_DISABLE)
    }

    fn control(&self, request: libc::c_ulong) -> io::Result<()> {
        // SAFETY: the descriptor is ours and open; these requests take a flag, not a pointer.
        let rc = unsafe { libc::ioctl(self.event.as_raw_fd(), request as _, 0) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn word(&self, at: usize) -> u64 {
        // SAFETY: the places are within the first page of the mapping, aligned, and the kernel writes them as 64-bit words.
        unsafe { (*self.map.add(at).cast::<AtomicU64>()).load(Ordering::Acquire) }
    }

    /// Takes all samples out of the ring, in order. Returns how many were lost for want of room.
    pub fn drain(&mut self, mut take: impl FnMut(Sample)) -> u64 {
        let (offset, size) = (self.word(DATA_OFFSET) as usize, self.word(DATA_SIZE) as usize);
        let (head, tail) = (self.word(HEAD), self.word(TAIL));
        let filled = (head.wrapping_sub(tail) as usize).min(size);
        let mut bytes = Vec::with_capacity(filled);
        if size > 0 && offset + size <= self.length {
            let start = tail as usize % size;
            let first = filled.min(size - start);
            for (from, n) in [(start, first), (0, filled - first)] {
                // SAFETY: from + n ≤ size and offset + size ≤ the mapping's length; the kernel does not write between tail and head.
                bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(self.map.add(offset + from), n) });
            }
        }
        // SAFETY: as in `word`; storing the tail gives the bytes, which were copied, back to the kernel.
        unsafe { (*self.map.add(TAIL).cast::<AtomicU64>()).store(head, Ordering::Release) };
        each_record(&bytes, &mut take)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // SAFETY: map and length are what mmap returned and was given; nothing refers to the mapping any more.
        unsafe { libc::munmap(self.map.cast(), self.length) };
    }
}

/// Walks the records of a drained ring. Returns the samples that the kernel says it lost.
fn each_record(mut bytes: &[u8], take: &mut impl FnMut(Sample)) -> u64 {
    let u64_at = |b: &[u8], at: usize| b.get(at..at + 8).and_then(|x| x.try_into().ok()).map(u64::from_ne_bytes);
    let mut lost = 0;
    while bytes.len() >= 8 {
        let kind = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let misc = u16::from_ne_bytes([bytes[4], bytes[5]]);
        let size = usize::from(u16::from_ne_bytes([bytes[6], bytes[7]]));
        if size < 8 || size > bytes.len() {
            break;
        }
        let record = &bytes[..size];
        bytes = &bytes[size..];
        match kind {
            RECORD_LOST => lost += u64_at(record, 16).unwrap_or(0),
            RECORD_SAMPLE => {
                let (Some(ip), Some(entries)) = (u64_at(record, 8), u64_at(record, 16)) else { continue };
                let words = usize::try_from(entries).ok().and_then(|n| record.get(24..24 + n.checked_mul(8)?));
                if let Some(words) = words {
                    take(Sample { kernel: misc & CPUMODE_MASK == CPUMODE_KERNEL, ip, words });
                }
            }
            _ => {}
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let mut r = Vec::new();
        r.extend(kind.to_ne_bytes());
        r.extend(misc.to_ne_bytes());
        r.extend((8 + 8 * words.len() as u16).to_ne_bytes());
        words.iter().for_each(|w| r.extend(w.to_ne_bytes()));
        r
    }

    #[test]
    fn records_are_walked_and_marks_are_no_addresses() {
        let kernel_mark = -128i64 as u64;
        let mut bytes = record(RECORD_SAMPLE, 1, &[0xffff10, 3, kernel_mark, 0xffff10, 0xffff20]);
        bytes.extend(record(RECORD_LOST, 0, &[1, 7]));
        bytes.extend(record(RECORD_SAMPLE, 2, &[0x4000, 0]));
        // A chain that says it is longer than its record is left out.
        bytes.extend(record(RECORD_SAMPLE, 1, &[0xffff10, u64::MAX / 4]));
        bytes.extend(&record(RECORD_SAMPLE, 1, &[1, 0])[..12]);
        let mut seen = Vec::new();
        assert_eq!(each_record(&bytes, &mut |s| seen.push((s.kernel, s.chain()))), 7);
        assert_eq!(seen, [(true, vec![0xffff10, 0xffff20]), (false, vec![0x4000])]);
    }

    #[test]
    fn a_busy_thread_is_sampled_where_the_kernel_allows_it() {
        let mut sampler = match Sampler::of_this_thread(100_000) {
            Ok(sampler) => sampler,
            Err(refusal) if std::env::var_os("CI").is_some_and(|v| v == "true") => panic!("{refusal}"),
            Err(refusal) => {
                eprintln!("skipped: {refusal}");
                return;
            }
        };
        sampler.enable().unwrap();
        let (before, mut sum) = (crate::system::own_cpu_time().unwrap(), 0u64);
        while crate::system::own_cpu_time().unwrap() < before + std::time::Duration::from_millis(20) {
            sum = (0..1000u64).fold(sum, |sum, n| std::hint::black_box(sum * 3 + n) % 1_000_003);
        }
        sampler.disable().unwrap();
        let (mut count, mut kernel) = (0, 0);
        sampler.drain(|s| {
            count += 1;
            kernel += usize::from(s.kernel && !s.chain().is_empty());
        });
        assert!(count > 10, "{count} samples");
        assert!(kernel <= count);
    }
}
