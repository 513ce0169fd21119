//! A ring that programs in the kernel write records into, mapped for reading.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::map::{Mapping, READ_WRITE};
use crate::system::page_bytes;

/// Bits of a record's length: not written yet, thrown away.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;

/// One ring: a page with the reader's position, a page with the writers', and the data, mapped twice in a row.
pub struct Ring {
    reader: Mapping,
    writer: Mapping,
    page: usize,
    bytes: usize,
    _map: OwnedFd,
}

impl Ring {
    /// Maps a ring of this many bytes, a power of two.
    pub fn open(map: OwnedFd, bytes: usize) -> io::Result<Ring> {
        let page = page_bytes() as usize;
        let mapped = |length, protection, offset| {
            Mapping::new(
                Some(map.as_fd()),
                length,
                protection,
                libc::MAP_SHARED,
                offset,
            )
        };
        let (reader, writer) = (
            mapped(page, READ_WRITE, 0)?,
            mapped(page + 2 * bytes, libc::PROT_READ, page)?,
        );
        Ok(Ring {
            reader,
            writer,
            page,
            bytes,
            _map: map,
        })
    }

    fn positions(&self) -> (u64, u64) {
        // SAFETY: each of these pages begins with a position, aligned, which the kernel writes as 64 bits.
        let word = |at: *mut u8| unsafe { (*at.cast::<AtomicU64>()).load(Ordering::Acquire) };
        (word(self.writer.start), word(self.reader.start))
    }

    /// Bytes that wait to be drained.
    pub fn waiting(&self) -> usize {
        let (head, tail) = self.positions();
        (head.wrapping_sub(tail) as usize).min(self.bytes)
    }

    /// The share that waits to be drained.
    pub fn fullness(&self) -> f64 {
        self.waiting() as f64 / self.bytes as f64
    }

    /// Takes the records out that are complete.
    pub fn drain(&mut self, take: &mut impl FnMut(&[u8])) {
        let (head, mut tail) = self.positions();
        while tail < head {
            let at = self.page + (tail as usize & (self.bytes - 1));
            // SAFETY: a record begins within the data's first mapping, at a multiple of 8, with its length.
            let length =
                unsafe { (*self.writer.start.add(at).cast::<AtomicU32>()).load(Ordering::Acquire) };
            let size = (length & !(BUSY | DISCARDED)) as usize;
            if length & BUSY != 0 || size > self.bytes - 8 {
                break;
            }
            if length & DISCARDED == 0 {
                // SAFETY: the second mapping follows the first, so a record that begins in the first lies within both;
                // the kernel writes no more to it before the reader's position has passed it.
                take(unsafe { std::slice::from_raw_parts(self.writer.start.add(at + 8), size) });
            }
            tail += (size as u64 + 8).next_multiple_of(8);
        }
        // SAFETY: as in `positions`; this page is mapped for writing, and its position is ours to write.
        unsafe { (*self.reader.start.cast::<AtomicU64>()).store(tail, Ordering::Release) };
    }
}
