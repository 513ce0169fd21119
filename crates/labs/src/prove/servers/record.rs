//! Trials in a file: three lines of JSON each (what was planted, both sides' runs), so that rules can be worked on
//! without a load.
//!
//! The file may come from elsewhere. It is read line by line within bounds, and each run goes through the same checks
//! as a run file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use fingerpost_record::{Run, bounds, load, open};
use serde::{Deserialize, Serialize};

use super::score::Result as Verdict;
use super::strength::Outline;
use super::trial::Taken;

/// The format's name, in each trial's first line.
const FORMAT: &str = "fingerpost/trial/1";
/// The longest line. A side of a trial is about a megabyte.
const LONGEST: u64 = 16 << 20;
/// The most trials of a file.
const MOST: usize = 10_000;
/// The longest first line of a trial.
const LONGEST_HEAD: usize = 64 << 10;

/// The first line of a trial.
#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    outline: Outline,
    seconds: f64,
    /// Why there are no runs; with runs there is none, and two lines follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    without: Option<(Verdict, String)>,
}

/// Appends a trial.
///
/// # Errors
/// The system's.
pub fn write(out: &mut dyn Write, taken: &Taken) -> io::Result<()> {
    let head = Head {
        format: FORMAT.to_owned(),
        outline: taken.outline.clone(),
        seconds: taken.seconds,
        without: taken.result.as_ref().err().cloned(),
    };
    serde_json::to_writer(&mut *out, &head)?;
    out.write_all(b"\n")?;
    for run in taken.result.iter().flatten() {
        serde_json::to_writer(&mut *out, run)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Reads a file's trials one after another and hands each over.
///
/// # Errors
/// One sentence: what is wrong, and in which line. What stood before it was handed over.
pub fn read(path: &Path, each: &mut dyn FnMut(Taken)) -> Result<usize, String> {
    let name = path.display().to_string();
    let opened = open::regular(path).map_err(|e| format!("cannot read {name}: {e}"))?;
    read_from(opened.file, &name, each)
}

/// As [`read`], from anything; `name` is what errors call it.
///
/// # Errors
/// As [`read`].
pub fn read_from(
    reader: impl Read,
    name: &str,
    each: &mut dyn FnMut(Taken),
) -> Result<usize, String> {
    let mut lines = Lines {
        reader: BufReader::new(reader),
        number: 0,
        name,
    };
    let mut count = 0;
    while let Some(line) = lines.next()? {
        let head = head(&line).map_err(|why| lines.wrong(&why))?;
        let result = match head.without {
            Some(without) => Err(without),
            None => {
                let mut run = || -> Result<Run, String> {
                    let line = lines
                        .next()?
                        .ok_or_else(|| lines.wrong("it ends within a trial"))?;
                    load::from_slice(&line, &format!("line {} of {name}", lines.number))
                        .map_err(|e| e.to_string())
                };
                Ok([run()?, run()?])
            }
        };
        each(Taken {
            outline: head.outline,
            seconds: head.seconds,
            result,
        });
        count += 1;
        if count > MOST {
            return Err(lines.wrong("it has more trials than are ever recorded"));
        }
    }
    Ok(count)
}

fn head(line: &[u8]) -> Result<Head, String> {
    if line.len() > LONGEST_HEAD {
        return Err("the line is longer than the first of a trial can be".to_owned());
    }
    bounds::check(line)?;
    let head: Head = serde_json::from_slice(line)
        .map_err(|e| format!("it is not the first line of a trial: {e}"))?;
    if head.format != FORMAT {
        return Err(format!(
            "its format is not {FORMAT}; use the version that wrote it"
        ));
    }
    let sane = |n: f64| n.is_finite() && (0.0..1e9).contains(&n);
    let numbers = head
        .outline
        .planted
        .iter()
        .all(|p| sane(p.target) && sane(p.magnitude) && p.adds.is_none_or(sane))
        && sane(head.seconds);
    if !numbers || head.outline.planted.is_empty() || head.outline.planted.len() > 2 {
        return Err("it says something that cannot be".to_owned());
    }
    Ok(head)
}

struct Lines<'a, R> {
    reader: BufReader<R>,
    number: usize,
    name: &'a str,
}

impl<R: Read> Lines<'_, R> {
    fn wrong(&self, why: &str) -> String {
        format!("line {} of {}: {why}", self.number, self.name)
    }

    /// The next line that is not empty; nothing at the end.
    fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        loop {
            let mut line = Vec::new();
            self.number += 1;
            let read = (&mut self.reader)
                .take(LONGEST + 1)
                .read_until(b'\n', &mut line);
            match read.map_err(|e| self.wrong(&e.to_string()))? {
                0 => return Ok(None),
                n if n as u64 > LONGEST => {
                    return Err(self.wrong("the line is longer than any that is recorded"));
                }
                _ => {}
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }
}

/// Makes the file that trials are recorded in; one that is there already is appended to.
///
/// # Errors
/// The system's.
pub fn create(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::servers::set::Set;
    use crate::prove::servers::strength::{candidates, draw};
    use fingerpost_record::SCHEMA;

    fn run(id: &str) -> Run {
        Run {
            schema: SCHEMA.to_owned(),
            id: id.to_owned(),
            complete: true,
            ..Run::default()
        }
    }

    fn trials() -> Vec<Taken> {
        let outlines = draw(1, 3, &candidates(&[Set::Plants]));
        let result = |i| {
            if i == 1 {
                Err((Verdict::Skipped, "not here".to_owned()))
            } else {
                Ok([run("a"), run("b")])
            }
        };
        outlines
            .into_iter()
            .enumerate()
            .map(|(i, outline)| Taken {
                outline,
                seconds: 7.5,
                result: result(i),
            })
            .collect()
    }

    fn written() -> Vec<u8> {
        let mut bytes = Vec::new();
        trials()
            .iter()
            .for_each(|taken| write(&mut bytes, taken).unwrap());
        bytes
    }

    fn read_all(bytes: &[u8]) -> (Vec<Taken>, Result<usize, String>) {
        let mut all = Vec::new();
        let result = read_from(bytes, "trials.jsonl", &mut |taken| all.push(taken));
        (all, result)
    }

    #[test]
    fn what_is_recorded_is_read_back() {
        let (read, result) = read_all(&written());
        assert_eq!((read, result), (trials(), Ok(3)));
        let (none, result) = read_all(b"\n\n");
        assert_eq!((none.len(), result), (0, Ok(0)));
    }

    #[test]
    fn a_damaged_file_is_refused_in_one_sentence_and_never_panics() {
        let whole = written();
        let mut random = fastrand::Rng::with_seed(11);
        let mut refused = 0;
        for _ in 0..600 {
            let mut bytes = whole.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len());
                match random.u8(..4) {
                    0 => bytes[at] = random.u8(..),
                    1 => bytes.truncate(at.max(1)),
                    2 => _ = bytes.remove(at),
                    _ => bytes
                        .splice(at..at, std::iter::repeat_n(b'[', 300))
                        .for_each(drop),
                }
            }
            let (_, result) = read_all(&bytes);
            if let Err(sentence) = result {
                refused += 1;
                assert!(
                    !sentence.contains('\n') && sentence.contains("trials.jsonl"),
                    "{sentence}"
                );
            }
        }
        assert!(refused > 300, "{refused} of 600 were refused");
    }

    #[test]
    fn what_would_cost_too_much_is_refused() {
        let long = vec![b'x'; LONGEST as usize + 2];
        assert!(read_all(&long).1.unwrap_err().contains("longer than any"));
        assert!(
            read_all(&vec![b' '; LONGEST_HEAD + 2])
                .1
                .is_ok_and(|n| n == 0),
            "blanks are no line"
        );
        let mut head = written();
        head.truncate(head.iter().position(|b| *b == b'\n').unwrap() + 1);
        assert!(
            read_all(&head)
                .1
                .unwrap_err()
                .contains("ends within a trial")
        );
        let later = String::from_utf8(head)
            .unwrap()
            .replace("trial/1", "trial/2");
        assert!(
            read_all(later.as_bytes())
                .1
                .unwrap_err()
                .contains("use the version")
        );
    }
}
