//! A byte stream to a server, over a Unix socket or TCP, with a buffer to read from.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// Enough for most answers to come with one read.
const BUFFER: usize = 32 << 10;
/// No answer of ours is longer: a longer one is not from a database.
const LONGEST: usize = 64 << 20;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A Unix socket of a private server that runs as this user. It lies in a directory of that user's, where a link to
    /// another server's socket could stand, so the other side is asked who it is.
    Private(PathBuf, u32),
    /// A host and a port.
    Tcp(String, u16),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) | Address::Private(path, _) => write!(f, "{}", path.display()),
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

#[derive(Debug)]
enum Socket {
    /// With how long to wait for something to read.
    Unix(UnixStream, Timespec),
    Tcp(TcpStream),
}

impl Socket {
    fn unix(socket: UnixStream, patience: Duration) -> io::Result<Socket> {
        socket.set_write_timeout(Some(patience))?;
        Ok(Socket::Unix(socket, timespec(patience)))
    }

    /// Reads what there is, after waiting for it.
    fn read(&mut self, free: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(socket, patience) => {
                // Whoever sleeps in a read of a Unix stream is woken twice for each answer: already when the other side
                // takes the request, because that makes room to write, and goes back to sleep. `poll` is woken for what
                // it waits for. Here, on Linux 6.18, that is one switch of contexts instead of two, for one more system
                // call.
                if poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(patience))? == 0 {
                    return Err(Errno::AGAIN.into());
                }
                socket.read(free)
            }
            Socket::Tcp(socket) => socket.read(free),
        }
    }
}

/// A connected stream. Reading fills a buffer with as much as there is, so that a short answer costs one system call.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Whether what is sent goes out in two writes.
    split: bool,
}

impl Stream {
    /// Connects. A read that lasts longer than `patience` fails.
    pub fn connect(address: &Address, patience: Duration) -> io::Result<Stream> {
        let socket = match address {
            Address::Unix(path) => Socket::unix(UnixStream::connect(path)?, patience)?,
            Address::Private(path, uid) => {
                let socket = UnixStream::connect(path)?;
                let other = rustix::net::sockopt::socket_peercred(&socket)?.uid.as_raw();
                if other != *uid {
                    let sentence = format!(
                        "{} leads to a server of another user (uid {other})",
                        path.display()
                    );
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, sentence));
                }
                Socket::unix(socket, patience)?
            }
            Address::Tcp(host, port) => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    // Queries are small and answered one by one: waiting to fill a segment would add 40 ms to each.
                    match Stream::tcp(&address, CONNECT_DEADLINE, patience, false) {
                        Ok(stream) => return Ok(stream),
                        Err(e) => last = e,
                    }
                }
                return Err(last);
            }
        };
        Ok(Stream::over(socket))
    }

    /// Connects over TCP within so long. A read or write that lasts longer than `patience` fails. With `split` what is
    /// sent goes out in two writes, with Nagle's algorithm on.
    pub fn tcp(
        address: &SocketAddr,
        within: Duration,
        patience: Duration,
        split: bool,
    ) -> io::Result<Stream> {
        let socket = TcpStream::connect_timeout(address, within)?;
        socket.set_nodelay(!split)?;
        socket.set_read_timeout(Some(patience))?;
        socket.set_write_timeout(Some(patience))?;
        Ok(Stream {
            split,
            ..Stream::over(Socket::Tcp(socket))
        })
    }

    fn over(socket: Socket) -> Stream {
        Stream {
            socket,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            split: false,
        }
    }

    /// Whether the stream stays on this machine and only the two ends can read it.
    pub fn is_unix(&self) -> bool {
        matches!(self.socket, Socket::Unix(..))
    }

    /// Sends everything.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.socket {
            Socket::Unix(s, _) => s.write_all(bytes),
            Socket::Tcp(s) if self.split => {
                let (first, rest) = bytes.split_at(bytes.len() / 2);
                s.write_all(first).and_then(|()| s.write_all(rest))
            }
            Socket::Tcp(s) => s.write_all(bytes),
        }
    }

    /// What has come, after waiting for it where nothing has: for answers that say within themselves where they end.
    pub fn some(&mut self) -> io::Result<&[u8]> {
        self.peek(1)?;
        self.take(self.end - self.start)
    }

    /// The next `n` bytes without taking them, reading more when needed.
    #[inline]
    pub fn peek(&mut self, n: usize) -> io::Result<&[u8]> {
        while self.end - self.start < n {
            self.fill(n)?;
        }
        Ok(&self.buffer[self.start..self.start + n])
    }

    /// The next `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> io::Result<&[u8]> {
        self.peek(n)?;
        self.start += n;
        Ok(&self.buffer[self.start - n..self.start])
    }

    /// Reads once, having made room for `n` bytes from `start` on.
    #[cold]
    fn make_room(&mut self, n: usize) -> io::Result<()> {
        if n > LONGEST {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("an answer of {n} bytes"),
            ));
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < n {
            self.buffer.resize(n.next_power_of_two(), 0);
        }
        Ok(())
    }

    fn fill(&mut self, n: usize) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.start + n > self.buffer.len() {
            self.make_room(n)?;
        }
        let free = &mut self.buffer[self.end..];
        let read = loop {
            match self.socket.read(free) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        if read == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection",
            ));
        }
        self.end += read;
        Ok(())
    }
}

fn timespec(length: Duration) -> Timespec {
    Timespec {
        tv_sec: length.as_secs() as i64,
        tv_nsec: i64::from(length.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::connection::ANSWER_DEADLINE;

    fn pair(patience: Duration) -> (UnixStream, Stream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (
            theirs,
            Stream {
                socket: Socket::Unix(ours, timespec(patience)),
                buffer: vec![0; 16],
                start: 0,
                end: 0,
                split: false,
            },
        )
    }

    #[test]
    fn bytes_come_in_order_whatever_pieces_they_arrive_in() {
        let (mut server, mut stream) = pair(ANSWER_DEADLINE);
        let sent: Vec<u8> = (0..=255).cycle().take(5000).map(|b: u16| b as u8).collect();
        let copy = sent.clone();
        let writer = std::thread::spawn(move || {
            copy.chunks(7)
                .for_each(|chunk| server.write_all(chunk).unwrap())
        });
        let mut got = Vec::new();
        for n in [1, 15, 16, 17, 40, 1, 900, 3, 2, 4005] {
            let peeked = stream.peek(n).unwrap().to_vec();
            assert_eq!(peeked, stream.take(n).unwrap());
            got.extend(peeked);
        }
        writer.join().unwrap();
        assert_eq!(got, sent);
        assert_eq!(
            stream.take(1).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn a_private_servers_socket_must_be_its_users() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let _server = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let uid = rustix::process::geteuid().as_raw();
        assert!(
            Stream::connect(&Address::Private(path.clone(), uid), ANSWER_DEADLINE)
                .unwrap()
                .is_unix()
        );
        let refused =
            Stream::connect(&Address::Private(path, uid + 1), ANSWER_DEADLINE).unwrap_err();
        assert!(refused.to_string().contains("another user"), "{refused}");
    }

    #[test]
    fn a_server_that_does_not_answer_is_given_up() {
        let (_server, mut stream) = pair(Duration::from_millis(5));
        assert_eq!(
            stream.take(1).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
    }

    #[test]
    fn an_answer_that_nobody_could_have_sent_is_refused() {
        let (_server, mut stream) = pair(ANSWER_DEADLINE);
        assert_eq!(
            stream.take(1 << 30).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }
}
