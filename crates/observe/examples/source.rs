//! Two ways to the kernel's events, for `bench/source`: perf's rings and programs in the kernel.
//!
//!     source cost ROUNDS      what recording an event costs, perf and eBPF in turns, in nanoseconds of CPU time
//!     source perf|bpf         windows without a pause until standard input ends; then events, lost ones, CPU seconds of taking them

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fingerpost_observe::follow::source::Source;
use fingerpost_observe::follow::source::bpf::Bpf;
use fingerpost_observe::follow::source::perf::Perf;
use fingerpost_sys::trace::thread_cpu_seconds;

/// Events of one window: 24 MB.
const MOST_EVENTS: usize = 500_000;

static OVER: AtomicBool = AtomicBool::new(false);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cost", rounds] => cost(rounds.parse().unwrap_or(10)),
        ["perf"] => Perf::open(MOST_EVENTS).and_then(|s| take(Box::new(s))),
        ["bpf"] => Bpf::open(MOST_EVENTS).and_then(|s| take(Box::new(s))),
        _ => Err("usage: source cost ROUNDS | source perf | source bpf".into()),
    };
    if let Err(sentence) = result {
        eprintln!("{sentence}");
        std::process::exit(2);
    }
}

fn cost(rounds: u32) -> Result<(), String> {
    for _ in 0..rounds {
        let (perf, bpf) = (Perf::open(MOST_EVENTS)?.event_cost(), Bpf::open(MOST_EVENTS)?.event_cost());
        println!("{:.1} {:.1}", perf * 1e9, bpf * 1e9);
    }
    Ok(())
}

fn take(mut source: Box<dyn Source>) -> Result<(), String> {
    std::thread::spawn(|| {
        _ = std::io::stdin().read_to_end(&mut Vec::new());
        OVER.store(true, Ordering::Relaxed);
    });
    println!("attached");
    let before = thread_cpu_seconds();
    let (mut events, mut lost, mut windows) = (0, 0, 0);
    while !OVER.load(Ordering::Relaxed) {
        let mut wait = |time| {
            std::thread::sleep(time);
            OVER.load(Ordering::Relaxed)
        };
        let window = source.window(Duration::from_secs(1), &mut wait).map_err(|e| format!("events cannot be taken: {e}"))?;
        let Some(window) = window else { break };
        events += window.events.len();
        lost += window.lost;
        windows += 1;
    }
    println!("{events} {lost} {:.6} {windows}", thread_cpu_seconds() - before);
    Ok(())
}
