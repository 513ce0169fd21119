//! Where the threads of a service are at one moment, and what each of the descriptors that they wait for leads to.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use fingerpost_record::secret;
use fingerpost_record::under_way::{Process, Wait, WaitKind};
use fingerpost_sys::blocked::{self, At, FileLock, Registers};
use fingerpost_sys::procfs::mounts::{Mount, parse_mountinfo};
use fingerpost_sys::sample;
use fingerpost_sys::sockdiag::{ESTABLISHED, LISTEN, Tcp, Unix};
use fingerpost_sys::trace::monotonic_ns;

/// Descriptors of all processes of a service that are looked at.
const MOST_DESCRIPTORS: usize = 50_000;
/// Threads of one process that are looked at.
const MOST_THREADS: usize = 2_000;
/// Processes of the machine whose descriptors are looked through for the other end of a pipe or connection.
const MOST_PROCESSES: usize = 5_000;
/// Bytes of a process's arguments that are read.
const MOST_ARGUMENTS: u64 = 16 << 10;
/// Programs whose first argument that is no option says more than their name.
const INTERPRETERS: [&str; 9] = [
    "python", "node", "java", "ruby", "perl", "php", "bash", "sh", "dash",
];

/// What a descriptor leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// A socket with this inode.
    Socket(u32),
    /// A pipe with this inode.
    Pipe(u64),
    /// Something else.
    Other,
}

/// A thread that was looked at.
#[derive(Clone, Debug)]
pub struct Thread {
    pub tid: i32,
    pub name: String,
    pub at: At,
    /// The descriptors that it waits for.
    pub descriptors: Vec<i32>,
    /// Whether it waits for any of several descriptors.
    pub multiplexes: bool,
    /// Whether the wait ends by itself.
    pub timeout: bool,
    /// When it was on a CPU last, in nanoseconds of the monotonic clock.
    pub ran_ns: Option<u64>,
    /// Whether it is in an uninterruptible wait.
    pub uninterruptible: bool,
}

impl Thread {
    pub fn registers(&self) -> Option<Registers> {
        match self.at {
            At::Running => None,
            At::Fault(registers) | At::Call(_, _, registers) => Some(registers),
        }
    }
}

/// A process of the service.
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    /// The inodes of its sockets, by descriptor.
    pub sockets: BTreeMap<i32, u32>,
    /// The descriptors in each of its epoll sets.
    pub epolls: HashMap<i32, Vec<i32>>,
}

/// A service at one moment.
pub struct Scene<'a> {
    pub now_ns: u64,
    /// By how much the monotonic clock is ahead of the scheduler's, in nanoseconds.
    ahead_ns: i64,
    /// The ports at which it listens, and those of services that it asked as they were met.
    pub ports: HashSet<u16>,
    pub by_inode: HashMap<u32, &'a Tcp>,
    pub all: &'a [Tcp],
    pub unix: HashMap<u32, &'a Unix>,
    /// Names of the Unix sockets at which it listens.
    pub names: &'a HashSet<Vec<u8>>,
    pub processes: BTreeMap<i32, Descriptors>,
    /// The parent of each.
    pub parents: HashMap<i32, i32>,
    /// Who holds a socket, by its inode.
    pub owners: HashMap<u32, Vec<(i32, i32)>>,
    /// The socket of the other service that the last wait was told to be for.
    pub asked: Option<u32>,
    threads: HashMap<i32, Vec<Thread>>,
    locks: Option<Vec<FileLock>>,
    /// Processes by the sockets and pipes that they hold, of the whole machine; read when it is needed.
    holders: Option<HashMap<String, Vec<i32>>>,
}

