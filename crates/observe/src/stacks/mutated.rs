//! Files of code, lists of functions and packets that were changed at random: reading them ends, and takes no more than
//! the room that there is.
//!
//! `FINGERPOST_ATTACK_CASES` says how many cases of each (2,000 unless given), `FINGERPOST_ATTACK_SEED` the first one's
//! seed.

use super::image::Image;
use super::image::tests::source;
use super::opener::told;
use super::wire::{In, Out};
use super::{jit, maps};

fn variable(name: &str, usual: u64) -> u64 {
    let given = std::env::var(format!("FINGERPOST_ATTACK_{name}")).ok();
    given.map_or(usual, |v| v.parse().expect("a whole number"))
}

/// Numbers that a seed gives (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// Changes some bytes to interesting ones, cuts the end off, or repeats a part.
    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(6) {
            let at = self.below(bytes.len());
            match self.below(8) {
                0 => bytes.truncate(at.max(1)),
                1 => {
                    let part = bytes[at..bytes.len().min(at + 64)].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, part);
                }
                2 => {
                    let wide = [0, 1, u64::MAX, 1 << 63, 0x7fff_ffff, 1 << 40][self.below(6)];
                    let end = bytes.len().min(at + 8);
                    bytes[at..end].copy_from_slice(&wide.to_le_bytes()[..end - at]);
                }
                _ => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, self.next() as u8][self.below(6)],
            }
        }
    }
}

fn each(what: &str, good: &[u8], read: impl Fn(&[u8])) {
    let (cases, seed) = (variable("CASES", 2_000), variable("SEED", 1));
    for seed in seed..seed + cases {
        let mut bytes = good.to_vec();
        Numbers(seed).spoil(&mut bytes);
        // Said of the one that ends the test.
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(&bytes)));
        assert!(told.is_ok(), "{what}: seed {seed}");
    }
}

/// A small library: code, a symbol, a note, tables for unwinding.
fn library() -> Vec<u8> {
    let names =
        b"\0.shstrtab\0.symtab\0.strtab\0.eh_frame\0.eh_frame_hdr\0.note\0.text\0a_function\0";
    let place = |name: &[u8]| {
        let at = names.windows(name.len()).position(|w| w == name).unwrap();
        at as u32
    };
    let mut file = vec![0; 4096];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    for (at, n) in [
        (16, 3_u16),
        (18, 62),
        (52, 64),
        (54, 56),
        (56, 1),
        (58, 64),
        (60, 8),
        (62, 1),
    ] {
        put(at, &n.to_le_bytes());
    }
    put(20, &1_u32.to_le_bytes());
    put(32, &64_u64.to_le_bytes());
    put(40, &512_u64.to_le_bytes());
    put(64, &1_u32.to_le_bytes());
    put(68, &5_u32.to_le_bytes());
    put(96, &4096_u64.to_le_bytes());
    put(104, &4096_u64.to_le_bytes());
    put(200, names);
    let sections: [(&[u8], u32, u64, u64, u32); 8] = [
        (b"\0", 0, 0, 0, 0),
        (b".shstrtab", 3, 200, names.len() as u64, 0),
        (b".symtab", 2, 1100, 48, 3),
        (b".strtab", 3, 200, names.len() as u64, 0),
        (b".eh_frame", 1, 1200, 64, 0),
        (b".eh_frame_hdr", 1, 1300, 20, 0),
        (b".note", 7, 1400, 36, 0),
        (b".text", 1, 2048, 2048, 0),
    ];
    for (n, (name, kind, offset, size, link)) in sections.into_iter().enumerate() {
        let at = 512 + 64 * n;
        put(at, &place(name).to_le_bytes());
        put(at + 4, &kind.to_le_bytes());
        put(at + 16, &offset.to_le_bytes());
        put(at + 24, &offset.to_le_bytes());
        put(at + 32, &size.to_le_bytes());
        put(at + 40, &link.to_le_bytes());
    }
    put(1124, &place(b"a_function").to_le_bytes());
    put(1128, &[0x12, 0, 7, 0]);
    put(1132, &2048_u64.to_le_bytes());
    put(1140, &16_u64.to_le_bytes());
    put(
        1400,
        &[
            4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, b'G', b'N', b'U', 0, 1, 2, 3,
        ],
    );
    file
}

#[test]
fn files_of_code_that_were_changed_are_read_to_their_end() {
    let good = library();
    let room = 1 << 20;
    let read = |bytes: &[u8]| {
        let (source, mut left) = (source(bytes), room);
        let image = Image::read(&source, &mut left);
        let tables = [&image.eh_frame, &image.eh_frame_hdr];
        let taken: usize = tables.into_iter().flatten().map(|t| t.1.len()).sum();
        assert_eq!(taken as u64, room - left);
        image.bias(0x1000, 0);
        image.functions(&source, &[0, 2050, u64::MAX])
    };
    let names = read(&good).expect("a table of symbols");
    assert_eq!(names[1].as_deref(), Some("a_function"));
    each("library", &good, |bytes| drop(read(bytes)));
}

#[test]
fn changed_lists_of_functions_and_mappings_are_read_to_the_end() {
    let list = b"1000 20 one\n1020 5 LazyCompile:*f /srv/app.js:3\n0x2000 ff three\n";
    each("functions", list, |bytes| {
        let names = jit::names(&source(bytes), &[0x1001, 0x1022, 0x2001, u64::MAX]);
        assert_eq!(names.len(), 4);
    });
    let mappings =
        b"5591-55a1 r-xp 00010000 fd:01 77     /usr/sbin/server\n7f00-7f10 r-xp 0 fd:01 78 /a b\n";
    each("mappings", mappings, |bytes| {
        let found = maps::parse(&String::from_utf8_lossy(bytes));
        assert!(found.iter().all(|m| m.start < m.end));
    });
}

#[test]
fn packets_that_were_changed_are_taken_or_not() {
    let mapping = Out::new(b'm').u32(7).u64(1).u64(2).u64(3);
    let mapping = mapping.bytes(b"fd:01").u64(77).bytes(b"name").0;
    assert!(told(In(&mapping), None).is_some());
    each("packet", &mapping, |bytes| drop(told(In(bytes), None)));
}
