//! `fingerpost prove --servers`: causes planted in real private servers.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fingerpost_labs::attribute::KeptOpen;
use fingerpost_labs::prove::servers::score::of_set;
use fingerpost_labs::prove::servers::strength::Candidate;
use fingerpost_labs::prove::servers::trial::own_network;
use fingerpost_labs::prove::servers::{
    Course, Outline, Row, Score, Set, Share, Taken, candidates, draw, judged, record,
    run as run_trial, score,
};
use fingerpost_record::suggest;
use fingerpost_report::Style;
use fingerpost_report::grid::{Align, Grid, Line};
use fingerpost_report::style::Tone;
use fingerpost_sys::child::Output;
use fingerpost_sys::system;
use fingerpost_undo::scratch::Scratch;
use serde::Serialize;
use wildmatch::WildMatch;

use super::document::status;
use super::ready;
use super::table::{named, share, tone, word};
use crate::exit::{Done, usage};
use crate::output::Listing as Format;
use crate::progress::{Progress, Progressing};
use crate::{cpus, output};

/// What a trial takes, about.
const EACH: Duration = Duration::from_secs(10);
/// More trials than these are a day and more.
const MOST: usize = 10_000;

/// Arguments of `prove --servers`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Plant causes in real private servers (MariaDB, PostgreSQL, SQLite, Redis, nginx, Apache) instead of the
    /// rehearsal; takes root
    #[arg(long, conflicts_with_all = ["causes", "seconds", "keep"])]
    pub servers: bool,
    /// How many trials
    #[arg(long, value_name = "N", default_value_t = 40, requires = "servers")]
    trials: usize,
    /// Seed of the random choice of trials and strengths, to repeat it
    #[arg(long, value_name = "S", default_value_t = 1, requires = "servers")]
    seed: u64,
    /// Only these lists, servers, causes or plants, as globs (`redis`, `cpu.*`, `app.lock/row`, `control/*`)
    #[arg(long, value_name = "GLOB", requires = "servers")]
    only: Vec<String>,
    /// Only the plants that no rule was developed with
    #[arg(long, requires = "servers")]
    apart: bool,
    /// Only the plants that rules may be developed with
    #[arg(long, requires = "servers", conflicts_with = "apart")]
    tuning: bool,
    /// Append each trial, with both sides' runs, to this file
    #[arg(long, value_name = "FILE", requires = "servers")]
    record: Option<PathBuf>,
    /// Judge the trials of such a file again, without a load and without root
    #[arg(long, value_name = "FILE", requires = "servers", conflicts_with_all = ["record", "trials", "seed"])]
    replay: Option<PathBuf>,
    /// The one trial that this child is for
    #[arg(long, hide = true, requires = "servers")]
    nth: Option<usize>,
}

/// The whole proof as a program reads it.
#[derive(Debug, Serialize)]
struct Document {
    /// What trials were drawn by; nothing for a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    /// A row for each trial.
    trials: Vec<Row>,
    /// The figures over all.
    score: Score,
    /// The figures over the plants on which rules may be worked.
    plants: Score,
    /// The figures over those that are kept apart.
    apart: Score,
    /// How long all of it took.
    seconds: f64,
}

/// Runs trials, or judges recorded ones, and prints.
pub fn run(
    options: &Options,
    format: Format,
    quiet: bool,
    in_own_network: bool,
) -> anyhow::Result<Done> {
    let wanted = wanted(options)?;
    let begun = Instant::now();
    let (rows, seed, interrupted) = match &options.replay {
        Some(file) => (replayed(file, options)?, None, false),
        None => {
            if !system::is_root() {
                return usage(
                    "prove --servers takes root: it limits servers by control groups, swap and networks of its own; \
                     run it as root",
                );
            }
            let stop = ready(in_own_network, quiet)?;
            let drawn = draw(options.seed, options.trials, &wanted);
            let rows = all(&drawn, options, quiet, in_own_network, &stop)?;
            (rows, Some(options.seed), stop.load(Ordering::Relaxed))
        }
    };
    let document = Document {
        seed,
        score: score(rows.iter()),
        plants: of_set(&rows, Set::Plants),
        apart: of_set(&rows, Set::Apart),
        trials: rows,
        seconds: begun.elapsed().as_secs_f64(),
    };
    match format {
        Format::Json => output::json(&document)?,
        Format::Table => output::write(|out| write(out, &document, &output::style(false)))?,
    }
    Ok(status(
        document.trials.iter().map(|row| row.result),
        interrupted,
    ))
}

