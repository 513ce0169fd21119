//! Processes: making one, running a program in it, waiting for its end.

use std::ffi::{CStr, CString, c_char, c_void};
use std::io;
use std::path::Path;
use std::ptr;

use crate::call::{ANONYMOUS, READ_WRITE, c_path, check, new_mapping, page_size};
use crate::probe::{Exercises, HostDependence, Nature, Probe, latency, rows, table};
use crate::program;
use crate::session::{Session, Stop};

/// The status of a child that could not execute its program, as shells have it.
const NOT_EXECUTED: i32 = 127;

/// The length of a batch of operations that hand the CPU over: short, so that on a busy machine another process comes
/// into few of the batches, and the median still shows the operation alone.
pub const HANDOVER_BATCH_NS: u64 = 50_000;

/// Sets the batch length, and touches as much memory as the row asks for: `resident` bytes beyond the process's own, in
/// small pages, kept until it ends.
fn prepare(s: &mut Session) -> Result<(), Stop> {
    s.batch_target_ns(HANDOVER_BATCH_NS);
    let resident = s
        .params()
        .get("resident")
        .map_or(Ok(0), |_| s.int("resident", 0))?;
    let bytes = resident as usize;
    if bytes == 0 {
        return Ok(());
    }
    // Should memory run out, this process is the one to end, not the one that started it. Not vital, so its error is
    // not looked at.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let memory = new_mapping(bytes, READ_WRITE, ANONYMOUS, -1)? as *mut c_void;
    // SAFETY: a new private mapping; every write stays inside it. Small pages, because fork copies one entry for each,
    // and whether the kernel has huge ones to spare would decide the figure. Kernels without them refuse the advice,
    // which is as good.
    unsafe {
        libc::madvise(memory, bytes, libc::MADV_NOHUGEPAGE);
        // Half the time of touching page by page, which older kernels are left with.
        libc::madvise(memory, bytes, libc::MADV_POPULATE_WRITE);
        for at in (0..bytes).step_by(page_size()) {
            memory.cast::<u8>().add(at).write_volatile(1);
        }
    }
    Ok(())
}

/// Waits for a child that must end with status 0.
#[inline(always)]
fn wait_for(pid: libc::pid_t) -> io::Result<()> {
    let mut status = 0;
    // SAFETY: the kernel writes one number.
    check(i64::from(unsafe { libc::waitpid(pid, &mut status, 0) }))?;
    match status {
        0 => Ok(()),
        s if libc::WIFEXITED(s) && libc::WEXITSTATUS(s) == NOT_EXECUTED => {
            Err(io::Error::other("the program could not be executed"))
        }
        s => Err(io::Error::other(format!(
            "a child process ended with wait status {s:#x}"
        ))),
    }
}

/// Forks a child that does this and ends without running the parent's destructors, and waits for it.
#[inline(always)]
fn fork_and_wait(child: impl FnOnce()) -> io::Result<()> {
    // SAFETY: the process has one thread; the child does nothing but what follows.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            child();
            // SAFETY: _exit takes a number.
            unsafe { libc::_exit(NOT_EXECUTED) }
        }
        pid => wait_for(pid),
    }
}

fn fork(s: &mut Session) -> Result<(), Stop> {
    prepare(s)?;
    // SAFETY: _exit takes a number.
    s.repeat(|| fork_and_wait(|| unsafe { libc::_exit(0) }))
}

extern "C" fn end_at_once(_: *mut c_void) -> i32 {
    0
}

fn vfork(s: &mut Session) -> Result<(), Stop> {
    prepare(s)?;
    // Two stacks cannot share a frame, which is why vfork cannot be called from Rust, and why the child has one of its
    // own.
    let mut stack = [0u128; 256];
    let top = stack.as_mut_ptr_range().end.cast::<c_void>();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    s.repeat(|| {
        // SAFETY: the child runs `end_at_once` on a stack that is ours, aligned, and unused until it has ended:
        // CLONE_VFORK waits for that.
        let pid = check(i64::from(unsafe {
            libc::clone(end_at_once, top, flags, ptr::null_mut())
        }))?;
        wait_for(pid as libc::pid_t)
    })
}

/// A program with its arguments, laid out before the loop; its environment is empty.
struct CommandLine {
    args: Vec<CString>,
    argv: Vec<*const c_char>,
    env: [*const c_char; 1],
}

impl CommandLine {
    fn new(program: &Path, rest: &[&CStr]) -> Result<CommandLine, Stop> {
        let mut args = vec![c_path(program)?];
        args.extend(rest.iter().map(|&arg| arg.to_owned()));
        let argv = args
            .iter()
            .map(|arg| arg.as_ptr())
            .chain([ptr::null()])
            .collect();
        Ok(CommandLine {
            args,
            argv,
            env: [ptr::null()],
        })
    }

    fn path(&self) -> *const c_char {
        self.args[0].as_ptr()
    }
}

