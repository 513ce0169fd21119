//! One step or command explained: the picture of its budget, and the suspects.

use fingerpost_compare::explain::{StepFigures, Totals, explain};
use fingerpost_record::{Budget, Finding, Observation, Params, Run, Status, Unit};
use serde::Serialize;

use crate::grid::{Align, Grid, Line};
use crate::style::{Style, Tone};

/// Everything that explains one step of a workload, or one command. Serialised as it stands, it is the JSON form.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The workload, or the command as it was given.
    pub workload: String,
    /// The step's parameters.
    pub params: Params,
    /// How it was seen, in a sentence.
    pub source: String,
    /// By how much tracing slowed the traced pass, where there was an untraced one, 0 to 1.
    pub gap: Option<f64>,
    /// Where the time went.
    pub budget: Budget,
    /// Guilty, suspected and cleared.
    pub findings: Vec<Finding>,
    /// What observers saw.
    pub observations: Vec<Observation>,
}

/// Every step of a run that observers watched, explained again from what they wrote into it.
pub fn of_run(run: &Run) -> Vec<Explanation> {
    let mut steps: Vec<Vec<&Observation>> = Vec::new();
    for o in &run.observations {
        match steps.iter_mut().find(|s| s[0].workload == o.workload && s[0].params == o.params) {
            Some(step) => step.push(o),
            None => steps.push(vec![o]),
        }
    }
    steps.into_iter().filter_map(of_step).collect()
}

fn of_step(observations: Vec<&Observation>) -> Option<Explanation> {
    let totals = Totals::of(observations.iter().copied());
    let figures = StepFigures::from_totals(&totals)?;
    let (mut budget, findings) = explain(&figures, &totals);
    let first = observations.first()?;
    budget.workload.clone_from(&first.workload);
    budget.params = first.params.clone();
    Some(Explanation {
        workload: first.workload.clone(),
        params: first.params.clone(),
        source: source(&observations),
        gap: figures.gap(),
        budget,
        findings,
        observations: observations.into_iter().cloned().collect(),
    })
}

/// How threads were seen.
pub fn source(observations: &[&Observation]) -> String {
    observations.iter().find(|o| o.observer == "threads").map_or("no observer of threads".to_owned(), |o| o.source.clone())
}

/// Of each server's steps the one with the most transactions under way, which speaks for it.
pub fn speaking(explanations: Vec<Explanation>) -> Vec<Explanation> {
    let key = |e: &Explanation| {
        let mut params = e.params.clone();
        ["clients", "connections"].iter().for_each(|by| drop(params.0.remove(*by)));
        (e.workload.clone(), params)
    };
    let asking = |e: &Explanation| e.params.int("clients").or(e.params.int("connections")).unwrap_or(0);
    let mut found: Vec<Explanation> = Vec::new();
    for e in explanations {
        match found.iter_mut().find(|known| key(known) == key(&e)) {
            Some(known) if asking(known) < asking(&e) => *known = e,
            Some(_) => {}
            None => found.push(e),
        }
    }
    found
}

/// The explanation for a terminal in short: the picture, who is accused, and the names of those who are not.
pub fn render_short(e: &Explanation, style: &Style) -> String {
    let (accused, cleared): (Vec<Finding>, Vec<Finding>) = e.findings.iter().cloned().partition(|f| f.status != Status::Cleared);
    let names: Vec<&str> = cleared.iter().map(|f| fingerpost_compare::explain::label(&f.cause)).collect();
    let mut text = render(&Explanation { findings: accused, ..e.clone() }, style);
    if !names.is_empty() {
        let grid = Grid { columns: Vec::new(), lines: vec![Line::Labelled("cleared".into(), clean(&names.join(", ")), Tone::Faint)] };
        text.push_str(&grid.render(style));
    }
    text
}

/// Cells of the bar for the whole of the time.
const BAR: usize = 40;
/// Parts below this share are in the sums, and not in the picture.
const SMALL: f64 = 0.001;

/// Text without control characters, so that a run file from elsewhere cannot steer the terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn time(seconds: f64) -> String {
    Unit::Nanoseconds.format(seconds * 1e9)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A bar that begins where the one above it ended, as the parts of a whole lie side by side.
