//! Servers that are installed here, started for one run: own data directory, a Unix socket, no TCP, gone at the end.

pub mod mariadb;
pub mod postgresql;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fingerpost_sys::child;
use fingerpost_undo::scratch::{Scratch, Server};

use crate::WorkloadError::{self, Failed};
use crate::database::connection::{QueryError, Target};
use crate::database::open::open;
use crate::database::options::Options;
use crate::database::stream::Address;
use crate::server_dir::{Account, ServerDir};

/// How long making a data directory may take.
const INIT_DEADLINE: Duration = Duration::from_secs(120);
/// How long a server may take until it answers.
const READY_DEADLINE: Duration = Duration::from_secs(60);
/// What `sun_path` holds, with the zero at its end.
const LONGEST_SOCKET_PATH: usize = 107;

/// The article's clients and some to spare, and PostgreSQL's own default.
const MOST_CONNECTIONS: usize = 100;

/// The programs of an installation.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) server: PathBuf,
    /// What makes a data directory.
    pub(crate) install: PathBuf,
}

/// How many connections a server is to take.
fn most_connections(options: &Options) -> usize {
    MOST_CONNECTIONS.max(options.clients.iter().copied().max().unwrap_or(0) + 10)
}

/// The words of a command.
pub(crate) fn words<'a>(
    program: &Path,
    args: impl IntoIterator<Item = &'a &'a str>,
) -> Vec<OsString> {
    std::iter::once(program.into())
        .chain(args.into_iter().map(OsString::from))
        .collect()
}

/// A private server that answers.
#[derive(Debug)]
pub struct Private {
    /// Its process.
    pub server: Server,
    /// How to connect.
    pub target: Target,
    /// How to start it again.
    pub restart: Restart,
}

/// A private server's directory and command.
#[derive(Debug)]
pub struct Restart {
    home: Home,
    what: &'static str,
    words: Vec<OsString>,
    /// The signal that ends it in good order, as soon as it can.
    end: i32,
}

impl Restart {
    /// Starts the server, and waits until `answers` has an answer.
    pub(crate) fn serve(
        &self,
        scratch: &mut Scratch,
        answers: impl FnMut() -> Result<(), QueryError>,
    ) -> Result<Server, WorkloadError> {
        self.home
            .serve(scratch, self.what, self.home.command(&self.words)?, answers)
    }

    /// Ends the server in good order and starts it again, with the data that it has.
    ///
    /// # Errors
    /// It does not end in time, or does not serve again.
    pub fn again(
        &self,
        mut server: Server,
        target: &Target,
        scratch: &mut Scratch,
    ) -> Result<Server, WorkloadError> {
        let failed =
            |e: &dyn std::fmt::Display| Failed(format!("{} could not be ended: {e}", self.what));
        child::signal(server.pid(), self.end).map_err(|e| failed(&e))?;
        let ended = child::wait_deadline(&mut server.child, Instant::now() + READY_DEADLINE)
            .map_err(|e| failed(&e))?;
        scratch.stop(server).map_err(|e| failed(&e))?;
        if ended.is_none() {
            return Err(failed(&format!(
                "it was still there after {} s",
                READY_DEADLINE.as_secs()
            )));
        }
        self.serve(scratch, || open(target).map(drop))
    }
}

/// A server's directory, what in it is the server's own, and the commands that run in it.
#[derive(Debug)]
pub(crate) struct Home {
    /// Where it lives.
    pub(crate) dir: ServerDir,
    /// The data, which the server's own installer makes there.
    pub(crate) data: PathBuf,
    /// Socket, pid file, temporary files: nothing of them where another server has its own.
    pub(crate) run: PathBuf,
}

impl Home {
    /// Makes the directories. What is the server's own, its user and root alone can enter: whoever reaches the socket
    /// needs no password.
    pub(crate) fn make(dir: PathBuf, users: &[&str]) -> Result<Home, WorkloadError> {
        let shown = dir.display().to_string();
        let make = || {
            let dir = ServerDir::make(dir, Account::for_server(users))?;
            Ok(Home {
                data: dir.hand_over("data")?,
                run: dir.hand_over("run")?,
                dir,
            })
        };
        make().map_err(|e: std::io::Error| {
            Failed(format!("cannot make the server's directory {shown}: {e}"))
        })
    }

