//! The kernel's tracepoints by name: their ids and where their fields lie, read from tracefs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use thiserror::Error;

use crate::system::there;

/// Where tracefs may be mounted, the usual place first.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A tracepoint: what perf calls it, and where its fields lie in a raw sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tracepoint {
    /// The number that `perf_event_attr.config` takes and every raw sample begins with.
    pub id: u32,
    /// Offset and size in bytes, by the field's name.
    pub fields: BTreeMap<String, (usize, usize)>,
}

impl Tracepoint {
    /// The place of a field of exactly this many bytes.
    pub fn sized(&self, field: &str, bytes: usize) -> Option<usize> {
        self.fields
            .get(field)
            .filter(|&&(_, size)| size == bytes)
            .map(|&(at, _)| at)
    }

    /// The place of a field of at least this many bytes: an array whose length differs between kernels.
    pub fn at_least(&self, field: &str, bytes: usize) -> Option<usize> {
        self.fields
            .get(field)
            .filter(|&&(_, size)| size >= bytes)
            .map(|&(at, _)| at)
    }
}

/// Parses a tracepoint's `format` file.
pub fn parse_format(text: &str) -> Option<Tracepoint> {
    let mut tracepoint = Tracepoint::default();
    for line in text.lines() {
        let line = line.trim();
        if let Some(id) = line.strip_prefix("ID:") {
            tracepoint.id = id.trim().parse().ok()?;
        } else if let Some(rest) = line.strip_prefix("field:") {
            let mut parts = rest.split(';').map(str::trim);
            let name = parts.next()?.rsplit(' ').next()?;
            let name = name.trim_end_matches(|c: char| c == ']' || c == '[' || c.is_ascii_digit());
            let number = |key: &str| {
                parts
                    .clone()
                    .find_map(|part| part.strip_prefix(key))?
                    .parse()
                    .ok()
            };
            tracepoint
                .fields
                .insert(name.to_owned(), (number("offset:")?, number("size:")?));
        }
    }
    (tracepoint.id != 0).then_some(tracepoint)
}

/// Reads tracepoints (`sched/sched_switch`) in the order asked for; `None` is one that this kernel lacks.
///
/// Where tracefs is not mounted and the caller is root, it is mounted in a mount namespace that only a passing thread
/// is in: nothing of the system is changed.
///
/// # Errors
/// Which file could not be read, and why.
pub fn find(names: &[&str]) -> Result<Vec<Option<Tracepoint>>, TracefsError> {
    let names: Vec<String> = names.iter().map(|s| (*s).to_owned()).collect();
    mounted(move |mount| read_all(mount, &names.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// Reads something of tracefs where it is mounted, else where a passing thread mounts it for itself.
fn mounted<T: Send + 'static>(
    read: impl FnOnce(&Path) -> Result<T, TracefsError> + Send + 'static,
) -> Result<T, TracefsError> {
    if let Some(mount) = MOUNTS
        .map(Path::new)
        .into_iter()
        .find(|mount| mount.join("events").exists())
    {
        return read(mount);
    }
    let thread = std::thread::Builder::new()
        .name("tracefs".into())
        .spawn(move || {
            mount_privately().map_err(TracefsError::NotMounted)?;
            read(Path::new(MOUNTS[0]))
        });
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(result)) => result,
        _ => Err(TracefsError::NoThread),
    }
}

/// Why tracefs cannot be read.
#[derive(Debug, Error)]
pub enum TracefsError {
    /// It is not mounted, and the kernel does not mount it.
    #[error("tracefs is not mounted at {at} and cannot be mounted: {0}", at = MOUNTS[0])]
    NotMounted(io::Error),
    /// A file of it cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// A file does not describe a tracepoint as the kernel does.
    #[error("{} is not the description of a tracepoint", .0.display())]
    NoFormat(PathBuf),
    /// The thread that mounts it could not be started, or did not end in order.
    #[error("tracefs could not be read")]
    NoThread,
}

/// What others have switched on in tracefs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchedOn {
    /// Events, in all instances together, probes that were defined there among them. Those that tell of faults of the
    /// hardware are left out: on many hosts a daemon has them on, and they hardly ever happen.
    pub events: usize,
    /// Tracers of functions, latencies and the like: instances with another than `nop`.
    pub tracers: usize,
}

/// Groups of events, and single ones, that tell of faults: what rasdaemon switches on (its `ras-events.c`).
const OF_FAULTS: [&str; 7] = [
    "ras",
    "mce",
    "devlink",
    "thermal",
    "block:block_rq_error",
    "block:block_rq_complete",
    "net:net_dev_xmit_timeout",
];

/// What is switched on now. What perf and programs in the kernel have attached is not in it: the kernel keeps that
/// apart.
///
/// # Errors
/// Which file could not be read, and why.
pub fn switched_on() -> Result<SwitchedOn, TracefsError> {
    mounted(switched_on_in)
}

