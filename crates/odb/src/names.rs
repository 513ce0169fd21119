//! The names of one table in memory, made to be found fast: a hash table without chains, whose slots hold the beginning
//! of the name itself, so that most look-ups touch one cache line.
//!
//! What is hashed is the site's own names, which its owner chose; a request only looks up.

/// Bytes of a name that its slot holds.
const HEAD: usize = 16;
/// What an empty slot holds; no value is this.
const EMPTY: u32 = u32::MAX;

/// The first name of a path, taken apart for looking it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'p> {
    /// Its first bytes, zeros behind its end.
    head: [u64; 2],
    length: usize,
    /// The bytes behind those.
    rest: &'p [u8],
}

impl<'p> Name<'p> {
    /// Takes the name that begins at `at`, and tells where it ends: at a slash or at the end of the path.
    #[inline]
    pub(crate) fn cut(path: &'p [u8], at: usize) -> (Name<'p>, usize) {
        let first = word(path, at);
        if let Some(bytes) = end_in(first, path.len() - at) {
            return (
                Name {
                    head: [below(first, bytes), 0],
                    length: bytes,
                    rest: &[],
                },
                at + bytes,
            );
        }
        let second = word(path, at + 8);
        if let Some(bytes) = end_in(second, path.len() - at - 8) {
            return (
                Name {
                    head: [first, below(second, bytes)],
                    length: 8 + bytes,
                    rest: &[],
                },
                at + 8 + bytes,
            );
        }
        let rest = &path[at + HEAD..];
        let rest = rest
            .iter()
            .position(|&b| b == b'/')
            .map_or(rest, |slash| &rest[..slash]);
        (
            Name {
                head: [first, second],
                length: HEAD + rest.len(),
                rest,
            },
            at + HEAD + rest.len(),
        )
    }

    #[inline]
    fn hash(&self) -> usize {
        let mut hash = fold(
            self.head[0] ^ 0x9e37_79b9_7f4a_7c15,
            self.head[1] ^ 0xd1b5_4a32_d192_ed03,
        );
        for chunk in self.rest.chunks(8) {
            hash = fold(hash ^ word(chunk, 0), 0x9e37_79b9_7f4a_7c15);
        }
        hash as usize
    }
}

/// Eight bytes from a place on, which may be the end; zeros behind the end.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    let left = bytes.len() - at;
    match (bytes[at..].first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(word), _) => u64::from_le_bytes(*word),
        _ if left == 0 => 0,
        // The last eight bytes, without those before the place.
        (None, Some(word)) => u64::from_le_bytes(*word) >> (64 - 8 * left),
        (None, None) => bytes[at..]
            .iter()
            .rev()
            .fold(0, |word, &b| (word << 8) | u64::from(b)),
    }
}

/// How many bytes of a word are before a slash or the end, which is `left` bytes away; nothing when it goes on.
#[inline]
fn end_in(word: u64, left: usize) -> Option<usize> {
    // A byte of `different` is zero where there is a slash; the lowest marked byte is the first of them (Mycroft's
    // test).
    let different = word ^ 0x2f2f_2f2f_2f2f_2f2f;
    let marks = different.wrapping_sub(0x0101_0101_0101_0101) & !different & 0x8080_8080_8080_8080;
    let slash = marks.trailing_zeros() as usize / 8;
    (slash < 8 || left < 8).then(|| slash.min(left))
}

/// Where the name that begins at `at` ends.
#[inline]
pub(crate) fn end_of_name(path: &[u8], mut at: usize) -> usize {
    loop {
        match end_in(word(path, at), path.len() - at) {
            Some(bytes) => return at + bytes,
            None => at += 8,
        }
    }
}

/// The lowest bytes of a word.
#[inline]
fn below(word: u64, bytes: usize) -> u64 {
    if bytes >= 8 {
        word
    } else {
        word & ((1 << (8 * bytes)) - 1)
    }
}

/// Multiplies, and folds the upper half onto the lower.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[derive(Clone, Copy)]
struct Slot {
    head: [u64; 2],
    /// The length of the name.
    length: u32,
    /// Where its bytes behind the first ones are.
    rest: u32,
    value: u32,
}

/// Names, each with a number.
pub(crate) struct Names {
    /// Twice as many as there are names, at least, and a power of two.
    slots: Box<[Slot]>,
    rests: Vec<u8>,
}

