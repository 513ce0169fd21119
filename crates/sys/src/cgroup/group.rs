//! Making a control group, setting its limits, and taking it away again.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::read::{Hierarchy, stops};
use super::{Controller, Hierarchies, Throttling, Version, shares_of_weight};
use crate::procfs::{Paths, bounded};
use crate::system::unless;

/// The kernel's usual quota period.
const PERIOD_US: f64 = 100_000.0;
/// The kernel refuses quotas below 1 ms.
const LEAST_QUOTA_US: f64 = 1_000.0;
/// How long a group may stay busy after its last process left: exiting tasks hold it for a moment.
const REMOVAL_DEADLINE: Duration = Duration::from_secs(2);

/// Why a control group could not be made or set.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// The name would leave its directory or is unusable.
    #[error("`{0}` cannot name a control group: use letters, digits, `-` and `_`, at most 64")]
    Name(String),
    /// No hierarchy holds the controller.
    #[error(
        "no mounted control group hierarchy has the `{0}` controller: mount it, or boot with it"
    )]
    NoController(&'static str),
    /// Version 2: no place from our group to the root can hand the controllers down.
    #[error(
        "no control group from ours to the root can hand down {0}: version 2 allows it only where no process lives; \
         start from a delegated group (`systemd-run --scope -p Delegate=yes …`) or as root outside of a container"
    )]
    NotDelegated(String),
    /// The group was made without the controller.
    #[error("the control group was made without the `{0}` controller")]
    NotAsked(&'static str),
    /// A value that no kernel takes.
    #[error("{0}")]
    Value(String),
    /// The kernel refused something (`create`, `write 50000 to` …) with a file or directory.
    #[error("cannot {what} {}: {source}{}", path.display(), advice(source))]
    #[allow(missing_docs, reason = "the line above says what its fields are")]
    Io {
        what: String,
        path: PathBuf,
        source: io::Error,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            " (this needs root, or a control group that was delegated to this user)"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            " (the hierarchy is mounted read-only, as containers do: run on the host, or privileged)"
        }
        io::ErrorKind::InvalidInput => " (a group cannot be given more than its parent has)",
        _ => "",
    }
}

/// Limits on one block device; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Bytes read a second.
    pub read_bytes: Option<u64>,
    /// Bytes written a second.
    pub write_bytes: Option<u64>,
    /// Reads a second.
    pub read_operations: Option<u64>,
    /// Writes a second.
    pub write_operations: Option<u64>,
}

/// One directory of a group. Version 1 has one for each hierarchy, version 2 one for all its controllers.
///
/// It serialises, so that a journal can hold it and [`remove_directory`] can undo it after a kill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The directory.
    pub directory: PathBuf,
    /// Where processes that are still in it go when it is removed: the group that its maker was in.
    pub home: PathBuf,
    /// Version 2: controllers that are switched on in the parent for it, and off again at the end.
    pub enabled: Vec<String>,
    #[serde(skip)]
    version: Option<Version>,
    #[serde(skip)]
    controllers: Vec<Controller>,
}

/// A control group that we made. Dropping it removes it; processes still in it go back to the group that we were in.
#[derive(Debug)]
pub struct Group {
    paths: Paths,
    places: Vec<Place>,
    made: bool,
}

impl Group {
    /// Makes a group below our own (version 2: below the nearest ancestor that can hand the controllers down).
    pub fn create(name: &str, controllers: &[Controller]) -> Result<Self, CgroupError> {
        let mut group = Self::plan(&Hierarchies::of_self(&Paths::system()), name, controllers)?;
        group.make()?;
        Ok(group)
    }