impl<'a> Scene<'a> {
    pub fn of(
        pids: &[i32],
        ports: &HashSet<u16>,
        all: &'a [Tcp],
        unix: &'a [Unix],
        names: &'a HashSet<Vec<u8>>,
        now_ns: u64,
    ) -> Scene<'a> {
        let own = blocked::last_ran(
            std::process::id() as i32,
            rustix::thread::gettid().as_raw_pid(),
        );
        let mut scene = Scene {
            now_ns,
            // This thread runs: it was on a CPU last just now.
            ahead_ns: own.map_or(0, |own| monotonic_ns() as i64 - own as i64),
            ports: ports.clone(),
            by_inode: all
                .iter()
                .filter(|s| s.inode != 0)
                .map(|s| (s.inode, s))
                .collect(),
            all,
            unix: unix.iter().map(|s| (s.inode, s)).collect(),
            names,
            processes: BTreeMap::new(),
            parents: HashMap::new(),
            owners: HashMap::new(),
            asked: None,
            threads: HashMap::new(),
            locks: None,
            holders: None,
        };
        let mut left = MOST_DESCRIPTORS;
        for &pid in pids {
            let found = descriptors(pid, &mut left);
            for (&fd, &inode) in &found.sockets {
                scene.owners.entry(inode).or_default().push((pid, fd));
            }
            scene.processes.insert(pid, found);
            if let Some(stat) = sample::process(pid) {
                scene.parents.insert(pid, stat.parent);
            }
        }
        scene
    }

    /// The threads of a process of the service.
    pub fn threads(&mut self, pid: i32) -> &[Thread] {
        let none = Descriptors::default();
        let descriptors = self.processes.get(&pid).unwrap_or(&none);
        self.threads
            .entry(pid)
            .or_insert_with(|| threads(pid, descriptors, self.ahead_ns))
    }

    /// Whether a socket of the service is one at which it answers: a connection that it accepted.
    pub fn answers(&self, inode: u32) -> bool {
        match (self.by_inode.get(&inode), self.unix.get(&inode)) {
            (Some(s), _) => s.state == ESTABLISHED && self.ports.contains(&s.port),
            (None, Some(s)) => s.state == ESTABLISHED && self.names.contains(&s.name),
            (None, None) => false,
        }
    }

    pub fn listens(&self, inode: u32) -> bool {
        self.by_inode.get(&inode).is_some_and(|s| s.state == LISTEN)
            || self.unix.get(&inode).is_some_and(|s| s.state == LISTEN)
    }

    /// What a descriptor leads to.
    pub fn leads(&self, pid: i32, fd: i32) -> Leads {
        if let Some(inode) = self.processes.get(&pid).and_then(|p| p.sockets.get(&fd)) {
            return Leads::Socket(*inode);
        }
        let pipe = blocked::descriptor(pid, fd)
            .and_then(|link| link.strip_prefix("pipe:[")?.strip_suffix(']')?.parse().ok());
        pipe.map_or(Leads::Other, Leads::Pipe)
    }

    /// When a connection that the service made sent a request that has no answer yet; nothing where it has none.
    pub fn outstanding(&self, inode: u32) -> Option<u64> {
        let s = self.by_inode.get(&inode)?;
        let asks = s.state == ESTABLISHED && !self.ports.contains(&s.port) && s.sent > 0;
        let unread = |inode: u32| self.by_inode.get(&inode).is_some_and(|o| o.unread > 0);
        let unanswered = s.received == 0
            || s.since_sent_ms < s.since_received_ms
            // Within one tick the answer came and the next request went out: what acknowledges came after that, or it is
            // unread at the other end.
            || s.since_sent_ms == s.since_received_ms
                && (s.since_acknowledged_ms < s.since_sent_ms
                    || self.other_end(inode).is_some_and(unread));
        (asks && unanswered && s.unread == 0).then(|| {
            self.now_ns
                .saturating_sub(u64::from(s.since_sent_ms) * 1_000_000)
        })
    }

    /// What a thread waits for.
    pub fn wait(&mut self, pid: i32, thread: &Thread, kernel: &[String]) -> Wait {
        let mut wait = Wait {
            timeout: thread.timeout,
            ..Wait::default()
        };
        let At::Call(call, args, _) = thread.at else {
            if thread.at == At::Running {
                wait.kind = WaitKind::Running;
            } else {
                self.of_kernel(&mut wait, pid, None, kernel);
            }
            return wait;
        };
        let kind = kind_of(call, &args);
        match kind {
            Kind::Lock => wait.kind = WaitKind::Lock,
            Kind::Semaphore => wait.kind = WaitKind::Semaphore,
            Kind::Sleep => (wait.kind, wait.timeout) = (WaitKind::Sleep, true),
            Kind::Child => wait.kind = WaitKind::Child,
            Kind::FileLock => {
                wait.kind = WaitKind::FileLock;
                wait.path = blocked::descriptor(pid, args[0] as i32).unwrap_or_default();
                wait.whom = self.holder_of_lock(pid, thread.tid);
            }
            Kind::Descriptor => self.of_descriptors(&mut wait, pid, thread, kernel),
            Kind::Descriptors => self.of_descriptors(&mut wait, pid, thread, kernel),
            Kind::Other => self.of_kernel(&mut wait, pid, Some(args[0] as i32), kernel),
        }
        // Whatever the call, an uninterruptible wait is one in the kernel.
        if thread.uninterruptible && !matches!(kind, Kind::FileLock) {
            self.of_kernel(&mut wait, pid, Some(args[0] as i32), kernel);
        }
        wait
    }

    fn of_kernel(&mut self, wait: &mut Wait, pid: i32, fd: Option<i32>, kernel: &[String]) {
        let in_user_space = kernel.iter().any(|f| {
            f.starts_with("fuse_") || f.starts_with("__fuse_") || f == "request_wait_answer"
        });
        if in_user_space {
            wait.kind = WaitKind::FileSystem;
            let mounts = || {
                let text = std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).ok()?;
                let mut all = parse_mountinfo(&text).into_iter().filter(served);
                // A call by a path does not tell which; of one there is no doubt.
                Some(all.next()?).filter(|_| all.next().is_none())
            };
            let mount = fd
                .and_then(|fd| blocked::mount_of(pid, fd))
                .filter(served)
                .or_else(mounts);
            if let Some(mount) = mount {
                wait.path = mount.point.to_string_lossy().into_owned();
                wait.whom = self.server_of(&mount);
            }
            return;
        }
        wait.kind = WaitKind::Kernel;
        // The innermost functions are the scheduler's.
        let function = kernel.iter().find(|f| !SCHEDULING.contains(&f.as_str()));
        wait.function = function.cloned().unwrap_or_default();
    }

    fn of_descriptors(&mut self, wait: &mut Wait, pid: i32, thread: &Thread, kernel: &[String]) {
        let fds = &thread.descriptors;
        let leads: Vec<Leads> = fds.iter().map(|&fd| self.leads(pid, fd)).collect();
        let sockets = || {
            leads.iter().filter_map(|l| match l {
                Leads::Socket(inode) => Some(*inode),
                _ => None,
            })
        };
        let answering: Vec<u32> = sockets().filter(|i| self.answers(*i)).collect();
        let listens = sockets().any(|i| self.listens(i));
        let asked = sockets()
            .filter(|i| !self.answers(*i) && !self.listens(*i))
            .collect::<Vec<u32>>();
        let outstanding = asked
            .iter()
            .filter_map(|i| Some((self.outstanding(*i)?, *i)))
            .min();
        match (answering.as_slice(), outstanding, leads.as_slice()) {
            (_, Some((_, inode)), _) => self.peer(wait, inode),
            (_, None, [Leads::Socket(inode)]) if asked.contains(inode) => self.peer(wait, *inode),
            ([inode], None, _) if !listens && asked.is_empty() => {
                wait.kind = WaitKind::Client;
                if let Some(s) = self.by_inode.get(inode) {
                    wait.address = s.remote_end().map_or_else(String::new, |a| a.to_string());
                    wait.silent_s = f64::from(s.since_received_ms) * 1e-3;
                }
            }
            ([], None, [Leads::Pipe(inode)]) => {
                wait.kind = WaitKind::Pipe;
                let link = format!("pipe:[{inode}]");
                wait.whom = self.holder(&link, pid);
            }
            ([], None, [Leads::Other]) if !thread.multiplexes => {
                self.of_kernel(wait, pid, fds.first().copied(), kernel);
            }
            ([], None, _) if asked.is_empty() && !listens && thread.multiplexes => {
                wait.kind = WaitKind::Own;
            }
            _ => wait.kind = WaitKind::Events,
        }
    }

    /// The socket at the other end of one on this machine, where that was accepted.
    pub fn other_end(&self, inode: u32) -> Option<u32> {
        let other = match self.by_inode.get(&inode) {
            Some(s) => {
                let ends = |o: &&Tcp| {
                    o.state == ESTABLISHED
                        && o.local_end() == s.remote_end()
                        && o.remote_end() == s.local_end()
                };
                self.all.iter().find(ends)?.inode
            }
            None => self.unix.get(&inode)?.peer,
        };
        (other != 0).then_some(other)
    }

    /// Takes a process of another service in, which answers at this socket; the descriptor by which it has it.
    pub fn take_in(&mut self, pid: i32, inode: u32) -> Option<i32> {
        if let Some(s) = self.by_inode.get(&inode) {
            self.ports.insert(s.port);
        }
        let found = self
            .processes
            .entry(pid)
            .or_insert_with(|| descriptors(pid, &mut MOST_DESCRIPTORS.clone()));
        let fd = found.sockets.iter().find(|(_, i)| **i == inode);
        fd.map(|(fd, _)| *fd)
    }

    /// The other end of a connection that the service made.
    pub fn peer(&mut self, wait: &mut Wait, inode: u32) {
        (wait.kind, self.asked) = (WaitKind::Peer, Some(inode));
        if let Some(s) = self.by_inode.get(&inode).copied() {
            wait.address = s.remote_end().map_or_else(String::new, |a| a.to_string());
            let listener = |o: &&Tcp| {
                let here = o.local == s.remote || o.local.is_some_and(|a| a.is_unspecified());
                o.state == LISTEN && o.port == s.peer && here
            };
            let local = self.other_end(inode);
            let inode = local.or_else(|| {
                // Not accepted yet: who listens there. The address must be one of this machine.
                let own = self.all.iter().any(|o| o.local == s.remote);
                let found = self.all.iter().find(listener).filter(|_| own)?;
                Some(found.inode)
            });
            if let Some(inode) = inode {
                wait.whom = self.holder(&format!("socket:[{inode}]"), pid_of(self, s.inode));
            }
        } else if let Some(other) = self.unix.get(&inode).map(|s| s.peer) {
            let name = self.unix.get(&other).map(|o| o.name.clone());
            let name = name.unwrap_or_default();
            wait.address = String::from_utf8_lossy(&name).trim_matches('\0').to_owned();
            wait.whom = self.holder(&format!("socket:[{other}]"), pid_of(self, inode));
        }
    }

    fn holder_of_lock(&mut self, pid: i32, tid: i32) -> Option<Process> {
        let locks = self.locks.get_or_insert_with(blocked::file_locks);
        let waits = locks
            .iter()
            .find(|l| l.waits && (l.pid == pid || l.pid == tid))?;
        let holder = locks
            .iter()
            .find(|l| !l.waits && l.number == waits.number && l.file == waits.file)?;
        process(holder.pid)
    }

    /// A process other than this that holds what a link in `/proc/PID/fd` says.
    fn holder(&mut self, link: &str, but: i32) -> Option<Process> {
        let holders = self.holders.get_or_insert_with(all_holders);
        let pids = holders.get(link)?;
        // Of several that hold it, who made the others most likely only handed it on.
        let others: Vec<i32> = pids.iter().copied().filter(|p| *p != but).collect();
        let parent = |p: &i32| {
            others
                .iter()
                .any(|o| sample::process(*o).is_some_and(|s| s.parent == *p))
        };
        let pid = others.iter().find(|p| !parent(p)).or(others.first())?;
        process(*pid)
    }

    /// The process that serves a file system in user space: who has its connection open.
    fn server_of(&mut self, mount: &Mount) -> Option<Process> {
        let connection = u64::from(mount.device_number.1);
        let holders = self.holders.get_or_insert_with(all_holders);
        let pids = holders.get(FUSE).cloned().unwrap_or_default();
        let serves = |pid: &&i32| {
            let of = |fd: i32| {
                blocked::descriptor(**pid, fd).as_deref() == Some(FUSE)
                    && blocked::fdinfo(**pid, fd)
                        .and_then(|text| blocked::parse_fdinfo_number(&text, "fuse_connection"))
                        == Some(connection)
            };
            sample::numbers(Path::new(&format!("/proc/{pid}/fd")))
                .into_iter()
                .any(of)
        };
        let point = mount.point.to_string_lossy().into_owned();
        let named = |pid: &&i32| arguments(**pid).contains(&point);
        let only = Some(&pids).filter(|p| p.len() == 1).and_then(|p| p.first());
        let pid = pids.iter().find(serves);
        process(*pid.or_else(|| pids.iter().find(named)).or(only)?)
    }
}