fn sets(options: &Options) -> Vec<Set> {
    match (options.apart, options.tuning) {
        (true, _) => vec![Set::Apart],
        (_, true) => vec![Set::Plants],
        _ => vec![Set::Plants, Set::Apart],
    }
}

/// What may be drawn; a glob that nothing matches is a mistake.
fn wanted(options: &Options) -> anyhow::Result<Vec<Candidate>> {
    if !(1..=MOST).contains(&options.trials) {
        return usage(format!("--trials {}: give 1 to {MOST}", options.trials));
    }
    let all = candidates(&sets(options));
    let matches = |c: &Candidate, glob: &str| {
        let glob = WildMatch::new(glob);
        [c.set.name(), c.engine.name(), c.kind.cause(), c.kind.name]
            .into_iter()
            .any(|word| glob.matches(word))
    };
    if let Some(none) = options
        .only
        .iter()
        .find(|glob| !all.iter().any(|c| matches(c, glob)))
    {
        let words = all
            .iter()
            .flat_map(|c| [c.set.name(), c.engine.name(), c.kind.cause(), c.kind.name]);
        let near = suggest::or_else(none, words, || {
            "`fingerpost prove --help` names the plants".to_owned()
        });
        return usage(format!(
            "“{none}” matches no list (plants, apart), no server (mariadb, postgresql, sqlite, redis, nginx, proxy, \
             apache) and no plant; {near}"
        ));
    }
    Ok(all
        .into_iter()
        .filter(|c| options.only.iter().all(|glob| matches(c, glob)))
        .collect())
}

/// The names of what can be planted in servers, each once.
pub(super) fn plants() -> Vec<&'static str> {
    let mut names: Vec<&str> = candidates(&[Set::Plants, Set::Apart])
        .iter()
        .map(|c| c.kind.name)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The recorded trials, judged again.
fn replayed(file: &Path, options: &Options) -> anyhow::Result<Vec<Row>> {
    let sets = sets(options);
    let chosen = |outline: &Outline| {
        sets.contains(&outline.set)
            && options.only.iter().all(|glob| {
                let glob = WildMatch::new(glob);
                glob.matches(outline.set.name())
                    || glob.matches(outline.engine.name())
                    || outline
                        .planted
                        .iter()
                        .any(|p| glob.matches(&p.cause) || glob.matches(&p.kind))
            })
    };
    let mut rows = Vec::new();
    let read = record::read(file, &mut |taken| {
        if chosen(&taken.outline) {
            rows.push(judged(taken));
        }
    });
    read.map(|_| rows).or_else(usage)
}

fn all(
    outlines: &[Outline],
    options: &Options,
    quiet: bool,
    in_own_network: bool,
    stop: &AtomicBool,
) -> anyhow::Result<Vec<Row>> {
    let mut scratch =
        Scratch::create_guarded().context("cannot make a private directory for the proof")?;
    let dir = scratch.subdir("work")?;
    let cpus = cpus::choose(None)?;
    let host = fingerpost_host::describe_for(&dir, &cpus);
    let events = KeptOpen::default();
    let course = Course {
        cpus: &cpus,
        host: &host,
        own_network: in_own_network,
        events: &events,
        stop,
    };
    let create = |path: &PathBuf| {
        record::create(path).with_context(|| format!("cannot write {}", path.display()))
    };
    let mut file = options.record.as_ref().map(create).transpose()?;
    let outlines: Vec<&Outline> = outlines
        .iter()
        .filter(|o| options.nth.is_none_or(|n| o.number == n))
        .collect();
    let progress = Progress::start(
        "planting causes in servers",
        EACH * outlines.len() as u32,
        Progressing::unless(quiet),
    );
    let mut rows = Vec::new();
    for (i, outline) in outlines.iter().enumerate() {
        progress.show(
            &format!("{} on {}", outline.name(), outline.engine.name()),
            i as f64 / outlines.len() as f64,
        );
        let taken = if own_network(outline) && !in_own_network {
            apart(outline, options, &dir)
        } else {
            run_trial(outline, &course, &mut scratch)
        };
        // A trial that was cut short says nothing.
        if stop.load(Ordering::Relaxed) && taken.result.is_err() {
            break;
        }
        if let Some(file) = &mut file {
            record::write(file, &taken).context("cannot record a trial")?;
        }
        rows.push(judged(taken));
    }
    Ok(rows)
}

