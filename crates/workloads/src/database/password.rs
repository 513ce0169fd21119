//! Where the password of a user's own server comes from when the address holds none, which is better: whoever may list
//! processes sees the words of a command.
//!
//! In this order: `password_file=PATH`; the variable that the server's own clients take (`MYSQL_PWD`, `PGPASSWORD`,
//! `REDISCLI_AUTH`); their usual file (`~/.my.cnf`; `PGPASSFILE` or `~/.pgpass`; Redis' clients have none).

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fingerpost_record::Secret;

use crate::WorkloadError::{self, Setting};
use crate::database::connection::{Login, Protocol};
use crate::database::stream::Address;

/// More than any file of passwords has.
const LARGEST: u64 = 1 << 20;

/// What is looked at besides the settings.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// `MYSQL_PWD`.
    pub mysql: Option<Secret>,
    /// `PGPASSWORD`.
    pub postgres: Option<Secret>,
    /// `REDISCLI_AUTH`.
    pub redis: Option<Secret>,
    /// `PGPASSFILE`.
    pub postgres_file: Option<PathBuf>,
    /// The user's home.
    pub home: Option<PathBuf>,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Surroundings {
        let secret = |name: &str| std::env::var(name).ok().map(Secret::new);
        let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
        Surroundings {
            mysql: secret("MYSQL_PWD"),
            postgres: secret("PGPASSWORD"),
            redis: secret("REDISCLI_AUTH"),
            postgres_file: path("PGPASSFILE"),
            home: path("HOME"),
        }
    }
}

/// The password of a login, if there is one anywhere.
///
/// # Errors
/// The file that the user named cannot be read.
pub fn find(
    protocol: Protocol,
    login: &Login,
    file: Option<&Path>,
    around: &Surroundings,
) -> Result<Option<Secret>, WorkloadError> {
    if login.password.is_some() {
        if file.is_some() {
            return Err(Setting(
                "the url holds a password and password_file= is set, too; leave one out".to_owned(),
            ));
        }
        return Ok(login.password.clone());
    }
    if let Some(file) = file {
        let wrong = |why: String| Setting(format!("password_file={}: {why}", file.display()));
        let (text, _) = read(file).map_err(|e| wrong(e.to_string()))?;
        let line = text.lines().next().filter(|line| !line.is_empty());
        return line
            .map(|line| Some(Secret::new(line)))
            .ok_or_else(|| wrong("its first line is empty".to_owned()));
    }
    Ok(match protocol {
        Protocol::MySql => around.mysql.clone().or_else(|| {
            let (text, _) = read(&around.home.as_ref()?.join(".my.cnf")).ok()?;
            in_option_file(&text).map(Secret::new)
        }),
        Protocol::Redis => around.redis.clone(),
        Protocol::Postgres => around.postgres.clone().or_else(|| {
            let usual = || around.home.as_ref().map(|home| home.join(".pgpass"));
            // As the server's own clients do, a file that others can read is left aside.
            let (text, mode) = read(&around.postgres_file.clone().or_else(usual)?).ok()?;
            if mode & 0o077 == 0 {
                in_pass_file(&text, login).map(Secret::new)
            } else {
                None
            }
        }),
    })
}

/// A file's text and mode.
fn read(path: &Path) -> std::io::Result<(String, u32)> {
    let file = File::open(path)?;
    let mode = file.metadata()?.mode();
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text)?;
    Ok((text, mode))
}

/// The last `password=` of the section `[client]`, as MySQL's clients read it.
fn in_option_file(text: &str) -> Option<String> {
    let (mut ours, mut found) = (false, None);
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            ours = line == "[client]";
        } else if let Some((_, value)) = line
            .split_once('=')
            .filter(|(key, _)| ours && key.trim() == "password")
        {
            let value = value.trim();
            let bare = ['"', '\'']
                .iter()
                .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote))
                .unwrap_or(value);
            found = Some(bare.to_owned());
        }
    }
    found
}

