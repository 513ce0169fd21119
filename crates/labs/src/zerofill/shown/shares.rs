//! Where the time of allocating, touching and freeing goes, as stacked bars.

use crate::zerofill::analysis::Share;
use fingerpost_record::Unit;
use fingerpost_record::text::counted;
use maud::{Markup, html};

use fingerpost_report::document::{Cell, Chart, Column, Row, Table};
use fingerpost_report::style::Tone;

/// How many characters a whole bar is.
const CHARACTERS: usize = 32;
/// Heights in pixels: a bar, and the distance of two.
const BAR: f64 = 18.0;
const STEP: f64 = 26.0;
/// Where the bars begin and how wide they are, in per cent of the width: on a phone there is room for the words on both
/// sides.
const FROM: f64 = 14.0;
const WIDE: f64 = 44.0;

/// One stacked bar per page count: zeroing, faults, allocation.
pub struct Shares(pub Vec<Share>);

/// A bar of this many characters in three parts: zeroing, faults, allocation.
pub fn bar(zero: f64, fault: f64, whole: usize) -> String {
    let edge = |share: f64| ((share.clamp(0.0, 1.0) * whole as f64).round() as usize).min(whole);
    let (first, second) = (edge(zero), edge(zero + fault).max(edge(zero)));
    format!(
        "{}{}{}",
        "█".repeat(first),
        "▒".repeat(second - first),
        "·".repeat(whole - second)
    )
}

impl Chart for Shares {
    fn title(&self) -> &str {
        "Share of zero-filling per page count"
    }

    fn table(&self) -> Option<Table> {
        let row = |s: &Share| {
            let cells = [
                counted(s.pages.unsigned_abs(), "page"),
                bar(s.zero, s.fault, CHARACTERS),
                format!("{:.0} % zero-filling", s.zero * 100.0),
                Unit::Nanoseconds.format(s.total),
            ];
            Row::new(cells.map(Cell::from), Tone::Plain)
        };
        Some(
            Table::new([""; 4].map(Column::words))
                .caption("█ zero-filling, ▒ faults and mapping, · allocating and freeing")
                .with(self.0.iter().map(row)),
        )
    }

    fn picture(&self) -> Markup {
        let height = STEP * self.0.len() as f64;
        let of_bar = |share: f64| format!("{:.2}%", share.clamp(0.0, 1.0) * 100.0);
        html! {
            figure {
                figcaption {
                    "Shares of allocating, touching and freeing, by the number of pages (on the left); behind each bar \
                     how much of the whole time is zero-filling."
                }
                (legend())
                svg class="chart" width="100%" height=(height) role="img" xmlns="http://www.w3.org/2000/svg" {
                    title { (self.title()) }
                    desc {
                        @for s in &self.0 {
                            (s.pages)
                            " pages: "
                            (format!("{:.0} % zero-filling, {:.0} % faults. ", s.zero * 100.0, s.fault * 100.0))
                        }
                    }
                    @for (i, s) in self.0.iter().enumerate() {
                        @let y = STEP * i as f64;
                        text x="0" y=(y + 14.0) { (s.pages) }
                        svg class="bar" x=(format!("{FROM}%")) y=(y) width=(format!("{WIDE}%")) height=(BAR) {
                            rect width="100%" height=(BAR) class="z-rest" {}
                            rect width=(of_bar(s.zero)) height=(BAR) class="z-zero" {}
                            rect x=(of_bar(s.zero)) width=(of_bar(s.fault)) height=(BAR) class="z-fault" {}
                        }
                        text x=(format!("{}%", FROM + WIDE)) dx="6" y=(y + 14.0) {
                            (format!("{:.0} %", s.zero * 100.0))
                            " of "
                            (Unit::Nanoseconds.format(s.total))
                        }
                    }
                }
            }
        }
    }
}

/// The colours of shares of the time, the same wherever they are drawn.
pub fn legend() -> Markup {
    let parts = [
        ("z-zero", "zero-filling"),
        ("z-fault", "the rest of the fault"),
        ("z-rest", "allocating and freeing"),
    ];
    html! {
        ul class="legend" { @for (class, name) in parts {
            li {
                svg class="key" width="14" height="14" aria-hidden="true" xmlns="http://www.w3.org/2000/svg" {
                    rect class=(class) width="14" height="14" {}
                }
                (name)
            }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_whatever_its_shares() {
        for (zero, fault) in [
            (0.0, 0.0),
            (1.0, 0.0),
            (0.25, 0.5),
            (0.333, 0.667),
            (2.0, 1.0),
            (-1.0, 0.5),
            (f64::NAN, f64::NAN),
        ] {
            let bar = bar(zero, fault, CHARACTERS);
            assert_eq!(bar.chars().count(), CHARACTERS, "{zero} {fault}");
        }
        assert_eq!(bar(0.25, 0.5, 40).matches('█').count(), 10);
        assert_eq!(bar(0.25, 0.5, 40).matches('▒').count(), 20);
    }
}
