//! What laboratories add to a run's table: pictures and sentences that draw on many rows together.

use fingerpost_compare::flops::Flops;
use fingerpost_compare::memory::Memory;
use fingerpost_record::Run;

use crate::style::Style;
use crate::{flops, launch, memory, zerofill};

/// Each laboratory's picture for a terminal, behind the table; nothing where the run has none of its rows.
pub fn pictures(run: &Run, style: &Style) -> String {
    let pictures = [
        fingerpost_compare::zerofill::analyse(run).map(|found| zerofill::render(&found, style)),
        Flops::of(&run.measurements).map(|found| flops::render(&found, style)),
        Memory::of(run).map(|found| memory::render(&found, style)),
        fingerpost_compare::launch::analyse(run).map(|found| launch::render(&found, style)),
    ];
    pictures.into_iter().flatten().map(|picture| format!("\n{picture}")).collect()
}

/// A run's text without what could mislead a reader.
pub fn clean(text: &str) -> String {
    fingerpost_record::text::clean(text).into_owned()
}
