//! Memory bandwidth: reading, writing and copying a range of a given size, again and again.
//!
//! The loops are plain arithmetic on words, which the compiler turns into vector instructions; each is compiled twice on x86-64,
//! for the baseline (SSE2, 16 bytes) and for AVX2 (32 bytes), and the better one that the CPU has is used. The counter
//! `vector_bytes` says which, so that a comparison of two hosts shows when it compares two instruction sets.

mod latency;
mod range;
mod threads;

use std::hint::black_box;

use fingerpost_record::{Better, Params, Unit};

use crate::probe::{Nature, Probe};
use crate::session::{Session, Stop};

use range::{Pages, Range};

/// Bytes that one operation moves at most, so that a batch of a large range stays far below a scheduler tick.
const STEP: usize = 64 << 10;

/// The smallest and the largest range.
const SIZES: std::ops::RangeInclusive<i64> = 4096..=1 << 30;

/// Words handled in one turn of a loop: four vectors of 32 bytes, as many independent sums.
const LANES: usize = 16;

/// Compiles a loop for the baseline and, on x86-64, for AVX2, and picks one at run time.
macro_rules! for_each_instruction_set {
    ($(#[$doc:meta])* $name:ident, $wide:ident, $body:ident, ($($arg:ident: $type:ty),*) -> $out:ty) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $wide($($arg: $type),*) -> $out {
            $body($($arg),*)
        }

        $(#[$doc])*
        #[inline(never)]
        pub fn $name($($arg: $type),*) -> $out {
            #[cfg(target_arch = "x86_64")]
            if has_avx2() {
                // SAFETY: the CPU has AVX2.
                return unsafe { $wide($($arg),*) };
            }
            $body($($arg),*)
        }
    };
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// Bytes of one vector register as the loops use it: 32 with AVX2, else 16.
fn vector_bytes() -> f64 {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        return 32.0;
    }
    16.0
}

#[inline(always)]
fn sum_body(words: &[u64]) -> u64 {
    let mut sums = [0u64; LANES];
    let chunks = words.chunks_exact(LANES);
    let rest = chunks.remainder().iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
    for chunk in chunks {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().fold(rest, |total, sum| total.wrapping_add(*sum))
}

/// Stores a value that the compiler does not know: a known one would become a call of memset.
#[inline(always)]
fn fill_body(words: &mut [u64], value: u64) {
    for chunk in words.chunks_exact_mut(LANES) {
        for word in chunk {
            *word = value;
        }
    }
}

/// Copies, and adds a zero that the compiler does not know: a plain copy would become a call of memcpy.
#[inline(always)]
fn copy_body(to: &mut [u64], from: &[u64], zero: u64) {
    for (to, from) in to.chunks_exact_mut(LANES).zip(from.chunks_exact(LANES)) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.wrapping_add(zero);
        }
    }
}

for_each_instruction_set!(
    /// The sum of words, modulo 2⁶⁴.
    sum, sum_wide, sum_body, (words: &[u64]) -> u64
);
for_each_instruction_set!(
    /// Stores `value` in each word, but for the last few of a slice that is no multiple of sixteen.
    fill, fill_wide, fill_body, (words: &mut [u64], value: u64) -> ()
);
for_each_instruction_set!(
    /// Copies words and adds `zero` to each, but for the last few of a slice that is no multiple of sixteen.
    copy, copy_wide, copy_body, (to: &mut [u64], from: &[u64], zero: u64) -> ()
);

fn range(s: &mut Session) -> Result<Range, Stop> {
    let size = s.int("size", *SIZES.start())?;
    if !SIZES.contains(&size) {
        return Err(Stop::Fail(format!("a size of more than {} bytes is not taken", SIZES.end())));
    }
    let mut range = Range::map(size as usize, Pages::HugeIfAllowed)?;
    range.words().fill(1);
    Ok(range)
}

/// The pieces that a range is walked in: its start and end in words, one after the other, round and round.
fn pieces(words: usize) -> impl Iterator<Item = std::ops::Range<usize>> + Clone {
    let step = (STEP / size_of::<u64>()).min(words);
    (0..words / step).map(move |i| i * step..(i + 1) * step).cycle()
}

