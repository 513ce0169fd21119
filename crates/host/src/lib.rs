//! The host's description and the preflight check.
//!
//! [`describe`] reads everything known to change figures like ours; [`doubts`] says what of it speaks against them and
//! what to do. [`fixed_work`], [`timer`] and [`background`] look at the machine as it is now. What the system does not
//! tell is absent, never guessed.

pub mod background;
mod cpu;
mod doubts;
pub mod fixed_work;
mod idle;
mod kernel;
pub mod preflight;
pub mod timer;
mod toolchain;
mod virtualization;

use std::collections::BTreeMap;
use std::path::Path;

pub use doubts::{Doubt, Severity, doubts};
use fingerpost_record::host::{Cgroup, Filesystem, Host, Load, Swap};
use fingerpost_sys::cgroup::Hierarchies;
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::procfs::memory::{Meminfo, SwapArea, parse_swaps};
use fingerpost_sys::procfs::mounts::{mount_of, parse_mountinfo};
use fingerpost_sys::procfs::process::Status;
use fingerpost_sys::procfs::system::{LoadAverage, Stat};
use fingerpost_sys::{perf, system};

/// Describes the host; `work_dir` is the directory that the probes work in.
///
/// Below another root than `/` only its text is read: counters, the hypervisor's signature and the page size are asked
/// of the kernel only on the real machine.
pub fn describe(paths: &Paths, work_dir: &Path) -> Host {
    // Compilers answer slowly, and meanwhile all else can be read.
    std::thread::scope(|scope| {
        // Where no thread can be had (RLIMIT_NPROC), one after the other.
        let compilers =
            std::thread::Builder::new().spawn_scoped(scope, || toolchain::compilers(paths));
        let mut host = describe_without_compilers(paths, work_dir);
        host.compilers = match compilers {
            Ok(compilers) => compilers.join().unwrap_or_default(),
            Err(_) => toolchain::compilers(paths),
        };
        doubted(host)
    })
}

/// The description with the doubts that it gives rise to.
fn doubted(mut host: Host) -> Host {
    host.doubts = doubts(&host).iter().map(Doubt::to_string).collect();
    host
}

/// Describes the machine that we run on, for a run that uses these CPUs of it.
pub fn describe_for(work_dir: &Path, cpus: &[usize]) -> Host {
    let mut host = describe(&Paths::system(), work_dir);
    host.cpu.count = cpus.len() as u32;
    doubted(host)
}

/// Describes the machine beside a service that is running. Compilers are left out: to tell their versions they are
/// started, which takes CPU time from the service, and a second and more where they have to be read from the disk.
/// Which CPUs may be used is of no run's concern.
pub fn describe_beside_service(work_dir: &Path) -> Host {
    let mut host = describe_without_compilers(&Paths::system(), work_dir);
    host.cpu.count = 0;
    doubted(host)
}

/// Adds to the description how busy the machine was at the end of the run, and the doubt that the time in between gives
/// rise to.
pub fn after(host: &mut Host) {
    finish(host, load(&Paths::system()));
}

/// A share of stolen time during the run from which figures suffer.
const STEAL_DURING: f64 = 0.01;

fn finish(host: &mut Host, after: Load) {
    let share = steal_between(&host.before, &after);
    host.after = Some(after);
    if let Some(share) = share.filter(|share| *share > STEAL_DURING) {
        let what = format!(
            "The hypervisor took {:.1} % of the CPUs' time during the run",
            share * 100.0
        );
        let remedy = "use dedicated CPUs, or repeat the run at a quieter hour";
        host.doubts
            .push(Doubt::new(Severity::Care, what, remedy).to_string());
    }
}

/// The share of the processes beside which the CPU was slow from which figures may suffer.
const SLOW_DURING: f64 = 0.5;

/// Adds the doubt that a CPU gives rise to which did not keep its pace: `slow` of so many processes were measured
/// beside a slower one.
pub fn doubt_the_pace(host: &mut Host, slow: usize, processes: usize) {
    if slow as f64 > SLOW_DURING * processes as f64 {
        let share = 100.0 * slow as f64 / processes as f64;
        let what = format!(
            "The CPU did not keep its pace: beside {share:.0} % of the processes the same work took longer than beside \
             the others"
        );
        let remedy = "a neighbour on the core or a lower clock rate does that; most figures are made of the fastest \
                      processes, and intervals are wider; repeat the run at a quieter hour";
        host.doubts
            .push(Doubt::new(Severity::Care, what, remedy).to_string());
    }
}

/// The share of all CPUs' time that was stolen between two readings. Each tells seconds of steal and their share of all
/// time since boot, so that all time is their quotient; `None` where nothing was stolen yet, or no time has passed.
fn steal_between(before: &Load, after: &Load) -> Option<f64> {
    let total = |load: &Load| {
        if load.steal > 0.0 {
            load.steal_seconds / load.steal
        } else {
            0.0
        }
    };
    // Before the first steal the total is unknown, and the share since boot stands for it: it can only be too small.
    let passed = total(after) - total(before);
    let share = (after.steal_seconds - before.steal_seconds) / passed;
    (passed > 0.0 && share.is_finite()).then_some(share.clamp(0.0, 1.0))
}

