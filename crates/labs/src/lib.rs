//! Experiments made of several measurements, each with its own course and analysis.
//!
//! A lab drives workloads and observers and hands every result to a [`Sink`] as soon as it exists. It never prints. A
//! lab is a folder: its descriptor ([`Lab`]) and its course, the arithmetic of its rows (`analysis`), and what each
//! format shows of it (`shown`). [`REGISTRY`] lists them all, and everything else takes them from there.

pub mod attribute;
pub mod database;
pub mod deciding;
pub mod desktop;
pub mod elsewhere;
mod explained;
pub mod flops;
mod lab;
pub mod launch;
pub mod load;
mod loaded;
pub mod memory;
pub mod numbers;
pub mod prove;
pub mod rows;
pub mod service;
mod sink;
pub mod site;
pub mod web;
pub mod zerofill;

use std::sync::LazyLock;

use fingerpost_report::lab::{LabView, Labs};

pub use fingerpost_workloads::WorkloadError as LabError;
pub use lab::{Context, Lab, Setting};
pub use sink::Sink;

/// Every lab, in the order shown.
pub static REGISTRY: &[&Lab] = &[
    // With courses of their own.
    &database::LAB,
    &web::LAB,
    &site::LAB,
    &launch::LAB,
    // Made of probes.
    &zerofill::LAB,
    &flops::LAB,
    &memory::LAB,
];

/// What a report knows of them.
pub fn views() -> Labs<'static> {
    static VIEWS: LazyLock<Vec<LabView>> =
        LazyLock::new(|| REGISTRY.iter().map(|lab| lab.view()).collect());
    &VIEWS
}

/// Those with a course of their own.
pub fn courses() -> impl Iterator<Item = &'static Lab> {
    REGISTRY.iter().copied().filter(|lab| lab.is_course())
}

/// What the figure of a lab's row is, for `list NAME` and for whoever hovers over a name on a page; nothing where no
/// lab makes it.
pub fn meaning(probe: &str) -> Option<&'static str> {
    courses()
        .flat_map(|lab| lab.rows)
        .find(|(of, _)| of.probe == probe)
        .map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use fingerpost_record::descriptor::{of_before, table};
    use fingerpost_record::{Param, Params, Profile};
    use fingerpost_report::lab::derived::Derived;

    use super::*;

    /// Whether a figure of this name and value is among them, whose parameters hold this.
    pub(crate) fn has(all: &[Derived], name: &str, params: &str, value: f64) -> bool {
        let told = |f: &Derived| {
            f.params
                .iter()
                .map(|(k, v)| format!("{k}={v}"))
                .collect::<Vec<_>>()
                .join(";")
        };
        all.iter()
            .any(|f| f.name == name && told(f).contains(params) && f.value == value)
    }

    #[test]
    fn records_of_before_have_the_rows_of_each_lab_in_its_table() {
        let none = Params::new();
        let all = courses()
            .flat_map(|lab| lab.rows)
            .map(|(of, _)| *of)
            .chain([&load::OF_TURN, &service::OF_RATE]);
        // A lab with a table of its own came after them.
        for of in all.filter(|of| of.table.place() < table::ORDER.len()) {
            assert_eq!(
                of_before(of.probe, [&none, &none]),
                of.descriptor(),
                "{}",
                of.probe
            );
        }
    }

    /// What must be set beside a setting for it to mean something.
    fn beside(key: &str, value: &str) -> Params {
        let (key, value) = match (key, value) {
            ("storage" | "query_cache", _) => ("engine", "mariadb"),
            ("mpm", _) => ("server", "apache"),
            ("backend", "embedded") => ("server", "nginx"),
            _ => return Params::new(),
        };
        Params::new().with(key, value)
    }

    /// What the lab says of a value.
    fn said(lab: &Lab, key: &str, value: &str) -> Option<String> {
        let settings = beside(key, value).with(key, Param::parse(value));
        (lab.check)(&settings, Profile::Standard)
            .err()
            .map(|e| e.to_string())
    }

    #[test]
    fn labs_take_the_values_that_shells_propose_and_name_them_where_another_is_given() {
        for lab in courses() {
            for s in lab.settings.iter().filter(|s| !s.values.is_empty()) {
                // Two of these depend on the machine: who may limit memory, and who is root.
                for value in s.values.iter().filter(|v| {
                    !matches!(
                        (s.key, **v),
                        ("pressure_by", "limit") | ("existing_swap", "off")
                    )
                }) {
                    assert_eq!(
                        said(lab, s.key, value),
                        None,
                        "{} {}={value}",
                        lab.name,
                        s.key
                    );
                }
                let Some(sentence) = said(lab, s.key, "no-such-thing") else {
                    panic!("{} {} takes anything", lab.name, s.key)
                };
                let missing: Vec<&&str> = s
                    .values
                    .iter()
                    .filter(|v| !sentence.contains(**v))
                    .collect();
                assert!(
                    s.path || missing.is_empty(),
                    "{} {}: {missing:?} not in “{sentence}”",
                    lab.name,
                    s.key
                );
                if s.several && s.values.len() > 1 {
                    let two = format!("{},{}", s.values[0], s.values[1]);
                    assert_eq!(said(lab, s.key, &two), None, "{} {}={two}", lab.name, s.key);
                }
            }
        }
    }

    #[test]
    fn one_key_is_one_setting_of_a_lab() {
        for lab in REGISTRY {
            let keys: std::collections::BTreeSet<&str> =
                lab.all_settings().map(|s| s.key).collect();
            assert_eq!(keys.len(), lab.all_settings().count(), "{}", lab.name);
        }
    }

    #[test]
    fn every_lab_has_a_name_of_its_own_and_rows_and_every_lab_of_a_probe_is_listed() {
        let names: std::collections::BTreeSet<&str> = REGISTRY.iter().map(|lab| lab.name).collect();
        assert_eq!(names.len(), REGISTRY.len());
        assert!(REGISTRY.iter().all(|lab| lab.figures().next().is_some()));
        let listed = |name: &str| {
            REGISTRY
                .iter()
                .any(|lab| !lab.is_course() && lab.name == name)
        };
        let probes = fingerpost_probes::all().chain(fingerpost_probes::lab_rows());
        assert!(probes.filter_map(|probe| probe.lab).all(listed));
    }
}
