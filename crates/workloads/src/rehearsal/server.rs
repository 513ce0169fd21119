//! The server of the rehearsal: a thread a connection, each transaction as the recipe says.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fingerpost_sys::memory::Fresh;
use rustix::fs::OFlags;

use super::recipe::{REQUEST, Recipe};
use super::truth::basic::nameless;
use crate::closed_loop::{in_threads, work};
use crate::worker::Ended;

/// The worker's name.
pub const NAME: &str = "rehearsal-server";

/// Threads that accept, where each transaction has a connection of its own.
const ACCEPTORS: usize = 2;

const PAGE: usize = 4096;

/// Where memory is short, the kernel must write pages out as fast as we fill them, or it kills us: we give it time
/// after so many bytes.
const FILLED_AT_ONCE: usize = 512 << 10;
/// So much time.
const PAUSE: Duration = Duration::from_millis(4);

/// Waits for a line, prints its port, serves until it is killed.
pub fn main(args: Vec<OsString>) -> Ended {
    let [recipe, dir] = args.as_slice() else {
        return Err("a recipe and a directory are needed".into());
    };
    let recipe: Recipe = serde_json::from_str(&recipe.to_string_lossy())?;
    // Nothing is touched before the parent has put us into our control group.
    io::stdin().read_line(&mut String::new())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // Listening once more only sets the length of the queue.
    rustix::net::listen(&listener, recipe.backlog)?;
    let shared = Arc::new(Shared {
        recipe,
        dir: PathBuf::from(dir),
        lock: Mutex::new(()),
    });
    println!("{}", listener.local_addr()?.port());
    let serve = if shared.recipe.connects {
        accept_one_by_one
    } else {
        thread_per_connection
    };
    Ok(serve(&listener, &shared)?)
}

/// A connection's part of the memory that the server holds.
fn hold(recipe: &Recipe) -> io::Result<Option<Fresh>> {
    if recipe.held_mib == 0 {
        return Ok(None);
    }
    let mut held = Fresh::map((recipe.held_mib << 20) / recipe.clients.max(1), false)?;
    for at in (0..held.bytes()).step_by(PAGE) {
        held.touch(at);
        if at % FILLED_AT_ONCE == 0 {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(Some(held))
}

fn thread_per_connection(listener: &TcpListener, shared: &Arc<Shared>) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept()?;
        // Small answers in one write need no patience; two small writes are what Nagle's algorithm is about.
        stream.set_nodelay(!shared.recipe.split)?;
        let shared = Arc::clone(shared);
        std::thread::Builder::new().spawn(move || {
            let Ok(mut connection) = Connection::new(&shared) else {
                return;
            };
            // A client that has left is no error.
            while connection.transaction(&stream).is_ok() {}
        })?;
    }
}

fn accept_one_by_one(listener: &TcpListener, shared: &Arc<Shared>) -> io::Result<()> {
    in_threads("the rehearsal's server", ACCEPTORS, || {
        let Ok(mut connection) = Connection::new(shared) else {
            return;
        };
        while let Ok((stream, _)) = listener.accept() {
            // A client that gave up meanwhile is no error.
            let _ = connection.transaction(&stream);
        }
    })
}

/// What all connections share.
struct Shared {
    recipe: Recipe,
    dir: PathBuf,
    lock: Mutex<()>,
}

/// What one connection has of its own.
struct Connection<'a> {
    shared: &'a Shared,
    answer: Vec<u8>,
    held: Option<Fresh>,
    file: Option<File>,
    served: u32,
    random: fastrand::Rng,
    slots: Vec<u64>,
}

impl<'a> Connection<'a> {
    fn new(shared: &'a Shared) -> io::Result<Self> {
        let answer = vec![b'x'; shared.recipe.answer.max(2)];
        let held = hold(&shared.recipe)?;
        Ok(Connection {
            shared,
            answer,
            held,
            file: None,
            served: 0,
            random: fastrand::Rng::new(),
            slots: (1..=64).collect(),
        })
    }

    fn transaction(&mut self, mut stream: &TcpStream) -> io::Result<()> {
        let mut request = [0; REQUEST];
        stream.read_exact(&mut request)?;
        self.work()?;
        let middle = if self.shared.recipe.split {
            1
        } else {
            self.answer.len()
        };
        stream.write_all(&self.answer[..middle])?;
        if middle < self.answer.len() {
            stream.write_all(&self.answer[middle..])?;
        }
        Ok(())
    }

    fn work(&mut self) -> io::Result<()> {
        let recipe = &self.shared.recipe;
        {
            let _held = recipe.lock.then(|| {
                self.shared
                    .lock
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
            });
            work(recipe.work);
            if recipe.pause_us > 0 {
                std::thread::sleep(Duration::from_micros(recipe.pause_us));
            }
        }
        bypass(&mut self.slots, recipe.stores);
        for _ in 0..recipe.calls {
            std::hint::black_box(std::os::unix::process::parent_id());
        }
        if recipe.fresh_kib > 0 {
            let mut fresh = Fresh::map(recipe.fresh_kib << 10, true)?;
            (0..fresh.bytes())
                .step_by(PAGE)
                .for_each(|at| fresh.touch(at));
        }
        self.touch_held();
        self.sync()
    }

    /// Reads, for where memory is short a page that was only read can be let go at once. Among pages that must all be
    /// written out again the kernel may find none, and kills the server.
    fn touch_held(&mut self) {
        let Some(held) = &self.held else { return };
        for _ in 0..self.shared.recipe.touches {
            std::hint::black_box(held.look(self.random.usize(..held.bytes() / PAGE) * PAGE));
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let every = self.shared.recipe.sync_every;
        self.served += 1;
        if every == 0 || !self.served.is_multiple_of(every) {
            return Ok(());
        }
        if self.file.is_none() {
            // Unnamed from here on: nothing is left behind however we end.
            self.file = Some(nameless(&self.shared.dir, "log", OFlags::empty())?);
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.write_all(&[b'x'; PAGE])?;
        file.sync_data()
    }
}

/// Stores to an address that hangs on a division, each followed by loads from others. A CPU that may speculate lets the
/// loads pass the store; one that may not holds them back until the division is done.
fn bypass(slots: &mut [u64], times: u32) {
    let mut sum = 7_u64;
    let mut divisor = std::hint::black_box(3_u64);
    for i in 0..times as usize {
        let late = (sum.wrapping_mul(0x9e37_79b9) / divisor) as usize % 32;
        slots[late] = sum;
        // These lie in the other half, so that no store ever meets them.
        let a = slots[32 + i % 32];
        let b = slots[32 + (a as usize + i) % 32];
        sum = sum.wrapping_add(slots[32 + (b as usize) % 32]);
        divisor = 3 + (sum & 1);
    }
    std::hint::black_box(sum);
}
