//! The article's scaling table of a loaded server: who asks, how much comes back, and what the shape says.

use fingerpost_compare::scaling::Table;
use fingerpost_record::Params;
use fingerpost_record::name::product;
use fingerpost_record::params::named;
use fingerpost_record::text::{capitalised, counted};

use crate::grid::{Align, Grid, Line};
use crate::style::Tone;
use crate::words::{clean, escape};

fn title(table: &Table) -> String {
    format!(
        "Scaling: {} {}",
        clean(&table.workload),
        clean(&table.params.to_string())
    )
    .trim_end()
    .to_owned()
}

fn sentence(table: &Table) -> String {
    format!("It {}.", table.scaling.sentence(table.who.one))
}

/// What the server is called: by its engine, its program, else by the workload.
pub fn server<'a>(workload: &'a str, params: &'a Params) -> &'a str {
    product(
        params
            .text("engine")
            .or(params.text("server"))
            .unwrap_or(workload),
    )
}

/// What is said first of a curve; of many it is told which.
pub fn answer(table: &Table, many: bool) -> String {
    let others: Vec<String> = table
        .params
        .iter()
        .filter(|(key, _)| !matches!(*key, "engine" | "server"))
        .map(|(key, value)| named(key, value))
        .collect();
    let which = if many && !others.is_empty() {
        format!(" ({})", others.join(" "))
    } else {
        String::new()
    };
    let rests = doubtful_steps(table);
    let name = server(&table.workload, &table.params);
    // A product is written as it is.
    let name = if name.starts_with("the ") {
        capitalised(name)
    } else {
        name.to_owned()
    };
    format!(
        "{name}{which} {}{rests}.",
        table.scaling.sentence(table.who.one)
    )
}

/// Which steps of a table are not to be trusted, behind what is said of it.
fn doubtful_steps(table: &Table) -> String {
    match table.untrusted.as_slice() {
        [] => String::new(),
        all if all.len() == table.scaling.rows.len() => " (untrusted: all of its rows)".to_owned(),
        [one] => format!(" (untrusted: the row of {})", counted(*one, table.who.one)),
        several => {
            let numbers: Vec<String> = several.iter().map(u64::to_string).collect();
            format!(
                " (untrusted: the rows of {} {})",
                numbers.join(", "),
                table.who.many
            )
        }
    }
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

/// The table with what its shape says.
pub fn grid(table: &Table) -> Grid {
    let mut grid = Grid::of([
        (table.who.many, Align::Right, 0),
        ("per second", Align::Right, 0),
        ("scaling", Align::Right, 0),
        ("", Align::Left, 0),
    ]);
    grid.lines
        .extend([Line::Heading(title(table)), grid.titles()]);
    for (doubtful, row) in cells(table) {
        grid.lines.push(Line::Cells(
            row.to_vec(),
            if doubtful {
                Tone::Doubtful
            } else {
                Tone::Plain
            },
        ));
    }
    grid.lines
        .push(Line::Labelled(String::new(), sentence(table), Tone::Plain));
    grid
}

/// The tables in Markdown.
pub fn markdown(tables: &[Table]) -> String {
    let mut text = String::new();
    for table in tables {
        text.push_str(&format!(
            "\n## {}\n\n| {} | per second | scaling | |\n| ---: | ---: | ---: | --- |\n",
            escape(&title(table)),
            table.who.many
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

    use super::*;
    use crate::style::Style;

    fn table() -> Table {
        let scaling = Scaling::of(&[(1, 192.0), (2, 274.0), (5, 113.0)]).unwrap();
        let who = Params::new().with("clients", 1).asking().unwrap().1;
        let params = Params::new().with("engine", "my|sql\u{1b}[31m");
        Table {
            workload: "database".into(),
            params,
            who,
            scaling,
            untrusted: vec![5],
        }
    }

    #[test]
    fn the_articles_table_stands_with_its_sentence() {
        let text = grid(&table()).render(&Style::default());
        assert!(text.contains("      2         274    143 %"), "{text}");
        assert!(
            text.contains("      5         113     59 %  untrusted"),
            "{text}"
        );
        assert!(
            text.contains("It collapses from 5 clients on, to 41 % of its peak at 2 clients."),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn in_markdown_it_is_a_table() {
        let text = markdown(&[table()]);
        assert!(text.contains("| 2 | 274 | 143 % |  |\n"), "{text}");
        assert!(
            text.contains("engine=my\\|sql") && text.contains("| clients | per second |"),
            "{text}"
        );
    }
}
