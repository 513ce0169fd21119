//! What is a stall, and what is said of it.

use super::*;
use crate::database::stalls::find;
use crate::web::stall::{Noted, StallWatch};

const MS: u64 = 1_000_000;
/// The step's length in milliseconds.
const END: u64 = 1500;

/// Completions, in milliseconds after the step's start: steadily, but for gaps at the start (30 ms), of 15, 20, 35, 45
/// and 400 ms, and at the end (50 ms).
fn completions() -> impl Iterator<Item = u64> {
    let gaps = [
        (0, 30),
        (100, 15),
        (200, 20),
        (300, 35),
        (400, 45),
        (600, 400),
        (1450, 50),
    ];
    (0..END).filter(move |at| {
        !gaps
            .iter()
            .any(|(from, length)| (*from..from + length).contains(at))
    })
}

fn in_ms(stalls: Vec<Stall>) -> Vec<(u64, u64)> {
    let ms = |s: f64| (s * 1e3).round() as u64;
    stalls
        .iter()
        .map(|s| (ms(s.at_s), ms(s.length_s)))
        .collect()
}

/// By each completion's time, as the web's load generator tells it.
fn by_times(median: u64) -> Vec<(u64, u64)> {
    let mut watch = StallWatch::new(0, Noted::new());
    watch.open(0);
    watch.renew(Some(median));
    completions().for_each(|at| watch.completed(at * MS));
    in_ms(watch.end(END * MS))
}

/// By completions in slots of a millisecond, as the database's load generator counts them.
fn by_slots(median: u64) -> Vec<(u64, u64)> {
    let mut slots = vec![0; END as usize];
    completions().for_each(|at| slots[at as usize] += 1);
    in_ms(find(&slots, MS, median, 4, &[]))
}

#[test]
fn a_stall_is_ten_medians_and_20_ms_at_least() {
    // A slot with a completion is whole; a time is its beginning.
    let times = [
        (0, 30),
        (199, 21),
        (299, 36),
        (399, 46),
        (599, 401),
        (1449, 51),
    ];
    let slots = [
        (0, 30),
        (200, 20),
        (300, 35),
        (400, 45),
        (600, 400),
        (1450, 50),
    ];
    for median in [0, MS / 5, 2 * MS] {
        assert_eq!(
            (by_times(median), by_slots(median)),
            (times.to_vec(), slots.to_vec())
        );
    }
    // What is 30 ms exactly is as long as ten medians.
    let of_3_ms = |all: [(u64, u64); 6]| [&all[..1], &all[2..]].concat();
    assert_eq!(
        (by_times(3 * MS), by_slots(3 * MS)),
        (of_3_ms(times), of_3_ms(slots))
    );
    for median in [20 * MS, 40 * MS] {
        assert_eq!(
            (by_times(median), by_slots(median)),
            (times[4..5].to_vec(), slots[4..5].to_vec())
        );
    }
    assert_eq!(
        (by_times(41 * MS), by_slots(41 * MS)),
        (Vec::new(), Vec::new())
    );
}

#[test]
fn a_client_that_stalls_all_the_time_has_a_bounded_list() {
    let mut watch = StallWatch::new(0, Noted::new());
    (1..2000).for_each(|n| watch.completed(n * 25 * MS));
    assert_eq!(watch.end(50_000 * MS).len(), MOST);
}

#[test]
fn only_what_all_generators_saw_is_a_stall_of_the_client() {
    let s = |at: u32, length: u32| Stall {
        at_s: f64::from(at) / 1e3,
        length_s: f64::from(length) / 1e3,
        why: Reason::Unseen,
    };
    let common = |generators: &[Vec<Stall>]| in_ms(common(generators.iter().map(Vec::as_slice)));
    let one = vec![s(0, 100), s(500, 100)];
    assert_eq!(common(std::slice::from_ref(&one)), [(0, 100), (500, 100)]);
    assert_eq!(
        common(&[one.clone(), vec![s(50, 100), s(590, 15)]]),
        [(50, 50)]
    );
    assert_eq!(common(&[one, Vec::new()]), []);
    assert_eq!(common(&[]), []);
}

#[test]
fn every_reason_has_its_sentence_in_either_process() {
    use Reason::*;
    let doing = Doing {
        connecting: 1,
        waiting: 2,
        receiving: 3,
        pausing: 4,
        idle: 5,
        last_error: Some("refused".to_owned()),
    };
    let unknown = Doing {
        last_error: None,
        ..doing.clone()
    };
    let overflow = "; the server's accept queue overflowed 7 times, and a connection turned away is tried again after \
                    1 s";
    for (reason, sentence) in [
        (
            WaitedForCpu(29_600_000),
            "the load generator itself waited 30 ms for a CPU",
        ),
        (
            DidNotRun(900 * MS),
            "the load generator did not run for 900 ms: it was stopped, or the host gave this guest no CPU",
        ),
        (
            GotNoCpu(90 * MS),
            "the load generator itself got no CPU for 90 ms",
        ),
        (
            Stolen(80 * MS),
            "the host took 80 ms of CPU time away from this machine",
        ),
        (Unseen, "it was over before the connections were looked at"),
        (
            NoPort(doing.clone(), 28_000, 28_232),
            "4 of 10 connections could not be made: no free local port; 28000 sockets are in TIME_WAIT and there are \
             28232 local ports for one address",
        ),
        (
            NotConnected(doing.clone()),
            "4 of 10 connections could not be made: refused",
        ),
        (
            NotConnected(unknown),
            "4 of 10 connections could not be made: unknown",
        ),
        (
            Connecting(doing.clone(), 0),
            "1 of 10 connections waited to be established",
        ),
        (
            Connecting(doing.clone(), 7),
            &format!("1 of 10 connections waited to be established{overflow}"),
        ),
        (
            WithinAnswers(doing.clone()),
            "the server stopped in the middle of 3 of 10 answers",
        ),
        (
            Unanswered(doing.clone(), 0),
            "2 of 10 requests were sent and the server answered none",
        ),
        (
            Unanswered(doing.clone(), 7),
            &format!("2 of 10 requests were sent and the server answered none{overflow}"),
        ),
        (
            Mixed(doing, 7),
            &format!(
                "1 connections were being established, 2 waited for an answer, 3 were within one, 4 paused after an \
                 error{overflow}"
            ),
        ),
        (
            Server(1, Threads::Unseen),
            "the client was waiting for the server",
        ),
        (
            Server(4, Threads::Asleep),
            "all 4 clients were waiting for the server, and all of its threads were asleep: locks, timers or the \
             network",
        ),
        (
            Server(1, Threads::Runnable(2)),
            "the client was waiting for the server, which had 2 threads running or ready to run",
        ),
        (
            Server(2, Threads::AtDisk(1)),
            "all 2 clients were waiting for the server, which had 1 thread waiting for a disk",
        ),
    ] {
        assert_eq!(reason.to_string(), sentence);
        // This beginning was how a stall of the generator's own was known.
        assert_eq!(
            reason.is_generators_own(),
            sentence.starts_with("the load generator")
        );
        let line = serde_json::to_string(&reason).unwrap();
        assert_eq!(serde_json::from_str::<Reason>(&line).unwrap(), reason);
    }
}
