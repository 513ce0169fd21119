//! The site served: the embedded web server over files or an object database, under the web load generator.
//!
//! The server, its event loop and its answers are the same for all; only where a page comes from differs.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use fingerpost_odb::{Database, Error, Reader, percent};
use fingerpost_undo::scratch::{Scratch, Server};

use super::access::Access;
use super::tree::Page;
use crate::WorkloadError::{self, Failed};
use crate::web::content::{Body, Content, Directory};
use crate::web::pool::Pool;
use crate::web::protocol::Load;
use crate::web::static_server::serve_on_free_port;
use crate::worker::{self, Ended, Link};

/// The worker's name.
pub const NAME: &str = "site-server";
/// Connections at a time.
const CONNECTIONS: usize = 16;
/// The length of the accept queue.
const BACKLOG: i32 = 511;
/// Load before each window.
const WARM_UP: Duration = Duration::from_millis(100);

/// An object database as what the server serves. Each worker thread has a reader of its own.
struct Odb {
    database: Database,
    loaded: bool,
}

thread_local! {
    static READER: RefCell<Option<Box<dyn Reader>>> = const { RefCell::new(None) };
}

impl Odb {
    fn reader(&self) -> io::Result<Box<dyn Reader>> {
        let reader = if self.loaded {
            self.database.loaded_reader()
        } else {
            self.database.reader().map(Some)
        };
        reader.map_err(io::Error::other)?.ok_or_else(|| {
            io::Error::other("this database cannot be read with its tables in memory")
        })
    }
}

impl Content for Odb {
    fn find(&self, path: &[u8]) -> io::Result<Option<Body>> {
        READER.with_borrow_mut(|place| {
            let reader = match place {
                Some(reader) => reader,
                None => place.insert(self.reader()?),
            };
            let mut body = None;
            match reader.cell(path, &mut |cell| body = Some(Body::Bytes(cell.body.into()))) {
                Ok(_) | Err(Error::Path(..)) => Ok(body),
                Err(e) => Err(io::Error::other(e)),
            }
        })
    }
}

/// The process: `STORE SOURCE WORKERS`. Serves on a free port of 127.0.0.1, and prints `ready PORT`.
pub fn main(args: Vec<OsString>) -> Ended {
    let [store, source, workers] = args.as_slice() else {
        return Err("it takes STORE SOURCE WORKERS".into());
    };
    let access: Access = store.to_str().unwrap_or_default().parse()?;
    let workers = workers
        .to_str()
        .and_then(|w| w.parse().ok())
        .ok_or("the number of workers is no number")?;
    let content: Box<dyn Content> = match access.store() {
        None => Box::new(Directory::open(source.as_ref())?),
        Some(_) => Box::new(Odb {
            database: Database::open(source.as_ref())?,
            loaded: access == Access::Loaded,
        }),
    };
    serve_on_free_port(workers, BACKLOG, &*content)
}

/// A served site under load.
pub struct Served {
    server: Server,
    load: Load,
    pool: Pool,
}

impl Served {
    /// Starts a server, and a load generator for it. The generator asks for these pages in turn.
    pub fn start(
        access: Access,
        source: &Path,
        pages: &[Page],
        workers: usize,
        scratch: &mut Scratch,
    ) -> Result<Served, WorkloadError> {
        let failed = |e: io::Error| Failed(format!("the site's server could not be started: {e}"));
        let mut command = worker::command(NAME);
        command
            .arg(access.name())
            .arg(source)
            .arg(workers.to_string());
        let mut link = Link::within(&mut command, scratch).map_err(failed)?;
        let Some(port) = link.port() else {
            let end = link.end();
            let _ = scratch.stop(link.process);
            return Err(Failed(format!(
                "the server of {} was not ready: it {end}",
                access.name()
            )));
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let paths: Vec<String> = pages
            .iter()
            .map(|p| format!("/{}", percent::encode(&p.path)))
            .collect();
        let load = Load {
            address,
            host: address.to_string(),
            paths,
            connections: CONNECTIONS,
            keep_alive: true,
            rate: None,
            phase: 0.5,
            requests: None,
            spread: false,
        };
        let mut pool = Pool::default();
        pool.grow(1, scratch)?;
        Ok(Served {
            server: link.process,
            load,
            pool,
        })
    }

    /// Requests a second in one window.
    pub fn window(&mut self, length: Duration) -> Result<f64, WorkloadError> {
        let reports = self.pool.run(
            std::slice::from_ref(&self.load),
            WARM_UP,
            length,
            &mut || {},
        )?;
        let report = reports
            .first()
            .ok_or_else(|| Failed("the load generator told nothing".to_owned()))?;
        if let Some((kind, n)) = report.errors.iter().next() {
            return Err(Failed(format!(
                "not every request was answered as it should be: {kind} {n} times"
            )));
        }
        Ok(report.completed as f64 * 1e9 / report.elapsed_ns.max(1) as f64)
    }

    /// Ends both.
    pub fn stop(mut self, scratch: &mut Scratch) {
        self.pool.stop(scratch);
        // What cannot be ended here is ended with the scratch directory.
        let _ = scratch.stop(self.server);
    }
}
