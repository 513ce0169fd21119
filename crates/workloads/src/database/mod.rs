//! A site's database under 1 to 50 clients, as in the article: SQLite, MariaDB, PostgreSQL, or a server of the user's
//! own.
//!
//! ```text
//! Database (this process)          orders, results: one JSON object a line (messages)
//!   ├─ load generator process      worker → load: a thread and a connection for each client, watched (watch, stalls)
//!   ├─ private server              server::{mariadb, postgresql}, or none: SQLite is within the load generator
//!   └─ guard process               only for a user's own server: makes a database there and drops it, whatever happens
//! ```

pub(crate) mod connection;
mod data;
mod dump;
pub mod guard;
mod load;
mod messages;
mod mix;
pub(crate) mod mysql;
mod mysql_login;
mod mysql_wire;
mod open;
pub mod options;
mod password;
pub(crate) mod postgres;
mod process;
pub(crate) mod redis;
pub(crate) mod server;
mod sqlite;
pub(crate) mod stalls;
pub(crate) mod stream;
mod url;
mod watch;
pub mod worker;
mod zipf;

use std::path::PathBuf;
use std::time::Duration;

use fingerpost_record::Params;
use fingerpost_sys::child;
use fingerpost_sys::stamps::Stamps;
use fingerpost_undo::files;
use fingerpost_undo::scratch::{Scratch, Server, Ticket};

use crate::database::connection::{Protocol, Target};
pub use crate::database::messages::Imported;
use crate::database::messages::{Load, Reply, Request, StepOrder};
use crate::database::options::{Engine, Options};
use crate::database::process::{Guard, Worker};
use crate::database::server::{Private, Restart};
use crate::{
    Step, Subjects, Workload,
    WorkloadError::{self, Failed, Setting},
};

/// How long loading the data may take, for each unit of scale.
const LOAD_DEADLINE: Duration = Duration::from_secs(60);
/// How long a step may take beyond its length: connecting, and a last transaction that hangs.
const STEP_GRACE: Duration = Duration::from_secs(120);

/// What is not here for these settings, as a sentence that says what to do.
pub fn missing(options: &Options) -> Option<String> {
    match options.engine {
        Engine::MariaDb { .. } => server::mariadb::programs().err(),
        Engine::PostgreSql => server::postgresql::programs().err(),
        Engine::Sqlite { .. } | Engine::Own { .. } => None,
    }
}

/// The load before a step of this length that is not measured: caches fill, connections settle.
pub fn warm_up(length: Duration) -> Duration {
    (length / 4).clamp(Duration::from_millis(100), Duration::from_secs(5))
}

/// The workload. Start it from a thread that lives as long as the run: servers die with the thread that started them.
#[derive(Debug)]
pub struct Database<'a> {
    options: Options,
    scratch: &'a mut Scratch,
    started: Started,
}

/// What was started, and what is known of it.
#[derive(Debug, Default)]
struct Started {
    dir: Option<PathBuf>,
    /// The directory of ours in the one that the user named.
    own: Option<Ticket>,
    server: Option<Server>,
    restart: Option<Restart>,
    target: Option<Target>,
    worker: Option<Worker>,
    guard: Option<Guard>,
    stamps: Option<Stamps>,
    described: String,
    warnings: Vec<String>,
    steps_done: u64,
    /// Load generators that there were.
    starts: u32,
}

impl<'a> Database<'a> {
    /// The workload with these options; nothing is started yet.
    pub fn new(options: Options, scratch: &'a mut Scratch) -> Self {
        Database {
            options,
            scratch,
            started: Started::default(),
        }
    }

    /// The server's version and settings in words. Empty before [`Workload::start`].
    pub fn described(&self) -> &str {
        &self.started.described
    }

    /// Imports a dump of the data beside it, and takes it away again.
    ///
    /// # Errors
    /// The server refuses a statement, or is gone.
    pub fn import(&mut self) -> Result<Imported, WorkloadError> {
        let patience = LOAD_DEADLINE * self.options.scale;
        match self.worker()?.ask(&Request::Import, patience)? {
            Reply::Imported(imported) => Ok(imported),
            other => Err(unexpected(&other)),
        }
    }

