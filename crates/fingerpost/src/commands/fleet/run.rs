//! `fingerpost fleet run`: a sweep from beginning to end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fingerpost_fleet::judge;
use fingerpost_fleet::sweep::{Manifest, Pass, SCHEMA, State, Sweep};
use fingerpost_fleet::wire::Answer;
use fingerpost_record::archive::{new_id, rfc3339};
use fingerpost_record::secret;
use fingerpost_sys::child;

use super::engine::{self, Job, Slurm};
use super::pool::{self, Event, Task};
use super::show;
use crate::conduct;
use crate::exit::{Done, say, usage};
use crate::progress::{Progress, Progressing};

/// Arguments of `fleet run`.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("engine").args(["slurm", "ssh"]).required(true)),
    after_help = "Words after -- are those of `run` on every node: names, --profile, --set. Exit status 3: some host has no record."
)]
pub struct Args {
    /// One exclusive task a node by srun
    #[arg(long)]
    slurm: bool,
    /// By OpenSSH as it is configured; the program is copied to a private directory and removed
    #[arg(long)]
    ssh: bool,
    /// Nodes as Slurm and clush write them: 'node[001-512]', 'n[1-8]!n3'
    #[arg(short = 'w', long, value_name = "NODES", required_unless_present = "resume")]
    nodes: Option<String>,
    /// The sweep's directory, which must not be there; else one is made here
    #[arg(short, long, value_name = "DIR", conflicts_with = "resume")]
    output: Option<PathBuf>,
    /// Go on with this sweep: hosts that failed or are left
    #[arg(long, value_name = "SWEEP", conflicts_with_all = ["nodes", "words"])]
    resume: Option<PathBuf>,
    /// ssh: its configuration instead of ~/.ssh/config
    #[arg(long, value_name = "FILE", conflicts_with = "slurm")]
    ssh_config: Option<PathBuf>,
    /// Slurm: one low-priority job a node instead of one for all; results as they come
    #[arg(long, conflicts_with = "ssh")]
    scavenge: bool,
    /// Hosts at a time, by ssh or --scavenge
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    at_once: u16,
    /// The most seconds that one host may take
    #[arg(long, default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    timeout: u64,
    /// Random hosts of its group that each group's suspects are measured again beside; 0 measures nobody again
    #[arg(long, default_value_t = 4)]
    controls: usize,
    #[command(flatten)]
    options: Slurm,
    /// Words after `run` on every node
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
}

/// Measures, confirms, shows.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let sweep = sweep_of(&args)?;
    let stop = Arc::new(AtomicBool::new(false));
    conduct::stop_on_signals(&stop)?;
    let conducting = Conducting { args: &args, sweep: &sweep, stop: &stop };
    let wanted = sweep.states()?.into_iter().filter(|(_, state)| *state != State::Measured).map(|(node, _)| node).collect();
    conducting.pass(Pass::First, wanted)?;
    if args.controls > 0 && !stop.load(Ordering::Relaxed) {
        let done = sweep.measured(Pass::Again)?;
        let (suspects, controls) = judge::to_confirm(&sweep, args.controls, |n| fastrand::usize(..n))?;
        if !suspects.is_empty() && suspects.iter().any(|node| !done.contains(node)) {
            say(&format!("measuring again: {} beside {}", counted(suspects.len()), counted(controls.len())));
            conducting.pass(Pass::Again, suspects.into_iter().chain(controls).collect())?;
        }
    }
    let verdicts = judge::judge(&sweep)?;
    show::table(&verdicts)?;
    let shown = sweep.dir().display();
    say(&format!("the sweep is {shown}; `fingerpost fleet show {shown}` shows it again"));
    let whole = sweep.states()?.values().all(|state| *state == State::Measured);
    if stop.load(Ordering::Relaxed) {
        say(&format!("interrupted; `fingerpost fleet run --resume {shown}` with the same engine goes on"));
    }
    Ok(if whole && !stop.load(Ordering::Relaxed) { Done::Well } else { Done::MeasurementFailed })
}

