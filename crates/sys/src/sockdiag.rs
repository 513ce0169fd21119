//! Every TCP and Unix stream socket of this network namespace with what waits in it, by `NETLINK_SOCK_DIAG`.
//!
//! A dump of binary messages, which takes a fraction of what the text of `/proc/net/tcp` does.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::net::netlink;

use crate::netlink::{Netlink, REQUEST_DUMP, attributes, u32_at, u64_at};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const TCPDIAG_GETSOCK: u16 = 18;
/// Where `struct inet_diag_req` has the wanted states: behind four bytes and a `struct inet_diag_sockid`.
const OLD_STATES: usize = 4 + 48;
const INET_DIAG_INFO: u16 = 2;
const UNIX_NAME: u16 = 0;
const UNIX_PEER: u16 = 2;
const UNIX_RQLEN: u16 = 4;
/// Name, peer and queue lengths.
const UNIX_SHOW: u32 = 1 | 4 | 0x10;
/// The state of a connected socket, and of one that listens.
pub const ESTABLISHED: u8 = 1;
/// The state of a socket whose connection is not made yet: its first segment was sent, and nothing came back.
pub const CONNECTING: u8 = 2;
/// See [`ESTABLISHED`].
pub const LISTEN: u8 = 10;
/// States in which a socket still has, or receives, what the other end sent (`FIN_WAIT1`, `FIN_WAIT2`, `CLOSE_WAIT`,
/// `LAST_ACK`, `CLOSING`).
const CLOSING: [u8; 5] = [4, 5, 8, 9, 11];
/// Of these, and of `TIME_WAIT`, the ones in which the other end has sent its last byte: that end is counted as a byte
/// received.
const OTHER_END_DONE: [u8; 3] = [8, 9, 11];

/// A TCP socket.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tcp {
    /// [`ESTABLISHED`], [`CONNECTING`] or [`LISTEN`].
    pub state: u8,
    /// Local port.
    pub port: u16,
    /// Port of the other end; 0 for a listener.
    pub peer: u16,
    /// The inode, as `/proc/PID/fd` shows it; 0 while nobody has accepted the connection.
    pub inode: u32,
    /// Bytes that wait to be read; for a listener, connections that wait to be accepted.
    pub unread: u32,
    /// For a listener, how many may wait.
    pub backlog: u32,
    /// Bytes written and not yet sent.
    pub unsent: u32,
    /// Bytes sent for the first time since the connection began.
    pub sent: u64,
    /// Bytes received in order.
    pub received: u64,
    /// Smoothed round trip in microseconds.
    pub rtt_us: u32,
    /// The least round trip of the last minutes in microseconds, the handshake's included; 0 where it is not known.
    pub least_rtt_us: u32,
    /// What the kernel calls it: no other socket had this number since the machine began.
    pub cookie: u64,
    /// Address of this end; nothing where the kernel wrote none that is known.
    pub local: Option<IpAddr>,
    /// Address of the other end.
    pub remote: Option<IpAddr>,
    /// Milliseconds, to the kernel's tick, since it sent data last; of one that sent none, since it was connected.
    pub since_sent_ms: u32,
    /// The same since data came in.
    pub since_received_ms: u32,
    /// The same since anything came in that acknowledges.
    pub since_acknowledged_ms: u32,
    /// Segments with data that came in and went out; the kernel counts them beyond 32 bits from 0 again.
    pub data_segments: [u32; 2],
}

impl Tcp {
    /// The address of this end, where it is known.
    pub fn local_end(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.local?, self.port))
    }

    /// The address of the other end, where it is known.
    pub fn remote_end(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.remote?, self.peer))
    }
}

/// A Unix stream socket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unix {
    /// [`ESTABLISHED`] or [`LISTEN`].
    pub state: u8,
    /// The inode.
    pub inode: u32,
    /// The other end's inode; 0 where there is none.
    pub peer: u32,
    /// The name it is bound to; an accepted socket has its listener's.
    pub name: Vec<u8>,
    /// Bytes that wait to be read; for a listener, connections that wait to be accepted.
    pub unread: u32,
}

/// An open connection to the kernel's socket diagnosis.
pub struct SockDiag(Netlink);

impl SockDiag {
    /// Opens it. Works without root; sockets of other users are shown too.
    pub fn open() -> io::Result<SockDiag> {
        Netlink::open(Some(netlink::SOCK_DIAG), 256 << 10).map(SockDiag)
    }

