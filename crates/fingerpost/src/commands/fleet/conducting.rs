//! One pass of a sweep: these hosts are measured by the engine, and what comes is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fingerpost_fleet::nodes as names;
use fingerpost_fleet::sweep::{Pass, Sweep, SweepError};
use fingerpost_fleet::wire::Answer;
use fingerpost_record::text::{clean_short, counted};
use fingerpost_sys::child;

use super::engine::{self, Job, Slurm};
use super::kubernetes::{self, Cluster};
use super::pool::{self, Event, Task};
use crate::exit::{say, usage};
use crate::progress::{Progress, Progressing};

/// What starts the runs.
pub enum Engine {
    /// `srun`: one allocation for all nodes, or a job of low priority for each.
    Slurm {
        /// What is passed on.
        options: Slurm,
        /// Whether each node has a job of its own.
        scavenge: bool,
    },
    /// OpenSSH.
    Ssh {
        /// Its configuration, where it is not the user's own.
        config: Option<String>,
    },
    /// `kubectl`.
    Kubernetes(kubernetes::Options),
}

/// A sweep that is being measured.
pub struct Conducting<'a> {
    /// What starts the runs.
    pub engine: Engine,
    /// Where they go.
    pub sweep: &'a Sweep,
    /// How many hosts at a time.
    pub at_once: usize,
    /// The most seconds that one host may take.
    pub timeout: u64,
    /// What measuring takes on a host by the sweep's words, about.
    pub takes: Duration,
    /// Set when it is to end.
    pub stop: &'a AtomicBool,
}

/// What starting on a host and sending its record take, about.
const AROUND: Duration = Duration::from_secs(5);
/// The longest that a job may wait in the queue, and run.
const QUEUED: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often a node is tried again whose job was taken from it by one of higher priority.
const TRIES: usize = 20;
/// The pause before that: the other job has the node for now.
const BEFORE_AGAIN: Duration = Duration::from_secs(5);

/// Hosts by what became of them.
#[derive(Default)]
struct Counts {
    /// Those that said that they have begun, and have not answered yet.
    running: BTreeSet<String>,
    done: usize,
    failed: usize,
}

impl Counts {
    fn over(&self) -> usize {
        self.done + self.failed
    }

    /// Of so many hosts: the others wait, in an engine's queue or for their turn.
    fn said(&self, all: usize) -> String {
        let (running, done, failed) = (self.running.len(), self.done, self.failed);
        let waiting = all.saturating_sub(self.over() + running);
        format!("{done} done, {running} running, {waiting} waiting, {failed} failed")
    }
}

