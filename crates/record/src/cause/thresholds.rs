//! Figures that verdicts turn on, by name, each with where it comes from. `labs/tests/recorded` is every plant of
//! `prove` as it was once recorded, both sides of it. Where nothing was measured the source says so: then the figure is
//! a convention, and may be another.

/// A figure that a verdict turns on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// What it is a threshold of.
    pub of: &'static str,
    /// The figure.
    pub value: f64,
    /// Who says so: a source, or what was measured.
    pub source: &'static str,
}

/// A share from which on a cause that its evidence singles out is guilty: the whole interval must lie above it.
pub const GUILTY: Threshold = Threshold {
    of: "share of a request's time, or of the difference",
    value: 0.10,
    source: "a convention: what takes a tenth of the time is the least that is worth a repair; no measurement is \
        behind it",
};
/// A share from which on a cause is suspected.
pub const SUSPECTED: Threshold =
    Threshold { of: GUILTY.of, value: 0.05, source: "a convention: half of what makes guilty" };
/// Above this share of requests' time that could not be followed nobody is guilty.
pub const NOT_FOLLOWED: Threshold = Threshold {
    of: "share of requests' time that could not be followed",
    value: 0.15,
    source: "by its meaning: it could hold half as much again as the least that makes guilty",
};

pub(super) const fn of(of: &'static str, value: f64, source: &'static str) -> Threshold {
    Threshold { of, value, source }
}

/// Counts of a transaction.
pub const MORE_OF_A_COUNT: Threshold = of(
    "times as many of a transaction for a count to have grown",
    1.5,
    "counts of calls that nobody changed varied by up to 1.47, those that were planted came from nothing or grew \
     49-fold (labs/tests/recorded)",
);
/// Throttled time, levels, and what others do.
pub const TWICE: Threshold = of(
    "times as much for throttled time, a level or others' I/O to have grown",
    2.0,
    "a convention: with each plant on record it came from nothing or grew ten thousandfold; no measurement tells where \
     between",
);
/// Waits.
pub const LONGER_WAIT: Threshold = of(
    "times as long for a wait to have grown",
    1.2,
    "a convention, beside the part of the change that it must make; no measurement is behind it",
);
/// What of a change a part must make up for its cause to fit.
pub const GOOD_PART: Threshold = of(
    "part of the change that a place must make",
    GUILTY.value,
    "as for guilty: no cause is accused for a smaller part",
);
/// Code.
pub const SLOWER_CODE: Threshold = of(
    "times as long for code to take longer",
    1.05,
    "code that nobody changed took 0.97 to 1.05 times as long, 0.99 to 1.01 with nothing planted (labs/tests/recorded)",
);
/// Code beside code.
pub const MORE_THAN_KERNEL: Threshold = of(
    "times as much as the kernel that the server's own code must grow",
    1.2,
    "a convention: longer code draws a little of the kernel's work after it; no measurement is behind it",
);
/// How far user code and kernel may grow apart and still be slowed alike.
pub const IN_PROPORTION: Threshold = of(
    "difference of the logarithms by which user code and kernel grow, and grow in proportion",
    0.25,
    "a convention: 28 % apart; no measurement is behind it",
);
/// How much less the load generator's own work may grow than the server's, as a part of its logarithm, and be slowed
/// with it.
pub const CLIENT_TOO: Threshold = of(
    "part of the server's growth (of logarithms) that the load generator's own work must have on a slower CPU",
    0.5,
    "a convention: on one CPU both would have all of it; no measurement is behind it",
);
/// System calls.
pub const AS_MANY_CALLS: Threshold = of(
    "times as many calls that are as many",
    1.2,
    "a convention: below what counts vary by (1.47), so that more calls are not taken for slower ones; no measurement \
     is behind it",
);
/// What a transaction does more of, so that its longer time says nothing of the CPU.
pub const MORE_TO_DO: Threshold = of(
    "times as many faults or calls of a transaction for it to have more to do",
    1.3,
    "a convention: it only keeps the CPU from being accused, so that it is lower than what makes guilty; no \
     measurement is behind it",
);
/// Calls of a transaction below which more of them are little work.
pub const FEW_CALLS: Threshold =
    of("calls of a transaction that are few", 10.0, "rehearsals with nothing to do make 2 to 5 (labs/tests/recorded)");
