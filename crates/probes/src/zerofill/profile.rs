//! Zeroing and faulting as the kernel's own samples show them.
//!
//! A timer samples where the CPU is while the article's loop runs; each sample brings the kernel's call chain. The
//! shares of the samples, times the unsampled time of the loop, say what each part costs: a route that does not depend
//! on the arithmetic of the other rows.
//!
//! Zeroing does not end where the clearing function does. Its stores are still on their way to the cache when it
//! returns, and the CPU waits for them at the next locked instruction. In an anonymous fault (`how=touch`) that is
//! somewhere behind the allocation: in the accounting to a control group, where there is one, and at the page-table
//! lock, with work in between that goes on meanwhile. Samples at the lock are counted to the zeroing, and the sum is
//! what of it is not hidden. In the fault of a page of a file in memory that is allocated but not zeroed (`how=memfd`,
//! see [`super::zeroing`]) it is the very function that calls the clearing. The same faults without zeroing are sampled
//! too, and what the caller's own samples are more by is the wait. But zeroing goes on to cost: the kernel then finds
//! things no longer in its first-level cache, and the program's own write takes longer or shorter. So the figure is all
//! that faults, from the exception on, and the program have more samples by, and clearing, wait and these two are
//! counters. Another is what the clock says of the same turns, a read of it before and after the writes: what slows the
//! CPU meanwhile slows both, so that the two can be set beside each other in every process. (`bench/zeroing` does the
//! same with perf: on one guest, 320 000 samples a side, of 64 pages, 14 ns a page in the function, 49 in its caller;
//! 90 with all the rest, where the clock said 87.)

mod tally;

use std::io;
use std::time::{Duration, Instant};

use fingerpost_measure::estimate;
use fingerpost_measure::pace::TOLERANCE;
use fingerpost_sys::kallsyms::{self, Symbols};
use fingerpost_sys::perf::sampler::Sampler;

use super::api::{Memory, Mmap};
use super::pages::{FAMILY, base_pages_only, pages_of, per_pages, touch};
use super::prefault::Way;
use super::zeroing::Zeroing;
use crate::call::page_size;
use crate::pace;
use crate::probe::{Nature, Probe};
use crate::session::{Session, Stop, now_ns};
use tally::{Tally, clears, faults};

/// Nanoseconds between two samples: 40 000 a second, and no multiple of anything that the loop does.
const PERIOD_NS: u64 = 24_989;

/// How long the touching loop is sampled, in slices of unsampled timing. The other loop gives one small part only.
const SAMPLED_SLICES: u64 = 3;

/// Turns by which faults that zero and faults that do not, whose difference is sought, are timed and sampled: what
/// slows the CPU for longer than a slice hits both.
const TURNS: usize = 9;

/// Stretches of either that it takes at least, however slow the CPU was.
const LEAST_STRETCHES: usize = 3;

/// Time on the wall after which no further turn begins. Loops are as long as told in CPU time: beside others who have
/// the CPU all turns would outlast what a process is allowed.
const LONGEST_TURNS: Duration = Duration::from_millis(2000);

/// Time on the wall for one loop. The timer's interrupts are not the thread's CPU time: where a sample takes as long as
/// it is to the next one, that would never be spent.
const LONGEST_SPIN: Duration = Duration::from_millis(1000);

/// Nanoseconds between two of their samples in the first turn: the difference is an eighth of either.
const DIFFERENCE_PERIOD_NS: u64 = 12_491;

/// What a turn's period is longer by than that of the one before. Faults on one page after the other have a period of
/// their own, and a sampler that keeps step with it would see the same instructions over and over.
const LONGER_NS: u64 = 617;

/// Fewer samples than these say nothing.
const MIN_SAMPLES: u64 = 100;

