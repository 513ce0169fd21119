//! Requests of a running service that had no answer yet when it was looked at: how old each was, which thread had it,
//! and what that thread waited for.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::params::Params;
use crate::range::{amounts, counts, each, no_more};
use crate::text::clean_short;

/// The requests that a record describes of one service.
pub const MOST_REQUESTS: usize = 100;
/// The workers, and the sessions in a transaction, that it describes.
pub const MOST_WORKERS: usize = 50;
/// The functions that it keeps of one stack.
pub const MOST_FRAMES: usize = 32;
/// The services that it describes behind each other.
pub const MOST_HOPS: usize = 4;
/// The characters of a name, a path or an address.
pub const MOST_NAME: usize = 200;
/// The services of which a run keeps requests under way.
pub const MOST_SERVICES: usize = 20;

/// What requests a service had not answered, at looks spread over the time that it was watched, and in detail at one of
/// them: the last, or where none had waited for long by then, the one at which requests had waited longest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct UnderWay {
    /// The workload's name.
    pub workload: String,
    /// The step's parameters.
    #[serde(default)]
    pub params: Params,
    /// How it was seen, in words.
    pub source: String,
    /// How often it was counted how many requests were under way.
    pub looks: u64,
    /// Requests under way, in the mean of these looks. Divided by the requests a second it is the mean latency.
    pub mean: f64,
    /// When the look was that is told in detail, in seconds after watching began.
    pub at_s: f64,
    /// Connections of the service then.
    pub connections: u64,
    /// Requests under way then; at most [`MOST_REQUESTS`] of them, the oldest first, are in `requests`.
    pub count: u64,
    /// Connections whose last bytes came in and have no answer, of which nothing tells whether they wait for one: the
    /// service has read them and waits for more.
    pub quiet: u64,
    /// Seconds since the last bytes of the oldest of these.
    pub quiet_s: f64,
    /// The requests under way then.
    pub requests: Vec<Request>,
    /// Where threads of the service were that could have taken a request that none had read or accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<Place>,
    /// Sessions of a database that were idle in a transaction: they may hold locks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_transaction: Vec<Place>,
}

/// How far a request under way has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Its connection waits to be accepted.
    NotAccepted,
    /// It was not read, or not all of it.
    Unread,
    /// It was read.
    #[default]
    Read,
}

/// A request without an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Request {
    /// Seconds since its last bytes arrived: it is at least as old.
    pub age_s: f64,
    /// How far it has come.
    pub progress: Progress,
    /// The address of its client; empty for a Unix socket.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client: String,
    /// Which thread has it, and where that is; nothing where that is not known, or no thread has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its name; of an interpreter, the program that it runs.
    pub name: String,
}

/// Where a thread is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Place {
    /// Its process.
    pub process: Process,
    /// The thread's number.
    pub tid: i32,
    /// The thread's name.
    pub thread: String,
    /// What the process's title says of its session, where it is one of PostgreSQL's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// What it waits for.
    pub wait: Wait,
    /// Where the thread of another service is that it waits for, where that is on this machine and known; at most
    /// [`MOST_HOPS`] deep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Box<Place>>,
    /// The kernel's functions that it is in, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel: Vec<String>,
    /// The program's functions that it is in, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
}

/// What the title of a PostgreSQL backend says of its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Session {
    /// The user.
    pub user: String,
    /// The database.
    pub database: String,
    /// The client: `[local]`, or its address and port.
    pub client: String,
    /// The command that it runs, such as `UPDATE`; empty where it is idle.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// What it is at.
    pub state: SessionState,
}

/// What a session is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// It runs a command.
    #[default]
    Active,
    /// Its command waits for a lock of the database (`UPDATE waiting`).
    Waiting,
    /// Its commit waits for a standby (`COMMIT waiting for 0/3000060`).
    WaitingForStandby,
    /// It has no command.
    Idle,
    /// It has no command, and its transaction is open.
    IdleInTransaction,
}

