//! The one sentence that a person reads first.

use fingerpost_diagnose::causes::words;
use fingerpost_diagnose::hosts::HostDifference;
use fingerpost_diagnose::named_without_share;
use fingerpost_diagnose::probes::changed::{BUILD, PLACEMENT, SETTING};
use fingerpost_diagnose::probes::is_cost;
use fingerpost_diagnose::sides::waterfall::Waterfall;
use fingerpost_diagnose::{follows_from, overlap};
use fingerpost_record::cause::id;
use fingerpost_record::text::capitalised;
use fingerpost_record::{Finding, Layer, Params, Status};

use crate::changes::{Change, Kind};
use crate::comparison::Comparison;
use crate::counted::Counted;
use crate::curves::Curve;
use crate::pooled::Pooled;
use crate::row::Row;
use crate::verdict::Verdict;

/// The headline, and a sentence for the load of each service. What all requests of a service say goes first, and what
/// windows say the other way is not said beside it.
pub fn first_said(comparison: &Comparison, most: Option<&Waterfall>) -> String {
    let [base, new] = names(comparison);
    let counted: Vec<(&Counted, f64, String)> = comparison
        .counted
        .iter()
        .filter_map(|c| Some((c, c.factor()?, c.sentence(base, new)?)))
        .collect();
    let agrees = |params: &Params, ratio: f64| {
        let of_it = counted.iter().find(|(c, ..)| c.params == *params);
        of_it.is_none_or(|(_, factor, _)| (*factor > 1.0) == (ratio > 1.0))
    };
    let rows_differ = || {
        let differs = |r: &Row| matches!(r.verdict, Verdict::Slower | Verdict::Faster);
        !comparison.pooled.is_empty() || comparison.rows.iter().any(differs)
    };
    let of_windows = match most {
        Some(fall) if fall.workload == crate::service::WORKLOAD => {
            agrees(&fall.params, fall.new_seconds / fall.base_seconds)
        }
        Some(_) => true,
        None => counted.is_empty() || rows_differ(),
    };
    let loads = comparison
        .loads
        .iter()
        .filter(|load| {
            load.slower()
                .is_none_or(|slower| agrees(&load.params, slower))
        })
        .map(|load| load.sentence.clone());
    let headline = of_windows.then(|| headline(comparison, most));
    counted
        .iter()
        .map(|(.., sentence)| sentence.clone())
        .chain(headline)
        .chain(loads)
        .collect::<Vec<_>>()
        .join(" ")
}

/// What sentences call the two sides.
fn names(c: &Comparison) -> [&str; 2] {
    if c.base.name == c.new.name {
        ["the base", "the new run"]
    } else {
        [c.base.name.as_str(), c.new.name.as_str()]
    }
}

/// Says in one sentence which side is slower, by how much, and why.
fn headline(c: &Comparison, changed: Option<&Waterfall>) -> String {
    let told = sentence(c, changed);
    // A side without a name of its own may begin the sentence; a host's name is left as it is.
    if told.starts_with("the ") {
        capitalised(&told)
    } else {
        told
    }
}

fn sentence(c: &Comparison, changed: Option<&Waterfall>) -> String {
    let count = |v: Verdict| c.rows.iter().filter(|r| r.verdict == v).count();
    let (slower, faster) = (count(Verdict::Slower), count(Verdict::Faster));
    let [base, new] = names(c);
    if c.rows.is_empty() {
        return format!("{new} and {base} have no row in common, so nothing can be compared.");
    }
    let together = c.pooled.iter().max_by(|a, b| {
        a.ratio
            .value
            .ln()
            .abs()
            .total_cmp(&b.ratio.value.ln().abs())
    });
    let what = match (changed, together) {
        (Some(fall), _) => workload_change(fall, new, base),
        (None, _) if slower + faster > 0 => row_change(c, slower, faster, new, base),
        (None, Some(together)) => pooled_change(together, new, base),
        (None, None) => return nothing_differs(c, new, base, count(Verdict::Same)),
    };
    // Rows are told of the new side. Where it is the faster one, the causes are the base's.
    let alone = c
        .rows
        .iter()
        .filter(|r| matches!(r.verdict, Verdict::Slower | Verdict::Faster))
        .filter_map(Row::log);
    let net: f64 = alone.sum::<f64>() + c.pooled.iter().map(|p| p.ratio.value.ln()).sum::<f64>();
    let of_base = changed.is_none() && net < 0.0;
    format!("{what}{}.", because(c, of_base.then_some(base)))
}

