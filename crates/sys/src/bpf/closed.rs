//! What a server's TCP connections had received when they closed: a program at the connections' change of state adds it
//! up in the kernel. A socket that has closed is in no list any more, and what it received is in no counter of its
//! server's.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::btf::Btf;
use super::calls::{MAP_ARRAY, RAW_TRACEPOINT_OPEN, command, descriptor, load, look_up, map};
use super::code::{
    ADD, AND, Code, JUMP, JUMP_IF_EQUAL, JUMP_IF_NOT_EQUAL, JUMP_IF_NOT_EQUAL_32, LOAD16, LOAD64,
    Place,
};
use super::error::BpfError;

const POINT: &str = "inet_sock_set_state";
/// `TCP_CLOSE`, in which each connection ends.
const CLOSE: i32 = 7;
/// `bpf_probe_read_kernel` (Linux 5.5): a tracepoint's socket is typed as one of any protocol, behind whose end a
/// program may not read.
const READ_KERNEL: i32 = 113;
/// The bit of a socket's flags that says that the other end has sent its last byte (`SOCK_DONE`). That end is counted
/// as a byte received.
const OTHER_END_DONE: i32 = 1 << 1;
/// Ports that are compared, one after the other.
const MOST_PORTS: usize = 32;
/// Where on its stack the program keeps what it read: the name space, the port and the bytes.
const NAMESPACE: i16 = -24;
const PORT: i16 = -16;
const RECEIVED: i16 = -8;

/// Counts, until it is dropped.
pub struct Closed {
    counts: OwnedFd,
    _program: OwnedFd,
    _link: OwnedFd,
}

/// Connections that closed, and what they had received together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes.
    pub bytes: u64,
    /// Connections.
    pub connections: u64,
}

impl Closed {
    /// As of now, since it began.
    pub fn counts(&self) -> io::Result<Counts> {
        let mut value = [0u64; 2];
        look_up(&self.counts, 0, &mut value)?;
        Ok(Counts {
            bytes: value[0],
            connections: value[1],
        })
    }
}

/// Where this kernel has what the program reads.
#[derive(Clone, Debug)]
pub struct Places {
    tracepoint: u32,
    /// In the byte order of the network, and kept when the socket has given its port back (`skc_num` is 0 then).
    port: i16,
    received: i16,
    /// The pointer to the name space, and its number there.
    namespace: [i16; 2],
    flags: Place,
}

impl Places {
    /// Looks them up among the kernel's types; nothing where it lacks one.
    pub fn of(btf: &Btf) -> Option<Places> {
        Some(Places {
            tracepoint: btf.tracepoint(POINT)?,
            port: btf.offset("inet_sock", "inet_sport")?,
            received: btf.offset("tcp_sock", "bytes_received")?,
            // A structure with nothing but the pointer.
            namespace: [
                btf.offset("sock_common", "skc_net")?,
                btf.offset("net", "ns.inum")?,
            ],
            flags: Place::Behind(0, vec![btf.offset("sock_common", "skc_flags")?], 8),
        })
    }

    /// Begins to count the connections to these ports of a network name space ([`crate::network::namespace`]).
    ///
    /// # Errors
    /// What the kernel did not allow, or how many ports there may be.
    pub fn count(&self, ports: &[u16], namespace: u32) -> Result<Closed, BpfError> {
        if ports.is_empty() || ports.len() > MOST_PORTS {
            return Err(BpfError::Ports {
                asked: ports.len(),
                most: MOST_PORTS,
            });
        }
        let failed = BpfError::Uncounted;
        let counts =
            map(MAP_ARRAY, [4, size_of::<[u64; 2]>() as u32, 1], 0, None).map_err(failed)?;
        let program = load(
            POINT,
            &program(self, ports, namespace, &counts).0,
            self.tracepoint,
        )?;
        let link = command(RAW_TRACEPOINT_OPEN, &mut [0, program.as_raw_fd() as u64, 0])
            .map(descriptor)
            .map_err(failed)?;
        Ok(Closed {
            counts,
            _program: program,
            _link: link,
        })
    }
}

