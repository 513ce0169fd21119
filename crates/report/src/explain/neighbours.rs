//! Noisy neighbours: what requests waited for that others had, and what other control groups used meanwhile.

use fingerpost_diagnose::places::{Place, places};
use fingerpost_record::{Observation, Paths, Readings, Unit};

use super::{clean, percent};
use crate::grid::{Grid, Line};
use crate::style::Tone;

/// Groups that are shown.
const SHOWN: usize = 4;
/// Less than this is an idle group: CPUs, bytes a second, bytes.
const IDLE_CPUS: f64 = 0.02;
const IDLE_DISK: f64 = 256e3;
const IDLE_MEMORY: f64 = 16e6;

/// What other groups used a second, and which of them are not idle.
struct Others {
    cpus: f64,
    disk: f64,
    memory: f64,
    busy: Vec<(String, [f64; 3])>,
}

impl Others {
    /// As the record has them; nothing where nobody looked.
    fn of(totals: &Readings) -> Option<Others> {
        let elapsed = totals.known("elapsed.seconds").filter(|s| *s > 0.0)?;
        let all = |name: &str| totals.known(name);
        let mut busy: Vec<(String, [f64; 3])> = Vec::new();
        let kinds = [("group.cpu.", ".seconds", elapsed), ("group.disk.", ".bytes", elapsed), ("group.memory.", ".bytes", 1.0)];
        for (kind, (prefix, suffix, by)) in kinds.into_iter().enumerate() {
            for (path, value) in totals.between(prefix, suffix) {
                let at = busy.iter().position(|b| b.0 == path).unwrap_or_else(|| {
                    busy.push((path.to_owned(), [0.0; 3]));
                    busy.len() - 1
                });
                busy[at].1[kind] = value / by;
            }
        }
        busy.retain(|(_, [cpus, disk, memory])| *cpus >= IDLE_CPUS || *disk >= IDLE_DISK || *memory >= IDLE_MEMORY);
        busy.sort_by(|a, b| b.1[0].total_cmp(&a.1[0]).then(b.1[1].total_cmp(&a.1[1])));
        let (cpus, disk) = (all("group.cpu.seconds")? / elapsed, all("group.disk.bytes").unwrap_or(0.0) / elapsed);
        Some(Others { cpus, disk, memory: all("group.memory.bytes").unwrap_or(0.0), busy })
    }
}

/// What requests waited for that others had, in words.
fn waited(paths: &Paths) -> String {
    let found = places(paths);
    let share = |wanted: &[Place]| percent(wanted.iter().filter_map(|p| found.get(p)).map(|sum| sum.share.share).sum());
    format!(
        "of its time a request waited {} for a CPU that others had, {} for a disk that others used, {} for memory",
        share(&[Place::CpuOther]),
        share(&[Place::DiskBehindOthers, Place::DiskBesideOthers]),
        share(&[Place::Memory])
    )
}

/// The part of the screen that tells of them.
pub fn grid(paths: &Paths, observations: &[Observation]) -> Grid {
    let Some(observation) = observations.iter().find(|o| o.observer == "neighbours") else { return Grid::default() };
    let mut grid = Grid::default();
    let Some(others) = Others::of(&Readings::of(observations)) else {
        let why = observation.source.strip_prefix("none: ").unwrap_or("other groups were not read");
        grid.lines.push(Line::Labelled("neighbours".into(), clean(&format!("{}; {why}", waited(paths))), Tone::Doubtful));
        return grid;
    };
    let bytes = |n: f64| Unit::Bytes.format(n);
    let used =
        |cpus: f64, disk: f64, memory: f64| format!("{cpus:.2} CPUs, {} of disk I/O a second, {} more memory", bytes(disk), bytes(memory));
    let verdict = if others.busy.is_empty() { "other control groups were idle: " } else { "other control groups used " };
    let text = format!("{}; {verdict}{}", waited(paths), used(others.cpus, others.disk, others.memory));
    grid.lines.push(Line::Labelled("neighbours".into(), clean(&text), if others.busy.is_empty() { Tone::Faint } else { Tone::Plain }));
    for (path, [cpus, disk, memory]) in others.busy.into_iter().take(SHOWN) {
        grid.lines.push(Line::Labelled("          ".into(), clean(&format!("{path}: {}", used(cpus, disk, memory))), Tone::Plain));
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
            series: Vec::new(),
            totals: totals.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
            self_cost: 0.0,
            lost: 0,
        };
        let seen = [observation("cpu", "/proc counters", &[("elapsed.seconds", 10.0)]), observation("neighbours", source, totals)];
        grid(&followed::slow_locks().paths[0], &seen).render(&crate::style::Style::default())
    }

    #[test]
    fn a_busy_group_is_named_and_idle_ones_are_cleared() {
        let busy = told(
            "control groups' counters",
            &[("group.cpu.seconds", 9.0), ("group.cpu./backup.seconds", 9.0), ("group.disk.bytes", 5e8), ("group.disk./backup.bytes", 5e8)],
        );
        assert!(busy.contains("/backup: 0.90 CPUs") && busy.contains("a request waited"), "{busy}");
        let idle = told(
            "control groups' counters",
            &[("group.cpu.seconds", 0.01), ("group.cpu./backup.seconds", 0.01), ("group.disk.bytes", 0.0)],
        );
        assert!(idle.contains("were idle") && !idle.contains("/backup"), "{idle}");
    }

    #[test]
    fn inside_a_container_it_is_said_that_the_rest_cannot_be_told() {
        let inside = told("none: this is inside a container, from which the host is not seen", &[]);
        assert!(inside.contains("inside a container") && !inside.contains("idle"), "{inside}");
        assert_eq!(grid(&Paths::default(), &[]).lines.len(), 0);
    }
}
