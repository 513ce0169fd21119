//! `fingerpost zerofill`: the calculator, in the terminal.

use std::io::Write;

use fingerpost_compare::zerofill::solve::{self, Costs, FIELDS, Timings};
use fingerpost_record::unit::significant;
use fingerpost_report::Format;

use crate::exit::{Done, Usage};
use crate::output;

/// Arguments of `zerofill`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Four timings: allocate and free one page, the same with the page touched, two pages, two pages touched
    #[arg(long, value_name = "T1,F1,T2,F2", allow_hyphen_values = true)]
    solve: String,
    /// How to print the result
    #[arg(long, default_value = "table", value_parser = output::format_parser())]
    format: Format,
}

/// Takes four timings apart and prints the parts.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let timings = solve::parse(&args.solve).map_err(|e| Usage(e.to_string()))?;
    let costs = solve::solve(&timings).map_err(|e| Usage(e.to_string()))?;
    output::write(|out| match args.format {
        Format::Json => fingerpost_report::json::write(out, &costs),
        Format::Csv => csv(out, &costs),
        Format::Markdown => markdown(out, &timings, &costs),
        Format::Table => table(out, &timings, &costs),
    })?;
    Ok(Done::Well)
}

fn inputs(t: &Timings) -> [(&'static str, f64); 4] {
    [("1p alloc", t.alloc_1), ("1p alloc + fault", t.touch_1), ("2p alloc", t.alloc_2), ("2p alloc + fault", t.touch_2)]
}

/// The inputs apart from what is derived, then the shares that the article speaks of.
fn table(out: &mut dyn Write, timings: &Timings, costs: &Costs) -> std::io::Result<()> {
    writeln!(out, "given")?;
    for (name, value) in inputs(timings) {
        writeln!(out, "  {name:<20}{:>10}", significant(value))?;
    }
    writeln!(out, "\nderived")?;
    for ((_, name, formula), value) in FIELDS.iter().zip(costs.values()) {
        writeln!(out, "  {name:<20}{:>10}   = {formula}", significant(value))?;
    }
    writeln!(out, "\nshare of allocating, touching and freeing")?;
    for pages in [1, 2, 4, 16, 256] {
        let (fault, zero) = (costs.fault_share(pages) * 100.0, costs.zerofill_share(pages) * 100.0);
        writeln!(out, "  {pages:>4} pages: {fault:>5.1} % in faults, of that zero-filling {zero:>5.1} %")?;
    }
    Ok(())
}

fn csv(out: &mut dyn Write, costs: &Costs) -> std::io::Result<()> {
    writeln!(out, "field,value")?;
    FIELDS.iter().zip(costs.values()).try_for_each(|((key, ..), value)| writeln!(out, "{key},{value}"))
}

fn markdown(out: &mut dyn Write, timings: &Timings, costs: &Costs) -> std::io::Result<()> {
    writeln!(out, "| field | value | formula |\n| --- | ---: | --- |")?;
    inputs(timings).iter().try_for_each(|(name, value)| writeln!(out, "| {name} | {} | given |", significant(*value)))?;
    let derived = FIELDS.iter().zip(costs.values());
    derived.into_iter().try_for_each(|((_, name, formula), value)| writeln!(out, "| {name} | {} | {formula} |", significant(value)))
}
