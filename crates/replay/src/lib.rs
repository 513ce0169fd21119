//! The published tables replayed: each with a column of this machine beside it, and what its authors concluded
//! ([`conclusions`]) judged from their figures and from this machine's.
//!
//! It is computed from the reference systems and the runs alone, and stands above the labs because their analyses judge
//! what the documents conclude of them.

mod choice;
pub mod conclusions;
mod derived;
mod own;
mod recipe;
pub mod shown;

use fingerpost_record::{Better, Profile, Run, Unit};
use serde::Serialize;

use conclusions::{Answer, Document, Judged};
use fingerpost_compare::references::{self, Column, Printed, Table};

pub use choice::chosen;
use choice::{fullest, suited};
use own::ours;
pub use own::{Here, Line};
pub use recipe::{Recipe, recipe_of};

/// Published tables replayed on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct Replay {
    /// What was asked for.
    pub name: String,
    /// The tables.
    pub tables: Vec<Replayed>,
    /// The conclusions that are about them.
    pub conclusions: Vec<Concluded>,
}

/// One table.
#[derive(Clone, Debug, Serialize)]
pub struct Replayed {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub title: String,
    /// The document.
    pub source: String,
    /// Where in the document.
    pub place: String,
    /// The unit of the printed figures and of those beside them.
    pub unit: &'static str,
    /// Which direction is the good one.
    pub better: Better,
    /// The published systems, in the order of the columns.
    pub systems: Vec<String>,
    /// The run that the own column is from; nothing where no run has one of its rows.
    pub run: Option<String>,
    /// Whether that run is a published system: then an interval is what a printed figure was rounded from.
    #[serde(skip)]
    pub own_is_published: bool,
    /// What measures it here.
    pub measured_by: String,
    /// What the source's table prints of each line itself, beside the figures; nothing where it prints figures alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<&'static str>,
    /// The lines.
    pub lines: Vec<Line>,
}

/// One conclusion.
#[derive(Clone, Debug, Serialize)]
pub struct Concluded {
    /// Its key.
    pub key: &'static str,
    /// The document.
    pub document: Document,
    /// The section.
    pub place: &'static str,
    /// The conclusion in words of our own.
    pub says: &'static str,
    /// What the document's own figures say of it.
    pub there: Judged,
    /// What this machine says of it.
    pub here: Judged,
}

/// What NAME may be: every table, the beginnings that several tables share, every reference system, and `all`.
pub fn names() -> Vec<String> {
    let tables: Vec<&str> = references::table_names().collect();
    let mut names: Vec<String> = vec!["all".into()];
    for name in &tables {
        let family = name.split('-').next().unwrap_or(name);
        let shared = tables.iter().filter(|t| t.starts_with(family)).count() > 1
            && !names.iter().any(|n| n == family);
        names.extend(shared.then(|| family.to_owned()));
        if !names.iter().any(|n| n == name) {
            names.push((*name).to_owned());
        }
    }
    names.extend(references::names());
    names
}

/// The tables that NAME means: `all`, one, those that begin with it, or those that a reference system is in. None for a
/// name that is none.
pub fn tables_of(name: &str) -> Vec<&'static str> {
    let name = name.strip_prefix("ref:").unwrap_or(name);
    let tables = || references::table_names();
    let begins = |t: &&str| {
        *t == name
            || t.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('-'))
    };
    let found: Vec<&str> = tables().filter(|t| name == "all" || begins(t)).collect();
    if !found.is_empty() {
        return found;
    }
    tables()
        .filter(|t| references::table(t).is_some_and(|t| t.runs.contains_key(name)))
        .collect()
}

