//! Files of the object database from elsewhere, and websites served from hostile directories.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::support::{DEADLINE, binary, is_root};
use super::usage::wait_usage;

const ENGINES: [&str; 3] = ["lmdb", "sqlite", "redb"];
/// A user that owns nothing of ours.
const NOBODY: u32 = 65_534;

fn site(args: &[&dyn AsRef<std::ffi::OsStr>]) -> Command {
    let mut command = Command::new(binary());
    command.arg("site").stdin(Stdio::null());
    for a in args {
        command.arg(a);
    }
    command
}

fn ended(args: &[&dyn AsRef<std::ffi::OsStr>]) -> Output {
    site(args).output().unwrap()
}

/// One sentence and exit status 2.
#[track_caller]
fn refused(output: &Output, word: &str) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{:?}: {told}", output.status);
    assert!(
        told.starts_with("fingerpost: ") && told.lines().count() == 1 && told.contains(word),
        "{told}"
    );
}

/// A server that ends with the test.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(from: &Path, more: &[&str]) -> Server {
        let mut child = site(&[&"serve", &"--from", &from])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line
            .trim_end()
            .trim_end_matches('/')
            .rsplit(':')
            .next()
            .unwrap()
            .parse()
            .expect(&line);
        Server { child, port }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    /// The status and the body.
    fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let mut stream = self.connect();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        let end = all.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        (
            String::from_utf8_lossy(&all[9..12]).parse().unwrap(),
            all[end + 4..].to_vec(),
        )
    }

    /// Memory of its own, in MiB, of the server's processes.
    fn memory(&self) -> u64 {
        let pid = self.child.id();
        let inner =
            fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let pids = inner
            .split_whitespace()
            .map(str::to_owned)
            .chain([pid.to_string()]);
        let of = |pid: String| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let line = status
                .lines()
                .find_map(|l| l.strip_prefix("RssAnon:"))
                .unwrap()
                .trim()
                .trim_end_matches(" kB")
                .to_owned();
            line.parse::<u64>().unwrap() >> 10
        };
        pids.map(of).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_served_directory_leads_nowhere_else() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("srv");
    fs::create_dir_all(dir.join(".git")).unwrap();
    fs::create_dir(dir.join("sub")).unwrap();
    fs::write(dir.join(".git/config"), "hidden").unwrap();
    fs::write(dir.join("sub/page"), "page").unwrap();
    fs::write(base.path().join("secret"), "secret").unwrap();
    symlink("/", dir.join("root")).unwrap();
    symlink("..", dir.join("up")).unwrap();
    symlink("sub", dir.join("inside")).unwrap();
    fifo(&dir.join("fifo"));
    let secret = format!("/root{}/secret", base.path().display());
    let long = format!("/{}", "a/".repeat(4000));
    for (more, inside) in [(&[][..], 404), (&["--follow-links"][..], 200)] {
        let server = Server::start(&dir, more);
        assert_eq!(server.get("/sub/page"), (200, b"page".to_vec()));
        for path in [
            &secret,
            "/up/secret",
            "/fifo",
            "/.git/config",
            "/%2egit/config",
            "/sub/%2e%2e/%2e%2e/secret",
            "/sub%00/page",
            &long,
        ] {
            assert_eq!(server.get(path).0, 404, "{path} {more:?}");
        }
        assert_eq!(server.get("/inside/page").0, inside);
    }
}

#[test]
fn silent_connections_delay_nobody() {
    let base = tempfile::tempdir().unwrap();
    fs::write(base.path().join("page"), "page").unwrap();
    let server = Server::start(base.path(), &[]);
    let silent: Vec<TcpStream> = (0..400).map(|_| server.connect()).collect();
    let began = Instant::now();
    assert_eq!(server.get("/page"), (200, b"page".to_vec()));
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    drop(silent);
}

/// Twelve readers that have begun to read and then wait.
#[test]
fn large_bodies_are_not_held_in_memory() {
    const SIZE: u64 = 48 << 20;
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("srv");
    fs::create_dir(&dir).unwrap();
    File::create(dir.join("large"))
        .unwrap()
        .set_len(SIZE)
        .unwrap();
    for from in ["srv", "lmdb", "sqlite", "redb"] {
        let file = base.path().join(from);
        if from != "srv" {
            assert!(
                ended(&[&"import", &dir, &file, &"--store", &from])
                    .status
                    .success()
            );
        }
        let server = Server::start(&file, &[]);
        let mut readers: Vec<TcpStream> = (0..12).map(|_| server.connect()).collect();
        for reader in &mut readers {
            write!(
                reader,
                "GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )
            .unwrap();
        }
        readers
            .iter_mut()
            .for_each(|r| r.read_exact(&mut [0; 1000]).unwrap());
        // redb's cache holds the value once, for all of them; its check has read it, too.
        let most = if from == "redb" {
            64 + 3 * (SIZE >> 20)
        } else {
            64
        };
        let memory = server.memory();
        assert!(memory <= most, "{from}: {memory} MiB");
        let rest = std::io::copy(&mut readers.remove(0), &mut std::io::sink()).unwrap();
        assert!(rest > SIZE - 1000, "{from}: {rest}");
    }
}

#[test]
fn an_import_reads_ahead_so_many_bytes_and_no_more() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    fs::create_dir(&dir).unwrap();
    for i in 0..30 {
        File::create(dir.join(i.to_string()))
            .unwrap()
            .set_len(16 << 20)
            .unwrap();
    }
    let mut child = site(&[
        &"import",
        &dir,
        &base.path().join("odb"),
        &"--store",
        &"sqlite",
    ])
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    let (status, usage) = wait_usage(&child, Instant::now() + DEADLINE)
        .unwrap()
        .expect("it ends");
    // It is gone already; this says so.
    let _ = child.wait();
    assert!(status.success());
    assert!(
        usage.peak_bytes < 256 << 20,
        "{} MiB",
        usage.peak_bytes >> 20
    );
}

