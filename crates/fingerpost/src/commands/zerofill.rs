//! `fingerpost zerofill`: the calculator, in the terminal. It solves four timings that are given, takes them here, or
//! analyses a run.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};

use fingerpost_labs::zerofill::analysis::solve::{self, Costs, FIELDS, Timings};
use fingerpost_labs::zerofill::analysis::{self, Analysis};
use fingerpost_labs::zerofill::shown::{section, shares::bar, words};
use fingerpost_record::unit::significant;
use fingerpost_record::{Estimate, Run, Unit};
use fingerpost_report::Format;
use fingerpost_report::document::format::Screen;
use fingerpost_report::document::records::{Field, Records};
use fingerpost_report::document::{
    Block, Cell, Column, Document, Row, Section, Table, Text, html, json,
};
use fingerpost_report::html::Content;
use fingerpost_report::style::Tone;
use fingerpost_report::words::percent;

use crate::exit::{Done, Usage, say, usage};
use crate::progress::Progressing;
use crate::{output, runs, timings};

/// Arguments of `zerofill`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fingerpost zerofill                         take the four timings here
  fingerpost zerofill --loop --api brk        until Ctrl-C
  fingerpost zerofill --solve 11.2,24.0,11.5,33.6   the article's
  fingerpost zerofill latest                  a run of the lab zerofill")]
pub struct Args {
    /// Analyse the zero-fill rows of this run: a path, the start of its id, `latest`; without it, the four timings are
    /// taken here
    #[arg(value_name = "RUN", conflicts_with_all = ["solve", "repeat", "api"])]
    run: Option<OsString>,
    /// Four timings: allocate and free one page, the same with the page touched, two pages, two pages touched
    #[arg(long, value_name = "T1,F1,T2,F2", allow_hyphen_values = true, conflicts_with_all = ["repeat", "api"])]
    solve: Option<String>,
    /// Repeat the four timings until stopped by Ctrl-C, and show the figures after each round
    #[arg(long = "loop")]
    repeat: bool,
    /// The way to get memory whose timings are taken: mmap, brk, malloc_small, mremap, memfd …
    #[arg(long, value_name = "NAME", default_value = analysis::MAIN_API)]
    api: String,
    /// How to print the result
    #[arg(long, default_value = "table", value_parser = output::format_parser())]
    format: Format,
    /// How to show progress, on standard error
    #[arg(long, value_enum, default_value_t, hide = true)]
    progress: Progressing,
}

/// Takes four timings apart, or a run, and prints the parts.
pub fn run(args: Args) -> anyhow::Result<Done> {
    if let Some(name) = &args.run {
        return of_run(name, args.format);
    }
    let timings = match &args.solve {
        Some(text) => solve::parse(text).map_err(|e| Usage(e.to_string()))?,
        None => match timings::take(&args.api, args.repeat, args.progress)? {
            Ok(timings) => timings,
            Err(why) => {
                say(&format!(
                    "the timings of {} could not be taken: {why}",
                    args.api
                ));
                return Ok(Done::MeasurementFailed);
            }
        },
    };
    let costs = solve::solve(&timings).map_err(|e| Usage(e.to_string()))?;
    // Figures of --solve are in whatever unit they were given in.
    let known = args.solve.is_none();
    let solved = Solved {
        timings,
        costs,
        known,
    };
    output::show(&solved, args.format, false)?;
    Ok(Done::Well)
}

/// What a run says about zero-filling.
fn of_run(name: &OsStr, format: Format) -> anyhow::Result<Done> {
    let run = runs::load(name)?;
    let Some(found) = analysis::analyse(&run) else {
        return usage(format!(
            "the run {} has no zero-fill rows with figures; make one with `fingerpost run zerofill`",
            run.id
        ));
    };
    output::show(&Analysed { run: &run, found }, format, false)?;
    Ok(Done::Well)
}

/// A run's rows, analysed.
struct Analysed<'a> {
    run: &'a Run,
    found: Analysis,
}

