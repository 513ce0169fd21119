//! `fingerpost archive`: the runs that are kept.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Subcommand, ValueEnum};
use fingerpost_compare::import::{ImportError, hyperfine, lmbench};
use fingerpost_record::archive::{Archive, Entry, Head, Imported, Words, Writer};
use fingerpost_record::text::clean;
use fingerpost_record::{Run, Unit, load};
use fingerpost_report::grid::{Align, Grid, Line};
use fingerpost_report::json;
use fingerpost_report::style::Tone;
use fingerpost_report::view::duration;
use serde::Serialize;

use crate::exit::{say, told, usage};
use crate::output;

/// Arguments of `archive`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fingerpost archive list
  fingerpost archive label latest 'before the update'
  fingerpost archive note latest 'roll-out of Tuesday'
  fingerpost archive export latest run.json
  fingerpost archive import run.json
  fingerpost archive import --from hyperfine results.json
  fingerpost archive remove latest~1")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

impl Args {
    /// The next step; nothing after what leaves nothing to look at.
    pub fn next(&self) -> Option<&'static str> {
        match self.what {
            What::List { .. } | What::Import { .. } | What::Label { .. } | What::Note { .. } => {
                Some("look at them: fingerpost serve")
            }
            What::Export { .. } => Some("in another archive: fingerpost archive import FILE"),
            What::Remove { .. } | What::Verify => None,
        }
    }
}

#[derive(Debug, Subcommand)]
enum What {
    /// The runs that are kept, the latest first
    List {
        /// How to list them
        #[arg(long, default_value = "table")]
        format: ListFormat,
    },
    /// Add run files or another tool's results; each file is checked completely
    Import {
        /// What the files are
        #[arg(long, default_value = "fingerpost", value_name = "TOOL")]
        from: Tool,
        /// The files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Copy a run to a file
    Export {
        /// The start of the run's id, `latest`, or `latest~N`
        #[arg(value_name = "RUN")]
        run: String,
        /// The file to write
        file: PathBuf,
    },
    /// Give a run a label: it stands before what was measured in lists and titles
    Label {
        /// Whole id, `latest`, or `latest~N`
        #[arg(value_name = "RUN")]
        run: String,
        /// One line of text; an empty one ('') removes the label
        text: String,
    },
    /// Write a note about a run: it stands at the head of the run's table and page
    Note {
        /// Whole id, `latest`, or `latest~N`
        #[arg(value_name = "RUN")]
        run: String,
        /// The text; an empty one ('') removes the note
        text: String,
    },
    /// Remove runs; all are looked up before the first is removed
    Remove {
        /// Whole ids, `latest`, or `latest~N`
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
    /// Load every run whole and name those that cannot be
    Verify,
}

/// Whose files can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tool {
    /// Run files of this tool
    Fingerpost,
    /// What `hyperfine --export-json` writes
    Hyperfine,
    /// Result files of lmbench 3
    Lmbench,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ListFormat {
    Table,
    Json,
}

/// Does what was asked for.
pub fn run(args: Args) -> anyhow::Result<()> {
    let archive = Archive::open(None)?;
    match args.what {
        What::List { format } => list(&archive, format),
        What::Import { from, files } => import(&archive, from, &files),
        What::Export { run, file } => export(&archive, &run, &file),
        What::Label { run, text } => describe(
            &archive,
            &run,
            &Words {
                label: Some(text),
                note: None,
            },
        ),
        What::Note { run, text } => describe(
            &archive,
            &run,
            &Words {
                label: None,
                note: Some(text),
            },
        ),
        What::Remove { runs } => remove(&archive, &runs),
        What::Verify => verify(&archive),
    }
}

fn list(archive: &Archive, format: ListFormat) -> anyhow::Result<()> {
    let entries = archive.list()?;
    match format {
        ListFormat::Json => {
            output::write(|out| json::write(out, &entries.iter().map(listed).collect::<Vec<_>>()))
        }
        ListFormat::Table if entries.is_empty() => output::sentence(&format!(
            "No run is kept in {}; `fingerpost run` makes one.",
            archive.dir().display()
        )),
        ListFormat::Table => output::write(|out| {
            out.write_all(grid(&entries).render(&output::style(false)).as_bytes())
        }),
    }
}

/// A line of `archive list --format json`.
#[derive(Serialize)]
#[serde(untagged)]
enum Listed<'a> {
    Run {
        id: &'a str,
        name: String,
        started: &'a str,
        duration_s: f64,
        profile: &'static str,
        complete: bool,
        hostname: &'a str,
        kernel: &'a str,
        cpu: &'a str,
        bytes: u64,
        path: String,
    },
    Unreadable {
        path: String,
        bytes: u64,
        error: &'a str,
    },
}

fn listed(e: &Entry) -> Listed<'_> {
    let path = e.path.display().to_string();
    match &e.head {
        Ok(h) => Listed::Run {
            id: &h.id,
            name: h.name(),
            started: &h.started,
            duration_s: h.duration_s,
            profile: h.profile.as_str(),
            complete: h.complete,
            hostname: &h.hostname,
            kernel: &h.kernel,
            cpu: &h.cpu_model,
            bytes: e.bytes,
            path,
        },
        Err(error) => Listed::Unreadable {
            path,
            bytes: e.bytes,
            error,
        },
    }
}

