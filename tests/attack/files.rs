//! Files that root makes where others can write, whom the files can be read and locked by, and what they hold.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::FlockOperation;
use tempfile::TempDir;

use super::support::{Home, Said, binary, is_root};

const ENGINES: [&str; 3] = ["lmdb", "sqlite", "redb"];
/// The attacker.
const NOBODY: u32 = 65_534;
/// Numbers of processes ahead of ours for which a name is prepared.
const AHEAD: u32 = 400;

fn site(words: &[&dyn AsRef<OsStr>]) -> Output {
    let mut command = Command::new(binary());
    command.arg("site").stdin(Stdio::null());
    command.args(words.iter().map(|word| word.as_ref()));
    command.output().unwrap()
}

#[track_caller]
fn well(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", output.status);
}

/// A directory of root's that nobody else may enter, and one of the attacker's that everybody may write to.
fn places() -> (TempDir, TempDir) {
    let (own, open) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    chown(open.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    // Not sticky: there the kernel itself does not follow another user's link.
    fs::set_permissions(open.path(), Permissions::from_mode(0o777)).unwrap();
    (own, open)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// The most that this process ever held: the kernel carries it over to what it starts.
fn own_peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = line.unwrap().trim().trim_end_matches(" kB");
    peak.parse::<u64>().unwrap() << 10
}

/// The names that a process whose number is soon used would make.
fn soon(name: &str) -> impl Iterator<Item = String> {
    let pid = Command::new("true").spawn().map(|mut child| {
        child.wait().unwrap();
        child.id()
    });
    let pid = pid.unwrap();
    (pid..pid + AHEAD).map(move |pid| format!("{name}.part-{pid}"))
}

#[test]
fn an_import_writes_through_no_link() {
    if !is_root() {
        return;
    }
    for engine in ENGINES {
        let (own, open) = places();
        let (dir, secret) = (own.path().join("site"), own.path().join("secret"));
        fs::create_dir(&dir).unwrap();
        fs::create_dir(&secret).unwrap();
        fs::write(dir.join("page"), "page").unwrap();
        for name in soon("odb") {
            symlink(secret.join("made"), open.path().join(name)).unwrap();
        }
        let file = open.path().join("odb");
        well(&site(&[&"import", &dir, &file, &"--store", &engine]));
        assert_eq!(fs::read_dir(&secret).unwrap().count(), 0, "{engine}");
        assert!(file.is_file() && !file.is_symlink());
    }
}

#[test]
fn an_import_makes_its_own_file() {
    if !is_root() {
        return;
    }
    for engine in ENGINES {
        let (own, open) = places();
        fs::write(own.path().join("page"), "page").unwrap();
        for name in soon("odb") {
            let file = open.path().join(name);
            fs::write(&file, "").unwrap();
            chown(&file, Some(NOBODY), Some(NOBODY)).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        }
        let file = open.path().join("odb");
        well(&site(&[&"import", &own.path(), &file, &"--store", &engine]));
        let meta = fs::metadata(&file).unwrap();
        assert_eq!((meta.uid(), meta.mode() & 0o022), (0, 0), "{engine}");
        let left = fs::read_dir(open.path()).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.as_encoded_bytes().starts_with(b".")
        });
        assert_eq!(left.count(), 0, "{engine}");
    }
}

/// Who owns the directory puts a link in the place of a directory that the export has just made in it.
#[test]
fn an_export_follows_no_link_in_what_it_makes() {
    if !is_root() {
        return;
    }
    let (own, open) = places();
    let (dir, secret) = (own.path().join("site"), own.path().join("secret"));
    fs::create_dir_all(dir.join("table")).unwrap();
    fs::create_dir(&secret).unwrap();
    for page in 0..500 {
        fs::write(dir.join(format!("table/{page}")), "page").unwrap();
    }
    let file = own.path().join("odb");
    well(&site(&[&"import", &dir, &file]));
    let out = open.path().join("out");
    fs::create_dir(&out).unwrap();
    chown(&out, Some(NOBODY), Some(NOBODY)).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let exchange = scope.spawn(|| {
            while fs::rename(out.join("table"), out.join("moved")).is_err() {
                if ended.load(Ordering::Relaxed) {
                    return false;
                }
                std::hint::spin_loop();
            }
            symlink(&secret, out.join("table")).unwrap();
            true
        });
        let _ = site(&[&"export", &file, &out]);
        ended.store(true, Ordering::Relaxed);
        assert!(exchange.join().unwrap(), "the export made the directory");
    });
    assert_eq!(fs::read_dir(&secret).unwrap().count(), 0);
}

