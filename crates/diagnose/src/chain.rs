//! Findings that are each other's consequences, told as one chain with the root first.

use crate::causes::cause;
use fingerpost_record::{Finding, Relation, Status};

/// Says of a finding that it is a consequence of another cause.
pub(crate) fn follow(f: &mut Finding, root: &str) {
    f.relation = Some(Relation::FollowsFrom(root.to_owned()));
}

/// Takes back what was said so: it is told anew with the order.
pub(crate) fn forget(f: &mut Finding) {
    if follows_from(f).is_some() {
        f.relation = None;
    }
}

/// A layer's part of which nothing tells the cause comes before a cause that something speaks for only where it is so
/// many times as large.
const UNNAMED: f64 = 2.0;

/// The share by which a finding is put in order.
fn standing(f: &Finding) -> f64 {
    if f.cause.ends_with(".unknown") {
        f.share / UNNAMED
    } else {
        f.share
    }
}

/// Orders findings: those that accuse by share, each followed by what is no more than its consequence; then those ruled out
/// in the order they were looked at, then those that were not observed. A consequence says what it follows from.
pub fn order(findings: &mut Vec<Finding>) {
    let (mut accused, rest): (Vec<Finding>, Vec<Finding>) = std::mem::take(findings)
        .into_iter()
        .partition(|f| f.status.accuses());
    accused.sort_by(|a, b| a.status.cmp(&b.status).then(b.share.total_cmp(&a.share)));
    let roots: Vec<Option<String>> = accused
        .iter()
        .map(|f| root(f, &accused).map(|r| r.cause.clone()))
        .collect();
    for (finding, root) in accused.iter_mut().zip(&roots) {
        if let Some(root) = root {
            follow(finding, root);
        }
    }
    // A consequence counts where its root stands, and only as that: the root alone may be what is to be repaired.
    let weight = |name: &str| -> (Status, f64) {
        let own = accused.iter().find(|f| f.cause == name);
        let after = accused
            .iter()
            .zip(&roots)
            .filter(|(_, r)| r.as_deref() == Some(name))
            .map(|(f, _)| f);
        let chain = own.into_iter().chain(after);
        chain.fold((Status::Likely, 0.0), |(status, share), f| {
            (status.min(f.status), f64::max(share, standing(f)))
        })
    };
    let mut heads: Vec<(&Finding, (Status, f64))> = accused
        .iter()
        .zip(&roots)
        .filter(|(_, r)| r.is_none())
        .map(|(f, _)| (f, weight(&f.cause)))
        .collect();
    heads.sort_by(|a, b| a.1.0.cmp(&b.1.0).then(b.1.1.total_cmp(&a.1.1)));
    for (head, _) in heads {
        findings.push(head.clone());
        let after = accused
            .iter()
            .zip(&roots)
            .filter(|(_, r)| r.as_deref() == Some(head.cause.as_str()));
        findings.extend(after.map(|(f, _)| f.clone()));
    }
    let (ruled_out, untold): (Vec<Finding>, Vec<Finding>) =
        rest.into_iter().partition(|f| f.status == Status::RuledOut);
    findings.extend(ruled_out);
    findings.extend(untold);
}

/// The accused that a finding is a consequence of and that itself is none: the one with the largest share.
fn root<'a>(of: &Finding, accused: &'a [Finding]) -> Option<&'a Finding> {
    let follows = |f: &Finding| cause(&f.cause).map_or(&[][..], |c| c.follows);
    let direct = accused.iter().filter(|f| {
        follows(of).contains(&f.cause.as_str()) && f.status <= of.status && f.share > 0.0
    });
    let nearest = direct.max_by(|a, b| a.share.total_cmp(&b.share))?;
    root(nearest, accused).or(Some(nearest))
}

/// What a finding is a consequence of.
pub fn follows_from(f: &Finding) -> Option<&str> {
    match &f.relation {
        Some(Relation::FollowsFrom(root)) => Some(root),
        Some(Relation::ToldOf(_)) | None => None,
    }
}

/// By how much shares that are told in whole per cents may exceed what they are parts of.
const ROUNDING: f64 = 0.015;

/// Whether shares add up to more than the causes explain together: then a part that several of them may explain is
/// counted for each.
pub fn overlap<'a>(of: impl IntoIterator<Item = &'a Finding>, explained: f64) -> bool {
    of.into_iter()
        .filter(|f| f.status.accuses())
        .map(|f| f.share)
        .sum::<f64>()
        > explained + ROUNDING
}

/// Why shares are not to be added up.
#[derive(Clone, Debug, PartialEq)]
pub enum Overlap<'a> {
    /// What several causes may explain is counted for each of them.
    Several,
    /// What follows from another cause is counted for that cause as well.
    Consequences,
    /// These, of one part of a request: the same figure to its last digit was not measured twice.
    OnePart(Vec<&'a Finding>),
}

/// Why shares are not to be added up. Of a difference, where they are more than the causes explain together. Of the time
/// of requests (`explained` is none), where several are of one part, or all are more than the whole; a consequence says
/// there itself that it is one. Nothing where they exclude each other.
pub fn overlapping(findings: &[Finding], explained: Option<f64>) -> Option<Overlap<'_>> {
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
    Some(if overlap(roots, explained) {
        Overlap::Several
    } else {
        Overlap::Consequences
    })
}

fn of_requests<'a>(roots: &[&'a Finding]) -> Option<Overlap<'a>> {
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
        return Some(Overlap::Several);
    }
    let of = |part: &Finding| -> Vec<&Finding> {
        accused.iter().copied().filter(|f| alike(f, part)).collect()
    };
    let several = parts.into_iter().map(of).find(|same| same.len() > 1)?;
    Some(Overlap::OnePart(several))
}

