//! A netlink socket: requests to the kernel and its answers, as bytes. Who asks knows what they mean.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

const ERROR: u16 = 2;
const DONE: u16 = 3;
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
    /// Opens a socket for one of the kernel's protocols (`None`: routing), which holds answers of up to `largest` bytes.
    pub fn open(protocol: Option<Protocol>, largest: usize) -> io::Result<Netlink> {
        let fd = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, protocol)?;
        Ok(Netlink { fd, buffer: vec![0; largest] })
    }

    /// Lets answers that do not come within so many seconds be an error.
    pub fn give_up_after(&self, seconds: u64) -> io::Result<()> {
        Ok(set_socket_timeout(&self.fd, Timeout::Recv, Some(Duration::from_secs(seconds)))?)
    }

    /// Sends a request and takes the bodies of its answers: one, or with [`REQUEST_DUMP`] all until the kernel says
    /// that it is done.
    pub fn ask(&mut self, kind: u16, flags: u16, body: &[u8], take: &mut impl FnMut(&[u8])) -> io::Result<()> {
        let mut message = Vec::with_capacity(16 + body.len());
        message.extend(((16 + body.len()) as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend([0; 8]);
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
    while let (Some(length), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let length = length as usize;
        let Some(body) = bytes.get(16..length) else { break };
        match kind {
            DONE => return Ok(true),
            ERROR => {
                let code = u32_at(body, 0).map_or(0, |c| (c as i32).wrapping_neg());
                return if code == 0 { Ok(true) } else { Err(io::Error::from_raw_os_error(code)) };
            }
            _ => take(body),
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(false)
}

/// An attribute with its header, filled up to four bytes.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The attributes behind a message's head: kind and content of each.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind) = (usize::from(u16_at(bytes, 0)?), u16_at(bytes, 2)?);
        let data = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind & 0x3fff, data))
    })
}

/// A number of the machine's byte order at a place, where there is one.
pub(crate) fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    b.get(at..at + 2).map(|x| u16::from_ne_bytes([x[0], x[1]]))
}

/// A number of the machine's byte order at a place, where there is one.
pub(crate) fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    b.get(at..at + 4).map(|x| u32::from_ne_bytes([x[0], x[1], x[2], x[3]]))
}

/// A number of the machine's byte order at a place, where there is one.
pub(crate) fn u64_at(b: &[u8], at: usize) -> Option<u64> {
    b.get(at..at + 8).and_then(|x| x.try_into().ok()).map(u64::from_ne_bytes)
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
        assert_eq!(attributes(&[2, 0, 0, 0, 9]).next(), None, "an attribute shorter than its head");
    }

    #[test]
    fn the_kernels_refusal_is_an_error_and_its_acknowledgement_ends_the_answer() {
        let mut refusal = vec![20, 0, 0, 0];
        refusal.extend(ERROR.to_ne_bytes());
        refusal.extend([0; 10]);
        refusal.extend((-libc::EPERM).to_ne_bytes());
        assert_eq!(each_message(&refusal, &mut |_| {}).unwrap_err().raw_os_error(), Some(libc::EPERM));
        refusal[16..].fill(0);
        assert!(each_message(&refusal, &mut |_| {}).unwrap(), "an error number of 0");
    }
}
