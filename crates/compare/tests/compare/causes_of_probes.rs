//! Made-up systems with one known difference: the common factor of the probes must be found, and its neighbours not
//! accused.

use fingerpost_compare::{Comparison, Options, Verdict, compare};
use fingerpost_diagnose::causes;
use fingerpost_record::{
    Better, Estimate, Evidence, Finding, Layer, Measurement, Metric, Outcome, Params, Process, Run,
    Status, Unit,
};

/// Probes with plausible costs in nanoseconds, and how many system calls each makes.
const PROBES: &[(&str, f64, f64)] = &[
    ("cpu.int", 0.3, 0.0),
    ("cpu.div", 6.0, 0.0),
    ("cpu.branch", 1.1, 0.0),
    ("syscall.null", 60.0, 1.0),
    ("syscall.read", 110.0, 1.0),
    ("syscall.write", 90.0, 1.0),
    ("syscall.fstat", 120.0, 1.0),
    ("syscall.stat", 450.0, 1.0),
    ("syscall.open_close", 900.0, 2.0),
    ("signal.install", 100.0, 1.0),
    ("signal.handle", 800.0, 2.0),
    ("process.fork", 130_000.0, 60.0),
    ("process.exec", 400_000.0, 200.0),
    ("process.shell", 900_000.0, 500.0),
    ("ipc.pipe", 4_000.0, 4.0),
    ("ipc.unix", 4_500.0, 4.0),
    ("ipc.udp", 8_000.0, 4.0),
    ("ipc.tcp", 9_000.0, 4.0),
    ("ipc.tcp_connect", 30_000.0, 8.0),
    ("vm.mmap", 500.0, 1.0),
    ("vm.fault_anon", 250.0, 0.0),
    ("vm.fault_cow", 400.0, 0.0),
    ("fs.fsync", 800_000.0, 1.0),
    ("fs.create", 9_000.0, 3.0),
];

fn row(probe: &str, value: f64) -> Measurement {
    let spread = |i: usize| value * (1.0 + 0.002 * (i as f64 - 5.5) / 5.5);
    Measurement {
        probe: probe.into(),
        descriptor: None,
        version: 1,
        params: Params::new(),
        unit: Unit::Nanoseconds,
        better: Better::Lower,
        outcome: Outcome::Measured,
        reason: None,
        estimate: Some(Estimate {
            value,
            low: value * 0.998,
            high: value * 1.002,
            confidence: 0.95,
        }),
        percentiles: None,
        processes: (0..12)
            .map(|i| Process {
                value: Some(spread(i)),
                samples: vec![spread(i)],
                batch: 1,
                ..Process::default()
            })
            .collect(),
    }
}

fn run(cost: impl Fn(&str, f64, f64) -> f64) -> Run {
    let row = |(probe, ns, calls): &(&str, f64, f64)| row(probe, cost(probe, *ns, *calls));
    let mut run = Run {
        id: "made-up".into(),
        measurements: PROBES.iter().map(row).collect(),
        ..Run::default()
    };
    run.host.cpu.model = "one and the same".into();
    run
}

fn against(new: Run) -> Comparison {
    compare(&[run(|_, ns, _| ns)], &[new], &Options::default())
}

fn first(c: &Comparison) -> &Finding {
    c.causes
        .first()
        .unwrap_or_else(|| panic!("no cause: {}", c.headline))
}

fn accused(c: &Comparison) -> Vec<&str> {
    c.causes
        .iter()
        .filter(|f| f.status != Status::RuledOut)
        .map(|f| f.cause.as_str())
        .collect()
}

#[test]
fn nothing_differs_and_the_headline_says_so() {
    let c = against(run(|_, ns, _| ns * 1.001));
    assert!(c.causes.is_empty() && c.unexplained == 0.0);
    assert!(c.headline.contains("performs like"), "{}", c.headline);
    assert!(c.rows.iter().all(|r| r.verdict == Verdict::Same));
}

