//! Real servers: ours, nginx, Apache in its three kinds.

use std::net::TcpStream;
use std::time::Duration;

use fingerpost_workloads::Stamp;
use fingerpost_workloads::web::{missing, settings::Settings};
use fingerpost_workloads::{Workload, WorkloadError};
use libtest_mimic::Trial;

use crate::support::{settings, step, test, total, with_web};

pub fn tests() -> Vec<Trial> {
    let mut tests = Vec::new();
    for server in [
        &["server=embedded"][..],
        &["server=nginx"],
        &["server=nginx", "backend=embedded"],
        &["server=apache", "mpm=prefork"],
        &["server=apache", "mpm=worker"],
        &["server=apache", "mpm=event"],
    ] {
        let name = format!(
            "{} is loaded with and without keep-alive and leaves nothing",
            server.join(" ")
        );
        tests.push(test(&name, move || a_server_is_loaded(server)));
    }
    tests.extend([
        test(
            "a large file comes whole, also from the embedded server",
            large_file,
        ),
        test("a number of requests is made exactly", exact_requests),
        test("several generators share one load", several_generators),
        test(
            "an open loop sends what is due and drops no sample",
            open_loop,
        ),
        test("connections come from many addresses when asked to", spread),
        test("every round trip is stamped while it is asked for", stamped),
        test("a prefix goes before the server's command", prefix),
        test(
            "a url that nobody answers, or whose page is missing, is told in a sentence",
            unanswered_url,
        ),
        test(
            "more connections than descriptors is told in a sentence",
            descriptors,
        ),
    ]);
    tests
}

/// Whether a server is here; without it the test is skipped, but not where everything should be installed.
fn is_here(settings: &Settings) -> bool {
    let missing = missing(settings);
    if let Some(sentence) = &missing {
        fingerpost_testing::skipped(sentence);
    }
    missing.is_none()
}

fn a_server_is_loaded(server: &[&str]) {
    let mut pairs: Vec<(&str, &str)> = server.iter().filter_map(|p| p.split_once('=')).collect();
    pairs.extend([
        ("connections", "1,20"),
        ("keepalive", "both"),
        ("size", "2K"),
    ]);
    if !is_here(&settings(&pairs)) {
        return;
    }
    let (address_pids, results) = with_web(&pairs, |web| {
        let results: Vec<_> = web
            .steps()
            .iter()
            .map(|p| (p.clone(), web.step(p, Duration::from_millis(250)).unwrap()))
            .collect();
        (web.subjects(), results)
    })
    .unwrap();
    assert_eq!(results.len(), 4);
    for (params, step) in &results {
        let connections = params.int("connections").unwrap() as u64;
        assert!(step.transactions > 0, "{params}");
        assert_eq!(step.client.errors, Default::default(), "{params}");
        let told = total(&step.latencies);
        assert!(
            told >= step.transactions && told <= step.transactions + connections,
            "{params}: {told} of {}",
            step.transactions
        );
        assert_eq!(step.throughput.len(), 2, "{params}");
        assert!(step.intended.is_empty());
        assert!(step.client.cpu_seconds > 0.0 && step.client.generators >= 1);
        let p50 = step.latency(0.5).unwrap();
        assert!(
            p50 > 1000 && p50 <= step.latency(1.0).unwrap(),
            "{params}: {p50}"
        );
        // A connection has one request under way at a time, some of it perhaps before the window's beginning or after
        // its end.
        let time: f64 = step
            .latencies
            .iter()
            .map(|(v, n)| *v as f64 * *n as f64)
            .sum();
        let longest = step.latency(1.0).unwrap() as f64;
        let room = connections as f64 * (step.elapsed.as_nanos() as f64 + 2.0 * longest);
        assert!(
            time <= room * 1.005,
            "{params}: {time} ns of latency in {room} ns"
        );
    }
    assert_eq!(address_pids.servers.len(), 1);
    for pid in address_pids.servers.iter().chain(&address_pids.clients) {
        assert!(
            !std::path::Path::new(&format!("/proc/{pid}")).exists(),
            "process {pid} is left"
        );
    }
}

