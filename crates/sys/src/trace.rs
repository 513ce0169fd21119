//! Tracepoints of every CPU through perf_event rings that can be switched on and off.

use std::fs;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::{self, perf_event_attr, perf_event_mmap_page};
use rustix::time::{ClockId, clock_gettime};

use crate::map::{Mapping, READ_WRITE};
use crate::procfs::parse_list;
use crate::system::{done, made, page_bytes};

// Places in the ring's first page.
const HEAD: usize = offset_of!(perf_event_mmap_page, data_head);
const TAIL: usize = offset_of!(perf_event_mmap_page, data_tail);
const DATA_OFFSET: usize = offset_of!(perf_event_mmap_page, data_offset);
const DATA_SIZE: usize = offset_of!(perf_event_mmap_page, data_size);

/// One sample as the ring gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Raw<'a> {
    /// CPU that it happened on.
    pub cpu: usize,
    /// Nanoseconds on the monotonic clock.
    pub time: u64,
    /// Process that was current.
    pub pid: i32,
    /// Thread that was current.
    pub tid: i32,
    /// The tracepoint's data, beginning with its id as two bytes.
    pub data: &'a [u8],
}

impl Raw<'_> {
    /// The tracepoint's id.
    pub fn id(&self) -> u32 {
        self.data
            .get(..2)
            .map_or(0, |b| u32::from(u16::from_ne_bytes([b[0], b[1]])))
    }
}

/// A tracepoint that is to be opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its number in tracefs.
    pub id: u32,
    /// Which of its events are wanted, in the kernel's filter language (`common_pid != 42`); all of them without.
    pub filter: Option<String>,
}

/// The most bytes that one record may take: no tracepoint's data are longer than some hundred bytes.
const RECORD_BYTES: u64 = 512;

/// One CPU's ring: the events that write into it, and its mapping.
pub(crate) struct Ring {
    cpu: usize,
    map: Mapping,
    pub(crate) events: Vec<OwnedFd>,
    scratch: Vec<u8>,
}

/// Tracepoints of all CPUs, written into one ring per CPU.
pub struct Rings {
    rings: Vec<Ring>,
}

impl Rings {
    /// Opens these tracepoints on every online CPU, switched off. `bytes` is the size of one CPU's ring, rounded up to
    /// a power of two.
    ///
    /// # Errors
    /// What `perf_event_open` or `mmap` said: usually a lack of permission.
    pub fn open(points: &[Point], bytes: usize) -> io::Result<Rings> {
        let rings = online_cpus()?
            .into_iter()
            .map(|cpu| Ring::open(cpu, points, bytes))
            .collect::<io::Result<_>>()?;
        Ok(Rings { rings })
    }

    /// Lets events flow, or stops them; what the rings hold stays.
    pub fn switch(&self, on: bool) -> io::Result<()> {
        // Each CPU is asked once: its other events follow the first one, which leads their group.
        self.rings
            .iter()
            .filter_map(|r| r.events.first())
            .try_for_each(|event| switch(event, on, 0))
    }

    /// CPUs that have a ring.
    pub fn cpus(&self) -> usize {
        self.rings.len()
    }

    /// The share, 0 to 1, of the fullest ring that waits to be drained. A ring that has become full drops what comes,
    /// and says so only when there is room again.
    pub fn fullness(&self) -> f64 {
        self.rings.iter().map(Ring::fullness).fold(0.0, f64::max)
    }

    /// Bytes that wait to be drained, in all rings.
    pub fn waiting(&self) -> usize {
        self.rings.iter().map(|r| r.waiting() as usize).sum()
    }

    /// Whether a ring has no room for another record, so that something may have been lost of which no record could
    /// tell.
    pub fn full(&self) -> bool {
        self.rings
            .iter()
            .any(|r| r.word(DATA_SIZE).saturating_sub(r.waiting()) < RECORD_BYTES)
    }

