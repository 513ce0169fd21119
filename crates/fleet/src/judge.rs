//! Which hosts of a sweep are slow, by which layer, and what is known of the others.

use std::collections::{BTreeMap, BTreeSet};

use fingerpost_compare::causes::groups::{GROUP_CAUSES, Group, GroupCause};
use fingerpost_compare::{Comparison, Options, compare};
use fingerpost_diagnose::fleet::{self, Confirmation, Excess, Judged, Unit, confirm};
use fingerpost_record::Run;
use serde::Serialize;

use crate::sweep::{Pass, State, Sweep, SweepError};
use crate::table::{Cell, Row, Table};

/// Peers that a slow host is compared with for its layer: enough to outvote one that is strange itself.
const COMPARED: usize = 8;
/// Slow hosts whose layer is looked for; a sweep with more has another problem.
const MOST_NAMED: usize = 200;
/// Units of a host that are told.
const MOST_UNITS: usize = 6;

/// What a host is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Beyond its peers, and again when measured again.
    Slow,
    /// Beyond its peers, and not measured again.
    Suspected,
    /// There is no record.
    Failed,
    /// Not begun, or interrupted.
    Left,
    /// Too few peers to say.
    Unresolved,
    /// Beyond its peers, and not when measured again.
    NotConfirmed,
    /// Among its peers.
    Ok,
}

/// How many times slower a host is in something.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slower {
    /// In what: a row, a family, or all rows.
    pub what: String,
    /// How many times slower than the middle of the peers.
    pub ratio: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// A host of the sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Host {
    /// The node.
    pub node: String,
    /// What it is called.
    pub standing: Standing,
    /// Why, in a sentence, where that needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The layer that makes it slow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<&'static str>,
    /// The cause, where one was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// In what it is slower, strongest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slower: Vec<Slower>,
    /// What measuring again said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<Slower>,
}

/// A group of peers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerGroup {
    /// What they have in common.
    pub kind: String,
    /// How many they are.
    pub hosts: usize,
    /// Whether they are enough to accuse one of them.
    pub resolved: bool,
    /// Where they are two populations, a sentence each.
    pub populations: Vec<String>,
}

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
    /// Host by family: how many times slower than the peers' middle, for those beyond their peers and some that are not.
    pub heat: Heat,
}

/// Hosts × families.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Heat {
    /// The families.
    pub families: Vec<String>,
    /// Hosts with a ratio each; nothing where it was not observed.
    pub hosts: Vec<(String, Vec<Option<f64>>)>,
}

/// Hosts of the heat map that are not accused, for the eye to compare with.
const HEAT_OTHERS: usize = 24;
/// Hosts of the heat map at most.
const HEAT_MOST: usize = 400;

/// Judges a sweep.
///
/// # Errors
/// The system's.
pub fn judge(sweep: &Sweep) -> Result<Verdicts, SweepError> {
    let mut table = Table::of(sweep)?;
    let again = confirmations(sweep, &mut table)?;
    let mut verdicts = Verdicts { id: sweep.manifest.id.clone(), started: sweep.manifest.started.clone(), ..Verdicts::default() };
    let families: BTreeSet<u8> = table.rows.iter().map(|row| row.group as u8).collect();
    verdicts.heat.families = families.iter().map(|f| family_name(*f, &table.rows)).collect();
    for (kind, members) in table.groups() {
        let mut grid = table.grid(&members);
        let judged = fleet::judge(&mut grid);
        let of_group = OfGroup { sweep, table: &table, members: &members, judged: &judged, again: &again };
        verdicts.hosts.extend(of_group.hosts());
        verdicts.groups.push(of_group.described(kind));
        of_group.heat(&grid, &families, &mut verdicts.heat);
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
        verdicts.hosts.push(Host { reason, ..plain(&node, standing) });
    }
    verdicts.groups.sort_by_key(|group| std::cmp::Reverse(group.hosts));
    verdicts.hosts.sort_by(|a, b| (a.standing, &a.node).cmp(&(b.standing, &b.node)));
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
    let (mut suspects, mut beside) = (Vec::new(), BTreeSet::new());
    for members in table.groups().into_values() {
        let judged = fleet::judge(&mut table.grid(&members));
        let accused: BTreeSet<usize> = judged.accused().iter().map(|e| e.host).collect();
        let mut others: Vec<usize> = (0..members.len()).filter(|host| !accused.contains(host)).collect();
        for _ in 0..if accused.is_empty() { 0 } else { controls.min(others.len()) } {
            beside.insert(table.hosts[members[others.swap_remove(random(others.len()))]].node.clone());
        }
        suspects.extend(accused.iter().map(|host| table.hosts[members[*host]].node.clone()));
    }
    Ok((suspects, beside.into_iter().collect()))
}

