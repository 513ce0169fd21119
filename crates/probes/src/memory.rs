//! Memory bandwidth: reading, writing and copying a range of a given size, again and again.
//!
//! There is a loop for every instruction set ([`loops`]); each process tries those that its CPU has on its own range, and measures the
//! fastest. The counter `vector_bytes` says which, so that a comparison of two hosts shows when it compares two instruction sets.

mod latency;
mod loops;
mod range;
mod threads;

use std::hint::black_box;

use fingerpost_record::{Better, Params, Unit};

use crate::probe::{Nature, Probe};
use crate::session::{Session, Stop};

use loops::{Loop, fastest};
use range::{Pages, Range};
use threads::Op;

/// Bytes that one operation moves at most, so that a batch of a large range stays far below a scheduler tick.
const STEP: usize = 256 << 10;

/// The smallest and the largest range.
const SIZES: std::ops::RangeInclusive<i64> = 4096..=1 << 30;

/// The row's size in bytes, checked.
fn size(s: &Session) -> Result<usize, Stop> {
    match s.int("size", *SIZES.start())? {
        size if SIZES.contains(&size) => Ok(size as usize),
        _ => Err(Stop::Fail(format!("a size of more than {} bytes is not taken", SIZES.end()))),
    }
}

/// Words by which the source of a copy lies further into its page than the target: 33 lines. Between equal places in a page, and between
/// places an even number of lines apart, loads wait for stores that they have nothing to do with: a fifth of the rate within the
/// first-level cache. A program's two buffers seldom lie so.
const SHIFT: usize = 33 * 64 / size_of::<u64>();

/// Memory to do something with: one range, or for a copy two, as a program has two buffers.
struct Ground {
    op: Op,
    /// What is read, or written.
    range: Range,
    /// What is copied from.
    source: Option<Range>,
    /// Words that are walked through.
    length: usize,
}

impl Ground {
    /// Fresh memory for `op`, written once: `size` bytes, for a copy half of them on either side.
    fn new(op: Op, size: usize) -> Result<Ground, Stop> {
        let bytes = if op == Op::Copy { size / 2 } else { size };
        let filled = |bytes| -> Result<Range, Stop> {
            let mut range = Range::map(bytes, Pages::HugeIfAllowed)?;
            range.words().fill(1);
            Ok(range)
        };
        let source = if op == Op::Copy { Some(filled(bytes + SHIFT * size_of::<u64>())?) } else { None };
        Ok(Ground { op, range: filled(bytes)?, source, length: bytes / size_of::<u64>() })
    }

    /// Reads a piece with `one`, writes it, or copies to it.
    #[inline(always)]
    fn step(&mut self, one: Loop, piece: std::ops::Range<usize>) {
        let words = self.range.words();
        match (self.op, &mut self.source) {
            (Op::Read, _) => {
                black_box(one.sum(black_box(&words[piece])));
            }
            (Op::Copy, Some(source)) => {
                let from = &source.words()[SHIFT + piece.start..SHIFT + piece.end];
                one.copy(black_box(&mut words[piece]), black_box(from));
            }
            (Op::Write | Op::Copy, _) => one.fill(black_box(&mut words[piece]), black_box(7)),
        }
    }
}

/// The pieces that a range is walked in: its start and end in words, one after the other, round and round.
fn pieces(words: usize) -> impl Iterator<Item = std::ops::Range<usize>> + Clone {
    let step = (STEP / size_of::<u64>()).min(words);
    (0..words / step).map(move |i| i * step..(i + 1) * step).cycle()
}

/// The loops that a row allows: those of `method` where it names one, else all that can do what is to be done.
fn candidates(params: &Params, op: Op) -> Result<Vec<Loop>, Stop> {
    let string = if op == Op::Copy { Loop::string() } else { None };
    match params.text("method") {
        None => Ok(Loop::vectors().into_iter().chain(string).collect()),
        Some("vector") => Ok(Loop::vectors()),
        Some("string") if op == Op::Copy => {
            string.map(|one| vec![one]).ok_or_else(|| Stop::Skip("needs a CPU with string instructions (x86-64)".into()))
        }
        Some(other) => Err(Stop::Fail(format!("parameter method must be vector, or string for a copy; it is “{other}”"))),
    }
}

/// Adds up words with the widest vectors that this CPU has, up to so many bytes.
pub(crate) fn reader(most_bytes: f64) -> impl Fn(&[u64]) -> u64 {
    let one = Loop::vectors().into_iter().find(|one| one.vector_bytes() <= most_bytes);
    move |words| one.map_or(0, |one| one.sum(words))
}

/// Measures `op` on one piece of the row's range after the other, with the fastest of the loops that the row allows.
fn walk(s: &mut Session, op: Op) -> Result<(), Stop> {
    if s.params().get("threads").is_some() {
        return threads::measure(s, op);
    }
    let (size, candidates) = (size(s)?, candidates(s.params(), op)?);
    let mut ground = Ground::new(op, size)?;
    let mut pieces = pieces(ground.length);
    let one = fastest(&candidates, |one| pieces.by_ref().take(1).for_each(|piece| ground.step(one, piece)));
    s.work_per_op(((STEP / size_of::<u64>()).min(ground.length) * size_of::<u64>()) as u64);
    s.batches(|ops| {
        pieces.by_ref().take(ops as usize).for_each(|piece| ground.step(one, piece));
        Ok(())
    })?;
    s.counter("vector_bytes", one.vector_bytes());
    Ok(())
}

fn read(s: &mut Session) -> Result<(), Stop> {
    walk(s, Op::Read)
}

fn write(s: &mut Session) -> Result<(), Stop> {
    walk(s, Op::Write)
}

