//! What a probe says of itself.

use fingerpost_measure::Center;
use fingerpost_record::{Better, Params, Unit};

use crate::session::{Session, Stop};

/// What an operation does while it is timed, which decides how its samples become a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// It only uses the CPU: noise only ever makes it slower, so the good tenth of the samples is taken.
    Computes,
    /// It blocks, wakes somebody, or creates a process: noise goes both ways, so the median is taken.
    Blocks,
    /// Its value sets figures against each other, as a ratio: it errs to both sides, so medians are taken throughout.
    Relates,
}

/// The descriptor of a probe: what it is, what exactly it times, and the function that runs it.
pub struct Probe {
    /// Name, such as `syscall.null`. Fixed: other programs read it.
    pub name: &'static str,
    /// Version of the definition. Raise it with any change that moves the figure; rows of different versions are never compared.
    pub version: u32,
    /// What lmbench calls the same operation, where it has it.
    pub lmbench: Option<&'static str>,
    /// One line for `list`.
    pub summary: &'static str,
    /// What exactly lies between the two readings of the clock.
    pub timed: &'static str,
    /// How the figure can mislead; empty when nothing special is known.
    pub pitfalls: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// Which direction is the good one.
    pub better: Better,
    /// What the operation does while it is timed.
    pub nature: Nature,
    /// CPUs that it needs whatever its parameters. (`placement=cross` needs two in any case.)
    pub cpus: usize,
    /// The lab that this probe belongs to. A probe of a lab runs when the lab or the probe is named, else only if this is `None`.
    pub lab: Option<&'static str>,
    /// The parameters of its rows.
    pub variants: fn() -> Vec<Params>,
    /// Runs it in the probe process.
    pub run: fn(&mut Session) -> Result<(), Stop>,
}

/// What most probes share: nanoseconds of an operation that only computes, on one CPU, one row, nothing special known. A descriptor
/// fills in the rest: `Probe { name: …, run: …, ..LATENCY }`.
pub const LATENCY: Probe = Probe {
    name: "",
    version: 1,
    lmbench: None,
    summary: "",
    timed: "",
    pitfalls: "",
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    nature: Nature::Computes,
    cpus: 1,
    lab: None,
    variants: plain,
    run: |_| Err(Stop::Fail(String::new())),
};

impl Probe {
    /// How samples of one process become one value, and the processes' values the figure.
    pub fn center(&self) -> Center {
        let within = if self.nature == Nature::Computes { Center::good_tenth(self.better) } else { Center::MEDIAN };
        match self.nature {
            // One row of a laboratory is one point of a curve that is fitted through all.
            _ if self.lab.is_some() => within,
            Nature::Relates => within,
            Nature::Computes | Nature::Blocks => within.across_good_quarter(self.better),
        }
    }

    /// CPUs that a row needs.
    pub fn cpus_needed(&self, params: &Params) -> usize {
        if params.text("placement") == Some("cross") { self.cpus.max(2) } else { self.cpus }
    }
}

/// The variants of a probe without parameters: one row.
pub fn plain() -> Vec<Params> {
    vec![Params::new()]
}

/// Both placements of a probe of two processes: on one CPU, and on two.
pub fn placements() -> Vec<Params> {
    vec![Params::new().with("placement", "same"), Params::new().with("placement", "cross")]
}
