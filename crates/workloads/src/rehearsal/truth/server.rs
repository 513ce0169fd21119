//! The server's process, in its two shapes.

use std::ffi::OsString;
use std::io::{self, BufRead, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use fingerpost_sys::trace::monotonic_ns;
use rustix::event::{PollFd, PollFlags, poll};

use super::basic::Post;
use super::log::{Log, Served, own_tid};
use super::stages::Stages;
use super::{Mix, Shape};
use crate::rehearsal::recipe::{REQUEST, Recipe};
use crate::worker::{Ended, refusal};

/// The worker's name.
pub const NAME: &str = "rehearsal-truth";

/// Waits for a line, prints its port, then its log as a line of JSON for each further line.
///
/// Arguments: the recipe, the directory, the peer's port.
pub fn main(args: Vec<OsString>) -> Ended {
    let [recipe, dir, peer] = args.as_slice() else {
        return Err("a recipe, a directory and a port are needed".into());
    };
    let recipe: Recipe = serde_json::from_str(&recipe.to_string_lossy())?;
    let mix = recipe.mix.ok_or("the recipe has no mix")?;
    let peer = peer.to_string_lossy().parse()?;
    let mut lines = io::stdin().lock().lines();
    let _ = lines.next().transpose()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let shared = Arc::new(Shared {
        mix,
        answer: recipe.answer.max(1),
        dir: PathBuf::from(&dir),
        peer,
        log: Log::default(),
        asked: Post::default(),
        clients: recipe.clients,
    });
    let accepting = Arc::clone(&shared);
    thread::Builder::new()
        .name("acceptor".to_owned())
        .spawn(move || {
            let end = match accepting.mix.shape {
                Shape::Threads => thread_per_connection(&listener, &accepting),
                Shape::Pool => loop_and_pool(&listener, &accepting),
            };
            println!(
                "{}",
                refusal(end.err().map_or_else(String::new, |e| e.to_string()))
            );
            std::process::exit(1);
        })?;
    println!("{port}");
    for line in lines {
        line?;
        println!("{}", serde_json::to_string(&shared.log.take())?);
    }
    Ok(())
}

/// What all threads share.
struct Shared {
    mix: Mix,
    answer: usize,
    dir: PathBuf,
    peer: u16,
    log: Log,
    asked: Post<Asked>,
    clients: usize,
}

/// A request that was read.
struct Asked {
    stream: Arc<TcpStream>,
    received: u64,
}

fn thread_per_connection(listener: &TcpListener, shared: &Arc<Shared>) -> io::Result<()> {
    for number in 0.. {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let shared = Arc::clone(shared);
        thread::Builder::new().spawn(move || {
            let stream = Arc::new(stream);
            let mut worker = Worker::new(&shared, number)?;
            // A client that has left is no error.
            while let Some(asked) = ask(&stream)? {
                worker.answer(&asked)?;
            }
            io::Result::Ok(())
        })?;
    }
    Ok(())
}

/// Reads a request; nothing at the end of the stream.
fn ask(stream: &Arc<TcpStream>) -> io::Result<Option<Asked>> {
    let mut request = [0; REQUEST];
    match (&**stream).read_exact(&mut request) {
        Ok(()) => Ok(Some(Asked {
            stream: Arc::clone(stream),
            received: monotonic_ns(),
        })),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

/// One thread polls the listener and every connection and reads; as many threads as clients do the rest.
fn loop_and_pool(listener: &TcpListener, shared: &Arc<Shared>) -> io::Result<()> {
    for number in 0..shared.clients as u64 {
        let shared = Arc::clone(shared);
        thread::Builder::new()
            .name("pool".to_owned())
            .spawn(move || {
                let Ok(mut worker) = Worker::new(&shared, number) else {
                    return;
                };
                loop {
                    // A client that has left is no error.
                    let _ = worker.answer(&shared.asked.take());
                }
            })?;
    }
    let mut streams: Vec<Arc<TcpStream>> = Vec::new();
    loop {
        let mut fds: Vec<PollFd> = vec![PollFd::new(listener, PollFlags::IN)];
        fds.extend(streams.iter().map(|s| PollFd::new(&**s, PollFlags::IN)));
        poll(&mut fds, None)?;
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut gone = Vec::new();
        for (i, stream) in streams.iter().enumerate().filter(|(i, _)| ready[i + 1]) {
            match ask(stream) {
                Ok(Some(asked)) => shared.asked.leave(asked),
                _ => gone.push(i),
            }
        }
        gone.into_iter().rev().for_each(|i| drop(streams.remove(i)));
        if ready[0] {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            streams.push(Arc::new(stream));
        }
    }
}

/// A thread that does requests.
struct Worker<'a> {
    shared: &'a Shared,
    stages: Stages,
    random: fastrand::Rng,
    answer: Vec<u8>,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared, number: u64) -> io::Result<Worker<'a>> {
        let random =
            fastrand::Rng::with_seed(shared.mix.seed.wrapping_mul(1_000_003).wrapping_add(number));
        Ok(Worker {
            shared,
            stages: Stages::new(&shared.dir, shared.peer)?,
            random,
            answer: vec![b'x'; shared.answer],
        })
    }

    fn answer(&mut self, asked: &Asked) -> io::Result<()> {
        let request = self.shared.mix.request(&mut self.random);
        let stages = request
            .into_iter()
            .map(|order| self.stages.stage(order))
            .collect::<io::Result<Vec<_>>>()?;
        let answered = monotonic_ns();
        (&*asked.stream).write_all(&self.answer)?;
        self.shared.log.add(Served {
            tid: own_tid(),
            received: asked.received,
            answered,
            stages,
        });
        self.stages.forget()
    }
}
