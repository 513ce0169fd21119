//! A small static web server: GET and HEAD, persistent connections, one event loop per worker thread.
//!
//! What it serves is a [`Content`]: a directory here, an object database elsewhere. It is the default server of the web
//! workload, where it always is a process of its own ([`main`]).

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime};

use fingerpost_odb::media_type;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags};
use rustix::time::Timespec;

use super::content::{Body, Content, Directory};
use super::request::{self, Parsed};
use crate::worker::{Ended, say};

/// The worker's name.
pub const NAME: &str = "web-server";

/// A connection without a request for this long is closed.
const IDLE: Duration = Duration::from_secs(75);
const LISTENER: u64 = u64::MAX;
const BUFFER: usize = 16 << 10;
/// Files up to this size are sent in one piece with their head.
const SMALL: u64 = 64 << 10;
/// Connections that one wake-up accepts, so that other workers get some and requests are not starved.
const ACCEPTS: usize = 16;

/// The process: `DIRECTORY WORKERS BACKLOG`. Serves a directory on a free port of 127.0.0.1, and prints `ready PORT`
/// when it answers.
pub fn main(args: Vec<OsString>) -> Ended {
    let [root, workers, backlog] = args.as_slice() else {
        return Err("it takes DIRECTORY WORKERS BACKLOG".into());
    };
    let number = |word: &OsString| {
        word.to_str()
            .and_then(|w| w.parse::<usize>().ok())
            .ok_or_else(|| format!("{} is no number", word.display()))
    };
    let (workers, backlog) = (number(workers)?, number(backlog)?);
    let content = Directory::open(root.as_ref())
        .map_err(|e| format!("cannot serve {}: {e}", root.display()))?;
    serve_on_free_port(workers, backlog as i32, &content)
}

/// Serves on a free port of 127.0.0.1, and says `ready PORT` when it answers.
pub fn serve_on_free_port(workers: usize, backlog: i32, content: &dyn Content) -> Ended {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = listen(address, backlog).map_err(|e| format!("cannot listen: {e}"))?;
    let port = listener
        .local_addr()
        .map_err(|e| format!("cannot tell the port: {e}"))?
        .port();
    say(&format!("ready {port}")).map_err(|e| format!("cannot tell that it is ready: {e}"))?;
    Ok(serve(&listener, workers, content).map_err(|e| format!("cannot serve: {e}"))?)
}

/// A listener that never blocks, with a backlog of this length.
fn listen(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    // The standard library listens with a backlog of its own choice; listening again changes it.
    rustix::net::listen(&listener, backlog)?;
    Ok(listener)
}

/// Serves with this many worker threads until one of them fails.
fn serve(listener: &TcpListener, workers: usize, content: &dyn Content) -> io::Result<()> {
    std::thread::scope(|scope| {
        for _ in 1..workers {
            // Where the system refuses another thread (RLIMIT_NPROC), the process ends, for the others serve without
            // end.
            if let Err(e) = std::thread::Builder::new().spawn_scoped(scope, || {
                Worker::new(listener, content).and_then(Worker::run)
            }) {
                eprintln!("the embedded web server: cannot start {workers} worker threads: {e}");
                std::process::exit(1);
            }
        }
        Worker::new(listener, content).and_then(Worker::run)
    })
}

/// One event loop.
struct Worker<'a> {
    epoll: OwnedFd,
    listener: &'a TcpListener,
    content: &'a dyn Content,
    /// By descriptor number.
    connections: Vec<Option<Connection>>,
    buffer: Vec<u8>,
    date: Date,
}

struct Connection {
    socket: OwnedFd,
    /// What came and is not a whole request yet, or waits for an answer to be out.
    input: Vec<u8>,
    /// What is to be sent.
    output: Vec<u8>,
    sent: usize,
    /// What is to be sent after the output: a file, from an offset to an end.
    file: Option<(OwnedFd, u64, u64)>,
    close_after: bool,
    used: Instant,
}

impl<'a> Worker<'a> {
    fn new(listener: &'a TcpListener, content: &'a dyn Content) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // One waiting worker is woken for a connection, not all of them.
        epoll::add(
            &epoll,
            listener,
            epoll::EventData::new_u64(LISTENER),
            EventFlags::IN | EventFlags::EXCLUSIVE,
        )?;
        Ok(Worker {
            epoll,
            listener,
            content,
            connections: Vec::new(),
            buffer: vec![0; BUFFER],
            date: Date::default(),
        })
    }

    fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(512);
        let mut swept = Instant::now();
        loop {
            events.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                Some(&Timespec {
                    tv_sec: 5,
                    tv_nsec: 0,
                }),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            let now = Instant::now();
            self.date.renew(now);
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept(now)?,
                    number => self.on_event(number as usize, event.flags, now),
                }
            }
            if now - swept > Duration::from_secs(5) {
                swept = now;
                self.sweep(now);
            }
        }
    }

    fn accept(&mut self, now: Instant) -> io::Result<()> {
        for _ in 0..ACCEPTS {
            let socket = match rustix::net::accept_with(
                self.listener,
                SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            ) {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::CONNABORTED | Errno::INTR) => continue,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    // Connections must end before more can be taken; the queue keeps them meanwhile.
                    std::thread::sleep(Duration::from_millis(1));
                    return Ok(());
                }
                Err(e) => return Err(e.into()),
            };
            let number = socket.as_raw_fd() as usize;
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(
                &self.epoll,
                &socket,
                epoll::EventData::new_u64(number as u64),
                flags,
            )?;
            if self.connections.len() <= number {
                self.connections.resize_with(number + 1, || None);
            }
            self.connections[number] = Some(Connection {
                socket,
                input: Vec::new(),
                output: Vec::new(),
                sent: 0,
                file: None,
                close_after: false,
                used: now,
            });
        }
        Ok(())
    }

    fn on_event(&mut self, number: usize, flags: EventFlags, now: Instant) {
        let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) else {
            return;
        };
        connection.used = now;
        let ends = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let lives = match connection.flush() {
            Ok(true) if connection.close_after => false,
            Ok(true) if ends || flags.contains(EventFlags::IN) || !connection.input.is_empty() => {
                connection.work(&mut self.buffer, self.content, &self.date.text, ends)
            }
            Ok(_) => !flags.intersects(EventFlags::HUP | EventFlags::ERR),
            Err(_) => false,
        };
        if !lives {
            self.connections[number] = None;
        }
    }

    fn sweep(&mut self, now: Instant) {
        for place in &mut self.connections {
            if place.as_ref().is_some_and(|c| now - c.used > IDLE) {
                *place = None;
            }
        }
    }
}

