//! Zeroing and faulting as the kernel's own samples show them.
//!
//! A timer samples where the CPU is while the article's loop runs; each sample brings the kernel's call chain. The shares of the samples,
//! times the unsampled time of the loop, say what each part costs: a route that does not depend on the arithmetic of the other rows.
//!
//! Zeroing does not end where the clearing function does. Its stores are still on their way to the cache when it returns, and the CPU
//! waits for them at the next locked instruction: the page-table lock right behind it. Samples there are counted to the zeroing, and
//! reported apart. (Measured: 21 ns a page in the function and 53 at the lock, where the same pages take 71 from user space.)

use std::io;

use fingerpost_record::{Better, Params, Unit};
use fingerpost_sys::kallsyms::{self, Symbols};
use fingerpost_sys::perf::sampler::Sampler;

use super::api::{Memory, Mmap};
use super::prefault::Way;
use super::{LAB, base_pages_only, page_size, pages_of, per_pages, touch};
use crate::probe::{Nature, Probe};
use crate::session::{Session, Stop};

/// Nanoseconds between two samples: 40 000 a second, and no multiple of anything that the loop does.
const PERIOD_NS: u64 = 24_989;

/// How long the touching loop is sampled, in slices of unsampled timing. The other loop gives one small part only.
const SAMPLED_SLICES: u64 = 3;

/// Fewer samples than these say nothing.
const MIN_SAMPLES: u64 = 100;

/// Samples of one loop by what the CPU was doing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tally {
    /// All samples of the loop.
    all: u64,
    /// In the function that clears pages.
    clear: u64,
    /// In taking the page-table lock, where the cleared page's stores are waited for.
    stores: u64,
    /// Below the page-fault exception, clearing included.
    fault: u64,
    /// Below munmap.
    unmap: u64,
    /// Below mmap.
    map: u64,
    /// In user code: the loop, and what entering and leaving the exception costs.
    user: u64,
}

