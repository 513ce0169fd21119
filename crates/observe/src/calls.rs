//! System calls by name, and what a thread that is blocked in one waits for.

use fingerpost_sys::sample::Doing;

/// What a blocked thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// A lock or condition of its own process: a futex, a file lock.
    Lock,
    /// A device, or the file system above it.
    Disk,
    /// A sibling that waited for the disk on behalf of both: a group commit.
    Commit,
    /// A peer on a socket.
    Network,
    /// The next request. Only a server with separate clients is idle in this sense.
    Idle,
    /// A time to pass.
    Timer,
    /// A page to be read in or reclaimed, or the address space's own lock.
    Memory,
    /// A child to end.
    Child,
    /// The other end of a pipe, an eventfd, a terminal.
    Pipe,
    /// Anything else, or nothing that we could tell.
    Other,
}

impl Wait {
    /// All of them with the names that totals carry (`server.blocked.lock.seconds`), in their order, in which arrays by
    /// what was waited for hold them.
    pub const ALL: [(Wait, &'static str); 10] = [
        (Wait::Lock, "lock"),
        (Wait::Disk, "disk"),
        (Wait::Commit, "commit"),
        (Wait::Network, "network"),
        (Wait::Idle, "idle"),
        (Wait::Timer, "timer"),
        (Wait::Memory, "memory"),
        (Wait::Child, "child"),
        (Wait::Pipe, "pipe"),
        (Wait::Other, "other"),
    ];
}

/// Seconds by what was waited for, in the order of [`Wait::ALL`].
pub type Waits = [f64; Wait::ALL.len()];

/// Which side of the workload a process is on, which decides what waiting on a socket means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A server with separate clients: on a socket it waits for the next request.
    Server,
    /// A load generator.
    Client,
    /// A program that is its own client: an embedded database, any command.
    Whole,
}

/// What a file descriptor refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fd {
    File,
    Socket,
    /// A pipe, an eventfd, a terminal, a device.
    Pipe,
    Timer,
    /// Closed meanwhile, or not permitted to see.
    Unknown,
}

/// Tells what a link in `/proc/PID/fd` refers to.
pub fn fd_kind(link: &str) -> Fd {
    if link.starts_with("socket:") {
        Fd::Socket
    } else if link.contains("[timerfd]") {
        Fd::Timer
    } else if link.starts_with("pipe:")
        || link.starts_with("anon_inode:")
        || link.starts_with("/dev/")
    {
        Fd::Pipe
    } else if link.starts_with('/') {
        Fd::File
    } else {
        Fd::Unknown
    }
}

/// What kind of wait a system call can be, before its descriptor is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// This one.
    For(Wait),
    Poll,
    Socket,
    ByFd,
}

use Kind::{ByFd, For, Poll, Socket};
use Wait::{Child, Disk, Lock, Memory, Network, Other, Timer};

