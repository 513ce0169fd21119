//! Charts whose rows are rows of a table: each cell is a small picture on an axis that stands in the table's head.
//!
//! The cells are hidden from screen readers, which have the same figures in the row's other cells.

use fingerpost_compare::Verdict;
use fingerpost_record::{Layer, Unit};
use maud::{Markup, html};

use super::{Axis, anchor, percent, tick_label};
use crate::words::short;

/// Height of a cell.
const CELL: f64 = 26.0;
/// Where the marks of a cell lie.
const MIDDLE: f64 = CELL / 2.0;

fn cell(content: Markup) -> Markup {
    html! {
        svg class="cell" width="100%" height=(CELL) aria-hidden="true" focusable="false"
            xmlns="http://www.w3.org/2000/svg" {
            (content)
        }
    }
}

pub(super) fn rules(places: &[f64]) -> Markup {
    html! { @for x in places { line class="rule" x1=(percent(*x)) x2=(percent(*x)) y1="0" y2=(CELL) {} } }
}

/// How many letters of the first and the last label a phone has room for in a cell: of others it has the two only, and
/// these smaller.
const ROOM: usize = 15;

/// How many of the smaller letters: of longer labels a phone shows the last on a line of its own.
const ROOM_TIGHT: usize = 17;

/// The axis for the table's head: labels at their places.
fn head(labels: &[(f64, String)]) -> Markup {
    let letters: usize = labels
        .first()
        .into_iter()
        .chain(labels.last())
        .map(|(_, label)| label.chars().count())
        .sum();
    let class = if letters > ROOM { "tick tight" } else { "tick" };
    html! {
        svg class=(if letters > ROOM_TIGHT { "cell head two" } else { "cell head" }) width="100%" height="18"
            aria-hidden="true" focusable="false" xmlns="http://www.w3.org/2000/svg" {
            @for (x, label) in labels { text class=(class) x=(percent(*x)) y="13" text-anchor=(anchor(*x)) { (label) } }
        }
    }
}

/// At most four of an axis's ticks: a cell is narrow.
pub(super) fn few_ticks(axis: &Axis) -> Vec<f64> {
    let ticks = axis.ticks();
    let step = ticks.len().saturating_sub(1).div_ceil(3).max(1);
    ticks.into_iter().step_by(step).collect()
}

/// The head of [`interval`]s.
pub fn interval_head(axis: &Axis, unit: Unit) -> Markup {
    head(
        &few_ticks(axis)
            .into_iter()
            .map(|t| (axis.place(t), tick_label(unit, t)))
            .collect::<Vec<_>>(),
    )
}

/// A value with its interval, and a faint band from one percentile to another.
pub fn interval(
    axis: &Axis,
    value: f64,
    ends: (f64, f64),
    spread: Option<(f64, f64)>,
    doubtful: bool,
) -> Markup {
    let x = |v: f64| percent(axis.place(v));
    cell(html! {
        (rules(&few_ticks(axis).into_iter().map(|t| axis.place(t)).collect::<Vec<_>>()))
        g class=(if doubtful { "doubtful" } else { "sure" }) {
            @if let Some((from, to)) = spread { line class="spread" x1=(x(from)) x2=(x(to)) y1=(MIDDLE) y2=(MIDDLE) {} }
            line class="interval" x1=(x(ends.0)) x2=(x(ends.1)) y1=(MIDDLE) y2=(MIDDLE) {}
            circle cx=(x(value)) cy=(MIDDLE) r="4" {}
        }
    })
}

/// The axis of a comparison: how many times slower, on a logarithmic scale with "equal" in the middle.
#[derive(Clone, Copy, Debug)]
pub struct RatioAxis {
    /// The largest factor shown either way.
    most: f64,
    /// The relative difference that does not matter.
    threshold: f64,
}

impl RatioAxis {
    /// An axis that holds all ratios, and the threshold's band at a width that can be seen.
    pub fn over(ratios: impl IntoIterator<Item = f64>, threshold: f64) -> RatioAxis {
        let factor = |r: f64| {
            if r > 0.0 && r.is_finite() {
                r.max(1.0 / r)
            } else {
                1.0
            }
        };
        let most = ratios
            .into_iter()
            .map(factor)
            .fold(1.0 + 2.0 * threshold.max(0.01), f64::max);
        RatioAxis {
            most: (most * 1.05).min(1e6),
            threshold,
        }
    }

    fn place(&self, ratio: f64) -> f64 {
        let share = (ratio.max(1e-9).ln() / self.most.ln()).clamp(-1.0, 1.0);
        50.0 + 46.0 * share
    }

    /// Factors to label: one, and a round one on either side.
    fn ticks(&self) -> [f64; 3] {
        let round = [
            1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1e3, 1e4, 1e5,
        ];
        let up = round
            .into_iter()
            .rev()
            .find(|f| *f <= self.most)
            .unwrap_or(self.most);
        [1.0 / up, 1.0, up]
    }

    /// The head: how many times slower.
    pub fn head(&self) -> Markup {
        let label = |f: f64| {
            if f < 1.0 {
                format!("÷ {}", short(1.0 / f))
            } else {
                format!("× {}", short(f))
            }
        };
        head(&self.ticks().map(|t| {
            (
                self.place(t),
                if t == 1.0 {
                    "equal".to_owned()
                } else {
                    label(t)
                },
            )
        }))
    }

