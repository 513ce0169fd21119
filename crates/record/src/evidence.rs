//! What speaks for a finding or against it, as typed facts: a figure with what it is of, its unit and its interval.
//!
//! Nothing here is a sentence. Words are made of it where it is shown (`fingerpost_report::evidence`), and what is decided
//! is decided by these fields.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::component::{Blocker, Component, Link};
use crate::experiment::{Answer, Change, Experiment};
use crate::measurement::Estimate;
use crate::params::Params;
use crate::paths::Share;
use crate::reading::missing::Missing;
use crate::unit::Unit;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// No figure: the fact alone.
    Fact,
    /// A share of a request's time, 0 to 1.
    ShareOfRequest,
    /// A share, 0 to 1, of what the metric names.
    Share,
    /// Seconds.
    Seconds,
    /// Seconds of a request.
    SecondsPerRequest,
    /// Seconds of a transaction.
    SecondsPerTransaction,
    /// So many for each transaction.
    PerTransaction,
    /// So many a second.
    PerSecond,
    /// A number.
    Count,
    /// CPUs, or CPUs' worth of time.
    Cpus,
    /// Times as much on the slower side as on the other.
    Times,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Megabits a second.
    MegabitsPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Megahertz.
    Megahertz,
}

/// Each metric with what it is and what its figures count.
macro_rules! metrics {
    ($($(#[$doc:meta])* $name:ident: $unit:ident;)*) => {
        /// What a fact is of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum Metric {
            $($(#[$doc])* $name,)*
        }

        impl Metric {
            /// All of them.
            pub const ALL: &'static [Metric] = &[$(Metric::$name,)*];

            /// What its figures count, where a fact does not say otherwise.
            pub fn unit(self) -> Quantity {
                match self {
                    $(Metric::$name => Quantity::$unit,)*
                }
            }
        }
    };
}

metrics! {
    /// What a record of schema 1 says in words.
    Text: Fact;

    // What followed requests spent.

    /// Waiting for a CPU, whoever had it.
    CpuWait: ShareOfRequest;
    /// Waiting for a CPU while one idled.
    CpuWaitIdle: ShareOfRequest;
    /// Waiting for a CPU that another process had.
    CpuWaitOthers: ShareOfRequest;
    /// Waiting for a CPU that the server itself had.
    CpuWaitServer: ShareOfRequest;
    /// Waiting for a CPU that the client had.
    CpuWaitClient: ShareOfRequest;
    /// The server's own code.
    OwnCode: ShareOfRequest;
    /// The kernel on the server's behalf.
    KernelTime: ShareOfRequest;
    /// The same, where others' tracing does its work.
    TracedKernel: ShareOfRequest;
    /// Code that a mitigation slows.
    SlowedCode: ShareOfRequest;
    /// Making processes and threads.
    TaskCreation: ShareOfRequest;
    /// Waiting for a lock whose holder works or sleeps.
    LockWait: ShareOfRequest;
    /// Waiting for the query cache's lock, as far as it is that one.
    QueryCacheLock: ShareOfRequest;
    /// Seconds for which the server's threads waited for locks.
    LockBlocked: SecondsPerTransaction;
    /// Sleeping until a time that the server set itself.
    TimerWait: ShareOfRequest;
    /// The client, and waiting for a CPU that it had.
    ClientTime: ShareOfRequest;
    /// Waiting for disks.
    DiskWait: ShareOfRequest;
    /// I/O held back before it reached the device's queue.
    DiskHeld: ShareOfRequest;
    /// Waiting in the device's queue behind others' I/O.
    DiskQueueOthers: ShareOfRequest;
    /// I/O in the device beside others' I/O.
    DiskBesideOthers: ShareOfRequest;
    /// Waiting behind others' I/O, or in the device beside it.
    DiskOthers: ShareOfRequest;
    /// I/O in the device.
    DiskDevice: ShareOfRequest;
    /// I/O in the device and in the server's own queue before it.
    DiskDeviceAndQueue: ShareOfRequest;
    /// Data on the way between server and client.
    OnTheWay: ShareOfRequest;
    /// Waiting for another service.
    PeerWait: ShareOfRequest;
    /// Waiting for memory.
    MemoryWait: ShareOfRequest;
    /// Waiting for memory, and for the disk to read pages again.
    MemoryAndDiskWait: ShareOfRequest;
    /// Sending, interrupts and the way, where a queueing discipline holds packets.
    SendingAndWay: SecondsPerRequest;
    /// Asleep in a flush or for a lock, with others that are woken at the same time.
    AsleepTogether: SecondsPerRequest;
    /// Waiting for a CPU after being woken together.
    CpuWaitAfterWaking: SecondsPerRequest;
    /// Asleep until a file's lock, which a commit holds, is tried again.
    AsleepForFileLock: SecondsPerRequest;
    /// One system call (`name`), which alone takes longer.
    OneCall: SecondsPerRequest;
    /// Who had what was waited for.
    HeldBy: ShareOfRequest;
    /// By which chains of waits requests came there.
    LedBy: ShareOfRequest;

    // Followed requests as a whole.

    /// Requests could not be followed: nothing shows whether they waited for it.
    NotFollowed: Fact;
    /// Requests were not followed on both sides.
    NotFollowedOnBoth: Fact;
    /// They were, in ways that cannot be compared.
    FollowedInTwoWays: Fact;
    /// So much could not be followed that nothing is confirmed.
    TooLittleFollowed: Share;
    /// So much could not be followed that it may have been this.
    MayBeNotFollowed: Share;
    /// No followed requests are on record, so that its part has no interval: nothing is confirmed.
    NoInterval: Fact;
    /// The same: a middle value rules nothing out.
    NoIntervalToRuleOut: Fact;
    /// The share of a request's time that this is, with its interval.
    ShareOfTime: ShareOfRequest;
    /// The part of the change that it may be at most, with its interval and what could not be followed.
    PartAtMost: Share;

    // CPUs.

    /// A quota of so many CPUs is set; none where there is no value.
    Quota: Cpus;
    /// Seconds for which a quota stopped the server.
    Throttled: Seconds;
    /// The same for each transaction.
    ThrottledPerTransaction: SecondsPerTransaction;
    /// Share of the quota's periods that it cut short.
    PeriodsCut: Share;
    /// Levels above the server's control group of the one whose quota it is.
    QuotaLevelsAbove: Count;
    /// Share of the time for which the server stood still.
    StoodStill: Share;
    /// Others had the CPUs while a quota stopped the server: how much of that wait was the quota's is not known.
    OthersRanWhileStopped: Fact;
    /// A quota stopped the server meanwhile: who ran then took nothing from it.
    QuotaStoppedMeanwhile: Fact;
    /// CPUs that the server may use.
    CpusAllowed: Cpus;
    /// CPUs that idled.
    CpusIdle: Cpus;
    /// Share of all CPU time that was idle.
    CpuIdleShare: Share;
    /// The same, so that there is no lack of CPUs.
    NoLackOfCpus: Share;
    /// The server's nice value.
    Nice: Count;
    /// The server's CPU weight, of the usual.
    CpuWeight: Share;
    /// CPUs that other processes used; most of it `name`.
    OtherCpus: Cpus;
    /// The same, with too few left for the server's threads, which wait for each other with no more to do.
    OtherCpusLeftTooFew: Cpus;
    /// Others are on both sides, and `cause` is what lets them go first.
    OthersOnBothSides: Cpus;
    /// How many times as long the server's threads wait for each other.
    WaitForEachOther: Times;
    /// How many times as much they have to do.
    MoreWork: Times;
    /// With others' data in the caches, the same work takes longer.
    ColderCaches: Fact;
    /// CPUs that the server used.
    ServerCpus: Cpus;
    /// The load asks for more CPUs than there are.
    LoadAsksForMore: Fact;
    /// Share of all CPU time that the hypervisor took.
    Stolen: Share;
    /// Share of the time in which CPUs were wanted that the hypervisor took.
    StolenOfWanted: Share;
    /// CPUs that were busy under a workload (`name`): the load was enough for the server.
    CpusBusy: Cpus;

    // Code and the kernel.

    /// Of what the trace sees outside of calls (`of`), seconds that ticks count as the kernel's.
    OutsideOfCalls: SecondsPerRequest;
    /// The same of one call.
    OutsideOfOneCall: Seconds;
    /// System calls.
    Calls: PerTransaction;
    /// Seccomp filters on the server.
    SeccompFilters: Count;
    /// System calls pass a seccomp filter on the slower side only.
    FilterOnSlowerSide: Fact;
    /// How many times as long user code takes.
    UserCodeTimes: Times;
    /// How many times as long the kernel takes.
    KernelTimes: Times;
    /// How many times as long the load generator's own work takes.
    ClientWorkTimes: Times;
    /// That is more than entering a call takes.
    MoreThanEntering: Fact;
    /// Entering the kernel would cost all calls a like amount.
    NotAllCalls: Fact;
    /// Page faults, minor and major.
    Faults: PerTransaction;
    /// Minor page faults.
    MinorFaults: PerTransaction;
    /// The pages that the kernel handles grew in number.
    MorePages: Fact;
    /// The server's processes that are being traced (ptrace).
    TracedProcesses: Count;
    /// Audit rules that are loaded.
    AuditRules: Count;
    /// Trace events that are switched on.
    TraceEvents: Count;
    /// Tracers that are switched on.
    Tracers: Count;
    /// Programs in the kernel that trace for others.
    TracingPrograms: Count;
    /// Nobody traces or audits the server on the slower side alone.
    NoTracing: Fact;
    /// Optional speculation mitigations of the server's tasks (0 or more).
    TaskMitigations: Count;
    /// One of them (`name`) is on for the server on the slower side only.
    TaskMitigationOnSlowerSide: Fact;
    /// The mitigations are the same.
    SameMitigations: Fact;
    /// Processes or threads that were made.
    TasksMade: PerTransaction;
    /// The server may use huge pages on the faster side only.
    HugePagesOnFasterSide: Fact;
    /// Huge pages are set alike.
    SameHugePages: Fact;
    /// A setting of the server's tasks differs that costs CPU time.
    TaskSettingCosts: Fact;
    /// Round trips to the server that a transaction makes.
    RoundTrips: PerTransaction;
    /// Whether a query cache, one lock that every query passes, is on (1) or off (0).
    QueryCache: Count;
    /// The best throughput, with so many clients (`of`).
    BestThroughput: PerSecond;
    /// Of it, the share that is left with so many clients (`of`).
    ThroughputKept: Share;

    // Disks.

    /// Share of the time in which the busiest device was busy.
    DiskBusy: Share;
    /// What the server read and wrote.
    ServerDiskRate: BytesPerSecond;
    /// What other processes moved; most of it `name`.
    OtherDiskRate: BytesPerSecond;
    /// The same in all.
    OtherDiskBytes: Bytes;
    /// Limits on block I/O of the server's control groups.
    DiskLimits: Count;
    /// The server's group has a limit on the slower side only.
    DiskLimitOnSlowerSide: Fact;
    /// No such limit is set on the slower side alone.
    NoDiskLimitOnSlowerSide: Fact;
    /// fsync and its like.
    Fsyncs: PerTransaction;
    /// Flushes of a transaction.
    Flushes: PerTransaction;
    /// Seconds that one fsync took.
    FsyncSeconds: Seconds;
    /// How many times as long one flush takes.
    FlushCost: Times;
    /// Most of what calls take longer is in those on files, which go with how the server commits.
    CallsOfCommits: Fact;
    /// Calls on locks of files.
    FileLockCalls: PerTransaction;
    /// What was written at most under a workload (`name`): neither writing nor flushing holds it back.
    WrittenAtMost: BytesPerSecond;
    /// Pages were read again that lack of memory had taken away.
    PagesReadAgain: Fact;

    // Networks.

    /// Received.
    NetworkIn: MegabitsPerSecond;
    /// Sent.
    NetworkOut: MegabitsPerSecond;
    /// The peak of either.
    NetworkPeak: MegabitsPerSecond;
    /// The peak, of the link's rate (`of`), under a workload (`name`).
    LinkPeak: MegabitsPerSecond;
    /// Packets that were dropped.
    PacketsDropped: Count;
    /// Segments that were sent again.
    SegmentsSentAgain: Count;
    /// Acknowledgements that were delayed.
    DelayedAcks: PerTransaction;
    /// Connections that found the accept queue full.
    QueueOverflows: Count;
    /// The most that waited in the accept queue, of so many that may (`of`).
    AcceptQueue: Count;
    /// Clients that wait to be let in, with the accept queue full.
    LetInWait: SecondsPerTransaction;
    /// What these make of what a transaction takes longer, at so many seconds each (`of`).
    PartByCount: Share;
    /// Share of the time in which no transaction completed.
    Stalled: Share;
    /// Share of the load generator's latency that lies outside of what the server's connections show.
    OutsideOfFollowed: Share;
    /// Queueing disciplines that limit a rate or delay.
    Shapers: Count;
    /// What they let go at the same time then waits for a CPU.
    LetGoTogether: SecondsPerRequest;
    /// Bytes on the way between the sockets.
    BytesOnTheWay: Bytes;

    // Memory.

    /// Pages that were swapped.
    PagesSwapped: PerSecond;
    /// The same, swapped in.
    PagesSwappedIn: PerTransaction;
    /// Pages that were reclaimed directly.
    PagesReclaimed: PerTransaction;
    /// Major page faults.
    MajorFaults: PerSecond;
    /// The same of a transaction.
    MajorFaultsPerTransaction: PerTransaction;
    /// Share of the time in which some task waited for memory.
    MemoryPressure: Share;
    /// Seconds of it for each transaction.
    MemoryStalled: SecondsPerTransaction;
    /// The limit of the control group.
    MemoryLimit: Bytes;
    /// Of it, the share that was in use.
    MemoryUsed: Share;

    // The client.

    /// The client says that it was the limit, in the words of `text`.
    ClientSaysLimit: Fact;
    /// It says so on the slower side only.
    ClientSaysLimitOnSlowerSide: Fact;
    /// Share of its CPUs that the client used.
    ClientCpus: Share;
    /// Errors in the client.
    ClientErrors: Count;
    /// The client shares the server's CPUs; it did not find itself to be the limit.
    ClientSharesCpus: Fact;
    /// The load generator's own work.
    ClientWork: SecondsPerTransaction;
    /// Waiting for a CPU that the load generator had.
    BehindClient: SecondsPerTransaction;
    /// Share of the time on the slower side for which a quota stopped the load generator.
    ClientStopped: Share;
    /// A load generator would be slowed as well by a slower CPU.
    ClientNotSlowed: Fact;

    // What another run or reading would tell.

    /// Whether the work is more than it should be shows in a comparison of two runs.
    WorkNeedsComparison: Fact;
    /// Whether a call takes longer than it should does.
    CallsNeedComparison: Fact;
    /// How much of the kernel's time tracing costs does.
    TracingNeedsComparison: Fact;
    /// Whether there are more flushes than before does.
    FlushesNeedComparison: Fact;
    /// What the page size costs does.
    PageSizeNeedsComparison: Fact;
    /// Whether the lock is the query cache's shows with the cache off.
    QueryCacheNeedsExperiment: Fact;
    /// Whether the work is more than it should be shows beside an earlier run.
    WorkNeedsBaseline: Fact;
    /// Whether the other service takes longer than it should does.
    PeerNeedsBaseline: Fact;
    /// Nothing was dropped or limited: whether client or network take longer than they should does.
    NetworkNeedsBaseline: Fact;
    /// Readings are missing (`missing`), so that `cause`, where one is named, would fit as well.
    Missing: Fact;
    /// Nothing that was observed on both sides tells `cause`.
    NothingTells: Fact;
    /// What is spent there is counted for `cause`: how much would be left is not known.
    CountedFor: Fact;
    /// No request came during this time.
    NoRequest: Fact;
    /// The row is not to be trusted, in the words of `text`.
    RowNotTrusted: Fact;
    /// The step is surely slower, and not surely by more than what matters.
    MayBeTooSmall: Fact;
    /// No cause explains so much of a change that may be too small to matter.
    UnexplainedOfSmall: Share;
    /// Nothing that was recorded tells the cause of a larger part of the change.
    LargerPartUnexplained: Share;
    /// So few were counted that chance may have made the difference.
    FewCounted: Fact;

    // Two sides.

    /// Its part of a transaction.
    CausePart: SecondsPerTransaction;
    /// The part of the change that this is.
    PartOfChange: Share;
    /// A layer's (`name`) part of a transaction.
    LayerPart: SecondsPerTransaction;
    /// Nothing that was recorded tells which cause of the layer it is.
    LayerUntold: Fact;
    /// Others came, and nothing else that was recorded tells why threads wait.
    OthersCame: Cpus;
    /// One side (`name`) alone shows it.
    ShownBySide: ShareOfRequest;
    /// The faster side (`name`) alone shows it.
    ShownByFasterSide: ShareOfRequest;
    /// Both sides show it: it is not what differs.
    ShownByBoth: ShareOfRequest;
    /// How much of a request it is on both sides is not known, and neither is its part of the change.
    PartNotKnown: Fact;
    /// What a host's fact (`name`) is on both sides (`sides`): `from`, `to`.
    HostDiffers: Fact;
    /// What was changed between the sides (`name`): `from`, `to`.
    Changed: Fact;
    /// Several things were changed together.
    ChangedTogether: Fact;
    /// Nothing else that is known of the two sides differs.
    NothingElseDiffers: Fact;
    /// What differs besides (`names`).
    DiffersBesides: Fact;
    /// The processors or systems (`name`) differ too: how much is the change's is not known.
    MachinesDifferToo: Fact;
    /// What one change made by itself of a row.
    ChangeAlone: Fact;
    /// What was measured of single changes leaves at most so much of the difference.
    LeftByChanges: Share;
    /// What an experiment leaves of it.
    LeftByExperiment: Share;
    /// Its part of the change may be nothing, and the experiment's change leaves so much.
    LeftOfUnsure: Share;

    // Experiments.

    /// What came of an experiment.
    Experiment: Fact;
    /// The part of the difference that an experiment took away.
    ExperimentPart: Share;
    /// The share that an experiment measured (`value`) is not the one that was seen (`base`).
    MeasuredAndSeen: ShareOfRequest;

    // Probes.

    /// A row of two sides.
    Row: Fact;
    /// So many of the rows (`of`) of a group (`name`) changed.
    RowsOfGroup: Count;
    /// None of its rows (`of`) changed.
    NoRowOfGroup: Count;
    /// So many of the user-mode probes (`of`) changed.
    UserProbes: Count;
    /// By how much they changed in the median.
    UserProbesMedian: Share;
    /// So many of the other rows (`of`) move with them.
    RowsMoveWith: Count;
    /// User-mode arithmetic does not move.
    ArithmeticSame: Fact;
    /// Which processor is ahead depends on the work: so many probes go the other way.
    ProbesTheOtherWay: Count;
    /// So many system calls (`of`) changed by a similar time.
    CallsAlike: Count;
    /// What each entry into the kernel costs more, in the median.
    EntryCost: Nanoseconds;
    /// What the null call costs more.
    NullCallCost: Nanoseconds;
    /// The clock rate of both sides.
    ClockRate: Megahertz;
    /// Nothing else is known of the CPUs.
    NothingElseOfCpus: Fact;
    /// How many times the instructions the probes execute: another build, not another CPU.
    Instructions: Times;
    /// How many times the cycles for the same instructions.
    Cycles: Times;
    /// Seconds that the hypervisor took.
    StolenSeconds: Seconds;
    /// Instructions and cycles are the same, each takes longer.
    SameCounters: Fact;
    /// The processor is the same and its mitigations differ; there are no counters to tell more.
    MitigationsDiffer: Fact;
    /// There are no counters to tell more.
    NoCounters: Fact;
    /// Kernel and system are the same and the processor is not: what so many rows cost more is the processor's.
    SameCodeElsewhere: Count;
    /// A probe's (`name`) throughput on one side (`sides`) collapses from so many clients on.
    CollapsesFrom: Count;
    /// The throughput of a side (`sides`) with one client (`base`) and with so many (`of`).
    ThroughputByClients: PerSecond;
    /// The same program scales on the other system.
    ScalesElsewhere: Fact;
    /// Seconds that a transaction is longer with one client (`base`) and with so many (`of`).
    LongerByClients: Seconds;
    /// Entries into the kernel that this would need with one client (`base`) and with so many.
    EntriesNeeded: Count;
    /// What slower entries explain of it at most.
    ExplainedByEntries: Share;
    /// How much of the time it accounts for is not known.
    ShareNotKnown: Fact;
    /// What allocating and freeing so many pages (`of`) costs more.
    MappingCost: Nanoseconds;
    /// What touching so many pages (`of`) adds.
    TouchingCost: Nanoseconds;
}

/// Who had what was waited for, and for how much of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Held {
    /// Who it was.
    pub by: Blocker,
    /// The share of a request.
    pub share: f64,
}

/// A chain of waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Chain {
    /// The waits, the first first.
    pub links: Vec<Link>,
    /// What is at the end.
    pub end: Component,
    /// The share of a request.
    pub share: f64,
}

/// How many times as much, with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What a change that was made by itself came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Alone {
    /// The difference, or nearly all of it.
    Decides,
    /// A part of it.
    Part,
    /// No difference that matters.
    Nothing,
    /// A difference the other way.
    Against,
    /// It was measured and is not known.
    Unresolved,
    /// It could not be measured.
    NotDone,
}

