//! Floating point by instruction mix and compiler: the table, in words for every format.

use crate::flops::analysis::{Column, Flops, Limit, MIX, UNNAMED};
use fingerpost_record::Unit;

use fingerpost_report::grid::{Align, Grid, Line};
use fingerpost_report::style::Tone;
use fingerpost_report::words::{clean, percent};

/// What the table is called.
pub fn title(flops: &Flops) -> &'static str {
    match shares(flops) {
        true => {
            "Floating point by instruction mix and compiler (MFLOPS, and the share of the core's highest rate)"
        }
        false => "Floating point by instruction mix and compiler (MFLOPS)",
    }
}

/// Whether the core's highest rate is known, so that there are shares of it.
pub fn shares(flops: &Flops) -> bool {
    flops.share(1.0).is_some()
}

/// A compiler as the head of its column; where rows name none, what the column has.
pub fn heading(column: &Column) -> String {
    if column.compiler == UNNAMED {
        "MFLOPS".into()
    } else {
        clean(&column.compiler)
    }
}

/// A rate in whole MFLOPS, as the published table has it.
pub fn mflops(rate: Option<f64>) -> String {
    rate.map_or("–".to_owned(), |rate| format!("{:.0}", rate / 1e6))
}

/// A share of the core's highest rate.
pub fn share(flops: &Flops, rate: Option<f64>) -> String {
    rate.and_then(|rate| flops.share(rate))
        .map_or(String::new(), percent)
}

/// Sentences below the table: flags, the core's rates, compilers that failed.
pub fn sentences(flops: &Flops) -> Vec<(String, String, Tone)> {
    let mut all = Vec::new();
    let mut flags: Vec<&str> = flops
        .columns
        .iter()
        .filter_map(|c| c.cflags.as_deref())
        .collect();
    flags.dedup();
    if !flags.is_empty() {
        all.push(("Flags".to_owned(), clean(&flags.join("; ")), Tone::Plain));
    }
    all.extend(
        flops
            .limits
            .iter()
            .map(|limit| (name(&limit.kind), limit_text(limit), Tone::Plain)),
    );
    all.extend(flops.failed.iter().map(|(compiler, reason)| {
        (
            clean(compiler),
            format!("failed: {}", clean(reason)),
            Tone::Bad,
        )
    }));
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
    clean(&format!("Peak {width} {op}"))
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

/// What a reader wants to know first: whose code is the fastest, and how much of the core it uses.
pub fn answer(flops: &Flops) -> Option<String> {
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

/// The table with sentences below it.
pub fn grid(flops: &Flops) -> Grid {
    let mix = [(Align::Left, 0)].into_iter().chain([(Align::Right, 3); 4]);
    let rates_and_shares = flops
        .columns
        .iter()
        .flat_map(|_| [(Align::Right, 0), (Align::Right, 2)]);
    let mut grid = Grid::untitled(mix.chain(rates_and_shares));
    grid.lines.push(Line::Heading(title(flops).to_owned()));
    if !flops.columns.is_empty() {
        let titles = ["module", "FADD", "FSUB", "FMUL", "FDIV"]
            .map(str::to_owned)
            .into_iter();
        let heads = flops
            .columns
            .iter()
            .flat_map(|c| [heading(c), String::new()]);
        grid.lines
            .push(Line::Cells(titles.chain(heads).collect(), Tone::Faint));
        for (i, mix) in MIX.iter().enumerate() {
            let mixture = mix.iter().map(|percent| format!("{percent} %"));
            let start = std::iter::once(format!("  {}", i + 1)).chain(mixture);
            grid.lines.push(Line::Cells(
                start
                    .chain(rates(flops, |c| c.modules[i].map(|e| e.value)))
                    .collect(),
                Tone::Plain,
            ));
        }
        let start = ["  average", "", "", "", ""].map(str::to_owned).into_iter();
        grid.lines.push(Line::Cells(
            start.chain(rates(flops, Column::average)).collect(),
            Tone::Strong,
        ));
    }
    grid.lines.extend(
        sentences(flops)
            .into_iter()
            .map(|(label, text, tone)| Line::Labelled(label, text, tone)),
    );
    grid
}

fn rates(flops: &Flops, pick: impl Fn(&Column) -> Option<f64>) -> impl Iterator<Item = String> {
    let cells: Vec<String> = flops
        .columns
        .iter()
        .flat_map(|c| [mflops(pick(c)), share(flops, pick(c))])
        .collect();
    cells.into_iter()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use fingerpost_record::Estimate;
    use fingerpost_report::style::Style;

    /// Two compilers, one limit, one failure.
    pub fn example() -> Flops {
        let at = |value: f64| {
            Some(Estimate {
                value,
                low: value,
                high: value,
                confidence: 0.95,
            })
        };
        let column = |compiler: &str, cflags: Option<&str>, rate: f64| Column {
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
        let text = grid(&example()).render(&Style::default());
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
        assert_eq!(
            line("average").split_whitespace().collect::<Vec<_>>(),
            ["average", "1234", "2.1", "%", "–"]
        );
        assert!(
            line("Peak vector multiply-add")
                .contains("-6.2 % against 8 lanes × 2 (multiply and add) × 2 units × 2.00 GHz")
        );
        assert!(text.contains("failed: flops.c:3: error: <no>"));
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
