//! Locks of the C library between threads of one process: free, fought over, and handed to and fro.

use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};

use crate::call::usage;
use crate::probe::{LATENCY, Nature, Probe, placements, rows, table};
use crate::session::{Session, Stop, now_ns};
use crate::share::{PLACES, Place, Word};

/// Stack of a partner thread: small, so that the process stays small.
const STACK: usize = 64 << 10;

/// The most threads that contend for one lock.
const MAX_THREADS: i64 = 64;

/// How long one value is taken over where threads contend: long against the time slices in which threads of one CPU
/// take turns holding it.
const WINDOW_NS: u64 = 2_000_000;

/// Acquisitions between two looks at the clock.
const ROUND: u32 = 16;

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    thread::Builder::new()
        .stack_size(STACK)
        .spawn_scoped(scope, body)
}

/// The thread functions of the C library answer with the error's number.
#[inline(always)]
pub fn done(rc: i32) -> io::Result<()> {
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(rc))
    }
}

/// A mutex of the C library, which Rust's own locks would bypass, and a word that it guards.
struct Mutex {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    guarded: UnsafeCell<u64>,
}

// SAFETY: the lock is made for use by many threads, and the word is only touched with the lock held.
unsafe impl Sync for Mutex {}

impl Default for Mutex {
    fn default() -> Mutex {
        Mutex {
            lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            guarded: UnsafeCell::new(0),
        }
    }
}

impl Mutex {
    /// Lock, count, unlock.
    #[inline(always)]
    fn once(&self) -> io::Result<()> {
        // SAFETY: the lock is initialised and does not move while borrowed; the word is touched between lock and
        // unlock.
        unsafe {
            done(libc::pthread_mutex_lock(self.lock.get()))?;
            let count = self.guarded.get();
            count.write_volatile(count.read_volatile() + 1);
            done(libc::pthread_mutex_unlock(self.lock.get()))
        }
    }
}

/// A read-write lock of the C library.
struct RwLock(UnsafeCell<libc::pthread_rwlock_t>);

// SAFETY: the lock is made for use by many threads.
unsafe impl Sync for RwLock {}

impl Default for RwLock {
    fn default() -> RwLock {
        RwLock(UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER))
    }
}

impl RwLock {
    /// Lock for reading, unlock.
    #[inline(always)]
    fn once(&self) -> io::Result<()> {
        // SAFETY: the lock is initialised and does not move while borrowed.
        unsafe {
            done(libc::pthread_rwlock_rdlock(self.0.get()))?;
            done(libc::pthread_rwlock_unlock(self.0.get()))
        }
    }
}

/// Measures an operation that nobody disputes, in a process with a second thread that sleeps: the C library leaves out
/// the atomic instructions while there is only one.
fn undisputed(s: &mut Session, once: impl Fn() -> io::Result<()> + Sync) -> Result<(), Stop> {
    let sleep = Word::default();
    thread::scope(|scope| {
        spawn(scope, || sleep.wait_while(0, libc::FUTEX_PRIVATE_FLAG))?;
        let result = s.repeat(once);
        sleep.set_and_wake(1, libc::FUTEX_PRIVATE_FLAG)?;
        result
    })
}

/// Acquisitions of one thread, written by that thread only.
#[derive(Default)]
#[repr(align(128))]
struct Tally(AtomicU64);