/// Whether a kernel function sets pages to zero. The architectures and versions call it differently.
fn clears(function: &str) -> bool {
    ["clear_page", "clear_pages", "__clear_page", "__pi_clear_page", "clear_user_highpage", "clear_huge_page", "memset"]
        .iter()
        .any(|name| function.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_')))
}

/// Whether an innermost chain is the taking of the page-table lock by a fault that has just cleared a page.
fn waits_for_stores(chain: &[&str]) -> bool {
    let lock = chain.iter().take(2).any(|f| f.starts_with("_raw_spin_lock") || f.starts_with("native_queued_spin_lock"));
    lock && chain.iter().take(4).any(|f| f.contains("pte_offset_map_lock") || f.starts_with("do_anonymous_page"))
}

/// Whether a kernel function is where a page fault enters, or handles it.
fn faults(function: &str) -> bool {
    [
        "asm_exc_page_fault",
        "exc_page_fault",
        "do_user_addr_fault",
        "handle_mm_fault",
        "do_page_fault",
        "do_translation_fault",
        "do_mem_abort",
        "el0_da",
    ]
    .contains(&function)
}

impl Tally {
    /// Counts one sample: `chain` is the kernel's call chain by function, innermost first; empty for a sample in user code.
    fn add(&mut self, chain: &[&str]) {
        let below = |part: &str| chain.iter().any(|f| f.contains(part));
        self.all += 1;
        match chain {
            [] => self.user += 1,
            _ if chain.iter().any(|f| faults(f)) => {
                self.fault += 1;
                // The timer's own functions may lie above the interrupted one; a huge page is cleared by a loop of its own.
                self.clear += u64::from(chain.iter().take(3).any(|f| clears(f)) || chain.iter().any(|f| f.starts_with("folio_zero_user")));
                self.stores += u64::from(waits_for_stores(chain));
            }
            _ if below("munmap") => self.unmap += 1,
            _ if below("mmap") => self.map += 1,
            _ => {}
        }
    }
}

/// CPU time of this thread: unlike the clock on the wall it stands still while another process has the CPU, as the sampler does.
fn cpu_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Runs `body` for about `ns` of CPU time and returns how often, and how long.
fn spin(ns: u64, mut body: impl FnMut() -> io::Result<()>) -> io::Result<(u64, u64)> {
    let begin = cpu_ns();
    let mut turns = 0;
    loop {
        for _ in 0..8 {
            body()?;
        }
        turns += 8;
        let spent = cpu_ns() - begin;
        if spent >= ns {
            return Ok((turns, spent));
        }
    }
}

/// One loop, first timed, then sampled.
struct Loop {
    /// Nanoseconds per turn, unsampled.
    ns: f64,
    /// The raw samples: the kernel's addresses, innermost first; none for user code.
    chains: Vec<Vec<u64>>,
    lost: u64,
}

fn observe(slice_ns: u64, sampled_slices: u64, mut body: impl FnMut() -> io::Result<()>) -> Result<Loop, Stop> {
    let mut sampler = Sampler::of_this_thread(PERIOD_NS).map_err(|refusal| Stop::Skip(refusal.to_string()))?;
    spin(slice_ns / 4, &mut body)?;
    let (turns, ns) = spin(slice_ns, &mut body)?;
    sampler.enable()?;
    spin(slice_ns * sampled_slices, &mut body)?;
    sampler.disable()?;
    let mut chains = Vec::new();
    let lost = sampler.drain(|sample| chains.push(if sample.kernel { sample.chain() } else { Vec::new() }));
    Ok(Loop { ns: ns as f64 / turns as f64, chains, lost })
}

fn tally(observed: &Loop, symbols: &Symbols) -> Tally {
    let mut tally = Tally::default();
    for chain in &observed.chains {
        let names: Vec<&str> = chain.iter().filter_map(|address| symbols.name(*address)).collect();
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
    let page = page_size();
    if kallsyms::hidden() {
        return Err(Stop::Skip(
            "the kernel hides its addresses: run as root, or as root sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1".into(),
        ));
    }
    let huge = if s.word("how", &["touch", "thp"])? == "thp" { Some(Way::huge(pages, bytes)?) } else { None };
    if huge.is_none() {
        base_pages_only();
    }
    let slice = s.slice_ns();
    let mut memory = Mmap::plain();
    let mut turn = |reached: usize| -> io::Result<()> {
        match huge {
            Some(way) if reached > 0 => way.once(page),
            _ => {
                let at = memory.get(bytes)?;
                touch(at, reached, page);
                memory.give_back(at, bytes)
            }
        }
    };
    let (mut touching, mut bare) = (None, None);
    // One value per process: what the samples of two loops say together.
    s.values(|| {
        let touched = observe(slice, SAMPLED_SLICES, || turn(pages))?;
        let untouched = observe(slice / 2, 1, || turn(0))?;
        let symbols = Symbols::read().map_err(|e| Stop::Fail(format!("cannot read /proc/kallsyms: {e}")))?;
        let samples = tally(&touched, &symbols);
        if samples.all < MIN_SAMPLES {
            return Err(Stop::Skip(format!("the kernel gave {} samples only; is kernel.perf_event_max_sample_rate low?", samples.all)));
        }
        if samples.fault == 0 {
            return Err(Stop::Skip("no sample shows the page-fault handler: the kernel's call chains or symbols are not complete".into()));
        }
        let clear = touched.ns * (samples.clear + samples.stores) as f64 / samples.all as f64 / pages as f64;
        let bare_samples = tally(&untouched, &symbols);
        (touching, bare) = (Some((samples, touched.ns, touched.lost)), Some((bare_samples, untouched.ns)));
        Ok(clear)
    })?;
    if let (Some((t, ns, lost)), Some((b, bare_ns))) = (touching, bare) {
        let per_page = |count: u64| ns * count as f64 / t.all as f64 / pages as f64;
        let bare_unmap = bare_ns * b.unmap as f64 / (b.all.max(1)) as f64 / pages as f64;
        s.counter("samples", t.all as f64);
        s.counter("lost", lost as f64);
        s.counter("turn_ns", ns);
        s.counter("clear_ns", per_page(t.clear));
        s.counter("store_wait_ns", per_page(t.stores));
        s.counter("fault_ns", per_page(t.fault));
        s.counter("user_ns", per_page(t.user));
        s.counter("map_ns", per_page(t.map));
        s.counter("unmap_ns", per_page(t.unmap));
        s.counter("unmap_untouched_ns", bare_unmap);
        s.counter("other_ns", per_page(t.all - t.fault - t.user - t.map - t.unmap));
    }
    Ok(())
}

/// The probes of this file.
pub static PROBES: &[Probe] = &[Probe {
    name: "zerofill.kernel_profile",
    version: 1,
    lmbench: None,
    summary: "clearing a page, by the kernel's own samples",
    timed: "the share of timer samples in the kernel's page-clearing function, or waiting for its stores at the page-table lock, while mmap, a write to each of `pages` pages (how=thp: \
            within huge pages) and munmap repeat, times the unsampled time of one turn, per page. Counters: the same for the other parts, per page.",
    pitfalls: "needs sampling of the kernel (kernel.perf_event_paranoid of 1 or less, or CAP_PERFMON) and visible kernel addresses. Where \
               interrupts are off a sample falls on the instruction that switches them on again.",
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    nature: Nature::Blocks,
    cpus: 1,
    lab: Some(LAB),
    variants: || {
        let how = |name: &str, pages: &[i64]| per_pages(&Params::new().with("how", name), pages);
        [how("touch", &[16, 256]), how("thp", &[512])].concat()
    },
    run,
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_counted_where_its_call_chain_puts_it() {
        let mut t = Tally::default();
        t.add(&["clear_page_erms", "get_page_from_freelist", "handle_mm_fault", "exc_page_fault", "asm_exc_page_fault"]);
        t.add(&["_raw_spin_lock", "__pte_offset_map_lock", "do_anonymous_page", "handle_mm_fault", "asm_exc_page_fault"]);
        t.add(&["_raw_spin_lock", "get_page_from_freelist", "alloc_pages", "vma_alloc_folio", "do_anonymous_page", "handle_mm_fault"]);
        t.add(&["__lruvec_stat_mod", "handle_mm_fault", "asm_exc_page_fault"]);
        t.add(&["free_unref_folios", "unmap_region", "__vm_munmap", "__x64_sys_munmap", "do_syscall_64"]);
        t.add(&["mas_find", "do_mmap", "ksys_mmap_pgoff", "do_syscall_64"]);
        t.add(&["entry_SYSCALL_64"]);
        t.add(&[]);
        assert_eq!(t, Tally { all: 8, clear: 1, stores: 1, fault: 4, unmap: 1, map: 1, user: 1 });
    }

    #[test]
    fn functions_that_clear_pages_are_known_by_their_names() {
        for name in ["clear_page_erms", "clear_page_rep", "clear_page_orig", "clear_page", "__pi_clear_page", "clear_huge_page"] {
            assert!(clears(name), "{name}");
        }
        for name in ["clear_pageblock", "get_page_from_freelist", "memset32x", "clear_bit"] {
            assert!(!clears(name), "{name}");
        }
    }
}
