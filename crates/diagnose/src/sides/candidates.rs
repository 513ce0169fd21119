//! Holds every cause of the registry against one workload step that changed.
//!
//! A cause is **confirmed** when the parts of the budget that it moves make up a good share of the change with the whole
//! of its interval, and its discriminator fits or the slower side alone convicts it; **likely** when only one of
//! those speaks for it; **ruled out** when its parts did not grow, with the whole interval and with what could not be
//! followed, or a fact speaks against it; **not observed** where neither holds, and where nothing was observed on both
//! sides that tells. Each part of the budget is explained once: the first confirmed cause by rank takes the parts
//! that it moves, and a later one whose parts are all taken is at most likely. What one side alone
//! convicts is never ruled out.

use fingerpost_record::cause::id;
use fingerpost_record::{Component, Evidence, Finding, Layer, Metric, Status};

use super::clearing::{Doubts, why_not};
use super::clues::{Asked, Clues};
use super::growth::Pair;
use super::limits::{self, Trust};
use super::own::Own;
use super::sign::Sign;
use super::{contention, decided, roots, unread};
use crate::cause::{Cause, Need, Rest, TwoSides};
use crate::judging::{CONFIRMED, LIKELY};
use crate::thresholds::HALF_OUTSIDE;
use crate::{causes, chain};

/// A cause that two sides are held against.
#[derive(Clone, Copy)]
struct Candidate {
    cause: &'static Cause,
    two: &'static TwoSides,
}

impl Candidate {
    /// Whether it moves a part of a budget here.
    fn moves(&self, clues: &Clues, layer: Layer, part: &Component) -> bool {
        self.cause.moves(layer, part) || (self.two.also)(clues, layer, part)
    }

    /// Its name, and what it is asked for its sign by.
    fn asked(&self) -> (&'static str, Asked) {
        let asked = Asked {
            sign: self.two.sign,
            explained_by: self.two.explained_by,
        };
        (self.cause.name, asked)
    }

    /// What it takes of what no part of a budget has.
    fn rest(&self, clues: &Clues) -> Rest {
        (self.two.rest)(clues)
    }
}

/// Every one, the sharpest first.
fn candidates() -> Vec<Candidate> {
    let candidate = |cause: &'static Cause| {
        let two = cause.two_sides.as_ref()?;
        Some(Candidate { cause, two })
    };
    let mut all: Vec<Candidate> = causes::all().filter_map(candidate).collect();
    all.sort_by_key(|c| c.two.rank);
    all
}

/// The one of this cause.
fn candidate_of(name: &str) -> Option<Candidate> {
    candidates().into_iter().find(|c| c.cause.name == name)
}

/// The confirmed so far, each with its share of the change.
#[derive(Default)]
struct Taken(Vec<(Candidate, f64)>);

impl Taken {
    /// Whether a part is explained already.
    fn has(&self, clues: &Clues, layer: Layer, part: &Component) -> bool {
        self.0.iter().any(|(c, _)| c.moves(clues, layer, part))
    }

    fn has_rest(&self, clues: &Clues) -> bool {
        self.0.iter().any(|(c, _)| c.rest(clues) != Rest::No)
    }

    /// The smallest share among the confirmed.
    fn least_share(&self) -> f64 {
        self.0.iter().map(|t| t.1).fold(f64::INFINITY, f64::min)
    }
}

/// What is known about one candidate.
struct Case {
    candidate: Candidate,
    /// Of the change, what it moves.
    share: f64,
    /// Of that, what no other is a confirmed cause of.
    left: f64,
    /// The lower end of `left`, where requests were followed on both sides.
    low: Option<f64>,
    /// The upper end of `share`.
    high: Option<f64>,
    /// Of the change, what could not be followed and `high` does not have.
    unseen: f64,
    /// The seconds of the change at least.
    least: f64,
    sign: Sign,
    own: Option<Status>,
    evidence: Vec<Evidence>,
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
    /// A connection that finds the listen queue full is tried again after a second and more, an acknowledgement that
    /// comes late takes 40 ms, and a disk that is throttled may hold a request for longer than a window is open: what
    /// is followed is of those that were quicker. Where such a cause fits, the load generator's own time outside of
    /// followed requests belongs to the change; elsewhere it may be anything that clients do between requests, and
    /// belongs to it where it is surely more than what was followed tells: nobody has most of a change of which little
    /// was seen.
    fn of(clues: &Clues, trust: &Trust) -> Change {
        let takes = |c: &Candidate| c.rest(clues) != Rest::No && clues.sign(c.cause.name).speaks();
        let outside = clues.outside().map_or(0.0, |pair| pair.more().max(0.0));
        let outside = if mostly_outside(clues, trust) || candidates().iter().any(takes) {
            outside
        } else {
            0.0
        };
        Change {
            seconds: clues.wall().more() + outside,
            rest: clues.rest().more().max(0.0) + outside,
        }
    }
}

