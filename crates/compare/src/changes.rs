//! What whoever made the two sides changed between them: a compiler, a flag, a version, a setting.
//!
//! It is named before any hardware is: what somebody changed on purpose is what the comparison is about.

use std::collections::{BTreeMap, BTreeSet};

use fingerpost_diagnose::hosts::same;
use fingerpost_record::descriptor::FLOPS;
use fingerpost_record::unstated::{DESCRIBED, DIR_FS, SERVER_PREFIX, leaves_settings_unstated};
use fingerpost_record::{Param, Params, client, params};
use serde::Serialize;

use crate::row::Row;
use crate::side::Side;

pub use fingerpost_diagnose::probes::Kind;

/// One thing that was changed, and that all rows that it concerns have on one side as `base` and on the other as `new`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The parameter's name, or `compiler`.
    pub what: String,
    /// How it is on the base side.
    pub base: String,
    /// How it is on the new side.
    pub new: String,
    /// What kind of change it is.
    pub kind: Kind,
    /// The probe or workload whose rows it concerns; nothing where it concerns all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}

/// Parameters that say how a program was made, or which version of it runs.
const BUILD: [&str; 4] = ["compiler", "cflags", "version", "server"];

/// The parameter that says where swap is, in rows of the launch lab; elsewhere the same word places processes on CPUs.
const PLACEMENT: &str = "placement";
const LAUNCH: &str = "launch";

/// What a load that came from another machine is called.
const CLIENT_MACHINE: &str = "client machine";

/// What a side without the parameter is said to have.
const NOTHING: &str = "none";
/// What it is said to have where rows state the parameter only if it was changed ([`stated_when_changed`]).
const DEFAULT: &str = "default";

/// Parameters that rows state only where somebody set them: the length of a server's accept queue, the words that it
/// was started behind, the file system of a directory that was named, and what a launch has besides its state and its
/// memory.
const STATED_WHEN_CHANGED: [&str; 6] = [
    "backlog",
    SERVER_PREFIX,
    DIR_FS,
    "swap_size",
    "throttle",
    "existing_swap",
];

/// Whether a side without a parameter has the default: one of those, or a server's variable, whose default it alone
/// knows.
fn stated_when_changed(key: &str) -> bool {
    key.starts_with("server.") || STATED_WHEN_CHANGED.contains(&key)
}

/// Whether a number is a setting as a word is, and not what is measured at.
fn is_setting(key: &str) -> bool {
    stated_when_changed(key) || key == "pressure"
}

/// How a side has a parameter, in words.
fn in_words(key: &str, value: Option<&Param>) -> String {
    value.map_or_else(
        || {
            if stated_when_changed(key) {
                DEFAULT
            } else {
                NOTHING
            }
            .to_owned()
        },
        |value| params::shown(key, value),
    )
}

impl Change {
    fn of(what: &str, base: &str, new: &str, of: Option<String>) -> Change {
        let of_launch = of
            .as_deref()
            .is_some_and(|of| of.split('.').next() == Some(LAUNCH));
        let kind = match what {
            PLACEMENT if of_launch => Kind::Placement,
            CLIENT_MACHINE => Kind::Client,
            what if BUILD.contains(&what) => Kind::Build,
            _ => Kind::Setting,
        };
        Change {
            what: what.to_owned(),
            base: base.to_owned(),
            new: new.to_owned(),
            kind,
            of,
        }
    }

    /// Whether it can have moved this row.
    pub fn concerns(&self, row: &Row) -> bool {
        match self.of.as_deref() {
            None => true,
            // A row of ours says by which compiler; a published table of one compiler has it with the host.
            Some(FLOPS) => {
                row.probe == FLOPS
                    && row
                        .params
                        .get("compiler")
                        .is_none_or(|c| c.to_string() != "built-in")
            }
            Some(of) => row.probe == of || row.probe.split('.').next() == Some(of),
        }
    }

    /// In words, base first: `cflags: -O2 → -O0`.
    pub fn words(&self) -> String {
        format!("{}: {} → {}", self.what, self.base, self.new)
    }
}