    /// Takes everything out of the rings, in order per CPU but not between CPUs. Returns the number of events that were
    /// lost.
    pub fn drain(&mut self, mut take: impl FnMut(Raw)) -> u64 {
        let with_cpu = self.rings.iter_mut().map(|r| (r.cpu, r));
        with_cpu
            .map(|(cpu, r)| r.drain(|_, body| _ = sample(cpu, body).map(&mut take)))
            .sum()
    }
}

impl Ring {
    /// A ring of one event of this CPU. `bytes` is its size, rounded up to a power of two pages.
    pub(crate) fn of_one(cpu: usize, attr: &perf_event_attr, bytes: usize) -> io::Result<Ring> {
        Ring::of_event(perf_event_open(attr, ANY, cpu as i32, ANY)?, cpu, bytes)
    }

    /// A ring of this event, which may be of one thread on whatever CPU.
    pub(crate) fn of_event(event: OwnedFd, cpu: usize, bytes: usize) -> io::Result<Ring> {
        // A page of the kernel's numbers, then the ring itself.
        let page = page_bytes() as usize;
        let length = page + bytes.max(page).next_power_of_two();
        let map = Mapping::new(Some(event.as_fd()), length, READ_WRITE, libc::MAP_SHARED, 0)?;
        Ok(Ring {
            cpu,
            map,
            events: vec![event],
            scratch: Vec::new(),
        })
    }

    fn open(cpu: usize, points: &[Point], bytes: usize) -> io::Result<Ring> {
        let (first, others) = points.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut ring = Ring::of_event(open_event(first, cpu, None)?, cpu, bytes)?;
        for point in others {
            let event = open_event(point, cpu, ring.events.first())?;
            ioctl(
                &event,
                bindings::SET_OUTPUT,
                ring.events[0].as_raw_fd() as usize,
            )?;
            ring.events.push(event);
        }
        Ok(ring)
    }

    fn word(&self, at: usize) -> u64 {
        // SAFETY: the places are within the first page of the mapping, aligned, and the kernel writes them as 64-bit
        // words.
        unsafe { (*self.map.start.add(at).cast::<AtomicU64>()).load(Ordering::Acquire) }
    }

    fn fullness(&self) -> f64 {
        self.waiting() as f64 / self.word(DATA_SIZE).max(1) as f64
    }

    /// Bytes that wait to be drained.
    fn waiting(&self) -> u64 {
        self.word(HEAD).wrapping_sub(self.word(TAIL))
    }

    /// Takes what waits in the ring, gives its room back to the kernel, and hands over each sample's flags and body.
    /// Returns how many records the kernel says it lost.
    pub(crate) fn drain(&mut self, take: impl FnMut(u16, &[u8])) -> u64 {
        let (offset, size) = (
            self.word(DATA_OFFSET) as usize,
            self.word(DATA_SIZE) as usize,
        );
        let (head, tail) = (self.word(HEAD), self.word(TAIL));
        let filled = (head.wrapping_sub(tail) as usize).min(size);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        if size > 0 && offset + size <= self.map.length {
            let start = tail as usize % size;
            let first = filled.min(size - start);
            for (from, n) in [(start, first), (0, filled - first)] {
                // SAFETY: from + n ≤ size and offset + size ≤ the mapping's length; the kernel does not write between
                // tail and head.
                scratch.extend_from_slice(unsafe {
                    std::slice::from_raw_parts(self.map.start.add(offset + from), n)
                });
            }
        }
        // SAFETY: as in `word`; storing the tail gives the bytes, which were copied, back to the kernel.
        unsafe { (*self.map.start.add(TAIL).cast::<AtomicU64>()).store(head, Ordering::Release) };
        let lost = each_sample(&scratch, take);
        self.scratch = scratch;
        lost
    }
}

/// A tracepoint's sample: process and thread, time, its data, in the kernel's order.
fn sample(cpu: usize, body: &[u8]) -> Option<Raw<'_>> {
    let mut words = Words(body);
    let ((pid, tid), time) = (words.who()?, words.next()?);
    let (length, data) = words.0.split_first_chunk()?;
    Some(Raw {
        cpu,
        time,
        pid,
        tid,
        data: data.get(..u32::from_ne_bytes(*length) as usize)?,
    })
}

