//! The body of an answer, read piece by piece as the client takes it: a slow client holds one piece in memory and
//! nothing else.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::body::{Bytes, Frame, SizeHint};

use crate::clients::Client;
use crate::find::{Finder, PIECE, add, piece};

/// Where a larger body is read from.
pub(crate) enum Place {
    File(File),
    /// A cell, which must stay of this time and size.
    Cell {
        finder: Rc<Finder>,
        path: Vec<u8>,
        modified: i64,
        size: u64,
    },
}

/// A body.
pub(crate) enum Body {
    Whole(Option<Bytes>),
    Parts(Parts),
}

pub(crate) struct Parts {
    place: Place,
    at: u64,
    end: u64,
    /// The sum so far, and what it must come to. A cell that is changed while it is sent is cut off before its last
    /// piece: no client takes half of the old and half of the new for a whole.
    sum: Option<(u64, u64)>,
    client: Rc<Client>,
}

impl Body {
    pub(crate) fn whole(bytes: Bytes) -> Body {
        Body::Whole(Some(bytes).filter(|b| !b.is_empty()))
    }

    pub(crate) fn parts(
        place: Place,
        at: u64,
        end: u64,
        sum: Option<u64>,
        client: Rc<Client>,
    ) -> Body {
        Body::Parts(Parts {
            place,
            at,
            end,
            sum: sum.map(|wanted| (0, wanted)),
            client,
        })
    }
}

impl Parts {
    fn next(&mut self) -> io::Result<Bytes> {
        let changed = || io::Error::other("it changed while it was sent");
        let piece = match &self.place {
            Place::File(_) => PIECE,
            Place::Cell { size, .. } => piece(*size),
        };
        let mut room = vec![0; piece.min((self.end - self.at) as usize)];
        let read = match &self.place {
            Place::File(file) => file.read_at(&mut room, self.at)?,
            Place::Cell {
                finder,
                path,
                modified,
                size,
            } => match finder.part(path, self.at, &mut room)? {
                Some(part) if part.modified == *modified && part.size == *size => part.read,
                _ => 0,
            },
        };
        if read == 0 {
            return Err(changed());
        }
        room.truncate(read);
        self.at += read as u64;
        if let Some((sum, wanted)) = &mut self.sum {
            *sum = add(*sum, &room);
            if self.at == self.end && *sum != *wanted {
                return Err(changed());
            }
        }
        self.client.active();
        Ok(room.into())
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(match &mut *self {
            Body::Whole(bytes) => bytes.take().map(|b| Ok(Frame::data(b))),
            Body::Parts(parts) if parts.at == parts.end => None,
            Body::Parts(parts) => Some(parts.next().map(Frame::data)),
        })
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(bytes) => bytes.is_none(),
            Body::Parts(parts) => parts.at == parts.end,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Body::Whole(bytes) => bytes.as_ref().map_or(0, |b| b.len() as u64),
            Body::Parts(parts) => parts.end - parts.at,
        })
    }
}
