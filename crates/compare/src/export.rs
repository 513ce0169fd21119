//! A run in other tools' formats: Go benchmark text for benchstat, OpenMetrics for a textfile collector.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use fingerpost_record::text::clean;
use fingerpost_record::{Better, Estimate, Measurement, Params, Run, Unit};

/// The run in the Go benchmark format: one line per process, so that benchstat computes its own intervals from our
/// repetitions. Rows without a figure are left out.
pub fn go_bench(run: &Run) -> String {
    let mut out = String::from("pkg: fingerpost\n");
    // benchstat puts runs whose settings (`cpu: …`) differ into separate tables; so that two hosts stand side by side,
    // who was measured is said in lines that it passes over.
    for text in [
        &run.id,
        &run.host.hostname,
        &run.host.kernel,
        &run.host.cpu.model,
    ] {
        let _ = writeln!(out, "# {}", clean(text));
    }
    let units: BTreeMap<&str, Better> = run
        .measurements
        .iter()
        .map(|m| (elsewhere(m.unit).0, m.better))
        .collect();
    for (unit, better) in units {
        let _ = writeln!(
            out,
            "Unit {unit} better={}",
            if better == Better::Lower {
                "lower"
            } else {
                "higher"
            }
        );
    }
    for m in &run.measurements {
        go_rows(&mut out, m);
    }
    out
}

fn go_rows(out: &mut String, m: &Measurement) {
    let name = go_name(&m.probe, &m.params);
    let processes: Vec<_> = m
        .processes
        .iter()
        .filter_map(|p| Some((p, p.value?)))
        .collect();
    for (process, value) in &processes {
        let operations = process
            .batch
            .max(1)
            .saturating_mul(process.samples.len().max(1) as u64);
        let _ = writeln!(out, "{name} {operations} {value} {}", elsewhere(m.unit).0);
    }
    if let (true, Some(e)) = (processes.is_empty(), m.estimate) {
        let _ = writeln!(out, "{name} 1 {} {}", e.value, elsewhere(m.unit).0);
    }
}

