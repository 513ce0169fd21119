//! Why the kernel refused a counter, and what would allow it.

use std::io;

use crate::procfs::Paths;
use crate::procfs::process::Status;

/// Numbers of linux/capability.h.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;

/// What decides about the permission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// `kernel.perf_event_paranoid`.
    pub paranoid: Option<i32>,
    /// Whether the process holds CAP_PERFMON or CAP_SYS_ADMIN.
    pub capable: bool,
    /// Whether a seccomp filter is in force.
    pub filtered: bool,
    /// Whether the kernel runs under a hypervisor.
    pub virtual_machine: bool,
}

impl Circumstances {
    /// Those of the calling process.
    pub fn read(paths: &Paths) -> Self {
        let status = Status::parse(&paths.read("proc/self/status").unwrap_or_default());
        let cpuinfo = paths.read("proc/cpuinfo").unwrap_or_default();
        let has_hypervisor = |l: &str| {
            l.starts_with("flags") && l.split_ascii_whitespace().any(|f| f == "hypervisor")
        };
        Self {
            paranoid: paths.number("proc/sys/kernel/perf_event_paranoid"),
            capable: status.has_capability(CAP_SYS_ADMIN) || status.has_capability(CAP_PERFMON),
            filtered: status.seccomp == Some(2),
            virtual_machine: cpuinfo.lines().any(has_hypervisor),
        }
    }
}

/// Why counters cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {remedy}")]
pub struct Refusal {
    /// What stands in the way.
    pub reason: String,
    /// The exact setting that would allow it.
    pub remedy: String,
}

impl Refusal {
    fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            remedy: remedy.into(),
        }
    }

    /// Of what the kernel said to the calling process.
    pub(super) fn of(error: &io::Error, wants_kernel: bool) -> Self {
        Self::explain(
            error.raw_os_error().unwrap_or(0),
            wants_kernel,
            &Circumstances::read(&Paths::system()),
        )
    }

    /// From the kernel's error number.
    ///
    /// The kernel answers EACCES when `perf_event_paranoid` forbids it (`perf_allow_kernel` and its neighbours in
    /// kernel/events/core.c); a container's seccomp filter answers EPERM, and so does lockdown.
    pub(super) fn explain(errno: i32, wants_kernel: bool, on: &Circumstances) -> Self {
        let paranoid = on
            .paranoid
            .map_or("not readable".to_owned(), |level| level.to_string());
        // Up to 2 everybody may count user code, up to 1 the kernel as well; Debian and Ubuntu add levels 3 and 4,
        // which forbid all.
        let enough = if wants_kernel { 1 } else { 2 };
        match errno {
            libc::EACCES | libc::EPERM if on.filtered && (errno == libc::EPERM || on.capable) => {
                Self::new(
                    "a seccomp filter forbids perf_event_open",
                    "start the container with --security-opt seccomp=unconfined, or with --cap-add PERFMON where its \
                 filter follows capabilities",
                )
            }
            libc::EACCES | libc::EPERM if on.capable => Self::new(
                format!(
                    "the kernel forbids perf_event_open in spite of CAP_PERFMON ({})",
                    error_text(errno)
                ),
                "look for lockdown in /sys/kernel/security/lockdown (boot with lockdown=none) and for a security \
                 module's denial in the kernel log",
            ),
            libc::EACCES | libc::EPERM => Self::new(
                format!(
                    "kernel.perf_event_paranoid is {paranoid}, and this user has no CAP_PERFMON"
                ),
                format!(
                    "as root: sysctl kernel.perf_event_paranoid={enough}, or setcap cap_perfmon+ep on the binary"
                ),
            ),
            libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV if on.virtual_machine => Self::new(
                "this virtual machine has no counters",
                "give the guest a virtual PMU (QEMU/KVM: -cpu host,pmu=on; libvirt: <pmu state='on'/>; VMware: \
                 vpmc.enable=TRUE; a cloud: a bare-metal or whole-socket size)",
            ),
            libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV => Self::new(
                "the kernel knows no hardware counters of this CPU",
                "boot a kernel that supports this CPU's PMU, and switch the counters on in the firmware",
            ),
            libc::ENOSYS if on.filtered => Self::new(
                "perf_event_open is not there: a seccomp filter hides it, or the kernel has none",
                "start the container with --security-opt seccomp=unconfined; else boot a kernel with \
                 CONFIG_PERF_EVENTS=y",
            ),
            libc::ENOSYS => Self::new(
                "the kernel has no perf_event_open",
                "boot a kernel with CONFIG_PERF_EVENTS=y",
            ),
            libc::EBUSY => Self::new(
                "another user holds the hardware counters",
                "stop other profilers, and free the watchdog's counter as root: sysctl kernel.nmi_watchdog=0",
            ),
            libc::EMFILE | libc::ENFILE => Self::new(
                "no file descriptor is free for a counter",
                "raise the limit: ulimit -n 4096",
            ),
            other => Self::new(
                format!("perf_event_open failed: {}", error_text(other)),
                "compare with `perf stat -e instructions true` on this machine",
            ),
        }
    }

    /// Counters that open and never move.
    pub(super) fn silent(on: &Circumstances) -> Self {
        let remedy = if on.virtual_machine {
            "switch the guest's virtual PMU on in the hypervisor, or off altogether"
        } else {
            "stop other users of the counters, and look in the kernel log for the PMU's messages"
        };
        Self::new("hardware counters can be opened but do not count", remedy)
    }
}

