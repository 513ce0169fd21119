//! What the parent tells a probe process, and what it answers: short lines of text, so that a probe may also be a C
//! program.
//!
//! The request is the argument list: `__probe NAME SLICE_NS BATCH_OPS CPUS COUNTERS DIR
//! [KEY=VALUE...]`, with `BATCH_OPS` the batch size of an earlier process or 0, `CPUS` a comma list, `COUNTERS` 0 or 1.
//!
//! The answer, on standard output, written after measuring:
//!
//! ```text
//! resident BYTES            resident memory when the loop starts
//! batch OPS                 operations in a batch
//! s WORK NANOSECONDS FLAG   a sample: work done (operations, or bytes, or flops), the time it took, 1 when disturbed
//! v VALUE FLAG              a sample that is a value in the probe's unit already
//! p NANOSECONDS             the fixed work's time beside the undisturbed samples: on the first CPU, then on the second
//! c NAME VALUE              a counter per operation
//! skip SENTENCE             it needs something that is not here
//! fail SENTENCE             it went wrong
//! end                       the last line of an answer that is whole
//! ```

use std::path::PathBuf;

use fingerpost_measure::slice::{Samples, Slice};
use fingerpost_record::{Param, Params, Process, Unit};

/// The first argument of a probe process.
pub const MARK: &str = "__probe";

/// The most samples that a process sends.
pub const MAX_SAMPLES: usize = 1000;

/// What a probe process is asked to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The probe's name.
    pub probe: String,
    /// How long to measure, in nanoseconds, not counting setup and calibration.
    pub slice_ns: u64,
    /// The batch size that an earlier process found, or 0.
    pub batch: u64,
    /// The CPUs to use: the first for the measuring process, the second for its partner.
    pub cpus: Vec<usize>,
    /// Whether to count instructions and cycles too.
    pub counters: bool,
    /// A directory for files.
    pub dir: PathBuf,
    /// The row's parameters.
    pub params: Params,
}

impl Request {
    /// The request as arguments.
    pub fn to_args(&self) -> Vec<String> {
        let cpus: Vec<String> = self.cpus.iter().map(ToString::to_string).collect();
        let mut args = vec![
            MARK.to_owned(),
            self.probe.clone(),
            self.slice_ns.to_string(),
            self.batch.to_string(),
            cpus.join(","),
            u8::from(self.counters).to_string(),
            self.dir.display().to_string(),
        ];
        args.extend(self.params.iter().map(|(key, value)| match value {
            Param::Int(n) => format!("{key}={n}"),
            // A word that looks like a number must stay a word.
            Param::Text(s) => format!("{key}:={s}"),
        }));
        args
    }

    /// Reads the arguments behind [`MARK`].
    pub fn from_args(mut args: impl Iterator<Item = String>) -> Option<Request> {
        let probe = args.next()?;
        let slice_ns = args.next()?.parse().ok()?;
        let batch = args.next()?.parse().ok()?;
        let cpus = args
            .next()?
            .split(',')
            .filter(|s| !s.is_empty())
            .map(|s| s.parse().ok())
            .collect::<Option<Vec<_>>>()?;
        let counters = args.next()? == "1";
        let dir = PathBuf::from(args.next()?);
        let mut params = Params::new();
        for pair in args {
            params = match pair.split_once('=')? {
                (key, value) if key.ends_with(':') => params.with(key.trim_end_matches(':'), value),
                (key, value) => params.with(key, value.parse::<i64>().ok()?),
            };
        }
        Some(Request {
            probe,
            slice_ns,
            batch,
            cpus,
            counters,
            dir,
            params,
        })
    }
}

/// Reads a probe's answer; values come out in `unit`. An answer that is not whole is a failure, never a figure.
pub fn parse_answer(text: &str, unit: Unit) -> Slice {
    let mut samples = Samples::default();
    let mut whole = false;
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "skip" => return Slice::Skipped(rest.to_owned()),
            "fail" => return Slice::Failed(rest.to_owned()),
            "end" => whole = true,
            _ if take(&mut samples, word, rest, unit).is_some() => {}
            _ => {
                let line: String = line.chars().take(60).collect();
                return Slice::Failed(format!("the probe answered “{line}”, which means nothing"));
            }
        }
    }
    match (whole, samples.process.samples.is_empty()) {
        (false, _) => Slice::Failed("the probe ended before its answer was whole".to_owned()),
        (true, true) => Slice::Failed("the probe gave no sample".to_owned()),
        (true, false) => Slice::Samples(samples),
    }
}

