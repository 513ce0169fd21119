//! One process or thread: `/proc/PID/stat`, `status`, `schedstat`.

use super::memory::kilobytes;

/// Flag of the kernel's own threads (`include/linux/sched.h`); programs see it in `/proc` since 2.6.
const PF_KTHREAD: u64 = 0x0020_0000;

/// `/proc/PID/stat` or `/proc/PID/task/TID/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The process's or thread's number.
    pub pid: i32,
    /// Its name, at most 15 characters, any of them.
    pub name: String,
    /// `R`, `S`, `D`, `Z`, `T` …
    pub state: char,
    /// Its parent.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// Its session.
    pub session: i32,
    /// A thread of the kernel's own (`PF_KTHREAD` of its flags).
    pub kernel: bool,
    /// Faults that needed no I/O.
    pub minor_faults: u64,
    /// Faults that needed I/O.
    pub major_faults: u64,
    /// Ticks in user mode.
    pub user: u64,
    /// Ticks in the kernel.
    pub system: u64,
    /// The same for children that have ended and were waited for, in user code.
    pub children_user: u64,
    /// And in the kernel.
    pub children_system: u64,
    /// Nice value.
    pub nice: i32,
    /// Ticks after boot when it started: with the pid, it tells a process from its pid's next owner.
    pub started: u64,
    /// The CPU that it ran on last.
    pub cpu: Option<usize>,
}

impl Stat {
    /// Parses the file's one line.
    pub fn parse(text: &str) -> Option<Self> {
        // The name may hold blanks and parentheses; nothing after it does.
        let (pid, rest) = text.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // proc(5) numbers the fields from 1, and the state, the first after the name, is field 3.
        let field = |number: usize| fields.get(number - 3).copied();
        let number = |at: usize| field(at)?.parse::<u64>().ok();
        Some(Self {
            pid: pid.trim().parse().ok()?,
            name: name.to_owned(),
            state: field(3)?.chars().next()?,
            parent: field(4)?.parse().ok()?,
            group: field(5)?.parse().ok()?,
            session: field(6)?.parse().ok()?,
            kernel: number(9)? & PF_KTHREAD != 0,
            minor_faults: number(10)?,
            major_faults: number(12)?,
            user: number(14)?,
            system: number(15)?,
            children_user: field(16)?.parse::<i64>().ok()?.max(0) as u64,
            children_system: field(17)?.parse::<i64>().ok()?.max(0) as u64,
            nice: field(19)?.parse().ok()?,
            started: number(22)?,
            cpu: number(39).map(|n| n as usize),
        })
    }
}

/// `/proc/PID/status`, as far as we use it. What the kernel does not write is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Real, effective, saved and file system user.
    pub users: Option<[u32; 4]>,
    /// Effective user.
    pub effective_user: Option<u32>,
    /// Its number in the innermost of its name spaces of processes.
    pub inner_pid: Option<i32>,
    /// Process that traces it; 0 for none.
    pub tracer: Option<i32>,
    /// Resident memory in bytes.
    pub resident: Option<u64>,
    /// Memory in swap.
    pub swapped: Option<u64>,
    /// CPUs that it may use, as a list.
    pub cpus_allowed: Option<String>,
    /// Effective capabilities, one bit each.
    pub capabilities: Option<u64>,
    /// Seccomp mode: 0 none, 1 strict, 2 filter.
    pub seccomp: Option<u32>,
    /// Seccomp filters.
    pub seccomp_filters: Option<u32>,
    /// Switches because it waited.
    pub voluntary_switches: Option<u64>,
    /// Switches because its time was up or another task came first.
    pub involuntary_switches: Option<u64>,
    /// `Speculation_Store_Bypass`: the mitigation in force for this process.
    pub store_bypass: Option<String>,
    /// `SpeculationIndirectBranch`: the mitigation in force for this process.
    pub indirect_branch: Option<String>,
    /// Whether transparent huge pages are allowed to it.
    pub thp_enabled: Option<bool>,
}

