//! What is shown of zero-filling: the four timings apart from what is derived, the shares as a picture, guesses,
//! rankings.

use std::collections::{BTreeMap, BTreeSet};

use crate::zerofill::analysis::Analysis;
use crate::zerofill::analysis::guesses::{Guess, Verdict};
use crate::zerofill::analysis::rank::Ranking;
use fingerpost_record::text::{clean, counted};
use fingerpost_record::{Estimate, Run, Unit};

use fingerpost_report::document::chart::Lines;
use fingerpost_report::document::{Block, Cell, Column, Fact, Row, Section, Table, Text};
use fingerpost_report::style::Tone;
use fingerpost_report::svg::lines::{Chart, Point, Series, Steps};

use super::shares::Shares;
use super::{figures, words};

/// The section.
pub fn section(run: &Run, a: &Analysis) -> Section {
    let chart = curve(run, a);
    let drawn = chart.series.iter().any(|s| s.points.len() > 1);
    let curve = drawn.then(|| {
        Block::Chart(Box::new(Lines {
            chart,
            has_table: false,
        }))
    });
    let shares = Shares(a.shares.clone());
    let shares = (!a.shares.is_empty()).then(|| Block::Chart(Box::new(shares)));
    let guesses = Block::List(a.guesses.iter().map(guess).collect());
    Section::new("zerofill-analysis", "Zero-filling, taken apart")
        .with(curve)
        .under("Where the time goes", shares)
        .under(words::given_title(a), given(a))
        .under("Derived: the article's arithmetic", derived(a))
        .under("Measured: all page counts together", fit(a))
        .under("Zeroing one page, by independent routes", zeroing(a))
        .under("The article's guesses on this machine", [guesses])
        .under(
            "Faulting in ahead, against plain touching: the cheapest way per page count",
            prefault(a),
        )
        .under("Ways to get memory, every page touched", [ranking(&a.apis)])
        .under(
            "Ways to get memory, untouched",
            [ranking(&a.apis_untouched)],
        )
        .with([Block::Figures(figures::of(a))])
}

/// The cost of a region by its number of pages: left alone, and touched.
fn curve(run: &Run, a: &Analysis) -> Chart {
    let of = |probe: &str| -> BTreeMap<i64, Estimate> {
        let ours = run
            .measurements
            .iter()
            .filter(|m| m.probe == probe && m.params.text("api") == Some(&a.api));
        ours.filter_map(|m| Some((m.params.int("pages")?, m.estimate?)))
            .collect()
    };
    let all = [
        ("allocated and freed", of("zerofill.alloc")),
        (
            "allocated, every page touched, and freed",
            of("zerofill.touch"),
        ),
    ];
    let steps: Vec<i64> = all
        .iter()
        .flat_map(|(_, rows)| rows.keys().copied())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let series = |(name, rows): &(&str, BTreeMap<i64, Estimate>)| Series {
        name: (*name).to_owned(),
        points: rows
            .iter()
            .filter_map(|(pages, e)| {
                Some(Point {
                    step: steps.binary_search(pages).ok()?,
                    value: e.value,
                    low: e.low,
                    high: e.high,
                })
            })
            .collect(),
    };
    Chart {
        title: format!("The cost of memory from {} by its pages", clean(&a.api)),
        across: "pages".into(),
        steps: steps.iter().map(i64::to_string).collect(),
        up: "time of a region".into(),
        unit: Unit::Nanoseconds,
        from_zero: true,
        kind: Steps::Numbers,
        series: all.iter().map(series).collect(),
    }
}

/// Names with figures, a row each.
fn fields<T: AsRef<str>>(list: impl IntoIterator<Item = (T, Estimate)>) -> Block {
    let row = |(name, e): (T, Estimate)| {
        Row::new([Cell::new(name), Cell::new(words::time(e))], Tone::Plain)
    };
    Block::Table(Table::new(["", ""].map(Column::words)).with(list.into_iter().map(row)))
}

