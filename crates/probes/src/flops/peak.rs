//! What the core can do at most: independent additions, multiplications and fused multiply-adds in registers, one
//! number or one whole vector at a time; and the clock rate, from additions of integers that wait for each other.
//!
//! Twelve chains run side by side on x86-64 and twenty-four on ARM: latency times units is at most ten there and
//! sixteen here, and more chains than that keep every unit busy. In assembly, because a compiler would fold additions
//! of a constant.

use std::io;

use fingerpost_record::{Better, Unit};

use crate::cpu::{chain, known_processor};
use crate::probe::{Exercises, Probe, latency, rows, table};
use crate::session::{Session, Stop, now_ns};

/// The most numbers that the chains hold together: twelve vectors of eight.
const NUMBERS: usize = 96;

/// Turns of the assembly loop in one operation of the probe.
const TURNS: u64 = 500;

/// What each chain does at each step, on one number or a vector: `acc + y`, `acc · y` or `acc + x · y`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Add,
    Mul,
    Fma,
}

impl Op {
    fn flops(self) -> u64 {
        if self == Op::Fma { 2 } else { 1 }
    }

    /// The operands: x, y and what a chain starts with. Additions count in steps of one and a multiplication's factor
    /// is just above one, so that the result tells how many steps there were.
    fn operands(self) -> [f64; 3] {
        match self {
            Op::Add | Op::Fma => [1.0, 1.0, 0.0],
            Op::Mul => [0.0, 1.0 + 1e-9, 1.0],
        }
    }

    /// What every number is after so many steps.
    fn expected(self, steps: u64) -> f64 {
        match self {
            Op::Add | Op::Fma => steps as f64,
            Op::Mul => (steps as f64 * 1e-9).exp(),
        }
    }
}

/// A way to calculate that this CPU has.
#[derive(Clone, Copy)]
struct Way {
    /// The row's `kind`.
    kind: &'static str,
    op: Op,
    /// Numbers per instruction.
    lanes: u64,
    /// Runs the chains for some turns.
    run: unsafe fn(u64, &[f64; 24], &mut [f64; NUMBERS]),
}

/// Steps of each chain in one turn of a loop.
const UNROLLED: u64 = 16;

