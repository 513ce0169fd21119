//! The memory hierarchy as a staircase and in sentences.

use std::collections::BTreeSet;

use crate::memory::analysis::{Cache, Curve, Memory, Reach};
use fingerpost_record::Unit;
use fingerpost_record::text::counted;

use fingerpost_report::grid::{Align, Grid, Line};
use fingerpost_report::style::Tone;
use fingerpost_report::words::{clean, short};

/// What the picture is called.
pub const TITLE: &str =
    "Memory hierarchy (nanoseconds of a load by the size of the range, logarithmic)";

/// Columns of the longest bar.
const BAR: f64 = 40.0;

/// A size with its binary unit and no digits that say nothing: `48 KiB`, `1.5 MiB`.
pub fn size(bytes: u64) -> String {
    let (divisor, unit) = match bytes {
        b if b >= 1 << 30 => (1u64 << 30, "GiB"),
        b if b >= 1 << 20 => (1 << 20, "MiB"),
        _ => (1 << 10, "KiB"),
    };
    format!("{} {unit}", short(bytes as f64 / divisor as f64))
}

/// What was found, as names and sentences.
pub fn sentences(memory: &Memory) -> Vec<(String, String, Tone)> {
    let mut all: Vec<_> = memory
        .levels
        .iter()
        .enumerate()
        .map(|(i, cache)| cache_sentence(i, cache))
        .collect();
    if memory.untrusted {
        let sentence =
            "many rows of the curve are untrusted: what is said of the levels is a guess"
                .to_owned();
        all.push(("Doubt".to_owned(), sentence, Tone::Doubtful));
    }
    all.extend(memory.reaches.iter().map(reach_sentence));
    if let Some(backing) = backing(memory) {
        all.push(backing);
    }
    all.extend(
        memory
            .no_huge_pages
            .iter()
            .map(|reason| ("Huge pages".to_owned(), clean(reason), Tone::Doubtful)),
    );
    all
}

/// What a reader wants to know first: what a load costs from each level, and how large the caches are.
pub fn answer(memory: &Memory) -> Option<String> {
    let level = |(i, cache): (usize, &Cache)| {
        let room = cache.level.passed.map_or(String::new(), |passed| {
            format!(" ({})", between(cache.level.fits, passed))
        });
        let name = name_of(i, cache);
        let name = if name == MEMORY {
            "memory"
        } else {
            name.as_str()
        };
        format!(
            "{} from {name}{room}",
            Unit::Nanoseconds.format(cache.level.height)
        )
    };
    let levels: Vec<String> = memory.levels.iter().enumerate().map(level).collect();
    let doubt = if memory.untrusted {
        " Many rows are untrusted, so the sizes are a guess."
    } else {
        ""
    };
    (!levels.is_empty()).then(|| format!("A load takes {}.{doubt}", levels.join(", ")))
}

/// The name of what lies behind all caches.
const MEMORY: &str = "Memory";

/// Where a level ends: the largest size that was in it, and the smallest that was not.
pub fn between(fits: u64, passed: u64) -> String {
    let (from, to) = (size(fits), size(passed));
    match (from.split_once(' '), to.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}–{to}"),
        _ => format!("{from}–{to}"),
    }
}

/// What a level is called: as the system calls the cache, else by its place.
pub fn name_of(place: usize, cache: &Cache) -> String {
    match &cache.reported {
        Some((name, _)) => clean(name),
        None if cache.level.passed.is_none() => MEMORY.to_owned(),
        None => format!("Level {}", place + 1),
    }
}

fn cache_sentence(place: usize, cache: &Cache) -> (String, String, Tone) {
    let height = Unit::Nanoseconds.format(cache.level.height);
    let found = match cache.level.passed {
        Some(passed) => format!(
            "ends between {} and {}",
            size(cache.level.fits),
            size(passed)
        ),
        None => format!(
            "reaches to {}, the largest range that was walked",
            size(cache.level.fits)
        ),
    };
    let reported = match &cache.reported {
        Some((_, bytes)) => format!("; the system reports {}", size(*bytes)),
        None if cache.level.passed.is_none() => String::new(),
        None => "; the system reports no such cache".to_owned(),
    };
    let (verdict, tone) = match cache.agrees() {
        Some(true) => (", which agrees", Tone::Plain),
        Some(false) => (", which the curve contradicts", Tone::Doubtful),
        None => ("", Tone::Plain),
    };
    (
        name_of(place, cache),
        format!("{height} a load; {found}{reported}{verdict}"),
        tone,
    )
}

fn reach_sentence(reach: &Reach) -> (String, String, Tone) {
    let label = format!("Translation, {} pages", clean(&reach.pages));
    let level = |l: &crate::memory::analysis::staircase::Level| {
        let cost = if l.height < 0.3 {
            "free".to_owned()
        } else {
            format!("{} a load", Unit::Nanoseconds.format(l.height))
        };
        let pages = l.fits / 4096;
        format!("{cost} up to {pages} pages of 4 KiB ({})", size(l.fits))
    };
    let text: Vec<String> = reach.levels.iter().map(level).collect();
    let text = if text.is_empty() {
        "no level could be told".to_owned()
    } else {
        text.join(", then ")
    };
    (label, text, Tone::Plain)
}

