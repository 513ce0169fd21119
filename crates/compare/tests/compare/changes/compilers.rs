//! Another compiler, or another flag of one.

use fingerpost_compare::select::part;
use fingerpost_compare::{Options, Verdict, compare};
use fingerpost_record::{Finding, Layer, Measurement, Metric, Params, Status};

use super::{between, named, row, run};

/// The flops lab on one machine: the kernels that are built in, and those that a compiler made with these flags.
fn flops(flags: &str, speed: f64) -> Vec<Measurement> {
    let module =
        |i: i64, compiler: &str| Params::new().with("compiler", compiler).with("module", i);
    let built_in = (1..=8).map(|i| row("cpu.flops", module(i, "built-in"), 2e9));
    let compiled = (1..=8).map(|i| {
        row(
            "cpu.flops",
            module(i, "cc 12.2.0").with("cflags", flags),
            2e9 * speed,
        )
    });
    built_in.chain(compiled).collect()
}

/// `compare ref:flops-g5-2.7-gcc-3.3 ref:flops-g5-2.7-gcc-4.0` said “a slower CPU”: the machine is one and the same.
#[test]
fn another_compiler_on_one_machine_is_the_compiler() {
    let [old, young] = ["gcc 3.3 -O2 -mcpu=G5", "gcc 4.0.0 -O2 -mcpu=G5"];
    for (base, new, from, to) in [
        ("flops-g5-2.7-gcc-3.3", "flops-g5-2.7-gcc-4.0", old, young),
        ("flops-g5-2.7-gcc-4.0", "flops-g5-2.7-gcc-3.3", young, old),
    ] {
        let c = between(base, new);
        let first = &c.causes[0];
        assert_eq!(
            (first.cause.as_str(), first.layer, first.status),
            ("app.build", Layer::Application, Status::Confirmed),
            "{:#?}",
            c.causes
        );
        let changed = &first.evidence[0];
        assert_eq!(
            (changed.from.as_deref(), changed.to.as_deref()),
            (Some(from), Some(to))
        );
        assert!(first.share > 0.95, "{first:#?}");
        assert_eq!(named(&c).len(), 1, "{:#?}", c.causes);
        assert!(
            c.headline.contains("another build")
                && c.headline.contains(&format!("{from} → {to}"))
                && !c.headline.contains("CPU"),
            "{}",
            c.headline
        );
        let clock = c
            .causes
            .iter()
            .find(|f| f.cause == "cpu.speed")
            .expect("the clock is the same and known");
        assert_eq!(clock.status, Status::RuledOut);
    }
}

/// The clock of one processor has its part, 8 %, and the compiler the rest.
#[test]
fn a_compiler_and_a_clock_have_a_part_each() {
    let c = between("flops-g5-2.7-gcc-4.0", "flops-g5-2.5-gcc-3.3");
    let causes: Vec<(&str, bool)> = named(&c)
        .iter()
        .map(|f| (f.cause.as_str(), f.share > 0.5))
        .collect();
    assert_eq!(
        causes,
        [("app.build", true), ("cpu.speed", false)],
        "{:#?}",
        c.causes
    );
}

/// With another processor nobody knows how much is the compiler's.
#[test]
fn a_compiler_and_a_processor_are_not_taken_apart() {
    let c = between("flops-opteron-2.4-gcc-3.3.3", "flops-g5-2.7-gcc-3.3");
    assert_eq!(c.causes[0].cause, "app.build", "{:#?}", c.causes);
    assert!(
        named(&c).iter().all(|f| f.status == Status::Likely),
        "{:#?}",
        c.causes
    );
    assert!(
        c.causes[0]
            .evidence
            .iter()
            .any(|e| e.metric == Metric::MachinesDifferToo
                && e.name.as_deref() == Some("processors"))
    );
    let causes: Vec<(&str, f64)> = named(&c)
        .iter()
        .map(|f| (f.cause.as_str(), f.share))
        .collect();
    assert_eq!(
        causes,
        [("app.build", 0.0), ("cpu.speed", 0.0)],
        "a share would be a guess"
    );
}

/// The article has the same compiler on both, each told which processor it is for: that is no change, and modules of
/// which one processor is ahead in four and the other in three clear no processor.
#[test]
fn the_same_compiler_on_two_processors_leaves_the_processor() {
    for (base, new) in [
        ("flops-opteron-2.4-gcc-4.0", "flops-g5-2.7-gcc-4.0"),
        ("flops-g5-2.7-gcc-4.0", "flops-opteron-2.4-gcc-4.0"),
    ] {
        let c = between(base, new);
        assert!(c.changes.is_empty(), "{:?}", c.changes);
        let of = |f: &Finding| (f.cause.clone(), f.status);
        assert_eq!(
            c.causes.iter().map(of).collect::<Vec<_>>(),
            [("cpu.speed".to_owned(), Status::Likely)],
            "{:#?}",
            c.causes
        );
        let [some, others] = &c.causes[0].evidence[..2] else {
            panic!("{:#?}", c.causes)
        };
        assert_eq!(
            (some.metric, some.value, some.of),
            (Metric::UserProbes, Some(4.0), Some(9.0))
        );
        assert_eq!(
            (others.metric, others.value),
            (Metric::ProbesTheOtherWay, Some(3.0))
        );
        assert!(
            c.headline.contains("probably another processor"),
            "{}",
            c.headline
        );
    }
    // The better compilers of both are two compilers, and the processor is still not ruled out.
    let c = between("flops-opteron-2.4-gcc-3.3.3", "flops-g5-2.7-gcc-4.0");
    let causes: Vec<(&str, f64)> = named(&c)
        .iter()
        .map(|f| (f.cause.as_str(), f.share))
        .collect();
    assert_eq!(
        causes,
        [("app.build", 0.0), ("cpu.speed", 0.0)],
        "{:#?}",
        c.causes
    );
}

#[test]
fn another_flag_on_this_machine_is_the_flag() {
    let (fast, slow) = (run(flops("-O2", 1.0)), run(flops("-O0", 0.3)));
    let c = compare(std::slice::from_ref(&fast), &[slow], &Options::default());
    assert_eq!((c.rows.len(), c.not_compared.len()), (16, 0));
    assert_eq!(
        c.rows
            .iter()
            .filter(|r| r.verdict == Verdict::Slower)
            .count(),
        8
    );
    assert_eq!(
        (c.causes[0].cause.as_str(), c.causes[0].status),
        ("app.build", Status::Confirmed),
        "{:#?}",
        c.causes
    );
    assert_eq!(named(&c).len(), 1, "{:#?}", c.causes);
    assert!(c.headline.contains("cflags: -O2 → -O0"), "{}", c.headline);
    // As two parts of one run.
    let mut both = fast;
    both.measurements
        .retain(|m| m.params.get("cflags").is_some());
    both.measurements.extend(
        flops("-O0", 0.3)
            .into_iter()
            .filter(|m| m.params.get("cflags").is_some()),
    );
    let of = |flags: &str| part(both.clone(), &Params::new().with("cflags", flags)).unwrap();
    let c = compare(&[of("-O0")], &[of("-O2")], &Options::default());
    assert_eq!(
        (c.causes[0].cause.as_str(), c.causes[0].status),
        ("app.build", Status::Confirmed),
        "{:#?}",
        c.causes
    );
    assert!(c.headline.contains("cflags: -O0 → -O2"), "{}", c.headline);
}
