//! What of a host's description speaks against its figures, and what to do about it.

use std::fmt;

use fingerpost_record::host::Host;
use fingerpost_record::text::capitalised;
use serde::Serialize;

use Severity::{Care, Note, Unfit};

use crate::idle::LEFT;

/// How much a doubt weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It belongs beside the figures; they can be trusted.
    Note,
    /// It makes figures vary, or makes them speak for less than they seem to.
    Care,
    /// Figures made under it mislead.
    Unfit,
}

impl Severity {
    /// `note`, `care`, `unfit`.
    pub fn name(self) -> &'static str {
        match self {
            Note => "note",
            Care => "care",
            Unfit => "unfit",
        }
    }
}

/// Something that speaks against figures from this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// How much it weighs.
    pub severity: Severity,
    /// What is the matter.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

impl Doubt {
    /// A doubt of that weight.
    pub fn new(severity: Severity, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            severity,
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The remedy is kept as the middle of a sentence and makes one of its own here.
        write!(f, "{}. {}.", self.what, capitalised(&self.remedy))
    }
}

/// Below this the probes with a large footprint and every server feel the limit.
const SMALL_MEMORY: u64 = 256 << 20;
/// Below this file probes and labs may fill the disk.
const LITTLE_SPACE: u64 = 1 << 30;
/// A guest that lost this share of its time since boot has neighbours that will take more.
const NOTABLE_STEAL: f64 = 0.01;
/// Load per CPU from which our processes often wait.
const HIGH_LOAD: f64 = 0.25;

/// The doubts that the description gives rise to, the heaviest first.
pub fn doubts(host: &Host) -> Vec<Doubt> {
    let mut found = Vec::new();
    for look_at in [processor, limits, busy, memory, kernel, visibility, place] {
        look_at(host, &mut found);
    }
    found.sort_by_key(|doubt| std::cmp::Reverse(doubt.severity));
    found
}

fn processor(host: &Host, found: &mut Vec<Doubt>) {
    if let Some(governor) = host
        .governor
        .as_deref()
        .filter(|governor| *governor != "performance")
    {
        let what =
            format!("The frequency governor is {governor}, so a CPU takes time to reach its speed");
        found.push(Doubt::new(
            Care,
            what,
            "as root: cpupower frequency-set -g performance",
        ));
    }
    if host.cpu.turbo.as_deref() == Some("on") {
        let what = "Turbo is on, so the clock follows temperature and the number of busy CPUs";
        let remedy = "for the steadiest figures, as root: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or \
                      echo 0 > /sys/devices/system/cpu/cpufreq/boost";
        found.push(Doubt::new(Note, what, remedy));
    }
    if host.cpu.smt.as_deref() == Some("on") {
        let what = "Two hardware threads share a core and slow each other";
        let remedy = "use one of each core with --cpu (see /sys/devices/system/cpu/cpu0/topology)";
        found.push(Doubt::new(Note, what, remedy));
    }
    if host.cpu.count == 1 {
        let what = "Only one CPU may be used: probes across CPUs are skipped, and every other process interrupts the probes";
        found.push(Doubt::new(
            Care,
            what,
            "allow a second CPU (taskset, cpuset) where there is one",
        ));
    } else if host.cpu.count > 0 && host.cpu.count < host.cpu.online {
        let what = format!(
            "{} of the {} CPUs may be used",
            host.cpu.count, host.cpu.online
        );
        found.push(Doubt::new(
            Note,
            what,
            "nothing, if that is meant; else lift the affinity or the cpuset",
        ));
    }
    let usual = [
        "tsc",
        "arch_sys_counter",
        "timebase",
        "riscv_clocksource",
        "tod",
    ];
    if let Some(source) = host
        .clocksource
        .as_deref()
        .filter(|source| !usual.contains(source))
    {
        let paravirtual = ["kvm-clock", "hyperv_clocksource_tsc_page"].contains(&source);
        let severity = if paravirtual { Note } else { Care };
        let what = format!("The clock source is {source}, which is slower to read than tsc");
        let remedy = "if tsc is among /sys/devices/system/clocksource/clocksource0/available_clocksource, write it to \
                      current_clocksource as root";
        found.push(Doubt::new(severity, what, remedy));
    }
}