#[test]
fn every_call_slower_by_a_like_amount_is_entry() {
    let mut new = run(|_, ns, calls| ns + 150.0 * calls);
    new.host.seccomp = Some(2);
    let mut base = run(|_, ns, _| ns);
    base.host.seccomp = Some(0);
    let c = compare(&[base], &[new], &Options::default());
    assert_eq!(
        (first(&c).cause.as_str(), first(&c).layer, first(&c).status),
        ("syscall.entry", Layer::Kernel, Status::Confirmed)
    );
    assert!(
        first(&c)
            .evidence
            .iter()
            .any(|e| e.metric == Metric::HostDiffers && e.name.as_deref() == Some("seccomp")),
        "{:?}",
        first(&c).evidence
    );
    assert!(
        first(&c)
            .evidence
            .iter()
            .any(|e| e.metric == Metric::EntryCost
                && e.value.is_some_and(|ns| (ns - 150.0).abs() < 0.5)),
        "{:?}",
        first(&c).evidence
    );
    assert!(
        c.causes
            .iter()
            .any(|f| f.cause == "cpu.speed" && f.status == Status::RuledOut)
    );
    assert!(c.unexplained < 0.3, "{}", c.unexplained);
}

#[test]
fn everything_slower_in_proportion_is_the_cpu() {
    let c = against(run(
        |probe, ns, _| if probe == "fs.fsync" { ns } else { ns * 1.3 },
    ));
    assert_eq!(
        (first(&c).cause.as_str(), first(&c).status),
        ("cpu.speed", Status::Confirmed)
    );
    assert!(first(&c).share > 0.95, "{}", first(&c).share);
    assert_eq!(accused(&c), ["cpu.speed"]);
}

#[test]
fn counters_tell_a_slower_clock_from_more_cycles_and_more_work() {
    let with = |instructions: f64, cycles: f64, factor: f64| {
        let mut run = run(|_, ns, _| ns * factor);
        for p in run.measurements.iter_mut().flat_map(|m| &mut m.processes) {
            p.counters = [
                ("instructions_user".to_owned(), instructions),
                ("cycles_user".to_owned(), cycles),
            ]
            .into();
        }
        run
    };
    let cause = |new: Run| {
        first(&compare(
            &[with(10.0, 5.0, 1.0)],
            &[new],
            &Options::default(),
        ))
        .cause
        .clone()
    };
    assert_eq!(cause(with(10.0, 5.0, 1.3)), "cpu.speed");
    assert_eq!(cause(with(10.0, 6.5, 1.3)), "cpu.mitigation");
    assert_eq!(cause(with(13.0, 6.5, 1.3)), "app.work");
}

#[test]
fn one_subsystem_alone_is_named_and_the_others_are_ruled_out() {
    let only = |prefix: &'static [&'static str]| {
        against(run(move |probe, ns, _| {
            if prefix.iter().any(|p| probe.starts_with(p)) {
                ns * 2.0
            } else {
                ns
            }
        }))
    };
    for (prefix, cause, layer) in [
        (&["process."][..], "kernel.process", Layer::Kernel),
        (&["signal."][..], "kernel.signal", Layer::Kernel),
        (&["ipc.udp", "ipc.tcp"][..], "network.stack", Layer::Network),
        (&["vm."][..], "memory.fault", Layer::Memory),
        (&["fs."][..], "storage.latency", Layer::Storage),
    ] {
        let c = only(prefix);
        assert_eq!(
            (first(&c).cause.as_str(), first(&c).layer, first(&c).status),
            (cause, layer, Status::Confirmed)
        );
        assert_eq!(accused(&c), [cause]);
        assert!(
            c.causes
                .iter()
                .any(|f| f.cause == "cpu.speed" && f.status == Status::RuledOut)
        );
        assert!(c.unexplained < 0.01);
    }
}

