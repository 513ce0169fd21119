//! The words that the formats of a comparison share.

use fingerpost_compare::comparison::{
    Comparison, Curve, NotCompared, Row, Waterfall, WaterfallStep,
};
use fingerpost_compare::service::Part;
use fingerpost_compare::side::SideInfo;
use fingerpost_compare::{Ratio, Verdict, unexplained};
use fingerpost_record::params::named;
use fingerpost_record::unit::significant;
use fingerpost_record::{Finding, Status};

use crate::evidence::{Whose, evidence, words};
use crate::style::Tone;
use crate::view::place;
use crate::wording::{doing, overlapping};
pub(crate) use crate::words::clean as text;
use crate::words::{short, time};

/// What a section of [`changed_parts`] is called.
pub(crate) const CHANGED_PARTS: &str = "What changed most in a request of the service";

/// The parts of a service's requests that changed most, with who had what was waited for.
pub(crate) fn changed_parts(c: &Comparison) -> Vec<String> {
    let part = |p: &Part| {
        text(&format!(
            "{}: {} → {}",
            doing(&p.what),
            time(p.seconds[0]),
            time(p.seconds[1])
        ))
    };
    c.loads
        .iter()
        .flat_map(|load| load.parts.iter().map(part))
        .collect()
}

/// What a section of [`settled`] is called.
pub(crate) const SETTLED: &str = "Each change by itself, measured here";

/// What each change made by itself, a sentence each, with the runs that say so.
pub(crate) fn settled(c: &Comparison) -> Vec<String> {
    let kept = |runs: &[String]| {
        if runs.is_empty() {
            String::new()
        } else {
            format!(" ({})", runs.join(" and "))
        }
    };
    c.settled
        .iter()
        .map(|one| {
            text(&format!(
                "{}{}",
                words(&one.fact(), Whose::default()),
                kept(&one.runs)
            ))
        })
        .collect()
}

/// What a section of [`gains`] is called.
pub(crate) const GAINS: &str = "What a place of its own for swap gains on each side";

/// What each placement of swap gains on both sides, a sentence each.
pub(crate) fn gains(c: &Comparison) -> Vec<String> {
    c.gains
        .iter()
        .map(|gain| text(&gain.words(&c.base.name, &c.new.name)))
        .collect()
}

/// The cells of a row, cleaned: probe, parameters, base, new, ratio, interval, verdict.
pub(crate) fn cells(row: &Row) -> [String; 7] {
    let (ratio, interval) = row
        .ratio
        .map_or_else(Default::default, |r| (number(r.value), interval(&r)));
    let value = |v: f64| row.unit.format(v);
    [
        text(&row.probe),
        text(&row.params.to_string()),
        value(row.base.value),
        value(row.new.value),
        ratio,
        interval,
        row.verdict.to_string(),
    ]
}

/// A ratio with as many digits as a person compares: three decimals near one, four significant digits elsewhere.
pub(crate) fn number(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) {
        format!("{ratio:.3}")
    } else {
        significant(ratio)
    }
}

pub(crate) fn interval(r: &Ratio) -> String {
    format!("{}–{}", number(r.low), number(r.high))
}

pub(crate) fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Slower => Tone::Bad,
        Verdict::Faster => Tone::Good,
        Verdict::Same => Tone::Plain,
        Verdict::Unresolved => Tone::Doubtful,
    }
}

/// The rows in the order in which a run's own table has them.
pub(crate) fn in_order(c: &Comparison) -> Vec<&Row> {
    let mut rows: Vec<&Row> = c.rows.iter().collect();
    rows.sort_by_cached_key(|r| place(&r.descriptor));
    rows
}