const FUSE: &str = "/dev/fuse";

/// Functions of the kernel that any wait ends in.
const SCHEDULING: [&str; 6] = [
    "__schedule",
    "schedule",
    "schedule_timeout",
    "io_schedule",
    "schedule_preempt_disabled",
    "__switch_to",
];

fn served(mount: &Mount) -> bool {
    // `fusectl` is the kernel's own, which tells of the others.
    mount.kind == "fuse" || mount.kind == "fuseblk" || mount.kind.starts_with("fuse.")
}

fn pid_of(scene: &Scene, inode: u32) -> i32 {
    scene
        .owners
        .get(&inode)
        .and_then(|o| o.first())
        .map_or(0, |o| o.0)
}

/// Who holds which sockets, pipes and connections of file systems.
fn all_holders() -> HashMap<String, Vec<i32>> {
    let mut found: HashMap<String, Vec<i32>> = HashMap::new();
    let mut pids = sample::numbers(Path::new("/proc"));
    pids.sort_unstable();
    for pid in pids.into_iter().take(MOST_PROCESSES) {
        let entries = std::fs::read_dir(format!("/proc/{pid}/fd"));
        for entry in entries.into_iter().flatten().flatten() {
            let Ok(link) = std::fs::read_link(entry.path()) else {
                continue;
            };
            let link = link.to_string_lossy();
            if link.starts_with("socket:") || link.starts_with("pipe:") || link == FUSE {
                let pids = found.entry(link.into_owned()).or_default();
                if pids.last() != Some(&pid) {
                    pids.push(pid);
                }
            }
        }
    }
    found
}