/// Runs a trial in a child that has a network of its own, so that nobody else's loopback slows down.
fn apart(outline: &Outline, options: &Options, dir: &Path) -> Taken {
    let begun = Instant::now();
    let path = dir.join(format!("trial-{}.jsonl", outline.number));
    let words = |command: &mut Command| {
        command.args(["--servers".to_owned(), format!("--nth={}", outline.number)]);
        command.args([
            format!("--trials={}", options.trials),
            format!("--seed={}", options.seed),
        ]);
        options
            .only
            .iter()
            .for_each(|glob| _ = command.args(["--only", glob]));
        command
            .args(options.apart.then_some("--apart"))
            .args(options.tuning.then_some("--tuning"));
        command.arg("--record").arg(&path);
    };
    let one = |_: &Output| {
        let mut taken = None;
        record::read(&path, &mut |found| taken = Some(found))
            .ok()
            .filter(|trials| *trials == 1)
            .and(taken)
    };
    let taken = super::in_own_network(words, EACH * 12, one);
    let _ = std::fs::remove_file(&path);
    let (outline, seconds) = (outline.clone(), begun.elapsed().as_secs_f64());
    taken.unwrap_or_else(|why| Taken {
        outline,
        seconds,
        result: Err(why),
    })
}

/// Writes a row for each trial, then the figures over all and over each list.
fn write(out: &mut dyn Write, document: &Document, style: &Style) -> io::Result<()> {
    let mut grid = Grid::titled([
        ("", Align::Right, 3),
        ("server", Align::Left, 1),
        ("planted", Align::Left, 0),
        ("× slower", Align::Right, 0),
        ("named first, second", Align::Left, 0),
        ("share", Align::Right, 2),
        ("", Align::Left, 0),
    ]);
    for row in &document.trials {
        grid.lines.push(Line::Cells(cells(row), tone(row.result)));
        grid.lines.extend(
            row.reason
                .as_ref()
                .map(|why| Line::Note(why.clone(), tone(row.result))),
        );
    }
    let sets = [
        ("All trials", &document.score),
        ("Open to tuning", &document.plants),
        ("Kept apart", &document.apart),
    ];
    for (title, score) in sets {
        grid.lines.push(Line::Blank);
        grid.lines.push(Line::Heading(title.to_owned()));
        lines(score, &mut grid);
    }
    grid.lines.push(Line::Blank);
    grid.lines.push(Line::Labelled(
        "Took".into(),
        format!("{:.0} s", document.seconds),
        Tone::Plain,
    ));
    out.write_all(grid.render(style).as_bytes())
}

fn lines(score: &Score, grid: &mut Grid) {
    let mut say = |label: &str, text: String| {
        grid.lines
            .push(Line::Labelled(label.to_owned(), text, Tone::Plain))
    };
    say("Right cause first", shown(&score.first));
    say("Right cause among the first two", shown(&score.first_two));
    say("Right layer first", shown(&score.layer));
    say("Both of two causes", shown(&score.both));
    say("Accused in controls", shown(&score.false_accusations));
    say(
        "No cause named, where the effect was small or not resolved",
        shown(&score.nobody),
    );
    for bin in score.calibration.iter().filter(|b| b.right.all > 0) {
        say(
            &format!(
                "Right where {:.0} to {:.0} % was claimed",
                bin.from * 100.0,
                bin.to * 100.0
            ),
            shown(&bin.right),
        );
    }
    say(
        "Skipped, failed",
        format!("{}, {}", score.not_tried[0], score.not_tried[1]),
    );
}

fn shown(share: &Share) -> String {
    if share.all == 0 {
        return "none".to_owned();
    }
    let percent = |n: f64| n * 100.0;
    let middle = percent(share.of as f64 / share.all as f64);
    format!(
        "{} of {} ({middle:.0} %, {:.0} to {:.0})",
        share.of,
        share.all,
        percent(share.low),
        percent(share.high)
    )
}

fn cells(row: &Row) -> Vec<String> {
    vec![
        row.outline.number.to_string(),
        row.outline.engine.name().to_owned(),
        row.outline.name(),
        row.effect.map_or(String::new(), |e| {
            format!("{:.2} ({:.2} to {:.2})", e.value, e.low, e.high)
        }),
        if row.tried() {
            named(&row.accused, 2)
        } else {
            String::new()
        },
        share(&row.accused),
        word(row.result).to_owned(),
    ]
}
