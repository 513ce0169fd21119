//! One sequence: swap put up, caches dropped, every application launched and none quit, then everything gone again.
//!
//! That is the source's “following a system re-boot”, without the re-boot.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fingerpost_sys::cgroup::Throttle;
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::{child, swap, system};
use fingerpost_undo::files;
use fingerpost_undo::journal::Undo;
use fingerpost_undo::scratch::Scratch;
use fingerpost_workloads::server_dir::{self, Account};

use super::area::Areas;
use super::launcher::{self, Home, Running, Trouble};
use super::manifest::{App, Places};
use super::paging;
use super::placement::Placement;
use super::pressure::{self, MemoryGroup};
use crate::Sink;

/// How long applications may take to end on SIGTERM, all together.
const GRACE: Duration = Duration::from_secs(5);

/// How much memory the applications are left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Push {
    /// All of it.
    None,
    /// A limit on their control group, in bytes.
    Limit(u64),
    /// What a reserve leaves of what is available: of this need in bytes a share.
    Reserve(u64, f64),
}

/// What one sequence does.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The applications in order.
    pub apps: &'a [App],
    /// A directory that is kept over the sequences.
    pub data: &'a Path,
    /// Where swap is.
    pub placement: &'a Placement,
    /// How large the areas are together.
    pub swap_bytes: u64,
    /// How much memory is left.
    pub push: Push,
    /// Whether the applications get a control group.
    pub group: bool,
    /// Whether caches are dropped first.
    pub cold: bool,
    /// What a throttled device may do.
    pub slow: Throttle,
}

/// What one sequence gave.
#[derive(Debug, Default)]
pub struct Sequence {
    /// The time of each application, in order, or why there is none. Shorter than the list when the user stopped it.
    pub times: Vec<Result<Duration, String>>,
    /// Paging and memory.
    pub totals: BTreeMap<String, f64>,
    /// What the applications held at the end, where that can be told.
    pub held: Option<u64>,
    /// Processes that the memory limit killed.
    pub killed: u64,
    /// CPU seconds that reading the counters took.
    pub self_cost: f64,
}

/// Why a sequence could not be made.
#[derive(Debug)]
pub enum Obstacle {
    /// The placement cannot be had here.
    Placement(String),
    /// Something else went wrong.
    Failed(String),
}

/// Runs a sequence. All that it changed is undone when it returns, and by the journal where it does not.
pub fn run(
    scratch: &mut Scratch,
    step: &Step,
    sink: &mut dyn Sink,
    done: f64,
) -> Result<Sequence, Obstacle> {
    let mut areas = Areas::put_up(scratch, step.placement, step.swap_bytes, step.slow)
        .map_err(Obstacle::Placement)?;
    let result = in_pen(scratch, step, &areas, sink, done).map_err(Obstacle::Failed);
    let down = areas.take_down(scratch).map_err(Obstacle::Failed);
    let sequence = result?;
    down.map(|()| sequence)
}

fn in_pen(
    scratch: &mut Scratch,
    step: &Step,
    areas: &Areas,
    sink: &mut dyn Sink,
    done: f64,
) -> Result<Sequence, String> {
    let mut memory_group = if step.group {
        MemoryGroup::make("launch", scratch, &areas.slow, step.slow)?
    } else {
        MemoryGroup::default()
    };
    let marked = scratch
        .record(Undo::KillMarked {
            scratch: scratch.path().to_owned(),
        })
        .map_err(|e| format!("cannot write the journal: {e}"))?;
    let dir = scratch.path().join("sequence");
    let mut running = Vec::new();
    let result = prepared(
        scratch,
        step,
        &mut memory_group,
        &dir,
        &mut running,
        sink,
        done,
    );
    quit(running, &memory_group);
    let ended = scratch.undo(marked);
    let down = memory_group.take_down(scratch);
    let _ = files::remove_tree(&dir);
    let sequence = result?;
    ended.and(down).map(|()| sequence)
}

