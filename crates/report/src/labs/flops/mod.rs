//! The lab of floating point by instruction mix and compiler.

pub(crate) mod csv;
mod html;
pub(crate) mod words;

use fingerpost_compare::flops::Flops;
use fingerpost_record::Run;

use super::lab::{Analysis, LabView, Labs, Shown};
use crate::untrusted::doubted;

/// The lab.
pub static LAB: LabView =
    LabView { name: "flops", loaded: None, analyses: &[&Analysis { before_requests: false, rank: 5, of }] };

fn of(run: &Run, _: Labs) -> Option<Shown> {
    let flops = Flops::of(&run.measurements)?;
    Some(Shown {
        answers: words::answer(&flops).map(|sentence| doubted(sentence, run, "cpu.")).into_iter().collect(),
        alone: None,
        otherwise: None,
        grids: vec![words::grid(&flops)],
        markdown: None,
        derived: csv::derived(&flops),
        sections: vec![html::section(&flops)],
    })
}
