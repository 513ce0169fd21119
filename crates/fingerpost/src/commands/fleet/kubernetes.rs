//! `fleet run --kubernetes`: a Job with a pod a node, through `kubectl` as it is configured.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fingerpost_fleet::kubernetes::{self, Job, Phase, Pod};
use fingerpost_fleet::wire::{self, Answer, Collector, LONGEST_LINE};
use fingerpost_record::text::clean_short;
use fingerpost_sys::child;
use fingerpost_undo::scratch::Scratch;

use super::pool::{self, Event};
use crate::exit::{say, usage};

/// What is passed on to Kubernetes.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Kubernetes: the image with the program as its entry point
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Kubernetes: the namespace of the Job; else that of kubectl's context
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Kubernetes: the context of kubectl's configuration
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Kubernetes: measure nodes with a taint and cordoned ones, too
    #[arg(long)]
    pub tolerate: bool,
}

impl Options {
    /// The image, without which there is no Job.
    pub fn image(&self) -> anyhow::Result<&str> {
        let good = |image: &&str| {
            !image.is_empty() && !image.contains(|c: char| c.is_whitespace() || c.is_control())
        };
        let none = || {
            usage(
                "--kubernetes needs --image IMAGE: one whose entry point is this program, such as `make image` builds",
            )
        };
        self.image.as_deref().filter(good).map_or_else(none, Ok)
    }

    /// The Job that measures on these hosts.
    pub fn job<'a>(
        &'a self,
        name: &'a str,
        hosts: &'a [String],
        at_once: usize,
        timeout: u64,
        words: &'a [String],
    ) -> anyhow::Result<Job<'a>> {
        let (namespace, image, tolerate) =
            (self.namespace.as_deref(), self.image()?, self.tolerate);
        Ok(Job {
            name,
            namespace,
            image,
            hosts,
            at_once,
            timeout,
            words,
            tolerate,
        })
    }
}

/// Time between two looks at the pods.
const LOOK: Duration = Duration::from_secs(3);
/// The longest that one call of kubectl may take.
const CALL: Duration = Duration::from_secs(120);
/// The largest answer of kubectl that is read: 10,000 pods are some 100 MB.
const MOST_ANSWER: u64 = 512 << 20;
/// The longest log of a pod that is looked at.
const MOST_LOG: u64 = 64 << 20;
/// Calls in a row that may fail before the sweep is given up: a control plane that is upgraded is away for minutes.
const MOST_FAILURES: u32 = 60;
/// Time that pods may take to be placed and their image to be fetched, on top of what measuring takes.
const PLACING: Duration = Duration::from_secs(600);

/// The cluster as kubectl reaches it.
pub struct Cluster<'a> {
    /// What is passed on.
    pub options: &'a Options,
    /// The most seconds that one host may take.
    pub timeout: u64,
    /// How many may run at a time.
    pub at_once: usize,
    /// Set when it is to end.
    pub stop: &'a AtomicBool,
}