impl Names {
    /// A table of names without slashes and zero bytes, all different. No value may be the greatest number.
    pub(crate) fn new(names: &[(Vec<u8>, u32)]) -> Names {
        let slot = Slot {
            head: [0; 2],
            length: 0,
            rest: 0,
            value: EMPTY,
        };
        let mut this = Names {
            slots: vec![slot; (names.len() * 2).next_power_of_two().max(2)].into(),
            rests: Vec::new(),
        };
        for (name, value) in names {
            let (cut, _) = Name::cut(name, 0);
            let mask = this.slots.len() - 1;
            let mut at = cut.hash() & mask;
            while this.slots[at].value != EMPTY {
                at = (at + 1) & mask;
            }
            this.slots[at] = Slot {
                head: cut.head,
                length: name.len() as u32,
                rest: this.rests.len() as u32,
                value: *value,
            };
            this.rests.extend_from_slice(cut.rest);
        }
        this
    }

    /// The number of a name.
    #[inline]
    pub(crate) fn get(&self, name: &Name) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = name.hash() & mask;
        loop {
            let slot = &self.slots[at & mask];
            if slot.value == EMPTY {
                return None;
            }
            if slot.head == name.head
                && slot.length as usize == name.length
                && (name.rest.is_empty() || self.rest(slot) == name.rest)
            {
                return Some(slot.value);
            }
            at += 1;
        }
    }

    #[inline]
    fn rest(&self, slot: &Slot) -> &[u8] {
        &self.rests[slot.rest as usize..][..(slot.length as usize).saturating_sub(HEAD)]
    }

    /// All names with their numbers, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Vec<u8>, u32)> + '_ {
        self.slots
            .iter()
            .filter(|slot| slot.value != EMPTY)
            .map(|slot| {
                let mut name: Vec<u8> = slot
                    .head
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .take(slot.length as usize)
                    .collect();
                name.extend_from_slice(self.rest(slot));
                (name, slot.value)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_cut_at_every_slash_whatever_its_length() {
        for length in 0..40 {
            for tail in 0..20 {
                let name = "abcdefghij\u{e9}klmnopqrstuvwxyz0123456789ABCDEF".as_bytes()[..length]
                    .to_vec();
                let path = [&b"x/"[..], &name, &b"/y/"[..], &vec![b'.'; tail]].concat();
                let (cut, end) = Name::cut(&path, 2);
                assert_eq!(end, 2 + length, "{length} {tail}");
                assert_eq!(cut, Name::cut(&name, 0).0, "{length} {tail}");
                assert_eq!(Name::cut(&name, 0).1, length);
                assert_eq!(
                    (end_of_name(&path, 2), end_of_name(&name, 0)),
                    (2 + length, length)
                );
            }
        }
        // Neighbours of the slash, and bytes with the highest bit set, are none.
        assert_eq!(Name::cut(b"a.0\xaf\xae\x80\xff\x01/", 0).1, 8);
    }

    #[test]
    fn every_name_is_found_and_no_other() {
        let names: Vec<(Vec<u8>, u32)> = (0..500u32)
            .map(|i| {
                (
                    format!("{}{i}", "a-very-long-beginning-".repeat(i as usize % 3)).into_bytes(),
                    i,
                )
            })
            .collect();
        let table = Names::new(&names);
        for (name, value) in &names {
            assert_eq!(table.get(&Name::cut(name, 0).0), Some(*value));
            assert_eq!(
                table.get(&Name::cut(&[name, &b"x"[..]].concat(), 0).0),
                None
            );
            assert_eq!(
                table.get(&Name::cut(&name[..name.len() - 1], 0).0),
                names
                    .iter()
                    .find(|n| n.0 == name[..name.len() - 1])
                    .map(|n| n.1)
            );
        }
        let mut all: Vec<_> = table.all().collect();
        all.sort_by_key(|(_, value)| *value);
        assert_eq!(all, names);
        let one = Names::new(&[(b"a".to_vec(), 1)]);
        assert_eq!(
            one.get(&Name::cut(b"a\0", 0).0),
            None,
            "a zero byte is a byte"
        );
        assert_eq!(Names::new(&[]).get(&Name::cut(b"a", 0).0), None);
    }
}
