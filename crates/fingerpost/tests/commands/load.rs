//! `fingerpost load` on one machine and `explain` on another, end to end: two network namespaces with a cable between
//! them stand for the two machines. Both vanish with the processes that hold them, which end when this one does.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{Home, Said, until};
use serde_json::Value;

const SERVER: &str = "10.231.16.1";
const CLIENT: &str = "10.231.16.2";
const PASSWORD: &str = "not-for-anybodys-eyes-16";

/// A network namespace, held by a shell that waits for the end of its input.
struct Namespace {
    holder: Child,
}

impl Namespace {
    fn new() -> Namespace {
        let shell = "ip link set lo up && echo up && read -r _";
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", shell])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "up\n");
        Namespace { holder }
    }

    /// A command that runs within it.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--net", "-t", &self.holder.id().to_string(), "--"])
            .arg(program.as_ref());
        command
    }

    #[track_caller]
    fn ip(&self, words: &str) {
        let done = self.command("ip").args(words.split(' ')).output().unwrap();
        assert!(
            done.status.success(),
            "ip {words}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Ends what a test started.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server's machine and the client's; nothing where this user may not make them, or a tool is missing.
fn machines(tools: &[&str]) -> Option<(Namespace, Namespace)> {
    let found = |tool: &&str| {
        ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/sbin", "/bin"]
            .iter()
            .any(|dir| Path::new(dir).join(tool).exists())
    };
    let missing: Vec<&&str> = ["ip", "nsenter", "unshare"]
        .iter()
        .chain(tools)
        .filter(|tool| !found(tool))
        .collect();
    if !missing.is_empty() || !rustix::process::geteuid().is_root() {
        fingerpost_testing::skipped(format_args!("needs root and {missing:?}"));
        return None;
    }
    let (server, client) = (Namespace::new(), Namespace::new());
    server.ip(&format!(
        "link add cable0 type veth peer name cable1 netns {}",
        client.holder.id()
    ));
    for (machine, device, address) in [(&server, "cable0", SERVER), (&client, "cable1", CLIENT)] {
        machine.ip(&format!("address add {address}/30 dev {device}"));
        machine.ip(&format!("link set {device} up"));
    }
    Some((server, client))
}

/// The program within a namespace, in the test's home.
fn fingerpost(machine: &Namespace, home: &Home, words: &[&str]) -> Command {
    let mut command = machine.command(env!("CARGO_BIN_EXE_fingerpost"));
    command
        .args(words)
        .env("FINGERPOST_HOME", home.path())
        .env_remove("NO_COLOR")
        .current_dir(home.path());
    command
}

fn record(home: &Home, path: &str) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(home.path().join(path)).ok()?).ok()
}

fn rows<'a>(run: &'a Value, probe: &str) -> Vec<&'a Value> {
    run["measurements"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["probe"] == probe)
        .collect()
}

/// Loads a server on the one machine, by its address and settings, while it is explained on the other; gives what both
/// said. The load is under way when explaining begins.
fn both(
    machines: &(Namespace, Namespace),
    home: &Home,
    server: &[&str],
    port: u16,
) -> (Said, Said) {
    let mut load = fingerpost(
        &machines.1,
        home,
        &[
            "load",
            "--clients",
            "4",
            "--seconds",
            "6",
            "-o",
            "client.json",
        ],
    );
    load.args(server);
    for variable in ["REDISCLI_AUTH", "MYSQL_PWD", "PGPASSWORD"] {
        load.env(variable, PASSWORD);
    }
    let load = load
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let under_way =
        || record(home, "client.json").is_some_and(|run| !rows(&run, "load.throughput").is_empty());
    until("the load is under way", under_way);
    let port = port.to_string();
    let words = [
        "explain",
        "--port",
        &port,
        "--seconds",
        "3",
        "-o",
        "server.json",
        "--client",
        "client.json",
        "--quiet",
    ];
    let explained = fingerpost(&machines.0, home, &words).output().unwrap();
    (
        Said::of(&load.wait_with_output().unwrap()),
        Said::of(&explained),
    )
}