impl Cluster<'_> {
    fn kubectl(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.args(
            self.options
                .context
                .iter()
                .map(|context| format!("--context={context}")),
        );
        command.args(
            self.options
                .namespace
                .iter()
                .map(|namespace| format!("--namespace={namespace}")),
        );
        command.arg("--request-timeout=60s").args(words);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        child::die_with_parent(&mut command);
        command
    }

    /// What kubectl says, up to a bound; the end of its complaint where it fails.
    fn asked(&self, words: &[&str], most: u64) -> anyhow::Result<Vec<u8>> {
        let mut running = self
            .kubectl(words)
            .spawn()
            .context("cannot start kubectl")?;
        let (out, err) = (running.stdout.take(), running.stderr.take());
        std::thread::scope(|scope| {
            let complaint = scope.spawn(move || pool::complaint(err, "none"));
            let said = scope.spawn(move || {
                let mut said = Vec::new();
                out.map(|out| out.take(most).read_to_end(&mut said))
                    .transpose()
                    .map(|_| said)
            });
            let status = pool::ended_by(&mut running, Instant::now() + CALL)?;
            let said = said.join().unwrap_or_else(|_| Ok(Vec::new()))?;
            let complaint = complaint.join().unwrap_or_default();
            match status {
                Some(status) if status.success() => Ok(said),
                Some(status) => {
                    anyhow::bail!("kubectl {} ended with {status}: {complaint}", words[0])
                }
                None => anyhow::bail!(
                    "kubectl {} did not answer within {} seconds",
                    words[0],
                    CALL.as_secs()
                ),
            }
        })
    }

    /// The nodes of these that take a pod, each with its host name; `fail` is told of the others.
    pub fn able(
        &self,
        wanted: &[String],
        mut fail: impl FnMut(&str, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let said = self
            .asked(&["get", "nodes", "--output=json"], MOST_ANSWER)
            .or_else(|e| usage(format!("Kubernetes does not answer: {e:#}")))?;
        let states = kubernetes::nodes_of(&said, self.options.tolerate).or_else(usage)?;
        let mut able = BTreeMap::new();
        for node in wanted {
            match states.get(node) {
                Some(Ok(host)) => drop(able.insert(node.clone(), host.clone())),
                Some(Err(reason)) => fail(node, reason)?,
                None => fail(node, "Kubernetes does not know it")?,
            }
        }
        Ok(able)
    }

    /// Has these nodes measured, and tells `event` of each answer.
    pub fn run(
        &self,
        name: &str,
        able: &BTreeMap<String, String>,
        words: &[String],
        event: &mut dyn FnMut(Event),
    ) -> anyhow::Result<()> {
        let hosts: Vec<String> = able.values().cloned().collect();
        let job = self
            .options
            .job(name, &hosts, self.at_once, self.timeout, words)?;
        let scratch =
            Scratch::create().context("cannot make a private directory for the manifest")?;
        let file = scratch.subdir("fleet")?.join("job.json");
        std::fs::write(&file, kubernetes::text(&kubernetes::manifest(&job)))?;
        let file = file
            .to_str()
            .context("the directory for temporary files has a name that is no text")?;
        self.asked(&["create", "-f", file], 1 << 20)
            .or_else(|e| usage(format!("the Job cannot be made: {e:#}")))?;
        let followed = self.follow(name, able, event);
        // Its pods go with it, those that still run too.
        let words = [
            "delete",
            "job",
            name,
            "--cascade=background",
            "--wait=false",
            "--ignore-not-found",
        ];
        if let Err(e) = self.asked(&words, 1 << 20) {
            say(&format!(
                "the Job could not be removed ({e:#}); do it by `kubectl delete job {name}`"
            ));
        }
        followed
    }

    fn follow(
        &self,
        name: &str,
        able: &BTreeMap<String, String>,
        event: &mut dyn FnMut(Event),
    ) -> anyhow::Result<()> {
        let mut left: BTreeSet<&str> = able.keys().map(String::as_str).collect();
        let (mut began, mut taken) = (BTreeSet::new(), BTreeSet::new());
        let rounds = able.len().div_ceil(self.at_once.max(1)) as u32;
        let deadline = Instant::now() + PLACING + Duration::from_secs(self.timeout + 60) * rounds;
        let (mut failures, mut pods) = (0, Vec::new());
        while !left.is_empty() && !self.stop.load(Ordering::Relaxed) && Instant::now() < deadline {
            match self.pods(name) {
                Ok(found) => (failures, pods) = (0, found),
                Err(_) if failures < MOST_FAILURES => failures += 1,
                Err(e) => return Err(e),
            }
            for pod in pods
                .iter()
                .filter(|pod| !matches!(pod.phase, Phase::Waits(_)))
            {
                let Some(node) = pod.node.as_deref().filter(|node| left.contains(node)) else {
                    continue;
                };
                if began.insert(pod.name.clone()) {
                    event(Event::Began(node.to_owned()));
                }
            }
            for pod in pods
                .iter()
                .filter(|pod| pod.phase == Phase::Ended && !self.stop.load(Ordering::Relaxed))
            {
                let Some(node) = pod.node.as_deref().filter(|node| left.contains(node)) else {
                    continue;
                };
                if taken.insert(pod.name.clone()) {
                    let answer = self.log_of(pod, node);
                    left.remove(node);
                    event(Event::Answered(node.to_owned(), answer));
                }
            }
            pool::pause(LOOK, self.stop);
        }
        if !self.stop.load(Ordering::Relaxed) {
            let why = why_none(&pods);
            left.iter().for_each(|node| {
                event(Event::Answered(
                    (*node).to_owned(),
                    Answer::Failed(why_of(node, &pods).unwrap_or_else(|| why.clone())),
                ))
            });
        }
        Ok(())
    }

    fn pods(&self, name: &str) -> anyhow::Result<Vec<Pod>> {
        let selector = format!("--selector=batch.kubernetes.io/job-name={name}");
        let said = self.asked(&["get", "pods", &selector, "--output=json"], MOST_ANSWER)?;
        kubernetes::pods_of(&said).map_err(anyhow::Error::msg)
    }

    /// What a pod that has ended printed.
    fn log_of(&self, pod: &Pod, node: &str) -> Answer {
        let said = match self.asked(&["logs", &pod.name], MOST_LOG) {
            Ok(said) => said,
            Err(e) => return Answer::Failed(format!("its log cannot be read: {e:#}")),
        };
        let mut collector = Collector::default();
        let mut answer = Answer::Failed(format!(
            "its pod ended and printed no record; its last words: {}",
            last_words(&said)
        ));
        for line in pool::lines(&said[..], LONGEST_LINE) {
            if let Some((_, got)) = collector.line(&line, |name| name == node) {
                answer = got;
            }
        }
        answer
    }
}

fn last_words(log: &[u8]) -> String {
    let end = &log[log.len().saturating_sub(1000)..];
    let text = String::from_utf8_lossy(end);
    clean_short(
        text.lines()
            .rfind(|line| !line.trim().is_empty() && wire::begun(line).is_none())
            .unwrap_or("none"),
        160,
    )
}

/// Why a node has no answer, by the pod that is on it.
fn why_of(node: &str, pods: &[Pod]) -> Option<String> {
    let pod = pods.iter().find(|pod| pod.node.as_deref() == Some(node))?;
    Some(match &pod.phase {
        Phase::Waits(reason) => format!("its pod did not start: {reason}"),
        Phase::Runs | Phase::Ended => "its pod did not end in time".into(),
    })
}

/// Why nodes without a pod have no answer.
fn why_none(pods: &[Pod]) -> String {
    let waits = pods
        .iter()
        .filter(|pod| pod.node.is_none())
        .find_map(|pod| match &pod.phase {
            Phase::Waits(reason) => Some(reason.as_str()),
            _ => None,
        });
    format!(
        "no pod came to it in time: {}",
        waits.unwrap_or("no reason given")
    )
}