fn confirmations(sweep: &Sweep, table: &mut Table) -> Result<BTreeMap<String, Vec<Cell>>, SweepError> {
    let read = |node: String| sweep.read(Pass::Again, &node).ok().map(|run| (node, run));
    let runs: Vec<(String, Run)> = sweep.measured(Pass::Again)?.into_iter().filter_map(read).collect();
    Ok(runs.into_iter().map(|(node, run)| (node, table.cells(&run))).collect())
}

fn plain(node: &str, standing: Standing) -> Host {
    Host { node: node.to_owned(), standing, reason: None, layer: None, cause: None, evidence: Vec::new(), slower: Vec::new(), again: None }
}

/// A family as a person calls it.
fn family_name(family: u8, rows: &[Row]) -> String {
    let group = rows.iter().map(|row| row.group).find(|group| *group as u8 == family);
    let words = |group: Group| match group {
        Group::Cpu => "arithmetic in user mode",
        Group::Workload => "servers and programs under load",
        other => GROUP_CAUSES.iter().find(|c| c.group == other).map_or("other rows", |c| c.words),
    };
    group.map_or_else(String::new, |group| words(group).to_owned())
}

/// The cause that a family points at by itself.
pub(crate) fn cause_of(unit: Unit, rows: &[Row]) -> Option<&'static GroupCause> {
    let of = match unit {
        Unit::All => return None,
        Unit::Family(family) => rows.iter().map(|row| row.group).find(|g| *g as u8 == family)?,
        Unit::Row(row) => rows[row as usize].group,
    };
    GROUP_CAUSES.iter().find(|cause| cause.group == of)
}

/// A unit as a person calls it.
pub(crate) fn unit_name(unit: Unit, rows: &[Row]) -> String {
    match unit {
        Unit::All => "all rows".to_owned(),
        Unit::Family(family) => family_name(family, rows),
        Unit::Row(row) => rows[row as usize].name(),
    }
}

struct OfGroup<'a> {
    sweep: &'a Sweep,
    table: &'a Table,
    members: &'a [usize],
    judged: &'a Judged,
    again: &'a BTreeMap<String, Vec<Cell>>,
}

