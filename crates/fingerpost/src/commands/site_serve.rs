//! `fingerpost site serve`: a site on loopback, from a directory or an object database.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use fingerpost_sys::beneath::Links;
use fingerpost_workloads::site::serve::{self, Source};

use super::site_guard::{Work, guarded};
use super::site_open::{mend, open};
use crate::exit::{Done, Usage};
use crate::{conduct, output};

/// Serves until the person ends it.
pub fn run(from: &Path, port: u16, follow_links: bool, trust: bool) -> anyhow::Result<Done> {
    if from.is_dir() {
        let links = if follow_links { Links::Inside } else { Links::None };
        return serve(from, port, Source::directory(from, links).map_err(Usage)?);
    }
    guarded(from, Work::Serve, || {
        let database = open(from, trust)?;
        if !trust {
            database.verify().map_err(mend)?;
        }
        serve(from, port, Source::Odb(database))
    })
}

fn serve(from: &Path, port: u16, source: Source) -> anyhow::Result<Done> {
    let listener = serve::listen(port).map_err(|e| Usage(format!("port {port} of 127.0.0.1 cannot be had: {e}")))?;
    let address = listener.local_addr().context("cannot tell the port")?;
    let stop = conduct::stopped_by_signals()?;
    output::sentence(&format!("serving {} on http://{address}/", from.display()))?;
    serve::serve(&listener, &Arc::new(source), &|| stop.load(Ordering::Relaxed)).context("cannot serve")?;
    Ok(Done::Well)
}
