//! Which runs of this machine the tables and the conclusions are held against.

use fingerpost_record::Run;

use super::ours;
use crate::conclusions;
use crate::references::{self, Table};

/// The runs that tables and conclusions take this machine's figures from: of candidates, the preferred first, each that has rows of a table, or
/// for a conclusion, which none before it has. `figures` gives a candidate's figures, `whole` all of it; what cannot be read gives nothing and
/// is passed over.
pub fn chosen<C>(
    tables: &[&'static str],
    candidates: impl Iterator<Item = C>,
    figures: impl Fn(&C) -> Option<Run>,
    whole: impl Fn(&C) -> Option<Run>,
) -> Vec<Run> {
    let mut own = Vec::new();
    // Each table with the columns that runs before had figures for, and the most of one run; those that one run fills are done with.
    let mut missing: Vec<(Table, Vec<bool>, usize)> = tables
        .iter()
        .filter_map(|name| references::table(name))
        .map(|table| {
            let none = vec![false; table.columns.len()];
            (table, none, 0)
        })
        .collect();
    let mut open: Vec<&conclusions::Conclusion> = conclusions::of_tables(tables).collect();
    for candidate in candidates {
        if missing.is_empty() && open.is_empty() {
            break;
        }
        let Some(figures) = figures(&candidate) else { continue };
        let mut serves = false;
        for (table, had, most) in &mut missing {
            let has = served(table, &figures);
            let count = has.iter().filter(|has| **has).count();
            serves |= count > *most || has.iter().zip(had.iter()).any(|(has, had)| *has && !had);
            *most = count.max(*most);
            had.iter_mut().zip(has).for_each(|(had, has)| *had |= has);
        }
        missing.retain(|(table, _, most)| *most < table.columns.len());
        if !serves && !open.iter().any(|c| c.may_be_judged_by(&figures)) {
            continue;
        }
        let Some(whole) = whole(&candidate) else { continue };
        let open_before = open.len();
        open.retain(|c| !c.is_judged_by(&whole));
        if serves || open.len() < open_before {
            own.push(whole);
        }
    }
    own
}

/// Which columns of a table a run has figures for.
fn served(table: &Table, run: &Run) -> Vec<bool> {
    table.columns.iter().map(|c| ours(run, c).is_some()).collect()
}

/// The runs with how many columns of these tables they have figures for, those with most first; of equal ones in the order given.
fn by_figures<'a>(tables: &[&Table], runs: &'a [Run]) -> Vec<(usize, &'a Run)> {
    let count = |run: &Run| tables.iter().flat_map(|table| served(table, run)).filter(|has| *has).count();
    let mut counted: Vec<(usize, &Run)> = runs.iter().map(|run| (count(run), run)).collect();
    counted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    counted
}

/// The runs in the order in which they are asked about a conclusion: those with most rows of the tables that it is about come first, as what was
/// concluded of a server without its cache is not to be judged by one with it.
pub(super) fn suited<'a>(conclusion: &conclusions::Conclusion, runs: &'a [Run]) -> Vec<&'a Run> {
    let tables: Vec<Table> = conclusion.tables.iter().filter_map(|name| references::table(name)).collect();
    by_figures(&tables.iter().collect::<Vec<_>>(), runs).into_iter().map(|(_, run)| run).collect()
}

/// The runs with figures for a table, those with most first. A run of something else may have a row of it by chance, and what one cannot
/// measure together (two versions of a server) is in several.
pub(super) fn fullest<'a>(table: &Table, runs: &'a [Run]) -> Vec<&'a Run> {
    by_figures(&[table], runs).into_iter().filter(|(count, _)| *count > 0).map(|(_, run)| run).collect()
}
