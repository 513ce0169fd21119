//! What a user may set: which engine, how it is set up, what the users do, how large the site is.

use std::path::PathBuf;

use fingerpost_record::unstated::DIR_FS;
use fingerpost_record::{Param, Params, suggest};

use crate::WorkloadError::{self, Setting};
use crate::database::connection::{Login, Protocol};
use crate::database::mix::Mix;
use crate::database::url;

/// The article's numbers of concurrent clients.
pub const CLIENTS: [usize; 7] = [1, 2, 5, 10, 20, 35, 50];
/// More clients than this are not simulated users any more but a test of the scheduler; servers refuse them by default,
/// too.
const MOST_CLIENTS: usize = 1000;
const LARGEST_SCALE: i64 = 200;
/// Storage engines, the first being the default.
const STORAGE: &[&str] = &["innodb", "myisam", "aria"];

/// Variables of a private server that Fingerpost sets itself, because privacy and cleaning up depend on them.
const OURS: &str = "datadir socket pid-file port bind-address skip-networking user tmpdir skip-grant-tables init-file \
    listen_addresses \
                    unix_socket_directories unix_socket_permissions data_directory hba_file dynamic_shared_memory_type";

/// The database that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// SQLite within the load generator's process. `synchronous` is `full`, `normal` or `off`.
    Sqlite {
        /// `PRAGMA synchronous`.
        synchronous: String,
    },
    /// A private MariaDB server.
    MariaDb {
        /// The storage engine of the tables: `myisam`, `innodb` or `aria`.
        storage: String,
        /// Whether results are kept for the next who asks the same.
        query_cache: bool,
    },
    /// A private PostgreSQL server.
    PostgreSql,
    /// A user's own server.
    Own {
        /// What it speaks.
        protocol: Protocol,
        /// How to log in; its database is made and dropped.
        login: Login,
        /// A file with the password.
        password_file: Option<PathBuf>,
        /// The storage engine of the tables, for MySQL's protocol.
        storage: Option<String>,
    },
}

impl Engine {
    /// The engine's name in parameters.
    pub fn name(&self) -> &'static str {
        match self {
            Engine::Sqlite { .. } => "sqlite",
            Engine::MariaDb { .. } => "mariadb",
            Engine::PostgreSql => Protocol::Postgres.name(),
            Engine::Own { protocol, .. } => protocol.name(),
        }
    }
}

/// Everything that decides about a run of the database workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The database.
    pub engine: Engine,
    /// What users do.
    pub mix: Mix,
    /// Size of the data set, in thousands of members.
    pub scale: u32,
    /// Clients at the same time, one step each.
    pub clients: Vec<usize>,
    /// Further variables of a private server, name and value.
    pub variables: Vec<(String, String)>,
    /// Where to put the data; the scratch directory when there is none.
    pub dir: Option<PathBuf>,
    /// The kind of file system that the directory that the user named is on; nothing where none was named.
    pub dir_fs: Option<String>,
    /// Words before a private server's command.
    pub server_prefix: Vec<String>,
    /// What data and choices are made from.
    pub seed: u64,
    /// The program that is started again as load generator.
    pub program: PathBuf,
}