#[test]
fn a_cause_that_names_its_probes_needs_no_more_than_its_entry() {
    for cause in causes::all().filter(|c| !c.probes.is_empty()) {
        let with = |ns: f64| {
            let mut run = run(|_, ns, _| ns);
            run.measurements.extend(
                cause
                    .probes
                    .iter()
                    .map(|name| row(&name.replace("*", "one"), ns)),
            );
            run
        };
        let c = compare(&[with(400.0)], &[with(800.0)], &Options::default());
        assert_eq!(
            (first(&c).cause.as_str(), first(&c).layer, first(&c).status),
            (cause.name, cause.layer, Status::Confirmed)
        );
        assert_eq!(accused(&c), [cause.name]);
        assert!(
            c.headline.contains(cause.words.slower) && c.unexplained < 0.01,
            "{}",
            c.headline
        );
    }
}

/// A server that waits for its disk is no better off for probes of files that cost what they did.
#[test]
fn what_a_run_itself_convicts_is_not_ruled_out_by_probes() {
    let of = |cause: &str, status| Finding {
        cause: cause.into(),
        layer: Layer::Storage,
        status,
        share: 0.6,
        evidence: vec![Evidence::figure(Metric::DiskWait, 0.6)],
        step: None,
        relation: None,
    };
    let slower = || {
        run(|probe, ns, _| {
            if probe.starts_with("signal.") {
                ns * 2.0
            } else {
                ns
            }
        })
    };
    let told = |c: &Comparison| {
        c.causes
            .iter()
            .find(|f| f.cause == "storage.latency")
            .unwrap()
            .clone()
    };
    assert_eq!(told(&against(slower())).status, Status::RuledOut);
    for (in_base, status, found) in [
        (true, Status::Confirmed, Status::NotObserved),
        (false, Status::Confirmed, Status::NotObserved),
        (false, Status::Likely, Status::RuledOut),
    ] {
        let (mut base, mut new) = (run(|_, ns, _| ns), slower());
        let side = if in_base { &mut base } else { &mut new };
        side.findings.push(of("storage.latency", status));
        let c = compare(&[base], &[new], &Options::default());
        assert_eq!(told(&c).status, found, "{:#?}", told(&c));
        let figure = told(&c)
            .evidence
            .iter()
            .any(|e| e.metric == Metric::ShownBySide && e.value == Some(0.6));
        assert_eq!(figure, found == Status::NotObserved, "{:#?}", told(&c));
        assert_eq!(
            first(&c).cause,
            "kernel.signal",
            "whoever is accused still comes first"
        );
    }
}

#[test]
fn two_causes_at_once_are_both_named() {
    let c = against(run(|probe, ns, calls| {
        (if probe.starts_with("vm.fault") {
            3.0 * ns
        } else {
            ns
        }) + 200.0 * calls
    }));
    assert!(
        accused(&c).contains(&"syscall.entry") && accused(&c).contains(&"memory.fault"),
        "{:?}",
        accused(&c)
    );
}

#[test]
fn huge_pages_that_differ_give_faults_their_name() {
    let mut base = run(|_, ns, _| ns);
    base.host.thp = Some("always".into());
    let mut new = run(|probe, ns, _| {
        if probe.starts_with("vm.fault") {
            ns * 2.0
        } else {
            ns
        }
    });
    new.host.thp = Some("never".into());
    let c = compare(&[base], &[new], &Options::default());
    assert_eq!(first(&c).cause, "memory.page_size");
}