/// Measures fork, execve of a program with these arguments, and waiting for its end.
fn run(s: &mut Session, program: &Path, rest: &[&CStr]) -> Result<(), Stop> {
    let command = CommandLine::new(program, rest)?;
    prepare(s)?;
    s.repeat(|| {
        fork_and_wait(|| {
            // SAFETY: both lists end in a null pointer.
            unsafe { libc::execve(command.path(), command.argv.as_ptr(), command.env.as_ptr()) };
        })
    })
}

fn spawn(s: &mut Session) -> Result<(), Stop> {
    let command = CommandLine::new(&program::tiny(s.dir())?, &[])?;
    prepare(s)?;
    s.repeat(|| {
        let mut pid = 0;
        // SAFETY: the lists end in a null pointer and live through the call; the library does not write to what
        // they point to.
        let rc = unsafe {
            let (argv, env) = (command.argv.as_ptr().cast(), command.env.as_ptr().cast());
            libc::posix_spawn(
                &mut pid,
                command.path(),
                ptr::null(),
                ptr::null(),
                argv,
                env,
            )
        };
        if rc != 0 {
            return Err(io::Error::from_raw_os_error(rc));
        }
        wait_for(pid)
    })
}

fn exec(s: &mut Session) -> Result<(), Stop> {
    run(s, &program::tiny(s.dir())?, &[])
}

fn exec_dynamic(s: &mut Session) -> Result<(), Stop> {
    run(s, &program::dynamic()?, &[])
}

fn shell(s: &mut Session) -> Result<(), Stop> {
    let shell = Path::new("/bin/sh");
    if !program::executable(shell) {
        return Err(Stop::Skip("there is no /bin/sh here".into()));
    }
    let tiny = c_path(&program::tiny(s.dir())?)?;
    // The program's path is the shell's $0, so that no character of it means anything to the shell.
    run(s, shell, &[c"-c", c"\"$0\"", &tiny])
}

/// What the probes of this file share.
const FAMILY: Probe = Probe {
    nature: Nature::Blocks,
    depends_on_host: Some(HostDependence::Memory),
    ..latency(&table::PROCESSES, Exercises::Process)
};

/// The probes of this file. All of them take `resident`; only the one whose cost grows with it has rows for it.
pub static PROBES: &[Probe] = &[
    Probe {
        variants: || rows("resident", [0, 8 << 20, 64 << 20]),
        name: "process.fork",
        bounds: [1e4, 2e8],
        lmbench: Some("fork proc"),
        calls: &["fork"],
        summary: "fork a child that exits, and wait for it",
        timed: "fork, the child's _exit and waitpid, on one CPU; `resident` is memory touched beyond the process's own \
            1 MiB or so.",
        pitfalls: "grows with the resident memory of the process that forks. Small pages: a process with huge pages \
            forks faster than this.",
        run: fork,
        ..FAMILY
    },
    Probe {
        name: "process.vfork",
        bounds: [2e3, 1e7],
        calls: &["vfork"],
        summary: "a child that shares the memory and exits",
        timed: "clone with CLONE_VM and CLONE_VFORK (which is vfork, with a stack for the child), the child's exit and \
            waitpid, on one CPU.",
        run: vfork,
        ..FAMILY
    },
    Probe {
        name: "process.spawn",
        bounds: [5e3, 1e8],
        summary: "posix_spawn of a tiny program",
        timed: "posix_spawn of a static program of 200 bytes that exits at once, and waitpid, on one CPU.",
        pitfalls: "the C library maps a stack for the child each time.",
        run: spawn,
        ..FAMILY
    },
    Probe {
        name: "process.exec",
        bounds: [1e4, 1e8],
        calls: &["execve"],
        summary: "fork and exec of a tiny program",
        timed: "fork, execve of a static program of 200 bytes that exits at once, and waitpid, on one CPU.",
        pitfalls: "lmbench's program is linked dynamically: compare its figure with process.exec_dynamic.",
        run: exec,
        ..FAMILY
    },
    Probe {
        name: "process.exec_dynamic",
        bounds: [3e4, 3e8],
        lmbench: Some("exec proc"),
        summary: "fork and exec of /bin/true",
        timed: "fork, execve of /bin/true (else /usr/bin/true) with an empty environment, its loading of shared \
            libraries, its exit, and waitpid, on one CPU.",
        pitfalls: "the program is the host's: between two distributions it differs in itself, in its loader and in its \
            C library.",
        run: exec_dynamic,
        ..FAMILY
    },
    Probe {
        name: "process.shell",
        bounds: [5e4, 1e9],
        lmbench: Some("sh proc"),
        summary: "run a tiny program through the shell",
        timed: "fork, execve of /bin/sh -c with a static program of 200 bytes as its command, the program's run, the \
            exits, and waitpid, on one CPU.",
        pitfalls: "the shell is the host's: dash forks for the command, bash executes it in its own place.",
        run: shell,
        ..FAMILY
    },
];