    /// What the person who waits should know, since it was last asked: above all what could not be cleaned up.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.started.warnings)
    }

    /// The directory for data: within the scratch directory, or a new one where the user wants it, written down to be
    /// removed.
    fn make_dir(&mut self) -> Result<PathBuf, WorkloadError> {
        let name = format!("database-{}", self.options.engine.name());
        let Some(parent) = &self.options.dir else {
            let dir = (0..)
                .map(|n| self.scratch.path().join(format!("{name}-{n}")))
                .find(|dir| !dir.exists());
            return dir.ok_or_else(|| Failed("no directory is free".to_owned()));
        };
        if !parent.is_dir() {
            return Err(Setting(format!(
                "dir={}: there is no such directory",
                parent.display()
            )));
        }
        let made = self
            .scratch
            .directory_in(parent)
            .map_err(|e| Setting(format!("dir={}: {e}", parent.display())));
        let (own, ticket) = made?;
        self.started.own = Some(ticket);
        Ok(own.join(name))
    }

    /// Starts the server, if there is one to be started, and tells how to connect.
    fn start_server(&mut self) -> Result<Target, WorkloadError> {
        let engine = self.options.engine.clone();
        if let Engine::Own {
            protocol,
            mut login,
            password_file,
            storage,
        } = engine
        {
            login.password = password::find(
                protocol,
                &login,
                password_file.as_deref(),
                &password::Surroundings::of_process(),
            )?;
            if protocol == Protocol::Redis {
                // Nobody else's key has such a name, so that what is made and taken away is ours.
                login.database = format!("{}:{:016x}", login.database, fastrand::u64(..));
            }
            let target = Target::Server {
                protocol,
                login,
                storage,
            };
            self.started.guard = Some(Guard::start(&self.options.program, &target)?);
            return Ok(target);
        }
        let dir = self.make_dir()?;
        self.started.dir = Some(dir.clone());
        let private = match engine {
            Engine::MariaDb {
                storage,
                query_cache,
            } => server::mariadb::start(&self.options, &storage, query_cache, self.scratch, dir)?,
            Engine::PostgreSql => server::postgresql::start(&self.options, self.scratch, dir)?,
            Engine::Sqlite { synchronous } => {
                std::fs::create_dir(&dir)
                    .map_err(|e| Failed(format!("cannot make {}: {e}", dir.display())))?;
                return Ok(Target::Sqlite {
                    file: dir.join("site.db"),
                    synchronous,
                });
            }
            Engine::Own { .. } => unreachable!("handled above"),
        };
        let Private {
            server,
            target,
            restart,
        } = private;
        (self.started.server, self.started.restart) = (Some(server), Some(restart));
        Ok(target)
    }

    /// Starts the load generator, and has it fill the database or take it as it is.
    fn load(&mut self, target: Target) -> Result<(), WorkloadError> {
        let embedded = matches!(target, Target::Sqlite { .. });
        // Words before the server's command go before the process that has the database in it.
        let prefix = if embedded {
            self.options.server_prefix.as_slice()
        } else {
            &[]
        };
        let worker = Worker::start(
            &self.options.program,
            prefix,
            self.started.stamps.as_ref(),
            self.scratch,
        )?;
        let servers = if embedded {
            vec![worker.pid()]
        } else {
            self.started.server.iter().map(Server::pid).collect()
        };
        self.started.worker = Some(worker);
        let (scale, seed, mix) = (self.options.scale, self.options.seed, self.options.mix);
        let order = Request::Load(Load {
            target,
            scale,
            seed,
            mix,
            before: self.started.starts,
            servers,
        });
        match self.worker()?.ask(&order, LOAD_DEADLINE * scale)? {
            Reply::Loaded(server) => self.started.described = server,
            other => return Err(unexpected(&other)),
        }
        self.started.starts += 1;
        Ok(())
    }

    fn worker(&mut self) -> Result<&mut Worker, WorkloadError> {
        self.started
            .worker
            .as_mut()
            .ok_or_else(|| Failed("the database was not started".to_owned()))
    }
}

