//! What followed requests add to an explanation: the classes of requests beside each other, the chains of waits, the
//! slowest requests.

use fingerpost_diagnose::check::Check;
use fingerpost_diagnose::slow::{SlowOnes, SlowPart};
use fingerpost_record::paths::{Latency, Leaf, SlowSpan};
use fingerpost_record::text::counted;
use fingerpost_record::{Component, Paths};

use super::pieces::{BAR, bar};
use crate::grid::{Align, Grid, Line};
use crate::style::Tone;
use crate::wording::chain;
use crate::words::{blocked_by, clean, part, percent, time};

/// Parts, chains and spans below this share are in the sums, and not in the picture.
const SMALL: f64 = 0.005;
/// Chains of waits that a terminal shows.
const CHAINS: usize = 8;
/// Slow requests that a terminal shows, and the longest stretches of each.
const SLOWEST: usize = 3;
/// See [`SLOWEST`].
const STRETCHES: usize = 6;

/// How requests were followed, a sentence each, and whether it is a warning.
pub(crate) fn account(paths: &Paths, check: Option<&Check>) -> Vec<(String, bool)> {
    let lost = if paths.lost > 0 {
        format!(", {} lost", paths.lost)
    } else {
        String::new()
    };
    let mut told = vec![(
        format!(
            "{} followed ({} cut by a window's ends) by {} in {} of {} together; {}{lost}; following took {} of CPU",
            counted(paths.followed, "request"),
            paths.cut,
            clean(&paths.source),
            counted(paths.windows, "window"),
            time(paths.seconds),
            counted(paths.events, "event"),
            time(paths.self_cost)
        ),
        false,
    )];
    if let Some(why) = &paths.no_programs {
        let sentence = format!(
            "not seen, perhaps: what happened while a CPU was idle, which perf leaves out; programs in the kernel, which \
             see it, were not possible: {}",
            clean(why)
        );
        told.push((sentence, true));
    }
    told.push((format!("followed: {}", latency(&paths.latency)), false));
    if let Some((generator, check)) = paths.generator.as_ref().zip(check) {
        // Adding nothing makes what is rounded to nothing from below +0.0.
        let off = |d: f64| format!("{:+.1} %", (d * 1000.0).round() / 10.0 + 0.0);
        let (account, [n, p50, p99]) = (
            latency(generator),
            [check.count, check.p50, check.p99].map(off),
        );
        let differ = format!(
            "the followed differ by {n} in number, {p50} in the median, {p99} in the 99th percentile"
        );
        told.push((format!("load generator: {account}; {differ}"), false));
        told.extend(check.warnings.iter().map(|w| (w.clone(), true)));
    }
    told
}

fn latency(l: &Latency) -> String {
    let requests = counted(l.count, "request");
    format!(
        "{requests}, mean {}, median {}, 90 % within {}, 99 % within {}",
        time(l.mean),
        time(l.p50),
        time(l.p90),
        time(l.p99)
    )
}

/// Rows of the table of classes: the parts of all requests in the order of their size, what is small together, the rest
/// last.
pub(crate) fn rows(slow: &SlowOnes) -> Vec<SlowPart> {
    let (mut large, small): (Vec<SlowPart>, Vec<SlowPart>) =
        slow.parts.iter().cloned().partition(|p| {
            [p.all.share, p.middle.share, p.slow.share]
                .iter()
                .any(|share| *share >= SMALL)
                || p.component == Component::NotFollowed
        });
    large.sort_by(|a, b| {
        (a.component == Component::NotFollowed)
            .cmp(&(b.component == Component::NotFollowed))
            .then(b.all.share.total_cmp(&a.all.share))
    });
    if let Some(mut sum) = small.first().cloned() {
        for p in &small[1..] {
            for (to, from) in [
                (&mut sum.all, p.all),
                (&mut sum.middle, p.middle),
                (&mut sum.slow, p.slow),
            ] {
                to.seconds += from.seconds;
                to.share += from.share;
            }
            sum.of_difference += p.of_difference;
        }
        sum.component = Component::Other("parts too small to show".into());
        let at = large
            .iter()
            .position(|p| p.component == Component::NotFollowed)
            .unwrap_or(large.len());
        large.insert(at, sum);
    }
    large
}