impl Conducting<'_> {
    /// Has these hosts measured, and keeps what comes.
    pub fn pass(&self, pass: Pass, mut nodes: Vec<String>) -> anyhow::Result<()> {
        let mut hosts = BTreeMap::new();
        match &self.engine {
            Engine::Slurm { .. } => self.leave_out_those_down(pass, &mut nodes)?,
            Engine::Ssh { .. } => {}
            Engine::Kubernetes(options) => {
                hosts = self
                    .cluster(options)
                    .able(&nodes, |node, reason| self.fail(pass, node, reason))?;
                nodes.retain(|node| hosts.contains_key(node));
            }
        }
        if nodes.is_empty() {
            return Ok(());
        }
        let all = nodes.len();
        let rounds = if self.alone() {
            1
        } else {
            all.div_ceil(self.at_once)
        };
        let progress = Progress::start(
            &format!("measuring {}", counted(all as u64, "host")),
            (self.takes + AROUND) * rounds as u32,
            Progressing::Person,
        );
        let (mut counts, begun) = (Counts::default(), Instant::now());
        let mut trouble = Ok(());
        for attempt in 0..TRIES {
            let mut taken_away = Vec::new();
            let last = attempt + 1 == TRIES;
            let mut event = |event| {
                match event {
                    Event::Began(node) => {
                        counts.running.insert(node);
                    }
                    Event::Refused(sentence) => progress.say(&sentence),
                    Event::Answered(node, Answer::Failed(reason))
                        if !last && engine::was_preempted(&reason) =>
                    {
                        counts.running.remove(&node);
                        taken_away.push(node);
                    }
                    Event::Answered(node, answer) => {
                        counts.running.remove(&node);
                        let kept = self.keep(pass, &node, answer);
                        counts.done += usize::from(matches!(kept, Ok(true)));
                        counts.failed += usize::from(matches!(kept, Ok(false)));
                        if let Err(e) = kept {
                            // A full disk is told, and the hosts that it hit are left to do.
                            trouble = Err(e);
                        }
                    }
                }
                progress.show(&counts.said(all), counts.over() as f64 / all as f64);
            };
            self.measure(std::mem::take(&mut nodes), &hosts, &mut event)?;
            nodes = taken_away;
            if nodes.is_empty() || trouble.is_err() || self.stop.load(Ordering::Relaxed) {
                break;
            }
            pool::pause(BEFORE_AGAIN, self.stop);
        }
        drop(progress);
        say(&format!(
            "{} measured, {} failed, in {:.0} s",
            counts.done,
            counts.failed,
            begun.elapsed().as_secs_f64()
        ));
        trouble
    }

    /// Has the engine measure these nodes once.
    fn measure(
        &self,
        nodes: Vec<String>,
        hosts: &BTreeMap<String, String>,
        event: &mut dyn FnMut(Event),
    ) -> anyhow::Result<()> {
        let job = format!(
            "fingerpost-{}-{:08x}",
            self.sweep.manifest.id.to_lowercase(),
            fastrand::u32(..)
        );
        if let Engine::Kubernetes(options) = &self.engine {
            return self
                .cluster(options)
                .run(&job, hosts, &self.sweep.manifest.args, event);
        }
        let tasks = self.tasks(&job, nodes)?;
        let slurm = matches!(self.engine, Engine::Slurm { .. });
        let at_once = if self.alone() { 1 } else { self.at_once };
        let wait = if slurm {
            QUEUED
        } else {
            Duration::from_secs(self.timeout + 60)
        };
        // One job is asked about once.
        let mut of_all = None;
        let mut taken = |node: &str| {
            if self.alone() {
                *of_all.get_or_insert_with(|| was_taken(&job, node))
            } else {
                was_taken(&job, node)
            }
        };
        pool::run(&tasks, at_once, wait, self.stop, |told| {
            event(match told {
                Event::Answered(node, Answer::Failed(reason))
                    if slurm
                        && reason.contains(pool::NO_RECORD)
                        && !engine::was_preempted(&reason)
                        && taken(&node) =>
                {
                    Event::Answered(
                        node,
                        Answer::Failed(format!("{reason}; its job {}", engine::PREEMPTED)),
                    )
                }
                told => told,
            });
        });
        if slurm && self.stop.load(Ordering::Relaxed) {
            cancel(&job);
        }
        Ok(())
    }

    fn cluster<'b>(&'b self, options: &'b kubernetes::Options) -> Cluster<'b> {
        Cluster {
            options,
            timeout: self.timeout,
            at_once: self.at_once,
            stop: self.stop,
        }
    }

    /// Whether one child answers for all nodes.
    fn alone(&self) -> bool {
        matches!(
            self.engine,
            Engine::Slurm {
                scavenge: false,
                ..
            }
        )
    }

    /// Keeps an answer; says whether it is a record.
    fn keep(&self, pass: Pass, node: &str, answer: Answer) -> anyhow::Result<bool> {
        let reason = match answer {
            Answer::Record(packed) => match self.sweep.put(pass, node, &packed) {
                Ok(_) => return Ok(true),
                Err(SweepError::Record(e)) => e.to_string(),
                Err(e) => return Err(e.into()),
            },
            Answer::Failed(reason) => reason,
        };
        self.fail(pass, node, &reason)?;
        Ok(false)
    }

    /// Keeps why a node has no record. Of a confirmation that is only told: the node has its first record.
    fn fail(&self, pass: Pass, node: &str, reason: &str) -> anyhow::Result<()> {
        match pass {
            Pass::First => self.sweep.fail(node, reason)?,
            Pass::Again => say(&format!(
                "{node} was not measured again: {}",
                clean_short(reason, 200)
            )),
        }
        Ok(())
    }

    fn tasks(&self, job: &str, nodes: Vec<String>) -> anyhow::Result<Vec<Task>> {
        let words = &self.sweep.manifest.args;
        let (options, scavenge) = match &self.engine {
            Engine::Slurm { options, scavenge } => (options, *scavenge),
            Engine::Ssh { config } => return self.by_ssh(config.as_ref(), nodes),
            Engine::Kubernetes(_) => return Ok(Vec::new()),
        };
        let program = own_path()?;
        let task = |nodes: Vec<String>| {
            // In the order in which Slurm takes them from the list: its labels are numbers in that.
            let nodes = names::parse(&names::fold(&nodes)).map_err(anyhow::Error::msg)?;
            let job = Job {
                name: job,
                nodes: &nodes,
                program: &program,
                timeout: self.timeout,
                words,
            };
            let words = std::iter::once("srun".to_owned())
                .chain(job.srun(options, scavenge))
                .collect();
            Ok(Task {
                words,
                labelled: nodes.len() > 1,
                nodes,
                send_program: false,
            })
        };
        if scavenge {
            nodes.into_iter().map(|node| task(vec![node])).collect()
        } else {
            Ok(vec![task(nodes)?])
        }
    }

    fn by_ssh(&self, config: Option<&String>, nodes: Vec<String>) -> anyhow::Result<Vec<Task>> {
        let (_, bytes) = super::node::own_file()?;
        let task = |node: String| {
            let ssh = ["ssh".to_owned()].into_iter().chain(
                config
                    .iter()
                    .flat_map(|file| ["-F".to_owned(), (*file).clone()]),
            );
            let words = ssh
                .chain(engine::ssh(
                    &node,
                    bytes,
                    self.timeout,
                    &self.sweep.manifest.args,
                ))
                .collect();
            Task {
                words,
                nodes: vec![node],
                send_program: true,
                labelled: false,
            }
        };
        Ok(nodes.into_iter().map(task).collect())
    }

    /// One node that is down would keep the others' job from starting: it is a row with Slurm's own word for its state.
    fn leave_out_those_down(&self, pass: Pass, nodes: &mut Vec<String>) -> anyhow::Result<()> {
        let list = names::fold(nodes);
        let mut command = Command::new("sinfo");
        command.args([
            "--noheader",
            "--Node",
            "--format=%N %T",
            &format!("--nodes={list}"),
        ]);
        let said = child::run_bounded(&mut command, Instant::now() + Duration::from_secs(60))
            .context("cannot start Slurm's sinfo here (use a host of the cluster, or --ssh)")?;
        if !said.status.is_some_and(|status| status.success()) {
            let why = clean_short(String::from_utf8_lossy(&said.stderr).trim(), 200);
            return usage(format!(
                "Slurm does not answer: {why}; start this on a host on which `sinfo` works, or use --ssh"
            ));
        }
        let text = String::from_utf8_lossy(&said.stdout);
        let states: BTreeMap<&str, &str> = text
            .lines()
            .filter_map(|line| line.trim().split_once(' '))
            .collect();
        let mut able = Vec::new();
        for node in nodes.drain(..) {
            let reason = match states
                .get(node.as_str())
                .map(|state| state.trim_end_matches(['+', '$', '@', '^', '-']))
            {
                Some("idle" | "mixed" | "allocated" | "completing" | "reserved" | "planned") => {
                    able.push(node);
                    continue;
                }
                Some(state) => format!("Slurm says that it is {}", clean_short(state, 40)),
                None => "Slurm does not know it".to_owned(),
            };
            self.fail(pass, &node, &reason)?;
        }
        *nodes = able;
        Ok(())
    }
}

