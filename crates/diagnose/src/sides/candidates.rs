//! Holds every cause of the catalogue against one workload step that changed.
//!
//! A cause is **guilty** when the parts of the budget that it moves make up a good share of the change and its discriminator fits
//! or the slower run's own findings convict it; **suspected** when only one of those speaks for it; **cleared** when its parts did not grow or its
//! discriminator speaks against it. Each part of the budget is explained once: the first guilty cause in the catalogue's order takes
//! the parts that it moves, and a later one whose parts are all taken is at most suspected.

use fingerpost_record::{Finding, Layer, Status};

use super::catalogue::{CATALOGUE, Candidate, Sign, TAKES_THE_REST};
use super::clues::Clues;

/// A cause must make up this share of the change to be named.
const WORTH_NAMING: f64 = 0.1;

/// The guilty so far, each with its share of the change.
#[derive(Default)]
struct Taken(Vec<(&'static Candidate, f64)>);

impl Taken {
    fn by(&mut self, candidate: &'static Candidate, share: f64) {
        self.0.push((candidate, share));
    }

    /// Whether a part is explained already.
    fn has(&self, layer: Layer, part: &str) -> bool {
        self.0.iter().any(|(c, _)| (c.moves)(layer, part))
    }

    fn has_rest(&self) -> bool {
        self.0.iter().any(|(c, _)| TAKES_THE_REST.contains(&c.cause))
    }

    /// The smallest share among the guilty.
    fn least_share(&self) -> f64 {
        self.0.iter().map(|t| t.1).fold(f64::INFINITY, f64::min)
    }
}

/// What is known about one candidate.
struct Case {
    candidate: &'static Candidate,
    /// Of the change, what it moves.
    share: f64,
    /// Of that, what no other is guilty of.
    left: f64,
    sign: Sign,
    own: Option<Status>,
    evidence: Vec<String>,
}

/// By how much transactions became longer.
#[derive(Clone, Copy)]
struct Change {
    /// All of it, in seconds.
    seconds: f64,
    /// What of it no part of a budget has.
    rest: f64,
}

impl Change {
    /// A connection that finds the listen queue full is tried again after a second and more, which a window of events hardly ever holds
    /// from end to end: what the server's connections show is of those that were let in. Where the kernel counts that some were not,
    /// the load generator's own time outside of followed requests belongs to the change; elsewhere it may be anything that clients do
    /// between requests.
    fn of(clues: &Clues) -> Change {
        let refused = CATALOGUE.iter().filter(|c| TAKES_THE_REST.contains(&c.cause)).any(|c| matches!((c.sign)(clues), Sign::Fits(_)));
        let outside = clues.outside().filter(|_| refused).map_or(0.0, |pair| pair.more().max(0.0));
        Change { seconds: clues.wall().more() + outside, rest: clues.rest().more().max(0.0) + outside }
    }
}

/// The causes in order, those cleared last, and the share of the change that none of them explains.
pub fn judge(clues: &Clues) -> (Vec<Finding>, f64) {
    let change = Change::of(clues);
    if change.seconds <= 0.0 {
        return (Vec::new(), 0.0);
    }
    if !clues.have_parts() {
        return unfollowed(clues);
    }
    let mut taken = Taken::default();
    let mut findings: Vec<Finding> = CATALOGUE
        .iter()
        .filter_map(|candidate| {
            let mut case = Case::of(candidate, clues, change, &taken);
            let status = case.status()?;
            match status {
                Status::Guilty => taken.by(candidate, case.left),
                // What is suspected of parts that another is guilty of comes after it.
                Status::Suspected => case.share = case.share.min(taken.least_share()),
                Status::Cleared => {}
            }
            Some(case.finding(status))
        })
        .collect();
    fill_gaps(&mut findings, clues, change.seconds);
    super::order(&mut findings);
    let explained = explained(&findings, clues, change);
    (findings, (1.0 - explained).clamp(0.0, 1.0))
}

/// Where requests could not be followed on both sides, what tells a cause from its neighbours is all there is: it makes a cause suspected
/// or clears it, and how much of the change it makes is not known.
fn unfollowed(clues: &Clues) -> (Vec<Finding>, f64) {
    let unknown = "requests were not followed on both sides, so that its part of the change is not known; following them needs root, \
                   CAP_PERFMON or kernel.perf_event_paranoid=-1";
    let finding = |c: &Candidate| {
        let (status, evidence) = match (c.sign)(clues) {
            Sign::Fits(text) => (Status::Suspected, vec![text, unknown.to_owned()]),
            Sign::Against(text) => (Status::Cleared, vec![text]),
            Sign::Unknown => return None,
        };
        Some(Finding { cause: c.cause.into(), layer: c.layer, status, share: 0.0, evidence })
    };
    let mut findings: Vec<Finding> = CATALOGUE.iter().filter_map(finding).collect();
    super::order(&mut findings);
    (findings, 1.0)
}

impl Case {
    fn of(candidate: &'static Candidate, clues: &Clues, change: Change, taken: &Taken) -> Case {
        let moved = clues.parts(candidate.moves);
        let free = clues.parts(|layer, part| (candidate.moves)(layer, part) && !taken.has(layer, part));
        let rest = if TAKES_THE_REST.contains(&candidate.cause) { change.rest } else { 0.0 };
        let free_rest = if taken.has_rest() { 0.0 } else { rest };
        let share = |seconds: f64| (seconds / change.seconds).clamp(0.0, 1.0);
        let own = own_finding(candidate.cause, clues);
        let parts = format!("its part of a transaction: {} → {}", duration(moved.cheap), duration(moved.dear));
        let sign = (candidate.sign)(clues);
        Case { candidate, share: share(moved.more() + rest), left: share(free.more() + free_rest), sign, own, evidence: vec![parts] }
    }

    /// Nothing when there is neither a part nor a sign nor a record of it: then it was not looked at.
    fn status(&self) -> Option<Status> {
        let (large, free) = (self.share >= WORTH_NAMING, self.left >= WORTH_NAMING);
        match (&self.sign, self.own) {
            (Sign::Fits(_), _) | (Sign::Unknown, Some(Status::Guilty)) if free => Some(Status::Guilty),
            (Sign::Fits(_), _) if large => Some(Status::Suspected),
            (Sign::Against(_), _) => Some(Status::Cleared),
            (Sign::Unknown, Some(Status::Suspected)) if free => Some(Status::Suspected),
            (Sign::Unknown, _) if large => None,
            (Sign::Fits(_), _) => Some(Status::Cleared),
            (Sign::Unknown, _) => (self.evidence_of_absence()).then_some(Status::Cleared),
        }
    }

    /// A part that both budgets have and that did not grow clears a cause even without a sign.
    fn evidence_of_absence(&self) -> bool {
        self.share < WORTH_NAMING / 2.0
    }

    fn finding(self, status: Status) -> Finding {
        let mut evidence = match self.sign {
            Sign::Fits(text) | Sign::Against(text) => vec![text],
            Sign::Unknown => Vec::new(),
        };
        evidence.extend(self.evidence);
        let share = match status {
            Status::Guilty => self.left,
            Status::Suspected => self.share,
            Status::Cleared => 0.0,
        };
        Finding { cause: self.candidate.cause.into(), layer: self.candidate.layer, status, share, evidence }
    }
}

/// What the slower run's own findings say of a cause that the faster run does not have.
fn own_finding(cause: &str, clues: &Clues) -> Option<Status> {
    let of = |findings: &[Finding]| findings.iter().filter(|f| f.cause == cause && f.status != Status::Cleared).map(|f| f.status).min();
    let (dear, cheap) = (of(&clues.dear().steps.findings)?, of(&clues.cheap().steps.findings));
    cheap.is_none_or(|c| c > dear).then_some(dear)
}

/// A layer that grew and that nothing was recorded to tell apart: its causes are suspected together, as one.
fn fill_gaps(findings: &mut Vec<Finding>, clues: &Clues, change: f64) {
    for layer in [
        Layer::Scheduler,
        Layer::Application,
        Layer::Kernel,
        Layer::Memory,
        Layer::Storage,
        Layer::Network,
        Layer::Client,
        Layer::Cpu,
        Layer::Host,
    ] {
        let moved = clues.parts(|l, _| l == layer);
        let share = (moved.more() / change).clamp(0.0, 1.0);
        let named =
            findings.iter().any(|f| f.status != Status::Cleared && CATALOGUE.iter().any(|c| c.cause == f.cause && covers(c, layer, clues)));
        if share < WORTH_NAMING || named {
            continue;
        }
        let evidence = vec![
            format!("the {layer} layer's part of a transaction: {} → {}", duration(moved.cheap), duration(moved.dear)),
            "nothing that was recorded tells which of its causes it is".into(),
        ];
        findings.push(Finding { cause: format!("{layer}.unknown"), layer, status: Status::Suspected, share, evidence });
    }
}

/// Whether a cause moves a part that this layer has in one of the budgets.
fn covers(candidate: &Candidate, layer: Layer, clues: &Clues) -> bool {
    let moved = clues.parts(|l, part| l == layer && (candidate.moves)(l, part));
    moved.cheap > 0.0 || moved.dear > 0.0
}

/// The share of the change in parts that a named cause moves, each part counted once.
fn explained(findings: &[Finding], clues: &Clues, change: Change) -> f64 {
    let named: Vec<&Finding> = findings.iter().filter(|f| f.status != Status::Cleared).collect();
    let moved = clues.parts(|layer, part| {
        named.iter().any(|f| match CATALOGUE.iter().find(|c| c.cause == f.cause) {
            Some(c) => (c.moves)(layer, part),
            None => f.layer == layer,
        })
    });
    let rest = if named.iter().any(|f| TAKES_THE_REST.contains(&f.cause.as_str())) { change.rest } else { 0.0 };
    (moved.more() + rest) / change.seconds
}

fn duration(seconds: f64) -> String {
    fingerpost_record::Unit::Nanoseconds.format(seconds * 1e9)
}

/// What a headline calls a cause of the catalogue.
pub fn words(cause: &str) -> Option<&'static str> {
    CATALOGUE.iter().find(|c| c.cause == cause).map(|c| c.words)
}