impl OfGroup<'_> {
    fn node(&self, host: usize) -> &str {
        &self.table.hosts[self.members[host]].node
    }

    fn unit_name(&self, unit: Unit) -> String {
        unit_name(unit, &self.table.rows)
    }

    fn hosts(&self) -> Vec<Host> {
        let accused: BTreeMap<usize, &Excess> = self.judged.accused().into_iter().map(|e| (e.host, e)).collect();
        let mut named = 0;
        let host = |at: usize| {
            let node = self.node(at);
            let Some(first) = accused.get(&at) else {
                let (standing, reason) = match self.judged.resolved {
                    true => (Standing::Ok, None),
                    false => (
                        Standing::Unresolved,
                        Some(format!(
                            "{} of its kind, and it takes {}",
                            fingerpost_record::text::counted(self.members.len() as u64, "host"),
                            fleet::FEWEST
                        )),
                    ),
                };
                return Host { reason, ..plain(node, standing) };
            };
            let again = self.confirmed(at, first, &accused);
            let standing = match &again {
                Some(c) if c.slow => Standing::Slow,
                Some(_) => Standing::NotConfirmed,
                None => Standing::Suspected,
            };
            let mut host = plain(node, standing);
            host.again = again.map(|c| self.slower(first.unit, [c.effect, c.low, c.high]));
            let of_host = self.judged.excesses.iter().filter(|e| e.host == at).take(MOST_UNITS);
            host.slower = of_host.map(|e| self.slower(e.unit, [e.effect, e.low, e.high])).collect();
            named += 1;
            if standing != Standing::NotConfirmed && named <= MOST_NAMED {
                self.name_layer(&mut host, first, &accused);
            }
            host
        };
        (0..self.members.len()).map(host).collect()
    }

    fn slower(&self, unit: Unit, [effect, low, high]: [f64; 3]) -> Slower {
        Slower { what: self.unit_name(unit), ratio: effect.exp(), low: low.exp(), high: high.exp() }
    }

    /// A later figure in a unit, as a difference from the middle of the sweep's first figures.
    fn value_again(&self, node: &str, unit: Unit) -> Option<(f64, f64)> {
        let within = |row: u32| match unit {
            Unit::All => true,
            Unit::Family(family) => self.table.rows[row as usize].group as u8 == family,
            Unit::Row(only) => row == only,
        };
        let cells = self.again.get(node)?.iter().filter(|c| within(c.0));
        let centred = cells.filter_map(|(row, log, own)| {
            let place = self.judged.places.get(*row as usize).copied().flatten()?;
            Some((f64::from(*log) - place.centre, f64::from(*own)))
        });
        fleet::middle(&centred.collect::<Vec<_>>())
    }

    fn confirmed(&self, at: usize, first: &Excess, accused: &BTreeMap<usize, &Excess>) -> Option<Confirmation> {
        let mine = self.value_again(self.node(at), first.unit)?;
        let others = (0..self.members.len()).filter(|host| !accused.contains_key(host));
        let controls: Vec<(f64, f64)> = others.filter_map(|host| self.value_again(self.node(host), first.unit)).collect();
        confirm(first, mine, &controls)
    }

    /// Has the engine that compares two systems say what is between this host and its peers.
    fn name_layer(&self, host: &mut Host, first: &Excess, accused: &BTreeMap<usize, &Excess>) {
        let peers: Vec<Run> = (0..self.members.len())
            .filter(|other| !accused.contains_key(other))
            .filter_map(|other| self.sweep.read(Pass::First, self.node(other)).ok())
            .take(COMPARED)
            .collect();
        let Ok(own) = self.sweep.read(Pass::First, &host.node) else { return };
        if peers.is_empty() {
            return;
        }
        let comparison: Comparison = compare(&peers, &[own], &Options { threshold: fleet::LEAST, paired: false });
        if let Some(cause) = comparison.causes.iter().find(|c| c.status.accuses()) {
            (host.layer, host.cause) = (Some(cause.layer.as_str()), Some(cause.cause.clone()));
            host.evidence.clone_from(&cause.evidence);
        } else if let Some(cause) = cause_of(first.unit, &self.table.rows) {
            (host.layer, host.cause) = (Some(cause.layer.as_str()), Some(cause.cause.to_owned()));
        }
        host.evidence.extend(comparison.hosts.iter().map(|d| format!("{}: {} on its peers, {} here", d.what, d.base, d.new)));
    }

    fn described(&self, kind: &str) -> PeerGroup {
        let populations = self.judged.populations.iter().map(|(unit, two)| {
            let names = |hosts: &[usize]| crate::nodes::fold(&hosts.iter().map(|h| self.node(*h).to_owned()).collect::<Vec<_>>());
            format!(
                "two populations in {}: {} hosts are {:.0} % slower than the other {}: {}",
                self.unit_name(*unit),
                two.slower.len(),
                (two.apart.exp() - 1.0) * 100.0,
                two.faster.len(),
                names(&two.slower)
            )
        });
        PeerGroup { kind: kind.to_owned(), hosts: self.members.len(), resolved: self.judged.resolved, populations: populations.collect() }
    }

    fn heat(&self, grid: &fleet::Grid, families: &BTreeSet<u8>, heat: &mut Heat) {
        let accused: BTreeSet<usize> = self.judged.accused().iter().map(|e| e.host).collect();
        let others = (0..self.members.len()).filter(|host| !accused.contains(host)).take(HEAT_OTHERS);
        let columns: Vec<_> = families.iter().map(|f| grid.together(Some(*f))).collect();
        for host in accused.iter().copied().chain(others).take(HEAT_MOST.saturating_sub(heat.hosts.len())) {
            let ratios = columns.iter().map(|column| column[host].map(|(log, _)| log.exp())).collect();
            heat.hosts.push((self.node(host).to_owned(), ratios));
        }
    }
}

fn headline(v: &Verdicts) -> String {
    let of = |standing: Standing| -> Vec<String> { v.hosts.iter().filter(|h| h.standing == standing).map(|h| h.node.clone()).collect() };
    let measured = v.groups.iter().map(|g| g.hosts).sum::<usize>();
    let mut parts = Vec::new();
    for (standing, words) in [
        (Standing::Slow, "slow"),
        (Standing::Suspected, "suspected, not measured again"),
        (Standing::Failed, "without a record"),
        (Standing::Left, "not measured yet"),
        (Standing::Unresolved, "with too few peers to say"),
    ] {
        let nodes = of(standing);
        if !nodes.is_empty() {
            parts.push(format!("{} {words}: {}", nodes.len(), fingerpost_record::text::clean_short(&crate::nodes::fold(&nodes), 200)));
        }
    }
    let two = v.groups.iter().filter(|g| !g.populations.is_empty()).count();
    if two > 0 {
        parts.push(format!("two populations in {}", fingerpost_record::text::counted(two as u64, "peer group")));
    }
    let none = if parts.is_empty() { "none is slow".to_owned() } else { parts.join("; ") };
    format!("{} measured; {none}.", fingerpost_record::text::counted(measured as u64, "host"))
}
