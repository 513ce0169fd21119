//! The little of the X11 protocol that it takes to see a window appear: connect, ask for the root window's news, read
//! it.
//!
//! Event-driven, so that nothing is polled: the display says `MapNotify` when a window is shown. The encoding is that
//! of “X Window System Protocol, X Consortium Standard”, appendix B.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

const CHANGE_WINDOW_ATTRIBUTES: u8 = 2;
const CW_EVENT_MASK: u32 = 1 << 11;
const SUBSTRUCTURE_NOTIFY: u32 = 1 << 19;
const MAP_NOTIFY: u8 = 19;
const EVENT_BYTES: usize = 32;

/// A connection that is told of every window that is shown at the top level.
#[derive(Debug)]
pub struct Display {
    stream: UnixStream,
    pending: Vec<u8>,
}

impl Display {
    /// Connects to a display of this host (`:0`, `:99.0`, `unix:1`).
    ///
    /// # Errors
    /// A sentence that says why the display cannot be used.
    pub fn connect(name: &str) -> Result<Display, String> {
        let trouble = |e: io::Error| format!("cannot connect to the X display `{name}`: {e}");
        let number = number(name).ok_or_else(|| {
            format!("`{name}` is no X display of this host; set DISPLAY, such as :0")
        })?;
        let mut stream =
            UnixStream::connect(format!("/tmp/.X11-unix/X{number}")).map_err(trouble)?;
        stream
            .write_all(&greeting(&cookie(number).unwrap_or_default()))
            .map_err(trouble)?;
        let mut head = [0u8; 8];
        stream.read_exact(&mut head).map_err(trouble)?;
        let mut body = vec![0u8; usize::from(u16::from_ne_bytes([head[6], head[7]])) * 4];
        stream.read_exact(&mut body).map_err(trouble)?;
        if head[0] != 1 {
            let reason = String::from_utf8_lossy(&body[..usize::from(head[1]).min(body.len())])
                .trim()
                .to_owned();
            return Err(format!("the X display `{name}` refuses: {reason}"));
        }
        let root = root_window(&body)
            .ok_or_else(|| format!("the X display `{name}` answers what cannot be read"))?;
        stream.write_all(&watch(root)).map_err(trouble)?;
        stream.set_nonblocking(true).map_err(trouble)?;
        Ok(Display {
            stream,
            pending: Vec::new(),
        })
    }

    /// Reads what has come and tells whether a window was shown since the last time.
    pub fn window_shown(&mut self) -> io::Result<bool> {
        let mut chunk = [0u8; 4096];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the X display went away",
                    ));
                }
                Ok(n) => self.pending.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        let whole = self.pending.len() / EVENT_BYTES * EVENT_BYTES;
        Ok(self
            .pending
            .drain(..whole)
            .collect::<Vec<u8>>()
            .chunks(EVENT_BYTES)
            .any(is_shown))
    }
}