fn limits(host: &Host, found: &mut Vec<Doubt>) {
    if let Some(quota) = host
        .cgroup
        .cpu_quota
        .filter(|quota| *quota < f64::from(host.cpu.count.max(1)))
    {
        let severity = if quota < 1.0 { Unfit } else { Care };
        let what = format!(
            "A CPU quota of {quota:.2} CPUs stops processes for the rest of a period when it is used up"
        );
        let none = if host.cgroup.version == Some(1) {
            "-1 to cpu.cfs_quota_us"
        } else {
            "max to cpu.max"
        };
        let remedy = format!(
            "lift it: write {none} of the control group, or start the container without --cpus"
        );
        found.push(Doubt::new(severity, what, remedy));
    }
    if let Some(limit) = host
        .cgroup
        .memory_limit
        .filter(|limit| *limit < SMALL_MEMORY)
    {
        let what = format!("The control group allows {} MiB of memory", limit >> 20);
        found.push(Doubt::new(
            Care,
            what,
            "allow 256 MiB or more; probes that need more than there is will fail",
        ));
    }
    if let Some(limit) = host.cgroup.pids_limit.filter(|limit| *limit < 256) {
        let what = format!("The control group allows {limit} processes and threads");
        found.push(Doubt::new(
            Care,
            what,
            "allow 256 or more; servers with many clients will fail",
        ));
    }
}

fn busy(host: &Host, found: &mut Vec<Doubt>) {
    let (load, cpus) = (host.before.average[0], host.cpu.online.max(1));
    if load / f64::from(cpus) > HIGH_LOAD {
        let what = format!("The load over the last minute is {load:.2} on {cpus} CPUs");
        found.push(Doubt::new(
            Care,
            what,
            "stop the other busy processes, or wait for them (top shows them)",
        ));
    }
    if host.before.steal > NOTABLE_STEAL {
        let what = format!(
            "The hypervisor has taken {:.1} % of this machine's time since boot",
            host.before.steal * 100.0
        );
        let remedy = "use a size with dedicated CPUs, or measure longer and compare runs made close together";
        found.push(Doubt::new(Care, what, remedy));
    }
}

fn memory(host: &Host, found: &mut Vec<Doubt>) {
    let used: u64 = host
        .swap
        .iter()
        .fold(0, |sum, area| sum.saturating_add(area.used_bytes));
    if used > 0 {
        // A few pages that were swapped out long ago do no harm.
        let severity = if used > host.memory_bytes / 100 {
            Care
        } else {
            Note
        };
        let what = format!("{} MiB of swap are in use", used.div_ceil(1 << 20));
        let remedy = "free memory first; as root: swapoff -a && swapon -a brings the pages back";
        found.push(Doubt::new(severity, what, remedy));
    }
    if host.thp.as_deref() == Some("always") {
        let what = "Transparent huge pages are always on: figures of memory depend on how fragmented it is";
        let remedy = "for steadier figures, as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
        found.push(Doubt::new(Note, what, remedy));
    }
    if let Some(takers) = host.idle_memory.as_deref().filter(|takers| *takers != LEFT) {
        let what = format!("The host reclaims idle memory ({takers})");
        let remedy = "memory costs more when it is used again: leave the machine idle for some minutes after large \
                      work, and compare several runs a side (compare A1,A2 B1,B2)";
        found.push(Doubt::new(Note, what, remedy));
    }
}

