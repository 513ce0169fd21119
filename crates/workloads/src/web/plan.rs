//! What a private web server is told.

use std::net::SocketAddr;
use std::path::Path;

use crate::server_dir::ServerDir;

/// Where a private server lives, and how it is to be.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Its directory, which is ours and read-only for it.
    pub dir: &'a ServerDir,
    /// What in that is its own: pid files, locks, temporary files.
    pub run: &'a Path,
    /// The directory that it serves.
    pub root: &'a Path,
    /// The port that it should take.
    pub port: u16,
    /// Worker processes, or requests at a time.
    pub workers: usize,
    /// The length of the accept queue.
    pub backlog: usize,
    /// Where a proxy gets the file; nothing for a server that has it itself.
    pub backend: Option<SocketAddr>,
}
