//! Mutated records in volume: the same damage as in [`super::records`], read and shown by the code of the commands
//! without a process for each.
//!
//! Starting the binary takes more than reading a record, so a process takes thousands one after another. It says which
//! case it begins, so that one that ends, hangs or takes too much memory is known, and the next process goes on behind
//! it. What stands between the command line and that code is tried by the kind `records`, which starts the binary.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use fingerpost_compare::{Comparison, Options, Side, compare_sides, export};
use fingerpost_labs::zerofill;
use fingerpost_record::{Params, Run, fixture, lean, load};
use fingerpost_report::document::terminal;
use fingerpost_report::{Format, Style, explain, format, html, json};
use fingerpost_sys::system::ticks_per_second;
use fingerpost_sys::{child, sample};

use super::oracle::{Fault, misleading};
use super::records::Bases;
use super::{Plan, keep, oracle};

/// The variable by which a process is told its part: the first seed, the step, how many cases, how many milliseconds.
const PART: &str = "FINGERPOST_ATTACK_PART";
/// Where it tells how far it is, and what was wrong.
const TOLD: &str = "FINGERPOST_ATTACK_TOLD";
/// Cases that one process takes: the memory that it holds at the end is looked at, too.
const A_PROCESS: u64 = 10_000;
/// The most processor time that one case may take, as of the binary.
const CPU: Duration = Duration::from_secs(5);
/// When a case that does not end is given up: so much processor time later, or so much time while it waits for
/// something. One that waits for a CPU goes on: the machine may be busy.
const GIVEN_UP: u64 = 60;
const WALL: Duration = Duration::from_secs(240);
/// What a case may take beside four times its input.
const ALLOWANCE: u64 = 64 << 20;
/// The longest sentence.
const SENTENCE: usize = 2000;

/// Everything that is made of a run, as the commands make it.
const SHOWN: usize = 20;

fn shown(text: &[u8], good: &Run, kind: usize) -> Result<Vec<u8>, load::LoadError> {
    let style = Style::default();
    let mut out = Vec::new();
    let whole = || load::from_slice(text, "bad.json");
    let figures = || load::from_slice(&lean::without_samples(text), "bad.json");
    let formats = [Format::TABLE, Format::JSON, Format::CSV, Format::MARKDOWN];
    let written = "memory takes what is written";
    match kind {
        0..4 => {
            let labs = fingerpost_labs::views();
            format::write_run(&mut out, &whole()?, labs, formats[kind], &style).expect(written);
        }
        4 => out = export::go_bench(&whole()?).into_bytes(),
        5 => out = export::openmetrics(&whole()?).into_bytes(),
        6 | 7 => {
            let explained = explain::Explained {
                answers: Vec::new(),
                explanations: &explain::of_run(&whole()?),
                comparison: None,
            };
            let format = [Format::TABLE, Format::MARKDOWN][kind - 6];
            format.write(&mut out, &explained, &style).expect(written);
        }
        8 => json::write(&mut out, &explain::of_run(&whole()?)).expect(written),
        9 => out = html::report(&whole()?, fingerpost_labs::views(), None).into_bytes(),
        10 => {
            let content = html::of_comparison(&compared(good, &figures()?, false), None);
            out = html::page(&content).into_bytes();
        }
        11 => {
            let run = whole()?;
            if let Some(found) = zerofill::analysis::analyse(&run) {
                let section = zerofill::shown::section(&run, &found);
                out = terminal::render(&[section], &style).into_bytes();
            }
        }
        12..16 => {
            let c = compared(&figures()?, good, kind.is_multiple_of(2));
            formats[kind - 12]
                .write(&mut out, &c, &style)
                .expect(written);
        }
        _ => {
            let bad = figures()?;
            let c = match kind {
                16 => compared(&bad, &bad, true),
                _ => compared(good, &bad, false),
            };
            formats[kind - 16]
                .write(&mut out, &c, &style)
                .expect(written);
        }
    }
    Ok(out)
}

fn compared(base: &Run, new: &Run, paired: bool) -> Comparison {
    let side = |run: &Run| {
        let mut side = Side::default();
        side.add_part(run, &Params::new());
        side
    };
    let options = Options {
        paired,
        ..Options::default()
    };
    compare_sides(&side(base), &side(new), &options)
}

