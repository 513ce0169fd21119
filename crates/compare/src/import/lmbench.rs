//! lmbench 3 result files (`results/…/HOST.0`).
//!
//! lmbench prints each figure with its own words and unit, curves as a quoted title followed by pairs of numbers.
//! Figures that mean the same as one of our probes take that probe's name; the others are kept under `lmbench.`.

use std::collections::HashSet;

use fingerpost_record::descriptor::lmbench::OPERATIONS;
use fingerpost_record::{Better, Estimate, Host, Measurement, Params, Run, Unit};

use super::{ImportError, MAX_BYTES, clean, row, run};

const FORMAT: &str = "lmbench";
/// lmbench's files have some thousand lines.
const MAX_LINES: usize = 200_000;
const MAX_ROWS: usize = 10_000;

/// What the pairs of numbers after a title mean.
#[derive(Clone, Copy)]
enum Curve {
    /// Number of tasks, microseconds.
    Switch { footprint: i64 },
    /// Megabytes, nanoseconds.
    Latency { stride: i64 },
}

/// Reads an lmbench result file.
///
/// # Errors
/// When no line in it is a result of lmbench, or a figure cannot be.
pub fn lmbench(bytes: &[u8]) -> Result<Run, ImportError> {
    if bytes.len() > MAX_BYTES {
        return Err(ImportError::TooLarge(bytes.len()));
    }
    let text = String::from_utf8_lossy(bytes);
    let mut host = Host::default();
    let mut rows: Vec<Measurement> = Vec::new();
    let mut seen = HashSet::new();
    let (mut curve, mut latency_section) = (None, false);
    for line in text.lines().take(MAX_LINES).map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            describe(&mut host, header.trim_end_matches(']'));
        } else if let Some(title) = line.strip_prefix('"') {
            curve = self::curve(title, latency_section);
        } else if line.starts_with("Memory load latency") || line.starts_with("Random load latency")
        {
            // Only the sequential pattern is lmbench's classical figure; the random one has its own name.
            latency_section = line.starts_with("Memory");
        } else if let Some(m) = curve.and_then(|c| point(c, line)).or_else(|| figure(line)) {
            // A file of several passes repeats its lines; the first pass is kept.
            if rows.len() < MAX_ROWS && seen.insert((m.probe.clone(), m.version, m.params.clone()))
            {
                rows.push(m);
            }
        } else {
            curve = None;
        }
    }
    run(FORMAT, bytes, host, rows)
}

fn describe(host: &mut Host, header: &str) {
    if let Some(uname) = header.split_once("results for ").map(|(_, u)| u) {
        let mut words = uname.split_whitespace();
        host.os = clean(words.next().unwrap_or_default(), 100);
        host.hostname = clean(words.next().unwrap_or_default(), 100);
        host.kernel = clean(&words.collect::<Vec<_>>().join(" "), 300);
    } else if let Some(mhz) = header.strip_prefix("MHZ:") {
        host.cpu.mhz = mhz
            .split_whitespace()
            .next()
            .and_then(|w| w.parse().ok())
            .filter(|v: &f64| v.is_finite() && *v > 0.0);
    } else if let Some(os) = header.strip_prefix("OS:") {
        host.arch = clean(os.trim().split('-').next().unwrap_or_default(), 40);
    }
}

fn curve(title: &str, latency_section: bool) -> Option<Curve> {
    let number = |text: &str| {
        text.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
            .parse::<i64>()
            .ok()
    };
    if let Some(size) = title.strip_prefix("size=") {
        return Some(Curve::Switch {
            footprint: number(size)?.checked_mul(1024)?,
        });
    }
    let stride = title.strip_prefix("stride=")?;
    latency_section.then_some(Curve::Latency {
        stride: number(stride)?,
    })
}

fn point(curve: Curve, line: &str) -> Option<Measurement> {
    let (x, y) = line.split_once(char::is_whitespace)?;
    let (x, y): (f64, &str) = (
        x.parse()
            .ok()
            .filter(|x: &f64| x.is_finite() && *x >= 0.0 && *x < 1e9)?,
        y.trim(),
    );
    match curve {
        Curve::Switch { footprint } => latency(
            "switch.ring",
            Params::new()
                .with("tasks", x as i64)
                .with("footprint", footprint),
            y,
            1e3,
        ),
        Curve::Latency { stride } => {
            let size = (x * f64::from(1 << 20)).round() as i64;
            latency(
                "memory.latency",
                Params::new().with("size", size).with("stride", stride),
                y,
                1.0,
            )
        }
    }
}

fn figure(line: &str) -> Option<Measurement> {
    let (words, rest) = line.rsplit_once(": ")?;
    let (number, unit) = rest.trim().split_once(' ')?;
    let words = words.trim();
    match unit.trim() {
        "microseconds" => {
            let (name, params) = select(words).or_else(|| known(words, "microseconds"))?;
            latency(name, params, number, 1e3)
        }
        "nanoseconds" => latency(
            &format!("lmbench.{}", snake(words)),
            Params::new(),
            number,
            1.0,
        ),
        "MB/sec" => {
            let (name, params) = known(words, "MB/sec")?;
            Some(row(
                name,
                params,
                Unit::BytesPerSecond,
                Better::Higher,
                printed(number, 1e6)?,
                &[],
            ))
        }
        _ => None,
    }
}

/// `Select on 100 tcp fd's` is what our probe does; on files it is another thing.
fn select(words: &str) -> Option<(&'static str, Params)> {
    let rest = words.strip_prefix("Select on ")?;
    let (fds, kind) = rest.split_once(' ')?;
    let params = Params::new().with("fds", fds.parse::<i64>().ok()?);
    let probe = if kind.starts_with("tcp") {
        "syscall.select"
    } else {
        "lmbench.select_files"
    };
    Some((probe, params))
}