#[test]
fn rows_that_cannot_be_compared_are_listed_with_the_reason() {
    let mut base = run(|_, ns, _| ns);
    let mut new = run(|_, ns, _| ns);
    base.measurements.retain(|m| m.probe != "ipc.pipe");
    new.measurements.retain(|m| m.probe != "fs.create");
    let of = |r: &mut Run, probe: &str| {
        r.measurements
            .iter()
            .position(|m| m.probe == probe)
            .unwrap()
    };
    let i = of(&mut new, "cpu.int");
    new.measurements[i].version = 2;
    let i = of(&mut new, "syscall.null");
    new.measurements[i].outcome = Outcome::Failed;
    new.measurements[i].reason = Some("it hung".into());
    new.measurements[i].estimate = None;
    let i = of(&mut new, "syscall.read");
    new.measurements[i].outcome = Outcome::Untrusted;
    new.measurements[i].reason = Some("too noisy".into());
    new.measurements[i].estimate = Some(Estimate {
        value: 500.0,
        low: 499.0,
        high: 501.0,
        confidence: 0.95,
    });
    let c = compare(&[base], &[new], &Options::default());
    let why = |probe: &str| {
        c.not_compared
            .iter()
            .find(|n| n.probe == probe)
            .unwrap_or_else(|| panic!("{probe}"))
            .why
            .clone()
    };
    assert_eq!(why("ipc.pipe"), "only the new side has it");
    assert_eq!(why("fs.create"), "only the base has it");
    assert!(why("cpu.int").contains("version 1 to 2"));
    assert!(why("syscall.null").contains("it hung"));
    assert_eq!(c.not_compared.len(), 4);
    let read = c.rows.iter().find(|r| r.probe == "syscall.read").unwrap();
    assert!(
        read.verdict == Verdict::Unresolved && read.note.as_deref().unwrap().contains("too noisy")
    );
    assert!(c.causes.is_empty());
}

#[test]
fn a_published_row_is_put_beside_every_placement_of_ours() {
    let mut own = run(|_, ns, _| ns);
    let pipe = own
        .measurements
        .iter()
        .position(|m| m.probe == "ipc.pipe")
        .unwrap();
    let mut cross = own.measurements[pipe].clone();
    own.measurements[pipe].params = Params::new().with("placement", "same");
    cross.params = Params::new().with("placement", "cross");
    own.measurements.push(cross);
    let reference = fingerpost_compare::references::load("g5-2.5-linux").unwrap();
    let c = compare(
        std::slice::from_ref(&reference),
        std::slice::from_ref(&own),
        &Options::default(),
    );
    let pipes: Vec<_> = c.rows.iter().filter(|r| r.probe == "ipc.pipe").collect();
    assert_eq!(pipes.len(), 2);
    assert!(
        pipes
            .iter()
            .all(|r| r.note.as_deref().unwrap().contains("placement")
                && r.verdict == Verdict::Faster)
    );
    assert!(c.not_compared.iter().all(|n| n.probe != "ipc.pipe"));
    let back = compare(&[own], &[reference], &Options::default());
    assert_eq!(
        back.rows
            .iter()
            .filter(|r| r.probe == "ipc.pipe" && r.verdict == Verdict::Slower)
            .count(),
        2
    );
}

/// Two kernels on two processors: what is said of the kernel names the processor as well.
#[test]
fn where_the_processor_differs_too_each_cause_in_the_kernel_says_so() {
    let load = |name| fingerpost_compare::references::load(name).unwrap();
    let c = compare(
        &[load("opteron-850-linux")],
        &[load("g5-2.5-linux")],
        &Options::default(),
    );
    let of_kernel: Vec<&Finding> = c
        .causes
        .iter()
        .filter(|f| f.layer == Layer::Kernel && f.status != Status::RuledOut)
        .collect();
    assert!(of_kernel.len() > 3, "{:#?}", c.causes);
    for finding in of_kernel {
        let processor = Evidence::of(Metric::HostDiffers)
            .named("processor")
            .changing("AMD Opteron 850", "IBM PowerPC 970FX (G5)")
            .among(["opteron-850-linux", "g5-2.5-linux"]);
        assert_eq!(finding.status, Status::Likely, "{finding:#?}");
        assert!(finding.evidence.contains(&processor), "{finding:#?}");
    }
}
