//! The measuring loop of a probe process: calibrate, then batch after batch until the slice is over.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use fingerpost_measure::batch::{Calibrator, TARGET_NS};
use fingerpost_record::Params;
use fingerpost_sys::perf::{Counts, Target};
use fingerpost_sys::system::page_bytes;

use crate::call::usage;
pub use crate::monotonic::now_ns;
use crate::pace::Pace;
use crate::protocol::{MAX_SAMPLES, Request};

/// Why a probe stops without a figure.
#[derive(Debug, PartialEq)]
pub enum Stop {
    /// It needs something that is not here.
    Skip(String),
    /// It went wrong.
    Fail(String),
}

impl From<io::Error> for Stop {
    fn from(e: io::Error) -> Self {
        Stop::Fail(e.to_string())
    }
}

impl Stop {
    /// A failed system call, with its name.
    pub fn call(name: &str) -> Stop {
        Stop::Fail(format!("{name}: {}", io::Error::last_os_error()))
    }
}

/// How often the steal counter and the pace are read, in nanoseconds: each costs some ten microseconds, and steal moves
/// in steps of a tick.
const CHECK_EVERY_NS: u64 = 8_000_000;

/// How long the counted batches may take, in nanoseconds.
const COUNTED_NS: u64 = 2_000_000;

#[derive(Clone, Copy)]
struct Sample {
    work: u64,
    ns: u64,
    value: f64,
    disturbed: bool,
}

/// What a probe's function is given: its parameters, its CPUs, and the loop.
pub struct Session {
    request: Request,
    batch_target_ns: u64,
    work_per_op: u64,
    samples: Vec<Sample>,
    direct: bool,
    batch: u64,
    counters: Vec<(&'static str, f64)>,
    resident: u64,
    /// Nanoseconds of the fixed work beside the undisturbed samples, by CPU.
    pace: Vec<u64>,
    /// Whether being switched out by a partner on this CPU is part of the operation, and so no disturbance.
    shares_cpu: Cell<bool>,
    /// Whether the second CPU takes part.
    uses_second: Cell<bool>,
}

impl Session {
    pub(crate) fn new(request: Request) -> Self {
        Session {
            request,
            batch_target_ns: TARGET_NS,
            work_per_op: 1,
            samples: Vec::with_capacity(MAX_SAMPLES),
            direct: false,
            batch: 0,
            counters: Vec::new(),
            resident: 0,
            pace: Vec::new(),
            shares_cpu: Cell::new(false),
            uses_second: Cell::new(false),
        }
    }

    /// Confines the process to the first CPU of the request. Partners are placed by [`crate::peer`].
    pub(crate) fn pin(&self) -> Result<(), Stop> {
        match self.request.cpus.first() {
            Some(&cpu) => fingerpost_sys::affinity::pin(&[cpu])
                .map_err(|e| Stop::Fail(format!("cannot use CPU {cpu}: {e}"))),
            None => Ok(()),
        }
    }

    /// The row's parameters.
    pub fn params(&self) -> &Params {
        &self.request.params
    }

    /// A parameter that must be a whole number of at least `least`.
    pub fn int(&self, name: &str, least: i64) -> Result<i64, Stop> {
        match self.params().int(name) {
            Some(n) if n >= least => Ok(n),
            _ => Err(Stop::Fail(format!(
                "parameter {name} must be a whole number of at least {least}"
            ))),
        }
    }

