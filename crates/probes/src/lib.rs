//! One file per probe or family of probes, each ending in its descriptors; [`REGISTRY`] lists them all.
//!
//! A probe is one small measured operation in its own small process. The process is this same binary, dispatched by
//! [`child::dispatch`] before anything else runs; [`protocol`] is what it says to the parent that started it.

#![allow(unsafe_code)]

mod bandwidth;
mod call;
pub mod child;
mod clock;
mod cpu;
pub mod flops;
mod fs;
mod ipc;
mod memory;
mod monotonic;
mod pace;
mod parallel;
mod peer;
mod probe;
mod process;
mod program;
pub mod protocol;
mod select;
mod session;
mod share;
mod signal;
mod switch;
mod sync;
mod syscall;
mod thread;
mod vm;
mod zerofill;

use fingerpost_record::descriptor::{Descriptor, HostDependence, is_beyond_caches, lmbench};
use fingerpost_record::{Measurement, Outcome, Params};

pub use probe::{LATENCY, Nature, Probe};
pub use session::{Session, Stop};

/// Every probe, in the order of the table. To add one: write its file, end it with its descriptors, add a line here.
pub static REGISTRY: &[&[Probe]] = &[
    clock::PROBES,
    syscall::PROBES,
    select::PROBES,
    signal::PROBES,
    process::PROBES,
    thread::PROBES,
    switch::PROBES,
    ipc::PROBES,
    bandwidth::PROBES,
    sync::PROBES,
    parallel::PROBES,
    vm::PROBES,
    fs::PROBES,
    memory::PROBES,
    cpu::PROBES,
    flops::PROBES,
    flops::LIMITS,
];

/// The descriptors of one lab's rows.
pub fn of_lab(lab: &str) -> impl Iterator<Item = &'static Probe> {
    all()
        .chain(lab_rows())
        .filter(move |probe| probe.lab == Some(lab))
}

/// Further rows of primitives that a lab measures: descriptors of the same name and function with the lab's parameters.
pub fn lab_rows() -> impl Iterator<Item = &'static Probe> {
    memory::LAB_ROWS.iter()
}

/// All probes of the registry.
pub fn all() -> impl Iterator<Item = &'static Probe> {
    REGISTRY
        .iter()
        .chain(zerofill::PROBES)
        .flat_map(|family| family.iter())
}

/// The probe with this name.
pub fn find(name: &str) -> Option<&'static Probe> {
    all().find(|p| p.name == name)
}

impl Probe {
    /// What a record says of a row with these parameters.
    pub fn descriptor(&self, params: &Params) -> Descriptor {
        let int = |key: &str| params.int(key);
        Descriptor {
            place: all()
                .filter(|probe| probe.table.key == self.table.key)
                .position(|p| p.name == self.name)
                .map(|n| n as u32),
            exercises: self.exercises,
            entries: self.entries,
            waits_for_device: self.waits_for_device,
            depends_on_host: self
                .depends_on_host
                .filter(|made| *made != HostDependence::Memory || is_beyond_caches(int)),
            lmbench: self.lmbench.and_then(|name| lmbench::name(name, int)),
            calls: self.calls.iter().map(|call| (*call).into()).collect(),
            ..Descriptor::of(self.table)
        }
    }

    /// A row of it without a figure, and why.
    pub fn without_figure(&self, params: Params, outcome: Outcome, reason: String) -> Measurement {
        let descriptor = self.descriptor(&params);
        Measurement::without_figure(
            self.name,
            self.version,
            params,
            self.unit,
            self.better,
            outcome,
            reason,
        )
        .described(descriptor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::Params;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_every_variant_is_its_own_row() {
        let mut names = BTreeSet::new();
        for probe in all() {
            assert!(names.insert(probe.name), "{} is listed twice", probe.name);
            let variants = (probe.variants)();
            assert!(!variants.is_empty(), "{} has no variant", probe.name);
            assert_ne!(probe.table.key, "other", "{} has no table", probe.name);
            let [low, high] = probe.bounds;
            assert!(0.0 < low && low < high, "{} has no bounds", probe.name);
            assert_eq!(
                variants.iter().collect::<BTreeSet<_>>().len(),
                variants.len(),
                "{} repeats a variant",
                probe.name
            );
        }
    }

    /// The probes that records of before may have, which state no descriptor.
    const OF_BEFORE: &str = "clock.gettime clock.loop syscall.null syscall.read syscall.write syscall.stat \
        syscall.fstat syscall.open_close syscall.select syscall.poll syscall.epoll signal.install signal.handle \
        signal.fault process.fork process.vfork process.spawn process.exec process.exec_dynamic process.shell \
        thread.create switch.ring ipc.pipe ipc.unix ipc.udp ipc.tcp ipc.tcp_connect ipc.eventfd ipc.futex ipc.shm \
        bandwidth.pipe bandwidth.unix bandwidth.tcp bandwidth.file_reread bandwidth.mmap_reread sync.mutex \
        sync.mutex_contended sync.rwlock sync.condvar parallel.fs parallel.network parallel.vm parallel.process \
        parallel.network_fs vm.mmap vm.munmap vm.mprotect vm.fault_anon vm.fault_file vm.fault_cow fs.create fs.delete \
        fs.rename fs.append fs.fsync fs.fdatasync memory.latency memory.read memory.write memory.copy cpu.int cpu.div \
        cpu.branch cpu.flops cpu.peak cpu.frequency zerofill.alloc zerofill.touch zerofill.phase zerofill.prefault \
        zerofill.clear zerofill.zeroing zerofill.kernel_profile";

    /// A record of before is read as its probes' descriptors would have described it. Where what a descriptor says
    /// changes, the probe leaves the list; a new one is never in it.
    #[test]
    fn what_is_known_of_rows_of_before_is_what_the_descriptors_say() {
        assert!(OF_BEFORE.split(' ').all(|name| find(name).is_some()));
        for probe in all()
            .chain(lab_rows())
            .filter(|probe| OF_BEFORE.split(' ').any(|name| name == probe.name))
        {
            for params in (probe.variants)() {
                let mut known =
                    fingerpost_record::descriptor::of_before(probe.name, [&params, &Params::new()]);
                let now = probe.descriptor(&params);
                // Some had no place.
                known.place = known.place.or(now.place);
                assert_eq!(now, known, "{} {params}", probe.name);
            }
        }
    }

    #[test]
    fn what_lmbench_calls_a_probe_is_what_its_descriptor_says() {
        use fingerpost_record::descriptor::lmbench::OPERATIONS;
        for operation in OPERATIONS
            .iter()
            .filter(|operation| !operation.probe.starts_with("lmbench."))
        {
            let said = find(operation.probe).map(|probe| probe.lmbench);
            assert_eq!(said, Some(Some(operation.name)), "{}", operation.probe);
        }
    }

    #[test]
    fn every_probe_says_what_it_times() {
        for probe in all() {
            assert!(
                probe.timed.ends_with('.') && probe.timed.len() > 20,
                "{}",
                probe.name
            );
            assert!(
                probe.version >= 1 && !probe.summary.is_empty(),
                "{}",
                probe.name
            );
        }
    }
}
