//! Kernel time that the trace sees as the server's own code.
//!
//! The kernel traces a call after the caller has entered it: what runs before (saving registers, mitigations, seccomp
//! filters) and after its exit counts as time outside of calls. The scheduler's ticks count it as the kernel's. Two
//! bounds are taken, and the smaller holds: kernel ticks beyond the traced calls, and traced user code beyond the user
//! ticks. Work beside requests makes the first too large, and the cost of tracing, which only watched windows have, the
//! second.

use fingerpost_record::paths::{Leaf, Share};
use fingerpost_record::reading::name;
use fingerpost_record::{Component, Link, Paths, Readings};

use super::windows::all_calls;

/// Seconds of ticks below which they tell nothing.
const ENOUGH_TICKS: f64 = 0.3;
/// Seconds between two ticks where the kernel counts fewest.
const TICK: f64 = 0.01;
/// What a page fault takes at most, in seconds: of a small page, of a huge page, and of one that is read from a disk. A
/// fault is no call either, and its time stays where it was.
const FAULT: [f64; 3] = [4e-6, 200e-6, 100e-6];
/// How many standard errors of the ticks a difference must have.
const CLEAR: f64 = 3.0;

/// A request's time on a CPU, by the trace and by ticks; seconds of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Entering {
    /// Outside of calls by the trace: what is called the server's own code.
    pub traced_user: f64,
    /// In calls and interrupts by the trace.
    pub traced_kernel: f64,
    /// User mode by ticks.
    pub user: f64,
    /// The kernel by ticks.
    pub kernel: f64,
    /// What page faults take at most.
    pub faults: f64,
    /// Standard error of both ticks' figures.
    pub error: f64,
    /// System calls of a request.
    pub calls: f64,
}

impl Entering {
    /// From the totals of a step with so many requests, and from those that were followed; nothing where ticks are too
    /// few, or calls or requests are not known. `passes` is how many passes the totals are means of.
    pub fn of(requests: f64, passes: u32, t: &Readings, paths: &Paths) -> Option<Entering> {
        let (user, kernel) = (
            t.known(name::SERVER_THREAD_USER_SECONDS)?,
            t.known(name::SERVER_THREAD_KERNEL_SECONDS)?,
        );
        let ticks = (user + kernel) * f64::from(passes);
        if paths.followed == 0 || requests <= 0.0 || ticks < ENOUGH_TICKS {
            return None;
        }
        // Ticks are samples; how long the threads were on a CPU is exact.
        let (cpu, share) = (
            t.known(name::SERVER_CPU_SECONDS)? / requests,
            kernel / (user + kernel),
        );
        let least = TICK / ticks;
        let sampled = share.clamp(least, 1.0 - least);
        let sum = |pick: &dyn Fn(&Component) -> bool| -> f64 {
            paths
                .leaves
                .iter()
                .filter(|l| pick(&l.component().1) && is_own(l))
                .map(|l| l.all.seconds)
                .sum()
        };
        let traced_calls = sum(&Component::is_call);
        // A window may have missed the server: how long one call took holds all the same.
        let (count, in_calls) = (all_calls(t, ".count")?, all_calls(t, ".cpu_seconds")?);
        let calls = (count > 0.0 && in_calls > 0.0).then(|| traced_calls * count / in_calls)?;
        Some(Entering {
            traced_user: sum(&|c| *c == Component::UserCode),
            traced_kernel: traced_calls + sum(&|c| *c == Component::Interrupts),
            user: cpu * (1.0 - share),
            kernel: cpu * share,
            faults: faults(t)? / requests,
            error: cpu * (sampled * (1.0 - sampled) * least).sqrt(),
            calls,
        })
    }

    /// Seconds of a request that are the kernel's outside of calls and no page fault's; 0 where ticks do not tell it
    /// from nothing.
    pub fn outside(&self) -> f64 {
        clear(self.bounds(), self.faults, self.error)
    }

    /// [`Self::outside`] of one call, where requests make calls.
    pub fn per_call(&self) -> Option<f64> {
        (self.calls >= 1.0).then(|| self.outside() / self.calls)
    }

    /// The part of a place's share that is the kernel's outside of calls.
    pub fn part(&self, user: Share) -> Share {
        let of = |seconds: f64| {
            if self.traced_user > 0.0 {
                (seconds / self.traced_user).clamp(0.0, 1.0)
            } else {
                0.0
            }
        };
        let outside = self.outside();
        if outside <= 0.0 {
            return Share::default();
        }
        let (low, high) = (
            of(outside - 2.0 * self.error),
            of(outside + 2.0 * self.error),
        );
        Share {
            seconds: user.seconds * of(outside),
            share: user.share * of(outside),
            low: user.low * low,
            high: user.high * high,
        }
    }

    /// By how much it grew from `fast` to this side, in seconds of a request. What tracing costs a call is the same on
    /// both sides.
    pub fn more_than(&self, fast: &Entering) -> f64 {
        let ([by_kernel, by_user], before) = (self.bounds(), fast.bounds());
        let faults = (self.faults - fast.faults).max(0.0);
        clear(
            [by_kernel - before[0], by_user - before[1]],
            faults,
            self.error.hypot(fast.error),
        )
    }

