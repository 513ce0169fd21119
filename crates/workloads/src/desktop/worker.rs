//! The process with a desktop's tasks: an order a line on standard input, an answer a line on standard output.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use fingerpost_sys::trace::monotonic_ns;
use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;

use crate::desktop::task::{Answer, Clock, Order, Plan, Task, Turns, make};
use crate::worker::{Ended, say};

/// The worker's name in [`crate::worker`].
pub const NAME: &str = "desktop";

/// The program that is started.
const PROGRAM: &str = "/bin/true";
/// What is read.
const SIZE: usize = 4096;
/// Threads are ready well before their first turn is due.
const LEAD_NS: u64 = 20_000_000;

/// Answers orders until there are no more. The argument is the path of the file to be made and read.
pub fn main(args: Vec<OsString>) -> Ended {
    let file = args
        .into_iter()
        .next()
        .map(PathBuf::from)
        .unwrap_or_default();
    let made = File::create_new(&file).and_then(|mut f| f.write_all(&[b'x'; SIZE]));
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let answer: Answer = match (serde_json::from_str(&line), &made) {
            (Ok(order), Ok(())) => measure(order, &file),
            (Err(e), _) => Err(format!(
                "the process with a desktop's tasks got an order that it does not understand: {e}"
            )),
            (_, Err(e)) => Err(format!("cannot make {}: {e}", file.display())),
        };
        if serde_json::to_string(&answer)
            .map_err(io::Error::from)
            .and_then(|text| say(&text))
            .is_err()
        {
            break;
        }
    }
    // Nobody else knows of it if the scratch directory stays; what cannot be removed goes with that.
    let _ = std::fs::remove_file(&file);
    Ok(())
}

/// All tasks at the same time, a thread each.
fn measure(order: Order, file: &Path) -> Answer {
    let begin = monotonic_ns() + LEAD_NS + order.wait_ns;
    thread::scope(|scope| {
        let threads = Task::ALL.map(|task| {
            let run = move || turns(task, begin, order.length_ns, file);
            (
                task,
                thread::Builder::new()
                    .name(format!("fp-{}", task.name()))
                    .spawn_scoped(scope, run),
            )
        });
        let all = threads.into_iter().map(|(task, started)| {
            let thread = started
                .map_err(|e| format!("no thread could be started for {}: {e}", task.name()))?;
            let turns = thread
                .join()
                .map_err(|_| format!("the thread for {} ended early", task.name()))?;
            Ok((task, turns))
        });
        all.collect()
    })
}

fn turns(task: Task, begin: u64, length_ns: u64, file: &Path) -> Turns {
    let (period, offset) = task.schedule();
    let from = begin + offset.as_nanos() as u64;
    let until = begin + length_ns;
    let plan = Plan {
        from,
        until,
        period: period.as_nanos() as u64,
        give_up: until + length_ns,
    };
    make(plan, &mut Monotonic, &mut || match task {
        Task::Waker => Ok(()),
        Task::Exec => start_program(),
        Task::Read => read(file),
    })
}

fn start_program() -> io::Result<()> {
    let status = Command::new(PROGRAM)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{PROGRAM}: {status}")))
    }
}

fn read(file: &Path) -> io::Result<()> {
    File::open(file)?.read_exact(&mut [0; SIZE])
}

struct Monotonic;

impl Clock for Monotonic {
    fn now(&mut self) -> u64 {
        monotonic_ns()
    }

    fn sleep_until(&mut self, time: u64) -> io::Result<()> {
        let time = Timespec {
            tv_sec: (time / 1_000_000_000) as i64,
            tv_nsec: (time % 1_000_000_000) as _,
        };
        loop {
            match clock_nanosleep_absolute(ClockId::Monotonic, &time) {
                // A signal ends the sleep early.
                Err(Errno::INTR) => {}
                done => return done.map_err(io::Error::from),
            }
        }
    }
}
