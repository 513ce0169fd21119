//! What is around a server under load: control groups with their limits, neighbours, the network's rate. Each change is
//! in the journal before it is made, and undone after the trial.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fingerpost_sys::cgroup::{CgroupError, Controller, Group};
use fingerpost_sys::{affinity, child};
use fingerpost_undo::journal::Undo;
use fingerpost_undo::scratch::{Scratch, Ticket};
use fingerpost_workloads::WorkloadError;
use fingerpost_workloads::planted::Planted;
use fingerpost_workloads::planted::script::Script;
use fingerpost_workloads::planted::surroundings::Surroundings;
use fingerpost_workloads::rehearsal::Worker;

use crate::prove::setting::{
    PATIENCE, add_swap, controllers, failed, limit_writes, make_group, missing, neighbour_of,
    shape, undo, unshape,
};

/// The name of a group within one of ours.
const INNER: &str = "fingerpost-inner";

/// A neighbour.
#[derive(Clone, Debug, PartialEq)]
pub enum Neighbour {
    /// So many threads that use CPU time.
    Burns(usize),
    /// The same in a control group of their own with this weight.
    BurnsApart(usize, u64),
    /// So many threads that use the time of this CPU.
    BurnsOn(usize, usize),
    /// So many shells that count.
    Shells(usize),
    /// Writes and syncs on the server's disk, with a pause of so many microseconds after each sync.
    Syncs(u64),
    /// So many threads that read from the server's disk.
    Reads(usize),
    /// Writes to memory, little and seldom.
    Scribbles,
    /// Does nothing.
    Idles,
    /// Another session with the server.
    Session(Script),
}

/// What is around one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Around {
    /// CPUs' worth of time that the server's group may use.
    pub quota: Option<f64>,
    /// The same for the group above the server's.
    pub parent_quota: Option<f64>,
    /// The share of the memory that it holds which the server's group has to do without.
    pub memory_short: Option<f64>,
    /// Writes a second that the server's group may do.
    pub writes: Option<u64>,
    /// CPUs' worth of time that the clients' group may use.
    pub client_quota: Option<f64>,
    /// What holds for the clients' process.
    pub client: Surroundings,
    /// CPUs for the server's child processes alone, set while they run.
    pub children_on: Vec<usize>,
    /// What goes on beside it.
    pub neighbours: Vec<Neighbour>,
    /// Bytes a second over the loopback interface of a network of our own.
    pub loopback: Option<u32>,
}

impl Around {
    /// With this neighbour, in place of one of its kind.
    pub fn beside(&mut self, neighbour: Neighbour) {
        let kind = std::mem::discriminant(&neighbour);
        self.neighbours
            .retain(|n| std::mem::discriminant(n) != kind);
        self.neighbours.push(neighbour);
    }

    fn controllers(&self) -> Vec<Controller> {
        controllers(
            self.quota.is_some(),
            self.memory_short.is_some(),
            self.writes.is_some(),
        )
    }
}

/// The groups and neighbours of one side while it lives.
#[derive(Default)]
pub struct Surround {
    around: Around,
    dir: PathBuf,
    name: String,
    group: Option<Group>,
    /// The directory of the group within [`Surround::parent`].
    inner: Option<PathBuf>,
    parent: Option<Group>,
    client: Option<Group>,
    apart: Option<Group>,
    tickets: Vec<Ticket>,
    /// Stopped while the other side is measured.
    running: Vec<Worker>,
    shells: Vec<fingerpost_undo::scratch::Server>,
    /// Those of the running that are clients of the server.
    sessions: Vec<i32>,
    /// Bytes that the server held before its memory was limited.
    held: Option<u64>,
    /// Whether a quota, and whether a limit on writes, was set once: it is then taken away where none is wanted.
    limited: (bool, bool),
    shaped: bool,
}

impl Surround {
    /// Makes groups and swap; limits and neighbours come with [`Surround::adjust`].
    pub fn make(
        around: &Around,
        side: usize,
        dir: &Path,
        scratch: &mut Scratch,
    ) -> Result<Surround, WorkloadError> {
        let mut surround = Surround {
            around: around.clone(),
            dir: dir.to_owned(),
            name: format!("fingerpost-prove-{}-{side}", std::process::id()),
            ..Surround::default()
        };
        if let Err(e) = surround.make_all(scratch) {
            surround.unmake(scratch)?;
            return Err(e);
        }
        Ok(surround)
    }

