//! The rules for disks, networks and memory.

use fingerpost_record::cause::id;
use fingerpost_record::cause::thresholds::{
    DISK_BUSY, DISK_IDLE, DISK_IN_USE, MAJOR_FAULTS, MANY_DELAYED, MANY_SYNCS, MEMORY_PRESSURE,
    OTHERS_BESIDE_OURS, OTHERS_RATE, PAGES_SWAPPED, SEGMENTS_AGAIN,
};
use fingerpost_record::paths::Share;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Metric, Readings, Status};

use super::counts;
use super::facts::{Facts, drops, sum};
use super::judging::*;
use super::places::{Place, add};

/// Everything that waits for a disk.
const DISK: [Place; 5] = [
    Place::DiskHeld,
    Place::DiskBehindOthers,
    Place::DiskOwn,
    Place::DiskBesideOthers,
    Place::DiskDevice,
];

fn figures(f: &Facts) -> Vec<Evidence> {
    let figure = |metric, value: Option<f64>| value.map(|value| Evidence::figure(metric, value));
    let each = f.sync_s.filter(|_| f.syncs.is_some());
    part(f, &DISK, Metric::DiskWait)
        .into_iter()
        .chain(figure(Metric::DiskBusy, f.disk_busy))
        .chain(figure(Metric::ServerDiskRate, f.disk_per_s))
        .chain(figure(Metric::Fsyncs, f.syncs))
        .chain(figure(Metric::FsyncSeconds, each))
        .collect()
}

pub(super) fn throttle(f: &Facts) -> Option<Verdict> {
    let set = f.known(name::CGROUP_DISK_LIMITS);
    let limits = set.map(|n| Evidence::figure(Metric::DiskLimits, n));
    let share = share_of(f, id::STORAGE_THROTTLE);
    let held = part(f, &[Place::DiskHeld], Metric::DiskHeld);
    let evidence: Vec<Evidence> = held.into_iter().chain(limits).chain(figures(f)).collect();
    if share.is_none() && set == Some(0.0) {
        return ruled_out(evidence);
    }
    judged(f, share, true, set.is_some_and(|n| n > 0.0), evidence)
}

/// Others' I/O that competes: at least as much as our own, or a stream in its own right, on a device that is busy.
fn others_compete(f: &Facts) -> bool {
    let Some(others) = f.other_disk_per_s else {
        return false;
    };
    others > OTHERS_RATE.value
        && f.disk_per_s
            .is_none_or(|own| others > OTHERS_BESIDE_OURS.value * own)
        && f.disk_busy.is_none_or(|busy| busy > DISK_IN_USE.value)
}

/// Time in a device that others keep busy is theirs as much as the queue before it: it serves their requests between
/// ours.
pub(super) fn contention(f: &Facts) -> Option<Verdict> {
    let queued = f.share(&[Place::DiskBehindOthers]);
    let behind = queued.map(|share| Evidence::share(Metric::DiskQueueOthers, share));
    let beside = part(f, &[Place::DiskBesideOthers], Metric::DiskBesideOthers);
    let moved = f.other_disk_per_s.map(|b| Evidence {
        name: mostly(f, "other.disk.", ".bytes"),
        ..Evidence::figure(Metric::OtherDiskRate, b)
    });
    let whose = [Place::DiskBehindOthers, Place::DiskBesideOthers]
        .map(|place| told(f.place(place)))
        .concat();
    let chain = behind.into_iter().chain(beside).chain(whose).chain(moved);
    let evidence: Vec<Evidence> = chain.chain(figures(f)).collect();
    let compete = others_compete(f);
    let share = if compete {
        f.share(&[
            Place::DiskBehindOthers,
            Place::DiskBesideOthers,
            Place::DiskDevice,
        ])
    } else {
        queued
    };
    match (
        judged(f, share, true, compete, evidence.clone()),
        f.other_disk_per_s,
    ) {
        // So little competes with nobody; of more, what it took of the device is not known.
        (None, Some(others)) => {
            let doubt = (others > OTHERS_RATE.value).then(|| Evidence::of(Metric::NotFollowed));
            doubted(f, None, doubt, ruled_out(evidence))
        }
        (verdict, _) => verdict,
    }
}

