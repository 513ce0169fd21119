//! The web page: the archive to look through, runs to compare, measuring with live progress, the zero-fill calculator.
//!
//! Every page is made on the server from the views that the report is made of; a small script adds to it and nothing needs it.
//! It serves this machine alone: see [`guard`] for what is let in.

mod connections;
pub mod event;
pub mod guard;
mod index;
mod jobs;
mod options;
mod pages;
mod routes;
mod server;
mod shutdown;
mod site;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use event::{Event, Live, LivePart};
pub use options::{Choice, Options, Setting};

/// A page that is bound to its port and not yet serving.
pub struct Page {
    listener: TcpListener,
    token: guard::Token,
    options: Options,
}

impl Page {
    /// Takes the port and makes the token.
    ///
    /// # Errors
    /// When the port is taken, or the system gives no randomness.
    pub fn bind(options: Options) -> io::Result<Page> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, options.port)))?;
        Ok(Page { listener, token: guard::Token::random()?, options })
    }

    /// The address to open, token included.
    ///
    /// # Errors
    /// When the system does not tell the port.
    pub fn address(&self) -> io::Result<String> {
        Ok(format!("http://{}{}/", self.listener.local_addr()?, self.token.base()))
    }

    /// Serves until `stop` is set; a measurement that runs then is stopped, and what it measured is kept.
    ///
    /// # Errors
    /// When serving cannot begin.
    pub fn serve(self, stop: Arc<AtomicBool>) -> io::Result<()> {
        server::run(self.listener, self.token, self.options, stop)
    }
}