fn kernel(host: &Host, found: &mut Vec<Doubt>) {
    if !host.kernel_debug.is_empty() {
        let what = format!(
            "This kernel checks itself as it runs ({}), which slows it",
            host.kernel_debug.join(", ")
        );
        found.push(Doubt::new(
            Care,
            what,
            "boot a kernel built for use; these figures speak for no other",
        ));
    }
    if host.seccomp == Some(2) {
        let filters = host
            .seccomp_filters
            .map_or(String::new(), |count| format!(" ({count})"));
        let what = format!("Seccomp filters{filters} lengthen every system call");
        let remedy =
            "start the container with --security-opt seccomp=unconfined, or measure on the host";
        found.push(Doubt::new(Care, what, remedy));
    }
    let cmdline = host.cmdline.as_deref().unwrap_or_default();
    if let Some(word) = cmdline
        .split_ascii_whitespace()
        .find(|word| *word == "mitigations=off" || *word == "nopti")
    {
        let what = format!(
            "The kernel was started with {word}, so system calls cost less than on a guarded system"
        );
        found.push(Doubt::new(
            Note,
            what,
            "compare it with hosts started the same way",
        ));
    }
}

fn visibility(host: &Host, found: &mut Vec<Doubt>) {
    if !host.counters
        && let (Some(reason), Some(remedy)) = (&host.counters_refused, &host.counters_remedy)
    {
        let what = format!("Instructions and cycles are not counted: {reason}");
        found.push(Doubt::new(Note, what, remedy));
    }
    // Every kernel with a /sys tells at least its vulnerabilities and its clock source.
    if host.mitigations.is_empty() && host.clocksource.is_none() {
        let what = "/sys is not readable, so mitigations, governor and clock source are unknown";
        found.push(Doubt::new(
            Care,
            what,
            "mount it (in a container: -v /sys:/sys:ro)",
        ));
    }
}

