//! `app.query_cache`: the query cache's lock.

use fingerpost_record::cause::id;
use fingerpost_record::{Evidence, Layer, Metric};

use crate::cause::{Cause, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, at_most_likely, judged, ruled_out};
use crate::places::{Kind, Place};

pub(super) static CAUSE: Cause = Cause {
    name: id::APP_QUERY_CACHE,
    layer: Layer::Application,
    words: Words {
        label: "query cache",
        slower: "the query cache's lock",
        takes: None,
        tells: "the lock goes when the cache is switched off",
        remedy: "switch the query cache off",
    },
    places: &[Place::Lock],
    moves: &[Kind::Lock],
    probes: &[],
    needs: &[],
    follows: &[],
    told_from: &[],
    thresholds: &[],
    one_side: Some(one_side),
    two_sides: None,
    experiments: &[],
    fault: None,
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let on = f.query_cache?;
    let cache = Evidence::figure(Metric::QueryCache, f64::from(u8::from(on)));
    if !on {
        return ruled_out(vec![cache]);
    }
    let share = f.share(CAUSE.places)?;
    let waited = Evidence::share(Metric::QueryCacheLock, share);
    at_most_likely(
        judged(f, Some(share), true, false, vec![cache, waited]),
        Metric::QueryCacheNeedsExperiment,
    )
}
