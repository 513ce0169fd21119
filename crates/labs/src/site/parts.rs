//! The parts: what the source measured, and what it suspected.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fingerpost_measure::course::{Extent, Interleaved};
use fingerpost_record::{Process, Profile};
use fingerpost_workloads::site::reader::{Reader, numbers};
use fingerpost_workloads::site::served::Served;
use fingerpost_workloads::site::tree::{self, Page};
use fingerpost_workloads::site::{Access, Plan};

use super::course::{self, Contest, Course, Row, row};
use super::prepare::{Prepared, prepare};
use super::settings::State;
use super::start::Start;
use super::warming;
use crate::LabError;
use crate::rows::Definition;

/// Sizes of pages: 1 KB to 1 MB.
const SIZES: [u64; 6] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Folders on the way to a page.
const DEPTHS: [usize; 5] = [1, 2, 4, 8, 16];
/// Bytes of all pages of one size, about.
const SIZED_SITE: u64 = 16 << 20;
/// Bytes that a round of pages of one size reads, about.
const SIZED_ROUND: u64 = 8 << 20;
/// How long several readers read at a time.
const SPAN_MS: u64 = 250;
/// Length of a window of load on a served site.
const SERVED_MS: u64 = 400;
/// Times that several readers read, and that a site is served.
const SPANS: usize = 5;

/// One of each kind, where all of them would take too long.
fn few(course: &Course) -> Vec<Access> {
    let wanted = ["files-open", "lmdb-loaded", "lmdb", "sqlite", "redb"];
    let chosen = course.settings.stores_chosen;
    course
        .settings
        .stores
        .iter()
        .copied()
        .filter(|a| chosen || wanted.contains(&a.name()))
        .collect()
}

fn site(
    course: &mut Course,
    name: &str,
    site: bool,
    plan: &Plan,
    stores: &[Access],
) -> Result<Prepared, LabError> {
    course.progress(&format!("making the site ({name})"), 0.0);
    let own = course.settings.site.as_deref().filter(|_| site);
    prepare(
        course.place.dir.join(name),
        own,
        plan,
        stores,
        course.context.scratch,
    )
}

/// Rounds over the whole site: the source's table. Space and import time are told on the way.
pub fn rounds(course: &mut Course) -> Result<(), LabError> {
    let plan = Plan::site(course.settings.pages, course.context.seed);
    let stores = course.settings.stores.clone();
    let mut prepared = site(course, "rounds", true, &plan, &stores)?;
    space_and_import(course, &mut prepared)?;
    let (states, cold) = states(course);
    for &state in &states {
        let params = course.params();
        let memory = course.settings.memory.clone();
        for bytes in &memory {
            let params = params.clone().with("state", state.name());
            let mut contest = Contest {
                prepared: &prepared,
                stores: &stores,
                rows: &course::OF_ROUND,
                params: bytes.map_or(params.clone(), |bytes| params.with("memory", bytes as i64)),
                urls: course.settings.urls,
                per: 1,
                state,
                start: &Start::default(),
                budget: course.budget.mul_f64(0.8) / (states.len() * memory.len()) as u32,
            };
            let start = match state {
                State::Warming => Start::with(course.context.scratch, cold, *bytes),
                State::Warm | State::Cold => Ok(Start::default()),
            };
            let start = match start {
                Ok(start) => start,
                Err(why) => {
                    warming::skip(course, &contest, &why);
                    continue;
                }
            };
            contest.start = &start;
            let held = course.hold(&contest);
            start
                .unmet()
                .iter()
                .for_each(|sentence| course.context.sink.warn(sentence));
            let ended = start.end(course.context.scratch);
            held.and(ended)?;
        }
    }
    Ok(())
}

/// The states that can be measured here, and whether caches can be dropped; a cold one that cannot be is said to be
/// warm.
fn states(course: &mut Course) -> (Vec<State>, bool) {
    let allowed = course.context.allow_system_changes && fingerpost_sys::system::is_root();
    let mut states = course.settings.states.clone();
    // What loads is then only what a contestant keeps in memory of its own.
    let own = if states.contains(&State::Warming) {
        "; what loads is what each contestant keeps itself"
    } else {
        ""
    };
    if states != [State::Warm] && !allowed {
        course.context.sink.warn(&format!(
            "the kernel's caches are warm: dropping them needs root and --allow-system-changes{own}"
        ));
    }
    let memory = course
        .settings
        .site
        .iter()
        .chain([&course.place.dir])
        .find(|dir| is_memory(dir))
        .cloned();
    if let Some(dir) = memory
        .as_ref()
        .filter(|_| states != [State::Warm] && allowed)
    {
        let sentence = format!(
            "the kernel's caches are warm on {}: that file system is memory and nothing else{own}",
            dir.display()
        );
        course.context.sink.warn(&sentence);
    }
    let cold = allowed && memory.is_none();
    if states.contains(&State::Cold) && !cold {
        states = vec![State::Warm];
    }
    (states, cold)
}

