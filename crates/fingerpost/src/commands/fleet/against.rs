//! A sweep beside something else: another sweep, other days of one host, this host now.

use std::path::PathBuf;

use fingerpost_fleet::judge::{self, Host, Standing};
use fingerpost_fleet::sweep::{Pass, Sweep};
use fingerpost_fleet::{check as checking, nodes, rollout};
use fingerpost_record::suggest;
use fingerpost_record::text::{clean, counted};
use serde::Serialize;

use super::{node, show};
use crate::exit::{Done, usage};
use crate::output::{self, Listing as Format};

/// Arguments of `fleet compare`.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The sweep before
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The sweep after
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// The hosts that got the roll-out; else those whose kernel, microcode or memory differs between the sweeps
    #[arg(long, value_name = "NODES")]
    treated: Option<String>,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What is told of what changed.
const MOST_TOLD: usize = 40;

/// Prints what a roll-out changed.
pub fn compare(args: CompareArgs) -> anyhow::Result<()> {
    let treated = args
        .treated
        .as_deref()
        .map(super::given::names)
        .transpose()?
        .map(|names| names.into_iter().collect());
    let (before, after) = (
        super::given::open(&args.before)?,
        super::given::open(&args.after)?,
    );
    let said = rollout::rollout(&before, &after, treated.as_ref())?;
    if args.format == Format::Json {
        return output::json(&said);
    }
    let hosts = |n: usize| counted(n as u64, "host");
    let who = format!(
        "{} got it, {} did not",
        hosts(said.treated),
        hosts(said.controls)
    );
    if !said.resolved {
        let few = "it takes 8 that did, and 8 or none that did not";
        return output::sentence(&format!(
            "Too few hosts are in both sweeps to say what changed: {who}; {few}. --treated names those that got it."
        ));
    }
    let alone = if said.controls == 0 {
        " What happened to all hosts meanwhile is in these figures."
    } else {
        ""
    };
    output::sentence(&format!(
        "{} of {} changed; {who}.{alone}",
        said.changed.len(),
        counted(said.looked_at as u64, "figure")
    ))?;
    let mut lines: Vec<String> = said
        .changed
        .iter()
        .take(MOST_TOLD)
        .map(|s| format!("  {}", show::changed(s)))
        .collect();
    let more = said.changed.len().saturating_sub(MOST_TOLD);
    lines
        .extend((more > 0).then(|| format!("  and {more} smaller changes: --format json has all")));
    output::lines(&lines)
}

/// Arguments of `fleet history`.
#[derive(Debug, clap::Args)]
pub struct HistoryArgs {
    /// The host
    #[arg(value_name = "HOST")]
    host: String,
    /// The sweeps
    #[arg(value_name = "SWEEP", required = true)]
    sweeps: Vec<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What one sweep says of the host.
#[derive(Serialize)]
struct Day {
    /// The sweep's directory, its id, and when it began.
    sweep: String,
    id: String,
    started: String,
    /// Nothing where the sweep does not have the host.
    host: Option<Host>,
}

/// Prints what each sweep says of one host, in the order of time.
pub fn history(args: HistoryArgs) -> anyhow::Result<()> {
    if !nodes::is_name(&args.host) {
        return usage(format!(
            "“{}” cannot be the name of a node",
            clean(&args.host)
        ));
    }
    let mut sweeps = args
        .sweeps
        .iter()
        .map(|dir| super::given::open(dir))
        .collect::<anyhow::Result<Vec<Sweep>>>()?;
    sweeps.sort_by(|a, b| a.manifest.started.cmp(&b.manifest.started));
    let (mut days, mut found, mut others) = (Vec::new(), false, Vec::new());
    for sweep in &sweeps {
        let mut hosts = judge::judge(sweep, false)?.hosts;
        let host = hosts
            .iter()
            .position(|host| host.node == args.host)
            .map(|at| hosts.swap_remove(at));
        found |= host.is_some();
        others.extend(hosts.into_iter().map(|host| host.node));
        let (id, started) = (sweep.manifest.id.clone(), sweep.manifest.started.clone());
        let day = Day {
            sweep: sweep.dir().display().to_string(),
            id,
            started,
            host,
        };
        // Judging takes a while of a large sweep: each is told as soon as it is known.
        match args.format {
            Format::Table => output::lines(&[day.line()])?,
            Format::Json => days.push(day),
        }
    }
    if !found {
        let near = suggest::nearest(&args.host, others.iter().map(String::as_str));
        let meant = near.map_or(String::new(), |near| {
            format!("; did you mean “{}”?", clean(near))
        });
        return usage(format!(
            "no sweep has a host “{}”{meant}",
            clean(&args.host)
        ));
    }
    if args.format == Format::Json {
        output::json(&days)
    } else {
        Ok(())
    }
}

impl Day {
    /// For a person.
    fn line(&self) -> String {
        let (started, sweep) = (clean(&self.started), clean(&self.sweep));
        let Some(host) = &self.host else {
            return format!("{started} {sweep}: this host is not in it");
        };
        let strongest = host
            .slower
            .first()
            .map_or(String::new(), |s| format!("; {}", show::said(s)));
        let reason = host
            .reason
            .as_deref()
            .map_or(String::new(), |reason| format!(": {}", clean(reason)));
        format!(
            "{started} {sweep}: {}{reason}{strongest}",
            show::words(host.standing)
        )
    }
}

/// Arguments of `fleet check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without words after --, what the sweep named, or else the rows that tell most per second (--profile \
        screen), within 15 seconds. For a prologue or HealthCheckProgram: \
    `fingerpost fleet check --against SWEEP || scontrol update …`."
)]
pub struct CheckArgs {
    /// The sweep with the peers
    #[arg(long, value_name = "SWEEP")]
    against: PathBuf,
    /// This host's name in the sweep; else its host name
    #[arg(long, value_name = "NODE")]
    name: Option<String>,
    /// Judge the sweep's own record of the node, without measuring
    #[arg(long, conflicts_with = "words")]
    recorded: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Words after `run`
    #[arg(last = true, value_name = "ARG")]
    words: Vec<String>,
}