impl AsFd for Display {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Whether an event says that a window was shown. Menus and tooltips (override-redirect) are no application's window.
fn is_shown(event: &[u8]) -> bool {
    event[0] & 0x7f == MAP_NOTIFY && event[12] == 0
}

/// N of `:N` or `:N.S`.
fn number(name: &str) -> Option<u32> {
    let (host, rest) = name.split_once(':')?;
    if !matches!(host, "" | "unix" | "localhost") {
        return None;
    }
    rest.split('.').next()?.parse().ok()
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The connection's set-up: byte order, version 11.0, and who we are.
fn greeting(cookie: &[u8]) -> Vec<u8> {
    let name: &[u8] = if cookie.is_empty() {
        b""
    } else {
        b"MIT-MAGIC-COOKIE-1"
    };
    let mut bytes = vec![
        if cfg!(target_endian = "big") {
            b'B'
        } else {
            b'l'
        },
        0,
    ];
    for number in [11, 0, name.len() as u16, cookie.len() as u16, 0] {
        bytes.extend_from_slice(&number.to_ne_bytes());
    }
    bytes.extend(padded(name));
    bytes.extend(padded(cookie));
    bytes
}

/// The first screen's root window, from the body of the set-up's answer.
fn root_window(body: &[u8]) -> Option<u32> {
    let vendor = usize::from(u16::from_ne_bytes(body.get(16..18)?.try_into().ok()?));
    let formats = usize::from(*body.get(21)?);
    let start = 32 + vendor.next_multiple_of(4) + 8 * formats;
    Some(u32::from_ne_bytes(
        body.get(start..start + 4)?.try_into().ok()?,
    ))
}

fn watch(root: u32) -> Vec<u8> {
    let mut bytes = vec![CHANGE_WINDOW_ATTRIBUTES, 0];
    bytes.extend_from_slice(&4u16.to_ne_bytes());
    for number in [root, CW_EVENT_MASK, SUBSTRUCTURE_NOTIFY] {
        bytes.extend_from_slice(&number.to_ne_bytes());
    }
    bytes
}

/// The display's cookie in the user's authority file; `None` where there is none, as for a display that lets everybody
/// in.
fn cookie(display: u32) -> Option<Vec<u8>> {
    let file = std::env::var_os("XAUTHORITY").map(PathBuf::from);
    let file =
        file.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".Xauthority")))?;
    cookie_in(&fs::read(file).ok()?, display)
}

/// An entry: family, then address, display number, name and data, each with its length, all big-endian (libXau's
/// `Xauth`).
fn cookie_in(mut file: &[u8], display: u32) -> Option<Vec<u8>> {
    while file.len() > 2 {
        file = &file[2..];
        let mut field = || -> Option<&[u8]> {
            let length = usize::from(u16::from_be_bytes(file.get(..2)?.try_into().ok()?));
            let bytes = file.get(2..2 + length)?;
            file = &file[2 + length..];
            Some(bytes)
        };
        let (_, number, name, data) = (field()?, field()?, field()?, field()?);
        let fits = number.is_empty() || number == display.to_string().as_bytes();
        if fits && name == b"MIT-MAGIC-COOKIE-1" {
            return Some(data.to_vec());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_of_this_host_have_a_number() {
        assert_eq!(number(":99"), Some(99));
        assert_eq!(number(":0.0"), Some(0));
        assert_eq!(number("unix:1"), Some(1));
        assert_eq!(number("far.example:0"), None);
        assert_eq!(number(""), None);
    }

    #[test]
    fn the_root_window_lies_behind_vendor_and_formats() {
        let mut body = vec![0u8; 32];
        body[16..18].copy_from_slice(&5u16.to_ne_bytes());
        body[21] = 2;
        body.extend([b'v'; 8]);
        body.extend([0; 16]);
        body.extend(77u32.to_ne_bytes());
        assert_eq!(root_window(&body), Some(77));
        assert_eq!(root_window(&body[..40]), None);
        assert_eq!(root_window(&[]), None);
    }

    #[test]
    fn the_cookie_of_the_display_is_taken() {
        let entry = |number: &str, data: &[u8]| {
            let mut bytes = vec![1, 0];
            for field in [b"host", number.as_bytes(), b"MIT-MAGIC-COOKIE-1", data] {
                bytes.extend((field.len() as u16).to_be_bytes());
                bytes.extend(field);
            }
            bytes
        };
        let file = [entry("0", b"zero"), entry("7", b"seven")].concat();
        assert_eq!(cookie_in(&file, 7), Some(b"seven".to_vec()));
        assert_eq!(cookie_in(&file, 8), None);
        for cut in 0..file.len() {
            let _ = cookie_in(&file[..cut], 9);
        }
    }

    #[test]
    fn a_menu_is_no_window() {
        let mut event = [0u8; 32];
        event[0] = MAP_NOTIFY;
        assert!(is_shown(&event));
        event[12] = 1;
        assert!(!is_shown(&event));
        assert!(!is_shown(&[0; 32]));
    }
}