    /// Kernel ticks beyond the traced calls, and traced user code beyond the user ticks.
    fn bounds(&self) -> [f64; 2] {
        [
            self.kernel - self.traced_kernel,
            self.traced_user - self.user,
        ]
    }
}

/// Whether it is the request's own time on a CPU of the server: what it waits for is another's, and no ticks of its
/// own.
fn is_own(leaf: &Leaf) -> bool {
    !leaf
        .chain
        .iter()
        .any(|link| matches!(link, Link::Queue | Link::Lock | Link::Peer))
}

fn clear(bounds: [f64; 2], faults: f64, error: f64) -> f64 {
    let least = bounds[0].min(bounds[1]) - faults;
    if least > CLEAR * error { least } else { 0.0 }
}

/// Seconds that page faults of the server take at most; nothing where they were not counted.
fn faults(t: &Readings) -> Option<f64> {
    let minor = t.known(name::SERVER_FAULTS_MINOR)?;
    // Huge pages are counted for all of the machine; where they were not, each fault may have been one.
    let huge = t.known(name::MEMORY_THP_FAULTS).unwrap_or(minor).min(minor);
    Some(
        (minor - huge) * FAULT[0]
            + huge * FAULT[1]
            + t.known(name::SERVER_FAULTS_MAJOR)? * FAULT[2],
    )
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Layer;
    use fingerpost_record::fixture::followed::{Row, paths};

    use super::*;

    /// A server with 1500 calls a request: its threads' seconds in user mode and in the kernel by ticks, of 2000
    /// requests, and microseconds of a request outside of calls and in them by the trace.
    fn side(ticks: [f64; 2], traced: [f64; 2], with: &[(&str, f64)]) -> Option<Entering> {
        let mut read = vec![
            ("server.cpu.seconds", ticks[0] + ticks[1]),
            ("server.thread_user.seconds", ticks[0]),
            ("server.thread_kernel.seconds", ticks[1]),
            ("server.faults.minor", 0.0),
            ("server.faults.major", 0.0),
            // The windows missed most of them.
            ("server.call.getppid.count", 100_000.0),
            (
                "server.call.getppid.cpu_seconds",
                100_000.0 * traced[1] * 1e-6 / 1500.0,
            ),
        ];
        read.extend(with);
        let t = Readings::by(
            "all",
            "made up",
            read.into_iter().map(|(k, v)| (k.to_owned(), v)),
        );
        let rows: [Row; 3] = [
            (
                Layer::Application,
                "server user code",
                "",
                &[],
                [traced[0]; 3],
            ),
            (Layer::Kernel, "kernel: getppid", "", &[], [traced[1]; 3]),
            (
                Layer::Application,
                "server user code",
                "",
                &["queue"],
                [900.0; 3],
            ),
        ];
        Entering::of(2000.0, 1, &t, &paths(&rows, 0.0))
    }

    #[test]
    fn kernel_time_outside_of_calls_is_what_both_ticks_and_trace_allow() {
        // Of 760 µs outside of calls 200 are the server's own by ticks, and of 700 µs in the kernel 220 lie in calls.
        let e = side([0.4, 1.4], [760.0, 220.0], &[]).unwrap();
        assert!(
            (e.calls - 1500.0).abs() < 1e-6 && (e.outside() - 480e-6).abs() < 1e-9,
            "{e:?}"
        );
        assert!((e.per_call().unwrap() - 320e-9).abs() < 1e-12);
        // Work beside requests is in the kernel's ticks, too, and none of their user code is then missing from the user
        // ticks.
        assert_eq!(
            side([1.52, 2.4], [760.0, 220.0], &[]).unwrap().outside(),
            0.0
        );
        // Tracing makes calls and what lies between them longer; the ticks of all the time do not show it.
        assert_eq!(
            side([0.2, 0.4], [760.0, 220.0], &[]).unwrap().outside(),
            0.0
        );
    }

    #[test]
    fn page_faults_are_no_calls_and_too_few_ticks_tell_nothing() {
        let few = [("server.faults.minor", 2000.0 * 200.0)];
        assert_eq!(
            side([0.4, 1.4], [760.0, 220.0], &few).unwrap().outside(),
            0.0
        );
        let huge = [
            ("server.faults.minor", 2000.0 * 3.0),
            ("memory.thp_faults", 1e6),
        ];
        assert_eq!(
            side([0.4, 1.4], [760.0, 220.0], &huge).unwrap().outside(),
            0.0
        );
        assert_eq!(side([0.1, 0.19], [760.0, 220.0], &[]), None);
        assert_eq!(
            side(
                [0.4, 1.4],
                [760.0, 220.0],
                &[("server.call.getppid.count", 0.0)]
            ),
            None
        );
    }

    #[test]
    fn growth_is_told_where_tracing_hides_the_amount() {
        let fast = side([0.44, 0.26], [337.0, 222.0], &[]).unwrap();
        let slow = side([0.46, 1.14], [762.0, 225.0], &[]).unwrap();
        assert_eq!(fast.outside(), 0.0);
        let more = slow.more_than(&fast);
        assert!((more - 415e-6).abs() < 2e-6, "{more}");
        assert_eq!(fast.more_than(&slow), 0.0);
        let slower_code = side([1.3, 0.3], [762.0, 225.0], &[]).unwrap();
        assert_eq!(
            slower_code.more_than(&fast),
            0.0,
            "user code that takes longer is in the user ticks"
        );
    }
}
