//! Starting a program to be timed, without copying this process.
//!
//! `fork` copies the page tables, and afterwards both sides fault on whatever they write: a cost that grows with the
//! process that starts and is none of the program's. Here the child borrows our memory until it becomes the program
//! (`CLONE_VM | CLONE_VFORK`, as `posix_spawn` does it, see `sysdeps/unix/sysv/linux/spawni.c` of glibc); meanwhile the
//! calling thread stands still. Unlike `posix_spawn` it can enter control groups, change user, and die with its parent.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::system::done;
use crate::{child, wait};

/// Ample for a few system calls one after the other, in a debug build, too.
const STACK: usize = 64 << 10;
/// Signals are numbered from 1 to this.
const LAST_SIGNAL: c_int = 64;

/// A program, and how it is to be started.
#[derive(Debug)]
pub struct Spawn {
    /// The program itself is the first.
    args: Vec<CString>,
    env: Vec<(OsString, OsString)>,
    dir: CString,
    fds: [OwnedFd; 3],
    user: Option<(u32, u32)>,
    groups: Vec<File>,
    mark: Option<u64>,
}

/// A program that was started.
#[derive(Debug)]
pub struct Started {
    /// Its process.
    pub process: Process,
    /// How long it took to enter its control groups: moving waits for a grace period of the kernel, milliseconds that
    /// are no part of the program's start.
    pub entering: Duration,
}

impl Spawn {
    /// A program by its path, with its arguments, the directory that it starts in, and its standard input, output and
    /// error. Its environment is ours.
    ///
    /// # Errors
    /// A text holds a zero byte.
    pub fn new(
        program: &Path,
        args: &[String],
        dir: &Path,
        fds: [OwnedFd; 3],
    ) -> io::Result<Spawn> {
        let args = args.iter().map(|word| text(OsStr::new(word)));
        let args = std::iter::once(text(program.as_os_str()))
            .chain(args)
            .collect::<io::Result<_>>()?;
        let (env, dir) = (std::env::vars_os().collect(), text(dir.as_os_str())?);
        Ok(Spawn {
            args,
            env,
            dir,
            fds,
            user: None,
            groups: Vec::new(),
            mark: None,
        })
    }

    /// Sets a variable of its environment.
    pub fn env(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        let name = name.into();
        self.env.retain(|(known, _)| *known != name);
        self.env.push((name, value.into()));
    }

    /// Marks it as started for this scratch directory (see [`child::mark`]).
    pub fn mark(&mut self, scratch: &Path) {
        self.env(child::MARK, scratch);
        self.mark = Some(child::mark_limit(scratch));
    }

    /// Leaves out the variables of its environment whose names are chosen.
    pub fn env_without(&mut self, is_left_out: impl Fn(&OsStr) -> bool) {
        self.env.retain(|(name, _)| !is_left_out(name));
    }

    /// Runs it as this user and group and no other group.
    pub fn user(&mut self, uid: u32, gid: u32) {
        self.user = Some((uid, gid));
    }

    /// Puts it into the control groups whose `cgroup.procs` these are, opened for writing, and offers it to the kernel
    /// when memory runs out, before anybody else.
    pub fn groups(&mut self, procs: Vec<File>) {
        self.groups = procs;
    }

    /// Does all that needs memory or files, so that [`Ready::start`] is left with the start itself.
    ///
    /// # Errors
    /// A variable of the environment holds a zero byte.
    pub fn ready(&self) -> io::Result<Ready<'_>> {
        let entry = |(name, value): &(OsString, OsString)| {
            text(&[name.as_os_str(), value].join(OsStr::new("=")))
        };
        let env = self
            .env
            .iter()
            .map(entry)
            .collect::<io::Result<Vec<CString>>>()?;
        let lists = [pointers(&self.args), pointers(&env)];
        // Written to, so that its pages are there.
        let stack = vec![1u128; STACK / size_of::<u128>()];
        Ok(Ready {
            spawn: self,
            _env: env,
            lists,
            handled: handled_signals(),
            stack,
        })
    }
}

/// A program that is about to be started.
#[derive(Debug)]
pub struct Ready<'a> {
    spawn: &'a Spawn,
    /// What the second list points to.
    _env: Vec<CString>,
    /// Arguments and environment as the kernel takes them.
    lists: [Vec<*const c_char>; 2],
    handled: Vec<c_int>,
    stack: Vec<u128>,
}

impl Ready<'_> {
    /// Starts it in a process group of its own. The kernel kills it when the *thread* that called this ends, however it
    /// ends.
    ///
    /// # Errors
    /// The kernel's, for the first step that failed, from the clone to the exec. Nothing is left running then.
    pub fn start(mut self) -> io::Result<Started> {
        let (spawn, parent) = (self.spawn, std::process::id() as libc::pid_t);
        let (lists, handled) = (&self.lists, &self.handled);
        let mut job = Job {
            spawn,
            lists,
            handled,
            parent,
            entering: Duration::ZERO,
            error: 0,
        };
        let (pid, pidfd) = clone(&mut job, &mut self.stack)?;
        let mut process = Process {
            pid,
            fd: pidfd,
            status: None,
        };
        if job.error != 0 {
            process.wait()?;
            return Err(io::Error::from_raw_os_error(job.error));
        }
        Ok(Started {
            process,
            entering: job.entering,
        })
    }
}

fn text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a text holds a zero byte"))
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts
        .iter()
        .map(|text| text.as_ptr())
        .chain(std::iter::once(std::ptr::null()))
        .collect()
}