fn nothing_differs(c: &Comparison, new: &str, base: &str, same: usize) -> String {
    let percent = c.threshold * 100.0;
    let (unresolved, with) = (c.rows.len() - same, changed_besides(c, &[]));
    // What was changed stands between commas where the sentence goes on behind it.
    let between = if with.is_empty() {
        with.clone()
    } else {
        format!("{with},")
    };
    match unresolved {
        0 => format!(
            "{new} performs like {base}{with}: all {same} rows agree within {percent:.0} %."
        ),
        _ if same == 0 => {
            format!(
                "No difference between {new} and {base}{between} was found, but {}.",
                too_little(&c.rows)
            )
        }
        _ => {
            let untrusted = c.rows.iter().filter(|r| r.untrusted).count();
            let of_them = if untrusted == 0 {
                String::new()
            } else {
                format!(", {untrusted} of them because a side's figure is untrusted")
            };
            format!(
                "No difference between {new} and {base}{between} was found: {same} of {} rows agree within \
                 {percent:.0} %, {unresolved} could not be resolved{of_them}.",
                c.rows.len()
            )
        }
    }
}

/// Why rows of which none is resolved tell nothing.
fn too_little(rows: &[Row]) -> String {
    let (all, untrusted) = (rows.len(), rows.iter().filter(|r| r.untrusted).count());
    match (all, untrusted) {
        (1, 0) => "its one row is not precise enough to call them the same".to_owned(),
        (1, _) => "its one row cannot be relied on: a side's figure is untrusted".to_owned(),
        (_, 0) => format!("none of the {all} rows is precise enough to call them the same"),
        _ if untrusted == all => {
            format!("none of the {all} rows can be relied on: a side's figure is untrusted in each")
        }
        _ => format!(
            "none of the {all} rows is precise enough to call them the same (in {untrusted} a side's figure is \
             untrusted)"
        ),
    }
}

fn workload_change(fall: &Waterfall, new: &str, base: &str) -> String {
    let params = if fall.params.is_empty() {
        String::new()
    } else {
        format!(" ({})", fall.params)
    };
    // Told of the slower side, as its causes are.
    let ratio = fall.new_seconds / fall.base_seconds;
    let what = if fall.workload == crate::service::WORKLOAD {
        "request"
    } else {
        "transaction"
    };
    let (factor, slow, fast) = if ratio >= 1.0 {
        (ratio, new, base)
    } else {
        (1.0 / ratio, base, new)
    };
    if factor < 2.0 {
        return format!(
            "A {what} of {}{params} takes {:.0} % longer on {slow} than on {fast}",
            fall.workload,
            (factor - 1.0) * 100.0
        );
    }
    format!(
        "A {what} of {}{params} takes {factor:.1} times as long on {slow} as on {fast}",
        fall.workload
    )
}

fn pooled_change(together: &Pooled, new: &str, base: &str) -> String {
    let r = together.ratio;
    let (word, times, low, high) = if r.value >= 1.0 {
        ("slower", r.value, r.low, r.high)
    } else {
        ("faster", 1.0 / r.value, 1.0 / r.high, 1.0 / r.low)
    };
    format!(
        "{new} is {word} than {base} by {:.0} % in {}, {} rows taken together ({times:.3} times, {low:.3} to \
         {high:.3}), of which none alone is \
         precise enough to tell",
        (times - 1.0) * 100.0,
        together.of,
        together.rows
    )
}

fn row_change(c: &Comparison, slower: usize, faster: usize, new: &str, base: &str) -> String {
    let n = c.rows.len();
    // Of rows that tell a cost, where there are any: a count or a size that is smaller is not faster by so much.
    let extreme = |v: Verdict| {
        let of: Vec<&Row> = c.rows.iter().filter(|r| r.verdict == v).collect();
        let by = |r: &Row| (is_cost(r.unit), r.log().unwrap_or(0.0).abs());
        of.into_iter()
            .max_by(|a, b| by(a).0.cmp(&by(b).0).then(by(a).1.total_cmp(&by(b).1)))
    };
    let worst = |v: Verdict| {
        extreme(v)
            .and_then(|r| Some((&r.probe, r.ratio?.value)))
            .map_or(String::new(), |(probe, ratio)| {
                let factor = if ratio >= 1.0 { ratio } else { 1.0 / ratio };
                if factor >= 1.5 {
                    format!(" (up to {factor:.1} times, {probe})")
                } else {
                    format!(" (up to {:.0} %, {probe})", (factor - 1.0) * 100.0)
                }
            })
    };
    match (slower, faster) {
        (s, 0) => format!(
            "{new} is slower than {base} in {s} of {n} rows{}",
            worst(Verdict::Slower)
        ),
        (0, f) => format!(
            "{new} is faster than {base} in {f} of {n} rows{}",
            worst(Verdict::Faster)
        ),
        (s, f) if s >= f => {
            format!(
                "{new} is slower than {base} in {s} of {n} rows{} and faster in {f}",
                worst(Verdict::Slower)
            )
        }
        (s, f) => format!(
            "{new} is faster than {base} in {f} of {n} rows{} and slower in {s}",
            worst(Verdict::Faster)
        ),
    }
}

