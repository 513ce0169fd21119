//! Rows of two sides brought together by probe, version and parameters.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

use fingerpost_record::descriptor::of_before;
use fingerpost_record::unstated::leaves_settings_unstated;
use fingerpost_record::{Estimate, Outcome, Params};

use crate::aliases;
use crate::comparison::Options;
use crate::counterparts;
use crate::figure::Figure;
use crate::pooled::{self, Pooled};
use crate::ratio::{self, CONFIDENCE, Known, Level, QuantileWeights, Ratio};
use crate::row::{NotCompared, Row};
use crate::service;
use crate::side::{Side, SideRow};
use crate::special::t_two_sided;
use crate::spread::{self, Prior};
use crate::verdict::{self, Verdict};

/// Compares what both sides have, row by row and by parts of the system; lists the rest with the reason.
pub fn rows(
    base: &Side,
    new: &Side,
    options: &Options,
) -> (Vec<Row>, Vec<Pooled>, Vec<NotCompared>) {
    let (full_base, full_new) = (counterparts::with(base, new), counterparts::with(new, base));
    let (base, new) = (full_base.as_ref(), full_new.as_ref());
    let mut weights = QuantileWeights::default();
    let mut pairs = Vec::new();
    let mut rest = Vec::new();
    let paired = pair_up(base, new);
    let known = known(&paired, &mut weights);
    for pair in paired {
        let known = known.get(pair.probe).unwrap_or(&Known::NOTHING);
        match pair.compare(&mut weights, known, options) {
            Ok(row) => pairs.push(row),
            Err(not) => rest.push(not),
        }
    }
    let together = judge(&mut pairs, options.threshold);
    (pairs, together, rest)
}

/// What rows say of each other's spread: those of one probe of their rounds, those of one family of probes of their
/// runs.
fn known<'a>(pairs: &[Pair<'a>], weights: &mut QuantileWeights) -> HashMap<&'a str, Known> {
    // In the order of names, since sums of fractions depend on it.
    let mut rows: BTreeMap<&str, Vec<&[Figure]>> = BTreeMap::new();
    for pair in pairs {
        rows.entry(pair.probe).or_default().extend(
            [pair.base, pair.new]
                .into_iter()
                .flatten()
                .map(|row| row.figures.as_slice()),
        );
    }
    let family = |probe: &'a str| probe.split('.').next().unwrap_or(probe);
    let mut known: HashMap<&str, Known> = HashMap::new();
    let mut seen: HashMap<&str, Vec<(f64, f64)>> = HashMap::new();
    for (probe, rows) in &rows {
        let of_rounds = Known::of_rounds(rows.iter().copied(), weights);
        seen.entry(family(probe)).or_default().extend(
            rows.iter()
                .filter_map(|figures| of_rounds.seen(figures, weights)),
        );
        known.insert(probe, of_rounds);
    }
    let runs = |few: bool| -> HashMap<&str, Prior> {
        seen.iter()
            .map(|(family, seen)| (*family, spread::between_runs(seen, few)))
            .collect()
    };
    let (of_few, of_many) = (runs(true), runs(false));
    for (probe, known) in &mut known {
        known.runs = if known.rounds.is_some() {
            of_few[family(probe)]
        } else {
            of_many[family(probe)]
        };
    }
    known
}

fn judge(rows: &mut [Row], threshold: f64) -> Vec<Pooled> {
    // Untrusted rows and rows without a ratio take no part: they can neither be discovered nor dilute the control.
    let judged: Vec<usize> = (0..rows.len())
        .filter(|i| rows[*i].ratio.is_some() && rows[*i].verdict != Verdict::Unresolved)
        .collect();
    let ratios: Vec<Ratio> = judged.iter().filter_map(|i| rows[*i].ratio).collect();
    let real = verdict::real(&ratios);
    for ((i, verdict), real) in judged
        .iter()
        .zip(verdict::judge(&ratios, threshold))
        .zip(real)
    {
        let row = &mut rows[*i];
        row.verdict = verdict;
        row.real = real;
        if let (Verdict::Unresolved, Some(r), None) = (verdict, row.ratio, &row.note)
            && (r.low > 1.0 + threshold || r.high < 1.0 / (1.0 + threshold))
        {
            row.note = Some(
                "beyond the threshold alone, not after control for false discoveries over all rows"
                    .into(),
            );
        }
    }
    pooled::pooled(rows, &judged, threshold)
}

