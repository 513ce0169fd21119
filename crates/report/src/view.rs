//! A run as groups of rows of cleaned text and figures: what every format is made of.

mod rows;
#[cfg(test)]
mod tests;

use fingerpost_record::{Host, Outcome, Profile, Run, Unit};
use rows::{group_rows, text};

use crate::lab::{self, LabView, Labs};
use crate::words::{moment, whole_bytes};

pub(crate) use rows::place;
pub use rows::{COUNTERS, Group, Row, Shared, Skipped, in_order, outcome_name};

/// A run as every format shows it. All texts are cleaned.
pub struct View {
    /// The run's id.
    pub id: String,
    /// What was measured, in a few words; empty where the record does not say.
    pub name: String,
    /// What was found, in sentences: what a person reads first.
    pub answers: Vec<String>,
    /// Below it: host, kernel, processor, when, how.
    pub headline: Vec<Fact>,
    /// Everything that is known about the host.
    pub host: Vec<Fact>,
    /// What speaks against the figures.
    pub doubts: Vec<String>,
    /// The groups that have rows, in the order shown.
    pub groups: Vec<Group>,
    /// The command that measures the same again; none for published figures.
    pub command: Option<String>,
    /// The labs.
    pub(crate) labs: Vec<LabView>,
    /// What their analyses find, in the order shown.
    pub(crate) found: Vec<lab::Found>,
    /// What the author of published figures watched besides.
    pub watched: Vec<crate::watched::Watched>,
}

impl View {
    /// The view of a run, with what these labs analyse of it.
    pub fn of(run: &Run, labs: Labs) -> View {
        let groups = group_rows(&run.measurements);
        let found = lab::found(run, labs);
        View {
            id: text(&run.id),
            name: fingerpost_record::name::of(run.label.as_deref(), &run.command)
                .unwrap_or_default(),
            answers: crate::answer::of(run, &groups, labs, &found),
            headline: headline(run),
            host: host_facts(run),
            doubts: doubts(run),
            groups,
            command: (run.profile != Profile::Imported).then(|| command(run)),
            labs: labs.to_vec(),
            found,
            watched: crate::watched::of(run),
        }
    }

    /// What stands above all: what was measured, or the id where the record does not say.
    pub fn title(&self) -> String {
        if self.name.is_empty() {
            format!("Run {}", self.id)
        } else {
            self.name.clone()
        }
    }

    /// The id, where the title does not have it.
    pub fn id_beside_title(&self) -> Option<&str> {
        (!self.name.is_empty()).then_some(self.id.as_str())
    }

    /// Of the facts below the answers, those that a reader needs with them: which host, when, and what it is called.
    pub fn lead_facts(&self) -> impl Iterator<Item = &Fact> {
        self.headline
            .iter()
            .filter(|fact| LEADING.contains(&fact.name))
    }

    /// The others: what it was measured on and with.
    pub fn other_facts(&self) -> impl Iterator<Item = &Fact> {
        self.headline
            .iter()
            .filter(|fact| !LEADING.contains(&fact.name))
    }

    /// Whether these are published figures, which nobody measured here.
    pub fn published(&self) -> bool {
        self.command.is_none()
    }

    /// Rows with the given outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.groups
            .iter()
            .flat_map(|g| &g.rows)
            .filter(|r| r.outcome == outcome)
            .count()
    }

    /// Reasons that several rows with a figure share, in the order met.
    pub fn shared_reasons(&self) -> Vec<Shared> {
        let mut list: Vec<Shared> = Vec::new();
        for row in self
            .groups
            .iter()
            .flat_map(Group::shown)
            .filter(|row| row.figure.is_some())
        {
            let Some(reason) = &row.reason else { continue };
            match list.iter_mut().find(|shared| shared.has(row)) {
                Some(shared) => shared.rows += 1,
                None => list.push(Shared {
                    outcome: row.outcome,
                    reason: reason.clone(),
                    rows: 1,
                }),
            }
        }
        list.retain(|shared| shared.rows >= SHARED_FROM);
        list
    }
}

/// See [`View::lead_facts`].
const LEADING: [&str; 6] = ["Host", "Label", "Note", "Measured", "Published", "Source"];

/// A reason that fewer rows have than these is told at each.
const SHARED_FROM: usize = 3;