/// Page faults of a transaction below which more of them are little work.
pub const FEW_FAULTS: Threshold = of(
    "page faults of a transaction that are few",
    5.0,
    "with huge pages 4.0, without 2,070; of servers that keep their memory none (labs/tests/recorded)",
);
/// Steal.
pub const MORE_STOLEN: Threshold = of(
    "share of the wanted CPU time that was taken, more than on the faster side",
    0.03,
    "on record the hypervisor took at most 0.012, on a guest that nobody planted steal in (labs/tests/recorded)",
);
/// CPUs that idle.
pub const CPUS_IDLE: Threshold = of(
    "share of all CPU time that idles",
    0.25,
    "confined to one CPU of two 0.45, beside a process that uses all CPUs 0.00 (labs/tests/recorded)",
);
/// CPUs that are full.
pub const CPUS_FULL: Threshold = of(
    "share of the CPUs that it may use for a server to want more",
    0.7,
    "confined to one CPU it used 1.01; one thread that computes uses half of two (labs/tests/recorded)",
);
/// Others that use the CPUs.
pub const MUCH_OF_CPUS: Threshold = of(
    "share of all CPUs that others use",
    0.1,
    "with the plant 0.51, without at most 0.06, beside a server that syncs (labs/tests/recorded)",
);
/// Others that use next to nothing.
pub const LITTLE_OF_CPUS: Threshold = of(
    "CPUs that others use, and take nothing",
    0.05,
    "without a plant at most 0.02, but for the kernel's own threads beside a server that syncs (labs/tests/recorded)",
);
/// Work that is worth a suspicion.
pub const MUCH_WORK: Threshold = of(
    "share of a request for work that a server is for, or the load generator's, to be suspected",
    0.25,
    "a convention: one run cannot tell whether it is too much; no measurement is behind it",
);
/// Others' I/O beside ours.
pub const OTHERS_BESIDE_OURS: Threshold = of(
    "others' I/O, as a part of the server's, that competes",
    0.5,
    "a convention; with the plant it was 930 times as much (labs/tests/recorded)",
);
/// A disk that is busy enough to be competed for.
pub const DISK_IN_USE: Threshold = of(
    "share of the time in which the disk is busy for it to be competed for",
    0.3,
    "with the plant 0.78; a server that syncs alone makes 0.36 to 0.46, so that it speaks for others only beside their \
     I/O (labs/tests/recorded)",
);
/// A disk that is busy.
pub const DISK_BUSY: Threshold = of(
    "share of the time in which the disk is busy for it to be waited for",
    0.5,
    "a convention: most of the time; servers that sync made 0.36 to 0.46, others beside them 0.78 \
     (labs/tests/recorded)",
);
/// A disk that idles.
pub const DISK_IDLE: Threshold = of(
    "share of the time in which a disk is busy that nobody waits for",
    0.05,
    "servers that sync now and then made at most 0.02 (labs/tests/recorded)",
);
/// Syncs of a transaction.
pub const MANY_SYNCS: Threshold = of(
    "syncs of a transaction that are many",
    1.5,
    "a transaction that is on the disk before it is answered makes 0.92 to 1.00 (labs/tests/recorded)",
);
/// A sync that takes longer.
pub const DEARER_SYNC: Threshold = of(
    "times as long for a sync to have been held back",
    1.5,
    "with the limit 6.7 times; with more syncs on one device 0.5 to 1.2 (labs/tests/recorded)",
);
/// I/O of others that is nobody's matter.
pub const OTHERS_BYTES: Threshold = of(
    "bytes that others move",
    65_536.0,
    "of a pass, whatever its length: in 0.27 s others moved at most 14 kB, 172 kB beside a server that syncs, 0.8 GB \
     with the plant (labs/tests/recorded)",
);
/// Paging.
pub const PAGES_SWAPPED: Threshold =
    of("pages swapped a second", 10.0, "with the plant 100,000, without none (labs/tests/recorded)");
