//! Signals: installing a handler, sending one to oneself, and the fault that a forbidden write raises.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::call::{ANONYMOUS, check, new_mapping, page_size};
use crate::probe::{Exercises, Probe, latency, table};
use crate::session::{Session, Stop};

/// Signals that a handler has seen. Only the one thread of the process writes it.
static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// The address whose write is meant to fault.
static FORBIDDEN: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_signal: libc::c_int) {
    CAUGHT.store(CAUGHT.load(Relaxed) + 1, Relaxed);
}

/// An action for `sigaction`: this handler, nothing blocked besides the signal itself.
fn action(handler: usize, flags: i32) -> libc::sigaction {
    // SAFETY: a sigaction is plain numbers; zeroed means no flags and an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    action
}

fn set_action(signal: i32, action: &libc::sigaction) -> io::Result<()> {
    // SAFETY: the handlers of this file do nothing that is forbidden in a handler.
    check(i64::from(unsafe {
        libc::sigaction(signal, action, std::ptr::null_mut())
    }))?;
    Ok(())
}

/// Every signal of a batch must have reached its handler.
fn all_caught(before: u64, ops: u64) -> io::Result<()> {
    match CAUGHT.load(Relaxed) - before {
        n if n == ops => Ok(()),
        n => Err(io::Error::other(format!(
            "{ops} signals were raised, and the handler ran {n} times"
        ))),
    }
}

fn install(s: &mut Session) -> Result<(), Stop> {
    let new = action(count as *const () as usize, 0);
    let mut old = action(0, 0);
    s.repeat(|| {
        // SAFETY: both actions are ours, and the handler only counts.
        check(i64::from(unsafe {
            libc::sigaction(libc::SIGUSR1, &new, &mut old)
        }))?;
        Ok(())
    })
}

fn handle(s: &mut Session) -> Result<(), Stop> {
    set_action(libc::SIGUSR1, &action(count as *const () as usize, 0))?;
    // SAFETY: getpid takes nothing.
    let me = unsafe { libc::getpid() };
    s.batches(|ops| {
        let before = CAUGHT.load(Relaxed);
        for _ in 0..ops {
            // SAFETY: the signal is for this process, and its handler only counts. With one thread it is delivered
            // before kill returns.
            check(i64::from(unsafe { libc::kill(me, libc::SIGUSR1) }))?;
        }
        all_caught(before, ops)
    })
}

/// Counts the fault and steps over the store that raised it. Any other fault is left to end the process as it should.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
extern "C" fn step_over(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid siginfo and ucontext to a handler that asked for them. The address is that of
    // the store in `forbidden_store`, the only one that writes there, so its length is known.
    unsafe {
        if (*info).si_addr() as usize != FORBIDDEN.load(Relaxed) {
            libc::signal(signal, libc::SIG_DFL);
            return;
        }
        let context = &mut *context.cast::<libc::ucontext_t>();
        #[cfg(target_arch = "x86_64")]
        {
            context.uc_mcontext.gregs[libc::REG_RIP as usize] += 3;
        }
        #[cfg(target_arch = "aarch64")]
        {
            context.uc_mcontext.pc += 4;
        }
    }
    CAUGHT.store(CAUGHT.load(Relaxed) + 1, Relaxed);
}

/// One store of a known length: `movb $0, (%rdi)` has three bytes (c6 07 00), an instruction of aarch64 four.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn forbidden_store(address: usize) {
    // SAFETY: the store never happens: it faults, and `step_over` continues behind it.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!("mov byte ptr [rdi], 0", in("rdi") address, options(nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!("strb wzr, [{0}]", in(reg) address, options(nostack, preserves_flags));
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn fault(s: &mut Session) -> Result<(), Stop> {
    let page = new_mapping(page_size(), libc::PROT_READ, ANONYMOUS, -1)?;
    // SAFETY: the page is readable. Reading it once makes it present, so that the write meets the protection and no
    // missing page.
    unsafe { (page as *const u8).read_volatile() };
    FORBIDDEN.store(page, Relaxed);
    set_action(
        libc::SIGSEGV,
        &action(step_over as *const () as usize, libc::SA_SIGINFO),
    )?;
    s.batches(|ops| {
        let before = CAUGHT.load(Relaxed);
        for _ in 0..ops {
            forbidden_store(page);
        }
        all_caught(before, ops)
    })
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn fault(_: &mut Session) -> Result<(), Stop> {
    let _ = (&FORBIDDEN, page_size as fn() -> usize);
    Err(Stop::Skip(
        "stepping over a faulting store is known for x86_64 and aarch64 only".into(),
    ))
}

const FAMILY: Probe = latency(&table::SIGNALS, Exercises::Signal);

/// The probes of this file.
pub static PROBES: &[Probe] = &[
    Probe {
        name: "signal.install",
        bounds: [20.0, 1e4],
        entries: Some(1.0),
        lmbench: Some("sig inst"),
        calls: &["rt_sigaction"],
        summary: "install a signal handler",
        timed: "sigaction of the C library: a handler set for SIGUSR1, the old action read back.",
        run: install,
        ..FAMILY
    },
    Probe {
        name: "signal.handle",
        bounds: [200.0, 1e5],
        // Sending oneself a signal, and returning from its handler.
        entries: Some(2.0),
        lmbench: Some("sig hndl"),
        summary: "send oneself a signal and handle it",
        timed: "kill of the own process with SIGUSR1, the frame on the stack, a handler that counts, and the return \
            from it.",
        pitfalls: "the frame holds the vector registers: a CPU with wider ones takes longer.",
        run: handle,
        ..FAMILY
    },
    Probe {
        name: "signal.fault",
        bounds: [200.0, 2e5],
        exercises: Some(Exercises::Fault),
        lmbench: Some("Prot Fault"),
        summary: "a forbidden write, caught",
        timed: "a store to a present read-only page: the CPU's fault, SIGSEGV, a handler that counts and steps over \
            the store, and the return.",
        pitfalls: "lmbench's handler returns to the same store instead of stepping over it; the path through the \
            kernel is the same.",
        run: fault,
        ..FAMILY
    },
];