fn headline(run: &Run) -> Vec<Fact> {
    let h = &run.host;
    let mut facts = Facts::default();
    let machine = [
        Some(h.os.clone()),
        Some(h.arch.clone()),
        h.virtualization.clone().filter(|v| v != "none"),
        h.container.clone(),
    ];
    let machine = join(machine);
    facts.add(
        "Host",
        if machine.is_empty() {
            h.hostname.clone()
        } else {
            format!("{} ({machine})", h.hostname)
        },
    );
    facts.add("Kernel", h.kernel.clone());
    let mhz = h.cpu.mhz.map(|m| format!("{m:.0} MHz"));
    facts.add("Processor", join([Some(h.cpu.model.clone()), cpus(h), mhz]));
    facts.maybe("Memory", known_bytes(h.memory_bytes));
    facts.maybe("Label", run.label.clone());
    facts.maybe("Note", run.note.clone());
    if run.profile == Profile::Imported {
        facts.add(
            "Published",
            fingerpost_compare::references::published(&run.id)
                .unwrap_or_else(|| run.started.clone()),
        );
        facts.maybe("Source", run.source.clone());
        return facts.0;
    }
    let state = if run.complete {
        "complete"
    } else {
        "partial: it was interrupted, or is still being measured"
    };
    let how = [
        Some(format!("{} profile", run.profile.as_str())),
        Some(duration(run.duration_s)),
        Some(format!("seed {}", run.seed)),
        Some(state.into()),
    ];
    facts.add(
        "Measured",
        format!("{}, {}", moment(&run.started), join(how)),
    );
    facts.add(
        "Tool",
        format!("fingerpost {} ({})", run.tool.version, run.tool.commit),
    );
    facts.maybe("Source", run.source.clone());
    let i = &run.instrument;
    if i.clock_ns > 0.0 {
        let parts = [
            ("clock", i.clock_ns),
            ("clock step", i.resolution_ns),
            ("empty loop", i.loop_ns),
        ];
        facts.add(
            "Instrument",
            parts
                .map(|(name, ns)| format!("{name} {}", Unit::Nanoseconds.format(ns)))
                .join(", "),
        );
    }
    facts.0
}

/// How many CPUs of how many could be used; nothing where that is not known.
fn cpus(h: &Host) -> Option<String> {
    match h.cpu.count {
        0 => None,
        count if h.cpu.online > count => Some(format!("{count} of {} CPUs", h.cpu.online)),
        1 => Some("1 CPU".into()),
        count => Some(format!("{count} CPUs")),
    }
}

/// A number of bytes; a system that does not tell it has 0.
fn known_bytes(bytes: u64) -> Option<String> {
    Some(whole_bytes(bytes)).filter(|_| bytes > 0)
}

fn host_facts(run: &Run) -> Vec<Fact> {
    let h = &run.host;
    let mut facts = Facts::default();
    facts.maybe("Kernel command line", h.cmdline.clone());
    facts.maybe(
        "SMT",
        h.cpu
            .smt
            .as_deref()
            .map(|smt| smt.replace("notsupported", "not supported")),
    );
    facts.maybe("Turbo", h.cpu.turbo.clone());
    facts.maybe("Governor", h.governor.clone());
    facts.maybe("Microcode", h.cpu.microcode.clone());
    facts.list(
        "Caches",
        h.cpu
            .caches
            .iter()
            .map(|(name, bytes)| format!("{name} {}", Unit::Bytes.format(*bytes as f64))),
    );
    facts.list(
        "Mitigations",
        h.mitigations
            .iter()
            .map(|(name, state)| format!("{name}: {state}")),
    );
    facts.maybe("Transparent huge pages", h.thp.clone());
    facts.maybe("Idle memory", h.idle_memory.clone());
    facts.maybe("Clock source", h.clocksource.clone());
    facts.maybe("Preemption", h.preemption.clone());
    facts.maybe("Timer interrupts", h.hz.map(|hz| format!("{hz} a second")));
    facts.maybe("Page", known_bytes(h.page_bytes));
    facts.maybe("Virtualisation", h.virtualization.clone());
    facts.maybe("Container", h.container.clone());
    facts.list("Control group", cgroup(h));
    let of_processes = h
        .task_mitigations
        .iter()
        .map(|(what, state)| format!("{what}: {state}"));
    facts.list("Speculation of its processes", of_processes);
    facts.maybe(
        "Seccomp",
        h.seccomp
            .map(|mode| format!("mode {mode}, {} filters", h.seccomp_filters.unwrap_or(0))),
    );
    let fs = &h.filesystem;
    if !fs.kind.is_empty() {
        let free = Unit::Bytes.format(fs.free_bytes as f64);
        facts.add(
            "Work directory",
            format!(
                "{} on {} ({}, {}), {free} free",
                fs.path, fs.device, fs.kind, fs.options
            ),
        );
    }
    facts.list(
        "Swap",
        h.swap.iter().map(|s| {
            format!(
                "{} ({}, {}, {} used)",
                s.path,
                s.kind,
                Unit::Bytes.format(s.bytes as f64),
                Unit::Bytes.format(s.used_bytes as f64)
            )
        }),
    );
    facts.maybe("C library", h.libc.clone());
    facts.list("Compilers", h.compilers.iter().cloned());
    facts.maybe(
        "perf_event_paranoid",
        h.perf_event_paranoid.map(|p| p.to_string()),
    );
    // What follows has no value for “not known”, and nobody told it of a host that this tool did not look at.
    if run.profile == Profile::Imported {
        return facts.0;
    }
    facts.add(
        "Hardware counters",
        if h.counters { "used" } else { "not available" }.into(),
    );
    facts.add(
        "Privilege",
        if h.root { "root" } else { "an ordinary user" }.into(),
    );
    let load = |l: &fingerpost_record::host::Load| {
        format!("{:.2}, steal {:.2} %", l.average[0], l.steal * 100.0)
    };
    facts.add("Load before", load(&h.before));
    facts.maybe("Load after", h.after.as_ref().map(load));
    facts.0
}