    /// Finds the places without changing anything, so that they can be written to a journal before [`Group::make`].
    pub fn plan(
        hierarchies: &Hierarchies,
        name: &str,
        controllers: &[Controller],
    ) -> Result<Self, CgroupError> {
        let usable = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(usable) {
            return Err(CgroupError::Name(name.to_owned()));
        }
        let paths = hierarchies.paths.clone().unwrap_or_else(Paths::system);
        let mut wanted: Vec<(&Hierarchy, Vec<Controller>)> = Vec::new();
        for &controller in controllers {
            // Another file system may be mounted over those that the kernel lists.
            let visible = hierarchies
                .of(controller)
                .filter(|h| paths.exists(&h.mount));
            let hierarchy =
                visible.ok_or(CgroupError::NoController(controller.name(Version::V2)))?;
            match wanted.iter_mut().find(|(known, _)| *known == hierarchy) {
                Some((_, list)) => list.push(controller),
                None => wanted.push((hierarchy, vec![controller])),
            }
        }
        let place = |(hierarchy, list)| place(&paths, hierarchy, name, list);
        let places = wanted.into_iter().map(place).collect::<Result<_, _>>()?;
        Ok(Self {
            paths,
            places,
            made: false,
        })
    }

    /// The places of the group: what a journal must hold before [`Group::make`].
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Makes the directories. A group of that name that a killed run left behind is taken over.
    pub fn make(&mut self) -> Result<(), CgroupError> {
        // From here on there may be something to remove.
        self.made = true;
        for place in &self.places {
            switch(&self.paths, place, '+')?;
            let path = self.paths.path(&place.directory);
            if let Err(source) = unless(fs::create_dir(&path), &[libc::EEXIST]) {
                return Err(CgroupError::Io {
                    what: "create the control group".into(),
                    path,
                    source,
                });
            }
            self.inherit_cpuset(place)?;
        }
        Ok(())
    }

    /// A new cpuset group of version 1 is empty and takes no process until it has CPUs and memory nodes.
    fn inherit_cpuset(&self, place: &Place) -> Result<(), CgroupError> {
        if place.version != Some(Version::V1) || !place.controllers.contains(&Controller::Cpuset) {
            return Ok(());
        }
        for file in ["cpuset.cpus", "cpuset.mems"] {
            let parent = place.directory.parent().unwrap_or(&place.directory);
            if let Some(list) = self.paths.value(parent.join(file)) {
                write(&self.paths, &place.directory.join(file), &list)?;
            }
        }
        Ok(())
    }

    fn place(&self, controller: Controller) -> Result<(&Path, Version), CgroupError> {
        let place = self
            .places
            .iter()
            .find(|place| place.controllers.contains(&controller));
        let place = place.ok_or(CgroupError::NotAsked(controller.name(Version::V2)))?;
        Ok((&place.directory, place.version.unwrap_or(Version::V2)))
    }

    fn set(
        &self,
        controller: Controller,
        v1: (&str, String),
        v2: (&str, String),
    ) -> Result<(), CgroupError> {
        let (directory, version) = self.place(controller)?;
        let (file, value) = version.either(v1, v2);
        write(&self.paths, &directory.join(file), &value)
    }

    /// Allows so many CPUs' worth of time, or any with `None`. At least 0.01.
    pub fn set_cpu_quota(&self, cpus: Option<f64>) -> Result<(), CgroupError> {
        let (directory, version) = self.place(Controller::Cpu)?;
        let quota = cpus.map(|cpus| (cpus * PERIOD_US).round());
        if quota.is_some_and(|us| !(LEAST_QUOTA_US..=1e12).contains(&us)) {
            return Err(CgroupError::Value(
                "a CPU quota is at least 0.01 CPUs".into(),
            ));
        }
        if version == Version::V1 {
            write(
                &self.paths,
                &directory.join("cpu.cfs_period_us"),
                &PERIOD_US.to_string(),
            )?;
        }
        let text = |none: &str| quota.map_or(none.to_owned(), |us| us.to_string());
        let v2 = format!("{} {PERIOD_US}", text("max"));
        self.set(
            Controller::Cpu,
            ("cpu.cfs_quota_us", text("-1")),
            ("cpu.max", v2),
        )
    }

