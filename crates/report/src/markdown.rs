//! Markdown, as issue trackers render it.

use crate::table::summary;
use crate::view::{Group, Row, Shared, View, outcome_name};
use crate::words::escape;

/// The whole run: what was found, the laboratories' tables, the rows.
pub fn render(view: &View, labs: &str) -> String {
    let mut text = format!("# {}\n\n", escape(&view.title()));
    view.answers
        .iter()
        .for_each(|answer| text.push_str(&format!("**{}**\n\n", escape(answer))));
    view.id_beside_title()
        .into_iter()
        .for_each(|id| text.push_str(&format!("- **Run**: {}\n", escape(id))));
    let reasons = view.shared_reasons();
    let facts = view
        .headline
        .iter()
        .map(|fact| (fact.name, fact.text.clone()));
    let doubts = view
        .doubts
        .iter()
        .cloned()
        .chain(reasons.iter().map(Shared::sentence))
        .map(|doubt| ("Doubt", doubt));
    facts
        .chain(doubts)
        .for_each(|(name, told)| text.push_str(&format!("- **{name}**: {}\n", escape(&told))));
    text.push_str(labs);
    for group in &view.groups {
        let shared = group.shared_params();
        text.push_str(&format!("\n## {}\n\n", escape(&group.table.title)));
        if !shared.is_empty() {
            text.push_str(&format!("All rows: {}\n\n", escape(&shared.join(" "))));
        }
        text.push_str(&group_table(group, &shared, &reasons));
    }
    for w in &view.watched {
        text.push_str(&format!("\n## {}\n\n", escape(&w.title)));
        w.rows.iter().for_each(|(name, figure)| {
            text.push_str(&format!("- {}: {}\n", escape(name), escape(figure)))
        });
    }
    text.push_str(&format!("\n{}.\n", summary(view)));
    if let Some(command) = &view.command {
        text.push_str(&format!("\nMeasured again by:\n\n    {command}\n"));
    }
    text
}

fn group_table(group: &Group, shared: &[String], reasons: &[Shared]) -> String {
    let mut text = String::new();
    if group.shown().next().is_some() {
        text.push_str("| probe | parameters | value | interval | p50 | p90 | p99 | remarks |\n");
        text.push_str("| --- | --- | ---: | --- | ---: | ---: | ---: | --- |\n");
        group
            .shown()
            .for_each(|row| text.push_str(&row_line(row, shared, reasons)));
    }
    let skipped = group.skipped();
    if !text.is_empty() && !skipped.is_empty() {
        text.push('\n');
    }
    for s in skipped {
        text.push_str(&format!(
            "- skipped: {} ({})\n",
            escape(&s.names.join(", ")),
            escape(&s.reason)
        ));
    }
    text
}

/// A row, without the parameters that the title has. Of a reason that stands above, once for all of its rows, the
/// outcome alone is told.
fn row_line(row: &Row, shared: &[String], reasons: &[Shared]) -> String {
    let figures = match &row.figure {
        Some(f) => {
            let [p50, p90, p99] = row.percentile_words(f);
            [
                format!("{} {}", f.value(), f.symbol())
                    .trim_end()
                    .to_owned(),
                f.interval(),
                p50,
                p90,
                p99,
            ]
        }
        None => [const { String::new() }; 5],
    };
    let outcome = outcome_name(row.outcome);
    let remark = match &row.reason {
        Some(_) if reasons.iter().any(|reason| reason.has(row)) => outcome.to_owned(),
        Some(reason) => format!("{outcome}: {reason}"),
        None => String::new(),
    };
    let cells: Vec<String> = [row.probe.clone(), row.params_without(shared)]
        .into_iter()
        .chain(figures)
        .chain([remark])
        .map(|c| escape(&c))
        .collect();
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Outcome, Run, fixture};

    use super::*;

    /// Rows of one probe, of which the clients differ and the engine does not.
    fn rows(count: i64, reason: Option<&str>) -> Run {
        let mut run = fixture::run();
        let row = run
            .measurements
            .iter()
            .find(|m| m.estimate.is_some())
            .expect("a row with a figure")
            .clone();
        run.measurements = (1..=count)
            .map(|clients| {
                let mut row = row.clone();
                row.params = fingerpost_record::Params::new()
                    .with("clients", clients)
                    .with("engine", "redis");
                if let Some(reason) = reason {
                    (row.outcome, row.reason) = (Outcome::Untrusted, Some(reason.to_owned()));
                }
                row
            })
            .collect();
        run
    }

    #[test]
    fn what_all_rows_share_is_told_once() {
        let text = render(&View::of(&rows(3, Some("only 2 processes")), &[]), "");
        assert_eq!(
            text.matches("engine=redis").count(),
            1 + text.matches("--set engine=redis").count(),
            "{text}"
        );
        assert!(
            text.contains("\nAll rows: engine=redis\n") && text.contains(" | clients=2 | "),
            "{text}"
        );
        assert_eq!(text.matches("only 2 processes").count(), 1, "{text}");
        assert!(
            text.contains("- **Doubt**: 3 rows are untrusted: only 2 processes")
                && text.contains("| untrusted |"),
            "{text}"
        );
    }

    #[test]
    fn one_row_keeps_its_parameters_and_its_reason() {
        let text = render(&View::of(&rows(1, Some("only 2 processes")), &[]), "");
        assert!(
            text.contains("| clients=1 engine=redis |")
                && text.contains("| untrusted: only 2 processes |"),
            "{text}"
        );
    }
}
