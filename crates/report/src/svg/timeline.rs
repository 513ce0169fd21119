//! A line of time: what one request did, one stretch after the other, as a cell of a table.

use fingerpost_record::Layer;
use maud::{Markup, html};

use super::cells::{few_ticks, layer_class, rules};
use super::{Axis, percent};

/// Height of a line.
const LINE: f64 = 26.0;
/// Stretches that one line shows, the longest: a report of many slow requests stays small.
const MOST: usize = 48;
/// A stretch narrower than this many per cent of the axis cannot be seen.
const SEEN: f64 = 0.1;

/// A stretch of time. Texts are clean; they are escaped here.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// Where it begins, and how long it is, in nanoseconds.
    pub at: f64,
    /// See `at`.
    pub length: f64,
    /// The layer that colours it.
    pub layer: Layer,
    /// Whether no event tells what it was.
    pub unknown: bool,
    /// What it is, told on hovering.
    pub title: String,
}

/// One line.
pub fn line(axis: &Axis, stretches: &[Stretch]) -> Markup {
    let mut shown: Vec<(f64, f64, &Stretch)> = stretches
        .iter()
        .map(|s| {
            (
                axis.place(s.at),
                axis.place(s.at + s.length) - axis.place(s.at),
                s,
            )
        })
        .filter(|(_, width, _)| *width >= SEEN)
        .collect();
    shown.sort_by(|a, b| b.1.total_cmp(&a.1));
    shown.truncate(MOST);
    shown.sort_by(|a, b| a.0.total_cmp(&b.0));
    html! {
        svg class="cell" width="100%" height=(LINE) aria-hidden="true" focusable="false"
            xmlns="http://www.w3.org/2000/svg" {
            (rules(&few_ticks(axis).into_iter().map(|t| axis.place(t)).collect::<Vec<_>>()))
            @for (from, width, s) in shown {
                rect class={ "span " (if s.unknown { "l-unexplained" } else { layer_class(s.layer) }) }
                    x=(percent(from)) width=(percent(width)) y="4" height=(LINE - 8.0) {
                    title { (s.title) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(at: f64, length: f64) -> Stretch {
        Stretch {
            at,
            length,
            layer: Layer::Storage,
            unknown: false,
            title: "<disk>".into(),
        }
    }

    #[test]
    fn stretches_lie_where_they_were_and_what_cannot_be_seen_is_left_out() {
        let axis = Axis::up_to(1e6);
        let text = line(
            &axis,
            &[stretch(0.0, 5e5), stretch(5e5, 10.0), stretch(5e5, 5e5)],
        )
        .into_string();
        assert_eq!(text.matches("<rect").count(), 2, "{text}");
        assert!(text.contains("&lt;disk&gt;"));
        let many: Vec<Stretch> = (0..200).map(|i| stretch(f64::from(i) * 5e3, 5e3)).collect();
        assert_eq!(
            line(&axis, &many).into_string().matches("<rect").count(),
            MOST
        );
    }

    #[test]
    fn a_hostile_line_stays_in_its_cell() {
        for longest in [0.0, f64::NAN, f64::INFINITY, 1e300] {
            let text = line(
                &Axis::up_to(longest),
                &[stretch(f64::NAN, f64::INFINITY), stretch(-1e300, 1e300)],
            )
            .into_string();
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}
