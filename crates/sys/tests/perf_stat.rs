//! Our counters against those of `perf stat`, over a fixed piece of work.
//!
//! `perf stat` counts a whole process. Two sizes of the work are run, and the difference between their counts is the
//! work's alone.

use std::process::Command;

use fingerpost_sys::perf::{Event, EventSet, Mode, Target, availability};

const SIZE: &str = "FINGERPOST_TEST_WORK";
const SMALL: u64 = 1;
const LARGE: u64 = 40;

/// So many times: 64 pages touched for the first time, and a loop of 100 000 steps in user code.
fn work(size: u64) {
    let page = fingerpost_sys::system::page_bytes() as usize;
    for n in 0..size {
        touch(64 * page, page);
        let mut x = n;
        for step in 0..100_000u64 {
            x = std::hint::black_box(x.wrapping_mul(31) ^ step);
        }
    }
}

/// A mapping of its own for each: an allocator would hand out memory that was touched before.
#[allow(unsafe_code)]
fn touch(bytes: usize, page: usize) {
    // SAFETY: a new anonymous mapping, touched only within its bounds, and unmapped once.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let memory = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        assert_ne!(memory, libc::MAP_FAILED);
        libc::madvise(memory, bytes, libc::MADV_NOHUGEPAGE);
        (0..bytes)
            .step_by(page)
            .for_each(|at| memory.cast::<u8>().add(at).write_volatile(1));
        libc::munmap(memory, bytes);
    }
}

/// What the process under `perf stat` runs; without the variable there is nothing to do.
#[test]
fn the_work_alone() {
    if let Some(size) = std::env::var(SIZE).ok().and_then(|size| size.parse().ok()) {
        work(size);
    }
}

/// What `perf stat` counts for a process that does this much work; `None` where it cannot.
fn by_perf(event: &str, size: u64) -> Option<f64> {
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new("perf");
    command
        .args(["stat", "-x,", "-e", event, "--"])
        .arg(own)
        .args(["--exact", "the_work_alone", "--test-threads=1"]);
    let output = command
        .env(SIZE, size.to_string())
        .env("LC_ALL", "C")
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines()
        .find(|line| line.contains(event))?
        .split(',')
        .next()?
        .parse()
        .ok()
}

fn by_us(event: (Event, Mode), size: u64) -> f64 {
    let set = EventSet::open(&[event], Target::Thread).unwrap();
    set.switch(true).unwrap();
    work(size);
    set.switch(false).unwrap();
    set.read().unwrap()[0].scaled().unwrap()
}

fn compare(name: &str, event: (Event, Mode), tolerance: f64) {
    let Some((large, small)) = by_perf(name, LARGE).zip(by_perf(name, SMALL)) else {
        return fingerpost_testing::skipped(format_args!(
            "`perf stat -e {name}` does not count here"
        ));
    };
    let ours = by_us(event, LARGE) - by_us(event, SMALL);
    let theirs = large - small;
    eprintln!(
        "{name}: ours {ours}, perf stat {theirs}, ratio {:.5}",
        ours / theirs
    );
    assert!(
        (ours / theirs - 1.0).abs() <= tolerance,
        "{name}: ours {ours}, perf stat {theirs}"
    );
}

#[test]
fn page_faults_agree() {
    compare("page-faults", (Event::PageFaults, Mode::Both), 0.01);
}

#[test]
fn instructions_agree() {
    match availability() {
        Ok(_) => compare("instructions:u", (Event::Instructions, Mode::User), 0.01),
        Err(refusal) => eprintln!("skipped: {refusal}"),
    }
}