/// What kind of thing a thread waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// For nothing: it runs, or is ready to.
    Running,
    /// A lock or condition in memory (futex).
    Lock,
    /// A semaphore of System V.
    Semaphore,
    /// A lock on a file: `path`, held by `whom`.
    FileLock,
    /// The other end of a pipe, which `whom` has.
    Pipe,
    /// Another service, at `address`; on this machine its process is `whom`.
    Peer,
    /// Bytes of a client of the service, at `address`.
    Client,
    /// Events at descriptors, of which none tells what the request waits for.
    Events,
    /// Events that its own service sends it: the connection of its client is not among what it waits for.
    Own,
    /// A time to pass.
    Sleep,
    /// A child process to end.
    Child,
    /// A file system that the process `whom` serves, mounted at `path`.
    FileSystem,
    /// Something in the kernel: `function`.
    Kernel,
    /// It is not known.
    #[default]
    Unknown,
}

/// What a thread waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Wait {
    /// What kind of thing.
    pub kind: WaitKind,
    /// The address of a socket's other end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// A file, or where a file system is mounted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The process that could end the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whom: Option<Process>,
    /// The kernel's function that it waits in; empty where that says no more than the kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// Whether the wait ends by itself after some time.
    #[serde(default)]
    pub timeout: bool,
    /// Of a client: seconds since its last byte, or since it connected.
    #[serde(default)]
    pub silent_s: f64,
}

/// Says what in one of them cannot be, if anything.
pub(crate) fn valid(u: &UnderWay) -> Result<(), String> {
    amounts("it", [u.mean, u.at_s, u.quiet_s])?;
    counts("it", [u.looks, u.connections, u.count, u.quiet])?;
    no_more("requests", u.requests.len(), MOST_REQUESTS)?;
    if u.count < u.requests.len() as u64 {
        return Err(format!(
            "it counts {} requests and describes {}",
            u.count,
            u.requests.len()
        ));
    }
    each("requests", &u.requests, |r| {
        amounts("it", [r.age_s])?;
        r.place.iter().try_for_each(|p| place(p, MOST_HOPS))
    })?;
    no_more("workers", u.workers.len(), MOST_WORKERS)?;
    each("workers", &u.workers, |p| place(p, MOST_HOPS))?;
    no_more("sessions", u.in_transaction.len(), MOST_WORKERS)?;
    each("in_transaction", &u.in_transaction, |p| place(p, MOST_HOPS))
}

fn place(p: &Place, hops: usize) -> Result<(), String> {
    if let Some(peer) = &p.peer {
        let left = hops.checked_sub(1);
        let left = left.ok_or(format!(
            "it has more than {MOST_HOPS} services behind each other"
        ))?;
        place(peer, left)?;
    }
    no_more("functions of the kernel", p.kernel.len(), MOST_FRAMES)?;
    no_more("functions", p.functions.len(), MOST_FRAMES)?;
    amounts("a wait", [p.wait.silent_s])
}

/// Every string but for the parameters.
pub(crate) fn texts(u: &mut UnderWay) -> Vec<&mut String> {
    let requests = u.requests.iter_mut();
    let (mut all, mut places) = (vec![&mut u.workload, &mut u.source], Vec::new());
    for request in requests {
        all.push(&mut request.client);
        places.extend(&mut request.place);
    }
    places.extend(u.workers.iter_mut().chain(&mut u.in_transaction));
    places
        .into_iter()
        .for_each(|place| of_place(place, &mut all));
    all
}

fn of_place<'a>(place: &'a mut Place, all: &mut Vec<&'a mut String>) {
    all.extend([&mut place.process.name, &mut place.thread]);
    if let Some(s) = &mut place.session {
        all.extend([&mut s.user, &mut s.database, &mut s.client, &mut s.command]);
    }
    let wait = &mut place.wait;
    all.extend([&mut wait.address, &mut wait.path, &mut wait.function]);
    all.extend(wait.whom.as_mut().map(|whom| &mut whom.name));
    all.extend(place.kernel.iter_mut().chain(&mut place.functions));
    if let Some(peer) = &mut place.peer {
        of_place(peer, all);
    }
}

