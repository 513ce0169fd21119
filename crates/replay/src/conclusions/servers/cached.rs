//! What answers from a database's query cache gain: there and here.

use fingerpost_record::{Measurement, Run};

use super::super::judged::Judged;
use super::super::source::{between, ratio, row, total};
use super::super::{own, source};
use fingerpost_compare::verdict::Verdict;

const CACHED: &str = own::THROUGHPUT;

pub(super) fn query_cache() -> Judged {
    let c = between("opteron-850-linux[query_cache=on]", "g5-2.7-darwin[query_cache=on]");
    let slower = row(&c, CACHED).verdict == Verdict::Slower;
    let client = total("opteron-850-linux", "query_cache.per_client_machine.queries_s");
    let figure = format!(
        "about {:.0}/s against a peak of {:.0}/s, {:.1} times; a client machine gave at most {client:.0}/s, and up to \
         {:.0} % came from the cache",
        source::cached("g5-2.7-darwin"),
        source::cached("opteron-850-linux"),
        ratio(&c, CACHED),
        total("g5-2.7-darwin", "query_cache.hits.most.percent")
    );
    Judged::by(slower && ratio(&c, CACHED) > 5.0, figure)
}

/// What the cache gains here: the best throughput with it against the best without. What the published machines served
/// says nothing of the cache of today's.
pub(super) fn query_cache_here(run: &Run) -> Option<Judged> {
    let of = |state: &'static str| {
        run.measurements.iter().filter(move |m| m.probe == CACHED && m.params.text("query_cache") == Some(state))
    };
    // The same server without its cache: one with another setting besides would answer another question.
    let rest = |row: &Measurement| row.params.without(&["query_cache", "clients"]);
    let highest = |a: &&Measurement, b: &&Measurement| rate(a).total_cmp(&rate(b));
    let with =
        of("on").filter(|m| m.estimate.is_some() && of("off").any(|off| rest(off) == rest(m))).max_by(highest)?;
    let without = of("off").filter(|m| m.estimate.is_some() && rest(m) == rest(with)).max_by(highest)?;
    let (on, cached, off, plain) = (rate(with), own::level(run, with)?, rate(without), own::level(run, without)?);
    let times = own::times(plain, cached);
    let interval = own::from_to(&times, |t| format!("{t:.1}"));
    let figure = format!("{on:.0}/s with the cache, {off:.0}/s without: {:.1} times{interval}", times.value);
    Some(Judged::at_least(&times, SEVERAL, figure))
}

/// A row's figure; nothing is less than any.
fn rate(row: &Measurement) -> f64 {
    row.estimate.map_or(f64::NEG_INFINITY, |e| e.value)
}

/// What “several times” is at the least.
const SEVERAL: f64 = 2.0;
