//! How far two CPUs in the kernel get in each other's way.
//!
//! Early Mac OS X had two big kernel locks, one for the network and one for everything else ("funnels"). Whether a
//! kernel still has such a thing shows when two CPUs work in it at once: 100 percent means that neither notices the
//! other, 50 that one waits while the other works. One after the other, in short stretches so that drift cancels, each
//! side works alone, then both together.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::thread;

use fingerpost_record::{Better, Unit};

use crate::call::{ANONYMOUS, READ_WRITE, map, unmap};
use crate::fs;
use crate::ipc::tcp_pair;
use crate::peer::Peer;
use crate::probe::{LATENCY, Nature, Probe, rows, table};
use crate::session::{Session, Stop, involuntary_switches, now_ns};
use crate::share::{Shared, Word};

/// How long a side works in one stretch, in nanoseconds.
const STRETCH_NS: u64 = 1_000_000;

/// The same for process creation, of which a millisecond holds only a few.
const LONG_STRETCH_NS: u64 = 3_000_000;

/// Pages that a side maps, touches and unmaps.
const PAGES: usize = 16;

/// What a side does in the kernel.
type Operation = Box<dyn FnMut() -> io::Result<()>>;

/// Sets a side up: everything it works on is its own, so that only the kernel is shared.
type Prepare = fn(&Path) -> io::Result<Operation>;

const MEMORY: Prepare = |_| Ok(Box::new(map_touch_unmap));

/// Directories that a side goes round. Two that lie badly to each other would make each process a draw of its own.
const DIRECTORIES: usize = 4;

/// Creates a file in a directory of the side's, writes a page, closes and deletes it.
fn files(dir: &Path) -> io::Result<Operation> {
    let file = |_| Ok(fs::new_directory(dir)?.join("file"));
    let paths = (0..DIRECTORIES)
        .map(file)
        .collect::<io::Result<Vec<PathBuf>>>()?;
    let mut turn = 0;
    Ok(Box::new(move || {
        let path = &paths[turn % DIRECTORIES];
        turn += 1;
        File::options()
            .write(true)
            .create_new(true)
            .open(path)?
            .write_all(&[1; 4096])?;
        std::fs::remove_file(path)
    }))
}

/// Sends one byte over a TCP connection on loopback and reads it at the other end, both in one process: nobody is
/// woken.
fn segments(_: &Path) -> io::Result<Operation> {
    let (mut one, mut other) = tcp_pair().map_err(|stop| io::Error::other(format!("{stop:?}")))?;
    Ok(Box::new(move || {
        one.write_all(&[1])?;
        other.read_exact(&mut [0])
    }))
}

fn map_touch_unmap() -> io::Result<()> {
    let at = map(0, PAGES * 4096, READ_WRITE, ANONYMOUS, -1)?;
    for page in 0..PAGES {
        // SAFETY: the page is in the mapping just made.
        unsafe { ((at + page * 4096) as *mut u8).write_volatile(1) };
    }
    unmap(at, PAGES * 4096)
}

/// A child that ends at once. It has no exit signal, so that no signal handler is part of the figure.
fn fork_and_wait() -> io::Result<()> {
    // SAFETY: without flags clone is a fork; the child only makes system calls; __WALL waits for children without a
    // signal too.
    unsafe {
        match libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                libc::syscall(libc::SYS_exit_group, 0);
                Ok(())
            }
            pid => {
                let mut status = 0;
                let rc = libc::waitpid(pid as i32, &mut status, libc::__WALL);
                if rc == pid as i32 && status == 0 {
                    Ok(())
                } else {
                    Err(io::Error::other("a child ended badly"))
                }
            }
        }
    }
}