impl Options {
    /// Reads `--set` values. Every error is a sentence about one of them.
    pub fn from_settings(settings: &Params, seed: u64) -> Result<Options, WorkloadError> {
        let mut variables = Vec::new();
        for (key, value) in settings.iter() {
            if let Some(name) = key.strip_prefix("server.") {
                variables.push((check_variable(name)?, value.to_string()));
            }
        }
        let engine = read_engine(settings)?;
        let redis = engine.name() == "redis";
        let mix = match settings.get("mix") {
            None if redis => Mix::Point,
            None => Mix::default(),
            Some(value) => Mix::parse(&value.to_string())
                .ok_or_else(|| not_one_of("mix", &value.to_string(), "read, write, point"))?,
        };
        if redis && mix != Mix::Point {
            return Err(Setting(format!(
                "mix={}: Redis answers look-ups by key alone; leave it out, or set mix=point",
                mix.as_str()
            )));
        }
        let scale = match settings.get("scale") {
            None => 1,
            Some(Param::Int(n @ 1..=LARGEST_SCALE)) => *n as u32,
            Some(value) => {
                return Err(Setting(format!(
                    "scale={value}: it is a whole number from 1 to {LARGEST_SCALE}"
                )));
            }
        };
        if !variables.is_empty() && !matches!(engine, Engine::MariaDb { .. } | Engine::PostgreSql) {
            return Err(Setting(
                "server.NAME is for the private servers of engine=mariadb and engine=postgresql"
                    .to_owned(),
            ));
        }
        Ok(Options {
            engine,
            mix,
            scale,
            clients: settings
                .get("clients")
                .map_or(Ok(CLIENTS.to_vec()), |value| {
                    read_clients(&value.to_string())
                })?,
            variables,
            dir: settings
                .get("dir")
                .map(|dir| PathBuf::from(dir.to_string())),
            dir_fs: None,
            server_prefix: Vec::new(),
            seed,
            // Found even when the file was replaced meanwhile.
            program: PathBuf::from("/proc/self/exe"),
        })
    }

    /// What every row of this run has in common.
    pub fn params(&self) -> Params {
        let params = Params::new()
            .with("engine", self.engine.name())
            .with("mix", self.mix.as_str());
        let params = match &self.engine {
            Engine::MariaDb {
                storage,
                query_cache,
            } => params
                .with("storage", storage.as_str())
                .with("query_cache", if *query_cache { "on" } else { "off" }),
            Engine::Own {
                storage: Some(storage),
                ..
            } => params.with("storage", storage.as_str()),
            // Records of before do not have it: `record::unstated` adds it to them when they are read.
            Engine::Sqlite { synchronous } => params.with("synchronous", synchronous.as_str()),
            _ => params,
        };
        // Those that were set: what a server has by default it says itself. `-` and `_`, capitals and small letters are
        // the same to servers.
        let params = self.variables.iter().fold(params, |params, (name, value)| {
            params.with(
                &format!("server.{}", name.replace('-', "_").to_lowercase()),
                Param::parse(value),
            )
        });
        let private = !matches!(self.engine, Engine::Own { .. });
        let params = if private {
            crate::behind(params, &self.server_prefix)
        } else {
            params
        };
        let params = self
            .dir_fs
            .iter()
            .fold(params, |params, kind| params.with(DIR_FS, kind.as_str()));
        // Rows of the ordinary size need not say so.
        if self.scale == 1 {
            params
        } else {
            params.with("scale", i64::from(self.scale))
        }
    }
}

fn read_engine(settings: &Params) -> Result<Engine, WorkloadError> {
    let text = |key: &str| settings.get(key).map(Param::to_string);
    let own = text("url").map(|url| url::parse(&url)).transpose()?;
    let name = text("engine");
    let engine = match (own, name.as_deref()) {
        (Some((protocol, login)), asked) => {
            let same = asked.is_none_or(|asked| {
                asked == protocol.name() || (asked == "mariadb" && protocol == Protocol::MySql)
            });
            if !same {
                return Err(Setting(format!(
                    "engine={} and the url's scheme contradict each other; leave one out",
                    asked.unwrap_or_default()
                )));
            }
            let storage = text("storage").filter(|_| protocol == Protocol::MySql);
            let storage = storage
                .map(|s| one_of(Some(s), "storage", STORAGE))
                .transpose()?;
            Engine::Own {
                protocol,
                login,
                password_file: text("password_file").map(PathBuf::from),
                storage,
            }
        }
        (None, None | Some("sqlite")) => Engine::Sqlite {
            synchronous: one_of(
                text("synchronous"),
                "synchronous",
                &["full", "normal", "off"],
            )?,
        },
        (None, Some("mariadb" | "mysql")) => Engine::MariaDb {
            storage: one_of(text("storage"), "storage", STORAGE)?,
            query_cache: one_of(text("query_cache"), "query_cache", &["off", "on"])? == "on",
        },
        (None, Some("postgresql" | "postgres")) => Engine::PostgreSql,
        (None, Some(other)) => {
            return Err(not_one_of("engine", other, "sqlite, mariadb, postgresql"));
        }
    };
    // A setting that would have no effect is a misunderstanding.
    let takes: &[&str] = match &engine {
        Engine::Sqlite { .. } => &["synchronous", "dir"],
        Engine::MariaDb { .. } => &["storage", "query_cache", "dir"],
        Engine::PostgreSql => &["dir"],
        Engine::Own {
            protocol: Protocol::MySql,
            ..
        } => &["storage", "password_file"],
        Engine::Own { .. } => &["password_file"],
    };
    for key in [
        "synchronous",
        "storage",
        "query_cache",
        "dir",
        "password_file",
    ] {
        if settings.get(key).is_some() && !takes.contains(&key) {
            return Err(Setting(no_effect(
                key,
                &engine,
                settings.get("url").is_some(),
            )));
        }
    }
    Ok(engine)
}