/// Seconds that measuring for a check may take: with the program's own time it ends within 20.
const BUDGET: &str = "--budget=15";
/// Seconds after which a check that hangs is given up.
const GIVEN_UP: u64 = 60;

/// What `fleet check --format json` prints.
#[derive(Serialize)]
struct Told<'a> {
    node: &'a str,
    #[serde(flatten)]
    said: &'a checking::Checked,
}

/// Measures, and prints one line or document.
pub fn check(args: CheckArgs) -> anyhow::Result<Done> {
    let sweep = super::given::open(&args.against)?;
    let host_name = || {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    };
    let name = args.name.clone().unwrap_or_else(host_name);
    if !nodes::is_name(&name) {
        return usage(format!(
            "“{}” cannot be the name of a node; give --name",
            clean(&name)
        ));
    }
    let run = match (args.recorded, args.words.is_empty()) {
        (true, _) => sweep
            .read(Pass::First, &name)
            .or_else(|e| usage(e.to_string()))?,
        (false, false) => node::measure(&args.words, GIVEN_UP, false)?,
        (false, true) => {
            let words = super::given::words(&sweep, &[])?;
            node::measure(&bounded(words), GIVEN_UP, false)?
        }
    };
    let said = checking::check(&sweep, &name, &run)?;
    let beside = format!(
        "{} beside {}",
        counted(said.rows as u64, "row"),
        counted(said.peers as u64, "peer")
    );
    let (line, done) = match (said.standing, said.slower.first()) {
        (Standing::Suspected, Some(slower)) => {
            let layer = said
                .layer
                .map_or(String::new(), |layer| format!(", layer {layer}"));
            (
                format!("slow {name}: {}{layer}; {beside}", show::said(slower)),
                Done::FailOn,
            )
        }
        (Standing::Ok, _) => (format!("ok {name}: {beside}"), Done::Well),
        _ => (
            format!("unknown {name}: {beside}, and it takes 7 peers and a row in common"),
            Done::MeasurementFailed,
        ),
    };
    match args.format {
        Format::Table => output::write(|out| writeln!(out, "{line}"))?,
        Format::Json => output::json(&Told {
            node: &name,
            said: &said,
        })?,
    }
    Ok(done)
}

/// The sweep's words with a check's budget in place of their profile and budget.
fn bounded(words: &[String]) -> Vec<String> {
    let mut kept = vec!["--profile=screen".to_owned(), BUDGET.to_owned()];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--profile" | "--budget" => drop(words.next()),
            word if word.starts_with("--profile=") || word.starts_with("--budget=") => {}
            _ => kept.push(word.clone()),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_measures_what_the_sweep_did_in_its_own_time() {
        let words = [
            "memory",
            "--profile",
            "thorough",
            "--budget=900",
            "--set",
            "size=1",
        ]
        .map(str::to_owned);
        assert_eq!(
            bounded(&words),
            [
                "--profile=screen",
                "--budget=15",
                "memory",
                "--set",
                "size=1"
            ]
        );
    }
}
