//! A running service on one screen: the answer first, then the figures, the budget, the suspects, who else is involved,
//! and the commands to look closer.

use fingerpost_compare::Comparison;
use fingerpost_diagnose::client::Beside;
use fingerpost_diagnose::doing::Doing;
use fingerpost_diagnose::outside::on_the_way;
use fingerpost_diagnose::places::Place;
use fingerpost_diagnose::service::is_of_the_load;
use fingerpost_diagnose::slow::{SlowPart, slow_ones};
use fingerpost_diagnose::{PROGRAMS, TOO_LITTLE_FOLLOWED};
use fingerpost_record::unit::significant;
use fingerpost_record::{Blocker, Component, Finding, Paths, Readings, Status};

use super::explanation::{Explanation, OWN_CODE, mapped_line};
use super::followed::{account, rows};
use super::functions::Spent;
use super::involved::{by_way_of, chatty, connecting, on_the_way_sentence};
use super::pieces::{bar, suspects_grid, threads_grid};
use super::{experiments, functions, hardware, neighbours, under_way};
use crate::compare_words as compare;
use crate::document::{Block, Section, Text};
use crate::grid::{Align, Grid, Line};
use crate::style::{Style, Tone};
use crate::wording::{doing, of_slowest, who};
use crate::words::{clean, part, percent, time};

pub use super::explanation::WORKLOAD;
pub use super::hardware::HARDWARE;

/// Parts of the budget that fit on a screen.
const PARTS: usize = 8;
/// Others who are named.
const OTHERS: usize = 5;
/// Others with less than this share of the time of all requests and of the slowest are not named.
const WORTH_NAMING: f64 = 0.01;
/// Figures that stand below a suspect.
const EVIDENCE: usize = 3;

fn of_programs(e: &Explanation) -> bool {
    e.observations
        .iter()
        .any(|o| o.totals.contains_key(PROGRAMS.as_str()))
}

/// The parts of the screen; the first one answers.
pub(super) fn grids(e: &Explanation) -> Vec<Grid> {
    let programs = of_programs(e);
    let mut grids = vec![answer(e, programs), client(e.client.as_ref())];
    match (&e.slow, &e.paths) {
        (Some(slow), Some(paths)) => {
            grids.push(budget(&rows(slow), programs));
            grids.push(suspects(e));
            grids.push(experiments::grid(&e.experiments));
            grids.push(functions::grid(paths));
            grids.push(hardware::grid(e));
            grids.push(others(paths, programs));
            grids.push(neighbours::grid(paths, &e.observations));
        }
        _ => grids.extend([threads_grid(&e.threads), suspects(e)]),
    }
    grids
}

/// What requests did lately, while they are still watched: a sentence, and the parts of their time, the largest first.
/// Nothing where none was followed.
pub fn lately(paths: &Paths) -> Option<(String, Vec<Lately>)> {
    let mut slow = slow_ones(paths)?;
    let sentence = first_sentence(paths, &slow.parts, false);
    slow.parts
        .sort_by(|a, b| b.all.share.total_cmp(&a.all.share));
    let part = |p: SlowPart| Lately {
        name: of_program(&p.component),
        all: p.all.share,
        slow: p.slow.share,
    };
    Some((clean(&sentence), slow.parts.into_iter().map(part).collect()))
}

/// A part of requests' time lately.
#[derive(Clone, Debug, PartialEq)]
pub struct Lately {
    /// What it is called.
    pub name: String,
    /// Its share of all requests.
    pub all: f64,
    /// Its share of the slowest 1 %.
    pub slow: f64,
}

/// What a part is called where a service, or a program, is told of.
fn of_program(component: &Component) -> String {
    match component {
        Component::UserCode => OWN_CODE.into(),
        other => part(other),
    }
}

/// The service beside an earlier run of it: the answer, what changed most, and the rows.
pub(super) fn beside(c: &Comparison) -> Section {
    let mut all = vec![Text::new(&c.headline, Tone::Strong)];
    let parts = compare::changed_parts(c).into_iter();
    all.extend(parts.map(|part| Text::new(part, Tone::Plain)));
    let rows = compare::in_order(c).into_iter().map(|row| {
        let [probe, params, base, new, ratio, _, verdict] = compare::cells(row);
        let percentile = row
            .params
            .int("percentile")
            .map_or(params, |p| format!("percentile={p}"));
        (
            row.verdict,
            format!("{probe} {percentile}: {base} → {new}, {ratio} times as slow: {verdict}"),
        )
    });
    let judged = rows.filter(|(_, text)| !text.starts_with("service.rate"));
    all.extend(judged.map(|(verdict, text)| Text::new(text, compare::tone(verdict))));
    let rest = compare::not_compared(c).into_iter();
    all.extend(rest.map(|text| Text::new(text, Tone::Faint)));
    Section::new("beside", "Beside the baseline").with([Block::List(all)])
}

