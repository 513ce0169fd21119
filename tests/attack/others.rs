//! Other users of the machine: journals, locks, links and directories that they prepared.

use std::fs::{self, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use fingerpost_sys::child;
use tempfile::TempDir;

use crate::support::{binary, is_root, until};

/// The attacker.
const NOBODY: u32 = 65534;
/// Another user, who is attacked.
const SOMEBODY: u32 = 65533;
/// Root's control directory.
const CONTROL: &str = "/run/fingerpost";

/// A directory that everybody may enter.
fn open_dir(mode: u32) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(mode)).unwrap();
    dir
}

/// What a user's shell does; it must do all of it.
#[track_caller]
fn shell(user: u32, script: &str) {
    let status = Command::new("sh")
        .args(["-ec", script])
        .uid(user)
        .gid(user)
        .current_dir("/")
        .status()
        .unwrap();
    assert!(status.success(), "{script}");
}

/// A start of a user, which sweeps.
fn start(user: u32, tmp: &Path, home: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command
        .args(words)
        .env("TMPDIR", tmp)
        .env("FINGERPOST_HOME", home)
        .current_dir("/");
    if user != 0 {
        command
            .uid(user)
            .gid(user)
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("XDG_CACHE_HOME")
            .env("HOME", "/nonexistent");
    }
    command.output().unwrap()
}

const SHORT: [&str; 5] = ["run", "clock.gettime", "--budget", "0.2", "--quiet"];

/// It neither crashed nor was it killed.
#[track_caller]
fn ended_well(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        matches!(output.status.code(), Some(0..=3)),
        "{:?}: {said}",
        output.status
    );
    assert!(!said.contains("panicked"), "{said}");
}

/// A file of a user's that nobody else may write to, in a directory that all may search.
fn treasure(owner: u32) -> (TempDir, PathBuf) {
    let dir = open_dir(0o711);
    let file = dir.path().join("treasure");
    fs::write(&file, "kept").unwrap();
    chown(&file, Some(owner), Some(owner)).unwrap();
    chown(dir.path(), Some(owner), Some(owner)).unwrap();
    (dir, file)
}

