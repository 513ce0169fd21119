//! Which hosts of a sweep are slow, by which layer, and what is known of the others.

use std::collections::{BTreeMap, BTreeSet};

use fingerpost_diagnose::fleet;
use fingerpost_record::text::{clean_short, counted};
use serde::Serialize;

use crate::group::OfGroup;
use crate::heat::{Heat, Picture};
use crate::nodes::fold;
use crate::standing::plain;
pub use crate::standing::{Host, PeerGroup, Slower, Standing};
use crate::sweep::{Pass, Stamp, State, Sweep, SweepError};
use crate::table::{HostRow, Table};

/// What a sweep says.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdicts {
    /// The sweep's id.
    pub id: String,
    /// When it began.
    pub started: String,
    /// The sentence that a person reads first.
    pub headline: String,
    /// The groups, largest first.
    pub groups: Vec<PeerGroup>,
    /// The hosts, slow ones first, then by name.
    pub hosts: Vec<Host>,
    /// Host by family: how many times slower than the peers' middle, for those beyond their peers and some that are
    /// not.
    pub heat: Heat,
    /// Hosts × rows, as a picture; only where [`judge`] was asked for one.
    #[serde(skip)]
    pub picture: Option<Picture>,
}

/// Judges a sweep; `pictured` with a picture of its hosts × rows.
///
/// # Errors
/// The system's.
pub fn judge(sweep: &Sweep, pictured: bool) -> Result<Verdicts, SweepError> {
    let mut table = Table::of(sweep)?;
    let again = confirmations(sweep, &mut table)?;
    let mut verdicts = Verdicts {
        id: sweep.manifest.id.clone(),
        started: sweep.manifest.started.clone(),
        ..Verdicts::default()
    };
    let families: BTreeSet<u8> = table.rows.iter().map(|row| row.group.number()).collect();
    verdicts.heat.families = families.iter().map(|f| table.family_name(*f)).collect();
    verdicts.picture = pictured.then(|| Picture::of(&table));
    for (kind, members) in table.groups() {
        let mut grid = table.grid(&members);
        let judged = fleet::judge(&mut grid);
        let of_group = OfGroup::of(sweep, &table, &members, &judged, &again);
        verdicts.hosts.extend(of_group.hosts(&grid));
        verdicts.groups.push(of_group.described(kind));
        let names: Vec<&str> = members
            .iter()
            .map(|host| table.hosts[*host].node.as_str())
            .collect();
        let accused = of_group.accused();
        verdicts.heat.add(&grid, &families, &names, &accused);
        if let Some(picture) = &mut verdicts.picture {
            picture.add(&grid, &names, &accused);
        }
    }
    for (node, state) in sweep.states()? {
        let (standing, reason) = match state {
            State::Failed(reason) => (Standing::Failed, Some(reason)),
            State::Left => (Standing::Left, None),
            State::Measured => match table.unreadable.get(&node) {
                Some(reason) => (Standing::Failed, Some(reason.clone())),
                None => continue,
            },
        };
        verdicts.hosts.push(Host {
            reason,
            ..plain(&node, standing)
        });
    }
    verdicts
        .groups
        .sort_by_key(|group| std::cmp::Reverse(group.hosts));
    verdicts
        .hosts
        .sort_by(|a, b| (a.standing, &a.node).cmp(&(b.standing, &b.node)));
    verdicts.headline = headline(&verdicts);
    Ok(verdicts)
}

/// The suspects of a sweep, each with so many random hosts of its group beside it: what a confirmation measures again.
///
/// # Errors
/// The system's.
pub fn to_confirm(
    sweep: &Sweep,
    controls: usize,
    mut random: impl FnMut(usize) -> usize,
) -> Result<(Vec<String>, Vec<String>), SweepError> {
    let table = Table::of(sweep)?;
    let (mut suspects, mut beside, again) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
    for members in table.groups().into_values() {
        let judged = fleet::judge(&mut table.grid(&members));
        let accused = OfGroup::of(sweep, &table, &members, &judged, &again).accused();
        let mut others: Vec<usize> = (0..members.len())
            .filter(|host| !accused.contains(host))
            .collect();
        for _ in 0..if accused.is_empty() {
            0
        } else {
            controls.min(others.len())
        } {
            beside.insert(
                table.hosts[members[others.swap_remove(random(others.len()))]]
                    .node
                    .clone(),
            );
        }
        suspects.extend(
            accused
                .iter()
                .map(|host| table.hosts[members[*host]].node.clone()),
        );
    }
    Ok((suspects, beside.into_iter().collect()))
}

/// The confirmation's records, by node.
fn confirmations(
    sweep: &Sweep,
    table: &mut Table,
) -> Result<BTreeMap<String, HostRow>, SweepError> {
    let mut read = |node: String| {
        sweep
            .read(Pass::Again, &node)
            .ok()
            .map(|run| (node.clone(), table.host(&node, &run, Stamp::default())))
    };
    Ok(sweep
        .measured(Pass::Again)?
        .into_iter()
        .filter_map(&mut read)
        .collect())
}

fn headline(v: &Verdicts) -> String {
    let measured = v.groups.iter().map(|g| g.hosts).sum::<usize>();
    let mut parts = Vec::new();
    for (standing, words) in [
        (Standing::Slow, "slow"),
        (Standing::Suspected, "suspected, not measured again"),
        (Standing::Failed, "without a record"),
        (Standing::Left, "not measured yet"),
        (Standing::Unresolved, "with too few peers to say"),
    ] {
        let nodes: Vec<String> = v
            .hosts
            .iter()
            .filter(|h| h.standing == standing)
            .map(|h| h.node.clone())
            .collect();
        if !nodes.is_empty() {
            parts.push(format!(
                "{} {words}: {}",
                nodes.len(),
                clean_short(&fold(&nodes), 200)
            ));
        }
    }
    let two = v
        .groups
        .iter()
        .filter(|g| !g.populations.is_empty())
        .count();
    if two > 0 {
        parts.push(format!(
            "two populations in {}",
            counted(two as u64, "peer group")
        ));
    }
    let none = if parts.is_empty() {
        "none is slow".to_owned()
    } else {
        parts.join("; ")
    };
    format!("{} measured; {none}.", counted(measured as u64, "host"))
}