/// One fact. What does not apply is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Evidence {
    /// What it is of.
    pub metric: Metric,
    /// What its figures count, where that is not what the metric's do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Quantity>,
    /// The figure; of two sides that of the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The lower end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The base side's figure, where two sides are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<f64>,
    /// The whole that it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<f64>,
    /// The figure from which on it accuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Whether its interval reaches across the threshold, so that it neither rules out nor accuses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// How many times as much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
    /// Who had what was waited for, the largest share first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub who: Vec<Held>,
    /// By which chains of waits requests came there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<Chain>,
    /// The name of what it is of: a process, a call, a setting, a row, a side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Parameters of the row that it is of.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub params: Params,
    /// The unit of the row that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_unit: Option<Unit>,
    /// How something was on the base side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// How it is on the new side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Names of sides, or of several things.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Another cause that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Readings that are not known, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// What an experiment changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// What a change came to that was made by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Alone>,
    /// Whether the side that is spoken of is faster, where slower is the usual.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub faster: bool,
    /// What somebody else says: a load generator's reason, a row's, an experiment's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Evidence {
    /// A fact without a figure.
    pub fn of(metric: Metric) -> Evidence {
        Evidence {
            metric,
            unit: None,
            value: None,
            low: None,
            high: None,
            base: None,
            of: None,
            threshold: None,
            undecided: false,
            ratio: None,
            who: Vec::new(),
            chains: Vec::new(),
            name: None,
            params: Params::new(),
            row_unit: None,
            from: None,
            to: None,
            names: Vec::new(),
            cause: None,
            missing: Vec::new(),
            change: None,
            answer: None,
            alone: None,
            faster: false,
            text: None,
        }
    }

    /// A figure.
    pub fn figure(metric: Metric, value: f64) -> Evidence {
        Evidence {
            value: Some(value),
            ..Evidence::of(metric)
        }
    }

    /// A share of a request with its interval.
    pub fn share(metric: Metric, share: Share) -> Evidence {
        Evidence {
            low: Some(share.low),
            high: Some(share.high),
            ..Evidence::figure(metric, share.share)
        }
    }

    /// A figure of both sides.
    pub fn pair(metric: Metric, [base, new]: [f64; 2]) -> Evidence {
        Evidence {
            base: Some(base),
            ..Evidence::figure(metric, new)
        }
    }

    /// What a record of schema 1 says in words.
    pub(crate) fn of_older(text: String) -> Evidence {
        Evidence::of(Metric::Text).saying(text)
    }

    /// What came of an experiment.
    pub fn of_experiment(e: &Experiment) -> Evidence {
        Evidence {
            ratio: e.effect.as_ref().map(Ratio::of),
            change: Some(e.change),
            answer: Some(e.answer),
            text: e.reason.clone(),
            ..Evidence::of(Metric::Experiment).named(&e.what)
        }
    }

    /// Of what whole.
    pub fn out_of(mut self, whole: f64) -> Evidence {
        self.of = Some(whole);
        self
    }

    /// Counted in something else than the metric's usual unit.
    pub fn counted_in(mut self, unit: Quantity) -> Evidence {
        self.unit = Some(unit);
        self
    }

    /// With its interval.
    pub fn within(mut self, [low, high]: [f64; 2]) -> Evidence {
        (self.low, self.high) = (Some(low), Some(high));
        self
    }

    /// With the figure from which on it accuses.
    pub fn beside(mut self, threshold: f64) -> Evidence {
        self.threshold = Some(threshold);
        self
    }

    /// Its interval reaches what accuses.
    pub fn undecided(mut self) -> Evidence {
        self.undecided = true;
        self
    }

    /// What it is of.
    pub fn named(mut self, name: impl Into<String>) -> Evidence {
        self.name = Some(name.into());
        self
    }

    /// What differs between the sides.
    pub fn changing(mut self, from: impl Into<String>, to: impl Into<String>) -> Evidence {
        (self.from, self.to) = (Some(from.into()), Some(to.into()));
        self
    }

    /// The names of sides, or of several things.
    pub fn among(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Evidence {
        self.names = names.into_iter().map(Into::into).collect();
        self
    }

    /// About another cause.
    pub fn about(mut self, cause: impl Into<String>) -> Evidence {
        self.cause = Some(cause.into());
        self
    }

    /// In somebody else's words.
    pub fn saying(mut self, text: impl Into<String>) -> Evidence {
        self.text = Some(text.into());
        self
    }

    /// What its figures count.
    pub fn quantity(&self) -> Quantity {
        self.unit.unwrap_or_else(|| self.metric.unit())
    }

    /// Leaves out what is no number.
    pub(crate) fn keep_numbers(&mut self) {
        for number in [
            &mut self.value,
            &mut self.low,
            &mut self.high,
            &mut self.base,
            &mut self.of,
            &mut self.threshold,
        ] {
            *number = number.filter(|n| is_number(*n));
        }
        self.ratio = self
            .ratio
            .filter(|r| [r.value, r.low, r.high].into_iter().all(is_number));
        self.who.retain(|held| is_number(held.share));
        self.chains.retain(|chain| is_number(chain.share));
    }

    /// All numbers of it.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = f64> + '_ {
        [
            self.value,
            self.low,
            self.high,
            self.base,
            self.of,
            self.threshold,
        ]
        .into_iter()
        .flatten()
        .chain(self.ratio.iter().flat_map(|r| [r.value, r.low, r.high]))
        .chain(self.who.iter().map(|held| held.share))
        .chain(self.chains.iter().map(|chain| chain.share))
    }

    /// Strings of it that a hostile record chose.
    pub(crate) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let Evidence {
            who,
            chains,
            name,
            from,
            to,
            names,
            cause,
            missing,
            text,
            ..
        } = self;
        [name, from, to, cause, text]
            .into_iter()
            .flatten()
            .chain(names)
            .chain(who.iter_mut().flat_map(|held| held.by.texts()))
            .chain(chains.iter_mut().filter_map(|chain| chain.end.text_mut()))
            .chain(missing.iter_mut().flat_map(Missing::texts))
    }
}