/// The commands to look closer.
pub fn closer(lines: &[String], style: &Style) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let labels = std::iter::once("look closer").chain(std::iter::repeat("           "));
    let lines = labels
        .zip(lines)
        .map(|(label, line)| Line::Labelled(label.into(), clean(line), Tone::Plain))
        .collect();
    format!(
        "\n{}",
        Grid {
            columns: Vec::new(),
            lines
        }
        .render(style)
    )
}

/// The sentences that answer, and the figures below them.
fn answer(e: &Explanation, programs: bool) -> Grid {
    let mut lines = Vec::new();
    let Some((paths, slow)) = e.paths.as_ref().zip(e.slow.as_ref()) else {
        let standing = Standing::of(e, None);
        lines.extend(
            standing
                .sentences(e)
                .iter()
                .map(|s| Line::Note(clean(s), Tone::Strong)),
        );
        lines.push(Line::Note(
            format!(
                "Its requests could not be followed: this is what its threads did. {}",
                clean(&e.source)
            ),
            Tone::Strong,
        ));
        lines.extend(of_under_way(e, None));
        let all = e.paths.as_ref().and_then(counted_all);
        lines.extend(all.map(|s| Line::Note(format!("{s}."), Tone::Plain)));
        return Grid {
            columns: Vec::new(),
            lines,
        };
    };
    let standing = Standing::of(e, (!programs).then_some(paths));
    lines.extend(
        standing
            .sentences(e)
            .iter()
            .map(|s| Line::Note(clean(s), Tone::Strong)),
    );
    let tone = if standing == Standing::Answering {
        Tone::Strong
    } else {
        Tone::Plain
    };
    let mut first = first_sentence(paths, &slow.parts, programs);
    if standing == Standing::Stuck && !programs {
        first = format!("Of those that were answered: {}", uncapitalised(&first));
    }
    let after = (standing == Standing::Answering && !programs)
        .then(|| on_the_way(&Readings::of(&e.observations), paths))
        .flatten();
    if let Some(after) = &after {
        lines.push(Line::Note(on_the_way_sentence(after, paths), Tone::Strong));
        first = format!("Until its answer is written: {}", uncapitalised(&first));
    }
    lines.push(Line::Note(clean(&first), tone));
    if standing == Standing::Answering {
        lines.extend(its_functions(paths, &slow.parts).map(|s| Line::Note(s, Tone::Strong)));
        lines.extend((!programs).then(|| Line::Note(clean(&of_slowest(slow)), Tone::Strong)));
        if !programs {
            let more = [chatty(paths), connecting(paths)];
            lines.extend(
                more.into_iter()
                    .flatten()
                    .map(|s| Line::Note(clean(&s), Tone::Strong)),
            );
        }
        lines.extend(functions_of_slow(paths, &slow.parts).map(|s| Line::Note(s, Tone::Strong)));
        let beside = e.under_way.as_ref().filter(|_| !programs);
        let beside = beside
            .map(|u| under_way::beside(u, paths))
            .unwrap_or_default();
        lines.extend(beside.iter().map(|s| Line::Note(clean(s), Tone::Strong)));
        // Nothing of what was followed is the cause of what comes after it.
        let cause = probably(e).filter(|_| after.is_none());
        lines.extend(cause.map(|sentence| Line::Note(clean(&sentence), Tone::Strong)));
    } else if standing == Standing::Stuck {
        lines.extend(its_functions(paths, &slow.parts).map(|s| Line::Note(s, Tone::Plain)));
    }
    let (seen, source) = (time(paths.seconds), clean(&paths.source));
    let none = standing.without_requests(e);
    let figures = figures(paths, programs, (&seen, &source), none);
    lines.extend(of_under_way(e, (!programs).then_some(paths)));
    lines.push(Line::Note(figures, Tone::Faint));
    lines.extend(
        e.mapped
            .iter()
            .map(|sentence| Line::Note(mapped_line(sentence), Tone::Faint)),
    );
    if paths.not_followed > TOO_LITTLE_FOLLOWED {
        let text = format!(
            "{} of the time could not be followed: no cause is confirmed by this",
            percent(paths.not_followed)
        );
        lines.push(Line::Note(text, Tone::Doubtful));
    }
    lines.extend(
        account(paths, e.check.as_ref())
            .into_iter()
            .filter(|(_, warning)| *warning)
            .map(|(s, _)| Line::Note(s, Tone::Doubtful)),
    );
    Grid {
        columns: Vec::new(),
        lines,
    }
}

