//! What labs add to a run, in every format: answers, tables and pictures, derived figures.
//!
//! [`LABS`] is the one list, and every format takes its parts from there: none names a lab. A lab has a file or a
//! folder, and an analysis one that its words and views share; to add one, write it and name it in the list.

mod database;
pub mod derived;
mod desktop;
pub(crate) mod flops;
mod lab;
mod launch;
pub(crate) mod memory;
pub mod scaling;
pub(crate) mod site;
mod web;
pub mod zerofill;

use fingerpost_record::Run;

pub use lab::{Analysis, LabView, Labs, Loaded, Shown};

/// Every lab, in the order shown.
pub static LABS: Labs =
    &[&database::LAB, &web::LAB, &zerofill::LAB, &flops::LAB, &memory::LAB, &launch::LAB, &site::LAB];

/// An analysis, and what it finds in a run.
pub type Found = (&'static Analysis, Shown);

/// What the analyses find in a run, in the order shown.
pub fn of(run: &Run) -> Vec<Found> {
    analyses().into_iter().filter_map(|analysis| Some((analysis, (analysis.of)(run, LABS)?))).collect()
}

/// Every analysis, once.
fn analyses() -> Vec<&'static Analysis> {
    let mut all: Vec<&'static Analysis> = Vec::new();
    for analysis in LABS.iter().flat_map(|lab| lab.analyses) {
        if !all.iter().any(|other| std::ptr::eq(*other, *analysis)) {
            all.push(analysis);
        }
    }
    all
}

/// The words of each lab that loads a server, with its name.
pub fn loaded() -> impl Iterator<Item = (&'static str, &'static Loaded)> {
    LABS.iter().filter_map(|lab| Some((lab.name, lab.loaded.as_ref()?)))
}
