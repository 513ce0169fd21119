//! Requests that were followed: why they take as long as they do, by class, by chain of waits, and the slowest one by
//! one.

use fingerpost_diagnose::slow::{SlowOnes, SlowPart};
use fingerpost_record::paths::{Leaf, Share, SlowSpan};
use fingerpost_record::stacks::{
    Function, KERNEL, RequestStacks, Stack, StackClass, StackKind, Stacks,
};
use fingerpost_record::{Component, Layer, Paths, Run, Unit, WaitClass};
use maud::{Markup, html};

use super::content::Section;
use super::parts::{graphic_head, heads, scrolling, swatch, table};
use crate::explain::followed::{account, chains, longest, rows};
use crate::explain::pieces::thread_cells;
use crate::explain::{Explanation, mapped_line, of_run, steps};
use crate::svg::Axis;
use crate::svg::cells::{self, Piece, layer_class};
use crate::svg::icicle::{Branch, flame_graph, icicle};
use crate::svg::timeline::{self, Stretch};
use crate::wording::{chain as chain_of, of_slowest};
use crate::words::{blocked_by, clean, part, percent, time};

/// Chains that the table shows.
const CHAINS: usize = 40;
/// Functions that the table shows.
const FUNCTIONS: usize = 25;
/// Longest stretches of a slow request that the table shows.
const STRETCHES: usize = 12;
/// A class's part of a component, and its share of a leaf.
type OfPart = fn(&SlowPart) -> Share;
/// See [`OfPart`].
type OfLeaf = fn(&Leaf) -> f64;

/// The section; nothing where no step was watched.
pub fn section(run: &Run) -> Option<Section> {
    let found: Vec<Explanation> = of_run(run)
        .into_iter()
        .filter(|e| e.slow.is_some() || !e.threads.is_empty())
        .collect();
    if found.is_empty() {
        return None;
    }
    let steps = steps(&found);
    let body = html! {
        @if let Some(all) = steps.all() { p class="params" { "All steps: " (all) } }
        @for e in &found {
            @let name = steps.name(&e.workload, &e.params);
            @if e.slow.is_some() { (followed(e, &name)) }
            @if !e.threads.is_empty() { (unfollowed(e, &name)) }
        }
    };
    Some(Section {
        key: "requests".into(),
        title: "What requests waited for".into(),
        body,
    })
}

fn followed(e: &Explanation, name: &str) -> Markup {
    let (Some(slow), Some(paths)) = (&e.slow, &e.paths) else {
        return html! {};
    };
    html! {
        h3 { (name) }
        p class="verdict" { strong { (clean(&of_slowest(slow))) } }
        @if let Some(client) = &e.client {
            p class="verdict" { strong { (clean(&client.sentence)) } }
            @for note in client.notes.iter().chain([&client.who]) { p class="note" { (clean(note)) } }
        }
        @for (sentence, warning) in account(paths, e.check.as_ref()) {
            p class=(if warning { "doubts" } else { "note" }) { (sentence) }
        }
        @if let Some(mapped) = &e.mapped { p class="note" { (mapped_line(mapped)) } }
        (classes(slow, name))
        (chain_pictures(paths, name))
        @if let Some(stacks) = &paths.stacks {
            (flames("Functions on a CPU", &format!("Each box is a function, as wide as its share of {} samples of the \
                service's threads on a CPU", stacks.counted()), stacks, name))
        }
        @for graph in &paths.graphs { (of_requests(graph, name)) }
        (slowest(paths, name))
    }
}

/// Stacks of threads while they had requests.
fn of_requests(graph: &RequestStacks, step: &str) -> Markup {
    let (whose, class) = match graph.of {
        StackClass::Service => ("of the service's threads", ""),
        StackClass::Requests => ("of threads that had a request", ", all requests"),
        StackClass::SlowRequests => (
            "of threads that had one of the slowest 1 % of the requests",
            ", the slowest 1 %",
        ),
    };
    let stacks = &graph.stacks;
    match graph.kind {
        StackKind::OnCpu => flames(
            &format!("On a CPU{class}"),
            &format!(
                "Each box is a function, as wide as its share of {} samples {whose}, on a CPU",
                stacks.counted()
            ),
            stacks,
            step,
        ),
        StackKind::OffCpu => {
            let time = time(stacks.counted() as f64 * 1e-6);
            let note = format!(
                "Each box is a function, as wide as its share of the time {whose}, off the CPU: about {time}, of {} \
                 samples",
                stacks.samples
            );
            flames(&format!("Waiting, off the CPU{class}"), &note, stacks, step)
        }
    }
}

