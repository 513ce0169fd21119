//! A compiler and its flags, as a record names them.

use super::refused::{LONGEST, Refused};

/// Kinds of compilers whose titles rows have (`gcc 12.2.0`). A title is looked for among the compilers that are found
/// here; it is no program's name.
const KINDS: [&str; 3] = ["gcc", "clang", "tcc"];

/// Flags that only say how code is made.
const FLAGS: [&str; 54] = [
    "-O",
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-Os",
    "-Og",
    "-Oz",
    "-Ofast",
    "-g",
    "-g0",
    "-pipe",
    "-w",
    "-m64",
    "-ffast-math",
    "-fno-fast-math",
    "-funroll-loops",
    "-fno-unroll-loops",
    "-fomit-frame-pointer",
    "-fno-omit-frame-pointer",
    "-ftree-vectorize",
    "-fno-tree-vectorize",
    "-fvectorize",
    "-fno-vectorize",
    "-fslp-vectorize",
    "-fno-slp-vectorize",
    "-ftree-slp-vectorize",
    "-fno-tree-slp-vectorize",
    "-finline-functions",
    "-fno-inline-functions",
    "-fno-inline",
    "-fno-builtin",
    "-fno-math-errno",
    "-fmath-errno",
    "-fno-trapping-math",
    "-ftrapping-math",
    "-ffp-contract=off",
    "-ffp-contract=on",
    "-ffp-contract=fast",
    "-funsafe-math-optimizations",
    "-fno-unsafe-math-optimizations",
    "-fno-signed-zeros",
    "-freciprocal-math",
    "-fassociative-math",
    "-fstrict-aliasing",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fPIC",
    "-fpic",
    "-fPIE",
    "-fpie",
    "-fno-pic",
    "-fno-pie",
    "-fno-plt",
];
/// Instructions that `-m` and `-mno-` allow and forbid.
const INSTRUCTIONS: [&str; 22] = [
    "sse",
    "sse2",
    "sse3",
    "ssse3",
    "sse4",
    "sse4.1",
    "sse4.2",
    "avx",
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512cd",
    "avx512dq",
    "avx512vl",
    "fma",
    "bmi",
    "bmi2",
    "popcnt",
    "lzcnt",
    "f16c",
    "vzeroupper",
    "red-zone",
];
/// Flags whose value is the name of a processor or a standard, which names no file.
const NAMED: [&str; 5] = ["-march=", "-mtune=", "-mcpu=", "-std=", "-mfpmath="];
/// The longest of those names.
const LONGEST_NAME: usize = 40;

/// Whether this is a compiler's title.
pub(super) fn title(value: &str) -> Result<(), Refused> {
    let version = |text: &str| {
        text.len() <= 20
            && text
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    value
        .split_once(' ')
        .filter(|(kind, of)| KINDS.contains(kind) && version(of))
        .map(drop)
        .ok_or_else(|| {
            Refused::Value("titles of compilers that are found here, such as gcc 12.2.0".to_owned())
        })
}

/// Whether all of these flags are taken.
pub(super) fn all(value: &str) -> Result<(), Refused> {
    // A line is of flags with one blank between: what is split otherwise here and there is none of ours.
    let fits = value.len() <= LONGEST && value.split(' ').all(one);
    fits.then_some(()).ok_or_else(|| {
        Refused::Value(
            "flags of optimization, of floating point and of the processor (-O2 -march=native -ffast-math)".to_owned(),
        )
    })
}

fn one(flag: &str) -> bool {
    let instructions = |flag: &str| {
        let name = flag.strip_prefix("-m")?;
        Some(INSTRUCTIONS.contains(&name.strip_prefix("no-").unwrap_or(name)))
    };
    let named = |flag: &str| {
        let name = NAMED.iter().find_map(|start| flag.strip_prefix(start))?;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-+.".contains(c);
        Some(
            name.len() <= LONGEST_NAME
                && name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.chars().all(plain),
        )
    };
    FLAGS.contains(&flag) || instructions(flag) == Some(true) || named(flag) == Some(true)
}
