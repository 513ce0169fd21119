//! The zero-fill laboratory in the terminal: what was given apart from what is derived, the picture of the shares, the
//! guesses, the rankings.

use crate::zerofill::analysis::guesses::{Guess, Verdict};
use crate::zerofill::analysis::rank::{Crossover, Ranking, stretches};
use crate::zerofill::analysis::solve::{self, Costs, FIELDS};
use crate::zerofill::analysis::{Agreement, Analysis, Given, headline};
use fingerpost_record::text::{clean, counted};
use fingerpost_record::{Estimate, Unit};

use fingerpost_report::grid::{Align, Grid, Line};
use fingerpost_report::style::{Style, Tone};

/// The article's fields of [`Given`] with their names.
pub fn given_fields(given: &Given) -> [(&'static str, Estimate); 4] {
    let [alloc_1, touch_1, alloc_2, touch_2] = given.all();
    [
        ("1p alloc", alloc_1),
        ("1p alloc + fault", touch_1),
        ("2p alloc", alloc_2),
        ("2p alloc + fault", touch_2),
    ]
}

/// The article's derived fields: name, value, and formula with what the article prints where that is something else.
pub fn derived_fields(a: &Analysis, costs: &Costs) -> Vec<((&'static str, String), String)> {
    let misprints = a
        .given
        .map_or([None; 7], |given| solve::misprints(&given.timings()));
    let time = |ns: f64| Unit::Nanoseconds.format(ns);
    let field =
        |(((_, name, formula), value), printed): ((&(_, &'static str, &str), f64), Option<f64>)| {
            let printed = printed.map_or(String::new(), |p| {
                format!(" (the article prints {})", without_zeros(&time(p)))
            });
            ((*name, time(value)), format!("= {formula}{printed}"))
        };
    FIELDS
        .iter()
        .zip(costs.values())
        .zip(misprints)
        .map(field)
        .collect()
}

/// A figure with its unit, with as many digits as were printed: `7.5 µs`, not `7.500 µs`.
pub fn without_zeros(figure: &str) -> String {
    let trimmed = |number: &str| {
        number
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
    };
    match figure.split_once(' ') {
        Some((number, unit)) if number.contains('.') => format!("{} {unit}", trimmed(number)),
        None if figure.contains('.') => trimmed(figure),
        _ => figure.to_owned(),
    }
}

/// The call that maps beside one that does nothing, as a sentence.
pub fn call(a: &Analysis) -> Option<String> {
    let c = a.call?;
    let [null, allocation] = [c.null.value, c.allocation].map(|ns| Unit::Nanoseconds.format(ns));
    Some(format!(
        "Transport or work: a call that does nothing takes {null}, one that allocates {allocation}; {:.0} % of it is \
         the way into the kernel and back.",
        c.transport * 100.0
    ))
}

/// The heading of the four timings.
pub fn given_title(analysis: &Analysis) -> String {
    format!("Given: four timings of {}", clean(&analysis.api))
}

/// The fitted costs with their names; none where there is no fit.
pub fn fit_fields(analysis: &Analysis) -> Vec<(&'static str, Estimate)> {
    analysis.fit.as_ref().map_or(Vec::new(), |f| {
        vec![
            ("allocation base", f.alloc_base),
            ("allocation per page", f.alloc_page),
            ("first touch base", f.object),
            ("first touch per page", f.fault_page),
        ]
    })
}

/// What the fit rests on, in words.
pub fn fit_note(analysis: &Analysis) -> Option<String> {
    let f = analysis.fit.as_ref()?;
    let base = format!(
        "Two lines through 1 to {} pages; the point furthest off lies {:.1} % from its line.",
        f.up_to,
        f.worst_residual * 100.0
    );
    Some(match f.knee {
        Some(k) => {
            format!(
                "{base} From {} pages on touching costs {:.2} times the line: the pages no longer fit in a cache.",
                k.pages, k.factor
            )
        }
        None => base,
    })
}

/// Both ends of an interval; a dash before a minus would not be read as one.
fn between(e: Estimate, told: impl Fn(f64) -> String) -> String {
    format!(
        "{}{}{}",
        told(e.low),
        if e.low < 0.0 { " to " } else { "–" },
        told(e.high)
    )
}

/// Nanoseconds with their interval.
pub fn time(e: Estimate) -> String {
    let scale = Unit::Nanoseconds.scale_for(e.value);
    format!(
        "{} {} ({})",
        scale.number(e.value),
        scale.symbol,
        between(e, |v| scale.number(v))
    )
}

/// Shares as per cent, factors as they are.
fn quantity(guess: &Guess, value: f64) -> String {
    if guess.quantity.ends_with("in allocations") {
        format!("{value:.2}")
    } else {
        format!("{:.0} %", value * 100.0)
    }
}

/// What was guessed: `50 % to 80 %`, `at least 50 %`, `0.25`.
pub fn guessed(guess: &Guess) -> String {
    match guess.guessed {
        (low, None) => format!("at least {}", quantity(guess, low)),
        (low, Some(high)) if low == high => quantity(guess, low),
        (low, Some(high)) => format!("{} to {}", quantity(guess, low), quantity(guess, high)),
    }
}

/// What was measured, with its interval.
pub fn measured(guess: &Guess) -> String {
    let m = guess.measured;
    format!(
        "{} ({})",
        quantity(guess, m.value),
        between(m, |v| quantity(guess, v))
    )
}

/// How a guess fares, in words.
pub fn verdict(guess: &Guess) -> String {
    match guess.verdict {
        Verdict::Holds => "holds".into(),
        Verdict::Unresolved => "not resolved".into(),
        Verdict::Off if guess.factor >= 1.0 => {
            format!("too low: {:.1} times the guess", guess.factor)
        }
        Verdict::Off if guess.factor > 0.0 => {
            format!("too high: {:.2} times the guess", guess.factor)
        }
        Verdict::Off => "too high: there is none".into(),
    }
}

/// From how many pages on a way beats plain touching, as a sentence.
pub fn crossover(c: &Crossover) -> String {
    let (name, against) = (clean(&c.name), clean(&c.against));
    let pages = |n: i64| counted(n.unsigned_abs(), "page");
    let most = pages(c.most_pages);
    let there = if c.times_at_most >= 1.0 {
        format!("at {most} it is {:.2} times as fast", c.times_at_most)
    } else {
        format!(
            "at {most} it takes {:.2} times as long",
            1.0 / c.times_at_most
        )
    };
    match c.from_pages {
        Some(from) => format!("{name} beats {against} from {} on; {there}.", pages(from)),
        None => format!("{name} does not beat {against} for certain; {there}."),
    }
}

/// Who is cheapest over which page counts: `1–4 pages: touch`, with all names that may be where intervals overlap.
pub fn leads(rankings: &[Ranking]) -> Vec<(String, String)> {
    stretches(rankings)
        .into_iter()
        .map(|(from, to, leaders)| {
            let range = if from == to {
                counted(from.unsigned_abs(), "page")
            } else {
                format!("{from}–{to} pages")
            };
            let names: Vec<String> = leaders.iter().map(|l| clean(l).into_owned()).collect();
            let who = if names.len() == 1 {
                names[0].clone()
            } else {
                format!("{} (not distinguishable)", names.join(" or "))
            };
            (range, who)
        })
        .collect()
}

/// The contenders at one page count, cheapest first: `mmap 3.2 µs, brk 1.05 ×`.
pub fn places(ranking: &Ranking) -> String {
    let one = |(i, p): (usize, &crate::zerofill::analysis::rank::Place)| {
        let name = clean(&p.name);
        if i == 0 {
            format!("{name} {}", Unit::Nanoseconds.format(p.cost.value))
        } else {
            format!("{name} {} ×", times(p.times))
        }
    };
    ranking
        .places
        .iter()
        .enumerate()
        .map(one)
        .collect::<Vec<_>>()
        .join(", ")
}

/// A ratio with three digits or as many as it has before the point.
fn times(ratio: f64) -> String {
    let digits = [100.0, 10.0].iter().filter(|least| ratio < **least).count();
    format!("{ratio:.digits$}")
}

/// The analysis with its finding; ends with a line end.
pub fn render(analysis: &Analysis, style: &Style) -> String {
    let lead = part(
        headline(analysis)
            .map(|sentence| Line::Note(sentence, Tone::Strong))
            .into_iter()
            .collect(),
    );
    std::iter::once(lead)
        .chain(grids(analysis))
        .map(|grid| grid.render(style))
        .collect()
}

/// Each part as a grid.
pub fn grids(analysis: &Analysis) -> Vec<Grid> {
    let lead = vec![Line::Heading("Zero-filling, taken apart".into())];
    let parts = [
        lead,
        shares(analysis),
        article(analysis),
        costs(analysis),
        guesses(analysis),
        rankings(analysis),
    ];
    parts.map(part).into()
}

/// Each part has columns of its own: a formula must not push the bars of a picture aside.
fn part(lines: Vec<Line>) -> Grid {
    Grid {
        lines,
        ..Grid::untitled([(Align::Left, 0); 4])
    }
}

fn row<const N: usize>(cells: [String; N]) -> Line {
    Line::Cells(cells.to_vec(), Tone::Plain)
}

fn heading(title: &str) -> [Line; 2] {
    [Line::Blank, Line::Heading(title.into())]
}

/// The four editable fields, then the derived ones with their formulas.
fn article(a: &Analysis) -> Vec<Line> {
    let Some(given) = &a.given else {
        return Vec::new();
    };
    let mut lines = heading(&given_title(a)).to_vec();
    lines.extend(given_fields(given).map(|(name, e)| row([format!("  {name}"), time(e)])));
    let t = given.timings();
    lines.push(Line::Note(
        format!(
            "to change them: fingerpost zerofill --solve {:.1},{:.1},{:.1},{:.1}",
            t.alloc_1, t.touch_1, t.alloc_2, t.touch_2
        ),
        Tone::Faint,
    ));
    lines.extend(heading("Derived: the article's arithmetic"));
    if let Some(costs) = &a.derived {
        for ((name, value), formula) in derived_fields(a, costs) {
            lines.push(row([format!("  {name}"), value, formula]));
        }
    }
    lines.extend(call(a).map(|sentence| Line::Note(sentence, Tone::Plain)));
    lines.extend(
        a.underivable
            .iter()
            .map(|why| Line::Note(why.clone(), Tone::Doubtful)),
    );
    lines
}

/// The fit, the routes to the zeroing cost, and both beside the kernel's profile.
fn costs(a: &Analysis) -> Vec<Line> {
    let mut lines = Vec::new();
    if a.fit.is_some() {
        lines.extend(heading("Measured: all page counts together"));
        lines.extend(
            fit_fields(a)
                .into_iter()
                .map(|(name, e)| row([format!("  {name}"), time(e)])),
        );
        lines.extend(fit_note(a).map(|note| Line::Note(note, Tone::Faint)));
    }
    if !a.zeroing.is_empty() {
        lines.extend(heading("Zeroing one page, by independent routes"));
        lines.extend(a.zeroing.iter().map(|r| {
            row([
                format!("  {}", r.name),
                time(r.per_page),
                format!("{} at a time", counted(r.pages.unsigned_abs(), "page")),
            ])
        }));
    }
    lines.extend(
        a.agreement
            .iter()
            .map(|g| Line::Note(agreement(g), Tone::Plain)),
    );
    if !a.zeroing.is_empty() && a.agreement.is_empty() {
        lines.push(Line::Note(
            "The kernel's own samples are not there to compare with; the skipped row zerofill.kernel_profile says why."
                .into(),
            Tone::Faint,
        ));
    }
    lines
}

/// Ours beside the kernel's profile, as a sentence.
pub fn agreement(g: &Agreement) -> String {
    let [ours, kernel] = [g.ours, g.kernel].map(|e| Unit::Nanoseconds.format(e.value));
    format!("{}: {ours} against {kernel}, ratio {:.2}.", g.what, g.ratio)
}

/// How many characters a whole bar is.
const BAR: usize = 32;

/// A bar of this many characters in three parts: zeroing, faults, allocation.
pub fn bar(zero: f64, fault: f64, whole: usize) -> String {
    let edge = |share: f64| ((share.clamp(0.0, 1.0) * whole as f64).round() as usize).min(whole);
    let (first, second) = (edge(zero), edge(zero + fault).max(edge(zero)));
    format!(
        "{}{}{}",
        "█".repeat(first),
        "▒".repeat(second - first),
        "·".repeat(whole - second)
    )
}

fn shares(a: &Analysis) -> Vec<Line> {
    if a.shares.is_empty() {
        return Vec::new();
    }
    let mut lines = heading(
        "Where the time goes: █ zero-filling, ▒ faults and mapping, · allocating and freeing",
    )
    .to_vec();
    for s in &a.shares {
        let pages = format!("  {}", counted(s.pages.unsigned_abs(), "page"));
        lines.push(row([
            pages,
            bar(s.zero, s.fault, BAR),
            format!("{:.0} % zero-filling", s.zero * 100.0),
            Unit::Nanoseconds.format(s.total),
        ]));
    }
    lines
}

fn guesses(a: &Analysis) -> Vec<Line> {
    if a.guesses.is_empty() {
        return Vec::new();
    }
    let mut lines = heading("The article's guesses on this machine").to_vec();
    for g in &a.guesses {
        let tone = if g.verdict == Verdict::Holds {
            Tone::Plain
        } else {
            Tone::Doubtful
        };
        lines.push(Line::Note(format!("{}.", g.says), Tone::Plain));
        lines.push(Line::Note(
            format!(
                "  {}: guessed {}, measured {}: {}.",
                g.quantity,
                guessed(g),
                measured(g),
                verdict(g)
            ),
            tone,
        ));
    }
    lines
}

fn rankings(a: &Analysis) -> Vec<Line> {
    let mut lines = Vec::new();
    if !a.prefault.is_empty() {
        lines.extend(heading(
            "Faulting in ahead, against plain touching: the cheapest way per page count",
        ));
        lines.extend(
            leads(&a.prefault)
                .into_iter()
                .map(|(range, who)| row([format!("  {range}"), who])),
        );
        lines.extend(
            a.crossovers
                .iter()
                .map(|c| Line::Note(crossover(c), Tone::Plain)),
        );
    }
    for (title, list) in [
        ("Ways to get memory, every page touched", &a.apis),
        ("Ways to get memory, untouched", &a.apis_untouched),
    ] {
        if !list.is_empty() {
            lines.extend(heading(title));
            lines.extend(list.iter().map(|r| {
                Line::Labelled(
                    format!("  {}", counted(r.pages.unsigned_abs(), "page")),
                    places(r),
                    Tone::Plain,
                )
            }));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_whatever_its_shares() {
        for (zero, fault) in [
            (0.0, 0.0),
            (1.0, 0.0),
            (0.25, 0.5),
            (0.333, 0.667),
            (2.0, 1.0),
            (-1.0, 0.5),
            (f64::NAN, f64::NAN),
        ] {
            assert_eq!(bar(zero, fault, BAR).chars().count(), BAR, "{zero} {fault}");
        }
        assert_eq!(bar(0.25, 0.5, 40).matches('█').count(), 10);
        assert_eq!(bar(0.25, 0.5, 40).matches('▒').count(), 20);
    }

    #[test]
    fn a_guess_reads_as_share_or_ratio() {
        let guess = |quantity, guessed, value, factor, verdict| Guess {
            key: "k",
            says: "s",
            quantity,
            guessed,
            measured: Estimate {
                value,
                low: value,
                high: value,
                confidence: 0.95,
            },
            factor,
            verdict,
        };
        let g = guess("share of x", (0.5, Some(0.8)), 0.123, 0.246, Verdict::Off);
        assert_eq!(
            (guessed(&g), measured(&g), verdict(&g)),
            (
                "50 % to 80 %".into(),
                "12 % (12 %–12 %)".into(),
                "too high: 0.25 times the guess".into()
            )
        );
        let g = guess(
            "one fault, in allocations",
            (0.25, Some(0.25)),
            1.0,
            4.0,
            Verdict::Off,
        );
        assert_eq!(
            (guessed(&g), verdict(&g)),
            ("0.25".into(), "too low: 4.0 times the guess".into())
        );
        assert_eq!(
            guessed(&guess("share", (0.5, None), 0.6, 1.0, Verdict::Holds)),
            "at least 50 %"
        );
        let below = Estimate {
            value: 89.2,
            low: -1531.0,
            high: 3794.0,
            confidence: 0.95,
        };
        assert_eq!(
            (time(below), time(Estimate { low: 80.0, ..below })),
            (
                "89.20 ns (-1531 to 3794)".into(),
                "89.20 ns (80.00–3794)".into()
            )
        );
    }
}