/// Which functions had the CPU, or waited: the outermost on top, each as wide as its share.
fn flames(title: &str, note: &str, stacks: &Stacks, step: &str) -> Markup {
    let all = stacks.counted().max(1) as f64;
    let branch = |s: &Stack| {
        let names: Vec<String> = s
            .frames
            .iter()
            .filter_map(|f| stacks.functions.get(*f as usize))
            .map(|n| clean(n))
            .collect();
        let kernel = names.last().is_some_and(|n| n.ends_with(KERNEL));
        let layer = if kernel {
            Layer::Kernel
        } else {
            Layer::Application
        };
        Branch {
            names,
            layer,
            note: String::new(),
            share: s.samples as f64 / all,
        }
    };
    let branches: Vec<Branch> = stacks.stacks.iter().map(branch).collect();
    let own = stacks.own();
    let function = |f: &Function| [clean(&f.name), percent(f.own), percent(f.whole)];
    html! {
        h4 { (title) }
        p class="note" { (note) "; below it what it called. (" (clean(&stacks.source)) ")" }
        (flame_graph(title, "A flame graph from the top down; the table below has the functions with the largest \
            shares.", &branches))
        details {
            summary { (title) " as a table" }
            (table(
                &format!("{step}: {title}, table"),
                "narrow",
                [("Function", ""), ("itself", "number"), ("with what it calls", "number")],
                own.iter().filter(|f| f.own > 0.0).take(FUNCTIONS).map(function),
            ))
        }
    }
}

/// All, middle and slowest beside each other: a bar each, and every part in a table.
fn classes(slow: &SlowOnes, step: &str) -> Markup {
    let all = slow.parts.iter().map(|p| p.all.seconds).sum::<f64>();
    let bars: [(&str, f64, OfPart); 3] = [
        ("all requests", all, |p| p.all),
        (
            "the middle (40th to 60th percentile)",
            slow.middle_seconds,
            |p| p.middle,
        ),
        ("the slowest 1 %", slow.slow_seconds, |p| p.slow),
    ];
    let rows = rows(slow);
    html! {
        (scrolling(&format!("{step}: classes of requests, table"), html! {
            table class="budgets" {
                thead { tr {
                    (heads(&[("Requests", ""), ("a request", "number")]))
                    (graphic_head("share of its time", cells::share_head()))
                } }
                tbody {
                    @for (name, seconds, share) in bars {
                        tr {
                            th scope="row" { (name) }
                            td class="number" { (time(seconds)) }
                            td class="graphic" { (cells::stacked(&pieces(&rows, share))) }
                        }
                    }
                }
            }
        }))
        (scrolling(&format!("{step}: parts of a request, table"), html! {
            table class="narrow figures" {
                thead { tr { (heads(&[
                    ("part", ""), ("layer", "extra"), ("all", "number"), ("share", "number"), ("middle", "number"),
                    ("slowest 1 %", "number"), ("of the difference", "number extra"),
                ])) } }
                tbody { @for p in &rows { tr {
                    th scope="row" { (swatch(class_of(p))) (part(&p.component)) }
                    td class="extra" { @if p.component != Component::NotFollowed { (p.layer.as_str()) } }
                    td class="number" { (time(p.all.seconds)) }
                    td class="number" { (percent(p.all.share)) }
                    td class="number" { (time(p.middle.seconds)) }
                    td class="number" { (time(p.slow.seconds)) }
                    td class="number extra" { (percent(p.of_difference)) }
                } } }
            }
        }))
    }
}

fn class_of(p: &SlowPart) -> &'static str {
    if p.component == Component::NotFollowed {
        "l-unexplained"
    } else {
        layer_class(p.layer)
    }
}

