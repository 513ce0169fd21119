//! The lab of the memory hierarchy.

pub(crate) mod csv;
mod html;
pub(crate) mod words;

use fingerpost_compare::memory::Memory;
use fingerpost_record::Run;

use super::lab::{Analysis, LabView, Labs, Shown};
use crate::untrusted::doubted;

/// The lab.
pub static LAB: LabView =
    LabView { name: "memory", loaded: None, analyses: &[&Analysis { before_requests: false, rank: 6, of }] };

fn of(run: &Run, _: Labs) -> Option<Shown> {
    let memory = Memory::of(run)?;
    Some(Shown {
        answers: words::answer(&memory).map(|sentence| doubted(sentence, run, "memory.")).into_iter().collect(),
        alone: None,
        otherwise: None,
        grids: words::grids(&memory),
        markdown: None,
        derived: csv::derived(&memory),
        sections: vec![html::section(&memory)],
    })
}