/// What must hold of both records, whatever the speed of the machine.
#[track_caller]
fn joined(home: &Home, loaded: &Said, explained: &Said) {
    assert_eq!(
        (loaded.status, explained.status),
        (0, 0),
        "{}\n{}",
        loaded.err,
        explained.err
    );
    let (client, server) = (
        record(home, "client.json").unwrap(),
        record(home, "server.json").unwrap(),
    );
    let figure = |row: &Value| row["estimate"]["value"].as_f64().unwrap();
    for probe in ["load.throughput", "load.turns", "load.turn"] {
        assert_eq!(
            rows(&client, probe),
            rows(&server, probe),
            "the server's record has what the client saw"
        );
        assert!(
            rows(&client, probe).iter().all(|row| figure(row) > 0.0),
            "{probe}"
        );
    }
    let account = |run: &Value| {
        run["observations"]
            .as_array()
            .unwrap()
            .iter()
            .find(|o| o["workload"] == "load")
            .unwrap()
            .clone()
    };
    let theirs = account(&server);
    assert!(
        theirs["source"]
            .as_str()
            .unwrap()
            .contains("by its own clock"),
        "{theirs}"
    );
    let totals = &theirs["totals"];
    assert!(
        totals["load.network.least.seconds"].as_f64().unwrap() > 0.0,
        "TCP knows the network's round trip: {totals}"
    );
    let p50 = figure(rows(&server, "load.turn")[0]) * 1e-9;
    assert!(
        totals["load.network.least.seconds"].as_f64().unwrap() <= p50,
        "{totals}"
    );
    if server["paths"].as_array().is_none_or(Vec::is_empty) {
        return fingerpost_testing::skipped("the kernel's events may not be taken here");
    }
    let told = [
        "Of a round trip's",
        "What passed outside of the service is not told",
    ];
    assert!(
        told.iter().any(|sentence| explained.out.contains(sentence)),
        "{}",
        explained.out
    );
    for text in [&loaded.out, &loaded.err, &explained.out, &explained.err] {
        assert!(!text.contains(PASSWORD));
    }
    for file in ["client.json", "server.json"] {
        assert!(
            !std::fs::read_to_string(home.path().join(file))
                .unwrap()
                .contains(PASSWORD),
            "{file}"
        );
    }
}

