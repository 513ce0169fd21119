//! The load generators' own account of each round trip, in memory that they share with the process that conducts the
//! run.
//!
//! The conductor makes the memory, seals its size and hands the descriptor to each generator that it starts
//! ([`Stamps::give`]); a generator finds it by a variable of its environment ([`Writer::find`]). Nobody maps what
//! somebody else made. While the switch is off, a generator pays one relaxed load for a round trip.
//!
//! A generator may run as another user and is not trusted: the size cannot change under the reader, every access is
//! atomic, and the only number of the generators' that the reader counts with (how many were written) is bounded before
//! it is used.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::map::{Mapping, READ_WRITE};
use crate::system::done;

/// The variable that tells a generator its descriptor.
const VARIABLE: &str = "FINGERPOST_STAMPS";
/// Round trips that the memory holds, 16 MiB of which only what is written to is ever taken.
const CAPACITY: u64 = 1 << 19;
/// Places left free, so that threads that see the last one free at the same time do not overtake the reader.
const SLACK: u64 = 1 << 12;
/// How long the reader waits for a place that a thread has taken and not yet filled.
const UNFILLED: Duration = Duration::from_millis(5);
/// The seals of the descriptor: its size is for ever what it was made with.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// One round trip on a connection: a query and its answer, an HTTP request and its response; a transaction of an
/// embedded database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The thread of the generator.
    pub tid: i32,
    /// The connection's number within its generator process.
    pub connection: u32,
    /// When the request was about to be sent (or, with a connection a request, the connection to be made), in
    /// nanoseconds on the monotonic clock.
    pub start: u64,
    /// When the last byte of the answer had been read.
    pub end: u64,
}

/// What was written since it was last asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Round trips, about in the order of their ends.
    pub stamps: Vec<Stamp>,
    /// Round trips that were not kept because the memory was full, or whose account makes no sense.
    pub lost: u64,
}

/// The conductor's end. A clone is the same memory.
#[derive(Clone, Debug)]
pub struct Stamps {
    ring: Arc<Ring>,
    /// How many were read, and how many were known to be lost.
    read: Arc<Mutex<(u64, u64)>>,
}

impl Stamps {
    /// New memory, switched off.
    ///
    /// # Errors
    /// The kernel's, where it has no memory files.
    pub fn new() -> io::Result<Stamps> {
        Ok(Stamps {
            ring: Arc::new(Ring::map(sealed(total())?)?),
            read: Arc::default(),
        })
    }

    /// Has a process inherit the memory. Any number of processes may share it.
    pub fn give(&self, command: &mut Command) {
        let ring = Arc::clone(&self.ring);
        command.env(VARIABLE, ring.fd.as_raw_fd().to_string());
        // SAFETY: the closure runs between fork and exec and calls only fcntl, which is async-signal-safe; the
        // descriptor is held open by what the closure owns.
        unsafe {
            command.pre_exec(move || {
                done(libc::fcntl(ring.fd.as_raw_fd(), libc::F_SETFD, 0)).map(drop)
            });
        }
    }

    /// Switches stamping on or off in all generators. A round trip that is under way when the switch goes on may be
    /// left out or have its true beginning: sort by time.
    pub fn set(&self, on: bool) {
        self.ring
            .header()
            .on
            .store(u32::from(on), Ordering::Relaxed);
    }

    /// Generator processes that found the memory. None means that none ever will stamp: a command before the
    /// generator's own has closed its descriptors.
    pub fn writers(&self) -> u32 {
        self.ring.header().writers.load(Ordering::Relaxed)
    }

    /// Takes what was written since the last time.
    pub fn drain(&self) -> Drained {
        self.drain_by(Instant::now() + UNFILLED)
    }

    /// The same, waiting until then for places that are not filled yet.
    fn drain_by(&self, deadline: Instant) -> Drained {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let header = self.ring.header();
        let (head, dropped) = (
            header.head.load(Ordering::Acquire),
            header.dropped.load(Ordering::Relaxed),
        );
        let mut drained = Drained {
            lost: dropped.wrapping_sub(read.1),
            ..Drained::default()
        };
        let written = head.wrapping_sub(read.0);
        if written > CAPACITY {
            // No writer of ours goes so far.
            drained.lost = drained.lost.saturating_add(written);
        } else {
            for index in read.0..read.0 + written {
                match self.ring.read(index, deadline) {
                    Some(stamp) => drained.stamps.push(stamp),
                    None => drained.lost += 1,
                }
            }
        }
        *read = (head, dropped);
        header.tail.store(head, Ordering::Release);
        drained
    }
}

/// A generator's end. A clone is the same memory.
#[derive(Clone, Debug)]
pub struct Writer {
    ring: Arc<Ring>,
}