/// What was changed as the sides themselves tell it: by the part of a run that was asked for, by the compiler of
/// published figures, by what the servers said of their version and settings, and by the machines that the load came
/// from. `known` is what rows differed in as a whole.
pub fn between(base: &Side, new: &Side, known: &[Change]) -> Vec<Change> {
    let (b, n) = (&base.taken_out, &new.taken_out);
    let keys: BTreeSet<&str> = b.iter().chain(n.iter()).map(|(k, _)| k).collect();
    let text = |params: &Params, key: &str| in_words(key, params.get(key));
    let launching = [base, new].iter().all(|side| {
        side.rows
            .keys()
            .all(|(probe, _, _)| probe.split('.').next() == Some(LAUNCH))
    });
    let of = |key: &str| (key == PLACEMENT && launching).then(|| LAUNCH.to_owned());
    let mut changes: Vec<Change> = keys
        .into_iter()
        .filter(|key| b.get(key) != n.get(key))
        .map(|key| Change::of(key, &text(b, key), &text(n, key), of(key)))
        .collect();
    changes.extend(compilers(base, new));
    let servers = servers(base, new, &[known, &changes].concat());
    changes.extend(servers);
    changes.extend(client_machines(base, new));
    changes
}

/// What each server said of itself, by workload: its version, then settings with their values.
fn descriptions(side: &Side) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for o in &side.steps.observations {
        let text = o
            .source
            .strip_prefix(DESCRIBED)
            .or_else(|| Some(client::told(&o.source)?.1));
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            found.entry(o.workload.as_str()).or_default().insert(text);
        }
    }
    found
}

/// Another machine that the load came from.
fn client_machines(base: &Side, new: &Side) -> Option<Change> {
    let (b, n) = (client_machine(base)?, client_machine(new)?);
    (b != n).then(|| Change::of(CLIENT_MACHINE, &b, &n, None))
}

/// The machine that a side's load came from, where a load generator elsewhere made it: told by a record of the service,
/// or the host of the load generator's own record.
fn client_machine(side: &Side) -> Option<String> {
    let accounts = side.steps.observations.iter().filter(|o| {
        (o.workload.as_str(), o.observer.as_str()) == (client::WORKLOAD, client::CLIENT)
    });
    let of = |source: &str| {
        client::told(source).map_or_else(
            || client::machine(&side.host),
            |(machine, _)| machine.to_owned(),
        )
    };
    let machines: BTreeSet<String> = accounts.map(|o| of(&o.source)).collect();
    machines.first().filter(|_| machines.len() == 1).cloned()
}

/// Another version of a server, or settings that are in no row's parameters. Of another server nothing is the same.
fn servers(base: &Side, new: &Side, known: &[Change]) -> Vec<Change> {
    let (base, new) = (descriptions(base), descriptions(new));
    let mut changes = Vec::new();
    for (workload, of_base) in &base {
        let another = known
            .iter()
            .any(|c| ["engine", "server"].contains(&c.what.as_str()));
        let (Some(one), Some(other), false) =
            (only(of_base), new.get(workload).and_then(only), another)
        else {
            continue;
        };
        let (b, n) = (settings(one), settings(other));
        let keys: BTreeSet<&str> = b.keys().chain(n.keys()).copied().collect();
        // A row's parameter (query_cache) is told already, and the server's own settings that it stands for
        // (query_cache_size) with it.
        let told = |key: &str| {
            known
                .iter()
                .any(|c| key.starts_with(c.what.strip_prefix("server.").unwrap_or(&c.what)))
        };
        let value = |of: &BTreeMap<&str, &str>, key: &str| {
            of.get(key).copied().unwrap_or(NOTHING).to_owned()
        };
        let differing = keys
            .into_iter()
            .filter(|key| b.get(key) != n.get(key) && !told(key));
        // A load from elsewhere is on record with the service that it loaded, and what it is told of the server
        // concerns both.
        let of = (*workload != client::WORKLOAD).then(|| (*workload).to_owned());
        changes.extend(
            differing.map(|key| Change::of(key, &value(&b, key), &value(&n, key), of.clone())),
        );
    }
    changes
}

fn only<'a>(texts: &BTreeSet<&'a str>) -> Option<&'a str> {
    texts.first().filter(|_| texts.len() == 1).copied()
}

/// `10.11.6-MariaDB, storage=innodb, log_bin=off`: the version under that name, and the settings under theirs.
fn settings(text: &str) -> BTreeMap<&str, &str> {
    text.split(", ")
        .map(|part| part.split_once('=').unwrap_or(("version", part)))
        .collect()
}

