//! What is shown of floating point by instruction mix and compiler.

use crate::flops::analysis::{Column as Rates, Flops, Limit, MIX, UNNAMED};
use fingerpost_record::descriptor::table;
use fingerpost_record::{Estimate, Run, Unit};

use fingerpost_report::document::chart::Lines;
use fingerpost_report::document::{Block, Cell, Column, Fact, Row, Section, Table};
use fingerpost_report::grid::Align;
use fingerpost_report::lab::derived::{COUNT, Derived, Of, RATIO};
use fingerpost_report::lab::{Analysis, Labs, Shown};
use fingerpost_report::style::Tone;
use fingerpost_report::svg::lines::{Chart, Point, Series, Steps};
use fingerpost_report::untrusted::doubted;
use fingerpost_report::words::{clean, percent};

/// The analysis.
pub static ANALYSIS: Analysis = Analysis {
    before_requests: false,
    rank: 5,
    of,
};

/// Compilers of the picture, which has as many shapes.
const MOST: usize = 6;

fn of(run: &Run, _: Labs) -> Option<Shown> {
    let flops = Flops::of(&run.measurements)?;
    let answer = answer(&flops).map(|sentence| doubted(sentence, run, "cpu."));
    Some(Shown {
        answers: answer.into_iter().collect(),
        ..Shown::of([section(&flops)])
    })
}

/// What a reader wants to know first: whose code is the fastest, and how much of the core it uses.
fn answer(flops: &Flops) -> Option<String> {
    let averages = || flops.columns.iter().filter_map(|c| Some((c, c.average()?)));
    let (best, rate) = averages().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let name = match best.compiler.as_str() {
        UNNAMED => "The code".to_owned(),
        "built-in" => "The built-in code".to_owned(),
        compiler => format!("The code of {}", clean(compiler)),
    };
    let among = if averages().count() > 1 {
        " is the fastest: it"
    } else {
        ""
    };
    let core = flops.share(rate).map_or(String::new(), |share| {
        format!(", {:.0} % of the core's highest rate", share * 100.0)
    });
    // In whole MFLOPS, as the table below has it.
    let rate = Unit::FlopPerSecond.format((rate / 1e6).round() * 1e6);
    Some(format!("{name}{among} reaches {rate} on average{core}."))
}

/// The picture, the table, and what is to be said below it: flags, the core's rates, compilers that failed.
fn section(flops: &Flops) -> Section {
    let chart = (!flops.columns.is_empty()).then(|| {
        Block::Chart(Box::new(Lines {
            chart: chart(flops),
            has_table: true,
        }))
    });
    Section::new(
        "flops-compilers",
        "Floating point by instruction mix and compiler",
    )
    .with(chart)
    .with([Block::Table(rates(flops)), Block::Facts(facts(flops))])
}

/// Each module's rate by compiler.
fn chart(flops: &Flops) -> Chart {
    let point = |(step, rate): (usize, &Option<Estimate>)| {
        rate.map(|e| Point {
            step,
            value: e.value,
            low: e.low,
            high: e.high,
        })
    };
    let series = |c: &Rates| Series {
        name: heading(c),
        points: c.modules.iter().enumerate().filter_map(point).collect(),
    };
    Chart {
        title: "Floating point by compiler".into(),
        across: "module".into(),
        steps: (1..=MIX.len()).map(|n| n.to_string()).collect(),
        up: "operations a second".into(),
        unit: Unit::FlopPerSecond,
        from_zero: true,
        kind: Steps::Things,
        series: flops.columns.iter().take(MOST).map(series).collect(),
    }
}

/// A compiler as the head of its column; where rows name none, what the column has.
fn heading(column: &Rates) -> String {
    if column.compiler == UNNAMED {
        "MFLOPS".into()
    } else {
        clean(&column.compiler)
    }
}

