//! `fingerpost serve`: the web page, on loopback.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context as _;
use fingerpost_labs::{Lab, elsewhere};
use fingerpost_page::{Choice, Options, Page};
use fingerpost_record::archive::Archive;

use super::serve_guard::{self, Served};
use crate::exit::{Done, say, usage};
use crate::{conduct, definitions, inner, output, timings};

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The page is on 127.0.0.1 only. Its address holds a secret: who knows it can read the archive and \
        measure.

Examples:
  fingerpost serve

The page of another host:
  ssh -L 8042:127.0.0.1:8042 HOST fingerpost serve --port 8042"
)]
pub struct Args {
    /// The port; 0 for any that is free
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Show this sweep of many hosts; may be given several times
    #[arg(long = "sweep", value_name = "DIR")]
    sweeps: Vec<PathBuf>,
}

/// Serves until interrupted.
pub fn run(args: Args) -> anyhow::Result<Done> {
    let archive = Archive::open(None)?;
    if inner::is(serve_guard::INSIDE) {
        let (program, choices, apis) = (program()?, choices(), timings::apis());
        return serve_guard::serve(Options {
            archive,
            program,
            choices,
            apis,
            sweeps: args.sweeps,
            define: definitions::of,
            takes: |key, value| elsewhere::of_any(key, value).map_err(|why| why.to_string()),
        });
    }
    let page = Page::bind(args.port)
        .or_else(|e| usage(format!("cannot serve on 127.0.0.1 port {}: {e}", args.port)))?;
    let stop = conduct::stopped_by_signals()?;
    let address = page.address()?;
    output::write(|out| writeln!(out, "{address}"))?;
    say("open this address in a browser on this machine; Ctrl-C ends");
    let served = Served {
        what: "page",
        lost: "; a measurement that it had begun has ended",
    };
    serve_guard::guarded(&served, &stop, |command, again| page.start(command, again))
}

/// Where this program is, which measures for the page.
fn program() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()
        .context("cannot tell where this program is, which would have to measure")?;
    // The kernel says so of a file that was replaced since the outer process began. What lies there now is another
    // version, which can measure.
    Ok(path
        .to_str()
        .and_then(|path| path.strip_suffix(" (deleted)"))
        .map(PathBuf::from)
        .unwrap_or(path))
}

fn setting(setting: &fingerpost_labs::Setting) -> fingerpost_page::Setting {
    fingerpost_page::Setting {
        key: setting.key.to_owned(),
        help: format!("{} (default: {})", setting.help, setting.default),
    }
}

fn choice(name: &str, summary: &str, settings: Vec<fingerpost_page::Setting>) -> Choice {
    Choice {
        name: name.to_owned(),
        summary: summary.to_owned(),
        settings,
    }
}

/// Labs first, then probes.
fn choices() -> Vec<Choice> {
    let of = |lab: &Lab| {
        lab.all_settings()
            .filter(elsewhere::takes_any)
            .map(|s| setting(&s))
            .collect()
    };
    let labs = fingerpost_labs::REGISTRY
        .iter()
        .map(|lab| choice(lab.name, lab.summary, of(lab)));
    let probes =
        fingerpost_probes::all().map(|probe| choice(probe.name, probe.summary, parameters(probe)));
    let mut known = BTreeSet::new();
    labs.chain(probes)
        .filter(|one| known.insert(one.name.clone()))
        .collect()
}

/// A probe's parameters, with the values that it is measured with.
fn parameters(probe: &fingerpost_probes::Probe) -> Vec<fingerpost_page::Setting> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for variant in (probe.variants)() {
        for (key, value) in variant.iter() {
            let of_key = values.entry(key.to_owned()).or_default();
            if !of_key.contains(&value.to_string()) {
                of_key.push(value.to_string());
            }
        }
    }
    values
        .into_iter()
        .map(|(key, values)| fingerpost_page::Setting {
            key,
            help: format!("default: {}", values.join(", ")),
        })
        .collect()
}
