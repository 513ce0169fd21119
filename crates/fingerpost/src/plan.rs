//! From what the user named to what will be measured.

pub mod parts;
mod values;

use fingerpost_compare::counterparts::published;
use fingerpost_labs::Lab;
use fingerpost_probes::Probe;
use fingerpost_probes::flops::compilers::{self, Compile};
use fingerpost_record::{Param, Params, suggest};
use wildmatch::WildMatch;

use crate::exit::usage;
use crate::foreign;

pub use parts::{LabRun, Row, Settings, joined};

/// Everything that one run measures.
#[derive(Default)]
pub struct Plan {
    /// Probes, measured in rounds.
    pub rows: Vec<Row>,
    /// Labs, one after the other.
    pub labs: Vec<LabRun>,
    /// C programs to build, whose rows come to the others.
    pub compile: Option<Compile>,
}

/// Reads `KEY=VALUE[,VALUE...]` words.
pub fn parse_settings(words: &[String]) -> anyhow::Result<Settings> {
    let mut settings = Settings::new();
    for word in words {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return usage(format!(
                "“{word}” is not a setting: write --set KEY=VALUE, such as --set fds=500"
            ));
        };
        // Values of a lab may hold commas of their own (`cflags=-Wl,-O1`), so only a plan that varies the key takes
        // them apart.
        settings.insert(key.to_owned(), value.split(',').map(Param::parse).collect());
    }
    Ok(settings)
}

/// Holds further settings, one a line: how a part of a comparison is told what must not stand in its command line.
/// Private servers do not inherit it.
pub const SECRET_SETTINGS: &str = "FINGERPOST_SECRET_SETTINGS";

/// The words of `--set`, and those that a comparison hands down.
pub fn all_settings(words: &[String]) -> Vec<String> {
    let handed = std::env::var(SECRET_SETTINGS).unwrap_or_default();
    words
        .iter()
        .cloned()
        .chain(handed.lines().map(str::to_owned))
        .collect()
}

/// Chooses what to measure. Without names: every probe that is no lab's.
pub fn resolve(names: &[String], settings: &Settings) -> anyhow::Result<Plan> {
    resolve_beside(names, settings, &[])
}

/// The same for a command that takes further settings by itself, so that a slip in the name of one is told with the
/// right name.
pub fn resolve_beside(
    names: &[String],
    settings: &Settings,
    others: &[&str],
) -> anyhow::Result<Plan> {
    let mut plan = Plan::default();
    let mut used: Vec<&str> = Vec::new();
    let mut probes: Vec<&'static Probe> = Vec::new();
    let everything = ["*".to_owned()];
    let whole = names.is_empty();
    for name in if whole { &everything[..] } else { names } {
        let pattern = WildMatch::new(name);
        let lab = fingerpost_labs::courses().find(|lab| lab.name == name);
        let wanted = |probe: &Probe| match probe.lab {
            Some(lab) => lab == name || (!whole && pattern.matches(probe.name)),
            None => pattern.matches(probe.name) || family(probe.name) == name,
        };
        let of_lab = fingerpost_probes::lab_rows().filter(|probe| probe.lab == Some(name.as_str()));
        let before = probes.len();
        probes.extend(
            fingerpost_probes::all()
                .filter(|probe| wanted(probe))
                .chain(of_lab),
        );
        for probe in &probes[before..] {
            add_rows(&mut plan.rows, probe, settings, &mut used);
        }
        if let Some(lab) = lab {
            plan.labs.push(LabRun {
                lab,
                settings: lab_settings(lab, settings, &mut used),
            });
        } else if probes.len() == before {
            match foreign::find(name) {
                Some(row) => {
                    probes.push(row.probe);
                    plan.rows.push(row);
                }
                None => return usage(unknown(name)),
            }
        }
    }
    values::check(&probes, &plan.labs, settings)?;
    plan.compile = compilers::wanted(
        plan.rows.iter().map(|row| (row.probe, &row.params)),
        settings,
    );
    if let Some(key) = settings
        .keys()
        .find(|key| !used.contains(&key.as_str()) && *key != "dir")
    {
        let known = known_settings(&plan);
        let near = suggest::or_else(
            key,
            known
                .iter()
                .map(String::as_str)
                .chain(others.iter().copied()),
            || format!("it has {}", known.join(", ")),
        );
        return usage(format!(
            "nothing that is to be measured has a setting “{key}”; {near}"
        ));
    }
    Ok(plan)
}