#[test]
fn pages_of_the_manual_replace_links_of_others() {
    if !is_root() {
        return;
    }
    let (own, open) = places();
    let victim = own.path().join("victim");
    fs::write(&victim, "kept").unwrap();
    for name in ["fingerpost.1", "fingerpost-run.1"] {
        let link = open.path().join(name);
        symlink(&victim, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let made = Command::new(binary())
        .args(["man", "--dir"])
        .arg(open.path())
        .output();
    well(&made.unwrap());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
    assert!(!open.path().join("fingerpost-run.1").is_symlink());
}

/// Not a test: the attacker's process, which holds every lock that it can have of the files that it can open, until its
/// standard input ends.
#[test]
#[ignore = "it is started by another test"]
fn holds_locks() {
    let Some(files) = std::env::var_os("FINGERPOST_ATTACK_LOCKS") else {
        return;
    };
    let held: Vec<fs::File> = std::env::split_paths(&files)
        .filter_map(|file| fs::File::open(file).ok())
        .inspect(|file| {
            // Whoever may only read can have the one kind shared, and the other alone.
            let _ = rustix::fs::fcntl_lock(file, FlockOperation::NonBlockingLockShared);
            let _ = rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive);
        })
        .collect();
    println!("\nheld {}", held.len());
    std::io::stdout().flush().unwrap();
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}

/// The attacker's process; killed at the end.
struct Holder(Child);

impl Holder {
    /// With every file in a directory that can be opened; how many these are, too.
    fn of(dir: &Path) -> (Holder, usize) {
        let files = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["files::holds_locks", "--exact", "--ignored", "--nocapture"])
            .env(
                "FINGERPOST_ATTACK_LOCKS",
                std::env::join_paths(files).unwrap(),
            )
            .uid(NOBODY)
            .gid(NOBODY)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let held = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("held ")?.parse().ok())
            .expect("it says how many");
        (Holder(child), held)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A database that everybody may read, with what an engine keeps beside it as former versions left it: readable, too.
fn readable(base: &Path, engine: &str) -> PathBuf {
    let (dir, file) = (base.join(format!("{engine}-site")), base.join(engine));
    DirBuilder::new().mode(0o755).create(&file).unwrap();
    let file = file.join("odb");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("page"), "page").unwrap();
    well(&site(&[&"import", &dir, &file, &"--store", &engine]));
    well(&site(&[&"ls", &file]));
    for beside in ["odb", "odb-lock", "odb-shm"].map(|name| file.with_file_name(name)) {
        if beside.exists() || beside.ends_with("odb-shm") && engine == "sqlite" {
            let open = fs::File::options()
                .create(true)
                .append(true)
                .open(&beside)
                .unwrap();
            open.set_permissions(Permissions::from_mode(0o644)).unwrap();
        }
    }
    file
}

