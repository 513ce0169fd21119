//! Where a private server lives, laid out so that root touches nothing that the server's user could have replaced.
//!
//! ```text
//! NAME/            ours; the server's user can pass through, and neither write nor list
//! ├─ output        what the server says: opened before it starts, passed as descriptors, read through the
//! │                same descriptor
//! ├─ server.conf   what it is configured by: ours, readable
//! └─ data, run …   the server's own: handed over once, while empty; from then on only the server opens anything in it
//! ```
//!
//! An account such as `www-data` runs other programs too, and a private server may itself be made to misbehave. Whoever
//! can write to a directory can put a symbolic link where root is about to open, write or chown a file; so root does
//! none of that in there. It removes the directory at the end, which follows no link.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fingerpost_record::secret;
use fingerpost_undo::scratch;
use rustix::fs::{Mode, OFlags};

/// As much of what a server said last is looked at; it may write without end.
const TOLD: u64 = 64 << 10;

/// The account that a server runs as when we are root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user.
    pub uid: u32,
    /// The user's group.
    pub gid: u32,
}

impl Account {
    /// `nobody` and `nogroup` on every Linux.
    pub const NOBODY: Account = Account {
        uid: 65_534,
        gid: 65_534,
    };

    /// The first of these users that the system has, else nobody; nothing when we are not root and a server runs as
    /// ourselves.
    pub fn for_server(names: &[&str]) -> Option<Account> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        Some(Account::find(&passwd, names).unwrap_or(Account::NOBODY))
    }

    /// The first of these users in a `passwd` that is not root. It is read as a file, because a static program cannot
    /// ask the name service.
    fn find(passwd: &str, names: &[&str]) -> Option<Account> {
        names.iter().find_map(|name| {
            let line = passwd
                .lines()
                .find(|line| line.split(':').next() == Some(name))?;
            let mut fields = line.split(':').skip(2);
            let (uid, gid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            (uid != 0).then_some(Account { uid, gid })
        })
    }
}

/// The directory of one private server.
#[derive(Debug)]
pub struct ServerDir {
    /// Where it is.
    pub(crate) path: PathBuf,
    output: File,
    /// The account that the server runs as.
    pub(crate) account: Option<Account>,
}

impl ServerDir {
    /// Makes it; nothing of this name may exist. Servers that are started in it run as `account`, if there is one.
    ///
    /// # Errors
    /// The system's.
    pub fn make(base: PathBuf, account: Option<Account>) -> io::Result<ServerDir> {
        make_passable(&base)?;
        let file = base.join("output");
        let output = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(file)?;
        // Apache opens its log by path and by itself. The file can be written and no more: its directory is ours.
        give(&output, account)?;
        Ok(ServerDir {
            path: base,
            output,
            account,
        })
    }

    /// The file that takes what the server says.
    pub fn output_path(&self) -> PathBuf {
        self.path.join("output")
    }

    /// Makes a directory of the server's own and hands it over, empty.
    ///
    /// # Errors
    /// The system's.
    pub fn hand_over(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        hand_over(&path, self.account)?;
        Ok(path)
    }

    /// Writes a file that the server can read and not change.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        write_readable(&path, content)?;
        Ok(path)
    }

    /// Sets up a command to run as the server's account: in this directory, with its output here, with `run` as its
    /// home and for its temporary files, and without what the user has set for servers, clients and passwords of their
    /// own.
    ///
    /// # Errors
    /// No further descriptor can be had.
    pub fn set_up(&self, command: &mut Command, run: &Path) -> io::Result<()> {
        let (out, err) = (self.output.try_clone()?, self.output.try_clone()?);
        command
            .current_dir(&self.path)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err);
        for (name, _) in std::env::vars_os() {
            let is_foreign = |n: &str| {
                FOREIGN.split(' ').any(|foreign| foreign == n) || secret::is_secret_name(n)
            };
            if name.to_str().is_some_and(is_foreign) {
                command.env_remove(&name);
            }
        }
        command
            .env("HOME", run)
            .env("TMPDIR", run)
            .env("TMP", run)
            .env("TEMP", run)
            .env("LC_ALL", "C");
        if let Some(Account { uid, gid }) = self.account {
            scratch::drop_privileges(command, uid, gid);
        }
        Ok(())
    }

    /// The end of what the server said, read through the descriptor that was opened before it started.
    pub fn told(&self) -> String {
        tail(&self.output)
    }
}