/// Whether more than half of what transactions take longer lies outside of followed requests, with the whole interval
/// of the row.
fn mostly_outside(clues: &Clues, trust: &Trust) -> bool {
    let Some(turn) = clues.turnaround() else {
        return false;
    };
    trust.ratio.is_some()
        && trust.change(turn.more())[0] > HALF_OUTSIDE.value * clues.wall().more().max(0.0)
}

/// The causes in order, those ruled out and those not observed last, and the share of the change that none of them
/// explains.
pub fn judge(clues: Clues, trust: &Trust) -> (Vec<Finding>, f64) {
    let all = candidates();
    let clues = &clues.judged_by(all.iter().map(Candidate::asked));
    let own = &Own::of(clues);
    let change = Change::of(clues, trust);
    if change.seconds <= 0.0 {
        return (Vec::new(), 0.0);
    }
    if !clues.have_parts() {
        return unfollowed(&all, clues, own, trust);
    }
    let (mut taken, mut doubts, mut unsure) = (Taken::default(), Vec::new(), Vec::new());
    let judged = |candidate: &Candidate| {
        let mut case = Case::of(*candidate, clues, own, change, &taken, trust);
        let status = case.status();
        doubts.extend(case.doubt(status, clues));
        unsure.extend(
            (status == Status::Likely && case.low == Some(0.0)).then_some(candidate.cause.name),
        );
        match status {
            Status::Confirmed => taken.0.push((*candidate, case.left)),
            // What is a likely cause of parts that another is a confirmed cause of comes after it.
            Status::Likely => case.share = case.share.min(taken.least_share()),
            Status::RuledOut | Status::NotObserved => {}
        }
        case.finding(status)
    };
    let mut findings: Vec<Finding> = all.iter().map(judged).collect();
    findings
        .iter_mut()
        .for_each(|f| never_clear_the_convicted(f, clues, own, change.seconds));
    fill_gaps(&mut findings, clues, change.seconds);
    let unexplained = (1.0 - explained(&findings, clues, change)).clamp(0.0, 1.0);
    limits::hold(&mut findings, clues, trust, unexplained);
    unread::hold(&mut findings, clues);
    limits::spare(&mut findings, trust, unexplained);
    // What is not ruled out changes nothing about who is accused: it is told when that is settled.
    let doubts = Doubts::of(doubts, &findings);
    decided::apply(&mut findings, clues, own, trust, &unsure);
    doubts.apply(&mut findings, clues);
    roots::neighbours_of_both(&mut findings, clues);
    roots::add(&mut findings, clues);
    chain::order(&mut findings);
    let unexplained = chain::unexplained_beside(&findings, unexplained);
    (findings, unexplained)
}

