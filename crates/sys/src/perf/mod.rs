//! Counters of the CPU and the kernel, through `perf_event_open`.
//!
//! [`EventSet`] counts any events for a thread or a process; [`Counts`] are those that the probes use: instructions
//! and cycles, user and kernel apart. Where the kernel refuses, [`Refusal`] says why and which setting would allow it.

pub mod hardware;
mod refusal;
pub mod sampler;
pub mod stacks;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

pub use refusal::{Circumstances, Refusal};

use perf_event_open_sys::bindings::{
    self, PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE, PERF_TYPE_SOFTWARE,
};

use crate::procfs::Paths;
use crate::trace::{ANY, attributes, perf_event_open, switch};

/// What can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Instructions retired.
    Instructions,
    /// CPU cycles, at whatever frequency the CPU runs.
    Cycles,
    /// References to the last level of cache that missed.
    CacheMisses,
    /// Loads that missed the data TLB.
    DataTlbMisses,
    /// Nanoseconds on a CPU.
    TaskClock,
    /// Page faults of both kinds.
    PageFaults,
}

impl Event {
    fn kind_and_config(self) -> (u32, u64) {
        /// Cache, operation and result: loads of the data TLB that missed.
        const TLB_MISSES: u32 = bindings::PERF_COUNT_HW_CACHE_DTLB
            | bindings::PERF_COUNT_HW_CACHE_OP_READ << 8
            | bindings::PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
        let (kind, config) = match self {
            Self::Cycles => (PERF_TYPE_HARDWARE, bindings::PERF_COUNT_HW_CPU_CYCLES),
            Self::Instructions => (PERF_TYPE_HARDWARE, bindings::PERF_COUNT_HW_INSTRUCTIONS),
            Self::CacheMisses => (PERF_TYPE_HARDWARE, bindings::PERF_COUNT_HW_CACHE_MISSES),
            Self::DataTlbMisses => (PERF_TYPE_HW_CACHE, TLB_MISSES),
            Self::TaskClock => (PERF_TYPE_SOFTWARE, bindings::PERF_COUNT_SW_TASK_CLOCK),
            Self::PageFaults => (PERF_TYPE_SOFTWARE, bindings::PERF_COUNT_SW_PAGE_FAULTS),
        };
        (kind, config.into())
    }
}

/// Where the CPU must be for an event to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// In user code.
    User,
    /// In the kernel.
    Kernel,
    /// In either.
    Both,
}

/// Whose events count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The calling thread alone.
    Thread,
    /// Also threads and processes that it creates from now on. Their counts arrive when they end.
    WithChildren,
}

/// One counter's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What was counted while the counter was on the CPU.
    pub raw: u64,
    /// Nanoseconds that it was enabled.
    pub enabled_ns: u64,
    /// Nanoseconds that it truly counted: less than enabled when more events were asked for than the CPU has counters.
    pub running_ns: u64,
}

impl Reading {
    /// The count scaled up to the whole time; `None` when the counter never ran.
    ///
    /// The scaling assumes that the time not counted was like the time counted.
    pub fn scaled(&self) -> Option<f64> {
        match (self.running_ns, self.enabled_ns) {
            // A software counter that saw nothing may have run for no time at all.
            (0, 0) => Some(self.raw as f64),
            (0, _) => None,
            (running, enabled) => {
                Some(self.raw as f64 * (enabled as f64 / running as f64).max(1.0))
            }
        }
    }
}

/// Counters that are switched on and off together.
#[derive(Debug)]
pub struct EventSet {
    counters: Vec<File>,
    /// Which of them lead a group: switching the leader switches the group.
    leaders: Vec<usize>,
}

impl EventSet {
    /// Opens the events, disabled and at zero. They share one group, so that they count during the same time; an event
    /// that does not fit beside the others (the CPU has few counters, and the kernel's watchdog may hold one) leads a
    /// group of its own.
    pub fn open(events: &[(Event, Mode)], target: Target) -> Result<Self, Refusal> {
        let wants_kernel = events.iter().any(|(_, mode)| *mode != Mode::User);
        Self::try_open(events, target).map_err(|error| Refusal::of(&error, wants_kernel))
    }

    fn try_open(events: &[(Event, Mode)], target: Target) -> io::Result<Self> {
        let mut set = Self {
            counters: Vec::new(),
            leaders: Vec::new(),
        };
        for &(event, mode) in events {
            let leader = set
                .leaders
                .first()
                .map(|&first| set.counters[first].as_raw_fd());
            if let Some(Ok(beside)) = leader.map(|leader| open_one(event, mode, target, leader)) {
                set.counters.push(beside);
            } else {
                set.leaders.push(set.counters.len());
                set.counters.push(open_one(event, mode, target, ANY)?);
            }
        }
        Ok(set)
    }