    /// A parameter that must be one of these words.
    pub fn word(&self, name: &str, of: &[&'static str]) -> Result<&'static str, Stop> {
        let given = self.params().text(name);
        let found = of.iter().find(|w| Some(**w) == given).copied();
        found
            .ok_or_else(|| Stop::Fail(format!("parameter {name} must be one of {}", of.join(", "))))
    }

    /// A directory for files. It is the probe's own, and is removed afterwards.
    pub fn dir(&self) -> &Path {
        &self.request.dir
    }

    /// The CPUs that may be used, the measuring process's first.
    pub fn cpus(&self) -> &[usize] {
        &self.request.cpus
    }

    /// The CPU for a partner process: the same for `placement=same`, the next one for `cross`. A partner on the same
    /// CPU makes being switched out part of the operation: see [`Session::share_cpu`].
    pub fn partner_cpu(&self) -> Result<usize, Stop> {
        let cpus = &self.request.cpus;
        match (self.word("placement", &["same", "cross"])?, cpus.as_slice()) {
            ("same", [first, ..]) => {
                self.share_cpu();
                Ok(*first)
            }
            _ => self.take_second_cpu(),
        }
    }

    /// The second CPU, for a part in the operation: see [`Session::use_second_cpu`].
    pub fn take_second_cpu(&self) -> Result<usize, Stop> {
        self.use_second_cpu();
        let second = self.request.cpus.get(1).copied();
        second.ok_or_else(|| Stop::Skip("needs two CPUs, and this process may use one".into()))
    }

    /// Says that partners run on this process's CPU. A partner that is woken may take the CPU at once, which the kernel
    /// counts as an involuntary switch; to leave out such batches would leave out the usual case. Only migration and
    /// steal disturb then.
    pub fn share_cpu(&self) {
        self.shares_cpu.set(true);
    }

    /// Says that the second CPU takes part in the operation, so that its pace counts as well.
    pub fn use_second_cpu(&self) {
        self.uses_second.set(true);
    }

    fn second_cpu(&self) -> Option<usize> {
        self.request
            .cpus
            .get(1)
            .copied()
            .filter(|_| self.uses_second.get())
    }

    /// Work that one operation does (bytes, flops), for units that are a rate of something other than operations.
    pub fn work_per_op(&mut self, work: u64) {
        self.work_per_op = work;
    }

    /// Another batch length than the usual [`TARGET_NS`], for operations that need longer batches to be themselves.
    pub fn batch_target_ns(&mut self, ns: u64) {
        self.batch_target_ns = ns;
    }

    /// How long the slice is, in nanoseconds.
    pub fn slice_ns(&self) -> u64 {
        self.request.slice_ns
    }

    /// Measures `body`, which does its operation as often as it is told and nothing else.
    pub fn batches(&mut self, mut body: impl FnMut(u64) -> io::Result<()>) -> Result<(), Stop> {
        self.timed_batches(|ops| {
            let begin = now_ns();
            body(ops)?;
            Ok(now_ns() - begin)
        })
    }

    /// Measures `once`, which does its operation once.
    pub fn repeat(&mut self, mut once: impl FnMut() -> io::Result<()>) -> Result<(), Stop> {
        self.batches(|ops| (0..ops).try_for_each(|_| once()))
    }

    /// Measures `body`, which does its operation as often as it is told and returns the nanoseconds of that alone: for
    /// operations that need something to be set up before, or cleared away after, each batch.
    pub fn timed_batches(
        &mut self,
        mut body: impl FnMut(u64) -> io::Result<u64>,
    ) -> Result<(), Stop> {
        self.begin();
        self.batch = self.calibrate(&mut body)?;
        let batch = self.batch;
        self.sample(false, || Ok((body(batch)?, 0.0, false)))?;
        if self.request.counters {
            self.count(&mut body)?;
        }
        Ok(())
    }

    /// Takes values in the probe's unit as `body` computes them, one per call, until the slice is over.
    pub fn values(&mut self, mut body: impl FnMut() -> Result<f64, Stop>) -> Result<(), Stop> {
        self.marked_values(|| Ok((body()?, false)))
    }

    /// Takes one value that is computed from many stretches of measuring, with the pace of those that went into it.
    pub fn paced_value(
        &mut self,
        body: impl FnOnce() -> Result<(f64, u64), Stop>,
    ) -> Result<(), Stop> {
        self.begin_values();
        let (value, pace) = body()?;
        self.samples.push(Sample {
            work: 0,
            ns: 0,
            value,
            disturbed: false,
        });
        self.pace = vec![pace];
        Ok(())
    }

    /// As [`Session::values`], for a `body` that also tells whether it saw a disturbance that this thread cannot see,
    /// such as a partner that lost its CPU.
    pub fn marked_values(
        &mut self,
        mut body: impl FnMut() -> Result<(f64, bool), Stop>,
    ) -> Result<(), Stop> {
        self.begin_values();
        self.sample(true, || body().map(|(value, seen)| (0, value, seen)))
    }

    /// Takes samples until the slice is over: the nanoseconds of a batch or a value, and whether `body` saw a
    /// disturbance. After each of those that are `long` it is asked whether the CPU was stolen, else now and then.
    fn sample(
        &mut self,
        long: bool,
        mut body: impl FnMut() -> Result<(u64, f64, bool), Stop>,
    ) -> Result<(), Stop> {
        let mut pace = Pace::start(self.second_cpu());
        let mut watch = Watch::start(self.request.cpus.first().copied(), self.shares_cpu.get());
        let begin = now_ns();
        let (mut checked, mut since_check) = (begin, 0);
        while self.samples.len() < MAX_SAMPLES {
            let (ns, value, seen) = body()?;
            let disturbed = watch.disturbed() | seen;
            self.samples.push(Sample {
                work: self.batch * self.work_per_op,
                ns,
                value,
                disturbed,
            });
            let now = now_ns();
            let over = now - begin >= self.request.slice_ns;
            let due = over || now - checked >= CHECK_EVERY_NS;
            if long || due {
                if watch.stolen() {
                    self.samples[since_check..]
                        .iter_mut()
                        .for_each(|s| s.disturbed = true);
                }
                since_check = self.samples.len();
            }
            if due {
                pace.read(since_check);
                checked = now_ns();
            }
            if over {
                break;
            }
        }
        self.end(pace);
        Ok(())
    }

    /// The last thing before the loop: makes the process as small as it can be, and notes its size.
    fn begin(&mut self) {
        fingerpost_sys::memory::forget_program_text();
        self.resident = resident_bytes();
    }

    /// The same where samples are values.
    fn begin_values(&mut self) {
        (self.direct, self.batch) = (true, 1);
        self.begin();
    }

    /// The first thing after the loop: which samples the CPU's pace speaks against.
    fn end(&mut self, pace: Pace) {
        let mut disturbed: Vec<bool> = self.samples.iter().map(|s| s.disturbed).collect();
        self.pace = pace.end(&mut disturbed);
        self.samples
            .iter_mut()
            .zip(disturbed)
            .for_each(|(sample, hit)| sample.disturbed = hit);
    }

    /// Reports a counter of the probe's own, per operation.
    pub fn counter(&mut self, name: &'static str, per_operation: f64) {
        self.counters.push((name, per_operation));
    }

    /// Finds the batch size. Its batches warm caches and pages; none of them is a sample.
    fn calibrate(&mut self, body: &mut impl FnMut(u64) -> io::Result<u64>) -> Result<u64, Stop> {
        let mut calibrator = Calibrator::new(self.batch_target_ns, self.request.batch);
        let deadline = now_ns() + self.request.slice_ns;
        while !calibrator.settled() && now_ns() < deadline {
            calibrator.feed(body(calibrator.ops())?);
        }
        Ok(calibrator.ops())
    }

    /// Counts instructions and cycles over a few more batches, after the timed ones: open counters make every switch
    /// slower.
    ///
    /// What a batch sets up and clears away outside of its timing is counted with it. A partner process is not counted.
    fn count(&mut self, body: &mut impl FnMut(u64) -> io::Result<u64>) -> Result<(), Stop> {
        // Why they cannot be opened is said once for the run, in the host's doubts.
        let Ok(counters) = Counts::open(Target::WithChildren) else {
            return Ok(());
        };
        let begin = now_ns();
        let mut operations = 0;
        counters.switch(true)?;
        while operations == 0 || now_ns() - begin < COUNTED_NS {
            body(self.batch)?;
            operations += self.batch;
        }
        counters.switch(false)?;
        let counts = Counts::read(&counters)?;
        let per_operation = |count: f64| count / operations as f64;
        self.counter("instructions_user", per_operation(counts.user_instructions));
        self.counter("cycles_user", per_operation(counts.user_cycles));
        if let (Some(instructions), Some(cycles)) =
            (counts.kernel_instructions, counts.kernel_cycles)
        {
            self.counter("instructions_kernel", per_operation(instructions));
            self.counter("cycles_kernel", per_operation(cycles));
        }
        Ok(())
    }

    /// The answer as the protocol has it.
    pub(crate) fn answer(&self) -> String {
        let mut out = String::with_capacity(64 + 32 * self.samples.len());
        let _ = writeln!(out, "resident {}\nbatch {}", self.resident, self.batch);
        for s in &self.samples {
            let flag = u8::from(s.disturbed);
            let _ = if self.direct {
                writeln!(out, "v {} {flag}", s.value)
            } else {
                writeln!(out, "s {} {} {flag}", s.work, s.ns)
            };
        }
        for ns in &self.pace {
            let _ = writeln!(out, "p {ns}");
        }
        for (name, value) in &self.counters {
            let _ = writeln!(out, "c {name} {value}");
        }
        out + "end\n"
    }
}

/// What disturbs a batch: an involuntary switch, a migration, steal.
struct Watch {
    ignores_switches: bool,
    switches: i64,
    cpu: i32,
    stat: Option<(std::fs::File, usize)>,
    steal: u64,
}

impl Watch {
    fn start(cpu: Option<usize>, ignores_switches: bool) -> Watch {
        let stat = cpu.and_then(|cpu| Some((std::fs::File::open("/proc/stat").ok()?, cpu)));
        let mut watch = Watch {
            ignores_switches,
            switches: involuntary_switches(),
            cpu: current_cpu(),
            stat,
            steal: 0,
        };
        watch.steal = watch.read_steal();
        watch
    }

    /// Whether this thread was switched out or moved since the last call.
    fn disturbed(&mut self) -> bool {
        let (switches, cpu) = (involuntary_switches(), current_cpu());
        let hit = (switches != self.switches && !self.ignores_switches) || cpu != self.cpu;
        (self.switches, self.cpu) = (switches, cpu);
        hit
    }

    /// Whether the hypervisor took time from our CPU since the last call.
    fn stolen(&mut self) -> bool {
        let now = self.read_steal();
        let hit = now != self.steal;
        self.steal = now;
        hit
    }

    fn read_steal(&self) -> u64 {
        let Some((file, cpu)) = &self.stat else {
            return 0;
        };
        let mut text = [0u8; 4096];
        let n = file.read_at(&mut text, 0).unwrap_or(0);
        steal_of(&String::from_utf8_lossy(&text[..n]), *cpu).unwrap_or(0)
    }
}

/// The steal ticks of one CPU: the eighth number of its line of `/proc/stat`.
fn steal_of(stat: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = stat.lines().find(|l| l.split(' ').next() == Some(&name))?;
    line.split_ascii_whitespace().nth(8)?.parse().ok()
}

/// Involuntary switches of the calling thread since it started.
pub(crate) fn involuntary_switches() -> i64 {
    usage(libc::RUSAGE_THREAD).ru_nivcsw
}

fn current_cpu() -> i32 {
    // SAFETY: no arguments, no memory.
    unsafe { libc::sched_getcpu() }
}

/// Resident bytes of this process.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text
        .split(' ')
        .nth(1)
        .and_then(|s| s.parse().ok())
        .unwrap_or(0);
    pages * page_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(slice_ns: u64) -> Session {
        Session::new(Request {
            probe: "test".into(),
            slice_ns,
            batch: 0,
            cpus: vec![],
            counters: false,
            dir: "/tmp".into(),
            params: Params::new().with("n", 3).with("placement", "same"),
        })
    }

    #[test]
    fn batches_are_of_the_calibrated_size_and_fill_the_slice() {
        let mut s = session(3_000_000);
        let mut calls = Vec::new();
        s.timed_batches(|ops| {
            calls.push(ops);
            Ok(ops * 1000)
        })
        .unwrap();
        assert_eq!(s.batch, TARGET_NS / 1000);
        assert!(
            s.samples
                .iter()
                .all(|x| x.work == s.batch && x.ns == TARGET_NS)
        );
        assert!(!s.samples.is_empty());
        assert!(s.answer().ends_with("end\n"));
    }

    #[test]
    fn an_error_of_the_operation_is_a_failure_with_its_words() {
        let stop = session(1000)
            .batches(|_| Err(io::Error::other("disk on fire")))
            .unwrap_err();
        assert_eq!(stop, Stop::Fail("disk on fire".into()));
    }

    #[test]
    fn parameters_are_checked() {
        let s = session(1000);
        assert_eq!(s.int("n", 1).unwrap(), 3);
        assert!(matches!(s.int("n", 4), Err(Stop::Fail(_))));
        assert_eq!(s.word("placement", &["same", "cross"]).unwrap(), "same");
        assert!(matches!(s.word("placement", &["left"]), Err(Stop::Fail(_))));
    }

    #[test]
    fn steal_is_read_from_the_right_cpu() {
        let stat = "cpu  1 2 3 4 5 6 7 88 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 80 0 0\ncpu10 0 0 0 0 0 0 \
            0 9 0 0\n";
        assert_eq!(steal_of(stat, 1), Some(80));
        assert_eq!(steal_of(stat, 10), Some(9));
        assert_eq!(steal_of(stat, 3), None);
        assert_eq!(steal_of("cpu0 1 2", 0), None);
    }
}
