//! What No More Apple Mysteries says of processors and compilers besides its tables.

use super::conclusion::{Conclusion, Here, mysteries};
use super::judged::Judged;
use super::primitives::{FLOPS, FPU};
use super::source::between;
use fingerpost_compare::verdict::Verdict;

const G5: &str = "The G5 a.k.a. Power 970FX";
const FIRST_ARTICLE: &str = "the figures for it are in the first article";
const ONE_PROCESSOR: &str = "it is about one processor of that time";

/// The conclusions about processors and compilers.
pub static LIST: &[Conclusion] = &[
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
