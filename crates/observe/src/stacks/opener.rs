//! The process that opens a service's files while it lives, and who asks it.
//!
//! Opening needs the rights of who watches, and may wait for ever: for a file system that another user's program
//! answers for (FUSE), or for the lock of a process that waits for one. So it is done in a process that can be given up.
//! What kind of file system a file lies in is asked of the kernel, by the number of its mount, before the file itself is
//! asked anything.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fingerpost_sys::jail;
use fingerpost_sys::packets::{LONGEST, Packets};
use fingerpost_sys::procfs::process::Status;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};

use super::helper::{Helper, OPENER};
use super::maps::{self, Mapping};
use super::unwind::FileKey;
use super::wire::{In, Out};

/// Bytes that are read of one process's list of mappings, and of one list of mounts; how long that may take.
const MOST_TEXT: usize = 4 << 20;
const LONG: Duration = Duration::from_millis(300);
/// Bytes of a packet of mappings.
const PACKET: usize = 32 << 10;
/// Bytes of a mapping's name that are told.
const MOST_NAME: usize = 300;
/// Files that are opened, for all processes together.
const MOST_FILES: usize = 400;
/// Address space and CPU seconds of the process.
const MEMORY: u64 = 256 << 20;
const CPU_SECONDS: u64 = 60;

/// What is asked: the code of a process, and the list of functions that it made at run time.
pub const CODE: u8 = b'C';
pub const FUNCTIONS: u8 = b'F';

/// File systems whose files lie on a disk of this machine or in its memory, whoever mounted them.
const LOCAL: &[&str] = &[
    "bcachefs",
    "btrfs",
    "erofs",
    "exfat",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "hugetlbfs",
    "iso9660",
    "jfs",
    "nilfs2",
    "ntfs3",
    "ramfs",
    "reiserfs",
    "rootfs",
    "squashfs",
    "tmpfs",
    "ubifs",
    "udf",
    "vfat",
    "xfs",
    "zfs",
];
/// Those that lie upon others, or upon a network. Any user may mount the first, upon a file system of a program of
/// theirs: so only what is mounted where this program is, too, is read.
const AS_OURS: &[&str] = &[
    "9p", "afs", "aufs", "beegfs", "ceph", "cifs", "ecryptfs", "gpfs", "lustre", "nfs", "nfs4",
    "overlay", "smb3", "virtiofs",
];

/// Device and kind of file system of each mount, by its number.
type Mounts = HashMap<u64, (String, String)>;

fn mounts(text: &str) -> Mounts {
    // `36 35 98:0 /root /point rw master:1 - ext4 /dev/root rw`
    let mount = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ');
        let (number, device) = (fields.next()?.parse().ok()?, fields.nth(1)?.to_owned());
        Some((number, (device, after.split(' ').next()?.to_owned())))
    };
    text.lines().filter_map(mount).collect()
}

/// Whether a file of this mount may be opened.
fn may_be_opened((device, kind): &(String, String), ours: &Mounts) -> bool {
    let kind = kind.as_str();
    LOCAL.contains(&kind)
        || AS_OURS.contains(&kind) && ours.values().any(|(d, k)| d == device && k == kind)
}

