//! The trials and their figures as a table for a person.

use std::io::{self, Write};

use fingerpost_labs::prove::servers::{Row, Score, Share};
use fingerpost_report::Style;
use fingerpost_report::grid::{Align, Grid, Line};
use fingerpost_report::style::Tone;

use super::super::table::{named, share, tone, word};
use super::Document;

/// Writes a row for each trial, then the figures over all and over each list.
pub fn write(out: &mut dyn Write, document: &Document, style: &Style) -> io::Result<()> {
    let mut grid = Grid::titled([
        ("", Align::Right, 3),
        ("server", Align::Left, 1),
        ("planted", Align::Left, 0),
        ("× slower", Align::Right, 0),
        ("named first, second", Align::Left, 0),
        ("share", Align::Right, 2),
        ("", Align::Left, 0),
    ]);
    for row in &document.trials {
        grid.lines.push(Line::Cells(cells(row), tone(row.result)));
        grid.lines.extend(row.reason.as_ref().map(|why| Line::Note(why.clone(), tone(row.result))));
    }
    let sets = [("All trials", &document.score), ("Open to tuning", &document.plants), ("Kept apart", &document.apart)];
    for (title, score) in sets {
        grid.lines.push(Line::Blank);
        grid.lines.push(Line::Heading(title.to_owned()));
        lines(score, &mut grid);
    }
    grid.lines.push(Line::Blank);
    grid.lines.push(Line::Labelled("Took".into(), format!("{:.0} s", document.seconds), Tone::Plain));
    out.write_all(grid.render(style).as_bytes())
}

fn lines(score: &Score, grid: &mut Grid) {
    let mut say = |label: &str, text: String| grid.lines.push(Line::Labelled(label.to_owned(), text, Tone::Plain));
    say("Right cause first", shown(&score.first));
    say("Right cause among the first two", shown(&score.first_two));
    say("Right layer first", shown(&score.layer));
    say("Both of two causes", shown(&score.both));
    say("Accused in controls", shown(&score.false_accusations));
    say("No cause named, where the effect was small or not resolved", shown(&score.nobody));
    for bin in score.calibration.iter().filter(|b| b.right.all > 0) {
        say(&format!("Right where {:.0} to {:.0} % was claimed", bin.from * 100.0, bin.to * 100.0), shown(&bin.right));
    }
    say("Skipped, failed", format!("{}, {}", score.not_tried[0], score.not_tried[1]));
}

fn shown(share: &Share) -> String {
    if share.all == 0 {
        return "none".to_owned();
    }
    let percent = |n: f64| n * 100.0;
    let middle = percent(share.of as f64 / share.all as f64);
    format!("{} of {} ({middle:.0} %, {:.0} to {:.0})", share.of, share.all, percent(share.low), percent(share.high))
}

fn cells(row: &Row) -> Vec<String> {
    vec![
        row.outline.number.to_string(),
        row.outline.engine.name().to_owned(),
        row.outline.name(),
        row.effect.map_or(String::new(), |e| format!("{:.2} ({:.2} to {:.2})", e.value, e.low, e.high)),
        if row.tried() { named(&row.accused, 2) } else { String::new() },
        share(&row.accused),
        word(row.result).to_owned(),
    ]
}
