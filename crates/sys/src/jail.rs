//! A process that gives up its rights before it reads what an attacker may have made.
//!
//! It keeps the descriptors that it was given, its memory up to a limit, and the few system calls that computing needs.
//! It can open nothing, start nothing, signal nobody but itself and reach no network. What it had in hand when a signal
//! ended it (too much CPU time, no memory, a fault) it tells as its last word.

use std::ffi::{c_int, c_long, c_void};
use std::io;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::system::{done, is_root};

/// The user and group that are nobody's.
const NOBODY: u32 = 65_534;
/// The first byte of the packet that a process sends when a signal ends it; four bytes follow, what it had in hand.
pub const LAST_WORD: u8 = 0xff;
/// How it ends then.
const ENDED: c_int = 101;

/// What is in hand.
static IN_HAND: AtomicU32 = AtomicU32::new(0);

/// Notes what is in hand from now on.
pub fn in_hand(what: u32) {
    IN_HAND.store(what, Ordering::Relaxed);
}

/// Lets this process use so much CPU time from now on before a signal ends it.
pub fn allow_cpu(time: Duration) {
    let timer = libc::itimerval {
        it_interval: libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        },
        it_value: libc::timeval {
            tv_sec: time.as_secs() as libc::time_t,
            tv_usec: libc::suseconds_t::from(time.subsec_micros() as i32),
        },
    };
    // SAFETY: the kernel reads one itimerval. A timer that cannot be set leaves the limit on CPU time.
    unsafe { libc::setitimer(libc::ITIMER_PROF, &timer, std::ptr::null_mut()) };
}

/// Limits this process: address space and CPU time, no files that grow, no dumps of its memory, no further processes.
///
/// # Errors
/// What the kernel said.
pub fn limit(memory: u64, cpu_seconds: u64) -> io::Result<()> {
    let set = |resource, most| {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit).map_err(io::Error::from)
    };
    set(Resource::As, memory)?;
    set(Resource::Cpu, cpu_seconds)?;
    set(Resource::Fsize, 0)?;
    set(Resource::Core, 0)?;
    set(Resource::Nproc, 0)
}

/// Closes all but the standard descriptors, which a process has that was started by another of this program.
pub fn close_others() {
    // SAFETY: nothing in this process has opened a descriptor yet but the three standard ones.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    if closed != 0 {
        // Linux before 5.9.
        (3..1024).for_each(|fd| {
            // SAFETY: as above.
            unsafe { libc::close(fd) };
        });
    }
}

/// Gives up all rights for good. Standard input is the one way to the process that is served, which gets the last word
/// there.
///
/// # Errors
/// What the kernel said: this process must not go on then.
pub fn enter(memory: u64, cpu_seconds: u64) -> io::Result<()> {
    become_nobody()?;
    limit(memory, cpu_seconds)?;
    told_of_signals()?;
    forbid_calls()
}

/// Changes to a user without rights, where this process may, and gives up what rights it has apart from its user.
fn become_nobody() -> io::Result<()> {
    #[repr(C)]
    struct Head {
        version: u32,
        pid: c_int,
    }
    /// `_LINUX_CAPABILITY_VERSION_3`: two sets of three words.
    const VERSION: u32 = 0x2008_0522;
    // SAFETY: system calls on plain numbers, and on a head and words that live until capset returns. This process has
    // one thread.
    unsafe {
        if is_root() {
            // A user name space may have no such user: without capabilities and calls root's name there opens nothing.
            let _ = done(libc::syscall(
                libc::SYS_setgroups,
                0,
                std::ptr::null::<u32>(),
            ));
            let _ = done(libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY));
            let _ = done(libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY));
        }
        done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        let head = Head {
            version: VERSION,
            pid: 0,
        };
        let none = [0_u32; 6];
        done(libc::syscall(
            libc::SYS_capset,
            std::ptr::from_ref(&head),
            none.as_ptr(),
        ))?;
        // A change of user clears both.
        done(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0))?;
        done(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
    }
    Ok(())
}