#[test]
fn locks_of_another_user_stop_no_reader_and_no_writer() {
    if !is_root() {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    fs::set_permissions(base.path(), Permissions::from_mode(0o755)).unwrap();
    for engine in ENGINES {
        let file = readable(base.path(), engine);
        let dir = file.parent().unwrap();
        let (first, held) = Holder::of(dir);
        assert!(held > 0, "{engine}");
        // What was replaced since, and what is there while somebody reads.
        let mut holders = vec![first];
        for _ in 0..2 {
            for words in [["ls", ""], ["get", "page"], ["verify", ""]] {
                let mut all: Vec<&dyn AsRef<OsStr>> = vec![&words[0], &file];
                if !words[1].is_empty() {
                    all.push(&words[1]);
                }
                let output = site(&all);
                well(&output);
                assert!(!output.stdout.is_empty(), "{engine} {words:?}");
            }
            well(&site(&[&"put", &file, &"new", &"/proc/self/cmdline"]));
            well(&site(&[&"get", &file, &"new"]));
            holders.push(Holder::of(dir).0);
        }
        let mut served = Command::new(binary())
            .args(["site", "serve", "--from"])
            .arg(&file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(served.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        holders.push(Holder::of(dir).0);
        let beside = site(&[&"get", &file, &"page"]);
        served.kill().unwrap();
        served.wait().unwrap();
        assert!(line.contains("http://"), "{engine}: {line}");
        well(&beside);
    }
}

#[test]
fn a_cell_is_given_byte_for_byte() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    fs::create_dir(&dir).unwrap();
    let bytes: Vec<u8> = b"\x89PNG\r\n\x1a\n"
        .iter()
        .copied()
        .chain((0..=255).cycle().take(100_000))
        .collect();
    fs::write(dir.join("picture.png"), &bytes).unwrap();
    for engine in ENGINES {
        let file = base.path().join(engine);
        well(&site(&[&"import", &dir, &file, &"--store", &engine]));
        let given = site(&[&"get", &file, &"picture.png"]);
        well(&given);
        assert!(given.stdout == bytes, "{engine}");
    }
}

/// What a command writes to a terminal.
fn at_terminal(words: &[&dyn AsRef<OsStr>]) -> Vec<u8> {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let slave = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty()).unwrap();
    let mut command = Command::new(binary());
    command.arg("site").stdin(Stdio::null());
    command.args(words.iter().map(|word| word.as_ref()));
    command.stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.spawn().unwrap();
    // It holds the other end, which would keep the reading from its end.
    drop(command);
    let mut bytes = Vec::new();
    let _ = std::io::Read::read_to_end(&mut fs::File::from(master), &mut bytes);
    child.wait().unwrap();
    bytes
}

#[test]
fn a_cell_does_not_act_on_a_terminal() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("text"), "first \u{1b}]0;title\u{7} last").unwrap();
    fs::write(dir.join("binary"), b"\xff\x1b]0;title\x07").unwrap();
    let file = base.path().join("odb");
    well(&site(&[&"import", &dir, &file]));
    for (cell, word) in [("text", "last"), ("binary", "redirect")] {
        let shown = at_terminal(&[&"get", &file, &cell]);
        let text = String::from_utf8(shown).unwrap();
        assert!(text.contains(word) && !text.contains('\u{1b}'), "{text:?}");
    }
}

fn run_in(home: &Path, words: &[&str]) -> Said {
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 0; exec \"$@\"", "sh"])
        .arg(binary())
        .args(["run", "clock.gettime", "--budget", "0.1", "--quiet"])
        .args(words)
        .env("FINGERPOST_HOME", home)
        .stdin(Stdio::null());
    Said::of(&mut command)
}