/// Whether a directory's files are in memory only, where no cache can be dropped.
fn is_memory(dir: &Path) -> bool {
    /// The numbers of tmpfs and ramfs (linux/magic.h).
    const MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    rustix::fs::statfs(dir).is_ok_and(|fs| MEMORY.contains(&(fs.f_type as u64 & 0xffff_ffff)))
}

fn space_and_import(course: &mut Course, prepared: &mut Prepared) -> Result<(), LabError> {
    let failed =
        |e: std::io::Error| LabError::Failed(format!("the site cannot be measured on disk: {e}"));
    let base = course.params().without(&["urls"]);
    for (store, bytes) in prepared.space().map_err(failed)? {
        let space = [Process::of_one(bytes as f64, 1)];
        course.context.sink.measurement(row(
            &course::OF_SPACE,
            base.clone().with("store", store),
            Ok(&space),
        ));
    }
    let pages = tree::read_list(&prepared.list).map_err(failed)?;
    for sentence in prepared.import_again(course.context.scratch) {
        course.context.sink.warn(&sentence);
    }
    let copied = ("files", prepared.copy_files(&pages).map_err(failed)?);
    for (store, took) in prepared
        .imports
        .iter()
        .map(|(s, t)| (*s, t.clone()))
        .chain([copied])
    {
        let processes: Vec<Process> = took
            .iter()
            .map(|t| Process::of_one(t.as_nanos() as f64, 1))
            .collect();
        course.context.sink.measurement(row(
            &course::OF_IMPORT,
            base.clone().with("store", store),
            Ok(&processes),
        ));
    }
    Ok(())
}

/// A contest of one kind of site, with the time for a page as its figure.
fn pages(
    course: &mut Course,
    rows: &'static Definition,
    key: (&str, i64),
    plan: &Plan,
    urls: usize,
    of: usize,
) -> Result<(), LabError> {
    if course.context.sink.interrupted() {
        return Ok(());
    }
    let stores = few(course);
    let prepared = site(
        course,
        &format!("{}-{}", key.0, key.1),
        false,
        plan,
        &stores,
    )?;
    let contest = Contest {
        prepared: &prepared,
        stores: &stores,
        rows,
        params: course.place.params().with(key.0, key.1),
        urls,
        per: urls,
        state: State::Warm,
        start: &Start::default(),
        budget: course.budget / of as u32,
    };
    course.hold(&contest)
}

/// Pages of one size each.
pub fn sizes(course: &mut Course) -> Result<(), LabError> {
    for size in SIZES {
        let count = (SIZED_SITE / size).clamp(16, 200) as usize;
        let plan = Plan {
            size: Some(size),
            ..Plan::site(count, course.context.seed)
        };
        let urls = (SIZED_ROUND / size).clamp(8, 100) as usize;
        pages(
            course,
            &course::OF_SIZE,
            ("size", size as i64),
            &plan,
            urls,
            SIZES.len(),
        )?;
    }
    Ok(())
}

/// Many files in one folder.
pub fn folders(course: &mut Course) -> Result<(), LabError> {
    let numbers = course.settings.folders.clone();
    for &entries in &numbers {
        let plan = Plan {
            pages: entries,
            depth: 1,
            per_folder: entries,
            size: Some(1024),
            seed: course.context.seed,
        };
        pages(
            course,
            &course::OF_FOLDER,
            ("entries", entries as i64),
            &plan,
            100,
            numbers.len(),
        )?;
    }
    Ok(())
}

/// Folders within folders.
pub fn depth(course: &mut Course) -> Result<(), LabError> {
    for depth in DEPTHS {
        let plan = Plan {
            depth,
            size: Some(1024),
            ..Plan::site(1000, course.context.seed)
        };
        pages(
            course,
            &course::OF_DEPTH,
            ("depth", depth as i64),
            &plan,
            100,
            DEPTHS.len(),
        )?;
    }
    Ok(())
}

/// Several readers at a time, each a process, none bound to a CPU.
pub fn readers(course: &mut Course) -> Result<(), LabError> {
    let plan = Plan::site(course.settings.pages, course.context.seed);
    let stores = few(course);
    let prepared = site(course, "readers", true, &plan, &stores)?;
    let spans = if course.context.profile == Profile::Quick {
        3
    } else {
        SPANS
    };
    let steps: Vec<(usize, Access)> = course
        .settings
        .readers
        .iter()
        .flat_map(|&n| stores.iter().map(move |&a| (n, a)))
        .collect();
    let mut order = Interleaved::shuffled(steps.len(), course.context.seed, Extent::rounds(1));
    while let Some(turn) = order.next(course.context.sink.interrupted()) {
        let (count, access) = steps[turn.step];
        course.progress(
            &format!("site.readers {} readers={count}", access.name()),
            turn.done,
        );
        let params = course
            .place
            .params()
            .with("store", access.name())
            .with("readers", count as i64);
        let measured = together(course, &prepared, access, count, spans);
        course
            .context
            .sink
            .measurement(row(&course::OF_READERS, params, measured.as_deref()));
    }
    Ok(())
}