fn descriptors(pid: i32, left: &mut usize) -> Descriptors {
    let mut found = Descriptors::default();
    let mut fds = sample::numbers(Path::new(&format!("/proc/{pid}/fd")));
    fds.sort_unstable();
    for fd in fds {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let Some(link) = blocked::descriptor(pid, fd) else {
            continue;
        };
        if let Some(inode) = link
            .strip_prefix("socket:[")
            .and_then(|l| l.strip_suffix(']')?.parse().ok())
        {
            found.sockets.insert(fd, inode);
        } else if link == "anon_inode:[eventpoll]" {
            let set = blocked::fdinfo(pid, fd).map(|text| blocked::parse_epoll(&text));
            found.epolls.insert(fd, set.unwrap_or_default());
        }
    }
    found
}

fn threads(pid: i32, descriptors: &Descriptors, ahead_ns: i64) -> Vec<Thread> {
    let mut tids = sample::numbers(Path::new(&format!("/proc/{pid}/task")));
    tids.sort_unstable();
    tids.into_iter()
        .take(MOST_THREADS)
        .filter_map(|tid| thread(pid, tid, descriptors, ahead_ns))
        .collect()
}

fn thread(pid: i32, tid: i32, descriptors: &Descriptors, ahead_ns: i64) -> Option<Thread> {
    let stat = sample::stat(Path::new(&format!("/proc/{pid}/task/{tid}")))?;
    if matches!(stat.state, 'Z' | 'X') {
        return None;
    }
    let at = match stat.state {
        'R' => At::Running,
        _ => blocked::at(pid, tid)?,
    };
    let (fds, multiplexes, timeout) = match at {
        At::Call(call, args, _) => waited(pid, call, &args, descriptors),
        _ => (Vec::new(), false, false),
    };
    Some(Thread {
        tid,
        name: stat.name,
        at,
        descriptors: fds,
        multiplexes,
        timeout,
        ran_ns: blocked::last_ran(pid, tid).map(|ran| ran.saturating_add_signed(ahead_ns)),
        uninterruptible: stat.state == 'D',
    })
}

