//! Real private servers under load, with settings, surroundings and requests of the caller's choice: what
//! `prove --servers` plants in.
//!
//! ```text
//! Planted (this process)
//!   ├─ server     MariaDB, PostgreSQL, Redis, nginx or Apache as installed (servers); SQLite is within the client
//!   ├─ backend    what nginx is a proxy for (backend): another service, as slow as it is told
//!   └─ client     a thread and a connection for each client (client, talk), doing what a script says (script)
//! ```

pub mod backend;
pub mod client;
pub mod script;
pub mod servers;
pub mod surroundings;
pub mod talk;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fingerpost_record::Params;
use fingerpost_sys::child;
use fingerpost_sys::procfs::bounded;
use fingerpost_undo::scratch::{Scratch, Server};

use self::client::{BEGUN, Order};
use self::script::Script;
use self::servers::{Engine, Plan};
use self::surroundings::Surroundings;
use self::talk::Target;
use crate::closed_loop::{Report, until_something};
use crate::rehearsal::Worker;
use crate::web::kernel::tree;
use crate::{
    Stamps, Step, Subjects, Workload,
    WorkloadError::{self, Failed},
    worker,
};

/// How long a worker may take to get ready or to end a step, beyond the step itself.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much longer than asked a step lasts, so that observers who begin late still see load only.
const WARM_UP: Duration = Duration::from_millis(120);
/// How long another session goes on at most; it is ended by dropping it.
const SESSION: Duration = Duration::from_secs(600);

/// A private server with its clients.
pub struct Planted {
    engine: Engine,
    server: Option<Server>,
    backend: Option<Worker>,
    client: Option<Worker>,
    target: Target,
    /// What clients do from the next step on.
    pub script: Script,
    stamps: Option<Stamps>,
}

/// Where clients and servers are put.
pub struct Places<'a> {
    /// A directory for the server's own; nothing of this name exists.
    pub dir: &'a Path,
    /// What holds for the clients' process.
    pub client: &'a Surroundings,
    /// Called with the server's process and its children before there is any data.
    pub server: &'a mut dyn FnMut(i32) -> Result<(), String>,
}

impl Planted {
    /// Starts the server and its client, and has the server hold what `prepare` says.
    pub fn start(
        plan: &Plan,
        prepare: &[String],
        places: Places,
        scratch: &mut Scratch,
    ) -> Result<Planted, WorkloadError> {
        let backend = (plan.engine == Engine::Proxy)
            .then(|| Worker::start(worker::command(backend::NAME), "backend"))
            .transpose()?;
        let mut planted = Planted {
            engine: plan.engine,
            server: None,
            backend,
            client: None,
            target: Target::Sqlite(places.dir.to_owned(), Vec::new()),
            script: Script::default(),
            stamps: Stamps::new().ok(),
        };
        let port = planted
            .backend
            .as_mut()
            .map(|b| b.ask("go", PATIENCE))
            .transpose()?;
        let port = port.and_then(|line| line.trim().parse().ok());
        (planted.server, planted.target) =
            servers::start(plan, places.dir.to_owned(), port, scratch)?;
        if let Err(e) = planted.with_client(plan, prepare, places) {
            // What cannot be ended here is ended with the scratch directory.
            let _ = planted.finish(scratch);
            return Err(e);
        }
        Ok(planted)
    }

    fn with_client(
        &mut self,
        plan: &Plan,
        prepare: &[String],
        places: Places,
    ) -> Result<(), WorkloadError> {
        let lives = |pid: i32| {
            bounded::of_memory(format!("/proc/{pid}/cmdline").as_ref(), 1)
                .is_ok_and(|words| !words.is_empty())
        };
        let mut place = |pid: i32| match (places.server)(pid) {
            Err(why) if lives(pid) => Err(Failed(why)),
            // A process that has ended meanwhile needs no place.
            _ => Ok(()),
        };
        if let Some(server) = &self.server {
            // Twice: what a process makes before it is placed is found the second time.
            for _ in 0..2 {
                tree(&[server.pid()]).into_iter().try_for_each(&mut place)?;
            }
        }
        let mut command = self.client_command()?;
        let embedded = self.target.is_embedded();
        if embedded {
            &plan.surroundings
        } else {
            places.client
        }
        .apply(&mut command);
        self.stamps
            .iter()
            .for_each(|stamps| stamps.give(&mut command));
        let mut client = Worker::start(command, "load generator")?;
        if embedded {
            place(client.pid())?;
        }
        client.order(&Order::Prepare(prepare.to_vec()), PATIENCE)?;
        self.client = Some(client);
        Ok(())
    }