impl Tally {
    #[inline(always)]
    fn add_one(&self) {
        self.0
            .store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// Voluntary and involuntary switches of all threads of this process.
fn switches() -> [i64; 2] {
    let usage = usage(libc::RUSAGE_SELF);
    [usage.ru_nvcsw, usage.ru_nivcsw]
}

/// Measures an operation that `threads` threads, this one among them, do without a pause on the CPUs in turn, on one
/// lock after the other: wall time divided by the acquisitions of all. Returns the locks, and how often one was taken,
/// warm-up included.
fn disputed<L: Default + Sync>(
    s: &mut Session,
    threads: usize,
    once: impl Fn(&L) -> io::Result<()> + Sync,
) -> Result<(Vec<Place<L>>, u64), Stop> {
    s.take_second_cpu()?;
    let cpus = s.cpus().to_vec();
    if threads > 2 {
        s.share_cpu();
    }
    let locks: Vec<Place<L>> = (0..PLACES).map(|_| Place::default()).collect();
    let contention = Contention {
        locks: &locks,
        once,
        current: Word::default(),
        tallies: (0..threads).map(|_| Tally::default()).collect(),
    };
    let ready = AtomicUsize::new(1);
    let contend = |n: usize| -> io::Result<()> {
        let pinned = fingerpost_sys::affinity::pin(&[cpus[n % 2]]);
        ready.fetch_add(1, Ordering::Release);
        pinned?;
        while contention.once(n)? {}
        Ok(())
    };
    let contend = &contend;
    thread::scope(|scope| {
        let partners = (1..threads)
            .map(|n| spawn(scope, move || contend(n)))
            .collect::<Vec<_>>();
        // A thread that could not be started must not keep the others waiting.
        let missing = partners.iter().filter(|t| t.is_err()).count();
        while ready.load(Ordering::Acquire) + missing < threads {
            thread::yield_now();
        }
        let result = if missing == 0 {
            windows(s, &contention)
        } else {
            Ok(())
        };
        contention.current.0.store(NO_LOCK, Ordering::Relaxed);
        for thread in partners {
            thread?
                .join()
                .map_err(|_| Stop::Fail("a partner thread ended early".into()))??;
        }
        result
    })?;
    let acquisitions = contention.acquisitions();
    Ok((locks, acquisitions))
}

/// The place of a lock that there is not.
const NO_LOCK: u32 = u32::MAX;

/// Threads that want the same lock.
struct Contention<'a, L, F> {
    locks: &'a [Place<L>],
    once: F,
    /// Which lock is wanted, on a line of its own, as all look at it before each acquisition; [`NO_LOCK`] ends it.
    current: Word,
    tallies: Vec<Tally>,
}

impl<L, F: Fn(&L) -> io::Result<()>> Contention<'_, L, F> {
    /// Takes the current lock once, as thread `n`; false when there is none any more.
    #[inline(always)]
    fn once(&self, n: usize) -> io::Result<bool> {
        let Some(lock) = self
            .locks
            .get(self.current.0.load(Ordering::Relaxed) as usize)
        else {
            return Ok(false);
        };
        (self.once)(lock)?;
        self.tallies[n].add_one();
        Ok(true)
    }

    fn by_thread(&self) -> Vec<u64> {
        self.tallies
            .iter()
            .map(|t| t.0.load(Ordering::Relaxed))
            .collect()
    }

    fn acquisitions(&self) -> u64 {
        self.by_thread().iter().sum()
    }
}

/// The first thread's part: it contends as the others do, takes them from lock to lock, and takes a value per window.
fn windows<L, F: Fn(&L) -> io::Result<()>>(
    s: &mut Session,
    contention: &Contention<L, F>,
) -> Result<(), Stop> {
    // Where each thread has a CPU to itself, one that was pushed off it, or that never took the lock, spoils the
    // window. Threads that share a CPU push each other off all the time.
    let alone = contention.tallies.len() <= 2;
    let window = || -> Result<(f64, bool), Stop> {
        let (each, pushed, begin) = (contention.by_thread(), switches()[1], now_ns());
        let mut ns = 0;
        for place in 0..PLACES {
            contention.current.0.store(place as u32, Ordering::Relaxed);
            while ns < WINDOW_NS * (place as u64 + 1) / PLACES as u64 {
                for _ in 0..ROUND {
                    contention.once(0)?;
                }
                ns = now_ns() - begin;
            }
        }
        let gained: Vec<u64> = contention
            .by_thread()
            .iter()
            .zip(&each)
            .map(|(after, before)| after - before)
            .collect();
        let spoiled = alone && (switches()[1] != pushed || gained.contains(&0));
        Ok((ns as f64 / gained.iter().sum::<u64>() as f64, spoiled))
    };
    window()?;
    let (switches_before, before) = (switches(), contention.acquisitions());
    s.marked_values(window)?;
    let (switches_after, acquisitions) = (switches(), (contention.acquisitions() - before) as f64);
    for (i, name) in ["switches_voluntary", "switches_involuntary"]
        .into_iter()
        .enumerate()
    {
        s.counter(
            name,
            (switches_after[i] - switches_before[i]) as f64 / acquisitions,
        );
    }
    Ok(())
}