/// Judges one case; true when the damage was accepted.
fn attack(text: &[u8], good: &Run, kind: usize) -> Result<bool, Fault> {
    match shown(text, good, kind) {
        Ok(out) => match misleading(&out) {
            Some(what) => Err(Fault::new("control", format!("output {kind} has {what}"))),
            None => Ok(true),
        },
        Err(e) => {
            let sentence = e.to_string();
            if sentence.is_empty() || sentence.len() > SENTENCE || sentence.contains('\n') {
                return Err(Fault::new(
                    "sentence",
                    format!("it was refused with {sentence:?}"),
                ));
            }
            Ok(false)
        }
    }
}

/// The most memory that this process held since [`forget_peak`], and what it holds now.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.map(|l| l.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
        kib.unwrap() << 10
    };
    (of("VmHWM:"), of("VmRSS:"))
}

fn forget_peak() {
    // 5: the peak of the resident set (Documentation/filesystems/proc.rst).
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// What the process of a part does: the test below starts it by this test's name.
#[test]
#[ignore = "it is started by the test of the volume"]
fn part() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let words: Vec<u64> = part.split(' ').map(|word| word.parse().unwrap()).collect();
    let [first, step, cases, millis] = words[..] else {
        panic!("{part}");
    };
    let until = Instant::now() + Duration::from_millis(millis);
    let told = File::options()
        .read(true)
        .write(true)
        .open(std::env::var(TOLD).unwrap())
        .unwrap();
    let (bases, good) = (Bases::new(), fixture::loaded::collapsed());
    let (mut done, mut accepted, mut faults) = (0_u64, 0_u64, String::new());
    let tell = |state: [u64; 4]| {
        let bytes: Vec<u8> = state.iter().flat_map(|n| n.to_le_bytes()).collect();
        told.write_all_at(&bytes, 0).unwrap();
    };
    for seed in (first..).step_by(step as usize).take(cases as usize) {
        if Instant::now() >= until {
            break;
        }
        tell([seed, done, accepted, 0]);
        let text = bases.mutated(&mut Rng::with_seed(seed));
        let kind = Rng::with_seed(seed ^ 0x5eed).usize(..SHOWN);
        let (began, before) = (processor_time(), memory().1);
        forget_peak();
        let judged = std::panic::catch_unwind(|| attack(&text, &good, kind))
            .unwrap_or_else(|_| Err(Fault::new("abort", format!("output {kind} panicked"))));
        let (taken, peak) = (processor_time() - began, memory().0);
        let most = before + ALLOWANCE + 8 * text.len() as u64;
        let judged = match judged {
            Ok(_) if taken > CPU => Err(Fault::new("hang", format!("output {kind}: {taken:?}"))),
            Ok(_) if peak > most => Err(Fault::new(
                "memory",
                format!("output {kind}: {} MiB more", (peak - before) >> 20),
            )),
            judged => judged,
        };
        done += 1;
        match judged {
            Ok(yes) => accepted += u64::from(yes),
            Err(fault) => {
                let text = fault.text.replace('\n', " ");
                faults += &format!("{seed} {} {text}\n", fault.kind);
                told.write_all_at(faults.as_bytes(), 32).unwrap();
            }
        }
    }
    tell([0, done, accepted, 1]);
}

/// What a process told.
#[derive(Default)]
struct Told {
    seed: u64,
    done: u64,
    accepted: u64,
    ended: bool,
    faults: Vec<(u64, Fault)>,
}

fn read(file: &mut File) -> Told {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    if bytes.len() < 32 {
        return Told::default();
    }
    let number = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap());
    let text = String::from_utf8_lossy(&bytes[32..]);
    let fault = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let (seed, kind) = (words.next()?.parse().ok()?, words.next()?);
        let kind = oracle::KINDS.iter().find(|known| **known == kind)?;
        Some((seed, Fault::new(kind, words.next()?)))
    };
    Told {
        seed: number(0),
        done: number(1),
        accepted: number(2),
        ended: number(3) == 1,
        faults: text.lines().filter_map(fault).collect(),
    }
}

