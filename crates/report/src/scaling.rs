//! The article's scaling table of a loaded server: who asks, how much comes back, and what the shape says.

use fingerpost_compare::scaling::Table;

use crate::grid::{Align, Grid, Line};
use crate::style::{Style, Tone};
use crate::words::{clean, escape};

fn title(table: &Table) -> String {
    format!("Scaling: {} {}", clean(&table.workload), clean(&table.params.to_string())).trim_end().to_owned()
}

fn sentence(table: &Table) -> String {
    format!("It {}.", table.scaling.sentence(table.who))
}

/// The number of those who ask, per second, per cent of the first row, and a remark.
fn cells(table: &Table) -> impl Iterator<Item = (bool, [String; 4])> {
    table.scaling.rows.iter().map(|row| {
        let doubtful = table.untrusted.contains(&row.clients);
        let remark = if doubtful { "untrusted" } else { "" };
        (
            doubtful,
            [
                row.clients.to_string(),
                format!("{:.0}", row.throughput),
                format!("{:.0} %", row.scaling),
                remark.to_owned(),
            ],
        )
    })
}

/// The tables for a terminal; nothing where there is none.
pub fn render(tables: &[Table], style: &Style) -> Option<String> {
    let text: Vec<String> = tables.iter().map(|t| one(t, style)).collect();
    (!text.is_empty()).then(|| text.join("\n"))
}

fn one(table: &Table, style: &Style) -> String {
    let who = if table.who == "client" { "clients" } else { "connections" };
    let mut grid = Grid::of([
        (who, Align::Right, 0),
        ("per second", Align::Right, 0),
        ("scaling", Align::Right, 0),
        ("", Align::Left, 0),
    ]);
    grid.lines.extend([Line::Heading(title(table)), grid.titles()]);
    for (doubtful, row) in cells(table) {
        grid.lines.push(Line::Cells(row.to_vec(), if doubtful { Tone::Doubtful } else { Tone::Plain }));
    }
    grid.lines.push(Line::Labelled(String::new(), sentence(table), Tone::Plain));
    grid.render(style)
}

/// The tables in Markdown.
pub fn markdown(tables: &[Table]) -> String {
    let mut text = String::new();
    for table in tables {
        text.push_str(&format!(
            "\n## {}\n\n| {}s | per second | scaling | |\n| ---: | ---: | ---: | --- |\n",
            escape(&title(table)),
            table.who
        ));
        for (_, row) in cells(table) {
            text.push_str(&format!("| {} |\n", row.join(" | ")));
        }
        text.push_str(&format!("\n{}\n", escape(&sentence(table))));
    }
    text
}

#[cfg(test)]
mod tests {
    use fingerpost_compare::scaling::Scaling;
    use fingerpost_record::Params;

    use super::*;

    fn table() -> Table {
        let scaling = Scaling::of(&[(1, 192.0), (2, 274.0), (5, 113.0)]).unwrap();
        let params = Params::new().with("engine", "my|sql\u{1b}[31m");
        Table { workload: "database".into(), params, who: "client", scaling, untrusted: vec![5] }
    }

    #[test]
    fn the_articles_table_stands_with_its_sentence() {
        let text = render(&[table()], &Style::default()).unwrap();
        assert!(text.contains("      2         274    143 %"), "{text}");
        assert!(text.contains("      5         113     59 %  untrusted"), "{text}");
        assert!(text.contains("It collapses from 5 clients on, to 41 % of its peak at 2 clients."), "{text}");
        assert!(!text.contains('\u{1b}'));
        assert_eq!(render(&[], &Style::default()), None);
    }

    #[test]
    fn in_markdown_it_is_a_table() {
        let text = markdown(&[table()]);
        assert!(text.contains("| 2 | 274 | 143 % |  |\n"), "{text}");
        assert!(text.contains("engine=my\\|sql") && text.contains("| clients | per second |"), "{text}");
    }
}
