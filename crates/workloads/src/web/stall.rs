//! Why a web client stalls.
//!
//! The article's client stalled and nobody knew why. Here the state of every connection and the kernel's counters are
//! noted while the stall lasts, for afterwards there is nothing left to see.

use super::errors::NO_PORT;
use super::kernel::{self, Scheduled, Sockets};
use crate::stalls::{Doing, Finder, Notes, Reason};

/// Watches for stalls.
pub type StallWatch = Finder<Noted>;

/// What a generator notes.
#[derive(Debug)]
pub struct Noted {
    /// For how long the generator found that it had not run although it wanted to.
    pub absent_ns: u64,
    /// Noted while a stall lasts.
    doing: Option<(Doing, Sockets)>,
    /// Readings from before, renewed a few times a second.
    before: (Scheduled, Sockets),
    ports: u64,
}

impl Noted {
    /// Nothing yet.
    pub fn new() -> Self {
        Noted {
            absent_ns: 0,
            doing: None,
            before: readings(),
            ports: kernel::local_ports(),
        }
    }
}

fn readings() -> (Scheduled, Sockets) {
    (kernel::scheduled_self(), Sockets::read())
}

impl StallWatch {
    /// Forgets what was found, at the beginning of the window.
    pub fn open(&mut self, now: u64) {
        self.begin(now);
        self.notes.before = readings();
    }

    /// Sets the median latency, and renews the readings; to be called a few times a second.
    pub fn renew(&mut self, median_ns: Option<u64>) {
        self.set_median(median_ns.unwrap_or(0));
        if self.notes.doing.is_none() {
            self.notes.before = readings();
        }
    }

    /// Whether nothing has completed for so long that it may become a stall, and nobody has looked yet.
    pub fn wants_a_look(&self, now: u64) -> bool {
        self.notes.doing.is_none() && self.may_stall(now)
    }

    /// Notes what the connections are doing during a stall.
    pub fn look(&mut self, doing: Doing) {
        self.notes.doing = Some((doing, Sockets::read()));
    }
}

impl Noted {
    /// The cause of a stall of this length, as far as the evidence goes, with the readings at its end. Every failed
    /// look at the kernel's counters reads as zero, which explains nothing and claims nothing.
    fn explain(&mut self, length_ns: u64, (scheduled, sockets): (Scheduled, Sockets)) -> Reason {
        let absent_ns = self.absent_ns.min(length_ns);
        // The kernel's figure reaches back to a little before the stall, so it only says why the generator did not run,
        // not whether.
        if absent_ns * 2 > length_ns {
            let cpu_wait_ns = scheduled.since(self.before.0).wait_ns.min(absent_ns);
            return if cpu_wait_ns * 2 > absent_ns {
                Reason::WaitedForCpu(cpu_wait_ns)
            } else {
                Reason::DidNotRun(absent_ns)
            };
        }
        let Some((doing, meanwhile)) = self.doing.take() else {
            return Reason::Unseen;
        };
        let overflows = sockets
            .listen_overflows
            .saturating_sub(self.before.1.listen_overflows);
        let most = |n: usize| n * 2 > doing.busy();
        if most(doing.pausing) && doing.last_error.as_deref() == Some(NO_PORT) {
            Reason::NoPort(doing, meanwhile.time_wait, self.ports)
        } else if most(doing.pausing) {
            Reason::NotConnected(doing)
        } else if most(doing.connecting) {
            Reason::Connecting(doing, overflows)
        } else if most(doing.receiving) {
            Reason::WithinAnswers(doing)
        } else if most(doing.waiting) {
            Reason::Unanswered(doing, overflows)
        } else {
            Reason::Mixed(doing, overflows)
        }
    }
}

impl Notes for Noted {
    fn reason(&mut self, from: u64, to: u64) -> Reason {
        self.explain(to - from, readings())
    }