/// Where both sides meet. All of it is shared between two processes, or two threads.
#[derive(Default)]
struct Stage {
    /// Number of the current stretch; [`NO_STRETCH`] ends the partner.
    stretch: Word,
    /// The last stretch that the partner is through with.
    finished: Word,
    /// Which sides work in this stretch: bit 0 is this process, bit 1 the partner.
    working: AtomicU32,
    /// Working sides that have arrived in this stretch.
    arrived: AtomicU32,
    /// Operations a second, times 1000, of each side in its last stretch.
    rates: [AtomicU64; 2],
    /// Involuntary switches that the partner has met in its stretches.
    pushed: AtomicU64,
    /// Error number of a side that failed.
    failed: AtomicI32,
}

const NO_STRETCH: u32 = u32::MAX;

/// How a side waits for its next stretch.
#[derive(Clone, Copy, PartialEq)]
enum Idle {
    /// In user space, so that its CPU has the same clock rate and the same share of a core in all stretches.
    Spins,
    /// In the kernel. For threads: a CPU that spins in the same address space would get the interrupts that flush its
    /// translations also while the other side works alone.
    Sleeps,
}

impl Stage {
    fn wait_while(&self, word: &Word, value: u32, idle: Idle) -> io::Result<()> {
        while word.0.load(Ordering::Acquire) == value {
            self.check()?;
            match idle {
                Idle::Spins => std::hint::spin_loop(),
                Idle::Sleeps => word.wait_while(value, 0)?,
            }
        }
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        match self.failed.load(Ordering::Relaxed) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Works for one stretch, from the moment that all who work in it are there.
    fn work(&self, side: usize, stretch_ns: u64, operation: &mut Operation) -> io::Result<()> {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        while self.arrived.load(Ordering::Acquire)
            < self.working.load(Ordering::Relaxed).count_ones()
        {
            self.check()?;
            std::hint::spin_loop();
        }
        let (begin, mut count) = (now_ns(), 0u64);
        let ns = loop {
            operation()?;
            count += 1;
            let ns = now_ns() - begin;
            if ns >= stretch_ns {
                break ns;
            }
        };
        self.rates[side].store(
            (count as u128 * 1_000_000_000_000 / u128::from(ns)) as u64,
            Ordering::Release,
        );
        Ok(())
    }

    /// The partner's life: works in the stretches that are its own, until [`NO_STRETCH`].
    fn partner(&self, idle: Idle, stretch_ns: u64, mut operation: Operation) -> io::Result<()> {
        let mut last = 0;
        loop {
            self.wait_while(&self.stretch, last, idle)?;
            last = self.stretch.0.load(Ordering::Acquire);
            if last == NO_STRETCH {
                return Ok(());
            }
            if self.working.load(Ordering::Acquire) & 2 != 0 {
                let before = involuntary_switches();
                self.work(1, stretch_ns, &mut operation)?;
                self.pushed
                    .fetch_add((involuntary_switches() - before) as u64, Ordering::Relaxed);
            }
            self.finished.set_and_wake(last, 0)?;
        }
    }

    /// One stretch, seen from the measuring side. Returns the rates of the sides.
    fn stretch(
        &self,
        sides: u32,
        idle: Idle,
        stretch_ns: u64,
        operation: &mut Operation,
    ) -> io::Result<[f64; 2]> {
        self.arrived.store(0, Ordering::Relaxed);
        self.working.store(sides, Ordering::Relaxed);
        let before = self.stretch.0.load(Ordering::Relaxed);
        self.stretch.set_and_wake(before + 1, 0)?;
        if sides & 1 != 0 {
            self.work(0, stretch_ns, operation)?;
        }
        self.wait_while(&self.finished, before, idle)?;
        Ok([0, 1].map(|side| self.rates[side].load(Ordering::Acquire) as f64))
    }

    /// Takes the values: each from a stretch of one, of the other, and of both, in an order that turns round every
    /// time.
    fn measure(
        &self,
        s: &mut Session,
        idle: Idle,
        stretch_ns: u64,
        mut operation: Operation,
    ) -> Result<(), Stop> {
        // A side that creates processes is switched out by them.
        let own_children = stretch_ns == LONG_STRETCH_NS;
        let mut round = |forwards: bool| -> Result<(f64, bool), Stop> {
            let mut rates = [[0.0; 2]; 4];
            let pushed = self.pushed.load(Ordering::Relaxed);
            for sides in if forwards { [1, 2, 3] } else { [3, 2, 1] } {
                rates[sides as usize] = self.stretch(sides, idle, stretch_ns, &mut operation)?;
            }
            let disturbed = !own_children && self.pushed.load(Ordering::Relaxed) != pushed;
            Ok((
                percent_of_alone([rates[1][0], rates[2][1]], rates[3]),
                disturbed,
            ))
        };
        // The first round starts what is cold.
        round(true)?;
        let mut forwards = false;
        s.marked_values(|| {
            forwards = !forwards;
            round(forwards)
        })
    }
}

/// What both sides together reach of what each reached alone: the mean of the two shares, in percent.
fn percent_of_alone(alone: [f64; 2], together: [f64; 2]) -> f64 {
    50.0 * (together[0] / alone[0] + together[1] / alone[1])
}

/// Two processes, one on each CPU.
fn two_processes(
    s: &mut Session,
    stretch_ns: u64,
    ours: Prepare,
    theirs: Prepare,
) -> Result<(), Stop> {
    let cpu = s.take_second_cpu()?;
    let stage = Shared::<Stage>::new()?;
    let dir = s.dir().to_owned();
    let _partner = Peer::fork(cpu, || {
        stage.partner(Idle::Spins, stretch_ns, theirs(&dir)?)
    })?;
    stage.measure(s, Idle::Spins, stretch_ns, ours(&dir)?)
}

/// Two threads of one process, one on each CPU.
fn two_threads(s: &mut Session, prepare: Prepare) -> Result<(), Stop> {
    let cpu = s.take_second_cpu()?;
    let stage = Stage::default();
    let dir = s.dir().to_owned();
    let partner = || -> io::Result<()> {
        fingerpost_sys::affinity::pin(&[cpu])?;
        stage.partner(Idle::Sleeps, STRETCH_NS, prepare(&dir)?)
    };
    let partner = || {
        if let Err(e) = partner() {
            stage
                .failed
                .store(e.raw_os_error().unwrap_or(libc::EIO), Ordering::Relaxed);
            // Nobody is to sleep on after a failure; the number is one that no stretch has.
            let _ = stage.finished.set_and_wake(NO_STRETCH, 0);
        }
    };
    thread::scope(|scope| {
        thread::Builder::new()
            .stack_size(64 << 10)
            .spawn_scoped(scope, partner)?;
        let result = prepare(&dir)
            .map_err(Stop::from)
            .and_then(|op| stage.measure(s, Idle::Sleeps, STRETCH_NS, op));
        if result.is_err() {
            // Ours may have failed before the meeting point, where the partner would wait for it.
            stage.failed.store(libc::ECANCELED, Ordering::Relaxed);
        }
        stage.stretch.set_and_wake(NO_STRETCH, 0)?;
        result
    })?;
    Ok(stage.check()?)
}

fn vm(s: &mut Session) -> Result<(), Stop> {
    match s.word("share", &["process", "thread"])? {
        "thread" => two_threads(s, MEMORY),
        _ => two_processes(s, STRETCH_NS, MEMORY, MEMORY),
    }
}

fn process(s: &mut Session) -> Result<(), Stop> {
    s.share_cpu();
    let children: Prepare = |_| Ok(Box::new(fork_and_wait));
    two_processes(s, LONG_STRETCH_NS, children, children)
}

/// What the probes of this file share.
const FAMILY: Probe = Probe {
    pitfalls: "two hardware threads of one core share it, and caches, memory and clock rate are shared by more: a \
        little below 100 is not a lock. Noise can lift a value above 100.",
    table: &table::PARALLEL,
    unit: Unit::Percent,
    better: Better::Higher,
    nature: Nature::Relates,
    cpus: 2,
    ..LATENCY
};

/// The probes of this file.
pub static PROBES: &[Probe] = &[
    Probe {
        name: "parallel.fs",
        bounds: [1.0, 1e4],
        version: 2,
        summary: "what two CPUs in the file system reach of what each reaches alone",
        timed: "two processes, each creating a file in one of four directories of its own in turn, writing 4 KiB, \
            closing and deleting it: rate together over rate alone.",
        run: |s| two_processes(s, STRETCH_NS, files, files),
        ..FAMILY
    },
    Probe {
        name: "parallel.network",
        bounds: [1.0, 1e4],
        summary: "what two CPUs in the network reach of what each reaches alone",
        timed: "two processes, each sending a byte over a TCP connection of its own on 127.0.0.1 and reading it at the \
            other end: rate together over rate alone.",
        run: |s| two_processes(s, STRETCH_NS, segments, segments),
        ..FAMILY
    },
    Probe {
        name: "parallel.vm",
        bounds: [1.0, 1e4],
        summary: "what two CPUs mapping memory reach of what each reaches alone",
        timed: "two sides, each mapping 16 pages, touching and unmapping them: rate together over rate alone. \
            share=process: two processes; \
                share=thread: two threads of one, which share its address space and its lock.",
        variants: || rows("share", ["process", "thread"]),
        run: vm,
        ..FAMILY
    },
    Probe {
        name: "parallel.process",
        bounds: [1.0, 1e4],
        summary: "what two CPUs creating processes reach of what each reaches alone",
        timed: "two processes, each forking a child that ends at once and waiting for it: rate together over rate \
            alone.",
        run: process,
        ..FAMILY
    },
    Probe {
        name: "parallel.network_fs",
        bounds: [1.0, 1e4],
        version: 2,
        summary: "what network beside file system reaches of what each reaches alone",
        timed: "one process sending and reading bytes by TCP as in parallel.network, one creating and deleting files \
            as in parallel.fs: mean of the two rates together over alone.",
        run: |s| two_processes(s, STRETCH_NS, segments, files),
        ..FAMILY
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_hindrance_is_100_and_one_lock_is_50() {
        assert_eq!(percent_of_alone([10.0, 1000.0], [10.0, 1000.0]), 100.0);
        assert_eq!(percent_of_alone([10.0, 1000.0], [5.0, 500.0]), 50.0);
        // A side that starves the other: as bad as taking turns.
        assert_eq!(percent_of_alone([10.0, 10.0], [10.0, 0.0]), 50.0);
    }

    #[test]
    fn a_failing_side_ends_both() {
        let stage = Stage::default();
        let failing =
            || -> Operation { Box::new(|| Err(io::Error::from_raw_os_error(libc::ENOSPC))) };
        thread::scope(|scope| {
            scope.spawn(|| {
                let e = stage.partner(Idle::Spins, 1000, failing()).unwrap_err();
                stage
                    .failed
                    .store(e.raw_os_error().unwrap(), Ordering::Relaxed);
            });
            let mut fine: Operation = Box::new(|| Ok(()));
            let e = stage.stretch(2, Idle::Spins, 1000, &mut fine).unwrap_err();
            assert_eq!(e.raw_os_error(), Some(libc::ENOSPC));
        });
    }

    #[test]
    fn each_side_works_in_its_own_stretches() {
        let stage = Stage::default();
        let theirs = std::sync::Arc::new(AtomicU32::new(0));
        let counted = theirs.clone();
        thread::scope(|scope| {
            let stage = &stage;
            scope.spawn(move || {
                let count: Operation = Box::new(move || {
                    counted.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                });
                stage.partner(Idle::Sleeps, 1000, count)
            });
            let mut none: Operation = Box::new(|| Ok(()));
            stage.stretch(1, Idle::Sleeps, 1000, &mut none).unwrap();
            assert_eq!(theirs.load(Ordering::Relaxed), 0);
            let rates = stage.stretch(3, Idle::Sleeps, 1000, &mut none).unwrap();
            assert!(theirs.load(Ordering::Relaxed) > 0 && rates.iter().all(|r| *r > 0.0));
            stage.stretch.set_and_wake(NO_STRETCH, 0).unwrap();
        });
    }
}
