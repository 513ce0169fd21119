//! Settings that records of before did not state with their rows, and that rows are aligned by today.
//!
//! A record that is read states them afterwards, so that old figures of a setting lie in one row with new ones of it:
//! what its server said of itself is on record with the load generator's account, and where it did not say, nothing but
//! the default could be set. What was set by the command is on record with that. Where neither tells a setting the row
//! stays as it is, and is known to leave it unstated ([`leaves_settings_unstated`]): that is no default.

use crate::params::{Param, Params};
use crate::run::Run;
use crate::said::Said;

/// The engine whose rows have [`SYNCHRONOUS`]. Versions of before let `synchronous=off` and `full` be one row.
const SQLITE: &str = "sqlite";
const SYNCHRONOUS: &str = "synchronous";

/// Beginning of what the load generator's account says of the server, as in
/// `the load generator; SQLite 3.50, synchronous=full`.
pub const DESCRIBED: &str = "the load generator; ";

const DATABASE: &str = "database";
const WEB: &str = "web";
const SITE: &str = "site";
const LAUNCH: &str = "launch";
/// Rows of the launch laboratory whose settings are stated.
const LAUNCHED: [&str; 2] = ["launch.time", "launch.sum"];

/// The parameter of a server that was started behind other words (`taskset -c 0`): those words.
pub const SERVER_PREFIX: &str = "server_prefix";
/// The parameter of data in a directory that the user named: the kind of its file system, never its path.
pub const DIR_FS: &str = "dir_fs";
/// Its value where the kind is not known.
pub const UNKNOWN: &str = "unknown";

/// What left [`LAUNCHED`] to the applications, and the speed of a throttled placement, by default in the versions that
/// did not state it.
const PRESSURE: &str = "0.6";
const THROTTLE: i64 = 4 << 20;

/// States them wherever a run has parameters of a step: by what its server said, else by the default; and by its
/// command. A run without a command is a side of a trial ([`Run::command`]), whose row is the other side's whatever was
/// planted: it stays as it is.
pub fn state(run: &mut Run) {
    let command = run.command.clone();
    let [_, subcommand, words @ ..] = command.as_slice() else {
        return;
    };
    let stated = Params::new().with(SYNCHRONOUS, told_synchronous(run).unwrap_or("full"));
    add(
        run,
        DATABASE,
        |params| params.text("engine") == Some(SQLITE),
        &stated,
    );
    // A comparison of two settings has rows of both under one command, so that nothing can be told of either.
    if subcommand != "run" {
        return;
    }
    let said = Said::of(words);
    if let Some(stated) = of_launch(run, &said) {
        add(
            run,
            LAUNCH,
            |params| params.get("placement").is_some() && params.get("state").is_none(),
            &stated,
        );
    }
    let own_server = said.value("url").is_some();
    if let Some(prefix) = said
        .option("--server-prefix")
        .filter(|_| !own_server)
        .and_then(prefix)
    {
        let stated = Params::new().with(SERVER_PREFIX, prefix);
        [DATABASE, WEB]
            .into_iter()
            .for_each(|workload| add(run, workload, |_| true, &stated));
    }
    // The directory that was named is the one that the record describes.
    if said.value("dir").is_some() && !own_server {
        let kind = Some(run.host.filesystem.kind.as_str())
            .filter(|kind| !kind.is_empty())
            .unwrap_or(UNKNOWN);
        let stated = Params::new().with(DIR_FS, kind);
        [DATABASE, SITE]
            .into_iter()
            .for_each(|workload| add(run, workload, |params| params.get("fs").is_none(), &stated));
    }
}

/// The words before a server's command as a row states them: without secrets; nothing where there are none.
pub fn prefix(words: &str) -> Option<String> {
    let joined = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = crate::secret::cut_words(std::iter::once(joined.as_str())).concat();
    (!cut.is_empty()).then_some(cut)
}

/// Whether a row leaves settings unstated that rows of its kind state today: an older record's, of which its command
/// tells nothing. Nobody knows that it has their defaults.
pub fn leaves_settings_unstated(probe: &str, params: &Params) -> bool {
    LAUNCHED.contains(&probe) && params.get("state").is_none()
}

