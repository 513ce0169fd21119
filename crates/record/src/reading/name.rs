//! The names of readings that verdicts ask for, each a constant of a type of its own: a name that is not here does not
//! compile. `fingerpost-observe` has a test that an observer writes each.

use std::fmt;

/// The name of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(&'static str);

impl Name {
    /// As a record writes it.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// Whether it counts seconds.
    pub fn is_seconds(self) -> bool {
        self.0.ends_with("seconds")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0.to_owned()
    }
}

/// A constant for each name.
macro_rules! names {
    ($($name:ident = $text:literal;)*) => {
        $(#[doc = concat!("`", $text, "`")] pub const $name: Name = Name($text);)*

        /// All of them.
        pub const ALL: &[Name] = &[$($name,)*];
    };
}

names! {
    ACCEPT_BACKLOG = "accept.backlog";
    ACCEPT_QUEUE_MAX = "accept.queue.max";
    AUDIT_RULES = "audit.rules";
    CGROUP_CPU_QUOTA_CPUS = "cgroup.cpu_quota.cpus";
    CGROUP_CPU_WEIGHT = "cgroup.cpu_weight";
    CGROUP_CPU_WEIGHT_VERSION = "cgroup.cpu_weight.version";
    CGROUP_DISK_LIMITS = "cgroup.disk_limits";
    CGROUP_MEMORY_LIMIT_BYTES = "cgroup.memory.limit.bytes";
    CGROUP_MEMORY_USED_BYTES = "cgroup.memory.used.bytes";
    CLIENT_CPU_SECONDS = "client.cpu.seconds";
    CLIENT_THROTTLE_SECONDS = "client.throttle.seconds";
    CONNECTING_MEAN = "connecting.mean";
    CPU_COUNT = "cpu.count";
    CPU_IDLE_SECONDS = "cpu.idle.seconds";
    CPU_INTERRUPTS_SECONDS = "cpu.interrupts.seconds";
    CPU_STEAL_SECONDS = "cpu.steal.seconds";
    CPU_SYSTEM_SECONDS = "cpu.system.seconds";
    CPU_USED_HIGH = "cpu.used.high";
    CPU_USED_LOW = "cpu.used.low";
    CPU_USER_SECONDS = "cpu.user.seconds";
    DISK_BUSY_SECONDS = "disk.busy.seconds";
    DISK_FLUSH_SECONDS = "disk.flush.seconds";
    DISK_FLUSHES = "disk.flushes";
    DISK_WRITTEN_BYTES_S = "disk.written.bytes_s";
    ELAPSED_SECONDS = "elapsed.seconds";
    MACHINE_CPUS = "machine.cpus";
    MACHINE_FORKS = "machine.forks";
    MAPPINGS_ANONYMOUS = "mappings.anonymous";
    MAPPINGS_CUT = "mappings.cut";
    MAPPINGS_FREED_UNTOUCHED = "mappings.freed_untouched";
    MAPPINGS_NEVER_TOUCHED = "mappings.never_touched";
    MAPPINGS_TOUCHED_AFTER_MEDIAN_SECONDS = "mappings.touched.after.median.seconds";
    MAPPINGS_TOUCHED_OTHER_PAGE = "mappings.touched.other_page";
    MAPPINGS_TOUCHED_WITHIN_100US = "mappings.touched.within.100us";
    MEMORY_DIRECT_RECLAIM_PAGES = "memory.direct_reclaim.pages";
    MEMORY_SWAP_IN_PAGES = "memory.swap_in.pages";
    MEMORY_SWAP_OUT_PAGES = "memory.swap_out.pages";
    MEMORY_THP_FAULTS = "memory.thp_faults";
    NET_DROPS = "net.drops";
    NET_IN_MBIT_S = "net.in.mbit_s";
    NET_IN_PEAK_MBIT_S = "net.in.peak.mbit_s";
    NET_LINK_MBIT_S = "net.link.mbit_s";
    NET_OUT_MBIT_S = "net.out.mbit_s";
    NET_OUT_PEAK_BELOW_MBIT_S = "net.out.peak.below.mbit_s";
    NET_OUT_PEAK_MBIT_S = "net.out.peak.mbit_s";
    NET_SHAPERS = "net.shapers";
    OTHER_CPU_SECONDS = "other.cpu.seconds";
    OTHER_DISK_BYTES = "other.disk.bytes";
    PSI_MEMORY_SOME_SECONDS = "psi.memory.some.seconds";
    QUEUE_NETWORK_MEAN = "queue.network.mean";
    SERVER_BLOCKED_CHILD_SECONDS = "server.blocked.child.seconds";
    SERVER_BLOCKED_LOCK_SECONDS = "server.blocked.lock.seconds";
    SERVER_CALL_FCNTL_COUNT = "server.call.fcntl.count";
    SERVER_CALL_FDATASYNC_COUNT = "server.call.fdatasync.count";
    SERVER_CALL_FSYNC_COUNT = "server.call.fsync.count";
    SERVER_CALL_READ_COUNT = "server.call.read.count";
    SERVER_CALLS_IN_WINDOWS = "server.calls.in_windows";
    SERVER_CPU_SECONDS = "server.cpu.seconds";
    SERVER_CPUS_ALLOWED = "server.cpus_allowed";
    SERVER_FAULTS_MAJOR = "server.faults.major";
    SERVER_FAULTS_MINOR = "server.faults.minor";
    SERVER_IDLE_SECONDS = "server.idle.seconds";
    SERVER_INDIRECT_BRANCH_MITIGATED = "server.indirect_branch.mitigated";
    SERVER_KERNEL_SECONDS = "server.kernel.seconds";
    SERVER_NICE = "server.nice";
    SERVER_RUNQUEUE_SECONDS = "server.runqueue.seconds";
    SERVER_SECCOMP_FILTERS = "server.seccomp.filters";
    SERVER_SECCOMP_MODE = "server.seccomp.mode";
    SERVER_STORE_BYPASS_MITIGATED = "server.store_bypass.mitigated";
    SERVER_THP_DISABLED = "server.thp_disabled";
    SERVER_THREAD_KERNEL_SECONDS = "server.thread_kernel.seconds";
    SERVER_THREAD_USER_SECONDS = "server.thread_user.seconds";
    SERVER_THREADS = "server.threads";
    SERVER_TRACED = "server.traced";
    SERVER_USER_SECONDS = "server.user.seconds";
    SERVER_WALL_SECONDS = "server.wall.seconds";
    SERVICE_PROGRAMS = "service.programs";
    STEP_CLIENT_CPUS = "step.client.cpus";
    STEP_CLIENT_ERRORS = "step.client.errors";
    STEP_CLIENT_SATURATED = "step.client.saturated";
    STEP_CLIENTS = "step.clients";
    STEP_ELAPSED_SECONDS = "step.elapsed.seconds";
    STEP_GAP = "step.gap";
    STEP_MEASURED_SECONDS = "step.measured.seconds";
    STEP_MEASURED_TRANSACTIONS = "step.measured.transactions";
    STEP_QUERY_CACHE = "step.query_cache";
    STEP_STALLED_SECONDS = "step.stalled.seconds";
    STEP_TRANSACTIONS = "step.transactions";
    STEP_TURNS_PER_TRANSACTION = "step.turns_per_transaction";
    TCP_BACKLOG_DROPS = "tcp.backlog_drops";
    TCP_DELAYED_ACKS = "tcp.delayed_acks";
    TCP_LISTEN_DROPS = "tcp.listen_drops";
    TCP_LISTEN_OVERFLOWS = "tcp.listen_overflows";
    TCP_REQUEST_QUEUE_DROPS = "tcp.request_queue_drops";
    TCP_RETRANSMITS = "tcp.retransmits";
    THP_ALWAYS = "thp.always";
    THROTTLE_LEVELS_ABOVE = "throttle.levels_above";
    THROTTLE_PERIODS = "throttle.periods";
    THROTTLE_SECONDS = "throttle.seconds";
    THROTTLE_THROTTLED_PERIODS = "throttle.throttled_periods";
    TRACE_WINDOW_SECONDS = "trace.window.seconds";
    TRACING_EVENTS = "tracing.events";
    TRACING_PROGRAMS = "tracing.programs";
    TRACING_TRACERS = "tracing.tracers";
}
