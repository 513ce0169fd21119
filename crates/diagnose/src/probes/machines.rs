//! What the two sides' machines have in common, so that what is the same on both is not blamed for a difference.

use fingerpost_record::cause::id;
use fingerpost_record::{Evidence, Exercises, Finding, Layer, Metric, Status};

use super::groups::Group;
use super::view::{Item, View};
use crate::hosts::{TASK_MITIGATIONS, same};
use crate::steps::KnownSide;

/// Settings of a kernel that change what its work costs: those of entering it first.
pub(super) const KERNEL_SETTINGS: [&[&str]; 3] = [
    &[
        "kernel command line",
        "mitigations",
        TASK_MITIGATIONS,
        "seccomp",
        "seccomp filters",
    ],
    &[
        "transparent huge pages",
        "clock source",
        "preemption",
        "timer interrupts",
    ],
    &["file system", "mount options"],
];

/// What is known of two machines beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Machines {
    /// Whether the processor's model is the same; nothing where a side does not tell it.
    pub(super) same_processor: Option<bool>,
    /// Whether the kernel and the system are the same, as far as both sides tell them; nothing where they tell neither.
    pub(super) same_system: Option<bool>,
    /// Whether both sides tell their kernel and their system, those are the same, and so is every setting that both
    /// tell.
    pub(super) same_kernel: bool,
}

impl Machines {
    pub(super) fn of(base: &KnownSide, new: &KnownSide) -> Machines {
        let told = |what: &str| same(base.facts, new.facts, what);
        let settings = KERNEL_SETTINGS
            .iter()
            .copied()
            .flatten()
            .all(|what| told(what) != Some(false));
        Machines {
            same_processor: told("processor"),
            same_system: [told("kernel"), told("operating system")]
                .into_iter()
                .flatten()
                .reduce(|one, other| one && other),
            same_kernel: told("kernel") == Some(true)
                && told("operating system") != Some(false)
                && settings,
        }
    }

    /// What differs of the machines that moves every row by an amount that nobody knows, in the plural.
    pub(super) fn differ(&self) -> Option<&'static str> {
        match (self.same_processor, self.same_system) {
            (Some(false), _) => Some("processors"),
            (_, Some(false)) => Some("systems"),
            _ => None,
        }
    }

    /// The most that can be said of a cause in the kernel: two equal kernels are never confirmed by the kernel.
    pub(super) fn most(&self, status: Status) -> Status {
        if self.same_kernel && status == Status::Confirmed {
            Status::Likely
        } else {
            status
        }
    }
}

/// Whether a row's cost is that of code of the kernel or of a program, which two machines with one kernel run alike:
/// all but the memory and the devices.
fn is_code(item: &Item) -> bool {
    let devices = [Exercises::Memory, Exercises::Storage].map(Group::Part);
    !devices.contains(&item.group) && !item.row.descriptor.waits_for_device
}

/// The same kernel on another processor: what its work and a program's cost there is the processor's. Goes into what is
/// said of the processor already.
pub(super) fn other_processor(view: &mut View, total: f64, findings: &mut Vec<Finding>) {
    let machines = view.machines;
    if !machines.same_kernel || machines.same_processor != Some(false) || !view.changes.is_empty() {
        return;
    }
    let rows = view
        .items
        .iter()
        .filter(|i| i.slower && i.left > 0.0 && is_code(i))
        .count();
    if rows == 0 {
        return;
    }
    let mut evidence = vec![Evidence::figure(Metric::SameCodeElsewhere, rows as f64)];
    evidence.extend(view.host_clues(&["processor"]));
    let share = view.claim(|i| if is_code(i) { i.left } else { 0.0 }) / total;
    let known = findings.iter().position(|f| f.cause == id::CPU_SPEED);
    let (before, earlier) = known
        .map(|at| findings.remove(at))
        .map_or((0.0, Vec::new()), |f| (f.share, f.evidence));
    evidence.extend(
        earlier
            .into_iter()
            .filter(|e| !evidence.contains(e))
            .collect::<Vec<_>>(),
    );
    findings.push(Finding::new(
        id::CPU_SPEED,
        Layer::Cpu,
        Status::Likely,
        before + share,
        evidence,
    ));
}