    fn client_command(&self) -> Result<Command, WorkloadError> {
        let mut command = worker::command(client::NAME);
        command.arg(serde_json::to_string(&self.target).map_err(|e| Failed(e.to_string()))?);
        Ok(command)
    }

    /// Tells the backend how to be.
    pub fn tell_backend(&mut self, line: &str) -> Result<(), WorkloadError> {
        self.backend
            .as_mut()
            .map_or(Ok(()), |backend| backend.ask(line, PATIENCE).map(drop))
    }

    /// Another session with the server, beside the clients and no part of the load: it does what the script says until
    /// it is dropped.
    pub fn other_session(&self, script: &Script) -> Result<Worker, WorkloadError> {
        let mut session = Worker::start(self.client_command()?, "other session")?;
        session.order(
            &Order::Step(script.clone(), SESSION.as_millis() as u64),
            PATIENCE,
        )?;
        Ok(session)
    }

    /// The processes of the server, its children included.
    pub fn server_tree(&self) -> Vec<i32> {
        self.subjects()
            .servers
            .into_iter()
            .flat_map(|pid| tree(&[pid]))
            .collect()
    }

    /// Ends everything.
    pub fn finish(mut self, scratch: &mut Scratch) -> Result<(), String> {
        (self.client, self.backend) = (None, None);
        let Some(server) = self.server.take() else {
            return Ok(());
        };
        // No orderly shutdown, of which the result is thrown away; PostgreSQL's immediate one gives its shared memory
        // back.
        let signal = if self.engine == Engine::PostgreSql {
            libc::SIGQUIT
        } else {
            libc::SIGKILL
        };
        if self.engine.workload() == "database" {
            let _ = child::signal_group(server.pid(), signal);
        }
        scratch.stop(server)
    }
}

impl Workload for Planted {
    fn name(&self) -> &'static str {
        self.engine.workload()
    }

    /// It is running already.
    fn start(&mut self) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn steps(&self) -> Vec<Params> {
        vec![
            Params::new()
                .with("engine", self.engine.name())
                .with("clients", self.script.clients as i64),
        ]
    }

    fn subjects(&self) -> Subjects {
        let clients: Vec<i32> = self.client.iter().map(Worker::pid).collect();
        let servers = if self.target.is_embedded() {
            clients.clone()
        } else {
            self.server.iter().map(Server::pid).collect()
        };
        Subjects { servers, clients }
    }

    fn stamps(&self) -> Option<Stamps> {
        self.stamps.clone()
    }

    fn step_observed(
        &mut self,
        _: &Params,
        length: Duration,
        begun: &mut dyn FnMut(),
    ) -> Result<Step, WorkloadError> {
        let Some(client) = &mut self.client else {
            return Err(Failed("the client was not started".into()));
        };
        let (script, embedded) = (&self.script, self.target.is_embedded());
        until_something(length + WARM_UP, |length| {
            let order = Order::Step(script.clone(), length.as_millis() as u64);
            if client.order(&order, length + PATIENCE)?.trim() != BEGUN {
                return Err(Failed(
                    "the load generator answered something else than it was asked".into(),
                ));
            }
            begun();
            let answer = client.next(length + PATIENCE)?;
            Ok(Report::read(&answer)?.into_step(script.clients, script.clients, embedded))
        })
    }

    fn stop(&mut self) {
        self.client = None;
    }
}