fn large_file() {
    for server in ["embedded", "nginx"] {
        let pairs = [("server", server), ("size", "3M"), ("connections", "4")];
        if !is_here(&settings(&pairs)) {
            continue;
        }
        let step = step(&pairs, 200).unwrap();
        assert!(step.transactions > 0);
        assert_eq!(step.client.errors, Default::default(), "{server}");
    }
}

fn exact_requests() {
    let step = step(
        &[
            ("requests", "2000"),
            ("connections", "10"),
            ("keepalive", "off"),
        ],
        30_000,
    )
    .unwrap();
    assert_eq!(step.transactions, 2000);
    assert!(step.elapsed < Duration::from_secs(30));
}

fn several_generators() {
    let closed = step(
        &[
            ("generators", "3"),
            ("connections", "10"),
            ("requests", "1000"),
        ],
        30_000,
    )
    .unwrap();
    assert_eq!((closed.client.generators, closed.transactions), (3, 1000));
    let open = step(
        &[("generators", "2"), ("connections", "16"), ("rate", "1000")],
        1000,
    )
    .unwrap();
    assert_eq!(open.client.generators, 2);
    assert!(
        (1000..=1016).contains(&total(&open.intended)),
        "{}",
        total(&open.intended)
    );
    // More than there are connections for are not started.
    assert_eq!(
        step(&[("generators", "3"), ("connections", "1")], 100)
            .unwrap()
            .client
            .generators,
        1
    );
}

fn open_loop() {
    let step = step(&[("rate", "1000"), ("connections", "16")], 1000).unwrap();
    // What was under way when the window began completes within it, and is counted too.
    let told = total(&step.intended);
    assert!((1000..=1016).contains(&told), "{told}");
    assert_eq!(total(&step.latencies), told);
    for q in [0.1, 0.5, 0.9, 1.0] {
        let intended = fingerpost_workloads::quantile(&step.intended, q).unwrap();
        assert!(intended >= step.latency(q).unwrap(), "{q}");
    }
}

fn spread() {
    let step = step(
        &[
            ("connections", "30"),
            ("keepalive", "off"),
            ("source", "spread"),
        ],
        200,
    )
    .unwrap();
    assert!(step.transactions > 0);
    assert_eq!(step.client.errors, Default::default());
}

fn prefix() {
    let base = tempfile::tempdir().unwrap();
    crate::support::open_to_pass(base.path());
    let mut scratch =
        fingerpost_undo::scratch::Scratch::create_in(&base.path().join("scratch")).unwrap();
    let words = ["env".to_owned(), "FINGERPOST_TEST=prefix".to_owned()];
    let mut web = fingerpost_workloads::web::Web::new(
        settings(&[("connections", "1")]),
        &mut scratch,
        &words,
        2,
    );
    web.start().unwrap();
    let environ = std::fs::read(format!("/proc/{}/environ", web.subjects().servers[0])).unwrap();
    assert!(
        environ
            .split(|&b| b == 0)
            .any(|v| v == b"FINGERPOST_TEST=prefix")
    );
    let params = web.steps().remove(0);
    assert_eq!(
        params.text("server_prefix"),
        Some("env FINGERPOST_TEST=prefix"),
        "another row than without it"
    );
    assert!(
        web.step(&params, Duration::from_millis(100))
            .unwrap()
            .transactions
            > 0
    );
    web.stop();
}