/// Huge pages that translate no further than base pages are not huge underneath: a virtual machine whose host backs it
/// with base pages.
fn backing(memory: &Memory) -> Option<(String, String, Tone)> {
    let first = |pages: &str| {
        memory
            .reaches
            .iter()
            .find(|r| r.pages == pages)?
            .levels
            .first()
            .filter(|l| l.passed.is_some())
    };
    let (small, huge) = (first("small")?, first("huge")?);
    let sentence = "huge pages reach no further than base pages before translation costs: the host backs this \
        machine's memory with base pages";
    (huge.fits <= small.fits * 2)
        .then(|| ("Huge pages".to_owned(), sentence.to_owned(), Tone::Doubtful))
}

/// The staircase, the sentences and the bandwidths.
pub fn grids(memory: &Memory) -> Vec<Grid> {
    let labelled = |(label, sentence, tone)| Line::Labelled(label, sentence, tone);
    let mut grids: Vec<Grid> = memory
        .curves
        .first()
        .map(|curve| staircase(memory, curve))
        .into_iter()
        .collect();
    grids.push(Grid {
        lines: sentences(memory).into_iter().map(labelled).collect(),
        ..Grid::default()
    });
    grids.extend((!memory.bandwidths.is_empty()).then(|| bandwidths(memory)));
    grids
}

/// A bar per size; a line where a level ends.
fn staircase(memory: &Memory, curve: &Curve) -> Grid {
    let mut grid = Grid::untitled(
        [Align::Right, Align::Right, Align::Right, Align::Left].map(|align| (align, 0)),
    );
    grid.lines.push(Line::Heading(TITLE.to_owned()));
    let second = memory.curves.get(1);
    let heads = [
        "size".to_owned(),
        clean(&curve.pages),
        second.map_or(String::new(), |c| clean(&c.pages)),
        String::new(),
    ];
    grid.lines.push(Line::Cells(heads.to_vec(), Tone::Faint));
    let all = curve
        .points
        .iter()
        .map(|(_, e)| e.value)
        .filter(|v| v.is_finite() && *v > 0.0);
    let (low, high) = all.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), v| {
        (low.min(v), high.max(v))
    });
    for (bytes, estimate) in &curve.points {
        let share = ((estimate.value / low).ln() / (high / low).ln()).clamp(0.0, 1.0);
        // The lowest level has a bar too.
        let length = if share.is_finite() {
            1.0 + share * (BAR - 1.0)
        } else {
            1.0
        };
        let other = second
            .and_then(|c| c.points.iter().find(|(size, _)| size == bytes))
            .map_or(String::new(), |(_, e)| ns(e.value));
        let end = memory
            .levels
            .iter()
            .position(|cache| cache.level.passed.is_some() && cache.level.fits == *bytes);
        let mark = end.map_or(String::new(), |i| {
            format!(" ← {} ends", cache_sentence(i, &memory.levels[i]).0)
        });
        let bar = format!("{}{mark}", "█".repeat(length.round() as usize));
        grid.lines.push(Line::Cells(
            vec![
                format!("  {}", size(*bytes)),
                ns(estimate.value),
                other,
                bar,
            ],
            Tone::Plain,
        ));
    }
    grid
}

fn ns(value: f64) -> String {
    format!("{value:.*}", if value < 100.0 { 2 } else { 1 })
}

/// What is done and where, by number of CPUs.
fn bandwidths(memory: &Memory) -> Grid {
    let (heads, rows) = bandwidth_table(memory);
    let mut grid = Grid::untitled(
        [Align::Left]
            .into_iter()
            .chain(heads.iter().map(|_| Align::Right))
            .map(|a| (a, 0)),
    );
    // The sentences before it belong to the staircase; this is a table of its own.
    let title = "Memory bandwidth (GB/s of all CPUs together, by the size that each walks)";
    grid.lines
        .extend([Line::Blank, Line::Heading(title.into())]);
    grid.lines.push(Line::Cells(
        [String::new()].into_iter().chain(heads).collect(),
        Tone::Faint,
    ));
    let row =
        |(op, cells): (String, Vec<String>)| [format!("  {op}")].into_iter().chain(cells).collect();
    grid.lines.extend(
        rows.into_iter()
            .map(|cells| Line::Cells(row(cells), Tone::Plain)),
    );
    grid
}