fn error_text(errno: i32) -> String {
    io::Error::from_raw_os_error(errno).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_names_the_setting_that_ends_it() {
        let plain = Circumstances {
            paranoid: Some(3),
            ..Default::default()
        };
        let container = Circumstances {
            filtered: true,
            ..plain
        };
        let root = Circumstances {
            capable: true,
            ..plain
        };
        let guest = Circumstances {
            virtual_machine: true,
            ..root
        };
        let cases = [
            (
                libc::EACCES,
                false,
                plain,
                "is 3",
                "sysctl kernel.perf_event_paranoid=2",
            ),
            (
                libc::EACCES,
                true,
                plain,
                "CAP_PERFMON",
                "sysctl kernel.perf_event_paranoid=1",
            ),
            (
                libc::EACCES,
                false,
                container,
                "paranoid",
                "perf_event_paranoid=2",
            ),
            (
                libc::EPERM,
                false,
                container,
                "seccomp",
                "seccomp=unconfined",
            ),
            (libc::EPERM, false, root, "in spite of", "lockdown"),
            (libc::ENOENT, false, guest, "virtual machine", "pmu=on"),
            (libc::ENOENT, false, root, "this CPU", "firmware"),
            (
                libc::ENOSYS,
                false,
                plain,
                "no perf_event_open",
                "CONFIG_PERF_EVENTS",
            ),
            (libc::EBUSY, false, plain, "another user", "nmi_watchdog"),
            (libc::EMFILE, false, plain, "descriptor", "ulimit"),
            (libc::E2BIG, false, plain, "failed", "perf stat"),
        ];
        for (errno, kernel, on, reason, remedy) in cases {
            let refusal = Refusal::explain(errno, kernel, &on);
            assert!(refusal.reason.contains(reason), "{errno}: {refusal}");
            assert!(refusal.remedy.contains(remedy), "{errno}: {refusal}");
        }
    }

    #[test]
    fn circumstances_come_from_text() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::create_dir_all(dir.path().join("proc/sys/kernel")).unwrap();
        std::fs::write(
            dir.path().join("proc/self/status"),
            "CapEff:\t0000004000000000\nSeccomp:\t2\n",
        )
        .unwrap();
        std::fs::write(
            dir.path().join("proc/sys/kernel/perf_event_paranoid"),
            "-1\n",
        )
        .unwrap();
        std::fs::write(
            dir.path().join("proc/cpuinfo"),
            "flags\t\t: fpu hypervisor\n",
        )
        .unwrap();
        let expected = Circumstances {
            paranoid: Some(-1),
            capable: true,
            filtered: true,
            virtual_machine: true,
        };
        assert_eq!(Circumstances::read(&Paths::under(dir.path())), expected);
        assert_eq!(
            Circumstances::read(&Paths::under("/no/such/tree")),
            Circumstances::default()
        );
    }
}