/// Runs one process for a part, and gives what came of it; one that hangs is killed.
fn process(seed: u64, step: u64, cases: u64, until: Instant) -> Told {
    let mut told = tempfile::NamedTempFile::new().unwrap();
    let mut said = tempfile::tempfile().unwrap();
    let left = until.saturating_duration_since(Instant::now()).as_millis();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["mutate::library::part", "--exact", "--ignored"])
        .args(["--nocapture", "--test-threads=1"])
        .env(PART, format!("{seed} {step} {cases} {left}"))
        .env(TOLD, told.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said.try_clone().unwrap());
    let mut running = child::die_with_parent(&mut command).spawn().unwrap();
    let (mut seen, mut since, mut used) = (0, Instant::now(), 0);
    let status = loop {
        let next = Instant::now() + Duration::from_secs(1);
        if let Some(status) = child::wait_deadline(&mut running, next).unwrap() {
            break Some(status);
        }
        let now = read(told.as_file_mut()).seed;
        let Some(state) = sample::process(running.id() as i32) else {
            continue;
        };
        let seconds = (state.user + state.system) / ticks_per_second();
        // The test runs on a thread beside the first.
        let tasks = PathBuf::from(format!("/proc/{}/task", running.id()));
        let ready = sample::numbers(&tasks)
            .iter()
            .filter_map(|tid| sample::stat(&tasks.join(tid.to_string())))
            .any(|task| matches!(task.state, 'R' | 'D'));
        if now != seen || ready && seconds < used + GIVEN_UP {
            since = Instant::now();
        }
        if now != seen {
            (seen, used) = (now, seconds);
        } else if seconds >= used + GIVEN_UP || since.elapsed() > WALL {
            running.kill().unwrap();
            running.wait().unwrap();
            break None;
        }
    };
    let mut found = read(told.as_file_mut());
    if !found.ended {
        let mut text = String::new();
        said.rewind().unwrap();
        let _ = said.take(4096).read_to_string(&mut text);
        let fault = match status {
            None => Fault::new("hang", "it did not end"),
            Some(status) => {
                let signal = status.signal();
                Fault::new("abort", format!("{status}, signal {signal:?}: {text}"))
            }
        };
        found.done += 1;
        found.faults.push((found.seed, fault));
    }
    found
}

#[test]
fn mutated_records_one_after_another() {
    let plan = Plan::from_environment();
    let (done, accepted) = (AtomicU64::new(0), AtomicU64::new(0));
    let faults = Mutex::new(Vec::new());
    let worker = |worker: u64| {
        let mut cases = plan.cases.saturating_sub(worker).div_ceil(plan.workers);
        let mut seed = plan.seed + worker;
        while cases > 0 && Instant::now() < plan.until {
            let told = process(seed, plan.workers, cases.min(A_PROCESS), plan.until);
            if told.done == 0 {
                break;
            }
            seed += told.done * plan.workers;
            cases -= told.done;
            done.fetch_add(told.done, Ordering::Relaxed);
            accepted.fetch_add(told.accepted, Ordering::Relaxed);
            let bases = if told.faults.is_empty() {
                None
            } else {
                Some(Bases::new())
            };
            for (seed, fault) in told.faults {
                let text = bases.as_ref().map(|b| b.mutated(&mut Rng::with_seed(seed)));
                let path = keep("records-library", seed, "json", &text.unwrap_or_default());
                println!(
                    "attack records-library seed {seed}: {} ({})",
                    fault.text,
                    path.display()
                );
                faults.lock().unwrap().push((seed, fault));
            }
            let _ = std::io::stdout().flush();
        }
    };
    std::thread::scope(|scope| {
        let worker = &worker;
        (0..plan.workers).for_each(|n| drop(scope.spawn(move || worker(n))));
    });
    let (cases, accepted) = (done.into_inner(), accepted.into_inner());
    let head = format!(
        "kind=records-library seed={} cases={cases} accepted={accepted}",
        plan.seed
    );
    super::summary(&head, &faults.into_inner().unwrap());
    assert!(
        cases > 0 && (cases < 100 || accepted > cases / 20),
        "{accepted} of {cases} cases got past the parser"
    );
}