/// Entries that write to a file and remove another beside it, as former versions wrote them and as this one numbers
/// them.
fn journal_against(file: &Path) -> String {
    let beside = file.with_file_name("beside");
    let write = format!(r#""undo":"write_file","path":{file:?},"content":"changed""#);
    let remove = format!(r#""undo":"remove_path","path":{beside:?}"#);
    format!("{{{write}}}\n{{{remove}}}\n{{\"n\":0,{write}}}\n{{\"n\":1,{remove}}}\n")
}

#[test]
fn a_journal_that_another_user_prepared_is_not_undone() {
    if !is_root() {
        return;
    }
    for user in [0, SOMEBODY] {
        let (tmp, home) = (open_dir(0o1777), open_dir(0o777));
        let (_dir, file) = treasure(user);
        fs::write(file.with_file_name("beside"), "kept").unwrap();
        chown(file.with_file_name("beside"), Some(user), Some(user)).unwrap();
        let root = tmp.path().join(format!("fingerpost-{user}"));
        let control = tmp.path().join("fingerpost-control-0123456789abcdef");
        for run in [
            root.join("run-1-0"),
            root.join("control/run-0123456789abcdef"),
            control.join("run-0123456789abcdef"),
        ] {
            let (run, journal) = (run.display(), journal_against(&file));
            shell(
                NOBODY,
                &format!(
                    "mkdir -p {run}; : >{run}/lock; cat >{run}/journal <<'END'\n{journal}END\nchmod -R a+rwX {run}"
                ),
            );
        }
        // As if the directory were private; its owner remains who made it.
        shell(NOBODY, &format!("chmod -R go= {}", control.display()));
        ended_well(&start(user, tmp.path(), home.path(), &SHORT));
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept", "user {user}");
        assert!(file.with_file_name("beside").exists(), "user {user}");
    }
}

#[test]
fn another_users_temporary_directory_is_refused() {
    if !is_root() {
        return;
    }
    // Not sticky, so that the kernel's own protection of links in sticky directories does not help.
    let (base, home) = (open_dir(0o755), open_dir(0o755));
    let tmp = base.path().join("tmp");
    fs::create_dir(&tmp).unwrap();
    chown(&tmp, Some(NOBODY), Some(NOBODY)).unwrap();
    let (_dir, file) = treasure(0);
    let (tmp, journal) = (tmp.display(), journal_against(&file));
    shell(
        NOBODY,
        &format!(
            "mkdir -p {tmp}/mine/run-1-0; cd {tmp}/mine/run-1-0; : >lock; cat >journal <<'END'\n{journal}END\nln -s \
             mine {tmp}/fingerpost-0"
        ),
    );
    let output = start(0, &base.path().join("tmp"), home.path(), &SHORT);
    ended_well(&output);
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success()
            && said.contains("another user can change")
            && said.contains("TMPDIR"),
        "{said}"
    );
}

#[test]
fn a_runtime_directory_of_another_user_is_not_used() {
    if !is_root() {
        return;
    }
    let (tmp, home, runtime) = (open_dir(0o1777), open_dir(0o777), open_dir(0o777));
    let (_dir, file) = treasure(SOMEBODY);
    let run = runtime.path().join("fingerpost/run-0123456789abcdef");
    shell(
        NOBODY,
        &format!(
            "mkdir -p {0}; : >{0}/lock; cat >{0}/journal <<'END'\n{1}END\nchmod -R a+rwX {0}/..",
            run.display(),
            journal_against(&file)
        ),
    );
    let mut command = Command::new(binary());
    command
        .args(SHORT)
        .uid(SOMEBODY)
        .gid(SOMEBODY)
        .env("TMPDIR", tmp.path())
        .env("FINGERPOST_HOME", home.path());
    let output = command
        .env("XDG_RUNTIME_DIR", runtime.path())
        .env("HOME", "/nonexistent")
        .current_dir("/")
        .output()
        .unwrap();
    ended_well(&output);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    assert_eq!(
        fs::read_dir(runtime.path().join("fingerpost"))
            .unwrap()
            .count(),
        1,
        "nothing of ours is put there"
    );
}

/// A run that waits with a server, in a process group of its own, and its temporary directory.
fn running() -> (Child, TempDir, TempDir) {
    let (tmp, home) = (open_dir(0o711), open_dir(0o755));
    let mut command = Command::new(binary());
    command
        .args([
            "run",
            "web",
            "--quiet",
            "--budget",
            "60",
            "--set",
            "connections=1",
        ])
        .process_group(0)
        .current_dir("/");
    command
        .env("TMPDIR", tmp.path())
        .env("FINGERPOST_HOME", home.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.spawn().unwrap();
    until("its servers run", || !started_in(tmp.path()).is_empty());
    (child, tmp, home)
}

/// Processes whose mark names a directory below this one.
fn started_in(tmp: &Path) -> Vec<i32> {
    let mark = format!("{}={}", child::MARK, tmp.display());
    let pids = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|b| *b == 0)
            .any(|word| word.starts_with(mark.as_bytes()))
    })
    .collect()
}

/// Every lock of a run, wherever it may lie.
fn locks(tmp: &Path) -> Vec<PathBuf> {
    let within = |dir: &Path| {
        fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path())
            .collect::<Vec<_>>()
    };
    let dirs = within(Path::new(CONTROL))
        .into_iter()
        .chain(within(tmp))
        .chain(within(tmp).into_iter().flat_map(|dir| within(&dir)));
    dirs.map(|dir| dir.join("lock"))
        .filter(|lock| lock.exists())
        .collect()
}

#[test]
fn nobody_else_can_open_a_lock_and_so_hold_it() {
    if !is_root() {
        return;
    }
    let (mut run, tmp, _home) = running();
    let locks = locks(tmp.path());
    assert!(!locks.is_empty());
    for lock in locks {
        let opened = Command::new("sh")
            .args(["-c", &format!(": <{}", lock.display())])
            .uid(NOBODY)
            .gid(NOBODY)
            .stderr(Stdio::null())
            .status();
        assert!(!opened.unwrap().success(), "{}", lock.display());
    }
    run.kill().unwrap();
    run.wait().unwrap();
}

#[test]
fn a_run_whose_whole_group_is_killed_leaves_nothing() {
    if !is_root() {
        return;
    }
    let (mut run, tmp, _home) = running();
    child::signal_group(run.id() as i32, 9).unwrap();
    run.wait().unwrap();
    until("nothing is left", || {
        started_in(tmp.path()).is_empty() && fs::read_dir(tmp.path()).unwrap().next().is_none()
    });
}

/// A run of root's that seems to have been killed; removed at the end.
struct Killed(Vec<PathBuf>);