/// Adds parameters to those of a workload that are meant, as far as they do not state them.
fn add(run: &mut Run, workload: &str, meant: impl Fn(&Params) -> bool, stated: &Params) {
    let rows = run
        .measurements
        .iter_mut()
        .filter(|m| m.probe.split('.').next() == Some(workload))
        .map(|m| &mut m.params);
    let observed = run
        .observations
        .iter_mut()
        .filter(|o| o.workload == workload)
        .map(|o| &mut o.params);
    let budgets = run
        .budgets
        .iter_mut()
        .filter(|b| b.workload == workload)
        .map(|b| &mut b.params);
    let paths = run
        .paths
        .iter_mut()
        .filter(|p| p.workload == workload)
        .map(|p| &mut p.params);
    let experiments = run
        .experiments
        .iter_mut()
        .filter(|e| e.workload == workload)
        .map(|e| &mut e.params);
    for params in rows
        .chain(observed)
        .chain(budgets)
        .chain(paths)
        .chain(experiments)
        .filter(|params| meant(params))
    {
        for (key, value) in stated.iter() {
            params
                .0
                .entry(key.to_owned())
                .or_insert_with(|| value.clone());
        }
    }
}

/// The settings of launched applications, where the command and what was observed tell them.
fn of_launch(run: &Run, said: &Said) -> Option<Params> {
    if !said.names.contains(&LAUNCH)
        || said.option("--watch").is_some()
        || matches!(said.value("state"), Some("after-boot" | "uptime"))
    {
        return None;
    }
    let paging = || {
        run.observations
            .iter()
            .filter(|o| o.workload == LAUNCH && o.observer == "paging")
    };
    // What was read of the applications' control group.
    let in_group = paging().any(|o| {
        o.totals
            .keys()
            .any(|name| name.starts_with("applications."))
    });
    let allowed = changed_the_system(run, said, in_group)?;
    let pressure = if allowed {
        said.value("pressure").unwrap_or(PRESSURE)
    } else {
        "none"
    };
    let mut params = Params::new()
        .with(
            "state",
            said.value("state")
                .unwrap_or(if allowed { "cold" } else { "warm" }),
        )
        .with("pressure", share(pressure));
    if pressure != "none" {
        paging().next()?;
        params = params.with(
            "pressure_by",
            said.value("pressure_by")
                .unwrap_or(if in_group { "limit" } else { "reserve" }),
        );
    }
    for key in ["swap_size", "throttle"] {
        let value = said
            .value(key)
            .map(Param::parse)
            .filter(|value| (key, value) != ("throttle", &Param::Int(THROTTLE)));
        params = value
            .into_iter()
            .fold(params, |params, value| params.with(key, value));
    }
    Some(if said.value("existing_swap") == Some("off") {
        params.with("existing_swap", "off")
    } else {
        params
    })
}

/// A share as a row states it, whichever way it was written (`0.60`).
pub fn share(text: &str) -> Param {
    text.parse::<f64>().map_or_else(
        |_| Param::from(text),
        |share| Param::parse(&share.to_string()),
    )
}

/// Whether a run of the launch laboratory was allowed to change the system and did; nothing where that cannot be told.
fn changed_the_system(run: &Run, said: &Said, in_group: bool) -> Option<bool> {
    let rows = || {
        run.measurements
            .iter()
            .filter(|m| LAUNCHED.contains(&m.probe.as_str()))
    };
    let swapped = rows().any(|m| {
        m.estimate.is_some()
            && m.params
                .text("placement")
                .is_some_and(|placement| placement != "none")
    });
    let refused = rows().any(|m| {
        m.reason
            .as_deref()
            .is_some_and(|reason| reason.starts_with("switching swap"))
    });
    match () {
        () if said.option("--allow-system-changes").is_none() || refused => Some(false),
        () if swapped || in_group => Some(true),
        () => None,
    }
}

