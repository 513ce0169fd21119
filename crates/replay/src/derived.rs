//! What documents print beside a table's figures and make of them: MySQL's scaling, the ratios of the site's rounds,
//! the costs that follow from four timings of zero-filling.

use std::collections::BTreeMap;

use fingerpost_record::Estimate;

use super::own::{Here, Line};
use fingerpost_compare::references::{self, Table};
use fingerpost_labs::zerofill::analysis::Given;
use fingerpost_labs::zerofill::analysis::solve::{self, FIELDS, Timings};

/// The lines that follow from a table's own lines, with what the document prints in them.
pub fn lines(name: &str, table: &Table, own: &[Line]) -> Vec<Line> {
    match name {
        "mysql-scaling" => scaling(table, own),
        "site" => ratios(table, own),
        "zerofill-3" => costs(own),
        _ => Vec::new(),
    }
}

/// Each throughput in per cent of that of one client. The document prints it, in two places not as its own figures give
/// it.
fn scaling(table: &Table, own: &[Line]) -> Vec<Line> {
    let percents = |system: &&str| -> Option<BTreeMap<String, f64>> {
        let told = references::load(system)?
            .observations
            .into_iter()
            .map(|o| o.totals);
        told.into_iter()
            .find(|totals| totals.contains_key("clients01.percent"))
    };
    let printed: Vec<_> = table.systems().iter().map(percents).collect();
    let one = own.first().and_then(|line| line.here.clone());
    let line = |(at, line): (usize, &Line)| {
        let key = format!(
            "clients{:02}.percent",
            table.columns[at].params.int("clients").unwrap_or_default()
        );
        let of_one = |(here, one): (&Here, &Here)| {
            if at == 0 {
                Some(here.whole())
            } else {
                here.quotient(one, 100.0)
            }
        };
        Line {
            about: None,
            what: format!("scaling in %, {}", line.what),
            printed: printed
                .iter()
                .map(|totals| Some(totals.as_ref()?.get(&key)?.to_string()))
                .collect(),
            here: line.here.as_ref().zip(one.as_ref()).and_then(of_one),
        }
    };
    own.iter().enumerate().map(line).collect()
}

/// The time of the file system divided by that of the object database, round by round, in as many digits as the
/// document has.
fn ratios(table: &Table, own: &[Line]) -> Vec<Line> {
    let (files, odb) = own.split_at(own.len() / 2);
    let text = |a: &Option<String>, b: &Option<String>| {
        let ratio = a.as_ref()?.parse::<f64>().ok()? / b.as_ref()?.parse::<f64>().ok()?;
        Some(short(ratio, 8))
    };
    let line = |(round, (f, o)): (usize, (&Line, &Line))| Line {
        about: None,
        what: format!("{} fs/odb, round {}", table.columns[0].probe, round + 1),
        printed: f
            .printed
            .iter()
            .zip(&o.printed)
            .map(|(f, o)| text(f, o))
            .collect(),
        here: f
            .here
            .as_ref()
            .zip(o.here.as_ref())
            .and_then(|(f, o)| f.quotient_of_rounds(o)),
    };
    files.iter().zip(odb).enumerate().map(line).collect()
}

/// A figure with at most so many decimals, and no zeros behind them.
fn short(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}")
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

/// Part III's derived fields, as it prints them; of two of them what its formulas give besides.
fn costs(own: &[Line]) -> Vec<Line> {
    let here: Option<Vec<&Here>> = own.iter().map(|line| line.here.as_ref()).collect();
    let timings = Timings::from(solve::PART_THREE);
    let (misprints, own_costs) = (solve::misprints(&timings), solve::solve(&timings).ok());
    let line = |(at, (_, name, _)): (usize, (&str, &str, &str))| {
        let by_formula = own_costs.as_ref().filter(|_| misprints[at].is_some());
        let formula = by_formula.map_or_else(String::new, |costs| {
            format!(" (its formula gives {})", short(costs.values()[at], 5))
        });
        Line {
            about: None,
            what: format!("derived: {name}{formula} api=vm_allocate"),
            printed: vec![Some(solve::PRINTED[at].to_string())],
            here: here.as_ref().and_then(|here| derived(here, at)),
        }
    };
    FIELDS.into_iter().enumerate().map(line).collect()
}