impl Status {
    /// Parses the file; fields that are missing or malformed are `None`.
    pub fn parse(text: &str) -> Self {
        let mut status = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            match name {
                "Uid" => {
                    let mut users = value.split_ascii_whitespace().map(|v| v.parse().ok());
                    let mut next = || users.next().flatten();
                    status.users = (|| Some([next()?, next()?, next()?, next()?]))();
                    status.effective_user = status.users.map(|users| users[1]);
                }
                "TracerPid" => status.tracer = value.parse().ok(),
                "VmRSS" => status.resident = kilobytes(value),
                "VmSwap" => status.swapped = kilobytes(value),
                "Cpus_allowed_list" => status.cpus_allowed = Some(value.to_owned()),
                "CapEff" => status.capabilities = u64::from_str_radix(value, 16).ok(),
                "NSpid" => {
                    status.inner_pid = value
                        .split_ascii_whitespace()
                        .last()
                        .and_then(|v| v.parse().ok())
                }
                "Seccomp" => status.seccomp = value.parse().ok(),
                "Seccomp_filters" => status.seccomp_filters = value.parse().ok(),
                "voluntary_ctxt_switches" => status.voluntary_switches = value.parse().ok(),
                "nonvoluntary_ctxt_switches" => status.involuntary_switches = value.parse().ok(),
                "Speculation_Store_Bypass" => status.store_bypass = Some(value.to_owned()),
                "SpeculationIndirectBranch" => status.indirect_branch = Some(value.to_owned()),
                "THP_enabled" => status.thp_enabled = value.parse::<u8>().ok().map(|n| n != 0),
                _ => {}
            }
        }
        status
    }

    /// Whether an effective capability is held (numbers of `linux/capability.h`).
    pub fn has_capability(&self, number: u32) -> bool {
        self.capabilities
            .is_some_and(|set| set.checked_shr(number).unwrap_or(0) & 1 == 1)
    }
}

/// Whether a process is a user's in every respect. The owner of `/proc/PID` does not say that: it is root's where the
/// process has asked not to be looked at (`PR_SET_DUMPABLE`).
pub fn owned_by(pid: i32, user: u32) -> bool {
    let status = super::bounded::text(format!("/proc/{pid}/status"));
    status.is_ok_and(|text| Status::parse(&text).users == Some([user; 4]))
}

/// `/proc/PID/schedstat`: `None` on kernels without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedstat {
    /// Nanoseconds on a CPU.
    pub running_ns: u64,
    /// Nanoseconds runnable and waiting for a CPU.
    pub waiting_ns: u64,
    /// Times that it was given a CPU.
    pub slices: u64,
}

impl Schedstat {
    /// Parses the file's one line.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text
            .split_ascii_whitespace()
            .map(|field| field.parse().ok());
        Some(Self {
            running_ns: fields.next()??,
            waiting_ns: fields.next()??,
            slices: fields.next()??,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{STAT, STATUS};
    use super::*;

    #[test]
    fn stat_of_a_process_with_an_awkward_name() {
        let stat = Stat::parse(STAT).unwrap();
        assert_eq!(
            (stat.pid, stat.name.as_str(), stat.state, stat.parent),
            (4242, "a) b (c", 'R', 1)
        );
        assert_eq!(
            (stat.minor_faults, stat.major_faults, stat.user, stat.system),
            (120, 3, 55, 66)
        );
        assert_eq!((stat.nice, stat.started, stat.cpu), (-5, 123456, Some(1)));
        let kernel = Stat::parse(&STAT.replace(" 4194304 ", " 2129984 ")).unwrap();
        assert!(
            kernel.kernel && !stat.kernel,
            "kswapd0's flags, and a program's"
        );
        assert_eq!(Stat::parse("1 (x) R 1 1"), None);
        assert_eq!(Stat::parse(") (1"), None);
    }

    #[test]
    fn status() {
        let status = Status::parse(STATUS);
        assert_eq!(status.inner_pid, Some(5));
        assert_eq!(
            (
                status.effective_user,
                status.seccomp,
                status.seccomp_filters
            ),
            (Some(1001), Some(2), Some(4))
        );
        assert_eq!(status.resident, Some(512 << 10));
        assert_eq!(
            (status.voluntary_switches, status.involuntary_switches),
            (Some(7), Some(9))
        );
        assert_eq!(status.cpus_allowed.as_deref(), Some("0-1,4"));
        assert!(
            status.has_capability(38) && !status.has_capability(63) && !status.has_capability(200)
        );
        assert_eq!(Status::parse("CapEff:\txyz\nSeccomp:\n"), Status::default());
    }

    #[test]
    fn schedstat() {
        assert_eq!(
            Schedstat::parse("10 20 3\n"),
            Some(Schedstat {
                running_ns: 10,
                waiting_ns: 20,
                slices: 3
            })
        );
        assert_eq!(Schedstat::parse("10 20"), None);
        assert_eq!(Schedstat::parse("10 x 3"), None);
    }
}
