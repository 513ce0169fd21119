//! The words of facts: the one place where what speaks for a finding becomes a sentence, one arm for each metric.

use std::borrow::Cow;

use fingerpost_diagnose::causes::{cause, label, words as cause_words};
use fingerpost_diagnose::follows_from;
use fingerpost_record::evidence::{Alone, Chain, Evidence, Metric, Quantity, Ratio};
use fingerpost_record::reading::{Absence, Absent, Missing};
use fingerpost_record::text::counted;
use fingerpost_record::unit::significant;
use fingerpost_record::{Answer, Component, Finding, StepName, Unit};

use crate::explain::{OWN_CODE, WORKLOAD};
use crate::wording::{chain, who};

/// What the time that is explained is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whose {
    /// Transactions of a server that a load generator asks.
    #[default]
    Transactions,
    /// Requests of a service that somebody else asks.
    Requests,
    /// A program's own time: nobody asks it.
    Program,
}

impl Whose {
    /// That of a finding of a step; `programs` is whether nothing was asked of it.
    pub fn of(step: Option<&StepName>, programs: bool) -> Whose {
        step.map_or(Whose::Transactions, |step| {
            Whose::of_workload(&step.workload, programs)
        })
    }

    /// That of a workload.
    pub fn of_workload(workload: &str, programs: bool) -> Whose {
        match workload == WORKLOAD {
            true if programs => Whose::Program,
            true => Whose::Requests,
            false => Whose::Transactions,
        }
    }

    fn server(self) -> &'static str {
        match self {
            Whose::Program => "the program",
            Whose::Transactions | Whose::Requests => "the server",
        }
    }

    fn transaction(self) -> &'static str {
        match self {
            Whose::Transactions => "transaction",
            Whose::Requests => "request",
            Whose::Program => "run",
        }
    }

    fn of_request(self) -> &'static str {
        match self {
            Whose::Program => "of the program's time",
            Whose::Transactions | Whose::Requests => "of a request",
        }
    }

    fn per_transaction(self) -> &'static str {
        match self {
            Whose::Transactions => "per transaction",
            Whose::Requests => "per request",
            Whose::Program => "in all",
        }
    }
}

/// The facts of a finding in words: the first with the step that it is of, and at the end what it is a consequence of.
pub fn evidence(f: &Finding) -> Vec<String> {
    evidence_of(f, Whose::of(f.step.as_ref(), false))
}

/// The same, where it is known whose time it is.
pub fn evidence_of(f: &Finding, whose: Whose) -> Vec<String> {
    let mut lines = lines(f, whose);
    if let (Some(step), Some(first)) = (&f.step, lines.first_mut()) {
        *first = format!("{step}: {first}");
    }
    lines
}

/// The same where the step is told once for all of them.
pub fn lines(f: &Finding, whose: Whose) -> Vec<String> {
    let follows = follows_from(f).map(|root| {
        format!(
            "it follows from {root} ({}), which comes first",
            label(root)
        )
    });
    f.evidence
        .iter()
        .map(|fact| words(fact, whose))
        .chain(follows)
        .collect()
}

/// Per cent of which tenths are told below this.
const WHOLE: f64 = 10.0;

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= WHOLE {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        significant(value)
    }
}

fn seconds(s: f64) -> String {
    Unit::Nanoseconds.format(s * 1e9)
}

/// A figure by what it counts, without what it is of.
fn amount(of: Quantity, value: f64) -> String {
    match of {
        Quantity::Share | Quantity::ShareOfRequest => percent(value),
        Quantity::Seconds | Quantity::SecondsPerRequest | Quantity::SecondsPerTransaction => {
            seconds(value)
        }
        Quantity::Nanoseconds => Unit::Nanoseconds.format(value),
        Quantity::Bytes => Unit::Bytes.format(value),
        Quantity::BytesPerSecond => Unit::BytesPerSecond.format(value),
        Quantity::Times => format!("{value:.2} times"),
        Quantity::Megahertz => format!("{value:.0} MHz"),
        Quantity::MegabitsPerSecond => format!("{} Mbit/s", significant(value)),
        Quantity::PerSecond => significant(value),
        Quantity::PerTransaction | Quantity::Cpus | Quantity::Count | Quantity::Fact => {
            number(value)
        }
    }
}

/// What such a figure is of.
fn suffix(of: Quantity, whose: Whose) -> &'static str {
    match of {
        Quantity::ShareOfRequest | Quantity::SecondsPerRequest => whose.of_request(),
        Quantity::PerTransaction | Quantity::SecondsPerTransaction => whose.per_transaction(),
        Quantity::Cpus => "CPUs",
        Quantity::PerSecond => "a second",
        _ => "",
    }
}