/// The four editable fields, and how to change them.
fn given(a: &Analysis) -> Vec<Block> {
    let Some(given) = &a.given else {
        return Vec::new();
    };
    let t = given.timings();
    let list =
        words::given_fields(given).map(|(name, e)| (format!("{name}{}", in_formulas(name)), e));
    let change = format!(
        "to change them: fingerpost zerofill --solve {:.1},{:.1},{:.1},{:.1}",
        t.alloc_1, t.touch_1, t.alloc_2, t.touch_2
    );
    vec![fields(list), Block::aside(change)]
}

/// What the formulas below call a timing, where that is another name.
fn in_formulas(name: &str) -> String {
    name.strip_suffix(" alloc + fault")
        .map_or(String::new(), |pages| format!(" ({pages} touch)"))
}

/// The derived fields with their formulas.
fn derived(a: &Analysis) -> Vec<Block> {
    if a.given.is_none() {
        return Vec::new();
    }
    let costs = a.derived.iter();
    let all = costs.flat_map(|costs| words::derived_fields(a, costs));
    let rows = all.map(|((name, value), formula)| {
        let cells = [name.to_owned(), value, formula];
        Row::new(cells.map(Cell::from), Tone::Plain)
    });
    let mut blocks = vec![Block::Table(
        Table::new([""; 3].map(Column::words)).with(rows),
    )];
    blocks.extend(words::call(a).map(Block::sentence));
    let why = a.underivable.iter();
    blocks.extend(why.map(|why| Block::Sentence(Text::new(why, Tone::Doubtful))));
    blocks
}

fn fit(a: &Analysis) -> Vec<Block> {
    let mut blocks = vec![fields(words::fit_fields(a))];
    blocks.extend(words::fit_note(a).map(Block::aside));
    blocks
}

/// The routes to the zeroing cost, and both beside the kernel's profile.
fn zeroing(a: &Analysis) -> Vec<Block> {
    let rows = a.zeroing.iter().map(|r| {
        let cells = [
            r.name.to_owned(),
            words::time(r.per_page),
            format!("{} at a time", counted(r.pages.unsigned_abs(), "page")),
        ];
        Row::new(cells.map(Cell::from), Tone::Plain)
    });
    let mut blocks = vec![Block::Table(
        Table::new([""; 3].map(Column::words)).with(rows),
    )];
    let agreement = a.agreement.iter();
    blocks.extend(agreement.map(|g| Block::sentence(words::agreement(g))));
    if !a.zeroing.is_empty() && a.agreement.is_empty() {
        let why = "The kernel's own samples are not there to compare with; the skipped row zerofill.kernel_profile \
            says why.";
        blocks.push(Block::aside(why));
    }
    blocks
}

/// What the article says, and how that is here.
fn guess(g: &Guess) -> Text {
    let tone = match g.verdict {
        Verdict::Holds => Tone::Plain,
        Verdict::Off | Verdict::Unresolved => Tone::Doubtful,
    };
    let (guessed, measured) = (words::guessed(g), words::measured(g));
    let here = format!(
        "{}: guessed {guessed}, measured {measured}: {}.",
        g.quantity,
        words::verdict(g)
    );
    Text::new(format!("{}.", g.says), tone).over([here])
}

fn prefault(a: &Analysis) -> Vec<Block> {
    let leads = words::leads(&a.prefault).into_iter();
    let rows = leads.map(|(range, who)| Row::new([range, who].map(Cell::from), Tone::Plain));
    let crossovers = a.crossovers.iter();
    let crossovers = crossovers.map(|c| Text::new(words::crossover(c), Tone::Plain));
    vec![
        Block::Table(Table::new(["", ""].map(Column::words)).with(rows)),
        Block::List(crossovers.collect()),
    ]
}

fn ranking(list: &[Ranking]) -> Block {
    let fact = |r: &Ranking| {
        let pages = counted(r.pages.unsigned_abs(), "page");
        Fact::new(pages, words::places(r), Tone::Plain)
    };
    Block::Facts(list.iter().map(fact).collect())
}
