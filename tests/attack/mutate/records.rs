//! Mutated run files, shown in every format, explained, compared, reported and kept.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use fastrand::Rng;
use fingerpost_record::{Run, fixture};
use tempfile::TempDir;

use super::json::{self, Node};
use super::oracle::{Fault, binary, judge, misleading};
use super::{Plan, bytes, keep};

/// The documents that the mutations begin with.
pub struct Bases {
    nodes: Vec<Node>,
}

impl Bases {
    pub fn new() -> Bases {
        let whole = [
            fixture::run(),
            fixture::later_run(),
            fixture::with_everything(),
            fixture::loaded::healthy(),
            fixture::loaded::collapsed(),
        ];
        let runs = whole
            .iter()
            .cloned()
            .chain(whole.iter().cloned().map(small));
        Bases {
            nodes: runs
                .map(|r| Node::from(&serde_json::to_value(r).unwrap()))
                .collect(),
        }
    }

    /// A mutated record's text.
    pub fn mutated(&self, rng: &mut Rng) -> Vec<u8> {
        // The small ones more often: they cost less and are as easily misunderstood.
        let half = self.nodes.len() / 2;
        let base = if rng.u8(..4) == 0 {
            rng.usize(..half)
        } else {
            rng.usize(half..self.nodes.len())
        };
        let other = rng.usize(half..self.nodes.len());
        let document = match rng.u8(..3) {
            0 => json::damage(rng, &self.nodes[base], &self.nodes[other]),
            _ => json::bend(rng, &self.nodes[base]),
        };
        let text = document.render();
        if rng.u8(..6) == 0 {
            bytes::damage(rng, &text)
        } else {
            text
        }
    }
}

/// The run with a few rows and samples of each kind.
fn small(mut run: Run) -> Run {
    let loaded = run
        .measurements
        .iter()
        .position(|m| m.probe.contains("throughput"))
        .unwrap_or(0);
    let rows = run.measurements.len();
    run.measurements = run
        .measurements
        .into_iter()
        .enumerate()
        .filter(|(i, _)| i % 7 == 0 || *i + 5 > rows || i.abs_diff(loaded) < 4)
        .map(|(_, m)| m)
        .collect();
    for m in &mut run.measurements {
        m.processes.truncate(3);
        for p in &mut m.processes {
            p.samples.truncate(4);
            p.disturbed.clear();
        }
    }
    for o in &mut run.observations {
        o.series.iter_mut().for_each(|s| s.points.truncate(4));
    }
    run
}

/// A directory with an archive, an undamaged run and room for one that is damaged.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("runs")).unwrap();
        std::fs::write(
            dir.path().join("good.json"),
            serde_json::to_vec(&fixture::loaded::collapsed()).unwrap(),
        )
        .unwrap();
        Place { dir }
    }

    fn command(&self, words: &[&OsStr]) -> Command {
        let mut command = binary();
        command
            .args(words)
            .env("FINGERPOST_HOME", self.dir.path())
            .current_dir(self.dir.path());
        command
    }

    /// Puts the file where the commands find it, under a plain name or one that is an attack too.
    fn put(&self, rng: &mut Rng, text: &[u8]) -> OsString {
        let name = match rng.u8(..30) {
            0 => OsString::from("a\u{1b}[31mb\u{202e}.json"),
            1 => OsString::from_vec(b"not\xffutf8\x9b.json".to_vec()),
            2 => OsString::from("a,b[c=d].json"),
            _ => OsString::from("bad.json"),
        };
        std::fs::write(self.dir.path().join(&name), text).unwrap();
        name
    }

    fn path(&self, name: &OsStr) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// Every command over a file; `BAD` is it, and `good.json` one that is well.
