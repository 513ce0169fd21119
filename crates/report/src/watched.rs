//! What the author of a published system watched besides what was measured: header blocks of top, counters, remarks
//! with a figure.
//!
//! Of runs of our own the observers' totals are explained instead (`explain`); here is nothing to explain, only to
//! show.

use fingerpost_record::text::{clean, counted};
use fingerpost_record::unit::significant;
use fingerpost_record::{Observation, Profile, Run};

/// One observation as lines of text, cleaned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// What was watched, and by what means.
    pub title: String,
    /// Names and figures with their units.
    pub rows: Vec<(String, String)>,
}

/// A clock's time, in seconds since midnight.
const TIME_OF_DAY: &str = "clock.time_of_day.seconds";

/// The totals of a header block of `top`, in its own order.
const TOP: &str = "processes.total processes.running processes.sleeping threads clock.time_of_day.seconds load.1min \
    load.5min load.15min \
    cpu.user.percent cpu.system.percent cpu.idle.percent sharedlibs sharedlibs.code.mib sharedlibs.data.mib \
    sharedlibs.linkedit.mib memregions memregions.resident.mib memregions.private.mib memregions.shared.mib \
    memory.wired.mib \
    memory.active.mib memory.inactive.mib memory.used.mib memory.free.mib vm.mib vm.extra.mib pageins \
    pageins.since_last \
    pageouts pageouts.since_last";

/// Totals whose names do not say by themselves what they are.
const NAMES: [(&str, &str); 28] = [
    ("boot.pageins.about", "page-ins while booting, about"),
    ("boot.pageins.high", "page-ins while booting, at most"),
    ("boot.pageins.low", "page-ins while booting, at least"),
    ("cpu.count", "CPUs of the machine"),
    ("cpu.used.high", "CPU use, at most"),
    ("cpu.used.low", "CPU use, at least"),
    ("disk.written.at.queries_s", "queries when most was written"),
    ("disk.written.bytes_s", "written to disk, at most"),
    ("drive.primary.gb", "the system's drive"),
    ("drive.second.gb", "the second drive"),
    ("drives.rpm", "both drives turn at"),
    ("net.in.mbit_s", "received, on average"),
    ("net.link.mbit_s", "the network's link"),
    ("net.out.mbit_s", "sent, on average"),
    ("net.out.peak.below.mbit_s", "sent, peak: well below"),
    ("net.out.peak.mbit_s", "sent, peak"),
    (
        "net.out.peak.from.queries_s",
        "queries when most was sent, from",
    ),
    (
        "net.out.peak.to.queries_s",
        "queries when most was sent, to",
    ),
    (
        "import.times_longer.most",
        "import of a dump takes longer, up to",
    ),
    ("pageins.since_last", "page-ins since the last sample"),
    ("pageouts.since_last", "page-outs since the last sample"),
    (
        "query_cache.client_machines.most",
        "client machines, at most",
    ),
    (
        "query_cache.hits.most.percent",
        "answered from the query cache, up to",
    ),
    (
        "query_cache.per_client_machine.queries_s",
        "one client machine asks, at most",
    ),
    (
        "skip_locking.gain.high.percent",
        "skip-locking gains, at most",
    ),
    (
        "skip_locking.gain.low.percent",
        "skip-locking gains, at least",
    ),
    ("sequences", "sequences that were measured"),
    ("swap.partition.mib", "the swap partition"),
];

/// How the name of a total ends, and the unit that this means.
const UNITS: [(&str, &str); 10] = [
    ("percent", " %"),
    ("mib", " MiB"),
    ("gb", " GB"),
    ("rpm", " rpm"),
    ("mbit_s", " Mbit/s"),
    ("bytes_s", " B/s"),
    ("queries_s", " queries/s"),
    ("cpu.used.high", " CPUs"),
    ("cpu.used.low", " CPUs"),
    ("times_longer.most", " times"),
];

/// The observations of a published run; none of another. The instruction mix stands in the table of floating point.
pub fn of(run: &Run) -> Vec<Watched> {
    if run.profile != Profile::Imported {
        return Vec::new();
    }
    run.observations
        .iter()
        .filter(|o| o.observer != "instruction mix" && !o.totals.is_empty())
        .map(one)
        .collect()
}