/// Variables that direct servers and their tools to places of the user's own.
const FOREIGN: &str = "PGDATA PGHOST PGPORT PGOPTIONS PGSERVICE PGSERVICEFILE MYSQL_HOME MYSQL_UNIX_PORT \
    XDG_RUNTIME_DIR NGINX";

/// The end of a file that others may be writing to.
pub fn tail(file: &File) -> String {
    let length = file.metadata().map_or(0, |meta| meta.len());
    let start = length.saturating_sub(TOLD);
    let mut bytes = vec![0; (length - start) as usize];
    let read = file.read_at(&mut bytes, start).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

/// Makes a directory that others can pass through, whatever the umask is.
///
/// # Errors
/// The system's; also when something of this name exists.
pub fn make_passable(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o711).create(path)?;
    open_directory(path)?.set_permissions(Permissions::from_mode(0o711))
}

/// Makes a directory that is the account's own from its first moment on, and empty. Its parent must be a directory of
/// ours.
///
/// # Errors
/// The system's; also when something of this name exists.
pub fn hand_over(path: &Path, account: Option<Account>) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    give(&open_directory(path)?, account)
}

/// Writes a new file of ours that others can read, whatever the umask is.
///
/// # Errors
/// The system's; also when something of this name exists.
pub fn write_readable(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)?;
    file.write_all(content)?;
    file.set_permissions(Permissions::from_mode(0o644))
}

fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// By descriptor: what was just made is given away, and not what has this name by now.
fn give(file: &File, account: Option<Account>) -> io::Result<()> {
    match account {
        Some(Account { uid, gid }) => fchown(file, Some(uid), Some(gid)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn an_account_is_found_by_its_whole_name_and_root_is_none() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nfake:x:0:5::/:/bin/sh\nmysql2:x:1:1::/:x\n\
            mysql:x:106:111::/nonexistent:/bin/false\nnobody:x:65534:65534::/:\n";
        assert_eq!(
            Account::find(passwd, &["mysql", "nobody"]),
            Some(Account { uid: 106, gid: 111 })
        );
        assert_eq!(
            Account::find(passwd, &["postgres", "nobody"]),
            Some(Account::NOBODY)
        );
        assert_eq!(Account::find(passwd, &["fake", "root", "my"]), None);
    }

    #[test]
    fn what_a_server_says_is_read_from_its_end() {
        let base = tempfile::tempdir().unwrap();
        let dir = ServerDir::make(base.path().join("x"), None).unwrap();
        let run = dir.hand_over("run").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo \"$TMPDIR\"; echo \"[$PGPASSWORD]\" >&2"]);
        dir.set_up(&mut command, &run).unwrap();
        assert!(command.status().unwrap().success());
        assert_eq!(dir.told(), format!("{}\n[]\n", run.display()));
        fs::write(dir.output_path(), "x".repeat(100_000) + "end").unwrap();
        assert_eq!(dir.told().len() as u64, TOLD);
        assert!(dir.told().ends_with("xend"));
    }

    #[test]
    fn directories_and_files_have_the_modes_that_a_server_needs() {
        let base = tempfile::tempdir().unwrap();
        let dir = ServerDir::make(base.path().join("x"), None).unwrap();
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&dir.path), 0o711);
        assert_eq!(mode(&dir.hand_over("data").unwrap()), 0o700);
        assert_eq!(mode(&dir.write("conf", b"x").unwrap()), 0o644);
        assert_eq!(mode(&dir.output_path()), 0o600);
        assert!(
            dir.hand_over("data").is_err() && dir.write("conf", b"y").is_err(),
            "what exists is never handed over or overwritten"
        );
    }
}
