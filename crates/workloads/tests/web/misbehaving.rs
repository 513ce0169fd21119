//! Servers that misbehave: what the client counts, and what it says.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fingerpost_workloads::{Step, Workload, WorkloadError};
use libtest_mimic::Trial;

use crate::support::{answer_each, serve, step, test, total, with_web};

pub fn tests() -> Vec<Trial> {
    vec![
        test("every framing of an answer is understood", framings),
        test("answers in small pieces are put together", pieces),
        test(
            "a server that closes without a word is counted, and the rest goes on",
            closes,
        ),
        test("answers that are none are counted by kind", malformed),
        test(
            "a server that never answers fails the step with the reason",
            silent,
        ),
        test("a pause of the server is a stall with its reason", stall),
        test("a slow server is told as slow", slow),
        test(
            "an overloaded open loop tells waiting from serving and drops nothing",
            overloaded,
        ),
        test(
            "a status of failure is counted and does not end the load",
            statuses,
        ),
    ]
}

const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn load(
    address: std::net::SocketAddr,
    more: &[(&str, &str)],
    length_ms: u64,
) -> Result<Step, WorkloadError> {
    let url = format!("http://{address}/");
    let mut pairs = vec![("url", url.as_str())];
    pairs.extend_from_slice(more);
    step(&pairs, length_ms)
}

fn framings() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"[..],
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ] {
        let address = serve(move |stream, _| answer_each(stream, |_| Some(answer.to_vec())));
        let step = load(address, &[("connections", "4")], 150).unwrap();
        assert!(step.transactions > 4, "{}", answer.escape_ascii());
        assert_eq!(
            step.client.errors,
            Default::default(),
            "{}",
            answer.escape_ascii()
        );
    }
    // These end with the connection, after one answer each.
    for answer in [
        &b"HTTP/1.0 200 OK\r\n\r\nhello"[..],
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
    ] {
        let closing = serve(move |mut stream, _| {
            let mut request = [0; 4096];
            let _ = std::io::Read::read(&mut stream, &mut request);
            let _ = stream.write_all(answer);
        });
        let step = load(closing, &[("connections", "4")], 150).unwrap();
        assert!(step.transactions > 4, "{}", answer.escape_ascii());
        assert_eq!(
            step.client.errors,
            Default::default(),
            "{}",
            answer.escape_ascii()
        );
    }
}

fn pieces() {
    let address = serve(|stream, _| {
        let mut writer = stream.try_clone().unwrap();
        writer.set_nodelay(true).unwrap();
        answer_each(stream, |_| {
            for piece in GOOD.chunks(7) {
                writer.write_all(piece).ok()?;
                std::thread::sleep(Duration::from_millis(1));
            }
            Some(Vec::new())
        });
    });
    let step = load(address, &[("connections", "3")], 300).unwrap();
    assert!(step.transactions > 3);
    assert_eq!(step.client.errors, Default::default());
}

fn closes() {
    // Two answers, then the connection ends where a third is due.
    let address = serve(|stream, _| answer_each(stream, |n| (n < 2).then(|| GOOD.to_vec())));
    let step = load(address, &[("connections", "4")], 300).unwrap();
    assert!(step.transactions > 0);
    let closed: u64 = step
        .client
        .errors
        .iter()
        .filter(|(kind, _)| kind.contains("closed without an answer") || kind.contains("reset"))
        .map(|(_, n)| n)
        .sum();
    assert!(closed > 0, "{:?}", step.client.errors);
    assert_eq!(
        closed,
        step.client.errors.values().sum::<u64>(),
        "{:?}",
        step.client.errors
    );
}

fn malformed() {
    for (bad, kind) in [
        (&b"SSH-2.0-x\r\n\r\n"[..], "malformed answer"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhello",
            "data after the answer",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello",
            "contradictory length",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "chunk",
        ),
    ] {
        // The first connection is the check that the server answers at all.
        let address = serve(move |stream, number| {
            answer_each(stream, |n| {
                Some(if number == 0 || n % 2 == 0 { GOOD } else { bad }.to_vec())
            })
        });
        let step = load(address, &[("connections", "2")], 200).unwrap();
        assert!(step.transactions > 0);
        assert!(
            step.client.errors.keys().any(|k| k.contains(kind)),
            "{kind}: {:?}",
            step.client.errors
        );
    }
    let short = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello";
    let address = serve(move |mut stream, number| {
        let mut request = [0; 4096];
        let _ = std::io::Read::read(&mut stream, &mut request);
        // Most are whole: a step begins when each connection had an answer.
        let _ = stream.write_all(if number % 16 == 15 { short } else { GOOD });
    });
    let step = load(address, &[("connections", "2"), ("keepalive", "off")], 200).unwrap();
    assert!(
        step.client
            .errors
            .contains_key("connection closed within an answer"),
        "{:?}",
        step.client.errors
    );
}

