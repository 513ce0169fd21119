//! The load generator of the rehearsal: a closed loop in each of its threads.

use std::ffi::OsString;
use std::io::{self, BufRead, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use fingerpost_sys::stamps::{ThreadWriter, Writer};
use fingerpost_sys::system::own_cpu_time;
use fingerpost_sys::trace::monotonic_ns;

use super::recipe::{REQUEST, Recipe};
use crate::closed_loop::{PARTS, Report, stamp, work};
use crate::histogram::Histogram;
use crate::worker::{Ended, refusal};

/// The worker's name.
pub const NAME: &str = "rehearsal-client";

/// How long a transaction may take before it counts as an error.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Answers "go" when every connection has had its first transaction, for which the server takes its memory, then a
/// report to each line with a number of milliseconds.
pub fn main(args: Vec<OsString>) -> Ended {
    let [recipe, port] = args.as_slice() else {
        return Err("a recipe and a port are needed".into());
    };
    let recipe: Recipe = serde_json::from_str(&recipe.to_string_lossy())?;
    let port: u16 = port.to_string_lossy().parse()?;
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let clients = Clients::start(&recipe, server)?;
    for line in io::stdin().lock().lines() {
        match line?.parse::<u64>() {
            Ok(ms) => println!(
                "{}",
                serde_json::to_string(&clients.step(Duration::from_millis(ms)))?
            ),
            // Where each transaction makes its own connection, there is none to prepare.
            Err(_) => match (!recipe.connects)
                .then(|| clients.first_transactions())
                .flatten()
            {
                None => println!("ready"),
                Some(why) => println!("{}", refusal(why)),
            },
        }
    }
    Ok(())
}

/// A step for one thread: when it began, how long it is, and where completions are counted.
#[derive(Clone)]
struct Task {
    begun: Instant,
    /// Nothing for a single transaction.
    length: Option<Duration>,
    parts: Arc<[AtomicU64; PARTS]>,
}

impl Task {
    /// The time that is left, and nothing when the step is over.
    fn left(&self) -> Option<Duration> {
        self.length.map_or(Some(TIMEOUT), |length| {
            length
                .checked_sub(self.begun.elapsed())
                .filter(|d| !d.is_zero())
        })
    }

    fn count(&self) {
        let Some(length) = self.length else { return };
        let part =
            (self.begun.elapsed().as_secs_f64() / length.as_secs_f64() * PARTS as f64) as usize;
        if let Some(part) = self.parts.get(part) {
            part.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What one thread brings back from a step.
type Done = (Histogram, Option<String>);

/// The threads. They and their connections outlive the steps, so that an observer that looks a moment late still finds
/// them.
struct Clients {
    tasks: Vec<mpsc::Sender<Task>>,
    done: mpsc::Receiver<Done>,
}

impl Clients {
    fn start(recipe: &Recipe, server: SocketAddr) -> io::Result<Clients> {
        let (report, done) = mpsc::channel();
        let stamps = Writer::find();
        let start_one = |number| {
            let (send, tasks) = mpsc::channel::<Task>();
            let (recipe, report, stamps) = (recipe.clone(), report.clone(), stamps.clone());
            std::thread::Builder::new().spawn(move || {
                let mut place = Place {
                    stream: None,
                    number: number as u32,
                    thread_writer: stamps.as_ref().map(Writer::of_thread),
                };
                for task in tasks {
                    let result = one_client(&recipe, server, &task, &mut place);
                    if report.send(result).is_err() {
                        return;
                    }
                }
            })?;
            Ok(send)
        };
        Ok(Clients {
            tasks: (0..recipe.clients)
                .map(start_one)
                .collect::<io::Result<_>>()?,
            done,
        })
    }

    fn all(&self, task: &Task) -> Vec<Done> {
        let asked = self
            .tasks
            .iter()
            .filter(|t| t.send(task.clone()).is_ok())
            .count();
        self.done.iter().take(asked).collect()
    }

    /// Has every thread make its connection and one transaction. Why one failed, if one did.
    fn first_transactions(&self) -> Option<String> {
        self.all(&Task {
            begun: Instant::now(),
            length: None,
            parts: Arc::default(),
        })
        .into_iter()
        .find_map(|(_, why)| why)
    }

    fn step(&self, length: Duration) -> Report {
        let (begun, cpu) = (Instant::now(), own_cpu_time());
        let task = Task {
            begun,
            length: Some(length),
            parts: Arc::default(),
        };
        let results = self.all(&task);
        let parts: Vec<u64> = task
            .parts
            .iter()
            .map(|n| n.load(Ordering::Relaxed))
            .collect();
        let turns = parts.iter().sum();
        Report::of(length, begun, cpu, parts, turns, results)
    }
}

/// What a thread keeps from step to step.
struct Place {
    stream: Option<TcpStream>,
    number: u32,
    thread_writer: Option<ThreadWriter>,
}

fn one_client(recipe: &Recipe, server: SocketAddr, task: &Task, place: &mut Place) -> Done {
    let mut seen = Histogram::default();
    let mut answer = vec![0; recipe.answer.max(2)];
    while let Some(left) = task.left() {
        if recipe.think_us > 0 {
            std::thread::sleep(Duration::from_micros(recipe.think_us));
        }
        let asked = monotonic_ns();
        let answered = transaction(recipe, server, &mut place.stream, &mut answer, left);
        let now = monotonic_ns();
        match answered {
            Ok(()) if task.length.is_none() => return (seen, None),
            Ok(()) => {
                stamp(place.thread_writer.as_ref(), place.number, asked, now);
                if task.left().is_some() {
                    seen.record(now - asked);
                    task.count();
                }
                work(recipe.client_work);
            }
            Err(e) => {
                place.stream = None;
                // A connection of its own for each transaction is given up at the end: its next try may be seconds
                // away.
                let over = recipe.connects && task.left().is_none();
                return (seen, (!over).then(|| e.to_string()));
            }
        }
    }
    (seen, None)
}

fn transaction(
    recipe: &Recipe,
    server: SocketAddr,
    stream: &mut Option<TcpStream>,
    answer: &mut [u8],
    left: Duration,
) -> io::Result<()> {
    if stream.is_none() {
        let patience = if recipe.connects { left } else { TIMEOUT };
        let new = TcpStream::connect_timeout(&server, patience)?;
        new.set_nodelay(true)?;
        new.set_read_timeout(Some(patience))?;
        *stream = Some(new);
    }
    let Some(connection) = stream.as_mut() else {
        return Ok(());
    };
    connection.write_all(&[b'?'; REQUEST])?;
    connection.read_exact(answer)?;
    if recipe.connects {
        *stream = None;
    }
    Ok(())
}
