//! Bandwidth of several CPUs at once: processes that each walk a range of their own, all of them all the time, and the
//! sum of their rates.
//!
//! Each publishes how far it has come and when it was there. Its rate over a window is taken between two such marks of
//! its own, so that the window need not fit the work.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use fingerpost_record::Params;

use super::buffers::{Buffers, Op, candidates, size};
use super::loops::{Loop, fastest};
use crate::peer::Peer;
use crate::session::{Session, Stop, now_ns};
use crate::share::Shared;

/// The most processes.
const MOST: usize = 64;

/// Bytes that a process moves between two marks: some ten microseconds.
const TURN: usize = 128 << 10;

/// The length of one sample in nanoseconds.
const WINDOW_NS: u64 = 1_000_000;

/// Bytes of a process's range: in the first- and second-level cache, in what is shared, and in memory.
pub const SIZES: [i64; 4] = [16 << 10, 512 << 10, 4 << 20, 64 << 20];

/// How long the partners may take to fill their ranges.
const READY_NS: u64 = 3_000_000_000;

/// The bits of a mark that hold the time in nanoseconds: eighteen minutes, after which it starts anew.
const TIME_BITS: u32 = 40;

/// Turns done and the time, in one word so that they are read together; alone on its cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Mark(AtomicU64);

/// Turns and nanoseconds between two marks, each modulo its own width.
fn between(before: u64, after: u64) -> (u64, u64) {
    let turns =
        (after >> TIME_BITS).wrapping_sub(before >> TIME_BITS) & ((1 << (64 - TIME_BITS)) - 1);
    (turns, after.wrapping_sub(before) & ((1 << TIME_BITS) - 1))
}