/// A small file system of its own, unmounted at the end.
struct Small(PathBuf);

impl Small {
    fn mount(at: PathBuf, size: &str) -> Small {
        fs::create_dir(&at).unwrap();
        let mounted = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("mode=755,size={size}"),
                "none",
            ])
            .arg(&at)
            .status()
            .unwrap();
        assert!(mounted.success());
        Small(at)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_a_sentence_and_leaves_nothing() {
    if !is_root() {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    fs::create_dir(&dir).unwrap();
    for i in 0..200 {
        fs::write(dir.join(i.to_string()), vec![b'x'; 50_000]).unwrap();
    }
    for (number, size) in ["4k", "16k", "64k", "256k", "4m"].into_iter().enumerate() {
        let small = Small::mount(base.path().join(number.to_string()), size);
        for engine in ENGINES {
            refused(
                &ended(&[&"import", &dir, &small.0.join("odb"), &"--store", &engine]),
                "odb",
            );
            assert_eq!(
                fs::read_dir(&small.0).unwrap().count(),
                0,
                "{engine} {size}"
            );
        }
    }
    // A finished database on a disk that is full: there is no room for the file of locks.
    let file = base.path().join("odb");
    fs::remove_dir_all(&dir).unwrap();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("page"), "page").unwrap();
    assert!(ended(&[&"import", &dir, &file]).status.success());
    let small = Small::mount(base.path().join("full"), "128k");
    fs::copy(&file, small.0.join("odb")).unwrap();
    let mut filler = File::create(small.0.join("filler")).unwrap();
    while filler.write_all(&[1; 4096]).is_ok() {}
    refused(&ended(&[&"get", &small.0.join("odb"), &"page"]), "No space");
}

fn imported(base: &Path, engine: &str) -> PathBuf {
    let (dir, file) = (base.join(format!("{engine}-site")), base.join(engine));
    fs::create_dir_all(dir.join("table")).unwrap();
    fs::write(dir.join("table/page"), "page").unwrap();
    assert!(
        ended(&[&"import", &dir, &file, &"--store", &engine])
            .status
            .success()
    );
    file
}

#[test]
fn what_is_whole_is_verified_and_what_is_cut_short_is_not() {
    let base = tempfile::tempdir().unwrap();
    for engine in ENGINES {
        let file = imported(base.path(), engine);
        let verified = ended(&[&"verify", &file]);
        assert!(
            verified.status.success()
                && String::from_utf8_lossy(&verified.stdout)
                    .contains("1 cells in 2 tables, 4 bytes")
        );
        File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(5000)
            .unwrap();
        refused(&ended(&[&"verify", &file]), "");
    }
    let pipe = base.path().join("fifo");
    fifo(&pipe);
    refused(&ended(&[&"ls", &pipe]), "no object database");
}

#[test]
fn a_strangers_lmdb_file_is_not_opened_unasked() {
    if !is_root() {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    for engine in ENGINES {
        let file = imported(base.path(), engine);
        std::os::unix::fs::chown(&file, Some(NOBODY), None).unwrap();
        let listed = ended(&[&"ls", &file]);
        match engine {
            "lmdb" => refused(&listed, "--trust"),
            _ => assert!(
                listed.status.success(),
                "{engine}: {}",
                String::from_utf8_lossy(&listed.stderr)
            ),
        }
        refused(&ended(&[&"put", &file, &"x", &"/dev/null"]), "--trust");
        assert!(ended(&[&"verify", &file]).status.success());
        assert!(ended(&[&"ls", &"--trust", &file]).status.success());
    }
}

/// In a directory such as `/tmp` anybody can put a link where an engine keeps a further file.
#[test]
fn no_link_beside_a_database_is_written_through() {
    let base = tempfile::tempdir().unwrap();
    let open = base.path().join("tmp");
    fs::create_dir(&open).unwrap();
    let file = imported(&open, "lmdb");
    let victim = base.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    for mode in [0o1777, 0o755] {
        fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
        let lock = open.join("lmdb-lock");
        let _ = fs::remove_file(&lock);
        symlink(&victim, &lock).unwrap();
        let _ = ended(&[&"ls", &file]);
        let _ = ended(&[&"put", &file, &"x", &"/dev/null"]);
        assert_eq!(fs::read(&victim).unwrap(), b"precious", "{mode:o}");
    }
}
