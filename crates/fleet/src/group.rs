//! One group of peers of a sweep: what its hosts are called, and by which layer they are slow.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fingerpost_compare::{Comparison, Options, Side, compare_sides};
use fingerpost_diagnose::fleet::{self, Excess, Judged, Populations, Unit};
use fingerpost_record::Metric;
use fingerpost_record::Run;

use crate::odd::{Odd, Usual};
use crate::standing::{Host, PeerGroup, Slower, Standing, plain};
use crate::sweep::{Pass, Sweep};
use crate::table::{HostRow, Table};
use crate::told::{Told, Value, What};

/// Peers that a slow host is compared with for its layer: enough to outvote one that is strange itself.
const COMPARED: usize = 8;
/// Hosts of a group whose layer is looked for; a group with more slow ones has another problem.
const MOST_NAMED: usize = 100;
/// Units of a host that are told.
const MOST_UNITS: usize = 6;

/// A group of peers with what is known of it.
pub(crate) struct OfGroup<'a> {
    sweep: &'a Sweep,
    table: &'a Table,
    /// Its hosts, by their number in the table.
    members: &'a [usize],
    judged: &'a Judged,
    /// What the confirmation's records say, by node.
    again: &'a BTreeMap<String, HostRow>,
    usual: Option<Usual<'a>>,
    /// What sets hosts apart without a figure.
    odd: BTreeMap<usize, Vec<Odd>>,
}

/// What measuring a suspect again said.
struct Again {
    slow: bool,
    said: Slower,
}

