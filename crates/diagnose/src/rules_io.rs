//! The rules for disks, networks and memory.

use fingerpost_record::cause::thresholds::{
    DISK_BUSY, DISK_IDLE, DISK_IN_USE, MAJOR_FAULTS, MANY_SYNCS, MEMORY_PRESSURE,
    OTHERS_BESIDE_OURS, PAGES_SWAPPED,
};
use fingerpost_record::paths::Share;
use fingerpost_record::{Readings, Status, Unit, unit::significant};

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

fn bytes(b: f64) -> String {
    Unit::BytesPerSecond.format(b)
}

fn seconds(s: f64) -> String {
    Unit::Nanoseconds.format(s * 1e9)
}

fn figures(f: &Facts) -> Vec<String> {
    let mut found: Vec<String> = part(f, &DISK, "waiting for disks").into_iter().collect();
    found.extend(
        f.disk_busy
            .map(|busy| format!("the busiest device was busy {} of the time", percent(busy))),
    );
    found.extend(
        f.disk_per_s
            .map(|b| format!("the server read and wrote {}", bytes(b))),
    );
    found.extend(f.syncs.map(|n| {
        let each = f
            .sync_s
            .map_or(String::new(), |s| format!(" at {}", seconds(s)));
        format!("{} fsyncs per transaction{each}", significant(n))
    }));
    found
}

pub(super) fn throttle(f: &Facts) -> Option<Verdict> {
    let set = f.known("cgroup.disk_limits");
    let limits =
        set.map(|n| format!("{n} limits on block I/O are set on the server's control groups"));
    let share = share_of(f, "storage.throttle");
    let held = part(
        f,
        &[Place::DiskHeld],
        "I/O held back before it reached the device's queue",
    );
    let evidence: Vec<String> = held.into_iter().chain(limits).chain(figures(f)).collect();
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
    others > limit("storage.contention")
        && f.disk_per_s
            .is_none_or(|own| others > OTHERS_BESIDE_OURS.value * own)
        && f.disk_busy.is_none_or(|busy| busy > DISK_IN_USE.value)
}

/// Time in a device that others keep busy is theirs as much as the queue before it: it serves their requests between
/// ours.
pub(super) fn contention(f: &Facts) -> Option<Verdict> {
    let queued = f.share(&[Place::DiskBehindOthers]);
    let behind = queued.map(|share| {
        format!(
            "waiting in the device's queue behind others' I/O is {} of a request",
            interval(share)
        )
    });
    let beside = part(
        f,
        &[Place::DiskBesideOthers],
        "I/O in the device beside others' I/O",
    );
    let most = || mostly(f, "other.disk.", ".bytes");
    let moved = f
        .other_disk_per_s
        .map(|b| format!("other processes moved {}{}", bytes(b), most()));
    let whose = [Place::DiskBehindOthers, Place::DiskBesideOthers]
        .map(|place| told(f.place(place)))
        .concat();
    let chain = behind.into_iter().chain(beside).chain(whose).chain(moved);
    let evidence: Vec<String> = chain.chain(figures(f)).collect();
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
            let doubt = (others > limit("storage.contention")).then(|| NOT_FOLLOWED.to_owned());
            doubted(f, None, doubt, ruled_out(evidence))
        }
        (verdict, _) => verdict,
    }
}

pub(super) fn latency(f: &Facts) -> Option<Verdict> {
    let device = part(
        f,
        &[Place::DiskBesideOthers, Place::DiskDevice],
        "I/O in the device",
    );
    let evidence: Vec<String> = device
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
        busy && !others_compete(f) && f.known("cgroup.disk_limits").is_none_or(|n| n == 0.0),
        evidence.clone(),
    );
    match verdict {
        verdict if reads_again(f) => at_most_likely(
            verdict,
            "it was waited for to read pages again that lack of memory took away",
        ),
        None if f.disk_busy.is_some_and(|busy| busy < DISK_IDLE.value) => ruled_out(evidence),
        verdict => verdict,
    }
}

