//! Packets between two processes of this program, whole or not at all, each with one open file where that is wanted.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};

/// The longest packet.
pub const LONGEST: usize = 64 << 10;

/// One end.
#[derive(Debug)]
pub struct Packets(OwnedFd);

/// A packet that came.
#[derive(Debug)]
pub struct Came {
    /// How many of the bytes that it was read into are its own.
    pub bytes: usize,
    /// The open file that came with it.
    pub file: Option<OwnedFd>,
}

impl Packets {
    /// Two ends.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn pair() -> io::Result<(Packets, Packets)> {
        let (one, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Packets(one), Packets(other)))
    }

    /// The end that this process was given.
    pub fn over(fd: OwnedFd) -> Packets {
        Packets(fd)
    }

    /// The end as a descriptor, to be given away.
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// Sends one; waits for room for so long, or for ever.
    ///
    /// # Errors
    /// `TimedOut`, or what the kernel said: the other end is closed.
    pub fn send(
        &self,
        bytes: &[u8],
        file: Option<BorrowedFd>,
        patience: Option<Duration>,
    ) -> io::Result<()> {
        let files = file.map(|file| [file]);
        loop {
            self.ready(PollFlags::OUT, patience)?;
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut beside = SendAncillaryBuffer::new(&mut space);
            if let Some(files) = &files {
                beside.push(SendAncillaryMessage::ScmRights(files));
            }
            let flags = SendFlags::NOSIGNAL
                | if patience.is_some() {
                    SendFlags::DONTWAIT
                } else {
                    SendFlags::empty()
                };
            match sendmsg(&self.0, &[IoSlice::new(bytes)], &mut beside, flags) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                // Room for some packet is not yet room for this one.
                Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Takes the next one; waits for it for so long, or for ever.
    ///
    /// # Errors
    /// `TimedOut`; `UnexpectedEof` where the other end is closed; `InvalidData` where the packet is longer than the
    /// place for it; else what the kernel said.
    pub fn receive(&self, into: &mut [u8], patience: Option<Duration>) -> io::Result<Came> {
        loop {
            self.ready(PollFlags::IN, patience)?;
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut beside = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::CMSG_CLOEXEC
                | if patience.is_some() {
                    RecvFlags::DONTWAIT
                } else {
                    RecvFlags::empty()
                };
            let came = match recvmsg(
                &self.0,
                &mut [IoSliceMut::new(&mut *into)],
                &mut beside,
                flags,
            ) {
                Ok(came) => came,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                Err(e) => return Err(e.into()),
            };
            // Further files than the one that is looked for are closed here.
            let file = beside.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut files) => files.next(),
                _ => None,
            });
            if came.flags.contains(ReturnFlags::TRUNC) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if came.bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            return Ok(Came {
                bytes: came.bytes,
                file,
            });
        }
    }

    /// Waits until the end is ready for so long. Without a bound the call itself waits.
    fn ready(&self, flags: PollFlags, patience: Option<Duration>) -> io::Result<()> {
        let Some(patience) = patience else {
            return Ok(());
        };
        let time = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: patience.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&self.0, flags)], Some(&time)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            // A signal: the call that follows tells whether it is ready.
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

impl AsFd for Packets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_packet_comes_whole_with_its_file_and_the_end_is_told() {
        let (one, other) = Packets::pair().unwrap();
        let file = std::fs::File::open("/proc/self/comm").unwrap();
        one.send(b"with a file", Some(file.as_fd()), None).unwrap();
        one.send(b"without", None, Some(Duration::ZERO)).unwrap();
        let mut into = [0; 64];
        let came = other.receive(&mut into, Some(Duration::ZERO)).unwrap();
        assert_eq!(&into[..came.bytes], b"with a file");
        let mut text = String::new();
        std::fs::File::from(came.file.unwrap())
            .read_to_string(&mut text)
            .unwrap();
        assert!(!text.is_empty());
        let came = other.receive(&mut into, None).unwrap();
        assert!(came.file.is_none() && &into[..came.bytes] == b"without");
        let none = other.receive(&mut into, Some(Duration::from_millis(1)));
        assert_eq!(none.unwrap_err().kind(), io::ErrorKind::TimedOut);
        one.send(&[7; 65], None, None).unwrap();
        let long = other.receive(&mut into, None);
        assert_eq!(long.unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(one);
        let end = other.receive(&mut into, None);
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn who_sends_to_somebody_that_reads_nothing_gives_up() {
        let (one, _other) = Packets::pair().unwrap();
        let full = (0..10_000).find_map(|_| {
            one.send(&[0; 4096], None, Some(Duration::from_millis(1)))
                .err()
        });
        assert_eq!(full.unwrap().kind(), io::ErrorKind::TimedOut);
    }
}