/// The error for a name that is neither a probe, nor a family, nor a lab.
pub fn unknown(name: &str) -> String {
    if let Some(figure) = published(name) {
        let of = figure.mean_of();
        let instead = if of.is_empty() {
            String::new()
        } else {
            format!(
                "; it is the mean of {}, which can be measured",
                of.join(" and ")
            )
        };
        return format!(
            "“{name}” is a figure of published results and no probe{instead}; `fingerpost list {name}` says more"
        );
    }
    let near = suggest::nearest(name, known_names());
    let meant = near.map_or(String::new(), |near| format!("did you mean “{near}”? "));
    format!("there is no probe or lab “{name}”; {meant}`fingerpost list` shows them all")
}

/// Every name that can be measured: labs, families, probes.
pub fn known_names() -> impl Iterator<Item = &'static str> {
    let probes = fingerpost_probes::all().map(|probe| probe.name);
    let labs = fingerpost_labs::REGISTRY.iter().map(|lab| lab.name);
    let families = fingerpost_probes::all().map(|probe| family(probe.name));
    labs.chain(families).chain(probes)
}

/// The word before the first dot: `syscall` names all of `syscall.*`.
pub fn family(probe: &str) -> &str {
    probe.split('.').next().unwrap_or(probe)
}

fn add_rows<'a>(
    rows: &mut Vec<Row>,
    probe: &'static Probe,
    settings: &'a Settings,
    used: &mut Vec<&'a str>,
) {
    used.extend(
        settings
            .keys()
            .map(String::as_str)
            .filter(|key| probe.settings.iter().any(|[own, ..]| own == key)),
    );
    let all = (probe.variants)();
    for variant in all.clone() {
        for params in vary(variant, &all, settings, used) {
            if !rows
                .iter()
                .any(|row| row.probe.name == probe.name && row.params == params)
            {
                rows.push(Row::new(probe, params));
            }
        }
    }
}

/// A variant with every parameter that the user set replaced by each of the user's values that a probe with these
/// variants can have.
fn vary<'a>(
    variant: Params,
    all: &[Params],
    settings: &'a Settings,
    used: &mut Vec<&'a str>,
) -> Vec<Params> {
    let mut variants = vec![variant];
    for (key, values) in settings {
        if variants
            .first()
            .is_none_or(|params| params.get(key).is_none())
        {
            continue;
        }
        used.push(key);
        let able: Vec<&Param> = values
            .iter()
            .filter(|value| values::can_be(all, key, value))
            .collect();
        variants = variants
            .iter()
            .flat_map(|v| {
                able.iter()
                    .map(|value| v.clone().with(key, (*value).clone()))
            })
            .collect();
    }
    variants
}

/// The settings that a lab knows, comma lists joined again.
fn lab_settings<'a>(lab: &Lab, settings: &'a Settings, used: &mut Vec<&'a str>) -> Params {
    let mut own = Params::new();
    for (key, values) in settings {
        if lab
            .settings
            .iter()
            .any(|s| s.key == key || (s.key.ends_with('.') && key.starts_with(s.key)))
        {
            used.push(key);
            own = match values.as_slice() {
                [one] => own.with(key, one.clone()),
                many => own.with(key, joined(many)),
            };
        }
    }
    own
}