/// Rate and latency of all requests, where they were counted.
fn counted_all(paths: &Paths) -> Option<String> {
    let whole = paths.counted()?;
    let [p50, p90, p99] = [whole.latency.p50, whole.latency.p90, whole.latency.p99].map(time);
    Some(format!(
        "{} requests/s, median {p50}, 90 % within {p90}, 99 % within {p99}, the longest {}: all {} of {} counted",
        significant(whole.rate()),
        time(whole.longest),
        whole.latency.count,
        time(whole.seconds)
    ))
}

/// How many requests came, how long they took, and how that is known.
fn figures(paths: &Paths, programs: bool, (seen, source): (&str, &str), none: &str) -> String {
    let requests = counted_all(paths);
    match (requests, programs) {
        (Some(requests), true) => format!(
            "{requests}, and none could be followed from beginning to end; this is the time of its processes, seen for \
             {seen} by {source}"
        ),
        (Some(requests), false) => format!(
            "{requests}; {} followed in {seen} of it, by {source}{}",
            paths.followed,
            slowed(paths)
        ),
        (None, true) => {
            format!("{none}; this is the time of its processes, seen for {seen} by {source}")
        }
        (None, false) => {
            let [p50, p90, p99] =
                [paths.latency.p50, paths.latency.p90, paths.latency.p99].map(time);
            format!(
                "{} requests/s, median {p50}, 90 % within {p90}, 99 % within {p99}: {} requests followed in {seen} of \
                 its time, by {source}{}",
                significant(paths.rate()),
                paths.followed,
                slowed(paths)
            )
        }
    }
}

/// How much longer or shorter all requests took in the mean than those that were followed, from which on it is said.
const UNLIKE_ALL: f64 = 1.25;

/// What all requests took, where those that were followed are not like them.
fn beside_all(paths: &Paths) -> String {
    let followed = paths.latency.mean;
    let all = paths.counted().map(|w| w.latency.mean);
    all.filter(|all| *all > UNLIKE_ALL * followed || followed > UNLIKE_ALL * *all)
        .map_or(String::new(), |all| {
            format!(
                ", of those that were followed; all took {} in the mean",
                time(all)
            )
        })
}

/// What state a service was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It answers, as far as is known.
    Answering,
    /// Requests have no answer for long, or longer than windows show.
    Stuck,
    /// Nothing came, and nothing is under way.
    Idle,
}

impl Standing {
    fn of(e: &Explanation, followed: Option<&Paths>) -> Standing {
        let Some(u) = &e.under_way else {
            return Standing::Answering;
        };
        let received = e
            .observations
            .iter()
            .find_map(|o| o.totals.get(RECEIVED).copied());
        if under_way::leads(u, followed) {
            Standing::Stuck
        } else if followed.is_none() && u.count == 0 && u.mean == 0.0 && received == Some(0.0) {
            Standing::Idle
        } else {
            Standing::Answering
        }
    }

    /// What comes first because of it.
    fn sentences(self, e: &Explanation) -> Vec<String> {
        match (self, &e.under_way) {
            (Standing::Stuck, Some(u)) => under_way::sentences(u),
            (Standing::Idle, Some(_)) => vec![format!(
                "The service is idle: no request came to it in {}, and none is under way.",
                time(watched(e))
            )],
            _ => Vec::new(),
        }
    }

    /// Why there is nothing to tell of requests.
    fn without_requests(self, e: &Explanation) -> &'static str {
        match (self, &e.under_way) {
            (Standing::Stuck, _) => "No request was followed from its beginning to its end",
            (Standing::Answering, Some(_)) => {
                "Bytes came in, and no request was seen while its events were taken"
            }
            _ => "No request came to it",
        }
    }
}

/// The total that says how many bytes came in at its ports.
const RECEIVED: &str = "sockets.received.bytes";