/// What the server said; of accounts that disagree the first.
fn told_synchronous(run: &Run) -> Option<&str> {
    let accounts = run
        .observations
        .iter()
        .filter(|o| o.workload == DATABASE && o.params.text("engine") == Some(SQLITE));
    let mut settings = accounts
        .filter_map(|o| o.source.strip_prefix(DESCRIBED))
        .flat_map(|text| text.split(", "));
    settings.find_map(|part| part.strip_prefix(SYNCHRONOUS)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, Observation, fixture, load};

    fn run_of(engine: &str, server: Option<&str>) -> Run {
        let mut run = fixture::run();
        let params = Params::new().with("engine", engine).with("clients", 5);
        for m in &mut run.measurements {
            m.probe = "database.throughput".into();
            m.params = params.clone();
        }
        run.budgets = vec![Budget {
            workload: "database".into(),
            params: params.clone(),
            transactions: 10,
            seconds_per_transaction: 1e-3,
            parts: Vec::new(),
            unexplained: 0.0,
        }];
        run.observations = server
            .map(|text| Observation {
                workload: "database".into(),
                params: params.clone(),
                observer: "client".into(),
                source: format!("{DESCRIBED}{text}"),
                totals: std::collections::BTreeMap::new(),
                ..Observation::default()
            })
            .into_iter()
            .collect();
        run
    }

    #[test]
    fn sides_of_a_trial_stay_one_row_whatever_their_servers_say() {
        for told in [
            "SQLite 3.50, synchronous=normal",
            "SQLite 3.50, synchronous=full",
        ] {
            let side = Run {
                command: Vec::new(),
                ..run_of("sqlite", Some(told))
            };
            assert_eq!(read(&side), side);
        }
    }

    fn read(run: &Run) -> Run {
        load::from_slice(&serde_json::to_vec(run).unwrap(), "old").unwrap()
    }

    #[test]
    fn an_old_record_states_what_its_server_said_or_the_default() {
        let synchronous = |run: &Run| {
            run.measurements[0]
                .params
                .text("synchronous")
                .map(str::to_owned)
        };
        for (told, value) in [
            (
                Some("SQLite 3.50, journal_mode=wal, synchronous=off, page_size=4096"),
                "off",
            ),
            (Some("SQLite 3.50, journal_mode=wal"), "full"),
            (None, "full"),
        ] {
            let run = read(&run_of("sqlite", told));
            assert_eq!(synchronous(&run).as_deref(), Some(value), "{told:?}");
            let stated = |params: &Params| params.get("synchronous") == Some(&Param::from(value));
            assert!(run.measurements.iter().all(|m| stated(&m.params)));
            assert!(!run.budgets.is_empty() && run.budgets.iter().all(|b| stated(&b.params)));
            assert!(run.observations.iter().all(|o| stated(&o.params)));
            assert_eq!(read(&run), run, "and once");
        }
    }

    fn launched(command: &str, placement: &str) -> Run {
        let mut run = run_of("sqlite", None);
        for m in &mut run.measurements {
            (m.probe, m.params) = (
                "launch.time".into(),
                Params::new().with("app", "sh").with("placement", placement),
            );
        }
        run.budgets.clear();
        run.observations = vec![Observation {
            workload: "launch".into(),
            params: Params::new().with("placement", placement),
            observer: "paging".into(),
            totals: std::collections::BTreeMap::from([(
                "applications.major_faults".to_owned(),
                3.0,
            )]),
            ..Observation::default()
        }];
        run.command = command.split(' ').map(str::to_owned).collect();
        run
    }

    fn stated(run: &Run) -> String {
        read(run).measurements[0]
            .params
            .without(&["app", "placement"])
            .to_string()
    }

    #[test]
    fn launched_applications_state_what_their_command_set() {
        let free = "fingerpost run launch --allow-system-changes";
        assert_eq!(
            stated(&launched(free, "file")),
            "pressure=0.6 pressure_by=limit state=cold"
        );
        let all = format!(
            "{free} --set pressure=0.30 --set pressure_by=reserve --set state=warm --set swap_size=64M --set \
             throttle=1M --set existing_swap=off"
        );
        assert_eq!(
            stated(&launched(&all, "file")),
            "existing_swap=off pressure=0.3 pressure_by=reserve state=warm swap_size=64M throttle=1M"
        );
        assert_eq!(
            stated(&launched(
                &format!("{free} --set pressure=none --set throttle=4M"),
                "file"
            )),
            "pressure=none state=cold"
        );
        let run = read(&launched(free, "file"));
        assert_eq!(
            run.observations[0].params,
            Params::new()
                .with("placement", "file")
                .with("state", "cold")
                .with("pressure", "0.6")
                .with("pressure_by", "limit")
        );
        assert_eq!(read(&run), run, "and once");
        // Without leave nothing was limited, whatever was asked for.
        let mut none = launched("fingerpost run launch --set pressure=0.3", "none");
        none.observations[0].totals.clear();
        assert_eq!(stated(&none), "pressure=none state=warm");
    }

    #[test]
    fn what_the_command_does_not_tell_is_not_known() {
        let mut unclear = launched("fingerpost run launch --allow-system-changes", "none");
        unclear.observations.clear();
        for run in [
            unclear,
            launched(
                "fingerpost ab launch --a pressure=0.3 --b pressure=0.6",
                "file",
            ),
            launched("", "file"),
        ] {
            assert_eq!(stated(&run), "", "{:?}", run.command);
            let row = &read(&run).measurements[0];
            assert!(leaves_settings_unstated(&row.probe, &row.params));
        }
        let row = &read(&launched("fingerpost run launch", "file")).measurements[0];
        assert!(
            !leaves_settings_unstated(&row.probe, &row.params)
                && !leaves_settings_unstated("launch.pageins", &Params::new())
        );
        // Rows of a machine that was taken as it is state that, and nothing was set.
        let mut boot = launched("fingerpost run launch --set state=after-boot", "none");
        boot.measurements[0].params = boot.measurements[0]
            .params
            .clone()
            .with("state", "after-boot");
        assert_eq!(stated(&boot), "state=after-boot");
    }

    #[test]
    fn a_prefix_and_a_named_directory_are_told_by_the_command() {
        let mut old = run_of("mariadb", None);
        old.command = [
            "fingerpost",
            "run",
            "database",
            "--server-prefix",
            "taskset  -c 0",
            "--set",
            "dir=/srv/data",
        ]
        .map(str::to_owned)
        .to_vec();
        old.host.filesystem.kind = "xfs".into();
        let params = read(&old).measurements[0].params.clone();
        assert_eq!(
            (params.text(SERVER_PREFIX), params.text(DIR_FS)),
            (Some("taskset -c 0"), Some("xfs"))
        );
        assert!(
            read(&old).budgets[0].params.get(SERVER_PREFIX).is_some()
                && !params.to_string().contains("/srv")
        );
        old.host.filesystem.kind.clear();
        assert_eq!(
            read(&old).measurements[0].params.text(DIR_FS),
            Some(UNKNOWN)
        );
        // A server of the user's own was not started by us.
        old.command
            .extend(["--set".to_owned(), "url=mysql://127.0.0.1/x".to_owned()]);
        assert_eq!(
            read(&old).measurements[0].params,
            run_of("mariadb", None).measurements[0].params
        );
        let mut site = old.clone();
        site.command.truncate(7);
        site.measurements[0].probe = "site.round".into();
        site.measurements[0].params = Params::new().with("fs", "/mnt");
        site.measurements[1].probe = "site.round".into();
        let read = read(&site);
        assert_eq!(
            [0, 1].map(|at| read.measurements[at].params.get(DIR_FS).is_some()),
            [false, true]
        );
        assert!(
            prefix("env PGPASSWORD=hunter2 nice")
                .is_some_and(|p| !p.contains("hunter2") && p.ends_with("nice"))
        );
        assert_eq!(
            (prefix("  "), share("0.60"), share("1.0")),
            (None, Param::from("0.6"), Param::Int(1))
        );
    }

    #[test]
    fn what_is_stated_stays_and_other_engines_have_no_such_setting() {
        let mut stated = run_of("sqlite", Some("SQLite 3.50, synchronous=full"));
        stated.measurements[0].params = stated.measurements[0]
            .params
            .clone()
            .with("synchronous", "normal");
        assert_eq!(
            read(&stated).measurements[0].params.text("synchronous"),
            Some("normal")
        );
        let other = run_of("postgresql", Some("PostgreSQL 17, synchronous_commit=off"));
        assert_eq!(read(&other), other);
    }
}
