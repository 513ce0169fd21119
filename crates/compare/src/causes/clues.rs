//! What the two runs know about one workload step: totals of its observers, and facts of the hosts.
//!
//! Observers name their totals; [`Clues`] looks a total up by the names of [`crate::causes::catalogue`]'s vocabulary, over all observers of the
//! step, with `cheap` the side on which a transaction takes less time and `dear` the other.

use fingerpost_record::{Budget, Host, Layer, Observation, Part};

use crate::explain::budget::{component, own_threads};
use crate::side::Side;

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
    base: (&'a Side, &'a Budget),
    new: (&'a Side, &'a Budget),
    /// Their parts, queues resolved: seconds per transaction.
    parts: [Vec<(Layer, &'a str, f64)>; 2],
    new_is_dear: bool,
}

/// The parts of a budget. Where few threads serve many clients, a request that waits behind others waits for what those do: the time
/// in the server's queue is spread over the server's own parts, in proportion.
fn resolved<'a>(side: &Side, budget: &'a Budget) -> Vec<(Layer, &'a str, f64)> {
    let queue = |part: &str| part == component::AT_SERVER || part == component::OWN_QUEUE;
    let own = |layer: Layer, part: &str| layer != Layer::Client && part != component::ON_THE_WAY && !queue(part);
    let sum = |pick: &dyn Fn(Layer, &str) -> bool| -> f64 {
        budget.parts.iter().filter(|p| pick(p.layer, &p.component)).map(|p| p.seconds_per_transaction).sum()
    };
    let (served, queued) = (sum(&own), sum(&|_, part| queue(part)));
    let threads = total((side, budget), "server.threads").zip(total((side, budget), "step.clients"));
    let few = threads.is_some_and(|(threads, clients)| !own_threads(threads, clients));
    let factor = if few && served > 0.0 { 1.0 + queued / served } else { 1.0 };
    let part = |p: &'a Part| {
        let seconds = match () {
            () if own(p.layer, &p.component) => p.seconds_per_transaction * factor,
            () if factor > 1.0 && queue(&p.component) => 0.0,
            () => p.seconds_per_transaction,
        };
        (p.layer, p.component.as_str(), seconds)
    };
    budget.parts.iter().map(part).collect()
}

impl<'a> Clues<'a> {
    /// The clues about a step that both sides have a budget of.
    pub fn new(base: &'a Side, new: &'a Side, base_budget: &'a Budget, new_budget: &'a Budget) -> Self {
        let new_is_dear = super::waterfall::wall(new_budget) >= super::waterfall::wall(base_budget);
        let parts = [resolved(base, base_budget), resolved(new, new_budget)];
        Clues { base: (base, base_budget), new: (new, new_budget), parts, new_is_dear }
    }

    /// The side with the longer transactions.
    pub fn dear(&self) -> &'a Side {
        if self.new_is_dear { self.new.0 } else { self.base.0 }
    }

    /// The side with the shorter transactions.
    pub fn cheap(&self) -> &'a Side {
        if self.new_is_dear { self.base.0 } else { self.new.0 }
    }

    /// The hosts, cheap and dear.
    pub fn hosts(&self) -> (&'a Host, &'a Host) {
        (&self.cheap().host, &self.dear().host)
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
        Some(total(self.base, name)? / self.base.1.transactions.max(1) as f64)
    }

    /// A total of the new side divided by its transactions.
    pub fn per_transaction_new(&self, name: &str) -> Option<f64> {
        Some(total(self.new, name)? / self.new.1.transactions.max(1) as f64)
    }

    /// System calls of the server per transaction, all kinds together.
    pub fn calls_per_transaction(&self) -> Option<Pair> {
        let calls = |(side, budget): (&Side, &Budget)| {
            let of = of_step(side, budget)
                .flat_map(|o| &o.totals)
                .filter(|(name, _)| name.starts_with("server.call.") && name.ends_with(".count"));
            let counts: Vec<f64> = of.map(|(_, n)| *n).collect();
            (!counts.is_empty()).then(|| counts.iter().sum::<f64>() / budget.transactions.max(1) as f64)
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

    /// Wall seconds per transaction.
    pub fn wall(&self) -> Pair {
        let (base, new) = (super::waterfall::wall(self.base.1), super::waterfall::wall(self.new.1));
        if self.new_is_dear { Pair { cheap: base, dear: new } } else { Pair { cheap: new, dear: base } }
    }
}

fn total((side, budget): (&Side, &Budget), name: &str) -> Option<f64> {
    of_step(side, budget).find_map(|o| o.totals.get(name)).copied()
}

/// The observations of a budget's step.
fn of_step<'a>(side: &'a Side, budget: &'a Budget) -> impl Iterator<Item = &'a Observation> {
    side.observations.iter().filter(|o| o.workload == budget.workload && o.params == budget.params)
}