impl Writer {
    /// The memory that this process was given; nothing where it was not, or where the descriptor is something else by
    /// now.
    pub fn find() -> Option<Writer> {
        let fd: i32 = std::env::var(VARIABLE)
            .ok()?
            .parse()
            .ok()
            .filter(|fd| *fd > 2)?;
        // SAFETY: fcntl on a number only looks it up.
        if unsafe { libc::fcntl(fd, libc::F_GET_SEALS) } != SEALS.bits() as i32 {
            return None;
        }
        // SAFETY: the descriptor is open, as the call above has shown, and was inherited for this: nobody else in this
        // process knows it.
        let file = unsafe { File::from_raw_fd(fd) };
        if file.metadata().ok()?.len() != total() as u64 {
            return None;
        }
        let ring = Ring::map(file.into()).ok()?;
        ring.header().writers.fetch_add(1, Ordering::Relaxed);
        Some(Writer {
            ring: Arc::new(ring),
        })
    }

    /// The end of the calling thread. Clones of it must stay with this thread.
    pub fn of_thread(&self) -> ThreadWriter {
        ThreadWriter {
            ring: Arc::clone(&self.ring),
            tid: rustix::thread::gettid().as_raw_pid(),
        }
    }
}

/// One thread's end.
#[derive(Clone, Debug)]
pub struct ThreadWriter {
    ring: Arc<Ring>,
    tid: i32,
}

impl ThreadWriter {
    /// Whether round trips are to be stamped now.
    #[inline]
    pub fn on(&self) -> bool {
        self.ring.header().on.load(Ordering::Relaxed) != 0
    }

    /// Writes one round trip. Times are nanoseconds on the monotonic clock.
    pub fn stamp(&self, connection: u32, start: u64, end: u64) {
        let header = self.ring.header();
        // The reader's place first: the writers' is never behind it then, however long this thread waits for a CPU in
        // between.
        let tail = header.tail.load(Ordering::Acquire);
        let written = header.head.load(Ordering::Relaxed).wrapping_sub(tail);
        if written >= CAPACITY - SLACK {
            header.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let index = header.head.fetch_add(1, Ordering::AcqRel);
        let slot = self.ring.slot(index);
        slot.who.store(
            u64::from(self.tid as u32) << 32 | u64::from(connection),
            Ordering::Relaxed,
        );
        slot.start.store(start, Ordering::Relaxed);
        slot.end.store(end, Ordering::Relaxed);
        slot.filled.store(index.wrapping_add(1), Ordering::Release);
    }
}

/// The beginning of the memory. What the generators write often lies apart from what they only read.
#[repr(C)]
#[derive(Debug)]
struct Header {
    on: AtomicU32,
    writers: AtomicU32,
    tail: AtomicU64,
    apart: [AtomicU64; 14],
    head: AtomicU64,
    dropped: AtomicU64,
    apart_too: [AtomicU64; 14],
}

/// One round trip. `filled` is its place among all that were ever written, counted from 1, and is written last.
#[repr(C)]
#[derive(Debug)]
struct Slot {
    filled: AtomicU64,
    who: AtomicU64,
    start: AtomicU64,
    end: AtomicU64,
}

fn total() -> usize {
    size_of::<Header>() + CAPACITY as usize * size_of::<Slot>()
}

/// A file in memory whose size is sealed.
fn sealed(size: usize) -> io::Result<OwnedFd> {
    let file = File::from(memfd_create(
        "fingerpost-stamps",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )?);
    file.set_len(size as u64)?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file.into())
}

/// The mapping. Everything in it is read and written as atomics, because other processes do.
#[derive(Debug)]
struct Ring {
    fd: OwnedFd,
    mapping: Mapping,
}

// SAFETY: the mapping lives until this is dropped and holds nothing but atomics.
unsafe impl Sync for Ring {}

impl Ring {
    fn map(fd: OwnedFd) -> io::Result<Ring> {
        // The file's size is sealed, so that no access is beyond its end.
        let mapping = Mapping::new(Some(fd.as_fd()), total(), READ_WRITE, libc::MAP_SHARED, 0)?;
        Ok(Ring { fd, mapping })
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a header, is aligned to a page, and lives as long as this.
        unsafe { &*self.mapping.start.cast::<Header>() }
    }

    /// The place of one of all that were ever written.
    fn slot(&self, index: u64) -> &Slot {
        let at = size_of::<Header>() + (index % CAPACITY) as usize * size_of::<Slot>();
        // SAFETY: the remainder keeps the place within the mapping, whatever the index; both sizes are multiples of the
        // alignment.
        unsafe { &*self.mapping.start.add(at).cast::<Slot>() }
    }