/// A probe's row on one side or both.
struct Pair<'a> {
    probe: &'a str,
    params: &'a Params,
    base: Option<&'a SideRow>,
    new: Option<&'a SideRow>,
    note: Option<String>,
}

/// Rows of imported sides that are looked at, over all, for whether they state fewer parameters than others. Published
/// tables have some hundred rows a probe and stay far below it; files made to cost quadratic time do not.
const MOST_LOOKS: usize = 1_000_000;

/// What is known of a side's rows beside their keys, and how much may still be looked at.
struct Other<'a> {
    side: &'a Side,
    /// Rows by probe and parameters, each of the first version.
    any_version: HashMap<(&'a str, &'a Params), &'a SideRow>,
}

impl<'a> Other<'a> {
    fn of(side: &'a Side) -> Other<'a> {
        let mut any_version = HashMap::with_capacity(side.rows.len());
        for ((probe, _, params), row) in &side.rows {
            any_version.entry((probe.as_str(), params)).or_insert(row);
        }
        Other { side, any_version }
    }
}

fn pair_up<'a>(base: &'a Side, new: &'a Side) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    let (base, new) = (Other::of(base), Other::of(new));
    let looks = Cell::new(MOST_LOOKS);
    for (key, row) in &base.side.rows {
        let (probe, params) = (key.0.as_str(), &key.2);
        if let Some(other) = new.side.rows.get(key) {
            pairs.push(Pair {
                probe,
                params,
                base: Some(row),
                new: Some(other),
                note: None,
            });
            continue;
        }
        let looser = unstated(&base, key, &new, &looks);
        for (full, other, note) in &looser {
            pairs.push(Pair {
                probe,
                params: full,
                base: Some(row),
                new: Some(other),
                note: Some(note.clone()),
            });
        }
        // A row that only the other side's imported rows match is brought in from there.
        if looser.is_empty() && !has_unstated_partner(&new, key, &base, &looks) {
            let other = new.any_version.get(&(probe, params)).copied();
            pairs.push(Pair {
                probe,
                params,
                base: Some(row),
                new: other,
                note: None,
            });
        }
    }
    for (key, row) in &new.side.rows {
        if base.side.rows.contains_key(key) || has_unstated_partner(&base, key, &new, &looks) {
            continue;
        }
        let (probe, params) = (key.0.as_str(), &key.2);
        let looser = unstated(&new, key, &base, &looks);
        for (full, other, note) in &looser {
            pairs.push(Pair {
                probe,
                params: full,
                base: Some(other),
                new: Some(row),
                note: Some(note.clone()),
            });
        }
        if looser.is_empty() && !base.any_version.contains_key(&(probe, params)) {
            pairs.push(Pair {
                probe,
                params,
                base: None,
                new: Some(row),
                note: None,
            });
        }
    }
    pairs.sort_by(|a, b| (a.probe, a.params).cmp(&(b.probe, b.params)));
    pairs
}

/// The rows of a side that are of this probe and version, as far as they may be looked at.
fn of_probe<'a>(
    side: &'a Side,
    (probe, version, _): &(String, u32, Params),
    looks: &Cell<usize>,
) -> impl Iterator<Item = (&'a Params, &'a SideRow)> {
    let all = side.rows.range((probe.clone(), *version, Params::new())..);
    let same = all.take_while(move |((p, v, _), _)| p == probe && v == version);
    same.take_while(|_| looks.replace(looks.get().saturating_sub(1)) > 0)
        .map(|((_, _, params), row)| (params, row))
}

/// The rows of `other` that have every parameter of an imported row, or what stands for it ([`aliases`]), and perhaps
/// more; where there is none, those that nearly have. Published tables leave unsaid what their authors left to chance
/// (the placement of two processes, say), so such a row is put beside each of them, with a note. So is a row of an
/// older record that states less than rows do today.
fn unstated<'a>(
    side: &Other,
    key: &(String, u32, Params),
    other: &Other<'a>,
    looks: &Cell<usize>,
) -> Vec<(&'a Params, &'a SideRow, String)> {
    let (probe, version, params) = key;
    let older = !side.side.imported;
    if older && !leaves_settings_unstated(probe, params) {
        return Vec::new();
    }
    let with = if older {
        "the older record"
    } else {
        "the imported figure"
    };
    let taken = |full: &Params| {
        side.side
            .rows
            .contains_key(&(probe.clone(), *version, full.clone()))
    };
    let by = |matches: Matches| -> Vec<(&'a Params, &'a SideRow, String)> {
        of_probe(other.side, key, looks)
            .filter_map(|(full, row)| Some((full, row, matches(probe, params, full)?.note(with)?)))
            .filter(|(full, ..)| !taken(full))
            .collect()
    };
    if older {
        return by(aliases::equal_as_far_as_stated);
    }
    let found = by(aliases::matches);
    if found.is_empty() {
        by(aliases::matches_nearly)
    } else {
        found
    }
}

