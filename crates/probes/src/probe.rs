//! What a probe says of itself.

use fingerpost_measure::Center;
pub use fingerpost_record::descriptor::{Exercises, HostDependence, table};
use fingerpost_record::descriptor::{OWN_CACHES, Table};
use fingerpost_record::{Better, Param, Params, Unit};

use crate::session::{Session, Stop};

/// What an operation does while it is timed, which decides how its samples become a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// It only uses the CPU: noise only ever makes it slower, so the good tenth of the samples is taken.
    Computes,
    /// It blocks, wakes somebody, or creates a process: noise goes both ways, so the median is taken.
    Blocks,
    /// Its value sets figures against each other, as a ratio: it errs to both sides, so medians are taken throughout,
    /// and of all processes.
    Relates,
    /// Several CPUs want the same thing all the time. One that is slowed leaves it to the others, so that through a
    /// neighbour contention costs as easily less as more: the same medians.
    Contends,
    /// It waits for memory that other cores and guests use as well, most of whom only make it slower: the good tenth of
    /// samples and of all processes.
    Streams,
}

/// The descriptor of a probe: what it is, what exactly it times, and the function that runs it.
pub struct Probe {
    /// Name, such as `syscall.null`. Fixed: other programs read it.
    pub name: &'static str,
    /// Version of the definition: what is timed, and how a process's samples become its value. Raise it with any change
    /// that moves that value; rows of different versions are never compared. How figures are made of processes is the
    /// same for all, and no part of it.
    pub version: u32,
    /// The table that its rows are shown in, behind those of the probes before it in the registry.
    pub table: &'static Table,
    /// The part of the system that its time comes from: when that part is slower, so is it. None where it is a
    /// program's own.
    pub exercises: Option<Exercises>,
    /// How many times one operation enters the kernel, where its definition says so.
    pub entries: Option<f64>,
    /// Whether it waits for a device, so that its time does not follow the CPU's.
    pub waits_for_device: bool,
    /// What of its time a virtual machine's host decides: of memory, only rows that are about more of it than a core's
    /// own caches hold.
    pub depends_on_host: Option<HostDependence>,
    /// What lmbench calls the same operation, where it has it, with a parameter in the place of each `{parameter}`
    /// ([`fingerpost_record::descriptor::lmbench::name`]).
    pub lmbench: Option<&'static str>,
    /// System calls, by their names in the kernel, that an operation stands for where a program's calls are counted. Of
    /// several probes of a call the first measured one is taken.
    pub calls: &'static [&'static str],
    /// One line for `list`.
    pub summary: &'static str,
    /// What exactly lies between the two readings of the clock.
    pub timed: &'static str,
    /// How the figure can mislead; empty when nothing special is known.
    pub pitfalls: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// What the figure of any of its rows lies within on any machine, in [`Probe::unit`]: one beyond is the probe's
    /// error, which did less than it says, or more.
    pub bounds: [f64; 2],
    /// Which direction is the good one.
    pub better: Better,
    /// What the operation does while it is timed. A row may differ: see [`Probe::nature_of`].
    pub nature: Nature,
    /// CPUs that it needs whatever its parameters. (`placement=cross` needs two in any case.)
    pub cpus: usize,
    /// The lab that this probe belongs to. A probe of a lab runs when the lab or the probe is named, else only if this
    /// is `None`.
    pub lab: Option<&'static str>,
    /// The parameters of its rows.
    pub variants: fn() -> Vec<Params>,
    /// What it takes besides its parameters: key, default, a line of help.
    pub settings: &'static [[&'static str; 3]],
    /// Runs it in the probe process.
    pub run: fn(&mut Session) -> Result<(), Stop>,
}

/// What most probes share: nanoseconds of an operation that only computes, on one CPU, one row, nothing special known.
/// A descriptor fills in the rest: `Probe { name: …, run: …, ..LATENCY }`.
pub const LATENCY: Probe = Probe {
    name: "",
    version: 1,
    table: &table::OTHER,
    exercises: None,
    entries: None,
    waits_for_device: false,
    depends_on_host: None,
    lmbench: None,
    calls: &[],
    summary: "",
    timed: "",
    pitfalls: "",
    unit: Unit::Nanoseconds,
    bounds: [0.0, 0.0],
    better: Better::Lower,
    nature: Nature::Computes,
    cpus: 1,
    lab: None,
    variants: plain,
    settings: &[],
    run: |_| Err(Stop::Fail(String::new())),
};

