//! `fingerpost zerofill`: the calculator, in the terminal. It solves four timings that are given, takes them here, or
//! analyses a run.

use std::ffi::{OsStr, OsString};
use std::io::Write;

use fingerpost_labs::zerofill::analysis::solve::{self, Costs, FIELDS, Timings};
use fingerpost_labs::zerofill::analysis::{self, Analysis};
use fingerpost_labs::zerofill::shown::words;
use fingerpost_record::Unit;
use fingerpost_record::unit::significant;
use fingerpost_report::grid::{Align, Grid, Line};
use fingerpost_report::style::Tone;
use fingerpost_report::words::percent;
use fingerpost_report::{Format, Style};

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
    let shown = if args.solve.is_none() {
        |ns| Unit::Nanoseconds.format(ns)
    } else {
        significant
    };
    output::write(|out| match args.format {
        Format::Json if args.solve.is_none() => fingerpost_report::json::write(
            out,
            &serde_json::json!({ "unit": "ns", "given": timings, "derived": costs }),
        ),
        Format::Json => fingerpost_report::json::write(out, &costs),
        Format::Csv => csv(out, &costs),
        Format::Markdown => markdown(out, &timings, &costs, shown),
        Format::Table => {
            out.write_all(table(&timings, &costs, shown, &output::style(false)).as_bytes())
        }
    })?;
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
    output::write(|out| match format {
        Format::Json => fingerpost_report::json::write(out, &found),
        Format::Table => out.write_all(words::render(&found, &output::style(false)).as_bytes()),
        Format::Csv => csv_of_analysis(out, &found),
        Format::Markdown => writeln!(
            out,
            "```\n{}```",
            words::render(&found, &Default::default())
        ),
    })?;
    Ok(Done::Well)
}

/// The figures of an analysis that have intervals, one a line.
fn csv_of_analysis(out: &mut dyn Write, found: &Analysis) -> std::io::Result<()> {
    writeln!(out, "field,pages,value,low,high")?;
    let given = found.given.iter().flat_map(words::given_fields);
    for (name, e) in given.chain(words::fit_fields(found)) {
        writeln!(out, "{name},,{},{},{}", e.value, e.low, e.high)?;
    }
    for r in &found.zeroing {
        writeln!(
            out,
            "zeroing {},{},{},{},{}",
            r.key, r.pages, r.per_page.value, r.per_page.low, r.per_page.high
        )?;
    }
    for g in &found.guesses {
        writeln!(
            out,
            "guess {},,{},{},{}",
            g.key, g.measured.value, g.measured.low, g.measured.high
        )?;
    }
    Ok(())
}

fn inputs(t: &Timings) -> [(&'static str, f64); 4] {
    [
        ("1p alloc", t.alloc_1),
        ("1p alloc + fault", t.touch_1),
        ("2p alloc", t.alloc_2),
        ("2p alloc + fault", t.touch_2),
    ]
}

/// The inputs apart from what is derived, then the shares that the article speaks of; `shown` writes a time.
fn table(timings: &Timings, costs: &Costs, shown: fn(f64) -> String, style: &Style) -> String {
    let (plain, heading) = (
        |cells: Vec<String>| Line::Cells(cells, Tone::Plain),
        |title: &str| Line::Heading(title.into()),
    );
    let mut figures = Grid::of([
        ("", Align::Left, 0),
        ("", Align::Right, 0),
        ("", Align::Left, 0),
    ]);
    figures.lines.push(heading("given"));
    figures.lines.extend(
        inputs(timings)
            .iter()
            .map(|(name, v)| plain(vec![format!("  {name}"), shown(*v), String::new()])),
    );
    figures.lines.extend([Line::Blank, heading("derived")]);
    for (((_, name, formula), value), printed) in FIELDS
        .iter()
        .zip(costs.values())
        .zip(solve::misprints(timings))
    {
        let printed = printed.map_or(String::new(), |p| {
            format!("; the article prints {}", words::without_zeros(&shown(p)))
        });
        figures.lines.push(plain(vec![
            format!("  {name}"),
            shown(value),
            format!("= {formula}{printed}"),
        ]));
    }
    figures.render(style) + &shares(costs, style)
}

/// A bar of this many characters leaves room for its figures on a terminal of 80 columns.
const BAR_BESIDE_FIGURES: usize = 24;

/// The shares of the first pages, of four and so on, as a picture and as figures.
fn shares(costs: &Costs, style: &Style) -> String {
    let mut grid = Grid::of([
        ("pages", Align::Right, 0),
        ("", Align::Left, 0),
        ("faults", Align::Right, 0),
        ("zero-filling", Align::Right, 0),
        ("without freeing", Align::Right, 0),
    ]);
    let legend = "Shares of allocating, touching and freeing: █ zero-filling, ▒ the rest of the faults with half of \
        the object's cost, · the rest";
    grid.lines
        .extend([Line::Blank, Line::Heading(legend.into()), grid.titles()]);
    for pages in [1, 2, 4, 16, 256] {
        let (fault, zero, before) = (
            costs.fault_share(pages),
            costs.zerofill_share(pages),
            costs.zerofill_share_before_freeing(pages),
        );
        let bar = words::bar(zero, fault - zero, BAR_BESIDE_FIGURES);
        grid.lines.push(Line::Cells(
            vec![
                pages.to_string(),
                bar,
                percent(fault),
                percent(zero),
                percent(before),
            ],
            Tone::Plain,
        ));
    }
    let base = "without freeing: zero-filling's share of allocating and faulting in alone, of which the article says \
        “at least 50 %” for 4 pages";
    grid.lines.push(Line::Note(base.into(), Tone::Faint));
    grid.render(style)
}

fn csv(out: &mut dyn Write, costs: &Costs) -> std::io::Result<()> {
    writeln!(out, "field,value")?;
    FIELDS
        .iter()
        .zip(costs.values())
        .try_for_each(|((key, ..), value)| writeln!(out, "{key},{value}"))
}

fn markdown(
    out: &mut dyn Write,
    timings: &Timings,
    costs: &Costs,
    shown: fn(f64) -> String,
) -> std::io::Result<()> {
    writeln!(out, "| field | value | formula |\n| --- | ---: | --- |")?;
    inputs(timings)
        .iter()
        .try_for_each(|(name, value)| writeln!(out, "| {name} | {} | given |", shown(*value)))?;
    let derived = FIELDS.iter().zip(costs.values());
    derived
        .into_iter()
        .try_for_each(|((_, name, formula), value)| {
            writeln!(out, "| {name} | {} | {formula} |", shown(value))
        })
}