/// How a published row is told to meet one of ours.
type Matches = fn(&str, &Params, &Params) -> Option<aliases::Match>;

/// Whether a row of `side` that states less, an imported one or an older record's, will be put beside this row of the
/// other side.
fn has_unstated_partner(
    side: &Other,
    key: &(String, u32, Params),
    other: &Other,
    looks: &Cell<usize>,
) -> bool {
    let (probe, version, params) = key;
    let is = |matches: Matches, few: &Params, full: &Params| {
        few != full && matches(probe, few, full).is_some()
    };
    let exact = |few: &Params| {
        other
            .side
            .rows
            .contains_key(&(probe.clone(), *version, few.clone()))
    };
    if !side.side.imported {
        // Only some probes have older rows: others need not be looked through.
        let states_less = |few: &Params| leaves_settings_unstated(probe, few);
        let meets =
            |few: &Params| states_less(few) && is(aliases::equal_as_far_as_stated, few, params);
        return states_less(&Params::new())
            && of_probe(side.side, key, looks).any(|(few, _)| meets(few) && !exact(few));
    }
    // A row that nearly is what the published one is takes part where no other one is it.
    let by_another = |few: &Params| {
        of_probe(other.side, key, looks).any(|(full, _)| is(aliases::matches, few, full))
    };
    let partner = |few: &Params| {
        let meets = is(aliases::matches, few, params)
            || is(aliases::matches_nearly, few, params) && !by_another(few);
        meets && !exact(few)
    };
    of_probe(side.side, key, looks).any(|(few, _)| partner(few))
}

impl Pair<'_> {
    fn compare(
        self,
        weights: &mut QuantileWeights,
        known: &Known,
        options: &Options,
    ) -> Result<Row, NotCompared> {
        let (base, new) = match (self.base, self.new) {
            (Some(base), Some(new)) => (base, new),
            (Some(_), None) => return Err(self.not("only the base has it")),
            _ => return Err(self.not("only the new side has it")),
        };
        if base.version != new.version {
            return Err(self.not(&format!(
                "the probe's definition changed from version {} to {}",
                base.version, new.version
            )));
        }
        if base.unit != new.unit || base.better != new.better {
            return Err(self.not(&format!(
                "the units differ: {} and {}",
                base.unit.as_str(),
                new.unit.as_str()
            )));
        }
        if base.figures.is_empty() || new.figures.is_empty() {
            let why = not_trusted(base, new);
            return Err(self.not(if why.is_empty() {
                "there is no figure"
            } else {
                &why
            }));
        }
        let higher = base.better == fingerpost_record::Better::Higher;
        let levels = (
            ratio::level_with(&base.figures, weights, known),
            ratio::level_with(&new.figures, weights, known),
        );
        let pairs = if options.paired {
            pairs(base, new, higher)
        } else {
            Vec::new()
        };
        let in_pairs = ratio::of_pairs(&pairs).map(|r| of_two_starts(r, options.starts));
        let ratio = in_pairs.or(match levels {
            (Some(b), Some(n)) => Some(ratio::between(b, n, higher)),
            _ => None,
        });
        let (verdict, note) = match self.probe {
            // Of a service's load nobody says whether more or less is better.
            service::RATE => (Verdict::Unresolved, self.note),
            _ => first_verdict(
                base,
                new,
                ratio,
                self.note.or_else(|| apart(base, new, levels)),
            ),
        };
        let stated = new.descriptor.clone().or_else(|| base.descriptor.clone());
        Ok(Row {
            probe: self.probe.to_owned(),
            descriptor: stated
                .unwrap_or_else(|| of_before(self.probe, [self.params, &Params::new()])),
            params: self.params.clone(),
            unit: base.unit,
            better: base.better,
            base: estimate(base, levels.0),
            new: estimate(new, levels.1),
            ratio,
            pairs,
            verdict,
            real: false,
            untrusted: [base, new]
                .iter()
                .any(|side| side.outcome != Outcome::Measured),
            note,
            counters: base
                .counters
                .keys()
                .filter_map(|name| Some((name.clone(), base.counter(name)?, new.counter(name)?)))
                .collect(),
        })
    }

    fn not(&self, why: &str) -> NotCompared {
        let side = self.base.or(self.new);
        NotCompared {
            probe: self.probe.to_owned(),
            params: self.params.clone(),
            unit: side.map_or(fingerpost_record::Unit::Count, |r| r.unit),
            base: self.base.and_then(SideRow::value),
            new: self.new.and_then(SideRow::value),
            why: why.to_owned(),
        }
    }
}

