//! The CPU itself: the latency of integer operations that wait for each other, and the cost of a branch.
//!
//! Written in assembly, since a compiler would fold a chain of additions into one multiplication and a branch into a
//! move.

use std::hint::black_box;

use crate::probe::{Exercises, Probe, latency, rows, table};
use crate::session::{Session, Stop};

/// Operations in one turn of a loop; what the loop itself adds is a part in 64 of one or two instructions.
const UNROLLED: u64 = 64;

/// Chains of 64 operations, copied by the assembler, each of which needs the result of the one before. In `div` the
/// addition of `keep` keeps the dividend large; `branch` counts in `taken` how often its condition held.
#[cfg(target_arch = "x86_64")]
pub(crate) mod chain {
    use std::arch::asm;

    pub fn add(mut x: u64, y: u64) -> u64 {
        // SAFETY: registers only.
        unsafe {
            asm!(".rept 64", "add {x}, {y}", ".endr", x = inout(reg) x, y = in(reg) y, options(nomem, nostack))
        };
        x
    }

    pub fn mul(mut x: u64, y: u64) -> u64 {
        // SAFETY: registers only.
        unsafe {
            asm!(".rept 64", "imul {x}, {y}", ".endr", x = inout(reg) x, y = in(reg) y, options(nomem, nostack))
        };
        x
    }

    pub fn div(mut x: u64, y: u64, keep: u64) -> u64 {
        // SAFETY: registers only; the divisor is not zero and the upper half of the dividend is, so the quotient fits.
        unsafe {
            asm!(".rept 64", "xor edx, edx", "div {y}", "add rax, {k}", ".endr",
                inout("rax") x, out("rdx") _, y = in(reg) y, k = in(reg) keep, options(nomem, nostack));
        }
        x
    }

    pub fn branch(x: u64, mask: u64, taken: &mut u64) -> u64 {
        let (mut x, mut count) = (x, *taken);
        // SAFETY: registers only; each jump goes to the label right behind it.
        unsafe {
            asm!(".rept 64", "imul {x}, {a}", "add {x}, {c}", "test {x}, {m}", "jz 22f", "add {n}, 1", "22:", ".endr",
                x = inout(reg) x, a = in(reg) super::MULTIPLIER, c = in(reg) super::INCREMENT, m = in(reg) mask,
                n = inout(reg) count, options(nomem, nostack));
        }
        *taken = count;
        x
    }
}

/// As above, in the words of 64-bit ARM.
#[cfg(target_arch = "aarch64")]
pub(crate) mod chain {
    use std::arch::asm;

    pub fn add(mut x: u64, y: u64) -> u64 {
        // SAFETY: registers only.
        unsafe {
            asm!(".rept 64", "add {x}, {x}, {y}", ".endr", x = inout(reg) x, y = in(reg) y, options(nomem, nostack))
        };
        x
    }

    pub fn mul(mut x: u64, y: u64) -> u64 {
        // SAFETY: registers only.
        unsafe {
            asm!(".rept 64", "mul {x}, {x}, {y}", ".endr", x = inout(reg) x, y = in(reg) y, options(nomem, nostack))
        };
        x
    }

    pub fn div(mut x: u64, y: u64, keep: u64) -> u64 {
        // SAFETY: registers only.
        unsafe {
            asm!(".rept 64", "udiv {x}, {x}, {y}", "add {x}, {x}, {k}", ".endr",
                x = inout(reg) x, y = in(reg) y, k = in(reg) keep, options(nomem, nostack));
        }
        x
    }

    pub fn branch(x: u64, mask: u64, taken: &mut u64) -> u64 {
        let (mut x, mut count) = (x, *taken);
        // SAFETY: registers only; each jump goes to the label right behind it.
        unsafe {
            asm!(".rept 64", "madd {x}, {x}, {a}, {c}", "tst {x}, {m}", "b.eq 22f", "add {n}, {n}, #1", "22:", ".endr",
                x = inout(reg) x, a = in(reg) super::MULTIPLIER, c = in(reg) super::INCREMENT, m = in(reg) mask,
                n = inout(reg) count, options(nomem, nostack));
        }
        *taken = count;
        x
    }
}

/// Other processors have no assembly here; their probes are skipped, so nothing calls these.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod chain {
    pub fn add(x: u64, y: u64) -> u64 {
        (0..super::UNROLLED).fold(x, |x, _| x.wrapping_add(y))
    }

    pub fn mul(x: u64, y: u64) -> u64 {
        (0..super::UNROLLED).fold(x, |x, _| x.wrapping_mul(y))
    }

    pub fn div(x: u64, y: u64, keep: u64) -> u64 {
        (0..super::UNROLLED).fold(x, |x, _| x / y + keep)
    }

    pub fn branch(x: u64, mask: u64, taken: &mut u64) -> u64 {
        (0..super::UNROLLED).fold(x, |x, _| {
            let x = x
                .wrapping_mul(super::MULTIPLIER)
                .wrapping_add(super::INCREMENT);
            *taken += u64::from(x & mask != 0);
            x
        })
    }
}

/// The generator of the branch probe: Knuth's MMIX linear congruential one, whose upper bits are as good as random.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1_442_695_040_888_963_407;

