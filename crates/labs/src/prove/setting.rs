//! Makes the surroundings of one side, and unmakes them.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fingerpost_sys::cgroup::{CgroupError, Controller, Group, Hierarchies, Throttle};
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::{network, swap};
use fingerpost_undo::journal::Undo;
use fingerpost_undo::scratch::{Scratch, Ticket};
use fingerpost_workloads::planted::surroundings::Surroundings;
use fingerpost_workloads::rehearsal::{Recipe, Rehearsal, Worker, neighbour};
use fingerpost_workloads::{WorkloadError, worker};

use super::plants::Change;

/// How long a neighbour may take to begin.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Swap for a server that may not keep all of its memory.
const SWAP: u64 = 160 << 20;

/// The surroundings of one side while it lives.
#[derive(Default)]
pub struct Setting {
    change: Change,
    dir: PathBuf,
    cpus: Vec<usize>,
    group: Option<Arc<Group>>,
    tickets: Vec<Ticket>,
    neighbours: Vec<Worker>,
    shaped: bool,
}

impl Setting {
    /// Makes what stays for the whole trial: the control group with its limits, the swap file. Each change is in the
    /// journal first.
    pub fn make(
        change: Change,
        side: usize,
        dir: &Path,
        cpus: &[usize],
        scratch: &mut Scratch,
    ) -> Result<Setting, WorkloadError> {
        let mut setting = Setting {
            change,
            dir: dir.to_owned(),
            cpus: cpus.to_vec(),
            ..Setting::default()
        };
        if let Err(e) = setting.make_all(side, scratch) {
            setting.unmake(scratch)?;
            return Err(e);
        }
        Ok(setting)
    }

    fn make_all(&mut self, side: usize, scratch: &mut Scratch) -> Result<(), WorkloadError> {
        if self.change.memory_mib.is_some() {
            add_swap(&self.dir.join("swap"), &mut self.tickets, scratch)?;
        }
        let Change {
            quota,
            memory_mib,
            writes,
            ..
        } = self.change;
        let controllers = controllers(quota.is_some(), memory_mib.is_some(), writes.is_some());
        if controllers.is_empty() {
            return Ok(());
        }
        let name = format!("fingerpost-prove-{}-{side}", std::process::id());
        let group = make_group(&name, &controllers, &mut self.tickets, scratch)?;
        self.limit(&group).map_err(missing)?;
        self.group = Some(Arc::new(group));
        Ok(())
    }

    fn limit(&self, group: &Group) -> Result<(), CgroupError> {
        if self.change.quota.is_some() {
            group.set_cpu_quota(self.change.quota)?;
        }
        if let Some(mib) = self.change.memory_mib {
            group.set_memory_limit(Some(mib << 20))?;
        }
        if let Some(writes) = self.change.writes {
            limit_writes(group, &self.dir, Some(writes))?;
        }
        Ok(())
    }

    /// The rehearsal within these surroundings.
    pub fn rehearsal(&self, recipe: Recipe) -> Rehearsal {
        let Change {
            nice,
            store_bypass,
            no_huge_pages,
            filter,
            ..
        } = self.change;
        let one_cpu = |wanted: bool, cpu: Option<&usize>| {
            cpu.filter(|_| wanted).copied().into_iter().collect()
        };
        let cpus = one_cpu(self.change.one_cpu, self.cpus.first());
        let filters = (filter > 0).then_some(filter).into_iter().collect();
        let server = Surroundings {
            cpus,
            nice,
            filters,
            store_bypass,
            no_huge_pages,
        };
        let client = Surroundings {
            cpus: one_cpu(self.change.client_on_one_cpu, self.cpus.last()),
            ..Surroundings::default()
        };
        let rehearsal = Rehearsal::new(recipe, &self.dir)
            .prepared(move |command| server.apply(command))
            .client_prepared(move |command| client.apply(command));
        match self.group.clone() {
            Some(group) => {
                rehearsal.placed(move |pid| group.add_pid(pid).map_err(|e| e.to_string()))
            }
            None => rehearsal,
        }
    }

    /// Begins what holds only while this side is measured: neighbours and the network's rate.
    pub fn enter(&mut self) -> Result<(), WorkloadError> {
        self.shaped |= shape(self.change.loopback)?;
        for (wanted, words) in [
            (self.change.hog, vec!["cpu".into()]),
            (
                self.change.syncer,
                vec!["disk".into(), self.dir.clone().into_os_string()],
            ),
        ] {
            if wanted {
                let mut neighbour = neighbour_of(words)?;
                neighbour.ask("go", PATIENCE)?;
                self.neighbours.push(neighbour);
            }
        }
        Ok(())
    }

    /// Processes beside the server that run now, and may be held for a moment.
    pub fn neighbours(&self) -> Vec<i32> {
        self.neighbours.iter().map(Worker::pid).collect()
    }

    /// Ends it.
    pub fn leave(&mut self) -> Result<(), WorkloadError> {
        self.neighbours.clear();
        unshape(&mut self.shaped)
    }

