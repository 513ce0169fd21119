//! What code a service has: mappings and files of its processes, learned while they live.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use fingerpost_record::text::clean_short;

use super::left::Left;
use super::maps::{self, MOST_MAPPINGS, Mapping};
use super::opener::{CODE, FUNCTIONS, Opener, Told};
use super::unwind::FileKey;

/// Processes of which mappings are kept, and mappings of all together.
const MOST_PROCESSES: usize = 1_000;
const MOST_OF_ALL: usize = 50_000;
/// How often a process's mappings are read again for code that they lack: the first time; then each time half as often.
const AGAIN: Duration = Duration::from_secs(1);
/// How long an answer may keep us waiting while the service is watched, and at the end, where all that is still to come
/// may take so long.
const STUCK: Duration = Duration::from_secs(1);
const STUCK_AT_END: Duration = Duration::from_millis(250);
const END: Duration = Duration::from_millis(500);
/// The same where the process waits for nothing but a CPU, and what it may have of that.
const MOST_END: Duration = Duration::from_millis(if cfg!(debug_assertions) { 3_000 } else { 800 });
const END_CPU: Duration = Duration::from_millis(300);
/// Characters of a name that are kept.
const MOST_NAME: usize = 200;

/// An open file, and how long it was.
pub type Opened = (OwnedFd, u64);

/// A process's code.
pub struct Mapped {
    /// In the order of addresses.
    pub mappings: Vec<Mapping>,
    /// What functions the program says that it made.
    pub functions: Option<Opened>,
    coming: Vec<Mapping>,
    asked: Instant,
    again: Duration,
}

/// What is known of processes' code so far.
#[derive(Default)]
pub struct Code {
    pub processes: HashMap<i32, Mapped>,
    pub files: HashMap<FileKey, Opened>,
    pub left: Left,
    opener: Opener,
}

impl Code {
    /// Has the process that opens files started before there is anything to open.
    pub fn begin(&mut self) {
        self.opener.start();
    }

    /// Learns what code a process has, of which this is an address; while it lives.
    pub fn learn(&mut self, pid: i32, address: u64) {
        let (now, full) = (Instant::now(), self.processes.len() >= MOST_PROCESSES);
        match self.processes.get_mut(&pid) {
            Some(known)
                if maps::at(&known.mappings, address).is_some()
                    || now - known.asked < known.again =>
            {
                return;
            }
            Some(known) => {
                known.asked = now;
                known.again *= 2;
            }
            None if full => return,
            None => {
                self.processes.insert(
                    pid,
                    Mapped {
                        mappings: Vec::new(),
                        functions: None,
                        coming: Vec::new(),
                        asked: now,
                        again: AGAIN,
                    },
                );
            }
        }
        self.opener.ask(CODE, pid);
    }

    /// Takes what has been opened meanwhile.
    pub fn turn(&mut self) {
        self.take(Duration::ZERO, STUCK);
    }

    fn take(&mut self, wait: Duration, stuck: Duration) {
        let Code {
            processes,
            files,
            left,
            opener,
        } = self;
        if !opener.is_idle() {
            opener.turn(wait, stuck, |told| keep(told, processes, files, left));
        }
    }

    /// Learns what functions programs say they made, while they live, and ends the process that opens files.
    pub fn finish(&mut self) {
        let pids: Vec<i32> = self.processes.keys().copied().collect();
        pids.iter().for_each(|&pid| self.opener.ask(FUNCTIONS, pid));
        let (begun, before) = (Instant::now(), self.opener.state().1);
        while !self.opener.is_idle() {
            let (blocked, cpu) = self.opener.state();
            let over = begun.elapsed() > END && (blocked || begun.elapsed() > MOST_END);
            if over || cpu.saturating_sub(before) > END_CPU {
                break;
            }
            self.take(Duration::from_millis(10), STUCK_AT_END);
        }
        let Code {
            processes,
            files,
            left,
            opener,
        } = self;
        opener.end(|told| keep(told, processes, files, left));
    }
}

fn keep(
    told: Told,
    processes: &mut HashMap<i32, Mapped>,
    files: &mut HashMap<FileKey, Opened>,
    left: &mut Left,
) {
    match told {
        Told::Mappings(pid, found) => {
            let Some(known) = processes.get_mut(&pid) else {
                return;
            };
            let room = MOST_MAPPINGS.saturating_sub(known.coming.len());
            let clean = found.into_iter().take(room).map(|mapping| Mapping {
                name: clean_short(&mapping.name, MOST_NAME),
                ..mapping
            });
            known.coming.extend(clean);
        }
        Told::File(key, file, bytes) => {
            files.entry(key).or_insert((file, bytes));
        }
        Told::Functions(pid, file, bytes) => {
            if let Some(known) = processes.get_mut(&pid) {
                known.functions = Some((file, bytes));
            }
        }
        Told::Done(what, pid, refused, whole) => {
            left.elsewhere = left.elsewhere.saturating_add(refused);
            if !whole {
                left.processes.insert(pid);
            }
            let all: usize = processes.values().map(|of| of.mappings.len()).sum();
            if what != CODE {
                return;
            }
            if let Some(known) = processes.get_mut(&pid) {
                let mut found = std::mem::take(&mut known.coming);
                // The order is what all that follows rests on.
                found.sort_by_key(|m| m.start);
                found.dedup_by(|later, earlier| later.start < earlier.end);
                if all.saturating_add(found.len()) > MOST_OF_ALL {
                    left.processes.insert(pid);
                } else if !found.is_empty() {
                    known.mappings = found;
                }
            }
        }
        Told::GaveUp(pid) => {
            left.processes.insert(pid);
            processes
                .get_mut(&pid)
                .into_iter()
                .for_each(|known| known.coming.clear());
        }
    }
}
