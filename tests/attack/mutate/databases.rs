//! Mutated object databases of every engine, verified, listed, read, exported and written to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fastrand::Rng;
use tempfile::TempDir;

use super::oracle::{Fault, binary, judge};
use super::{Plan, keep};

const STORES: [&str; 6] = [
    "lmdb",
    "lmdb-flat",
    "sqlite",
    "sqlite-flat",
    "redb",
    "redb-flat",
];
const PAGE: usize = 4096;
/// A file that is only written to may grow by what the engine sets aside.
const GROWTH: u64 = 64 << 20;

fn site(words: &[&str]) -> Command {
    let mut command = binary();
    command.arg("site").args(words);
    command
}

/// The databases that the mutations begin with.
struct Bases(Vec<Vec<u8>>);

impl Bases {
    fn new() -> Bases {
        let base = TempDir::new().unwrap();
        let dir = base.path().join("site");
        for i in 0..60 {
            let folder = dir.join(format!("section{}/part{}", i % 5, i % 3));
            fs::create_dir_all(&folder).unwrap();
            fs::write(
                folder.join(format!("page{i}.html")),
                format!("page {i} ").repeat(i * i % 900 + 1),
            )
            .unwrap();
        }
        fs::write(dir.join("large.txt"), "large ".repeat(5000)).unwrap();
        Bases(
            STORES
                .map(|store| made(&dir, &base.path().join(store), store))
                .to_vec(),
        )
    }
}

fn made(dir: &Path, file: &Path, store: &str) -> Vec<u8> {
    let made = site(&["import", "--store", store])
        .arg(dir)
        .arg(file)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    fs::read(file).unwrap()
}

/// Damage of the kinds that engines meet: bits, numbers where pages keep theirs, pages in the place of others, a file
/// cut short.
fn damage(rng: &mut Rng, base: &[u8]) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for _ in 0..rng.usize(1..9) {
        let pages = bytes.len().div_ceil(PAGE).max(1);
        let page = rng.usize(..pages) * PAGE;
        // The head of a page more often: what is there leads to the rest.
        let within = if rng.bool() {
            rng.usize(..80)
        } else {
            rng.usize(..PAGE)
        };
        let at = (page + within).min(bytes.len().saturating_sub(8));
        match rng.u8(..10) {
            0 if rng.u8(..4) == 0 => bytes.truncate(at.max(24)),
            1 => {
                let from = rng.usize(..pages) * PAGE;
                let copy = bytes[from..(from + PAGE).min(bytes.len())].to_vec();
                let end = (page + copy.len()).min(bytes.len());
                bytes[page..end].copy_from_slice(&copy[..end - page]);
            }
            2 => put(&mut bytes, at, &rng.u16(..).to_le_bytes()),
            3 => put(
                &mut bytes,
                at,
                &[0, 1, 0x7fff_ffff, u32::MAX, rng.u32(..), rng.u32(..64)][rng.usize(..6)]
                    .to_le_bytes(),
            ),
            4 => put(
                &mut bytes,
                at,
                &[0, 1, i64::MAX as u64, u64::MAX, rng.u64(..), rng.u64(..64)][rng.usize(..6)]
                    .to_le_bytes(),
            ),
            5 => put(&mut bytes, at, &vec![rng.u8(..); rng.usize(1..64)]),
            _ => put(&mut bytes, at, &[rng.u8(..)]),
        }
    }
    bytes
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    let end = (at + what.len()).min(bytes.len());
    if at < end {
        bytes[at..end].copy_from_slice(&what[..end - at]);
    }
}

/// Puts a file through the commands; true when it was found whole, or could be listed.
fn attack(rng: &mut Rng, dir: &Path, bytes: &[u8]) -> Result<bool, Fault> {
    let (file, out) = (dir.join("odb"), dir.join("out"));
    let name = file.to_str().unwrap();
    fs::write(&file, bytes).unwrap();
    let length = bytes.len() as u64;
    let verified = judge(&mut site(&["verify", name]), length)?
        .status
        .success();
    let listed = judge(
        &mut site(&[
            "ls",
            name,
            ["", "section1", "section2/part0"][rng.usize(..3)],
        ]),
        length,
    )?
    .status
    .success();
    let page = ["large.txt", "section1/part1/page1.html", "none"][rng.usize(..3)];
    match rng.u8(..2) {
        0 => match judge(&mut site(&["get", name, page]), length) {
            // A cell is given as it is.
            Err(fault) if fault.kind == "control" => {}
            other => drop(other?),
        },
        _ => drop(judge(site(&["export", name]).arg(&out), length)?),
    }
    let _ = fs::remove_dir_all(&out);
    if fs::read(&file).unwrap() != bytes {
        return Err(Fault::new(
            "memory",
            "a file that was only read was changed",
        ));
    }
    if rng.u8(..3) == 0 {
        judge(
            &mut site(&["put", name, "new/page", "/proc/self/cmdline"]),
            length,
        )?;
        let after = fs::metadata(&file).unwrap().len();
        if after > 2 * length + GROWTH {
            return Err(Fault::new(
                "memory",
                format!("a file of {length} bytes grew to {after}"),
            ));
        }
    }
    Ok(verified || listed)
}

/// Cases of one engine, which has two of the stores.
fn mutated(engine: usize, kind: &str) {
    let bases = Bases::new();
    Plan::from_environment().share(3).run(kind, |_, seed| {
        let mut rng = Rng::with_seed(seed);
        let store = 2 * engine + rng.usize(..2);
        let bytes = damage(&mut rng, &bases.0[store]);
        let dir = TempDir::new().unwrap();
        attack(&mut rng, dir.path(), &bytes).map_err(|fault| {
            let kept: PathBuf = keep(&format!("databases-{}", STORES[store]), seed, "odb", &bytes);
            Fault::new(fault.kind, format!("{} ({})", fault.text, kept.display()))
        })
    });
}

#[test]
fn mutated_databases_lmdb() {
    mutated(0, "databases-lmdb");
}

#[test]
fn mutated_databases_sqlite() {
    mutated(1, "databases-sqlite");
}

#[test]
fn mutated_databases_redb() {
    mutated(2, "databases-redb");
}