/// Whether a rest that no share explains may belong to a cause that is named without one.
pub fn named_without_share(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|f| f.status.accuses() && f.share == 0.0)
}

/// What is unexplained, beside shares as they are told: together causes have no less than the largest of these, and no
/// more than their sum. `unexplained` is what is left when each part that any of them moves is counted once; a share
/// may be told of other parts than those (of others that came, a whole layer's), or be bounded by another's.
pub fn unexplained_beside(findings: &[Finding], unexplained: f64) -> f64 {
    let shares = findings
        .iter()
        .filter(|f| f.status.accuses())
        .map(|f| f.share);
    let (largest, sum) = shares.fold((0.0, 0.0), |(largest, sum), share| {
        (f64::max(largest, share), sum + share)
    });
    unexplained
        .min(1.0 - largest)
        .max(1.0 - sum)
        .clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Layer;

    #[test]
    fn what_is_unexplained_fits_to_the_shares() {
        let mut found = [
            finding("cpu.contention", Status::Likely, 0.6),
            finding("storage.durability", Status::Confirmed, 0.3),
        ];
        let of = |found: &[Finding], unexplained: f64| {
            (unexplained_beside(found, unexplained) * 100.0).round()
        };
        assert_eq!(of(&found, 0.7), 40.0, "no cause has more than all of them");
        assert_eq!(
            of(&found, 0.2),
            20.0,
            "parts that both move are counted once"
        );
        assert_eq!(of(&found, 0.05), 10.0, "what no share tells is unexplained");
        found[0].share = 0.0;
        assert_eq!(
            of(&found, 0.05),
            70.0,
            "a share that is not known explains nothing"
        );
        found
            .iter_mut()
            .for_each(|f| f.status = Status::NotObserved);
        assert_eq!(of(&found, 0.05), 100.0, "nobody is named");
    }

    #[test]
    fn shares_overlap_where_their_sum_is_more_than_what_is_explained() {
        let mut found = [
            finding("cpu.speed", Status::Confirmed, 0.75),
            finding("network.shaping", Status::Likely, 0.16),
        ];
        assert!(!overlap(&found, 0.91), "disjoint");
        assert!(!overlap(&found, 0.9), "as far as rounding goes");
        found[1].share = 0.75;
        assert!(overlap(&found, 0.91));
        found[1].status = Status::RuledOut;
        assert!(!overlap(&found, 0.91), "who is ruled out has no share");
    }

    #[test]
    fn what_has_no_name_comes_first_only_where_it_is_twice_as_large() {
        let first = |unnamed: f64| {
            let of = |cause: &str, share: f64| Finding {
                cause: cause.into(),
                layer: Layer::Scheduler,
                status: Status::Likely,
                share,
                evidence: Vec::new(),
                step: None,
                relation: None,
            };
            let mut found = vec![
                of("scheduler.unknown", unnamed),
                of("storage.durability", 0.2),
            ];
            order(&mut found);
            found[0].cause.clone()
        };
        assert_eq!(first(0.3), "storage.durability");
        assert_eq!(first(0.5), "scheduler.unknown");
    }

    use super::*;

    fn finding(cause: &str, status: Status, share: f64) -> Finding {
        Finding {
            cause: cause.into(),
            layer: Layer::Application,
            status,
            share,
            evidence: Vec::new(),
            step: None,
            relation: None,
        }
    }

    #[test]
    fn a_consequence_comes_after_its_root_and_names_it() {
        let mut found = vec![
            finding("host.steal", Status::RuledOut, 0.0),
            finding("cpu.saturated", Status::Likely, 0.6),
            finding("app.wait", Status::Likely, 0.5),
            finding("app.work", Status::Likely, 0.2),
            finding("cpu.quota", Status::NotObserved, 0.0),
            finding("network.delay", Status::RuledOut, 0.0),
        ];
        order(&mut found);
        let names: Vec<&str> = found.iter().map(|f| f.cause.as_str()).collect();
        assert_eq!(
            names,
            [
                "app.work",
                "cpu.saturated",
                "app.wait",
                "host.steal",
                "network.delay",
                "cpu.quota"
            ]
        );
        let roots: Vec<Option<&str>> = found[..3].iter().map(follows_from).collect();
        assert_eq!(
            roots,
            [None, Some("app.work"), None],
            "a wait of another kind follows from nothing here"
        );
    }

    #[test]
    fn what_follows_is_told_by_the_data() {
        let mut found = vec![
            finding("cpu.saturated", Status::Likely, 0.6),
            finding("app.work", Status::Likely, 0.2),
        ];
        order(&mut found);
        assert_eq!(
            found[1].relation,
            Some(Relation::FollowsFrom("app.work".into()))
        );
        assert_eq!(follows_from(&found[1]), Some("app.work"));
        forget(&mut found[1]);
        assert_eq!(follows_from(&found[1]), None);
        // Words decide nothing of it.
        let words = "it follows from app.work (more work), which comes first";
        found[1]
            .evidence
            .push(fingerpost_record::Evidence::of(fingerpost_record::Metric::Text).saying(words));
        assert_eq!(follows_from(&found[1]), None);
        // What is told of another cause follows from nothing.
        let told = Finding {
            relation: Some(Relation::ToldOf("cpu.quota".into())),
            ..finding("cpu.affinity", Status::NotObserved, 0.0)
        };
        assert_eq!(follows_from(&told), None);
    }

    #[test]
    fn guilt_comes_first_and_a_suspect_is_no_root_of_the_confirmed() {
        let mut found = vec![
            finding("app.setting", Status::Likely, 0.9),
            finding("app.lock", Status::Confirmed, 0.3),
        ];
        order(&mut found);
        assert_eq!(found[0].cause, "app.lock");
        assert!(found[0].evidence.is_empty());
    }
}