/// What is said of a metric.
enum Said {
    /// What its figures are of: they follow.
    Of(Cow<'static, str>),
    /// A sentence.
    Sentence(String),
}

fn of(text: &'static str) -> Said {
    Said::Of(text.into())
}

fn sentence(text: impl Into<String>) -> Said {
    Said::Sentence(text.into())
}

/// A fact in words.
pub fn words(e: &Evidence, whose: Whose) -> String {
    if let Some(text) = of_one_side(e, whose) {
        return text;
    }
    match said(e, whose) {
        Said::Sentence(text) => text,
        Said::Of(what) if e.undecided && e.threshold.is_some() => undecided(e, &what, whose),
        Said::Of(what) => with_figures(e, &what, whose),
    }
}

/// What a figure is of, the figure, and who it was mostly.
fn with_figures(e: &Evidence, what: &str, whose: Whose) -> String {
    let quantity = e.quantity();
    let shown = |value| amount(quantity, value);
    let mut text = match (e.base, e.value) {
        (Some(base), Some(new)) => format!("{what}: {} → {}", shown(base), shown(new)),
        (_, Some(value)) if quantity == Quantity::ShareOfRequest => {
            format!("{what} is {}", shown(value))
        }
        // A number of things.
        (_, Some(value)) if counts_things(e) => format!("{} {what}", shown(value)),
        (_, Some(value)) => format!("{what}: {}", shown(value)),
        (_, None) => what.to_owned(),
    };
    if let (Some(low), Some(high)) = (e.low, e.high)
        && e.value.is_some_and(|value| value != 0.0)
    {
        text += &match quantity {
            Quantity::Share | Quantity::ShareOfRequest => {
                format!(" ({:.0} to {:.0} %)", low * 100.0, high * 100.0)
            }
            _ => format!(" ({} to {})", shown(low), shown(high)),
        };
    }
    if let Some(whole) = e.of {
        text += &format!(" of {}", shown(whole));
    }
    let suffix = suffix(quantity, whose);
    if e.value.is_some() && !suffix.is_empty() {
        text += &format!(" {suffix}");
    }
    if let Some(name) = &e.name {
        text += &format!(", most of it “{name}”");
    }
    if let Some(held) = e.who.first() {
        text += &format!(", most of it with {}", who(&held.by));
    }
    text
}

/// Whether its figure is a number of what the metric names.
fn counts_things(e: &Evidence) -> bool {
    let quantity = e.quantity();
    let number = matches!(
        quantity,
        Quantity::PerTransaction | Quantity::PerSecond | Quantity::Count
    );
    number && e.of.is_none() && e.metric != Metric::Nice
}

/// That the interval reaches what accuses.
fn undecided(e: &Evidence, what: &str, whose: Whose) -> String {
    let quantity = e.quantity();
    let suffix = suffix(quantity, whose);
    let shown = |value: Option<f64>| {
        let text = value.map_or("–".to_owned(), |value| amount(quantity, value));
        if suffix.is_empty() {
            text
        } else {
            format!("{text} {suffix}")
        }
    };
    format!(
        "{what} may be {} with its interval, and {} would accuse: that neither rules it out nor accuses",
        shown(e.high.or(e.value)),
        shown(e.threshold)
    )
}

/// How much more or less a change made it, with its interval: `2.00 × slower (1.90 to 2.10)`.
fn slower(r: Ratio) -> String {
    let (word, [value, low, high]) = if r.value < 1.0 {
        ("faster", [r.value, r.high, r.low].map(|v| 1.0 / v))
    } else {
        ("slower", [r.value, r.low, r.high])
    };
    format!(
        "{} × {word} ({} to {})",
        times(value),
        times(low),
        times(high)
    )
}

fn times(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) {
        format!("{ratio:.2}")
    } else {
        significant(ratio)
    }
}

fn text(of: Option<&String>) -> &str {
    of.map_or("", String::as_str)
}

fn pages(e: &Evidence) -> String {
    counted(e.of.unwrap_or(0.0).max(0.0) as u64, "page")
}

fn clients(of: Option<f64>) -> String {
    counted(of.unwrap_or(0.0).max(0.0) as u64, "client")
}

/// Whether rows are slower or faster.
fn word(e: &Evidence) -> &'static str {
    if e.faster { "faster" } else { "slower" }
}

/// `3 of 9`.
fn some_of(e: &Evidence) -> String {
    format!(
        "{} of {}",
        number(e.value.unwrap_or(0.0)),
        number(e.of.unwrap_or(0.0))
    )
}

/// A figure of one side as a sentence, where that reads better than a name with a figure.
fn of_one_side(e: &Evidence, whose: Whose) -> Option<String> {
    let (value, server) = (e.value?, whose.server());
    if e.base.is_some() || e.undecided || e.low.is_some() {
        return None;
    }
    let most = e
        .name
        .as_ref()
        .map_or(String::new(), |name| format!(", most of it “{name}”"));
    let whole = || Some(number(e.of?));
    Some(match e.metric {
        Metric::ServerCpus => format!("{server} used {} of {} CPUs", number(value), whole()?),
        Metric::CpusAllowed => {
            format!("{server} may use {} of {} CPUs", number(value), whole()?)
        }
        Metric::CpuIdleShare => format!("{} of all CPU time was idle", percent(value)),
        Metric::OtherCpus => format!("other processes used {} CPUs{most}", number(value)),
        Metric::OtherDiskRate => format!(
            "other processes moved {}{most}",
            Unit::BytesPerSecond.format(value)
        ),
        Metric::ServerDiskRate => format!(
            "{server} read and wrote {}",
            Unit::BytesPerSecond.format(value)
        ),
        Metric::DiskBusy => format!("the busiest device was busy {} of the time", percent(value)),
        Metric::ClientCpus => format!("the client used {} of its CPUs", percent(value)),
        Metric::Stolen => format!("the hypervisor took {} of all CPU time", percent(value)),
        Metric::PeriodsCut => format!("the quota cut {} of its periods short", percent(value)),
        Metric::MemoryPressure => format!("memory pressure {} of the time", percent(value)),
        Metric::MemoryUsed => format!("{} of that limit was in use", percent(value)),
        Metric::AcceptQueue => format!(
            "at most {} of {} connections waited in the accept queue",
            number(value),
            whole()?
        ),
        Metric::CpusIdle => format!("{} CPUs idled on the slower side", number(value)),
        _ => return None,
    })
}

