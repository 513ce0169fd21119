//! `fingerpost fleet show`: a sweep's verdicts in the terminal.

use std::path::{Path, PathBuf};

use fingerpost_fleet::heat::{Heat, letter};
pub use fingerpost_fleet::html::words;
use fingerpost_fleet::judge::{self, Host, Slower, Standing, Verdicts};
use fingerpost_fleet::sweep::{Pass, Sweep};
use fingerpost_record::suggest;
use fingerpost_record::text::{clean, clean_short, counted};
use fingerpost_report::grid::{Align, Grid, Line};
use fingerpost_report::html;
use fingerpost_report::style::Tone;

use crate::exit::usage;
use crate::output::Listing as Format;
use crate::{output, runs};

/// Arguments of `fleet show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The sweep's directory
    #[arg(value_name = "SWEEP")]
    sweep: PathBuf,
    /// Everything about this host instead
    #[arg(value_name = "HOST")]
    host: Option<String>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Write a report instead, one HTML file with a picture of hosts and rows
    #[arg(short, long, value_name = "FILE.html", conflicts_with_all = ["host", "format"])]
    output: Option<PathBuf>,
}

impl Args {
    /// The next step: one host, or the page; of one host its run is shown already.
    pub fn next(&self) -> Option<String> {
        let sweep = runs::plain(self.sweep.as_os_str())?;
        match (&self.output, &self.host) {
            (Some(_), _) => {
                Some("open it in a browser: it is one file, which can be mailed".to_owned())
            }
            (None, Some(_)) => None,
            (None, None) => Some(format!(
                "one host: fingerpost fleet show {sweep} HOST; as a page: fingerpost serve --sweep {sweep}"
            )),
        }
    }
}

/// Hosts of one kind that are told one by one.
const MOST_TOLD: usize = 60;

/// Prints the verdicts.
pub fn run(args: Args) -> anyhow::Result<()> {
    let sweep = super::given::open(&args.sweep)?;
    if let Some(path) = &args.output {
        return report(&sweep, path);
    }
    let verdicts = judge::judge(&sweep, false).or_else(|e| usage(e.to_string()))?;
    let Some(name) = &args.host else {
        match args.format {
            Format::Json => output::write(|out| fingerpost_report::json::write(out, &verdicts))?,
            Format::Table => {
                table(&verdicts)?;
                if let Some(sentence) = what_is_left(&verdicts, &sweep) {
                    output::lines(&[String::new(), sentence])?;
                }
            }
        }
        return Ok(());
    };
    let Some(host) = verdicts.hosts.iter().find(|host| host.node == *name) else {
        let near = suggest::nearest(name, verdicts.hosts.iter().map(|host| host.node.as_str()));
        let meant = near.map_or(String::new(), |near| {
            format!("; did you mean “{}”?", clean(near))
        });
        return usage(format!("the sweep has no host “{}”{meant}", clean(name)));
    };
    if args.format == Format::Json {
        return output::write(|out| fingerpost_report::json::write(out, host));
    }
    output::lines(&of_host(host, usize::MAX))?;
    if let Ok(run) = sweep.read(Pass::First, name) {
        output::write(|out| writeln!(out))?;
        super::super::show::print(&run, fingerpost_report::Format::TABLE, false)?;
    }
    Ok(())
}

/// How hosts without a record, and suspects that were not measured again, come to be measured.
fn what_is_left(verdicts: &Verdicts, sweep: &Sweep) -> Option<String> {
    let any = |standing: Standing| verdicts.hosts.iter().any(|host| host.standing == standing);
    let (suspected, without) = (
        any(Standing::Suspected),
        any(Standing::Left) || any(Standing::Failed),
    );
    let what = match (suspected, without) {
        (false, false) => return None,
        (true, false) => "the suspects again beside random hosts of their kind",
        (false, true) => "the hosts without a record",
        (true, true) => {
            "the hosts without a record, and the suspects again beside random hosts of their kind"
        }
    };
    let dir = clean_short(&sweep.dir().display().to_string(), 300);
    Some(format!(
        "`fingerpost fleet run --resume {dir}` with --slurm, --ssh or --kubernetes measures {what}"
    ))
}

fn report(sweep: &Sweep, path: &Path) -> anyhow::Result<()> {
    let verdicts = judge::judge(sweep, true).or_else(|e| usage(e.to_string()))?;
    let page = html::page(&fingerpost_fleet::html::content(&verdicts, None));
    output::page(
        path,
        &page,
        &format!("The report on sweep {}", clean(&verdicts.id)),
    )
}

