//! One group of peers of a sweep: what its hosts are called, and by which layer they are slow.

use std::collections::{BTreeMap, HashMap};

use fingerpost_compare::{Comparison, Options, compare};
use fingerpost_diagnose::fleet::{self, Excess, Judged, Unit};
use fingerpost_record::Run;

use crate::judge::{Host, PeerGroup, Slower, Standing, cause_of, plain, unit_name};
use crate::odd::{Odd, Usual};
use crate::sweep::{Pass, Sweep};
use crate::table::{HostRow, Table};

/// Peers that a slow host is compared with for its layer: enough to outvote one that is strange itself.
const COMPARED: usize = 8;
/// Hosts of a group whose layer is looked for; a group with more slow ones has another problem.
const MOST_NAMED: usize = 100;
/// Units of a host that are told.
const MOST_UNITS: usize = 6;

/// A group of peers with what is known of it.
pub(crate) struct OfGroup<'a> {
    pub(crate) sweep: &'a Sweep,
    pub(crate) table: &'a Table,
    /// Its hosts, by their number in the table.
    pub(crate) members: &'a [usize],
    pub(crate) judged: &'a Judged,
    /// What the confirmation's records say, by node.
    pub(crate) again: &'a BTreeMap<String, HostRow>,
}

/// What measuring a suspect again said.
struct Again {
    slow: bool,
    said: Slower,
}

impl OfGroup<'_> {
    fn node(&self, host: usize) -> &str {
        &self.table.hosts[self.members[host]].node
    }

    fn unit_name(&self, unit: Unit) -> String {
        unit_name(unit, &self.table.rows)
    }

    /// The group's hosts with what they are called; `grid` is the centred one that was judged.
    pub(crate) fn hosts(&self, grid: &fleet::Grid) -> Vec<Host> {
        let accused: BTreeMap<usize, &Excess> = self.judged.accused().into_iter().map(|e| (e.host, e)).collect();
        let usual = Usual::of(self.members.iter().map(|host| &self.table.hosts[*host]).collect(), &self.table.rows);
        let odd: BTreeMap<usize, Vec<Odd>> = (0..self.members.len())
            .filter_map(|at| Some((at, usual.as_ref()?.odd(&self.table.hosts[self.members[at]]))))
            .filter(|(_, odd)| !odd.is_empty())
            .collect();
        let again = self.confirmed(grid, &accused);
        let mut namer = Namer::of(self, |host| accused.contains_key(&host) || odd.contains_key(&host));
        let host = |at: usize| {
            let node = self.node(at);
            let (first, mine) = (accused.get(&at).copied(), odd.get(&at).map_or(&[][..], Vec::as_slice));
            if first.is_none() && mine.is_empty() {
                return self.not_accused(node);
            }
            // What is odd once may be chance, as of a page that was not available; what is odd again in the same way is not.
            let odd_again = self.again.get(node).and_then(|row| Some(usual.as_ref()?.odd(row)));
            let still = |again: &Vec<Odd>| again.iter().any(|a| mine.iter().any(|m| m.cause == a.cause));
            let standing = match (again.get(&at), &odd_again) {
                (Some(again), _) if again.slow => Standing::Slow,
                (_, Some(odd)) if still(odd) => Standing::Slow,
                (None, None) => Standing::Suspected,
                // Measured again in nothing that accuses it.
                (None, _) if mine.is_empty() => Standing::Suspected,
                _ => Standing::NotConfirmed,
            };
            let mut host = plain(node, standing);
            host.again = again.get(&at).map(|again| again.said.clone());
            let of_host = self.judged.excesses.iter().filter(|e| e.host == at).take(MOST_UNITS);
            host.slower = of_host.map(|e| self.slower(e.unit, [e.effect, e.low, e.high])).collect();
            if standing != Standing::NotConfirmed {
                namer.name(&mut host, first, mine);
            }
            host
        };
        (0..self.members.len()).map(host).collect()
    }

    fn not_accused(&self, node: &str) -> Host {
        if self.judged.resolved {
            return plain(node, Standing::Ok);
        }
        let hosts = fingerpost_record::text::counted(self.members.len() as u64, "host");
        Host { reason: Some(format!("{hosts} of its kind, and it takes {}", fleet::FEWEST)), ..plain(node, Standing::Unresolved) }
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
        let cells = self.again.get(node)?.cells.iter().filter(|c| within(c.0));
        let centred = cells.filter_map(|(row, log, own)| {
            let place = self.judged.places.get(*row as usize).copied().flatten()?;
            Some((f64::from(*log) - place.centre, f64::from(*own)))
        });
        fleet::middle(&centred.collect::<Vec<_>>())
    }

    /// What measuring again said of each suspect that was: in every unit that accuses it, so that one noisy unit does not acquit it of
    /// the others.
    fn confirmed(&self, grid: &fleet::Grid, accused: &BTreeMap<usize, &Excess>) -> BTreeMap<usize, Again> {
        let mut tests: Vec<(Unit, usize, fleet::Confirmation)> = Vec::new();
        let mut beside: HashMap<Unit, Vec<(f64, f64)>> = HashMap::new();
        for at in accused.keys() {
            for first in self.judged.excesses.iter().filter(|e| e.host == *at).take(MOST_UNITS) {
                let Some(mine) = self.value_again(self.node(*at), first.unit) else { continue };
                let controls = beside.entry(first.unit).or_insert_with(|| {
                    let others = (0..self.members.len()).filter(|host| !accused.contains_key(host));
                    others.filter_map(|host| self.value_again(self.node(host), first.unit)).collect()
                });
                tests.extend(fleet::confirm(first, mine, controls).map(|said| (first.unit, *at, said)));
            }
        }
        let units: HashMap<Unit, Vec<Option<(f64, f64)>>> = tests.iter().map(|(unit, ..)| (*unit, grid.unit(*unit))).collect();
        let mut tested: Vec<fleet::Tested> =
            tests.iter().map(|(unit, host, said)| fleet::Tested { host: *host, said: said.clone(), first: &units[unit] }).collect();
        let stands = fleet::stand(&mut tested);
        let mut again: BTreeMap<usize, Again> = BTreeMap::new();
        for ((unit, host, said), slow) in tests.iter().zip(stands) {
            let told = || Again { slow, said: self.slower(*unit, [said.effect, said.low, said.high]) };
            // The strongest unit first, but one that stands before one that does not.
            match again.get_mut(host) {
                Some(known) if known.slow || !slow => {}
                Some(known) => *known = told(),
                None => drop(again.insert(*host, told())),
            }
        }
        again
    }

    pub(crate) fn described(&self, kind: &str) -> PeerGroup {
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
}