fn said(e: &Evidence, whose: Whose) -> Said {
    let server = whose.server();
    let value = e.value.unwrap_or(0.0);
    let name = text(e.name.as_ref());
    match e.metric {
        Metric::Text => sentence(text(e.text.as_ref())),

        Metric::CpuWait => of("waiting for a CPU"),
        Metric::CpuWaitIdle => of("waiting for a CPU while one idled"),
        Metric::CpuWaitOthers => of("waiting for a CPU that another process had"),
        Metric::CpuWaitServer => {
            Said::Of(format!("waiting for a CPU that {server} itself had").into())
        }
        Metric::CpuWaitClient => of("waiting for a CPU that the client had"),
        Metric::OwnCode => Said::Of(format!("{server}'s own code").into()),
        Metric::KernelTime => of("the kernel"),
        Metric::TracedKernel => of("the kernel, where that work is done,"),
        Metric::SlowedCode => of("code, which a mitigation slows,"),
        Metric::TaskCreation => of("making processes and threads"),
        Metric::LockWait => of("waiting for a lock whose holder works or sleeps"),
        Metric::QueryCacheLock => of("waiting for a lock"),
        Metric::LockBlocked => of("waiting for locks"),
        Metric::TimerWait => {
            Said::Of(format!("sleeping until a time that {server} set itself").into())
        }
        Metric::ClientTime => of("the client, and waiting for a CPU that it had,"),
        Metric::DiskWait => of("waiting for disks"),
        Metric::DiskHeld => of("I/O held back before it reached the device's queue"),
        Metric::DiskQueueOthers => of("waiting in the device's queue behind others' I/O"),
        Metric::DiskBesideOthers => of("I/O in the device beside others' I/O"),
        Metric::DiskOthers => {
            of("waiting for the disk behind others' I/O, or in the device beside it")
        }
        Metric::DiskDevice => of("I/O in the device"),
        Metric::DiskDeviceAndQueue => {
            Said::Of(format!("I/O in the device and in its queue behind {server}'s own I/O").into())
        }
        Metric::OnTheWay => Said::Of(format!("data on the way between {server} and client").into()),
        Metric::PeerWait => of("waiting for another service"),
        Metric::MemoryWait => of("waiting for memory"),
        Metric::MemoryAndDiskWait => {
            of("waiting for memory, and for the disk to read pages again,")
        }
        Metric::SendingAndWay => of("sending, interrupts and the way to the client"),
        Metric::AsleepTogether => of("threads that sleep there and are woken together"),
        Metric::CpuWaitAfterWaking => of("and then wait for a CPU"),
        Metric::AsleepForFileLock => {
            of("asleep until a file's lock that a commit holds is tried again")
        }
        Metric::OneCall => Said::Sentence(format!(
            "of the calls {name} alone takes longer: {} → {} {}",
            seconds(e.base.unwrap_or(0.0)),
            seconds(value),
            whose.of_request()
        )),
        Metric::HeldBy => {
            let all = e.who.iter();
            let names: Vec<String> = all
                .map(|held| format!("{} {}", who(&held.by), percent(held.share)))
                .collect();
            sentence(format!("the wait was for {}", names.join(", ")))
        }
        Metric::LedBy => {
            let chains: Vec<String> = e
                .chains
                .iter()
                .map(|one| format!("{} ({})", led(one, whose), percent(one.share)))
                .collect();
            sentence(format!("what led to it: {}", chains.join(", and by ")))
        }

        Metric::NotFollowed => sentence(
            "requests could not be followed, so that nothing shows whether they waited for it; following them needs \
             root, CAP_PERFMON or kernel.perf_event_paranoid=-1, and a readable tracefs",
        ),
        Metric::NotFollowedOnBoth => sentence(
            "requests were not followed on both sides; following them needs root, CAP_PERFMON or \
             kernel.perf_event_paranoid=-1",
        ),
        Metric::FollowedInTwoWays => sentence(
            "requests were followed by perf's rings on one side and by programs in the kernel on the other",
        ),
        Metric::TooLittleFollowed => sentence(format!(
            "{} of the requests' time could not be followed: above {} no cause is confirmed",
            percent(value),
            percent(e.threshold.unwrap_or(0.0))
        )),
        Metric::MayBeNotFollowed => sentence(format!(
            "{} of the requests' time could not be followed, and may have been this",
            percent(value)
        )),
        Metric::NoInterval => {
            sentence("the record has no followed requests, and no interval of its part")
        }
        Metric::NoIntervalToRuleOut => sentence(
            "the record has no followed requests, and no interval of its part: a middle value alone rules nothing out",
        ),
        Metric::ShareOfTime => of("its share"),
        Metric::PartAtMost => sentence(format!(
            "with its interval and what could not be followed it may be up to {} of the change: that neither rules it \
             out nor accuses",
            percent(value)
        )),

        Metric::Quota => match e.value {
            Some(cpus) => sentence(format!("a quota of {} CPUs is set", number(cpus))),
            None => sentence("no quota is set"),
        },
        Metric::Throttled => sentence(format!(
            "a quota stopped {server}'s CPUs for {} s",
            number(value)
        )),
        Metric::ThrottledPerTransaction => of("time for which a quota stopped it"),
        Metric::PeriodsCut => of("share of the quota's periods that were cut short"),
        Metric::QuotaLevelsAbove => sentence(format!(
            "the quota is that of a control group {} above {server}'s own",
            if value > 1.0 {
                format!("{} levels", number(value))
            } else {
                "one level".into()
            }
        )),
        Metric::StoodStill => sentence(format!(
            "{server} stood still for {} of the time, whoever ran then",
            percent(value)
        )),
        Metric::OthersRanWhileStopped => sentence(
            "others had the CPUs while the quota stopped it; how much of that wait was the quota's shows without it",
        ),
        Metric::QuotaStoppedMeanwhile => sentence(format!(
            "a quota stopped {server} meanwhile: other processes that ran then took nothing from it"
        )),
        Metric::CpusAllowed => Said::Of(format!("CPUs that {server} may use").into()),
        Metric::CpusIdle => of("CPUs that idled"),
        Metric::CpuIdleShare => of("share of all CPU time that was idle"),
        Metric::NoLackOfCpus => sentence(format!(
            "{} of all CPU time was idle: there is no lack of CPUs",
            percent(value)
        )),
        Metric::Nice => Said::Of(format!("{server}'s nice value").into()),
        Metric::CpuWeight => Said::Of(format!("{server}'s CPU weight, of the usual").into()),
        Metric::OtherCpus => of("CPUs that other processes used"),
        Metric::OtherCpusLeftTooFew => of(
            "other processes leave too few CPUs, so that threads wait for each other; CPUs that others used",
        ),
        Metric::OthersOnBothSides => sentence(format!(
            "CPUs that other processes used: {} → {}; they are on both sides, and {} ({}) is what lets them go first",
            number(e.base.unwrap_or(0.0)),
            number(value),
            text(e.cause.as_ref()),
            label(text(e.cause.as_ref()))
        )),
        Metric::WaitForEachOther => sentence(format!(
            "{server}'s threads wait for each other {value:.1} times as long"
        )),
        Metric::MoreWork => sentence(format!("with {value:.1} times as much to do")),
        Metric::ColderCaches => {
            sentence("with other processes' data in the caches the same work takes longer")
        }
        Metric::ServerCpus => Said::Of(format!("CPUs that {server} used").into()),
        Metric::LoadAsksForMore => sentence(
            "the load asks for more CPUs than there are; whether its work is more than it should be shows in a \
             comparison of two runs",
        ),
        Metric::Stolen => of("share of all CPU time that the hypervisor took"),
        Metric::StolenOfWanted => {
            of("share of the time in which CPUs were wanted that the hypervisor took")
        }
        Metric::CpusBusy => sentence(format!(
            "under {name} {:.2} to {:.2} of {} CPUs were busy: the load was enough for the server",
            e.low.unwrap_or(0.0),
            e.high.unwrap_or(0.0),
            number(e.of.unwrap_or(0.0))
        )),

        Metric::OutsideOfCalls => sentence(format!(
            "of {} that the trace sees outside of calls, ticks count {} as the kernel's: seccomp filters and what else \
             enters the kernel run before a call's entry is traced",
            seconds(e.of.unwrap_or(0.0)),
            seconds(value)
        )),
        Metric::OutsideOfOneCall => sentence(format!("that is {} for each call", seconds(value))),
        Metric::Calls => of("system calls"),
        Metric::SeccompFilters => Said::Of(format!("seccomp filters on {server}").into()),
        Metric::FilterOnSlowerSide => {
            sentence("system calls pass a seccomp filter on the slower side only")
        }
        Metric::UserCodeTimes => sentence(format!("user code takes {value:.2} times as long")),
        Metric::KernelTimes => sentence(format!("the kernel takes {value:.2} times as long")),
        Metric::ClientWorkTimes => sentence(format!(
            "the load generator's own work takes {value:.2} times as long"
        )),
        Metric::ClientNotSlowed => sentence("a slower CPU would slow the load generator as well"),
        Metric::MoreThanEntering => sentence("that is more than entering a call takes"),
        Metric::NotAllCalls => sentence("entering the kernel costs all calls a like amount"),
        Metric::Faults => of("page faults"),
        Metric::MinorFaults => of("minor faults"),
        Metric::MorePages => sentence("the pages that the kernel handles grew in number"),
        Metric::TracedProcesses => {
            Said::Of(format!("processes of {server} that are being traced (ptrace)").into())
        }
        Metric::AuditRules => of("audit rules that are loaded"),
        Metric::TraceEvents => of("trace events that are switched on"),
        Metric::Tracers => of("tracers that are switched on"),
        Metric::TracingPrograms => of("programs in the kernel that trace for others"),
        Metric::NoTracing => {
            sentence("no program traces or audits the server on the slower side alone")
        }
        Metric::TaskMitigations if value > 0.0 => sentence(format!(
            "an optional speculation mitigation is on for {server}'s tasks"
        )),
        Metric::TaskMitigations => sentence(format!(
            "no optional speculation mitigation is on for {server}'s tasks"
        )),
        Metric::TaskMitigationOnSlowerSide => sentence(format!(
            "{name} is mitigated for {server} on the slower side only"
        )),
        Metric::SameMitigations => sentence("the mitigations are the same"),
        Metric::TasksMade => of("processes or threads made"),
        Metric::HugePagesOnFasterSide => {
            sentence("the server may use huge pages on the faster side only")
        }
        Metric::SameHugePages => sentence("huge pages are set alike"),
        Metric::TaskSettingCosts => {
            sentence("a setting of the server's tasks differs that costs CPU time")
        }
        Metric::RoundTrips => of("round trips to the server"),
        Metric::QueryCache if value > 0.0 => {
            sentence("the query cache is on: one lock that every query passes")
        }
        Metric::QueryCache => sentence("the query cache is off"),
        Metric::BestThroughput => sentence(format!(
            "throughput is best with {} ({}/s)",
            clients(e.of),
            significant(value)
        )),
        Metric::ThroughputKept => sentence(format!(
            "with {} throughput is {} of the best",
            clients(e.of),
            percent(value)
        )),

        Metric::DiskBusy => of("share of the time in which the busiest device was busy"),
        Metric::ServerDiskRate => Said::Of(format!("what {server} read and wrote").into()),
        Metric::OtherDiskRate | Metric::OtherDiskBytes => {
            of("what other processes moved on the disk")
        }
        Metric::DiskLimits => {
            Said::Of(format!("limits on block I/O of {server}'s control groups").into())
        }
        Metric::DiskLimitOnSlowerSide => sentence(format!(
            "{server}'s group has a limit on the disk on the slower side only"
        )),
        Metric::NoDiskLimitOnSlowerSide => {
            sentence("no limit on the disk is set on the slower side alone")
        }
        Metric::Fsyncs => of("fsyncs"),
        Metric::Flushes => of("flushes"),
        Metric::FsyncSeconds => sentence(format!("one fsync took {}", seconds(value))),
        Metric::FlushCost => sentence(format!("a flush took {value:.2} times as long")),
        Metric::CallsOfCommits => sentence(
            "most of what calls take longer is in those on files, which go with how it commits",
        ),
        Metric::FileLockCalls => of("calls on locks of files"),
        Metric::WrittenAtMost => sentence(format!(
            "under {name} at most {:.0} kB/s were written: neither writing nor flushing holds it back",
            value / 1e3
        )),
        Metric::PagesReadAgain => {
            sentence("it was waited for to read pages again that lack of memory took away")
        }

        Metric::NetworkIn => of("received"),
        Metric::NetworkOut => of("sent"),
        Metric::NetworkPeak => of("the peak of either"),
        Metric::LinkPeak => sentence(format!(
            "under {name} the network carried {} {value:.0} of {:.0} Mbit/s",
            // Of a peak that was read off a picture only the upper end is known.
            if e.undecided { "less than" } else { "at most" },
            e.of.unwrap_or(0.0)
        )),
        Metric::PacketsDropped => of("packets dropped"),
        Metric::SegmentsSentAgain => of("segments sent again"),
        Metric::DelayedAcks => of("delayed acknowledgements"),
        Metric::QueueOverflows => of("connections that found the accept queue full"),
        Metric::AcceptQueue => of("the most connections that waited in the accept queue"),
        Metric::LetInWait => of("clients that wait to be let in, with the accept queue full"),
        Metric::PartByCount => sentence(format!(
            "at {} each that is {} of what a {} takes longer",
            seconds(e.of.unwrap_or(0.0)),
            percent(value),
            whose.transaction()
        )),
        Metric::Stalled => sentence(format!(
            "{} of the time no {} completed",
            percent(value),
            whose.transaction()
        )),
        Metric::OutsideOfFollowed => sentence(format!(
            "{} of the load generator's latency lies outside of what {server}'s connections show",
            percent(value)
        )),
        Metric::Shapers => of("queueing disciplines that limit a rate or delay"),
        Metric::LetGoTogether => of("packets that they let go together then wait for a CPU"),
        Metric::BytesOnTheWay => of("bytes on the way between the sockets"),

        Metric::PagesSwapped => of("pages swapped"),
        Metric::PagesSwappedIn => of("pages swapped in"),
        Metric::PagesReclaimed => of("pages reclaimed directly"),
        Metric::MajorFaults | Metric::MajorFaultsPerTransaction => of("major faults"),
        Metric::MemoryPressure => of("share of the time under memory pressure"),
        Metric::MemoryStalled => of("stalled for memory"),
        Metric::MemoryLimit => of("memory limit of the control group"),
        Metric::MemoryUsed => of("share of that limit that was in use"),

        Metric::ClientSaysLimit => sentence(text(e.text.as_ref())),
        Metric::ClientSaysLimitOnSlowerSide => {
            sentence("the load generator found itself to be the limit on the slower side only")
        }
        Metric::ClientCpus => of("share of its CPUs that the client used"),
        Metric::ClientErrors => of("errors in the client"),
        Metric::ClientSharesCpus => match whose {
            Whose::Transactions => sentence(
                "the client shares the server's CPUs; it did not find itself to be the limit",
            ),
            Whose::Requests | Whose::Program => {
                sentence("its clients run on this machine and use the same CPUs")
            }
        },
        Metric::ClientWork => of("the load generator's own work"),
        Metric::BehindClient => of("waiting for a CPU that the load generator had"),
        Metric::ClientStopped => sentence(format!(
            "a quota stopped the load generator for {} of the time on the slower side",
            percent(value)
        )),

        Metric::WorkNeedsComparison => {
            sentence("whether that is more than it should be shows in a comparison of two runs")
        }
        Metric::CallsNeedComparison => {
            sentence("whether a call takes longer than it should shows in a comparison of two runs")
        }
        Metric::TracingNeedsComparison => sentence(
            "how much of the kernel's time it costs shows in a comparison with a run without it",
        ),
        Metric::FlushesNeedComparison => {
            sentence("whether they are more than before shows in a comparison of two runs")
        }
        Metric::PageSizeNeedsComparison => {
            sentence("what the page size costs shows in a comparison of two runs")
        }
        Metric::QueryCacheNeedsExperiment => {
            sentence("run it with the query cache off: if the lock goes, it was the cache's")
        }
        Metric::WorkNeedsBaseline => sentence(
            "whether that is more than it should be shows beside an earlier run (--baseline)",
        ),
        Metric::PeerNeedsBaseline => sentence(
            "whether the other takes longer than it should shows beside an earlier run (--baseline)",
        ),
        Metric::NetworkNeedsBaseline => sentence(
            "nothing was dropped or sent again, and nothing here limits a rate: whether the client or the network takes \
             longer than it should shows beside an earlier run (--baseline)",
        ),
        Metric::Missing => sentence(missing(e)),
        Metric::NothingTells => sentence(format!(
            "nothing that was observed on both sides tells: {}",
            cause(text(e.cause.as_ref())).map_or("", |c| c.words.tells)
        )),
        Metric::CountedFor => {
            let other = text(e.cause.as_ref());
            sentence(format!(
                "what is waited there is counted for {other} ({}): how much would be left without that is not known",
                label(other)
            ))
        }
        Metric::NoRequest => {
            sentence("no request came during this time: what its threads waited for delayed none")
        }
        Metric::RowNotTrusted => sentence(format!(
            "the row is not to be trusted: {}",
            text(e.text.as_ref())
        )),
        Metric::MayBeTooSmall => {
            sentence("the step is surely slower, and not surely by more than what does not matter")
        }
        Metric::UnexplainedOfSmall => sentence(format!(
            "no cause explains {} of a change that may be too small to matter",
            percent(value)
        )),
        Metric::LargerPartUnexplained => sentence(format!(
            "nothing that was recorded tells the cause of more of the change, {}",
            percent(value)
        )),
        Metric::FewCounted => sentence(
            "so few were counted that chance may have made the difference: the whole interval of the count does not \
             tell",
        ),

        Metric::CausePart => of("its part of the time"),
        Metric::PartOfChange => sentence(format!(
            "that is {:.0} % ({:.0} to {:.0} %) of the change",
            value * 100.0,
            e.low.unwrap_or(0.0) * 100.0,
            e.high.unwrap_or(0.0) * 100.0
        )),
        Metric::LayerPart => sentence(format!(
            "the {name} layer's part: {} → {} {}",
            seconds(e.base.unwrap_or(0.0)),
            seconds(value),
            whose.per_transaction()
        )),
        Metric::LayerUntold => {
            sentence("nothing that was recorded tells which of its causes it is")
        }
        Metric::OthersCame => sentence(format!(
            "others used {} → {} CPUs, and nothing else that was recorded tells why",
            significant(e.base.unwrap_or(0.0)),
            significant(value)
        )),
        Metric::ShownBySide => sentence(format!(
            "{name} alone shows it: {} {}",
            percent(value),
            whose.of_request()
        )),
        Metric::ShownByFasterSide => sentence(format!(
            "{name} alone shows it ({} {}), which is the faster side",
            percent(value),
            whose.of_request()
        )),
        Metric::ShownByBoth => sentence(format!(
            "both sides alone show it ({} and {} {}): it is not what differs",
            percent(e.base.unwrap_or(0.0)),
            percent(value),
            whose.of_request()
        )),
        Metric::PartNotKnown => sentence(
            "how much of a request it is on both sides is not known, and neither is its part of the change",
        ),
        Metric::HostDiffers => {
            let sides: Vec<&str> = e.names.iter().map(String::as_str).collect();
            let [one, other] = sides[..] else {
                return sentence(format!("{name} differs"));
            };
            sentence(format!(
                "{name} differs: {} on {one}, {} on {other}",
                text(e.from.as_ref()),
                text(e.to.as_ref())
            ))
        }
        Metric::Changed => sentence(format!(
            "{name}: {} → {} (base → new)",
            text(e.from.as_ref()),
            text(e.to.as_ref())
        )),
        Metric::ChangedTogether => sentence(
            "these were changed together; how much each of them makes is not known (compare --settle measures it)",
        ),
        Metric::NothingElseDiffers => {
            sentence("nothing else that is known of the two sides differs")
        }
        Metric::DiffersBesides => sentence(format!("what differs besides: {}", e.names.join(", "))),
        Metric::MachinesDifferToo => sentence(format!(
            "the {name} differ too, so that how much of the difference is the change's is not known{}",
            // What was measured here can be measured again.
            if e.undecided {
                " (compare --settle measures it)"
            } else {
                ""
            }
        )),
        Metric::ChangeAlone => sentence(alone(e)),
        Metric::LeftByChanges => sentence(format!(
            "what was measured of single changes leaves up to {} of the difference for it",
            percent(value)
        )),
        Metric::LeftByExperiment => sentence(format!(
            "an experiment leaves {} of the difference for it",
            percent(value)
        )),
        Metric::LeftOfUnsure => sentence(format!(
            "its part of the change may be nothing, and the experiment's change leaves {} of the difference for it",
            percent(value)
        )),

        Metric::Experiment => sentence(experiment(e)),
        Metric::ExperimentPart => sentence(format!(
            "that is {} ({} to {}) of the difference",
            percent(value),
            percent(e.low.unwrap_or(0.0)),
            percent(e.high.unwrap_or(0.0))
        )),
        Metric::MeasuredAndSeen => {
            let seen = e.base.unwrap_or(0.0);
            let why = if value > seen {
                ", which leaves out what it delays indirectly (a thread that holds a lock, emptied caches)"
            } else {
                ": some of that is then spent on something else"
            };
            sentence(format!(
                "{} is how much less time requests took with that change; {} is the part of it that was seen to go to \
                 this cause without the change{why}",
                percent(value),
                percent(seen)
            ))
        }

        Metric::Row => sentence(row(e)),
        Metric::RowsOfGroup => sentence(format!("{} rows of {name} are {}", some_of(e), word(e))),
        Metric::NoRowOfGroup => sentence(format!(
            "none of its {} rows is {}; the nearest follows",
            number(e.of.unwrap_or(0.0)),
            word(e)
        )),
        Metric::UserProbes => sentence(format!("{} user-mode probes are {}", some_of(e), word(e))),
        Metric::UserProbesMedian => sentence(format!("by {:.0} % in the median", value * 100.0)),
        Metric::RowsMoveWith if name.is_empty() => {
            sentence(format!("{} other rows move with them", some_of(e)))
        }
        Metric::RowsMoveWith => {
            sentence(format!("{} other rows of {name} move with it", some_of(e)))
        }
        Metric::ArithmeticSame => sentence("user-mode arithmetic does not move"),
        Metric::ProbesTheOtherWay => sentence(format!(
            "and {} the other way: which processor is ahead depends on the work",
            number(value)
        )),
        Metric::CallsAlike => sentence(format!(
            "{} system calls are {} by a similar time",
            some_of(e),
            word(e)
        )),
        Metric::EntryCost => sentence(format!(
            "{value:.0} ns for each entry into the kernel in the median"
        )),
        Metric::NullCallCost => sentence(format!("{value:.0} ns for the null call")),
        Metric::ClockRate => of("clock rate"),
        Metric::NothingElseOfCpus => sentence("nothing else is known of the CPUs"),
        Metric::Instructions => sentence(format!(
            "the probes execute {value:.2} times the instructions: another build, not another CPU"
        )),
        Metric::Cycles => sentence(format!(
            "the instructions are the same, the cycles {value:.2} times as many"
        )),
        Metric::StolenSeconds => of("time that the hypervisor took from the runs"),
        Metric::SameCounters => sentence("instructions and cycles are the same, each takes longer"),
        Metric::MitigationsDiffer => sentence(
            "the processor is the same and its mitigations differ; there are no counters to tell more",
        ),
        Metric::NoCounters => sentence("there are no counters to tell more"),
        Metric::SameCodeElsewhere => sentence(format!(
            "kernel and system are the same and the processor is not: what {} rows cost more is what the same code \
             costs there",
            number(value)
        )),
        Metric::CollapsesFrom => sentence(format!(
            "{name} on {} collapses from {} clients on",
            e.names.join(", "),
            number(value)
        )),
        Metric::ThroughputByClients => sentence(format!(
            "on {} it goes from {:.0}/s with one client to {value:.0}/s with {}",
            e.names.join(", "),
            e.base.unwrap_or(0.0),
            number(e.of.unwrap_or(0.0))
        )),
        Metric::ScalesElsewhere => sentence(
            "the same program scales on the other system, so the contention is in locks or threads below it",
        ),
        Metric::LongerByClients => sentence(format!(
            "a transaction is {:.2} ms longer with one client and {:.1} ms with {}",
            e.base.unwrap_or(0.0) * 1e3,
            value * 1e3,
            number(e.of.unwrap_or(0.0))
        )),
        Metric::EntriesNeeded => sentence(format!(
            "that would need {:.0} more entries into the kernel with one client and {value:.0} with {}",
            e.base.unwrap_or(0.0),
            number(e.of.unwrap_or(0.0))
        )),
        Metric::ExplainedByEntries => sentence(format!(
            "as it makes no more of them with {} clients, slower entries explain at most {:.0} % of it",
            number(e.of.unwrap_or(0.0)),
            value * 100.0
        )),
        Metric::ShareNotKnown => sentence("how much of their time it accounts for is not known"),
        Metric::MappingCost => sentence(format!(
            "{}: allocating and freeing costs {} {} ({:.2} times)",
            pages(e),
            Unit::Nanoseconds.format(value.abs()),
            if value < 0.0 { "less" } else { "more" },
            e.ratio.map_or(1.0, |r| r.value)
        )),
        Metric::TouchingCost => {
            let of = |ns| Unit::Nanoseconds.format(ns);
            let (before, after) = (of(e.base.unwrap_or(0.0)), of(value));
            let interval = e.ratio.map_or(String::new(), |r| {
                format!(" ({:.2} times, {:.2} to {:.2})", r.value, r.low, r.high)
            });
            sentence(format!(
                "{}: touching adds {before} → {after}{interval}",
                pages(e)
            ))
        }
    }
}

