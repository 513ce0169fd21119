//! Child processes that die with their parent.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, WaitId, WaitIdOptions, setrlimit, waitid};

use crate::procfs::bounded;
use crate::procfs::process::owned_by;
use crate::system::{done, unless};
use crate::{sample, wait};

/// Puts the child into a process group of its own and has the kernel kill it when the *thread* that starts it ends,
/// however it ends.
///
/// Call [`Command::spawn`] from a thread that lives as long as the child should.
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    let parent = std::process::id();
    command.process_group(0);
    // SAFETY: the closure runs between fork and exec and calls only prctl, getppid and _exit, all async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            // After the change of user that `Command::uid` asks for, which would clear the setting.
            done(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            // The parent may have died before the setting took effect.
            if libc::getppid() as u32 != parent {
                libc::_exit(1);
            }
            Ok(())
        })
    }
}

/// Puts the child into a session of its own, with all signals blocked: a kill of our group passes it by, and nothing but
/// SIGKILL and SIGSTOP ends or stops it.
pub fn apart(command: &mut Command) -> &mut Command {
    // SAFETY: the closure runs between fork and exec and calls only functions that are async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            // Blocked signals stay so across exec.
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
            done(libc::setsid()).map(drop)
        })
    }
}

/// Ends this process at once with a status: nothing is dropped, flushed or unwound, and no thread is waited for.
pub fn leave(status: i32) -> ! {
    // SAFETY: _exit takes a plain number and does not return.
    unsafe { libc::_exit(status) }
}

/// Has no child inherit what is open in this process now, the three standard descriptors left out.
///
/// What this program opens is closed in its children anyway; what its caller left open is not, and a server that runs
/// as another user could read and write it.
pub fn keep_descriptors() {
    // SAFETY: the call changes a flag of descriptors and nothing else.
    if unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    } == 0
    {
        return;
    }
    // Linux before 5.11.
    for fd in sample::numbers(Path::new("/proc/self/fd"))
        .into_iter()
        .filter(|fd| *fd > 2)
    {
        // SAFETY: as above; a descriptor that is closed by now is an error and no harm.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// The processes in the control group with this directory.
pub fn members(directory: &Path) -> Vec<i32> {
    let text = bounded::text(directory.join("cgroup.procs")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.trim().parse().ok())
        .filter(|pid| *pid > 1)
        .collect()
}

/// The variable that marks what was started for a scratch directory.
pub const MARK: &str = "FINGERPOST_SCRATCH";

/// Marks a command, and all that it will start, as started for this scratch directory; [`marked`] finds it again.
///
/// The mark is a variable in the environment, and because some servers write their title over it (nginx does), also the
/// limit on file locks: it is inherited as well, and has had no effect since Linux 2.4.25 (getrlimit(2)).
pub fn mark<'a>(command: &'a mut Command, scratch: &Path) -> &'a mut Command {
    let limit = mark_limit(scratch);
    command.env(MARK, scratch);
    // SAFETY: the closure runs between fork and exec and makes one system call.
    unsafe {
        command.pre_exec(move || {
            set_mark_limit(limit);
            Ok(())
        })
    }
}

/// The limit that is the mark. The directory's name is random, so the number is, too (FNV-1a).
pub fn mark_limit(scratch: &Path) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = scratch
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, mix);
    // Neither a number that somebody would set by hand nor “unlimited”.
    hash >> 2 | 1 << 61
}

/// Sets the calling process's limit. Where an even lower one was set the variable must do.
pub(crate) fn set_mark_limit(limit: u64) {
    let _ = setrlimit(
        Resource::Locks,
        Rlimit {
            current: Some(limit),
            maximum: Some(limit),
        },
    );
}

/// The most bytes of an environment that are looked through for the mark: as much as the kernel lets a program start
/// with (three quarters of 8 MiB, `execve(2)`). A process can say that its environment is as long as it likes.
const LONGEST_ENVIRONMENT: usize = 6 << 20;

