//! A run as lines: one for each measurement, values unrounded in the record's units, then one for each figure that is
//! derived.

use fingerpost_record::descriptor::table;
use fingerpost_record::text::clean;
use fingerpost_record::{Better, Paths, Run};

use crate::document;
use crate::document::records::{Field, Records};
use crate::lab::derived::{COUNT, Derived, NS, Of, RATIO};
use crate::view::{Row, View, outcome_name};
use crate::wording::whom;

/// The columns, in their order.
const COLUMNS: [&str; 24] = [
    "run",
    "host",
    "group",
    "probe",
    "version",
    "params",
    "unit",
    "better",
    "outcome",
    "value",
    "low",
    "high",
    "confidence",
    "p50",
    "p90",
    "p99",
    "processes",
    "samples",
    "disturbed",
    "instructions_user",
    "instructions_kernel",
    "cycles_user",
    "cycles_kernel",
    "reason",
];

/// The whole run: its measurements, and behind them what is derived from them.
pub fn of(run: &Run, view: &View) -> Records {
    let facts = view.headline.iter();
    let mut host = facts.filter(|f| f.name == "Host").map(|f| f.text.as_str());
    let host = host.next().unwrap_or_default();
    let mut lines = Vec::new();
    for group in &view.groups {
        let rows = group.rows.iter();
        lines.extend(rows.map(|row| fields(view, host, &group.table.title, row)));
    }
    lines.extend(derived(run, view, host));
    Records {
        columns: COLUMNS.to_vec(),
        lines,
    }
}

fn fields(view: &View, host: &str, title: &str, row: &Row) -> Vec<Field> {
    let params = row
        .param_list
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect::<Vec<_>>()
        .join(";");
    let better = if row.better == Better::Lower {
        "lower"
    } else {
        "higher"
    };
    let mut fields = [&view.id, host, title, &row.probe]
        .map(Field::text)
        .to_vec();
    fields.extend([
        Field::number(row.version),
        Field::text(params),
        Field::text(row.unit.as_str()),
        Field::text(better),
        Field::text(outcome_name(row.outcome)),
    ]);
    let e = row.figure.map(|f| f.estimate);
    fields.extend(
        [
            e.map(|e| e.value),
            e.map(|e| e.low),
            e.map(|e| e.high),
            e.map(|e| e.confidence),
        ]
        .map(Field::maybe),
    );
    let p = row.percentiles;
    fields.extend([p.map(|p| p.p50), p.map(|p| p.p90), p.map(|p| p.p99)].map(Field::maybe));
    fields.extend(row.counts.map(Field::number));
    fields.extend(row.counters.map(Field::maybe));
    fields.push(Field::text(row.reason.as_deref().unwrap_or_default()));
    fields
}

/// A derived figure's line, in the columns of [`COLUMNS`].
fn line(figure: &Derived, run: &str, host: &str) -> Vec<Field> {
    let params = figure
        .params
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect::<Vec<_>>()
        .join(";");
    let field = |column: &str| match column {
        "run" => Field::text(run),
        "host" => Field::text(host),
        "group" => Field::text(clean(&figure.table)),
        "probe" => Field::text(clean(&figure.name)),
        "params" => Field::text(clean(&params)),
        "unit" => Field::text(figure.unit),
        "outcome" => Field::text("derived"),
        "value" => Field::number(figure.value),
        "low" => Field::maybe(figure.interval.map(|i| i[0])),
        "high" => Field::maybe(figure.interval.map(|i| i[1])),
        "confidence" => Field::maybe(figure.confidence),
        _ => Field::none(),
    };
    COLUMNS.map(field).to_vec()
}

/// What is derived from a run's rows or was followed beside them, the laboratories' first: outcome `derived`, no
/// version, and no samples of their own. Nothing for a run without them.
fn derived(run: &Run, view: &View, host: &str) -> Vec<Vec<Field>> {
    let of_requests: Vec<Derived> = run.paths.iter().flat_map(requests).collect();
    let of_labs = view.found.iter();
    let of_labs = of_labs.flat_map(|(_, shown)| document::figures(&shown.sections));
    let all = of_labs.chain(&of_requests);
    all.filter(|figure| figure.value.is_finite())
        .map(|figure| line(figure, &view.id, host))
        .collect()
}

/// Followed requests: the share of each leaf in each class with its interval, the latencies, and what was not followed.
fn requests(p: &Paths) -> Vec<Derived> {
    let of = Of(&table::OTHER);
    let step = || {
        let params = p
            .params
            .iter()
            .map(|(k, v)| format!("{k} {v}"))
            .collect::<Vec<_>>()
            .join(" ");
        vec![("workload", p.workload.clone()), ("step", params)]
    };
    let with = |more: &[(&'static str, &str)]| {
        step()
            .into_iter()
            .chain(more.iter().map(|(k, v)| (*k, (*v).to_owned())))
            .collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    for (by, l) in [
        ("followed", Some(p.latency)),
        ("load generator", p.generator),
    ] {
        let Some(l) = l else { continue };
        all.push(of.exact("request.count", with(&[("by", by)]), COUNT, l.count as f64));
        for (what, seconds) in [
            ("mean", l.mean),
            ("p50", l.p50),
            ("p90", l.p90),
            ("p99", l.p99),
        ] {
            all.push(of.exact(
                "request.latency",
                with(&[("by", by), ("what", what)]),
                NS,
                seconds * 1e9,
            ));
        }
    }
    for leaf in &p.leaves {
        let links: Vec<&str> = leaf.chain.iter().map(|link| link.as_str()).collect();
        let (chain, whom) = (links.join(" > "), whom(leaf.blocker.as_ref()));
        let component = leaf.component().1;
        for (class, s) in [
            ("all", leaf.all),
            ("middle", leaf.middle),
            ("slowest 1 %", leaf.slow),
        ] {
            let params = || {
                with(&[
                    ("class", class),
                    ("component", &component.name()),
                    ("with", &whom),
                    ("chain", &chain),
                ])
            };
            all.push(Derived {
                interval: Some([s.low, s.high]),
                confidence: Some(0.95),
                ..of.exact("request.share", params(), RATIO, s.share)
            });
            all.push(of.exact("request.time", params(), NS, s.seconds * 1e9));
        }
    }
    all.push(of.exact("request.not_followed", step(), RATIO, p.not_followed));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(figure: &Derived) -> String {
        let fields = line(figure, "run", "host").into_iter();
        let words = fields.map(|field| match field {
            Field::Text(text) | Field::Number(text) => text,
        });
        words.collect::<Vec<_>>().join(",")
    }

    #[test]
    fn followed_requests_are_lines_of_the_same_columns() {
        let all = requests(&fingerpost_record::fixture::followed::slow_locks().paths[0]);
        let all: Vec<String> = all.iter().map(words).collect();
        let has = |parts: &[&str]| all.iter().any(|l| parts.iter().all(|p| l.contains(p)));
        assert!(
            has(&[
                "request.share",
                "class=slowest 1 %;component=server user code;with=mariadbd;chain=lock",
                ",ratio,",
                ",0.95"
            ]),
            "{all:?}"
        );
        assert!(
            has(&["request.latency", "by=load generator;what=p99"])
                && has(&["request.not_followed", "derived,0.021,"])
        );
    }

    #[test]
    fn a_run_without_laboratories_has_no_such_line() {
        let run = Run::default();
        assert!(derived(&run, &View::of(&run, &[]), "host").is_empty());
    }
}