fn counted(hosts: usize) -> String {
    fingerpost_record::text::counted(hosts as u64, "host")
}

/// The sweep to go on with, or a new one.
fn sweep_of(args: &Args) -> anyhow::Result<Sweep> {
    if let Some(dir) = &args.resume {
        return super::open(dir);
    }
    let nodes = super::names(args.nodes.as_deref().unwrap_or_default())?;
    if args.words.iter().any(|word| word == "-o" || word.starts_with("--output")) {
        return usage("the records come to the sweep: leave -o out of the words after --");
    }
    // The command lines of srun and ssh can be read by every user of every node.
    if secret::cut_words(args.words.iter().map(String::as_str)) != args.words {
        return usage(
            "the words after -- hold a password, and every user of the nodes could read them; use a file on the nodes (--set password_file=PATH)",
        );
    }
    let now = jiff::Timestamp::now();
    let id = new_id(now, fastrand::u32(..));
    let dir = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("sweep-{id}")));
    let engine = if args.slurm { "slurm" } else { "ssh" };
    let nodes = fingerpost_fleet::nodes::fold(&nodes);
    let manifest = Manifest { schema: SCHEMA.into(), id, started: rfc3339(now), engine: engine.into(), nodes, args: args.words.clone() };
    Sweep::create(&dir, manifest).or_else(|e| usage(e.to_string()))
}

struct Conducting<'a> {
    args: &'a Args,
    sweep: &'a Sweep,
    stop: &'a AtomicBool,
}

/// Hosts by what became of them.
#[derive(Default)]
struct Counts {
    began: usize,
    done: usize,
    failed: usize,
}