/// CPU time of this thread: unlike the clock on the wall it stands still while another process has the CPU, as the
/// sampler does.
fn cpu_ns() -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Runs `body` for about `ns` of CPU time and returns nanoseconds per turn: all, and those that `body` says.
fn spin(ns: u64, mut body: impl FnMut() -> io::Result<u64>) -> io::Result<[f64; 2]> {
    let (begin, wall) = (cpu_ns(), Instant::now());
    let (mut turns, mut told) = (0, 0);
    loop {
        for _ in 0..8 {
            told += body()?;
        }
        turns += 8;
        let spent = cpu_ns() - begin;
        if spent >= ns {
            return Ok([spent, told].map(|ns| ns as f64 / turns as f64));
        }
        if wall.elapsed() > LONGEST_SPIN {
            return Err(io::Error::other(
                "others, or the samples themselves, leave the loop hardly any CPU time",
            ));
        }
    }
}

/// One loop, first timed, then sampled.
struct Loop {
    /// Nanoseconds per turn, unsampled.
    ns: f64,
    /// Nanoseconds on the wall per turn in the part that the samples are sought of.
    part_ns: f64,
    /// The raw samples: the kernel's addresses, innermost first; none for user code.
    chains: Vec<Vec<u64>>,
    lost: u64,
}

fn observe(
    slice_ns: u64,
    sampled_slices: u64,
    mut body: impl FnMut() -> io::Result<()>,
) -> Result<Loop, Stop> {
    let mut body = || body().map(|()| 0);
    let mut sampler =
        Sampler::of_this_thread(PERIOD_NS).map_err(|refusal| Stop::Skip(refusal.to_string()))?;
    spin(slice_ns / 4, &mut body)?;
    timed_then_sampled(&mut sampler, slice_ns, slice_ns * sampled_slices, body)
}

/// Both in nanoseconds of CPU time.
fn timed_then_sampled(
    sampler: &mut Sampler,
    timed: u64,
    sampled: u64,
    mut body: impl FnMut() -> io::Result<u64>,
) -> Result<Loop, Stop> {
    let [ns, part_ns] = spin(timed, &mut body)?;
    sampler.switch(true)?;
    spin(sampled, &mut body)?;
    sampler.switch(false)?;
    let mut chains = Vec::new();
    let lost = sampler.drain(|sample| {
        chains.push(if sample.kernel {
            sample.chain()
        } else {
            Vec::new()
        })
    });
    Ok(Loop {
        ns,
        part_ns,
        chains,
        lost,
    })
}

/// A stretch of a loop.
struct Stretch {
    seen: Loop,
    /// The slower of the readings before and after it.
    pace: u64,
}

/// Two loops in turn, each of the stretches beside which the CPU kept its pace; and that pace.
fn observe_both(
    slice_ns: u64,
    bodies: [&dyn Fn() -> io::Result<u64>; 2],
) -> Result<([Loop; 2], u64), Stop> {
    let mut stretches = [const { Vec::new() }; 2];
    let begun = Instant::now();
    for turn in 0..TURNS {
        if turn >= LEAST_STRETCHES && begun.elapsed() > LONGEST_TURNS {
            break;
        }
        let period = DIFFERENCE_PERIOD_NS + LONGER_NS * turn as u64;
        let mut sampler =
            Sampler::of_this_thread(period).map_err(|refusal| Stop::Skip(refusal.to_string()))?;
        for (body, stretches) in bodies.iter().zip(&mut stretches) {
            // What the other loop left behind.
            body()?;
            let before = pace::reading();
            let seen = timed_then_sampled(&mut sampler, slice_ns / 2, slice_ns, body)?;
            stretches.push(Stretch {
                seen,
                pace: before.max(pace::reading()),
            });
        }
    }
    Ok(at_pace(stretches))
}