fn commands() -> Vec<Vec<&'static str>> {
    let mut all = vec![
        vec!["show", "BAD", "--wide"],
        vec!["compare", "BAD", "BAD", "--paired"],
        vec!["report", "BAD", "-o", "out.html"],
        vec!["report", "good.json", "BAD", "-o", "out.html"],
        vec!["archive", "import", "BAD"],
    ];
    let formats = [
        "table",
        "json",
        "csv",
        "markdown",
        "go-bench",
        "openmetrics",
    ];
    all.extend(formats.map(|f| vec!["show", "BAD", "--format", f]));
    all.extend(["table", "json", "markdown"].map(|f| vec!["explain", "BAD", "--format", f]));
    for format in ["table", "json", "csv", "markdown"] {
        all.push(vec!["compare", "BAD", "good.json", "--format", format]);
        all.push(vec!["compare", "good.json", "BAD", "--format", format]);
        all.push(vec!["zerofill", "BAD", "--format", format]);
    }
    all
}

/// The commands that meet a file in the archive.
const KEPT: [&[&str]; 8] = [
    &["archive", "list"],
    &["archive", "list", "--format", "json"],
    &["archive", "verify"],
    &["show", "latest"],
    &["show", "20"],
    &["compare", "latest", "latest"],
    &["explain", "latest"],
    &["zerofill", "latest"],
];

/// A command over a file that the user names; true when it was accepted.
fn named(place: &Place, bad: &OsStr, command: &[&str], input: u64) -> Result<bool, Fault> {
    let words: Vec<&OsStr> = command
        .iter()
        .map(|word| {
            if *word == "BAD" {
                bad
            } else {
                OsStr::new(word)
            }
        })
        .collect();
    let judged = judge(&mut place.command(&words), 2 * input);
    let written = report(&place.path(OsStr::new("out.html")));
    empty(&place.dir.path().join("runs"));
    written.and(judged.map(|e| e.status.success()))
}

/// A command over the archive when others put the file there, past the check on import.
fn kept(place: &Place, text: &[u8], command: &[&str]) -> Result<bool, Fault> {
    let path = place.dir.path().join("runs/20260106T030405Z-0000000e.json");
    std::fs::write(&path, text).unwrap();
    let command: Vec<&OsStr> = command.iter().map(OsStr::new).collect();
    let judged = judge(&mut place.command(&command), text.len() as u64);
    std::fs::remove_file(path).unwrap();
    judged.map(|e| e.status.success())
}

fn attack(place: &Place, rng: &mut Rng, text: &[u8]) -> Result<bool, Fault> {
    if rng.u8(..10) == 0 {
        return kept(place, text, KEPT[rng.usize(..KEPT.len())]);
    }
    let bad = place.put(rng, text);
    let all = commands();
    let judged = named(place, &bad, &all[rng.usize(..all.len())], text.len() as u64);
    std::fs::remove_file(place.path(&bad)).unwrap();
    judged
}

/// Every command on one file.
pub fn replay(text: &[u8]) -> Result<(), Fault> {
    let place = Place::new();
    std::fs::write(place.path(OsStr::new("bad.json")), text).unwrap();
    for command in commands() {
        named(&place, OsStr::new("bad.json"), &command, text.len() as u64)?;
    }
    KEPT.iter()
        .try_for_each(|command| kept(&place, text, command).map(drop))
}

/// The report that a command left, if any, holds no such character either.
fn report(path: &Path) -> Result<(), Fault> {
    let Ok(html) = std::fs::read(path) else {
        return Ok(());
    };
    std::fs::remove_file(path).unwrap();
    misleading(&html).map_or(Ok(()), |what| {
        Err(Fault::new("control", format!("the report has {what}")))
    })
}

fn empty(directory: &Path) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let _ = std::fs::remove_file(entry.path());
    }
}

#[test]
fn mutated_records() {
    let plan = Plan::from_environment();
    let bases = Bases::new();
    let places: Vec<Place> = (0..plan.workers).map(|_| Place::new()).collect();
    plan.run("records", |worker, seed| {
        let text = bases.mutated(&mut Rng::with_seed(seed));
        attack(
            &places[worker as usize],
            &mut Rng::with_seed(seed ^ 0x5eed),
            &text,
        )
        .inspect_err(|_| {
            keep("records", seed, "json", &text);
        })
    });
}
