//! What sets a host apart from its peers without a figure: a limit or setting that they do not have, something that
//! wants its CPUs, rows that all of them measured and it could not.
//!
//! Figures are made of what ran undisturbed, so that a quota or a neighbour hardly moves them; what takes the CPU is
//! seen in the hosts' descriptions.

use fingerpost_record::cause::id;
use std::collections::BTreeMap;

use fingerpost_diagnose::fleet::FEWEST;
use fingerpost_record::Layer;

use crate::description::Description;
use crate::table::{HostRow, Row};
use crate::told::{Told, Value, What};

/// More hosts than this share of a group, and than [`FEW`], are no odd ones but another kind (as of figures,
/// `diagnose::fleet`).
const MANY: f64 = 0.1;
/// So many hosts may be odd in a group of any size.
const FEW: usize = 2;
/// Rows without a figure that are told of one host.
const MOST_FAILED: usize = 3;

/// One way in which a host is odd.
#[derive(Clone, Debug, PartialEq)]
pub struct Odd {
    /// The cause's name in the registry.
    pub cause: &'static str,
    /// Its layer.
    pub layer: Layer,
    /// What says so.
    pub evidence: Told,
    /// Whether it takes the CPU from whatever runs there: then slow figures are its consequence.
    pub of_cpu: bool,
}

/// What is usual in a group of peers.
pub struct Usual<'a> {
    hosts: Vec<&'a HostRow>,
    most: usize,
    quota: f64,
    cpus: u32,
    runnable: u64,
    filters: u32,
    thp: Option<&'a str>,
    governor: Option<&'a str>,
    mitigations: Option<&'a BTreeMap<String, String>>,
    /// Of each row how many hosts measured it and how many could not.
    rows: Vec<(usize, usize)>,
    names: &'a [Row],
}

fn middle<T: PartialOrd + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len() / 2).copied()
}

/// What nearly all hosts have.
fn common<T: Ord>(settings: impl Iterator<Item = T>, hosts: usize, most: usize) -> Option<T> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    settings.for_each(|setting| *counts.entry(setting).or_default() += 1);
    counts
        .into_iter()
        .find(|(_, count)| *count + most >= hosts && *count * 2 > hosts)
        .map(|(setting, _)| setting)
}

fn quota_of(host: &HostRow) -> f64 {
    host.description.quota.unwrap_or(f64::INFINITY)
}

/// A setting as a word; nothing where it is not known.
fn word(setting: &Option<String>) -> &str {
    setting.as_deref().unwrap_or_default()
}

/// The mitigations that both hosts tell, and that differ: here and usual.
fn mitigated_otherwise(
    here: &BTreeMap<String, String>,
    usual: &BTreeMap<String, String>,
) -> Option<[String; 2]> {
    let differ: Vec<&String> = here
        .iter()
        .filter(|(what, state)| usual.get(*what).is_some_and(|u| u != *state))
        .map(|(what, _)| what)
        .collect();
    let listed = |of: &BTreeMap<String, String>| {
        differ
            .iter()
            .map(|what| format!("{what}: {}", of[*what]))
            .collect::<Vec<_>>()
            .join("; ")
    };
    (!differ.is_empty()).then(|| [listed(here), listed(usual)])
}

/// Whether a row is of memory in large pages, by its parameter: it fails where none is free.
fn asks_for_large_pages(row: &Row) -> bool {
    row.params
        .text("how")
        .is_some_and(|how| ["thp", "thp_read", "mthp"].contains(&how))
}

impl<'a> Usual<'a> {
    /// Of these hosts; nothing for too few to say what is usual.
    pub fn of(hosts: Vec<&'a HostRow>, names: &'a [Row]) -> Option<Usual<'a>> {
        if hosts.len() < FEWEST {
            return None;
        }
        let most = FEW.max((MANY * hosts.len() as f64) as usize);
        let (mut rows, known) = (vec![(0, 0); names.len()], names.len());
        for host in &hosts {
            host.cells
                .iter()
                .for_each(|cell| rows[cell.0 as usize].0 += 1);
            host.failed
                .iter()
                .filter(|(row, _)| (*row as usize) < known)
                .for_each(|(row, _)| rows[*row as usize].1 += 1);
        }
        let of_all = |setting: fn(&'a Description) -> &'a str| {
            common(
                hosts.iter().map(|host| setting(&host.description)),
                hosts.len(),
                most,
            )
        };
        Some(Usual {
            most,
            quota: middle(hosts.iter().map(|host| quota_of(host)))?,
            cpus: middle(hosts.iter().map(|host| host.description.cpus))?,
            runnable: middle(hosts.iter().map(|host| host.description.runnable))?,
            filters: middle(hosts.iter().filter_map(|host| host.description.filters)).unwrap_or(0),
            thp: of_all(|d| word(&d.thp)),
            governor: of_all(|d| word(&d.governor)),
            mitigations: common(
                hosts.iter().map(|host| &host.description.mitigations),
                hosts.len(),
                most,
            ),
            rows,
            hosts,
            names,
        })
    }

