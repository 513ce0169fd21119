//! Samples unwound and named by a process without rights, which is told one thing at a time: what ends it, or makes it
//! take too long, is left out, and it is started again without.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use fingerpost_record::stacks::{KERNEL, MOST_FRAMES};
use fingerpost_record::text::clean_short;
use fingerpost_sys::jail::LAST_WORD;
use fingerpost_sys::kallsyms;
use fingerpost_sys::packets::{Came, LONGEST};
use fingerpost_sys::perf::stacks::Registers;

use super::code::{Code, Mapped, Opened};
use super::helper::{Helper, READER};
use super::left::Left;
use super::maps;
use super::reader::{NONE, NOT_UNWOUND, word};
use super::unwind::{DEEPEST, FileKey, Timed};
use super::wire::{In, Out};
use crate::Limits;

/// Where debug files are installed, by build id; a longer one is not looked into.
const DEBUG: &str = "/usr/lib/debug/.build-id";
const MOST_DEBUG: u64 = 8 << 30;
/// The process is started so often.
const MOST_STARTS: u32 = 20;
/// How long one answer may take where the process waits for something else than a CPU. (What it computes is bounded by
/// its CPU time.)
const PATIENCE: Duration = Duration::from_millis(400);
/// How often it is looked how long everything has taken.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Mappings and addresses in one packet.
const MOST_IN_PACKET: usize = 1_000;
/// Characters of a name, and bytes of all names together, that are kept.
const MOST_NAME: usize = 500;
const MOST_NAMES: usize = 4 << 20;

/// The frames of samples as numbers of names, outermost first, in the order of the samples.
pub struct Named {
    pub frames: Vec<Vec<u32>>,
    pub names: Vec<String>,
    pub left: Left,
}

/// Unwinds and names samples, within these limits.
pub fn name(code: Code, samples: &[&Timed], limits: Limits) -> Named {
    let mut asker = Asker::new(code, samples, limits);
    let mut user = vec![Vec::new(); samples.len()];
    for at in most_sampled_first(samples) {
        user[at] = asker.frames(samples[at]);
    }
    let kernel = kallsyms::names(samples.iter().flat_map(|s| s.kernel.iter().copied()));
    let mut wanted: BTreeMap<i32, HashSet<u64>> = BTreeMap::new();
    for (sample, user) in samples.iter().zip(&user) {
        wanted.entry(sample.pid).or_default().extend(user);
    }
    let known = asker.names(wanted);
    let mut names = Names::default();
    let mut frames = Vec::with_capacity(samples.len());
    for (sample, user) in samples.iter().zip(user) {
        let of_kernel = |address: &u64| kernel.get(address).map_or("kernel", String::as_str);
        let of_user = |address: u64| known.get(&(sample.pid, address)).map(String::as_str);
        let mut all: Vec<u32> = sample
            .kernel
            .iter()
            .map(|address| names.number(format!("{}{KERNEL}", of_kernel(address))))
            .collect();
        all.extend(
            user.into_iter()
                .map(|address| of_user(address).unwrap_or("unknown code").to_owned())
                .map(|name| names.number(name)),
        );
        all.reverse();
        // Of many the outermost are left out: what a flame grows from matters less than where it ends.
        all.drain(..all.len().saturating_sub(MOST_FRAMES));
        frames.push(all);
    }
    Named {
        frames,
        names: names.all,
        left: asker.left,
    }
}

/// The places of samples, those of the process with most of them first: where time is short, many processes of a moment
/// take none of it from one that stays.
fn most_sampled_first(samples: &[&Timed]) -> Vec<usize> {
    let mut counts: HashMap<i32, usize> = HashMap::new();
    for sample in samples {
        *counts.entry(sample.pid).or_default() += 1;
    }
    let mut places: Vec<usize> = (0..samples.len()).collect();
    places.sort_by_key(|at| {
        let pid = samples[*at].pid;
        (Reverse(counts[&pid]), pid)
    });
    places
}

/// Names with their numbers.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    fn number(&mut self, name: String) -> u32 {
        let next = self.all.len() as u32;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.all.push(name.clone());
            next
        })
    }
}

/// A file as the process without rights knows it.
struct Read {
    opened: Opened,
    name: String,
    /// What it is not to be used for any more.
    unwound: bool,
    named: bool,
}

/// Asks the process.
struct Asker {
    helper: Option<Helper>,
    starts: u32,
    /// What CPU time is left, those that have ended taken off; when that was last looked at.
    cpu: Duration,
    looked: Instant,
    /// When it is over, whatever was had until then.
    until: Instant,
    files: Vec<Read>,
    numbers: HashMap<FileKey, u32>,
    processes: Vec<(i32, Mapped)>,
    places: HashMap<i32, u32>,
    left: Left,
}

