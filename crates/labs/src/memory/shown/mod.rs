//! What is shown of the memory hierarchy: the staircase, what was read off it, and bandwidth by number of CPUs.

mod staircase;

use std::collections::BTreeSet;

use crate::memory::analysis::{Cache, Memory, Reach, staircase::Level};
use fingerpost_record::descriptor::table;
use fingerpost_record::text::counted;
use fingerpost_record::{Run, Unit};

use fingerpost_report::document::{Block, Cell, Column, Fact, Row, Section, Table};
use fingerpost_report::lab::derived::{BYTES, Derived, NS, Of};
use fingerpost_report::lab::{Analysis, Labs, Shown};
use fingerpost_report::style::Tone;
use fingerpost_report::untrusted::doubted;
use fingerpost_report::words::{clean, short};
use staircase::Staircase;

/// The analysis.
pub static ANALYSIS: Analysis = Analysis {
    before_requests: false,
    rank: 6,
    of,
};

/// The name of what lies behind all caches.
const MEMORY: &str = "Memory";

fn of(run: &Run, _: Labs) -> Option<Shown> {
    let memory = Memory::of(run)?;
    let answer = answer(&memory).map(|sentence| doubted(sentence, run, "memory."));
    Some(Shown {
        answers: answer.into_iter().collect(),
        ..Shown::of([section(&memory)])
    })
}

fn section(memory: &Memory) -> Section {
    let chart = Staircase::of(memory).map(|chart| Block::Chart(Box::new(chart)));
    Section::new("memory-hierarchy", "Memory hierarchy")
        .with(chart)
        .with([Block::Facts(facts(memory))])
        .under("Memory bandwidth", [Block::Table(bandwidths(memory))])
}

/// A size with its binary unit and no digits that say nothing: `48 KiB`, `1.5 MiB`.
fn size(bytes: u64) -> String {
    let (divisor, unit) = match bytes {
        b if b >= 1 << 30 => (1u64 << 30, "GiB"),
        b if b >= 1 << 20 => (1 << 20, "MiB"),
        _ => (1 << 10, "KiB"),
    };
    format!("{} {unit}", short(bytes as f64 / divisor as f64))
}

/// Where a level ends: the largest size that was in it, and the smallest that was not.
fn between(fits: u64, passed: u64) -> String {
    let (from, to) = (size(fits), size(passed));
    match (from.split_once(' '), to.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}–{to}"),
        _ => format!("{from}–{to}"),
    }
}

/// What a level is called: as the system calls the cache, else by its place.
fn name_of(place: usize, cache: &Cache) -> String {
    match &cache.reported {
        Some((name, _)) => clean(name),
        None if cache.level.passed.is_none() => MEMORY.to_owned(),
        None => format!("Level {}", place + 1),
    }
}

