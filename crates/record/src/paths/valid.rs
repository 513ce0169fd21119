//! What followed requests may say, and their strings made safe to show.

use super::{
    Latency, Leaf, MOST_ASKED, MOST_CHAIN, MOST_LEAVES, MOST_NAME, MOST_PATHS, MOST_ROUTES,
    MOST_SLOWEST, MOST_SPANS, Paths, Share, Slow,
};
use crate::component::{Blocker, WaitClass};
use crate::range::{amounts, each, no_more};
use crate::stacks::{self, MOST_GRAPHS};
use crate::text::clean_short;

/// How far rounding may carry a share beyond 1, or a span beyond its request.
const ROUNDING: f64 = 1e-6;

/// Says what in the paths of a run cannot be, if anything.
pub(crate) fn valid(paths: &[Paths]) -> Result<(), String> {
    if paths.len() > MOST_PATHS {
        return Err(format!(
            "it has the paths of {} steps, more than {MOST_PATHS}",
            paths.len()
        ));
    }
    each("paths", paths, one)
}

/// Says what in the paths of one step cannot be, if anything.
pub(crate) fn one(p: &Paths) -> Result<(), String> {
    amounts(
        "it",
        [
            p.seconds,
            p.self_cost,
            p.event_cost,
            p.whole_rate.unwrap_or(0.0),
        ],
    )?;
    share("not_followed", p.not_followed)?;
    latency(&p.latency)?;
    if let Some(w) = &p.whole {
        amounts("its whole look", [w.seconds, w.longest, w.unread, w.oldest])?;
        latency(&w.latency)?;
    }
    p.generator.iter().try_for_each(latency)?;
    no_more("leaves", p.leaves.len(), MOST_LEAVES)?;
    each("leaves", &p.leaves, leaf)?;
    no_more("services asked", p.asked.len(), MOST_ASKED)?;
    p.asked
        .iter()
        .try_for_each(|a| amounts("what was asked", [a.seconds]))?;
    no_more("routes", p.routes.len(), MOST_ROUTES)?;
    each("routes", &p.routes, |r| {
        no_more("hops of it", r.hops.len(), MOST_CHAIN)?;
        if r.leaf as usize >= p.leaves.len() {
            return Err(format!("it is of leaf {} of {}", r.leaf, p.leaves.len()));
        }
        Ok(())
    })?;
    let sums: [fn(&Leaf) -> f64; 3] = [|l| l.all.share, |l| l.middle.share, |l| l.slow.share];
    for sum in sums.map(|of| p.leaves.iter().map(of).sum::<f64>()) {
        share("the sum of its leaves", sum)?;
    }
    // What was not followed may have a leaf, too.
    let followed = p
        .leaves
        .iter()
        .filter(|l| l.class != WaitClass::NotFollowed)
        .map(|l| l.all.share)
        .sum::<f64>();
    share(
        "the sum of its leaves with what was not followed",
        followed + p.not_followed,
    )?;
    p.stacks.iter().try_for_each(stacks::valid)?;
    no_more("graphs", p.graphs.len(), MOST_GRAPHS)?;
    each("graphs", &p.graphs, |g| stacks::valid(&g.stacks))?;
    no_more("slowest", p.slowest.len(), MOST_SLOWEST)?;
    each("slowest", &p.slowest, slow)
}

/// Every string of the paths but for the parameters.
pub(crate) fn texts(p: &mut Paths) -> Vec<&mut String> {
    let mut all = vec![&mut p.workload, &mut p.source];
    all.extend(p.whole.iter_mut().map(|w| &mut w.source));
    for l in &mut p.leaves {
        all.extend(l.class.text_mut());
        all.extend(l.blocker.iter_mut().flat_map(Blocker::texts));
    }
    all.extend(p.asked.iter_mut().map(|a| &mut a.name));
    all.extend(
        p.routes
            .iter_mut()
            .flat_map(|r| &mut r.hops)
            .map(|hop| &mut hop.name),
    );
    for s in p
        .stacks
        .iter_mut()
        .chain(p.graphs.iter_mut().map(|g| &mut g.stacks))
    {
        all.push(&mut s.source);
        all.extend(&mut s.functions);
    }
    for s in p.slowest.iter_mut().flat_map(|s| &mut s.spans) {
        all.extend(s.class.text_mut());
        all.extend(s.blocker.iter_mut().flat_map(Blocker::texts));
    }
    all
}

/// Makes every string of the paths safe to show and as short as a record may hold.
pub(crate) fn clean(p: &mut Paths) {
    texts(p)
        .into_iter()
        .for_each(|text| *text = clean_short(text, MOST_NAME));
}

fn share(what: &str, value: f64) -> Result<(), String> {
    if (0.0..=1.0 + ROUNDING).contains(&value) {
        Ok(())
    } else {
        Err(format!("{what} is {value}, no share from 0 to 1"))
    }
}

fn latency(l: &Latency) -> Result<(), String> {
    amounts("a latency", [l.mean, l.p50, l.p90, l.p99])?;
    if l.p50 > l.p90 || l.p90 > l.p99 {
        return Err(format!(
            "the percentiles {}, {} and {} of a latency fall",
            l.p50, l.p90, l.p99
        ));
    }
    Ok(())
}

fn leaf(l: &Leaf) -> Result<(), String> {
    if matches!(&l.class, WaitClass::Unknown(_, name) | WaitClass::SystemCall(name) if name.is_empty())
    {
        return Err("it has no component".into());
    }
    no_more("links in its chain", l.chain.len(), MOST_CHAIN)?;
    [l.all, l.middle, l.slow].into_iter().try_for_each(part)
}

