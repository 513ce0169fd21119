//! The other process that the server asks over loopback: a thread a connection, that sleeps or computes before it
//! answers.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use fingerpost_sys::trace::monotonic_ns;

use super::basic::compute_until;
use crate::worker::Ended;

/// The worker's name.
pub const NAME: &str = "rehearsal-peer";
/// Bytes of a question: microseconds, and whether to compute.
const QUESTION: usize = 5;
/// Bytes of an answer.
pub const ANSWER: usize = 32;

/// Waits for a line, prints its port, serves until it is killed.
pub fn main(_: Vec<OsString>) -> Ended {
    io::stdin().read_line(&mut String::new())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        // A server that has ended is no error.
        std::thread::Builder::new().spawn(move || drop(converse(&stream)))?;
    }
}

fn converse(mut stream: &TcpStream) -> io::Result<()> {
    let mut question = [0; QUESTION];
    loop {
        stream.read_exact(&mut question)?;
        let [a, b, c, d, computes] = question;
        let micros = u64::from(u32::from_le_bytes([a, b, c, d]));
        if computes != 0 {
            compute_until(monotonic_ns() + micros * 1000);
        } else {
            std::thread::sleep(Duration::from_micros(micros));
        }
        stream.write_all(&[b'x'; ANSWER])?;
    }
}
