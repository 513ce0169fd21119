//! The web page: the archive to look through, runs to compare, measuring with live progress, the zero-fill calculator.
//!
//! Every page is made on the server from the views that the report is made of; a small script adds to it and nothing needs it.
//! It serves this machine alone: see [`guard`] for what is let in.

mod connections;
pub mod event;
pub mod guard;
mod index;
mod jobs;
mod pages;
mod routes;
mod server;
mod shutdown;
mod site;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fingerpost_record::archive::Archive;

pub use event::{Event, Live, LivePart};

/// Something that can be measured, for the form.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What `run` calls it.
    pub name: String,
    /// One line on it.
    pub summary: String,
    /// What can be set: the key, what it does, and its default. A key that ends in a dot takes a name behind it.
    pub settings: Vec<Setting>,
}

/// What of a measurement can be set from the page.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The key.
    pub key: String,
    /// One line on it, with its default.
    pub help: String,
}

/// What the page needs to know of its surroundings.
pub struct Options {
    /// The port; 0 for a free one.
    pub port: u16,
    /// Where the runs are.
    pub archive: Archive,
    /// The program that measures: `PROGRAM run …` and `PROGRAM zerofill …`, with `--progress json`.
    pub program: PathBuf,
    /// What the form for measuring offers.
    pub choices: Vec<Choice>,
    /// The ways to get memory that the calculator can measure; the first is the default.
    pub apis: Vec<String>,
    /// Directories of sweeps to show.
    pub sweeps: Vec<PathBuf>,
    /// What a probe's name means, as `list NAME` tells it.
    pub define: fingerpost_report::html::Define,
}

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
        server::run(self, stop)
    }
}