fn compilers(base: &Side, new: &Side) -> Option<Change> {
    // A list of what is installed says nothing of a row that names its own compiler.
    let unnamed = |side: &Side| {
        side.rows
            .keys()
            .any(|(probe, _, params)| probe == FLOPS && params.get("compiler").is_none())
    };
    let told = |side: &Side| {
        side.facts
            .get("compilers")
            .filter(|_| unnamed(side))
            .map(|values| values.join(" | "))
    };
    let (b, n) = (told(base)?, told(new)?);
    let others = same(&base.facts, &new.facts, "processor") == Some(false);
    let names = |word: &&str| {
        NAMES_THE_PROCESSOR
            .iter()
            .any(|flag| word.starts_with(flag))
    };
    let kept = |text: &str| {
        text.split(' ')
            .filter(|word| !others || !names(word))
            .collect::<Vec<_>>()
            .join(" ")
    };
    (kept(&b) != kept(&n)).then(|| Change::of("compiler", &b, &n, Some(FLOPS.to_owned())))
}

/// Flags that name the processor: one compiler told of two processors by them is no other build.
const NAMES_THE_PROCESSOR: [&str; 3] = ["-march=", "-mcpu=", "-mtune="];

/// A parameter with one value in all rows of a probe that have no partner on one side, and another in all of those of
/// the other.
struct Differing {
    probe: String,
    key: String,
    base: Option<Param>,
    new: Option<Param>,
}

/// The same sides where one is a part by a parameter of which all rows of the other have one value: those are made a
/// part by it, too, so that they have partners. A word may be another one there, which is a change; a number is what is
/// measured at. Nothing where there is no such parameter.
pub fn both_as_parts(base: &Side, new: &Side) -> Option<(Side, Side)> {
    let everywhere = |side: &Side, key: &str| -> Option<Param> {
        let mut values = side.rows.keys().map(|(_, _, params)| params.get(key));
        let first = values.next()??.clone();
        values.all(|value| value == Some(&first)).then_some(first)
    };
    let like = |part: &Side, other: &Side| -> Params {
        let asked = part
            .taken_out
            .iter()
            .filter(|(key, _)| other.taken_out.get(key).is_none());
        let value = |(key, value): (&str, &Param)| {
            Some((
                key.to_owned(),
                everywhere(other, key).filter(|v| v == value || matches!(v, Param::Text(_)))?,
            ))
        };
        asked
            .filter_map(value)
            .fold(Params::new(), |all, (key, value)| all.with(&key, value))
    };
    let (of_base, of_new) = (like(new, base), like(base, new));
    (!of_base.is_empty() || !of_new.is_empty())
        .then(|| (base.part_by(&of_base), new.part_by(&of_new)))
}

/// The same sides with the parameters taken out in which they differ as a whole (cache on and off, one server and
/// another), so that their rows, budgets and followed requests have partners; and what those were. Nothing where there
/// is none.
pub fn side_by_side(base: &Side, new: &Side) -> Option<(Side, Side, Vec<Change>)> {
    let differing = as_a_whole(base, new);
    if differing.is_empty() {
        return None;
    }
    let without = |side: &Side, other: &Side, value: fn(&Differing) -> &Option<Param>| {
        let out = |probe: &str, params: &Params| -> Params {
            let mut rest = params.clone();
            let of = |d: &&Differing| d.probe == probe || d.probe.split('.').next() == Some(probe);
            for d in differing.iter().filter(of) {
                if value(d).is_some() && params.get(&d.key) == value(d).as_ref() {
                    rest.0.remove(&d.key);
                }
            }
            rest
        };
        side.with_params(|key| other.rows.contains_key(key), out)
    };
    let sides = (
        without(base, new, |d| &d.base),
        without(new, base, |d| &d.new),
    );
    let mut changes: Vec<Change> = Vec::new();
    for d in &differing {
        let change = Change::of(
            &d.key,
            &in_words(&d.key, d.base.as_ref()),
            &in_words(&d.key, d.new.as_ref()),
            Some(d.probe.clone()),
        );
        let family = |of: &Option<String>| {
            of.as_deref()
                .and_then(|of| of.split('.').next())
                .map(str::to_owned)
        };
        let like = |c: &&mut Change| {
            (&c.what, &c.base, &c.new, family(&c.of))
                == (&change.what, &change.base, &change.new, family(&change.of))
        };
        // What concerns several rows of a workload concerns the workload.
        match changes.iter_mut().find(like) {
            Some(known) => known.of = family(&known.of),
            None => changes.push(change),
        }
    }
    Some((sides.0, sides.1, changes))
}

