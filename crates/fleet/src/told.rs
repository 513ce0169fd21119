//! What says that a host is not like its peers, as facts, and their words.

use fingerpost_record::Evidence;
use fingerpost_report::evidence::{Whose, words};
use serde::Serialize;

/// What says that a host is not like its peers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// Something of its description is not theirs.
    Differs {
        /// What it is.
        what: What,
        /// How it is here.
        here: Value,
        /// How it is on its peers.
        peers: Value,
    },
    /// Nearly all of them measured a row that it could not measure.
    NotMeasured {
        /// The row.
        row: String,
        /// Why.
        reason: String,
    },
    /// What comparing it with them found.
    Compared(Box<Evidence>),
}

/// Of a host's description.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// The CPU quota of its control group, in CPUs.
    CpuQuota,
    /// CPUs that it may use.
    CpusAllowed,
    /// Runnable processes beside the run.
    Runnable,
    /// Seccomp filters.
    SeccompFilters,
    /// The setting of transparent huge pages.
    HugePages,
    /// The frequency governor.
    Governor,
    /// The mitigations that differ.
    Mitigations,
    /// What the comparison of two hosts calls so.
    Described(String),
}

/// How something is on a host.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A setting.
    Text(String),
    /// There is none.
    None,
}

impl Value {
    fn words(&self, of: &str) -> String {
        match self {
            Value::Number(n) => format!("{n}{of}"),
            Value::Text(text) => fingerpost_record::text::clean_short(text, 200),
            Value::None => "none".into(),
        }
    }
}

impl Told {
    /// The same as a sentence.
    pub fn words(&self) -> String {
        match self {
            Told::Differs { what, here, peers } => {
                let (name, of) = match what {
                    What::CpuQuota => ("CPU quota", " CPUs"),
                    What::CpusAllowed => ("CPUs allowed", ""),
                    What::Runnable => ("runnable processes beside the run", ""),
                    What::SeccompFilters => ("seccomp filters", ""),
                    What::HugePages => ("transparent huge pages", ""),
                    What::Governor => ("frequency governor", ""),
                    What::Mitigations => ("mitigations", ""),
                    What::Described(what) => (what.as_str(), ""),
                };
                let (here, peers) = (here.words(of), peers.words(of));
                format!("{name}: {here} here, {peers} on its peers")
            }
            Told::NotMeasured { row, reason } => {
                format!("{row} could not be measured here, and was on its peers: {reason}")
            }
            Told::Compared(fact) => words(fact, Whose::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_said_with_how_it_is_here_and_there() {
        let quota = |peers| Told::Differs {
            what: What::CpuQuota,
            here: Value::Number(0.5),
            peers,
        };
        assert_eq!(
            quota(Value::None).words(),
            "CPU quota: 0.5 CPUs here, none on its peers"
        );
        assert_eq!(
            quota(Value::Number(2.0)).words(),
            "CPU quota: 0.5 CPUs here, 2 CPUs on its peers"
        );
    }
}
