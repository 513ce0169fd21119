//! `fingerpost serve`: the web page, on loopback.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use fingerpost_page::{Choice, Options, Page};
use fingerpost_record::archive::Archive;

use crate::exit::{Done, say, usage};
use crate::{conduct, output, timings};

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "The page is on 127.0.0.1 only. Its address holds a secret: who knows it can read the archive and measure.")]
pub struct Args {
    /// The port; 0 for any that is free
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
}

/// Serves until interrupted.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let program = std::env::current_exe().context("cannot tell where this program is, which would have to measure")?;
    let options = Options { port: args.port, archive: Archive::open(None)?, program, choices: choices(), apis: timings::apis() };
    let page = match Page::bind(options) {
        Ok(page) => page,
        Err(e) => return usage(format!("cannot serve on 127.0.0.1 port {}: {e}", args.port)),
    };
    let stop = Arc::new(AtomicBool::new(false));
    conduct::stop_on_signals(&stop)?;
    let address = page.address()?;
    output::write(|out| writeln!(out, "{address}"))?;
    say("open this address in a browser on this machine; Ctrl-C ends");
    page.serve(stop)?;
    Ok(Done::Well)
}

/// Labs first, then probes.
fn choices() -> Vec<Choice> {
    let choice = |name: &str, summary: &str| Choice { name: name.to_owned(), summary: summary.to_owned() };
    let mut all: Vec<Choice> = fingerpost_labs::REGISTRY.iter().map(|lab| choice(lab.name, lab.summary)).collect();
    let mut add = |name: &str, summary: &str| {
        if !all.iter().any(|c| c.name == name) {
            all.push(choice(name, summary));
        }
    };
    for (lab, summary) in fingerpost_probes::LABS {
        add(lab, summary);
    }
    for probe in fingerpost_probes::all() {
        add(probe.name, probe.summary);
    }
    all
}