/// What kind of wait a system call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Lock,
    Semaphore,
    Sleep,
    Child,
    FileLock,
    /// By the descriptor that is its first argument.
    Descriptor,
    /// By several.
    Descriptors,
    Other,
}

/// `F_SETLKW`, and the same of open files.
const WAITING_LOCKS: [u64; 2] = [libc::F_SETLKW as u64, libc::F_OFD_SETLKW as u64];

fn kind_of(call: i64, args: &[u64; 6]) -> Kind {
    match call {
        libc::SYS_futex | libc::SYS_futex_waitv => Kind::Lock,
        libc::SYS_semop | libc::SYS_semtimedop => Kind::Semaphore,
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Kind::Sleep,
        libc::SYS_wait4 | libc::SYS_waitid => Kind::Child,
        libc::SYS_flock => Kind::FileLock,
        libc::SYS_fcntl if WAITING_LOCKS.contains(&args[1]) => Kind::FileLock,
        libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_write
        | libc::SYS_writev
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_sendmmsg
        | libc::SYS_connect
        | libc::SYS_accept
        | libc::SYS_accept4 => Kind::Descriptor,
        _ if is_multiplexing(call) => Kind::Descriptors,
        _ => Kind::Other,
    }
}

fn is_multiplexing(call: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if [libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait].contains(&call) {
        return true;
    }
    [
        libc::SYS_ppoll,
        libc::SYS_pselect6,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
    ]
    .contains(&call)
}

