//! The site laboratory as its source printed it: eleven rounds of file system, object database and ratio; then what was
//! asked of it.

use crate::site::analysis::{self, AtSize, SOURCE_BEST, TABLE_ROUNDS};
use fingerpost_compare::references;
use fingerpost_record::params::named;
use fingerpost_record::text::clean;
use fingerpost_record::unit::significant;
use fingerpost_record::{Estimate, Param, Params, Unit};

use crate::site::analysis::Found;
use fingerpost_report::document::chart::Lines;
use fingerpost_report::document::{Block, Cell, Column, Row, Section, Table, Text};
use fingerpost_report::style::Tone;
use fingerpost_report::svg::lines::{Chart, Point, Series, Steps};
use fingerpost_report::words::whole_bytes;

use super::figures;

/// The source's own rounds.
const SOURCE: &str = "site-powermac-9500";

/// Wider intervals, from the lower end to the upper, would press all points of a chart together; the lines of text have
/// them.
const WIDEST: f64 = 10.0;

/// What there is to show, as cleaned text.
#[derive(Clone, Debug, Default)]
pub struct SiteView {
    /// The source's table, for the fastest object database of each kind of row.
    pub tables: Vec<RoundTable>,
    /// Every object database against files.
    pub ratios: Vec<RatioLine>,
    /// Where the faster one changes, a sentence for each object database.
    pub crossings: Vec<String>,
    /// How the ratio goes from the first round to the last where rounds begin with nothing loaded, a sentence for each
    /// object database; then what less memory makes of it.
    pub warming: Vec<String>,
    /// The same as pictures, one for each kind of row.
    pub courses: Vec<Chart>,
    /// The ratios by the size of the pages, one chart for each kind of row.
    pub curves: Vec<Chart>,
}

/// The source's table.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTable {
    /// What is compared.
    pub title: String,
    /// File system, object database, ratio.
    pub rows: Vec<[String; 3]>,
}

/// One object database against files.
#[derive(Clone, Debug, PartialEq)]
pub struct RatioLine {
    /// What is compared.
    pub name: String,
    /// The ratio with its interval.
    pub ratio: String,
    /// Rounds that it is made of.
    pub rounds: usize,
}

/// The columns of the source's table.
pub const COLUMNS: [&str; 3] = ["File system", "Object db", "fs/odb"];

