//! The eight kernels: loops over double-precision numbers with the instruction mixes of the published table.
//!
//! Each is the midpoint rule for an integral over 0 to 1 that is known in closed form, so that its result can be
//! checked. The numbers of additions, subtractions, multiplications and divisions of one step are chosen so that their
//! shares, in whole percent, are those of the table; a test counts them. The kernels are generic over their number type
//! for that count alone.
//!
//! Coefficients come as arguments that the compiler does not know. Else it would turn a subtraction of a constant into
//! an addition.

use std::ops::{Add, Div, Mul, Sub};

/// What the kernels calculate with: `f64`, or in a test a number that counts what is done to it.
pub trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
}

impl<T: Copy + Add<Output = T> + Sub<Output = T> + Mul<Output = T> + Div<Output = T>> Number for T {}

/// Steps of one run of a kernel. With a thousand, the midpoint rule is right to better than [`TOLERANCE`].
pub const STEPS: u64 = 1000;

/// How far a result may be from the integral, as a share of it.
pub const TOLERANCE: f64 = 1e-6;

/// The most coefficients that a kernel takes.
pub const COEFFICIENTS: usize = 14;

/// What a kernel starts from.
#[derive(Clone, Copy, Debug)]
pub struct Start<N> {
    /// The first midpoint, half a step.
    pub x: N,
    /// The step.
    pub h: N,
    /// Zero.
    pub zero: N,
}

/// The kernel's function.
pub type Kernel<N> = fn(u64, Start<N>, &[N; COEFFICIENTS]) -> N;

/// One module: its operations and its known result.
pub struct Module {
    /// Additions, subtractions, multiplications and divisions of one step.
    pub operations: [u64; 4],
    /// The coefficients, zeros behind them.
    pub coefficients: [f64; COEFFICIENTS],
    /// The integral from 0 to 1.
    pub integral: f64,
    /// Whether the kernel weighs each step itself. The sum of the others is multiplied by the step in the end, once in
    /// a thousand steps.
    pub weighs: bool,
}

impl Module {
    /// Floating-point operations of one run.
    pub fn flops(&self) -> u64 {
        self.operations.iter().sum::<u64>() * STEPS
    }

    /// The integral by one run of a kernel for this module.
    pub fn result(&self, sum: f64, h: f64) -> f64 {
        if self.weighs { sum } else { sum * h }
    }
}

const fn padded<const N: usize>(given: [f64; N]) -> [f64; COEFFICIENTS] {
    let mut all = [0.0; COEFFICIENTS];
    let mut i = 0;
    while i < N {
        all[i] = given[i];
        i += 1;
    }
    all
}

/// Taylor coefficients in x² of sinh(x)/x, highest first, then of cosh(x), then a factor.
const fn hyperbolic(factor: f64) -> [f64; COEFFICIENTS] {
    let (sinh, cosh) = (
        [39_916_800.0, 362_880.0, 5040.0, 120.0, 6.0, 1.0],
        [479_001_600.0, 3_628_800.0, 40_320.0, 720.0, 24.0, 2.0, 1.0],
    );
    let mut all = [0.0; COEFFICIENTS];
    let mut i = 0;
    while i < 13 {
        all[i] = 1.0 / if i < 6 { sinh[i] } else { cosh[i - 6] };
        i += 1;
    }
    all[13] = factor;
    all
}

