//! `compare --settle`: where several things differ between two sides, each is measured by itself here, in pairs, all
//! else as on the base side.

use std::sync::atomic::{AtomicBool, Ordering};

use fingerpost_compare::changes::{Change, Kind};
use fingerpost_compare::settle::{Answer, Settled};
use fingerpost_compare::{Comparison, Row, Side};
use fingerpost_record::text::{clean_short, counted};
use fingerpost_record::{Params, Profile, Run};
use fingerpost_report::Format;

use crate::ab::{labs, pair};
use crate::commands::ab::{self, Args};
use crate::exit::{self, say, usage};

mod setting;
mod trusted;

use setting::{by_the_user, is_unstated, key_of, no_setting, of_rows};

/// Changes that are measured at most: those of the rows that differ most.
const MOST: usize = 6;
/// Seconds for a change of probes' rows: some hundred pairs.
const USUAL: f64 = 60.0;
/// Seconds for a change of a lab whose sides take turns stretch by stretch: at least seven pairs of each step.
const OF_STRETCHES: f64 = 120.0;
/// Turns of another lab for each side at the least: three of the query cache left 0.36 to 19.83 times
/// (`bench/RESULTS.md`).
const TURNS: usize = 6;
/// Seconds of a turn. In the 6 s of those three a database, which was started anew each time, had but its shortest
/// steps, right after a start.
const OF_TURN: f64 = 20.0;

/// How to settle.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// With --settle: seconds for each change [default: 60; of a lab that loads a server 120, of another 240]
    #[arg(long, value_name = "SECONDS", requires = "settle", value_parser = budget)]
    pub budget: Option<f64>,
    /// With --settle: allow changes of the system (placements of swap); every change is undone
    #[arg(long, requires = "settle")]
    pub allow_system_changes: bool,
    /// With --settle: a further setting of what is measured (such as manifest=FILE for `launch`), or one that a record
    /// may not choose: a program, a file, code that is loaded
    #[arg(long, value_name = "KEY=VALUE", requires = "settle")]
    pub set: Vec<String>,
    /// No progress, no notes
    #[arg(short, long)]
    pub quiet: bool,
}

/// Reads seconds for a change.
fn budget(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().map_err(|e| e.to_string())?;
    if (5.0..1e5).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("give 5 to 99999 seconds".into())
    }
}

/// A pair that is to be measured: what differs, the row to judge it by, and what `ab` is asked for.
struct Pair<'a> {
    change: &'a Change,
    row: &'a Row,
    args: Args,
}