/// Walks the samples of a drained ring: each one's flags and body. Returns how many records the kernel says it lost.
pub(crate) fn each_sample(mut bytes: &[u8], mut take: impl FnMut(u16, &[u8])) -> u64 {
    let mut lost = 0;
    while let Some((kind, flags, size)) = header(bytes) {
        let (record, rest) = bytes.split_at(size);
        bytes = rest;
        match kind {
            bindings::PERF_RECORD_LOST => lost += Words(&record[8..]).nth(1).unwrap_or(0),
            bindings::PERF_RECORD_SAMPLE => take(flags, &record[8..]),
            _ => {}
        }
    }
    lost
}

/// Kind, flags and length of the record at the beginning, where a whole one is there.
fn header(bytes: &[u8]) -> Option<(u32, u16, usize)> {
    let kind = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
    let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let size = usize::from(half(6)?);
    (8..=bytes.len())
        .contains(&size)
        .then_some((kind, half(4)?, size))
}

/// The body of a record, word by word.
pub(crate) struct Words<'a>(pub(crate) &'a [u8]);

impl Words<'_> {
    /// The next word as process and thread.
    pub(crate) fn who(&mut self) -> Option<(i32, i32)> {
        let word = self.next()?.to_ne_bytes();
        let number = |at: usize| i32::from_ne_bytes(std::array::from_fn(|i| word[at + i]));
        Some((number(0), number(4)))
    }
}

impl Iterator for Words<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }
}

/// Opens an event of one CPU. The first of a CPU leads the others' group and is switched off: none of them flows until
/// it does.
fn open_event(point: &Point, cpu: usize, leader: Option<&OwnedFd>) -> io::Result<OwnedFd> {
    let sample = bindings::PERF_SAMPLE_TID | bindings::PERF_SAMPLE_TIME | bindings::PERF_SAMPLE_RAW;
    let mut attr = timed(attributes(
        bindings::PERF_TYPE_TRACEPOINT,
        point.id.into(),
        1,
        sample,
    ));
    attr.set_disabled(leader.is_none().into());
    let event = perf_event_open(
        &attr,
        ANY,
        cpu as i32,
        leader.map_or(ANY, AsRawFd::as_raw_fd),
    )?;
    if let Some(filter) = &point.filter {
        let text = std::ffi::CString::new(filter.as_str())?;
        ioctl(&event, bindings::SET_FILTER, text.as_ptr() as usize)?;
    }
    Ok(event)
}

/// Whatever thread or CPU, or no group.
pub(crate) const ANY: libc::c_int = -1;

/// What the kernel is told of an event: its kind, what of it, after how many a sample is taken (0 for none), and what
/// is in one.
pub(crate) fn attributes(
    kind: u32,
    config: u64,
    sample_period: u64,
    sample: u32,
) -> perf_event_attr {
    // The structure as of version 5, which every kernel since 4.1 takes.
    let size = bindings::PERF_ATTR_SIZE_VER5;
    let mut attr = perf_event_attr {
        type_: kind,
        size,
        config,
        sample_type: sample.into(),
        ..Default::default()
    };
    attr.sample_period = sample_period;
    attr
}

/// The same with times on the monotonic clock.
pub(crate) fn timed(mut attr: perf_event_attr) -> perf_event_attr {
    attr.set_use_clockid(1);
    attr.clockid = libc::CLOCK_MONOTONIC;
    attr
}

/// Opens an event of a thread (0 is the calling one) on a CPU, in the group of this leader.
pub(crate) fn perf_event_open(
    attr: &perf_event_attr,
    thread: i32,
    cpu: i32,
    leader: i32,
) -> io::Result<OwnedFd> {
    // The kernel writes the size that it expects into what it does not take.
    let (mut attr, flags) = (*attr, bindings::PERF_FLAG_FD_CLOEXEC.into());
    // SAFETY: the attr is initialised and outlives the call; the rest are plain numbers. The kernel makes a new
    // descriptor.
    unsafe {
        made(perf_event_open_sys::perf_event_open(
            &mut attr, thread, cpu, leader, flags,
        ))
    }
}