/// Bandwidths as a table: the heads of its columns of figures; for each row what is done, the size, and the rates.
pub fn bandwidth_table(memory: &Memory) -> (Vec<String>, Vec<(String, Vec<String>)>) {
    let threads: BTreeSet<u64> = memory.bandwidths.iter().map(|b| b.threads).collect();
    let rows = memory
        .bandwidths
        .chunk_by(|a, b| (&a.op, a.size) == (&b.op, b.size))
        .map(|of| {
            let rate = |n: &u64| {
                of.iter()
                    .find(|b| b.threads == *n)
                    .map(|b| format!("{:.1}", b.rate.value / 1e9))
            };
            let rates = threads
                .iter()
                .map(|n| rate(n).unwrap_or_else(|| "–".to_owned()));
            (
                clean(&of[0].op),
                [size(of[0].size)].into_iter().chain(rates).collect(),
            )
        });
    let rows = rows.collect();
    (
        ["size".to_owned()]
            .into_iter()
            .chain(threads.iter().map(|n| counted(*n, "CPU")))
            .collect(),
        rows,
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::memory::analysis::Bandwidth;
    use crate::memory::analysis::staircase::Level;
    use fingerpost_record::Estimate;
    use fingerpost_report::style::Style;

    fn at(value: f64) -> Estimate {
        Estimate {
            value,
            low: value,
            high: value,
            confidence: 0.95,
        }
    }

    /// Two levels, one of which the system contradicts; translation; two bandwidths.
    pub fn example() -> Memory {
        let level = |height, fits, passed| Level {
            height,
            fits,
            passed,
        };
        let points = vec![
            (4096, at(1.0)),
            (16384, at(1.0)),
            (65536, at(10.0)),
            (1 << 20, at(100.0)),
        ];
        Memory {
            curves: vec![
                Curve {
                    pages: "huge".into(),
                    points: points.clone(),
                },
                Curve {
                    pages: "small".into(),
                    points: points[..2].to_vec(),
                },
            ],
            levels: vec![
                Cache {
                    level: level(1.0, 16384, Some(65536)),
                    reported: Some(("L1d".into(), 32768)),
                },
                Cache {
                    level: level(10.0, 65536, Some(1 << 20)),
                    reported: Some(("L2\u{1b}".into(), 32 << 20)),
                },
                Cache {
                    level: level(100.0, 1 << 20, None),
                    reported: None,
                },
            ],
            reaches: vec![
                Reach {
                    pages: "small".into(),
                    levels: vec![
                        level(0.0, 64 << 12, Some(128 << 12)),
                        level(2.0, 1 << 20, None),
                    ],
                },
                Reach {
                    pages: "huge".into(),
                    levels: vec![level(0.0, 64 << 12, Some(128 << 12))],
                },
            ],
            bandwidths: [(1, 10e9), (2, 20e9)]
                .map(|(threads, rate)| Bandwidth {
                    op: "read".into(),
                    size: 16384,
                    threads,
                    rate: at(rate),
                })
                .to_vec(),
            no_huge_pages: None,
            untrusted: false,
        }
    }

    fn shown(memory: &Memory) -> String {
        grids(memory)
            .iter()
            .map(|grid| grid.render(&Style::default()))
            .collect()
    }

    #[test]
    fn the_staircase_rises_and_names_the_ends_of_its_levels() {
        let text = shown(&example());
        assert!(!text.contains('\u{1b}'));
        let bars: Vec<usize> = text
            .lines()
            .filter(|l| l.contains('█'))
            .map(|l| l.matches('█').count())
            .collect();
        assert_eq!(bars, [1, 1, 21, 40]);
        assert!(text.contains("← L1d ends"), "{text}");
        assert!(
            text.contains("L1d")
                && text.contains(
                    "1.000 ns a load; ends between 16 KiB and 64 KiB; the system reports 32 KiB, which agrees"
                )
        );
        assert!(text.contains("which the curve contradicts"));
        assert!(text.contains("free up to 64 pages of 4 KiB (256 KiB), then 2.000 ns a load"));
        assert!(text.contains("the host backs this machine's memory with base pages"));
        assert!(
            text.lines().any(|l| l
                .split_whitespace()
                .eq(["read", "16", "KiB", "10.0", "20.0"])),
            "{text}"
        );
    }

    #[test]
    fn the_answer_names_each_level_with_the_sizes_between_which_it_ends() {
        let memory = example();
        let levels = "A load takes 1.000 ns from L1d (16–64 KiB), 10.00 ns from L2\u{fffd} (64 KiB–1 MiB), 100.0 ns \
            from memory.";
        assert_eq!(answer(&memory).unwrap(), levels);
        let untrusted = Memory {
            untrusted: true,
            ..memory
        };
        assert!(
            answer(&untrusted)
                .unwrap()
                .ends_with("untrusted, so the sizes are a guess.")
        );
        assert!(
            sentences(&untrusted)
                .iter()
                .any(|(_, text, tone)| *tone == Tone::Doubtful && text.contains("a guess"))
        );
        assert_eq!(answer(&Memory::default()), None);
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            (size(48 << 10), size(3 << 19), size(1 << 30)),
            ("48 KiB".into(), "1.5 MiB".into(), "1 GiB".into())
        );
    }

    #[test]
    fn nothing_is_a_picture_of_nothing() {
        assert_eq!(shown(&Memory::default()), "");
    }
}