/// Where requests could not be followed on both sides, what tells a cause from its neighbours is all there is: it makes
/// a cause likely or clears it, and how much of the change it makes is not known.
fn unfollowed(all: &[Candidate], clues: &Clues, own: &Own, trust: &Trust) -> (Vec<Finding>, f64) {
    let why = clues
        .why_not_followed()
        .unwrap_or(Evidence::of(Metric::NotFollowedOnBoth));
    let unknown = [why, Evidence::of(Metric::PartNotKnown)];
    let finding = |c: &Candidate| {
        let (status, evidence) = match clues.sign(c.cause.name).clone() {
            Sign::Fits(told) | Sign::Perhaps(told) => (
                Status::Likely,
                [told, unknown.to_vec(), unread::missing(c.cause.name, clues)].concat(),
            ),
            Sign::Against(told) => (Status::RuledOut, told),
            Sign::NotGrown(told, _) => (Status::NotObserved, [told, unknown.to_vec()].concat()),
            Sign::Unknown => (Status::NotObserved, missing(c.cause, clues)),
        };
        finding(c.cause, status, 0.0, evidence)
    };
    let mut findings: Vec<Finding> = all.iter().map(finding).collect();
    findings
        .iter_mut()
        .for_each(|f| never_clear_what_one_side_shows(f, clues, own));
    decided::apply(&mut findings, clues, own, trust, &[]);
    roots::add(&mut findings, clues);
    chain::order(&mut findings);
    (findings, 1.0)
}

/// What one side alone convicts is not ruled out, where the requests of the other side could not be followed either:
/// nobody knows whether that side has it as well, so that it is not likely of the difference.
fn never_clear_what_one_side_shows(f: &mut Finding, clues: &Clues, own: &Own) {
    let convicted = |own: &&Finding| own.status == Status::Confirmed;
    let names = [clues.slow().name, clues.fast().name];
    let fact = |(own, name): (Option<&Finding>, &str)| {
        own.filter(convicted)
            .map(|own| Evidence::figure(Metric::ShownBySide, own.share).named(name))
    };
    let shown: Vec<Evidence> = own
        .says(&f.cause)
        .into_iter()
        .zip(names)
        .filter_map(fact)
        .collect();
    if f.status == Status::RuledOut && !shown.is_empty() {
        f.status = Status::NotObserved;
        f.evidence.extend(shown);
        f.evidence.push(Evidence::of(Metric::PartNotKnown));
    }
}

pub(super) fn finding(
    cause: &Cause,
    status: Status,
    share: f64,
    evidence: Vec<Evidence>,
) -> Finding {
    Finding::new(cause.name, cause.layer, status, share, evidence)
}

/// What was not observed on both sides.
fn missing(cause: &Cause, clues: &Clues) -> Vec<Evidence> {
    let why = |need: &Need| match *need {
        Need::Followed => clues.why_not_followed(),
        Need::Reading(name) => clues.why_missing(name).map(|missing| Evidence {
            missing: vec![missing],
            ..Evidence::of(Metric::Missing)
        }),
    };
    let all: Vec<Evidence> = cause.needs.iter().filter_map(why).collect();
    if all.is_empty() {
        vec![Evidence::of(Metric::NothingTells).about(cause.name)]
    } else {
        all
    }
}