macro_rules! calls {
    ($(#[$about:meta])+ $table:ident = $($kind:expr => $($name:ident)+;)+) => {
        $(#[$about])+
        static $table: &[(i64, &str, Kind)] = &[$($((libc::$name as i64, stringify!($name), $kind),)+)+];
    };
}

calls! {
    /// Number, name and kind of the calls that we know, for this architecture.
    TABLE =
    For(Lock) => SYS_futex SYS_flock SYS_fcntl SYS_semop SYS_semtimedop SYS_futex_waitv;
    For(Disk) => SYS_fsync SYS_fdatasync SYS_sync SYS_syncfs SYS_sync_file_range SYS_msync SYS_pread64 SYS_pwrite64
        SYS_preadv SYS_pwritev SYS_preadv2 SYS_pwritev2 SYS_openat SYS_unlinkat SYS_renameat SYS_renameat2 SYS_mkdirat
        SYS_newfstatat SYS_statx SYS_fstat SYS_ftruncate SYS_truncate SYS_fallocate SYS_getdents64 SYS_io_getevents
        SYS_io_submit SYS_readahead SYS_fadvise64 SYS_copy_file_range SYS_linkat SYS_symlinkat SYS_readlinkat
        SYS_faccessat SYS_execve SYS_execveat SYS_chdir SYS_statfs SYS_fstatfs SYS_fchmod SYS_fchown SYS_utimensat
        SYS_swapon SYS_swapoff SYS_mount SYS_umount2 SYS_io_uring_enter;
    Poll => SYS_ppoll SYS_pselect6 SYS_epoll_pwait SYS_epoll_pwait2;
    Socket => SYS_recvfrom SYS_recvmsg SYS_recvmmsg SYS_accept SYS_accept4;
    For(Network) => SYS_sendto SYS_sendmsg SYS_sendmmsg SYS_connect SYS_shutdown;
    ByFd => SYS_read SYS_write SYS_readv SYS_writev SYS_close SYS_ioctl SYS_lseek SYS_sendfile SYS_splice SYS_tee
        SYS_vmsplice;
    For(Timer) => SYS_nanosleep SYS_clock_nanosleep;
    For(Memory) => SYS_mmap SYS_munmap SYS_mprotect SYS_madvise SYS_brk SYS_mremap SYS_mlock SYS_mincore SYS_mbind
        SYS_process_madvise;
    For(Child) => SYS_wait4 SYS_waitid;
    For(Other) => SYS_clone SYS_clone3 SYS_exit SYS_exit_group SYS_rt_sigtimedwait SYS_rt_sigsuspend SYS_sched_yield
        SYS_getpid SYS_getppid SYS_gettid SYS_getuid SYS_kill SYS_tgkill SYS_rt_sigaction SYS_rt_sigprocmask
        SYS_rt_sigreturn SYS_socket SYS_bind SYS_listen SYS_setsockopt SYS_getsockopt SYS_getsockname SYS_getpeername
        SYS_socketpair SYS_epoll_ctl SYS_epoll_create1 SYS_eventfd2 SYS_pipe2 SYS_dup SYS_dup3 SYS_getrandom
        SYS_clock_gettime SYS_gettimeofday SYS_times SYS_getrusage SYS_prctl SYS_ptrace SYS_timerfd_settime
        SYS_sched_setaffinity SYS_sched_getaffinity SYS_set_robust_list SYS_rseq SYS_set_tid_address SYS_restart_syscall
        SYS_umask SYS_getcwd SYS_membarrier SYS_prlimit64 SYS_uname SYS_setitimer SYS_inotify_add_watch SYS_sysinfo
        SYS_getcpu;
}

#[cfg(target_arch = "x86_64")]
calls! {
    /// Calls that only this architecture has; newer ones left them out.
    OLD =
    Poll => SYS_poll SYS_select SYS_epoll_wait;
    For(Disk) => SYS_open SYS_stat SYS_lstat SYS_access SYS_unlink SYS_rename SYS_mkdir SYS_rmdir SYS_readlink
        SYS_creat;
    For(Child) => SYS_vfork;
    For(Other) => SYS_fork SYS_pause SYS_pipe SYS_dup2 SYS_arch_prctl SYS_time;
}
#[cfg(not(target_arch = "x86_64"))]
static OLD: &[(i64, &str, Kind)] = &[];

fn entry(number: i64) -> Option<&'static (i64, &'static str, Kind)> {
    TABLE.iter().chain(OLD).find(|(n, _, _)| *n == number)
}

/// The name of a system call of this architecture; one that we do not know is `#NUMBER`.
pub fn name(number: i64) -> String {
    entry(number).map_or_else(
        || format!("#{number}"),
        |(_, name, _)| name.trim_start_matches("SYS_").to_owned(),
    )
}

/// Whether a call waits on descriptors for something to come (poll, select, epoll): its end by timeout is a timer's.
pub fn is_poll(number: i64) -> bool {
    entry(number).is_some_and(|e| e.2 == Poll)
}

/// What a thread waits for that is blocked in this call. `fd` looks up its first argument where that decides.
pub fn wait(number: i64, args: [u64; 2], role: Role, fd: impl FnOnce(i32) -> Fd) -> Wait {
    wait_of_kind(entry(number).map_or(For(Other), |e| e.2), role).unwrap_or_else(|| {
        match fd(args[0] as i32) {
            Fd::File => Wait::Disk,
            Fd::Socket if number == libc::SYS_read || number == libc::SYS_readv => on_socket(role),
            Fd::Socket => Wait::Network,
            Fd::Pipe => Wait::Pipe,
            Fd::Timer => Wait::Timer,
            Fd::Unknown => Wait::Other,
        }
    })
}

fn on_socket(role: Role) -> Wait {
    if role == Role::Server {
        Wait::Idle
    } else {
        Wait::Network
    }
}

/// What a call of this kind waits for; nothing where its descriptor decides.
fn wait_of_kind(kind: Kind, role: Role) -> Option<Wait> {
    match kind {
        For(wait) => Some(wait),
        Poll | Socket => Some(on_socket(role)),
        ByFd => None,
    }
}

/// The same from what `/proc` shows: the call where it may be read, else the kernel function that it sleeps in.
pub fn wait_of(
    doing: Option<Doing>,
    wchan: &str,
    state: char,
    role: Role,
    fd: impl FnOnce(i32) -> Fd,
) -> Option<Wait> {
    match doing {
        Some(Doing::Running) => None,
        Some(Doing::Faulting) => Some(Wait::Memory),
        Some(Doing::Call(number, args)) => Some(wait(number, args, role, fd)),
        None if state == 'D' && wchan.is_empty() => Some(Wait::Disk),
        None => Some(wait_of_function(wchan, role)),
    }
}

/// The kernel functions that threads sleep in, by the beginning of their names.
static FUNCTIONS: &[(Kind, &[&str])] = &[
    (For(Lock), &["futex", "flock", "locks_"]),
    (For(Timer), &["hrtimer_nanosleep", "do_nanosleep"]),
    (
        Poll,
        &[
            "ep_poll",
            "do_epoll_wait",
            "do_sys_poll",
            "do_poll",
            "do_select",
            "poll_schedule",
        ],
    ),
    (
        Socket,
        &[
            "sk_wait_data",
            "inet_csk_accept",
            "unix_stream_read",
            "unix_stream_data_wait",
            "__skb_wait",
        ],
    ),
    (For(Network), &["sk_stream_wait", "unix_wait_for_peer"]),
    (For(Child), &["do_wait", "kernel_wait4"]),
    (
        For(Disk),
        &["jbd2", "folio_wait", "wait_on_page", "io_schedule", "blk"],
    ),
    (
        For(Disk),
        &["submit_bio_wait", "wait_on_buffer", "do_get_write_access"],
    ),
    (For(Memory), &["rwsem_down", "swap"]),
];

fn wait_of_function(function: &str, role: Role) -> Wait {
    if function.contains("pipe") || function.contains("eventfd") || function.contains("n_tty") {
        return Wait::Pipe;
    }
    let known = FUNCTIONS
        .iter()
        .find(|(_, starts)| starts.iter().any(|start| function.starts_with(start)));
    known
        .and_then(|(kind, _)| wait_of_kind(*kind, role))
        .unwrap_or(Wait::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_fd(_: i32) -> Fd {
        panic!("the descriptor does not matter here")
    }

    #[test]
    fn calls_have_names_and_unknown_ones_their_number() {
        assert_eq!(name(libc::SYS_futex), "futex");
        assert_eq!(name(libc::SYS_pread64), "pread64");
        assert_eq!(name(99_999), "#99999");
    }

    #[test]
    fn waits_are_listed_in_their_order() {
        assert!(
            Wait::ALL
                .iter()
                .enumerate()
                .all(|(at, (wait, _))| *wait as usize == at)
        );
    }

    #[test]
    fn no_call_stands_in_the_table_twice() {
        let mut numbers: Vec<i64> = TABLE.iter().chain(OLD).map(|e| e.0).collect();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
    }

    #[test]
    fn the_call_tells_what_is_waited_for() {
        assert_eq!(
            wait(libc::SYS_futex, [0; 2], Role::Whole, no_fd),
            Wait::Lock
        );
        assert_eq!(
            wait(libc::SYS_fsync, [0; 2], Role::Server, no_fd),
            Wait::Disk
        );
        assert_eq!(
            wait(libc::SYS_clock_nanosleep, [0; 2], Role::Server, no_fd),
            Wait::Timer
        );
        assert_eq!(
            wait(libc::SYS_recvfrom, [0; 2], Role::Server, no_fd),
            Wait::Idle
        );
        assert_eq!(
            wait(libc::SYS_recvfrom, [0; 2], Role::Whole, no_fd),
            Wait::Network
        );
        assert_eq!(
            wait(libc::SYS_sendto, [0; 2], Role::Server, no_fd),
            Wait::Network
        );
        assert_eq!(
            wait(libc::SYS_mmap, [0; 2], Role::Whole, no_fd),
            Wait::Memory
        );
    }

    #[test]
    fn where_the_call_does_not_tell_the_descriptor_does() {
        let read = libc::SYS_read;
        assert_eq!(
            wait(read, [3, 0], Role::Whole, |fd| if fd == 3 {
                Fd::File
            } else {
                Fd::Unknown
            }),
            Wait::Disk
        );
        assert_eq!(wait(read, [3, 0], Role::Server, |_| Fd::Socket), Wait::Idle);
        assert_eq!(
            wait(libc::SYS_write, [3, 0], Role::Server, |_| Fd::Socket),
            Wait::Network
        );
        assert_eq!(wait(read, [3, 0], Role::Client, |_| Fd::Pipe), Wait::Pipe);
        assert_eq!(fd_kind("socket:[123]"), Fd::Socket);
        assert_eq!(fd_kind("anon_inode:[timerfd]"), Fd::Timer);
        assert_eq!(fd_kind("/var/lib/x.db"), Fd::File);
        assert_eq!(fd_kind("/dev/null"), Fd::Pipe);
        assert_eq!(fd_kind(""), Fd::Unknown);
    }

    #[test]
    fn where_the_call_may_not_be_read_the_kernel_function_tells() {
        assert_eq!(
            wait_of(None, "futex_do_wait", 'S', Role::Whole, no_fd),
            Some(Wait::Lock)
        );
        assert_eq!(
            wait_of(None, "jbd2_log_wait_commit", 'D', Role::Whole, no_fd),
            Some(Wait::Disk)
        );
        assert_eq!(
            wait_of(None, "ep_poll", 'S', Role::Server, no_fd),
            Some(Wait::Idle)
        );
        assert_eq!(
            wait_of(None, "anon_pipe_read", 'S', Role::Client, no_fd),
            Some(Wait::Pipe)
        );
        assert_eq!(wait_of(None, "", 'D', Role::Whole, no_fd), Some(Wait::Disk));
        assert_eq!(
            wait_of(Some(Doing::Running), "", 'R', Role::Whole, no_fd),
            None
        );
        assert_eq!(
            wait_of(Some(Doing::Faulting), "", 'D', Role::Whole, no_fd),
            Some(Wait::Memory)
        );
    }
}