pub(super) fn latency(f: &Facts) -> Option<Verdict> {
    let device = part(
        f,
        &[Place::DiskBesideOthers, Place::DiskDevice],
        Metric::DiskDevice,
    );
    let evidence: Vec<Evidence> = device
        .into_iter()
        .chain(told(f.place(Place::DiskDevice)))
        .chain(figures(f))
        .collect();
    if evidence.is_empty() {
        return None;
    }
    let of_the_disk: &[Place] = &[Place::DiskOwn, Place::DiskBesideOthers, Place::DiskDevice];
    let places = if others_compete(f) {
        &[Place::DiskOwn]
    } else {
        of_the_disk
    };
    let busy = f.disk_busy.is_some_and(|busy| busy > DISK_BUSY.value)
        && f.syncs.is_none_or(|n| n > 0.0)
        && f.disk_per_s.is_none_or(|b| b > 0.0);
    let verdict = judged(
        f,
        f.share(places),
        true,
        busy && !others_compete(f) && f.known(name::CGROUP_DISK_LIMITS).is_none_or(|n| n == 0.0),
        evidence.clone(),
    );
    match verdict {
        verdict if reads_again(f) => at_most_likely(verdict, Metric::PagesReadAgain),
        None if f.disk_busy.is_some_and(|busy| busy < DISK_IDLE.value) => ruled_out(evidence),
        verdict => verdict,
    }
}

pub(super) fn durability(f: &Facts) -> Option<Verdict> {
    let (count, share) = (f.syncs?, share_of(f, id::STORAGE_DURABILITY)?);
    let mut evidence = vec![Evidence::figure(Metric::Fsyncs, count)];
    evidence.extend(f.sync_s.map(|s| Evidence::figure(Metric::FsyncSeconds, s)));
    let doubt = reaches(
        Metric::Fsyncs,
        counts::rate(count, f.transactions)[1],
        MANY_SYNCS.value,
    );
    at_most_likely(
        doubted(
            f,
            Some(share),
            doubt,
            judged(f, Some(share), count > MANY_SYNCS.value, false, evidence),
        ),
        Metric::FlushesNeedComparison,
    )
}

fn on_the_way(f: &Facts) -> Option<Evidence> {
    part(f, &[Place::OnTheWay], Metric::OnTheWay)
}

fn dropped(f: &Facts) -> bool {
    lost(f.drops, f.known(name::TCP_RETRANSMITS), f.transactions)
}

/// Whether readings tell of packets that were dropped, or of more that were sent again than chance makes.
pub fn packets_lost(readings: &Readings) -> bool {
    lost(
        drops(readings),
        readings.known(name::TCP_RETRANSMITS),
        readings.known(name::STEP_TRANSACTIONS).unwrap_or(0.0),
    )
}

fn lost(drops: Option<f64>, retransmits: Option<f64>, transactions: f64) -> bool {
    drops.is_some_and(|n| n > 0.0)
        || retransmits.is_some_and(|n| n > SEGMENTS_AGAIN.value * transactions.max(100.0))
}

/// Why segments that were sent again clear nobody by their middle alone.
fn may_be_lost(f: &Facts) -> Option<Evidence> {
    let sent = f.known(name::TCP_RETRANSMITS).filter(|n| *n > 0.0)?;
    let limit = SEGMENTS_AGAIN.value * f.transactions.max(100.0);
    reaches(Metric::SegmentsSentAgain, counts::interval(sent)[1], limit)
}

/// Why a number of late acknowledgements on either side of the limit tells nothing by its middle alone.
fn acks_untold(f: &Facts) -> Option<Evidence> {
    let (acks, limit) = (f.delayed_acks?, MANY_DELAYED.value);
    let [low, high] = counts::rate(acks, f.transactions);
    let untold = low <= limit && high > limit;
    untold.then(|| {
        Evidence::figure(Metric::DelayedAcks, acks)
            .within([low, high])
            .beside(limit)
            .undecided()
    })
}

/// Late acknowledgements now and then are usual; one in three transactions is a pattern.
fn acks_delayed(f: &Facts) -> Option<bool> {
    f.delayed_acks.map(|n| n > MANY_DELAYED.value)
}

