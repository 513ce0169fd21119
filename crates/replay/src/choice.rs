//! Which runs of this machine the tables and the conclusions are held against.

use fingerpost_record::{Measurement, Outcome, Run};

use super::own::ours;
use crate::conclusions;
use fingerpost_compare::aliases;
use fingerpost_compare::references::{self, Column, Table};

/// The runs that tables and conclusions take this machine's figures from: of candidates, the preferred first, each that
/// has rows of a table, or for a conclusion, which none before it has. `figures` gives a candidate's figures, `whole`
/// all of it; what cannot be read gives nothing and is passed over.
pub fn chosen<C>(
    tables: &[&'static str],
    candidates: impl Iterator<Item = C>,
    figures: impl Fn(&C) -> Option<Run>,
    whole: impl Fn(&C) -> Option<Run>,
) -> Vec<Run> {
    let mut own = Vec::new();
    let mut open: Vec<&conclusions::Conclusion> = conclusions::of_tables(tables).collect();
    // A conclusion is judged by the run most like all of its tables, whichever of them was asked for.
    let mut about: Vec<&str> = tables
        .iter()
        .copied()
        .chain(
            open.iter()
                .filter(|c| c.asks_runs())
                .flat_map(|c| c.tables)
                .copied(),
        )
        .collect();
    about.sort_unstable();
    about.dedup();
    // Each table with how well runs before fit each column, and the most of one run; those that one run fits wholly are
    // done with.
    let mut missing: Vec<(Table, Vec<usize>, usize)> = about
        .iter()
        .filter_map(|name| references::table(name))
        .map(|table| {
            let none = vec![0; table.columns.len()];
            (table, none, 0)
        })
        .collect();
    for candidate in candidates {
        if missing.is_empty() && open.is_empty() {
            break;
        }
        let Some(figures) = figures(&candidate) else {
            continue;
        };
        let mut serves = false;
        for (table, had, most) in &mut missing {
            let fits = fits(table, &figures);
            let all: usize = fits.iter().sum();
            serves |= all > *most || fits.iter().zip(had.iter()).any(|(fit, had)| fit > had);
            *most = all.max(*most);
            had.iter_mut()
                .zip(fits)
                .for_each(|(had, fit)| *had = fit.max(*had));
        }
        missing.retain(|(table, _, most)| *most < table.columns.len() * PLAIN);
        if !serves && !open.iter().any(|c| c.may_be_judged_by(&figures)) {
            continue;
        }
        let Some(whole) = whole(&candidate) else {
            continue;
        };
        let open_before = open.len();
        open.retain(|c| !c.is_judged_by(&whole));
        if serves || open.len() < open_before {
            own.push(whole);
        }
    }
    own
}

/// How well a row fits that has what the published one has and nothing besides.
const PLAIN: usize = 100;
/// What one fits worse that is not to be trusted.
const UNTRUSTED: usize = 40;
/// The same of a machine that was given less memory than it has.
const LIMITED: usize = 20;
/// The same for each parameter that the published figure does not state, of so many at most.
const MOST_UNSTATED: usize = 20;

/// What every row of ours states of a launch, whatever it was: one that has less to say of its memory fits no better.
const OF_EVERY_LAUNCH: [&str; 3] = ["state", "pressure", "pressure_by"];

/// How well each column of a table is served by a run: 0 where it has no figure for it.
fn fits(table: &Table, run: &Run) -> Vec<usize> {
    let limited = |row: &Measurement| {
        row.params
            .get("memory")
            .is_some_and(|memory| memory.to_string() != "none")
    };
    let fit = |column: &Column| {
        let Some(own) = ours(run, column) else {
            return 0;
        };
        let said = |key: &&String| {
            !(column.probe.starts_with("launch.") && OF_EVERY_LAUNCH.contains(&key.as_str()))
        };
        let unstated = aliases::matches(&column.probe, &column.params, &own.row.params)
            .map_or(0, |found| found.unstated.iter().filter(said).count());
        let doubted = if own.row.outcome == Outcome::Measured {
            0
        } else {
            UNTRUSTED
        };
        let less = if limited(&own.row) { LIMITED } else { 0 };
        PLAIN - doubted - less - unstated.min(MOST_UNSTATED)
    };
    table.columns.iter().map(fit).collect()
}

/// The runs with how well they fit these tables, the best first; of equal ones in the order given.
fn by_figures<'a>(tables: &[&Table], runs: &'a [Run]) -> Vec<(usize, &'a Run)> {
    let count = |run: &Run| tables.iter().flat_map(|table| fits(table, run)).sum();
    let mut counted: Vec<(usize, &Run)> = runs.iter().map(|run| (count(run), run)).collect();
    counted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    counted
}

/// The runs in the order in which they are asked about a conclusion: those with most rows of the tables that it is
/// about come first, as what was concluded of a server without its cache is not to be judged by one with it.
pub(super) fn suited<'a>(conclusion: &conclusions::Conclusion, runs: &'a [Run]) -> Vec<&'a Run> {
    let tables: Vec<Table> = conclusion
        .tables
        .iter()
        .filter_map(|name| references::table(name))
        .collect();
    by_figures(&tables.iter().collect::<Vec<_>>(), runs)
        .into_iter()
        .map(|(_, run)| run)
        .collect()
}

