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

const fn of(of: &'static str, value: f64, source: &'static str) -> Threshold {
    Threshold { of, value, source }
}

/// A constant for each figure, which its words document.
macro_rules! thresholds {
    ($($(#[$more:meta])* $name:ident = $value:expr, $of:literal, $source:literal;)*) => {
        $(#[doc = $of] $(#[$more])* pub const $name: Threshold = of($of, $value, $source);)*
    };
}

// Name, figure, what it is a threshold of, and who says so.
thresholds! {
    /// What a cause that its evidence singles out is confirmed from: the whole interval must lie above it.
    CONFIRMED = 0.10, "share of a request's time, or of the difference",
        "a convention: what takes a tenth of the time is the least that is worth a repair; no measurement is behind it";
    /// What a cause is likely from.
    LIKELY = 0.05, "share of a request's time, or of the difference", "a convention: half of what confirms";
    /// Above it nothing is confirmed.
    NOT_FOLLOWED = 0.15, "share of requests' time that could not be followed",
        "by its meaning: it could hold half as much again as the least that confirms";
    MORE_OF_A_COUNT = 1.5, "times as many of a transaction for a count to have grown",
        "counts of calls that nobody changed varied by up to 1.47, those that were planted came from nothing or grew \
         49-fold (labs/tests/recorded)";
    TWICE = 2.0, "times as much for throttled time, a level or others' I/O to have grown",
        "a convention: with each plant on record it came from nothing or grew ten thousandfold; no measurement tells \
         where between";
    LONGER_WAIT = 1.2, "times as long for a wait to have grown",
        "a convention, beside the part of the change that it must make; no measurement is behind it";
    GOOD_PART = CONFIRMED.value, "part of the change that a place must make",
        "as for confirmed: no cause is accused for a smaller part";
    SLOWER_CODE = 1.05, "times as long for code to take longer",
        "code that nobody changed took 0.97 to 1.05 times as long, 0.99 to 1.01 with nothing planted \
         (labs/tests/recorded)";
    MORE_THAN_KERNEL = 1.2, "times as much as the kernel that the server's own code must grow",
        "a convention: longer code draws a little of the kernel's work after it; no measurement is behind it";
    IN_PROPORTION = 0.25, "difference of the logarithms by which user code and kernel grow, and grow in proportion",
        "a convention: 28 % apart; no measurement is behind it";
    CLIENT_TOO = 0.5,
        "part of the server's growth (of logarithms) that the load generator's own work must have on a slower CPU",
        "a convention: on one CPU both would have all of it; no measurement is behind it";
    AS_MANY_CALLS = 1.2, "times as many calls that are as many",
        "a convention: below what counts vary by (1.47), so that more calls are not taken for slower ones; no \
         measurement is behind it";
    /// What a transaction does more of, so that its longer time says nothing of the CPU.
    MORE_TO_DO = 1.3, "times as many faults or calls of a transaction for it to have more to do",
        "a convention: it only keeps the CPU from being accused, so that it is lower than what confirms; no \
         measurement is behind it";
    /// Calls of a transaction below which more of them are little work.
    FEW_CALLS = 10.0, "calls of a transaction that are few",
        "rehearsals with nothing to do make 2 to 5 (labs/tests/recorded)";
    /// Page faults of a transaction below which more of them are little work.
    FEW_FAULTS = 5.0, "page faults of a transaction that are few",
        "with huge pages 4.0, without 2,070; of servers that keep their memory none (labs/tests/recorded)";
    MORE_STOLEN = 0.03, "share of the wanted CPU time that was taken, more than on the faster side",
        "on record the hypervisor took at most 0.012, on a guest that nobody planted steal in (labs/tests/recorded)";
    CPUS_IDLE = 0.25, "share of all CPU time that idles",
        "confined to one CPU of two 0.45, beside a process that uses all CPUs 0.00 (labs/tests/recorded)";
    CPUS_FULL = 0.7, "share of the CPUs that it may use for a server to want more",
        "confined to one CPU it used 1.01; one thread that computes uses half of two (labs/tests/recorded)";
    MUCH_OF_CPUS = 0.1, "share of all CPUs that others use",
        "with the plant 0.51, without at most 0.06, beside a server that syncs (labs/tests/recorded)";
    LITTLE_OF_CPUS = 0.05, "CPUs that others use, and take nothing",
        "without a plant at most 0.02, but for the kernel's own threads beside a server that syncs \
         (labs/tests/recorded)";
    MUCH_WORK = 0.25, "share of a request for work that a server is for, or the load generator's, to be likely",
        "a convention: one run cannot tell whether it is too much; no measurement is behind it";
    OTHERS_BESIDE_OURS = 0.5, "others' I/O, as a part of the server's, that competes",
        "a convention; with the plant it was 930 times as much (labs/tests/recorded)";
    DISK_IN_USE = 0.3, "share of the time in which the disk is busy for it to be competed for",
        "with the plant 0.78; a server that syncs alone makes 0.36 to 0.46, so that it speaks for others only beside \
         their I/O (labs/tests/recorded)";
    DISK_BUSY = 0.5, "share of the time in which the disk is busy for it to be waited for",
        "a convention: most of the time; servers that sync made 0.36 to 0.46, others beside them 0.78 \
         (labs/tests/recorded)";
    DISK_IDLE = 0.05, "share of the time in which a disk is busy that nobody waits for",
        "servers that sync now and then made at most 0.02 (labs/tests/recorded)";
    MANY_SYNCS = 1.5, "syncs of a transaction that are many",
        "a transaction that is on the disk before it is answered makes 0.92 to 1.00 (labs/tests/recorded)";
    DEARER_SYNC = 1.5, "times as long for a sync to have been held back",
        "with the limit 6.7 times; with more syncs on one device 0.5 to 1.2 (labs/tests/recorded)";
    /// I/O of others that is nobody's matter.
    OTHERS_BYTES = 65_536.0, "bytes that others move",
        "of a pass, whatever its length: in 0.27 s others moved at most 14 kB, 172 kB beside a server that syncs, 0.8 \
         GB with the plant (labs/tests/recorded)";
    PAGES_SWAPPED = 10.0, "pages swapped a second",
        "with the plant 100,000, without none (labs/tests/recorded)";
    MAJOR_FAULTS = 20.0, "major faults a second, under pressure",
        "with the plant 41,700, without none (labs/tests/recorded); a program's code is first read by some";
    MEMORY_PRESSURE = 0.02, "share of the time in which some task waits for memory",
        "with the plant 0.29, without none (labs/tests/recorded)";
    FLUSHES_MATTER = 0.01, "flushes of a transaction that matter whatever its length",
        "a rehearsal that syncs once in fifty transactions makes 0.016 to 0.02, others none (labs/tests/recorded)";
    MOST_PASSES = 0.5, "share of the passes in which the load generator found itself to be the limit",
        "by its meaning: most of them";
    OTHERS_CAME = 0.2, "CPUs that others use more for them to have come",
        "a quiet machine's own processes use less than 0.05, a quarter of this";
    OTHERS_CAME_TIMES = 1.5, "times as much CPU time of others for them to have come",
        "a convention: half as much again; no measurement is behind it";
    SAME_WORK = 1.1, "times as long on a CPU for a request that is the same work",
        "a convention: twice what code that nobody changed varied by (1.05); no measurement is behind it";
    SAME_NEIGHBOURS = 0.6,
        "part of the slower side's CPU time of others that the same neighbours use on the faster one",
        "a convention: most of it; no measurement is behind it";
    BEYOND_WORK = 2.0, "times as much as its work that a server's threads wait longer for each other",
        "a convention, below a trial of PostgreSQL that waited nine times as long with 1.9 times as much to do \
         (bench/RESULTS.md)";
    LINK_FREE = 0.5, "share of a link's rate at its peak that holds nothing back",
        "a convention: half of it; no measurement is behind it";
    WRITES_FREE = 1e6, "bytes a second that hold back no disk",
        "the slowest disk that this project knows of writes fifty times as much in sequence";
    CPUS_BUSY = 0.8, "share of the CPUs from which on a server has enough to do",
        "a convention; no measurement is behind it";
    MOST_OF_OUTSIDE = 0.5, "part of what lies outside of followed requests that a quota's stops make",
        "by its meaning: most of it";
    MOST_EXPENSIVE_ENTRY = 5e-6,
        "seconds that entering and leaving the kernel takes, mitigations with it, without filters",
        "a convention; no measurement is behind it";
    LIKE_AMOUNTS = 0.3, "part that other calls have of what a slower entry would cost them",
        "a convention; no measurement is behind it";
    MOST_OF_CPU = 0.8, "part of the growth on the CPUs that is in the server's own code",
        "a convention: code that works longer draws some of the kernel after it; no measurement is behind it";
    TOLD_BY_TICKS = 0.5, "part of the traced growth of the server's own code that ticks count as user mode",
        "by its meaning: most of it";
    MORE_ROUND_TRIPS = 1.1, "times as many round trips of a transaction that are more",
        "the load generator counts them itself, so that chance has no part in it; a smaller change makes less than \
         what matters";
    MOST_BY_NUMBER = 0.5, "part of the kernel's growth that the number of calls makes, at what each cost before",
        "by its meaning: most of it";
    LESS_BUSY = 0.9, "times as busy as before at most for CPUs that have less to do",
        "a convention: a tenth less; no measurement is behind it";
    SAME_COST = 1.2, "times as long for a flush that takes the same time",
        "quantiles of flushes of one device vary by this from pass to pass; with more syncs on one device 0.5 to 1.2 \
         (labs/tests/recorded)";
    FEW_FLUSHES = 30.0, "flushes whose milliseconds say little",
        "by arithmetic: ten of less than a millisecond each may count as none";
    MORE_BESIDE = 0.2, "growth of the part of our time in the device in which others' I/O is there too",
        "a convention: a device that is slower for everybody has it unchanged; no measurement is behind it";
    HANDSHAKE_AGAIN = 1.0, "seconds after which a handshake is tried again",
        "`TCP_TIMEOUT_INIT`, include/net/tcp.h";
    DELAYED_ACK = 0.040, "seconds by which an acknowledgement is delayed, at least",
        "`TCP_DELACK_MIN`, include/net/tcp.h, on x86 and ARM";
    MOST_OF_CHANGE = 0.5, "part of the change that a count makes, times what each costs at least",
        "by its meaning: most of it";
    MANY_OVERFLOWS = 0.001, "overflows of the listen queue of a transaction, at any cost",
        "with the plant 0.0016, each of which took seconds, as a handshake that is refused again waits twice as long \
         (labs/tests/recorded)";
    SENT_AGAIN = 0.2, "seconds until a segment that was lost is sent again, at least",
        "`TCP_RTO_MIN`, include/net/tcp.h";
    CLIENT_DOES_MORE = 1.5, "times as much work of the load generator for it to be its doing",
        "a convention: above what colder caches and more waking make beside a slow server; no measurement is behind it";
    FEW_THREADS = 0.8, "threads a client below which a thread serves several",
        "a convention; no measurement is behind it";
    MOST_UNEXPLAINED = 0.5, "unexplained part of a change that may be too small to matter",
        "by its meaning: most of it";
    MOST_OF_COMMITS = 0.5, "part of the kernel's growth in calls that commits make on files",
        "by its meaning: most of it";
    NO_FLUSHES = 0.1, "part of the slower side's flushes that is none",
        "a convention: a tenth; no measurement is behind it";
    FILE_LOCKS = 1.0, "calls on files' locks of a transaction of a server that locks its files",
        "by its meaning: one with each";
    /// What a neighbour that has the CPU and the disk was held for.
    LESSER_PART = 0.5,
        "part of what holding a neighbour helped that going before it helps where it is its disk, of the logarithms",
        "by its meaning: the larger part is not the CPU's";
    HALF_OUTSIDE = 2.0, "times what was followed for half of it to lie outside",
        "by arithmetic";
    MOST_OF_WAITING = 0.5, "part of what requests waited for a CPU for which a quota stopped the server",
        "by its meaning: most of it";
    MOST_OF_DIFFERENCE = 0.8, "part of a difference, by logarithms, that a change makes by itself and is said to make",
        "a convention: what is left is a fifth at most";
    LEAST_LEFT = 0.1, "part of a change that is left at the lower end of its interval",
        "a convention: a change of nothing has no shares";
    WORTH_NAMING = 0.02, "part of a difference between probes, by logarithms, that a cause must make to be named",
        "a convention: a fiftieth";
    LIKE_ENTRIES = 2.5, "times the median, or part of it, within which calls pay a like amount for each entry",
        "a convention: a call that also sleeps, copies or looks up a path pays a little more than the null call; no \
         measurement is behind it";
    MOST_OF_ROWS = 0.6, "part of the rows of probes that must move together",
        "by its meaning, and a tenth more: most of them";
    SAME_COUNTERS = 0.02, "part by which counters of an operation, or clock rates, may differ and be the same",
        "a convention: a fiftieth; no measurement is behind it";
    PART_OF_WORK = 1.0 / 3.0,
        "part of the user-mode probes that must be slower for another processor to be likely where most are not",
        "a convention: which of two processors is ahead depends on the work; no measurement is behind it";
    MOST_OF_GROUP = 2.0 / 3.0, "part of the rows of a subsystem that must be slower for its cause to be confirmed",
        "a convention: two thirds; no measurement is behind it";
    MORE_STOLEN_SECONDS = 1.0, "seconds by which the hypervisor must have taken more from one run than from the other",
        "a convention: of a run of a minute on one CPU a sixtieth; no measurement is behind it";
    SEGMENTS_AGAIN = 0.01, "segments sent again of transactions",
        "three times what a full listen queue alone makes (0.003); without a plant none is sent again \
         (labs/tests/recorded)";
    OTHERS_RATE = 1e6, "others' I/O in bytes a second",
        "without this plant others did at most 51 kB/s, beside a server that syncs 640 kB/s, with it 3 GB/s \
         (labs/tests/recorded)";
    MORE_CALLS = 1.5, "times as many calls",
        "counts come from windows: two sides of one server that made the same calls told 1.47 times as many \
         (labs/tests/recorded, control.memory_unused)";
    SERVER_BUSY = 0.5, "share of its CPUs that the server uses",
        "one thread that computes uses 0.88 to 0.99 of a CPU, which is half of two, and waits for none \
         (labs/tests/recorded)";
    LOW_WEIGHT = 0.9, "weight, of the usual",
        "kernel documentation, cgroup-v2: the usual weight is 100, of version 1 1024; no step of nice is smaller than \
         20 %";
    PERIODS_CUT = 0.05, "share of the quota's periods that it cuts short",
        "a quota that held cut all of its periods short (labs/tests/recorded); one that is never reached cuts none";
    MANY_DELAYED = 0.3, "delayed acknowledgements of transactions",
        "with the plant 1.0, without at most 0.05 (labs/tests/recorded)";
    CLIENT_FULL = 0.8, "share of its CPUs that the client uses",
        "a client that was the limit used 1.00 of its CPUs, others at most 0.49 (labs/tests/recorded)";
}
