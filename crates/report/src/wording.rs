//! What time goes to, as the end of a sentence, and what is said of shares: the one wording of it, for requests in the
//! mean and for the slowest of them.

use std::borrow::Cow;

use fingerpost_diagnose::doing::{Behind, Doing};
use fingerpost_diagnose::slow::{SlowOnes, WORTH_SAYING};
use fingerpost_diagnose::{Overlap, label};
use fingerpost_record::{Blocker, Component, Finding, Link, Unit};

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

/// Who had it, of several.
fn all_of(doing: &Doing) -> String {
    let names: Vec<Cow<str>> = doing.whom.iter().map(who).collect();
    if doing.others {
        format!("{} and others", names.join(", "))
    } else {
        names.join(" and ")
    }
}

/// As the end of “spends its time …”, with who had what was waited for.
pub fn doing(what: &Doing) -> String {
    let whom = &all_of(what);
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
    match &what.component {
        Component::UserCode => "in the program's own code".into(),
        Component::OtherCode => format!("in another process's code{}", with("of")),
        Component::OtherSleeping => {
            format!("waiting for another process{}, which sleeps", of_whom())
        }
        Component::OtherLock => format!(
            "waiting for another process{}, which waits for a lock",
            of_whom()
        ),
        Component::Cpu if what.whom == [Blocker::Idle] => {
            "waiting for a CPU while one idles".into()
        }
        Component::Cpu => format!("waiting for a CPU{}", with("used by")),
        Component::Lock => format!("waiting for a lock{}", with("held by")),
        Component::Disk => match what.behind {
            Some(Behind::Held) => "waiting for I/O that is held back before the queue".into(),
            Some(Behind::Queue) => {
                format!("waiting in the disk's queue{}", with("behind"))
            }
            Some(Behind::Beside) => format!("waiting for the disk{}", with("beside")),
            None => "waiting for the disk".into(),
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

/// What the slowest requests take longer for, in a sentence.
pub fn of_slowest(of: &SlowOnes) -> String {
    let (time, times) = (
        Unit::Nanoseconds.format(of.slow_seconds * 1e9),
        of.slow_seconds / of.middle_seconds,
    );
    let told = if times >= 3.0 {
        format!("{times:.0}")
    } else {
        format!("{times:.1}")
    };
    let head = format!("The slowest 1 % ({time}, {told} times the median)");
    if of.like_the_others {
        return format!("{head} are like the others.");
    }
    if of.longer.is_empty() {
        let least = WORTH_SAYING * 100.0;
        return format!(
            "{head} differ in many things, each of them less than {least:.0} % of the difference."
        );
    }
    let told: Vec<String> = of
        .longer
        .iter()
        .map(|longer| {
            let share = longer.of_difference * 100.0;
            format!("{} ({share:.0} % of the difference)", doing(&longer.doing))
        })
        .collect();
    format!("{head} take longer {}.", told.join(" and "))
}

/// What is said of shares that are not to be added up: of a difference with what the causes explain together, of the
/// time of requests (`explained` is none) why. Nothing where they exclude each other.
pub fn overlapping(findings: &[Finding], explained: Option<f64>) -> Option<String> {
    let why = match fingerpost_diagnose::overlapping(findings, explained)? {
        Overlap::Several => "what several of these causes may explain is counted for each of them",
        Overlap::Consequences => {
            "what follows from another cause is counted for that cause as well"
        }
        Overlap::OnePart(same) => {
            let names: Vec<&str> = same.iter().map(|f| label(&f.cause)).collect();
            return Some(format!(
                "The shares of {} overlap: they are of the same part of a request.",
                names.join(" and ")
            ));
        }
    };
    let together = explained.map_or(String::new(), |explained| {
        format!(
            " Together they explain {:.0} % of the difference.",
            explained * 100.0
        )
    });
    Some(format!("The shares overlap: {why}.{together}"))
}

#[cfg(test)]
mod tests {
    use fingerpost_diagnose::slow_ones;
    use fingerpost_record::fixture::followed;
    use fingerpost_record::paths::Leaf;
    use fingerpost_record::paths::Share;
    use fingerpost_record::{Layer, Paths, Relation, Side, WaitClass};

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
            assert_eq!(doing(&Doing::of(&component, Some(&leaf))), told);
        }
        assert_eq!(
            doing(&Doing::of(&Component::Peer, None)),
            "waiting for another service"
        );
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
            doing(&Doing::of_part(
                &paths,
                Layer::Scheduler,
                &Component::Cpu,
                |l| l.all.share,
            ))
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

    #[test]
    fn the_slowest_are_told_with_what_they_wait_for() {
        let found = slow_ones(&followed::slow_locks().paths[0]).unwrap();
        let told = of_slowest(&found);
        assert!(
            told.contains("take longer waiting for a lock held by mariadbd")
                && told.contains("times the median"),
            "{told}"
        );
        let alike = SlowOnes {
            like_the_others: true,
            ..found
        };
        assert!(of_slowest(&alike).ends_with("are like the others."));
    }
}
