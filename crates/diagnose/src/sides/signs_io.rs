//! What tells the causes of disks, networks, locks and clients from their neighbours.

use fingerpost_record::cause::thresholds::{
    CLIENT_DOES_MORE, CLIENT_FULL, DEARER_SYNC, DELAYED_ACK, DISK_BUSY, DISK_IDLE, HANDSHAKE_AGAIN,
    MANY_DELAYED, MANY_OVERFLOWS, MORE_BESIDE, MORE_OF_A_COUNT, MOST_OF_CHANGE, MOST_PASSES,
    OTHERS_BYTES, SAME_COST, SENT_AGAIN, TWICE,
};
use fingerpost_record::reading::{Name, name};
use fingerpost_record::{Component, Evidence, Layer, Metric, Quantity};

use super::clues::Clues;
use super::fitting::{followed, grows, higher, is_good_part, set_now};
use super::flushes::{Cost, flush_cost, more_of_the_same};
use super::growth::{self, Growth, Pair};
use super::let_go::{self, shapers};
use super::sign::Sign::{self, Against, Fits, NotGrown, Perhaps, Unknown};
use super::sign::Told;
use crate::judging::LIKELY;
use crate::places::{Kind, Place};

pub(super) fn disk_contention(clues: &Clues) -> Sign {
    match followed(
        clues,
        &[Place::DiskBehindOthers, Place::DiskBesideOthers],
        Metric::DiskOthers,
    ) {
        Some(fits @ Fits(_)) if !always_beside(clues) => return fits,
        Some(sign) => {
            // Writes that the kernel does later are nobody's: in a device that others keep busy, more time is theirs as
            // well.
            let device = followed(
                clues,
                &[Place::DiskDevice, Place::DiskBesideOthers],
                Metric::DiskDevice,
            );
            if !matches!(device, Some(Fits(_))) {
                return sign;
            }
        }
        None => {}
    }
    let Some(others) = clues.total(name::OTHER_DISK_BYTES) else {
        return Unknown;
    };
    let told = vec![clues.told(Metric::OtherDiskBytes, others)];
    let cost = flush_cost(clues);
    let slower = cost.is_none_or(|cost| cost.times > SAME_COST.value);
    if others.ratio() > TWICE.value && others.slow > OTHERS_BYTES.value && slower {
        return Fits(told);
    }
    // Bytes are no events. All of them were counted, so that next to none are none.
    growth::against(
        told,
        others.slow <= OTHERS_BYTES.value
            || cost.is_some_and(|cost| cost.at_most <= SAME_COST.value),
    )
}

/// Whether others' I/O was beside ours on the faster side nearly as much, and none of it before ours.
fn always_beside(clues: &Clues) -> bool {
    let behind = clues
        .places(&[Place::DiskBehindOthers])
        .map_or(0.0, Pair::more);
    let (Some(beside), Some(alone)) = (
        clues.places(&[Place::DiskBesideOthers]),
        clues.places(&[Place::DiskDevice]),
    ) else {
        return false;
    };
    let part = |beside: f64, alone: f64| {
        if beside > 0.0 {
            beside / (beside + alone)
        } else {
            0.0
        }
    };
    behind < beside.more()
        && part(beside.slow, alone.slow) < part(beside.fast, alone.fast) + MORE_BESIDE.value
}

pub(super) fn throttle(clues: &Clues) -> Sign {
    if set_now(clues, name::CGROUP_DISK_LIMITS) {
        return Fits(vec![Evidence::of(Metric::DiskLimitOnSlowerSide)]);
    }
    if let Some(sign) = followed(clues, &[Place::DiskHeld], Metric::DiskHeld) {
        return sign;
    }
    if let Some(Cost { times, at_most }) = flush_cost(clues)
        && times < DEARER_SYNC.value
    {
        let told = vec![
            Evidence::figure(Metric::FlushCost, times),
            Evidence::of(Metric::NoDiskLimitOnSlowerSide),
        ];
        return growth::against(told, at_most < DEARER_SYNC.value);
    }
    let Some(busy) = clues.a_second(name::DISK_BUSY_SECONDS) else {
        return Unknown;
    };
    let told = vec![Evidence::figure(Metric::DiskBusy, busy)];
    if busy < DISK_BUSY.value && !disk_contention(clues).speaks() {
        Fits(told)
    } else {
        // A time has no events: how sure it is nobody knows.
        NotGrown(told, None)
    }
}

