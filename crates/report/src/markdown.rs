//! Markdown, as issue trackers render it.

use crate::table::summary;
use crate::view::{Group, Row, View, outcome_name};
use crate::words::escape;

/// The whole run: what was found, the laboratories' tables, the rows.
pub fn render(view: &View, labs: &str) -> String {
    let mut text = format!("# {}\n\n", escape(&view.title()));
    view.answers.iter().for_each(|answer| text.push_str(&format!("**{}**\n\n", escape(answer))));
    view.id_beside_title().into_iter().for_each(|id| text.push_str(&format!("- **Run**: {}\n", escape(id))));
    for fact in &view.headline {
        text.push_str(&format!("- **{}**: {}\n", fact.name, escape(&fact.text)));
    }
    for doubt in &view.doubts {
        text.push_str(&format!("- **Doubt**: {}\n", escape(doubt)));
    }
    text.push_str(labs);
    for group in &view.groups {
        text.push_str(&format!("\n## {}\n\n", escape(group.title)));
        text.push_str(&group_table(group));
    }
    for w in &view.watched {
        text.push_str(&format!("\n## {}\n\n", escape(&w.title)));
        w.rows.iter().for_each(|(name, figure)| text.push_str(&format!("- {}: {}\n", escape(name), escape(figure))));
    }
    text.push_str(&format!("\n{}.\n", summary(view)));
    if let Some(command) = &view.command {
        text.push_str(&format!("\nMeasured again by:\n\n    {command}\n"));
    }
    text
}

fn group_table(group: &Group) -> String {
    let mut text = String::new();
    if group.shown().next().is_some() {
        text.push_str("| probe | parameters | value | interval | p50 | p90 | p99 | remarks |\n");
        text.push_str("| --- | --- | ---: | --- | ---: | ---: | ---: | --- |\n");
        group.shown().for_each(|row| text.push_str(&row_line(row)));
    }
    let skipped = group.skipped();
    if !text.is_empty() && !skipped.is_empty() {
        text.push('\n');
    }
    for s in skipped {
        text.push_str(&format!("- skipped: {} ({})\n", escape(&s.names.join(", ")), escape(&s.reason)));
    }
    text
}

fn row_line(row: &Row) -> String {
    let figures = match &row.figure {
        Some(f) => {
            let [p50, p90, p99] = row.percentiles.map_or([const { String::new() }; 3], |p| [p.p50, p.p90, p.p99].map(|v| f.number(v)));
            [format!("{} {}", f.value(), f.symbol()).trim_end().to_owned(), f.interval(), p50, p90, p99]
        }
        None => [const { String::new() }; 5],
    };
    let remark = row.reason.as_ref().map(|r| format!("{}: {r}", outcome_name(row.outcome))).unwrap_or_default();
    let cells: Vec<String> =
        [row.probe.clone(), row.params.clone()].into_iter().chain(figures).chain([remark]).map(|c| escape(&c)).collect();
    format!("| {} |\n", cells.join(" | "))
}
