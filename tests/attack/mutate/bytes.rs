//! Damage to bytes that knows nothing of what they mean, and the strings and numbers that programs trip over.

use fastrand::Rng;

/// Numbers at the ends of the types, beyond them, and such as are none.
pub const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-0.0",
    "-1",
    "1",
    "0.5",
    "-0.5",
    "1e308",
    "-1e308",
    "1.7976931348623157e308",
    "1e309",
    "-1e400",
    "1e999999999",
    "5e-324",
    "1e-300",
    "-1e-300",
    "127",
    "255",
    "256",
    "65536",
    "2147483647",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e18",
    "1e19",
    "NaN",
    "Infinity",
    "-Infinity",
    "0x10",
    "01",
    "1.",
    ".5",
    "+1",
    "1e",
    "--1",
    "0.30000000000000004",
];

/// Texts that a terminal, a browser, a spreadsheet, a shell, a format string or a path would take for something else.
pub const TEXTS: &[&str] = &[
    "",
    " ",
    "\u{1b}[2J\u{1b}]0;title\u{7}",
    "\u{1b}]8;;http://evil.example\u{1b}\\",
    "\u{9b}31m",
    "\u{90}q\u{9c}",
    "\u{7f}\u{8}\u{8}",
    "\u{202e}gnp.exe",
    "\u{2066}\u{2069}",
    "\u{feff}",
    "\u{200b}\u{200d}",
    "\u{ad}",
    "\u{61c}",
    "\u{e0041}\u{e007f}",
    "\u{fff9}a\u{fffb}",
    "\u{2028}\u{2029}",
    "\u{0}",
    "a\0b",
    "\r\n",
    "line\nline",
    "tab\ttab",
    "=cmd|'/c calc'!A0",
    "@SUM(1)",
    "+1",
    "-1",
    "<script>alert(1)</script>",
    "</title><img src=x onerror=alert(1)>",
    "\"'`",
    "|x|y|",
    "[x](javascript:alert(1))",
    "# heading",
    "```",
    "{}",
    "{0:>99999999}",
    "%s%n%n",
    "$(id)",
    "../../../../etc/passwd",
    "/dev/zero",
    "latest",
    "-",
    "--help",
    "ref:",
    "[a=b]",
    "a,b",
    "\u{300}\u{301}\u{302}\u{303}",
    "中文字",
    "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
    "\u{10ffff}",
    "NaN",
    "null",
    "1e999",
];

/// A text of the list, sometimes repeated to great length.
pub fn text(rng: &mut Rng) -> String {
    let text = TEXTS[rng.usize(..TEXTS.len())];
    match rng.u8(..20) {
        0 => text.repeat(rng.usize(1..3000)),
        1 => "x".repeat([199, 200, 201, 65_535, 65_536, 65_537, 200_000][rng.usize(..7)]),
        2 => "é".repeat(rng.usize(1..33_000)),
        _ => text.to_owned(),
    }
}

/// One to six pieces of damage: flipped, inserted, removed and repeated bytes, a cut, a second file behind the first.
pub fn damage(rng: &mut Rng, input: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..rng.usize(1..7) {
        let at = rng.usize(..=bytes.len());
        let end = (at + rng.usize(..64)).min(bytes.len());
        match rng.u8(..12) {
            0 if rng.bool() => bytes.truncate(at),
            1 => bytes.insert(at, rng.u8(..)),
            2 => drop(bytes.drain(at..end)),
            3 => splice(
                &mut bytes,
                at,
                &input[at.min(input.len())..end.min(input.len())].repeat(rng.usize(1..50)),
            ),
            4 => splice(
                &mut bytes,
                at,
                NUMBERS[rng.usize(..NUMBERS.len())].as_bytes(),
            ),
            5 => splice(&mut bytes, at, text(rng).as_bytes()),
            6 => splice(
                &mut bytes,
                at,
                [
                    &b"\xff\xfe"[..],
                    b"\xc0\x80",
                    b"\xed\xa0\x80",
                    b"\xf4\x90\x80\x80",
                    b"\xef\xbb\xbf",
                    b"\x1f\x8b\x08\0",
                ][rng.usize(..6)],
            ),
            7 if rng.u8(..6) == 0 => bytes.extend_from_slice(input),
            8 if rng.u8(..6) == 0 => splice(
                &mut bytes,
                at,
                &[b"[", b"{", b"\"", b" ", b"\n", b"\0"][rng.usize(..6)]
                    .repeat(rng.usize(1..100_000)),
            ),
            _ if at < bytes.len() => {
                bytes[at] = if rng.bool() {
                    rng.u8(..)
                } else {
                    bytes[at] ^ (1 << rng.u8(..8))
                }
            }
            _ => {}
        }
    }
    bytes
}

fn splice(bytes: &mut Vec<u8>, at: usize, what: &[u8]) {
    bytes.splice(at..at, what.iter().copied());
}
