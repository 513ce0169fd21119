//! Noisy neighbours: what requests waited for that others had, and what other control groups used meanwhile.

use fingerpost_diagnose::places::{Place, places};
use fingerpost_record::{Observation, Paths, Readings, Unit};

use crate::grid::{Grid, Line};
use crate::style::Tone;
use crate::words::{clean, percent};

/// Groups that are shown.
const SHOWN: usize = 4;
/// Less than this is an idle group: CPUs, bytes a second, bytes.
const IDLE_CPUS: f64 = 0.02;
const IDLE_DISK: f64 = 256e3;
const IDLE_MEMORY: f64 = 16e6;

/// What requests waited for that others may have had, as shares of their time.
struct Waited {
    cpu: f64,
    disk: f64,
    memory: f64,
}

impl Waited {
    fn of(paths: &Paths) -> Waited {
        let found = places(paths);
        let share = |wanted: &[Place]| {
            wanted
                .iter()
                .filter_map(|p| found.get(p))
                .fold(0.0, |sum, place| sum + place.share.share)
        };
        Waited {
            cpu: share(&[Place::CpuOther]),
            disk: share(&[Place::DiskBehindOthers, Place::DiskBesideOthers]),
            memory: share(&[Place::Memory]),
        }
    }

    fn words(&self) -> String {
        format!(
            "of its time a request waited {} for a CPU that others had, {} for a disk that others used, {} for memory",
            percent(self.cpu),
            percent(self.disk),
            percent(self.memory)
        )
    }
}

/// What control groups used, a value for each resource that the kernel tells of them.
type Used = [Option<f64>; 3];
/// Names of the totals: before and after a group's path, and what they are in all.
const TOTALS: [(&str, &str, &str); 3] = [
    ("group.cpu.", ".seconds", "group.cpu.seconds"),
    ("group.disk.", ".bytes", "group.disk.bytes"),
    ("group.memory.", ".bytes", "group.memory.bytes"),
];

/// What other groups used a second (of memory: took more), in all and each.
fn used(totals: &Readings) -> Option<(Used, Vec<(String, Used)>)> {
    let elapsed = totals
        .known(fingerpost_record::reading::name::ELAPSED_SECONDS)
        .filter(|s| *s > 0.0)?;
    let by = [elapsed, elapsed, 1.0];
    let mut all: Used = [None; 3];
    let mut groups: Vec<(String, Used)> = Vec::new();
    for (kind, (prefix, suffix, sum)) in TOTALS.into_iter().enumerate() {
        all[kind] = totals.known_as(sum).map(|value| value / by[kind]);
        for (path, value) in totals.between(prefix, suffix) {
            let at = groups.iter().position(|g| g.0 == path).unwrap_or_else(|| {
                groups.push((path.to_owned(), [None; 3]));
                groups.len() - 1
            });
            groups[at].1[kind] = Some(value / by[kind]);
        }
    }
    all.iter().any(Option::is_some).then_some((all, groups))
}