/// `BenchmarkSyscallSelect/fds=100`: capitals as Go demands, nothing in it that would end a word.
fn go_name(probe: &str, params: &Params) -> String {
    let mut name = String::from("Benchmark");
    for word in probe.split(['.', '_', '-', ' ']) {
        let mut chars = word.chars().filter(|c| c.is_alphanumeric());
        name.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        name.extend(chars);
    }
    for (key, value) in params.iter() {
        let value: String = clean(&value.to_string())
            .chars()
            .map(|c| {
                if c.is_whitespace() || c == '/' {
                    '_'
                } else {
                    c
                }
            })
            .collect();
        let key: String = key
            .chars()
            .filter(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let _ = write!(name, "/{key}={value}");
    }
    // A name's last dash and number would be read as GOMAXPROCS; a number of our own takes that place.
    name + "-1"
}

/// A unit as Go's benchmarks call it, and its metric family in the base units that OpenMetrics asks for: name, unit,
/// factor, help.
fn elsewhere(
    unit: Unit,
) -> (
    &'static str,
    (&'static str, &'static str, f64, &'static str),
) {
    match unit {
        Unit::Nanoseconds => (
            "ns/op",
            (
                "fingerpost_operation_seconds",
                "seconds",
                1e-9,
                "Time for one operation.",
            ),
        ),
        Unit::PerSecond => (
            "ops/s",
            (
                "fingerpost_operations_per_second",
                "",
                1.0,
                "Operations a second.",
            ),
        ),
        Unit::BytesPerSecond => (
            "B/s",
            ("fingerpost_bytes_per_second", "", 1.0, "Bytes a second."),
        ),
        Unit::FlopPerSecond => (
            "flop/s",
            (
                "fingerpost_flops_per_second",
                "",
                1.0,
                "Floating-point operations a second.",
            ),
        ),
        Unit::Bytes => ("B", ("fingerpost_size_bytes", "bytes", 1.0, "Bytes.")),
        Unit::Percent => (
            "percent",
            ("fingerpost_share_ratio", "ratio", 0.01, "A share, 0 to 1."),
        ),
        Unit::Count => ("count", ("fingerpost_items", "", 1.0, "A plain count.")),
    }
}

/// The run as an OpenMetrics text file: each figure with the ends of its interval as `bound`.
pub fn openmetrics(run: &Run) -> String {
    let mut families: BTreeMap<&str, Vec<(&Measurement, Estimate)>> = BTreeMap::new();
    for m in &run.measurements {
        if let Some(e) = m.estimate {
            families
                .entry(elsewhere(m.unit).1.0)
                .or_default()
                .push((m, e));
        }
    }
    let mut out = String::new();
    for (name, rows) in families {
        let (_, base, factor, help) = elsewhere(rows[0].0.unit).1;
        let _ = writeln!(out, "# TYPE {name} gauge");
        if !base.is_empty() {
            let _ = writeln!(out, "# UNIT {name} {base}");
        }
        let _ = writeln!(out, "# HELP {name} {help}");
        for (m, e) in rows {
            for (bound, value) in [("value", e.value), ("low", e.low), ("high", e.high)] {
                let _ = writeln!(
                    out,
                    "{name}{{{},bound=\"{bound}\"}} {}",
                    labels(run, m),
                    value * factor
                );
            }
        }
    }
    out + "# EOF\n"
}

fn labels(run: &Run, m: &Measurement) -> String {
    let mut out = format!(
        "probe=\"{}\",run=\"{}\",host=\"{}\"",
        escape(&m.probe),
        escape(&run.id),
        escape(&run.host.hostname)
    );
    let mut seen = BTreeSet::new();
    for (key, value) in m.params.iter() {
        let mut key: String = key
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        // Two names that differ in what cannot be in a label must not be one label twice.
        while !seen.insert(key.clone()) {
            key.push('_');
        }
        let _ = write!(out, ",param_{key}=\"{}\"", escape(&value.to_string()));
    }
    out
}

fn escape(text: &str) -> String {
    clean(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::{Outcome, Process};

    fn run() -> Run {
        let process = |v: f64| Process {
            value: Some(v),
            samples: vec![v; 10],
            batch: 500,
            ..Process::default()
        };
        let row = Measurement {
            probe: "syscall.open_close".into(),
            descriptor: None,
            version: 1,
            params: Params::new().with("fds", 100).with("word", "a b\"\n"),
            unit: Unit::Nanoseconds,
            better: Better::Lower,
            outcome: Outcome::Measured,
            reason: None,
            estimate: Some(Estimate {
                value: 101.0,
                low: 100.0,
                high: 102.0,
                confidence: 0.95,
            }),
            percentiles: None,
            processes: vec![process(100.0), process(102.5)],
        };
        Run {
            id: "r1".into(),
            measurements: vec![row],
            ..Run::default()
        }
    }

    #[test]
    fn benchstat_reads_a_line_per_process() {
        let text = go_bench(&run());
        let lines: Vec<&str> = text
            .lines()
            .filter(|l| l.starts_with("Benchmark"))
            .collect();
        assert_eq!(
            lines,
            [
                "BenchmarkSyscallOpenClose/fds=100/word=a_b\"_-1 5000 100 ns/op",
                "BenchmarkSyscallOpenClose/fds=100/word=a_b\"_-1 5000 102.5 ns/op"
            ]
        );
        assert!(text.contains("Unit ns/op better=lower\n"));
    }

    #[test]
    fn metrics_are_in_seconds_escaped_and_end() {
        let text = openmetrics(&run());
        assert!(
            text.contains(r#"param_word="a b\" ",bound="low"} 0.0000001"#),
            "{text}"
        );
        assert!(
            text.contains("# UNIT fingerpost_operation_seconds seconds\n")
                && text.ends_with("# EOF\n")
        );
        assert!(
            openmetrics(&Run::default()) == "# EOF\n"
                && go_bench(&Run::default()).starts_with("pkg: fingerpost\n")
        );
    }
}
