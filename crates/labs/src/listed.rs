//! The labs of the list: those with a course of their own, and those that are made of probes.

use fingerpost_probes::Probe;
use fingerpost_record::Params;
use fingerpost_report::lab::{Analysis, LabView};

use crate::lab::{Lab, Setting};

/// A lab that is made of probes alone. Its rows are measured in rounds, as all probes are.
pub struct OfProbes {
    /// The name on the command line, which its probes state as their lab.
    pub name: &'static str,
    /// One line for `list`.
    pub summary: &'static str,
    /// What a report makes of its rows.
    pub analyses: &'static [&'static Analysis],
}

impl OfProbes {
    /// Its probes.
    pub fn probes(&self) -> impl Iterator<Item = &'static Probe> {
        fingerpost_probes::of_lab(self.name)
    }
}

/// A lab of the list.
pub enum Listed {
    /// With a course of its own.
    Course(&'static Lab),
    /// Made of probes.
    Probes(&'static OfProbes),
}

impl Listed {
    /// The lab, where it has a course of its own.
    pub fn course(&self) -> Option<&'static Lab> {
        match self {
            Listed::Course(lab) => Some(lab),
            Listed::Probes(_) => None,
        }
    }

    /// The name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Listed::Course(lab) => lab.name,
            Listed::Probes(lab) => lab.name,
        }
    }

    /// One line for `list`.
    pub fn summary(&self) -> &'static str {
        match self {
            Listed::Course(lab) => lab.summary,
            Listed::Probes(lab) => lab.summary,
        }
    }

    /// What a report knows of it.
    pub(crate) fn view(&self) -> LabView {
        match self {
            Listed::Course(lab) => LabView { name: lab.name, server: lab.server, analyses: lab.analyses },
            Listed::Probes(lab) => LabView { name: lab.name, server: None, analyses: lab.analyses },
        }
    }

    /// The settings that it takes; of one made of probes those that they take beside their parameters.
    pub fn settings(&self) -> Vec<Setting> {
        let of = |[key, default, help]: &[&'static str; 3]| Setting::new(key, default, help);
        match self {
            Listed::Course(lab) => lab.settings.to_vec(),
            Listed::Probes(lab) => lab.probes().flat_map(|probe| probe.settings).map(of).collect(),
        }
    }

    /// The names of its rows, and what the figure of each is.
    pub fn figures(&self) -> Vec<(&'static str, &'static str)> {
        match self {
            Listed::Course(lab) => lab.rows.iter().map(|(of, meaning)| (of.probe, *meaning)).collect(),
            Listed::Probes(lab) => lab.probes().map(|probe| (probe.name, probe.summary)).collect(),
        }
    }

    /// The parameters of each row, where they are known before it is measured: of probes.
    pub fn rows(&self) -> Vec<Params> {
        match self {
            Listed::Course(_) => Vec::new(),
            Listed::Probes(lab) => lab.probes().flat_map(|probe| (probe.variants)()).collect(),
        }
    }

    /// What is missing here for it without any setting, as a sentence that says what to do.
    pub fn missing(&self) -> Option<String> {
        (self.course()?.missing)(&Params::new())
    }
}