/// The operation of a line of this unit, of those that are told in lines.
fn known(words: &str, unit: &str) -> Option<(&'static str, Params)> {
    let lines = || {
        OPERATIONS.iter().filter_map(|o| {
            o.line
                .filter(|line| line.1 == unit)
                .map(|line| (line.0, o.probe))
        })
    };
    // Some lines name the host or the file after the words.
    let open =
        |line: &str| line.ends_with("using") || line.ends_with(" to") || line.ends_with(" on");
    let exact = lines().find(|(line, _)| words == *line);
    let (_, probe) =
        exact.or_else(|| lines().find(|(line, _)| open(line) && words.starts_with(line)))?;
    // lmbench forks from a process that has touched little memory.
    Some((
        probe,
        if probe == "process.fork" {
            Params::new().with("resident", 0)
        } else {
            Params::new()
        },
    ))
}

fn latency(probe: &str, params: Params, number: &str, nanoseconds: f64) -> Option<Measurement> {
    Some(row(
        probe,
        params,
        Unit::Nanoseconds,
        Better::Lower,
        printed(number, nanoseconds)?,
        &[],
    ))
}

/// A printed number with its rounding as interval.
fn printed(number: &str, scale: f64) -> Option<Estimate> {
    let value: f64 = number
        .parse()
        .ok()
        .filter(|v: &f64| v.is_finite() && *v >= 0.0)?;
    let decimals = number
        .split_once('.')
        .map_or(0, |(_, d)| d.len().min(12) as i32);
    let half = 0.5 * 10_f64.powi(-decimals);
    let e = Estimate {
        value: value * scale,
        low: (value - half).max(0.0) * scale,
        high: (value + half) * scale,
        confidence: 0.95,
    };
    e.high.is_finite().then_some(e)
}

fn snake(words: &str) -> String {
    clean(words, 60)
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[lmbench3.0 results for Linux tiger 5.4.0-42 #46-Ubuntu SMP x86_64]\n[LMBENCH_VER: 3.0-a9]\n\
        [OS: x86_64-linux-gnu]\n\
        [MHZ: 3593 MHz, 0.2783 nanosec clock]\nSimple syscall: 0.0539 microseconds\nSelect on 100 fd's: 0.9012 \
        microseconds\n\
        Select on 100 tcp fd's: 3.61 microseconds\nProcess fork+exit: 63.3 microseconds\ninteger div: 8.71 \
        nanoseconds\n\
        TCP latency using localhost: 8.6 microseconds\nAF_UNIX sock stream bandwidth: 6012.31 MB/sec\n\n\"size=16k \
        ovr=0.45\n2 1.03\n4 1.10\n\n\
        Memory load latency\n\"stride=128\n0.00049 1.211\n64.00000 80.5\n\nSimple syscall: 0.9 microseconds\n";

    #[test]
    fn lines_and_curves_become_rows() {
        let run = lmbench(FILE.as_bytes()).unwrap();
        let value = |probe: &str, params: &Params| {
            run.row(probe, params)
                .and_then(|m| m.estimate)
                .map(|e| e.value.round())
        };
        assert_eq!(value("syscall.null", &Params::new()), Some(54.0));
        assert_eq!(
            value("syscall.select", &Params::new().with("fds", 100)),
            Some(3610.0)
        );
        assert_eq!(
            value("lmbench.select_files", &Params::new().with("fds", 100)),
            Some(901.0)
        );
        assert_eq!(value("lmbench.integer_div", &Params::new()), Some(9.0));
        assert_eq!(value("ipc.tcp", &Params::new()), Some(8600.0));
        assert_eq!(
            value("bandwidth.unix", &Params::new()),
            Some(6_012_310_000.0)
        );
        assert_eq!(
            value(
                "switch.ring",
                &Params::new().with("tasks", 4).with("footprint", 16384)
            ),
            Some(1100.0)
        );
        assert_eq!(
            value(
                "memory.latency",
                &Params::new().with("size", 64 << 20).with("stride", 128)
            ),
            Some(81.0)
        );
        assert_eq!(run.measurements.len(), 11);
        let unnamed: Vec<&str> = run
            .measurements
            .iter()
            .filter(|m| m.descriptor().lmbench.is_none())
            .map(|m| m.probe.as_str())
            .collect();
        assert_eq!(unnamed, ["lmbench.integer_div"], "kept by its own words");
        assert_eq!(
            (run.host.hostname.as_str(), run.host.cpu.mhz),
            ("tiger", Some(3593.0))
        );
    }

    #[test]
    fn each_line_that_is_known_becomes_a_row_as_its_probe_has_them_today() {
        for operation in OPERATIONS {
            let Some((words, unit)) = operation.line else {
                continue;
            };
            let row = lmbench(format!("{words}: 2 {unit}\n").as_bytes())
                .unwrap()
                .measurements
                .remove(0);
            let probe = fingerpost_probes::find(operation.probe).unwrap();
            assert_eq!(
                (row.probe.as_str(), row.version, row.unit),
                (probe.name, probe.version, probe.unit)
            );
        }
    }

    #[test]
    fn hostile_files_give_a_sentence_or_a_run_and_no_panic() {
        for bad in [
            &b""[..],
            b"\xff\xff: 1 microseconds",
            b"Simple syscall: nan microseconds",
            b"Simple syscall: -1 microseconds",
            b"\"size=99999999999999999999k\n1 1",
            b"[MHZ:",
        ] {
            assert!(lmbench(bad).is_err());
        }
    }
}
