//! The lab of applications launched under placements of swap.

mod answer;
mod csv;
mod html;
mod words;

use crate::launch::analysis::analyse;
use fingerpost_record::Run;

use fingerpost_report::lab::{Analysis, Labs, Shown};

pub static ANALYSIS: Analysis = Analysis {
    before_requests: false,
    rank: 4,
    of,
};

fn of(run: &Run, _: Labs) -> Option<Shown> {
    run.measurements
        .iter()
        .find(|m| m.probe.starts_with("launch."))?;
    let table = analyse(run);
    let sentence = |several: bool| {
        let of = table
            .as_ref()
            .filter(|table| (table.placements.len() > 1) == several);
        of.map(|table| table.sentence.clone())
    };
    Some(Shown {
        answers: answer::since_boot(run)
            .into_iter()
            .chain(sentence(true))
            .collect(),
        // With one placement there is nothing to say but that, where something else was asked.
        alone: sentence(false),
        otherwise: answer::pageins(run),
        grids: table.iter().map(words::grid).collect(),
        markdown: None,
        derived: table
            .iter()
            .flat_map(|table| csv::derived(run, table))
            .collect(),
        sections: table.iter().map(html::section).collect(),
    })
}
