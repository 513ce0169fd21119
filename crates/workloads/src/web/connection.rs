//! One connection of a generator: a socket that is never waited for, and how far its request has come.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType};

use super::http::Parser;
use super::protocol::{Load, now_ns};
use super::tally::Times;

/// How far the request of a connection has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// No request under way.
    #[default]
    Idle,
    /// The connection is being established.
    Connecting,
    /// The request is being sent; so many bytes are out.
    Sending(usize),
    /// The answer is awaited or being read.
    Receiving,
    /// Pausing after an error.
    Pausing,
}

/// A connection, or the place for one.
#[derive(Debug, Default)]
pub struct Connection {
    /// The socket, when there is one.
    pub socket: Option<OwnedFd>,
    /// How far its request has come.
    pub stage: Stage,
    /// Reads its answers.
    pub parser: Parser,
    /// When its request began.
    pub times: Times,
    /// When it began to ask: for a request on a new connection when that began to be made, which is what an observer of
    /// sockets can see.
    pub asked: u64,
    /// Counts the sockets that have been in this place, so that an event of a former one is known.
    pub generation: u32,
    /// Whether it ever had an answer.
    pub answered: bool,
}

impl Connection {
    /// Whether a request is under way.
    pub fn busy(&self) -> bool {
        matches!(
            self.stage,
            Stage::Connecting | Stage::Sending(_) | Stage::Receiving
        )
    }

    /// Closes the socket. Closing takes it out of the epoll set.
    pub fn close(&mut self) {
        self.socket = None;
        self.parser.reset();
    }

    /// Makes a socket, begins to connect, and sends at once where that is already possible: on loopback the handshake
    /// is done within `connect`, so that this saves a wake-up per connection.
    pub fn open(
        &mut self,
        epoll: &OwnedFd,
        index: u32,
        load: &Load,
        request: &[u8],
    ) -> Result<(), Errno> {
        self.close();
        let family = if load.address.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let socket = net::socket_with(
            family,
            SocketType::STREAM,
            SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            None,
        )?;
        if load.spread {
            let source = Ipv4Addr::new(127, 0, 0, 1 + (index % 100) as u8);
            net::bind(&socket, &SocketAddr::new(IpAddr::V4(source), 0))?;
        }
        self.asked = now_ns();
        match net::connect(&socket, &load.address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(e) => return Err(e),
        }
        self.generation = self.generation.wrapping_add(1);
        self.stage = Stage::Connecting;
        match net::send(&socket, request, SendFlags::NOSIGNAL) {
            Ok(n) if n == request.len() => self.stage = Stage::Receiving,
            Ok(n) => self.stage = Stage::Sending(n),
            Err(Errno::AGAIN | Errno::NOTCONN) => {}
            Err(e) => return Err(e),
        }
        let mut flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        if load.keep_alive || self.stage != Stage::Receiving {
            flags |= epoll::EventFlags::OUT;
        }
        epoll::add(
            epoll,
            &socket,
            epoll::EventData::new_u64(token(index, self.generation)),
            flags,
        )?;
        self.socket = Some(socket);
        Ok(())
    }

    /// Sends what is left of the request.
    pub fn send(&mut self, request: &[u8]) -> Result<(), Errno> {
        let Some(socket) = &self.socket else {
            return Ok(());
        };
        let mut out = if let Stage::Sending(n) = self.stage {
            n
        } else {
            0
        };
        while out < request.len() {
            match net::send(socket, &request[out..], SendFlags::NOSIGNAL) {
                Ok(n) => out += n,
                Err(Errno::AGAIN) => {
                    self.stage = Stage::Sending(out);
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(e),
            }
        }
        self.stage = Stage::Receiving;
        Ok(())
    }

    /// The error that a socket holds, such as a refused connection.
    pub fn error(&self) -> Option<Errno> {
        let socket = self.socket.as_ref()?;
        net::sockopt::socket_error(socket).ok()?.err()
    }
}

/// What epoll tells us of a connection: its place and which of the sockets in that place.
pub fn token(index: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

/// The reverse of [`token`].
pub fn untoken(token: u64) -> (usize, u32) {
    (token as u32 as usize, (token >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_the_place_and_the_socket_in_it() {
        assert_eq!(untoken(token(7, 9)), (7, 9));
        assert_eq!(untoken(token(u32::MAX, 0)), (u32::MAX as usize, 0));
    }
}