    /// Sets the weight, 1 to 10 000 with 100 as the usual one; version 1 gets shares in proportion.
    pub fn set_cpu_weight(&self, weight: u64) -> Result<(), CgroupError> {
        let weight = weight.clamp(1, 10_000);
        let shares = shares_of_weight(weight).to_string();
        self.set(
            Controller::Cpu,
            ("cpu.shares", shares),
            ("cpu.weight", weight.to_string()),
        )
    }

    /// Limits memory to bytes, or not with `None`. What is above the new limit is reclaimed at once, which may take its
    /// time.
    pub fn set_memory_limit(&self, bytes: Option<u64>) -> Result<(), CgroupError> {
        let text = |none: &str| bytes.map_or(none.to_owned(), |n| n.to_string());
        self.set(
            Controller::Memory,
            ("memory.limit_in_bytes", text("-1")),
            ("memory.max", text("max")),
        )
    }

    /// Limits a block device, named by its major and minor number. Partitions cannot be limited, only whole devices.
    pub fn set_io_limit(&self, device: (u32, u32), limit: Throttle) -> Result<(), CgroupError> {
        let (directory, version) = self.place(Controller::Io)?;
        let (major, minor) = device;
        let limits = [
            ("read_bps", "rbps", limit.read_bytes),
            ("write_bps", "wbps", limit.write_bytes),
            ("read_iops", "riops", limit.read_operations),
            ("write_iops", "wiops", limit.write_operations),
        ];
        if version == Version::V2 {
            let text = |value: Option<u64>| value.map_or("max".to_owned(), |n| n.to_string());
            let list: Vec<String> = limits
                .iter()
                .map(|(_, name, value)| format!("{name}={}", text(*value)))
                .collect();
            return write(
                &self.paths,
                &directory.join("io.max"),
                &format!("{major}:{minor} {}", list.join(" ")),
            );
        }
        for (name, _, value) in limits {
            // 0 takes a limit away.
            let line = format!("{major}:{minor} {}", value.unwrap_or(0));
            write(
                &self.paths,
                &directory.join(format!("blkio.throttle.{name}_device")),
                &line,
            )?;
        }
        Ok(())
    }

    /// Moves a process with all its threads into the group. What it creates from now on is in the group as well.
    pub fn add_pid(&self, pid: u32) -> Result<(), CgroupError> {
        let move_to = |place: &Place| {
            write(
                &self.paths,
                &place.directory.join("cgroup.procs"),
                &pid.to_string(),
            )
        };
        self.places.iter().try_for_each(move_to)
    }

    /// The processes in the group.
    pub fn pids(&self) -> Vec<u32> {
        self.places.first().map_or_else(Vec::new, |place| {
            pids_in(&self.paths.path(&place.directory))
        })
    }

    /// How often the quota stopped the group; `None` without the CPU controller.
    pub fn throttling(&self) -> Option<Throttling> {
        stops(
            &self
                .paths
                .read(self.place(Controller::Cpu).ok()?.0.join("cpu.stat"))
                .ok()?,
        )
    }

    /// Bytes of memory that are charged to the group; `None` without the memory controller.
    pub fn memory_bytes(&self) -> Option<u64> {
        let (directory, version) = self.place(Controller::Memory).ok()?;
        self.paths
            .number(directory.join(version.either("memory.usage_in_bytes", "memory.current")))
    }

    /// Removes the group. Processes still in it go back to where its maker was.
    pub fn remove(mut self) -> Result<(), CgroupError> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<(), CgroupError> {
        if !std::mem::take(&mut self.made) {
            return Ok(());
        }
        // All of them, even when one fails.
        let results: Vec<_> = self
            .places
            .iter()
            .rev()
            .map(|place| remove_place(&self.paths, place))
            .collect();
        results.into_iter().collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // An error has nowhere to go from here; the journal still holds the places, and the next start sweeps them.
        let _ = self.take_away();
    }
}