/// Has the signals that end a process that went wrong tell first what it had in hand.
fn told_of_signals() -> io::Result<()> {
    let signals = [
        libc::SIGABRT,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGPROF,
        libc::SIGSEGV,
        libc::SIGTRAP,
        libc::SIGXCPU,
    ];
    for signal in signals {
        // SAFETY: a zeroed sigaction is valid, and the handler calls what is async-signal-safe only.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = last_word as extern "C" fn(c_int) as usize;
            // On the stack that the standard library keeps for a stack that ran over.
            action.sa_flags = libc::SA_ONSTACK;
            done(libc::sigaction(signal, &action, std::ptr::null_mut()))?;
        }
    }
    Ok(())
}

/// Ends this process as a signal would.
pub fn end() -> ! {
    last_word(0);
    crate::child::leave(ENDED)
}

extern "C" fn last_word(_: c_int) {
    let [a, b, c, d] = IN_HAND.load(Ordering::Relaxed).to_le_bytes();
    let word = [LAST_WORD, a, b, c, d];
    // SAFETY: write and _exit are async-signal-safe, and the word lives on this stack.
    unsafe {
        libc::write(0, word.as_ptr().cast::<c_void>(), word.len());
        libc::_exit(ENDED)
    }
}

/// The calls that are let through whatever their arguments are.
const CALLS: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_close,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_setitimer,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Ends this process at any call but those that it needs. Memory that is mapped is of no file and never code.
fn forbid_calls() -> io::Result<()> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let of = |code: u16, k: u32, jt: u8, jf: u8| libc::sock_filter { code, jt, jf, k };
    let number = offset_of!(libc::seccomp_data, nr) as u32;
    let architecture = offset_of!(libc::seccomp_data, arch) as u32;
    // The low half of an argument; both architectures are little-endian.
    let argument = |n: usize| (offset_of!(libc::seccomp_data, args) + 8 * n) as u32;
    let allow = || of(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    let kill = || of(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0);
    let mut program = vec![
        of(LOAD, architecture, 0, 0),
        of(EQUAL, ARCHITECTURE, 1, 0),
        kill(),
        of(LOAD, number, 0, 0),
    ];
    for &call in CALLS {
        program.extend([of(EQUAL, call as u32, 0, 1), allow()]);
    }
    let exec = libc::PROT_EXEC as u32;
    // mmap: no code, and of no file.
    program.extend([
        of(EQUAL, libc::SYS_mmap as u32, 0, 6),
        of(LOAD, argument(2), 0, 0),
        of(ANY_BIT, exec, 3, 0),
        of(LOAD, argument(3), 0, 0),
        of(ANY_BIT, libc::MAP_ANONYMOUS as u32, 0, 1),
        allow(),
        kill(),
    ]);
    program.extend([
        of(EQUAL, libc::SYS_mprotect as u32, 0, 4),
        of(LOAD, argument(2), 0, 0),
        of(ANY_BIT, exec, 1, 0),
        allow(),
        kill(),
    ]);
    // What the standard library asks before it closes a descriptor, in builds with assertions.
    program.extend([
        of(EQUAL, libc::SYS_fcntl as u32, 0, 4),
        of(LOAD, argument(1), 0, 0),
        of(EQUAL, libc::F_GETFD as u32, 0, 1),
        allow(),
        kill(),
    ]);
    // What `abort` does, to this process alone.
    program.extend([
        of(EQUAL, libc::SYS_tgkill as u32, 0, 3),
        of(LOAD, argument(0), 0, 0),
        of(EQUAL, std::process::id(), 0, 1),
        allow(),
        kill(),
    ]);
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the program that the filter points to lives until the kernel has copied it.
    done(unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            std::ptr::from_ref(&filter),
        )
    })
    .map(drop)
}