impl Asker {
    fn new(code: Code, samples: &[&Timed], Limits { cpu, until }: Limits) -> Asker {
        let sampled: HashSet<i32> = samples.iter().map(|s| s.pid).collect();
        let Code {
            processes,
            files,
            left,
            ..
        } = code;
        let mut processes: Vec<(i32, Mapped)> = processes
            .into_iter()
            .filter(|(pid, _)| sampled.contains(pid))
            .collect();
        processes.sort_by_key(|(pid, _)| *pid);
        let named: HashMap<&FileKey, &str> = processes
            .iter()
            .flat_map(|(_, of)| of.mappings.iter().map(|m| (&m.file, m.name.as_str())))
            .collect();
        let mut files: Vec<(FileKey, Opened)> = files.into_iter().collect();
        files.sort_by(|a, b| a.0.cmp(&b.0));
        let numbers = (files.iter().zip(0..))
            .map(|((key, _), number)| (key.clone(), number))
            .collect();
        let files = files
            .into_iter()
            .map(|(key, opened)| Read {
                opened,
                name: named.get(&key).map_or_else(String::new, |name| short(name)),
                unwound: true,
                named: true,
            })
            .collect();
        let places = (processes.iter().zip(0..))
            .map(|((pid, _), place)| (*pid, place))
            .collect();
        Asker {
            helper: None,
            starts: 0,
            cpu,
            looked: Instant::now(),
            until,
            files,
            numbers,
            processes,
            places,
            left,
        }
    }

    fn time_left(&self) -> Duration {
        if self.cpu.is_zero() {
            return Duration::ZERO;
        }
        self.until.saturating_duration_since(Instant::now())
    }

    /// Ends the process; what CPU time it used is gone.
    fn end(&mut self) {
        let used = self.helper.take().map_or(Duration::ZERO, |h| h.cpu());
        self.cpu = self.cpu.saturating_sub(used);
    }

    /// Takes a packet, as long as there is time and the process does not wait for what does not come.
    fn receive(&mut self, into: &mut [u8], begun: Instant) -> Option<Came> {
        loop {
            let helper = self.helper.as_ref()?;
            match helper.packets.receive(into, Some(LOOK_EVERY)) {
                Ok(came) => return Some(came),
                Err(e) if e.kind() == ErrorKind::TimedOut => {}
                Err(_) => return None,
            }
            let stuck = begun.elapsed() > PATIENCE && helper.is_blocked();
            if stuck || helper.cpu() > self.cpu || self.time_left().is_zero() {
                return None;
            }
        }
    }

    /// The addresses of a sample's user frames, innermost first: where nothing can be unwound, the first alone.
    fn frames(&mut self, sample: &Timed) -> Vec<u64> {
        let Some(registers) = &sample.user else {
            return Vec::new();
        };
        let Registers {
            instruction,
            stack,
            frame,
            link,
        } = *registers;
        let alone = vec![instruction];
        let Some(&place) = self.places.get(&sample.pid) else {
            return alone;
        };
        let question = Out::new(word::FRAMES)
            .u32(place)
            .u64(instruction)
            .u64(stack)
            .u64(frame)
            .u64(link)
            .bytes(&sample.stack);
        let mut found = Vec::new();
        let answered = self.ask(&question, None, None, &mut |kind, mut packet| {
            if kind != word::FRAMES {
                return None;
            }
            while !packet.0.is_empty() && found.len() < DEEPEST {
                found.push(packet.u64()?);
            }
            Some(true)
        });
        if answered.is_none() || found.is_empty() {
            self.left.samples += 1;
            return alone;
        }
        found
    }