/// A chain of waits with what is at its end.
fn led(one: &Chain, whose: Whose) -> String {
    let own = one.end == Component::UserCode && whose != Whose::Transactions;
    let end = Component::Other(OWN_CODE.to_owned());
    chain(&one.links, if own { &end } else { &one.end })
}

/// What is not known, and what would fit as well.
fn missing(e: &Evidence) -> String {
    let one = |missing: &Missing| {
        let how = if missing.compared {
            "cannot be compared"
        } else {
            "is not known"
        };
        let why: Vec<String> = missing.of.iter().map(absent).collect();
        let why = match why.is_empty() {
            true if missing.compared => " (the two sides had it in different ways)".to_owned(),
            true => String::new(),
            false => format!(" ({})", why.join("; ")),
        };
        format!("{} {how}{why}", missing.reading)
    };
    let all: Vec<String> = e.missing.iter().map(one).collect();
    if all.is_empty() {
        return "a reading is not known".to_owned();
    }
    match &e.cause {
        Some(other) => format!(
            "{}: {} would fit as well",
            all.join(", "),
            cause_words(other)
        ),
        None => all.join(", "),
    }
}

fn absent(a: &Absent) -> String {
    let observer = &a.observer;
    let source = text(a.source.as_ref());
    let why = match a.why {
        Absence::NoObserver => format!("the observer “{observer}” was not there"),
        Absence::CouldNotSee if source.is_empty() => {
            format!("the observer “{observer}” could not see it")
        }
        Absence::CouldNotSee => format!("the observer “{observer}” could not see it: {source}"),
        Absence::NeedsTracepoints => format!(
            "the observer “{observer}” could not see it: it needs tracepoints (root, or CAP_PERFMON and a readable \
             tracefs), and had {source}"
        ),
        Absence::NotTold => format!(
            "the observer “{observer}” was there, and the kernel or that version does not tell it"
        ),
    };
    match &a.side {
        Some(side) => format!("on {side}, {why}"),
        None => why,
    }
}