/// Who is compared, with sources and doubts: label, sentence, whether it is a doubt.
pub(crate) fn sides(c: &Comparison) -> Vec<(String, String, bool)> {
    let side = |label: &str, info: &SideInfo| {
        let ids = match info.ids.as_slice() {
            [one] => one.clone(),
            many => {
                format!(
                    "{} runs, {} to {}",
                    many.len(),
                    many.first().map_or("", String::as_str),
                    many.last().map_or("", String::as_str)
                )
            }
        };
        let who = if info.name == ids {
            ids
        } else {
            format!("{} ({ids})", info.name)
        };
        let who = info
            .measured
            .as_ref()
            .map_or(who.clone(), |measured| format!("{who}: {measured}"));
        let mut lines = vec![(label.to_owned(), text(&who), false)];
        lines.extend(
            info.source
                .iter()
                .map(|s| (format!("{label} source"), text(s), false)),
        );
        lines
    };
    // What is doubtful on both sides is told once.
    let shared = |doubt: &&String| c.new.doubts.contains(doubt);
    let both = c
        .base
        .doubts
        .iter()
        .filter(shared)
        .map(|d| ("Both doubt".to_owned(), text(d), true));
    let own = |label: &str, info: &SideInfo, other: &SideInfo| -> Vec<(String, String, bool)> {
        let of = info.doubts.iter().filter(|d| !other.doubts.contains(d));
        of.map(|d| (format!("{label} doubt"), text(d), true))
            .collect()
    };
    let doubts: Vec<_> = both
        .chain(own("Base", &c.base, &c.new))
        .chain(own("New", &c.new, &c.base))
        .collect();
    let mut lines = side("Base", &c.base);
    lines.extend(side("New", &c.new));
    lines.extend(
        c.changes
            .iter()
            .map(|change| ("Changed".to_owned(), text(&change.words()), false)),
    );
    lines.extend(c.pooled.iter().map(|p| {
        let rows = format!(
            "{} rows of {} are {}: {} ({})",
            p.rows,
            p.of,
            p.verdict,
            number(p.ratio.value),
            interval(&p.ratio)
        );
        ("Together".to_owned(), text(&rows), false)
    }));
    lines.push((
        "Threshold".into(),
        format!("{} %", short(c.threshold * 100.0)),
        false,
    ));
    lines.extend(doubts);
    lines
}

/// That the shares of the causes are not to be added up, where that is so.
pub(crate) fn overlap(c: &Comparison) -> Option<String> {
    overlapping(&c.causes, Some(1.0 - c.unexplained))
}

/// The causes as label and sentences, most first; those ruled out last; then what is unexplained.
pub(crate) fn causes(c: &Comparison) -> Vec<(String, Vec<String>, Status)> {
    let label = |f: &Finding| {
        let verdict = match f.status {
            Status::Confirmed => share(f),
            Status::Likely => format!("likely, {}", share(f)),
            Status::RuledOut | Status::NotObserved => f.status.as_str().to_owned(),
        };
        // The cause's name, by which `list CAUSE` tells more of it, and its layer.
        format!(
            "{}, {verdict} ({}, layer {})",
            fingerpost_diagnose::label(&f.cause),
            f.cause,
            f.layer
        )
    };
    let mut out: Vec<_> = c
        .causes
        .iter()
        .map(|f| {
            (
                text(&label(f)),
                evidence(f).iter().map(|e| text(e)).collect(),
                f.status,
            )
        })
        .collect();
    if c.unexplained > 0.0 {
        let at = c.causes.iter().take_while(|f| f.status.accuses()).count();
        out.insert(
            at,
            (
                format!("{}, {:.0} %", unexplained(&c.causes), c.unexplained * 100.0),
                Vec::new(),
                Status::Likely,
            ),
        );
    }
    out
}

/// The share of a cause that is named; not even one of nothing where it is not known.
fn share(f: &Finding) -> String {
    if f.share > 0.0 {
        format!("{:.0} %", f.share * 100.0)
    } else {
        SHARE_NOT_KNOWN.to_owned()
    }
}

/// What stands in place of a share that is not known.
pub(crate) const SHARE_NOT_KNOWN: &str = "share not known";

fn step(workload: &str, params: &fingerpost_record::Params) -> String {
    text(&if params.is_empty() {
        workload.to_owned()
    } else {
        format!("{workload} {params}")
    })
}

/// Seconds that no clock tells from none.
pub(crate) const NOTHING: f64 = 1e-12;

pub(crate) fn waterfall_title(fall: &Waterfall) -> String {
    let what = if fall.workload == fingerpost_compare::service::WORKLOAD {
        "request"
    } else {
        "transaction"
    };
    format!(
        "A {what} of {}: {} → {}",
        step(&fall.workload, &fall.params),
        time(fall.base_seconds),
        time(fall.new_seconds)
    )
}

/// The steps of a waterfall from base to new, the unexplained rest, and the prediction from unit costs.
fn waterfall_lines(fall: &Waterfall) -> Vec<String> {
    let change = |s: f64| format!("{}{}", if s < 0.0 { "−" } else { "+" }, time(s.abs()));
    let step = |s: &WaterfallStep| {
        let (base, new) = (s.base_seconds, s.new_seconds);
        text(&format!(
            "{} ({}): {} → {}, {}",
            s.component,
            s.layer,
            time(base),
            time(new),
            change(new - base)
        ))
    };
    let mut lines: Vec<String> = fall
        .steps
        .iter()
        .filter(|s| s.base_seconds != s.new_seconds)
        .map(step)
        .collect();
    // What is left of a sum of floating-point numbers is nothing.
    let unexplained = if fall.unexplained_seconds.abs() < NOTHING {
        0.0
    } else {
        fall.unexplained_seconds
    };
    lines.push(format!("unexplained: {}", change(unexplained)));
    lines.extend(fall.predicted_share.map(|p| {
        format!(
            "unit costs times counts predict {:.0} % of the change",
            p * 100.0
        )
    }));
    lines.extend(fall.predictions.iter().map(|p| text(p)));
    lines
}

