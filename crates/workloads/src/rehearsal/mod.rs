//! A small server whose every transaction costs exactly what its recipe says: what `prove` plants causes in.
//!
//! A server and a load generator, both this same binary started again, speak over TCP on 127.0.0.1. A recipe puts user
//! work, system calls, memory, syncs or a lock into each transaction, so that each planted cause has something to bite
//! on.

pub mod client;
pub mod neighbour;
mod recipe;
pub mod server;
pub mod truth;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use fingerpost_record::Params;
use fingerpost_sys::child::{self, die_with_parent};

pub use recipe::Recipe;
use serde::Serialize;

use crate::closed_loop::{Report, until_something};
use crate::worker::{self, Link, NoAnswer};
use crate::{
    Stamps, Step, Subjects, Workload,
    WorkloadError::{self, Failed},
};

/// The workload's name.
pub const NAME: &str = "rehearsal";

/// How long a worker may take to get ready or to end a step, beyond the step itself.
const PATIENCE: Duration = Duration::from_secs(20);

/// How much longer than asked a step lasts, so that observers who begin late and wait for a CPU still see load only.
const WARM_UP: Duration = Duration::from_millis(150);

/// Changes the command of the server or the client before it is started.
pub type Prepare = Box<dyn FnMut(&mut Command) + Send>;

/// The server with its clients.
pub struct Rehearsal {
    recipe: Recipe,
    dir: PathBuf,
    prepare: Prepare,
    prepare_client: Prepare,
    /// Called with the server's process id before the server touches any of its memory.
    placed: Box<dyn FnMut(u32) -> Result<(), String> + Send>,
    peer: Option<Worker>,
    server: Option<Worker>,
    client: Option<Worker>,
    stamps: Option<Stamps>,
}

impl Rehearsal {
    /// A server of this recipe that writes its file in this directory.
    pub fn new(recipe: Recipe, dir: &Path) -> Self {
        Rehearsal {
            recipe,
            dir: dir.to_owned(),
            prepare: Box::new(|_| ()),
            prepare_client: Box::new(|_| ()),
            placed: Box::new(|_| Ok(())),
            peer: None,
            server: None,
            client: None,
            stamps: None,
        }
    }

    /// The server's command; starts the peer of the server that stamps its stages, which is a process of nobody's but
    /// ours.
    fn server_command(&mut self, recipe: &str) -> Result<Command, WorkloadError> {
        if self.recipe.mix.is_none() {
            let mut command = worker::command(server::NAME);
            command.arg(recipe).arg(&self.dir);
            return Ok(command);
        }
        let mut peer = Worker::start(worker::command(truth::peer::NAME), "peer")?;
        let port = peer.ask("go", PATIENCE)?;
        self.peer = Some(peer);
        let mut command = worker::command(truth::server::NAME);
        command.arg(recipe).arg(&self.dir).arg(port.trim());
        Ok(command)
    }

    /// What the server that stamps its stages has logged since it was last asked.
    pub fn truth(&mut self) -> Result<Vec<truth::log::Served>, WorkloadError> {
        let Some(server) = &mut self.server else {
            return Err(Failed("the server was not started".into()));
        };
        let answer = server.ask("log", PATIENCE)?;
        serde_json::from_str(&answer)
            .map_err(|e| Failed(format!("the server's log cannot be read: {e}")))
    }

    /// With changes to the server's command.
    #[must_use]
    pub fn prepared(mut self, prepare: impl FnMut(&mut Command) + Send + 'static) -> Self {
        self.prepare = Box::new(prepare);
        self
    }

    /// With changes to the client's command.
    #[must_use]
    pub fn client_prepared(mut self, prepare: impl FnMut(&mut Command) + Send + 'static) -> Self {
        self.prepare_client = Box::new(prepare);
        self
    }

    /// With the server put somewhere (into a control group) before it takes its memory.
    #[must_use]
    pub fn placed(mut self, place: impl FnMut(u32) -> Result<(), String> + Send + 'static) -> Self {
        self.placed = Box::new(place);
        self
    }
}

