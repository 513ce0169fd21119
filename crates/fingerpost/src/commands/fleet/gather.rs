//! `fingerpost fleet gather`: records that came by any way, put into a sweep.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fingerpost_fleet::sweep::{Pass, State, Sweep};
use fingerpost_fleet::table::Table;
use fingerpost_fleet::wire::{Answer, Collector, LONGEST_LINE};
use fingerpost_fleet::{index, nodes, slim};
use fingerpost_record::text::{clean_short, counted};
use fingerpost_record::{Run, lean, open};

use super::engine::ASKED;
use super::pool::{self, lines};
use crate::commands::run::time_of;
use crate::exit::{Done, say, usage};
use crate::progress::{Progress, Progressing};

/// Arguments of `fleet gather`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A file NODE.json is that node's run, NODE.json.gz its record (as in the directory `hosts` of another \
        sweep), and NODE.out what \
    its task printed. A file that holds no record is a row with the reason, and so is a node of -w, or of a batch \
    script's file \
    fingerpost-nodes, that has no file. Exit status 3: some host has no record."
)]
pub struct GatherArgs {
    /// The directory with the files
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The sweep's directory, which must not be there
    #[arg(short, long, value_name = "SWEEP", required_unless_present = "again")]
    output: Option<PathBuf>,
    /// The nodes that were asked for; one without a file becomes a row that says so
    #[arg(short = 'w', long, value_name = "NODES", conflicts_with = "again")]
    nodes: Option<String>,
    /// The files are of suspects and controls measured again: add them to this sweep as its confirmation
    #[arg(long, value_name = "SWEEP", conflicts_with = "output")]
    again: Option<PathBuf>,
    /// Words after `run` that the nodes were given; suspects and hosts without a record are measured with the same
    #[arg(last = true, value_name = "ARG", conflicts_with = "again")]
    words: Vec<String>,
}

/// What the names of files end in that can be records.
const ENDINGS: [&str; 3] = [".json", ".json.gz", ".out"];

/// The longest list of nodes that is read.
const MOST_LIST: u64 = 8 << 20;

/// From so many files on gathering takes seconds.
const MANY: usize = 1000;

/// What taking a record of a thousand rows takes.
const A_FILE: Duration = Duration::from_millis(5);

/// The longest output of one task that is looked at.
const MOST_OUTPUT: u64 = 64 << 20;

/// Gathers records into a sweep, on every CPU.
pub fn gather(args: GatherArgs) -> anyhow::Result<Done> {
    time_of(&args.words)?;
    let files = files_of(&args.dir)?;
    let (sweep, pass) = match (&args.again, &args.output) {
        (Some(dir), _) => (super::given::open(dir)?, Pass::Again),
        (None, output) => {
            let asked: Vec<String> = asked_of(&args, &files)?.into_iter().collect();
            (
                super::given::create(output.clone(), "gather", &asked, &args.words)?,
                Pass::First,
            )
        }
    };
    let gathering = Gathering {
        sweep: &sweep,
        pass,
        table: Mutex::default(),
    };
    let (mut kept, mut beside, mut failed, mut seen) = (0_u64, 0_u64, 0_u64, 0);
    let mut trouble = Ok(());
    let progress = progress_of(files.len());
    gathering.all(&files, |node, taken| {
        seen += 1;
        progress.show(
            &format!("{seen} of {} files", files.len()),
            seen as f64 / files.len() as f64,
        );
        match taken {
            Ok(Taken::Kept) => kept += 1,
            Ok(Taken::Beside) => beside += 1,
            // The reason of an attempt before the one that made the record.
            Ok(Taken::No(_)) if pass == Pass::First && sweep.stamp(node).is_some() => {}
            Ok(Taken::No(reason)) => {
                failed += 1;
                match pass {
                    // One that goes well does not undo an error before it.
                    Pass::First => sweep
                        .fail(node, &reason)
                        .unwrap_or_else(|e| trouble = Err(e.into())),
                    Pass::Again => progress.say(&format!("{node}: {reason}")),
                }
            }
            Err(e) => trouble = Err(e),
        }
    });
    drop(progress);
    trouble?;
    if pass == Pass::First {
        let mut table = gathering
            .table
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        table.hosts.sort_by(|a, b| a.node.cmp(&b.node));
        index::save(&index::path(sweep.dir()), &table);
        failed = sweep
            .states()?
            .values()
            .filter(|state| **state != State::Measured)
            .count() as u64;
    }
    let doubled = if beside == 0 {
        String::new()
    } else {
        format!(
            ", {} of a host that has one",
            counted(beside, "further record")
        )
    };
    let shown = sweep.dir().display();
    say(&format!(
        "{} gathered{doubled}, {failed} without one; which hosts are slow: fingerpost fleet show {shown}",
        counted(kept, "record")
    ));
    Ok(if failed == 0 {
        Done::Well
    } else {
        Done::MeasurementFailed
    })
}

/// What shows how far it is, where it takes longer than a person cares to wait.
fn progress_of(files: usize) -> Progress {
    let to = Progressing::unless(files < MANY);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    Progress::start(
        &format!("gathering {}", counted(files as u64, "file")),
        A_FILE * (files / cpus) as u32,
        to,
    )
}

