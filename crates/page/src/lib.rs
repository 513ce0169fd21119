//! The web page: the archive to look through, runs to compare, measuring with live progress, the zero-fill calculator.
//!
//! Every page is made on the server from the views that the report is made of; a small script adds to it and nothing
//! needs it. It serves this machine alone: see [`guard`] for what is let in.

mod connections;
pub mod guard;
mod index;
mod jobs;
mod pages;
mod routes;
mod server;
mod site;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use site::{Choice, Options, Setting};

/// What stands behind the token for a process that is started after another broke off.
const AGAIN: &str = " again";

/// A page that is bound to its port and not yet serving.
pub struct Page {
    listener: TcpListener,
    token: guard::Token,
    /// Whether it broke off before.
    again: bool,
}

impl Page {
    /// Takes the port, 0 for a free one, and makes the token.
    ///
    /// # Errors
    /// When the port is taken, or the system gives no randomness.
    pub fn bind(port: u16) -> io::Result<Page> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        Ok(Page {
            listener,
            token: guard::Token::random()?,
            again: false,
        })
    }

    /// The address to open, token included.
    ///
    /// # Errors
    /// When the system does not tell the port.
    pub fn address(&self) -> io::Result<String> {
        Ok(format!(
            "http://{}{}/",
            self.listener.local_addr()?,
            self.token.base()
        ))
    }

    /// Starts a process that takes the page over with [`Page::taken_over`]. It has the socket as its standard output
    /// and reads the token from its standard input, because words and variables of a process are seen by others. One
    /// that is started after another broke off (`again`) reads nothing before it is asked: what it reads may be what
    /// the other one broke off at.
    ///
    /// # Errors
    /// When the process cannot be started, or ends at once.
    pub fn start(&self, command: &mut Command, again: bool) -> io::Result<Child> {
        let listener = OwnedFd::from(self.listener.try_clone()?);
        let mut child = command.stdin(Stdio::piped()).stdout(listener).spawn()?;
        child.stdin.take().map_or(Ok(()), |mut pipe| {
            writeln!(
                pipe,
                "{}{}",
                self.token.text(),
                if again { AGAIN } else { "" }
            )
        })?;
        Ok(child)
    }

    /// The page that the parent process handed over.
    ///
    /// # Errors
    /// When it handed over none.
    pub fn taken_over() -> io::Result<Page> {
        let listener = TcpListener::from(io::stdout().as_fd().try_clone_to_owned()?);
        let mut text = String::new();
        io::stdin().take(64).read_to_string(&mut text)?;
        let (digits, again) = text
            .trim_end()
            .strip_suffix(AGAIN)
            .map_or((text.trim_end(), false), |digits| (digits, true));
        let token = guard::Token::of(digits).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "no token was handed over")
        })?;
        Ok(Page {
            listener,
            token,
            again,
        })
    }

    /// Serves until `stop` is set; a measurement that runs then is stopped, and what it measured is kept.
    ///
    /// # Errors
    /// When serving cannot begin.
    pub fn serve(self, options: Options, stop: Arc<AtomicBool>) -> io::Result<()> {
        server::run(self.listener, self.token, self.again, options, stop)
    }
}
