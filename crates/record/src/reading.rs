//! Readings of one step: what observers counted and measured, by name, and why the others are not known.
//!
//! The names are listed in `docs/observers.md`. A reading that nobody has is not zero: it neither clears a cause nor
//! convicts one, and [`Readings::why_missing`] says who would have it and what that needs.

use std::collections::BTreeMap;

use crate::findings::Observation;

pub mod missing;
pub mod name;

pub use missing::{Absence, Absent, Missing};
pub use name::Name;

/// How an observer saw. Readings that were had in different ways are not compared: a sampled wait beside a traced one
/// differs by the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Counters of the kernel's, before and after.
    Counters,
    /// Samples of `/proc`.
    Sampling,
    /// The kernel's events by programs in the kernel.
    Programs,
    /// The kernel's events by perf's rings, which lose some while a CPU idles and take more than twice the time of what
    /// they observe (`docs/observers.md`).
    Rings,
    /// Nothing was seen.
    Nothing,
}

impl Way {
    /// The way that an observation's `source` names.
    pub fn of(source: &str) -> Way {
        match source {
            s if s.starts_with("none") => Way::Nothing,
            s if s.starts_with("programs in the kernel") => Way::Programs,
            s if s.starts_with("perf tracepoints") => Way::Rings,
            s if s.contains("sampl") => Way::Sampling,
            _ => Way::Counters,
        }
    }
}

/// Names of which an observer writes down only those that it met: one that is not among them did not happen.
const MET: [(&str, &str); 12] = [
    ("server.call.", ".count"),
    ("server.call.", ".seconds"),
    ("server.call.", ".cpu_seconds"),
    ("background.call.", ".count"),
    ("background.call.", ".seconds"),
    ("client.call.", ".count"),
    ("client.call.", ".seconds"),
    ("other.cpu.", ".seconds"),
    ("other.disk.", ".bytes"),
    ("group.cpu.", ".seconds"),
    ("group.disk.", ".bytes"),
    ("group.memory.", ".bytes"),
];

/// Which observer has a reading: the first that fits the beginning of its name, or, of the first [`OF_A_SIDE`], of what
/// follows the side.
const OBSERVERS: [(&str, &[&str]); 16] = [
    ("syscalls", &["call."]),
    ("delays", &["delay."]),
    (
        "limits",
        &[
            "nice",
            "seccomp.",
            "store_bypass.",
            "indirect_branch.",
            "thp_disabled",
            "cpus_allowed",
            "traced",
        ],
    ),
    ("step", &["step."]),
    ("limits", &["machine.cpus", "cgroup.", "thp."]),
    ("cpu", &["cpu.", "machine."]),
    ("memory", &["memory."]),
    ("mappings", &["mappings."]),
    ("disk", &["disk."]),
    ("network", &["net.", "tcp."]),
    (
        "sockets",
        &["queue.", "accept.", "connections.", "sockets."],
    ),
    ("pressure", &["psi.", "throttle."]),
    ("others", &["other."]),
    ("neighbours", &["group."]),
    ("tracing", &["audit.", "tracing."]),
    (
        "threads",
        &["elapsed.", "runqueue.", "trace.", "process.", ""],
    ),
];
/// So many of them have counters of a side's threads, which are named as the machine's are.
const OF_A_SIDE: usize = 3;

/// Whether an observer writes a reading of this name down only when it meets what it counts.
pub fn is_met(name: &str) -> bool {
    family_of(name).is_some()
}

fn family_of(name: &str) -> Option<&'static (&'static str, &'static str)> {
    MET.iter().find(|(prefix, suffix)| {
        name.len() > prefix.len() + suffix.len()
            && name.starts_with(prefix)
            && name.ends_with(suffix)
    })
}

/// The observer that has a reading of this name.
pub fn observer_of(name: &str) -> &'static str {
    let sided = ["server.", "background.", "client."]
        .iter()
        .find_map(|side| name.strip_prefix(side));
    let (name, observers) = sided.map_or((name, &OBSERVERS[..]), |rest| {
        (rest, &OBSERVERS[..OF_A_SIDE])
    });
    let begins = |(_, beginnings): &&(&str, &[&str])| {
        beginnings
            .iter()
            .any(|beginning| name.starts_with(beginning))
    };
    observers
        .iter()
        .find(begins)
        .map_or("threads", |(observer, _)| observer)
}

