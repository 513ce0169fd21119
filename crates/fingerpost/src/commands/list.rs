//! `fingerpost list`: what can run here, and what each missing need is.

use std::collections::BTreeSet;

use fingerpost_compare::counterparts::{PUBLISHED, Published};
use fingerpost_diagnose::cause::{Cause, Need};
use fingerpost_diagnose::causes;
use fingerpost_diagnose::thresholds::Threshold;
use fingerpost_labs::Lab;
use fingerpost_labs::prove::PLANTS;
use fingerpost_probes::Probe;
use fingerpost_record::unit::significant;
use fingerpost_record::{Params, suggest};
use fingerpost_report::grid::{Align, Grid, Line};
use fingerpost_report::style::Tone;
use serde::Serialize;
use wildmatch::WildMatch;

use crate::exit::usage;
use crate::output::Listing as Format;
use crate::plan::{family, known_names};
use crate::{cpus, foreign, output};

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fingerpost list                 all probes and labs
  fingerpost list syscall         a family: what is timed, and the pitfalls
  fingerpost list database        a lab: its rows and its settings
  fingerpost list cpu.quota       a cause: what shows it, and thresholds
  fingerpost list lmbench         published figures that no probe measures")]
pub struct Args {
    /// Only names that match, or a family (`syscall`); with a name, the whole description of each. Causes, too
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// How to print the list
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Args {
    /// The next step: to have one described, to measure it, or to check that a verdict names the cause here.
    pub fn next(&self) -> Option<String> {
        let Some(name) = self.name.as_deref() else {
            return Some(
                "what one measures: fingerpost list NAME; to measure it: fingerpost run NAME"
                    .to_owned(),
            );
        };
        let pattern = WildMatch::new(name);
        if known_names().any(|known| pattern.matches(known)) {
            // A shell would take a glob for names of files.
            let word = if name.contains(['*', '?']) {
                format!("'{name}'")
            } else {
                name.to_owned()
            };
            return Some(format!("measure it: fingerpost run {word}"));
        }
        let planted = PLANTS.iter().any(|plant| plant.name == name);
        planted.then(|| format!("check that it is named here: fingerpost prove {name}"))
    }
}

/// One probe or lab, as the list has it.
#[derive(Debug, Default, Serialize)]
struct Entry {
    name: &'static str,
    kind: &'static str,
    summary: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lmbench: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lab: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    /// What exactly is timed.
    #[serde(skip_serializing_if = "str::is_empty")]
    timed: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pitfalls: &'static str,
    /// What is set beside a published figure that no probe measures.
    #[serde(skip_serializing_if = "str::is_empty")]
    beside: &'static str,
    /// The probes whose mean that is.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    mean_of: Vec<&'static str>,
    /// The parameters of each row.
    rows: Vec<Params>,
    /// The rows that a lab makes: name, and what its figure is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    figures: Vec<[&'static str; 2]>,
    /// Settings that a lab takes: key, default, help.
    settings: Vec<[&'static str; 3]>,
    /// The layer of a cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    layer: Option<&'static str>,
    /// What tells a cause from others.
    #[serde(skip_serializing_if = "str::is_empty")]
    tells: &'static str,
    /// What to do about a cause.
    #[serde(skip_serializing_if = "str::is_empty")]
    remedy: &'static str,
    /// What a verdict on a cause needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs: Vec<&'static str>,
    /// The causes that it may be no more than a consequence of.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    follows: &'static [&'static str],
    /// Thresholds of the verdict: of what, the figure, its source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thresholds: Vec<(&'static str, f64, &'static str)>,
    /// What keeps it, or some of its rows, from running here.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

/// Prints every probe and lab.
pub fn run(args: Args) -> anyhow::Result<()> {
    let cpus = cpus::choose(None)?.len();
    let name = args.name.as_deref().unwrap_or("*");
    let pattern = WildMatch::new(name);
    let named = |probe: &&Probe| {
        pattern.matches(probe.name) || probe.lab.is_none() && family(probe.name) == name
    };
    let probes = fingerpost_probes::all()
        .filter(named)
        .map(|p| probe_entry(p, cpus));
    // Those of probes stand beside them.
    let (courses, of_probes): (Vec<&Lab>, Vec<_>) = fingerpost_labs::REGISTRY
        .iter()
        .filter(|lab| pattern.matches(lab.name))
        .partition(|lab| lab.is_course());
    let labs = of_probes.into_iter().chain(courses).map(lab_entry);
    // Nobody measures a cause, nor what others published alone: each is described when it is asked for.
    let causes = causes::all()
        .filter(|c| args.name.is_some() && pattern.matches(c.name))
        .map(cause_entry);
    let published = PUBLISHED
        .iter()
        .filter(|f| args.name.is_some() && (pattern.matches(f.name) || family(f.name) == name));
    let of_others: Vec<&'static Probe> = foreign::all().iter().map(|row| row.probe).collect();
    let of_others = of_others
        .into_iter()
        .filter(named)
        .map(|p| probe_entry(p, cpus));
    let entries: Vec<Entry> = probes
        .chain(of_others)
        .chain(labs)
        .chain(causes)
        .chain(published.map(published_entry))
        .collect();
    if entries.is_empty() {
        return usage(unknown(name));
    }
    output::write(|out| match args.format {
        Format::Json => fingerpost_report::json::write(out, &entries),
        Format::Table if args.name.is_some() => out.write_all(details(&entries).as_bytes()),
        Format::Table => out.write_all(table(&entries).as_bytes()),
    })
}

/// The error for a name that is neither a probe, nor a family, nor a lab, nor a cause.
fn unknown(name: &str) -> String {
    let near = suggest::nearest(
        name,
        known_names()
            .chain(causes::all().map(|c| c.name))
            .chain(PUBLISHED.iter().map(|f| f.name)),
    );
    let meant = near.map_or(String::new(), |near| format!("did you mean “{near}”? "));
    format!(
        "there is no probe, lab or cause “{name}”; {meant}`fingerpost list` shows all that can be measured"
    )
}

fn cause_entry(cause: &'static Cause) -> Entry {
    let need = |need: &Need| match need {
        Need::Followed => "requests that were followed",
        Need::Reading(name) => name.as_str(),
    };
    Entry {
        name: cause.name,
        kind: "cause",
        summary: cause.words.label,
        layer: Some(cause.layer.as_str()),
        tells: cause.words.tells,
        remedy: cause.words.remedy,
        needs: cause.needs.iter().map(need).collect(),
        follows: cause.follows,
        thresholds: cause
            .thresholds
            .iter()
            .map(|t: &Threshold| (t.of, t.value, t.source))
            .collect(),
        ..Entry::default()
    }
}

/// A figure that published and imported results have and that nothing here measures by its name.
fn published_entry(figure: &'static Published) -> Entry {
    let Published {
        name,
        summary,
        beside,
    } = *figure;
    let (lmbench, mean_of) = (figure.lmbench(), figure.mean_of());
    Entry {
        name,
        kind: "published figure",
        summary,
        lmbench,
        beside,
        mean_of,
        ..Entry::default()
    }
}

fn probe_entry(probe: &'static Probe, cpus: usize) -> Entry {
    let rows = (probe.variants)();
    let most = rows
        .iter()
        .map(|params| probe.cpus_needed(params))
        .max()
        .unwrap_or(probe.cpus);
    let missing = (most > cpus).then(|| {
        format!(
            "{} rows need {most} CPUs, and this process may use {cpus}",
            probe.name
        )
    });
    Entry {
        name: probe.name,
        kind: "probe",
        summary: probe.summary,
        lmbench: probe.lmbench,
        lab: probe.lab,
        unit: Some(probe.unit.as_str()),
        timed: probe.timed,
        pitfalls: probe.pitfalls,
        rows,
        missing,
        ..Entry::default()
    }
}

fn lab_entry(lab: &Lab) -> Entry {
    Entry {
        name: lab.name,
        kind: "lab",
        summary: lab.summary,
        rows: lab.probes().flat_map(|probe| (probe.variants)()).collect(),
        figures: lab
            .figures()
            .map(|(name, meaning)| [name, meaning])
            .collect(),
        settings: lab
            .all_settings()
            .map(|s| [s.key, s.default, s.help])
            .collect(),
        missing: (lab.missing)(&Params::new()),
        ..Entry::default()
    }
}

fn table(entries: &[Entry]) -> String {
    let mut grid = Grid::of([
        ("name", Align::Left, 0),
        ("rows", Align::Right, 2),
        ("lmbench", Align::Left, 1),
        ("what it is", Align::Left, 0),
    ]);
    for (kind, title) in [
        (
            "probe",
            "Probes (fingerpost run NAME; families and globs such as 'syscall.*' too)",
        ),
        ("lab", "Labs"),
    ] {
        let of_kind: Vec<&Entry> = entries.iter().filter(|e| e.kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        grid.lines
            .extend([Line::Heading(title.to_owned()), grid.titles()]);
        for entry in of_kind {
            let rows = if entry.rows.is_empty() {
                String::new()
            } else {
                entry.rows.len().to_string()
            };
            let cells = vec![
                entry.name.to_owned(),
                rows,
                entry.lmbench.unwrap_or("").to_owned(),
                entry.summary.to_owned(),
            ];
            grid.lines.push(Line::Cells(cells, Tone::Plain));
            grid.lines.extend(
                entry
                    .missing
                    .iter()
                    .map(|m| Line::Note(m.clone(), Tone::Doubtful)),
            );
        }
        grid.lines.push(Line::Blank);
    }
    grid.render(&crate::output::style(false))
}

/// Rows that differ in one parameter.
struct Alike {
    /// Each parameter with its values, one for each row.
    values: Vec<(String, Vec<String>)>,
    /// The parameter in which they differ; nothing while there is one row.
    varied: Option<usize>,
}

impl Alike {
    /// Takes in a row that differs in the same parameter alone; whether it did.
    fn takes(&mut self, row: &[(String, String)]) -> bool {
        if !self
            .values
            .iter()
            .map(|(key, _)| key)
            .eq(row.iter().map(|(key, _)| key))
        {
            return false;
        }
        let mut differ = (0..row.len()).filter(|&at| self.values[at].1.last() != Some(&row[at].1));
        let Some(at) = differ
            .next()
            .filter(|at| differ.next().is_none() && self.varied.is_none_or(|varied| varied == *at))
        else {
            return false;
        };
        if self.values[at].1.contains(&row[at].1) {
            return false;
        }
        self.varied = Some(at);
        self.values[at].1.push(row[at].1.clone());
        true
    }
}

/// Rows that follow each other and differ in one parameter as one: `api=mmap pages=1,2,4`. Each is told once.
fn together(rows: &[Params]) -> Vec<String> {
    let mut groups: Vec<Alike> = Vec::new();
    for row in rows.iter().filter(|row| !row.is_empty()) {
        let values: Vec<(String, String)> = row
            .iter()
            .map(|(key, value)| (key.to_owned(), value.to_string()))
            .collect();
        if !groups.last_mut().is_some_and(|group| group.takes(&values)) {
            let values = values
                .into_iter()
                .map(|(key, value)| (key, vec![value]))
                .collect();
            groups.push(Alike {
                values,
                varied: None,
            });
        }
    }
    let parameter = |(key, values): &(String, Vec<String>)| format!("{key}={}", values.join(","));
    let text = |group: &Alike| {
        group
            .values
            .iter()
            .map(parameter)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut told = BTreeSet::new();
    groups
        .iter()
        .map(text)
        .filter(|text| told.insert(text.clone()))
        .collect()
}

/// Everything that each entry says of itself.
fn details(entries: &[Entry]) -> String {
    let mut grid = Grid::default();
    for entry in entries {
        grid.lines
            .push(Line::Heading(format!("{}: {}", entry.name, entry.summary)));
        let mut say = |label: &str, text: String| {
            if !text.is_empty() {
                grid.lines
                    .push(Line::Labelled(label.to_owned(), text, Tone::Plain));
            }
        };
        say("  timed", entry.timed.to_owned());
        say("  pitfalls", entry.pitfalls.to_owned());
        say("  lmbench", entry.lmbench.unwrap_or("").to_owned());
        say("  set beside it", entry.beside.to_owned());
        say("  unit", entry.unit.unwrap_or("").to_owned());
        say("  lab", entry.lab.unwrap_or("").to_owned());
        // Each probe of a lab tells its own.
        if entry.figures.is_empty() {
            say("  rows", together(&entry.rows).join("; "));
        }
        for [name, meaning] in &entry.figures {
            say(&format!("  {name}"), (*meaning).to_owned());
        }
        for [key, default, help] in &entry.settings {
            say(
                &format!("  --set {key}"),
                format!("{help} (default: {default})"),
            );
        }
        say("  layer", entry.layer.unwrap_or("").to_owned());
        say("  shown by", entry.tells.to_owned());
        say("  what to do", entry.remedy.to_owned());
        say("  needs", entry.needs.join(", "));
        say("  may follow from", entry.follows.join(", "));
        for (of, value, source) in &entry.thresholds {
            let value = significant(*value);
            let value = if value.contains('.') {
                value.trim_end_matches('0').trim_end_matches('.')
            } else {
                &value
            };
            say("  threshold", format!("{of}: {value} ({source})"));
        }
        say("  missing", entry.missing.clone().unwrap_or_default());
        grid.lines.push(Line::Blank);
    }
    grid.render(&crate::output::style(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_differ_in_one_parameter_are_told_together() {
        let row = |api: &str, pages: i64| Params::new().with("api", api).with("pages", pages);
        let rows = [
            row("mmap", 1),
            row("mmap", 2),
            row("mmap", 4),
            row("brk", 1),
            row("brk", 4),
            Params::new(),
            row("brk", 1),
            row("brk", 4),
        ];
        assert_eq!(
            together(&rows),
            ["api=mmap pages=1,2,4", "api=brk pages=1,4"]
        );
        let other = [
            row("mmap", 1),
            row("brk", 2),
            row("brk", 2).with("how", "touch"),
        ];
        assert_eq!(
            together(&other),
            [
                "api=mmap pages=1",
                "api=brk pages=2",
                "api=brk how=touch pages=2"
            ]
        );
    }
}