impl Screen for Analysed<'_> {
    fn document(&self) -> Document {
        let finding = analysis::headline(&self.found);
        let finding = finding.map(|sentence| Text::new(sentence, Tone::Strong));
        Document {
            lead: vec![Block::List(finding.into_iter().collect())],
            sections: vec![section(self.run, &self.found)],
            ..Document::default()
        }
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json::write(out, &self.found)
    }

    /// The figures that have intervals.
    fn records(&self) -> Records {
        let found = &self.found;
        let line = |name: String, pages: Option<i64>, e: Estimate| {
            let figures = [e.value, e.low, e.high].map(Field::number);
            let first = [Field::text(name), Field::maybe(pages)];
            first.into_iter().chain(figures).collect()
        };
        let given = found.given.iter().flat_map(words::given_fields);
        let fields = given.chain(words::fit_fields(found));
        let fields = fields.map(|(name, e)| line(name.to_owned(), None, e));
        let routes = found.zeroing.iter();
        let routes = routes.map(|r| line(format!("zeroing {}", r.key), Some(r.pages), r.per_page));
        let guesses = found.guesses.iter();
        let guesses = guesses.map(|g| line(format!("guess {}", g.key), None, g.measured));
        Records {
            columns: vec!["field", "pages", "value", "low", "high"],
            lines: fields.chain(routes).chain(guesses).collect(),
        }
    }

    fn page(&self) -> Content {
        html::content(&self.document())
    }
}

/// Four timings, taken apart.
struct Solved {
    timings: Timings,
    costs: Costs,
    /// Whether they are in nanoseconds.
    known: bool,
}

impl Solved {
    fn told(&self, value: f64) -> String {
        match self.known {
            true => Unit::Nanoseconds.format(value),
            false => significant(value),
        }
    }

    fn inputs(&self) -> Vec<Row> {
        let t = &self.timings;
        let all = [
            ("1p alloc", t.alloc_1),
            ("1p alloc + fault", t.touch_1),
            ("2p alloc", t.alloc_2),
            ("2p alloc + fault", t.touch_2),
        ];
        let row = |(name, value): (&str, f64)| {
            let cells = [name.to_owned(), self.told(value)];
            Row::new(cells.map(Cell::from), Tone::Plain)
        };
        all.map(row).into()
    }

    fn derived(&self) -> Vec<Row> {
        let misprints = solve::misprints(&self.timings);
        let fields = FIELDS.iter().zip(self.costs.values()).zip(misprints);
        let rows = fields.map(|(((_, name, formula), value), printed)| {
            let printed = printed.map_or(String::new(), |p| {
                format!(
                    "; the article prints {}",
                    words::without_zeros(&self.told(p))
                )
            });
            let cells = [
                (*name).to_owned(),
                self.told(value),
                format!("= {formula}{printed}"),
            ];
            Row::new(cells.map(Cell::from), Tone::Plain)
        });
        rows.collect()
    }

    /// The shares of the first pages, of four and so on, as a picture and as figures.
    fn shares(&self) -> Table {
        let columns = [
            Column::figures("pages"),
            Column::words(""),
            Column::figures("faults"),
            Column::figures("zero-filling"),
            Column::figures("without freeing"),
        ];
        let row = |pages: u32| {
            let (fault, zero, before) = (
                self.costs.fault_share(pages),
                self.costs.zerofill_share(pages),
                self.costs.zerofill_share_before_freeing(pages),
            );
            let cells = [
                pages.to_string(),
                bar(zero, fault - zero, BAR_BESIDE_FIGURES),
                percent(fault),
                percent(zero),
                percent(before),
            ];
            Row::new(cells.map(Cell::from), Tone::Plain)
        };
        Table::new(columns).with([1, 2, 4, 16, 256].map(row))
    }
}

impl Screen for Solved {
    /// The inputs apart from what is derived, then the shares that the article speaks of.
    fn document(&self) -> Document {
        let columns = || [Column::words(""), Column::figures(""), Column::words("")];
        let table = |rows| Block::Table(Table::new(columns()).with(rows));
        let legend = "Shares of allocating, touching and freeing: █ zero-filling, ▒ the rest of the faults with half \
            of the object's cost, · the rest";
        let base = "without freeing: zero-filling's share of allocating and faulting in alone, of which the article \
            says “at least 50 %” for 4 pages";
        Document {
            sections: vec![
                Section::new("given", "given").with([table(self.inputs())]),
                Section::new("derived", "derived").with([table(self.derived())]),
                Section::new("shares", legend)
                    .with([Block::Table(self.shares()), Block::aside(base)]),
            ],
            ..Document::default()
        }
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.known {
            return json::write(out, &self.costs);
        }
        let (given, derived) = (&self.timings, &self.costs);
        let whole = serde_json::json!({ "unit": "ns", "given": given, "derived": derived });
        json::write(out, &whole)
    }

    fn records(&self) -> Records {
        let fields = FIELDS.iter().zip(self.costs.values());
        let lines = fields.map(|((key, ..), value)| vec![Field::text(*key), Field::number(value)]);
        Records {
            columns: vec!["field", "value"],
            lines: lines.collect(),
        }
    }

    fn page(&self) -> Content {
        html::content(&self.document())
    }
}

/// A bar of this many characters leaves room for its figures on a terminal of 80 columns.
const BAR_BESIDE_FIGURES: usize = 24;