/// What came of an experiment.
fn experiment(e: &Evidence) -> String {
    let what = text(e.name.as_ref());
    let times = |r: Ratio| format!("{:.2} ({:.2}–{:.2})", r.value, r.low, r.high);
    match (e.answer, e.ratio) {
        (Some(Answer::NotDone), _) => {
            let why = e.text.as_deref().unwrap_or("for no stated reason");
            format!("with {what}: not tried, {why}")
        }
        (Some(Answer::Faster), Some(r)) => {
            format!("with {what} requests were {} times faster", times(r))
        }
        (Some(Answer::Slower), Some(r)) if r.low > 0.0 => {
            let slower = Ratio {
                value: 1.0 / r.value,
                low: 1.0 / r.high,
                high: 1.0 / r.low,
            };
            format!("with {what} requests were {} times slower", times(slower))
        }
        (Some(Answer::Same), Some(r)) => format!(
            "with {what} requests were as fast as before: {} times",
            times(r)
        ),
        (_, Some(r)) => format!(
            "with {what} requests were {} times as fast, which decides nothing",
            times(r)
        ),
        (_, None) => format!("with {what}: too few requests were seen to say anything"),
    }
}

/// What a change made by itself.
fn alone(e: &Evidence) -> String {
    let change = format!(
        "{}: {} → {}",
        text(e.name.as_ref()),
        text(e.from.as_ref()),
        text(e.to.as_ref())
    );
    let probe = text(e.names.first());
    let of = if e.params.is_empty() {
        probe.to_owned()
    } else {
        format!("{probe} {}", e.params)
    };
    let slower = e.ratio.map_or_else(String::new, slower);
    match e.alone {
        Some(Alone::NotDone) | None => {
            let why = e.text.as_deref().unwrap_or("for no known reason");
            format!("{change}, alone: not measured: {why}")
        }
        Some(Alone::Unresolved) => {
            let why = e
                .text
                .as_ref()
                .map_or_else(String::new, |why| format!(": {why}"));
            format!("{change}, alone: {of} {slower}, which is not resolved{why}")
        }
        Some(Alone::Nothing) => {
            format!("{change}, alone, makes no difference that matters: {of} {slower}")
        }
        Some(Alone::Against) => {
            format!("{change}, alone, works against the difference: {of} {slower}")
        }
        Some(Alone::Part | Alone::Decides) => {
            let share = e.value.map_or_else(String::new, |s| {
                format!(", {:.0} % of the difference", 100.0 * s)
            });
            format!("{change}, alone: {of} {slower}{share}")
        }
    }
}

/// A row of two sides with its figures and its ratio.
fn row(e: &Evidence) -> String {
    let params = if e.params.is_empty() {
        String::new()
    } else {
        format!(" ({})", e.params)
    };
    let interval = e.ratio.map_or(String::new(), |r| {
        format!(", ratio {:.2} ({:.2} to {:.2})", r.value, r.low, r.high)
    });
    let unit = e.row_unit.unwrap_or(Unit::Count);
    let of = |value: Option<f64>| value.map_or("–".to_owned(), |v| unit.format(v));
    format!(
        "{}{params}: {} → {}{interval}",
        text(e.name.as_ref()),
        of(e.base),
        of(e.value)
    )
}

#[cfg(test)]
mod tests;
