//! A made-up machine, fed file by file.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use fingerpost_record::host::{Filesystem, Swap};
use proptest::prelude::*;

use super::*;

fn put(root: &Path, name: &str, bytes: &[u8]) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn put_program(root: &Path, name: &str, script: &str) {
    put(root, name, script.as_bytes());
    fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

fn gzip(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

const TREE: &[(&str, &str)] = &[
    ("proc/sys/kernel/hostname", "made-up\n"),
    ("proc/sys/kernel/osrelease", "6.6.1-test\n"),
    ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Thu\n"),
    ("proc/sys/kernel/arch", "x86_64\n"),
    ("proc/sys/kernel/perf_event_paranoid", "3\n"),
    (
        "proc/cmdline",
        "root=/dev/vda quiet preempt=voluntary -- --for-init preempt=full\n",
    ),
    ("etc/os-release", "NAME=Made\nPRETTY_NAME=\"Made Up 7\"\n"),
    (
        "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Fast CPU\nmicrocode\t: 0x2b\ncpu MHz\t\t: 1999.5\nflags\t\t: fpu tsc \
         hypervisor\nprocessor\t: 1\n",
    ),
    ("proc/meminfo", "MemTotal: 1024 kB\n"),
    ("proc/loadavg", "1.50 1.00 0.50 3/100 999\n"),
    ("proc/stat", "cpu 50 0 30 10 0 0 0 10 0 0\n"),
    (
        "proc/swaps",
        "Filename Type Size Used Priority\n/swap file 2048 1024 -2\n",
    ),
    (
        "proc/self/status",
        "Uid:\t0\t0\t0\t0\nCpus_allowed_list:\t0\nSeccomp:\t2\nSeccomp_filters:\t3\n",
    ),
    ("proc/self/cgroup", "0::/kubepods/pod1\n"),
    (
        "proc/self/mountinfo",
        "1 0 8:1 / / rw,noatime - ext4 /dev/sda1 rw\n2 1 0:3 / /cg rw - cgroup2 cgroup2 rw\n",
    ),
    ("cg/cgroup.controllers", "cpu memory pids\n"),
    ("cg/kubepods/cpu.max", "50000 100000\n"),
    ("cg/kubepods/pod1/memory.max", "1048576\n"),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/smt/control", "notsupported\n"),
    (
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "powersave\n",
    ),
    (
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
        "2400000\n",
    ),
    (
        "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
        "performance\n",
    ),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n"),
    ("sys/devices/system/cpu/cpu0/cache/index3/level", "3\n"),
    ("sys/devices/system/cpu/cpu0/cache/index3/type", "Unified\n"),
    ("sys/devices/system/cpu/cpu0/cache/index3/size", "2048K\n"),
    (
        "sys/devices/system/cpu/vulnerabilities/meltdown",
        "Mitigation: PTI\n",
    ),
    (
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "kvm-clock\n",
    ),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    ),
    ("sys/kernel/mm/damon/admin/kdamonds/0/state", "on\n"),
    (
        "sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/schemes/0/action",
        "pageout\n",
    ),
    ("sys/bus/virtio/devices/virtio0/device", "0x0005\n"),
    (
        "sys/bus/virtio/devices/virtio0/features",
        "0110010100000000\n",
    ),
    ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
    ("sys/class/dmi/id/product_name", "Standard PC\n"),
    (
        "lib/x86_64-linux-gnu/libc.so.6",
        "\u{7f}ELF GNU C Library (X) stable release version 2.36.\n",
    ),
];

fn made_up() -> (tempfile::TempDir, Paths) {
    let dir = tempfile::tempdir().unwrap();
    TREE.iter()
        .for_each(|(name, text)| put(dir.path(), name, text.as_bytes()));
    put(
        dir.path(),
        "proc/config.gz",
        &gzip("CONFIG_HZ=250\nCONFIG_PREEMPT=y\nCONFIG_PROVE_LOCKING=y\n"),
    );
    put_program(
        dir.path(),
        "usr/bin/gcc-12",
        "#!/bin/sh\necho gcc 12.2.0\necho more\n",
    );
    std::os::unix::fs::symlink("gcc-12", dir.path().join("usr/bin/cc")).unwrap();
    let paths = Paths::under(dir.path());
    (dir, paths)
}

#[test]
fn every_field_is_read_from_the_tree() {
    let (_dir, paths) = made_up();
    let host = describe(&paths, Path::new("/"));
    assert_eq!(
        (host.hostname.as_str(), host.os.as_str(), host.arch.as_str()),
        ("made-up", "Made Up 7", "x86_64")
    );
    assert_eq!(
        host.cmdline.as_deref(),
        Some("root=/dev/vda quiet preempt=voluntary")
    );
    assert_eq!(host.kernel, "6.6.1-test #1 SMP PREEMPT_DYNAMIC Thu");
    assert_eq!(
        (
            host.cpu.model.as_str(),
            host.cpu.count,
            host.cpu.online,
            host.cpu.mhz
        ),
        ("Fast CPU", 1, 2, Some(2400.0))
    );
    assert_eq!(
        (host.cpu.smt.as_deref(), host.cpu.turbo.as_deref()),
        (Some("notsupported"), Some("off"))
    );
    assert_eq!(
        (
            host.cpu.caches["L1d"],
            host.cpu.caches["L3"],
            host.cpu.microcode.as_deref()
        ),
        (48 << 10, 2 << 20, Some("0x2b"))
    );
    assert_eq!(host.governor.as_deref(), Some("performance,powersave"));
    assert_eq!(
        (host.memory_bytes, host.thp.as_deref()),
        (1 << 20, Some("madvise"))
    );
    assert_eq!(
        host.idle_memory.as_deref(),
        Some("DAMON pageout, free page reporting")
    );
    assert_eq!(
        host.virtualization.as_deref(),
        Some("qemu (QEMU Standard PC)")
    );
    assert_eq!(host.container.as_deref(), Some("kubernetes"));
    assert_eq!(host.mitigations["meltdown"], "Mitigation: PTI");
    assert_eq!(
        (
            host.clocksource.as_deref(),
            host.preemption.as_deref(),
            host.hz
        ),
        (Some("kvm-clock"), Some("voluntary"), Some(250))
    );
    assert_eq!(
        (host.seccomp, host.seccomp_filters, host.root),
        (Some(2), Some(3), true)
    );
    assert_eq!(
        (
            host.cgroup.version,
            host.cgroup.cpu_quota,
            host.cgroup.memory_limit
        ),
        (Some(2), Some(0.5), Some(1 << 20))
    );
    let swap = Swap {
        path: "/swap".into(),
        kind: "file".into(),
        bytes: 2 << 20,
        used_bytes: 1 << 20,
        priority: -2,
    };
    assert_eq!(host.swap, [swap]);
    let free_bytes = host.filesystem.free_bytes;
    let fs = Filesystem {
        path: "/".into(),
        kind: "ext4".into(),
        device: "/dev/sda1".into(),
        options: "rw,noatime".into(),
        free_bytes,
    };
    assert_eq!(host.filesystem, fs);
    assert_eq!(
        (host.libc.as_deref(), host.compilers.as_slice()),
        (
            Some("glibc 2.36"),
            ["cc, gcc-12: gcc 12.2.0".to_owned()].as_slice()
        )
    );
    assert_eq!(
        (host.perf_event_paranoid, host.kernel_debug.as_slice()),
        (Some(3), ["CONFIG_PROVE_LOCKING".to_owned()].as_slice())
    );
    assert_eq!(
        (host.before.average, host.before.steal, host.before.runnable),
        ([1.5, 1.0, 0.5], 0.1, 2)
    );
    assert_eq!(host.doubts.len(), doubts(&host).len());
    assert!(
        host.doubts.iter().any(|doubt| doubt.contains("powersave")),
        "{:?}",
        host.doubts
    );
}

#[test]
fn memory_that_nobody_takes_is_left() {
    let (dir, paths) = made_up();
    let idle = || describe(&paths, Path::new("/")).idle_memory.unwrap();
    // Monitoring alone takes nothing.
    put(
        dir.path(),
        "sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/schemes/0/action",
        b"stat\n",
    );
    assert_eq!(idle(), "free page reporting");
    // A balloon without that feature, and a device that is no balloon.
    put(
        dir.path(),
        "sys/bus/virtio/devices/virtio0/features",
        b"0110000100000000\n",
    );
    put(
        dir.path(),
        "sys/bus/virtio/devices/virtio1/device",
        b"0x0001\n",
    );
    put(
        dir.path(),
        "sys/bus/virtio/devices/virtio1/features",
        b"1111111100000000\n",
    );
    assert_eq!(idle(), "left");
    put(
        dir.path(),
        "sys/module/damon_reclaim/parameters/enabled",
        b"Y\n",
    );
    assert_eq!(idle(), "DAMON reclaim");
}

#[test]
fn what_is_not_told_is_absent() {
    let dir = tempfile::tempdir().unwrap();
    let host = describe(&Paths::under(dir.path()), Path::new("/no/such/place"));
    assert_eq!(
        (
            host.hostname.as_str(),
            host.kernel.as_str(),
            host.cpu.model.as_str(),
            host.memory_bytes
        ),
        ("", "", "", 0)
    );
    assert_eq!(host.idle_memory, None);
    assert_eq!(
        (
            &host.governor,
            &host.thp,
            &host.clocksource,
            &host.preemption,
            host.hz
        ),
        (&None, &None, &None, &None, None)
    );
    assert_eq!(
        (
            &host.virtualization,
            &host.container,
            &host.libc,
            host.seccomp
        ),
        (&None, &None, &None, None)
    );
    assert_eq!(
        (
            host.cgroup,
            host.swap.len(),
            host.compilers.len(),
            host.counters
        ),
        (Cgroup::default(), 0, 0, false)
    );
    assert!(
        host.doubts.iter().any(|doubt| doubt.contains("/sys")),
        "{:?}",
        host.doubts
    );
}

#[test]
fn a_cpu_that_was_slow_most_of_the_time_is_a_doubt() {
    let mut host = Host::default();
    doubt_the_pace(&mut host, 40, 100);
    doubt_the_pace(&mut host, 0, 0);
    assert!(host.doubts.is_empty());
    doubt_the_pace(&mut host, 60, 100);
    assert!(host.doubts[0].contains("60 %"), "{:?}", host.doubts);
}

#[test]
fn steal_during_a_run_is_a_doubt_of_its_own() {
    let load = |steal_seconds: f64, total: f64| Load {
        steal: steal_seconds / total,
        steal_seconds,
        ..Default::default()
    };
    let with = |before: Load, after: Load| {
        let mut host = Host {
            before,
            ..Default::default()
        };
        finish(&mut host, after);
        host
    };
    let host = with(load(10.0, 1000.0), load(15.0, 1100.0));
    assert!(
        host.after.is_some() && host.doubts[0].contains("5.0 %"),
        "{:?}",
        host.doubts
    );
    assert!(
        with(load(10.0, 1000.0), load(10.5, 1100.0))
            .doubts
            .is_empty()
    );
    assert!(with(load(0.0, 1000.0), load(0.0, 1100.0)).doubts.is_empty());
    assert_eq!(
        steal_between(&load(10.0, 1000.0), &load(10.0, 1000.0)),
        None
    );
}

#[test]
fn a_dynamic_kernel_tells_its_preemption_in_debugfs_first() {
    let (dir, paths) = made_up();
    put(
        dir.path(),
        "sys/kernel/debug/sched/preempt",
        b"none voluntary full (lazy)\n",
    );
    assert_eq!(
        describe(&paths, Path::new("/")).preemption.as_deref(),
        Some("lazy")
    );
}

#[test]
fn musl_is_known_by_its_loader() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "lib/ld-musl-x86_64.so.1", b"\x7fELF");
    assert_eq!(
        toolchain::libc(&Paths::under(dir.path())).as_deref(),
        Some("musl")
    );
    put(
        dir.path(),
        "lib/apk/db/installed",
        b"P:zlib\nV:1.3\n\nC:x\nP:musl\nV:1.2.4-r2\n\n",
    );
    assert_eq!(
        toolchain::libc(&Paths::under(dir.path())).as_deref(),
        Some("musl 1.2.4-r2")
    );
}