/// The living processes that carry the mark of this directory, this one left out.
///
/// Other users' processes are asked for their limits alone, which the kernel writes. The memory of a process is read
/// only where it could not be given the limit, and is of this user.
pub fn marked(scratch: &Path) -> Vec<i32> {
    let mut mark = format!("{MARK}=").into_bytes();
    mark.extend_from_slice(scratch.as_os_str().as_bytes());
    let limit = mark_limit(scratch);
    let carries = |pid: &i32| {
        let Some((soft, hard)) = lock_limits(*pid) else {
            return false;
        };
        soft == limit
            || hard < limit && owned_by(*pid, crate::system::uid()) && {
                let file = format!("/proc/{pid}/environ");
                bounded::of_memory(file.as_ref(), LONGEST_ENVIRONMENT)
                    .is_ok_and(|all| all.split(|b| *b == 0).any(|entry| entry == mark))
            }
    };
    let mut pids = sample::numbers(Path::new("/proc"));
    pids.retain(|pid| {
        *pid > 1 && *pid != std::process::id() as i32 && carries(pid) && !is_zombie(*pid)
    });
    pids
}

/// The soft and hard limits on file locks of a process; `None` when it has ended.
pub(crate) fn lock_limits(pid: i32) -> Option<(u64, u64)> {
    parse_lock_limits(&bounded::text(format!("/proc/{pid}/limits")).ok()?)
}

/// Both limits in `/proc/PID/limits`; [`u64::MAX`] for none.
fn parse_lock_limits(limits: &str) -> Option<(u64, u64)> {
    let mut words = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max file locks"))?
        .split_ascii_whitespace();
    let mut limit = || match words.next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    };
    Some((limit()?, limit()?))
}

/// Kills what carries the mark of this directory, until nothing does.
///
/// The mark can be read, so that another user can give it to processes that start others for ever: those are killed,
/// and not waited for.
pub fn kill_marked(scratch: &Path) -> io::Result<()> {
    let began = Instant::now();
    let mut early = std::collections::BTreeSet::new();
    kill_all(|| {
        let pids = marked(scratch);
        if began.elapsed() < STRANGERS {
            early.extend(pids.iter().copied());
            return pids;
        }
        let (ours, strange): (Vec<i32>, Vec<i32>) = pids
            .into_iter()
            .partition(|pid| early.contains(pid) || owned_by(*pid, crate::system::uid()));
        strange.into_iter().for_each(kill);
        ours
    })
}

/// How long new processes of other users that carry our mark are waited for. A server's are there from the beginning.
const STRANGERS: Duration = Duration::from_secs(1);

/// Kills what the list names until it names nobody, for ten seconds at most. What forks meanwhile is met the next time
/// round.
pub fn kill_all(mut list: impl FnMut() -> Vec<i32>) -> io::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let pids: Vec<i32> = list().into_iter().filter(|pid| !is_zombie(*pid)).collect();
        if pids.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("{pids:?} do not end"),
            ));
        }
        pids.into_iter().for_each(kill);
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn kill(pid: i32) {
    // SAFETY: kill takes plain numbers; a process that is gone is no harm.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Whether a process has ended and only waits for its parent to notice.
fn is_zombie(pid: i32) -> bool {
    sample::process(pid).is_some_and(|stat| stat.state == 'Z')
}

/// The random id of this boot.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|s| s.trim().to_owned())
        .unwrap_or_default()
}

/// The start time of a process in clock ticks since boot, which with its id names it for good; `None` when there is no
/// such process.
pub fn start_time(pid: i32) -> Option<u64> {
    sample::process(pid).map(|stat| stat.started)
}

/// Sends a signal to a whole process group. A group that is gone is no error.
pub fn signal_group(pgid: i32, signal: i32) -> io::Result<()> {
    send(pgid, -pgid, signal, "not a process group of ours")
}

/// Sends a signal to one process. A process that is gone is no error.
pub fn signal(pid: i32, signal: i32) -> io::Result<()> {
    send(pid, pid, signal, "not a process of ours")
}