    fn make_all(&mut self, scratch: &mut Scratch) -> Result<(), WorkloadError> {
        if self.around.memory_short.is_some() {
            add_swap(
                &self.dir.join(format!("{}.swap", self.name)),
                &mut self.tickets,
                scratch,
            )?;
        }
        let controllers = self.around.controllers();
        if !controllers.is_empty() {
            self.group = Some(self.make_group("", &controllers, scratch)?);
        }
        if self.around.parent_quota.is_some() {
            let parent = self.make_group("-above", &[Controller::Cpu], scratch)?;
            for place in parent.places() {
                let inner = place.directory.join(INNER);
                let mut undo = place.clone();
                undo.directory.clone_from(&inner);
                undo.enabled.clear();
                self.tickets.push(
                    scratch
                        .record(Undo::RemoveGroup { place: undo })
                        .map_err(failed)?,
                );
                std::fs::create_dir(&inner).map_err(|e| {
                    missing(format!(
                        "cannot make the control group {}: {e}",
                        inner.display()
                    ))
                })?;
                self.inner = Some(inner);
            }
            self.parent = Some(parent);
        }
        if self.around.client_quota.is_some() {
            self.client = Some(self.make_group("-client", &[Controller::Cpu], scratch)?);
        }
        if self
            .around
            .neighbours
            .iter()
            .any(|n| matches!(n, Neighbour::BurnsApart(..)))
        {
            self.apart = Some(self.make_group("-beside", &[Controller::Cpu], scratch)?);
        }
        Ok(())
    }

    fn make_group(
        &mut self,
        end: &str,
        controllers: &[Controller],
        scratch: &mut Scratch,
    ) -> Result<Group, WorkloadError> {
        make_group(
            &format!("{}{end}", self.name),
            controllers,
            &mut self.tickets,
            scratch,
        )
    }

    /// Puts a process of the server where it belongs.
    pub fn place(&self, pid: i32) -> Result<(), String> {
        if let Some(group) = &self.group {
            group.add_pid(pid as u32).map_err(|e| e.to_string())?;
        }
        if let Some(inner) = &self.inner {
            let file = inner.join("cgroup.procs");
            std::fs::write(&file, pid.to_string())
                .map_err(|e| format!("cannot write to {}: {e}", file.display()))?;
        }
        Ok(())
    }

    /// Sets limits and starts neighbours, which wait until the side is entered. Again with other values, and the others
    /// are gone.
    pub fn adjust(
        &mut self,
        around: &Around,
        planted: &Planted,
        scratch: &mut Scratch,
    ) -> Result<(), WorkloadError> {
        let again = self.around.neighbours != around.neighbours
            || self.running.is_empty() && self.shells.is_empty();
        self.around = around.clone();
        if let (Some(client), Some(quota)) = (&self.client, around.client_quota) {
            client
                .set_cpu_quota(Some(quota.max(0.02)))
                .map_err(missing)?;
            let pids = fingerpost_workloads::Workload::subjects(planted).clients;
            pids.iter()
                .try_for_each(|pid| client.add_pid(*pid as u32))
                .map_err(failed)?;
        }
        if let (Some(parent), Some(quota)) = (&self.parent, around.parent_quota) {
            parent
                .set_cpu_quota(Some(quota.max(0.02)))
                .map_err(missing)?;
        }
        self.limit().map_err(missing)?;
        if again {
            self.end_neighbours(scratch)?;
            for neighbour in around.neighbours.clone() {
                self.start(&neighbour, planted, scratch)?;
            }
            self.leave()?;
        }
        Ok(())
    }

    fn limit(&mut self) -> Result<(), CgroupError> {
        let Some(group) = &self.group else {
            return Ok(());
        };
        if self.around.quota.is_some() || self.limited.0 {
            group.set_cpu_quota(self.around.quota.map(|quota| quota.max(0.02)))?;
            self.limited.0 = true;
        }
        if let Some(short) = self.around.memory_short {
            if self.held.is_none() {
                self.held = group.memory_bytes();
            }
            let held = self.held.unwrap_or(64 << 20);
            group.set_memory_limit(Some((held as f64 * (1.0 - short.clamp(0.0, 0.6))) as u64))?;
        }
        if self.around.writes.is_some() || self.limited.1 {
            limit_writes(group, &self.dir, self.around.writes.map(|w| w.max(2)))?;
            self.limited.1 = true;
        }
        Ok(())
    }

