//! The explanation on a terminal: the picture of where the time went, and the suspects.

use fingerpost_record::{Budget, Status};

use super::explanation::{Explanation, WORKLOAD, headline, mapped_line, steps};
use super::pieces::{bar, suspects_grid, threads_grid};
use super::{experiments, followed, service};
use crate::grid::{Align, Grid, Line};
use crate::style::{Style, Tone};
use crate::wording::of_slowest;
use crate::words::{self, clean, percent, time};
use crate::wrap;

/// Parts below this share are in the sums, and not in the picture.
const SMALL: f64 = 0.001;

/// Explanations of steps for a terminal, one below the other; what all of them have alike is told once, above them.
pub fn render(explanations: &[Explanation], style: &Style) -> String {
    let steps = steps(explanations);
    let all = steps.all().map(|all| {
        format!(
            "{}\n",
            style.paint(Tone::Strong, &wrap::indented(&all, 2, style.width))
        )
    });
    let each = explanations
        .iter()
        .map(|e| render_one(e, &steps.name(&e.workload, &e.params), style));
    all.into_iter()
        .chain(each)
        .collect::<Vec<String>>()
        .join("\n")
}

/// One explanation: the picture, who is accused, and the names of those who are not; with `wide`, what ruled them out,
/// too.
fn render_one(e: &Explanation, name: &str, style: &Style) -> String {
    if style.wide || e.workload == WORKLOAD {
        return render_whole(e, name, style);
    }
    let accused = e
        .findings
        .iter()
        .filter(|f| f.status.accuses())
        .cloned()
        .collect();
    let mut text = render_whole(
        &Explanation {
            findings: accused,
            ..e.clone()
        },
        name,
        style,
    );
    for status in [Status::RuledOut, Status::NotObserved] {
        let of: Vec<&str> = e
            .findings
            .iter()
            .filter(|f| f.status == status)
            .map(|f| fingerpost_diagnose::label(&f.cause))
            .collect();
        if !of.is_empty() {
            let line = Line::Labelled(status.as_str().into(), clean(&of.join(", ")), Tone::Faint);
            text.push_str(
                &Grid {
                    columns: Vec::new(),
                    lines: vec![line],
                }
                .render(style),
            );
        }
    }
    text
}

/// The explanation with the evidence of every suspect.
fn render_whole(e: &Explanation, name: &str, style: &Style) -> String {
    if e.workload == WORKLOAD {
        return service::screen(e, style);
    }
    let mut text = String::new();
    let sentences = [(Tone::Strong, name.to_owned()), (Tone::Faint, headline(e))];
    for (tone, sentence) in sentences {
        text.push_str(&style.paint(tone, &wrap::indented(sentence.trim(), 2, style.width)));
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&picture(e, style));
    if !e.findings.is_empty() {
        text.push('\n');
        text.push_str(&suspects_grid(&e.findings, e.whose(), usize::MAX).render(style));
    }
    if !e.experiments.is_empty() {
        text.push('\n');
        text.push_str(&experiments::grid(&e.experiments).render(style));
    }
    text
}

/// Where the time went: of followed requests by class and chain, of a stored budget, or of threads.
fn picture(e: &Explanation, style: &Style) -> String {
    if let (Some(slow), Some(paths)) = (&e.slow, &e.paths) {
        let mut sentences = Grid {
            columns: Vec::new(),
            lines: vec![Line::Note(clean(&of_slowest(slow)), Tone::Strong)],
        };
        let account = followed::account(paths, e.check.as_ref());
        sentences.lines.extend(
            e.mapped
                .iter()
                .map(|s| Line::Note(mapped_line(s), Tone::Faint)),
        );
        sentences.lines.extend(
            account.into_iter().map(|(s, warning)| {
                Line::Note(s, if warning { Tone::Doubtful } else { Tone::Faint })
            }),
        );
        let states = if e.threads.is_empty() {
            Grid::default()
        } else {
            threads_grid(&e.threads)
        };
        let grids = [
            followed::classes(slow),
            sentences,
            followed::chain_grid(paths),
            followed::slowest_grid(paths),
            states,
        ];
        let shown: Vec<String> = grids
            .iter()
            .filter(|grid| !grid.lines.is_empty())
            .map(|grid| grid.render(style))
            .collect();
        return shown.join("\n");
    }
    if e.budget.parts.is_empty() {
        threads_grid(&e.threads).render(style)
    } else {
        budget_grid(&e.budget).render(style)
    }
}

fn budget_grid(budget: &Budget) -> Grid {
    let mut grid = Grid::titled([
        ("where the time went", Align::Left, 0),
        ("layer", Align::Left, 2),
        ("time", Align::Right, 0),
        ("share", Align::Right, 0),
        ("", Align::Left, 3),
    ]);
    let mut start = 0.0;
    for part in budget.parts.iter().filter(|p| p.share >= SMALL) {
        let cells = vec![
            words::part(&part.component),
            part.layer.to_string(),
            time(part.seconds_per_transaction),
            percent(part.share),
            bar(start, part.share),
        ];
        grid.lines.push(Line::Cells(cells, Tone::Plain));
        start += part.share;
    }
    let small: f64 = budget
        .parts
        .iter()
        .filter(|p| p.share < SMALL)
        .map(|p| p.share)
        .sum();
    if small > 0.0 {
        let cells = vec![
            "parts too small to draw".into(),
            String::new(),
            time(small * budget.seconds_per_transaction),
            percent(small),
            String::new(),
        ];
        grid.lines.push(Line::Cells(cells, Tone::Faint));
    }
    let name = if budget.unexplained < 0.0 {
        "counted twice (parts overlap)"
    } else {
        "unexplained"
    };
    let tone = if budget.unexplained.abs() > 0.15 {
        Tone::Doubtful
    } else {
        Tone::Faint
    };
    let rest = vec![
        name.into(),
        String::new(),
        time(budget.unexplained * budget.seconds_per_transaction),
        percent(budget.unexplained),
        bar(start, budget.unexplained),
    ];
    grid.lines.push(Line::Cells(rest, tone));
    grid
}