/// One derived field of this machine's four timings, with what their intervals make of its own.
fn derived(here: &[&Here], field: usize) -> Option<Here> {
    let four: [Estimate; 4] = here
        .iter()
        .map(|h| h.estimate)
        .collect::<Vec<_>>()
        .try_into()
        .ok()?;
    let given = Given::from(four);
    let (value, half) = (
        solve::solve(&given.timings()).ok()?.values()[field],
        given.halves()?[field],
    );
    let estimate = Estimate {
        value,
        low: value - half,
        high: value + half,
        confidence: given.alloc_1.confidence,
    };
    let open = (half > value.abs()).then(|| "the timings leave it open".to_owned());
    let notes: Vec<String> = here[0].note.clone().into_iter().chain(open).collect();
    Some(Here::derived(
        estimate,
        here.iter().all(|h| h.trusted),
        (!notes.is_empty()).then(|| notes.join("; ")),
    ))
}

#[cfg(test)]
mod tests {
    use crate::replay;
    use fingerpost_compare::references;

    fn lines_of(table: &'static str, system: &str) -> Vec<(String, String, f64)> {
        let run = references::load(system).unwrap();
        let found = replay(table, &[table], std::slice::from_ref(&run));
        let at = found.tables[0]
            .systems
            .iter()
            .position(|s| s == system)
            .unwrap();
        let line = |l: &super::Line| {
            Some((
                l.what.clone(),
                l.printed[at].clone()?,
                l.here.as_ref()?.estimate.value,
            ))
        };
        found.tables[0].lines.iter().filter_map(line).collect()
    }

    #[test]
    fn the_scaling_is_printed_beside_the_throughput_with_its_misprints() {
        let found = lines_of("mysql-scaling", "g5-2.7-darwin");
        let percents: Vec<&str> = found[7..].iter().map(|l| l.1.as_str()).collect();
        assert_eq!(percents, ["100", "143", "59", "32", "26", "26", "25"]);
        assert!(
            found[7]
                .0
                .starts_with("scaling in %, database.throughput clients=1 ")
                && found[7].2 == 100.0,
            "{:?}",
            found[7]
        );
        assert_eq!(format!("{:.1}", found[13].2), "24.5");
    }

    #[test]
    fn the_third_column_of_the_sites_table_is_printed_in_its_digits() {
        let found = lines_of("site", "site-powermac-9500");
        let printed = "1.89545455 3.27777778 4.45631068 5.18666667 5.26470588 4.24637681 5.5 5.06060606 7.06944444 \
            7.02898551 6.2";
        assert_eq!(
            found[22..]
                .iter()
                .map(|l| l.1.as_str())
                .collect::<Vec<_>>()
                .join(" "),
            printed
        );
        assert!(
            found[30].0 == "site.round fs/odb, round 9"
                && (found[30].2 - 509.0 / 72.0).abs() < 1e-9,
            "{:?}",
            found[30]
        );
    }

    #[test]
    fn the_derived_fields_of_part_three_are_printed_and_what_its_formulas_give() {
        let found = lines_of("zerofill-3", "zerofill-g4-1ghz");
        let printed: Vec<&str> = found[4..].iter().map(|l| l.1.as_str()).collect();
        assert_eq!(
            printed,
            ["0.3", "5.45", "12.8", "3.5", "9.3", "7.5", "6.15"]
        );
        assert_eq!(
            found[9].0,
            "derived: deallocation (its formula gives 7.35) api=vm_allocate"
        );
        assert_eq!(
            found[10].0,
            "derived: zero-fill (its formula gives 6.1875) api=vm_allocate"
        );
        assert!((found[9].2 - 7.35).abs() < 1e-9 && (found[10].2 - 6.1875).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_be_derived_has_no_figure() {
        let mut run = references::load("zerofill-g4-1ghz").unwrap();
        run.measurements
            .retain(|m| m.params.int("pages") == Some(1));
        let found = replay("x", &["zerofill-3"], std::slice::from_ref(&run));
        let here = |from: usize| {
            found.tables[0].lines[from..]
                .iter()
                .filter(|l| l.here.is_some())
                .count()
        };
        assert_eq!((found.tables[0].lines.len(), here(0), here(4)), (11, 2, 0));
        // One timing that is hardly known: what follows from it is said to be open, what does not is not.
        let mut noisy = references::load("zerofill-g4-1ghz").unwrap();
        noisy.measurements[2]
            .estimate
            .iter_mut()
            .for_each(|e| (e.low, e.high) = (4.0e3, 20.0e3));
        let found = replay("x", &["zerofill-3"], std::slice::from_ref(&noisy));
        let note = |line: usize| {
            found.tables[0].lines[line]
                .here
                .as_ref()
                .unwrap()
                .note
                .as_deref()
        };
        assert_eq!(
            (note(4), note(6)),
            (Some("the timings leave it open"), None)
        );
    }
}