/// Major faults.
pub const MAJOR_FAULTS: Threshold = of(
    "major faults a second, under pressure",
    20.0,
    "with the plant 41,700, without none (labs/tests/recorded); a program's code is first read by some",
);
/// Pressure on memory.
pub const MEMORY_PRESSURE: Threshold = of(
    "share of the time in which some task waits for memory",
    0.02,
    "with the plant 0.29, without none (labs/tests/recorded)",
);
/// Flushes.
pub const FLUSHES_MATTER: Threshold = of(
    "flushes of a transaction that matter whatever its length",
    0.01,
    "a rehearsal that syncs once in fifty transactions makes 0.016 to 0.02, others none (labs/tests/recorded)",
);
/// Passes in which the load generator said that it was the limit.
pub const MOST_PASSES: Threshold = of(
    "share of the passes in which the load generator found itself to be the limit",
    0.5,
    "by its meaning: most of them",
);
/// Others that came.
pub const OTHERS_CAME: Threshold = of(
    "CPUs that others use more for them to have come",
    0.2,
    "a quiet machine's own processes use less than 0.05, a quarter of this",
);
/// The same, as how many times as much.
pub const OTHERS_CAME_TIMES: Threshold = of(
    "times as much CPU time of others for them to have come",
    1.5,
    "a convention: half as much again; no measurement is behind it",
);
/// Work that is the same.
pub const SAME_WORK: Threshold = of(
    "times as long on a CPU for a request that is the same work",
    1.1,
    "a convention: twice what code that nobody changed varied by (1.05); no measurement is behind it",
);
/// Neighbours on both sides.
pub const SAME_NEIGHBOURS: Threshold = of(
    "part of the slower side's CPU time of others that the same neighbours use on the faster one",
    0.6,
    "a convention: most of it; no measurement is behind it",
);
/// Waiting beyond what longer work makes.
pub const BEYOND_WORK: Threshold = of(
    "times as much as its work that a server's threads wait longer for each other",
    2.0,
    "a convention, below a trial of PostgreSQL that waited nine times as long with 1.9 times as much to do \
     (bench/RESULTS.md)",
);
/// A link that is not full.
pub const LINK_FREE: Threshold = of(
    "share of a link's rate at its peak that holds nothing back",
    0.5,
    "a convention: half of it; no measurement is behind it",
);
/// Writes that no disk is held back by.
pub const WRITES_FREE: Threshold = of(
    "bytes a second that hold back no disk",
    1e6,
    "the slowest disk that this project knows of writes fifty times as much in sequence",
);
/// A server that has enough to do.
pub const CPUS_BUSY: Threshold =
    of("share of the CPUs from which on a server has enough to do", 0.8, "a convention; no measurement is behind it");
/// Stops that make what lies outside of followed requests.
pub const MOST_OF_OUTSIDE: Threshold =
    of("part of what lies outside of followed requests that a quota's stops make", 0.5, "by its meaning: most of it");
/// Entering the kernel.
pub const MOST_EXPENSIVE_ENTRY: Threshold = of(
    "seconds that entering and leaving the kernel takes, mitigations with it, without filters",
    5e-6,
    "a convention; no measurement is behind it",
);
/// Calls that a slower entry slows alike.
pub const LIKE_AMOUNTS: Threshold = of(
    "part that other calls have of what a slower entry would cost them",
    0.3,
    "a convention; no measurement is behind it",
);
/// Growth in the server's own code.
pub const MOST_OF_CPU: Threshold = of(
    "part of the growth on the CPUs that is in the server's own code",
    0.8,
    "a convention: code that works longer draws some of the kernel after it; no measurement is behind it",
);
/// Ticks of the server's own code.
pub const TOLD_BY_TICKS: Threshold = of(
    "part of the traced growth of the server's own code that ticks count as user mode",
    0.5,
    "by its meaning: most of it",
);
/// Round trips of a transaction.
pub const MORE_ROUND_TRIPS: Threshold = of(
    "times as many round trips of a transaction that are more",
    1.1,
    "the load generator counts them itself, so that chance has no part in it; a smaller change makes less than what \
     matters",
);
/// Growth by the number of calls.
pub const MOST_BY_NUMBER: Threshold = of(
    "part of the kernel's growth that the number of calls makes, at what each cost before",
    0.5,
    "by its meaning: most of it",
);
/// CPUs that have less to do.
pub const LESS_BUSY: Threshold = of(
    "times as busy as before at most for CPUs that have less to do",
    0.9,
    "a convention: a tenth less; no measurement is behind it",
);
/// A flush that takes as long.
pub const SAME_COST: Threshold = of(
    "times as long for a flush that takes the same time",
    1.2,
    "quantiles of flushes of one device vary by this from pass to pass; with more syncs on one device 0.5 to 1.2 \
     (labs/tests/recorded)",
);
/// Flushes that a device's milliseconds say little of.
pub const FEW_FLUSHES: Threshold = of(
    "flushes whose milliseconds say little",
    30.0,
    "by arithmetic: ten of less than a millisecond each may count as none",
);
/// Others' I/O beside ours.
pub const MORE_BESIDE: Threshold = of(
    "growth of the part of our time in the device in which others' I/O is there too",
    0.2,
    "a convention: a device that is slower for everybody has it unchanged; no measurement is behind it",
);
/// A handshake that is tried again.
pub const HANDSHAKE_AGAIN: Threshold =
    of("seconds after which a handshake is tried again", 1.0, "`TCP_TIMEOUT_INIT`, include/net/tcp.h");
