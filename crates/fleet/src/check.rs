//! One host's run beside its peers in a sweep: what a node check asks.

use fingerpost_diagnose::fleet;
use fingerpost_record::Run;
use serde::Serialize;

use crate::standing::{Slower, Standing};
use crate::sweep::{Stamp, Sweep, SweepError};
use crate::table::Table;

/// What a check says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// `ok`, `suspected` (nobody measured again) or `unresolved`.
    pub standing: Standing,
    /// How many hosts of its kind the sweep has, this one left out.
    pub peers: usize,
    /// How many rows both have.
    pub rows: usize,
    /// In what it is slower, strongest first.
    pub slower: Vec<Slower>,
    /// The layer that the strongest points at.
    pub layer: Option<&'static str>,
}

/// Holds a run of the node against its peers; the sweep's own record of the node is left out.
///
/// # Errors
/// The system's.
pub fn check(sweep: &Sweep, node: &str, run: &Run) -> Result<Checked, SweepError> {
    let mut table = Table::of(sweep)?;
    table.hosts.retain(|host| host.node != node);
    let known = table.rows.len() as u32;
    table.add(node, run, Stamp::default());
    let own = table.hosts.len() - 1;
    let rows = table.hosts[own]
        .cells
        .iter()
        .filter(|cell| cell.0 < known)
        .count();
    let members = table
        .groups()
        .remove(table.hosts[own].group.as_str())
        .unwrap_or_default();
    let judged = fleet::judge(&mut table.grid(&members));
    let at = members.iter().position(|member| *member == own);
    let of_host: Vec<&fleet::Excess> = judged
        .excesses
        .iter()
        .filter(|e| Some(e.host) == at)
        .collect();
    let standing = match () {
        () if !judged.resolved || rows == 0 => Standing::Unresolved,
        () if of_host.is_empty() => Standing::Ok,
        () => Standing::Suspected,
    };
    let slower =
        |e: &&fleet::Excess| Slower::by(table.unit_name(e.unit), [e.effect, e.low, e.high]);
    let layer = of_host
        .iter()
        .find_map(|e| table.cause_of(e.unit))
        .map(|cause| cause.layer.as_str());
    Ok(Checked {
        standing,
        peers: members.len() - 1,
        rows,
        slower: of_host.iter().map(slower).collect(),
        layer,
    })
}
