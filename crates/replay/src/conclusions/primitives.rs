//! lmbench and flops in No More Apple Mysteries, and what it says of processors and compilers besides its tables.

use fingerpost_record::cause::id;
use fingerpost_record::{Metric, Params, Status};

use super::conclusion::{About, Conclusion, Here, mysteries};
use super::judged::Judged;
use super::own;
use super::source::{all, between, figures, g5, load, ratio, row, said, status};
use fingerpost_compare::verdict::Verdict;

const PROCESS: About = mysteries(&["lmbench-process"]);
const CALLS: About = mysteries(&["lmbench-syscall-signal"]);
const IPC: About = mysteries(&["lmbench-ipc"]);
const FLOPS: About = mysteries(&["flops"]);
const TWO_SYSTEMS: &str = "it is about two published systems";
const LOW: &str = "Low level benchmarking on Mac OS X and Linux";
pub(super) const SIGNALING: &str = "Interprocess Communication (IPC) and Signaling";
const FPU: &str = "Micro CPU Benchmarks: Isolating the FPU";
const G5: &str = "The G5 a.k.a. Power 970FX";
const FIRST_ARTICLE: &str = "the figures for it are in the first article";
const ONE_PROCESSOR: &str = "it is about one processor of that time";

/// The conclusions about single operations, processors and compilers.
pub static LIST: &[Conclusion] = &[
    PROCESS.at(LOW).conclusion(
        "clock_rate_unimportant",
        "The machine with Mac OS X has a clock that is 8 % faster, and loses all the same: the clock is not what \
         matters.",
        || {
            let c = g5();
            let faster = figures(&c, id::CPU_SPEED, Metric::ClockRate)
                .is_some_and(|[linux, mac]| (1.075..1.085).contains(&(mac / linux)));
            Judged::by_cause(said(&c, id::CPU_SPEED), |status, _| status == Status::RuledOut && faster)
        },
        Here::Never(TWO_SYSTEMS),
    ),
    PROCESS.at(LOW).conclusion(
        "processes_slow_on_mac",
        "Making processes takes much longer under Mac OS X than under Linux on the same processor, in all three forms.",
        || {
            let c = g5();
            let ratios = CREATION.map(|p| ratio(&c, p));
            let guilty = status(&c, id::KERNEL_PROCESS) == Some(Status::Confirmed);
            let [fork, exec, shell] = ratios;
            Judged::by(
                guilty && ratios.iter().all(|r| *r > 2.0),
                format!("fork {fork:.1}, exec {exec:.1}, shell {shell:.1} times"),
            )
        },
        Here::By(|run| own::against_mac(run, &FORMS), "process.fork process.exec_dynamic process.shell"),
    ),
    PROCESS.at(LOW).conclusion(
        "g5_forks_like_a_xeon",
        "Under Linux the G5 makes a process only a little slower than the much faster clocked Xeon.",
        || {
            let times = ratio(&between("xeon-3.6-linux", "g5-2.5-linux"), "process.fork");
            Judged::by((1.0..1.2).contains(&times), format!("{times:.2} times"))
        },
        Here::Never(TWO_SYSTEMS),
    ),
    PROCESS.at(LOW).conclusion(
        "g5_starts_shells_fastest",
        "Starting a program through the shell, the G5 under Linux beats both of the others.",
        || {
            let times = ["xeon-3.6-linux", "opteron-850-linux"]
                .map(|other| ratio(&between(other, "g5-2.5-linux"), "process.shell"));
            Judged::by(times.iter().all(|t| *t < 1.0), format!("{:.2} and {:.2} times the time", times[0], times[1]))
        },
        Here::Never(TWO_SYSTEMS),
    ),
    PROCESS.at(LOW).conclusion(
        "up_to_five_times",
        "A process takes up to five times longer to make under Mac OS X, so making a thread may be slow as well; that \
         is not proved.",
        || {
            let c = between("opteron-850-linux", "g5-2.7-darwin");
            let most = CREATION.iter().map(|p| ratio(&c, p)).fold(0.0, f64::max);
            let silent = status(&c, id::KERNEL_THREAD).is_none();
            Judged::by(
                (4.5..5.5).contains(&most) && silent,
                format!("{most:.1} times at most; of threads no verdict, for there is no row"),
            )
        },
        Here::By(
            |run| {
                let (share, said) =
                    own::thread_beside(run, "process.fork", &Params::new().with("resident", 0), "a fork")?;
                Some(Judged::at_least(
                    &share,
                    0.5,
                    format!("{said}; from half of it on a slow fork tells of slow threads"),
                ))
            },
            "process.fork thread.create",
        ),
    ),
    CALLS.at(SIGNALING).conclusion(
        "signals_slow_on_mac",
        "Signals take far longer under Mac OS X; installing a handler takes four times as long.",
        || {
            let c = g5();
            let [install, handle] = ["signal.install", "signal.handle"].map(|p| ratio(&c, p));
            let slower = all(&c, &["signal.install", "signal.handle"], Verdict::Slower);
            let figure = format!(
                "installing {install:.1}, handling {handle:.1} times; the text calls it “the TCP signals”, and the \
                 column of TCP beside it is select \
                 ({:.1} times)",
                ratio(&c, "syscall.select")
            );
            Judged::by(slower && install > 4.0 && handle > 3.0, figure)
        },
        // Handling a signal takes 2.3 times as long as on the Xeon, the least of the three: the limit is below that.
        Here::By(
            |run| own::against_mac(run, &[("signal.install", "installing", 4.0), ("signal.handle", "handling", 2.0)]),
            "'signal.*'",
        ),
    ),
    CALLS.at(SIGNALING).conclusion(
        "cpu_minor_for_signals",
        "The processor matters little for signals: the Opteron is somewhat faster than the higher clocked Xeon that \
         runs the same code.",
        || {
            let c = between("xeon-3.6-linux", "opteron-850-linux");
            let [install, handle] = ["signal.install", "signal.handle"].map(|p| ratio(&c, p));
            let faster = all(&c, &["signal.install", "signal.handle"], Verdict::Faster);
            Judged::by(faster, format!("{install:.2} and {handle:.2} times the time"))
        },
        Here::Never(TWO_SYSTEMS),
    ),
    CALLS.at("The Usual Suspects").conclusion(
        "every_call_slow_on_mac",
        "Entering the kernel may itself be expensive under Mac OS X, as its core is that of a microkernel: the call \
         that does nothing hints at it.",
        || {
            let c = g5();
            let times = ratio(&c, "syscall.null");
            let found = said(&c, id::SYSCALL_ENTRY)
                .map(|(status, why)| (status, format!("{times:.1} times for the null call; {why}")));
            Judged::by_cause(found, |status, _| status == Status::Confirmed)
        },
        Here::By(|run| own::against_mac(run, &[("syscall.null", "the null call", 3.0)]), "syscall.null"),
    ),
    IPC.at(SIGNALING).conclusion(
        "tcp_latency_doubled",
        "A round trip over TCP takes more than twice as long under Mac OS X as under any of the Linux systems.",
        || {
            let times = LINUX.map(|system| ratio(&between(system, "g5-2.7-darwin"), "ipc.tcp"));
            let figure = times.map(|t| format!("{t:.1}")).join(", ");
            Judged::by(times.iter().all(|t| *t > 2.0), format!("{figure} times"))
        },
        Here::By(|run| own::against_mac(run, &[("ipc.tcp", "a round trip over TCP", 2.0)]), "ipc.tcp"),
    ),
    IPC.at(SIGNALING).conclusion(
        "tcp_connect_slow",
        "Opening a TCP connection is quick on the G5 under Linux and much slower under Mac OS X.",
        || {
            let c = g5();
            let guilty = status(&c, id::NETWORK_STACK) == Some(Status::Confirmed);
            let slower = row(&c, "ipc.tcp_connect").verdict == Verdict::Slower;
            Judged::by(guilty && slower, format!("{:.1} times", ratio(&c, "ipc.tcp_connect")))
        },
        Here::By(|run| own::against_mac(run, &[("ipc.tcp_connect", "a connection", 1.5)]), "ipc.tcp_connect"),
    ),
    IPC.at("Mac OS X Achilles Heel").conclusion(
        "switches_as_fast",
        "Switching between tasks costs the new Mac OS X hardly more than Linux, so at most their number could matter.",
        || Judged::not("the document gives no figure for it"),
        Here::Never(TWO_SYSTEMS),
    ),
    IPC.at("The split funnel suspect").conclusion(
        "locks_as_coarse_as_before",
        "The kernel's finer locks seem not to work yet: nothing got faster against the version that had two.",
        || Judged::not("the document has no table of the version before"),
        Here::Never("the kernel's own locking here is in the rows parallel.*, without a system to compare with"),
    ),
    FLOPS.at(FPU).conclusion(
        "g5_fpu_as_good",
        "In floating point the G5 is as good as the best x86 processor.",
        || {
            let average = average("flops-opteron-2.4-gcc-3.3.3", "flops-g5-2.7-gcc-4.0");
            let holds = average.0 != Verdict::Slower && (average.1 - 1.0).abs() < 0.03;
            Judged::by(
                holds,
                format!("{:.2} times the Opteron's average, each with its better compiler", 1.0 / average.1),
            )
        },
        Here::Never(TWO_SYSTEMS),
    ),
    FLOPS.at(FPU).conclusion(
        "gcc_four_lifts_the_g5",
        "Version 4.0 of gcc makes the G5 almost 70 % faster in floating point.",
        || {
            let same_clock = average("flops-g5-2.7-gcc-3.3", "flops-g5-2.7-gcc-4.0");
            let gains = [same_clock.1, average("flops-g5-2.5-gcc-3.3", "flops-g5-2.7-gcc-4.0").1]
                .map(|r| (1.0 / r - 1.0) * 100.0);
            let figure =
                format!("{:.0} % against the machine at 2.5 GHz, {:.0} % at the same clock", gains[1], gains[0]);
            Judged::by(same_clock.0 == Verdict::Faster && (65.0..70.0).contains(&gains[1]), figure)
        },
        Here::Never("compilers here are compared by `fingerpost run flops`"),
    ),
    FLOPS.at(FPU).conclusion(
        "gcc_four_uses_fused_multiply_add",
        "The gain comes from the fused multiply-add, which the older compiler hardly used: modules of additions and \
         multiplications gain most.",
        || {
            let c = between("flops-g5-2.7-gcc-3.3", "flops-g5-2.7-gcc-4.0");
            let gain = |n: i64| {
                let row = c.rows.iter().find(|r| r.params.int("module") == Some(n));
                row.and_then(|r| r.ratio).map_or(f64::NAN, |r| 1.0 / r.value)
            };
            // Modules 4, 6 and 8 are additions and multiplications alone, 1 and 2 have divisions besides.
            let [mixed, divided] = [[4, 6, 8].map(gain), [1, 2, 1].map(gain)];
            let figure = format!(
                "modules 4, 6 and 8: {:.1}, {:.1} and {:.1} times; modules 1 and 2 with divisions: {:.2} and {:.2}",
                mixed[0], mixed[1], mixed[2], divided[0], divided[1]
            );
            Judged::by(mixed.iter().all(|m| divided.iter().all(|d| *m > 1.5 * d)), figure)
        },
        Here::Never("compilers here are compared by `fingerpost run flops`"),
    ),
    FLOPS.at(FPU).conclusion(
        "gcc_four_costs_the_opteron",
        "The Opteron loses by the same change of the compiler.",
        || {
            let (verdict, times) = average("flops-opteron-2.4-gcc-3.3.3", "flops-opteron-2.4-gcc-4.0");
            Judged::by(verdict == Verdict::Slower, format!("{:.0} % of what it was", 100.0 / times))
        },
        Here::Never("compilers here are compared by `fingerpost run flops`"),
    ),
    FLOPS.at(G5).conclusion(
        "integer_three_quarters",
        "In integer work the G5 reaches 70 to 80 % of the fastest x86 processors.",
        || Judged::not(FIRST_ARTICLE),
        Here::Never(TWO_SYSTEMS),
    ),
    FLOPS.at("Introduction").conclusion(
        "workstations_do_well",
        "As workstations, unlike as servers, the Apple machines are winners.",
        || Judged::not(FIRST_ARTICLE),
        Here::Never(ONE_PROCESSOR),
    ),
    FLOPS.at("Why Bother?").conclusion(
        "g5_like_a_pentium_four",
        "In integer work a G5 of 2.5 GHz is like a Pentium 4 of 3 to 3.2 GHz.",
        || Judged::not(FIRST_ARTICLE),
        Here::Never(ONE_PROCESSOR),
    ),
    mysteries(&["lmbench-process"]).at("Scope and Focus").conclusion(
        "yellow_dog_fits_the_g5_best",
        "Of the distributions of Linux, Yellow Dog is made for this processor more than any other.",
        || Judged::not("no other distribution was tried on it"),
        Here::Never(ONE_PROCESSOR),
    ),
    FLOPS.at(FPU).conclusion(
        "other_flags_change_nothing",
        "Other options of the compiler than -O2 make no significant difference in floating point.",
        || Judged::not("the table has one set of flags for each compiler"),
        Here::Never(
            "a run has one set of flags; `fingerpost ab cpu.flops --a 'cflags=-O2' --b 'cflags=-O2 -ffast-math'` \
             compares two here",
        ),
    ),
    FLOPS.at(FPU).conclusion(
        "better_compilers_raise_both",
        "The vendors' own compilers would raise the figures of both processors.",
        || Judged::not("the table has gcc alone"),
        Here::Never("such compilers are not here"),
    ),
    FLOPS.at(G5).conclusion(
        "g5_ahead_in_some_work",
        "In some floating-point work the G5 surpasses x86.",
        || {
            let c = between("flops-opteron-2.4-gcc-3.3.3", "flops-g5-2.7-gcc-4.0");
            let faster: Vec<String> = c
                .rows
                .iter()
                .filter(|r| r.verdict == Verdict::Faster)
                .filter_map(|r| Some(r.params.int("module")?.to_string()))
                .collect();
            Judged::by(
                !faster.is_empty(),
                format!("faster in modules {} than the Opteron with its better compiler", faster.join(" and ")),
            )
        },
        Here::Never(ONE_PROCESSOR),
    ),
    FLOPS.at(G5).conclusion(
        "intel_needs_its_own_compiler",
        "To compute as fast as the G5 now does with gcc, Intel's processors need Intel's own compiler.",
        || Judged::not("the table has no processor of Intel's"),
        Here::Never(ONE_PROCESSOR),
    ),
    FLOPS.at(G5).conclusion(
        "memory_latency_holds_the_g5_back",
        "The G5's worst weakness in integer work is its slow access to memory; the coming one with more cache will be \
         slowed less.",
        || Judged::not("the latency of memory was not measured, and the other is a forecast"),
        Here::Never(ONE_PROCESSOR),
    ),
    FLOPS.at(G5).conclusion(
        "g5_is_frugal",
        "The G5 needs little power: about 16 W at 1.6 GHz.",
        || Judged::not("the power is quoted: nothing was measured"),
        Here::Never("power is not measured"),
    ),
];

const CREATION: [&str; 3] = ["process.fork", "process.exec_dynamic", "process.shell"];
/// The same with their names in the document, and how many times as long each takes there at the least.
const FORMS: [(&str, &str, f64); 3] = [
    (CREATION[0], "fork", 2.0),
    (CREATION[1], "exec", 2.0),
    (CREATION[2], "shell", 2.0),
];
const LINUX: [&str; 3] = ["g5-2.5-linux", "xeon-3.6-linux", "opteron-850-linux"];

/// The verdict on the modules' average, and how many times slower it is.
fn average(base: &str, new: &str) -> (Verdict, f64) {
    let (base, new) = (
        load(&format!("{base}[module=average]")),
        load(&format!("{new}[module=average]")),
    );
    let c = fingerpost_compare::compare(&[base], &[new], &fingerpost_compare::Options::default());
    (row(&c, "cpu.flops").verdict, ratio(&c, "cpu.flops"))
}