pub(super) fn disk_latency(clues: &Clues) -> Sign {
    let places = [Place::DiskDevice, Place::DiskBesideOthers, Place::DiskOwn];
    if let Some(sign) = followed(clues, &places, Metric::DiskDeviceAndQueue) {
        return match (sign, more_of_the_same(clues)) {
            (Fits(told), Some((why, surely))) => growth::against([told, why].concat(), surely),
            (sign, _) => sign,
        };
    }
    let (busy, cost) = (clues.a_second(name::DISK_BUSY_SECONDS), flush_cost(clues));
    let flush: Told = cost
        .map(|cost| Evidence::figure(Metric::FlushCost, cost.times))
        .into_iter()
        .collect();
    let of_time = |busy| vec![Evidence::figure(Metric::DiskBusy, busy)];
    match (busy, cost) {
        (Some(busy), _) if busy >= DISK_BUSY.value => Fits([of_time(busy), flush].concat()),
        (_, Some(cost)) if cost.times > SAME_COST.value => Fits(flush),
        (_, Some(cost)) => growth::against(flush, cost.at_most <= SAME_COST.value),
        // A time has no events: that it was short clears only where it was next to none.
        (Some(busy), None) => growth::against(of_time(busy), busy < DISK_IDLE.value),
        (None, None) => Unknown,
    }
}

/// A count that costs so many seconds each: whether its growth makes most of the time that transactions take longer.
/// One that makes less, and more than next to nothing, does not clear it: each may have cost more than the least.
fn costs(clues: &Clues, name: Name, each: f64, metric: Metric) -> Sign {
    let Some(pair) = clues.per_transaction(name) else {
        return Unknown;
    };
    let change = clues.turn().more();
    let of_change = |more: f64| {
        if change > 0.0 {
            more.max(0.0) * each / change
        } else {
            0.0
        }
    };
    let part = of_change(pair.more());
    let counted = clues.growth(name);
    let told = vec![
        clues
            .told(metric, pair)
            .counted_in(Quantity::PerTransaction),
        Evidence::figure(Metric::PartByCount, part.min(1.0)).out_of(each),
    ];
    match part {
        most if pair.ratio() > MORE_OF_A_COUNT.value && most >= MOST_OF_CHANGE.value => {
            // What held these transactions up is counted whole, however likely it was: that another run may have had
            // less of it is in the interval of the row.
            Fits(told)
        }
        some if some >= LIKELY => NotGrown(told, None),
        _ => growth::against(
            told,
            counted.is_some_and(|count| of_change(count.more_at_most()) < LIKELY),
        ),
    }
}

/// The kernel counts the overflows of all of the host: few that others have, and that cost little, are no matter of
/// ours.
pub(super) fn accept_queue(clues: &Clues) -> Sign {
    if let Some(told) = not_let_in(clues) {
        return Fits(vec![told]);
    }
    let many = clues
        .per_transaction(name::TCP_LISTEN_OVERFLOWS)
        .is_some_and(|pair| pair.slow >= MANY_OVERFLOWS.value);
    match costs(
        clues,
        name::TCP_LISTEN_OVERFLOWS,
        HANDSHAKE_AGAIN.value,
        Metric::QueueOverflows,
    ) {
        Fits(told) => Fits(told),
        _ if many => grows(
            clues,
            name::TCP_LISTEN_OVERFLOWS,
            MORE_OF_A_COUNT.value,
            Metric::QueueOverflows,
        ),
        sign => sign,
    }
}

/// Clients that wait to be let in, where that makes most of the time that transactions take longer and the queue was
/// full: by Little's law their mean number, times the time, divided by the transactions, is what a transaction waits
/// so. A handshake that was refused is tried again after one second, two, four: one overflow may keep a client out for
/// longer than anybody looks.
fn not_let_in(clues: &Clues) -> Option<Evidence> {
    let (clients, each) = (
        clues.total(name::CONNECTING_MEAN)?,
        clues.per_transaction(name::ELAPSED_SECONDS)?,
    );
    let waited = Pair {
        fast: clients.fast * each.fast,
        slow: clients.slow * each.slow,
    };
    let overflows = clues
        .total(name::TCP_LISTEN_OVERFLOWS)
        .is_some_and(|p| p.slow > p.fast);
    let backlog = clues.total(name::ACCEPT_BACKLOG).filter(|b| b.slow > 0.0);
    let full = backlog
        .zip(clues.total(name::ACCEPT_QUEUE_MAX))
        .is_some_and(|(may, most)| most.slow >= may.slow);
    // A queue that is shorter than the number of clients is full between two looks as well.
    let shorter = backlog
        .filter(|may| may.slow < may.fast)
        .zip(clues.total(name::STEP_CLIENTS));
    let short = shorter.is_some_and(|(may, clients)| may.slow < clients.slow);
    let most =
        waited.more() >= MOST_OF_CHANGE.value * clues.turn().more().max(0.0) && waited.more() > 0.0;
    (most && (overflows || full || short)).then(|| clues.told(Metric::LetInWait, waited))
}