/// Takes one line of figures; nothing where it means none.
fn take(samples: &mut Samples, word: &str, rest: &str, unit: Unit) -> Option<()> {
    match word {
        "resident" => samples.resident = rest.parse().ok()?,
        "batch" => samples.process.batch = rest.parse().ok()?,
        "s" => {
            let (value, flag) = parse_sample(rest, unit)?;
            push(&mut samples.process, value, flag);
        }
        "v" => {
            let (value, flag) = rest.split_once(' ')?;
            push(&mut samples.process, finite(value)?, flag != "0");
        }
        "p" => samples.process.pace.push(rest.parse().ok()?),
        "c" => {
            let (name, value) = rest.split_once(' ')?;
            samples
                .process
                .counters
                .insert(name.to_owned(), finite(value)?);
        }
        _ => return None,
    }
    Some(())
}

fn push(process: &mut Process, value: f64, flag: bool) {
    if flag {
        process.disturbed.push(process.samples.len() as u32);
    }
    process.samples.push(six_digits(value));
}

/// A batch of a quarter of a millisecond is timed to a few parts in a million, so further digits would only make the
/// record larger.
fn six_digits(value: f64) -> f64 {
    if value == 0.0 {
        return value;
    }
    let scale = 10f64.powi(5 - value.abs().log10().floor() as i32);
    let rounded = (value * scale).round() / scale;
    if rounded.is_finite() { rounded } else { value }
}

fn parse_sample(rest: &str, unit: Unit) -> Option<(f64, bool)> {
    let mut words = rest.split(' ');
    let work: u64 = words.next()?.parse().ok()?;
    let ns: u64 = words.next()?.parse().ok()?;
    let flag = words.next()? != "0";
    // A clock that did not move between two readings has measured nothing.
    let (work, ns) = (work as f64, (ns > 0).then_some(ns as f64)?);
    let value = match unit {
        Unit::Nanoseconds => ns / (work > 0.0).then_some(work)?,
        _ => work * 1e9 / ns,
    };
    Some((value, flag))
}

fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|v: &f64| v.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_argument_list() {
        let request = Request {
            probe: "switch.ring".into(),
            slice_ns: 40_000_000,
            batch: 12,
            cpus: vec![1, 0],
            counters: true,
            dir: "/tmp/a b".into(),
            params: Params::new()
                .with("tasks", 2)
                .with("placement", "same")
                .with("word", "12"),
        };
        let args = request.to_args();
        assert_eq!(args[0], MARK);
        assert_eq!(Request::from_args(args.into_iter().skip(1)), Some(request));
        assert_eq!(Request::from_args(["x".to_owned()].into_iter()), None);
    }

    #[test]
    fn samples_come_out_in_the_unit() {
        let answer = "resident 1000\nbatch 10\ns 10 500 0\ns 10 700 1\nc cycles_user 3.5\nend\n";
        let Slice::Samples(s) = parse_answer(answer, Unit::Nanoseconds) else {
            panic!()
        };
        let (process, resident) = (s.process, s.resident);
        assert_eq!(
            (process.samples, process.disturbed, process.batch, resident),
            (vec![50.0, 70.0], vec![1], 10, 1000)
        );
        assert_eq!(process.counters["cycles_user"], 3.5);
        let Slice::Samples(s) = parse_answer("s 4096 1000 0\nend", Unit::BytesPerSecond) else {
            panic!()
        };
        assert_eq!(s.process.samples, [4.096e9]);
        let Slice::Samples(s) = parse_answer("v 97.5 0\nend", Unit::Percent) else {
            panic!()
        };
        assert_eq!(s.process.samples, [97.5]);
    }

    #[test]
    fn samples_keep_six_digits() {
        assert_eq!(six_digits(105.289_743_589), 105.29);
        assert_eq!(six_digits(0.142_857_142_8), 0.142857);
        assert_eq!(six_digits(4.096e9), 4.096e9);
        assert_eq!((six_digits(0.0), six_digits(1e-320)), (0.0, 1e-320));
    }

    #[test]
    fn an_answer_that_is_cut_short_or_malformed_is_a_failure() {
        for bad in [
            "",
            "s 10 500 0\n",
            "end\n",
            "s 10\nend\n",
            "s 10 0 0\nend",
            "s 0 10 0\nend",
            "v inf 0\nend",
            "hello\nend\n",
        ] {
            assert!(
                matches!(parse_answer(bad, Unit::Nanoseconds), Slice::Failed(_)),
                "{bad:?}"
            );
        }
        assert_eq!(
            parse_answer("skip needs two CPUs", Unit::Nanoseconds),
            Slice::Skipped("needs two CPUs".into())
        );
        assert_eq!(
            parse_answer("fail no space left", Unit::Nanoseconds),
            Slice::Failed("no space left".into())
        );
    }
}
