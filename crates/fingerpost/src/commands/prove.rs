//! `fingerpost prove`: plants known causes and checks that the verdict names them.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fingerpost_labs::attribute::KeptOpen;
use fingerpost_labs::prove::{self, Course, PLANTS, Plant, Proof, Result as Verdict, Trial};
use fingerpost_record::archive::{new_id, rfc3339};
use fingerpost_record::{Profile, suggest};
use fingerpost_sys::child::{self, Output};
use fingerpost_sys::{network, system, task};
use fingerpost_undo::scratch::Scratch;
use wildmatch::WildMatch;

use crate::ab::pair;
use crate::exit::{Done, say, usage};
use crate::output::Listing as Format;
use crate::progress::{Progress, Progressing};
use crate::{conduct, cpus, output};

mod document;
mod servers;
mod table;

use document::{Document, status};

/// Arguments of `prove`.
#[derive(Debug, clap::Args)]
#[command(after_help = help(), after_long_help = long_help())]
pub struct Args {
    /// Causes, controls or globs (`cpu.*`); with none, all of them
    #[arg(value_name = "CAUSE")]
    causes: Vec<String>,
    /// Seconds for all of them together
    #[arg(long, value_name = "SECONDS", default_value_t = 100.0)]
    seconds: f64,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Keep both sides of every trial as runs in the archive
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    servers: servers::Options,
    /// No progress, no notes
    #[arg(short, long)]
    quiet: bool,
    /// We are the child that was started in a network of its own
    #[arg(long, hide = true)]
    in_own_network: bool,
}

/// What the exit status says, and what can be planted.
fn help() -> String {
    let (causes, controls): (Vec<&str>, Vec<&str>) = PLANTS
        .iter()
        .map(|p| p.name)
        .partition(|name| !name.starts_with("control."));
    format!(
        "{EXAMPLES}\n\n{STATUS}\n\nCauses: {}\n\nControls: {}",
        causes.join(", "),
        controls.join(", ")
    )
}

/// The same, and what can be planted in servers.
fn long_help() -> String {
    format!("{}\n\nIn servers: {}", help(), servers::plants().join(", "))
}

const EXAMPLES: &str = "\
Examples:
  fingerpost prove                            all causes, 100 s
  fingerpost prove 'cpu.*' control.nothing
  sudo fingerpost prove --servers --trials 40";

const STATUS: &str = "Exit status: 0 when every cause that could be planted was named first and no control was \
    accused, 1 otherwise, \
    3 when a trial failed twice. Each plant is written to a journal, undone after its trial, and changes nothing that \
    fingerpost did not make.";

/// Plants, judges, prints.
pub fn run(args: Args) -> anyhow::Result<Done> {
    if args.servers.servers {
        return servers::run(&args.servers, args.format, args.quiet, args.in_own_network);
    }
    if !(args.seconds.is_finite() && (1.0..1e5).contains(&args.seconds)) {
        return usage(format!("--seconds {}: give 1 to 99999", args.seconds));
    }
    let plants = choose(&args.causes)?;
    let stop = ready(args.in_own_network, args.quiet)?;
    let document = all(&plants, &args, &stop)?;
    match args.format {
        Format::Json => output::json(&document)?,
        Format::Table => output::write(|out| table::write(out, &document, &output::style(false)))?,
    }
    Ok(status(
        document.plants.iter().map(|p| p.result),
        stop.load(Ordering::Relaxed),
    ))
}

/// Makes the system ready for plants, and gives the flag that signals set.
fn ready(in_own_network: bool, quiet: bool) -> anyhow::Result<Arc<AtomicBool>> {
    if in_own_network {
        network::loopback_up()
            .context("cannot switch on the loopback interface of a network of our own")?;
    } else {
        conduct::clean_up(quiet);
    }
    Ok(conduct::stopped_by_signals()?)
}

/// Runs `prove` with further words in a child that has a network of its own, so that nobody else's loopback slows down,
/// and takes what it left; else says why there is nothing.
fn in_own_network<T>(
    words: impl FnOnce(&mut Command),
    longest: Duration,
    take: impl FnOnce(&Output) -> Option<T>,
) -> Result<T, (Verdict, String)> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("fingerpost")
        .args(["prove", "--format", "json", "--quiet", "--in-own-network"]);
    words(&mut command);
    task::own_network(&mut command);
    let output = child::run_bounded(
        child::die_with_parent(&mut command),
        Instant::now() + longest,
    )
    .map_err(|e| {
        (
            Verdict::Skipped,
            format!("cannot make a network of our own: {e}"),
        )
    })?;
    let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    take(&output).ok_or_else(|| {
        (
            Verdict::Failed,
            format!("the child in its own network said: {}", said()),
        )
    })
}

