//! A sweep's figures as a table for other tools: the columns, and what stands in them.

use fingerpost_record::{Better, Measurement, Outcome, Run};

/// The columns: texts, the version of the probe's definition, figures.
pub const COLUMNS: [&str; 13] = [
    "node", "started", "kernel", "cpu", "probe", "params", "unit", "better", "outcome", "version",
    "value", "low", "high",
];
/// How many of the columns are texts.
pub const TEXTS: usize = 9;

/// The texts of a figure's line.
pub fn texts(node: &str, run: &Run, m: &Measurement) -> [String; TEXTS] {
    let better = if m.better == Better::Lower {
        "lower"
    } else {
        "higher"
    };
    let outcome = match m.outcome {
        Outcome::Measured => "measured",
        Outcome::Untrusted => "untrusted",
        Outcome::Skipped => "skipped",
        Outcome::Failed => "failed",
    };
    let texts = [
        node,
        &run.started,
        &run.host.kernel,
        &run.host.cpu.model,
        &m.probe,
        &m.params.to_string(),
        m.unit.as_str(),
        better,
        outcome,
    ];
    texts.map(str::to_owned)
}

/// The figures of a line: value and interval; nothing where there is none.
pub fn of(m: &Measurement) -> [Option<f64>; 3] {
    [
        m.estimate.map(|e| e.value),
        m.estimate.map(|e| e.low),
        m.estimate.map(|e| e.high),
    ]
}