/// Packets that were lost, more of them on the slower side. Segments are sent again, too, where their acknowledgement
/// comes late (tail loss probes, RFC 8985): that is a loss only where they are many beside those. Whether there are
/// more for sure comes with it.
fn lost(clues: &Clues) -> Option<(Told, bool)> {
    let fits = |name, metric| match grows(clues, name, MORE_OF_A_COUNT.value, metric) {
        Fits(told) => Some((told, true)),
        Perhaps(told) => Some((told, false)),
        _ => None,
    };
    let more = |name| clues.per_transaction(name).map_or(0.0, Pair::more);
    let probes = more(name::TCP_RETRANSMITS) < MOST_OF_CHANGE.value * more(name::TCP_DELAYED_ACKS);
    fits(name::NET_DROPS, Metric::PacketsDropped)
        .or_else(|| fits(name::TCP_RETRANSMITS, Metric::SegmentsSentAgain).filter(|_| !probes))
}

/// Whether segments that were lost and sent again make the most of what transactions take longer: their requests
/// outlast the windows in which requests are followed.
pub(super) fn outlast_windows(clues: &Clues) -> bool {
    lost(clues).is_some()
        && costs(
            clues,
            name::TCP_RETRANSMITS,
            SENT_AGAIN.value,
            Metric::SegmentsSentAgain,
        )
        .speaks()
}

pub(super) fn delay(clues: &Clues) -> Sign {
    // Acknowledgements come late where segments are lost, too.
    match lost(clues) {
        Some((told, surely)) => growth::against(told, surely),
        // So often they are a pattern, however long each was.
        None if clues
            .per_transaction(name::TCP_DELAYED_ACKS)
            .is_some_and(|pair| pair.slow >= MANY_DELAYED.value) =>
        {
            grows(
                clues,
                name::TCP_DELAYED_ACKS,
                TWICE.value,
                Metric::DelayedAcks,
            )
        }
        None => costs(
            clues,
            name::TCP_DELAYED_ACKS,
            DELAYED_ACK.value,
            Metric::DelayedAcks,
        ),
    }
}

/// Calls that send: what a queueing discipline does with a packet is done in them, or in an interrupt after.
const SENDING: [&str; 7] = [
    "write", "writev", "send", "sendto", "sendmsg", "sendmmsg", "sendfile",
];

/// A part of a budget in which packets are sent.
pub(super) fn of_sending(_: Layer, part: &Component) -> bool {
    *part == Component::Interrupts || part.call().is_some_and(|call| SENDING.contains(&call))
}

/// A queueing discipline that limits or delays on the slower side only, where what it holds up takes a good part of
/// what is longer.
pub(super) fn shaped(clues: &Clues) -> Option<Told> {
    let shapers = shapers(clues)?;
    let held = clues
        .parts(|layer, part| of_sending(layer, part) || Kind::of(layer, part) == Kind::Network);
    is_good_part(clues, held.more()).then(|| {
        vec![
            clues.told(Metric::Shapers, shapers),
            clues.told(Metric::SendingAndWay, held),
        ]
    })
}

/// Whether that is a good part with its whole interval.
pub(super) fn surely_shaped(clues: &Clues) -> bool {
    let held = |layer: Layer, part: &Component| {
        of_sending(layer, part) || Kind::of(layer, part) == Kind::Network
    };
    clues.followed() && is_good_part(clues, clues.parts(held).more() - clues.width(held))
}

pub(super) fn shaping(clues: &Clues) -> Sign {
    if let Some((told, surely)) = lost(clues) {
        return growth::fits(told, surely);
    }
    if let Some(told) = shaped(clues).or_else(|| let_go::by_a_shaper(clues)) {
        return Fits(told);
    }
    // Nothing was lost, and a wait for acknowledgements is told apart by its length.
    match delay(clues) {
        Fits(told) => return Against(told),
        Perhaps(told) => return NotGrown(told, None),
        _ => {}
    }
    let on_the_way = followed(clues, &[Place::OnTheWay], Metric::OnTheWay);
    match on_the_way
        .unwrap_or_else(|| higher(clues, name::QUEUE_NETWORK_MEAN, Metric::BytesOnTheWay))
    {
        // Acknowledgements that come late would fit as well.
        Fits(_) if clues.total(name::TCP_DELAYED_ACKS).is_none() => Unknown,
        sign => sign,
    }
}