fn send(number: i32, to: i32, signal: i32, refused: &str) -> io::Result<()> {
    // A group of 0 or 1 would be our own or everybody's.
    if number <= 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, refused));
    }
    // SAFETY: kill takes plain numbers; a negative one is a group.
    unless(
        done(unsafe { libc::kill(to, signal) }).map(drop),
        &[libc::ESRCH],
    )
}

/// What has become of a child that still is to be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is stopped by a signal.
    Stopped,
    /// It has ended. Its counters can be read below `/proc` until it is waited for.
    Ended,
}

/// Whether a child is stopped or has ended, without waiting for it: it stays to be waited for.
pub fn change(pid: i32) -> io::Result<Option<Change>> {
    let options = WaitIdOptions::EXITED
        | WaitIdOptions::STOPPED
        | WaitIdOptions::NOHANG
        | WaitIdOptions::NOWAIT;
    let status = waitid(
        WaitId::Pid(Pid::from_raw(pid).ok_or(Errno::CHILD)?),
        options,
    )?;
    Ok(status.map(|status| {
        if status.stopped() {
            Change::Stopped
        } else {
            Change::Ended
        }
    }))
}

/// Waits for a child until a deadline; `None` when it still runs then.
pub fn wait_deadline(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    look_until(deadline, || child.try_wait())
}