fn choose(wanted: &[String]) -> anyhow::Result<Vec<&'static Plant>> {
    for name in wanted {
        let pattern = WildMatch::new(name);
        if !PLANTS.iter().any(|p| pattern.matches(p.name)) {
            let near = suggest::or_else(name, PLANTS.iter().map(|p| p.name), || {
                "`fingerpost prove --help` names what can be".to_owned()
            });
            return usage(format!("“{name}” cannot be planted; {near}"));
        }
    }
    let chosen = |p: &&Plant| {
        wanted.is_empty()
            || wanted
                .iter()
                .any(|name| WildMatch::new(name).matches(p.name))
    };
    Ok(PLANTS.iter().filter(chosen).collect())
}

fn all(plants: &[&'static Plant], args: &Args, stop: &AtomicBool) -> anyhow::Result<Document> {
    let begun = Instant::now();
    let mut scratch =
        Scratch::create_guarded().context("cannot make a private directory for the proof")?;
    let dir = scratch.subdir("work")?;
    let cpus = cpus::choose(None)?;
    let time =
        Duration::from_secs_f64(args.seconds / plants.len() as f64).min(Duration::from_secs(30));
    let host = fingerpost_host::describe_for(&dir, &cpus);
    let root = system::is_root();
    let events = KeptOpen::default();
    let course = Course {
        time,
        dir: &dir,
        cpus: &cpus,
        host: &host,
        root,
        stop,
        events: &events,
    };
    let progress = Progress::start(
        "planting known causes",
        time * plants.len() as u32,
        Progressing::unless(args.quiet),
    );
    let mut proofs = Vec::new();
    for (i, plant) in plants.iter().enumerate() {
        progress.show(plant.name, i as f64 / plants.len() as f64);
        let proof = if plant.own_network() && root && !args.in_own_network {
            apart(plant, time, args)
        } else {
            let trial = prove::run(plant, &course, &mut scratch);
            kept(trial, args.keep)
        };
        if let (Some([base, new]), false) = (&proof.kept, args.quiet) {
            say(&format!("{} is kept as {base} and {new}", proof.plant));
        }
        proofs.push(proof);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(document(proofs, begun.elapsed().as_secs_f64()))
}

/// Plants in a network of its own.
fn apart(plant: &Plant, time: Duration, args: &Args) -> Proof {
    let words = |command: &mut Command| {
        command.args([
            plant.name,
            "--seconds",
            &time.as_secs_f64().max(1.0).to_string(),
        ]);
        command.args(args.keep.then_some("--keep"));
    };
    let one = |output: &Output| {
        let mut plants = serde_json::from_slice::<Document>(&output.stdout)
            .ok()?
            .plants;
        plants.pop().filter(|_| plants.is_empty())
    };
    in_own_network(words, time * 3 + Duration::from_secs(60), one)
        .unwrap_or_else(|(verdict, why)| Proof::without(plant, verdict, why))
}

/// Keeps both sides, when that was asked for, and gives the row.
fn kept(trial: Trial, keep: bool) -> Proof {
    let Trial { mut proof, runs } = trial;
    if let (true, Some(mut runs)) = (keep, runs) {
        let now = jiff::Timestamp::now();
        let ids = pair::ids(&new_id(now, fastrand::u32(..)));
        for (run, id) in runs.iter_mut().zip(ids) {
            run.id = id;
            run.started = rfc3339(now);
            run.profile = Profile::Quick;
            run.command = crate::exit::command_line();
        }
        match pair::keep(&runs) {
            Ok(()) => proof.kept = Some(runs.map(|run| run.id)),
            Err(e) => say(&format!("the runs of {} are not kept: {e}", proof.plant)),
        }
    }
    proof
}

fn document(plants: Vec<Proof>, seconds: f64) -> Document {
    let tried = |p: &&Proof| p.result.tried();
    let single: Vec<&Proof> = plants
        .iter()
        .filter(|p| p.planted.len() == 1)
        .filter(tried)
        .collect();
    let controls: Vec<&Proof> = plants
        .iter()
        .filter(|p| p.planted.is_empty())
        .filter(tried)
        .collect();
    let count =
        |of: &[&Proof], f: fn(&Proof) -> bool| [of.iter().filter(|p| f(p)).count(), of.len()];
    let named_first = count(&single, |p| p.result == Verdict::Right);
    let layer_first = count(&single, Proof::layer_is_right);
    let false_accusations = count(&controls, |p| p.result == Verdict::Wrong);
    Document {
        named_first,
        layer_first,
        false_accusations,
        seconds,
        plants,
    }
}