/// Whether Slurm took this node from the job of this name for another one: on a busy node the job itself is ended
/// before it can say so.
fn was_taken(job: &str, node: &str) -> bool {
    let mut command = Command::new("squeue");
    // Of one that was not taken it says N/A.
    command.args([
        "--noheader",
        "--states=all",
        "--Format=PreemptTime",
        &format!("--name={job}"),
        &format!("--nodelist={node}"),
    ]);
    let said = child::run_bounded(&mut command, Instant::now() + Duration::from_secs(30));
    said.is_ok_and(|said| {
        said.stdout
            .trim_ascii()
            .first()
            .is_some_and(u8::is_ascii_digit)
    })
}

/// Cancels the jobs of this name, which nobody else's has.
fn cancel(job: &str) {
    let cancelled = child::run_bounded(
        Command::new("scancel").arg(format!("--name={job}")),
        Instant::now() + Duration::from_secs(30),
    );
    if !cancelled.is_ok_and(|said| said.status.is_some_and(|status| status.success())) {
        say(&format!(
            "the job could not be cancelled; do it by `scancel --name={job}`"
        ));
    }
}

/// This program's file as the nodes see it by a shared path.
pub fn own_path() -> anyhow::Result<String> {
    let path = std::env::current_exe().context("cannot tell where this program is")?;
    path.to_str()
        .map(str::to_owned)
        .context("this program's path is no text that can be passed on")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_stand_in_a_queue_wait_and_do_not_run() {
        let mut counts = Counts::default();
        assert_eq!(counts.said(40), "0 done, 0 running, 40 waiting, 0 failed");
        counts.running.extend(["n1", "n2"].map(str::to_owned));
        (counts.done, counts.failed) = (3, 1);
        assert_eq!(counts.said(40), "3 done, 2 running, 34 waiting, 1 failed");
        assert_eq!(counts.over(), 4);
    }
}
