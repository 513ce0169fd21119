//! `fingerpost explain` of a service that is running, end to end: a small server in a process of its own, with this
//! test as its client.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::{Home, Said};
use serde_json::Value;

/// One test at a time: experiments take CPUs from everybody, and attaching waits for every CPU to pass by the scheduler.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Requests a second of the client, on a schedule of its own.
const RATE: f64 = 400.0;
/// A client that is later than this is not on schedule.
const MOST_LATE: Duration = Duration::from_millis(30);

/// Not a test: the server, when a test starts this program again. It answers each line after half a millisecond of
/// work.
#[test]
#[ignore = "the other tests start it"]
fn serve() {
    if std::env::var_os("FINGERPOST_TEST_SERVES").is_none() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("port {}", listener.local_addr().unwrap().port());
    std::io::stdout().flush().unwrap();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        std::thread::spawn(move || {
            let mut request = [0; 64];
            while let Ok(1..) = stream.read(&mut request) {
                let end = Instant::now() + Duration::from_micros(500);
                while Instant::now() < end {}
                if stream.write_all(b"answered\n").is_err() {
                    return;
                }
            }
        });
    }
}

struct Server {
    child: Child,
    port: u16,
    /// Kept open: after a minute the test runner in the child says that it takes long, and would end by not being
    /// heard.
    _says: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Server {
    fn start() -> Server {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "serve", "--ignored", "--nocapture"])
            .env("FINGERPOST_TEST_SERVES", "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|l| l.rsplit_once("port ")?.1.trim().parse().ok());
        Server {
            child,
            port: port.expect("the server tells its port"),
            _says: lines,
        }
    }

    /// Asks once in so long, on a schedule: what came late is caught up with.
    fn load<T>(&self, meanwhile: impl FnOnce() -> T) -> (T, Account) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let client = scope.spawn(|| {
                let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
                stream.set_nodelay(true).unwrap();
                let (begun, mut account) = (Instant::now(), Account::default());
                let mut answer = [0; 9];
                for n in 0.. {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    let due = begun + Duration::from_secs_f64(f64::from(n) / RATE);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    stream.write_all(b"question\n").unwrap();
                    stream.read_exact(&mut answer).unwrap();
                    account.late = account.late.max(due.elapsed());
                    account.answered.push(begun.elapsed().as_secs_f64());
                }
                account
            });
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(meanwhile));
            over.store(true, Ordering::Relaxed);
            (
                result.unwrap_or_else(|e| std::panic::resume_unwind(e)),
                client.join().unwrap(),
            )
        })
    }
}

/// The client's own account of its requests.
#[derive(Default)]
struct Account {
    /// When each was answered, in seconds, ascending.
    answered: Vec<f64>,
    /// By how much one was late at most.
    late: Duration,
}

impl Account {
    /// The least and the most requests that were answered within any stretch of this many seconds.
    fn within(&self, seconds: f64) -> (f64, f64) {
        let all = &self.answered;
        let (mut least, mut most) = (f64::INFINITY, 0.0f64);
        let mut end = 0;
        for (n, begin) in all.iter().enumerate() {
            while end < all.len() && all[end] < begin + seconds {
                end += 1;
            }
            most = most.max((end - n) as f64);
            // Behind one that was just answered, and only as far as the account goes.
            if end < all.len() {
                least = least.min((end - n - 1) as f64);
            }
        }
        (least, most)
    }
}

#[test]
fn an_account_knows_the_least_and_the_most_of_any_stretch() {
    let answered = vec![0.0, 1.0, 2.0, 2.1, 2.2, 6.0, 7.0];
    let account = Account {
        answered,
        late: Duration::ZERO,
    };
    assert_eq!(account.within(1.0), (0.0, 3.0));
    assert_eq!(account.within(2.5), (0.0, 5.0));
    assert_eq!(account.within(5.0), (3.0, 5.0));
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn explain(home: &Home, words: &[&str]) -> Said {
    Said::of(
        &home
            .command(&[&["explain"], words].concat())
            .output()
            .unwrap(),
    )
}

fn record(home: &Home, path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(home.path().join(path)).unwrap()).unwrap()
}

