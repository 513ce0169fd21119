use std::fs;
use std::io::Read;

use super::*;

/// A program of /bin/sh with its standard output to a file.
fn shell(line: &str, dir: &Path) -> Spawn {
    let null = || OwnedFd::from(File::open("/dev/null").unwrap());
    let out = OwnedFd::from(File::create(dir.join("out")).unwrap());
    Spawn::new(
        Path::new("/bin/sh"),
        &["-c".into(), line.into()],
        dir,
        [null(), out, null()],
    )
    .unwrap()
}

fn said(line: &str, change: impl Fn(&mut Spawn)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut spawn = shell(line, dir.path());
    change(&mut spawn);
    let status = spawn
        .ready()
        .unwrap()
        .start()
        .unwrap()
        .process
        .wait()
        .unwrap();
    assert!(status.success(), "{status}");
    fs::read_to_string(dir.path().join("out")).unwrap()
}

#[test]
fn the_program_gets_its_words_its_environment_and_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    let spawn = shell("pwd", dir.path());
    spawn
        .ready()
        .unwrap()
        .start()
        .unwrap()
        .process
        .wait()
        .unwrap();
    let told = fs::read_to_string(dir.path().join("out")).unwrap();
    assert_eq!(Path::new(told.trim()), dir.path().canonicalize().unwrap());
    assert_eq!(
        said("echo $COLOUR $HOME", |s| s.env("COLOUR", "red")).trim(),
        format!("red {}", std::env::var("HOME").unwrap_or_default()).trim()
    );
    assert_eq!(
        said("echo $COLOUR", |s| (
            s.env("COLOUR", "red"),
            s.env("COLOUR", "blue")
        )
            .1),
        "blue\n"
    );
}

#[test]
fn it_starts_with_no_signal_blocked_and_leads_its_own_group() {
    let status = said(
        "grep -E 'SigBlk|SigIgn' /proc/self/status; cut -d' ' -f5 /proc/$$/stat; echo $$",
        |_| {},
    );
    let lines: Vec<&str> = status.lines().collect();
    let set =
        |line: &str| u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
    assert_eq!(set(lines[0]), 0, "{status}");
    // What else was ignored when this test was started stays so, as exec has it.
    assert_eq!(set(lines[1]) & 1 << (libc::SIGPIPE - 1), 0, "{status}");
    assert_eq!(lines[2], lines[3], "{status}");
}

#[test]
fn the_signals_of_the_caller_are_as_they_were() {
    let blocked = || {
        fs::read_to_string("/proc/thread-self/status")
            .unwrap()
            .lines()
            .find(|l| l.starts_with("SigBlk"))
            .map(str::to_owned)
    };
    let before = blocked();
    said("true", |_| {});
    assert_eq!(blocked(), before);
}

#[test]
fn a_program_that_cannot_start_is_an_error_without_a_child() {
    let dir = tempfile::tempdir().unwrap();
    let null = || OwnedFd::from(File::open("/dev/null").unwrap());
    let start = |program: &str, dir: &Path| {
        Spawn::new(Path::new(program), &[], dir, [null(), null(), null()])
            .unwrap()
            .ready()
            .unwrap()
            .start()
            .unwrap_err()
    };
    assert_eq!(
        start("/nonexistent", dir.path()).raw_os_error(),
        Some(libc::ENOENT)
    );
    assert_eq!(
        start("/etc/passwd", dir.path()).raw_os_error(),
        Some(libc::EACCES)
    );
    assert_eq!(
        start("/bin/sh", Path::new("/nonexistent")).raw_os_error(),
        Some(libc::ENOENT)
    );
    assert!(
        Spawn::new(
            Path::new("/a\0b"),
            &[],
            dir.path(),
            [null(), null(), null()]
        )
        .is_err()
    );
}

#[test]
fn its_end_is_seen_through_its_descriptor_and_told_again() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, writer) = io::pipe().unwrap();
    let null = || OwnedFd::from(File::open("/dev/null").unwrap());
    let words = ["-c".to_owned(), "read line; exit 3".to_owned()];
    let spawn = Spawn::new(
        Path::new("/bin/sh"),
        &words,
        dir.path(),
        [reader.into(), null(), null()],
    )
    .unwrap();
    let mut process = spawn.ready().unwrap().start().unwrap().process;
    assert_eq!(
        process
            .wait_deadline(Instant::now() + Duration::from_millis(5))
            .unwrap(),
        None
    );
    drop(spawn);
    drop(writer);
    assert_eq!(
        wait::any(&[process.as_fd()], Duration::from_secs(20)).unwrap(),
        [true]
    );
    for _ in 0..2 {
        assert_eq!(process.try_wait().unwrap().and_then(|s| s.code()), Some(3));
    }
}

#[test]
fn as_another_user_it_has_that_users_rights_alone() {
    fingerpost_testing::require!(root);
    assert_eq!(
        said("id -u; id -g; id -G", |s| s.user(65_534, 65_534)),
        "65534\n65534\n65534\n"
    );
    // The caller has stayed who it was.
    assert!(crate::system::is_root());
}

#[test]
fn entering_no_control_group_takes_no_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut spawn = shell("exit 0", dir.path());
    let mut started = spawn.ready().unwrap().start().unwrap();
    assert_eq!(started.entering, Duration::ZERO);
    started.process.wait().unwrap();
    // A descriptor that is not open for writing stands for a group that refuses.
    spawn.groups(vec![File::open("/dev/null").unwrap()]);
    assert_eq!(
        spawn.ready().unwrap().start().unwrap_err().raw_os_error(),
        Some(libc::EBADF)
    );
}

#[test]
fn it_dies_with_the_thread_that_started_it() {
    let dir = tempfile::tempdir().unwrap();
    let (mut reader, writer) = io::pipe().unwrap();
    let path = dir.path().to_owned();
    let thread = std::thread::spawn(move || {
        let null = || OwnedFd::from(File::open("/dev/null").unwrap());
        let words = ["600".to_owned()];
        let sleep = ["/bin/sleep", "/usr/bin/sleep"]
            .map(Path::new)
            .into_iter()
            .find(|p| p.exists())
            .unwrap();
        let process = Spawn::new(sleep, &words, &path, [null(), writer.into(), null()])
            .unwrap()
            .ready()
            .unwrap()
            .start()
            .unwrap()
            .process;
        process.pid()
    });
    thread.join().unwrap();
    // The other end of the pipe closes when the process is gone.
    assert_eq!(reader.read(&mut [0]).unwrap(), 0);
}
