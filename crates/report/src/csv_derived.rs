//! Lines of comma-separated values, and what is derived from a run's rows, or was followed beside them, as further
//! ones: outcome `derived`, no version, and no samples of their own.

use fingerpost_record::descriptor::table;
use fingerpost_record::text::clean;
use fingerpost_record::{Paths, Run};

use crate::lab::derived::{COUNT, Derived, NS, Of, RATIO};
use crate::view::View;

/// The columns, in their order.
pub const HEADER: &str = "run,host,group,probe,version,params,unit,better,outcome,value,low,high,\
    confidence,p50,p90,p99,processes,samples,disturbed,instructions_user,instructions_kernel,\
    cycles_user,cycles_kernel,reason";

/// A text of the run. A spreadsheet takes a cell that begins like a formula for one, and runs it; an apostrophe makes
/// it text.
pub fn word(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.to_owned() }
}

/// A line of fields, quoted where they must be, ended as RFC 4180 has it.
pub fn line(fields: impl IntoIterator<Item = String>) -> String {
    fields.into_iter().map(|f| quoted(&f)).collect::<Vec<_>>().join(",") + "\r\n"
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// A derived figure's line, in the columns of [`HEADER`].
fn text(figure: &Derived, run: &str, host: &str) -> String {
    let params = figure.params.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(";");
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

/// All of it, the laboratories' first; nothing for a run without them.
pub fn render(run: &Run, view: &View, host: &str) -> String {
    let of_requests: Vec<Derived> = run.paths.iter().flat_map(requests).collect();
    let all = view.found.iter().flat_map(|(_, shown)| &shown.derived).chain(&of_requests);
    all.filter(|figure| figure.value.is_finite()).map(|figure| text(figure, &view.id, host)).collect()
}

/// Followed requests: the share of each leaf in each class with its interval, the latencies, and what was not followed.
fn requests(p: &Paths) -> Vec<Derived> {
    let of = Of(&table::OTHER);
    let step = || {
        let params = p.params.iter().map(|(k, v)| format!("{k} {v}")).collect::<Vec<_>>().join(" ");
        vec![("workload", p.workload.clone()), ("step", params)]
    };
    let with = |more: &[(&'static str, &str)]| {
        step().into_iter().chain(more.iter().map(|(k, v)| (*k, (*v).to_owned()))).collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    for (by, l) in [("followed", Some(p.latency)), ("load generator", p.generator)] {
        let Some(l) = l else { continue };
        all.push(of.exact("request.count", with(&[("by", by)]), COUNT, l.count as f64));
        for (what, seconds) in [("mean", l.mean), ("p50", l.p50), ("p90", l.p90), ("p99", l.p99)] {
            all.push(of.exact("request.latency", with(&[("by", by), ("what", what)]), NS, seconds * 1e9));
        }
    }
    for leaf in &p.leaves {
        let chain = leaf.chain.join(" > ");
        for (class, s) in [("all", leaf.all), ("middle", leaf.middle), ("slowest 1 %", leaf.slow)] {
            let params =
                || with(&[("class", class), ("component", &leaf.component), ("with", &leaf.whom), ("chain", &chain)]);
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
        all.iter().map(|figure| text(figure, "run", "host")).collect()
    }

    #[test]
    fn followed_requests_are_lines_of_the_same_columns() {
        let all = lines(&requests(&fingerpost_record::fixture::followed::slow_locks().paths[0]));
        assert!(all.iter().all(|text| text.trim_end().split(',').count() == HEADER.split(',').count()), "{all:?}");
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
            has(&["request.latency", "by=load generator;what=p99"]) && has(&["request.not_followed", "derived,0.021,"])
        );
    }

    #[test]
    fn a_run_without_laboratories_has_no_such_line() {
        let run = Run::default();
        assert_eq!(render(&run, &View::of(&run, &[]), "host"), "");
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(line(["a", "b,c", "say \"hi\"", ""].map(String::from)), "a,\"b,c\",\"say \"\"hi\"\"\",\r\n");
    }

    #[test]
    fn nothing_of_a_run_becomes_a_formula() {
        assert_eq!(word("=HYPERLINK(\"x\")"), "'=HYPERLINK(\"x\")");
        assert_eq!(word("syscall.null"), "syscall.null");
    }
}