/// The readings of one step by all of its observers, whose names do not clash.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    /// Each observer by its name, and how it saw.
    observers: Vec<(String, String)>,
    /// The value, and which observer has it.
    values: BTreeMap<String, (f64, usize)>,
}

impl Readings {
    /// The totals of all observers of one step. Readings that are not numbers are left out.
    pub fn of<'a>(observations: impl IntoIterator<Item = &'a Observation>) -> Readings {
        let mut readings = Readings::default();
        for o in observations {
            let at = readings.observers.len();
            readings
                .observers
                .push((o.observer.clone(), o.source.clone()));
            let numbers = o.totals.iter().filter(|(_, v)| v.is_finite());
            readings
                .values
                .extend(numbers.map(|(k, v)| (k.clone(), (*v, at))));
        }
        readings
    }

    /// Readings of one observer that saw in a way.
    pub fn by(
        observer: &str,
        source: &str,
        totals: impl IntoIterator<Item = (String, f64)>,
    ) -> Readings {
        let observers = vec![(observer.to_owned(), source.to_owned())];
        Readings {
            observers,
            values: totals.into_iter().map(|(k, v)| (k, (v, 0))).collect(),
        }
    }

    /// One reading where it is known.
    pub fn known(&self, name: Name) -> Option<f64> {
        self.known_as(name.as_str())
    }

    /// The same of a name that is made as it is asked for: that of a call, of a side.
    pub fn known_as(&self, name: &str) -> Option<f64> {
        match self.values.get(name) {
            Some((value, _)) => Some(*value),
            // It counts what it meets, it was there, and it did not meet this.
            None => self.family(name).map(|_| 0.0),
        }
    }

    /// The readings between a prefix and a suffix: what `server.call.` and `.count` hold between them, with the value.
    pub fn between<'a>(
        &'a self,
        prefix: &'a str,
        suffix: &'a str,
    ) -> impl Iterator<Item = (&'a str, f64)> {
        self.values
            .iter()
            .filter_map(move |(k, v)| Some((k.strip_prefix(prefix)?.strip_suffix(suffix)?, v.0)))
    }

    /// What stands between a prefix and a suffix in the name of the largest such reading.
    pub fn largest<'a>(&'a self, prefix: &'a str, suffix: &'a str) -> Option<&'a str> {
        self.between(prefix, suffix)
            .filter(|(name, _)| !name.is_empty())
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(name, _)| name)
    }

    /// How a reading was had; nothing where it is not known.
    pub fn way(&self, name: &str) -> Option<Way> {
        let at = self
            .values
            .get(name)
            .map(|v| v.1)
            .or_else(|| self.family(name))?;
        Some(Way::of(&self.observers[at].1))
    }

    /// The observer that met others of the family that a name belongs to.
    fn family(&self, name: &str) -> Option<usize> {
        let (prefix, suffix) = family_of(name)?;
        self.values
            .iter()
            .find(|(k, _)| k.starts_with(prefix) && k.ends_with(suffix))
            .map(|(_, v)| v.1)
    }

    /// Why a reading is not known; nothing where it is.
    pub fn why_missing(&self, name: &str) -> Option<Absent> {
        if self.known_as(name).is_some() {
            return None;
        }
        let observer = observer_of(name);
        let absent = |why, source: Option<&str>| Absent {
            side: None,
            observer: observer.to_owned(),
            why,
            source: source.map(str::to_owned),
        };
        let Some((_, source)) = self.observers.iter().find(|(name, _)| name == observer) else {
            return Some(absent(Absence::NoObserver, None));
        };
        // The privilege or the tracepoints are missing.
        Some(match Way::of(source) {
            Way::Nothing => {
                let why = source.trim_start_matches("none").trim_start_matches(": ");
                absent(Absence::CouldNotSee, Some(why))
            }
            Way::Sampling | Way::Counters if observer == "syscalls" || name.contains(".call.") => {
                absent(Absence::NeedsTracepoints, Some(source))
            }
            // What others do is told or not by whom they belong to and by rights, and not by the kernel's version.
            Way::Counters if ["others", "tracing"].contains(&observer) => {
                absent(Absence::CouldNotSee, Some(source))
            }
            _ => absent(Absence::NotTold, None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(observer: &str, source: &str, totals: &[(&str, f64)]) -> Observation {
        Observation {
            workload: "w".into(),
            params: crate::Params::new(),
            observer: observer.into(),
            source: source.into(),
            totals: totals.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
            ..Observation::default()
        }
    }

    #[test]
    fn what_nobody_read_is_not_zero_and_says_why() {
        let all = [
            observation(
                "threads",
                "/proc sampling (no right to trace)",
                &[("server.cpu.seconds", 2.0)],
            ),
            observation("syscalls", "/proc sampling (no right to trace)", &[]),
            observation("delays", "none: needs CAP_NET_ADMIN", &[]),
            observation(
                "others",
                "/proc counters (the I/O of other users' processes is readable by root only, here of 3)",
                &[],
            ),
            observation(
                "pressure",
                "/proc counters",
                &[("throttle.seconds", f64::NAN)],
            ),
        ];
        let r = Readings::of(&all);
        assert_eq!(
            (
                r.known_as("server.cpu.seconds"),
                r.why_missing("server.cpu.seconds")
            ),
            (Some(2.0), None)
        );
        let why = |name: &str| {
            let absent = r.why_missing(name).unwrap();
            (absent.observer, absent.why, absent.source)
        };
        let told = |observer: &str, why, source: Option<&str>| {
            (observer.to_owned(), why, source.map(str::to_owned))
        };
        assert_eq!(
            why("server.call.read.count"),
            told(
                "syscalls",
                Absence::NeedsTracepoints,
                Some("/proc sampling (no right to trace)")
            )
        );
        assert_eq!(
            why("server.delay.block_io.seconds"),
            told("delays", Absence::CouldNotSee, Some("needs CAP_NET_ADMIN"))
        );
        let (observer, absence, source) = why("other.disk.bytes");
        assert_eq!(
            (observer.as_str(), absence),
            ("others", Absence::CouldNotSee)
        );
        assert!(source.unwrap().contains("readable by root only, here of 3"));
        assert_eq!(
            why("throttle.seconds"),
            told("pressure", Absence::NotTold, None),
            "a value that is no number is none"
        );
        for (name, observer) in [("tcp.delayed_acks", "network"), ("server.nice", "limits")] {
            assert_eq!(why(name), told(observer, Absence::NoObserver, None));
        }
        assert_eq!(
            why("server.faults.minor"),
            told("threads", Absence::NotTold, None)
        );
    }

    #[test]
    fn what_an_observer_of_what_it_meets_did_not_meet_is_none() {
        let r = Readings::of(&[observation(
            "syscalls",
            "perf tracepoints",
            &[("server.call.read.count", 5.0)],
        )]);
        assert_eq!(r.known_as("server.call.fsync.count"), Some(0.0));
        assert_eq!(
            r.known_as("server.call.fsync.seconds"),
            None,
            "no times were read"
        );
        assert_eq!(
            Readings::default().known_as("server.call.fsync.count"),
            None
        );
    }

    #[test]
    fn the_way_is_told_by_the_source() {
        for (source, way) in [
            ("perf tracepoints (this kernel lacks x)", Way::Rings),
            ("programs in the kernel (eBPF)", Way::Programs),
            ("/proc sampling", Way::Sampling),
            ("socket diagnosis, sampled", Way::Sampling),
            ("/proc counters", Way::Counters),
            ("none: no right", Way::Nothing),
        ] {
            assert_eq!(Way::of(source), way, "{source}");
        }
        let r = Readings::of(&[observation(
            "cpu",
            "/proc counters",
            &[("cpu.idle.seconds", 1.0)],
        )]);
        assert_eq!(
            (r.way("cpu.idle.seconds"), r.way("cpu.user.seconds")),
            (Some(Way::Counters), None)
        );
    }
}