/// The causes; `on` is the slower side where the sentence has not said so.
fn because(c: &Comparison, on: Option<&str>) -> String {
    let named: Vec<&Finding> = c.causes.iter().filter(|f| f.status.accuses()).collect();
    let with = changed_besides(c, &named);
    let mut text = match named.as_slice() {
        [] => "; no cause that is known here explains it".to_owned(),
        causes if operating_system(c) => {
            format!(
                ": the operating system, not the CPU, makes the difference ({}){}",
                listed(c, causes, on),
                collapse(c)
            )
        }
        causes => format!(": {}{}", listed(c, causes, on), collapse(c)),
    };
    text += &rest(c, &named);
    let system = if named.iter().all(|f| f.share == 0.0) {
        another_system(c)
    } else {
        String::new()
    };
    with + &system + &text
}

/// Whether a difference between hosts is one of their systems.
fn of_system(d: &HostDifference) -> bool {
    ["operating system", "kernel"].contains(&d.what.as_str())
}

/// The operating systems, where no cause has a known share, nothing was changed on purpose, and the hosts differ in
/// nothing else.
fn another_system(c: &Comparison) -> String {
    if !c.changes.is_empty() || !c.hosts.iter().all(of_system) {
        return String::new();
    }
    let told: Vec<String> = c
        .hosts
        .iter()
        .map(|d| format!("another {} ({} → {})", d.what, d.base, d.new))
        .collect();
    if told.is_empty() {
        String::new()
    } else {
        format!(", with {}", told.join(" and "))
    }
}

/// What the causes leave of the difference, or that their shares are not to be added up.
fn rest(c: &Comparison, named: &[&Finding]) -> String {
    let shown = || named.iter().copied().take(SHOWN);
    match () {
        () if named.is_empty() => String::new(),
        () if shown().all(|f| f.share == 0.0) => {
            format!(
                "; how much of the difference {} is not known",
                if named.len() == 1 {
                    "that makes"
                } else {
                    "they make"
                }
            )
        }
        // Consequences are told as such, and nobody adds their shares to their cause's.
        () if overlap(
            chains(shown()).into_iter().map(|(root, _)| root),
            1.0 - c.unexplained,
        ) =>
        {
            format!(
                "; the shares overlap: together the causes explain {:.0} %",
                (1.0 - c.unexplained) * 100.0
            )
        }
        () if c.unexplained > 0.5 => {
            format!(
                "; {:.0} % of the difference is {}",
                c.unexplained * 100.0,
                unexplained(&c.causes)
            )
        }
        () => String::new(),
    }
}

/// What a rest is that no share explains: it may belong to a cause that is named without one.
pub fn unexplained(findings: &[Finding]) -> &'static str {
    if named_without_share(findings) {
        "unexplained or of a cause whose share is not known"
    } else {
        "unexplained"
    }
}

/// What was changed between the sides, where no cause is that: it is named before any other. Another client machine is
/// never a cause.
fn changed_besides(c: &Comparison, named: &[&Finding]) -> String {
    let by_cause = named
        .iter()
        .any(|f| [BUILD, SETTING, PLACEMENT].contains(&f.cause.as_str()));
    let all: Vec<String> = c
        .changes
        .iter()
        .filter(|change| !by_cause || change.kind == Kind::Client)
        .map(Change::words)
        .collect();
    if all.is_empty() {
        String::new()
    } else {
        format!(", with {}", all.join(" and "))
    }
}

/// Whether the systems differ, the CPU is ruled out, and what is named lies in the kernel or below the program.
pub fn operating_system(c: &Comparison) -> bool {
    let differs = c.hosts.iter().any(of_system);
    let cpu_ruled_out = c
        .causes
        .iter()
        .any(|f| f.cause == id::CPU_SPEED && f.status == Status::RuledOut);
    let first = c.causes.iter().find(|f| f.status.accuses());
    differs
        && cpu_ruled_out
        && first
            .is_some_and(|f| matches!(f.layer, Layer::Kernel | Layer::Scheduler | Layer::Network))
}

