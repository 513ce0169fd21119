//! Stalls of the client: times in which nothing completed, and why.
//!
//! The article's client stalled and nobody knew why. Here the state of every connection and the kernel's counters are
//! noted while the stall lasts, for afterwards there is nothing left to see.

use super::kernel::{self, Scheduled, Sockets};
use super::protocol::StallNs;

/// No completion for so many medians is a stall.
const MEDIANS: u64 = 10;
/// Shorter than this is a scheduler's business, not a stall.
const FLOOR_NS: u64 = 20_000_000;
/// The most stalls that are kept one by one; a client that stalls more often is told so by their number.
const MAX_KEPT: usize = 1000;

/// What the connections of a generator were doing at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doing {
    /// Waiting for the connection to be established.
    pub connecting: usize,
    /// The request is sent or being sent, and no byte of an answer has come.
    pub waiting: usize,
    /// A part of an answer has come.
    pub receiving: usize,
    /// Pausing after an error.
    pub pausing: usize,
    /// With no request to make.
    pub idle: usize,
    /// The error that came last.
    pub last_error: Option<String>,
}

/// Everything known about one stall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// How long nothing completed.
    pub length_ns: u64,
    /// For how much of it the generator itself did not run although it wanted to.
    pub absent_ns: u64,
    /// For how much of it the kernel says that the generator waited for a CPU.
    pub cpu_wait_ns: u64,
    /// What the connections were doing, when the generator ran during the stall.
    pub doing: Option<Doing>,
    /// Connections that a full accept queue turned away since shortly before.
    pub overflows: u64,
    /// Sockets in TIME_WAIT.
    pub time_wait: u64,
    /// Local ports there are.
    pub ports: u64,
}

/// The cause as far as the evidence goes, in one sentence.
pub fn explain(e: &Evidence) -> String {
    let ms = |ns: u64| ns as f64 / 1e6;
    // The kernel's figure reaches back to a little before the stall, so it only says why the generator did not run, not
    // whether.
    if e.absent_ns * 2 > e.length_ns {
        return if e.cpu_wait_ns * 2 > e.absent_ns {
            format!("the load generator itself waited {:.0} ms for a CPU", ms(e.cpu_wait_ns.min(e.absent_ns)))
        } else {
            format!(
                "the load generator did not run for {:.0} ms: it was stopped, or the host gave this guest no CPU",
                ms(e.absent_ns)
            )
        };
    }
    let Some(doing) = &e.doing else { return "it was over before the connections were looked at".to_owned() };
    let busy = doing.connecting + doing.waiting + doing.receiving + doing.pausing;
    let error = doing.last_error.as_deref().unwrap_or("unknown");
    if doing.pausing * 2 > busy {
        let ports = if error == super::errors::NO_PORT {
            format!("; {} sockets are in TIME_WAIT and there are {} local ports for one address", e.time_wait, e.ports)
        } else {
            String::new()
        };
        return format!("{} of {busy} connections could not be made: {error}{ports}", doing.pausing);
    }
    let overflow = match e.overflows {
        0 => String::new(),
        n => format!(
            "; the server's accept queue overflowed {n} times, and a connection turned away is tried again after 1 s"
        ),
    };
    if doing.connecting * 2 > busy {
        return format!("{} of {busy} connections waited to be established{overflow}", doing.connecting);
    }
    if doing.receiving * 2 > busy {
        return format!("the server stopped in the middle of {} of {busy} answers", doing.receiving);
    }
    if doing.waiting * 2 > busy {
        return format!("{} of {busy} requests were sent and the server answered none{overflow}", doing.waiting);
    }
    format!(
        "{} connections were being established, {} waited for an answer, {} were within one, {} paused after an \
         error{overflow}",
        doing.connecting, doing.waiting, doing.receiving, doing.pausing
    )
}

/// Watches for stalls.
#[derive(Debug)]
pub struct StallWatch {
    threshold_ns: u64,
    last_ns: u64,
    /// For how long the generator found that it had not run although it wanted to.
    pub absent_ns: u64,
    /// Noted while a stall lasts.
    doing: Option<(Doing, Sockets)>,
    /// Readings from before, renewed a few times a second.
    before: (Scheduled, Sockets),
    found: Vec<(u64, Evidence)>,
    ports: u64,
}

impl StallWatch {
    /// Begins to watch.
    pub fn new(now: u64) -> Self {
        StallWatch {
            threshold_ns: FLOOR_NS,
            last_ns: now,
            absent_ns: 0,
            doing: None,
            before: (kernel::scheduled_self(), Sockets::read()),
            found: Vec::new(),
            ports: kernel::local_ports(),
        }
    }

    /// Forgets what was found, at the beginning of the window.
    pub fn begin(&mut self, now: u64) {
        self.found.clear();
        self.restart(now);
        self.before = (kernel::scheduled_self(), Sockets::read());
    }

    /// Sets the threshold from the median latency, and renews the readings; to be called a few times a second.
    pub fn renew(&mut self, median_ns: Option<u64>) {
        self.threshold_ns = FLOOR_NS.max(median_ns.unwrap_or(0).saturating_mul(MEDIANS));
        if self.doing.is_none() {
            self.before = (kernel::scheduled_self(), Sockets::read());
        }
    }

    /// A completion.
    #[inline]
    pub fn completed(&mut self, now: u64) {
        if now - self.last_ns.min(now) > self.threshold_ns {
            self.note(now);
        } else if self.doing.is_some() {
            self.doing = None;
        }
        self.last_ns = now;
        self.absent_ns = 0;
    }