fn prepared(
    scratch: &mut Scratch,
    step: &Step,
    memory_group: &mut MemoryGroup,
    dir: &Path,
    running: &mut Vec<Running>,
    sink: &mut dyn Sink,
    done: f64,
) -> Result<Sequence, String> {
    let home = home(scratch.path(), memory_group);
    let mut places = Vec::new();
    for (i, app) in step.apps.iter().enumerate() {
        let at = make_places(app, dir, step.data, i)?;
        if let Some(note) =
            postmaster_note(app, &at).filter(|note| note.starts_with(scratch.path()))
        {
            scratch
                .record(Undo::RemoveSegment { note })
                .map_err(|e| format!("cannot write the journal: {e}"))?;
        }
        places.push(launcher::run_untimed(app, &app.setup, &at, &home).map(|()| at));
    }
    if step.cold {
        swap::drop_caches().map_err(|e| format!("cannot drop the caches: {e}"))?;
    }
    match step.push {
        Push::None => {}
        Push::Limit(bytes) => memory_group.limit(Some(bytes))?,
        Push::Reserve(need, share) => {
            memory_group.hold(pressure::reserve(need, share, pressure::available()))?
        }
    }
    let mut sequence = Sequence::default();
    let before = read_counters(&mut sequence, memory_group);
    for (app, places) in step.apps.iter().zip(places) {
        sink.progress(&format!("{}: {}", step.placement.name, app.name), done);
        let launched = places
            .map_err(Trouble::Failed)
            .and_then(|at| launcher::launch(app, &at, &home, &|| sink.interrupted()));
        match launched {
            Ok(launched) => {
                running.extend(launched.running);
                sequence.times.push(Ok(launched.elapsed));
            }
            Err(Trouble::Stopped) => break,
            Err(Trouble::Failed(sentence)) => sequence.times.push(Err(sentence)),
        }
    }
    let after = read_counters(&mut sequence, memory_group);
    sequence.totals = paging::between(&before, &after);
    let swap = if step.placement.is_none() {
        0.0
    } else {
        step.swap_bytes as f64
    };
    sequence.totals.insert("swap_areas.bytes".into(), swap);
    sequence.held = memory_group.memory_bytes();
    sequence.killed = memory_group.killed();
    Ok(sequence)
}

/// A PostgreSQL server that is killed leaves a segment of shared memory, which it names in its data directory.
fn postmaster_note(app: &App, places: &Places) -> Option<PathBuf> {
    let server = Path::new(&app.command[0])
        .file_name()
        .is_some_and(|name| name == "postgres");
    let data = app
        .command
        .iter()
        .skip_while(|word| *word != "-D")
        .nth(1)
        .filter(|_| server)?;
    Some(Path::new(&places.fill(data)).join("postmaster.pid"))
}

fn home(scratch: &Path, memory_group: &MemoryGroup) -> Home {
    Home {
        procs: memory_group
            .directories()
            .iter()
            .map(|dir| dir.join("cgroup.procs"))
            .collect(),
        scratch: scratch.to_owned(),
    }
}

fn read_counters(sequence: &mut Sequence, memory_group: &MemoryGroup) -> paging::Reading {
    let begun = system::own_cpu_time();
    let reading = paging::read(&Paths::system(), &memory_group.directories());
    sequence.self_cost += (system::own_cpu_time() - begun).as_secs_f64();
    reading
}

/// The words in braces of one application: a fresh directory, a kept one, a free port.
pub fn make_places(app: &App, dir: &Path, data: &Path, number: usize) -> Result<Places, String> {
    let trouble = |path: &Path, e: std::io::Error| {
        format!("cannot make the directory {}: {e}", path.display())
    };
    let account = (app.unprivileged && system::is_root()).then_some(Account::NOBODY);
    let (output, data) = (dir.join(number.to_string()), data.join(number.to_string()));
    let dir = output.join("own");
    for parent in [output.parent(), Some(&output), data.parent()]
        .into_iter()
        .flatten()
    {
        passable(parent).map_err(|e| trouble(parent, e))?;
    }
    for path in [&dir, &data] {
        // What is kept over the sequences was handed over by the first, and is looked at no more.
        match server_dir::hand_over(path, account) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && *path == data => {}
            other => other.map_err(|e| trouble(path, e))?,
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .map_err(|e| format!("no free port: {e}"))?;
    Ok(Places {
        dir,
        data,
        output,
        port: listener.port(),
    })
}

/// A directory of ours that can be passed through, made unless it is there.
fn passable(path: &Path) -> std::io::Result<()> {
    match server_dir::make_passable(path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Prepares an application once and for all.
pub fn prepare(
    scratch: &Scratch,
    app: &App,
    dir: &Path,
    data: &Path,
    number: usize,
) -> Result<PathBuf, String> {
    let places = make_places(app, dir, data, number)?;
    launcher::run_untimed(
        app,
        &app.prepare,
        &places,
        &home(scratch.path(), &MemoryGroup::default()),
    )
    .map(|()| places.data)
}

/// Asks every application to end, as a desktop does, and waits a while. What stays is killed by the caller's tickets.
fn quit(mut running: Vec<Running>, memory_group: &MemoryGroup) {
    // Ending takes memory, too.
    let _ = memory_group.limit(None);
    for application in &running {
        let _ = child::signal_group(application.process.pid(), libc::SIGTERM);
    }
    let deadline = Instant::now() + GRACE;
    for Running { process, .. } in &mut running {
        if !matches!(process.wait_deadline(deadline), Ok(Some(_))) {
            let _ = child::signal_group(process.pid(), libc::SIGKILL);
            let _ = process.wait();
        }
    }
}
