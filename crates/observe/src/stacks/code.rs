//! What code a service has: mappings and files of its processes, learned while they live, and read when it is over.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::image::Image;
use super::jit::Jit;
use super::maps::{self, Mapping};
use super::unwind::{FileKey, Process};

/// Processes of which mappings are kept.
const MOST_PROCESSES: usize = 1_000;
/// How often a process's mappings are read again for code that they lack.
const AGAIN: Duration = Duration::from_secs(1);

struct Mapped {
    mappings: Vec<Mapping>,
    read: Instant,
    /// What functions the program says that it made.
    jit: Jit,
}

/// What is known of processes' code so far.
#[derive(Default)]
pub struct Code {
    processes: HashMap<i32, Mapped>,
    files: HashMap<FileKey, Option<std::fs::File>>,
}

impl Code {
    /// Learns what code a process has, of which this is an address; while it lives.
    pub fn learn(&mut self, pid: i32, address: u64) {
        let old = match self.processes.get(&pid) {
            Some(known)
                if maps::at(&known.mappings, address).is_some() || known.read.elapsed() < AGAIN =>
            {
                return;
            }
            Some(known) => known.mappings.clone(),
            None if self.processes.len() >= MOST_PROCESSES => return,
            None => Vec::new(),
        };
        let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let found = maps::parse(&text);
        for mapping in found.iter().filter(|m| m.file.1 != 0) {
            self.files
                .entry(mapping.file.clone())
                .or_insert_with(|| maps::open_mapped(pid, mapping));
        }
        let mappings = if found.is_empty() { old } else { found };
        self.processes.insert(
            pid,
            Mapped {
                mappings,
                read: Instant::now(),
                jit: Jit::default(),
            },
        );
    }

    /// Reads what functions programs say they made, while they live.
    pub fn finish(&mut self) {
        self.processes
            .iter_mut()
            .for_each(|(&pid, mapped)| mapped.jit = Jit::of(pid));
    }

    pub fn read(self) -> HashMap<i32, Process> {
        let images: HashMap<FileKey, Arc<Image>> = self
            .files
            .into_iter()
            .filter_map(|(key, file)| Some((key, Arc::new(Image::read(file?)))))
            .collect();
        let process = |(pid, of): (i32, Mapped)| (pid, Process::new(of.mappings, &images, of.jit));
        self.processes.into_iter().map(process).collect()
    }
}