/// For how long it was watched, in seconds.
fn watched(e: &Explanation) -> f64 {
    e.observations
        .iter()
        .find_map(|o| o.totals.get("elapsed.seconds").copied())
        .unwrap_or(0.0)
}

/// Lines below the answer: what requests under way add to its figures, and what is not known of connections.
fn of_under_way(e: &Explanation, followed: Option<&Paths>) -> Vec<Line> {
    let Some(u) = &e.under_way else {
        return Vec::new();
    };
    let quiet = under_way::quiet(u).map(|s| (s, Tone::Faint));
    under_way::latency(u, followed, watched(e))
        .map(|s| (s, Tone::Faint))
        .into_iter()
        .chain(quiet)
        .map(|(s, tone)| Line::Note(clean(&s), tone))
        .collect()
}

/// A sentence as it goes on behind a colon.
fn uncapitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_lowercase().chain(letters).collect()
    })
}

/// What a load generator on another machine saw, beside what the service's sockets saw; no lines without one.
fn client(client: Option<&Beside>) -> Grid {
    let Some(client) = client else {
        return Grid::default();
    };
    let mut lines = vec![Line::Note(clean(&client.sentence), Tone::Strong)];
    let notes = client.notes.iter().enumerate();
    // What the client says against itself comes after the figures.
    lines.extend(notes.map(|(n, note)| {
        Line::Note(
            clean(note),
            if n == 0 { Tone::Faint } else { Tone::Doubtful },
        )
    }));
    lines.push(Line::Note(clean(&client.who), Tone::Faint));
    Grid {
        columns: Vec::new(),
        lines,
    }
}

/// What following takes of each request, where that is worth telling: more come, and each is shorter, when nobody
/// looks.
fn slowed(paths: &Paths) -> String {
    paths.noticeable_recording().map_or(String::new(), |cost| {
        format!(", which takes {} for each meanwhile", time(cost))
    })
}

/// The cause that is accused first, in words, where the time that requests spent does not tell it by itself.
fn probably(e: &Explanation) -> Option<String> {
    let first = e
        .findings
        .iter()
        .find(|f| f.status.accuses() && !is_of_the_load(&f.cause))?;
    let words = fingerpost_diagnose::label(&first.cause);
    let certainty = if first.status == Status::Confirmed {
        "The cause is"
    } else {
        "The cause may be"
    };
    let of = if of_programs(e) {
        "of its time"
    } else {
        "of a request"
    };
    let share = if first.share > 0.0 {
        format!(", {} {of}", percent(first.share))
    } else {
        String::new()
    };
    Some(format!("{certainty}: {words}{share}."))
}

fn largest(parts: &[SlowPart], share: fn(&SlowPart) -> f64) -> Option<&SlowPart> {
    parts.iter().max_by(|a, b| share(a).total_cmp(&share(b)))
}

/// Where in its code the largest part of the time goes.
fn its_functions(paths: &Paths, parts: &[SlowPart]) -> Option<String> {
    let most = largest(parts, |p| p.all.share)?;
    functions::where_in_code(paths, Spent::of(&most.component)?)
}

/// The same of the slowest requests, where it is something else.
fn functions_of_slow(paths: &Paths, parts: &[SlowPart]) -> Option<String> {
    let most = largest(parts, |p| p.slow.share)?;
    functions::where_slow(paths, Spent::of(&most.component)?)
}

/// What most of the time goes to, in a sentence.
fn first_sentence(paths: &Paths, parts: &[SlowPart], programs: bool) -> String {
    let Some(most) = largest(parts, |p| p.all.share) else {
        return "Nothing was seen.".into();
    };
    let who = if programs {
        "The program spends"
    } else {
        "Requests spend"
    };
    let whose = if programs { "its" } else { "their" };
    let how_much = if most.all.share > 0.5 {
        "most"
    } else {
        "the largest part"
    };
    let doing = doing(&Doing::of_part(paths, most.layer, &most.component, |l| {
        l.all.share
    }));
    let by_way = by_way_of(paths, most).map_or(String::new(), |hops| format!(", by way of {hops}"));
    let whole = if programs {
        String::new()
    } else {
        format!(" of {}{}", time(paths.latency.mean), beside_all(paths))
    };
    format!(
        "{who} {how_much} of {whose} time {doing}{by_way}: {}{whole}.",
        percent(most.all.share)
    )
}