/// The modules in the order of the table, which gives their shares in percent: 50 0 43 7, 43 29 14 14, 35 12 53 0, 47 0
/// 53 0, 45 0 52 3, 45 0 55 0, 25 25 25 25, 43 0 57 0.
pub static MODULES: [Module; 8] = [
    // 1/(x²+1) + 1/(x²+2) + 1/(x²+3), as one fraction
    Module {
        operations: [7, 0, 6, 1],
        coefficients: padded([6.0, 24.0, 22.0, 2.0, 12.0, 22.0, 12.0]),
        // π/4 + atan(1/√2)/√2 + atan(1/√3)/√3
        integral: 1.522_907_933_120_036,
        weighs: false,
    },
    // (x − 2) / ((x + 1) (x − 3))
    Module {
        operations: [3, 2, 1, 1],
        coefficients: padded([2.0, 1.0, 3.0]),
        // 3/4 ln 2 + 1/4 ln 2/3
        integral: 0.418_494_108_392_917_84,
        weighs: false,
    },
    // 2 sin x
    Module {
        operations: [6, 2, 9, 0],
        coefficients: padded([
            1.0 / 6_227_020_800.0,
            1.0 / 39_916_800.0,
            1.0 / 362_880.0,
            1.0 / 5040.0,
            1.0 / 120.0,
            -1.0 / 6.0,
            1.0,
            2.0,
        ]),
        // 2 (1 − cos 1)
        integral: 0.919_395_388_263_720_5,
        weighs: false,
    },
    // 3 x² cos x
    Module {
        operations: [7, 0, 8, 0],
        coefficients: padded([
            -1.0 / 3_628_800.0,
            1.0 / 40_320.0,
            -1.0 / 720.0,
            1.0 / 24.0,
            -0.5,
            1.0,
            3.0,
        ]),
        // 3 (2 cos 1 − sin 1)
        integral: 0.717_400_880_785_149_1,
        weighs: false,
    },
    // 2 tanh x
    Module {
        operations: [13, 0, 15, 1],
        coefficients: hyperbolic(2.0),
        // 2 ln cosh 1
        integral: 0.867_561_660_966_054_2,
        weighs: true,
    },
    // 2 sinh x cosh x
    Module {
        operations: [13, 0, 16, 0],
        coefficients: hyperbolic(2.0),
        // sinh² 1
        integral: 1.381_097_845_541_815_5,
        weighs: true,
    },
    // 1/(x + 1) − x/(x² − 2) · 2x²/(3 − x²)
    Module {
        operations: [3, 3, 3, 3],
        coefficients: padded([1.0, 1.0, 2.0, 2.0, 3.0]),
        // ln 2 − 2 ln 1/2 − 3 ln 3/2
        integral: 0.863_046_217_355_342_6,
        weighs: false,
    },
    // 3 sinh² x cosh x
    Module {
        operations: [13, 0, 17, 0],
        coefficients: hyperbolic(3.0),
        // sinh³ 1
        integral: 1.623_067_836_619_624,
        weighs: true,
    },
];

/// The kernels in the order of [`MODULES`].
pub fn kernels<N: Number>() -> [Kernel<N>; 8] {
    [
        module_1, module_2, module_3, module_4, module_5, module_6, module_7, module_8,
    ]
}

/// Adds up `f` at the midpoints: two additions a step besides those of `f`.
#[inline(always)]
fn sum<N: Number>(steps: u64, start: Start<N>, f: impl Fn(N) -> N) -> N {
    let (mut x, mut sum) = (start.x, start.zero);
    for _ in 0..steps {
        sum = sum + f(x);
        x = x + start.h;
    }
    sum
}

#[inline(never)]
fn module_1<N: Number>(steps: u64, start: Start<N>, c: &[N; COEFFICIENTS]) -> N {
    sum(steps, start, |x| {
        let y = x * x;
        ((c[0] * y + c[1]) * y + c[2]) / (((c[3] * y + c[4]) * y + c[5]) * y + c[6])
    })
}

#[inline(never)]
fn module_2<N: Number>(steps: u64, start: Start<N>, c: &[N; COEFFICIENTS]) -> N {
    sum(steps, start, |x| (x - c[0]) / ((x + c[1]) * (x - c[2])))
}

#[inline(never)]
fn module_3<N: Number>(steps: u64, start: Start<N>, c: &[N; COEFFICIENTS]) -> N {
    sum(steps, start, |x| {
        let y = x * x;
        let p = ((((((c[0] * y - c[1]) * y + c[2]) * y - c[3]) * y + c[4]) * y) + c[5]) * y + c[6];
        (c[7] * x) * p
    })
}

#[inline(never)]
fn module_4<N: Number>(steps: u64, start: Start<N>, c: &[N; COEFFICIENTS]) -> N {
    sum(steps, start, |x| {
        let y = x * x;
        let p = ((((c[0] * y + c[1]) * y + c[2]) * y + c[3]) * y + c[4]) * y + c[5];
        (c[6] * y) * p
    })
}

/// sinh(x)/x and cosh(x) for y = x²: eleven multiplications and eleven additions.
#[inline(always)]
fn sinh_and_cosh<N: Number>(y: N, c: &[N; COEFFICIENTS]) -> (N, N) {
    let p = ((((c[0] * y + c[1]) * y + c[2]) * y + c[3]) * y + c[4]) * y + c[5];
    let q = (((((c[6] * y + c[7]) * y + c[8]) * y + c[9]) * y + c[10]) * y + c[11]) * y + c[12];
    (p, q)
}