/// Of each probe's rows without a partner: the values of each parameter.
fn values<'a>(
    side: &'a Side,
    other: &Side,
) -> BTreeMap<&'a str, BTreeMap<&'a str, Vec<&'a Param>>> {
    let mut found: BTreeMap<&str, BTreeMap<&str, Vec<&Param>>> = BTreeMap::new();
    for key in side
        .rows
        .keys()
        .filter(|key| !other.rows.contains_key(*key))
    {
        let of = found.entry(&key.0).or_default();
        for (name, value) in key.2.iter() {
            let values = of.entry(name).or_default();
            // Two are enough to know that there is more than one.
            if values.len() < 2 && !values.contains(&value) {
                values.push(value);
            }
        }
    }
    found
}

/// Whether any two rows of a probe are equal when what differs as a whole is taken out of both.
fn partners(base: &Side, new: &Side, probe: &str, differing: &[Differing]) -> bool {
    let stays = |key: &str| differing.iter().all(|d| d.key != key);
    let rest = |side: &Side| -> BTreeSet<Params> {
        side.rows
            .keys()
            .filter(|(p, _, _)| p == probe)
            .map(|(_, _, params)| params.only(|key, _| stays(key)))
            .collect()
    };
    !rest(base).is_disjoint(&rest(new))
}

fn as_a_whole(base: &Side, new: &Side) -> Vec<Differing> {
    // Imported rows beside others may leave parameters unstated, and have rules of their own.
    if base.imported != new.imported {
        return Vec::new();
    }
    let (b, n) = (values(base, new), values(new, base));
    let mut found = Vec::new();
    for (probe, of_base) in &b {
        let Some(of_new) = n.get(probe) else { continue };
        let keys: BTreeSet<&str> = of_base.keys().chain(of_new.keys()).copied().collect();
        // A number is what is measured at (clients, sizes); a word is how, and so is what a server was told.
        let word =
            |of: &BTreeMap<&str, Vec<&Param>>, key: &str| match of.get(key).map(Vec::as_slice) {
                Some([one @ Param::Text(_)]) => Some((*one).clone()),
                Some([one]) if is_setting(key) => Some((*one).clone()),
                _ => None,
            };
        let differing = |base: Option<Param>, new: Option<Param>, key: &str| Differing {
            probe: (*probe).to_owned(),
            key: key.to_owned(),
            base,
            new,
        };
        let both: Vec<Differing> = keys
            .iter()
            .filter_map(|key| {
                Some(differing(
                    Some(word(of_base, key)?),
                    Some(word(of_new, key)?),
                    key,
                ))
                .filter(|d| d.base != d.new)
            })
            .collect();
        // With another program some parameters come and others go; alone only those do that are stated when they were
        // changed.
        let alone = both.is_empty();
        // A published row may leave a number unstated as well: two guesses at once would put it beside every number
        // there is.
        if base.imported && new.imported && !partners(base, new, probe, &both) {
            continue;
        }
        found.extend(both);
        let one_sided = keys
            .iter()
            .filter(|key| !of_base.contains_key(**key) || !of_new.contains_key(**key));
        let one_sided = one_sided.filter(|key| !alone || stated_when_changed(key));
        // What an older record does not state it may have had all the same.
        let known = |side: &Side, of: &BTreeMap<&str, Vec<&Param>>, key: &str| {
            of.contains_key(key) || !is_older(side, probe)
        };
        let one_sided =
            one_sided.filter(|key| known(base, of_base, key) && known(new, of_new, key));
        found.extend(
            one_sided
                .map(|key| differing(word(of_base, key), word(of_new, key), key))
                .filter(|d| d.base.is_some() || d.new.is_some()),
        );
    }
    found
}

/// Whether rows of a probe are an older record's, which states less than rows do today.
fn is_older(side: &Side, probe: &str) -> bool {
    !side.imported
        && side
            .rows
            .keys()
            .any(|key| key.0 == probe && leaves_settings_unstated(probe, &key.2))
}
