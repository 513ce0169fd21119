//! What is done with a sweep's files beside showing them: a script to make one, gathering one, draining its slow nodes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fingerpost_fleet::judge::{self, Standing};
use fingerpost_fleet::nodes;
use fingerpost_fleet::sweep::{Manifest, Pass, SCHEMA, Sweep};
use fingerpost_fleet::wire::{Answer, Collector, LONGEST_LINE};
use fingerpost_record::archive::{new_id, rfc3339};
use fingerpost_record::text::{clean_short, counted};
use fingerpost_record::{lean, open};
use fingerpost_sys::child;

use super::engine::{Job, Slurm};
use super::run::own_path;
use crate::exit::{Done, say, usage};
use crate::output;

/// Arguments of `fleet script`.
#[derive(Debug, clap::Args)]
pub struct ScriptArgs {
    /// The engine
    #[arg(value_parser = ["slurm"])]
    engine: String,
    /// Nodes as Slurm and clush write them
    #[arg(short = 'w', long, value_name = "NODES")]
    nodes: String,
    /// The most seconds that one host may take
    #[arg(long, default_value_t = 900)]
    timeout: u64,
    #[command(flatten)]
    options: Slurm,
    /// Words after `run` on every node
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
}

/// Prints the script.
pub fn script(args: ScriptArgs) -> anyhow::Result<Done> {
    let nodes = super::names(&args.nodes)?;
    let name = format!("fingerpost-{:08x}", fastrand::u32(..));
    let program = own_path()?;
    let job = Job { name: &name, nodes: &nodes, program: &program, timeout: args.timeout, words: &args.words };
    output::write(|out| out.write_all(job.script(&args.options).as_bytes()))?;
    Ok(Done::Well)
}

/// Arguments of `fleet gather`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A file NODE.json is that node's run, a file NODE.out what its task printed; a run file of another name is its host's. \
    What is neither is a row with its reason."
)]
pub struct GatherArgs {
    /// The directory with the files
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The sweep's directory, which must not be there
    #[arg(short, long, value_name = "SWEEP")]
    output: PathBuf,
}

/// The longest output of one task that is looked at.
const MOST_OUTPUT: u64 = 64 << 20;

/// Gathers records into a sweep, one at a time in memory.
pub fn gather(args: GatherArgs) -> anyhow::Result<Done> {
    let files = files_of(&args.dir)?;
    let now = jiff::Timestamp::now();
    // Every file is a row, also one whose record is none.
    let asked: BTreeSet<String> = files.iter().map(|(node, _)| node.clone()).collect();
    let manifest = Manifest {
        schema: SCHEMA.into(),
        id: new_id(now, fastrand::u32(..)),
        started: rfc3339(now),
        engine: "gather".into(),
        nodes: nodes::fold(&asked.into_iter().collect::<Vec<_>>()),
        args: Vec::new(),
    };
    let sweep = Sweep::create(&args.output, manifest).or_else(|e| usage(e.to_string()))?;
    let (mut kept, mut beside, mut failed) = (0_u64, 0_u64, 0_u64);
    for (node, path) in &files {
        match take(&sweep, node, path)? {
            Ok(true) => kept += 1,
            Ok(false) => beside += 1,
            Err(reason) => {
                failed += 1;
                sweep.fail(node, &reason)?;
            }
        }
    }
    let doubled = if beside == 0 { String::new() } else { format!(", {} of a host that has one", counted(beside, "further record")) };
    say(&format!("{} gathered{doubled}, {failed} without one", counted(kept, "record")));
    Ok(if failed == 0 { Done::Well } else { Done::MeasurementFailed })
}