/// Figures of a fact are below this: what it counts is by far.
const MOST: f64 = 1e18;

/// Whether a record may hold this as a figure.
pub(crate) fn is_number(n: f64) -> bool {
    n.is_finite() && n.abs() <= MOST
}

impl Ratio {
    /// That of an estimate.
    pub fn of(e: &Estimate) -> Ratio {
        Ratio {
            value: e.value,
            low: e.low,
            high: e.high,
        }
    }
}

/// Facts as they are read: a record of schema 1 has sentences.
pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Evidence>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Read {
        Words(String),
        Fact(Box<Evidence>),
    }
    let read: Vec<Read> = Vec::deserialize(from)?;
    Ok(read
        .into_iter()
        .map(|one| match one {
            Read::Words(text) => Evidence::of_older(text),
            Read::Fact(fact) => *fact,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Finding;

    #[test]
    fn a_fact_is_written_without_what_it_has_not_and_read_again() {
        let fact = Evidence::pair(Metric::OtherCpus, [0.02, 0.6]).named("stress");
        let json = serde_json::to_string(&fact).unwrap();
        assert_eq!(
            json,
            r#"{"metric":"other_cpus","value":0.6,"base":0.02,"name":"stress"}"#
        );
        assert_eq!(serde_json::from_str::<Evidence>(&json).unwrap(), fact);
        assert_eq!(fact.quantity(), Quantity::Cpus);
        assert_eq!(fact.counted_in(Quantity::Share).quantity(), Quantity::Share);
    }

    #[test]
    fn a_sentence_of_schema_1_is_read_as_text() {
        let json = r#"{"cause":"cpu.quota","layer":"scheduler","status":"guilty","share":0.5,
            "evidence":["a quota of 0.2 CPUs is set"]}"#;
        let finding: Finding = serde_json::from_str(json).unwrap();
        assert_eq!(
            finding.evidence,
            [Evidence::of_older("a quota of 0.2 CPUs is set".to_owned())]
        );
    }

    #[test]
    fn every_metric_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<String> = Metric::ALL
            .iter()
            .map(|metric| serde_json::to_string(metric).unwrap())
            .collect();
        assert_eq!(names.len(), Metric::ALL.len());
    }
}
