//! A netlink socket: requests to the kernel and its answers, as bytes. Who asks knows what they mean.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use netlink_packet_core::{
    DefaultNla, Emitable, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer, NetlinkHeader, NlasIterator,
};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// Asks for one answer.
pub(crate) const REQUEST: u16 = 1;
/// Asks for every object there is.
pub(crate) const REQUEST_DUMP: u16 = 0x301;

/// An open netlink socket.
pub(crate) struct Netlink {
    fd: OwnedFd,
    buffer: Vec<u8>,
}

impl Netlink {
    /// Opens a socket for one of the kernel's protocols (`None`: routing), which holds answers of up to `largest`
    /// bytes.
    pub fn open(protocol: Option<Protocol>, largest: usize) -> io::Result<Netlink> {
        let fd = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            protocol,
        )?;
        Ok(Netlink {
            fd,
            buffer: vec![0; largest],
        })
    }

    /// Lets answers that do not come within so many seconds be an error.
    pub fn give_up_after(&self, seconds: u64) -> io::Result<()> {
        Ok(set_socket_timeout(
            &self.fd,
            Timeout::Recv,
            Some(Duration::from_secs(seconds)),
        )?)
    }

    /// Sends a request and takes the bodies of its answers: one, or with [`REQUEST_DUMP`] all until the kernel says
    /// that it is done.
    pub fn ask(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
        take: &mut impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let mut head = NetlinkHeader::default();
        (head.message_type, head.flags, head.length) =
            (kind, flags, (head.buffer_len() + body.len()) as u32);
        let mut message = vec![0; head.buffer_len()];
        head.emit(&mut message);
        message.extend(body);
        send(&self.fd, &message, SendFlags::empty())?;
        loop {
            let (n, _) = recv(&self.fd, &mut self.buffer, RecvFlags::empty())?;
            if n == 0 || each_message(&self.buffer[..n], take)? || flags == REQUEST {
                return Ok(());
            }
        }
    }
}

/// Walks one datagram of netlink messages; true when the dump is complete.
fn each_message(mut bytes: &[u8], take: &mut impl FnMut(&[u8])) -> io::Result<bool> {
    while let Ok(message) = NetlinkBuffer::new_checked(bytes) {
        match message.message_type() {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = u32_at(message.payload(), 0).map_or(0, |c| (c as i32).wrapping_neg());
                return if code == 0 {
                    Ok(true)
                } else {
                    Err(io::Error::from_raw_os_error(code))
                };
            }
            _ => take(message.payload()),
        }
        bytes = bytes
            .get((message.length() as usize).next_multiple_of(4)..)
            .unwrap_or(&[]);
    }
    Ok(false)
}

/// An attribute with its header, filled up to four bytes.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let attribute = DefaultNla::new(kind, value.to_vec());
    let mut bytes = vec![0; attribute.buffer_len()];
    attribute.emit(&mut bytes);
    bytes
}

/// The attributes behind a message's head: kind and content of each.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes)
        .map_while(Result::ok)
        .map(|a| (a.kind(), &a.into_inner()[4..usize::from(a.length())]))
}

/// A number of the machine's byte order at a place, where there is one.
pub(crate) fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    b.get(at..at + 2).map(|x| u16::from_ne_bytes([x[0], x[1]]))
}

/// A number of the machine's byte order at a place, where there is one.
pub(crate) fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    b.get(at..at + 4)
        .map(|x| u32::from_ne_bytes([x[0], x[1], x[2], x[3]]))
}

/// A number of the machine's byte order at a place, where there is one.
pub(crate) fn u64_at(b: &[u8], at: usize) -> Option<u64> {
    b.get(at..at + 8)
        .and_then(|x| x.try_into().ok())
        .map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_messages_are_left_alone() {
        let mut n = 0;
        assert!(!each_message(&[1, 2, 3], &mut |_| n += 1).unwrap());
        assert!(!each_message(&[200, 0, 0, 0, 20, 0, 0, 0], &mut |_| n += 1).unwrap());
        assert_eq!(n, 0);
        assert_eq!(
            attributes(&[2, 0, 0, 0, 9]).next(),
            None,
            "an attribute shorter than its head"
        );
    }

    #[test]
    fn the_kernels_refusal_is_an_error_and_its_assent_ends_it() {
        let mut refusal = vec![20, 0, 0, 0];
        refusal.extend(NLMSG_ERROR.to_ne_bytes());
        refusal.extend([0; 10]);
        refusal.extend((-libc::EPERM).to_ne_bytes());
        assert_eq!(
            each_message(&refusal, &mut |_| {})
                .unwrap_err()
                .raw_os_error(),
            Some(libc::EPERM)
        );
        refusal[16..].fill(0);
        assert!(
            each_message(&refusal, &mut |_| {}).unwrap(),
            "an error number of 0"
        );
    }

    #[test]
    fn no_change_of_a_byte_makes_it_read_beyond_a_message() {
        let body = [attribute(1, b"name"), attribute(2, &[7; 9])].concat();
        let mut good = [36u32.to_ne_bytes(), [20, 0, 0, 0], [0; 4], [0; 4]].concat();
        good.extend(&body[..20]);
        good.extend(&good.clone());
        for at in 0..good.len() {
            for value in [0, 1, 3, 4, 15, 16, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                for bytes in [&bad[..], &bad[..at]] {
                    let mut taken = 0;
                    let _ = each_message(bytes, &mut |body| {
                        taken += body.len();
                        assert!(
                            attributes(body)
                                .map(|(_, data)| 4 + data.len())
                                .sum::<usize>()
                                <= body.len()
                        );
                    });
                    assert!(taken <= bytes.len());
                }
            }
        }
    }
}
