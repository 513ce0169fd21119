//! What laboratories add to a run's table: pictures and sentences that draw on many rows together.

use fingerpost_compare::flops::Flops;
use fingerpost_compare::memory::Memory;
use fingerpost_compare::scaling::tables;
use fingerpost_record::Run;

use crate::style::Style;
use crate::words::clean;
use crate::{desktop, explain, flops, launch, memory, scaling, zerofill};

/// Each laboratory's picture for a terminal, between what was found and the rows; nothing where the run has none of its
/// rows.
pub fn pictures(run: &Run, style: &Style) -> String {
    let pictures = [
        scaling::render(&tables(run), style),
        explained(run, style),
        desktop::render(&fingerpost_compare::desktop::analyse(run), style),
        fingerpost_compare::zerofill::analyse(run).map(|found| zerofill::within_run(&found, style)),
        Flops::of(&run.measurements).map(|found| flops::render(&found, style)),
        Memory::of(run).map(|found| memory::render(&found, style)),
        fingerpost_compare::launch::analyse(run).map(|found| launch::render(&found, style)),
    ];
    pictures.into_iter().flatten().map(|picture| format!("\n{picture}")).collect()
}

/// The steps that speak for the run's servers, explained in short; nothing where none was watched.
fn explained(run: &Run, style: &Style) -> Option<String> {
    let found = explain::speaking(explain::of_run(run));
    let more = "Every step and every figure: fingerpost explain";
    (!found.is_empty()).then(|| format!("{}\n{more} {}\n", explain::render(&found, style), clean(&run.id)))
}

/// What laboratories add to a run in Markdown.
pub fn markdown(run: &Run) -> String {
    let labs = [
        fingerpost_compare::zerofill::analyse(run).map(|found| zerofill::markdown(&found)),
        Flops::of(&run.measurements).map(|found| flops::markdown(&found)),
        Memory::of(run).map(|found| memory::markdown(&found)),
    ];
    let found = explain::speaking(explain::of_run(run));
    let explained = if found.is_empty() { String::new() } else { format!("\n{}", explain::markdown(&found)) };
    let desktop = desktop::markdown(&fingerpost_compare::desktop::analyse(run));
    [scaling::markdown(&tables(run)), explained, desktop].into_iter().chain(labs.into_iter().flatten()).collect()
}