    /// A ratio with its interval before the threshold's band.
    pub fn mark(&self, value: f64, low: f64, high: f64, verdict: Verdict) -> Markup {
        let x = |r: f64| percent(self.place(r));
        let (from, to) = (
            self.place(1.0 / (1.0 + self.threshold)),
            self.place(1.0 + self.threshold),
        );
        // Worse points right, better left.
        let shape = match verdict {
            Verdict::Slower => "M-4-5L6 0L-4 5Z",
            Verdict::Faster => "M4-5L-6 0L4 5Z",
            Verdict::Same => "M0-4.5L4.5 0L0 4.5L-4.5 0Z",
            Verdict::Unresolved => "M-4-4H4V4H-4Z",
        };
        cell(html! {
            rect class="band" x=(percent(from)) width=(percent((to - from).max(0.0))) y="0" height=(CELL) {}
            (rules(&self.ticks().map(|t| self.place(t))))
            g class=(verdict.to_string()) {
                line class="interval" x1=(x(low)) x2=(x(high)) y1=(MIDDLE) y2=(MIDDLE) {}
                svg x=(x(value)) y=(MIDDLE) overflow="visible" { path d=(shape) {} }
            }
        })
    }
}

/// A piece of a stacked bar.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The class that colours it.
    pub class: &'static str,
    /// What it is, told on hovering.
    pub title: String,
    /// Its share of the whole, 0 to 1.
    pub share: f64,
}

/// The class of a layer's colour.
pub fn layer_class(layer: Layer) -> &'static str {
    match layer {
        Layer::Application => "l-application",
        Layer::Kernel => "l-kernel",
        Layer::Scheduler => "l-scheduler",
        Layer::Cpu => "l-cpu",
        Layer::Memory => "l-memory",
        Layer::Storage => "l-storage",
        Layer::Network => "l-network",
        Layer::Client => "l-client",
        Layer::Host => "l-host",
    }
}

/// Pieces side by side over the whole width.
pub fn stacked(pieces: &[Piece]) -> Markup {
    let whole: f64 = pieces
        .iter()
        .map(|p| p.share.max(0.0))
        .sum::<f64>()
        .max(1.0);
    let mut from = 0.0;
    let mut bars = Vec::new();
    for piece in pieces.iter().filter(|p| p.share > 0.0) {
        let width = piece.share / whole * 100.0;
        bars.push((from, width, piece));
        from += width;
    }
    cell(html! {
        @for (from, width, piece) in bars {
            rect class={ "piece " (piece.class) } x=(percent(from)) width=(percent(width)) y="3" height=(CELL - 6.0) {
                title { (piece.title) }
            }
        }
    })
}

/// The head of [`stacked`] bars.
pub fn share_head() -> Markup {
    head(&[
        (0.0, "0 %".to_owned()),
        (50.0, "50 %".to_owned()),
        (100.0, "100 %".to_owned()),
    ])
}

/// A bar that floats between two values, with a thin line down from where it ends.
pub fn floating(axis: &Axis, from: f64, to: f64, class: &str) -> Markup {
    let (left, right) = (axis.place(from.min(to)), axis.place(from.max(to)));
    cell(html! {
        (rules(&few_ticks(axis).into_iter().map(|t| axis.place(t)).collect::<Vec<_>>()))
        rect class={ "fall " (class) } x=(percent(left)) width=(percent((right - left).max(0.3))) y="5"
            height=(CELL - 10.0) {}
        line class="carry" x1=(percent(axis.place(to))) x2=(percent(axis.place(to))) y1=(CELL - 5.0) y2=(CELL) {}
    })
}

/// A share, 0 to 1, as a bar.
pub fn share(value: f64, class: &str) -> Markup {
    cell(html! {
        rect class="whole" x="0" width="100%" y="9" height=(CELL - 18.0) {}
        rect class={ "fall " (class) } x="0" width=(percent(value.clamp(0.0, 1.0) * 100.0)) y="9"
            height=(CELL - 18.0) {}
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_too_long_for_a_phone_are_told_so_to_the_style_sheet() {
        let text = |from: f64, to: f64, unit: Unit| {
            interval_head(&Axis::over([from, to]), unit).into_string()
        };
        assert!(text(1e8, 1e11, Unit::FlopPerSecond).contains("tick tight"));
        assert!(!text(1.0, 1e3, Unit::Nanoseconds).contains("tight"));
    }

    #[test]
    fn equal_lies_in_the_middle_and_factors_lie_alike_on_both_sides() {
        let axis = RatioAxis::over([0.5, 8.07], 0.03);
        assert_eq!(axis.place(1.0), 50.0);
        assert!((axis.place(4.0) - 50.0 - (50.0 - axis.place(0.25))).abs() < 1e-9);
        assert!(
            axis.place(8.07) < 100.0
                && axis.place(1e9) <= 100.0
                && axis.place(0.0) >= 0.0
                && axis.place(f64::INFINITY) <= 100.0
        );
        assert_eq!(axis.ticks()[2], 5.0);
    }

    #[test]
    fn a_row_of_hostile_ratios_makes_a_cell() {
        for r in [f64::NAN, 0.0, -1.0, f64::INFINITY, 1e300] {
            let text = RatioAxis::over([r], 0.0)
                .mark(r, r, r, Verdict::Same)
                .into_string();
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }

    #[test]
    fn pieces_fill_the_bar_and_no_more() {
        let piece = |share| Piece {
            class: "l-cpu",
            title: "t".into(),
            share,
        };
        let text = stacked(&[piece(0.5), piece(0.25), piece(-0.1)]).into_string();
        assert!(
            text.contains(r#"x="50.00%" width="25.00%""#) && text.matches("<rect").count() == 2,
            "{text}"
        );
        // Parts that overlap (a sum above one) are drawn to scale within the bar.
        let over = stacked(&[piece(1.0), piece(1.0)]).into_string();
        assert!(over.contains(r#"x="50.00%" width="50.00%""#), "{over}");
    }
}
