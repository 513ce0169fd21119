//! `fingerpost list`: what can run here.

use crate::exit::Done;

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Prints every probe and lab.
pub fn run(_args: Args) -> anyhow::Result<Done> {
    Ok(Done::Well)
}
