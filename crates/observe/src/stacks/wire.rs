//! Numbers and text in the packets between this program and the processes that open and read a service's files.

/// A packet that is being written.
#[derive(Debug, Default)]
pub struct Out(pub Vec<u8>);

impl Out {
    /// One that begins with what it is.
    pub fn new(kind: u8) -> Out {
        Out(vec![kind])
    }

    pub fn u32(mut self, n: u32) -> Out {
        self.0.extend(n.to_le_bytes());
        self
    }

    pub fn u64(mut self, n: u64) -> Out {
        self.0.extend(n.to_le_bytes());
        self
    }

    /// Bytes with their number, which is cut off at 64 KiB.
    pub fn bytes(mut self, bytes: &[u8]) -> Out {
        let bytes = &bytes[..bytes.len().min(usize::from(u16::MAX))];
        self.0.extend((bytes.len() as u16).to_le_bytes());
        self.0.extend(bytes);
        self
    }
}

/// A packet that is being read: nothing where it ends too soon.
#[derive(Clone, Copy, Debug)]
pub struct In<'a>(pub &'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }

    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_le_bytes(self.take(2)?.try_into().ok()?);
        self.take(length.into())
    }

    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_a_short_packet_is_not() {
        let out = Out::new(b'x').u32(7).u64(u64::MAX).bytes(b"name");
        let read = |bytes: &[u8]| {
            let mut packet = In(bytes);
            Some((
                packet.u8()?,
                packet.u32()?,
                packet.u64()?,
                packet.text()?.to_owned(),
            ))
        };
        assert_eq!(read(&out.0), Some((b'x', 7, u64::MAX, "name".to_owned())));
        for cut in 0..out.0.len() {
            assert_eq!(read(&out.0[..cut]), None);
        }
        assert_eq!(
            read(&[b"x".as_slice(), &[0; 12], &[1, 0, 0xff]].concat()),
            None,
            "no UTF-8"
        );
    }
}
