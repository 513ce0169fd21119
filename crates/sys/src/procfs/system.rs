//! The whole system: `/proc/stat`, `/proc/loadavg`, `/proc/pressure/*`.

/// Ticks that a CPU, or all of them, spent since boot. Divide by [`crate::system::ticks_per_second`].
///
/// The kernel counts `guest` within `user` and `guest_nice` within `nice`: they are not added again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// In user mode.
    pub user: u64,
    /// In user mode at a low priority.
    pub nice: u64,
    /// In the kernel.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while a task waited for I/O.
    pub iowait: u64,
    /// Serving interrupts.
    pub irq: u64,
    /// Serving soft interrupts.
    pub softirq: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

impl CpuTimes {
    fn parse<'a>(fields: impl Iterator<Item = &'a str>) -> Option<Self> {
        // Kernels before 2.6 wrote four numbers; later ones add to the end.
        let mut numbers = fields.map_while(|f| f.parse().ok()).fuse();
        let mut next = || numbers.next();
        Some(Self {
            user: next()?,
            nice: next()?,
            system: next()?,
            idle: next()?,
            iowait: next().unwrap_or(0),
            irq: next().unwrap_or(0),
            softirq: next().unwrap_or(0),
            steal: next().unwrap_or(0),
        })
    }

    /// Work done: everything but idle, waiting and stolen time.
    pub fn busy(&self) -> u64 {
        [self.user, self.nice, self.system, self.irq, self.softirq]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// All time.
    pub fn total(&self) -> u64 {
        [self.busy(), self.idle, self.iowait, self.steal]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// What was spent since an earlier reading. Counters that went backwards (iowait may) count as nothing.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            nice: self.nice.saturating_sub(earlier.nice),
            system: self.system.saturating_sub(earlier.system),
            idle: self.idle.saturating_sub(earlier.idle),
            iowait: self.iowait.saturating_sub(earlier.iowait),
            irq: self.irq.saturating_sub(earlier.irq),
            softirq: self.softirq.saturating_sub(earlier.softirq),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }
}

/// `/proc/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// All CPUs together.
    pub all: CpuTimes,
    /// Each CPU that is online, with its number.
    pub cpus: Vec<(usize, CpuTimes)>,
    /// Context switches since boot.
    pub switches: Option<u64>,
    /// Processes and threads created since boot.
    pub forks: Option<u64>,
}

impl Stat {
    /// Parses the file; `None` without its first line, the sum over the CPUs.
    pub fn parse(text: &str) -> Option<Self> {
        let mut stat = Self::default();
        let mut sum_seen = false;
        for line in text.lines() {
            // The line of all interrupts has thousands of numbers: only what is asked for is taken apart.
            let mut values = line.split_ascii_whitespace();
            let Some(name) = values.next() else { continue };
            match name {
                "cpu" => (stat.all, sum_seen) = (CpuTimes::parse(values)?, true),
                "ctxt" => stat.switches = values.next().and_then(|v| v.parse().ok()),
                "processes" => stat.forks = values.next().and_then(|v| v.parse().ok()),
                _ => {
                    let cpu = name.strip_prefix("cpu").and_then(|n| n.parse().ok());
                    stat.cpus.extend(cpu.zip(CpuTimes::parse(values)));
                }
            }
        }
        sum_seen.then_some(stat)
    }
}

/// `/proc/loadavg`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadAverage {
    /// Over 1, 5 and 15 minutes.
    pub average: [f64; 3],
    /// Tasks that run or want to, this reader included.
    pub runnable: u64,
}

impl LoadAverage {
    /// Parses the file's one line.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace();
        let mut average = [0.0; 3];
        for slot in &mut average {
            *slot = fields
                .next()?
                .parse()
                .ok()
                .filter(|v: &f64| v.is_finite() && *v >= 0.0)?;
        }
        let (runnable, _) = fields.next()?.split_once('/')?;
        Some(Self {
            average,
            runnable: runnable.parse().ok()?,
        })
    }
}

/// `/proc/pressure/cpu`, `memory` or `io`: how long tasks stalled, in microseconds since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// At least one task stalled.
    pub some_us: u64,
    /// All tasks stalled; older kernels do not tell it for the CPU.
    pub full_us: Option<u64>,
}

impl Pressure {
    /// Parses the file; `None` without its `some` line.
    pub fn parse(text: &str) -> Option<Self> {
        let total = |kind: &str| {
            let fields = text
                .lines()
                .find_map(|line| line.strip_prefix(kind)?.strip_prefix(' '))?;
            fields
                .split_ascii_whitespace()
                .find_map(|field| field.strip_prefix("total=")?.parse().ok())
        };
        Some(Self {
            some_us: total("some")?,
            full_us: total("full"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::SYSTEM_STAT;
    use super::*;

    #[test]
    fn stat_of_two_cpus() {
        let stat = Stat::parse(SYSTEM_STAT).unwrap();
        assert_eq!(stat.all.busy(), 148);
        assert_eq!(stat.all.total(), 1000);
        assert_eq!(stat.cpus.len(), 2);
        assert_eq!((stat.cpus[1].0, stat.cpus[1].1.steal), (1, 12));
        assert_eq!((stat.switches, stat.forks), (Some(999), Some(77)));
    }

    #[test]
    fn stat_of_an_old_kernel_and_of_none() {
        assert_eq!(
            Stat::parse("cpu 1 2 3 4\n").unwrap().all,
            CpuTimes {
                user: 1,
                nice: 2,
                system: 3,
                idle: 4,
                ..Default::default()
            }
        );
        assert_eq!(Stat::parse("cpu 1 2 3\n"), None);
        let torn = Stat::parse("cpu 1 2 3 4 x 6\n").unwrap().all;
        assert_eq!(
            (torn.iowait, torn.irq),
            (0, 0),
            "nothing behind what is no number"
        );
        assert_eq!(Stat::parse("cpu0 1 2 3 4\n"), None);
    }

    #[test]
    fn a_difference_never_wraps() {
        let early = CpuTimes {
            user: 10,
            iowait: 9,
            ..Default::default()
        };
        let late = CpuTimes {
            user: 15,
            iowait: 3,
            ..Default::default()
        };
        assert_eq!(
            late.since(&early),
            CpuTimes {
                user: 5,
                ..Default::default()
            }
        );
        let huge = CpuTimes {
            user: u64::MAX,
            system: u64::MAX,
            ..Default::default()
        };
        assert_eq!(huge.total(), u64::MAX);
    }

    #[test]
    fn load_averages() {
        let load = LoadAverage::parse("0.52 1.25 3.00 2/345 6789\n").unwrap();
        assert_eq!((load.average, load.runnable), ([0.52, 1.25, 3.0], 2));
        assert_eq!(LoadAverage::parse("0.5 nan 1 2/3 4"), None);
        assert_eq!(LoadAverage::parse("0.5 1"), None);
    }

    #[test]
    fn pressure_with_and_without_full() {
        let text = "some avg10=1.50 avg60=0.20 avg300=0.05 total=12345\nfull avg10=0.10 avg60=0.00 avg300=0.00 total=45\n";
        let pressure = Pressure::parse(text).unwrap();
        assert_eq!((pressure.some_us, pressure.full_us), (12345, Some(45)));
        assert_eq!(
            Pressure::parse("some avg10=0 avg60=0 avg300=0 total=1")
                .unwrap()
                .full_us,
            None
        );
        assert_eq!(
            Pressure::parse("full avg10=0 avg60=0 avg300=0 total=1"),
            None
        );
    }
}