    /// Starts counting, from where it stood, or stops it.
    pub fn switch(&self, on: bool) -> io::Result<()> {
        let group = bindings::PERF_IOC_FLAG_GROUP as usize;
        self.leaders
            .iter()
            .try_for_each(|leader| switch(&self.counters[*leader], on, group))
    }

    /// Reads every counter, in the order in which they were opened.
    pub fn read(&self) -> io::Result<Vec<Reading>> {
        self.counters.iter().map(read_one).collect()
    }
}

fn open_one(event: Event, mode: Mode, target: Target, leader: i32) -> io::Result<File> {
    let (kind, config) = event.kind_and_config();
    let mut attr = attributes(kind, config, 0, 0);
    attr.read_format = (bindings::PERF_FORMAT_TOTAL_TIME_ENABLED
        | bindings::PERF_FORMAT_TOTAL_TIME_RUNNING)
        .into();
    attr.set_exclude_hv(1);
    attr.set_disabled((leader < 0).into());
    attr.set_inherit((target == Target::WithChildren).into());
    attr.set_exclude_kernel((mode == Mode::User).into());
    attr.set_exclude_user((mode == Mode::Kernel).into());
    perf_event_open(&attr, 0, ANY, leader).map(File::from)
}

fn read_one(mut counter: &File) -> io::Result<Reading> {
    let mut bytes = [0; 24];
    counter.read_exact(&mut bytes)?;
    let word = |i: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[i * 8 + byte]));
    Ok(Reading {
        raw: word(0),
        enabled_ns: word(1),
        running_ns: word(2),
    })
}

/// Instructions and cycles, user and kernel apart, scaled to the enabled time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Instructions in user code.
    pub user_instructions: f64,
    /// Cycles in user code.
    pub user_cycles: f64,
    /// Instructions in the kernel, where counting it is allowed.
    pub kernel_instructions: Option<f64>,
    /// Cycles in the kernel, where counting it is allowed.
    pub kernel_cycles: Option<f64>,
}

const USER: [(Event, Mode); 2] = [
    (Event::Instructions, Mode::User),
    (Event::Cycles, Mode::User),
];
const KERNEL: [(Event, Mode); 2] = [
    (Event::Instructions, Mode::Kernel),
    (Event::Cycles, Mode::Kernel),
];

impl Counts {
    /// Opens the counters, disabled. Where only user code may be counted, the kernel's figures will be absent.
    pub fn open(target: Target) -> Result<EventSet, Refusal> {
        EventSet::open(&[USER, KERNEL].concat(), target).or_else(|_| EventSet::open(&USER, target))
    }

    /// What was counted since they were opened.
    pub fn read(counters: &EventSet) -> io::Result<Counts> {
        Counts::from_readings(&counters.read()?).ok_or_else(|| {
            io::Error::other("the hardware counters never ran: another user holds them all")
        })
    }

    fn from_readings(readings: &[Reading]) -> Option<Self> {
        let at = |i: usize| readings.get(i).map(Reading::scaled);
        Some(Self {
            user_instructions: at(0)??,
            user_cycles: at(1)??,
            kernel_instructions: at(2).flatten(),
            kernel_cycles: at(3).flatten(),
        })
    }
}

