//! Where a transaction's time went, and what is likely to blame.

use fingerpost_diagnose::label;
use fingerpost_record::{Budget, Finding, Layer, Run, Status};
use maud::{Markup, html};

use super::content::Section;
use super::parts::{graphic_head, heads, scrolling, swatch, table};
use super::term::term;
use crate::compare_words::SHARE_NOT_KNOWN;
use crate::evidence::{Whose, evidence_of};
use crate::explain::programs;
use crate::steps::{Steps, full_name};
use crate::svg::cells::{self, Piece, layer_class};
use crate::wording::overlapping;
use crate::words::{clean, part, percent, time};

/// The layers in the order of the legend.
const LAYERS: [Layer; 9] = [
    Layer::Application,
    Layer::Kernel,
    Layer::Scheduler,
    Layer::Cpu,
    Layer::Memory,
    Layer::Storage,
    Layer::Network,
    Layer::Client,
    Layer::Host,
];

/// What no part has.
const REST: &str = "unexplained";

/// Budgets as stacked bars, with every part in a table one click away; nothing where the run has none.
pub fn section(run: &Run) -> Option<Section> {
    if run.budgets.is_empty() {
        return None;
    }
    let used = |layer: &Layer| {
        run.budgets
            .iter()
            .flat_map(|b| &b.parts)
            .any(|p| p.layer == *layer && p.share > 0.0)
    };
    // A request that was followed is one turn on a connection; where several make a transaction, budgets are of that.
    let turn = |b: &Budget| {
        run.paths.iter().any(|p| {
            p.workload == b.workload && p.params == b.params && p.followed == b.transactions
        })
    };
    let word = if run.budgets.iter().all(turn) {
        "request"
    } else {
        "transaction"
    };
    let steps = Steps::of(run.budgets.iter().map(|b| (b.workload.as_str(), &b.params)));
    let body = html! {
        p {
            "The time of one "
            (word)
            @if let Some(all) = steps.all() { " of " (all) }
            ", part by part. What could not be followed (in older records: not put down to a part) is always shown, as \
             unexplained."
        }
        ul class="legend" {
            @for layer in LAYERS.iter().filter(|l| used(l)) { li { (swatch(layer_class(*layer))) (layer.as_str()) } }
            li { (swatch("l-unexplained")) (REST) }
        }
        (scrolling("Budgets, table", html! {
            table class="budgets" {
                thead { tr {
                    (heads(&[("Step", ""), (&format!("a {word}"), "number")]))
                    (graphic_head("share of its wall time", cells::share_head()))
                    (heads(&[(REST, "number extra")]))
                } }
                tbody { @for b in &run.budgets { (line(b, &steps)) } }
            }
        }))
        @for b in &run.budgets { (parts(b, word, &steps)) }
    };
    Some(Section {
        key: "budget".into(),
        title: "Where the time went".into(),
        body,
    })
}

fn line(b: &Budget, steps: &Steps) -> Markup {
    let mut pieces: Vec<Piece> = Vec::new();
    for layer in LAYERS {
        for p in b.parts.iter().filter(|p| p.layer == layer) {
            let title = clean(&format!(
                "{} ({}): {}, {}",
                p.component,
                p.layer,
                time(p.seconds_per_transaction),
                percent(p.share)
            ));
            pieces.push(Piece {
                class: layer_class(layer),
                title,
                share: p.share,
            });
        }
    }
    pieces.push(Piece {
        class: "l-unexplained",
        title: format!("{REST}: {}", percent(b.unexplained)),
        share: b.unexplained,
    });
    html! {
        tr {
            th scope="row" { (steps.name(&b.workload, &b.params)) }
            td class="number" { (time(b.seconds_per_transaction)) }
            td class="graphic" { (cells::stacked(&pieces)) }
            td class="number extra" { (percent(b.unexplained)) }
        }
    }
}

fn parts(b: &Budget, word: &str, steps: &Steps) -> Markup {
    let name = steps.name(&b.workload, &b.params);
    let mut parts: Vec<_> = b.parts.iter().collect();
    parts.sort_by(|x, y| y.share.total_cmp(&x.share));
    let row = |name: String, layer: &str, seconds: f64, share: f64| {
        [name, layer.to_owned(), time(seconds), percent(share)]
    };
    let rest = row(
        REST.to_owned(),
        "",
        b.unexplained * b.seconds_per_transaction,
        b.unexplained,
    );
    let rows = parts.iter().map(|p| {
        row(
            part(&p.component),
            p.layer.as_str(),
            p.seconds_per_transaction,
            p.share,
        )
    });
    html! {
        details {
            summary { "Every part of " (name) ", over " (b.transactions) " " (word) "s" }
            (table(
                &format!("Parts of {name}"),
                "narrow figures",
                [("part", ""), ("layer", "extra"), (&format!("a {word}"), "number"), ("share", "number")],
                rows.chain([rest]),
            ))
        }
    }
}

