//! A line chart: values with intervals over steps that are spaced evenly (numbers of clients, sizes, runs).

use fingerpost_record::Unit;
use maud::{Markup, html};

use super::{Axis, anchor, moments, percent, tick_label};

/// Height of the plot, and of the space for the labels below it.
const PLOT: f64 = 240.0;
const BELOW: f64 = 40.0;
/// Space above the plot, for the label of the highest line of the grid.
const ABOVE: f64 = 18.0;
/// Where the first and the last step lie, in per cent of the width.
const FROM: f64 = 14.0;
/// The same where marks stand alone: one of them must not lie on a label of the grid where a phone is narrow.
const FROM_ALONE: f64 = 23.0;
const TO: f64 = 96.0;
/// Letters of all labels that a phone has room for in one line.
const PHONE: usize = 32;
/// The most labels along the steps.
const LABELS: usize = 8;

/// Distance of two series' marks of one step, in per cent of the width.
const OFFSET: f64 = 1.2;
/// A step's name of more letters is long.
const SHORT: usize = 3;
/// Height of a line of steps' names.
const LINE: f64 = 13.0;

/// The shapes of the series' marks: they differ without colours too.
const SHAPES: [&str; 6] = [
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z",
    "M-4-4H4V4H-4Z",
    "M0-5L5 4H-5Z",
    "M0-5.5L5.5 0L0 5.5L-5.5 0Z",
    "M0 5L5-4H-5Z",
    "M-5-1.5H-1.5V-5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5Z",
];

/// A point of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Which step, an index into [`Chart::steps`].
    pub step: usize,
    /// The value.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// A line of the chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its points, by step.
    pub points: Vec<Point>,
}

/// What a chart's steps are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// Numbers that grow: lines lead from one to the next.
    Numbers,
    /// Things of one kind in no order (applications, compilers): their marks stand alone.
    Things,
    /// Moments, as `2026-01-02 03:04:05`: lines lead from one to the next.
    Moments,
}

/// What is drawn. Texts are clean; they are escaped here.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// What the steps are: `clients`.
    pub across: String,
    /// The steps' labels.
    pub steps: Vec<String>,
    /// What the values are: `queries a second`.
    pub up: String,
    /// Their unit.
    pub unit: Unit,
    /// Whether the values' axis begins at zero; else at the values, because their changes matter.
    pub from_zero: bool,
    /// What the steps are.
    pub kind: Steps,
    /// The lines.
    pub series: Vec<Series>,
}

