//! A picture of figures: drawn on a page, and a table or a line of bars where there is only text.

use maud::Markup;

use super::table::{Cell, Column, Row, Table};
use crate::style::Tone;
use crate::svg::lines;

/// What a format needs of a chart.
pub trait Chart {
    /// What it shows; empty where the title above it says so.
    fn title(&self) -> &str;
    /// The picture.
    fn picture(&self) -> Markup;
    /// The same for a format of text alone; nothing where a table beside it has the figures.
    fn table(&self) -> Option<Table>;
}

/// Lines over steps.
pub struct Lines {
    /// What is drawn.
    pub chart: lines::Chart,
    /// Whether a table beside it has all of its figures.
    pub has_table: bool,
}

/// The heights that a value may have in a line of text.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Chart for Lines {
    fn title(&self) -> &str {
        &self.chart.title
    }

    fn picture(&self) -> Markup {
        self.chart.draw()
    }

    /// A line for each series: its course as bars, and its first and last figure.
    fn table(&self) -> Option<Table> {
        if self.has_table {
            return None;
        }
        let of = &self.chart;
        let values = || of.series.iter().flat_map(|s| &s.points).map(|p| p.value);
        let highest = values().fold(0.0, f64::max);
        let at = |point: Option<&lines::Point>| {
            point.map_or_else(String::new, |p| of.unit.format(p.value))
        };
        let row = |series: &lines::Series| {
            let cells = [
                series.name.clone(),
                course(series, of.steps.len(), highest),
                at(series.points.first()),
                at(series.points.last()),
            ];
            Row::new(cells.map(Cell::from), Tone::Plain)
        };
        let end = |step: Option<&String>| {
            let step = step.map_or("", String::as_str);
            Column::figures(format!("{} {step}", of.across))
        };
        let columns = [
            Column::words(""),
            Column::words(&of.up),
            end(of.steps.first()),
            end(of.steps.last()),
        ];
        let rows = of.series.iter().filter(|s| !s.points.is_empty()).map(row);
        Some(Table::new(columns).caption(&of.title).with(rows))
    }
}

/// A series as a bar for each step; a blank where it has no point.
fn course(series: &lines::Series, steps: usize, highest: f64) -> String {
    let bar = |step: usize| {
        let point = series.points.iter().find(|p| p.step == step);
        point.map_or(' ', |p| {
            let share = (p.value / highest).clamp(0.0, 1.0);
            // Without a highest value there is no share, and no height.
            let height = (share * BARS.len() as f64).ceil() as usize;
            BARS[height.saturating_sub(1).min(BARS.len() - 1)]
        })
    };
    (0..steps).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Unit;

    use super::*;

    fn chart(values: &[f64]) -> Lines {
        let point = |(step, value): (usize, &f64)| lines::Point {
            step,
            value: *value,
            low: *value,
            high: *value,
        };
        let series = lines::Series {
            name: "lmdb".into(),
            points: values.iter().enumerate().map(point).collect(),
        };
        let chart = lines::Chart {
            title: "A course".into(),
            across: "round".into(),
            steps: (1..=values.len()).map(|n| n.to_string()).collect(),
            up: "ratio".into(),
            unit: Unit::Count,
            from_zero: true,
            kind: lines::Steps::Numbers,
            series: vec![series],
        };
        Lines {
            chart,
            has_table: false,
        }
    }

    #[test]
    fn a_course_is_a_bar_for_each_step_with_its_ends() {
        let table = chart(&[1.0, 2.0, 4.0, 8.0]).table().unwrap();
        let plain = table.plain();
        assert_eq!(plain.groups[0][0], ["lmdb", "▁▂▄█", "1.000", "8.000"]);
        let heads: Vec<&str> = plain
            .heads
            .iter()
            .map(|(title, _)| title.as_str())
            .collect();
        assert_eq!(heads[1..], ["ratio", "round 1", "round 4"]);
        for odd in [[0.0, 0.0], [-1.0, 1.0], [f64::NAN, f64::INFINITY]] {
            assert_eq!(chart(&odd).table().unwrap().rows().count(), 1);
        }
    }

    #[test]
    fn a_chart_whose_figures_stand_beside_it_is_for_a_page_alone() {
        let chart = Lines {
            has_table: true,
            ..chart(&[1.0, 2.0])
        };
        assert!(chart.table().is_none() && chart.picture().into_string().contains("<svg"));
    }
}