/// Says why these sides cannot be measured here, if so.
pub fn refused(base: &Side, new: &Side, comparison: &Comparison) -> anyhow::Result<()> {
    for (label, side) in [("BASE", base), ("NEW", new)] {
        if side.imported || side.info.source.is_some() {
            return usage(format!(
                "{label} ({}) are published or imported figures; --settle measures both sides' settings here, which \
                 needs two runs of \
                 this tool: compare without it, or see `fingerpost replay` for published tables",
                side.info.name
            ));
        }
    }
    let here = rustix::system::uname();
    let here = here.nodename().to_string_lossy();
    let of = |side: &Side| {
        side.host
            .hostname
            .split('[')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    if [base, new].iter().all(|side| of(side) != *here) {
        return usage(format!(
            "neither side was measured on this machine ({here}), but on {} and {}; run --settle there",
            of(base),
            of(new)
        ));
    }
    if settable(comparison).next().is_none() {
        return usage(
            "nothing that --settle could set differs between the sides: no parameter that all rows of a side share, no \
             version and no \
             setting of a server",
        );
    }
    Ok(())
}

/// What was changed that a setting can change: not the machine that a load came from.
fn settable(comparison: &Comparison) -> impl Iterator<Item = &Change> {
    comparison
        .changes
        .iter()
        .filter(|change| change.kind != Kind::Client)
}

/// Measures each change by itself. What cannot be measured is told with its reason; an interrupt ends with what is
/// known until then.
pub fn settle(comparison: &Comparison, options: &Options, stop: &AtomicBool) -> Vec<Settled> {
    let all: Vec<_> = settable(comparison)
        .take(MOST)
        .map(|change| (change, planned(comparison, change, options)))
        .collect();
    let times: Vec<f64> = all
        .iter()
        .filter_map(|(_, pair)| pair.as_ref().ok()?.args.budget)
        .collect();
    if times.len() > 1 && !options.quiet {
        let in_all = about(times.iter().sum());
        say(&format!(
            "{} are measured, each by itself: {in_all} in all",
            counted(times.len() as u64, "change")
        ));
    }
    let mut settled = Vec::new();
    for (change, pair) in all {
        settled.push(match pair {
            Ok(_) if stop.load(Ordering::Relaxed) => {
                Settled::not_done(change, None, "it was interrupted before".into())
            }
            Ok(pair) => measured(&pair, options, stop),
            Err((row, reason)) => Settled::not_done(change, row, reason),
        });
    }
    settled
}

/// Seconds for a change, and the turns that each side of a lab gets at the least.
fn time(given: Option<f64>, lab: Option<&fingerpost_labs::Lab>) -> (f64, usize) {
    match (given, lab) {
        (Some(seconds), _) => (seconds, labs::LEAST_TURNS),
        (None, Some(lab)) if lab.takes_turns => (OF_STRETCHES, labs::LEAST_TURNS),
        (None, Some(_)) => (2.0 * OF_TURN * TURNS as f64, TURNS),
        (None, None) => (USUAL, labs::LEAST_TURNS),
    }
}

/// The pair for a change, or why there is none.
fn planned<'a>(
    comparison: &'a Comparison,
    change: &'a Change,
    options: &Options,
) -> Result<Pair<'a>, (Option<&'a Row>, String)> {
    let row = target(comparison, change)
        .ok_or((None, "no row that it concerns is on both sides".to_owned()))?;
    let lab =
        fingerpost_labs::courses().find(|lab| lab.rows.iter().any(|(of, _)| of.probe == row.probe));
    if lab.is_none() && trusted::known(&row.probe).is_none() {
        return Err((Some(row), "nothing here measures this row".to_owned()));
    }
    let setting =
        |what: &str| lab.map_or_else(|| Some(of_rows(what).to_owned()), |lab| key_of(lab, what));
    let name = lab.map_or("it", |lab| lab.name);
    let key = setting(&change.what).ok_or_else(|| (Some(row), no_setting(&change.what, name)))?;
    let others =
        settable(comparison).filter(|other| other.what != change.what && other.concerns(row));
    let stated = row
        .params
        .iter()
        .map(|(k, v)| (k.to_owned(), v.to_string()));
    let both = stated.chain(others.map(|other| (other.what.clone(), other.base.clone())));
    let both = both.filter(|(key, value)| !is_unstated(of_rows(key), value));
    // What a row states and no setting takes (the application of a launch) is what it is measured at.
    let told = |k: &str| setting(k).filter(|key| lab.is_none() || key == k || key == of_rows(k));
    let named = |key: &str| {
        options
            .set
            .iter()
            .any(|pair| pair.split_once('=').is_some_and(|(k, _)| k == key))
    };
    let mut set: Vec<String> = Vec::new();
    for (k, v) in both {
        // Without it the pair would be of another server, or of another disk.
        if let Some((what, setting)) =
            by_the_user(&k).filter(|(_, setting)| !named(setting.trim_end_matches('=')))
        {
            return Err((
                Some(row),
                format!(
                    "{what} ({v}), which a record may not choose: fingerpost ab {name} with {setting}… measures it"
                ),
            ));
        }
        let Some(key) = told(&k).filter(|key| !named(key)) else {
            continue;
        };
        trusted::taken(lab, &row.probe, &key, &v)
            .map_err(|why| (Some(row), why + &trusted::allowed_by(&key)))?;
        set.push(format!("{key}={v}"));
    }
    set.extend(options.set.iter().cloned());
    let measured = lab.map_or(row.probe.as_str(), |lab| lab.name);
    let side = |value: &str| -> Result<Vec<String>, (Option<&'a Row>, String)> {
        if is_unstated(&key, value) {
            return Ok(Vec::new());
        }
        trusted::taken(lab, &row.probe, &key, value)
            .map_err(|why| (Some(row), why + &trusted::measured_by(measured, &key)))?;
        Ok(vec![format!("{key}={value}")])
    };
    let (budget, least_turns) = time(options.budget, lab);
    let args = Args {
        name: measured.to_owned(),
        a: side(&change.base)?,
        b: side(&change.new)?,
        set,
        profile: Profile::Quick,
        budget: Some(budget),
        least_turns,
        threshold: comparison.threshold,
        seed: None,
        allow_system_changes: options.allow_system_changes,
        format: Format::JSON,
        quiet: options.quiet,
    };
    Ok(Pair { change, row, args })
}

/// The row that a change concerns and that differs most.
fn target<'a>(comparison: &'a Comparison, change: &Change) -> Option<&'a Row> {
    let size = |row: &&Row| row.log().map_or(0.0, f64::abs);
    comparison
        .rows
        .iter()
        .filter(|row| change.concerns(row) && row.ratio.is_some())
        .max_by(|a, b| size(a).total_cmp(&size(b)))
}