/// The same, of operations of this part of the system, whose rows are shown in this table.
pub const fn latency(table: &'static Table, exercises: Exercises) -> Probe {
    Probe {
        table,
        exercises: Some(exercises),
        ..LATENCY
    }
}

impl Probe {
    /// What the operation does with these parameters.
    pub fn nature_of(&self, params: &Params) -> Nature {
        match self.nature {
            Nature::Contends if params.int("threads") == Some(1) => Nature::Computes,
            Nature::Contends if params.text("placement") == Some("same") => Nature::Blocks,
            Nature::Streams if params.int("size").is_none_or(|size| size <= OWN_CACHES) => {
                Nature::Computes
            }
            nature => nature,
        }
    }

    /// How samples of one process become one value, and the processes' values the figure.
    pub fn center(&self, params: &Params) -> Center {
        let nature = self.nature_of(params);
        let within = if matches!(nature, Nature::Computes | Nature::Streams) {
            Center::good_tenth(self.better)
        } else {
            Center::MEDIAN
        };
        match nature {
            // One row of a laboratory is one point of a curve that is fitted through all.
            _ if self.lab.is_some() => within,
            Nature::Relates | Nature::Contends => within.of_all(),
            Nature::Streams => within.across_good_tenth_of_all(self.better),
            Nature::Computes | Nature::Blocks => within.across_good_quarter(self.better),
        }
    }

    /// CPUs that a row needs.
    pub fn cpus_needed(&self, params: &Params) -> usize {
        if params.text("placement") == Some("cross") {
            self.cpus.max(2)
        } else {
            self.cpus
        }
    }
}

/// The variants of a probe without parameters: one row.
pub fn plain() -> Vec<Params> {
    vec![Params::new()]
}

/// One row for each of these values of a parameter.
pub fn rows(name: &str, values: impl IntoIterator<Item: Into<Param>>) -> Vec<Params> {
    values
        .into_iter()
        .map(|value| Params::new().with(name, value))
        .collect()
}

/// Both placements of a probe of two processes: on one CPU, and on two.
pub fn placements() -> Vec<Params> {
    rows("placement", ["same", "cross"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nature(name: &str, params: Params) -> Nature {
        crate::find(name).unwrap().nature_of(&params)
    }

    #[test]
    fn what_a_row_does_depends_on_its_parameters() {
        let threads = |n: i64| Params::new().with("threads", n);
        assert_eq!(
            nature("sync.rwlock", threads(1)),
            Nature::Computes,
            "nobody to contend with"
        );
        assert_eq!(nature("sync.rwlock", threads(2)), Nature::Contends);
        assert_eq!(
            nature("ipc.shm", Params::new().with("placement", "cross")),
            Nature::Contends
        );
        assert_eq!(
            nature("ipc.shm", Params::new().with("placement", "same")),
            Nature::Blocks,
            "one yields to the other"
        );
        assert_eq!(
            nature("memory.read", Params::new().with("size", 256 << 10)),
            Nature::Computes
        );
        assert_eq!(
            nature("memory.read", Params::new().with("size", 64 << 20)),
            Nature::Streams
        );
        assert_eq!(
            nature("ipc.pipe", Params::new().with("placement", "cross")),
            Nature::Blocks
        );
    }

    #[test]
    fn where_a_neighbour_can_help_all_processes_count() {
        let center = |name: &str, params: Params| crate::find(name).unwrap().center(&params);
        let contended = center("sync.mutex_contended", Params::new().with("threads", 2));
        assert_eq!(
            (contended.within, contended.across, contended.across_slowed),
            (0.5, 0.5, None)
        );
        let stream = center("memory.copy", Params::new().with("size", 64 << 20));
        assert_eq!(
            (stream.within, stream.across, stream.across_slowed),
            (0.9, 0.9, None)
        );
        let call = center("syscall.null", Params::new());
        assert_eq!(
            (call.within, call.across, call.across_slowed),
            (0.1, 0.25, Some(0.1))
        );
        let of_lab = crate::lab_rows()
            .find(|p| p.name == "memory.read")
            .unwrap()
            .center(&Params::new().with("size", 64 << 20));
        assert_eq!(
            (of_lab.within, of_lab.across, of_lab.across_slowed),
            (0.9, 0.5, Some(0.5)),
            "a point of a curve"
        );
    }
}
