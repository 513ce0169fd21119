//! Hardware counters of a service in one line: how many instructions a cycle, and what was missed.

use fingerpost_record::Readings;
use fingerpost_record::unit::significant;

use super::explanation::Explanation;
use crate::grid::{Grid, Line};
use crate::style::Tone;
use crate::words::clean;

/// The observer that has hardware counters.
pub const HARDWARE: &str = "hardware";
/// A class of threads' time with its name.
const CLASSES: [(&str, &str); 3] = [
    ("requests", "with a request"),
    ("slow", "with one of the slowest 1 %"),
    ("client", "its clients here"),
];
/// Fewer instructions than a thousand samples stand for say nothing.
const LEAST: f64 = 1e8;

/// The line; nothing where nothing was counted.
pub fn grid(e: &Explanation) -> Grid {
    let mut grid = Grid::default();
    if !e
        .observations
        .iter()
        .any(|o| o.observer == HARDWARE && !o.totals.is_empty())
    {
        return grid;
    }
    let totals = Readings::of(&e.observations);
    let told: Vec<String> = CLASSES
        .iter()
        .filter_map(|(class, words)| Some(format!("{words} {}", figures(&totals, class)?)))
        .collect();
    if !told.is_empty() {
        grid.lines.push(Line::Labelled(
            "counters".into(),
            clean(&told.join("; ")),
            Tone::Plain,
        ));
    }
    grid
}

fn figures(totals: &Readings, class: &str) -> Option<String> {
    let of = |event: &str| totals.known_as(&format!("hardware.{event}.{class}"));
    let instructions = of("instructions").filter(|n| *n >= LEAST)?;
    let each = |event: &str| of(event).map(|n| n / instructions * 1000.0);
    let mut words = of("cycles")
        .filter(|c| *c > 0.0)
        .map(|c| format!("{} instructions a cycle", significant(instructions / c)))?;
    let missed: Vec<String> = [("cache_misses", "cache"), ("dtlb_misses", "TLB")]
        .into_iter()
        .filter_map(|(event, name)| Some(format!("{} {name}", significant(each(event)?))))
        .collect();
    if !missed.is_empty() {
        words += &format!(", {} misses per 1000 instructions", missed.join(" and "));
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use fingerpost_diagnose::StepFigures;
    use fingerpost_record::{Observation, Params};

    use super::*;
    use crate::style::Style;

    fn shown(totals: &[(&str, f64)]) -> String {
        let observation = Observation {
            workload: String::new(),
            params: Params::new(),
            observer: HARDWARE.into(),
            source: "recorded".into(),
            totals: totals
                .iter()
                .map(|(k, v)| (format!("hardware.{k}"), *v))
                .collect(),
            ..Observation::default()
        };
        grid(&Explanation::new(
            "service",
            &Params::new(),
            &StepFigures::default(),
            None,
            vec![observation],
        ))
        .render(&Style::default())
    }

    #[test]
    fn counters_are_told_by_class_and_what_was_not_counted_is_not() {
        let text = shown(&[
            ("instructions.requests", 2e9),
            ("cycles.requests", 1e9),
            ("cache_misses.requests", 3e6),
            ("instructions.slow", 5e8),
            ("cycles.slow", 1e9),
            ("cache_misses.slow", 5e6),
            ("instructions.client", 7.0),
            ("cycles.client", 3.0),
        ]);
        assert!(
            text.contains("with a request 2.000 instructions a cycle, 1.500 cache misses per 1000 instructions"),
            "{text}"
        );
        assert!(
            text.contains(
                "with one of the slowest 1 % 0.5000 instructions a cycle, 10.00 cache misses"
            ),
            "{text}"
        );
        assert!(!text.contains("clients") && !text.contains("TLB"), "{text}");
        assert_eq!(shown(&[]), "");
    }
}