#[test]
fn a_services_requests_are_counted_and_shares_are_the_whole() {
    let _alone = alone();
    let (home, server) = (Home::with(&[]), Server::start());
    let (said, account) = server.load(|| {
        explain(
            &home,
            &[
                "--port",
                &server.port.to_string(),
                "--seconds",
                "3",
                "-o",
                "./service.json",
            ],
        )
    });
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(
        said.out.contains("look closer")
            && said.out.contains("ruled out")
            && !said.out.contains("transaction"),
        "{}",
        said.out
    );
    let run = record(&home, "service.json");
    assert_eq!(run["observations"][0]["workload"], "service");
    assert_eq!(run["observations"][0]["params"]["port"], server.port);
    assert_eq!(
        run["host"]["compilers"],
        serde_json::json!([]),
        "none is started beside a service"
    );
    let Some(paths) = run["paths"]
        .as_array()
        .filter(|p| !p.is_empty())
        .map(|p| &p[0])
    else {
        assert!(
            said.out.contains("could not be followed") && said.out.contains("what the threads did"),
            "{}",
            said.out
        );
        return fingerpost_testing::skipped("the kernel's events may not be taken here");
    };
    let shares: f64 = paths["leaves"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["all"]["share"].as_f64().unwrap())
        .sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
    assert!(
        paths["latency"]["p50"].as_f64().unwrap() >= 500e-6,
        "{}",
        paths["latency"]
    );
    let threads = run["observations"]
        .as_array()
        .unwrap()
        .iter()
        .find(|o| o["observer"] == "threads")
        .unwrap();
    let windows = threads["series"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["name"] == "trace.window")
        .unwrap();
    let windows: Vec<(f64, f64)> = serde_json::from_value(windows["points"].clone()).unwrap();
    let ends = windows.iter().map(|(at, length)| at + length);
    assert_eq!(
        Some(windows.len() as f64),
        threads["totals"]["trace.windows"].as_f64()
    );
    assert!(
        ends.clone()
            .zip(&windows[1..])
            .all(|(ended, next)| ended <= next.0),
        "one after the other: {windows:?}"
    );
    // Windows that were opened for slow requests are no sample of the time.
    let open: f64 = ends.zip(&windows).map(|(ended, w)| ended - w.0).sum();
    let sampled = paths["seconds"].as_f64().unwrap();
    assert!(
        sampled > 0.0 && sampled < open + 1e-3,
        "{sampled} of {open}"
    );
    let rate = run["measurements"]
        .as_array()
        .unwrap()
        .iter()
        .find(|m| m["probe"] == "service.rate")
        .unwrap();
    let number = |name: &str| paths[name].as_f64().unwrap();
    let followed = number("followed");
    if account.late < MOST_LATE {
        assert!(
            rate["processes"].as_array().unwrap().len() >= 3 || followed < 100.0,
            "{rate:#}"
        );
    }
    // Whatever kept the client from its schedule, its own account says how many requests there can have been: of a
    // window, between the least and the most of any stretch as long, and one that either end cuts.
    let (mut least, mut most, mut open) = (0.0, 0.0, 0.0);
    for (_, length) in &windows {
        let (low, high) = account.within(*length);
        (least, most, open) = (least + low - 1.0, most + high + 1.0, open + length);
    }
    let told = (followed + number("cut") / 2.0) / number("seconds");
    assert!(
        (least / open..=most / open).contains(&told),
        "{told} requests/s, where the client had {} to {}",
        least / open,
        most / open
    );
    // And without windows: every request is counted.
    if let Some(seconds) = paths["whole"]["seconds"].as_f64() {
        let (low, high) = account.within(seconds);
        let count = paths["whole"]["latency"]["count"].as_f64().unwrap();
        assert!(
            (low - 2.0..=high + 2.0).contains(&count),
            "{count} requests in {seconds} s, where the client had {low} to {high}"
        );
    }
}

#[test]
fn requests_with_a_connection_each_are_all_counted() {
    let _alone = alone();
    let (home, server) = (Home::with(&[]), Server::start());
    let over = AtomicBool::new(false);
    let (said, asked) = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut asked = 0u64;
            while !over.load(Ordering::Relaxed) {
                let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
                stream.write_all(b"question\n").unwrap();
                stream.read_exact(&mut [0; 9]).unwrap();
                asked += 1;
            }
            asked
        });
        let said = std::panic::catch_unwind(|| {
            explain(
                &home,
                &[
                    "--port",
                    &server.port.to_string(),
                    "--seconds",
                    "2",
                    "-q",
                    "-o",
                    "./closing.json",
                ],
            )
        });
        over.store(true, Ordering::Relaxed);
        (
            said.unwrap_or_else(|e| std::panic::resume_unwind(e)),
            client.join().unwrap(),
        )
    });
    assert_eq!(said.status, 0, "{}", said.err);
    let run = record(&home, "closing.json");
    let whole = &run["paths"][0]["whole"];
    if whole.is_null() {
        return fingerpost_testing::skipped("programs in the kernel are not allowed here");
    }
    let count = whole["latency"]["count"].as_u64().unwrap();
    let told = |name: &str| whole[name].as_u64().unwrap();
    assert!(count > 0 && count <= asked, "{count} of {asked}");
    // One at a time: the ends of the time cut one each, at most.
    for (name, each) in [("received", 9), ("sent", 9), ("opened", 1), ("closed", 1)] {
        assert!(
            told(name).div_ceil(each).abs_diff(count) <= 2,
            "{name} of {count}: {whole}"
        );
    }
    assert!(told("unanswered") + told("missed") <= 1, "{whole}");
    let rate = run["paths"][0]["whole_rate"].as_f64().unwrap();
    let seconds = whole["seconds"].as_f64().unwrap();
    assert!(seconds > 2.0 && (rate * seconds - count as f64).abs() < 1e-3);
}