fn cgroup(h: &Host) -> Vec<String> {
    let c = &h.cgroup;
    let parts = [
        c.version.map(|v| format!("version {v}")),
        c.cpu_quota.map(|q| format!("a quota of {q} CPUs")),
        c.cpu_weight.map(|w| format!("weight {w}")),
        c.cpuset.as_ref().map(|s| format!("CPUs {s}")),
        c.memory_limit
            .map(|m| format!("at most {} of memory", Unit::Bytes.format(m as f64))),
        c.pids_limit.map(|p| format!("at most {p} processes")),
    ];
    parts.into_iter().flatten().collect()
}

/// The host's doubts, and the one that the record itself gives rise to.
fn doubts(run: &Run) -> Vec<String> {
    let mut list: Vec<String> = run.host.doubts.iter().map(|d| text(d)).collect();
    if !run.complete && run.profile != Profile::Imported {
        list.insert(
            0,
            "The run is partial: probes that came later are missing, and intervals are wider than they would have \
             become."
                .into(),
        );
    }
    list
}

/// The command that measures the same again: the one recorded, with the seed that it ended up with.
fn command(run: &Run) -> String {
    let recorded = match run.command.split_first() {
        Some((_, words)) => std::iter::once("fingerpost".to_owned())
            .chain(words.iter().cloned())
            .collect(),
        None => vec![
            "fingerpost".to_owned(),
            "run".into(),
            "--profile".into(),
            run.profile.as_str().into(),
        ],
    };
    let mut words: Vec<String> = recorded.iter().map(|w| shell_word(&text(w))).collect();
    if words.get(1).is_some_and(|w| w == "run")
        && !words
            .iter()
            .any(|w| w == "--seed" || w.starts_with("--seed="))
    {
        words.extend(["--seed".to_owned(), run.seed.to_string()]);
    }
    words.join(" ")
}

/// A word as a shell reads it back.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A time span as a person says it.
pub fn duration(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("{seconds:.1} s")
    } else {
        format!(
            "{:.0} min {:02.0} s",
            (seconds / 60.0).floor(),
            (seconds % 60.0).floor()
        )
    }
}

/// A name and what there is to say under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The name.
    pub name: &'static str,
    /// The text, cleaned.
    pub text: String,
}

/// A doubt's first sentence, which says what is the matter, and the rest, which says what to do.
pub fn parts_of_doubt(doubt: &str) -> (&str, &str) {
    let begins = |at: &usize| doubt[at + 2..].starts_with(char::is_uppercase);
    let end = doubt.match_indices(". ").map(|(at, _)| at).find(begins);
    end.map_or((doubt, ""), |at| (&doubt[..=at], &doubt[at + 2..]))
}

/// What the column of intervals is called: a printed figure's is what it was rounded from.
pub fn interval_title(run: &Run) -> &'static str {
    if run.profile == Profile::Imported {
        "Interval"
    } else {
        "95 % interval"
    }
}

fn join(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts
        .into_iter()
        .flatten()
        .filter(|p| !p.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Collects facts that there are.
#[derive(Default)]
struct Facts(Vec<Fact>);

impl Facts {
    /// A fact, unless nothing is known.
    fn add(&mut self, name: &'static str, hostile: String) {
        let text = text(&hostile);
        if !text.is_empty() {
            self.0.push(Fact { name, text });
        }
    }

    fn maybe(&mut self, name: &'static str, hostile: Option<String>) {
        self.add(name, hostile.unwrap_or_default());
    }

    fn list(&mut self, name: &'static str, items: impl IntoIterator<Item = String>) {
        self.maybe(name, Some(items.into_iter().collect::<Vec<_>>().join("; ")));
    }
}
