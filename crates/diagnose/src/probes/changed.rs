//! A compiler, a flag, a version or a setting that was changed between the sides: named before any hardware is.

use fingerpost_record::cause::id;
use fingerpost_record::{Evidence, Finding, Layer, Metric, Status};

use super::seen::{Changed, Kind};
use super::view::{Item, View};
use crate::hosts;

/// The cause of another build of the program.
pub const BUILD: &str = id::APP_BUILD;
/// The cause of another setting of the same program.
pub const SETTING: &str = id::APP_SETTING;
/// The cause of swap that is somewhere else.
pub const PLACEMENT: &str = id::MEMORY_SWAP_PLACE;

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
    let mut evidence: Vec<Evidence> = changes
        .iter()
        .map(|c| {
            Evidence::of(Metric::Changed)
                .named(&c.what)
                .changing(&c.base, &c.new)
        })
        .collect();
    if changes.len() > 1 {
        evidence.push(Evidence::of(Metric::ChangedTogether));
    }
    let others = others(view, &changes);
    evidence.extend(
        view.items
            .iter()
            .filter(|i| i.slower && concerned(i))
            .map(|i| i.row.fact())
            .take(3),
    );
    if let Some(what) = view.machines.differ() {
        let mut why = Evidence::of(Metric::MachinesDifferToo).named(what);
        // What was measured here can be measured again, one change at a time.
        why.undecided = view.measured_here;
        evidence.push(why);
        return Some(Finding::new(cause, layer, Status::Likely, 0.0, evidence));
    }
    let share = view.claim(|i| if concerned(i) { i.left } else { 0.0 }) / total;
    let status = if others.is_empty() {
        Status::Confirmed
    } else {
        Status::Likely
    };
    evidence.push(match others.as_slice() {
        [] => Evidence::of(Metric::NothingElseDiffers),
        others => Evidence::of(Metric::DiffersBesides).among(others),
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