impl Conducting<'_> {
    /// Has these hosts measured, and keeps what comes.
    fn pass(&self, pass: Pass, mut nodes: Vec<String>) -> anyhow::Result<()> {
        if self.args.slurm {
            self.leave_out_those_down(pass, &mut nodes)?;
        }
        if nodes.is_empty() {
            return Ok(());
        }
        let all = nodes.len();
        let job = format!("fingerpost-{}-{:08x}", self.sweep.manifest.id, fastrand::u32(..));
        let tasks = self.tasks(&job, nodes)?;
        let (at_once, wait) = if self.alone() { (1, 7 * 24 * 3600) } else { (self.args.at_once.into(), self.args.timeout + 60) };
        let rounds = if self.alone() { 1 } else { all.div_ceil(at_once) };
        let expected = Duration::from_secs(200) * rounds as u32;
        let progress = Progress::start(&format!("measuring {}", counted(all)), expected, Progressing::Person);
        let mut counts = Counts::default();
        let mut trouble = Ok(());
        let begun = Instant::now();
        pool::run(tasks, at_once, Duration::from_secs(wait), self.stop, |event| {
            match event {
                Event::Began(nodes) => counts.began += nodes,
                Event::Answered(node, answer) => {
                    let kept = self.keep(pass, &node, answer);
                    counts.done += usize::from(matches!(kept, Ok(true)));
                    counts.failed += usize::from(matches!(kept, Ok(false)));
                    if let Err(e) = kept {
                        // A full disk is told, and the hosts that it hit are left to do.
                        trouble = Err(e);
                    }
                }
            }
            let (over, left) = (counts.done + counts.failed, all.saturating_sub(counts.began));
            let running = counts.began.saturating_sub(over);
            let said = format!("{} done, {running} running, {} failed, {left} left", counts.done, counts.failed);
            progress.show(&said, over as f64 / all as f64);
        });
        if self.args.slurm && (self.stop.load(Ordering::Relaxed) || trouble.is_err()) {
            self.cancel(&job);
        }
        drop(progress);
        say(&format!("{} measured, {} failed, in {:.0} s", counts.done, counts.failed, begun.elapsed().as_secs_f64()));
        trouble
    }

    /// Whether one child answers for all nodes.
    fn alone(&self) -> bool {
        self.args.slurm && !self.args.scavenge
    }

    /// Keeps an answer; says whether it is a record.
    fn keep(&self, pass: Pass, node: &str, answer: Answer) -> anyhow::Result<bool> {
        let reason = match answer {
            Answer::Record(packed) => match self.sweep.put(pass, node, &packed) {
                Ok(_) => return Ok(true),
                Err(fingerpost_fleet::sweep::SweepError::Record(e)) => e.to_string(),
                Err(e) => return Err(e.into()),
            },
            Answer::Failed(reason) => reason,
        };
        if pass == Pass::First {
            self.sweep.fail(node, &reason)?;
        }
        Ok(false)
    }

    fn tasks(&self, job: &str, nodes: Vec<String>) -> anyhow::Result<Vec<Task>> {
        let words = &self.sweep.manifest.args;
        if self.args.ssh {
            let (_, bytes) = super::node::own_file()?;
            let config = self.args.ssh_config.as_ref().map(|path| path.display().to_string());
            let task = |node: String| {
                let ssh = ["ssh".to_owned()].into_iter().chain(config.iter().flat_map(|file| ["-F".to_owned(), file.clone()]));
                let words = ssh.chain(engine::ssh(&node, bytes, self.args.timeout, words)).collect();
                Task { words, nodes: vec![node], send_program: true }
            };
            return Ok(nodes.into_iter().map(task).collect());
        }
        let program = own_path()?;
        let task = |nodes: Vec<String>, low: bool| {
            let job = Job { name: job, nodes: &nodes, program: &program, timeout: self.args.timeout, words };
            let words = std::iter::once("srun".to_owned()).chain(job.srun(&self.args.options, low)).collect();
            Task { words, nodes, send_program: false }
        };
        Ok(match self.args.scavenge {
            true => nodes.into_iter().map(|node| task(vec![node], true)).collect(),
            false => vec![task(nodes, false)],
        })
    }

    /// One node that is down would keep the others' job from starting: it is a row with Slurm's own word for its state.
    fn leave_out_those_down(&self, pass: Pass, nodes: &mut Vec<String>) -> anyhow::Result<()> {
        let list = fingerpost_fleet::nodes::fold(nodes);
        let mut command = Command::new("sinfo");
        command.args(["--noheader", "--Node", "--format=%N %T", &format!("--nodes={list}")]);
        let said = child::run_bounded(&mut command, Instant::now() + Duration::from_secs(60)).context("cannot start sinfo")?;
        if !said.status.is_some_and(|status| status.success()) {
            let why = fingerpost_record::text::clean_short(String::from_utf8_lossy(&said.stderr).trim(), 200);
            return usage(format!("Slurm does not answer: {why}"));
        }
        let text = String::from_utf8_lossy(&said.stdout);
        let states: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.trim().split_once(' ')).collect();
        let mut able = Vec::new();
        for node in nodes.drain(..) {
            let reason = match states.get(node.as_str()).map(|state| state.trim_end_matches(['+', '$', '@', '^', '-'])) {
                Some("idle" | "mixed" | "allocated" | "completing" | "reserved" | "planned") => {
                    able.push(node);
                    continue;
                }
                Some(state) => format!("Slurm says that it is {}", fingerpost_record::text::clean_short(state, 40)),
                None => "Slurm does not know it".to_owned(),
            };
            if pass == Pass::First {
                self.sweep.fail(&node, &reason)?;
            }
        }
        *nodes = able;
        Ok(())
    }

    /// Cancels the jobs of this name, which nobody else's has.
    fn cancel(&self, job: &str) {
        let cancelled = child::run_bounded(Command::new("scancel").arg(format!("--name={job}")), Instant::now() + Duration::from_secs(30));
        if !cancelled.is_ok_and(|said| said.status.is_some_and(|status| status.success())) {
            say(&format!("the job could not be cancelled; do it by `scancel --name={job}`"));
        }
    }
}

/// This program's file as the nodes see it by a shared path.
pub fn own_path() -> anyhow::Result<String> {
    let path = std::env::current_exe().context("cannot tell where this program is")?;
    path.to_str().map(str::to_owned).context("this program's path is no text that can be passed on")
}
