//! Floating point: eight kernels of known instruction mixes, as this program's compiler made them and as any C compiler
//! makes them, and beside them what the core can do at most.

pub mod compilers;
mod kernels;
mod peak;

use std::hint::black_box;
use std::io;

use fingerpost_record::descriptor::FLOPS;
use fingerpost_record::{Better, Params, Unit};

use crate::probe::{Exercises, Probe, latency, table};
use crate::session::{Session, Stop};

use kernels::{MODULES, Module, STEPS, Start, TOLERANCE};
pub use peak::PROBES as LIMITS;

/// The kernels in C, to be built by the compilers that are compared. The program is a probe process of `cpu.flops`.
pub const SOURCE: &str = include_str!("flops.c");

/// What `compiler` says of the kernels in this binary.
pub const BUILT_IN: &str = "built-in";

/// Additions, subtractions, multiplications and divisions in one step of each module, in the order of the table.
pub fn operations() -> [[u64; 4]; 8] {
    MODULES.each_ref().map(|module| module.operations)
}

fn flops(s: &mut Session) -> Result<(), Stop> {
    s.word("compiler", &[BUILT_IN])?;
    let number = s.int("module", 1)? as usize;
    let Some(module) = MODULES.get(number - 1) else {
        return Err(Stop::Fail(format!(
            "there is no module {number}; they are numbered 1 to {}",
            MODULES.len()
        )));
    };
    let kernel = black_box(kernels::kernels::<f64>()[number - 1]);
    let h = black_box(1.0 / STEPS as f64);
    let mut result = 0.0;
    s.work_per_op(module.flops());
    s.batches(|ops| {
        for _ in 0..ops {
            let start = Start {
                x: h / 2.0,
                h,
                zero: 0.0,
            };
            result = black_box(kernel(
                black_box(STEPS),
                start,
                black_box(&module.coefficients),
            ));
        }
        right(module, module.result(result, h))
    })
}

/// A kernel that computes something else has not done the work that it is credited with.
fn right(module: &Module, result: f64) -> io::Result<()> {
    match (result / module.integral - 1.0).abs() < TOLERANCE {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "the result is {result}, and the integral is {}",
            module.integral
        ))),
    }
}

fn modules() -> Vec<Params> {
    (1..=MODULES.len() as i64)
        .map(|module| {
            Params::new()
                .with("module", module)
                .with("compiler", BUILT_IN)
        })
        .collect()
}

/// The kernels.
pub static PROBES: &[Probe] = &[Probe {
    name: FLOPS,
    bounds: [1e6, 1e13],
    summary: "floating-point operations a second, by instruction mix and compiler",
    timed: "a thousand steps of the midpoint rule for an integral known in closed form, in double precision, all in \
        registers and the first-level cache; module 1 to 8 has the mix of additions, subtractions, multiplications and \
        divisions of the published table.",
    pitfalls: "an operation is one of the source: a fused multiply-add counts as two. The built-in kernels are made \
        for the oldest CPU of the architecture, the C ones with the flags of their row.",
    unit: Unit::FlopPerSecond,
    better: Better::Higher,
    lab: Some("flops"),
    variants: modules,
    settings: &compilers::SETTINGS,
    run: flops,
    ..latency(&table::ARITHMETIC, Exercises::Cpu)
}];

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// A C compiler, or nothing where none is installed; under CI that is a failure.
    fn compile(words: &[&str], into: &Path) -> bool {
        let source = into.with_extension("c");
        std::fs::write(&source, SOURCE).unwrap();
        match Command::new("cc")
            .args(words)
            .arg("-o")
            .arg(into)
            .arg(&source)
            .status()
        {
            Ok(status) => {
                assert!(status.success());
                true
            }
            Err(e) => {
                fingerpost_testing::skipped(format_args!("cc cannot be started: {e}"));
                false
            }
        }
    }

    #[test]
    fn the_kernels_in_c_compute_what_those_in_rust_do() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("results");
        if !compile(&["-O2"], &program) {
            return;
        }
        let output = Command::new(&program).arg("results").output().unwrap();
        let results: Vec<f64> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|l| l.parse().unwrap())
            .collect();
        assert_eq!(results.len(), MODULES.len());
        let h = 1.0 / STEPS as f64;
        for (i, (kernel, theirs)) in kernels::kernels::<f64>()
            .into_iter()
            .zip(results)
            .enumerate()
        {
            let module = &MODULES[i];
            let ours = module.result(
                kernel(
                    STEPS,
                    Start {
                        x: h / 2.0,
                        h,
                        zero: 0.0,
                    },
                    &module.coefficients,
                ),
                h,
            );
            assert!(
                (ours / theirs - 1.0).abs() < 1e-12,
                "module {}: {ours} and {theirs}",
                i + 1
            );
        }
    }

    /// The instructions that the compiler makes of each C kernel are its operations, neither more nor less.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_kernels_in_c_have_the_instruction_mix_of_their_module() {
        let dir = tempfile::tempdir().unwrap();
        let listing = dir.path().join("listing.s");
        let plain = [
            "-O2",
            "-march=x86-64",
            "-ffp-contract=off",
            "-fno-inline",
            "-fno-unroll-loops",
            "-fno-tree-vectorize",
            "-S",
        ];
        if !compile(&plain, &listing) {
            return;
        }
        let text = std::fs::read_to_string(&listing).unwrap();
        for (i, module) in MODULES.iter().enumerate() {
            let label = format!("module_{}:", i + 1);
            let body = text
                .split(&label)
                .nth(1)
                .unwrap()
                .split(".size")
                .next()
                .unwrap();
            let count = |name: &str| {
                body.lines()
                    .filter(|l| l.trim_start().starts_with(name))
                    .count() as u64
            };
            assert_eq!(
                ["addsd", "subsd", "mulsd", "divsd"].map(count),
                module.operations,
                "module {}",
                i + 1
            );
        }
    }

    #[test]
    fn a_wrong_result_is_a_failure() {
        assert!(right(&MODULES[2], MODULES[2].integral).is_ok());
        assert!(right(&MODULES[2], MODULES[2].integral * 1.00001).is_err());
        assert!(right(&MODULES[2], f64::NAN).is_err());
    }
}
