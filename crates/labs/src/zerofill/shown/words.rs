//! The words of the zero-fill laboratory: its fields with their names, the guesses, the rankings.

use crate::zerofill::analysis::guesses::{Guess, Verdict};
use crate::zerofill::analysis::rank::{Crossover, Ranking, stretches};
use crate::zerofill::analysis::solve::{self, Costs, FIELDS};
use crate::zerofill::analysis::{Agreement, Analysis, Given};
use fingerpost_record::text::{clean, counted};
use fingerpost_record::{Estimate, Unit};

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

/// Ours beside the kernel's profile, as a sentence.
pub fn agreement(g: &Agreement) -> String {
    let [ours, kernel] = [g.ours, g.kernel].map(|e| Unit::Nanoseconds.format(e.value));
    format!("{}: {ours} against {kernel}, ratio {:.2}.", g.what, g.ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

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
