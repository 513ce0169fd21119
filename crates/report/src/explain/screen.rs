//! The explanation on a terminal: the picture of where the time went, and the suspects.

use fingerpost_diagnose::threads::State;
use fingerpost_record::{Budget, Status};

use super::suspects::suspects_grid;
use super::{Explanation, clean, experiments, followed, headline, mapped_line, percent, service, time};
use crate::grid::{Align, Grid, Line};
use crate::style::{Style, Tone};
use crate::wrap;

/// Cells of the bar for the whole of the time.
pub(super) const BAR: usize = 40;
/// Parts below this share are in the sums, and not in the picture.
const SMALL: f64 = 0.001;

/// Explanations of steps for a terminal, one below the other; what all of them have alike is told once, above them.
pub fn render(explanations: &[Explanation], style: &Style) -> String {
    let steps = super::steps(explanations);
    let all = steps.all().map(|all| format!("{}\n", style.paint(Tone::Strong, &wrap::indented(&all, 2, style.width))));
    let each = explanations.iter().map(|e| render_one(e, &steps.name(&e.workload, &e.params), style));
    all.into_iter().chain(each).collect::<Vec<String>>().join("\n")
}

/// One explanation: the picture, who is accused, and the names of those who are not; with `wide`, what cleared them, too.
fn render_one(e: &Explanation, name: &str, style: &Style) -> String {
    if style.wide || e.workload == service::WORKLOAD {
        return render_whole(e, name, style);
    }
    let accused = e.findings.iter().filter(|f| f.status.accuses()).cloned().collect();
    let mut text = render_whole(&Explanation { findings: accused, ..e.clone() }, name, style);
    for status in [Status::Cleared, Status::NotJudged] {
        let of: Vec<&str> = e.findings.iter().filter(|f| f.status == status).map(|f| fingerpost_diagnose::label(&f.cause)).collect();
        if !of.is_empty() {
            let line = Line::Labelled(status.as_str().into(), clean(&of.join(", ")), Tone::Faint);
            text.push_str(&Grid { columns: Vec::new(), lines: vec![line] }.render(style));
        }
    }
    text
}

/// The explanation with the evidence of every suspect.
fn render_whole(e: &Explanation, name: &str, style: &Style) -> String {
    if e.workload == service::WORKLOAD {
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
        text.push_str(&suspects_grid(&e.findings, usize::MAX).render(style));
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
        let mut sentences = Grid { columns: Vec::new(), lines: vec![Line::Note(clean(&slow.sentence), Tone::Strong)] };
        let account = followed::account(paths, e.check.as_ref());
        sentences.lines.extend(e.mapped.iter().map(|s| Line::Note(mapped_line(s), Tone::Faint)));
        sentences.lines.extend(account.into_iter().map(|(s, warning)| Line::Note(s, if warning { Tone::Doubtful } else { Tone::Faint })));
        let states = if e.threads.is_empty() { Grid::default() } else { threads_grid(&e.threads) };
        let grids = [followed::classes(slow), sentences, followed::chain_grid(paths), followed::slowest_grid(paths), states];
        let shown: Vec<String> = grids.iter().filter(|grid| !grid.lines.is_empty()).map(|grid| grid.render(style)).collect();
        return shown.join("\n");
    }
    if e.budget.parts.is_empty() { threads_grid(&e.threads).render(style) } else { budget_grid(&e.budget).render(style) }
}

/// What threads did. It is no budget: they are nobody's requests.
pub(super) fn threads_grid(states: &[State]) -> Grid {
    let mut grid = Grid::titled([
        ("what the threads did", Align::Left, 0),
        ("layer", Align::Left, 2),
        ("time", Align::Right, 0),
        ("of their life", Align::Right, 0),
        ("", Align::Left, 3),
    ]);
    for s in states {
        grid.lines.push(Line::Cells(
            vec![clean(&s.state), s.layer.to_string(), time(s.seconds), percent(s.share), bar(0.0, s.share)],
            Tone::Plain,
        ));
    }
    grid
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
            clean(&part.component),
            part.layer.to_string(),
            time(part.seconds_per_transaction),
            percent(part.share),
            bar(start, part.share),
        ];
        grid.lines.push(Line::Cells(cells, Tone::Plain));
        start += part.share;
    }
    let small: f64 = budget.parts.iter().filter(|p| p.share < SMALL).map(|p| p.share).sum();
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
    let name = if budget.unexplained < 0.0 { "counted twice (parts overlap)" } else { "unexplained" };
    let tone = if budget.unexplained.abs() > 0.15 { Tone::Doubtful } else { Tone::Faint };
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

/// A bar that begins where the one above it ended, as the parts of a whole lie side by side.
pub(super) fn bar(start: f64, share: f64) -> String {
    let cell = |x: f64| (x.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    let (from, to) = (cell(start), cell(start + share.max(0.0)));
    let filled = (to - from).max(usize::from(share > 0.0 && from < BAR));
    format!("{}{}", " ".repeat(from), "█".repeat(filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_lie_side_by_side() {
        assert_eq!(bar(0.0, 0.5), "█".repeat(20));
        assert_eq!(bar(0.5, 0.25), format!("{}{}", " ".repeat(20), "█".repeat(10)));
        assert_eq!(bar(0.0, 0.001), "█", "what there is can be seen");
        assert_eq!(bar(1.0, 0.3).trim(), "");
        assert_eq!(bar(0.5, -0.2).trim(), "");
    }
}