/// The descriptors that a call waits for, whether it waits for any of several, and whether it ends by itself.
fn waited(pid: i32, call: i64, args: &[u64; 6], of: &Descriptors) -> (Vec<i32>, bool, bool) {
    let milliseconds = |arg: u64| arg as i32 >= 0;
    let poll = |timeout: bool| {
        let length = args[1].min(4_096) as usize * 8;
        let bytes = blocked::memory(pid, args[0], length).unwrap_or_default();
        (blocked::parse_pollfds(&bytes), true, timeout)
    };
    let select = |timeout: bool| {
        let count = args[0].min(4_096) as usize;
        let set = |address: u64| {
            let bytes = blocked::memory(pid, address, count.div_ceil(64) * 8);
            blocked::parse_fd_set(&bytes.unwrap_or_default(), count)
        };
        let sets = args[1..3].iter().filter(|a| **a != 0);
        (sets.flat_map(|a| set(*a)).collect(), true, timeout)
    };
    let epoll = |timeout: bool| {
        let set = of.epolls.get(&(args[0] as i32)).cloned();
        (set.unwrap_or_default(), true, timeout)
    };
    #[cfg(target_arch = "x86_64")]
    match call {
        libc::SYS_poll => return poll(milliseconds(args[2])),
        libc::SYS_select => return select(args[4] != 0),
        libc::SYS_epoll_wait => return epoll(milliseconds(args[3])),
        _ => {}
    }
    match call {
        libc::SYS_ppoll => poll(args[2] != 0),
        libc::SYS_pselect6 => select(args[4] != 0),
        libc::SYS_epoll_pwait => epoll(milliseconds(args[3])),
        libc::SYS_epoll_pwait2 => epoll(args[3] != 0),
        libc::SYS_futex => (Vec::new(), false, args[3] != 0),
        libc::SYS_semtimedop => (Vec::new(), false, args[3] != 0),
        _ if kind_of(call, args) == Kind::Descriptor => (vec![args[0] as i32], false, false),
        _ => (Vec::new(), false, false),
    }
}

/// The arguments of a process, without what looks secret.
fn arguments(pid: i32) -> Vec<String> {
    let text = title(pid);
    let words = text.split('\0').filter(|w| !w.is_empty()).take(64);
    secret::cut_words(words)
}

/// The title of a process: its arguments as it wrote them.
pub fn title(pid: i32) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(format!("/proc/{pid}/cmdline")) {
        // A process says itself where its arguments end.
        _ = file.take(MOST_ARGUMENTS).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a program of this name runs what its first argument names.
pub fn interprets(name: &str) -> bool {
    INTERPRETERS.iter().any(|i| {
        name.strip_prefix(i)
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
    })
}

/// The file that a process of an interpreter runs, without its directory.
pub fn program(pid: i32) -> Option<String> {
    let all = arguments(pid);
    let first = all.get(1).filter(|a| !a.starts_with('-'))?;
    let last = first.rsplit('/').next()?.to_owned();
    Some(last).filter(|l| !l.is_empty())
}

/// A process by its number, with the name that tells most.
pub fn process(pid: i32) -> Option<Process> {
    let name = sample::process(pid)?.name;
    let program = interprets(&name).then(|| program(pid)).flatten();
    Some(Process {
        pid,
        name: program.unwrap_or(name),
    })
}