/// The nodes of which something is known: every file is a row, also one whose record is none, and so is every node that
/// was asked for.
fn asked_of(args: &GatherArgs, files: &[(String, PathBuf)]) -> anyhow::Result<BTreeSet<String>> {
    let mut asked: BTreeSet<String> = files.iter().map(|(node, _)| node.clone()).collect();
    asked.extend(
        args.nodes
            .as_deref()
            .map(super::given::names)
            .transpose()?
            .into_iter()
            .flatten(),
    );
    let path = args.dir.join(ASKED);
    if path.exists() {
        let read = open::beginning(&path, MOST_LIST);
        let list = read.or_else(|e| usage(format!("cannot read {}: {e}", path.display())))?;
        asked.extend(
            nodes::parse(&String::from_utf8_lossy(&list))
                .or_else(|why| usage(format!("{}: {why}", path.display())))?,
        );
    }
    Ok(asked)
}

/// What became of a file.
enum Taken {
    /// It is the node's record now.
    Kept,
    /// It is a further record of a node that has one.
    Beside,
    /// It is none, because …
    No(String),
}

/// Where the files go.
struct Gathering<'a> {
    sweep: &'a Sweep,
    pass: Pass,
    /// The figures of the sweep's records.
    table: Mutex<Table>,
}

impl Gathering<'_> {
    /// Takes the files, each by some thread, and tells of each on this one. Files of one node are one thread's, in
    /// their order, so that which of two records is the node's does not depend on which thread is faster. Stops at the
    /// first error of the sweep's own.
    fn all<'a>(
        &self,
        files: &'a [(String, PathBuf)],
        mut tell: impl FnMut(&str, anyhow::Result<Taken>),
    ) {
        let of_nodes: Vec<&[(String, PathBuf)]> = files.chunk_by(|a, b| a.0 == b.0).collect();
        let (cpus, stop) = (
            std::thread::available_parallelism().map_or(1, usize::from),
            AtomicBool::new(false),
        );
        let take = |of_node: &&'a [(String, PathBuf)],
                    told: &dyn Fn((&'a str, anyhow::Result<Taken>))| {
            of_node
                .iter()
                .for_each(|(node, path)| told((node, self.take(node, path))))
        };
        pool::each(&of_nodes, cpus, &stop, take, |(node, taken)| {
            stop.fetch_or(taken.is_err(), Ordering::Relaxed);
            tell(node, taken);
        });
    }

    /// Takes one file. The error is the sweep's own.
    fn take(&self, node: &str, path: &Path) -> anyhow::Result<Taken> {
        let run = match run_of(node, path) {
            Ok(run) => run,
            Err(reason) => return Ok(Taken::No(reason)),
        };
        let Some(run) = self.sweep.put_run(self.pass, node, run)? else {
            return Ok(Taken::Beside);
        };
        if let (Pass::First, Some(stamp)) = (self.pass, self.sweep.stamp(node)) {
            // By the thread that read it: what it took is given back where it was taken.
            self.table
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .add(node, &run, stamp);
        }
        Ok(Taken::Kept)
    }
}

/// The files of a directory that can be records, each with the node that its name names.
fn files_of(dir: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let entries =
        std::fs::read_dir(dir).or_else(|e| usage(format!("cannot list {}: {e}", dir.display())))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let node = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)));
        if let Some(node) = node.filter(|node| nodes::is_name(node)) {
            files.push((node.to_owned(), path.clone()));
        }
        if files.len() > nodes::MOST_NODES {
            return usage(format!(
                "{} holds more than {} files",
                dir.display(),
                nodes::MOST_NODES
            ));
        }
    }
    files.sort();
    if files.is_empty() {
        usage(format!(
            "{} holds no NODE.json, NODE.json.gz or NODE.out",
            dir.display()
        ))
    } else {
        Ok(files)
    }
}

/// The run in a file, or why there is none.
fn run_of(node: &str, path: &Path) -> Result<Run, String> {
    let run = match path.extension().and_then(|end| end.to_str()) {
        Some("json") => lean::figures_from_path(path),
        Some("gz") => slim::from_path(path),
        _ => match printed(node, path) {
            Answer::Failed(reason) => return Err(reason),
            Answer::Record(packed) => slim::unpack(&packed, &format!("the record of {node}")),
        },
    };
    run.map_err(|e| e.to_string())
}

/// What is kept of the last line of a task's output.
const LAST_WORDS: usize = 160;

/// What a task printed for its node, the last answer of several.
fn printed(node: &str, path: &Path) -> Answer {
    let file = match open::regular(path) {
        Ok(opened) => opened.file.take(MOST_OUTPUT),
        Err(e) => return Answer::Failed(format!("its output cannot be read: {e}")),
    };
    let mut answer = None;
    let (mut collector, mut last) = (Collector::default(), String::new());
    for text in lines(file, LONGEST_LINE) {
        match collector.line(&text, |name| name == node) {
            Some((_, got)) => answer = Some(got),
            None if text.trim().is_empty() => {}
            None => last = clean_short(text.trim(), LAST_WORDS),
        }
    }
    if collector.unfinished().next().is_some() {
        return Answer::Failed("its output ends within a record".into());
    }
    // What the task said last is mostly why there is none: a host that did not answer, a program that is not there.
    let said = if last.is_empty() {
        String::new()
    } else {
        format!(", and ends with “{last}”")
    };
    answer.unwrap_or_else(|| Answer::Failed(format!("its output holds no record{said}")))
}
