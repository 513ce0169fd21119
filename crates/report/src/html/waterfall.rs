//! From base to new, layer by layer: each part's bar begins where the one before it ended.

use fingerpost_compare::comparison::Waterfall;
use fingerpost_diagnose::causes::cause;
use fingerpost_record::{Component, Finding, Layer, Status, Unit};
use maud::{Markup, html};

use super::parts::{graphic_head, heads, scrolling};
use crate::compare_words::waterfall_title;
use crate::svg::Axis;
use crate::svg::cells;
use crate::words::{clean, part, time};

/// Steps below this share of the change are summed up.
const SMALL: f64 = 0.01;

/// One line of the picture.
struct Line {
    name: String,
    /// What of a budget it is, if it is one part.
    of: Option<(Layer, Component)>,
    from: f64,
    to: f64,
    kind: &'static str,
}

/// The waterfall as a table with a floating bar in each row. Parts that a confirmed cause moves name it, where they go the
/// way that the whole does: of two sides it is the slower one's cause, whichever comes first.
pub fn draw(fall: &Waterfall, causes: &[Finding]) -> Markup {
    let lines = lines(fall);
    let axis = Axis::over(lines.iter().flat_map(|l| [l.from * 1e9, l.to * 1e9]));
    let way = kind_of(fall.new_seconds - fall.base_seconds);
    let confirmed = |line: &Line| {
        let moves = |f: &&Finding| {
            line.of
                .as_ref()
                .is_some_and(|(layer, part)| cause(&f.cause).is_some_and(|c| c.moves(*layer, part)))
        };
        causes
            .iter()
            .filter(|f| f.status == Status::Confirmed)
            .find(moves)
    };
    html! {
        h3 { (waterfall_title(fall)) }
        (scrolling(&format!("{}, table", waterfall_title(fall)), html! {
            table class="waterfall" {
                thead { tr {
                    (heads(&[("Part", ""), ("Layer", "extra"), ("Change", "number")]))
                    (graphic_head("time of one transaction", cells::interval_head(&axis, Unit::Nanoseconds)))
                } }
                tbody { @for line in &lines {
                    @let named = if line.kind == way { confirmed(line) } else { None };
                    tr class=(if named.is_some() { "confirmed" } else { line.kind }) {
                        th scope="row" {
                            (clean(&line.name))
                            @if let Some(f) = named {
                                span class="accused" { span aria-hidden="true" { "☞ " } "confirmed: " (clean(&f.cause)) }
                            }
                        }
                        td class="extra" { @if let Some((layer, _)) = &line.of { (layer.as_str()) } }
                        td class="number" { (change(line)) }
                        td class="graphic" {
                            @let kind = if named.is_some() { "confirmed" } else { line.kind };
                            (cells::floating(&axis, line.from * 1e9, line.to * 1e9, kind))
                        }
                    }
                } }
            }
        }))
        @if let Some(share) = fall.predicted_share {
            p {
                "Unit costs of the primitives times their counts predict "
                (format!("{:.0} %", share * 100.0))
                " of the change."
            }
        }
        @if !fall.predictions.is_empty() { ul class="note" { @for p in &fall.predictions { li { (clean(p)) } } } }
    }
}

fn kind_of(change: f64) -> &'static str {
    if change >= 0.0 { "longer" } else { "shorter" }
}

/// Base, the parts by size, the small ones together, what is unexplained, new.
fn lines(fall: &Waterfall) -> Vec<Line> {
    let kind = kind_of;
    let mut at = fall.base_seconds;
    let mut lines = vec![Line {
        name: "base".into(),
        of: None,
        from: 0.0,
        to: at,
        kind: "total",
    }];
    let mut add = |name: String, of: Option<(Layer, Component)>, d: f64, kind: &'static str| {
        lines.push(Line {
            name,
            of,
            from: at,
            to: at + d,
            kind,
        });
        at += d;
    };
    let mut small = 0.0;
    for s in &fall.steps {
        let d = s.new_seconds - s.base_seconds;
        if s.share.abs() < SMALL {
            small += d;
        } else {
            let of = (s.layer, s.component.clone());
            add(part(&s.component), Some(of), d, kind(d));
        }
    }
    if small != 0.0 {
        add("parts that changed little".into(), None, small, kind(small));
    }
    let unexplained = if fall.unexplained_seconds.abs() < crate::compare_words::NOTHING {
        0.0
    } else {
        fall.unexplained_seconds
    };
    add("unexplained".into(), None, unexplained, "rest");
    lines.push(Line {
        name: "new".into(),
        of: None,
        from: 0.0,
        to: fall.new_seconds,
        kind: "total",
    });
    lines
}