fn bar(start: f64, share: f64) -> String {
    let cell = |x: f64| (x.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    let (from, to) = (cell(start), cell(start + share.max(0.0)));
    let filled = (to - from).max(usize::from(share > 0.0 && from < BAR));
    format!("{}{}", " ".repeat(from), "█".repeat(filled))
}

/// The explanation for a terminal.
pub fn render(e: &Explanation, style: &Style) -> String {
    let mut text = String::new();
    let title = format!("{} {}", clean(&e.workload), e.params);
    text.push_str(&style.paint(Tone::Strong, clean(&title).trim()));
    text.push('\n');
    text.push_str(&style.paint(Tone::Faint, &headline(e)));
    text.push_str("\n\n");
    text.push_str(&budget_grid(&e.budget).render(style));
    if !e.findings.is_empty() {
        text.push('\n');
        text.push_str(&suspects_grid(&e.findings).render(style));
    }
    text
}

fn headline(e: &Explanation) -> String {
    let whole = if e.budget.transactions == 1 {
        format!("{} of wall time", time(e.budget.seconds_per_transaction))
    } else {
        format!("{} per transaction over {} transactions", time(e.budget.seconds_per_transaction), e.budget.transactions)
    };
    let gap = match e.gap {
        Some(gap) => format!("; tracing cost {}", percent(gap)),
        None => String::new(),
    };
    let cost: f64 = e.observations.iter().map(|o| o.self_cost).sum();
    let lost: u64 = e.observations.iter().map(|o| o.lost).sum();
    let lost = if lost > 0 { format!(", {lost} events lost") } else { String::new() };
    format!("{whole}; seen by {}{gap}; observing took {} of CPU{lost}", clean(&e.source), time(cost))
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

fn word(status: Status) -> &'static str {
    match status {
        Status::Guilty => "guilty",
        Status::Suspected => "suspected",
        Status::Cleared => "cleared",
    }
}

fn tone(status: Status) -> Tone {
    match status {
        Status::Guilty => Tone::Bad,
        Status::Suspected => Tone::Doubtful,
        Status::Cleared => Tone::Faint,
    }
}

fn suspects_grid(findings: &[Finding]) -> Grid {
    let mut grid =
        Grid::titled([("suspect", Align::Left, 0), ("cause", Align::Left, 1), ("verdict", Align::Left, 0), ("share", Align::Right, 0)]);
    for f in findings {
        let label = fingerpost_compare::explain::label(&f.cause);
        let share = if f.status == Status::Cleared { String::new() } else { percent(f.share) };
        grid.lines.push(Line::Cells(vec![clean(label), clean(&f.cause), word(f.status).into(), share], tone(f.status)));
        grid.lines.extend(f.evidence.iter().map(|e| Line::Note(clean(e), Tone::Faint)));
    }
    grid
}

fn escape(text: &str) -> String {
    clean(text).replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('`', "\\`").replace('*', "\\*").replace('[', "\\[")
}

/// The explanation in Markdown.
pub fn markdown(e: &Explanation) -> String {
    let mut text = format!("## {}\n\n{}\n\n", escape(format!("{} {}", e.workload, e.params).trim()), escape(&headline(e)));
    text.push_str("| where the time went | layer | time | share |\n| --- | --- | ---: | ---: |\n");
    for p in &e.budget.parts {
        text.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            escape(&p.component),
            p.layer,
            time(p.seconds_per_transaction),
            percent(p.share)
        ));
    }
    let rest = e.budget.unexplained;
    text.push_str(&format!("| unexplained | | {} | {} |\n\n", time(rest * e.budget.seconds_per_transaction), percent(rest)));
    text.push_str("| suspect | cause | verdict | share | evidence |\n| --- | --- | --- | ---: | --- |\n");
    for f in &e.findings {
        let label = fingerpost_compare::explain::label(&f.cause);
        let evidence: Vec<String> = f.evidence.iter().map(|s| escape(s)).collect();
        let share = if f.status == Status::Cleared { String::new() } else { percent(f.share) };
        text.push_str(&format!("| {} | {} | {} | {share} | {} |\n", escape(label), escape(&f.cause), word(f.status), evidence.join("; ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Layer, Part};

    use super::*;

    fn explanation() -> Explanation {
        let part = |component: &str, share| Part {
            layer: Layer::Kernel,
            component: component.into(),
            seconds_per_transaction: share * 1e-3,
            share,
        };
        let finding = |cause: &str, status| Finding {
            cause: cause.into(),
            layer: Layer::Application,
            status,
            share: 0.6,
            evidence: vec!["60 % of | it".into()],
        };
        Explanation {
            workload: "database".into(),
            params: Params::new().with("clients", 50),
            source: "perf tracepoints".into(),
            gap: Some(0.02),
            budget: Budget {
                workload: "database".into(),
                params: Params::new(),
                transactions: 1000,
                seconds_per_transaction: 1e-3,
                parts: vec![part("waiting for a lock", 0.6), part("kernel: \x1b[31mread", 0.3), part("tiny", 0.0004)],
                unexplained: 0.0996,
            },
            findings: vec![finding("app.lock", Status::Guilty), finding("host.steal", Status::Cleared)],
            observations: Vec::new(),
        }
    }

    #[test]
    fn the_picture_shows_every_part_and_the_rest() {
        let text = render(&explanation(), &Style::default());
        assert!(text.contains("1.000 ms per transaction over 1000 transactions"), "{text}");
        assert!(text.contains("waiting for a lock") && text.contains("60.0 %") && text.contains("tracing cost 2.0 %"));
        assert!(text.contains("unexplained") && text.contains("10.0 %"));
        assert!(text.contains("locks") && text.contains("guilty") && text.contains("cleared"));
        assert!(!text.contains('\x1b'), "a run file cannot steer the terminal");
    }

    #[test]
    fn in_short_only_the_accused_have_figures() {
        let text = render_short(&explanation(), &Style::default());
        assert!(text.contains("guilty") && text.contains("60 % of | it") && text.contains("cleared  host steal"), "{text}");
        assert_eq!(text.matches("60 % of | it").count(), 1, "the cleared are names");
    }

    #[test]
    fn the_step_with_the_most_clients_speaks_for_its_server() {
        let step = |workload: &str, mix: &str, clients: i64| Explanation {
            workload: workload.into(),
            params: Params::new().with("mix", mix).with("clients", clients),
            ..explanation()
        };
        let all =
            vec![step("database", "read", 1), step("database", "read", 50), step("database", "read", 2), step("database", "write", 5)];
        let found: Vec<String> = speaking(all).iter().map(|e| e.params.to_string()).collect();
        assert_eq!(found, ["clients=50 mix=read", "clients=5 mix=write"]);
    }

    #[test]
    fn a_run_is_taken_apart_by_step_and_what_was_not_watched_is_left_out() {
        let observation = |clients: i64, observer: &str, totals: &[(&str, f64)]| Observation {
            workload: "database".into(),
            params: Params::new().with("clients", clients),
            observer: observer.into(),
            source: "made up".into(),
            series: Vec::new(),
            totals: totals.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
            self_cost: 0.0,
            lost: 0,
        };
        let step = [("step.transactions", 10.0), ("step.elapsed.seconds", 1.0), ("step.clients", 1.0)];
        let threads = [("server.threads", 1.0), ("server.cpu.seconds", 0.75), ("server.thread_user.seconds", 0.75)];
        let observations = vec![
            observation(1, "client", &[]),
            observation(1, "step", &step),
            observation(5, "client", &[]),
            observation(1, "threads", &threads),
        ];
        let found = of_run(&Run { observations, ..Run::default() });
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].source.as_str(), found[0].observations.len()), ("made up", 3));
        assert!((found[0].budget.unexplained - 0.25).abs() < 1e-9);
        assert!(of_run(&Run::default()).is_empty());
    }

    #[test]
    fn bars_lie_side_by_side() {
        assert_eq!(bar(0.0, 0.5), "█".repeat(20));
        assert_eq!(bar(0.5, 0.25), format!("{}{}", " ".repeat(20), "█".repeat(10)));
        assert_eq!(bar(0.0, 0.001), "█", "what there is can be seen");
        assert_eq!(bar(1.0, 0.3).trim(), "");
        assert_eq!(bar(0.5, -0.2).trim(), "");
    }

    #[test]
    fn markdown_cells_cannot_break_out_of_the_table() {
        let text = markdown(&explanation());
        assert!(text.contains("60 % of \\| it"), "{text}");
        assert!(text.contains("| unexplained | | 99.60 µs | 10.0 % |"), "{text}");
    }
}
