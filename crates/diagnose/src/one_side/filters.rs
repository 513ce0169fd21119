//! What seccomp filters take of the server's own code.

use fingerpost_record::paths::Share;
use fingerpost_record::{Evidence, Metric};

use crate::facts::Facts;
use crate::places::Place;

pub(crate) fn filtered(f: &Facts) -> bool {
    f.seccomp_filters.is_some_and(|n| n > 0.0)
}

/// What of the server's own code is seccomp filters' work: they run before a call's entry is traced.
pub(crate) fn entering(f: &Facts) -> Option<(Share, Vec<Evidence>)> {
    let (entering, user) = (
        f.entering.filter(|_| filtered(f))?,
        f.share(&[Place::User])?,
    );
    let part = entering.part(user);
    let outside =
        Evidence::figure(Metric::OutsideOfCalls, entering.outside()).out_of(entering.traced_user);
    let each = entering
        .per_call()
        .map(|s| Evidence::figure(Metric::OutsideOfOneCall, s));
    (part.share > 0.0).then(|| (part, std::iter::once(outside).chain(each).collect()))
}