    /// Where a socket of this name is, when the system can take so long a path, and whose server listens there.
    pub(crate) fn socket(&self, name: &str) -> Result<Address, WorkloadError> {
        let path = self.run.join(name);
        if path.as_os_str().len() > LONGEST_SOCKET_PATH {
            let sentence = format!(
                "the path of the server's socket is too long ({}); set TMPDIR or dir= to a shorter one",
                path.display()
            );
            return Err(WorkloadError::Setting(sentence));
        }
        let uid = self
            .dir
            .account
            .map_or(rustix::process::geteuid().as_raw(), |account| account.uid);
        Ok(Address::Private(path, uid))
    }

    /// A command as the server's user, with its output in the log.
    pub(crate) fn command(&self, words: &[OsString]) -> Result<Command, WorkloadError> {
        let (first, rest) = words
            .split_first()
            .ok_or_else(|| Failed("an empty command".to_owned()))?;
        let mut command = Command::new(first);
        command.args(rest);
        self.dir
            .set_up(&mut command, &self.run)
            .map_err(|e| Failed(format!("no descriptor can be had: {e}")))?;
        Ok(command)
    }

    /// The line of the log that says what went wrong, for an error.
    fn last_words(&self) -> String {
        telling_line(&self.dir.told())
    }

    /// Runs a command to its end.
    pub(crate) fn run(
        &self,
        scratch: &mut Scratch,
        what: &str,
        mut command: Command,
    ) -> Result<(), WorkloadError> {
        let failed = |e: &dyn std::fmt::Display| Failed(format!("{what} could not be run: {e}"));
        let mut running = scratch.spawn(&mut command).map_err(|e| failed(&e))?;
        let status = child::wait_deadline(&mut running.child, Instant::now() + INIT_DEADLINE)
            .map_err(|e| failed(&e))?;
        scratch.stop(running).map_err(|e| failed(&e))?;
        match status {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(Failed(format!(
                "{what} failed ({status}): {}",
                self.last_words()
            ))),
            None => Err(Failed(format!(
                "{what} did not end within {} s",
                INIT_DEADLINE.as_secs()
            ))),
        }
    }

    /// Starts a server, behind the user's words if there are any, and waits until `answers` has an answer.
    pub(crate) fn serve(
        &self,
        scratch: &mut Scratch,
        what: &str,
        mut command: Command,
        mut answers: impl FnMut() -> Result<(), QueryError>,
    ) -> Result<Server, WorkloadError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut server = scratch
            .spawn(&mut command)
            .map_err(|e| Failed(format!("{what} could not be started ({program}): {e}")))?;
        let deadline = Instant::now() + READY_DEADLINE;
        let problem = loop {
            match answers() {
                Ok(()) => return Ok(server),
                Err(_) if Instant::now() < deadline => {}
                Err(e) => {
                    break format!(
                        "{what} did not answer within {} s ({e}): {}",
                        READY_DEADLINE.as_secs(),
                        self.last_words()
                    );
                }
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                break format!(
                    "{what} ended instead of serving ({status}): {}",
                    self.last_words()
                );
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let _ = scratch.stop(server);
        Err(Failed(problem))
    }
}

/// The first line that names an error, because others follow from it; else the last line.
fn telling_line(log: &str) -> String {
    let lines = || log.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines()
        .find(|line| line.contains("ERROR") || line.contains("FATAL") || line.contains("PANIC"));
    error
        .or_else(|| lines().next_back())
        .unwrap_or("it left no word in its log")
        .chars()
        .take(400)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_tells_is_the_error() {
        let log = "starting\n[ERROR] unknown variable 'x=1'\n[ERROR] Aborting\n\n";
        assert_eq!(telling_line(log), "[ERROR] unknown variable 'x=1'");
        assert_eq!(telling_line("a\nb\n"), "b");
        assert_eq!(telling_line(""), "it left no word in its log");
    }

    #[test]
    fn a_socket_path_that_is_too_long_is_told() {
        let base = tempfile::tempdir().unwrap();
        let home = Home::make(base.path().join("x".repeat(100)), &["nobody"]).unwrap();
        assert!(
            home.socket("server.sock")
                .unwrap_err()
                .to_string()
                .contains("too long")
        );
    }
}