/// Opens counters, lets them count a loop, and says whether that worked or what stands in the way.
///
/// Some hypervisors let the counters be opened and never move them: only counting shows it.
pub fn availability() -> Result<(), Refusal> {
    let counters = Counts::open(Target::Thread)?;
    let counted = counters.switch(true).and_then(|()| {
        (0..10_000u64).fold(1, |sum, n| std::hint::black_box(sum * 3 + n % 7) % 1_000);
        counters.switch(false)?;
        Counts::read(&counters)
    });
    match counted {
        Ok(counts) if counts.user_instructions > 0.0 && counts.user_cycles > 0.0 => Ok(()),
        Ok(_) => Err(Refusal::silent(&Circumstances::read(&Paths::system()))),
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(libc::EBUSY);
            Err(Refusal::explain(
                errno,
                false,
                &Circumstances::read(&Paths::system()),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as the kernel writes it.
    pub(super) fn record(kind: u32, flags: u16, words: &[u64]) -> Vec<u8> {
        let mut r = kind.to_ne_bytes().to_vec();
        r.extend(flags.to_ne_bytes());
        r.extend((8 + 8 * words.len() as u16).to_ne_bytes());
        words.iter().for_each(|w| r.extend(w.to_ne_bytes()));
        r
    }

    #[test]
    fn a_reading_is_scaled_to_its_enabled_time() {
        let half = Reading {
            raw: 100,
            enabled_ns: 1000,
            running_ns: 500,
        };
        assert_eq!(half.scaled(), Some(200.0));
        assert_eq!(
            Reading {
                raw: 7,
                enabled_ns: 10,
                running_ns: 10
            }
            .scaled(),
            Some(7.0)
        );
        assert_eq!(
            Reading {
                raw: 0,
                enabled_ns: 10,
                running_ns: 0
            }
            .scaled(),
            None
        );
        assert_eq!(
            Reading {
                raw: 7,
                enabled_ns: 10,
                running_ns: 11
            }
            .scaled(),
            Some(7.0)
        );
    }

    #[test]
    fn counts_tell_user_from_kernel() {
        let reading = |raw, running_ns| Reading {
            raw,
            enabled_ns: 100,
            running_ns,
        };
        let counts = Counts::from_readings(&[
            reading(10, 100),
            reading(20, 100),
            reading(30, 50),
            reading(40, 50),
        ])
        .unwrap();
        assert_eq!((counts.user_instructions, counts.user_cycles), (10.0, 20.0));
        assert_eq!(
            (counts.kernel_instructions, counts.kernel_cycles),
            (Some(60.0), Some(80.0))
        );
        assert_eq!(
            Counts::from_readings(&[reading(10, 100), reading(20, 100)])
                .unwrap()
                .kernel_cycles,
            None
        );
        assert_eq!(
            Counts::from_readings(&[reading(10, 100), reading(0, 0)]),
            None
        );
    }

    /// Software events need no hardware: they show that opening, grouping, switching and reading work.
    fn software(target: Target) -> Option<EventSet> {
        let events = [
            (Event::PageFaults, Mode::Both),
            (Event::TaskClock, Mode::Both),
        ];
        fingerpost_testing::had(EventSet::open(&events, target))
    }

    /// Faults in fresh small pages, one by one. An allocator would hand out memory that was touched before.
    fn touch_pages(count: usize) {
        let page = crate::system::page_bytes() as usize;
        let (bytes, protection) = (count * page, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new anonymous mapping, touched only within its bounds, and unmapped once.
        unsafe {
            let memory = libc::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(memory, libc::MAP_FAILED);
            libc::madvise(memory, bytes, libc::MADV_NOHUGEPAGE);
            for at in (0..bytes).step_by(page) {
                memory.cast::<u8>().add(at).write_volatile(1);
            }
            libc::munmap(memory, bytes);
        }
    }

    #[test]
    fn faults_are_counted_only_while_enabled() {
        let Some(set) = software(Target::Thread) else {
            return;
        };
        touch_pages(1000);
        assert_eq!(set.read().unwrap()[0].raw, 0);
        set.switch(true).unwrap();
        touch_pages(1000);
        set.switch(false).unwrap();
        let [faults, clock] = set.read().unwrap()[..] else {
            panic!("two counters")
        };
        assert!((1000..1010).contains(&faults.raw), "{faults:?}");
        assert!(
            clock.raw > 0 && clock.running_ns <= clock.enabled_ns,
            "{clock:?}"
        );
        touch_pages(1000);
        assert_eq!(set.read().unwrap()[0].raw, faults.raw);
    }

    #[test]
    fn children_count_when_inherited() {
        let (Some(alone), Some(inherited)) =
            (software(Target::Thread), software(Target::WithChildren))
        else {
            return;
        };
        alone.switch(true).unwrap();
        inherited.switch(true).unwrap();
        std::thread::spawn(|| touch_pages(5000)).join().unwrap();
        alone.switch(false).unwrap();
        inherited.switch(false).unwrap();
        let (alone, inherited) = (alone.read().unwrap()[1], inherited.read().unwrap()[1]);
        assert!(
            inherited.raw > alone.raw,
            "{inherited:?} with the thread, {alone:?} without"
        );
    }

    #[test]
    fn hardware_counters_count_or_say_why_not() {
        match availability() {
            Err(refusal) => assert!(!refusal.reason.is_empty() && !refusal.remedy.is_empty()),
            Ok(_) => {
                let counters = Counts::open(Target::Thread).unwrap();
                counters.switch(true).unwrap();
                (0..100_000u64).fold(1, |sum, n| std::hint::black_box(sum ^ n));
                counters.switch(false).unwrap();
                let counts = Counts::read(&counters).unwrap();
                assert!(counts.user_instructions >= 100_000.0, "{counts:?}");
            }
        }
    }
}