fn copy_halves(s: &mut Session) -> Result<(), Stop> {
    walk(s, Op::Copy)
}

fn sizes() -> Vec<Params> {
    [16 << 10, 256 << 10, 64 << 20].iter().map(|&size: &i64| Params::new().with("size", size)).collect()
}

const fn probe(name: &'static str, texts: [&'static str; 4], run: fn(&mut Session) -> Result<(), Stop>) -> Probe {
    Probe {
        name,
        version: 2,
        lmbench: Some(texts[0]),
        summary: texts[1],
        timed: texts[2],
        pitfalls: texts[3],
        unit: Unit::BytesPerSecond,
        better: Better::Higher,
        nature: Nature::Streams,
        cpus: 1,
        lab: None,
        variants: sizes,
        run,
    }
}

const READ: Probe = probe(
    "memory.read",
    [
        "Mem read",
        "bytes read from memory",
        "adding up the words of a range of `size` bytes with vector loads (of AVX-512, AVX2 or SSE2, whichever is fastest here; NEON), 256 KiB \
         at a time; the counter vector_bytes says which.",
        "the range is in huge pages where madvise may ask for them; a guest's “RAM” range may sit in a large shared cache of the host.",
    ],
    read,
);

const WRITE: Probe = probe(
    "memory.write",
    [
        "Mem write",
        "bytes written to memory",
        "storing a word all over a range of `size` bytes with ordinary vector stores (of AVX-512, AVX2 or SSE2, whichever is fastest here; \
         NEON), 256 KiB at a time; the counter vector_bytes says which.",
        "ordinary stores read each line before they write it, so the memory moves twice the figure.",
    ],
    write,
);

const COPY: Probe = probe(
    "memory.copy",
    [
        "Bcopy (hand)",
        "bytes copied in memory",
        "copying a buffer of half of `size` bytes to another, which begins 33 cache lines further in its page, 256 KiB at a time, with ordinary vector loads and stores (of AVX-512, AVX2 or \
         SSE2; NEON) or with `rep movsb`, whichever is fastest here; the counter vector_bytes says which (0: rep movsb). `method`, where \
         it is given, allows one of the two only: vector or string. Bytes copied are counted once.",
        "lmbench's size is that of one half. Ordinary stores read each line before they write it: the memory moves three times the figure.",
    ],
    copy_halves,
);

/// The primitives of this file.
pub static PROBES: &[Probe] = &[READ, WRITE, COPY, latency::LATENCY];

/// What the memory laboratory measures: the same by more sizes, by number of threads, by stride and kind of page.
pub static LAB_ROWS: &[Probe] = &[
    Probe { lab: Some("memory"), variants: latency::sweep, ..latency::LATENCY },
    Probe { lab: Some("memory"), variants: threads::sweep, ..READ },
    Probe { lab: Some("memory"), variants: threads::sweep, ..WRITE },
    Probe { lab: Some("memory"), variants: copies, ..COPY },
];

/// Copying by number of threads, and on one CPU by method: which instructions copy best at which size.
fn copies() -> Vec<Params> {
    let by_method = threads::SIZES
        .iter()
        .flat_map(|size| ["vector", "string"].map(|method| Params::new().with("size", *size).with("threads", 1i64).with("method", method)));
    threads::sweep().into_iter().chain(by_method).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_allows_the_loops_that_its_method_names() {
        let row = |method: &str| Params::new().with("method", method);
        let of = |params: &Params, op| candidates(params, op).map(|all| all.into_iter().map(Loop::vector_bytes).collect::<Vec<_>>());
        let vectors = of(&Params::new(), Op::Read).unwrap();
        assert!(!vectors.contains(&0.0) && vectors.contains(&16.0));
        assert_eq!(of(&row("vector"), Op::Copy).unwrap(), vectors);
        assert!(of(&row("string"), Op::Copy).is_ok_and(|all| all == [0.0]) || Loop::string().is_none());
        assert!(matches!(of(&row("string"), Op::Write), Err(Stop::Fail(_))));
        assert!(matches!(of(&row("telepathy"), Op::Copy), Err(Stop::Fail(_))));
    }

    #[test]
    fn a_copy_goes_from_one_buffer_to_the_other() {
        let mut ground = Ground::new(Op::Copy, 16 << 10).unwrap_or_else(|stop| panic!("{stop:?}"));
        assert_eq!(ground.length, 1024);
        let source = ground.source.as_mut().unwrap();
        source.words().iter_mut().enumerate().for_each(|(i, word)| *word = i as u64);
        ground.step(Loop::vectors()[0], 0..256);
        let (words, shift) = (ground.range.words(), SHIFT as u64);
        assert!(words[..256].iter().copied().eq(shift..shift + 256) && words[256..].iter().all(|w| *w == 1));
        // An odd number of lines, so that the two do not lie alike in their pages.
        assert!((SHIFT * 8).is_multiple_of(64) && !(SHIFT * 8 / 64).is_multiple_of(2));
    }

    #[test]
    fn each_method_of_copying_has_a_row_of_its_own() {
        let methods: Vec<_> = copies().iter().filter_map(|row| row.text("method").map(str::to_owned)).collect();
        assert_eq!(methods.len(), 2 * threads::SIZES.len());
    }

    #[test]
    fn pieces_cover_the_range_round_and_round() {
        let step = STEP / 8;
        let seen: Vec<_> = pieces(3 * step).take(4).collect();
        assert_eq!(seen, [0..step, step..2 * step, 2 * step..3 * step, 0..step]);
        assert_eq!(pieces(512).take(2).collect::<Vec<_>>(), [0..512, 0..512]);
    }
}