fn budget(parts: &[SlowPart], programs: bool) -> Grid {
    let mut grid = Grid::titled([
        (
            if programs {
                "where the time went"
            } else {
                "where a request's time went"
            },
            Align::Left,
            0,
        ),
        ("layer", Align::Left, 3),
        ("all", Align::Right, 0),
        ("share", Align::Right, 0),
        ("slowest 1 %", Align::Right, 0),
        ("", Align::Left, 4),
    ]);
    let mut start = 0.0;
    for p in parts.iter().take(PARTS) {
        let slowest = if programs {
            String::new()
        } else {
            time(p.slow.seconds)
        };
        let cells = vec![
            of_program(&p.component),
            p.layer.to_string(),
            time(p.all.seconds),
            percent(p.all.share),
            slowest,
            bar(start, p.all.share),
        ];
        grid.lines.push(Line::Cells(cells, Tone::Plain));
        start += p.all.share;
    }
    if parts.len() > PARTS {
        let sum = |of: fn(&SlowPart) -> f64| parts[PARTS..].iter().map(of).sum::<f64>();
        let slowest = if programs {
            String::new()
        } else {
            time(sum(|p| p.slow.seconds))
        };
        let cells = vec![
            format!("{} smaller parts", parts.len() - PARTS),
            String::new(),
            time(sum(|p| p.all.seconds)),
            percent(sum(|p| p.all.share)),
            slowest,
            bar(start, sum(|p| p.all.share)),
        ];
        grid.lines.push(Line::Cells(cells, Tone::Faint));
    }
    grid
}

/// The accused with their first figures.
fn suspects(e: &Explanation) -> Grid {
    let accused: Vec<Finding> = e
        .findings
        .iter()
        .filter(|f| f.status.accuses())
        .cloned()
        .collect();
    if accused.is_empty() {
        Grid::default()
    } else {
        suspects_grid(&accused, e.whose(), EVIDENCE)
    }
}

/// Others who had what requests waited for: a process, and its control group where that is not the service's.
fn others(paths: &Paths, programs: bool) -> Grid {
    let mut found: Vec<(Blocker, Component, f64, f64)> = Vec::new();
    let others = paths.leaves.iter().filter_map(|leaf| {
        let blocker = leaf.blocker.as_ref()?;
        matches!(blocker, Blocker::Thread(_) | Blocker::Peer(_)).then(|| (leaf, blocker.by_name()))
    });
    for (leaf, blocker) in others {
        let (_, component) = Place::of(leaf).component(leaf);
        match found
            .iter_mut()
            .find(|f| f.0 == blocker && f.1 == component)
        {
            Some(known) => {
                known.2 += leaf.all.share;
                known.3 += leaf.slow.share;
            }
            None => found.push((blocker, component, leaf.all.share, leaf.slow.share)),
        }
    }
    found.retain(|f| f.2.max(f.3) >= WORTH_NAMING);
    found.sort_by(|a, b| b.2.max(b.3).total_cmp(&a.2.max(a.3)));
    if found.is_empty() {
        return Grid::default();
    }
    let mut grid = Grid::titled([
        ("who else", Align::Left, 0),
        ("in", Align::Left, 1),
        ("all", Align::Right, 0),
        ("slowest 1 %", Align::Right, 0),
    ]);
    for (blocker, component, all, slow) in found.into_iter().take(OTHERS) {
        let slow = if programs {
            String::new()
        } else {
            percent(slow)
        };
        grid.lines.push(Line::Cells(
            vec![clean(&who(&blocker)), part(&component), percent(all), slow],
            Tone::Plain,
        ));
    }
    grid
}

#[cfg(test)]
mod tests {
    use fingerpost_diagnose::StepFigures;
    use fingerpost_record::fixture::followed;
    use fingerpost_record::under_way::{Progress, Request, UnderWay};
    use fingerpost_record::{Observation, Params};

    use super::*;

    fn explanation(totals: &[(&str, f64)]) -> Explanation {
        let mut paths = followed::slow_locks().paths.remove(0);
        paths.whole = None;
        let observation = Observation {
            workload: WORKLOAD.into(),
            params: Params::new(),
            observer: "step".into(),
            source: "made up".into(),
            totals: totals.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
            ..Observation::default()
        };
        let figures = StepFigures {
            transactions: 100,
            elapsed_s: 1.0,
            ..StepFigures::default()
        };
        Explanation::new(
            WORKLOAD,
            &Params::new().with("name", "shop"),
            &figures,
            Some(&paths),
            vec![observation],
        )
    }