/// That a setting is another engine's, and whose.
fn no_effect(key: &str, engine: &Engine, own: bool) -> String {
    let whose = if own {
        "a server of your own"
    } else {
        engine.name()
    };
    let or = match key {
        _ if own => "",
        "synchronous" => ", or set engine=sqlite",
        "storage" | "query_cache" => ", or set engine=mariadb",
        _ => "",
    };
    format!("{key} has no effect with {whose}; leave it out{or}")
}

/// The value of a setting that is one of a few words, the first being the default.
fn one_of(value: Option<String>, key: &str, words: &[&str]) -> Result<String, WorkloadError> {
    let Some(value) = value else {
        return Ok(words[0].to_owned());
    };
    if words.contains(&value.as_str()) {
        Ok(value)
    } else {
        Err(not_one_of(key, &value, &words.join(", ")))
    }
}

fn not_one_of(key: &str, value: &str, words: &str) -> WorkloadError {
    Setting(format!(
        "{key}={value}: it is one of {words}{}",
        suggest::of_listed(value, words)
    ))
}

/// Reads `1,2,5`.
fn read_clients(text: &str) -> Result<Vec<usize>, WorkloadError> {
    let wrong = || {
        Setting(format!(
            "clients={text}: it is a list of whole numbers from 1 to {MOST_CLIENTS}, such as 1,2,5"
        ))
    };
    crate::numbers(text, MOST_CLIENTS).ok_or_else(wrong)
}