fn part(s: Share) -> Result<(), String> {
    // The ends of a bootstrap's interval are estimates: they may lie beyond what a share can be.
    amounts("a share", [s.seconds, s.low.abs(), s.high.abs()])?;
    share("a share", s.share)?;
    if s.low > s.high {
        Err(format!("an interval from {} to {} is none", s.low, s.high))
    } else {
        Ok(())
    }
}

fn slow(s: &Slow) -> Result<(), String> {
    amounts("it", [s.seconds])?;
    no_more("spans", s.spans.len(), MOST_SPANS)?;
    let (mut end, slack) = (0.0, s.seconds * ROUNDING);
    for (i, span) in s.spans.iter().enumerate() {
        amounts("a span", [span.at, span.seconds])?;
        no_more("links in a chain", span.chain.len(), MOST_CHAIN)?;
        if span.at < end - slack {
            return Err(format!("spans[{i}] begins before the one before it ends"));
        }
        end = span.at + span.seconds;
    }
    if end > s.seconds + slack {
        Err("its last span ends after it".into())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::Link;
    use crate::fixture::followed;
    use crate::stacks::{RequestStacks, Stack, Stacks};

    #[test]
    fn realistic_paths_are_valid() {
        assert_eq!(valid(&followed::healthy().paths), Ok(()));
        assert_eq!(valid(&followed::slow_locks().paths), Ok(()));
        let mut with_leaf = followed::healthy().paths;
        let (share, mut leaf) = (with_leaf[0].not_followed, with_leaf[0].leaves[0].clone());
        leaf.class = WaitClass::NotFollowed;
        leaf.all = Share {
            share,
            low: share,
            high: share,
            ..leaf.all
        };
        leaf.middle = leaf.all;
        leaf.slow = leaf.all;
        with_leaf[0].leaves.push(leaf);
        assert_eq!(
            valid(&with_leaf),
            Ok(()),
            "what was not followed is a leaf, too"
        );
        assert_eq!(
            valid(&[Paths::default()]),
            Ok(()),
            "a step whose requests could not be followed"
        );
    }

    #[test]
    fn each_impossible_statement_is_named_with_its_place() {
        type Spoil = fn(&mut Paths);
        let cases: Vec<(&str, Spoil)> = vec![
            ("amount", |p| p.seconds = -1.0),
            ("amount", |p| p.self_cost = f64::INFINITY),
            ("not_followed", |p| p.not_followed = 1.5),
            ("not_followed", |p| p.not_followed = f64::NAN),
            ("fall", |p| p.latency.p50 = 1.0),
            ("amount", |p| p.generator.as_mut().unwrap().mean = f64::NAN),
            ("more than 400", |p| {
                p.leaves = vec![p.leaves[0].clone(); 401]
            }),
            ("leaves[1]: it has no component", |p| {
                p.leaves[1].class = WaitClass::SystemCall(String::new())
            }),
            ("more than 16", |p| p.leaves[0].chain = vec![Link::Lock; 17]),
            ("leaves[2]: an interval", |p| p.leaves[2].all.low = 0.9),
            ("leaves[0]: a share is -0.1", |p| {
                p.leaves[0].slow.share = -0.1
            }),
            ("the sum of its leaves", |p| {
                p.leaves.iter_mut().for_each(|l| l.middle.share = 0.9)
            }),
            ("with what was not followed", |p| p.not_followed = 0.9),
            ("more than 20", |p| {
                p.slowest = vec![p.slowest[0].clone(); 21]
            }),
            ("more than 200", |p| {
                p.slowest[0].spans = vec![p.slowest[0].spans[0].clone(); 201]
            }),
            ("more than 6", |p| {
                p.graphs = vec![RequestStacks::default(); 7]
            }),
            ("graphs[0]: a stack has function 3", |p| {
                let stack = Stack {
                    frames: vec![3],
                    samples: 1,
                };
                p.graphs = vec![RequestStacks {
                    stacks: Stacks {
                        stacks: vec![stack],
                        ..Stacks::default()
                    },
                    ..RequestStacks::default()
                }];
            }),
            ("slowest[0]: spans[1] begins before", |p| {
                p.slowest[0].spans[1].at = 0.0
            }),
            ("slowest[1]: its last span ends after it", |p| {
                p.slowest[1].seconds /= 2.0
            }),
        ];
        for (expected, spoil) in cases {
            let mut paths = followed::slow_locks().paths;
            spoil(&mut paths[0]);
            let message = valid(&paths).expect_err(expected);
            assert!(
                message.contains(expected) && message.starts_with("paths[0]"),
                "{message} should name {expected}"
            );
        }
        let many = vec![Paths::default(); MOST_PATHS + 1];
        assert!(valid(&many).unwrap_err().contains("more than 200"));
    }

    #[test]
    fn strings_are_cleaned_and_cut() {
        let mut paths = followed::slow_locks().paths.remove(0);
        paths.leaves[0].blocker = Some(Blocker::thread("\u{1b}[31mred"));
        paths.leaves[1].class = WaitClass::SystemCall("a\u{202e}b".into());
        paths.slowest[0].spans[0].class = WaitClass::SystemCall("x".repeat(5000));
        clean(&mut paths);
        assert_eq!(
            paths.leaves[0].blocker,
            Some(Blocker::thread("\u{fffd}[31mred"))
        );
        assert_eq!(
            paths.leaves[1].class,
            WaitClass::SystemCall("a\u{fffd}b".into())
        );
        let WaitClass::SystemCall(long) = &paths.slowest[0].spans[0].class else {
            panic!("{:?}", paths.slowest[0].spans[0].class);
        };
        assert!(long.chars().count() <= MOST_NAME + 1);
    }
}