    /// Takes away everything that was made. The server must have ended.
    pub fn unmake(mut self, scratch: &mut Scratch) -> Result<(), WorkloadError> {
        self.neighbours.clear();
        self.group = None;
        undo(&mut self.tickets, scratch)
    }
}

pub(super) fn missing(e: impl std::fmt::Display) -> WorkloadError {
    WorkloadError::Missing(e.to_string())
}

pub(super) fn failed(e: impl std::fmt::Display) -> WorkloadError {
    WorkloadError::Failed(e.to_string())
}

/// What a group needs for a quota, for less memory, for fewer writes.
pub(super) fn controllers(cpu: bool, memory: bool, io: bool) -> Vec<Controller> {
    let wanted = [
        (cpu, Controller::Cpu),
        (memory, Controller::Memory),
        (io, Controller::Io),
    ];
    wanted
        .into_iter()
        .filter(|(w, _)| *w)
        .map(|(_, c)| c)
        .collect()
}

/// Makes a control group, with the way back in the journal first.
pub(super) fn make_group(
    name: &str,
    controllers: &[Controller],
    tickets: &mut Vec<Ticket>,
    scratch: &mut Scratch,
) -> Result<Group, WorkloadError> {
    let mut group =
        Group::plan(&Hierarchies::of_self(&Paths::system()), name, controllers).map_err(missing)?;
    for place in group.places() {
        tickets.push(
            scratch
                .record(Undo::RemoveGroup {
                    place: place.clone(),
                })
                .map_err(failed)?,
        );
    }
    group.make().map_err(missing)?;
    Ok(group)
}

/// Limits a group's writes a second to the disk of this directory, or not.
pub(super) fn limit_writes(
    group: &Group,
    dir: &Path,
    writes: Option<u64>,
) -> Result<(), CgroupError> {
    let device = whole_disk(dir).map_err(CgroupError::Value)?;
    group.set_io_limit(
        device,
        Throttle {
            write_operations: writes,
            ..Throttle::default()
        },
    )
}

/// Makes a swap file and switches it on.
pub(super) fn add_swap(
    path: &Path,
    tickets: &mut Vec<Ticket>,
    scratch: &mut Scratch,
) -> Result<(), WorkloadError> {
    let uuid = swap::new_uuid().map_err(failed)?;
    tickets.push(
        scratch
            .record(Undo::RemovePath {
                path: path.to_owned(),
            })
            .map_err(failed)?,
    );
    swap::make_file(path, SWAP)
        .and_then(|()| swap::format(path, SWAP, uuid))
        .map_err(failed)?;
    tickets.push(
        scratch
            .record(Undo::SwapOff {
                path: path.to_owned(),
                uuid,
            })
            .map_err(failed)?,
    );
    let dir = path.parent().unwrap_or(path).display();
    swap::on(path, -1).map_err(|e| missing(format!("cannot switch on a swap file in {dir}: {e}")))
}

/// Undoes what was recorded, the last first.
pub(super) fn undo(tickets: &mut Vec<Ticket>, scratch: &mut Scratch) -> Result<(), WorkloadError> {
    let undone: Vec<Result<(), String>> = tickets
        .drain(..)
        .rev()
        .map(|ticket| scratch.undo(ticket))
        .collect();
    undone
        .into_iter()
        .collect::<Result<(), String>>()
        .map_err(WorkloadError::Failed)
}

/// A neighbour that waits until it is told to go.
pub(super) fn neighbour_of(words: Vec<OsString>) -> Result<Worker, WorkloadError> {
    let mut command = worker::command(neighbour::NAME);
    command.args(words);
    Worker::start(command, "neighbour")
}

/// Sets the loopback interface's rate, where one is wanted; tells whether.
pub(super) fn shape(rate: Option<u32>) -> Result<bool, WorkloadError> {
    if rate.is_some() {
        network::shape_loopback(rate).map_err(|e| {
            missing(format!(
                "this kernel does not shape the loopback interface with tbf: {e}"
            ))
        })?;
    }
    Ok(rate.is_some())
}

/// Takes such a rate away.
pub(super) fn unshape(shaped: &mut bool) -> Result<(), WorkloadError> {
    if std::mem::take(shaped) {
        network::shape_loopback(None).map_err(failed)
    } else {
        Ok(())
    }
}

/// The number of the whole disk that a directory's file system lies on: a partition's parent.
fn whole_disk(dir: &Path) -> Result<(u32, u32), String> {
    let number = fs::metadata(dir)
        .map_err(|e| format!("cannot look at {}: {e}", dir.display()))?
        .dev();
    let (major, minor) = (libc::major(number), libc::minor(number));
    let node = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    if !node.exists() {
        return Err(format!(
            "{} lies on no disk that can be limited (device {major}:{minor}); set TMPDIR to a directory on one",
            dir.display()
        ));
    }
    let disk = if node.join("partition").exists() {
        node.join("..")
    } else {
        node
    };
    let text = fs::canonicalize(disk)
        .and_then(|d| fs::read_to_string(d.join("dev")))
        .map_err(|e| format!("cannot find the disk: {e}"))?;
    let number = text
        .trim()
        .split_once(':')
        .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    number.ok_or_else(|| format!("“{}” is not a device number", text.trim()))
}