/// Has the engine that compares two systems say what is between a host and its peers.
struct Namer<'a> {
    group: &'a OfGroup<'a>,
    /// Peers that nobody accuses, read once.
    peers: Vec<Run>,
    named: usize,
}

impl<'a> Namer<'a> {
    fn of(group: &'a OfGroup<'a>, accused: impl Fn(usize) -> bool) -> Namer<'a> {
        let any = (0..group.members.len()).any(&accused);
        let innocent = (0..group.members.len()).filter(|other| any && !accused(*other));
        let peers = innocent.filter_map(|other| group.sweep.read(Pass::First, group.node(other)).ok()).take(COMPARED).collect();
        Namer { group, peers, named: 0 }
    }

    fn name(&mut self, host: &mut Host, first: Option<&Excess>, odd: &[Odd]) {
        let told = |host: &mut Host, cause: &str, layer: &'static str| (host.layer, host.cause) = (Some(layer), Some(cause.to_owned()));
        host.evidence.extend(odd.iter().map(|odd| odd.evidence.clone()));
        if let Some(odd) = odd.first() {
            told(host, odd.cause, odd.layer.as_str());
        }
        let Some(first) = first else { return };
        let Ok(own) = self.group.sweep.read(Pass::First, &host.node) else { return };
        self.named += 1;
        if self.peers.is_empty() || self.named > MOST_NAMED {
            return;
        }
        let comparison: Comparison = compare(&self.peers, &[own], &Options { threshold: fleet::LEAST, ..Options::default() });
        if let Some(cause) = comparison.causes.iter().find(|c| c.status.accuses()) {
            // Slow figures are the consequence of what takes the CPU.
            if odd.first().is_none_or(|odd| !odd.of_cpu) {
                told(host, &cause.cause, cause.layer.as_str());
            }
            // A description that differs is told below, in words that tell the host from its peers; all of them may have one host name.
            let described = |sentence: &String| comparison.hosts.iter().any(|d| sentence.starts_with(&format!("{} differs: ", d.what)));
            host.evidence.extend(cause.evidence.iter().filter(|sentence| !described(sentence)).cloned());
        } else if let Some(cause) = cause_of(first.unit, &self.group.table.rows).filter(|_| odd.is_empty()) {
            told(host, cause.cause, cause.layer.as_str());
        }
        host.evidence.extend(comparison.hosts.iter().map(|d| format!("{}: {} on its peers, {} here", d.what, d.base, d.new)));
    }
}