impl Chart {
    fn axis(&self) -> Axis {
        let values = || {
            self.series
                .iter()
                .flat_map(|s| &s.points)
                .flat_map(|p| [p.low, p.value, p.high])
                .filter(|v| v.is_finite())
        };
        if self.from_zero {
            return Axis::over(values());
        }
        let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(v), h.max(v))
        });
        if low > high {
            return Axis::over([]);
        }
        // Noise of a per mille must not look like a mountain: at least a tenth of the value is shown.
        let reach = ((high - low) * 0.6)
            .max(high.abs() * 0.05)
            .max(f64::MIN_POSITIVE);
        let middle = low / 2.0 + high / 2.0;
        Axis::between(middle - reach, middle + reach)
    }

    fn across(&self, step: usize) -> f64 {
        let from = if self.joined() { FROM } else { FROM_ALONE };
        match self.steps.len() {
            0 | 1 => (from + TO) / 2.0,
            n => from + (TO - from) * step as f64 / (n - 1) as f64,
        }
    }

    fn spoken(&self) -> String {
        let point = |p: &Point| {
            format!(
                "{} at {}",
                self.unit.format(p.value),
                self.steps.get(p.step).map_or("", String::as_str)
            )
        };
        let series = |s: &Series| {
            format!(
                "{}: {}",
                s.name,
                s.points
                    .iter()
                    .take(30)
                    .map(point)
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        };
        self.series
            .iter()
            .map(series)
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// How far a series' marks stand beside the step, in per cent of the width, where no line tells them apart.
    fn offset(&self, series: usize) -> f64 {
        let middle = (self.series.len().saturating_sub(1)) as f64 / 2.0;
        if self.joined() {
            0.0
        } else {
            (series as f64 - middle) * OFFSET
        }
    }

    fn joined(&self) -> bool {
        self.kind != Steps::Things
    }

    /// Whether the steps' names are so long that they must stand on two lines in turns.
    fn in_turns(&self) -> bool {
        !self.joined() && self.steps.iter().any(|step| step.chars().count() > SHORT)
    }

    /// What a second line of the steps' labels adds to the height.
    fn second_line(&self) -> f64 {
        if self.in_turns() || self.kind == Steps::Moments {
            LINE
        } else {
            0.0
        }
    }

    /// The picture with its title and its legend.
    pub fn draw(&self) -> Markup {
        let axis = self.axis().in_unit(self.unit);
        let down = |value: f64| ABOVE + PLOT * (1.0 - axis.share(value));
        let scale = if axis.is_log() { ", logarithmic" } else { "" };
        html! {
            figure class="lines" {
                figcaption {
                    strong { (self.title) }
                    " "
                    span class="axis-name" { (self.up) (scale) ", over " (self.across) }
                }
                @if self.series.len() > 1 { (self.legend()) }
                svg class="chart" width="100%" height=(ABOVE + PLOT + BELOW + self.second_line()) role="img"
                    xmlns="http://www.w3.org/2000/svg" {
                    title { (self.title) }
                    desc { (self.up) (scale) ", over " (self.across) ". " (self.spoken()) "." }
                    @for tick in axis.ticks() {
                        line class="rule" x1="0" x2="100%" y1=(round(down(tick))) y2=(round(down(tick))) {}
                        text class="tick" x="0" y=(round(down(tick) - 4.0)) { (tick_label(self.unit, tick)) }
                    }
                    @if self.kind == Steps::Moments { (self.moments()) } @else { (self.step_labels()) }
                    text class="tick" x="50%" y=(ABOVE + PLOT + 33.0 + self.second_line()) text-anchor="middle" {
                        (self.across)
                    }
                    @for (i, series) in self.series.iter().enumerate() { (self.line(i, series, &down)) }
                }
            }
        }
    }

    fn step_labels(&self) -> Markup {
        let turns = self.in_turns();
        let every = if turns {
            self.steps.len().div_ceil(2 * LABELS)
        } else {
            self.steps.len().div_ceil(LABELS)
        }
        .max(1);
        let lower = |i: usize| {
            if turns && (i / every) % 2 == 1 {
                LINE
            } else {
                0.0
            }
        };
        // On a phone every second one is left out where all have no room.
        let letters: usize = self
            .steps
            .iter()
            .step_by(every)
            .map(|step| step.chars().count() + 1)
            .sum();
        let overlapping = !turns && letters > PHONE;
        html! {
            @for (i, label) in self.steps.iter().enumerate().filter(|(i, _)| i % every == 0) {
                @let x = self.across(i);
                @let between = overlapping && (self.steps.len() - 1 - i) / every % 2 == 1;
                text class=(if turns { "tick long" } else if between { "tick between" } else { "tick" })
                    x=(percent(x)) y=(ABOVE + PLOT + 16.0 + lower(i))
                    text-anchor=(if every > 1 { "middle" } else { anchor(x) }) {
                    (label)
                }
                // On a phone long names would stand over each other: their numbers, in the order of the table below,
                // take their place.
                @if turns {
                    text class="tick nth" x=(percent(x)) y=(ABOVE + PLOT + 16.0) text-anchor="middle" { (i + 1) }
                }
            }
        }
    }

    /// The time of day below steps that are moments, and below that the date where it changes.
    fn moments(&self) -> Markup {
        html! {
            @for label in moments::labels(&self.steps) {
                @let x = percent(self.across(label.step));
                text class="tick" x=(x) y=(ABOVE + PLOT + 16.0) text-anchor="middle" { (label.time) }
                @if let Some(date) = label.date {
                    text class="tick" x=(x) y=(ABOVE + PLOT + 16.0 + LINE) text-anchor="middle" { (date) }
                }
            }
        }
    }

    fn line(&self, index: usize, series: &Series, down: &dyn Fn(f64) -> f64) -> Markup {
        let x = |p: &Point| percent(self.across(p.step) + self.offset(index));
        html! {
            g class={ "series s" (index % SHAPES.len()) } {
                @for pair in series.points.windows(2).filter(|_| self.joined()) {
                    line class="link" x1=(x(&pair[0])) y1=(round(down(pair[0].value))) x2=(x(&pair[1]))
                        y2=(round(down(pair[1].value))) {}
                }
                @for p in &series.points {
                    @if p.low < p.high {
                        line class="whisker" x1=(x(p)) x2=(x(p)) y1=(round(down(p.low))) y2=(round(down(p.high))) {}
                    }
                    svg x=(x(p)) y=(round(down(p.value))) overflow="visible" {
                        path d=(SHAPES[index % SHAPES.len()]) {
                            title {
                                (series.name)
                                ", "
                                (self.steps.get(p.step).map_or("", String::as_str))
                                ": "
                                (self.unit.format(p.value))
                            }
                        }
                    }
                }
            }
        }
    }

    fn legend(&self) -> Markup {
        html! {
            ul class="legend" {
                @for (i, series) in self.series.iter().enumerate() {
                    li {
                        svg class={ "key series s" (i % SHAPES.len()) } width="14" height="14" aria-hidden="true"
                            xmlns="http://www.w3.org/2000/svg" {
                            svg x="7" y="7" overflow="visible" { path d=(SHAPES[i % SHAPES.len()]) {} }
                        }
                        (series.name)
                    }
                }
            }
        }
    }
}

/// A tenth of a pixel is enough.
fn round(pixels: f64) -> f64 {
    (pixels * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: &[f64], from_zero: bool) -> Chart {
        let points = values
            .iter()
            .enumerate()
            .map(|(step, &value)| Point {
                step,
                value,
                low: value * 0.9,
                high: value * 1.1,
            })
            .collect();
        Chart {
            title: "A <b>".into(),
            across: "clients".into(),
            steps: (1..=values.len()).map(|n| n.to_string()).collect(),
            up: "queries a second".into(),
            unit: Unit::PerSecond,
            from_zero,
            kind: Steps::Numbers,
            series: vec![Series {
                name: "x&y".into(),
                points,
            }],
        }
    }

    #[test]
    fn title_axes_units_and_values_are_in_words_too() {
        let text = chart(&[192.0, 274.0, 113.0], true).draw().into_string();
        for expected in [
            "<title>A &lt;b&gt;</title>",
            "queries a second, over clients",
            "x&amp;y: 192.0 /s at 1, 274.0 /s at 2",
            ">300 /s<",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }

    #[test]
    fn runs_of_one_day_are_told_apart_by_the_time_of_day() {
        let moments = [
            "2026-11-25 09:05:00",
            "2026-11-25 14:08:00",
            "2026-11-26 14:08:30",
        ]
        .map(String::from)
        .to_vec();
        let text = Chart {
            kind: Steps::Moments,
            steps: moments,
            ..chart(&[1.0, 2.0, 3.0], false)
        }
        .draw()
        .into_string();
        let labels = [">09:05<", ">2026-11-25<", ">14:08<", ">2026-11-26<"];
        assert_eq!(
            labels.map(|label| text.matches(label).count()),
            [1, 1, 2, 1],
            "{text}"
        );
    }

    #[test]
    fn small_changes_are_not_blown_up() {
        let axis = chart(&[100.0, 100.1], false).axis();
        assert!((axis.share(100.1) - axis.share(100.0)).abs() < 0.02);
    }

    #[test]
    fn any_values_make_a_picture() {
        for values in [
            &[][..],
            &[0.0],
            &[f64::MAX, 1.0],
            &[f64::NAN, 2.0],
            &[-1.0, 1.0],
        ] {
            for from_zero in [true, false] {
                let text = chart(values, from_zero).draw().into_string();
                assert!(
                    !text.contains("NaN%") && !text.contains("y1=\"NaN"),
                    "{values:?}: {text}"
                );
            }
        }
    }
}