fn pieces(rows: &[SlowPart], share: OfPart) -> Vec<Piece> {
    let piece = |p: &SlowPart| {
        let s = share(p);
        Piece {
            class: class_of(p),
            title: clean(&format!(
                "{}: {}, {}",
                p.component,
                time(s.seconds),
                percent(s.share)
            )),
            share: s.share,
        }
    };
    rows.iter().map(piece).collect()
}

/// The chains of all requests and of the slowest as icicles, and as a table.
fn chain_pictures(paths: &Paths, step: &str) -> Markup {
    let found = chains(paths);
    let chain = |l: &&Leaf| {
        let Share {
            share, low, high, ..
        } = l.all;
        let interval = format!("{} to {}", percent(low), percent(high));
        let [middle, slow] = [l.middle, l.slow].map(|s| percent(s.share));
        [
            clean(&chain_of(&l.chain, &l.component().1)),
            blocked_by(l.blocker.as_ref()),
            percent(share),
            interval,
            middle,
            slow,
        ]
    };
    let pictures: [(&str, OfLeaf); 2] = [
        ("all requests", |l| l.all.share),
        ("the slowest 1 %", |l| l.slow.share),
    ];
    html! {
        @for (name, share) in pictures {
            @let branches = branches(paths, share);
            @if !branches.is_empty() {
                figure {
                    figcaption {
                        "How the time of "
                        (name)
                        " came about: below a link what it led to, as wide as its share."
                    }
                    (icicle(&format!("Chains of waits of {name}"), "The table of chains below has the same \
                        figures.", &branches))
                }
            }
        }
        @if !found.is_empty() {
            details {
                summary { "The chains of waits as a table" }
                (table(
                    &format!("{step}: chains of waits, table"),
                    "narrow figures",
                    [("chain", ""), ("with", "words"), ("all", "number"), ("95 % interval", "number"),
                        ("middle", "number"), ("slowest 1 %", "number")],
                    found.iter().take(CHAINS).map(chain),
                ))
            }
        }
    }
}

fn branches(paths: &Paths, share: OfLeaf) -> Vec<Branch> {
    let leaf = |l: &Leaf| {
        let (layer, component) = l.component();
        let links = l.chain.iter().map(|link| link.as_str().to_owned());
        let names: Vec<String> = links.chain([part(&component)]).collect();
        let note = match blocked_by(l.blocker.as_ref()) {
            whom if whom.is_empty() => whom,
            whom => format!("with {whom}"),
        };
        Branch {
            names,
            layer,
            note,
            share: share(l),
        }
    };
    paths
        .leaves
        .iter()
        .filter(|l| share(l) > 0.0)
        .map(leaf)
        .collect()
}

/// The slowest requests as lines of time, and the longest stretches of each as a table.
fn slowest(paths: &Paths, step: &str) -> Markup {
    let most = paths.slowest.iter().map(|s| s.seconds).fold(0.0, f64::max);
    let axis = Axis::up_to(most * 1e9);
    html! {
        @if most > 0.0 {
            (scrolling(&format!("{step}: the slowest requests, table"), html! {
                table class="slowest" {
                    thead { tr {
                        (heads(&[("Slowest", "")]))
                        (graphic_head("since the request began", cells::interval_head(&axis, Unit::Nanoseconds)))
                        (heads(&[("most of it", "")]))
                    } }
                    tbody { @for s in &paths.slowest {
                        tr {
                            th scope="row" class="number" { (time(s.seconds)) }
                            td class="graphic" {
                                (timeline::line(&axis, &s.spans.iter().map(stretch).collect::<Vec<_>>()))
                            }
                            td {
                                @if let Some(longest) = s.spans.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds)) {
                                    (told(longest))
                                }
                            }
                        }
                    } }
                }
            }))
            @if let Some(first) = paths.slowest.first() {
                details {
                    summary { "The longest stretches of the slowest as a table" }
                    (scrolling(&format!("{step}: the longest stretches, table"), html! {
                        table class="narrow" {
                            thead { tr {
                                (heads(&[("after", "number"), ("for", "number"), ("what", ""), ("layer", "")]))
                            } }
                            tbody { @for s in longest(&first.spans, STRETCHES) { tr {
                                td class="number" { (time(s.at)) }
                                td class="number" { (time(s.seconds)) }
                                th scope="row" { (told(s)) }
                                td { (s.component().0.as_str()) }
                            } } }
                        }
                    }))
                }
            }
        }
    }
}

