//! A compiler, a flag, a version or a setting that was changed between the sides: named before any hardware is.

use fingerpost_record::{Finding, Layer, Status};

use super::seen::{Changed, Kind};
use super::view::{Item, View};
use crate::hosts;
use crate::sides::alone::TOGETHER;

/// The cause of another build of the program.
pub const BUILD: &str = "app.build";
/// The cause of another setting of the same program.
pub const SETTING: &str = "app.setting";
/// The cause of swap that is somewhere else.
pub const PLACEMENT: &str = "memory.swap_place";

/// Accounts for what is left in the rows that a change concerns, once the clock of one and the same processor has had
/// its part.
pub(super) fn judge(view: &mut View, total: f64) -> Option<Finding> {
    let places: Vec<usize> = (0..view.changes.len())
        .filter(|place| {
            view.items
                .iter()
                .any(|i| i.slower && i.row.changes.contains(place))
        })
        .collect();
    if places.is_empty() {
        return None;
    }
    let changes: Vec<&Changed> = places.iter().map(|place| &view.changes[*place]).collect();
    let concerned = |i: &Item| places.iter().any(|place| i.row.changes.contains(place));
    let (cause, layer) = cause_of(&changes);
    let mut evidence: Vec<String> = changes
        .iter()
        .map(|c| format!("{} (base → new)", c.words))
        .collect();
    if changes.len() > 1 {
        evidence.push(TOGETHER.into());
    }
    let others = others(view, &changes);
    evidence.extend(
        view.items
            .iter()
            .filter(|i| i.slower && concerned(i))
            .map(|i| i.row.words())
            .take(3),
    );
    if let Some(what) = view.machines.differ() {
        let settle = if view.measured_here {
            " (compare --settle measures it)"
        } else {
            ""
        };
        evidence.push(format!(
            "the {what} differ too, so that how much of the difference is the change's is not known{settle}"
        ));
        return Some(Finding::new(cause, layer, Status::Likely, 0.0, evidence));
    }
    let share = view.claim(|i| if concerned(i) { i.left } else { 0.0 }) / total;
    let status = if others.is_empty() {
        Status::Confirmed
    } else {
        Status::Likely
    };
    evidence.push(match others.as_slice() {
        [] => "nothing else that is known of the two sides differs".into(),
        others => format!("what differs besides: {}", others.join(", ")),
    });
    Some(Finding::new(cause, layer, status, share, evidence))
}

/// What several changes together are: another program, whatever its settings; swap elsewhere, where nothing else was
/// changed.
fn cause_of(changes: &[&Changed]) -> (&'static str, Layer) {
    match () {
        () if changes.iter().any(|c| c.kind == Kind::Build) => (BUILD, Layer::Application),
        () if changes.iter().all(|c| c.kind == Kind::Placement) => (PLACEMENT, Layer::Memory),
        () => (SETTING, Layer::Application),
    }
}

/// Facts of the hosts that differ besides the compilers, and besides the swap areas where their placement is what was
/// changed.
fn others(view: &View, changes: &[&Changed]) -> Vec<String> {
    let placed = changes.iter().any(|c| c.kind == Kind::Placement);
    let differences = hosts::differences(view.fast.facts, view.slow.facts);
    differences
        .into_iter()
        .map(|d| d.what)
        .filter(|what| what != "compilers" && !(placed && what == "swap"))
        .collect()
}