impl Connection {
    /// Reads and answers what is there; false when the connection is over. `ends` tells that the client's end of the
    /// stream is there too.
    fn work(&mut self, buffer: &mut [u8], content: &dyn Content, date: &str, ends: bool) -> bool {
        // What was left from before is answered first.
        let mut more = true;
        loop {
            match self.answer_all(content, date) {
                Ok(true) if self.close_after => return false,
                Ok(true) if more => {}
                other => return other.is_ok(),
            }
            match rustix::io::read(&self.socket, &mut *buffer) {
                Ok(0) => return false,
                Ok(n) => {
                    self.input.extend_from_slice(&buffer[..n]);
                    // A short read took all there was. To look again would let a client that answers fast keep the loop
                    // to itself while the others wait; what comes from now on makes an event of its own.
                    more = n == buffer.len() || ends;
                }
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Answers the requests that have come whole; true when all that is to be sent is out.
    fn answer_all(&mut self, content: &dyn Content, date: &str) -> io::Result<bool> {
        let mut at = 0;
        let mut out = true;
        while out && !self.close_after && at < self.input.len() {
            match request::parse(&self.input[at..]) {
                Parsed::Partial => break,
                Parsed::Bad(status) => {
                    self.close_after = true;
                    self.head(status, 0, "text/plain", date);
                    at = self.input.len();
                }
                Parsed::Whole(wanted) => {
                    at += wanted.length;
                    self.close_after = !wanted.keep_alive;
                    self.reply(&wanted, content, date);
                }
            }
            out = self.flush()?;
        }
        self.input.drain(..at);
        Ok(out)
    }

    /// Puts the answer to one request where it is sent from.
    fn reply(&mut self, wanted: &request::Wanted, content: &dyn Content, date: &str) {
        let body = match content.find(&wanted.path) {
            Ok(Some(body)) => body,
            Ok(None) => return self.head(404, 0, "text/plain", date),
            Err(_) => return self.head(500, 0, "text/plain", date),
        };
        let kind = media_type(&wanted.path, None);
        self.head(200, body.length(), kind, date);
        if wanted.head_only {
            return;
        }
        match body {
            Body::Bytes(bytes) => self.output.extend_from_slice(&bytes),
            Body::File(file, length) if length <= SMALL => self.read_whole(&file, length as usize),
            Body::File(file, length) => self.file = Some((file, 0, length)),
        }
    }

    fn head(&mut self, status: u16, length: u64, kind: &str, date: &str) {
        let reason = match status {
            200 => "OK",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            431 => "Request Header Fields Too Large",
            _ => "Internal Server Error",
        };
        let connection = if self.close_after {
            "Connection: close\r\n"
        } else {
            ""
        };
        // Writing to memory cannot fail.
        let _ = write!(
            self.output,
            "HTTP/1.1 {status} {reason}\r\nDate: {date}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
             {connection}\r\n"
        );
    }

    /// Appends a small file. One that became shorter meanwhile cannot be told in an answer whose head is out: the
    /// connection ends.
    fn read_whole(&mut self, file: &OwnedFd, length: usize) {
        let start = self.output.len();
        self.output.resize(start + length, 0);
        let mut at = start;
        while at < self.output.len() {
            match rustix::io::read(file, &mut self.output[at..]) {
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => break,
                Ok(n) => at += n,
            }
        }
        if at < self.output.len() {
            self.output.truncate(at);
            self.close_after = true;
        }
    }

    /// Sends what can be sent; true when all is out.
    fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.output.len() {
            match rustix::net::send(&self.socket, &self.output[self.sent..], SendFlags::NOSIGNAL) {
                Ok(n) => self.sent += n,
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.output.clear();
        self.sent = 0;
        if let Some((file, offset, end)) = &mut self.file {
            while *offset < *end {
                let left = (*end - *offset).min(1 << 30) as usize;
                match rustix::fs::sendfile(&self.socket, &*file, Some(offset), left) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return Ok(false),
                    Err(e) => return Err(e.into()),
                }
            }
        }
        self.file = None;
        Ok(true)
    }
}

/// The Date field, formatted once a second.
#[derive(Default)]
struct Date {
    text: String,
    renewed: Option<Instant>,
}

impl Date {
    fn renew(&mut self, now: Instant) {
        if self
            .renewed
            .is_none_or(|then| now - then >= Duration::from_secs(1))
        {
            self.text = httpdate::fmt_http_date(SystemTime::now());
            self.renewed = Some(now);
        }
    }
}
