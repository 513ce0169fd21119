//! Memory bandwidth: reading, writing and copying a range of a given size, again and again.
//!
//! There is a loop for every instruction set ([`loops`]); each process tries those that its CPU has on its own range,
//! and measures the fastest. The counter `vector_bytes` says which, so that a comparison of two hosts shows when it
//! compares two instruction sets.

mod buffers;
mod latency;
mod loops;
mod range;
mod threads;

use fingerpost_record::{Better, Params, Unit};

use crate::probe::{self, Exercises, HostDependence, Nature, Probe, rows, table};
use crate::session::{Session, Stop};

use buffers::{Buffers, Op, candidates, size};
use loops::{Loop, fastest};

/// Bytes that one operation moves at most, so that a batch of a large range stays far below a scheduler tick.
const STEP: usize = 256 << 10;

/// The pieces that a range is walked in: its start and end in words, one after the other, round and round.
fn pieces(words: usize) -> impl Iterator<Item = std::ops::Range<usize>> + Clone {
    let step = (STEP / size_of::<u64>()).min(words);
    (0..words / step)
        .map(move |i| i * step..(i + 1) * step)
        .cycle()
}

/// Adds up words with the widest vectors that this CPU has, up to so many bytes.
pub(crate) fn reader(most_bytes: f64) -> impl Fn(&[u64]) -> u64 {
    let one = Loop::vectors()
        .into_iter()
        .find(|one| one.vector_bytes() <= most_bytes);
    move |words| one.map_or(0, |one| one.sum(words))
}

/// Measures `op` on one piece of the row's range after the other, with the fastest of the loops that the row allows.
fn walk(s: &mut Session, op: Op) -> Result<(), Stop> {
    if s.params().get("threads").is_some() {
        return threads::measure(s, op);
    }
    let (size, candidates) = (size(s)?, candidates(s.params(), op)?);
    let mut buffers = Buffers::new(op, size)?;
    let mut pieces = pieces(buffers.length);
    let one = fastest(&candidates, |one| {
        pieces
            .by_ref()
            .take(1)
            .for_each(|piece| buffers.step(one, piece))
    });
    s.work_per_op(((STEP / size_of::<u64>()).min(buffers.length) * size_of::<u64>()) as u64);
    s.batches(|ops| {
        pieces
            .by_ref()
            .take(ops as usize)
            .for_each(|piece| buffers.step(one, piece));
        Ok(())
    })?;
    s.counter("vector_bytes", one.vector_bytes());
    Ok(())
}

/// What the probes of memory share.
const MEMORY: Probe = Probe {
    version: 2,
    depends_on_host: Some(HostDependence::Memory),
    nature: Nature::Streams,
    ..probe::latency(&table::MEMORY, Exercises::Memory)
};

/// What reading, writing and copying share.
const FAMILY: Probe = Probe {
    unit: Unit::BytesPerSecond,
    better: Better::Higher,
    // The good tenth of all processes repeats as their spread lets expect.
    depends_on_host: None,
    variants: || rows("size", [16 << 10, 256 << 10, 64 << 20]),
    ..MEMORY
};

const READ: Probe = Probe {
    name: "memory.read",
    bounds: [1e7, 1e13],
    lmbench: Some("Mem read"),
    summary: "bytes read from memory",
    timed: "adding up the words of a range of `size` bytes with vector loads (of AVX-512, AVX2 or SSE2, whichever is \
        fastest here; NEON), 256 KiB at a time; the counter vector_bytes says which.",
    pitfalls: "the range is in huge pages where madvise may ask for them; a guest's “RAM” range may sit in a large \
        shared cache of the host.",
    run: |s| walk(s, Op::Read),
    ..FAMILY
};

const WRITE: Probe = Probe {
    name: "memory.write",
    bounds: [1e7, 1e13],
    lmbench: Some("Mem write"),
    summary: "bytes written to memory",
    timed: "storing a word all over a range of `size` bytes with ordinary vector stores (of AVX-512, AVX2 or SSE2, \
        whichever is fastest here; NEON), 256 KiB at a time; the counter vector_bytes says which.",
    pitfalls: "ordinary stores read each line before they write it, so the memory moves twice the figure.",
    run: |s| walk(s, Op::Write),
    ..FAMILY
};

const COPY: Probe = Probe {
    name: "memory.copy",
    bounds: [1e7, 1e13],
    lmbench: Some("Bcopy"),
    summary: "bytes copied in memory",
    timed: "copying a buffer of half of `size` bytes to another, which begins 33 cache lines further in its page, 256 \
        KiB at a time, with ordinary vector loads and stores (of AVX-512, AVX2 or SSE2; NEON) or with `rep movsb`, \
        whichever is fastest here; the counter vector_bytes says which (0: rep movsb). `method`, where it is given, \
        allows one of the two only: vector or string. Bytes copied are counted once.",
    pitfalls: "lmbench's size is that of one half. Ordinary stores read each line before they write it: the memory \
        moves three times the figure.",
    run: |s| walk(s, Op::Copy),
    ..FAMILY
};

/// The primitives of this file.
pub static PROBES: &[Probe] = &[latency::LATENCY, READ, WRITE, COPY];

/// What the memory laboratory measures: the same by more sizes, by number of threads, by stride and kind of page.
pub static LAB_ROWS: &[Probe] = &[
    Probe {
        lab: Some("memory"),
        variants: latency::sweep,
        ..latency::LATENCY
    },
    Probe {
        lab: Some("memory"),
        depends_on_host: MEMORY.depends_on_host,
        variants: threads::sweep,
        ..READ
    },
    Probe {
        lab: Some("memory"),
        depends_on_host: MEMORY.depends_on_host,
        variants: threads::sweep,
        ..WRITE
    },
    Probe {
        lab: Some("memory"),
        depends_on_host: MEMORY.depends_on_host,
        variants: copies,
        ..COPY
    },
];

/// Copying by number of threads, and on one CPU by method: which instructions copy best at which size.
fn copies() -> Vec<Params> {
    let by_method = threads::SIZES.iter().flat_map(|size| {
        ["vector", "string"].map(|method| {
            Params::new()
                .with("size", *size)
                .with("threads", 1i64)
                .with("method", method)
        })
    });
    threads::sweep().into_iter().chain(by_method).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_of_copying_has_a_row_of_its_own() {
        let methods: Vec<_> = copies()
            .iter()
            .filter_map(|row| row.text("method").map(str::to_owned))
            .collect();
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
