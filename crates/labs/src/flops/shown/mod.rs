//! The lab of floating point by instruction mix and compiler.

mod csv;
mod html;
mod words;

use crate::flops::analysis::Flops;
use fingerpost_record::Run;

use fingerpost_report::lab::{Analysis, Labs, Shown};
use fingerpost_report::untrusted::doubted;

pub static ANALYSIS: Analysis = Analysis {
    before_requests: false,
    rank: 5,
    of,
};

fn of(run: &Run, _: Labs) -> Option<Shown> {
    let flops = Flops::of(&run.measurements)?;
    Some(Shown {
        answers: words::answer(&flops)
            .map(|sentence| doubted(sentence, run, "cpu."))
            .into_iter()
            .collect(),
        alone: None,
        otherwise: None,
        grids: vec![words::grid(&flops)],
        markdown: None,
        derived: csv::derived(&flops),
        sections: vec![html::section(&flops)],
    })
}