#[test]
fn runs_are_their_owners_alone_whatever_the_umask() {
    let base = tempfile::tempdir().unwrap();
    let home = base.path().join("home");
    let runs = home.join("runs");
    let said = run_in(&home, &[]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert_eq!((mode(&home), mode(&runs)), (0o700, 0o700));
    let files = || -> Vec<PathBuf> {
        let entries = fs::read_dir(&runs).unwrap();
        entries.map(|e| e.unwrap().path()).collect()
    };
    assert_eq!(files().len(), 1);
    assert_eq!(mode(&files()[0]), 0o600);
    // As a former version left it.
    fs::set_permissions(&runs, Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(&files()[0], Permissions::from_mode(0o644)).unwrap();
    let listed = Command::new(binary())
        .args(["archive", "list"])
        .env("FINGERPOST_HOME", &home)
        .output();
    well(&listed.unwrap());
    assert_eq!((mode(&runs), mode(&files()[0])), (0o700, 0o600));
    // Nor is anything else open to everybody for writing, which what is run shows.
    let made = base.path().join("made");
    let script = format!("umask >{}", made.display());
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 0; exec \"$@\"", "sh"])
        .arg(binary())
        .args(["explain", "--", "sh", "-c", &script])
        .env("FINGERPOST_HOME", &home)
        .stdin(Stdio::null());
    Said::of(&mut command).lived();
    assert_eq!(fs::read_to_string(&made).unwrap().trim(), "0002");
    // A file that the user names is theirs to open to others: once they did, it stays so.
    let named = base.path().join("named.json");
    let name = named.to_str().unwrap();
    assert_eq!(run_in(&home, &["-o", name]).status, Some(0));
    assert_eq!(mode(&named), 0o600);
    fs::set_permissions(&named, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(run_in(&home, &["-o", name]).status, Some(0));
    assert_eq!(mode(&named), 0o644);
}

/// The home directory of another user, as `su` leaves it in `HOME`, with what a container engine would keep there.
#[test]
fn what_another_user_keeps_as_an_engine_names_no_container() {
    if !is_root() {
        return;
    }
    let (_own, open) = places();
    let storage = open.path().join(".local/share/containers/storage");
    let list = format!(
        r#"[{{"id":"{}","names":["till"]}}{}]"#,
        "b".repeat(64),
        ",1".repeat(3_900_000)
    );
    for number in 0..3 {
        let dir = storage.join(number.to_string());
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("containers.json"), &list).unwrap();
    }
    let home = Home::new();
    let mut command = home.command(&["explain", "--container", "till", "--seconds", "1"]);
    let said = Said::of(command.env("HOME", open.path()).env_remove("SUDO_UID"));
    assert_eq!(said.status, Some(2), "{}", said.err);
    assert!(said.err.contains("no container “till”"), "{}", said.err);
    assert!(said.err.contains("another user's"), "{}", said.err);
    let peak = said.usage.peak_bytes;
    assert!(peak < own_peak() + (64 << 20), "{} MiB", peak >> 20);
}

/// A file system of its own, unmounted at the end.
struct ReadOnly(PathBuf);

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn without_a_temporary_place_a_sentence_says_what_helps() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let temporary = home.path("temporary");
    fs::create_dir(&temporary).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "ro,mode=1777", "none"])
        .arg(&temporary)
        .status();
    assert!(mounted.unwrap().success());
    let place = ReadOnly(temporary);
    let said = |words: &[&str]| Said::of(home.command(words).env("TMPDIR", &place.0));
    let run = said(&["run", "clock.gettime", "--budget", "0.1", "--quiet"]);
    assert_eq!(run.status, Some(3), "{}", run.err);
    let names_it = run.err.contains(place.0.to_str().unwrap());
    assert!(
        run.err.lines().count() == 1 && names_it && run.err.contains("TMPDIR"),
        "{}",
        run.err
    );
    // What only reads needs no such place.
    said(&["archive", "list"]).lived();
    fs::create_dir(home.path("site")).unwrap();
    let made = said(&["site", "import", "site", "odb"]);
    assert_eq!(made.status, Some(0), "{}", made.err);
}

#[test]
fn a_record_of_a_gigabyte_is_refused_unread() {
    let home = Home::new();
    let long = home.path("runs/20260101T000000Z-00000000.json");
    fs::File::create(&long).unwrap().set_len(1 << 30).unwrap();
    let long = long.to_str().unwrap();
    for words in [
        &["show", long][..],
        &["compare", long, long],
        &["report", long, "-o", "page.html"],
        &["archive", "import", long],
        &["archive", "verify"],
        &["archive", "list"],
    ] {
        let said = home.says(words);
        said.lived();
        let told = said.err + &String::from_utf8_lossy(&said.out);
        assert!(told.contains("1073741824"), "{words:?}: {told}");
        let peak = said.usage.peak_bytes;
        assert!(peak < own_peak() + (64 << 20), "{words:?}: {peak}");
    }
}