impl Killed {
    /// With this journal where this version looks for it, and with the other one where former versions did.
    fn with(tmp: &Path, journal: &[u8], former: &str) -> Killed {
        let random: String = (0..16).map(|_| fastrand::lowercase()).collect();
        let dirs = vec![
            Path::new(CONTROL).join(format!("run-{random}")),
            tmp.join("fingerpost-0").join(format!("run-1-{random}")),
        ];
        for (dir, journal) in dirs.iter().zip([journal, former.as_bytes()]) {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)
                .unwrap();
            let new = |name: &str| {
                fs::File::options()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(dir.join(name))
                    .unwrap()
            };
            std::io::Write::write_all(&mut new("journal"), journal).unwrap();
            new("lock");
        }
        Killed(dirs)
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.iter().for_each(|dir| drop(fs::remove_dir_all(dir)));
    }
}

#[test]
fn a_strangers_process_group_is_not_killed() {
    if !is_root() {
        return;
    }
    let (tmp, home) = (open_dir(0o1777), open_dir(0o755));
    // The first process of the group is gone, the number is still in use.
    let mut leader = Command::new("sh")
        .args(["-c", "sleep 600 & echo $!"])
        .process_group(0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pgid = leader.id();
    let mut member = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(leader.stdout.take().unwrap()),
        &mut member,
    )
    .unwrap();
    leader.wait().unwrap();
    let member: i32 = member.trim().parse().unwrap();
    let mut alone = Command::new("sleep")
        .arg("600")
        .process_group(0)
        .spawn()
        .unwrap();
    let boot = fingerpost_undo::journal::boot_id();
    let kill =
        |pgid: u32| format!(r#""undo":"kill_group","pgid":{pgid},"start":12345,"boot":{boot:?}}}"#);
    let area = tmp.path().join("fingerpost-0123456789abcdef");
    let text = format!(
        "{{\"n\":0,\"undo\":\"remove_directory\",\"path\":{area:?}}}\n{{\"n\":1,{}\n{{\"n\":2,{}\n",
        kill(pgid),
        kill(alone.id())
    );
    let killed = Killed::with(
        tmp.path(),
        text.as_bytes(),
        &format!("{{{}\n{{{}\n", kill(pgid), kill(alone.id())),
    );
    ended_well(&start(0, tmp.path(), home.path(), &SHORT));
    let start_time = child::start_time(member);
    let lives = alone.try_wait().unwrap().is_none();
    let _ = child::signal(member, 9);
    alone.kill().unwrap();
    alone.wait().unwrap();
    assert!(
        start_time.is_some() && lives,
        "the member {start_time:?}, the other group {lives}"
    );
    assert!(!killed.0[0].exists(), "the journal was undone all the same");
}

#[test]
fn journals_too_long_or_not_ours_are_kept_and_change_nothing() {
    if !is_root() {
        return;
    }
    let (tmp, home) = (open_dir(0o1777), open_dir(0o755));
    let (_dir, file) = treasure(0);
    fs::write(file.with_file_name("beside"), "kept").unwrap();
    let area = tmp.path().join("fingerpost-0123456789abcdef");
    let valid = format!(
        "{{\"n\":0,\"undo\":\"remove_directory\",\"path\":{area:?}}}\n{{\"of\":0,\"made\":{{\"dev\":1,\"ino\":2}}}}\n\
         {{\"n\":1,\"undo\":\"remove_path\",\"path\":{:?}}}\n",
        area.join("x")
    );
    let against: String = journal_against(&file)
        .lines()
        .skip(2)
        .map(|l| l.replace("\"n\":", "\"n\":1") + "\n")
        .collect();
    let whole = valid + &against;
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut runs: Vec<Killed> = (0..60)
        .map(|_| Killed::with(tmp.path(), &mutated(whole.as_bytes(), &mut chance), ""))
        .collect();
    runs.push(Killed::with(
        tmp.path(),
        &b"{\"struck\":1}\n".repeat(1 << 20),
        "",
    ));
    runs.push(Killed::with(tmp.path(), whole.as_bytes(), ""));
    let output = start(0, tmp.path(), home.path(), &SHORT);
    ended_well(&output);
    assert!(output.status.success(), "the run itself goes on");
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    assert!(file.with_file_name("beside").exists());
    assert!(
        runs[60..].iter().all(|run| run.0[0].exists()),
        "what was refused is kept to be looked at"
    );
}

/// A few bytes changed, cut out or doubled. None of the letters makes a path of this machine.
fn mutated(text: &[u8], chance: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..chance.usize(1..6) {
        let at = chance.usize(..bytes.len());
        match chance.u8(..4) {
            0 => bytes[at] = chance.u8(..),
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, b"\"{}[],:\n0-9.\0"[chance.usize(..12)]),
            _ => {
                let end = (at + chance.usize(1..40)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    bytes
}

#[test]
fn writing_into_another_users_directory_follows_no_link() {
    if !is_root() {
        return;
    }
    let (tmp, home, theirs) = (open_dir(0o1777), open_dir(0o755), open_dir(0o755));
    let (_dir, file) = treasure(0);
    chown(theirs.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    // The name, and the names that its first form had for every process that could be the next one.
    let (dir, target) = (theirs.path().display(), file.display());
    shell(
        NOBODY,
        &format!(
            "cd {dir}; ln -s {target} out.json; perl -e 'symlink \"{target}\", \".out.json.$_.tmp\" for $$ + 1 .. $$ + \
             3000'"
        ),
    );
    let out = theirs.path().join("out.json");
    let mut words = SHORT.to_vec();
    words.extend(["-o", out.to_str().unwrap()]);
    let output = start(0, tmp.path(), home.path(), &words);
    ended_well(&output);
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    let written = fs::symlink_metadata(&out).unwrap();
    assert!(
        output.status.success() && written.is_file() && written.uid() == 0,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Somebody's directory, in which a name changes all the time between a directory of theirs, which is `real`, and links
/// to root's.
fn swapped(base: &Path, treasure: &Path) -> Child {
    let script = format!(
        "set -e; cd {base:?}; ln -s {treasure:?} link; echo ready; \
         while :; do mv -T real inner; mv -T inner real; mv -T link inner; mv -T inner link; done"
    );
    let mut command = Command::new("sh");
    command
        .args(["-c", &script])
        .uid(NOBODY)
        .gid(NOBODY)
        .stdout(Stdio::piped());
    let mut child = child::die_with_parent(&mut command).spawn().unwrap();
    let mut word = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut word).unwrap();
    child
}

#[test]
fn root_works_in_no_directory_that_another_user_can_change() {
    if !is_root() {
        return;
    }
    let (home, kept, base) = (open_dir(0o755), open_dir(0o755), open_dir(0o755));
    let sticky = open_dir(0o1777);
    for dir in [&base, &sticky] {
        chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let real = base.path().join("real");
    fs::create_dir(&real).unwrap();
    chown(&real, Some(NOBODY), Some(NOBODY)).unwrap();
    let real = fs::File::open(real).unwrap();
    let mut swapper = swapped(base.path(), kept.path());
    let inner = base.path().join("inner");
    let group = open_dir(0o775);
    chown(group.path(), Some(0), Some(NOBODY)).unwrap();
    let courses: [&[&str]; 3] = [
        &["fs.create", "--set", "dir=D"],
        &["site", "--set", "dirs=D"],
        &["database", "--set", "engine=sqlite", "--set", "dir=D"],
    ];
    for course in courses {
        // The changing name several times, for what it is in that moment is chance.
        let places = [base.path(), sticky.path(), group.path()]
            .into_iter()
            .chain([inner.as_path(); 5]);
        for place in places {
            let words: Vec<String> = course
                .iter()
                .map(|w| w.replace("=D", &format!("={}", place.display())))
                .collect();
            let words: Vec<&str> = ["run", "--quiet", "--budget", "2"]
                .into_iter()
                .chain(words.iter().map(String::as_str))
                .collect();
            let output = start(0, Path::new("/tmp"), home.path(), &words);
            let said = String::from_utf8_lossy(&output.stderr);
            let told = format!("{said}{}", String::from_utf8_lossy(&output.stdout));
            assert!(
                matches!(output.status.code(), Some(2 | 3)),
                "{words:?}: {:?} {told}",
                output.status
            );
            assert!(
                place == inner || told.contains("another user can change"),
                "{words:?}: {told}"
            );
            assert_eq!(
                fs::read_dir(kept.path()).unwrap().count(),
                0,
                "{words:?}: {told}"
            );
        }
    }
    swapper.kill().unwrap();
    swapper.wait().unwrap();
    let made = |dir: &Path| {
        fs::read_dir(dir)
            .unwrap()
            .flatten()
            .any(|e| e.metadata().is_ok_and(|m| m.uid() == 0))
    };
    // By the descriptor: which of its two names the directory had when the loop was killed is chance.
    let real = PathBuf::from(format!("/proc/self/fd/{}", real.as_raw_fd()));
    assert!(
        !made(base.path()) && !made(sticky.path()) && !made(&real),
        "root made something there"
    );
}