/// The budget of all requests beside that of the middle and of the slowest.
pub(super) fn classes(slow: &SlowOnes) -> Grid {
    let mut grid = Grid::titled([
        ("where a request's time went", Align::Left, 0),
        ("layer", Align::Left, 3),
        ("all", Align::Right, 0),
        ("share", Align::Right, 0),
        ("middle", Align::Right, 1),
        ("slowest 1 %", Align::Right, 0),
        ("", Align::Left, 4),
    ]);
    let mut start = 0.0;
    for p in rows(slow) {
        let rest = p.component == Component::NotFollowed;
        let cells = vec![
            part(&p.component),
            if rest {
                String::new()
            } else {
                p.layer.to_string()
            },
            time(p.all.seconds),
            percent(p.all.share),
            time(p.middle.seconds),
            time(p.slow.seconds),
            bar(start, p.all.share),
        ];
        let tone = match rest {
            true if p.all.share > 0.15 => Tone::Doubtful,
            true => Tone::Faint,
            false => Tone::Plain,
        };
        grid.lines.push(Line::Cells(cells, tone));
        start += p.all.share;
    }
    grid
}

/// The leaves at the end of chains, the largest first; of those below [`SMALL`] none.
pub(crate) fn chains(paths: &Paths) -> Vec<&Leaf> {
    let mut leaves: Vec<&Leaf> = paths
        .leaves
        .iter()
        .filter(|l| !l.chain.is_empty() && (l.all.share >= SMALL || l.slow.share >= SMALL))
        .collect();
    leaves
        .sort_by(|a, b| (b.all.share.max(b.slow.share)).total_cmp(&a.all.share.max(a.slow.share)));
    leaves
}

/// The chains of waits, the largest first.
pub(super) fn chain_grid(paths: &Paths) -> Grid {
    let mut grid = Grid::titled(CHAIN_COLUMNS);
    let line = |leaf| Line::Cells(chain_cells(leaf).to_vec(), Tone::Plain);
    grid.lines
        .extend(chains(paths).into_iter().take(CHAINS).map(line));
    if grid.lines.len() == 1 {
        Grid::default()
    } else {
        grid
    }
}

/// The columns of [`chain_cells`].
pub(super) const CHAIN_COLUMNS: [(&str, Align, u8); 4] = [
    ("chain of waits", Align::Left, 0),
    ("with", Align::Left, 1),
    ("all", Align::Right, 0),
    ("slowest 1 %", Align::Right, 0),
];

/// A chain, who had what was waited for, and its share of all requests and of the slowest.
pub(super) fn chain_cells(leaf: &Leaf) -> [String; 4] {
    [
        clean(&chain(&leaf.chain, &leaf.component().1)),
        blocked_by(leaf.blocker.as_ref()),
        percent(leaf.all.share),
        percent(leaf.slow.share),
    ]
}

/// The slowest requests, a few longest stretches of each in the order of time.
pub(super) fn slowest_grid(paths: &Paths) -> Grid {
    let mut grid = Grid::titled([
        ("slowest requests", Align::Left, 0),
        ("with", Align::Left, 1),
        ("after", Align::Right, 0),
        ("for", Align::Right, 0),
        ("", Align::Left, 4),
    ]);
    for slow in paths.slowest.iter().take(SLOWEST) {
        grid.lines
            .push(Line::Heading(format!("{} long", time(slow.seconds))));
        // Those that can be seen on a bar.
        let seen = slow
            .spans
            .iter()
            .filter(|s| s.seconds * BAR as f64 >= slow.seconds / 2.0);
        for span in longest(seen, STRETCHES) {
            let name = chain(&span.chain, &span.component().1);
            let whole = slow.seconds.max(f64::MIN_POSITIVE);
            let cells = vec![
                clean(&name),
                blocked_by(span.blocker.as_ref()),
                time(span.at),
                time(span.seconds),
                bar(span.at / whole, span.seconds / whole),
            ];
            grid.lines.push(Line::Cells(cells, Tone::Plain));
        }
    }
    if paths.slowest.is_empty() {
        Grid::default()
    } else {
        grid
    }
}

/// The longest of a slow request's stretches, so many at most, in the order of time.
pub(crate) fn longest<'a>(
    spans: impl IntoIterator<Item = &'a SlowSpan>,
    most: usize,
) -> Vec<&'a SlowSpan> {
    let mut spans: Vec<&SlowSpan> = spans.into_iter().collect();
    spans.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    spans.truncate(most);
    spans.sort_by(|a, b| a.at.total_cmp(&b.at));
    spans
}
