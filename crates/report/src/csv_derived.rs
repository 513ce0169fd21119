//! Lines of comma-separated values, and what is derived from a run's rows, or was followed beside them, as further
//! ones: outcome `derived`, no version, and no samples of their own.

use fingerpost_compare::flops::Flops;
use fingerpost_compare::memory::{Memory, staircase};
use fingerpost_compare::zerofill::solve::FIELDS;
use fingerpost_compare::zerofill::{self, Analysis};
use fingerpost_record::descriptor::table;
use fingerpost_record::text::clean;
use fingerpost_record::{Estimate, Paths, Run, Unit};

use crate::zerofill::{fit_fields, given_fields};

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

/// A derived figure.
struct Derived {
    name: &'static str,
    params: Vec<(&'static str, String)>,
    unit: &'static str,
    value: f64,
    /// Its interval: low, high and confidence, where there is one.
    interval: Option<[f64; 3]>,
}

impl Derived {
    fn exact(name: &'static str, params: Vec<(&'static str, String)>, unit: &'static str, value: f64) -> Derived {
        Derived { name, params, unit, value, interval: None }
    }

    fn estimated(name: &'static str, params: Vec<(&'static str, String)>, unit: &'static str, e: Estimate) -> Derived {
        Derived { interval: Some([e.low, e.high, e.confidence]), ..Derived::exact(name, params, unit, e.value) }
    }

    /// The line, in the columns of [`HEADER`].
    fn text(&self, run: &str, host: &str, title: &str) -> String {
        let params = self.params.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(";");
        let [low, high, confidence] = self.interval.map_or([const { String::new() }; 3], |i| i.map(|v| v.to_string()));
        let cell = |column: &str| match column {
            "run" => word(run),
            "host" => word(host),
            "group" => word(title),
            "probe" => self.name.to_owned(),
            "params" => word(&clean(&params)),
            "unit" => self.unit.to_owned(),
            "outcome" => "derived".to_owned(),
            "value" => self.value.to_string(),
            "low" => low.clone(),
            "high" => high.clone(),
            "confidence" => confidence.clone(),
            _ => String::new(),
        };
        line(HEADER.split(',').map(cell))
    }
}

/// All of it; nothing for a run without these laboratories.
pub fn render(run: &Run, id: &str, host: &str) -> String {
    let all: [(_, Vec<Derived>); 4] = [
        (&table::ZEROFILL, zerofill::analyse(run).iter().flat_map(zero_filling).collect()),
        (&table::FLOPS, Flops::of(&run.measurements).iter().flat_map(floating_point).collect()),
        (&table::MEMORY, Memory::of(run).iter().flat_map(hierarchy).collect()),
        (&table::OTHER, run.paths.iter().flat_map(requests).collect()),
    ];
    let finite = all.iter().flat_map(|(of, figures)| figures.iter().filter(|d| d.value.is_finite()).map(|d| (*of, d)));
    finite.map(|(of, figure)| figure.text(id, host, &of.title)).collect()
}

const NS: &str = Unit::Nanoseconds.as_str();
const BYTES: &str = Unit::Bytes.as_str();
const RATIO: &str = "ratio";

/// Followed requests: the share of each leaf in each class with its interval, the latencies, and what was not followed.
fn requests(p: &Paths) -> Vec<Derived> {
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
        all.push(Derived::exact("request.count", with(&[("by", by)]), "count", l.count as f64));
        for (what, seconds) in [("mean", l.mean), ("p50", l.p50), ("p90", l.p90), ("p99", l.p99)] {
            all.push(Derived::exact("request.latency", with(&[("by", by), ("what", what)]), NS, seconds * 1e9));
        }
    }
    for leaf in &p.leaves {
        let chain = leaf.chain.join(" > ");
        for (class, s) in [("all", leaf.all), ("middle", leaf.middle), ("slowest 1 %", leaf.slow)] {
            let params =
                || with(&[("class", class), ("component", &leaf.component), ("with", &leaf.whom), ("chain", &chain)]);
            all.push(Derived {
                interval: Some([s.low, s.high, 0.95]),
                ..Derived::exact("request.share", params(), RATIO, s.share)
            });
            all.push(Derived::exact("request.time", params(), NS, s.seconds * 1e9));
        }
    }
    all.push(Derived::exact("request.not_followed", step(), RATIO, p.not_followed));
    all
}