    /// Connected, connecting and listening TCP sockets of both IP versions, with byte counts and round trips. The
    /// kernel walks through its table of connections for it, which is as large as the machine's memory says: a
    /// millisecond and more.
    pub fn tcp(&mut self, take: impl FnMut(Tcp)) -> io::Result<()> {
        self.ask_tcp(&[ESTABLISHED, CONNECTING, LISTEN], true, take)
    }

    /// Listening TCP sockets of both IP versions: some microseconds.
    pub fn listening(&mut self, take: impl FnMut(Tcp)) -> io::Result<()> {
        self.ask_tcp(&[LISTEN], false, take)
    }

    /// Bytes that the connections to these ports have received that are there now.
    pub fn received(&mut self, ports: &HashSet<u16>) -> io::Result<u64> {
        let (mut sum, states) = (0, [&[ESTABLISHED], &CLOSING[..]].concat());
        self.ask_tcp(&states, true, |s| {
            if ports.contains(&s.port) {
                sum += s
                    .received
                    .saturating_sub(OTHER_END_DONE.contains(&s.state).into());
            }
        })?;
        Ok(sum)
    }

    fn ask_tcp(&mut self, states: &[u8], info: bool, mut take: impl FnMut(Tcp)) -> io::Result<()> {
        let states = states.iter().fold(0u32, |mask, state| mask | 1 << state);
        // The older request, which is of no one family: by the newer one, the kernel walks through its table once for
        // each.
        let mut request = vec![0, 0, 0, if info { 1 << (INET_DIAG_INFO - 1) } else { 0 }];
        request.resize(OLD_STATES, 0);
        request.extend(states.to_ne_bytes());
        request.extend([0; 4]);
        self.0
            .ask(TCPDIAG_GETSOCK, REQUEST_DUMP, &request, &mut |body| {
                _ = parse_tcp(body).map(&mut take)
            })
    }

    /// Connected and listening Unix sockets.
    pub fn unix(&mut self, mut take: impl FnMut(Unix)) -> io::Result<()> {
        // struct unix_diag_req: family, states, inode, what to show, cookie.
        let (family, states) = (
            [libc::AF_UNIX as u8, 0, 0, 0],
            1u32 << ESTABLISHED | 1 << LISTEN,
        );
        let request = [
            family,
            states.to_ne_bytes(),
            [0; 4],
            UNIX_SHOW.to_ne_bytes(),
            [0; 4],
            [0; 4],
        ]
        .concat();
        self.0
            .ask(SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, &request, &mut |body| {
                _ = parse_unix(body).map(&mut take)
            })
    }
}

/// `struct inet_diag_msg` and, where it follows, `struct tcp_info`.
fn parse_tcp(body: &[u8]) -> Option<Tcp> {
    let be16 = |at: usize| {
        body.get(at..at + 2)
            .map(|b| u16::from_be_bytes([b[0], b[1]]))
    };
    let mut socket = Tcp {
        state: *body.get(1)?,
        port: be16(4)?,
        peer: be16(6)?,
        unread: u32_at(body, 56)?,
        backlog: u32_at(body, 60)?,
        inode: u32_at(body, 68)?,
        cookie: u64_at(body, 44)?,
        local: address(*body.first()?, body.get(8..24)?),
        remote: address(*body.first()?, body.get(24..40)?),
        ..Tcp::default()
    };
    for (_, data) in attributes(body.get(72..)?).filter(|(kind, _)| *kind == INET_DIAG_INFO) {
        socket.rtt_us = u32_at(data, 68).unwrap_or(0);
        socket.data_segments = [152, 156].map(|at| u32_at(data, at).unwrap_or(0));
        socket.since_sent_ms = u32_at(data, 44).unwrap_or(0);
        socket.since_received_ms = u32_at(data, 52).unwrap_or(0);
        socket.since_acknowledged_ms = u32_at(data, 56).unwrap_or(0);
        // The kernel has all ones before the first acknowledgement.
        socket.least_rtt_us = u32_at(data, 148).filter(|us| *us != u32::MAX).unwrap_or(0);
        socket.received = u64_at(data, 128).unwrap_or(0);
        socket.unsent = u32_at(data, 144).unwrap_or(0);
        socket.sent = u64_at(data, 200)
            .unwrap_or(0)
            .saturating_sub(u64_at(data, 208).unwrap_or(0));
    }
    Some(socket)
}

/// An address of `struct inet_diag_sockid`; one of IPv4 within IPv6 is one of IPv4.
fn address(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    match i32::from(family) {
        libc::AF_INET => {
            let four: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
            Some(Ipv4Addr::from(four).into())
        }
        libc::AF_INET6 => {
            let all: [u8; 16] = bytes.try_into().ok()?;
            Some(IpAddr::from(Ipv6Addr::from(all)).to_canonical())
        }
        _ => None,
    }
}