/// An acknowledgement that is delayed.
pub const DELAYED_ACK: Threshold = of(
    "seconds by which an acknowledgement is delayed, at least",
    0.040,
    "`TCP_DELACK_MIN`, include/net/tcp.h, on x86 and ARM",
);
/// What a count makes of a change.
pub const MOST_OF_CHANGE: Threshold =
    of("part of the change that a count makes, times what each costs at least", 0.5, "by its meaning: most of it");
/// Connections that were not let in.
pub const MANY_OVERFLOWS: Threshold = of(
    "overflows of the listen queue of a transaction, at any cost",
    0.001,
    "with the plant 0.0016, each of which took seconds, as a handshake that is refused again waits twice as long \
     (labs/tests/recorded)",
);
/// A segment that is sent again.
pub const SENT_AGAIN: Threshold =
    of("seconds until a segment that was lost is sent again, at least", 0.2, "`TCP_RTO_MIN`, include/net/tcp.h");
/// A load generator that does more.
pub const CLIENT_DOES_MORE: Threshold = of(
    "times as much work of the load generator for it to be its doing",
    1.5,
    "a convention: above what colder caches and more waking make beside a slow server; no measurement is behind it",
);
/// Threads that serve several clients each.
pub const FEW_THREADS: Threshold =
    of("threads a client below which a thread serves several", 0.8, "a convention; no measurement is behind it");
/// A change that nothing explains.
pub const MOST_UNEXPLAINED: Threshold =
    of("unexplained part of a change that may be too small to matter", 0.5, "by its meaning: most of it");
/// Calls that go with commits.
pub const MOST_OF_COMMITS: Threshold =
    of("part of the kernel's growth in calls that commits make on files", 0.5, "by its meaning: most of it");
/// A side that does not flush.
pub const NO_FLUSHES: Threshold =
    of("part of the slower side's flushes that is none", 0.1, "a convention: a tenth; no measurement is behind it");
/// Files' locks.
pub const FILE_LOCKS: Threshold =
    of("calls on files' locks of a transaction of a server that locks its files", 1.0, "by its meaning: one with each");
/// What a neighbour that has the CPU and the disk was held for.
pub const LESSER_PART: Threshold = of(
    "part of what holding a neighbour helped that going before it helps where it is its disk, of the logarithms",
    0.5,
    "by its meaning: the larger part is not the CPU's",
);
/// A change of which most was not followed.
pub const HALF_OUTSIDE: Threshold = of("times what was followed for half of it to lie outside", 2.0, "by arithmetic");
/// Waiting that a quota makes.
pub const MOST_OF_WAITING: Threshold = of(
    "part of what requests waited for a CPU for which a quota stopped the server",
    0.5,
    "by its meaning: most of it",
);
/// A change that makes a difference.
pub const MOST_OF_DIFFERENCE: Threshold = of(
    "part of a difference, by logarithms, that a change makes by itself and is said to make",
    0.8,
    "a convention: what is left is a fifth at most",
);
/// What is left of an uncertain change.
pub const LEAST_LEFT: Threshold = of(
    "part of a change that is left at the lower end of its interval",
    0.1,
    "a convention: a change of nothing has no shares",
);
/// A cause that is named.
pub const WORTH_NAMING: Threshold = of(
    "part of a difference between probes, by logarithms, that a cause must make to be named",
    0.02,
    "a convention: a fiftieth",
);
/// Calls that pay alike.
pub const LIKE_ENTRIES: Threshold = of(
    "times the median, or part of it, within which calls pay a like amount for each entry",
    2.5,
    "a convention: a call that also sleeps, copies or looks up a path pays a little more than the null call; no \
     measurement is behind it",
);
/// Most of several rows.
pub const MOST_OF_ROWS: Threshold =
    of("part of the rows of probes that must move together", 0.6, "by its meaning, and a tenth more: most of them");
/// Counters that are the same.
pub const SAME_COUNTERS: Threshold = of(
    "part by which counters of an operation, or clock rates, may differ and be the same",
    0.02,
    "a convention: a fiftieth; no measurement is behind it",
);
/// Work in which another processor is behind.
pub const PART_OF_WORK: Threshold = of(
    "part of the user-mode probes that must be slower for another processor to be suspected where most are not",
    1.0 / 3.0,
    "a convention: which of two processors is ahead depends on the work; no measurement is behind it",
);
/// A subsystem that is slower.
pub const MOST_OF_GROUP: Threshold = of(
    "part of the rows of a subsystem that must be slower for its cause to be guilty",
    2.0 / 3.0,
    "a convention: two thirds; no measurement is behind it",
);
/// Time that the hypervisor took.
pub const MORE_STOLEN_SECONDS: Threshold = of(
    "seconds by which the hypervisor must have taken more from one run than from the other",
    1.0,
    "a convention: of a run of a minute on one CPU a sixtieth; no measurement is behind it",
);