/// Replays tables on runs of this machine, the preferred first: each table and each conclusion takes the first run that
/// has figures for it.
pub fn replay(name: &str, tables: &[&'static str], runs: &[Run]) -> Replay {
    let (none, several) = (Run::default(), together(runs));
    let concluded = |c: &conclusions::Conclusion| {
        let judged: Vec<Judged> = suited(c, runs)
            .into_iter()
            .map(|run| c.by_run(run))
            .collect();
        // A run that decides comes before one that has a reason for saying nothing, and that before several that have
        // the rows together.
        let decided = judged.iter().find(|j| j.answer != Answer::NotMeasured);
        let first = decided
            .or_else(|| {
                judged
                    .iter()
                    .find(|j| !j.figure.starts_with(conclusions::NO_ROW))
            })
            .cloned();
        let here = first
            .or_else(|| by_several(c, several.as_ref()?))
            .unwrap_or_else(|| c.by_run(&none));
        Concluded {
            key: c.key,
            document: c.document,
            place: c.place,
            says: c.says,
            there: c.by_source(),
            here,
        }
    };
    Replay {
        name: name.to_owned(),
        tables: tables
            .iter()
            .filter_map(|t| Some(replayed(t, references::table(t)?, runs)))
            .collect(),
        conclusions: conclusions::of_tables(tables).map(concluded).collect(),
    }
}

/// The rows of several runs as if they were one's, and what was observed beside them; nothing of one run alone.
/// Published ones stay that.
fn together(runs: &[Run]) -> Option<Run> {
    let published = runs.iter().all(|run| run.profile == Profile::Imported);
    (runs.len() > 1).then(|| Run {
        profile: if published {
            Profile::Imported
        } else {
            Profile::default()
        },
        measurements: runs
            .iter()
            .flat_map(|run| run.measurements.iter().cloned())
            .collect(),
        observations: runs
            .iter()
            .flat_map(|run| run.observations.iter().cloned())
            .collect(),
        budgets: runs
            .iter()
            .flat_map(|run| run.budgets.iter().cloned())
            .collect(),
        ..Run::default()
    })
}

/// What runs say of a conclusion together that none of them has all rows for: a server with its cache and one without.
fn by_several(conclusion: &conclusions::Conclusion, several: &Run) -> Option<Judged> {
    let judged = conclusion.by_run(several);
    (judged.answer != Answer::NotMeasured).then(|| Judged {
        figure: format!("{}; by rows of several runs", judged.figure),
        ..judged
    })
}

fn replayed(name: &'static str, table: Table, runs: &[Run]) -> Replayed {
    let runs = fullest(&table, runs);
    let mut lines: Vec<Line> = table
        .columns
        .iter()
        .enumerate()
        .flat_map(|(i, column)| lines(&table, i, column, &runs))
        .collect();
    lines.extend(derived::lines(name, &table, &lines));
    Replayed {
        name,
        unit: unit(&table),
        better: table.better,
        systems: table.systems().iter().map(|s| (*s).to_owned()).collect(),
        run: runs.first().map(|r| r.id.clone()),
        own_is_published: runs.first().is_some_and(|r| r.profile == Profile::Imported),
        measured_by: recipe_of(name).map_or(String::new(), Recipe::command),
        about: lines.iter().any(|line| line.about.is_some()).then_some(MIX),
        lines,
        title: table.title,
        source: table.source,
        place: table.place,
    }
}

/// The kinds of operations whose shares the table of floating point prints for each module, in its order, as what heads
/// them.
const MIX: &str = "instruction mix in %";

/// The shares of a module's operations, as the source's table prints them beside the rates of every system.
fn mix(table: &Table, of: &Column) -> Option<String> {
    let module = of.params.int("module")?;
    let told = table
        .systems()
        .first()
        .and_then(|system| references::load(system))?
        .observations;
    let totals = told
        .into_iter()
        .find(|o| o.observer == "instruction mix")?
        .totals;
    let share = |kind| {
        totals
            .get(&format!("module{module}.{kind}.percent"))
            .map(f64::to_string)
    };
    Some(
        ["fadd", "fsub", "fmul", "fdiv"]
            .map(share)
            .into_iter()
            .collect::<Option<Vec<_>>>()?
            .join(", "),
    )
}

/// A column of the data is a line here; one of repetitions is a line for each.
fn lines(table: &Table, column: usize, of: &Column, runs: &[&Run]) -> Vec<Line> {
    let what = if of.params.is_empty() {
        of.probe.clone()
    } else {
        format!("{} {}", of.probe, of.params)
    };
    let own = runs.iter().enumerate().find_map(|(at, run)| {
        let own = ours(run, of)?.of_run(at);
        // The table names the run that most of it is from.
        Some(if at == 0 {
            own
        } else {
            own.also(&format!("of the run {}", run.id))
        })
    });
    let cells: Vec<Option<&Printed>> = table
        .systems()
        .iter()
        .map(|s| table.runs[*s].get(column).and_then(Option::as_ref))
        .collect();
    let rounds = cells
        .iter()
        .flatten()
        .filter_map(|c| {
            if let Printed::Many(all) = c {
                Some(all.len())
            } else {
                None
            }
        })
        .max();
    let Some(rounds) = rounds else {
        let printed = cells.iter().map(|c| c.map(Printed::text)).collect();
        return vec![Line {
            what,
            about: mix(table, of),
            printed,
            here: own.and_then(|own| own.here(table.scale)),
        }];
    };
    let cell = |c: &Option<&Printed>, round: usize| {
        if let Some(Printed::Many(all)) = c {
            all.get(round).cloned()
        } else {
            None
        }
    };
    let line = |round: usize| Line {
        what: format!("{what}, round {}", round + 1),
        about: None,
        printed: cells.iter().map(|c| cell(c, round)).collect(),
        here: own
            .as_ref()
            .and_then(|own| own.in_round(round, table.scale)),
    };
    (0..rounds).map(line).collect()
}

/// What the table's figures are counted in.
fn unit(table: &Table) -> &'static str {
    match (table.unit, table.scale) {
        (Unit::Nanoseconds, 1e3) => "µs",
        (Unit::Nanoseconds, 1e9) => "s",
        (Unit::Nanoseconds, s) if s > 1e7 && s < 2e7 => "ticks of 1/60 s",
        (Unit::FlopPerSecond, _) => "MFLOPS",
        (Unit::PerSecond, _) => "/s",
        (unit, _) => unit.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_its_recipe_and_each_name_its_tables() {
        for table in references::table_names() {
            assert!(recipe_of(table).is_some(), "{table}");
        }
        assert_eq!(
            tables_of("ref:mysql"),
            ["mysql-scaling", "mysql-query-cache"]
        );
        assert_eq!(tables_of("launch"), ["launch", "launch-pageins"]);
        assert_eq!(tables_of("launch-10.1"), ["launch", "launch-pageins"]);
        assert_eq!(tables_of("site-powermac-9500"), ["site"]);
        assert!(tables_of("nothing").is_empty() && tables_of("").is_empty());
        assert!(names().iter().all(|name| !tables_of(name).is_empty()));
        let mut once = names();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), names().len());
    }

    #[test]
    fn a_published_system_replayed_on_itself_gives_its_own_figures() {
        let run = references::load("opteron-850-linux").unwrap();
        let found = replay(
            "mysql-scaling",
            &["mysql-scaling"],
            std::slice::from_ref(&run),
        );
        let table = &found.tables[0];
        let column = table
            .systems
            .iter()
            .position(|s| s == "opteron-850-linux")
            .unwrap();
        assert_eq!(table.lines.len(), 14);
        for line in &table.lines[..7] {
            let printed: f64 = line.printed[column].as_ref().unwrap().parse().unwrap();
            assert_eq!(
                line.here.as_ref().unwrap().estimate.value,
                printed,
                "{}",
                line.what
            );
        }
        let calm = found
            .conclusions
            .iter()
            .find(|c| c.key == "linux_does_not_collapse")
            .unwrap();
        assert_eq!(
            (calm.there.answer, calm.here.answer),
            (Answer::True, Answer::True)
        );
    }

    #[test]
    fn the_table_of_floating_point_has_the_mix_of_operations_beside_each_module() {
        let printed = "50, 0, 43, 7; 43, 29, 14, 14; 35, 12, 53, 0; 47, 0, 53, 0; 45, 0, 52, 3; 45, 0, 55, 0; 25, 25, \
            25, 25; 43, 0, 57, 0";
        let found = replay("flops", &["flops"], &[]);
        let table = &found.tables[0];
        let told: Vec<&str> = table
            .lines
            .iter()
            .filter_map(|line| line.about.as_deref())
            .collect();
        assert_eq!(
            (told.join("; ").as_str(), table.about),
            (printed, Some("instruction mix in %"))
        );
        assert!(table.lines[8].what.ends_with("module=average") && table.lines[8].about.is_none());
        // The kernels that stand for them here are made of the same shares.
        assert_eq!(
            fingerpost_labs::flops::analysis::MIX
                .map(|of| of.map(|share| share.to_string()).join(", "))
                .join("; "),
            printed
        );
        assert!(replay("site", &["site"], &[]).tables[0].about.is_none());
    }

    #[test]
    fn a_conclusion_is_judged_by_the_run_that_is_most_like_its_table() {
        let steady = references::load("opteron-850-linux").unwrap();
        // Newer, and of another setting: it collapses.
        let mut cached = references::load("g5-2.7-darwin").unwrap();
        cached
            .measurements
            .retain(|m| m.params.text("query_cache") == Some("off"));
        for m in &mut cached.measurements {
            m.params = m.params.clone().with("query_cache", "on");
        }
        let found = replay("mysql-scaling", &["mysql-scaling"], &[cached, steady]);
        let holds = found
            .conclusions
            .iter()
            .find(|c| c.key == "linux_does_not_collapse")
            .unwrap();
        assert_eq!(holds.here.answer, Answer::True, "{}", holds.here.figure);
    }

    #[test]
    fn a_run_that_decides_comes_before_one_that_tells_why_it_does_not() {
        use fingerpost_record::{Better, Estimate, Measurement, Params, Process};
        // Rounds from the start, in which the lead grows; and the plain ones, which begin with all that is read loaded.
        let rounds = |store: &str, state: &str, last: f64| {
            let params = Params::new().with("store", store).with("state", state);
            let none = Measurement {
                version: 2,
                ..fingerpost_record::fixture::row(
                    "site.round",
                    params,
                    Unit::Nanoseconds,
                    Better::Lower,
                )
            };
            let estimate = Some(Estimate {
                value: 1e6,
                low: 0.99e6,
                high: 1.01e6,
                confidence: 0.95,
            });
            let of = |p: u32| Process {
                samples: (0..12)
                    .map(|r| (1.0 + 0.001 * f64::from(p)) * if r < 6 { 1e6 } else { last })
                    .collect(),
                value: Some(1e6),
                batch: 1,
                ..Process::default()
            };
            Measurement {
                estimate,
                processes: (0..4).map(of).collect(),
                ..none
            }
        };
        let run = |id: &str, state: &str, last| Run {
            id: id.into(),
            measurements: vec![
                rounds("files-open", state, 1e6),
                rounds("lmdb-loaded", state, last),
            ],
            ..Run::default()
        };
        let (plain, warming) = (
            run("plain", "warm", 0.2e6),
            run("warming", "warming", 0.2e6),
        );
        let here = |runs: &[Run]| {
            let found = replay("site", &["site"], runs);
            found
                .conclusions
                .into_iter()
                .find(|c| c.key == "faster_as_it_loads")
                .unwrap()
                .here
        };
        let alone = here(std::slice::from_ref(&plain));
        assert!(
            alone.answer == Answer::NotMeasured && alone.figure.contains("state=warming"),
            "{alone:?}"
        );
        for runs in [
            [plain.clone(), warming.clone()],
            [warming.clone(), plain.clone()],
        ] {
            let at = |at: &usize| runs.get(*at).cloned();
            let taken = chosen(&["site"], 0..2, at, at);
            assert_eq!(here(&taken).answer, Answer::True, "{:?}", here(&taken));
        }
    }

    #[test]
    fn what_no_run_has_all_rows_for_is_judged_by_several() {
        let part = |cache: &str| {
            let mut run = references::load("opteron-850-linux").unwrap();
            run.measurements
                .retain(|m| m.params.text("query_cache") == Some(cache));
            run
        };
        let cached = |runs: &[Run]| {
            let found = replay("mysql", &["mysql-scaling", "mysql-query-cache"], runs);
            found
                .conclusions
                .into_iter()
                .find(|c| c.key == "query_cache_widens_the_gap")
                .unwrap()
                .here
        };
        assert_eq!(
            cached(&[part("on")]).answer,
            Answer::NotMeasured,
            "nothing is known of the cache without what there is without it"
        );
        let both = cached(&[part("on"), part("off")]);
        assert_eq!(
            (both.answer, both.figure.as_str()),
            (
                Answer::True,
                "2700/s with the cache, 670/s without: 4.0 times; by rows of several runs"
            )
        );
    }

    #[test]
    fn what_stands_for_what_is_said_and_the_first_run_that_has_figures_is_taken() {
        let mut own = references::load("opteron-850-linux").unwrap();
        own.id = "own".into();
        for m in &mut own.measurements {
            if m.params.text("engine").is_some() {
                m.params = m.params.clone().with("engine", "mariadb");
            }
        }
        let found = replay("mysql-scaling", &["mysql-scaling"], &[Run::default(), own]);
        assert_eq!(found.tables[0].run.as_deref(), Some("own"));
        assert_eq!(
            found.tables[0].lines[0]
                .here
                .as_ref()
                .unwrap()
                .note
                .as_deref(),
            Some("engine mariadb stands for mysql")
        );
        let without = replay("all", &tables_of("all"), &[]);
        assert!(
            without
                .tables
                .iter()
                .all(|t| t.run.is_none() && t.lines.iter().all(|l| l.here.is_none()))
        );
        assert_eq!(without.conclusions.len(), conclusions::all().count());
        assert!(
            without
                .conclusions
                .iter()
                .all(|c| c.here.answer == Answer::NotMeasured)
        );
    }

    #[test]
    fn runs_are_taken_for_the_tables_that_none_before_them_has() {
        let tables = ["mysql-scaling", "lmbench-ipc"];
        let load = |name: &&str| references::load(name);
        let taken = |names: &[&'static str]| -> Vec<String> {
            chosen(&tables, names.iter().copied(), load, load)
                .into_iter()
                .map(|run| run.id)
                .collect()
        };
        // Not of the tables, unreadable, of both, of both again.
        assert_eq!(
            taken(&[
                "launch-10.1",
                "nothing",
                "opteron-850-linux",
                "opteron-850-linux"
            ]),
            ["opteron-850-linux"]
        );
        // Of one table, of both.
        assert_eq!(
            taken(&["xeon-3.6-linux", "opteron-850-linux", "opteron-850-linux"]),
            ["xeon-3.6-linux", "opteron-850-linux"]
        );
        // Of both again, and of Apache, which a conclusion on one of them is about as well.
        assert_eq!(
            taken(&["opteron-850-linux", "g5-2.5-linux"]),
            ["opteron-850-linux", "g5-2.5-linux"]
        );
    }

    #[test]
    fn the_run_with_most_of_a_table_has_the_column_and_an_average_is_made() {
        let mut part = references::load("opteron-850-linux").unwrap();
        part.measurements.retain(|m| m.probe == "syscall.null");
        part.id = "part".into();
        let whole = references::load("g5-2.5-linux").unwrap();
        let found = replay(
            "x",
            &["lmbench-syscall-signal"],
            &[part.clone(), whole.clone()],
        );
        assert_eq!(found.tables[0].run.as_deref(), Some("g5-2.5-linux"));
        let mut rest = whole;
        rest.measurements.retain(|m| m.probe != "syscall.null");
        let found = replay("x", &["lmbench-syscall-signal"], &[part, rest]);
        let null = found.tables[0]
            .lines
            .iter()
            .find(|l| l.what == "syscall.null")
            .unwrap();
        assert_eq!(
            null.here.as_ref().unwrap().note.as_deref(),
            Some("of the run part")
        );

        let mut modules = references::load("flops-g5-2.7-gcc-4.0").unwrap();
        modules
            .measurements
            .retain(|m| m.params.text("module").is_none());
        let found = replay("flops", &["flops"], std::slice::from_ref(&modules));
        let average = found.tables[0]
            .lines
            .iter()
            .find(|l| l.what.contains("average"))
            .unwrap();
        let here = average.here.as_ref().unwrap();
        assert_eq!(
            (here.estimate.value.round(), here.note.as_deref()),
            (1568.0, Some("mean of the eight modules"))
        );
    }

    #[test]
    fn the_systems_stand_in_the_documents_order() {
        let found = replay("lmbench-ipc", &["lmbench-ipc"], &[]);
        assert_eq!(
            found.tables[0].systems,
            [
                "g5-2.7-darwin",
                "g5-2.5-linux",
                "xeon-3.6-linux",
                "opteron-850-linux"
            ]
        );
        assert_eq!(
            found.tables[0].lines[0]
                .printed
                .iter()
                .flatten()
                .collect::<Vec<_>>(),
            ["9.496", "11.6", "9.909", "7.645"]
        );
    }

    #[test]
    fn rounds_are_lines() {
        let run = references::load("site-powermac-9500").unwrap();
        let found = replay("site", &["site"], std::slice::from_ref(&run));
        let table = &found.tables[0];
        assert_eq!((table.lines.len(), table.unit), (33, "ticks of 1/60 s"));
        assert_eq!(table.lines[8].printed[0].as_deref(), Some("509"));
        assert!((table.lines[8].here.as_ref().unwrap().estimate.value - 509.0).abs() < 1e-6);
    }
}
