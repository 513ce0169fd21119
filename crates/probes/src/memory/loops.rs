//! The loops that read, write and copy memory, one per instruction set, and the choice among those that this CPU has.
//!
//! Which is fastest depends on the CPU and on the cache that the range lies in: on one Sapphire Rapids core vectors of
//! 64 bytes copy a fifth faster than vectors of 32 within the first-level cache, and 5 % slower than the string
//! instruction within the second. So the loops are tried on the range itself, and the fastest is measured.

use std::hint::black_box;

use crate::session::now_ns;

/// Words handled in one turn of a loop. A slice that is no multiple of these leaves its last words alone, but for
/// reading.
pub const TURN_WORDS: usize = 64;

/// How often each loop is tried when one is chosen, and for how long each time, in nanoseconds.
const TRIALS: usize = 7;
const TRIAL_NS: u64 = 25_000;

/// A way to walk through memory that this CPU is able to take. It can only be had from [`Loop::vectors`] and
/// [`Loop::string`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop(Kind);

/// By the bytes of one register as the loop uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    /// What every CPU of the architecture has.
    Baseline = 16,
    #[cfg(target_arch = "x86_64")]
    Avx2 = 32,
    #[cfg(target_arch = "x86_64")]
    Avx512 = 64,
    /// `rep movsb`, which copies only.
    #[cfg(target_arch = "x86_64")]
    String = 0,
}

impl Loop {
    /// Every loop of vectors that this CPU has, the widest first.
    pub fn vectors() -> Vec<Loop> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512f") {
                all.push(Loop(Kind::Avx512));
            }
            if std::arch::is_x86_feature_detected!("avx2") {
                all.push(Loop(Kind::Avx2));
            }
        }
        all.push(Loop(Kind::Baseline));
        all
    }

    /// The loop that leaves copying to the CPU's string instruction, where there is one. It only copies.
    pub fn string() -> Option<Loop> {
        #[cfg(target_arch = "x86_64")]
        return Some(Loop(Kind::String));
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// Bytes of one register as the loop uses it; 0 for the string instruction, which has none.
    pub fn vector_bytes(self) -> f64 {
        f64::from(self.0 as u8)
    }

    /// The sum of words, modulo 2⁶⁴.
    #[inline(never)]
    pub fn sum(self, words: &[u64]) -> u64 {
        match self.0 {
            // SAFETY: `vectors` gives these only to CPUs that have the instructions.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { wide::sum_512(words) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { wide::sum_256(words) },
            _ => sum_body(words),
        }
    }

    /// Stores `value` in each word.
    #[inline(never)]
    pub fn fill(self, words: &mut [u64], value: u64) {
        match self.0 {
            // SAFETY: `vectors` gives these only to CPUs that have the instructions.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { wide::fill_512(words, value) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { wide::fill_256(words, value) },
            _ => fill_body(words, value),
        }
    }

    /// Copies as many words as the shorter of the two slices has.
    #[inline(never)]
    pub fn copy(self, to: &mut [u64], from: &[u64]) {
        match self.0 {
            // SAFETY: `vectors` gives these only to CPUs that have the instructions.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { wide::copy_512(to, from) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { wide::copy_256(to, from, black_box(0)) },
            #[cfg(target_arch = "x86_64")]
            Kind::String => wide::copy_string(to, from),
            Kind::Baseline => copy_body(to, from, black_box(0)),
        }
    }
}

/// The loop with which `turn` does most in a time: each is tried several times in turn, and the medians decide.
pub fn fastest(among: &[Loop], mut turn: impl FnMut(Loop)) -> Loop {
    let mut costs = vec![[f64::INFINITY; TRIALS]; among.len()];
    for trial in 0..TRIALS {
        for (one, costs) in among.iter().zip(&mut costs) {
            let (begin, mut turns) = (now_ns(), 0);
            let ns = loop {
                turn(*one);
                turns += 1;
                let ns = now_ns() - begin;
                if ns >= TRIAL_NS {
                    break ns;
                }
            };
            costs[trial] = ns as f64 / f64::from(turns);
        }
    }
    costs
        .iter_mut()
        .for_each(|costs| costs.sort_by(f64::total_cmp));
    let by_median = among
        .iter()
        .zip(&costs)
        .min_by(|(_, a), (_, b)| a[TRIALS / 2].total_cmp(&b[TRIALS / 2]));
    by_median.map_or(Loop(Kind::Baseline), |(one, _)| *one)
}