fn known_settings(plan: &Plan) -> Vec<String> {
    let mut keys: Vec<String> = plan
        .rows
        .iter()
        .flat_map(|row| row.params.iter().map(|(key, _)| key.to_owned()))
        .collect();
    keys.extend(
        plan.labs
            .iter()
            .flat_map(|run| run.lab.settings.iter().map(|s| s.key.to_owned())),
    );
    keys.extend(
        plan.rows
            .iter()
            .flat_map(|row| row.probe.settings)
            .map(|[key, ..]| (*key).to_owned()),
    );
    keys.push("dir".to_owned());
    keys.sort();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(plan: &Plan) -> Vec<&'static str> {
        let mut names: Vec<_> = plan.rows.iter().map(|row| row.probe.name).collect();
        names.dedup();
        names
    }

    fn resolve_words(names: &[&str], settings: &[&str]) -> anyhow::Result<Plan> {
        let own = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        resolve(&own(names), &parse_settings(&own(settings))?)
    }

    #[test]
    fn without_names_every_primitive_is_measured_and_no_lab() {
        let plan = resolve_words(&[], &[]).unwrap();
        assert!(plan.rows.len() > 5 && plan.labs.is_empty());
        assert!(plan.rows.iter().all(|row| row.probe.lab.is_none()));
    }

    #[test]
    fn a_glob_a_family_and_a_name_choose_their_probes_once() {
        let family = names(&resolve_words(&["syscall"], &[]).unwrap()).len();
        assert_eq!(
            names(&resolve_words(&["syscall.*", "syscall.null"], &[]).unwrap()).len(),
            family
        );
        assert_eq!(
            names(&resolve_words(&["syscall.null"], &[]).unwrap()),
            ["syscall.null"]
        );
    }

    #[test]
    fn a_lab_of_probes_is_measured_with_its_familys_primitives() {
        let plan = resolve_words(&["memory"], &[]).unwrap();
        for name in [
            "memory.latency",
            "memory.read",
            "memory.write",
            "memory.copy",
        ] {
            let of = |lab: bool| {
                plan.rows
                    .iter()
                    .filter(|row| row.probe.name == name && row.probe.lab.is_some() == lab)
                    .count()
            };
            assert!(
                of(true) > of(false) && of(false) > 0,
                "{name}: {} {}",
                of(true),
                of(false)
            );
        }
        let primitives = resolve_words(&["memory.read"], &[]).unwrap();
        assert!(primitives.rows.iter().all(|row| row.probe.lab.is_none()));
    }

    #[test]
    fn compilers_are_looked_for_only_where_their_rows_are_measured() {
        assert!(
            resolve_words(&["syscall.null"], &[])
                .unwrap()
                .compile
                .is_none()
        );
        assert_eq!(
            resolve_words(&["flops"], &[]).unwrap().compile.unwrap().cc,
            None
        );
        let compile = resolve_words(&["cpu.flops"], &["cc=gcc,clang", "cflags=-O3 -Wl,-O1"])
            .unwrap()
            .compile
            .unwrap();
        assert_eq!(
            (compile.cc, compile.cflags.as_str()),
            (Some(vec!["gcc".into(), "clang".into()]), "-O3 -Wl,-O1")
        );
        assert!(resolve_words(&["syscall.null"], &["cc=gcc"]).is_err());
    }

    #[test]
    fn unknown_names_and_settings_are_usage_errors_with_a_list() {
        let error = |names: &[&str], settings: &[&str]| {
            resolve_words(names, settings).err().unwrap().to_string()
        };
        assert!(error(&["syscal"], &[]).contains("; did you mean “syscall”? `fingerpost list`"));
        assert!(error(&["nothing-like-it"], &[]).contains("fingerpost list"));
        let published = error(&["lmbench.null_io"], &[]);
        assert!(
            published.contains("the mean of syscall.read and syscall.write")
                && published.contains("list lmbench.null_io"),
            "{published}"
        );
        assert!(error(&["syscall.select"], &["fdz=3"]).ends_with("; did you mean “fds”?"));
        assert!(error(&["syscall.null"], &["fdz=3"]).contains("fdz"));
        assert!(error(&["syscall.null"], &["fds"]).contains("KEY=VALUE"));
    }
}
