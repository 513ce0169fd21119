//! What a row walks through: its size, its memory, and the loops that it allows.

use std::hint::black_box;

use fingerpost_record::Params;

use super::loops::Loop;
use super::range::{Pages, Range};
use crate::session::{Session, Stop};

/// The smallest and the largest range.
const SIZES: std::ops::RangeInclusive<i64> = 4096..=1 << 30;

/// The row's size in bytes, checked.
pub(super) fn size(s: &Session) -> Result<usize, Stop> {
    match s.int("size", *SIZES.start())? {
        size if SIZES.contains(&size) => Ok(size as usize),
        _ => Err(Stop::Fail(format!(
            "a size of more than {} bytes is not taken",
            SIZES.end()
        ))),
    }
}

/// What is done with the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Adding up its words.
    Read,
    /// Storing a word all over it.
    Write,
    /// Copying another range of the same length to it.
    Copy,
}

/// Words by which the source of a copy lies further into its page than the target: 33 lines. Between equal places in a
/// page, and between places an even number of lines apart, loads wait for stores that they have nothing to do with: a
/// fifth of the rate within the first-level cache. A program's two buffers seldom lie so.
const SHIFT: usize = 33 * 64 / size_of::<u64>();

/// Memory to do something with: one range, or for a copy two, as a program has two buffers.
pub(super) struct Buffers {
    op: Op,
    /// What is read, or written.
    pub(super) range: Range,
    /// What is copied from.
    pub(super) source: Option<Range>,
    /// Words that are walked through.
    pub(super) length: usize,
}

impl Buffers {
    /// Fresh memory for `op`, written once: `size` bytes, for a copy half of them on either side.
    pub(super) fn new(op: Op, size: usize) -> Result<Buffers, Stop> {
        let bytes = if op == Op::Copy { size / 2 } else { size };
        let filled = |bytes| -> Result<Range, Stop> {
            let mut range = Range::map(bytes, Pages::HugeIfAllowed)?;
            range.words().fill(1);
            Ok(range)
        };
        let source = if op == Op::Copy {
            Some(filled(bytes + SHIFT * size_of::<u64>())?)
        } else {
            None
        };
        Ok(Buffers {
            op,
            range: filled(bytes)?,
            source,
            length: bytes / size_of::<u64>(),
        })
    }

    /// Reads a piece with `one`, writes it, or copies to it.
    #[inline(always)]
    pub(super) fn step(&mut self, one: Loop, piece: std::ops::Range<usize>) {
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

/// The loops that a row allows: those of `method` where it names one, else all that can do what is to be done.
pub(super) fn candidates(params: &Params, op: Op) -> Result<Vec<Loop>, Stop> {
    let string = if op == Op::Copy { Loop::string() } else { None };
    match params.text("method") {
        None => Ok(Loop::vectors().into_iter().chain(string).collect()),
        Some("vector") => Ok(Loop::vectors()),
        Some("string") if op == Op::Copy => string
            .map(|one| vec![one])
            .ok_or_else(|| Stop::Skip("needs a CPU with string instructions (x86-64)".into())),
        Some(other) => Err(Stop::Fail(format!(
            "parameter method must be vector, or string for a copy; it is “{other}”"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_allows_the_loops_that_its_method_names() {
        let row = |method: &str| Params::new().with("method", method);
        let of = |params: &Params, op| {
            candidates(params, op)
                .map(|all| all.into_iter().map(Loop::vector_bytes).collect::<Vec<_>>())
        };
        let vectors = of(&Params::new(), Op::Read).unwrap();
        assert!(!vectors.contains(&0.0) && vectors.contains(&16.0));
        assert_eq!(of(&row("vector"), Op::Copy).unwrap(), vectors);
        assert!(
            of(&row("string"), Op::Copy).is_ok_and(|all| all == [0.0]) || Loop::string().is_none()
        );
        assert!(matches!(of(&row("string"), Op::Write), Err(Stop::Fail(_))));
        assert!(matches!(
            of(&row("telepathy"), Op::Copy),
            Err(Stop::Fail(_))
        ));
    }

    #[test]
    fn a_copy_goes_from_one_buffer_to_the_other() {
        let mut buffers =
            Buffers::new(Op::Copy, 16 << 10).unwrap_or_else(|stop| panic!("{stop:?}"));
        assert_eq!(buffers.length, 1024);
        let source = buffers.source.as_mut().unwrap();
        source
            .words()
            .iter_mut()
            .enumerate()
            .for_each(|(i, word)| *word = i as u64);
        buffers.step(Loop::vectors()[0], 0..256);
        let (words, shift) = (buffers.range.words(), SHIFT as u64);
        assert!(
            words[..256].iter().copied().eq(shift..shift + 256)
                && words[256..].iter().all(|w| *w == 1)
        );
        // An odd number of lines, so that the two do not lie alike in their pages.
        assert!((SHIFT * 8).is_multiple_of(64) && !(SHIFT * 8 / 64).is_multiple_of(2));
    }
}