fn silent() {
    let address = serve(|stream, number| {
        if number == 0 {
            answer_each(stream, |_| Some(GOOD.to_vec()));
        } else {
            // Kept open, never answered, until the client goes.
            answer_each(stream, |_| Some(Vec::new()));
        }
    });
    let url = format!("http://{address}/");
    let failed = with_web(&[("url", &url), ("connections", "3")], |web| {
        let params = web.steps().remove(0);
        web.step(&params, Duration::from_millis(200))
    });
    match failed.unwrap() {
        Err(WorkloadError::Failed(sentence)) => {
            assert!(
                sentence.contains("no request was answered")
                    && sentence.contains("3 of 3 requests were sent and the server answered none"),
                "{sentence}"
            );
        }
        other => panic!("{other:?}"),
    }
}

fn stall() {
    let pause = Arc::new(AtomicBool::new(false));
    let paused = Arc::clone(&pause);
    let address = serve(move |stream, _| {
        let pause = Arc::clone(&paused);
        answer_each(stream, move |_| {
            while pause.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_micros(500));
            Some(GOOD.to_vec())
        });
    });
    // Half a second of every second, so that a whole pause lies within the step wherever it begins.
    let over = Arc::new(AtomicBool::new(false));
    let (ender, pauser) = (Arc::clone(&over), Arc::clone(&pause));
    let thread = std::thread::spawn(move || {
        while !ender.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(300));
            pauser.store(true, Ordering::Release);
            std::thread::sleep(Duration::from_millis(500));
            pauser.store(false, Ordering::Release);
        }
    });
    let step = load(address, &[("connections", "4")], 1700).unwrap();
    over.store(true, Ordering::Release);
    thread.join().unwrap();
    let longest = step
        .client
        .stalls
        .iter()
        .max_by(|a, b| a.length_s.total_cmp(&b.length_s))
        .expect("a stall");
    assert!(
        longest.length_s > 0.4 && longest.at_s < 1.7,
        "{:?}",
        step.client.stalls
    );
    assert!(
        longest
            .why
            .to_string()
            .contains("requests were sent and the server answered none"),
        "{longest:?}"
    );
    // The requests that waited are among the latencies.
    assert!(step.latency(1.0).unwrap() > 400_000_000);
}

fn slow() {
    let address = serve(|stream, _| {
        answer_each(stream, |_| {
            std::thread::sleep(Duration::from_millis(20));
            Some(GOOD.to_vec())
        });
    });
    let step = load(address, &[("connections", "5")], 500).unwrap();
    assert!(
        step.latency(0.0).unwrap() >= 19_900_000,
        "{:?}",
        step.latency(0.0)
    );
    assert!(step.transactions <= 5 * 26);
    assert_eq!(step.client.saturated, None);
}

fn overloaded() {
    // Two connections of at most 100 answers a second each, asked for 400 a second.
    let address = serve(|stream, _| {
        answer_each(stream, |_| {
            std::thread::sleep(Duration::from_millis(10));
            Some(GOOD.to_vec())
        });
    });
    let step = load(address, &[("connections", "2"), ("rate", "400")], 500).unwrap();
    assert!(
        (200..=202).contains(&total(&step.intended)),
        "{}",
        total(&step.intended)
    );
    assert!(
        step.client.errors["no free connection by the end of the step"] > 20,
        "{:?}",
        step.client.errors
    );
    let (raw, intended) = (
        step.latency(0.9).unwrap(),
        fingerpost_workloads::quantile(&step.intended, 0.9).unwrap(),
    );
    assert!(intended > 3 * raw, "{intended} {raw}");
    assert!(
        step.client
            .saturated
            .as_deref()
            .unwrap()
            .contains("lower rate"),
        "{:?}",
        step.client.saturated
    );
}

fn statuses() {
    let address = serve(|stream, number| {
        answer_each(stream, |n| {
            Some(if number == 0 || n % 2 == 0 {
                GOOD.to_vec()
            } else {
                b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec()
            })
        });
    });
    let step = load(address, &[("connections", "2")], 150).unwrap();
    let busy = step.client.errors["status 503"];
    assert!(
        busy > 0 && busy < step.transactions,
        "{busy} of {}",
        step.transactions
    );
}
