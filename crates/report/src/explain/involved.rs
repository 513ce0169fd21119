//! What a request's time has to do with others: by way of whom it waited, how often it asked them, what its clients'
//! connections take, and how long its answer is on the way.

use fingerpost_diagnose::outside::OnTheWay;
use fingerpost_diagnose::places::Place;
use fingerpost_diagnose::slow::SlowPart;
use fingerpost_record::paths::{Hop, Leaf};
use fingerpost_record::unit::significant;
use fingerpost_record::{Blocker, Component, Link, Paths};

use crate::words::{percent, time};

/// Questions of one request to another service from which on they are many.
const MANY_ASKED: f64 = 10.0;
/// The share of requests' time that such questions take at least.
const PART_OF_ASKED: f64 = 0.2;
/// Connections for a request from which on it is told that they are opened.
const MANY_OPENED: f64 = 0.05;

/// How long answers are on their way, and what that says.
pub(super) fn on_the_way_sentence(after: &OnTheWay, paths: &Paths) -> String {
    let why = if after.waits_for_acknowledgements() {
        format!(
            "its last bytes wait in the socket for an acknowledgement that the other end delays ({} delayed \
             acknowledgements a request): small writes, one answer in several of them, without TCP_NODELAY",
            significant(after.delayed_acks.unwrap_or(0.0))
        )
    } else {
        "its last bytes lie in the socket or on the network".to_owned()
    };
    format!(
        "Clients wait longest when the answer is written: {} in the mean until it has arrived, beside {} before: {why}.",
        time(after.seconds),
        time(paths.mean())
    )
}

/// Where requests ask another service very often, one question after the other, as in a loop over rows.
pub(super) fn chatty(paths: &Paths) -> Option<String> {
    let most = paths.asked.iter().max_by_key(|a| a.turns)?;
    let requests = paths.followed as f64;
    let (each, time_each) = (most.turns as f64 / requests, most.seconds / requests);
    let share = time_each / paths.latency.mean;
    let many = each >= MANY_ASKED && share >= PART_OF_ASKED;
    let whom = if most.name.is_empty() {
        "another service"
    } else {
        &most.name
    };
    many.then(|| {
        format!(
            "A request asks {whom} {each:.0} times, one after the other, which takes {}: {} of it.",
            time(time_each),
            percent(share.min(1.0))
        )
    })
}

/// Where connections are opened for few requests each: what that takes lies before the first.
pub(super) fn connecting(paths: &Paths) -> Option<String> {
    let whole = paths.counted()?;
    let each = whole.opened as f64 / whole.latency.count as f64;
    let rate = whole.opened as f64 / whole.seconds;
    (each >= MANY_OPENED && rate >= 1.0).then(|| {
        format!(
            "Clients opened {} connections a second, one for {} requests: accepting each, a process or thread for it, \
             and its greeting and authentication are part of what they wait for.",
            significant(rate),
            significant(1.0 / each)
        )
    })
}

/// By way of whom the largest leaf of a part came about: all hops but the last, which the part names itself, unless that
/// is by a lock, which it does not.
pub(super) fn by_way_of(paths: &Paths, part: &SlowPart) -> Option<String> {
    let of_part = |l: &Leaf| Place::of(l).component(l) == (part.layer, part.component.clone());
    let (place, largest) = paths
        .leaves
        .iter()
        .enumerate()
        .filter(|(_, l)| of_part(l))
        .max_by(|(_, a), (_, b)| a.all.share.total_cmp(&b.all.share))?;
    let route = paths.routes.iter().find(|r| r.leaf as usize == place)?;
    let itself = largest.blocker.as_ref().and_then(Blocker::task);
    let is_itself = |hop: &Hop| itself.is_some_and(|task| task.name() == hop.name);
    let last = route.hops.len().checked_sub(1)?;
    // That it is a lock, and whose, the part says.
    let is_lock = part.component == Component::Lock;
    let hops: Vec<String> = route
        .hops
        .iter()
        .enumerate()
        .filter(|(at, hop)| {
            let told = *at == last && (is_lock || is_itself(hop) && hop.link != Link::Lock);
            !(hop.name.is_empty() || told)
        })
        .map(|(_, hop)| match hop.link {
            Link::Lock => format!("a lock that {} has", hop.name),
            _ => hop.name.clone(),
        })
        .collect();
    (!hops.is_empty()).then(|| hops.join(" → "))
}

#[cfg(test)]
mod tests {
    use fingerpost_diagnose::slow::slow_ones;
    use fingerpost_record::fixture::followed;
    use fingerpost_record::paths::{Asked, Route};

    use super::*;

    #[test]
    fn the_way_to_who_was_waited_for_is_told_by_those_between() {
        let mut paths = followed::slow_locks().paths.remove(0);
        let slow = slow_ones(&paths).unwrap();
        let most = slow
            .parts
            .iter()
            .max_by(|a, b| a.all.share.total_cmp(&b.all.share))
            .unwrap();
        let leaf = paths
            .leaves
            .iter()
            .position(|l| Place::of(l).component(l) == (most.layer, most.component.clone()))
            .unwrap();
        let hop = |link, name: &str| Hop {
            link,
            name: name.into(),
        };
        paths.leaves[leaf].blocker = Some(Blocker::thread("batch"));
        let hops = vec![
            hop(Link::Peer, "gunicorn"),
            hop(Link::Lock, "postgres"),
            hop(Link::Peer, "batch"),
        ];
        paths.routes = vec![Route {
            leaf: leaf as u32,
            hops,
        }];
        assert_eq!(
            by_way_of(&paths, most).as_deref(),
            Some("gunicorn → a lock that postgres has")
        );
        paths.routes[0].hops.truncate(0);
        assert_eq!(by_way_of(&paths, most), None);
    }

    #[test]
    fn many_questions_and_short_connections_are_told() {
        let mut paths = followed::slow_locks().paths.remove(0);
        assert_eq!((chatty(&paths), connecting(&paths)), (None, None));
        paths.asked = vec![Asked {
            name: "redis-server".into(),
            turns: 150 * paths.followed,
            seconds: 0.5 * paths.latency.mean * paths.followed as f64,
        }];
        let told = chatty(&paths).unwrap();
        assert!(
            told.starts_with("A request asks redis-server 150 times")
                && told.ends_with("50.0 % of it."),
            "{told}"
        );
        paths.asked[0].turns = 2 * paths.followed;
        assert_eq!(chatty(&paths), None);
        let whole = paths.whole.as_mut().unwrap();
        (whole.latency.count, whole.opened, whole.seconds) = (600, 100, 10.0);
        let told = connecting(&paths).unwrap();
        assert!(
            told.starts_with("Clients opened 10.00 connections a second, one for 6.000 requests"),
            "{told}"
        );
    }
}
