//! Zeroing alone, from user space: pages that are mapped already are set to zero, one page after the other, as the
//! kernel does it.

use super::pages::{FAMILY, base_pages_only, pages_of, per_pages, touch};
use crate::call::{ANONYMOUS, READ_WRITE, map, page_size};
use crate::probe::Probe;
use crate::session::{Session, Stop, now_ns};

const LINE: usize = 64;

/// Writes the range back to memory and takes it out of every cache. False where this CPU gives user code no means to.
fn flush(at: usize, bytes: usize) -> bool {
    for line in (at..at + bytes).step_by(LINE) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the line lies in memory of ours; every x86-64 CPU has the instruction.
        unsafe {
            std::arch::x86_64::_mm_clflush(line as *const u8)
        };
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the line lies in memory of ours; Linux allows the instruction to user code.
        unsafe {
            std::arch::asm!("dc civac, {}", in(reg) line)
        };
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = line;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence.
    unsafe {
        std::arch::x86_64::_mm_mfence()
    };
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
}

/// Sets pages to zero, one call per page: a longer one would be free to go round the caches, which the kernel's
/// clearing does not.
fn zero(at: usize, pages: usize, page: usize) {
    for i in 0..pages {
        let place = std::hint::black_box((at + i * page) as *mut u8);
        // SAFETY: callers pass mapped memory of so many pages.
        unsafe { place.write_bytes(0, page) };
    }
    std::hint::black_box(at);
}

fn run(s: &mut Session) -> Result<(), Stop> {
    let (pages, bytes) = pages_of(s.params())?;
    let cold = s.word("state", &["warm", "cold"])? == "cold";
    base_pages_only();
    let page = page_size();
    let at = map(0, bytes, READ_WRITE, ANONYMOUS, -1)?;
    touch(at, pages, page);
    if cold && !flush(at, bytes) {
        return Err(Stop::Skip(
            "needs a CPU whose caches user code may flush (x86-64, AArch64)".into(),
        ));
    }
    s.work_per_op(pages as u64);
    if !cold {
        return s.repeat(|| {
            zero(at, pages, page);
            Ok(())
        });
    }
    let after_flushing = |_| {
        flush(at, bytes);
        let begin = now_ns();
        zero(at, pages, page);
        now_ns() - begin
    };
    s.timed_batches(|ops| Ok((0..ops).map(after_flushing).sum()))
}

/// The probes of this file.
pub static PROBES: &[Probe] = &[Probe {
    name: "zerofill.clear",
    bounds: [1.0, 1e6],
    summary: "set mapped pages to zero from user space, per page",
    timed: "setting `pages` base pages to zero, one call of memset per page; per page. state=warm: over and over, as \
        warm as their number allows. state=cold: flushed from every cache before each time, outside of the timing.",
    pitfalls: "the kernel clears pages through its own mapping and with its own instruction; it seldom finds them as \
        warm as the first rows here or as cold as the last.",
    variants: || {
        [
            per_pages("state", "warm", &[1, 16, 64, 256, 4096]),
            per_pages("state", "cold", &[16, 256, 4096]),
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
    fn pages_are_zero_afterwards_flushed_or_not() {
        let page = page_size();
        let mut memory = vec![1u8; 3 * page];
        let at = memory.as_mut_ptr() as usize;
        flush(at, memory.len());
        zero(at, 2, page);
        assert!(
            memory[..2 * page].iter().all(|b| *b == 0)
                && memory[2 * page..].iter().all(|b| *b == 1)
        );
    }
}
