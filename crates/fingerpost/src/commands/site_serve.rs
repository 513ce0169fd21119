//! `fingerpost site serve`: a site on loopback, from a directory or an object database.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use fingerpost_workloads::site::serve::{self, Source};

use crate::exit::{Done, Usage};
use crate::{conduct, output};

/// Serves until the person ends it.
pub fn run(from: &Path, port: u16) -> anyhow::Result<Done> {
    let source = Source::open(from).map_err(Usage)?;
    let listener = serve::listen(port).map_err(|e| Usage(format!("port {port} of 127.0.0.1 cannot be had: {e}")))?;
    let address = listener.local_addr().context("cannot tell the port")?;
    let stop = Arc::new(AtomicBool::new(false));
    conduct::stop_on_signals(&stop)?;
    output::write(|out| writeln!(out, "serving {} on http://{address}/", from.display()))?;
    serve::serve(&listener, &source, &|| stop.load(Ordering::Relaxed)).context("cannot serve")?;
    Ok(Done::Well)
}