fn zero_filling(a: &Analysis) -> Vec<Derived> {
    let what = |name: &str| vec![("api", a.api.clone()), ("what", name.to_owned())];
    let estimated = |name, params, e| Derived::estimated(name, params, NS, e);
    let mut all: Vec<Derived> =
        a.given.iter().flat_map(given_fields).map(|(name, e)| estimated("zerofill.given", what(name), e)).collect();
    if let Some(costs) = &a.derived {
        let fields = FIELDS.iter().zip(costs.values());
        all.extend(fields.map(|((key, ..), value)| Derived::exact("zerofill.derived", what(key), NS, value)));
    }
    all.extend(fit_fields(a).into_iter().map(|(name, e)| estimated("zerofill.fit", what(name), e)));
    all.extend(a.zeroing.iter().map(|r| {
        estimated(
            "zerofill.zeroing_by_route",
            vec![("route", r.key.to_owned()), ("pages", r.pages.to_string())],
            r.per_page,
        )
    }));
    for s in &a.shares {
        for (part, share) in [("allocation", s.allocation), ("fault", s.fault), ("zero", s.zero)] {
            let params = vec![("pages", s.pages.to_string()), ("part", part.to_owned())];
            all.push(Derived::exact("zerofill.share", params, RATIO, share));
        }
    }
    let guess = |g: &zerofill::guesses::Guess| {
        Derived::estimated("zerofill.guess", vec![("what", g.key.to_owned())], RATIO, g.measured)
    };
    all.extend(a.guesses.iter().map(guess));
    all.extend(
        a.agreement
            .iter()
            .map(|g| Derived::exact("zerofill.agreement", vec![("what", g.what.to_owned())], RATIO, g.ratio)),
    );
    for (name, rankings) in [
        ("zerofill.rank_prefault", &a.prefault),
        ("zerofill.rank_touched", &a.apis),
        ("zerofill.rank_untouched", &a.apis_untouched),
    ] {
        for (ranking, (place, at)) in rankings.iter().flat_map(|r| r.places.iter().enumerate().map(move |p| (r, p))) {
            let params = vec![
                ("pages", ranking.pages.to_string()),
                ("name", at.name.clone()),
                ("place", (place + 1).to_string()),
            ];
            all.push(Derived::exact(name, params, RATIO, at.times));
        }
    }
    all.extend(a.crossovers.iter().filter_map(|c| {
        let params = vec![("name", c.name.clone()), ("against", c.against.clone())];
        Some(Derived::exact("zerofill.wins_from_pages", params, Unit::Count.as_str(), c.from_pages? as f64))
    }));
    all
}

fn floating_point(flops: &Flops) -> Vec<Derived> {
    let mut all = Vec::new();
    for column in &flops.columns {
        let params = |module: &str| {
            let flags = column.cflags.clone().map(|flags| ("cflags", flags));
            [("compiler", column.compiler.clone()), ("module", module.to_owned())]
                .into_iter()
                .chain(flags)
                .collect::<Vec<_>>()
        };
        let modules = column.modules.iter().enumerate().map(|(i, m)| ((i + 1).to_string(), m.map(|e| e.value)));
        all.extend(
            column.average().map(|v| Derived::exact("flops.average", params("all"), Unit::FlopPerSecond.as_str(), v)),
        );
        for (module, rate) in modules.chain([("all".to_owned(), column.average())]) {
            let share = rate.and_then(|rate| flops.share(rate));
            all.extend(share.map(|share| Derived::exact("flops.share_of_peak", params(&module), RATIO, share)));
        }
    }
    for limit in &flops.limits {
        let kind = || vec![("kind", limit.kind.clone())];
        all.extend(limit.units().map(|units| Derived::exact("flops.units", kind(), Unit::Count.as_str(), units)));
        all.extend(limit.deviation().map(|off| Derived::exact("flops.off_formula", kind(), RATIO, off)));
    }
    all
}

fn hierarchy(memory: &Memory) -> Vec<Derived> {
    let level = |names: [&'static str; 3], params: &[(&'static str, String)], level: &staircase::Level| {
        let bytes = |name, bytes: u64| Derived::exact(name, params.to_vec(), BYTES, bytes as f64);
        let mut found = vec![Derived::exact(names[0], params.to_vec(), NS, level.height), bytes(names[1], level.fits)];
        found.extend(level.passed.map(|passed| bytes(names[2], passed)));
        found
    };
    let mut all = Vec::new();
    for (i, cache) in memory.levels.iter().enumerate() {
        let reported = cache.reported.as_ref();
        let name = reported.map_or(format!("level {}", i + 1), |(name, _)| name.clone());
        let params = [("level", name)];
        all.extend(level(
            ["memory.level_load", "memory.level_holds", "memory.level_no_longer_holds"],
            &params,
            &cache.level,
        ));
        all.extend(reported.map(|(_, b)| Derived::exact("memory.level_reported", params.to_vec(), BYTES, *b as f64)));
    }
    for reach in &memory.reaches {
        for (i, found) in reach.levels.iter().enumerate() {
            let params = [("pages", reach.pages.clone()), ("level", (i + 1).to_string())];
            all.extend(level(
                ["memory.translation_load", "memory.translation_reach", "memory.translation_no_longer_reaches"],
                &params,
                found,
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(all: &[Derived]) -> Vec<String> {
        all.iter().map(|d| d.text("run", "host", "table")).collect()
    }

    #[test]
    fn caches_translation_and_peaks_are_lines_of_the_same_columns() {
        let memory = lines(&hierarchy(&crate::memory::tests::example()));
        let flops = lines(&floating_point(&crate::flops::tests::example()));
        for text in memory.iter().chain(&flops) {
            assert_eq!(text.trim_end().split(',').count(), HEADER.split(',').count(), "{text}");
            assert!(!text.contains('\u{1b}') && text.contains(",derived,"), "{text}");
        }
        let has = |all: &[String], parts: &[&str]| all.iter().any(|l| parts.iter().all(|p| l.contains(p)));
        assert!(has(&memory, &["memory.level_holds", "level=L1d", ",bytes,", "derived,16384,"]), "{memory:?}");
        assert!(has(&memory, &["memory.level_reported", "level=L1d", "derived,32768,"]));
        assert!(has(&memory, &["memory.translation_reach", "pages=small;level=1", "derived,262144,"]));
        assert!(has(&flops, &["flops.average", "compiler=built-in;module=all", "derived,1234000000,"]));
        assert!(has(&flops, &["flops.units", "kind=vector_fma", "derived,2,"]), "{flops:?}");
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
        assert_eq!(render(&Run::default(), "run", "host"), "");
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