/// Looks again and again, ever more rarely, until there is something to see, or until this time.
pub fn look_until<T>(
    end: Instant,
    mut look: impl FnMut() -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let mut pause = Duration::from_micros(200);
    loop {
        let (seen, left) = (look()?, end.saturating_duration_since(Instant::now()));
        if seen.is_some() || left.is_zero() {
            return Ok(seen);
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// What a bounded child left behind.
#[derive(Debug)]
pub struct Output {
    /// How it ended; `None` when it was killed at the deadline.
    pub status: Option<ExitStatus>,
    /// What it wrote on standard output.
    pub stdout: Vec<u8>,
    /// The beginning of what it wrote on standard error.
    pub stderr: Vec<u8>,
}

/// The most bytes of standard output, and of standard error, that are kept.
const MAX_OUTPUT: usize = 4 << 20;

/// Runs a command to its end or to a deadline, at which its whole process group is killed, and gives what it wrote.
///
/// The command must put itself in a group of its own if it is to be told apart from us; [`Command::process_group`] is
/// set here.
pub fn run_bounded(command: &mut Command, deadline: Instant) -> io::Result<Output> {
    run_bounded_on(command, Stdio::null(), deadline)
}

/// The same, with this as its standard input.
pub fn run_bounded_on(
    command: &mut Command,
    input: Stdio,
    deadline: Instant,
) -> io::Result<Output> {
    command
        .process_group(0)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let group = child.id() as i32;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let out = child
        .stdout
        .take()
        .map(|pipe| (OwnedFd::from(pipe), &mut stdout));
    let err = child
        .stderr
        .take()
        .map(|pipe| (OwnedFd::from(pipe), &mut stderr));
    let whole = drain(out.into_iter().chain(err).collect(), deadline)?;
    let status = if whole {
        wait_deadline(&mut child, deadline)?
    } else {
        None
    };
    if status.is_none() {
        signal_group(group, libc::SIGKILL)?;
        child.wait()?;
    }
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

/// Reads pipes until all are closed (true) or the deadline comes (false). What passes the limit is read and forgotten,
/// so that the writer does not block.
fn drain(mut pipes: Vec<(OwnedFd, &mut Vec<u8>)>, deadline: Instant) -> io::Result<bool> {
    let mut chunk = [0u8; 16 << 10];
    while !pipes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let ready = wait::any(
            &pipes
                .iter()
                .map(|(pipe, _)| pipe.as_fd())
                .collect::<Vec<_>>(),
            left,
        )?;
        // From the last on, so that those before keep their places.
        for at in (0..ready.len()).rev().filter(|at| ready[*at]) {
            let (pipe, into) = &mut pipes[at];
            let n = rustix::io::retry_on_intr(|| rustix::io::read(&*pipe, &mut chunk))?;
            let room = MAX_OUTPUT.saturating_sub(into.len());
            into.extend_from_slice(&chunk[..n.min(room)]);
            if n == 0 {
                pipes.remove(at);
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procfs::process::Stat;

    #[test]
    fn a_start_time_is_found_behind_any_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10 18446744073709551615";
        let started = |text| Stat::parse(text).map(|stat| stat.started);
        assert_eq!(started(stat), Some(98765));
        assert_eq!(started("42 (a"), None);
        assert_eq!(started(""), None);
    }

    #[test]
    fn a_group_that_could_be_everybody_is_never_signalled() {
        assert!(signal_group(0, libc::SIGKILL).is_err());
        assert!(signal_group(1, libc::SIGKILL).is_err());
        assert!(signal_group(-1, libc::SIGKILL).is_err());
    }

    #[test]
    fn what_carries_the_mark_is_killed_in_another_group_too() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        command
            .arg("600")
            .env("FINGERPOST_SCRATCH", dir.path())
            .process_group(0);
        // SAFETY: the closure runs between fork and exec and makes one system call.
        unsafe {
            command.pre_exec(|| {
                // So low that it cannot be the mark.
                set_mark_limit(7);
                Ok(())
            })
        };
        let mut child = command.spawn().unwrap();
        // The parent goes on as soon as the child has left its memory; the new one's environment is there a moment
        // later.
        let deadline = Instant::now() + Duration::from_secs(30);
        while marked(dir.path()) != [child.id() as i32] {
            assert!(Instant::now() < deadline, "{:?}", marked(dir.path()));
            std::thread::yield_now();
        }
        kill_all(|| marked(dir.path())).unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(marked(dir.path()).is_empty());
    }

    #[test]
    fn what_lost_its_environment_is_found_by_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let script = "env -i setsid sleep 600 & exec env -i sleep 600";
        let mut child = mark(Command::new("sh").args(["-c", script]), dir.path())
            .process_group(0)
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        let bare =
            |pid: &i32| std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|e| e.is_empty());
        while marked(dir.path()).iter().filter(|pid| bare(pid)).count() < 2 {
            assert!(Instant::now() < deadline, "{:?}", marked(dir.path()));
            std::thread::yield_now();
        }
        kill_all(|| marked(dir.path())).unwrap();
        child.wait().unwrap();
        assert!(marked(dir.path()).is_empty());
        assert_eq!(
            parse_lock_limits(
                "Max file locks            77                   unlimited            locks\n"
            ),
            Some((77, u64::MAX))
        );
    }

    #[test]
    fn a_child_that_does_not_end_is_given_up_at_the_deadline() {
        let mut child = die_with_parent(Command::new("sleep").arg("600"))
            .spawn()
            .unwrap();
        assert!(
            wait_deadline(&mut child, Instant::now() + Duration::from_millis(5))
                .unwrap()
                .is_none()
        );
        signal_group(child.id() as i32, libc::SIGKILL).unwrap();
        assert!(
            wait_deadline(&mut child, Instant::now() + Duration::from_secs(10))
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn a_bounded_command_gives_what_it_wrote_and_how_it_ended() {
        let deadline = Instant::now() + Duration::from_secs(20);
        let out = run_bounded(
            Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]),
            deadline,
        )
        .unwrap();
        assert_eq!(
            (out.stdout.as_slice(), out.stderr.as_slice()),
            (&b"out\n"[..], &b"err\n"[..])
        );
        assert_eq!(out.status.and_then(|s| s.code()), Some(3));
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children() {
        let deadline = Instant::now() + Duration::from_millis(50);
        let out = run_bounded(
            Command::new("sh").args(["-c", "echo $$; sleep 600 & wait"]),
            deadline,
        )
        .unwrap();
        assert!(out.status.is_none());
        let group: i32 = String::from_utf8_lossy(&out.stdout).trim().parse().unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        // SAFETY: signal 0 only asks whether the group has members.
        while unsafe { libc::killpg(group, 0) } == 0 {
            assert!(Instant::now() < end, "the group lives on");
            std::thread::yield_now();
        }
    }
}
