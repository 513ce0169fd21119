//! Two ways to the kernel's events, for `bench/source`: perf's rings and programs in the kernel.
//!
//!     source cost ROUNDS      what recording an event costs, perf and eBPF in turns, in nanoseconds of CPU time
//!     source perf|bpf         windows without a pause until standard input ends; then events, lost ones,
//!                             CPU seconds of taking them
//!     source perf|bpf paused  opened, and never a window, until standard input ends
//!     source idle SECONDS     a thread that reads a page from the disk again and again, on a CPU that idles meanwhile:
//!                             how often it left its CPU, and how often it came back, by either source

use std::io::Read;
use std::os::unix::fs::FileExt;
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
        ["perf", "paused"] => Perf::open(MOST_EVENTS).and_then(|s| pause(Box::new(s))),
        ["bpf", "paused"] => Bpf::open(MOST_EVENTS).and_then(|s| pause(Box::new(s))),
        ["idle", seconds] => idle(Duration::from_secs(seconds.parse().unwrap_or(1))),
        _ => Err("usage: source cost ROUNDS | source perf [paused] | source bpf [paused] | source idle SECONDS".into()),
    };
    if let Err(sentence) = result {
        eprintln!("{sentence}");
        std::process::exit(2);
    }
}

fn cost(rounds: u32) -> Result<(), String> {
    for _ in 0..rounds {
        let (perf, bpf) = (
            Perf::open(MOST_EVENTS)?.about().event_cost,
            Bpf::open(MOST_EVENTS)?.about().event_cost,
        );
        println!("{:.1} {:.1}", perf * 1e9, bpf * 1e9);
    }
    Ok(())
}

/// Ends when standard input does.
fn watch_input() {
    std::thread::spawn(|| {
        _ = std::io::stdin().read_to_end(&mut Vec::new());
        OVER.store(true, Ordering::Relaxed);
    });
    println!("attached");
}

fn pause(source: Box<dyn Source>) -> Result<(), String> {
    watch_input();
    while !OVER.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("0 0 0 {}", source.about().cpus);
    Ok(())
}

fn idle(length: Duration) -> Result<(), String> {
    println!(
        "perf {}",
        left_and_came(&mut Perf::open(MOST_EVENTS)?, length)?
    );
    println!(
        "eBPF {}",
        left_and_came(&mut Bpf::open(MOST_EVENTS)?, length)?
    );
    Ok(())
}

/// How often the reading thread left its CPU and came back to one, by the events of a window.
fn left_and_came(source: &mut impl Source, length: Duration) -> Result<String, String> {
    OVER.store(false, Ordering::Relaxed);
    let (tell, told) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || read_again_and_again(&tell));
    let tid = told
        .recv()
        .map_err(|_| "no file could be made to read from")?;
    let window = source.window(length, &mut |time| {
        std::thread::sleep(time);
        false
    });
    OVER.store(true, Ordering::Relaxed);
    reader
        .join()
        .map_err(|_| "the reading thread failed")?
        .map_err(|e| format!("a page cannot be read: {e}"))?;
    let window = window.map_err(|e| format!("events cannot be taken: {e}"))?;
    let [left, came] = window.switches(tid);
    Ok(format!("{left} {came} {}", window.lost))
}

/// Reads pages of a file that the page cache is told to forget, from a directory that must lie on a disk.
fn read_again_and_again(tell: &std::sync::mpsc::Sender<i32>) -> std::io::Result<()> {
    const PAGES: u64 = 4096;
    let path = std::env::temp_dir().join(format!("source-{}", std::process::id()));
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    file.write_all_at(&vec![1; (PAGES * 4096) as usize], 0)?;
    file.sync_all()?;
    _ = tell.send(rustix::thread::gettid().as_raw_nonzero().get());
    let mut page = [0; 4096];
    while !OVER.load(Ordering::Relaxed) {
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random)?;
        for n in (0..PAGES)
            .step_by(16)
            .take_while(|_| !OVER.load(Ordering::Relaxed))
        {
            file.read_exact_at(&mut page, n * 4096)?;
        }
    }
    Ok(())
}

fn take(mut source: Box<dyn Source>) -> Result<(), String> {
    watch_input();
    let before = thread_cpu_seconds();
    let (mut events, mut lost, mut windows) = (0, 0, 0);
    while !OVER.load(Ordering::Relaxed) {
        let mut wait = |time| {
            std::thread::sleep(time);
            OVER.load(Ordering::Relaxed)
        };
        let window = source
            .window(Duration::from_secs(1), &mut wait)
            .map_err(|e| format!("events cannot be taken: {e}"))?;
        events += window.events.len();
        lost += window.lost;
        windows += 1;
    }
    println!(
        "{events} {lost} {:.6} {windows}",
        thread_cpu_seconds() - before
    );
    Ok(())
}