    fn screen(e: &Explanation, style: &Style) -> String {
        use crate::document::terminal;
        terminal::render(
            &super::super::document::sections(std::slice::from_ref(e)),
            style,
        )
    }

    #[test]
    fn the_answer_comes_first_and_all_fits_on_one_screen() {
        let text = screen(
            &explanation(&[
                ("server.call.read.count", 1300.0),
                ("other.cpu.seconds", 0.5),
            ]),
            &Style::default(),
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "service name=shop");
        assert!(
            lines[1].contains("Requests spend the largest part of their time"),
            "{text}"
        );
        assert!(
            lines[2].contains("take longer waiting for a lock held by mariadbd"),
            "{text}"
        );
        assert!(lines[3].starts_with("    The cause is: "), "{text}");
        assert!(lines[4].contains("requests/s, median"), "{text}");
        assert!(
            text.contains("who else") && text.contains("stress") && text.contains("ruled out"),
            "{text}"
        );
        assert!(
            !text.contains("transaction") && !text.contains("server user code"),
            "{text}"
        );
        assert!(lines.len() <= 50, "{} lines: {text}", lines.len());
    }

    #[test]
    fn lately_is_told_with_the_largest_part_first() {
        let (sentence, parts) = lately(&followed::slow_locks().paths[0]).unwrap();
        assert!(
            sentence.starts_with("Requests spend the largest part of their time"),
            "{sentence}"
        );
        let mut larger = slow_ones(&followed::slow_locks().paths[0]).unwrap().parts;
        larger[0].all.share = 0.6;
        assert!(
            first_sentence(&followed::slow_locks().paths[0], &larger, true)
                .starts_with("The program spends most of its time")
        );
        assert!(
            parts.is_sorted_by(|a, b| a.all >= b.all) && parts.iter().any(|p| p.name == OWN_CODE)
        );
        assert!(lately(&Paths::default()).is_none());
    }

    #[test]
    fn all_requests_are_told_where_they_were_counted_and_no_request_is_said_only_where_none_came() {
        let mut paths = followed::slow_locks().paths.remove(0);
        let mut whole = paths.whole.take().unwrap();
        let none = Standing::Answering.without_requests(&explanation(&[]));
        let told = |paths: &Paths, programs| figures(paths, programs, ("1 s", "programs"), none);
        assert!(told(&paths, false).ends_with("of its time, by programs"));
        assert!(told(&paths, true).starts_with("No request came to it"));
        (whole.latency.count, whole.seconds, whole.longest) = (500, 10.0, 3.5);
        paths.whole = Some(whole.clone());
        let text = told(&paths, false);
        assert!(
            text.starts_with("50.00 requests/s")
                && text.contains("the longest 3.500 s: all 500 of 10.00 s counted"),
            "{text}"
        );
        assert!(told(&paths, true).contains("none could be followed from beginning to end"));
        whole.latency.count = 0;
        paths.whole = Some(whole);
        assert!(told(&paths, true).starts_with(none));
    }