/// One assembly loop. `$load` and `$store` move a register from and to memory, `$step` is the operation, on registers
/// numbered `\i`.
#[cfg(target_arch = "x86_64")]
macro_rules! chains {
    (
        $name:ident, $($feature:literal)?, $load:literal, $register:literal, $bytes:literal, $step:literal, $end:literal
    ) => {
        $(#[target_feature(enable = $feature)])?
        unsafe fn $name(turns: u64, operands: &[f64; 24], out: &mut [f64; NUMBERS]) {
            // SAFETY: reads three vectors of the operands and writes twelve to `out`, which hold that many of the
            // widest; the vector registers that it uses are declared; the caller has checked that the CPU has the
            // instructions.
            unsafe {
                std::arch::asm!(
                    concat!($load, " ", $register, "14, [{operands}]"),
                    concat!($load, " ", $register, "15, [{operands} + 64]"),
                    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11",
                    concat!($load, " ", $register, "\\i, [{operands} + 128]"),
                    ".endr",
                    "2:",
                    ".rept 16",
                    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11",
                    $step,
                    ".endr",
                    ".endr",
                    "dec {turns}",
                    "jnz 2b",
                    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11",
                    concat!($load, " [{out} + ", $bytes, "*\\i], ", $register, "\\i"),
                    ".endr",
                    $end,
                    operands = in(reg) operands.as_ptr(),
                    out = in(reg) out.as_mut_ptr(),
                    turns = inout(reg) turns => _,
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
                    out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
                    out("xmm10") _, out("xmm11") _, out("xmm14") _, out("xmm15") _,
                    options(nostack)
                );
            }
        }
    };
}

/// The text sixteen times. Not by `.rept`: within it, LLVM's assembler takes the `\()` of `v\i\().2d` away before
/// `.irp` puts `i` in.
#[cfg(target_arch = "aarch64")]
macro_rules! sixteen {
    ($($text:expr),*) => {
        sixteen!(@twice sixteen!(@twice sixteen!(@twice sixteen!(@twice concat!($($text),*)))))
    };
    (@twice $text:expr) => {
        concat!($text, $text)
    };
}

/// One assembly loop on 64-bit ARM.
#[cfg(target_arch = "aarch64")]
macro_rules! chains {
    ($name:ident, $register:literal, $bytes:literal, $step:literal) => {
        unsafe fn $name(turns: u64, operands: &[f64; 24], out: &mut [f64; NUMBERS]) {
            // SAFETY: reads three vectors of the operands and writes twenty-four of at most two numbers to `out`; the
            // vector registers that it uses are declared; every CPU of the architecture has the instructions.
            unsafe {
                std::arch::asm!(
                    concat!("ldr ", $register, "30, [{operands}]"),
                    concat!("ldr ", $register, "31, [{operands}, #64]"),
                    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23",
                    concat!("ldr ", $register, "\\i, [{operands}, #128]"),
                    ".endr",
                    "2:",
                    sixteen!(
                        ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n",
                        $step,
                        "\n.endr\n"
                    ),
                    "subs {turns}, {turns}, #1",
                    "b.ne 2b",
                    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23",
                    concat!("str ", $register, "\\i, [{out}, #", $bytes, "*\\i]"),
                    ".endr",
                    operands = in(reg) operands.as_ptr(),
                    out = in(reg) out.as_mut_ptr(),
                    turns = inout(reg) turns => _,
                    out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _,
                    out("v6") _, out("v7") _, out("v8") _, out("v9") _, out("v10") _, out("v11") _,
                    out("v12") _, out("v13") _, out("v14") _, out("v15") _, out("v16") _, out("v17") _,
                    out("v18") _, out("v19") _, out("v20") _, out("v21") _, out("v22") _, out("v23") _,
                    out("v30") _, out("v31") _,
                    options(nostack)
                );
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use super::{NUMBERS, Op, Way};

    pub const CHAINS: u64 = 12;

    chains!(add_1, , "movsd", "xmm", "8", "addsd xmm\\i, xmm15", "");
    chains!(mul_1, , "movsd", "xmm", "8", "mulsd xmm\\i, xmm15", "");
    chains!(
        fma_1,
        "fma",
        "vmovsd",
        "xmm",
        "8",
        "vfmadd231sd xmm\\i, xmm14, xmm15",
        ""
    );
    chains!(add_2, , "movupd", "xmm", "16", "addpd xmm\\i, xmm15", "");
    chains!(mul_2, , "movupd", "xmm", "16", "mulpd xmm\\i, xmm15", "");
    chains!(
        add_4,
        "avx",
        "vmovupd",
        "ymm",
        "32",
        "vaddpd ymm\\i, ymm\\i, ymm15",
        "vzeroupper"
    );
    chains!(
        mul_4,
        "avx",
        "vmovupd",
        "ymm",
        "32",
        "vmulpd ymm\\i, ymm\\i, ymm15",
        "vzeroupper"
    );
    chains!(
        fma_4,
        "avx,fma",
        "vmovupd",
        "ymm",
        "32",
        "vfmadd231pd ymm\\i, ymm14, ymm15",
        "vzeroupper"
    );
    chains!(
        add_8,
        "avx512f",
        "vmovupd",
        "zmm",
        "64",
        "vaddpd zmm\\i, zmm\\i, zmm15",
        "vzeroupper"
    );
    chains!(
        mul_8,
        "avx512f",
        "vmovupd",
        "zmm",
        "64",
        "vmulpd zmm\\i, zmm\\i, zmm15",
        "vzeroupper"
    );
    chains!(
        fma_8,
        "avx512f",
        "vmovupd",
        "zmm",
        "64",
        "vfmadd231pd zmm\\i, zmm14, zmm15",
        "vzeroupper"
    );

    /// What this CPU has: one number at a time, and its widest vectors.
    pub fn ways() -> Vec<Way> {
        let way = |kind, op, lanes, run| Way {
            kind,
            op,
            lanes,
            run,
        };
        let (avx, fma) = (
            std::arch::is_x86_feature_detected!("avx"),
            std::arch::is_x86_feature_detected!("fma"),
        );
        let avx512 = std::arch::is_x86_feature_detected!("avx512f");
        let widest = [(avx512, 8), (avx, 4)]
            .into_iter()
            .find(|(has, _)| *has)
            .map_or(2, |(_, lanes)| lanes);
        let all = [
            way("scalar_add", Op::Add, 1, add_1 as _),
            way("scalar_mul", Op::Mul, 1, mul_1),
            way("scalar_fma", Op::Fma, 1, fma_1),
            way("vector_add", Op::Add, 2, add_2),
            way("vector_mul", Op::Mul, 2, mul_2),
            way("vector_add", Op::Add, 4, add_4),
            way("vector_mul", Op::Mul, 4, mul_4),
            way("vector_fma", Op::Fma, 4, fma_4),
            way("vector_add", Op::Add, 8, add_8),
            way("vector_mul", Op::Mul, 8, mul_8),
            way("vector_fma", Op::Fma, 8, fma_8),
        ];
        let has = |way: &Way| {
            [1, widest].contains(&way.lanes) && (way.op != Op::Fma || fma || way.lanes == 8)
        };
        all.into_iter().filter(has).collect()
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use super::{NUMBERS, Op, Way};

    pub const CHAINS: u64 = 24;

    chains!(add_1, "d", "8", "fadd d\\i, d\\i, d31");
    chains!(mul_1, "d", "8", "fmul d\\i, d\\i, d31");
    chains!(fma_1, "d", "8", "fmadd d\\i, d30, d31, d\\i");
    chains!(add_2, "q", "16", "fadd v\\i\\().2d, v\\i\\().2d, v31.2d");
    chains!(mul_2, "q", "16", "fmul v\\i\\().2d, v\\i\\().2d, v31.2d");
    chains!(fma_2, "q", "16", "fmla v\\i\\().2d, v30.2d, v31.2d");

    /// What every CPU of the architecture has.
    pub fn ways() -> Vec<Way> {
        let way = |kind, op, lanes, run| Way {
            kind,
            op,
            lanes,
            run,
        };
        vec![
            way("scalar_add", Op::Add, 1, add_1 as _),
            way("scalar_mul", Op::Mul, 1, mul_1),
            way("scalar_fma", Op::Fma, 1, fma_1),
            way("vector_add", Op::Add, 2, add_2),
            way("vector_mul", Op::Mul, 2, mul_2),
            way("vector_fma", Op::Fma, 2, fma_2),
        ]
    }
}

/// Other processors have no assembly here; their rows are skipped.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod machine {
    pub const CHAINS: u64 = 1;

    pub fn ways() -> Vec<super::Way> {
        Vec::new()
    }
}

/// The kinds of rows, whether or not this CPU has them.
const KINDS: [&str; 6] = [
    "scalar_add",
    "scalar_mul",
    "scalar_fma",
    "vector_add",
    "vector_mul",
    "vector_fma",
];

impl Way {
    /// Runs the chains and checks that each number went through every step.
    fn run_checked(&self, turns: u64) -> io::Result<()> {
        let [x, y, begin] = self.op.operands();
        let mut operands = [x; 24];
        operands[8..16].fill(y);
        operands[16..].fill(begin);
        let mut out = [f64::NAN; NUMBERS];
        // SAFETY: `ways` lists only what the CPU has.
        unsafe { (self.run)(turns, &operands, &mut out) };
        let numbers = &out[..(machine::CHAINS * self.lanes) as usize];
        let expected = self.op.expected(turns * UNROLLED);
        match numbers.iter().find(|n| {
            (*n / expected - 1.0).abs().partial_cmp(&1e-10) != Some(std::cmp::Ordering::Less)
        }) {
            None => Ok(()),
            Some(wrong) => Err(io::Error::other(format!(
                "a chain holds {wrong} where {expected} is right"
            ))),
        }
    }

    /// Floating-point operations in so many turns.
    fn flops(&self, turns: u64) -> u64 {
        turns * UNROLLED * machine::CHAINS * self.lanes * self.op.flops()
    }
}

fn peak(s: &mut Session) -> Result<(), Stop> {
    let kind = s.word("kind", &KINDS)?;
    let Some(way) = machine::ways().into_iter().find(|way| way.kind == kind) else {
        let kind = kind.replace('_', " ");
        return Err(Stop::Skip(format!(
            "this CPU has no {kind}, or there is no assembly for it here"
        )));
    };
    s.work_per_op(way.flops(TURNS));
    s.repeat(|| way.run_checked(TURNS))?;
    s.counter("lanes", way.lanes as f64);
    Ok(())
}

/// Nanoseconds of vector arithmetic before each batch of `load=vector`. CPUs that slow down for it stay slow for some
/// 600 µs after it.
const BURST_NS: u64 = 100_000;

fn frequency(s: &mut Session) -> Result<(), Stop> {
    let vector = s.word("load", &["integer", "vector"])? == "vector";
    known_processor()?;
    let burst = machine::ways().into_iter().last().filter(|_| vector);
    let mut sum = 1;
    s.work_per_op(64);
    s.timed_batches(|ops| {
        let begin = now_ns();
        while let Some(way) = burst.filter(|_| now_ns() - begin < BURST_NS) {
            way.run_checked(TURNS)?;
        }
        let begin = now_ns();
        for _ in 0..ops {
            sum = chain::add(sum, std::hint::black_box(3));
        }
        std::hint::black_box(sum);
        Ok(now_ns() - begin)
    })
}

const PEAK: Probe = Probe {
    name: "cpu.peak",
    bounds: [1e7, 1e13],
    summary: "floating-point operations a second that the core can do at most",
    timed: "additions, multiplications or fused multiply-adds (two operations each) in double precision, in more \
        independent chains of \
            registers than the units can be busy with, one number at a time or in the widest vectors that the CPU has.",
    pitfalls: "AVX-512 may lower the clock rate; `cpu.frequency` with load=vector has the rate that then holds.",
    unit: Unit::FlopPerSecond,
    better: Better::Higher,
    lab: Some("flops"),
    variants: || rows("kind", KINDS),
    run: peak,
    ..latency(&table::ARITHMETIC, Exercises::Cpu)
};

/// The limits.
pub static PROBES: &[Probe] = &[
    PEAK,
    Probe {
        name: "cpu.frequency",
        bounds: [1e8, 2e10],
        summary: "the clock rate that the core runs at",
        timed: "additions of 64-bit integers, each of which needs the one before and so takes one cycle; with \
            load=vector, each batch right behind 0.1 ms of the widest vector arithmetic.",
        pitfalls: "a CPU that adds in half a cycle, or folds two additions into one, would show twice its clock rate.",
        unit: Unit::PerSecond,
        variants: || rows("load", ["integer", "vector"]),
        run: frequency,
        ..PEAK
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_this_cpu_goes_through_every_step() {
        for way in machine::ways() {
            assert!(KINDS.contains(&way.kind));
            for turns in [1, 7, TURNS] {
                way.run_checked(turns)
                    .unwrap_or_else(|e| panic!("{} {turns}: {e}", way.kind));
            }
        }
    }

    #[test]
    fn a_step_less_is_noticed() {
        for op in [Op::Add, Op::Mul, Op::Fma] {
            let (all, less) = (
                op.expected(TURNS * UNROLLED),
                op.expected(TURNS * UNROLLED - 1),
            );
            assert!((less / all - 1.0).abs() > 1e-10, "{op:?}");
        }
    }

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn operations_are_counted_as_chains_times_lanes_times_steps() {
        let way = machine::ways()
            .into_iter()
            .find(|w| w.kind == "scalar_add")
            .unwrap();
        assert_eq!(way.flops(10), 10 * UNROLLED * machine::CHAINS);
        assert_eq!(Op::Fma.flops(), 2);
    }
}
