//! The lab of the memory hierarchy.

mod csv;
mod html;
mod words;

use crate::memory::analysis::Memory;
use fingerpost_record::Run;

use fingerpost_report::lab::{Analysis, Labs, Shown};
use fingerpost_report::untrusted::doubted;

pub static ANALYSIS: Analysis = Analysis {
    before_requests: false,
    rank: 6,
    of,
};

fn of(run: &Run, _: Labs) -> Option<Shown> {
    let memory = Memory::of(run)?;
    Some(Shown {
        answers: words::answer(&memory)
            .map(|sentence| doubted(sentence, run, "memory."))
            .into_iter()
            .collect(),
        alone: None,
        otherwise: None,
        grids: words::grids(&memory),
        markdown: None,
        derived: csv::derived(&memory),
        sections: vec![html::section(&memory)],
    })
}