fn place(host: &Host, found: &mut Vec<Doubt>) {
    let fs = &host.filesystem;
    let memory = ["tmpfs", "ramfs"].contains(&fs.kind.as_str());
    if memory || fs.kind.starts_with("overlay") {
        let what = format!(
            "The work directory {} is on {}, so figures of files say nothing about a disk",
            fs.path, fs.kind
        );
        let remedy =
            "name a directory on the file system that matters with --set dir=PATH or TMPDIR";
        found.push(Doubt::new(Note, what, remedy));
    }
    if !fs.kind.is_empty() && fs.free_bytes < LITTLE_SPACE {
        let what = format!(
            "The work directory {} has {} MiB left",
            fs.path,
            fs.free_bytes >> 20
        );
        found.push(Doubt::new(
            Care,
            what,
            "free 1 GiB; a nearly full file system is slow, and some probes will fail",
        ));
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::host::Swap;

    use super::*;

    /// A host that nothing speaks against.
    fn good() -> Host {
        let mut host = Host {
            counters: true,
            clocksource: Some("tsc".into()),
            memory_bytes: 8 << 30,
            ..Default::default()
        };
        (host.cpu.count, host.cpu.online) = (4, 4);
        (host.governor, host.idle_memory) = (Some("performance".into()), Some(LEFT.into()));
        (host.filesystem.kind, host.filesystem.free_bytes) = ("ext4".into(), 10 << 30);
        host
    }

    fn swap(used_bytes: u64) -> Vec<Swap> {
        vec![Swap {
            used_bytes,
            ..Default::default()
        }]
    }

    #[test]
    fn a_good_host_has_none() {
        assert_eq!(doubts(&good()), []);
    }

    #[test]
    fn each_fault_has_its_doubt_and_its_remedy() {
        type Spoil = fn(&mut Host);
        let cases: [(Spoil, Severity, &str, &str); 21] = [
            (
                |h| h.governor = Some("powersave".into()),
                Severity::Care,
                "powersave",
                "cpupower",
            ),
            (
                |h| h.cpu.turbo = Some("on".into()),
                Severity::Note,
                "Turbo",
                "no_turbo",
            ),
            (
                |h| h.cpu.smt = Some("on".into()),
                Severity::Note,
                "share a core",
                "--cpu",
            ),
            (|h| h.cpu.count = 1, Severity::Care, "one CPU", "second CPU"),
            (
                |h| h.cpu.count = 2,
                Severity::Note,
                "2 of the 4",
                "affinity",
            ),
            (
                |h| h.clocksource = Some("hpet".into()),
                Severity::Care,
                "hpet",
                "current_clocksource",
            ),
            (
                |h| h.clocksource = Some("kvm-clock".into()),
                Severity::Note,
                "kvm-clock",
                "tsc",
            ),
            (
                |h| h.cgroup.cpu_quota = Some(0.5),
                Severity::Unfit,
                "0.50",
                "cpu.max",
            ),
            (
                |h| (h.cgroup.cpu_quota, h.cgroup.version) = (Some(2.0), Some(1)),
                Severity::Care,
                "2.00",
                "cpu.cfs_quota_us",
            ),
            (
                |h| h.cgroup.memory_limit = Some(64 << 20),
                Severity::Care,
                "64 MiB",
                "256 MiB",
            ),
            (
                |h| h.cgroup.pids_limit = Some(20),
                Severity::Care,
                "20 processes",
                "256",
            ),
            (
                |h| h.before.average[0] = 3.0,
                Severity::Care,
                "3.00 on 4",
                "top",
            ),
            (
                |h| h.before.steal = 0.05,
                Severity::Care,
                "5.0 %",
                "dedicated",
            ),
            (
                |h| h.swap = swap(1 << 30),
                Severity::Care,
                "1024 MiB",
                "swapoff",
            ),
            (|h| h.swap = swap(1), Severity::Note, "1 MiB", "swapoff"),
            (
                |h| h.thp = Some("always".into()),
                Severity::Note,
                "huge pages",
                "madvise",
            ),
            (
                |h| h.idle_memory = Some("DAMON pageout".into()),
                Severity::Note,
                "DAMON pageout",
                "several runs",
            ),
            (
                |h| h.kernel_debug = vec!["CONFIG_KASAN".into()],
                Severity::Care,
                "CONFIG_KASAN",
                "built for use",
            ),
            (
                |h| (h.seccomp, h.seccomp_filters) = (Some(2), Some(3)),
                Severity::Care,
                "(3)",
                "unconfined",
            ),
            (
                |h| h.clocksource = None,
                Severity::Care,
                "/sys is not",
                "mount",
            ),
            (
                |h| h.filesystem.free_bytes = 5 << 20,
                Severity::Care,
                "5 MiB left",
                "free 1 GiB",
            ),
        ];
        for (spoil, severity, what, remedy) in cases {
            let mut host = good();
            spoil(&mut host);
            let found = doubts(&host);
            let [doubt] = &found[..] else {
                panic!("{what}: {found:?}")
            };
            assert_eq!(doubt.severity, severity, "{doubt}");
            assert!(
                doubt.what.contains(what) && doubt.remedy.contains(remedy),
                "{doubt}"
            );
        }
    }

    #[test]
    fn a_doubt_reads_as_two_sentences() {
        let doubt = Doubt::new(Severity::Care, "The load is 3", "stop what runs");
        assert_eq!(doubt.to_string(), "The load is 3. Stop what runs.");
        assert_eq!(Doubt::new(Severity::Care, "", "").to_string(), ". .");
    }

    #[test]
    fn refused_counters_name_the_setting() {
        let mut host = good();
        host.counters = false;
        host.counters_refused = Some("kernel.perf_event_paranoid is 3".into());
        host.counters_remedy = Some("as root: sysctl kernel.perf_event_paranoid=2".into());
        assert!(
            doubts(&host)[0]
                .to_string()
                .contains("sysctl kernel.perf_event_paranoid=2")
        );
    }

    #[test]
    fn a_quota_above_the_cpus_is_none_and_heavy_doubts_come_first() {
        let mut host = good();
        host.cgroup.cpu_quota = Some(8.0);
        assert_eq!(doubts(&host), []);
        host.thp = Some("always".into());
        host.cgroup.cpu_quota = Some(0.2);
        let severities: Vec<Severity> = doubts(&host).iter().map(|doubt| doubt.severity).collect();
        assert_eq!(severities, [Severity::Unfit, Severity::Note]);
    }
}