impl Mark {
    fn set(&self, turns: u64) {
        self.0.store(
            (turns << TIME_BITS) | (now_ns() & ((1 << TIME_BITS) - 1)),
            Ordering::Release,
        );
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

struct Marks([Mark; MOST]);

impl Default for Marks {
    fn default() -> Self {
        Marks(std::array::from_fn(|_| Mark::default()))
    }
}

/// Memory, and how far the walk through it is.
struct Walk {
    buffers: Buffers,
    one: Loop,
    at: usize,
    turns: u64,
}

impl Walk {
    /// Fresh memory, and the fastest of `candidates` on it.
    fn new(op: Op, size: usize, candidates: &[Loop]) -> Result<Walk, Stop> {
        let mut walk = Walk {
            buffers: Buffers::new(op, size)?,
            one: candidates[0],
            at: 0,
            turns: 0,
        };
        walk.one = fastest(candidates, |one| {
            walk.one = one;
            walk.advance();
        });
        Ok(walk)
    }

    /// Moves [`TURN`] bytes, round and round.
    fn advance(&mut self) {
        let mut left = TURN / size_of::<u64>();
        while left > 0 {
            let piece = left.min(self.buffers.length - self.at);
            self.buffers.step(self.one, self.at..self.at + piece);
            self.at = (self.at + piece) % self.buffers.length;
            left -= piece;
        }
    }

    /// Moves [`TURN`] bytes and marks it.
    fn turn(&mut self, mark: &Mark) {
        self.advance();
        self.turns += 1;
        mark.set(self.turns);
    }
}

/// Measures `op` on as many CPUs as `threads` says, each with a range of `size` bytes.
pub fn measure(s: &mut Session, op: Op) -> Result<(), Stop> {
    let threads = s.int("threads", 1)? as usize;
    let size = size(s)?;
    if threads > MOST {
        return Err(Stop::Fail(format!(
            "more than {MOST} threads are not taken"
        )));
    }
    if threads > s.cpus().len() {
        return Err(Stop::Skip(format!(
            "needs {threads} CPUs, and this process may use {}",
            s.cpus().len()
        )));
    }
    if threads > 1 {
        s.use_second_cpu();
    }
    let candidates = candidates(s.params(), op)?;
    let marks = Shared::<Marks>::new()?;
    let mut peers = Vec::new();
    for (cpu, mark) in s.cpus()[1..threads].iter().zip(&marks.0[1..]) {
        peers.push(Peer::fork(*cpu, || work(op, size, &candidates, mark))?);
    }
    let mut own = Walk::new(op, size, &candidates)?;
    let marks = &marks.0[..threads];
    wait_for(&marks[1..])?;
    s.marked_values(|| {
        own.turn(&marks[0]);
        let before: Vec<u64> = marks.iter().map(Mark::get).collect();
        let begin = now_ns();
        while now_ns() - begin < WINDOW_NS {
            own.turn(&marks[0]);
        }
        let rates: Vec<f64> = before
            .iter()
            .zip(marks)
            .map(|(before, mark)| rate(*before, mark.get()))
            .collect();
        // A partner that moved nothing in a millisecond had lost its CPU.
        Ok((rates.iter().sum(), rates.contains(&0.0)))
    })?;
    s.counter("vector_bytes", own.one.vector_bytes());
    Ok(())
}

/// What a partner does until it is ended.
fn work(op: Op, size: usize, candidates: &[Loop], mark: &Mark) -> io::Result<()> {
    let mut walk =
        Walk::new(op, size, candidates).map_err(|stop| io::Error::other(format!("{stop:?}")))?;
    loop {
        walk.turn(mark);
    }
}

/// Waits until every partner has begun.
fn wait_for(partners: &[Mark]) -> Result<(), Stop> {
    let deadline = now_ns() + READY_NS;
    while partners.iter().any(|mark| mark.get() == 0) {
        if now_ns() > deadline {
            return Err(Stop::Fail(format!(
                "a partner process did not begin within {} s",
                READY_NS / 1_000_000_000
            )));
        }
        std::thread::yield_now();
    }
    Ok(())
}

/// Bytes a second between two marks; 0 when they are the same.
fn rate(before: u64, after: u64) -> f64 {
    let (turns, ns) = between(before, after);
    if ns == 0 {
        0.0
    } else {
        (turns * TURN as u64) as f64 * 1e9 / ns as f64
    }
}

/// The laboratory's rows: each of [`SIZES`] on one CPU, two, four and so on to all.
pub fn sweep() -> Vec<Params> {
    let all = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MOST);
    let mut counts: Vec<usize> = std::iter::successors(Some(1), |n| Some(n * 2))
        .take_while(|n| *n < all)
        .collect();
    counts.push(all);
    let row = |size: i64, threads: &usize| {
        Params::new()
            .with("size", size)
            .with("threads", *threads as i64)
    };
    SIZES
        .into_iter()
        .flat_map(|size| counts.iter().map(move |threads| row(size, threads)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_bytes_over_the_time_between_two_marks() {
        let mark = |turns: u64, ns: u64| (turns << TIME_BITS) | (ns & ((1 << TIME_BITS) - 1));
        assert_eq!(
            rate(mark(5, 1000), mark(15, 2000)),
            10.0 * TURN as f64 / 1e-6
        );
        assert_eq!(rate(mark(5, 1000), mark(5, 1000)), 0.0);
        // Both the time and the turns may start anew.
        let last = (1u64 << TIME_BITS) - 1;
        assert_eq!(between(mark((1 << 24) - 1, last), mark(1, 9)), (2, 10));
    }

    #[test]
    fn a_turn_moves_all_that_it_counts() {
        let mark = Mark::default();
        let mut walk = Walk::new(Op::Write, 3 << 12, &Loop::vectors())
            .unwrap_or_else(|stop| panic!("{stop:?}"));
        let begun = walk.at;
        walk.turn(&mark);
        assert!(walk.buffers.range.words().iter().all(|w| *w == 7));
        assert_eq!((walk.turns, walk.at), (1, (begun + TURN / 8) % (3 << 9)));
        let mut walk = Walk::new(Op::Copy, 1 << 14, &Loop::vectors())
            .unwrap_or_else(|stop| panic!("{stop:?}"));
        walk.buffers.source.as_mut().unwrap().words().fill(9);
        walk.turn(&mark);
        assert!(walk.buffers.range.words().iter().all(|w| *w == 9));
    }

    #[test]
    fn the_sweep_goes_from_one_cpu_to_all() {
        let threads: Vec<i64> = sweep()
            .iter()
            .filter_map(|row| row.int("threads"))
            .collect();
        let all = std::thread::available_parallelism()
            .unwrap()
            .get()
            .min(MOST) as i64;
        assert_eq!(
            (threads.iter().min(), threads.iter().max()),
            (Some(&1), Some(&all))
        );
    }
}