    /// The names at addresses of processes.
    fn names(&mut self, wanted: BTreeMap<i32, HashSet<u64>>) -> HashMap<(i32, u64), String> {
        let mut names: HashMap<(i32, u64), String> = HashMap::new();
        let mut bytes = 0;
        // Of each file the addresses that lie in it: process, address, and the mapping's start and offset.
        let mut in_files: BTreeMap<u32, Vec<(i32, u64, u64, u64)>> = BTreeMap::new();
        let mut lists = Vec::new();
        for (pid, of) in &self.processes {
            let mut own: Vec<u64> = wanted.get(pid).into_iter().flatten().copied().collect();
            own.sort_unstable();
            own.retain(|address| maps::at(&of.mappings, *address).is_some());
            for &address in &own {
                let Some(mapping) = maps::at(&of.mappings, address) else {
                    continue;
                };
                // Until the file has told a name, its own must do.
                let name = short(&mapping.name);
                let unnamed = if name.is_empty() {
                    "code made at run time".to_owned()
                } else {
                    name
                };
                keep(&mut names, &mut bytes, (*pid, address), unnamed);
                if let Some(&number) = self.numbers.get(&mapping.file) {
                    let place = (*pid, address, mapping.start, mapping.offset);
                    in_files.entry(number).or_default().push(place);
                }
            }
            if let Some((file, length)) = &of.functions
                && let Ok(file) = file.try_clone()
            {
                lists.push((*pid, own, file, *length));
            }
        }
        // What is read soon comes first: a file that takes all of the time takes it from none but longer ones.
        let mut in_files: Vec<_> = in_files.into_iter().collect();
        in_files.sort_by_key(|(number, _)| self.files[*number as usize].opened.1);
        for (number, places) in in_files {
            let debug = self.debug_file(number);
            for part in places.chunks(MOST_IN_PACKET) {
                let found = self.names_in(number, part, debug.as_ref());
                for (&(pid, address, ..), (stated, name)) in part.iter().zip(found) {
                    let name = match (stated, name) {
                        (u64::MAX, _) => continue,
                        (stated, name) if name.is_empty() => {
                            let file = &self.files[number as usize].name;
                            let file = if file.is_empty() { "file" } else { file };
                            format!("{file}+{stated:#x}")
                        }
                        (_, name) => name,
                    };
                    keep(&mut names, &mut bytes, (pid, address), name);
                }
            }
        }
        // What a program says of code that it made counts before what a file says.
        for (pid, own, file, length) in lists {
            for part in own.chunks(MOST_IN_PACKET) {
                let found = self.functions(part, file.as_fd(), length);
                for (&address, (_, name)) in part.iter().zip(found) {
                    if !name.is_empty() {
                        keep(&mut names, &mut bytes, (pid, address), name);
                    }
                }
            }
        }
        names
    }

    fn functions(&mut self, wanted: &[u64], file: BorrowedFd, bytes: u64) -> Vec<(u64, String)> {
        let question = wanted
            .iter()
            .fold(Out::new(word::FUNCTIONS).u64(bytes), |out, a| out.u64(*a));
        self.told_names(question, Some(file), None, wanted.len())
    }

    fn names_in(
        &mut self,
        number: u32,
        places: &[(i32, u64, u64, u64)],
        debug: Option<&(File, u64)>,
    ) -> Vec<(u64, String)> {
        if !self.files[number as usize].named {
            return Vec::new();
        }
        let question = Out::new(word::NAMES)
            .u32(number)
            .u64(debug.map_or(0, |(_, bytes)| *bytes));
        let question = places
            .iter()
            .fold(question, |out, (_, address, start, offset)| {
                out.u64(*start).u64(*offset).u64(*address)
            });
        let debug = debug.map(|(file, _)| file.as_fd());
        self.told_names(question, debug, Some(number), places.len())
    }

    fn told_names(
        &mut self,
        question: Out,
        file: Option<BorrowedFd>,
        number: Option<u32>,
        most: usize,
    ) -> Vec<(u64, String)> {
        let mut found = Vec::new();
        let answered = self.ask(
            &question,
            file,
            number,
            &mut |kind, mut packet| match kind {
                word::NAMED => {
                    while !packet.0.is_empty() && found.len() < most {
                        let stated = packet.u64()?;
                        found.push((stated, clean_short(packet.text()?, MOST_NAME)));
                    }
                    Some(false)
                }
                word::END => Some(true),
                _ => None,
            },
        );
        if answered.is_none() {
            self.left.addresses += most.saturating_sub(found.len());
        }
        found
    }

    /// The installed debug file of a file, by the build id that it states. Only root may have put it there.
    fn debug_file(&mut self, number: u32) -> Option<(File, u64)> {
        let mut id = Vec::new();
        let question = Out::new(word::BUILD_ID).u32(number);
        self.ask(&question, None, Some(number), &mut |kind, mut packet| {
            id = packet.bytes().filter(|_| kind == word::BUILD_ID)?.to_vec();
            Some(true)
        })?;
        debug_file(&id)
    }

