//! The database workload against real servers, started privately; the program itself is the load generator.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use fingerpost_record::{Param, Params};
use fingerpost_sys::child;
use fingerpost_undo::scratch::{Scratch, sweep_in};
use fingerpost_workloads::database::options::Options;
use fingerpost_workloads::database::{self, Database};
use fingerpost_workloads::desktop::{Desktop, Task};
use fingerpost_workloads::{Step, Workload, WorkloadError};
use libtest_mimic::{Arguments, Failed, Trial};

/// The first argument that makes this program a run that waits to be killed: then come the root of its scratch
/// directory and settings.
const VICTIM: &str = "--victim";

fn main() -> ExitCode {
    if let Some(status) = fingerpost_workloads::workers::dispatch() {
        return status;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|a| a == VICTIM) {
        return victim(Path::new(&args[1]), &args[2..]);
    }
    let trials = vec![
        trial("sqlite_reads_and_writes", sqlite_reads_and_writes),
        trial(
            "a_point_look_up_is_a_mix_of_its_own",
            a_point_look_up_is_a_mix_of_its_own,
        ),
        trial(
            "every_round_trip_is_stamped_while_it_is_asked_for",
            every_round_trip_is_stamped_while_it_is_asked_for,
        ),
        trial(
            "data_goes_where_the_user_wants_it_and_is_removed",
            data_goes_where_the_user_wants_it_and_is_removed,
        ),
        trial(
            "every_turn_of_a_desktops_tasks_is_accounted_for",
            every_turn_of_a_desktops_tasks_is_accounted_for,
        ),
        trial(
            "mariadb_with_each_storage_engine",
            mariadb_with_each_storage_engine,
        ),
        trial(
            "a_bad_variable_is_told_with_the_servers_own_words",
            a_bad_variable_is_told_with_the_servers_own_words,
        ),
        trial("postgresql_reads_and_writes", postgresql_reads_and_writes),
        trial(
            "words_before_the_servers_command_take_effect",
            words_before_the_servers_command_take_effect,
        ),
        trial(
            "a_command_that_is_missing_is_told_in_a_sentence",
            a_command_that_is_missing_is_told_in_a_sentence,
        ),
        trial(
            "an_unreachable_url_is_told_in_a_sentence",
            an_unreachable_url_is_told_in_a_sentence,
        ),
        trial(
            "a_mysql_server_of_ones_own_gets_a_database_and_loses_it",
            || own_server("mariadb"),
        ),
        trial(
            "a_postgres_server_of_ones_own_gets_a_database_and_loses_it",
            || own_server("postgresql"),
        ),
        trial(
            "a_dead_server_is_an_error_and_not_a_hang",
            a_dead_server_is_an_error_and_not_a_hang,
        ),
        trial("nothing_outlives_a_killed_run_of_sqlite", || {
            killed("sqlite")
        }),
        trial("nothing_outlives_a_killed_run_of_mariadb", || {
            killed("mariadb")
        }),
        trial("nothing_outlives_a_killed_run_of_postgresql", || {
            killed("postgresql")
        }),
    ];
    let mut arguments = Arguments::from_args();
    // The variable that Cargo's other test programs read themselves.
    arguments.test_threads = arguments
        .test_threads
        .or_else(|| std::env::var("RUST_TEST_THREADS").ok()?.parse().ok());
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(name: &str, run: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    Trial::test(name, run)
}

fn options(settings: &[(&str, &str)]) -> Result<Options, Failed> {
    let params = settings.iter().fold(Params::new(), |p, (key, value)| {
        p.with(key, Param::parse(value))
    });
    Ok(Options::from_settings(&params, 42)?)
}

/// Whether a server is here; without it a test is skipped, but fails where everything has to be tested.
fn here(options: &Options) -> Result<bool, Failed> {
    let missing = database::missing(options);
    if let Some(sentence) = &missing {
        fingerpost_testing::skipped(sentence);
    }
    Ok(missing.is_none())
}

/// As [`options`], where the server is here.
fn options_here(settings: &[(&str, &str)]) -> Result<Option<Options>, Failed> {
    let options = options(settings)?;
    Ok(here(&options)?.then_some(options))
}

/// However busy the machine is, as many turns are told as were due, and none before its time.
fn every_turn_of_a_desktops_tasks_is_accounted_for() -> Result<(), Failed> {
    let (_base, mut scratch) = scratch()?;
    let file = scratch.path().join("desktop-file");
    let mut desktop = Desktop::start(Path::new("/proc/self/exe"), &mut scratch)?;
    for _ in 0..2 {
        desktop.begin(Duration::ZERO, Duration::from_millis(500))?;
        let all = desktop.end()?;
        let due: Vec<(Task, u64)> = all
            .iter()
            .map(|(task, t)| (*task, t.latencies.iter().map(|(_, n)| n).sum()))
            .collect();
        assert_eq!(due, [(Task::Waker, 50), (Task::Exec, 10), (Task::Read, 50)]);
        for (task, turns) in all {
            assert_eq!((turns.failed, turns.why), (0, None), "{task:?}");
            let longest = turns.latencies.last().unwrap().0;
            assert!(
                turns.worst_ns > 0 && longest.abs_diff(turns.worst_ns) <= turns.worst_ns / 256 + 1,
                "{task:?}"
            );
        }
    }
    assert_eq!(fs::metadata(&file)?.len(), 4096);
    desktop.stop(&mut scratch)?;
    assert!(!file.exists());
    Ok(())
}

/// A directory with a short path that a server which was dropped to another user can pass through.
fn short_dir() -> Result<tempfile::TempDir, Failed> {
    let base = tempfile::Builder::new().prefix("fp").tempdir()?;
    fs::set_permissions(base.path(), PermissionsExt::from_mode(0o711))?;
    Ok(base)
}

/// A scratch directory and what it is in.
fn scratch() -> Result<(tempfile::TempDir, Scratch), Failed> {
    let base = short_dir()?;
    let scratch = Scratch::create_in(&base.path().join("r"))?;
    Ok((base, scratch))
}

/// What must hold of every step, whatever the machine's speed.
fn check(step: &Step) {
    assert!(step.transactions > 0);
    assert!(step.client.errors.is_empty(), "{:?}", step.client.errors);
    assert!(step.elapsed > Duration::ZERO);
    let recorded: u64 = step.latencies.iter().map(|(_, n)| n).sum();
    assert!(
        recorded.abs_diff(step.transactions) <= step.client.generators as u64,
        "{recorded} latencies, {}",
        step.transactions
    );
    assert!(step.latencies.is_sorted_by_key(|(ns, _)| *ns) && step.latencies[0].0 > 0);
    // In a closed loop no more time can be spent in transactions than the clients had.
    let busy: f64 = step
        .latencies
        .iter()
        .map(|(ns, n)| *ns as f64 * *n as f64 / 1e9)
        .sum();
    let longest = step
        .latencies
        .last()
        .map_or(0.0, |(ns, _)| *ns as f64 / 1e9);
    let had = step.client.generators as f64 * (step.elapsed.as_secs_f64() + longest);
    assert!(
        busy <= had * 1.01,
        "{busy} s in transactions, {had} s were to be had"
    );
    assert!(step.client.cpu_seconds > 0.0 && step.client.cpus > 0);
}

/// A step; a longer one where the disk was so busy with others' work that no transaction came to its end.
fn step(workload: &mut Database, params: &Params, length: Duration) -> Result<Step, Failed> {
    let mut length = length;
    loop {
        match workload.step(params, length) {
            Err(e)
                if e.to_string().contains("no transaction completed")
                    && length < Duration::from_secs(10) =>
            {
                length *= 4
            }
            other => return Ok(other?),
        }
    }
}

/// Starts, runs a short step of each number of clients, starts again, imports, stops; gives what the server was.
fn course(options: Options) -> Result<String, Failed> {
    let scale = u64::from(options.scale);
    let (_base, mut scratch) = scratch()?;
    let dir = scratch.path().to_owned();
    let mut workload = Database::new(options, &mut scratch);
    workload.start()?;
    for params in workload.steps() {
        let step = step(&mut workload, &params, Duration::from_millis(300))?;
        check(&step);
        assert_eq!(
            step.client.generators as i64,
            params.int("clients").unwrap()
        );
    }
    let first = workload.steps()[0].clone();
    // Each round of a run has another start, and rows that were written by those before keep their numbers.
    let starts = if first.text("mix") == Some("write") {
        3
    } else {
        1
    };
    let mut subjects = workload.subjects();
    for _ in 0..starts {
        let before = subjects;
        assert!(workload.renew()?);
        subjects = workload.subjects();
        assert!(!subjects.servers.is_empty() && !subjects.clients.is_empty());
        for pid in before.servers.iter().chain(&before.clients) {
            assert_eq!(
                child::start_time(*pid),
                None,
                "process {pid} of the start before is still there"
            );
        }
        // With the data that the first start had.
        check(&step(&mut workload, &first, Duration::from_millis(200))?);
    }
    let described = workload.described().to_owned();
    // Twice, because the first takes away what it brought.
    for _ in 0..2 {
        let imported = workload.import()?;
        assert_eq!(imported.rows, 36_000 * scale);
        assert!(
            imported.bytes > 5_000_000 * scale
                && imported.statements > 20
                && imported.took > Duration::ZERO,
            "{imported:?}"
        );
    }
    // And what is under load is as it was.
    check(&step(&mut workload, &first, Duration::from_millis(200))?);
    workload.stop();
    assert_eq!(workload.take_warnings(), Vec::<String>::new());
    for pid in subjects.servers.iter().chain(&subjects.clients) {
        assert_eq!(
            child::start_time(*pid),
            None,
            "process {pid} is still there"
        );
    }
    assert!(workload.subjects().servers.is_empty());
    drop(workload);
    let left: Vec<_> = fs::read_dir(&dir)?
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    Ok(described)
}

fn sqlite_reads_and_writes() -> Result<(), Failed> {
    let told = course(options(&[("clients", "1,7")])?)?;
    assert!(
        told.contains("journal_mode=wal, synchronous=full"),
        "{told}"
    );
    let told = course(options(&[
        ("clients", "1,7"),
        ("mix", "write"),
        ("synchronous", "off"),
    ])?)?;
    assert!(told.contains("synchronous=off"), "{told}");
    Ok(())
}

fn a_point_look_up_is_a_mix_of_its_own() -> Result<(), Failed> {
    course(options(&[
        ("clients", "2"),
        ("mix", "point"),
        ("scale", "2"),
    ])?)
    .map(drop)
}

/// The generator's own account holds every round trip of the step, no overlap on a connection, and nothing while it is
/// off.
fn every_round_trip_is_stamped_while_it_is_asked_for() -> Result<(), Failed> {
    for settings in [
        &[("mix", "write"), ("synchronous", "off")][..],
        &[("mix", "write"), ("engine", "mariadb")],
        &[("engine", "postgresql")],
    ] {
        let Some(options) = options_here(&[settings, &[("clients", "3")]].concat())? else {
            continue;
        };
        let embedded = options.engine.name() == "sqlite";
        let (_base, mut scratch) = scratch()?;
        let mut workload = Database::new(options, &mut scratch);
        workload.start()?;
        let stamps = workload.stamps().ok_or("no stamps")?;
        assert_eq!(stamps.writers(), 1);
        let params = workload.steps().remove(0);
        let length = Duration::from_millis(300);
        stamps.set(true);
        let step = workload.step(&params, length)?;
        stamps.set(false);
        let drained = stamps.drain();
        check(&workload.step(&params, length)?);
        assert!(stamps.drain().stamps.is_empty());
        workload.stop();
        if params.text("mix") == Some("write") {
            assert!(
                step.turns > 2 * step.transactions,
                "{} round trips, {} transactions",
                step.turns,
                step.transactions
            );
        } else {
            assert_eq!(step.turns, step.transactions);
        }
        let least = if embedded {
            step.transactions
        } else {
            step.turns
        };
        assert!(
            drained.lost == 0 && drained.stamps.len() as u64 >= least,
            "{} of {least}, {} lost",
            drained.stamps.len(),
            drained.lost
        );
        for connection in 0..3 {
            let own: Vec<_> = drained
                .stamps
                .iter()
                .filter(|s| s.connection == connection)
                .collect();
            assert!(!own.is_empty() && own.iter().all(|s| s.tid == own[0].tid));
            assert!(
                own.windows(2)
                    .all(|pair| pair[0].end <= pair[1].start + 1000),
                "round trips of one connection overlap"
            );
        }
    }
    Ok(())
}

fn data_goes_where_the_user_wants_it_and_is_removed() -> Result<(), Failed> {
    let base = tempfile::tempdir()?;
    let dir = base.path().to_string_lossy().into_owned();
    let (_root, mut scratch) = scratch()?;
    let mut workload = Database::new(options(&[("clients", "1"), ("dir", &dir)])?, &mut scratch);
    workload.start()?;
    assert_eq!(fs::read_dir(base.path())?.count(), 1);
    workload.stop();
    assert_eq!(fs::read_dir(base.path())?.count(), 0);
    drop(workload);
    let error = Database::new(options(&[("dir", "/nonexistent/x")])?, &mut scratch)
        .start()
        .unwrap_err();
    assert!(
        matches!(&error, WorkloadError::Setting(s) if s.contains("/nonexistent/x")),
        "{error}"
    );
    Ok(())
}

fn mariadb_with_each_storage_engine() -> Result<(), Failed> {
    for (storage, cache, mix) in [
        ("myisam", "on", "read"),
        ("innodb", "off", "write"),
        ("aria", "off", "read"),
    ] {
        let settings = [
            ("engine", "mariadb"),
            ("storage", storage),
            ("query_cache", cache),
            ("mix", mix),
            ("clients", "1,6"),
        ];
        let Some(options) = options_here(&settings)? else {
            return Ok(());
        };
        let told = course(options)?;
        assert!(
            told.contains("MariaDB") && told.contains(&format!("storage={storage}")),
            "{told}"
        );
        assert!(
            told.contains(&format!("query_cache_type={cache}")),
            "{told}"
        );
    }
    Ok(())
}

fn a_bad_variable_is_told_with_the_servers_own_words() -> Result<(), Failed> {
    for engine in ["mariadb", "postgresql"] {
        let options = options(&[("engine", engine), ("server.no_such_thing", "7")])?;
        if here(&options)? {
            let (_base, mut scratch) = scratch()?;
            let error = Database::new(options, &mut scratch)
                .start()
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("ended instead of serving") && error.contains("no_such_thing"),
                "{error}"
            );
        }
    }
    Ok(())
}

