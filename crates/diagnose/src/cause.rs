//! What a cause is: one row, with all that rules, experiments, validation and screens need of it. Each has a file in
//! [`crate::causes`]; what none of its fields says, nothing else knows of it.

use fingerpost_record::reading::Name;
use fingerpost_record::{Change, Component, Layer};

use crate::facts::Facts;
use crate::judging::Verdict;
use crate::places::{Kind, Place};
use crate::sides::clues::Clues;
use crate::sides::sign::Sign;
use crate::thresholds::Threshold;

/// A cause. No field has a default: a row that lacks a part does not compile.
pub struct Cause {
    /// Its name, as findings have it.
    pub name: &'static str,
    /// The layer.
    pub layer: Layer,
    /// What it is called, and what is said of it.
    pub words: Words,
    /// The places of followed requests where it acts.
    pub places: &'static [Place],
    /// The parts of a budget that it moves.
    pub moves: &'static [Kind],
    /// The probes whose rows point to it and to nothing else, by name; `random.*` is all of a family.
    pub probes: &'static [&'static str],
    /// What a verdict needs.
    pub needs: &'static [Need],
    /// The causes that this one may be no more than a consequence of: more work for the same CPUs makes threads wait
    /// for them.
    pub follows: &'static [&'static str],
    /// Causes that would fit as well where nobody had the readings that tell them apart: then it is likely at most.
    pub told_from: &'static [ToldFrom],
    /// The figures that its verdict turns on.
    pub thresholds: &'static [Threshold],
    /// How one side is judged by it: what accuses it, what tells it from its neighbours, and what clears it; nothing
    /// where the facts do not tell. None where one side alone says nothing of it.
    pub(crate) one_side: Option<fn(&Facts) -> Option<Verdict>>,
    /// How two sides are judged by it. None where their difference says nothing of it.
    pub(crate) two_sides: Option<TwoSides>,
    /// The changes that take it away: experiments that decide about it.
    pub experiments: &'static [Change],
    /// The injected fault by which it is validated, where there is one.
    pub fault: Option<Fault>,
}

/// What a cause is called, and what is said of it.
#[derive(Debug)]
pub struct Words {
    /// What a table of suspects calls it.
    pub label: &'static str,
    /// What a headline calls it on the slower side.
    pub slower: &'static str,
    /// What takes the time, where that reads better than the label; `{server}` stands for the server's name.
    pub takes: Option<&'static str>,
    /// What tells it from its neighbours.
    pub tells: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

/// What a verdict cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Followed requests.
    Followed,
    /// A reading.
    Reading(Name),
}

/// A cause that would fit as well.
#[derive(Debug)]
pub struct ToldFrom {
    /// Its name.
    pub other: &'static str,
    /// Readings of which one is enough to tell.
    pub by: &'static [Name],
}

/// How two sides are judged by a cause.
pub(crate) struct TwoSides {
    /// Its place among those that are held against two sides. Where several fit the same part, the first is the sharper
    /// one, and has it.
    pub(crate) rank: u8,
    /// What tells it from its neighbours.
    pub(crate) sign: fn(&Clues) -> Sign,
    /// The causes that may explain what its parts grew by: its sign asks for theirs, and for no others.
    pub(crate) explained_by: &'static [&'static str],
    /// What it takes here of what no part of a budget has.
    pub(crate) rest: fn(&Clues) -> Rest,
    /// What it moves here besides what it always does.
    pub(crate) also: fn(&Clues, Layer, &Component) -> bool,
}

impl TwoSides {
    /// One that makes nothing but parts of a budget.
    pub(crate) const fn of_parts(rank: u8, sign: fn(&Clues) -> Sign) -> TwoSides {
        TwoSides {
            rank,
            sign,
            explained_by: &[],
            rest: |_| Rest::No,
            also: |_, _, _| false,
        }
    }
}

/// Whether a cause also takes what no part of a budget has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It does not.
    No,
    /// What it holds up may outlast a window of events, and so may other things: it is a likely cause of the rest, not
    /// confirmed.
    Perhaps,
    /// It does: a server that a quota stops is stopped for longer than a window is open, a connection that is not
    /// admitted waits where no observer looks, 40 ms for an acknowledgement outlast a window, 200 ms until a segment is
    /// sent again as well, and what a load generator does between requests is in none of them.
    Surely,
}

impl Rest {
    /// Surely where it holds, else nothing.
    pub(crate) fn surely(holds: bool) -> Rest {
        if holds { Rest::Surely } else { Rest::No }
    }
}

/// A fault that validation injects beside or into a server: the mechanism, not its size (`fingerpost_labs::prove`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A CPU quota on the server's control group.
    CpuQuota,
    /// The server may use one CPU.
    OneCpu,
    /// Another process uses all CPUs.
    BusyNeighbour,
    /// A higher nice value of the server, beside such a process.
    Niced,
    /// A long seccomp filter before each system call of the server.
    CallFilter,
    /// No speculative store bypass for the server.
    NoStoreBypass,
    /// Less memory for the server's control group than it holds, and a swap file.
    LittleMemory,
    /// No huge pages for the server.
    NoHugePages,
    /// A limit on the writes of the server's control group.
    WriteLimit,
    /// A sync for each transaction.
    SyncEach,
    /// Another process writes and syncs on the same disk.
    SyncingNeighbour,
    /// A limit on the bytes over the loopback interface.
    SlowLoopback,
    /// A listen queue of one.
    ShortListenQueue,
    /// Answers in two writes, held back by Nagle's algorithm.
    Nagle,
    /// One lock around the server's work.
    OneLock,
    /// A load generator that works hard.
    BusyClient,
}

impl Cause {
    /// Whether it moves a part of a budget.
    pub fn moves(&self, layer: Layer, component: &Component) -> bool {
        self.moves.contains(&Kind::of(layer, component))
    }
}

impl std::fmt::Debug for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cause").field("name", &self.name).finish()
    }
}
