//! `process.creation`: making processes and threads.

use fingerpost_record::cause::id;
use fingerpost_record::reading::name;
use fingerpost_record::{Evidence, Layer, Metric};

use super::parts::KERNEL;
use crate::cause::Need::Followed;
use crate::cause::{Cause, Words};
use crate::facts::{Facts, sum};
use crate::judging::{Verdict, judged};
use crate::places::Place;

pub(super) static CAUSE: Cause = Cause {
    name: id::PROCESS_CREATION,
    layer: Layer::Kernel,
    words: Words {
        label: "process and thread creation",
        slower: "making processes and threads",
        takes: None,
        tells: "clone, fork and exec in the path",
        remedy: "keep processes, threads and connections instead of making one for each request",
    },
    places: &[Place::Making],
    moves: KERNEL,
    probes: &[],
    needs: &[Followed],
    follows: &[],
    told_from: &[],
    thresholds: &[],
    one_side: Some(one_side),
    two_sides: None,
    experiments: &[],
    fault: None,
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let share = f.share(CAUSE.places)?;
    let mut evidence = vec![Evidence::share(Metric::TaskCreation, share)];
    // Calls are counted in windows and scaled up; the kernel counts all that the whole machine made.
    let made = sum(["clone", "clone3", "fork", "vfork"].map(|call| f.called(call)));
    let made = made
        .map(|n| f.known(name::MACHINE_FORKS).map_or(n, |all| n.min(all)))
        .and_then(|n| f.per_transaction(n));
    evidence.extend(made.map(|n| Evidence::figure(Metric::TasksMade, n)));
    judged(f, Some(share), true, false, evidence)
}