fn postgresql_reads_and_writes() -> Result<(), Failed> {
    for mix in ["read", "write"] {
        let settings = [
            ("engine", "postgresql"),
            ("mix", mix),
            ("clients", "1,6"),
            ("server.shared_buffers", "64MB"),
        ];
        let Some(options) = options_here(&settings)? else {
            return Ok(());
        };
        let told = course(options)?;
        assert!(
            told.contains("PostgreSQL")
                && told.contains("shared_buffers=64MB")
                && told.contains("fsync=on"),
            "{told}"
        );
    }
    Ok(())
}

fn words_before_the_servers_command_take_effect() -> Result<(), Failed> {
    let (_base, mut scratch) = scratch()?;
    let mut options = options(&[("clients", "1")])?;
    options.server_prefix = ["nice", "-n", "7"].map(str::to_owned).to_vec();
    let mut workload = Database::new(options, &mut scratch);
    workload.start()?;
    let pid = workload.subjects().servers[0];
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let nice = fingerpost_sys::procfs::process::Stat::parse(&stat).map(|s| s.nice);
    assert_eq!(nice, Some(7));
    Ok(())
}

fn a_command_that_is_missing_is_told_in_a_sentence() -> Result<(), Failed> {
    let (_base, mut scratch) = scratch()?;
    let mut options = options(&[("clients", "1")])?;
    options.server_prefix = vec!["/nonexistent/taskset".to_owned()];
    let error = Database::new(options, &mut scratch)
        .start()
        .unwrap_err()
        .to_string();
    assert!(error.contains("could not be started"), "{error}");
    Ok(())
}

