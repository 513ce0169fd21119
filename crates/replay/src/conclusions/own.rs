//! A run of today's machine, asked for what the documents speak of.

use fingerpost_record::{Better, Estimate, Measurement, Outcome, Params, Profile, Run, Unit};

use super::judged::{Answer, Judged};
use super::source;
use fingerpost_compare::aliases;
use fingerpost_compare::figure::Figure;
use fingerpost_compare::ratio::{self, CONFIDENCE, Level, QuantileWeights, Ratio};
use fingerpost_compare::scaling::{COLLAPSED, Scaling, Shape, tables};

/// The rows of a run that are a published row, or stand for it, and have a figure.
pub fn rows<'a>(
    run: &'a Run,
    probe: &'a str,
    published: &'a Params,
) -> impl Iterator<Item = &'a Measurement> {
    let measured = |m: &&Measurement| {
        matches!(m.outcome, Outcome::Measured | Outcome::Untrusted) && m.estimate.is_some()
    };
    run.measurements
        .iter()
        .filter(move |m| {
            m.probe == probe && aliases::matches(probe, published, &m.params).is_some()
        })
        .filter(measured)
}

/// The best of those rows: what the published figure leaves unsaid (placement, state) is then in our favour, and is
/// named beside it.
pub fn best<'a>(run: &'a Run, probe: &'a str, published: &'a Params) -> Option<&'a Measurement> {
    let cost = |m: &&Measurement| {
        let value = m.estimate.map_or(f64::INFINITY, |e| e.value);
        // A row to be trusted comes before one that is not.
        (
            m.outcome != Outcome::Measured,
            if m.better == Better::Higher {
                -value
            } else {
                value
            },
        )
    };
    rows(run, probe, published).min_by(|a, b| {
        cost(a)
            .partial_cmp(&cost(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    })
}

/// A row's figure as a comparison takes it, with what another run may differ by. One of a published system is taken as
/// printed: the document draws its conclusions from it as it stands.
pub fn level(run: &Run, row: &Measurement) -> Option<Level> {
    let e = row
        .estimate
        .filter(|e| e.value.is_finite() && e.value > 0.0)?;
    if run.profile == Profile::Imported {
        return Some(Level {
            log: e.value.ln(),
            variance: 0.0,
            df: 1e6,
            common: 0.0,
            contradicted: false,
        });
    }
    ratio::level(
        &[Figure::of(e, row.process_values())],
        &mut QuantileWeights::default(),
    )
}

/// The level of the best row.
pub fn best_level(run: &Run, probe: &str, published: &Params) -> Option<Level> {
    level(run, best(run, probe, published)?)
}

/// How many times the first figure the second is, with the interval of that.
pub fn times(first: Level, second: Level) -> Estimate {
    let Ratio {
        value, low, high, ..
    } = ratio::between(first, second, false);
    Estimate {
        value,
        low,
        high,
        confidence: CONFIDENCE,
    }
}

/// The interval of a figure that stands before it, in its unit: `value (low to high)` without the value; nothing where
/// it has none.
pub fn from_to(e: &Estimate, words: impl Fn(f64) -> String) -> String {
    if e.low == e.high {
        String::new()
    } else {
        format!(" ({} to {})", words(e.low), words(e.high))
    }
}

/// How many times as long Mac OS X needed as this machine needs, for these probes without parameters, as a sentence;
/// true where each takes at least as many times as long there as is given for it, and not resolved where the interval
/// leaves that open for one and none decides against it. What is given must be true of the Linux systems of the
/// document that the conclusion is about (a test asks them).
pub fn against_mac(run: &Run, probes: &[(&str, &str, f64)]) -> Option<Judged> {
    let mac = source::load("g5-2.7-darwin");
    let mut parts = Vec::new();
    let mut answers = Vec::new();
    for (probe, words, least) in probes {
        let published = mac.measurements.iter().find(|m| m.probe == *probe)?;
        let ours = best(run, probe, &published.params)?;
        let times = times(level(run, ours)?, level(&mac, published)?);
        let part = format!(
            "{words} {} here, {} there, {:.1} times{}",
            published.unit.format(ours.estimate?.value),
            published.unit.format(published.estimate?.value),
            times.value,
            from_to(&times, |t| format!("{t:.1}")),
        );
        let judged = Judged::at_least(&times, *least, part.clone());
        parts.push(match judged.answer {
            Answer::True => part,
            Answer::False => format!("{part}, which is less than {least}"),
            _ => format!("{part}, which leaves {least} open"),
        });
        answers.push(judged.answer);
    }
    let figure = parts.join("; ");
    Some(match answers.contains(&Answer::False) {
        false if answers.contains(&Answer::NotResolved) => Judged::open(figure),
        contradicted => Judged::by(!contradicted, figure),
    })
}

/// What share of the time of something else, in words, making a thread takes, and a sentence that says so.
pub fn thread_beside(
    run: &Run,
    probe: &str,
    params: &Params,
    words: &str,
) -> Option<(Estimate, String)> {
    let none = Params::new();
    let (thread, other) = (
        best(run, "thread.create", &none)?,
        best(run, probe, params)?,
    );
    let share = times(level(run, other)?, level(run, thread)?);
    let text = |row: &Measurement| Some(Unit::Nanoseconds.format(row.estimate?.value));
    let interval = from_to(&share, |t| format!("{t:.2}"));
    Some((
        share,
        format!(
            "a thread takes {}, {words} {}: {:.2} times its time{interval}",
            text(thread)?,
            text(other)?,
            share.value
        ),
    ))
}

/// The throughput of a database over its clients.
pub struct Clients {
    /// The table and its shape.
    pub scaling: Scaling,
    levels: Vec<(u64, Level)>,
}

impl Clients {
    /// How many times what some clients get others get, with the interval of that.
    pub fn gain(&self, from: u64, to: u64) -> Option<Estimate> {
        Some(times(self.level(from)?, self.level(to)?))
    }

    /// The throughput of so many clients.
    pub fn level(&self, clients: u64) -> Option<Level> {
        self.levels
            .iter()
            .find(|(n, _)| *n == clients)
            .map(|(_, level)| *level)
    }

    /// Whether what the most clients get is a collapse from the peak; nothing where the interval leaves that open.
    pub fn collapses(&self) -> Option<bool> {
        let last = self.scaling.rows.last()?.clients;
        let kept = self.gain(self.scaling.peak().clients, last)?;
        match self.scaling.shape {
            Shape::Collapses { .. } if kept.high < COLLAPSED => Some(true),
            Shape::Scales | Shape::Saturates { .. } | Shape::Declines { .. }
                if kept.low >= COLLAPSED =>
            {
                Some(false)
            }
            _ => None,
        }
    }

    /// What some clients get in per cent of what one gets, in words, with its interval.
    pub fn share_of_one(&self, clients: u64) -> Option<(Estimate, String)> {
        let gain = self.gain(1, clients)?;
        let percent = |t: f64| format!("{:.0}", 100.0 * t);
        Some((
            gain,
            format!("{} %{}", percent(gain.value), from_to(&gain, percent)),
        ))
    }
}

/// The throughput of a database over its clients: the one most like the published one.
pub fn clients(run: &Run) -> Option<Clients> {
    let like = |params: &Params| {
        let is = |key: &str, value: &str| usize::from(params.text(key) == Some(value));
        4 * (is("engine", "mariadb") + is("engine", "mysql"))
            + 2 * is("mix", "read")
            + is("query_cache", "off")
    };
    let mut found: Vec<_> = tables(run)
        .into_iter()
        .filter(|t| t.workload == "database")
        .collect();
    found.sort_by_key(|t| std::cmp::Reverse(like(&t.params)));
    let table = found
        .into_iter()
        .find(|t| t.scaling.rows[0].clients == 1 && t.scaling.rows.len() > 2)?;
    let row = |clients: u64| {
        let is_it = |m: &&Measurement| {
            m.probe == THROUGHPUT && m.params.int("clients") == i64::try_from(clients).ok()
        };
        let row = run
            .measurements
            .iter()
            .filter(is_it)
            .find(|m| m.params.without(&["clients"]) == table.params)?;
        Some((clients, level(run, row)?))
    };
    let levels = table
        .scaling
        .rows
        .iter()
        .map(|r| row(r.clients))
        .collect::<Option<_>>()?;
    Some(Clients {
        scaling: table.scaling,
        levels,
    })
}

/// What a database served.
pub const THROUGHPUT: &str = "database.throughput";
