//! What a plan is made of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fingerpost_labs::Lab;
use fingerpost_probes::Probe;
use fingerpost_probes::flops::compilers::Program;
use fingerpost_record::{Param, Params};

/// One probe with one set of parameters.
#[derive(Clone)]
pub struct Row {
    /// What to measure.
    pub probe: &'static Probe,
    /// With which parameters.
    pub params: Params,
    /// The program that measures it, where that is not this one. It speaks the probe protocol.
    pub program: Option<PathBuf>,
}

impl Row {
    /// A row that this program measures.
    pub fn new(probe: &'static Probe, params: Params) -> Row {
        Row {
            probe,
            params,
            program: None,
        }
    }
}

impl From<Program> for Row {
    fn from(
        Program {
            probe,
            params,
            file,
        }: Program,
    ) -> Row {
        Row {
            probe,
            params,
            program: Some(file),
        }
    }
}

/// A lab with the settings that are its own.
pub struct LabRun {
    /// The lab.
    pub lab: &'static Lab,
    /// Its settings.
    pub settings: Params,
}

/// `--set` values by key; each may be a comma list.
pub type Settings = BTreeMap<String, Vec<Param>>;

/// A value that holds commas of its own, as the user wrote it.
pub fn joined(values: &[Param]) -> String {
    values
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(",")
}