/// A variable's name as servers write them, and not one of ours.
fn check_variable(name: &str) -> Result<String, WorkloadError> {
    let plain = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if !plain || name.starts_with('-') {
        return Err(Setting(format!(
            "server.{name}: a variable's name has letters, digits, - and _ only"
        )));
    }
    if OURS.split(' ').any(|ours| {
        ours.replace('-', "_")
            .eq_ignore_ascii_case(&name.replace('-', "_"))
    }) {
        return Err(Setting(format!(
            "server.{name} is set by Fingerpost itself, so that the server is private and can be cleaned up"
        )));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Options, String> {
        let settings = pairs.iter().fold(Params::new(), |p, (key, value)| {
            p.with(key, Param::parse(value))
        });
        Options::from_settings(&settings, 1).map_err(|e| {
            assert!(matches!(e, WorkloadError::Setting(_)));
            e.to_string()
        })
    }

    #[test]
    fn nothing_set_is_sqlite_and_the_articles_clients() {
        let options = read(&[]).unwrap();
        assert_eq!(
            options.params().to_string(),
            "engine=sqlite mix=read synchronous=full"
        );
        assert_eq!(
            read(&[("synchronous", "off")])
                .unwrap()
                .params()
                .text("synchronous"),
            Some("off"),
            "another row"
        );
        assert_eq!(options.clients, CLIENTS);
    }

    #[test]
    fn everything_can_be_set() {
        let options = read(&[
            ("engine", "mariadb"),
            ("storage", "myisam"),
            ("query_cache", "on"),
            ("mix", "write"),
            ("scale", "3"),
            ("clients", "5, 1,5"),
            ("server.Key-buffer-size", "16M"),
        ])
        .unwrap();
        assert_eq!(
            options.params().to_string(),
            "engine=mariadb mix=write query_cache=on scale=3 server.key_buffer_size=16777216 storage=myisam"
        );
        assert_eq!(options.clients, [1, 5]);
        assert_eq!(
            options.variables,
            [("Key-buffer-size".to_owned(), "16777216".to_owned())]
        );
        assert_eq!(read(&[("clients", "7")]).unwrap().clients, [7]);
        assert_eq!(
            read(&[("url", "mysql://h/x"), ("storage", "aria")])
                .unwrap()
                .params()
                .text("storage"),
            Some("aria")
        );
        assert_eq!(
            read(&[("url", "mysql://h/x"), ("engine", "mariadb")])
                .unwrap()
                .engine
                .name(),
            "mysql"
        );
        assert_eq!(
            read(&[("url", "redis://h")]).unwrap().params().to_string(),
            "engine=redis mix=point"
        );
    }

    #[test]
    fn rows_of_a_prefixed_server_or_named_file_system_are_others() {
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let with = |pairs: &[(&str, &str)], prefix: &[&str], fs: Option<&str>| {
            let options = Options {
                server_prefix: words(prefix),
                dir_fs: fs.map(str::to_owned),
                ..read(pairs).unwrap()
            };
            options
                .params()
                .only(|key, _| key.starts_with("server_") || key == DIR_FS)
                .to_string()
        };
        assert_eq!(with(&[], &[], None), "");
        assert_eq!(
            with(&[], &["taskset", "-c", "0"], Some("tmpfs")),
            "dir_fs=tmpfs server_prefix=taskset -c 0"
        );
        let secret = with(
            &[("engine", "mariadb")],
            &["env", "MYSQL_PWD=hunter2"],
            None,
        );
        assert!(
            secret.starts_with("server_prefix=env MYSQL_PWD=") && !secret.contains("hunter2"),
            "{secret}"
        );
        // A server of the user's own is not started by us, and so behind nothing.
        assert_eq!(with(&[("url", "mysql://h/x")], &["nice"], None), "");
    }

    #[test]
    fn what_cannot_be_is_told_in_a_sentence() {
        for (pairs, what) in [
            (
                &[("engine", "oracle")][..],
                "one of sqlite, mariadb, postgresql",
            ),
            (&[("mix", "all")], "one of read, write, point"),
            (&[("scale", "0")], "from 1 to"),
            (&[("scale", "big")], "from 1 to"),
            (&[("clients", "1,zero")], "whole numbers"),
            (&[("clients", "0")], "whole numbers"),
            (&[("storage", "myisam")], "no effect with sqlite"),
            (
                &[("engine", "mariadb"), ("storage", "rocks")],
                "one of innodb, myisam, aria",
            ),
            (
                &[("engine", "mariadb"), ("synchronous", "off")],
                "no effect with mariadb",
            ),
            (
                &[("engine", "postgresql"), ("query_cache", "on")],
                "no effect",
            ),
            (
                &[("engine", "postgresql"), ("url", "mysql://h/x")],
                "contradict",
            ),
            (
                &[("url", "mysql://h/x"), ("query_cache", "on")],
                "server of your own",
            ),
            (&[("server.fsync", "off")], "private servers"),
            (
                &[("url", "redis://h"), ("mix", "write")],
                "look-ups by key alone",
            ),
            (
                &[("engine", "mariadb"), ("server.skip_networking", "0")],
                "set by Fingerpost itself",
            ),
            (
                &[("engine", "mariadb"), ("server.a b", "0")],
                "letters, digits",
            ),
        ] {
            let sentence = read(pairs).unwrap_err();
            assert!(sentence.contains(what), "{pairs:?}: {sentence}");
        }
    }
}