pub(super) fn shaping(f: &Facts) -> Option<Verdict> {
    let retransmits = f.known(name::TCP_RETRANSMITS);
    let rates = f
        .known(name::NET_IN_MBIT_S)
        .zip(f.known(name::NET_OUT_MBIT_S))
        .map(|(i, o)| {
            let peak_in = f.known(name::NET_IN_PEAK_MBIT_S).unwrap_or(i);
            let peak = f.known(name::NET_OUT_PEAK_MBIT_S).unwrap_or(o).max(peak_in);
            [
                Evidence::figure(Metric::NetworkIn, i),
                Evidence::figure(Metric::NetworkOut, o),
                Evidence::figure(Metric::NetworkPeak, peak),
            ]
        });
    let lost = f.drops.zip(retransmits).map(|(d, r)| {
        [
            Evidence::figure(Metric::PacketsDropped, d),
            Evidence::figure(Metric::SegmentsSentAgain, r),
        ]
    });
    let evidence: Vec<Evidence> = on_the_way(f)
        .into_iter()
        .chain(rates.into_iter().flatten())
        .chain(lost.into_iter().flatten())
        .collect();
    if evidence.is_empty() {
        return None;
    }
    // What tells it from late acknowledgements is not known, and there is something to tell.
    let share = share_of(f, id::NETWORK_SHAPING);
    if !dropped(f) && acks_delayed(f).is_none() && share.is_some_and(|s| s.high >= LIKELY) {
        return None;
    }
    // What is queued and not dropped is held up as well: without followed requests only a network that limits nothing
    // is ruled out.
    let free =
        f.drops.is_some() && retransmits.is_some() && f.known(name::NET_SHAPERS) == Some(0.0);
    match judged(
        f,
        share,
        dropped(f) || acks_delayed(f) == Some(false),
        dropped(f),
        evidence.clone(),
    ) {
        None if free => doubted(f, None, may_be_lost(f), ruled_out(evidence)),
        verdict => doubted(f, share, acks_untold(f), verdict),
    }
}

pub(super) fn delay(f: &Facts) -> Option<Verdict> {
    let acks = f.delayed_acks?;
    let counted = Evidence::figure(Metric::DelayedAcks, acks);
    let evidence: Vec<Evidence> = on_the_way(f).into_iter().chain([counted]).collect();
    let delayed = acks_delayed(f) == Some(true) && !dropped(f);
    let share = share_of(f, id::NETWORK_DELAY);
    match judged(f, share, delayed, delayed, evidence.clone()) {
        None => doubted(f, None, acks_untold(f), ruled_out(evidence)),
        verdict => doubted(f, share, acks_untold(f), verdict),
    }
}

/// A handshake that finds the queue full is repeated after a second: what that costs lies outside of what is followed.
pub(super) fn accept_queue(f: &Facts) -> Option<Verdict> {
    let listen = f
        .known(name::TCP_LISTEN_OVERFLOWS)
        .into_iter()
        .chain(f.known(name::TCP_LISTEN_DROPS))
        .reduce(f64::max);
    let overflows = sum([listen, f.known(name::TCP_REQUEST_QUEUE_DROPS)])?;
    let accept = f
        .known(name::ACCEPT_QUEUE_MAX)
        .zip(f.known(name::ACCEPT_BACKLOG));
    let mut evidence = vec![Evidence::figure(Metric::QueueOverflows, overflows)];
    evidence
        .extend(accept.map(|(most, may)| Evidence::figure(Metric::AcceptQueue, most).out_of(may)));
    // The kernel counts overflows for all of the host.
    if overflows < 1.0 || accept.is_some_and(|(_, may)| may <= 0.0) {
        return ruled_out(evidence);
    }
    let outside = f.followed.as_ref().and_then(|followed| followed.outside);
    evidence.extend((f.stalled > 0.0).then(|| Evidence::figure(Metric::Stalled, f.stalled)));
    evidence.extend(outside.map(|share| Evidence::figure(Metric::OutsideOfFollowed, share)));
    let share = f.share(&[Place::OnTheWay]).map(|mut share| {
        // Each overflow costs about as much: what they cost together is as uncertain as their number.
        let lost = f.stalled.max(outside.unwrap_or(0.0));
        let [low, high] = counts::interval(overflows).map(|n| lost * n / overflows);
        add(
            &mut share,
            &Share {
                seconds: 0.0,
                share: lost,
                low,
                high,
            },
        );
        Share {
            share: share.share.min(1.0),
            low: share.low.min(1.0),
            ..share
        }
    });
    judged(f, share, true, true, evidence)
}

