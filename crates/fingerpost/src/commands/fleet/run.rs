//! `fingerpost fleet run`: a sweep from beginning to end.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use fingerpost_fleet::judge;
use fingerpost_fleet::sweep::{Pass, State, Sweep};
use fingerpost_fleet::table::Table;
use fingerpost_record::secret;
use fingerpost_record::text::counted;

use super::conducting::{Conducting, Engine};
use super::engine::Slurm;
use super::{kubernetes, show};
use crate::commands::run::time_of;
use crate::conduct;
use crate::exit::{Done, say, usage};

/// Arguments of `fleet run`.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("engine").args(["slurm", "ssh", "kubernetes"]).required(true)),
    after_help = "Words after -- are those of `run` on every node: names, --profile, --set. Exit status 3: some host \
        has no record."
)]
pub struct Args {
    /// One exclusive task a node by srun
    #[arg(long)]
    slurm: bool,
    /// By OpenSSH as it is configured; the program is copied to a private directory and removed
    #[arg(long)]
    ssh: bool,
    /// A Job with one pod a node by kubectl as it is configured; needs --image
    #[arg(long)]
    kubernetes: bool,
    /// Nodes as Slurm and clush write them: 'node[001-512]', 'n[1-8]!n3'
    #[arg(
        short = 'w',
        long,
        value_name = "NODES",
        required_unless_present = "resume"
    )]
    nodes: Option<String>,
    /// The sweep's directory, which must not be there; else one is made here
    #[arg(short, long, value_name = "DIR", conflicts_with = "resume")]
    output: Option<PathBuf>,
    /// Go on with this sweep: measure the hosts that failed or were not measured yet
    #[arg(long, value_name = "SWEEP", conflicts_with = "nodes")]
    resume: Option<PathBuf>,
    /// ssh: its configuration instead of ~/.ssh/config
    #[arg(long, value_name = "FILE", conflicts_with_all = ["slurm", "kubernetes"])]
    ssh_config: Option<PathBuf>,
    /// Slurm: one low-priority job a node instead of one for all; results as they come
    #[arg(long, conflicts_with_all = ["ssh", "kubernetes"])]
    scavenge: bool,
    /// Hosts at a time: 32 by ssh, 512 jobs in the queue with --scavenge, all of them on Kubernetes
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    at_once: Option<u16>,
    /// The most seconds that one host may take
    #[arg(long, default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    timeout: u64,
    /// How many random hosts of a group are measured again together with its suspects; 0: no suspect is measured again
    #[arg(long, default_value_t = 4)]
    controls: usize,
    #[command(flatten)]
    options: Slurm,
    #[command(flatten)]
    kubernetes_options: kubernetes::Options,
    /// Words after `run` on every node
    #[arg(last = true, value_name = "ARG")]
    words: Vec<String>,
}

/// Measures, confirms, shows.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let (name, engine) = engine_of(&args)?;
    let sweep = sweep_of(&args, name)?;
    // Of a sweep that goes on the words were checked when it began.
    let takes = time_of(&sweep.manifest.args).unwrap_or_default();
    let stop = conduct::stopped_by_signals()?;
    let conducting = Conducting {
        engine,
        sweep: &sweep,
        at_once: at_once(&args),
        timeout: args.timeout,
        takes,
        stop: &stop,
    };
    conducting
        .pass(Pass::First, wanted(&sweep)?)
        .inspect_err(|_| {
            // The engine does not answer: the same words can be given again.
            if args.resume.is_none() {
                sweep.withdraw();
            }
        })?;
    if args.controls > 0 && !stop.load(Ordering::Relaxed) {
        let done = sweep.measured(Pass::Again)?;
        let (suspects, controls) =
            judge::to_confirm(&sweep, args.controls, |n| fastrand::usize(..n))?;
        if !suspects.is_empty() && suspects.iter().any(|node| !done.contains(node)) {
            let hosts = |nodes: &[String]| counted(nodes.len() as u64, "host");
            say(&format!(
                "measuring again: {} beside {}",
                hosts(&suspects),
                hosts(&controls)
            ));
            let mut again: Vec<String> = suspects.into_iter().chain(controls).collect();
            // Suspects are not all measured before the controls: what these minutes do, they do to both.
            fastrand::shuffle(&mut again);
            conducting.pass(Pass::Again, again)?;
        }
    }
    let verdicts = judge::judge(&sweep, false)?;
    show::table(&verdicts)?;
    let shown = sweep.dir().display();
    say(&format!(
        "the sweep is {shown}; `fingerpost fleet show {shown}` shows it again"
    ));
    let whole = sweep
        .states()?
        .values()
        .all(|state| *state == State::Measured);
    if stop.load(Ordering::Relaxed) {
        say(&format!(
            "interrupted; `fingerpost fleet run --resume {shown}` with the same engine goes on"
        ));
    }
    Ok(if whole && !stop.load(Ordering::Relaxed) {
        Done::Well
    } else {
        Done::MeasurementFailed
    })
}

/// The hosts without a record: those left, those that failed, and those whose record cannot be read.
fn wanted(sweep: &Sweep) -> anyhow::Result<Vec<String>> {
    let unreadable = Table::of(sweep)?.unreadable;
    let states = sweep.states()?.into_iter();
    Ok(states
        .filter(|(node, state)| *state != State::Measured || unreadable.contains_key(node))
        .map(|(node, _)| node)
        .collect())
}

/// The name that the sweep keeps, and what it stands for.
fn engine_of(args: &Args) -> anyhow::Result<(&'static str, Engine)> {
    Ok(match () {
        () if args.slurm => (
            "slurm",
            Engine::Slurm {
                options: args.options.clone(),
                scavenge: args.scavenge,
            },
        ),
        () if args.kubernetes => {
            args.kubernetes_options.image()?;
            (
                "kubernetes",
                Engine::Kubernetes(args.kubernetes_options.clone()),
            )
        }
        () => (
            "ssh",
            Engine::Ssh {
                config: args
                    .ssh_config
                    .as_ref()
                    .map(|path| path.display().to_string()),
            },
        ),
    })
}

/// Hosts at a time. A job in the queue costs a process here, and a connection a process and the program's file.
fn at_once(args: &Args) -> usize {
    match args.at_once {
        Some(given) => usize::from(given),
        None if args.kubernetes => usize::MAX,
        None if args.scavenge => 512,
        None => 32,
    }
}

/// The sweep to go on with, or a new one.
fn sweep_of(args: &Args, engine: &str) -> anyhow::Result<Sweep> {
    if let Some(dir) = &args.resume {
        let sweep = super::given::open(dir)?;
        super::given::words(&sweep, &args.words)?;
        return Ok(sweep);
    }
    let nodes = super::given::names(args.nodes.as_deref().unwrap_or_default())?;
    time_of(&args.words)?;
    if args
        .words
        .iter()
        .any(|word| word == "-o" || word.starts_with("--output"))
    {
        return usage("the records come to the sweep: leave -o out of the words after --");
    }
    // The command lines of srun and ssh can be read by every user of every node.
    if secret::cut_words(args.words.iter().map(String::as_str)) != args.words {
        return usage(
            "the words after -- hold a password, and every user of the nodes could read them; use a file on the nodes \
             (--set password_file=PATH)",
        );
    }
    super::given::create(args.output.clone(), engine, &nodes, &args.words)
}