#[inline(always)]
fn sum_body(words: &[u64]) -> u64 {
    let mut sums = [0u64; 16];
    let chunks = words.chunks_exact(16);
    let rest = chunks
        .remainder()
        .iter()
        .fold(0u64, |sum, word| sum.wrapping_add(*word));
    for chunk in chunks {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter()
        .fold(rest, |total, sum| total.wrapping_add(*sum))
}

/// Stores a value that the compiler does not know: a known one would become a call of memset.
#[inline(always)]
fn fill_body(words: &mut [u64], value: u64) {
    for chunk in words.chunks_exact_mut(TURN_WORDS) {
        for word in chunk {
            *word = value;
        }
    }
}

/// Copies, and adds a zero that the compiler does not know: a plain copy would become a call of memcpy.
#[inline(always)]
fn copy_body(to: &mut [u64], from: &[u64], zero: u64) {
    for (to, from) in to
        .chunks_exact_mut(TURN_WORDS)
        .zip(from.chunks_exact(TURN_WORDS))
    {
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.wrapping_add(zero);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::asm;
    use std::arch::x86_64::*;

    use super::{TURN_WORDS, copy_body, fill_body, sum_body};

    /// Words of a vector of 64 bytes, and vectors of one turn.
    const WORDS: usize = 8;
    const VECTORS: usize = TURN_WORDS / WORDS;

    #[target_feature(enable = "avx2")]
    pub fn sum_256(words: &[u64]) -> u64 {
        sum_body(words)
    }

    #[target_feature(enable = "avx2")]
    pub fn fill_256(words: &mut [u64], value: u64) {
        fill_body(words, value);
    }

    #[target_feature(enable = "avx2")]
    pub fn copy_256(to: &mut [u64], from: &[u64], zero: u64) {
        copy_body(to, from, zero);
    }

    // Written by hand from here on: with these instructions at hand compilers still choose vectors of 32 bytes.

    #[target_feature(enable = "avx512f")]
    pub fn sum_512(words: &[u64]) -> u64 {
        let mut sums = [_mm512_setzero_si512(); VECTORS];
        let turns = words.chunks_exact(TURN_WORDS);
        let rest = turns
            .remainder()
            .iter()
            .fold(0u64, |sum, word| sum.wrapping_add(*word));
        for turn in turns {
            for (i, sum) in sums.iter_mut().enumerate() {
                // SAFETY: a turn has VECTORS vectors.
                *sum = _mm512_add_epi64(*sum, unsafe {
                    _mm512_loadu_si512(turn.as_ptr().add(i * WORDS).cast())
                });
            }
        }
        sums.iter().fold(rest, |total, sum| {
            total.wrapping_add(_mm512_reduce_add_epi64(*sum) as u64)
        })
    }

    #[target_feature(enable = "avx512f")]
    pub fn fill_512(words: &mut [u64], value: u64) {
        let vector = _mm512_set1_epi64(value as i64);
        for turn in words.chunks_exact_mut(TURN_WORDS) {
            for i in 0..VECTORS {
                // SAFETY: a turn has VECTORS vectors.
                unsafe { _mm512_storeu_si512(turn.as_mut_ptr().add(i * WORDS).cast(), vector) };
            }
        }
    }

    /// In assembly: a compiler sees that this is a copy, and makes of it what it takes for a better one.
    #[target_feature(enable = "avx512f")]
    pub fn copy_512(to: &mut [u64], from: &[u64]) {
        let turns = to.len().min(from.len()) / TURN_WORDS;
        if turns == 0 {
            return;
        }
        // SAFETY: both slices have so many turns of 512 bytes, and do not overlap, one being borrowed alone.
        unsafe {
            asm!(
                "2:",
                "vmovdqu64 zmm16, [{from}]",
                "vmovdqu64 zmm17, [{from} + 64]",
                "vmovdqu64 zmm18, [{from} + 128]",
                "vmovdqu64 zmm19, [{from} + 192]",
                "vmovdqu64 zmm20, [{from} + 256]",
                "vmovdqu64 zmm21, [{from} + 320]",
                "vmovdqu64 zmm22, [{from} + 384]",
                "vmovdqu64 zmm23, [{from} + 448]",
                "vmovdqu64 [{to}], zmm16",
                "vmovdqu64 [{to} + 64], zmm17",
                "vmovdqu64 [{to} + 128], zmm18",
                "vmovdqu64 [{to} + 192], zmm19",
                "vmovdqu64 [{to} + 256], zmm20",
                "vmovdqu64 [{to} + 320], zmm21",
                "vmovdqu64 [{to} + 384], zmm22",
                "vmovdqu64 [{to} + 448], zmm23",
                "add {from}, 512",
                "add {to}, 512",
                "dec {turns}",
                "jnz 2b",
                from = inout(reg) from.as_ptr() => _,
                to = inout(reg) to.as_mut_ptr() => _,
                turns = inout(reg) turns => _,
                out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
                out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _,
                options(nostack),
            );
        }
    }

    pub fn copy_string(to: &mut [u64], from: &[u64]) {
        let bytes = to.len().min(from.len()) * size_of::<u64>();
        // SAFETY: both slices have so many bytes, and do not overlap, one being borrowed alone; every x86-64 CPU has
        // the instruction, and the calling convention keeps the direction flag clear.
        unsafe {
            asm!(
                "rep movsb",
                inout("rcx") bytes => _,
                inout("rdi") to.as_mut_ptr() => _,
                inout("rsi") from.as_ptr() => _,
                options(nostack, preserves_flags)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copying() -> Vec<Loop> {
        Loop::vectors().into_iter().chain(Loop::string()).collect()
    }

    #[test]
    fn every_loop_reads_writes_and_copies_every_word() {
        for one in Loop::vectors() {
            let mut words: Vec<u64> = (0..256).collect();
            assert_eq!(one.sum(&words), 255 * 128, "{one:?}");
            assert_eq!(one.sum(&words[..19]), 171, "{one:?}");
            one.fill(&mut words[64..], 3);
            assert!(
                words[..64].iter().copied().eq(0..64) && words[64..].iter().all(|w| *w == 3),
                "{one:?}"
            );
        }
        for one in copying() {
            let words: Vec<u64> = (0..256).collect();
            let mut copied = vec![0; 256];
            one.copy(&mut copied[64..], &words[..192]);
            assert!(
                copied[..64].iter().all(|w| *w == 0) && copied[64..] == words[..192],
                "{one:?}"
            );
        }
    }

    #[test]
    fn the_loop_that_does_most_in_a_time_is_chosen() {
        let all = copying();
        for wanted in &all {
            let until = |ns: u64| {
                let begin = now_ns();
                while now_ns() - begin < ns {
                    std::hint::spin_loop();
                }
            };
            assert_eq!(
                fastest(&all, |one| until(if one == *wanted {
                    1_000
                } else {
                    50_000
                })),
                *wanted
            );
        }
    }

    #[test]
    fn widths_fall_and_the_string_instruction_has_none() {
        let widths: Vec<f64> = Loop::vectors()
            .into_iter()
            .map(Loop::vector_bytes)
            .collect();
        assert!(
            widths.windows(2).all(|w| w[0] > w[1]) && widths.last() == Some(&16.0),
            "{widths:?}"
        );
        assert!(Loop::string().is_none_or(|one| one.vector_bytes() == 0.0));
    }
}