fn mutex(s: &mut Session) -> Result<(), Stop> {
    let mutex = Mutex::default();
    undisputed(s, || mutex.once())
}

fn threads(s: &Session, least: i64) -> Result<usize, Stop> {
    match s.int("threads", least)? {
        n if n <= MAX_THREADS => Ok(n as usize),
        _ => Err(Stop::Fail(format!(
            "more than {MAX_THREADS} threads are not started"
        ))),
    }
}

fn mutex_contended(s: &mut Session) -> Result<(), Stop> {
    let (mutexes, acquisitions) = disputed(s, threads(s, 2)?, Mutex::once)?;
    // What the lock is for: a lost count would mean that two threads were inside at once.
    match mutexes
        .into_iter()
        .map(|mutex| mutex.value.guarded.into_inner())
        .sum::<u64>()
    {
        counted if counted == acquisitions => Ok(()),
        counted => Err(Stop::Fail(format!(
            "the lock let two threads in at once: {counted} counted of {acquisitions}"
        ))),
    }
}

fn rwlock(s: &mut Session) -> Result<(), Stop> {
    match threads(s, 1)? {
        1 => {
            let lock = RwLock::default();
            undisputed(s, || lock.once())
        }
        n => disputed(s, n, RwLock::once).map(|_| ()),
    }
}

/// Whose turn it is, under a mutex, with a condition variable for each side.
struct Handoff {
    mutex: Mutex,
    sides: [UnsafeCell<libc::pthread_cond_t>; 2],
}

// SAFETY: conditions and mutex are made for use by many threads; the turn is only touched with the mutex held.
unsafe impl Sync for Handoff {}

/// The turn that ends the partner.
const OVER: u64 = 2;

impl Handoff {
    fn new() -> Handoff {
        Handoff {
            mutex: Mutex::default(),
            sides: [const { UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER) }; 2],
        }
    }

    /// With the mutex held: gives the turn away and wakes that side.
    ///
    /// # Safety
    /// The calling thread must hold the mutex.
    unsafe fn give(&self, turn: u64, wake: usize) -> io::Result<()> {
        // SAFETY: the caller holds the mutex that guards the turn; the condition is initialised.
        unsafe {
            self.mutex.guarded.get().write(turn);
            done(libc::pthread_cond_signal(self.sides[wake].get()))
        }
    }

    /// With the mutex held: waits on a side's condition until the turn is another than `turn`, and returns it.
    ///
    /// # Safety
    /// The calling thread must hold the mutex.
    unsafe fn wait_while(&self, turn: u64, side: usize) -> io::Result<u64> {
        // SAFETY: the caller holds the mutex; waiting releases it and takes it again.
        unsafe {
            while *self.mutex.guarded.get() == turn {
                done(libc::pthread_cond_wait(
                    self.sides[side].get(),
                    self.mutex.lock.get(),
                ))?;
            }
            Ok(*self.mutex.guarded.get())
        }
    }

    /// One way there and back, seen from the measuring side; the mutex is taken and released.
    fn round_trip(&self) -> io::Result<()> {
        // SAFETY: the mutex is held between lock and unlock.
        unsafe {
            done(libc::pthread_mutex_lock(self.mutex.lock.get()))?;
            self.give(1, 1)?;
            self.wait_while(1, 0)?;
            done(libc::pthread_mutex_unlock(self.mutex.lock.get()))
        }
    }

    /// The partner: answers each turn until it is over.
    fn answer(&self) -> io::Result<()> {
        // SAFETY: the mutex is held between lock and unlock.
        unsafe {
            done(libc::pthread_mutex_lock(self.mutex.lock.get()))?;
            while self.wait_while(0, 1)? != OVER {
                self.give(0, 0)?;
            }
            done(libc::pthread_mutex_unlock(self.mutex.lock.get()))
        }
    }

    /// Ends the partner.
    fn end(&self) -> io::Result<()> {
        // SAFETY: the mutex is held between lock and unlock.
        unsafe {
            done(libc::pthread_mutex_lock(self.mutex.lock.get()))?;
            self.give(OVER, 1)?;
            done(libc::pthread_mutex_unlock(self.mutex.lock.get()))
        }
    }
}

