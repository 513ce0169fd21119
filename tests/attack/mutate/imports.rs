//! Mutated results of other tools: imported, and then shown.

use fastrand::Rng;
use serde_json::json;

use super::json::{self, Node};
use super::oracle::{Fault, binary, judge};
use super::{Plan, bytes, keep};

const LMBENCH: &str = include_str!("lmbench.txt");

fn hyperfine() -> Node {
    let entry = |command: &str| {
        json!({"command": command, "mean": 0.1, "stddev": 0.01, "median": 0.1, "user": 0.05, "system": 0.02,
            "min": 0.09, "max": 0.3, "times": [0.1, 0.2, 0.3, 0.11, 0.12], "memory_usage_byte": [1, 2, 3],
            "exit_codes": [0, 0, 1, null, 0], "parameters": {"n": "5", "dir": "/tmp"}})
    };
    Node::from(&json!({"results": [entry("sleep 0.1"), entry("make -j 2"), entry("cargo build")]}))
}

/// Lines left out, repeated, exchanged, with other numbers and words in them.
fn damaged_lines(rng: &mut Rng) -> Vec<u8> {
    let mut lines: Vec<String> = LMBENCH.lines().map(str::to_owned).collect();
    for _ in 0..rng.usize(1..8) {
        let at = rng.usize(..lines.len());
        match rng.u8(..8) {
            0 => drop(lines.remove(at)),
            1 => {
                let line = lines[at].clone();
                lines.splice(
                    at..at,
                    (0..rng.usize(1..5_000)).map(|i| line.replacen(' ', &format!(" {i}"), 1)),
                );
            }
            2 => lines.swap(at, 0),
            3 => lines[at] += &bytes::text(rng),
            4 => lines[at].insert_str(0, &bytes::text(rng)),
            _ => lines[at] = another_number(rng, &lines[at]),
        }
        if lines.is_empty() {
            lines.push(String::new());
        }
    }
    lines
        .join(if rng.u8(..20) == 0 { "\r" } else { "\n" })
        .into_bytes()
}

fn another_number(rng: &mut Rng, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let numbers: Vec<usize> = (0..words.len())
        .filter(|i| words[*i].parse::<f64>().is_ok())
        .collect();
    let Some(at) = rng.choice(&numbers) else {
        return line.to_owned();
    };
    let other = bytes::NUMBERS[rng.usize(..bytes::NUMBERS.len())];
    words
        .iter()
        .enumerate()
        .map(|(i, w)| if i == *at { other } else { w })
        .collect::<Vec<_>>()
        .join(" ")
}

fn mutated(rng: &mut Rng, hyperfine: &Node) -> (&'static str, Vec<u8>) {
    let (tool, text) = if rng.bool() {
        (
            "hyperfine",
            json::damage(rng, hyperfine, hyperfine).render(),
        )
    } else {
        ("lmbench", damaged_lines(rng))
    };
    (
        tool,
        if rng.u8(..5) == 0 {
            bytes::damage(rng, &text)
        } else {
            text
        },
    )
}

/// How a run that was taken in is shown: it must be a run like any other.
const SHOWN: [&[&str]; 8] = [
    &["show", "latest"],
    &["show", "latest", "--format", "go-bench"],
    &["show", "latest", "--format", "openmetrics"],
    &["show", "latest", "--format", "csv"],
    &["show", "latest", "--format", "json"],
    &["compare", "latest", "latest"],
    &["archive", "verify"],
    &["explain", "latest"],
];

/// Imports a text as what a tool wrote, and shows what came of it; true when it was taken in.
fn attack(said: &str, text: &[u8], shown: &[&[&str]]) -> Result<bool, Fault> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bad.txt"), text).unwrap();
    let command = |words: &[&str]| {
        let mut command = binary();
        command
            .args(words)
            .env("FINGERPOST_HOME", dir.path())
            .current_dir(dir.path());
        command
    };
    let ended = judge(
        &mut command(&["archive", "import", "--from", said, "bad.txt"]),
        text.len() as u64,
    )?;
    if !ended.status.success() {
        return Ok(false);
    }
    let kept: u64 = std::fs::read_dir(dir.path().join("runs"))
        .unwrap()
        .flatten()
        .map(|e| e.metadata().unwrap().len())
        .sum();
    shown
        .iter()
        .try_for_each(|words| judge(&mut command(words), 2 * kept).map(drop))
        .map(|()| true)
}

/// Everything that can be done with one file.
pub fn replay(tool: &str, text: &[u8]) -> Result<(), Fault> {
    attack(tool, text, &SHOWN).map(drop)
}

#[test]
fn mutated_imports() {
    let base = hyperfine();
    Plan::from_environment().run("imports", |_, seed| {
        let mut rng = Rng::with_seed(seed);
        let (tool, text) = mutated(&mut rng, &base);
        // Sometimes as what another tool wrote.
        let said = if rng.u8(..5) == 0 {
            ["fingerpost", "hyperfine", "lmbench"][rng.usize(..3)]
        } else {
            tool
        };
        attack(said, &text, &[SHOWN[rng.usize(..SHOWN.len())]])
            .inspect_err(|_| drop(keep(&format!("imports-{tool}"), seed, "txt", &text)))
    });
}
