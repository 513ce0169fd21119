//! What time goes to, as the end of a sentence: the one wording of it, for requests in the mean and for the slowest of
//! them.

use std::borrow::Cow;

use crate::causes::label;
use fingerpost_record::paths::Leaf;
use fingerpost_record::{Blocker, Component, Finding, Layer, Link, Paths};

use super::chain::{follows_from, overlap};
use super::places::Place;

/// Who had what was waited for.
pub fn who(blocker: &Blocker) -> Cow<'_, str> {
    match blocker {
        Blocker::Server => "the server itself".into(),
        Blocker::Client => "the client".into(),
        Blocker::Idle => "idle CPU".into(),
        Blocker::Thread(task) => match &task.group {
            Some(group) => format!("{} ({group})", task.name()).into(),
            None => task.name(),
        },
        Blocker::Peer(address) => address.as_str().into(),
    }
}

/// The same of a leaf; nothing where it is not known.
pub fn whom(blocker: Option<&Blocker>) -> Cow<'_, str> {
    blocker.map_or("".into(), who)
}

/// A chain of waits and what is at its end: `queue → lock → waiting for a CPU`.
pub fn chain(links: &[Link], end: &Component) -> String {
    let links = links.iter().map(|link| Cow::from(link.as_str()));
    links.chain([end.name()]).collect::<Vec<_>>().join(" → ")
}

/// A component as the end of “spends its time …”, with who had what was waited for, from the leaf that has most of it.
pub fn doing(component: &Component, leaf: Option<&Leaf>) -> String {
    let blocker = leaf.and_then(|l| l.blocker.as_ref());
    told(component, leaf, &whom(blocker))
}

/// The same with these words for who had it.
fn told(component: &Component, leaf: Option<&Leaf>, whom: &str) -> String {
    let blocker = leaf.and_then(|l| l.blocker.as_ref());
    let of_whom = || {
        if whom.is_empty() {
            String::new()
        } else {
            format!(" ({whom})")
        }
    };
    let with = |verb: &str| {
        if whom.is_empty() {
            String::new()
        } else {
            format!(" {verb} {whom}")
        }
    };
    match component {
        Component::UserCode => "in the program's own code".into(),
        Component::OtherCode => format!("in another process's code{}", with("of")),
        Component::OtherSleeping => {
            format!("waiting for another process{}, which sleeps", of_whom())
        }
        Component::OtherLock => format!(
            "waiting for another process{}, which waits for a lock",
            of_whom()
        ),
        Component::Cpu if blocker == Some(&Blocker::Idle) => {
            "waiting for a CPU while one idles".into()
        }
        Component::Cpu => format!("waiting for a CPU{}", with("used by")),
        Component::Lock => format!("waiting for a lock{}", with("held by")),
        Component::Disk => match leaf.map(Place::of) {
            Some(Place::DiskHeld) => "waiting for I/O that is held back before the queue".into(),
            Some(Place::DiskBehindOthers) => {
                format!("waiting in the disk's queue{}", with("behind"))
            }
            Some(Place::DiskBesideOthers) => format!("waiting for the disk{}", with("beside")),
            _ => "waiting for the disk".into(),
        },
        Component::Peer => format!("waiting for another service{}", of_whom()),
        Component::NotFollowed => "where it could not be followed".into(),
        Component::Sleeping => "sleeping until a time that it set itself".into(),
        Component::SystemCall(call) => format!("in the kernel, in the call {call}"),
        Component::OtherCalls => "in the kernel, in the call other calls".into(),
        Component::Interrupts => "in interrupts".into(),
        Component::ClientWork => "in the client".into(),
        Component::ClientCpu => "where the client waits for a CPU".into(),
        Component::ClientWait => {
            "waiting for a client, which waits for something of its own".into()
        }
        other => other.to_string(),
    }
}

/// What a rest is that no share explains: it may belong to a cause that is named without one.
pub fn unexplained(findings: &[Finding]) -> &'static str {
    let named = findings
        .iter()
        .any(|f| f.status.accuses() && f.share == 0.0);
    if named {
        "unexplained or of a cause whose share is not known"
    } else {
        "unexplained"
    }
}

/// What is said of shares that are not to be added up. Of a difference: where they are more than the causes explain
/// together, with that. Of the time of requests (`explained` is none): where several are of one part, or all are more
/// than the whole. Nothing where they exclude each other.
pub fn overlapping(findings: &[Finding], explained: Option<f64>) -> Option<String> {
    let roots: Vec<&Finding> = findings
        .iter()
        .filter(|f| follows_from(f).is_none())
        .collect();
    let Some(explained) = explained else {
        return of_requests(&roots);
    };
    if !overlap(findings, explained) {
        return None;
    }
    // Without consequences, whose shares are of their cause's parts, the others may be apart.
    let why = if overlap(roots, explained) {
        SEVERAL
    } else {
        "what follows from another cause is counted for that cause as well"
    };
    Some(format!(
        "The shares overlap: {why}. Together they explain {:.0} % of the difference.",
        explained * 100.0
    ))
}

/// Why shares overlap where nothing tells which of the causes has a part.
const SEVERAL: &str = "what several of these causes may explain is counted for each of them";