fn switched_on_in(mount: &Path) -> Result<SwitchedOn, TracefsError> {
    let read = |path: PathBuf| {
        fs::read_to_string(&path).map_err(|error| TracefsError::Unreadable { path, error })
    };
    let instances = fs::read_dir(mount.join("instances"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut found = SwitchedOn::default();
    for (i, instance) in std::iter::once(mount.to_owned())
        .chain(instances)
        .enumerate()
    {
        let texts = read(instance.join("set_event"))
            .and_then(|events| Ok((events, read(instance.join("current_tracer"))?)));
        // An instance may go away meanwhile.
        let (events, tracer) = match texts {
            Ok(texts) => texts,
            Err(_) if i > 0 && !instance.exists() => continue,
            Err(e) => return Err(e),
        };
        found.events += events.lines().filter(|event| costs(event)).count();
        found.tracers += usize::from(!matches!(tracer.trim(), "nop" | ""));
    }
    Ok(found)
}

/// Whether a line of `set_event` (`sched:sched_switch`) is an event that happens in ordinary work.
fn costs(event: &str) -> bool {
    let event = event.trim();
    let group = event.split(':').next().unwrap_or_default();
    !event.is_empty() && !OF_FAULTS.contains(&group) && !OF_FAULTS.contains(&event)
}

fn read_all(mount: &Path, names: &[&str]) -> Result<Vec<Option<Tracepoint>>, TracefsError> {
    let read = |name: &&str| {
        let path: PathBuf = mount.join("events").join(name).join("format");
        match there(fs::read_to_string(&path)) {
            Err(error) => Err(TracefsError::Unreadable { path, error }),
            Ok(None) => Ok(None),
            Ok(Some(text)) => parse_format(&text)
                .map(Some)
                .ok_or(TracefsError::NoFormat(path)),
        }
    };
    names.iter().map(read).collect()
}

/// Leaves the mount namespace of the process for one of the calling thread's own and mounts tracefs there.
fn mount_privately() -> io::Result<()> {
    // SAFETY: it is the mounts that the thread no longer shares; memory and descriptors stay shared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )?;
    Ok(mount(
        "tracefs",
        MOUNTS[0],
        "tracefs",
        MountFlags::empty(),
        None,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\tfield:unsigned short \
        common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\tfield:char \
        prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:long \
        prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\n\
        print fmt: \"prev_comm=%s\", REC->prev_comm\n";

    #[test]
    fn a_format_file_gives_the_id_and_the_places_of_the_fields() {
        let t = parse_format(SWITCH).unwrap();
        assert_eq!(t.id, 372);
        assert_eq!(t.fields["prev_comm"], (8, 16));
        assert_eq!(
            (
                t.sized("prev_state", 8),
                t.sized("prev_state", 4),
                t.sized("next_pid", 4)
            ),
            (Some(32), None, None)
        );
        assert_eq!(
            (t.at_least("prev_comm", 8), t.at_least("prev_comm", 17)),
            (Some(8), None)
        );
    }

    #[test]
    fn a_tracepoint_that_is_lacking_is_told_from_an_unreadable_one() {
        let dir = tempfile::tempdir().unwrap();
        let point = dir.path().join("events/sched/sched_switch");
        fs::create_dir_all(&point).unwrap();
        fs::write(point.join("format"), SWITCH).unwrap();
        let found = read_all(dir.path(), &["sched/sched_switch", "sched/none"]).unwrap();
        assert_eq!(
            found
                .iter()
                .map(|t| t.as_ref().map(|t| t.id))
                .collect::<Vec<_>>(),
            [Some(372), None]
        );
        fs::write(point.join("format"), "nothing").unwrap();
        assert!(read_all(dir.path(), &["sched/sched_switch"]).is_err());
    }

    #[test]
    fn what_others_left_on_is_counted_over_all_instances() {
        let dir = tempfile::tempdir().unwrap();
        let instance = |name: &str, events: &str, tracer: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("set_event"), events).unwrap();
            fs::write(path.join("current_tracer"), tracer).unwrap();
        };
        instance("", "", "nop\n");
        assert_eq!(switched_on_in(dir.path()).unwrap(), SwitchedOn::default());
        instance(
            "instances/rasdaemon",
            "ras:mc_event\nmce:mce_record\nblock:block_rq_error\n",
            "nop\n",
        );
        assert_eq!(
            switched_on_in(dir.path()).unwrap(),
            SwitchedOn::default(),
            "faults of the hardware cost nobody's requests"
        );
        instance("", "sched:sched_switch\nuprobes:malloc\n", "function\n");
        instance("instances/mine", "raw_syscalls:sys_enter\n", "nop\n");
        assert_eq!(
            switched_on_in(dir.path()).unwrap(),
            SwitchedOn {
                events: 3,
                tracers: 1
            }
        );
        fs::remove_file(dir.path().join("set_event")).unwrap();
        assert!(
            switched_on_in(dir.path())
                .unwrap_err()
                .to_string()
                .contains("set_event"),
            "what cannot be read is not nothing"
        );
    }

    #[test]
    fn what_is_not_a_format_file_is_refused() {
        assert_eq!(parse_format(""), None);
        assert_eq!(parse_format("ID: x\n"), None);
        assert_eq!(
            parse_format("ID: 5\n\tfield:int a;\toffset:x;\tsize:4;\n"),
            None
        );
    }
}