/// The sections of sentences below the causes, with their titles: what changed most, step by step, by the number of
/// clients, and by placement of swap. One may have none.
pub(crate) fn below_causes(c: &Comparison) -> Vec<(String, Vec<String>)> {
    let parts = (CHANGED_PARTS.to_owned(), changed_parts(c));
    let falls = c
        .waterfalls
        .iter()
        .map(|fall| (waterfall_title(fall), waterfall_lines(fall)));
    let curves = c
        .curves
        .iter()
        .map(|curve| (curve_title(curve), curve_lines(curve)));
    std::iter::once(parts)
        .chain(falls)
        .chain(curves)
        .chain([(GAINS.to_owned(), gains(c))])
        .collect()
}

pub(crate) fn curve_title(curve: &Curve) -> String {
    format!("{} by clients", step(&curve.probe, &curve.params))
}

/// Clients, both throughputs, and each against one client, as the articles' scaling table has it.
fn curve_lines(curve: &Curve) -> Vec<String> {
    let Some(&(_, base_one, new_one)) = curve.points.first() else {
        return Vec::new();
    };
    let percent = |v: f64, one: f64| format!("{:.0} %", v / one * 100.0);
    let point = |(n, base, new): &(i64, f64, f64)| {
        let who = if *n == 1 { "client" } else { "clients" };
        let [base, new] = [(*base, base_one), (*new, new_one)]
            .map(|(v, one)| format!("{} ({})", significant(v), percent(v, one)));
        format!("{n:>4} {who}: {base} → {new}")
    };
    let mut lines: Vec<String> = curve.points.iter().map(point).collect();
    let fall = |side: &str, from: Option<i64>| {
        from.map(|n| format!("the {side} side collapses from {n} clients on"))
    };
    lines.extend(fall("base", curve.base_collapses_from));
    lines.extend(fall("new", curve.new_collapses_from));
    lines
}

/// Rows that were not compared, by reason, so that a hundred rows of one side are one line.
pub(crate) fn not_compared(c: &Comparison) -> Vec<String> {
    by_reason(c)
        .into_iter()
        .map(|(why, rows)| each_named(why, &rows))
        .collect()
}

/// Rows of one reason that a terminal and a page name one by one.
const NAMED: usize = 24;

/// The same, where many rows have one reason as numbers of rows by probe: the answer above them is to stay on the
/// screen.
pub(crate) fn not_compared_in_short(c: &Comparison) -> Vec<String> {
    let counted = |why: &str, rows: &[&NotCompared]| {
        let mut probes: Vec<(&str, usize)> = Vec::new();
        for row in rows {
            match probes.last_mut().filter(|(probe, _)| *probe == row.probe) {
                Some((_, n)) => *n += 1,
                None => probes.push((&row.probe, 1)),
            }
        }
        let each = |(probe, n): &(&str, usize)| {
            if *n == 1 {
                (*probe).to_owned()
            } else {
                format!("{probe} ({n})")
            }
        };
        let probes: Vec<String> = probes.iter().map(each).collect();
        text(&format!(
            "{why}: {} rows, each with its figures in the comparison as Markdown or CSV: {}",
            rows.len(),
            probes.join(", ")
        ))
    };
    let line = |(why, rows): (&str, Vec<&NotCompared>)| {
        if rows.len() > NAMED {
            counted(why, &rows)
        } else {
            each_named(why, &rows)
        }
    };
    by_reason(c).into_iter().map(line).collect()
}

/// The rows that were not compared, by the reason.
fn by_reason(c: &Comparison) -> Vec<(&str, Vec<&NotCompared>)> {
    let mut reasons: Vec<(&str, Vec<&NotCompared>)> = Vec::new();
    for row in &c.not_compared {
        match reasons.iter_mut().find(|(why, _)| *why == row.why) {
            Some((_, rows)) => rows.push(row),
            None => reasons.push((&row.why, vec![row])),
        }
    }
    reasons
}