fn an_unreachable_url_is_told_in_a_sentence() -> Result<(), Failed> {
    for url in [
        "mysql://root@localhost/x?socket=/nonexistent/s",
        "postgres://u@127.0.0.1:1/x",
    ] {
        let (_base, mut scratch) = scratch()?;
        let error = Database::new(options(&[("url", url)])?, &mut scratch)
            .start()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("“x” could not be made on the server: connect failed"),
            "{error}"
        );
    }
    Ok(())
}

/// A private server stands for the user's own.
fn own_server(engine: &str) -> Result<(), Failed> {
    let Some(private) = options_here(&[("engine", engine), ("clients", "1")])? else {
        return Ok(());
    };
    let (_base, mut outer) = scratch()?;
    let home = outer.path().to_owned();
    let mut server = Database::new(private, &mut outer);
    server.start()?;
    let url = match engine {
        "mariadb" => {
            format!(
                "mysql://root@localhost/bench?socket={}/database-mariadb-0/run/server.sock",
                home.display()
            )
        }
        _ => format!(
            "postgres://fingerpost@localhost/bench?socket={}/database-postgresql-0/run/.s.PGSQL.5432",
            home.display()
        ),
    };
    for _ in 0..2 {
        let (_base, mut scratch) = scratch()?;
        let mut own = Database::new(options(&[("url", &url), ("clients", "3")])?, &mut scratch);
        own.start()?;
        let params = own.steps()[0].clone();
        check(&own.step(&params, Duration::from_millis(200))?);
        // What exists is refused, and left alone: the run that it belongs to goes on.
        let (_second_base, mut second_scratch) = self::scratch()?;
        let refused = Database::new(options(&[("url", &url)])?, &mut second_scratch)
            .start()
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("exists on the server already"),
            "{refused}"
        );
        assert!(!own.renew()?, "a server of one's own is not started again");
        check(&own.step(&params, Duration::from_millis(200))?);
        // The second time round proves that the first one dropped it.
        own.stop();
        assert_eq!(own.take_warnings(), Vec::<String>::new());
    }
    killed_with_own_server(&url)?;
    server.stop();
    Ok(())
}

