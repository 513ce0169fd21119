//! What one look at a running service can say of a finding: of some causes it tells the share, and not whether anything
//! is wrong.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Finding, Metric, Readings, Status};

use crate::packets_lost;

/// Above this share of idle time who waits for a CPU does so by where it was woken, not for a lack of CPUs. Ten
/// services with pauses of 10 to 40 ms between requests had 86 to 94 % (`bench/attach healthy`); beside hogs there was
/// 0 to 1 %.
const MOSTLY_IDLE: f64 = 0.5;

/// The finding of one look at a service, without an earlier run of it beside: what only such a run could tell is not
/// judged, and the evidence says why.
pub fn without_a_baseline(mut finding: Finding, totals: &Readings) -> Finding {
    if let Some(why) = not_told(&finding, totals) {
        finding.status = Status::NotObserved;
        finding.evidence.push(why);
    }
    finding
}

/// Causes that say what a service does for its requests: its own code, its calls.
pub fn is_its_work(cause: &str) -> bool {
    matches!(
        cause,
        id::APP_WORK | id::APP_CALLS | id::SYSCALL_ENTRY | id::PROCESS_CREATION
    )
}

/// Causes that its load makes, and of nobody that anything is wrong: its work, more load than CPUs, clients on the same
/// machine.
pub fn is_of_the_load(cause: &str) -> bool {
    is_its_work(cause) || matches!(cause, id::CPU_SATURATED | id::CLIENT_SATURATED)
}

/// Why one look tells of a cause's share but not whether anything is wrong; nothing where it does.
fn not_told(finding: &Finding, totals: &Readings) -> Option<Evidence> {
    if !finding.status.accuses() {
        return None;
    }
    let likely = finding.status == Status::Likely;
    let why = match finding.cause.as_str() {
        // A service that works is no wrong-doer; a baseline tells whether it works more than before.
        cause if likely && is_its_work(cause) => Metric::WorkNeedsBaseline,
        // What it asks others for takes its time, as does its own work.
        id::PEER_SLOW => Metric::PeerNeedsBaseline,
        // A client that has connected and sends late waits there as well as data that a network holds back.
        id::NETWORK_SHAPING if !holds_back(totals) => Metric::NetworkNeedsBaseline,
        // Where most of the machine idles, a thread that waits for a CPU has been woken on a busy one: nobody takes it
        // CPUs.
        id::CPU_CONTENTION | id::CLIENT_SATURATED if likely => {
            let idle = idle(totals).filter(|idle| *idle > MOSTLY_IDLE)?;
            return Some(Evidence::figure(Metric::NoLackOfCpus, idle));
        }
        _ => return None,
    };
    Some(Evidence::of(why))
}

/// The share of all CPUs' time that was idle.
fn idle(totals: &Readings) -> Option<f64> {
    let of = |names: &[&str]| {
        names
            .iter()
            .filter_map(|name| totals.known_as(&format!("cpu.{name}.seconds")))
            .sum::<f64>()
    };
    let all = of(&["user", "system", "interrupts", "idle", "iowait", "steal"]);
    (all > 0.0).then(|| of(&["idle", "iowait"]) / all)
}

/// Whether packets were dropped or sent again, or a queueing discipline of this host limits a rate.
fn holds_back(totals: &Readings) -> bool {
    packets_lost(totals) || totals.known(name::NET_SHAPERS).is_some_and(|set| set > 0.0)
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Layer, Observation};

    use super::*;

    fn told(cause: &str, status: Status, totals: &[(&str, f64)]) -> Status {
        let totals = totals
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect();
        let seen = Readings::of(&[Observation {
            observer: "step".into(),
            totals,
            ..Observation::default()
        }]);
        let finding = Finding {
            cause: cause.into(),
            layer: Layer::Cpu,
            status,
            share: 0.5,
            evidence: vec![],
            step: None,
            relation: None,
        };
        without_a_baseline(finding, &seen).status
    }

    #[test]
    fn what_only_a_baseline_could_tell_is_not_observed() {
        let likely = |cause| told(cause, Status::Likely, &[]);
        assert_eq!(
            (likely("app.work"), likely("cpu.contention")),
            (Status::NotObserved, Status::Likely)
        );
        assert_eq!(told("app.work", Status::Confirmed, &[]), Status::Confirmed);
        assert_eq!(
            told("peer.slow", Status::Confirmed, &[]),
            Status::NotObserved,
            "a proxy waits for its backend"
        );
        assert_eq!(told("peer.slow", Status::RuledOut, &[]), Status::RuledOut);
    }

    #[test]
    fn where_cpus_idle_nobody_lacks_one() {
        let beside = |idle| {
            told(
                "client.saturated",
                Status::Likely,
                &[("cpu.idle.seconds", idle), ("cpu.user.seconds", 4.0)],
            )
        };
        assert_eq!(
            (beside(6.0), beside(3.0)),
            (Status::NotObserved, Status::Likely)
        );
    }

    #[test]
    fn a_network_holds_data_back_where_something_shows_it() {
        let requests = ("step.transactions", 1000.0);
        let waited = |totals: &[(&str, f64)]| told("network.shaping", Status::Confirmed, totals);
        assert_eq!(
            waited(&[requests]),
            Status::NotObserved,
            "a client that sends late waits in the same place"
        );
        assert_eq!(
            waited(&[requests, ("tcp.retransmits", 5.0)]),
            Status::NotObserved
        );
        for proof in [
            ("tcp.retransmits", 20.0),
            ("net.drops", 1.0),
            ("tcp.backlog_drops", 1.0),
            ("net.shapers", 1.0),
        ] {
            assert_eq!(waited(&[requests, proof]), Status::Confirmed, "{proof:?}");
        }
    }
}