/// A reason with each of its rows and their figures.
fn each_named(why: &str, rows: &[&NotCompared]) -> String {
    let params = |r: &NotCompared| {
        r.params
            .iter()
            .map(|(key, value)| named(key, value))
            .collect::<Vec<_>>()
    };
    let all: Vec<Vec<String>> = rows.iter().map(|r| params(r)).collect();
    let shared: Vec<&String> = match all.as_slice() {
        [first, others @ ..] if !others.is_empty() => first
            .iter()
            .filter(|w| others.iter().all(|own| own.contains(w)))
            .collect(),
        _ => Vec::new(),
    };
    let one = |r: &NotCompared, before: Option<&str>| {
        let own = params(r).into_iter().filter(|word| !shared.contains(&word));
        // A probe's name stands before the first of its rows.
        let name = (before != Some(&r.probe) || r.params.is_empty()).then(|| r.probe.clone());
        let figures: Vec<String> = [r.base, r.new]
            .into_iter()
            .flatten()
            .map(|v| r.unit.format(v))
            .collect();
        let figures = (!figures.is_empty()).then(|| format!("({})", figures.join(", ")));
        name.into_iter()
            .chain(own)
            .chain(figures)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut told = String::new();
    for (n, row) in rows.iter().enumerate() {
        let before = n.checked_sub(1).map(|n| rows[n].probe.as_str());
        let next = rows.get(n + 1).map(|row| row.probe.as_str());
        let ends = before == Some(&row.probe) && next.is_some_and(|next| next != row.probe);
        told.push_str(&one(row, before));
        told.push_str(match next {
            None => "",
            Some(_) if ends => "; ",
            Some(_) => ", ",
        });
    }
    let words: Vec<&str> = shared.iter().map(|w| w.as_str()).collect();
    let with = if words.is_empty() {
        String::new()
    } else {
        format!("; all with {}", words.join(" "))
    };
    text(&format!("{why}: {told}{with}"))
}

/// How many rows have each verdict.
pub(crate) fn summary(c: &Comparison) -> String {
    let count = |v: Verdict| c.rows.iter().filter(|r| r.verdict == v).count();
    let mut parts: Vec<String> = [
        Verdict::Slower,
        Verdict::Faster,
        Verdict::Same,
        Verdict::Unresolved,
    ]
    .into_iter()
    .filter(|v| count(*v) > 0)
    .map(|v| format!("{} {v}", count(v)))
    .collect();
    if !c.not_compared.is_empty() {
        parts.push(format!("{} not compared", c.not_compared.len()));
    }
    if parts.is_empty() {
        "none".into()
    } else {
        parts.join(", ")
    }
}

/// What [`surer`] is called.
pub(crate) const SURER: &str = "More precise";

/// What makes the intervals narrower, where half of the rows or more are too wide to tell; nothing where the sides
/// cannot be measured again.
pub(crate) fn surer(c: &Comparison) -> Option<&'static str> {
    let unresolved = c
        .rows
        .iter()
        .filter(|row| row.verdict == Verdict::Unresolved)
        .count();
    let published = [&c.base, &c.new].iter().any(|side| side.source.is_some());
    if published || unresolved == 0 || 2 * unresolved < c.rows.len() {
        return None;
    }
    Some(match in_turns(&c.base.ids, &c.new.ids) {
        true => "measure for longer: fingerpost ab … --budget SECONDS",
        false => {
            "take several runs a side (fingerpost compare A1,A2 B1,B2), or measure two settings of one machine in \
             turns (fingerpost ab)"
        }
    })
}

/// Whether the sides are the two of one `ab`: their ids differ in the last letter alone.
fn in_turns(base: &[String], new: &[String]) -> bool {
    let ([base], [new]) = (base, new) else {
        return false;
    };
    base.strip_suffix('a')
        .zip(new.strip_suffix('b'))
        .is_some_and(|(base, new)| base == new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_compare::{Options, compare, references};

    #[test]
    fn the_two_sides_of_one_ab_are_known_by_their_ids() {
        let of = |base: &str, new: &str| in_turns(&[base.to_owned()], &[new.to_owned()]);
        assert!(of("20260101T000000Z-0123456a", "20260101T000000Z-0123456b"));
        assert!(!of(
            "20260101T000000Z-0123456a",
            "20260102T000000Z-0123456b"
        ));
        assert!(!of(
            "20260101T000000Z-0123456a",
            "20260101T000000Z-0123456a"
        ));
        assert!(!in_turns(&[], &[]));
    }

    #[test]
    fn what_makes_intervals_narrower_is_told_where_most_are_too_wide() {
        let load = |name| references::load(name).unwrap();
        let mut comparison = compare(
            &[load("g5-2.5-linux")],
            &[load("g5-2.7-darwin")],
            &Options::default(),
        );
        assert_eq!(surer(&comparison), None, "most of its rows are told apart");
        comparison
            .rows
            .iter_mut()
            .for_each(|row| row.verdict = Verdict::Unresolved);
        assert_eq!(
            surer(&comparison),
            None,
            "a published system cannot be measured again"
        );
        (comparison.base.source, comparison.new.source) = (None, None);
        assert!(surer(&comparison).is_some_and(|text| text.contains("A1,A2")));
        comparison
            .rows
            .iter_mut()
            .for_each(|row| row.verdict = Verdict::Same);
        assert_eq!(surer(&comparison), None);
    }
}