/// Removes what a killed run left, from its journal. A directory that is gone already is no error.
pub fn remove_directory(place: &Place) -> Result<(), CgroupError> {
    remove_place(&Paths::system(), place)
}

/// Where a group's directory goes in one hierarchy, and what must be switched on for it.
fn place(
    paths: &Paths,
    hierarchy: &Hierarchy,
    name: &str,
    controllers: Vec<Controller>,
) -> Result<Place, CgroupError> {
    // Without the slash at the end that joining nothing leaves.
    let home: PathBuf = hierarchy.mount.join(&hierarchy.own).components().collect();
    let version = Some(hierarchy.version);
    if hierarchy.version == Version::V1 {
        return Ok(Place {
            directory: home.join(name),
            home,
            enabled: Vec::new(),
            version,
            controllers,
        });
    }
    let names: Vec<&str> = controllers
        .iter()
        .filter(|c| **c != Controller::Freezer)
        .map(|c| c.name(Version::V2))
        .collect();
    for parent in hierarchy.ancestry() {
        let missing_in = |file: &str| -> Vec<&str> {
            let list = paths.read(parent.join(file)).unwrap_or_default();
            names
                .iter()
                .copied()
                .filter(|name| !list.split_ascii_whitespace().any(|n| n == *name))
                .collect()
        };
        let missing = missing_in("cgroup.subtree_control");
        // A group with processes hands nothing down, except the true root, which alone has no `cgroup.type`.
        let may_enable = || {
            missing_in("cgroup.controllers").is_empty()
                && (!paths.exists(parent.join("cgroup.type"))
                    || pids_in(&paths.path(&parent)).is_empty())
        };
        if missing.is_empty() || may_enable() {
            let enabled = missing.into_iter().map(str::to_owned).collect();
            return Ok(Place {
                directory: parent.join(name),
                home,
                enabled,
                version,
                controllers,
            });
        }
    }
    Err(CgroupError::NotDelegated(names.join(", ")))
}

fn remove_place(paths: &Paths, place: &Place) -> Result<(), CgroupError> {
    let path = paths.path(&place.directory);
    let deadline = Instant::now() + REMOVAL_DEADLINE;
    loop {
        for pid in pids_in(&path) {
            // It may have ended meanwhile; if it could not be moved, the removal below says that the group is busy.
            let _ = write(paths, &place.home.join("cgroup.procs"), &pid.to_string());
        }
        match unless(fs::remove_dir(&path), &[libc::ENOENT]) {
            Ok(()) => break,
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(source) => {
                return Err(CgroupError::Io {
                    what: "remove the control group".into(),
                    path,
                    source,
                });
            }
        }
    }
    switch(paths, place, '-')
}

/// Switches the place's controllers on (`+`) or off (`-`) in its parent.
fn switch(paths: &Paths, place: &Place, sign: char) -> Result<(), CgroupError> {
    let (Some(parent), false) = (place.directory.parent(), place.enabled.is_empty()) else {
        return Ok(());
    };
    let list: Vec<String> = place
        .enabled
        .iter()
        .map(|name| format!("{sign}{name}"))
        .collect();
    write(
        paths,
        &parent.join("cgroup.subtree_control"),
        &list.join(" "),
    )
}

fn pids_in(directory: &Path) -> Vec<u32> {
    let text = bounded::text(directory.join("cgroup.procs")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect()
}

/// Writes to a file that is there; a control file is never created.
fn write(paths: &Paths, file: &Path, value: &str) -> Result<(), CgroupError> {
    let path = paths.path(file);
    let file = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(&path);
    let result = file.and_then(|mut file| file.write_all(value.as_bytes()));
    result.map_err(|source| CgroupError::Io {
        what: format!("write `{value}` to"),
        path,
        source,
    })
}

#[cfg(test)]
mod tests;