    /// Asks a question and takes the answer's packets until `take` says that it was the last, or is no answer. What ends
    /// the process, or keeps it busy for too long, is left out, and where that is not the file that the question is about
    /// it is asked again.
    fn ask(
        &mut self,
        question: &Out,
        file: Option<BorrowedFd>,
        about: Option<u32>,
        take: &mut dyn FnMut(u8, In) -> Option<bool>,
    ) -> Option<()> {
        loop {
            let begun = Instant::now();
            let helper = self.started()?;
            let mut reading = None;
            if helper
                .packets
                .send(&question.0, file, Some(PATIENCE))
                .is_ok()
            {
                let mut packet = vec![0; LONGEST];
                while let Some(came) = self.receive(&mut packet, begun) {
                    let mut packet = In(&packet[..came.bytes]);
                    match packet.u8() {
                        Some(word::READING) => reading = packet.u32(),
                        Some(LAST_WORD) => {
                            reading = packet.u32().and_then(|n| n.checked_sub(1)).or(reading);
                            break;
                        }
                        Some(kind) => match take(kind, packet) {
                            Some(true) => return Some(()),
                            Some(false) if Instant::now() < self.until => {}
                            _ => break,
                        },
                        None => break,
                    }
                }
            }
            self.end();
            if self.time_left().is_zero() {
                return None;
            }
            let guilty = reading.or(about);
            let Some(read) = guilty.and_then(|number| self.files.get_mut(number as usize)) else {
                // It is not known what is to be left out but this question.
                return None;
            };
            self.left.files.insert(read.name.clone());
            if about.is_some() {
                read.named = false;
                return None;
            }
            if !std::mem::take(&mut read.unwound) {
                return None;
            }
        }
    }

    /// The process, started where there is none, with all files and processes.
    fn started(&mut self) -> Option<&Helper> {
        if self.looked.elapsed() > LOOK_EVERY {
            self.looked = Instant::now();
            if self.helper.as_ref().is_some_and(|h| h.cpu() >= self.cpu) {
                self.end();
            }
        }
        if self.time_left().is_zero() {
            return None;
        }
        if self.helper.is_none() {
            if self.starts >= MOST_STARTS {
                return None;
            }
            self.starts += 1;
            match Helper::start(READER) {
                Ok(helper) => self.helper = Some(helper),
                Err(_) => {
                    self.left.nothing =
                        Some("all names, as the process that reads them did not start");
                    return None;
                }
            }
            if self.tell_all().is_err() {
                self.helper = None;
                return None;
            }
        }
        self.helper.as_ref()
    }

    fn tell_all(&self) -> std::io::Result<()> {
        let Some(helper) = &self.helper else {
            return Ok(());
        };
        let patience = Some(self.time_left());
        let send = |out: Out, file: Option<BorrowedFd>| helper.packets.send(&out.0, file, patience);
        for read in &self.files {
            let flags = if read.unwound { 0 } else { NOT_UNWOUND };
            let out = Out::new(word::FILE).u32(flags).u64(read.opened.1);
            send(out, Some(read.opened.0.as_fd()))?;
        }
        for ((_, of), place) in self.processes.iter().zip(0..) {
            send(Out::new(word::PROCESS), None)?;
            for part in of.mappings.chunks(MOST_IN_PACKET) {
                let out = part
                    .iter()
                    .fold(Out::new(word::MAPPINGS).u32(place), |out, m| {
                        let file = self.numbers.get(&m.file).copied().unwrap_or(NONE);
                        out.u64(m.start).u64(m.end).u64(m.offset).u32(file)
                    });
                send(out, None)?;
            }
        }
        Ok(())
    }
}

/// Keeps a name, as long as all of them are not too long.
fn keep(names: &mut HashMap<(i32, u64), String>, bytes: &mut usize, key: (i32, u64), name: String) {
    *bytes += name.len();
    if *bytes <= MOST_NAMES {
        names.insert(key, name);
    }
}

/// The end of a path, as the kernel writes it of a mapping.
fn short(name: &str) -> String {
    let path = name.trim_end_matches(" (deleted)");
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

fn debug_file(id: &[u8]) -> Option<(File, u64)> {
    let hexadecimal: String = id
        .iter()
        .take(64)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let (first, rest) = (hexadecimal.get(..2)?, hexadecimal.get(2..)?);
    let path = format!("{DEBUG}/{first}/{rest}.debug");
    let file = File::open(path).ok()?;
    let meta = file.metadata().ok()?;
    let bytes = meta.len();
    (meta.is_file() && meta.uid() == 0 && meta.mode() & 0o022 == 0 && bytes <= MOST_DEBUG)
        .then_some((file, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_with_most_samples_comes_first() {
        let of = |pid| Timed {
            pid,
            ..Timed::default()
        };
        let samples = [3, 7, 1, 7, 3, 7].map(of);
        let samples: Vec<&Timed> = samples.iter().collect();
        assert_eq!(most_sampled_first(&samples), [1, 3, 5, 0, 4, 2]);
    }
}