fn one(o: &Observation) -> Watched {
    let title = clean(&format!("Watched: {}, by {}", o.workload, o.observer)).into_owned();
    let mut totals: Vec<(&String, &f64)> = o.totals.iter().collect();
    // Those of another tool stay in the order of their names.
    totals.sort_by_key(|(name, _)| {
        TOP.split(' ')
            .position(|of_top| of_top == *name)
            .unwrap_or(TOP.len())
    });
    Watched {
        title,
        rows: totals
            .into_iter()
            .map(|(name, value)| row(name, *value))
            .collect(),
    }
}

fn row(name: &str, value: f64) -> (String, String) {
    let mut words: Vec<&str> = name.split(['.', '_']).collect();
    let unit = UNITS
        .iter()
        .find(|(end, _)| name.ends_with(end))
        .map_or("", |(end, unit)| {
            // The unit is behind the figure.
            words.truncate(words.len() - end.split('_').count());
            unit
        });
    if name == TIME_OF_DAY && (0.0..86_400.0).contains(&value) {
        let seconds = value as u64;
        return (
            "time of day".to_owned(),
            format!(
                "{:02}:{:02}:{:02}",
                seconds / 3600,
                seconds / 60 % 60,
                seconds % 60
            ),
        );
    }
    let figure = if value.fract() == 0.0 && value.abs() < 1e9 {
        format!("{value:.0}")
    } else {
        shortest(value)
    };
    let told = NAMES
        .iter()
        .find(|(total, _)| *total == name)
        .map(|(_, told)| (*told).to_owned());
    let told = told
        .or_else(|| clients(name))
        .unwrap_or_else(|| words.join(" "));
    (clean(&told).into_owned(), format!("{figure}{unit}"))
}

/// `clients05` is a step of so many clients.
fn clients(name: &str) -> Option<String> {
    let number: u32 = name
        .strip_prefix("clients")?
        .split('.')
        .next()?
        .parse()
        .ok()?;
    Some(counted(number, "client"))
}

/// As few digits as the source printed.
fn shortest(value: f64) -> String {
    if (value * 100.0 - (value * 100.0).round()).abs() < 1e-9 {
        format!("{}", (value * 100.0).round() / 100.0)
    } else {
        significant(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_compare::references;

    #[test]
    fn the_block_of_top_is_shown_as_printed() {
        let run = references::load("launch-10.0.4").unwrap();
        let watched = of(&run);
        let find = |name: &str| {
            &watched[0]
                .rows
                .iter()
                .find(|r| r.0 == name)
                .unwrap_or_else(|| panic!("{name}: {watched:?}"))
                .1
        };
        assert!(watched[0].title.contains("top"));
        assert_eq!(
            [
                find("pageins"),
                find("cpu idle"),
                find("load 15min"),
                find("sharedlibs data")
            ],
            ["9078", "75.7 %", "0.3", "1.16 MiB"]
        );
        assert_eq!(
            [find("time of day"), find("page-ins since the last sample")],
            ["05:53:45", "0"]
        );
        assert_eq!(watched[0].rows.len(), run.observations[0].totals.len());
        let names: Vec<&str> = watched[0].rows.iter().map(|r| r.0.as_str()).collect();
        assert_eq!(
            names[..5],
            [
                "processes total",
                "processes running",
                "processes sleeping",
                "threads",
                "time of day"
            ]
        );
        assert_eq!(
            names[names.len() - 2..],
            ["pageouts", "page-outs since the last sample"]
        );
        for (name, figure) in [
            ("the system's drive", "30 GB"),
            ("the second drive", "20 GB"),
            ("both drives turn at", "7200 rpm"),
        ] {
            assert!(
                watched[1]
                    .rows
                    .iter()
                    .any(|r| (r.0.as_str(), r.1.as_str()) == (name, figure)),
                "{name}: {watched:?}"
            );
        }
    }

    #[test]
    fn the_cpu_use_and_the_remarks_are_shown() {
        let watched = of(&references::load("g5-2.7-darwin").unwrap());
        let all: Vec<&(String, String)> = watched.iter().flat_map(|w| &w.rows).collect();
        for (name, figure) in [
            ("CPU use, at least", "1.65 CPUs"),
            ("written to disk, at most", "23000 B/s"),
            ("import of a dump takes longer, up to", "8 times"),
            ("50 clients", "25 %"),
        ] {
            assert!(
                all.iter().any(|r| r.0 == name && r.1 == figure),
                "{name} in {all:?}"
            );
        }
        assert!(of(&fingerpost_record::fixture::run()).is_empty());
    }
}
