//! A generator's side of the conversation: orders from its standard input, replies to its standard output.

use rustix::io::Errno;

use super::protocol::{Order, Reply};
use crate::worker::say;

/// Writes a reply.
pub fn answer(reply: &Reply) {
    // When nobody reads any more the input has ended too, which ends the process.
    let _ = say(&serde_json::to_string(reply).expect("a reply is plain data"));
}

/// Orders, line by line.
#[derive(Debug, Default)]
pub struct Input {
    bytes: Vec<u8>,
    /// Whether no more orders will come.
    pub ended: bool,
}

impl Input {
    /// Reads once, which waits when nothing is there.
    pub fn read(&mut self) {
        let mut piece = [0; 4096];
        match rustix::io::read(rustix::stdio::stdin(), &mut piece) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) | Err(_) => self.ended = true,
            Ok(n) => self.bytes.extend_from_slice(&piece[..n]),
        }
    }

    /// The next order that has been read. What is no order ends the input: the other side is not what we think.
    pub fn take(&mut self) -> Option<Order> {
        let end = self.bytes.iter().position(|&b| b == b'\n')?;
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        let order = serde_json::from_slice(&line).ok();
        self.ended |= order.is_none();
        order
    }

    /// The next order, waited for; nothing when the input ended.
    pub fn wait(&mut self) -> Option<Order> {
        loop {
            let order = self.take();
            if order.is_some() || self.ended {
                return order;
            }
            self.read();
        }
    }
}