fn grid(entries: &[Entry]) -> Grid {
    let mut grid = Grid::titled([
        ("id", Align::Left, 0),
        ("measured", Align::Left, 0),
        ("started", Align::Left, 4),
        ("profile", Align::Left, 2),
        ("took", Align::Right, 3),
        ("host", Align::Left, 1),
        ("kernel", Align::Left, 5),
        ("size", Align::Right, 6),
        ("state", Align::Left, 0),
    ]);
    for e in entries {
        match &e.head {
            Ok(head) => grid
                .lines
                .push(Line::Cells(cells(head, e.bytes), Tone::Plain)),
            Err(error) => {
                let sentence = format!("{}: {error}", clean(&e.path.display().to_string()));
                grid.lines.push(Line::Note(sentence, Tone::Bad));
            }
        }
    }
    grid
}

fn cells(h: &Head, bytes: u64) -> Vec<String> {
    let text = |hostile: &str| clean(hostile).into_owned();
    vec![
        text(&h.id),
        h.name(),
        text(&h.started),
        h.profile.as_str().into(),
        duration(h.duration_s),
        text(&h.hostname),
        text(&h.kernel),
        Unit::Bytes.format(bytes as f64),
        if h.complete { "" } else { "partial" }.into(),
    ]
}

fn import(archive: &Archive, from: Tool, files: &[PathBuf]) -> anyhow::Result<()> {
    let mut bad = 0;
    for file in files {
        let imported = match from {
            Tool::Fingerpost => archive.import(file).map_err(anyhow::Error::from),
            Tool::Hyperfine => convert(archive, file, hyperfine),
            Tool::Lmbench => convert(archive, file, lmbench),
        };
        match imported {
            Ok((run, Imported::Added)) => output::sentence(&format!("{} added", run.id))?,
            Ok((run, Imported::AlreadyThere)) => {
                output::sentence(&format!("{} was there already", run.id))?
            }
            Err(e) => {
                let other = if from == Tool::Fingerpost {
                    of_another_tool(file)
                } else {
                    None
                };
                let hint = other.map_or(String::new(), |tool| {
                    format!("; it is a file of {tool}: add `--from {tool}`")
                });
                say(&format!("{}{hint}", told(&e)));
                bad += 1;
            }
        }
    }
    if bad > 0 {
        usage(format!("{bad} of {} files were not imported", files.len()))
    } else {
        Ok(())
    }
}

/// Which other tool's results a file holds, if it reads as such.
fn of_another_tool(file: &Path) -> Option<&'static str> {
    let bytes = load::bytes_of(file).ok()?;
    match () {
        () if hyperfine(&bytes).is_ok() => Some("hyperfine"),
        () if lmbench(&bytes).is_ok() => Some("lmbench"),
        () => None,
    }
}

/// Keeps another tool's results as a run; its id comes from the content, so that the same file is the same run.
fn convert(
    archive: &Archive,
    file: &Path,
    read: fn(&[u8]) -> Result<Run, ImportError>,
) -> anyhow::Result<(Run, Imported)> {
    let name = clean(&file.display().to_string()).into_owned();
    let run = read(&load::bytes_of(file)?).with_context(|| name)?;
    if archive.path_of(&run.id).exists() {
        return Ok((run, Imported::AlreadyThere));
    }
    let (writer, trouble) = Writer::in_archive(archive, &run);
    anyhow::ensure!(trouble.is_none(), trouble.unwrap_or_default());
    writer.finish(&run)?;
    Ok((run, Imported::Added))
}

fn export(archive: &Archive, run: &str, file: &std::path::Path) -> anyhow::Result<()> {
    let run = archive.export(run, file)?;
    if file.is_file() {
        output::sentence(&format!("{} is in {}", run.id, file.display()))?;
    }
    Ok(())
}

fn describe(archive: &Archive, wanted: &str, words: &Words) -> anyhow::Result<()> {
    let run = archive.describe(wanted, words)?;
    let (what, text) = if words.label.is_some() {
        ("label", &run.label)
    } else {
        ("note", &run.note)
    };
    output::sentence(&match text {
        Some(text) => format!("{}: {what} “{}”", run.id, clean(text)),
        None => format!("{}: no {what}", run.id),
    })
}

fn remove(archive: &Archive, runs: &[String]) -> anyhow::Result<()> {
    let removed = archive.remove(runs)?;
    removed
        .iter()
        .try_for_each(|path| output::sentence(&format!("{} removed", path.display())))
}

fn verify(archive: &Archive) -> anyhow::Result<()> {
    let results = archive.verify()?;
    let bad: Vec<&String> = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .collect();
    bad.iter().for_each(|sentence| say(sentence));
    let good = results.len() - bad.len();
    output::write(|out| writeln!(out, "{good} of {} runs are whole", results.len()))?;
    if bad.is_empty() {
        Ok(())
    } else {
        usage(format!(
            "{} of {} files are not whole runs",
            bad.len(),
            results.len()
        ))
    }
}