/// What the child is told, and what it answers. It lives in our memory, which the child sees.
struct Job<'a> {
    spawn: &'a Spawn,
    lists: &'a [Vec<*const c_char>; 2],
    handled: &'a [c_int],
    parent: libc::pid_t,
    entering: Duration,
    error: c_int,
}

/// Signals for which we have a handler. The child must not run one: it would change our memory.
fn handled_signals() -> Vec<c_int> {
    let is_handled = |signal: &c_int| {
        // SAFETY: a zeroed sigaction is valid, and the kernel writes at most one.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(*signal, std::ptr::null(), &mut action) == 0;
            known && action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN
        }
    };
    (1..=LAST_SIGNAL).filter(is_handled).collect()
}

/// Makes the child and comes back when it has become the program, or has ended.
fn clone(job: &mut Job, stack: &mut [u128]) -> io::Result<(libc::pid_t, OwnedFd)> {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut pidfd: c_int = -1;
    // SAFETY: the stack grows down from the aligned end of a buffer that nobody else uses. Job and stack outlive the
    // child's use of them, because CLONE_VFORK holds this thread until then. No signal is delivered to the child before
    // it has put our handlers away, because all are blocked. The descriptor is new and nobody else's.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let top = stack.as_mut_ptr_range().end.cast::<c_void>();
        let pid = libc::clone(
            as_child,
            top,
            flags,
            std::ptr::from_mut(job).cast::<c_void>(),
            &mut pidfd as *mut c_int,
        );
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        if pid < 0 {
            Err(error)
        } else {
            Ok((pid, OwnedFd::from_raw_fd(pidfd)))
        }
    }
}

/// What the child does. It shares our memory, so it allocates nothing, takes no lock and touches nothing but its job.
extern "C" fn as_child(job: *mut c_void) -> c_int {
    // SAFETY: the caller passes a Job, and its thread stands still until we are done.
    let job = unsafe { &mut *job.cast::<Job>() };
    if become_program(job).is_none() {
        // SAFETY: reads this thread's errno, which is the caller's as well.
        job.error = unsafe { *libc::__errno_location() };
    }
    // SAFETY: ends the child alone, and runs nothing of ours.
    unsafe { libc::_exit(127) }
}

/// Returns only when a step failed; `errno` then says why.
fn become_program(job: &mut Job) -> Option<()> {
    let done = |answer: c_int| (answer >= 0).then_some(());
    let (spawn, [args, env]) = (job.spawn, job.lists);
    // SAFETY: system calls on plain numbers and on texts and lists that end in a zero. Those for the user go to the
    // kernel directly, because the library would change every thread that it knows, and those are our parent's.
    unsafe {
        for signal in job.handled.iter().chain(&[libc::SIGPIPE]) {
            libc::signal(*signal, libc::SIG_DFL);
        }
        done(libc::setpgid(0, 0))?;
        for (to, from) in (0..).zip(spawn.fds.iter().map(AsRawFd::as_raw_fd)) {
            done(if from == to {
                libc::fcntl(from, libc::F_SETFD, 0)
            } else {
                libc::dup2(from, to)
            })?;
        }
        done(libc::chdir(spawn.dir.as_ptr()))?;
        enter(job)?;
        if let Some(limit) = spawn.mark {
            child::set_mark_limit(limit);
        }
        if let Some((uid, gid)) = spawn.user {
            done(libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<u32>()) as c_int)?;
            done(libc::syscall(libc::SYS_setgid, gid) as c_int)?;
            done(libc::syscall(libc::SYS_setuid, uid) as c_int)?;
        }
        // After the change of user, which would clear the setting.
        done(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        // The parent may have died before the setting took effect.
        if libc::getppid() != job.parent {
            libc::_exit(1);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        done(libc::execve(args[0], args.as_ptr(), env.as_ptr()))
    }
}

/// Moves the child into its control groups, and notes how long that took.
fn enter(job: &mut Job) -> Option<()> {
    if job.spawn.groups.is_empty() {
        return Some(());
    }
    let begun = Instant::now();
    // SAFETY: system calls on open descriptors and texts that end in a zero byte.
    unsafe {
        for group in &job.spawn.groups {
            (libc::write(group.as_raw_fd(), b"0".as_ptr().cast(), 1) == 1).then_some(())?;
        }
        let score = libc::open(
            c"/proc/self/oom_score_adj".as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC,
        );
        if score >= 0 {
            libc::write(score, b"500".as_ptr().cast(), 3);
            libc::close(score);
        }
    }
    job.entering = begun.elapsed();
    Some(())
}

/// A child process. It is not ended by being dropped.
#[derive(Debug)]
pub struct Process {
    pid: libc::pid_t,
    fd: OwnedFd,
    status: Option<ExitStatus>,
}

impl Process {
    /// Its number, which is that of its process group, too.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// How it ended; `None` while it runs.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.reap(libc::WNOHANG)
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            match self.reap(0) {
                Ok(Some(status)) => return Ok(status),
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
        }
    }

    /// Waits for its end until a deadline; `None` when it still runs then.
    pub fn wait_deadline(&mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(Some(status));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            wait::any(&[self.as_fd()], left)?;
        }
    }

    fn reap(&mut self, options: c_int) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let mut status = 0;
            // SAFETY: the kernel writes one number.
            let pid = done(unsafe { libc::waitpid(self.pid, &mut status, options) })?;
            self.status = (pid == self.pid).then(|| ExitStatus::from_raw(status));
        }
        Ok(self.status)
    }
}

impl AsFd for Process {
    /// Becomes readable when the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests;
