//! Explanations as a document: where the time went, the suspects, and what was changed to decide between them.

use std::io::{self, Write};

use fingerpost_compare::Comparison;
use fingerpost_record::{Budget, Finding, Status};
use serde::Serialize;

use super::explanation::{Explanation, WORKLOAD, headline, mapped_line, steps};
use super::pieces::{bar, suspects_grid, threads_grid};
use super::{experiments, followed, functions, service, under_way};
use crate::document::format::Screen;
use crate::document::records::{Field, Records};
use crate::document::{Block, Column, Document, Section, Table, Text, grids, html, json};
use crate::document::{Cell, Row};
use crate::grid::{Align, Grid, Line};
use crate::html::content::Content;
use crate::style::Tone;
use crate::wording::of_slowest;
use crate::words::{self, percent, time};

/// Parts below this share are in the sums, and not in the picture.
const SMALL: f64 = 0.001;

/// Explanations as a screen, with what was found first, and beside an earlier run where there is one.
#[derive(Serialize)]
pub struct Explained<'a> {
    /// What was found, in sentences: what a person reads first.
    #[serde(skip)]
    pub answers: Vec<String>,
    /// The explanations.
    pub explanations: &'a [Explanation],
    /// The service beside an earlier run of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<&'a Comparison>,
}

impl Screen for Explained<'_> {
    fn document(&self) -> Document {
        let answers = self.answers.iter();
        let answers = answers
            .map(|answer| Text::new(answer, Tone::Strong))
            .collect();
        let lead = Some(Block::List(answers)).filter(|_| !self.answers.is_empty());
        let mut sections = sections(self.explanations);
        sections.extend(self.comparison.map(service::beside));
        Document {
            lead: lead.into_iter().collect(),
            sections,
            ..Document::default()
        }
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json::write(out, self)
    }

    /// The suspects, a line each.
    fn records(&self) -> Records {
        let all = self.explanations.iter();
        let all = all.flat_map(|e| e.findings.iter().map(move |f| (e, f)));
        let line = |(e, f): (&Explanation, &Finding)| {
            vec![
                Field::text(words::clean(&e.workload)),
                Field::text(words::clean(&e.params.to_string())),
                Field::text(words::clean(&f.cause)),
                Field::text(f.layer.to_string()),
                Field::text(f.status.as_str()),
                Field::number(f.share),
            ]
        };
        Records {
            columns: vec!["workload", "params", "cause", "layer", "status", "share"],
            lines: all.map(line).collect(),
        }
    }

    fn page(&self) -> Content {
        html::content(&Document {
            title: "What its time went to".into(),
            ..self.document()
        })
    }
}

/// Explanations of steps, one below the other; what all of them have alike is told once, above them.
pub fn sections(explanations: &[Explanation]) -> Vec<Section> {
    let steps = steps(explanations);
    let all = steps.all().map(|all| {
        let all = Text::new(format!("All steps below: {all}"), Tone::Strong);
        Section::new("steps", "").with([Block::Sentence(all)])
    });
    let each = explanations
        .iter()
        .map(|e| of_one(e, &steps.name(&e.workload, &e.params)));
    all.into_iter().chain(each).collect()
}

/// One explanation: the picture, who is accused, and in short those who are not.
fn of_one(e: &Explanation, name: &str) -> Section {
    let mut section = Section::new("explained", name);
    let grids = match e.workload == WORKLOAD {
        true => service::grids(e),
        false => {
            let told = e.under_way.iter().flat_map(|u| {
                let told = under_way::sentences(u).into_iter();
                told.chain(under_way::quiet(u))
            });
            let told = told.map(|s| Text::new(s, Tone::Plain)).collect();
            section = section.with([Block::aside(headline(e).trim()), Block::List(told)]);
            let accused = e.findings.iter().filter(|f| f.status.accuses());
            let accused: Vec<Finding> = accused.cloned().collect();
            let mut grids = picture(e);
            if !accused.is_empty() {
                grids.push(suspects_grid(&accused, e.whose(), usize::MAX));
            }
            grids.push(experiments::grid(&e.experiments));
            grids
        }
    };
    for grid in grids {
        let blocks = grids::blocks(grid);
        section = section.with([Block::Apart]).with(blocks);
    }
    let more = [
        functions_of(e),
        others(e, Status::RuledOut),
        others(e, Status::NotObserved),
    ];
    section.with(more.into_iter().flatten())
}

/// Those who are not accused, in short by name; the whole with what ruled them out.
fn others(e: &Explanation, status: Status) -> Option<Block> {
    let of = e.findings.iter().filter(|f| f.status == status);
    let of: Vec<Finding> = of.cloned().collect();
    let names = of.iter().map(|f| fingerpost_diagnose::label(&f.cause));
    let names: Vec<&str> = names.collect();
    (!of.is_empty()).then(|| Block::Details {
        summary: status.as_str().into(),
        short: Text::new(names.join(", "), Tone::Faint),
        blocks: grids::blocks(suspects_grid(&of, e.whose(), usize::MAX)),
    })
}

/// Which functions had the CPU, or waited, of each kind of stacks that were taken.
fn functions_of(e: &Explanation) -> Option<Block> {
    let paths = e.paths.as_ref()?;
    let own = paths.stacks.iter().map(|stacks| ("on a CPU in", stacks));
    let graphs = paths.graphs.iter();
    let graphs = graphs.map(|graph| (functions::title(graph), &graph.stacks));
    let mut names = Vec::new();
    let mut blocks = Vec::new();
    for (title, stacks) in own.chain(graphs) {
        let title = format!("{title} ({} samples)", stacks.samples.max(1));
        let columns = [
            Column::words(title),
            Column::figures("itself"),
            Column::figures("with what it calls"),
        ];
        let mut rows = Vec::new();
        for f in functions::worth_naming(stacks) {
            let cells = [f.name.clone(), percent(f.own), percent(f.whole)];
            rows.push(Row::new(cells.map(Cell::from), Tone::Plain));
            names.push(f.name);
        }
        blocks.push(Block::Table(Table::new(columns).with(rows)));
    }
    blocks.retain(|block| !block.is_empty());
    names.truncate(NAMED);
    (!blocks.is_empty()).then(|| Block::Details {
        summary: "functions".into(),
        short: Text::new(names.join(", "), Tone::Faint),
        blocks,
    })
}

/// Functions that are named in short.
const NAMED: usize = 3;

/// Where the time went: of followed requests by class and chain, of a stored budget, or of threads.
fn picture(e: &Explanation) -> Vec<Grid> {
    if let (Some(slow), Some(paths)) = (&e.slow, &e.paths) {
        let mut sentences = Grid {
            columns: Vec::new(),
            lines: vec![Line::Note(words::clean(&of_slowest(slow)), Tone::Strong)],
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
        return vec![
            followed::classes(slow),
            sentences,
            followed::chain_grid(paths),
            followed::slowest_grid(paths),
            states,
        ];
    }
    vec![if e.budget.parts.is_empty() {
        threads_grid(&e.threads)
    } else {
        budget_grid(&e.budget)
    }]
}

fn budget_grid(budget: &Budget) -> Grid {
    let mut grid = Grid::titled([
        ("where the time went", Align::Left, 0),
        ("layer", Align::Left, 2),
        ("time", Align::Right, 0),
        ("share", Align::Right, 0),
        ("", Align::Left, 4),
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
