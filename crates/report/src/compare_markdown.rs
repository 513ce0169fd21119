//! A comparison in Markdown, as issue trackers render it.

use fingerpost_compare::comparison::Comparison;

use crate::compare_words::{
    SETTLED, SURER, below_causes, causes, cells, in_order, not_compared, overlap, settled, sides,
    summary, surer, text,
};
use crate::words::escape;

/// The whole comparison.
pub fn render(c: &Comparison) -> String {
    let mut out = format!("# {}\n\n", escape(&text(&c.headline)));
    for (label, sentence, _) in sides(c) {
        out.push_str(&format!("- **{label}**: {}\n", escape(&sentence)));
    }
    section(
        &mut out,
        "What differs between the hosts",
        c.hosts
            .iter()
            .map(|d| text(&format!("{}: {} → {}", d.what, d.base, d.new))),
    );
    let sentence = |(label, evidence, _): (String, Vec<String>, _)| {
        if evidence.is_empty() {
            label
        } else {
            format!("{label}: {}", evidence.join("; "))
        }
    };
    section(&mut out, SETTLED, settled(c).into_iter());
    section(
        &mut out,
        "Why",
        overlap(c)
            .into_iter()
            .chain(causes(c).into_iter().map(sentence)),
    );
    for (title, lines) in below_causes(c) {
        section(&mut out, &title, lines.into_iter());
    }
    out.push_str("\n## Rows\n\n| probe | parameters | base | new | × slower | 95 % interval | verdict | remarks |\n");
    out.push_str("| --- | --- | ---: | ---: | ---: | --- | --- | --- |\n");
    for row in in_order(c) {
        let note = text(row.note.as_deref().unwrap_or_default());
        let line: Vec<String> = cells(row)
            .into_iter()
            .chain([note])
            .map(|cell| escape(&cell))
            .collect();
        out.push_str(&format!("| {} |\n", line.join(" | ")));
    }
    section(&mut out, "Not compared", not_compared(c).into_iter());
    out.push_str(&format!("\n{}.\n", summary(c)));
    surer(c)
        .into_iter()
        .for_each(|how| out.push_str(&format!("\n{SURER}: {how}.\n")));
    out
}

fn section(out: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.map(|l| format!("- {}\n", escape(l.trim()))).collect();
    if !lines.is_empty() {
        out.push_str(&format!("\n## {}\n\n{}", escape(title), lines.concat()));
    }
}