#[test]
fn waits_are_told_each_second_and_stacks_are_in_the_record() {
    let _alone = alone();
    let (home, server) = (Home::with(&[]), Server::start());
    let words = [
        "--port",
        &server.port.to_string(),
        "--seconds",
        "5",
        "--live",
        "--progress",
        "json",
        "-o",
        "./live.json",
    ];
    let said = server.load(|| explain(&home, &words)).0;
    assert_eq!(said.status, 0, "{}", said.err);
    let run = record(&home, "live.json");
    let Some(paths) = run["paths"].as_array().and_then(|p| p.first()) else {
        return fingerpost_testing::skipped("the kernel's events may not be taken here");
    };
    let events: Vec<Value> = said
        .err
        .lines()
        .filter_map(|l| serde_json::from_str(l).ok())
        .collect();
    let live: Vec<&Value> = events.iter().filter(|e| e["event"] == "live").collect();
    assert!(!live.is_empty(), "{}", said.err);
    for told in live {
        let parts = told["parts"].as_array().unwrap();
        assert!(
            !parts.is_empty()
                && parts
                    .iter()
                    .all(|p| (0.0..=1.0).contains(&p["all"].as_f64().unwrap())),
            "{told}"
        );
        assert!(
            told["sentence"]
                .as_str()
                .unwrap()
                .starts_with("Requests spend "),
            "{told}"
        );
    }
    // Each request computes for half a millisecond: some of the samples of that time are of threads that had one.
    let graphs = paths["graphs"].as_array().unwrap();
    let on_cpu = graphs
        .iter()
        .find(|g| g["kind"] == "on_cpu" && g["of"] == "requests")
        .unwrap_or_else(|| panic!("{graphs:#?}"));
    let functions: Vec<&str> = on_cpu["stacks"]["functions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        functions
            .iter()
            .any(|f| f.contains("explain_service::serve")),
        "{functions:?}"
    );
    let hardware = run["observations"]
        .as_array()
        .unwrap()
        .iter()
        .find(|o| o["observer"] == "hardware")
        .unwrap();
    let source = hardware["source"].as_str().unwrap();
    assert!(
        source.starts_with("hardware counters")
            || source.starts_with("none: ") && hardware["totals"] == serde_json::json!({}),
        "{hardware}"
    );
    assert!(
        !run["command"].to_string().contains("--live"),
        "{}",
        run["command"]
    );
}

#[test]
fn without_the_kernels_events_nothing_is_confirmed() {
    let _alone = alone();
    let (home, server) = (Home::with(&[]), Server::start());
    let pid = server.child.id().to_string();
    let words = [
        "--pid",
        &pid,
        "--seconds",
        "0.5",
        "--sampling",
        "--format",
        "json",
        "--label",
        "shop",
        "-q",
    ];
    let found: Value =
        serde_json::from_str(&server.load(|| explain(&home, &words)).0.well()).unwrap();
    let e = &found["explanations"][0];
    assert_eq!(
        (e["params"]["name"].as_str(), e["params"]["port"].as_u64()),
        (Some("shop"), Some(server.port.into()))
    );
    assert!(
        !e["threads"].as_array().unwrap().is_empty() && e.get("paths").is_none(),
        "{e:#}"
    );
    assert!(
        e["findings"]
            .as_array()
            .unwrap()
            .iter()
            .all(|f| f["status"] != "confirmed"),
        "{e:#}"
    );
    let text = home.says(&["explain", "latest"]).well();
    assert!(
        text.contains("could not be followed") && text.starts_with("service name=shop"),
        "{text}"
    );
}