    /// There is nothing to wait for, or the window begins: no gap counts from before now.
    pub fn restart(&mut self, now: u64) {
        self.last_ns = now;
        self.absent_ns = 0;
        self.doing = None;
    }

    /// Whether there has been no completion for so long that it may become a stall, and nobody has looked yet.
    pub fn wants_a_look(&self, now: u64) -> bool {
        self.doing.is_none() && now.saturating_sub(self.last_ns) > self.threshold_ns / 2
    }

    /// Notes what the connections are doing during a stall.
    pub fn look(&mut self, doing: Doing) {
        self.doing = Some((doing, Sockets::read()));
    }

    /// The window ends: a stall that is going on counts until now.
    pub fn end(&mut self, start: u64, now: u64) -> Vec<StallNs> {
        self.completed(now);
        let told = self.found.drain(..).take(MAX_KEPT);
        told.map(|(at, e)| StallNs { at: at.saturating_sub(start), length: e.length_ns, why: explain(&e) }).collect()
    }

    fn note(&mut self, now: u64) {
        let (doing, sockets) = match self.doing.take() {
            Some((doing, sockets)) => (Some(doing), sockets),
            None => (None, Sockets::read()),
        };
        // Every failed look at the kernel's counters reads as zero, which explains nothing and claims nothing.
        let length_ns = now - self.last_ns;
        let evidence = Evidence {
            length_ns,
            absent_ns: self.absent_ns.min(length_ns),
            cpu_wait_ns: kernel::scheduled_self().since(self.before.0).wait_ns.min(length_ns),
            doing,
            overflows: Sockets::read().listen_overflows.saturating_sub(self.before.1.listen_overflows),
            time_wait: sockets.time_wait,
            ports: self.ports,
        };
        self.found.push((self.last_ns, evidence));
    }
}

/// The times in which every one of several generators stalled: with one, its own stalls.
pub fn common(generators: &[Vec<StallNs>]) -> Vec<StallNs> {
    let Some((first, others)) = generators.split_first() else { return Vec::new() };
    let mut common = first.clone();
    for other in others {
        common = common
            .iter()
            .flat_map(|a| {
                other.iter().filter_map(move |b| {
                    let at = a.at.max(b.at);
                    let end = (a.at + a.length).min(b.at + b.length);
                    (end > at).then(|| StallNs { at, length: end - at, why: a.why.clone() })
                })
            })
            .collect();
    }
    common.retain(|s| s.length > FLOOR_NS);
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn evidence(doing: Doing) -> Evidence {
        Evidence { length_ns: 1000 * MS, doing: Some(doing), time_wait: 28_000, ports: 28_232, ..Evidence::default() }
    }

    #[test]
    fn each_cause_is_told_from_its_neighbours() {
        let all = |f: fn(&mut Doing)| {
            let mut doing = Doing::default();
            f(&mut doing);
            evidence(doing)
        };
        assert!(
            explain(&Evidence { absent_ns: 950 * MS, cpu_wait_ns: 900 * MS, ..all(|d| d.waiting = 9) })
                .contains("waited 900 ms for a CPU")
        );
        assert!(explain(&Evidence { cpu_wait_ns: 900 * MS, ..all(|d| d.waiting = 9) }).contains("answered none"));
        assert!(
            explain(&Evidence { absent_ns: 900 * MS, ..all(|d| d.waiting = 9) }).contains("did not run for 900 ms")
        );
        let overflow = explain(&Evidence { overflows: 3, ..all(|d| d.connecting = 100) });
        assert!(
            overflow.contains("100 of 100 connections waited to be established")
                && overflow.contains("overflowed 3 times")
        );
        assert!(!explain(&all(|d| d.connecting = 100)).contains("overflowed"));
        let ports = explain(&all(|d| {
            d.pausing = 10;
            d.last_error = Some(super::super::errors::NO_PORT.to_owned());
        }));
        assert!(ports.contains("28000 sockets are in TIME_WAIT") && ports.contains("28232 local ports"), "{ports}");
        assert!(explain(&all(|d| d.receiving = 5)).contains("in the middle of 5 of 5 answers"));
        assert!(explain(&all(|d| d.waiting = 5)).contains("answered none"));
        assert!(explain(&Evidence { doing: None, ..all(|_| ()) }).contains("over before"));
    }

    #[test]
    fn a_gap_of_many_medians_is_a_stall_and_a_shorter_one_is_not() {
        let mut watch = StallWatch::new(0);
        watch.begin(0);
        watch.renew(Some(5 * MS));
        watch.completed(10 * MS);
        watch.completed(59 * MS);
        assert!(!watch.wants_a_look(80 * MS));
        assert!(watch.wants_a_look(90 * MS));
        watch.look(Doing { waiting: 3, ..Doing::default() });
        assert!(!watch.wants_a_look(111 * MS));
        watch.completed(159 * MS);
        let stalls = watch.end(9 * MS, 300 * MS);
        assert_eq!(stalls.len(), 2, "{stalls:?}");
        assert_eq!((stalls[0].at, stalls[0].length), (50 * MS, 100 * MS));
        assert_eq!((stalls[1].at, stalls[1].length), (150 * MS, 141 * MS));
    }

    #[test]
    fn only_what_all_generators_saw_is_a_stall_of_the_client() {
        let s = |at: u64, length: u64| StallNs { at: at * MS, length: length * MS, why: "x".to_owned() };
        let one = vec![s(0, 100), s(500, 100)];
        assert_eq!(common(std::slice::from_ref(&one)), one);
        assert_eq!(common(&[one.clone(), vec![s(50, 100), s(590, 15)]]), [s(50, 50)]);
        assert_eq!(common(&[one, Vec::new()]), []);
        assert_eq!(common(&[]), []);
    }
}