    fn start(
        &mut self,
        neighbour: &Neighbour,
        planted: &Planted,
        scratch: &mut Scratch,
    ) -> Result<(), WorkloadError> {
        let dir = || self.dir.clone().into_os_string();
        let words: Vec<OsString> = match neighbour {
            Neighbour::Burns(n) | Neighbour::BurnsApart(n, _) | Neighbour::BurnsOn(n, _) => {
                vec!["cpu".into(), n.to_string().into()]
            }
            Neighbour::Syncs(pause) => vec!["disk".into(), dir(), pause.to_string().into()],
            Neighbour::Reads(n) => vec!["read".into(), dir(), n.to_string().into()],
            Neighbour::Scribbles => vec!["memory".into()],
            Neighbour::Idles => vec!["idle".into()],
            Neighbour::Session(script) => {
                let session = planted.other_session(script)?;
                self.sessions.push(session.pid());
                self.running.push(session);
                return Ok(());
            }
            Neighbour::Shells(n) => {
                for _ in 0..*n {
                    let mut shell = std::process::Command::new("/bin/sh");
                    shell.args(["-c", "i=0; while :; do i=$((i+1)); done"]);
                    self.shells.push(scratch.spawn(&mut shell).map_err(failed)?);
                }
                return Ok(());
            }
        };
        let mut process = neighbour_of(words)?;
        if let (Neighbour::BurnsApart(_, weight), Some(group)) = (neighbour, &self.apart) {
            group
                .set_cpu_weight(*weight)
                .and_then(|()| group.add_pid(process.pid() as u32))
                .map_err(missing)?;
        }
        if let Neighbour::BurnsOn(_, cpu) = neighbour {
            // Before it has threads: they inherit it.
            affinity::pin_task(process.pid(), &[*cpu]).map_err(failed)?;
        }
        process.ask("go", PATIENCE)?;
        self.running.push(process);
        Ok(())
    }

    /// Processes beside the server that may be held for a moment. A client of the server, held, would keep what it has
    /// of the server.
    pub fn neighbours(&self) -> Vec<i32> {
        self.pids()
            .into_iter()
            .filter(|pid| !self.sessions.contains(pid))
            .collect()
    }

    fn pids(&self) -> Vec<i32> {
        self.running
            .iter()
            .map(Worker::pid)
            .chain(self.shells.iter().map(|s| s.pid()))
            .collect()
    }

    /// Begins what holds only while this side is measured: neighbours and the network's rate.
    pub fn enter(&mut self, planted: &Planted) -> Result<(), WorkloadError> {
        self.shaped |= shape(self.around.loopback)?;
        if !self.around.children_on.is_empty() {
            let own = fingerpost_workloads::Workload::subjects(planted).servers;
            for pid in planted
                .server_tree()
                .into_iter()
                .filter(|pid| !own.contains(pid))
            {
                let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
                    .into_iter()
                    .flatten()
                    .flatten();
                let tids = tasks.filter_map(|t| t.file_name().to_str()?.parse::<i32>().ok());
                // A thread that has ended meanwhile needs no CPU.
                tids.for_each(|tid| _ = affinity::pin_task(tid, &self.around.children_on));
            }
        }
        self.pids()
            .into_iter()
            .try_for_each(|pid| child::signal(pid, libc::SIGCONT))
            .map_err(failed)
    }

    /// Ends it.
    pub fn leave(&mut self) -> Result<(), WorkloadError> {
        self.pids()
            .into_iter()
            .try_for_each(|pid| child::signal(pid, libc::SIGSTOP))
            .map_err(failed)?;
        unshape(&mut self.shaped)
    }

    fn end_neighbours(&mut self, scratch: &mut Scratch) -> Result<(), WorkloadError> {
        self.running.clear();
        for shell in self.shells.drain(..) {
            let _ = child::signal_group(shell.pid(), libc::SIGKILL);
            scratch.stop(shell).map_err(WorkloadError::Failed)?;
        }
        Ok(())
    }

    /// Ends the neighbours, before the server ends.
    pub fn end(&mut self, scratch: &mut Scratch) -> Result<(), WorkloadError> {
        self.leave().and(self.end_neighbours(scratch))
    }

    /// Takes away everything that was made. The server must have ended.
    pub fn unmake(mut self, scratch: &mut Scratch) -> Result<(), WorkloadError> {
        let ended = self.end_neighbours(scratch);
        // The inner group must go before the one that it is in.
        let undone = undo(&mut self.tickets, scratch);
        (self.group, self.parent, self.client, self.apart) = (None, None, None, None);
        ended.and(undone)
    }
}
