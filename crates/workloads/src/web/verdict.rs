//! Whether the client or the server was the limit of a step.

use super::kernel::Scheduled;

/// A generator that had nothing to do for at least this share of the time waited for the server.
const IDLE: f64 = 0.05;
/// A server that wanted a CPU for this share of the time on each of its workers was at its own limit.
const AT_LIMIT: f64 = 0.9;
/// How far the achieved rate of an open loop may lie from the asked one.
const RATE: f64 = 0.01;

/// What is known of a step for the judgement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// The window's length.
    pub elapsed_ns: u64,
    /// Each generator's time on a CPU and waiting for one.
    pub generators: Vec<Scheduled>,
    /// The server's, over all its processes; nothing for a server that we did not start.
    pub server: Option<Scheduled>,
    /// How many requests the server can work on at a time.
    pub workers: usize,
    /// CPUs that both may use.
    pub cpus: usize,
}

impl Account {
    /// The share of the time that the generators had nothing to do; that of the busiest.
    pub fn idle(&self) -> f64 {
        let busiest = self
            .generators
            .iter()
            .map(|g| g.run_ns + g.wait_ns)
            .max()
            .unwrap_or(0);
        1.0 - share(busiest, self.elapsed_ns)
    }

    /// The share of its own time that the server wanted a CPU.
    fn server_demand(&self) -> Option<f64> {
        let lanes = self.workers.min(self.cpus).max(1) as u64;
        self.server
            .map(|s| share(s.run_ns + s.wait_ns, self.elapsed_ns * lanes))
    }

    /// Why the client was the limit; nothing when it was not.
    ///
    /// A generator that never ran out of work did not wait for the server. When the server never ran out of work
    /// either, both wanted more CPU than there is, and the figure is the server's on a host that it shares with its
    /// clients.
    pub fn saturated(&self) -> Option<String> {
        if self.elapsed_ns == 0 || self.idle() >= IDLE {
            return None;
        }
        let server = self.server_demand();
        if server.is_some_and(|demand| demand >= AT_LIMIT) {
            return None;
        }
        let cpu: f64 = self
            .generators
            .iter()
            .map(|g| share(g.run_ns, self.elapsed_ns))
            .sum();
        let spare = match server {
            Some(demand) => {
                format!(
                    "the server had nothing to do for {:.0} % of the time",
                    (1.0 - demand).max(0.0) * 100.0
                )
            }
            None => "how busy the server was is not known".to_owned(),
        };
        Some(format!(
            "the load generator was the limit: its {} {} had work for {:.0} % of the time and used {cpu:.2} of {} \
             CPUs, while {spare}",
            self.generators.len(),
            if self.generators.len() == 1 {
                "process"
            } else {
                "processes"
            },
            (1.0 - self.idle()) * 100.0,
            self.cpus
        ))
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Why an open loop did not make the rate that was asked for; nothing when it did.
pub fn missed_rate(asked: f64, due: u64, completed: u64, elapsed_s: f64) -> Option<String> {
    let achieved = completed as f64 / elapsed_s;
    // Over a short window one answer more or less is more than a hundredth.
    if (achieved - asked).abs() <= (asked * RATE).max(2.0 / elapsed_s) {
        return None;
    }
    Some(format!(
        "{achieved:.0} answers a second came where {asked:.0} requests a second were asked for ({due} were due in the \
         step): the connections were not free in time; use more connections or a lower rate"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn busy(run: f64, wait: f64) -> Scheduled {
        Scheduled {
            run_ns: (run * 1e9) as u64,
            wait_ns: (wait * 1e9) as u64,
        }
    }

    #[test]
    fn who_never_waits_is_the_limit_unless_the_server_waits_neither() {
        let account = |generator, server| Account {
            elapsed_ns: SECOND,
            generators: vec![generator],
            server,
            workers: 1,
            cpus: 2,
        };
        assert_eq!(
            account(busy(0.6, 0.0), Some(busy(1.0, 0.0))).saturated(),
            None
        );
        assert_eq!(
            account(busy(0.98, 0.0), Some(busy(0.97, 0.0))).saturated(),
            None
        );
        let sentence = account(busy(0.98, 0.0), Some(busy(0.4, 0.0)))
            .saturated()
            .unwrap();
        assert!(
            sentence.contains("1 process had work for 98 %")
                && sentence.contains("nothing to do for 60 %"),
            "{sentence}"
        );
        assert!(
            account(busy(0.5, 0.48), Some(busy(0.5, 0.1)))
                .saturated()
                .is_some()
        );
        assert!(
            account(busy(0.98, 0.0), None)
                .saturated()
                .unwrap()
                .contains("not known")
        );
        assert_eq!(Account::default().saturated(), None);
    }

    #[test]
    fn a_rate_is_made_within_a_hundredth() {
        assert_eq!(missed_rate(1000.0, 2000, 1985, 2.0), None);
        assert!(
            missed_rate(1000.0, 2000, 1900, 2.0)
                .unwrap()
                .contains("950 answers a second")
        );
        assert_eq!(missed_rate(1.0, 1, 0, 1.0), None);
    }
}