/// What a reader wants to know first: what a load costs from each level, and how large the caches are.
fn answer(memory: &Memory) -> Option<String> {
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

/// What was found, as names and sentences: levels, translation, what huge pages are.
fn facts(memory: &Memory) -> Vec<Fact> {
    let levels = memory.levels.iter().enumerate();
    let mut all: Vec<Fact> = levels.map(|(i, cache)| level(i, cache)).collect();
    if memory.untrusted {
        let sentence =
            "many rows of the curve are untrusted: what is said of the levels is a guess";
        all.push(Fact::new("Doubt", sentence, Tone::Doubtful));
    }
    all.extend(memory.reaches.iter().map(reach));
    all.extend(backing(memory));
    let refused = memory.no_huge_pages.iter();
    all.extend(refused.map(|reason| Fact::new("Huge pages", reason, Tone::Doubtful)));
    all
}

/// A level's figures: what a load from it takes, what it holds, and what it no longer holds.
fn figures_of(
    names: [&'static str; 3],
    params: &[(&'static str, String)],
    l: &Level,
) -> Vec<Derived> {
    let of = Of(&table::MEMORY);
    let bytes = |name, bytes: u64| of.exact(name, params.to_vec(), BYTES, bytes as f64);
    let mut found = vec![
        of.exact(names[0], params.to_vec(), NS, l.height),
        bytes(names[1], l.fits),
    ];
    found.extend(l.passed.map(|passed| bytes(names[2], passed)));
    found
}

fn level(place: usize, cache: &Cache) -> Fact {
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
    let called = cache.reported.as_ref();
    let params = [(
        "level",
        called.map_or(format!("level {}", place + 1), |(name, _)| name.clone()),
    )];
    let names = [
        "memory.level_load",
        "memory.level_holds",
        "memory.level_no_longer_holds",
    ];
    let bytes = called.map(|(_, bytes)| {
        let of = Of(&table::MEMORY);
        of.exact(
            "memory.level_reported",
            params.clone(),
            BYTES,
            *bytes as f64,
        )
    });
    Fact::new(
        name_of(place, cache),
        format!("{height} a load; {found}{reported}{verdict}"),
        tone,
    )
    .with(figures_of(names, &params, &cache.level))
    .with(bytes)
}

/// How far translation reaches with pages of one kind.
fn reach(reach: &Reach) -> Fact {
    let one = |l: &Level| {
        let cost = if l.height < 0.3 {
            "free".to_owned()
        } else {
            format!("{} a load", Unit::Nanoseconds.format(l.height))
        };
        let pages = l.fits / 4096;
        format!("{cost} up to {pages} pages of 4 KiB ({})", size(l.fits))
    };
    let text: Vec<String> = reach.levels.iter().map(one).collect();
    let text = if text.is_empty() {
        "no level could be told".to_owned()
    } else {
        text.join(", then ")
    };
    let names = [
        "memory.translation_load",
        "memory.translation_reach",
        "memory.translation_no_longer_reaches",
    ];
    let figures = reach.levels.iter().enumerate().flat_map(|(i, found)| {
        let params = [
            ("pages", reach.pages.clone()),
            ("level", (i + 1).to_string()),
        ];
        figures_of(names, &params, found)
    });
    Fact::new(
        format!("Translation, {} pages", reach.pages),
        text,
        Tone::Plain,
    )
    .with(figures)
}

/// Huge pages that translate no further than base pages are not huge underneath: a virtual machine whose host backs it
/// with base pages.
fn backing(memory: &Memory) -> Option<Fact> {
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
    (huge.fits <= small.fits * 2).then(|| Fact::new("Huge pages", sentence, Tone::Doubtful))
}

/// What is done and where, by number of CPUs.
fn bandwidths(memory: &Memory) -> Table {
    let threads: BTreeSet<u64> = memory.bandwidths.iter().map(|b| b.threads).collect();
    let columns = threads.iter().map(|n| Column::figures(counted(*n, "CPU")));
    let columns = [Column::words("what"), Column::figures("size")]
        .into_iter()
        .chain(columns);
    let rows = memory
        .bandwidths
        .chunk_by(|a, b| (&a.op, a.size) == (&b.op, b.size))
        .map(|of| {
            let rate = |n: &u64| {
                let found = of.iter().find(|b| b.threads == *n);
                found.map_or("–".to_owned(), |b| format!("{:.1}", b.rate.value / 1e9))
            };
            let own = [clean(&of[0].op), size(of[0].size)];
            let cells = own.into_iter().chain(threads.iter().map(rate));
            Row::new(cells.map(Cell::from), Tone::Plain)
        });
    Table::new(columns)
        .caption("GB/s of all CPUs together, by the size that each walks")
        .with(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::analysis::{Bandwidth, Curve};
    use fingerpost_record::Estimate;
    use fingerpost_report::document::{figures, html, terminal};
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
    fn example() -> Memory {
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

    #[test]
    fn the_staircase_rises_and_names_the_ends_of_its_levels() {
        let text = terminal::render(&[section(&example())], &Style::default());
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
    fn a_page_has_a_line_between_each_two_points_and_every_fact() {
        let memory = example();
        let page = html::section(&section(&memory)).body.into_string();
        for (curve, class) in memory.curves.iter().zip(["curve", "curve second"]) {
            let lines = page.matches(&format!("class=\"{class}\"")).count();
            assert_eq!(lines, curve.points.len() - 1);
        }
        for fact in facts(&memory) {
            let begin = fact.text.words.split(';').next().unwrap();
            assert!(
                page.contains(&fact.name) && page.contains(begin),
                "{}",
                fact.name
            );
        }
        assert!(!page.contains("NaN") && !page.contains('\u{1b}'));
    }

    #[test]
    fn each_figure_has_what_tells_it_from_others() {
        let sections = [section(&example())];
        let all: Vec<Derived> = figures(&sections).cloned().collect();
        let has = |name, params, value| crate::tests::has(&all, name, params, value);
        assert!(has("memory.level_holds", "level=L1d", 16_384.0));
        assert!(has("memory.level_reported", "level=L1d", 32_768.0));
        assert!(has(
            "memory.translation_reach",
            "pages=small;level=1",
            262_144.0
        ));
        let in_bytes = |f: &Derived| f.name != "memory.level_holds" || f.unit == BYTES;
        assert!(all.iter().all(in_bytes));
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
        let doubted = |f: &Fact| f.text.tone == Tone::Doubtful && f.text.words.contains("a guess");
        assert!(facts(&untrusted).iter().any(doubted));
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
        assert!(section(&Memory::default()).blocks.is_empty());
    }
}