fn describe_without_compilers(paths: &Paths, work_dir: &Path) -> Host {
    let status = Status::parse(&paths.read("proc/self/status").unwrap_or_default());
    let config = kernel::Config::read(paths);
    let counters = paths.is_system().then(perf::availability);
    let refusal = counters.as_ref().and_then(|c| c.as_ref().err());
    Host {
        hostname: paths.value("proc/sys/kernel/hostname").unwrap_or_default(),
        os: kernel::os(paths),
        kernel: kernel::release_and_version(paths),
        arch: paths
            .value("proc/sys/kernel/arch")
            .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cmdline: kernel::command_line(paths),
        cpu: cpu::describe(paths, &status),
        memory_bytes: Meminfo::parse(&paths.read("proc/meminfo").unwrap_or_default())
            .map_or(0, |info| info.total),
        virtualization: virtualization::hypervisor(paths),
        container: virtualization::container(paths),
        mitigations: kernel::mitigations(paths),
        task_mitigations: task_mitigations(&status),
        governor: cpu::governor(paths),
        thp: paths
            .value("sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| kernel::chosen(&text)),
        idle_memory: idle::memory(paths),
        clocksource: paths.value("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        preemption: kernel::preemption(paths, &config),
        hz: config.hz(),
        page_bytes: if paths.is_system() {
            system::page_bytes()
        } else {
            0
        },
        seccomp: status.seccomp,
        seccomp_filters: status.seccomp_filters,
        cgroup: cgroup(paths),
        filesystem: filesystem(paths, work_dir),
        swap: swap(paths),
        libc: toolchain::libc(paths),
        compilers: Vec::new(),
        perf_event_paranoid: paths.number("proc/sys/kernel/perf_event_paranoid"),
        counters: counters.as_ref().is_some_and(Result::is_ok),
        counters_refused: refusal.map(|refusal| refusal.reason.clone()),
        counters_remedy: refusal.map(|refusal| refusal.remedy.clone()),
        kernel_debug: config.debugging(),
        root: status.effective_user == Some(0),
        before: load(paths),
        after: None,
        doubts: Vec::new(),
    }
}

/// The speculation of this process, which those that measure inherit.
fn task_mitigations(status: &Status) -> BTreeMap<String, String> {
    let told = [
        ("speculative store bypass", &status.store_bypass),
        ("indirect branch speculation", &status.indirect_branch),
    ];
    told.into_iter()
        .filter_map(|(what, state)| Some((what.to_owned(), state.clone()?)))
        .collect()
}

/// How busy the machine is now.
pub fn load(paths: &Paths) -> Load {
    let average =
        LoadAverage::parse(&paths.read("proc/loadavg").unwrap_or_default()).unwrap_or_default();
    let stat = Stat::parse(&paths.read("proc/stat").unwrap_or_default()).unwrap_or_default();
    let (steal, total) = (stat.all.steal as f64, stat.all.total() as f64);
    Load {
        average: average.average,
        steal: if total > 0.0 { steal / total } else { 0.0 },
        steal_seconds: steal / system::ticks_per_second() as f64,
        // Our own reading of the file is counted; a reading of nothing has none.
        runnable: average.runnable.saturating_sub(1),
    }
}

fn cgroup(paths: &Paths) -> Cgroup {
    let hierarchies = Hierarchies::of_self(paths);
    let limits = hierarchies.limits();
    Cgroup {
        version: hierarchies.version().map(|version| version.number()),
        cpu_quota: limits.cpu_quota,
        cpu_weight: limits.cpu_weight,
        cpuset: limits.cpuset,
        memory_limit: limits.memory,
        pids_limit: limits.pids,
    }
}

/// The file system of the work directory. That may not exist yet: then its nearest ancestor that does is described.
fn filesystem(paths: &Paths, work_dir: &Path) -> Filesystem {
    let absolute = std::path::absolute(work_dir).unwrap_or_else(|_| work_dir.to_owned());
    let existing = absolute
        .ancestors()
        .find_map(|path| path.canonicalize().ok())
        .unwrap_or(absolute);
    let mounts = parse_mountinfo(&paths.read("proc/self/mountinfo").unwrap_or_default());
    let mount = mount_of(&mounts, &existing).cloned().unwrap_or_default();
    Filesystem {
        path: existing.display().to_string(),
        kind: mount.kind,
        device: mount.source,
        options: mount.options,
        free_bytes: system::free_bytes(&existing).unwrap_or(0),
    }
}

fn swap(paths: &Paths) -> Vec<Swap> {
    let swap = |SwapArea {
                    path,
                    kind,
                    bytes,
                    used,
                    priority,
                }| Swap {
        path,
        kind,
        bytes,
        used_bytes: used,
        priority,
    };
    parse_swaps(&paths.read("proc/swaps").unwrap_or_default())
        .into_iter()
        .map(swap)
        .collect()
}

#[cfg(test)]
mod tests;