/// Of both loops the stretches that kept the best pace seen, or the least slowed where there are too few; and the pace
/// of the slowest of those that were needed.
fn at_pace(stretches: [Vec<Stretch>; 2]) -> ([Loop; 2], u64) {
    let slowest_of_the_best = stretches
        .iter()
        .map(|s| nth_pace(s, LEAST_STRETCHES))
        .max()
        .unwrap_or(0);
    let best = stretches.iter().map(|s| nth_pace(s, 1)).min().unwrap_or(0);
    let limit = slowest_of_the_best.max((best as f64 * (1.0 + TOLERANCE)) as u64);
    (
        stretches.map(|s| joined(s.into_iter().filter(|s| s.pace <= limit).collect())),
        slowest_of_the_best,
    )
}

/// The pace of the n-th fastest of the stretches.
fn nth_pace(stretches: &[Stretch], n: usize) -> u64 {
    let mut paces: Vec<u64> = stretches.iter().map(|s| s.pace).collect();
    paces.sort_unstable();
    paces.get(n - 1).or(paces.last()).copied().unwrap_or(0)
}

fn joined(stretches: Vec<Stretch>) -> Loop {
    let typical = |ns: fn(&Loop) -> f64| {
        estimate::median(&stretches.iter().map(|s| ns(&s.seen)).collect::<Vec<f64>>())
    };
    let (ns, part_ns) = (typical(|l| l.ns), typical(|l| l.part_ns));
    let lost = stretches.iter().map(|s| s.seen.lost).sum();
    Loop {
        ns,
        part_ns,
        chains: stretches.into_iter().flat_map(|s| s.seen.chains).collect(),
        lost,
    }
}

impl Loop {
    /// What so many of the samples stand for, in unsampled nanoseconds of one turn.
    fn share(&self, samples: f64, of: &Tally) -> f64 {
        self.ns * samples / of.all.max(1) as f64
    }
}

fn tally(observed: &Loop, symbols: &Symbols) -> Tally {
    let mut tally = Tally::default();
    for chain in &observed.chains {
        let names: Vec<&str> = chain
            .iter()
            .filter_map(|address| symbols.name(*address))
            .collect();
        if names.is_empty() && !chain.is_empty() {
            tally.all += 1;
        } else {
            tally.add(&names);
        }
    }
    tally
}

fn run(s: &mut Session) -> Result<(), Stop> {
    let (pages, bytes) = pages_of(s.params())?;
    if kallsyms::hidden() {
        return Err(Stop::Skip(
            "the kernel hides its addresses: run as root, or as root sysctl kernel.kptr_restrict=0 \
             kernel.perf_event_paranoid=1"
                .into(),
        ));
    }
    match s.word("how", &["touch", "thp", "memfd"])? {
        "memfd" => {
            base_pages_only();
            zeroed_in_faults(s, pages)
        }
        "thp" => {
            let way = Way::huge(pages, bytes)?;
            article(s, pages, bytes, |_| way.once(page_size()))
        }
        _ => {
            base_pages_only();
            let (mut memory, page) = (Mmap::plain(), page_size());
            article(s, pages, bytes, |bytes| {
                let at = memory.get(bytes)?;
                touch(at, pages, page);
                memory.give_back(at, bytes)
            })
        }
    }
}

fn symbols() -> Result<Symbols, Stop> {
    Symbols::read().map_err(|e| Stop::Fail(format!("cannot read /proc/kallsyms: {e}")))
}

/// Samples of a loop that are enough to say something, and show faults.
fn sound(samples: Tally) -> Result<Tally, Stop> {
    if samples.all < MIN_SAMPLES {
        let all = samples.all;
        return Err(Stop::Skip(format!(
            "the kernel gave {all} samples only; is kernel.perf_event_max_sample_rate low?"
        )));
    }
    if samples.fault == 0 {
        return Err(Stop::Skip(
            "no sample shows the page-fault handler: the kernel's call chains or symbols are not complete".into(),
        ));
    }
    Ok(samples)
}