/// `struct unix_diag_msg` and its attributes.
fn parse_unix(body: &[u8]) -> Option<Unix> {
    let mut socket = Unix {
        state: *body.get(2)?,
        inode: u32_at(body, 4)?,
        ..Unix::default()
    };
    for (kind, data) in attributes(body.get(16..)?) {
        match kind {
            UNIX_NAME => socket.name = data.to_vec(),
            UNIX_PEER => socket.peer = u32_at(data, 0).unwrap_or(0),
            UNIX_RQLEN => socket.unread = u32_at(data, 0).unwrap_or(0),
            _ => {}
        }
    }
    Some(socket)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn unread_bytes_are_seen_on_the_side_that_has_not_read_them() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let client_port = client.local_addr().unwrap().port();
        client.write_all(b"hello").unwrap();
        let mut found = Vec::new();
        let mut diag = SockDiag::open().unwrap();
        if let Err(e) = diag.tcp(|s| found.push(s)) {
            return fingerpost_testing::skipped(format_args!(
                "this kernel has no socket diagnosis for TCP: {e}"
            ));
        }
        let server = found
            .iter()
            .find(|s| s.port == port && s.peer == client_port)
            .expect("the server's end");
        assert_eq!(
            (server.unread, server.received, server.inode),
            (5, 5, 0),
            "not accepted, so without an inode"
        );
        let client_end = found
            .iter()
            .find(|s| s.port == client_port)
            .expect("the client's end");
        assert_eq!((client_end.unread, client_end.sent), (0, 5));
        assert_eq!(
            (server.local_end(), server.remote_end()),
            (client.peer_addr().ok(), client.local_addr().ok())
        );
        assert_eq!(
            (server.data_segments, client_end.data_segments),
            ([1, 0], [0, 1])
        );
        assert!(server.cookie != 0 && server.cookie != client_end.cookie);
        assert!(server.since_received_ms < 60_000 && client_end.since_sent_ms < 60_000);
        let listening = found
            .iter()
            .find(|s| s.port == port && s.state == LISTEN)
            .expect("the listener");
        assert_eq!(listening.unread, 1, "one connection waits to be accepted");
        let received = |diag: &mut SockDiag, port| diag.received(&[port].into()).unwrap();
        assert_eq!(
            (received(&mut diag, port), received(&mut diag, client_port)),
            (5, 0)
        );
        drop(client);
        assert_eq!(
            received(&mut diag, port),
            5,
            "that the other end sends no more is no byte"
        );
        let mut listeners = Vec::new();
        diag.listening(|s| listeners.push(s)).unwrap();
        assert!(
            listeners.iter().all(|s| s.state == LISTEN)
                && listeners
                    .iter()
                    .any(|s| s.port == port && s.inode == listening.inode)
        );
    }

    #[test]
    fn both_ip_versions_are_seen_by_one_request() {
        let listeners: Vec<TcpListener> = ["127.0.0.1:0", "[::1]:0"]
            .iter()
            .filter_map(|a| TcpListener::bind(a).ok())
            .collect();
        let mut found = Vec::new();
        if SockDiag::open()
            .unwrap()
            .listening(|s| found.push(s.port))
            .is_err()
        {
            return fingerpost_testing::skipped("no socket diagnosis");
        }
        for listener in listeners {
            let address = listener.local_addr().unwrap();
            assert!(found.contains(&address.port()), "{address}");
        }
    }

    #[test]
    fn unix_sockets_are_seen_with_their_peers() {
        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(b"abc").unwrap();
        let inode = |s: &UnixStream| {
            let link = std::fs::read_link(format!("/proc/self/fd/{}", s.as_raw_fd())).unwrap();
            link.to_str()
                .unwrap()
                .trim_start_matches("socket:[")
                .trim_end_matches(']')
                .parse::<u32>()
                .unwrap()
        };
        let (ia, ib) = (inode(&a), inode(&b));
        let mut found = Vec::new();
        if let Err(e) = SockDiag::open().unwrap().unix(|s| found.push(s)) {
            return fingerpost_testing::skipped(format_args!(
                "this kernel has no socket diagnosis for Unix sockets: {e}"
            ));
        }
        let end = found
            .iter()
            .find(|s| s.inode == ib)
            .expect("the reading end");
        assert_eq!((end.peer, end.state), (ia, ESTABLISHED));
        assert!(end.unread >= 3, "{end:?}");
    }

    #[test]
    fn torn_messages_are_left_alone() {
        assert_eq!(parse_tcp(&[0; 20]), None);
        assert_eq!(parse_unix(&[0; 3]), None);
    }
}