impl<'a> OfGroup<'a> {
    /// Of these members, which were judged; `again` is what is known of the confirmation.
    pub(crate) fn of(
        sweep: &'a Sweep,
        table: &'a Table,
        members: &'a [usize],
        judged: &'a Judged,
        again: &'a BTreeMap<String, HostRow>,
    ) -> OfGroup<'a> {
        let hosts = members.iter().map(|host| &table.hosts[*host]);
        let usual = Usual::of(hosts.clone().collect(), &table.rows);
        let odd_of = |(at, host): (usize, &HostRow)| {
            Some((at, usual.as_ref()?.odd(host))).filter(|(_, odd)| !odd.is_empty())
        };
        let odd = hosts.enumerate().filter_map(odd_of).collect();
        OfGroup {
            sweep,
            table,
            members,
            judged,
            again,
            usual,
            odd,
        }
    }

    /// The hosts that stand out, by a figure or otherwise.
    pub(crate) fn accused(&self) -> BTreeSet<usize> {
        self.judged
            .accused()
            .iter()
            .map(|e| e.host)
            .chain(self.odd.keys().copied())
            .collect()
    }

    fn node(&self, host: usize) -> &str {
        &self.table.hosts[self.members[host]].node
    }

    /// The group's hosts with what they are called; `grid` is the centred one that was judged.
    pub(crate) fn hosts(&self, grid: &fleet::Grid) -> Vec<Host> {
        let accused: BTreeMap<usize, &Excess> = self
            .judged
            .accused()
            .into_iter()
            .map(|e| (e.host, e))
            .collect();
        let again = self.confirmed(grid, &accused);
        let of_host = |at: usize| match (accused.contains_key(&at), self.odd.get(&at)) {
            (false, None) => self.not_accused(self.node(at)),
            (_, odd) => self.suspect(at, odd.map_or(&[], Vec::as_slice), again.get(&at)),
        };
        let mut hosts: Vec<Host> = (0..self.members.len()).map(of_host).collect();
        self.name(&mut hosts, &accused);
        hosts
    }

    /// A host that stands out: what it is called, and in what it is slower.
    fn suspect(&self, at: usize, odd: &[Odd], again: Option<&Again>) -> Host {
        let node = self.node(at);
        // What is odd once may be chance, as of a page that was not available; what is odd again in the same way is
        // not.
        let odd_again = self
            .again
            .get(node)
            .and_then(|row| Some(self.usual.as_ref()?.odd(row)));
        let still = |again: &Vec<Odd>| again.iter().any(|a| odd.iter().any(|m| m.cause == a.cause));
        let standing = match (again, &odd_again) {
            (Some(again), _) if again.slow => Standing::Slow,
            (_, Some(odd)) if still(odd) => Standing::Slow,
            (None, None) => Standing::Suspected,
            // Measured again in nothing that accuses it.
            (None, _) if odd.is_empty() => Standing::Suspected,
            _ => Standing::NotConfirmed,
        };
        let of_host = self
            .judged
            .excesses
            .iter()
            .filter(|e| e.host == at)
            .take(MOST_UNITS);
        Host {
            again: again.map(|again| again.said.clone()),
            slower: of_host
                .map(|e| Slower::by(self.table.unit_name(e.unit), [e.effect, e.low, e.high]))
                .collect(),
            ..plain(node, standing)
        }
    }

    /// Says of each that is slow or suspected by which layer, on every CPU.
    fn name(&self, hosts: &mut [Host], accused: &BTreeMap<usize, &Excess>) {
        let mut left = MOST_NAMED;
        let mut to_name: Vec<(usize, Option<&Excess>)> = Vec::new();
        for (at, host) in hosts.iter().enumerate() {
            if matches!(host.standing, Standing::Slow | Standing::Suspected) {
                let first = accused.get(&at).copied().filter(|_| left > 0);
                left -= usize::from(first.is_some());
                to_name.push((at, first));
            }
        }
        let namer = Namer::of(self);
        let named = fleet::by_every_cpu(&to_name, |(at, first)| {
            namer.named(
                self.node(*at),
                *first,
                self.odd.get(at).map_or(&[], Vec::as_slice),
            )
        });
        for ((at, _), named) in to_name.iter().zip(named) {
            let host = &mut hosts[*at];
            (host.layer, host.cause, host.evidence) = (named.layer, named.cause, named.evidence);
        }
    }

    fn not_accused(&self, node: &str) -> Host {
        if self.judged.resolved {
            return plain(node, Standing::Ok);
        }
        let hosts = fingerpost_record::text::counted(self.members.len() as u64, "host");
        Host {
            reason: Some(format!(
                "{hosts} of its kind, and it takes {}",
                fleet::FEWEST
            )),
            ..plain(node, Standing::Unresolved)
        }
    }

    /// A later figure in a unit, as a difference from the middle of the sweep's first figures.
    fn value_again(&self, node: &str, unit: Unit) -> Option<(f64, f64)> {
        let cells = self
            .again
            .get(node)?
            .cells
            .iter()
            .filter(|c| self.table.is_within(c.0, unit));
        let centred = cells.filter_map(|(row, log, own)| {
            let place = self.judged.places.get(*row as usize).copied().flatten()?;
            Some((f64::from(*log) - place.centre, f64::from(*own)))
        });
        fleet::middle(&centred.collect::<Vec<_>>())
    }

    /// What measuring again said of each suspect that was: in every unit that accuses it, so that one noisy unit does
    /// not acquit it of the others.
    fn confirmed(
        &self,
        grid: &fleet::Grid,
        accused: &BTreeMap<usize, &Excess>,
    ) -> BTreeMap<usize, Again> {
        let mut tests: Vec<(Unit, usize, fleet::Confirmation)> = Vec::new();
        let mut beside: HashMap<Unit, Vec<(f64, f64)>> = HashMap::new();
        for at in accused.keys() {
            for first in self
                .judged
                .excesses
                .iter()
                .filter(|e| e.host == *at)
                .take(MOST_UNITS)
            {
                let Some(mine) = self.value_again(self.node(*at), first.unit) else {
                    continue;
                };
                let controls = beside.entry(first.unit).or_insert_with(|| {
                    let others = (0..self.members.len()).filter(|host| !accused.contains_key(host));
                    others
                        .filter_map(|host| self.value_again(self.node(host), first.unit))
                        .collect()
                });
                tests.extend(
                    fleet::confirm(first, mine, controls).map(|said| (first.unit, *at, said)),
                );
            }
        }
        let units: HashMap<Unit, Vec<Option<(f64, f64)>>> = tests
            .iter()
            .map(|(unit, ..)| (*unit, grid.unit(*unit)))
            .collect();
        let mut tested: Vec<fleet::Tested> = tests
            .iter()
            .map(|(unit, host, said)| fleet::Tested {
                host: *host,
                said: said.clone(),
                first: &units[unit],
            })
            .collect();
        let stands = fleet::stand(&mut tested);
        let mut again: BTreeMap<usize, Again> = BTreeMap::new();
        for ((unit, host, said), slow) in tests.iter().zip(stands) {
            let told = || Again {
                slow,
                said: Slower::by(
                    self.table.unit_name(*unit),
                    [said.effect, said.low, said.high],
                ),
            };
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
        // Rows in which the same hosts are slower are one sentence: their list is not repeated for each.
        let mut alike: Vec<(&Populations, Vec<String>)> = Vec::new();
        for (unit, two) in &self.judged.populations {
            let same = |first: &Populations| {
                first.slower.iter().collect::<BTreeSet<_>>()
                    == two.slower.iter().collect::<BTreeSet<_>>()
            };
            match alike.iter_mut().find(|(first, _)| same(first)) {
                Some((_, units)) => units.push(self.table.unit_name(*unit)),
                None => alike.push((two, vec![self.table.unit_name(*unit)])),
            }
        }
        let names = |hosts: &[usize]| {
            crate::nodes::fold(
                &hosts
                    .iter()
                    .map(|h| self.node(*h).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        let populations = alike
            .iter()
            .map(|(two, units)| sentence_of_two(two, units, &names(&two.slower)));
        PeerGroup {
            kind: kind.to_owned(),
            hosts: self.members.len(),
            resolved: self.judged.resolved,
            populations: populations.collect(),
        }
    }
}

/// Units that are named where the same hosts are two populations in several.
const MOST_ALIKE: usize = 4;

/// Two populations in words: in what, who is slower, and in what else the same hosts are.
fn sentence_of_two(two: &Populations, units: &[String], hosts: &str) -> String {
    let (first, others) = units
        .split_first()
        .expect("there is one that they were found in");
    let (slower, faster, percent) = (
        two.slower.len(),
        two.faster.len(),
        (two.apart.exp() - 1.0) * 100.0,
    );
    let said = format!(
        "two populations in {first}: {slower} hosts are {percent:.0} % slower than the other {faster}: {hosts}"
    );
    if others.is_empty() {
        return said;
    }
    let named = others
        .iter()
        .take(MOST_ALIKE)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    let more = others.len().saturating_sub(MOST_ALIKE);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{said}; the same hosts in {named}{more}")
}

/// Has the engine that compares two systems say what is between a host and its peers.
struct Namer<'a> {
    group: &'a OfGroup<'a>,
    /// Peers that nobody accuses, read once; nothing where there are none.
    peers: Option<Side>,
}

/// By what a host is slow.
#[derive(Default)]
struct Named {
    layer: Option<&'static str>,
    cause: Option<String>,
    evidence: Vec<Told>,
}

impl Named {
    fn told(&mut self, cause: &str, layer: &'static str) {
        (self.layer, self.cause) = (Some(layer), Some(cause.to_owned()));
    }
}

impl<'a> Namer<'a> {
    fn of(group: &'a OfGroup<'a>) -> Namer<'a> {
        let accused = group.accused();
        let others = (0..group.members.len())
            .filter(|other| !accused.is_empty() && !accused.contains(other));
        let read = others.filter_map(|other| group.sweep.read(Pass::First, group.node(other)).ok());
        let peers: Vec<Run> = read.take(COMPARED).collect();
        Namer {
            group,
            peers: (!peers.is_empty()).then(|| Side::of(&peers)),
        }
    }

    fn named(&self, node: &str, first: Option<&Excess>, odd: &[Odd]) -> Named {
        let mut named = Named {
            evidence: odd.iter().map(|odd| odd.evidence.clone()).collect(),
            ..Named::default()
        };
        if let Some(odd) = odd.first() {
            named.told(odd.cause, odd.layer.as_str());
        }
        let (Some(first), Some(peers)) = (first, &self.peers) else {
            return named;
        };
        let Ok(own) = self.group.sweep.read(Pass::First, node) else {
            return named;
        };
        let options = Options {
            threshold: fleet::LEAST,
            ..Options::default()
        };
        let comparison: Comparison = compare_sides(peers, &Side::of(&[own]), &options);
        if let Some(cause) = comparison.causes.iter().find(|c| c.status.accuses()) {
            // Slow figures are the consequence of what takes the CPU.
            if odd.first().is_none_or(|odd| !odd.of_cpu) {
                named.told(&cause.cause, cause.layer.as_str());
            }
            // A description that differs is told below, in words that tell the host from its peers; all of them may
            // have one host name.
            named.evidence.extend(
                cause
                    .evidence
                    .iter()
                    .filter(|fact| fact.metric != Metric::HostDiffers)
                    .map(|fact| Told::Compared(Box::new(fact.clone()))),
            );
        } else if let Some(cause) = self
            .group
            .table
            .cause_of(first.unit)
            .filter(|_| odd.is_empty())
        {
            named.told(cause.name, cause.layer.as_str());
        }
        named
            .evidence
            .extend(comparison.hosts.iter().map(|d| Told::Differs {
                what: What::Described(d.what.to_string()),
                here: Value::Text(d.new.clone()),
                peers: Value::Text(d.base.clone()),
            }));
        named
    }
}