impl SiteView {
    /// What a run has to say.
    pub fn of(found: &Found) -> SiteView {
        let Found {
            store_ratios,
            warming,
            less,
            crossings,
        } = found;
        let kinds: Vec<&Params> = store_ratios.iter().map(|d| &d.params).collect();
        let cells = |r: &analysis::Round| {
            [
                Unit::Nanoseconds.format(r.files_ns),
                Unit::Nanoseconds.format(r.odb_ns),
                significant(r.ratio),
            ]
        };
        let table = |d: &analysis::StoreRatio| RoundTable {
            title: name(d, &d.params.to_string()),
            rows: d.rounds.iter().take(TABLE_ROUNDS).map(cells).collect(),
        };
        let ratios = store_ratios.iter().map(|d| RatioLine {
            name: name(d, &apart(&d.params, &kinds)),
            ratio: d.ratio.as_ref().map_or("–".to_owned(), ratio),
            rounds: d.rounds.len(),
        });
        let curves = crossings
            .chunk_by(|a, b| a.params == b.params)
            .filter_map(curves)
            .collect();
        let mut courses: Vec<Chart> = warming
            .chunk_by(|a, b| a.params == b.params)
            .map(|of| course(of, None))
            .collect();
        courses.extend(less.first().map(|less| with_less_memory(warming, less)));
        let first_to_last = warming
            .iter()
            .filter_map(|w| from_first_to_last(w, &apart(&w.params, &kinds)));
        let warming = first_to_last
            .chain(less.iter().map(|less| clean(&less.sentence).into_owned()))
            .collect();
        SiteView {
            warming,
            courses,
            tables: found.fastest().map(table).collect(),
            ratios: ratios.collect(),
            crossings: crossings.iter().map(crossing).collect(),
            curves,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.ratios.is_empty() && self.crossings.is_empty()
    }

    /// What the source's best ratio is to this run's.
    pub fn source(&self) -> String {
        format!("The source's best round had {SOURCE_BEST}, on a Power Macintosh 9500 in 1996.")
    }
}

/// The section, where the run has rounds or sizes.
pub fn section(found: &Found, site: SiteView) -> Option<Section> {
    if site.is_empty() {
        return None;
    }
    let list =
        |told: &[String]| Block::List(told.iter().map(|t| Text::new(t, Tone::Plain)).collect());
    let chart = |chart| {
        Block::Chart(Box::new(Lines {
            chart,
            has_table: false,
        }))
    };
    let source = site.source();
    let mut section = Section::new("site-rounds", "File system against object database");
    for table in &site.tables {
        let title = format!("Rounds: {}", table.title);
        section = section.under(title, [rounds(table)]);
    }
    let meaning = "How many times longer files take, paired round by round, with a 95 % interval.";
    let ratios = [
        all_rounds(&site.ratios),
        Block::aside(format!("{meaning} {source}")),
    ];
    let ratios = ratios.into_iter().filter(|_| !site.ratios.is_empty());
    let (warming, crossings) = (list(&site.warming), list(&site.crossings));
    let section = section
        .under("fs/odb, all rounds", ratios)
        .under(
            "From the start, as more is loaded",
            site.courses.into_iter().map(chart).chain([warming]),
        )
        .under(
            "By the size of the pages",
            site.curves.into_iter().map(chart).chain([crossings]),
        )
        .with([Block::Figures(figures::of(found))]);
    Some(section)
}

/// The source's table.
fn rounds(table: &RoundTable) -> Block {
    let rows = table.rows.iter();
    let rows = rows.map(|row| Row::new(row.iter().map(Cell::from), Tone::Plain));
    Block::Table(Table::new(COLUMNS.map(Column::figures)).with(rows))
}

/// Every object database against files.
fn all_rounds(ratios: &[RatioLine]) -> Block {
    let columns = [
        Column::words("files / object database"),
        Column::figures("fs/odb"),
        Column::figures("rounds"),
    ];
    let row = |r: &RatioLine| {
        let cells = [r.name.clone(), r.ratio.clone(), r.rounds.to_string()];
        Row::new(cells.map(Cell::from), Tone::Plain)
    };
    Block::Table(Table::new(columns).with(ratios.iter().map(row)))
}

/// What tells rows of these parameters from those of the others; all of them where there are no others, or nothing to
/// tell.
fn apart(params: &Params, kinds: &[&Params]) -> String {
    if kinds.iter().all(|kind| *kind == params) {
        return params.to_string();
    }
    let all_have = |key: &str, value: &Param| kinds.iter().all(|kind| kind.get(key) == Some(value));
    let limited = kinds.iter().any(|kind| kind.get("memory").is_some());
    let all_memory = (limited && params.get("memory").is_none()).then(|| ALL_MEMORY.to_owned());
    let own = params
        .iter()
        .filter(|(key, value)| !all_have(key, value))
        .map(|(key, value)| named(key, value));
    all_memory
        .into_iter()
        .chain(own)
        .collect::<Vec<_>>()
        .join(" ")
}

/// What rows without a limit of memory are called beside those with one.
const ALL_MEMORY: &str = "all memory";

/// Where the ratio begins and ends.
fn from_first_to_last(w: &analysis::Warming, apart: &str) -> Option<String> {
    let (first, last) = (w.rounds.first()?, w.rounds.last()?);
    let params = in_brackets(apart);
    let text = format!(
        "{}{params}: fs/odb is {} in the first round and {} in the last of {}",
        w.odb,
        ratio(first),
        ratio(last),
        w.rounds.len()
    );
    Some(clean(&text).into_owned())
}

/// The ratios round by round, and the source's beside them. A title of its own stands where the rows differ in what it
/// tells.
fn course(of: &[analysis::Warming], title: Option<&str>) -> Chart {
    let points = |w: &analysis::Warming| -> Vec<Point> {
        let point = |(step, r): (usize, &Estimate)| match r.high <= WIDEST * r.low {
            true => Point {
                step,
                value: r.value,
                low: r.low,
                high: r.high,
            },
            false => Point {
                step,
                value: r.value,
                low: r.value,
                high: r.value,
            },
        };
        w.rounds.iter().enumerate().map(point).collect()
    };
    let memory = |w: &analysis::Warming| match w.params.get("memory") {
        None => ALL_MEMORY.to_owned(),
        Some(limit) => named("memory", limit),
    };
    let name = |w: &analysis::Warming| {
        if title.is_some() {
            format!("{}, {}", w.odb, memory(w))
        } else {
            w.odb.clone()
        }
    };
    let mut series: Vec<Series> = of
        .iter()
        .map(|w| Series {
            name: clean(&name(w)).into_owned(),
            points: points(w),
        })
        .collect();
    let ours = of.iter().any(|w| w.params.text("state").is_some());
    let source = references::load(SOURCE)
        .filter(|_| ours)
        .map(|run| analysis::warming(&run))
        .unwrap_or_default();
    series.extend(source.first().map(|w| Series {
        name: "the source, 1996".to_owned(),
        points: points(w),
    }));
    let rounds = series.iter().map(|s| s.points.len()).max().unwrap_or(0);
    let wide = of
        .iter()
        .flat_map(|w| &w.rounds)
        .any(|r| r.high > WIDEST * r.low);
    let left_out = if wide {
        "; intervals of more than a factor of ten are not drawn"
    } else {
        ""
    };
    let of_these = || in_brackets(&of.first().map_or(String::new(), |w| w.params.to_string()));
    let usual = || {
        format!(
            "Files / object database, round by round from the start{}",
            of_these()
        )
    };
    let steps = (1..=rounds).map(|n| n.to_string()).collect();
    chart(
        &title.map_or_else(usual, str::to_owned),
        "round",
        steps,
        left_out,
        series,
    )
}

/// Ratios over steps.
fn chart(
    title: &str,
    across: &str,
    steps: Vec<String>,
    left_out: &str,
    series: Vec<Series>,
) -> Chart {
    Chart {
        title: clean(title).into_owned(),
        across: across.to_owned(),
        steps,
        up: format!("fs/odb; above 1 the database is faster{left_out}"),
        unit: Unit::Count,
        from_zero: true,
        kind: Steps::Numbers,
        series,
    }
}

/// What tells rows, behind a name; nothing where there is nothing to tell.
fn in_brackets(params: &str) -> String {
    if params.is_empty() {
        String::new()
    } else {
        format!(" ({params})")
    }
}

/// One database with all memory and with each limit.
fn with_less_memory(all: &[analysis::Warming], less: &analysis::Less) -> Chart {
    let mut of: Vec<analysis::Warming> = all
        .iter()
        .filter(|w| w.odb == less.odb && w.files == less.files)
        .cloned()
        .collect();
    // All of it first, then less and less.
    of.sort_by_key(|w| w.params.int("memory").map_or(i64::MIN, |bytes| -bytes));
    course(
        &of,
        Some(
            "Files / object database with all memory and with less, round by round from the start",
        ),
    )
}

fn name(store_ratio: &analysis::StoreRatio, params: &str) -> String {
    clean(&format!(
        "{} / {}{}",
        store_ratio.files,
        store_ratio.odb,
        in_brackets(params)
    ))
    .into_owned()
}

fn ratio(e: &Estimate) -> String {
    // What was printed once has no interval.
    if e.low == e.high {
        return significant(e.value);
    }
    format!(
        "{} ({}–{})",
        significant(e.value),
        significant(e.low),
        significant(e.high)
    )
}

fn crossing(c: &analysis::Crossing) -> String {
    let ends: Vec<String> = [c.sizes.first(), c.sizes.last()]
        .into_iter()
        .flatten()
        .map(at)
        .collect();
    let size = c.size.map(|size| Unit::Bytes.format(size));
    let what = match (size, c.files_above) {
        (Some(size), true) => format!("files are faster from pages of {size} on"),
        (Some(size), false) => format!("faster than files from pages of {size} on"),
        (None, true) => "files are faster at every size measured".to_owned(),
        (None, false) => "faster than files at every size measured".to_owned(),
    };
    let params = in_brackets(&c.params.to_string());
    clean(&format!(
        "{}{params}: {what}; fs/odb is {}",
        c.odb,
        ends.join(" and ")
    ))
    .into_owned()
}

/// The ratios of several databases over the sizes that were measured; nothing for one size.
fn curves(of: &[analysis::Crossing]) -> Option<Chart> {
    let mut sizes: Vec<i64> = of.iter().flat_map(|c| &c.sizes).map(|s| s.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let point = |s: &AtSize| {
        let step = sizes.binary_search(&s.size).ok()?;
        Some(Point {
            step,
            value: s.ratio,
            low: s.ratio,
            high: s.ratio,
        })
    };
    let series = of.iter().map(|c| Series {
        name: clean(&c.odb).into_owned(),
        points: c.sizes.iter().filter_map(point).collect(),
    });
    let params = of.first().filter(|_| sizes.len() > 1)?.params.to_string();
    let steps = sizes.iter().map(|size| whole_bytes(*size as u64)).collect();
    let title = format!("Files / object database{}", in_brackets(&params));
    Some(chart(
        &title,
        "size of the pages",
        steps,
        "",
        series.collect(),
    ))
}

fn at(s: &AtSize) -> String {
    format!(
        "{} with {}",
        significant(s.ratio),
        whole_bytes(s.size as u64)
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use fingerpost_record::{Better, Measurement, Process, Run};

    /// A run with the source's own figures, in sixtieths of a second.
    pub(crate) fn source_run() -> Run {
        let files = [
            417.0, 472.0, 459.0, 389.0, 358.0, 293.0, 363.0, 334.0, 509.0, 485.0, 403.0, 400.0,
        ];
        let odb = [
            220.0, 144.0, 103.0, 75.0, 68.0, 69.0, 66.0, 66.0, 72.0, 69.0, 65.0, 66.0,
        ];
        let row = |probe: &str, params: Params, samples: Vec<f64>| Measurement {
            estimate: Some(Estimate {
                value: samples[0],
                low: samples[0],
                high: samples[0],
                confidence: 0.95,
            }),
            processes: vec![Process {
                value: Some(samples[0]),
                samples,
                ..Process::default()
            }],
            ..fingerpost_record::fixture::row(probe, params, Unit::Nanoseconds, Better::Lower)
        };
        let tick = |v: &[f64]| v.iter().map(|t| t * 1e9 / 60.0).collect::<Vec<_>>();
        let of = |store: &str| Params::new().with("store", store);
        let size = |store: &str, bytes: i64, ns: f64| {
            row("site.size", of(store).with("size", bytes), vec![ns])
        };
        Run {
            measurements: vec![
                row("site.round", of("files-open"), tick(&files)),
                row("site.round", of("lmdb\u{1b}[2J<script>"), tick(&odb)),
                size("files-open", 1024, 900.0),
                size("files-open", 65_536, 4000.0),
                size("lmdb", 1024, 100.0),
                size("lmdb", 65_536, 2000.0),
                size("sqlite", 1024, 450.0),
                size("sqlite", 65_536, 8000.0),
            ],
            ..Run::default()
        }
    }

    #[test]
    fn the_ratio_is_drawn_round_by_round_where_nothing_was_loaded_at_first() {
        let mut run = source_run();
        assert!(
            SiteView::of(&Found::of(&run)).courses.is_empty(),
            "rounds of no state that a run of ours would not have"
        );
        for m in run
            .measurements
            .iter_mut()
            .filter(|m| m.probe == "site.round")
        {
            m.params = m.params.clone().with("state", "warming");
            m.processes[0].samples.truncate(11);
        }
        let view = SiteView::of(&Found::of(&run));
        let chart = &view.courses[0];
        assert_eq!(
            (view.courses.len(), chart.steps.len(), chart.series.len()),
            (1, 11, 2)
        );
        assert!(
            chart.series[0]
                .points
                .iter()
                .all(|p| p.low == p.value && p.high == p.value),
            "one process has no interval"
        );
        // The made-up rounds are the source's, which stands beside them.
        let values = |i: usize| {
            chart.series[i]
                .points
                .iter()
                .map(|p| (p.value * 1000.0).round())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (values(0), chart.series[1].name.as_str()),
            (values(1), "the source, 1996")
        );
        assert!(
            view.warming[0].contains("1.895") && view.warming[0].contains("in the last of 11"),
            "{}",
            view.warming[0]
        );
        assert!(!view.warming[0].contains('\u{1b}'));
        let published = SiteView::of(&Found::of(&references::load(SOURCE).unwrap()));
        assert_eq!(
            (published.courses.len(), published.courses[0].series.len()),
            (1, 1)
        );
    }

    #[test]
    fn less_memory_is_drawn_beside_all_of_it() {
        let mut run = source_run();
        for m in run
            .measurements
            .iter_mut()
            .filter(|m| m.probe == "site.round")
        {
            m.params = m.params.clone().with("state", "warming");
            m.processes[0].samples.truncate(11);
        }
        let limited = run
            .measurements
            .iter()
            .filter(|m| m.probe == "site.round")
            .cloned()
            .map(|mut m| {
                m.params = m.params.with("memory", 2 << 20);
                // The database is half as fast with it.
                let factor = if m.params.text("store") == Some("files-open") {
                    1.0
                } else {
                    2.0
                };
                m.processes[0].samples.iter_mut().for_each(|s| *s *= factor);
                m
            });
        let limited: Vec<Measurement> = limited.collect();
        run.measurements.extend(limited);
        let view = SiteView::of(&Found::of(&run));
        let names: Vec<&str> = view.courses[2]
            .series
            .iter()
            .map(|s| s.name.as_str())
            .collect();
        assert!(
            names[0].ends_with(", all memory")
                && names[1].ends_with(", memory=2M")
                && names[2] == "the source, 1996",
            "{names:?}"
        );
        // What all rows have stands in the tables' titles, and the lines say what tells them apart; all of the memory
        // comes first.
        assert!(
            view.warming[0].contains(" (all memory): ")
                && view.warming[1].contains(" (memory=2M): "),
            "{:?}",
            view.warming
        );
        assert!(
            view.ratios[0].name.ends_with(" (all memory)")
                && view.ratios[1].name.ends_with(" (memory=2M)"),
            "{:?}",
            view.ratios
        );
        assert!(
            view.tables[0].title.ends_with(" (state=warming)")
                && view.tables[1].title.contains("memory=2M state=warming")
        );
        let last = view.warming.last().unwrap();
        assert!(
            last.contains("in the last rounds with all memory, and")
                && last.contains("with 2.000 MiB"),
            "{last}"
        );
        assert!(!last.contains('\u{1b}'));
    }

    #[test]
    fn the_sources_table_in_eleven_rounds() {
        let view = SiteView::of(&Found::of(&source_run()));
        assert_eq!(view.tables[0].rows.len(), 11);
        assert_eq!(view.tables[0].rows[0], ["6.950 s", "3.667 s", "1.895"]);
        assert_eq!(view.tables[0].rows[8][2], "7.069");
        assert_eq!(view.ratios[0].rounds, 12);
        assert!(
            view.crossings[0].starts_with("lmdb: faster than files at every size"),
            "{}",
            view.crossings[0]
        );
        assert!(
            view.crossings[1].starts_with("sqlite: files are faster from pages of 8.000 KiB on"),
            "{}",
            view.crossings[1]
        );
        let chart = &view.curves[0];
        assert_eq!(
            (view.curves.len(), chart.steps.len(), chart.series.len()),
            (1, 2, 2)
        );
        assert_eq!(
            chart.series[0]
                .points
                .iter()
                .map(|p| (p.step, p.value))
                .collect::<Vec<_>>(),
            [(0, 9.0), (1, 2.0)]
        );
        assert!(!view.tables[0].title.contains('\u{1b}'));
        assert!(SiteView::of(&Found::of(&Run::default())).is_empty());
    }
}