/// Measures `body` on one piece after the other of `words` words.
fn walk(s: &mut Session, words: usize, mut body: impl FnMut(std::ops::Range<usize>)) -> Result<(), Stop> {
    let mut pieces = pieces(words);
    s.work_per_op(pieces.clone().next().map_or(0, |p| p.len() * size_of::<u64>()) as u64);
    s.batches(|ops| {
        pieces.by_ref().take(ops as usize).for_each(&mut body);
        Ok(())
    })?;
    s.counter("vector_bytes", vector_bytes());
    Ok(())
}

fn read(s: &mut Session) -> Result<(), Stop> {
    if s.params().get("threads").is_some() {
        return threads::measure(s, threads::Op::Read);
    }
    let mut range = range(s)?;
    let words = range.words();
    walk(s, words.len(), |piece| {
        black_box(sum(black_box(&words[piece])));
    })
}

fn write(s: &mut Session) -> Result<(), Stop> {
    if s.params().get("threads").is_some() {
        return threads::measure(s, threads::Op::Write);
    }
    let mut range = range(s)?;
    let words = range.words();
    walk(s, words.len(), |piece| {
        fill(black_box(&mut words[piece]), black_box(7));
    })
}

fn copy_halves(s: &mut Session) -> Result<(), Stop> {
    if s.params().get("threads").is_some() {
        return threads::measure(s, threads::Op::Copy);
    }
    let mut range = range(s)?;
    let words = range.words();
    let (to, from) = words.split_at_mut(words.len() / 2);
    walk(s, to.len(), |piece| {
        copy(black_box(&mut to[piece.clone()]), black_box(&from[piece]), black_box(0));
    })
}

fn sizes() -> Vec<Params> {
    [16 << 10, 256 << 10, 64 << 20].iter().map(|&size: &i64| Params::new().with("size", size)).collect()
}

const fn probe(name: &'static str, texts: [&'static str; 4], run: fn(&mut Session) -> Result<(), Stop>) -> Probe {
    Probe {
        name,
        version: 1,
        lmbench: Some(texts[0]),
        summary: texts[1],
        timed: texts[2],
        pitfalls: texts[3],
        unit: Unit::BytesPerSecond,
        better: Better::Higher,
        nature: Nature::Computes,
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
        "adding up the words of a range of `size` bytes with vector loads (AVX2 where there is it, else SSE2 or NEON), 64 KiB at a time.",
        "the range is in huge pages where madvise may ask for them; a guest's “RAM” range may sit in a large shared cache of the host.",
    ],
    read,
);

const WRITE: Probe = probe(
    "memory.write",
    [
        "Mem write",
        "bytes written to memory",
        "storing a word all over a range of `size` bytes with ordinary vector stores, 64 KiB at a time.",
        "ordinary stores read each line before they write it, so the memory moves twice the figure.",
    ],
    write,
);

const COPY: Probe = probe(
    "memory.copy",
    [
        "Bcopy (hand)",
        "bytes copied in memory",
        "copying one half of a range of `size` bytes to the other with ordinary vector loads and stores, 64 KiB at a time; bytes copied \
         are counted once.",
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
    Probe { lab: Some("memory"), variants: threads::sweep, ..COPY },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loops_read_write_and_copy_every_word() {
        let mut words: Vec<u64> = (0..64).collect();
        assert_eq!(sum(&words), 2016);
        assert_eq!(sum(&words[..19]), 171);
        let mut copied = vec![0; 64];
        copy(&mut copied, &words, 0);
        assert_eq!(copied, words);
        fill(&mut words, 3);
        assert_eq!(words, [3; 64]);
    }

    #[test]
    fn pieces_cover_the_range_round_and_round() {
        let step = STEP / 8;
        let seen: Vec<_> = pieces(3 * step).take(4).collect();
        assert_eq!(seen, [0..step, step..2 * step, 2 * step..3 * step, 0..step]);
        assert_eq!(pieces(512).take(2).collect::<Vec<_>>(), [0..512, 0..512]);
    }
}