impl Workload for Rehearsal {
    fn name(&self) -> &'static str {
        NAME
    }

    fn start(&mut self) -> Result<(), WorkloadError> {
        let recipe = serde_json::to_string(&self.recipe).map_err(|e| Failed(e.to_string()))?;
        let mut command = self.server_command(&recipe)?;
        (self.prepare)(&mut command);
        let mut server = Worker::start(command, "server")?;
        (self.placed)(server.pid() as u32).map_err(Failed)?;
        let port = server.ask("go", PATIENCE)?;
        self.server = Some(server);
        let mut command = worker::command(client::NAME);
        command.arg(&recipe).arg(port.trim());
        (self.prepare_client)(&mut command);
        // Without them there is a check less, and the run goes on.
        self.stamps = Stamps::new().ok();
        self.stamps
            .iter()
            .for_each(|stamps| stamps.give(&mut command));
        let mut client = Worker::start(command, "client")?;
        client.ask("go", PATIENCE)?;
        self.client = Some(client);
        Ok(())
    }

    fn steps(&self) -> Vec<Params> {
        vec![Params::new()]
    }

    fn subjects(&self) -> Subjects {
        let pid = |w: &Option<Worker>| w.iter().map(Worker::pid).collect();
        Subjects {
            servers: pid(&self.server),
            clients: pid(&self.client),
        }
    }

    fn stamps(&self) -> Option<Stamps> {
        self.stamps.clone()
    }

    fn step(&mut self, _: &Params, length: Duration) -> Result<Step, WorkloadError> {
        let Some(client) = &mut self.client else {
            return Err(Failed("the client was not started".into()));
        };
        let clients = self.recipe.clients;
        until_something(length + WARM_UP, |length| {
            let answer = client.ask(&length.as_millis().to_string(), length + PATIENCE)?;
            Ok(Report::read(&answer)?.into_step(clients, usize::MAX, false))
        })
    }

    fn stop(&mut self) {
        self.client = None;
        self.server = None;
        self.peer = None;
    }
}

/// A worker process that is asked in lines and answers in lines. Dropping it ends it.
pub struct Worker {
    what: &'static str,
    link: Link<Child>,
}

impl Worker {
    /// Starts a worker in a process group of its own that dies with this thread.
    pub fn start(mut command: Command, what: &'static str) -> Result<Worker, WorkloadError> {
        let link = Link::start(die_with_parent(&mut command), Command::spawn);
        let link = link.map_err(|e| Failed(format!("cannot start the {what}: {e}")))?;
        Ok(Worker { what, link })
    }

    /// The number of the process, which is also that of its group.
    pub fn pid(&self) -> i32 {
        self.link.process.id() as i32
    }

    fn failed(&self, why: String) -> WorkloadError {
        Failed(format!("the {} {why}", self.what))
    }

    /// Sends a line and waits for one. A worker that does not answer in time is killed, which ends the waiting.
    pub fn ask(&mut self, line: &str, patience: Duration) -> Result<String, WorkloadError> {
        self.link
            .say(line)
            .map_err(|e| self.failed(format!("does not listen: {e}")))?;
        self.next(patience)
    }

    /// The same for an order that is an object of JSON.
    pub fn order(
        &mut self,
        order: &impl Serialize,
        patience: Duration,
    ) -> Result<String, WorkloadError> {
        self.link
            .order(order)
            .map_err(|e| self.failed(format!("does not listen: {e}")))?;
        self.next(patience)
    }

    /// Waits for a further line of the same answer.
    pub fn next(&mut self, patience: Duration) -> Result<String, WorkloadError> {
        self.link.line(patience).map_err(|why| {
            if matches!(why, NoAnswer::Late(_)) {
                let _ = child::signal_group(self.pid(), libc::SIGKILL);
            }
            self.failed(match why {
                NoAnswer::Io(e) => format!("cannot be heard: {e}"),
                NoAnswer::Refused(why) => format!("says: {why}"),
                other => other.to_string(),
            })
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = child::signal_group(self.pid(), libc::SIGKILL);
        let _ = self.link.process.wait();
    }
}
