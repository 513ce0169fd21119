//! `app.work`: more work in the application.

use fingerpost_record::cause::id;
use fingerpost_record::paths::Share;
use fingerpost_record::{Evidence, Layer, Metric};

use crate::cause::Need::Followed;
use crate::cause::{Cause, TwoSides, Words};
use crate::facts::Facts;
use crate::judging::{Verdict, at_most_likely, doubted, judged, may_be_much};
use crate::one_side::filters::entering;
use crate::places::{Kind, Place};
use crate::sides::clues::Clues;
use crate::sides::fitting::{ends, told_of_another};
use crate::sides::sign::Sign::{self, Fits, Unknown};
use crate::sides::sign::{kernel, user};
use crate::sides::work::{client_spared, code_times, filters_are_untold};
use crate::sides::{contention, growth};
use crate::thresholds::{MORE_THAN_KERNEL, MOST_OF_CPU, MUCH_WORK, SLOWER_CODE};

pub(super) static CAUSE: Cause = Cause {
    name: id::APP_WORK,
    layer: Layer::Application,
    words: Words {
        label: "CPU: the server's own code",
        slower: "more work in the application",
        takes: Some("the code of {server} itself"),
        tells: "more user time per request, with as many calls",
        remedy: "see which functions take the time (`fingerpost explain`), and compare builds, indexes and settings",
    },
    places: &[Place::User],
    moves: &[Kind::UserCode],
    probes: &[],
    needs: &[Followed],
    follows: &[id::APP_BUILD, id::APP_SETTING],
    told_from: &[],
    thresholds: &[SLOWER_CODE, MORE_THAN_KERNEL, MUCH_WORK, MOST_OF_CPU],
    one_side: Some(one_side),
    two_sides: Some(TwoSides::of_parts(23, two_sides)),
    experiments: &[],
    fault: None,
};

fn one_side(f: &Facts) -> Option<Verdict> {
    let traced = f.share(&[Place::User])?;
    let filters = entering(f);
    let share = filters
        .as_ref()
        .map_or(traced, |(part, _)| less(traced, *part));
    let mut evidence = vec![Evidence::share(Metric::OwnCode, share)];
    evidence.extend(filters.into_iter().flat_map(|(_, facts)| facts));
    evidence.extend(
        f.server_cpus
            .zip(f.cpus)
            .map(|(used, all)| Evidence::figure(Metric::ServerCpus, used).out_of(all)),
    );
    // Work is what a server is for: only a comparison can tell whether it is too much.
    at_most_likely(
        doubted(
            f,
            Some(share),
            may_be_much(f, share),
            judged(
                f,
                Some(share),
                share.share >= MUCH_WORK.value,
                false,
                evidence,
            ),
        ),
        Metric::WorkNeedsComparison,
    )
}

/// What is left of a share without a part of it.
fn less(of: Share, part: Share) -> Share {
    let (low, high) = ((of.low - part.high).max(0.0), (of.high - part.low).max(0.0));
    Share {
        seconds: of.seconds - part.seconds,
        share: of.share - part.share,
        low,
        high,
    }
}

fn two_sides(clues: &Clues) -> Sign {
    let (on_user, on_kernel) = (clues.parts(user), clues.parts(kernel));
    let told = code_times(on_user, on_kernel);
    if let Some(others) = contention::slow_the_same_work(clues) {
        return told_of_another(others);
    }
    // Code that works longer makes more of the kernel's work besides it, too (interrupts, colder caches); the most of
    // it is its own.
    let most = on_user.more() > MOST_OF_CPU.value * (on_user.more() + on_kernel.more());
    let spared = on_user.ratio() > 1.0 && client_spared(clues, on_user.ratio()).is_some();
    match on_user.ratio() > SLOWER_CODE.value
        && (on_user.ratio() > MORE_THAN_KERNEL.value * on_kernel.ratio() || most || spared)
    {
        true if filters_are_untold(clues) => Unknown,
        true => Fits(told),
        // That the kernel grew as well, or the load generator, has no interval of its own: only code that takes no
        // longer clears.
        false => growth::against(
            told,
            ends(clues, user).map(|[_, high]| high <= SLOWER_CODE.value),
        ),
    }
}
