//! Sums over bytes: one that tells content from other content, and one as fast as the machine reads them, for those who
//! must look at every byte and time everything but that.

/// The sum of all bytes, eight at a time as little-endian numbers, as if zeros followed the last. It costs a fraction
/// of a copy.
#[inline]
pub fn total(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function was compiled for.
        return unsafe { wide(bytes) };
    }
    plain(bytes)
}

/// The same with vectors of 32 bytes. The kernel copies a file's bytes in the widest way that the processor has;
/// whoever looks at them afterwards should not be narrower than that, or his loop would hide what it is to measure.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide(bytes: &[u8]) -> u64 {
    plain(bytes)
}

#[inline(always)]
fn plain(bytes: &[u8]) -> u64 {
    /// Bytes at a time: several vectors, so that no addition waits for the one before.
    const STRIDE: usize = 128;
    let mut lanes = [0u64; STRIDE / 8];
    let (strides, rest) = bytes.as_chunks::<STRIDE>();
    for stride in strides {
        for (lane, word) in lanes.iter_mut().zip(stride.as_chunks::<8>().0) {
            *lane = lane.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    let (words, last) = rest.as_chunks::<8>();
    let sum = words.iter().fold(0u64, |sum, word| {
        sum.wrapping_add(u64::from_le_bytes(*word))
    });
    let last = match bytes.last_chunk::<8>() {
        _ if last.is_empty() => 0,
        // The last eight bytes, without those that are counted already.
        Some(end) => u64::from_le_bytes(*end) >> (64 - 8 * last.len()),
        None => last
            .iter()
            .rev()
            .fold(0, |word, &b| (word << 8) | u64::from(b)),
    };
    lanes
        .into_iter()
        .fold(sum.wrapping_add(last), u64::wrapping_add)
}

/// A sum that differs when any bytes differ, move or are missing.
pub fn checksum(content: &[u8]) -> u64 {
    let (words, rest) = content.as_chunks();
    let mix = |sum: u64, word: u64| {
        (sum ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    };
    let sum = words.iter().fold(content.len() as u64, |sum, word| {
        mix(sum, u64::from_le_bytes(*word))
    });
    rest.iter().fold(sum, |sum, &b| mix(sum, u64::from(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_is_of_every_byte_once() {
        let bytes: Vec<u8> = (0..=255).chain(7..250).chain(3..99).collect();
        for length in (0..300).chain([bytes.len()]) {
            let words = bytes[..length].chunks(8).map(|c| {
                c.iter()
                    .rev()
                    .fold(0u64, |word, &b| (word << 8) | u64::from(b))
            });
            let wanted = words.fold(0, u64::wrapping_add);
            assert_eq!(
                (total(&bytes[..length]), plain(&bytes[..length])),
                (wanted, wanted),
                "{length}"
            );
        }
    }

    #[test]
    fn a_sum_tells_changes_moves_and_cuts() {
        let sums = [
            &b"abcdefgh12345678x"[..],
            b"12345678abcdefghx",
            b"abcdefgh12345678",
            b"abcdefgh12345678y",
            b"",
        ]
        .map(checksum);
        for (i, sum) in sums.iter().enumerate() {
            assert!(!sums[..i].contains(sum));
        }
    }
}