/// The password of the first line `host:port:database:user:password` that fits; `*` fits all, and `\\` makes the next
/// character ordinary.
fn in_pass_file(text: &str, login: &Login) -> Option<String> {
    let (host, port) = match &login.address {
        Address::Tcp(host, port) => (host.clone(), port.to_string()),
        Address::Unix(_) | Address::Private(..) => ("localhost".to_owned(), "5432".to_owned()),
    };
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let fields = fields(line);
            let [h, p, d, u, password] = fields.as_slice() else {
                return None;
            };
            let fits = |field: &str, value: &str| field == "*" || field == value;
            let all = fits(h, &host)
                && fits(p, &port)
                && fits(u, &login.user)
                && fits(d, &login.database);
            all.then(|| password.clone())
        })
}

fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut last) = (Vec::new(), String::new());
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            // The fifth is the last: a password may have a colon.
            ':' if fields.len() < 4 => fields.push(std::mem::take(&mut last)),
            '\\' => last.extend(characters.next()),
            _ => last.push(c),
        }
    }
    fields.push(last);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn login(url: &str) -> (Protocol, Login) {
        crate::database::url::parse(url).unwrap()
    }

    fn found(url: &str, file: Option<&Path>, around: &Surroundings) -> Option<String> {
        let (protocol, login) = login(url);
        find(protocol, &login, file, around)
            .unwrap()
            .map(|secret| secret.reveal().to_owned())
    }

    #[test]
    fn every_source_in_its_order() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own");
        std::fs::write(&own, "from file\nmore\n").unwrap();
        std::fs::write(
            dir.path().join(".my.cnf"),
            "[mysqld]\npassword=no\n[client]\nuser=x\npassword = \"from cnf\"\n",
        )
        .unwrap();
        let pass = dir.path().join(".pgpass");
        std::fs::write(
            &pass,
            "# x\nother:*:*:*:no\nh:5432:*:postgres:from\\:pgpass\n",
        )
        .unwrap();
        std::fs::set_permissions(&pass, PermissionsExt::from_mode(0o600)).unwrap();
        let mut around = Surroundings {
            home: Some(dir.path().into()),
            ..Surroundings::default()
        };
        assert_eq!(
            found("mysql://root@h/x", None, &around).as_deref(),
            Some("from cnf")
        );
        assert_eq!(
            found("postgres://h/x", None, &around).as_deref(),
            Some("from:pgpass")
        );
        assert_eq!(found("postgres://elsewhere/x", None, &around), None);
        std::fs::set_permissions(&pass, PermissionsExt::from_mode(0o640)).unwrap();
        assert_eq!(
            found("postgres://h/x", None, &around),
            None,
            "a file that others can read is left aside"
        );
        around.mysql = Some(Secret::new("from variable"));
        assert_eq!(
            found("mysql://h/x", None, &around).as_deref(),
            Some("from variable")
        );
        assert_eq!(
            found("mysql://h/x", Some(&own), &around).as_deref(),
            Some("from file")
        );
        assert_eq!(
            found("mysql://u:from-url@h/x", None, &around).as_deref(),
            Some("from-url")
        );
    }

    #[test]
    fn an_unreadable_or_contradicting_file_is_told() {
        let around = Surroundings::default();
        let (protocol, plain) = login("mysql://u@h/x");
        let missing = find(protocol, &plain, Some(Path::new("/nonexistent/p")), &around)
            .unwrap_err()
            .to_string();
        assert!(
            missing.contains("password_file=/nonexistent/p"),
            "{missing}"
        );
        let (protocol, full) = login("mysql://u:hunter2@h/x");
        let both = find(protocol, &full, Some(Path::new("/nonexistent/p")), &around)
            .unwrap_err()
            .to_string();
        assert!(
            both.contains("leave one out") && !both.contains("hunter2"),
            "{both}"
        );
    }
}
