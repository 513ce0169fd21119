//! Which processes a service is: named by pid, port, unit, control group or container. Nobody is asked but the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fingerpost_observe::follow::Answering;
use fingerpost_observe::session::Service;
use fingerpost_record::text::clean_short;
use fingerpost_record::{Params, suggest};
use fingerpost_sys::cgroup::members::{self, Found};
use fingerpost_sys::cgroup::units::{self, Maker};
use fingerpost_sys::listening::sockets_of;
use fingerpost_sys::procfs::process::owned_by;
use fingerpost_sys::sample;
use fingerpost_sys::sockdiag::{self, SockDiag};
use fingerpost_sys::system;

use super::containers;
use crate::exit::usage;

/// Groups and processes that are told where several are meant, and how much of a group's path.
const MOST_TOLD: usize = 5;
const LONGEST_PATH: usize = 300;
/// How long descriptors are looked at for who listens, beside the first of each process.
const BEYOND: Duration = Duration::from_millis(250);

/// A service that is running.
#[derive(Debug, clap::Args)]
#[group(id = "service", multiple = false)]
pub struct Args {
    /// Explain the running service of these processes and their children
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pid: Vec<i32>,
    /// Explain the running service that listens on this TCP port of this machine
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Explain the running systemd unit with this name
    #[arg(long, value_name = "NAME")]
    unit: Option<String>,
    /// Explain all processes of this control group and of those below it: a directory, or a path as in /proc/PID/cgroup
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// Explain the running container with this name, or whose id begins with it
    #[arg(long, value_name = "ID-OR-NAME")]
    container: Option<String>,
}

/// A service that was found.
#[derive(Debug)]
pub struct Target {
    /// Its processes.
    pub service: Service,
    /// What tells it from others in a record.
    pub params: Params,
    /// What there is to know, a sentence each.
    pub notes: Vec<String>,
}

impl Target {
    /// Whether any of its processes lives. Those of a group come and go, and an empty one may be filled again.
    pub fn lives(&self) -> bool {
        let alive =
            |pid: &i32| sample::process(*pid).is_some_and(|s| !matches!(s.state, 'Z' | 'X'));
        self.service.pids.iter().any(alive) || self.service.groups.iter().any(|dir| dir.exists())
    }

    /// Its processes as they are now.
    pub fn pids(&self) -> Vec<i32> {
        let below = self
            .service
            .groups
            .iter()
            .flat_map(|dir| members::of_directory(dir));
        let own = std::process::id() as i32;
        self.service
            .pids
            .iter()
            .copied()
            .chain(below)
            .filter(|pid| *pid != own)
            .collect()
    }
}

impl Args {
    /// Whether a service was named.
    pub fn is_given(&self) -> bool {
        !self.pid.is_empty()
            || self.port.is_some()
            || self.unit.is_some()
            || self.cgroup.is_some()
            || self.container.is_some()
    }

    /// Finds it. `label` is what it is called in the record, in place of its program's name.
    pub fn find(&self, label: Option<&str>) -> anyhow::Result<Target> {
        let mut target = match self {
            Args {
                port: Some(port), ..
            } => by_port(*port)?,
            Args {
                unit: Some(unit), ..
            } => by_unit(unit)?,
            Args {
                cgroup: Some(path), ..
            } => by_cgroup(path)?,
            Args {
                container: Some(wanted),
                ..
            } => by_container(wanted)?,
            Args { pid, .. } => by_pid(pid)?,
        };
        let all = target.pids();
        if all.is_empty() {
            return usage("that group has no process but this command");
        }
        if system::is_elevated() {
            all.iter().try_for_each(|&pid| is_callers(pid))?;
        }
        let name = label.map_or_else(|| name(&all), str::to_owned);
        target.params = target.params.with("name", name);
        target.notes.extend(rights(&all));
        Ok(target)
    }
}

/// File capabilities on the binary are for the caller's own processes: whoever may start the binary has them, and could
/// see by them what other users' programs do.
fn is_callers(pid: i32) -> anyhow::Result<()> {
    let own = rustix::process::getuid().as_raw();
    if owned_by(pid, own) {
        return Ok(());
    }
    let name = sample::process(pid).map_or_else(String::new, |s| s.name);
    usage(format!(
        "process {pid} ({name}) is another user's, and the capabilities of this binary (setcap) are for the caller's \
         own: run it as root"
    ))
}

/// The program's name: that of the processes whose parents are none of them.
fn name(pids: &[i32]) -> String {
    let all: BTreeMap<i32, (i32, String)> = pids
        .iter()
        .filter_map(|&pid| sample::process(pid).map(|s| (pid, (s.parent, s.name))))
        .collect();
    let first: BTreeSet<&str> = all
        .values()
        .filter(|(parent, _)| !all.contains_key(parent))
        .map(|(_, name)| name.as_str())
        .collect();
    let shown: Vec<&str> = first.iter().take(3).copied().collect();
    shown.join("+")
}

