//! A sweep beside something else: another sweep, other days of one host, this host now.

use std::path::PathBuf;

use fingerpost_fleet::judge::{self, Standing};
use fingerpost_fleet::sweep::{Pass, Sweep};
use fingerpost_fleet::{check as checking, nodes, rollout};
use fingerpost_record::text::{clean, counted};

use super::{node, show};
use crate::exit::{Done, usage};
use crate::output;

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
}

/// What is told of what changed.
const MOST_TOLD: usize = 40;

/// Prints what a roll-out changed.
pub fn compare(args: CompareArgs) -> anyhow::Result<Done> {
    let treated = args.treated.as_deref().map(super::names).transpose()?.map(|names| names.into_iter().collect());
    let (before, after) = (super::open(&args.before)?, super::open(&args.after)?);
    let said = rollout::rollout(&before, &after, treated.as_ref())?;
    let hosts = |n: usize| counted(n as u64, "host");
    let who = format!("{} got it, {} did not", hosts(said.treated), hosts(said.controls));
    if !said.resolved {
        let few = "it takes 8 that did, and 8 or none that did not";
        output::sentence(&format!(
            "Too few hosts are in both sweeps to say what changed: {who}; {few}. --treated names those that got it."
        ))?;
        return Ok(Done::Well);
    }
    let alone = if said.controls == 0 { " What happened to all hosts meanwhile is in these figures." } else { "" };
    output::sentence(&format!("{} of {} changed; {who}.{alone}", said.changed.len(), counted(said.looked_at as u64, "figure")))?;
    output::write(|out| said.changed.iter().take(MOST_TOLD).try_for_each(|s| writeln!(out, "  {}", show::changed(s))))?;
    Ok(Done::Well)
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
}

/// Prints what each sweep says of one host, in the order of time.
pub fn history(args: HistoryArgs) -> anyhow::Result<Done> {
    if !nodes::is_name(&args.host) {
        return usage(format!("“{}” cannot be the name of a node", clean(&args.host)));
    }
    let mut sweeps = args.sweeps.iter().map(|dir| super::open(dir)).collect::<anyhow::Result<Vec<Sweep>>>()?;
    sweeps.sort_by(|a, b| a.manifest.started.cmp(&b.manifest.started));
    for sweep in &sweeps {
        let verdicts = judge::judge(sweep)?;
        let started = clean(&sweep.manifest.started).into_owned();
        let Some(host) = verdicts.hosts.iter().find(|host| host.node == args.host) else {
            output::lines(&[format!("{started}  not in {}", clean(&sweep.dir().display().to_string()))])?;
            continue;
        };
        let strongest = host.slower.first().map_or(String::new(), |s| format!("; {}", show::said(s)));
        let reason = host.reason.as_deref().map_or(String::new(), |reason| format!(": {}", clean(reason)));
        output::lines(&[format!("{started}  {}{reason}{strongest}", show::words(host.standing))])?;
    }
    Ok(Done::Well)
}

/// Arguments of `fleet check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without words after --, what the sweep named, or else the rows that tell most per second (--profile screen), within 15 seconds. For a prologue or HealthCheckProgram: \
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
    /// Words after `run`
    #[arg(last = true, value_name = "ARG")]
    words: Vec<String>,
}

/// Seconds that measuring for a check may take: with the program's own time it ends within 20.
const BUDGET: &str = "--budget=15";
/// Seconds after which a check that hangs is given up.
const GIVEN_UP: u64 = 60;

/// Measures, and prints one line.
pub fn check(args: CheckArgs) -> anyhow::Result<Done> {
    let sweep = super::open(&args.against)?;
    let host_name = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = args.name.clone().unwrap_or_else(host_name);
    if !nodes::is_name(&name) {
        return usage(format!("“{}” cannot be the name of a node; give --name", clean(&name)));
    }
    let run = match (args.recorded, args.words.is_empty()) {
        (true, _) => sweep.read(Pass::First, &name).or_else(|e| usage(e.to_string()))?,
        (false, false) => node::measure(&args.words, GIVEN_UP)?,
        (false, true) => node::measure(&bounded(&sweep.manifest.args), GIVEN_UP)?,
    };
    let said = checking::check(&sweep, &name, &run)?;
    let beside = format!("{} beside {}", counted(said.rows as u64, "row"), counted(said.peers as u64, "peer"));
    let (line, done) = match (said.standing, said.slower.first()) {
        (Standing::Suspected, Some(slower)) => {
            let layer = said.layer.map_or(String::new(), |layer| format!(", layer {layer}"));
            (format!("slow {name}: {}{layer}; {beside}", show::said(slower)), Done::FailOn)
        }
        (Standing::Ok, _) => (format!("ok {name}: {beside}"), Done::Well),
        _ => (format!("unknown {name}: {beside}, and it takes 7 peers and a row in common"), Done::MeasurementFailed),
    };
    output::write(|out| writeln!(out, "{line}"))?;
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
        let words = ["memory", "--profile", "thorough", "--budget=900", "--set", "size=1"].map(str::to_owned);
        assert_eq!(bounded(&words), ["--profile=screen", "--budget=15", "memory", "--set", "size=1"]);
    }
}