/// The bit that an unpredictable branch looks at.
const RANDOM_BIT: u64 = 1 << 62;

/// A divisor of 32 bits under a dividend of 63: what dividing really costs on CPUs whose divider stops early on small
/// numbers.
const DIVISOR: u64 = 0xffff_fffb;
const DIVIDEND: u64 = 0x7fff_ffff_ffff_ffe7;

/// Whether the chains are written in this processor's assembly.
pub(crate) fn known_processor() -> Result<(), Stop> {
    let known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    if known {
        Ok(())
    } else {
        Err(Stop::Skip(format!(
            "not written for {}",
            std::env::consts::ARCH
        )))
    }
}

/// Measures a chain of 64 operations, each of which needs the result of the one before.
fn chained(s: &mut Session, step: impl Fn(u64) -> u64) -> Result<(), Stop> {
    known_processor()?;
    s.work_per_op(UNROLLED);
    let mut x = black_box(3u64);
    s.batches(|ops| {
        for _ in 0..ops {
            x = step(x);
        }
        black_box(x);
        Ok(())
    })
}

fn int(s: &mut Session) -> Result<(), Stop> {
    let y = black_box(0x9e37_79b9_7f4a_7c15);
    match s.word("op", &["add", "mul"])? {
        "add" => chained(s, |x| chain::add(x, y)),
        _ => chained(s, |x| chain::mul(x, y)),
    }
}

fn div(s: &mut Session) -> Result<(), Stop> {
    let (divisor, dividend) = (black_box(DIVISOR), black_box(DIVIDEND));
    chained(s, |x| chain::div(x, divisor, dividend))
}

fn branch(s: &mut Session) -> Result<(), Stop> {
    known_processor()?;
    let mask = match s.word("pattern", &["predictable", "random"])? {
        "random" => RANDOM_BIT,
        _ => 0,
    };
    s.work_per_op(UNROLLED);
    let (mut x, mut taken, mut all) = (black_box(3u64), 0u64, 0u64);
    s.batches(|ops| {
        for _ in 0..ops {
            x = chain::branch(x, mask, &mut taken);
        }
        all += ops * UNROLLED;
        Ok(())
    })?;
    // A branch that always goes the same way is none that is hard to foresee.
    let share = taken as f64 / all as f64;
    let right = if mask == 0 {
        taken == 0
    } else {
        (0.4..=0.6).contains(&share)
    };
    if right {
        Ok(())
    } else {
        Err(Stop::Fail(format!(
            "{share:.3} of the branches fell through, which is not the pattern"
        )))
    }
}

const FAMILY: Probe = latency(&table::ARITHMETIC, Exercises::Cpu);

/// The probes of this file.
pub static PROBES: &[Probe] = &[
    Probe {
        name: "cpu.int",
        bounds: [0.05, 100.0],
        lmbench: Some("integer add, mul"),
        summary: "one integer operation that waits for the one before",
        timed: "one 64-bit addition or multiplication of registers in a chain, 64 to a turn of the loop.",
        pitfalls: "an addition takes one cycle almost everywhere: its reciprocal is the clock rate that the CPU really \
            runs at.",
        variants: || rows("op", ["add", "mul"]),
        run: int,
        ..FAMILY
    },
    Probe {
        name: "cpu.div",
        bounds: [0.3, 200.0],
        lmbench: Some("integer div"),
        summary: "one integer division that waits for the one before",
        timed: "one unsigned 64-bit division of a 63-bit number by a 32-bit one, and the addition that makes the next \
            dividend large again, in a chain.",
        pitfalls: "CPUs differ by a factor of ten here, and many divide small numbers faster.",
        run: div,
        ..FAMILY
    },
    Probe {
        name: "cpu.branch",
        bounds: [0.1, 200.0],
        summary: "one conditional branch",
        timed: "one step of a linear congruential generator and a conditional branch: on a bit of it (random), or \
            never taken otherwise (predictable). Twice the difference of the two rows is the cost of a wrong guess.",
        pitfalls: "the generator's multiplication and addition are in both rows.",
        variants: || rows("pattern", ["predictable", "random"]),
        run: branch,
        ..FAMILY
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chains_do_sixty_four_operations() {
        let fold = |x: u64, f: &dyn Fn(u64) -> u64| (0..UNROLLED).fold(x, |x, _| f(x));
        assert_eq!(chain::add(3, 5), 3 + 64 * 5);
        assert_eq!(chain::mul(3, 7), fold(3, &|x| x.wrapping_mul(7)));
        assert_eq!(
            chain::div(9, DIVISOR, DIVIDEND),
            fold(9, &|x| x / DIVISOR + DIVIDEND)
        );
    }

    #[test]
    fn the_random_branch_goes_both_ways_the_predictable_one_not() {
        let (mut x, mut taken) = (3, 0);
        for _ in 0..100 {
            x = chain::branch(x, RANDOM_BIT, &mut taken);
        }
        assert!((2800..3600).contains(&taken), "{taken} of 6400");
        let mut none = 0;
        chain::branch(3, 0, &mut none);
        assert_eq!(none, 0);
    }
}