    #[inline]
    fn forget(&mut self) {
        self.absent_ns = 0;
        if self.doing.is_some() {
            self.doing = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// What is said of a second in which nothing completed: the generator was absent and waited for a CPU for so many
    /// milliseconds, accept queues overflowed so often, and the connections did this.
    fn explain(absent: u64, cpu_wait: u64, overflows: u64, doing: Option<Doing>) -> String {
        let meanwhile = Sockets {
            time_wait: 28_000,
            ..Sockets::default()
        };
        let mut noted = Noted {
            absent_ns: absent * MS,
            doing: doing.map(|doing| (doing, meanwhile)),
            before: (
                Scheduled {
                    run_ns: 0,
                    wait_ns: 70,
                },
                Sockets {
                    time_wait: 5,
                    listen_overflows: 40,
                },
            ),
            ports: 28_232,
        };
        let scheduled = Scheduled {
            run_ns: 0,
            wait_ns: 70 + cpu_wait * MS,
        };
        noted
            .explain(
                1000 * MS,
                (
                    scheduled,
                    Sockets {
                        time_wait: 0,
                        listen_overflows: 40 + overflows,
                    },
                ),
            )
            .to_string()
    }

    #[test]
    fn each_cause_is_told_from_its_neighbours() {
        let waiting = |waiting| {
            Some(Doing {
                waiting,
                ..Doing::default()
            })
        };
        let connecting = Some(Doing {
            connecting: 100,
            ..Doing::default()
        });
        assert!(explain(950, 900, 0, waiting(9)).contains("waited 900 ms for a CPU"));
        assert!(explain(0, 900, 0, waiting(9)).contains("answered none"));
        assert!(explain(900, 0, 0, waiting(9)).contains("did not run for 900 ms"));
        let overflow = explain(0, 0, 3, connecting.clone());
        assert!(
            overflow.contains("100 of 100 connections waited to be established")
                && overflow.contains("overflowed 3 times")
        );
        assert!(!explain(0, 0, 0, connecting).contains("overflowed"));
        let pausing = |error: &str| Doing {
            pausing: 10,
            last_error: Some(error.to_owned()),
            ..Doing::default()
        };
        let ports = explain(0, 0, 0, Some(pausing(NO_PORT)));
        assert!(
            ports.contains("28000 sockets are in TIME_WAIT") && ports.contains("28232 local ports"),
            "{ports}"
        );
        assert_eq!(
            explain(0, 0, 0, Some(pausing("refused"))),
            "10 of 10 connections could not be made: refused"
        );
        let receiving = Some(Doing {
            receiving: 5,
            ..Doing::default()
        });
        assert!(explain(0, 0, 0, receiving).contains("in the middle of 5 of 5 answers"));
        assert!(explain(0, 0, 0, waiting(5)).contains("answered none"));
        let mixed = Some(Doing {
            connecting: 1,
            waiting: 2,
            receiving: 2,
            ..Doing::default()
        });
        assert!(explain(0, 0, 0, mixed).contains("1 connections were being established, 2 waited"));
        assert!(explain(0, 0, 0, None).contains("over before"));
    }

    #[test]
    fn a_gap_of_many_medians_is_a_stall_and_a_shorter_one_is_not() {
        let mut watch = StallWatch::new(0, Noted::new());
        watch.open(9 * MS);
        watch.renew(Some(5 * MS));
        watch.completed(10 * MS);
        watch.completed(59 * MS);
        assert!(!watch.wants_a_look(80 * MS));
        assert!(watch.wants_a_look(90 * MS));
        watch.look(Doing {
            waiting: 3,
            ..Doing::default()
        });
        assert!(!watch.wants_a_look(111 * MS));
        watch.completed(159 * MS);
        let stalls = watch.end(300 * MS);
        assert_eq!(stalls.len(), 2, "{stalls:?}");
        assert_eq!((stalls[0].at_s, stalls[0].length_s), (0.05, 0.1));
        assert_eq!((stalls[1].at_s, stalls[1].length_s), (0.15, 0.141));
    }
}