    #[test]
    fn answers_that_lie_in_the_socket_for_longer_than_requests_took_come_first() {
        let mut e = explanation(&[("elapsed.seconds", 10.0), ("tcp.delayed_acks", 0.0)]);
        let paths = e.paths.clone().unwrap();
        let lines = |e: &Explanation| {
            let text = screen(e, &Style::default());
            text.lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert!(lines(&e).contains("The cause is") && !lines(&e).contains("Clients wait longest"));
        let many = 40.0 * paths.rate() * paths.latency.mean;
        let totals = &mut e.observations[0].totals;
        totals.insert("queue.network.mean".into(), many.max(1.0));
        totals.insert("tcp.delayed_acks".into(), 10.0 * paths.rate());
        let text = lines(&e);
        assert!(
            text.contains("Clients wait longest when the answer is written"),
            "{text}"
        );
        assert!(
            text.contains("(1.000 delayed") && !text.contains("The cause is"),
            "{text}"
        );
    }

    #[test]
    fn what_following_takes_of_short_requests_is_told() {
        let mut paths = followed::slow_locks().paths.remove(0);
        let of_a_request = |share: f64, paths: &Paths| {
            share * paths.latency.mean * paths.requests() / paths.events as f64
        };
        paths.event_cost = of_a_request(0.02, &paths);
        assert_eq!(slowed(&paths), "", "little of it is no news");
        paths.event_cost = of_a_request(0.1, &paths);
        assert_eq!(
            slowed(&paths),
            format!(
                ", which takes {} for each meanwhile",
                time(0.1 * paths.latency.mean)
            )
        );
    }

    #[test]
    fn what_a_service_does_for_its_load_is_no_accusation_in_the_answer() {
        let mut e = explanation(&[]);
        let finding = |cause: &str, status| Finding {
            cause: cause.into(),
            layer: fingerpost_record::Layer::Cpu,
            status,
            share: 0.5,
            evidence: vec![],
            step: None,
            relation: None,
        };
        e.findings = vec![
            finding("app.work", Status::Likely),
            finding("cpu.quota", Status::Likely),
        ];
        assert_eq!(
            probably(&e).as_deref(),
            Some("The cause may be: CPU quota, 50.0 % of a request.")
        );
        e.findings.pop();
        assert_eq!(probably(&e), None);
    }

    #[test]
    fn a_program_without_requests_is_told_as_one() {
        let text = screen(
            &explanation(&[(PROGRAMS.as_str(), 1.0), ("server.call.read.count", 1300.0)]),
            &Style::default(),
        );
        assert!(
            text.contains("The program spends the largest part of its time")
                && text.contains("No request came to it"),
            "{text}"
        );
        for word in [
            "transaction",
            "request's",
            "of a request",
            "the server used",
        ] {
            assert!(!text.contains(word), "“{word}” in {text}");
        }
    }

    #[test]
    fn where_nothing_was_followed_the_threads_are_told() {
        let e = Explanation {
            paths: None,
            slow: None,
            ..explanation(&[])
        };
        assert!(screen(&e, &Style::default()).contains("could not be followed"));
        assert_eq!(closer(&[], &Style::default()), "");
        assert!(closer(&["a".into(), "b".into()], &Style::default()).contains("look closer"));
    }

    fn under_way(ages: &[f64]) -> UnderWay {
        let requests = ages.iter().map(|age_s| Request {
            age_s: *age_s,
            progress: Progress::NotAccepted,
            ..Request::default()
        });
        UnderWay {
            looks: 40,
            mean: ages.len() as f64,
            count: ages.len() as u64,
            requests: requests.collect(),
            ..UnderWay::default()
        }
    }

    #[test]
    fn an_outage_is_no_idle_service_and_an_idle_service_is_called_so() {
        let of = |ages: &[f64], received: f64| {
            let totals = [
                (PROGRAMS.as_str(), 1.0),
                ("elapsed.seconds", 10.0),
                (RECEIVED, received),
            ];
            let mut e = explanation(&totals);
            e.under_way = Some(under_way(ages));
            screen(&e, &Style::default())
        };
        let outage = of(&[31.0, 24.0], 0.0);
        let lines: Vec<&str> = outage.lines().collect();
        assert!(
            lines[1].contains("2 of 2 requests under way have had no answer for 24 s to 31 s"),
            "{outage}"
        );
        assert!(!outage.contains("No request came") && !outage.contains("The cause"));
        let idle = of(&[], 0.0);
        let first = idle.lines().nth(1).unwrap();
        assert!(
            first.contains("The service is idle: no request came to it in 10.00 s"),
            "{idle}"
        );
        assert!(!idle.contains("The cause"), "{idle}");
        let missed = of(&[], 700.0);
        assert!(
            missed.contains("Bytes came in, and no request was seen while its events were taken"),
            "{missed}"
        );
        assert!(
            !missed.contains("idle:") && !missed.contains("No request came"),
            "{missed}"
        );
    }

    #[test]
    fn requests_that_windows_cannot_show_come_before_those_that_they_show() {
        let mut e = explanation(&[("elapsed.seconds", 10.0)]);
        let paths = e.paths.clone().unwrap();
        let many = (3.5 * paths.rate() * paths.latency.mean).ceil().max(1.0);
        e.under_way = Some(under_way(&vec![9.0; many as usize]));
        let text = screen(&e, &Style::default());
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].contains("requests under way have had no answer for 9.0 s"),
            "{text}"
        );
        assert!(
            text.contains("Of those that were answered: requests spend"),
            "{text}"
        );
        assert!(!text.contains("The cause is"), "{text}");
        e.under_way = Some(under_way(&[]));
        assert!(screen(&e, &Style::default()).contains("The cause is"));
    }
}