/// The same of the time of requests, where a consequence says itself that it is one. The same figure to its last digit
/// was not measured twice: such shares are of one part.
fn of_requests(roots: &[&Finding]) -> Option<String> {
    let accused: Vec<&Finding> = roots
        .iter()
        .copied()
        .filter(|f| f.status.accuses() && f.share > 0.0)
        .collect();
    let alike = |a: &Finding, b: &Finding| a.share.to_bits() == b.share.to_bits();
    let before = |n: usize| accused[..n].iter().any(|f| alike(f, accused[n]));
    let parts: Vec<&Finding> = (0..accused.len())
        .filter(|n| !before(*n))
        .map(|n| accused[n])
        .collect();
    if overlap(parts.iter().copied(), 1.0) {
        return Some(format!("The shares overlap: {SEVERAL}."));
    }
    let of = |part: &Finding| {
        accused
            .iter()
            .filter(|f| alike(f, part))
            .map(|f| label(&f.cause))
            .collect::<Vec<_>>()
    };
    let several = parts.into_iter().map(of).find(|names| names.len() > 1)?;
    Some(format!(
        "The shares of {} overlap: they are of the same part of a request.",
        several.join(" and ")
    ))
}

/// From this share on, one process is told as having had all that was waited for.
const NEARLY_ALL: f64 = 0.9;

/// A component as the end of “spends its time …”. Where several processes had what was waited for, it is not put down
/// to the first of them alone: the two with the largest weight are named, and that there are others.
pub fn doing_of(
    paths: &Paths,
    layer: Layer,
    component: &Component,
    weight: impl Fn(&Leaf) -> f64,
) -> String {
    let of_part: Vec<&Leaf> = paths
        .leaves
        .iter()
        .filter(|l| Place::of(l).component(l) == (layer, component.clone()))
        .collect();
    let mut sums: Vec<(Option<Blocker>, f64)> = Vec::new();
    for leaf in &of_part {
        let blocker = leaf.blocker.as_ref().map(Blocker::by_name);
        match sums.iter_mut().find(|(known, _)| *known == blocker) {
            Some((_, sum)) => *sum += weight(leaf),
            None => sums.push((blocker, weight(leaf))),
        }
    }
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    let Some((first, sum)) = sums.first() else {
        return doing(component, None);
    };
    let largest = of_part
        .iter()
        .copied()
        .filter(|l| l.blocker.as_ref().map(Blocker::by_name) == *first)
        .max_by(|a, b| weight(a).total_cmp(&weight(b)));
    let all: f64 = sums.iter().map(|(_, sum)| sum.max(0.0)).sum();
    if *sum >= NEARLY_ALL * all || first.is_none() {
        return doing(component, largest);
    }
    let named: Vec<(&Blocker, f64)> = sums
        .iter()
        .filter(|(_, sum)| *sum > (1.0 - NEARLY_ALL) * all)
        .filter_map(|(blocker, sum)| Some((blocker.as_ref()?, *sum)))
        .filter(|(blocker, _)| **blocker != Blocker::Idle)
        .take(2)
        .collect();
    let rest = all - named.iter().map(|(_, sum)| sum).sum::<f64>();
    let names: Vec<Cow<str>> = named.iter().map(|(blocker, _)| who(blocker)).collect();
    let whom = match rest > (1.0 - NEARLY_ALL) * all {
        true if names.is_empty() => return doing(component, None),
        true => format!("{} and others", names.join(", ")),
        false => names.join(" and "),
    };
    // Some CPU that idled is not what all of them had.
    let largest = largest.filter(|l| l.blocker != Some(Blocker::Idle));
    told(component, largest, &whom)
}

#[cfg(test)]
mod tests {
    use fingerpost_record::paths::Share;
    use fingerpost_record::{Layer, Relation, Side, WaitClass};

    use super::*;

    #[test]
    fn shares_that_overlap_are_said_to() {
        let of = |cause: &str, share: f64| Finding {
            cause: cause.into(),
            layer: Layer::Application,
            status: fingerpost_record::Status::Likely,
            share,
            evidence: Vec::new(),
            step: None,
            relation: None,
        };
        let two = [of("cpu.speed", 0.75), of("network.shaping", 0.75)];
        let told = overlapping(&two, Some(0.91)).unwrap();
        assert!(
            told.contains("overlap")
                && told.ends_with("Together they explain 91 % of the difference."),
            "{told}"
        );
        let told = overlapping(&[of("cpu.speed", 0.75), of("network.shaping", 0.5)], None).unwrap();
        assert!(
            told.contains("overlap") && !told.contains("Together"),
            "{told}"
        );
        assert_eq!(overlapping(&two[..1], None), None);
        let chain = [
            of("app.work", 0.74),
            Finding {
                relation: Some(Relation::FollowsFrom("app.work".into())),
                ..of("cpu.saturated", 0.88)
            },
        ];
        assert_eq!(
            overlapping(&chain, None),
            None,
            "a request's consequence says itself what it is"
        );
        let one = [
            of("app.lock", 0.18),
            of("cpu.speed", 0.1),
            of("app.query_cache", 0.18),
        ];
        assert_eq!(
            overlapping(&one, None).as_deref(),
            Some(
                "The shares of locks and query cache overlap: they are of the same part of a request."
            )
        );
        assert_eq!(
            overlapping(&one[..2], Some(0.28)),
            None,
            "parts that exclude each other"
        );
        let of_both = overlapping(&chain, Some(0.9)).unwrap();
        assert!(
            of_both.contains("follows from another cause") && !of_both.contains("several of these"),
            "{of_both}"
        );
    }

