//! A compiler, a flag, a version or a setting that was changed between the sides: named before any hardware is.

use fingerpost_diagnose::hosts;
use fingerpost_diagnose::sides::alone::TOGETHER;
use fingerpost_record::{Finding, Layer, Status};

use super::view::View;
use crate::changes::{Change, Kind};

/// The cause of another build of the program.
pub(crate) const BUILD: &str = "app.build";
/// The cause of another setting of the same program.
pub(crate) const SETTING: &str = "app.setting";
/// The cause of swap that is somewhere else.
pub(crate) const PLACEMENT: &str = "memory.swap_place";

/// Accounts for what is left in the rows that a change concerns, once the clock of one and the same processor has had its part.
pub(super) fn judge(view: &mut View, total: f64) -> Option<Finding> {
    let changes: Vec<Change> = view.changes.iter().filter(|c| view.items.iter().any(|i| i.slower && c.concerns(i.row))).cloned().collect();
    if changes.is_empty() {
        return None;
    }
    let (cause, layer) = cause_of(&changes);
    let mut evidence: Vec<String> = changes.iter().map(|c| format!("{} (base → new)", c.words())).collect();
    if changes.len() > 1 {
        evidence.push(TOGETHER.into());
    }
    let others = others(view, &changes);
    let rows: Vec<String> =
        view.items.iter().filter(|i| i.slower && changes.iter().any(|c| c.concerns(i.row))).map(|i| view.describe(i)).collect();
    evidence.extend(rows.into_iter().take(3));
    if let Some(what) = view.machines.differ() {
        let here = !view.slow.imported && !view.fast.imported;
        let settle = if here { " (compare --settle measures it)" } else { "" };
        evidence.push(format!("the {what} differ too, so that how much of the difference is the change's is not known{settle}"));
        return Some(Finding { cause: cause.into(), layer, status: Status::Suspected, share: 0.0, evidence, relation: None });
    }
    let share = view.claim(|i| if changes.iter().any(|c| c.concerns(i.row)) { i.left } else { 0.0 }) / total;
    let status = if others.is_empty() { Status::Guilty } else { Status::Suspected };
    evidence.push(match others.as_slice() {
        [] => "nothing else that is known of the two sides differs".into(),
        others => format!("what differs besides: {}", others.join(", ")),
    });
    Some(Finding { cause: cause.into(), layer, status, share, evidence, relation: None })
}

/// What several changes together are: another program, whatever its settings; swap elsewhere, where nothing else was changed.
fn cause_of(changes: &[Change]) -> (&'static str, Layer) {
    match () {
        () if changes.iter().any(|c| c.kind == Kind::Build) => (BUILD, Layer::Application),
        () if changes.iter().all(|c| c.kind == Kind::Placement) => (PLACEMENT, Layer::Memory),
        () => (SETTING, Layer::Application),
    }
}

/// Facts of the hosts that differ besides the compilers, and besides the swap areas where their placement is what was changed.
fn others(view: &View, changes: &[Change]) -> Vec<String> {
    let placed = changes.iter().any(|c| c.kind == Kind::Placement);
    let differences = hosts::differences(&view.fast.facts, &view.slow.facts);
    differences.into_iter().map(|d| d.what).filter(|what| what != "compilers" && !(placed && what == "swap")).collect()
}
