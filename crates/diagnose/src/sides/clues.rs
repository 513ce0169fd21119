//! What the two runs know about one workload step: totals of its observers, and facts of the hosts.
//!
//! Observers name their totals; [`Clues`] looks a total up by the names of [`super::catalogue`]'s vocabulary, over all observers of the
//! step, with `cheap` the side on which a transaction takes less time and `dear` the other.

use fingerpost_record::{Budget, Host, Layer, Observation, Paths};

use super::older::resolved;
use crate::Totals;
use crate::entering::Entering;
use crate::places::{Place, Places, name, places};
use crate::steps::Evidence;

/// The system calls whose count times the unit cost of a probe is held against the budget.
pub const SYSCALL_COUNT: &[(&str, &str)] = &[
    ("read", "syscall.read"),
    ("pread64", "syscall.read"),
    ("write", "syscall.write"),
    ("pwrite64", "syscall.write"),
    ("stat", "syscall.stat"),
    ("newfstatat", "syscall.stat"),
    ("fstat", "syscall.fstat"),
    ("openat", "syscall.open_close"),
    ("poll", "syscall.poll"),
    ("epoll_wait", "syscall.epoll"),
    ("futex", "syscall.null"),
    ("fcntl", "syscall.null"),
    ("lseek", "syscall.null"),
    ("recvfrom", "syscall.read"),
    ("sendto", "syscall.write"),
    ("mmap", "vm.mmap"),
    ("munmap", "vm.munmap"),
    ("mprotect", "vm.mprotect"),
    ("clone", "thread.create"),
    ("fork", "process.fork"),
    ("vfork", "process.vfork"),
    ("execve", "process.exec"),
    ("fsync", "fs.fsync"),
    ("fdatasync", "fs.fdatasync"),
    ("rt_sigaction", "signal.install"),
];

/// The part of a budget that the kernel's time outside of traced calls moves to.
const OUTSIDE_OF_CALLS: &str = "kernel: outside of calls";

/// A total on both sides, per transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The side with the shorter transactions.
    pub cheap: f64,
    /// The side with the longer ones.
    pub dear: f64,
}

impl Pair {
    /// How many times as much; from nothing to something counts as a thousandfold.
    pub fn ratio(self) -> f64 {
        if self.cheap > 0.0 {
            self.dear / self.cheap
        } else if self.dear > 0.0 {
            1e3
        } else {
            1.0
        }
    }

    /// Both together.
    pub fn sum(a: Pair, b: Pair) -> Pair {
        Pair { cheap: a.cheap + b.cheap, dear: a.dear + b.dear }
    }

    /// What came on top.
    pub fn more(self) -> f64 {
        self.dear - self.cheap
    }
}

