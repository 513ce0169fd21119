//! What the launch laboratory says of page-ins.

use fingerpost_record::text::counted;
use fingerpost_record::{Measurement, Profile, Run};

use fingerpost_report::untrusted::doubt;

/// Page-ins since boot where that was the question: what `state=after-boot` counts.
pub fn since_boot(run: &Run) -> Option<String> {
    let asked = |m: &&Measurement| {
        m.probe == "launch.pageins" && m.params.text("state") == Some("after-boot")
    };
    let own = run.profile != Profile::Imported;
    let (row, since) = run
        .measurements
        .iter()
        .filter(asked)
        .find_map(|m| Some((m, m.estimate?)))
        .filter(|_| own)?;
    Some(format!(
        "{:.0} page-ins since boot{}.",
        since.value,
        doubt(row)
    ))
}

/// Page-ins since boot, by days of uptime.
pub fn pageins(run: &Run) -> Option<String> {
    let rows = run
        .measurements
        .iter()
        .filter(|m| m.probe == "launch.pageins");
    let mut days: Vec<(i64, f64, &Measurement)> = rows
        .filter_map(|m| Some((m.params.int("days")?, m.estimate?.value, m)))
        .collect();
    days.sort_by_key(|(days, ..)| *days);
    let (last, count, row) = *days.last()?;
    let after = match last {
        0 => "in less than a day".to_owned(),
        n => format!("in {}", counted(n.unsigned_abs(), "day")),
    };
    let more = days.first().filter(|(first, ..)| *first < last).map_or(
        String::new(),
        |(first, before, _)| {
            format!(
                ", {:.0} a day since the first that was seen",
                (count - before) / (last - first) as f64
            )
        },
    );
    Some(format!(
        "{count:.0} page-ins since boot, {after} of uptime{more}{}.",
        doubt(row)
    ))
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Better, Estimate, Params, Unit};

    use super::*;

    #[test]
    fn page_ins_are_told_by_days() {
        let row = |days: i64, count: f64| {
            let params = Params::new().with("state", "uptime").with("days", days);
            let none = fingerpost_record::fixture::row(
                "launch.pageins",
                params,
                Unit::Count,
                Better::Lower,
            );
            Measurement {
                estimate: Some(Estimate {
                    value: count,
                    low: count,
                    high: count,
                    confidence: 0.95,
                }),
                ..none
            }
        };
        let of = |rows: Vec<Measurement>| {
            pageins(&Run {
                measurements: rows,
                ..Run::default()
            })
        };
        assert_eq!(
            of(vec![row(0, 571.0)]).unwrap(),
            "571 page-ins since boot, in less than a day of uptime."
        );
        let course = of(vec![row(3, 13_000.0), row(1, 11_000.0)]).unwrap();
        assert_eq!(
            course,
            "13000 page-ins since boot, in 3 days of uptime, 1000 a day since the first that was seen."
        );
        assert_eq!(of(Vec::new()), None);
    }
}