/// The published table: a row for each module, and the average.
fn rates(flops: &Flops) -> Table {
    if flops.columns.is_empty() {
        return Table::default();
    }
    let mix = ["FADD", "FSUB", "FMUL", "FDIV"].map(|title| Column::new(title, Align::Right, 3));
    let of_compiler = |column: &Rates| {
        Column::figures(heading(column)).beside(Column::new("share", Align::Right, 2))
    };
    let columns = [Column::words("module")]
        .into_iter()
        .chain(mix)
        .chain(flops.columns.iter().map(of_compiler));
    let module = |(i, mix): (usize, &[u32; 4])| {
        let (number, percents) = ((i + 1).to_string(), mix.map(|part| format!("{part} %")));
        let own = [number.clone()].into_iter().chain(percents);
        let rates = flops
            .columns
            .iter()
            .map(|c| rate(flops, c, &number, c.modules[i].map(|e| e.value)));
        Row::new(own.map(Cell::from).chain(rates), Tone::Plain)
    };
    let averages = flops.columns.iter().map(|c| {
        let average = c.average();
        let figure = average.map(|v| {
            let unit = Unit::FlopPerSecond.as_str();
            Of(&table::FLOPS).exact("flops.average", params(c, "all"), unit, v)
        });
        rate(flops, c, "all", average).with(figure)
    });
    let own = ["average", "", "", "", ""].map(Cell::from);
    let caption = match flops.share(1.0) {
        Some(_) => "MFLOPS, and the share of the core's highest rate",
        None => "MFLOPS",
    };
    Table::new(columns)
        .caption(caption)
        .with(MIX.iter().enumerate().map(module))
        .with([Row::new(own.into_iter().chain(averages), Tone::Strong)])
}

/// A rate in whole MFLOPS, as the published table has it, with its share of the core's highest rate.
fn rate(flops: &Flops, column: &Rates, module: &str, rate: Option<f64>) -> Cell {
    let told = rate.map_or("–".to_owned(), |rate| format!("{:.0}", rate / 1e6));
    let share = rate.and_then(|rate| flops.share(rate));
    let figure = share.map(|share| {
        let params = params(column, module);
        Of(&table::FLOPS).exact("flops.share_of_peak", params, RATIO, share)
    });
    Cell::new(told)
        .beside(share.map_or(String::new(), percent))
        .with(figure)
}

/// What tells a compiler's figure from the others.
fn params(column: &Rates, module: &str) -> Vec<(&'static str, String)> {
    let own = [
        ("compiler", column.compiler.clone()),
        ("module", module.to_owned()),
    ];
    let flags = column.cflags.clone().map(|flags| ("cflags", flags));
    own.into_iter().chain(flags).collect()
}

fn facts(flops: &Flops) -> Vec<Fact> {
    let mut all = Vec::new();
    let flags = flops.columns.iter().filter_map(|c| c.cflags.as_deref());
    let mut flags: Vec<&str> = flags.collect();
    flags.dedup();
    if !flags.is_empty() {
        all.push(Fact::new("Flags", flags.join("; "), Tone::Plain));
    }
    all.extend(flops.limits.iter().map(|limit| {
        Fact::new(name(&limit.kind), limit_text(limit), Tone::Plain).with(limit_figures(limit))
    }));
    let failed = flops.failed.iter();
    all.extend(
        failed
            .map(|(compiler, reason)| Fact::new(compiler, format!("failed: {reason}"), Tone::Bad)),
    );
    all
}

/// `vector_fma` as a person says it.
fn name(kind: &str) -> String {
    let (width, op) = kind.split_once('_').unwrap_or((kind, ""));
    let op = match op {
        "fma" => "multiply-add",
        "mul" => "multiply",
        other => other,
    };
    format!("Peak {width} {op}")
}

/// The rate, and what it should be by width, units and frequency.
fn limit_text(limit: &Limit) -> String {
    let rate = Unit::FlopPerSecond.format(limit.flops);
    match (limit.formula(), limit.deviation()) {
        (Some(formula), Some(deviation)) => {
            format!("{rate}, {:+.1} % against {formula}", deviation * 100.0)
        }
        _ => rate,
    }
}