/// What cannot be said without root's rights.
fn rights(pids: &[i32]) -> Option<String> {
    let unreadable = pids.iter().any(|pid| {
        std::fs::read_dir(format!("/proc/{pid}/fd"))
            .is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
    });
    unreadable.then(|| {
        "of another user's processes only what /proc shows can be read: what their threads did, and not what they \
         waited for; run this as root for the rest"
            .to_owned()
    })
}

fn by_pid(pids: &[i32]) -> anyhow::Result<Target> {
    for &pid in pids {
        match sample::process(pid).filter(|_| pid > 0) {
            None => return usage(format!("there is no process {pid}")),
            Some(stat) if matches!(stat.state, 'Z' | 'X') => {
                return usage(format!("the process {pid} has ended"));
            }
            Some(_) if pid == std::process::id() as i32 => {
                return usage("that is this command itself");
            }
            Some(_) => {}
        }
    }
    let ports: BTreeSet<u16> = Answering::of(pids.iter().copied())
        .ports
        .into_iter()
        .collect();
    let params = match ports.first() {
        Some(port) if ports.len() == 1 => Params::new().with("port", i64::from(*port)),
        Some(_) => Params::new().with(
            "port",
            ports
                .iter()
                .map(u16::to_string)
                .collect::<Vec<_>>()
                .join("+"),
        ),
        None => Params::new(),
    };
    Ok(Target {
        service: Service {
            pids: pids.to_vec(),
            groups: Vec::new(),
        },
        params,
        notes: Vec::new(),
    })
}

fn by_port(port: u16) -> anyhow::Result<Target> {
    let mut listening = BTreeSet::new();
    let take = |s: sockdiag::Tcp| {
        if s.port == port {
            listening.insert(s.inode);
        }
    };
    let told = SockDiag::open().and_then(|mut diag| diag.listening(take));
    if let Err(e) = told {
        anyhow::bail!(
            "the kernel does not tell which sockets listen ({e}); name the service by --pid"
        );
    }
    if listening.is_empty() {
        return usage(format!(
            "nobody listens on TCP port {port} of this machine; a service in a container listens on a port of its own \
             there: name it by --container"
        ));
    }
    let mut holding = BTreeSet::new();
    let all = sample::numbers(Path::new("/proc"));
    let whole = sockets_of(&all, BEYOND, |pid, inode| {
        if listening.contains(&inode) {
            holding.insert(pid);
        }
    });
    let mut pids: Vec<i32> = holding.into_iter().collect();
    // What systemd listens for it gives to the service, and keeps too.
    if pids.len() > 1 {
        pids.retain(|pid| *pid != 1);
    }
    if pids.is_empty() && !whole {
        return usage(format!(
            "who listens on port {port} was not found in time, as processes here have very many open files; name the \
             service by --pid"
        ));
    }
    if pids.is_empty() {
        return usage(format!(
            "who listens on port {port} is another user's process, which only root can see; run this as root"
        ));
    }
    let parents: BTreeSet<i32> = pids.iter().copied().collect();
    let first: Vec<i32> = pids
        .iter()
        .copied()
        .filter(|&pid| sample::process(pid).is_some_and(|s| !parents.contains(&s.parent)))
        .collect();
    let mut notes = Vec::new();
    if !whole {
        notes.push(format!(
            "processes here have so many open files that not all were looked through for others that listen on port \
             {port}"
        ));
    }
    if first.len() > 1 {
        let users: BTreeSet<Option<u32>> = first.iter().map(|&pid| user_of(pid)).collect();
        let told = |&pid: &i32| {
            let name = sample::process(pid).map_or_else(String::new, |s| s.name);
            let user = user_of(pid).map_or_else(|| "unknown".into(), |uid| uid.to_string());
            format!("{} ({pid}, user {user})", clean_short(&name, 40))
        };
        let mut all: Vec<String> = first.iter().take(MOST_TOLD).map(told).collect();
        if first.len() > MOST_TOLD {
            all.push(format!("and {} more", first.len() - MOST_TOLD));
        }
        let all = all.join(", ");
        // Anybody may listen on a free port of another address of this machine.
        if users.len() > 1 {
            return usage(format!(
                "processes of several users listen on port {port}, each on an address of its own: {all}; name the one \
                 that is meant: --pid PID"
            ));
        }
        notes.push(format!(
            "several services listen on port {port}, all of them are explained together: {all}"
        ));
    }
    let params = Params::new().with("port", i64::from(port));
    Ok(Target {
        service: Service {
            pids,
            groups: Vec::new(),
        },
        params,
        notes,
    })
}

/// The user as whom a process works.
fn user_of(pid: i32) -> Option<u32> {
    sample::status(Path::new(&format!("/proc/{pid}")))?.effective_user
}