fn program(places: &Places, ports: &[u16], namespace: u32, counts: &OwnedFd) -> Code {
    let mut c = Code::default();
    c.mov(6, 1);
    let mut to_end = Vec::new();
    c.argument(1, 2);
    to_end.push(c.jump(JUMP_IF_NOT_EQUAL, 1, CLOSE));
    to_end.push(read(&mut c, places.port, 2, PORT));
    c.put(LOAD16, 1, 10, PORT, 0);
    let known: Vec<usize> = ports
        .iter()
        .map(|&port| c.jump(JUMP_IF_EQUAL, 1, port.to_be().into()))
        .collect();
    to_end.push(c.jump(JUMP, 0, 0));
    known.into_iter().for_each(|jump| c.land(jump));
    // By its address, not its type: to check a pointer's type, the kernel goes through all of its types, which takes
    // milliseconds.
    to_end.push(read(&mut c, places.namespace[0], 8, NAMESPACE));
    c.put(LOAD64, 3, 10, NAMESPACE, 0);
    to_end.push(read_at(&mut c, places.namespace[1], 4, NAMESPACE));
    c.put(LOAD64, 1, 10, NAMESPACE, 0);
    // The lower halves are compared, of which all bits count.
    to_end.push(c.jump(JUMP_IF_NOT_EQUAL_32, 1, namespace as i32));
    to_end.push(read(&mut c, places.received, 8, RECEIVED));
    c.put(LOAD64, 7, 10, RECEIVED, 0);
    to_end.push(c.jump(JUMP_IF_EQUAL, 7, 0));
    c.value(&places.flags);
    c.put(AND, 1, 0, 0, OTHER_END_DONE);
    let goes_on = c.jump(JUMP_IF_EQUAL, 1, 0);
    c.add(7, -1);
    c.land(goes_on);
    c.map_value(1, counts);
    // Each in one step.
    c.put(ADD, 1, 7, 0, 0);
    c.set(2, 1);
    c.put(ADD, 1, 2, 8, 0);
    to_end.into_iter().for_each(|jump| c.land(jump));
    c.end();
    c
}

/// Reads so many bytes of the socket to a place on the stack. The jump is taken where that failed.
fn read(c: &mut Code, at: i16, bytes: i32, to: i16) -> usize {
    c.argument(3, 0);
    read_at(c, at, bytes, to)
}

/// The same behind the address in r3.
fn read_at(c: &mut Code, at: i16, bytes: i32, to: i16) -> usize {
    c.mov(1, 10);
    c.add(1, to.into());
    c.set(2, bytes);
    c.add(3, at.into());
    c.call(READ_KERNEL);
    c.jump(JUMP_IF_NOT_EQUAL, 0, 0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;

    fn namespace() -> u32 {
        crate::network::namespace().expect("this process has a network name space")
    }

    /// A client that sends so many bytes, waits until they were read, and closes before the server does, or after it.
    fn connection(listener: &TcpListener, bytes: usize, client_first: bool) {
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        client.write_all(&vec![7; bytes]).unwrap();
        server.read_exact(&mut vec![0; bytes]).unwrap();
        if client_first {
            drop(client);
            assert_eq!(server.read(&mut [0]).unwrap(), 0);
        } else {
            server.shutdown(std::net::Shutdown::Both).unwrap();
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn received_bytes_are_counted_at_closing_to_the_byte() {
        let places = Btf::read()
            .ok()
            .and_then(|btf| Places::of(&btf))
            .ok_or("no types");
        let counter = |port, namespace| {
            places
                .clone()
                .map_err(str::to_owned)
                .and_then(|p| p.count(&[1, port], namespace).map_err(|e| e.to_string()))
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (closed, elsewhere) = match (counter(port, namespace()), counter(port, namespace() ^ 1))
        {
            (Ok(closed), Ok(elsewhere)) => (closed, elsewhere),
            (refused, _) => {
                return fingerpost_testing::skipped(format_args!("{:?}", refused.err()));
            }
        };
        connection(&listener, 100, true);
        connection(&listener, 20, false);
        connection(&other, 5000, true);
        // Closing goes on after both ends have said so.
        let until = Instant::now() + Duration::from_secs(10);
        while closed.counts().unwrap().connections < 2 && Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(
            closed.counts().unwrap(),
            Counts {
                bytes: 120,
                connections: 2
            }
        );
        assert_eq!(
            elsewhere.counts().unwrap(),
            Counts::default(),
            "another network name space's"
        );
    }

    #[test]
    fn no_port_and_too_many_are_refused() {
        let Some(places) = Btf::read().ok().and_then(|btf| Places::of(&btf)) else {
            return;
        };
        for count in [0, MOST_PORTS + 1] {
            let refused = places.count(&vec![80; count], 1).err();
            assert!(matches!(refused, Some(BpfError::Ports { most: 32, .. })));
        }
    }
}
