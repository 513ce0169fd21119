//! `hyperfine --export-json`.

use fingerpost_measure::estimate::across_processes;
use fingerpost_record::load::MAX_ROWS;
use fingerpost_record::{Better, Estimate, Host, Measurement, Param, Params, Run, Unit};
use serde::Deserialize;

use super::bounded::{List, Texts};
use super::{ImportError, MAX_BYTES, MAX_REPETITIONS, clean, row, run, syntax};

const FORMAT: &str = "hyperfine";
/// The most parameters of a command.
const MAX_PARAMETERS: usize = 100;

#[derive(Deserialize)]
struct Export {
    results: List<Entry, MAX_ROWS>,
}

/// The fields of one command that are used; times are in seconds.
#[derive(Deserialize)]
struct Entry {
    command: String,
    mean: f64,
    #[serde(default)]
    stddev: Option<f64>,
    #[serde(default)]
    median: Option<f64>,
    #[serde(default)]
    times: Option<List<f64, MAX_REPETITIONS>>,
    #[serde(default)]
    exit_codes: Option<List<Option<i32>, MAX_REPETITIONS>>,
    #[serde(default)]
    parameters: Texts<MAX_PARAMETERS>,
}

/// Reads what `hyperfine --export-json` writes. Every timing is a repetition, since each was a process of its own; the
/// row is `command.time` with the command and its parameters.
///
/// # Errors
/// When the text is not such a file, or a time in it cannot be.
pub fn hyperfine(bytes: &[u8]) -> Result<Run, ImportError> {
    if bytes.len() > MAX_BYTES {
        return Err(ImportError::TooLarge(bytes.len()));
    }
    let export: Export = serde_json::from_slice(bytes).map_err(|e| syntax(FORMAT, &e))?;
    let entries = &export.results.0;
    let repetitions: usize = entries
        .iter()
        .filter_map(|e| e.times.as_ref())
        .map(|t| t.0.len())
        .sum();
    if repetitions > MAX_REPETITIONS {
        return Err(ImportError::Invalid(
            FORMAT,
            format!("it has {repetitions} times, more than {MAX_REPETITIONS}"),
        ));
    }
    let rows = entries
        .iter()
        .enumerate()
        .map(|(i, entry)| measurement(i, entry))
        .collect::<Result<Vec<_>, _>>()?;
    run(
        FORMAT,
        bytes,
        Host {
            hostname: "hyperfine".into(),
            ..Host::default()
        },
        rows,
    )
}

fn measurement(i: usize, entry: &Entry) -> Result<Measurement, ImportError> {
    let invalid = |what: String| ImportError::Invalid(FORMAT, format!("results[{i}]: {what}"));
    let times: Vec<f64> = entry
        .times
        .iter()
        .flat_map(|t| &t.0)
        .map(|s| s * 1e9)
        .collect();
    if let Some(bad) = times.iter().find(|t| !t.is_finite() || **t < 0.0) {
        return Err(invalid(format!("a time of {} s", bad / 1e9)));
    }
    let estimate = if times.is_empty() {
        summary(entry)
    } else {
        across_processes(&times)
    };
    let mut estimate = estimate.ok_or_else(|| invalid(format!("a mean of {} s", entry.mean)))?;
    estimate.low = estimate.low.max(0.0);
    let mut params = Params::new().with(
        "command",
        clean(&fingerpost_record::secret::cut(&entry.command), 1000),
    );
    for (key, value) in &entry.parameters.0 {
        params = params.with(&clean(key, 100), Param::parse(&clean(value, 1000)));
    }
    let mut row = row(
        "command.time",
        params,
        Unit::Nanoseconds,
        Better::Lower,
        estimate,
        &times,
    );
    let failed = entry
        .exit_codes
        .iter()
        .flat_map(|c| &c.0)
        .filter(|c| **c != Some(0))
        .count();
    if failed > 0 {
        row.outcome = fingerpost_record::Outcome::Untrusted;
        row.reason = Some(format!(
            "{failed} of {} executions ended with an error",
            times.len()
        ));
    }
    Ok(row)
}

/// Without the single times, the median or mean with the standard deviation as it is; without one it is taken for a
/// single time.
fn summary(entry: &Entry) -> Option<Estimate> {
    let value =
        Some(entry.median.unwrap_or(entry.mean) * 1e9).filter(|v| v.is_finite() && *v >= 0.0)?;
    let Some(deviation) = entry.stddev else {
        return across_processes(&[value]);
    };
    let half = Some(deviation * 1e9 * 1.96).filter(|half| half.is_finite() && *half >= 0.0)?;
    Some(Estimate {
        value,
        low: value - half,
        high: value + half,
        confidence: 0.95,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timing_becomes_a_repetition() {
        let text = br#"{"results":[{"command":"sleep 0.1","mean":0.102,"stddev":0.001,"median":0.1015,
            "user":0.0,"system":0.0,"min":0.1,"max":0.105,"times":[0.101,0.102,0.105,0.1015,0.1012],
            "exit_codes":[0,0,0,0,0],"parameters":{"n":"5"}},
            {"command":"false","mean":0.001,"stddev":null,"user":0.0,"system":0.0,"times":[0.001],"exit_codes":[1]}]}"#;
        let run = hyperfine(text).unwrap();
        let first = &run.measurements[0];
        assert_eq!(first.process_values().len(), 5);
        assert!((first.estimate.unwrap().value - 0.1015e9).abs() < 1.0);
        assert_eq!(first.params.int("n"), Some(5));
        let width = |run: &Run, i: usize| {
            run.measurements[i]
                .estimate
                .map(|e| e.high / e.low)
                .unwrap()
        };
        assert!(width(&run, 1) > 1.5, "one time says nothing of its spread");
        let none = hyperfine(
            br#"{"results":[{"command":"x","mean":0.1,"stddev":null},{"command":"y","mean":0.1,"stddev":0.001},
            {"command":"z","mean":0}]}"#,
        )
        .unwrap();
        assert_eq!(none.measurements[2].estimate.unwrap().low, 0.0);
        assert!(width(&none, 0) > 1.5 && (width(&none, 1) - 1.04).abs() < 0.001);
        assert_eq!(
            run.measurements[1].outcome,
            fingerpost_record::Outcome::Untrusted
        );
        assert_eq!(run.id, hyperfine(text).unwrap().id);
    }

    #[test]
    fn what_is_no_hyperfine_result_gives_a_sentence() {
        for bad in [
            &b"{}"[..],
            b"",
            b"[1]",
            br#"{"results":[]}"#,
            br#"{"results":[{"command":"x","mean":1,"times":[-1]}]}"#,
            br#"{"results":[{"command":"x","mean":1e999}]}"#,
            br#"{"results":[{"command":"x","mean":-1}]}"#,
            br#"{"results":[{"command":"x","mean":1,"stddev":-1}]}"#,
            b"\xff\xfe",
        ] {
            let error = hyperfine(bad).unwrap_err().to_string();
            assert!(error.contains("hyperfine"), "{error}");
        }
    }
}
