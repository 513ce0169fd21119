//! A running service beside an earlier run of it.

use std::ffi::OsStr;

use fingerpost_compare::service::{LATENCY, RATE};
use fingerpost_compare::{Comparison, Options, Side, compare_sides};
use fingerpost_record::Run;

use crate::exit::usage;
use crate::runs;

/// The run that the service is judged beside; read before anything is watched, so that a mistake costs no time.
///
/// # Errors
/// It is not there, or is no run of a service.
pub fn load(wanted: &OsStr) -> anyhow::Result<Side> {
    let side = runs::side(wanted)?;
    if side.rows.keys().any(|(probe, _, _)| [LATENCY, RATE].contains(&probe.as_str())) {
        return Ok(side);
    }
    usage(format!(
        "{} holds no requests of a running service to judge by; keep one with “fingerpost explain --port N -o FILE”",
        wanted.to_string_lossy()
    ))
}

/// The two beside each other.
pub fn compare(mut base: Side, run: &Run) -> Comparison {
    let mut new = Side::of(std::slice::from_ref(run));
    // Both are of one host: a sentence is clearer with what they are.
    (base.info.name, new.info.name) = ("the baseline".to_owned(), "the service now".to_owned());
    compare_sides(&base, &new, &Options::default())
}