#[test]
fn a_compiler_that_hangs_is_left_out_in_time() {
    let dir = tempfile::tempdir().unwrap();
    put_program(dir.path(), "usr/bin/gcc", "#!/bin/sh\nsleep 600\n");
    put_program(dir.path(), "usr/bin/clang", "#!/bin/sh\nexit 3\n");
    put_program(dir.path(), "usr/bin/gcc-9", "#!/no/such/interpreter\n");
    put_program(
        dir.path(),
        "usr/bin/cc",
        "#!/bin/sh\nprintf 'cc 1.0\\033[31m\\n'\n",
    );
    let begun = Instant::now();
    assert_eq!(
        toolchain::compilers(&Paths::under(dir.path())),
        ["cc: cc 1.0[31m"]
    );
    // Far above the deadline of one compiler, far below what the hanging one asks for.
    assert!(begun.elapsed().as_secs() < 60);
}

#[test]
fn this_machine_is_described() {
    let host = describe(&Paths::system(), Path::new("/"));
    assert!(
        host.cpu.count >= 1
            && host.memory_bytes > 0
            && host.page_bytes >= 4096
            && !host.kernel.is_empty()
    );
    assert_eq!(host.counters, host.counters_refused.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_hostile_tree_is_described_without_a_panic(
        garbage in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), TREE.len())
    ) {
        let dir = tempfile::tempdir().unwrap();
        TREE.iter().zip(&garbage).for_each(|((name, text), bytes)| {
            // The start of what belongs there, then something else.
            let kept = &text.as_bytes()[..text.len().min(bytes.len())];
            put(dir.path(), name, &[kept, bytes.as_slice()].concat());
        });
        put(dir.path(), "proc/config.gz", &garbage[0]);
        let host = describe(&Paths::under(dir.path()), Path::new("/"));
        prop_assert!(host.before.average.iter().all(|average| average.is_finite()));
    }
}