fn measured(pair: &Pair, options: &Options, stop: &AtomicBool) -> Settled {
    let not_done =
        |e: anyhow::Error| Settled::not_done(pair.change, Some(pair.row), exit::told(&e));
    if !options.quiet {
        let of = format!("{} {}", pair.row.probe, pair.row.params);
        let time = pair
            .args
            .budget
            .map_or_else(String::new, |seconds| format!(": {}", about(seconds)));
        let turns = if pair.args.least_turns == TURNS {
            format!(", longer where {TURNS} turns a side need it")
        } else {
            String::new()
        };
        say(&format!(
            "measuring {} alone, by {}{time}{turns}",
            pair.change.words(),
            of.trim_end()
        ));
    }
    let (mut runs, alone) = match ab::plan_pair(&pair.args)
        .and_then(|planned| ab::take_pair(&pair.args, &planned, stop))
    {
        Ok(measured) => measured,
        Err(e) => return not_done(e),
    };
    let Some(row) = same_row(&alone, pair.row) else {
        let of_app = pair.row.params.get("app").is_some();
        let hint = if of_app {
            "; if the applications were named by a manifest, add --set manifest=FILE"
        } else {
            ""
        };
        return not_done(anyhow::anyhow!(
            "the pair has no row {} {}{hint}",
            pair.row.probe,
            pair.row.params
        ));
    };
    // By the command alone, which is the comparison's, the two could not be told apart.
    for (run, value) in runs.iter_mut().zip([&pair.change.base, &pair.change.new]) {
        let label = format!("{}, {}={value}", pair.args.name, pair.change.what);
        run.label = Some(clean_short(&label, fingerpost_record::run::LONGEST_LABEL));
    }
    let kept = pair::keep(&runs);
    if let Err(error) = &kept {
        say(&format!(
            "the runs of {} are not kept: {error}",
            pair.change.what
        ));
    }
    let tried = pairs_of(&runs[0], row);
    let ids = if kept.is_ok() {
        runs.map(|run| run.id).to_vec()
    } else {
        Vec::new()
    };
    let settled = Settled::judged(pair.change, pair.row, row, ids);
    let unresolved = settled.answer == Answer::Unresolved;
    let why = unresolved.then(|| {
        format!(
            "it was measured {} a side; more time, by --budget, may tell",
            counted(tried as u64, "time")
        )
    });
    Settled {
        reason: why,
        ..settled
    }
}

/// A time as it is told before.
fn about(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("about {seconds:.0} s")
    } else {
        format!("about {:.0} min", seconds / 60.0)
    }
}

/// How often a row was measured on each side.
fn pairs_of(run: &Run, row: &Row) -> usize {
    let same = |params: &Params| row.params.iter().all(|(k, v)| params.get(k) == Some(v));
    run.measurements
        .iter()
        .find(|m| m.probe == row.probe && same(&m.params))
        .map_or(0, |m| m.processes.len())
}

