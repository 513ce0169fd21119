//! An explanation in Markdown.

use fingerpost_diagnose::places::chain;
use fingerpost_diagnose::wording::overlapping;

use super::experiments::cells;
use super::explanation::Explanation;
use super::followed::{account, chains, rows};
use super::functions;
use super::lines::{headline, mapped_line, steps};
use super::pieces::share;
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

/// Explanations of steps in Markdown, with an empty line between them; what all of them have alike is told once, above
/// them.
pub fn markdown(explanations: &[Explanation]) -> String {
    let steps = steps(explanations);
    let all = steps.all().map(|all| format!("All steps below: {}\n", escape(&all)));
    let each = explanations.iter().map(|e| of_one(e, &steps.name(&e.workload, &e.params)));
    all.into_iter().chain(each).collect::<Vec<String>>().join("\n")
}

fn of_one(e: &Explanation, name: &str) -> String {
    let mut text = format!("## {}\n\n{}\n\n", escape(name), escape(&headline(e)));
    if let Some(client) = &e.client {
        let notes: Vec<String> =
            client.notes.iter().chain([&client.who]).map(|note| format!("- {}\n", escape(note))).collect();
        text.push_str(&format!("**{}**\n\n{}\n", escape(&client.sentence), notes.concat()));
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
    text.push_str("| suspect | cause | verdict | share | evidence |\n| --- | --- | --- | ---: | --- |\n");
    for f in &e.findings {
        let label = fingerpost_diagnose::label(&f.cause);
        let evidence: Vec<String> = f.evidence.iter().map(|s| escape(s)).collect();
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            escape(label),
            escape(&f.cause),
            f.status.as_str(),
            share(f),
            evidence.join("; ")
        ));
    }
    text.extend(overlapping(&e.findings, None).map(|sentence| format!("\n{sentence}\n")));
    text.push_str(&of_experiments(e));
    text
}

/// What was changed to decide between causes.
fn of_experiments(e: &Explanation) -> String {
    if e.experiments.is_empty() {
        return String::new();
    }
    let row = |e| format!("| {} |\n", cells(e).map(|cell| escape(&cell)).join(" | "));
    let rows: Vec<String> = e.experiments.iter().map(row).collect();
    format!(
        "\n| changed for short stretches | without | with it | times faster | requests |\n| --- | ---: | ---: | ---: | \
         --- |\n{}",
        rows.concat()
    )
}

/// The classes of followed requests, and the chains.
fn of_requests(e: &Explanation) -> String {
    let (Some(slow), Some(paths)) = (&e.slow, &e.paths) else { return String::new() };
    let mut text = format!("{}\n\n", escape(&slow.sentence));
    for (sentence, warning) in account(paths, e.check.as_ref()) {
        text.push_str(&if warning {
            format!("- **{}**\n", escape(&sentence))
        } else {
            format!("- {}\n", escape(&sentence))
        });
    }
    text.push_str(
        "\n| where a request's time went | layer | all | share | middle | slowest 1 % | of the difference |\n",
    );
    text.push_str("| --- | --- | ---: | ---: | ---: | ---: | ---: |\n");
    for p in rows(slow) {
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            escape(&p.component),
            p.layer,
            time(p.all.seconds),
            percent(p.all.share),
            time(p.middle.seconds),
            time(p.slow.seconds),
            percent(p.of_difference)
        ));
    }
    let found = chains(paths);
    if !found.is_empty() {
        text.push_str("\n| chain of waits | with | all | slowest 1 % |\n| --- | --- | ---: | ---: |\n");
        for leaf in found.into_iter().take(CHAINS) {
            let (all, slow) = (percent(leaf.all.share), percent(leaf.slow.share));
            text.push_str(&format!("| {} | {} | {all} | {slow} |\n", escape(&chain(leaf)), escape(&leaf.whom)));
        }
    }
    text.push('\n');
    text.push_str(&paths.stacks.as_ref().map_or_else(String::new, |s| functions::markdown("on a CPU in", s, escape)));
    paths.graphs.iter().for_each(|g| text.push_str(&functions::markdown(functions::title(g), &g.stacks, escape)));
    text
}

/// What threads did, where requests could not be followed.
fn of_threads(e: &Explanation) -> String {
    if e.threads.is_empty() {
        return String::new();
    }
    let mut text = "| what the threads did | layer | time | of their life |\n| --- | --- | ---: | ---: |\n".to_owned();
    for s in &e.threads {
        text.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            escape(&s.state),
            s.layer,
            time(s.seconds),
            percent(s.share)
        ));
    }
    text.push('\n');
    text
}

/// A budget as it is stored.
fn of_budget(e: &Explanation) -> String {
    let mut text = "| where the time went | layer | time | share |\n| --- | --- | ---: | ---: |\n".to_owned();
    for p in &e.budget.parts {
        let (component, seconds) = (escape(&p.component), time(p.seconds_per_transaction));
        text.push_str(&format!("| {component} | {} | {seconds} | {} |\n", p.layer, percent(p.share)));
    }
    let rest = e.budget.unexplained;
    text.push_str(&format!(
        "| unexplained | | {} | {} |\n\n",
        time(rest * e.budget.seconds_per_transaction),
        percent(rest)
    ));
    text
}
