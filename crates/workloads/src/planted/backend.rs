//! A web server behind a proxy, which answers as slowly as it is told: a peer of the server under load, and no part of
//! it.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::closed_loop::work;
use crate::worker::{Ended, refusal};

/// The worker's name.
pub const NAME: &str = "planted-backend";
/// Bytes of an answer's body.
const BODY: usize = 1024;
/// Bytes of a request's head that are read at most.
const HEAD: usize = 16 << 10;

/// What it does before each answer.
#[derive(Default)]
struct Manner {
    /// Microseconds that it waits.
    delay_us: AtomicU32,
    /// Turns of a loop of arithmetic.
    work: AtomicU32,
    /// Microseconds between the two halves of the body.
    gap_us: AtomicU32,
}

/// Says its port to "go"; then takes "delay N", "work N" and "gap N", each answered with "ok".
pub fn main(_args: Vec<OsString>) -> Ended {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let manner = Arc::new(Manner::default());
    let shared = manner.clone();
    std::thread::Builder::new().spawn(move || {
        for stream in listener.incoming().flatten() {
            let manner = shared.clone();
            // Where the system refuses a thread, this connection is closed.
            let _ = std::thread::Builder::new()
                .stack_size(256 << 10)
                .spawn(move || serve(&stream, &manner));
        }
    })?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let number = |word: &str| line.strip_prefix(word).and_then(|n| n.trim().parse().ok());
        if line == "go" {
            println!("{port}");
            continue;
        }
        let told = [
            ("delay ", &manner.delay_us),
            ("work ", &manner.work),
            ("gap ", &manner.gap_us),
        ];
        match told
            .iter()
            .find_map(|(word, place)| Some((number(word)?, place)))
        {
            Some((value, place)) => {
                place.store(value, Ordering::Relaxed);
                println!("ok");
            }
            None => println!("{}", refusal("say go, delay N, work N or gap N")),
        }
    }
    Ok(())
}

/// Answers one request after another, until the connection ends or something is wrong.
fn serve(stream: &TcpStream, manner: &Manner) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(HEAD, stream);
    let body = vec![b'b'; BODY];
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\nContent-Type: text/plain\r\n\r\n")
            .into_bytes();
    let whole = [head, body].concat();
    let pause = |us: &AtomicU32| match us.load(Ordering::Relaxed) {
        0 => {}
        us => std::thread::sleep(Duration::from_micros(us.into())),
    };
    loop {
        let mut read = 0;
        loop {
            let mut line = Vec::new();
            match io::Read::take(&mut reader, HEAD as u64).read_until(b'\n', &mut line)? {
                0 => return Ok(()),
                n => read += n,
            }
            if line == b"\r\n" {
                break;
            }
            if read > HEAD {
                return Ok(());
            }
        }
        work(manner.work.load(Ordering::Relaxed));
        pause(&manner.delay_us);
        let mut writer = stream;
        if manner.gap_us.load(Ordering::Relaxed) == 0 {
            writer.write_all(&whole)?;
            continue;
        }
        let (first, rest) = whole.split_at(whole.len() / 2);
        writer.write_all(first)?;
        pause(&manner.gap_us);
        writer.write_all(rest)?;
    }
}
