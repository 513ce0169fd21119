//! An explanation in Markdown.

use fingerpost_diagnose::slow::SlowPart;
use fingerpost_record::Finding;
use fingerpost_record::stacks::Stacks;

use super::experiments;
use super::explanation::{Explanation, headline, mapped_line, steps};
use super::followed::{CHAIN_COLUMNS, account, chain_cells, chains, rows};
use super::functions;
use super::pieces::{share, thread_cells};
use super::under_way;
use crate::grid::Align::{self, Left, Right};
use crate::grid_markdown;
use crate::wording::{of_slowest, overlapping};
use crate::words::{clean, percent, time};

/// Chains that Markdown shows.
const CHAINS: usize = 20;

fn escape(text: &str) -> String {
    clean(text)
        .replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('`', "\\`")
        .replace('*', "\\*")
        .replace('[', "\\[")
}

/// A table of cells that are not escaped yet.
fn table<const N: usize>(
    columns: [(&str, Align, u8); N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    grid_markdown::table(
        columns,
        rows.into_iter().map(|row| row.map(|cell| escape(&cell))),
    )
}

/// Explanations of steps in Markdown, with an empty line between them; what all of them have alike is told once, above
/// them.
pub fn markdown(explanations: &[Explanation]) -> String {
    let steps = steps(explanations);
    let all = steps
        .all()
        .map(|all| format!("All steps below: {}\n", escape(&all)));
    let each = explanations
        .iter()
        .map(|e| of_one(e, &steps.name(&e.workload, &e.params)));
    all.into_iter()
        .chain(each)
        .collect::<Vec<String>>()
        .join("\n")
}

fn of_one(e: &Explanation, name: &str) -> String {
    let mut text = format!("## {}\n\n{}\n\n", escape(name), escape(&headline(e)));
    if let Some(client) = &e.client {
        let notes: Vec<String> = client
            .notes
            .iter()
            .chain([&client.who])
            .map(|note| format!("- {}\n", escape(note)))
            .collect();
        text.push_str(&format!(
            "**{}**\n\n{}\n",
            escape(&client.sentence),
            notes.concat()
        ));
    }
    if let Some(u) = &e.under_way {
        let told = under_way::sentences(u)
            .into_iter()
            .chain(under_way::quiet(u));
        let lines: Vec<String> = told.map(|s| format!("- {}\n", escape(&s))).collect();
        if !lines.is_empty() {
            text.push_str(&format!("{}\n", lines.concat()));
        }
    }
    text.push_str(&if e.slow.is_some() {
        of_requests(e)
    } else if e.threads.is_empty() {
        of_budget(e)
    } else {
        String::new()
    });
    if let Some(mapped) = &e.mapped {
        text.push_str(&format!("{}\n\n", escape(&mapped_line(mapped))));
    }
    text.push_str(&of_threads(e));
    let suspect = |f: &Finding| {
        [
            fingerpost_diagnose::label(&f.cause),
            &f.cause,
            f.status.as_str(),
            &share(f),
            &crate::evidence::evidence_of(f, e.whose()).join("; "),
        ]
        .map(str::to_owned)
    };
    let columns = [
        ("suspect", Left, 0),
        ("cause", Left, 0),
        ("verdict", Left, 0),
        ("share", Right, 0),
        ("evidence", Left, 0),
    ];
    text.push_str(&table(columns, e.findings.iter().map(suspect)));
    text.extend(overlapping(&e.findings, None).map(|sentence| format!("\n{sentence}\n")));
    text.push_str(&of_experiments(e));
    text
}

/// What was changed to decide between causes.
fn of_experiments(e: &Explanation) -> String {
    if e.experiments.is_empty() {
        return String::new();
    }
    format!(
        "\n{}",
        table(
            experiments::COLUMNS,
            e.experiments.iter().map(experiments::cells)
        )
    )
}

/// The classes of followed requests, and the chains.
fn of_requests(e: &Explanation) -> String {
    let (Some(slow), Some(paths)) = (&e.slow, &e.paths) else {
        return String::new();
    };
    let mut text = format!("{}\n\n", escape(&of_slowest(slow)));
    for (sentence, warning) in account(paths, e.check.as_ref()) {
        text.push_str(&if warning {
            format!("- **{}**\n", escape(&sentence))
        } else {
            format!("- {}\n", escape(&sentence))
        });
    }
    let columns = [
        ("where a request's time went", Left, 0),
        ("layer", Left, 0),
        ("all", Right, 0),
        ("share", Right, 0),
        ("middle", Right, 0),
        ("slowest 1 %", Right, 0),
        ("of the difference", Right, 0),
    ];
    let part = |p: &SlowPart| {
        let [all, middle, slow] = [p.all, p.middle, p.slow].map(|s| time(s.seconds));
        let (share, of_difference) = (percent(p.all.share), percent(p.of_difference));
        [
            p.component.to_string(),
            p.layer.to_string(),
            all,
            share,
            middle,
            slow,
            of_difference,
        ]
    };
    text += &format!("\n{}", table(columns, rows(slow).iter().map(part)));
    let found = chains(paths);
    if !found.is_empty() {
        text += &format!(
            "\n{}",
            table(
                CHAIN_COLUMNS,
                found.into_iter().take(CHAINS).map(chain_cells)
            )
        );
    }
    text.push('\n');
    text.extend(paths.stacks.as_ref().map(|s| of_stacks("on a CPU in", s)));
    text.extend(
        paths
            .graphs
            .iter()
            .map(|g| of_stacks(functions::title(g), &g.stacks)),
    );
    text
}

/// Which functions had the CPU, or waited.
fn of_stacks(title: &str, stacks: &Stacks) -> String {
    let title = format!("{title} ({} samples)", stacks.samples.max(1));
    let rows = functions::worth_naming(stacks).map(|f| [f.name, percent(f.own), percent(f.whole)]);
    table(
        [
            (&title, Left, 0),
            ("itself", Right, 0),
            ("with what it calls", Right, 0),
        ],
        rows,
    ) + "\n"
}

/// What threads did, where requests could not be followed.
fn of_threads(e: &Explanation) -> String {
    if e.threads.is_empty() {
        return String::new();
    }
    let columns = [
        ("what the threads did", Left, 0),
        ("layer", Left, 0),
        ("time", Right, 0),
        ("of their life", Right, 0),
    ];
    table(columns, e.threads.iter().map(thread_cells)) + "\n"
}

/// A budget as it is stored.
fn of_budget(e: &Explanation) -> String {
    let mut text =
        "| where the time went | layer | time | share |\n| --- | --- | ---: | ---: |\n".to_owned();
    for p in &e.budget.parts {
        let (component, seconds) = (escape(&p.component.name()), time(p.seconds_per_transaction));
        text.push_str(&format!(
            "| {component} | {} | {seconds} | {} |\n",
            p.layer,
            percent(p.share)
        ));
    }
    let rest = e.budget.unexplained;
    text.push_str(&format!(
        "| unexplained | | {} | {} |\n\n",
        time(rest * e.budget.seconds_per_transaction),
        percent(rest)
    ));
    text
}