#[test]
fn a_program_without_requests_is_explained_over_its_time() {
    let _alone = alone();
    let home = Home::with(&[]);
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let said = explain(
        &home,
        &[
            "--pid",
            &busy.id().to_string(),
            "--seconds",
            "1",
            "--format",
            "json",
            "-q",
        ],
    );
    let _ = busy.kill();
    let _ = busy.wait();
    let found: Value = serde_json::from_str(&said.well()).unwrap();
    let e = &found["explanations"][0];
    let own: f64 = match e["threads"].as_array() {
        Some(threads) => threads
            .iter()
            .filter(|s| s["state"] == "user code" || s["state"] == "ready, waiting for a CPU")
            .map(|s| s["share"].as_f64().unwrap())
            .sum(),
        None => {
            let parts = e["budget"]["parts"].as_array().unwrap().iter();
            parts
                .filter(|p| {
                    p["component"] == "server user code" || p["component"] == "waiting for a CPU"
                })
                .map(|p| p["share"].as_f64().unwrap())
                .sum()
        }
    };
    assert!(own > 0.6, "{e:#}");
}

#[test]
fn an_interrupt_ends_it_early_and_what_was_seen_is_told() {
    let _alone = alone();
    let (home, server) = (Home::with(&[]), Server::start());
    let (said, _) = server.load(|| {
        let words = [
            "explain",
            "--port",
            &server.port.to_string(),
            "--seconds",
            "600",
        ];
        let child = home
            .command(&words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It is in the archive from the moment when it catches signals and attaches.
        common::until("the record is begun", || {
            std::fs::read_dir(home.runs()).unwrap().count() > 0
        });
        fingerpost_sys::child::signal(child.id() as i32, libc::SIGINT).unwrap();
        Said::of(&child.wait_with_output().unwrap())
    });
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(
        said.err.contains("ended early") && said.out.starts_with("service name="),
        "{} {}",
        said.err,
        said.out
    );
}

/// A neighbour that computes, and is ended with the test.
struct Neighbour(Child);

impl Neighbour {
    fn start() -> Neighbour {
        // Last in line for the CPUs: the other tests run beside it.
        Neighbour(
            Command::new("nice")
                .args(["-n", "19", "sh", "-c", "while :; do :; done"])
                .spawn()
                .unwrap(),
        )
    }

    /// The letter of its state in `/proc`.
    fn state(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    fn is_held(&self) -> bool {
        self.state() == 'T'
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_named_neighbour_is_held_for_moments_and_goes_on() {
    let _alone = alone();
    fingerpost_testing::require!(root);
    let (home, server, neighbour) = (Home::with(&[]), Server::start(), Neighbour::start());
    let (port, held) = (server.port.to_string(), neighbour.0.id().to_string());
    let words = [
        "--port",
        &port,
        "--seconds",
        "1",
        "--experiment",
        "--hold",
        &held,
        "-o",
        "./service.json",
    ];
    let (said, _) = server.load(|| explain(&home, &words));
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(!neighbour.is_held());
    let run = record(&home, "service.json");
    let experiments = run["experiments"]
        .as_array()
        .unwrap_or_else(|| panic!("{} {run:#}", said.err));
    let hold = experiments
        .iter()
        .find(|e| e["change"] == "hold")
        .unwrap_or_else(|| panic!("{experiments:#?}"));
    assert!(
        hold["what"]
            .as_str()
            .unwrap()
            .contains(&format!("sh ({held}) held")),
        "{hold:#}"
    );
    assert!(
        hold["answer"] != "not done" && hold["by"] == "latency",
        "{hold:#}"
    );
    assert!(
        hold["pairs"]
            .as_array()
            .unwrap()
            .iter()
            .any(|pair| pair["changed"]["requests"].as_u64() > Some(0)),
        "{hold:#}"
    );
    // What was changed was said before, and is told with its answer.
    assert!(
        said.err.contains("times for 100 ms") && said.err.contains("undone each time"),
        "{}",
        said.err
    );
    assert!(
        said.out.contains("changed for short stretches") && said.out.contains("look closer"),
        "{}",
        said.out
    );
    let again = home.says(&["explain", "./service.json"]).well();
    assert!(again.contains("changed for short stretches"), "{again}");
}

#[test]
fn a_neighbour_goes_on_when_the_command_is_killed() {
    let _alone = alone();
    fingerpost_testing::require!(root);
    let (home, server, neighbour) = (Home::with(&[]), Server::start(), Neighbour::start());
    let (port, held) = (server.port.to_string(), neighbour.0.id().to_string());
    let words = [
        "explain",
        "--port",
        &port,
        "--seconds",
        "0.5",
        "--experiment",
        "--hold",
        &held,
    ];
    server.load(|| {
        let started = || {
            let said = std::fs::File::create(home.path().join("said")).unwrap();
            home.command(&words)
                .stdout(Stdio::null())
                .stderr(said)
                .spawn()
                .unwrap()
        };
        let (mut child, mut ended) = (started(), 0);
        common::until("the neighbour is held", || {
            // On a machine that is too busy too few requests come to decide by, or its 0.1 s pass between two looks:
            // then once more.
            if let Some(status) = child.try_wait().unwrap() {
                let said = std::fs::read_to_string(home.path().join("said")).unwrap();
                ended += 1;
                assert!(status.success() && ended < 8, "{status:?}: {said}");
                child = started();
            }
            neighbour.is_held()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        common::until("the neighbour goes on", || !neighbour.is_held());
    });
}

#[test]
fn who_must_go_on_is_not_held() {
    let _alone = alone();
    let (home, server) = (Home::with(&[]), Server::start());
    let (port, own) = (server.port.to_string(), server.child.id().to_string());
    for (held, says) in [
        ("1", "never held"),
        ("2147483647", "no such process"),
        (&own, "the service itself"),
        ("/no/group", "no process"),
    ] {
        let sentence = explain(&home, &["--port", &port, "--experiment", "--hold", held]).refused();
        assert!(sentence.contains(says), "{held}: {sentence}");
    }
    assert_eq!(
        explain(&home, &["--port", &port, "--hold", "1"]).status,
        2,
        "--hold is for --experiment"
    );
}

#[test]
fn what_is_not_there_is_said_in_one_sentence() {
    let _alone = alone();
    let home = Home::with(&[]);
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
        .to_string();
    for (words, says) in [
        (&["--pid", "2147483647"][..], "no process 2147483647"),
        (&["--port", &free], "nobody listens"),
        (
            &["--unit", "no-such-unit"],
            "no unit “no-such-unit.service”",
        ),
        (
            &["--cgroup", "/no/such/group"],
            "no process here is in a control group /no/such/group",
        ),
        (
            &["--container", "no-such-container"],
            "no container “no-such-container”",
        ),
    ] {
        let sentence = explain(&home, words).refused();
        assert!(sentence.contains(says), "{words:?}: {sentence}");
    }
    for words in [
        &["--pid", "1", "--port", "80"][..],
        &["latest", "--pid", "1"],
        &["--pid", "1", "--", "true"],
        &["-o", "x", "latest"],
        &["--pid", "x"],
    ] {
        assert_eq!(explain(&home, words).status, 2, "{words:?}");
    }
}

/// A process that listens and accepts nothing; it ends with this.
struct Listening {
    process: std::process::Child,
    port: u16,
}

impl Listening {
    fn start() -> Listening {
        let script = "import socket, time\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen(5)\n\
                      print(s.getsockname()[1], flush=True)\nwhile True: time.sleep(60)";
        let mut process = Command::new("python3")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let mut line = String::new();
        let mut told = std::io::BufReader::new(process.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut told, &mut line).unwrap();
        let port = line.trim().parse().expect("it says at which port");
        Listening { process, port }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_service_that_does_not_answer_is_told_from_an_idle_one() {
    let _alone = alone();
    let home = Home::with(&[]);
    // A process of its own: this one has the servers of the other tests.
    let listening = Listening::start();
    let port = listening.port.to_string();
    let explained = |file: &str| {
        let words = ["--port", &port, "--seconds", "0.5", "-o", file];
        let said = explain(&home, &words);
        assert_eq!(said.status, 0, "{}", said.err);
        said.out
    };
    let idle = explained("./idle.json");
    assert!(!idle.contains("have had no answer"), "{idle}");
    assert_eq!(record(&home, "idle.json")["under_way"][0]["count"], 0);
    let mut client = TcpStream::connect(("127.0.0.1", listening.port)).unwrap();
    client.write_all(b"question\n").unwrap();
    let stuck = explained("./stuck.json");
    let first = stuck.lines().nth(1).unwrap();
    assert!(
        first.contains("1 of 1 request under way has had no answer for")
            && first.contains("waiting to be accepted"),
        "{stuck}"
    );
    assert!(!stuck.contains("No request came to it"), "{stuck}");
    let kept = record(&home, "stuck.json");
    let request = &kept["under_way"][0]["requests"][0];
    assert_eq!(request["progress"], "not_accepted");
    assert_eq!(
        request["client"],
        client.local_addr().unwrap().to_string().as_str()
    );
    // The record alone says the same.
    let again = explain(&home, &["./stuck.json"]);
    assert_eq!(again.out.lines().nth(1), Some(first));
}