/// The row of the pair that is the sides' row: all that both state is the same.
fn same_row<'a>(alone: &'a Comparison, row: &Row) -> Option<&'a Row> {
    let agree = |other: &Params| {
        other
            .iter()
            .all(|(k, v)| row.params.get(k).is_none_or(|of_row| of_row == v))
    };
    alone
        .rows
        .iter()
        .find(|r| r.probe == row.probe && agree(&r.params) && r.ratio.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_compare::compare;
    use fingerpost_record::unstated::{DIR_FS, SERVER_PREFIX};
    use fingerpost_record::{Better, Estimate, Process, Run, Unit};

    fn run(params: Params, per_second: f64) -> Run {
        let probe = "database.throughput";
        let mut row =
            fingerpost_record::fixture::row(probe, params, Unit::PerSecond, Better::Higher);
        row.estimate = Some(Estimate {
            value: per_second,
            low: per_second * 0.99,
            high: per_second * 1.01,
            confidence: 0.95,
        });
        row.processes = (0..9)
            .map(|i| Process {
                value: Some(per_second * (1.0 + 0.001 * f64::from(i))),
                ..Process::default()
            })
            .collect();
        Run {
            measurements: vec![row],
            ..Run::default()
        }
    }

    fn options() -> Options {
        Options {
            budget: None,
            allow_system_changes: false,
            set: Vec::new(),
            quiet: true,
        }
    }

    #[test]
    fn one_thing_is_changed_and_all_else_is_as_on_the_base_side() {
        let common = Params::new()
            .with("engine", "mariadb")
            .with("mix", "read")
            .with("clients", 8);
        let base = run(
            common
                .clone()
                .with("query_cache", "off")
                .with("storage", "innodb"),
            100.0,
        );
        let new = run(
            common.with("query_cache", "on").with("storage", "aria"),
            300.0,
        );
        let comparison = compare(&[base], &[new], &Default::default());
        let changed: Vec<&str> = comparison.changes.iter().map(|c| c.what.as_str()).collect();
        assert_eq!(changed, ["query_cache", "storage"]);
        let pair = planned(&comparison, &comparison.changes[0], &options())
            .ok()
            .unwrap();
        assert_eq!(
            (pair.args.name.as_str(), &pair.args.a[..], &pair.args.b[..]),
            (
                "database",
                &["query_cache=off".into()][..],
                &["query_cache=on".into()][..]
            )
        );
        let mut set = pair.args.set.clone();
        set.sort();
        assert_eq!(
            set,
            ["clients=8", "engine=mariadb", "mix=read", "storage=innodb"]
        );
    }

    #[test]
    fn a_launch_is_settled_with_its_rows_memory_and_caches() {
        let launch = |pressure: &str, placement: &str, seconds: f64| {
            let params = Params::new()
                .with("app", "sh")
                .with("placement", placement)
                .with("state", "cold")
                .with("pressure", pressure);
            let mut of = run(params.with("swap_size", 64 << 20), seconds);
            of.measurements[0].probe = "launch.time".into();
            of
        };
        let planned_of = |base: Run, new: Run| {
            let comparison = compare(&[base], &[new], &Default::default());
            let pair = planned(&comparison, &comparison.changes[0], &options())
                .ok()
                .unwrap();
            (
                pair.args.a.clone(),
                pair.args.b.clone(),
                pair.args.set.clone(),
            )
        };
        let of = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        // Without a limit is a setting like another; unset it would be the default, which is one.
        let (a, b, set) = planned_of(launch("none", "file", 1e9), launch("none", "zram", 2e9));
        assert_eq!((a, b), (of(&["placements=file"]), of(&["placements=zram"])));
        assert_eq!(set, ["pressure=none", "state=cold", "swap_size=67108864"]);
        let (a, b, set) = planned_of(launch("none", "none", 1e9), launch("0.6", "none", 2e9));
        assert_eq!((a, b), (of(&["pressure=none"]), of(&["pressure=0.6"])));
        assert_eq!(set, ["placements=none", "state=cold", "swap_size=67108864"]);
    }

    #[test]
    fn what_only_the_user_may_choose_is_not_left_out_in_silence() {
        let of = |key: &str, value: &str, cache: &str, rate: f64| {
            run(
                Params::new()
                    .with("engine", "mariadb")
                    .with("clients", 8)
                    .with("query_cache", cache)
                    .with(key, value),
                rate,
            )
        };
        for (key, value, setting) in [
            (SERVER_PREFIX, "taskset -c 0", "server-prefix=…"),
            (DIR_FS, "xfs", "dir=…"),
        ] {
            // It is the same on both sides: without it the pair would be of something else.
            let c = compare(
                &[of(key, value, "off", 100.0)],
                &[of(key, value, "on", 300.0)],
                &Default::default(),
            );
            let (_, why) = planned(&c, &c.changes[0], &options()).err().unwrap();
            assert!(why.contains(value) && why.contains(setting), "{why}");
            // It is the change itself.
            let c = compare(
                &[of(key, value, "off", 100.0)],
                &[of("query_cache", "off", "off", 300.0)],
                &Default::default(),
            );
            let change = c.changes.iter().find(|change| change.what == key).unwrap();
            assert_eq!(
                (change.base.as_str(), change.new.as_str()),
                (value, "default")
            );
            let (_, why) = planned(&c, change, &options()).err().unwrap();
            assert!(
                why.contains("a record may not choose") && why.contains(setting),
                "{why}"
            );
        }
        let c = compare(
            &[of(DIR_FS, "xfs", "off", 100.0)],
            &[of(DIR_FS, "xfs", "on", 300.0)],
            &Default::default(),
        );
        let with = Options {
            set: vec!["dir=/srv".into()],
            ..options()
        };
        assert!(
            planned(&c, &c.changes[0], &with)
                .ok()
                .unwrap()
                .args
                .set
                .contains(&"dir=/srv".to_owned())
        );
    }

    #[test]
    fn a_lab_gets_the_time_that_its_turns_need_unless_given_one() {
        let lab = |name: &str| fingerpost_labs::courses().find(|lab| lab.name == name);
        assert_eq!(
            [lab("database"), lab("launch"), None].map(|lab| time(None, lab)),
            [(120.0, 3), (240.0, 6), (60.0, 3)]
        );
        assert_eq!(
            [lab("launch"), None].map(|lab| time(Some(10.0), lab)),
            [(10.0, 3); 2]
        );
        let of = |cache: &str, rate: f64| {
            run(
                Params::new().with("clients", 8).with("query_cache", cache),
                rate,
            )
        };
        let comparison = compare(&[of("off", 100.0)], &[of("on", 300.0)], &Default::default());
        let pair = planned(&comparison, &comparison.changes[0], &options())
            .ok()
            .unwrap();
        assert_eq!((pair.args.budget, pair.args.least_turns), (Some(120.0), 3));
        // One row that the pair has, without what differs by design.
        assert_eq!(
            pairs_of(
                &of("off", 100.0),
                &compare(&[of("off", 1.0)], &[of("off", 1.0)], &Default::default()).rows[0]
            ),
            9
        );
    }

    #[test]
    fn another_compiler_is_set_by_the_name_of_its_setting() {
        let flops = |compiler: &str, rate: f64| {
            let mut of = run(
                Params::new()
                    .with("compiler", compiler)
                    .with("cflags", "-O2")
                    .with("module", 1),
                rate,
            );
            of.measurements[0].probe = "cpu.flops".into();
            of
        };
        let comparison = compare(
            &[flops("gcc 12.2.0", 1e9)],
            &[flops("clang 14.0.6", 2e9)],
            &Default::default(),
        );
        let pair = planned(&comparison, &comparison.changes[0], &options())
            .ok()
            .unwrap();
        assert_eq!(
            (&pair.args.a[..], &pair.args.b[..]),
            (
                &["cc=gcc 12.2.0".to_owned()][..],
                &["cc=clang 14.0.6".to_owned()][..]
            )
        );
        assert_eq!(
            (
                pair.args.name.as_str(),
                pair.args.set.contains(&"module=1".to_owned())
            ),
            ("cpu.flops", true)
        );
    }

    #[test]
    fn a_record_chooses_no_program_and_the_user_does() {
        let flops = |compiler: &str, rate: f64| {
            let mut of = run(
                Params::new()
                    .with("compiler", compiler)
                    .with("cflags", "-O2")
                    .with("module", 1),
                rate,
            );
            of.measurements[0].probe = "cpu.flops".into();
            of
        };
        let comparison = compare(
            &[flops("/tmp/compiler", 1e9)],
            &[flops("clang 14.0.6", 2e9)],
            &Default::default(),
        );
        let (_, why) = planned(&comparison, &comparison.changes[0], &options())
            .err()
            .unwrap();
        assert!(
            why.contains("a record may not choose cc=/tmp/compiler"),
            "{why}"
        );

        let launch = |placement: &str, seconds: f64| {
            let mut of = run(
                Params::new()
                    .with("app", "own")
                    .with("placement", placement),
                seconds,
            );
            of.measurements[0].probe = "launch.time".into();
            of
        };
        let comparison = compare(
            &[launch("file", 1e9)],
            &[launch("zram", 2e9)],
            &Default::default(),
        );
        let with = Options {
            set: vec!["manifest=apps.toml".into()],
            ..options()
        };
        let pair = planned(&comparison, &comparison.changes[0], &with)
            .ok()
            .unwrap();
        assert_eq!(
            (&pair.args.a[..], &pair.args.set[..]),
            (
                &["placements=file".to_owned()][..],
                &["manifest=apps.toml".to_owned()][..]
            )
        );
    }

    #[test]
    fn sides_that_cannot_be_measured_are_refused_with_advice() {
        let side = |hostname: &str| {
            let mut of = run(Params::new().with("clients", 8), 100.0);
            of.host.hostname = hostname.into();
            Side::of(&[of])
        };
        let elsewhere = [side("far-away.example"), side("far-away.example")];
        let comparison = compare(
            &[run(Params::new(), 1.0)],
            &[run(Params::new(), 1.0)],
            &Default::default(),
        );
        let said = refused(&elsewhere[0], &elsewhere[1], &comparison)
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("neither side was measured on this machine"),
            "{said}"
        );
        let here = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let said = refused(&side(&here), &elsewhere[1], &comparison)
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("nothing that --settle could set differs"),
            "{said}"
        );
        let imported = Side {
            imported: true,
            ..side(&here)
        };
        assert!(
            refused(&imported, &elsewhere[1], &comparison)
                .unwrap_err()
                .to_string()
                .contains("published or imported")
        );
    }
}