impl Case {
    fn of(
        candidate: Candidate,
        clues: &Clues,
        own: &Own,
        change: Change,
        taken: &Taken,
        trust: &Trust,
    ) -> Case {
        let moves = |layer: Layer, part: &Component| candidate.moves(clues, layer, part);
        let is_free =
            |layer: Layer, part: &Component| moves(layer, part) && !taken.has(clues, layer, part);
        let (moved, free) = (clues.parts(moves), clues.parts(is_free));
        let takes = candidate.rest(clues);
        let rest = if takes == Rest::No { 0.0 } else { change.rest };
        let free_rest = if taken.has_rest(clues) { 0.0 } else { rest };
        let sure_rest = if takes == Rest::Surely {
            free_rest
        } else {
            0.0
        };
        // What no part has is a difference between the whole and all parts, and is as little known as these together.
        let width_of = |pick: &dyn Fn(Layer, &Component) -> bool, rest: f64| {
            clues.width(pick).hypot(if rest > 0.0 {
                clues.width(|_, _| true)
            } else {
                0.0
            })
        };
        let share = |seconds: f64| (seconds / change.seconds).clamp(0.0, 1.0);
        let [least, most] = match trust.ratio {
            Some(_) => trust.change(change.seconds),
            // Without a row of their mean time, the requests that were followed tell how sure the change is.
            None => limits::around(change.seconds, clues.width(|_, _| true)),
        };
        let low = clues.followed().then(|| {
            ((free.more() + sure_rest - width_of(&is_free, sure_rest)) / most).clamp(0.0, 1.0)
        });
        let high = clues
            .followed()
            .then(|| ((moved.more() + rest + width_of(&moves, rest)) / least).clamp(0.0, 1.0));
        // Of what it may take of the rest `high` has all.
        let unseen = if takes == Rest::No {
            (clues.rest().more() / least).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let own = match own.says(candidate.cause.name) {
            [Some(slow), fast]
                if slow.status.accuses() && fast.is_none_or(|c| c.status > slow.status) =>
            {
                Some(slow.status)
            }
            _ => None,
        };
        let mut evidence = vec![clues.told(Metric::CausePart, moved)];
        if let (Some(low), Some(high)) = (low, high) {
            let part = Evidence::figure(Metric::PartOfChange, share(moved.more() + rest));
            evidence.push(part.within([low, high]));
        }
        let sign = clues.sign(candidate.cause.name).clone();
        let (share, left) = (share(moved.more() + rest), share(free.more() + free_rest));
        if sign == Sign::Unknown {
            evidence.extend(missing(candidate.cause, clues));
        }
        Case {
            candidate,
            share,
            left,
            low,
            high,
            unseen,
            least,
            sign,
            own,
            evidence,
        }
    }

    fn status(&self) -> Status {
        let (large, free) = (self.share >= CONFIRMED, self.left >= CONFIRMED);
        // Of parts that were followed, the whole interval decides; of older budgets there is none.
        let surely = self.low.is_none_or(|low| low >= CONFIRMED);
        match (&self.sign, self.own) {
            (Sign::Fits(_), _) | (Sign::Unknown, Some(Status::Confirmed)) if free && surely => {
                Status::Confirmed
            }
            // By the middle of a count nothing is confirmed.
            (Sign::Fits(_) | Sign::Perhaps(_), _) | (Sign::Unknown, Some(Status::Confirmed))
                if large =>
            {
                Status::Likely
            }
            (Sign::Against(_) | Sign::NotGrown(..), _) => Status::RuledOut,
            (Sign::Unknown, Some(Status::Likely)) if free => Status::Likely,
            // A part that both budgets have and that did not grow clears a cause even without a sign.
            _ if self.share < LIKELY && self.high.is_none_or(|high| high < CONFIRMED) => {
                Status::RuledOut
            }
            (Sign::Fits(_) | Sign::Perhaps(_), _)
                if self.high.is_none_or(|high| high < CONFIRMED) =>
            {
                Status::RuledOut
            }
            _ => Status::NotObserved,
        }
    }

    /// Why it is not ruled out, where its part of the change alone would clear it.
    fn doubt(&self, status: Status, clues: &Clues) -> Option<(&'static str, Evidence)> {
        let by_its_part = status == Status::RuledOut && !matches!(self.sign, Sign::Against(_));
        let high = match self.sign {
            // A budget has all places of the disk in one part: what others of them took says nothing of these.
            Sign::NotGrown(_, Some(at_most)) if self.candidate.cause.layer == Layer::Storage => {
                Some((at_most / self.least).max(0.0))
            }
            _ => self.high,
        };
        let why = by_its_part.then(|| why_not(high, self.unseen, clues.not_followed()))?;
        Some((self.candidate.cause.name, why?))
    }

    fn finding(self, status: Status) -> Finding {
        let mut evidence = match self.sign {
            Sign::Fits(told) | Sign::Against(told) | Sign::NotGrown(told, _) => told,
            // By the middle of a count nothing is confirmed.
            Sign::Perhaps(mut told) => {
                if status == Status::Likely {
                    told.push(Evidence::of(Metric::FewCounted));
                }
                told
            }
            Sign::Unknown => Vec::new(),
        };
        evidence.extend(self.evidence);
        let share = match status {
            Status::Confirmed => self.left,
            Status::Likely => self.share,
            Status::RuledOut | Status::NotObserved => 0.0,
        };
        finding(self.candidate.cause, status, share, evidence)
    }
}

/// What one side alone convicts is not ruled out: where only the slower one does it stays likely; what both have, or
/// only the faster one, is not what makes the difference, and is not ruled out either.
fn never_clear_the_convicted(f: &mut Finding, clues: &Clues, own: &Own, change: f64) {
    let [slow, fast] = own
        .says(&f.cause)
        .map(|own| own.filter(|own| own.status == Status::Confirmed));
    if f.status != Status::RuledOut {
        return;
    }
    let (status, why) = match (slow, fast) {
        (Some(slow), None) => {
            let moved = candidate_of(&f.cause).map(|c| clues.parts(|l, p| c.moves(clues, l, p)));
            f.share = moved.map_or(0.0, |m: Pair| (m.more() / change).clamp(0.0, 1.0));
            (
                Status::Likely,
                Evidence::figure(Metric::ShownBySide, slow.share).named(clues.slow().name),
            )
        }
        (Some(slow), Some(fast)) => {
            let both = Pair {
                fast: fast.share,
                slow: slow.share,
            };
            (Status::NotObserved, clues.told(Metric::ShownByBoth, both))
        }
        (None, Some(fast)) => (
            Status::NotObserved,
            Evidence::figure(Metric::ShownByFasterSide, fast.share).named(clues.fast().name),
        ),
        (None, None) => return,
    };
    f.status = status;
    f.evidence.push(why);
}

/// A layer that grew and that nothing was recorded to tell apart: its causes are likely together, as one.
fn fill_gaps(findings: &mut Vec<Finding>, clues: &Clues, change: f64) {
    use Layer::{Application, Client, Cpu, Host, Kernel, Memory, Network, Scheduler, Storage};
    for layer in [
        Scheduler,
        Application,
        Kernel,
        Memory,
        Storage,
        Network,
        Client,
        Cpu,
        Host,
    ] {
        let moved = clues.parts(|l, _| l == layer);
        let share = (moved.more() / change).clamp(0.0, 1.0);
        let named = findings.iter().any(|f| {
            f.status.accuses() && candidate_of(&f.cause).is_some_and(|c| covers(&c, layer, clues))
        });
        if share < CONFIRMED || named {
            continue;
        }
        let grew = clues.told(Metric::LayerPart, moved).named(layer.as_str());
        if layer == Scheduler && suspect_others(findings, clues, share, &grew) {
            continue;
        }
        let evidence = vec![grew, Evidence::of(Metric::LayerUntold)];
        findings.push(Finding::new(
            format!("{layer}.unknown"),
            layer,
            Status::Likely,
            share,
            evidence,
        ));
    }
}

/// Suspects others that came of threads' waiting for a CPU that nothing else explains; whether there are such.
fn suspect_others(findings: &mut [Finding], clues: &Clues, share: f64, waited: &Evidence) -> bool {
    let Some(others) = contention::came(clues) else {
        return false;
    };
    let Some(f) = findings.iter_mut().find(|f| f.cause == id::CPU_CONTENTION) else {
        return false;
    };
    let came = clues.told(Metric::OthersCame, others);
    (f.status, f.share) = (Status::Likely, share);
    f.evidence.splice(0..0, [waited.clone(), came]);
    true
}

/// Whether a cause moves a part that this layer has in one of the budgets.
fn covers(candidate: &Candidate, layer: Layer, clues: &Clues) -> bool {
    let moved = clues.parts(|l, part| l == layer && candidate.moves(clues, l, part));
    moved.fast > 0.0 || moved.slow > 0.0
}

/// The share of the change in parts that a named cause moves, each part counted once.
fn explained(findings: &[Finding], clues: &Clues, change: Change) -> f64 {
    let named: Vec<(Layer, Option<Candidate>)> = findings
        .iter()
        .filter(|f| f.status.accuses())
        .map(|f| (f.layer, candidate_of(&f.cause)))
        .collect();
    let moved = clues.parts(|layer, part| {
        named.iter().any(|(of, candidate)| match candidate {
            Some(c) => c.moves(clues, layer, part),
            None => *of == layer,
        })
    });
    let takes = |c: &Candidate| c.rest(clues) != Rest::No;
    let rest = if named.iter().any(|(_, c)| c.as_ref().is_some_and(takes)) {
        change.rest
    } else {
        0.0
    };
    (moved.more() + rest) / change.seconds
}