    #[test]
    fn a_rest_may_be_of_a_cause_without_a_share() {
        let of = |share: f64, status| Finding {
            cause: "memory.paging".into(),
            layer: Layer::Memory,
            status,
            share,
            evidence: Vec::new(),
            step: None,
            relation: None,
        };
        let told = |found: Finding| unexplained(&[found]);
        assert_eq!(
            told(of(0.0, fingerpost_record::Status::Likely)),
            "unexplained or of a cause whose share is not known"
        );
        assert_eq!(
            told(of(0.3, fingerpost_record::Status::Likely)),
            "unexplained"
        );
        assert_eq!(
            told(of(0.0, fingerpost_record::Status::RuledOut)),
            "unexplained"
        );
    }

    #[test]
    fn who_had_it_is_named_where_somebody_did() {
        let leaf = |class: WaitClass, blocker: Option<Blocker>| Leaf {
            class,
            side: Side::Server,
            blocker,
            chain: Vec::new(),
            all: Share::default(),
            middle: Share::default(),
            slow: Share::default(),
        };
        let thread = |name: &str| Some(Blocker::thread(name));
        for (component, leaf, told) in [
            (
                Component::Cpu,
                leaf(WaitClass::Cpu, thread("stress")),
                "waiting for a CPU used by stress",
            ),
            (
                Component::Cpu,
                leaf(WaitClass::Cpu, Some(Blocker::Idle)),
                "waiting for a CPU while one idles",
            ),
            (
                Component::Cpu,
                leaf(WaitClass::Cpu, thread("idle CPU")),
                "waiting for a CPU used by idle CPU",
            ),
            (
                Component::Disk,
                leaf(WaitClass::DiskHeld, None),
                "waiting for I/O that is held back before the queue",
            ),
            (
                Component::Disk,
                leaf(WaitClass::DiskQueue, thread("backup")),
                "waiting in the disk's queue behind backup",
            ),
            (
                Component::Disk,
                leaf(WaitClass::DiskDevice, thread("backup")),
                "waiting for the disk beside backup",
            ),
            (
                Component::Lock,
                leaf(WaitClass::Lock, None),
                "waiting for a lock",
            ),
            (
                Component::SystemCall("futex".into()),
                leaf(WaitClass::SystemCall("futex".into()), None),
                "in the kernel, in the call futex",
            ),
            (
                Component::Memory,
                leaf(WaitClass::Memory, None),
                "waiting for memory",
            ),
        ] {
            assert_eq!(doing(&component, Some(&leaf)), told);
        }
        assert_eq!(doing(&Component::Peer, None), "waiting for another service");
    }

    #[test]
    fn a_wait_that_several_made_is_not_put_down_to_one_of_them() {
        let told = |shares: &[(Blocker, f64)]| {
            let leaf = |(whom, share): &(Blocker, f64)| Leaf {
                class: WaitClass::Cpu,
                side: Side::Server,
                blocker: Some(whom.clone()),
                chain: Vec::new(),
                all: Share {
                    share: *share,
                    ..Share::default()
                },
                middle: Share::default(),
                slow: Share::default(),
            };
            let paths = Paths {
                leaves: shares.iter().map(leaf).collect(),
                ..Paths::default()
            };
            doing_of(&paths, Layer::Scheduler, &Component::Cpu, |l| l.all.share)
        };
        assert_eq!(
            told(&[
                (Blocker::thread("sh"), 0.46),
                (Blocker::thread("sh"), 0.3),
                (Blocker::thread("make"), 0.02)
            ]),
            "waiting for a CPU used by sh"
        );
        assert_eq!(
            told(&[(Blocker::Client, 0.22), (Blocker::Server, 0.44)]),
            "waiting for a CPU used by the server itself and the client"
        );
        assert_eq!(
            told(&[
                (Blocker::thread("a"), 0.3),
                (Blocker::thread("b"), 0.2),
                (Blocker::thread("c"), 0.1),
                (Blocker::thread("d"), 0.1)
            ]),
            "waiting for a CPU used by a, b and others"
        );
        assert_eq!(
            told(&[
                (Blocker::thread("a"), 0.5),
                (Blocker::thread("b"), 0.05),
                (Blocker::thread("c"), 0.05)
            ]),
            "waiting for a CPU used by a and others"
        );
        assert_eq!(
            told(&[
                (Blocker::Idle, 0.5),
                (Blocker::thread("b"), 0.05),
                (Blocker::thread("c"), 0.04)
            ]),
            "waiting for a CPU"
        );
        assert_eq!(told(&[]), "waiting for a CPU");
    }
}