/// Causes that the sentence names.
const SHOWN: usize = 3;

/// Each cause with those of the following that are its consequences.
fn chains<'a>(causes: impl Iterator<Item = &'a Finding>) -> Vec<(&'a Finding, Vec<&'a Finding>)> {
    causes.fold(
        Vec::new(),
        |mut chains: Vec<(&'a Finding, Vec<&'a Finding>)>, f| {
            match chains
                .last_mut()
                .filter(|(root, _)| follows_from(f) == Some(root.cause.as_str()))
            {
                Some((_, after)) => after.push(f),
                None => chains.push((f, Vec::new())),
            }
            chains
        },
    )
}

fn listed(c: &Comparison, causes: &[&Finding], on: Option<&str>) -> String {
    let called = |f: &Finding| {
        format!(
            "{}{}",
            if f.status == Status::Likely {
                "probably "
            } else {
                ""
            },
            name(c, f, on)
        )
    };
    let percent = |f: &Finding| (f.share > 0.0).then(|| format!("{:.0} %", f.share * 100.0));
    let one = |(root, after): &(&Finding, Vec<&Finding>)| {
        let consequence = |f: &&Finding| {
            format!(
                "{}{}",
                called(f),
                percent(f).map_or(String::new(), |share| format!(" ({share})"))
            )
        };
        let consequences: Vec<String> = after.iter().map(consequence).collect();
        let follow = match consequences.len() {
            0 => String::new(),
            1 => format!(", and as its consequence {}", consequences[0]),
            _ => format!(", and as its consequences {}", consequences.join(" and ")),
        };
        format!(
            "{}{}{follow}",
            called(root),
            percent(root).map_or(String::new(), |share| format!(", {share}"))
        )
    };
    let shown: Vec<String> = chains(causes.iter().copied().take(SHOWN))
        .iter()
        .map(one)
        .collect();
    let more = if causes.len() > SHOWN {
        "; and less"
    } else {
        ""
    };
    shown.join("; ") + more
}

/// What a sentence calls a cause. What was changed is told from base to new; anything else is at the slower side.
fn name(c: &Comparison, finding: &Finding, on: Option<&str>) -> String {
    let changed = |word: &str, kind: Kind| {
        let all: Vec<String> = c
            .changes
            .iter()
            .filter(|change| change.kind == kind)
            .map(Change::words)
            .collect();
        if all.is_empty() {
            word.to_owned()
        } else {
            format!("{word} ({})", all.join(", "))
        }
    };
    let word = match finding.cause.as_str() {
        BUILD => return changed("another build", Kind::Build),
        SETTING => return changed("another setting", Kind::Setting),
        PLACEMENT => return changed(words(PLACEMENT), Kind::Placement),
        id::CPU_SPEED if c.hosts.iter().any(|d| d.what == "processor") => {
            return "another processor".into();
        }
        cause => words(cause),
    };
    on.map_or_else(|| word.to_owned(), |side| format!("{word} on {side}"))
}

fn collapse(c: &Comparison) -> String {
    // Two sides of one name are told apart by the words that the curves below the sentence have for them.
    let (base, new) = match (c.base.name.as_str(), c.new.name.as_str()) {
        (base, new) if base == new => ("the base side", "the new side"),
        names => names,
    };
    let fell = |curve: &Curve| match (curve.base_collapses_from, curve.new_collapses_from) {
        (None, Some(n)) => Some((curve.probe.clone(), new, n)),
        (Some(n), None) => Some((curve.probe.clone(), base, n)),
        _ => None,
    };
    c.curves
        .iter()
        .find_map(fell)
        .map_or(String::new(), |(probe, name, n)| {
            format!("; {probe} collapses on {name} from {n} clients on")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_may_be_of_a_cause_without_a_share() {
        let told = |share: f64, status| {
            let (layer, evidence) = (fingerpost_record::Layer::Memory, Vec::new());
            unexplained(&[Finding::new(
                "memory.paging",
                layer,
                status,
                share,
                evidence,
            )])
        };
        assert_eq!(
            told(0.0, Status::Likely),
            "unexplained or of a cause whose share is not known"
        );
        assert_eq!(told(0.3, Status::Likely), "unexplained");
        assert_eq!(told(0.0, Status::RuledOut), "unexplained");
    }
}
