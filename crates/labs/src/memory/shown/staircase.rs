//! The staircase: what a load takes by the size of the range, and where the levels end.

use crate::memory::analysis::{Cache, Curve, Memory};
use fingerpost_record::{Estimate, Unit};
use maud::{Markup, html};

use fingerpost_report::document::{Cell, Chart, Column, Row, Table};
use fingerpost_report::style::Tone;
use fingerpost_report::svg::{Axis, anchor, percent, tick_label};
use fingerpost_report::words::clean;

use super::{between, name_of, size};

/// Columns of the longest bar.
const BAR: f64 = 40.0;
/// Height of the plot, of the text below, and the room for the scale at its left in per cent.
const PLOT: f64 = 260.0;
const BELOW: f64 = 40.0;
/// Height of a line of text: each level's end has its own, since levels may end close to each other.
const LINE: f64 = 14.0;

/// The curves, and the levels that were read off them.
pub struct Staircase {
    first: Curve,
    second: Option<Curve>,
    levels: Vec<Cache>,
}

impl Staircase {
    /// Of what was measured; nothing without a curve.
    pub fn of(memory: &Memory) -> Option<Staircase> {
        Some(Staircase {
            first: memory.curves.first()?.clone(),
            second: memory.curves.get(1).cloned(),
            levels: memory.levels.clone(),
        })
    }

    fn curves(&self) -> impl Iterator<Item = &Curve> {
        [&self.first].into_iter().chain(&self.second)
    }
}

impl Chart for Staircase {
    fn title(&self) -> &str {
        "Load latency by size"
    }

    /// A bar for each size; a mark where a level ends.
    fn table(&self) -> Option<Table> {
        let all = self.first.points.iter().map(|(_, e)| e.value);
        let all = all.filter(|v| v.is_finite() && *v > 0.0);
        let (low, high) = all.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        let row = |(bytes, estimate): &(u64, Estimate)| {
            let share = ((estimate.value / low).ln() / (high / low).ln()).clamp(0.0, 1.0);
            // The lowest level has a bar too.
            let length = if share.is_finite() {
                1.0 + share * (BAR - 1.0)
            } else {
                1.0
            };
            let second = self.second.iter().flat_map(|c| &c.points);
            let other = second
                .filter(|(size, _)| size == bytes)
                .map(|(_, e)| ns(e.value))
                .next();
            let ends = |cache: &Cache| cache.level.passed.is_some() && cache.level.fits == *bytes;
            let end = self.levels.iter().position(ends);
            let mark = end.map_or(String::new(), |i| {
                format!(" ← {} ends", name_of(i, &self.levels[i]))
            });
            let bar = format!("{}{mark}", "█".repeat(length.round() as usize));
            let cells = [
                size(*bytes),
                ns(estimate.value),
                other.unwrap_or_default(),
                bar,
            ];
            Row::new(cells.map(Cell::from), Tone::Plain)
        };
        let pages = self.curves().map(|curve| Column::figures(&curve.pages));
        let mut columns: Vec<Column> = [Column::figures("size")].into_iter().chain(pages).collect();
        columns.resize(3, Column::figures(""));
        columns.push(Column::words(""));
        let rows = self.first.points.iter().map(row);
        Some(
            Table::new(columns)
                .caption("Nanoseconds of a load by the size of the range; bars are logarithmic")
                .with(rows),
        )
    }

    fn picture(&self) -> Markup {
        let points = || self.curves().flat_map(|c| &c.points);
        let x = Axis::over(points().map(|(bytes, _)| *bytes as f64));
        let y = Axis::over(points().map(|(_, e)| e.value).chain([1.0, 100.0]));
        let down = |value: f64| PLOT - y.place(value) / 100.0 * PLOT;
        let across = |bytes: u64| format!("{:.2}%", x.place(bytes as f64));
        let spoken: Vec<String> = self.curves().map(spoken).collect();
        let ends: Vec<(usize, &Cache, u64)> = self
            .levels
            .iter()
            .enumerate()
            .filter_map(|(i, c)| Some((i, c, c.level.passed?)))
            .collect();
        html! {
            figure {
                figcaption {
                    "Nanoseconds of a load by the size of the range, both logarithmic: solid in "
                    (clean(&self.first.pages))
                    " pages, dashed in small ones."
                }
                svg class="chart" width="100%" height=(PLOT + BELOW + LINE * ends.len() as f64) role="img"
                    xmlns="http://www.w3.org/2000/svg" {
                    title { (self.title()) }
                    desc { (spoken.join(". ")) }
                    @for tick in y.ticks() {
                        line class="rule" x1="0" x2="100%" y1=(down(tick)) y2=(down(tick)) {}
                        text class="tick" x="0" y=(down(tick) - 3.0) { (tick_label(Unit::Nanoseconds, tick)) }
                    }
                    @let named = |bytes: u64| bytes.is_power_of_two() && bytes.trailing_zeros().is_multiple_of(4);
                    @for (bytes, _) in self.first.points.iter().filter(|(bytes, _)| named(*bytes)) {
                        text class="tick" x=(across(*bytes)) y=(PLOT + 14.0) text-anchor="middle" { (size(*bytes)) }
                    }
                    @for (line, (i, cache, passed)) in ends.iter().enumerate() {
                        @let (from, to) = (x.place(cache.level.fits as f64), x.place(*passed as f64));
                        rect class="band" x=(percent(from)) width=(percent((to - from).max(0.2))) y="0" height=(PLOT) {}
                        text class="knee" x=(percent(from)) y="12" text-anchor="end" { (name_of(*i, cache)) }
                        text class="tick" x=(percent(from)) y=(PLOT + BELOW - 10.0 + LINE * line as f64)
                            text-anchor=(anchor(from)) {
                            (name_of(*i, cache)) " ends at " (between(cache.level.fits, *passed))
                        }
                    }
                    @for (i, curve) in self.curves().enumerate() {
                        @for pair in curve.points.windows(2) {
                            line class=(if i == 0 { "curve" } else { "curve second" }) x1=(across(pair[0].0))
                                y1=(down(pair[0].1.value)) x2=(across(pair[1].0)) y2=(down(pair[1].1.value)) {}
                        }
                    }
                }
            }
        }
    }
}

fn ns(value: f64) -> String {
    format!("{value:.*}", if value < 100.0 { 2 } else { 1 })
}

fn spoken(curve: &Curve) -> String {
    let point = |(bytes, e): &(u64, Estimate)| format!("{}: {:.2} ns", size(*bytes), e.value);
    let points: Vec<String> = curve.points.iter().map(point).collect();
    format!("In {} pages {}", clean(&curve.pages), points.join(", "))
}