/// Prints all verdicts for a person.
pub fn table(verdicts: &Verdicts) -> anyhow::Result<()> {
    output::sentence(&verdicts.headline)?;
    let mut lines = Vec::new();
    let quiet = |host: &&Host| {
        matches!(
            host.standing,
            Standing::Ok | Standing::Left | Standing::Unresolved
        )
    };
    let told: Vec<&Host> = verdicts.hosts.iter().filter(|host| !quiet(host)).collect();
    for host in told.iter().take(MOST_TOLD) {
        lines.push(String::new());
        lines.extend(of_host(host, 3));
    }
    if told.len() > MOST_TOLD {
        lines.extend([
            String::new(),
            format!(
                "and {} more: --format json has all",
                counted((told.len() - MOST_TOLD) as u64, "host")
            ),
        ]);
    }
    lines.push(String::new());
    for group in &verdicts.groups {
        let few = if group.resolved {
            ""
        } else {
            ": too few to say that one is slow"
        };
        lines.push(format!(
            "{}{few}  ({})",
            counted(group.hosts as u64, "peer"),
            clean(&group.kind)
        ));
        lines.extend(
            group
                .populations
                .iter()
                .map(|sentence| format!("  {}", clean(sentence))),
        );
    }
    let heat = heat(verdicts);
    output::lines(&lines)?;
    output::write(|out| out.write_all(heat.as_bytes()))
}

fn of_host(host: &Host, evidence: usize) -> Vec<String> {
    let cause = match (&host.layer, &host.cause) {
        (Some(layer), Some(cause)) => format!(": layer {layer}, {}", clean(cause)),
        _ => String::new(),
    };
    let mut lines = vec![format!(
        "{}  {}{cause}",
        clean(&host.node),
        words(host.standing)
    )];
    lines.extend(
        host.reason
            .iter()
            .map(|reason| format!("  {}", clean(reason))),
    );
    lines.extend(
        host.slower
            .iter()
            .take(evidence)
            .map(|s| format!("  {}", said(s))),
    );
    lines.extend(
        host.again
            .iter()
            .map(|s| format!("  measured again beside others of its kind: {}", said(s))),
    );
    lines.extend(
        host.evidence
            .iter()
            .take(evidence)
            .map(|fact| format!("  {}", clean(&fact.words()))),
    );
    lines
}

/// How far a host is from its peers, in words.
pub fn said(s: &Slower) -> String {
    let (word, by) = direction(s);
    format!(
        "{}: {by} % {word} than its peers (ratio {:.2} to {:.2})",
        clean(&s.what),
        s.low,
        s.high
    )
}

/// What a change is, in words.
pub fn changed(s: &Slower) -> String {
    let (word, by) = direction(s);
    format!(
        "{}: {by} % {word} (ratio {:.3} to {:.3})",
        clean(&s.what),
        s.low,
        s.high
    )
}

/// The word for a ratio, and by how many per cent.
fn direction(s: &Slower) -> (&'static str, String) {
    let percent = (s.ratio - 1.0) * 100.0;
    (
        if percent >= 0.0 { "slower" } else { "faster" },
        format!("{:.1}", percent.abs()),
    )
}

/// Hosts × families in per cent: a row of text a host, slow ones first.
fn heat(verdicts: &Verdicts) -> String {
    let heat = &verdicts.heat;
    if heat.hosts.is_empty() {
        return String::new();
    }
    let mut text =
        String::from("\nPer cent slower than the median of the peers (–: too few rows to say):\n");
    for (n, family) in heat.families.iter().enumerate() {
        text.push_str(&format!("  {} {family}\n", letter(n)));
    }
    let mut grid = Grid::of([("", Align::Left, 0), ("", Align::Left, 0)]);
    let cell = |ratio: &Option<f64>| format!("{:>4}", Heat::percent(*ratio));
    let titles: String = (0..heat.families.len())
        .map(|n| format!("{:>5}", letter(n)))
        .collect();
    grid.lines
        .push(Line::Cells(vec!["host".into(), titles], Tone::Faint));
    let names = fingerpost_fleet::nodes::short_names(
        &heat
            .hosts
            .iter()
            .map(|(node, _)| node.as_str())
            .collect::<Vec<_>>(),
    );
    for ((_, ratios), node) in heat.hosts.iter().zip(names).take(MOST_TOLD) {
        let far = ratios.iter().flatten().any(|r| *r > 1.05);
        let cells: String = ratios.iter().map(|r| format!(" {}", cell(r))).collect();
        grid.lines.push(Line::Cells(
            vec![clean(node).into_owned(), cells],
            if far { Tone::Bad } else { Tone::Plain },
        ));
    }
    text + &grid.render(&output::style(true))
}