/// The beginning of a text of `/proc`, to a bound in bytes and in time, and whether it is whole.
fn text_of(path: &str) -> Option<(String, bool)> {
    let (mut file, begun) = (File::open(path).ok()?, Instant::now());
    let (mut text, mut part, mut whole) = (Vec::new(), vec![0; 64 << 10], false);
    while text.len() < MOST_TEXT && begun.elapsed() < LONG {
        match file.read(&mut part) {
            Ok(0) => {
                whole = true;
                break;
            }
            Ok(n) => text.extend(&part[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    Some((String::from_utf8_lossy(&text).into_owned(), whole))
}

/// Why a file is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// It cannot be, or is no regular file: nothing is lost that could be had.
    None,
    /// Its file system may be another user's program, or far away.
    Kind,
}

/// What the process knows.
#[derive(Default)]
struct Server {
    ours: Mounts,
    /// Those of each mount name space.
    spaces: HashMap<PathBuf, Mounts>,
    told: HashSet<FileKey>,
    /// The name space whose mounts were read for what is asked now.
    looked: Option<PathBuf>,
}

/// The process.
pub fn main(packets: Packets) -> ExitCode {
    // Where it cannot be limited it is given up in time all the same.
    let _ = jail::limit(MEMORY, CPU_SECONDS);
    serve(&packets);
    ExitCode::SUCCESS
}

/// Answers until nobody asks.
pub fn serve(packets: &Packets) {
    let mut server = Server {
        ours: text_of("/proc/self/mountinfo").map_or_else(Mounts::new, |(text, _)| mounts(&text)),
        ..Server::default()
    };
    let mut packet = [0; 64];
    while let Ok(came) = packets.receive(&mut packet, None) {
        let mut asked = In(&packet[..came.bytes]);
        let (Some(what), Some(pid)) = (asked.u8(), asked.u32()) else {
            return;
        };
        server.looked = None;
        let (refused, whole) = match what {
            CODE => server.code(pid as i32, packets),
            _ => (server.functions(pid as i32, packets), true),
        };
        let done = Out::new(b'd')
            .u32(u32::from(what))
            .u32(pid)
            .u32(refused)
            .u32(u32::from(whole));
        if packets.send(&done.0, None, None).is_err() {
            return;
        }
    }
}

impl Server {
    /// Tells a process's mappings with code, and opens files that it was not asked for before. How many are of a kind
    /// that is not opened, and whether the list was read to its end.
    fn code(&mut self, pid: i32, packets: &Packets) -> (u32, bool) {
        let Some((text, whole)) = text_of(&format!("/proc/{pid}/maps")) else {
            return (0, true);
        };
        let found = maps::parse(&text);
        let mut refused = 0;
        let mut out = Out::new(b'm').u32(pid as u32);
        for mapping in &found {
            let short = mapping.name.rsplit('/').next().unwrap_or_default();
            out = out
                .u64(mapping.start)
                .u64(mapping.end)
                .u64(mapping.offset)
                .bytes(mapping.file.0.as_bytes())
                .u64(mapping.file.1);
            let cut = short.floor_char_boundary(MOST_NAME);
            out = out.bytes(&short.as_bytes()[..cut]);
            if out.0.len() > PACKET {
                if packets.send(&out.0, None, None).is_err() {
                    return (refused, whole);
                }
                out = Out::new(b'm').u32(pid as u32);
            }
        }
        if packets.send(&out.0, None, None).is_err() {
            return (refused, whole);
        }
        for mapping in found.iter().filter(|m| m.file.1 != 0) {
            if self.told.contains(&mapping.file) {
                continue;
            }
            if self.told.len() >= MOST_FILES {
                return (refused, false);
            }
            self.told.insert(mapping.file.clone());
            match self.open_mapped(pid, mapping) {
                Ok((file, bytes)) => {
                    let out = Out::new(b'f')
                        .bytes(mapping.file.0.as_bytes())
                        .u64(mapping.file.1)
                        .u64(bytes);
                    if packets.send(&out.0, Some(file.as_fd()), None).is_err() {
                        break;
                    }
                }
                Err(why) => refused += u32::from(why == Refused::Kind),
            }
        }
        (refused, whole)
    }

    /// Opens the file of a mapping: the mapped one itself, whatever its path leads to now, where the kernel lets us;
    /// else what the path leads to in the process's own root, if that is the same inode.
    fn open_mapped(&mut self, pid: i32, mapping: &Mapping) -> Result<(File, u64), Refused> {
        let itself = format!(
            "/proc/{pid}/map_files/{:x}-{:x}",
            mapping.start, mapping.end
        );
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        if let Ok(found) = open(&itself, flags, Mode::empty()) {
            return self.checked(pid, &found, |_| true);
        }
        let root = root_of(pid).ok_or(Refused::None)?;
        let path = mapping.name.trim_start_matches('/');
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let found =
            openat2(&root, path, flags, Mode::empty(), inside).map_err(|_| Refused::None)?;
        let inode = mapping.file.1;
        self.checked(pid, &found, |stat| stat.st_ino == inode)
    }

    /// Opens the list of functions that a program made at run time, `/tmp/perf-PID.map` of its own root: a regular file
    /// of the process's own user in the file system of that directory. How many are refused.
    fn functions(&mut self, pid: i32, packets: &Packets) -> u32 {
        match self.open_functions(pid) {
            Ok((file, bytes)) => {
                let out = Out::new(b'j').u32(pid as u32).u64(bytes);
                // Whoever does not take it any more does not miss it.
                let _ = packets.send(&out.0, Some(file.as_fd()), None);
                0
            }
            Err(why) => u32::from(why == Refused::Kind),
        }
    }

    fn open_functions(&mut self, pid: i32) -> Result<(File, u64), Refused> {
        let (text, _) = text_of(&format!("/proc/{pid}/status")).ok_or(Refused::None)?;
        let status = Status::parse(&text);
        let user = status.effective_user.ok_or(Refused::None)?;
        let inner = status.inner_pid.unwrap_or(pid);
        let root = root_of(pid).ok_or(Refused::None)?;
        let path = OFlags::PATH | OFlags::CLOEXEC;
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let tmp = openat2(
            &root,
            "tmp",
            path | OFlags::DIRECTORY,
            Mode::empty(),
            inside,
        )
        .map_err(|_| Refused::None)?;
        self.kind(pid, &tmp)?;
        // Neither a link nor a mount stands for the file itself.
        let itself = ResolveFlags::BENEATH
            | ResolveFlags::NO_XDEV
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_SYMLINKS;
        let found = openat2(
            &tmp,
            format!("perf-{inner}.map"),
            path | OFlags::NOFOLLOW,
            Mode::empty(),
            itself,
        )
        .map_err(|e| match e {
            rustix::io::Errno::XDEV => Refused::Kind,
            _ => Refused::None,
        })?;
        self.checked(pid, &found, |stat| stat.st_uid == user && stat.st_size > 0)
    }

    /// Opens for reading what was found, if its file system is of a kind that answers, and it is a regular file.
    fn checked(
        &mut self,
        pid: i32,
        found: &OwnedFd,
        fits: impl Fn(&rustix::fs::Stat) -> bool,
    ) -> Result<(File, u64), Refused> {
        self.kind(pid, found)?;
        let stat = fstat(found).map_err(|_| Refused::None)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || !fits(&stat) {
            return Err(Refused::None);
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let again = format!("/proc/self/fd/{}", found.as_raw_fd());
        let file = open(again, flags, Mode::empty()).map_err(|_| Refused::None)?;
        Ok((file.into(), stat.st_size as u64))
    }

    /// Says whether the file system of what was found is of a kind that is read. Nothing of it is asked for that.
    fn kind(&mut self, pid: i32, found: &OwnedFd) -> Result<(), Refused> {
        let info = format!("/proc/self/fdinfo/{}", found.as_raw_fd());
        let info = std::fs::read_to_string(info).map_err(|_| Refused::Kind)?;
        let number = info
            .lines()
            .find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse::<u64>().ok())
            .ok_or(Refused::Kind)?;
        let space = std::fs::read_link(format!("/proc/{pid}/ns/mnt")).unwrap_or_default();
        let known = |server: &Server| {
            server
                .ours
                .get(&number)
                .or_else(|| server.spaces.get(&space)?.get(&number))
                .map(|mount| may_be_opened(mount, &server.ours))
        };
        let allowed = known(self).or_else(|| {
            // It was mounted after the last look, or this is the first: once for each question.
            if self.looked.as_ref() == Some(&space) {
                return None;
            }
            self.looked = Some(space.clone());
            let (text, _) = text_of(&format!("/proc/{pid}/mountinfo"))?;
            self.spaces.insert(space.clone(), mounts(&text));
            known(self)
        });
        match allowed {
            Some(true) => Ok(()),
            _ => Err(Refused::Kind),
        }
    }
}

fn root_of(pid: i32) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(format!("/proc/{pid}/root"), flags, Mode::empty()).ok()
}

/// What the process told.
pub enum Told {
    Mappings(i32, Vec<Mapping>),
    File(FileKey, OwnedFd, u64),
    Functions(i32, OwnedFd, u64),
    /// Of a process all was told that was asked; so many of its files are of a kind that is not opened, and whether its
    /// mappings were read to their end.
    Done(u8, i32, u32, bool),
    /// The process did not answer in time.
    GaveUp(i32),
}

/// Asks a process that opens files.
#[derive(Default)]
pub struct Opener {
    helper: Option<Helper>,
    starts: u32,
    waiting: VecDeque<(u8, i32)>,
    asked: VecDeque<(u8, i32)>,
    /// When something came, or was asked when nothing was still to come.
    heard: Option<Instant>,
}

/// Questions on their way at a time, so that none waits for room.
const MOST_ASKED: usize = 32;
/// The process is started so often.
const MOST_STARTS: u32 = 6;
/// On a machine that is too busy for it to go on it is waited for so many times as long.
const MOST_STUCK: u32 = 6;

impl Opener {
    /// Starts the process where there is none.
    pub fn start(&mut self) -> bool {
        if self.helper.is_none() && self.starts < MOST_STARTS {
            self.starts += 1;
            self.helper = Helper::start(OPENER).ok();
        }
        self.helper.is_some()
    }

    pub fn ask(&mut self, what: u8, pid: i32) {
        self.waiting.push_back((what, pid));
    }

    /// Whether the process waits for something else than a CPU, and what CPU time it has used.
    pub fn state(&self) -> (bool, Duration) {
        self.helper
            .as_ref()
            .map_or((false, Duration::ZERO), |helper| {
                (helper.is_blocked(), helper.cpu())
            })
    }

    /// Whether everything was answered.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.asked.is_empty()
    }

    /// Sends questions, and takes what has come, waiting for so long for the first of it. Where nothing came for
    /// `stuck`, whoever was asked about is given up.
    pub fn turn(&mut self, wait: Duration, stuck: Duration, mut take: impl FnMut(Told)) {
        let mut wait = wait;
        loop {
            if self.is_idle() || !self.start() {
                return self.give_up(true, &mut take);
            }
            let Some(helper) = &self.helper else { return };
            while let Some(&(what, pid)) = self.waiting.front() {
                let question = Out::new(what).u32(pid as u32);
                if self.asked.len() >= MOST_ASKED
                    || helper
                        .packets
                        .send(&question.0, None, Some(Duration::ZERO))
                        .is_err()
                {
                    break;
                }
                if self.asked.is_empty() {
                    self.heard = Some(Instant::now());
                }
                self.asked.extend(self.waiting.pop_front());
            }
            let mut packet = [0; LONGEST];
            match helper.packets.receive(&mut packet, Some(wait)) {
                Ok(came) => {
                    self.heard = Some(Instant::now());
                    wait = Duration::ZERO;
                    if let Some(told) = told(In(&packet[..came.bytes]), came.file) {
                        if let Told::Done(what, pid, ..) = told {
                            self.asked.retain(|asked| *asked != (what, pid));
                        }
                        take(told);
                    }
                }
                Err(e) if e.kind() == ErrorKind::TimedOut => {
                    let silent = self.heard.map_or(Duration::ZERO, |at| at.elapsed());
                    if silent > MOST_STUCK * stuck || silent > stuck && helper.is_blocked() {
                        self.give_up(false, &mut take);
                    }
                    return;
                }
                // It has ended.
                Err(_) => self.give_up(false, &mut take),
            }
        }
    }

    /// Gives up the first that was asked about, or all, and has the others asked again.
    fn give_up(&mut self, all: bool, take: &mut impl FnMut(Told)) {
        if self.is_idle() {
            return;
        }
        self.helper = None;
        self.heard = None;
        let asked = std::mem::take(&mut self.asked);
        let mut open: VecDeque<_> = asked.into_iter().chain(self.waiting.drain(..)).collect();
        if all {
            open.drain(..).for_each(|(_, pid)| take(Told::GaveUp(pid)));
        }
        if let Some((_, pid)) = open.pop_front() {
            take(Told::GaveUp(pid));
            open.retain(|asked| asked.1 != pid);
        }
        self.waiting = open;
    }

    /// Ends the process; what was still to come is given up.
    pub fn end(&mut self, mut take: impl FnMut(Told)) {
        self.give_up(true, &mut take);
        self.helper = None;
    }
}

pub(super) fn told(mut packet: In, file: Option<OwnedFd>) -> Option<Told> {
    match (packet.u8()?, file) {
        (b'm', None) => {
            let pid = packet.u32()? as i32;
            let mut found = Vec::new();
            while !packet.0.is_empty() {
                let (start, end, offset) = (packet.u64()?, packet.u64()?, packet.u64()?);
                let file = (packet.text()?.to_owned(), packet.u64()?);
                let name = packet.text()?.to_owned();
                found.push(Mapping {
                    start,
                    end,
                    offset,
                    file,
                    name,
                });
            }
            Some(Told::Mappings(pid, found))
        }
        (b'f', Some(file)) => {
            let key = (packet.text()?.to_owned(), packet.u64()?);
            Some(Told::File(key, file, packet.u64()?))
        }
        (b'j', Some(file)) => Some(Told::Functions(packet.u32()? as i32, file, packet.u64()?)),
        (b'd', None) => {
            let (what, pid) = (packet.u32()? as u8, packet.u32()? as i32);
            Some(Told::Done(what, pid, packet.u32()?, packet.u32()? != 0))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        23 22 0:5 / /proc rw - proc proc rw\n\
        24 22 0:40 / /home/u/mnt rw - fuse.sshfs x:/ rw,user_id=1000\n\
        25 22 0:41 / /merged rw - overlay overlay rw,lowerdir=/a\n\
        26 22 0:42 / /tmp rw - tmpfs none rw\n27 nonsense\n";

    #[test]
    fn only_files_of_file_systems_that_answer_are_opened() {
        let (theirs, none) = (mounts(MOUNTINFO), Mounts::new());
        let allowed = |number: u64, ours: &Mounts| may_be_opened(&theirs[&number], ours);
        assert!(allowed(22, &none) && allowed(26, &none));
        assert!(!allowed(23, &none) && !allowed(24, &none) && !allowed(24, &theirs));
        assert!(
            !allowed(25, &none) && allowed(25, &theirs),
            "any user can mount one upon FUSE, in a name space of their own"
        );
        assert_eq!(theirs.len(), 5);
    }

    #[test]
    fn our_own_program_is_opened_and_a_device_is_not() {
        let mut server = Server::default();
        let own = std::process::id() as i32;
        let mappings = maps::parse(&std::fs::read_to_string("/proc/self/maps").unwrap());
        let program = mappings.iter().find(|m| m.file.1 != 0).unwrap();
        let (_, bytes) = server.open_mapped(own, program).unwrap();
        assert_eq!(
            bytes,
            std::fs::metadata("/proc/self/exe").unwrap().len(),
            "{program:?}"
        );
        let device = Mapping {
            name: "/dev/null".into(),
            start: 1,
            end: 2,
            ..program.clone()
        };
        assert!(server.open_mapped(own, &device).is_err());
        let of_proc = open(
            "/proc/self/comm",
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        );
        assert_eq!(
            server
                .checked(own, &of_proc.unwrap(), |_| true)
                .unwrap_err(),
            Refused::Kind
        );
    }

    #[test]
    fn a_list_of_functions_must_be_a_plain_file_of_the_same_user() {
        let (mut server, own) = (Server::default(), std::process::id() as i32);
        let path = format!("/tmp/perf-{own}.map");
        std::fs::write(&path, "10 20 mine\n").unwrap();
        let mine = server.open_functions(own).map(|(_, bytes)| bytes);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(mine.unwrap(), 11);
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        let by_link = server.open_functions(own).is_err();
        std::fs::remove_file(&path).unwrap();
        assert!(by_link, "a link is not followed");
    }

    #[test]
    fn who_does_not_answer_is_given_up_and_others_asked_again() {
        let (ours, _never_answers) = Packets::pair().unwrap();
        let mut opener = Opener {
            helper: Some(Helper::over(ours)),
            ..Opener::default()
        };
        let own = std::process::id() as i32;
        opener.ask(CODE, 1);
        opener.ask(CODE, own);
        let (mut gave_up, mut done) = (Vec::new(), Vec::new());
        let deadline = Instant::now() + Duration::from_secs(20);
        while !opener.is_idle() && Instant::now() < deadline {
            let turn = Duration::from_millis(5);
            opener.turn(turn, 8 * turn, |told| match told {
                Told::GaveUp(pid) => gave_up.push(pid),
                Told::Done(_, pid, ..) => done.push(pid),
                _ => {}
            });
        }
        // What helps instead of the one that was given up may be slow, too, on a busy machine.
        assert!(gave_up.contains(&1) && !done.contains(&1), "{gave_up:?}");
        assert!(done == [own] || gave_up == [1, own]);
    }
}