pub(super) fn durability(f: &Facts) -> Option<Verdict> {
    let (count, share) = (f.syncs?, share_of(f, "storage.durability")?);
    let each = f
        .sync_s
        .map_or(String::new(), |s| format!(", {} each", seconds(s)));
    let evidence = vec![format!(
        "{} fsyncs per transaction{each}",
        significant(count)
    )];
    let why = "whether they are more than before shows in a comparison of two runs";
    let doubt = reaches(
        "the number of fsyncs per transaction",
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
        why,
    )
}

fn on_the_way(f: &Facts) -> Option<String> {
    part(
        f,
        &[Place::OnTheWay],
        "data on the way between server and client",
    )
}

fn dropped(f: &Facts) -> bool {
    lost(f.drops, f.known("tcp.retransmits"), f.transactions)
}

/// Whether readings tell of packets that were dropped, or of more that were sent again than chance makes.
pub fn packets_lost(readings: &Readings) -> bool {
    lost(
        drops(readings),
        readings.known("tcp.retransmits"),
        readings.known("step.transactions").unwrap_or(0.0),
    )
}

fn lost(drops: Option<f64>, retransmits: Option<f64>, transactions: f64) -> bool {
    drops.is_some_and(|n| n > 0.0)
        || retransmits.is_some_and(|n| n > limit("network.shaping") * transactions.max(100.0))
}

/// Why segments that were sent again clear nobody by their middle alone.
fn may_be_lost(f: &Facts) -> Option<String> {
    let sent = f.known("tcp.retransmits").filter(|n| *n > 0.0)?;
    let limit = limit("network.shaping") * f.transactions.max(100.0);
    reaches(
        "the number of segments sent again",
        counts::interval(sent)[1],
        limit,
    )
}

/// Why a number of late acknowledgements on either side of the limit tells nothing by its middle alone.
fn acks_untold(f: &Facts) -> Option<String> {
    let (acks, limit) = (f.delayed_acks?, limit("network.delay"));
    let [low, high] = counts::rate(acks, f.transactions);
    let untold = low <= limit && high > limit;
    let [low, high, limit] = [low, high, limit].map(significant);
    let words = "with their interval delayed acknowledgements are";
    untold.then(|| {
        format!("{words} {low} to {high} per transaction, and from {limit} on they are a pattern")
    })
}

/// Late acknowledgements now and then are usual; one in three transactions is a pattern.
fn acks_delayed(f: &Facts) -> Option<bool> {
    f.delayed_acks.map(|n| n > limit("network.delay"))
}

pub(super) fn shaping(f: &Facts) -> Option<Verdict> {
    let retransmits = f.known("tcp.retransmits");
    let rates = f
        .known("net.in.mbit_s")
        .zip(f.known("net.out.mbit_s"))
        .map(|(i, o)| {
            let peak_in = f.known("net.in.peak.mbit_s").unwrap_or(i);
            let peak = f.known("net.out.peak.mbit_s").unwrap_or(o).max(peak_in);
            format!(
                "{} Mbit/s in and {} out, peak {}",
                significant(i),
                significant(o),
                significant(peak)
            )
        });
    let lost = f
        .drops
        .zip(retransmits)
        .map(|(d, r)| format!("{d} packets dropped, {r} segments sent again"));
    let evidence: Vec<String> = on_the_way(f).into_iter().chain(rates).chain(lost).collect();
    if evidence.is_empty() {
        return None;
    }
    // What tells it from late acknowledgements is not known, and there is something to tell.
    let share = share_of(f, "network.shaping");
    if !dropped(f) && acks_delayed(f).is_none() && share.is_some_and(|s| s.high >= LIKELY) {
        return None;
    }
    // What is queued and not dropped is held up as well: without followed requests only a network that limits nothing
    // is ruled out.
    let free = f.drops.is_some() && retransmits.is_some() && f.known("net.shapers") == Some(0.0);
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
    let counted = format!(
        "{} delayed acknowledgements per transaction",
        significant(acks)
    );
    let evidence: Vec<String> = on_the_way(f).into_iter().chain([counted]).collect();
    let delayed = acks_delayed(f) == Some(true) && !dropped(f);
    let share = share_of(f, "network.delay");
    match judged(f, share, delayed, delayed, evidence.clone()) {
        None => doubted(f, None, acks_untold(f), ruled_out(evidence)),
        verdict => doubted(f, share, acks_untold(f), verdict),
    }
}