fn unanswered_url() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    assert!(TcpStream::connect(free).is_err());
    match step(&[("url", &format!("http://{free}/"))], 100) {
        Err(WorkloadError::Missing(sentence)) => {
            assert!(
                sentence.contains("does not answer") && sentence.contains("refused"),
                "{sentence}"
            )
        }
        other => panic!("{other:?}"),
    }
    let answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec();
    let address = crate::support::serve(move |stream, _| {
        crate::support::answer_each(stream, |_| Some(answer.clone()))
    });
    match step(&[("url", &format!("http://{address}/x"))], 100) {
        Err(WorkloadError::Failed(sentence)) => {
            assert!(sentence.contains("status 404"), "{sentence}")
        }
        other => panic!("{other:?}"),
    }
}

fn descriptors() {
    // A shell with a low hard limit, since a limit once lowered is lowered for good.
    let me = std::env::current_exe().unwrap();
    let order = concat!(
        r#"{"load":{"address":"127.0.0.1:9","host":"h","paths":["/"],"connections":100,"keep_alive":true,"#,
        r#""rate":null,"phase":0.0,"requests":null,"spread":false}}"#
    );
    let script = format!("ulimit -n 64; echo '{order}' | \"$0\" --fingerpost-worker web-generator");
    let out = std::process::Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg(me)
        .output()
        .unwrap();
    let told = String::from_utf8(out.stdout).unwrap();
    assert!(
        told.contains("100 connections need more descriptors than the 64"),
        "{told}"
    );
}

/// The generators' own account holds every answer of the window, in time and place as counted, and nothing while it is
/// off.
fn stamped() {
    for keep_alive in ["on", "off"] {
        let pairs = [
            ("connections", "6"),
            ("keepalive", keep_alive),
            ("generators", "2"),
        ];
        with_web(&pairs, |web| {
            let stamps = web.stamps().unwrap();
            let params = web.steps().remove(0);
            stamps.set(true);
            let step = web.step(&params, Duration::from_millis(250)).unwrap();
            stamps.set(false);
            let drained = stamps.drain();
            assert_eq!(stamps.writers(), 2);
            assert_eq!((step.turns, drained.lost), (step.transactions, 0));
            assert!(
                drained.stamps.len() as u64 >= step.transactions,
                "{} of {}",
                drained.stamps.len(),
                step.transactions
            );
            // Two generators with three connections each, and no two requests at a time on any of them.
            let mut places: Vec<Vec<Stamp>> = Vec::new();
            for stamp in &drained.stamps {
                match places
                    .iter_mut()
                    .find(|p| (p[0].tid, p[0].connection) == (stamp.tid, stamp.connection))
                {
                    Some(place) => place.push(*stamp),
                    None => places.push(vec![*stamp]),
                }
            }
            assert_eq!(places.len(), 6);
            assert!(
                places
                    .iter()
                    .all(|p| p.windows(2).all(|pair| pair[0].end <= pair[1].start))
            );
            // Every request that counts has a stamp as long as it took. Others have one as well: those of before the
            // window, and those under way at its end, which may be longer than any that counts.
            let took: Vec<f64> = drained
                .stamps
                .iter()
                .map(|s| (s.end - s.start) as f64)
                .collect();
            let mut shorter = 0;
            for (at, (ns, count)) in step.latencies.iter().enumerate() {
                shorter += count;
                let at_most = took.iter().filter(|t| **t <= *ns as f64 * 1.02).count() as u64;
                assert!(
                    at_most >= shorter,
                    "{shorter} took {ns} ns at most, of the stamped {at_most}"
                );
                // The stamp of a request on a new connection begins when that is made, later than the request: closing
                // the one before and making a socket come first, for as long as the scheduler likes.
                if keep_alive == "on" {
                    let longer: u64 = step.latencies[at..].iter().map(|(_, count)| count).sum();
                    let at_least = took.iter().filter(|t| **t >= *ns as f64 * 0.98).count() as u64;
                    assert!(
                        at_least >= longer,
                        "{longer} took {ns} ns at least, of the stamped {at_least}"
                    );
                }
            }
            web.step(&params, Duration::from_millis(100)).unwrap();
            assert!(stamps.drain().stamps.is_empty());
        })
        .unwrap();
    }
}
