//! The article's scaling table of a loaded server: who asks, how much comes back, and what the shape says.

use fingerpost_compare::scaling::{self, Shape, Table};
use fingerpost_record::name::product;
use fingerpost_record::params::named;
use fingerpost_record::text::{capitalised, counted};
use fingerpost_record::{Params, Run};

use crate::document::{self, Block, Cell, Column, Row, Section, Text};
use crate::lab::derived::{COUNT, Derived, Of, RATIO, table_of, told};
use crate::style::Tone;
use crate::words::clean;

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

/// The table with what its shape says. Its figures are each throughput as a share of that with the fewest who ask, and
/// where the curve turns; they stand in the table of the rows.
pub fn section(run: &Run, table: &Table) -> Section {
    let of_rows = table_of(run, &format!("{}.throughput", table.workload));
    let of = Of(&of_rows);
    let row = |row: &scaling::Row| {
        let doubtful = table.untrusted.contains(&row.clients);
        let (remark, tone) = match doubtful {
            true => ("untrusted", Tone::Doubtful),
            false => ("", Tone::Plain),
        };
        let params = told(&table.params, [(table.who.many, &row.clients)]);
        let name = format!("{}.scaling", table.workload);
        let share = of.exact(name, params, RATIO, row.scaling / 100.0);
        let cells = [
            Cell::new(row.clients.to_string()),
            Cell::new(format!("{:.0}", row.throughput)),
            Cell::new(format!("{:.0} %", row.scaling)).with([share]),
            Cell::new(remark),
        ];
        Row::new(cells, tone)
    };
    let columns = [table.who.many, "per second", "scaling"].map(Column::figures);
    let columns = columns.into_iter().chain([Column::words("")]);
    let rows = table.scaling.rows.iter().map(row);
    let sentence = Text::new(sentence(table), Tone::Plain).with(turns(&of, table));
    Section::new(format!("{}-scaling", table.workload), title(table)).with([
        Block::Table(document::Table::new(columns).with(rows)),
        Block::Sentence(sentence),
    ])
}

/// Where the curve has its peak, and where it turns.
fn turns(of: &Of, table: &Table) -> Vec<Derived> {
    let turns = match table.scaling.shape {
        Shape::Scales => None,
        Shape::Saturates { at } => Some(("saturates_at", at)),
        Shape::Declines { from } => Some(("declines_from", from)),
        Shape::Collapses { from } => Some(("collapses_from", from)),
    };
    let mark = |(what, at): (&str, u64)| {
        let name = format!("{}.{what}", table.workload);
        of.exact(name, told(&table.params, []), COUNT, at as f64)
    };
    let peak = ("peaks_at", table.scaling.peak().clients);
    [peak].into_iter().chain(turns).map(mark).collect()
}

#[cfg(test)]
mod tests {
    use fingerpost_compare::scaling::Scaling;

    use super::*;
    use crate::document::{markdown, terminal};
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
        let section = section(&Run::default(), &table());
        let text = terminal::render(&[section], &Style::default());
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
        let text = markdown::render(&[section(&Run::default(), &table())], 2);
        assert!(text.contains("| 2 | 274 | 143 % |  |\n"), "{text}");
        assert!(
            text.contains("engine=my\\|sql") && text.contains("| clients | per second |"),
            "{text}"
        );
    }
}