/// The files of a directory that can be records, each with the node that its name names.
fn files_of(dir: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let entries = std::fs::read_dir(dir).or_else(|e| usage(format!("cannot list {}: {e}", dir.display())))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let node =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".json").or(name.strip_suffix(".out")));
        if let Some(node) = node.filter(|node| nodes::is_name(node)) {
            files.push((node.to_owned(), path.clone()));
        }
        if files.len() > nodes::MOST_NODES {
            return usage(format!("{} holds more than {} files", dir.display(), nodes::MOST_NODES));
        }
    }
    files.sort();
    if files.is_empty() { usage(format!("{} holds no NODE.json and no NODE.out", dir.display())) } else { Ok(files) }
}

/// Takes one file: whether it became the node's record, or why it is none. The outer error is the sweep's own.
fn take(sweep: &Sweep, node: &str, path: &Path) -> anyhow::Result<Result<bool, String>> {
    if path.extension().is_some_and(|end| end == "json") {
        return match lean::figures_from_path(path) {
            Ok(run) => Ok(Ok(sweep.put_run(Pass::First, node, &run)?)),
            Err(e) => Ok(Err(e.to_string())),
        };
    }
    match printed(node, path) {
        Answer::Failed(reason) => Ok(Err(reason)),
        Answer::Record(packed) => match sweep.put(Pass::First, node, &packed) {
            Ok(kept) => Ok(Ok(kept)),
            Err(fingerpost_fleet::sweep::SweepError::Record(e)) => Ok(Err(e.to_string())),
            Err(e) => Err(e.into()),
        },
    }
}

/// What a task printed for its node, the last answer of several.
fn printed(node: &str, path: &Path) -> Answer {
    let file = match open::regular(path) {
        Ok(opened) => opened.file.take(MOST_OUTPUT),
        Err(e) => return Answer::Failed(format!("its output cannot be read: {e}")),
    };
    let mut answer = Answer::Failed("its output holds no record".into());
    let (mut collector, mut from, mut line) = (Collector::default(), BufReader::new(file), Vec::new());
    while from.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        if let Some((_, got)) = collector.line(&String::from_utf8_lossy(&line), |name| name == node) {
            answer = got;
        }
        line.clear();
    }
    if collector.unfinished().next().is_some() { Answer::Failed("its output ends within a record".into()) } else { answer }
}

/// Arguments of `fleet drain`.
#[derive(Debug, clap::Args)]
pub struct DrainArgs {
    /// The sweep's directory
    #[arg(value_name = "SWEEP")]
    sweep: PathBuf,
    /// Run the lines instead of printing them
    #[arg(long)]
    apply: bool,
}

/// Prints or runs the lines that drain the nodes that are slow for sure. Suspected ones are left.
pub fn drain(args: DrainArgs) -> anyhow::Result<Done> {
    let verdicts = judge::judge(&super::open(&args.sweep)?).or_else(|e| usage(e.to_string()))?;
    if !verdicts.hosts.iter().any(|host| host.standing == Standing::Slow) {
        say("no host is slow by two measurements: there is nothing to drain");
    }
    let mut done = Done::Well;
    for host in verdicts.hosts.iter().filter(|host| host.standing == Standing::Slow) {
        let by = host.again.as_ref().map_or(0.0, |again| (again.ratio - 1.0) * 100.0);
        let layer = host.layer.unwrap_or("unknown");
        let reason = format!("fingerpost: {by:.0} % slower than its peers, layer {layer}, sweep {}", verdicts.id);
        let words = ["update".to_owned(), format!("NodeName={}", host.node), "State=DRAIN".into(), format!("Reason={reason}")];
        if !args.apply {
            output::write(|out| writeln!(out, "scontrol update NodeName={} State=DRAIN Reason='{reason}'", host.node))?;
            continue;
        }
        let said = child::run_bounded(Command::new("scontrol").args(&words), Instant::now() + Duration::from_secs(60))?;
        if !said.status.is_some_and(|status| status.success()) {
            let why = clean_short(String::from_utf8_lossy(&said.stderr).trim(), 200);
            say(&format!("{} could not be drained: {why}", host.node));
            done = Done::MeasurementFailed;
        } else {
            say(&format!("{} is drained", host.node));
        }
    }
    Ok(done)
}