pub(super) fn peer(f: &Facts) -> Option<Verdict> {
    let share = share_of(f, id::PEER_SLOW)?;
    let mut evidence = vec![Evidence::share(Metric::PeerWait, share)];
    // Of a process that was seen it is known what it did meanwhile; of one that was not, the way there may be slow.
    let seen = f
        .share(&[Place::PeerProcess])
        .filter(|seen| seen.share > share.share - seen.share);
    let place = if seen.is_some() {
        Place::PeerProcess
    } else {
        Place::Peer
    };
    evidence.extend(told(f.place(place)));
    let proof = seen.is_some() || acks_delayed(f) != Some(true);
    let verdict = judged(f, Some(share), proof, false, evidence);
    if seen.is_some() {
        return verdict;
    }
    without(f, &[name::TCP_DELAYED_ACKS], id::NETWORK_DELAY, verdict)
}

/// Major faults under memory pressure. A major fault is also how a program's own code is first read: only many of them,
/// under pressure, are paging.
fn pages_in(f: &Facts) -> bool {
    f.major_per_s.is_some_and(|n| n > MAJOR_FAULTS.value)
        && f.memory_pressure
            .is_some_and(|share| share > MEMORY_PRESSURE.value)
}

/// Whether what a server that flushes nothing waits for the disk for is pages that lack of memory took away: the kernel
/// counts a wait as memory pressure where it is for a page that was there before.
fn reads_again(f: &Facts) -> bool {
    pages_in(f) && f.syncs == Some(0.0)
}

pub(super) fn memory_limit(f: &Facts) -> Option<Verdict> {
    let swapped =
        sum([name::MEMORY_SWAP_IN_PAGES, name::MEMORY_SWAP_OUT_PAGES].map(|name| f.known(name)));
    let swapped = swapped.and_then(|n| f.per_second(n));
    let figure = |metric, value: Option<f64>| value.map(|value| Evidence::figure(metric, value));
    let limited = |(most, used): (f64, f64)| {
        [
            Evidence::figure(Metric::MemoryLimit, most),
            Evidence::figure(Metric::MemoryUsed, used / most.max(1.0)),
        ]
    };
    let limits = f
        .known(name::CGROUP_MEMORY_LIMIT_BYTES)
        .zip(f.known(name::CGROUP_MEMORY_USED_BYTES))
        .map(limited);
    let mut evidence: Vec<Evidence> = part(f, &[Place::Memory], Metric::MemoryWait)
        .into_iter()
        .chain(figure(Metric::PagesSwapped, swapped))
        .chain(figure(Metric::MajorFaults, f.major_per_s))
        .chain(figure(Metric::MemoryPressure, f.memory_pressure))
        .chain(limits.into_iter().flatten())
        .collect();
    if evidence.is_empty() {
        return None;
    }
    let pressure = f.memory_pressure.unwrap_or(0.0);
    let paging = swapped.is_some_and(|n| n > PAGES_SWAPPED.value) || pages_in(f);
    let share = if reads_again(f) {
        evidence.extend(part(f, &WITH_THE_DISK, Metric::MemoryAndDiskWait));
        f.share(&WITH_THE_DISK)
    } else {
        share_of(f, id::MEMORY_LIMIT)
    };
    // What was not read clears nobody.
    let read = swapped.is_some() && f.major_per_s.is_some();
    match judged(
        f,
        share,
        true,
        paging || pressure > LIKELY,
        evidence.clone(),
    ) {
        None if read => {
            // By the second: so many pages or faults of all of the time.
            let most = |rate: Option<f64>| {
                rate.map_or(0.0, |n| counts::interval_of_rate(n, f.elapsed_s)[1])
            };
            let doubt =
                reaches(Metric::PagesSwapped, most(swapped), PAGES_SWAPPED.value).or_else(|| {
                    let pressed = f
                        .memory_pressure
                        .is_some_and(|share| share > MEMORY_PRESSURE.value);
                    reaches(Metric::MajorFaults, most(f.major_per_s), MAJOR_FAULTS.value)
                        .filter(|_| pressed)
                });
            doubted(f, None, doubt, ruled_out(evidence))
        }
        verdict => verdict,
    }
}

/// Where the time of a request goes that lacks memory and waits for its pages.
const WITH_THE_DISK: [Place; 4] = [
    Place::Memory,
    Place::DiskOwn,
    Place::DiskBesideOthers,
    Place::DiskDevice,
];

pub(super) fn page_size(f: &Facts) -> Option<Verdict> {
    let faults = Evidence::figure(Metric::MinorFaults, f.each(name::SERVER_FAULTS_MINOR)?);
    Some(Verdict {
        status: Status::NotObserved,
        share: 0.0,
        evidence: vec![faults, Evidence::of(Metric::PageSizeNeedsComparison)],
        told_of: None,
    })
}