/// A handshake that finds the queue full is repeated after a second: what that costs lies outside of what is followed.
pub(super) fn accept_queue(f: &Facts) -> Option<Verdict> {
    let listen = f
        .known("tcp.listen_overflows")
        .into_iter()
        .chain(f.known("tcp.listen_drops"))
        .reduce(f64::max);
    let overflows = sum([listen, f.known("tcp.request_queue_drops")])?;
    let accept = f.known("accept.queue.max").zip(f.known("accept.backlog"));
    let mut evidence = vec![format!(
        "{overflows} connections found the accept queue full"
    )];
    evidence.extend(accept.map(|(most, may)| format!("at most {most} of {may} waited in it")));
    // The kernel counts overflows for all of the host.
    if overflows < 1.0 || accept.is_some_and(|(_, may)| may <= 0.0) {
        return ruled_out(evidence);
    }
    let outside = f.followed.as_ref().and_then(|followed| followed.outside);
    evidence.extend((f.stalled > 0.0).then(|| {
        format!(
            "{} of the time no transaction completed",
            percent(f.stalled)
        )
    }));
    let lies = |share| {
        format!(
            "{} of the load generator's latency lies outside of what the server's connections show",
            percent(share)
        )
    };
    evidence.extend(outside.map(lies));
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
    let share = share_of(f, "peer.slow")?;
    let mut evidence = vec![format!(
        "waiting for another service is {} of a request",
        interval(share)
    )];
    evidence.extend(told(f.place(Place::Peer)));
    let verdict = judged(
        f,
        Some(share),
        acks_delayed(f) != Some(true),
        false,
        evidence,
    );
    without(
        f.delayed_acks.is_none(),
        "tcp.delayed_acks is not known: acknowledgements that come late would fit as well",
        verdict,
    )
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
    let mut evidence: Vec<String> = part(f, &[Place::Memory], "waiting for memory")
        .into_iter()
        .collect();
    let swapped = sum(["memory.swap_in.pages", "memory.swap_out.pages"].map(|name| f.known(name)));
    let swapped = swapped.and_then(|n| f.per_second(n));
    evidence.extend(swapped.map(|n| format!("{} pages swapped a second", significant(n))));
    evidence.extend(
        f.major_per_s
            .map(|n| format!("{} major faults a second", significant(n))),
    );
    evidence.extend(
        f.memory_pressure
            .map(|share| format!("memory pressure {} of the time", percent(share))),
    );
    let limited = |(most, used): (f64, f64)| {
        format!(
            "the limit is {}, of which {} was in use",
            Unit::Bytes.format(most),
            percent(used / most.max(1.0))
        )
    };
    evidence.extend(
        f.known("cgroup.memory.limit.bytes")
            .zip(f.known("cgroup.memory.used.bytes"))
            .map(limited),
    );
    if evidence.is_empty() {
        return None;
    }
    let pressure = f.memory_pressure.unwrap_or(0.0);
    let paging = swapped.is_some_and(|n| n > PAGES_SWAPPED.value) || pages_in(f);
    let share = if reads_again(f) {
        evidence.extend(part(
            f,
            &WITH_THE_DISK,
            "waiting for memory, and for the disk to read pages again,",
        ));
        f.share(&WITH_THE_DISK)
    } else {
        share_of(f, "memory.limit")
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
            let doubt = reaches(
                "the number of pages swapped a second",
                most(swapped),
                PAGES_SWAPPED.value,
            )
            .or_else(|| {
                let pressed = f
                    .memory_pressure
                    .is_some_and(|share| share > MEMORY_PRESSURE.value);
                reaches(
                    "the number of major faults a second",
                    most(f.major_per_s),
                    MAJOR_FAULTS.value,
                )
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
    let faults = significant(f.each("server.faults.minor")?);
    let figure = format!(
        "{faults} minor faults per transaction; what the page size costs shows in a comparison of two runs"
    );
    Some(Verdict {
        status: Status::NotObserved,
        share: 0.0,
        evidence: vec![figure],
        told_of: None,
    })
}
