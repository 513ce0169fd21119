//! What is known of a slow host, and not of its peers, that takes the CPU from whatever runs there.
//!
//! Probes alone cannot tell these causes from a slow processor: each makes everything dearer. The hosts' descriptions can.

use fingerpost_compare::causes::groups::Group;
use fingerpost_record::{Host, Layer, Run};

/// A cause with its layer and the sentence that says why.
pub struct Named {
    /// The cause's name in the registry.
    pub cause: &'static str,
    /// Its layer.
    pub layer: Layer,
    /// What says so.
    pub evidence: String,
}

/// Whether a part of the system says anything of the CPU: what waits for a device or a network does not.
pub fn concerns(group: Group) -> bool {
    !matches!(group, Group::Storage | Group::Network)
}

/// The cause that takes the CPU on this host and on none of its peers.
pub fn cause(own: &Host, peers: &[Run]) -> Option<Named> {
    quota(own, peers).or_else(|| affinity(own, peers)).or_else(|| contention(own, peers))
}

fn quota(own: &Host, peers: &[Run]) -> Option<Named> {
    let quota = own.cgroup.cpu_quota?;
    let others = peers.iter().map(|run| run.host.cgroup.cpu_quota.unwrap_or(f64::INFINITY)).fold(f64::INFINITY, f64::min);
    if quota >= others {
        return None;
    }
    let beside = if others.is_finite() { format!("at least {others} on its peers") } else { "its peers have none".into() };
    Some(Named { cause: "cpu.quota", layer: Layer::Scheduler, evidence: format!("CPU quota: {quota} CPUs here, {beside}") })
}

fn affinity(own: &Host, peers: &[Run]) -> Option<Named> {
    let others = peers.iter().map(|run| run.host.cpu.count).min()?;
    (own.cpu.count > 0 && own.cpu.count < others).then(|| Named {
        cause: "cpu.affinity",
        layer: Layer::Scheduler,
        evidence: format!("CPUs allowed: {} here, at least {others} on its peers", own.cpu.count),
    })
}

/// Something else wants the CPUs all the time: before the run and after it more processes were runnable than there are CPUs, and on no
/// peer were as many.
fn contention(own: &Host, peers: &[Run]) -> Option<Named> {
    let runnable = |host: &Host| host.after.as_ref().map_or(host.before.runnable, |after| after.runnable.min(host.before.runnable));
    let here = runnable(own);
    let others = peers.iter().map(|run| runnable(&run.host)).max()?;
    (here > u64::from(own.cpu.count.max(1)) && here > others).then(|| Named {
        cause: "cpu.contention",
        layer: Layer::Scheduler,
        evidence: format!("runnable processes: {here} here before and after the run, at most {others} on its peers"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::fixture;

    #[test]
    fn what_takes_the_cpu_here_and_on_no_peer_is_named() {
        let mut peer = fixture::run();
        peer.host.cgroup.cpu_quota = None;
        (peer.host.cpu.count, peer.host.before.runnable, peer.host.after) = (4, 2, None);
        let peers = vec![peer.clone(); 3];
        let of = |change: &dyn Fn(&mut Host)| {
            let mut host = peer.host.clone();
            change(&mut host);
            cause(&host, &peers).map(|named| named.cause)
        };
        assert_eq!(of(&|_| {}), None);
        assert_eq!(of(&|host| host.cgroup.cpu_quota = Some(0.5)), Some("cpu.quota"));
        assert_eq!(of(&|host| host.cpu.count = 2), Some("cpu.affinity"));
        assert_eq!(of(&|host| host.before.runnable = 7), Some("cpu.contention"));
        // Busy at the beginning only.
        assert_eq!(of(&|host| (host.before.runnable, host.after) = (7, Some(Default::default()))), None);
        let mut all_have = vec![peer.clone(); 3];
        all_have.iter_mut().for_each(|run| run.host.cgroup.cpu_quota = Some(0.5));
        assert!(cause(&all_have[0].host, &all_have).is_none());
    }
}