/// The article's loop: `once` maps, touches and unmaps.
fn article(
    s: &mut Session,
    pages: usize,
    bytes: usize,
    mut once: impl FnMut(usize) -> io::Result<()>,
) -> Result<(), Stop> {
    let slice = s.slice_ns();
    let mut untouched = Mmap::plain();
    let mut seen = None;
    // One value per process: what the samples of two loops say together.
    s.values(|| {
        let touching = observe(slice, SAMPLED_SLICES, || once(bytes))?;
        let bare = observe(slice / 2, 1, || {
            let at = untouched.get(bytes)?;
            untouched.give_back(at, bytes)
        })?;
        let symbols = symbols()?;
        let samples = sound(tally(&touching, &symbols))?;
        let bare_samples = tally(&bare, &symbols);
        let clear =
            touching.share((samples.clear + samples.stores) as f64, &samples) / pages as f64;
        seen = Some((touching, samples, bare, bare_samples));
        Ok(clear)
    })?;
    if let Some((touching, samples, bare, bare_samples)) = seen {
        let per_page = |count: u64| touching.share(count as f64, &samples) / pages as f64;
        s.counter("samples", samples.all as f64);
        s.counter("lost", touching.lost as f64);
        s.counter("turn_ns", touching.ns);
        s.counter("clear_ns", per_page(samples.clear));
        s.counter("store_wait_ns", per_page(samples.stores));
        s.counter("fault_ns", per_page(samples.fault));
        s.counter("user_ns", per_page(samples.user));
        s.counter("map_ns", per_page(samples.map));
        s.counter("unmap_ns", per_page(samples.unmap));
        s.counter(
            "unmap_untouched_ns",
            bare.share(bare_samples.unmap as f64, &bare_samples) / pages as f64,
        );
        s.counter(
            "other_ns",
            per_page(samples.all - samples.fault - samples.user - samples.map - samples.unmap),
        );
    }
    Ok(())
}

/// Faults that zero beside the same faults without: what the samples in faults and in the program are more by.
fn zeroed_in_faults(s: &mut Session, pages: usize) -> Result<(), Stop> {
    let slice = s.slice_ns();
    let [zeroing, spare] = [
        Zeroing::new(pages, page_size())?,
        Zeroing::new(pages, page_size())?,
    ];
    let mut seen = None;
    s.paced_value(|| {
        let touched_after = |renewed: &Zeroing| {
            renewed.renew()?;
            zeroing.forget()?;
            let begin = now_ns();
            zeroing.touch();
            Ok(now_ns() - begin)
        };
        // Either loop renews as many pages, so that sampling, which slows one thing more than another, shifts the
        // shares of both alike.
        let (new, again) = (|| touched_after(&zeroing), || touched_after(&spare));
        let ([first, again], pace) = observe_both(slice, [&new, &again])?;
        let symbols = symbols()?;
        let (samples, without) = (
            sound(tally(&first, &symbols))?,
            sound(tally(&again, &symbols))?,
        );
        let caller = caller_of_clearing(&first, &symbols).ok_or_else(|| {
            Stop::Skip(
                "no sample shows the page-clearing function: the kernel's symbols are not complete"
                    .into(),
            )
        })?;
        let per_page = |observed: &Loop, samples: &Tally, count: u64| {
            observed.share(count as f64, samples) / pages as f64
        };
        let more =
            |new: u64, old: u64| per_page(&first, &samples, new) - per_page(&again, &without, old);
        let clear = per_page(&first, &samples, samples.clear);
        let wait = more(
            innermost(&first, &symbols, caller),
            innermost(&again, &symbols, caller),
        );
        let fault = more(samples.fault, without.fault);
        let program = more(samples.user, without.user);
        let clock = (first.part_ns - again.part_ns) / pages as f64;
        seen = Some((
            samples.all,
            first.lost + again.lost,
            [clock, clear, wait, fault - clear - wait, program],
        ));
        Ok((fault + program, pace))
    })?;
    if let Some((samples, lost, [clock, clear, wait, elsewhere, program])) = seen {
        s.counter("samples", samples as f64);
        s.counter("lost", lost as f64);
        // Differences: noise makes a small one less than nothing, which no part of a time is. A median over processes
        // is the same with 0.
        let difference = |name: &'static str, ns: f64| (name, ns.max(0.0));
        for (name, ns) in [
            ("clear_ns", clear),
            difference("clock_ns", clock),
            difference("store_wait_ns", wait),
            difference("elsewhere_ns", elsewhere),
            difference("program_ns", program),
        ] {
            s.counter(name, ns);
        }
    }
    Ok(())
}