fn change(line: &Line) -> String {
    if line.kind == "total" {
        return time(line.to);
    }
    let d = line.to - line.from;
    format!("{}{}", if d < 0.0 { "−" } else { "+" }, time(d.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_compare::comparison::WaterfallStep;
    use fingerpost_record::Params;

    #[test]
    fn the_bars_lead_from_base_to_new() {
        let step = |name: &str, layer, b: f64, n: f64| WaterfallStep {
            layer,
            component: name.into(),
            base_seconds: b,
            new_seconds: n,
            share: (n - b) / 2.0e-3,
        };
        let fall = Waterfall {
            workload: "database".into(),
            params: Params::new(),
            base_seconds: 1e-3,
            new_seconds: 3e-3,
            steps: vec![
                step("waiting for a CPU", Layer::Scheduler, 1e-4, 2.1e-3),
                step("read", Layer::Kernel, 3e-4, 2e-4),
                step("x", Layer::Host, 1e-6, 2e-6),
            ],
            unexplained_seconds: 9.9e-5,
            predicted_share: None,
            predictions: vec![],
        };
        let lines = lines(&fall);
        for pair in lines[..lines.len() - 1].windows(2) {
            assert_eq!(pair[0].to, pair[1].from);
        }
        let last = &lines[lines.len() - 2..];
        assert!((last[0].to - last[1].to).abs() < 1e-12);
        let quota = Finding {
            cause: "cpu.quota".into(),
            layer: Layer::Scheduler,
            status: Status::Confirmed,
            share: 0.9,
            evidence: vec![],
            step: None,
            relation: None,
        };
        let text = draw(&fall, &[quota]).into_string();
        assert!(
            text.contains("confirmed: cpu.quota")
                && text.contains("+2.000 ms")
                && text.contains("−100.0"),
            "{text}"
        );
    }

    /// The lock's bar of a query cache was labelled “confirmed: app.work”, and of a faster run the parts that grew were.
    #[test]
    fn a_bar_names_the_cause_that_moves_it_on_the_slower_side() {
        let step = |name: &str, layer, b: f64, n: f64| WaterfallStep {
            layer,
            component: name.into(),
            base_seconds: b,
            new_seconds: n,
            share: 0.5,
        };
        let fall = |new_first: bool| {
            let of = |a: f64, b: f64| if new_first { (b, a) } else { (a, b) };
            let (lock, user) = (of(0.0, 9e-3), of(3e-3, 2e-3));
            let (base_seconds, new_seconds) = of(3e-3, 11e-3);
            Waterfall {
                workload: "database".into(),
                params: Params::new(),
                base_seconds,
                new_seconds,
                steps: vec![
                    step("lock: held", Layer::Application, lock.0, lock.1),
                    step("server user code", Layer::Application, user.0, user.1),
                ],
                unexplained_seconds: 0.0,
                predicted_share: None,
                predictions: vec![],
            }
        };
        let confirmed = |cause: &str| Finding {
            cause: cause.into(),
            layer: Layer::Application,
            status: Status::Confirmed,
            share: 0.9,
            evidence: vec![],
            step: None,
            relation: None,
        };
        for new_first in [false, true] {
            let lock = draw(
                &fall(new_first),
                &[confirmed("app.setting"), confirmed("app.lock")],
            )
            .into_string();
            let rows: Vec<&str> = lock.split("<tr").collect();
            let row = |part: &str| {
                *rows
                    .iter()
                    .find(|row| row.contains(part))
                    .unwrap_or_else(|| panic!("{part}: {lock}"))
            };
            assert!(row("lock: held").contains("confirmed: app.lock"), "{lock}");
            assert!(!row("server user code").contains("confirmed"), "{lock}");
            let work = draw(&fall(new_first), &[confirmed("app.work")]).into_string();
            assert!(
                !work.contains("confirmed: app.work"),
                "its part goes the other way: {work}"
            );
        }
    }
}
