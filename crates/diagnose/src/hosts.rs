//! What differs between the hosts, and could explain figures.

use std::collections::BTreeMap;

use fingerpost_record::Host;
use serde::Serialize;

/// One thing that the two hosts do not share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostDifference {
    /// What differs, in words.
    pub what: String,
    /// How it is on the base side; several values when its runs differ.
    pub base: String,
    /// How it is on the new side.
    pub new: String,
}

/// The fact of a limit or an area that there is not.
pub const NONE: &str = "none";

/// How much two clock rates may differ before the difference is mentioned: idle clocks wander.
const CLOCK_TOLERANCE: f64 = 0.02;

/// The fact of the speculation of a run's own processes.
pub const TASK_MITIGATIONS: &str = "mitigations of its processes";

/// A fact, and how a host tells it.
type Fact = (&'static str, fn(&Host) -> Option<String>);

/// Every fact, in the order in which they are worth reading.
const FACTS: [Fact; 36] = [
    ("kernel", |host| Some(host.kernel.clone())),
    ("operating system", |host| Some(host.os.clone())),
    ("kernel command line", |host| host.cmdline.clone()),
    ("mitigations", |host| {
        (!host.mitigations.is_empty()).then(|| list(&host.mitigations))
    }),
    (TASK_MITIGATIONS, |host| {
        (!host.task_mitigations.is_empty()).then(|| list(&host.task_mitigations))
    }),
    ("processor", |host| Some(host.cpu.model.clone())),
    ("clock", |host| {
        host.cpu.mhz.map(|mhz| format!("{mhz:.0} MHz"))
    }),
    ("CPUs allowed", |host| {
        (host.cpu.count > 0).then(|| host.cpu.count.to_string())
    }),
    ("CPUs online", |host| {
        (host.cpu.online > 0).then(|| host.cpu.online.to_string())
    }),
    ("SMT", |host| host.cpu.smt.clone()),
    ("turbo", |host| host.cpu.turbo.clone()),
    ("microcode", |host| host.cpu.microcode.clone()),
    ("caches", |host| {
        (!host.cpu.caches.is_empty()).then(|| list(&host.cpu.caches))
    }),
    ("governor", |host| host.governor.clone()),
    ("CPU quota", |host| {
        Some(
            host.cgroup
                .cpu_quota
                .map_or(NONE.into(), |q| format!("{q} CPUs")),
        )
    }),
    ("CPU weight", |host| {
        host.cgroup.cpu_weight.map(|w| w.to_string())
    }),
    ("cpuset", |host| host.cgroup.cpuset.clone()),
    ("seccomp", |host| host.seccomp.map(seccomp)),
    ("seccomp filters", |host| {
        host.seccomp_filters.map(|n| n.to_string())
    }),
    ("transparent huge pages", |host| host.thp.clone()),
    ("idle memory", |host| host.idle_memory.clone()),
    ("clock source", |host| host.clocksource.clone()),
    ("preemption", |host| host.preemption.clone()),
    ("timer interrupts", |host| {
        host.hz.map(|hz| format!("{hz} Hz"))
    }),
    ("memory", |host| {
        (host.memory_bytes > 0).then(|| mebibytes(host.memory_bytes))
    }),
    ("memory limit", |host| {
        Some(host.cgroup.memory_limit.map_or(NONE.into(), mebibytes))
    }),
    ("swap", |host| Some(swap(host))),
    ("page size", |host| {
        (host.page_bytes > 0).then(|| host.page_bytes.to_string())
    }),
    ("file system", |host| {
        (!host.filesystem.kind.is_empty())
            .then(|| format!("{} on {}", host.filesystem.kind, host.filesystem.device))
    }),
    ("mount options", |host| {
        Some(host.filesystem.options.clone())
    }),
    ("virtualisation", |host| host.virtualization.clone()),
    ("container", |host| host.container.clone()),
    ("C library", |host| host.libc.clone()),
    ("compilers", |host| {
        (!host.compilers.is_empty()).then(|| host.compilers.join(", "))
    }),
    ("architecture", |host| Some(host.arch.clone())),
    ("process limit", |host| {
        host.cgroup.pids_limit.map(|n| n.to_string())
    }),
];

/// A host as named facts, in the order in which they are worth reading. What the host does not tell is absent.
pub fn facts(host: &Host) -> Vec<(&'static str, String)> {
    FACTS
        .iter()
        .filter_map(|(what, tells)| Some((*what, tells(host).filter(|told| !told.is_empty())?)))
        .collect()
}

/// The facts that both sides tell and that are not the same, in the order in which they are worth reading.
pub fn differences(
    base: &BTreeMap<&'static str, Vec<String>>,
    new: &BTreeMap<&'static str, Vec<String>>,
) -> Vec<HostDifference> {
    let differs = |what| {
        let (b, n) = (base.get(what)?, new.get(what)?);
        let alike = as_set(b) == as_set(n) || (what == "clock" && clocks_alike(b, n));
        (!alike).then(|| difference(what, b, n))
    };
    FACTS
        .iter()
        .filter_map(|(what, _)| differs(*what))
        .collect()
}

/// Whether both sides tell a fact and it is the same; nothing where one of them does not tell it.
pub fn same(
    base: &BTreeMap<&'static str, Vec<String>>,
    new: &BTreeMap<&'static str, Vec<String>>,
    what: &str,
) -> Option<bool> {
    Some(as_set(base.get(what)?) == as_set(new.get(what)?))
}

fn difference(what: &str, base: &[String], new: &[String]) -> HostDifference {
    let of = |base, new| HostDifference {
        what: what.to_owned(),
        base,
        new,
    };
    // These are long lists with few differences; only what differs is shown.
    let separator = match what {
        "mitigations" | TASK_MITIGATIONS => "; ",
        "mount options" => ",",
        "kernel command line" => " ",
        _ => return of(shown(base), shown(new)),
    };
    let (base, new) = (base.join(" | "), new.join(" | "));
    let (b, n): (Vec<&str>, Vec<&str>) = (
        base.split(separator).collect(),
        new.split(separator).collect(),
    );
    let only = |a: &[&str], other: &[&str]| {
        let rest: Vec<&str> = a.iter().copied().filter(|w| !other.contains(w)).collect();
        if rest.is_empty() {
            "–".to_owned()
        } else {
            rest.join(separator)
        }
    };
    of(only(&b, &n), only(&n, &b))
}

fn as_set(values: &[String]) -> std::collections::BTreeSet<&String> {
    values.iter().collect()
}

fn clocks_alike(base: &[String], new: &[String]) -> bool {
    let mhz = |values: &[String]| {
        values
            .iter()
            .find_map(|v| v.strip_suffix(" MHz")?.parse::<f64>().ok())
    };
    mhz(base)
        .zip(mhz(new))
        .is_some_and(|(b, n)| (b / n - 1.0).abs() < CLOCK_TOLERANCE)
}

fn shown(values: &[String]) -> String {
    let few: Vec<&str> = values.iter().take(3).map(String::as_str).collect();
    let more = if values.len() > 3 {
        format!(" | {} more", values.len() - 3)
    } else {
        String::new()
    };
    few.join(" | ") + &more
}

fn list<V: std::fmt::Display>(map: &BTreeMap<String, V>) -> String {
    map.iter()
        .map(|(k, v)| format!("{k}: {v}"))
        .collect::<Vec<_>>()
        .join("; ")
}

fn seccomp(mode: u32) -> String {
    match mode {
        0 => "none".into(),
        1 => "strict".into(),
        2 => "filter".into(),
        n => format!("mode {n}"),
    }
}

fn mebibytes(bytes: u64) -> String {
    // Firmware takes a few MiB more or less from one boot to the next; a person reads GiB with one decimal.
    if bytes >= 1 << 30 {
        format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
    } else {
        format!("{} MiB", bytes >> 20)
    }
}

fn swap(host: &Host) -> String {
    let areas: Vec<String> = host
        .swap
        .iter()
        .map(|s| format!("{} of {}", s.kind, mebibytes(s.bytes)))
        .collect();
    if areas.is_empty() {
        NONE.into()
    } else {
        areas.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(host: &Host) -> BTreeMap<&'static str, Vec<String>> {
        facts(host).into_iter().map(|(k, v)| (k, vec![v])).collect()
    }

    #[test]
    fn equal_hosts_do_not_differ_and_what_one_does_not_tell_is_no_difference() {
        let mut told = Host {
            kernel: "6.1".into(),
            thp: Some("always".into()),
            ..Host::default()
        };
        told.cpu.mhz = Some(2400.0);
        assert!(differences(&of(&told), &of(&told)).is_empty());
        assert!(
            differences(
                &of(&told),
                &of(&Host {
                    thp: None,
                    ..told.clone()
                })
            )
            .is_empty()
        );
        let mut wandering = told.clone();
        wandering.cpu.mhz = Some(2410.0);
        assert!(differences(&of(&told), &of(&wandering)).is_empty());
    }

    #[test]
    fn differences_come_with_the_kernel_first_and_show_only_what_differs() {
        let mut base = Host {
            kernel: "6.1".into(),
            thp: Some("always".into()),
            cmdline: Some("quiet ro".into()),
            ..Host::default()
        };
        base.mitigations = [
            ("a".to_owned(), "Vulnerable".to_owned()),
            ("b".to_owned(), "Not affected".to_owned()),
        ]
        .into();
        let mut new = Host {
            kernel: "6.6".into(),
            thp: Some("never".into()),
            cmdline: Some("quiet ro mitigations=off".into()),
            ..base.clone()
        };
        new.mitigations.insert("a".into(), "Mitigation: on".into());
        new.cgroup.cpu_quota = Some(0.5);
        let found = differences(&of(&base), &of(&new));
        let what: Vec<&str> = found.iter().map(|d| d.what.as_str()).collect();
        assert_eq!(
            what,
            [
                "kernel",
                "kernel command line",
                "mitigations",
                "CPU quota",
                "transparent huge pages"
            ]
        );
        assert_eq!(
            (found[1].base.as_str(), found[1].new.as_str()),
            ("–", "mitigations=off")
        );
        assert_eq!(found[2].new, "a: Mitigation: on");
        assert_eq!(
            (found[3].base.as_str(), found[3].new.as_str()),
            ("none", "0.5 CPUs")
        );
    }

    #[test]
    fn every_fact_has_its_place_in_the_order() {
        let mut host = Host {
            kernel: "k".into(),
            os: "o".into(),
            cmdline: Some("c".into()),
            arch: "x".into(),
            memory_bytes: 1,
            page_bytes: 1,
            ..Host::default()
        };
        host.mitigations.insert("m".into(), "v".into());
        host.cpu = fingerpost_record::host::Cpu {
            model: "m".into(),
            count: 1,
            online: 1,
            mhz: Some(1.0),
            smt: Some("on".into()),
            turbo: Some("on".into()),
            caches: [("L1d".to_owned(), 1)].into(),
            microcode: Some("1".into()),
        };
        for field in [
            &mut host.governor,
            &mut host.thp,
            &mut host.idle_memory,
            &mut host.clocksource,
            &mut host.preemption,
            &mut host.virtualization,
            &mut host.container,
            &mut host.libc,
        ] {
            *field = Some("word".into());
        }
        (host.seccomp, host.seccomp_filters, host.hz) = (Some(2), Some(1), Some(250));
        host.compilers.push("cc".into());
        host.task_mitigations.insert(
            "speculative store bypass".into(),
            "thread vulnerable".into(),
        );
        host.cgroup.cpu_weight = Some(1);
        host.cgroup.cpuset = Some("0".into());
        host.cgroup.pids_limit = Some(1);
        host.filesystem.kind = "ext4".into();
        host.filesystem.options = "rw".into();
        let names: Vec<&str> = facts(&host).iter().map(|f| f.0).collect();
        assert_eq!(names, FACTS.map(|(what, _)| what));
    }
}
