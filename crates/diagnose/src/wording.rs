//! What time goes to, as the end of a sentence: the one wording of it, for requests in the mean and for the slowest of
//! them.

use fingerpost_record::cause::label;
use fingerpost_record::paths::Leaf;
use fingerpost_record::{Finding, Layer, Paths};

use super::chain::{follows_from, overlap};
use super::places::{Place, name};

/// A component as the end of “spends its time …”, with who had what was waited for, from the leaf that has most of it.
pub fn doing(component: &str, leaf: Option<&Leaf>) -> String {
    let whom = leaf.map_or("", |l| l.whom.as_str());
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
        name::USER => "in the program's own code".into(),
        name::OTHER_CODE => format!("in another process's code{}", with("of")),
        name::OTHER_SLEEPING => format!("waiting for another process{}, which sleeps", of_whom()),
        name::OTHER_LOCK => format!(
            "waiting for another process{}, which waits for a lock",
            of_whom()
        ),
        name::CPU if whom == name::IDLE_CPU => "waiting for a CPU while one idles".into(),
        name::CPU => format!("waiting for a CPU{}", with("used by")),
        name::LOCK => format!("waiting for a lock{}", with("held by")),
        name::DISK => match leaf.map(Place::of) {
            Some(Place::DiskHeld) => "waiting for I/O that is held back before the queue".into(),
            Some(Place::DiskBehindOthers) => {
                format!("waiting in the disk's queue{}", with("behind"))
            }
            Some(Place::DiskBesideOthers) => format!("waiting for the disk{}", with("beside")),
            _ => "waiting for the disk".into(),
        },
        name::PEER => format!("waiting for another service{}", of_whom()),
        name::NOT_FOLLOWED => "where it could not be followed".into(),
        name::SLEEPING => "sleeping until a time that it set itself".into(),
        call if call.starts_with(name::KERNEL) => {
            format!("in the kernel, in the call {}", &call[name::KERNEL.len()..])
        }
        name::INTERRUPTS => "in interrupts".into(),
        "client user and kernel" => "in the client".into(),
        "client waiting for a CPU" => "where the client waits for a CPU".into(),
        "client waiting for itself" => "where the client waits for itself".into(),
        other => other.to_owned(),
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
    component: &str,
    weight: impl Fn(&Leaf) -> f64,
) -> String {
    let of_part = || {
        paths
            .leaves
            .iter()
            .filter(|l| Place::of(l).component(l) == (layer, component))
    };
    let mut sums: Vec<(&str, f64)> = Vec::new();
    for leaf in of_part() {
        match sums.iter_mut().find(|(whom, _)| *whom == leaf.whom) {
            Some((_, sum)) => *sum += weight(leaf),
            None => sums.push((&leaf.whom, weight(leaf))),
        }
    }
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    let Some(&(first, sum)) = sums.first() else {
        return doing(component, None);
    };
    let largest = of_part()
        .filter(|l| l.whom == first)
        .max_by(|a, b| weight(a).total_cmp(&weight(b)));
    let all: f64 = sums.iter().map(|(_, sum)| sum.max(0.0)).sum();
    if sum >= NEARLY_ALL * all || first.is_empty() {
        return doing(component, largest);
    }
    let large = |(whom, sum): &&(&str, f64)| {
        !whom.is_empty() && *whom != name::IDLE_CPU && *sum > (1.0 - NEARLY_ALL) * all
    };
    let named: Vec<&(&str, f64)> = sums.iter().filter(large).take(2).collect();
    let rest = all - named.iter().map(|(_, sum)| sum).sum::<f64>();
    let names: Vec<&str> = named.iter().map(|(whom, _)| *whom).collect();
    let whom = match rest > (1.0 - NEARLY_ALL) * all {
        true if names.is_empty() => return doing(component, None),
        true => format!("{} and others", names.join(", ")),
        false => names.join(" and "),
    };
    doing(
        component,
        largest.map(|l| Leaf { whom, ..l.clone() }).as_ref(),
    )
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Layer;
    use fingerpost_record::paths::Share;

    use super::*;

    #[test]
    fn shares_that_overlap_are_said_to() {
        let of = |cause: &str, share: f64, evidence: &[&str]| Finding {
            cause: cause.into(),
            layer: Layer::Application,
            status: fingerpost_record::Status::Suspected,
            share,
            evidence: evidence.iter().map(|line| (*line).to_owned()).collect(),
            relation: None,
        };
        let two = [of("cpu.speed", 0.75, &[]), of("network.shaping", 0.75, &[])];
        let told = overlapping(&two, Some(0.91)).unwrap();
        assert!(
            told.contains("overlap")
                && told.ends_with("Together they explain 91 % of the difference."),
            "{told}"
        );
        let told = overlapping(
            &[of("cpu.speed", 0.75, &[]), of("network.shaping", 0.5, &[])],
            None,
        )
        .unwrap();
        assert!(
            told.contains("overlap") && !told.contains("Together"),
            "{told}"
        );
        assert_eq!(overlapping(&two[..1], None), None);
        let chain = [
            of("app.work", 0.74, &[]),
            of(
                "cpu.saturated",
                0.88,
                &["it follows from app.work (more work), which comes first"],
            ),
        ];
        assert_eq!(
            overlapping(&chain, None),
            None,
            "a request's consequence says itself what it is"
        );
        let one = [
            of("app.lock", 0.18, &[]),
            of("cpu.speed", 0.1, &[]),
            of("app.query_cache", 0.18, &[]),
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
            relation: None,
        };
        let told = |found: Finding| unexplained(&[found]);
        assert_eq!(
            told(of(0.0, fingerpost_record::Status::Suspected)),
            "unexplained or of a cause whose share is not known"
        );
        assert_eq!(
            told(of(0.3, fingerpost_record::Status::Suspected)),
            "unexplained"
        );
        assert_eq!(
            told(of(0.0, fingerpost_record::Status::Cleared)),
            "unexplained"
        );
    }

    #[test]
    fn who_had_it_is_named_where_somebody_did() {
        let leaf = |component: &str, whom: &str| Leaf {
            layer: Layer::Storage,
            component: component.into(),
            whom: whom.into(),
            chain: Vec::new(),
            all: Share::default(),
            middle: Share::default(),
            slow: Share::default(),
        };
        for (component, leaf, told) in [
            (
                name::CPU,
                leaf(name::CPU, "stress"),
                "waiting for a CPU used by stress",
            ),
            (
                name::CPU,
                leaf(name::CPU, name::IDLE_CPU),
                "waiting for a CPU while one idles",
            ),
            (
                name::DISK,
                leaf(name::DISK_HELD, ""),
                "waiting for I/O that is held back before the queue",
            ),
            (
                name::DISK,
                leaf(name::DISK_QUEUE, "backup"),
                "waiting in the disk's queue behind backup",
            ),
            (
                name::DISK,
                leaf(name::DISK_DEVICE, "backup"),
                "waiting for the disk beside backup",
            ),
            (name::LOCK, leaf(name::LOCK, ""), "waiting for a lock"),
            (
                "kernel: futex",
                leaf("kernel: futex", ""),
                "in the kernel, in the call futex",
            ),
            (name::MEMORY, leaf(name::MEMORY, ""), "waiting for memory"),
        ] {
            assert_eq!(doing(component, Some(&leaf)), told);
        }
        assert_eq!(doing(name::PEER, None), "waiting for another service");
    }

    #[test]
    fn a_wait_that_several_made_is_not_put_down_to_one_of_them() {
        let told = |shares: &[(&str, f64)]| {
            let leaf = |&(whom, share): &(&str, f64)| Leaf {
                layer: Layer::Scheduler,
                component: name::CPU.into(),
                whom: whom.into(),
                chain: Vec::new(),
                all: Share {
                    share,
                    ..Share::default()
                },
                middle: Share::default(),
                slow: Share::default(),
            };
            let paths = Paths {
                leaves: shares.iter().map(leaf).collect(),
                ..Paths::default()
            };
            doing_of(&paths, Layer::Scheduler, name::CPU, |l| l.all.share)
        };
        assert_eq!(
            told(&[("sh", 0.46), ("sh", 0.3), ("make", 0.02)]),
            "waiting for a CPU used by sh"
        );
        assert_eq!(
            told(&[("the client", 0.22), ("the server itself", 0.44)]),
            "waiting for a CPU used by the server itself and the client"
        );
        assert_eq!(
            told(&[("a", 0.3), ("b", 0.2), ("c", 0.1), ("d", 0.1)]),
            "waiting for a CPU used by a, b and others"
        );
        assert_eq!(
            told(&[("a", 0.5), ("b", 0.05), ("c", 0.05)]),
            "waiting for a CPU used by a and others"
        );
        assert_eq!(
            told(&[(name::IDLE_CPU, 0.5), ("b", 0.05), ("c", 0.04)]),
            "waiting for a CPU"
        );
        assert_eq!(told(&[]), "waiting for a CPU");
    }
}