/// Both sides' knowledge of one workload step.
pub struct Clues<'a> {
    base: (Evidence<'a>, &'a Budget),
    new: (Evidence<'a>, &'a Budget),
    /// Their parts, queues resolved: seconds per transaction.
    parts: [Vec<(Layer, &'a str, f64)>; 2],
    /// The places of their followed requests, where both have them.
    places: Option<[Places; 2]>,
    /// Their requests' time on a CPU by trace and by ticks, where both know it.
    entering: Option<[Entering; 2]>,
    new_is_dear: bool,
}

impl<'a> Clues<'a> {
    /// The clues about a step that both sides have a budget of.
    pub fn new(base: Evidence<'a>, new: Evidence<'a>, base_budget: &'a Budget, new_budget: &'a Budget) -> Self {
        let new_is_dear = longer((base, base_budget), (new, new_budget));
        let parts = [resolved(&base, base_budget), resolved(&new, new_budget)];
        let places = places_of((base, base_budget)).zip(places_of((new, new_budget))).map(|(b, n)| [b, n]);
        let entering = entering_of((base, base_budget)).zip(entering_of((new, new_budget))).map(|(b, n)| [b, n]);
        let mut clues = Clues { base: (base, base_budget), new: (new, new_budget), parts, places, entering, new_is_dear };
        clues.move_entering();
        clues
    }

    /// What the slower side's own code has more than the other's and ticks count as the kernel's is time of the kernel's outside of calls.
    fn move_entering(&mut self) {
        let Some([cheap, dear]) = self.entering() else { return };
        let parts = &mut self.parts[usize::from(self.new_is_dear)];
        let Some(user) = parts.iter_mut().find(|p| p.1 == name::USER).filter(|_| dear.traced_user > 0.0) else { return };
        // Requests behind others wait for the same code: the share of it holds for all of that part.
        let moved = user.2 * (dear.more_than(&cheap) / dear.traced_user).min(1.0);
        if moved > 0.0 {
            user.2 -= moved;
            parts.push((Layer::Kernel, OUTSIDE_OF_CALLS, moved));
        }
    }

    /// Whether both sides' requests were followed.
    pub fn followed(&self) -> bool {
        self.places.is_some()
    }

    /// A request's time on a CPU by trace and by ticks, cheap and dear.
    pub fn entering(&self) -> Option<[Entering; 2]> {
        let [base, new] = self.entering?;
        Some(if self.new_is_dear { [base, new] } else { [new, base] })
    }

    /// Whether both budgets have parts. Where requests could not be followed, how much a cause makes of the change is not known.
    pub fn have_parts(&self) -> bool {
        self.parts.iter().all(|parts| !parts.is_empty())
    }

    /// Seconds of a request in these places, where both sides' requests were followed.
    pub fn places(&self, of: &[Place]) -> Option<Pair> {
        let seconds = |places: &Places| of.iter().filter_map(|place| places.get(place)).map(|sum| sum.share.seconds).sum::<f64>();
        let [base, new] = self.places.as_ref()?.each_ref().map(seconds);
        Some(if self.new_is_dear { Pair { cheap: base, dear: new } } else { Pair { cheap: new, dear: base } })
    }

    /// Who had most of a place on the slower side; nothing where that is not known.
    pub fn whom(&self, place: Place) -> Option<&str> {
        let places = &self.places.as_ref()?[usize::from(self.new_is_dear)];
        places.get(&place)?.whom.first().map(|(name, _)| name.as_str())
    }

    /// The side with the longer transactions.
    pub fn dear(&self) -> Evidence<'a> {
        if self.new_is_dear { self.new.0 } else { self.base.0 }
    }

    /// The side with the shorter transactions.
    pub fn cheap(&self) -> Evidence<'a> {
        if self.new_is_dear { self.base.0 } else { self.new.0 }
    }

    /// The hosts, cheap and dear.
    pub fn hosts(&self) -> (&'a Host, &'a Host) {
        (self.cheap().host, self.dear().host)
    }

    /// A total as it is (a share, a level, a count of CPUs).
    pub fn total(&self, name: &str) -> Option<Pair> {
        self.pair(total(self.base, name), total(self.new, name))
    }

    /// A total divided by the transactions.
    pub fn per_transaction(&self, name: &str) -> Option<Pair> {
        self.pair(self.per_transaction_base(name), self.per_transaction_new(name))
    }

    /// A total of the base side divided by its transactions.
    pub fn per_transaction_base(&self, name: &str) -> Option<f64> {
        Some(total(self.base, name)? / transactions(self.base))
    }

    /// A total of the new side divided by its transactions.
    pub fn per_transaction_new(&self, name: &str) -> Option<f64> {
        Some(total(self.new, name)? / transactions(self.new))
    }

    /// System calls of the server per transaction, all kinds together.
    pub fn calls_per_transaction(&self) -> Option<Pair> {
        let calls = |(side, budget): (Evidence, &Budget)| {
            let of = of_step(side, budget)
                .flat_map(|o| &o.totals)
                .filter(|(name, _)| name.starts_with("server.call.") && name.ends_with(".count"));
            let counts: Vec<f64> = of.map(|(_, n)| *n).collect();
            (!counts.is_empty()).then(|| counts.iter().sum::<f64>() / transactions((side, budget)))
        };
        let (base, new) = (calls(self.base)?, calls(self.new)?);
        self.pair(Some(base), Some(new))
    }

    /// What stands between prefix and suffix in the name of the slower side's largest such total.
    pub fn largest(&self, prefix: &str, suffix: &str) -> Option<&'a str> {
        let (side, budget) = if self.new_is_dear { self.new } else { self.base };
        let named = of_step(side, budget)
            .flat_map(|o| &o.totals)
            .filter_map(|(name, v)| Some((name.strip_prefix(prefix)?.strip_suffix(suffix)?, *v)));
        named.filter(|(name, _)| !name.is_empty()).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
    }

    fn pair(&self, base: Option<f64>, new: Option<f64>) -> Option<Pair> {
        // An observer that runs on both sides and counts only what happens leaves a zero unsaid on one of them.
        let (base, new) = match (base, new) {
            (None, None) => return None,
            (b, n) => (b.unwrap_or(0.0), n.unwrap_or(0.0)),
        };
        Some(if self.new_is_dear { Pair { cheap: base, dear: new } } else { Pair { cheap: new, dear: base } })
    }

    /// Sum over the parts of both budgets that a rule picks: seconds per transaction, cheap and dear.
    pub fn parts(&self, pick: impl Fn(Layer, &str) -> bool) -> Pair {
        let [base, new] = [0, 1].map(|i| self.parts[i].iter().filter(|p| pick(p.0, p.1)).map(|p| p.2).sum::<f64>());
        if self.new_is_dear { Pair { cheap: base, dear: new } } else { Pair { cheap: new, dear: base } }
    }

    /// Seconds of a transaction that no part explains.
    pub fn rest(&self) -> Pair {
        let (wall, parts) = (self.wall(), self.parts(|_, _| true));
        Pair { cheap: wall.cheap - parts.cheap, dear: wall.dear - parts.dear }
    }

    /// Seconds of a transaction that lie outside of followed requests, where both sides' load generators tell: by Little's law a closed
    /// loop's turn takes clients × time / transactions. It is what clients do between requests, and connections that were not let in.
    pub fn outside(&self) -> Option<Pair> {
        self.places.as_ref()?;
        let of = |side: (Evidence, &Budget)| Some((turnaround(side)? - super::waterfall::wall(side.1)).max(0.0));
        let (base, new) = (of(self.base)?, of(self.new)?);
        self.pair(Some(base), Some(new))
    }

    /// Wall seconds per transaction.
    pub fn wall(&self) -> Pair {
        let (base, new) = (super::waterfall::wall(self.base.1), super::waterfall::wall(self.new.1));
        if self.new_is_dear { Pair { cheap: base, dear: new } } else { Pair { cheap: new, dear: base } }
    }
}