fn by_unit(unit: &str) -> anyhow::Result<Target> {
    let full = if unit.contains('.') {
        unit.to_owned()
    } else {
        format!("{unit}.service")
    };
    // systemd writes a dash of a name that is a path part as it is; templates have their instance in the name.
    let mut found = units::named(&full);
    // The system's own goes before one of the user as whom we work.
    let of_system = found.iter().any(|(maker, _)| *maker == Maker::System);
    let other = |maker: Maker| maker.is_foreign() || of_system && maker != Maker::System;
    let others: Vec<_> = found.extract_if(.., |(maker, _)| other(*maker)).collect();
    let what = format!("unit “{full}”");
    let notes = beside(&what, found.is_empty(), others)?;
    if found.len() > 1 {
        return usage(format!(
            "several groups are a {what} here: {}; name the one that is meant: --cgroup PATH",
            listed(&found)
        ));
    }
    let target = of_groups(found, Params::new().with("unit", full.clone()), || {
        let services = units::services();
        let otherwise = || format!("“systemctl status {full}” tells whether it runs");
        format!(
            "no {what} has a process here; {}",
            suggest::or_else(&full, services.iter().map(String::as_str), otherwise)
        )
    })?;
    Ok(Target { notes, ..target })
}

/// What is said of groups of the wanted name that others may have made, and that are therefore left out; where there is
/// no other, it is an error.
fn beside(what: &str, none: bool, others: Vec<(Maker, Found)>) -> anyhow::Result<Vec<String>> {
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let told = listed(&others);
    if none {
        return usage(format!(
            "no {what} of the system has a process here, but one that others may have made under that name: {told}; \
             name it by its path if it is meant: --cgroup PATH"
        ));
    }
    Ok(vec![format!(
        "others may have made groups of the same name, which are not looked at: {told}; to look at one: --cgroup PATH"
    )])
}

/// Groups by path, with whose they are.
fn listed(found: &[(Maker, Found)]) -> String {
    let one = |(maker, found): &(Maker, Found)| {
        format!(
            "{} (of {})",
            clean_short(&found.path, LONGEST_PATH),
            maker.words()
        )
    };
    let mut told: Vec<String> = found.iter().take(MOST_TOLD).map(one).collect();
    if found.len() > MOST_TOLD {
        told.push(format!("and {} more", found.len() - MOST_TOLD));
    }
    told.join(", ")
}

fn by_cgroup(path: &Path) -> anyhow::Result<Target> {
    let params = Params::new().with("cgroup", path.to_string_lossy().into_owned());
    if members::is_directory(path) {
        if members::of_directory(path).is_empty() {
            return usage(format!(
                "the control group {} has no process",
                path.display()
            ));
        }
        let service = Service {
            groups: vec![path.to_owned()],
            ..Service::default()
        };
        return Ok(Target {
            service,
            params,
            notes: Vec::new(),
        });
    }
    let found = path
        .to_str()
        .filter(|p| p.len() > 1 && p.starts_with('/'))
        .and_then(members::at);
    let found = found.map(|found| (Maker::System, found));
    of_groups(found.into_iter().collect(), params, || {
        format!(
            "no process here is in a control group {}; name it by its directory in /sys/fs/cgroup, or by its path as \
             in /proc/PID/cgroup",
            path.display()
        )
    })
}

fn by_container(wanted: &str) -> anyhow::Result<Target> {
    let ids = containers::ids(wanted);
    let mut found =
        units::containers(|id| ids.iter().any(|wanted| id.starts_with(wanted.as_str())));
    let others: Vec<_> = found
        .extract_if(.., |(maker, _)| maker.is_foreign())
        .collect();
    let notes = beside(&format!("container “{wanted}”"), found.is_empty(), others)?;
    let different: BTreeSet<&str> = found
        .iter()
        .filter_map(|(_, f)| f.path.rsplit('/').find_map(members::container))
        .collect();
    if different.len() > 1 {
        let told: Vec<&str> = different.iter().map(|id| &id[..12]).collect();
        return usage(format!(
            "“{wanted}” may be any of the containers {}; give more of its number",
            told.join(", ")
        ));
    }
    let target = of_groups(found, Params::new().with("container", wanted), || {
        format!(
            "no container “{wanted}” has a process here; its name is only known where Docker, Podman or containerd \
             left it in a file that can be read: try the number"
        )
    })?;
    Ok(Target { notes, ..target })
}

/// The groups' directories; where they are not mounted here, the processes that are in them now.
fn of_groups(
    found: Vec<(Maker, Found)>,
    params: Params,
    none: impl FnOnce() -> String,
) -> anyhow::Result<Target> {
    if found.is_empty() {
        return usage(none());
    }
    let mut service = Service::default();
    for (_, group) in found {
        match members::directory(&group) {
            Some(dir) => service.groups.push(dir),
            None => service.pids.extend(group.pids),
        }
    }
    Ok(Target {
        service,
        params,
        notes: Vec::new(),
    })
}