/// The core's units, and how far the rate is off the formula.
fn limit_figures(limit: &Limit) -> Vec<Derived> {
    let figure = |name: &'static str, unit, value: Option<f64>| {
        let kind = [("kind", limit.kind.clone())];
        value.map(|value| Of(&table::FLOPS).exact(name, kind, unit, value))
    };
    let units = figure("flops.units", COUNT, limit.units());
    let off = figure("flops.off_formula", RATIO, limit.deviation());
    units.into_iter().chain(off).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_report::document::{figures, html, terminal};
    use fingerpost_report::style::Style;

    /// Two compilers, one limit, one failure.
    fn example() -> Flops {
        let at = |value: f64| {
            Some(Estimate {
                value,
                low: value,
                high: value,
                confidence: 0.95,
            })
        };
        let column = |compiler: &str, cflags: Option<&str>, rate: f64| Rates {
            compiler: compiler.into(),
            cflags: cflags.map(Into::into),
            modules: [at(rate); 8],
        };
        let mut partial = column("clang 14", Some("-O2"), 2e9);
        partial.modules[2] = None;
        Flops {
            columns: vec![column("built-in", None, 1.234e9), partial],
            limits: vec![Limit {
                kind: "vector_fma".into(),
                flops: 60e9,
                lanes: Some(8.0),
                frequency: Some(2e9),
            }],
            failed: vec![("tcc\u{1b}[2J".into(), "flops.c:3: error: <no>".into())],
        }
    }

    #[test]
    fn a_column_whose_rows_name_no_compiler_is_headed_by_its_unit() {
        let mut column = example().columns.remove(0);
        assert_eq!(heading(&column), "built-in");
        column.compiler = UNNAMED.into();
        assert_eq!(heading(&column), "MFLOPS");
    }

    #[test]
    fn the_table_has_mixes_rates_shares_and_averages() {
        let text = terminal::render(&[section(&example())], &Style::default());
        assert!(!text.contains('\u{1b}'));
        let line = |start: &str| {
            text.lines()
                .find(|l| l.trim_start().starts_with(start))
                .unwrap_or_else(|| panic!("{start}: {text}"))
        };
        assert_eq!(
            line("1 ").split_whitespace().collect::<Vec<_>>().join(" "),
            "1 50 % 0 % 43 % 7 % 1234 2.1 % 2000 3.3 %"
        );
        assert!(line("3 ").ends_with('–'));
        assert!(line("average").contains("1234"));
        assert!(
            line("Peak vector multiply-add")
                .contains("-6.2 % against 8 lanes × 2 (multiply and add) × 2 units × 2.00 GHz")
        );
        assert!(text.contains("failed: flops.c:3: error: <no>"));
    }

    #[test]
    fn a_page_holds_every_rate_and_hostile_text_stays_text() {
        let page = html::section(&section(&example())).body.into_string();
        assert_eq!(page.matches("1234").count(), 9);
        assert!(page.contains("error: &lt;no&gt;") && !page.contains('\u{1b}'));
    }

    #[test]
    fn each_figure_has_what_tells_it_from_others() {
        let sections = [section(&example())];
        let all: Vec<Derived> = figures(&sections).cloned().collect();
        let has = |name, params, value| crate::tests::has(&all, name, params, value);
        assert!(has(
            "flops.average",
            "compiler=built-in;module=all",
            1_234_000_000.0
        ));
        assert!(has("flops.units", "kind=vector_fma", 2.0));
    }

    #[test]
    fn the_fastest_code_is_told_first() {
        assert_eq!(
            answer(&example()).unwrap(),
            "The built-in code reaches 1.234 GFLOPS on average, 2 % of the core's highest rate."
        );
        let mut two = example();
        two.columns[1].modules[2] = two.columns[1].modules[0];
        assert!(
            answer(&two)
                .unwrap()
                .starts_with("The code of clang 14 is the fastest: it reaches 2.000 GFLOPS"),
            "{:?}",
            answer(&two)
        );
        assert_eq!(answer(&Flops::default()), None);
    }

    #[test]
    fn kinds_are_said_in_words() {
        assert_eq!(name("scalar_add"), "Peak scalar add");
        assert_eq!(name("vector_mul"), "Peak vector multiply");
        assert_eq!(name("scalar_fma"), "Peak scalar multiply-add");
    }
}
