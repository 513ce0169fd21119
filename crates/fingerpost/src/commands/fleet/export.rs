//! `fingerpost fleet export`: all figures of a sweep, for other tools.

use std::io::Write;
use std::path::PathBuf;

use fingerpost_fleet::figures;
use fingerpost_fleet::sweep::{Pass, Sweep};
use fingerpost_record::Run;
use fingerpost_report::document::csv::{line, word};

use crate::exit::{Done, say, usage};
use crate::output;

/// Arguments of `fleet export`.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("format").args(["csv", "parquet"]).required(true)),
    after_help = "DuckDB: `SELECT node, median(value) FROM 'sweep.parquet' WHERE probe = 'memory.copy' GROUP BY node`. \
    pandas: `pandas.read_parquet('sweep.parquet').pivot_table(index='node', columns=['probe', 'params'], \
    values='value')`. \
    With CSV: read_csv('sweep.csv') in both, with keep_default_na=False in pandas, since many rows have empty \
    parameters."
)]
pub struct Args {
    /// The sweep's directory
    #[arg(value_name = "SWEEP")]
    sweep: PathBuf,
    /// As CSV
    #[arg(long)]
    csv: bool,
    /// As Apache Parquet, into a file or pipe: typed columns, and much smaller
    #[arg(long)]
    parquet: bool,
}

/// Writes a line a figure, a few hosts in memory at a time.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let sweep = super::given::open(&args.sweep)?;
    let mut done = Done::Well;
    if args.csv {
        output::write(|out| csv(&sweep, out, &mut done))?;
        return Ok(done);
    }
    as_parquet(&sweep, done)
}

#[cfg(not(feature = "parquet"))]
fn as_parquet(_: &Sweep, _: Done) -> anyhow::Result<Done> {
    usage(
        "This program was built without Parquet: take --csv, a release, or `cargo build --release --features parquet`",
    )
}

/// Into standard output.
#[cfg(feature = "parquet")]
fn as_parquet(sweep: &Sweep, mut done: Done) -> anyhow::Result<Done> {
    use std::io::{BufWriter, IsTerminal as _};

    if std::io::stdout().is_terminal() {
        return usage(
            "Parquet is no text for a terminal: send it into a file, as in `--parquet > sweep.parquet`",
        );
    }
    // The guard before standard output is for text.
    let mut out = BufWriter::new(std::io::stdout());
    fingerpost_fleet::parquet::write(&mut out, records(sweep, &mut done)?)?;
    out.flush()?;
    Ok(done)
}

/// The sweep's records, one after the other; one that cannot be read is told and left out.
fn records<'a>(
    sweep: &'a Sweep,
    done: &'a mut Done,
) -> anyhow::Result<impl Iterator<Item = (String, Run)> + 'a> {
    let read = |node: String| match sweep.read(Pass::First, &node) {
        Ok(run) => Some((node, run)),
        Err(e) => {
            say(&e.to_string());
            *done = Done::MeasurementFailed;
            None
        }
    };
    Ok(sweep.measured(Pass::First)?.into_iter().filter_map(read))
}

fn csv(sweep: &Sweep, out: &mut dyn Write, done: &mut Done) -> std::io::Result<()> {
    // All lines end alike: DuckDB refuses a file whose first line ends otherwise.
    out.write_all(line(figures::COLUMNS.iter().map(|column| (*column).to_owned())).as_bytes())?;
    for (node, run) in records(sweep, done).map_err(std::io::Error::other)? {
        for m in &run.measurements {
            let texts = figures::texts(&node, &run, m).map(|text| word(&text));
            let figures = figures::of(m)
                .map(|figure| figure.map_or(String::new(), |figure| figure.to_string()));
            out.write_all(
                line(
                    texts
                        .into_iter()
                        .chain([m.version.to_string()])
                        .chain(figures),
                )
                .as_bytes(),
            )?;
        }
    }
    Ok(())
}