/// The runs with figures for a table, those with most first. A run of something else may have a row of it by chance,
/// and what one cannot measure together (two versions of a server) is in several.
pub(super) fn fullest<'a>(table: &Table, runs: &'a [Run]) -> Vec<&'a Run> {
    by_figures(&[table], runs)
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(_, run)| run)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclusions::Answer;
    use crate::replay;

    #[test]
    fn a_conclusion_is_judged_alike_whichever_of_its_tables_is_asked_for() {
        // A round trip over TCP beside a query: the newer run has the cache on, and a query of it takes a fifth.
        let with_trip = |cache: &str, id: &str| {
            let mut run = references::load("opteron-850-linux").unwrap();
            run.measurements
                .retain(|m| m.probe == "ipc.tcp" || m.params.text("query_cache") == Some("off"));
            for m in run
                .measurements
                .iter_mut()
                .filter(|m| cache == "on" && m.probe != "ipc.tcp")
            {
                m.params = m.params.clone().with("query_cache", "on");
                m.estimate.iter_mut().for_each(|e| e.value *= 50.0);
            }
            Run {
                id: id.into(),
                ..run
            }
        };
        let runs = [with_trip("on", "cached"), with_trip("off", "plain")];
        let at = |at: &usize| runs.get(*at).cloned();
        let told = |table: &'static str, key: &str| {
            let found = replay(table, &[table], &chosen(&[table], 0..2, at, at));
            found
                .conclusions
                .into_iter()
                .find(|c| c.key == key)
                .unwrap()
                .here
        };
        let latency = told("lmbench-ipc", "latency_may_matter");
        assert_eq!(told("mysql-scaling", "latency_may_matter"), latency);
        assert!(
            latency.figure.contains("one client 3.448 ms"),
            "{}",
            latency.figure
        );
        // What the cache gains takes a run without it, which has no row of the cache's own table.
        let cache = told("mysql-query-cache", "query_cache_widens_the_gap");
        assert_eq!(told("mysql-scaling", "query_cache_widens_the_gap"), cache);
        assert_eq!(cache.answer, Answer::True, "{}", cache.figure);
    }

    #[test]
    fn a_run_with_all_of_the_memory_comes_before_a_later_one_with_a_limit() {
        let plain = Run {
            id: "plain".into(),
            ..references::load("site-powermac-9500").unwrap()
        };
        let mut limited = Run {
            id: "limited".into(),
            ..plain.clone()
        };
        limited
            .measurements
            .iter_mut()
            .for_each(|m| m.params = m.params.clone().with("memory", 64 << 20));
        let runs = [limited, plain];
        let get = |at: &usize| runs.get(*at).cloned();
        let taken = chosen(&["site"], 0..2, get, get);
        assert_eq!(
            taken.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(),
            ["limited", "plain"]
        );
        let found = replay("site", &["site"], &taken);
        assert_eq!(found.tables[0].run.as_deref(), Some("plain"));
        // Neither is one that is not to be trusted preferred for being newer, nor one with what the source does not
        // state.
        let mut doubted = Run {
            id: "doubted".into(),
            ..runs[1].clone()
        };
        doubted
            .measurements
            .iter_mut()
            .for_each(|m| m.outcome = Outcome::Untrusted);
        let mut other = Run {
            id: "other".into(),
            ..runs[1].clone()
        };
        other
            .measurements
            .iter_mut()
            .for_each(|m| m.params = m.params.clone().with("urls", 400));
        for worse in [doubted, other] {
            assert_eq!(
                replay("site", &["site"], &[worse, runs[1].clone()]).tables[0]
                    .run
                    .as_deref(),
                Some("plain")
            );
        }
        // A launch always says how its memory was, and a later one comes first whichever that is; one with another swap
        // comes after it.
        let launched = |id: &str, stated: &[(&str, &str)]| {
            let mut run = Run {
                id: id.into(),
                ..references::load("launch-10.1").unwrap()
            };
            run.measurements.retain(|m| m.probe == "launch.time");
            run.measurements.iter_mut().for_each(|m| {
                m.params = stated
                    .iter()
                    .fold(m.params.clone(), |all, (key, value)| all.with(key, *value))
            });
            run
        };
        let short = launched(
            "short",
            &[
                ("state", "cold"),
                ("pressure", "0.6"),
                ("pressure_by", "limit"),
            ],
        );
        let free = launched("free", &[("state", "warm"), ("pressure", "none")]);
        let off = launched(
            "off",
            &[
                ("state", "cold"),
                ("pressure", "none"),
                ("existing_swap", "off"),
            ],
        );
        let first = |runs: &[Run]| replay("launch", &["launch"], runs).tables[0].run.clone();
        assert_eq!(
            first(&[short.clone(), free.clone()]).as_deref(),
            Some("short")
        );
        assert_eq!(first(&[free, short.clone()]).as_deref(), Some("free"));
        assert_eq!(first(&[off, short]).as_deref(), Some("short"));
        // Where there is no other, the one with a limit is taken.
        assert_eq!(
            replay("site", &["site"], &runs[..1]).tables[0]
                .run
                .as_deref(),
            Some("limited")
        );
    }
}
