//! `fingerpost fleet export`: all figures of a sweep, for other tools.

use std::path::PathBuf;

use fingerpost_fleet::sweep::Pass;
use fingerpost_report::csv::{line, word};

use crate::exit::{Done, say};
use crate::output;

/// Arguments of `fleet export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "DuckDB: `SELECT node, median(value) FROM read_csv('sweep.csv') WHERE probe = 'memory.read' GROUP BY node`. \
    pandas: `pandas.read_csv('sweep.csv').pivot_table(index='node', columns=['probe', 'params'], values='value')`.")]
pub struct Args {
    /// The sweep's directory
    #[arg(value_name = "SWEEP")]
    sweep: PathBuf,
    /// As CSV, the one format that there is
    #[arg(long, required = true)]
    csv: bool,
}

/// Writes a line a figure, one host at a time.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let sweep = super::open(&args.sweep)?;
    let titles = ["node", "started", "kernel", "cpu", "probe", "version", "params", "unit", "better", "outcome", "value", "low", "high"];
    let mut done = if args.csv { Done::Well } else { Done::BadInput };
    let nodes = sweep.measured(Pass::First)?;
    output::write(|out| {
        writeln!(out, "{}", titles.join(","))?;
        for node in &nodes {
            let run = match sweep.read(Pass::First, node) {
                Ok(run) => run,
                Err(e) => {
                    say(&e.to_string());
                    done = Done::MeasurementFailed;
                    continue;
                }
            };
            for m in &run.measurements {
                let better = if m.better == fingerpost_record::Better::Lower { "lower" } else { "higher" };
                let outcome = format!("{:?}", m.outcome).to_lowercase();
                let figure =
                    |pick: fn(&fingerpost_record::Estimate) -> f64| m.estimate.as_ref().map_or(String::new(), |e| pick(e).to_string());
                let texts = [node, &run.started, &run.host.kernel, &run.host.cpu.model, &m.probe].map(|text| word(text));
                let rest = [m.version.to_string(), word(&m.params.to_string()), m.unit.as_str().into(), better.into(), outcome];
                let figures = [figure(|e| e.value), figure(|e| e.low), figure(|e| e.high)];
                out.write_all(line(texts.into_iter().chain(rest).chain(figures)).as_bytes())?;
            }
        }
        Ok(())
    })?;
    Ok(done)
}
