//! The host: everything known to change figures like ours.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The processor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Cpu {
    /// Model name as the system gives it.
    pub model: String,
    /// CPUs that this run was allowed to use.
    pub count: u32,
    /// CPUs that are online.
    #[serde(default)]
    pub online: u32,
    /// Clock rate in MHz where the system tells it: the current one of the first CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mhz: Option<f64>,
    /// Whether simultaneous multithreading is on: `on`, `off`, `notsupported` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smt: Option<String>,
    /// Whether the CPU may raise its clock above the nominal rate: `on`, `off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turbo: Option<String>,
    /// Cache sizes in bytes that the system reports, by name (`L1d`, `L2`, `L3`), per instance.
    #[serde(default)]
    pub caches: BTreeMap<String, u64>,
    /// Microcode revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microcode: Option<String>,
}

/// The control group that the run was in, and what it may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Cgroup {
    /// 1, 2, or nothing where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// CPUs' worth of time that the quota allows, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<f64>,
    /// CPU weight or shares as the controller writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_weight: Option<u64>,
    /// CPUs that the cpuset allows, as a list (`0-1`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpuset: Option<String>,
    /// Memory limit in bytes, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// Limit on processes, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids_limit: Option<u64>,
}

/// One swap area.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Swap {
    /// The file or device.
    pub path: String,
    /// `file`, `partition` …
    pub kind: String,
    /// Its size.
    pub bytes: u64,
    /// How much of it is used.
    pub used_bytes: u64,
    /// Its priority.
    pub priority: i32,
}

/// The file system of the directory that the probes work in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Filesystem {
    /// The directory.
    pub path: String,
    /// The file system's type (`ext4`).
    pub kind: String,
    /// The device or source that is mounted.
    pub device: String,
    /// Mount options.
    pub options: String,
    /// Bytes free for us.
    pub free_bytes: u64,
}

/// A reading of how busy the machine is, taken before or after measuring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Load {
    /// Load averages over 1, 5 and 15 minutes.
    pub average: [f64; 3],
    /// Share of all CPUs' time, 0 to 1, that the hypervisor took since boot.
    pub steal: f64,
    /// Seconds of steal since boot, over all CPUs.
    pub steal_seconds: f64,
    /// Processes that were runnable.
    pub runnable: u64,
}

/// The host's description.
///
/// A field that the system does not tell is absent, never guessed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Host {
    /// Host name.
    pub hostname: String,
    /// Operating system with its version (`Debian GNU/Linux 12`).
    pub os: String,
    /// Kernel release and version.
    pub kernel: String,
    /// Machine architecture (`x86_64`).
    pub arch: String,
    /// The kernel's command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cmdline: Option<String>,
    /// The processor.
    pub cpu: Cpu,
    /// Physical memory.
    pub memory_bytes: u64,
    /// Hypervisor or container, or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtualization: Option<String>,
    /// Whether this looks like the inside of a container, and which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Per vulnerability, what the kernel says about it.
    #[serde(default)]
    pub mitigations: BTreeMap<String, String>,
    /// What the kernel says of the speculation of the run's own processes, which they inherit and may have chosen
    /// (`prctl(2)`, `PR_SET_SPECULATION_CTRL`). Empty where it does not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub task_mitigations: BTreeMap<String, String>,
    /// CPU frequency governor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Transparent huge pages: the setting in force (`always`, `madvise`, `never`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thp: Option<String>,
    /// Who takes memory away that is free or idle, while nothing is short of it (`DAMON pageout`,
    /// `free page reporting`), or `left`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_memory: Option<String>,
    /// The clock source in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocksource: Option<String>,
    /// Preemption model (`none`, `voluntary`, `full`, `lazy`, as `dynamic` kernels tell it).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption: Option<String>,
    /// Timer interrupts a second, where readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hz: Option<u32>,
    /// Page size.
    #[serde(default)]
    pub page_bytes: u64,
    /// Seccomp mode of the run (0 none, 1 strict, 2 filter).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<u32>,
    /// Seccomp filters in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seccomp_filters: Option<u32>,
    /// Control group and its limits.
    #[serde(default)]
    pub cgroup: Cgroup,
    /// The file system of the work directory.
    #[serde(default)]
    pub filesystem: Filesystem,
    /// Swap areas that are on.
    #[serde(default)]
    pub swap: Vec<Swap>,
    /// C library of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub libc: Option<String>,
    /// C compilers found, each with its version. They are not looked for beside a service that is explained.
    #[serde(default)]
    pub compilers: Vec<String>,
    /// `kernel.perf_event_paranoid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perf_event_paranoid: Option<i32>,
    /// Whether hardware counters could be opened.
    #[serde(default)]
    pub counters: bool,
    /// Why hardware counters cannot be had, when they cannot, or why only those of user code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters_refused: Option<String>,
    /// The exact setting that would allow them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters_remedy: Option<String>,
    /// Options of the kernel's configuration that check as it runs, and slow it (`CONFIG_KASAN` …).
    #[serde(default)]
    pub kernel_debug: Vec<String>,
    /// Whether the run was root.
    #[serde(default)]
    pub root: bool,
    /// How busy the machine was before.
    #[serde(default)]
    pub before: Load,
    /// How busy it was after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Load>,
    /// What speaks against figures from this host, a sentence each, with what to do.
    #[serde(default)]
    pub doubts: Vec<String>,
}