/// The pairs of a row, where there is one run a side with as many processes; else none.
fn pairs(base: &SideRow, new: &SideRow, higher: bool) -> Vec<f64> {
    let ([b], [n]) = (base.figures.as_slice(), new.figures.as_slice()) else {
        return Vec::new();
    };
    let all_positive = b.processes.iter().chain(&n.processes).all(|v| *v > 0.0);
    if b.processes.len() == n.processes.len() && all_positive {
        ratio::pairs(&b.processes, &n.processes, higher)
    } else {
        Vec::new()
    }
}

/// A ratio of two sides of one start each, with what two starts of the same server differ by.
fn of_two_starts(ratio: Ratio, spread: f64) -> Ratio {
    let (own, starts) = (ratio.error * ratio.error, 2.0 * spread * spread);
    if starts == 0.0 {
        return ratio;
    }
    Ratio {
        common: ratio.common + starts,
        ..Ratio::with_common(ratio.value.ln(), own, ratio.df, starts)
    }
}

/// Which side's runs are further apart than each of them lets expect.
fn apart(base: &SideRow, new: &SideRow, levels: (Option<Level>, Option<Level>)) -> Option<String> {
    let side = |name: &str, row: &SideRow, level: Option<Level>| {
        level.filter(|l| l.contradicted)?;
        let (least, most) = row
            .figures
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(l, m), f| {
                (l.min(f.value), m.max(f.value))
            });
        let percent = (most / least - 1.0) * 100.0;
        Some(format!(
            "the {name}'s {} runs are {percent:.0} % apart, more than each of them lets expect",
            row.figures.len()
        ))
    };
    let both = [
        side("base", base, levels.0),
        side("new side", new, levels.1),
    ];
    both.into_iter()
        .flatten()
        .reduce(|a, b| format!("{a}; {b}"))
}

/// The verdict before the rows are judged together: `same` as a placeholder for those that will be, `unresolved` for
/// those that must not be.
fn first_verdict(
    base: &SideRow,
    new: &SideRow,
    ratio: Option<Ratio>,
    note: Option<String>,
) -> (Verdict, Option<String>) {
    if base.outcome != Outcome::Measured || new.outcome != Outcome::Measured {
        return (Verdict::Unresolved, Some(not_trusted(base, new)));
    }
    match ratio.is_some() || base.value() == new.value() {
        true => (Verdict::Same, note),
        false => (
            Verdict::Unresolved,
            Some("a ratio needs two positive figures".into()),
        ),
    }
}

fn not_trusted(base: &SideRow, new: &SideRow) -> String {
    let side = |name: &str, row: &SideRow| {
        let word = match row.outcome {
            Outcome::Measured => return None,
            Outcome::Untrusted => "untrusted",
            Outcome::Skipped => "skipped in a run",
            Outcome::Failed => "failed in a run",
        };
        Some(format!(
            "{name} {word}: {}",
            row.reason.as_deref().unwrap_or("no reason given")
        ))
    };
    [side("base", base), side("new", new)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; ")
}

/// A side's figure: the run's own estimate, or that of several runs.
fn estimate(row: &SideRow, level: Option<Level>) -> Estimate {
    match (row.figures.as_slice(), level) {
        ([one], _) => one.estimate(),
        (_, Some(l)) => {
            let half = t_two_sided(CONFIDENCE, l.df) * l.variance.sqrt();
            Estimate {
                value: l.log.exp(),
                low: (l.log - half).exp(),
                high: (l.log + half).exp(),
                confidence: CONFIDENCE,
            }
        }
        (many, None) => {
            let values = || many.iter().map(|f| f.value);
            let mean = values().sum::<f64>() / many.len() as f64;
            let (low, high) = (
                values().fold(f64::INFINITY, f64::min),
                values().fold(f64::NEG_INFINITY, f64::max),
            );
            Estimate {
                value: mean,
                low,
                high,
                confidence: CONFIDENCE,
            }
        }
    }
}