/// After kill -9 of the conductor the guard drops the database, so that it can be made again.
fn killed_with_own_server(url: &str) -> Result<(), Failed> {
    let base = short_dir()?;
    let (mut victim, _) = start_victim(base.path(), &[&format!("url={url}")])?;
    victim.kill()?;
    victim.wait()?;
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let (_base, mut scratch) = scratch()?;
        let mut next = Database::new(options(&[("url", url), ("clients", "1")])?, &mut scratch);
        match next.start() {
            Ok(()) => return Ok(()),
            Err(e) if Instant::now() > deadline => return Err(e.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn a_dead_server_is_an_error_and_not_a_hang() -> Result<(), Failed> {
    let Some(options) = options_here(&[("engine", "mariadb"), ("clients", "2")])? else {
        return Ok(());
    };
    let (_base, mut scratch) = scratch()?;
    let mut workload = Database::new(options, &mut scratch);
    workload.start()?;
    let params = workload.steps()[0].clone();
    child::signal_group(workload.subjects().servers[0], 9)?;
    let error = workload
        .step(&params, Duration::from_millis(200))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("could not connect") || error.contains("no transaction succeeded"),
        "{error}"
    );
    Ok(())
}

/// Starts the workload, says which processes it has, and waits to be killed.
fn victim(root: &Path, settings: &[String]) -> ExitCode {
    let settings: Vec<(&str, &str)> = settings.iter().filter_map(|s| s.split_once('=')).collect();
    let (Ok(options), Ok(mut scratch)) = (options(&settings), Scratch::create_in(root)) else {
        return ExitCode::FAILURE;
    };
    let mut workload = Database::new(options, &mut scratch);
    if let Err(e) = workload.start() {
        eprintln!("{e}");
        return ExitCode::FAILURE;
    }
    let subjects = workload.subjects();
    let pids: Vec<String> = subjects
        .servers
        .iter()
        .chain(&subjects.clients)
        .map(i32::to_string)
        .collect();
    println!("{}", pids.join(" "));
    let params = workload.steps()[0].clone();
    // Killed in the middle of it.
    let _ = workload.step(&params, Duration::from_secs(600));
    ExitCode::FAILURE
}

fn start_victim(base: &Path, settings: &[&str]) -> Result<(Child, Vec<i32>), Failed> {
    let mut victim = Command::new("/proc/self/exe")
        .arg(VICTIM)
        .arg(base.join("r"))
        .args(settings)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(victim.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
    let pids: Vec<i32> = line
        .split_whitespace()
        .filter_map(|p| p.parse().ok())
        .collect();
    if pids.is_empty() {
        let status = victim.wait()?;
        return Err(format!("the run to be killed did not start: {status}").into());
    }
    Ok((victim, pids))
}

fn killed(engine: &str) -> Result<(), Failed> {
    if !here(&options(&[("engine", engine)])?)? {
        return Ok(());
    }
    let base = short_dir()?;
    let (mut victim, pids) =
        start_victim(base.path(), &[&format!("engine={engine}"), "mix=write"])?;
    let started: Vec<(i32, u64)> = pids
        .iter()
        .filter_map(|pid| Some((*pid, child::start_time(*pid)?)))
        .collect();
    assert_eq!(started.len(), pids.len());
    let segment = shared_memory_id(base.path());
    assert_eq!(segment.is_some(), engine == "postgresql");
    victim.kill()?;
    victim.wait()?;
    let root = base.path().join("r");
    let told = sweep_in(&root);
    assert!(
        told.iter()
            .any(|s| s.contains("removed the work directory")),
        "{told:?}"
    );
    let left: Vec<PathBuf> = fs::read_dir(&root)?
        .flatten()
        .map(|e| e.path())
        .filter(|p| !p.ends_with("control"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let deadline = Instant::now() + Duration::from_secs(60);
    for (pid, start) in started {
        while child::start_time(pid) == Some(start) {
            assert!(Instant::now() < deadline, "process {pid} is still there");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    if let Some(id) = segment {
        while segments().contains(&id) {
            assert!(
                Instant::now() < deadline,
                "segment {id} of shared memory is still there"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(())
}

/// The segment of System V shared memory that the PostgreSQL server below this directory has, from its own note.
fn shared_memory_id(base: &Path) -> Option<u64> {
    let run = fs::read_dir(base.join("r"))
        .ok()?
        .flatten()
        .map(|e| e.path())
        .find(|p| !p.ends_with("control"))?;
    let note = fs::read_to_string(run.join("database-postgresql-0/data/postmaster.pid")).ok()?;
    note.lines().nth(6)?.split_whitespace().nth(1)?.parse().ok()
}

/// Every segment on the machine.
fn segments() -> Vec<u64> {
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    text.lines()
        .skip(1)
        .filter_map(|line| line.split_ascii_whitespace().nth(1)?.parse().ok())
        .collect()
}
