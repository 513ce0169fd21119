//! Two sides in pictures: the sentence, the suspects, the waterfall, the curves, every row by effect.

use fingerpost_compare::Comparison;
use fingerpost_compare::gains::OfSide;
use fingerpost_compare::side::SideInfo;
use maud::{Markup, html};

use super::content::{Define, Section};
use super::parts::{doubt, scrolling};
use super::term::term;
use super::{budget, forest, waterfall};
use crate::compare_words::{
    CHANGED_PARTS, GAINS, SETTLED, SURER, changed_parts, gains, interval, not_compared_in_short,
    number, settled, sides, summary, surer, waterfall_title,
};
use crate::evidence::Whose;
use crate::scaling::html as scaling;
use crate::words::clean;

/// The title: who against whom. Two runs of one host are called by what they measured, and where that is the same, by
/// their beginnings.
pub fn title(c: &Comparison) -> String {
    let called = |side: &SideInfo| match &side.measured {
        Some(measured) if c.new.name == c.base.name && c.new.measured != c.base.measured => {
            measured.clone()
        }
        _ if c.new.name == c.base.name && !side.started.is_empty() => {
            format!("{} of {}", side.name, side.started)
        }
        _ => side.name.clone(),
    };
    clean(&format!("{} against {}", called(&c.new), called(&c.base)))
}

/// The headline, the sides with their doubts, the count of verdicts.
pub fn lead(c: &Comparison) -> Markup {
    let sides = sides(c);
    let doubts: Vec<_> = sides.iter().filter(|s| s.2).collect();
    html! {
        p class="headline" { (clean(&c.headline)) }
        dl class="facts" {
            @for (name, text, _) in sides.iter().filter(|s| !s.2) { div { dt { (name) } dd { (text) } } }
            div { dt { "Rows" } dd { (summary(c)) } }
            @if let Some(how) = surer(c) { div { dt { (SURER) } dd { (how) } } }
        }
        @if !doubts.is_empty() {
            div class="doubts" role="note" {
                h2 { "Doubts" }
                ul { @for (name, text, _) in doubts { li { (doubt(name.trim_end_matches(" doubt"), text)) } } }
            }
        }
    }
}

/// What a person reads after that.
pub fn sections(c: &Comparison, define: Option<Define>) -> Vec<Section> {
    let mut list = Vec::new();
    let mut add = |key: &'static str, title: &str, body: Markup| {
        list.push(Section {
            key: key.into(),
            title: title.to_owned(),
            body,
        })
    };
    let sentences = |lines: Vec<String>| html! { ul { @for line in lines { li { (line) } } } };
    if !c.settled.is_empty() {
        add("settled", SETTLED, sentences(settled(c)));
    }
    if let Some(body) = budget::suspects(&c.causes, Some(c.unexplained), Whose::default()) {
        add("why", "Why", body);
    }
    let parts = changed_parts(c);
    if !parts.is_empty() {
        add("changed", CHANGED_PARTS, sentences(parts));
    }
    if !c.waterfalls.is_empty() {
        add("waterfall", "From base to new", waterfalls(c));
    }
    if !c.gains.is_empty() {
        add("gains", GAINS, gains_table(c));
    }
    if !c.hosts.is_empty() {
        add("hosts", "What differs between the hosts", hosts(c));
    }
    if !c.curves.is_empty() {
        let (base, new) = (clean(&c.base.name), clean(&c.new.name));
        add(
            "curves",
            "Scaling",
            html! { @for curve in &c.curves { (scaling::curve(curve, &base, &new)) } },
        );
    }
    if c.rows.iter().any(|r| r.ratio.is_some()) {
        let band = format!("{:.1} %", c.threshold * 100.0);
        let body = html! {
            p class="note" {
                "Sorted by effect. The band marks differences within "
                (band)
                ", which are called the same; a verdict needs the whole interval on one side of it."
            }
            (forest::draw(c, define))
        };
        add("rows", "All rows by effect", body);
    }
    if !c.not_compared.is_empty() {
        add(
            "not-compared",
            "Not compared",
            sentences(not_compared_in_short(c)),
        );
    }
    add("reproduce", "How to reproduce", reproduce(c));
    list
}

/// The steps whose time changed as pictures; the others by name.
fn waterfalls(c: &Comparison) -> Markup {
    let (changed, same): (Vec<_>, Vec<_>) = c
        .waterfalls
        .iter()
        .partition(|f| (f.new_seconds / f.base_seconds - 1.0).abs() > c.threshold);
    html! {
        @for fall in changed { (waterfall::draw(fall, &c.causes)) }
        @if !same.is_empty() {
            h3 { "Within the threshold" }
            ul { @for fall in same { li { (waterfall_title(fall)) } } }
        }
    }
}

fn gains_table(c: &Comparison) -> Markup {
    let ratio = |side: &OfSide| format!("{} ({})", number(side.ratio.value), interval(&side.ratio));
    html! {
        p class="note" { "The time of all applications in times of that under the side's default; below 1 is faster." }
        (scrolling("Gains by placement of swap, table", html! {
            table class="narrow figures" {
                thead { tr {
                    th scope="col" { (term("Placement")) } th scope="col" class="number" { (clean(&c.base.name)) }
                    th scope="col" class="number" { (clean(&c.new.name)) }
                } }
                tbody { @for gain in &c.gains {
                    tr {
                        th scope="row" { (clean(&gain.base.placement)) }
                        td class="number" { (ratio(&gain.base)) } td class="number" { (ratio(&gain.new)) }
                    }
                } }
            }
        }))
        ul { @for line in gains(c) { li { (line) } } }
    }
}

fn hosts(c: &Comparison) -> Markup {
    scrolling(
        "Differences of the hosts, table",
        html! {
            table {
                thead {
                    tr {
                        th scope="col" { "" span class="unseen" { "what" } }
                        th scope="col" { (term("base")) }
                        th scope="col" { (term("new")) }
                    }
                }
                tbody {
                    @for d in &c.hosts {
                        tr { th scope="row" { (clean(&d.what)) } td { (clean(&d.base)) } td { (clean(&d.new)) } }
                    }
                }
            }
        },
    )
}

fn reproduce(c: &Comparison) -> Markup {
    let ids = |ids: &[String]| clean(&ids.join(","));
    html! {
        p { "The same comparison in the terminal, from the same files:" }
        pre tabindex="0" {
            code { "fingerpost compare " (ids(&c.base.ids)) " " (ids(&c.new.ids)) " --threshold " (c.threshold) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gains_of_two_systems_stand_side_by_side() {
        let load = |name: &str| fingerpost_compare::references::load(name).unwrap();
        let c = fingerpost_compare::compare(
            &[load("launch-10.0.4")],
            &[load("launch-10.1")],
            &fingerpost_compare::Options::default(),
        );
        let body = gains_table(&c).into_string();
        assert!(
            body.contains("dual")
                && body.contains("0.649")
                && body.contains("0.687")
                && body.contains("gains less"),
            "{body}"
        );
        let table = {
            use crate::document::{format::Screen, terminal};
            terminal::document(&c.document(), &crate::style::Style::default())
        };
        assert!(
            table.contains("0.65 times the time") && table.contains("launch-10.1 gains less"),
            "{table}"
        );
        assert!(sections(&c, None).iter().any(|s| s.key == "gains"));
    }
}