/// Uses in words; memory only where somebody waited for it, for caches grow all the time.
fn words(used: &Used, waited: &Waited) -> String {
    let [cpus, disk, memory] = *used;
    let parts = [
        cpus.map(|n| format!("{n:.2} CPUs")),
        disk.map(|n| format!("{} of disk I/O a second", Unit::Bytes.format(n))),
        memory
            .filter(|_| waited.memory > 0.0)
            .map(|n| format!("{} more memory", Unit::Bytes.format(n))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn is_busy(used: &Used, waited: &Waited) -> bool {
    let over = |value: Option<f64>, idle: f64| value.is_some_and(|v| v >= idle);
    over(used[0], IDLE_CPUS)
        || over(used[1], IDLE_DISK)
        || waited.memory > 0.0 && over(used[2], IDLE_MEMORY)
}

/// The part of the screen that tells of them.
pub fn grid(paths: &Paths, observations: &[Observation]) -> Grid {
    let mut grid = Grid::default();
    let Some(observation) = observations.iter().find(|o| o.observer == "neighbours") else {
        return grid;
    };
    let waited = Waited::of(paths);
    let mut line = |label: &str, text: String, tone| {
        grid.lines
            .push(Line::Labelled(label.into(), clean(&text), tone))
    };
    let Some((all, mut groups)) = used(&Readings::of(observations)) else {
        let why = observation
            .source
            .strip_prefix("none: ")
            .unwrap_or("the kernel tells no other control groups apart here");
        line(
            "neighbours",
            format!("{}; {why}", waited.words()),
            Tone::Doubtful,
        );
        return grid;
    };
    groups.retain(|(_, used)| is_busy(used, &waited));
    groups.sort_by(|a, b| {
        b.1[0]
            .unwrap_or(0.0)
            .total_cmp(&a.1[0].unwrap_or(0.0))
            .then(b.1[1].unwrap_or(0.0).total_cmp(&a.1[1].unwrap_or(0.0)))
    });
    let told = words(&all, &waited);
    // Many that use little each are not idle: anybody may take work apart into a thousand groups.
    let idle = groups.is_empty() && !is_busy(&all, &waited);
    let verdict = match (groups.is_empty(), told.is_empty()) {
        (_, true) => String::new(),
        (true, false) if idle => format!("; other control groups were idle: {told}"),
        (true, false) => format!("; other control groups used {told}, none of them much by itself"),
        (false, false) => format!("; other control groups used {told}"),
    };
    line(
        "neighbours",
        waited.words() + &verdict,
        if idle { Tone::Faint } else { Tone::Plain },
    );
    for (path, used) in groups.into_iter().take(SHOWN) {
        line(
            "          ",
            format!("{path}: {}", words(&used, &waited)),
            Tone::Plain,
        );
    }
    grid
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Params;
    use fingerpost_record::fixture::followed;

    use super::*;

    fn told(source: &str, totals: &[(&str, f64)]) -> String {
        let observation = |observer: &str, source: &str, totals: &[(&str, f64)]| Observation {
            workload: "service".into(),
            params: Params::new(),
            observer: observer.into(),
            source: source.into(),
            totals: totals.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
            ..Observation::default()
        };
        let seen = [
            observation("cpu", "/proc counters", &[("elapsed.seconds", 10.0)]),
            observation("neighbours", source, totals),
        ];
        grid(&followed::slow_locks().paths[0], &seen).render(&crate::style::Style::default())
    }

    #[test]
    fn a_busy_group_is_named_and_idle_ones_are_ruled_out() {
        let busy = told(
            "control groups' counters",
            &[
                ("group.cpu.seconds", 9.0),
                ("group.cpu./backup.seconds", 9.0),
                ("group.disk.bytes", 5e8),
                ("group.disk./backup.bytes", 5e8),
            ],
        );
        assert!(
            busy.contains("/backup: 0.90 CPUs") && busy.contains("a request waited"),
            "{busy}"
        );
        let idle = told(
            "control groups' counters",
            &[
                ("group.cpu.seconds", 0.01),
                ("group.cpu./backup.seconds", 0.01),
                ("group.disk.bytes", 0.0),
            ],
        );
        assert!(
            idle.contains("were idle") && !idle.contains("/backup"),
            "{idle}"
        );
    }

    #[test]
    fn work_that_is_spread_over_many_groups_is_not_idle() {
        let mut totals = vec![("group.cpu.seconds".to_owned(), 9.0)];
        totals.extend((0..5).map(|n| (format!("group.cpu./user.slice/{n}.seconds"), 0.09)));
        let totals: Vec<(&str, f64)> = totals.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        let spread = told("control groups' counters", &totals);
        let spread = spread.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            spread.contains("used 0.90 CPUs, none of them much by itself")
                && !spread.contains("idle"),
            "{spread}"
        );
    }

    #[test]
    fn inside_a_container_it_is_said_that_the_rest_cannot_be_told() {
        let inside = told(
            "none: this is inside a container, from which the host is not seen",
            &[],
        );
        assert!(
            inside.contains("inside a container") && !inside.contains("idle"),
            "{inside}"
        );
        let apart = told(
            "control groups' counters",
            &[
                ("group.memory.bytes", 5e9),
                ("group.memory./backup.bytes", 5e9),
            ],
        );
        assert!(
            !apart.contains("CPUs") && !apart.contains("-0") && !apart.contains("backup"),
            "what is not told is not zero: {apart}"
        );
        assert_eq!(grid(&Paths::default(), &[]).lines.len(), 0);
    }
}