#[test]
fn redis_loaded_from_another_machine_makes_one_record_of_two() {
    let Some(machines) = machines(&["redis-server", "redis-cli"]) else {
        return;
    };
    let home = Home::with(&[]);
    let config = format!(
        "port 6379\nbind {SERVER}\nrequirepass {PASSWORD}\nsave \"\"\nappendonly no\ndir {}\n",
        home.path().display()
    );
    std::fs::write(home.path().join("redis.conf"), config).unwrap();
    let mut server = machines.0.command("redis-server");
    let _server = Ended(
        server
            .arg(home.path().join("redis.conf"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let ask = |words: &[&str]| {
        let mut cli = machines.0.command("redis-cli");
        let done = cli
            .args(["-h", SERVER])
            .args(words)
            .env("REDISCLI_AUTH", PASSWORD)
            .stderr(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    until("Redis answers", || ask(&["PING"]).trim() == "PONG");
    ask(&["SET", "fingerpost", "somebody's"]);
    let (loaded, explained) = both(&machines, &home, &[&format!("redis://{SERVER}")], 6379);
    joined(&home, &loaded, &explained);
    assert_eq!(
        ask(&["DBSIZE"]).trim(),
        "1",
        "what the load made is gone, and what was there is not"
    );

    // Without the live file: the same from the two records, into a third.
    let words = [
        "explain",
        "./server.json",
        "--client",
        "client.json",
        "-o",
        "both.json",
        "--format",
        "json",
    ];
    let told: Value = serde_json::from_str(&home.says(&words).well()).unwrap();
    assert_eq!(told["explanations"][0]["workload"], "service");
    assert_eq!(
        record(&home, "both.json").unwrap()["observations"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|o| o["workload"] == "load")
            .count(),
        1
    );

    // A wrong password is one sentence, and leaves no record.
    let words = [
        "load",
        &format!("redis://{SERVER}"),
        "-o",
        "refused.json",
        "--quiet",
    ];
    let refused = Said::of(
        &fingerpost(&machines.1, &home, &words)
            .env("REDISCLI_AUTH", "wrong")
            .output()
            .unwrap(),
    );
    assert_eq!(
        (refused.status, refused.err.lines().count()),
        (3, 1),
        "{}",
        refused.err
    );
    assert!(
        refused.err.contains("WRONGPASS") || refused.err.contains("access denied"),
        "{}",
        refused.err
    );
    assert!(!home.path().join("refused.json").exists());
}

/// Runs a shell's words as an unprivileged user, which databases insist on.
fn as_nobody(mut command: Command, words: &str) -> Command {
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--",
        "sh",
        "-c",
        words,
    ]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A directory for a database's files that its user can get to.
fn directory_of_nobody(home: &Home) -> std::path::PathBuf {
    use std::os::unix::fs::{PermissionsExt, chown};
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let dir = home.path().join("db");
    std::fs::create_dir(&dir).unwrap();
    chown(&dir, Some(65534), Some(65534)).unwrap();
    dir
}

/// What is asked of a database by its own client; empty while it does not answer.
fn answer(mut client: Command) -> String {
    let done = client.stderr(Stdio::null()).output().unwrap();
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

#[test]
fn mariadb_is_loaded_from_another_machine() {
    let Some(machines) = machines(&["mariadbd", "mariadb", "mariadb-install-db", "setpriv"]) else {
        return;
    };
    let home = Home::with(&[]);
    let dir = directory_of_nobody(&home);
    let at = dir.display();
    let make = format!(
        "mariadb-install-db --no-defaults --datadir={at}/d --skip-test-db --auth-root-authentication-method=normal"
    );
    assert!(
        as_nobody(Command::new("setpriv"), &make)
            .status()
            .unwrap()
            .success()
    );
    let serve = format!(
        "exec mariadbd --no-defaults --datadir={at}/d --socket={at}/s --pid-file={at}/pid --bind-address={SERVER} \
         --port=3307 --log-error={at}/log"
    );
    let _server = Ended(
        as_nobody(machines.0.command("setpriv"), &serve)
            .spawn()
            .unwrap(),
    );
    let ask = |sql: &str| {
        let mut client = Command::new("mariadb");
        client.args([
            "--no-defaults",
            "-N",
            "-S",
            &format!("{at}/s"),
            "-u",
            "root",
            "-e",
            sql,
        ]);
        answer(client)
    };
    until("MariaDB answers", || ask("select 1") == "1");
    ask(&format!(
        "create user 'load'@'{CLIENT}' identified by '{PASSWORD}'; grant all on loadtest.* to 'load'@'{CLIENT}'"
    ));
    let (loaded, explained) = both(
        &machines,
        &home,
        &[&format!("mysql://load@{SERVER}:3307/loadtest")],
        3307,
    );
    joined(&home, &loaded, &explained);
    assert_eq!(
        ask("select count(*) from information_schema.schemata where schema_name = 'loadtest'"),
        "0",
        "what the load made is gone"
    );
}

#[test]
fn postgresql_is_loaded_from_another_machine() {
    let Some(machines) = machines(&["psql", "setpriv"]) else {
        return;
    };
    let home = Home::with(&[]);
    let dir = directory_of_nobody(&home);
    let at = dir.display();
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .unwrap()
        .flatten()
        .map(|e| e.path().join("bin"));
    let bin = versions
        .filter(|bin| bin.join("postgres").exists())
        .max()
        .unwrap();
    let bin = bin.display();
    assert!(
        as_nobody(
            Command::new("setpriv"),
            &format!("{bin}/initdb -D {at}/d -A trust -U postgres --no-sync")
        )
        .status()
        .unwrap()
        .success()
    );
    let mut access = std::fs::read_to_string(dir.join("d/pg_hba.conf")).unwrap();
    access.push_str(&format!("host all all {CLIENT}/32 scram-sha-256\n"));
    std::fs::write(dir.join("d/pg_hba.conf"), access).unwrap();
    let serve = format!(
        "exec {bin}/postgres -D {at}/d -k {at} -p 5433 -c listen_addresses={SERVER} -c dynamic_shared_memory_type=mmap \
         -c fsync=off"
    );
    let _server = Ended(
        as_nobody(machines.0.command("setpriv"), &serve)
            .spawn()
            .unwrap(),
    );
    let ask = |sql: &str| {
        let mut client = Command::new("psql");
        client.args([
            "-h",
            &at.to_string(),
            "-p",
            "5433",
            "-U",
            "postgres",
            "-A",
            "-t",
            "-c",
            sql,
        ]);
        answer(client)
    };
    until("PostgreSQL answers", || ask("select 1") == "1");
    ask(&format!("create user load createdb password '{PASSWORD}'"));
    let (loaded, explained) = both(
        &machines,
        &home,
        &[&format!("postgresql://load@{SERVER}:5433/loadtest")],
        5433,
    );
    joined(&home, &loaded, &explained);
    assert_eq!(
        ask("select count(*) from pg_database where datname = 'loadtest'"),
        "0",
        "what the load made is gone"
    );
}

#[test]
fn a_web_server_is_loaded_from_another_machine() {
    let Some(machines) = machines(&["nginx"]) else {
        return;
    };
    let home = Home::with(&[]);
    let dir = home.path().display();
    let config = format!(
        "daemon off; worker_processes 1; user root; pid {dir}/pid; error_log {dir}/error.log;\nevents {{}}\n\
         http {{ access_log off; server {{ listen {SERVER}:8080; root {dir}/site; }} }}\n"
    );
    std::fs::create_dir(home.path().join("site")).unwrap();
    std::fs::write(home.path().join("site/page.html"), [b'x'; 1024]).unwrap();
    std::fs::write(home.path().join("nginx.conf"), config).unwrap();
    let mut server = machines.0.command("nginx");
    server
        .arg("-p")
        .arg(home.path())
        .arg("-c")
        .arg(home.path().join("nginx.conf"))
        .stderr(Stdio::null());
    let mut server = server.spawn().unwrap();
    until("nginx is up", || home.path().join("pid").exists());
    // The one load at a fixed rate, far below what the server answers.
    let (loaded, explained) = both(
        &machines,
        &home,
        &[&format!("{SERVER}:8080/page.html"), "--set", "rate=1000"],
        8080,
    );
    let _ = rustix::process::kill_process(
        rustix::process::Pid::from_child(&server),
        rustix::process::Signal::TERM,
    );
    server.wait().unwrap();
    joined(&home, &loaded, &explained);
}

#[test]
fn what_cannot_be_joined_is_told_in_a_sentence() {
    let home = Home::with(&[fingerpost_record::fixture::run()]);
    let id = fingerpost_record::fixture::run().id;
    let file = format!("runs/{id}.json");
    let refused = home.says(&["explain", &id, "--client", &file]).refused();
    assert!(refused.contains("not one of a load generator"), "{refused}");
    let refused = home
        .says(&["explain", "ref:launch-10.1", "--client", &file])
        .refused();
    assert!(refused.contains("-o FILE"), "{refused}");
    let refused = home.says(&["explain", &id, "-o", "x.json"]).refused();
    assert!(refused.contains("--client"), "{refused}");
    let refused = home.says(&["load", "http://8.8.8.8/"]).refused();
    assert!(refused.contains("--public"), "{refused}");
    let refused = home
        .says(&["load", "mysql://a:hunter2@127.0.0.1/x"])
        .refused();
    assert!(
        refused.contains("--password-file") && !refused.contains("hunter2"),
        "{refused}"
    );
    let dead = home.says(&["load", "redis://127.0.0.1:1", "--quiet"]);
    assert_eq!(
        (dead.status, dead.err.lines().count()),
        (3, 1),
        "{}",
        dead.err
    );
}