#[inline(never)]
fn module_5<N: Number>(steps: u64, start: Start<N>, c: &[N; COEFFICIENTS]) -> N {
    sum(steps, start, |x| {
        let (p, q) = sinh_and_cosh(x * x, c);
        start.h * (((c[13] * x) * p) / q)
    })
}

#[inline(never)]
fn module_6<N: Number>(steps: u64, start: Start<N>, c: &[N; COEFFICIENTS]) -> N {
    sum(steps, start, |x| {
        let (p, q) = sinh_and_cosh(x * x, c);
        start.h * (((c[13] * x) * p) * q)
    })
}

#[inline(never)]
fn module_7<N: Number>(steps: u64, start: Start<N>, c: &[N; COEFFICIENTS]) -> N {
    sum(steps, start, |x| {
        let y = x * x;
        c[0] / (x + c[1]) - (x / (y - c[2])) * ((c[3] * y) / (c[4] - y))
    })
}

#[inline(never)]
fn module_8<N: Number>(steps: u64, start: Start<N>, c: &[N; COEFFICIENTS]) -> N {
    sum(steps, start, |x| {
        let y = x * x;
        let (p, q) = sinh_and_cosh(y, c);
        start.h * (((c[13] * y) * (p * p)) * q)
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local!(static COUNTS: Cell<[u64; 4]> = const { Cell::new([0; 4]) });

    /// A number that counts the operations that made it.
    #[derive(Clone, Copy)]
    struct Counted(f64);

    fn count(which: usize) {
        COUNTS.with(|counts| {
            let mut all = counts.get();
            all[which] += 1;
            counts.set(all);
        });
    }

    macro_rules! counted {
        ($operator:ident, $method:ident, $which:literal) => {
            impl $operator for Counted {
                type Output = Counted;
                fn $method(self, other: Counted) -> Counted {
                    count($which);
                    Counted($operator::$method(self.0, other.0))
                }
            }
        };
    }
    counted!(Add, add, 0);
    counted!(Sub, sub, 1);
    counted!(Mul, mul, 2);
    counted!(Div, div, 3);

    /// The table as published: FADD, FSUB, FMUL, FDIV in percent.
    const PUBLISHED: [[u64; 4]; 8] = [
        [50, 0, 43, 7],
        [43, 29, 14, 14],
        [35, 12, 53, 0],
        [47, 0, 53, 0],
        [45, 0, 52, 3],
        [45, 0, 55, 0],
        [25, 25, 25, 25],
        [43, 0, 57, 0],
    ];

    #[test]
    fn each_kernel_does_its_operations_in_the_published_mix() {
        let start = Start {
            x: Counted(0.05),
            h: Counted(0.1),
            zero: Counted(0.0),
        };
        for (i, (module, kernel)) in MODULES.iter().zip(kernels::<Counted>()).enumerate() {
            COUNTS.set([0; 4]);
            kernel(10, start, &module.coefficients.map(Counted));
            assert_eq!(
                COUNTS.get(),
                module.operations.map(|n| n * 10),
                "module {}",
                i + 1
            );
            let total: u64 = module.operations.iter().sum();
            let percent = module
                .operations
                .map(|n| (n as f64 / total as f64 * 100.0).round() as u64);
            assert_eq!(percent, PUBLISHED[i], "module {}", i + 1);
        }
    }

    #[test]
    fn each_kernel_finds_its_integral_and_not_with_a_step_less() {
        let h = 1.0 / STEPS as f64;
        for (i, (module, kernel)) in MODULES.iter().zip(kernels::<f64>()).enumerate() {
            let run = |steps| {
                module.result(
                    kernel(
                        steps,
                        Start {
                            x: h / 2.0,
                            h,
                            zero: 0.0,
                        },
                        &module.coefficients,
                    ),
                    h,
                )
            };
            let off = |result: f64| (result / module.integral - 1.0).abs();
            assert!(
                off(run(STEPS)) < TOLERANCE,
                "module {}: {}",
                i + 1,
                run(STEPS)
            );
            assert!(off(run(STEPS - 1)) > TOLERANCE, "module {}", i + 1);
        }
    }
}