impl Workload for Database<'_> {
    fn name(&self) -> &'static str {
        "database"
    }

    fn start(&mut self) -> Result<(), WorkloadError> {
        let target = self.start_server()?;
        self.started.target = Some(target.clone());
        // Without them there is a check less, and the run goes on.
        self.started.stamps = Stamps::new().ok();
        self.load(target)
    }

    fn renew(&mut self) -> Result<bool, WorkloadError> {
        let Some(target) = self
            .started
            .target
            .clone()
            .filter(|_| !matches!(self.options.engine, Engine::Own { .. }))
        else {
            return Ok(false);
        };
        if let Some(worker) = self.started.worker.take() {
            self.started
                .warnings
                .extend(worker.stop(self.scratch).err());
        }
        if let (Some(restart), Some(server)) = (&self.started.restart, self.started.server.take()) {
            self.started.server = Some(restart.again(server, &target, self.scratch)?);
        }
        self.load(target).map(|()| true)
    }

    fn steps(&self) -> Vec<Params> {
        let params = self.options.params();
        self.options
            .clients
            .iter()
            .map(|clients| params.clone().with("clients", *clients as i64))
            .collect()
    }

    fn subjects(&self) -> Subjects {
        let clients: Vec<i32> = self.started.worker.iter().map(Worker::pid).collect();
        let servers = match self.options.engine {
            Engine::Sqlite { .. } => clients.clone(),
            _ => self.started.server.iter().map(Server::pid).collect(),
        };
        Subjects { servers, clients }
    }

    fn stamps(&self) -> Option<Stamps> {
        self.started.stamps.clone()
    }

    fn step_observed(
        &mut self,
        params: &Params,
        length: Duration,
        begun: &mut dyn FnMut(),
    ) -> Result<Step, WorkloadError> {
        let clients = params
            .int("clients")
            .and_then(|n| usize::try_from(n).ok())
            .filter(|n| *n > 0);
        let clients =
            clients.ok_or_else(|| Setting("a step needs a number of clients".to_owned()))?;
        self.started.steps_done += 1;
        let warm_up = warm_up(length);
        let order = StepOrder {
            clients,
            warm_up_ns: warm_up.as_nanos() as u64,
            length_ns: length.as_nanos() as u64,
            seed: self.options.seed.wrapping_add(self.started.steps_done),
        };
        let patience = warm_up + length + STEP_GRACE;
        let worker = self.worker()?;
        let mut reply = worker.ask(&Request::Step(order), patience)?;
        if matches!(reply, Reply::Begun) {
            begun();
            reply = worker.next(patience)?;
        }
        match reply {
            Reply::Step(step) => Ok(step),
            other => Err(unexpected(&other)),
        }
    }

    fn stop(&mut self) {
        if let Some(worker) = self.started.worker.take() {
            self.started
                .warnings
                .extend(worker.stop(self.scratch).err());
        }
        if let Some(server) = self.started.server.take() {
            // No orderly shutdown (a second of writing what is thrown away). PostgreSQL's "immediate" one, SIGQUIT,
            // still gives its shared memory back; MariaDB has none.
            let signal = if matches!(self.options.engine, Engine::PostgreSql) {
                libc::SIGQUIT
            } else {
                libc::SIGKILL
            };
            let _ = child::signal_group(server.pid(), signal);
            self.started
                .warnings
                .extend(self.scratch.stop(server).err());
        }
        if let Some(guard) = self.started.guard.take() {
            self.started.warnings.extend(guard.stop().err());
        }
        if let Some(dir) = self.started.dir.take() {
            let gone = files::remove_tree(&dir);
            self.started.warnings.extend(
                gone.err()
                    .map(|e| format!("{} could not be removed: {e}", dir.display())),
            );
        }
        if let Some(own) = self.started.own.take() {
            self.started.warnings.extend(self.scratch.undo(own).err());
        }
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

fn unexpected(reply: &Reply) -> WorkloadError {
    match reply {
        Reply::Failed(sentence) => Failed(sentence.clone()),
        _ => Failed("the load generator answered something else than it was asked".to_owned()),
    }
}
