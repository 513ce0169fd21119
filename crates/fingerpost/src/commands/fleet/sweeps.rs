//! A script or manifest that makes a sweep, and draining its slow nodes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use fingerpost_fleet::judge::{self, Standing};
use fingerpost_record::text::clean_short;
use fingerpost_sys::child;

use super::conducting::own_path;
use super::engine::{self, Job, Slurm};
use super::kubernetes;
use crate::commands::run::time_of;
use crate::exit::{Done, say, usage};
use crate::output;

/// Arguments of `fleet script`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Slurm: submit it by sbatch in an empty directory. Kubernetes: `kubectl create -f FILE`, and when the \
        pods have ended \
    write the output of `kubectl logs POD` to a file NODE.out for each, in an empty directory. Then: `fingerpost fleet \
    gather DIR -o SWEEP`. \
    To measure the suspects again, do the same with `fingerpost fleet script ENGINE --again SWEEP` in another empty \
    directory, and then: \
    `fingerpost fleet gather DIR --again SWEEP`."
)]
pub struct ScriptArgs {
    /// The engine
    #[arg(value_parser = ["slurm", "kubernetes"])]
    engine: String,
    /// Nodes as Slurm and clush write them
    #[arg(
        short = 'w',
        long,
        value_name = "NODES",
        required_unless_present = "again"
    )]
    nodes: Option<String>,
    /// Instead: this sweep's suspects and random hosts of their groups, to be measured again
    #[arg(long, value_name = "SWEEP", conflicts_with = "nodes")]
    again: Option<PathBuf>,
    /// With --again: how many random hosts of a group are measured together with its suspects
    #[arg(long, default_value_t = 4, requires = "again")]
    controls: usize,
    /// The most seconds that one host may take
    #[arg(long, default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    timeout: u64,
    #[command(flatten)]
    options: Slurm,
    #[command(flatten)]
    kubernetes: kubernetes::Options,
    /// Words after `run` on every node
    #[arg(last = true, value_name = "ARG")]
    words: Vec<String>,
}

/// Prints the script or the manifest.
pub fn script(args: ScriptArgs) -> anyhow::Result<()> {
    time_of(&args.words)?;
    let (nodes, words) = match &args.again {
        None => (
            super::given::names(args.nodes.as_deref().unwrap_or_default())?,
            args.words.clone(),
        ),
        Some(dir) => {
            let sweep = super::given::open(dir)?;
            let words = super::given::words(&sweep, &args.words)?.to_vec();
            let (suspects, controls) =
                judge::to_confirm(&sweep, args.controls, |n| fastrand::usize(..n))
                    .or_else(|e| usage(e.to_string()))?;
            if suspects.is_empty() {
                say("no host is suspected: there is nothing to measure again");
                return Ok(());
            }
            let again: BTreeSet<String> = suspects.into_iter().chain(controls).collect();
            (again.into_iter().collect(), words)
        }
    };
    let name = format!("fingerpost-{:08x}", fastrand::u32(..));
    let text = if args.engine == "slurm" {
        let program = own_path()?;
        Job {
            name: &name,
            nodes: &nodes,
            program: &program,
            timeout: args.timeout,
            words: &words,
        }
        .script(&args.options)
    } else {
        // A node's name is its host name, but where the site made it otherwise: the manifest can be changed.
        let job = args
            .kubernetes
            .job(&name, &nodes, nodes.len(), args.timeout, &words)?;
        fingerpost_fleet::kubernetes::text(&fingerpost_fleet::kubernetes::manifest(&job))
    };
    output::write(|out| out.write_all(text.as_bytes()))
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
    let verdicts =
        judge::judge(&super::given::open(&args.sweep)?, false).or_else(|e| usage(e.to_string()))?;
    if !verdicts
        .hosts
        .iter()
        .any(|host| host.standing == Standing::Slow)
    {
        say("no host is slow by two measurements: there is nothing to drain");
    }
    let mut done = Done::Well;
    for host in verdicts
        .hosts
        .iter()
        .filter(|host| host.standing == Standing::Slow)
    {
        let by = host
            .again
            .as_ref()
            .map(|again| {
                format!(
                    "{:.0} % slower than its peers, ",
                    (again.ratio - 1.0) * 100.0
                )
            })
            .unwrap_or_default();
        let (layer, cause) = (
            host.layer.unwrap_or("unknown"),
            host.cause.as_deref().unwrap_or("unknown"),
        );
        let reason = format!(
            "fingerpost: {by}layer {layer}, cause {}, sweep {}",
            clean_short(cause, 40),
            clean_short(&verdicts.id, 100)
        );
        let words = [
            "update".to_owned(),
            format!("NodeName={}", host.node),
            "State=DRAIN".into(),
            format!("Reason={reason}"),
        ];
        if !args.apply {
            output::write(|out| writeln!(out, "{}", engine::drain_line(&host.node, &reason)))?;
            continue;
        }
        let said = child::run_bounded(
            Command::new("scontrol").args(&words),
            Instant::now() + Duration::from_secs(60),
        )?;
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