    /// Whether so few hosts are like this that they are odd.
    fn few(&self, like: impl Fn(&Description) -> bool) -> bool {
        self.hosts
            .iter()
            .filter(|host| like(&host.description))
            .count()
            <= self.most
    }

    /// In what a host is odd, those that take the CPU first.
    pub fn odd(&self, host: &HostRow) -> Vec<Odd> {
        let d = &host.description;
        let mut found = self.of_cpu(host);
        let filters = |d: &Description| d.filters.unwrap_or(0);
        if filters(d) > self.filters && self.few(|other| filters(other) > self.filters) {
            let evidence = Told::Differs {
                what: What::SeccompFilters,
                here: Value::Number(f64::from(filters(d))),
                peers: Value::Number(f64::from(self.filters)),
            };
            found.push(Odd {
                cause: id::SYSCALL_ENTRY,
                layer: Layer::Kernel,
                evidence,
                of_cpu: false,
            });
        }
        found.extend(self.other_settings(d));
        found.extend(self.failed(host));
        found
    }

    /// Settings that are others than those of nearly all peers.
    fn other_settings(&self, d: &Description) -> Vec<Odd> {
        let mut found = Vec::new();
        let mut odd = |what: What, cause, layer, here: &str, usual: &str| {
            let evidence = Told::Differs {
                what,
                here: Value::Text(here.to_owned()),
                peers: Value::Text(usual.to_owned()),
            };
            found.push(Odd {
                cause,
                layer,
                evidence,
                of_cpu: false,
            });
        };
        let other = |usual: Option<&'a str>, here: &str| {
            usual.filter(|usual| *usual != here && !usual.is_empty() && !here.is_empty())
        };
        if let Some(usual) = other(self.thp, word(&d.thp)) {
            odd(
                What::HugePages,
                id::MEMORY_PAGE_SIZE,
                Layer::Memory,
                word(&d.thp),
                usual,
            );
        }
        if let Some(usual) = other(self.governor, word(&d.governor)) {
            odd(
                What::Governor,
                id::CPU_SPEED,
                Layer::Cpu,
                word(&d.governor),
                usual,
            );
        }
        if let Some([here, usual]) = self
            .mitigations
            .and_then(|usual| mitigated_otherwise(&d.mitigations, usual))
        {
            odd(
                What::Mitigations,
                id::CPU_MITIGATION,
                Layer::Cpu,
                &here,
                &usual,
            );
        }
        found
    }

    /// What takes the CPU from whatever runs on this host.
    fn of_cpu(&self, host: &HostRow) -> Vec<Odd> {
        let d = &host.description;
        let mut found = Vec::new();
        let mut odd = |cause, what: What, here: f64, peers: Value| {
            found.push(Odd {
                cause,
                layer: Layer::Scheduler,
                evidence: Told::Differs {
                    what,
                    here: Value::Number(here),
                    peers,
                },
                of_cpu: true,
            })
        };
        if quota_of(host) < self.quota
            && self.few(|other| other.quota.unwrap_or(f64::INFINITY) < self.quota)
        {
            let peers = if self.quota.is_finite() {
                Value::Number(self.quota)
            } else {
                Value::None
            };
            odd(id::CPU_QUOTA, What::CpuQuota, quota_of(host), peers);
        }
        if d.cpus > 0 && d.cpus < self.cpus && self.few(|other| other.cpus < self.cpus) {
            odd(
                id::CPU_AFFINITY,
                What::CpusAllowed,
                f64::from(d.cpus),
                Value::Number(f64::from(self.cpus)),
            );
        }
        // As many as there are CPUs, before the run and after it: something else wants them all the time.
        let oversubscribed = |d: &Description| {
            d.runnable >= u64::from(d.cpus.max(1)) && d.runnable > self.runnable + 1
        };
        if oversubscribed(d) && self.few(oversubscribed) {
            odd(
                id::CPU_CONTENTION,
                What::Runnable,
                d.runnable as f64,
                Value::Number(self.runnable as f64),
            );
        }
        found
    }

    /// Rows that nearly all peers measured and this host could not.
    fn failed(&self, host: &HostRow) -> Vec<Odd> {
        let alone = |row: usize| {
            self.rows.get(row).is_some_and(|(measured, failed)| {
                *failed <= self.most
                    && measured + failed + self.most >= self.hosts.len()
                    && *measured + 1 >= FEWEST
            })
        };
        let rows = host
            .failed
            .iter()
            .filter(|(row, _)| alone(*row as usize))
            .take(MOST_FAILED);
        let odd = |(row, reason): &(u32, String)| {
            let row = &self.names[*row as usize];
            let of_group = row.group.cause();
            // Large pages that were asked for and not given are no slow faults.
            let cause = if asks_for_large_pages(row) {
                id::MEMORY_PAGE_SIZE
            } else {
                of_group.map_or("", |cause| cause.name)
            };
            Some(Odd {
                cause,
                layer: of_group.map(|cause| cause.layer)?,
                evidence: Told::NotMeasured {
                    row: row.name(),
                    reason: reason.clone(),
                },
                of_cpu: false,
            })
        };
        rows.filter_map(odd).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Stamp;
    use crate::table::Table;
    use fingerpost_record::{Outcome, Run, fixture};

    fn found(change: impl Fn(&mut Run), hosts: usize, odd: usize) -> Vec<&'static str> {
        let mut table = Table::default();
        for host in 0..hosts {
            let mut run = fixture::run();
            (run.host.cgroup.cpu_quota, run.host.cpu.count, run.host.thp) =
                (None, 4, Some("madvise".into()));
            run.host.seccomp_filters = Some(0);
            run.host.task_mitigations = [(
                "speculative store bypass".to_owned(),
                "thread vulnerable".to_owned(),
            )]
            .into();
            run.host.before.runnable = 2;
            run.host.after = Some(run.host.before.clone());
            if host < odd {
                change(&mut run);
            }
            table.add(&format!("n{host}"), &run, Stamp::default());
        }
        let Some(usual) = Usual::of(table.hosts.iter().collect(), &table.rows) else {
            return vec!["too few"];
        };
        assert!(
            table.hosts[odd..]
                .iter()
                .all(|host| usual.odd(host).is_empty()),
            "nobody else is odd"
        );
        usual
            .odd(&table.hosts[0])
            .iter()
            .map(|odd| odd.cause)
            .collect()
    }

    #[test]
    fn what_one_host_has_and_its_peers_have_not_is_told() {
        assert_eq!(found(|_| {}, 8, 0), Vec::<&str>::new());
        assert_eq!(
            found(|run| run.host.cgroup.cpu_quota = Some(0.5), 8, 1),
            ["cpu.quota"]
        );
        assert_eq!(found(|run| run.host.cpu.count = 2, 8, 1), ["cpu.affinity"]);
        assert_eq!(
            found(|run| run.host.seccomp_filters = Some(3), 8, 1),
            ["syscall.entry"]
        );
        assert_eq!(
            found(|run| run.host.thp = Some("never".into()), 8, 1),
            ["memory.page_size"]
        );
        let busy = |run: &mut Run| {
            run.host.before.runnable = 7;
            run.host.after = Some(run.host.before.clone());
        };
        assert_eq!(found(busy, 8, 1), ["cpu.contention"]);
        // At the beginning only.
        assert_eq!(
            found(|run| run.host.before.runnable = 7, 8, 1),
            Vec::<&str>::new()
        );
        // As many as CPUs want them all, whatever their peers have beside the run.
        let all_wanted = |run: &mut Run| {
            run.host.before.runnable = 4;
            run.host.after = Some(run.host.before.clone());
        };
        assert_eq!(found(all_wanted, 8, 1), ["cpu.contention"]);
        let mitigated = |run: &mut Run| {
            _ = run
                .host
                .task_mitigations
                .insert("speculative store bypass".into(), "thread mitigated".into())
        };
        assert_eq!(found(mitigated, 8, 1), ["cpu.mitigation"]);
        // A record of a version that does not tell is no other.
        assert_eq!(
            found(|run| run.host.task_mitigations.clear(), 8, 1),
            Vec::<&str>::new()
        );
        let cannot = |run: &mut Run| {
            let m = run
                .measurements
                .iter_mut()
                .find(|m| m.outcome == Outcome::Measured && m.probe == "syscall.null")
                .unwrap();
            (m.outcome, m.estimate, m.reason) = (Outcome::Failed, None, Some("no".into()));
        };
        assert_eq!(found(cannot, 8, 1), ["kernel.work"]);
    }

    #[test]
    fn what_many_have_is_another_kind_and_seven_are_too_few() {
        assert_eq!(
            found(|run| run.host.cgroup.cpu_quota = Some(0.5), 7, 1),
            ["too few"]
        );
        let mut table = Table::default();
        for host in 0..20 {
            let mut run = fixture::run();
            run.host.cgroup.cpu_quota = (host < 5).then_some(0.5);
            table.add(&format!("n{host}"), &run, Stamp::default());
        }
        let usual = Usual::of(table.hosts.iter().collect(), &table.rows).unwrap();
        assert!(table.hosts.iter().all(|host| usual.odd(host).is_empty()));
    }
}
