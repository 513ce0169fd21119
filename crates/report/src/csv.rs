//! Comma-separated values as RFC 4180 has them: one line per measurement, values unrounded in the record's units, then
//! one per figure that a laboratory derives.

use fingerpost_record::descriptor::table;
use fingerpost_record::text::clean;
use fingerpost_record::{Better, Paths, Run};

use crate::lab::derived::{COUNT, Derived, NS, Of, RATIO};
use crate::view::{Row, View, outcome_name};
use crate::wording::whom;

/// The columns, in their order.
pub const HEADER: &str = "run,host,group,probe,version,params,unit,better,outcome,value,low,high,\
    confidence,p50,p90,p99,processes,samples,disturbed,instructions_user,instructions_kernel,\
    cycles_user,cycles_kernel,reason";

/// A text of the run. A spreadsheet takes a cell that begins like a formula for one, and runs it; an apostrophe makes
/// it text.
pub fn word(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

/// A line of fields, quoted where they must be, ended as RFC 4180 has it.
pub fn line(fields: impl IntoIterator<Item = String>) -> String {
    fields
        .into_iter()
        .map(|f| quoted(&f))
        .collect::<Vec<_>>()
        .join(",")
        + "\r\n"
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// The whole run: its measurements, and behind them what laboratories derive from them.
pub fn render(run: &Run, view: &View) -> String {
    let mut text = line(HEADER.split(',').map(str::to_owned));
    let host = view
        .headline
        .iter()
        .find(|f| f.name == "Host")
        .map_or("", |f| f.text.as_str());
    for group in &view.groups {
        group
            .rows
            .iter()
            .for_each(|row| text.push_str(&line(fields(view, host, &group.table.title, row))));
    }
    text + &derived(run, view, host)
}

fn fields(view: &View, host: &str, title: &str, row: &Row) -> Vec<String> {
    let words = [&view.id, host, title, &row.probe].map(word);
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
    let mut fields = words.to_vec();
    fields.extend([
        row.version.to_string(),
        word(&params),
        row.unit.as_str().into(),
        better.into(),
        outcome_name(row.outcome).into(),
    ]);
    let estimate = row.figure.map(|f| f.estimate);
    fields.extend(estimate.map_or([const { String::new() }; 4], |e| {
        [e.value, e.low, e.high, e.confidence].map(|v| v.to_string())
    }));
    fields.extend(row.percentiles.map_or([const { String::new() }; 3], |p| {
        [p.p50, p.p90, p.p99].map(|v| v.to_string())
    }));
    fields.extend(row.counts.map(|n| n.to_string()));
    fields.extend(
        row.counters
            .map(|c| c.map(|v| v.to_string()).unwrap_or_default()),
    );
    fields.push(word(row.reason.as_deref().unwrap_or_default()));
    fields
}

/// A derived figure's line, in the columns of [`HEADER`].
fn text(figure: &Derived, run: &str, host: &str) -> String {
    let params = figure
        .params
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect::<Vec<_>>()
        .join(";");
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    let cell = |column: &str| match column {
        "run" => word(run),
        "host" => word(host),
        "group" => word(&clean(&figure.table)),
        "probe" => word(&clean(&figure.name)),
        "params" => word(&clean(&params)),
        "unit" => figure.unit.to_owned(),
        "outcome" => "derived".to_owned(),
        "value" => figure.value.to_string(),
        "low" => number(figure.interval.map(|i| i[0])),
        "high" => number(figure.interval.map(|i| i[1])),
        "confidence" => number(figure.confidence),
        _ => String::new(),
    };
    line(HEADER.split(',').map(cell))
}

/// What is derived from a run's rows or was followed beside them, the laboratories' first: outcome `derived`, no
/// version, and no samples of their own. Nothing for a run without them.
fn derived(run: &Run, view: &View, host: &str) -> String {
    let of_requests: Vec<Derived> = run.paths.iter().flat_map(requests).collect();
    let all = view
        .found
        .iter()
        .flat_map(|(_, shown)| &shown.derived)
        .chain(&of_requests);
    all.filter(|figure| figure.value.is_finite())
        .map(|figure| text(figure, &view.id, host))
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

    fn lines(all: &[Derived]) -> Vec<String> {
        all.iter()
            .map(|figure| text(figure, "run", "host"))
            .collect()
    }

    #[test]
    fn followed_requests_are_lines_of_the_same_columns() {
        let all = lines(&requests(
            &fingerpost_record::fixture::followed::slow_locks().paths[0],
        ));
        assert!(
            all.iter()
                .all(|text| text.trim_end().split(',').count() == HEADER.split(',').count()),
            "{all:?}"
        );
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
        assert_eq!(derived(&run, &View::of(&run, &[]), "host"), "");
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(
            line(["a", "b,c", "say \"hi\"", ""].map(String::from)),
            "a,\"b,c\",\"say \"\"hi\"\"\",\r\n"
        );
    }

    #[test]
    fn nothing_of_a_run_becomes_a_formula() {
        assert_eq!(word("=HYPERLINK(\"x\")"), "'=HYPERLINK(\"x\")");
        assert_eq!(word("syscall.null"), "syscall.null");
    }
}
