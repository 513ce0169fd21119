//! Servers that are installed here, started for one run: own data directory, a Unix socket, no TCP, gone at the end.

pub mod mariadb;
pub mod postgresql;

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fingerpost_sys::child;
use fingerpost_sys::scratch::{self, Scratch, Server};

use crate::WorkloadError;
use crate::database::connection::{QueryError, Target};

/// How long making a data directory may take.
const INIT_DEADLINE: Duration = Duration::from_secs(120);
/// How long a server may take until it answers.
const READY_DEADLINE: Duration = Duration::from_secs(60);
/// What `sun_path` holds, with the zero at its end.
const LONGEST_SOCKET_PATH: usize = 107;

/// A private server that answers.
#[derive(Debug)]
pub struct Private {
    /// Its process.
    pub server: Server,
    /// How to connect.
    pub target: Target,
}

/// Where to look for servers besides PATH: distributions keep them out of users' way.
const USUAL_PLACES: [&str; 6] = ["/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/sbin", "/usr/local/bin", "/usr/local/libexec"];

/// Finds the first of these programs, in PATH, the usual places, and `more` places.
fn find_program(names: &[&str], more: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = more.to_vec();
    places.extend(std::env::split_paths(&path));
    places.extend(USUAL_PLACES.iter().map(PathBuf::from));
    names.iter().find_map(|name| places.iter().map(|place| place.join(name)).find(|file| is_program(file)))
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The user that a server runs as when we are root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct User {
    uid: u32,
    gid: u32,
}

/// The first of these users that the system has. Read from the file, because a static program cannot ask the name service.
fn find_user(passwd: &str, names: &[&str]) -> Option<User> {
    names.iter().find_map(|name| {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        let (uid, gid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (uid != 0).then_some(User { uid, gid })
    })
}

/// A directory of the server's own, and the commands that run in it.
struct Home {
    dir: PathBuf,
    user: Option<User>,
}

impl Home {
    /// Makes the directory, which only the server's user and root can enter: whoever reaches the socket needs no password.
    fn make(dir: PathBuf, users: &[&str]) -> Result<Home, WorkloadError> {
        let failed = |e: std::io::Error| WorkloadError::Failed(format!("cannot make the server's directory {}: {e}", dir.display()));
        DirBuilder::new().mode(0o700).create(&dir).map_err(failed)?;
        let user = find_user(&fs::read_to_string("/etc/passwd").unwrap_or_default(), users);
        if let (true, Some(user)) = (we_are_root(), user) {
            std::os::unix::fs::chown(&dir, Some(user.uid), Some(user.gid)).map_err(failed)?;
        }
        Ok(Home { dir, user })
    }

    /// Where a socket of this name is, when the system can take so long a path.
    fn socket(&self, name: &str) -> Result<PathBuf, WorkloadError> {
        let path = self.dir.join(name);
        if path.as_os_str().len() <= LONGEST_SOCKET_PATH {
            return Ok(path);
        }
        let sentence = format!("the path of the server's socket is too long ({}); set TMPDIR or dir= to a shorter one", path.display());
        Err(WorkloadError::Setting(sentence))
    }

    /// A command in this directory, as this user, with its output in the log.
    fn command(&self, words: &[&std::ffi::OsStr]) -> Result<Command, WorkloadError> {
        let (first, rest) = words.split_first().ok_or_else(|| WorkloadError::Failed("an empty command".to_owned()))?;
        let log = File::options().create(true).append(true).open(self.log());
        let log = log.map_err(|e| WorkloadError::Failed(format!("cannot write {}: {e}", self.log().display())))?;
        let copy = log.try_clone().map_err(|e| WorkloadError::Failed(format!("cannot write {}: {e}", self.log().display())))?;
        let mut command = Command::new(first);
        // What a user has set for servers and clients of their own must not reach ours.
        command.args(rest).current_dir(&self.dir).stdin(Stdio::null()).stdout(log).stderr(copy).env("HOME", &self.dir).env("LC_ALL", "C");
        ["PGDATA", "PGHOST", "PGPORT", "PGOPTIONS", "MYSQL_HOME", "MYSQL_UNIX_PORT"].iter().for_each(|name| {
            command.env_remove(name);
        });
        if let Some(user) = self.user {
            scratch::drop_privileges(&mut command, user.uid, user.gid);
        }
        Ok(command)
    }

    fn log(&self) -> PathBuf {
        self.dir.join("server.log")
    }

    /// The line of the log that says what went wrong, for an error.
    fn last_words(&self) -> String {
        let log = fs::read(self.log()).unwrap_or_default();
        telling_line(&String::from_utf8_lossy(&log))
    }

    /// Runs a command to its end.
    fn run(&self, scratch: &mut Scratch, what: &str, mut command: Command) -> Result<(), WorkloadError> {
        let failed = |e: &dyn std::fmt::Display| WorkloadError::Failed(format!("{what} could not be run: {e}"));
        let mut running = scratch.spawn(&mut command).map_err(|e| failed(&e))?;
        let status = child::wait_deadline(&mut running.child, Instant::now() + INIT_DEADLINE).map_err(|e| failed(&e))?;
        scratch.stop(running).map_err(|e| failed(&e))?;
        match status {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(WorkloadError::Failed(format!("{what} failed ({status}): {}", self.last_words()))),
            None => Err(WorkloadError::Failed(format!("{what} did not end within {} s", INIT_DEADLINE.as_secs()))),
        }
    }

    /// Starts a server, behind the user's words if there are any, and waits until `answers` has an answer.
    fn serve(
        &self,
        scratch: &mut Scratch,
        what: &str,
        mut command: Command,
        mut answers: impl FnMut() -> Result<(), QueryError>,
    ) -> Result<Server, WorkloadError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut server =
            scratch.spawn(&mut command).map_err(|e| WorkloadError::Failed(format!("{what} could not be started ({program}): {e}")))?;
        let deadline = Instant::now() + READY_DEADLINE;
        let problem = loop {
            match answers() {
                Ok(()) => return Ok(server),
                Err(_) if Instant::now() < deadline => {}
                Err(e) => break format!("{what} did not answer within {} s ({e}): {}", READY_DEADLINE.as_secs(), self.last_words()),
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                break format!("{what} ended instead of serving ({status}): {}", self.last_words());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let _ = scratch.stop(server);
        Err(WorkloadError::Failed(problem))
    }
}

fn we_are_root() -> bool {
    // Every process owns its own directory in /proc.
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// The first line that names an error, because others follow from it; else the last line.
fn telling_line(log: &str) -> String {
    let lines = || log.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().find(|line| line.contains("ERROR") || line.contains("FATAL") || line.contains("PANIC"));
    error.or_else(|| lines().next_back()).unwrap_or("it left no word in its log").chars().take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_and_root_is_none() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\nfake:x:0:5::/:/bin/sh\nmysql:x:106:111::/nonexistent:/bin/false\nnobody:x:65534:65534::/:\n";
        assert_eq!(find_user(passwd, &["mysql", "nobody"]), Some(User { uid: 106, gid: 111 }));
        assert_eq!(find_user(passwd, &["postgres", "nobody"]), Some(User { uid: 65534, gid: 65534 }));
        assert_eq!(find_user(passwd, &["fake", "root", "my"]), None);
    }

    #[test]
    fn the_line_that_tells_is_the_error() {
        let log = "starting\n[ERROR] unknown variable 'x=1'\n[ERROR] Aborting\n\n";
        assert_eq!(telling_line(log), "[ERROR] unknown variable 'x=1'");
        assert_eq!(telling_line("a\nb\n"), "b");
        assert_eq!(telling_line(""), "it left no word in its log");
    }

    #[test]
    fn a_socket_path_that_is_too_long_is_told() {
        let home = Home { dir: PathBuf::from("/tmp").join("x".repeat(100)), user: None };
        assert!(home.socket("server.sock").unwrap_err().to_string().contains("too long"));
    }
}