pub(super) fn total((side, budget): (Evidence, &Budget), name: &str) -> Option<f64> {
    of_step(side, budget).find_map(|o| o.totals.get(name)).copied()
}

/// Transactions of the pass that the totals are of. A budget of followed requests averages over fewer.
fn transactions(of: (Evidence, &Budget)) -> f64 {
    total(of, "step.transactions").unwrap_or(of.1.transactions as f64).max(1.0)
}

/// Whether a transaction takes longer on the new side: by the load generators' own account of all of them, where both gave one.
fn longer(base: (Evidence, &Budget), new: (Evidence, &Budget)) -> bool {
    match turnaround(base).zip(turnaround(new)) {
        Some((base, new)) => new >= base,
        None => super::waterfall::wall(new.1) >= super::waterfall::wall(base.1),
    }
}

/// Seconds from one transaction of a client to its next: clients × time / transactions, by Little's law.
fn turnaround(of: (Evidence, &Budget)) -> Option<f64> {
    let turn = total(of, "step.clients")? * total(of, "step.elapsed.seconds")? / total(of, "step.transactions")?;
    (turn.is_finite() && turn > 0.0).then_some(turn)
}

/// The followed requests of a budget's step.
fn paths_of<'a>((side, budget): (Evidence<'a>, &Budget)) -> Option<&'a Paths> {
    side.steps.paths.iter().find(|p| p.workload == budget.workload && p.params == budget.params).filter(|paths| paths.followed > 0)
}

fn places_of(of: (Evidence, &Budget)) -> Option<Places> {
    paths_of(of).map(places)
}

fn entering_of(of: (Evidence, &Budget)) -> Option<Entering> {
    let turns = total(of, "step.turns_per_transaction").filter(|turns| *turns > 0.0).unwrap_or(1.0);
    let passes = of.0.steps.passes(&of.1.workload, &of.1.params);
    Entering::of(total(of, "step.transactions")? * turns, passes, &Totals::of(of_step(of.0, of.1)), paths_of(of)?)
}

/// The observations of a budget's step.
fn of_step<'a>(side: Evidence<'a>, budget: &'a Budget) -> impl Iterator<Item = &'a Observation> {
    side.steps.observations.iter().filter(|o| o.workload == budget.workload && o.params == budget.params)
}