/// Another service that the path leads to.
pub(super) fn peer(clues: &Clues) -> Sign {
    followed(clues, &[Place::Peer, Place::PeerProcess], Metric::PeerWait).unwrap_or(Unknown)
}

pub(super) fn client_saturated(clues: &Clues) -> Sign {
    // Over several passes, the share of those in which it said so.
    if clues
        .total(name::STEP_CLIENT_SATURATED)
        .is_some_and(|p| p.slow > MOST_PASSES.value && p.fast < MOST_PASSES.value)
    {
        return Fits(vec![Evidence::of(Metric::ClientSaysLimitOnSlowerSide)]);
    }
    if let Some(told) = client_does_more(clues).or_else(|| client_stopped(clues)) {
        return Fits(told);
    }
    let Some(counted) = client_share(clues) else {
        return Unknown;
    };
    let share = counted.pair;
    let told = vec![clues.told(Metric::ClientCpus, share)];
    let full = |share: f64| share > CLIENT_FULL.value;
    let ([fast_low, fast_high], [slow_low, slow_high]) = (counted.fast(), counted.slow());
    match full(share.slow) && !full(share.fast) {
        true => growth::fits(told, full(slow_low) && !full(fast_high)),
        false => growth::against(told, !full(slow_high) || full(fast_low)),
    }
}

/// A load generator that does clearly more for each transaction than on the other side, by its CPU time, between
/// requests and in them: the most of the change is in its own work and in what waits for the CPUs that it has.
fn client_does_more(clues: &Clues) -> Option<Told> {
    let work = clues
        .per_transaction(name::CLIENT_CPU_SECONDS)
        .filter(|c| c.fast > 0.0 && c.ratio() > CLIENT_DOES_MORE.value)?;
    // Who is sent the same in more pieces reads more often: that is the server's doing.
    if clues
        .calls_per_transaction()
        .is_some_and(|calls| calls.ratio() * SAME_COST.value >= work.ratio())
    {
        return None;
    }
    let behind = clues.parts(|layer, part| {
        matches!(
            Kind::of(layer, part),
            Kind::ClientCpuClient | Kind::CpuClient
        )
    });
    let change = clues.turn().more();
    let more = work.more() + behind.more().max(0.0);
    (clues.followed() && change > 0.0 && more > MOST_OF_CHANGE.value * change).then(|| {
        vec![
            clues.told(Metric::ClientWork, work),
            clues.told(Metric::BehindClient, behind),
        ]
    })
}

/// A quota of the load generator's own, whose stops make the most of what transactions take longer: while it is
/// stopped, all of its clients wait. The kernel adds the stops up over CPUs.
pub(super) fn client_stopped(clues: &Clues) -> Option<Told> {
    let stopped = clues
        .total(name::CLIENT_THROTTLE_SECONDS)
        .filter(|p| p.slow > 0.0)?;
    let (elapsed, turn) = (clues.total(name::ELAPSED_SECONDS)?, clues.turn());
    let share = |stopped: f64, elapsed: f64| (stopped / elapsed.max(1e-9)).min(1.0);
    let (fast, slow) = (
        share(stopped.fast, elapsed.fast),
        share(stopped.slow, elapsed.slow),
    );
    let most = turn.more() > 0.0
        && slow * turn.slow - fast * turn.fast >= MOST_OF_CHANGE.value * turn.more();
    most.then(|| vec![Evidence::figure(Metric::ClientStopped, slow)])
}

/// The share of its CPUs that the load generator used.
fn client_share(clues: &Clues) -> Option<Growth> {
    let (cpu, elapsed, cpus) = (
        clues.total(name::CLIENT_CPU_SECONDS)?,
        clues.total(name::ELAPSED_SECONDS)?,
        clues.total(name::STEP_CLIENT_CPUS)?,
    );
    let of_all = Pair {
        fast: elapsed.fast * cpus.fast.max(1.0),
        slow: elapsed.slow * cpus.slow.max(1.0),
    };
    Some(clues.in_cpus(cpu, of_all))
}