/// So many readers of one kind at a time, several times: pages a second of all of them.
fn together(
    course: &mut Course,
    prepared: &Prepared,
    access: Access,
    count: usize,
    spans: usize,
) -> Row {
    let source = prepared.source(access).map_err(LabError::Missing)?;
    let mut readers = Vec::new();
    for _ in 0..count {
        readers.push(Reader::start(
            access,
            source,
            &prepared.list,
            None,
            course.context.scratch,
        )?);
    }
    let mut span = |seed: u64, ms: u64| -> Result<f64, LabError> {
        for (i, reader) in readers.iter_mut().enumerate() {
            reader.order(&format!("span {} {ms}", seed + i as u64))?;
        }
        let mut rate = 0.0;
        for reader in &mut readers {
            match numbers(&reader.read_answer()?).as_slice() {
                [ns, pages] if *ns > 0.0 => rate += pages * 1e9 / ns,
                _ => return Err(LabError::Failed("a reader told no pages".to_owned())),
            }
        }
        Ok(rate)
    };
    let warm = span(0, SPAN_MS / 5);
    let rates = warm.and_then(|_| {
        (0..spans)
            .map(|i| span(i as u64 * 100, SPAN_MS))
            .collect::<Result<Vec<f64>, _>>()
    });
    readers
        .into_iter()
        .for_each(|r| r.stop(course.context.scratch));
    rates.map(|rates| {
        rates
            .into_iter()
            .map(|rate| Process::of_one(rate, 1))
            .collect()
    })
}

/// The site served by the embedded web server: what is left of the differences with HTTP around them.
pub fn served(course: &mut Course) -> Result<(), LabError> {
    let plan = Plan::site(course.settings.pages, course.context.seed);
    let stores = few(course);
    let prepared = site(course, "served", true, &plan, &stores)?;
    let pages = tree::read_list(&prepared.list).map_err(|e| LabError::Failed(e.to_string()))?;
    let mut rates: BTreeMap<&str, Row> = BTreeMap::new();
    let mut order = Interleaved::shuffled(stores.len(), course.context.seed, Extent::rounds(SPANS));
    while let Some(turn) = order.next(course.context.sink.interrupted()) {
        let access = stores[turn.step];
        course.progress(
            &format!("site.served {}", access.name()),
            turn.done / SPANS as f64,
        );
        let rate =
            serve_once(course, &prepared, access, &pages).map(|rate| Process::of_one(rate, 1));
        if rate.is_err() {
            order.leave_out(turn.step);
        }
        course::enter(
            rates.entry(access.name()).or_insert_with(|| Ok(Vec::new())),
            rate,
        );
    }
    if course.context.sink.interrupted() {
        return Ok(());
    }
    for (store, result) in rates {
        let params = course.place.params().with("store", store);
        course
            .context
            .sink
            .measurement(row(&course::OF_SERVED, params, result.as_deref()));
    }
    Ok(())
}

/// A server from start to end, with one window of load.
fn serve_once(
    course: &mut Course,
    prepared: &Prepared,
    access: Access,
    pages: &[Page],
) -> Result<f64, LabError> {
    let source = prepared.source(access).map_err(LabError::Missing)?;
    // Half of the CPUs for the server, so that the client has the other half.
    let workers = (course.context.cpus.len() / 2).max(1);
    let mut served = Served::start(access, source, pages, workers, course.context.scratch)?;
    let rate = served.window(Duration::from_millis(SERVED_MS));
    served.stop(course.context.scratch);
    rate
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Params;

    use super::*;

    #[test]
    fn a_file_system_in_memory_is_told_from_others() {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let fields: Vec<Vec<&str>> = mounts.lines().map(|l| l.split(' ').collect()).collect();
        // The last mount on a place is the one that is seen.
        let shown = |at: &str| fields.iter().rev().find(|f| f[1] == at).map(|f| f[2]);
        for f in fields.iter().filter(|f| {
            matches!(
                shown(f[1]),
                Some("tmpfs" | "ext4" | "xfs" | "btrfs" | "proc")
            )
        }) {
            if rustix::fs::statfs(f[1]).is_ok() {
                assert_eq!(
                    is_memory(Path::new(f[1])),
                    shown(f[1]) == Some("tmpfs"),
                    "{}",
                    f[1]
                );
            }
        }
    }

    #[test]
    fn sizes_reach_from_a_kilobyte_to_a_megabyte() {
        assert_eq!((SIZES[0], SIZES[SIZES.len() - 1]), (1024, 1 << 20));
        let params: Vec<Params> = SIZES
            .iter()
            .map(|s| Params::new().with("size", *s as i64))
            .collect();
        assert!(params.windows(2).all(|w| w[0] != w[1]));
    }
}