/// Makes every string safe to show and as short as a record may hold.
pub fn clean(u: &mut UnderWay) {
    texts(u)
        .into_iter()
        .for_each(|text| *text = clean_short(text, MOST_NAME));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked() -> UnderWay {
        let place = Place {
            process: Process {
                pid: 7,
                name: "postgres".into(),
            },
            wait: Wait {
                kind: WaitKind::FileLock,
                path: "/srv/a".into(),
                whom: Some(Process::default()),
                ..Wait::default()
            },
            session: Some(Session::default()),
            kernel: vec!["flock_lock_inode_wait".into()],
            functions: vec!["php_flock".into()],
            ..Place::default()
        };
        let place = Place {
            peer: Some(Box::new(place.clone())),
            ..place
        };
        UnderWay {
            looks: 10,
            count: 2,
            requests: vec![
                Request {
                    age_s: 3.0,
                    place: Some(place.clone()),
                    ..Request::default()
                };
                2
            ],
            workers: vec![place.clone()],
            in_transaction: vec![place],
            ..UnderWay::default()
        }
    }

    #[test]
    fn each_impossible_statement_is_named() {
        assert_eq!(valid(&blocked()), Ok(()));
        type Spoil = fn(&mut UnderWay);
        let cases: Vec<(&str, Spoil)> = vec![
            ("amount", |u| u.mean = -1.0),
            ("amount", |u| u.at_s = f64::NAN),
            ("amount", |u| u.quiet_s = f64::INFINITY),
            ("count", |u| u.connections = u64::MAX),
            ("describes 2", |u| u.count = 1),
            ("requests[1]: it", |u| u.requests[1].age_s = -3.0),
            ("more than 100", |u| {
                u.requests = vec![Request::default(); 101];
                u.count = 101;
            }),
            ("more than 50", |u| u.workers = vec![Place::default(); 51]),
            ("more than 50", |u| {
                u.in_transaction = vec![Place::default(); 51]
            }),
            ("requests[0]: it has 33 functions", |u| {
                u.requests[0].place.as_mut().unwrap().functions = vec![String::new(); 33]
            }),
            ("workers[0]: it has 33 functions of the kernel", |u| {
                u.workers[0].kernel = vec![String::new(); 33]
            }),
            ("more than 4 services", |u| {
                for _ in 0..5 {
                    let inner = u.workers[0].clone();
                    u.workers[0].peer = Some(Box::new(inner));
                }
            }),
            ("in_transaction[0]: a wait", |u| {
                u.in_transaction[0].wait.silent_s = -1.0
            }),
        ];
        for (words, spoil) in cases {
            let mut u = blocked();
            spoil(&mut u);
            let said = valid(&u).expect_err(words);
            assert!(said.contains(words), "“{words}” is not in “{said}”");
        }
    }

    #[test]
    fn every_text_is_cleaned_and_cut() {
        let hostile = format!("\u{1b}[31m{}", "x".repeat(1000));
        let json = serde_json::to_string(&blocked()).unwrap();
        let mut value: serde_json::Value = serde_json::from_str(&json).unwrap();
        fn spoil(value: &mut serde_json::Value, with: &str) -> usize {
            match value {
                // Names of kinds and states are a closed list.
                serde_json::Value::Object(all) => all
                    .iter_mut()
                    .filter(|(key, _)| {
                        !["kind", "state", "progress", "params"].contains(&key.as_str())
                    })
                    .map(|(_, v)| spoil(v, with))
                    .sum(),
                serde_json::Value::Array(all) => all.iter_mut().map(|v| spoil(v, with)).sum(),
                serde_json::Value::String(text) => {
                    with.clone_into(text);
                    1
                }
                _ => 0,
            }
        }
        let spoiled = spoil(&mut value, &hostile);
        assert!(spoiled > 30, "{spoiled}");
        let mut u: UnderWay = serde_json::from_value(value).unwrap();
        clean(&mut u);
        let json = serde_json::to_string(&u).unwrap();
        assert!(!json.contains("\\u001b"), "{json}");
        assert!(!json.contains(&"x".repeat(MOST_NAME + 1)));
    }
}