/// The suspects of a run; nothing where none was looked at.
pub fn findings(run: &Run) -> Option<Section> {
    let (step, findings) = of_one_step(run);
    let programs = programs(&run.observations);
    let whose = run
        .findings
        .first()
        .map_or(Whose::default(), |f| Whose::of(f.step.as_ref(), programs));
    let list = suspects(&findings, None, whose)?;
    let body = html! {
        @if let Some(step) = step { p class="params" { "At " (step) "." } }
        (list)
    };
    Some(Section {
        key: "suspects".into(),
        title: "Suspects".into(),
        body,
    })
}

/// The findings, and the step that all that accuse are of, which is then told once and not with each.
fn of_one_step(run: &Run) -> (Option<String>, Vec<Finding>) {
    let mut findings = run.findings.clone();
    let mut accused = run.findings.iter().filter(|f| f.status.accuses());
    let Some(step) = accused.next().and_then(|f| f.step.clone()) else {
        return (None, findings);
    };
    if accused.any(|f| f.step.as_ref() != Some(&step)) {
        return (None, findings);
    }
    for f in &mut findings {
        f.step = f.step.take().filter(|of| *of != step);
    }
    (Some(full_name(&step.workload, &step.params)), findings)
}

/// Suspects with their status: confirmed and likely with their evidence, then those that were ruled out and by what, and
/// those not observed and why. Of a comparison with what none of them explains.
pub fn suspects(findings: &[Finding], unexplained: Option<f64>, whose: Whose) -> Option<Markup> {
    let overlap = overlapping(findings, unexplained.map(|rest| 1.0 - rest));
    let left = unexplained.unwrap_or(0.0);
    if findings.is_empty() && left == 0.0 {
        return None;
    }
    let named: Vec<&Finding> = findings.iter().filter(|f| f.status.accuses()).collect();
    let of = |status: Status| -> Vec<&Finding> {
        findings.iter().filter(|f| f.status == status).collect()
    };
    let rest = [Status::RuledOut, Status::NotObserved].map(|status| (status, of(status)));
    Some(html! {
        @if let Some(sentence) = overlap { p class="note" { (sentence) } }
        @if !named.is_empty() || left > 0.0 {
            ol class="suspects" {
                @for f in named { (suspect(f, whose)) }
                @if left > 0.0 {
                    li class="rest" {
                        div class="who" { strong { (term(REST)) } } (cells::share(left, "rest"))
                        p { (percent(left)) " of the difference is " (fingerpost_compare::unexplained(findings)) "." }
                    }
                }
            }
        }
        @for (status, of) in rest.iter().filter(|(_, of)| !of.is_empty()) {
            details class="ruled-out" {
                summary { (of.len()) " " (status.as_str()) }
                ul {
                    @for f in of {
                        li {
                            strong { (clean(label(&f.cause))) }
                            " "
                            span class="layer" { (term(&clean(&f.cause))) ", " (f.layer.as_str()) }
                            " – "
                            (clean(&evidence_of(f, whose).join("; ")))
                        }
                    }
                }
            }
        }
    })
}

fn suspect(f: &Finding, whose: Whose) -> Markup {
    let confirmed = f.status == Status::Confirmed;
    html! {
        li class=(if confirmed { "confirmed" } else { "likely" }) {
            div class="who" {
                span class="status" {
                    @if confirmed { span aria-hidden="true" { "☞ " } (term("confirmed")) } @else { (term("likely")) }
                }
                strong { (clean(label(&f.cause))) }
                span class="layer" { (term(&clean(&f.cause))) ", " (f.layer.as_str()) }
                @if f.share > 0.0 {
                    span class="share" { (percent(f.share)) }
                } @else {
                    span class="share" { (SHARE_NOT_KNOWN) }
                }
            }
            (cells::share(f.share, if confirmed { "confirmed" } else { "likely" }))
            ul { @for e in evidence_of(f, whose) { li { (clean(&e)) } } }
        }
    }
}