    /// What is at a place, once it is filled; nothing when it is not by the deadline, or cannot be true.
    fn read(&self, index: u64, deadline: Instant) -> Option<Stamp> {
        let slot = self.slot(index);
        while slot.filled.load(Ordering::Acquire) != index.wrapping_add(1) {
            if Instant::now() > deadline {
                return None;
            }
            std::thread::yield_now();
        }
        let who = slot.who.load(Ordering::Relaxed);
        let (start, end) = (
            slot.start.load(Ordering::Relaxed),
            slot.end.load(Ordering::Relaxed),
        );
        (start <= end).then_some(Stamp {
            tid: (who >> 32) as i32,
            connection: who as u32,
            start,
            end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer in this process: what a generator has after it found its memory.
    fn thread_writer(stamps: &Stamps) -> ThreadWriter {
        Writer {
            ring: Arc::clone(&stamps.ring),
        }
        .of_thread()
    }

    #[test]
    fn what_is_stamped_is_read_once_and_the_switch_is_seen() {
        let stamps = Stamps::new().unwrap();
        let thread_writer = thread_writer(&stamps);
        assert!(!thread_writer.on());
        stamps.set(true);
        assert!(thread_writer.on());
        thread_writer.stamp(7, 100, 250);
        thread_writer.stamp(8, 120, 300);
        let drained = stamps.drain();
        let stamp = |connection, start, end| Stamp {
            tid: thread_writer.tid,
            connection,
            start,
            end,
        };
        assert_eq!(
            drained,
            Drained {
                stamps: vec![stamp(7, 100, 250), stamp(8, 120, 300)],
                lost: 0
            }
        );
        assert_eq!(stamps.drain(), Drained::default());
    }

    #[test]
    fn what_does_not_fit_is_counted_and_reading_makes_room() {
        let stamps = Stamps::new().unwrap();
        let thread_writer = thread_writer(&stamps);
        (0..CAPACITY).for_each(|i| thread_writer.stamp(0, i, i));
        let drained = stamps.drain();
        assert_eq!(
            (drained.stamps.len() as u64, drained.lost),
            (CAPACITY - SLACK, SLACK)
        );
        (0..CAPACITY - SLACK).for_each(|i| thread_writer.stamp(1, i, i + 1));
        let drained = stamps.drain();
        assert_eq!(
            (drained.stamps.len() as u64, drained.lost),
            (CAPACITY - SLACK, 0)
        );
        assert!(
            drained
                .stamps
                .iter()
                .all(|s| s.connection == 1 && s.end == s.start + 1)
        );
    }

    #[test]
    fn threads_lose_nothing_while_it_is_being_read() {
        let stamps = Stamps::new().unwrap();
        let mut seen = Vec::new();
        std::thread::scope(|scope| {
            let write = |connection| {
                let stamps = &stamps;
                scope.spawn(move || {
                    let thread_writer = thread_writer(stamps);
                    (0..20_000).for_each(|i| thread_writer.stamp(connection, i, i + 1));
                })
            };
            let writers = [1, 2, 3].map(write);
            // Longer than a thread waits for a CPU between taking its place and filling it, however busy the machine
            // is.
            let patience = Duration::from_secs(60);
            while writers.iter().any(|w| !w.is_finished()) {
                seen.push(stamps.drain_by(Instant::now() + patience));
            }
        });
        seen.push(stamps.drain());
        assert_eq!(seen.iter().map(|d| d.lost).sum::<u64>(), 0);
        for connection in [1, 2, 3] {
            let starts = seen
                .iter()
                .flat_map(|d| &d.stamps)
                .filter(|s| s.connection == connection)
                .map(|s| s.start);
            assert!(starts.eq(0..20_000));
        }
    }

    #[test]
    fn a_generator_that_writes_nonsense_harms_nobody() {
        let stamps = Stamps::new().unwrap();
        let header = stamps.ring.header();
        header.head.store(u64::MAX / 2, Ordering::Relaxed);
        assert_eq!(
            stamps.drain(),
            Drained {
                stamps: Vec::new(),
                lost: u64::MAX / 2
            }
        );
        // A place taken and never filled, and a round trip that ended before it began.
        header.head.fetch_add(1, Ordering::Relaxed);
        thread_writer(&stamps).stamp(1, 9, 8);
        assert_eq!(
            stamps.drain(),
            Drained {
                stamps: Vec::new(),
                lost: 2
            }
        );
        // The size is for ever what it is.
        let file = File::from(stamps.ring.fd.try_clone().unwrap());
        assert!(file.set_len(0).is_err() && file.set_len(1 << 30).is_err());
    }

    #[test]
    fn a_started_process_inherits_the_memory_and_no_other_does() {
        let stamps = Stamps::new().unwrap();
        let look = |give: bool| {
            let mut command = Command::new("sh");
            command
                .args([
                    "-c",
                    "readlink /proc/self/fd/${FINGERPOST_STAMPS:-99} || true",
                ])
                .env_remove(VARIABLE);
            if give {
                stamps.give(&mut command);
            } else {
                command.env(VARIABLE, stamps.ring.fd.as_raw_fd().to_string());
            }
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        assert!(look(true).contains("fingerpost-stamps"), "{}", look(true));
        assert_eq!(look(false), "");
        assert_eq!(stamps.writers(), 0);
    }
}