/// A stretch in words: chain, component, and with whom.
fn told(s: &SlowSpan) -> String {
    let whom = match blocked_by(s.blocker.as_ref()) {
        whom if whom.is_empty() => whom,
        whom => format!(", with {whom}"),
    };
    clean(&chain_of(&s.chain, &s.component().1)) + &whom
}

fn stretch(s: &SlowSpan) -> Stretch {
    let length = time(s.seconds);
    let title = format!("{} for {length}", told(s));
    Stretch {
        at: s.at * 1e9,
        length: s.seconds * 1e9,
        layer: s.component().0,
        unknown: s.class == WaitClass::NotFollowed,
        title,
    }
}

/// What the threads did, where requests could not be followed.
fn unfollowed(e: &Explanation, name: &str) -> Markup {
    html! {
        h3 { (name) }
        p class="doubts" {
            "Requests, or too much of their time, could not be followed; following needs root or CAP_PERFMON. This is \
             what the server’s threads did: their time, and no request’s."
        }
        (table(
            &format!("{name}: what the threads did, table"),
            "narrow",
            [("state", ""), ("layer", ""), ("time", "number"), ("of their life", "number")],
            e.threads.iter().map(thread_cells),
        ))
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Blocker;
    use fingerpost_record::fixture::{self, followed};

    use super::*;

    fn page(run: &Run) -> String {
        section(run).unwrap().body.into_string()
    }

    #[test]
    fn classes_chains_and_the_slowest_are_there_as_pictures_and_as_tables() {
        let text = page(&followed::slow_locks());
        for words in [
            "the slowest 1 %",
            "take longer waiting for a lock held by mariadbd",
            "class=\"icicle\"",
            "queue → lock → waiting for a CPU, with stress",
            "not followed",
        ] {
            assert!(text.contains(words), "no “{words}” in {text}");
        }
        assert!(
            text.matches("<tr").count() > 20 && text.len() < 200_000,
            "{}",
            text.len()
        );
        assert_eq!(section(&fixture::run()).map(|s| s.key), None);
    }

    #[test]
    fn stacks_of_requests_are_drawn_by_kind_and_class() {
        let mut run = followed::slow_locks();
        let stacks = Stacks {
            functions: ["main", "wait_for_row", "futex_wait (kernel)"]
                .map(str::to_owned)
                .to_vec(),
            stacks: vec![Stack {
                frames: vec![0, 1, 2],
                samples: 2_500_000,
            }],
            samples: 120,
            ..Stacks::default()
        };
        let graph = |kind, of| RequestStacks {
            kind,
            of,
            stacks: stacks.clone(),
        };
        run.paths[0].graphs = vec![
            graph(StackKind::OnCpu, StackClass::Requests),
            graph(StackKind::OffCpu, StackClass::SlowRequests),
        ];
        let text = page(&run);
        for words in [
            "On a CPU, all requests",
            "Waiting, off the CPU, the slowest 1 %",
            "about 2.500 s, of 120 samples",
            "futex_wait (kernel)",
        ] {
            assert!(text.contains(words), "no “{words}” in {text}");
        }
    }

    #[test]
    fn names_from_a_hostile_run_stay_text() {
        let mut run = followed::slow_locks();
        let evil = "</svg><script>alert(1)</script>\u{1b}[2J";
        let paths = &mut run.paths[0];
        for leaf in &mut paths.leaves {
            leaf.blocker = Some(Blocker::thread(evil));
            leaf.class = WaitClass::SystemCall(evil.into());
        }
        for span in paths.slowest.iter_mut().flat_map(|s| &mut s.spans) {
            span.class = WaitClass::SystemCall(evil.into());
        }
        let text = page(&run);
        assert!(!text.contains("<script") && !text.contains('\u{1b}'));
    }
}
