//! Figures that verdicts turn on, by name, each with where it comes from. `labs/tests/recorded` is every plant of `prove` as it was once
//! recorded, both sides of it. Where nothing was measured the source says so: then the figure is a convention, and may be another.

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
    source: "a convention: what takes a tenth of the time is the least that is worth a repair; no measurement is behind it",
};
/// A share from which on a cause is suspected.
pub const SUSPECTED: Threshold = Threshold { of: GUILTY.of, value: 0.05, source: "a convention: half of what makes guilty" };
/// Above this share of requests' time that could not be followed nobody is guilty.
pub const NOT_FOLLOWED: Threshold = Threshold {
    of: "share of requests' time that could not be followed",
    value: 0.15,
    source: "by its meaning: it could hold half as much again as the least that makes guilty",
};

const fn of(of: &'static str, value: f64, source: &'static str) -> Threshold {
    Threshold { of, value, source }
}

/// Counts of a transaction.
pub const MORE_OF_A_COUNT: Threshold = of(
    "times as many of a transaction for a count to have grown",
    1.5,
    "counts of calls that nobody changed varied by up to 1.47, those that were planted came from nothing or grew 49-fold (labs/tests/recorded)",
);
/// Throttled time, levels, and what others do.
pub const TWICE: Threshold = of(
    "times as much for throttled time, a level or others' I/O to have grown",
    2.0,
    "a convention: with each plant on record it came from nothing or grew ten thousandfold; no measurement tells where between",
);
/// Waits.
pub const LONGER_WAIT: Threshold = of(
    "times as long for a wait to have grown",
    1.2,
    "a convention, beside the part of the change that it must make; no measurement is behind it",
);
/// What of a change a part must make up for its cause to fit.
pub const GOOD_PART: Threshold =
    of("part of the change that a place must make", GUILTY.value, "as for guilty: no cause is accused for a smaller part");
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
/// How much less the load generator's own work may grow than the server's, as a part of its logarithm, and be slowed with it.
pub const CLIENT_TOO: Threshold = of(
    "part of the server's growth (of logarithms) that the load generator's own work must have on a slower CPU",
    0.5,
    "a convention: on one CPU both would have all of it; no measurement is behind it",
);
/// System calls.
pub const AS_MANY_CALLS: Threshold = of(
    "times as many calls that are as many",
    1.2,
    "a convention: below what counts vary by (1.47), so that more calls are not taken for slower ones; no measurement is behind it",
);
/// What a transaction does more of, so that its longer time says nothing of the CPU.
pub const MORE_TO_DO: Threshold = of(
    "times as many faults or calls of a transaction for it to have more to do",
    1.3,
    "a convention: it only keeps the CPU from being accused, so that it is lower than what makes guilty; no measurement is behind it",
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
    "with the plant 0.78; a server that syncs alone makes 0.36 to 0.46, so that it speaks for others only beside their I/O (labs/tests/recorded)",
);
/// A disk that is busy.
pub const DISK_BUSY: Threshold = of(
    "share of the time in which the disk is busy for it to be waited for",
    0.5,
    "a convention: most of the time; servers that sync made 0.36 to 0.46, others beside them 0.78 (labs/tests/recorded)",
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
    "of a pass, whatever its length: in 0.27 s others moved at most 14 kB, 172 kB beside a server that syncs, 0.8 GB with the plant (labs/tests/recorded)",
);
/// Paging.
pub const PAGES_SWAPPED: Threshold = of("pages swapped a second", 10.0, "with the plant 100,000, without none (labs/tests/recorded)");
/// Major faults.
pub const MAJOR_FAULTS: Threshold = of(
    "major faults a second, under pressure",
    20.0,
    "with the plant 41,700, without none (labs/tests/recorded); a program's code is first read by some",
);
/// Pressure on memory.
pub const MEMORY_PRESSURE: Threshold =
    of("share of the time in which some task waits for memory", 0.02, "with the plant 0.29, without none (labs/tests/recorded)");
/// Flushes.
pub const FLUSHES_MATTER: Threshold = of(
    "flushes of a transaction that matter whatever its length",
    0.01,
    "a rehearsal that syncs once in fifty transactions makes 0.016 to 0.02, others none (labs/tests/recorded)",
);
/// Passes in which the load generator said that it was the limit.
pub const MOST_PASSES: Threshold =
    of("share of the passes in which the load generator found itself to be the limit", 0.5, "by its meaning: most of them");