fn condvar(s: &mut Session) -> Result<(), Stop> {
    let cpu = s.partner_cpu()?;
    let handoff = Handoff::new();
    thread::scope(|scope| {
        let partner = spawn(scope, || {
            // The partner answers even when it could not be placed: the failure is reported after it, not by a hang.
            let pinned = fingerpost_sys::affinity::pin(&[cpu]);
            handoff.answer().and(pinned)
        })?;
        let result = s.repeat(|| handoff.round_trip());
        handoff.end()?;
        partner
            .join()
            .map_err(|_| Stop::Fail("the partner thread ended early".into()))??;
        result
    })
}

const FAMILY: Probe = Probe {
    table: &table::SYNCHRONISATION,
    ..LATENCY
};

/// The probes of this file.
pub static PROBES: &[Probe] = &[
    Probe {
        name: "sync.mutex",
        bounds: [1.0, 500.0],
        summary: "take and release a mutex that nobody else wants",
        timed: "pthread_mutex_lock, one addition to a word that it guards, and pthread_mutex_unlock, with a second \
            thread asleep.",
        pitfalls: "with one thread in the process the C library leaves out the atomic instructions, and the figure \
            would be a third.",
        run: mutex,
        ..FAMILY
    },
    Probe {
        name: "sync.mutex_contended",
        bounds: [1.0, 1e6],
        summary: "take and release a mutex that other threads want too",
        version: 2,
        timed: "wall time divided by the acquisitions of all threads, each of which takes the mutex, adds to the word \
            that it guards and releases it, without a pause; the threads are on two CPUs in turn. 32 mutexes, each in \
            a page of its own, are contended for one after the other, for 63 µs each. Counters: switches per \
            acquisition.",
        pitfalls: "the C library's mutex is unfair: whoever has just released it mostly takes it again, so the figure \
            is throughput, not the wait of one thread. In version 1 it was one mutex, whose place in memory decided as \
            much as the lock.",
        nature: Nature::Contends,
        cpus: 2,
        variants: || rows("threads", [2, 4]),
        run: mutex_contended,
        ..FAMILY
    },
    Probe {
        name: "sync.rwlock",
        bounds: [1.0, 1e3],
        summary: "take and release a read-write lock for reading",
        timed: "pthread_rwlock_rdlock and pthread_rwlock_unlock: with one thread, the lock alone (a second thread \
            asleep); with more, wall time divided by the acquisitions of all threads, readers every one, on two CPUs \
            in turn, of 32 locks one after the other.",
        pitfalls: "readers do not exclude each other, and still contend for the lock's cache line: two of them can be \
            slower than one.",
        version: 3,
        nature: Nature::Contends,
        variants: || rows("threads", [1, 2]),
        run: rwlock,
        ..FAMILY
    },
    Probe {
        name: "sync.condvar",
        bounds: [200.0, 1e7],
        summary: "wake another thread and be woken by condition variables",
        timed: "with a mutex held, give the turn away, pthread_cond_signal, and pthread_cond_wait until the partner \
            thread has done the same.",
        pitfalls: "the woken thread may find the mutex still held and sleep once more.",
        nature: Nature::Blocks,
        variants: placements,
        run: condvar,
        ..FAMILY
    },
];