/// One of the requests that the bindings name, whose own functions take the period by value where the kernel reads it
/// from a pointer.
pub(crate) fn ioctl(event: &impl AsRawFd, request: u32, argument: usize) -> io::Result<()> {
    // SAFETY: the descriptor is open; the argument is a number, a descriptor, or a string that outlives the call, as
    // the request wants.
    done(unsafe { libc::ioctl(event.as_raw_fd(), request as libc::Ioctl, argument) }).map(drop)
}

/// Lets an event flow, or stops it.
pub(crate) fn switch(event: &impl AsRawFd, on: bool, argument: usize) -> io::Result<()> {
    ioctl(
        event,
        if on {
            bindings::ENABLE
        } else {
            bindings::DISABLE
        },
        argument,
    )
}

/// How many CPUs there may be: a map that has a value for each CPU has so many.
pub(crate) fn possible_cpus() -> io::Result<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = parse_list(&text).and_then(|cpus| cpus.into_iter().max());
    last.map(|last| last + 1)
        .ok_or_else(|| io::Error::other("the kernel does not say which CPUs there may be"))
}

/// The CPUs that are online.
pub fn online_cpus() -> io::Result<Vec<usize>> {
    Ok(parse_list(&fs::read_to_string("/sys/devices/system/cpu/online")?).unwrap_or_default())
}

/// CPU seconds, user and system, that the calling thread has used: what an observer reports as its own cost.
pub fn thread_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Nanoseconds on the monotonic clock, on which samples are stamped.
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindings::{PERF_RECORD_LOST, PERF_RECORD_SAMPLE};

    fn sample(time: u64, tid: u32, data: &[u8]) -> Vec<u8> {
        let size = (28 + data.len()).next_multiple_of(8);
        let mut r = Vec::new();
        r.extend(PERF_RECORD_SAMPLE.to_ne_bytes());
        r.extend(0u16.to_ne_bytes());
        r.extend((size as u16).to_ne_bytes());
        r.extend(tid.to_ne_bytes());
        r.extend(tid.to_ne_bytes());
        r.extend(time.to_ne_bytes());
        r.extend((data.len() as u32).to_ne_bytes());
        r.extend(data);
        r.resize(size, 0);
        r
    }

    #[test]
    fn records_are_walked_lost_ones_counted_and_a_torn_end_ignored() {
        let mut bytes = sample(7, 42, &[5, 0, 1, 2]);
        let mut lost = Vec::new();
        lost.extend(PERF_RECORD_LOST.to_ne_bytes());
        lost.extend(0u16.to_ne_bytes());
        lost.extend(24u16.to_ne_bytes());
        lost.extend(1u64.to_ne_bytes());
        lost.extend(9u64.to_ne_bytes());
        bytes.extend(lost);
        bytes.extend(sample(8, 43, &[6, 0]));
        bytes.extend(&sample(9, 44, &[6, 0])[..20]);
        let mut seen = Vec::new();
        let told = |r: Raw| (r.cpu, r.time, r.tid, r.id());
        assert_eq!(
            each_sample(&bytes, |_, body| seen
                .extend(super::sample(1, body).map(told))),
            9
        );
        assert_eq!(seen, [(1, 7, 42, 5), (1, 8, 43, 6)]);
    }

    #[test]
    fn a_record_of_no_size_or_a_lying_one_ends_the_walk() {
        let mut n = 0;
        each_sample(&[0; 64], |_, _| n += 1);
        let mut lying = sample(7, 42, &[5, 0]);
        lying[24..28].copy_from_slice(&u32::MAX.to_ne_bytes());
        each_sample(&lying, |_, body| {
            n += usize::from(super::sample(0, body).is_some())
        });
        assert_eq!(n, 0);
    }

    #[test]
    fn the_attributes_have_the_size_that_the_kernel_expects() {
        let attr = attributes(0, 0, 0, 0);
        assert_eq!(
            (attr.size, offset_of!(perf_event_attr, aux_sample_size)),
            (112, 112),
            "what came after version 5"
        );
    }
}