/// The function that most samples in the clearing of pages were called from, below a fault.
fn caller_of_clearing<'a>(observed: &Loop, symbols: &'a Symbols) -> Option<&'a str> {
    let mut callers: Vec<(&str, u64)> = Vec::new();
    for chain in &observed.chains {
        let names: Vec<&str> = chain
            .iter()
            .filter_map(|address| symbols.name(*address))
            .collect();
        let Some(caller) = names
            .iter()
            .take(3)
            .rposition(|f| clears(f))
            .and_then(|place| names.get(place + 1))
        else {
            continue;
        };
        match callers.iter_mut().find(|(name, _)| name == caller) {
            Some((_, count)) => *count += 1,
            None => callers.push((caller, 1)),
        }
    }
    callers
        .into_iter()
        .max_by_key(|(_, count)| *count)
        .map(|(name, _)| name)
}

/// Samples whose innermost function is this one, below a fault.
fn innermost(observed: &Loop, symbols: &Symbols, function: &str) -> u64 {
    let below = |chain: &&Vec<u64>| {
        let mut names = chain.iter().filter_map(|address| symbols.name(*address));
        names.next() == Some(function) && names.any(faults)
    };
    observed.chains.iter().filter(below).count() as u64
}

/// The probes of this file.
pub static PROBES: &[Probe] = &[Probe {
    name: "zerofill.kernel_profile",
    bounds: [1.0, 1e6],
    version: 3,
    summary: "zeroing a page, by the kernel's own samples",
    timed: "a share of timer samples, while faults zero `pages` pages, times the unsampled time of one turn, per page. \
        how=touch, thp: mmap, a write to each page (of huge pages) and munmap; the samples in the kernel's \
        page-clearing function, or waiting for its stores at the page-table lock. how=memfd: a write to each page of a \
        file in memory that is allocated and not zeroed; what faults and the program have more samples by than in the \
        same faults without zeroing, which take turns with them. Counters: the parts, per page, and clock_ns, the same \
        difference by the clock.",
    pitfalls: "needs sampling of the kernel (kernel.perf_event_paranoid of 1 or less, or CAP_PERFMON) and visible \
        kernel addresses. Where interrupts are off a sample falls on the instruction that switches them on again.",
    nature: Nature::Blocks,
    variants: || {
        [
            per_pages("how", "touch", &[16, 256]),
            per_pages("how", "memfd", &[64, 256]),
            per_pages("how", "thp", &[512]),
        ]
        .concat()
    },
    run,
    ..FAMILY
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_beside_a_slow_cpu_are_left_out_while_enough_remain() {
        let stretch = |ns: f64, pace: u64| Stretch {
            seen: Loop {
                ns,
                part_ns: ns / 2.0,
                chains: vec![vec![7]],
                lost: 1,
            },
            pace,
        };
        let quiet = || {
            vec![
                stretch(100.0, 4000),
                stretch(190.0, 8000),
                stretch(101.0, 4010),
                stretch(99.0, 4000),
            ]
        };
        let ([a, b], pace) = at_pace([quiet(), quiet()]);
        assert_eq!(
            (a.ns, a.part_ns, a.chains.len(), a.lost, b.ns, pace),
            (100.0, 50.0, 3, 3, 100.0, 4010)
        );
        let noisy = vec![
            stretch(100.0, 4000),
            stretch(120.0, 5000),
            stretch(140.0, 6000),
            stretch(190.0, 8000),
        ];
        let ([_, b], pace) = at_pace([quiet(), noisy]);
        assert_eq!((b.ns, b.chains.len(), pace), (120.0, 3, 6000));
    }
}
